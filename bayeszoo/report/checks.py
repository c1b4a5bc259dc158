"""Does the model make data like these? Before seeing them, after, and each of them from the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers import leave_out as score
from bayeszoo.answers.predictive_check import WITH_ERRORS, Replicates, compared, replicate
from bayeszoo.answers.residuals import TOO_FAR, WITHHELD, residuals
from bayeszoo.data.inputs import Matrix
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.inference.engine.approximation import GOOD_K_HAT
from bayeszoo.model.capabilities import Observable
from bayeszoo.model.sequential import Sequential
from bayeszoo.plots import fits as plots
from bayeszoo.plots.residuals import draw_replicates, plot_residuals
from bayeszoo.report.blocks import Block, Folded, Section, Skipped, Words, picture, skipping, table
from bayeszoo.report.numbers import digits_for, estimate, interval, number, written
from bayeszoo.report.series import FALSE_ALARM, P_VALUES, conclusion_of_series, misfits
from bayeszoo.report.verdict import Verdict
from bayeszoo.results.arviz_groups import extend
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_DRAWN = 8
"""Quantities of replicates in a picture and in a sentence."""
_ABOUT = (
    "A p-value is the probability that a replicate exceeds what was observed; near 0 or 1: misfit. "
    "p-values are conservative because the same data fitted the model."
)


def unlike(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the statistics that no replicate reaches, and those that hardly any does, of `predictive_check`."""
    edge = np.minimum(frame["p_value"], 1 - frame["p_value"])
    return frame[edge == 0], frame[(edge > 0) & (edge < FALSE_ALARM / 2 / len(frame))]


@dataclass(frozen=True)
class Checked:
    """A fit and data sets that its model generates; refusals are errors of `predictive_check`."""

    fit: Fit

    @cached_property
    def replicates(self) -> Replicates:
        """Quantities of the data and of 1000 replicated data sets, or as many as there are draws."""
        sizes = self.fit.tree["posterior"].sizes
        is_point = self.fit.kind == "point estimate"
        return replicate(self.fit, replicates=1000 if is_point else min(1000, sizes["draw"] * sizes["chain"]))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """What `predictive_check` returns."""
        return compared(self.replicates, self.fit)

    @cached_property
    def residuals(self) -> pd.DataFrame:
        """What `residuals` returns."""
        return residuals(self.fit.tree)

    @cached_property
    def is_series(self) -> bool:
        """Whether rows depend on those before, from which each is predicted."""
        model = self.fit.model
        return isinstance(model, Sequential) and not {*model.inputs.coded} & {model.inputs.name}

    def _verdict_of_series(self, name: str) -> Verdict:
        """Say whether rows are where the model predicts them one step ahead."""
        try:
            facts = self.residuals.attrs
        except (InputError, NumericalError, Untrustworthy) as error:
            return Verdict(name, "unknown", "the model was not checked", f"No prediction of rows: {error}.")
        lines = " ".join(conclusion_of_series(facts, facts["model"]))
        if all(np.isnan(facts[key]) for key in P_VALUES):
            return Verdict(name, "unknown", "the model was not checked", lines)
        if misfits(facts):
            return Verdict(name, "misfit", "the model does not fit", lines)
        return Verdict(name, "ok", "the model fits in what was checked", lines)

    def verdict(self, name: str) -> Verdict:
        """Say whether the model makes data like those observed."""
        if self.is_series:
            return self._verdict_of_series(name)
        try:
            frame = self.frame[self.frame["p_value"].notna()]
        except (InputError, NumericalError, Untrustworthy) as error:
            return Verdict(name, "unknown", "the model was not checked", f"No replicates: {error}.")
        if frame.empty:
            return Verdict(name, "unknown", "the model was not checked", "No quantity of the data can be compared.")
        never, rarely = unlike(frame)
        said = [f"The data's {_listed(never)} never occur{'s' * (len(never) == 1)} in {_total(frame)} replicates."]
        said = said * bool(len(never)) + [f"Hardly any replicate has the data's {_listed(rarely)}."] * bool(len(rarely))
        if len(never):
            return Verdict(name, "misfit", "the model does not fit", " ".join(said))
        if len(rarely):
            return Verdict(name, "caution", "the model fits except as noted", " ".join(said))
        more = [f"{len(frame) - MOST_DRAWN} more"] * (len(frame) > MOST_DRAWN)
        listed = ", ".join([*frame.index[:MOST_DRAWN], *more])
        words = f"Replicates are like the data in all {len(frame)} quantities compared: {listed}."
        return Verdict(name, "ok", "the model fits in what was checked", words)


def _total(frame: pd.DataFrame) -> int:
    return int(frame["replicates"].iloc[0])


def _listed(frame: pd.DataFrame) -> str:
    """Name quantities with their values, and what 95% of the replicates have."""
    rows = frame[["observed", "q025", "q975"]].itertuples()
    return " and ".join(
        f"{name} ({number(observed, digits_for(observed, (high - low) / 4, 3))}; "
        f"replicates {interval((low, 0.0), (high, 0.0))})"
        for name, observed, low, high in rows
    )


def section(checked: Checked, named: Mapping[str, tuple[Fit, Any]], left_out: list[Skipped]) -> Section:
    """Compare the data with posterior predictive, leave-one-out and prior predictive distributions."""
    blocks: list[Any] = []
    parts: dict[str, Callable[[], list[Any]]] = {
        "posterior predictive checks": lambda: _predictive(checked),
        "residuals": lambda: [draw_residuals(checked.residuals)],
        "leave-one-out": lambda: [leave_one_out(named)],
        "prior predictive checks": lambda: [_prior_predictive(checked.fit)],
    }
    if checked.is_series:  # of which no data sets are replicated
        parts = {part: parts[part] for part in ("residuals", "leave-one-out")}
    for part, make in parts.items():
        if part == "leave-one-out" or checked.verdict("").state != "unknown":  # which says why
            with skipping(part, left_out):
                blocks += make()
    name = next(name for name, (fit, _) in named.items() if fit is checked.fit)
    of_which = [Words(f"Of {name}:", "note")] * (len(named) > 1 and bool(blocks))
    return Section("fit", "Does the model fit?", of_which + blocks)


def _predictive(checked: Checked) -> list[Block]:
    """List and draw the quantities of replicated data sets and the observed ones."""
    columns = ["quantity", "observed", "replicates", "2.5%", "97.5%", "p-value", "MCSE", "note"]
    rows = [_quantity(row) for row in checked.frame.reset_index().to_dict("records")]
    caption = f"Quantities of {_total(checked.frame)} data sets of the fitted model; red: the observed."
    least_alike = (checked.frame["p_value"] - 0.5).abs().sort_values(ascending=False, kind="stable").index[:MOST_DRAWN]
    drawn = _known(checked.replicates, [name for name in checked.frame.index if name in least_alike])
    pictures = [picture(partial(draw_replicates, drawn), "posterior predictive checks", caption)]
    has_columns = isinstance(checked.fit.model.inputs, Matrix)  # which ArviZ would pool
    if checked.fit.kind != "point estimate" and not has_columns:
        caption = "The outcome, and replicated data sets of it: `arviz.plot_ppc_dist`."
        pictures.append(picture(partial(_outcomes, checked.fit), "replicated outcomes", caption))
    return [table(columns, rows, words=["note"]), Words(_ABOUT, "note"), Folded("Pictures of the replicates", pictures)]


def _quantity(row: Mapping[Any, Any]) -> list[str]:
    """Return a row of the table of quantities, with the digits that the Monte Carlo errors support."""
    p, error = row["p_value"], row["mcse"]
    numbers = [written(row, key) for key in WITH_ERRORS]
    return [row["statistic"], *numbers, estimate(p, error), number(error, 2), row["withheld"]]


def _known(replicates: Replicates, names: Sequence[str]) -> Replicates:
    """Keep those of the quantities that the data have."""
    observed = {name: values for name in names if np.isfinite(values := replicates.observed[name]).all()}
    return replace(replicates, observed=observed, replicated={n: replicates.replicated[n] for n in observed})


def _outcomes(fit: Fit) -> Any:
    """Draw the outcome and its replicates, as ArviZ does."""
    import arviz_plots

    with warnings.catch_warnings(action="ignore"):  # of outcomes that are 0 and 1
        again = extend(fit.tree.copy(), ["posterior_predictive"])
        return arviz_plots.plot_ppc_dist(again, kind="ecdf", num_samples=25, backend="matplotlib")


def _prior_predictive(fit: Fit) -> Folded:
    """Compare the data with data sets drawn from the prior."""
    lead = (
        "Data sets drawn from the prior, and the observed one. A weak prior allows almost anything, and is wide "
        "here; one that leaves the observed outside says something else than the data."
    )
    caption = "Quantities of 1000 data sets from the prior, the middle 90% of them; red: the observed."
    drawn = partial(draw_replicates, _middle(replicate(Fit(_with_prior_draws(fit.tree)))))
    blocks = [Words(lead), picture(drawn, "prior predictive checks", caption)]
    return Folded("Before the data: what the prior expects", blocks)


def _with_prior_draws(tree: xr.DataTree) -> xr.DataTree:
    """Return a fit with its draws, by any method, replaced by the independent draws of the group ``prior``.

    Raises `InputError` where only statistics of the rows were kept, or the prior cannot be drawn.
    """
    of_prior = extend(tree.drop_nodes("prior", errors="ignore"), ["prior"])
    of_prior["posterior"] = of_prior["prior"].copy()
    of_prior.attrs |= {"method": "prior", "kind": "exact", "status": "ok"}
    return of_prior


def _middle(replicates: Replicates) -> Replicates:
    """Leave out residuals, which depend on the parameters, and all but the middle 90%: tails may reach very far."""
    names = [name for name in replicates.observed if "residual" not in name]
    known, replicated = _known(replicates, names[:MOST_DRAWN]), {}
    for name, values in known.replicated.items():
        if (finite := values[np.isfinite(values)]).size:
            low, high = np.quantile(finite, [0.05, 0.95])
            replicated[name] = finite[(finite >= low) & (finite <= high)]
    return replace(known, replicated=replicated)


def leave_one_out(named: Mapping[str, tuple[Fit, object]]) -> Folded:
    """Predict each observation from the others."""
    model = next(iter(named.values()))[0].model
    if not isinstance(model, Observable):
        raise InputError(
            f"{model.name} does not say how one observation is distributed given the parameters", "no_row_law"
        )
    rows = [[name, *_score(fit)] for name, (fit, _) in named.items()]
    columns = ["fit", "LOO score", "se", "MC error", "largest k-hat", "why not"]
    lead = "The mean log predictive density of one observation given all others, in nats; larger is better."
    blocks: list[Any] = [Words(lead), table(columns, rows, words=["why not"])]
    ok = {name: fit for name, (fit, _) in named.items() if fit.is_shown}
    sampled = next((name for name, fit in ok.items() if fit.kind == "sampled"), None)
    if sampled is not None:
        caption = f"k-hat of each row left out of {sampled}: above the dashed line its weights cannot be used."
        blocks.append(picture(partial(plots.khat, ok[sampled].tree), "k-hat of each observation", caption))
    return Folded("Each row from the others: leave-one-out", blocks)


def _score(fit: Fit) -> list[str | float | None]:
    """Return score, its errors and the largest k-hat of a fit, or the reason why there is none."""
    if not fit.is_shown:
        return [None, None, None, None, "the estimates are withheld"]
    try:
        scores = score.of_fit(fit)
    except score.NoScore as error:
        return [None, None, None, None, str(error)]
    return [number(scores.mean, 9), scores.se, scores.mcse, scores.k_hat, ""]


def draw_residuals(frame: pd.DataFrame) -> Block:
    """Draw the residuals of a fit, and say of how many rows they are withheld, and why."""
    held = int(frame["basis"].isin((WITHHELD, TOO_FAR)).sum())
    why = f"k-hat above {GOOD_K_HAT}, where a mean may still be estimated, but a PIT may be far off"
    why = frame.attrs.get("judged", why)
    if held == len(frame):
        return Skipped("residuals", f"withheld of all {held} rows: {why}")
    caption = "What is left when each row is predicted: normal scores, residuals, and where each row fell (PIT)."
    caption += f" Withheld of {held} of {len(frame)} rows: {why}." if held else ""
    return picture(partial(plot_residuals, frame), "residuals", caption, wide=True)
