"""Distributions at several points as one: what an integral over the points averages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np


class Stackable(ABC):
    """A distribution whose parameters take leading axes, so that several become one."""

    def is_of_kind(self, other: Any) -> bool:
        """Return whether both differ in their parameters alone."""
        return type(other) is type(self)

    @abstractmethod
    def beside(self, each: Sequence[Self], axes: tuple[int, ...]) -> Self:
        """Return distributions of this kind and shape, this one among them, as one of shape (*axes, *own shape)."""


class SideBySide:
    """Distributions at P points, of the same own shape, as one of shape (P, *own shape), with the methods of each."""

    def __init__(self, each: Sequence[Any], axes: tuple[int, ...]) -> None:
        self._each, self._axes = each, axes

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        if name.startswith("_"):  # what copying and pickling ask for before there are any
            raise AttributeError(name)
        methods = [getattr(law, name) for law in self._each]

        def at_all(*values: Any) -> np.ndarray:
            stacked = np.stack([np.asarray(method(*values)) for method in methods])
            return stacked.reshape(*self._axes, *stacked.shape[1:])

        return at_all

    def support(self) -> tuple[float, float]:
        """Return ends outside of which there is nothing."""
        ends = [law.support() if hasattr(law, "support") else (-np.inf, np.inf) for law in self._each]
        return float(np.min([low for low, _ in ends])), float(np.max([high for _, high in ends]))


def stacked(each: Sequence[Any], axes: tuple[int, ...]) -> Any:
    """Return distributions at points as one, which computes at all points at once where they are of one kind."""
    first = each[0]
    if isinstance(first, Stackable) and all(first.is_of_kind(law) for law in each):
        return first.beside(each, axes)
    return SideBySide(each, axes)
