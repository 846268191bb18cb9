//! `lopa reproduce readings`: the settings that the paper leaves open.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use lopa::error::Result;
use lopa_paper::reproduce::readings::{COLUMNS, Found, page, readings as all};
use serde_json::Value;

use super::{Cache, write};
use crate::commands::environment::Environment;
use crate::commands::paper::args::ReproduceArgs;
use crate::commands::run_folder::INTERRUPTED;
use crate::program::Program;

/// Runs every reading on seeds 1 to `seeds`.
pub fn readings(args: &ReproduceArgs, seeds: u64, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let environment = Environment::new(&args.threads, &args.data)?;
    let context = environment.context();
    let mut cache = Cache::default();
    let mut found = Vec::new();
    let all = all();
    for (number, reading) in all.iter().enumerate() {
        let source = args.figures.source(reading.file)?;
        let (of, file) = (all.len(), reading.file);
        output.note(&format!("{} of {of}: {file}, {}", number + 1, reading.words()));
        let mut runs = Vec::new();
        for (alpha, experiment) in reading.experiments(&source, seeds, &program.registries)? {
            let data = cache.load(&experiment, &context)?;
            runs.push((alpha, experiment.run_on(data, &context, &mut (), &mut ())?));
            if context.interrupt.load(Ordering::Relaxed) {
                output.note(INTERRUPTED);
                return Ok(ExitCode::from(environment.signals.code().unwrap_or(130)));
            }
        }
        found.extend(reading.found(&runs));
    }
    let json = Value::Array(found.iter().map(Found::json).collect());
    write(&args.out.join("readings.json"), &format!("{json:#}\n"))?;
    if let Some(path) = &args.page {
        write(path, &page(&found))?;
    }
    if output.json() {
        output.document(&json);
    } else {
        output.text(&output.list(&COLUMNS, found.iter().map(|one| one.row().to_vec()).collect()));
    }
    Ok(ExitCode::SUCCESS)
}
