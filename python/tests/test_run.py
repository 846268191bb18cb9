"""Experiments from files and dictionaries, and their results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import lopa
import numpy as np
import pytest

FILE = """
name = "small"
problem = { name = "quadratic", n = 3, p = 4 }
network = { nodes = 4, graph = "ring" }
run = { seeds = [1, 2], iterations = 60, evaluations = 3 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.00001
beta = 0.5
lambda = 0.5
[[algorithm]]
name = "lopa-lg"
alpha = 0.00001
beta = 0.5
lambda = 0.5
"""


def command(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lopa", *args], capture_output=True, text=True, **more)


def test_a_file_and_a_dictionary_are_the_same_experiment(folder: Path, small: dict[str, Any]) -> None:
    Path("small.toml").write_text(FILE)
    by_file, by_dictionary = lopa.run("small.toml", out="a"), lopa.run(small, out="b")
    assert by_file.digest == by_dictionary.digest
    assert by_file.experiment == by_dictionary.experiment
    assert by_file.path.name == by_dictionary.path.name


def test_the_command_line_has_the_same_digest_and_folders(folder: Path) -> None:
    Path("small.toml").write_text(FILE)
    done = command("run", "small.toml", "--out", "by-command")
    assert done.returncode == 0, done.stderr
    run = lopa.run("small.toml", out="here")
    assert f"trajectory digest {run.digest}" in done.stderr
    theirs = lopa.Run.load(next(Path("by-command").iterdir()))
    assert [result.digest for result in theirs.results] == [result.digest for result in run.results]
    listed = command("ls", "here", "--format", "json")
    assert run.path.name in listed.stdout
    report = command("report", str(run.path), "--out", "report.html")
    assert report.returncode == 0, report.stderr


def test_what_a_run_has(small: dict[str, Any], folder: Path) -> None:
    run = lopa.run(small, set={"run.seeds": [7]})
    assert run.status == "done" and run.path.parent == Path("runs")
    assert run.algorithms == ["lopa-gt", "lopa-lg"]
    assert [(result.algorithm, result.seed) for result in run.results] == [("lopa-gt", 7), ("lopa-lg", 7)]
    assert run.results[0].values["iteration"] == 60 and run.results[0].diagnosis is None
    text = str(run.table())
    assert "lopa-gt" in text and "loss" in text, text
    assert "<table>" in run._repr_html_() and "<svg" in run._repr_html_()
    assert run.report("out.html").read_text().startswith("<!doctype html>")
    model = run.models["lopa-gt"][3]
    assert model.x.shape == (3,) and model.theta.shape == (4,) and model.node == 3
    assert len(run.models) == 2 and len(run.models["lopa-lg"]) == 4
    np.testing.assert_array_equal(run.models["lopa-gt"][-1].theta, model.theta)
    frame = run.frame()
    assert list(frame.columns[:3]) == ["algorithm", "seed", "iteration"]
    assert len(frame) == len(run.rows) and frame["loss"].notna().all()


def test_a_spread_over_seeds(small: dict[str, Any]) -> None:
    assert "±" in str(lopa.run(small).table())


def test_overrides_as_on_the_command_line(small: dict[str, Any]) -> None:
    checked = lopa.check(small, set=["run.batch=20", 'network.graph="complete"', "algorithm.*.beta=0.25"])
    assert checked["run"]["batch"] == 20 and checked["network"]["graph"]["name"] == "complete"
    assert [algorithm["beta"] for algorithm in checked["algorithm"]] == [0.25, 0.25]
    with_numpy = lopa.check(small, set={"run.seeds": np.arange(3), "algorithm.lopa-gt.alpha": np.float64(0.5)})
    assert with_numpy["run"]["seeds"] == [0, 1, 2] and with_numpy["algorithm"][0]["alpha"] == 0.5


def test_none_leaves_a_key_out(small: dict[str, Any]) -> None:
    small["checkpoint"] = None
    assert lopa.check(small)["name"] == "small"


def test_threads_do_not_change_results(small: dict[str, Any]) -> None:
    digests = {lopa.run(small, threads=threads, out=f"on-{threads}").digest for threads in (1, 2, 3)}
    assert len(digests) == 1


def test_progress_is_told(small: dict[str, Any]) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    lopa.run(small, progress=lambda event, values: events.append((event, values)))
    assert events[0] == ("started", {"runs": 4, "name": "small"})
    assert sum(event == "begin" for event, _ in events) == 4
    assert events[-1][0] == "end"


def test_progress_on_a_terminal_is_one_line(small: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    lopa.run(small, progress=True)
    shown = capsys.readouterr().err
    assert "[4/4] lopa-lg, seed 2" in shown and "\n" not in shown


def test_an_exception_in_the_progress_function_stops_the_run(small: dict[str, Any]) -> None:
    def tell(event: str, values: dict[str, Any]) -> None:
        if event == "begin" and values["algorithm"] == "lopa-lg":
            raise ZeroDivisionError("told you")

    with pytest.raises(ZeroDivisionError, match="told you"):
        lopa.run(small, progress=tell)
    run = lopa.Run.load(next(Path("runs").iterdir()))
    assert run.status == "interrupted" and run.results[0].stop == "finished"
    resumed = lopa.run(small)
    assert resumed.path == run.path and resumed.status == "done"
    assert resumed.digest == lopa.run(small, out="whole").digest


# A process that a shell starts in the background ignores Ctrl-C, and so would this one.
LONG = """
import lopa, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
lopa.run({
    "name": "long", "problem": {"name": "quadratic", "n": 3, "p": 4},
    "network": {"nodes": 4, "graph": "ring"}, "run": {"iterations": 100_000_000},
    "algorithm": [{"name": "lopa-gt", "alpha": 0.00001, "beta": 0.5, "lambda": 0.5}],
}, progress=lambda event, values: print(event, flush=True))
"""


def test_ctrl_c_leaves_a_checkpoint(folder: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    told = iter(child.stdout.readline, "")
    assert any("progress" in line for line in told), "it ended before it could be stopped"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode != 0 and "KeyboardInterrupt" in said, said
    (run,) = Path("runs").iterdir()
    assert lopa.Run.load(run).status == "interrupted"
    assert list((run / "checkpoints").iterdir())


def test_ctrl_c_of_the_command_line(folder: Path) -> None:
    Path("small.toml").write_text(FILE)
    args = [sys.executable, "-m", "lopa", "run", "small.toml", "--set", "run.iterations=100000000"]
    child = subprocess.Popen(args, stderr=subprocess.PIPE, text=True)
    while not list(Path(".").glob("runs/*/metrics.jsonl")):
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130 and "run the same command to resume" in said, said


def test_other_threads_run_meanwhile(small: dict[str, Any]) -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    lopa.run(small, set={"run.iterations": 30000}, progress=False)
    done.set()
    thread.join()
    assert counted > 3


def test_two_runs_at_once(small: dict[str, Any]) -> None:
    digests: list[str] = []

    def one(out: str) -> None:
        digests.append(lopa.run(small, out=out, progress=False).digest)

    threads = [threading.Thread(target=one, args=(f"out-{at}",)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 3 and len(set(digests)) == 1


def test_importing_is_light() -> None:
    code = "import sys, lopa; print([m for m in ('numpy', 'jax', 'torch', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_schema_knows_python_problems() -> None:
    assert "mine.py:problem" in json.dumps(lopa.schema())


WILD = {"name": "lopa-lg", "label": "wild", "alpha": 1e3, "beta": 1e3, "lambda": 1e3}


def test_divergence_is_not_passed_over_in_silence(folder: Path, small: dict[str, Any]) -> None:
    tame = small["algorithm"][0]
    with pytest.warns(lopa.DivergenceWarning, match="2 of 4 runs diverged") as told:
        run = lopa.run({**small, "algorithm": [tame, WILD]})
    assert told[0].filename == __file__
    assert {result.stop for result in run.results if result.algorithm == "wild"} == {"diverged"}
    with pytest.raises(lopa.DivergedError, match="every run diverged") as raised:
        lopa.run({**small, "algorithm": [WILD]})
    assert isinstance(raised.value, lopa.RunError) and raised.value.id == "run/diverged"
    assert [result.stop for result in raised.value.run.results] == ["diverged"] * 2
