"""Finds the problem that an experiment names: in a file, or among those made in this process."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

from ._errors import ConfigError
from ._problem import Problem, known


def find(file: str | None, digest: str | None) -> tuple[Problem, str]:
    """The problem and its digest."""
    if file is None:
        return _made_here(digest)
    problem = load(file)
    found = problem.digest
    if digest is not None and digest != found:
        message = f"the problem in {file} has changed since: its functions, start or data differ"
        hint = "put the old ones back, or start a run of its own"
        raise ConfigError("problem/changed", message, "problem.digest", hint)
    return problem, found


def load(file: str) -> Problem:
    """The problem `mine.py:problem`."""
    path, colon, name = file.rpartition(":")
    if not colon or not name.isidentifier():
        message = f'`file = "{file}"` must name a file and a problem in it'
        raise ConfigError("problem/file", message, "problem.file", 'for example "mine.py:problem"')
    if not os.path.isfile(path):
        message = f"there is no file {path}"
        hint = f"paths are relative to the current folder, {os.getcwd()}"
        raise ConfigError("problem/file", message, "problem.file", hint)
    module = _module(os.path.abspath(path))
    if not hasattr(module, name):
        message = f"{path} has no `{name}`"
        raise ConfigError("problem/file", message, "problem.file", "name a variable of the file")
    found = getattr(module, name)
    problem = found() if callable(found) and not isinstance(found, Problem) else found
    if not isinstance(problem, Problem):
        message = f"`{name}` in {path} is of type {type(problem).__name__}"
        hint = "make it a lopa.Problem, or a function that returns one"
        raise ConfigError("problem/file", message, "problem.file", hint)
    return problem


_modules: dict[tuple[str, int], Any] = {}


def _module(path: str) -> Any:
    """The file as a module, read again if it has changed."""
    key = (path, os.stat(path).st_mtime_ns)
    if key not in _modules:
        name = "lopa_file_" + os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ConfigError("problem/file", f"{path} is not a Python file", "problem.file")
        module = importlib.util.module_from_spec(spec)
        folder = os.path.dirname(path)
        if folder not in sys.path:
            sys.path.append(folder)  # for the files beside it
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        _modules[key] = module
    return _modules[key]


def _made_here(digest: str | None) -> tuple[Problem, str]:
    if digest is None:
        message = "which problem? `file` is missing"
        raise ConfigError("config/missing-key", message, "problem", 'for example file = "mine.py:problem"')
    problem = known.get(digest)
    if problem is None:
        message = "this problem was made by another Python process, and is not here"
        hint = 'make it again first, or put it into a file and name that: file = "mine.py:problem"'
        raise ConfigError("problem/not-here", message, "problem.digest", hint)
    return problem, digest
