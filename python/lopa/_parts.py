"""What the compiled half asks of a problem: bytes in, arrays out. The same for every framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._data import Data
from ._errors import ConfigError

if TYPE_CHECKING:
    from ._problem import Node, Problem

Array = NDArray[Any]


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

    def directions(
        self, nodes: list[int], x: Array, theta: Array, v: Array, lengths: tuple[int, ...], rows: Array
    ) -> tuple[Array, Array, Array]:
        """d, h and s of nodes whose batches have the same lengths."""
        raise NotImplementedError

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

    def together(
        self,
        nodes: list[int],
        x: bytes,
        theta: bytes,
        v: bytes,
        lengths: list[list[int]],
        indices: bytes,
    ) -> tuple[Array, Array, Array]:
        """d, h and s of several nodes: one call for all whose batches have the same lengths."""
        m = len(nodes)
        (xs, thetas, vs) = (np.frombuffer(b, self.dtype).reshape(m, -1) for b in (x, theta, v))
        flat = np.frombuffer(indices, np.int32)
        if len(lengths) == 1:
            return self.directions(nodes, xs, thetas, vs, tuple(lengths[0]), flat.reshape(m, -1))
        out = np.empty_like(thetas), np.empty_like(thetas), np.empty_like(xs)
        widths = [sum(length for length in five if length > 0) for five in lengths]
        ends = np.cumsum(widths)
        groups: dict[tuple[int, ...], list[int]] = {}
        for at, five in enumerate(lengths):
            groups.setdefault(tuple(five), []).append(at)
        for alike, members in groups.items():
            rows = np.stack([flat[ends[at] - widths[at] : ends[at]] for at in members])
            own = [nodes[at] for at in members]
            found = self.directions(own, xs[members], thetas[members], vs[members], alike, rows)
            for whole, part in zip(out, found, strict=True):
                whole[members] = part
        return out

    def metrics(self, node: int, x: bytes, theta: bytes) -> list[tuple[str, float]]:
        """Named measures of a node."""
        return self.measure(node, np.frombuffer(x, self.dtype), np.frombuffer(theta, self.dtype))

    def array(self, found: Any) -> Array:
        """As Rust reads it."""
        return np.ascontiguousarray(found, dtype=self.dtype)


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
