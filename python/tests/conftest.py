"""Shared by all tests: small experiments, a folder for runs, and a watchdog."""

from __future__ import annotations

import faulthandler
import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Small problems: on a busy machine, threads wait for each other most of the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Processes that tests start take from here what another has compiled.
COMPILED = tempfile.TemporaryDirectory()
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", COMPILED.name)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """A deadlock ends the tests with every thread's traceback."""
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a current folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOPA_RUNS_DIR", raising=False)
    return tmp_path


@pytest.fixture
def small() -> dict[str, Any]:
    """A quadratic problem that runs in milliseconds."""
    return {
        "name": "small",
        "problem": {"name": "quadratic", "n": 3, "p": 4},
        "network": {"nodes": 4, "graph": "ring"},
        "run": {"seeds": [1, 2], "iterations": 60, "evaluations": 3},
        "algorithm": [
            {"name": "lopa-gt", "alpha": 0.00001, "beta": 0.5, "lambda": 0.5},
            {"name": "lopa-lg", "alpha": 0.00001, "beta": 0.5, "lambda": 0.5},
        ],
    }


@pytest.fixture(params=["jax", "torch"])
def kit(request: pytest.FixtureRequest) -> Any:
    """Problems in a framework; where it is not installed, the test is skipped, and says so."""
    pytest.importorskip(request.param)
    return importlib.import_module({"jax": "problems", "torch": "torch_problems"}[request.param])


FILE = """
name = "file"
problem = { name = "python", file = "mine.py:problem" }
network = { nodes = 2, graph = "complete" }
run = { seeds = [1, 2], iterations = 60, evaluations = 2, batch = 4 }
tune = { seeds = [101], trials = 2, share = 0.2 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.05
beta = 0.2
lambda = 0.2
[[algorithm]]
name = "spdb"
alpha = 0.05
beta = 0.2
lambda = 0.2
"""


@pytest.fixture
def file(folder: Path, kit: Any) -> Path:
    """A problem in a file of its own, and an experiment that names it."""
    Path("mine.py").write_text(kit.FILE)
    Path("mine.toml").write_text(FILE)
    return folder
