"""Data in memory: the same run as from a file, and mistakes with their messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lopa
import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 4))
Y = (X[:, 0] > 0).astype(int)
GROUPS = np.repeat(["north", "south", "west"], 20)


def experiment(data: Any, **more: Any) -> dict[str, Any]:
    return {
        "name": "arrays",
        "problem": {"name": "representation", "hidden": [3]},
        "data": data,
        "network": {"graph": "complete"},
        "run": {"iterations": 20, "batch": 5, "evaluations": 2},
        "algorithm": [{"name": "lopa-gt", "alpha": 0.5, "beta": 0.2, "lambda": 0.2}],
        **more,
    }


def test_memory_and_files_give_the_same_run(folder: Path) -> None:
    np.savez(folder / "data.npz", X=X, y=Y)
    nodes = {"network": {"nodes": 3, "graph": "complete"}}
    file = lopa.run(experiment({"name": "npz", "path": str(folder / "data.npz")}, **nodes), out="file")
    memory = lopa.run(experiment(lopa.Arrays(X, Y), **nodes), out="memory")
    assert memory.digest == file.digest
    again = lopa.run(experiment(lopa.Arrays(X.copy(), Y.copy()), **nodes), out="memory", resume=True)
    assert again.digest == file.digest


def test_groups_become_nodes() -> None:
    run = lopa.run(experiment({"name": lopa.Arrays(X, Y, groups=GROUPS), "scaling": "standardise"}))
    assert len(run.models["lopa-gt"]) == 3 and run.experiment["partition"]["name"] == "group"
    dealt = lopa.run(experiment(lopa.Arrays(X, Y, groups=GROUPS), partition="iid", network={"nodes": 2, "graph": "ring"}))
    assert len(dealt.models["lopa-gt"]) == 2


def test_bytes_floats_and_sparse_rows_are_the_same_numbers() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    pixels = RANDOM.integers(0, 4, size=(60, 6), dtype=np.uint8)
    kinds = [pixels, pixels.astype(np.float32), pixels.astype(float), sparse.csr_matrix(pixels), sparse.coo_array(pixels)]
    arrays = [lopa.Arrays(kind, Y, GROUPS) for kind in kinds]
    losses = [lopa.run(experiment(own), out=str(at)).results[0].values["loss"] for at, own in enumerate(arrays)]
    assert losses == pytest.approx([losses[0]] * 5, rel=1e-9)


def broken() -> Any:
    """A sparse matrix whose columns are beyond its shape."""
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(np.eye(3))
    matrix.indices[1] = 77
    matrix.has_canonical_format = True
    return matrix


BAD: list[tuple[str, Callable[[], Any], str]] = [
    ("a vector", lambda: lopa.Arrays(X[0], Y), "features: a matrix with a row for each sample"),
    ("no rows", lambda: lopa.Arrays(X[:0], Y[:0]), "features: no entries"),
    ("no columns", lambda: lopa.Arrays(X[:, :0], Y), "features: no entries"),
    ("text", lambda: lopa.Arrays(X.astype(str), Y), "features: entries of type"),
    ("complex numbers", lambda: lopa.Arrays(X * 1j, Y), "features: entries of type complex128"),
    ("NaN", lambda: lopa.Arrays(np.where(X > 2, np.nan, X), Y), r"features: nan at \["),
    ("a label too few", lambda: lopa.Arrays(X, Y[:-1]), r"labels: 60 rows need a value each, .* \(59,\)"),
    ("labels with three dimensions", lambda: lopa.Arrays(X, np.zeros((60, 2, 2))), "labels: 60 rows need a value each"),
    ("a label that is NaN", lambda: lopa.Arrays(X, np.where(Y == 0, np.nan, 1.0)), "labels: nan names nothing"),
    ("labels that cannot be compared", lambda: lopa.Arrays(X, np.array([1, "a"] * 30, object)), "labels: .*cannot be compared"),
    ("a group too few", lambda: lopa.Arrays(X, Y, GROUPS[1:]), "groups: 60 rows need a value each"),
    ("more nodes than groups", lambda: lopa.run(experiment(lopa.Arrays(X, Y, GROUPS), network={"nodes": 5, "graph": "ring"})), "3 groups cannot fill 5 nodes"),
    ("a regression target", lambda: lopa.run(experiment(lopa.Arrays(X, X[:, 0], GROUPS))), "looks like a regression target"),
    ("arrays of another process", lambda: lopa.check(experiment({"name": "arrays", "digest": "0"}, network={"nodes": 2, "graph": "ring"})) and lopa.run(experiment({"name": "arrays", "digest": "0"}, network={"nodes": 2, "graph": "ring"})), "made by another Python process"),
    ("a broken sparse matrix", lambda: lopa.run(experiment(lopa.Arrays(broken(), [0, 1, 0], [0, 1, 2]))), "columns must increase within a row, and exist"),
]


@pytest.mark.parametrize("case", BAD, ids=[case[0] for case in BAD])
def test_bad_arrays(case: tuple[str, Callable[[], Any], str]) -> None:
    _, act, message = case
    with pytest.raises((lopa.DataError, lopa.ConfigError), match=message):
        act()
