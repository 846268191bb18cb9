"""Problems that tests share: the representation problem in JAX, and a quadratic with a known answer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import lopa
import numpy as np

RIDGE = 0.05


def scores(x: Any, theta: Any, features: Any) -> Any:
    hidden = jax.nn.sigmoid(features @ x["W"] + x["b"])
    return hidden @ theta["V"] + theta["c"]


def loss(x: Any, theta: Any, batch: Any) -> Any:
    features, labels = batch
    logits = scores(x, theta, features)
    own = jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - own)


def inner(x: Any, theta: Any, batch: Any) -> Any:
    return loss(x, theta, batch) + RIDGE / 2 * sum(jnp.sum(leaf**2) for leaf in theta.values())


def accuracy(x: Any, theta: Any, batch: Any) -> Any:
    features, labels = batch
    return jnp.mean(jnp.argmax(scores(x, theta, features), axis=1) == labels)


def blobs(rows: int = 240, features: int = 6, classes: int = 3) -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    labels = np.arange(rows) % classes
    centres = random.standard_normal((classes, features))
    return centres[labels] + random.standard_normal((rows, features)), labels.astype(np.int64)


def representation(nodes: list[Any], start: Any, units: int = 4, classes: int = 3, **more: Any) -> lopa.Problem:
    features = nodes[0][0].shape[1]
    cut = features * units
    x = {"W": start[:cut].reshape(features, units), "b": start[cut:]}
    theta = {"V": np.zeros((units, classes)), "c": np.zeros(classes)}
    data = [lopa.Node(inner=node) for node in nodes]
    return lopa.Problem(outer=loss, inner=inner, x=x, theta=theta, nodes=data, trains="both", **more)


def ridge(nodes: int = 3, sizes: Any = 12, **more: Any) -> lopa.Problem:
    """Ridge regression with a learnt strength, on data that differ from node to node."""
    sizes = [sizes] * nodes if isinstance(sizes, int) else sizes

    def f(x: Any, theta: Any, batch: Any) -> Any:
        a, b = batch
        return jnp.mean((a @ theta - b) ** 2) / 2

    def g(x: Any, theta: Any, batch: Any) -> Any:
        return f(x, theta, batch) + jnp.exp(x[0]) / 2 * jnp.sum(theta**2)

    def data(node: int, size: int) -> tuple[Any, Any]:
        random = np.random.default_rng(node)
        a = random.standard_normal((size, 5))
        return a, a @ np.arange(5) + 0.3 * random.standard_normal(size)

    own = [lopa.Node(inner=data(i, n), outer=data(100 + i, n)) for i, n in enumerate(sizes)]
    return lopa.Problem(outer=f, inner=g, x=np.zeros(1), theta=np.zeros(5), nodes=own, **more)


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
