"""Shared by all tests: small experiments, a folder for runs, and a watchdog."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


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
