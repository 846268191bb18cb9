//! What the pages say of the command line is so; their commands are in `page_commands.rs`.

use crate::pages::{marked, pages, root};
use crate::program::Folder;

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

#[test]
fn the_six_lines_of_the_readme_run_on_the_repositorys_own_file() {
    let pages = pages();
    let page = |name: &str| pages.iter().find(|page| page.name() == name).unwrap();
    let (_, blocks) = page("README.md").parts();
    let six = &blocks.iter().find(|block| block.language == "toml").unwrap().text;
    assert_eq!(six.lines().count(), 6);
    assert!(page("docs/own-data.md").text.contains(six));
    let patients = std::fs::read_to_string(root().join("docs/walk/patients.csv")).unwrap();
    let folder = Folder::with(&[("mine.toml", six), ("patients.csv", &patients)]);
    let done = folder.lopa(&["run", "mine.toml", "--set", "run.iterations=50"]).good();
    assert!(done.stdout.contains("lopa-gt"), "{}", done.stdout);
}
