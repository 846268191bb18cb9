//! `lopa theory rates`: measures the exponents of the corollaries.

use std::path::Path;
use std::process::ExitCode;

use lopa::error::{Error, Result, nearest};
use lopa_base::store::files::cannot_write;
use lopa_base::store::output;
use lopa_paper::figures::rates::figure;
use lopa_paper::theory::rates::{Lab, Rate, base, ids, measure, page};
use serde_json::{Value, json};

use crate::commands::paper::args::RatesArgs;
use crate::commands::source::{read_experiment, source};
use crate::commands::threads::{pool, threads};
use crate::program::Program;

pub fn rates(args: &RatesArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    check(args)?;
    let base = match &args.file.file {
        None => base(),
        Some(_) => read_experiment(&source(&args.file)?, &program.registries)?,
    };
    let pool = pool(threads(&args.threads)?)?;
    let (seeds, length) = if args.quick { (2, 0.1) } else { (args.seeds, 1.0) };
    let lab = Lab::new(base, length, pool.as_ref())?;
    let rates = measure(&lab, seeds, &args.only, &mut |rate| {
        output.note(&format!("{}: {} (predicted {})", rate.id, fitted(rate), rate.prediction()));
    })?;
    let folder =
        args.figures.clone().or_else(|| args.page.as_ref().map(|page| page.with_extension("")));
    if let Some(folder) = &folder {
        draw(folder, &rates)?;
    }
    if let Some(path) = &args.page {
        let named = |id: &str| {
            let folder = folder.as_ref()?.file_name()?.to_string_lossy().into_owned();
            Some(format!("{folder}/{id}.svg"))
        };
        write(path, &page(&rates, seeds, &named))?;
    }
    if output.json() {
        output.document(
            &json!({ "seeds": seeds, "rates": rates.iter().map(document).collect::<Vec<_>>() }),
        );
    } else {
        let row = |rate: &Rate| {
            [rate.id, rate.place, &rate.prediction(), &fitted(rate), rate.verdict()]
                .map(String::from)
                .to_vec()
        };
        let head = ["claim", "paper", "predicted", "fitted, 95 % interval", "verdict"];
        output.text(&output.list(&head, rates.iter().map(row).collect()));
    }
    let count = |verdict: &str| rates.iter().filter(|rate| rate.verdict() == verdict).count();
    output.note(&format!(
        "\n{} predicted exponents seen, {} within an upper bound, {} not seen, {} beyond a bound, {} that \
         cannot be told",
        count("seen"),
        count("within"),
        count("not seen"),
        count("exceeded"),
        count("cannot be told")
    ));
    Ok(ExitCode::SUCCESS)
}

fn check(args: &RatesArgs) -> Result<()> {
    if !(2..=1000).contains(&args.seeds) {
        let message = format!("cannot compute an interval from {} seeds", args.seeds);
        return Err(Error::config("config/out-of-range", message)
            .at("--seeds")
            .hint("choose 2 to 1000"));
    }
    let known = ids();
    match args.only.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let near = nearest(name, known.iter().copied());
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            Err(Error::config("config/unknown-name", format!("unknown claim `{name}`"))
                .at("--only")
                .hint(format!("{near}known: {}", known.join(", "))))
        }
    }
}

fn fitted(rate: &Rate) -> String {
    match &rate.fitted {
        Some(f) => format!("{:.3} [{:.3}, {:.3}]", f.mean, f.low, f.high),
        None => "not enough points".into(),
    }
}

fn document(rate: &Rate) -> Value {
    let mut value = json!(rate);
    value["verdict"] = json!(rate.verdict());
    value
}

fn draw(folder: &Path, rates: &[Rate]) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    rates
        .iter()
        .try_for_each(|rate| write(&folder.join(format!("{}.svg", rate.id)), &figure(rate).svg()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    output::write(
        path,
        text.as_bytes(),
        "the page or a figure",
        "choose another place with --page or --figures",
    )
}
