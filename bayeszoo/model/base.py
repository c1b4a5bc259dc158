"""What a model is: the prior lives in the fields, the data in the arguments, and every method is a pure function.

A model has a capability when it has that capability's methods; a missing capability is a missing method. CONTRACT.md
gives the reason for each of them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast, runtime_checkable

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.model.capabilities import (
    Collapsed,
    Compiled,
    Enumerable,
    FoldIn,
    Hidden,
    Latent,
    Stochastic,
    Symmetric,
    Variational,
)
from bayeszoo.model.fields import hyperparameters, relabelled, text

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.data.inputs import Inputs
    from bayeszoo.data.read import Example
    from bayeszoo.distributions.posterior import Posterior


def _same(first: Any, second: Any) -> bool:
    """Compare class and fields: a number and a tuple differ, where NumPy would compare them entry by entry."""
    if type(first) is not type(second):
        return NotImplemented
    pairs = [(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)]
    return all(np.shape(one) == np.shape(other) and np.array_equal(one, other) for one, other in pairs)


Values = Mapping[str, Any]
"""Named arrays: parameters, or the canonical arrays of a data set."""

Axes = Mapping[str, tuple[str, ...]]
"""Names of the axes of named arrays."""


class Model(ABC):
    """A generative model. Subclasses are frozen dataclasses, one to a file.

    Attributes
    ----------
    name : str
        The class name in snake case; also the name of the model's file.
    inputs : Inputs
        What a user's table must hold.
    examples : tuple of Example
        Real data sets that come with the model; the first is its default.
    dims : mapping of str to tuple of str
        The axes of each parameter, or derived quantity, that has any.
    labels : mapping of str to tuple of str
        Of a model that was updated: the labels that its hyperparameters' entries belong to. `read` refuses others.
    """

    name: ClassVar[str]
    inputs: ClassVar[Inputs]
    examples: ClassVar[tuple[Example, ...]] = ()
    dims: ClassVar[Axes] = {}
    labels: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        words = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+", cls.__name__)
        cls.name = "_".join(word.lower() for word in words)
        cls.__eq__ = _same  # type: ignore[method-assign]  # which `dataclass` then keeps

    def __post_init__(self) -> None:
        for name, hyperparameter in hyperparameters(self).items():
            object.__setattr__(self, name, hyperparameter.cast(getattr(self, name)))

    def __str__(self) -> str:
        """Name the model and its fields, but for switches at their defaults."""
        return label_of(type(self), fields_of(self))

    def entries(self, name: str, size: int | tuple[int, ...]) -> np.ndarray:
        """Return a hyperparameter with one entry for each label of its axes: its own, or those that stand for all.

        Parameters
        ----------
        name : str
            The field.
        size : int or tuple of int
            How many labels the data have along its axes.

        Raises
        ------
        InputError
            When it has another number of entries.
        """
        values, shape = np.asarray(getattr(self, name), dtype=np.float64), np.atleast_1d(size)
        own = values.shape
        if own != tuple(shape[len(shape) - len(own) :]):
            what, given = hyperparameters(self)[name], " x ".join(map(str, own))
            raise InputError(
                f"{what.label} has {given} entries, the data {' x '.join(map(str, shape))} of {' and '.join(what.axes)}"
            )
        return np.array(np.broadcast_to(values, shape))

    def coords(self, data: Values) -> dict[str, Any]:
        """Return the labels along the axes of the parameters: those of the data."""
        return {name: data[name] for name in self.inputs.coords}

    def sizes(self, data: Values) -> dict[str, int]:
        """Return the lengths of the axes that hyperparameters may have entries along: those of the data."""
        return {name: len(data[name]) for name in self.inputs.coords}

    def relabelled(self, axis: str, permutation: np.ndarray) -> Self:
        """Return the model for data whose labels along ``axis`` are in another order."""
        return cast(Self, relabelled(self, axis, permutation))

    @property
    def has_origin(self) -> bool:
        """Whether a number added to every outcome only moves the fields declared with ``location``."""
        return True

    def labelled(self, data: Values) -> Self:
        """Return the model with the labels of the data that it was updated by."""
        made = replace(cast(Any, self))
        object.__setattr__(made, "labels", {name: tuple(map(str, data[name])) for name in self.inputs.coords})
        return cast(Self, made)

    @classmethod
    def weak(cls, data: Values) -> Self:
        """Weakly informative priors, scaled to the data where the model has a scale; by default the textbook's."""
        return cls()

    @classmethod
    def weak_given(cls, data: Values, given: Mapping[str, Any]) -> Self:
        """Return a model with some fields given, and the others weakly informative."""
        weak = cls.weak(data)
        made = cast(Self, replace(cast(Any, weak), **given))
        return made.labelled(data) if weak.labels else made

    @abstractmethod
    def simulate(self, rng: np.random.Generator, size: int = 20) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Draw parameters from the prior and ``size`` rows of data given them: ``(parameters, data)``."""

    @abstractmethod
    def declare(self, data: Values) -> pm.Model:
        """Write the joint density down in PyMC, as the textbook does, with named dims."""


@dataclass(frozen=True)
class Stats:
    """Additive sufficient statistics: a subclass names them as fields, ``+`` pools and ``-`` takes away data.

    Attributes
    ----------
    log_coefficient : float
        Log of the number of *ordered* data sets that a table of counts stands for; 0 for a table of single
        observations. Sufficient statistics do not depend on order, so every density computed from them is of ordered
        data, and this is the constant that turns it into the density of the counts.
    """

    log_coefficient: float = field(default=0.0, kw_only=True)

    def __add__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __sub__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) - getattr(other, f.name) for f in fields(self)})

    def discounted(self, factor: float) -> Self:
        """Return the statistics of data that count ``factor`` times, as when older batches are forgotten."""
        return type(self)(**{f.name: factor * getattr(self, f.name) for f in fields(self)})


@runtime_checkable
class Sufficient(Protocol):
    """The likelihood depends on the data only through statistics that add up, so its cost does not grow with N."""

    def statistics(self, data: Values) -> Any:
        """Return the `Stats` of the data."""

    def compressed(self, stats: Any) -> pm.Model:
        """Declare the density of the ordered data from the statistics, with the variables of ``declare``."""


@runtime_checkable
class Exact(Sufficient, Protocol):
    """Posterior and evidence are known in closed form, without PyMC.

    A model whose closed form holds for some data only raises `NumericalError` for the others.
    """

    def posterior(self, stats: Any) -> Posterior:
        """Return the posterior; of empty data, the prior."""

    def log_evidence(self, stats: Any) -> float:
        """Return the log marginal likelihood of the ordered data, with every constant."""


@runtime_checkable
class Predictive(Exact, Protocol):
    """The posterior predictive distribution is known in closed form as well."""

    def predictive(self, stats: Any, data: Values) -> Any:
        """Return the posterior predictive distribution of each row of ``data``: a frozen SciPy distribution."""


@runtime_checkable
class Conjugate(Predictive, Protocol):
    """The posterior is of the prior's family: it can be the prior of the next data."""

    def updated(self, stats: Any) -> Model:
        """Return the model whose prior is this model's posterior."""


@runtime_checkable
class PointEstimates(Protocol):
    """The MAP and the maximum-likelihood estimate are known in closed form."""

    def free_parameters(self, stats: Any) -> int:
        """Return how many numbers the likelihood is maximized over."""

    def map(self, stats: Any) -> dict[str, Any]:
        """Return the mode of the posterior in the constrained space (no Jacobian)."""

    def mle(self, stats: Any) -> dict[str, Any]:
        """Return the maximum of the likelihood."""


@runtime_checkable
class Observable(Protocol):
    """The distribution of one observation given the parameters is at hand as a SciPy distribution."""

    def likelihood(self, params: Values, data: Values) -> Any:
        """Return the distribution of each row of ``data``; parameters may carry leading axes of draws."""


@runtime_checkable
class Derived(Protocol):
    """Other quantities follow from the parameters, which users ask for."""

    def derived(self, params: Values) -> dict[str, Any]:
        """Return them by name; parameters carry leading axes of draws. Their axes are named in ``dims``.

        A conjugate model may also have ``derived_marginals(stats)``, which returns their distributions.
        """


CAPABILITIES: dict[str, type] = {
    "Sufficient": Sufficient,
    "Exact": Exact,
    "Predictive": Predictive,
    "Conjugate": Conjugate,
    "PointEstimates": PointEstimates,
    "Observable": Observable,
    "Derived": Derived,
    "Compiled": Compiled,
    "Latent": Latent,
    "Variational": Variational,
    "Stochastic": Stochastic,
    "Hidden": Hidden,
    "Enumerable": Enumerable,
    "Collapsed": Collapsed,
    "FoldIn": FoldIn,
    "Symmetric": Symmetric,
}
"""The optional capabilities in the order in which ``bayeszoo list`` prints them."""


def capabilities(model: type[Model]) -> tuple[str, ...]:
    """Name the optional capabilities that a model class has."""
    return tuple(name for name, protocol in CAPABILITIES.items() if issubclass(model, protocol))


def label_of(model: type[Model], values: Mapping[str, Any]) -> str:
    """Name a model with its fields, but for those that are no numbers and have their defaults."""
    known = hyperparameters(model)
    defaults = {f.name: f.default for f in fields(cast(Any, model))}
    shown = {name: value for name, value in values.items() if name in known or value != defaults.get(name)}
    return f"{model.name}({', '.join(f'{name}={text(value)}' for name, value in shown.items())})"


def fields_of(model: Model) -> dict[str, Any]:
    """Return the model's hyperparameters as plain numbers and lists, ready for JSON."""
    values = {f.name: getattr(model, f.name) for f in fields(cast(Any, model))}
    return {name: np.asarray(v).tolist() if isinstance(v, np.generic | tuple) else v for name, v in values.items()}


def chosen_by_data(made: Model, given: Collection[str]) -> bool:
    """Say whether `weak_given` has shaped a model: whether a field that was not given is not the textbook's."""
    own = fields_of(type(made)())  # == of dataclasses fails where one has numbers and the other a number
    return any(value != own[name] for name, value in fields_of(made).items() if name not in given)
