"""Derivatives by JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _parts
from ._data import Data
from ._parts import Array, number, side

if TYPE_CHECKING:
    from ._problem import Node, Problem


def computed_by() -> str:
    """The framework, its version, and where it computes."""
    device = jax.devices()[0]
    return f"jax {jax.__version__} on {device.device_kind} ({device.platform})"


class Layout(_parts.Layout):
    """A tree of JAX in a flat vector."""

    def __init__(self, names: list[str], shapes: list[tuple[int, ...]], treedef: Any) -> None:
        super().__init__(names, shapes)
        self.treedef = treedef

    def shaped(self, flat: Any) -> Any:
        return jax.tree_util.tree_unflatten(self.treedef, self.split(flat))


def flatten(what: str, tree: Any) -> tuple[Array, Layout]:
    """A tree as a flat vector."""
    found, treedef = jax.tree_util.tree_flatten_with_path(tree)
    names = [what + jax.tree_util.keystr(path) for path, _ in found]
    leaves = [leaf for _, leaf in found]
    vector = _parts.flat(what, names, leaves)
    return vector, Layout(names, [np.shape(leaf) for leaf in leaves], treedef)


def _double(on: bool) -> Any:
    """Double precision for what happens inside."""
    return jax.enable_x64(on)


class Parts(_parts.Parts):
    """The parts of the nodes of a process."""

    def __init__(self, problem: Problem, precision: str, nodes: list[Node]) -> None:
        super().__init__(problem, precision, nodes)
        self.double = self.dtype == np.float64
        with _double(self.double):
            self.data = {"inner": self.device(self.inner)}
            same = self.outer is self.inner
            self.data["outer"] = self.data["inner"] if same else self.device(self.outer)
        shape_x, shape_theta = problem.x_layout.shaped, problem.theta_layout.shaped

        def f(x: Any, theta: Any, batch: Any) -> Any:
            return problem.outer(shape_x(x), shape_theta(theta), batch)

        def g(x: Any, theta: Any, batch: Any) -> Any:
            return problem.inner(shape_x(x), shape_theta(theta), batch)

        self.grad_theta_g = jax.grad(g, 1)
        self.plain = {
            "f": lambda x, theta, v, batch: f(x, theta, batch),
            "g": lambda x, theta, v, batch: g(x, theta, batch),
            "grad_x_f": lambda x, theta, v, batch: jax.grad(f, 0)(x, theta, batch),
            "grad_theta_f": lambda x, theta, v, batch: jax.grad(f, 1)(x, theta, batch),
            "grad_theta_g": lambda x, theta, v, batch: jax.grad(g, 1)(x, theta, batch),
            "grad_x_g": lambda x, theta, v, batch: jax.grad(g, 0)(x, theta, batch),
            "hess_g": self.hess,
            "cross_g": self.cross,
        }
        self.compiled: dict[Any, Any] = {}
        self.offsets: dict[Any, Any] = {}

    def device(self, data: Data) -> list[Any]:
        """Floating-point columns in this precision, others as they are."""
        return [
            jnp.asarray(array.astype(self.dtype) if array.dtype.kind == "f" else array)
            for array in data.arrays
        ]

    def hess(self, x: Any, theta: Any, v: Any, batch: Any) -> Any:
        return jax.jvp(lambda theta: self.grad_theta_g(x, theta, batch), (theta,), (v,))[1]

    def cross(self, x: Any, theta: Any, v: Any, batch: Any) -> Any:
        return jax.grad(lambda x: jnp.vdot(self.grad_theta_g(x, theta, batch), v))(x)

    def of(self, which: str) -> Data:
        return self.inner if which == "inner" else self.outer

    def batch(self, which: str, arrays: list[Any], rows: Any) -> Any:
        """Rows of a side, which are all there: no bounds to check."""
        return self.of(which).batch(lambda a: a.at[rows].get(mode="promise_in_bounds"), arrays)

    def derivative(self, name: str, node: int, x: Array, theta: Array, v: Array | None, rows: Any) -> Any:
        which = side(name)
        count = self.of(which).sizes[node] if rows is None else None

        def compute(x: Any, theta: Any, v: Any, arrays: Any, offset: Any, rows: Any) -> Any:
            rows = jnp.arange(count, dtype=jnp.int32) if rows is None else rows
            return self.plain[name](x, theta, v, self.batch(which, arrays, offset + rows))

        with _double(self.double):
            if (name, count) not in self.compiled:
                self.compiled[name, count] = jax.jit(compute)
            offset = self.of(which).offsets[node]
            return np.asarray(self.compiled[name, count](x, theta, v, self.data[which], offset, rows))

    def kind_of(self, name: str) -> tuple[tuple[int, ...], str]:
        """The shape of a loss, and `f` if it is a floating-point number."""
        which = side(name)
        size = self.of(which).sizes[0]

        def loss(x: Any, theta: Any, arrays: Any) -> Any:
            return self.plain[name](x, theta, None, self.batch(which, arrays, jnp.arange(size)))

        with _double(self.double):
            x, theta = (jnp.zeros(length, self.dtype) for length in self.dims)
            found = jax.eval_shape(loss, x, theta, self.data[which])
        if not hasattr(found, "dtype"):
            return (), type(found).__name__
        kind = "f" if jnp.issubdtype(found.dtype, jnp.floating) else str(found.dtype)
        return tuple(found.shape), kind

    def directions(
        self, nodes: list[int], x: Array, theta: Array, v: Array, lengths: tuple[int, ...], rows: Array
    ) -> tuple[Array, Array, Array]:
        with _double(self.double):
            if lengths not in self.compiled:
                self.compiled[lengths] = self.for_all(lengths)
            key = tuple(nodes)
            if key not in self.offsets:
                both = (self.inner.offsets[nodes], self.outer.offsets[nodes])
                self.offsets[key] = tuple(map(jnp.asarray, both))
            data = (self.data["inner"], self.data["outer"])
            found = self.compiled[lengths](x, theta, v, rows, self.offsets[key], data)
            d, h, s = map(np.asarray, found)
        return self.array(d), self.array(h), self.array(s)

    def for_all(self, lengths: tuple[int, ...]) -> Any:
        """One compiled function for all nodes: (6) to (8) on batches of these lengths."""
        widths = [max(length, 0) for length in lengths]
        ends = np.cumsum(widths).tolist()

        def node(x: Any, theta: Any, v: Any, rows: Any, offsets: Any, data: Any) -> Any:
            def on(slot: int) -> Any:
                which, at = ("inner", 0) if slot < 3 else ("outer", 1)
                length, end = lengths[slot], ends[slot]
                everything = jnp.arange(-length, dtype=jnp.int32) if length < 0 else None
                own = rows[end - length : end] if everything is None else everything
                return self.batch(which, data[at], offsets[at] + own)

            d = self.grad_theta_g(x, theta, on(0))
            h = self.hess(x, theta, v, on(1)) - self.plain["grad_theta_f"](x, theta, v, on(3))
            s = self.plain["grad_x_f"](x, theta, v, on(4)) - self.cross(x, theta, v, on(2))
            return d, h, s

        return jax.jit(jax.vmap(node, in_axes=(0, 0, 0, 0, 0, None)))

    def measure(self, node: int, x: Array, theta: Array) -> list[tuple[str, float]]:
        values = [("loss", float(self.derivative("f", node, x, theta, None, None)))]
        if self.problem.metrics:
            with _double(self.double):
                data, size = self.outer, self.outer.sizes[node]
                begin = int(data.offsets[node])
                batch = data.batch(lambda a: a[begin : begin + size], self.data["outer"])
                at = self.problem.shaped(jnp.asarray(x), jnp.asarray(theta))
                for name, metric in self.problem.metrics.items():
                    values.append((name, number(name, metric(*at, batch))))
        return values
