"""Searches for step sizes, trials and comparisons."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _lopa
from ._executor import Executor, absolute, sender, shipped
from ._experiment import Sets, Source, _read, _sets, _workers, run
from ._progress import teller
from ._results import Run

@dataclass(frozen=True)
class Trial:
    """Values of an algorithm, and how they did."""

    algorithm: str
    rung: int
    """The stage of successive halving; 0 in other searches."""
    trial: int
    """Its number, from 0; the first has the file's own values."""
    params: dict[str, float | str]
    value: float | None
    """The mean of the metric over the seeds; `None` if a run diverged."""


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search."""

    best: dict[str, Trial]
    """The best confirmed trial of each algorithm."""
    trials: list[Trial]
    """Every trial."""
    tests: list[dict[str, Any]]
    """How the best trials did at full length on further seeds."""
    moves: list[dict[str, Any]]
    """The ranges that moved because the best trial was at their edge."""
    text: str
    """The experiment file with the best values, and how they were found."""

    def set(self) -> dict[str, float | str]:
        """The best values as overrides: `lopa.run(source, set=tuned.set())`."""
        best = self.best.items()
        return {f"algorithm.{name}.{key}": value for name, one in best for key, value in one.params.items()}


def tune(
    source: Source,
    *,
    set: Sets = None,
    out: str | os.PathLike[str] | None = None,
    journal: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    data: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str, dict[str, Any]], None] | None = None,
) -> Tuned:
    """Searches step sizes as the section `[tune]` says: the same trials for every algorithm.

    source: an experiment file, or a dictionary with the same keys.
    out: where to write the tuned experiment file; by default nowhere.
    journal: the file of finished trials, from which a search resumes; by default none is kept.
    threads: the outcome does not depend on it; by default all cores.
    executor: does the trials on its workers; the outcome is the same. Any object with the method `submit` of
        `concurrent.futures.Executor`.
    progress: a function that is called with an event (`trial`, `test`, `moved`) and its values.
    """
    given, problem = _read(source, _sets(set))
    threads = _workers(threads, problem)
    with ExitStack() as stack:
        if journal is None:
            journal = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "journal.jsonl"
        tell = stack.enter_context(teller(progress if callable(progress) else False))
        where = absolute(data)
        send = sender(executor, _tune_unit, (shipped(source), given[2], where))
        found = json.loads(_lopa.tune(given, os.fspath(journal), threads, where, send, tell))
    trials = [Trial(**trial) for trial in found["trials"]]
    best = {trial["algorithm"]: Trial(**trial) for trial in found["best"]}
    if out is not None:
        Path(out).write_text(found["text"], encoding="utf-8")
    return Tuned(best, trials, found["tests"], found["moves"], found["text"])


def compare(
    source: Source | Run,
    *,
    measure: str | None = None,
    target: float | None = None,
    set: Sets = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    data: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str, dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Compares the algorithms of an experiment under each cost; runs it first, unless `source` is a `lopa.Run`.

    measure: what decides; by default accuracy, else the squared norm of the gradient, else the loss.
    target: a level of the measure; also compares the cost of reaching it.

    The other arguments are those of `lopa.run`. Returns `standings`, one per cost, with the place of every algorithm and
    the `lead` of the best one; `races` to the target; `diverged` and `warnings`.
    """
    if not isinstance(source, Run):
        source = run(
            source, set=set, out=out, threads=threads, executor=executor, data=data, progress=progress
        )
    answer: dict[str, Any] = json.loads(_lopa.compare(source.path, measure, target))
    return answer


def ranges(
    source: Source, *, set: Sets = None, data: str | os.PathLike[str] | None = None
) -> dict[str, dict[str, Any]]:
    """The ranges that `lopa.tune` searches, by algorithm and parameter: `{"low": …, "high": …, "scale": "log"}`, a list
    of values, or the name of the parameter that one is equal to."""
    given, _ = _read(source, _sets(set))
    found: dict[str, dict[str, Any]] = json.loads(_lopa.ranges(given, data))
    return found


def suggest(trial: Any, ranges: Mapping[str, Any]) -> dict[str, float | str]:
    """Values within the ranges of an algorithm, asked of an Optuna trial."""
    values: dict[str, float | str] = {}
    for key, where in ranges.items():
        if isinstance(where, list):
            values[key] = trial.suggest_categorical(key, where)
        elif isinstance(where, Mapping):
            log = where.get("scale", "log") == "log"
            values[key] = trial.suggest_float(key, where["low"], where["high"], log=log)
    same = {key: other for key, other in ranges.items() if isinstance(other, str)}
    return values | {key: values[other] for key, other in same.items()}


def trial(
    source: Source,
    algorithm: str,
    params: Mapping[str, float | str],
    *,
    set: Sets = None,
    data: str | os.PathLike[str] | None = None,
) -> float | None:
    """The metric of `[tune]` for given values of an algorithm, on the seeds of the search; `None` if a run diverged."""
    given, _ = _read(source, _sets(set))
    values = {str(key): value if isinstance(value, str) else float(value) for key, value in params.items()}
    return _lopa.trial(given, data, algorithm, values)


def _tune_unit(source: Any, sets: list[tuple[str, str]], data: str | None, task: str) -> str:
    """Does a unit of a search, on a worker."""
    given, _ = _read(source, sets)
    return _lopa.tune_unit(given, data, task)
