"""Fields of a closed-form model as outer parameters with priors of their own: empirical and full Bayes as fits.

The evidence of the model is then a likelihood of the fields. Full Bayes is the exact fit of `over`, empirical Bayes its
maximum of the likelihood, and a table of the evidence is its `log_marginal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, NoReturn, Self, cast, overload

import numpy as np

from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.bases import RowByRow, stacked
from bayeszoo.distributions.posterior import Posterior, sum_over
from bayeszoo.distributions.priors import Flat, Prior, Priors
from bayeszoo.errors import InputError, NoRowLaw
from bayeszoo.foundation.named import Arrays, Coords, Params
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.capabilities import ClosedForm, Predictive, Variational, is_log_concave
from bayeszoo.model.capabilities.conditional import Conditional
from bayeszoo.model.capabilities.function import HasLengths
from bayeszoo.model.fields import LARGEST, hyperparameters, plain
from bayeszoo.model.outer.over_fields import OverByDraws, OverFields, domain, require_fields
from bayeszoo.model.parts.others import all_but_one, statistics_of

OVER = "over_"
"""Prefix of the name of a model with fields as parameters."""
MOST_KEPT = 20_000
"""Most posteriors in the cache: integrals evaluate the same points again."""
MOST_LAWS = 20_000
"""Most leave-one-out predictive distributions, rows times points: half a minute."""


@dataclass(frozen=True)
class Over(Conditional, OverFields, family=True):
    """A closed-form model with some fields as parameters; made by `over`.

    Parameters
    ----------
    base : ClosedForm
        The model; its other fields stay fixed. Searches start at its values of the fields.
    """

    base: ClosedForm[Any]

    of: ClassVar[type[ClosedForm[Any]]]
    _kept: ClassVar[dict[Any, Any]]
    usual_method = "exact"
    _log_prior: ClassVar[Callable[..., float] | None] = None

    def __post_init__(self) -> None:
        if isinstance(self.base, Mapping):  # as stored in a file
            object.__setattr__(self, "base", self.of(**self.base))
        require_fields(self.base, names := tuple(Priors(self.priors)))
        scales = {name: domain(self.base, name) for name in names}
        dims = {**self.base.dims, **self.axes_of_fields()}
        for name, value in {"outer": scales, "dims": dims, "labels": self.base.labels, "_kept": {}}.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    @property
    def textbook_priors(self) -> Mapping[str, Prior]:
        """Empty: every field has an explicit prior."""
        return {}

    def outer_shapes(self, data: Arrays | None = None) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes of the fields: a vector has an outer parameter for each entry."""
        return {name: np.shape(getattr(self.base, name)) for name in self.priors}

    @property
    def own_values(self) -> dict[str, np.ndarray]:
        """The base model's values of the fields."""
        return {name: np.asarray(getattr(self.base, name)) for name in self.priors}

    def outer_guess(self, data: Arrays) -> dict[str, Any]:
        """Return the base model's values, with width 1."""
        return {name: (value, 1.0) for name, value in self.own_values.items()}

    def coords(self, data: Arrays) -> Coords:
        """Return the labels along the axes of the model's parameters."""
        return self.base.coords(data)

    @property
    def has_origin(self) -> bool:
        """Whether adding a number to every outcome only shifts the fields declared with ``location``."""
        return self.base.has_origin

    def declare(self, data: Arrays) -> NoReturn:
        """Refuse: designs are computed from fields as numbers, not tensors."""
        raise InputError(
            f"{self} has no density to sample: its fields are numbers",
            "no_density",
            hint="fit it by exact, map or mle",
        )

    marginalized = declare

    @property
    def _is_along_points(self) -> bool:
        vectorized = vars(self.of).get("along_points", ())
        return {*self.priors} <= {*vectorized}

    def at(self, outer: Params) -> ClosedForm[Any]:
        """Return the model at one point of the fields."""
        return self.base.replaced(**{name: plain(np.asarray(value)) for name, value in outer.items()})

    def statistics(self, data: Arrays) -> Any:
        """Return the statistics of the data, computed once: they do not depend on the fields in ``priors``."""
        if self._kept.get("data") is not data:
            self._kept.clear()
            self._kept.update(data=data, stats=self._checked_statistics(data))
        return self._kept["stats"]

    def _checked_statistics(self, data: Arrays) -> Any:
        """Return the statistics; refuse a field on which they depend."""
        stats = self.base.statistics(data)
        if np.isnan(_evidence(self.base, stats)):
            self.base.posterior(stats)  # raises, with the reason, if these data have no closed form
        for name in self.priors:
            try:
                moved_model = moved(self.base, name)
            except InputError:
                continue
            if not np.array_equal(
                _evidence(moved_model, stats), _evidence(moved_model, moved_model.statistics(data)), equal_nan=True
            ):
                raise InputError(
                    f"over {name}: the statistics of {self.base.name} depend on it; it cannot be optimized",
                    "not_optimizable",
                )
        return stats

    def log_outer_prior(self, outer: Params, data: Arrays | None = None) -> Any:
        """Return the log prior density of the fields; leading axes are points."""
        if self._log_prior is None:
            return super().log_outer_prior(outer, data)
        heights = [self._log_prior_at(point) for point in self._points(outer)]
        return np.reshape(heights, self._axes(outer))[()]

    def _log_prior_at(self, point: Params) -> float:
        assert self._log_prior is not None
        if not (height := float(self._log_prior(**point))) < np.inf:
            place = ", ".join(f"{name}={value:g}" for name, value in point.items())
            raise InputError(f"log_prior must be a number below infinity, got {height} at {place}", "wrong_type")
        return height

    def under(self, log_prior: Callable[..., float]) -> Self:
        """Return the model under another prior of the fields with the same bounds; it cannot be stored with a fit.

        ``log_prior(tau=..., sigma=...)`` returns the log density with respect to the fields, with every constant.
        """
        model = replace(self)
        object.__setattr__(model, "_log_prior", log_prior)
        return model

    @property
    def is_under_another(self) -> bool:
        """Whether the prior is a function from `under`."""
        return self._log_prior is not None

    def log_marginal(self, outer: Params, data: Arrays) -> Any:
        """Return the log evidence given the fields; -inf where it cannot be computed."""
        stats, inside = self.statistics(data), self._inside(outer)
        if self._is_along_points:
            values = _evidence(self.base.at_points(inside), stats)
        else:
            evidences = [self._evidence_at(point, stats) for point in self._points(inside)]
            values = np.reshape(evidences, self._axes(outer))
        outside = [sum_over(inside[name] != outer[name], len(shape)) for name, shape in self.outer_shapes().items()]
        return np.where(np.isnan(values) | np.any(outside, axis=0), -np.inf, values)[()]

    def _evidence_at(self, point: Params, stats: object) -> float:
        try:
            return _evidence(self.at(point), stats)
        except InputError:  # incompatible values of fields
            return -np.inf

    def _inside(self, outer: Params) -> dict[str, np.ndarray]:
        """Return the fields moved into their valid range: grids also evaluate points outside it."""
        lowest = {name: max(np.nextafter(scale.low, np.inf), -LARGEST) for name, scale in self.outer.items()}
        return {name: np.clip(value, lowest[name], LARGEST) for name, value in outer.items()}

    def _axes(self, outer: Params) -> tuple[int, ...]:
        """Return the shape of the leading axes, of points."""
        name, shape = next(iter(self.outer_shapes().items()))
        return np.shape(outer[name])[: np.ndim(outer[name]) - len(shape)]

    def _points(self, outer: Params) -> list[dict[str, np.ndarray]]:
        """Return a list of points."""
        flat = {name: np.reshape(outer[name], (-1, *shape)) for name, shape in self.outer_shapes().items()}
        return [dict(zip(flat, values, strict=True)) for values in zip(*flat.values(), strict=True)]

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return the posterior of the model's parameters given the fields."""
        stats, inside = self.statistics(data), self._inside(outer)
        if self._is_along_points:
            return self.base.at_points(inside).posterior(stats)
        posteriors = [self._posterior_at(point, stats) for point in self._points(inside)]
        return _side_by_side(posteriors, self._axes(outer))

    @classmethod
    def has_law_given_outer(cls) -> bool:
        """Say whether new rows have a closed form given the fields."""
        return issubclass(cls.of, Predictive)

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the predictive distribution of new rows given the fields, the model's parameters integrated out."""
        if not self.has_law_given_outer():
            return super().law(params, seen, new, rng)
        return self._predictive(params)(self.statistics(seen), new)

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the predictive distribution of each row given the fields and all other rows."""
        if not self.has_law_given_outer():
            return super().held_out(params, seen, places)
        predictive = self._predictive(params, most_rows=len(places))
        never_left_out = np.delete(np.arange(self.inputs.size(seen)), places)
        laws = dict[int, Any]()
        for i, other_rows in all_but_one(
            self.base, seen, [np.array([i]) for i in places], statistics_of(self.base, seen, never_left_out)
        ):
            row = self.inputs.reordered(seen, np.array([i]))
            laws[i] = predictive(other_rows, row)
        law: RowLaw = RowByRow([laws[i] for i in places.tolist()], len(self._axes(params)))
        return law

    def _predictive(self, params: Params, most_rows: int = 1) -> Callable[[Any, Arrays], RowLaw]:
        """Return a function of statistics and new rows: their predictive law at all values of the fields."""
        outer, axes = self._inside({name: np.asarray(params[name]) for name in self.priors}), self._axes(params)
        if self._is_along_points and isinstance(self.base, Predictive):
            return self.base.at_points(outer).predictive
        models = [model for model in map(self.at, self._points(outer)) if isinstance(model, Predictive)]
        if len(models) * most_rows > MOST_LAWS:
            raise NoRowLaw(f"leave-one-out of {most_rows} rows at {len(models)} points is too slow", "too_many_rows")
        return lambda stats, new: stacked([model.predictive(stats, new) for model in models], axes)

    def _posterior_at(self, point: Params, stats: object) -> Posterior:
        posteriors, key = self._kept, b"".join(value.tobytes() for value in point.values())
        if key not in posteriors:
            posterior = self.at(point).posterior(stats)
            if len(posteriors) > MOST_KEPT:
                return posterior
            posteriors[key] = posterior
        return posteriors[key]


def _evidence(model: ClosedForm[Any], stats: object) -> Any:
    """Return the log evidence; NaN where it cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            return model.log_evidence(stats)
    except (ArithmeticError, ValueError):  # overflow, or a logarithm of a number <= 0
        return np.nan


def _side_by_side(laws: list[Posterior], axes: tuple[int, ...]) -> Posterior:
    """Return one posterior with an axis of points from the posteriors at single points."""

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        drawn = [law.rvs(size, rng) for law in laws]
        return {
            name: np.stack([draws[name] for draws in drawn], axis=len(size)).reshape(
                *size, *axes, *np.shape(drawn[0][name])[len(size) :]
            )
            for name in drawn[0]
        }

    def log_density(params: Params) -> np.ndarray:
        shapes = {name: np.shape(law.mean()) for name, law in laws[0].items()}
        flat = {name: np.reshape(params[name], (-1, *shape)) for name, shape in shapes.items()}
        heights = [law.logpdf({name: flat[name][i] for name in flat}) for i, law in enumerate(laws)]
        return np.reshape(heights, axes)[()]

    marginals = {name: stacked([law[name] for law in laws], axes) for name in laws[0]}
    return Posterior(marginals, draw, log_density)


def kind_over(of: type[Model]) -> type[Model]:
    """Return the class of models of a class with some fields as parameters."""
    return of.kind_over() if issubclass(of, OverByDraws) else _kind_over(cast(type[ClosedForm[Any]], of))


@cache
def _kind_over(of: type[ClosedForm[Any]]) -> type[Over]:
    names = ("inputs", "examples", "nonnegative", "probabilities")
    steps = {"of": of, "outer": {}, "dims": {}, **{name: getattr(of, name) for name in names}}
    return dataclass(frozen=True)(type(f"Over{of.__name__}", (Over,), {**steps, "__module__": of.__module__}))


@overload
def over(model: ClosedForm[Any], priors: Mapping[str, Prior | str]) -> Over: ...
@overload
def over(model: Model, priors: Mapping[str, Prior | str]) -> Model: ...
def over(model: Model, priors: Mapping[str, Prior | str]) -> Model:
    """Make fields of a model parameters, each with a prior; entries of a vector have the same one.

    Parameters
    ----------
    model : Model
        With a closed form, or of a function behind binary outcomes; or a Dirichlet process mixture, whose ``alpha``
        can be a parameter. Its other fields stay fixed.
    priors : mapping of str to Prior or text
        ``{"tau": LogUniform(0.1, 100)}``, or as text.

    Returns
    -------
    Model
        With a closed form it is fitted by exact (full Bayes), map, and mle (empirical Bayes); the
        others by gibbs, a Dirichlet process also by vb, and of few rows by enumerate.

    Raises
    ------
    InputError
        When the model has no closed form or no such numeric fields.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> speeds = bz.over(bz.find("gaussian_mean")(m0=850, s0=50), {"sigma": "LogUniform(1, 1000)"})
    >>> tree = bz.fit(speeds, method="exact", seed=1)
    >>> round(float(bz.summarize(tree)["sigma"]["mean"]), 1)
    79.6
    """
    chosen = Priors(priors)
    if isinstance(model, OverByDraws):
        return cast(Any, model.kind_over())(model, priors=chosen)
    closed = require_closed_form(model, tuple(chosen))
    return _kind_over(type(closed))(closed, priors=chosen)


def over_flat(model: ClosedForm[Any], names: Sequence[str]) -> Over:
    """Make fields of a closed-form model parameters with flat priors: their likelihood is the evidence."""
    return over(model, {name: Flat(domain(model, name).low) for name in names})


def moved(model: ClosedForm[Any], name: str) -> ClosedForm[Any]:
    """Return the model with another value of a field, to test what depends on it."""
    is_positive, value = hyperparameters(model)[name].positive, np.asarray(getattr(model, name))
    return model.replaced(**{name: plain(1.5 * value + (not is_positive))})


def _instead(model: Model, names: Sequence[str]) -> str:
    """Return how fields become parameters of a model without a closed form."""
    if isinstance(model, OverByDraws):
        return "`bayeszoo fit --prior FIELD=PRIOR`, in Python bz.over(model, priors), is fitted by gibbs"
    if isinstance(model, Conditional) and (own := [name for name in names if name in model.outer]):
        return f"{own[0]} is a parameter: give its prior to the model, priors={{'{own[0]}': ..}}, or by --prior"
    by_vb = isinstance(model, Variational) and {*names} <= {*model.chosen_by_vb}
    if is_log_concave(model) or by_vb or (isinstance(model, HasLengths) and [*names] == ["scale"]):
        return f"`bayeszoo empirical {model.name} --over {','.join(names)}` chooses it by the evidence"
    return compare_values(model, names)


def compare_values(model: Model, names: str | Sequence[str] | None) -> str:
    """Return how values of fields are compared where the evidence has no closed form."""
    positive = [name for name, declared in hyperparameters(model).items() if declared.positive]
    name = next(iter([names] if isinstance(names, str) else [*(names or ()), *positive]), "")
    values = [f'-c "{model.name} {name}={value}"' for value in (1, 10)]
    if not isinstance(model, Conditional):
        return f"compare values of {name}: bayeszoo select {' '.join(values)}" if name else "fit it by nuts"
    outer = f"its parameters {', '.join(model.outer)} are integrated over by fit, each with its --prior"
    return f"{outer}; compare values of {name}: bayeszoo select {' '.join(values)}"


def require_closed_form(model: Model, names: Sequence[str]) -> ClosedForm[Any]:
    """Return the model; refuse one without a closed form, and names that are not its fields."""
    require_instance(model)
    if not isinstance(model, ClosedForm):
        raise InputError(f"{model.name} has no closed-form evidence", "no_closed_form", hint=_instead(model, names))
    require_fields(model, names)
    return model
