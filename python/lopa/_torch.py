"""Derivatives by PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import _parts
from ._data import Data
from ._errors import ConfigError
from ._modules import Functions, Layout
from ._parts import ALL, FUNCTIONS, Array, Slot, Wanted, cut, number, side

if TYPE_CHECKING:
    from ._problem import Node, Problem

Tensor = torch.Tensor


def device() -> Any:
    """A GPU if there is one; Apple's has no double precision, which measurements need."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def computed_by() -> str:
    """The framework, its version, and where it computes."""
    where = device()
    if where.type == "cuda":
        return f"torch {torch.__version__} on {torch.cuda.get_device_name(where)} (cuda)"
    return f"torch {torch.__version__} on cpu ({torch.get_num_threads()} threads)"


def flatten(what: str, tree: Any) -> tuple[Array, Layout]:
    """A tree of tensors and modules as a flat vector."""
    layout = Layout(what, tree)
    return _parts.flat(what, layout.names, layout.start), layout


def gradient(of: Any, variables: list[Any], graph: bool = False) -> list[Any]:
    """Derivatives of a scalar; 0 where it does not depend on a variable."""
    if not of.requires_grad:
        return [torch.zeros_like(variable) for variable in variables]
    found = torch.autograd.grad(of, variables, create_graph=graph, materialize_grads=True)
    return list(found)


def product(left: list[Any], right: list[Any]) -> Any:
    """The scalar product of two lists of tensors."""
    return sum((a * b).sum() for a, b in zip(left, right, strict=True))


class Parts(_parts.Parts):
    """The parts of the nodes of a process."""

    def __init__(self, problem: Problem, precision: str, nodes: list[Node]) -> None:
        super().__init__(problem, precision, nodes)
        self.where = device()
        self.kind = getattr(torch, precision)
        self.data = {"inner": self.device(self.inner)}
        same = self.outer is self.inner
        self.data["outer"] = self.data["inner"] if same else self.device(self.outer)
        self.functions = Functions(problem.x_layout, problem.theta_layout, self.kind, self.where)
        self.loss = {"f": problem.outer, "g": problem.inner}
        self.every = {name: self.functions.for_all(loss) for name, loss in self.loss.items()}
        self.places: dict[Any, Any] = {}

    def device(self, data: Data) -> list[Any]:
        """Floating-point columns in this precision, others as they are."""
        return [
            torch.from_numpy(
                np.ascontiguousarray(array, self.dtype if array.dtype.kind == "f" else None)
            ).to(self.where)
            for array in data.arrays
        ]

    def tensor(self, array: Array) -> Any:
        """Copies numbers to PyTorch's device; on the processor they are shared."""
        return torch.from_numpy(array).to(self.where)

    def leaves(self, layout: Layout, flat: Any, differentiated: bool) -> list[Any]:
        """The leaves of a flat vector, or of a matrix with a row for each node."""
        return [leaf.requires_grad_(differentiated) for leaf in layout.split(flat)]

    def back(self, found: list[Any]) -> Array:
        """Leaves as a flat vector."""
        return self.array(torch.cat([leaf.detach().ravel() for leaf in found]).cpu().numpy())

    def on(self, which: str, node: int, rows: Any) -> Any:
        """Some or all rows of a node."""
        data = self.of(which)
        begin, size = int(data.offsets[node]), data.sizes[node]
        if rows is None:
            return data.batch(lambda array: array[begin : begin + size], self.data[which])
        index = self.tensor(rows + np.int64(begin))
        return data.batch(lambda array: array[index], self.data[which])

    def derivative(self, name: str, node: int, x: Array, theta: Array, v: Array | None, rows: Any) -> Any:
        loss, batch = self.loss[name[-1]], self.on(side(name), node, rows)
        wants_x = name in ("cross_g", "grad_x_f", "grad_x_g")
        wants_theta = name not in (*FUNCTIONS, "grad_x_f", "grad_x_g")
        xs = self.leaves(self.problem.x_layout, self.tensor(x.copy()), wants_x)
        thetas = self.leaves(self.problem.theta_layout, self.tensor(theta.copy()), wants_theta)
        with torch.set_grad_enabled(wants_x or wants_theta):
            value = self.functions.call(loss, xs, thetas, batch)
            if name in FUNCTIONS:
                return value.cpu() if isinstance(value, Tensor) else value
            value = self.total(name[-1], value)
            if v is None:
                return self.back(gradient(value, xs if wants_x else thetas))
            along = self.leaves(self.problem.theta_layout, self.tensor(v.copy()), False)
            slope = product(gradient(value, thetas, graph=True), along)
            return self.back(gradient(slope, xs if name == "cross_g" else thetas))

    def total(self, name: str, value: Any, *shape: int) -> Any:
        """The sum of the losses of nodes: its derivatives are those of each."""
        if not isinstance(value, Tensor) or value.shape != shape:
            kind = f"its shape is {tuple(value.shape)[len(shape) :]}" if isinstance(value, Tensor) else "it is no tensor"
            message = f"the loss must be a scalar, but {kind}"
            raise ConfigError("problem/not-scalar", message, FUNCTIONS[name], "take the mean over the batch")
        return value.sum()

    def kind_of(self, name: str) -> tuple[tuple[int, ...], str]:
        """The shape of a loss, and `f` if it is a floating-point number."""
        found = self.derivative(name, 0, self.problem._x, self.problem._theta, None, None)
        if not isinstance(found, Tensor):
            return tuple(np.shape(found)), type(found).__name__
        return tuple(found.shape), "f" if found.is_floating_point() else str(found.dtype)

    def changed(self) -> str | None:
        return self.functions.changed()

    def directions(self, nodes: tuple[int, ...], at: Array, slots: tuple[Slot, ...], rows: Array) -> Array:
        n, p = self.dims
        point = cut(self.tensor(at), len(nodes), n, p, p)
        return self.back(self.found(nodes, slots, ALL, point, self.tensor(rows.astype(np.int64))))

    def found(self, nodes: tuple[int, ...], slots: tuple[Slot, ...], wanted: Wanted, point: Any, index: Any) -> list[Any]:
        """d, h and s of nodes, a row for each, where they are wanted."""
        x, theta, v = point
        m = len(nodes)
        xs = self.leaves(self.problem.x_layout, x, True)
        thetas = self.leaves(self.problem.theta_layout, theta, True)
        along = self.leaves(self.problem.theta_layout, v, False)

        def loss(name: str, slot: int) -> Any:
            batch = self.batches(FUNCTIONS[name], nodes, slots[slot], index)
            return self.total(name, self.every[name](xs, thetas, batch), m)

        def both(xi: int, sigma: int, slope: Any, variables: list[Any]) -> list[Any]:
            """Derivatives of f - <∇_θ g, v>: in x it is (8), in theta (7) with the other sign."""
            slope = gradient(loss("g", xi), thetas, graph=True) if slope is None else slope
            return gradient(loss("f", sigma) - product(slope, along), variables)

        slope, minus_h, s = None, None, None
        with torch.enable_grad():
            one = wanted == ALL and slots[0] == slots[1] == slots[2] and slots[3] == slots[4]
            if wanted.single:
                both_of_g = gradient(loss("g", 0), [*xs, *thetas] if wanted.s else thetas)
                s, slope = (both_of_g[: len(xs)], both_of_g[len(xs) :]) if wanted.s else (None, both_of_g)
            elif wanted.d:
                slope = gradient(loss("g", 0), thetas, graph=one)
            if one:
                found = both(0, 3, slope, [*xs, *thetas])
                s, minus_h = found[: len(xs)], found[len(xs) :]
            elif not wanted.single:
                minus_h = both(1, 3, None, thetas) if wanted.h else None
                s = both(2, 4, None, xs) if wanted.s else None
        flat = [
            None if leaves is None else torch.cat([leaf.detach().reshape(m, -1) for leaf in leaves], 1)
            for leaves in (slope, minus_h, s)
        ]
        flat[1] = None if flat[1] is None else -flat[1]
        return flat

    def iterations(self, *asked: Any) -> Any:
        from ._torch_iterations import Iterations

        return Iterations(self, *asked)

    def batches(self, which: str, nodes: tuple[int, ...], slot: Slot, index: Any) -> Any:
        """The batches of nodes for a derivative, one along the first axis."""
        data = self.of(which)
        begin, length = slot
        key = (which, nodes)
        if key not in self.places:
            self.places[key] = self.tensor(data.offsets[list(nodes)].astype(np.int64)[:, None])
        if length >= 0:
            at = self.places[key] + index[:, begin : begin + length]
            return data.batch(lambda array: array[at], self.data[which])
        if (key, length) not in self.places:
            first, count = int(data.offsets[nodes[0]]), -length * len(nodes)
            at = self.places[key] + torch.arange(-length, device=self.where)
            even = bool((at.ravel() == torch.arange(first, first + count, device=self.where)).all())

            def full(array: Any) -> Any:
                rows = array[first : first + count] if even else array[at.ravel()]
                return rows.reshape(len(nodes), -length, *array.shape[1:])

            self.places[key, length] = data.batch(full, self.data[which])
        return self.places[key, length]

    def measure(self, node: int, x: Array, theta: Array) -> list[tuple[str, float]]:
        values = [("loss", float(self.derivative("f", node, x, theta, None, None)))]
        if self.problem.metrics:
            batch = self.on("outer", node, None)
            xs = self.leaves(self.problem.x_layout, self.tensor(x.copy()), False)
            thetas = self.leaves(self.problem.theta_layout, self.tensor(theta.copy()), False)
            with torch.no_grad():
                for name, metric in self.problem.metrics.items():
                    values.append((name, number(name, self.functions.call(metric, xs, thetas, batch))))
        return values
