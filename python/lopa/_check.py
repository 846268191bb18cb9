"""Checks a problem before it runs: silent mistakes become errors that name the leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import ConfigError
from ._parts import FUNCTIONS, Array, Layout

if TYPE_CHECKING:
    from ._problem import Problem

STEP = 1e-5


def wrong(what: str, message: str, place: str, hint: str | None = None) -> ConfigError:
    return ConfigError(f"problem/{what}", message, place, hint)


class Check:
    """A problem at a point near its start, in double precision, on a node's full data."""

    def __init__(self, problem: Problem, parts: Any) -> None:
        self.problem = problem
        self.parts = parts
        self.random = np.random.default_rng(1)
        # Near the start and not at it: zeros would hide factors.
        self.x = self.near(problem._x)
        self.theta = self.near(problem._theta)

    def near(self, start: Array) -> Array:
        size = 0.1 * max(float(np.sqrt(np.mean(start**2))), 0.1)
        return start + size * self.random.standard_normal(start.size)

    def get(self, name: str, x: Array, theta: Array, v: Array | None = None, rows: Any = None) -> Any:
        found = self.parts.derivative(name, 0, x, theta, v, rows)
        return float(found) if name in FUNCTIONS else np.asarray(found, dtype=np.float64)

    def all(self) -> None:
        """Raises a `ConfigError` for the first mistake."""
        for name in FUNCTIONS:
            self.scalar(name)
        for name in FUNCTIONS:
            self.values(name)
        matters = {name: self.first(name) for name in FUNCTIONS}
        self.needed(matters)
        self.second()
        self.curvature()

    def scalar(self, name: str) -> None:
        """One floating-point number."""
        which = FUNCTIONS[name]
        shape, kind = self.parts.kind_of(name)
        changed = self.parts.changed()
        if changed is not None:
            message = f"a buffer that `{which}` changes: the loss is not a function of its arguments"
            hint = "call eval() on the module, or normalise without running statistics, as GroupNorm does"
            raise wrong("buffer", message, changed, hint)
        if shape != ():
            message = f"the loss must be a scalar, but its shape is {tuple(shape)}"
            raise wrong("not-scalar", message, which, "take the mean over the batch")
        if kind != "f":
            message = f"the loss must be a floating-point number, but it is {kind}"
            raise wrong("not-scalar", message, which)

    def values(self, name: str) -> None:
        """Finite, the same every time, a mean over rows."""
        which = FUNCTIONS[name]
        data = self.parts.inner if name == "g" else self.parts.outer
        start = (self.problem._x, self.problem._theta)
        for node in range(len(data.sizes)):
            value = float(self.parts.derivative(name, node, *start, None, None))
            if not np.isfinite(value):
                message = f"the loss of node {node} is {value} at the start"
                raise wrong("not-finite", message, which, "start elsewhere, or look for log(0) and 0/0")
        value = self.get(name, self.x, self.theta)
        again = self.get(name, self.x, self.theta)
        if value != again:
            message = f"two calls give {value} and {again}: the loss is not a function of its arguments"
            hint = "no dropout, no random numbers, no statistics kept from call to call"
            raise wrong("not-deterministic", message, which, hint)
        rows = np.tile(np.arange(data.sizes[0], dtype=np.int32), 2)
        twice = self.get(name, self.x, self.theta, rows=rows)
        if abs(twice - value) > 1e-6 * (abs(twice) + abs(value)) + 1e-12:
            message = f"with every row twice the loss is {twice:.6g}, not {value:.6g}"
            hint = "make it a mean over the batch: sums are biased by the batch size"
            raise wrong("not-a-mean", message, which, hint)

    def first(self, name: str) -> set[str]:
        """Gradients against differences, leaf by leaf; returns the leaves that matter."""
        matters = set()
        for variable, layout in self.variables():
            gradient = self.get(f"grad_{variable}_{name}", self.x, self.theta)
            for leaf, part in zip(layout.names, layout.slices, strict=True):
                if not np.isfinite(gradient[part]).all():
                    message = f"the derivative of `{FUNCTIONS[name]}` is not finite"
                    raise wrong("not-finite", message, leaf, "look for sqrt(0), log(0) and 0/0")
                along = self.direction(gradient.size, part)
                found = self.difference(lambda *at: self.get(name, *at), variable, along)
                self.compare(FUNCTIONS[name], leaf, float(gradient @ along), found)
                if np.any(gradient[part] != 0.0):
                    matters.add(leaf)
        return matters

    def needed(self, matters: dict[str, set[str]]) -> None:
        """Every leaf affects a loss."""
        for leaf in self.problem.theta_layout.names:
            if leaf not in matters["g"]:
                message = "the inner loss does not depend on it: theta*(x) is not determined"
                raise wrong("ignored", message, leaf, "use it, or take it out of theta")
        if not matters["f"] & set(self.problem.theta_layout.names):
            message = "the outer loss does not depend on theta: the inner problem has no effect"
            raise wrong("ignored", message, "outer", "use theta, or solve a single-level problem")

    def second(self) -> None:
        """Second derivatives of g against differences of gradients."""
        layout = self.problem.theta_layout
        p = self.theta.size
        reached = set()
        for leaf, part in zip(layout.names, layout.slices, strict=True):
            v = self.direction(p, part)
            hess = self.get("hess_g", self.x, self.theta, v)
            test = self.direction(p, slice(0, p))
            found = self.difference(lambda *at: self.get("grad_theta_g", *at) @ test, "theta", v)
            self.compare("second derivative of inner", leaf, float(hess @ test), found)
            other = self.get("hess_g", self.x, self.theta, test)
            self.compare("symmetry of the second derivative of inner", leaf, hess @ test, other @ v)
        v = self.direction(p, slice(0, p))
        cross = self.get("cross_g", self.x, self.theta, v)
        outer = self.get("grad_x_f", self.x, self.theta)
        names = self.problem.x_layout
        for leaf, part in zip(names.names, names.slices, strict=True):
            along = self.direction(self.x.size, part)
            found = self.difference(lambda *at: self.get("grad_theta_g", *at) @ v, "x", along)
            self.compare("mixed second derivative of inner", leaf, float(cross @ along), found)
            if np.any(cross[part] != 0.0) or np.any(outer[part] != 0.0):
                reached.add(leaf)
        for leaf in names.names:
            if leaf not in reached:
                message = "neither the outer loss nor the minimum of the inner one depends on it"
                raise wrong("ignored", message, leaf, "use it, or take it out of x")

    def curvature(self) -> None:
        """The smallest eigenvalue of the Hessian of g in theta, by Lanczos."""
        low, high, vector = self.extremes()
        if low > 1e-9 * abs(high):
            return
        layout = self.problem.theta_layout
        sizes = [float(np.linalg.norm(vector[part])) for part in layout.slices]
        leaf = layout.names[int(np.argmax(sizes))]
        if low < -1e-6 * abs(high):
            message = f"the inner loss curves downwards there: smallest eigenvalue {low:.2g}"
            hint = "theory and exact measures need a strongly convex g; `check=False` runs it anyway"
        else:
            message = f"the inner loss has no curvature there: eigenvalues from {low:.2g} to {high:.2g}"
            hint = "add a ridge, such as 0.01 * (theta**2).sum()"
        raise wrong("curvature", message, leaf, hint)

    def extremes(self) -> tuple[float, float, Array]:
        """The smallest and the largest Ritz value, and the vector of the smallest."""
        p = self.theta.size
        basis: list[Array] = []
        products: list[Array] = []
        vector = self.direction(p, slice(0, p))
        for _ in range(min(p, 40)):
            vector = vector / np.linalg.norm(vector)
            basis.append(vector)
            products.append(self.get("hess_g", self.x, self.theta, vector))
            vector = products[-1].copy()
            size = float(np.linalg.norm(vector))
            for _ in range(2):
                for known in basis:
                    vector -= (known @ vector) * known
            if np.linalg.norm(vector) <= 1e-10 * max(size, 1e-300):
                break
        q, hq = np.array(basis), np.array(products)
        small = q @ hq.T
        values, vectors = np.linalg.eigh((small + small.T) / 2)
        return float(values[0]), float(values[-1]), vectors[:, 0] @ q

    def variables(self) -> list[tuple[str, Layout]]:
        return [("x", self.problem.x_layout), ("theta", self.problem.theta_layout)]

    def direction(self, size: int, part: slice) -> Array:
        """A random unit vector in one leaf."""
        along = np.zeros(size)
        along[part] = self.random.standard_normal(along[part].size)
        return along / np.linalg.norm(along)

    def difference(self, value: Any, variable: str, along: Array) -> float:
        """The central difference of a value."""
        step = STEP * along
        if variable == "x":
            there, back = (self.x + step, self.theta), (self.x - step, self.theta)
        else:
            there, back = (self.x, self.theta + step), (self.x, self.theta - step)
        return (float(value(*there)) - float(value(*back))) / (2 * STEP)

    def compare(self, what: str, leaf: str, exact: float, found: float) -> None:
        if abs(exact - found) <= 2e-3 * max(abs(exact), abs(found)) + 1e-6:
            return
        if exact == 0.0:
            message = f"`{what}` changes with it ({found:.4g}), but its derivative is 0"
            hint = "something is detached: stop_gradient, detach, a round trip through NumPy"
        else:
            message = f"the derivative of `{what}` is {exact:.6g}, but differences say {found:.6g}"
            hint = "part of it is detached, a custom derivative is wrong, or the loss has jumps"
        raise wrong("derivative", message, leaf, hint)
