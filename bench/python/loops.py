"""The representation problem from two functions, against a loop of LoPA-GT written by hand (`bench/peers`).

usage: loops.py jax|torch CASE f32|f64 ROUNDS      seconds per iteration, as JSON
"""

import json
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

import lopa
import numpy as np

# Nodes, rows, features, hidden units, classes, rows of a batch.
CASES = {"readme": (6, 1200, 20, 8, 6, 32), "mnist": (8, 8000, 784, 28, 10, 50)}
STEPS = {"alpha": 0.1, "beta": 0.1, "lambda": 0.1}
RIDGE = 0.02


class Case:
    """The arguments of the loops of `bench/peers`."""

    def __init__(self, name, dtype):
        self.nodes, rows, self.cols, units, self.classes, self.batch = CASES[name]
        self.problem, self.dtype, self.columns = "representation", dtype, self.classes
        self.n, self.p = (self.cols + 1) * units, (units + 1) * self.classes
        random = np.random.default_rng(1)
        self.labels = (np.arange(rows) % self.classes).astype(np.int32)
        centres = random.normal(size=(self.classes, self.cols))
        self.features = (centres[self.labels] + random.normal(size=(rows, self.cols))).astype(dtype)
        self.train = random.permutation(rows).astype(np.int32).reshape(self.nodes, -1)
        self.validation = self.train
        ring = lopa.graph("ring", nodes=self.nodes)
        self.mixing = np.asarray(ring.weights, dtype)
        self.start = (0.1 * random.normal(size=self.n)).astype(dtype)
        self.ridge, self.tau, self.gamma = RIDGE, 1.0, 1.0
        self.__dict__.update(STEPS)
        self.units = units

    def full(self):
        return [self.train] * 3 + [self.validation] * 2

    def batches(self, random):
        at = lambda rows: random.integers(0, rows.shape[1], (self.nodes, self.batch))
        return [np.take_along_axis(rows, at(rows), 1) for rows in self.full()]


def in_jax(case, nodes, x, theta):
    import jax
    import jax.numpy as jnp

    def outer(x, theta, batch):
        features, labels = batch
        z = jax.nn.sigmoid(features @ x["W"] + x["b"]) @ theta["V"] + theta["c"]
        return jnp.mean(jax.nn.logsumexp(z, 1) - jnp.take_along_axis(z, labels[:, None], 1)[:, 0])

    def inner(x, theta, batch):
        return outer(x, theta, batch) + RIDGE / 2 * sum(jnp.sum(leaf**2) for leaf in theta.values())

    return {"arrays": lopa.Problem(outer, inner, x, theta, nodes)}


def in_torch(case, nodes, x, theta):
    import torch
    from torch import nn
    from torch.nn import functional

    def outer(x, theta, batch):
        features, labels = batch
        z = torch.sigmoid(features @ x["W"] + x["b"]) @ theta["V"] + theta["c"]
        return functional.cross_entropy(z, labels.long())

    def inner(x, theta, batch):
        return outer(x, theta, batch) + RIDGE / 2 * sum((leaf**2).sum() for leaf in theta.values())

    def loss(body, head, batch):
        return functional.cross_entropy(head(body(batch[0])), batch[1].long())

    def ridged(body, head, batch):
        return loss(body, head, batch) + RIDGE / 2 * sum((leaf**2).sum() for leaf in head.parameters())

    body = nn.Sequential(nn.Linear(case.cols, case.units), nn.Sigmoid())
    return {
        "tensors": lopa.Problem(outer, inner, x, theta, nodes, backend="torch"),
        "modules": lopa.Problem(loss, ridged, body, nn.Linear(case.units, case.classes), nodes),
    }


def main(framework, name, precision, rounds):
    dtype = {"f32": np.float32, "f64": np.float64}[precision]
    case = Case(name, dtype)
    cut = case.cols * case.units
    x = {"W": case.start[:cut].reshape(case.cols, -1), "b": case.start[cut:]}
    theta = {"V": np.zeros((case.units, case.classes)), "c": np.zeros(case.classes)}
    nodes = [lopa.Node((case.features[rows], case.labels[rows])) for rows in case.train]
    problems = {"jax": in_jax, "torch": in_torch}[framework](case, nodes, x, theta)
    if framework == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    peer = __import__(f"with_{framework}")
    _, forward = peer.start(case, 1)
    forward(3)
    begin = time.perf_counter()
    forward(3)
    # Half a second each: long enough for the clock, short enough to be undisturbed at least once.
    count = max(5, int(1.5 / (time.perf_counter() - begin)))
    forward(count)
    best = {"hand-written": np.inf, **dict.fromkeys(problems, np.inf)}
    with tempfile.TemporaryDirectory() as folder:
        for at in range(int(rounds)):
            begin = time.perf_counter()
            forward(count)
            best["hand-written"] = min(best["hand-written"], (time.perf_counter() - begin) / count)
            for key, problem in problems.items():
                experiment = {
                    "name": "loop",
                    "problem": problem,
                    "network": {"nodes": case.nodes, "graph": "ring"},
                    "run": {"iterations": 2 * count, "evaluations": 2, "batch": case.batch, "precision": precision, "exact": "never"},
                    "algorithm": [{"name": "lopa-gt", **STEPS}],
                }
                run = lopa.run(experiment, out=f"{folder}/{key}{at}", progress=False)
                middle, last = run.rows[-2:]
                best[key] = min(best[key], (last["seconds"] - middle["seconds"]) / (last["iteration"] - middle["iteration"]))
    print(json.dumps(best))


main(*sys.argv[1:])
