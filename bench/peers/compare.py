"""Runs lopa and its peers alternately, checks that they agree, prints a table of ratios.

usage: compare.py OURS DATA [CASE…]      the case `shapes` stands for `representation` in other shapes
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
CASES = [
    "representation-mnist",
    "hyperparameter-mnist01",
    "hyperparameter-covtype",
    "hyperparameter-cifar",
]
SHAPES = [
    "mnist-64-128",
    "mnist-200-256",
    "mnist-standardised-64-128",
    "cifar-128-64",
    "covtype-64-256",
]
PEERS = [peer for peer in ("numpy", "torch", "jax") if importlib.util.find_spec(peer)]
ROUNDS = int(os.environ.get("ROUNDS", "3"))
ITERATIONS = 300


def call(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return float(done.stdout.split()[-1])


def peer(name, folder, *rest):
    return call(sys.executable, HERE / "peer.py", name, folder, *rest)


def agree(ours, case, folder):
    """The same trajectory on full batches, and the same loss within sampling error."""
    loss = call(ours, "loss", case, ITERATIONS)
    for name in PEERS:
        gap, theirs = peer(name, folder, "check"), peer(name, folder, "loss", ITERATIONS)
        print(f"  {name}: full batches differ by {gap:.1e}, loss {theirs:.4f}, ours {loss:.4f}", flush=True)
        # Features are exported in single precision.
        if not gap < 1e-5 or abs(theirs - loss) > 0.03 * abs(loss):
            sys.exit(f"{name} does not compute the same thing on {case}")


def rates(ours, case, folder, precision):
    best = dict.fromkeys(["ours", "ours, 2 threads", *PEERS], 0.0)
    for _ in range(ROUNDS):
        for name in best:
            if name.startswith("ours"):
                rate = call(ours, "rate", case, precision, 2 if "2" in name else 1)
            else:
                rate = peer(name, folder, "rate", precision)
            best[name] = max(best[name], rate)
    return best


def main(ours, data, *chosen):
    table = []
    for case in SHAPES if chosen == ("shapes",) else chosen or CASES:
        folder = pathlib.Path(data) / case
        print(case, flush=True)
        if not (folder / "few" / "v").exists():
            subprocess.run([ours, "export", case, data], check=True)
        agree(ours, case, folder)
        for precision in ("f32", "f64"):
            found = rates(ours, case, folder, precision)
            peers = max(found[name] for name in PEERS)
            row = [case, precision, *(f"{found[name]:.0f}" for name in PEERS)]
            row += [f"{found['ours']:.0f}", f"{found['ours'] / peers:.1f}"]
            row += [f"{found['ours, 2 threads'] / found['ours']:.2f}"]
            table.append(row)
            print("  " + " ".join(row), flush=True)
    head = ["problem", "precision", *PEERS, "lopa", "lopa / best peer", "two threads / one"]
    print("\niterations per second, one thread\n")
    for row in [head, ["---"] * len(head), *table]:
        print("| " + " | ".join(row) + " |")


main(*sys.argv[1:])
