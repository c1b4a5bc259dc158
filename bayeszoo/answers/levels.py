"""Smoothed levels of a series and forecasts, by a fit of a model with a real-valued hidden state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.averages import Average, averaging, by_points, error_of_sum
from bayeszoo.answers.columns import moment_columns, with_reasons
from bayeszoo.answers.judged import (
    Limits,
    Part,
    gaps_agree,
    is_judged,
    limits_of,
    line_of,
    moments_part,
    only_agreeing,
    reference_of,
    refuse_if_none,
    without_of_all,
)
from bayeszoo.answers.quantiles import Quantiles, over_draws
from bayeszoo.answers.time_tables import frame_of, sequences, times_ahead
from bayeszoo.data.inputs import Series
from bayeszoo.data.read import Data, read
from bayeszoo.distributions.averaged import NOTHING, Averaged, RowLaw
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options, Params
from bayeszoo.foundation.streams import stream
from bayeszoo.foundation.tails import Moments, existing, moments
from bayeszoo.model.base import fields_of
from bayeszoo.model.sequential import LevelsInTime
from bayeszoo.results.gaps import gaps_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

LEVELS = "levels by it"
MOST, OF_POINTS = 2**23, 2**25
"""Numbers of a table of draws by rows, of more than which an even selection of draws is taken; and of points of a
quadrature by rows, of more than which nothing is said."""

FEW = 1e-12
"""Mass of a point relative to the heaviest below which it is left out where points are costly."""


@dataclass(frozen=True, eq=False)
class LevelsOfFit:
    """Rows of which a fit says the levels, and draws or points of its parameters, (chain, draw, ...).

    Of a model whose parameters are all known there is one point.
    """

    model: LevelsInTime
    data: Data
    average: Average
    params: Mapping[str, np.ndarray]
    is_independent: bool

    @classmethod
    def of(cls, source: Fit | LevelsInTime, data: Data) -> LevelsOfFit:
        """Take the points of an exact fit, the draws of another, or the parameters of a model that are all known."""
        if isinstance(source, LevelsInTime):
            known = {name: values[None] for name, values in source.known_parameters(data).items()}
            return cls(source, data, *by_points(known, np.ones(1), np.ones(1)), is_independent=True)
        fit, model = source, source.model
        assert isinstance(model, LevelsInTime)
        average, params = averaging(fit)
        if average.mass is not None and average.halved is not None and len(model.parts(data)) > 1:
            average, params = _of_half(average, params)
        numbers = next(iter(params.values()))[..., None].shape[:2]
        rows = len(data["y"])
        step = max(1, numbers[0] * numbers[1] * rows // MOST) if average.mass is None else 1
        if average.mass is not None and numbers[1] * rows > OF_POINTS:
            hint = "a fit by map or nuts says them of long series"
            line = f"{rows:,} rows are too many for {numbers[1]:,} points of a quadrature"
            raise InputError(line, "too_large", hint=hint)
        named = {name: values[:, ::step] for name, values in params.items() if values.ndim == 2}
        return cls(model, data, average, named, fit.has_independent_draws)

    @property
    def shape(self) -> tuple[int, int]:
        """How many chains, and draws of each."""
        chains, draws = next(iter(self.params.values())).shape
        return chains, draws

    def points(self, some: np.ndarray | slice = slice(None)) -> dict[str, np.ndarray]:
        """Return some of the draws, (P,)."""
        return {name: values.reshape(-1)[some] for name, values in self.params.items()}

    def mixture(self, law: Callable[[Params], RowLaw]) -> Mixed:
        """Return the law at the draws averaged over them."""
        mass, halved = self.average.mass, self.average.halved
        if mass is not None and halved is not None:
            few = halved > NOTHING
            if few.all():
                all_points = Averaged(law(self.points()), mass, halved)
                return Mixed(all_points, partial(Quantiles.exact, all_points), None)
            coarse = Averaged(law(self.points(few)), halved[few] / halved[few].sum())
            return Mixed(Averaged(law(self.points()), mass, halved), partial(Quantiles.exact, coarse), None)
        at = law(self.points())
        means, variances = (np.reshape(each, (*self.shape, -1)) for each in (at.mean(), at.var()))
        known = moments(means, variances, independent=self.is_independent)
        ask = partial(over_draws, law, self.params, means.shape[-1], counts=False)
        quantiles = partial(ask, independent=self.is_independent)
        return Mixed(Averaged(at), quantiles, known)

    def log_scores(self) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Return logs of the averaged density of each row given those before it, and their sum, with errors.

        Those of a missing row are NaN, and not in the sum; so is the sum where few draws carry the mean of a row.
        """
        log_p = np.reshape(self.model.log_rows(self.points(), self.data), (*self.shape, -1))
        inputs = self.model.inputs
        assert isinstance(inputs, Series)
        seen = ~inputs.masked(self.data)
        value, error = self.average.log_means(log_p, seen)
        of_sum = 0.0 if self.average.draws is None else error_of_sum(log_p[..., seen], value[seen])
        total = {"log_score": float(value[seen].sum()), "mcse_log_score": of_sum}
        return {"log_score": value, "mcse_log_score": error}, total


def _of_half(average: Average, params: Mapping[str, np.ndarray]) -> tuple[Average, dict[str, np.ndarray]]:
    """Take the points of half the grid alone, as the smoother of several parts takes long at each.

    The quadrature has passed its checks: halving the grid changes nothing that is shown.
    """
    assert average.halved is not None
    some = average.halved > max(FEW * float(np.max(average.halved)), NOTHING)  # which are one law for all answers
    mass = average.halved[some] / average.halved[some].sum()
    return replace(average, mass=mass, halved=mass), {name: values[:, some] for name, values in params.items()}


@dataclass(frozen=True, eq=False)
class Mixed:
    """A law averaged over all draws or points, what returns its quantiles, and its moments over draws."""

    whole: Averaged
    quantiles: Callable[[], Quantiles]
    by_draws: Moments | None

    def moments(self, below: float) -> Moments:
        """Return mean and sd, and their Monte Carlo errors where there are draws."""
        if self.by_draws is not None:
            return existing(self.by_draws, below)
        return Moments.exact(self.whole.mean(), self.whole.std())


def decoded(source: Fit | LevelsInTime, data: Data, paths: int, seed: int | np.random.Generator) -> pd.DataFrame:
    """Return the level of each row: `bz.decode` of a fit whose hidden state is a number, or of a model all known."""
    own = _decoded(source, data, paths, seed)
    if isinstance(source, LevelsInTime):
        return _with_remarks(own, source, data)
    return _judged(source, data, own, _decoded(reference_of(source), data, 0, seed)) if is_judged(source) else own


def _with_remarks(frame: pd.DataFrame, model: LevelsInTime, data: Data) -> pd.DataFrame:
    """Attach the remarks of a model without a fit, which would have said them."""
    frame.attrs["remarks"] = [*model.remarks(None, data)]
    return frame


def _judged(fit: Fit, data: Data, own: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Withhold numbers that draws of the posterior do not agree on: each component, what is filtered, and scores."""
    limits, model = limits_of(fit), fit.model
    assert isinstance(model, LevelsInTime)
    levels, gaps = moments_part(own, known, limits, ("level", "sd", *QUANTILES), "level, sd, quantiles")
    filtered = ((frame["filtered"].to_numpy(), frame["sd_filtered"].to_numpy()) for frame in (own, known))
    scores = (frame["log_score"].to_numpy() for frame in (own, known))
    is_scored = own["log_score"].notna().to_numpy()
    agree = limits.logs_agree(*scores) | ~is_scored
    parts = [levels, Part(("filtered", "sd_filtered"), limits.moments_agree(*filtered))]
    parts += [_judged_part(own, known, limits, part) for part in model.parts(data)[1:]]
    parts += [_judged_gaps(own, known, limits)] if "filled" in own else []
    refuse_if_none(own, parts, fit, LEVELS)
    frame = only_agreeing(own, [*parts, Part(("log_score",), agree)])
    total, other = (np.array(each.attrs["log_score"]) for each in (own, known))
    is_near = agree.all() and limits.logs_agree(total, other)
    frame = frame if is_near else without_of_all(frame, ["log_score", "mcse_log_score"])
    frame.attrs["judged"] = line_of(levels.agree, gaps.mean, gaps.sd, limits)
    return frame


def _judged_part(own: pd.DataFrame, known: pd.DataFrame, limits: Limits, part: str) -> Part:
    names = (part, f"sd_{part}", f"{part}_q025", part, f"{part}_q975")  # its median is not among the columns
    return moments_part(own, known, limits, names, f"{part}, sd, quantiles")[0]


def _judged_gaps(own: pd.DataFrame, known: pd.DataFrame, limits: Limits) -> Part:
    """Compare what fills gaps in units of the width of its interval; rows that are there are the same."""
    names = ("filled_q025", "filled", "filled_q975")
    stacks = [np.stack([*np.full((2, len(own)), np.nan), *(frame[name] for name in names)]) for frame in (own, known)]
    same = (stacks[0][2:] == stacks[1][2:]).all(axis=0)
    return Part(
        ("filled", "filled_q025", "filled_q975"), gaps_agree(gaps_of(*stacks), stacks[1], limits) | same, "filled"
    )


def _decoded(source: Fit | LevelsInTime, data: Data, paths: int, seed: int | np.random.Generator) -> pd.DataFrame:
    of = LevelsOfFit.of(source, data)
    smoothed = of.mixture(lambda params: of.model.smoothed_parts(params, data))
    filtered = of.mixture(lambda params: of.model.filtered(params, data)).moments(np.inf)
    known, every, rows = smoothed.moments(np.inf), smoothed.quantiles(), len(data["y"])
    quantiles = {name: values[:rows] for name, values in every.values.items()}
    columns = sequences(data) | {"level": known.mean[:rows], "sd": known.sd[:rows], **quantiles}
    columns |= {"mcse_level": known.mcse_mean[:rows], "mcse_sd": known.mcse_sd[:rows]}
    columns |= {name: error[:rows] for name, error in every.columns().items()}
    columns |= {"filtered": filtered.mean, "mcse_filtered": filtered.mcse_mean}
    columns |= {"sd_filtered": filtered.sd, "mcse_sd_filtered": filtered.mcse_sd}
    scores, about = of.log_scores()
    columns |= scores
    for i, part in enumerate(of.model.parts(data)[1:], start=1):
        own = slice(i * rows, (i + 1) * rows)
        columns |= _of_part(part, known, own)
        for name in (name for name in every.values if name != "median"):
            columns |= {f"{part}_{name}": every.values[name][own], f"mcse_{part}_{name}": every.errors[name][own]}
    columns |= _filled(of)
    rng, p = stream(seed, of.model.name, fields_of(of.model), data.digest, "paths"), of.average.mass
    for i, at in enumerate(rng.choice(of.shape[0] * of.shape[1], paths, p=None if p is None else p / p.sum()), start=1):
        columns[f"path[{i}]"] = of.model.sampled_path(of.points(at), data, rng)
    return with_reasons(frame_of(columns, "row", about), known.withheld[:rows])


def _of_part(part: str, known: Moments, own: slice) -> dict[str, np.ndarray]:
    """Return mean and sd of a component, whose rows stand at ``own``, and their Monte Carlo errors."""
    columns = {part: known.mean[own], f"sd_{part}": known.sd[own]}
    return columns | {f"mcse_{part}": known.mcse_mean[own], f"mcse_sd_{part}": known.mcse_sd[own]}


def _filled(of: LevelsOfFit) -> dict[str, np.ndarray]:
    """Return the rows, those that are missing by their predictions given all others with 95% intervals."""
    inputs = of.model.inputs
    assert isinstance(inputs, Series)
    missing, y = inputs.masked(of.data), of.data[inputs.name]
    if not missing.any():
        return {}
    model, data = of.model, of.data
    mean = model.parts(data)[-1]

    def law(params: Params) -> RowLaw:
        return model.rows_about(params, model.part(model.smoothed_parts(params, data), mean, data))

    rows = of.mixture(law)
    known, quantiles = rows.moments(np.inf), rows.quantiles()
    parts = {"filled": (known.mean, known.mcse_mean)}
    parts |= {f"filled_{k}": (v, quantiles.errors[k]) for k, v in quantiles.values.items() if k != "median"}
    columns = {name: np.where(missing, values, y) for name, (values, _) in parts.items()}
    return columns | {f"mcse_{name}": np.where(missing, error, np.nan) for name, (_, error) in parts.items()}


def coming(fit: Fit, new_data: object, options: Options) -> Data | None:
    """Return rows that come after those of a fit, of which the features alone are known; None of other rows."""
    model = fit.model
    if not isinstance(model, LevelsInTime) or new_data is None or not model.sequences_share_parameters(fit.data):
        return None
    rows, inputs = read(model, new_data, new=True, like=fit.like, **options), model.inputs
    assert isinstance(inputs, Series)
    if not inputs.masked(rows).all():
        return None
    if fit.data["sequence"].any():
        hint = "`bayeszoo fit` one sequence, or leave the features out"
        raise InputError(
            "the fit has several sequences: which of them rows follow is not known", "new_rows_unknown", hint=hint
        )
    return rows


def forecasted(source: Fit | LevelsInTime, data: Data, steps: int, new: Data | None = None) -> pd.DataFrame:
    """Return levels and rows after the last of each sequence: `bz.forecast` of such a fit or model.

    ``new`` are rows to come with their features, of which the first ``steps`` are taken.
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


def _judged_ahead(fit: Fit, own: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Withhold numbers of rows to come that draws of the posterior do not agree on: the row's, and each component's."""
    limits = limits_of(fit)
    rows, gaps = moments_part(own, known, limits)
    components = [name.removeprefix("sd_") for name in map(str, own) if name.startswith("sd_")]
    moments_of = {
        part: [(frame[part].to_numpy(), frame[f"sd_{part}"].to_numpy()) for frame in (own, known)]
        for part in components
    }
    parts = [rows, *(Part((part, f"sd_{part}"), limits.moments_agree(*both)) for part, both in moments_of.items())]
    refuse_if_none(own, parts, fit, LEVELS)
    frame = only_agreeing(own, parts)
    frame.attrs["judged"] = line_of(rows.agree, gaps.mean, gaps.sd, limits, "steps")
    return frame


def _forecasted(source: Fit | LevelsInTime, data: Data, steps: int, new: Data | None) -> pd.DataFrame:
    of = LevelsOfFit.of(source, data)
    parts = of.mixture(lambda params: of.model.parts_ahead(params, data, steps, new)).moments(np.inf)
    rows = of.mixture(lambda params: of.model.rows_ahead(params, data, steps, new))
    is_averaged = isinstance(source, Fit) and source.kind != "point estimate"
    known = rows.moments(of.model.moments_below(data) if is_averaged else np.inf)
    columns, names = sequences(data, steps), of.model.parts(data)
    size = len(parts.mean) // len(names)
    for i, part in enumerate(name for name in names if name != "signal"):  # which is the mean of the rows
        own = slice(i * size, (i + 1) * size)
        columns |= _of_part(part, parts, own)
    columns = {**columns, **moment_columns(known, rows.quantiles())}
    frame = frame_of(times_ahead(data, steps) | columns, "step", {}, steps)
    return with_reasons(frame, known.withheld)
