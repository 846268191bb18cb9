//! `lopa roster`: who takes part in a run of peers.

use std::path::Path;
use std::process::ExitCode;

use lopa::error::Result;
use lopa::network::Graph;
use lopa_peers::{Member, Roster};
use serde_json::{Value, json};

use super::node::{fits, graphs};
use super::source::{read_experiment, source};
use crate::Program;
use crate::args::{FileArgs, RosterAddArgs, RosterCheckArgs, RosterCommand};
use crate::output::Output;

pub fn roster(command: &RosterCommand, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    match command {
        RosterCommand::Add(args) => add(args, output)?,
        RosterCommand::Remove(args) => {
            let mut roster = read(&args.roster.roster)?;
            roster.leave(&args.name)?;
            roster.write(&args.roster.roster)?;
            output.note(&format!(
                "{} is removed; give the new roster to all, and start nodes that run again",
                args.name
            ));
        }
        RosterCommand::Check(args) => check(args, program)?,
        RosterCommand::Show(args) => show(&read(&args.roster)?, None, output),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Roster> {
    Roster::read(path)
}

fn add(args: &RosterAddArgs, output: &Output) -> Result<()> {
    let path = &args.roster.roster;
    let mut roster = if path.exists() { read(path)? } else { Roster::default() };
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
    let roster = read(path)?;
    let place = path.display().to_string();
    roster.check().map_err(|error| error.at(&place))?;
    let mut union = roster.graph()?;
    if let Some(file) = &args.file {
        let file = FileArgs { file: Some(file.clone()), sets: Vec::new(), data: None };
        let experiment = read_experiment(&source(&file)?, &program.registries)?;
        let graphs = graphs(&experiment)?;
        fits(&roster, &experiment, &graphs).map_err(|error| error.at(&place))?;
        union = graphs.into_iter().next_back().or(union);
    }
    show(&roster, union.as_ref(), output);
    output.note("a run can use it");
    Ok(())
}

/// The nodes, with their neighbours in a graph or as the roster names them.
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
