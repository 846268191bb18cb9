"""A problem from two functions."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import _backends
from ._costs import COSTS
from ._errors import ConfigError

Loss = Callable[[Any, Any, Any], Any]
"""`f(x, theta, batch) -> scalar`, a mean over the rows of the batch."""


@dataclass(frozen=True)
class Node:
    """The data of a node: arrays, or tuples and dictionaries of arrays, with a row for each sample."""

    inner: Any
    """What the inner loss g is evaluated on."""
    outer: Any = None
    """What the outer loss f is evaluated on; by default the same."""

    @property
    def of_outer(self) -> Any:
        return self.inner if self.outer is None else self.outer


# The problems of this process by their digests: an experiment names them so.
known: weakref.WeakValueDictionary[str, Problem] = weakref.WeakValueDictionary()


class Problem:
    """min_x 1/m sum_i f_i(x, theta_i*(x)) with theta_i*(x) = argmin_theta g_i(x, theta).

    outer, inner: f and g, functions of (x, theta, batch) that return a scalar. lopa draws the rows of
        a batch; f and g differ between nodes only by their data.
    x, theta: the start: trees of arrays, in PyTorch also of modules. Every node starts from the same
        theta.
    nodes: the data of each node: a `lopa.Node`, or a function without arguments that returns one and
        is called only where the node runs.
    metrics: more to measure, by name: functions of (x, theta, batch) on a node's outer data.
    trains: the variables that single-level methods train: `theta` with x fixed, or `both`.
    check: whether derivatives are checked before the first iteration.
    backend: `jax` or `torch`; by default the framework of x and theta, or of the data where these are
        arrays of NumPy, or else JAX.
    """

    def __init__(
        self,
        outer: Loss,
        inner: Loss,
        x: Any,
        theta: Any,
        nodes: Sequence[Node | Callable[[], Node]],
        *,
        metrics: Mapping[str, Loss] | None = None,
        trains: str = "theta",
        check: bool = True,
        backend: str | None = None,
    ) -> None:
        for name, function in [("outer", outer), ("inner", inner)]:
            if not callable(function):
                message = f"`{name}` must be a function of (x, theta, batch), not {_kind(function)}"
                raise ConfigError("problem/malformed", message, name)
        if trains not in ("theta", "both"):
            message = f"`trains = {trains!r}` must be 'theta' or 'both'"
            raise ConfigError("problem/malformed", message, "trains")
        self.outer = outer
        self.inner = inner
        self.metrics = _metrics(metrics)
        self.nodes = _nodes(nodes)
        self.trains = trains
        self._backend = _backends.backend(backend, (x, theta), self._data())
        self._kept: dict[tuple[str, int, int], Any] = {}
        self._checked = not check
        self._x, self.x_layout = self._backend.flatten("x", x)
        self._theta, self.theta_layout = self._backend.flatten("theta", theta)
        given = [node for node in self.nodes if isinstance(node, Node)]
        # Functions of nodes may need data that only their own organisation has.
        self._given = len(given) == len(self.nodes)
        if given:
            from ._data import Data

            # Checked here, so that the error appears where the mistake was made.
            Data.of([node.inner for node in given], "inner")
            Data.of([node.of_outer for node in given], "outer")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the functions, the start and the data."""
        from ._fingerprint import fingerprint

        start = (self._x, self._theta, self.x_layout.names, self.theta_layout.names)
        nodes = [(n.inner, n.outer) if isinstance(n, Node) else n for n in self.nodes]
        what = (self.outer, self.inner, self.metrics, start, nodes, self.trains)
        modules = [layout.modules for layout in (self.x_layout, self.theta_layout) if layout.modules]
        return fingerprint(*what, *modules)

    def reference(self) -> dict[str, str]:
        """Its name in an experiment."""
        known[self.digest] = self
        return {"name": "python", "digest": self.digest}

    def check(self) -> None:
        """Checks f and g at the start: scalars, finite, derivatives against differences, curvature.

        Raises a `lopa.ConfigError` that names the mistake and the leaf.
        """
        self._check(0, len(self.nodes) if self._given else 1)

    def shaped(self, x: Any, theta: Any) -> tuple[Any, Any]:
        """Flat x and theta in the shape that the functions take."""
        return self.x_layout.shaped(x), self.theta_layout.shaped(theta)

    def __repr__(self) -> str:
        n, p = self._x.size, self._theta.size
        return f"<lopa.Problem: {len(self.nodes)} nodes, {n} entries of x, {p} of theta>"

    def _data(self) -> list[Any]:
        """The data already in memory."""
        return [(node.inner, node.outer) for node in self.nodes if isinstance(node, Node)]

    # Called by the compiled module.

    def _computed_by(self) -> str:
        return str(self._backend.computed_by())

    def _parts(self, precision: str, nodes: int, first: int, count: int) -> Any:
        if nodes != len(self.nodes):
            message = f"the problem has {len(self.nodes)} nodes, and the network {nodes}"
            raise ConfigError("config/other-nodes", message, "network.nodes")
        if not self._checked:
            self._check(first, count)
        return self._made(precision, first, count)

    def _made(self, precision: str, first: int, count: int) -> Any:
        """Made once: compiled functions are shared by all algorithms and seeds."""
        key = (precision, first, count)
        if key not in self._kept:
            own = [self.node(at) for at in range(first, first + count)]
            self._kept[key] = self._backend.Parts(self, precision, own)
        return self._kept[key]

    def _check(self, first: int, count: int) -> None:
        from ._check import Check

        Check(self, self._made("float64", first, count)).all()
        self._checked = True

    def node(self, at: int) -> Node:
        """The data of a node."""
        node = self.nodes[at]
        made = node if isinstance(node, Node) else node()
        if not isinstance(made, Node):
            message = f"the function of node {at} returned {_kind(made)}, not a lopa.Node"
            raise ConfigError("problem/malformed", message, f"nodes[{at}]")
        return made


def _kind(value: Any) -> str:
    return f"of type {type(value).__name__}"


def _metrics(metrics: Mapping[str, Loss] | None) -> dict[str, Loss]:
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        message = f"`metrics` must be a dictionary of functions, not {_kind(metrics)}"
        raise ConfigError("problem/malformed", message, "metrics")
    for name, function in metrics.items():
        if not isinstance(name, str) or not name or name in ("loss", "phi", "consensus", *COSTS):
            message = f"a metric cannot be called {name!r}: the name is taken, or no name"
            raise ConfigError("problem/malformed", message, "metrics")
        if not callable(function):
            message = f"the metric `{name}` must be a function of (x, theta, batch)"
            raise ConfigError("problem/malformed", message, f"metrics[{name!r}]")
    return dict(metrics)


def _nodes(nodes: Any) -> list[Node | Callable[[], Node]]:
    if isinstance(nodes, Node) or not isinstance(nodes, Sequence) or isinstance(nodes, str | bytes):
        message = f"`nodes` must be a list of lopa.Node, not {_kind(nodes)}"
        hint = "a generator can be read only once: list(…)" if hasattr(nodes, "__next__") else None
        raise ConfigError("problem/malformed", message, "nodes", hint)
    if not nodes:
        raise ConfigError("problem/malformed", "there is no node", "nodes")
    for at, node in enumerate(nodes):
        if not isinstance(node, Node) and not callable(node):
            message = f"node {at} is {_kind(node)}, not a lopa.Node"
            hint = "write lopa.Node(inner=data, outer=data)"
            raise ConfigError("problem/malformed", message, f"nodes[{at}]", hint)
    return list(nodes)

