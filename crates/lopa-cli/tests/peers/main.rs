//! Nodes as separate processes that communicate: the same results as in a single process.

mod consortium;
mod data;
mod digests;
mod ends;
mod hosts;
mod kills;
mod leave;
#[path = "../cli/namespaces.rs"]
mod namespaces;
#[path = "../../../lopa/tests/suite/pages.rs"]
#[allow(dead_code)]
mod pages;
#[path = "../../../lopa-peers/tests/ports/mod.rs"]
mod ports;
#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;
mod relay;
mod soak;
mod status;
mod trio;
mod weather;
