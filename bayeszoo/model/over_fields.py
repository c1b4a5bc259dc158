"""Fields of a model as parameters with priors of their own: what those that are integrated and drawn have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from bayeszoo.distributions.scale import Scale
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Axes, Model
from bayeszoo.model.fields import hyperparameters


class OverFields(Model, family=True):
    """A model with some fields of another as parameters."""

    of: ClassVar[type[Model]]
    """The class of the other model."""
    base: Any
    """The other model, whose other fields stay."""
    priors: Any

    def __str__(self) -> str:
        """Name the model, its fields that stay, and the priors of the others."""
        return f"over({self.base}, {self.priors})"

    def axes_of_fields(self) -> Axes:
        """Return the axes of those fields with a prior that are arrays."""
        known = hyperparameters(self.base)
        return {name: known[name].axes for name in self.priors if np.ndim(getattr(self.base, name))}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes of the model's fields."""
        sizes: dict[str, int] = self.base.sizes(data)
        return sizes


class OverByDraws(Model, family=True):
    """Some fields may be parameters that are drawn, as the evidence given them has no closed form."""

    @classmethod
    @abstractmethod
    def kind_over(cls) -> type[Model]:
        """Return the class of models of this class with some fields as parameters, made of a model and ``priors``."""


def domain(model: Model, name: str) -> Scale:
    """Say where a field may lie: above 0, or a larger number that the model says, where it must be positive."""
    is_positive = hyperparameters(model)[name].positive
    return Scale(float(model.lower_bounds.get(name, 0.0))) if is_positive else Scale()


def require_fields(model: Model, names: Sequence[str]) -> None:
    """Refuse names that are not of fields of numbers, each once."""
    every = hyperparameters(model)
    known = [name for name, field in every.items() if not (field.matrix or field.whole)]
    has = f"{model.name} has {', '.join(known)}"
    if not names:
        raise InputError(
            f"over which fields? {has}", "unknown_field", hint="name a few, as over all of them the prior may collapse"
        )
    for name in names:
        if name in every and name not in known:
            kind = "a matrix" if every[name].matrix else "a whole number"
            problem = f"over {name}: it is {kind}, and numbers or one for each column can be chosen"
            raise InputError(problem, "unknown_field", hint=has)
        if name not in known:
            raise InputError(f"over {name}: {model.name} has no such field of numbers", "unknown_field", hint=has)
    if len(set(names)) < len(names):
        raise InputError(f"over {', '.join(names)}: a field is named twice", "duplicate_name")
