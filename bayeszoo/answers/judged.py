"""Answers that are judged by themselves, of an approximation some of whose parameters are withheld.

Wrong parameters need not make a wrong answer: the distribution of a new row may be right where the mean is
overconfident. So the answer is computed twice, from the approximation and from draws of the posterior that it was
measured against, and each number is shown if both agree. Each is compared in its own units, whatever its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import lazy_loader
import numpy as np

from bayeszoo.answers.columns import with_reasons
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.foundation.gate import MAX_MEAN_GAP, MAX_QUANTILE_GAP, MAX_SD_GAP
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.gaps import STATISTICS, gaps_of
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.support import REFERENCE_DRAWS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

MAX_SCORE_GAP = 0.1
"""Error of a log score, in nats, up to which it is shown."""
_FAR = "mean, sd, quantiles: too far from the posterior's"
_KEPT = ("observed", "what", "withheld")
"""Columns that do not come from the parameters."""


class _Agreement(NamedTuple):
    """Which rows of a table agree with the reference, and a line about all of them."""

    shown: np.ndarray
    line: str


def judged[Rows](
    tree: xr.DataTree, answer: str, rows: Callable[[Fit], Rows], ask: Callable[[Fit, Rows], pd.DataFrame]
) -> pd.DataFrame:
    """Ask a fit, and withhold what disagrees with the posterior where its parameters do.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned.
    answer : str
        What is withheld where the fit is, as "predictions from it".
    rows : callable
        Read what is asked about, once the fit is known to answer.
    ask : callable
        A view of a fit, and what was read, to a table with columns ``mean``, ``sd``, ``q025``, ``median``, ``q975``.

    Returns
    -------
    pandas.DataFrame
        The table. Where parameters are withheld, only what agrees with draws of the posterior within `MAX_MEAN_GAP` sd,
        `MAX_SD_GAP` of the sd and `MAX_QUANTILE_GAP` sd of each quantile, which ``attrs["judged"]`` then says; the rest
        is NaN with its reason in the column ``withheld``. A log score is shown within `MAX_SCORE_GAP` nats.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate, or parameters are withheld, and no row of the answer agrees or no draws of the
        posterior were kept.
    """
    fit = Fit(tree)
    if not is_judged(fit):
        return ask(fit := require_shown(tree, answer), rows(fit))
    about = rows(fit)
    own, reference = ask(fit, about), ask(reference_of(fit), about)
    agreement = _agreement(own, reference)
    if not agreement.shown.any():
        require_shown(tree, answer)
    for name in own.columns.difference([*_KEPT]):
        own[name] = own[name].where(agreement.shown & _agrees(name, own, reference))
    if not agreement.shown.all():
        texts = own["withheld"].to_numpy() if "withheld" in own else np.full(len(own), "", dtype=object)
        own = with_reasons(own, np.where(agreement.shown, texts, _FAR))
    own.attrs["judged"] = agreement.line
    return own


def is_judged(fit: Fit) -> bool:
    """Say whether parameters of a fit are withheld, and draws of the posterior were kept to judge answers by."""
    return fit.is_shown and "parameters_withheld" in fit.facts and REFERENCE_DRAWS in fit


def reference_of(fit: Fit) -> Fit:
    """Return a view of the fit with draws of the posterior in place of its own."""
    groups = {str(name): group.to_dataset() for name, group in fit.tree.children.items()}
    groups.pop("sample_stats", None)  # weights of the approximation's draws
    tree = xr.DataTree.from_dict({**groups, "posterior": groups.pop(REFERENCE_DRAWS)})
    facts = {name: value for name, value in fit.facts.items() if name not in ("withheld", "parameters_withheld")}
    tree.attrs.update(fit.tree.attrs | {"facts": dumps(facts)})
    reference = Fit(tree)
    reference.remember(model=fit.model, observed=fit.observed)
    return reference


def _agreement(own: pd.DataFrame, reference: pd.DataFrame) -> _Agreement:
    """Compare each row with that of the reference; what one of them does not know does not agree."""
    known = _statistics(reference)
    gaps = gaps_of(_statistics(own), known)
    # where the mean or sd is not known quantiles are compared, which of outcomes 0 and 1 may all be 0
    can_tell = np.isfinite(known[:2]).all(axis=0) | (known[-1] > known[2])
    with np.errstate(invalid="ignore"):
        ok = (np.abs(gaps.mean) <= MAX_MEAN_GAP) & (np.abs(gaps.sd - 1) <= MAX_SD_GAP)
        ok &= (gaps.quantile <= MAX_QUANTILE_GAP) & can_tell
    return _Agreement(ok, _line(ok, np.abs(gaps.mean), gaps.sd) if ok.any() else _FAR)


def _line(shown: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> str:
    least, most = sd[shown].min(), sd[shown].max()
    within = f"means within {mean[shown].max():.2g} sd of the posterior's, sds {least:.2g} to {most:.2g} times"
    rest = f"; {(~shown).sum()} of {len(shown)} rows are too far from it" if not shown.all() else ""
    return f"parameters are withheld, and this answer is judged by itself: {within}{rest}"


def _statistics(frame: pd.DataFrame) -> np.ndarray:
    assert ("mean", "sd", *QUANTILES) == STATISTICS
    return np.stack([frame[name].to_numpy(dtype=np.float64) for name in STATISTICS])


def _agrees(name: str, own: pd.DataFrame, reference: pd.DataFrame) -> Any:
    """Say of which rows a column may be shown where the distribution is: a score, within its own limit."""
    if name in STATISTICS or name.startswith("mcse_"):
        return True
    if name != "log_score":
        return False
    return np.abs(own[name] - reference[name]) <= MAX_SCORE_GAP
