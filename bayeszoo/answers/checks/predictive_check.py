"""Posterior predictive checks: compare the data set with replicates from the fitted model.

One data set is drawn for each draw of the parameters, and a quantity T of it compared with that of the data: Rubin
1984; Gelman, Meng and Stern 1996; Gelman et al., BDA3, section 6.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.answers.checks.replicated_statistics import BOUNDED, Sets, chosen_of
from bayeszoo.answers.checks.residuals import one_number_outcomes
from bayeszoo.answers.judged import FAR, answering, gaps_agree, is_judged, limits_of, line_of, reference_of, refuse
from bayeszoo.data.inputs import Matrix
from bayeszoo.data.read import Data
from bayeszoo.distributions.posterior import INTERVAL
from bayeszoo.errors import InputError, NoRowLaw
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.blocks import AT_ONCE, blocks
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.foundation.tails import moments
from bayeszoo.model.capabilities import Observable
from bayeszoo.model.capabilities.function import OfFunction
from bayeszoo.model.draws import shape_of, size_of
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.gaps import gaps, statistics_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_COLUMNS = 8
"""Columns of an outcome that are checked: the first ones."""
_ANSWER = "predictive checks of it"
WITH_ERRORS = ("observed", "mean", *INTERVAL)
"""Columns whose Monte Carlo standard error is in a column ``mcse_...``."""
_OF_REPLICATES = ("mean", *INTERVAL, "p_value", "mcse", "mcse_mean", *(f"mcse_{name}" for name in INTERVAL))
_LARGEST_DRAWN = 1e15
"""Counts whose mean plus ten sds exceeds it cannot be drawn by NumPy."""
_TIE = 32 * float(np.finfo(np.float64).eps)
"""Relative difference up to which two values are equal: sums in different orders round differently."""


@dataclass(frozen=True)
class Replicates:
    """Quantities of the data and of replicated data sets, by name, of shape (replicates,).

    Observed quantities are all equal unless they depend on the parameters. Replicates come from ``chains`` chains, one
    after the other.
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
        What `fit` returned for a model whose outcome is one number per row, or several real ones: then each column is
        checked by itself.
    statistics : mapping of str to callable, or sequence of callables and names, optional
        Quantities T. A callable is T(y), or T(y, data, params), with y the outcome, shape (rows,), data the arrays of
        the fit, and params one draw of the parameters; it returns one number. Names are those of `STATISTICS`. The
        default suits the outcome. Real numbers: mean, standard deviation, minimum, maximum, skewness, the largest
        absolute standardized residual and the lag-1 autocorrelation of the residuals in the order of the rows; for
        several numbers per row without those of residuals. Counts: the share of zeros and the Pearson
        dispersion, the mean square of residuals in sds given the parameters (1 on average over replicates, and more in
        data that vary more than the model says), but not minimum and skewness. Zeros and ones: mean, changes and
        longest run.
    replicates : int
        Number of data sets, each from another draw; rounded up to a multiple of the chains.
    seed : int or numpy.random.Generator
        Seed of the replicated data sets.

    Returns
    -------
    pandas.DataFrame
        One row per quantity: ``observed``, and ``observed_sd`` over draws if it depends on the parameters, as residuals
        do (else 0); ``mean``, ``q025`` and ``q975`` of the replicates; ``p_value``, the probability that a replicate
        exceeds the observed quantity under the same draw, ties counted half; ``mcse``, its Monte Carlo standard error
        (for p-values of 0 and 1 it is not 0: one replicate above and one below are added); the errors
        ``mcse_observed``, ``mcse_mean``, ``mcse_q025`` and ``mcse_q975``; ``replicates``; ``withheld``, why there is
        no p-value or no mean, else empty. If an approximation is off in some quantity, replicates are also drawn from
        the posterior by which it was measured, and quantities that disagree are withheld.

        ``attrs`` name the model and the fit, and ``basis``, which is ``"plug-in"`` for a point estimate.

    Notes
    -----
    A p-value near 0 or 1 says that the model does not reproduce the quantity. Under the true model these p-values are
    not uniform but nearer to 1/2, as the data were also used to fit: most of all for a quantity that the parameters
    are fitted to, such as the mean, whose check is nearly useless (Meng 1994; BDA3, section 6.3). Autocorrelation and
    runs are meaningful only if the order of the rows is.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When an outcome is a category or several counts, or has missing values, there are fewer draws than replicates,
        or a quantity is not one number.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("gaussian_mean")
    >>> tree = bz.fit(M.weak(bz.example(M)), method="exact", seed=1)
    >>> list(bz.predictive_check(tree, {"median": np.median}).index)
    ['median']
    """
    fit = answering(Fit(tree), _ANSWER)
    own = _replicated(fit, statistics, replicates, seed)
    frame = compared(own, fit)
    if not is_judged(fit):
        return frame
    reference = reference_of(fit)
    sizes = reference.tree["posterior"].sizes
    by_reference = _replicated(reference, statistics, min(replicates, sizes["chain"] * sizes["draw"]), seed)
    return _judged(fit, frame, (own, by_reference), compared(by_reference, reference))


def _judged(
    fit: Fit, frame: pd.DataFrame, both: tuple[Replicates, Replicates], reference: pd.DataFrame
) -> pd.DataFrame:
    """Withhold quantities whose replicates, or p-value, are not those of draws of the posterior."""
    limits = limits_of(fit)
    of_own, of_reference = (np.stack(list(sets.replicated.values()), axis=-1)[None] for sets in both)
    statistics = statistics_of(of_reference)
    apart = gaps(of_own, statistics)
    scores = (_score(table["p_value"], table["replicates"]) for table in (frame, reference))
    agrees = gaps_agree(apart, statistics, limits) & limits.scores_agree(*scores)
    agrees |= np.isnan(of_own).any(axis=(0, 1))  # withheld already
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
    """Return the normal scores of p-values; 0 and 1 are moved inside by half a replicate."""
    size = replicates.to_numpy(dtype=np.float64)
    return np.asarray(scipy.special.ndtri((size * p.to_numpy(dtype=np.float64) + 0.5) / (size + 1)))


def compared(replicates: Replicates, fit: Fit) -> pd.DataFrame:
    """Return the table of `predictive_check` for replicated data sets."""
    import pandas as pd

    rows = [_compared(replicates, name, fit.kind) for name in replicates.replicated]
    frame = pd.DataFrame(rows, index=pd.Index(list(replicates.replicated), name="statistic"))
    basis = "plug-in" if fit.kind == "point estimate" else "posterior draws"
    frame.attrs.update({name: fit.tree.attrs[name] for name in ("model", "method", "kind")} | {"basis": basis})
    return frame


def replicate(
    fit: Fit, statistics: object = None, *, replicates: int = 1000, seed: int | np.random.Generator = 0
) -> Replicates:
    """Draw data sets as `predictive_check` does, and return the quantities themselves."""
    return _replicated(require_shown(fit, _ANSWER), statistics, replicates, seed)


def _replicated(fit: Fit, statistics: object, replicates: int, seed: int | np.random.Generator) -> Replicates:
    model, data, columns = _columns(fit)
    chosen = chosen_of(statistics, model, data)
    names = {(name, label): f"{name} of {label}" if label else name for label in columns for name in chosen}
    all_draws = fit.draws()
    draws, chains = _thinned(all_draws, fit.kind, replicates)
    size, rng = size_of(draws), stream_of_fit(fit.tree.attrs, seed, "predictive check")
    values, is_binary = {name: np.full((2, size), np.nan) for name in names.values()}, True
    for block in blocks(size, len(columns) * size_of(columns), AT_ONCE):
        # the type of the draws names a parameter that they lack
        params = type(all_draws)({name: values[block] for name, values in draws.items()})
        drawn = _draw(model, params, data, rng)
        places = block.start + np.flatnonzero(drawn.kept)
        is_binary &= bool(np.isin(drawn.y, (0, 1)).all())
        for j, (label, y) in enumerate(columns.items() if len(places) else ()):
            column = (..., j) if label else ...
            sets = Sets(drawn.y[column], drawn.mean[column], drawn.sd[column], data, drawn.params)
            for name, statistic in chosen.items():
                observed, pair = statistic(sets._replace(y=y[None])), values[names[name, label]]
                pair[0, places if len(observed) > 1 else slice(None)] = observed
                pair[1, places] = statistic(sets)
    of_data, of_replicates = ({name: pair[i] for name, pair in values.items()} for i in range(2))
    return Replicates(of_data, of_replicates, chains, is_binary)


def _can_be_drawn(law: Any) -> Any:
    """Return whether NumPy can draw each row: its counts are not too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        return not hasattr(law, "logpmf") or np.asarray(law.mean() + 10 * law.std()) < _LARGEST_DRAWN


class Drawn(NamedTuple):
    """Data sets (draws, rows, ...), means and sds of their rows, and a mask of the draws of the parameters used."""

    y: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    params: Any
    kept: np.ndarray


def _draw(model: Observable | OfFunction, params: Any, data: Data, rng: np.random.Generator) -> Drawn:
    """Draw a data set for each draw of the parameters, except those whose counts are too large to be drawn."""
    if isinstance(model, OfFunction):
        law, size = model.law(params, data, data), size_of(params)
        y = model.drawn_rows(params, data, data, rng)
        return Drawn(y, np.asarray(law.mean()), np.asarray(law.std()), params, np.ones(size, dtype=bool))
    law = model.likelihood(params, data)
    shape = np.shape(law.mean())
    can_be_drawn = np.broadcast_to(_can_be_drawn(law), shape)
    if not (kept := can_be_drawn.all(axis=tuple(range(1, len(shape))))).all():
        params = type(params)({name: values[kept] for name, values in params.items()})
        law, shape = model.likelihood(params, data), (int(kept.sum()), *shape[1:])
    mean, sd = (np.broadcast_to(np.asarray(values, dtype=np.float64), shape) for values in (law.mean(), law.std()))
    return Drawn(law.rvs(size=shape, random_state=rng), mean, sd, params, kept)


def _columns(fit: Fit) -> tuple[Observable | OfFunction, Data, dict[str, np.ndarray]]:
    """Return model, data, and named outcomes (rows,): one without a name, or several real ones with theirs."""
    if not (isinstance(fit.model, Observable) and isinstance(fit.model.inputs, Matrix)):
        model, data, y = one_number_outcomes(fit, "predictive checks")
        if not isinstance(model, Observable | OfFunction):
            raise NoRowLaw(f"{model.name} has no distribution of rows given parameters", "no_row_law")
        return model, data, {"": y}
    Y, labels = fit.data[fit.model.inputs.name], fit.data[fit.model.inputs.axis]
    if np.isnan(Y).any():
        problem, hint = "predictive checks need every number, and some are missing", "fit again with --missing drop"
        raise InputError(problem, "missing_values", hint=hint)
    return fit.model, fit.data, dict(zip(map(str, labels[:MOST_COLUMNS]), Y.T, strict=False))


def _thinned(draws: dict[str, np.ndarray], kind: str, replicates: int) -> tuple[dict[str, np.ndarray], int]:
    """Return evenly spaced draws of all chains, shape (replicates, ...), and the number of chains."""
    if isinstance(replicates, bool) or not isinstance(replicates, int | np.integer) or replicates < 1:
        raise InputError(f"replicates must be a whole number >= 1, got {replicates!r}", "wrong_type")
    chains, length = shape_of(draws)
    if kind == "point estimate":
        return {name: np.repeat(values[0, :1], replicates, axis=0) for name, values in draws.items()}, 1
    per_chain = math.ceil(replicates / chains)
    if per_chain > length:
        problem = f"the fit has {chains * length} draws, fewer than {replicates} replicates"
        raise InputError(problem, "too_few_rows", hint="ask for fewer")
    places = np.arange(per_chain) * length // per_chain
    return {name: values[:, places].reshape(-1, *values.shape[2:]) for name, values in draws.items()}, chains


# Comparison


def _compared(replicates: Replicates, name: str, kind: str) -> dict[str, Any]:
    observed, replicated = replicates.observed[name], replicates.replicated[name]
    is_missing = np.isnan(replicated)
    withheld = f"{is_missing.sum()} of {len(is_missing)} replicated data sets have none" if is_missing.any() else ""
    withheld = "the data have none" if np.isnan(observed).any() else withheld
    fixed = bool(np.all(observed == observed[0]))
    mean, sd = (observed[0], 0.0) if fixed else (observed.mean(), observed.std(ddof=1))
    numbers = {"observed": float(mean), "observed_sd": float(sd)}  # NaN if undefined
    replicate_moments = moments(replicated[None], independent=True)  # the mean is NaN if the tails are too heavy
    # quantities of binary outcomes alone are bounded, though a few distinct values may look like a tail
    is_bounded = name in BOUNDED or (replicates.is_binary and fixed)
    numbers["mean"] = float(
        replicated.mean() if is_bounded else replicate_moments.mean if not is_missing.any() else math.nan
    )
    numbers |= {quantile: float(np.quantile(replicated, prob)) for quantile, prob in INTERVAL.items()}
    chains = replicates.chains if kind == "sampled" else 0  # draws of one chain may depend on each other
    numbers |= _errors(numbers, observed, replicated, chains)
    p, mcse = (math.nan, math.nan) if withheld else p_value(observed, replicated, chains)
    withheld = withheld or str(replicate_moments.withheld) * math.isnan(numbers["mean"])
    return {**numbers, "p_value": p, "mcse": mcse, "replicates": len(is_missing), "withheld": withheld}


def _errors(numbers: dict[str, float], observed: np.ndarray, replicated: np.ndarray, chains: int) -> dict[str, float]:
    """Return the Monte Carlo standard errors of means and quantiles of draws (replicates,), NaN for unknown ones."""

    def error(values: np.ndarray, prob: float | None = None) -> float:
        if not np.isfinite(values).all():
            return math.nan
        method = "mean" if prob is None else "quantile"
        if chains and np.ptp(values) > 0 and len(values) // chains >= 4:
            return float(diagnostics.mcse(values.reshape(chains, -1), method, prob))
        return float(diagnostics.mcse(values[None], method, prob, independent=True))

    errors = {"observed": error(observed) if numbers["observed_sd"] else 0.0, "mean": error(replicated)}
    errors |= {name: error(replicated, prob) for name, prob in INTERVAL.items()}
    return {f"mcse_{name}": value if math.isfinite(numbers[name]) else math.nan for name, value in errors.items()}


def p_value(observed: np.ndarray, replicated: np.ndarray, chains: int = 0) -> tuple[float, float]:
    """Return the probability that replicated exceeds observed, ties counted half, and its Monte Carlo standard error.

    Replicates come from ``chains`` chains, one after the other; 0 if they are independent. The error is that of a share
    with one success and one failure added, so that 0 of 1000 does not claim certainty.
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
