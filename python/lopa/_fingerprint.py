"""A digest of functions and data: whether two problems are the same one.

Functions count with their text, their defaults, their closures and the globals they use; modules and classes
of other packages count by name. It is not a proof: a function that reads a file or a clock has the same
digest whatever it reads.
"""

from __future__ import annotations

import hashlib
import inspect
import types
from collections.abc import Mapping
from typing import Any


def fingerprint(*values: Any) -> str:
    """SHA-256 of some values, in hexadecimal."""
    digest = _Digest()
    for value in values:
        digest.add(value)
    return digest.sha.hexdigest()


class _Digest:
    def __init__(self) -> None:
        self.sha = hashlib.sha256()
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []  # visited objects must not be freed: their addresses identify them

    def text(self, *words: str) -> None:
        for word in words:
            self.sha.update(word.encode("utf-8", "surrogatepass") + b"\0")

    def add(self, value: Any) -> None:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return self.text(type(value).__name__, repr(value))
        if id(value) in self.seen:
            return self.text("seen", str(self.seen[id(value)]))
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        if isinstance(value, Mapping):
            self.text("mapping", str(len(value)))
            for key, item in value.items():
                self.add(key)
                self.add(item)
        elif isinstance(value, tuple | list):
            self.text(type(value).__name__, str(len(value)))
            for item in value:
                self.add(item)
        elif isinstance(value, set | frozenset):
            self.text("set", *sorted(repr(item) for item in value))
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, types.MethodType):
            self.add(value.__func__)
            self.add(value.__self__)
        elif isinstance(value, types.ModuleType):
            self.text("module", value.__name__)
        elif isinstance(value, type):
            self.text("class", value.__module__, value.__qualname__, _source(value))
        elif hasattr(value, "__array__"):
            self.array(value)
        elif hasattr(value, "named_modules") and hasattr(value, "state_dict"):
            self.module(value)
        elif hasattr(value, "__wrapped__"):  # jitted, cached, …
            self.text(type(value).__qualname__)
            self.add(value.__wrapped__)
        elif hasattr(value, "func") and hasattr(value, "keywords"):  # functools.partial
            self.text("partial")
            self.add((value.func, value.args, value.keywords))
        else:
            self.add(type(value))
            if type(value).__module__.split(".")[0] not in _OTHERS:
                self.add(getattr(value, "__dict__", {}))

    def array(self, value: Any) -> None:
        import numpy as np

        from ._data import plain

        array = plain(value)
        self.text("array", str(array.dtype), str(array.shape))
        self.sha.update(np.ascontiguousarray(array).tobytes())

    def module(self, value: Any) -> None:
        """A module of PyTorch: its parts, their settings, and their tensors."""
        self.text("nn.Module", repr(value))
        for name, part in value.named_modules():
            self.text(name)
            self.add(type(part))
            self.add({key: item for key, item in vars(part).items() if not key.startswith("_")})
        for name, tensor in [*value.named_parameters(), *value.named_buffers()]:
            self.text(name, str(tensor.requires_grad))
            self.array(tensor)

    def function(self, value: types.FunctionType) -> None:
        code = value.__code__
        self.text("function", value.__name__, _source(value) or repr((code.co_code, code.co_names)))
        self.add(value.__defaults__)
        self.add(value.__kwdefaults__)
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            self.text(name)
            try:
                self.add(cell.cell_contents)
            except ValueError:
                self.text("empty")
        for name in sorted(_names(code)):
            if name in value.__globals__:
                self.text(name)
                self.add(value.__globals__[name])


_OTHERS = {"builtins", "jax", "jaxlib", "numpy", "torch", "functools", "scipy", "sklearn"}


def _names(code: types.CodeType) -> set[str]:
    """The globals that code may use, with those of functions in it."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _source(value: Any) -> str:
    if isinstance(value, type) and value.__module__.split(".")[0] in _OTHERS:
        return ""
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        return ""
