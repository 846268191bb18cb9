"""Executors of other packages, and how work is sent to them."""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ._errors import ConfigError

PAUSE = 0.05
"""Seconds between two looks at jobs that are not futures of the standard library."""


class Executor(Protocol):
    """Anything with the method `submit` of `concurrent.futures.Executor`."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Calls a function somewhere else; returns a future with `done`, `result` and `cancel`."""


Send = Callable[[Sequence[tuple[str, str]]], Iterator[tuple[int, str]]]


def shipped(source: Any) -> Any:
    """The experiment for workers, whose working folder may differ."""
    return os.path.abspath(source) if isinstance(source, str | os.PathLike) else source


def absolute(path: str | os.PathLike[str] | None) -> str | None:
    """The data folder for workers, whose working folder and environment may differ."""
    given = path if path is not None else os.environ.get("LOPA_DATA_DIR") or None
    return None if given is None else os.path.abspath(given)


def sender(executor: Executor | None, work: Callable[..., str], args: tuple[Any, ...]) -> Send | None:
    """Sends tasks to the workers of an executor; yields each task's number and result when it is done."""
    if executor is None:
        return None
    if not callable(getattr(executor, "submit", None)):
        message = f"an executor has the method `submit`, and {type(executor).__name__} has not"
        hint = "pass a `concurrent.futures.Executor`, `client.get_executor()` of Dask, or one of submitit"
        raise ConfigError("config/wrong-type", message, "executor", hint)

    def send(tasks: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str]]:
        futures = [executor.submit(work, *args, task) for task, _ in tasks]
        left = dict(enumerate(futures))
        try:
            for at in _completed(left):
                future = left.pop(at)
                try:
                    yield at, future.result()
                except Exception as error:
                    error.add_note(f"on a worker of the executor: {tasks[at][1]}")
                    raise
        finally:
            for future in left.values():
                getattr(future, "cancel", lambda: None)()

    return send


def _completed(futures: dict[int, Any]) -> Iterator[int]:
    """The numbers of futures, in the order in which they end."""
    if all(isinstance(future, concurrent.futures.Future) for future in futures.values()):
        number = {future: at for at, future in futures.items()}
        for future in concurrent.futures.as_completed(list(number)):
            yield number[future]
        return
    left = dict(futures)
    while left:
        ended = [at for at, future in left.items() if future.done()]
        for at in ended:
            del left[at]
            yield at
        if not ended:
            time.sleep(PAUSE)
