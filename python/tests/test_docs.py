"""The Python on the pages runs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import lopa
import pytest
from commands import as_peers

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md"])
def test_the_code_on_a_page_runs(page: str, folder: Path) -> None:
    pytest.importorskip("jax")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    if importlib.util.find_spec("torch") is None:
        blocks = [block for block in blocks if "import torch" not in block]
    file = folder / "page.py"
    file.write_text("\n".join(blocks))
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert names["run"].status == "done" and (folder / "report.html").exists()
    assert all(result.stop == "finished" for result in names["run"].results)


README = """
import jax.numpy as jnp, numpy as np, lopa
random = np.random.default_rng(1)
silos = [(features, features @ np.arange(1.0, 9.0)) for features in random.normal(size=(4, 30, 8))]
"""


def test_the_problem_on_the_first_page_runs(folder: Path) -> None:
    """With four silos whose labels are linear in their features: regularisation goes down."""
    pytest.importorskip("jax")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    file = folder / "page.py"
    file.write_text(README + block)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    steps = {"alpha": 0.05, "beta": 0.05, "lambda": 0.05}
    run = lopa.run({
        "name": "first", "problem": names["problem"], "network": {"nodes": 4, "graph": "ring"},
        "run": {"iterations": 200, "batch": 10, "exact": "never"}, "algorithm": [{"name": "lopa-gt", **steps}],
    })  # fmt: skip
    assert run.rows[-1]["loss"] < run.rows[0]["loss"]
    assert all(model.x.mean() < 0 for model in run.models["lopa-gt"])


PEERS = """
name = "mine"
problem = { name = "python", file = "mine.py:problem" }
network = { nodes = 2, graph = "complete" }
run = { iterations = 60, batch = 32, evaluations = 2, exact = "never" }
algorithm = [{ name = "lopa-gt", alpha = 1.0, beta = 0.3, lambda = 0.3 }]
"""


def test_the_readmes_file_runs_as_two_peers(folder: Path) -> None:
    """With two silos instead of six; as the file of a problem, it does not run its main part."""
    pytest.importorskip("jax")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.S)
    assert block.count("nodes=6") == 1
    Path("mine.py").write_text(block.replace("nodes=6", "nodes=2"))
    Path("mine.toml").write_text(PEERS)
    (alice,), (bob,) = as_peers("mine.toml", ["alice", "bob"])
    assert alice == bob
    # XLA may sum in another order where it computes two nodes at once.
    one = lopa.run("mine.toml", out="one").rows[-1]["loss"]
    assert lopa.Run.load(next(Path("alice/alice").iterdir())).rows[-1]["loss"] == pytest.approx(one, rel=1e-4)
    assert not (folder / "report.html").exists()


def test_the_chapter_on_scikit_learn_runs() -> None:
    sklearn = pytest.importorskip("sklearn")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/sklearn.md").read_text(), re.S)
    names: dict[str, Any] = {"__name__": "page"}
    with sklearn.config_context():
        exec(compile("\n".join(blocks), "docs/sklearn.md", "exec"), names)
    assert names["newcomer"].score(names["X"][~names["there"]], names["y"][~names["there"]]) > 0.9
    assert set(names["search"].best_params_) == {"ridge"}
