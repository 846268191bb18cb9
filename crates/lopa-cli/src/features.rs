//! The optional parts of a build. Every build knows their commands; a command whose part is missing
//! fails and says how to get it.

#[cfg(not(all(feature = "fetch", feature = "peers", feature = "mpi")))]
use lopa::error::Error;

/// How to get everything but MPI.
const FULL: &[&str] = &["cargo install --path crates/lopa-cli --features full"];

/// An optional part of a build.
pub struct Feature {
    /// What it is for.
    pub commands: &'static str,
    /// Whether this build has it.
    pub built_in: bool,
    /// The commands that install it, in order.
    install: &'static [&'static str],
}

pub const FETCH: Feature =
    Feature { commands: "lopa data fetch", built_in: cfg!(feature = "fetch"), install: FULL };

pub const PEERS: Feature = Feature {
    commands: "lopa key, roster, node",
    built_in: cfg!(feature = "peers"),
    install: FULL,
};

pub const PNG: Feature = Feature {
    commands: "lopa report --figure-format png",
    built_in: cfg!(feature = "png"),
    install: FULL,
};

pub const MPI: Feature = Feature {
    commands: "lopa run --engine mpi",
    built_in: cfg!(feature = "mpi"),
    install: &[
        "apt-get install libopenmpi-dev libclang-dev",
        "cargo install --path crates/lopa-cli --features mpi",
    ],
};

impl Feature {
    /// How to get it.
    pub fn remedy(&self) -> String {
        let commands: Vec<String> = self.install.iter().map(|one| format!("`{one}`")).collect();
        commands.join(", then ")
    }

    /// The error of a command that needs it, in a build without it.
    #[cfg(not(all(feature = "fetch", feature = "peers", feature = "mpi")))]
    pub fn missing(&self, command: &str) -> Error {
        Error::config("config/not-built-in", format!("this build has no `{command}`"))
            .hint(format!("install it with {}", self.remedy()))
    }
}
