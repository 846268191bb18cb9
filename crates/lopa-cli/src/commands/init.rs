//! `lopa init`: a first experiment on a user's own data.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lopa::error::{Error, Result};
use lopa_base::store;
use lopa_study::init::{Facts, Predicted, Wish, Written, init as write};
use serde_json::{Value, json};

use super::environment::Environment;
use super::signals::Signals;
use crate::args::{DataArgs, ThreadArgs};
use crate::output::{Output, number};
use crate::program::Program;

mod search;

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Your data: a CSV, LIBSVM or NPZ file; or a folder, or several files, with one for each node
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    /// The column to predict, by name or number from 0 (-1 is the last); several columns of numbers, or a
    /// time and an event, separated by commas [default: guessed and reported]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', allow_negative_numbers = true)]
    label: Vec<String>,
    /// The column with the group of each row: each of its values becomes a node
    #[arg(long, value_name = "COLUMN", conflicts_with = "nodes")]
    nodes_from: Option<String>,
    /// Columns to leave out, by name or number from 0, or features by their index in a LIBSVM file,
    /// separated by commas [default: identifiers and constants, which are reported]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    drop: Vec<String>,
    /// The classes in their order, separated by commas [default: all that occur]
    #[arg(long, value_name = "CLASS,...", value_delimiter = ',')]
    classes: Vec<String>,
    /// Number of features of LIBSVM files [default: the largest index of all files]
    #[arg(long, value_name = "N")]
    features: Option<usize>,
    /// Number of nodes that the rows are dealt to [default: 8, fewer for few rows]
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// Problem (`lopa list problems`) [default: by the size of the data]
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,
    /// Protect rows by this privacy budget: noise in all that is sent, no trial, no scaling by moments of rows
    #[arg(long, value_name = "E")]
    epsilon: Option<f64>,
    /// Seconds to try the file on the data; it is written in any case
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// File to write the experiment to; `-` is standard output [default: the name of the data with `.toml`]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn init(args: &InitArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    if args.nodes.is_some_and(|nodes| nodes == 0) {
        return Err(Error::config("config/out-of-range", "0 nodes cannot learn anything")
            .at("--nodes")
            .hint("choose 2 or more"));
    }
    if let Some(problem) = &args.problem {
        program.registries.problems.find(problem).map_err(|error| error.at("--problem"))?;
    }
    if let Some(epsilon) = args.epsilon.filter(|&epsilon| !(1e-6..=1000.0).contains(&epsilon)) {
        let message = format!("`{epsilon}` is no privacy budget: it must be from 0.000001 to 1000");
        return Err(Error::config("config/out-of-range", message)
            .at("--epsilon")
            .hint("usual budgets are from 1 to 10; a smaller one says less about a row"));
    }
    let out = args.out.clone().unwrap_or_else(|| beside(&args.data));
    if out.exists() && !store::output::is_stream(&out) && !args.force {
        return Err(Error::storage("storage/exists", "there is such a file already")
            .at(out.display().to_string())
            .hint("choose another with -o, or replace it with --force"));
    }
    let environment = Environment::new(&args.threads, &DataArgs::default())?;
    let wish = Wish {
        data: args.data.clone(),
        label: args.label.clone(),
        nodes_from: args.nodes_from.clone(),
        drop: args.drop.clone(),
        classes: args.classes.clone(),
        features: args.features,
        nodes: args.nodes,
        problem: args.problem.clone(),
        epsilon: args.epsilon,
    };
    let end = End { out: &out, output, seconds: args.seconds, signals: &environment.signals };
    search::watched(&end, &|hear| write(&wish, &program.registries, &environment.context(), hear))
}

/// The output of a search.
struct End<'a> {
    out: &'a Path,
    output: &'a Output,
    seconds: u64,
    signals: &'a Signals,
}

impl End<'_> {
    /// Writes the file, and prints a summary; `stopped` is why the search ended early.
    fn write(&self, written: &Written, stopped: Option<&str>) -> Result<()> {
        let out = self.out;
        let bytes = written.text.as_bytes();
        store::output::write(out, bytes, "the experiment", store::output::OTHER)?;
        let output = &self.output.beside(out);
        match output.json() {
            true => output.document(&described(written, out, stopped)),
            false => output.text(&said(written)),
        }
        if let Some(stopped) = stopped {
            let text =
                format!("{stopped}: the file was not tried; --seconds gives the trial more time");
            output.warn(&text);
        }
        let file = out.display();
        output.note(&format!(
            "wrote {file}. Next:\n  lopa check {file}                                # what it says, defaults filled in\n  \
             lopa run {file}                                  # train, and save the personal models\n  \
             lopa tune {file} --set 'tune.seeds=[101, 102]'   # look for better step sizes"
        ));
        Ok(())
    }
}

fn described(written: &Written, out: &Path, stopped: Option<&str>) -> Value {
    let Written { facts, guesses, baseline, .. } = written;
    let class = |(name, rows): &(String, usize)| json!({ "name": name, "rows": rows });
    let tried = |(label, value): &(String, f64)| (label.clone(), json!(value));
    let tried: serde_json::Map<_, _> = written.tried.iter().map(tried).collect();
    let mut document = json!({
        "file": out,
        "rows": facts.rows,
        "features": facts.features,
        "classes": [],
        "numbers": null,
        "nodes": facts.nodes,
        "guesses": guesses,
        "stopped": stopped,
    });
    let (measure, of) = match &facts.predicted {
        Predicted::Classes(classes) => {
            document["classes"] = classes.iter().map(class).collect();
            ("accuracy", Some("majority"))
        }
        Predicted::Numbers(ranges) => {
            document["numbers"] = match &ranges[..] {
                [range] => json!(range),
                ranges => json!(ranges),
            };
            ("r2", Some("r2_of_mean"))
        }
        Predicted::Survival { times, events } => {
            document["times"] = json!(times);
            document["events"] = json!(events);
            ("concordance", None)
        }
    };
    document[measure] = Value::Object(tried);
    if let Some(of) = of {
        document[of] = json!(baseline);
    }
    document
}

fn said(Written { facts, guesses, tried, baseline, .. }: &Written) -> String {
    let Facts { rows, features, nodes, .. } = facts;
    let from_to = |[low, _, high]: &[f64; 3]| format!("from {} to {}", number(*low), number(*high));
    let predicted = match &facts.predicted {
        Predicted::Classes(classes) => format!("{} classes", classes.len()),
        Predicted::Numbers(ranges) => {
            let each: Vec<String> = ranges.iter().map(from_to).collect();
            format!("numbers {}", each.join(" and "))
        }
        Predicted::Survival { times, events } => {
            format!("times {} with {events} events", from_to(times))
        }
    };
    let mut lines = vec![format!("{rows} rows, {features} features, {predicted}, {nodes} nodes")];
    lines.extend(guesses.iter().cloned());
    let tried: Vec<String> =
        tried.iter().map(|(label, value)| format!("{label} {}", number(*value))).collect();
    let (measure, who, baseline) = match facts.predicted {
        Predicted::Classes(_) => {
            let who = "majority class (each node always names its most frequent one)";
            ("accuracy", who, *baseline)
        }
        Predicted::Numbers(_) => ("R²", "each node always names the mean of its rows", *baseline),
        Predicted::Survival { .. } => ("concordance", "by chance", Some(0.5)),
    };
    let baseline = baseline.map_or(String::new(), |value| format!("; {who} {}", number(value)));
    if !tried.is_empty() {
        let tried = tried.join(", ");
        lines.push(format!("{measure} on held-out rows in a trial: {tried}{baseline}"));
    }
    lines.join("\n")
}

/// `my.csv` → `my.toml`, in the current folder.
fn beside(data: &[PathBuf]) -> PathBuf {
    let several = data.len() > 1;
    let first = data.first().map(PathBuf::as_path).unwrap_or(Path::new("experiment"));
    let named = if several { first.parent().unwrap_or(first) } else { first };
    let name = named.file_name().unwrap_or_default().to_string_lossy().to_string();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("experiment");
    PathBuf::from(format!("{stem}.toml"))
}
