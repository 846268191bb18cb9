"""Features specific to PyTorch: modules, buffers, and mistakes with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lopa
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch_problems as kit  # noqa: E402
from experiments import built_in, experiment, rows_of, start_of  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

A = np.random.default_rng(0).standard_normal((10, 3))
B = A.sum(axis=1)


@pytest.mark.parametrize("run", [{}, {"batch": 8}, {"batch": 8, "shared_samples": True}], ids=str)
def test_modules_have_the_trajectory_of_the_built_in_problem(folder: Path, run: dict[str, Any]) -> None:
    file = built_in(folder, **run)
    theirs = lopa.run(file)
    start = start_of(file)
    problem = kit.of_modules(rows_of(theirs), start)
    body = problem.x_layout.modules["x"]
    before = body[0].weight.clone()
    ours = lopa.run({**{k: file[k] for k in ("network", "run", "algorithm")}, "problem": problem})
    for node in range(4):
        want, model = theirs.models["lopa-gt"][node], ours.models["lopa-gt"][node]
        assert isinstance(model.x, nn.Sequential) and isinstance(model.theta, nn.Linear)
        weights = model.x[0].weight.detach().numpy()
        assert weights.dtype == np.float64, "as it was given"
        assert np.abs(weights.T.ravel() - want.x[:24]).max() < 1e-9
        flat = ours.models["lopa-gt"].theta[node]
        assert np.abs(flat[:12].reshape(3, 4).T.ravel() - want.theta[:12]).max() < 1e-9
    assert torch.equal(body[0].weight, before), "a problem does not change what it was given"
    assert problem.x_layout.names == ["x.0.weight", "x.0.bias"]


def f(x: Any, theta: Any, batch: Any) -> Any:
    a, b = batch
    return ((a @ theta - b) ** 2).mean() / 2


def g(x: Any, theta: Any, batch: Any) -> Any:
    return f(x, theta, batch) + x[0].exp() / 2 * (theta**2).sum()


def problem(**changes: Any) -> lopa.Problem:
    parts: dict[str, Any] = {
        "outer": f,
        "inner": g,
        "x": torch.zeros(1),
        "theta": torch.zeros(3),
        "nodes": [lopa.Node(inner=(A, B)), lopa.Node(inner=(A + 1, B))],
    }
    return lopa.Problem(**{**parts, **changes})


def with_body(*layers: Any, **changes: Any) -> lopa.Problem:
    """A network with such layers, and a linear head."""

    def loss(x: Any, theta: Any, batch: Any) -> Any:
        return functional.mse_loss(theta(x(batch[0]))[:, 0], batch[1])

    def ridged(x: Any, theta: Any, batch: Any) -> Any:
        return loss(x, theta, batch) + 0.1 * sum((leaf**2).sum() for leaf in theta.parameters())

    torch.manual_seed(1)
    body = nn.Sequential(nn.Linear(3, 4), *layers)
    return problem(**{"outer": loss, "inner": ridged, "x": body, "theta": nn.Linear(4, 1), **changes})


class Scaled(nn.Module):  # type: ignore[misc]
    """A layer whose buffer changes with each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, a: Any) -> Any:
        self.calls += 1
        return torch.tanh(a) * self.calls


class Wrong(torch.autograd.Function):  # type: ignore[misc]
    generate_vmap_rule = True

    @staticmethod
    def forward(theta: Any) -> Any:
        return (theta**2).sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 3 * ctx.saved_tensors[0] * grad


def half(x: Any, theta: Any, batch: Any) -> Any:
    a, b = batch
    return ((a @ theta.detach() - b) * (a @ theta - b)).mean() + (theta**2).sum() * x[0].exp()


def forgetful(x: Any, theta: Any, batch: Any) -> Any:
    with torch.no_grad():
        strength = x[0].exp()
    return f(x, theta, batch) + strength / 2 * (theta**2).sum()


def numpy_trip(x: Any, theta: Any, batch: Any) -> Any:
    return torch.tensor(np.sum(theta.detach().numpy() ** 2))


shared = nn.Linear(3, 1)
Case = tuple[str, Callable[[], Any], type[Exception], str]

CASES: list[Case] = [
    ("an integer leaf", lambda: problem(x={"a": torch.arange(3)}), lopa.ConfigError, r"x\['a'\]: entries of type int64"),
    ("a complex leaf", lambda: problem(theta=torch.zeros(3, dtype=torch.complex64)), lopa.ConfigError, "theta: entries of type complex64"),
    ("NaN in a parameter", lambda: problem(x=torch.tensor([float("nan")])), lopa.ConfigError, "x: an entry is not finite"),
    ("a module without parameters", lambda: problem(x=nn.Sigmoid()), lopa.ConfigError, "`x` is empty"),
    ("a lazy module", lambda: problem(x=nn.LazyLinear(3)), lopa.ConfigError, r"x\.weight: not an array"),
    ("a leaf that is text", lambda: problem(x=[torch.zeros(1), "a"]), lopa.ConfigError, r"x\[1\]: entries of type"),
    ("two frameworks", lambda: problem(theta=pytest.importorskip("jax").numpy.zeros(3)), lopa.ConfigError, "arrays of JAX and of PyTorch"),
    ("a module twice", lambda: problem(x=[shared, shared]), lopa.ConfigError, r"x\[1\].weight: it is x\[0\].weight again"),
    ("a module of x and theta", lambda: problem(x=shared, theta=shared, outer=lambda x, t, b: f(x, t.weight[0], b)).check(), lopa.ConfigError, "theta.weight: it is x.weight too"),
    ("running statistics", lambda: with_body(nn.BatchNorm1d(4)).check(), lopa.ConfigError, r"x\.1\.running_mean: a buffer that `outer` changes"),
    ("a buffer of one's own", lambda: with_body(Scaled()).check(), lopa.ConfigError, r"x\.1\.calls: a buffer"),
    ("dropout", lambda: with_body(nn.Dropout(0.5)).check(), lopa.ConfigError, "not a function of its arguments"),
    ("a loss per row", lambda: problem(outer=lambda x, t, b: (b[0] @ t) ** 2).check(), lopa.ConfigError, r"outer: the loss must be a scalar, but its shape is \(10,\)"),
    ("a number for a loss", lambda: problem(outer=lambda x, t, b: 1.0).check(), lopa.ConfigError, "must be a floating-point number, but it is float"),
    ("an integer loss", lambda: problem(outer=lambda x, t, b: (b[0] @ t > 0).sum()).check(), lopa.ConfigError, "floating-point number, but it is torch.int64"),
    ("a sum over rows", lambda: problem(outer=lambda x, t, b: ((b[0] @ t - b[1]) ** 2).sum()).check(), lopa.ConfigError, "make it a mean over the batch"),
    ("log of zero", lambda: problem(outer=lambda x, t, b: f(x, t, b) + t[0].log()).check(), lopa.ConfigError, "the loss of node 0 is -inf"),
    ("a detached x", lambda: problem(inner=lambda x, t, b: g(x.detach(), t, b)).check(), lopa.ConfigError, "x: `inner` changes with it .* but its derivative is 0"),
    ("a detached theta", lambda: problem(inner=lambda x, t, b: g(x, t.detach(), b)).check(), lopa.ConfigError, "theta: `inner` changes with it .* derivative is 0"),
    ("half a term detached", lambda: problem(inner=half).check(), lopa.ConfigError, "theta: the derivative of `inner` is"),
    ("no_grad around a term", lambda: problem(inner=forgetful).check(), lopa.ConfigError, "x: `inner` changes with it"),
    ("a wrong rule of one's own", lambda: problem(outer=lambda x, t, b: Wrong.apply(t)).check(), lopa.ConfigError, "theta: the derivative of `outer` is .* but differences say"),
    ("a leaf that nobody uses", lambda: problem(x=[torch.zeros(1), torch.zeros(2)], outer=lambda x, t, b: f(x[0], t, b), inner=lambda x, t, b: g(x[0], t, b)).check(), lopa.ConfigError, r"x\[1\]: neither"),
    ("a module that nobody uses", lambda: with_body(nn.Sigmoid(), theta={"head": nn.Linear(4, 1), "more": nn.Linear(2, 2)}, outer=lambda x, t, b: functional.mse_loss(t["head"](x(b[0]))[:, 0], b[1]), inner=lambda x, t, b: functional.mse_loss(t["head"](x(b[0]))[:, 0], b[1]) + sum((p**2).sum() for p in t["head"].parameters())).check(), lopa.ConfigError, r"theta\['more'\].weight: the inner loss does not depend on it"),
    ("no curvature", lambda: problem(inner=lambda x, t, b: (b[0] @ t).mean() * x[0].exp()).check(), lopa.ConfigError, "no curvature"),
    ("shapes that do not fit", lambda: problem(theta=torch.zeros(4)).check(), RuntimeError, "size mismatch|shapes"),
    ("a round trip through NumPy", lambda: problem(outer=numpy_trip).check(), lopa.ConfigError, "theta: `outer` changes with it"),
    ("a tensor that requires a gradient as NumPy's", lambda: problem(outer=lambda x, t, b: torch.tensor(t.numpy().sum())).check(), RuntimeError, "numpy"),
    ("an exception in the loss", lambda: problem(inner=lambda x, t, b: 1 / 0).check(), ZeroDivisionError, "division by zero"),
    ("a loss per row, unchecked", lambda: lopa.run(experiment(problem(outer=lambda x, t, b: (b[0] @ t) ** 2, check=False))), lopa.ConfigError, "outer: the loss must be a scalar"),
    ("a branch on a value", lambda: lopa.run(experiment(problem(outer=lambda x, t, b: f(x, t, b) if t.sum() > -9 else 0 * t.sum()))), RuntimeError, "data-dependent control flow"),
    ("NaN in data", lambda: problem(nodes=[lopa.Node(torch.full((4, 3), float("nan")))]), lopa.DataError, r"nan at \[0, 0\]"),
    ("a metric with a shape", lambda: lopa.run(experiment(problem(metrics={"own": lambda x, t, b: t}))), lopa.ConfigError, r"its shape is \(3,\)"),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_bad_input(case: Case, folder: Path) -> None:
    _, act, kind, message = case
    with pytest.raises(kind, match=message):
        act()


@pytest.mark.parametrize(
    "layers",
    [[nn.Sigmoid()], [nn.Tanh(), nn.LayerNorm(4)], [nn.GELU(), nn.GroupNorm(2, 4)], [nn.BatchNorm1d(4).eval()]],
    ids=lambda layers: type(layers[-1]).__name__,
)
def test_modules_run(layers: list[Any]) -> None:
    run = lopa.run(experiment(with_body(*layers), run={"batch": 5}))
    assert run.results[0].stop == "finished"
    assert run.rows[-1]["loss"] < run.rows[0]["loss"]


def test_fixed_parameters_are_no_leaves() -> None:
    frozen = nn.Linear(4, 4)
    frozen.weight.requires_grad_(False)
    made = with_body(frozen, nn.Tanh())
    assert made.x_layout.names == ["x.0.weight", "x.0.bias", "x.1.bias"]
    made.check()
    other = nn.Linear(4, 4)
    other.load_state_dict(frozen.state_dict())
    other.weight.requires_grad_(False)
    assert with_body(other, nn.Tanh()).digest == made.digest
    other.weight.mul_(2)
    assert with_body(other, nn.Tanh()).digest != made.digest, "they are part of the problem"


def test_trees_of_tensors_and_modules() -> None:
    """Lists, tuples, tied weights, a buffer in single precision, data as tensors, methods of a module."""

    class Body(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.tied = nn.Linear(3, 3, bias=False)
            self.tied.weight = self.layer.weight
            self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))

        def encode(self, a: Any) -> Any:
            return self.tied(torch.tanh(self.layer(a * self.scale)))

    def loss(x: Any, theta: Any, batch: Any) -> Any:
        (body, shift), (w,) = x, theta
        return functional.mse_loss(body.encode(batch["a"]) @ w + shift, batch["b"])

    torch.manual_seed(2)
    nodes = [lopa.Node({"a": torch.tensor(A), "b": torch.tensor(B).float()}) for _ in range(2)]
    made = problem(
        outer=loss,
        inner=lambda x, t, b: loss(x, t, b) + 0.1 * (t[0] ** 2).sum(),
        x=(Body(), torch.zeros(())),
        theta=[torch.zeros(3, dtype=torch.bfloat16)],
        nodes=nodes,
    )
    assert made.x_layout.names == ["x[0].layer.weight", "x[0].layer.bias", "x[1]"]
    run = lopa.run(experiment(made, run={"batch": 4}))
    assert run.results[0].stop == "finished"
    body, shift = run.models["lopa-gt"][1].x
    assert body.tied.weight is body.layer.weight and shift.shape == ()
    assert run.models["lopa-gt"][1].theta[0].dtype == torch.bfloat16


def test_the_framework_is_told_by_the_arrays() -> None:
    assert problem()._backend.__name__ == "lopa._torch"
    assert problem(x=nn.Linear(1, 1))._backend.__name__ == "lopa._torch"
    numpy = {"x": np.zeros(1), "theta": np.zeros(3)}
    assert problem(**numpy, backend="torch")._backend.__name__ == "lopa._torch"
    data = [lopa.Node((torch.tensor(A), torch.tensor(B)))]
    assert problem(**numpy, nodes=data)._backend.__name__ == "lopa._torch"


def test_gradients_may_be_switched_off_outside() -> None:
    with torch.no_grad():
        off = lopa.run(experiment(kit.ridge()), out="off")
    assert off.digest == lopa.run(experiment(kit.ridge()), out="on").digest


def test_the_manifest_names_version_and_device() -> None:
    run = lopa.run(experiment(kit.ridge()))
    assert run.manifest["computed_by"].startswith(f"torch {torch.__version__} on ")
