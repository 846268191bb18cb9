"""The problems of `problems.py` in PyTorch, and one with modules."""

from __future__ import annotations

from typing import Any

import lopa
import numpy as np
import torch
from experiments import RIDGE, blobs, experiment, regressions
from torch import nn
from torch.nn import functional

__all__ = ["FILE", "accuracy", "blobs", "experiment", "of_modules", "representation", "ridge"]


def scores(x: Any, theta: Any, features: Any) -> Any:
    hidden = torch.sigmoid(features @ x["W"] + x["b"])
    return hidden @ theta["V"] + theta["c"]


def loss(x: Any, theta: Any, batch: Any) -> Any:
    features, labels = batch
    return functional.cross_entropy(scores(x, theta, features), labels)


def inner(x: Any, theta: Any, batch: Any) -> Any:
    return loss(x, theta, batch) + RIDGE / 2 * sum((leaf**2).sum() for leaf in theta.values())


def accuracy(x: Any, theta: Any, batch: Any) -> Any:
    features, labels = batch
    return (scores(x, theta, features).argmax(dim=1) == labels).double().mean()


def representation(nodes: list[Any], start: Any, units: int = 4, classes: int = 3, **more: Any) -> lopa.Problem:
    features = nodes[0][0].shape[1]
    cut = features * units
    x = {"W": torch.from_numpy(start[:cut].reshape(features, units)), "b": torch.from_numpy(start[cut:])}
    theta = {"V": torch.zeros(units, classes), "c": torch.zeros(classes)}
    data = [lopa.Node(inner=node) for node in nodes]
    return lopa.Problem(outer=loss, inner=inner, x=x, theta=theta, nodes=data, trains="both", **more)


def of_modules(nodes: list[Any], start: Any, units: int = 4, classes: int = 3, **more: Any) -> lopa.Problem:
    """The same from modules, whose weights are transposed."""
    features = nodes[0][0].shape[1]
    body = nn.Sequential(nn.Linear(features, units, dtype=torch.float64), nn.Sigmoid())
    head = nn.Linear(units, classes)
    with torch.no_grad():
        body[0].weight.copy_(torch.from_numpy(start[: features * units].reshape(features, units).T))
        body[0].bias.copy_(torch.from_numpy(start[features * units :]))
        head.weight.zero_()
        head.bias.zero_()

    def loss(body: Any, head: Any, batch: Any) -> Any:
        return functional.cross_entropy(head(body(batch[0])), batch[1])

    def inner(body: Any, head: Any, batch: Any) -> Any:
        return loss(body, head, batch) + RIDGE / 2 * sum((leaf**2).sum() for leaf in head.parameters())

    data = [lopa.Node(inner=node) for node in nodes]
    return lopa.Problem(outer=loss, inner=inner, x=body, theta=head, nodes=data, trains="both", **more)


def ridge(nodes: int = 3, sizes: Any = 12, **more: Any) -> lopa.Problem:
    """Ridge regression with a learnt strength, on data that differ from node to node."""

    def f(x: Any, theta: Any, batch: Any) -> Any:
        a, b = batch
        return ((a @ theta - b) ** 2).mean() / 2

    def g(x: Any, theta: Any, batch: Any) -> Any:
        return f(x, theta, batch) + x[0].exp() / 2 * (theta**2).sum()

    own = regressions(nodes, sizes)
    start = {"x": np.zeros(1), "theta": np.zeros(5)}
    return lopa.Problem(outer=f, inner=g, **start, nodes=own, backend="torch", **more)


FILE = """
import numpy as np, torch, lopa

def f(x, theta, batch):
    a, b = batch
    return ((a @ theta - b) ** 2).mean() / 2

def g(x, theta, batch):
    return f(x, theta, batch) + torch.exp(x[0]) / 2 * torch.sum(theta ** 2)

def node(i):
    def load():
        random = np.random.default_rng(i)
        a = random.standard_normal((12, 3))
        return lopa.Node(inner=(a, a.sum(axis=1)))
    return load

problem = lopa.Problem(outer=f, inner=g, x=torch.zeros(1), theta=torch.zeros(3), nodes=[node(i) for i in range(2)])
"""
