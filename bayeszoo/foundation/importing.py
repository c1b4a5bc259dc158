"""Libraries imported without what they load on the way and do not need."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module, which is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


@contextmanager
def later(name: str) -> Iterator[None]:
    """Let what the block imports import a module when it first uses it, and not before."""
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
    """Let what the block imports know nothing of who imports it.

    Where NumPyro is missing, ArviZ asks for it by `inspect.stack`, which looks at each module of the process and so
    loads every lazy one.
    """
    stack = inspect.stack
    inspect.stack = lambda context=1: [inspect.FrameInfo(None, "", 0, "", None, None)] * 2  # type: ignore
    try:
        yield
    finally:
        inspect.stack = stack
