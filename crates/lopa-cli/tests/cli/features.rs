//! Every build has every command; for a missing part, it prints how to install it.

use crate::program::Folder;

/// A command that needs a feature, whether this build has it, and how to install it.
const COMMANDS: &[(&[&str], bool, &str)] = &[
    (&["data", "fetch", "mnist"], cfg!(feature = "fetch"), "full"),
    (&["key", "show", "a.key"], cfg!(feature = "peers"), "full"),
    (&["roster", "show", "r.toml"], cfg!(feature = "peers"), "full"),
    (&["node", "--roster", "r.toml", "--name", "a"], cfg!(feature = "peers"), "full"),
    (&["theory", "show"], cfg!(feature = "paper"), "full"),
    (&["reproduce", "fig1"], cfg!(feature = "paper"), "full"),
    (&["run", "--set", "run.lyapunov=true"], cfg!(feature = "paper"), "full"),
    (&["run", "--engine", "mpi"], cfg!(feature = "mpi"), "mpi"),
    (&["run", "--device", "cuda"], cfg!(feature = "cuda"), "full,cuda"),
];

#[test]
fn every_build_explains_every_command() {
    for command in ["data", "key", "roster", "node", "run", "theory", "reproduce"] {
        assert!(Folder::new().lopa(&[command, "--help"]).good().stdout.contains("Usage: lopa"));
    }
    let help = Folder::new().lopa(&["data", "--help"]).good().stdout;
    assert!(help.contains("fetch"), "{help}");
}

#[test]
fn a_command_that_is_not_built_in_says_how_to_get_it() {
    for (args, _, feature) in COMMANDS.iter().filter(|(_, built_in, _)| !built_in) {
        let done = Folder::new().lopa(&[*args, &["--format", "json"]].concat());
        let error = &done.json()["error"];
        assert_eq!((done.code, &error["id"]), (2, &"config/not-built-in".into()), "{args:?}");
        let remedy = format!("cargo install --path crates/lopa-cli --features {feature}");
        assert!(error["hint"].as_str().unwrap().contains(&remedy), "{error}");
        assert!(done.stderr.contains("this build has no `lopa "), "{}", done.stderr);
    }
}

#[test]
fn the_doctor_lists_what_this_build_has() {
    let found = Folder::new().lopa(&["doctor", "--format", "json"]).good().json();
    for (what, built_in) in [
        ("lopa data fetch", cfg!(feature = "fetch")),
        ("lopa invite, join, key, roster, node, status", cfg!(feature = "peers")),
        ("lopa report --figure-format png", cfg!(feature = "png")),
        ("lopa theory, reproduce", cfg!(feature = "paper")),
        ("lopa run --engine mpi", cfg!(feature = "mpi")),
    ] {
        let entry = found.as_array().unwrap().iter().find(|entry| entry["what"] == what);
        let entry = entry.unwrap_or_else(|| panic!("{what}: {found}"));
        assert_eq!(entry["ok"], built_in, "{entry}");
        let remedy = entry["remedy"].as_str().unwrap();
        assert_eq!(remedy.contains("cargo install"), !built_in, "{entry}");
    }
}

/// A build that could use a card is clear about its absence.
#[test]
fn a_missing_card_leaves_no_folder() {
    let folder = Folder::new();
    let doctor = folder.lopa(&["doctor", "--format", "json"]).good().json();
    let card =
        doctor.as_array().unwrap().iter().find(|one| one["what"] == "lopa run --device cuda");
    let card = card.expect("the doctor looks for a card");
    if card["ok"] == true {
        eprintln!("skipped: there is a card");
        return;
    }
    assert!(!card["remedy"].as_str().unwrap().is_empty(), "{card}");
    let done = folder.lopa(&["run", "--device", "cuda", "--format", "json"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(!folder.path().join("runs").exists(), "nothing was begun");
    folder.lopa(&["run", "--device", "cpu", "--set", "run.iterations=2"]).good();
}

#[test]
fn a_mistyped_command_gets_a_suggestion() {
    for (typed, meant) in
        [("rn", "run"), ("reprot", "report"), ("graph shw", "show"), ("theory bond", "bound")]
    {
        let words: Vec<&str> = typed.split(' ').chain(["--format", "json"]).collect();
        let done = Folder::new().lopa(&words);
        assert_eq!(done.code, 2);
        assert!(done.stderr.contains(&format!("'{meant}'")), "{}", done.stderr);
        let json = done.json();
        let hint = json["error"]["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("'{meant}'")), "{json}");
    }
}
