"""Models with fields as parameters, sampled by Gibbs where the evidence given the fields has no closed form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from bayeszoo.distributions.priors import Priors
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays, Params, Statistics
from bayeszoo.model.base import Axes, Model
from bayeszoo.model.capabilities import Gibbs
from bayeszoo.model.outer.over_fields import OverFields, domain, require_fields
from bayeszoo.model.views import View

type Weigher = Callable[[int], np.ndarray]
"""From a number N, logs of N independent weights."""


@dataclass(frozen=True)
class OverDrawn(OverFields, Gibbs, family=True):
    """A model with some fields as parameters, sampled by Gibbs; made by `bz.over`.

    Parameters
    ----------
    base : Model
        The model; its other fields stay fixed. Chains start near its values of the fields.
    priors : mapping of str to Prior
        The priors of the fields.
    """

    base: Any
    priors: Priors = field(default=Priors(), kw_only=True)

    usual_method = "gibbs"

    def __post_init__(self) -> None:
        if isinstance(self.base, Mapping):  # as stored in a file
            object.__setattr__(self, "base", self.of(**self.base))
        object.__setattr__(self, "priors", priors := Priors(self.priors))
        require_fields(self.base, tuple(priors))
        for name, prior in priors.items():
            if not domain(self.base, name).holds(prior.scale):
                raise InputError(
                    f"{name} ~ {prior}: {name} must be positive, and this prior allows other values", "out_of_range"
                )
        dims = {**self.axes_of_fields(), **self.dims_of_others()}
        for name, value in {"dims": dims, "labels": self.base.labels}.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    @abstractmethod
    def dims_of_others(self) -> Axes:
        """Return the axes of the parameters that are not fields."""

    def views(self) -> frozenset[View]:
        """Show the same parts as the model."""
        views: frozenset[View] = self.base.views()
        return views

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """Return the model's remarks about the data."""
        remarks: tuple[str, ...] = self.base.remarks(stats, data)
        return remarks

    def declare(self, data: Arrays) -> NoReturn:
        """Refuse: the model's steps need numbers as fields, not tensors."""
        raise InputError(f"{self} has no density that PyMC samples", "no_density", hint="gibbs fits it")

    def weigher(self, draws: Params, data: Arrays, rng: np.random.Generator) -> Weigher | None:
        """Return what draws N log weights whose mean estimates the evidence, with a proposal about flat draws of a fit.

        None where there is no such estimate.
        """
        return None


def made_over(of: type[Model], kind: type[OverDrawn]) -> type[OverDrawn]:
    """Return the class of models ``of`` a class with some fields as parameters, with the steps of ``kind``."""
    steps = {"of": of, "inputs": of.inputs, "examples": of.examples, "__module__": of.__module__}
    return dataclass(frozen=True)(type(f"Over{of.__name__}", (kind,), steps))
