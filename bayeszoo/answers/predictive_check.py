"""Posterior predictive checks: whether the data set is like replicates from the fitted model.

One data set is drawn for each draw of the parameters, and a quantity T of it compared with that of the data: Rubin
1984; Gelman, Meng and Stern 1996; Gelman et al., BDA3, section 6.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.answers.judged import FAR, answering, gaps_agree, is_judged, limits_of, line_of, reference_of, refuse
from bayeszoo.answers.replicated_statistics import BOUNDED, Sets, chosen_of
from bayeszoo.answers.residuals import one_number_outcomes
from bayeszoo.data.inputs import Matrix
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, NoRowLaw
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import moments
from bayeszoo.model.capabilities import Observable
from bayeszoo.model.function import OfFunction
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.gaps import gaps, statistics_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_COLUMNS = 8
"""Columns of an outcome of several numbers that are checked, the first."""
_ANSWER = "predictive checks of it"
QUANTILES = {"q025": 0.025, "q975": 0.975}
WITH_ERRORS = ("observed", "mean", *QUANTILES)
"""Columns that have their Monte Carlo standard error in a column ``mcse_...``."""
_OF_REPLICATES = ("mean", *QUANTILES, "p_value", "mcse", "mcse_mean", *(f"mcse_{name}" for name in QUANTILES))
_LARGEST_DRAWN = 1e15
"""Ten sds above the mean of counts from which NumPy cannot draw them."""
_TIE = 32 * float(np.finfo(np.float64).eps)
"""Relative difference up to which two values are equal: sums in another order round differently."""


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
        standard error (of p-values of 0 and 1 it is not 0: one more replicate and one less are added); those of the
        other numbers, ``mcse_observed``, ``mcse_mean``, ``mcse_q025`` and ``mcse_q975``; ``replicates``;
        ``withheld``, why there is no p-value or no mean, else empty. Of an approximation that is off in some quantity,
        replicates are drawn from the posterior by which it was measured too, and quantities that disagree are withheld.

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
    fit = answering(tree, _ANSWER)
    own = _replicated(fit, statistics, replicates, seed)
    frame = compared(own, tree)
    if not is_judged(fit):
        return frame
    reference = reference_of(fit)
    sizes = reference.tree["posterior"].sizes
    others = _replicated(reference, statistics, min(replicates, sizes["chain"] * sizes["draw"]), seed)
    return _judged(fit, frame, (own, others), compared(others, reference.tree))


def _judged(fit: Fit, frame: pd.DataFrame, both: tuple[Replicates, Replicates], known: pd.DataFrame) -> pd.DataFrame:
    """Withhold quantities whose replicates, or p-value, are not those of draws of the posterior."""
    limits = limits_of(fit)
    of_own, of_known = (np.stack(list(each.replicated.values()), axis=-1)[None] for each in both)
    statistics = statistics_of(of_known)
    apart = gaps(of_own, statistics)
    scores = (_score(each["p_value"], each["replicates"]) for each in (frame, known))
    agrees = gaps_agree(apart, statistics, limits) & limits.scores_agree(*scores)
    agrees |= np.isnan(of_own).any(axis=(0, 1))  # withheld as it is
    if not agrees.any():
        refuse(fit, _ANSWER)
    numbers = ["observed", "observed_sd", "mcse_observed", *_OF_REPLICATES]
    is_of_data = frame["observed_sd"].to_numpy() == 0
    for name in numbers:
        frame[name] = frame[name].where(agrees | (is_of_data & (name not in _OF_REPLICATES)))
    frame["withheld"] = frame["withheld"].where(agrees, FAR)
    frame.attrs["judged"] = line_of(agrees, apart.mean, apart.sd, limits, "statistics")
    return frame


def _score(p: pd.Series, replicates: pd.Series) -> np.ndarray:
    """Return the normal scores of p-values, of which 0 and 1 are as half a replicate from these."""
    size = replicates.to_numpy(dtype=np.float64)
    return np.asarray(scipy.special.ndtri((size * p.to_numpy(dtype=np.float64) + 0.5) / (size + 1)))


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
    return _replicated(require_shown(Fit(tree), _ANSWER), statistics, replicates, seed)


def _replicated(fit: Fit, statistics: object, replicates: int, seed: int | np.random.Generator) -> Replicates:
    model, data, columns = _columns(fit)
    chosen = chosen_of(statistics, model, data)
    names = {(name, label): f"{name} of {label}" if label else name for label in columns for name in chosen}
    draws, chains = _thinned(known := fit.draws(), fit.kind, replicates)
    size, rng = len(next(iter(draws.values()))), stream_of_fit(fit.tree.attrs, seed, "predictive check")
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


def _can_be_drawn(law: Any) -> Any:
    """Say of each row whether NumPy can draw it: its counts are not too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        return not hasattr(law, "logpmf") or np.asarray(law.mean() + 10 * law.std()) < _LARGEST_DRAWN


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
    can = np.broadcast_to(_can_be_drawn(law), shape)
    if not (kept := can.all(axis=tuple(range(1, len(shape))))).all():
        params = type(params)({name: values[kept] for name, values in params.items()})
        law, shape = model.likelihood(params, data), (int(kept.sum()), *shape[1:])
    mean, sd = (np.broadcast_to(np.asarray(each, dtype=np.float64), shape) for each in (law.mean(), law.std()))
    return Drawn(law.rvs(size=shape, random_state=rng), mean, sd, params, kept)


def _columns(fit: Fit) -> tuple[Observable | OfFunction, Data, dict[str, np.ndarray]]:
    """Return model, data, and the outcome, (rows,), under no name; or of several real numbers each under its own."""
    if not (isinstance(fit.model, Observable) and isinstance(fit.model.inputs, Matrix)):
        model, data, y = one_number_outcomes(fit, "predictive checks")
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
    is_bounded = name in BOUNDED or (replicates.is_binary and fixed)
    known["mean"] = float(replicated.mean() if is_bounded else told.mean if not none.any() else math.nan)
    known |= {each: float(np.quantile(replicated, prob)) for each, prob in QUANTILES.items()}
    chains = replicates.chains if kind == "sampled" else 0  # draws of one chain may depend on each other
    known |= _errors(known, observed, replicated, chains)
    p, mcse = (math.nan, math.nan) if withheld else p_value(observed, replicated, chains)
    withheld = withheld or str(told.withheld) * math.isnan(known["mean"])
    return {**known, "p_value": p, "mcse": mcse, "replicates": len(none), "withheld": withheld}


def _errors(known: dict[str, float], observed: np.ndarray, replicated: np.ndarray, chains: int) -> dict[str, float]:
    """Return the Monte Carlo standard errors of means and quantiles of draws (replicates,), NaN of unknown ones."""

    def error(values: np.ndarray, prob: float | None = None) -> float:
        if not np.isfinite(values).all():
            return math.nan
        method = "mean" if prob is None else "quantile"
        if chains and np.ptp(values) > 0 and len(values) // chains >= 4:
            return float(diagnostics.mcse(values.reshape(chains, -1), method, prob))
        return float(diagnostics.mcse_of_independent(values[None], method, prob))

    errors = {"observed": error(observed) if known["observed_sd"] else 0.0, "mean": error(replicated)}
    errors |= {name: error(replicated, prob) for name, prob in QUANTILES.items()}
    return {f"mcse_{name}": value if math.isfinite(known[name]) else math.nan for name, value in errors.items()}


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
