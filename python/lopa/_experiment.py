"""Experiments: checked, and run into a run folder."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _lopa
from ._arrays import Arrays
from ._errors import ConfigError, DivergedError, DivergenceWarning
from ._executor import Executor, absolute, sender, shipped
from ._json import dumps
from ._problem import Problem
from ._progress import teller
from ._results import Run

Source = str | os.PathLike[str] | Mapping[str, Any]
"""An experiment file, or the same as a dictionary."""

Sets = Mapping[str, Any] | Iterable[str] | None
"""Overrides: `{"run.batch": 20}`, or `["run.batch=20"]` as on the command line."""

_Input = tuple[str | None, str | None, list[tuple[str, str]]]
"""The path of a file, or the text of a dictionary; and overrides."""


def run(
    source: Source,
    *,
    set: Sets = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    resume: bool = True,
    executor: Executor | None = None,
    device: str | None = None,
    data: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str, dict[str, Any]], None] | None = None,
) -> Run:
    """Runs every algorithm of an experiment on every seed.

    source: an experiment file, or a dictionary with the same keys; its `problem` may be a
        `lopa.Problem`, its `data` (or the name there) a `lopa.Arrays`.
    set: overrides of values, such as `{"run.seeds": [1], "algorithm.*.beta": 0.1}`.
    out: the folder for run folders; by default `LOPA_RUNS_DIR`, or `runs`.
    threads: results do not depend on it; by default all cores, for a problem in Python one.
    resume: whether to continue an unfinished run of the same experiment, as the command line does.
    executor: does the runs, one per algorithm and seed, on its workers, which must see the folder `out`; the results
        are the same. Any object with the method `submit` of `concurrent.futures.Executor`.
    device: where the iterations are computed, in place of the experiment's `run.device`: `cpu`; `framework`, which is
        JAX or PyTorch with the arrays of a problem in Python; or `cuda` for a built-in problem, where lopa has it.
    data: the folder with the data sets; by default `LOPA_DATA_DIR`, or `data`.
    progress: whether to show it; by default in terminals and notebooks. Or a function that is
        called with an event (`begin`, `progress`, `end`, …) and its values.

    `DivergedError` is raised if every run diverged; if some did, there is a `DivergenceWarning`.
    """
    sets, send = _sets(set), None
    given, problem = _read(source, sets)
    threads = _workers(threads, problem)
    out = Path(out if out is not None else os.environ.get("LOPA_RUNS_DIR") or "runs")
    if device is not None:
        sets.append(("run.device", dumps(device, "device")))
    if executor is not None:
        if not resume:
            message = "runs on an executor resume, and `resume` is False"
            raise ConfigError("config/no-meaning", message, "resume", "choose another folder with `out`")
        data = absolute(data)
        shared = os.path.abspath(_lopa.parts(given, out))
        send = sender(executor, _run_unit, (shipped(source), sets, shared, threads, data))
    with teller(progress) as tell:
        folder = _lopa.run(given, out, threads, bool(resume), data, send, tell)
    run = Run.load(folder, problem)
    _tell_diverged(run)
    return run


def _run_unit(
    source: Any, sets: list[tuple[str, str]], folder: str, threads: int, data: str | None, task: str
) -> str:
    """Does one run, on a worker."""
    given, _ = _read(source, sets)
    return _lopa.run_unit(given, folder, threads, data, task)


def _tell_diverged(run: Run) -> None:
    """Raises if no run survived, and warns if some did not."""
    lost = [result for result in run.results if result.stop == "diverged"]
    if not lost:
        return
    names = ", ".join(f"{result.algorithm} with seed {result.seed}" for result in lost[:5])
    names += ", …" if len(lost) > 5 else ""
    why = f": {lost[0].diagnosis}" if lost[0].diagnosis else ""
    if len(lost) < len(run.results):
        message = f"{len(lost)} of {len(run.results)} runs diverged and mean nothing ({names}){why}"
        warnings.warn(message, DivergenceWarning, stacklevel=3)
        return
    error = DivergedError(
        "run/diverged",
        f"every run diverged ({names}){why}",
        str(run.path),
        "choose smaller step sizes; what was measured is in the exception's `run`",
    )
    error.run = run
    raise error


def check(source: Source, *, set: Sets = None) -> dict[str, Any]:
    """Checks an experiment; returns it with every default filled in."""
    given, _ = _read(source, _sets(set))
    checked: dict[str, Any] = json.loads(_lopa.check(given))
    return checked


def schema() -> dict[str, Any]:
    """The JSON Schema of experiments."""
    found: dict[str, Any] = json.loads(_lopa.schema())
    return found


def _read(source: Source, sets: list[tuple[str, str]]) -> tuple[_Input, Problem | None]:
    """The file or dictionary with overrides, and the dictionary's problem."""
    if isinstance(source, str | os.PathLike):
        return (os.fspath(source), None, sets), None
    if not isinstance(source, Mapping):
        message = f"an experiment is a file or a dictionary, not of type {type(source).__name__}"
        raise ConfigError("config/wrong-type", message, "source")
    source = _with_arrays(source)
    problem = source.get("problem")
    if isinstance(problem, Problem):
        network = source.get("network")
        if isinstance(network, Mapping) and "nodes" not in network:
            source = {**source, "network": {"nodes": len(problem.nodes), **network}}
        return (None, dumps({**source, "problem": problem.reference()}), sets), problem
    return (None, dumps(dict(source)), sets), None


def _with_arrays(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """The experiment with arrays by reference; groups become nodes unless it says otherwise."""
    data = source.get("data")
    arrays = data.get("name") if isinstance(data, Mapping) else data
    if not isinstance(arrays, Arrays):
        return source
    more = data if isinstance(data, Mapping) else {}
    source = {**source, "data": {**more, **arrays.reference()}}
    if arrays.groups:
        source = {"partition": "group", **source}
        network = source.get("network")
        if isinstance(network, Mapping) and "nodes" not in network:
            source["network"] = {"nodes": len(arrays.groups), **network}
    return source


def _sets(sets: Sets) -> list[tuple[str, str]]:
    if sets is None:
        return []
    if isinstance(sets, Mapping):
        return [(str(key), dumps(value, str(key))) for key, value in sets.items()]
    if isinstance(sets, str):
        sets = [sets]
    pairs = []
    for one in sets:
        key, equals, value = str(one).partition("=")
        if not equals:
            message = "an override needs a `=`"
            raise ConfigError("config/bad-override", message, f"set: {one}", 'for example "run.batch=20"')
        pairs.append((key, _typed(value)))
    return pairs


def _typed(value: str) -> str:
    """A value as the command line types it: TOML, or else a string."""
    import tomllib

    try:
        return dumps(tomllib.loads(f"value = {value}")["value"])
    except tomllib.TOMLDecodeError:
        return json.dumps(value)


def _workers(threads: int | None, problem: Problem | None) -> int:
    """The number of threads given, or the usual one."""
    if threads is None:
        threads = _threads(1 if problem is not None else os.cpu_count() or 1)
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= 1024:
        message = f"cannot run on {threads!r} threads"
        raise ConfigError("config/out-of-range", message, "threads", "choose 1 to 1024")
    return threads


def _threads(usual: int) -> int:
    given = os.environ.get("LOPA_THREADS", "")
    return int(given) if given.isdigit() else usual
