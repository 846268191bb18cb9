"""What a privacy budget costs in accuracy, over ten seeds with 95 % intervals.

    python privacy.py FOLDER LOPA     FOLDER has processed.{cleveland,hungarian,switzerland,va}.data

Every run simulates a private one (`seed` in `[privacy]`). Step sizes of theta and v, clips and lengths are the same for all budgets of
a data set, and were chosen on two of the seeds; the step of x is found by the method. A seed draws the rows that are
held out, the samples and the noise.
"""

import concurrent.futures
import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = 10
STUDENT = 2.262  # nine degrees of freedom, 95 %
METHODS = ["lopa-lg", "lopa-gt", "dgd", "local"]

# ---- four hospitals ----

HOSPITALS = ["cleveland", "hungarian", "switzerland", "va"]
ORDER = ["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"]
# Scaling by round numbers for adults, which come from no row: name, mean, deviation.
COLUMNS = [("age", 55, 10), ("trestbps", 130, 20), ("chol", 200, 80), ("thalach", 140, 25), ("oldpeak", 1, 1)]
FLAGS = ["sex", "fbs", "exang"]
KINDS = {"cp": [1, 2, 3, 4], "restecg": [0, 1, 2]}


def heart(source, path):
    names = [name for name, _, _ in COLUMNS] + FLAGS
    names += [f"{name}_{kind}" for name, kinds in KINDS.items() for kind in kinds]
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["hospital", *names, "disease"])
        for hospital in HOSPITALS:
            for row in csv.reader((Path(source) / f"processed.{hospital}.data").open()):
                # Rows without missing values, after the three columns that are mostly missing.
                if len(row) != 14 or "?" in row[:10] + row[13:]:
                    continue
                known = dict(zip(ORDER, map(float, row)))
                cells = [(known[name] - mean) / deviation for name, mean, deviation in COLUMNS]
                cells += [known[name] for name in FLAGS]
                cells += [float(known[name] == kind) for name, kinds in KINDS.items() for kind in kinds]
                table.writerow([hospital, *cells, int(float(row[13]) > 0)])


# ---- rows like a9a's: fourteen variables with these numbers of categories, 123 features ----

CATEGORIES = [5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41]


def adults(rows, path):
    draw = random.Random(7)
    weights = [[draw.gauss(0, 1) for _ in range(count)] for count in CATEGORIES]
    popular = [[draw.expovariate(1) ** 2 for _ in range(count)] for count in CATEGORIES]
    with open(path, "w") as file:
        for _ in range(rows):
            kinds = [draw.choices(range(len(share)), share)[0] for share in popular]
            # Two in five are positive, and knowing the weights is right in 84 of 100.
            score = sum(weight[kind] for weight, kind in zip(weights, kinds)) + 1.5
            label = 1 if draw.random() < 1 / (1 + math.exp(-score)) else -1
            first, cells = 1, []
            for count, kind in zip(CATEGORIES, kinds):
                cells.append(f"{first + kind}:1")
                first += count
            file.write(f"{label} {' '.join(cells)}\n")


# ---- experiments ----

EXPERIMENT = """
name    = "privacy"
problem = {{ name = "hyperparameter", {problem} }}
network = {{ nodes = {nodes}, graph = "complete" }}
run     = {{ iterations = {iterations}, batch = {batch}, evaluations = 1, exact = "never", seeds = {seeds} }}
{privacy}
[data]
{data}
scaling = "{scaling}"
test    = 0.0
holdout = 0.334
[partition]
name = "{partition}"
[[algorithm]]
name   = "lopa-lg"
beta   = {step}
lambda = {step}
[[algorithm]]
name   = "lopa-gt"
beta   = {step}
lambda = {step}
[[algorithm]]
name  = "dgd"
alpha = {step}
mu    = {mu}
[[algorithm]]
name   = "local"
beta   = {step}
lambda = {step}
"""


def run(lopa, case, budget):
    """The accuracies of each method on the nodes' own held-out rows, one per seed."""
    epsilon, delta = budget
    privacy = f"privacy = {{ epsilon = {epsilon}, delta = {delta}, clip = {case['clip']}, seed = 1 }}" if epsilon else ""
    seeds = list(range(1, SEEDS + 1))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiment.toml"
        file.write_text(EXPERIMENT.format(seeds=seeds, privacy=privacy, **case))
        command = [lopa, "run", str(file), "--out", folder + "/runs", "--quiet", "--jobs", "1"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # 1 and 9: runs diverged. They have no accuracy, and count as wrong.
        if done.returncode not in (0, 1, 9):
            sys.exit(done.stderr)
        found = {}
        (newest,) = (Path(folder) / "runs").iterdir()
        for line in (newest / "metrics.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row["iteration"] == case["iterations"]:
                found.setdefault(row["algorithm"], []).append(row.get("holdout_accuracy", 0.0))
    return found


def cell(values):
    values = values + [0.0] * (SEEDS - len(values))
    half = STUDENT * statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):.3f} ± {half:.3f}".replace("0.", ".")


def table(title, lopa, lines, pool):
    """A table with a line for each (name, case, budget)."""
    print(f"\n{title}\n\n| | LoPA-LG | LoPA-GT | DP-DGD, one model | alone |\n|---|---|---|---|---|", flush=True)
    jobs = [(name, pool.submit(run, lopa, case, budget)) for name, case, budget in lines]
    for name, job in jobs:
        found = job.result()
        print(f"| {name} | " + " | ".join(cell(found.get(method, [])) for method in METHODS) + " |", flush=True)


def budgets(case, delta):
    every = [(None, None), (5.0, delta), (1.0, delta), (0.1, delta / 10)]
    return [(f"ε = {e:g}, δ = {d:g}" if e else "no noise", case, (e, d)) for e, d in every]


def main():
    source, lopa = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        hospitals, like = Path(folder) / "heart.csv", Path(folder) / "like-a9a.libsvm"
        heart(source, hospitals)
        adults(32561, like)
        four = dict(
            problem="bias = true, validation = 0.3, start = -1.5",
            data=f'name = "csv"\npath = "{hospitals}"\nlabel = "disease"\ngroup = "hospital"',
            scaling="none", partition="group", nodes=4, iterations=20, batch='"full"', clip=1.0, step=0.25, mu=0.02,
        )
        digits = dict(
            problem="validation = 0.1, start = -8.0", data='name = "digits"',
            scaling="row", partition="iid", nodes=4, iterations=40, batch='"full"', clip=1.0, step=10.0, mu=0.0003,
        )
        wide = dict(
            problem="validation = 0.1, start = -8.0", data=f'name = "libsvm"\npath = "{like}"\nfeatures = 123',
            scaling="row", partition="iid", nodes=4, iterations=40, batch=256, clip=0.5, step=10.0, mu=0.0003,
        )
        table("Four hospitals: 303, 261, 46 and 130 rows", lopa, budgets(four, 1e-3), pool)
        table("Digits: four nodes of 449 rows, ten classes", lopa, budgets(digits, 1e-4), pool)
        table("Like a9a: four nodes of 8140 rows, 123 features", lopa, budgets(wide, 1e-5), pool)
        for title, case, delta in [("Four hospitals", four, 1e-3), ("Digits", digits, 1e-4), ("Like a9a", wide, 1e-5)]:
            clips = [0.01, 0.1, 0.5, 1.0, 10.0, '"auto"']
            lines = [(f"clip = {clip}", dict(case, clip=clip), (1.0, delta)) for clip in clips]
            table(f"{title}, ε = 1, by the clip", lopa, lines, pool)
        lines = []
        for rows in [50, 100, 200, 500, 1000]:
            batch = min(rows // 3, 256)
            fewer = dict(wide, data=wide["data"] + f"\nsamples = {8 * rows}", nodes=8, batch=batch)
            for name, budget in [("no noise", (None, None)), ("ε = 1, δ = 1e-05", (1.0, 1e-5))]:
                lines.append((f"{rows} rows per node, {name}", fewer, budget))
        table("Like a9a, eight nodes, more or fewer rows", lopa, lines, pool)


main()
