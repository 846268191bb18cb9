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


def test_the_readme_has_the_same_code() -> None:
    """The code that runs above is also what the repository's first page shows."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.S)
    assert block in (ROOT / "README.md").read_text()


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
