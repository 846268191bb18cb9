//! One program for all targets: `LOPA_FUZZ` names the one that is run.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use lopa_fuzz::targets::{TARGETS, Target};

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("LOPA_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    *found.unwrap_or_else(|| {
        let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("LOPA_FUZZ must be one of: {}", known.join(" "));
        std::process::exit(2)
    })
}

fuzz_target!(|bytes: &[u8]| (CHOSEN.get_or_init(chosen).1)(bytes));
