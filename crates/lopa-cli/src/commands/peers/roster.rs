//! `lopa roster`: the list of peers that run an experiment together.

use std::process::ExitCode;

use lopa::error::{Error, Result};
use lopa::network::Graph;
use lopa_peers::{Member, Roster};
use serde_json::{Value, json};

use super::agreed::{fits, graphs, same_experiment};
use super::args::{RosterAddArgs, RosterCheckArgs, RosterCommand, RosterRelayArgs};
use super::enrol::{accept, announce, resign};
use crate::args::FileArgs;
use crate::commands::source::{read_experiment, source};
use crate::output::Output;
use crate::program::Program;

pub fn roster(command: &RosterCommand, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    match command {
        RosterCommand::Accept(args) => accept(args, program)?,
        RosterCommand::Add(args) => add(args, output)?,
        RosterCommand::Remove(args) => {
            let mut roster = Roster::read(&args.roster.roster)?;
            roster.leave(&args.name)?;
            match roster.seal {
                Some(_) => resign(&mut roster, args.key.as_deref(), &args.roster.roster)?,
                None => roster.write(&args.roster.roster)?,
            }
            output.note(&format!(
                "removed {}; distribute the new roster and restart running nodes",
                args.name
            ));
        }
        RosterCommand::Check(args) => check(args, program)?,
        RosterCommand::Relay(args) => relay(args, output)?,
        RosterCommand::Show(args) => {
            let roster = Roster::read(&args.roster)?;
            show(&roster, None, output);
            announce(&roster, &args.roster.display().to_string(), output);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the configuration of a relay for the members of a roster.
fn relay(args: &RosterRelayArgs, output: &Output) -> Result<()> {
    let path = &args.roster.roster;
    let place = path.display().to_string();
    let roster = Roster::read(path)?;
    let url = match (&args.relay, &roster.relays[..]) {
        (Some(url), _) => url,
        (None, [url]) => url,
        (None, relays) => {
            let message = match relays.len() {
                0 => "the roster names no relay".to_string(),
                n => format!("the roster names {n} relays"),
            };
            return Err(Error::config("roster/relay", message)
                .at(place)
                .hint("name one with --relay, such as https://relay.example.org"));
        }
    };
    let configuration = roster.relay(url, args.contact.as_deref())?;
    match output.json() {
        true => output.document(&json!({ "url": url, "configuration": configuration })),
        false => output.text(configuration.trim_end()),
    }
    output.note("save it as relay.toml on the relay's host, and start `iroh-relay --config-path relay.toml`");
    Ok(())
}

fn add(args: &RosterAddArgs, output: &Output) -> Result<()> {
    let path = &args.roster.roster;
    let mut roster = if path.exists() { Roster::read(path)? } else { Roster::default() };
    if let Some(seal) = &roster.seal {
        let message = format!("`{}` has signed this roster", seal.organiser);
        return Err(Error::config("roster/signed", message)
            .at(path.display().to_string())
            .hint("invite the node: `lopa invite`"));
    }
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
        same_experiment(&roster, &experiment).map_err(|error| error.at(&place))?;
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
