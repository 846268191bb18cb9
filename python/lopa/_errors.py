"""The errors of the command line as exceptions."""

from __future__ import annotations

import traceback
from typing import Any


class Error(Exception):
    """An error to act on: what is wrong, where, and what to do about it."""

    def __init__(self, id: str, message: str, place: str | None = None, hint: str | None = None):
        super().__init__(id, message, place, hint)
        self.id = id
        """A stable identifier, such as `config/unknown-key`."""
        self.message = message
        """What is wrong, in one sentence."""
        self.place = place
        """The key, the file with line and column, the argument."""
        self.hint = hint
        """The remedy."""

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        hint = f"\n  help: {self.hint}" if self.hint else ""
        return f"{place}{self.message}{hint}"


class RunError(Error):
    """A run failed."""


class DivergedError(RunError):
    """No run survived: all of them diverged, and their numbers mean nothing."""

    run: Any = None
    """The `lopa.Run` with what was measured, where there is one."""


class DivergenceWarning(UserWarning):
    """Some runs diverged: their algorithms are not ranked, and their models mean nothing."""


class LabelWarning(UserWarning):
    """Labels that look like two spellings of one class, such as `Benign` and `benign`."""


class ConfigError(Error, ValueError):
    """An invalid experiment, problem or argument."""


class DataError(Error, ValueError):
    """Data that are missing or malformed."""


class NetworkError(Error, ValueError):
    """An invalid graph or invalid weights."""


class StorageError(Error, OSError):
    """A file that cannot be written or read back."""

    def __str__(self) -> str:
        return Error.__str__(self)


class PeerError(Error):
    """A peer was lost or did not respond in time."""


class RefusedError(Error):
    """A peer rejected this node's key or terms, or this node rejected a peer's."""


class MismatchError(Error):
    """Saved results that differ from recomputed ones."""


class LeftError(Error):
    """This node is no longer a member of the run: the others go on without it."""


def describe(error: BaseException) -> tuple[str, str, str | None, str | None]:
    """Kind, message, place and hint of an exception, for output without a traceback."""
    if isinstance(error, Error):
        return type(error).__name__, error.message, error.place, error.hint
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/lopa/_" not in frame.filename and "site-packages" not in frame.filename
    ]
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    text = str(error)
    lines = text.splitlines()
    first = lines[0] if lines else ""
    return "RunError", f"{type(error).__name__}: {first}" if first else type(error).__name__, place, None
