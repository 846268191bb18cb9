"""The device `framework`: iterations in JAX or PyTorch agree with those of the processor."""

from __future__ import annotations

import functools
import importlib
import types
from pathlib import Path
from typing import Any

import lopa
import numpy as np
import pytest
from experiments import blobs, interrupted
from experiments import experiment as usual

BOTH = {"alpha": {"over_sqrt": 0.02}, "beta": 0.1, "lambda": 0.05}
SINGLE = {"alpha": {"over_sqrt": 0.05}}

# Every method without inner loops, with the kinds of its parameters that change the list.
METHODS: list[dict[str, Any]] = [
    {"name": "lopa-gt", **BOTH},
    {"name": "lopa-gt", **BOTH, "lazy": True, "tau": 0.7, "gamma": {"over_sqrt": 0.6}},
    {"name": "lopa-lg", **BOTH},
    {"name": "d-soba", **BOTH},
    {"name": "sldbo", **BOTH},
    {"name": "zhang", **BOTH},
    {"name": "zhang", **BOTH, "order": "alternating"},
    {"name": "sparkle", **BOTH},
    {"name": "sparkle", **BOTH, "upper": "extra", "lower": "gt"},
    {"name": "sparkle", **BOTH, "upper": "gt", "lower": "extra"},
]
PERSONAL: list[dict[str, Any]] = [
    {"name": "local", **BOTH},
    {"name": "dgd", **SINGLE},
    {"name": "gt-sgd", **SINGLE},
    {"name": "extra", **SINGLE},
    {"name": "exact-diffusion", **SINGLE},
]
COSTS = ("gradients", "hessians", "jacobians", "samples", "exchanges", "bytes")


def experiment(problem: lopa.Problem, **more: Any) -> dict[str, Any]:
    """Without exact measures, which would take most of the time."""
    return usual(problem, **{**more, "run": {"exact": "never", **more.get("run", {})}})


@functools.cache
def silos(kit: Any, sizes: Any = (20, 20, 20, 20), **more: Any) -> lopa.Problem:
    """The representation problem on nodes with these numbers of rows; its compiled functions serve all tests."""
    features, labels = blobs(sum(sizes))
    cuts = np.cumsum(sizes)[:-1]
    nodes = list(zip(np.split(features, cuts), np.split(labels, cuts), strict=True))
    start = 0.3 * np.random.default_rng(2).standard_normal(28)
    return kit.representation(nodes, start, **more)  # type: ignore[no-any-return]


def both(whole: dict[str, Any], name: str = "devices") -> tuple[lopa.Run, lopa.Run]:
    """An experiment on the processor and in the framework."""
    return lopa.run(whole, out=f"{name}-cpu"), lopa.run(whole, out=f"{name}-framework", device="framework")


def apart(a: lopa.Run, b: lopa.Run, within: float) -> None:
    """Asserts that two runs have the same points up to rounding, and the same costs."""
    for at, result in enumerate(a.results):
        other = b.results[at]
        assert result.stop == other.stop == "finished", (result, other)
        for key in ("x", "theta"):
            want, found = (getattr(run.models[result.algorithm], key) for run in (a, b))
            worst = np.abs(want - found).max() / max(1.0, np.abs(want).max())
            assert worst < within, (result.algorithm, key, worst)
        for cost in COSTS:
            assert result.values[cost] == other.values[cost], (result.algorithm, cost)


@pytest.mark.parametrize("scope", ["personal", "global"])
def test_every_method_agrees_with_the_processor(folder: Path, kit: Any, scope: str) -> None:
    methods = METHODS + (PERSONAL if scope == "personal" else [])
    labelled = [{**method, "label": f"{method['name']}-{at}"} for at, method in enumerate(methods)]
    whole = experiment(
        silos(kit),
        scope=scope,
        network={"nodes": 4, "graph": "ring"},
        run={"iterations": 60, "evaluations": 3, "batch": 6},
        algorithm=labelled,
    )
    apart(*both(whole), within=1e-10)


@pytest.mark.parametrize(
    "run",
    [
        {},
        {"batch": 8},
        {"batch": 8, "shared_samples": True},
        {"batch": {"grad_g": 3, "hess_g": 4, "cross_g": 5, "grad_theta_f": 6}},
    ],
    ids=["full", "five", "shared", "own sizes"],
)
def test_200_iterations_in_double_precision(folder: Path, kit: Any, run: dict[str, Any]) -> None:
    run = {"iterations": 200, "evaluations": 7, **run}
    algorithm = [{"name": name, "alpha": 0.5, "beta": 0.2, "lambda": 0.2} for name in ("lopa-gt", "d-soba")]
    processor, framework = both(experiment(silos(kit), run=run, algorithm=algorithm))
    apart(processor, framework, within=1e-10)
    for a, b in zip(processor.rows, framework.rows, strict=True):
        assert a["iteration"] == b["iteration"] and a["loss"] == pytest.approx(b["loss"], rel=1e-10)
    assert framework.manifest["machine"]["device"] == "the framework of the problem"
    assert framework.manifest["computed_by"] == processor.manifest["computed_by"]


def test_200_iterations_in_single_precision(folder: Path, kit: Any) -> None:
    run = {"iterations": 200, "evaluations": 2, "batch": 8, "precision": "f32"}
    algorithm = [{"name": "lopa-gt", "alpha": 0.5, "beta": 0.2, "lambda": 0.2}]
    apart(*both(experiment(silos(kit), run=run, algorithm=algorithm)), within=1e-4)


def test_nodes_of_different_sizes(folder: Path, kit: Any) -> None:
    """Full batches of different lengths, in an order that has to be restored."""
    apart(*both(experiment(silos(kit, (7, 12, 7, 9)), run={"iterations": 30})), within=1e-10)
    uneven = silos(kit, (7, 12, 7, 9))
    apart(*both(experiment(uneven, run={"iterations": 30, "batch": 5}), "drawn"), within=1e-10)


@pytest.mark.parametrize("graph", ["star", "complete", "path"])
def test_long_and_short_rows_of_w(folder: Path, kit: Any, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By neighbours and as a matrix."""
    from lopa import _iterations

    whole = experiment(silos(kit), network={"nodes": 4, "graph": graph}, run={"iterations": 40, "batch": 4})
    apart(*both(whole, "neighbours"), within=1e-10)
    monkeypatch.setattr(_iterations, "MOST_LINKS", 0)
    apart(*both(whole, "matrix"), within=1e-10)


def test_a_run_has_the_same_bits_each_time_and_wherever_it_is_cut(folder: Path, kit: Any) -> None:
    whole = experiment(silos(kit), run={"iterations": 120, "evaluations": 3, "batch": 4})
    want = lopa.run(whole, out="a", device="framework")
    assert lopa.run(whole, out="b", device="framework").digest == want.digest
    again = experiment(silos(kit), run={"iterations": 120, "evaluations": 3, "batch": 4})
    assert lopa.run(again, out="c", device="framework").digest == want.digest
    cut = experiment(silos(kit), run={"iterations": 120, "evaluations": 3, "batch": 4}, checkpoint={"iterations": 7})
    done = lopa.run(cut, out="d", device="framework")
    for key in ("x", "theta"):
        assert np.array_equal(getattr(want.models["lopa-gt"], key), getattr(done.models["lopa-gt"], key))


@pytest.mark.parametrize("first", ["cpu", "framework"])
def test_a_run_resumes_on_the_other_device(folder: Path, kit: Any, first: str) -> None:
    def make(iterations: int) -> dict[str, Any]:
        run = {"iterations": iterations, "batch": 4, "evaluations": 20}
        return experiment(silos(kit), run=run, checkpoint={"iterations": 10})

    whole = interrupted(make, "parts", device=first)
    want = lopa.run(whole, out="whole")
    other = "framework" if first == "cpu" else "cpu"
    done = lopa.run(whole, out="parts", device=other, progress=False)
    assert done.status == "done" and len(list(Path("parts").iterdir())) == 1
    apart(want, done, within=1e-9)


def test_nothing_is_copied_to_the_host_in_iterations(folder: Path, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No number leaves the framework while it iterates; variables are read for measurements and checkpoints alone."""
    jax = kit.__name__ == "problems"
    module = importlib.import_module("lopa._jax_iterations" if jax else "lopa._torch_iterations")
    problem = silos(kit)
    inside, launched, read, looked = False, 0, [], 0

    def guarded(own: Any) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            assert not inside, f"{own} copies to the host"
            return own(*args, **named)

        return call

    if jax:
        from jax._src.array import ArrayImpl

        # On the processor NumPy reads an array of JAX where it lies: its functions must not see one.
        class Guarded:
            def __getattr__(self, name: str) -> Any:
                def call(*args: Any, **named: Any) -> Any:
                    assert not (inside and any(isinstance(arg, ArrayImpl) for arg in args)), f"{name} copies to the host"
                    return getattr(np, name)(*args, **named)

                of = getattr(np, name)
                return call if callable(of) and not isinstance(of, type) else of

        for name in ("__float__", "__int__", "__bool__", "__index__", "tolist", "item", "__dlpack__"):
            monkeypatch.setattr(ArrayImpl, name, guarded(getattr(ArrayImpl, name)))
        monkeypatch.setattr(module, "np", Guarded())
    else:
        import torch

        for name in ("cpu", "numpy", "tolist", "item", "__array__", "__float__", "__int__", "__bool__", "__index__"):
            monkeypatch.setattr(torch.Tensor, name, guarded(getattr(torch.Tensor, name)))

    own = {name: getattr(module.Iterations, name) for name in ("launch", "get", "sizes")}

    def launch(self: Any, count: int, rows: bytes, factors: bytes) -> None:
        nonlocal inside, launched
        inside = True
        try:
            own["launch"](self, count, rows, factors)
            self.wait()
        finally:
            inside = False
        launched += count

    def get(self: Any, at: int) -> Any:
        read.append(launched)
        return own["get"](self, at)

    def sizes(self: Any) -> Any:
        nonlocal looked
        looked += 1
        return own["sizes"](self)

    for function in (launch, get, sizes):
        monkeypatch.setattr(module.Iterations, function.__name__, function)
    run = lopa.run(experiment(problem, run={"iterations": 100, "evaluations": 2, "batch": 4}), device="framework")
    assert run.results[0].stop == "finished" and launched == 100
    assert set(read) <= {0, 50, 100} and looked == 10, (read, looked)
    # The guard itself works.
    inside = True
    with pytest.raises(AssertionError, match="copies to the host"):
        own["get"](types.SimpleNamespace(state=[_array(jax)]), 0)
    inside = False


def _array(jax: bool) -> Any:
    if jax:
        import jax.numpy as jnp

        return jnp.ones(2) * 2
    import torch

    return torch.ones(2)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"algorithm": [{"name": "ma-dsbo", "alpha": 0.05, "beta": 0.1, "lambda": 0.1}]}, "ma-dsbo"),
    ({"algorithm": [{"name": "lopa-gt"}]}, "step sizes"),
    ({"run": {"batch": 4, "epochs": True}}, "epochs"),
    ({"network": {"nodes": 4, "graph": "one-peer-exponential"}}, "changes it in every round"),
]


@pytest.mark.parametrize(("change", "named"), REFUSED, ids=[named for _, named in REFUSED])
def test_what_it_cannot_do_is_refused_by_name(folder: Path, kit: Any, change: dict[str, Any], named: str) -> None:
    with pytest.raises(lopa.ConfigError, match=named) as refusal:
        lopa.run(experiment(silos(kit), **change), device="framework")
    assert refusal.value.id == "device/refused" and refusal.value.hint and refusal.value.place
    assert not list(Path("runs").glob("*")), "no run folder is left"


def test_messages_are_refused(folder: Path, kit: Any) -> None:
    with pytest.raises(lopa.ConfigError) as refusal:
        lopa.run(experiment(silos(kit), messages={"compress": {"name": "top-k", "share": 0.5}}), device="framework")
    assert refusal.value.id == "device/messages"


def test_built_in_problems_are_refused(small: dict[str, Any]) -> None:
    with pytest.raises(lopa.ConfigError, match="not one in Python") as refusal:
        lopa.run(small, device="framework")
    assert refusal.value.id == "device/refused" and "cpu" in (refusal.value.hint or "")


def test_exceptions_come_back_as_they_were(folder: Path, kit: Any) -> None:
    """Those of a function that fails only on the device's path: on a batch of another shape."""
    problem = silos(kit, check=False)
    inner = problem.inner

    def fails(x: Any, theta: Any, batch: Any) -> Any:
        if batch[1].shape[0] == 5:
            raise ZeroDivisionError("mine")
        return inner(x, theta, batch)

    problem.inner = fails
    run = {"batch": {"grad_g": 6, "hess_g": 5, "cross_g": 6, "grad_theta_f": 6, "grad_x_f": 6}}
    with pytest.raises(ZeroDivisionError, match="mine"):
        lopa.run(experiment(problem, run=run), device="framework")


def test_a_file_names_it(file: Path) -> None:
    text = Path("mine.toml").read_text().replace("batch = 4 }", 'batch = 4, device = "framework" }')
    Path("mine.toml").write_text(text.partition('[[algorithm]]\nname = "spdb"')[0])
    run = lopa.run("mine.toml")
    assert run.manifest["machine"]["device"] == "the framework of the problem"
    assert run.results[0].stop == "finished"
