"""Linear models with other terms: polynomials of several degrees, and subsets of the features."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, combinations
from typing import Any

import numpy as np

from bayeszoo.data.inputs.features.formula import coding_of
from bayeszoo.data.inputs.features.levels import by_feature, products
from bayeszoo.data.inputs.sequences.lags import of_data
from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError
from bayeszoo.families.linear.design import INTERCEPT, LinearTerms
from bayeszoo.model.base import Model
from bayeszoo.model.fields import hyperparameters

MAX_SUBSETS = 1024
"""Most subsets, all of ten features; each takes up to half a second, most of it leave-one-out."""


def polynomials(model: Model, degrees: Iterable[Any]) -> dict[str, LinearTerms]:
    """Make candidates for `select` of one linear model: polynomials of several degrees, with one prior for each power.

    CS725 lecture notes, section 2; Bishop, PRML, section 1.1.

    Parameters
    ----------
    model : LinearTerms
        An instance; its own degree does not matter.
    degrees : iterable of int
        From 0, an intercept alone, to 30.

    Returns
    -------
    dict of str to LinearTerms
        ``{"degree 0": ..., "degree 1": ..., ...}``

    Raises
    ------
    InputError
        When the model is not linear or has a prior with an entry for each term, or a degree is invalid or repeated.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> list(bz.polynomials(bz.find("ridge")(), range(3)))
    ['degree 0', 'degree 1', 'degree 2']
    """
    linear = _with_other_terms(model)
    listed = [degree.item() if isinstance(degree, np.generic) else degree for degree in degrees]
    if not listed:
        raise InputError("there are no degrees", "no_data", hint="give range(0, 10)")
    candidates = {f"degree {degree}": replace(linear, degree=degree) for degree in listed}
    if len(candidates) < len(listed):
        raise InputError(f"degree {max(listed, key=listed.count)} is given twice", "duplicate_name")
    return candidates


def orders(model: Model, data: Data, numbers: Iterable[int]) -> dict[str, LinearTerms]:
    """Make candidates for `select` of one linear model of data with lags: with different numbers of lags.

    All candidates use the same rows, those with all lags of the data, so that their evidences may be compared.

    Parameters
    ----------
    model : LinearTerms
        An instance; if it names ``features``, those that are no lags stay.
    data : Data
        What `read` returned with ``lags``, at least as many as the largest of the numbers.
    numbers : iterable of int
        Numbers of lags, from 0.

    Returns
    -------
    dict of str to LinearTerms
        ``{"0 lags": ..., "1 lag": ..., ...}``

    Raises
    ------
    InputError
        When the model is not linear or has a prior with an entry for each term, or the data have fewer lags.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M, rows = bz.find("linear_regression"), {"y": [1.0, 2.0, 4.0, 3.0, 5.0, 4.0]}
    >>> list(bz.orders(M(), bz.read(M, rows, lags=2), range(3)))
    ['0 lags', '1 lag', '2 lags']
    """
    linear, lags, listed = _with_other_terms(model), of_data(data), list(numbers)
    if lags is None:
        raise InputError("the data have no lags", "no_lags", hint="read them with lags=4, or --lags 4")
    if not listed or min(listed) < 0 or max(listed) > lags.order or len({*listed}) < len(listed):
        hint = f"give numbers from 0 to {lags.order}, each once"
        raise InputError(f"numbers of lags {listed} of data with {lags.order}", "out_of_range", hint=hint)
    names = data["feature"].tolist() if linear.features is None else list(linear.features)
    not_lags = [name for name in names if name not in lags.names]
    return {f"{K} lag{'s' * (K != 1)}": replace(linear, features=tuple([*lags.names[:K], *not_lags])) for K in listed}


def subsets(model: Model, data: object = None, at_most: int | None = None) -> dict[str, LinearTerms]:
    """Make candidates for `select` of one linear model: one for every subset of the features.

    Parameters
    ----------
    model : LinearTerms
        An instance; if it names ``features``, these are the set. The levels of a feature stay together, and an
        interaction needs its features.
    data : Data or anything that `read` takes, optional
        Gives the names of the features; the model's first real data set by default.
    at_most : int, optional
        Largest number of features in a subset; all by default.

    Returns
    -------
    dict of str to LinearTerms
        ``{"(intercept)": ..., "bmi": ..., "bmi, s5": ..., ...}``, small subsets first; without an intercept there is
        no empty one.

    Raises
    ------
    InputError
        When the model is not linear or has a prior with an entry for each term, or there are more than `MAX_SUBSETS`.
    """
    linear = _with_other_terms(model)
    if not linear.degree:
        raise InputError("a polynomial of degree 0 has no features to choose from", "no_features")
    table = read(linear, data)
    linear.coords(table)  # refuses features that the data do not have
    names = _choices(table) if linear.features is None else linear.features
    if isinstance(at_most, bool) or not isinstance(at_most, int | np.integer | None) or (at_most or 0) < 0:
        raise InputError(f"at_most must be a whole number >= 0, got {at_most!r}", "wrong_type")
    largest = len(names) if at_most is None else min(int(at_most), len(names))
    sizes = range(0 if linear.intercept else 1, largest + 1)
    if not sizes:
        raise InputError("a model without intercept needs a feature", "no_features", hint="let at_most be 1 or more")
    _require_few(names, sizes, at_most)
    chosen = (subset for size in sizes for subset in combinations(names, size))
    return {_name(subset): replace(linear, features=subset) for subset in chosen if _is_hierarchical(subset, names)}


def _choices(table: Data) -> list[str]:
    """Return the names of the features, not of their levels."""
    names, coding = table["feature"].tolist(), coding_of(table)
    return names if coding is None else list(by_feature(names, coding.names))


def _is_hierarchical(subset: Sequence[str], names: Sequence[str]) -> bool:
    """Say whether all features of each interaction are chosen with it."""
    factors = {names[i]: [names[j] for j in js] for i, js in products(names).items()}
    return all({*factors.get(name, ())} <= {*subset} for name in subset)


def _with_other_terms(model: Model) -> LinearTerms:
    """Return the model; raise `InputError` unless it is linear with a prior that suits any set of terms."""
    if not isinstance(model, LinearTerms):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise InputError(
            f"only linear models have terms to choose, got {kind}", "not_linear", hint="give bz.find('ridge')()"
        )
    for name, field in hyperparameters(model).items():
        if {"term", "slope"} & set(field.axes) and np.ndim(getattr(model, name)):
            problem = f"{field.label} has an entry for each term, and none for other terms"
            raise InputError(problem, "too_many_subsets", hint="give one number")
    return model


def _require_few(names: Sequence[str], sizes: range, at_most: int | None) -> None:
    totals = dict(zip(sizes, accumulate(math.comb(len(names), size) for size in sizes), strict=True))
    if (total := totals[sizes[-1]]) > MAX_SUBSETS:
        limited = "" if at_most is None else f" of at most {at_most}"
        fit = [k for k in sizes if totals[k] <= MAX_SUBSETS]
        hint = f"let at_most be {max(fit)}, or choose features" if fit else "choose features"
        raise InputError(
            f"{len(names)} features have {total} subsets{limited}; {MAX_SUBSETS} is the most", "too_large", hint=hint
        )


def _name(subset: Sequence[str]) -> str:
    """Join the names; names with a comma, and the intercept's, are quoted, so that subsets have different names."""
    quoted = [repr(name) if "," in name or name == INTERCEPT else name for name in subset]
    return ", ".join(quoted) or INTERCEPT
