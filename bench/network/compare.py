"""Runs peers behind shaped links, and compares the seconds they take with `virtual_seconds`.

usage: compare.py LOPA

For three graphs and two message sizes, three times each; the median counts. It needs root, network
namespaces, /dev/net/tun and a nearly idle machine: four peers and the links between them share it.
Prints a table; fails if a prediction is off by more than 15 %.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
NODES = 4
LATENCY, RATE = 0.05, 200_000  # seconds; bytes per second of a link
# QUIC, UDP and IP leave this share of a packet to its content.
CONTENT = 0.955
ROUNDS = 40
TRIES = 3
GRAPHS = ["ring", "star", "one-peer-exponential"]
FEATURES = [500, 5000]

EXPERIMENT = """
name = "shaped"
problem = {{ name = "hyperparameter", validation = 0.5 }}
data = {{ name = "blobs", rows = 80, features = {features}, centres = 2 }}
network = {{ nodes = {nodes}, graph = "{graph}" }}
time = {{ compute = "measured", links = {{ latency = {latency}, bandwidth = {bandwidth}, overhead = 120 }} }}
run = {{ iterations = {rounds}, evaluations = 1, batch = 4, exact = "never" }}
checkpoint = {{ iterations = 100000 }}
algorithm = [{{ name = "lopa-lg", alpha = 0.001, beta = 0.01, lambda = 0.01 }}]
"""


def shell(text):
    subprocess.run(["bash", "-ec", text], check=True)


def remove():
    for i in range(NODES + 1):
        subprocess.run(["ip", "netns", "del", f"shp{i}"], stderr=subprocess.DEVNULL)


def make():
    """Namespace 0 is the router; packets of a peer go through the device `shape`."""
    remove()
    shell("ip netns add shp0; ip -n shp0 link set lo up")
    for i in range(1, NODES + 1):
        shell(f"""
            ip netns add shp{i}; ip -n shp{i} link set lo up
            ip link add veth{i} netns shp0 type veth peer name eth0 netns shp{i}
            ip -n shp0 addr add 10.77.{i}.1/24 dev veth{i}; ip -n shp0 link set veth{i} up
            ip -n shp{i} addr add 10.77.{i}.2/24 dev eth0; ip -n shp{i} link set eth0 up
            ip -n shp{i} route add default via 10.77.{i}.1
            ip -n shp0 rule add iif veth{i} lookup 100""")


def route():
    shell("""
        ip -n shp0 addr add 10.78.0.1/32 dev shape; ip -n shp0 link set shape up
        ip -n shp0 route add default dev shape table 100
        ip netns exec shp0 sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0
        ip netns exec shp0 sysctl -qw net.ipv4.conf.shape.rp_filter=0""")


def measure(lopa, folder, graph, features):
    """Seconds that the slowest peer took, each time, and those predicted."""
    text = EXPERIMENT.format(graph=graph, features=features, nodes=NODES, latency=LATENCY,
                             bandwidth=RATE * CONTENT, rounds=ROUNDS)
    (folder / "e.toml").write_text(text)

    def run(*args, **more):
        return subprocess.run([lopa, *args], cwd=folder, check=True, capture_output=True, text=True,
                              **more).stdout

    # One process measures the calls; peers take its numbers.
    alone = json.loads(run("run", "e.toml", "--format", "json", "--out", f"alone-{graph}-{features}"))
    resolved = next((folder / f"alone-{graph}-{features}").glob("*/resolved.toml")).read_text()
    (folder / "e.toml").write_text(resolved)
    for i in range(1, NODES + 1):
        key = folder / f"n{i}.key"
        if not key.exists():
            run("key", "new", str(key))
    roster = folder / "roster.toml"
    roster.unlink(missing_ok=True)
    for i in range(1, NODES + 1):
        public = run("key", "show", f"n{i}.key").strip()
        run("roster", "add", "roster.toml", f"n{i}", public, f"10.77.{i}.2:4800")
    taken = []
    for attempt in range(TRIES):
        peers = [subprocess.Popen(
            ["ip", "netns", "exec", f"shp{i}", lopa, "node", "e.toml", "--roster", "roster.toml", "--name",
             f"n{i}", "--listen", f"10.77.{i}.2:4800", "--out", f"peers-{graph}-{features}-{attempt}",
             "--format", "json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for i in range(1, NODES + 1)]
        rows = []
        for peer in peers:
            out, err = peer.communicate(timeout=600)
            if peer.returncode != 0:
                raise SystemExit(err)
            rows.append(json.loads(out)[0])
        assert len({row["digest"] for row in rows} | {alone[0]["digest"]}) == 1, "digests differ"
        assert len({row["virtual_seconds"] for row in rows} | {alone[0]["virtual_seconds"]}) == 1
        taken.append(max(row["seconds"] for row in rows))
    return taken, rows[0]["virtual_seconds"]


def main():
    lopa = os.path.abspath(sys.argv[1])
    make()
    shaper = subprocess.Popen(["ip", "netns", "exec", "shp0", sys.executable, HERE / "shape.py", "shape",
                               str(LATENCY), str(RATE)], stdout=subprocess.PIPE, text=True)
    worst = 0.0
    try:
        assert shaper.stdout.readline() == "ready\n"
        route()
        print("| graph | bytes of a message | predicted s | taken s | off by | each time |\n|---|---|---|---|---|---|")
        with tempfile.TemporaryDirectory() as folder:
            for graph in GRAPHS:
                for features in FEATURES:
                    taken, predicted = measure(lopa, pathlib.Path(folder), graph, features)
                    middle = statistics.median(taken)
                    off = middle / predicted - 1
                    worst = max(worst, abs(off))
                    each = ", ".join(f"{seconds:.2f}" for seconds in taken)
                    print(f"| `{graph}` | {8 * features} | {predicted:.2f} | {middle:.2f} | {off:+.1%} | {each} |",
                          flush=True)
    finally:
        shaper.kill()
        remove()
    if worst > 0.15:
        raise SystemExit(f"a prediction is off by {worst:.0%}")


main()
