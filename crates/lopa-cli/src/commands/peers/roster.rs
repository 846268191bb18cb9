//! `lopa roster`: the list of peers that run an experiment together.

use std::process::ExitCode;

use lopa::error::Result;
use lopa::network::Graph;
use lopa_peers::{Member, Roster};
use serde_json::{Value, json};

use super::args::{RosterAddArgs, RosterCheckArgs, RosterCommand};
use super::node::{fits, graphs};
use crate::args::FileArgs;
use crate::commands::source::{read_experiment, source};
use crate::output::Output;
use crate::program::Program;

pub fn roster(command: &RosterCommand, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    match command {
        RosterCommand::Add(args) => add(args, output)?,
        RosterCommand::Remove(args) => {
            let mut roster = Roster::read(&args.roster.roster)?;
            roster.leave(&args.name)?;
            roster.write(&args.roster.roster)?;
            output.note(&format!(
                "removed {}; distribute the new roster and restart running nodes",
                args.name
            ));
        }
        RosterCommand::Check(args) => check(args, program)?,
        RosterCommand::Show(args) => show(&Roster::read(&args.roster)?, None, output),
    }
    Ok(ExitCode::SUCCESS)
}

fn add(args: &RosterAddArgs, output: &Output) -> Result<()> {
    let path = &args.roster.roster;
    let mut roster = if path.exists() { Roster::read(path)? } else { Roster::default() };
    let RosterAddArgs { name, key, addresses, neighbours, .. } = args;
    let member = Member::new(name, key, addresses.clone(), neighbours.clone())?;
    roster.join(member).map_err(|error| error.at(path.display().to_string()))?;
    roster.write(path)?;
    let (path, count) = (path.display(), roster.members.len());
    output.note(&format!("{name} is node {} of {count} in {path}", count - 1));
    Ok(())
}

fn check(args: &RosterCheckArgs, program: &Program) -> Result<()> {
    let output = &program.output;
    let path = &args.roster.roster;
    let roster = Roster::read(path)?;
    let place = path.display().to_string();
    roster.check().map_err(|error| error.at(&place))?;
    let mut union = roster.graph()?;
    if let Some(file) = &args.file {
        let file = FileArgs { file: Some(file.clone()), ..FileArgs::default() };
        let experiment = read_experiment(&source(&file)?, &program.registries)?;
        let graphs = graphs(&experiment)?;
        fits(&roster, &experiment, &graphs).map_err(|error| error.at(&place))?;
        union = graphs.into_iter().next_back().or(union);
    }
    show(&roster, union.as_ref(), output);
    output.note("valid: a run can use it");
    Ok(())
}

/// Prints the nodes with their neighbours in a graph, or those that the roster names.
fn show(roster: &Roster, graph: Option<&Graph>, output: &Output) {
    let names = |i: usize, member: &Member| -> Vec<String> {
        let of = |graph: &Graph| {
            graph.neighbours(i).iter().map(|&j| roster.members[j].name.clone()).collect()
        };
        graph.map_or_else(|| member.neighbours.clone(), of)
    };
    let members = || roster.members.iter().enumerate();
    if output.json() {
        let entry = |(i, member): (usize, &Member)| {
            let Member { name, key, addresses, .. } = member;
            let (key, neighbours) = (key.to_string(), names(i, member));
            json!({ "node": i, "name": name, "key": key, "addresses": addresses,
                "neighbours": neighbours })
        };
        return output.document(&Value::Array(members().map(entry).collect()));
    }
    let row = |(i, member): (usize, &Member)| {
        let key = member.key.to_string();
        let listed = |list: &[String]| if list.is_empty() { "–".into() } else { list.join(" ") };
        let neighbours = listed(&names(i, member));
        let key = format!("{}…", &key[..16]);
        vec![i.to_string(), member.name.clone(), key, listed(&member.addresses), neighbours]
    };
    let head = ["node", "name", "key", "addresses", "neighbours"];
    output.text(&output.list(&head, members().map(row).collect()));
}
