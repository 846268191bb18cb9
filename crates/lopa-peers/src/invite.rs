//! Invitations and replies: the two files by which a node joins a roster.
//!
//! Neither holds a secret. An invitation has the experiment and the organiser's roster so far; a reply
//! has the new member's name, key, addresses and signature, and nothing about its data.

use std::path::Path;

use iroh::PublicKey;
use lopa::config::Source;
use lopa::error::{Error, Kind, Result};
use lopa_base::store::bytes::{Hash, hex};
use lopa_base::store::limits::read_text;
use lopa_base::store::{limits, output};
use serde::Serialize;

use crate::key::{Key, parse_hex};
use crate::roster::{Member, Roster, check_name, malformed, missing_key, signature_of};
use crate::seal::{consent, fingerprint, unsigned, verifies};

/// An invitation of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Invite {
    /// The name of the invited node.
    pub name: String,
    /// The experiment, as text.
    pub experiment: String,
    /// The roster so far.
    pub roster: Roster,
    /// The number of features at the organiser, if nodes have files of their own.
    pub features: Option<usize>,
    /// The names of the features at the organiser, if it has any.
    pub columns: Vec<String>,
}

const INVITE_KEYS: [&str; 5] = ["invited", "features", "columns", "experiment", "roster"];

impl Invite {
    /// Reads an invitation, and checks the signatures of its roster.
    pub fn read(path: &Path) -> Result<Invite> {
        Invite::parse(&file(path, "the invitation", "name the file that `lopa invite` wrote")?)
    }

    /// Reads an invitation from text.
    pub fn parse(source: &Source) -> Result<Invite> {
        let mut root = source.root()?;
        let place = source.name.clone();
        let mut text = |key: &str| -> Result<String> {
            root.value(key)?.ok_or_else(|| missing_key("an invitation", key, &place))
        };
        let (name, experiment, roster) = (text("invited")?, text("experiment")?, text("roster")?);
        let features = root.value("features")?;
        let columns = root.value("columns")?.unwrap_or_default();
        root.finish(&INVITE_KEYS)?;
        check_name(&name).map_err(|error| error.at(&place))?;
        let roster = Roster::parse(&Source::new(format!("{place}, `roster`"), roster))?;
        if roster.seal.is_none() {
            return Err(unsigned().at(place));
        }
        Ok(Invite { name, experiment, roster, features, columns })
    }

    /// Writes the file that a user named.
    pub fn write(&self, path: &Path) -> Result<()> {
        output::write(path, self.to_text().as_bytes(), "the invitation", "name another file")
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        #[derive(Serialize)]
        struct File<'a> {
            invited: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            features: Option<usize>,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            columns: &'a [String],
            roster: String,
            experiment: &'a str,
        }
        let Invite { name, experiment, roster, features, columns } = self;
        let roster = roster.to_text();
        let file = File { invited: name, features: *features, columns, roster, experiment };
        toml::to_string_pretty(&file).expect("texts and lists are TOML")
    }

    /// The number of the invited node in the experiment.
    pub fn node(&self) -> Result<usize> {
        let Invite { name, roster, .. } = self;
        let seal = roster.seal.as_ref().ok_or_else(unsigned)?;
        seal.names.iter().position(|known| known == name).ok_or_else(|| {
            let message = format!("`{name}` is not among the nodes of the roster");
            Error::new(Kind::Refused, "roster/unknown-node", message)
                .hint("the invitation was changed on its way: ask for it again")
        })
    }

    /// The reply of the invited node.
    pub fn accept(&self, key: &Key, addresses: Vec<String>) -> Result<Reply> {
        let (seal, organiser) =
            self.roster.seal.as_ref().zip(self.roster.organiser()).ok_or_else(unsigned)?;
        let mut member = Member::new(&self.name, &key.public().to_string(), addresses, Vec::new())?;
        let bytes = consent(&seal.experiment, &organiser.key, &member);
        member.signature = Some(key.sign(&bytes));
        Ok(Reply { experiment: seal.experiment, organiser: organiser.key, member })
    }
}

/// A node's reply to an invitation.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Digest of the experiment.
    pub experiment: Hash,
    /// The organiser's key, as the node received it.
    pub organiser: PublicKey,
    /// The new member, with its signature.
    pub member: Member,
}

const REPLY_KEYS: [&str; 6] = ["experiment", "organiser", "name", "key", "addresses", "signature"];

impl Reply {
    /// Whether a file may be a reply: rosters have no key `name`.
    pub fn is_one(path: &Path) -> Result<bool> {
        let source = file(path, "the reply", "name a reply of `lopa join`, or a roster")?;
        Ok(source.text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("name")))
    }

    /// Reads a reply, and checks its signature.
    pub fn read(path: &Path) -> Result<Reply> {
        Reply::parse(&file(path, "the reply", "name the file that `lopa join` wrote")?)
    }

    /// Reads a reply from text.
    pub fn parse(source: &Source) -> Result<Reply> {
        let mut root = source.root()?;
        let place = source.name.clone();
        let mut text = |key: &str| -> Result<String> {
            root.value(key)?.ok_or_else(|| missing_key("a reply", key, &place))
        };
        let (name, key, signature) = (text("name")?, text("key")?, text("signature")?);
        let (experiment, organiser) = (text("experiment")?, text("organiser")?);
        let addresses = root.value("addresses")?.unwrap_or_default();
        root.finish(&REPLY_KEYS)?;
        let bad = |what: &str| malformed(what).at(&place);
        let experiment = parse_hex(&experiment).ok_or_else(|| bad("`experiment`"))?;
        let organiser = parse_hex(&organiser).and_then(|key| PublicKey::from_bytes(&key).ok());
        let organiser = organiser.ok_or_else(|| bad("`organiser`"))?;
        let member = Member::new(&name, &key, addresses, Vec::new());
        let mut member = member.map_err(|error| error.at(&place))?;
        let signature = signature_of(&signature).map_err(|error| error.at(&place))?;
        if !verifies(&member.key, &consent(&experiment, &organiser, &member), &signature) {
            let message = format!("the reply is not as `{name}` signed it");
            return Err(Error::new(Kind::Refused, "roster/bad-signature", message)
                .at(place)
                .hint("ask for the reply again"));
        }
        member.signature = Some(signature);
        Ok(Reply { experiment, organiser, member })
    }

    /// Writes the file that a user named.
    pub fn write(&self, path: &Path) -> Result<()> {
        output::write(path, self.to_text().as_bytes(), "the reply", "name another file")
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        #[derive(Serialize)]
        struct File<'a> {
            name: &'a str,
            key: String,
            addresses: &'a [String],
            experiment: String,
            organiser: String,
            signature: String,
        }
        let Member { name, key, addresses, signature, .. } = &self.member;
        let file = File {
            name,
            key: key.to_string(),
            addresses,
            experiment: hex(&self.experiment),
            organiser: self.organiser.to_string(),
            signature: hex(&signature.unwrap_or([0; 64])),
        };
        toml::to_string(&file).expect("texts and lists are TOML")
    }

    /// A short fingerprint: if both ends read the same one, the reply is the node's own, and the node
    /// has the organiser's own invitation.
    pub fn fingerprint(&self) -> String {
        fingerprint(&consent(&self.experiment, &self.organiser, &self.member))
    }

    /// The member, if the reply is to an invitation to this roster.
    pub fn to(self, roster: &Roster) -> Result<Member> {
        let (seal, organiser) =
            roster.seal.as_ref().zip(roster.organiser()).ok_or_else(unsigned)?;
        let name = &self.member.name;
        let message = if self.organiser != organiser.key {
            format!("`{name}` replies to another organiser than `{}`", seal.organiser)
        } else if self.experiment != seal.experiment {
            format!("`{name}` replies to an invitation to another experiment")
        } else {
            return Ok(self.member);
        };
        Err(Error::new(Kind::Refused, "roster/other-invitation", message)
            .hint("send it a new invitation, and call it: someone may have changed the first"))
    }
}

/// The text of a file, with its place.
fn file(path: &Path, what: &str, hint: &str) -> Result<Source> {
    let place = path.display().to_string();
    let text = read_text(path, limits::ROSTER).map_err(|error| {
        Error::config("roster/unreadable", format!("cannot read {what}: {error}"))
            .at(&place)
            .hint(hint)
    })?;
    Ok(Source::new(place, text))
}
