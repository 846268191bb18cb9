"""The results of a run: outcomes, measurements, models."""

from __future__ import annotations

import hashlib
import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _lopa, _loggers
from ._costs import COSTS
from ._errors import ConfigError

if TYPE_CHECKING:
    import pandas

    from ._problem import Problem

@dataclass(frozen=True)
class Result:
    """How one algorithm ended on one seed."""

    algorithm: str
    seed: int
    digest: str
    """SHA-256 of every variable at every measurement, to the bit."""
    stop: str
    """How it ended: `finished`, `budget`, `target`, `diverged`, `interrupted`."""
    values: dict[str, float]
    """The last measurement: costs and measures by name."""
    diagnosis: str | None
    """Why it diverged, if it did."""
    nodes: list[dict[str, float | None]]
    """The problem's metrics of every node, at the end."""


@dataclass(frozen=True)
class Model:
    """x and theta of a node: flat arrays, or for a problem in Python, trees of its own shape."""

    node: int
    x: Any
    theta: Any


class Models(Sequence[Model]):
    """The models of all nodes."""

    def __init__(self, x: Any, theta: Any, about: dict[str, Any], problem: Problem | None) -> None:
        self.x = x
        """A row of x for each node."""
        self.theta = theta
        """A row of theta for each node."""
        self.about = about
        """The algorithm, the seed, the problem with its parameters, the classes."""
        self._problem = problem

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, node: Any) -> Any:
        if isinstance(node, slice):
            return [self[at] for at in range(*node.indices(len(self)))]
        if not -len(self) <= node < len(self):
            raise IndexError(f"there is no node {node}: the run has nodes 0 to {len(self) - 1}")
        at = node % len(self)
        x, theta = self.x[at], self.theta[at]
        if self._problem is not None:
            x, theta = self._problem.shaped(x, theta)
        return Model(at, x, theta)


class Table:
    """A table as text, or as HTML in notebooks."""

    def __init__(self, head: list[str], rows: list[list[str]]) -> None:
        self.head = head
        self.rows = rows

    def __str__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.head))]

        def text(line: list[str]) -> str:
            cells = [line[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
            return "  ".join(cells).rstrip()

        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([text(self.head), rule, *map(text, self.rows)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(tag: str, cells: list[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row("td", cells) for cells in self.rows)
        return f"<table><thead>{row('th', self.head)}</thead><tbody>{body}</tbody></table>"


class _AllModels(Mapping[str, Models]):
    """The models of each algorithm on the first seed that it has."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __getitem__(self, algorithm: str) -> Models:
        return self._run.model(algorithm)

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.algorithms)

    def __len__(self) -> int:
        return len(self._run.algorithms)


class Run:
    """A run folder, read back."""

    def __init__(self, path: Path, found: dict[str, Any], problem: Problem | None = None) -> None:
        self.path = path
        """The folder."""
        self.manifest: dict[str, Any] = found["manifest"]
        """What was run, on what, where, and how far it came."""
        self.experiment: dict[str, Any] = found["experiment"]
        """The experiment, with every default filled in."""
        self.rows: list[dict[str, Any]] = found["rows"]
        """Every measurement."""
        self.results: list[Result] = [_result(entry) for entry in found["results"]]
        """One entry for each algorithm and seed that has ended."""
        self._table: tuple[list[str], list[list[str]]] = found["table"]
        self._problem = problem

    @classmethod
    def load(cls, path: str | os.PathLike[str], problem: Problem | None = None) -> Run:
        """Reads a run folder, made here or by the command line; a problem gives models their shape."""
        return cls(Path(path), json.loads(_lopa.read_run(os.fspath(path))), problem)

    @property
    def status(self) -> str:
        """`done`, `interrupted`, `failed` or `running`."""
        return str(self.manifest["status"])

    @property
    def algorithms(self) -> list[str]:
        """The labels of the algorithms that have a result."""
        return list(dict.fromkeys(result.algorithm for result in self.results))

    @property
    def digest(self) -> str:
        """One digest of all runs, as the command line prints it."""
        sha = hashlib.sha256()
        for result in self.results:
            sha.update(result.algorithm.encode())
            sha.update(result.seed.to_bytes(8, "little"))
            sha.update(result.digest.encode())
        return sha.hexdigest()[:16]

    def table(self) -> Table:
        """One line per algorithm, as `lopa run` prints it: mean ± standard deviation over the seeds that did not diverge."""
        return Table(*self._table)

    def frame(self) -> pandas.DataFrame:
        """Every measurement as a pandas DataFrame, with `stop`, how that run ended: `run.frame().to_parquet(…)`."""
        pandas = _loggers.needed("pandas", "pandas", "frame")
        frame = pandas.DataFrame(self.rows)
        # Virtual seconds need a `[time]`.
        first = [name for name in ("algorithm", "seed", *COSTS) if name in frame.columns]
        frame = frame[[*first, *(name for name in frame.columns if name not in first)]]
        stops = [_loggers.stop_of(self, row["algorithm"], row["seed"]) for row in self.rows]
        return frame.assign(stop=stops)

    def log_tensorboard(self, folder: str | os.PathLike[str] = "tensorboard") -> list[Path]:
        """Writes measurements for `tensorboard --logdir folder`, with tensorboardX or PyTorch's writer.

        Returns one folder for each algorithm and seed. Logging a run again replaces its folders.
        """
        return _loggers.log_tensorboard(self, Path(folder))

    def log_mlflow(
        self, tracking_uri: str | None = None, experiment: str | None = None, register: bool | str = True
    ) -> list[str]:
        """Logs each algorithm and seed as a run of MLflow: settings, measurements, models; returns their ids.

        tracking_uri: MLflow's store, such as `sqlite:///mlflow.db` or `http://host:5000`; by default, as MLflow is set.
        experiment: MLflow's experiment; by default, the name of this one.
        register: the registered model that models become versions of, False for none; by default, one for each
            algorithm, called `NAME-ALGORITHM`. `mlflow.pyfunc.load_model` loads them. Runs that diverged are not
            registered.

        A run that was already logged is not logged again.
        """
        return _loggers.log_mlflow(self, tracking_uri, experiment, register)

    def model(self, algorithm: str, seed: int | None = None) -> Models:
        """The models of an algorithm on a seed, by default the first one."""
        import numpy as np

        seeds = [result.seed for result in self.results if result.algorithm == algorithm]
        if not seeds:
            message = f"no run of `{algorithm}` has ended here"
            hint = f"there are: {', '.join(self.algorithms) or 'none'}"
            raise _Unknown("config/unknown-name", message, "algorithm", hint)
        if seed is None:
            seed = seeds[0]
        elif seed not in seeds:
            message = f"`{algorithm}` has no run of seed {seed}"
            raise _Unknown("config/unknown-name", message, "seed", f"there are: {seeds}")
        about, nodes, x, theta = _lopa.read_model(self.path, algorithm, seed)
        own, personal = (np.frombuffer(values).reshape(nodes, -1).copy() for values in (x, theta))
        return Models(own, personal, json.loads(about), self._problem)

    @property
    def models(self) -> Mapping[str, Models]:
        """The models of each algorithm: `run.models["lopa-gt"][3].theta` is that of node 3."""
        return _AllModels(self)

    def report(self, path: str | os.PathLike[str] = "report.html", title: str | None = None) -> Path:
        """Writes a report, one self-contained HTML file."""
        _lopa.report([self.path], path, title)
        return Path(path)

    def __repr__(self) -> str:
        return f"<lopa.Run {self.path} ({self.status})>\n{self.table()}"

    @cached_property
    def _pictures(self) -> tuple[str, str]:
        return _lopa.pictures(self.path)

    def _repr_html_(self) -> str:
        curves, networks = self._pictures
        folder = html.escape(str(self.path))
        return f"{self.table()._repr_html_()}{curves}{networks}<p>{folder}, {self.status}</p>"


class _Unknown(ConfigError, KeyError):
    """The error for an unknown name in a mapping."""


def _result(entry: dict[str, Any]) -> Result:
    entry = dict(entry)
    named = {key: entry.pop(key, None) for key in ("algorithm", "seed", "digest", "stop", "diagnosis")}
    nodes = entry.pop("nodes", [])
    values = {name: value for name, value in entry.items() if isinstance(value, int | float)}
    return Result(**named, values=values, nodes=nodes)
