//! `lopa invite`, `lopa join`: from nothing to a roster that all members have signed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use lopa::config::Source;
use lopa::data::{Columns, Data, Where};
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{Experiment, Registries};
use lopa::run::Context;
use lopa_base::store::limits::read_text;
use lopa_base::store::{limits, output as files};
use lopa_peers::{Invite, Key, Member, Reply, Roster, check_names};
use serde_json::json;

use super::agreed::{EXPERIMENT, digest, fits, graphs, key_file, same_experiment};
use super::args::{InviteArgs, JoinArgs, RosterAcceptArgs};
use crate::args::FileArgs;
use crate::commands::source::{read_experiment, source};
use crate::output::Output;
use crate::program::Program;

pub fn invite(args: &InviteArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let file = FileArgs { file: Some(args.experiment.clone()), ..FileArgs::default() };
    let experiment = read_experiment(&source(&file)?, &program.registries)?;
    let path = &args.member.roster;
    let place = path.display().to_string();
    let known = if path.exists() { Some(Roster::read(path)?) } else { None };
    let (roster, is_new) = match known {
        Some(roster) => (roster, false),
        None => (found(args, &experiment, output)?, true),
    };
    let Some(seal) = &roster.seal else {
        let message = "nobody has signed this roster: it was written by hand";
        return Err(Error::config("roster/unsigned", message)
            .at(place)
            .hint("name another file with --roster for a new one"));
    };
    same_experiment(&roster, &experiment).map_err(|error| error.at(&place))?;
    let me = seal.names.iter().position(|name| *name == seal.organiser).unwrap_or(0);
    let table = check_data(&experiment, me, args.member.data.as_deref(), None, output)?;
    let absent = roster.absent();
    check_names(&args.names).map_err(|error| error.at("NAME"))?;
    for name in &args.names {
        if !absent.contains(&name.as_str()) {
            let message = match seal.names.contains(name) {
                true => format!("`{name}` has joined already"),
                false => format!("the experiment has no node `{name}`"),
            };
            return Err(Error::config("roster/unknown-node", message)
                .at(&place)
                .hint(format!("still to join: {}", listed(&absent))));
        }
    }
    if is_new {
        roster.write(path)?;
        let (organiser, absent) = (&seal.organiser, listed(&absent));
        output.note(&format!("{organiser} signs {place}; still to join: {absent}"));
    }
    let resolved = toml::to_string_pretty(&experiment.resolved()).expect("a table is TOML");
    let mut written = Vec::new();
    for name in &args.names {
        let features = table.as_ref().map(|table| table.features);
        let columns = table.as_ref().map_or(Vec::new(), |table| table.columns.clone());
        let (name, experiment, roster) = (name.clone(), resolved.clone(), roster.clone());
        let file = PathBuf::from(format!("{name}.invite"));
        Invite { name, experiment, roster, features, columns }.write(&file)?;
        written.push(file);
    }
    if output.json() {
        output.document(&json!({ "roster": path, "invitations": written }));
    }
    let names: Vec<String> = written.iter().map(|file| file.display().to_string()).collect();
    output.note(&format!(
        "wrote {}: send each to its site, which answers with a reply (`lopa join`); `lopa roster accept` \
         adds it",
        names.join(", ")
    ));
    Ok(ExitCode::SUCCESS)
}

/// A new roster, with this node as its organiser.
fn found(args: &InviteArgs, experiment: &Experiment, output: &Output) -> Result<Roster> {
    let named = experiment.data.as_ref().and_then(|data| data.preparation.nodes.clone());
    let me = own_name(args, named.as_deref())?;
    let names = named.unwrap_or_else(|| {
        let others = args.names.iter().filter(|name| **name != me).cloned();
        std::iter::once(me.clone()).chain(others).collect()
    });
    if names.len() != experiment.network.nodes {
        let (nodes, named) = (experiment.network.nodes, names.len());
        let message = format!("the experiment has {nodes} nodes, and {named} are named");
        return Err(Error::config("roster/other-nodes", message)
            .at(args.experiment.display().to_string())
            .hint("invite all others at once: `lopa invite NAME NAME …`"));
    }
    let key = key_file(args.member.key.as_deref(), &me);
    let key = own_key(&key, output)?;
    let public = key.public().to_string();
    let member = Member::new(&me, &public, args.member.addresses.clone(), Vec::new())?;
    Roster::found(member, &key, digest(experiment), names, args.relays.clone())
}

/// The organiser's name: given, or the only node that is not invited.
fn own_name(args: &InviteArgs, named: Option<&[String]>) -> Result<String> {
    let error = |message: String, hint: String| {
        Err(Error::config("roster/unknown-node", message).at("--name").hint(hint))
    };
    let left: Vec<&str> = named.into_iter().flatten().map(String::as_str).collect();
    let left: Vec<&str> =
        left.into_iter().filter(|name| !args.names.iter().any(|other| other == name)).collect();
    match (&args.name, named, &left[..]) {
        (Some(name), Some(named), _) if !named.contains(name) => error(
            format!("the experiment has no node `{name}`"),
            format!("it has {}", named.join(", ")),
        ),
        (Some(name), ..) => Ok(name.clone()),
        (None, Some(_), [only]) => Ok(only.to_string()),
        (None, Some(named), _) => error(
            "which node are you?".into(),
            format!("give --name; the experiment has {}", named.join(", ")),
        ),
        (None, None, _) => error("which node are you?".into(), "give --name".into()),
    }
}

pub fn join(args: &JoinArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let invite = Invite::read(&args.invite)?;
    let place = args.invite.display().to_string();
    let Invite { name, roster, .. } = &invite;
    let experiment = invited_experiment(&invite, &place, &program.registries)?;
    same_experiment(roster, &experiment).map_err(|error| {
        Error::new(Kind::Refused, error.id, "the experiment is not the one that was signed")
            .at(&place)
            .hint("the invitation was changed on its way, or is of another version of lopa")
    })?;
    let seal = roster.seal.as_ref().ok_or_else(lopa_peers::unsigned)?;
    let me = invite.node().map_err(|error| error.at(&place))?;
    let text = &invite.experiment;
    keep(Path::new(EXPERIMENT), text, "an experiment")?;
    check_data(&experiment, me, args.member.data.as_deref(), Some(&invite), output)?;
    let key = own_key(&key_file(args.member.key.as_deref(), name), output)?;
    if let Some(other) = roster.members.iter().find(|member| member.key == key.public()) {
        let message = format!("this is the key of `{}`", other.name);
        return Err(Error::config("roster/duplicate", message).at("--key").hint("name a new file"));
    }
    let reply = invite.accept(&key, args.member.addresses.clone())?;
    save_roster(&args.member.roster, roster)?;
    files::write(Path::new(EXPERIMENT), text.as_bytes(), "the experiment", "free some space")?;
    let file = PathBuf::from(format!("{name}.reply"));
    reply.write(&file)?;
    let print = reply.fingerprint();
    match output.json() {
        true => output.document(&json!({ "name": name, "fingerprint": print, "reply": file })),
        false => output.text(&print),
    }
    let (organiser, file) = (&seal.organiser, file.display());
    output.note(&format!(
        "send {file} to {organiser}, and call {organiser}: both must read the fingerprint above"
    ));
    Ok(ExitCode::SUCCESS)
}

/// The experiment in an invitation; no code that it names is run.
fn invited_experiment(invite: &Invite, place: &str, registries: &Registries) -> Result<Experiment> {
    let source = Source::new(format!("{place}, `experiment`"), invite.experiment.clone());
    read_experiment(&source, registries)
}

/// Fails if a file exists with another content.
fn keep(path: &Path, text: &str, what: &str) -> Result<()> {
    let message = match read_text(path, limits::EXPERIMENT) {
        Ok(there) if there == text => return Ok(()),
        Ok(_) => format!("the file exists, and holds {what} that differs"),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => format!("the file exists, and cannot be read: {error}"),
    };
    Err(Error::storage("storage/exists", message)
        .at(path.display().to_string())
        .hint("join in a folder of its own"))
}

/// Writes the invitation's roster, unless a later version of it is there.
fn save_roster(path: &Path, roster: &Roster) -> Result<()> {
    if path.exists() {
        let there = Roster::read(path)?;
        let latest = roster.latest(&there).map_err(|error| error.at(path.display().to_string()))?;
        if *latest == there {
            return Ok(());
        }
    }
    roster.write(path)
}

/// The key in a file, which is made if it is missing.
fn own_key(path: &Path, output: &Output) -> Result<Key> {
    if path.symlink_metadata().is_ok() {
        return Key::read(path);
    }
    let key = Key::create(path)?;
    output.note(&format!("made a key in {}: keep it on this host", path.display()));
    Ok(key)
}

/// The features of a node's own file.
struct Table {
    features: usize,
    /// Their names; empty if they have none.
    columns: Vec<String>,
}

/// Reads this node's rows as `lopa node` would and checks them against the experiment; nothing is sent.
/// Returns the features, if nodes have files of their own.
fn check_data(
    experiment: &Experiment,
    me: usize,
    data: Option<&Path>,
    invite: Option<&Invite>,
    output: &Output,
) -> Result<Option<Table>> {
    let file = data.filter(|path| !path.is_dir());
    let linked = file.map(|file| link(experiment, me, file)).transpose()?.flatten();
    let folder = if file.is_some() { None } else { data };
    let checked = check_rows(experiment, me, Where::new(folder, 0)).and_then(|found| {
        let Some((said, table)) = found else { return Ok(None) };
        invite.map_or(Ok(()), |invite| like_organiser(invite, table.as_ref()))?;
        output.note(&said);
        Ok(table)
    });
    if let (Err(_), Some(linked)) = (&checked, linked) {
        // The first error is the one that matters.
        let _ = std::fs::remove_file(linked);
    }
    checked
}

/// The rows of a node in words, and their features.
fn check_rows(
    experiment: &Experiment,
    me: usize,
    place: Where,
) -> Result<Option<(String, Option<Table>)>> {
    let context = Context { data_dir: place.directory, ..Context::default() };
    let loaded = experiment.load_data_of(&context, me..me + 1)?;
    let (Some(data), Some(spec)) = (&loaded, &experiment.data) else { return Ok(None) };
    if let Some(own) = &data.own {
        own.judge(&spec.preparation)?;
    }
    // Also checks that there are enough rows to divide.
    experiment.world(Some(data), experiment.run.seeds[0])?;
    let columns = data.columns.as_ref().map(|columns| columns.features.clone());
    let table = Table { features: data.train.cols(), columns: columns.unwrap_or_default() };
    Ok(Some((described(data), data.own.is_some().then_some(table))))
}

/// Rows, features and classes, in words.
fn described(data: &Data) -> String {
    let mut classes: BTreeMap<u32, usize> = BTreeMap::new();
    data.train.labels().iter().for_each(|&label| *classes.entry(label).or_default() += 1);
    let class = |(at, name): (usize, &String)| {
        format!("{name}: {}", classes.get(&(at as u32)).copied().unwrap_or(0))
    };
    let classes: Vec<String> = data.classes.iter().enumerate().map(class).collect();
    let (rows, features) = (data.train.labels().len(), data.train.cols());
    let tests = match data.test.labels().len() {
        0 => String::new(),
        tests => format!(", and {tests} for tests"),
    };
    let classes = classes.join(", ");
    format!("the data fit the experiment: {rows} rows{tests}, {features} features; {classes}")
}

/// Links a file to the name under which the experiment looks for this node's rows; returns the link, if
/// it is new.
fn link(experiment: &Experiment, me: usize, file: &Path) -> Result<Option<PathBuf>> {
    let cannot = |message: String, hint: &str| {
        Error::config("config/data-file", message).at("--data").hint(hint)
    };
    let here = file.canonicalize().map_err(|error| {
        cannot(format!("cannot read {}: {error}", file.display()), "name the file with your rows")
    })?;
    let own = experiment.data.as_ref().filter(|spec| spec.preparation.nodes.is_some());
    let Some(own) = own.and_then(|spec| Some((spec.source.params(), spec.own.get(me)?.params())))
    else {
        let message = "the experiment has no file for each node".to_string();
        return Err(cannot(message, "leave --data out, or name the folder of its data sets"));
    };
    let (common, mine) = own;
    let paths = common.keys().filter(|key| common.get(*key) != mine.get(*key));
    let paths: Vec<&str> = paths.filter_map(|key| mine.get(key)?.as_str()).collect();
    let &[path] = &paths[..] else {
        let message = format!("each node has several files: {}", paths.join(", "));
        return Err(cannot(message, "name the folder that contains them"));
    };
    let there = Path::new(path);
    if there.canonicalize().is_ok_and(|there| there == here) {
        return Ok(None);
    }
    if !there.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        // The path may be another organisation's: it decides nothing outside this folder.
        let message = format!("the experiment looks for the rows outside this folder, at {path}");
        return Err(cannot(message, "put the file there yourself, and leave --data out"));
    }
    if there.symlink_metadata().is_ok() {
        let message = format!("{} exists, and is not {}", there.display(), file.display());
        return Err(cannot(message, "remove it, or leave --data out to use it"));
    }
    let made = match there.parent() {
        Some(parent) => std::fs::create_dir_all(parent),
        None => Ok(()),
    };
    made.and_then(|()| link_file(&here, there)).map_err(|error| {
        Error::storage("storage/write", format!("cannot link the data: {error}"))
            .at(there.display().to_string())
            .hint("use a folder that you can write to")
    })?;
    Ok(Some(there.to_path_buf()))
}

#[cfg(unix)]
fn link_file(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link_file(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::hard_link(from, to)
}

/// Fails if this node's columns are not the organiser's.
fn like_organiser(invite: &Invite, table: Option<&Table>) -> Result<()> {
    let (Some(features), Some(table)) = (invite.features, table) else { return Ok(()) };
    let organiser = invite.roster.seal.as_ref().map_or("", |seal| seal.organiser.as_str());
    if !invite.columns.is_empty() && !table.columns.is_empty() {
        let wanted = Columns { features: invite.columns.clone(), ..Columns::default() };
        wanted.order(&table.columns).map_err(|error| {
            let message =
                format!("the columns differ from those of `{organiser}`: {}", error.message);
            Error { message, ..error }.at("--data")
        })?;
    }
    let found = table.features;
    if found != features {
        let message =
            format!("the file has {found} features, and that of `{organiser}` {features}");
        return Err(Error::data("data/shape-mismatch", message)
            .at("--data")
            .hint("all files need the same columns"));
    }
    Ok(())
}

/// `lopa roster accept`: replies at the organiser, a newer roster at a member.
pub fn accept(args: &RosterAcceptArgs, program: &Program) -> Result<()> {
    let output = &program.output;
    let mut replies = Vec::new();
    for file in &args.files {
        match Reply::is_one(file)? {
            true => replies.push((file, Reply::read(file)?)),
            false => return adopt(args, file, output),
        }
    }
    let path = &args.roster;
    let place = path.display().to_string();
    let mut roster = Roster::read(path)?;
    let mut news = false;
    let mut prints = Vec::new();
    for (file, reply) in replies {
        let (name, print) = (reply.member.name.clone(), reply.fingerprint());
        let at = file.display().to_string();
        let member = reply.to(&roster).map_err(|error| error.at(&at))?;
        news |= roster.admit(member).map_err(|error| error.at(&at))?;
        prints.push((name, print));
    }
    if news {
        resign(&mut roster, args.key.as_deref(), path)?;
    }
    for (name, print) in &prints {
        output.note(&format!("{name}: {print}; call {name}, and compare this fingerprint"));
    }
    announce(&roster, &place, output);
    if roster.absent().is_empty() {
        roster.check().map_err(|error| error.at(&place))?;
        whole(&roster, path, program)?;
        output.note(&format!("send {place} to all members, who accept it the same way"));
    }
    Ok(())
}

/// Checks a complete roster against the experiment beside it.
fn whole(roster: &Roster, path: &Path, program: &Program) -> Result<()> {
    let file = path.with_file_name(EXPERIMENT);
    if !file.exists() {
        return Ok(());
    }
    let file = FileArgs { file: Some(file), ..FileArgs::default() };
    let experiment = read_experiment(&source(&file)?, &program.registries)?;
    same_experiment(roster, &experiment)
        .and_then(|()| fits(roster, &experiment, &graphs(&experiment)?))
        .map_err(|error| error.at(path.display().to_string()))
}

/// Signs a changed roster with the organiser's key, and writes it.
pub fn resign(roster: &mut Roster, key: Option<&Path>, path: &Path) -> Result<()> {
    let organiser = roster.organiser().map(|member| member.name.clone());
    let organiser = organiser.ok_or_else(lopa_peers::unsigned)?;
    let file = match key {
        Some(file) => file.to_path_buf(),
        None => path.with_file_name(format!("{organiser}.key")),
    };
    roster.sign(&Key::read(&file)?)?;
    roster.write(path)
}

/// Replaces this member's roster by a newer one of the same organiser.
fn adopt(args: &RosterAcceptArgs, file: &Path, output: &Output) -> Result<()> {
    let place = file.display().to_string();
    if args.files.len() > 1 {
        let message = "a roster is accepted alone, without other files";
        return Err(Error::config("config/usage", message).at(place));
    }
    let (ours, newer) = (Roster::read(&args.roster)?, Roster::read(file)?);
    ours.accepts(&newer).map_err(|error| error.at(&place))?;
    newer.write(&args.roster)?;
    announce(&newer, &args.roster.display().to_string(), output);
    Ok(())
}

/// Prints the state of a signed roster.
pub fn announce(roster: &Roster, place: &str, output: &Output) {
    let (Some(seal), Some(print)) = (&roster.seal, roster.fingerprint()) else { return };
    let (version, organiser) = (seal.version, &seal.organiser);
    let absent = roster.absent();
    let state = match absent.is_empty() {
        true => "all have joined".to_string(),
        false => format!("still to join: {}", listed(&absent)),
    };
    output.note(&format!(
        "{place}: version {version}, signed by {organiser}, fingerprint {print}; {state}"
    ));
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
