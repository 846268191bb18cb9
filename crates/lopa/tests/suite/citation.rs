//! What is cited is the same everywhere: CITATION.cff, Zenodo's metadata, the paper, Cargo.toml.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::pages::root;

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The value of a line `key: value`, without quotes.
fn line<'a>(text: &'a str, key: &str) -> &'a str {
    let found = text
        .lines()
        .find_map(|line| line.trim_start_matches("- ").strip_prefix(&format!("{key}: ")));
    found.unwrap_or_else(|| panic!("no {key}")).trim_matches('"')
}

#[test]
fn title_version_licence_and_authors_agree() {
    let (citation, paper) = (text("CITATION.cff"), text("paper/paper.md"));
    let zenodo: Value = serde_json::from_str(&text(".zenodo.json")).unwrap();
    let cargo: toml::Table = text("Cargo.toml").parse().unwrap();
    let package = cargo["workspace"]["package"].as_table().unwrap();
    assert_eq!(line(&citation, "title"), line(&paper, "title"));
    assert_eq!(line(&citation, "title"), zenodo["title"]);
    assert_eq!(line(&citation, "version"), package["version"].as_str().unwrap());
    assert_eq!(line(&citation, "version"), zenodo["version"]);
    // Citation files list the licences that one may choose from; Zenodo takes one, and notes.
    let licences: Vec<&str> = package["license"].as_str().unwrap().split(" OR ").collect();
    let listed = citation.split("\nlicense:").nth(1).unwrap().lines().skip(1);
    let listed = listed.map_while(|line| line.strip_prefix("  - "));
    assert_eq!(listed.collect::<Vec<_>>(), licences);
    assert_eq!(zenodo["license"], licences[0]);
    assert_eq!(
        zenodo["notes"],
        format!("Licensed under {}, at your option.", licences.join(" or "))
    );
    let author = citation.lines().find_map(|line| line.strip_prefix("  - name: ")).unwrap();
    assert_eq!(author.trim_matches('"'), zenodo["creators"][0]["name"]);
    assert!(paper.contains(&format!("  - name: {}\n", author.trim_matches('"'))));
    let cited = citation.lines().filter_map(|line| line.strip_prefix("  title: ")).next().unwrap();
    assert!(text("paper/paper.bib").contains(&format!("title = {{{}}}", cited.trim_matches('"'))));
    assert!(zenodo["references"].to_string().contains(cited.trim_matches('"')));
}

#[test]
fn every_reference_of_the_paper_is_there_and_used() {
    let (paper, entries) = (text("paper/paper.md"), text("paper/paper.bib"));
    let is_key = |c: char| c.is_ascii_alphanumeric();
    let cited = paper.split('@').skip(1).filter_map(|rest| rest.split(|c| !is_key(c)).next());
    let cited: BTreeSet<&str> = cited.filter(|key| !key.is_empty()).collect();
    let listed =
        entries.lines().filter_map(|line| line.strip_prefix('@')?.split(['{', ',']).nth(1));
    assert_eq!(cited, listed.collect());
    for section in ["Summary", "Statement of need", "State of the field", "References"] {
        assert!(
            paper.contains(&format!("\n# {section}\n")),
            "paper/paper.md has no section {section}"
        );
    }
    let figures = paper.match_indices("](").filter_map(|(at, _)| paper[at + 2..].split(')').next());
    let figures: Vec<&str> = figures.collect();
    assert!(!figures.is_empty());
    figures.iter().for_each(|path| assert!(root().join("paper").join(path).exists(), "{path}"));
    let words = paper.split_whitespace().count();
    assert!((250..1750).contains(&words), "{words} words");
}
