"""Estimates of the groups of one hierarchical fit, and contrasts between these dependent groups by joint draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import lazy_loader
import numpy as np

from bayeszoo.answers.judged import answering, is_judged
from bayeszoo.comparison.contrast_columns import (
    SPREAD,
    by_draws,
    columns_of,
    of_points,
    pairs_of,
    sides_of,
    with_means,
)
from bayeszoo.comparison.judged_contrasts import ANSWER, judged_contrasts, judged_estimates
from bayeszoo.data.inputs import Groups
from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.inputs.groups.regressions import WithGroups
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.errors import InputError
from bayeszoo.results.stored import Fit, is_by_group
from bayeszoo.results.summary import summaries_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd = lazy_loader.load("pandas")


def is_of_groups(tree: xr.DataTree) -> bool:
    """Say whether a tree is one fit of a model with parameters for each group."""
    return "bayeszoo_format" in getattr(tree, "attrs", {}) and not is_by_group(tree) and bool(_of_groups(Fit(tree)))


def _of_groups(fit: Fit) -> list[str]:
    if not isinstance(fit.model.inputs, Groups | WithGroups):
        return []
    return [name for name, axes in fit.model.dims.items() if axes == (GROUP,) and name in fit.draws()]


def labels_of(fit: Fit) -> list[str]:
    """Name the groups of a hierarchical fit."""
    return [str(label) for label in fit.like[GROUP].tolist()]


def estimates_within(fit: Fit) -> pd.DataFrame:
    """Return mean, sd and quantiles of each quantity in each group, a row for each pair."""
    answering(fit, "estimates of groups")

    def ask(view: Fit) -> pd.DataFrame:
        rows = []
        for name, summary in summaries_of(view, _of_groups(view)).items():
            columns = {key: values for key, values in summary.items() if key != "withheld" and values is not None}
            for i, label in enumerate(labels_of(fit)):
                row = {key: float(values[i]) for key, values in columns.items()}
                rows.append({"quantity": name, "group": label, **row})
        return pd.DataFrame(rows)

    return judged_estimates(fit, ask)


def contrasts_within(fit: Fit, against: str | None, rope: float | None) -> pd.DataFrame:
    """Compare the groups of a hierarchical fit, quantity by quantity."""
    fit, labels = answering(fit, ANSWER), labels_of(fit)
    inputs, notes = fit.model.inputs, list[str]()
    precisions = inputs.raw(fit.data)[1] if isinstance(inputs, Groups) else np.bincount(fit.data[CODE])
    best = int(np.argmax(precisions))
    if len(labels) == 1:
        raise InputError(f"there is one group only, {labels[0]!r}", "one_group", hint="its estimate is in the fit")
    pairs = pairs_of(labels, against, labels[best])
    if against is None and len(pairs) < len(labels) * (len(labels) - 1) / 2:
        noun, sizes = "rows", precisions
        if isinstance(inputs, Groups):
            noun, sizes = inputs.companion, fit.data[inputs.companion]
        reference = f"{labels[best]}, the most precise ({noun} {sizes[best]:g})"
        notes.append(f"each of the {len(labels)} groups is compared with {reference}")
    named = {"group": [pair[0] for pair in pairs], "against": [pair[1] for pair in pairs]}

    def ask(view: Fit) -> pd.DataFrame:
        frames = [
            pd.DataFrame({"quantity": name, **named, **_contrasted(view, name, labels, pairs, rope)})
            for name in _of_groups(fit)
        ]
        return pd.concat(frames, ignore_index=True)

    frame = judged_contrasts(fit, ask)
    frame.attrs["notes"] = notes
    return frame


def _contrasted(
    fit: Fit, name: str, labels: Sequence[str], pairs: Sequence[tuple[str, str]], rope: float | None
) -> dict[str, np.ndarray]:
    """Compare the groups of each pair by the joint draws."""
    draws = fit.draws()[name]
    first, second = sides_of(draws, labels, pairs)
    if fit.kind == "point estimate":
        columns = of_points(first[0, 0], second[0, 0])
    else:
        columns = by_draws(first, second, rope, bool((draws > 0).all()))
    if is_judged(fit):
        columns["difference"] = columns["difference_mean"]
    else:
        low, high = sides_of(np.asarray(summaries_of(fit, [name])[name]["mean"], dtype=np.float64), labels, pairs)
        columns = with_means(columns, high - low, pairs, are_exact=fit.kind == "exact")
    return {key: columns[key] for key in (*columns_of(rope), *SPREAD)}
