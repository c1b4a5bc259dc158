"""What every model is: the prior lives in the fields, the data in the arguments, and every method is a pure function.

What a model can do beyond this it says by its base classes, which `bayeszoo.model.capabilities` holds.
"""

from __future__ import annotations

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import Field, fields, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bayeszoo.data.inputs.labels import joined, labels_of
from bayeszoo.distributions.priors import Priors
from bayeszoo.errors import InputError, NoRowLaw, NoSimulator
from bayeszoo.foundation.named import Arrays, Params, Simulated
from bayeszoo.model.fields import hyperparameters, relabelled, text
from bayeszoo.model.views import View

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.data.inputs import Inputs
    from bayeszoo.data.read import Example
    from bayeszoo.distributions.averaged import RowLaw
    from bayeszoo.foundation.gate import Check


def _same(first: Any, second: Any) -> bool:
    """Compare class and fields: a number and a tuple differ, where NumPy would compare them entry by entry."""
    if type(first) is not type(second):
        return NotImplemented
    pairs = [(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)]
    return all(np.shape(own) == np.shape(other) and np.array_equal(own, other) for own, other in pairs)


Axes = Mapping[str, tuple[str, ...]]  # names of the axes of named arrays


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
    without_moments : tuple of str
        Derived quantities whose mean does not exist, however light the tails of some draws look: a ratio of numbers of
        which the lower may be 0. Their quantiles are shown.
    nonnegative : tuple of str
        Parameters and derived quantities that may not be negative; of a covariance matrix its diagonal. A fit that is
        read back with others is refused.
    probabilities : tuple of str
        Those whose entries lie between 0 and 1.
    usual_method : str
        The method where none is named: ``nuts``, unless another is exact and quicker, or NUTS stays at one mode.
    own : tuple of str
        Public methods that only this model has, and that no engine asks for.

    Raises
    ------
    TypeError
        When a subclass has a public method or attribute that no base declares, and that is not in ``own``: it is
        misspelt. A base of a family, made with ``family=True``, may declare further ones.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every subclass is a dataclass
    name: ClassVar[str]
    inputs: ClassVar[Inputs]
    examples: ClassVar[tuple[Example, ...]] = ()
    dims: ClassVar[Axes] = {}
    labels: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    without_moments: ClassVar[tuple[str, ...]] = ()
    nonnegative: ClassVar[tuple[str, ...]] = ()
    probabilities: ClassVar[tuple[str, ...]] = ()
    usual_method: ClassVar[str] = "nuts"
    own: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, family: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not family and cls.__module__ != "bayeszoo.model.capabilities":
            _refuse_unknown_steps(cls)
            _refuse_rows_without_names(cls)
        words = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+", cls.__name__)
        cls.name = "_".join(word.lower() for word in words)
        cls.__eq__ = _same  # type: ignore[method-assign]  # which `dataclass` then keeps

    def __init__(self, *values: object, **fields: object) -> None:  # which `dataclass` replaces
        raise InputError(
            f"{type(self).__name__} is no dataclass",
            "not_a_model",
            hint="write @dataclass(frozen=True) above the class",
        )

    def __post_init__(self) -> None:
        for name, hyperparameter in hyperparameters(self).items():
            object.__setattr__(self, name, hyperparameter.cast(getattr(self, name)))

    def __str__(self) -> str:
        """Name the model and its fields, but for switches at their defaults."""
        return label_of(type(self), fields_of(self))

    def entries(self, name: str, size: int | tuple[int, ...]) -> np.ndarray:
        """Return a hyperparameter with an entry for each of ``size`` labels along its axes, or raise `InputError`."""
        values, shape = np.asarray(getattr(self, name), dtype=np.float64), np.atleast_1d(size)
        own = values.shape
        if own != tuple(shape[len(shape) - len(own) :]):
            field, entries = hyperparameters(self)[name], " x ".join(map(str, own))
            expected = f"the data {' x '.join(map(str, shape))} of {' and '.join(field.axes)}"
            raise InputError(f"{field.label} has {entries} entries, {expected}", "wrong_shape")
        each = np.empty(shape)
        each[...] = values
        return each

    def coords(self, data: Arrays) -> dict[str, Any]:
        """Return the labels along the axes of the parameters: those of the data."""
        return {name: data[name] for name in self.inputs.coords}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes that hyperparameters may have entries along: those of the data."""
        return {name: len(data[name]) for name in self.inputs.coords}

    def relabelled(self, axis: str, permutation: np.ndarray) -> Self:
        """Return the model for data whose labels along ``axis`` are in another order."""
        return relabelled(self, axis, permutation)

    @property
    def has_origin(self) -> bool:
        """Whether a number added to every outcome only moves the fields declared with ``location``."""
        return True

    def labelled(self, data: Arrays, before: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> Self:
        """Return the model with the labels of the data that it was updated by, and of those ``before`` them."""
        model, is_binary = self.replaced(), "positive" in self.inputs.options
        object.__setattr__(model, "labels", labels_of(self.inputs.coords, is_binary, data, before))
        return model

    def replaced(self, **values: object) -> Self:
        """Return the model with some fields changed."""
        return replace(self, **values)

    def leverage(self, data: Arrays) -> np.ndarray:
        """Return the diagonal of the hat matrix of the posterior mean, shape (rows,); NaN where there is none."""
        return np.full(self.inputs.size(data), np.nan)

    def views(self) -> frozenset[View]:
        """Return what a fit shows beyond its parameters; a base adds its own to those of the others."""
        return frozenset()

    @classmethod
    def weak(cls, data: Arrays) -> Self:
        """Weakly informative priors, scaled to the data where the model has a scale; by default the textbook's."""
        return cls()

    @classmethod
    def weak_given(cls, data: Arrays, given: Mapping[str, object]) -> Self:
        """Return a model with some fields given, and the others weakly informative."""
        weak = cls.weak(data)
        model = weak.replaced(**given)
        return model.labelled(data) if weak.labels else model

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior and ``size`` rows of data given them: ``(parameters, data)``."""
        raise NoSimulator(f"{self.name} has no step `simulate`", "no_simulator")

    @abstractmethod
    def declare(self, data: Arrays) -> pm.Model:
        """Write the joint density down in PyMC, as the textbook does, with named dims."""

    def compiled(self, data: Arrays) -> pm.Model:
        """Declare the same density on a likelihood of our own with an analytic gradient; by default ``declare``."""
        return self.declare(data)

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log of how many ordered data sets the data of ``declare`` stand for, where they are counts."""
        return 0.0

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of new rows given the parameters and the rows seen; leading axes are draws.

        ``rng`` draws what new rows have of their own, where that is not integrated out. Raises `NoRowLaw` where the
        model does not say how rows are distributed.
        """
        raise NoRowLaw(f"{self.name} does not say how its observations are distributed", "no_row_law")

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the distribution of each row at ``places`` given the parameters and all other rows seen.

        Leading axes of the parameters are draws. Raises `NoRowLaw` where the model does not say it.
        """
        raise NoRowLaw(f"{self.name} does not say how one observation is distributed given the others", "no_row_law")

    def own_parameters(self, params: Params, new: Arrays, rng: np.random.Generator | None) -> dict[str, Any]:
        """Draw row-level parameters of new rows, given the shared parameters.

        Raises `InputError` where the model does not say how.
        """
        axis = str(self.inputs.row_names)
        known = f"the fit has no {axis} {joined(new[axis].tolist())}, and {self.name} has parameters of each"
        raise InputError(known, "no_capability", hint="leave it out")

    def derived(self, params: Params) -> dict[str, Any]:
        """Return other quantities that follow from the parameters; leading axes are draws, others are in ``dims``.

        Raises `NumericalError` where they do not exist.
        """
        return {}

    def remarks(self, stats: Any, data: Arrays) -> tuple[str, ...]:
        """Return lines to be said with every fit; ``stats`` are None of a model that is not `Sufficient`."""
        return ()

    def remarks_of_draws(self, draws: Params) -> tuple[str, ...]:
        """Say what draws of a fit show that its checks do not, as parameters for which numerics are rough."""
        return ()

    def hazards(self, stats: Any) -> list[Check]:
        """Check what draws cannot see, such as several modes; every fit by sampling or approximation is held to it."""
        return []

    def possible(self, data: Arrays) -> Iterator[Arrays] | None:
        """Go through every data set of a few observations with the labels of ``data``, or None: they have no end."""
        return self.inputs.possible(data)

    def excerpt(self, data: Arrays) -> Arrays:
        """Return a part of large data, on which the contract is checked."""
        return data

    def cost(self, data: Arrays) -> float:
        """Return the operations of one step of EM or variational Bayes; 0 where they are few."""
        return 0.0

    def moments_below(self, data: Arrays) -> float:
        """Return the order below which moments of a new row exist: a mean needs more than 1, an sd more than 2.

        Known from the model, as draws do not show a tail that few of them reach; by default nothing is known.
        """
        return math.inf

    @property
    def lower_bounds(self) -> Mapping[str, float]:
        """What fields must exceed, other than 0: `bz.empirical_bayes` stays above."""
        return {}


def _refuse_unknown_steps(model: type[Model]) -> None:
    """Refuse a public method or attribute that no base declares, and say which one it may be meant for."""
    declared = {name for base in model.__mro__[1:] for name in (*vars(base), *inspect.get_annotations(base))}
    annotated = {name for name, kind in inspect.get_annotations(model).items() if "ClassVar" not in str(kind)}
    for name in sorted(vars(model).keys() - declared - annotated - {*model.own}):
        if not name.startswith("_"):
            close = get_close_matches(name, declared, 1)
            hint = f"did you mean {close[0]}?" if close else "a method of this model alone is named in `own`"
            raise TypeError(f"{model.__name__}.{name} is no step of any of its bases: {hint}")


def _refuse_rows_without_names(model: type[Model]) -> None:
    """Refuse parameters along ``row`` of data whose rows have no names: nothing would tell new rows apart."""
    dims, inputs = getattr(model, "dims", {}), getattr(model, "inputs", None)
    if not isinstance(dims, Mapping) or inputs is None or inputs.row_names is not None:
        return
    if of_rows := [name for name, axes in dims.items() if "row" in axes]:
        why = f"{model.__name__}.{of_rows[0]} has an entry for each row, and its inputs do not name rows"
        raise TypeError(f"{why}: take inputs that do, whose `row_names` is the axis of such a parameter")


def label_of(model: type[Model], values: Mapping[str, object]) -> str:
    """Name a model with its fields, without non-numeric fields at their defaults."""
    known = hyperparameters(model)
    defaults = {f.name: f.default for f in fields(model)}
    shown = {name: value for name, value in values.items() if name in known or value != defaults.get(name)}
    return f"{model.name}({', '.join(f'{name}={text(value)}' for name, value in shown.items())})"


def fields_of(model: Model) -> dict[str, Any]:
    """Return the model's hyperparameters as plain numbers, lists and text for JSON, and priors if there are any."""
    values = {f.name: getattr(model, f.name) for f in fields(model)}
    return {name: _plain(value) for name, value in values.items() if not isinstance(value, Priors) or value}


def _plain(value: object) -> Any:
    if isinstance(value, Priors):
        return value.as_text()
    if isinstance(value, Model):
        return fields_of(value)
    return np.asarray(value).tolist() if isinstance(value, np.generic | tuple) else value


def chosen_by_data(model: Model, given: Collection[str]) -> bool:
    """Say whether `weak_given` has shaped a prior: whether a field of it that was not given is not the textbook's."""
    own = fields_of(type(model)())  # == of dataclasses fails where one has numbers and the other a number
    others = {*given, *(name for name, field in hyperparameters(model).items() if field.whole)}
    return any(value != own.get(name) for name, value in fields_of(model).items() if name not in others)


def number_of_parameters(model: Model, data: Arrays) -> int:
    """Return how many numbers the parameters with axes have, those of single rows included."""
    sizes = model.sizes(data)
    return sum(math.prod(sizes.get(axis, 1) for axis in axes) for axes in model.dims.values())
