"""Networks, partitions and lists."""

from __future__ import annotations

import lopa
import numpy as np
import pytest


def test_a_graph_has_weights_and_rho() -> None:
    network = lopa.graph("erdos-renyi", nodes=8, p=0.4, seed=3)
    weights = network.weights
    np.testing.assert_allclose(weights, weights.T)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    off = np.linalg.norm(weights - 1 / 8, ord=2) ** 2
    assert network.rho == pytest.approx(off)
    assert {(i, j) for i, j in network.edges} == {
        (i, j) for i in range(8) for j in range(i + 1, 8) if weights[i, j] > 0
    }
    assert "<svg" in network._repr_html_()


def test_a_partition_holds_every_row_once() -> None:
    labels = np.repeat(["cat", "dog", "owl"], 40)
    parts = lopa.partition("classes", labels, nodes=4, per_node=2)
    assert len(parts) == 4 and parts.classes == ["cat", "dog", "owl"]
    rows = np.concatenate(list(parts))
    assert len(rows) == len(set(rows.tolist()))
    for node, counts in zip(parts, parts.counts, strict=True):
        found = [int((labels[node] == name).sum()) for name in parts.classes]
        assert found == counts.tolist() and sum(count > 0 for count in found) == 2
    assert "<svg" in parts._repr_html_()


def test_a_partition_by_groups() -> None:
    groups = np.array(["a", "b", "a", "c", "b", "c"])
    parts = lopa.partition("group", [0, 1, 0, 1, 0, 1], nodes=3, groups=groups)
    assert [set(groups[rows]) for rows in parts] == [{"a"}, {"b"}, {"c"}]


def test_lists() -> None:
    names = [entry.name for entry in lopa.algorithms()]
    assert len(set(names)) == len(names) and {"lopa-gt", "dgd", "fedrep"} <= set(names)
    assert all("personal" in e.scopes or "global" in e.scopes for e in lopa.algorithms())
    assert "python" in [entry.name for entry in lopa.problems()]
    assert lopa.graphs() and lopa.weights() and lopa.partitions() and lopa.data_sources()
