"""Data and experiments that tests share, whatever the framework."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lopa
import numpy as np
from lopa import _lopa

RIDGE = 0.05
STEPS = {"alpha": 0.5, "beta": 0.2, "lambda": 0.2}


def blobs(rows: int = 240, features: int = 6, classes: int = 3) -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    labels = np.arange(rows) % classes
    centres = random.standard_normal((classes, features))
    return centres[labels] + random.standard_normal((rows, features)), labels.astype(np.int64)


def regressions(nodes: int, sizes: Any) -> list[lopa.Node]:
    """Rows of linear regression, which differ from node to node."""
    sizes = [sizes] * nodes if isinstance(sizes, int) else sizes

    def data(node: int, size: int) -> tuple[Any, Any]:
        random = np.random.default_rng(node)
        a = random.standard_normal((size, 5))
        return a, a @ np.arange(5) + 0.3 * random.standard_normal(size)

    return [lopa.Node(inner=data(i, n), outer=data(100 + i, n)) for i, n in enumerate(sizes)]


def experiment(problem: Any, **more: Any) -> dict[str, Any]:
    nodes = len(problem.nodes) if isinstance(problem, lopa.Problem) else 3
    steps = {"alpha": 0.05, "beta": 0.2, "lambda": 0.2}
    whole: dict[str, Any] = {
        "name": "mine",
        "problem": problem,
        "network": {"nodes": nodes, "graph": "complete"},
        "run": {"iterations": 40, "evaluations": 4, "precision": "f64"},
        "algorithm": [{"name": "lopa-gt", **steps}],
    }
    for key, value in more.items():
        whole[key] = {**whole[key], **value} if isinstance(whole.get(key), dict) else value
    return whole


def built_in(folder: Path, **run: Any) -> dict[str, Any]:
    """The representation problem that lopa has."""
    features, labels = blobs()
    np.savez(folder / "blobs.npz", X=features, y=labels)
    return {
        "name": "built-in",
        "problem": {"name": "representation", "hidden": [4], "ridge": RIDGE},
        "data": {"name": "npz", "path": str(folder / "blobs.npz"), "test": 0.0, "scaling": "none"},
        "network": {"nodes": 4, "graph": "ring"},
        "run": {"iterations": 200, "evaluations": 2, "precision": "f64", **run},
        "algorithm": [{"name": "lopa-gt", **STEPS}],
    }


def rows_of(reference: lopa.Run) -> list[Any]:
    """The rows of every node of a run, in the order in which it draws them."""
    features, labels = blobs()
    found = json.loads(next(reference.path.glob("partition-seed*.json")).read_text())
    rows = [np.asarray(_lopa.shuffled(own, node, 1)) for node, own in enumerate(found["nodes"])]
    return [(features[own], labels[own]) for own in rows]


def start_of(file: dict[str, Any]) -> Any:
    """The start of x: that of a run that does not move."""
    still = [{"name": "lopa-gt", "alpha": 1e-300, "beta": 1e-300, "lambda": 1e-300}]
    run = lopa.run({**file, "algorithm": still, "name": "still"}, set={"run.iterations": 1})
    return run.models["lopa-gt"][0].x


def small_steps(file: dict[str, Any], name: str) -> dict[str, float]:
    """Small step sizes for every key that an algorithm needs, and for those that it would find itself."""
    steps: dict[str, float] = {}
    optional = ["alpha", "beta", "lambda"]
    while True:
        try:
            lopa.check({**file, "algorithm": [{"name": name, **steps}]})
            optional = [key for key in optional if key not in steps]
            if not optional:
                return steps
            steps[optional[0]] = 0.02
        except lopa.ConfigError as error:
            if error.id == "config/missing-key":
                steps[error.message.split("`")[1]] = 0.02
            elif optional and error.id == "config/unknown-key":
                del steps[optional.pop(0)]
            else:
                raise


def interrupted(make: Callable[[int], dict[str, Any]], out: str, **more: Any) -> dict[str, Any]:
    """Stops a run in the middle, and returns its experiment: the first one that lasts until progress is told."""

    def stop(event: str, values: dict[str, Any]) -> None:
        if event == "progress":
            raise KeyboardInterrupt

    for iterations in (600, 6_000, 60_000, 600_000):
        whole = make(iterations)
        try:
            lopa.run(whole, out=f"{out}-before-{iterations}", progress=stop, **more)
        except KeyboardInterrupt:
            Path(f"{out}-before-{iterations}").rename(out)
            return whole
    raise AssertionError("no run lasted long enough to be stopped")
