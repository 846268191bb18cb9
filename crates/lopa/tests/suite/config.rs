//! Experiment files that were spoilt at random: never a panic, always a place.

use lopa::config::Source;
use lopa::error::Error;
use lopa::experiment::Experiment;
use proptest::prelude::*;

const GOOD: &str = r#"schema = 1
name = "good"

[problem]
name = "hyperparameter"
validation = 0.5

[data]
name = "blobs"
rows = 60
classes = [0, 1]
test = 0.25

[partition]
name = "dirichlet-class"

[network]
nodes = 4
seed = 7
graph = { name = "circulant", offsets = [1, 2] }
weights = "lazy-metropolis"

[run]
seeds = [1, 2]
batch = { grad_g = 4, hess_g = 4 }
budget = { hessians = 100, bytes = 1e9 }
target = { metric = "loss", at_most = 0.1 }

[[algorithm]]
name = "lopa-gt"
alpha = { start = 0.1, factor = 0.5, every = 10 }
beta = 0.1
lambda = 0.1

[[algorithm]]
name = "spdb"
label = "other"
alpha = { over_sqrt = 0.1 }
beta = 0.1
lambda = 0.1
"#;

/// Words that a spoilt file may hold where others stood.
const WORDS: &[&str] = &[
    "",
    "0",
    "-1",
    "1e400",
    "nan",
    "-inf",
    "true",
    "\"\"",
    "\"x\"",
    "\"ring\"",
    "[]",
    "[[]]",
    "{}",
    "{ name = \"file\" }",
    "99999999999999999999",
    "1979-05-27",
    "'''",
    "\"",
    "#",
    "=",
    "]",
    "\u{0}",
    "ä",
    "name",
    "[run]",
    "[[algorithm]]",
    "\n",
    ".",
    "18446744073709551615",
];

fn read(text: &str, sets: &[String]) -> Result<Experiment, Error> {
    let mut source = Source::new("e.toml", text);
    source.sets = sets.to_vec();
    Experiment::read(&source, &lopa::experiment::Registries::default())
}

/// An error must have a place; a file that is still valid must have the same meaning when it is
/// written out.
fn check(text: &str, sets: &[String]) -> Result<(), TestCaseError> {
    match read(text, sets) {
        Err(error) => {
            let place = error.place.clone().unwrap_or_default();
            prop_assert!(place.starts_with("e.toml:") || place.starts_with("--set "), "{error:?}");
            prop_assert!(!error.message.is_empty());
        }
        Ok(experiment) => {
            let resolved = toml::to_string(&experiment.resolved()).unwrap();
            prop_assert_eq!(read(&resolved, &[]), Ok(experiment));
        }
    }
    Ok(())
}

/// The places in the text where a word, a number or a sign begins.
fn starts() -> Vec<usize> {
    let kind = |c: char| if c.is_ascii_alphanumeric() || c == '_' { 'a' } else { c };
    let indices: Vec<(usize, char)> = GOOD.char_indices().collect();
    let new = |pair: &[(usize, char)]| kind(pair[0].1) != kind(pair[1].1);
    indices.windows(2).filter(|pair| new(pair)).map(|pair| pair[1].0).collect()
}

#[test]
fn the_good_file_is_good() {
    check(GOOD, &[]).unwrap();
    assert!(read(GOOD, &[]).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_word_in_place_of_another(at in 0..starts().len(), word in 0..WORDS.len()) {
        let starts = starts();
        let end = starts.get(at + 1).copied().unwrap_or(GOOD.len());
        check(&format!("{}{}{}", &GOOD[..starts[at]], WORDS[word], &GOOD[end..]), &[])?;
    }

    #[test]
    fn a_line_left_out_or_twice(line in 0..GOOD.lines().count(), twice: bool) {
        let mut lines: Vec<&str> = GOOD.lines().collect();
        let taken = lines.remove(line);
        if twice {
            lines.insert(line, taken);
            lines.insert(line, taken);
        }
        check(&lines.join("\n"), &[])?;
    }

    #[test]
    fn two_letters_changed(
        first in 0..GOOD.len(),
        second in 0..GOOD.len(),
        letters in "[ -~äß\n]{2}",
    ) {
        let mut text: Vec<char> = GOOD.chars().collect();
        for (at, letter) in [first, second].into_iter().zip(letters.chars()) {
            text[at] = letter;
        }
        check(&text.into_iter().collect::<String>(), &[])?;
    }

    #[test]
    fn any_override(path in "(run|network|algorithm|problem|data|name|x)(\\.(\\*|0|9|graph|weights|name|batch|seeds|alpha|spdb|p|target|ä)){0,3}", word in 0..WORDS.len()) {
        check(GOOD, &["run.evaluations=5".into(), format!("{path}={}", WORDS[word])])?;
    }

    #[test]
    fn any_text(text in "\\PC{0,60}", set in "\\PC{0,30}") {
        check(&text, &[])?;
        check(GOOD, &[set])?;
    }
}
