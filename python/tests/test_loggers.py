"""Runs in MLflow, TensorBoard and pandas, read back with these."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lopa
from commands import command


@pytest.fixture
def run(small: dict[str, Any], folder: Path) -> lopa.Run:
    """Two algorithms on two seeds, one of which diverges."""
    return lopa.run(small, set={"algorithm.lopa-lg.alpha": 1e6, "run.iterations": 200})


@pytest.fixture
def classifier(folder: Path) -> lopa.Run:
    return lopa.run(
        {
            "name": "served",
            "problem": {"name": "hyperparameter", "start": -3.0},
            "data": {"name": "digits", "classes": [3, 8]},
            "network": {"nodes": 3, "graph": "ring"},
            "run": {"iterations": 30, "batch": 10, "evaluations": 1},
            "algorithm": [{"name": "lopa-gt", "alpha": 0.01, "beta": 0.05, "lambda": 0.05}],
        }
    )


def ends(run: lopa.Run) -> dict[tuple[str, int], str]:
    found = {(one.algorithm, one.seed): one.stop for one in run.results}
    assert "diverged" in found.values() and "finished" in found.values(), found
    return found


def series(run: lopa.Run, algorithm: str, seed: int, name: str) -> list[tuple[int, float]]:
    rows = [row for row in run.rows if (row["algorithm"], row["seed"]) == (algorithm, seed)]
    rows = [row for row in rows if row.get(name) is not None and math.isfinite(row[name])]
    return [(row["iteration"], float(row[name])) for row in rows]


def test_a_frame_has_every_row_and_how_it_ended(run: lopa.Run, folder: Path) -> None:
    frame, stops = run.frame(), ends(run)
    assert [*frame["stop"]] == [stops[row["algorithm"], row["seed"]] for row in run.rows]
    assert [*frame["iteration"]] == [row["iteration"] for row in run.rows]
    # The program's CSV has the same rows, to the bit.
    done = command("export", str(run.path), "--to", "csv", "--out", "rows.csv")
    assert done.returncode == 0, done.stderr
    with open("rows.csv", newline="") as file:
        read = list(csv.DictReader(file))
    assert len(read) == len(run.rows)
    for got, want in zip(read, run.rows, strict=True):
        for name, text in got.items():
            value = stops[want["algorithm"], want["seed"]] if name == "stop" else want.get(name)
            if isinstance(value, str):
                assert text == value
            elif value is None or not math.isfinite(value):
                assert text == "", (name, text)
            else:
                assert float(text) == float(value), (name, text, value)


def test_tensorboard_reads_what_was_measured(run: lopa.Run) -> None:
    pytest.importorskip("tensorboardX")
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for _ in range(2):  # again replaces
        folders = run.log_tensorboard("board")
    assert len(folders) == len(ends(run))
    for (algorithm, seed), place in zip(ends(run), folders, strict=True):
        assert place == Path("board") / run.path.name / f"{algorithm}-seed{seed}"
        events = reading.EventAccumulator(str(place)).Reload()
        tags = events.Tags()["scalars"]
        assert "cost/bytes" in tags and "quality/loss" in tags, tags
        for tag in tags:
            got = [(event.step, event.value) for event in events.Scalars(tag)]
            want = series(run, algorithm, seed, tag.split("/")[1])
            largest = float(np.finfo(np.float32).max)
            within = [(step, value) for step, value in want if abs(value) <= largest]
            assert [one for one in got if abs(one[1]) <= largest] == [
                (step, float(np.float32(value))) for step, value in within
            ], tag


def test_mlflow_reads_settings_measurements_and_ends(run: lopa.Run) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    pytest.importorskip("sqlalchemy")
    uri = f"sqlite:///{Path.cwd()}/mlflow.db"
    ids = run.log_mlflow(tracking_uri=uri)
    assert run.log_mlflow(tracking_uri=uri) == ids, "nothing is logged twice"
    client = tracking.MlflowClient(uri)
    (experiment,) = client.search_experiments(filter_string="name = 'small'")
    found = {one.info.run_id: one for one in client.search_runs([experiment.experiment_id])}
    assert set(found) == set(ids) and len(ids) == len(ends(run))
    for ((algorithm, seed), stop), logged in zip(ends(run).items(), ids, strict=True):
        one = found[logged]
        assert one.info.run_name == f"{algorithm} seed {seed}"
        assert one.info.status == ("FAILED" if stop == "diverged" else "FINISHED")
        assert one.info.end_time >= one.info.start_time > 1.7e12
        assert one.data.tags["lopa.stop"] == stop
        assert one.data.params["problem.name"] == "quadratic" and one.data.params["seed"] == str(seed)
        assert one.data.params["algorithm.name"] == algorithm and "algorithm.alpha" in one.data.params
        assert "loss" in one.data.metrics
        for name in one.data.metrics:
            history = client.get_metric_history(logged, name)
            assert [(point.step, point.value) for point in history] == series(run, algorithm, seed, name)
        files = {file.path for file in client.list_artifacts(logged)}
        assert {"resolved.toml", "model"} <= files
    # What diverged is no version of a registered model.
    names = {model.name for model in client.search_registered_models()}
    assert names == {"small-lopa-gt"}
    versions = client.search_model_versions("name = 'small-lopa-gt'")
    sound = {logged for stop, logged in zip(ends(run).values(), ids, strict=True) if stop != "diverged"}
    assert {version.run_id for version in versions} == sound


def test_a_registered_model_predicts_what_the_program_does(classifier: lopa.Run) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    uri = f"sqlite:///{Path.cwd()}/mlflow.db"
    (logged,) = classifier.log_mlflow(tracking_uri=uri, experiment="elsewhere", register="digits")
    mlflow.set_tracking_uri(uri)
    served = mlflow.pyfunc.load_model("models:/digits/1")
    rows = np.random.default_rng(3).uniform(0, 16, (5, 64)).round(2)
    for node in range(3):
        said = served.predict(rows, params={"node": str(node)})
        assert list(said.columns) == ["3", "8"] and np.allclose(said.sum(axis=1), 1)
        np.savetxt("rows.csv", rows, delimiter=",", header=",".join(f"p{i}" for i in range(64)), comments="")
        done = command(
            "predict", str(classifier.path), "--node", str(node), "--input", "rows.csv", "--probabilities", "--out", "p.csv"
        )
        assert done.returncode == 0, done.stderr
        with open("p.csv", newline="") as file:
            _, *lines = list(csv.reader(file))
        np.testing.assert_array_equal(said.to_numpy(), [[float(p) for p in line[1:]] for line in lines])
    with pytest.raises(lopa.ConfigError, match="no node"):
        served.predict(rows, params={"node": "7"})
    assert logged


@pytest.mark.parametrize(
    ("blocked", "call"),
    [
        (("pandas",), lambda run: run.frame()),
        (("mlflow",), lambda run: run.log_mlflow()),
        (("tensorboardX", "torch"), lambda run: run.log_tensorboard()),
    ],
)
def test_a_missing_library_is_named_with_its_remedy(
    blocked: tuple[str, ...], call: Any, run: lopa.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] in blocked]:
        monkeypatch.delitem(sys.modules, name)
    for name in blocked:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(lopa.ConfigError, match=f"needs the package {blocked[0]}.*\n.*pip install {blocked[0]}"):
        call(run)
