//! The finished runs and models that a command line names.

use std::path::{Path, PathBuf};

use clap::Args;
use lopa::data::{Named, NewRows, SURVIVAL, Target, new_rows, parsed_label};
use lopa::error::{Error, Kind, Result, nearest};
use lopa::folder::RunReader;
use lopa::folder::model::{About, Model};
use lopa::folder::serve::Truth;
use lopa::run::Outcome;
use lopa_study::seeds::Ended;

use crate::output::Output;

/// The choice of models in a run folder.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// Run folder, or a model file (.safetensors)
    pub run: PathBuf,
    /// Algorithm (its label in the experiment)
    #[arg(short, long)]
    pub algorithm: Option<String>,
    /// Seed [default: the first that did not diverge; all when evaluating on the run's own data]
    #[arg(short, long)]
    pub seed: Option<u64>,
    /// Also use models of runs that diverged, whose numbers are meaningless
    #[arg(long)]
    pub allow_diverged: bool,
}

/// Where the labels are in a data file.
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// Column of the labels, by name or by number from 0 (-1 is the last); in an .npz file, their array
    /// [default: the last column, or `y`]
    #[arg(long, requires = "input", allow_negative_numbers = true)]
    pub label: Option<String>,
}

impl LabelArgs {
    /// The column that the command line names.
    pub fn named(&self) -> Named<'_> {
        Named { label: self.label.as_deref(), group: None }
    }
}

/// The column of groups in a data file.
#[derive(Debug, Args)]
pub struct WhoseArgs {
    /// Column that says whose row it is, by name or by number from 0 [default: that of the run's own data,
    /// if the file has it]
    #[arg(long, value_name = "COLUMN", requires = "input", allow_negative_numbers = true)]
    pub nodes_from: Option<String>,
}

/// The node of each row, by the group that it belongs to.
pub fn homes(model: &Model, groups: &[String], input: &Path) -> Result<Vec<usize>> {
    let home = |group: &String| model.home(group);
    let homes: Option<Vec<usize>> = groups.iter().map(home).collect();
    homes.ok_or_else(|| {
        let lost: Vec<&String> = groups.iter().filter(|group| home(group).is_none()).collect();
        let known: Vec<&String> =
            model.about.nodes.iter().chain(model.about.groups.keys()).collect();
        let near = nearest(lost[0], known.iter().map(|name| name.as_str()));
        let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let known: Vec<&str> = known.iter().take(12).map(|name| name.as_str()).collect();
        let known = match known.is_empty() {
            true => "the nodes of the run have no names: choose one with --node".to_string(),
            false => format!("the model has {}", known.join(", ")),
        };
        let message =
            format!("{} rows belong to no node of the run: there is no `{}`", lost.len(), lost[0]);
        Error::data("data/unknown-node", message)
            .at(input.display().to_string())
            .hint(format!("{did}{known}; `lopa adapt` makes a model for a new node"))
    })
}

/// The finished runs of a run folder; at least one.
pub struct Finished {
    pub folder: RunReader,
    results: Vec<Outcome>,
}

impl Finished {
    pub fn open(folder: &Path) -> Result<Finished> {
        let folder = RunReader::open(folder)?;
        folder.check()?;
        let results = folder.results()?;
        if results.is_empty() {
            let message = "no run in this folder has ended: its results are empty";
            return Err(Error::storage("storage/read", message)
                .at(folder.path().join("results.json").display().to_string())
                .hint("run the command that started it again: it resumes"));
        }
        Ok(Finished { folder, results })
    }

    /// The runs of the requested algorithm and seed, or all; without those that diverged, unless
    /// they are allowed.
    pub fn runs(&self, args: &ModelArgs, output: &Output) -> Result<Vec<&Outcome>> {
        let runs = self.named(args)?;
        let lost: Vec<&Outcome> = runs.iter().copied().filter(|run| run.diverged()).collect();
        if lost.is_empty() || args.allow_diverged {
            return Ok(runs);
        }
        let name = |run: &&Outcome| format!("{} with seed {}", run.algorithm, run.seed);
        let names = lost.iter().map(name).collect::<Vec<_>>().join(", ");
        if lost.len() < runs.len() {
            output.warn(&format!(
                "left out, because the runs diverged: {names} (`--allow-diverged` uses them)"
            ));
            return Ok(runs.into_iter().filter(|run| !run.diverged()).collect());
        }
        let sound = self.results.iter().filter(|run| !run.diverged());
        let others: Vec<String> =
            sound.map(|run| format!("`-a {} -s {}`", run.algorithm, run.seed)).collect();
        let choose = match &others[..] {
            [] => "run it again with smaller steps".to_string(),
            some => format!("choose one that did not ({})", some.join(", ")),
        };
        let message = format!("the models mean nothing, because the runs diverged: {names}");
        Err(Error::new(Kind::Run, "run/diverged", message)
            .at(self.folder.path().display().to_string())
            .hint(format!("{choose}, or use them all the same with `--allow-diverged`")))
    }

    /// The runs of the requested algorithm and seed, or all.
    fn named(&self, args: &ModelArgs) -> Result<Vec<&Outcome>> {
        let unknown = |flag: &str, typed: &str, message: String, known: Vec<String>| {
            let near = nearest(typed, known.iter().map(String::as_str));
            let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            Error::config("config/unknown-name", message)
                .at(flag)
                .hint(format!("{did}it has: {}", known.join(", ")))
        };
        let mut runs: Vec<&Outcome> = self.results.iter().collect();
        if let Some(wanted) = &args.algorithm {
            let known = names(&one_each(&runs));
            runs.retain(|run| run.algorithm == *wanted);
            if runs.is_empty() {
                let message = format!("the run has no algorithm `{wanted}`");
                return Err(unknown("--algorithm", wanted, message, known));
            }
        }
        if let Some(wanted) = args.seed {
            let mut known: Vec<String> = runs.iter().map(|run| run.seed.to_string()).collect();
            known.dedup();
            runs.retain(|run| run.seed == wanted);
            if runs.is_empty() {
                let message = format!("the run has no seed {wanted}");
                return Err(unknown("--seed", "", message, known));
            }
        }
        Ok(runs)
    }

    /// The models a run ended with.
    pub fn model(&self, run: &Outcome) -> Result<Model> {
        let mut model = self.folder.model(&run.algorithm, run.seed)?;
        model.about.diverged |= run.diverged();
        Ok(model)
    }
}

/// The models that a command line names: those of a file, or of the first run of each algorithm.
pub fn models(args: &ModelArgs, output: &Output) -> Result<Vec<Model>> {
    let models = match args.run.is_file() {
        true => vec![of_file(args)?],
        false => {
            let finished = Finished::open(&args.run)?;
            let runs = one_each(&finished.runs(args, output)?);
            runs.into_iter().map(|run| finished.model(run)).collect::<Result<_>>()?
        }
    };
    let predicts_nothing = |about: &&About| about.target().width() == 0;
    if let Some(about) = models.iter().map(|m| &m.about).find(predicts_nothing) {
        let message = format!("models of the problem `{}` cannot predict", about.problem);
        return Err(Error::config("config/no-meaning", message)
            .at(args.run.display().to_string())
            .hint("choose a run on labelled data"));
    }
    Ok(models)
}

/// The one model that a command line names.
pub fn one_model(args: &ModelArgs, output: &Output) -> Result<Model> {
    let mut models = models(args, output)?;
    if models.len() > 1 {
        let names: Vec<&str> = models.iter().map(|model| &model.about.algorithm[..]).collect();
        return Err(Error::config("config/missing-key", "the run has several algorithms")
            .at("--algorithm")
            .hint(format!("choose one of: {}", names.join(", "))));
    }
    Ok(models.remove(0))
}

fn of_file(args: &ModelArgs) -> Result<Model> {
    let model = Model::load(&args.run)?;
    let other = |flag: &str, wanted: String, has: String| {
        Error::config("config/unknown-name", format!("the model is not of {wanted}"))
            .at(flag)
            .hint(format!("it has: {has}"))
    };
    let (algorithm, seed) = (&model.about.algorithm, model.about.seed);
    if let Some(wanted) = args.algorithm.as_ref().filter(|wanted| *wanted != algorithm) {
        return Err(other("--algorithm", format!("`{wanted}`"), algorithm.clone()));
    }
    if let Some(wanted) = args.seed.filter(|&wanted| wanted != seed) {
        return Err(other("--seed", format!("seed {wanted}"), seed.to_string()));
    }
    if model.about.diverged && !args.allow_diverged {
        let message = "the model means nothing, because its run diverged";
        return Err(Error::new(Kind::Run, "run/diverged", message)
            .at(args.run.display().to_string())
            .hint("run it again with smaller steps, or use it with `--allow-diverged`"));
    }
    Ok(model)
}

/// The first run of each algorithm.
pub fn one_each<'a>(runs: &[&'a Outcome]) -> Vec<&'a Outcome> {
    let mut first: Vec<&Outcome> = Vec::new();
    for run in runs {
        if first.iter().all(|other| other.algorithm != run.algorithm) {
            first.push(run);
        }
    }
    first
}

/// The algorithms of some runs.
pub fn names(runs: &[&Outcome]) -> Vec<String> {
    runs.iter().map(|run| run.algorithm.clone()).collect()
}

/// The rows of a file for a model.
pub fn rows_for(
    about: &About,
    input: &Path,
    (label, whose): (&LabelArgs, &WhoseArgs),
    output: &Output,
) -> Result<NewRows> {
    let named = Named { group: whose.nodes_from.as_deref(), ..label.named() };
    let rows = new_rows(input, &about.needs(), named)?;
    if rows.guessed {
        check_guess(&rows, about, input, output)?;
    }
    Ok(rows)
}

/// Refuses a file whose last column was guessed to be the labels and holds nothing that the model
/// predicts: it may be a feature.
fn check_guess(rows: &NewRows, about: &About, input: &Path, output: &Output) -> Result<()> {
    let Some(labels) = &rows.labels else { return Ok(()) };
    let strange = match about.target() {
        Target::Classes(_) => {
            Truth::new(labels, &about.classes).numbers.iter().position(Option::is_none)
        }
        Target::Numbers(outputs) => {
            labels.iter().position(|label| parsed_label(label, outputs).is_err())
        }
        Target::Survival => labels.iter().position(|label| parsed_label(label, SURVIVAL).is_err()),
    };
    let Some(row) = strange else {
        output.note(
            "labels: the last column, since there is one more than the model has features (name another \
             with --label)",
        );
        return Ok(());
    };
    let message = format!(
        "there is one column more than the model has features, and the last one holds no labels: \
         `{}` is nothing that the model predicts",
        labels[row]
    );
    Err(Error::data("data/no-labels", message)
        .at(format!("{}, row {}", input.display(), row + 1))
        .hint(
            "take out the column that is not a feature, or name the column of labels with --label",
        ))
}
