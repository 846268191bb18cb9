"""The data of nodes: rows of arrays, end to end, so that all nodes share one array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import DataError


def leaves(tree: Any, name: str, nests: Any = tuple) -> Iterator[tuple[str, Any]]:
    """The arrays of dictionaries and tuples (or what `nests`), with their names."""
    if isinstance(tree, dict):
        for key, item in tree.items():
            yield from leaves(item, f"{name}[{key!r}]", nests)
    elif isinstance(tree, nests):
        for at, item in enumerate(tree):
            yield from leaves(item, f"{name}[{at}]", nests)
    else:
        yield name, tree


def rebuilt(tree: Any, values: Iterator[Any], nests: Any = tuple) -> Any:
    """The same around other arrays."""
    if isinstance(tree, dict):
        return {key: rebuilt(item, values, nests) for key, item in tree.items()}
    if isinstance(tree, nests):
        items = [rebuilt(item, values, nests) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return next(values)


def plain(leaf: Any) -> NDArray[Any]:
    """An array of any framework as one of NumPy, which has no bfloat16."""
    if hasattr(leaf, "detach"):
        leaf = leaf.detach().cpu()
        leaf = leaf.float() if str(leaf.dtype) == "torch.bfloat16" else leaf
    return np.asarray(leaf)


@dataclass
class Data:
    """One side, inner or outer, of some nodes."""

    tree: Any
    """The structure, from the first node."""
    arrays: list[NDArray[Any]]
    """All nodes' rows, one node after the other."""
    offsets: NDArray[np.int32]
    """Where each node's rows begin."""
    sizes: list[int]
    """How many rows each node has."""

    @classmethod
    def of(cls, trees: list[Any], side: str) -> Data:
        """Checks that nodes have rows, and rows of one kind."""
        columns: list[list[NDArray[Any]]] = []
        sizes = []
        for node, tree in enumerate(trees):
            named = list(leaves(tree, f"nodes[{node}].{side}"))
            arrays = [_array(name, leaf) for name, leaf in named]
            if not arrays:
                raise DataError("data/shape", "there is no array", f"nodes[{node}].{side}")
            for (name, _), array in zip(named, arrays, strict=True):
                if len(array) != len(arrays[0]):
                    message = f"{len(array)} rows, but {len(arrays[0])} in {named[0][0]}"
                    raise DataError("data/shape", message, name, "every array has a row for each sample")
            if columns and not _alike([column[0] for column in columns], arrays):
                message = f"other arrays than node 0: {_shapes(arrays)}, not " + _shapes(
                    [column[0] for column in columns]
                )
                hint = "nodes may have different numbers of rows, but rows of one shape and type"
                raise DataError("data/shape", message, f"nodes[{node}].{side}", hint)
            columns = columns or [[] for _ in arrays]
            for column, array in zip(columns, arrays, strict=True):
                column.append(array)
            sizes.append(len(arrays[0]))
        offsets = np.cumsum([0, *sizes[:-1]]).astype(np.int32)
        return cls(trees[0], [np.concatenate(column) for column in columns], offsets, sizes)

    def batch(self, gather: Callable[[Any], Any], arrays: Any) -> Any:
        """A batch in the structure that functions take."""
        return rebuilt(self.tree, iter([gather(array) for array in arrays]))


def _array(name: str, leaf: Any) -> NDArray[Any]:
    if isinstance(leaf, list) or hasattr(leaf, "__next__"):
        message = f"of type {type(leaf).__name__}, not an array"
        raise DataError("data/shape", message, name, "numpy.array(…), or a tuple of arrays")
    try:
        array = plain(leaf)
    except Exception as error:
        raise DataError("data/shape", f"not an array: {error}", name) from error
    if array.dtype.kind not in "biuf":
        message = f"entries of type {array.dtype}, not numbers"
        raise DataError("data/type", message, name, "code classes by numbers, drop other columns")
    if array.ndim == 0 or len(array) == 0:
        raise DataError("data/shape", f"no rows: its shape is {array.shape}", name)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        at = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise DataError("data/not-finite", f"{array[at]} at {list(at)}", name, "drop or fill these rows")
    return array


def _shapes(arrays: list[NDArray[Any]]) -> str:
    return ", ".join(f"{array.dtype}{list(array.shape[1:])}" for array in arrays)


def _alike(ours: list[NDArray[Any]], theirs: list[NDArray[Any]]) -> bool:
    def kind(array: NDArray[Any]) -> tuple[Any, ...]:
        return (array.shape[1:], array.dtype.kind == "f")

    return [kind(array) for array in ours] == [kind(array) for array in theirs]
