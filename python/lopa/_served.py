"""Models that MLflow loads: `mlflow.pyfunc.load_model(…).predict(rows, params={"node": "3"})`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _lopa
from ._arrays import Matrix

if TYPE_CHECKING:
    import pandas


class Served:
    """The models of all nodes in one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        _, self.predictions, self.nodes = _lopa.model_about(path)

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> pandas.DataFrame:
        """For each row of raw features the probability of each class, or each number (a column each), by the
        model of a node.
        """
        import numpy as np
        import pandas

        node = str((params or {}).get("node", "0"))
        matrix = Matrix(np.asarray(model_input, dtype=np.float64), "model_input")
        found = np.frombuffer(_lopa.model_predictions(self.path, node, matrix.held()))
        return pandas.DataFrame(found.reshape(matrix.rows, -1), columns=self.predictions)


def _load_pyfunc(path: str) -> Served:
    """Called by MLflow."""
    return Served(path)
