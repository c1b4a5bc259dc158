"""Smoothed levels of a series and forecasts, by a fit of a model with a real-valued hidden state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.averages import Average, averaging, by_points, error_of_sum, relative_sum
from bayeszoo.answers.columns import moment_columns, with_reasons
from bayeszoo.answers.judged import (
    Limits,
    Part,
    gaps_agree,
    is_judged,
    kept_parts,
    limits_of,
    line_of,
    moments_part,
    reference_of,
    without_of_all,
)
from bayeszoo.answers.quantiles import Quantiles, over_draws
from bayeszoo.answers.series.tables import frame_of, sequences, times_ahead, times_of
from bayeszoo.data.inputs import Series
from bayeszoo.data.read import Data, read
from bayeszoo.distributions.averages.averaged import NOTHING, Averaged, RowLaw
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options, Params
from bayeszoo.foundation.streams import stream
from bayeszoo.foundation.tails import Moments, existing, moments
from bayeszoo.model.base import fields_of
from bayeszoo.model.capabilities.sequential import LevelsInTime
from bayeszoo.model.draws import every, shape_of
from bayeszoo.results.gaps import gaps_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

LEVELS = "levels by it"
MOST, OF_POINTS = 2**23, 2**25
"""Largest number of draws times rows, above which evenly spaced draws are taken; and of points of a quadrature times
rows, above which an answer is refused."""

FEW = 1e-12
"""Mass relative to that of the heaviest point below which a point is left out if points are costly."""


@dataclass(frozen=True, eq=False)
class LevelsOfFit:
    """Rows whose levels are inferred, and draws or points of the parameters of a fit, (chain, draw, ...).

    A model with known parameters has a single point.
    """

    model: LevelsInTime
    data: Data
    average: Average
    params: Mapping[str, np.ndarray]
    is_independent: bool

    @classmethod
    def of(cls, source: Fit | LevelsInTime, data: Data) -> LevelsOfFit:
        """Take the points of an exact fit, the draws of other fits, or the known parameters of a model."""
        if isinstance(source, LevelsInTime):
            points = {name: values[None] for name, values in source.known_parameters(data).items()}
            return cls(source, data, *by_points(points, np.ones(1), np.ones(1)), is_independent=True)
        fit, model = source, source.model
        assert isinstance(model, LevelsInTime)
        average, params = averaging(fit)
        if average.mass is not None and average.halved is not None and len(model.parts(data)) > 1:
            average, params = _of_half(average, params)
        size, rows = math.prod(shape_of(params)), len(data["y"])
        if average.mass is not None and size * rows > OF_POINTS:
            hint = "fit long series by map or nuts"
            line = f"{rows:,} rows are too many for {size:,} points of a quadrature"
            raise InputError(line, "too_large", hint=hint)
        single = {name: values for name, values in params.items() if values.ndim == 2}
        step = max(1, size * rows // MOST) if average.mass is None else 1
        return cls(model, data, average, every(single, step), fit.has_independent_draws)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of chains, and of draws per chain."""
        return shape_of(self.params)

    def points(self, some: np.ndarray | slice = slice(None)) -> dict[str, np.ndarray]:
        """Return the draws or points, or those at the indices ``some``, (P,)."""
        return {name: values.reshape(-1)[some] for name, values in self.params.items()}

    def mixture(self, law: Callable[[Params], RowLaw]) -> Mixed:
        """Return the law averaged over the draws or points."""
        mass, halved = self.average.mass, self.average.halved
        if mass is not None and halved is not None:
            in_half = halved > NOTHING
            if in_half.all():
                all_points = Averaged(law(self.points()), mass, halved)
                return Mixed(all_points, partial(Quantiles.exact, all_points), None)
            coarse = Averaged(law(self.points(in_half)), halved[in_half] / halved[in_half].sum())
            return Mixed(Averaged(law(self.points()), mass, halved), partial(Quantiles.exact, coarse), None)
        at_draws = law(self.points())
        means, variances = (np.reshape(values, (*self.shape, -1)) for values in (at_draws.mean(), at_draws.var()))
        by_draws = moments(means, variances, independent=self.is_independent)
        size, independent = means.shape[-1], self.is_independent
        quantiles = partial(over_draws, law, self.params, size, counts=False, independent=independent)
        return Mixed(Averaged(at_draws), quantiles, by_draws)

    def log_scores(self) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Return logs of the averaged density of each row given those before it, and their sum, with errors.

        Missing rows are NaN, and not in the sum. The sum is NaN if few draws carry the mean of a row.
        """
        log_p = np.reshape(self.model.log_rows(self.points(), self.data), (*self.shape, -1))
        inputs = self.model.inputs
        assert isinstance(inputs, Series)
        is_observed = ~inputs.masked(self.data)
        value, error = self.average.log_means(log_p, is_observed)
        relative = relative_sum(log_p[..., is_observed], value[is_observed])
        of_sum = 0.0 if self.average.draws is None else error_of_sum(relative, independent=self.is_independent)
        total = {"log_score": float(value[is_observed].sum()), "mcse_log_score": of_sum}
        return {"log_score": value, "mcse_log_score": error}, total


def _of_half(average: Average, params: Mapping[str, np.ndarray]) -> tuple[Average, dict[str, np.ndarray]]:
    """Take the points of half the grid alone, as the smoother of several components is slow.

    The quadrature has passed its checks: halving the grid changes no number that is shown.
    """
    assert average.halved is not None
    is_heavy = average.halved > max(FEW * float(np.max(average.halved)), NOTHING)
    mass = average.halved[is_heavy] / average.halved[is_heavy].sum()
    return replace(average, mass=mass, halved=mass), {name: values[:, is_heavy] for name, values in params.items()}


@dataclass(frozen=True, eq=False)
class Mixed:
    """A law averaged over all draws or points, its quantiles on demand, and its moments if over draws."""

    whole: Averaged
    quantiles: Callable[[], Quantiles]
    by_draws: Moments | None

    def moments(self, below: float) -> Moments:
        """Return mean and sd, with their Monte Carlo errors over draws; orders from ``below`` on do not exist."""
        if self.by_draws is not None:
            return existing(self.by_draws, below)
        return Moments.exact(self.whole.mean(), self.whole.std())


def decoded(source: Fit | LevelsInTime, data: Data, paths: int, seed: int | np.random.Generator) -> pd.DataFrame:
    """Return the level of each row: `bz.decode` for fits, or models with known parameters, of real-valued states."""
    own = _decoded(source, data, paths, seed)
    if isinstance(source, LevelsInTime):
        return _with_remarks(own, source, data)
    return _judged(source, data, own, _decoded(reference_of(source), data, 0, seed)) if is_judged(source) else own


def _with_remarks(frame: pd.DataFrame, model: LevelsInTime, data: Data) -> pd.DataFrame:
    """Add the remarks of the model to ``attrs``, as there is no fit that has them."""
    frame.attrs["remarks"] = [*model.remarks(None, data)]
    return frame


def _judged(fit: Fit, data: Data, own: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Withhold numbers that disagree with draws of the posterior: each component, filtered levels, and scores."""
    limits, model = limits_of(fit), fit.model
    assert isinstance(model, LevelsInTime)
    levels, gaps = moments_part(own, reference, limits, ("level", "sd", *QUANTILES), "level, sd, quantiles")
    filtered = ((frame["filtered"].to_numpy(), frame["sd_filtered"].to_numpy()) for frame in (own, reference))
    scores = (frame["log_score"].to_numpy() for frame in (own, reference))
    is_scored = own["log_score"].notna().to_numpy()
    agree = limits.logs_agree(*scores) | ~is_scored
    parts = [levels, Part(("filtered", "sd_filtered"), limits.moments_agree(*filtered))]
    parts += [_judged_part(own, reference, limits, part) for part in model.parts(data)[1:]]
    parts += [_judged_gaps(own, reference, limits)] if "filled" in own else []
    line = line_of(levels.agree, gaps.mean, gaps.sd, limits)
    answer = kept_parts(own, [*parts, Part(("log_score",), agree, counts=False)], fit, LEVELS, line)
    totals = (np.array(frame.attrs["log_score"]) for frame in (own, reference))
    is_near = agree.all() and limits.logs_agree(*totals)
    return answer if is_near else without_of_all(answer, ["log_score", "mcse_log_score"])


def _judged_part(own: pd.DataFrame, reference: pd.DataFrame, limits: Limits, part: str) -> Part:
    names = (
        part,
        f"sd_{part}",
        f"{part}_q025",
        part,
        f"{part}_q975",
    )  # the median is not shown: the mean takes its place
    return moments_part(own, reference, limits, names, f"{part}, sd, quantiles")[0]


def _judged_gaps(own: pd.DataFrame, reference: pd.DataFrame, limits: Limits) -> Part:
    """Compare predictions of missing rows in units of the width of their intervals; observed rows are equal."""
    names = ("filled_q025", "filled", "filled_q975")
    unknown = np.full((2, len(own)), np.nan)  # mean and sd
    stacks = [np.stack([*unknown, *(frame[name] for name in names)]) for frame in (own, reference)]
    same = (stacks[0][2:] == stacks[1][2:]).all(axis=0)
    return Part(("filled", *names[::2]), gaps_agree(gaps_of(*stacks), stacks[1], limits) | same, "filled")


def _decoded(source: Fit | LevelsInTime, data: Data, paths: int, seed: int | np.random.Generator) -> pd.DataFrame:
    levels = LevelsOfFit.of(source, data)
    smoothed = levels.mixture(lambda params: levels.model.smoothed_parts(params, data))
    filtered = levels.mixture(lambda params: levels.model.filtered(params, data)).moments(np.inf)
    part_moments, quantiles, rows = smoothed.moments(np.inf), smoothed.quantiles(), len(data["y"])
    of_level = {name: values[:rows] for name, values in quantiles.values.items()}
    columns = (
        times_of(data) | sequences(data) | {"level": part_moments.mean[:rows], "sd": part_moments.sd[:rows], **of_level}
    )
    columns |= {"mcse_level": part_moments.mcse_mean[:rows], "mcse_sd": part_moments.mcse_sd[:rows]}
    columns |= {name: error[:rows] for name, error in quantiles.columns().items()}
    columns |= {"filtered": filtered.mean, "mcse_filtered": filtered.mcse_mean}
    columns |= {"sd_filtered": filtered.sd, "mcse_sd_filtered": filtered.mcse_sd}
    scores, total = levels.log_scores()
    columns |= scores
    for i, part in enumerate(levels.model.parts(data)[1:], start=1):
        of_part = slice(i * rows, (i + 1) * rows)
        columns |= _of_part(part, part_moments, of_part)
        for name in (name for name in quantiles.values if name != "median"):
            value, error = quantiles.values[name][of_part], quantiles.errors[name][of_part]
            columns |= {f"{part}_{name}": value, f"mcse_{part}_{name}": error}
    columns |= _filled(levels)
    rng, p = stream(seed, levels.model.name, fields_of(levels.model), data.digest, "paths"), levels.average.mass
    points = rng.choice(levels.shape[0] * levels.shape[1], paths, p=None if p is None else p / p.sum())
    for i, point in enumerate(points, start=1):
        columns[f"path[{i}]"] = levels.model.sampled_path(levels.points(point), data, rng)
    return with_reasons(frame_of(columns, "row", total), part_moments.withheld[:rows])


def _of_part(part: str, part_moments: Moments, of_part: slice) -> dict[str, np.ndarray]:
    """Return mean and sd of a component, whose rows are the slice ``of_part``, and their Monte Carlo errors."""
    columns = {part: part_moments.mean[of_part], f"sd_{part}": part_moments.sd[of_part]}
    return columns | {f"mcse_{part}": part_moments.mcse_mean[of_part], f"mcse_sd_{part}": part_moments.mcse_sd[of_part]}


def _filled(levels: LevelsOfFit) -> dict[str, np.ndarray]:
    """Return the rows, missing ones as predictions given all others, with 95% intervals."""
    inputs = levels.model.inputs
    assert isinstance(inputs, Series)
    missing, y = inputs.masked(levels.data), levels.data[inputs.name]
    if not missing.any():
        return {}
    model, data = levels.model, levels.data
    mean = model.parts(data)[-1]

    def law(params: Params) -> RowLaw:
        return model.rows_about(params, model.part(model.smoothed_parts(params, data), mean, data))

    rows = levels.mixture(law)
    row_moments, quantiles = rows.moments(np.inf), rows.quantiles()
    filled = {"filled": (row_moments.mean, row_moments.mcse_mean)}
    ends = {name: values for name, values in quantiles.values.items() if name != "median"}
    filled |= {f"filled_{name}": (values, quantiles.errors[name]) for name, values in ends.items()}
    columns = {name: np.where(missing, values, y) for name, (values, _) in filled.items()}
    return columns | {f"mcse_{name}": np.where(missing, error, np.nan) for name, (_, error) in filled.items()}


def coming(fit: Fit, new_data: object, options: Options) -> Data | None:
    """Return rows that follow those of a fit and have features only; None for other rows and models."""
    model = fit.model
    if not isinstance(model, LevelsInTime) or new_data is None or not model.sequences_share_parameters(fit.data):
        return None
    rows, inputs = read(model, new_data, new=True, like=fit.like, **options), model.inputs
    assert isinstance(inputs, Series)
    if not inputs.masked(rows).all():
        return None
    if fit.data["sequence"].any():
        hint = "`bayeszoo fit` one sequence, or leave the features out"
        problem = "the fit has several sequences: which of them rows follow is not known"
        raise InputError(problem, "new_rows_unknown", hint=hint)
    return rows


def forecasted(source: Fit | LevelsInTime, data: Data, steps: int, new: Data | None = None) -> pd.DataFrame:
    """Predict levels and rows after the last of each sequence: `bz.forecast` for real-valued hidden states.

    ``new`` are the features of rows to come; the first ``steps`` rows are used.
    """
    if new is not None:
        if new.rows < steps:
            raise InputError(f"{steps} rows to come, and features of {new.rows}", "new_rows_unknown")
        model = source if isinstance(source, LevelsInTime) else source.model
        new = replace(new, arrays=model.inputs.split(new, steps)[0])
    own = _forecasted(source, data, steps, new)
    if isinstance(source, LevelsInTime):
        return _with_remarks(own, source, data)
    if not is_judged(source):
        return own
    return _judged_ahead(source, own, _forecasted(reference_of(source), data, steps, new))


def _judged_ahead(fit: Fit, own: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Withhold numbers of rows to come, and of each component, that disagree with draws of the posterior."""
    limits = limits_of(fit)
    rows, gaps = moments_part(own, reference, limits)
    components = [name.removeprefix("sd_") for name in map(str, own) if name.startswith("sd_")]
    moments_of = {
        part: [(frame[part].to_numpy(), frame[f"sd_{part}"].to_numpy()) for frame in (own, reference)]
        for part in components
    }
    parts = [rows, *(Part((part, f"sd_{part}"), limits.moments_agree(*both)) for part, both in moments_of.items())]
    return kept_parts(own, parts, fit, LEVELS, line_of(rows.agree, gaps.mean, gaps.sd, limits, "steps"))


def _forecasted(source: Fit | LevelsInTime, data: Data, steps: int, new: Data | None) -> pd.DataFrame:
    levels = LevelsOfFit.of(source, data)
    part_moments = levels.mixture(lambda params: levels.model.parts_ahead(params, data, steps, new)).moments(np.inf)
    rows = levels.mixture(lambda params: levels.model.rows_ahead(params, data, steps, new))
    is_averaged = isinstance(source, Fit) and source.kind != "point estimate"
    row_moments = rows.moments(levels.model.moments_below(data) if is_averaged else np.inf)
    columns, names = sequences(data, steps), levels.model.parts(data)
    size = len(part_moments.mean) // len(names)
    for i, part in enumerate(name for name in names if name != "signal"):  # the signal is the mean of the rows
        columns |= _of_part(part, part_moments, slice(i * size, (i + 1) * size))
    columns = {**columns, **moment_columns(row_moments, rows.quantiles())}
    frame = frame_of(times_ahead(data, steps) | columns, "step", {}, steps)
    return with_reasons(frame, row_moments.withheld)
