//! `lopa doctor`: what this machine and this build can do, and how to get what is missing.

use std::process::{Command, ExitCode};

use lopa::error::Result;
use lopa::folder::simd;
use serde_json::{Value, json};

use crate::output::Output;

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    good: bool,
    found: String,
    remedy: &'static str,
}

pub fn doctor(output: &Output) -> Result<ExitCode> {
    let findings = [processor(), threads(), folder(), mpirun(), mpi(), peers()];
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
        [finding.what, good, &finding.found, finding.remedy].map(String::from).to_vec()
    };
    let head = ["what", "there", "found", "how to get it"];
    output.text(&output.list(&head, findings.iter().map(row).collect()));
    output.note(
        "`lopa run` in one process needs neither MPI nor peers; `lopa data list` says which data sets are here",
    );
    Ok(ExitCode::SUCCESS)
}

fn processor() -> Finding {
    let simd = simd();
    let good = simd.contains(&"avx2");
    let found = if simd.is_empty() { "no vector instructions".into() } else { simd.join(", ") };
    Finding { what: "vector instructions", good, found, remedy: "" }
}

fn threads() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Finding { what: "threads", good: true, found: cores.to_string(), remedy: "" }
}

/// Whether a run folder could be made here.
fn folder() -> Finding {
    let probe = std::path::Path::new(".lopa-doctor");
    let made = std::fs::create_dir(probe).and_then(|()| std::fs::remove_dir(probe));
    let (good, found) = match made {
        Ok(()) => (true, "this folder can be written to".into()),
        Err(error) => (false, error.to_string()),
    };
    let remedy = if good { "" } else { "go to a folder of your own, or use `lopa run --out`" };
    Finding { what: "run folders", good, found, remedy }
}

fn mpirun() -> Finding {
    let output = Command::new("mpirun").arg("--version").output();
    let version = output.ok().filter(|output| output.status.success()).map(|output| {
        String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_string()
    });
    Finding {
        what: "mpirun",
        good: version.is_some(),
        remedy: if version.is_some() { "" } else { "apt-get install openmpi-bin" },
        found: version.unwrap_or_else(|| "not there".into()),
    }
}

fn mpi() -> Finding {
    let good = cfg!(feature = "mpi");
    let (found, remedy) = match good {
        true => ("built in", ""),
        false => (
            "not built in",
            "apt-get install libopenmpi-dev libclang-dev, then cargo install --path \
             crates/lopa-cli --features mpi",
        ),
    };
    Finding { what: "lopa run --engine mpi", good, found: found.into(), remedy }
}

fn peers() -> Finding {
    let good = cfg!(feature = "peers");
    let (found, remedy) = match good {
        true => ("built in", ""),
        false => ("not built in", "cargo install --path crates/lopa-cli --features peers"),
    };
    Finding { what: "lopa node", good, found: found.into(), remedy }
}
