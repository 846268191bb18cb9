"""The compiled half: text and numbers. `lopa` makes objects of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path

__all__ = [
    "__version__",
    "main",
    "check",
    "run",
    "parts",
    "tune",
    "tune_unit",
    "ranges",
    "trial",
    "run_unit",
    "compare",
    "listing",
    "schema",
    "fit",
    "predictions",
    "personal",
    "usual",
    "spelling",
    "graph",
    "partition",
    "shuffled",
    "read_run",
    "read_model",
    "model_about",
    "model_predictions",
    "report",
    "pictures",
]
__version__: str

# The path of an experiment file, or the text of a dictionary; and overrides.
_Input = tuple[str | PathLike[str] | None, str | None, Sequence[tuple[str, str]]]

def main(args: Sequence[str]) -> int: ...
def check(input: _Input) -> str: ...
def run(
    input: _Input,
    out: str | PathLike[str],
    threads: int,
    resume: bool,
    data: str | PathLike[str] | None,
    send: Callable[[Sequence[tuple[str, str]]], Iterator[tuple[int, str]]] | None,
    tell: Callable[[str, str], None] | None,
) -> Path: ...
def parts(input: _Input, out: str | PathLike[str]) -> Path: ...
def tune(
    input: _Input,
    journal: str | PathLike[str],
    threads: int,
    data: str | PathLike[str] | None,
    send: Callable[[Sequence[tuple[str, str]]], Iterator[tuple[int, str]]] | None,
    tell: Callable[[str, str], None] | None,
) -> str: ...
def tune_unit(input: _Input, data: str | PathLike[str] | None, task: str) -> str: ...
def ranges(input: _Input, data: str | PathLike[str] | None) -> str: ...
def trial(
    input: _Input,
    data: str | PathLike[str] | None,
    algorithm: str,
    params: Mapping[str, float | str],
) -> float | None: ...
def run_unit(
    input: _Input,
    folder: str | PathLike[str],
    threads: int,
    data: str | PathLike[str] | None,
    task: str,
) -> str: ...
def compare(folder: str | PathLike[str], measure: str | None, target: float | None) -> str: ...
def listing() -> str: ...
def schema() -> str: ...
def fit(
    json: str, arrays: object, threads: int, tell: Callable[[str, str], None] | None
) -> tuple[str, list[bytes]]: ...
def usual(silos: int, rows: int) -> tuple[str, int | None]: ...
def spelling(classes: Sequence[tuple[str, int]]) -> str | None: ...
def predictions(kept: object, matrix: object) -> bytes: ...
def personal(kept: object, matrix: object, labels: object) -> tuple[bytes, bool]: ...
def graph(kind: str, nodes: int, weights: str, seed: int, params: str) -> str: ...
def partition(
    kind: str,
    labels: Sequence[int],
    groups: Sequence[int] | None,
    nodes: int,
    seed: int,
    params: str,
) -> str: ...
def shuffled(rows: Sequence[int], node: int, seed: int) -> list[int]: ...
def read_run(path: str | PathLike[str]) -> str: ...
def read_model(
    path: str | PathLike[str], algorithm: str, seed: int
) -> tuple[str, int, bytes, bytes]: ...
def model_about(path: str | PathLike[str]) -> tuple[int, list[str], list[str]]: ...
def model_predictions(path: str | PathLike[str], node: str, matrix: object) -> bytes: ...
def report(paths: Sequence[str | PathLike[str]], out: str | PathLike[str], title: str | None) -> None: ...
def pictures(path: str | PathLike[str]) -> tuple[str, str]: ...
