//! The experiment that a command line means.

use lopa::config::Source;
use lopa::error::{Error, Result};

use crate::args::FileArgs;

/// What `lopa run` runs without a file.
const QUICKSTART: &str = include_str!("../../../../experiments/quickstart.toml");

/// The file, or the quickstart, with its overrides.
pub fn source(args: &FileArgs) -> Result<Source> {
    let mut source = match &args.file {
        None => Source::new("quickstart", QUICKSTART),
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| {
                Error::config("config/unreadable", format!("cannot read the experiment: {error}"))
                    .at(&name)
                    .hint("`lopa run` without a file runs the built-in quickstart")
            })?;
            Source::new(name, text)
        }
    };
    source.sets = args.sets.clone();
    Ok(source)
}
