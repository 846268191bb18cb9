"""Which framework differentiates a problem: decided by its arrays, and imported only when needed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from ._errors import ConfigError

NAMES = {"jax": "JAX", "torch": "PyTorch"}


def backend(name: str | None, start: Any, nodes: Any) -> Any:
    """The module for a framework: the one that is named, or that of x and theta, or that of the data."""
    if name is None:
        name = _told(start) or _told(nodes) or "jax"
    elif name not in NAMES:
        message = f"`backend = {name!r}` must be 'jax' or 'torch'"
        raise ConfigError("problem/framework", message, "backend")
    try:
        return importlib.import_module(f"lopa._{name}")
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        message = f"this problem needs {NAMES[name]}, which is not installed"
        (other,) = NAMES.keys() - {name}
        hint = f"pip install 'lopa[{name}]', or write it in {NAMES[other]} with backend='{other}'"
        raise ConfigError("problem/framework", message, "backend", hint) from missing


def _told(tree: Any) -> str | None:
    """The framework whose arrays or modules are in a tree."""
    found = {framework for leaf in _leaves(tree) if (framework := _framework(leaf))}
    if len(found) > 1:
        message = "there are arrays of JAX and of PyTorch"
        hint = "convert one of them, or say which framework your functions use: backend='torch'"
        raise ConfigError("problem/framework", message, "backend", hint)
    return found.pop() if found else None


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from _leaves(item)
    else:
        yield tree


def _framework(leaf: Any) -> str | None:
    """By the names of its classes, without importing anything."""
    for kind in type(leaf).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("torch", "jax", "jaxlib"):
            return root.removesuffix("lib")
    return None
