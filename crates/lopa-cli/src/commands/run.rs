//! `lopa run`: every algorithm of an experiment on every seed.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lopa::data::Where;
use lopa::error::{Error, Result};
use lopa::experiment::Experiment;
use lopa::folder::{self, RunFolder};
use lopa::run::{Context, Observer, Outcome, World};
use lopa::trace::{Row, Stop};
use serde_json::Value;

use super::source::source;
use super::summary;
use crate::args::RunArgs;
use crate::output::Output;

pub fn run(args: &RunArgs, output: &Output) -> Result<ExitCode> {
    let source = source(&args.file)?;
    let mut experiment = Experiment::read(&source)?;
    if !args.seeds.is_empty() {
        experiment.run.seeds = args.seeds.clone();
        experiment.run.seeds.sort_unstable();
        experiment.run.seeds.dedup();
    }
    let threads = threads(args.jobs)?;
    let pool = pool(threads)?;
    let signals = Signals::listen()?;
    let context = Context {
        pool: pool.as_ref(),
        data_dir: Where::new(args.file.data.as_deref(), 0).directory,
        interrupt: &signals.either,
    };
    output.note(&summary::heading(&experiment));
    if args.dry_run {
        return dry_run(&experiment, &context, output);
    }
    let data = experiment.load_data(&context)?;
    let folder = RunFolder::create(&args.out, &experiment, data.as_ref(), threads)?;
    let mut reporter = Reporter::new(output, folder, &experiment);
    let outcomes = experiment.run_on(data.as_ref(), &context, &mut reporter)?;
    let status = if signals.code().is_some() { "interrupted" } else { "done" };
    reporter.folder.finish(status)?;
    if output.json() {
        output.document(&Value::Array(outcomes.iter().map(folder::result).collect()));
    } else {
        output.text(&summary::table(&experiment, &outcomes));
    }
    output.note(&format!("\n{}", summary::closing(&experiment, &outcomes)));
    output.note(&format!("trajectory digest {}", summary::digest(&outcomes)));
    output.note(&format!("results in {}", reporter.folder.path().display()));
    Ok(exit_code(&outcomes, &signals))
}

fn exit_code(outcomes: &[Outcome], signals: &Signals) -> ExitCode {
    let diverged = outcomes.iter().filter(|outcome| outcome.stop == Stop::Diverged).count();
    match (signals.code(), diverged) {
        (Some(code), _) => ExitCode::from(code),
        (None, 0) => ExitCode::SUCCESS,
        (None, n) if n == outcomes.len() => ExitCode::from(1),
        (None, _) => ExitCode::from(9),
    }
}

fn dry_run(experiment: &Experiment, context: &Context, output: &Output) -> Result<ExitCode> {
    let data = experiment.load_data(context)?;
    for &seed in &experiment.run.seeds {
        let world = experiment.world(data.as_ref(), seed)?;
        let parts = experiment.parts::<f64>(data.as_ref(), &world, seed)?;
        let dims = parts[0].dims();
        output.text(&format!(
            "seed {seed}: {} nodes, {} edges, rho {:.4}; x has {} entries, theta {}",
            world.graph.nodes(),
            world.graph.edges().count(),
            world.analysis.rho,
            dims.n,
            dims.p
        ));
    }
    output.note("everything checks out; nothing was run");
    Ok(ExitCode::SUCCESS)
}

/// As many threads as asked for, or as there are cores.
pub fn threads(asked: Option<usize>) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match asked {
        None => Ok(cores),
        Some(n) if (1..=1024).contains(&n) => Ok(n),
        Some(n) => Err(Error::config("config/out-of-range", format!("{n} threads cannot be had"))
            .at("--jobs")
            .hint("ask for 1 to 1024")),
    }
}

/// A pool of threads, if more than one is asked for.
pub fn pool(threads: usize) -> Result<Option<rayon::ThreadPool>> {
    if threads == 1 {
        return Ok(None);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(Some).map_err(|error| {
        Error::config("config/threads", format!("cannot start {threads} threads: {error}"))
            .at("--jobs")
    })
}

/// Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends at once.
pub struct Signals {
    pub either: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
}

impl Signals {
    pub fn listen() -> Result<Signals> {
        let signals = Signals {
            either: Arc::new(AtomicBool::new(false)),
            terminated: Arc::new(AtomicBool::new(false)),
        };
        let register = || -> std::io::Result<()> {
            use signal_hook::consts::{SIGINT, SIGTERM};
            use signal_hook::flag;
            for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
                flag::register_conditional_shutdown(signal, code, signals.either.clone())?;
                flag::register(signal, signals.either.clone())?;
            }
            flag::register(SIGTERM, signals.terminated.clone())?;
            Ok(())
        };
        register().map_err(|error| {
            Error::config("config/signals", format!("cannot listen to signals: {error}"))
        })?;
        Ok(signals)
    }

    pub fn code(&self) -> Option<u8> {
        let stopped = self.either.load(Ordering::Relaxed);
        let terminated = self.terminated.load(Ordering::Relaxed);
        stopped.then_some(if terminated { 143 } else { 130 })
    }
}

/// Writes the folder and shows progress.
struct Reporter<'a> {
    output: &'a Output,
    folder: RunFolder,
    bar: Option<ProgressBar>,
    runs: usize,
    done: usize,
    name: String,
    spoke: Instant,
    warned: Vec<String>,
}

impl<'a> Reporter<'a> {
    fn new(output: &'a Output, folder: RunFolder, experiment: &Experiment) -> Reporter<'a> {
        let runs = experiment.algorithms.len() * experiment.run.seeds.len();
        Reporter {
            output,
            folder,
            bar: None,
            runs,
            done: 0,
            name: String::new(),
            spoke: Instant::now(),
            warned: Vec::new(),
        }
    }
}

impl Observer for Reporter<'_> {
    fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        self.folder.world(seed, world)
    }

    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.name = format!("[{}/{}] {algorithm}, seed {seed}", self.done + 1, self.runs);
        if self.output.bars() {
            let template = "{prefix:<30} {bar:30.cyan/dim} {percent:>3}% {msg} eta {eta}";
            let style =
                ProgressStyle::with_template(template).expect("the template is well-formed");
            let bar = ProgressBar::new(1000).with_style(style.progress_chars("━╸─"));
            bar.set_prefix(self.name.clone());
            self.bar = Some(bar);
        }
        self.spoke = Instant::now();
    }

    fn warn(&mut self, text: &str) {
        if !self.warned.iter().any(|warned| warned == text) {
            self.output.warn(text);
            self.warned.push(text.to_string());
        }
    }

    fn progress(&mut self, iteration: u64, fraction: f64) {
        if let Some(bar) = &self.bar {
            let rate = iteration as f64 / bar.elapsed().as_secs_f64().max(1e-9);
            bar.set_message(format!("{rate:.0} iterations/s"));
            bar.set_position((fraction * 1000.0) as u64);
        } else if self.spoke.elapsed() > Duration::from_secs(10) {
            let percent = 100.0 * fraction;
            self.output.note(&format!("{}: {percent:.0} %, iteration {iteration}", self.name));
            self.spoke = Instant::now();
        }
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        self.folder.row(algorithm, seed, row)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        self.done += 1;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if outcome.stop == Stop::Diverged {
            let why = outcome.diagnosis.as_deref().unwrap_or("its values are not numbers");
            let k = outcome.row.iteration;
            self.output.warn(&format!("{} diverged at iteration {k}: {why}", self.name));
        }
        self.folder.end(outcome)
    }
}
