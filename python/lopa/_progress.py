"""Shows the progress of runs: a line in a terminal, a bar in a notebook."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Tell = Callable[[str, str], None]


@contextmanager
def teller(progress: bool | Callable[[str, dict[str, Any]], None] | None) -> Iterator[Tell]:
    """The function that receives the events."""
    if callable(progress):
        listener = progress
        yield lambda event, values: listener(event, json.loads(values))
        return
    shown: _Line | None = None
    if progress is None:
        progress = _notebook() or sys.stderr.isatty()
    if progress:
        shown = _Bar() if _notebook() else _Line()

    def tell(event: str, text: str) -> None:
        values = json.loads(text)
        if event == "warn":
            warnings.warn(values["text"], stacklevel=4)
        elif shown is not None:
            shown.tell(event, values)

    try:
        yield tell
    finally:
        if shown is not None:
            shown.close()


def _notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


class _Line:
    """A line that is overwritten."""

    def __init__(self) -> None:
        self.runs = 0
        self.number = 0
        self.name = ""

    def tell(self, event: str, values: dict[str, Any]) -> None:
        if event == "started":
            self.runs = values["runs"]
        elif event in ("begin", "skip"):
            self.number += 1
            self.name = f"[{self.number}/{self.runs}] {values['algorithm']}, seed {values['seed']}"
            self.show(0.0)
        elif event == "progress":
            self.show(min(values["fraction"], 1.0))
        elif event == "end":
            self.show(1.0)

    def show(self, fraction: float) -> None:
        sys.stderr.write(f"\r{self.name:<40} {round(100 * fraction):>3}%")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r" + " " * 46 + "\r")


class _Bar(_Line):
    """A bar that the browser draws."""

    def __init__(self) -> None:
        super().__init__()
        import IPython.display

        notebook: Any = IPython.display
        self.html: Any = notebook.HTML
        self.handle: Any = notebook.display(self.html(""), display_id=True)

    def show(self, fraction: float) -> None:
        bar = f'<progress value="{fraction:.3f}" max="1"></progress> {self.name}'
        self.handle.update(self.html(bar))

    def close(self) -> None:
        self.handle.update(self.html(""))
