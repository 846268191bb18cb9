"""Problems from two functions, in JAX and in PyTorch."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import lopa
import numpy as np
import pytest
from commands import as_peers, command
from experiments import STEPS, built_in, experiment, interrupted, rows_of, small_steps, start_of


@pytest.mark.parametrize("batch", [None, 8], ids=["full batches", "minibatches"])
def test_the_trajectory_of_the_built_in_problem(folder: Path, batch: int | None, kit: Any) -> None:
    run = {} if batch is None else {"batch": batch}
    file = built_in(folder, **run)
    theirs = lopa.run(file)
    problem = kit.representation(rows_of(theirs), start_of(file), metrics={"accuracy": kit.accuracy})
    ours = lopa.run({**{k: file[k] for k in ("network", "run", "algorithm")}, "problem": problem})
    for name in ("x", "theta"):
        want, found = getattr(theirs.models["lopa-gt"], name), getattr(ours.models["lopa-gt"], name)
        assert np.abs(want - found).max() < 1e-9 * max(1.0, np.abs(want).max()), name
    a, b = theirs.results[0].values, ours.results[0].values
    for name in ("loss", "phi", "grad_phi_sq", "consensus", "hessians", "samples", "bytes", "gradients"):
        assert a[name] == pytest.approx(b[name], rel=1e-6, abs=1e-12), name
    assert b["accuracy"] == pytest.approx(a["train_accuracy"])
    model = ours.models["lopa-gt"][2]
    assert model.theta["V"].shape == (4, 3) and model.x["b"].shape == (4,)
    assert ours.manifest["computed_by"].startswith(problem._computed_by().split()[0])


def test_every_algorithm_runs_like_the_built_in_problem(folder: Path, kit: Any) -> None:
    file = built_in(folder, batch=8)
    theirs = lopa.run(file)
    problem = kit.representation(rows_of(theirs), start_of(file))
    names = [entry.name for entry in lopa.algorithms() if "personal" in entry.scopes]
    from_file = lopa.check({**file, "algorithm": [{"name": "lopa-gt", **STEPS}]})
    assert from_file["scope"] == "personal"
    for name in names:
        algorithm = [{"name": name, **small_steps(file, name)}]
        short = {**file, "name": name, "algorithm": algorithm, "run": {**file["run"], "iterations": 12}}
        want = lopa.run(short, out="theirs")
        short.pop("data")
        found = lopa.run({**short, "problem": problem}, out="ours")
        assert want.results[0].stop == found.results[0].stop, name
        for key in ("x", "theta"):
            a, b = getattr(want.models[name], key), getattr(found.models[name], key)
            assert np.abs(a - b).max() < 1e-8 * max(1.0, np.abs(a).max()), (name, key)
        counts = ("gradients", "hessians", "jacobians", "samples")
        for cost in counts:
            assert want.results[0].values[cost] == found.results[0].values[cost], (name, cost)


def test_a_global_inner_problem(folder: Path, kit: Any) -> None:
    problem = kit.ridge()
    run = lopa.run(experiment(problem, scope="global", algorithm=[{"name": "ma-dsbo", **_global()}]))
    assert run.results[0].stop == "finished", run.results[0]
    assert "theta_consensus" in run.results[0].values


def _global() -> dict[str, float]:
    return {"alpha": 0.05, "beta": 0.1, "lambda": 0.1}


def test_nodes_of_different_sizes(folder: Path, kit: Any) -> None:
    """Full batches of different lengths: nodes with equal lengths are computed together."""
    ragged = kit.ridge(sizes=[7, 12, 7])
    run = lopa.run(experiment(ragged, run={"iterations": 400}))
    rows = run.rows
    assert rows[-1]["theta_error"] < rows[1]["theta_error"] < rows[0]["theta_error"]
    assert rows[-1]["samples"] == pytest.approx(401 * 5 * 26 / 3)
    minibatches = lopa.run(experiment(ragged, name="mini", run={"batch": 3}))
    assert minibatches.results[0].values["samples"] == pytest.approx(40 * 15 + 15, abs=15)


def test_single_precision_is_close_to_double(kit: Any) -> None:
    losses = [
        lopa.run(experiment(kit.ridge(), name=of, run={"precision": of})).results[0].values["loss"]
        for of in ("f32", "f64")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_the_same_problem_is_the_same_experiment(kit: Any) -> None:
    first, second = kit.ridge(), kit.ridge()
    assert first.digest == second.digest
    assert lopa.run(experiment(first), out="a").digest == lopa.run(experiment(second), out="b").digest
    assert kit.ridge(sizes=13).digest != first.digest


def test_an_interrupted_run_resumes_to_the_same_digest(kit: Any) -> None:
    def make(iterations: int) -> dict[str, Any]:
        return experiment(kit.ridge(), run={"iterations": iterations, "batch": 4}, checkpoint={"iterations": 10})

    whole = interrupted(make, "parts")
    run = lopa.run(whole, out="parts")
    want = lopa.run(whole, out="whole").digest
    assert run.digest == want and run.status == "done"
    assert len(list(Path("parts").iterdir())) == 1


def test_a_file_runs_everywhere(file: Path) -> None:
    run = lopa.run("mine.toml")
    done = command("run", "mine.toml", "--out", "by-command")
    assert f"trajectory digest {run.digest}" in done.stderr
    command("check", "mine.toml")
    command("tune", "mine.toml")
    command("compare", "mine.toml")
    command("report", str(run.path))
    assert lopa.Run.load(run.path).digest == run.digest


def test_a_changed_file_is_another_experiment(file: Path, kit: Any) -> None:
    first = lopa.run("mine.toml")
    Path("mine.py").write_text(kit.FILE.replace("exp(x[0]) / 2", "exp(x[0]) / 3"))
    second = lopa.run("mine.toml")
    assert first.path != second.path and first.digest != second.digest
    resolved = str(first.path / "resolved.toml")
    with pytest.raises(lopa.ConfigError, match="has changed since"):
        lopa.run(resolved)


def test_two_peers(file: Path) -> None:
    want = [result.digest for result in lopa.run("mine.toml", out="one").results]
    assert as_peers("mine.toml", ["alice", "bob"]) == [want, want]


def test_a_problem_of_another_process_is_not_here(file: Path, kit: Any) -> None:
    run = lopa.run(experiment(kit.ridge()))
    done = command("evaluate", str(run.path), "--run-code", fails=True)
    assert done.returncode == 2 and "made by another Python process" in done.stderr, done.stderr


def test_exceptions_come_back_as_they_were(folder: Path, kit: Any) -> None:
    calls = 0

    def moody(x: Any, theta: Any, batch: Any) -> float:
        nonlocal calls
        calls += 1
        if calls > 4:
            raise ArithmeticError("no more")
        return 1.0

    with pytest.raises(ArithmeticError, match="no more") as caught:
        lopa.run(experiment(kit.ridge(metrics={"moody": moody})))
    assert any(frame.name == "moody" for frame in caught.traceback)
    run = lopa.Run.load(next(Path("runs").iterdir()))
    assert run.status == "failed" and run.rows[0]["moody"] == 1.0


def test_python_is_asked_once_per_iteration(kit: Any) -> None:
    problem = kit.ridge()
    calls = {"together": 0, "one": 0}
    threads = set()
    made = problem._backend.Parts

    class Counted(made):  # type: ignore[misc, valid-type]
        def together(self, *args: Any) -> Any:
            calls["together"] += 1
            threads.add(threading.get_ident())
            return super().together(*args)

        def one(self, *args: Any) -> Any:
            calls["one"] += 1
            threads.add(threading.get_ident())
            return super().one(*args)

    problem._backend = type("Backend", (), {"Parts": Counted, "computed_by": staticmethod(lambda: "test")})
    lopa.run(experiment(problem, run={"iterations": 50, "evaluations": 1, "exact": "never"}), threads=4)
    assert calls["together"] == 50
    assert threads == {threading.get_ident()}, "never from worker threads"
    assert calls["one"] <= 5 * 3, "five derivatives of each node, at the start"
