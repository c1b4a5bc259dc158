"""Where does a hidden state go, and what is observed then? Forecasts by a fit, or by known tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayeszoo.answers import lags
from bayeszoo.answers.assign import Assignments, numbered_draws, probabilities_agree
from bayeszoo.answers.columns import moment_columns, with_reasons
from bayeszoo.answers.decode import Decodable, by_state, decodable, of_levels
from bayeszoo.answers.judged import (
    Part,
    answering,
    is_judged,
    limits_of,
    line_within,
    only_agreeing,
    reference_of,
    refuse_if_none,
)
from bayeszoo.answers.levels import LEVELS, coming, forecasted
from bayeszoo.answers.time_tables import frame_of, sequences, times_ahead, whole_number
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
        As of `decode`. Of a fit with features ``new_data`` may be a table of the features of rows to come.
    steps : int
        How many rows.
    paths : int
        How many paths of the rows to come to draw, of a regression with lags.
    seed : int or numpy.random.Generator
        Of these paths.

    Returns
    -------
    pandas.DataFrame
        One row a step of each sequence, counted from 1 as ``step``, with its time under the name of the column of times
        where these rise by equal steps; with the columns ``sequence`` where there are several;
        ``state[k]``, the probability of state k averaged over the draws; then of symbols ``p[v]``, the probability of
        each, and of numbers their ``mean`` and ``sd``, which has in it what is not known of states and
        parameters. ``mcse_state[k]``, ``mcse_p[v]``, ``mcse_mean`` and ``mcse_sd`` are Monte Carlo standard
        errors (NaN of a point estimate). Where the state is a number there are ``level`` and ``sd_level`` in
        the place of probabilities, the same of other components, and the quantiles of the rows. A mean, an sd
        or an error is NaN where the tails of the draws are too heavy for it: the column ``withheld`` and
        ``attrs["withheld"]`` say which. Where draws do not agree what the states are, their probabilities are
        NaN, and ``attrs["states_withheld"]`` says why: those of the observations do not depend on labels.

        Of an approximation some of whose parameters are off, numbers are NaN where draws of the posterior do not agree,
        and the column ``withheld`` says which.

        Of a regression with lags, mean, sd and quantiles of the rows and their errors, and drawn paths, ``path[1]``,
        ...; ``attrs["stationary"]`` is the probability that the process settles down: all roots of its characteristic
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
    if not isinstance(source, Model) and lags.has_lags(Fit(source)):
        lags.refuse_other_rows(new_data)
        return lags.rows_ahead(source, steps, paths, seed)
    if paths:
        raise InputError(
            "paths of rows to come are drawn of regressions with lags", "unknown_option", hint="leave it out"
        )
    if not isinstance(source, Model) and (rows := coming(Fit(source), new_data, options)) is not None:
        fit = answering(source, LEVELS)
        return forecasted(fit, fit.data, steps, rows)
    if (levels := of_levels(source, new_data, options)) is not None:
        return forecasted(*levels, steps)
    whole = decodable(source, new_data, options, need_states=False)
    own = _Ahead.of(whole, steps)
    if isinstance(source, Model) or not is_judged(fit := Fit(source)):
        return own.table(whole, steps)
    return _judged(fit, own.table(whole, steps), own, whole, steps)


class _Ahead(NamedTuple):
    """Probabilities of states and of symbols, or moments of numbers, at each step of each sequence."""

    states: Assignments
    symbols: Assignments | None
    rows: Moments | None

    @classmethod
    def of(cls, whole: Decodable, steps: int) -> _Ahead:
        """Average over the draws."""
        labels, K, kept = whole.data.get("symbol"), len(whole.states), list[np.ndarray]()

        def ahead(params: Params, data: Arrays) -> np.ndarray:
            """Return the states and means at some draws; keep both moments of each, to check their tails."""
            states = whole.model.ahead(params, data, steps)
            law = whole.model.rows_in(params, data, states)
            if labels is not None:
                return np.concatenate([states, law.mean()], axis=2)
            kept.append(np.stack([law.mean(), law.var()], axis=-1))
            return states

        averaged = whole.average(ahead)
        if labels is not None:
            states, symbols = (
                replace(averaged, probability=averaged.probability[:, part], mcse=averaged.mcse[:, part])
                for part in (slice(K), slice(K, None))
            )
            return cls(states, symbols, None)
        means, variances = np.moveaxis(np.concatenate(kept), -1, 0).reshape(2, *whole.shape, -1)
        known = moments(means, variances, independent=whole.is_independent)
        if whole.fitted is not None and whole.shape != (1, 1):  # at a single point the moments are those of the states
            known = existing(known, whole.model.moments_below(whole.fitted))
        return cls(averaged, None, known)

    def table(self, whole: Decodable, steps: int) -> pd.DataFrame:
        """Return the forecast, a row a step of each sequence."""
        columns = by_state(self.states, whole.states, "state", "mcse_state")
        if whole.withheld:
            columns = {name: np.full(len(values), np.nan) for name, values in columns.items()}
        columns = times_ahead(whole.data, steps) | sequences(whole.data, steps) | columns
        about = {"states_withheld": whole.withheld} if whole.withheld else {}
        if self.symbols is not None:
            of_symbols = by_state(self.symbols, whole.data["symbol"], "p", "mcse_p")
            return frame_of(columns | of_symbols, "step", about, steps)
        assert self.rows is not None
        frame = frame_of(columns | moment_columns(self.rows), "step", about, steps)
        return with_reasons(frame, self.rows.withheld)


def _judged(fit: Fit, frame: pd.DataFrame, own: _Ahead, whole: Decodable, steps: int) -> pd.DataFrame:
    """Withhold numbers that are not those by draws of the posterior, step by step.

    What is observed does not depend on the numbers of states, so its part needs no draws with states numbered alike.
    """
    limits, parts = limits_of(fit), list[Part]()
    by_draws = _Ahead.of(replace(whole, draws=reference_of(fit).draws()), steps)
    if own.symbols is not None:
        assert by_draws.symbols is not None
        agree = probabilities_agree(own.symbols, by_draws.symbols, limits)
        parts.append(Part(_starting(frame, "p["), agree, "p"))
    else:
        assert own.rows is not None
        assert by_draws.rows is not None
        both = ((of.rows.mean, of.rows.sd) for of in (own, by_draws) if of.rows is not None)
        parts.append(Part(("mean", "sd"), limits.moments_agree(*both)))
    if not whole.withheld:
        agree = np.zeros(len(frame), dtype=bool)
        if (draws := numbered_draws(fit, whole.model)) is not None:
            numbered = _Ahead.of(replace(whole, draws=draws), steps)
            agree = probabilities_agree(own.states, numbered.states, limits)
        parts.append(Part(_starting(frame, "state["), agree, "state"))
    refuse_if_none(frame, parts, fit, _FORECASTS)
    frame = only_agreeing(frame, parts)
    frame.attrs["judged"] = line_within(parts[0].agree, "", limits, "steps")
    return frame


def _starting(frame: pd.DataFrame, start: str) -> tuple[str, ...]:
    return tuple(name for name in map(str, frame) if name.startswith(start))
