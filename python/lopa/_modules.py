"""Tensors and modules of PyTorch as flat vectors, and functions of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import vmap

from . import _parts
from ._data import leaves, plain, rebuilt
from ._errors import ConfigError


NESTS = (list, tuple)


class Layout(_parts.Layout):
    """A tree of tensors and modules in a flat vector. The leaves of a module are its parameters; those that
    require no gradient are fixed."""

    def __init__(self, what: str, tree: Any) -> None:
        self.tree = tree
        self.modules: dict[str, Any] = {}
        names: list[str] = []
        self.start: list[Any] = []
        self.seen: dict[int, str] = {}  # parameters of modules, by their addresses
        # For each leaf of the tree: None for a tensor, or a module and its parameters' names.
        self.items: list[tuple[Any, list[str]] | None] = []
        self.dtypes: list[Any] = []
        self.spots: list[list[Spot]] = []
        for name, leaf in leaves(tree, what, NESTS):
            own = []
            if isinstance(leaf, nn.Module):
                own = [(of, value) for of, value in leaf.named_parameters() if value.requires_grad]
                self.modules[name] = leaf
                self.items.append((leaf, [of for of, _ in own]))
            else:
                self.items.append(None)
                names.append(name)
                self.add(name, leaf, [])
            for of, value in own:
                names.append(f"{name}.{of}")
                if id(value) in self.seen:
                    message = f"it is {self.seen[id(value)]} again"
                    raise ConfigError("problem/leaf", message, names[-1], "give every module once")
                self.seen[id(value)] = names[-1]
                self.add(names[-1], value, spots(leaf, value))
        super().__init__(names, [np.shape(value) for value in self.start])
        self.sizes = [part.stop - part.start for part in self.slices]

    def add(self, name: str, leaf: Any, spots: list[Spot]) -> None:
        self.start.append(_array(name, leaf))
        self.dtypes.append(leaf.dtype if isinstance(leaf, torch.Tensor) else torch.float64)
        self.spots.append(spots)

    def split(self, flat: Any) -> list[Any]:
        """The leaves of a flat vector, or of a matrix with a vector in each row."""
        pairs = zip(flat.split(self.sizes, dim=-1), self.shapes, strict=True)
        return [part.reshape((*flat.shape[:-1], *shape)) for part, shape in pairs]

    def given(self, values: list[Any]) -> Any:
        """What functions take: the tree around these values, and around modules."""
        rest = iter(values)
        found: list[Any] = []
        for item in self.items:
            if item is None:
                found.append(next(rest))
                continue
            for _ in item[1]:
                next(rest)
            found.append(item[0])
        return rebuilt(self.tree, iter(found), NESTS)

    def shaped(self, flat: Any) -> Any:
        """The tree of a flat vector: tensors, and copies of modules, of the types that were given."""
        values = self.split(torch.from_numpy(np.array(flat, np.float64)))
        rest = iter([value.to(dtype) for value, dtype in zip(values, self.dtypes, strict=True)])
        found: list[Any] = []
        for item in self.items:
            if item is None:
                found.append(next(rest).clone())
                continue
            module = copy.deepcopy(item[0])
            with torch.no_grad():
                for name in item[1]:
                    module.get_parameter(name).copy_(next(rest))
            found.append(module)
        return rebuilt(self.tree, iter(found), NESTS)


Spot = tuple[dict[str, Any], str]
"""Where a module keeps a tensor: the dictionary and the name."""


def spots(module: Any, tensor: Any) -> list[Spot]:
    """All places of a tensor in a module: tied weights have several."""
    kept = [of for part in module.modules() for of in (part._parameters, part._buffers)]
    return [(of, name) for of in kept for name, value in of.items() if value is tensor]


def _array(name: str, leaf: Any) -> Any:
    """A leaf's numbers."""
    try:
        return plain(leaf)
    except Exception as error:
        hint = "a lazy module gets its shapes from a first call: make it, then the problem"
        lazy = hint if "Uninitialized" in type(leaf).__name__ else None
        raise ConfigError("problem/leaf", f"not an array: {error}", name, lazy) from error


class Functions:
    """Calls functions of (x, theta, batch). Modules stay as they are: only while a function runs do they
    hold other tensors, in this precision and on this device."""

    def __init__(self, x: Layout, theta: Layout, kind: Any, where: Any) -> None:
        for at, name in theta.seen.items():
            if at in x.seen:
                message = f"it is {x.seen[at]} too, but x is shared and theta is personal"
                raise ConfigError("problem/leaf", message, name, "give every module once")
        self.x, self.theta = x, theta
        self.names: list[str] = []
        self.fixed: list[Any] = []
        fixed: list[list[Spot]] = []
        for place, module in [*x.modules.items(), *theta.modules.items()]:
            frozen = [(of, value) for of, value in module.named_parameters() if not value.requires_grad]
            for of, value in [*module.named_buffers(), *frozen]:
                to = kind if value.is_floating_point() else value.dtype
                self.fixed.append(value.detach().clone().to(where, to))
                self.names.append(f"{place}.{of}")
                fixed.append(spots(module, value))
        self.before = [value.clone() for value in self.fixed]
        # Every place that is filled during a call, with the number of the tensor for it.
        alone = enumerate([*x.spots, *theta.spots, *fixed])
        self.filled = [(of, name, leaf) for leaf, places in alone for of, name in places]

    def call(self, function: Any, xs: list[Any], thetas: list[Any], batch: Any) -> Any:
        """The value of a function."""
        x, theta = self.x.given(xs), self.theta.given(thetas)
        if not self.filled:
            return function(x, theta, batch)
        values = [*xs, *thetas, *self.fixed]
        own = [of[name] for of, name, _ in self.filled]
        try:
            for of, name, leaf in self.filled:
                of[name] = values[leaf]
            return function(x, theta, batch)
        finally:
            for (of, name, _), value in zip(self.filled, own, strict=True):
                of[name] = value

    def for_all(self, function: Any) -> Callable[[Any, Any, Any], Any]:
        """The same for all nodes at once: leaves and batches have one more axis, the first."""
        return vmap(lambda xs, thetas, batch: self.call(function, xs, thetas, batch))  # type: ignore[no-any-return]

    def changed(self) -> str | None:
        """The name of a buffer that a function has changed."""
        for name, value, before in zip(self.names, self.fixed, self.before, strict=True):
            if not torch.equal(value, before):
                return name
        return None
