"""What the compiled half asks of a problem: bytes in, arrays out. The same for every framework."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._data import Data
from ._errors import ConfigError

if TYPE_CHECKING:
    from ._problem import Node, Problem

Array = NDArray[Any]

Slot = tuple[int, int]
"""Where a derivative's rows begin in those drawn for a node, and how many they are: -n for all n, in order."""

FUNCTIONS = {"f": "outer", "g": "inner"}


class Wanted(NamedTuple):
    """Which of d, h and s are wanted."""

    d: bool
    h: bool
    s: bool
    single: bool
    """Whether s is ∇_x g on the batch of d."""


ALL = Wanted(True, True, True, False)


class Parts:
    """The parts of the nodes of a process, in one precision."""

    def __init__(self, problem: Problem, precision: str, nodes: list[Node]) -> None:
        self.problem = problem
        self.dtype = np.dtype(precision)
        self.dims = (problem._x.size, problem._theta.size)
        self.inner = Data.of([node.inner for node in nodes], "inner")
        same = all(node.outer is None for node in nodes)
        self.outer = self.inner if same else Data.of([node.of_outer for node in nodes], "outer")
        self.samples = list(zip(self.outer.sizes, self.inner.sizes, strict=True))
        self.start_x = problem._x.tolist()
        self.start_theta = [problem._theta.tolist()] * len(nodes)
        self.trains = problem.trains
        self.measures = ["loss", *problem.metrics]

    # What a framework must do.

    def derivative(self, name: str, node: int, x: Array, theta: Array, v: Array | None, rows: Any) -> Any:
        """f, g or a derivative of a node; `rows` is None for all."""
        raise NotImplementedError

    def kind_of(self, name: str) -> tuple[tuple[int, ...], str]:
        """The shape of a loss, and `f` if it is a floating-point number, else its type."""
        raise NotImplementedError

    def directions(self, nodes: tuple[int, ...], at: Array, slots: tuple[Slot, ...], rows: Array) -> Array:
        """d, h and s of nodes whose batches have the same lengths, end to end: ∇_θ g on the first of five,
        ∇²_θθ g v - ∇_θ f on the second and the fourth, ∇_x f - ∇²_xθ g v on the fifth and the third."""
        raise NotImplementedError

    def iterations(self, *asked: Any) -> Any:
        """Iterations of all nodes in the framework: see `_iterations.Iterations`."""
        raise NotImplementedError

    def changed(self) -> str | None:
        """The name of something that a function has changed and must not."""
        return None

    def measure(self, node: int, x: Array, theta: Array) -> list[tuple[str, float]]:
        """The loss and the problem's own metrics."""
        raise NotImplementedError

    # What Rust calls.

    def one(
        self, name: str, node: int, x: bytes, theta: bytes, v: bytes | None, rows: bytes | None
    ) -> Any:
        """A derivative of one node."""
        found = self.derivative(
            name,
            node,
            np.frombuffer(x, self.dtype),
            np.frombuffer(theta, self.dtype),
            None if v is None else np.frombuffer(v, self.dtype),
            None if rows is None else np.frombuffer(rows, np.int32),
        )
        return float(found) if name in ("f", "g") else self.array(found)

    def room(self, count: int, rows: int) -> tuple[Array, Array]:
        """For x, theta and v of N nodes, with this number of rows; reused in every iteration."""
        n, p = self.dims
        return aligned(count * (n + 2 * p), self.dtype), aligned(rows, np.dtype(np.int32))

    def together(
        self, nodes: tuple[int, ...], at: Array, slots: tuple[tuple[Slot, ...], ...], rows: Array
    ) -> Array:
        """Every node's d, then every h, then every s: one call for all nodes whose batches have the same
        lengths. `at` is every node's x, then every theta, then every v; `rows` those drawn for each."""
        if len(slots) == 1:
            return self.array(self.directions(nodes, at, slots[0], rows.reshape(len(nodes), -1)))
        n, p = self.dims
        x, theta, v = cut(at, len(nodes), n, p, p)
        out = np.empty_like(at)
        whole = cut(out, len(nodes), p, p, n)
        widths = [max(0, *(begin + length for begin, length in five)) for five in slots]
        ends = np.cumsum(widths)
        groups: dict[tuple[Slot, ...], list[int]] = {}
        for node, five in enumerate(slots):
            groups.setdefault(five, []).append(node)
        for alike, members in groups.items():
            own = np.stack([rows[ends[node] - widths[node] : ends[node]] for node in members])
            there = np.concatenate([x[members].ravel(), theta[members].ravel(), v[members].ravel()])
            found = self.array(self.directions(tuple(nodes[node] for node in members), there, alike, own))
            for all_nodes, some in zip(whole, cut(found, len(members), p, p, n), strict=True):
                all_nodes[members] = some
        return out

    def of(self, which: str) -> Data:
        """The data of a side."""
        return self.inner if which == "inner" else self.outer

    def metrics(self, node: int, x: bytes, theta: bytes) -> list[tuple[str, float]]:
        """Named measures of a node."""
        return self.measure(node, np.frombuffer(x, self.dtype), np.frombuffer(theta, self.dtype))

    def array(self, found: Any) -> Array:
        """As Rust reads it."""
        return np.ascontiguousarray(found, dtype=self.dtype)


def aligned(size: int, dtype: np.dtype[Any]) -> Array:
    """A vector that begins where a cache line does: frameworks use it as it is, and others as a copy."""
    room = np.zeros(size * dtype.itemsize + 64, np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + size * dtype.itemsize].view(dtype)


def cut(flat: Any, rows: int, *cols: int) -> list[Any]:
    """The matrices that lie end to end in a vector of any framework, by their columns."""
    ends = [rows * end for end in itertools.accumulate(cols)]
    begins = [0, *ends[:-1]]
    return [flat[a:b].reshape(rows, -1) for a, b in zip(begins, ends, strict=True)]


def side(name: str) -> str:
    """Whether a derivative is of f (`outer`) or of g (`inner`)."""
    return "outer" if name.endswith("f") else "inner"


def number(name: str, value: Any) -> float:
    """The value of a metric."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        message = f"the metric `{name}` must be a number, but it is of type {type(value).__name__}"
        if getattr(value, "shape", ()) != ():
            message = f"the metric `{name}` must be a number, but its shape is {tuple(value.shape)}"
        raise ConfigError("problem/metric", message, f"metrics[{name!r}]") from error


class Layout:
    """Where the leaves of a tree lie in a flat vector."""

    modules: dict[str, Any] = {}
    """What in the tree is no array, by name: it may hold more than leaves."""

    def __init__(self, names: list[str], shapes: list[tuple[int, ...]]) -> None:
        self.names = names
        self.shapes = shapes
        sizes = [int(np.prod(shape)) for shape in shapes]
        ends = np.cumsum(sizes).tolist()
        self.slices = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]

    def split(self, flat: Any) -> list[Any]:
        """The leaves of a flat vector."""
        pairs = zip(self.slices, self.shapes, strict=True)
        return [flat[part].reshape(shape) for part, shape in pairs]

    def shaped(self, flat: Any) -> Any:
        """The tree of a flat vector."""
        raise NotImplementedError


def flat(what: str, names: list[str], leaves: list[Any]) -> Array:
    """The leaves end to end, in double precision; a leaf that cannot be differentiated is named."""
    if not leaves:
        raise ConfigError("problem/malformed", f"`{what}` is empty", what)
    vectors = []
    for name, leaf in zip(names, leaves, strict=True):
        try:
            array = np.asarray(leaf)
        except Exception as error:
            raise ConfigError("problem/leaf", f"not an array: {error}", name) from error
        if array.dtype.kind != "f" and str(array.dtype) != "bfloat16":
            message = f"entries of type {array.dtype}, which have no derivatives"
            raise ConfigError("problem/leaf", message, name, "make it a floating-point array")
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise ConfigError("problem/leaf", "an entry is not finite", name)
        vectors.append(array.ravel())
    whole = np.concatenate(vectors)
    if whole.size == 0:
        raise ConfigError("problem/malformed", f"`{what}` has no entries", what)
    return whole
