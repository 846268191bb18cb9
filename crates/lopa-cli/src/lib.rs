//! The command line of lopa as a library: [`main_with`] builds a program that also offers the problems,
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
mod cli;
mod commands;
mod features;
mod output;
mod program;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use lopa::error::{Error, Result, nearest};
use lopa::experiment::Registries;

use cli::{Cli, Command};
use lopa_base::store::limits;
use output::{Output, described, document, print};
use program::Program;

pub use features::{of_python, probe};

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line with these registries.
pub fn main_with(registries: Registries) -> ExitCode {
    run_with(std::env::args_os(), registries)
}

/// Runs the command line of these arguments, the first of which is the program's name.
pub fn run_with(args: impl IntoIterator<Item = OsString>, mut registries: Registries) -> ExitCode {
    registries.devices.add(features::cuda());
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            let typed: Vec<_> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
            let error = with_key(with_suggestion(error, &typed), &typed);
            return refuse(with_entry(error, &registries), &typed);
        }
    };
    cli.max_bytes.into_iter().for_each(limits::raise);
    if !cli.command.runs_code() {
        registries.problems.run_no_code();
    }
    // A node runs for days, unattended.
    let output = Output::new(&cli.output, matches!(cli.command, Command::Node(_)));
    let program = Program { registries, output };
    run(&cli.command, &program).unwrap_or_else(|error| program.output.fail(&error))
}

fn run(command: &Command, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    match command {
        Command::Init(args) => commands::init::init(args, program),
        Command::Run(args) => commands::run::run(args, program),
        Command::Compare(args) => commands::compare::compare(args, program),
        Command::Tune(args) => commands::tune::tune(args, program),
        Command::Reproduce(args) => commands::paper::reproduce(args, program),
        Command::Check(args) => commands::check::check(args, program),
        Command::List(args) => commands::list::list(args, program),
        Command::Graph(command) => commands::graph::graph(command, program),
        Command::Privacy(command) => commands::privacy::privacy(command, program),
        Command::Invite(args) => commands::peers::invite(args, program),
        Command::Join(args) => commands::peers::join(args, program),
        Command::Key(command) => commands::peers::key(command, program),
        Command::Roster(command) => commands::peers::roster(command, program),
        Command::Node(args) => commands::peers::node(args, program),
        Command::Status(args) => commands::peers::status(args, program),
        Command::Predict(args) => commands::predict::predict(args, program),
        Command::Evaluate(args) => commands::evaluate::evaluate(args, program),
        Command::Adapt(args) => commands::adapt::adapt(args, program),
        Command::Export(args) => commands::export::export(args, program),
        Command::Data(command) => commands::data::data(command, program),
        Command::Ls(args) => commands::ls::ls(args, output),
        Command::Doctor => commands::doctor::doctor(output),
        Command::Report(args) => commands::report::report(args, program),
        Command::Theory(command) => commands::paper::theory(command, program),
        Command::Schema => commands::texts::schema(program),
        Command::Completions(args) => commands::texts::completions(args, Cli::command(), output),
        Command::Man(args) => commands::texts::man(args, Cli::command(), output),
    }
}

/// Answers a command line that is not a command: a request for help, or a mistake.
fn refuse(error: clap::Error, typed: &[String]) -> ExitCode {
    // A closed pipe is not an error.
    let _ = error.print();
    let json = typed.iter().any(|arg| arg == "--format=json")
        || typed.windows(2).any(|pair| pair == ["--format", "json"]);
    if error.use_stderr() && json {
        print(&document(&described(&usage(&error.to_string()))));
    }
    ExitCode::from(error.exit_code() as u8)
}

/// Adds the nearest command to an unknown one: clap finds none for short names.
fn with_suggestion(mut error: clap::Error, all: &[String]) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let mut command = Cli::command();
    for arg in all.iter().skip(1).take_while(|arg| *arg != typed) {
        command = command.find_subcommand(arg).cloned().unwrap_or(command);
    }
    let near = nearest(typed, command.get_subcommands().map(clap::Command::get_name));
    if let Some(near) = near.filter(|_| error.get(ContextKind::SuggestedSubcommand).is_none()) {
        let near = ContextValue::Strings(vec![near.to_string()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    }
    error
}

/// Adds how to set a key of the experiment to a flag that is none: `--iterations`.
fn with_key(mut error: clap::Error, all: &[String]) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let wanted =
        typed.trim_start_matches('-').split('=').next().unwrap_or_default().replace('-', "_");
    let command = all.get(1).and_then(|name| Cli::command().find_subcommand(name).cloned());
    let sets = command
        .is_some_and(|command| command.get_arguments().any(|arg| arg.get_long() == Some("set")));
    let keys = commands::list::run_keys();
    let near = nearest(&wanted, keys.iter().map(String::as_str));
    if let Some(key) =
        near.filter(|_| sets && error.kind() == clap::error::ErrorKind::UnknownArgument)
    {
        // The command that clap suggests may be a different one.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        let tip = format!("a key of the experiment is set so: --set run.{key}=VALUE");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Adds the kind of an entry to `lopa list ENTRY`.
fn with_entry(mut error: clap::Error, registries: &Registries) -> clap::Error {
    let (Some(ContextValue::String(argument)), Some(ContextValue::String(typed))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return error;
    };
    if let Some(tip) = commands::list::where_is(typed, registries).filter(|_| argument == "[WHAT]")
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The error behind clap's text: its first paragraph, with its tip as the hint.
fn usage(text: &str) -> Error {
    let first = text.split("\n\n").next().unwrap_or_default();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = first.strip_prefix("error: ").unwrap_or(&first);
    let tip = text.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
    Error::config("config/usage", message)
        .at("the command line")
        .hint(tip.unwrap_or("try `lopa --help`"))
}
