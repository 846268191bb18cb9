//! Several hosts, made of network namespaces on this machine.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::namespaces::Hosts;
use crate::program::Folder;
use crate::{NOISY, PERSONAL, launcher, text, timeless};

/// Stands in for `ssh`: enters the host named first, with a temporary folder per host.
const AGENT: &str = "#!/bin/bash
for word in \"$@\"; do
    case $word in 10.77.0.*) host=${word##*.}; break ;; esac
    shift
done
shift
export TMPDIR=$0.$host
mkdir $TMPDIR
exec ip netns exec lopa$host bash -c \"$*\"
";

#[test]
fn three_hosts_give_the_same_results() {
    let Some(_hosts) = Hosts::make("lopa", "10.77.0") else { return };
    let hostfile = "10.77.0.1 slots=1\n10.77.0.2 slots=2\n10.77.0.3 slots=1\n";
    let folder = Folder::with(&[("e.toml", PERSONAL), ("hosts", hostfile), ("agent", AGENT)]);
    let agent = folder.path().join("agent");
    std::fs::set_permissions(&agent, Permissions::from_mode(0o755)).unwrap();
    let sets: Vec<&str> = NOISY.iter().flat_map(|set| ["--set", *set]).collect();
    let args = [&["run", "e.toml", "--format", "json"], &sets[..]].concat();
    let alone = folder.program(&args).output().unwrap();
    let output = launcher(&folder, 4)
        .args(["--hostfile", "hosts"])
        .args(["--mca", "plm_rsh_agent", agent.to_str().unwrap()])
        .args(["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.77.0.0/24"])
        .args(["--mca", "oob_tcp_if_include", "10.77.0.0/24"])
        .arg(folder.program(&[]).get_program())
        .args([&args[..], &["--engine", "mpi"]].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(timeless(&output.stdout), timeless(&alone.stdout));
}
