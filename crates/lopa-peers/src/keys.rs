//! The keys of an experiment with hashes of their values: nodes whose experiments differ find out
//! which keys do, without exchanging values.

use std::collections::BTreeMap;

use lopa_base::store::bytes::{Hash, Reader, Writer};

/// The most bytes of a list of keys.
pub const MOST: usize = 1 << 20;

/// The most letters of a key that are shown.
const LETTERS: usize = 100;

/// The most keys that are named.
const NAMED: usize = 5;

/// The keys of an experiment, each with the beginning of a hash of its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<String, [u8; 8]>);

impl Keys {
    /// From keys and hashes of their values.
    pub fn new(all: impl IntoIterator<Item = (String, Hash)>) -> Keys {
        let start = |hash: Hash| std::array::from_fn(|at| hash[at]);
        Keys(all.into_iter().map(|(key, hash)| (key, start(hash))).collect())
    }

    /// Encodes them; nothing if they are too many.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        for (key, hash) in &self.0 {
            out.bytes(key.as_bytes());
            out.raw(hash);
        }
        Some(out.done()).filter(|bytes| bytes.len() <= MOST).unwrap_or_default()
    }

    /// Decodes them; `None` if they are malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<Keys> {
        let (mut bytes, mut keys) = (Reader::new(bytes), BTreeMap::new());
        while bytes.end().is_none() {
            let key = std::str::from_utf8(bytes.bytes()?).ok()?;
            keys.insert(key.to_string(), bytes.raw(8)?.try_into().ok()?);
        }
        Some(Keys(keys))
    }

    /// Which keys differ from theirs, in words; `None` if none does.
    pub fn differ(&self, theirs: &Keys) -> Option<String> {
        let other = |key: &&String| theirs.0.get(*key).is_some_and(|hash| *hash != self.0[*key]);
        let values: Vec<&String> = self.0.keys().filter(other).collect();
        let lacks = |keys: &Keys, in_: &Keys| -> Vec<String> {
            keys.0.keys().filter(|key| !in_.0.contains_key(*key)).cloned().collect()
        };
        let (here, there) = (lacks(self, theirs), lacks(theirs, self));
        let parts = [
            named(&values, "has another value there", "have other values there"),
            named(&here.iter().collect::<Vec<_>>(), "is set only here", "are set only here"),
            named(&there.iter().collect::<Vec<_>>(), "is set only there", "are set only there"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn named(keys: &[&String], one: &str, several: &str) -> Option<String> {
    let short = |key: &&&String| key.chars().take(LETTERS).collect::<String>();
    let shown: Vec<String> =
        keys.iter().take(NAMED).map(|key| format!("`{}`", short(&key))).collect();
    let more = keys.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let what = if keys.len() == 1 { one } else { several };
    (!keys.is_empty()).then(|| format!("{}{more} {what}", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(all: &[(&str, u8)]) -> Keys {
        Keys::new(all.iter().map(|&(key, value)| (key.to_string(), [value; 32])))
    }

    #[test]
    fn the_keys_that_differ_are_named_at_both_ends() {
        let ours = keys(&[("run.iterations", 40), ("run.batch", 4), ("messages.drop", 1)]);
        let theirs = keys(&[("run.iterations", 41), ("run.batch", 4), ("time.links", 5)]);
        assert_eq!(
            ours.differ(&theirs).unwrap(),
            "`run.iterations` has another value there, `messages.drop` is set only here, \
             `time.links` is set only there"
        );
        assert!(theirs.differ(&ours).unwrap().contains("`messages.drop` is set only there"));
        assert_eq!(ours.differ(&ours), None);
        let many = Keys::new((0..9).map(|n| (format!("k{n}"), [1; 32])));
        let said = Keys::default().differ(&many).unwrap();
        assert_eq!(said, "`k0`, `k1`, `k2`, `k3`, `k4` and 4 more are set only there");
    }

    #[test]
    fn they_arrive_as_they_were_sent() {
        let ours = keys(&[("data.path", 3), ("schema", 1)]);
        let bytes = ours.to_bytes();
        assert_eq!(Keys::from_bytes(&bytes), Some(ours));
        assert_eq!(Keys::from_bytes(&bytes[..bytes.len() - 1]), None);
    }
}
