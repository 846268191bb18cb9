//! `lopa data stats`: describes a data set, or a user's own file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lopa::data::{self, CellKind, ColumnLook, Data, Look, MAX_DISTINCT, Remark, Where, look};
use lopa::error::{Error, Result};
use lopa::math::portable::{ln, ln_1p};
use serde_json::{Value, json};

use crate::args::DataArgs;
use crate::output::{Output, bytes, number};
use crate::program::Program;

#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Names of data sets, or files: .csv, .tsv, .data, .libsvm, .svm, .txt, .npy, .npz or IDX
    #[arg(value_name = "NAME|FILE")]
    names: Vec<String>,
    /// Column of the labels, by name or by number from 0 (-1 is the last); in an .npz file, their array
    /// [default: the last column, or `y`]
    #[arg(long, allow_negative_numbers = true)]
    label: Option<String>,
    #[command(flatten)]
    data: DataArgs,
}

/// Formats that need a file.
const FORMATS: [&str; 4] = ["csv", "libsvm", "npy", "npz"];

/// How many columns and classes a table shows.
const SHOWN: usize = 30;

pub fn stats(args: &StatsArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    if args.names.is_empty() {
        return Err(Error::config("config/missing-key", "which data set or file?")
            .hint("for example `lopa data stats my.csv` or `lopa data stats mnist`"));
    }
    let place = Where { directory: args.data.folder(), seed: 0 };
    let mut documents = Vec::new();
    for name in &args.names {
        let (document, text) = match file(name, &place)? {
            Some(path) => {
                let look = look(&path, args.label.as_deref())?;
                (described_file(name, &look), file_text(name, &look, output))
            }
            None => {
                let missing = Some(data::Missing::Mean);
                let preparation = data::Preparation { missing, ..Default::default() };
                let source = program.registries.sources.choose(name, &toml::Table::new())?;
                let data = data::load(&*source.build, &preparation, &place)?;
                (described(name, &data), table(name, &data, output))
            }
        };
        match output.json() {
            true => documents.push(document),
            false => output.text(&text),
        }
    }
    if output.json() {
        output.document(&Value::Array(documents));
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that an argument names, unless it names a data set.
fn file(name: &str, place: &Where) -> Result<Option<PathBuf>> {
    let tried = [PathBuf::from(name), place.directory.join(name)];
    if let Some(found) = tried.into_iter().find(|path| path.is_file()) {
        return Ok(Some(found));
    }
    if FORMATS.contains(&name) {
        let message = format!("`{name}` is a format: which file?");
        return Err(Error::config("config/missing-key", message)
            .hint(format!("name it: `lopa data stats my.{name}`")));
    }
    match name.contains(['.', '/', std::path::MAIN_SEPARATOR]) {
        false => Ok(None),
        true => Err(Error::data("data/missing", format!("there is no file `{name}`"))
            .hint("give its path; `lopa data list` shows the data sets with a name")),
    }
}

/// The number of samples of each class.
fn counts(labels: &[u32], classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

/// The share of nonzero training features.
fn density(data: &Data) -> f64 {
    let mut filled = 0u64;
    for row in 0..data.train.len() {
        data.train.each(row, |_, value| filled += u64::from(value != 0.0));
    }
    filled as f64 / (data.train.len() * data.train.cols()).max(1) as f64
}

fn described(name: &str, data: &Data) -> Value {
    let classes = data.classes.len();
    json!({
        "name": name,
        "train": data.train.len(),
        "test": data.test.len(),
        "features": data.train.cols(),
        "density": density(data),
        "classes": data.classes,
        "train_counts": counts(data.train.labels(), classes),
        "test_counts": counts(data.test.labels(), classes),
        "digest": data::digest(data),
    })
}

fn table(name: &str, data: &Data, output: &Output) -> String {
    let classes = data.classes.len();
    let (train, test) = (counts(data.train.labels(), classes), counts(data.test.labels(), classes));
    let rows = data.classes.iter().zip(train.iter().zip(&test));
    let rows =
        rows.map(|(class, (train, test))| vec![class.clone(), train.to_string(), test.to_string()]);
    format!(
        "{name}: {} training rows, {} test rows, {} features, {:.1} % nonzero\n\n{}",
        data.train.len(),
        data.test.len(),
        data.train.cols(),
        100.0 * density(data),
        output.table(&["class", "train", "test"], rows.collect())
    )
}

fn described_file(name: &str, look: &Look) -> Value {
    let mut value = json!(look);
    let effect =
        |(scaling, effect): (&str, String)| json!({ "scaling": scaling, "effect": effect });
    value["name"] = name.into();
    value["scalings"] = effects(look).into_iter().map(effect).collect();
    value["advice"] = advice(look).into();
    value
}

fn file_text(name: &str, look: &Look, output: &Output) -> String {
    let percent = 100.0 * look.density;
    let mut text = format!(
        "{name}: {}, {} rows, {} features, {percent:.1} % nonzero\n\n",
        look.format,
        look.rows,
        look.columns.len()
    );
    let head = ["column", "type", "missing", "values", "min", "max", "mean", "deviation"];
    let columns = look.columns.iter().take(SHOWN).map(column_row).collect();
    text += &output.table(&head, columns);
    text += &more(look.columns.len(), "columns");
    if let Some(labels) = look.labels.as_ref().filter(|labels| labels.numbers) {
        let column = labels.column.as_ref();
        let row = column.map(|column| vec![column_row(column)]).unwrap_or_default();
        text += &format!("\n\n{}", output.table(&NUMBERS, row));
    } else if let Some(labels) = &look.labels {
        let classes = labels.classes.iter().take(SHOWN);
        let classes = classes.map(|(class, rows)| vec![class.clone(), rows.to_string()]).collect();
        let head = format!("class ({})", labels.name);
        text += &format!("\n\n{}", output.table(&[&head, "rows"], classes));
        text += &more(labels.classes.len(), "classes");
    }
    let effects = effects(look).into_iter().map(|(name, effect)| vec![name.into(), effect]);
    text += &format!("\n\n{}", output.list(&["scaling", "what it does here"], effects.collect()));
    let advice: String = advice(look).iter().map(|advice| format!("\n- {advice}")).collect();
    if advice.is_empty() { text } else { format!("{text}\n{advice}") }
}

/// The heads of a label that is a number to predict.
const NUMBERS: [&str; 8] =
    ["number to predict", "type", "missing", "values", "min", "max", "mean", "deviation"];

fn more(all: usize, what: &str) -> String {
    match all.checked_sub(SHOWN + 1) {
        None => String::new(),
        Some(_) => format!("\n… and {} more {what}; `--format json` has all", all - SHOWN),
    }
}

fn column_row(column: &ColumnLook) -> Vec<String> {
    let kind = match column.kind {
        CellKind::Integer => "integer",
        CellKind::Number => "number",
        CellKind::Text => "text",
        CellKind::Empty => "empty",
    };
    let values = match column.distinct {
        None => "–".to_string(),
        Some(MAX_DISTINCT) => format!("{MAX_DISTINCT}+"),
        Some(distinct) => distinct.to_string(),
    };
    let ColumnLook { name, missing, min, max, mean, deviation, .. } = column;
    let numbers = match column.kind {
        CellKind::Text | CellKind::Empty => ["–"; 4].map(String::from),
        _ => [*min, *max, *mean, *deviation].map(number),
    };
    let first = [name.clone(), kind.into(), missing.to_string(), values];
    first.into_iter().chain(numbers).collect()
}

/// Extremes over all columns of numbers.
struct Extremes {
    min: f64,
    max: f64,
    smallest_deviation: f64,
    largest_deviation: f64,
    farthest: f64, // from a mean, in deviations
    constant: usize,
}

fn extremes(look: &Look) -> Extremes {
    let numbers = || look.columns.iter().filter(|column| column.text.is_none());
    let varied = || numbers().filter(|column| column.deviation > 0.0);
    let fold = |values: &mut dyn Iterator<Item = f64>, pick: fn(f64, f64) -> f64| {
        values.reduce(pick).unwrap_or(0.0)
    };
    let far = |column: &ColumnLook| {
        (column.max - column.mean).max(column.mean - column.min) / column.deviation
    };
    Extremes {
        min: fold(&mut numbers().map(|column| column.min), f64::min),
        max: fold(&mut numbers().map(|column| column.max), f64::max),
        smallest_deviation: fold(&mut varied().map(|column| column.deviation), f64::min),
        largest_deviation: fold(&mut varied().map(|column| column.deviation), f64::max),
        farthest: fold(&mut varied().map(far), f64::max),
        constant: numbers().count() - varied().count(),
    }
}

/// The effect of each scaling on these features.
fn effects(look: &Look) -> Vec<(&'static str, String)> {
    let Extremes { min, max, smallest_deviation, largest_deviation, farthest, constant } =
        extremes(look);
    let largest = min.abs().max(max.abs());
    let full = bytes((8 * look.rows * look.columns.len()) as f64);
    let filled = |effect: String| match look.format {
        "libsvm" => format!("refused unless `sparse = false`: fills the table, {full}"),
        _ => effect,
    };
    let constant = match constant {
        0 => String::new(),
        1 => "; one constant column becomes 0".into(),
        _ => format!("; {constant} constant columns become 0"),
    };
    let log = |value: f64| number(value.signum() * ln_1p(value.abs()));
    let centred = format!("columns of mean 0, divided by {}", number(largest));
    let rare = number(ln((1.0 + look.rows as f64) / 2.0) + 1.0);
    let counts = match min < 0.0 {
        true => "meant for counts, and some values are negative".to_string(),
        false => {
            format!("a feature found in one row weighs {rare}, in all rows 1; rows have length 1")
        }
    };
    vec![
        (
            "none",
            format!(
                "values from {} to {}, deviations from {} to {}",
                number(min),
                number(max),
                number(smallest_deviation),
                number(largest_deviation)
            ),
        ),
        ("unit", format!("divides all by {}", number(largest))),
        (
            "standardise",
            filled(format!(
                "columns of mean 0 and deviation 1, values up to ±{}{constant}",
                number(farthest)
            )),
        ),
        ("centre", filled(centred)),
        ("log", format!("values from {} to {}", log(min), log(max))),
        ("row", "rows of length 1".to_string()),
        ("tf-idf", counts),
    ]
}

/// Deviations that differ by more than this call for a scaling.
const UNEVEN: f64 = 10.0;

/// A column by name where it has one, else by its index in the file, or counted from 1.
fn shown(look: &Look, at: usize) -> String {
    match (look.header, look.format) {
        (true, _) => format!("column `{}`", look.columns[at].name),
        (false, "libsvm") => format!("feature {}", look.columns[at].name),
        (false, _) => format!("column {} (from 1)", place(look, at) + 1),
    }
}

/// A column as the keys of `[data]` name it.
fn key(look: &Look, at: usize) -> String {
    match look.header {
        true => Value::from(look.columns[at].name.as_str()).to_string(),
        false => place(look, at).to_string(),
    }
}

/// The place of a feature among all columns, the label's among them.
fn place(look: &Look, at: usize) -> usize {
    look.columns[at].name.parse().unwrap_or(at)
}

/// The columns with a remark, in one sentence, and how to leave them out.
fn doubt(look: &Look, remark: &Remark, [one, many]: [&str; 2]) -> Option<String> {
    let has = |at: &usize| look.columns[*at].remarks.contains(remark);
    let found: Vec<usize> = (0..look.columns.len()).filter(has).collect();
    let list = |name: &dyn Fn(usize) -> String| {
        let mut some: Vec<String> = found.iter().take(NAMED).map(|&at| name(at)).collect();
        if found.len() > NAMED {
            some.push(format!("… ({} in all)", found.len()));
        }
        some.join(", ")
    };
    let columns = list(&|at| shown(look, at));
    let is = if found.len() == 1 { one } else { many };
    let drop = match look.format {
        "idx" => String::new(),
        _ => format!(": leave out with `drop = [{}]`", list(&|at| key(look, at))),
    };
    (!found.is_empty()).then(|| format!("{columns} {is}{drop}"))
}

/// The most columns named in one sentence.
const NAMED: usize = 5;

/// The obstacles to a run, and their remedies.
fn advice(look: &Look) -> Vec<String> {
    let mut advice = Vec::new();
    for name in &look.repeated_names {
        advice.push(format!("several columns are named `{name}`: give each its own name"));
    }
    let identify = ["is an identifier", "are identifiers"];
    advice.extend(doubt(look, &Remark::Identifier, identify));
    advice.extend(doubt(
        look,
        &Remark::Constant,
        ["is the same in all rows", "are the same in all rows"],
    ));
    for (at, column) in look.columns.iter().enumerate() {
        let (shown, key) = (shown(look, at), key(look, at));
        for remark in &column.remarks {
            if let Remark::Sentinel { value, cells } = remark {
                let (s, are) = if *cells == 1 { ("", "is") } else { ("s", "are") };
                advice.push(format!(
                    "{shown} has {cells} cell{s} that {are} {value}, far from all others: if that stands for a \
                     missing value, fill it in or leave the rows out"
                ));
            }
        }
        let identifies = column.remarks.contains(&Remark::Identifier);
        if let Some((text, remedy)) = column.odd(&key).filter(|_| !identifies) {
            advice.push(format!("{shown} has cells that are not numbers (`{text}`): {remedy}"));
        }
        if column.missing > 0 {
            let rows = column.missing;
            advice.push(format!(
                "{shown} lacks {rows} of {} values: `missing = \"mean\"` in [data] fills in its mean, or \
                 leave the rows out",
                look.rows
            ));
        }
    }
    if let Some(labels) = &look.labels {
        match labels.numbers {
            true => advice.push(format!(
                "the label `{}` is a number to predict: `target = \"number\"` in [data]",
                labels.name
            )),
            false => advice.extend(labels.refused.clone()),
        }
        if labels.missing > 0 {
            advice.push(format!("{} rows have no label", labels.missing));
        }
    }
    let Extremes { smallest_deviation, largest_deviation, .. } = extremes(look);
    let ratio = largest_deviation / smallest_deviation;
    if ratio > UNEVEN {
        let scaling = if look.format == "libsvm" { "tf-idf" } else { "standardise" };
        let ratio = number(ratio);
        advice.push(format!(
            "deviations differ by a factor of {ratio}: `scaling = \"{scaling}\"` makes steps easier"
        ));
    }
    advice
}
