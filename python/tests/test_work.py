"""Searches, comparisons and runs on the workers of executors: the same results as in one process."""

from __future__ import annotations

import importlib.util
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import lopa
import pytest

FILE = """
name = "small"
problem = { name = "quadratic", n = 3, p = 4 }
network = { nodes = 3, graph = "ring" }
run = { seeds = [1, 2], iterations = 30, evaluations = 3 }
tune = { seeds = [11], trials = 5, method = "halving", metric = "loss", confirm = 1 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.001
beta = 0.2
lambda = 0.2
[[algorithm]]
name = "dgd"
alpha = 0.01
"""

PAGE = Path(__file__).parents[2] / "docs" / "shares.md"


@contextmanager
def processes() -> Iterator[Any]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@contextmanager
def submitit() -> Iterator[Any]:
    module = pytest.importorskip("submitit", reason="submitit is not installed")
    executor = module.AutoExecutor(folder="log", cluster="local")
    executor.update_parameters(timeout_min=5)
    yield executor


@contextmanager
def dask() -> Iterator[Any]:
    module = pytest.importorskip("distributed", reason="Dask is not installed")
    with module.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with module.Client(cluster) as client:
            yield client.get_executor()


EXECUTORS = [processes, submitit, dask]


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "small.toml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize("open", EXECUTORS)
def test_workers_give_the_results_of_one_process(open: Callable[[], Any], file: Path) -> None:
    tuned = lopa.tune(file)
    run = lopa.run(file, out="alone")
    compared = lopa.compare(run)
    with open() as executor:
        assert lopa.tune(file, executor=executor) == tuned
        ours = lopa.run(file, out="shared", executor=executor, threads=1)
        again = lopa.compare(file, out="shared", executor=executor, threads=1)
    assert [result.digest for result in ours.results] == [result.digest for result in run.results]
    assert ours.digest == run.digest and ours.path.name == run.path.name
    names = sorted(path.name for path in Path("shared").iterdir())
    assert names == [run.path.name, f"{run.path.name}-2"], "nothing of the workers is left"
    costs = [standing["cost"] for standing in compared["standings"]]
    assert {"iteration", "gradients"} <= set(costs) and compared["measure"] == again["measure"]
    for one, other in zip(compared["standings"], again["standings"], strict=True):
        assert one["cost"] == "seconds" or one == other


def test_a_search_is_that_of_the_command_line(file: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "lopa", "tune", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tuned = lopa.tune(file, out="by-python.toml", journal="journal.jsonl")
    values = [line for line in tuned.text.splitlines() if line.startswith("#   ")]
    theirs = Path("small-tuned.toml").read_text().splitlines()
    assert values and [line for line in theirs if line.startswith("#   ")] == values
    assert Path("by-python.toml").read_text() == tuned.text
    events: list[str] = []
    assert lopa.tune(file, journal="journal.jsonl", progress=lambda event, _: events.append(event)) == tuned
    assert not {"trial", "test"} & set(events), "the journal has every trial"
    best = tuned.best["lopa-gt"]
    assert best.value is not None and set(best.params) == {"alpha", "beta", "lambda"}
    assert lopa.run(file, set=tuned.set()).results[0].values["loss"] < 1e9


class Lazy(Executor):
    """Its jobs are no futures of the standard library, and end in the opposite order."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Any:  # type: ignore[override]
        jobs.append(Job(lambda: function(*args)))
        return jobs[-1]


class Job:
    def __init__(self, call: Callable[[], Any]) -> None:
        self.call, self.cancelled = call, False

    def done(self) -> bool:
        waiting = [job for job in jobs if not job.cancelled]
        if waiting and waiting[-1] is self:
            jobs.remove(self)
            return True
        return self not in jobs

    def result(self) -> Any:
        return self.call()

    def cancel(self) -> None:
        self.cancelled = True


jobs: list[Job] = []


def test_any_object_with_submit_will_do(file: Path) -> None:
    jobs.clear()
    assert lopa.tune(file, executor=Lazy()) == lopa.tune(file)
    with pytest.raises(lopa.ConfigError, match="submit"):
        lopa.tune(file, executor=3)  # type: ignore[arg-type]
    with pytest.raises(lopa.ConfigError, match="resume"):
        lopa.run(file, executor=Lazy(), resume=False)


class Failing(ThreadPoolExecutor):
    """One of its workers dies."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        def fail() -> None:
            raise MemoryError("no memory on this worker")

        self.count = getattr(self, "count", 0) + 1
        return super().submit(fail) if self.count == 3 else super().submit(function, *args, **more)


def test_an_exception_of_a_worker_names_the_task_and_the_rest_is_kept(file: Path) -> None:
    with Failing(1) as pool, pytest.raises(MemoryError) as raised:
        lopa.tune(file, journal="journal.jsonl", executor=pool)
    assert any("trial" in note for note in raised.value.__notes__)
    kept = Path("journal.jsonl").read_text().count("\n") - 1
    assert kept >= 2
    with ThreadPoolExecutor(1) as pool:
        assert lopa.tune(file, journal="journal.jsonl", executor=pool) == lopa.tune(file)
    with Failing(1) as pool, pytest.raises(MemoryError):
        lopa.run(file, out="runs", executor=pool)
    with ThreadPoolExecutor(2) as pool:
        assert lopa.run(file, out="runs", executor=pool).digest == lopa.run(file, out="alone").digest


def test_errors_of_workers_arrive_as_they_are(file: Path) -> None:
    for kind in [lopa.ConfigError, lopa.StorageError, lopa.RunError, lopa.DataError]:
        error = pickle.loads(pickle.dumps(kind("some/id", "wrong", "here", "do this")))
        assert (type(error), error.id, str(error)) == (kind, "some/id", "here: wrong\n  help: do this")
    with ThreadPoolExecutor(1) as pool, pytest.raises(lopa.ConfigError) as raised:
        lopa.tune(file, set={"tune.metric": "speed"}, executor=pool)
    assert raised.value.id == "config/unknown-name"


def test_ranges_and_trials_for_other_searches(file: Path) -> None:
    ranges = lopa.ranges(file)
    assert set(ranges) == {"lopa-gt", "dgd"} and ranges["lopa-gt"]["lambda"] == "beta"
    low, high = ranges["lopa-gt"]["alpha"]["low"], ranges["lopa-gt"]["alpha"]["high"]
    assert low < 0.001 < high

    class Middle:
        def suggest_float(self, key: str, low: float, high: float, log: bool) -> float:
            return (low * high) ** 0.5 if log else (low + high) / 2

        def suggest_categorical(self, key: str, values: list[float]) -> float:
            return values[0]

    params = lopa.suggest(Middle(), ranges["lopa-gt"])
    assert params["alpha"] == pytest.approx(0.001) and params["lambda"] == params["beta"]
    own = lopa.trial(file, "lopa-gt", {"alpha": 0.001, "beta": 0.2, "lambda": 0.2})
    first = next(trial for trial in lopa.tune(file, set={"tune.method": "random"}).trials if trial.trial == 0)
    assert own == first.value
    assert lopa.trial(file, "lopa-gt", {"alpha": 1e9, "beta": 1e9, "lambda": 1e9}) is None
    with pytest.raises(lopa.ConfigError, match="lopa-gt, dgd"):
        lopa.trial(file, "lopa", {})


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


def test_optuna_on_the_page(file: Path) -> None:
    if importlib.util.find_spec("optuna") is None:
        pytest.skip("Optuna is not installed")
    code = next(block for block in blocks() if "optuna" in block).replace("experiment.toml", "small.toml")
    names: dict[str, Any] = {}
    exec(code.replace("range(20)", "range(4)"), names)
    assert len(names["study"].trials) == 4 and set(names["study"].best_params) == {"alpha", "beta"}


def test_ray_on_the_page(file: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    code = next(block for block in blocks() if "import ray" in block)
    names: dict[str, Any] = {}
    exec(code, names)
    names["ray"].init(num_cpus=2, include_dashboard=False)
    try:
        assert lopa.tune(file, executor=names["Workers"]()) == lopa.tune(file)
    finally:
        names["ray"].shutdown()


def test_processes_on_the_page(file: Path) -> None:
    code = next(block for block in blocks() if "ProcessPoolExecutor" in block)
    Path("page.py").write_text(code.replace("experiment.toml", "small.toml"))
    done = subprocess.run([sys.executable, "page.py"], capture_output=True, text=True)
    assert done.returncode == 0 and "lopa-gt" in done.stdout, done.stderr


MPI = """
from mpi4py.futures import MPIPoolExecutor
import lopa

if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        print("digest", lopa.run("small.toml", out="mpi", executor=pool, threads=1).digest)
        print(repr(lopa.tune("small.toml", executor=pool).best))
"""


def test_mpi4py(file: Path) -> None:
    if shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpirun or mpi4py is not installed")
    Path("script.py").write_text(MPI)
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"]
    program = [*mpirun, sys.executable, "-m", "mpi4py.futures", "script.py"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    assert f"digest {lopa.run(file, out='alone').digest}" in done.stdout
    assert repr(lopa.tune(file).best) in done.stdout
