"""The Python on the pages runs."""

from __future__ import annotations

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
    file = folder / "page.py"
    file.write_text("\n".join(blocks))
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert names["run"].status == "done" and (folder / "report.html").exists()
    assert all(result.stop == "finished" for result in names["run"].results)
