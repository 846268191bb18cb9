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


PROBLEM = """
import pathlib
pathlib.Path("ran").touch()
import jax.numpy as jnp, numpy as np, lopa

def outer(x, theta, batch):
    return jnp.mean((batch @ theta - 1.0) ** 2)

def inner(x, theta, batch):
    return jnp.mean((batch @ theta - x[0]) ** 2) + 0.1 * jnp.sum(theta**2)

rows = np.random.default_rng(1).normal(size=(8, 2))
problem = lopa.Problem(outer, inner, nodes=[lopa.Node(inner=rows)] * 2, x=np.zeros(1), theta=np.zeros(2))
"""

FILE = """
name = "code"
problem = { name = "python", file = "mine.py:problem" }
network = { nodes = 2, graph = "complete" }
run = { iterations = 5, evaluations = 2 }
algorithm = [{ name = "lopa-gt", alpha = 0.01, beta = 0.1, lambda = 0.1 }]
"""


def test_code_that_a_file_or_a_run_folder_names_runs_only_when_asked(folder: Path) -> None:
    pytest.importorskip("jax")
    (folder / "mine.py").write_text(PROBLEM)
    (folder / "e.toml").write_text(FILE)

    def call(*args: str) -> tuple[int, str, bool]:
        (folder / "ran").unlink(missing_ok=True)
        done = subprocess.run([sys.executable, "-m", "lopa", *args], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr, (folder / "ran").exists()

    code, said, ran = call("check", "e.toml")
    assert (code, ran) == (0, False) and "--run-code" in said, said
    code, said, ran = call("run", "e.toml", "--dry-run")
    assert (code, ran) == (2, False) and "mine.py:problem" in said and "--run-code" in said, said
    for args in (["check", "e.toml"], ["run", "e.toml", "--dry-run"]):
        code, said, ran = call(*args, "--run-code")
        assert (code, ran) == (0, True), said
    code, said, ran = call("run", "e.toml")
    assert (code, ran) == (0, True), said
    run = str(next((folder / "runs").iterdir()))
    model = str(next(Path(run).glob("models/*")))
    code, said, ran = call("evaluate", run)
    assert (code, ran) == (2, False) and "--run-code" in said, said
    code, said, ran = call("compare", run)
    assert (code, ran) == (0, False), said
    # Whatever they answer about a problem that predicts nothing, they run no code.
    (folder / "new.csv").write_text("1,2\n3,4\n")
    looks = [["report", run], ["ls"], ["export", run, "--to", "csv"], ["predict", run, "-i", "new.csv", "-n", "0"]]
    looks += [["predict", model, "-i", "new.csv", "-n", "0"], ["adapt", run, "-i", "new.csv"], ["graph", "check", "e.toml"]]
    looks += [["export", run, "--to", "onnx", "-n", "0"]]
    for args in looks:
        code, said, ran = call(*args)
        assert not ran and "Traceback" not in said, said
    code, said, ran = call("evaluate", run, "--run-code")
    assert (code, ran) == (0, True), said


DAEMON = """
import sys, threading, lopa

begun = threading.Event()
experiment = {
    "problem": {"name": "quadratic", "n": 3, "p": 4},
    "network": {"nodes": 4, "graph": "ring"},
    "run": {"seeds": list(range(1, 40)), "iterations": int(sys.argv[2]), "evaluations": 5},
    "algorithm": [{"name": "lopa-gt", "alpha": 0.00001, "beta": 0.5, "lambda": 0.5}],
}

def progress(event, values):
    if event == sys.argv[1]:
        begun.set()

threading.Thread(target=lambda: lopa.run(experiment, progress=progress), daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize(("event", "iterations"), [("end", "500"), ("progress", "100000000")])
def test_a_run_in_a_daemon_thread_ends_with_python_without_a_word(folder: Path, event: str, iterations: str) -> None:
    for _ in range(5):
        program = [sys.executable, "-c", DAEMON, event, iterations]
        done = subprocess.run(program, capture_output=True, text=True, timeout=200)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
