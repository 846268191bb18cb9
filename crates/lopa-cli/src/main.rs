//! The command line of lopa.

mod args;
mod commands;
mod output;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, GraphCommand};
use output::{Output, report_error};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(&cli.global);
    let done = match &cli.command {
        Command::Run(args) => commands::run::run(args, &output),
        Command::Check(args) => commands::check::check(args, &output),
        Command::List(args) => commands::list::list(args, &output),
        Command::Graph { command: GraphCommand::Make(args) } => {
            commands::graph::make(args, &output)
        }
        Command::Graph { command: GraphCommand::Show(args) } => {
            commands::graph::show(args, &output)
        }
        Command::Graph { command: GraphCommand::Check(args) } => {
            commands::graph::check(args, &output)
        }
        Command::Ls(args) => commands::ls::ls(args, &output),
        Command::Report(args) => commands::report::report(args, &output),
        Command::Schema => commands::texts::schema(&output),
        Command::Completions(args) => commands::texts::completions(args, &output),
        Command::Man(args) => commands::texts::man(args, &output),
    };
    match done {
        Ok(code) => code,
        Err(error) => report_error(&error, &output),
    }
}
