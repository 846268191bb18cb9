"""The estimators: their models, groups, and scikit-learn's interfaces."""

from __future__ import annotations

import pickle
from typing import Any

import lopa
import numpy as np
import pytest

pytest.importorskip("sklearn")
import scipy.sparse as sp  # noqa: E402
import sklearn  # noqa: E402
from lopa.sklearn import (  # noqa: E402
    PersonalizedClassifier,
    PersonalizedRegressor,
    RegularizedClassifier,
    RegularizedRegressor,
)
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

BOTH = [PersonalizedClassifier, RegularizedClassifier]
NUMBERS = [PersonalizedRegressor, RegularizedRegressor]


def silos(rows: int = 60, count: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    """Silos that read the first feature in opposite ways: one model for all would be useless."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows * count, 4))
    groups = np.repeat([f"silo {at}" for at in range(count)], rows)
    sign = np.where(np.repeat(np.arange(count), rows) % 2 == 0, 1, -1)
    y = np.where(sign * X[:, 0] + 0.1 * random.normal(size=len(X)) > 0, "yes", "no")
    return X, y, groups


def small(kind: Any, **more: Any) -> Any:
    return kind(**{"max_iter": 50, "random_state": 0, **more})


@pytest.mark.parametrize("kind", BOTH)
def test_silos_have_models_of_their_own(kind: Any) -> None:
    X, y, groups = silos()
    classifier = small(kind).fit(X, y, groups=groups)
    assert classifier.score(X, y, groups=groups) > 0.95
    assert list(classifier.classes_) == ["no", "yes"]
    assert list(classifier.silos_) == ["silo 0", "silo 1", "silo 2"]
    swapped = np.where(groups == "silo 0", "silo 1", "silo 0")
    apart = groups != "silo 2"
    assert classifier.score(X[apart], y[apart], groups=swapped[apart]) < 0.2
    said = classifier.predict_proba(X, groups=groups)
    assert said.shape == (len(X), 2) and np.allclose(said.sum(axis=1), 1)
    assert classifier.solved_


@pytest.mark.parametrize("kind", BOTH)
def test_adapting_to_a_new_silo(kind: Any) -> None:
    X, y, groups = silos(count=4)
    old = groups != "silo 3"
    classifier = small(kind).fit(X[old], y[old], groups=groups[old])
    new_X, new_y = X[~old], y[~old]
    before = pickle.dumps(classifier)
    newcomer = classifier.adapt(new_X[:30], new_y[:30], silo="silo 3")
    assert pickle.dumps(classifier) == before, "the classifier stays as it is"
    assert newcomer.score(new_X[30:], new_y[30:]) > 0.9
    assert newcomer.score(new_X[30:], new_y[30:], groups=["silo 3"] * 30) > 0.9
    assert np.array_equal(newcomer.x_, classifier.x_)
    with pytest.raises(ValueError, match="no silo `silo 3`"):
        classifier.predict(new_X, groups=["silo 3"] * 60)


@pytest.mark.parametrize("kind", BOTH)
def test_a_known_silo_adapts_to_itself(kind: Any) -> None:
    """Theta is the exact solution on the silo's rows, wherever the search starts."""
    X, y, groups = silos()
    classifier = small(kind).fit(X, y, groups=groups)
    for at, silo in enumerate(classifier.silos_):
        own = classifier.adapt(X[groups == silo], y[groups == silo])
        assert np.allclose(own.theta_[0], classifier.theta_[at], atol=1e-5)


@pytest.mark.parametrize("kind", BOTH)
def test_sparse_rows_and_single_precision(kind: Any) -> None:
    X, y, groups = silos()
    X[np.abs(X) < 0.5] = 0
    dense = small(kind, scaling="unit").fit(X, y, groups=groups)
    want = dense.predict_proba(X, groups=groups)
    for made in (sp.csr_matrix, sp.csc_array, sp.coo_array):
        sparse = small(kind).fit(made(X), y, groups=groups)
        assert np.allclose(sparse.predict_proba(made(X), groups=groups), want, atol=1e-6)
    given = {"scaling": "unit", "steps": {"alpha": 0.05, "beta": 0.2, "lambda": 0.2}}
    double, single = (small(kind, **given).fit(X.astype(of), y, groups=groups) for of in (np.float64, np.float32))
    assert not np.array_equal(single.x_, double.x_)
    assert np.allclose(single.predict_proba(X, groups=groups), double.predict_proba(X, groups=groups), atol=1e-4)


@pytest.mark.parametrize("labels", [[3, 7], [-1.0, 1.0], ["a", "b"], [True, False], np.array(["a", "b"], object)])
@pytest.mark.parametrize("kind", BOTH)
def test_labels_of_any_kind(kind: Any, labels: Any) -> None:
    X, y, groups = silos()
    own = np.asarray(labels)[(y == "yes").astype(int)]
    classifier = small(kind).fit(X, own, groups=groups)
    assert classifier.classes_.dtype == np.unique(own).dtype
    assert np.array_equal(classifier.classes_, np.unique(own))
    assert classifier.score(X, own, groups=groups) > 0.95


@pytest.mark.parametrize("kind", BOTH)
def test_the_seed_decides_everything(kind: Any) -> None:
    X, y, groups = silos()
    first = small(kind, batch_size=8).fit(X, y, groups=groups)
    second = clone(first).set_params(n_jobs=2).fit(X, y, groups=groups)
    assert np.array_equal(first.x_, second.x_) and np.array_equal(first.theta_, second.theta_)
    other = clone(first).set_params(random_state=5).fit(X, y, groups=groups)
    assert not np.array_equal(first.x_, other.x_)
    state = np.random.RandomState(3)
    drawn = [clone(first).set_params(random_state=state).fit(X, y, groups=groups).x_ for _ in range(2)]
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("kind", BOTH)
def test_copies_predict_alike(kind: Any) -> None:
    X, y, groups = silos()
    classifier = small(kind).fit(X, y, groups=groups)
    copy = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(copy.predict_proba(X, groups=groups), classifier.predict_proba(X, groups=groups))
    assert clone(classifier).get_params() == classifier.get_params()


def test_names_of_features() -> None:
    pandas = pytest.importorskip("pandas")
    X, y, groups = silos()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    classifier = small(PersonalizedClassifier).fit(frame, y, groups=pandas.Series(groups))
    assert classifier.n_features_in_ == 4 and list(classifier.feature_names_in_) == ["a", "b", "c", "d"]
    classifier.predict(frame, groups=pandas.Series(groups))
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame.rename(columns={"a": "z"}))


def test_groups_are_routed() -> None:
    X, y, groups = silos()
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = small(PersonalizedClassifier)
        classifier.set_fit_request(groups=True).set_score_request(groups=True)
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        rows = {"X": X, "y": y, "params": {"groups": groups}, "cv": folds}
        assert cross_val_score(classifier, **rows).min() > 0.9
        whole = make_pipeline(StandardScaler(), classifier)
        assert cross_val_score(whole, **rows).min() > 0.9
        search = GridSearchCV(classifier, {"ridge": [0.01, 10.0]}, cv=folds).fit(X, y, groups=groups)
        assert search.best_score_ > 0.9
        assert search.score(X, y, groups=groups) > 0.9


def test_without_groups() -> None:
    """One silo is an ordinary classifier; where there are several, the mean model is used."""
    X, y, groups = silos(count=1)
    one = small(PersonalizedClassifier).fit(X, y)
    assert len(one.silos_) == 1 and one.score(X, y) > 0.95
    X, y, groups = silos(count=2)
    several = small(PersonalizedClassifier).fit(X, y, groups=groups)
    mean = several._said(X, several.theta_.mean(axis=0))
    assert np.array_equal(several.predict_proba(X), mean)


def test_digits_reach_what_the_command_line_reaches(folder: Any) -> None:
    """Defaults against the tuned step sizes of the first experiment in the book, on the same rows."""
    X, y = load_digits(return_X_y=True)
    ours, theirs = [], []
    for seed in (1, 2):
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
        groups = np.empty(len(train), int)
        for silo, rows in enumerate(lopa.partition("classes", y[train], nodes=8, per_node=7, seed=seed)):
            groups[rows] = silo
        classifier = PersonalizedClassifier(random_state=seed).fit(X[train], y[train], groups=groups)
        run = lopa.run({
            "name": f"digits-{seed}",
            "problem": {"name": "representation", "hidden": [20], "activation": "sigmoid", "ridge": 0.01},
            "data": {"name": lopa.Arrays(X[train] / 16, y[train], groups), "test": 0.0, "scaling": "none"},
            "network": {"graph": {"name": "erdos-renyi", "p": 0.4}},
            "run": {"seeds": [seed], "batch": 32, "iterations": 1000, "evaluations": 1, "exact": "never"},
            "algorithm": [{"name": "lopa-gt", "alpha": 30.0, "beta": 0.3, "lambda": 0.3}],
        })
        for silo, (_, x, theta) in enumerate((model.node, model.x, model.theta) for model in run.models["lopa-gt"]):
            there = test[np.isin(y[test], y[train][groups == silo])]
            ours.append(classifier.score(X[there], y[there], groups=np.full(len(there), silo)))
            hidden = 1 / (1 + np.exp(-(X[there] / 16 @ x[:1280].reshape(64, 20) + x[1280:])))
            scores = hidden @ theta[:200].reshape(20, 10) + theta[200:]
            theirs.append((scores.argmax(axis=1) == y[there]).mean())
    assert np.mean(theirs) > 0.96
    assert np.mean(ours) > np.mean(theirs) - 0.002, (np.mean(ours), np.mean(theirs))


def test_regularisation_is_tuned() -> None:
    """Features of noise are regularised more than the one that matters, and rows of few are saved by it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(4 * 40, 30))
    y = X[:, 0] + 0.5 * random.normal(size=len(X)) > 0
    groups = np.repeat(np.arange(4), 40)
    classifier = RegularizedClassifier(random_state=0).fit(X, y, groups=groups)
    strengths = classifier.strengths_
    assert strengths.shape == (31,) and strengths[0] < strengths[1:30].min()
    test = random.normal(size=(4000, 30))
    truth, silo = test[:, 0] > 0, np.arange(4000) % 4
    alone = np.mean([
        LogisticRegression(C=1e3).fit(X[groups == at], y[groups == at]).score(test[silo == at], truth[silo == at])
        for at in range(4)
    ])
    assert classifier.score(test, truth, groups=silo) > alone + 0.05


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no units", {"hidden": ()}, "hidden"),
    ("half a unit", {"hidden": (0.5,)}, "hidden"),
    ("an unknown activation", {"activation": "swish"}, "swish"),
    ("a negative ridge", {"ridge": -1.0}, "ridge"),
    ("an unknown scaling", {"scaling": "minmax"}, "minmax"),
    ("no iterations", {"max_iter": 0}, "iterations"),
    ("an empty batch", {"batch_size": 0}, "batch"),
    ("unknown steps", {"steps": "fast"}, "steps"),
    ("a misspelt step", {"steps": {"alfa": 1.0}}, "alfa"),
    ("steps that diverge", {"steps": {"alpha": 1e9, "beta": 1e9, "lambda": 1e9}}, "diverged|raised the loss"),
    ("an unknown graph", {"graph": "rign"}, "did you mean `ring`"),
    ("no threads", {"n_jobs": 0}, "n_jobs"),
    ("a negative seed", {"random_state": -1}, "seed|random_state|between 0"),
]


@pytest.mark.parametrize("case", BAD, ids=[case[0] for case in BAD])
def test_bad_parameters(case: tuple[str, dict[str, Any], str]) -> None:
    X, y, groups = silos()
    _, params, message = case
    with pytest.raises((ValueError, lopa.RunError), match=message):
        small(PersonalizedClassifier, **params).fit(X, y, groups=groups)


def test_a_fit_that_diverges_says_so() -> None:
    X, y, groups = silos()
    steps = {"alpha": 1e9, "beta": 1e9, "lambda": 1e9}
    with pytest.raises(lopa.DivergedError, match="smaller step sizes"):
        small(PersonalizedClassifier, steps=steps).fit(X, y, groups=groups)


def test_bad_rows() -> None:
    X, y, groups = silos()
    classifier = small(PersonalizedClassifier).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="silo of each of 180 rows"):
        classifier.predict(X, groups=groups[:3])
    with pytest.raises(ValueError, match="not finite"):
        classifier.fit(X, y, groups=np.where(groups == "silo 0", np.nan, 1.0))
    with pytest.raises(ValueError, match="class that no silo has learnt, `perhaps`: there are no, yes"):
        classifier.adapt(X[:2], ["yes", "perhaps"])
    with pytest.raises(ValueError, match="2 rows, but y has 3"):
        classifier.adapt(X[:2], ["yes", "no", "no"])
    with pytest.raises(ValueError, match="one class"):
        classifier.fit(X, np.full(len(X), "yes"))
    lonely = groups.copy().astype(object)
    lonely[0] = "alone"
    with pytest.raises(ValueError, match="silo `alone` has 1 sample"):
        small(RegularizedClassifier).fit(X, y, groups=lonely)
    assert small(PersonalizedClassifier).fit(X, y, groups=lonely).score(X, y, groups=lonely) > 0.9


@pytest.mark.parametrize("kind", BOTH)
def test_labels_that_differ_by_their_spelling_are_named(kind: Any) -> None:
    X, y, groups = silos()
    y = np.where(y == "yes", "malignant", "benign").astype(object)
    small(kind).fit(X, y, groups=groups)  # nothing to warn of
    for label, rows in [("Benign", 1), ("benign ", 1), ("bengin", 1)]:
        other = y.copy()
        other[np.flatnonzero(y == "benign")[:rows]] = label
        with pytest.warns(lopa.LabelWarning, match="spelling alone") as found:
            small(kind).fit(X, other, groups=groups)
        said = str(found[0].message)
        assert repr(label).strip("'") in said and "1 row)" in said, said
    fitted = small(kind).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match=r"`Benign` \(did you mean `benign`\?\): there are benign, malignant"):
        fitted.adapt(X[:9], np.where(y[:9] == "benign", "Benign", "malignant"))


def test_ctrl_c_ends_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    import _thread
    import threading

    X, y, groups = silos()
    endless = small(PersonalizedClassifier, max_iter=10**9, steps={"alpha": 0.01, "beta": 0.01, "lambda": 0.01})
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless.fit(X, y, groups=groups)


@pytest.mark.parametrize("kind", BOTH)
def test_a_privacy_budget_adds_noise_and_measures_nothing(kind: Any) -> None:
    X, y, groups = silos()
    private = small(kind, epsilon=4.0, delta=1e-3, max_iter=10, steps={"alpha": 0.01, "beta": 0.3, "lambda": 0.3})
    fitted = private.fit(X, y, groups=groups)
    assert 0 < fitted.epsilon_ <= 4.0
    assert np.isnan(fitted.loss_) and not fitted.solved_
    # The key is drawn for each fit: the same seed has other noise.
    first = fitted.theta_.copy()
    assert not np.allclose(first, private.fit(X, y, groups=groups).theta_)
    assert small(kind).fit(X, y, groups=groups).epsilon_ is None
    with pytest.raises(lopa.ConfigError, match="scaling"):
        clone(private).set_params(scaling="standardise").fit(X, y, groups=groups)
    with pytest.raises(lopa.ConfigError, match="epsilon"):
        clone(private).set_params(epsilon=0.0).fit(X, y, groups=groups)


def lines(rows: int = 60, count: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    """Silos whose numbers follow the first feature in opposite ways, far from zero."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows * count, 4))
    groups = np.repeat([f"silo {at}" for at in range(count)], rows)
    sign = np.where(np.repeat(np.arange(count), rows) % 2 == 0, 1, -1)
    y = 500 + 20 * sign * X[:, 0] + 5 * X[:, 1] + random.normal(size=len(X))
    return X, y, groups


@pytest.mark.parametrize("kind", NUMBERS)
def test_silos_predict_numbers_in_their_own_units(kind: Any) -> None:
    X, y, groups = lines()
    regressor = small(kind).fit(X, y, groups=groups)
    assert regressor.score(X, y, groups=groups) > 0.9
    assert abs(regressor.predict(X, groups=groups).mean() - 500) < 5
    swapped = np.where(groups == "silo 0", "silo 1", "silo 0")
    apart = groups != "silo 2"
    assert regressor.score(X[apart], y[apart], groups=swapped[apart]) < 0
    again = pickle.loads(pickle.dumps(regressor))
    assert np.array_equal(again.predict(X, groups=groups), regressor.predict(X, groups=groups))
    newcomer = regressor.adapt(X[:40], y[:40], silo="new")
    assert newcomer.score(X[40:60], y[40:60]) > 0.9
    with pytest.raises(ValueError, match="1 number for each row"):
        regressor.adapt(X[:40], np.zeros((40, 2)))


@pytest.mark.parametrize("kind", NUMBERS)
def test_several_numbers_and_outliers(kind: Any) -> None:
    X, y, groups = lines()
    both = np.column_stack([y, 0.001 * X[:, 2]])
    regressor = small(kind).fit(X, both, groups=groups)
    said = regressor.predict(X, groups=groups)
    assert said.shape == both.shape and regressor.score(X, both, groups=groups) > 0.8
    wild = y.copy()
    wild[::20] += 400
    clean = np.arange(len(y)) % 20 != 0

    def off(loss: str) -> float:
        said = small(kind, loss=loss).fit(X, wild, groups=groups).predict(X, groups=groups)
        return float(np.abs(said - y)[clean].mean())

    assert off("huber") < 0.8 * off("squared")


def test_ridge_regression_is_that_of_scikit_learn() -> None:
    from sklearn.linear_model import Ridge

    X, y, _ = lines(count=1)
    fitted = small(RegularizedRegressor, intercept=False, scaling="none").fit(X, y)
    # (1/N) sum (s theta - t)^2 / 2 + sum_q strength_q theta_q^2, after the change s_q -> s_q / sqrt(2 N strength_q).
    root = np.sqrt(2 * len(X) * fitted.strengths_)
    t = (y - y.mean()) / y.std()
    ridge = Ridge(alpha=1.0, fit_intercept=False, tol=1e-12).fit(X / root, t)
    assert np.allclose(fitted.predict(X), ridge.predict(X / root) * y.std() + y.mean(), rtol=1e-8)
