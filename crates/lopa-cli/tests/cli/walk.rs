//! The walk through the whole tool in docs/walk.md, as one shell script.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::pages::pages;
use crate::program::Folder;

#[test]
fn every_command_of_the_walk_runs() {
    let pages = pages();
    let page = pages.iter().find(|page| page.name() == "docs/walk.md").unwrap();
    let (_, blocks) = page.parts();
    let script: String =
        blocks.iter().filter(|block| block.language == "sh").map(|block| &block.text[..]).collect();
    let steps = "init,data stats,check,tune,run,report,compare,predict,evaluate,adapt,export";
    for step in steps.split(',') {
        assert!(script.contains(&format!("lopa {step}")), "the walk leaves out `{step}`");
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    let walk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/walk");
    std::os::unix::fs::symlink(walk, folder.path().join("docs/walk")).unwrap();
    let mut path = vec![Path::new(env!("CARGO_BIN_EXE_lopa")).parent().unwrap().to_path_buf()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut shell = Command::new("bash");
    for name in ["LOPA_DATA_DIR", "LOPA_RUNS_DIR", "LOPA_THREADS", "NO_COLOR"] {
        shell.env_remove(name);
    }
    let output = shell
        .args(["-euxo", "pipefail", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", std::env::join_paths(path).unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    for name in
        ["report.html", "answers.csv", "sixth.safetensors", "north.onnx", "measurements.csv"]
    {
        assert!(folder.path().join(name).metadata().unwrap().len() > 100, "{name}");
    }
    assert_eq!(folder.read("answers.csv").lines().count(), 21);
}
