"""MNIST cleaning as benchmark_bilevel has it: test error against seconds, lopa beside a JAX loop, one core.

usage: cleaning.py LOPA DATA [--seconds S] [--shares P ...] [--processor] [--write PAGE]

LOPA is the program, DATA the folder of data sets (with mnist/ in it). Runs of lopa and of JAX alternate on one core. --write
replaces the table of section A in a page (docs/others.md). --processor counts seconds of the processor, which hardly depend on
other work on the machine: of lopa, the difference of a long and a short run, per iteration.
"""

import argparse
import gzip
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

CORE = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CORE})
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np

import with_jax

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERIMENT = ROOT / "experiments/others/mnist-cleaning.toml"
STEPS = {"soba": (1.0, 1e4), "saba": (0.1, 100.0)}
START, SEED, EVALUATIONS = -2.0, 1, 100
GOAL = 0.140

# Test errors at 10 s, 60 s and the end, by share of wrong labels.
PUBLISHED = {
    "saba": {0.5: (0.138, 0.136, 0.136), 0.7: (0.145, 0.144, 0.143), 0.9: (0.176, 0.171, 0.171)},
    "soba": {0.5: (0.152, 0.144, 0.137), 0.7: (0.153, 0.148, 0.145), 0.9: (0.199, 0.176, 0.172)},
}


def idx(folder, name, offset):
    packed, plain = folder / f"{name}.gz", folder / name
    content = gzip.open(packed).read() if packed.exists() else plain.read_bytes()
    return np.frombuffer(content, np.uint8, offset=offset)


def images(folder, part):
    rows = idx(folder, f"{part}-images-idx3-ubyte", 16).reshape(-1, 784).astype(np.float32)
    return rows, idx(folder, f"{part}-labels-idx1-ubyte", 8).astype(np.int32)


def case(folder, share):
    """20 000 and 5 000 images, standardised by the moments of both, and the test images."""
    (rows, labels), (test, truth) = images(folder, "train"), images(folder, "t10k")
    rng = np.random.default_rng(SEED)
    chosen = rng.permutation(len(rows))[:25000]
    mean, deviation = rows[chosen].mean(0), rows[chosen].std(0)
    scale = np.where(deviation > 0, deviation, 1)
    train, validation = chosen[:20000], chosen[20000:]
    noisy = labels[train].copy()
    wrong = rng.permutation(20000)[: round(20000 * share)]
    noisy[wrong] = rng.integers(0, 10, len(wrong))
    scaled = lambda rows: ((rows - mean) / scale).astype(np.float32)
    data = {
        "rows": scaled(rows[train]), "labels": noisy,
        "outer_rows": scaled(rows[validation]), "outer_labels": labels[validation],
    }
    return data, (scaled(test), truth)


def call(lopa, data, solver, **sets):
    """The measurements of lopa's run of a solver, and the seconds that it took of the processor."""
    before, *algorithms = EXPERIMENT.read_text().split("[[algorithm]]")
    own = next(text for text in algorithms if f'label = "{solver}"' in text)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "cleaning.toml"
        file.write_text(f"{before}[[algorithm]]{own}")
        command = [lopa, "run", file, "--data", data, "-o", folder, "-j", 1, "-q"]
        command += [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
        spent = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        spent = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - spent
        if done.returncode != 0:
            sys.exit(done.stderr)
        metrics = next(pathlib.Path(folder).glob("*/metrics.jsonl"))
        return list(map(json.loads, metrics.read_text().splitlines())), spent


def ours(lopa, data, solver, share, seconds, processor):
    """[(iterations, seconds, test error)] of lopa's run."""
    sets, scale = {"problem.corruption": share, "run.evaluations": EVALUATIONS}, None
    if processor:
        few, many = 1000, 11000
        short, long = (
            call(lopa, data, solver, **(sets | {"run.iterations": count, "run.evaluations": 1, "run.budget.seconds": 1e6}))[1]
            for count in (few, many)
        )
        scale = (long - short) / (many - few)
        sets |= {"run.iterations": round(seconds / scale), "run.budget.seconds": 1e6}
    else:
        sets |= {"run.budget.seconds": seconds}
    rows = call(lopa, data, solver, **sets)[0]
    when = lambda row: row["iteration"] * scale if scale else row["seconds"]
    return [(row["iteration"], when(row), 1 - row["test_accuracy"]) for row in rows]


def at(found, seconds):
    """The last error that was measured by this time."""
    return [error for _, spent, error in found if spent <= seconds * 1.001][-1]


def reached(found):
    """When the goal was reached first."""
    return next((spent for _, spent, error in found if error <= GOAL), None)


def pace(found):
    """Microseconds per iteration, from the second measurement on: the first may wait for the caches."""
    (k0, t0, _), (k1, t1, _) = found[min(1, len(found) - 2)], found[-1]
    return 1e6 * (t1 - t0) / max(k1 - k0, 1)


def table(results, seconds):
    first = min(1.0, seconds)
    lines = [
        f"| wrong labels | solver | | µs per iteration | error at {first:g} s | at {seconds:g} s "
        f"| published at 10 s / 60 s / end |",
        "|---|---|---|---|---|---|---|",
    ]
    for (share, solver), both in results.items():
        known = " / ".join(f"{error:.3f}"[1:] for error in PUBLISHED[solver].get(share, ()))
        for name, found in both.items():
            numbers = f"{pace(found):.0f} | {at(found, first):.4f} | {at(found, seconds):.4f}"
            lines.append(f"| {share:.0%} | {solver.upper()} | {name} | {numbers} | {known} |")
    lines.append("")
    for (share, solver), both in results.items():
        ratio = pace(both["JAX"]) / pace(both["lopa"])
        lines.append(f"- {solver.upper()} at {share:.0%}: an iteration of lopa takes 1/{ratio:.1f} of JAX's time.")
        if share == 0.5:
            times = {name: reached(found) for name, found in both.items()}
            said = ", ".join(
                f"{name} after {when:.2f} s" if when is not None else f"{name} not within {seconds:g} s"
                for name, when in times.items()
            )
            lines.append(f"- {solver.upper()} at 50% reaches an error of {GOAL:.3f}: {said}.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lopa")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of each run, without measuring")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5, 0.7, 0.9])
    parser.add_argument("--processor", action="store_true", help="seconds of the processor, not of the clock")
    parser.add_argument("--write", type=pathlib.Path, help="page whose table is replaced")
    args = parser.parse_args()
    results = {}
    for share in args.shares:
        data, test = case(args.data / "mnist", share)
        for solver, steps in STEPS.items():
            both = results.setdefault((share, solver), {})
            both["lopa"] = ours(args.lopa, args.data, solver, share, args.seconds, args.processor)
            clock = time.process_time if args.processor else time.perf_counter
            both["JAX"] = with_jax.run(solver, data, steps, START, args.seconds, SEED, test, EVALUATIONS, clock)
            for name, found in both.items():
                print(f"{share:.0%} {solver} {name}: {pace(found):.0f} µs, error {found[-1][2]:.4f}", flush=True)
    text = table(results, args.seconds)
    print(text)
    if args.write:
        page = args.write.read_text()
        begin, end = "<!-- cleaning.py begins -->\n", "<!-- cleaning.py ends -->"
        before, rest = page.split(begin)
        args.write.write_text(f"{before}{begin}{text}\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    main()
