"""Resident memory of a long run.

usage: memory.py jax|torch ITERATIONS      kilobytes after a tenth of them and at the end, as JSON
"""

import json
import sys
import tempfile

import lopa
import numpy as np

framework, iterations = sys.argv[1], int(sys.argv[2])
exp = __import__("jax.numpy", fromlist=["exp"]).exp if framework == "jax" else __import__("torch").exp


def outer(x, theta, batch):
    a, b = batch
    return ((a @ theta - b) ** 2).mean() / 2


def inner(x, theta, batch):
    return outer(x, theta, batch) + exp(x[0]) / 2 * (theta**2).sum()


def node(seed):
    a = np.random.default_rng(seed).normal(size=(40, 5))
    return lopa.Node((a, a @ np.arange(5.0)))


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


early = []


def told(event, values):
    if event == "progress" and not early and values["iteration"] >= iterations // 10:
        early.append(resident())


problem = lopa.Problem(outer, inner, np.zeros(1), np.zeros(5), [node(seed) for seed in range(4)], backend=framework)
steps = {"alpha": 0.01, "beta": 0.2, "lambda": 0.2}
run = {"iterations": iterations, "evaluations": 1, "batch": 8, "exact": "never"}
with tempfile.TemporaryDirectory() as folder:
    experiment = {"problem": problem, "network": {"graph": "ring"}, "run": run, "algorithm": [{"name": "lopa-gt", **steps}]}
    lopa.run(experiment, out=folder, progress=told)
print(json.dumps([early[0], resident()]))
