"""The notebooks run, from the first cell to the last, and are kept without their outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

BOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
NEEDS = {"jax_problem": "jax", "pytorch_model": "torch", "quickstart": "sklearn"}


def test_all_are_there() -> None:
    names = {book.stem for book in BOOKS}
    assert names >= {"quickstart", "jax_problem", "pytorch_model", "comparing", "organisations"}, names


@pytest.mark.parametrize("book", BOOKS, ids=[book.stem for book in BOOKS])
def test_a_notebook_runs(book: Path, folder: Path) -> None:
    if needed := NEEDS.get(book.stem):
        pytest.importorskip(needed)
    content = nbformat.read(book, as_version=4)
    nbformat.validate(content)
    for cell in content.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None, "clear the outputs before saving"
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(content, timeout=250, kernel_name="python3", resources=resources).execute()
    shown = [output for cell in content.cells if cell.cell_type == "code" for output in cell.outputs]
    assert shown, "a notebook shows something"
    assert not [output for output in shown if output.output_type == "error"]
