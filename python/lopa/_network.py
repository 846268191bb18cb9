"""Networks and partitions on their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _lopa
from ._errors import ConfigError
from ._json import dumps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Network:
    """A graph with its mixing weights."""

    nodes: int
    """Number of nodes, m."""
    edges: list[tuple[int, int]]
    """Pairs of neighbours."""
    rho: float
    """How fast differences shrink: the squared norm of W - 11'/m. 0 averages in one step, 1 never."""
    properties: dict[str, Any] = field(repr=False)
    """Everything known about it: eigenvalues, degrees, diameter, bridges."""
    weights: NDArray[np.float64] = field(repr=False)
    """The mixing matrix W."""
    _svg: str = field(repr=False)

    def _repr_html_(self) -> str:
        return f"<p>{self.nodes} nodes, {len(self.edges)} edges, ρ = {self.rho:.4f}</p>{self._svg}"


def graph(kind: str, *, nodes: int, weights: str = "metropolis", seed: int = 1, **params: Any) -> Network:
    """A graph of a kind: `lopa.graph("erdos-renyi", nodes=8, p=0.4).rho`."""
    import numpy as np

    made = json.loads(_lopa.graph(kind, _count("nodes", nodes), weights, seed, dumps(params)))
    matrix = np.zeros((nodes, nodes))
    for i, row in enumerate(made["weights"]):
        for j, weight in row:
            matrix[i, j] = weight
    edges = [(i, j) for i, j in made["edges"]]
    analysis = made["analysis"]
    rho = analysis["rho"]
    if "rounds" in made:  # the graph changes: edges and weights are those of all its links
        analysis["rounds"] = made["rounds"]
        rho = made["rounds"]["rho_round"]
    return Network(nodes, edges, rho, analysis, matrix, made["svg"])


@dataclass(frozen=True)
class Partition(Sequence["NDArray[np.intp]"]):
    """The rows of each node: `partition[3]` are those of node 3."""

    rows: list[NDArray[np.intp]] = field(repr=False)
    """The rows of each node."""
    counts: NDArray[np.intp]
    """Samples of each class at each node."""
    classes: list[Any]
    """The classes, in the order of the columns of `counts`."""
    _svg: str = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, node: Any) -> Any:
        return self.rows[node]

    def _repr_html_(self) -> str:
        return self._svg


def partition(
    kind: str,
    labels: ArrayLike,
    *,
    nodes: int,
    groups: ArrayLike | None = None,
    seed: int = 1,
    **params: Any,
) -> Partition:
    """Splits rows over nodes by their labels: `lopa.partition("classes", y, nodes=8, per_node=7)`."""
    import numpy as np

    values, numbers = np.unique(_column("labels", labels), return_inverse=True)
    of: list[int] | None = None
    if groups is not None:
        of = np.unique(_column("groups", groups), return_inverse=True)[1].tolist()
        if len(of) != len(numbers):
            message = f"{len(of)} groups for {len(numbers)} labels"
            raise ConfigError("data/shape", message, "groups", "give every row a group")
    made = _lopa.partition(kind, numbers.tolist(), of, _count("nodes", nodes), seed, dumps(params))
    found = json.loads(made)
    rows = [np.asarray(own, dtype=np.intp) for own in found["nodes"]]
    counts = np.asarray(found["counts"], dtype=np.intp)
    return Partition(rows, counts, values.tolist(), found["svg"])


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        message = f"`{name} = {value!r}` must be a whole number from 1 on"
        raise ConfigError("config/out-of-range", message, name)
    return int(value)


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    import numpy as np

    column = np.asarray(values)
    if column.ndim != 1 or column.size == 0:
        message = f"`{name}` must be a list with a value for each row, not of shape {column.shape}"
        raise ConfigError("data/shape", message, name)
    return column
