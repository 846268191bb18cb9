//! Several hosts, made of network namespaces on this machine.

use std::process::Command;

use crate::program::Folder;
use crate::{NOISY, PERSONAL, text, timeless};

/// Makes the hosts `lopa1`, `lopa2`, `lopa3` at 10.77.0.1 to 3, joined by a bridge.
const MAKE: &str = "
set -e
ip link add lopabr type bridge
ip link set lopabr up
ip address add 10.77.0.254/24 dev lopabr
for i in 1 2 3; do
    ip netns add lopa$i
    ip link add lopav$i type veth peer name eth0 netns lopa$i
    ip link set lopav$i master lopabr up
    ip netns exec lopa$i ip address add 10.77.0.$i/24 dev eth0
    ip netns exec lopa$i ip link set eth0 up
    ip netns exec lopa$i ip link set lo up
done
";

const REMOVE: &str = "
for i in 1 2 3; do ip netns del lopa$i 2>/dev/null; ip link del lopav$i 2>/dev/null; done
ip link del lopabr 2>/dev/null
true
";

/// Does what `ssh` would do: enters the host that is named first.
const AGENT: &str = "#!/bin/bash
for word in \"$@\"; do
    case $word in 10.77.0.*) host=${word##*.}; break ;; esac
    shift
done
shift
exec ip netns exec lopa$host bash -c \"$*\"
";

struct Hosts;

impl Hosts {
    fn make() -> Option<Hosts> {
        bash(REMOVE);
        let hosts = Hosts;
        bash(MAKE).then_some(hosts)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        bash(REMOVE);
    }
}

fn bash(script: &str) -> bool {
    Command::new("bash").args(["-c", script]).output().is_ok_and(|done| done.status.success())
}

#[test]
fn three_hosts_give_the_same_results() {
    let Some(_hosts) = Hosts::make() else {
        eprintln!("left out: this needs root and network namespaces");
        return;
    };
    let hostfile = "10.77.0.1 slots=1\n10.77.0.2 slots=2\n10.77.0.3 slots=1\n";
    let folder = Folder::with(&[("e.toml", PERSONAL), ("hosts", hostfile), ("agent", AGENT)]);
    bash(&format!("chmod +x {}", folder.path().join("agent").display()));
    let sets: Vec<&str> = NOISY.iter().flat_map(|set| ["--set", *set]).collect();
    let args = [&["run", "e.toml", "--format", "json"], &sets[..]].concat();
    let alone = folder.program(&args).output().unwrap();
    let lopa = folder.program(&[]).get_program().to_os_string();
    let agent = folder.path().join("agent");
    let output = Command::new("mpirun")
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "4", "--hostfile", "hosts"])
        .args(["--mca", "plm_rsh_agent", agent.to_str().unwrap()])
        .args(["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.77.0.0/24"])
        .args(["--mca", "oob_tcp_if_include", "10.77.0.0/24"])
        .arg(lopa)
        .args([&args[..], &["--engine", "mpi"]].concat())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(timeless(&output.stdout), timeless(&alone.stdout));
}
