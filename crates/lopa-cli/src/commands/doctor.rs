//! `lopa doctor`: the capabilities of this machine and this build, and how to install missing
//! parts.

use std::process::{Command, ExitCode};

use lopa::error::Result;
use lopa::folder::simd;
use serde_json::{Value, json};

use crate::features::{self, CUDA, FETCH, Feature, MPI, PAPER, PEERS, PNG};
use crate::output::Output;

/// One check.
struct Finding {
    what: &'static str,
    good: bool,
    found: String,
    remedy: String,
}

pub fn doctor(output: &Output) -> Result<ExitCode> {
    let findings = [
        processor(),
        threads(),
        folder(),
        mpirun(),
        feature(&MPI),
        feature(&PEERS),
        feature(&FETCH),
        feature(&PNG),
        feature(&PAPER),
        card(),
    ];
    if output.json() {
        let entry = |finding: &Finding| {
            let Finding { what, good, found, remedy } = finding;
            json!({ "what": what, "ok": good, "found": found, "remedy": remedy })
        };
        output.document(&Value::Array(findings.iter().map(entry).collect()));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |finding: &Finding| {
        let good = if finding.good { "yes" } else { "no" };
        [finding.what, good, &finding.found, &finding.remedy].map(String::from).to_vec()
    };
    let head = ["what", "ok", "found", "how to get it"];
    output.text(&output.list(&head, findings.iter().map(row).collect()));
    output.note(
        "`lopa run` needs none of the optional parts; `lopa data list` shows which data sets are here",
    );
    Ok(ExitCode::SUCCESS)
}

fn processor() -> Finding {
    let simd = simd();
    let good = simd.contains(&"avx2") || simd.contains(&"neon");
    let found = if simd.is_empty() { "no vector instructions".into() } else { simd.join(", ") };
    Finding { what: "vector instructions", good, found, remedy: String::new() }
}

fn threads() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Finding { what: "threads", good: true, found: cores.to_string(), remedy: String::new() }
}

/// Whether run folders can be made here.
fn folder() -> Finding {
    let probe = std::path::Path::new(".lopa-doctor");
    let made = std::fs::create_dir(probe).and_then(|()| std::fs::remove_dir(probe));
    let (good, found) = match made {
        Ok(()) => (true, "this folder is writable".into()),
        Err(error) => (false, error.to_string()),
    };
    let remedy = if good { "" } else { "change to a writable folder, or use `lopa run --out`" };
    Finding { what: "run folders", good, found, remedy: remedy.into() }
}

fn mpirun() -> Finding {
    let output = Command::new("mpirun").arg("--version").output();
    let version = output.ok().filter(|output| output.status.success()).map(|output| {
        String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_string()
    });
    Finding {
        what: "mpirun",
        good: version.is_some(),
        remedy: if version.is_some() { "" } else { "`apt-get install openmpi-bin`" }.into(),
        found: version.unwrap_or_else(|| "not found".into()),
    }
}

/// Whether there is a graphics card, and whether this build can use it.
fn card() -> Finding {
    let (good, found, remedy) = match features::card() {
        Ok(name) => (true, name, String::new()),
        Err(_) if !CUDA.built_in => (false, "not built in".into(), CUDA.remedy()),
        Err(error) => (false, error.message, error.hint.unwrap_or_default()),
    };
    Finding { what: CUDA.commands, good, found, remedy }
}

/// Whether this build has an optional part.
fn feature(feature: &Feature) -> Finding {
    let Feature { commands: what, built_in: good, .. } = *feature;
    let (found, remedy) = match good {
        true => ("built in", String::new()),
        false => ("not built in", feature.remedy()),
    };
    Finding { what, good, found: found.into(), remedy }
}
