"""Features and labels in memory, as the data of an experiment."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ._errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The arrays of this process by their digests: an experiment names them so.
known: weakref.WeakValueDictionary[str, Arrays] = weakref.WeakValueDictionary()


class Arrays:
    """Features and labels in memory, as the `data` of an experiment with a built-in problem.

    features: a matrix of numbers with a row for each sample: an array, or a sparse matrix of SciPy.
    labels: the class of each row, numbers or strings; or the number to predict, with `target = "number"` in
        `data`, and a row of numbers where there are several.
    groups: the group of each row, if nodes are groups: numbers or strings.
    """

    def __init__(self, features: Any, labels: Any, groups: Any = None) -> None:
        import numpy as np

        self._matrix = Matrix(features)
        rows = self._matrix.rows
        labels, self._outputs = _joined(labels)
        classes, self._labels = named(labels, rows, "labels")
        self.classes: list[str] = classes
        """The names of the classes, in the order of their numbers."""
        self.groups: list[str] = []
        """The names of the groups, in the order of their numbers."""
        self._groups: NDArray[np.uint32] = np.zeros(0, np.uint32)
        if groups is not None:
            self.groups, self._groups = named(groups, rows, "groups")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the features, labels and groups."""
        from ._fingerprint import fingerprint

        matrix = self._matrix
        content = (matrix.cols, matrix.dense, matrix.sparse)
        return fingerprint(*content, self._labels, self.classes, self._groups, self.groups)

    def reference(self) -> dict[str, str]:
        """Its name in an experiment."""
        known[self.digest] = self
        return {"name": "arrays", "digest": self.digest}

    def __repr__(self) -> str:
        matrix, groups = self._matrix, f", {len(self.groups)} groups" if self.groups else ""
        kind = "sparse" if matrix.dense is None else str(matrix.dense.dtype)
        shape = f"{matrix.rows} × {matrix.cols}"
        return f"<lopa.Arrays: {shape} {kind}, {len(self.classes)} classes{groups}>"

    def _held(self) -> Any:
        """For the compiled half."""
        groups = (self._groups, self.groups)
        return self._matrix.held(), self._labels, self.classes, *groups, self._outputs


class Matrix:
    """Features as the compiled module needs them: bytes, single or double precision, or sparse rows."""

    def __init__(self, features: Any, place: str = "features") -> None:
        import numpy as np

        self.dense: NDArray[Any] | None = None
        self.sparse: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]] | None = None
        if hasattr(features, "tocsr"):
            rows = features.tocsr()
            if not rows.has_canonical_format:
                rows = rows.copy()
                rows.sum_duplicates()  # and sorts
            values = _numbers(rows.data, place)
            if values.dtype == np.uint8:
                values = values.astype(np.float64)
            if rows.shape[1] > np.iinfo(np.int32).max:
                raise DataError("data/shape", f"{rows.shape[1]} columns are too many", place)
            self.sparse = (rows.indptr.astype(np.int64), rows.indices.astype(np.int32), values)
        else:
            rows = np.asarray(features)
            if rows.ndim != 2:
                message = f"a matrix with a row for each sample is wanted, not of shape {rows.shape}"
                raise DataError("data/shape", message, place)
            self.dense = _numbers(rows, place)
        self.rows, self.cols = (int(length) for length in rows.shape)
        if self.rows == 0 or self.cols == 0:
            raise DataError("data/shape", f"no entries: the shape is {rows.shape}", place)

    def held(self) -> Any:
        """For the compiled half."""
        return self.cols, self.dense, None if self.sparse is None else list(self.sparse)


def _numbers(values: NDArray[Any], place: str) -> NDArray[Any]:
    import numpy as np

    if values.dtype.kind not in "biuf":
        message = f"entries of type {values.dtype}, not numbers"
        raise DataError("data/type", message, place, "code them by numbers, or drop their columns")
    if values.dtype not in (np.float32, np.uint8):
        values = values.astype(np.float64, copy=False)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = [int(index) for index in np.argwhere(~np.isfinite(values))[0]]
        message = f"{values[tuple(at)]} at {at}"
        raise DataError("data/not-finite", message, place, "drop or fill these rows")
    return np.ascontiguousarray(values)


def _joined(labels: Any) -> tuple[Any, int]:
    """The labels of each row, several of them as one text; and how many there are."""
    import numpy as np

    array = np.asarray(labels)
    if array.ndim != 2 or array.shape[1] < 2:
        return (array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else labels), 1
    return np.asarray(["\t".join(str(value) for value in row) for row in array.tolist()]), array.shape[1]


def named(values: Any, rows: int, place: str) -> tuple[list[str], NDArray[np.uint32]]:
    """The distinct values as text, in order, and the index of each row's value."""
    import numpy as np

    array = np.asarray(values)
    if array.shape != (rows,):
        message = f"{rows} rows need a value each, but the shape is {array.shape}"
        raise DataError("data/shape", message, place)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        message = f"{array[~np.isfinite(array)][0]} names nothing"
        raise DataError("data/not-finite", message, place, "drop or fill these rows")
    try:
        different, numbers = np.unique(array, return_inverse=True)
    except TypeError as error:
        message = f"values that cannot be compared: {error}"
        raise DataError("data/type", message, place, "use numbers, or strings") from error
    return [str(value) for value in different], numbers.astype(np.uint32)


def find(digest: str) -> Arrays:
    """The arrays that an experiment names."""
    arrays = known.get(digest)
    if arrays is None:
        message = "these arrays were made by another Python process, and are not here"
        hint = "make the lopa.Arrays again first, or put the data into a file (csv, libsvm, npz)"
        raise ConfigError("data/not-here", message, "data.digest", hint)
    return arrays
