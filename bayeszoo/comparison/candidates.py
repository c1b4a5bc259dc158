"""Candidates of `select`, which are named models and fits of the same data; and its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.comparison.compare import require_same_data, require_same_density, unique
from bayeszoo.data.inputs import CountSeries, Real, RealSeries
from bayeszoo.data.inputs.regression import WithFeatures
from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.capabilities import Classifies, Predictive, Sufficient
from bayeszoo.model.fields import hyperparameters, text
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class SelectOptions:
    """Checked arguments of `select`."""

    folds: int
    seed: int
    keep_probability: float
    loo: bool
    exact_loo: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.folds, bool) or not isinstance(self.folds, int | np.integer) or self.folds < 2:
            raise InputError(f"folds must be a whole number >= 2, got {self.folds!r}", "wrong_type")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"seed must be a whole number >= 0, got {self.seed!r}", "wrong_type")
        if not isinstance(self.keep_probability, int | float | np.number) or not 0 < self.keep_probability <= 1:
            raise InputError(
                f"keep_probability must be > 0 and at most 1, got {self.keep_probability!r}", "out_of_range"
            )


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model with its prior and its data; and a fit with its method, kind and status, where the candidate is a fit.

    A candidate without a fit stands for the closed forms of its model, which are exact.
    """

    name: str
    model: Model
    data: Data
    fit: Fit | None = None
    method: str = "exact"
    kind: str = "exact"
    status: str = "ok"

    @property
    def has_draws(self) -> bool:
        """Whether it is a fit with draws of the posterior, and there is no closed form to use instead."""
        closed = isinstance(self.model, Predictive) and self.kind == "exact"
        return self.fit is not None and self.kind in ("sampled", "exact") and not closed

    @cached_property
    def stats(self) -> Any:
        """The sufficient statistics of the data, or the data for a model without statistics."""
        return self.model.statistics(self.data) if isinstance(self.model, Sufficient) else self.data

    @cached_property
    def observations(self) -> tuple[Mapping[str, np.ndarray], np.ndarray]:
        """The distinct single observations, and how many times each occurs."""
        return self.model.inputs.observations(self.data)


def gather(sources: Mapping[str, object] | Iterable[object], data: object) -> list[Candidate]:
    """Return candidates with distinct names for models and fits; the data are read once for each kind of model."""
    items = sources.items() if isinstance(sources, Mapping) else [("", source) for source in sources]
    data_read: dict[type[Model], Data] = {}
    candidates = [_candidate(str(name), source, data, data_read) for name, source in items]
    if not candidates:
        raise InputError("there is nothing to select from", "no_data", hint="give models or fits")
    names = unique(candidate.name for candidate in candidates)
    return [replace(candidate, name=name) for candidate, name in zip(candidates, names, strict=True)]


def label(candidate: Model | xr.DataTree) -> str:
    """Return the name of a model with its fields, and for a fit with its method."""
    return str(candidate) if isinstance(candidate, Model) else f"{(fit := Fit(candidate)).method} {fit.model}"


def _candidate(name: str, fit_or_model: Any, data: Any, data_read: dict[type[Model], Data]) -> Candidate:
    if isinstance(fit_or_model, Model):
        kind = type(fit_or_model)
        data_read[kind] = read(fit_or_model, data_read.get(kind, data))
        return Candidate(name or label(fit_or_model), fit_or_model, data_read[kind])
    if "data_digest" in getattr(fit_or_model, "attrs", {}):
        fit = Fit(fit_or_model)
        return Candidate(name or label(fit_or_model), fit.model, fit.data, fit, fit.method, fit.kind, fit.status)
    wrong = f"the class {fit_or_model.__name__}" if isinstance(fit_or_model, type) else type(fit_or_model).__name__
    raise InputError(
        f"a candidate is a model instance or a fit, got {wrong}", "not_a_fit", hint="write bz.find(name)()"
    )


def require_comparable(candidates: list[Candidate]) -> None:
    """Raise `InputError` unless the candidates have the same data, and the same observations in them.

    Regressions and series need only the same outcomes in the same rows: their densities are of the outcomes, given
    features and sequences that may differ.
    """
    first, *others = candidates
    for other in others:
        types = [candidate.model.inputs.outcome(candidate.data).dtype for candidate in (first, other)]
        if (types[0].kind == "f") != (types[1].kind == "f"):
            raise InputError(
                f"{first.name} and {other.name} take the data as {types[0]} and {types[1]}: a probability of counts "
                "and a density of real numbers are not comparable",
                "not_comparable",
            )
    kinds = {type(candidate.model.inputs) for candidate in candidates}
    if not all(_is_of_outcomes(candidate) for candidate in candidates) or kinds == {Real}:
        sources = [(candidate.data.digest, candidate.data.source) for candidate in candidates]
        require_same_data(sources, "candidates")
    require_same_density({candidate.name: candidate.model for candidate in candidates})
    for other in others:
        if not _same_observations(first, other):
            units = f"{first.name} and {other.name} count observations differently"
            raise InputError(f"{units}: their scores cannot be compared", "not_comparable")


def differing_priors(candidates: list[Candidate]) -> list[str]:
    """Say where models of different kinds share a field of the prior but give it different values.

    Their evidences compare these priors too. Candidates of one kind differ in their fields on purpose.
    """
    kinds = {type(candidate.model).name: candidate.model for candidate in candidates}
    lines = []
    for (first, model), (second, other) in combinations(kinds.items(), 2):
        model_fields, other_fields = hyperparameters(model), hyperparameters(other)
        priors = {name: field for name, field in model_fields.items() if field.label.startswith("prior")}
        shared = [name for name, field in priors.items() if other_fields.get(name) == field]
        values = {name: (getattr(model, name), getattr(other, name)) for name in shared}
        differences = [f"{name} {text(a)} and {text(b)}" for name, (a, b) in values.items() if not np.array_equal(a, b)]
        if differences:
            named = ", ".join(differences)
            lines.append(f"the priors of {first} and {second} differ, and so do their evidences: {named}")
    return lines


def _is_given_features(candidate: Candidate) -> bool:
    """Say whether the density is that of the outcome given features."""
    model = candidate.model
    return isinstance(model.inputs, WithFeatures) and not (
        isinstance(model, Classifies) and model.has_law_of_features()
    )


def _is_of_outcomes(candidate: Candidate) -> bool:
    """Say whether the density is of one number a row, unconditionally or given features or earlier rows."""
    inputs = candidate.model.inputs
    return _is_given_features(candidate) or isinstance(inputs, Real | RealSeries | CountSeries)


def same_outcomes(kind: type[Model], data: Data, other: type[Model], others: Data) -> bool:
    """Say whether two models give densities of the same numbers, even if their data are read differently."""
    first, second = Candidate("", kind(), data), Candidate("", other(), others)
    return data == others or (_is_of_outcomes(first) and _is_of_outcomes(second) and _same_observations(first, second))


def _observed(candidate: Candidate) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the observations without the features that they are conditional on, and how many times each occurs."""
    (rows, weights), inputs = candidate.observations, candidate.model.inputs
    if isinstance(inputs, Real | RealSeries | CountSeries):
        return {"y": rows[inputs.name]}, weights
    names = set(rows)
    if isinstance(inputs, WithFeatures) and _is_given_features(candidate):
        names = {inputs.name, inputs.companion}
    return {name: values for name, values in rows.items() if values.size and name in names}, weights


def _same_observations(first: Candidate, second: Candidate) -> bool:
    (rows, weights), (others, other_weights) = _observed(first), _observed(second)
    same = rows.keys() == others.keys() and all(_equal(rows[name], others[name]) for name in rows)
    return same and np.array_equal(weights, other_weights)


def _equal(first: np.ndarray, second: np.ndarray) -> bool:
    """Compare arrays in which NaN is a missing number."""
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f" == second.dtype.kind)


# Several numbers of components


def components(model: Model, numbers: Iterable[object]) -> dict[str, Model]:
    """Return candidates for `select`: one model with several numbers of components K, or of factors q.

    Parameters
    ----------
    model : Model
        An instance with a field K or q, whose value is replaced. All other fields stay: every candidate has the same
        prior for each of its components.
    numbers : iterable of int
        Each >= 1.

    Returns
    -------
    dict of str to Model
        ``{"K=1": ..., "K=2": ..., ...}``, or ``"q=1"`` and so on.

    Raises
    ------
    InputError
        When the model has neither field, or a number is not a whole number >= 1 or is given twice.

    Notes
    -----
    Log evidences for several K judge the prior of the components as well, and can be compared only under the same
    prior. `weak` of some mixtures depends on K: for Old Faithful three components are preferred if each K has its own
    weak fields, and two if all have those for K = 1, as in ``bayeszoo select --components``.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> list(bz.components(bz.find("gaussian_mixture")(), range(1, 4)))
    ['K=1', 'K=2', 'K=3']
    """
    name = number_of_components(type(require_instance(model)))
    if name is None:
        raise InputError(
            f"numbers of components need models with a field K (components) or q (factors), got {model.name}",
            "no_components_field",
            hint="such as gaussian_mixture, hmm_gaussian, lda or ppca",
        )
    counts = list(numbers)
    if not counts:
        raise InputError("the list of numbers of components is empty", "no_data", hint="give range(1, 6)")
    candidates = {f"{name}={number}": model.replaced(**{name: number}) for number in counts}
    if len(candidates) < len(counts):
        raise InputError(f"{name}={max(counts, key=counts.count)} is given twice", "duplicate_name")
    return candidates


def number_of_components(model: type[Model]) -> str | None:
    """Return the name of the field with the number of components or factors; None for a model without one."""
    names = {field.name for field in fields(cast(Any, model))}
    return next((name for name in ("K", "q") if name in names), None)
