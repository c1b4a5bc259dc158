"""Scores of class probabilities: log and Brier score, confusion, calibration, and the ROC curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.answers.rows import labelled
from bayeszoo.distributions.posterior import INTERVAL
from bayeszoo.distributions.special import sum_of_others
from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")


def scored(
    frame: pd.DataFrame, counts: np.ndarray, log_p: tuple[np.ndarray, np.ndarray], by_trials: bool
) -> pd.DataFrame:
    """Add the observed classes, whose trials are ``counts`` (rows, K), and scores to the table of decisions."""
    classes, p = frame.attrs["classes"], _probabilities(frame)
    frame = frame.assign(**_observed(counts, classes, by_trials))
    frame.attrs["by_trials"] = by_trials
    seen, squared = counts > 0, _squared(p)
    frame["log_score"] = np.where(seen, counts * log_p[0], 0.0).sum(axis=1)
    frame["mcse_log_score"] = np.abs(np.where(seen, counts * log_p[1], 0.0)).sum(axis=1)
    is_unscored = np.isnan(frame["log_score"].to_numpy()) & np.isfinite(p).all(axis=1)
    if is_unscored.any():
        frame.attrs["rows_unscored"] = int(is_unscored.sum())
    frame["brier_score"] = (counts * squared).sum(axis=1)
    errors = frame[[f"mcse[{label}]" for label in classes]].to_numpy()
    of_brier = _error_of_squared(p, errors)
    frame["mcse_brier_score"] = (counts * of_brier).sum(axis=1)
    with np.errstate(invalid="ignore"):
        terms = {"loss_of_one": _losses(frame), "log_score_of_one": log_p[0], "brier_score_of_one": squared}
    for name, values in terms.items():
        frame.attrs[name], frame.attrs[f"se_{name}"] = _mean(np.where(seen, values, 0.0), counts)
    frame.attrs["loss_of_always"] = _always(frame, counts)
    frame.attrs["trials"] = int(counts.sum())
    frame.attrs |= _errors_of_means(frame, counts)
    frame.attrs["mcse_auc"] = {
        label: _error_of_area(p[:, k], errors[:, k], counts[:, k], counts.sum(axis=1))
        for k, label in _one_by_one(classes)
    }
    frame.attrs["auc"] = {label: _area(p[:, k], counts[:, k], counts.sum(axis=1)) for k, label in _one_by_one(classes)}
    return frame


def _probabilities(frame: pd.DataFrame) -> np.ndarray:
    return frame[[f"p[{label}]" for label in frame.attrs["classes"]]].to_numpy()


def _observed(counts: np.ndarray, classes: list[str], by_trials: bool) -> dict[str, np.ndarray]:
    if by_trials:
        return labelled("observed", classes, counts)
    return {"observed": np.array(classes, dtype=object)[np.argmax(counts, axis=1)]}


def _squared(p: np.ndarray) -> np.ndarray:
    """Return the Brier score of a trial of each class: the squared distance, for two classes that of one of them."""
    distance = np.square(1 - p) + sum_of_others(np.square(p), axis=1)
    return distance / 2 if p.shape[1] == 2 else distance


def _error_of_squared(p: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return the largest change of the Brier scores if probabilities move by their Monte Carlo errors."""
    of_class = (1 - p) * errors
    of_all = of_class if p.shape[1] == 2 else of_class + sum_of_others(p * errors, axis=1)
    return np.asarray(2 * of_all)


def _errors_of_means(frame: pd.DataFrame, counts: np.ndarray) -> dict[str, float]:
    """Return the largest change of the mean scores if all rows, which share draws, move by their Monte Carlo errors.

    The loss changes where decisions are not settled, at most by the range of losses of the observed classes.
    """
    total, losses = counts.sum(), loss_or_wrong(frame.attrs["loss"], len(frame.attrs["classes"]))
    moved = {"loss": (counts @ np.ptp(losses, axis=1)) * ~frame["settled"].to_numpy()}
    moved |= {name: frame[f"mcse_{name}"].to_numpy() for name in ("log_score", "brier_score")}
    return {f"mcse_{name}_of_one": float(by_row.sum() / total) if total else math.nan for name, by_row in moved.items()}


def _losses(frame: pd.DataFrame) -> np.ndarray:
    """Return the loss of the decision for a trial of each class, shape (rows, K); NaN if it is withheld."""
    losses = loss_or_wrong(frame.attrs["loss"], len(frame.attrs["classes"]))
    return np.column_stack([losses, np.full(len(losses), np.nan)])[:, _actions(frame)].T


def _always(frame: pd.DataFrame, counts: np.ndarray) -> dict[str, float]:
    """Return the mean loss of a trial if every row gets the same decision, by decision."""
    losses = loss_or_wrong(frame.attrs["loss"], len(frame.attrs["classes"]))
    with np.errstate(invalid="ignore"):
        means = counts.sum(axis=0) @ losses / counts.sum()
    return dict(zip(_columns(frame), means.tolist(), strict=True))


def loss_or_wrong(loss: Any, classes: int) -> np.ndarray:
    """Return the loss of each decision (K, K) as an array; by default 0 if right and 1 if wrong."""
    return 1 - np.eye(classes) if loss is None else np.array(loss, dtype=np.float64)


def _columns(frame: pd.DataFrame) -> list[str]:
    """Return the names of the decisions: the classes, and "reject" if it is an option."""
    classes, loss = frame.attrs["classes"], frame.attrs["loss"]
    return [*classes, *["reject"] * (loss is not None and len(loss[0]) > len(classes))]


def _actions(frame: pd.DataFrame) -> np.ndarray:
    """Return the index of each decision, or the number of decisions if it is withheld."""
    places = {label: place for place, label in enumerate(_columns(frame))}
    return frame["decision"].map(lambda label: places.get(label, len(places))).to_numpy(dtype=np.int64)


def _mean(terms: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Return the mean of one trial and its standard error over trials, NaN of trials that are all alike."""
    total = int(counts.sum())
    mean = float((counts * terms).sum() / total) if total else math.nan
    if total < 2 or not math.isfinite(mean):
        return mean, math.nan
    return mean, math.sqrt(float((counts * np.square(terms - mean)).sum()) / (total - 1) / total) or math.nan


def _one_by_one(classes: list[str]) -> list[tuple[int, str]]:
    """Return the index and label of each one-vs-rest class; for two classes only the second."""
    return list(enumerate(classes))[1 if len(classes) == 2 else 0 :]


# Summaries of a table of decisions


def _outcomes(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and the number of trials of each class, or raise `InputError`."""
    if "classes" not in frame.attrs or "by_trials" not in frame.attrs:
        problem = "the outcomes are not known" if "classes" in frame.attrs else "the table is not one of bz.classify"
        hint = "give the whole table that bz.classify returned for rows with their outcome"
        raise InputError(problem, "not_classified", hint=hint)
    classes = frame.attrs["classes"]
    if frame.attrs["by_trials"]:
        return _probabilities(frame), frame[[f"observed[{label}]" for label in classes]].to_numpy()
    return _probabilities(frame), (frame["observed"].to_numpy()[:, None] == np.array(classes, dtype=object)).astype(int)


def _decided(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and trials of rows that are not withheld, or raise `InputError` if there are none."""
    p, counts = _outcomes(frame)
    shown = np.isfinite(p).all(axis=1)
    if not shown.any():
        raise InputError("the probabilities of all rows are withheld", "withheld", hint="fit by nuts with more draws")
    return p[shown], counts[shown]


def confusion(frame: pd.DataFrame) -> pd.DataFrame:
    """Count the trials of each class by decision.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `classify` returned for rows whose outcomes are known.

    Returns
    -------
    pandas.DataFrame
        One row per true class, one column per decision; then ``reject`` if that was an option, and ``withheld`` if rows
        are withheld.

    Raises
    ------
    InputError
        When the outcomes are not known.
    """
    counts, classes = _outcomes(frame)[1], frame.attrs["classes"]
    columns = [*_columns(frame), *["withheld"] * bool(frame.attrs.get("rows_withheld", 0))]
    decided = _actions(frame)[:, None] == np.arange(len(columns))
    index, names = pd.Index(classes, name="observed"), pd.Index(columns, name="decision")
    return pd.DataFrame(counts.T @ decided, index=index, columns=names)


def calibration(frame: pd.DataFrame, bins: int = 10) -> pd.DataFrame:
    """Compare probabilities with observed shares of the class, in bins of equal width.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `classify` returned for rows whose outcomes are known.
    bins : int
        Number of bins between 0 and 1, at least 1.

    Returns
    -------
    pandas.DataFrame
        One row per bin with trials, for two classes of the second, else of each class: ``class``, ``low`` and ``high``,
        the edges of the bin, which contains the lower one; ``trials``, ``mean_probability``, ``share`` of the class in
        the trials, and ``q025`` and ``q975``, a 95% interval of the long-run share (Jeffreys).

    Raises
    ------
    InputError
        When the outcomes are not known, or ``bins`` is below 1.
    """
    if bins < 1:
        raise InputError(f"the number of bins must be >= 1, got {bins}", "out_of_range")
    p, counts = _decided(frame)
    parts = [
        _reliability(p[:, k], counts[:, k], counts.sum(axis=1), bins) for k, _ in _one_by_one(frame.attrs["classes"])
    ]
    named = [
        part.assign(**{"class": label})
        for part, (_, label) in zip(parts, _one_by_one(frame.attrs["classes"]), strict=True)
    ]
    table = pd.concat(named, ignore_index=True)
    return table[["class", *(name for name in table if name != "class")]]


def _reliability(p: np.ndarray, hits: np.ndarray, trials: np.ndarray, bins: int) -> pd.DataFrame:
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, bins - 1)
    total, expected, observed = (np.bincount(place, weights, bins) for weights in (trials, trials * p, hits))
    has_trials = total > 0
    total, expected, observed = total[has_trials], expected[has_trials], observed[has_trials]
    low, high = (scipy.special.betaincinv(observed + 0.5, total - observed + 0.5, q) for q in INTERVAL.values())
    columns = {"low": edges[:-1][has_trials], "high": edges[1:][has_trials], "trials": total.astype(np.int64)}
    columns |= {"mean_probability": expected / total, "share": observed / total, "q025": low, "q975": high}
    return pd.DataFrame(columns)


def roc(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the ROC curve: rates of true and false positives as the threshold of the probability falls.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `classify` returned for rows whose outcomes are known.

    Returns
    -------
    pandas.DataFrame
        One row per distinct probability, from the highest, for two classes of the second, else of each class against
        the others: ``class``, ``threshold`` (first infinite: no positives), ``false_positive_rate`` and
        ``true_positive_rate``, NaN if no trial, or every one, was of the class.

    Raises
    ------
    InputError
        When the outcomes are not known.
    """
    p, counts = _decided(frame)
    parts = []
    for k, label in _one_by_one(frame.attrs["classes"]):
        threshold, hits, alarms = _curve(p[:, k], counts[:, k], counts.sum(axis=1))
        with np.errstate(invalid="ignore"):
            rates = {"false_positive_rate": alarms / alarms[-1], "true_positive_rate": hits / hits[-1]}
        parts.append(pd.DataFrame({"class": label, "threshold": threshold, **rates}))
    return pd.concat(parts, ignore_index=True)


def _curve(p: np.ndarray, hits: np.ndarray, trials: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return thresholds from infinity down, and the numbers of the class and of the others at or above each."""
    values, place = np.unique(-p, return_inverse=True)
    true, false = (np.concatenate([[0.0], np.bincount(place, count).cumsum()]) for count in (hits, trials - hits))
    return np.concatenate([[np.inf], -values]), true, false


def _error_of_area(p: np.ndarray, errors: np.ndarray, hits: np.ndarray, trials: np.ndarray) -> float:
    """Return the largest change of the area if rows of the class and the others move apart, or together."""
    area, share = _area(p, hits, trials), hits / np.maximum(trials, 1)
    moved = [_area(p + sign * (2 * share - 1) * errors, hits, trials) for sign in (-1, 1)]
    return max(abs(moved_area - area) for moved_area in moved)


def _area(p: np.ndarray, hits: np.ndarray, trials: np.ndarray) -> float:
    """Return the area under the ROC curve; NaN if no trial, or every one, was of the class, or any is withheld."""
    if np.isnan(p).any():
        return math.nan
    _, true, false = _curve(p, hits, trials)
    if not (true[-1] and false[-1]):
        return math.nan
    return float(np.trapezoid(true / true[-1], false / false[-1]))
