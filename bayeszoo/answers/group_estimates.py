"""Estimates and ranks of the groups of a hierarchical model: raw, partially pooled and fully pooled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import lazy_loader
import numpy as np
import scipy

from bayeszoo.answers.columns import error_of_mean, p_highest
from bayeszoo.answers.judged import (
    Limits,
    Part,
    answering,
    is_judged,
    kept_parts,
    limits_of,
    line_of,
    moments_part,
    reference_of,
    scores_of,
)
from bayeszoo.data.inputs import Groups
from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.distributions.posterior import INTERVAL, QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Conditional
from bayeszoo.model.views import View
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import summaries_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd = lazy_loader.load("pandas")

Columns = dict[str, np.ndarray]
_ESTIMATES = ("mean", "sd", *QUANTILES, *(f"mcse_{name}" for name in ("mean", "sd", *QUANTILES)))
_RANKS = ("rank", "mcse_rank", "rank_q025", "rank_q975", "p_highest", "mcse_p_highest", "p_lowest", "mcse_p_lowest")
_SPREAD = "sd_shrinkage"
"""The sd over draws of the shrinkage weight, the unit in which its mean is judged; not in the answer."""
_NO_GROUPS = "fit one such as normal_means or beta_binomial; `contrasts` compares fits by group"
_ANSWER = "estimates of groups"


def _group_parameters(model: Model) -> list[str]:
    return [name for name, axes in model.dims.items() if axes == (GROUP,)]


def group_estimates(tree: xr.DataTree) -> pd.DataFrame:
    """Estimate each group of a hierarchy, from its row alone, fully pooled and partially pooled, and rank the groups.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a model with a parameter for each group, such as ``normal_means``.

    Returns
    -------
    pandas.DataFrame
        One row per group, in the order of the data: its standard error, trials or exposure (``se``, ``trials`` or
        ``exposure``), or the number of its ``rows`` for random intercepts; ``raw``, the estimate from its row alone,
        NaN without any trial, and for random intercepts; ``pooled``, the estimate as if the groups did not differ, the
        mean of the raw ones weighted by 1/se^2, trials or exposure; ``mean``, ``sd``, ``q025``, ``median`` and ``q975``
        of its parameter, and their Monte Carlo errors ``mcse_mean``, ``mcse_sd`` and so on. ``shrinkage`` is the
        posterior mean of the weight of the population's mean in the mean of the group's parameter: 0 leaves the raw
        estimate as it is, 1 replaces it by the population's. ``rank`` is the mean rank, 1 the highest, with
        ``rank_q025`` and ``rank_q975``, and ``p_highest`` and ``p_lowest`` the probabilities of the first and the last
        rank. Their Monte Carlo errors are in ``mcse_rank`` and so on. The name of the parameter is in
        ``attrs["quantity"]``. If parameters of an approximation are off, numbers are NaN where draws of the posterior
        do not agree; the column ``withheld`` says which, ``attrs["judged"]`` how far off the others are.

    Raises
    ------
    InputError
        When the model does not have one parameter for each group.
    Untrustworthy
        When the fit failed its gate, or no number of an approximation that is off agrees with the posterior's.

    Notes
    -----
    Moments and quantiles of an exact fit are by quadrature; shrinkage, ranks and probabilities are from its joint
    draws, as the groups depend on each other. A point estimate has neither spread nor ranks. The population's mean is
    not the fully pooled estimate, so that ``shrinkage`` differs from 1 - (mean - pooled) / (raw - pooled).

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("normal_means")
    >>> frame = bz.group_estimates(bz.fit(M(s0=10, t0=5), bz.example(M), "exact", seed=1))
    >>> frame[["raw", "mean", "pooled"]].round(2).head(1).values.tolist()
    [[28.0, 8.69, 7.69]]
    """
    fit = answering(Fit(tree), _ANSWER)
    if View.GROUPS not in fit.model.views():
        problem = f"{fit.model.name} is no model of groups with one parameter each"
        raise InputError(problem, "no_groups", hint=_NO_GROUPS)
    frame = _estimated(fit)
    if is_judged(fit):
        frame = _judged(fit, frame)
    return frame.drop(columns=_SPREAD)


def _estimated(fit: Fit) -> pd.DataFrame:
    (name,), (size, sizes) = _group_parameters(fit.model), sizes_of_groups(fit)
    summary, theta = summaries_of(fit, [name])[name], fit.draws()[name]
    nothing = np.full(theta.shape[2], np.nan)
    columns = {size: sizes, **_unpooled(fit)}
    columns |= {key: nothing if summary[key] is None else summary[key] for key in _ESTIMATES}
    columns |= _shrunk(fit) | (_ranks(theta, fit) if fit.kind != "point estimate" else dict.fromkeys(_RANKS, nothing))
    frame = pd.DataFrame(columns, index=pd.Index(fit.data[GROUP].tolist(), name=GROUP))
    frame.attrs["quantity"] = name
    return frame


def _judged(fit: Fit, own: pd.DataFrame) -> pd.DataFrame:
    """Withhold numbers that disagree with draws of the posterior: estimates, weights, ranks and probabilities apart.

    Weights and ranks depend on the outer parameters and the joint distribution, which estimates do not check.
    """
    limits, reference_fit = limits_of(fit), reference_of(fit)
    reference = _estimated(reference_fit)
    theta = reference_fit.draws()[str(own.attrs["quantity"])]
    estimates, gaps = moments_part(own, reference, limits)
    weights = (own["shrinkage"].to_numpy(), reference["shrinkage"].to_numpy())
    parts = [
        estimates,
        Part(("shrinkage",), limits.means_agree(*weights, reference[_SPREAD].to_numpy()) | np.isnan(weights[0])),
        Part(("rank", "rank_q025", "rank_q975"), _ranks_agree(own, _ranked(theta), limits), "rank"),
    ]
    for name in ("p_highest", "p_lowest"):
        scores = (scores_of(frame[name].to_numpy(), frame[f"mcse_{name}"].to_numpy()) for frame in (own, reference))
        parts.append(Part((name,), limits.scores_agree(*scores)))
    return kept_parts(own, parts, fit, _ANSWER, line_of(estimates.agree, gaps.mean, gaps.sd, limits, "groups"))


def _ranks_agree(own: pd.DataFrame, ranks: np.ndarray, limits: Limits) -> np.ndarray:
    """Compare mean ranks, and the ends of their intervals by the share of the posterior's ranks beyond them."""
    agree = limits.means_agree(own["rank"].to_numpy(), ranks.mean((0, 1)), ranks.std((0, 1), ddof=1))
    for name, level in zip(("rank_q025", "rank_q975"), scipy.special.ndtri([*INTERVAL.values()]), strict=True):
        end = own[name].to_numpy()
        below, up_to = (scipy.special.ndtri(np.mean(inside, axis=(0, 1))) for inside in (ranks < end, ranks <= end))
        slack = limits.mean + (limits.most - 1) * abs(level)
        agree &= (below <= level + slack) & (up_to >= level - slack)
    return np.asarray(agree)


def sizes_of_groups(fit: Fit) -> tuple[str, np.ndarray]:
    """Return the name and values of the groups' standard errors, trials or exposures, else their numbers of rows."""
    inputs = fit.model.inputs
    if isinstance(inputs, Groups):
        return inputs.companion, np.asarray(fit.data[inputs.companion])
    return "rows", np.bincount(fit.data[CODE], minlength=len(fit.data[GROUP]))


def _unpooled(fit: Fit) -> Columns:
    """Return raw and fully pooled estimates; pooled intercepts are 0, and have no raw estimate."""
    model = fit.model
    assert isinstance(model, Conditional)
    if not isinstance(model.inputs, Groups):
        nothing = np.full(len(fit.data[GROUP]), np.nan)
        return {"raw": nothing, "pooled": np.zeros(len(nothing))}
    raw, weight = model.inputs.raw(fit.data)
    if model.shrinkage({key: values[0, 0] for key, values in fit.draws().items()}, fit.data) is None:
        return dict.fromkeys(("raw", "pooled"), np.full(len(raw), np.nan))  # raw estimates are of another quantity
    has_data = weight > 0
    pooled = np.average(raw[has_data], weights=weight[has_data]) if has_data.any() else math.nan
    return {"raw": raw, "pooled": np.full(len(raw), pooled)}


def _shrunk(fit: Fit) -> Columns:
    """Return the mean of the weight of the population's mean over the draws of the outer parameters."""
    model = fit.model
    assert isinstance(model, Conditional)
    outer = {name: fit.draws()[name] for name in model.outer}
    weight = model.shrinkage(outer, fit.data)
    if weight is None:
        names = ("shrinkage", "mcse_shrinkage", _SPREAD)
        return dict.fromkeys(names, np.full(len(fit.data[GROUP]), np.nan))
    error = np.full(weight.shape[2], np.nan) if fit.kind == "point estimate" else error_of_mean(weight, fit.kind)
    return {"shrinkage": weight.mean((0, 1)), "mcse_shrinkage": error, _SPREAD: weight.std((0, 1))}


def _ranked(theta: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.stats.rankdata(-theta, axis=-1))


def _ranks(theta: np.ndarray, fit: Fit) -> Columns:
    """Rank the groups from the highest in each joint draw, shape (chain, draw, group); ties share ranks."""
    ranks = _ranked(theta)
    columns = {"rank": ranks.mean((0, 1)), "mcse_rank": error_of_mean(ranks, fit.kind, theta)}
    bounds = np.quantile(ranks, [*INTERVAL.values()], axis=(0, 1), method="inverted_cdf")
    columns |= dict(zip(("rank_q025", "rank_q975"), bounds, strict=True))
    for name, values in (("p_highest", theta), ("p_lowest", -theta)):
        columns |= dict(zip((name, f"mcse_{name}"), p_highest(values, fit.kind), strict=True))
    return columns
