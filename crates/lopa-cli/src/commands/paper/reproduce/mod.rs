//! `lopa reproduce`: the paper's figures and claims.

mod figures;
mod readings;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use lopa::config::Choice;
use lopa::data::{Data, SourceBuild};
use lopa::error::{Error, Result};
use lopa::experiment::{DataSpec, Experiment};
use lopa::folder::{RunReader, Traces, complete, merge, merged};
use lopa::run::Context;
use lopa::run::trace::Stop;
use lopa_base::store::files::cannot_write;
use lopa_base::store::output;
use lopa_paper::figures::experiments::Shown;
use lopa_paper::reproduce::claims::Judgement;
use lopa_paper::reproduce::claims::Topic;
use lopa_paper::reproduce::{Pages, Part, claims, count, entries, judge, once, paper, table};
use lopa_report::figure::Figure;
use lopa_report::html::Report;
use lopa_report::pictures::{self, ImageFormat, View};
use lopa_report::saved::Saved;
use lopa_study::tune::TuneSpec;
use serde_json::{Value, json};

use super::args::ReproduceArgs;
use crate::commands::bars::Bars;
use crate::commands::environment::Environment;
use crate::commands::run_folder::INTERRUPTED;
use crate::commands::share::{self, Work};
use crate::output::{Output, number};
use crate::program::Program;

pub fn reproduce(args: &ReproduceArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    if let Some(seeds) = args.figures.readings()? {
        args.share.refuse("readings are not shared")?;
        return readings::readings(args, seeds, program);
    }
    let parts = figures::parts(&args.figures, &program.registries)?;
    let environment = Environment::new(&args.threads, &args.data)?;
    let (context, signals) = (environment.context(), &environment.signals);
    let mut cache = Cache::default();
    // Missing data is reported before time is spent on the rest.
    for part in parts.iter().filter(|_| !args.finished) {
        cache.check(&part.experiment, &context)?;
    }
    let runs = args.out.join("runs");
    let experiments: Vec<&Experiment> = parts.iter().map(|part| &part.experiment).collect();
    let shared = args.out.join("parts");
    let mut by_parts = match args.share.work()? {
        Work::All => vec![Default::default(); parts.len()],
        Work::Merge => merged(&experiments, &shared)?,
        Work::Part(member) => {
            let mut one = |one: &Experiment, runs: &Path| {
                let data = cache.load(one, &context)?;
                let bars = &mut Bars::new(output, one);
                let place = (runs, environment.threads);
                let (folder, whole) = complete(one, data, place, &context, bars)?;
                Ok(whole.then_some(folder))
            };
            return share::part(&experiments, (&shared, member), &environment, &mut one, output);
        }
    };
    let begun = Instant::now();
    let mut done: Vec<(Part, Traces)> = Vec::new();
    let mut shown: Vec<Shown> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let name = &part.experiment.name;
        let minutes = begun.elapsed().as_secs() / 60;
        output.note(&format!("{} of {}, {minutes} min: {name}", number + 1, parts.len()));
        let (folder, whole) = if args.finished {
            (finished(&part.experiment, &runs)?, true)
        } else {
            let data = cache.load(&part.experiment, &context)?;
            let bars = &mut Bars::new(output, &part.experiment);
            let ran = std::mem::take(&mut by_parts[number]);
            let place = (runs.as_path(), environment.threads);
            merge(&part.experiment, ran, data, place, &context, bars)?
        };
        if !whole {
            output.note(INTERRUPTED);
            return Ok(ExitCode::from(signals.code().unwrap_or(130)));
        }
        let Part { figures, dataset, variant, steps, .. } = *part;
        shown.push(Shown { figures, dataset, variant, steps, saved: Saved::read(&folder)? });
        done.push((part.clone(), RunReader::open(&folder)?.traces()?));
    }
    let results: Vec<Value> =
        done.iter().flat_map(|(part, traces)| entries(part, traces)).collect();
    // A tenth of a run on two seeds is no evidence about the paper.
    let mut said = if args.figures.quick() { Vec::new() } else { claims() };
    said.retain(|claim| args.times || claim.topic != Topic::Time);
    let judged = judge(&said, &done);
    let mut figures = lopa_paper::figures::experiments::figures(&shown, args.times);
    figures.extend(
        lopa_paper::figures::experiments::savings(&judged).map(|one| ("savings".to_string(), one)),
    );
    pictures::save(&args.out, &figures, ImageFormat::available())?;
    let search = figures::search(&args.figures, &program.registries)?;
    write_results(args, &results, &judged, &figures, search.as_ref())?;
    write_report(args, shown, &judged)?;
    if output.json() {
        output.document(&Value::Array(results));
    } else {
        output.text(&levels(&results, args, output));
        if args.figures.quick() {
            output.note(
                "a tenth of the run on two seeds is neither compared with the paper nor judged",
            );
        } else {
            output.text(&verdicts(&judged, output));
        }
    }
    output.note(&format!("results in {}", args.out.display()));
    Ok(ExitCode::SUCCESS)
}

/// The folder of an experiment in which all its runs have ended.
fn finished(experiment: &Experiment, runs: &Path) -> Result<PathBuf> {
    let folders = std::fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path());
    let whole = |folder: &PathBuf| {
        let Ok(reader) = RunReader::open(folder) else { return false };
        let (Ok(source), Ok(ended)) = (reader.resolved(), reader.results()) else { return false };
        let same = source.text.parse::<toml::Table>().is_ok_and(|all| all == experiment.resolved());
        let pairs = experiment.algorithms.iter().flat_map(|spec| {
            experiment.run.seeds.iter().map(move |&seed| (spec.label.as_str(), seed))
        });
        same && pairs.into_iter().all(|(label, seed)| {
            ended.iter().any(|run| {
                run.algorithm == label && run.seed == seed && run.stop != Stop::Interrupted
            })
        })
    };
    folders.into_iter().find(whole).ok_or_else(|| {
        let message = format!("`{}` has no finished runs", experiment.name);
        Error::config("config/missing-key", message)
            .at(runs.display().to_string())
            .hint("leave `--finished` out to run it, or name only the figures that were run")
    })
}

/// The data set used last: experiments that share one are adjacent.
#[derive(Default)]
struct Cache {
    last: Option<(DataSpec, Data)>,
    checked: Vec<Choice<SourceBuild>>,
}

impl Cache {
    /// Fails if the data set of an experiment cannot be loaded.
    fn check(&mut self, experiment: &Experiment, context: &Context) -> Result<()> {
        let Some(spec) = &experiment.data else { return Ok(()) };
        if !self.checked.contains(&spec.source) {
            self.load(experiment, context)?;
            self.checked.push(spec.source.clone());
        }
        Ok(())
    }

    fn load(&mut self, experiment: &Experiment, context: &Context) -> Result<Option<&Data>> {
        let Some(spec) = &experiment.data else { return Ok(None) };
        let same =
            |last: &DataSpec| last.source == spec.source && last.preparation == spec.preparation;
        if !self.last.as_ref().is_some_and(|(last, _)| same(last)) {
            self.last = None;
            let data = experiment.load_data(context)?.expect("there is a data section");
            self.last = Some((spec.clone(), data));
        }
        Ok(self.last.as_ref().map(|(_, data)| data))
    }
}

fn write_results(
    args: &ReproduceArgs,
    results: &[Value],
    judged: &[Judgement],
    figures: &[(String, Figure)],
    search: Option<&TuneSpec>,
) -> Result<()> {
    let command = figures::command(&args.figures, args.times, args.page.is_some());
    let pages = |folder: &str, appendix: &str| {
        let address = |(name, _): &(String, Figure)| format!("{folder}{name}.svg");
        let pictures: Vec<String> = figures.iter().map(address).collect();
        let (quick, times) = (args.figures.quick(), args.times);
        let (command, entries, pictures) = (&command, results, &pictures);
        let pages = Pages { command, entries, judged, pictures, appendix, search, quick, times };
        (pages.first(), pages.tables())
    };
    let pretty = |value: Value| format!("{value:#}\n");
    write(&args.out.join("results.json"), &pretty(Value::Array(results.to_vec())))?;
    write(&args.out.join("claims.json"), &pretty(json!(judged)))?;
    write(&args.out.join("claims.md"), &table(judged))?;
    let (first, tables) = pages("", "reproduction-tables.md");
    write(&args.out.join("reproduction.md"), &first)?;
    write(&args.out.join("reproduction-tables.md"), &tables)?;
    let Some(path) = &args.page else { return Ok(()) };
    let folder = path.with_extension("");
    for (name, figure) in figures {
        write(&folder.join(format!("{name}.svg")), &figure.svg())?;
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let appendix = format!("{name}-tables.md");
    let (first, tables) = pages(&format!("{name}/"), &appendix);
    write(path, &first)?;
    write(&path.with_file_name(appendix), &tables)
}

fn write_report(args: &ReproduceArgs, shown: Vec<Shown>, judged: &[Judgement]) -> Result<()> {
    let report = Report {
        title: "The paper, reproduced".into(),
        runs: shown.into_iter().map(|one| one.saved).collect(),
        claims: judged.iter().map(|judgement| json!(judgement)).collect(),
        view: View::default(),
    };
    write(&args.out.join("report.html"), &report.html())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    output::write(path, text.as_bytes(), "the reproduction", output::OTHER)
}

/// The measured levels, beside the paper's where they are of the same length.
fn levels(results: &[Value], args: &ReproduceArgs, output: &Output) -> String {
    let (beside, times) = (!args.figures.quick(), args.times);
    let row = |entry: &Value| {
        let word = |key: &str| entry[key].as_str().unwrap_or("").to_string();
        let level = paper::level(entry);
        let shown = |value: Option<f64>| value.map_or(String::new(), number);
        let mean = |key: &str| shown(entry[key]["mean"].as_f64());
        let figure = word("figure");
        let mut row = vec![
            if figure == "fig5" { "fig5, fig6".into() } else { figure },
            format!("{} {}", word("dataset"), word("variant")),
            count(entry).named(&word("algorithm")),
            word("steps"),
        ];
        row.push(mean("loss"));
        row.extend(beside.then(|| shown(level.as_ref().and_then(|level| level.loss))));
        row.push(mean("test_accuracy"));
        row.extend(beside.then(|| shown(level.map(|level| level.test_accuracy))));
        row.extend(["phi", "consensus", "hessians"].map(mean));
        row.extend(times.then(|| mean("seconds")));
        row
    };
    let mut head = vec!["figure", "data", "algorithm", "steps", "loss"];
    head.extend(beside.then_some("paper"));
    head.push("test acc.");
    head.extend(beside.then_some("paper"));
    head.extend(["Φ(x̄)", "consensus", "Hess·v"]);
    head.extend(times.then_some("seconds"));
    output.list(&head, once(results).map(row).collect())
}

fn verdicts(judged: &[Judgement], output: &Output) -> String {
    let row = |judgement: &Judgement| {
        let Judgement { figure, claim, steps, .. } = judgement;
        let (figure, steps) = (figure.to_string(), steps.to_string());
        vec![figure, claim.clone(), steps, judgement.effect(), judgement.words()]
    };
    let head = ["figure", "claim", "steps", "difference (95 %)", "verdict"];
    output.list(&head, judged.iter().map(row).collect())
}
