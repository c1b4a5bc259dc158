"""Imports of libraries without modules that they load but do not need."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A stand-in for a module, which is imported on first use of an attribute."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


@contextmanager
def later(name: str) -> Iterator[None]:
    """Within the block, delay the import of a module to its first use."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = _Later(name)
    try:
        yield
    finally:
        del sys.modules[name]


@contextmanager
def without_stack() -> Iterator[None]:
    """Within the block, hide the call stack from imported modules.

    Without NumPyro, ArviZ calls `inspect.stack`, which looks at each module of the process and so
    loads every lazy one.
    """
    stack = inspect.stack
    inspect.stack = lambda context=1: [inspect.FrameInfo(None, "", 0, "", None, None)] * 2  # type: ignore
    try:
        yield
    finally:
        inspect.stack = stack
