"""A case exported by `cargo bench --bench iteration -- export`."""

import json
import pathlib

import numpy as np


class Case:
    """Arrays: features (rows, cols), labels (rows), row numbers train and validation (m, samples),
    mixing (m, m), start (n); in the small case also x, theta, v after some iterations."""

    def __init__(self, folder, dtype):
        folder = pathlib.Path(folder)
        about = json.loads((folder / "about.json").read_text())
        self.__dict__.update(about)
        self.dtype = dtype
        read = lambda name, of: np.fromfile(folder / name, of)
        self.features = read("features", "<f4").reshape(-1, self.cols).astype(dtype)
        self.labels = read("labels", "<u4").astype(np.int32)
        self.train = read("train", "<u4").astype(np.int32).reshape(self.nodes, -1)
        self.validation = read("validation", "<u4").astype(np.int32).reshape(self.nodes, -1)
        self.mixing = read("mixing", "<f8").reshape(self.nodes, self.nodes).astype(dtype)
        self.start = read("start", "<f8").astype(dtype)
        self.outcome = {
            name: read(name, "<f8").reshape(self.nodes, -1)
            for name in ("x", "theta", "v")
            if (folder / name).exists()
        }
        self.columns = 1 if self.classes == 2 and self.problem == "hyperparameter" else self.classes

    def full(self):
        """The five batches of an iteration, each with all samples."""
        return [self.train, self.train, self.train, self.validation, self.validation]

    def batches(self, random):
        """Five independent minibatches of row numbers, (m, batch) each: three for g, two for f."""
        draws = []
        for rows in self.full():
            at = random.integers(0, rows.shape[1], (self.nodes, self.batch))
            draws.append(np.take_along_axis(rows, at, 1))
        return draws
