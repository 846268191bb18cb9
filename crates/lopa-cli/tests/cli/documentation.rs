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
fn the_lines_of_the_readme_run_on_the_repositorys_own_file() {
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

#[test]
fn the_first_screen_is_short_and_its_chart_is_that_of_the_quickstart() {
    let pages = pages();
    let page = |name: &str| pages.iter().find(|page| page.name() == name).unwrap();
    let readme = &page("README.md").text;
    assert!(
        readme.lines().count() <= 120,
        "README.md: what is not the first screen goes into the book"
    );
    for step in ["alpha", "beta", "lambda"] {
        assert!(!readme.contains(&format!("{step} =")), "README.md: algorithms find {step}");
    }
    let table = &page("docs/quickstart.md").text;
    let cell = |name: &str| {
        let row = table.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        row.split('|').nth(3).unwrap().replace("**", "").trim().to_string()
    };
    for name in ["light", "dark"] {
        let picture =
            std::fs::read_to_string(root().join(format!("docs/gain-{name}.svg"))).unwrap();
        let (_, rest) = picture.split_once("<desc>accuracy on own classes: ").unwrap();
        let (shown, _) = rest.split_once("</desc>").unwrap();
        let bars: Vec<&str> = shown.split("; ").collect();
        assert_eq!(bars.len(), 3);
        for bar in bars {
            let (algorithm, accuracy) = bar.split_once(' ').unwrap();
            assert_eq!(
                accuracy,
                cell(algorithm),
                "docs/gain-{name}.svg and docs/quickstart.md: {algorithm}"
            );
            let mean: f64 = accuracy.split_once(" ± ").unwrap().0.parse().unwrap();
            let wrong =
                picture.split('>').filter_map(|text| text.split_once(" %<").map(|(n, _)| n));
            let near =
                |shown: &str| (shown.parse::<f64>().unwrap() - 100.0 * (1.0 - mean)).abs() < 0.11;
            let shown = wrong.clone().find(|shown| near(shown)).expect("a bar of this length");
            assert!(readme.contains(&format!("{shown} %")), "README.md does not say {shown} %");
        }
    }
}
