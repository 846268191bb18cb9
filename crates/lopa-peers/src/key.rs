//! A node's key: a secret that never leaves its host, and the public key that identifies the node.

use std::io::ErrorKind;
use std::path::Path;

use curve25519_dalek::edwards::CompressedEdwardsY;
use iroh::SecretKey;
use lopa::error::{Error, Result};
use lopa_base::store::bytes::hex;
use lopa_base::store::files::{cannot_write, create_private};
use lopa_base::store::limits::read_text;
use sha2::{Digest, Sha256, Sha512};

/// The identity of a node: an ed25519 public key, written as 64 hexadecimal digits.
pub use iroh::PublicKey;

/// The first line of a key file.
const HEADER: &str = "lopa secret key 1";

/// A secret key; `Debug` does not print it.
#[derive(Debug, Clone)]
pub struct Key(SecretKey);

impl Key {
    /// Generates a key and writes it to a new file that only its owner may read. Never overwrites a
    /// file.
    pub fn create(path: &Path) -> Result<Key> {
        let key = Key(SecretKey::generate());
        let text = format!("{HEADER}\n{}\n", hex(&key.0.to_bytes()));
        create_private(path, text.as_bytes()).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                Error::storage("key/exists", "the file exists and may hold a key")
                    .at(path.display().to_string())
                    .hint("`lopa key show` prints its public key; name another file for a new key")
            }
            _ => cannot_write(path, &error).hint("name a file in a folder that you can write to"),
        })?;
        Ok(key)
    }

    /// Reads a key that [`Key::create`] wrote; refuses one that others on this host may read.
    pub fn read(path: &Path) -> Result<Key> {
        let place = path.display().to_string();
        let text = read_text(path, 4096).map_err(|error| {
            let message = format!("cannot read the secret key: {error}");
            let error = Error::config("key/unreadable", message).at(&place);
            error.hint(format!("make one with `lopa key new {place}`"))
        })?;
        check_private(path).map_err(|error| error.at(&place))?;
        let secret = text.strip_prefix(HEADER).and_then(|rest| parse_hex(rest.trim()));
        let secret = secret.ok_or_else(|| {
            Error::config("key/malformed", "this is not a lopa secret key")
                .at(&place)
                .hint("name the file that `lopa key new` wrote")
        })?;
        Ok(Key(SecretKey::from_bytes(&secret)))
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.0.public()
    }

    /// This node's ed25519 signature of some bytes. Frames begin with a word of their own, so that none is
    /// ever a signature that TLS makes with the same key.
    pub fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }

    /// A secret of this node and another: Diffie and Hellman's, on the curve of both keys. `None` if the other key is no
    /// point of it, or one that everyone could share.
    pub fn shared(&self, other: &PublicKey) -> Option<[u8; 32]> {
        let hash = Sha512::digest(self.0.to_bytes());
        let own: [u8; 32] = std::array::from_fn(|at| hash[at]);
        let point = CompressedEdwardsY(*other.as_bytes()).decompress()?;
        let shared = point.to_montgomery().mul_clamped(own).to_bytes();
        let sound = shared != [0; 32];
        let hash = Sha256::new_with_prefix("lopa pairwise").chain_update(shared).finalize();
        sound.then(|| hash.into())
    }

    pub(crate) fn secret(&self) -> SecretKey {
        self.0.clone()
    }
}

/// Fails if anyone but its owner may read the file.
#[cfg(unix)]
fn check_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode =
        std::fs::metadata(path).map_or(0o777, |metadata| metadata.permissions().mode() & 0o777);
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("others on this host can read the secret key: its mode is {mode:04o}");
    Err(Error::config("key/permissions", message).hint(format!(
        "run `chmod 600 {}`, or make a new key if someone may have read it",
        path.display()
    )))
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<()> {
    Ok(())
}

/// 32 bytes from 64 hexadecimal digits.
pub(crate) fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let digit = |at: usize| char::from(digits[at]).to_digit(16);
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (digit(2 * at)? * 16 + digit(2 * at + 1)?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_nodes_share_a_secret_that_no_third_has() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| Key::create(&folder.path().join(name)).unwrap());
        let secret = a.shared(&b.public());
        assert!(secret.is_some());
        assert_eq!(secret, b.shared(&a.public()));
        assert_ne!(secret, a.shared(&c.public()));
        assert_ne!(a.shared(&c.public()), b.shared(&c.public()));
    }
}
