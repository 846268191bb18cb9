//! `lopa graph`: make, show and check graphs and their weights.

mod audit;
mod make;
mod read;
mod show;

use std::process::ExitCode;

use clap::Subcommand;
use lopa::error::Result;

use crate::program::Program;

#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    /// Make a graph of a kind, or one with a given rho, and write it to a file
    Make(make::MakeArgs),
    /// Show a graph's weights and properties
    Show(read::GraphArgs),
    /// Check that a run can use a graph; exit code 4 if not
    Check(read::GraphArgs),
    /// Show which peers can rebuild which nodes' hypergradients from what they receive
    Audit(audit::AuditArgs),
}

pub fn graph(command: &GraphCommand, program: &Program) -> Result<ExitCode> {
    match command {
        GraphCommand::Make(args) => make::make(args, program),
        GraphCommand::Show(args) => show::show(args, program),
        GraphCommand::Check(args) => show::check(args, program),
        GraphCommand::Audit(args) => audit::audit(args, program),
    }
}
