//! Who vouches for a roster: every member signs that it takes part, the organiser signs the whole.
//!
//! A member's signature covers the experiment, the organiser's key, and the member's own name, key and
//! addresses: no organiser but this one can list it, for no experiment but this one. The organiser's
//! signature covers the version, all names, all members with their signatures, and the relays.

use iroh::PublicKey;
use lopa::error::{Error, Kind, Result};
use lopa_base::store::bytes::{Hash, Writer};
use sha2::{Digest, Sha256};

use crate::key::Key;
use crate::roster::{Member, Roster, Seal, Signature, check_names};

/// The first words of what is signed. Neither frames nor TLS sign bytes that begin so.
const ROSTER: &[u8] = b"roster of lopa 1\n";
const MEMBER: &[u8] = b"member of lopa 1\n";

/// What a member signs: that it takes part in an experiment with this organiser.
pub fn consent(experiment: &Hash, organiser: &PublicKey, member: &Member) -> Vec<u8> {
    let mut out = Writer::default();
    out.raw(MEMBER);
    out.raw(experiment);
    out.raw(organiser.as_bytes());
    identity(member, &mut out);
    out.done()
}

fn identity(member: &Member, out: &mut Writer) {
    out.bytes(member.name.as_bytes());
    out.raw(member.key.as_bytes());
    texts(&member.addresses, out);
}

fn texts(all: &[String], out: &mut Writer) {
    out.u64(all.len() as u64);
    all.iter().for_each(|text| out.bytes(text.as_bytes()));
}

/// A short fingerprint, to be compared by telephone: 20 digits.
pub fn fingerprint(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let number = u128::from_le_bytes(std::array::from_fn(|at| hash[at])) % 10_u128.pow(20);
    let digits = format!("{number:020}");
    [0, 5, 10, 15].map(|at| &digits[at..at + 5]).join(" ")
}

/// Whether a key signed these bytes.
pub fn verifies(key: &PublicKey, bytes: &[u8], signature: &Signature) -> bool {
    key.verify(bytes, &iroh::Signature::from_bytes(signature)).is_ok()
}

impl Roster {
    /// What the organiser signs; `None` if nobody vouches for the roster.
    fn sealed_bytes(&self) -> Option<Vec<u8>> {
        let Seal { version, experiment, organiser, names, .. } = self.seal.as_ref()?;
        let mut out = Writer::default();
        out.raw(ROSTER);
        out.u64(*version);
        out.raw(experiment);
        out.bytes(organiser.as_bytes());
        texts(names, &mut out);
        texts(&self.relays, &mut out);
        out.u64(self.members.len() as u64);
        for member in &self.members {
            identity(member, &mut out);
            texts(&member.neighbours, &mut out);
            out.bytes(member.signature.as_ref().map_or(&[], |signature| &signature[..]));
        }
        Some(out.done())
    }

    /// Its fingerprint, if it is signed: members with the same one have the same roster.
    pub fn fingerprint(&self) -> Option<String> {
        self.sealed_bytes().map(|bytes| fingerprint(&bytes))
    }

    /// The organiser, if the roster is signed.
    pub fn organiser(&self) -> Option<&Member> {
        let name = &self.seal.as_ref()?.organiser;
        self.members.iter().find(|member| member.name == *name)
    }

    /// Starts a signed roster: the organiser is its first member, the others are still to join.
    pub fn found(
        mut organiser: Member,
        key: &Key,
        experiment: Hash,
        names: Vec<String>,
        relays: Vec<String>,
    ) -> Result<Roster> {
        check_names(&names)?;
        organiser.signature = Some(key.sign(&consent(&experiment, &key.public(), &organiser)));
        let name = organiser.name.clone();
        let seal = Seal { version: 0, experiment, organiser: name, names, signature: [0; 64] };
        let mut roster = Roster { members: vec![organiser], relays, seal: Some(seal) };
        roster.sign(key)?;
        roster.verify()?;
        Ok(roster)
    }

    /// Signs the roster again, after a change; its version is the next one.
    pub fn sign(&mut self, key: &Key) -> Result<()> {
        let organiser = self.organiser().map(|member| (member.name.clone(), member.key));
        match organiser {
            Some((_, public)) if public == key.public() => {}
            Some((name, _)) => {
                let message = format!("only `{name}` can change this roster: this is another key");
                return Err(Error::new(Kind::Refused, "roster/not-organiser", message)
                    .hint(format!("ask `{name}` for it, or name its key with --key")));
            }
            None => return Err(unsigned()),
        }
        if let Some(seal) = &mut self.seal {
            seal.version += 1;
        }
        let bytes = self.sealed_bytes().ok_or_else(unsigned)?;
        if let Some(seal) = &mut self.seal {
            seal.signature = key.sign(&bytes);
        }
        Ok(())
    }

    /// Checks the signatures of a roster that has any: the organiser's, and one of each member.
    pub fn verify(&self) -> Result<()> {
        let Some(seal) = &self.seal else { return Ok(()) };
        let forged = |message: String| {
            Error::new(Kind::Refused, "roster/bad-signature", message)
                .hint("a signed roster cannot be edited: ask its organiser for the file again")
        };
        check_names(&seal.names)?;
        let Some(organiser) = self.organiser() else {
            return Err(forged(format!("the organiser `{}` is not a member", seal.organiser)));
        };
        let bytes = self.sealed_bytes().ok_or_else(unsigned)?;
        if !verifies(&organiser.key, &bytes, &seal.signature) {
            let who = &seal.organiser;
            return Err(forged(format!("the roster is not as `{who}` signed it")));
        }
        let mut names = seal.names.iter();
        for member in &self.members {
            let name = &member.name;
            if !names.by_ref().any(|known| known == name) {
                return Err(forged(format!(
                    "`{name}` is not among the nodes, or out of their order"
                )));
            }
            let bytes = consent(&seal.experiment, &organiser.key, member);
            let signed = member.signature.as_ref();
            if !signed.is_some_and(|signature| verifies(&member.key, &bytes, signature)) {
                return Err(forged(format!("`{name}` has not signed that it takes part")));
            }
        }
        Ok(())
    }

    /// The nodes that have not joined yet.
    pub fn absent(&self) -> Vec<&str> {
        let names = self.seal.iter().flat_map(|seal| &seal.names);
        let joined = |name: &&String| self.members.iter().any(|member| member.name == **name);
        names.filter(|name| !joined(name)).map(String::as_str).collect()
    }

    /// Adds a member that has signed that it takes part, at its place; false if it is there already.
    pub fn admit(&mut self, member: Member) -> Result<bool> {
        let seal = self.seal.as_ref().ok_or_else(unsigned)?;
        let place = |name: &str| seal.names.iter().position(|known| known == name);
        let name = member.name.clone();
        let Some(at) = place(&name) else {
            let message = format!("`{name}` is not among the nodes of this roster");
            return Err(Error::config("roster/unknown-node", message)
                .hint(format!("it has {}", seal.names.join(", "))));
        };
        if self.members.contains(&member) {
            return Ok(false);
        }
        if self.members.iter().any(|known| known.name == name) {
            let message =
                format!("`{name}` has joined already, with another key or other addresses");
            return Err(Error::new(Kind::Refused, "roster/joined", message).hint(format!(
                "if the new reply is right, `lopa roster remove` takes `{name}` out first"
            )));
        }
        let before = self.members.iter().filter(|known| place(&known.name) < Some(at)).count();
        let last = self.members.len();
        self.join(member)?;
        self.members[before..=last].rotate_right(1);
        Ok(true)
    }

    /// The later one of two rosters, this and the one that a node has; fails if neither succeeds the other.
    pub fn latest<'r>(&'r self, there: &'r Roster) -> Result<&'r Roster> {
        match self.accepts(there) {
            Ok(()) => Ok(there),
            Err(_) => there.accepts(self).map(|()| self),
        }
    }

    /// Fails unless a roster is a successor of this one: the same organiser and experiment, and no
    /// older version.
    pub fn accepts(&self, newer: &Roster) -> Result<()> {
        let (Some(old), Some(new)) = (&self.seal, &newer.seal) else { return Err(unsigned()) };
        let key = |roster: &Roster| roster.organiser().map(|member| member.key);
        let refused = |id, message: String, hint: &str| {
            Err(Error::new(Kind::Refused, id, message).hint(hint))
        };
        if key(self) != key(newer) {
            let message = format!(
                "`{}` did not sign it: the key is not the one in the invitation",
                old.organiser
            );
            return refused("roster/not-organiser", message, "do not use it; ask by telephone");
        }
        if old.experiment != new.experiment {
            let message = "the roster is for another experiment than the invitation".to_string();
            return refused(
                "roster/other-experiment",
                message,
                "join again with an invitation to that experiment",
            );
        }
        if new.version < old.version || new.version == old.version && self != newer {
            let message =
                format!("it is version {}, and version {} is here", new.version, old.version);
            return refused("roster/outdated", message, "ask the organiser for the newest roster");
        }
        Ok(())
    }
}

/// The error for an operation on a roster that nobody signed.
pub fn unsigned() -> Error {
    Error::config("roster/unsigned", "nobody has signed this roster")
        .hint("`lopa invite` makes a signed one")
}
