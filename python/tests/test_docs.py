"""The Python on the pages runs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

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
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert names["run"].status == "done" and (folder / "report.html").exists()
    assert all(result.stop == "finished" for result in names["run"].results)


def test_the_readme_has_the_same_code() -> None:
    """The code that runs above is also what the repository's first page shows."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.S)
    assert block in (ROOT / "README.md").read_text()


def test_the_chapter_on_scikit_learn_runs() -> None:
    sklearn = pytest.importorskip("sklearn")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/sklearn.md").read_text(), re.S)
    names: dict[str, Any] = {"__name__": "page"}
    with sklearn.config_context():
        exec(compile("\n".join(blocks), "docs/sklearn.md", "exec"), names)
    assert names["newcomer"].score(names["X"][~names["there"]], names["y"][~names["there"]]) > 0.9
    assert set(names["search"].best_params_) == {"ridge"}
