//! The pages are true: tables come from the registry, links have targets, experiments can be read.
//! `UPDATE=1 cargo test -p lopa --test suite documentation` writes the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use lopa::algorithms::cost::Count;
use lopa::algorithms::{AnyMethod, Facts, Task, algorithms};
use lopa::config::Source;
use lopa::experiment::{Experiment, Registries};
use lopa::problem::scope::Scope;

use crate::pages::{Page, marked, pages, root};

/// Picks a count of a method's cost.
type Show = fn(&AnyMethod, Task) -> Count;

/// The page that a test of the command line makes a crate of, with problems of its own.
const CRATE: &str = "CONTRIBUTING.md";

/// Checks that a page has this between `<!-- name -->` and `<!-- /name -->`, or writes it there with
/// `UPDATE=1`.
fn check_block(page: &str, name: &str, wanted: &str) {
    // Tests run at the same time, and several may write to one page.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let [before, block, after] = marked(page, name);
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(root().join(page), before + wanted + &after).unwrap();
    }
    assert!(block == wanted, "{page} is out of date: run this test with UPDATE=1\n{wanted}");
}

/// An algorithm with its default parameters.
fn typical(name: &str) -> Arc<AnyMethod> {
    algorithms().typical(name).unwrap().expect("it has defaults").build
}

/// The scalars that it sends to each neighbour in an iteration.
fn floats(method: &AnyMethod, task: Task) -> Count {
    method.sent(task).unwrap().floats
}

/// The cost of an iteration of an algorithm in each scope; once, where they agree.
fn cost(name: &str, scopes: &[Scope], show: Show) -> String {
    let method = typical(name);
    let one = |&scope: &Scope| show(&method, Task { scope, ..Task::default() }).to_string();
    let mut all: Vec<String> = scopes.iter().map(one).collect();
    all.dedup();
    all.join("; ")
}

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head = line(&head.map(String::from)) + &format!("|{}\n", "---|".repeat(N));
    rows.fold(head, |text, row| text + &line(&row))
}

#[test]
fn the_table_of_algorithms_is_the_registrys() {
    let registry = algorithms();
    let rows = registry.iter().map(|entry| {
        let Facts { source, scopes, loops, .. } = entry.facts;
        let names: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
        let hessians = cost(&entry.name, scopes, |method, task| method.cost(task).hess_g);
        let floats = cost(&entry.name, scopes, floats);
        let [name, about] = [&entry.name, &entry.about].map(String::clone);
        let sends = typical(&entry.name).sends().unwrap();
        let [loops, source] = [loops, source].map(String::from);
        [name, about, names.join(", "), sends, hessians, floats, loops, source]
    });
    let head =
        ["algorithms", "what it is", "scope", "sends", "Hess·v", "floats", "loops", "source"];
    check_block("docs/algorithms.md", "algorithms", &table(head, rows));
}

#[test]
fn the_table_of_calls_is_the_registrys() {
    let calls: [(&str, Show); 6] = [
        ("∇_θ g", |method, task| method.cost(task).grad_theta_g),
        ("∇²_θθ g v", |method, task| method.cost(task).hess_g),
        ("∇²_xθ g v", |method, task| method.cost(task).cross_g),
        ("∇_θ f", |method, task| method.cost(task).grad_theta_f),
        ("∇_x f", |method, task| method.cost(task).grad_x_f),
        ("∇_x g", |method, task| method.cost(task).grad_x_g),
    ];
    let [a, b, c, d, e, f] = calls.map(|(head, _)| head);
    let registry = algorithms();
    let rows = registry.iter().map(|entry| {
        let Facts { scopes, complexity, assumes, .. } = entry.facts;
        let [a, b, c, d, e, f] = calls.map(|(_, show)| cost(&entry.name, scopes, show));
        [format!("`{}`", entry.name), a, b, c, d, e, f, complexity.into(), assumes.into()]
    });
    let head = ["algorithm", a, b, c, d, e, f, "complexity", "assumes"];
    check_block("docs/algorithms.md", "calls", &table(head, rows));
}

#[test]
fn the_warnings_are_the_registrys() {
    let mut warned: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in &algorithms() {
        if let Some(warning) = entry.facts.warning {
            warned.entry(warning).or_default().push(format!("`{}`", entry.name));
        }
    }
    let line =
        |(warning, names): (&&str, &Vec<String>)| format!("- {}: {warning}.\n", names.join(", "));
    check_block("docs/algorithms.md", "warnings", &warned.iter().map(line).collect::<String>());
}

#[test]
fn facts_are_complete() {
    for entry in &algorithms() {
        let Facts { source, scopes, steps, .. } = entry.facts;
        assert!(!source.is_empty() && !scopes.is_empty() && !steps.is_empty(), "{}", entry.name);
        let marked = ["[V]", "[D]", "[K]", "ours"].iter().any(|mark| source.contains(mark));
        assert!(marked, "{}: say how its formulas are known", entry.name);
    }
}

/// Text without code between backticks.
fn without_code(prose: &str) -> String {
    prose.split('`').step_by(2).collect()
}

/// The targets of links and images.
fn links(page: &Page) -> Vec<String> {
    let prose = without_code(&page.parts().0);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_string()).collect()
}

/// A heading's anchor, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The anchors of a page, with those of the files it includes.
fn anchors(page: &Page, all: &[Page]) -> BTreeSet<String> {
    let prose = page.parts().0;
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let mut anchors: BTreeSet<_> =
        headings.map(|line| anchor(line.trim_start_matches('#'))).collect();
    for include in prose.split("{{#include ").skip(1) {
        let path = include.split([':', '}']).next().unwrap();
        let included = at(&page.path, path);
        let included = all.iter().find(|page| page.path == included).expect("it can be included");
        anchors.extend(self::anchors(included, all));
    }
    anchors
}

/// Where a link on a page leads, from the root.
fn at(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap().to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{link} leaves the repository"),
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut followed = 0;
    for page in &pages {
        for link in links(page) {
            if link.starts_with("https://") || link.starts_with("http://") {
                continue;
            }
            let place = format!("{}: the link {link}", page.name());
            let (path, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.path.clone() } else { at(&page.path, path) };
            assert!(root().join(&target).exists(), "{place} leads nowhere");
            // The book must also work where it is built, without the repository.
            let leaves = page.path.starts_with("docs") && !target.starts_with("docs");
            assert!(!leaves, "{place} leaves the book");
            if !fragment.is_empty() {
                let target = pages.iter().find(|page| page.path == target).expect(&place);
                assert!(anchors(target, &pages).contains(fragment), "{place} has no such heading");
            }
            followed += 1;
        }
    }
    assert!(followed > 100, "{followed}");
}

/// Files and folders of the repository that stand between backticks, `*` for any name.
#[test]
fn every_file_that_a_page_names_is_there() {
    let top: Vec<String> = std::fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.') && !matches!(&name[..], "target" | "runs"))
        .collect();
    let exists = |name: &str| {
        let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
        let Some((start, end)) = last.split_once('*') else { return root().join(name).exists() };
        let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten();
        let fits = |name: &str| name.starts_with(start) && name.ends_with(end);
        { entries }.any(|entry| entry.file_name().to_str().is_some_and(fits))
    };
    let mut found = 0;
    for page in pages().iter().filter(|page| page.path != Path::new("CHANGELOG.md")) {
        let prose = page.parts().0;
        for code in prose.split('`').skip(1).step_by(2) {
            for word in code.split_whitespace() {
                let word = word.trim_start_matches("./").trim_end_matches([',', ':']);
                let (first, rest) = word.split_once('/').unwrap_or((word, ""));
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_./*".contains(c);
                if rest.is_empty()
                    || !top.iter().any(|name| name == first)
                    || !word.chars().all(plain)
                {
                    continue;
                }
                assert!(exists(word.trim_end_matches('/')), "{}: there is no {word}", page.name());
                found += 1;
            }
        }
    }
    assert!(found > 40, "{found}");
}

/// Package indexes show these pages without the repository.
#[test]
fn what_is_published_links_to_nothing_that_stays_behind() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    let mut paths: Vec<PathBuf> = crates
        .map(|entry| PathBuf::from("crates").join(entry.unwrap().file_name()).join("README.md"))
        .collect();
    paths.push("python/README.md".into());
    assert!(paths.len() > 9, "{paths:?}");
    for path in paths {
        let text = std::fs::read_to_string(root().join(&path)).expect("every package has a page");
        let page = Page { path, text };
        let away = |link: &String| link.starts_with("https://");
        assert_eq!(links(&page).into_iter().find(|link| !away(link)), None, "{}", page.name());
    }
}

#[test]
fn no_page_has_the_marks_of_a_merge() {
    for page in pages() {
        let marked = page
            .text
            .lines()
            .find(|line| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> "));
        assert_eq!(marked, None, "{}", page.name());
    }
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.path.ends_with("SUMMARY.md")).unwrap();
    let listed: Vec<_> = links(summary).iter().map(|link| at(&summary.path, link)).collect();
    for page in pages.iter().filter(|page| page.path.starts_with("docs")) {
        let times = listed.iter().filter(|path| **path == page.path).count();
        let wanted = usize::from(page.path != summary.path);
        assert_eq!(times, wanted, "{} in docs/SUMMARY.md", page.name());
    }
}

#[test]
fn the_front_page_has_every_chapter_of_the_summary() {
    let pages = pages();
    let chapters = |name: &str| -> Vec<(String, String)> {
        let page = pages.iter().find(|page| page.name() == name).unwrap();
        let prose = without_code(&page.parts().0);
        let link = |rest: &str| {
            let (title, rest) = rest.split_once("](")?;
            Some((title.to_string(), rest.split_once(')')?.0.to_string()))
        };
        let links = prose.split('[').skip(1).filter_map(link);
        links.filter(|(_, target)| target != "README.md").collect()
    };
    assert_eq!(chapters("docs/README.md"), chapters("docs/SUMMARY.md"));
}

#[test]
fn experiments_on_the_pages_can_be_read() {
    let keys = ["problem", "network", "run", "algorithm"];
    let mut found = 0;
    for page in pages() {
        for block in page.parts().1.iter().filter(|block| block.language == "toml") {
            let table: toml::Table =
                block.text.parse().unwrap_or_else(|error| panic!("{}: {error}", page.name()));
            if page.name() != CRATE && keys.iter().all(|key| table.contains_key(*key)) {
                let source = Source::new(page.name(), block.text.clone());
                Experiment::read(&source, &Registries::default()).unwrap();
                found += 1;
            }
        }
    }
    assert!(found >= 4, "{found}");
}

/// rustdoc takes a block without a language for Rust.
#[test]
fn every_block_has_a_language_and_rust_is_tested() {
    let book = |name: &str| {
        let text = std::fs::read_to_string(root().join(format!("crates/{name}/src/book.rs")));
        let own = format!("\"crates/{name}/README.md");
        text.unwrap_or_default().replace("\"../README.md", &own)
    };
    let tested: String = ["lopa", "lopa-cli"].map(book).concat();
    for page in pages() {
        for block in page.parts().1 {
            // Blocks of Python are run by `python/tests/test_docs.py`.
            let languages = ["python", "rust", "rust,no_run", "sh", "text", "toml"];
            let known = languages.contains(&&*block.language);
            assert!(known, "{}: ```{}", page.name(), block.language);
            let rust = block.language.starts_with("rust") && page.name() != CRATE;
            assert!(
                !rust || tested.contains(&page.name()),
                "{}: let a book.rs include it",
                page.name()
            );
        }
    }
}
