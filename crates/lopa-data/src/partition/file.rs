//! Partition files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Partition, Rows};
use crate::error::{Error, Result};
use crate::params;
use crate::store::files::{cannot_write, replace};
use crate::store::limits::{self, read_text};

params! {
    /// Parameters of `file`.
    pub struct File {
        /// The partition file.
        path: String = String::new(), required;
    }
}

pub fn file(params: &File, rows: &Rows) -> Result<Partition> {
    let File { path } = params.clone();
    let partition = Partition::read(Path::new(&path), rows.len())?;
    match partition.nodes.len() == rows.nodes {
        true => Ok(partition),
        false => {
            let (here, nodes) = (partition.nodes.len(), rows.nodes);
            let message = format!("the partition is for {here} nodes, not {nodes}");
            Err(Error::data("partition/wrong-nodes", message).at(path))
        }
    }
}

/// The contents of a partition file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    /// Number of training samples.
    samples: usize,
    /// The digest of the partition, if it is to be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The rows of each node.
    nodes: Vec<Vec<u32>>,
}

impl Partition {
    /// The partition of `samples` samples as JSON.
    pub fn to_json(&self, samples: usize) -> String {
        let contents = Contents { samples, digest: Some(self.digest()), nodes: self.nodes.clone() };
        serde_json::to_string(&contents).expect("numbers and strings are representable in JSON")
    }

    /// Writes a partition file.
    pub fn write(&self, path: &Path, samples: usize) -> Result<()> {
        let text = self.to_json(samples) + "\n";
        replace(path, text.as_bytes()).map_err(|error| cannot_write(path, &error))
    }

    /// Reads a partition file for `samples` samples, none of which may occur twice.
    pub fn read(path: &Path, samples: usize) -> Result<Partition> {
        let name = path.display().to_string();
        let text = read_text(path, limits::DATA).map_err(|error| {
            Error::data("data/unreadable", format!("the partition cannot be read: {error}"))
                .at(&name)
        })?;
        Partition::parse(&name, &text, samples)
    }

    fn parse(name: &str, text: &str, samples: usize) -> Result<Partition> {
        let wrong = |id, message: String| Err(Error::data(id, message).at(name));
        let contents: Contents = serde_json::from_str(text).map_err(|error| {
            Error::data("partition/bad-file", format!("this is not a partition file: {error}"))
                .at(format!("{name}:{}:{}", error.line(), error.column()))
        })?;
        if contents.samples != samples {
            let message = format!(
                "the partition is for {} samples, the data has {samples}",
                contents.samples
            );
            return wrong("partition/wrong-data", message);
        }
        let partition = Partition { nodes: contents.nodes };
        let mut seen = vec![false; samples];
        for (node, rows) in partition.nodes.iter().enumerate() {
            for &row in rows {
                match seen.get_mut(row as usize) {
                    Some(seen) if !*seen => *seen = true,
                    Some(_) => {
                        let message = format!("sample {row} of node {node} occurs twice");
                        return wrong("partition/twice", message);
                    }
                    None => {
                        let message =
                            format!("node {node} lists sample {row}, but there are {samples}");
                        return wrong("partition/no-sample", message);
                    }
                }
            }
        }
        match contents.digest.is_none_or(|digest| digest == partition.digest()) {
            true => Ok(partition),
            false => {
                wrong("partition/wrong-digest", "the digest does not match the partition".into())
            }
        }
    }
}
