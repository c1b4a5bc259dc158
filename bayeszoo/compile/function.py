"""What a compiled function is, whoever compiled it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor


def without_c() -> Any:
    """Return a context in which PyTensor compiles nothing in C, which takes seconds for what runs a few times.

    Its fast mode compiles nothing itself, but what is inside of operations.
    """
    return pytensor.config.change_flags(cxx="")


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A compiled function, and the data that it is called with behind the point.

    Where PyTensor's own compiler made it, ``instead`` says why, and ``mode`` is PyTensor's.
    """

    function: Callable[..., Any]
    data: Sequence[np.ndarray] = ()
    instead: str = ""
    mode: str = ""

    def __call__(self, x: np.ndarray) -> Any:
        """Evaluate it at a flat point."""
        return self.function(x, *self.data)
