//! The handshake: the first message of each neighbour, and the terms on which both must agree.

use lopa_base::store::bytes::{Hash, Reader, Writer};

/// The version of this message and of the frames after it.
const PROTOCOL: u64 = 3;
const MAGIC: &[u8; 10] = b"lopa peer\n";

/// The terms on which all nodes of a run must agree before the first round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Digest of the experiment, with all defaults filled in.
    pub experiment: Hash,
    /// Digest of all seeds' graphs.
    pub graph: Hash,
    /// Digest of the names and keys of all nodes, in order.
    pub roster: Hash,
    /// Version of the roster; 0 if nobody has signed it.
    pub version: u64,
    /// Entries of the shared x.
    pub entries: u64,
}

/// The first message of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Its protocol version.
    pub protocol: u64,
    /// Its version of lopa, padded with zeros.
    pub lopa: [u8; 16],
    /// Its terms of the run.
    pub terms: Terms,
    /// Drawn at random when its process started: a restarted node has a new one.
    pub session: u64,
}

impl Hello {
    /// The message of this process.
    pub fn new(terms: Terms, session: u64) -> Hello {
        let mut lopa = [0; 16];
        let version = env!("CARGO_PKG_VERSION").bytes();
        lopa.iter_mut().zip(version).for_each(|(to, byte)| *to = byte);
        Hello { protocol: PROTOCOL, lopa, terms, session }
    }

    /// Its length in bytes.
    pub const LENGTH: usize = MAGIC.len() + 8 + 16 + 3 * 32 + 3 * 8;

    /// Encodes it; the layout is fixed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.raw(MAGIC);
        out.u64(self.protocol);
        out.raw(&self.lopa);
        let Terms { experiment, graph, roster, version, entries } = &self.terms;
        [experiment, graph, roster].into_iter().for_each(|hash| out.raw(hash));
        out.u64(*version);
        out.u64(*entries);
        out.u64(self.session);
        out.done()
    }

    /// Decodes it; `None` if it is malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<Hello> {
        let mut bytes = Reader::new(bytes);
        if bytes.raw(MAGIC.len())? != MAGIC {
            return None;
        }
        let (protocol, lopa) = (bytes.u64()?, bytes.raw(16)?.try_into().ok()?);
        let (experiment, graph, roster) = (bytes.hash()?, bytes.hash()?, bytes.hash()?);
        let (version, entries) = (bytes.u64()?, bytes.u64()?);
        let terms = Terms { experiment, graph, roster, version, entries };
        let hello = Hello { protocol, lopa, terms, session: bytes.u64()? };
        bytes.end()?;
        Some(hello)
    }

    /// Its version of lopa, as text.
    pub fn version(&self) -> String {
        let text = self.lopa.iter().take_while(|&&byte| byte != 0);
        text.map(|&byte| char::from(byte)).filter(char::is_ascii_graphic).collect()
    }

    /// Describes how their message differs from ours, if it does; such nodes cannot run together.
    pub fn differs(&self, theirs: &Hello) -> Option<String> {
        let mut found = Vec::new();
        if self.protocol != theirs.protocol || self.lopa != theirs.lopa {
            let (they, we) = (theirs.version(), self.version());
            let (p, q) = (theirs.protocol, self.protocol);
            found.push(format!("lopa {they} (protocol {p}), ours {we} (protocol {q})"));
        }
        let (they, we) = (&theirs.terms, &self.terms);
        for (what, theirs, ours) in [
            ("experiment", they.experiment, we.experiment),
            ("graph", they.graph, we.graph),
            ("roster", they.roster, we.roster),
        ] {
            if theirs != ours {
                found.push(format!("{what} {}, ours {}", short(&theirs), short(&ours)));
            }
        }
        if they.version != we.version {
            let (theirs, ours) = (they.version, we.version);
            found.push(format!("version {theirs} of the roster, ours {ours}"));
        }
        if they.entries != we.entries {
            found.push(format!("{} entries of x, ours {}", they.entries, we.entries));
        }
        (!found.is_empty()).then(|| found.join("; "))
    }

    /// Whether the same version of lopa sent it and only settings differ: then both ends name them.
    pub fn can_say_which(&self, theirs: &Hello) -> bool {
        let same = self.protocol == theirs.protocol && self.lopa == theirs.lopa;
        let (they, we) = (&theirs.terms, &self.terms);
        same && (they.experiment != we.experiment || they.graph != we.graph)
    }
}

fn short(hash: &Hash) -> String {
    hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
