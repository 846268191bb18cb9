//! Every command on the pages: the command line takes it, the files that it names are there or made before it, and
//! what is cheap is run.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::error::ErrorKind;
use clap::{ArgMatches, parser::ValueSource};

use crate::pages::{Page, pages, root};
use crate::program::Folder;

/// Commands that take no time; others are replaced by `lopa check FILE`.
const CHEAP: [&str; 9] =
    ["list", "check", "graph", "doctor", "schema", "key", "roster", "man", "completions"];

/// Commands that run another one.
const STARTERS: [&str; 4] = ["lopa", "mpirun", "srun", "docker"];

/// What a command substitution gives.
const VALUE: &str = "VALUE";

/// A simple command of a shell.
#[derive(Debug)]
struct Call {
    words: Vec<String>,
    /// Where its output goes, if that is a file.
    redirected: Option<String>,
}

/// The simple commands of a text, each as its words, as a shell would see them; comments are left out.
fn simple(text: &str) -> Vec<Vec<String>> {
    let (mut commands, mut quote) = (vec![vec![String::new()]], None);
    for c in text.chars() {
        let words = commands.last_mut().unwrap();
        let word = words.last_mut().unwrap();
        match (c, quote) {
            ('#', None) if word.is_empty() => break,
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('|' | ';' | '&', None) => commands.push(vec![String::new()]),
            (' ', None) => words.push(String::new()),
            _ => word.push(c),
        }
    }
    commands.iter_mut().for_each(|words| words.retain(|word| !word.is_empty()));
    commands.retain(|words| !words.is_empty());
    commands
}

/// The simple commands of a line; those in `$(…)` come first.
fn calls(line: &str) -> Vec<Call> {
    let mut line = line.split(" #").next().unwrap_or_default().to_string();
    let mut calls = Vec::new();
    while let Some(start) = line.rfind("$(") {
        let Some(length) = line[start..].find(')') else { break };
        calls.extend(self::calls(&line[start + 2..start + length]));
        line.replace_range(start..=start + length, VALUE);
    }
    for mut words in simple(&line) {
        let redirected = words.iter().position(|word| word == ">").map(|at| {
            let file = words[at + 1].clone();
            words.truncate(at);
            file
        });
        calls.push(Call { words, redirected });
    }
    calls
}

/// The lines of a page's blocks for a shell.
fn lines(page: &Page) -> Vec<String> {
    let blocks = page.parts().1.into_iter().filter(|block| block.language == "sh");
    let text: String = blocks.map(|block| block.text.replace("\\\n", " ")).collect();
    text.lines().map(String::from).collect()
}

/// What follows `lopa` in a command, if it calls the program.
fn arguments(words: &[String]) -> Option<&[String]> {
    let at = words.iter().position(|word| word == "lopa")?;
    STARTERS.contains(&&words[0][..]).then_some(&words[at + 1..])
}

/// The command of some arguments, as the program reads it: its name, and what it was given.
fn parse(arguments: &[String]) -> Result<(Vec<String>, ArgMatches), clap::Error> {
    // Variables of a batch system are numbers.
    let number = |word: &str| word.strip_prefix('$').is_some_and(is_placeholder);
    let word = |word| if number(word) { "1" } else { word };
    let typed = std::iter::once("lopa").chain(arguments.iter().map(|given| word(given)));
    let mut matches = lopa_cli::command().try_get_matches_from(typed)?;
    let mut name = Vec::new();
    while let Some((below, inner)) = matches.remove_subcommand() {
        name.push(below);
        matches = inner;
    }
    Ok((name, matches))
}

/// The files that a command names, each with the argument that names it.
fn files(name: &[String], matches: &ArgMatches) -> Vec<(String, String)> {
    let mut command = lopa_cli::command();
    command.build();
    for below in name {
        command = command.find_subcommand(below).unwrap().clone();
    }
    let mut files = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        let values = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy());
        let named = values.filter(|value| is_path || value.ends_with(".toml"));
        files.extend(named.map(|value| (id.to_string(), value.to_string())));
    }
    files
}

/// Whether a command writes the file that this argument names.
fn is_output(name: &[String], argument: &str) -> bool {
    let command: Vec<&str> = name.iter().map(String::as_str).collect();
    let written = ["out", "journal", "page", "figures"];
    written.contains(&argument)
        || matches!(command[..], ["key", "new"] | ["roster", "add"])
        || argument == "given" // the folder of data sets
}

/// The files that a command writes without being told where.
fn unsaid(name: &[String], inputs: &[String]) -> Option<String> {
    let first = Path::new(inputs.first()?.trim_end_matches('/'));
    let stem = first.file_name()?.to_str()?.split('.').next()?;
    match &name[0][..] {
        "init" => Some(format!("{stem}.toml")),
        "tune" => Some(first.with_file_name(format!("{stem}-tuned.toml")).display().to_string()),
        _ => None,
    }
}

/// The names of experiments: of the repository, and on a page.
fn experiments(page: &Page) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![root().join("experiments")];
    let mut add = |text: &str| {
        let table: toml::Table = text.parse().unwrap_or_default();
        names.extend(table.get("name").and_then(|name| Some(name.as_str()?.to_string())));
    };
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => add(&std::fs::read_to_string(&path).unwrap()),
            }
        }
    }
    page.parts().1.iter().filter(|block| block.language == "toml").for_each(|b| add(&b.text));
    names
}

/// Whether a word stands for whatever a reader puts there.
fn is_placeholder(word: &str) -> bool {
    word.starts_with('$')
        || word.contains(VALUE)
        || word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

/// What a page knows of files: what its commands have made so far, what it explains, names of experiments.
struct Known {
    made: BTreeSet<String>,
    explained: BTreeSet<String>,
    experiments: BTreeSet<String>,
}

impl Known {
    /// `front` is the book's first page, which explains names for all of them.
    fn of(page: &Page, front: &Page) -> Known {
        let prose = page.parts().0 + &front.parts().0;
        let explained = prose.split('`').skip(1).step_by(2).map(String::from).collect();
        Known { made: BTreeSet::new(), explained, experiments: experiments(page) }
    }

    fn has(&self, file: &str) -> bool {
        let run = file.strip_prefix("runs/").and_then(|run| run.strip_suffix("-*"));
        is_placeholder(file)
            || run.is_some_and(|run| self.is_experiment(run))
            || self.made.iter().any(|made| Path::new(file).starts_with(made))
            || self.explained.contains(file)
            || root().join(file).exists()
    }

    /// Whether an experiment has this name, or one that begins with it.
    fn is_experiment(&self, name: &str) -> bool {
        let more = format!("{name}-");
        self.experiments.iter().any(|known| known == name || known.starts_with(&more))
    }
}

#[test]
fn every_command_in_a_block_is_one_and_its_files_are_there() {
    let (mut tried, pages) = (0, pages());
    let front = pages.iter().find(|page| page.name() == "docs/README.md").unwrap();
    for page in &pages {
        let mut known = Known::of(page, front);
        for line in lines(page) {
            for Call { words, redirected } in calls(&line) {
                let shown = format!("{}: {}", page.name(), words.join(" "));
                known.made.extend(redirected);
                if words[0] == "cp" {
                    let from = Path::new(&words[1]);
                    let folder = from.parent().unwrap();
                    assert!(root().join(folder).is_dir(), "{shown}: there is no {folder:?}");
                    let copied = std::fs::read_dir(root().join(folder)).unwrap();
                    let copied = copied.map(|entry| entry.unwrap().file_name());
                    known.made.extend(copied.map(|name| name.into_string().unwrap()));
                }
                if words[0] == "mkdir" {
                    known.made.extend(words[1..].iter().cloned());
                }
                let Some(arguments) = arguments(&words) else { continue };
                let (name, matches) =
                    parse(arguments).unwrap_or_else(|error| panic!("{shown}: {error}"));
                let files = files(&name, &matches);
                let (made, read): (Vec<_>, Vec<_>) =
                    files.into_iter().partition(|(argument, _)| is_output(&name, argument));
                let read: Vec<String> = read.into_iter().map(|(_, file)| file).collect();
                // `test/{node}.csv` stands for a file of the reader's for each node.
                for file in read.iter().filter(|file| !file.contains("{node}")) {
                    assert!(known.has(file), "{shown}: nobody has made {file}");
                }
                known.made.extend(made.into_iter().map(|(_, file)| file));
                known.made.extend(unsaid(&name, &read));
                tried += 1;
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

/// Commands in the text may be cut short: what is missing is all that may be wrong.
#[test]
fn every_command_in_the_text_is_one_as_far_as_it_goes() {
    let mut tried = 0;
    for page in pages() {
        let prose = page.parts().0;
        let codes = prose.split('`').skip(1).step_by(2).filter(|code| code.starts_with("lopa "));
        for code in codes.map(|code| code.replace('\n', " ")) {
            let words = simple(&code).swap_remove(0);
            if words.len() < 2 || is_placeholder(&words[1]) {
                continue;
            }
            let missing = [
                ErrorKind::MissingRequiredArgument,
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
                ErrorKind::MissingSubcommand,
                ErrorKind::DisplayHelp,
                ErrorKind::DisplayVersion,
            ];
            match parse(&words[1..]) {
                Ok(_) => {}
                Err(error) if missing.contains(&error.kind()) => {}
                // `lopa predict --node`, `lopa list WHAT`
                Err(error)
                    if words[words.len() - 1].starts_with("--")
                        || words[1..].iter().any(|word| is_placeholder(word)) =>
                {
                    assert_eq!(error.kind(), ErrorKind::InvalidValue, "{code}: {error}");
                }
                Err(error) => panic!("{}: {code}: {error}", page.name()),
            }
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
}

/// A folder in which the commands of a page find the files of the repository.
fn sandbox() -> Folder {
    let folder = Folder::new();
    let root = root().canonicalize().unwrap();
    for name in ["experiments", "docs", "crates"] {
        std::os::unix::fs::symlink(root.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn shell(folder: &Folder, line: &str) -> (bool, String) {
    let mut path = vec![Path::new(env!("CARGO_BIN_EXE_lopa")).parent().unwrap().to_path_buf()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let done = Command::new("bash")
        .args(["-euo", "pipefail", "-c", line])
        .current_dir(folder.path())
        .env("PATH", std::env::join_paths(path).unwrap())
        .env_remove("LOPA_DATA_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn every_cheap_command_in_a_block_runs() {
    let (mut ran, mut checked) = (0, BTreeSet::new());
    for page in pages() {
        let folder = sandbox();
        for line in lines(&page) {
            let calls = calls(&line);
            let parsed: Vec<(Vec<String>, ArgMatches)> =
                calls.iter().filter_map(|call| parse(arguments(&call.words)?).ok()).collect();
            if parsed.is_empty() {
                continue;
            }
            let here = |name: &[String], matches: &ArgMatches| {
                let read = files(name, matches).into_iter();
                let mut read = read.filter(|(argument, _)| !is_output(name, argument));
                read.all(|(_, file)| folder.path().join(file).exists())
            };
            let all_ours = parsed.len() == calls.len();
            let cheap = |(name, matches): &(Vec<String>, ArgMatches)| {
                CHEAP.contains(&&name[0][..]) && here(name, matches)
            };
            if all_ours && parsed.iter().all(cheap) {
                let (good, said) = shell(&folder, &line);
                assert!(good, "{}: {line}: {said}", page.name());
                ran += 1;
                continue;
            }
            for (name, matches) in &parsed {
                let experiment =
                    files(name, matches).into_iter().find(|(argument, _)| argument == "file");
                let Some((_, file)) = experiment.filter(|_| here(name, matches)) else { continue };
                let mut check = vec!["check".to_string(), file];
                if let Ok(Some(sets)) = matches.try_get_many::<String>("sets") {
                    check.extend(sets.flat_map(|set| ["--set".to_string(), set.clone()]));
                }
                if checked.insert(check.clone()) {
                    let words: Vec<&str> = check.iter().map(String::as_str).collect();
                    folder.lopa(&words).good();
                }
            }
        }
    }
    assert!(ran >= 30 && checked.len() >= 8, "{ran} run, {} checked", checked.len());
}

/// What follows the name depends on every key of the file, and on the version.
#[test]
fn no_page_names_a_run_folder_that_nobody_gets() {
    for page in pages() {
        for rest in page.text.split("runs/").skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap();
            let end = name.rsplit('-').next().unwrap();
            let digest = end.len() == 8 && end.chars().all(|c| c.is_ascii_hexdigit());
            assert!(!digest, "{}: runs/{name}", page.name());
        }
    }
}
