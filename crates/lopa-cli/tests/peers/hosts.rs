//! Three hosts, made of network namespaces on this machine.

use std::process::{Command, Stdio};

use crate::namespaces::Hosts;
use crate::trio::{NAMES, QUADRATIC, Trio, results, text};

#[test]
fn three_hosts_give_the_digest_of_one_process() {
    let Some(_hosts) = Hosts::make("lopap", "10.78.0") else { return };
    let trio = Trio::at(QUADRATIC, &["10.78.0.1", "10.78.0.2", "10.78.0.3"]);
    let want = trio.alone(&[]);
    let start = |(host, name): (usize, &&str)| {
        let node = trio.node(name, &[]);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("lopap{}", host + 1)]);
        command.arg(node.get_program()).args(node.get_args()).current_dir(trio.folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let nodes: Vec<_> = NAMES.iter().enumerate().map(start).collect();
    for (name, node) in NAMES.iter().zip(nodes) {
        let output = node.wait_with_output().unwrap();
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert_eq!(results(&serde_json::from_slice(&output.stdout).unwrap()), want, "{name}");
    }
}
