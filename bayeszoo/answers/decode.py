"""What state was a hidden Markov chain in, and where does it go? By a fit, or by known tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.answers.assign import (
    Assignments,
    assignments,
    labelled,
    numbered_reference,
    probabilities_agree,
    rows_asked,
)
from bayeszoo.answers.averages import log_means
from bayeszoo.answers.judged import (
    Limits,
    Part,
    answering,
    has_withheld,
    is_judged,
    limits_of,
    line_within,
    only_agreeing,
    refuse_if_none,
    without_of_all,
)
from bayeszoo.answers.levels import LEVELS, decoded
from bayeszoo.answers.time_tables import frame_of, sequences, whole_number
from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation.named import Arrays, Options, Params
from bayeszoo.foundation.streams import stream
from bayeszoo.inference.labels.align import flat
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.sequential import LevelsInTime, StatesInTime
from bayeszoo.results.caveats import next_step
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import components_withheld

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

STATES = "states by it"
_OF_STATES = ("path[", "smoothed[", "mcse[", "filtered[", "mcse_filtered[")


@dataclass(frozen=True, eq=False)
class Decodable:
    """Rows to be decoded, and draws of the parameters of a model in time, of shape (chain, draw, ...).

    ``fitted`` are the rows that the draws are from, None where there are no parameters; ``withheld`` says why nothing
    may be said of single states, if it may not. Independent draws are not those of chains.
    """

    model: StatesInTime
    draws: Params
    data: Data
    fitted: Data | None
    withheld: str = ""
    is_independent: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """How many chains and draws there are."""
        chains, draws = np.shape(next(iter(self.draws.values())))[:2]
        return chains, draws

    @property
    def states(self) -> list[Any]:
        """What the states are called."""
        return list(self.model.coords(self.data)["state"])

    def average(self, function: Callable[[Params, Arrays], np.ndarray] | None = None) -> Assignments:
        """Average a function of the parameters, (draws, rows, columns), over the draws; by default ``assign``."""
        averaged = assignments(self.model, self.draws, self.data, function)
        assert isinstance(averaged, Assignments)
        return averaged

    def best(self) -> dict[str, np.ndarray]:
        """Return the draw at which the log joint density of parameters and fitted rows is highest."""
        points, fitted = _each(flat(self.draws)), self.fitted
        if fitted is None or len(points) == 1:
            return points[0]
        every = flat(self.draws)
        return points[int(np.argmax(self.model.log_prior(every, fitted) + self.model.log_likelihoods(every, fitted)))]

    def score(self) -> dict[str, float]:
        """Return the log predictive density of new rows, and its Monte Carlo error."""
        if self.fitted is None or self.data is self.fitted or self.shape == (1, 1):
            return {}
        mean, error = log_means(np.reshape(self.model.log_likelihoods(flat(self.draws), self.data), (*self.shape, 1)))
        return {"log_predictive": float(mean[0]), "mcse_log_predictive": float(error[0])}


def _each(params: Params) -> list[dict[str, np.ndarray]]:
    return [dict(zip(params, point, strict=True)) for point in zip(*params.values(), strict=True)]


def decodable(source: Any, new_data: object, options: Options, *, need_states: bool = True) -> Decodable:
    """Return the rows to decode: the fit's own, new rows, or rows of a model with all tables known.

    With ``need_states`` draws that do not agree what the states are, are refused.
    """
    fit = None if isinstance(source, Model) else answering(source, STATES)
    model = source if fit is None else fit.model
    if not isinstance(model, StatesInTime):
        raise InputError(f"{model.name} has no states over time", "no_states", hint="see `bayeszoo list`")
    if fit is None:
        data = read(model, new_data, **options)
        known = {name: values[None, None] for name, values in model.known_parameters(data).items()}
        return Decodable(model, known, data, None)
    if (withheld := components_withheld(fit)) and need_states:
        raise Untrustworthy(f"states are withheld: {withheld}; {next_step(fit)}", "withheld")
    rows = rows_asked(fit, new_data, options, "states")
    fitted = rows if fit.kind == "point estimate" else fit.data  # a single point is the best, whatever the rows
    return Decodable(model, fit.draws(), rows, fitted, withheld, fit.has_independent_draws)


def of_levels(source: Any, new_data: object, options: Options) -> tuple[Fit | LevelsInTime, Data] | None:
    """Return a fit, or a model all known, whose hidden states are numbers, and the rows asked for; None of others."""
    model = source if isinstance(source, Model) else Fit(source).model
    if not isinstance(model, LevelsInTime):
        return None
    if isinstance(source, Model):
        known = read(model, new_data, **options)
        model.known_parameters(known)  # which refuses a model that needs a fit
        return model, known
    fit = answering(source, LEVELS)
    data = rows_asked(fit, new_data, options, "levels")
    if new_data is not None and data != fit.data and model.sequences_share_parameters(data):
        hint = "fit all sequences together (--sequence); `bayeszoo predict FIT NEW.csv` predicts rows that follow"
        raise InputError("weights of features are of the fit's rows and of these alike", "new_rows_unknown", hint=hint)
    return fit, data


def decode(
    source: xr.DataTree | Model,
    new_data: object = None,
    *,
    paths: int = 0,
    seed: int | np.random.Generator = 0,
    **options: Any,
) -> pd.DataFrame:
    """Return the most probable state of each row, or the estimate of a real-valued hidden state.

    Parameters
    ----------
    source : xarray.DataTree or Model
        What `fit` returned for a hidden Markov model, or for one whose state is a number, as `local_level`; or a model
        whose tables are all known, as `linear_gaussian` with q and r.
    new_data : Data or anything that `read` takes, optional
        Other sequences; by default those of the fit, or the model's example.
    paths : int
        How many paths of states to draw given all rows, each with parameters drawn anew.
    seed : int or numpy.random.Generator
        Of these paths.
    **options
        Of `read`.

    Returns
    -------
    pandas.DataFrame
        One row a data row, counted from 1, with the columns

        - ``sequence``, its name in the table or its number from 1, where there are several;
        - ``state``: the most probable state given all rows of the sequence; the sum of these choices is that with the
          fewest expected errors, but may be a path that is impossible;
        - ``viterbi``: the most probable path as a whole, at one point: a point estimate or, of draws, the one at which
          the log joint density of parameters and fitted rows is highest;
        - ``path[1]``, ...: drawn paths;
        - ``smoothed[k]``: probability of state k given all rows, averaged over the draws, and ``mcse[k]``, its Monte
          Carlo standard error (NaN of a point estimate);
        - ``filtered[k]`` and ``mcse_filtered[k]``: the same given the rows so far, with the parameters that all rows of
          the fit gave.

        Of an approximation some of whose parameters are off, numbers are NaN where draws of the posterior do not agree,
        and the column ``withheld`` says which; numbers of all rows are, where a row is, or where they do not agree.

        In ``attrs``: ``viterbi_log_joint``, the log joint density of the rows and the path given the parameters at its
        point; ``log_likelihood``, that of the rows there; ``expected_errors``, the expected number of rows whose state
        is not ``state``, with its Monte Carlo error ``mcse_expected_errors``; and of new rows by several draws
        ``log_predictive``, the log of their density averaged over the draws, NaN where few draws carry it, and its
        Monte Carlo error ``mcse_log_predictive``.

        Where the state is a number, the columns are ``level`` and ``sd``, ``q025``, ``median`` and ``q975`` given all
        rows; ``filtered`` and ``sd_filtered`` given the rows so far;
        ``log_score``, the log density of the row given those before it, NaN of a missing one and of one too far from
        the draws, with the parameters that all rows of the fit gave; ``attrs`` has its sum over rows that are not
        missing, and the error ``mcse_log_score`` of this; where rows are missing ``filled``, ``filled_q025`` and
        ``filled_q975``, the rows with predictions and 95% intervals in the gaps; and drawn paths. Where rows are a sum
        of several components there are ``slope``, ``sd_slope``, ``slope_q025`` and ``slope_q975``, the same of
        ``season``, and of ``signal``, the mean of the row. Each has its Monte Carlo error in a column ``mcse_...``, as
        ``mcse_level``, NaN where there is none.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate, or its draws do not agree what the states are; or no row of an approximation that
        is off agrees with the posterior, or paths are to be drawn of one whose parameters are withheld.
    InputError
        When the model has no states over time, has unknown tables and no fit, or the rows do not suit it.
    NumericalError
        When no path of states can give the rows.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> tree = bz.fit(bz.find("hmm_categorical")(), method="map", seed=1)  # doctest: +SKIP
    >>> bz.decode(tree)[["state", "viterbi", "smoothed[2]"]]  # doctest: +SKIP
    """
    paths = whole_number(paths, 0, "paths")
    if (levels := of_levels(source, new_data, options)) is not None:
        if isinstance(levels[0], Fit):
            _refuse_paths(levels[0], paths)
        return decoded(*levels, paths, seed)
    whole = decodable(source, new_data, options)
    if isinstance(source, Model) or not is_judged(fit := Fit(source)):
        return _decoded(whole, paths, seed).frame
    _refuse_paths(fit, paths)
    params = numbered_reference(fit, whole.model, STATES)
    return _judged(fit, _decoded(whole, paths, seed), _decoded(replace(whole, draws=params), 0, seed))


def _refuse_paths(fit: Fit, paths: int) -> None:
    """Refuse paths where parameters are withheld."""
    if paths and has_withheld(fit):
        why = "parameters are withheld, and paths drawn, of all rows together, cannot be judged row by row"
        raise Untrustworthy(f"{why}: leave paths out, or {next_step(fit)}", "withheld")


class _Decoded(NamedTuple):
    """What is said of states, and the probabilities that it comes from."""

    frame: pd.DataFrame
    smoothed: Assignments
    filtered: Assignments


def _decoded(whole: Decodable, paths: int, seed: int | np.random.Generator) -> _Decoded:
    model, states = whole.model, np.array(whole.states)
    smoothed, filtered, best = whole.average(), whole.average(model.filtered), whole.best()
    path, value = model.best_path(best, whole.data)
    columns = sequences(whole.data) | {"state": states[smoothed.label], "viterbi": states[path]}
    rng, points = stream(seed, model.name, fields_of(model), whole.data.digest, "paths"), _each(flat(whole.draws))
    for i, at in enumerate(rng.integers(0, len(points), paths), start=1):
        columns[f"path[{i}]"] = states[model.sampled_path(points[at], whole.data, rng)]
    columns |= by_state(smoothed, states, "smoothed", "mcse")
    columns |= by_state(filtered, states, "filtered", "mcse_filtered")
    log_likelihood = float(model.log_likelihoods(best, whole.data))
    about = {"viterbi_log_joint": value, "log_likelihood": log_likelihood, **whole.score()}
    about |= {"expected_errors": smoothed.expected_errors, "mcse_expected_errors": smoothed.mcse_expected_errors}
    frame = frame_of(columns, "row", about)
    return _Decoded(frame, smoothed, filtered)


def _judged(fit: Fit, own: _Decoded, known: _Decoded) -> pd.DataFrame:
    """Withhold probabilities and states that are not those by draws of the posterior, and numbers of all rows.

    The most probable path is of all rows together: its states are shown where those of the posterior's path are the
    same, and its density where all are.
    """
    limits, frame = limits_of(fit), own.frame
    smoothed = probabilities_agree(own.smoothed, known.smoothed, limits)
    filtered = probabilities_agree(own.filtered, known.filtered, limits)
    path = (frame["viterbi"] == known.frame["viterbi"]).to_numpy()
    columns = {start: tuple(name for name in map(str, frame) if name.startswith(start)) for start in _OF_STATES}
    of_path = ("viterbi", *columns["path["])
    parts = [
        Part((*columns["smoothed["], *columns["mcse["]), smoothed, "smoothed"),
        Part((*columns["filtered["], *columns["mcse_filtered["]), filtered, "filtered"),
        Part(of_path, path, "viterbi"),
        Part(("state",), own.smoothed.label == known.smoothed.label),
    ]
    refuse_if_none(frame, [parts[0], parts[1], parts[3]], fit, STATES)
    gap = np.abs(own.smoothed.probability - known.smoothed.probability)[parts[0].agree].max(initial=0.0)
    line = line_within(parts[0].agree, f": probabilities within {gap:.2g} of the posterior's", limits)
    frame = only_agreeing(frame.astype({name: object for name in ("state", "viterbi")}), parts)
    frame = without_of_all(frame, _far_of_all(own.frame, known.frame, limits, parts))
    frame.attrs["judged"] = line
    return frame


def _far_of_all(own: pd.DataFrame, known: pd.DataFrame, limits: Limits, parts: list[Part]) -> list[str]:
    """Name the numbers of all rows that do not agree, or are of rows that do not."""
    logs: list[str] = [name for name in ("viterbi_log_joint", "log_likelihood", "log_predictive") if name in own.attrs]
    far = [name for name in logs if not limits.logs_agree(*(np.array(each.attrs[name]) for each in (own, known)))]
    of_rows = {"expected_errors": parts[0], "viterbi_log_joint": parts[2]}
    far += [name for name, part in of_rows.items() if not part.agree.all()]
    return list(dict.fromkeys([*far, *(f"mcse_{name}" for name in far if f"mcse_{name}" in own.attrs)]))


def by_state(averaged: Assignments, labels: Any, name: str, error: str) -> dict[str, np.ndarray]:
    """Name the first columns by the labels."""
    return labelled(name, labels, averaged.probability) | labelled(error, labels, averaged.mcse)
