"""Models with fields as parameters: the common base of integrated (`over`) and sampled (`over_draws`) ones."""

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
    """A model in which some fields of another model are parameters."""

    of: ClassVar[type[Model]]
    """The class of the other model."""
    base: Any
    """The other model; its remaining fields stay fixed."""
    priors: Any

    def __str__(self) -> str:
        """Name the model, its fixed fields, and the priors of the others."""
        return f"over({self.base}, {self.priors})"

    def axes_of_fields(self) -> Axes:
        """Return the axes of fields that have a prior and are arrays."""
        declared = hyperparameters(self.base)
        return {name: declared[name].axes for name in self.priors if np.ndim(getattr(self.base, name))}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes of the model's fields."""
        sizes: dict[str, int] = self.base.sizes(data)
        return sizes


class OverByDraws(Model, family=True):
    """Some fields may be parameters that are sampled, as the evidence given them has no closed form."""

    @classmethod
    @abstractmethod
    def kind_over(cls) -> type[Model]:
        """Return the class of models of this class with some fields as parameters, made from a model and ``priors``."""


def domain(model: Model, name: str) -> Scale:
    """Return the range of a field: all numbers, or if it must be positive those above 0 or the model's bound."""
    field = hyperparameters(model)[name]
    is_positive = field.positive or field.matrix  # a multiple of the identity matrix
    return Scale(float(model.lower_bounds.get(name, 0.0))) if is_positive else Scale()


def require_fields(model: Model, names: Sequence[str]) -> None:
    """Raise `InputError` unless all names are different numeric fields of the model.

    A matrix is one where its value is a number, which stands for that multiple of the identity.
    """
    declared = hyperparameters(model)
    matrices = [name for name, field in declared.items() if field.matrix and np.ndim(getattr(model, name))]
    numeric = [name for name, field in declared.items() if not field.whole and name not in matrices]
    hint = f"{model.name} has {', '.join(numeric)}"
    if not names:
        raise InputError(
            f"over which fields? {hint}", "unknown_field", hint="name a few: over all of them the prior may collapse"
        )
    for name in names:
        if name in declared and name not in numeric:
            kind = "a matrix" if name in matrices else "a whole number"
            problem = f"over {name}: it is {kind}, and only numbers or vectors can be chosen"
            as_number = f"; as a number ({name}=1) it is that multiple of the identity, and can be chosen"
            raise InputError(problem, "unknown_field", hint=hint + as_number * declared[name].multiple)
        if name not in numeric:
            raise InputError(f"over {name}: {model.name} has no such numeric field", "unknown_field", hint=hint)
    if len(set(names)) < len(names):
        raise InputError(f"over {', '.join(names)}: a field is named twice", "duplicate_name")
