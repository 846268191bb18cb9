"""Iterations of all nodes in JAX: one compiled loop."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _iterations
from ._iterations import Steps, mixing
from ._parts import Array, Wanted


class Rule(_iterations.Rule):
    """An iteration as a function of JAX."""

    def plus(self, total: Any, values: Any, factor: Any) -> Any:
        return factor * values if total is None else total + factor * values

    def product(self, matrix: Any, values: Any) -> Any:
        return jnp.matmul(matrix, values, precision=jax.lax.Precision.HIGHEST)

    def joined(self, matrices: Any) -> Any:
        return jnp.concatenate(matrices)

    def found(self, nodes: Any, slots: Any, wanted: Wanted, point: Any, rows: Any, given: Any) -> Any:
        return self.parts.found(nodes, slots, wanted, point, rows, given["data"])

    def loop(self, state: Any, count: Any, rows: Any, factors: Any, given: Any) -> Any:
        """Some iterations. Their number is no constant: then a trajectory has the same bits wherever it is cut."""
        return jax.lax.fori_loop(0, count, lambda at, state: self.step(state, rows[at], factors[at], given), state)


def sizes(state: Any) -> Any:
    """The largest entry of each array, for each node."""
    of = [jnp.where(jnp.isfinite(values).all(1), jnp.abs(values).max(1), jnp.nan) for values in state]
    return jnp.stack(of, 1)


class Iterations(_iterations.Iterations):
    """The arrays of a run."""

    def __init__(self, parts: Any, lengths: tuple[int, ...], steps: Steps, links: Any, *room: int) -> None:
        super().__init__(parts, lengths, steps, links, *room)
        with parts.precisely():
            self.state = [jnp.zeros((self.nodes, length), parts.dtype) for length in lengths]
            tables = {name: jnp.asarray(table) for name, table in mixing(links, parts.dtype).items()}
        self.given = {"data": parts.data, **tables}
        if steps not in parts.compiled:
            loop = jax.jit(Rule(parts, steps).loop, donate_argnums=0)
            parts.compiled[steps] = loop, jax.jit(sizes)
        self.loop, self.find_sizes = parts.compiled[steps]

    def put(self, at: int, values: bytes) -> None:
        with self.parts.precisely():
            self.state[at] = jnp.array(self.read(values))

    def launch(self, count: int, rows: bytes, factors: bytes) -> None:
        drawn = np.zeros((self.at_once, self.nodes, self.width), np.int32)
        drawn[:count] = self.drawn(count, rows)
        by = np.zeros((self.at_once, self.factors), self.parts.dtype)
        by[:count] = np.frombuffer(factors, self.parts.dtype).reshape(count, -1)
        with self.parts.precisely():
            self.state = self.loop(self.state, np.int32(count), drawn, by, self.given)

    def wait(self) -> None:
        for values in self.state:
            values.block_until_ready()

    def get(self, at: int) -> Array:
        return np.ascontiguousarray(self.state[at])

    def sizes(self) -> Array:
        with self.parts.precisely():
            return np.ascontiguousarray(self.find_sizes(self.state), np.float64)
