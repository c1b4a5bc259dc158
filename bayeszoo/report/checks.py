"""Does the model make data like these? Before seeing them, after, and each of them from the others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers import leave_out as score
from bayeszoo.answers.predictive_check import Replicates, predictive_check, prior_tree, replicate
from bayeszoo.answers.residuals import WITHHELD, residuals
from bayeszoo.errors import InputError
from bayeszoo.inference.engine.approximation import GOOD_K_HAT
from bayeszoo.model.capabilities import Observable
from bayeszoo.plots import fits as plots
from bayeszoo.plots.residuals import draw_replicates, plot_residuals
from bayeszoo.report.blocks import Section, Skipped, Words, picture, skipping, table
from bayeszoo.report.tables import number
from bayeszoo.results.groups import extend
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr

_ABOUT = (
    "A p-value is the probability that a replicate exceeds what was observed; near 0 or 1 the model does not make such "
    "data. The data were used to fit as well, so these lean towards one half."
)


def prior_predictive_section(tree: xr.DataTree) -> Section:
    """Compare the data with what the model makes before it has seen any."""
    replicates = _middle(replicate(prior_tree(tree)))
    lead = (
        "Data sets drawn from the prior, beside the observed one. A weak prior allows almost anything, and is wide "
        "here; one that leaves the observed outside says something else than the data."
    )
    caption = "Quantities of 1000 data sets from the prior, the middle 90% of them; red: the observed."
    drawn = picture(partial(draw_replicates, replicates), "prior predictive checks", caption, wide=True)
    return Section("prior", "Before the data: what the prior expects", [Words(lead), drawn])


def _middle(replicates: Replicates) -> Replicates:
    """Leave out residuals, which depend on the parameters, and all but the middle 90%: tails may reach very far."""
    known, replicated = _known(replicates), {}
    for name, values in known.replicated.items():
        if "residual" not in name and (finite := values[np.isfinite(values)]).size:
            low, high = np.quantile(finite, [0.05, 0.95])
            replicated[name] = finite[(finite >= low) & (finite <= high)]
    return replace(known, replicated=replicated)


def _known(replicates: Replicates) -> Replicates:
    """Leave out quantities that the data do not have."""
    observed = {name: values for name, values in replicates.observed.items() if np.isfinite(values).all()}
    return replace(replicates, observed=observed, replicated={n: replicates.replicated[n] for n in observed})


def predictive_section(tree: xr.DataTree) -> Section:
    """Compare the data with what the fitted model makes."""
    draws = tree["posterior"].sizes["draw"] * tree["posterior"].sizes["chain"]
    replicates = 1000 if tree.attrs["kind"] == "point estimate" else min(1000, draws)
    frame = predictive_check(tree, replicates=replicates)
    columns = ["quantity", "observed", "replicates", "2.5%", "97.5%", "p-value", "MCSE", "note"]
    keys = ["observed", "mean", "q025", "q975", "p_value", "mcse", "withheld"]
    rows = [[str(name), *cells] for name, *cells in frame[keys].itertuples()]
    caption = f"Quantities of {replicates} data sets of the model fitted by {tree.attrs['method']}; red: the observed."
    make = lambda: draw_replicates(_known(replicate(tree, replicates=replicates)))  # noqa: E731
    drawn = picture(make, "posterior predictive checks", caption, wide=True)
    blocks = [Words(_ABOUT), drawn, table(columns, rows, words=["note"])]
    if tree.attrs["kind"] != "point estimate":
        caption = "The outcome, and replicated data sets of it: `arviz.plot_ppc_dist`."
        blocks.insert(2, picture(partial(_outcomes, tree), "replicated outcomes", caption))
    return Section("predictive", "After the data: what the model would make again", blocks)


def _outcomes(tree: xr.DataTree) -> Any:
    """Draw the outcome beside replicates of it, as ArviZ does."""
    import arviz_plots

    with warnings.catch_warnings(action="ignore"):  # of outcomes that are 0 and 1
        again = extend(tree.copy(), ["posterior_predictive"])
        return arviz_plots.plot_ppc_dist(again, kind="ecdf", backend="matplotlib")


def leave_one_out(named: Mapping[str, tuple[xr.DataTree, Any]]) -> Section:
    """Predict each observation from the others."""
    model = Fit(next(iter(named.values()))[0]).model
    if not isinstance(model, Observable):
        raise InputError(f"{model.name} does not say how one observation is distributed given the parameters")
    rows = [[name, *_score(tree)] for name, (tree, _) in named.items()]
    columns = ["fit", "LOO score", "se", "MC error", "largest k-hat", "why not"]
    lead = "The mean log predictive density of one observation given all others, in nats; larger is better."
    blocks: list[Any] = [Words(lead), table(columns, rows, words=["why not"])]
    ok = {name: tree for name, (tree, _) in named.items() if Fit(tree).is_shown}
    sampled = next((name for name, tree in ok.items() if tree.attrs["kind"] == "sampled"), None)
    if sampled is not None:
        caption = f"k-hat of each row left out of {sampled}: above the dashed line its weights cannot be used."
        blocks.append(picture(partial(plots.khat, ok[sampled]), "k-hat of each observation", caption))
    if ok:
        blocks.append(_residuals(ok[sampled if sampled is not None else next(iter(ok))]))
    return Section("loo", "Each from the others: leave-one-out", blocks)


def _score(tree: xr.DataTree) -> list[Any]:
    """Return score, its errors and the largest k-hat of a fit, or the reason why there is none."""
    if not Fit(tree).is_shown:
        return [None, None, None, None, "the estimates are withheld"]
    try:
        scores = score.of_fit(tree)
    except score.NoScore as error:
        return [None, None, None, None, str(error)]
    return [number(scores.mean, 9), scores.se, scores.mcse, scores.k_hat, ""]


def _residuals(tree: xr.DataTree) -> Any:
    """Draw the residuals of a fit, and say of how many rows they are withheld, and why."""
    blocks: list[Any] = []
    with skipping("residuals", blocks):
        frame = residuals(tree)
        held = int((frame["basis"] == WITHHELD).sum())
        why = f"k-hat above {GOOD_K_HAT}, where a mean may still be estimated, but a PIT may be far off"
        if held == len(frame):
            return Skipped("residuals", f"withheld of all {held} rows: {why}")
        caption = "What is left when each row is predicted: normal scores, residuals, and where each row fell (PIT)."
        caption += f" Withheld of {held} of {len(frame)} rows: {why}." if held else ""
        blocks.append(picture(partial(plot_residuals, frame), "residuals", caption, wide=True))
    return blocks[0]
