"""Dictionaries as JSON: numpy's numbers and arrays are as good as Python's, paths are text."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from ._errors import ConfigError


def dumps(value: Any, place: str = "") -> str:
    """The text of a value; an error names the key that cannot be written."""
    return json.dumps(_plain(value, place))


def _plain(value: Any, place: str) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigError("config/out-of-range", f"`{place} = {value}` must be finite", place)
        return value
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                message = f"the key {key!r} must be a string"
                raise ConfigError("config/wrong-type", message, place or None)
        return {key: _plain(item, f"{place}.{key}" if place else key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{place}.{at}" if place else str(at)) for at, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # numpy
        return _plain(value.tolist(), place)
    message = f"`{place}` is of type {type(value).__name__}, which an experiment cannot hold"
    hint = "use numbers, strings, lists and dictionaries"
    raise ConfigError("config/wrong-type", message, place or None, hint)
