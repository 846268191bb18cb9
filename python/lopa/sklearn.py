"""Estimators for scikit-learn: personal models of silos that learn a common part together.

A silo is a holder of rows: a hospital, a machine, a customer. The silo of a row is its group: `fit(X, y,
groups=silo)`. Silos exchange the shared x and never rows, as they do in any other
run; here all of them are in this process.
"""

from __future__ import annotations

import difflib
import json
import numbers
import os
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from . import _lopa
from ._arrays import Arrays, Matrix
from ._errors import ConfigError, LabelWarning
from ._json import dumps

__all__ = [
    "PersonalizedClassifier",
    "PersonalizedRegressor",
    "RegularizedClassifier",
    "RegularizedRegressor",
]


class _Silos(BaseEstimator):  # type: ignore[misc]
    """The common part of all estimators: x learnt together, theta of each silo solved exactly."""

    # The parts in which the estimators differ.

    def _problem(self) -> dict[str, Any]:
        raise NotImplementedError

    def _least(self) -> int:
        """The rows that a silo must have."""
        return 1

    def _target(self) -> dict[str, Any]:
        """What the labels of the rows are, as keys of `data`."""
        raise NotImplementedError

    def _width(self) -> int:
        """The numbers of a prediction."""
        raise NotImplementedError

    # Called by both kinds.

    def _learn(self, X: Any, labels: Any, groups: Any) -> Self:
        silos = np.zeros(len(labels), int) if groups is None else _groups(groups, len(labels))
        self.silos_, silo = np.unique(silos, return_inverse=True)
        rows = np.bincount(silo)
        if rows.min() < self._least():
            small = self.silos_[rows.argmin()]
            message = f"silo `{small}` has {rows.min()} sample, too few to validate on a part of them"
            raise ValueError(message)
        experiment = self._experiment(X, rows)
        arrays = Arrays(X, labels, silo)
        said, parts = _lopa.fit(dumps(experiment), arrays, self._threads(), None)
        self._keep(json.loads(said), [np.frombuffer(part).copy() for part in parts])
        return self

    def _predictions(self, X: Any, groups: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = self._checked(X)
        if groups is None:
            return self._said(X, self.theta_.mean(axis=0))
        silo = self._known(_groups(groups, X.shape[0]))
        out = np.empty((X.shape[0], self._width()))
        for at in np.unique(silo):
            own = np.flatnonzero(silo == at)
            out[own] = self._said(X[own], self.theta_[at])
        return out

    def _adapt(self, X: Any, labels: NDArray[Any], silo: Any) -> Self:
        kept = self._kept(self.theta_.mean(axis=0))
        theta, solved = _lopa.personal(kept, Matrix(X, "X").held(), labels)
        own = type(self)(**self.get_params(deep=False))
        own.__dict__.update(self.__dict__)
        own.silos_ = np.asarray([silo])
        own.theta_ = np.frombuffer(theta).copy()[None, :]
        own.solved_ = solved
        own.epsilon_ = None  # theta is solved for without noise
        return own

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Implementation.

    def _experiment(self, X: Any, rows: NDArray[np.int64]) -> dict[str, Any]:
        scaling = self.scaling
        epsilon = getattr(self, "epsilon", None)  # regressors have no privacy budget
        if scaling == "auto" and epsilon is not None:
            scaling = "row"
        if scaling == "auto":
            # A mean that is subtracted would fill a sparse matrix.
            scaling = "unit" if hasattr(X, "tocsr") else "standardise"
        usual_graph, usual_batch = _lopa.usual(len(rows), int(rows.mean()))
        batch = self.batch_size
        if batch == "auto":
            batch = usual_batch or "full"
        graph = self.graph
        if graph == "auto":
            graph = usual_graph
        steps = self.steps
        if isinstance(steps, str) and steps != "auto":
            message = f"`steps = {steps!r}` must be 'auto' or a dictionary of step sizes"
            raise ConfigError("config/out-of-range", message, "steps")
        privacy = {} if epsilon is None else {"epsilon": epsilon, "delta": self.delta, "clip": self.clip}
        return {
            "name": "fit",
            **({} if epsilon is None else {"privacy": privacy}),
            "problem": self._problem(),
            "data": {
                "name": "arrays",
                **self._target(),
                "test": 0.0,
                "scaling": scaling,
            },
            "partition": "group",
            "network": {"nodes": len(rows), "graph": graph, "weights": "lazy-metropolis"},
            "run": {
                "seeds": [self._seed()],
                "iterations": self.max_iter,
                "batch": batch,
                "precision": "f32" if X.dtype == np.float32 and epsilon is None else "f64",
                "evaluations": 1,
                "exact": "never",
            },
            "algorithm": [{"name": "lopa-gt", **({} if isinstance(steps, str) else dict(steps))}],
        }

    def _seed(self) -> int:
        if isinstance(self.random_state, numbers.Integral):
            check_random_state(self.random_state)  # its range
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _threads(self) -> int:
        jobs = 1 if self.n_jobs is None else self.n_jobs
        if not isinstance(jobs, numbers.Integral) or jobs == 0:
            message = f"`n_jobs = {jobs!r}` must be a number of threads, or -1 for all cores"
            raise ConfigError("config/out-of-range", message, "n_jobs")
        threads = int(jobs)
        return threads if threads > 0 else max(1, (os.cpu_count() or 1) + 1 + threads)

    def _keep(self, said: dict[str, Any], parts: list[NDArray[np.float64]]) -> None:
        x, theta, shift, factor, target_shift, target_factor = parts
        self.x_ = x
        """The shared x, as the problem lays it out."""
        self.theta_ = theta.reshape(len(self.silos_), -1)
        """A row of theta for each silo, in the order of `silos_`."""
        self.scaling_ = (shift, factor)
        """The shift subtracted from each feature, then its factor; both empty without scaling."""
        self._target_scaling = (target_shift, target_factor)
        self.n_iter_ = int(said["iterations"])
        """Iterations on x."""
        self.loss_ = float("nan" if said["loss"] is None else said["loss"])
        """The mean outer loss when they ended; not measured with a privacy budget."""
        spent = said["about"].get("privacy")
        self.epsilon_ = None if spent is None else float(spent["epsilon"])
        """The privacy budget that this fit has spent, if it has one."""
        self.steps_ = {name: said["steps"].get(name) for name in ("alpha", "beta", "lambda")}
        """The step sizes of x, theta and v: those given, or the last ones that were found."""
        self.solved_ = bool(said["solved"])
        """Whether every theta solves its inner problem exactly."""
        self._about = json.dumps(said["about"])

    def _kept(self, theta: NDArray[np.float64]) -> Any:
        """For the compiled half."""
        return self._about, [self.x_, theta, *self.scaling_, *self._target_scaling]

    def _checked(self, X: Any) -> Any:
        kinds = [np.float64, np.float32]
        return validate_data(self, X, accept_sparse="csr", dtype=kinds, reset=False)

    def _said(self, X: Any, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        matrix = Matrix(X, "X")
        found = np.frombuffer(_lopa.predictions(self._kept(theta), matrix.held()))
        return found.reshape(matrix.rows, -1).copy()

    def _known(self, groups: NDArray[Any]) -> NDArray[np.intp]:
        at = np.searchsorted(self.silos_, groups)
        at = np.minimum(at, len(self.silos_) - 1)
        strange = np.flatnonzero(self.silos_[at] != groups)
        if len(strange):
            message = (
                f"there is no silo `{groups[strange[0]]}`: adapt(X, y) makes a model for a new one, and "
                "without groups the mean of all models answers"
            )
            raise ValueError(message)
        found: NDArray[np.intp] = at
        return found


class _Classifier(ClassifierMixin, _Silos):  # type: ignore[misc]
    """Estimators of classes."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learns x together and a theta for each silo.

        groups: the silo of each row, numbers or strings; without it all rows are of one silo.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        _check_spelling(self.classes_, codes)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, `{self.classes_[0]}`: a classifier needs two")
        return self._learn(X, codes, groups)

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """The most probable class of each row, by the model of its silo; see `predict_proba`."""
        found = self.predict_proba(X, groups).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[found]
        return labels

    def predict_proba(self, X: Any, groups: Any = None) -> NDArray[np.float64]:
        """The probability of each class for each row, by the model of its silo.

        groups: the silo of each row. Without it, rows belong to the only silo; if there are several, the mean
            of their models is used.
        """
        return self._predictions(X, groups)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """The accuracy, each row judged by the model of its silo; see `predict_proba`."""
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))

    def adapt(self, X: Any, y: Any, silo: Any = "new") -> Self:
        """A classifier for a new silo: the same x, and the theta that solves its inner problem exactly on
        these rows. This classifier is unchanged.
        """
        check_is_fitted(self)
        X = self._checked(X)
        y = column_or_1d(y, warn=True)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(y)} labels")
        strange = np.setdiff1d(y, self.classes_)
        if len(strange):
            known = ", ".join(str(name) for name in self.classes_)
            near = difflib.get_close_matches(str(strange[0]), [str(name) for name in self.classes_], 1)
            did = f" (did you mean `{near[0]}`?)" if near else ""
            message = f"y has a class that no silo has learnt, `{strange[0]}`{did}: there are {known}"
            raise ValueError(message)
        return self._adapt(X, np.searchsorted(self.classes_, y).astype(np.uint32), silo)

    def _target(self) -> dict[str, Any]:
        return {"classes": list(range(len(self.classes_)))}

    def _width(self) -> int:
        return len(self.classes_)


class _Regressor(RegressorMixin, _Silos):  # type: ignore[misc]
    """Estimators of numbers."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learns x together and a theta for each silo.

        y: a number for each row, or a row of numbers where there are several to predict.
        groups: the silo of each row, numbers or strings; without it all rows are of one silo.
        """
        kinds = [np.float64, np.float32]
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=kinds, multi_output=True, y_numeric=True
        )
        y = self._numbers(y)
        self._flat = y.ndim == 1
        self.n_outputs_ = 1 if y.ndim == 1 else int(y.shape[1])
        """Numbers to predict."""
        return self._learn(X, y, groups)

    def predict(self, X: Any, groups: Any = None) -> NDArray[np.float64]:
        """The number of each row, or its numbers, by the model of its silo.

        groups: the silo of each row. Without it, rows belong to the only silo; if there are several, the mean
            of their models is used.
        """
        found = self._predictions(X, groups)
        return found[:, 0] if self._flat else found

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """R², each row judged by the model of its silo; of several numbers, the mean over them."""
        return float(r2_score(y, self.predict(X, groups), sample_weight=sample_weight))

    def adapt(self, X: Any, y: Any, silo: Any = "new") -> Self:
        """A regressor for a new silo: the same x, and the theta that solves its inner problem exactly on
        these rows. This regressor is unchanged.
        """
        check_is_fitted(self)
        X = self._checked(X)
        y = self._numbers(np.asarray(y, dtype=np.float64))
        if y.shape[0] != X.shape[0] or y.size != X.shape[0] * self.n_outputs_:
            wanted = f"{self.n_outputs_} number{'s' if self.n_outputs_ > 1 else ''} for each row"
            raise ValueError(f"X has {X.shape[0]} rows, and y {wanted}: its shape is {y.shape}")
        if not np.isfinite(y).all():
            raise ValueError("y has a value that is not finite")
        return self._adapt(X, np.ascontiguousarray(y, dtype=np.float64).ravel(), silo)

    @staticmethod
    def _numbers(y: NDArray[Any]) -> NDArray[np.float64]:
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        return y.astype(np.float64, copy=False)

    def _target(self) -> dict[str, Any]:
        return {"target": "number"}

    def _width(self) -> int:
        return self.n_outputs_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _check_spelling(classes: NDArray[Any], codes: NDArray[Any]) -> None:
    """Warns of classes that differ by case, spaces, accents or a slip of the pen alone."""
    if classes.dtype.kind not in "OSU":
        return
    names = [str(name) for name in classes]
    found = _lopa.spelling(list(zip(names, np.bincount(codes).tolist(), strict=True)))
    if found is not None:
        remedy = "if they are one class, write it in one way; each is learnt as a class of its own"
        warnings.warn(f"{found}: {remedy}", LabelWarning, stacklevel=3)


def _groups(groups: Any, rows: int) -> NDArray[Any]:
    array = np.asarray(groups)
    if array.shape != (rows,):
        raise ValueError(f"groups must name the silo of each of {rows} rows: its shape is {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("groups has a value that is not finite, which names no silo")
    return array


class PersonalizedClassifier(_Classifier):
    """A shared representation and personal heads: hidden layers that all silos learn together (x), and
    a classifier on top of them for each silo (theta).

    hidden: units of each hidden layer.
    activation: `tanh`, `sigmoid` or `relu`.
    ridge: the strength of the ridge on the heads.
    scaling: `standardise`, `unit` (divided by the largest value), `log`, `row`, `tf-idf` or `none`; by
        default `standardise`, and `unit` for sparse rows.
    max_iter: iterations of LoPA-GT on x.
    batch_size: rows of a silo in each iteration; by default 32, or all where silos have few.
    steps: `auto`, which finds step sizes along the way, or `{"alpha": …, "beta": …, "lambda": …}`.
    graph: which silos are linked to each other; by default all, or an exponential graph if there are many.
    epsilon: a privacy budget for each row, or none: derivatives are clipped row by row and get noise from a key
        that is drawn for this fit, nothing is measured on rows, and every theta is the one that the iterations
        end with. Rows are scaled by `row` then, unless another scaling that needs no moments is given.
        Every fit spends its budget again: estimators keep no ledger.
    delta: the probability with which the bound may fail; below one over the number of rows.
    clip: the largest part of a row in a derivative: a number, or "auto", which finds it within the budget.
    n_jobs: threads; -1 for all cores. Results do not depend on it.
    random_state: the seed.
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (32,),
        *,
        activation: str = "tanh",
        ridge: float = 0.02,
        scaling: str = "auto",
        max_iter: int = 500,
        batch_size: int | str = "auto",
        steps: str | dict[str, float] = "auto",
        graph: str | dict[str, Any] = "auto",
        epsilon: float | None = None,
        delta: float = 1e-5,
        clip: float | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.ridge = ridge
        self.scaling = scaling
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.steps = steps
        self.graph = graph
        self.epsilon = epsilon
        self.delta = delta
        self.clip = clip
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _problem(self) -> dict[str, Any]:
        name, hidden = "representation", list(self.hidden)
        return {"name": name, "hidden": hidden, "activation": self.activation, "ridge": self.ridge}


class RegularizedClassifier(_Classifier):
    """A linear classifier for each silo (theta), whose regularisation all silos tune together, one
    strength for each feature (x), on rows that are kept for validation. In the end each silo's
    classifier is fitted to all of its rows.

    validation: the share of a silo's rows that regularisation is tuned on.
    start: the logarithm of every strength at the start.
    intercept: whether there is one, regularised with a strength of its own.
    scaling: `standardise`, `unit` (divided by the largest value), `log`, `row`, `tf-idf` or `none`; by
        default `standardise`, and `unit` for sparse rows.
    max_iter: iterations of LoPA-GT on x.
    batch_size: rows of a silo in each iteration; by default 32, or all where silos have few.
    steps: `auto`, which finds step sizes along the way, or `{"alpha": …, "beta": …, "lambda": …}`.
    graph: which silos are linked to each other; by default all, or an exponential graph if there are many.
    epsilon: a privacy budget for each row, or none: derivatives are clipped row by row and get noise from a key
        that is drawn for this fit, nothing is measured on rows, and every theta is the one that the iterations
        end with. Rows are scaled by `row` then, unless another scaling that needs no moments is given.
        Every fit spends its budget again: estimators keep no ledger.
    delta: the probability with which the bound may fail; below one over the number of rows.
    clip: the largest part of a row in a derivative: a number, or "auto", which finds it within the budget.
    n_jobs: threads; -1 for all cores. Results do not depend on it.
    random_state: the seed.
    """

    def __init__(
        self,
        *,
        validation: float = 0.3,
        start: float = -4.0,
        intercept: bool = True,
        scaling: str = "auto",
        max_iter: int = 500,
        batch_size: int | str = "auto",
        steps: str | dict[str, float] = "auto",
        graph: str | dict[str, Any] = "auto",
        epsilon: float | None = None,
        delta: float = 1e-5,
        clip: float | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.validation = validation
        self.start = start
        self.intercept = intercept
        self.scaling = scaling
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.steps = steps
        self.graph = graph
        self.epsilon = epsilon
        self.delta = delta
        self.clip = clip
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _problem(self) -> dict[str, Any]:
        name, bias = "hyperparameter", bool(self.intercept)
        return {"name": name, "validation": self.validation, "start": self.start, "bias": bias}

    def _least(self) -> int:
        return 2

    @property
    def strengths_(self) -> NDArray[np.float64]:
        """The strength of the regularisation of every feature, e^x; the last is the intercept's."""
        check_is_fitted(self)
        found: NDArray[np.float64] = np.exp(self.x_)
        return found


class PersonalizedRegressor(_Regressor):
    """A shared representation and personal heads: hidden layers that all silos learn together (x), and
    a linear model on top of them for each silo (theta), for one number or several.

    hidden: units of each hidden layer.
    activation: `tanh`, `sigmoid` or `relu`.
    ridge: the strength of the ridge on the heads.
    loss: `squared`, or `huber` for targets with outliers.
    scaling: `standardise`, `unit` (divided by the largest value), `log`, `row`, `tf-idf` or `none`; by
        default `standardise`, and `unit` for sparse rows.
    max_iter: iterations of LoPA-GT on x.
    batch_size: rows of a silo in each iteration; by default 32, or all where silos have few.
    steps: `auto`, which finds step sizes along the way, or `{"alpha": …, "beta": …, "lambda": …}`.
    graph: which silos are linked to each other; by default all, or an exponential graph if there are many.
    n_jobs: threads; -1 for all cores. Results do not depend on it.
    random_state: the seed.
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (32,),
        *,
        activation: str = "tanh",
        ridge: float = 0.02,
        loss: str = "squared",
        scaling: str = "auto",
        max_iter: int = 500,
        batch_size: int | str = "auto",
        steps: str | dict[str, float] = "auto",
        graph: str | dict[str, Any] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.ridge = ridge
        self.loss = loss
        self.scaling = scaling
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.steps = steps
        self.graph = graph
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _problem(self) -> dict[str, Any]:
        name, hidden = "representation", list(self.hidden)
        layers = {"name": name, "hidden": hidden, "activation": self.activation}
        return {**layers, "ridge": self.ridge, "loss": self.loss}


class RegularizedRegressor(_Regressor):
    """A linear model of one number or several for each silo (theta), whose regularisation all silos tune together, one
    strength for each feature (x), on rows that are kept for validation. In the end each silo's
    model is fitted to all of its rows.

    validation: the share of a silo's rows that regularisation is tuned on.
    start: the logarithm of every strength at the start.
    intercept: whether there is one, regularised with a strength of its own.
    loss: `squared`, or `huber` for targets with outliers.
    scaling: `standardise`, `unit` (divided by the largest value), `log`, `row`, `tf-idf` or `none`; by
        default `standardise`, and `unit` for sparse rows.
    max_iter: iterations of LoPA-GT on x.
    batch_size: rows of a silo in each iteration; by default 32, or all where silos have few.
    steps: `auto`, which finds step sizes along the way, or `{"alpha": …, "beta": …, "lambda": …}`.
    graph: which silos are linked to each other; by default all, or an exponential graph if there are many.
    n_jobs: threads; -1 for all cores. Results do not depend on it.
    random_state: the seed.
    """

    def __init__(
        self,
        *,
        validation: float = 0.3,
        start: float = -4.0,
        intercept: bool = True,
        loss: str = "squared",
        scaling: str = "auto",
        max_iter: int = 500,
        batch_size: int | str = "auto",
        steps: str | dict[str, float] = "auto",
        graph: str | dict[str, Any] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.validation = validation
        self.start = start
        self.intercept = intercept
        self.loss = loss
        self.scaling = scaling
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.steps = steps
        self.graph = graph
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _problem(self) -> dict[str, Any]:
        name, bias = "hyperparameter", bool(self.intercept)
        linear = {"name": name, "validation": self.validation, "start": self.start}
        return {**linear, "bias": bias, "loss": self.loss}

    def _least(self) -> int:
        return 2

    @property
    def strengths_(self) -> NDArray[np.float64]:
        """The strength of the regularisation of every feature, e^x; the last is the intercept's."""
        check_is_fitted(self)
        found: NDArray[np.float64] = np.exp(self.x_)
        return found
