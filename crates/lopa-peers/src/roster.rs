//! The roster: the nodes of a run, their keys, addresses and neighbours.
//!
//! ```toml
//! [[node]]
//! name = "alice"
//! key = "…"                           # 64 hexadecimal digits, from `lopa key show`
//! addresses = ["192.0.2.1:4800"]      # where others reach this node
//! neighbours = ["bob"]                # optional; by default those of the experiment's graph
//! ```
//!
//! Nodes are listed in the order of the experiment. The file holds no secrets. A roster that `lopa invite`
//! began also has signatures: see `seal.rs`.

use std::collections::BTreeSet;
use std::path::Path;

use iroh::PublicKey;
use lopa::config::{Section, Source};
use lopa::error::{Error, Result, nearest};
use lopa::network::Graph;
use lopa_base::store::bytes::{Hash, hex};
use lopa_base::store::limits::{self, read_text};
use lopa_base::store::output;
use serde::Serialize;

use crate::key::parse_hex;

/// The nodes of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Roster {
    /// The nodes, in the experiment's order.
    pub members: Vec<Member>,
    /// URLs of relays for nodes that cannot reach each other directly; empty by default.
    pub relays: Vec<String>,
    /// Who vouches for it; rosters that were written by hand have none.
    pub seal: Option<Seal>,
}

/// A node of the roster.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its public key.
    pub key: PublicKey,
    /// Its addresses, as `host:port`; empty if it can only call others.
    pub addresses: Vec<String>,
    /// Its neighbours by name; empty if the experiment's graph decides.
    pub neighbours: Vec<String>,
    /// Its signature that it takes part, in a signed roster.
    pub signature: Option<Signature>,
}

const KEYS: [&str; 7] =
    ["version", "experiment", "organiser", "names", "relays", "signature", "node"];
const MEMBER_KEYS: [&str; 5] = ["name", "key", "addresses", "neighbours", "signature"];

/// The organiser's statement about a roster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// Increases with every change.
    pub version: u64,
    /// Digest of the experiment that the members run.
    pub experiment: Hash,
    /// The name of the member that signs.
    pub organiser: String,
    /// All nodes of the experiment, in its order: members, and those that have not joined yet.
    pub names: Vec<String>,
    /// The organiser's signature.
    pub signature: Signature,
}

/// An ed25519 signature.
pub type Signature = [u8; 64];

impl Roster {
    /// Reads a roster and checks each entry and all signatures; [`Roster::check`] checks the whole.
    pub fn read(path: &Path) -> Result<Roster> {
        let place = path.display().to_string();
        let text = read_text(path, limits::ROSTER).map_err(|error| {
            Error::config("roster/unreadable", format!("cannot read the roster: {error}"))
                .at(&place)
                .hint("start one with `lopa roster add`")
        })?;
        Roster::parse(&Source::new(place, text))
    }

    /// Reads a roster from text.
    pub fn parse(source: &Source) -> Result<Roster> {
        let mut root = source.root()?;
        let place = root.place();
        let seal = Seal::read(&mut root).map_err(|error| error.at(&place))?;
        let relays = root.value("relays")?.unwrap_or_default();
        let mut roster = Roster { members: Vec::new(), relays, seal };
        for section in root.list("node")? {
            let place = section.place();
            let member = Member::read(section)?;
            roster.join(member).map_err(|error| error.at(place))?;
        }
        root.finish(&KEYS)?;
        roster.verify().map_err(|error| error.at(place))?;
        Ok(roster)
    }

    /// Adds a member; fails if another has the same name, key or address.
    pub fn join(&mut self, member: Member) -> Result<()> {
        for other in &self.members {
            let address = member.addresses.iter().find(|a| other.addresses.contains(a));
            let (what, value) = match address {
                _ if other.name == member.name => ("name", member.name.clone()),
                _ if other.key == member.key => ("key", member.key.to_string()),
                Some(address) => ("address", address.clone()),
                None => continue,
            };
            let message =
                format!("`{}` and `{}` have the same {what}: {value}", other.name, member.name);
            let hint = "every node needs its own name, key and addresses";
            return Err(Error::config("roster/duplicate", message).hint(hint));
        }
        self.members.push(member);
        Ok(())
    }

    /// Removes a member: nodes with the new roster refuse it. The organiser of a signed roster stays.
    pub fn leave(&mut self, name: &str) -> Result<()> {
        let at = self.position(name)?;
        if self.seal.as_ref().is_some_and(|seal| seal.organiser == name) {
            let message = format!("`{name}` signs the roster, and cannot be removed from it");
            return Err(Error::config("roster/organiser", message)
                .hint("another member can invite to a new roster"));
        }
        self.members.remove(at);
        self.members.iter_mut().for_each(|other| other.neighbours.retain(|n| n != name));
        Ok(())
    }

    /// The index of a member.
    pub fn position(&self, name: &str) -> Result<usize> {
        let names = || self.members.iter().map(|member| member.name.as_str());
        names().position(|known| known == name).ok_or_else(|| {
            let message = format!("the roster has no node `{name}`");
            let known: Vec<&str> = names().collect();
            Error::config("roster/unknown-node", message).hint(match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "it is empty: add nodes with `lopa roster add`".into(),
                None => format!("it has {}", known.join(", ")),
            })
        })
    }

    /// The graph of the links it names, if any: one end naming the other is enough.
    pub fn graph(&self) -> Result<Option<Graph>> {
        let mut edges = BTreeSet::new();
        for (i, member) in self.members.iter().enumerate() {
            for name in &member.neighbours {
                let j = self.position(name).map_err(|error| {
                    let message = format!("{}, a neighbour of `{}`", error.message, member.name);
                    Error { message, ..error }
                })?;
                edges.insert((i.min(j), i.max(j)));
            }
        }
        match edges.is_empty() {
            true => Ok(None),
            false => Graph::from_edges(self.members.len(), edges).map(Some),
        }
    }

    /// Checks that a run could use it: at least two nodes, all connected, and at least one address
    /// per link.
    pub fn check(&self) -> Result<()> {
        let absent = self.absent();
        if !absent.is_empty() {
            let message = format!("not all nodes have joined: {}", absent.join(", "));
            return Err(Error::config("roster/not-joined", message)
                .hint("the organiser accepts their replies with `lopa roster accept`"));
        }
        if self.members.len() < 2 {
            return Err(Error::config("roster/alone", "a roster needs at least two nodes")
                .hint("add them with `lopa roster add`"));
        }
        let Some(graph) = self.graph()? else { return Ok(()) };
        let parts = graph.components();
        if parts.len() > 1 {
            let names = |part: &Vec<usize>| {
                let names: Vec<_> = part.iter().map(|&i| self.members[i].name.as_str()).collect();
                names.join(", ")
            };
            let parts: Vec<String> = parts.iter().map(names).collect();
            let message = format!("the network is disconnected: {}", parts.join(" | "));
            return Err(Error::network("network/disconnected", message)
                .hint("add `neighbours` that connect the parts"));
        }
        self.reachable(&graph)
    }

    /// Checks that a graph has only links that the roster names, each with at least one address.
    pub fn allows(&self, graph: &Graph) -> Result<()> {
        if graph.nodes() != self.members.len() {
            let (nodes, members) = (graph.nodes(), self.members.len());
            let message = format!("the experiment has {nodes} nodes, the roster {members}");
            return Err(Error::config("roster/other-nodes", message)
                .hint("list every node of the experiment, in the same order"));
        }
        if let Some(named) = self.graph()?
            && let Some((i, j)) = graph.edges().find(|&(i, j)| !named.joins(i, j))
        {
            let message =
                format!("the experiment's graph links {}, the roster does not", self.pair(i, j));
            return Err(Error::network("roster/other-graph", message)
                .hint("add them to each other's `neighbours`, or change the experiment's graph"));
        }
        self.reachable(graph)
    }

    fn reachable(&self, graph: &Graph) -> Result<()> {
        let unreachable = |i: usize| self.members[i].addresses.is_empty();
        match graph
            .edges()
            .find(|&(i, j)| unreachable(i) && unreachable(j) && self.relays.is_empty())
        {
            None => Ok(()),
            Some((i, j)) => {
                let [a, b] = [i, j].map(|i| &self.members[i].name);
                let message = format!("neither `{a}` nor `{b}` has an address");
                Err(Error::config("roster/no-address", message).hint(
                    "at least one of two neighbours needs an address that the other can reach",
                ))
            }
        }
    }

    fn pair(&self, i: usize, j: usize) -> String {
        format!("`{}` and `{}`", self.members[i].name, self.members[j].name)
    }

    /// Writes the file that a user named.
    pub fn write(&self, path: &Path) -> Result<()> {
        output::write(path, self.to_text().as_bytes(), "the roster", "name another file")
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        #[derive(Serialize)]
        struct File<'a> {
            #[serde(flatten)]
            seal: Option<Sealed<'a>>,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            relays: &'a [String],
            node: Vec<Entry<'a>>,
        }
        #[derive(Serialize)]
        struct Entry<'a> {
            name: &'a str,
            key: String,
            addresses: &'a [String],
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            neighbours: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            signature: Option<String>,
        }
        #[derive(Serialize)]
        struct Sealed<'a> {
            version: u64,
            experiment: String,
            organiser: &'a str,
            names: &'a [String],
            signature: String,
        }
        let members = self.members.iter();
        let node = members.map(|Member { name, key, addresses, neighbours, signature }| Entry {
            name,
            key: key.to_string(),
            addresses,
            neighbours,
            signature: signature.as_ref().map(|signature| hex(signature)),
        });
        let node = node.collect();
        let seal = self.seal.as_ref().map(|seal| Sealed {
            version: seal.version,
            experiment: hex(&seal.experiment),
            organiser: &seal.organiser,
            names: &seal.names,
            signature: hex(&seal.signature),
        });
        toml::to_string(&File { seal, relays: &self.relays, node })
            .expect("names and lists are TOML")
    }
}

impl Member {
    /// A member; fails if its name, key or an address is malformed.
    pub fn new(
        name: &str,
        key: &str,
        addresses: Vec<String>,
        neighbours: Vec<String>,
    ) -> Result<Member> {
        check_name(name)?;
        let public = parse_hex(key).and_then(|bytes| PublicKey::from_bytes(&bytes).ok());
        let key = public.ok_or_else(|| {
            let message = format!("the key of `{name}` is not a public key: `{}`", short(key));
            let hint = "it has 64 hexadecimal digits; `lopa key show` prints it";
            Error::config("roster/bad-key", message).hint(hint)
        })?;
        if let Some(address) = addresses.iter().find(|address| !is_address(address)) {
            let message = format!("the address of `{name}` is malformed: `{address}`");
            return Err(Error::config("roster/bad-address", message)
                .hint("write host and port, such as `192.0.2.1:4800` or `node.example.org:4800`"));
        }
        if neighbours.iter().any(|other| other == name) {
            let message = format!("`{name}` cannot be its own neighbour");
            return Err(Error::config("roster/bad-neighbour", message));
        }
        Ok(Member { name: name.into(), key, addresses, neighbours, signature: None })
    }

    fn read(mut section: Section) -> Result<Member> {
        let place = section.place();
        let mut text = |key: &str| -> Result<String> {
            section.value(key)?.ok_or_else(|| missing_key("a `[[node]]`", key, &place))
        };
        let (name, key) = (text("name")?, text("key")?);
        let addresses = section.value("addresses")?.unwrap_or_default();
        let neighbours = section.value("neighbours")?.unwrap_or_default();
        let signature: Option<String> = section.value("signature")?;
        section.finish(&MEMBER_KEYS)?;
        let member = Member::new(&name, &key, addresses, neighbours);
        let mut member = member.map_err(|error| error.at(&place))?;
        member.signature = signature
            .map(|text| signature_of(&text))
            .transpose()
            .map_err(|error| error.at(place))?;
        Ok(member)
    }
}

impl Seal {
    /// Takes the organiser's statement out of a file; `None` if it has no part of one.
    fn read(root: &mut Section) -> Result<Option<Seal>> {
        let version: Option<u64> = root.value("version")?;
        let experiment: Option<String> = root.value("experiment")?;
        let organiser: Option<String> = root.value("organiser")?;
        let names: Option<Vec<String>> = root.value("names")?;
        let signature: Option<String> = root.value("signature")?;
        let lacks = |key: &str| missing_key("a signed roster", key, "");
        if let (None, None, None, None, None) =
            (&version, &experiment, &organiser, &names, &signature)
        {
            return Ok(None);
        }
        let experiment = experiment.ok_or_else(|| lacks("experiment"))?;
        let experiment = parse_hex(&experiment).ok_or_else(|| malformed("`experiment`"))?;
        Ok(Some(Seal {
            version: version.ok_or_else(|| lacks("version"))?,
            experiment,
            organiser: organiser.ok_or_else(|| lacks("organiser"))?,
            names: names.ok_or_else(|| lacks("names"))?,
            signature: signature_of(&signature.ok_or_else(|| lacks("signature"))?)?,
        }))
    }
}

/// Fails unless a name can be that of a node: it also becomes part of the names of files.
pub fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let message = format!("`{}` is not a valid name of a node", name.escape_debug());
        return Err(Error::config("roster/bad-name", message)
            .hint("use 1 to 64 letters, digits, `-` or `_`"));
    }
    Ok(())
}

/// Fails unless all names can be those of nodes, each once.
pub fn check_names(names: &[String]) -> Result<()> {
    let mut known = BTreeSet::new();
    for name in names {
        check_name(name)?;
        if !known.insert(name) {
            let message = format!("`{name}` is named twice");
            return Err(
                Error::config("roster/duplicate", message).hint("every node needs its own name")
            );
        }
    }
    Ok(())
}

/// The error for a key that a file needs.
pub(crate) fn missing_key(what: &str, key: &str, place: &str) -> Error {
    let error = Error::config("config/missing-key", format!("{what} has no `{key}`"));
    if place.is_empty() { error } else { error.at(place) }
}

/// The error for digits that are none.
pub(crate) fn malformed(what: &str) -> Error {
    Error::config("roster/malformed", format!("{what} is malformed"))
        .hint("the file was changed on its way: ask for it again")
}

/// A signature from 128 hexadecimal digits.
pub(crate) fn signature_of(text: &str) -> Result<Signature> {
    let halves = text.split_at_checked(64).map(|(a, b)| (parse_hex(a), parse_hex(b)));
    let Some((Some(first), Some(second))) = halves else { return Err(malformed("`signature`")) };
    Ok(std::array::from_fn(|at| if at < 32 { first[at] } else { second[at - 32] }))
}

fn is_address(text: &str) -> bool {
    match text.rsplit_once(':') {
        Some((host, port)) => {
            let plain = host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:[]".contains(c));
            !host.is_empty() && plain && port.parse::<u16>().is_ok_and(|port| port > 0)
        }
        None => false,
    }
}

fn short(text: &str) -> String {
    text.chars().take(20).collect()
}
