//! Three organisations behind routers and firewalls, made of network namespaces, and a real relay.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::consortium::{NAMES, Sites, step};
use crate::trio::{results, text};

/// A relay at `NETWORK.10`, and three routers at `NETWORK.1` to `.3`, each with a host behind it. All hosts have
/// the same address, the routers translate it and let nothing in. The third passes no UDP.
const MAKE: &str = r#"
set -e
ip link add ${name}br type bridge
ip link set ${name}br up
ip netns add ${name}r
ip link add ${name}vr type veth peer name eth0 netns ${name}r
ip link set ${name}vr master ${name}br up
ip -n ${name}r address add $network.10/24 dev eth0
ip -n ${name}r link set eth0 up
ip -n ${name}r link set lo up
for i in 1 2 3; do
    ip netns add ${name}g$i
    ip netns add $name$i
    ip link add ${name}v$i type veth peer name wan netns ${name}g$i
    ip link set ${name}v$i master ${name}br up
    ip link add lan netns ${name}g$i type veth peer name eth0 netns $name$i
    ip -n ${name}g$i address add $network.$i/24 dev wan
    ip -n ${name}g$i address add 192.168.7.1/24 dev lan
    ip -n $name$i address add 192.168.7.2/24 dev eth0
    for link in wan lan lo; do ip -n ${name}g$i link set $link up; done
    for link in eth0 lo; do ip -n $name$i link set $link up; done
    ip -n $name$i route add default via 192.168.7.1
    ip netns exec ${name}g$i sysctl -qw net.ipv4.ip_forward=1
    [ $i = 3 ] && udp='meta l4proto udp drop' || udp=
    ip netns exec ${name}g$i nft -f - <<RULES
table ip nat {
    chain out { type nat hook postrouting priority 100; oifname "wan" masquerade; }
}
table ip firewall {
    chain through {
        type filter hook forward priority 0; policy drop;
        $udp
        ct state established,related accept
        iifname "lan" accept
    }
    chain into { type filter hook input priority 0; policy drop; iifname { "lan", "lo" } accept; }
}
RULES
done
"#;

const REMOVE: &str = "
for i in 1 2 3; do
    ip netns del $name$i; ip netns del ${name}g$i; ip link del ${name}v$i
done
ip netns del ${name}r; ip link del ${name}vr; ip link del ${name}br
true
";

const NAME: &str = "lopan";
const NETWORK: &str = "10.79.0";

/// The hosts; removed on drop.
struct Routers;

impl Routers {
    /// The hosts and the program of the relay, or `None` with the reason.
    fn make() -> Option<(Routers, PathBuf)> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|folder| folder.join("iroh-relay"));
        let Some(relay) = places.find(|file| file.exists()) else {
            eprintln!("skipped: this needs the program iroh-relay (docs/consortium.md)");
            return None;
        };
        let routers = Routers;
        bash(REMOVE);
        if !bash(MAKE) {
            eprintln!("skipped: this needs root, network namespaces and nftables");
            return None;
        }
        Some((routers, relay))
    }
}

impl Drop for Routers {
    fn drop(&mut self) {
        bash(REMOVE);
    }
}

fn bash(script: &str) -> bool {
    let mut command = Command::new("bash");
    command.args(["-c", script]).env("name", NAME).env("network", NETWORK);
    command.output().is_ok_and(|done| done.status.success())
}

/// A relay under way; killed on drop.
struct Relay(Child);

impl Relay {
    fn start(program: &PathBuf, sites: &Sites) -> Relay {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{NAME}r")]).arg(program);
        command.args(["--config-path", "relay.toml"]).current_dir(sites.path("north"));
        Relay(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The measurements that a node has taken so far.
fn measurements(sites: &Sites, name: &str) -> usize {
    let Ok(runs) = std::fs::read_dir(sites.path(name).join("runs").join(name)) else { return 0 };
    let lines = |path: PathBuf| std::fs::read_to_string(path.join("metrics.jsonl")).ok();
    let runs = runs.flatten().filter_map(|entry| lines(entry.path()));
    runs.map(|text| text.lines().count()).max().unwrap_or(0)
}

fn wait_for(sites: &Sites, count: usize) {
    let start = Instant::now();
    while measurements(sites, "north") < count {
        assert!(start.elapsed() < Duration::from_secs(120), "no {count} measurements");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn three_organisations_behind_firewalls_run_with_four_commands_each_and_no_open_port() {
    let Some((_routers, program)) = Routers::make() else { return };
    let mut sites = Sites::new();
    sites.inside = Some(NAME);
    let longer =
        sites.experiment.replace("iterations = 100", "iterations = 2000\nevaluations = 40");
    assert_ne!(longer, sites.experiment);
    sites.write("north", "experiment.toml", &longer);
    let of = |site: &str, start: &str| {
        step(site, start).replace("https://relay.example.org", &format!("http://{NETWORK}.10:3340"))
    };
    sites.run("north", &of("north", "lopa invite"));
    for name in ["south", "west"] {
        sites.mail("north", &format!("{name}.invite"), name, &format!("{name}.invite"));
        sites.run(name, &of(name, "lopa join"));
        sites.mail(name, &format!("{name}.reply"), "north", &format!("{name}.reply"));
    }
    sites.run("north", &of("north", "lopa roster accept"));
    for name in ["south", "west"] {
        sites.mail("north", "roster.toml", name, "from-north.toml");
        sites.run(name, &of(name, "lopa roster accept"));
    }
    sites.run("north", "lopa roster relay roster.toml > relay.toml");
    let relay = Relay::start(&program, &sites);
    let start = |line: &str| -> Vec<Child> {
        let line = |name: &str| of(name, line) + " --format json --deadline 60";
        NAMES.iter().map(|name| sites.command(name, &line(name)).spawn().unwrap()).collect()
    };
    let ends = |nodes: Vec<Child>| -> Vec<Output> {
        nodes.into_iter().map(|node| node.wait_with_output().unwrap()).collect()
    };
    for (name, output) in NAMES.iter().zip(ends(start("lopa node --check"))) {
        assert!(output.status.success(), "{name}: {}", text(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        for neighbour in found.as_array().unwrap() {
            assert_eq!(neighbour["link"], "relayed", "{name}: {found}");
        }
    }
    let nodes = start("lopa node");
    wait_for(&sites, 5);
    // The relay dies, and comes back.
    drop(relay);
    std::thread::sleep(Duration::from_secs(1));
    let _relay = Relay::start(&program, &sites);
    wait_for(&sites, measurements(&sites, "north") + 5);
    // The router of `south` gets another address; connections through the old one are lost.
    let change = "ip -n ${name}g2 address del $network.2/24 dev wan \
                  && ip -n ${name}g2 address add $network.102/24 dev wan";
    assert!(bash(change));
    let outputs = ends(nodes);
    sites.inside = None;
    sites.mail("south", "south.csv", "north", "south.csv");
    sites.mail("west", "west.csv", "north", "west.csv");
    let [alone, _] = sites.run("north", "lopa run experiment.toml --out alone --format json");
    let alone = results(&serde_json::from_str(&alone).unwrap());
    for (name, output) in NAMES.iter().zip(outputs) {
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert_eq!(results(&serde_json::from_slice(&output.stdout).unwrap()), alone, "{name}");
    }
}
