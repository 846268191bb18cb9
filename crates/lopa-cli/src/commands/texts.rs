//! `lopa schema`, `lopa completions`, `lopa man`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lopa::error::{Error, Result};
use lopa::experiment::schema;
use lopa_base::store::output;
use lopa_study::tune::TuneSpec;
use serde_json::json;

use crate::output::Output;
use crate::program::Program;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write `lopa.1` and one page per command into this folder
    #[arg(short, long)]
    out: Option<PathBuf>,
}

pub fn schema(program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    output.document(&schema::experiment(
        &program.registries,
        &[("tune", schema::section::<TuneSpec>())],
    ));
    Ok(ExitCode::SUCCESS)
}

pub fn completions(
    args: &CompletionsArgs,
    mut command: clap::Command,
    output: &Output,
) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "lopa", &mut script);
    let script = String::from_utf8_lossy(&script);
    match output.json() {
        true => output.document(&json!({ "shell": args.shell.to_string(), "script": script })),
        false => output.text(&script),
    }
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: &ManArgs, mut command: clap::Command, output: &Output) -> Result<ExitCode> {
    command.build();
    let Some(folder) = &args.out else {
        let page = page(command);
        let page = String::from_utf8_lossy(&page);
        match output.json() {
            true => output.document(&json!({ "page": page })),
            false => output.text(&page),
        }
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder).map_err(|error| cannot(folder, error))?;
    let pages = write_pages(&command, "lopa", folder)?;
    output.note(&format!("{} pages in {}", pages.len(), folder.display()));
    if output.json() {
        output.document(&json!({ "pages": pages }));
    }
    Ok(ExitCode::SUCCESS)
}

fn page(command: clap::Command) -> Vec<u8> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).expect("writing to a vector cannot fail");
    page
}

/// Writes the pages of a command and its subcommands; returns their paths.
fn write_pages(command: &clap::Command, name: &str, folder: &Path) -> Result<Vec<String>> {
    let path = folder.join(format!("{name}.1"));
    output::write(&path, &page(command.clone()), "the manual", output::OTHER)?;
    let mut written = vec![path.display().to_string()];
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        written.extend(write_pages(below, &format!("{name}-{}", below.get_name()), folder)?);
    }
    Ok(written)
}

fn cannot(path: &Path, error: std::io::Error) -> Error {
    Error::storage("storage/write", format!("cannot write the manual: {error}"))
        .at(path.display().to_string())
}
