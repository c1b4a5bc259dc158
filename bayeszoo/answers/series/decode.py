"""Hidden states of each row, by a fit or by known tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.answers.averages import log_means
from bayeszoo.answers.columns import not_updated
from bayeszoo.answers.judged import (
    Limits,
    Part,
    answering,
    has_withheld,
    is_judged,
    kept_parts,
    limits_of,
    line_within,
    without_of_all,
)
from bayeszoo.answers.latent.assign import (
    assignments,
    labelled,
    numbered_reference,
    probabilities_agree,
    rows_asked,
)
from bayeszoo.answers.latent.assigned import Assignments
from bayeszoo.answers.series.levels import LEVELS, decoded
from bayeszoo.answers.series.tables import frame_of, sequences, times_of, whole_number
from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation.named import Arrays, Options, Params
from bayeszoo.foundation.streams import stream
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities.sequential import LevelsInTime, StatesInTime
from bayeszoo.model.draws import flat, shape_of
from bayeszoo.model.suggest import models_with
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
    """Rows to be decoded, and draws (chain, draw, ...) of the parameters of a model in time.

    ``fitted`` are the rows that the draws were fitted to, None if parameters are known; ``withheld`` says why single
    states are withheld, else empty. ``is_independent``: draws are not from Markov chains.
    """

    model: StatesInTime
    draws: Params
    data: Data
    fitted: Data | None
    withheld: str = ""
    is_independent: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of chains and of draws per chain."""
        return shape_of(self.draws)

    @property
    def states(self) -> list[Any]:
        """The labels of the states."""
        return list(self.model.coords(self.data)["state"])

    def average(self, function: Callable[[Params, Arrays], np.ndarray] | None = None) -> Assignments:
        """Average a function of the parameters, (draws, rows, columns), over draws; by default state probabilities."""
        averaged = assignments(self.model, self.draws, self.data, function)
        assert isinstance(averaged, Assignments)
        return averaged

    def best(self) -> dict[str, np.ndarray]:
        """Return the draw at which the log joint density of parameters and fitted rows is highest."""
        draws, fitted = flat(self.draws), self.fitted
        points = _points(draws)
        if fitted is None or len(points) == 1:
            return points[0]
        return points[int(np.argmax(self.model.log_prior(draws, fitted) + self.model.log_likelihoods(draws, fitted)))]

    def score(self) -> dict[str, float]:
        """Return the log predictive density of new rows, and its Monte Carlo error."""
        if self.fitted is None or self.data is self.fitted or self.shape == (1, 1):
            return {}
        log_p = np.reshape(self.model.log_likelihoods(flat(self.draws), self.data), (*self.shape, 1))
        mean, error = log_means(log_p, independent=self.is_independent)
        return {"log_predictive": float(mean[0]), "mcse_log_predictive": float(error[0])}


def _points(params: Params) -> list[dict[str, np.ndarray]]:
    return [dict(zip(params, point, strict=True)) for point in zip(*params.values(), strict=True)]


def decodable(source: Fit | Model, new_data: object, options: Options, *, need_states: bool = True) -> Decodable:
    """Return the rows to decode: the fit's own, new rows, or rows of a model with all tables known.

    With ``need_states``, draws that disagree about the states are refused.
    """
    fit = None if isinstance(source, Model) else answering(source, STATES)
    model = source if isinstance(source, Model) else source.model
    if not isinstance(model, StatesInTime):
        raise InputError(
            f"{model.name} has no states over time", "no_states", hint=models_with(StatesInTime, LevelsInTime)
        )
    if fit is None:
        data = read(model, new_data, **options)
        params = {name: values[None, None] for name, values in model.known_parameters(data).items()}
        return Decodable(model, params, data, None)
    if (withheld := components_withheld(fit)) and need_states:
        raise Untrustworthy(f"states are withheld: {withheld}; {next_step(fit)}", "withheld")
    rows = rows_asked(fit, new_data, options, "states")
    fitted = rows if fit.kind == "point estimate" else fit.data  # a single point is the best for all rows
    return Decodable(model, fit.draws(), rows, fitted, withheld, fit.has_independent_draws)


def of_levels(source: Fit | Model, new_data: object, options: Options) -> tuple[Fit | LevelsInTime, Data] | None:
    """Return a fit, or a model with known parameters, of real-valued states, and the rows asked for; else None."""
    model = source if isinstance(source, Model) else source.model
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
        What `fit` returned for a hidden Markov model, or for a model whose state is a number, such as `local_level`; or
        a model whose parameters are all known, such as `linear_gaussian` with q and r.
    new_data : Data or anything that `read` takes, optional
        Other sequences; by default those of the fit, or the model's example.
    paths : int
        Number of paths of states to draw given all rows, each at its own draw of the parameters.
    seed : int or numpy.random.Generator
        Seed of these paths.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        One row per data row, counted from 1, with the columns

        - the time of the row under the name of its column, if the table has times;
        - ``sequence``, its name in the table or its number from 1, if there are several;
        - ``state``: the most probable state given all rows of the sequence; these states have the fewest expected
          errors, but may form an impossible path;
        - ``viterbi``: the most probable path, at a point estimate or at the draw where the log joint density of
          parameters and fitted rows is highest;
        - ``path[1]``, ...: drawn paths;
        - ``smoothed[k]``: probability of state k given all rows, averaged over the draws, and ``mcse[k]``, its Monte
          Carlo standard error (NaN for a point estimate);
        - ``filtered[k]`` and ``mcse_filtered[k]``: the same given the rows so far, with parameters fitted to all rows.

        If parameters of an approximation are off, numbers are NaN where draws of the posterior do not agree, and the
        column ``withheld`` says which; totals in ``attrs`` are NaN if they, or numbers of a row, do not agree.

        In ``attrs``: ``viterbi_log_joint``, the log joint density of the rows and the path given the parameters;
        ``log_likelihood``, the log density of the rows given the same parameters; ``expected_errors``, the expected
        number of rows whose state is not ``state``, with its Monte Carlo error ``mcse_expected_errors``; and for new
        rows by several draws ``log_predictive``, the log of their density averaged over the draws, NaN if few draws
        carry it, and its Monte Carlo error ``mcse_log_predictive``. Other sequences do not update the parameters, as
        ``remarks`` says.

        If the state is a number, the columns are ``level`` and ``sd``, ``q025``, ``median`` and ``q975`` given all
        rows; ``filtered`` and ``sd_filtered`` given the rows so far; ``log_score``, the log density of the row given
        the rows before it, with parameters fitted to all rows, NaN for a missing row and for one too far from the
        draws; ``attrs`` has the sum ``log_score`` over observed rows, and its error ``mcse_log_score``; if rows are
        missing ``filled``, ``filled_q025`` and ``filled_q975``, the rows with predictions and 95% intervals in the
        gaps; and drawn paths. If rows are a sum of several components there are ``slope``, ``sd_slope``, ``slope_q025``
        and ``slope_q975``, and the same for ``season`` and for ``signal``, the mean of the row. Each has its Monte
        Carlo error in a column ``mcse_...``, such as ``mcse_level``, NaN if there is none.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate, or its draws do not agree what the states are; or no row of an approximation that
        is off agrees with the posterior; or ``paths`` are asked for and parameters are withheld.
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
    known = source if isinstance(source, Model) else Fit(source)
    if (levels := of_levels(known, new_data, options)) is not None:
        if isinstance(levels[0], Fit):
            _refuse_paths(levels[0], paths)
        frame = decoded(*levels, paths, seed)
    else:
        frame = _of_states(known, decodable(known, new_data, options), paths, seed)
    return frame if new_data is None or isinstance(known, Model) else not_updated(frame, known.kind)


def _of_states(known: Fit | Model, decoding: Decodable, paths: int, seed: int | np.random.Generator) -> pd.DataFrame:
    if isinstance(known, Model) or not is_judged(known):
        return _decoded(decoding, paths, seed).frame
    _refuse_paths(known, paths)
    params = numbered_reference(known, decoding.model, STATES)
    return _judged(known, _decoded(decoding, paths, seed), _decoded(replace(decoding, draws=params), 0, seed))


def _refuse_paths(fit: Fit, paths: int) -> None:
    """Refuse to draw paths if parameters are withheld."""
    if paths and has_withheld(fit):
        why = "parameters are withheld, and drawn paths cannot be judged row by row"
        raise Untrustworthy(f"{why}: leave paths out, or {next_step(fit)}", "withheld")


class _Decoded(NamedTuple):
    """The table of states, and the probabilities behind it."""

    frame: pd.DataFrame
    smoothed: Assignments
    filtered: Assignments


def _decoded(decoding: Decodable, paths: int, seed: int | np.random.Generator) -> _Decoded:
    model, states = decoding.model, np.array(decoding.states)
    smoothed, filtered, best = decoding.average(), decoding.average(model.filtered), decoding.best()
    path, value = model.best_path(best, decoding.data)
    columns = (
        times_of(decoding.data) | sequences(decoding.data) | {"state": states[smoothed.label], "viterbi": states[path]}
    )
    rng = stream(seed, model.name, fields_of(model), decoding.data.digest, "paths")
    points = _points(flat(decoding.draws))
    for i, point in enumerate(rng.integers(0, len(points), paths), start=1):
        columns[f"path[{i}]"] = states[model.sampled_path(points[point], decoding.data, rng)]
    columns |= by_state(smoothed, states, "smoothed", "mcse")
    columns |= by_state(filtered, states, "filtered", "mcse_filtered")
    log_likelihood = float(model.log_likelihoods(best, decoding.data))
    attrs = {"viterbi_log_joint": value, "log_likelihood": log_likelihood, **decoding.score()}
    attrs |= {"expected_errors": smoothed.expected_errors, "mcse_expected_errors": smoothed.mcse_expected_errors}
    frame = frame_of(columns, "row", attrs)
    return _Decoded(frame, smoothed, filtered)


def _judged(fit: Fit, own: _Decoded, reference: _Decoded) -> pd.DataFrame:
    """Withhold probabilities, states and totals that disagree with draws of the posterior.

    The most probable path depends on all rows: its states are shown where they equal those of the posterior's path, and
    its density if all are equal.
    """
    limits, frame = limits_of(fit), own.frame
    smoothed = probabilities_agree(own.smoothed, reference.smoothed, limits)
    filtered = probabilities_agree(own.filtered, reference.filtered, limits)
    path = (frame["viterbi"] == reference.frame["viterbi"]).to_numpy()
    columns = {start: tuple(name for name in map(str, frame) if name.startswith(start)) for start in _OF_STATES}
    of_path = ("viterbi", *columns["path["])
    parts = [
        Part((*columns["smoothed["], *columns["mcse["]), smoothed, "smoothed"),
        Part((*columns["filtered["], *columns["mcse_filtered["]), filtered, "filtered"),
        Part(of_path, path, "viterbi", counts=False),
        Part(("state",), own.smoothed.label == reference.smoothed.label),
    ]
    gap = np.abs(own.smoothed.probability - reference.smoothed.probability)[parts[0].agree].max(initial=0.0)
    line = line_within(parts[0].agree, f": probabilities within {gap:.2g} of the posterior's", limits)
    frame = kept_parts(frame.astype({name: object for name in ("state", "viterbi")}), parts, fit, STATES, line)
    return without_of_all(frame, _far_of_all(own.frame, reference.frame, limits, parts))


def _far_of_all(own: pd.DataFrame, reference: pd.DataFrame, limits: Limits, parts: list[Part]) -> list[str]:
    """Return the names of the totals that disagree, or include rows that disagree."""
    logs: list[str] = [name for name in ("viterbi_log_joint", "log_likelihood", "log_predictive") if name in own.attrs]
    far = [name for name in logs if not limits.logs_agree(*(np.array(frame.attrs[name]) for frame in (own, reference)))]
    of_rows = {"expected_errors": parts[0], "viterbi_log_joint": parts[2]}
    far += [name for name, part in of_rows.items() if not part.agree.all()]
    return list(dict.fromkeys([*far, *(f"mcse_{name}" for name in far if f"mcse_{name}" in own.attrs)]))


def by_state(averaged: Assignments, labels: Any, name: str, error: str) -> dict[str, np.ndarray]:
    """Return probabilities and their errors as columns named by the labels."""
    return labelled(name, labels, averaged.probability) | labelled(error, labels, averaged.mcse)
