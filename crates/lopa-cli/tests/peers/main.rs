//! Nodes as processes of their own that talk to each other: the same results as one process gives.

mod data;
mod digests;
mod ends;
mod hosts;
mod kills;
#[path = "../cli/namespaces.rs"]
mod namespaces;
#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;
mod trio;
