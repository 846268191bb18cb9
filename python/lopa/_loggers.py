"""Runs in the tools of others, written by the tools' own libraries: MLflow and TensorBoard."""

from __future__ import annotations

import importlib
import platform
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _lopa
from ._costs import COSTS
from ._errors import ConfigError, StorageError

if TYPE_CHECKING:
    from ._results import Run

# The most that MLflow takes in one call, and the longest value of a parameter.
_BATCH, _LONGEST = 500, 6000


def needed(module: str, package: str, what: str) -> Any:
    """A module of another package; without it, an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = f"{what} needs the package {package}, which is not installed"
        raise ConfigError("config/missing-package", message, None, f"pip install {package}") from error


def each(run: Run) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
    """Every algorithm on every seed with its measurements, in the order of the first ones."""
    for algorithm, seed in dict.fromkeys((row["algorithm"], row["seed"]) for row in run.rows):
        yield algorithm, seed, [row for row in run.rows if (row["algorithm"], row["seed"]) == (algorithm, seed)]


def measures(row: dict[str, Any]) -> dict[str, float]:
    """The finite numbers of a measurement by name."""
    numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
    finite = {name: float(value) for name, value in numbers.items() if abs(value) < float("inf")}
    return {name: value for name, value in finite.items() if name != "seed"}


def stop_of(run: Run, algorithm: str, seed: int) -> str:
    """How a run ended, or the status of its folder if it has not."""
    ends = [one.stop for one in run.results if (one.algorithm, one.seed) == (algorithm, seed)]
    return ends[0] if ends else run.status


def started(run: Run) -> float:
    """Seconds from 1970 to the start of the run; rows count from there."""
    return datetime.fromisoformat(run.manifest["started"]).timestamp()


# ---- TensorBoard ----


def log_tensorboard(run: Run, folder: Path) -> list[Path]:
    """One folder of event files per algorithm and seed; returns them."""
    writer = _summary_writer()
    begun, folders = started(run), []
    for algorithm, seed, rows in each(run):
        place = folder / run.path.name / f"{algorithm}-seed{seed}"
        try:
            shutil.rmtree(place, ignore_errors=True)
            events = writer(str(place))
            for row in rows:
                for name, value in measures(row).items():
                    tag = f"{'cost' if name in COSTS else 'quality'}/{name}"
                    events.add_scalar(tag, value, row["iteration"], begun + row["seconds"])
            events.close()
        except OSError as error:
            raise StorageError("storage/write", f"cannot write events: {error}", str(place)) from error
        folders.append(place)
    return folders


def _summary_writer() -> Any:
    """tensorboardX, or else PyTorch's own writer."""
    try:
        return importlib.import_module("tensorboardX").SummaryWriter
    except ImportError:
        pass
    try:
        return importlib.import_module("torch.utils.tensorboard").SummaryWriter
    except ImportError:
        needed("tensorboardX", "tensorboardX", "log_tensorboard")


# ---- MLflow ----


def log_mlflow(run: Run, tracking_uri: str | None, experiment: str | None, register: bool | str) -> list[str]:
    """One MLflow run per algorithm and seed, with its models; returns their ids."""
    needed("mlflow", "mlflow", "log_mlflow")
    client = needed("mlflow.tracking", "mlflow", "log_mlflow").MlflowClient(tracking_uri)
    name = experiment or str(run.experiment["name"])
    known = client.get_experiment_by_name(name)
    place = known.experiment_id if known else client.create_experiment(name)
    return [_log_one(client, place, run, register, *one) for one in each(run)]


def _log_one(
    client: Any, place: str, run: Run, register: bool | str, algorithm: str, seed: int, rows: list[dict[str, Any]]
) -> str:
    """Logs one algorithm on one seed, unless it is there to the bit; what was there before it had ended goes."""
    entities = importlib.import_module("mlflow.entities")
    own = {
        "lopa.folder": run.path.name,
        "lopa.started": str(run.manifest["started"]),
        "lopa.algorithm": algorithm,
        "lopa.seed": str(seed),
    }
    ends = [end for end in run.results if (end.algorithm, end.seed) == (algorithm, seed)]
    digest = ends[0].digest if ends else ""
    same = " and ".join(f"tags.`{key}` = '{value}'" for key, value in own.items())
    stop, begun = stop_of(run, algorithm, seed), started(run)
    for old in client.search_runs([place], same):
        if ends and old.data.tags.get("lopa.digest") == digest:
            _register(client, old, run, algorithm, seed, register if stop != "diverged" else False)
            return str(old.info.run_id)
        client.delete_run(old.info.run_id)
    tags = {**own, "lopa.version": str(run.manifest["lopa"]), "lopa.stop": stop}
    made = client.create_run(place, round(begun * 1000), tags, f"{algorithm} seed {seed}")
    logged = str(made.info.run_id)
    params = [entities.Param(key, value) for key, value in _parameters(run, algorithm, seed).items()]
    metrics = [
        entities.Metric(name, value, round((begun + row["seconds"]) * 1000), row["iteration"])
        for row in rows
        for name, value in measures(row).items()
    ]
    for start in range(0, len(params), 100):
        client.log_batch(logged, params=params[start : start + 100])
    for start in range(0, len(metrics), _BATCH):
        client.log_batch(logged, metrics=metrics[start : start + _BATCH])
    client.log_artifact(logged, str(run.path / "resolved.toml"))
    _log_model(client, logged, run, algorithm, seed)
    _register(client, made, run, algorithm, seed, register if stop != "diverged" else False)
    if ends or run.status != "running":
        last = rows[-1]["seconds"] if rows else 0.0
        client.set_terminated(logged, _status(stop), round((begun + last) * 1000))
    # The last word: without it, the run is logged again.
    client.set_tag(logged, "lopa.digest", digest)
    return logged


def _status(stop: str) -> str:
    """MLflow's word; a run that diverged has failed."""
    return {"diverged": "FAILED", "failed": "FAILED", "interrupted": "KILLED"}.get(stop, "FINISHED")


def _parameters(run: Run, algorithm: str, seed: int) -> dict[str, str]:
    """The settings, those of this algorithm only, under names such as `problem.name`."""
    flat: dict[str, str] = {"seed": str(seed)}

    def flatten(path: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                flatten(f"{path}.{key}", inner)
        else:
            flat[path] = value if isinstance(value, str) else repr(value)

    for key, value in run.experiment.items():
        if key == "algorithm":
            value = next(one for one in value if one.get("label", one["name"]) == algorithm)
        flatten(key, value)
    return {key: value for key, value in flat.items() if len(value) <= _LONGEST}


def _log_model(client: Any, logged: str, run: Run, algorithm: str, seed: int) -> None:
    """Logs the models of all nodes as one MLflow model."""
    file = run.path / "models" / f"{algorithm}-seed{seed}.safetensors"
    if not file.is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(file, Path(folder) / "model.safetensors")
        _described(file, logged).save(str(Path(folder) / "MLmodel"))
        client.log_artifacts(logged, folder, "model")


def _register(client: Any, made: Any, run: Run, algorithm: str, seed: int, register: bool | str) -> None:
    """Makes the model of a run a version of a registered one, once."""
    logged = made.info.run_id
    name = register if isinstance(register, str) else f"{run.experiment['name']}-{algorithm}"
    there = client.search_model_versions(f"run_id = '{logged}'")
    if register is False or any(version.name == name for version in there):
        return
    if not any(file.path == "model" for file in client.list_artifacts(logged)):
        return
    if not client.search_registered_models(f"name = '{name}'"):
        client.create_registered_model(name)
    version = client.create_model_version(name, f"{made.info.artifact_uri}/model", logged)
    client.set_model_version_tag(name, version.version, "lopa.seed", str(seed))


def _described(file: Path, logged: str) -> Any:
    """What MLflow keeps beside a model: how to load it, and what it takes."""
    import numpy as np

    models = importlib.import_module("mlflow.models")
    types = importlib.import_module("mlflow.types")
    schema = importlib.import_module("mlflow.types.schema")
    model = models.Model(artifact_path="model", run_id=logged)
    model.add_flavor("lopa", data="model.safetensors", version=_lopa.__version__)
    features, _, _ = _lopa.model_about(file)
    if features:
        python = {"loader_module": "lopa._served", "python_version": platform.python_version()}
        model.add_flavor("python_function", data="model.safetensors", **python)
        rows = schema.Schema([schema.TensorSpec(np.dtype(np.float64), (-1, features))])
        node = schema.ParamSchema([schema.ParamSpec("node", types.DataType.string, "0")])
        model.signature = models.ModelSignature(inputs=rows, params=node)
    return model
