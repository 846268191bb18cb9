"""Problems of Python in processes that `mpirun` starts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import lopa
import pytest
from commands import command

# Short, and in double precision.
SETS = {"run.iterations": 30, "run.precision": "f64"}


def across(*args: str) -> subprocess.CompletedProcess[str]:
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    sets = [word for key, value in SETS.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    program = [sys.executable, "-m", "lopa", "run", "mine.toml", "--engine", "mpi", "--format", "json", *sets, *args]
    return subprocess.run([*mpirun, *program], capture_output=True, text=True, timeout=250)


def has_mpi() -> bool:
    """Whether this build has it."""
    done = command("run", "no.toml", "--engine", "mpi", fails=True)
    return "this build has no `lopa run --engine mpi`" not in done.stderr


def test_two_processes(file: Path) -> None:
    if shutil.which("mpirun") is None or not has_mpi():
        pytest.skip("MPI is not there, or not in this build")
    want = [result.digest for result in lopa.run("mine.toml", set=SETS, out="one").results]
    done = across("--out", "two")
    assert done.returncode == 0, done.stderr
    assert [result["digest"] for result in json.loads(done.stdout)] == want


def test_an_exception_ends_all_processes(file: Path) -> None:
    if shutil.which("mpirun") is None or not has_mpi():
        pytest.skip("MPI is not there, or not in this build")
    text = Path("mine.py").read_text()
    # Node 1 has data of its own, and the second process is the only one that loads them.
    Path("mine.py").write_text(text.replace("    def load():\n", "    def load():\n        1 / (1 - i)\n"))
    done = across()
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr, done.stderr


def test_a_build_without_it_says_what_is_missing() -> None:
    if has_mpi():
        pytest.skip("this build has MPI")
    done = command("run", "no.toml", "--engine", "mpi", fails=True)
    assert done.returncode == 2
    assert "MATURIN_PEP517_ARGS='--features full,mpi' pip install ./python" in done.stderr
