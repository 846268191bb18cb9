"""Iterations of all nodes in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import _iterations
from ._iterations import Steps, mixing
from ._parts import Array, Wanted


class Rule(_iterations.Rule):
    """An iteration as a function of tensors."""

    def plus(self, total: Any, values: Any, factor: Any) -> Any:
        if total is None:
            return values if factor == 1.0 else values * factor
        return torch.add(total, values, alpha=factor)

    def product(self, matrix: Any, values: Any) -> Any:
        before = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("highest")
            return matrix @ values
        finally:
            torch.set_float32_matmul_precision(before)

    def joined(self, matrices: Any) -> Any:
        return torch.cat(matrices)

    def found(self, nodes: Any, slots: Any, wanted: Wanted, point: Any, rows: Any, given: Any) -> Any:
        return self.parts.found(nodes, slots, wanted, point, rows)


class Iterations(_iterations.Iterations):
    """The tensors of a run."""

    def __init__(self, parts: Any, lengths: tuple[int, ...], steps: Steps, links: Any, *room: int) -> None:
        super().__init__(parts, lengths, steps, links, *room)
        self.rule = Rule(parts, steps)
        like = {"dtype": parts.kind, "device": parts.where}
        self.state = [torch.zeros((self.nodes, length), **like) for length in lengths]
        self.given = {name: parts.tensor(table) for name, table in mixing(links, parts.dtype).items()}

    def put(self, at: int, values: bytes) -> None:
        self.state[at] = self.parts.tensor(self.read(values).copy())

    def launch(self, count: int, rows: bytes, factors: bytes) -> None:
        drawn = self.parts.tensor(self.drawn(count, rows).copy()).long()
        by = np.frombuffer(factors, self.parts.dtype).reshape(count, -1).tolist()
        for at in range(count):
            self.state = self.rule.step(self.state, drawn[at], by[at], self.given)

    def wait(self) -> None:
        if self.parts.where.type == "cuda":
            torch.cuda.synchronize(self.parts.where)

    def get(self, at: int) -> Array:
        return np.ascontiguousarray(self.state[at].cpu().numpy())

    def sizes(self) -> Array:
        nan = torch.full((), torch.nan, dtype=self.parts.kind, device=self.parts.where)
        of = [torch.where(torch.isfinite(values).all(1), values.abs().amax(1), nan) for values in self.state]
        return np.ascontiguousarray(torch.stack(of, 1).cpu().numpy(), np.float64)
