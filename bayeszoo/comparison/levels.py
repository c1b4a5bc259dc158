"""Estimates of the levels of a feature of a regression, and contrasts between these by joint draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.answers.judged import answering, is_judged
from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.comparison.contrast_columns import (
    LOWEST,
    OTHERS,
    SPREAD,
    by_draws,
    columns_of,
    of_points,
    pairs_of,
    quantiles_named,
    sides_of,
    with_means,
)
from bayeszoo.comparison.judged_contrasts import ANSWER, judged_contrasts, judged_estimates
from bayeszoo.data.table.table import quoted
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.foundation.tails import moments
from bayeszoo.model.capabilities.linear_predictor import Feature, LinearPredictor, has_slopes
from bayeszoo.results.stored import Fit, is_by_group
from bayeszoo.results.summary import summaries_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd = lazy_loader.load("pandas")


def is_of_levels(tree: xr.DataTree) -> bool:
    """Say whether a tree is one fit of a regression with levels."""
    return "bayeszoo_format" in getattr(tree, "attrs", {}) and not is_by_group(tree) and bool(_with_levels(Fit(tree)))


def _with_levels(fit: Fit) -> dict[str, Feature]:
    if not has_slopes(fit.model):
        return {}
    return {name: feature for name, feature in fit.model.separate_features(fit.like).items() if feature.levels}


def _predictor(fit: Fit, feature: Feature, w: np.ndarray) -> np.ndarray:
    """Return the linear predictor (..., levels), other features at their centres, of weights w (..., T)."""
    assert has_slopes(fit.model)
    names = fit.like["feature"]
    rows = feature.rows(np.array(fit.model.entries("center", len(names))))
    return fit.model.predictor({"w": w}, {"X": rows, "feature": names})


def estimates_of_levels(fit: Fit) -> pd.DataFrame:
    """Return the linear predictor at each level of each feature, other features at their centres, a row a level."""
    return judged_estimates(answering(fit, "estimates of levels"), _estimated)


def _estimated(fit: Fit) -> pd.DataFrame:
    rows = list[dict[str, Any]]()
    for name, feature in _with_levels(fit).items():
        draws = _predictor(fit, feature, fit.draws()["w"])
        columns = {"mean": draws.mean((0, 1)) if is_judged(fit) else _predictor(fit, feature, _mean(fit))}
        if fit.kind != "point estimate":
            levels = np.quantile(draws, [*QUANTILES.values()], axis=(0, 1))
            sd = moments(draws, independent=fit.has_independent_draws).sd
            columns |= {"sd": sd, **dict(zip(QUANTILES, levels, strict=True))}
        for i, level in enumerate(feature.levels):
            rows.append(
                {"quantity": name, "group": level, **{key: float(values[i]) for key, values in columns.items()}}
            )
    return pd.DataFrame(rows)


def contrasts_of_levels(fit: Fit, against: str | None, rope: float | None) -> pd.DataFrame:
    """Compare the levels of each feature with levels, by joint draws of the linear predictor."""
    answering(fit, ANSWER)
    features = _with_levels(fit)
    chosen = {name: feature for name, feature in features.items() if against in (None, *OTHERS, *feature.levels)}
    if not chosen:
        levels = "; ".join(f"{name}: {quoted(feature.levels)}" for name, feature in features.items())
        raise InputError(f"there is no level {against!r}", "unknown_name", hint=f"the levels are {levels}")
    notes = list[str]()

    def ask(view: Fit) -> pd.DataFrame:
        frames = [_contrasted(view, name, feature, against, rope) for name, feature in chosen.items()]
        frame = pd.concat(frames, ignore_index=True)
        notes[:] = [] if against else _notes(frame, chosen)
        return frame

    frame = judged_contrasts(fit, ask)
    assert has_slopes(fit.model)
    ratio = f"; ratios of the {fit.model.ratio_of}" if fit.model.ratio_of else ""
    frame.attrs |= {"of": f"{fit.model.predicted_quantity}{ratio}", "notes": notes}
    return frame


def _contrasted(fit: Fit, name: str, feature: Feature, against: str | None, rope: float | None) -> pd.DataFrame:
    model = fit.model
    assert has_slopes(model)
    is_point = fit.kind == "point estimate"
    pairs = pairs_of(feature.levels, against, feature.levels[0])
    first, second = sides_of(_predictor(fit, feature, fit.draws()["w"]), feature.levels, pairs)
    columns = of_points(first[0, 0], second[0, 0]) if is_point else by_draws(first, second, rope)
    difference = np.full_like(first, np.nan) if against == LOWEST else second - first  # lower by a difference alone
    columns |= _ratios(model, difference, is_point=is_point)
    if is_judged(fit):
        columns["difference"] = columns["difference_mean"]
    else:  # posterior means of the weights may be exact
        low, high = sides_of(_predictor(fit, feature, _mean(fit)), feature.levels, pairs)
        columns = with_means(columns, high - low, pairs, are_exact=fit.kind == "exact")
    named = {"group": [pair[0] for pair in pairs], "against": [pair[1] for pair in pairs]}
    return pd.DataFrame({"quantity": name, **named, **{key: columns[key] for key in (*columns_of(rope), *SPREAD)}})


def _ratios(model: LinearPredictor, difference: np.ndarray, *, is_point: bool) -> dict[str, np.ndarray]:
    """Return quantiles of ratios, exp of differences of a log; NaN for a predictor that is no log."""
    with np.errstate(over="ignore"):
        ratio = np.exp(difference) if model.ratio_of else np.full_like(difference, np.nan)
    ratio = np.where(np.isfinite(ratio).all((0, 1)), ratio, np.nan)
    return {"ratio": ratio[0, 0]} if is_point else quantiles_named("ratio", Quantiles.of_draws(ratio))


def _mean(fit: Fit) -> np.ndarray:
    return np.asarray(summaries_of(fit, ["w"])["w"]["mean"], dtype=np.float64)


def _notes(frame: pd.DataFrame, features: Mapping[str, Feature]) -> list[str]:
    """Return a note for each feature whose levels are not all compared pairwise."""
    counts = {name: len(feature.levels) for name, feature in features.items()}
    shortened = [name for name, n in counts.items() if (frame["quantity"] == name).sum() < n * (n - 1) / 2]
    references = {name: features[name].levels[0] for name in shortened}
    return [f"the levels of {name} are each compared with {level}, the reference" for name, level in references.items()]
