//! `lopa list THING NAME`: the keys of an entry or a section, and the same pages in the book.

use std::fmt::Write as _;

use serde_json::Value;

use crate::pages::{marked, root};
use crate::program::Folder;

/// The registries whose entries have a page, with their headings in the book.
const LISTS: [(&str, &str); 7] = [
    ("problems", "Problems"),
    ("algorithms", "Algorithms"),
    ("data", "Data sources"),
    ("partitions", "Partitions"),
    ("graphs", "Graphs"),
    ("weights", "Weights"),
    ("compressors", "Compressors"),
];

/// The sections that have a page.
const SECTIONS: [&str; 8] =
    ["preparation", "messages", "attack", "time", "privacy", "run", "checkpoint", "tune"];

fn keys(page: &Value) -> Vec<&Value> {
    page["keys"].as_array().expect("a page has keys").iter().collect()
}

#[test]
fn every_key_has_a_type_a_default_and_a_meaning() {
    let folder = Folder::new();
    for (list, _) in LISTS {
        let all = folder.lopa(&["list", list, "--format", "json"]).good().json();
        for entry in all.as_array().unwrap() {
            let name = entry["name"].as_str().unwrap();
            let page = folder.lopa(&["list", list, name, "--format", "json"]).good().json();
            assert_eq!(page["name"], name);
            for key in keys(&page) {
                let what = format!("{list} {name}: {key}");
                assert!(!key["meaning"].as_str().unwrap().is_empty(), "{what}");
                assert!(!["", "any"].contains(&key["type"].as_str().unwrap()), "{what}");
                assert!(key["required"] == false || key["default"].is_null(), "{what}");
            }
        }
    }
    for section in SECTIONS {
        let page = folder.lopa(&["list", section, "--format", "json"]).good().json();
        assert!(keys(&page).iter().all(|key| !key["meaning"].as_str().unwrap().is_empty()));
    }
}

#[test]
fn pages_say_what_the_schema_says() {
    let folder = Folder::new();
    let csv = folder.lopa(&["list", "data", "csv"]).good();
    for line in ["path", "required", "delimiter", "drop", "\"auto\"", "The column of the labels"] {
        assert!(csv.stdout.contains(line), "{line}\n{}", csv.stdout);
    }
    assert!(csv.stderr.contains("lopa list preparation"), "{}", csv.stderr);
    let lopa = folder.lopa(&["list", "algorithms", "lopa-gt"]).good().stdout;
    for line in ["Step size of x;", "`steps` finds it", "0.4", "{ start, factor, every }"] {
        assert!(lopa.contains(line), "{line}\n{lopa}");
    }
    // The common explanation of five schedules is printed once.
    assert_eq!(lopa.matches("{ over_sqrt }").count(), 1, "{lopa}");
    let budget = folder.lopa(&["list", "run", "budget"]).good().stdout;
    assert!(budget.contains("budget.hessians") && !budget.contains("iterations"), "{budget}");
    let scaling = folder.lopa(&["list", "scaling"]).good().stdout;
    assert!(scaling.contains("standardise"), "{scaling}");
    assert!(folder.lopa(&["list", "graphs", "ring"]).good().stdout.contains("no parameters"));
}

#[test]
fn unknown_names_are_answered_with_known_ones() {
    let folder = Folder::new();
    for (args, near) in [
        (["list", "algorithms", "LoPA-GT"], "lopa-gt"),
        (["list", "data", "cvs"], "csv"),
        (["list", "run", "sedes"], "seeds"),
        (["list", "scaling", "standardize"], "standardise"),
        (["list", "all", "csv"], "lopa list data csv"),
    ] {
        let done = folder.lopa(&args);
        assert_eq!(done.code, 2, "{args:?}");
        assert!(done.stderr.contains(near), "{args:?}: {}", done.stderr);
    }
}

/// The chapter of the book, from the program. `UPDATE=1` writes it.
#[test]
fn the_book_has_every_key() {
    let folder = Folder::new();
    let page = |args: &[&str]| {
        let args = [&["list"], args, &["--format", "md"]].concat();
        let text = folder.lopa(&args).good().stdout;
        let (head, table) = text.split_once("\n\n").expect("a heading and a table");
        let (name, about) = head.split_once(": ").unwrap_or((head, ""));
        (name.trim_matches('`').to_string(), about.to_string(), table.to_string())
    };
    let mut wanted = String::new();
    for (list, heading) in LISTS {
        let _ = writeln!(wanted, "## {heading}\n");
        let all = folder.lopa(&["list", list, "--format", "json"]).good().json();
        for entry in all.as_array().unwrap() {
            let (name, about, table) = page(&[list, entry["name"].as_str().unwrap()]);
            let table = match table.trim() {
                "no parameters" => "It has no parameters.",
                table => table,
            };
            let _ = writeln!(wanted, "### `{name}` ({list})\n\n{about}\n\n{table}\n");
        }
    }
    let _ = writeln!(wanted, "## Sections\n");
    for section in SECTIONS {
        let (name, about, table) = page(&[section]);
        let of = if section == "preparation" { ", for every source" } else { "" };
        let _ = writeln!(wanted, "### `{name}`{of}\n\n{about}.\n\n{}\n", table.trim());
    }
    let file = "docs/parameters.md";
    let [before, written, after] = marked(file, "parameters");
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(root().join(file), before + &wanted + &after).unwrap();
    }
    assert!(written == wanted, "{file} is out of date: run this test with UPDATE=1");
}
