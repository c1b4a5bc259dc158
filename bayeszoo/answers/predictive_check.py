"""Posterior predictive checks: whether the data set is like replicates from the fitted model.

One data set is drawn for each draw of the parameters, and a quantity T of it compared with that of the data: Rubin
1984; Gelman, Meng and Stern 1996; Gelman et al., BDA3, section 6.3.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.answers.law import can_be_drawn
from bayeszoo.answers.residuals import one_number_outcomes
from bayeszoo.data.inputs import Binary, Counts, Matrix
from bayeszoo.data.read import Data
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError, NoRowLaw
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Arrays
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import moments
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Observable
from bayeszoo.model.function import OfFunction
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_COLUMNS = 8
"""Columns of an outcome of several numbers that are checked, the first."""
_TIE = 32 * float(np.finfo(np.float64).eps)
"""Relative difference up to which two values are equal: sums in another order round differently."""


class Sets(NamedTuple):
    """Data sets of the same rows, and the draws that they are compared under.

    ``y`` are outcomes, shape (draws, rows), or (1, rows) where one data set stands against all draws; ``mean`` and
    ``sd``, shape (draws, rows), are those of an outcome given the parameters; ``data`` are the fit's, and ``params``
    have shape (draws, ...).
    """

    y: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    data: Arrays
    params: dict[str, np.ndarray]


Statistic = Callable[[Sets], np.ndarray]
"""A quantity of each data set, shape (draws,), or (1,) where neither data set nor parameters differ."""


@dataclass(frozen=True)
class Replicates:
    """Quantities of the data and of replicated data sets, by name, of shape (replicates,).

    The observed ones are equal unless they depend on the parameters. ``chains`` is how many chains the replicates come
    from, in order.
    """

    observed: dict[str, np.ndarray]
    replicated: dict[str, np.ndarray]
    chains: int
    is_binary: bool = False  # whether all outcomes are 0 or 1


def predictive_check(
    tree: xr.DataTree, statistics: object = None, *, replicates: int = 1000, seed: int | np.random.Generator = 0
) -> pd.DataFrame:
    """Compare statistics of the data with their values in replicated data sets.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned; of a model whose outcome is one number a row, or several real ones: then each column is
        checked by itself.
    statistics : mapping of str to callable, or sequence of callables and names, optional
        Quantities T. A callable is T(y), or T(y, data, params), with y the outcome, shape (rows,), data the arrays of
        the fit, and params one draw of the parameters; it returns one number. Names are those of `STATISTICS`. By
        default what suits the outcome: of real numbers mean, standard deviation, minimum, maximum, skewness, the
        largest absolute standardized residual and the lag-1 autocorrelation of the residuals in the order of the rows;
        of each of several numbers those of the residuals are left out;
        of counts the share of zeros, but not minimum and skewness; of zeros and ones mean, changes and longest run.
    replicates : int
        How many data sets, each from a draw of its own; rounded up to a multiple of the chains.
    seed : int or numpy.random.Generator
        Of the replicated data sets.

    Returns
    -------
    pandas.DataFrame
        One row a quantity: ``observed``, and ``observed_sd`` over draws where it depends on the parameters, as
        residuals do (else 0); ``mean``, ``q025`` and ``q975`` of the replicates; ``p_value``, the probability that a
        replicate exceeds the observed quantity under the same draw, ties counted half; ``mcse``, its Monte Carlo
        standard error (of p-values of 0 and 1 it is not 0: one more replicate and one less are added); ``replicates``;
        ``withheld``, why there is no p-value or no mean, else empty.

        ``attrs`` name the model and the fit, and ``basis``, which is ``"plug-in"`` for a point estimate.

    Notes
    -----
    A p-value near 0 or 1 says that the model does not reproduce the quantity. These p-values are not uniform under
    the true model, but nearer to 1/2, as the data were used to fit as well: most of all for a quantity that the
    parameters are fitted to, as the mean, whose check says next to nothing (Meng 1994; BDA3, section 6.3).
    Autocorrelation and runs mean something where the order of the rows does.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When an outcome is a category or several counts, or has holes, there are fewer draws than replicates, or a
        quantity is not one number.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("gaussian_mean")
    >>> tree = bz.fit(M.weak(bz.example(M)), method="exact", seed=1)
    >>> list(bz.predictive_check(tree, {"median": np.median}).index)
    ['median']
    """
    return compared(replicate(tree, statistics, replicates=replicates, seed=seed), tree)


def compared(again: Replicates, tree: xr.DataTree) -> pd.DataFrame:
    """Return what `predictive_check` does of replicated data sets."""
    import pandas as pd

    rows = [_compared(again, name, tree.attrs["kind"]) for name in again.replicated]
    frame = pd.DataFrame(rows, index=pd.Index(list(again.replicated), name="statistic"))
    basis = "plug-in" if tree.attrs["kind"] == "point estimate" else "posterior draws"
    frame.attrs.update({name: tree.attrs[name] for name in ("model", "method", "kind")} | {"basis": basis})
    return frame


def replicate(
    tree: xr.DataTree, statistics: object = None, *, replicates: int = 1000, seed: int | np.random.Generator = 0
) -> Replicates:
    """Draw data sets as `predictive_check` does, and return the quantities themselves."""
    model, data, columns = _columns(tree)
    chosen = _chosen(statistics, model, data)
    names = {(name, label): f"{name} of {label}" if label else name for label in columns for name in chosen}
    draws, chains = _thinned(known := Fit(tree).draws(), tree.attrs["kind"], replicates)
    size, rng = len(next(iter(draws.values()))), stream_of_fit(tree.attrs, seed, "predictive check")
    values, is_binary = {name: np.full((2, size), np.nan) for name in names.values()}, True
    cells = len(columns) * len(next(iter(columns.values())))
    for at in range(0, size, step := max(1, AT_ONCE // cells)):
        params = type(known)({name: values[at : at + step] for name, values in draws.items()})  # says which it lacks
        drawn = _draw(model, params, data, rng)
        places = at + np.flatnonzero(drawn.kept)
        is_binary &= bool(np.isin(drawn.y, (0, 1)).all())
        for j, (label, y) in enumerate(columns.items() if len(places) else ()):
            at_column = (..., j) if label else ...
            again = Sets(drawn.y[at_column], drawn.mean[at_column], drawn.sd[at_column], data, drawn.params)
            for name, statistic in chosen.items():
                own, pair = statistic(again._replace(y=y[None])), values[names[name, label]]
                pair[0, places if len(own) > 1 else slice(None)] = own
                pair[1, places] = statistic(again)
    observed, replicated = ({name: pair[i] for name, pair in values.items()} for i in range(2))
    return Replicates(observed, replicated, chains, is_binary)


class Drawn(NamedTuple):
    """Data sets (draws, rows, ...), means and sds of their rows, and which draws of the parameters they are from."""

    y: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    params: Any
    kept: np.ndarray


def _draw(model: Observable | OfFunction, params: Any, data: Data, rng: np.random.Generator) -> Drawn:
    """Draw a data set for each draw of the parameters, but for those whose counts are too large to be drawn."""
    if isinstance(model, OfFunction):
        law, size = model.law(params, data, data), len(next(iter(params.values())))
        y = model.drawn_rows(params, data, data, rng)
        return Drawn(y, np.asarray(law.mean()), np.asarray(law.std()), params, np.ones(size, dtype=bool))
    law = model.likelihood(params, data)
    shape = np.shape(law.mean())
    can = np.broadcast_to(can_be_drawn(law), shape)
    if not (kept := can.all(axis=tuple(range(1, len(shape))))).all():
        params = type(params)({name: values[kept] for name, values in params.items()})
        law, shape = model.likelihood(params, data), (int(kept.sum()), *shape[1:])
    mean, sd = (np.broadcast_to(np.asarray(each, dtype=np.float64), shape) for each in (law.mean(), law.std()))
    return Drawn(law.rvs(size=shape, random_state=rng), mean, sd, params, kept)


def _columns(tree: xr.DataTree) -> tuple[Observable | OfFunction, Data, dict[str, np.ndarray]]:
    """Return model, data, and the outcome, (rows,), under no name; or of several real numbers each under its own."""
    fit = require_shown(tree, "predictive checks of it")
    if not (isinstance(fit.model, Observable) and isinstance(fit.model.inputs, Matrix)):
        model, data, y = one_number_outcomes(tree, "predictive checks")
        if not isinstance(model, Observable | OfFunction):
            raise NoRowLaw(f"{model.name} has no distribution of rows given parameters", "no_row_law")
        return model, data, {"": y}
    Y, labels = fit.data[fit.model.inputs.name], fit.data[fit.model.inputs.axis]
    if np.isnan(Y).any():
        raise InputError("predictive checks need every number, and some are missing", "missing_values")
    return fit.model, fit.data, dict(zip(map(str, labels[:MOST_COLUMNS]), Y.T, strict=False))


def _thinned(draws: dict[str, np.ndarray], kind: str, replicates: int) -> tuple[dict[str, np.ndarray], int]:
    """Return evenly spaced draws of all chains, shape (replicates, ...), and how many chains they come from."""
    if isinstance(replicates, bool) or not isinstance(replicates, int | np.integer) or replicates < 1:
        raise InputError(f"replicates must be a whole number >= 1, got {replicates!r}", "wrong_type")
    chains, length = next(iter(draws.values())).shape[:2]
    if kind == "point estimate":
        return {name: np.repeat(values[0, :1], replicates, axis=0) for name, values in draws.items()}, 1
    each = math.ceil(replicates / chains)
    if each > length:
        raise InputError(f"the fit has {chains * length} draws, fewer than {replicates} replicates", "too_few_rows")
    places = np.arange(each) * length // each
    return {name: values[:, places].reshape(-1, *values.shape[2:]) for name, values in draws.items()}, chains


# Comparison


def _compared(replicates: Replicates, name: str, kind: str) -> dict[str, Any]:
    observed, replicated = replicates.observed[name], replicates.replicated[name]
    none = np.isnan(replicated)
    withheld = f"{none.sum()} of {len(none)} replicated data sets have none" if none.any() else ""
    withheld = "the data have none" if np.isnan(observed).any() else withheld
    fixed = bool(np.all(observed == observed[0]))
    mean, sd = (observed[0], 0.0) if fixed else (observed.mean(), observed.std(ddof=1))
    known = {"observed": float(mean), "observed_sd": float(sd)}  # NaN where there is none
    told = moments(replicated[None], independent=True)  # whose mean is NaN where the tails are too heavy
    # of outcomes of two values a quantity of the outcome alone is bounded, though few values may look like a tail
    is_bounded = name in _BOUNDED or (replicates.is_binary and fixed)
    known["mean"] = float(replicated.mean() if is_bounded else told.mean if not none.any() else math.nan)
    known |= zip(("q025", "q975"), map(float, np.quantile(replicated, [0.025, 0.975])), strict=True)
    chains = replicates.chains if kind == "sampled" else 0  # draws of one chain may depend on each other
    p, mcse = (math.nan, math.nan) if withheld else p_value(observed, replicated, chains)
    withheld = withheld or str(told.withheld) * math.isnan(known["mean"])
    return {**known, "p_value": p, "mcse": mcse, "replicates": len(none), "withheld": withheld}


def p_value(observed: np.ndarray, replicated: np.ndarray, chains: int = 0) -> tuple[float, float]:
    """Return the probability that replicated exceeds observed, ties counted half, and its Monte Carlo standard error.

    ``chains`` is of how many chains the replicates are, in order; 0 where they are independent. The error is that of a
    share with one success and one failure added, so that 0 of 1000 does not claim certainty.
    """
    with np.errstate(invalid="ignore"):  # infinity less itself
        near = np.abs(replicated - observed) <= _TIE * np.maximum(np.abs(replicated), np.abs(observed))
    tie = near | (replicated == observed)
    beyond = np.where(tie, 0.5, replicated > observed)
    p, size = float(beyond.mean()), float(len(beyond))
    if chains and np.ptp(beyond) > 0 and len(beyond) // chains >= 4:
        size = float(np.fmin(size, diagnostics.ess(beyond.reshape(chains, -1), "mean")))
    share, squares = (size * p + 1) / (size + 2), (size * float(np.mean(np.square(beyond))) + 1) / (size + 2)
    return p, math.sqrt((squares - share**2) / (size + 3))


# Quantities


def _standardized(sets: Sets) -> np.ndarray:
    """Return outcomes less their means given the parameters, in standard deviations given them."""
    rest = sets.y - sets.mean
    sd = np.broadcast_to(sets.sd, rest.shape)
    certain = np.where(rest == 0, 0.0, np.copysign(np.inf, rest))  # the edge of a parameter leaves no spread
    return np.divide(rest, sd, out=certain, where=sd > 0)


def _sd(sets: Sets) -> np.ndarray:
    rows = sets.y.shape[1]
    return sets.y.std(axis=1) * math.sqrt(rows / (rows - 1)) if rows > 1 else np.full(len(sets.y), math.nan)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.full(np.shape(below), math.nan), where=below > 0)


def _skewness(sets: Sets) -> np.ndarray:
    if sets.y.shape[1] < 3:  # of two it is 0, whatever they are
        return np.full(len(sets.y), math.nan)
    centred = sets.y - sets.y.mean(axis=1, keepdims=True)
    return _ratio(np.mean(centred**3, axis=1), np.mean(np.square(centred), axis=1) ** 1.5)


def _lag_1(sets: Sets) -> np.ndarray:
    z = _standardized(sets)
    if z.shape[1] < 2:
        return np.full(len(z), math.nan)
    with np.errstate(invalid="ignore"):  # NaN of residuals that are infinite
        return _ratio(np.sum(z[:, 1:] * z[:, :-1], axis=1), np.sum(np.square(z), axis=1))


def _longest_run(sets: Sets) -> np.ndarray:
    ends = [np.flatnonzero(np.diff(row)) for row in sets.y]
    last = sets.y.shape[1] - 1
    return np.array([np.max(np.diff(np.concatenate([[-1], end, [last]]))) for end in ends], dtype=np.float64)


STATISTICS: dict[str, Statistic] = {
    "mean": lambda sets: sets.y.mean(axis=1),
    "standard deviation": _sd,
    "minimum": lambda sets: sets.y.min(axis=1),
    "maximum": lambda sets: sets.y.max(axis=1),
    "skewness": _skewness,
    "share of zeros": lambda sets: np.mean(sets.y == 0, axis=1),
    "changes": lambda sets: np.count_nonzero(np.diff(sets.y, axis=1), axis=1),
    "longest run": _longest_run,
    "largest absolute standardized residual": lambda sets: np.max(np.abs(_standardized(sets)), axis=1),
    "lag-1 autocorrelation of residuals": _lag_1,
}
"""The quantities that have a name. Residuals are those under the draw that the data set is made from."""

_OF_RESIDUALS = ("largest absolute standardized residual", "lag-1 autocorrelation of residuals")
_REAL = ("mean", "standard deviation", "minimum", "maximum", "skewness", *_OF_RESIDUALS)
_OF_COLUMNS = _REAL[:5]
_COUNTED = ("mean", "standard deviation", "maximum", "share of zeros", *_OF_RESIDUALS)
_BINARY = ("mean", "changes", "longest run")
_BOUNDED = ("share of zeros", "changes", "longest run", "lag-1 autocorrelation of residuals")


def _usual(model: Model, data: Arrays) -> tuple[str, ...]:
    """Name the quantities that suit the outcome."""
    if isinstance(model.inputs, Matrix):
        return _OF_COLUMNS
    if isinstance(model.inputs, Binary) and "trials" not in data:
        return _BINARY
    return _COUNTED if isinstance(model.inputs, Binary | Counts) else _REAL


def _chosen(statistics: Any, model: Model, data: Arrays) -> dict[str, Statistic]:
    """Return the quantities that are asked for, by name."""
    statistics = _usual(model, data) if statistics is None else statistics
    if isinstance(statistics, Mapping):
        return {str(name): _own(str(name), function) for name, function in statistics.items()}
    several = isinstance(statistics, Iterable) and not isinstance(statistics, str)
    chosen: dict[str, Statistic] = {}
    for each in statistics if several else [statistics]:
        name = each if isinstance(each, str) else getattr(each, "__name__", type(each).__name__)
        if name in chosen:
            line = f"two statistics are called {shown(name)}"
            raise InputError(line, "duplicate_name", hint="name them by a mapping")
        if isinstance(each, str) and each not in STATISTICS:
            hint = f"use one of {', '.join(STATISTICS)}"
            raise InputError(f"there is no statistic {shown(name)}", "unknown_name", hint=hint)
        chosen[name] = STATISTICS[each] if isinstance(each, str) else _own(name, each)
    return chosen


def _own(name: str, function: object) -> Statistic:
    """Apply a user's T(y) or T(y, data, params) to each data set."""
    if not callable(function):
        raise InputError(f"statistic {shown(name)} is not a function: {function!r}", "wrong_type")
    takes_outcome_only = _takes_outcome_only(name, function)

    def each(sets: Sets) -> np.ndarray:
        if takes_outcome_only:
            return np.array([_number(name, function(y)) for y in sets.y])
        every = enumerate(np.broadcast_to(sets.y, sets.mean.shape))
        draws = ((y, sets.data, {key: values[i] for key, values in sets.params.items()}) for i, y in every)
        return np.array([_number(name, function(*arguments)) for arguments in draws])

    return each


def _takes_outcome_only(name: str, function: Callable[..., object]) -> bool:
    """Say whether a function is T(y), and not T(y, data, params)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some functions written in C
        return True
    for count in (1, 3):
        with suppress(TypeError):
            signature.bind(*[None] * count)
            return count == 1
    raise InputError(f"statistic {shown(name)} must take y, or y, data and params, got {name}{signature}", "wrong_type")


def _number(name: str, value: object) -> float:
    number = np.asarray(value)
    if number.size != 1 or number.dtype.kind not in "biuf":
        line = f"statistic {shown(name)} must return one number, returned {type(value).__name__}"
        raise InputError(line, "wrong_type")
    return float(number.reshape(()))
