"""The book's API reference agrees with the docstrings."""

from __future__ import annotations

import os
from pathlib import Path

import lopa
from reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "python-reference.md"


def test_the_reference_is_true() -> None:
    made = reference(Path(lopa.__file__).parent)
    if os.environ.get("UPDATE"):
        PAGE.write_text(made)
    assert PAGE.read_text() == made, "run `UPDATE=1 python/test`"


def test_every_name_has_a_docstring_and_an_entry() -> None:
    page = PAGE.read_text()
    for name in lopa.__all__:
        if name != "__version__":
            assert f"### lopa.{name}\n" in page, name
            assert getattr(lopa, name).__doc__, name
