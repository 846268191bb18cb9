"""Personal models on Fashion-MNIST with the convolutional network of PFLlib's table, through PyTorch.

usage: cnn.py DATA OUT [--rounds N] [--splits S …] [--seeds S …] [--methods M …] [--step A] [--jobs J] [--write]

DATA holds fashion-mnist/. The network is a problem of lopa's Python package: two convolutions and a layer of 512 units are shared
(x), the last layer is personal (theta). Each run is a process of its own, J at a time, and leaves its folder in OUT; one that has
finished is not run again. --write puts the tables into docs/others.md. PyTorch computes on a graphics card if there is one.
"""

import argparse
import concurrent.futures
import gzip
import json
import subprocess
import sys
from pathlib import Path

import fashion
import numpy as np

CLIENTS, BATCH, HELD_OUT, RIDGE = 20, 50, 0.25, 0.001
SPLITS = {"two": ("classes", {"per_node": 2}), "dirichlet": ("dirichlet-class", {"alpha": 0.1})}
METHODS = {
    "fedrep": {"head_steps": 5, "body_steps": 1},
    "fedper": {"local_steps": 5},
    "ditto": {"pull": 0.1, "local_steps": 5},
    "fedavg": {"local_steps": 5},
    "lopa-gt": {},
    "lopa-lg": {},
    "alone": {},
}


def algorithm(method, step):
    """LoPA finds its steps; the others have the one that is given for all variables."""
    steps = {"alpha": step} if METHODS[method] else {}
    if method in ("fedrep", "ditto"):
        steps["beta"] = step
    return {"name": "local" if method == "alone" else method, "label": method, **steps, **METHODS[method]}


def training(data):
    folder = Path(data) / "fashion-mnist"

    def read(name, offset):
        packed = folder / f"{name}.gz"
        content = gzip.open(packed).read() if packed.exists() else (folder / name).read_bytes()
        return np.frombuffer(content, np.uint8, offset=offset)

    images = read("train-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    return images, read("train-labels-idx1-ubyte", 8).astype(np.int64)


def run(data, out, split, method, seed, rounds, step):
    """Runs a method on 20 clients."""
    import torch
    from torch import nn
    from torch.nn import functional

    import lopa

    images, labels = training(data)
    kind, params = SPLITS[split]
    silos = lopa.partition(kind, labels, nodes=CLIENTS, seed=seed, **params).rows
    random = np.random.default_rng(seed)
    where = "cuda" if torch.cuda.is_available() else "cpu"
    nodes, held_out = [], []
    for client, rows in enumerate(silos):
        rows = random.permutation(rows)
        test, train = np.split(rows, [round(HELD_OUT * len(rows))])
        own = (images[train].astype(np.float32) / 255, labels[train], np.full(len(train), client))
        nodes.append(lopa.Node(inner=own))
        pixels = torch.from_numpy(images[test].astype(np.float32) / 255).to(where)
        held_out.append((pixels, torch.from_numpy(labels[test]).to(where)))

    torch.manual_seed(seed)
    body = nn.Sequential(
        nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1024, 512), nn.ReLU(),
    )  # fmt: skip

    def outer(x, theta, batch):
        pixels, classes, _ = batch
        return functional.cross_entropy(theta(x(pixels)), classes)

    def inner(x, theta, batch):
        return outer(x, theta, batch) + RIDGE * (theta.weight.square().sum() + theta.bias.square().sum())

    def accuracy(x, theta, batch):
        pixels, classes = held_out[int(batch[2][0])]
        return (theta(x(pixels.to(theta.weight.dtype))).argmax(1) == classes).double().mean()

    def majority(x, theta, batch):
        classes = held_out[int(batch[2][0])][1]
        return classes.bincount().max() / len(classes)

    problem = lopa.Problem(
        outer, inner, body, nn.Linear(512, 10), nodes, trains="both", check=False,
        metrics={"holdout_accuracy": accuracy, "holdout_majority": majority},
    )  # fmt: skip
    experiment = {
        "name": f"cnn-{split}-{method}-{seed}",
        "problem": problem,
        "network": {"nodes": CLIENTS, "graph": "complete", "weights": "metropolis"},
        "run": {"seeds": [seed], "iterations": rounds, "batch": BATCH, "evaluations": 2, "exact": "never", "precision": "f32"},
        "algorithm": [algorithm(method, step)],
    }
    found = lopa.run(experiment, out=out)
    return [json.loads(line) for line in (Path(found.path) / "metrics.jsonl").read_text().splitlines()]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("data")
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--rounds", type=int, default=200)
    arguments.add_argument("--splits", nargs="+", default=list(SPLITS))
    arguments.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    arguments.add_argument("--methods", nargs="+", default=list(METHODS))
    arguments.add_argument("--step", type=float, default=0.1)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.one:
        (split,), (method,), (seed,) = given.splits, given.methods, given.seeds
        rows = run(given.data, given.out, split, method, seed, given.rounds, given.step)
        (given.out / f"{split}-{method}-{seed}.json").write_text(json.dumps(rows))
        return

    def apart(split, method, seed):
        file = given.out / f"{split}-{method}-{seed}.json"
        if not file.exists():
            command = [sys.executable, __file__, given.data, given.out, "--one", "--rounds", given.rounds]
            command += ["--splits", split, "--methods", method, "--seeds", seed, "--step", given.step]
            subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        return json.loads(file.read_text())

    page = fashion.PAGE.read_text()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        cases = [(split, method, seed) for seed in given.seeds for split in given.splits for method in given.methods]
        runs = dict(zip(cases, pool.map(lambda case: apart(*case), cases)))
    for split in given.splits:
        rows = {(method, seed): traces for (of, method, seed), traces in runs.items() if of == split}
        text = fashion.table(rows, fashion.PUBLISHED[split])
        page = fashion.between(page, f"cnn-{split}", text)
        print(text, "\n")
    if given.write:
        fashion.PAGE.write_text(page)


if __name__ == "__main__":
    main()
