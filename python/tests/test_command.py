"""The command line of the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import lopa
import pytest


def both() -> list[list[str]]:
    script = Path(sys.executable).parent / "lopa"
    assert script.exists() or shutil.which("lopa"), "the wheel installs a script"
    return [[sys.executable, "-m", "lopa"], [str(script)]]


@pytest.mark.parametrize("program", both(), ids=["module", "script"])
def test_it_is_the_program(program: list[str]) -> None:
    def call(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*program, *args], capture_output=True, text=True)

    assert call("--version").stdout.split() == ["lopa", lopa.__version__]
    assert call("list", "problems").stdout.count("python") >= 1
    wrong = call("run", "nowhere.toml")
    assert wrong.returncode == 2 and "cannot read the experiment" in wrong.stderr
    typo = call("rnu")
    assert typo.returncode == 2 and "'run'" in typo.stderr
    assert call("graph", "check", "ring", "-m", "5").returncode == 0
