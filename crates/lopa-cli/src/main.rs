//! The command line of lopa.

mod args;
mod commands;
mod output;

use std::process::ExitCode;

use clap::Parser;
use lopa::error::{Error, Result};

use args::{Cli, Command, GraphCommand};
use output::{Output, described, print};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let output = Output::new(&cli.global);
    run(&cli.command, &output).unwrap_or_else(|error| output.fail(&error))
}

fn run(command: &Command, output: &Output) -> Result<ExitCode> {
    match command {
        Command::Run(args) => commands::run::run(args, output),
        Command::Compare(args) => commands::compare::compare(args, output),
        Command::Tune(args) => commands::tune::tune(args, output),
        Command::Reproduce(args) => commands::reproduce::reproduce(args, output),
        Command::Check(args) => commands::check::check(args, output),
        Command::List(args) => commands::list::list(args, output),
        Command::Graph { command: GraphCommand::Make(args) } => commands::graph::make(args, output),
        Command::Graph { command: GraphCommand::Show(args) } => commands::graph::show(args, output),
        Command::Graph { command: GraphCommand::Check(args) } => {
            commands::graph::check(args, output)
        }
        Command::Graph { command: GraphCommand::Audit(args) } => {
            commands::audit::audit(args, output)
        }
        #[cfg(feature = "peers")]
        Command::Key { command } => commands::key::key(command, output),
        #[cfg(feature = "peers")]
        Command::Roster { command } => commands::roster::roster(command, output),
        #[cfg(feature = "peers")]
        Command::Node(args) => commands::node::node(args, output),
        Command::Predict(args) => commands::predict::predict(args, output),
        Command::Evaluate(args) => commands::evaluate::evaluate(args, output),
        Command::Data { command } => commands::data::data(command, output),
        Command::Doctor => commands::doctor::doctor(output),
        Command::Ls(args) => commands::ls::ls(args, output),
        Command::Report(args) => commands::report::report(args, output),
        Command::Theory { command } => commands::theory::theory(command, output),
        Command::Schema => commands::texts::schema(output),
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
