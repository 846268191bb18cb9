//! The pages of the documentation: README and its kin at the root, the book in `docs/`, and the READMEs of
//! the crates and of the Python package.

use std::path::{Path, PathBuf};

/// A page in Markdown.
pub struct Page {
    /// From the root of the repository: `docs/data.md`.
    pub path: PathBuf,
    pub text: String,
}

/// The text between two fences.
pub struct Block {
    pub language: String,
    pub text: String,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page, in order.
pub fn pages() -> Vec<Page> {
    let (mut pages, mut folders) =
        (Vec::new(), vec![PathBuf::new(), "docs".into(), "python".into()]);
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    folders.extend(crates.map(|entry| Path::new("crates").join(entry.unwrap().file_name())));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let name = entry.unwrap().file_name();
            let path = folder.join(&name);
            if path.extension().is_some_and(|end| end == "md") {
                pages.push(Page {
                    text: std::fs::read_to_string(root().join(&path)).unwrap(),
                    path,
                });
            } else if path.starts_with("docs") && root().join(&path).is_dir() {
                folders.push(path);
            }
        }
    }
    pages.sort_by(|one, other| one.path.cmp(&other.path));
    pages
}

impl Page {
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The text with its fenced blocks taken out, and the blocks.
    pub fn parts(&self) -> (String, Vec<Block>) {
        let (mut prose, mut blocks) = (String::new(), Vec::new());
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            let Some(language) = line.trim_start().strip_prefix("```") else {
                prose.push_str(line);
                prose.push('\n');
                continue;
            };
            let indent = line.len() - line.trim_start().len();
            let inside = lines.by_ref().take_while(|line| line.trim() != "```");
            let text = inside.map(|line| line.get(indent..).unwrap_or_default().to_string() + "\n");
            blocks.push(Block { language: language.to_string(), text: text.collect() });
        }
        (prose, blocks)
    }
}

/// A page before, between and after `<!-- name -->` and `<!-- /name -->`.
pub fn marked(page: &str, name: &str) -> [String; 3] {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = text.split_once(&start).expect("the page has the mark");
    let (inside, after) = rest.split_once(&end).expect("the page has the mark's end");
    [before.to_string() + &start, inside.to_string(), end + after]
}
