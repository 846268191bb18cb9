//! The command line of lopa, as a library: [`main_with`] makes a program that also knows the problems,
//! algorithms, graphs and data sources of another crate.
//!
//! ```no_run
//! use lopa::prelude::*;
//!
//! fn main() -> std::process::ExitCode {
//!     let mut registries = Registries::default();
//!     // registries.problems.add(problem_entry::<Ridge>("ridge", "ridge regression"));
//!     lopa_cli::main_with(registries)
//! }
//! ```

mod args;
#[cfg(doctest)]
mod book;
mod commands;
mod output;

use std::process::ExitCode;

use clap::Parser;
use lopa::error::{Error, Result};
use lopa::experiment::Registries;

use args::{Cli, Command, GraphCommand};
use output::{Output, described, print};

/// What commands work with: what files can choose from, and where results go.
struct Program {
    registries: Registries,
    output: Output,
}

/// Runs the command line with what these registries offer.
pub fn main_with(registries: Registries) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let program = Program { registries, output: Output::new(&cli.global) };
    run(&cli.command, &program).unwrap_or_else(|error| program.output.fail(&error))
}

fn run(command: &Command, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    match command {
        Command::Run(args) => commands::run::run(args, program),
        Command::Compare(args) => commands::compare::compare(args, program),
        Command::Tune(args) => commands::tune::tune(args, program),
        Command::Reproduce(args) => commands::reproduce::reproduce(args, program),
        Command::Check(args) => commands::check::check(args, program),
        Command::List(args) => commands::list::list(args, program),
        Command::Graph { command: GraphCommand::Make(args) } => {
            commands::graph::make(args, program)
        }
        Command::Graph { command: GraphCommand::Show(args) } => {
            commands::graph::show(args, program)
        }
        Command::Graph { command: GraphCommand::Check(args) } => {
            commands::graph::check(args, program)
        }
        Command::Graph { command: GraphCommand::Audit(args) } => {
            commands::audit::audit(args, program)
        }
        #[cfg(feature = "peers")]
        Command::Key { command } => commands::key::key(command, output),
        #[cfg(feature = "peers")]
        Command::Roster { command } => commands::roster::roster(command, program),
        #[cfg(feature = "peers")]
        Command::Node(args) => commands::node::node(args, program),
        Command::Predict(args) => commands::predict::predict(args, program),
        Command::Evaluate(args) => commands::evaluate::evaluate(args, program),
        Command::Data { command } => commands::data::data(command, program),
        Command::Doctor => commands::doctor::doctor(output),
        Command::Ls(args) => commands::ls::ls(args, output),
        Command::Report(args) => commands::report::report(args, output),
        Command::Theory { command } => commands::theory::theory(command, program),
        Command::Schema => commands::texts::schema(program),
        Command::Completions(args) => commands::texts::completions(args, output),
        Command::Man(args) => commands::texts::man(args, output),
    }
}

/// What is no command: a wish for help, or a mistake.
fn refuse(error: &clap::Error) -> ExitCode {
    // Nobody need read it.
    let _ = error.print();
    let typed: Vec<String> = std::env::args().collect();
    let json = typed.iter().any(|arg| arg == "--format=json")
        || typed.windows(2).any(|pair| pair == ["--format", "json"]);
    if error.use_stderr() && json {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let message = first.strip_prefix("error: ").unwrap_or(&first);
        let error = Error::config("config/usage", message).at("the command line");
        print(&format!("{:#}\n", described(&error.hint("try `lopa --help`"))));
    }
    ExitCode::from(error.exit_code() as u8)
}
