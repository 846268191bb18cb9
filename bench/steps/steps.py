"""Steps that the rule finds against a tuned grid, for the same number of Hessian-vector products.

For each case: the rule, and AdaSDBO's, on ten seeds; a grid of 7 alphas (half decades around the rule's, which favours
the grid) times 3 betas (0.1, 0.4 and 1.6 over the curvature at the start, which the grid is told) on seeds 101 and 102,
which no pair may diverge on; the best of it on the same ten seeds. A tuner tries its winner, and takes the next best
where that diverges: so does the grid here, on the very seeds that it is judged on.

reach = (start - rule) / (start - tuned), of means over seeds, in the mean loss over nodes, or in Phi where it is exact.
A run that diverged counts as one that stayed at its start. Where no pair of the grid gains anything there is no reach; the
case then counts as reached if the rule does not end above its start.

--drawn SEED takes twelve cases that are drawn from the seed, data sets included, instead of those of the page.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from made import make  # noqa: E402

BUDGET = 500
TUNING = [101, 102]
BETAS = (0.1, 0.4, 1.6)
ALPHAS = tuple(10 ** (power / 2) for power in range(-3, 4))


def case(name, method, problem, network, batch, data=None, partition="iid", scope="personal", known=False):
    """`known`: the rule was made with a look at this data set, so that the case does not count."""
    return {
        "name": name + (" †" if known else ""), "method": method, "problem": problem, "network": network,
        "batch": batch, "data": data, "partition": partition, "scope": scope, "known": known,
    }


def net(nodes, graph):
    return {"nodes": nodes, "graph": graph}


def raw(path):
    name, label = ("csv", {"label": "y"}) if path.endswith(".csv") else ("libsvm", {})
    return {"name": name, "path": path, "test": 0.0, **label}


def scaled(path):
    return {**raw(path), **STANDARD}


def hidden(units):
    return {"name": "representation", "hidden": [units], "ridge": 0.02}


def quadratic(condition, n=10, p=10, noise=0.5):
    return {"name": "quadratic", "n": n, "p": p, "condition": condition, "noise": noise, "samples": 50}


STANDARD = {"scaling": "standardise"}
HYPER = {"name": "hyperparameter"}
SKEW = {"name": "dirichlet-class", "alpha": 0.5}
PATIENTS = {"name": "csv", "path": "patients.csv", "label": "diagnosis", "group": "hospital", "test": 0.0}
DIGITS = {"name": "digits", "scaling": "unit"}
CASES = [
    case("hyper, sparse 0/1 like a9a, skewed", "lopa-gt", HYPER, net(10, "ring"), 32, raw("adults.svm"), SKEW),
    case("hyper, sparse words, skewed", "lopa-gt", HYPER, net(10, "ring"), 32, raw("words.svm"), SKEW),
    case("hyper, raw columns over 4 decades", "lopa-gt", HYPER, net(8, "path"), 16, raw("decades.csv")),
    case("hyper, raw columns over 4 decades", "lopa-lg", HYPER, net(8, "path"), 16, raw("decades.csv")),
    case("hyper, classes 95:5, full batch", "lopa-gt", HYPER, net(6, "complete"), "full", scaled("rare.csv")),
    case("hyper, classes 95:5, batch 8, m 40", "d-soba", HYPER, net(40, "exponential"), 8, scaled("rare.csv")),
    case("hyper, 20 classes, skewed", "lopa-gt", HYPER, net(8, "ring"), 32, scaled("many.csv"), SKEW),
    case("hyper, shifted raw columns, m 3", "lopa-gt", HYPER, net(3, "path"), 8, raw("shifted.csv")),
    case("hyper, wrong labels", "lopa-lg", HYPER, net(12, "ring"), 16, scaled("noisy.csv")),
    case("hyper, tangled columns", "lopa-gt", HYPER, net(10, "complete"), 32, raw("tangled.csv")),
    case("hyper, long tails, raw", "lopa-gt", HYPER, net(8, "ring"), 16, raw("tails.csv")),
    case("hyper, counts, m 20", "zhang", HYPER, net(20, "exponential"), 8, raw("counts.csv"), SKEW),
    case("hyper, ten rows a node, m 30", "lopa-gt", HYPER, net(30, "ring"), "full", scaled("few.csv")),
    case("hyper, 20 classes, global", "lopa-gt", HYPER, net(8, "ring"), 32, scaled("many.csv"), SKEW, "global"),
    case("hyper, sparse 0/1, global", "lopa-lg", HYPER, net(10, "ring"), 32, raw("adults.svm"), SKEW, "global"),
    case("repr, 20 classes", "lopa-gt", hidden(16), net(8, "ring"), 32, scaled("many.csv")),
    case("repr, shifted columns, scaled", "lopa-lg", hidden(8), net(6, "complete"), 16, scaled("shifted.csv")),
    case("repr, shells", "lopa-gt", hidden(16), net(6, "ring"), 16, scaled("shells.csv")),
    case("repr, counts, m 20, batch 8", "lopa-gt", hidden(16), net(20, "exponential"), 8, scaled("counts.csv")),
    case("repr, classes 95:5, full batch", "lopa-gt", hidden(8), net(5, "ring"), "full", scaled("rare.csv")),
    case("quadratic 1, m 3", "lopa-gt", quadratic(1), net(3, "path"), "full"),
    case("quadratic 30, m 100", "lopa-gt", quadratic(30), net(100, "exponential"), 8),
    case("quadratic 100", "sldbo", quadratic(100), net(8, "ring"), "full"),
    case("quadratic 100", "sparkle", quadratic(100), net(8, "complete"), 16),
    case("quadratic 1000, n 20, p 30", "lopa-gt", quadratic(1000, 20, 30), net(12, "path"), 16),
    case("quadratic 1e4", "lopa-gt", quadratic(1e4), net(8, "ring"), 16),
    case("quadratic 1e4", "lopa-lg", quadratic(1e4), net(8, "complete"), "full"),
    case("quadratic 10, global", "lopa-gt", quadratic(10), net(8, "ring"), 16, None, "iid", "global"),
    case("quadratic 100, global", "lopa-lg", quadratic(100), net(8, "ring"), "full", None, "iid", "global"),
    case("quadratic 30, global", "d-soba", quadratic(30), net(6, "path"), 8, None, "iid", "global"),
    case("hyper, patients", "lopa-gt", HYPER, net(5, "ring"), 16, {**PATIENTS, **STANDARD}, "group", known=True),
    case("hyper, patients, raw", "lopa-gt", HYPER, net(5, "ring"), 16, PATIENTS, "group", known=True),
    case("hyper, digits, global", "lopa-gt", HYPER, net(8, "ring"), 32, DIGITS, SKEW, "global", known=True),
    case("repr, patients", "lopa-gt", hidden(8), net(5, "ring"), 16, {**PATIENTS, **STANDARD}, "group", known=True),
    case("repr, digits, m 20, batch 8", "lopa-gt", hidden(16), net(20, "exponential"), 8, DIGITS, known=True),
]


def drawn(seed):
    """Four cases of each kind of problem, drawn from a seed; their data sets are those of `made.drawn`."""
    rng = random.Random(seed)
    cases = []
    for at in range(12):
        kind = at % 3
        partition = rng.choice(["iid", {**SKEW, "alpha": 2.0}])  # every node must have rows
        nodes = round(10 ** rng.uniform(0.5, 1.5 if partition == "iid" else 1))
        network = net(nodes, rng.choice(["ring", "path", "complete", "exponential"]))
        batch = rng.choice([8, 16, 32, 64, "full"])
        scope = rng.choice(["personal", "personal", "personal", "global"])
        method = rng.choice(["lopa-gt", "lopa-gt", "lopa-lg", "d-soba", "sldbo", "sparkle", "zhang"])
        path, scales = f"drawn-{seed}-{at}.csv", rng.random() < 0.5
        size, other, condition = rng.randrange(4, 33), rng.randrange(4, 33), 10 ** rng.uniform(0, 4)
        if kind == 0:
            problem, data = HYPER, scaled(path) if scales else raw(path)
            words = "hyper, scaled columns" if scales else "hyper, raw columns"
        elif kind == 1:
            problem, data, words = hidden(size), scaled(path), f"repr, {size} units"
        else:
            problem, data, partition = quadratic(condition, size, other), None, "iid"
            words = f"quadratic {condition:.3g}, n {size}, p {other}"
        skewed = "" if partition == "iid" else ", skewed"
        words += f"{skewed}, {network['graph']} of {nodes}, batch {batch}" + (", global" if scope == "global" else "")
        cases.append(case(words, method, problem, network, batch, data, partition, scope))
    return cases


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


class Run:
    """One algorithm on one seed."""

    def __init__(self, measure):
        self.measure, self.rows, self.diverged = measure, [], False

    def value(self, name, at):
        row = self.rows[at]
        return row.get(name, row.get("values", {}).get(name))

    @property
    def start(self):
        return self.value(self.measure, 0)

    def end(self, name=None):
        """The last value; that of the start if the run diverged."""
        found = self.value(name or self.measure, -1)
        return self.start if self.diverged or found is None or not math.isfinite(found) else found


PLACES = threading.Semaphore(os.cpu_count())  # as many programs run at once


def run(lopa, folder, case, algorithms, seeds, name):
    """label -> seed -> its run; every algorithm by a program of its own."""
    with ThreadPoolExecutor(len(algorithms)) as pool:
        found = pool.map(
            lambda algorithm: run_one(lopa, folder, case, algorithm, seeds, f"{name}-{algorithm['label']}"), algorithms
        )
        return {algorithm["label"]: runs for algorithm, runs in zip(algorithms, found)}


def run_one(lopa, folder, case, algorithm, seeds, name):
    """seed -> its run."""
    exact = case["problem"]["name"] == "quadratic"
    keys = {
        "scope": case["scope"], "problem": case["problem"], "network": case["network"],
        "run": {
            "seeds": seeds, "batch": case["batch"], "evaluations": 2 if exact else 20,
            "exact": "always" if exact else "never", "budget": {"hessians": BUDGET},
        },
        "algorithm": [algorithm],
    }
    if case["data"] is not None:
        keys |= {"data": case["data"], "partition": case["partition"]}
    file = folder / f"{name}.toml"
    file.write_text("".join(f"{key} = {toml(value)}\n" for key, value in keys.items()))
    out = folder / name
    command = [lopa, "run", file.name, "--out", str(out), "--jobs", "1", "--quiet"]
    with PLACES:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1, 9):
        raise RuntimeError(f"{case['name']}: {done.stderr}")
    (path,) = out.iterdir()
    measure = "phi" if exact else "loss"
    runs = {}

    def of(entry):
        return runs.setdefault(entry["seed"], Run(measure))

    for line in (path / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        of(row).rows.append(row)
    for outcome in json.loads((path / "results.json").read_text()):
        of(outcome).diverged = outcome["stop"] == "diverged"
    return runs


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def tune(lopa, folder, case, rule, seeds):
    """What the best pair of the grid reaches on each seed, and how it was found."""
    middle = [run.rows and run.value("step_alpha", len(run.rows) // 2) for run in rule.values()]
    alpha = mean(step for step in middle if step)
    curvature = mean(run.value("curvature", 0) for run in rule.values())
    grid = [
        {"name": case["method"], "label": f"g{a}-{b}", "alpha": ALPHAS[a] * alpha,
         "beta": BETAS[b] / curvature, "lambda": BETAS[b] / curvature}
        for a in range(len(ALPHAS)) for b in range(len(BETAS))
    ]
    tried = run(lopa, folder, case, grid, TUNING, "grid")
    lives = {label: runs for label, runs in tried.items() if not any(run.diverged for run in runs.values())}
    ranked = sorted(lives, key=lambda label: mean(run.end() for run in lives[label].values()))
    for passed, best in enumerate(ranked):
        chosen = [algorithm for algorithm in grid if algorithm["label"] == best]
        found = run(lopa, folder, case, chosen, seeds, f"tuned-{passed}")[best]
        if not any(run.diverged for run in found.values()):
            break
    return {
        "ends": {str(seed): run.end() for seed, run in found.items()}, "passed": passed,
        "edge": best.startswith(("g0", f"g{len(ALPHAS) - 1}")), "best": chosen[0],
        "diverged": len(grid) - len(lives),
    }


def one(job):
    lopa, case, seeds, tuned = job
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        path = (case["data"] or {}).get("path")
        if path == PATIENTS["path"]:
            (folder / path).write_bytes((ROOT / "docs/walk" / path).read_bytes())
        elif path:
            make(path, folder)
        seeds = list(range(1, seeds + 1))
        name = case["method"]
        ours = [{"name": name, "label": "auto"}, {"name": name, "label": "adaptive", "steps": "adaptive"}]
        both = run(lopa, folder, case, ours, seeds, "rule")
        rule, adaptive = both["auto"], both["adaptive"]
        tuned = tuned or tune(lopa, folder, case, rule, seeds)
    start = mean(run.start for run in rule.values())
    goal = mean(tuned["ends"][str(seed)] for seed in seeds)

    def reach(ends):
        return (start - mean(ends)) / (start - goal) if start > goal else math.nan

    ends = {seed: run.end() for seed, run in rule.items()}
    behind = max(ends[seed] - tuned["ends"][str(seed)] for seed in seeds)
    last = None
    if all(run.measure == "loss" and run.value("last_loss", -1) is not None for run in rule.values()):
        last = reach(run.end("last_loss") for run in rule.values())
    return {
        "case": case["name"], "method": name, "known": case["known"], "measure": rule[seeds[0]].measure,
        "start": start, "goal": goal, "rule": mean(ends.values()), "reach": reach(ends.values()),
        "worst": 1 - behind / (start - goal) if start > goal else math.nan, "last": last,
        "adaptive": reach(run.end() for run in adaptive.values()),
        "adaptive_lost": sum(run.diverged for run in adaptive.values()),
        "lost": sum(run.diverged for run in rule.values()),
        "cuts": sum(run.value("cuts", -1) or 0 for run in rule.values()), "tuned": tuned,
    }


HEAD = "case | method | start | tuned | rule | reach | worst seed | last θ | adaptive | diverged | cut back"


def shown(value, digits=3):
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def reached(row, limit):
    return row["rule"] <= row["start"] if math.isnan(row["reach"]) else row["reach"] >= limit


def line(row):
    edge = "*" if row["tuned"]["edge"] else ""
    passed = f" ({row['tuned']['passed']})" if row["tuned"]["passed"] else ""
    adaptive = shown(row["adaptive"], 2) + (f" ({row['adaptive_lost']})" if row["adaptive_lost"] else "")
    return (
        f"| {row['case']} | {row['method']} | {row['start']:.4g} | {row['goal']:.4g}{edge}{passed} | "
        f"{row['rule']:.4g} | **{shown(row['reach'])}** | {shown(row['worst'])} | {shown(row['last'])} | {adaptive} | "
        f"{row['lost']} | {row['cuts']:.0f} |"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lopa", nargs="?", default=str(ROOT / "target/release/lopa"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--grid", type=Path)
    parser.add_argument("--drawn", type=int, metavar="SEED")
    asked = parser.parse_args()
    global PLACES
    PLACES = threading.Semaphore(asked.jobs)
    cases = CASES if asked.drawn is None else drawn(asked.drawn)
    lopa = str(Path(asked.lopa).resolve())
    grid = json.loads(asked.grid.read_text()) if asked.grid and asked.grid.exists() else {}

    def key(case):
        return f"{case['name']}, {case['method']}"

    jobs = [(lopa, case, asked.seeds, grid.get(key(case))) for case in cases if asked.only in key(case)]
    with ThreadPoolExecutor(len(jobs) or 1) as pool:
        found = {}
        at = {pool.submit(one, job): key(job[1]) for job in jobs}
        for done in as_completed(at):
            found[at[done]] = done.result()
            print(line(found[at[done]]), file=sys.stderr, flush=True)
            if asked.grid:
                grid[at[done]] = found[at[done]]["tuned"]
                asked.grid.write_text(json.dumps(grid, indent=1))
    print(f"| {HEAD} |\n" + "|---" * len(HEAD.split("|")) + "|")
    rows = [found[key(job[1])] for job in jobs]
    print("\n".join(map(line, rows)))
    rows = [row for row in rows if not row["known"]]
    if rows:
        counts = [sum(reached(row, limit) for row in rows) for limit in (0.95, 0.75)]
        lowest = min(row["reach"] for row in rows if not math.isnan(row["reach"]))
        print(
            f"\n{counts[0]} of {len(rows)} cases reach 0.95, {counts[1]} reach 0.75, and the lowest reach is "
            f"{lowest:.3f}; {sum(row['lost'] for row in rows)} of "
            f"{len(rows) * asked.seeds} runs diverged."
        )
    return 0 if all(row["lost"] == 0 for row in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
