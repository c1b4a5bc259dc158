"""Compiled functions with their data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor


def without_c() -> Any:
    """Return a context in which PyTensor does not compile C, which takes seconds for functions that run rarely.

    Its fast mode compiles no graph, but would compile the inside of operations.
    """
    return pytensor.config.change_flags(cxx="")


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A compiled function, and the data arguments that follow the point.

    If PyTensor's own compiler made it, ``instead`` is the reason, and ``mode`` is PyTensor's.
    """

    function: Callable[..., Any]
    data: Sequence[np.ndarray] = ()
    instead: str = ""
    mode: str = ""

    def __call__(self, x: np.ndarray) -> Any:
        """Return the outputs at a flat point."""
        return self.function(x, *self.data)
