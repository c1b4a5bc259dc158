"""Factors of a total: plain numbers, or draws of a parameter of a fit, with one entry or one for each label."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayeszoo.data.inputs.labels import repeated
from bayeszoo.data.table.table import quoted, shown
from bayeszoo.errors import InputError
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.stored import Fit, fits_of, is_by_group

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Factor:
    """Values of a factor in one period.

    Attributes
    ----------
    values : ndarray
        Shape (chain, draw, entries); a plain number has one chain and one draw.
    labels : tuple of str
        The labels of the entries; empty for a single number.
    is_drawn : bool
        Whether the values are draws.
    origin : Any
        The object that the factor was made from.
    """

    values: Array
    labels: tuple[str, ...]
    is_drawn: bool
    origin: Any

    def ordered(self, name: str, labels: tuple[str, ...]) -> Factor:
        """Return the factor with its entries in the order of ``labels``; refuse other labels."""
        if not self.labels or self.labels == labels:
            return self
        if set(self.labels) != set(labels):
            difference = f"{name} has {quoted(self.labels)}, another factor or period {quoted(labels)}"
            raise InputError(
                f"the labels of factors differ: {difference}", "labels_differ", hint="give all factors the same labels"
            )
        return replace(self, values=self.values[..., [self.labels.index(label) for label in labels]], labels=labels)


def factor(name: str, source: object) -> Factor:
    """Return the factor of a number, numbers by label, a fit of one parameter, or draws along chain and draw."""
    if hasattr(source, "children"):
        return _of_fit(name, source)
    if hasattr(source, "dims") and {"chain", "draw"} <= set(source.dims):
        return _of_draws(name, source, source)
    source = as_mapping(source)
    if isinstance(source, Mapping):
        return Factor(_plain(name, list(source.values())), tuple(source), False, source)
    if _is_number(source):
        return Factor(_plain(name, [source]), (), False, source)
    kind = type(source).__name__
    hint = "give a number, numbers by label, a fit, or draws such as tree['posterior'][NAME]"
    raise InputError(f"{name} is a {kind}", "wrong_type", hint=hint)


def as_mapping(source: Any) -> Any:
    """Return a mapping or a pandas Series as numbers by label, and a data frame as its columns; refuse a label twice.

    Other objects are unchanged.
    """
    is_pandas = hasattr(source, "index") and (hasattr(source, "columns") or hasattr(source, "to_dict"))
    if not is_pandas and not isinstance(source, Mapping):
        return source
    labels = [str(label) for label in (getattr(source, "columns", source.index) if is_pandas else source)]
    if twice := repeated(labels):
        problem = f"label {shown(twice)} appears twice"
        raise InputError(problem, "duplicate_name", hint="add up what belongs together, as by .groupby(level=0).sum()")
    return {str(label): value for label, value in source.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _plain(name: str, values: list[Any]) -> Array:
    """Return numbers as one draw of one chain."""
    if not values or not all(_is_number(value) and math.isfinite(value) for value in values):
        raise InputError(f"{name} must be finite numbers, got {values!r:.60}", "out_of_range")
    return np.array(values, dtype=np.float64)[None, None]


def _of_fit(name: str, tree: Any) -> Factor:
    """Return the draws of the only parameter of a fit, or of fits by group."""
    for fit in fits_of(tree).values() if is_by_group(tree) else [Fit(tree)]:
        require_shown(fit, f"the parts of {name}")
        if fit.kind == "point estimate":
            raise InputError(
                f"{name} is a point estimate", "no_draws", hint="fit it by a method with draws, or give the number"
            )
    variables = tree["posterior"].data_vars
    if len(variables) != 1:
        hint = f"give one, such as tree['posterior'][{next(iter(variables))!r}]"
        raise InputError(
            f"the fit of {name} has {len(variables)} quantities: {quoted(map(str, variables))}",
            "one_quantity_only",
            hint=hint,
        )
    return _of_draws(name, next(iter(variables.values())), tree)


def _of_draws(name: str, draws: Any, origin: Any) -> Factor:
    """Return the factor of draws of a quantity that is one number, or has one axis."""
    draws = draws.transpose("chain", "draw", ...)
    if draws.ndim > 3:
        raise InputError(
            f"{name} has the axes {quoted(map(str, draws.dims[2:]))}",
            "one_quantity_only",
            hint="give a quantity with at most one axis",
        )
    values = np.asarray(draws.to_numpy(), dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"{name} has draws that are not finite", "not_finite")
    if draws.ndim == 2:
        return Factor(values[..., None], (), True, origin)
    axis = draws.dims[2]
    labels = draws[axis].to_numpy().tolist() if axis in draws.coords else range(draws.shape[2])
    return Factor(values, tuple(map(str, labels)), True, origin)


def aligned(before: Mapping[str, Factor], after: Mapping[str, Factor]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the values of the factors of both periods, with equal chains and draws and the labels in one order."""
    factors_of_both = [*before.values(), *after.values()]
    refuse_same_draws(before, after)
    labels = next((factor.labels for factor in factors_of_both if factor.labels), ())
    shapes = [factor.values.shape[:2] for factor in factors_of_both if factor.is_drawn]
    chains, draws = (min(sizes) for sizes in zip(*shapes, strict=True)) if shapes else (1, 1)

    def values(factors: Mapping[str, Factor]) -> dict[str, Array]:
        return {name: factor.ordered(name, labels).values[:chains, :draws] for name, factor in factors.items()}

    return values(before), values(after)


def refuse_same_draws(before: Mapping[str, Factor], after: Mapping[str, Factor]) -> None:
    """Refuse two fits with equal draws, as from equal data with one seed: they are not independent."""
    periods = (("before", before), ("after", after))
    drawn = [(f"{name} {when}", factor) for when, part in periods for name, factor in part.items() if factor.is_drawn]
    for i, (name, factor) in enumerate(drawn):
        for earlier_name, earlier in drawn[:i]:
            if factor.origin is not earlier.origin and np.array_equal(factor.values, earlier.values):
                line = f"{earlier_name} and {name} have the same draws, and are not independent"
                raise InputError(line, "same_draws", hint="fit one of them with another seed")
