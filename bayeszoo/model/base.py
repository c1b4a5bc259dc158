"""The base of all models: the prior lives in the fields, the data in the arguments, and methods are pure functions.

A model declares what else it can do by its base classes, from `bayeszoo.model.capabilities`.
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
from bayeszoo.foundation.named import Arrays, Coords, Fields, Params, Simulated, Statistics
from bayeszoo.model.fields import hyperparameters, relabelled, text
from bayeszoo.model.views import View

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.data.inputs import Inputs
    from bayeszoo.data.read import Example
    from bayeszoo.distributions.averages.averaged import RowLaw
    from bayeszoo.foundation.gate import Check


def _equal_fields(first: Any, second: Any) -> bool:
    """Compare class and fields; a number and a tuple differ, although NumPy would broadcast them."""
    if type(first) is not type(second):
        return NotImplemented
    values = [(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)]
    return all(np.shape(left) == np.shape(right) and np.array_equal(left, right) for left, right in values)


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
        The axes of each parameter or derived quantity that is not one number.
    labels : mapping of str to tuple of str
        For an updated model: the labels of its hyperparameters' entries. `read` refuses other labels.
    without_moments : tuple of str
        Derived quantities without a mean, even if the draws look light-tailed: ratios whose divisor may be 0. Their
        quantiles are shown.
    nonnegative : tuple of str
        Parameters and derived quantities that cannot be negative; of a covariance matrix its diagonal. A saved
        fit with negative values is refused.
    probabilities : tuple of str
        Parameters and derived quantities with entries between 0 and 1.
    usual_method : str
        The default method: ``nuts``, unless another is exact and quicker, or NUTS stays at one mode.
    own : tuple of str
        Public methods that only this model has and no engine calls.

    Raises
    ------
    TypeError
        When a subclass has a public method or attribute that no base declares and ``own`` does not name: it may be
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
        if not family and cls.__module__ != "bayeszoo.model.capabilities.latent":
            _refuse_unknown_steps(cls)
            _refuse_rows_without_names(cls)
        words = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+", cls.__name__)
        cls.name = "_".join(word.lower() for word in words)
        cls.__eq__ = _equal_fields  # type: ignore[method-assign]  # `dataclass` then keeps it

    def __init__(self, *values: object, **fields: object) -> None:  # `dataclass` replaces it
        raise InputError(
            f"{type(self).__name__} is no dataclass",
            "not_a_model",
            hint="write @dataclass(frozen=True) above the class",
        )

    def __post_init__(self) -> None:
        for name, hyperparameter in hyperparameters(self).items():
            object.__setattr__(self, name, hyperparameter.cast(getattr(self, name)))

    def __str__(self) -> str:
        """Name the model and its fields, without switches at their defaults."""
        return label_of(type(self), fields_of(self))

    def entries(self, name: str, size: int | tuple[int, ...]) -> np.ndarray:
        """Return a hyperparameter with an entry for each of ``size`` labels along its axes, or raise `InputError`."""
        values, shape = np.asarray(getattr(self, name), dtype=np.float64), np.atleast_1d(size)
        own_shape = values.shape
        if own_shape != tuple(shape[len(shape) - len(own_shape) :]):
            hyperparameter, entries = hyperparameters(self)[name], " x ".join(map(str, own_shape))
            expected = f"the data {' x '.join(map(str, shape))} of {' and '.join(hyperparameter.axes)}"
            raise InputError(f"{hyperparameter.label} has {entries} entries, {expected}", "wrong_shape")
        array = np.empty(shape)
        array[...] = values
        return array

    def coords(self, data: Arrays) -> Coords:
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
        """Whether adding a number to every outcome only shifts the fields declared with ``location``."""
        return True

    def labelled(self, data: Arrays, before: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> Self:
        """Return the model with the labels of the data it was updated with, and of data ``before`` them."""
        model, is_binary = self.replaced(), "positive" in self.inputs.options
        object.__setattr__(model, "labels", labels_of(self.inputs.coords, is_binary, data, before))
        return model

    def replaced(self, **values: object) -> Self:
        """Return the model with some fields changed."""
        return replace(self, **values)

    def views(self) -> frozenset[View]:
        """Return the parts of the page about a fit; each base adds its own."""
        return frozenset()

    @classmethod
    def weak(cls, data: Arrays) -> Self:
        """Weakly informative priors, scaled to the data where the model has a scale; by default the textbook's."""
        model = cls()
        return model.replaced(**model.weak_fields(data))

    def weak_fields(self, data: Arrays) -> Fields:
        """Return weakly informative values of the fields that depend on others, such as the number of components."""
        return {}

    @classmethod
    def weak_with(cls, data: Arrays, fields: Mapping[str, object]) -> Self:
        """Return a model with these fields, and weakly informative values of the others."""
        weak = cls.weak(data)
        model = weak.replaced(**fields)
        model = model.replaced(**{**model.weak_fields(data), **fields})
        return model.labelled(data) if weak.labels else model

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior and ``size`` rows of data given them: ``(parameters, data)``."""
        raise NoSimulator(f"{self.name} has no step `simulate`", "no_simulator")

    @abstractmethod
    def declare(self, data: Arrays) -> pm.Model:
        """Declare the joint density in PyMC, as the textbook writes it, with named dims."""

    def compiled(self, data: Arrays) -> pm.Model:
        """Declare the same density with a compiled likelihood and analytic gradient; by default ``declare``."""
        return self.declare(data)

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log number of ordered data sets that the data of ``declare`` stand for, if they are counts."""
        return 0.0

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of new rows given the parameters and the rows seen; leading axes are draws.

        ``rng`` draws parameters of the new rows that are not integrated out. Raises `NoRowLaw` where the model does not
        define the distribution of rows.
        """
        raise NoRowLaw(f"{self.name} does not define the distribution of a row", "no_row_law")

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the distribution of each row at ``places`` given the parameters and all other rows seen.

        Leading axes of the parameters are draws. Raises `NoRowLaw` where the model does not define it.
        """
        raise NoRowLaw(f"{self.name} does not define the distribution of a row given the others", "no_row_law")

    def own_parameters(self, params: Params, new: Arrays, rng: np.random.Generator | None) -> dict[str, Any]:
        """Draw row-level parameters of new rows, given the shared parameters.

        Raises `InputError` where the model cannot.
        """
        axis = str(self.inputs.row_names)
        problem = f"{self.name} has parameters for each {axis}, and the fit has no {axis} {joined(new[axis].tolist())}"
        raise InputError(problem, "no_capability", hint="leave out these rows")

    def derived(self, params: Params) -> dict[str, Any]:
        """Return other quantities that follow from the parameters; leading axes are draws, others are in ``dims``.

        Raises `NumericalError` where they do not exist.
        """
        return {}

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """Return remarks to show with every fit; ``stats`` are None if the model is not `Sufficient`."""
        return ()

    def remarks_of_draws(self, draws: Params) -> tuple[str, ...]:
        """Return remarks on draws that no check makes, as on parameters for which numerics are rough."""
        return ()

    def hazards(self, stats: Statistics) -> list[Check]:
        """Check for what draws cannot show, such as several modes; sampled and approximate fits must pass."""
        return []

    def possible(self, data: Arrays) -> Iterator[Arrays] | None:
        """Iterate over all data sets of a few observations with the labels of ``data``; None if infinitely many."""
        return self.inputs.possible(data)

    def excerpt(self, data: Arrays) -> Arrays:
        """Return a part of large data for checks of the contract."""
        return data

    def cost(self, data: Arrays) -> float:
        """Return the number of operations of one step of EM or variational Bayes; 0 if small."""
        return 0.0

    def moments_below(self, data: Arrays) -> float:
        """Return the order below which moments of a new row exist: a mean needs more than 1, an sd more than 2.

        It must come from the model: draws do not show rare tails. Infinite by default.
        """
        return math.inf

    @property
    def lower_bounds(self) -> Mapping[str, float]:
        """Lower bounds of fields other than 0: `bz.empirical_bayes` stays above them."""
        return {}


def _refuse_unknown_steps(model: type[Model]) -> None:
    """Refuse a public method or attribute that no base declares, and suggest a similar name."""
    declared = {name for base in model.__mro__[1:] for name in (*vars(base), *inspect.get_annotations(base))}
    annotated = {name for name, kind in inspect.get_annotations(model).items() if "ClassVar" not in str(kind)}
    for name in sorted(vars(model).keys() - declared - annotated - {*model.own}):
        if not name.startswith("_"):
            close = get_close_matches(name, declared, 1)
            hint = f"did you mean {close[0]}?" if close else "name methods of this model alone in `own`"
            raise TypeError(f"{model.__name__}.{name} is not a step of its bases: {hint}")


def _refuse_rows_without_names(model: type[Model]) -> None:
    """Refuse parameters along ``row`` of data whose rows have no names: new rows could not be matched."""
    dims, inputs = getattr(model, "dims", {}), getattr(model, "inputs", None)
    if not isinstance(dims, Mapping) or inputs is None or inputs.row_names is not None:
        return
    if of_rows := [name for name, axes in dims.items() if "row" in axes]:
        problem = f"{model.__name__}.{of_rows[0]} has an entry for each row, but its inputs do not name rows"
        raise TypeError(f"{problem}: use inputs whose `row_names` is the axis of this parameter")


def label_of(model: type[Model], values: Mapping[str, object]) -> str:
    """Name a model with its fields, without non-numeric fields at their defaults."""
    declared = hyperparameters(model)
    defaults = {f.name: f.default for f in fields(model)}
    shown = {name: value for name, value in values.items() if name in declared or value != defaults.get(name)}
    return f"{model.name}({', '.join(f'{name}={text(value)}' for name, value in shown.items())})"


def fields_of(model: Model) -> Fields:
    """Return the model's hyperparameters as plain numbers, lists and text for JSON, and priors if there are any."""
    values = {f.name: getattr(model, f.name) for f in fields(model)}
    return {name: _plain(value) for name, value in values.items() if not isinstance(value, Priors) or value}


def _plain(value: object) -> Any:
    if isinstance(value, Priors):
        return value.as_text()
    if isinstance(value, Model):
        return fields_of(value)
    return np.asarray(value).tolist() if isinstance(value, np.generic | tuple) else value


def require_instance(model: object) -> Model:
    """Return the model; refuse a class, and what is no model."""
    if isinstance(model, Model):
        return model
    received = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    hint = "write bz.find(name)(), or bz.find(name).weak(data)"
    raise InputError(f"a model instance is needed, got {received}", "not_a_model", hint=hint)


def chosen_by_data(model: Model, chosen: Collection[str]) -> bool:
    """Say whether `weak_with` changed the prior: a prior field that was not chosen differs from its default."""
    defaults = fields_of(type(model)())  # == of dataclasses fails between a tuple and a number
    not_chosen = {*chosen, *(name for name, field in hyperparameters(model).items() if field.whole)}
    return any(value != defaults.get(name) for name, value in fields_of(model).items() if name not in not_chosen)


def number_of_parameters(model: Model, data: Arrays) -> int:
    """Return the number of entries of all parameters with axes, including those of single rows."""
    sizes = model.sizes(data)
    return sum(math.prod(sizes.get(axis, 1) for axis in axes) for axes in model.dims.values())
