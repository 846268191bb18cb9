//! Hosts made of network namespaces on this machine, connected by a bridge.

use std::process::Command;

/// Three hosts, `NAME1` to `NAME3`, at `NETWORK.1` to `.3`; removed on drop.
pub struct Hosts {
    name: &'static str,
    network: &'static str,
}

/// Makes them.
const MAKE: &str = "
set -e
ip link add ${name}br type bridge
ip link set ${name}br up
ip address add $network.254/24 dev ${name}br
for i in 1 2 3; do
    ip netns add $name$i
    ip link add ${name}v$i type veth peer name eth0 netns $name$i
    ip link set ${name}v$i master ${name}br up
    ip netns exec $name$i ip address add $network.$i/24 dev eth0
    ip netns exec $name$i ip link set eth0 up
    ip netns exec $name$i ip link set lo up
done
";

/// Makes hosts that see only this one, each in a network of its own: `NETWORK.I.1` sees `NETWORK.I.254`.
const MAKE_APART: &str = "
set -e
for i in 1 2 3; do
    ip netns add $name$i
    ip link add ${name}v$i type veth peer name eth0 netns $name$i
    ip link set ${name}v$i up
    ip address add $network.$i.254/24 dev ${name}v$i
    ip netns exec $name$i ip address add $network.$i.1/24 dev eth0
    ip netns exec $name$i ip link set eth0 up
    ip netns exec $name$i ip link set lo up
done
";

const REMOVE: &str = "
for i in 1 2 3; do
    ip netns del $name$i 2>/dev/null; ip link del ${name}v$i 2>/dev/null
done
ip link del ${name}br 2>/dev/null
true
";

impl Hosts {
    /// Three hosts, or `None` where this is not allowed.
    pub fn make(name: &'static str, network: &'static str) -> Option<Hosts> {
        Hosts::with(MAKE, name, network)
    }

    /// Three hosts that do not see each other, but `NETWORK.I.254` here.
    #[allow(dead_code)] // not by all tests that use hosts
    pub fn apart(name: &'static str, network: &'static str) -> Option<Hosts> {
        Hosts::with(MAKE_APART, name, network)
    }

    /// Whether no host has a way to another but over this one's programs.
    #[allow(dead_code)] // not by everybody who uses hosts
    pub fn are_apart(&self) -> bool {
        self.bash(
            "for i in 1 2 3; do for j in 1 2 3; do
                [ $i = $j ] || ! ip netns exec $name$i ip route get $network.$j.1 || exit 1
            done; done",
        )
    }

    /// Packets that have left these hosts so far.
    #[allow(dead_code)] // not by everybody who uses hosts
    pub fn sent(&self) -> u64 {
        let received = |host: usize| {
            let (name, what) = (self.name, "statistics/rx_packets");
            let count = std::fs::read_to_string(format!("/sys/class/net/{name}v{host}/{what}"));
            count.unwrap().trim().parse::<u64>().unwrap()
        };
        (1..=3).map(received).sum()
    }

    fn with(script: &str, name: &'static str, network: &'static str) -> Option<Hosts> {
        let hosts = Hosts { name, network };
        hosts.bash(REMOVE);
        let made = hosts.bash(script);
        if !made {
            eprintln!("skipped: this needs root and network namespaces");
        }
        made.then_some(hosts)
    }

    fn bash(&self, script: &str) -> bool {
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("name", self.name).env("network", self.network);
        command.output().is_ok_and(|done| done.status.success())
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.bash(REMOVE);
    }
}
