"""The registries from which experiments choose."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _lopa


@dataclass(frozen=True)
class Entry:
    """An entry that experiments choose by name."""

    name: str
    about: str
    """One line on what it is."""
    scopes: tuple[str, ...] = ()
    """Of an algorithm: the scopes that it serves."""
    sends: str = ""
    """Of an algorithm: what a node sends to its neighbours."""
    loops: str = ""
    """Of an algorithm: its inner loops."""
    source: str = ""
    """Of an algorithm: where it is from."""


def _entries(kind: str) -> list[Entry]:
    def entry(values: dict[str, Any]) -> Entry:
        return Entry(**{**values, "scopes": tuple(values.get("scopes", ()))})

    return [entry(values) for values in json.loads(_lopa.listing())[kind]]


def algorithms() -> list[Entry]:
    """The algorithms."""
    return _entries("algorithms")


def problems() -> list[Entry]:
    """The built-in problems."""
    return _entries("problems")


def graphs() -> list[Entry]:
    """The kinds of graphs."""
    return _entries("graphs")


def weights() -> list[Entry]:
    """The rules for mixing weights."""
    return _entries("weights")


def partitions() -> list[Entry]:
    """The ways to split data over nodes."""
    return _entries("partitions")


def data_sources() -> list[Entry]:
    """The data sources."""
    return _entries("data")
