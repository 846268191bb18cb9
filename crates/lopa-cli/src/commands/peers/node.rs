//! `lopa node`: one node of an experiment; the other nodes are peers on other hosts.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lopa::config::flat;
use lopa::data::Data;
use lopa::engine::{FileJournal, Note, Peers, Policy, Settings};
use lopa::error::{Error, Kind, Result};
use lopa::experiment::Experiment;
use lopa::folder::{RunFolder, Status};
use lopa::network::Graph;
use lopa::run::{Outcome, Store};
use lopa_base::store::bytes::Hash;
use lopa_peers::{Iroh, Key, Keys, Level, Log, Member, Met, Neighbour, Place, Roster, Terms};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::agreed::{EXPERIMENT, common, fits, graphs, key_file, same_experiment};
use super::args::{Lost, NodeArgs};
use super::check::check;
use super::status::now;
use super::watch::{Followed, Watch, started};
use crate::args::{ExperimentArgs, Resume, ThreadArgs};
use crate::commands::bars::Bars;
use crate::commands::environment::Environment;
use crate::commands::run_folder::{Destination, INTERRUPTED, exit_code, show, status};
use crate::commands::signals::Signals;
use crate::commands::source::experiment;
use crate::commands::summary;
use crate::output::Output;
use crate::program::Program;

/// Votes and agreements on members, in the run folder.
const MEMBERS: &str = "members";

/// How long a node whose runs have all ended tries to reach its neighbours to inform them. They may
/// have finished and left: a node killed after its last message restarts alone.
const COURTESY: Duration = Duration::from_secs(10);

pub fn node(args: &NodeArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let roster = Roster::read(&args.roster)?;
    let name = &own_name(args, &roster)?;
    let experiment = experiment(&with_file(args)?, &program.registries)?;
    let graphs = graphs(&experiment)?;
    let me = member(args, name, &roster, &experiment, &graphs)?;
    // One node keeps one thread busy.
    let environment = Environment::new(&ThreadArgs { jobs: Some(1) }, &args.experiment.file.data)?;
    let signals = &environment.signals;
    let data = experiment.load_data_of(&environment.context(), me..me + 1)?;
    let place = place(args, &experiment, data.as_ref(), (&roster, me), &graphs)?;
    let mut settings = settings(args, name)?;
    let silence = silence(args)?;
    let neighbours: Vec<&str> = place.neighbours.iter().map(|n| n.name.as_str()).collect();
    output.note(&format!("{}: node {me}, {}", summary::heading(&experiment), name));
    output.note(&format!("listening at {}, looking for {}", place.listen, neighbours.join(", ")));
    if args.check {
        return check(place, settings.deadline, signals, output);
    }
    let lines = *output;
    let log = Log::new(move |level, line| match level {
        Level::Info => lines.note(line),
        Level::Warning => lines.warn(line),
    });
    let out = args.experiment.out.join(name);
    let (resume, threads) = (args.resume.resume, environment.threads);
    let destination = Destination { out: &out, resume, threads };
    let mut folder = match done(args, &out, &experiment, data.as_ref())? {
        Some((outcomes, folder)) => {
            output.note("this node is done; `--resume never` runs it again");
            return leave(&experiment, Ok(outcomes), folder, signals, output);
        }
        None => destination.open(&experiment, data.as_ref(), output)?,
    };
    if let Some(silence) = silence {
        let journal = Box::new(FileJournal::new(folder.path().join(MEMBERS)));
        settings.policy = Policy::Leave { silence, journal };
    }
    let ended = ended(&experiment, &mut folder)?;
    let names: Vec<String> = roster.members.iter().map(|member| member.name.clone()).collect();
    let rows = data.as_ref().and_then(|data| data.train.owners()).map(|own| own[me].len() as u64);
    let watch = Watch::new(&out, started(name, &names, &experiment.name, rows));
    if let Some(address) = args.metrics {
        let address = watch.serve(address)?;
        output.note(&format!("metrics at http://{address}/metrics"));
    }
    let started = Iroh::start(place, log, signals.shared());
    let mut wire = started.inspect_err(|_| watch.end("failed"))?;
    let patience = if ended.is_some() { COURTESY } else { settings.deadline };
    // A cut link does not delay a node that may skip it.
    let enough = match settings.policy {
        Policy::SkipLink { patience, .. } => Some(patience.max(COURTESY)),
        // Nor do those that have left; at the start of a run, all members must be there.
        Policy::Leave { .. } if !folder.manifest().resumed.is_empty() => Some(COURTESY),
        Policy::Wait | Policy::Stop | Policy::Leave { .. } => None,
    };
    match (wire.meet(patience.min(settings.deadline), enough), ended) {
        (Ok(Met::All | Met::Some), _) => {}
        (Ok(Met::Stopped), _) => {
            watch.end("stopped");
            folder.finish(Status::Interrupted)?;
            return Ok(ExitCode::from(signals.code().unwrap_or(130)));
        }
        (Err(_), Some(outcomes)) => {
            watch.end("done");
            return leave(&experiment, Ok(outcomes), folder, signals, output);
        }
        (Err(error), None) => {
            watch.end("failed");
            folder.finish(Status::Interrupted)?;
            return Err(error);
        }
    }
    let print = move |note: Note| {
        let text = note.text(|node| names[node].clone());
        match note {
            Note::Skipped { .. } => lines.note(&text),
            Note::Refused { .. }
            | Note::Overflow { .. }
            | Note::Left { .. }
            | Note::Back { .. } => lines.warn(&text),
        }
    };
    let size = (me, experiment.network.nodes);
    let mut peers = Peers::new(wire, size, &experiment.identity()?, settings, Box::new(print));
    let seen = watch.clone();
    // A later start has a later time; at worst, other nodes ignore this one's statements.
    let start = (now() * 1000.0) as u64;
    peers.watch(start, rows, Box::new(move |picture| seen.see(&picture)));
    if args.leave {
        peers.say_good_bye();
    }
    let mut bars = Bars::new(output, &experiment);
    let mut followed = Followed { to: &mut bars, watch: watch.clone() };
    let done =
        experiment.run_peer(&mut peers, data, &environment.context(), &mut folder, &mut followed);
    drop(peers);
    watch.end(match (&done, signals.code()) {
        (Ok(_), _) => "done",
        (Err(error), _) if error.kind == Kind::Left => "left",
        (Err(_), Some(_)) => "stopped",
        (Err(_), None) => "failed",
    });
    leave(&experiment, done, folder, signals, output)
}

/// The results of a node that was done, and perhaps killed before it could inform its neighbours.
fn done(
    args: &NodeArgs,
    out: &Path,
    experiment: &Experiment,
    data: Option<&Data>,
) -> Result<Option<(Vec<Outcome>, RunFolder)>> {
    if args.resume.resume != Resume::Auto {
        return Ok(None);
    }
    let Some(mut folder) = RunFolder::finished(out, experiment, data)? else { return Ok(None) };
    let outcomes = ended(experiment, &mut folder)?;
    Ok(outcomes.map(|outcomes| (outcomes, folder)))
}

/// The outcomes of all runs, if all have ended, with this node or without it.
fn ended(experiment: &Experiment, folder: &mut RunFolder) -> Result<Option<Vec<Outcome>>> {
    let mut outcomes = Vec::new();
    for &seed in &experiment.run.seeds {
        for algorithm in &experiment.algorithms {
            match folder.ended(&algorithm.label, seed)? {
                Some(outcome) => outcomes.push(outcome),
                None if folder.has_missed(&algorithm.label, seed) => {}
                None => return Ok(None),
            }
        }
    }
    Ok(Some(outcomes))
}

/// Finishes the folder and prints the results.
fn leave(
    experiment: &Experiment,
    done: Result<Vec<Outcome>>,
    mut folder: RunFolder,
    signals: &Signals,
    output: &Output,
) -> Result<ExitCode> {
    let outcomes = match done {
        Err(error) if error.kind == Kind::Left => {
            folder.finish(Status::Interrupted)?;
            if error.id != "peers/left" {
                return Err(error);
            }
            output.note(&error.message);
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) if error.kind == Kind::Peer => {
            let finished = folder.finish(Status::Interrupted);
            let Some(code) = signals.code() else { return Err(error) };
            finished?;
            output.note(INTERRUPTED);
            return Ok(ExitCode::from(code));
        }
        done => {
            let finished = folder.finish(status(&done, None));
            // The first error is the one that matters.
            let outcomes = done?;
            finished?;
            outcomes
        }
    };
    show(experiment, &outcomes, &folder, None, output);
    let names = &folder.manifest().nodes;
    outcomes.iter().filter_map(|run| run.took_part(names)).for_each(|line| output.warn(&line));
    Ok(ExitCode::from(exit_code(&outcomes, None)))
}

/// The experiment of the command line, by default the one beside the roster.
fn with_file(args: &NodeArgs) -> Result<ExperimentArgs> {
    let mut given = args.experiment.clone();
    if given.file.file.is_none() {
        let file = args.roster.with_file_name(EXPERIMENT);
        if !file.exists() {
            let message = "no experiment is named, and there is none beside the roster";
            return Err(Error::config("config/unreadable", message)
                .at(file.display().to_string())
                .hint("name the experiment file: `lopa node FILE`"));
        }
        given.file.file = Some(file);
    }
    Ok(given)
}

/// The name of this node: given, or that of the only key of the roster that is here.
fn own_name(args: &NodeArgs, roster: &Roster) -> Result<String> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    let known = args.key.as_deref().map(Key::read).transpose()?.map(|key| key.public());
    let here = |member: &&Member| match known {
        Some(key) => member.key == key,
        None => Path::new(&key_file(None, &member.name)).exists(),
    };
    let here: Vec<&str> =
        roster.members.iter().filter(here).map(|member| member.name.as_str()).collect();
    let message = match &here[..] {
        &[name] => return Ok(name.to_string()),
        [] => "there is no key of a node of the roster here".to_string(),
        several => format!("there are keys of several nodes here: {}", several.join(", ")),
    };
    Err(Error::config("roster/unknown-node", message)
        .at(args.roster.display().to_string())
        .hint("name the node with --name, or its key with --key"))
}

/// This node's number in the roster, which must fit the experiment.
fn member(
    args: &NodeArgs,
    name: &str,
    roster: &Roster,
    experiment: &Experiment,
    graphs: &[Graph],
) -> Result<usize> {
    let checked = || -> Result<usize> {
        roster.check()?;
        same_experiment(roster, experiment)?;
        fits(roster, experiment, graphs)?;
        roster.position(name)
    };
    checked().map_err(|error| error.at(args.roster.display().to_string()))
}

fn settings(args: &NodeArgs, name: &str) -> Result<Settings> {
    let seconds = |value: f64, flag: &str| {
        let sound = Duration::try_from_secs_f64(value).ok().filter(|_| value > 0.0);
        sound.ok_or_else(|| {
            Error::config("config/out-of-range", format!("`{value}` is not a time to wait"))
                .at(flag)
                .hint("give seconds, more than 0")
        })
    };
    let usual = if args.check { 30.0 } else { 600.0 };
    let deadline = seconds(args.deadline.unwrap_or(usual), "--deadline")?;
    let patience = seconds(args.patience, "--patience")?;
    let policy = match args.policy {
        // The journal of `leave` is in the run folder, which is opened later.
        Lost::Wait | Lost::Leave => Policy::Wait,
        Lost::Stop => Policy::Stop,
        Lost::SkipLink => {
            let folder = args.experiment.out.join(name);
            let journal = Box::new(FileJournal::new(folder.join("skipped")));
            Policy::SkipLink { patience, journal }
        }
    };
    Ok(Settings { policy, deadline, ..Settings::default() })
}

/// How long a node must be silent before the others go on without it, if they may.
fn silence(args: &NodeArgs) -> Result<Option<Duration>> {
    if args.policy != Lost::Leave && !args.leave {
        return Ok(None);
    }
    let sound = Duration::try_from_secs_f64(args.silence).ok().filter(|_| args.silence > 0.0);
    let silence = sound.filter(|_| args.silence < args.deadline.unwrap_or(600.0));
    silence.map(Some).ok_or_else(|| {
        let message = format!("`{}` is not a silence within the deadline", args.silence);
        Error::config("config/out-of-range", message)
            .at("--silence")
            .hint("give seconds, more than 0 and less than `--deadline`")
    })
}

/// This node's key, address and terms, and its neighbours in any of the experiment's graphs.
fn place(
    args: &NodeArgs,
    experiment: &Experiment,
    data: Option<&Data>,
    (roster, me): (&Roster, usize),
    graphs: &[Graph],
) -> Result<Place> {
    let member = &roster.members[me];
    let key = own_key(&key_file(args.key.as_deref(), &member.name), member)?;
    let near: BTreeSet<usize> =
        graphs.iter().flat_map(|graph| graph.neighbours(me)).copied().collect();
    let neighbour = |node: usize| {
        let Member { name, key, addresses, .. } = roster.members[node].clone();
        Neighbour { node, name, key, addresses }
    };
    let (entries, most) = experiment.sizes(data, me)?;
    Ok(Place {
        key,
        node: me,
        members: roster.members.iter().map(|member| member.key).collect(),
        listen: listen(args, member)?,
        callable: !member.addresses.is_empty() || !roster.relays.is_empty(),
        relays: roster.relays.clone(),
        neighbours: near.into_iter().map(neighbour).collect(),
        terms: terms(experiment, roster, graphs, entries as u64),
        keys: keys(experiment),
        most,
    })
}

fn own_key(path: &Path, member: &Member) -> Result<Key> {
    let key = Key::read(path)?;
    if key.public() == member.key {
        return Ok(key);
    }
    let Member { name, key: known, .. } = member;
    let message = format!("the roster has another key for {name}: {known}");
    Err(Error::new(Kind::Refused, "peers/own-key", message)
        .at(path.display().to_string())
        .hint("name the right key with --key, or correct the roster"))
}

/// The address on the command line, else the first in the roster, else any.
fn listen(args: &NodeArgs, member: &Member) -> Result<SocketAddr> {
    match (args.listen, member.addresses.first()) {
        (Some(address), _) => Ok(address),
        (None, None) => Ok((Ipv4Addr::UNSPECIFIED, 0).into()),
        (None, Some(address)) => address.parse().map_err(|_| {
            let message = format!("`{address}` is a name; listening needs an IP address");
            Error::config("peers/listen", message)
                .at("--listen")
                .hint("for example `--listen 0.0.0.0:4800`")
        }),
    }
}

fn keys(experiment: &Experiment) -> Keys {
    let hash = |text: String| Sha256::digest(text).into();
    Keys::new(flat(&common(experiment)).into_iter().map(|(key, value)| (key, hash(value))))
}

fn terms(experiment: &Experiment, roster: &Roster, graphs: &[Graph], entries: u64) -> Terms {
    let mut table = common(experiment);
    let network = table.remove("network");
    let text = toml::to_string(&table).expect("a table is TOML");
    let edges: Vec<Vec<_>> = graphs.iter().map(|graph| graph.edges().collect()).collect();
    let members = roster.members.iter().map(|member| (&member.name, member.key.to_string()));
    let members: Vec<_> = members.collect();
    let organiser = roster.organiser().map(|member| member.key.to_string());
    let hash = |value: serde_json::Value| -> Hash { Sha256::digest(value.to_string()).into() };
    Terms {
        experiment: hash(json!(text)),
        graph: hash(json!([network.map(|table| table.to_string()), edges])),
        roster: hash(json!([organiser, members])),
        version: roster.seal.as_ref().map_or(0, |seal| seal.version),
        entries,
    }
}
