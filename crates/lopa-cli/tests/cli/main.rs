//! The command line, by starting it.

mod bad_input;
mod commands;
mod compare;
mod diverged;
mod documentation;
mod exports;
mod features;
mod hints;
mod init;
mod interrupt;
mod list;
mod models;
mod networks;
mod newcomer;
#[cfg(unix)]
mod outputs;
mod outside;
#[cfg(unix)]
mod page_commands;
#[path = "../../../lopa/tests/suite/pages.rs"]
mod pages;
mod privacy;
mod program;
mod regression;
mod resume;
mod reweighting;
mod runs;
mod share;
mod site;
mod stats;
mod survival;
#[cfg(feature = "paper")]
mod theory;
mod walk;
