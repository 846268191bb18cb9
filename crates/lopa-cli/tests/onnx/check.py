"""Compares exported models, as ONNX Runtime runs them, with `lopa predict`.  usage: check.py LOPA FOLDER"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy
import onnxruntime

lopa, work = sys.argv[1], Path(sys.argv[2])


def call(*args):
    subprocess.run([lopa, "--quiet", *args], cwd=work, check=True, stdout=subprocess.DEVNULL)


def write(path, classes):
    random = numpy.random.default_rng(5)
    labels = numpy.arange(150) % classes
    centres = random.normal(size=(classes, 4)) * 3
    rows = (centres[labels] + random.normal(size=(150, 4))) * [1, 10, 100, 0.1] + [0, 5, 1000, -2]
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["a", "b", "c", "d", "kind"])
        out.writerows([*row, f"kind {label}"] for row, label in zip(rows, labels))
    return rows


CASES = [
    ("name = 'representation'\nhidden = [6]", 3, "standardise"),
    ("name = 'representation'\nhidden = [6, 3]\nactivation = 'tanh'\nbias = false", 2, "standardise"),
    ("name = 'hyperparameter'\nstart = -3", 2, "standardise"),
    ("name = 'hyperparameter'\nstart = -3", 4, "unit"),
    ("name = 'meta-learning'\nnu = 10", 3, "centre"),
    ("name = 'hyper-cleaning'", 3, "standardise"),
    ("name = 'hyperparameter'\nstart = -3", 3, "log"),
    ("name = 'hyperparameter'\nstart = -3", 3, "tf-idf"),
]
for problem, classes, scaling in CASES:
    rows = write(work / "rows.csv", classes)
    (work / "e.toml").write_text(
        f"""name = "served"
data = {{ name = "csv", path = "rows.csv", scaling = "{scaling}" }}
network = {{ nodes = 3, graph = "ring" }}
run = {{ iterations = 40, batch = 10, evaluations = 1 }}
algorithm = [{{ name = "lopa-gt", alpha = 0.01, beta = 0.05, lambda = 0.05 }}]
[problem]
{problem}
"""
    )
    call("run", "e.toml", "--out", "runs", "--resume", "never")
    run = str(max((work / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns))
    call("predict", run, "--node", "1", "--input", "rows.csv", "--probabilities", "--out", "p.csv")
    call("export", run, "--to", "onnx", "--node", "1", "--out", "model.onnx")
    with open(work / "p.csv", newline="") as file:
        head, *said = list(csv.reader(file))
    session = onnxruntime.InferenceSession(work / "model.onnx")
    names = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    assert head == ["class", *names], (head, names)
    assert session.get_inputs()[0].shape == ["rows", 4]
    found, number = session.run(None, {"features": rows.astype(numpy.float32)})
    expected = numpy.array([[float(p) for p in line[1:]] for line in said])
    assert found.shape == expected.shape == (150, classes)
    off = numpy.abs(found - expected).max()
    assert off < 1e-4, (problem, off)
    # Where single precision decides, the classes are the same.
    top = numpy.sort(expected, axis=1)
    sure = top[:, -1] - top[:, -2] > 1e-3
    assert sure.any() and all(
        names[n] == line[0] for n, line, s in zip(number, said, sure) if s
    ), problem
print(f"ONNX Runtime {onnxruntime.__version__} says what lopa says, for {len(CASES)} models")
