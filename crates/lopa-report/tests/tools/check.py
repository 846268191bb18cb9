"""Compares exports, as their tools read them, with `metrics.jsonl`.  usage: check.py RUN FOLDER"""

import csv
import json
import os
import sys
from pathlib import Path

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

import numpy
import pyarrow.parquet
from mlflow.tracking import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

run, work = Path(sys.argv[1]), Path(sys.argv[2])
rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
rows = [{name: value for name, value in row.items() if name != "check"} for row in rows]
results = json.loads((run / "results.json").read_text())
stops = {(end["algorithm"], end["seed"]): end["stop"] for end in results}
expected = [{**row, "stop": stops[row["algorithm"], row["seed"]]} for row in rows]
names = {name for row in rows for name in row if row[name] is not None}
quantities = names - {"algorithm", "seed"}
assert "diverged" in stops.values() and len(set(stops.values())) > 1, stops


def is_of(row, algorithm, seed):
    return row["algorithm"] == algorithm and row["seed"] == seed


def series(algorithm, seed, name):
    own = [row for row in rows if is_of(row, algorithm, seed) and row.get(name) is not None]
    return [(row["iteration"], float(row[name])) for row in own]


# CSV, by Python's own reader: every number to the bit.
with open(work / "rows.csv", newline="") as file:
    read = list(csv.DictReader(file))
assert len(read) == len(expected)
for got, want in zip(read, expected):
    assert set(got) == names | {"stop"}, got
    for name, text in got.items():
        value = want.get(name)
        if name in ("algorithm", "stop"):
            assert text == value
        elif value is None:
            assert text == "", (name, text)
        else:
            assert float(text) == float(value), (name, text, value)

# Parquet: the same columns, typed.
file = pyarrow.parquet.ParquetFile(work / "rows.parquet")
table = file.read()
assert table.column_names == list(read[0]), table.column_names
assert file.schema_arrow.metadata[b"lopa.run"].decode() == run.name
assert str(table.schema.field("algorithm").type) == "string"
for name in ("seed", "iteration", "exchanges", "bytes"):
    assert str(table.schema.field(name).type) == "uint64", name
assert str(table.schema.field("loss").type) == "double"
for got, want in zip(table.to_pylist(), expected, strict=True):
    assert got == {name: want.get(name) for name in table.column_names}, (got, want)

# TensorBoard: one run per algorithm and seed, in single precision.
folders = {path.parent for path in (work / "board").rglob("events.out.tfevents.*")}
assert len(folders) == len(stops)
for (algorithm, seed), _ in stops.items():
    events = EventAccumulator(str(work / "board" / run.name / f"{algorithm}-seed{seed}")).Reload()
    tags = events.Tags()["scalars"]
    assert {tag.split("/")[1] for tag in tags} <= quantities
    assert "cost/bytes" in tags and "quality/loss" in tags, tags
    for tag in tags:
        got = [(event.step, event.value) for event in events.Scalars(tag)]
        want = series(algorithm, seed, tag.split("/")[1])
        largest = float(numpy.finfo(numpy.float32).max)
        want = [(step, float(numpy.float32(value))) for step, value in want if abs(value) <= largest]
        assert got == want, tag

# MLflow: one experiment; every run with its parameters, measurements and end.
client = MlflowClient(f"file://{work}/my mlruns".replace(" ", "%20"))
(experiment,) = client.search_experiments(filter_string="name = 'quadratic'")
found = client.search_runs([experiment.experiment_id])
assert len(found) == len(stops)
for one in found:
    seed, tags = int(one.data.params["seed"]), one.data.tags
    algorithm = tags["mlflow.runName"].removesuffix(f" seed {seed}")
    stop = stops[algorithm, seed]
    assert tags["lopa.folder"] == run.name and tags["lopa.stop"] == stop
    assert one.info.status == ("FAILED" if stop == "diverged" else "FINISHED"), one.info
    assert one.info.end_time >= one.info.start_time > 1.7e12
    assert one.data.params["problem.name"] == "quadratic"
    assert one.data.params["algorithm.name"] == algorithm and "algorithm.alpha" in one.data.params
    assert set(one.data.metrics) <= quantities and "loss" in one.data.metrics
    for name in one.data.metrics:
        history = client.get_metric_history(one.info.run_id, name)
        assert [(point.step, point.value) for point in history] == series(algorithm, seed, name)

print("pyarrow, TensorBoard and MLflow read the exports")
