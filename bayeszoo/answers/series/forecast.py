"""Forecasts of hidden states and observations, by a fit or by known tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayeszoo.answers.columns import moment_columns, not_updated, with_reasons
from bayeszoo.answers.judged import (
    Part,
    answering,
    is_judged,
    kept_parts,
    limits_of,
    line_within,
    reference_of,
)
from bayeszoo.answers.latent.assign import numbered_draws, probabilities_agree
from bayeszoo.answers.latent.assigned import Assignments
from bayeszoo.answers.series import lags
from bayeszoo.answers.series.decode import Decodable, by_state, decodable, of_levels
from bayeszoo.answers.series.levels import LEVELS, coming, forecasted
from bayeszoo.answers.series.tables import frame_of, sequences, times_ahead, whole_number
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.tails import Moments, existing, moments
from bayeszoo.model.base import Model
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_FORECASTS = "forecasts by it"


def forecast(
    source: xr.DataTree | Model,
    steps: int = 1,
    new_data: object = None,
    *,
    paths: int = 0,
    seed: int | np.random.Generator = 0,
    **options: object,
) -> pd.DataFrame:
    """Predict the states and observations after the last row of each sequence.

    Parameters
    ----------
    source, new_data, **options
        As in `decode`. For a fit with features ``new_data`` may be a table of the features of rows to come.
    steps : int
        Number of rows per sequence.
    paths : int
        Number of paths of the rows to come to draw, for a regression with lags.
    seed : int or numpy.random.Generator
        Seed of these paths.

    Returns
    -------
    pandas.DataFrame
        One row per step of each sequence, counted from 1 as ``step``, with its time under the name of the column of
        times if these are evenly spaced, and ``sequence`` if there are several; ``state[k]``, the probability of state
        k averaged over the draws; then for symbols ``p[v]``, the probability of each, and for numbers their ``mean``
        and ``sd``, which include the uncertainty of states and parameters. ``mcse_state[k]``, ``mcse_p[v]``,
        ``mcse_mean`` and ``mcse_sd`` are Monte Carlo standard errors (NaN for a point estimate). If the state is a
        number there are ``level`` and ``sd_level`` in place of probabilities, the same for other components, and the
        quantiles of the rows. A mean, an sd or an error is NaN if the tails of the draws are too heavy for it: the
        column ``withheld`` and ``attrs["withheld"]`` say which. If draws do not agree what the states are, state
        probabilities are NaN, and ``attrs["states_withheld"]`` says why; those of observations do not depend on labels.

        If parameters of an approximation are off, numbers are NaN where draws of the posterior do not agree, and the
        column ``withheld`` says which.

        For a regression with lags: mean, sd and quantiles of the rows and their errors, and drawn paths, ``path[1]``,
        ...; ``attrs["stationary"]`` is the probability that the process is stationary: all roots of its characteristic
        polynomial lie outside the unit circle, the eigenvalues of the companion matrix within it. Its Monte Carlo error
        is ``mcse_stationary``.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate; or parameters of an approximation are withheld, and no number of a step agrees
        with draws of the posterior.
    InputError, NumericalError
        As `decode`; or ``steps`` is below 1.
    """
    steps = whole_number(steps, 1, "steps")
    known = source if isinstance(source, Model) else Fit(source)
    if isinstance(known, Fit) and lags.has_lags(known):
        lags.refuse_other_rows(new_data)
        return lags.rows_ahead(known, steps, paths, seed)
    if paths:
        problem = "paths of rows to come are drawn for regressions with lags only"
        raise InputError(problem, "unknown_option", hint="leave it out")
    if isinstance(known, Fit) and (rows := coming(known, new_data, options)) is not None:
        return forecasted(answering(known, LEVELS), known.data, steps, rows)
    if (levels := of_levels(known, new_data, options)) is not None:
        frame = forecasted(*levels, steps)
    else:
        frame = _of_states(known, decodable(known, new_data, options, need_states=False), steps)
    return frame if new_data is None or isinstance(known, Model) else not_updated(frame, known.kind)


def _of_states(known: Fit | Model, decoding: Decodable, steps: int) -> pd.DataFrame:
    own = _Ahead.of(decoding, steps)
    if isinstance(known, Model) or not is_judged(known):
        return own.table(decoding, steps)
    return _judged(known, own.table(decoding, steps), own, decoding, steps)


class _Ahead(NamedTuple):
    """Probabilities of states and of symbols, or moments of numbers, at each step of each sequence."""

    states: Assignments
    symbols: Assignments | None
    rows: Moments | None

    @classmethod
    def of(cls, decoding: Decodable, steps: int) -> _Ahead:
        """Average states, and symbols or numbers, over the draws."""
        row_moments = list[np.ndarray]()

        def ahead(params: Params, data: Arrays) -> np.ndarray:
            return np.asarray(decoding.model.ahead(params, data, steps))

        def symbols_ahead(params: Params, data: Arrays) -> np.ndarray:
            return np.asarray(decoding.model.rows_in(params, data, ahead(params, data)).mean())

        def numbers_ahead(params: Params, data: Arrays) -> np.ndarray:
            """Return the states at a block of draws; store the moments of numbers to check tails."""
            states = ahead(params, data)
            law = decoding.model.rows_in(params, data, states)
            row_moments.append(np.stack([law.mean(), law.var()], axis=-1))
            return states

        if "symbol" in decoding.data:
            return cls(decoding.average(ahead), decoding.average(symbols_ahead), None)
        states = decoding.average(numbers_ahead)
        means, variances = np.moveaxis(np.concatenate(row_moments), -1, 0).reshape(2, *decoding.shape, -1)
        by_draws = moments(means, variances, independent=decoding.is_independent)
        if decoding.fitted is not None and decoding.shape != (1, 1):  # a single point has no tails over draws
            by_draws = existing(by_draws, decoding.model.moments_below(decoding.fitted))
        return cls(states, None, by_draws)

    def table(self, decoding: Decodable, steps: int) -> pd.DataFrame:
        """Return the forecast, one row per step of each sequence."""
        columns = by_state(self.states, decoding.states, "state", "mcse_state")
        if decoding.withheld:
            columns = {name: np.full(len(values), np.nan) for name, values in columns.items()}
        columns = times_ahead(decoding.data, steps) | sequences(decoding.data, steps) | columns
        attrs = {"states_withheld": decoding.withheld} if decoding.withheld else {}
        if self.symbols is not None:
            of_symbols = by_state(self.symbols, decoding.data["symbol"], "p", "mcse_p")
            return frame_of(columns | of_symbols, "step", attrs, steps)
        assert self.rows is not None
        frame = frame_of(columns | moment_columns(self.rows), "step", attrs, steps)
        return with_reasons(frame, self.rows.withheld)


def _judged(fit: Fit, frame: pd.DataFrame, own: _Ahead, decoding: Decodable, steps: int) -> pd.DataFrame:
    """Withhold numbers of each step that disagree with draws of the posterior.

    Observations do not depend on the numbers of states: only probabilities of states need draws numbered alike.
    """
    limits, parts = limits_of(fit), list[Part]()
    reference = _Ahead.of(replace(decoding, draws=reference_of(fit).draws()), steps)
    if own.symbols is not None:
        assert reference.symbols is not None
        agree = probabilities_agree(own.symbols, reference.symbols, limits)
        parts.append(Part(_starting(frame, "p["), agree, "p"))
    else:
        assert own.rows is not None
        assert reference.rows is not None
        row_moments = ((ahead.rows.mean, ahead.rows.sd) for ahead in (own, reference) if ahead.rows is not None)
        parts.append(Part(("mean", "sd"), limits.moments_agree(*row_moments)))
    if not decoding.withheld:
        agree = np.zeros(len(frame), dtype=bool)
        if (draws := numbered_draws(fit, decoding.model)) is not None:
            numbered = _Ahead.of(replace(decoding, draws=draws), steps)
            agree = probabilities_agree(own.states, numbered.states, limits)
        parts.append(Part(_starting(frame, "state["), agree, "state"))
    return kept_parts(frame, parts, fit, _FORECASTS, line_within(parts[0].agree, "", limits, "steps"))


def _starting(frame: pd.DataFrame, start: str) -> tuple[str, ...]:
    return tuple(name for name in map(str, frame) if name.startswith(start))
