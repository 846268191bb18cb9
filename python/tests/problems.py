"""Problems that tests share: the representation problem in JAX, and a quadratic with a known answer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import lopa
import numpy as np
from experiments import RIDGE, blobs, experiment, regressions

__all__ = ["FILE", "accuracy", "blobs", "experiment", "representation", "ridge"]


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


def representation(nodes: list[Any], start: Any, units: int = 4, classes: int = 3, **more: Any) -> lopa.Problem:
    features = nodes[0][0].shape[1]
    cut = features * units
    x = {"W": start[:cut].reshape(features, units), "b": start[cut:]}
    theta = {"V": np.zeros((units, classes)), "c": np.zeros(classes)}
    data = [lopa.Node(inner=node) for node in nodes]
    return lopa.Problem(outer=loss, inner=inner, x=x, theta=theta, nodes=data, trains="both", **more)


def ridge(nodes: int = 3, sizes: Any = 12, **more: Any) -> lopa.Problem:
    """Ridge regression with a learnt strength, on data that differ from node to node."""

    def f(x: Any, theta: Any, batch: Any) -> Any:
        a, b = batch
        return jnp.mean((a @ theta - b) ** 2) / 2

    def g(x: Any, theta: Any, batch: Any) -> Any:
        return f(x, theta, batch) + jnp.exp(x[0]) / 2 * jnp.sum(theta**2)

    own = regressions(nodes, sizes)
    return lopa.Problem(outer=f, inner=g, x=np.zeros(1), theta=np.zeros(5), nodes=own, **more)


FILE = """
import jax.numpy as jnp, numpy as np, lopa

def f(x, theta, batch):
    a, b = batch
    return jnp.mean((a @ theta - b) ** 2) / 2

def g(x, theta, batch):
    return f(x, theta, batch) + jnp.exp(x[0]) / 2 * jnp.sum(theta ** 2)

def node(i):
    def load():
        random = np.random.default_rng(i)
        a = random.standard_normal((12, 3))
        return lopa.Node(inner=(a, a.sum(axis=1)))
    return load

problem = lopa.Problem(outer=f, inner=g, x=np.zeros(1), theta=np.zeros(3), nodes=[node(i) for i in range(2)])
"""
