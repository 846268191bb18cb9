"""Iterations of all nodes within a framework: sums of arrays and evaluations, in the order of a list. An array has a
row for each node."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._parts import Array, Slot, Wanted

MOST_LINKS = 16
"""Rows of W with more entries are multiplied as a matrix."""

Steps = tuple[tuple[Any, ...], ...]
"""The list: `(sums,)`, each `(to, ((from, mixed, factor), …))`, or `(at, into, single, slots)` of an evaluation, with
arrays and factors by number. A length of -1 in a slot means all rows of a node."""


class Rule:
    """An iteration as a function of arrays."""

    def __init__(self, parts: Any, steps: Steps) -> None:
        self.parts = parts
        self.steps = [self.grouped(step) for step in steps]

    def step(self, state: list[Any], rows: Any, factors: Any, given: Any) -> list[Any]:
        """The arrays after an iteration, with these rows and factors. `given` does not change."""
        state = list(state)
        for step in self.steps:
            if len(step) == 1:
                self.sums(step[0], state, factors, given)
            else:
                self.evaluate(step, state, rows, given)
        return state

    def sums(self, lines: Any, state: list[Any], factors: Any, given: Any) -> None:
        """Sums of arrays: those that are mixed as they were before, others as they are by now."""
        mixed = {of for _, terms in lines for of, is_mixed, _ in terms if is_mixed}
        of_neighbours = {of: self.mixed(state[of], given) for of in sorted(mixed)}
        for to, terms in lines:
            total = None
            for of, is_mixed, factor in terms:
                total = self.plus(total, of_neighbours[of] if is_mixed else state[of], factors[factor])
            state[to] = total

    def mixed(self, values: Any, given: Any) -> Any:
        """Σ_j w_ij of an array, in difference form."""
        if "matrix" in given:
            return values + self.product(given["matrix"], values)
        if given["index"].shape[1] == 0:
            return values
        return values + (given["weights"] * (values[given["index"]] - values[:, None])).sum(1)

    def evaluate(self, step: Any, state: list[Any], rows: Any, given: Any) -> None:
        at, into, wanted, groups, back = step
        point = [state[of] for of in at]
        if back is None:
            ((nodes, slots),) = groups
            found = self.found(nodes, slots, wanted, point, rows, given)
        else:
            some = []
            for nodes, slots in groups:
                own = np.array(nodes)
                some.append(self.found(nodes, slots, wanted, [of[own] for of in point], rows[own], given))
            each = zip(into, zip(*some, strict=True), strict=True)
            found = [None if to is None else self.joined(of)[back] for to, of in each]
        for to, values in zip(into, found, strict=True):
            if to is not None:
                state[to] = values

    def grouped(self, step: tuple[Any, ...]) -> tuple[Any, ...]:
        """An evaluation by groups of nodes whose batches have the same lengths, and the order that puts them back."""
        if len(step) == 1:
            return step
        at, into, single, slots = step
        groups: dict[tuple[Slot, ...], list[int]] = {}
        for node, (f, g) in enumerate(self.parts.samples):
            sizes = (g, g, g, f, f)
            pairs = zip(slots, sizes, strict=True)
            five = tuple((begin, -size if length < 0 else length) for (begin, length), size in pairs)
            groups.setdefault(five, []).append(node)
        alike = [(tuple(nodes), five) for five, nodes in groups.items()]
        order = [node for nodes, _ in alike for node in nodes]
        back = None if len(alike) == 1 else np.argsort(order)
        d, h, s = (to is not None for to in into)
        return at, into, Wanted(d, h, s, single), alike, back

    # What a framework must do.

    def plus(self, total: Any, values: Any, factor: Any) -> Any:
        """The total, or nothing, plus an array times a factor."""
        raise NotImplementedError

    def product(self, matrix: Any, values: Any) -> Any:
        """Of matrices, in full precision."""
        raise NotImplementedError

    def joined(self, matrices: Any) -> Any:
        """Matrices one below the other."""
        raise NotImplementedError

    def found(self, nodes: Any, slots: Any, wanted: Wanted, point: Any, rows: Any, given: Any) -> Any:
        """d, h and s of nodes, where they are wanted."""
        raise NotImplementedError


class Iterations:
    """The arrays of a run: what the compiled half asks of them."""

    def __init__(
        self, parts: Any, lengths: tuple[int, ...], steps: Steps, links: Any, at_once: int, width: int, factors: int
    ) -> None:
        self.parts = parts
        self.lengths = lengths
        self.nodes = len(links)
        self.at_once, self.width, self.factors = at_once, width, factors
        self.state: list[Any] = []

    def put(self, at: int, values: bytes) -> None:
        """Sets an array."""
        raise NotImplementedError

    def launch(self, count: int, rows: bytes, factors: bytes) -> None:
        """Begins iterations, with the rows and factors of each."""
        raise NotImplementedError

    def wait(self) -> None:
        """Waits until all are done."""
        raise NotImplementedError

    def get(self, at: int) -> Array:
        """An array."""
        raise NotImplementedError

    def sizes(self) -> Array:
        """The largest entry of each array, for each node; NaN if one is not finite."""
        raise NotImplementedError

    def read(self, values: bytes) -> Array:
        """The numbers of an array of all nodes."""
        return np.frombuffer(values, self.parts.dtype).reshape(self.nodes, -1)

    def drawn(self, count: int, rows: bytes) -> Array:
        """The rows of some iterations, by iteration and node."""
        return np.frombuffer(rows, np.int32).reshape(count, self.nodes, self.width)


def mixing(links: Any, dtype: Any) -> dict[str, Array]:
    """W without its diagonal: the neighbours of each node and their weights; or W - I, if a row is long."""
    m = len(links)
    others = [[(j, weight) for j, weight in row if j != i] for i, row in enumerate(links)]
    most = max(map(len, others))
    if most > MOST_LINKS:
        matrix = np.zeros((m, m))
        for i, row in enumerate(others):
            for j, weight in row:
                matrix[i, j] = weight
        np.fill_diagonal(matrix, -matrix.sum(1))
        return {"matrix": matrix.astype(dtype)}
    index = np.repeat(np.arange(m)[:, None], most, 1)
    weights = np.zeros((m, most, 1), dtype)
    for i, row in enumerate(others):
        for at, (j, weight) in enumerate(row):
            index[i, at], weights[i, at] = j, weight
    return {"index": index.astype(np.int32), "weights": weights}
