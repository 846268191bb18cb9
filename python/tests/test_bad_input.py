"""Bad input: every mistake has its message, and none takes the interpreter down."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lopa
import numpy as np
import pytest

pytest.importorskip("jax")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from problems import experiment, ridge  # noqa: E402

A = np.random.default_rng(0).standard_normal((10, 3))
B = A.sum(axis=1)


def f(x: Any, theta: Any, batch: Any) -> Any:
    a, b = batch
    return jnp.mean((a @ theta - b) ** 2) / 2


def g(x: Any, theta: Any, batch: Any) -> Any:
    return f(x, theta, batch) + jnp.exp(x[0]) / 2 * jnp.sum(theta**2)


def problem(**changes: Any) -> lopa.Problem:
    parts: dict[str, Any] = {
        "outer": f,
        "inner": g,
        "x": np.zeros(1),
        "theta": np.zeros(3),
        "nodes": [lopa.Node(inner=(A, B)), lopa.Node(inner=(A + 1, B))],
    }
    return lopa.Problem(**{**parts, **changes})


def wild(size: int) -> Any:
    """Rows that are not numbers everywhere."""
    rows = A.copy()
    rows[2, 1] = [np.nan, np.inf][size]
    return rows


# A name, what is done, the exception, and what its message says.
Case = tuple[str, Callable[[], Any], type[Exception], str]

MADE: list[Case] = [
    ("outer is no function", lambda: problem(outer=3), lopa.ConfigError, "outer: `outer` must be a function"),
    ("inner is no function", lambda: problem(inner=None), lopa.ConfigError, "inner: `inner` must be a function"),
    ("no nodes", lambda: problem(nodes=[]), lopa.ConfigError, "there is no node"),
    ("a generator of nodes", lambda: problem(nodes=(n for n in [1])), lopa.ConfigError, "read only once"),
    ("one node without a list", lambda: problem(nodes=lopa.Node(A)), lopa.ConfigError, "a list of lopa.Node"),
    ("arrays for nodes", lambda: problem(nodes=[A, A]), lopa.ConfigError, "node 0 is of type ndarray"),
    ("an integer leaf of x", lambda: problem(x={"a": np.arange(3)}), lopa.ConfigError, r"x\['a'\]: entries of type int64"),
    ("an integer leaf of theta", lambda: problem(theta=[np.zeros(2), np.ones(2, int)]), lopa.ConfigError, r"theta\[1\]"),
    ("NaN in x", lambda: problem(x=np.array([np.nan])), lopa.ConfigError, "x: an entry is not finite"),
    ("an empty theta", lambda: problem(theta={}), lopa.ConfigError, "`theta` is empty"),
    ("a theta without entries", lambda: problem(theta=np.zeros(0)), lopa.ConfigError, "has no entries"),
    ("text in x", lambda: problem(x="start"), lopa.ConfigError, "x: entries of type"),
    ("NaN in data", lambda: problem(nodes=[lopa.Node((wild(0), B))]), lopa.DataError, r"nodes\[0\].inner\[0\]: nan at \[2, 1\]"),
    ("infinity in data", lambda: problem(nodes=[lopa.Node((wild(1), B))]), lopa.DataError, r"inf at \[2, 1\]"),
    ("arrays of other lengths", lambda: problem(nodes=[lopa.Node((A, B[:4]))]), lopa.DataError, "4 rows, but 10"),
    ("nodes with other columns", lambda: problem(nodes=[lopa.Node((A, B)), lopa.Node((A[:, :2], B))]), lopa.DataError, "other arrays than node 0"),
    ("a node without rows", lambda: problem(nodes=[lopa.Node((A[:0], B[:0]))]), lopa.DataError, "no rows"),
    ("lists for data", lambda: problem(nodes=[lopa.Node([1.0, 2.0])]), lopa.DataError, "of type list, not an array"),
    ("a generator for data", lambda: problem(nodes=[lopa.Node(iter([1]))]), lopa.DataError, "not an array"),
    ("text for data", lambda: problem(nodes=[lopa.Node((A, np.array(["a"] * 10)))]), lopa.DataError, "not numbers"),
    ("an unknown framework", lambda: problem(backend="tensorflow"), lopa.ConfigError, "must be 'jax' or 'torch'"),
    ("an unknown way to train", lambda: problem(trains="x"), lopa.ConfigError, "must be 'theta' or 'both'"),
    ("metrics without names", lambda: problem(metrics=[f]), lopa.ConfigError, "must be a dictionary"),
    ("a metric with a taken name", lambda: problem(metrics={"loss": f}), lopa.ConfigError, "the name is taken"),
    ("a metric that is no function", lambda: problem(metrics={"a": 1}), lopa.ConfigError, "the metric `a` must be a function"),
]


def checked(**changes: Any) -> Callable[[], Any]:
    return lambda: problem(**changes).check()


def stopped(x: Any, theta: Any, batch: Any) -> Any:
    return g(jax.lax.stop_gradient(x), theta, batch)


def frozen(x: Any, theta: Any, batch: Any) -> Any:
    return g(x, jax.lax.stop_gradient(theta), batch)


def half(x: Any, theta: Any, batch: Any) -> Any:
    a, b = batch
    return jnp.mean((a @ jax.lax.stop_gradient(theta) - b) * (a @ theta - b)) + jnp.sum(theta**2) * jnp.exp(x[0])


@jax.custom_vjp
def odd(theta: Any) -> Any:
    return jnp.sum(theta**2)


odd.defvjp(lambda theta: (odd(theta), theta), lambda theta, grad: (3 * theta * grad,))

CHECKED: list[Case] = [
    ("a loss per row", checked(outer=lambda x, t, b: (b[0] @ t) ** 2), lopa.ConfigError, "outer: the loss must be a scalar"),
    ("an integer loss", checked(outer=lambda x, t, b: jnp.sum(b[0] @ t > 0)), lopa.ConfigError, "floating-point number"),
    ("a sum over rows", checked(outer=lambda x, t, b: jnp.sum((b[0] @ t - b[1]) ** 2)), lopa.ConfigError, "make it a mean over the batch"),
    ("log of zero", checked(outer=lambda x, t, b: f(x, t, b) + jnp.log(t[0])), lopa.ConfigError, "the loss of node 0 is -inf"),
    ("an outer loss that ignores theta", checked(outer=lambda x, t, b: jnp.mean(b[0]) * x[0]), lopa.ConfigError, "does not depend on theta"),
    ("an inner loss that ignores theta", checked(inner=lambda x, t, b: jnp.mean(b[0]) * x[0] ** 2), lopa.ConfigError, "theta: the inner loss does not depend on it"),
    ("a leaf of theta that nobody uses", checked(theta={"a": np.zeros(3), "b": np.zeros(2)}, outer=lambda x, t, b: f(x, t["a"], b), inner=lambda x, t, b: g(x, t["a"], b)), lopa.ConfigError, r"theta\['b'\]: the inner loss does not depend on it"),
    ("an entry of theta without curvature", checked(inner=lambda x, t, b: f(x, t * jnp.array([1.0, 1.0, 0.0]), b) + jnp.exp(x[0]) * jnp.sum(t[:2] ** 2)), lopa.ConfigError, "theta: the inner loss has no curvature"),
    ("a leaf of x that nobody uses", checked(x=[np.zeros(1), np.zeros(2)], outer=lambda x, t, b: f(x[0], t, b), inner=lambda x, t, b: g(x[0], t, b)), lopa.ConfigError, r"x\[1\]: neither"),
    ("no curvature", checked(inner=lambda x, t, b: jnp.mean(b[0] @ t) * jnp.exp(x[0])), lopa.ConfigError, "no curvature"),
    ("negative curvature", checked(inner=lambda x, t, b: jnp.exp(x[0]) * jnp.mean(jnp.cos(b[0] @ t))), lopa.ConfigError, "curves downwards"),
    ("a detached x", checked(inner=stopped), lopa.ConfigError, "x: `inner` changes with it .* but its derivative is 0"),
    ("a detached theta", checked(inner=frozen), lopa.ConfigError, "theta: `inner` changes with it .* derivative is 0"),
    ("half a term detached", checked(inner=half), lopa.ConfigError, "theta: the derivative of `inner` is"),
    ("a wrong custom derivative", checked(outer=lambda x, t, b: odd(t)), lopa.ConfigError, "theta: the derivative of `outer` is .* but differences say"),
    ("shapes that do not fit", checked(theta=np.zeros(4)), TypeError, "dot_general"),
    ("two arguments", checked(outer=lambda x, t: 0.0), TypeError, "positional argument"),
    ("a conversion to NumPy", checked(outer=lambda x, t, b: np.sum(np.asarray(t))), jax.errors.TracerArrayConversionError, "numpy.ndarray conversion"),
    ("an exception in the loss", checked(inner=lambda x, t, b: 1 / 0), ZeroDivisionError, "division by zero"),
]


def running(source: Any = None, **more: Any) -> Callable[[], Any]:
    return lambda: lopa.run(experiment(problem()) if source is None else source(), **more)


def with_metric(metric: Any) -> Callable[[], Any]:
    return lambda: lopa.run(experiment(problem(metrics={"own": metric})))


RUN: list[Case] = [
    ("another number of nodes", lambda: lopa.run(experiment(problem(), network={"nodes": 3})), lopa.ConfigError, "the problem has 2 nodes, and the network 3"),
    ("no experiment", lambda: lopa.run(3), lopa.ConfigError, "a file or a dictionary"),  # type: ignore[arg-type]
    ("an empty experiment", lambda: lopa.run({}), lopa.ConfigError, r"section `\[problem\]` is missing"),
    ("no file", lambda: lopa.run("nowhere.toml"), lopa.ConfigError, "nowhere.toml: cannot read"),
    ("a key that is no string", lambda: lopa.run({1: 2}), lopa.ConfigError, "must be a string"),  # type: ignore[dict-item]
    ("an object in an experiment", lambda: lopa.run({"run": {"batch": object()}}), lopa.ConfigError, "run.batch: `run.batch` is of type object"),
    ("NaN in an experiment", lambda: lopa.check(experiment(problem(), run={"batch": float("nan")})), lopa.ConfigError, "run.batch: .* must be finite"),
    ("a misspelt key", lambda: lopa.check(experiment(problem(), run={"itertions": 3})), lopa.ConfigError, "run.itertions: unknown key .*\n.*did you mean `iterations`"),
    ("a misspelt algorithm", lambda: lopa.check(experiment(problem(), algorithm=[{"name": "lopa-gtt"}])), lopa.ConfigError, "algorithm.0.name: unknown algorithm"),
    ("a bad step size", lambda: lopa.check(experiment(problem()), set={"algorithm.lopa-gt.alpha": -1}), lopa.ConfigError, "set: algorithm.lopa-gt.alpha=-1: .* positive"),
    ("an override without a value", running(set=["run.batch"]), lopa.ConfigError, "needs a `=`"),
    ("an override of nothing", running(set={"nothing.here": 1}), lopa.ConfigError, "nothing"),
    ("no threads", running(threads=0), lopa.ConfigError, "cannot run on 0 threads"),
    ("half a thread", running(threads=0.5), lopa.ConfigError, "cannot run on 0.5 threads"),
    ("a file for a folder", lambda: (Path("file").write_text(""), lopa.run(experiment(problem()), out="file")), lopa.StorageError, "file"),
    ("data for a problem without", lambda: lopa.run(experiment(problem(), data="digits")), lopa.ConfigError, "takes no data"),
    ("an exception in a metric", with_metric(lambda x, t, b: {}["key"]), KeyError, "key"),
    ("a metric that is no number", with_metric(lambda x, t, b: "high"), lopa.ConfigError, "the metric `own` must be a number"),
    ("a metric with a shape", with_metric(lambda x, t, b: t), lopa.ConfigError, r"its shape is \(3,\)"),
    ("a node function that returns no node", lambda: lopa.run(experiment(problem(nodes=[lambda: A, lambda: A]))), lopa.ConfigError, "not a lopa.Node"),
    ("a node function that fails", lambda: lopa.run(experiment(problem(nodes=[lambda: 1 / 0] * 2))), ZeroDivisionError, "division"),
    ("a file without a problem's name", lambda: lopa.check(experiment({"name": "python", "file": "mine.py"})), lopa.ConfigError, "mine.py:problem"),
    ("a file that is not there", lambda: lopa.check(experiment({"name": "python", "file": "no.py:p"})), lopa.ConfigError, "there is no file no.py"),
    ("a python problem without a file", lambda: lopa.check(experiment({"name": "python"})), lopa.ConfigError, "which problem"),
    ("an unknown digest", lambda: lopa.check(experiment({"name": "python", "digest": "0"})), lopa.ConfigError, "another Python process"),
    ("no run folder", lambda: lopa.Run.load("nowhere"), lopa.StorageError, "not a run folder"),
    ("an unknown graph", lambda: lopa.graph("rign", nodes=4), lopa.ConfigError, "did you mean `ring`"),
    ("a graph without nodes", lambda: lopa.graph("ring", nodes=0), lopa.ConfigError, "from 1 on"),
    ("a parameter of no graph", lambda: lopa.graph("ring", nodes=4, p=0.4), lopa.ConfigError, "unknown key `p`"),
    ("an unknown partition", lambda: lopa.partition("iidd", [0, 1], nodes=1), lopa.ConfigError, "did you mean `iid`"),
    ("labels with a shape", lambda: lopa.partition("iid", A, nodes=1), lopa.ConfigError, "labels: .* a value for each row"),
    ("more nodes than rows", lambda: lopa.partition("iid", [0, 1], nodes=5), lopa.DataError, "need more than 2"),
    ("groups of another length", lambda: lopa.partition("group", [0, 1], nodes=1, groups=[0]), lopa.ConfigError, "1 groups for 2 labels"),
]

CASES = [*MADE, *CHECKED, *RUN]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_bad_input(case: Case, folder: Path) -> None:
    _, act, kind, message = case
    with pytest.raises(kind, match=message):
        act()


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 40


def test_a_sound_problem_passes() -> None:
    problem().check()
    ridge().check()


def test_errors_have_parts() -> None:
    with pytest.raises(lopa.ConfigError) as caught:
        lopa.check(experiment(problem(), run={"itertions": 3}))
    error = caught.value
    assert error.id == "config/unknown-key" and error.place == "run.itertions"
    assert error.hint is not None and "iterations" in error.hint
    assert isinstance(error, ValueError) and isinstance(error, lopa.Error)


def test_the_check_can_be_switched_off() -> None:
    unsound = problem(inner=lambda x, t, b: g(x, t, b) + 0 * jnp.sum(t), outer=lambda x, t, b: f(x, t, b), check=False)
    assert lopa.run(experiment(unsound)).status == "done"


def test_a_broken_file_raises_its_own_exception(folder: Path) -> None:
    Path("mine.py").write_text("import lopa\nproblem = undefined\n")
    with pytest.raises(NameError, match="undefined"):
        lopa.check(experiment({"name": "python", "file": "mine.py:problem"}))
    Path("other.py").write_text("problem = 3\n")
    with pytest.raises(lopa.ConfigError, match="of type int"):
        lopa.check(experiment({"name": "python", "file": "other.py:problem"}))


def test_names_that_a_run_does_not_have(small: dict[str, Any]) -> None:
    run = lopa.run(small)
    with pytest.raises(KeyError):
        run.models["dgd"]
    with pytest.raises(lopa.ConfigError, match="there are: lopa-gt, lopa-lg"):
        run.model("dgd")
    with pytest.raises(lopa.ConfigError, match="no run of seed 9"):
        run.model("lopa-gt", seed=9)
    with pytest.raises(IndexError, match="nodes 0 to 3"):
        run.models["lopa-gt"][4]


def test_a_run_folder_that_is_gone(small: dict[str, Any]) -> None:
    run = lopa.run(small)
    shutil.rmtree(run.path)
    with pytest.raises(lopa.StorageError):
        run.report("out.html")
    with pytest.raises(lopa.StorageError):
        run.models["lopa-gt"]


def test_a_report_that_cannot_be_written(small: dict[str, Any]) -> None:
    with pytest.raises(lopa.StorageError, match="cannot write the report"):
        lopa.run(small).report("no/such/folder/out.html")
