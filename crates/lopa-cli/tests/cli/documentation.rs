//! The commands on the pages exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::pages::{Page, marked, pages};
use crate::program::{Folder, blobs};

/// The cells of a table in Markdown, without the line below its head.
fn cells(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().filter(|line| !line.starts_with("|-"));
    lines.map(|line| line.split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_book_has_the_table_of_algorithms() {
    let table = Folder::new().lopa(&["list", "algorithms", "--format", "md"]).good().stdout;
    assert!(table.lines().nth(1).unwrap().starts_with("|--"));
    let [_, written, _] = marked("docs/algorithms.md", "algorithms");
    assert_eq!(cells(written.trim()), cells(table.trim()));
}

/// What `lopa PATH --help` says there is.
struct Help {
    commands: BTreeSet<String>,
    flags: BTreeSet<String>,
}

impl Help {
    fn of(path: &[&str]) -> Help {
        let text = Folder::new().lopa(&[path, &["--help"]].concat()).good().stdout;
        let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        let listed = listed.take_while(|line| !line.is_empty());
        let commands = listed.filter_map(|line| line.split_whitespace().next()).map(String::from);
        let options = text.lines().filter(|line| line.trim_start().starts_with('-'));
        let words = options.flat_map(|line| line.split([' ', ',', '='])).map(String::from);
        Help { commands: commands.collect(), flags: words.filter(|w| w.starts_with('-')).collect() }
    }
}

/// Words as a shell would see them, up to the comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in line.chars() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.take_while(|word| !word.starts_with('#')).collect()
}

/// Every `lopa …` on a page, in blocks for a shell and in the text: what follows `lopa`.
fn commands(page: &Page) -> Vec<Vec<String>> {
    let (prose, blocks) = page.parts();
    let blocks = blocks.into_iter().filter(|block| block.language == "sh");
    let mut text: Vec<String> = blocks
        .flat_map(|block| {
            block.text.replace("\\\n", " ").lines().map(String::from).collect::<Vec<_>>()
        })
        .collect();
    let code = prose.split('`').skip(1).step_by(2).filter(|code| code.starts_with("lopa "));
    text.extend(code.map(|code| code.replace('\n', " ")));
    let simple = text.iter().flat_map(|line| line.split(['|', ';', '(', ')']));
    let after = simple.filter_map(|command| {
        let words = words(command);
        let lopa = words.iter().position(|word| word == "lopa")?;
        Some(words[lopa + 1..].to_vec())
    });
    after.collect()
}

#[test]
fn every_command_on_the_pages_exists() {
    let mut known: BTreeMap<Vec<String>, Help> = BTreeMap::new();
    let mut tried = 0;
    for page in pages() {
        for command in commands(&page) {
            let shown = format!("{}: lopa {}", page.name(), command.join(" "));
            let mut path: Vec<String> = Vec::new();
            let mut rest = command.iter();
            let help = loop {
                let help = known.entry(path.clone()).or_insert_with_key(|path| {
                    Help::of(&path.iter().map(String::as_str).collect::<Vec<_>>())
                });
                if help.commands.is_empty() {
                    break Some(help);
                }
                let Some(name) = rest.next() else { break Some(help) };
                let placeholder = name.chars().all(char::is_uppercase);
                if placeholder || name == "help" {
                    break None;
                }
                if name.starts_with('-') {
                    assert!(help.flags.contains(name), "{shown}: there is no {name}");
                    continue;
                }
                assert!(help.commands.contains(name), "{shown}: there is no command {name}");
                path.push(name.clone());
                tried += 1;
            };
            let Some(help) = help else { continue };
            for flag in rest.filter(|word| word.starts_with('-')) {
                let flag = flag.split('=').next().unwrap();
                assert!(help.flags.contains(flag), "{shown}: there is no {flag}");
            }
        }
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn the_five_lines_of_the_readme_run() {
    let pages = pages();
    let page = |name: &str| pages.iter().find(|page| page.name() == name).unwrap();
    let (_, blocks) = page("README.md").parts();
    let five = &blocks.iter().find(|block| block.language == "toml").unwrap().text;
    assert_eq!(five.lines().count(), 5);
    assert!(page("docs/own-data.md").text.contains(five));
    let folder = Folder::with(&[("mine.toml", five), ("patients.csv", &blobs())]);
    let done = folder.lopa(&["run", "mine.toml", "--set", "run.iterations=50"]).good();
    assert!(done.stdout.contains("lopa-gt"), "{}", done.stdout);
}
