//! The roster: who takes part, the key each is known by, where each is found, who talks to whom.
//!
//! ```toml
//! [[node]]
//! name = "alice"
//! key = "…"                           # 64 hexadecimal digits, from `lopa key show`
//! addresses = ["192.0.2.1:4800"]      # where others reach her
//! neighbours = ["bob"]                # may be left out: then the experiment's graph says it
//! ```
//!
//! The order is that of the experiment's nodes. There is nothing secret in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use iroh::PublicKey;
use lopa::config::{Section, Source};
use lopa::error::{Error, Result, nearest};
use lopa::network::Graph;
use lopa::store::files::{cannot_write, replace};
use serde::Serialize;

use crate::key::bytes;

/// Who takes part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Roster {
    /// The nodes, in the order of the experiment.
    pub members: Vec<Member>,
    /// Relays that help where no address can be reached directly; none unless the file names some.
    pub relays: Vec<String>,
}

/// One of those who take part.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// What it is called.
    pub name: String,
    /// What it is known by.
    pub key: PublicKey,
    /// Where it is found, `host:port` each; none if it can only call others.
    pub addresses: Vec<String>,
    /// Who it talks to; none if the experiment's graph says it.
    pub neighbours: Vec<String>,
}

const KEYS: [&str; 2] = ["node", "relays"];
const MEMBER_KEYS: [&str; 4] = ["name", "key", "addresses", "neighbours"];

impl Roster {
    /// Reads a roster; each entry must make sense by itself.
    pub fn read(path: &Path) -> Result<Roster> {
        let place = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            Error::config("roster/unreadable", format!("the roster cannot be read: {error}"))
                .at(&place)
                .hint("begin one with `lopa roster add`")
        })?;
        Roster::parse(&Source::new(place, text))
    }

    /// Reads a roster from its text.
    pub fn parse(source: &Source) -> Result<Roster> {
        let mut root = source.root()?;
        let mut roster = Roster { members: Vec::new(), relays: Vec::new() };
        roster.relays = root.value("relays")?.unwrap_or_default();
        for section in root.list("node")? {
            let place = section.place();
            let member = Member::read(section)?;
            roster.join(member).map_err(|error| error.at(place))?;
        }
        root.finish(&KEYS)?;
        Ok(roster)
    }

    /// Adds a member, whose name, key and addresses nobody else may have.
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
            let hint = "each node has a name, a key and an address of its own";
            return Err(Error::config("roster/duplicate", message).hint(hint));
        }
        self.members.push(member);
        Ok(())
    }

    /// Removes a member: nobody who has the new roster talks to it again.
    pub fn leave(&mut self, name: &str) -> Result<()> {
        let at = self.position(name)?;
        self.members.remove(at);
        self.members.iter_mut().for_each(|other| other.neighbours.retain(|n| n != name));
        Ok(())
    }

    /// The number of a member.
    pub fn position(&self, name: &str) -> Result<usize> {
        let names = || self.members.iter().map(|member| member.name.as_str());
        names().position(|known| known == name).ok_or_else(|| {
            let message = format!("the roster knows no node `{name}`");
            let known: Vec<&str> = names().collect();
            Error::config("roster/unknown-node", message).hint(match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "it has none: add some with `lopa roster add`".into(),
                None => format!("it has {}", known.join(", ")),
            })
        })
    }

    /// The links it pins, if it pins any: a link is there if either end names the other.
    pub fn graph(&self) -> Result<Option<Graph>> {
        let mut edges = BTreeSet::new();
        for (i, member) in self.members.iter().enumerate() {
            for name in &member.neighbours {
                let j = self.position(name).map_err(|error| {
                    let message = format!("{}: named by `{}`", error.message, member.name);
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

    /// Whether a run could use it: two nodes or more, all connected, each link with an end that can
    /// be called.
    pub fn check(&self) -> Result<()> {
        if self.members.len() < 2 {
            return Err(Error::config("roster/alone", "a roster needs two nodes or more")
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
            let message = format!("the nodes fall into parts: {}", parts.join(" | "));
            return Err(Error::network("network/disconnected", message)
                .hint("name `neighbours` that join the parts"));
        }
        self.reachable(&graph)
    }

    /// Whether a graph has only links that the roster pins, and each has an end that can be called.
    pub fn allows(&self, graph: &Graph) -> Result<()> {
        if graph.nodes() != self.members.len() {
            let (nodes, members) = (graph.nodes(), self.members.len());
            let message = format!("the experiment has {nodes} nodes, and the roster {members}");
            return Err(Error::config("roster/other-nodes", message)
                .hint("list every node of the experiment, in its order"));
        }
        if let Some(pinned) = self.graph()?
            && let Some((i, j)) = graph.edges().find(|&(i, j)| !pinned.joins(i, j))
        {
            let message = format!("the experiment's graph joins {}", self.pair(i, j));
            return Err(Error::network("roster/other-graph", message)
                .hint("the roster names their neighbours, and not these: correct one of the two"));
        }
        self.reachable(graph)
    }

    fn reachable(&self, graph: &Graph) -> Result<()> {
        let mute = |i: usize| self.members[i].addresses.is_empty();
        match graph.edges().find(|&(i, j)| mute(i) && mute(j) && self.relays.is_empty()) {
            None => Ok(()),
            Some((i, j)) => {
                let message = format!("neither of {} has an address", self.pair(i, j));
                Err(Error::config("roster/no-address", message)
                    .hint("of two neighbours one at least must be found by the other"))
            }
        }
    }

    fn pair(&self, i: usize, j: usize) -> String {
        format!("`{}` and `{}`", self.members[i].name, self.members[j].name)
    }

    /// Writes it: the file is the old one or the new one, never half of it.
    pub fn write(&self, path: &Path) -> Result<()> {
        replace(path, self.to_text().as_bytes()).map_err(|error| cannot_write(path, &error))
    }

    fn to_text(&self) -> String {
        #[derive(Serialize)]
        struct File<'a> {
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
        }
        let node = self.members.iter().map(|Member { name, key, addresses, neighbours }| Entry {
            name,
            key: key.to_string(),
            addresses,
            neighbours,
        });
        let node = node.collect();
        toml::to_string(&File { relays: &self.relays, node }).expect("names and lists are TOML")
    }
}

impl Member {
    /// A member, if its name, key and addresses make sense.
    pub fn new(
        name: &str,
        key: &str,
        addresses: Vec<String>,
        neighbours: Vec<String>,
    ) -> Result<Member> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            let message = format!("`{name}` cannot be the name of a node");
            return Err(Error::config("roster/bad-name", message)
                .hint("use 1 to 64 letters, digits, `-` and `_`"));
        }
        let public = bytes(key).and_then(|bytes| PublicKey::from_bytes(&bytes).ok());
        let key = public.ok_or_else(|| {
            let message = format!("the key of `{name}` is not a public key: `{}`", short(key));
            let hint = "it has 64 hexadecimal digits, as `lopa key show` prints them";
            Error::config("roster/bad-key", message).hint(hint)
        })?;
        if let Some(address) = addresses.iter().find(|address| !is_address(address)) {
            let message = format!("`{address}` is not an address of `{name}`");
            return Err(Error::config("roster/bad-address", message)
                .hint("write host and port, such as `192.0.2.1:4800` or `node.example.org:4800`"));
        }
        if neighbours.iter().any(|other| other == name) {
            let message = format!("`{name}` cannot be its own neighbour");
            return Err(Error::config("roster/bad-neighbour", message));
        }
        Ok(Member { name: name.into(), key, addresses, neighbours })
    }

    fn read(mut section: Section) -> Result<Member> {
        let place = section.place();
        let mut text = |key: &str| -> Result<String> {
            section.value(key)?.ok_or_else(|| {
                let message = format!("a `[[node]]` has no `{key}`");
                Error::config("config/missing-key", message).at(&place)
            })
        };
        let (name, key) = (text("name")?, text("key")?);
        let addresses = section.value("addresses")?.unwrap_or_default();
        let neighbours = section.value("neighbours")?.unwrap_or_default();
        section.finish(&MEMBER_KEYS)?;
        Member::new(&name, &key, addresses, neighbours).map_err(|error| error.at(place))
    }
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
