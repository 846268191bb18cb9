//! `lopa schema`, `lopa completions`, `lopa man`.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use lopa::error::{Error, Result};

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::output::Output;

pub fn schema(output: &Output) -> Result<ExitCode> {
    output.document(&lopa::schema::experiment());
    Ok(ExitCode::SUCCESS)
}

pub fn completions(args: &CompletionsArgs, output: &Output) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lopa", &mut script);
    output.text(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: &ManArgs, output: &Output) -> Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    match &args.out {
        None => output.text(&String::from_utf8_lossy(&page(command))),
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| cannot(folder, error))?;
            let count = write_pages(&command, "lopa", folder)?;
            output.note(&format!("{count} pages in {}", folder.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn page(command: clap::Command) -> Vec<u8> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).expect("a vector takes all that is written");
    page
}

fn write_pages(command: &clap::Command, name: &str, folder: &Path) -> Result<usize> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command.clone())).map_err(|error| cannot(&path, error))?;
    let deeper = command.get_subcommands().filter(|sub| sub.get_name() != "help");
    let pages = deeper.map(|sub| write_pages(sub, &format!("{name}-{}", sub.get_name()), folder));
    Ok(1 + pages.sum::<Result<usize>>()?)
}

fn cannot(path: &Path, error: std::io::Error) -> Error {
    Error::storage("storage/write", format!("cannot write the manual: {error}"))
        .at(path.display().to_string())
}
