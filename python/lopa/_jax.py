"""Derivatives by JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _parts
from ._data import Data
from ._parts import ALL, Array, Slot, Wanted, cut, number, side

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


class Parts(_parts.Parts):
    """The parts of the nodes of a process."""

    def __init__(self, problem: Problem, precision: str, nodes: list[Node]) -> None:
        super().__init__(problem, precision, nodes)
        with self.precisely():
            self.data = {"inner": self.device(self.inner)}
            same = self.outer is self.inner
            self.data["outer"] = self.data["inner"] if same else self.device(self.outer)
        shape_x, shape_theta = problem.x_layout.shaped, problem.theta_layout.shaped

        def f(x: Any, theta: Any, batch: Any) -> Any:
            return problem.outer(shape_x(x), shape_theta(theta), batch)

        def g(x: Any, theta: Any, batch: Any) -> Any:
            return problem.inner(shape_x(x), shape_theta(theta), batch)

        self.f, self.g = f, g
        self.plain = {
            "f": lambda x, theta, v, batch: f(x, theta, batch),
            "g": lambda x, theta, v, batch: g(x, theta, batch),
            "grad_x_f": lambda x, theta, v, batch: jax.grad(f, 0)(x, theta, batch),
            "grad_theta_f": lambda x, theta, v, batch: jax.grad(f, 1)(x, theta, batch),
            "grad_theta_g": lambda x, theta, v, batch: jax.grad(g, 1)(x, theta, batch),
            "grad_x_g": lambda x, theta, v, batch: jax.grad(g, 0)(x, theta, batch),
            "hess_g": lambda x, theta, v, batch: self.along(1, x, theta, v, batch)[1],
            "cross_g": lambda x, theta, v, batch: self.along(0, x, theta, v, batch)[1],
        }
        self.compiled: dict[Any, Any] = {}

    def device(self, data: Data) -> list[Any]:
        """Floating-point columns in this precision, others as they are."""
        return [
            jnp.asarray(array.astype(self.dtype) if array.dtype.kind == "f" else array)
            for array in data.arrays
        ]

    def along(self, argnums: Any, x: Any, theta: Any, v: Any, batch: Any) -> Any:
        """Gradients of g in x (0), theta (1) or both, and their derivatives along v: forward over reverse,
        which custom rules of either kind allow."""
        slopes = jax.grad(self.g, argnums)
        return jax.jvp(lambda theta: slopes(x, theta, batch), (theta,), (v,))

    def batch(self, which: str, arrays: list[Any], rows: Any) -> Any:
        """Rows of a side, all in range: no bounds are checked."""
        return self.of(which).batch(lambda a: a.at[rows].get(mode="promise_in_bounds"), arrays)

    def derivative(self, name: str, node: int, x: Array, theta: Array, v: Array | None, rows: Any) -> Any:
        which = side(name)
        count = self.of(which).sizes[node] if rows is None else None

        def compute(x: Any, theta: Any, v: Any, arrays: Any, offset: Any, rows: Any) -> Any:
            rows = jnp.arange(count, dtype=jnp.int32) if rows is None else rows
            return self.plain[name](x, theta, v, self.batch(which, arrays, offset + rows))

        with self.precisely():
            if (name, count) not in self.compiled:
                self.compiled[name, count] = jax.jit(compute)
            offset = self.of(which).offsets[node]
            return np.asarray(self.compiled[name, count](x, theta, v, self.data[which], offset, rows))

    def precisely(self) -> Any:
        """Within this context, JAX computes in the precision of the run."""
        return jax.enable_x64(self.dtype == np.float64)

    def kind_of(self, name: str) -> tuple[tuple[int, ...], str]:
        """The shape of a loss, and `f` if it is a floating-point number."""
        which = side(name)
        size = self.of(which).sizes[0]

        def loss(x: Any, theta: Any, arrays: Any) -> Any:
            return self.plain[name](x, theta, None, self.batch(which, arrays, jnp.arange(size)))

        with self.precisely():
            x, theta = (jnp.zeros(length, self.dtype) for length in self.dims)
            found = jax.eval_shape(loss, x, theta, self.data[which])
        if not hasattr(found, "dtype"):
            return (), type(found).__name__
        kind = "f" if jnp.issubdtype(found.dtype, jnp.floating) else str(found.dtype)
        return tuple(found.shape), kind

    def directions(self, nodes: tuple[int, ...], at: Array, slots: tuple[Slot, ...], rows: Array) -> Array:
        with self.precisely():
            if (nodes, slots) not in self.compiled:
                self.compiled[nodes, slots] = self.for_all(nodes, slots)
            return np.asarray(self.compiled[nodes, slots](at, rows, self.data))

    def for_all(self, nodes: tuple[int, ...], slots: tuple[Slot, ...]) -> Any:
        """One compiled function for all nodes: (6) to (8) on batches of these lengths."""

        def all_nodes(at: Any, rows: Any, data: Any) -> Any:
            n, p = self.dims
            point = cut(at, len(nodes), n, p, p)
            found = self.found(nodes, slots, ALL, point, rows, data)
            return jnp.concatenate([of_all.ravel() for of_all in found])

        return jax.jit(all_nodes)

    def found(
        self, nodes: tuple[int, ...], slots: tuple[Slot, ...], wanted: Wanted, point: Any, rows: Any, data: Any
    ) -> Any:
        """d, h and s of nodes, a row for each, where they are wanted."""

        def node(x: Any, theta: Any, v: Any, batches: Any) -> Any:
            xi1, xi2, xi3, sigma1, sigma2 = (batches.get(key) for key in asked)
            if wanted.single:
                s, d = jax.grad(self.g, (0, 1))(x, theta, xi1)
                return d if wanted.d else None, None, s if wanted.s else None
            if one:
                (_, d), (cross, hess) = self.along((0, 1), x, theta, v, xi1)
                grad_x, grad_theta = jax.grad(self.f, (0, 1))(x, theta, sigma1)
                return d, hess - grad_theta, grad_x - cross
            d = h = s = None
            if wanted.d:
                d = jax.grad(self.g, 1)(x, theta, xi1)
            if wanted.h:
                h = self.along(1, x, theta, v, xi2)[1] - jax.grad(self.f, 1)(x, theta, sigma1)
            if wanted.s:
                s = jax.grad(self.f, 0)(x, theta, sigma2) - self.along(0, x, theta, v, xi3)[1]
            return d, h, s

        sides = ["inner"] * 3 + ["outer"] * 2
        asked = list(zip(sides, slots, strict=True))
        one = wanted == ALL and slots[0] == slots[1] == slots[2] and slots[3] == slots[4]
        drawn = [(of, slot) for of, slot in dict.fromkeys(asked) if slot[1] != 0]
        batches = {(of, slot): self.batches(of, data[of], nodes, slot, rows) for of, slot in drawn}
        x, theta, v = point
        return jax.vmap(node)(x, theta, v, batches)

    def iterations(self, *asked: Any) -> Any:
        from ._jax_iterations import Iterations

        return Iterations(self, *asked)

    def batches(self, which: str, arrays: list[Any], nodes: tuple[int, ...], slot: Slot, rows: Any) -> Any:
        """The batches of nodes for a derivative, one along the first axis."""
        data, (begin, length) = self.of(which), slot
        offsets = data.offsets[list(nodes)][:, None]
        if length >= 0:
            return self.batch(which, arrays, offsets + rows[:, begin : begin + length])
        at = offsets + np.arange(-length, dtype=np.int32)
        if not (np.diff(at.ravel()) == 1).all():
            return self.batch(which, arrays, at)
        first = int(at[0, 0])
        shape = (len(nodes), -length)
        return data.batch(lambda a: a[first : first + at.size].reshape(*shape, *a.shape[1:]), arrays)

    def measure(self, node: int, x: Array, theta: Array) -> list[tuple[str, float]]:
        values = [("loss", float(self.derivative("f", node, x, theta, None, None)))]
        if self.problem.metrics:
            with self.precisely():
                data, size = self.outer, self.outer.sizes[node]
                begin = int(data.offsets[node])
                batch = data.batch(lambda a: a[begin : begin + size], self.data["outer"])
                at = self.problem.shaped(jnp.asarray(x), jnp.asarray(theta))
                for name, metric in self.problem.metrics.items():
                    values.append((name, number(name, metric(*at, batch))))
        return values
