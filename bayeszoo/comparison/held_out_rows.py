"""Models and baselines compared by their errors on rows held out.

All are fitted to the same rows and judged by the same other rows: by the share of wrong decisions, or for a real
outcome by the root mean squared error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.answers.classes.classify import WITHHELD, classify
from bayeszoo.answers.predict import ERROR_OF_SUM, predict
from bayeszoo.data.inputs import Regression
from bayeszoo.data.read import Data, example, read
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.fit import check_method, fit, methods_for, uninterrupted
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Classifies
from bayeszoo.results.stored import Fit
from bayeszoo.tools.baselines import Losses, errors_of, features, maker_of

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

SHARE = 0.3
USUAL = ("map", "nuts")
"""Default methods; a model uses those that it has."""


def held_out_error(
    model: Model | type[Model],
    data: object = None,
    *,
    share: float | None = None,
    folds: int | None = None,
    methods: Sequence[str] | None = None,
    baselines: Sequence[str] = (),
    fields: Mapping[str, object] | None = None,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> pd.DataFrame:
    """Compare fits of a regression or a classifier with baselines of scikit-learn by the errors on rows held out.

    Parameters
    ----------
    model : Model or its class
        For example ``logistic_regression``, ``softmax_regression`` or ``ridge``; a class gets the weakly informative
        prior for the rows that it is fitted to.
    data : Data or anything that `read` takes, optional
        By default the model's first data set.
    share : float, optional
        Share of the rows to hold out, between 0 and 1; 0.3 by default.
    folds : int, optional
        Number of folds, in place of ``share``; each fold is held out once.
    methods : sequence of str, optional
        How to fit the model; by default map and nuts.
    baselines : sequence of str
        For classes "svc" (a support vector machine with a Gaussian kernel), "perceptron" and "boosting" (AdaBoost of
        stumps); for classes or a real outcome "tree", "forest", "gradient_boosting" and "neighbours" (the five
        nearest).
    fields : mapping of str to object, optional
        With a class: values of fields of the prior.
    seed : int
        Seed of the split, the fits and the baselines.
    reporter : Reporter, optional
        Takes progress.

    Returns
    -------
    pandas.DataFrame
        One row for each fit or baseline, the smallest error first: ``by``, the method or the baseline; ``kind``, that
        of the fit or "baseline"; ``error``, the share of trials decided wrongly, or for a real outcome the root mean
        squared error of the predictive mean; ``error_se``, its standard error over trials, NaN of trials that are all
        alike; ``log_score``, the mean log predictive density of a trial, which a baseline does not have; ``trials``,
        the number held out; ``status``. Monte Carlo errors of fits by draws are at most ``mcse_error`` and
        ``mcse_log_score``.

    Raises
    ------
    InputError
        When the model has neither classes nor a real outcome with features, the baseline does not exist, or the share
        or the folds leave too few rows.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> table = bz.held_out_error(bz.find("ridge"), folds=5, methods=["exact"], baselines=["forest"], seed=1)
    >>> table["by"].tolist()
    ['exact', 'forest']
    """
    kind = model if isinstance(model, type) else type(model)
    checked = _methods(kind, methods)
    makers = [maker_of(kind, name) for name in baselines]
    rows = read(kind, data) if data is not None else example(kind)
    if makers:
        features(kind, rows)
    parts = list(_parts(rows.rows, share, folds, seed))
    say = (reporter or Reporter()).say
    table = []
    for method in checked:
        say(f"{kind.name}: {method}")
        table.append({"by": method, **_of_method(model, rows, parts, method, dict(fields or {}), seed)})
    for name, maker in zip(baselines, makers, strict=True):
        say(f"baseline: {name}")
        losses = [errors_of(kind, maker, *_split(rows, kind, held_out), seed) for held_out in parts]
        table.append({"by": name, "kind": "baseline", **_summed(kind, losses), "status": "ok"})
    frame = pd.DataFrame(table).sort_values("error", ignore_index=True, kind="stable")
    frame.attrs |= {"held_out": int(sum(map(len, parts))), "rows": rows.rows, "parts": len(parts)}
    return frame


def _methods(kind: type[Model], methods: Sequence[str] | None) -> list[str]:
    """Return the checked methods; refuse a model whose rows have neither classes nor a real outcome and features."""
    if not (issubclass(kind, Classifies) or isinstance(kind.inputs, Regression)):
        hint = "take a regression or a classifier, such as ridge or logistic_regression"
        raise InputError(f"rows of {kind.name} are not held out", "not_held_out", hint=hint)
    if methods is None:
        return [name for name in USUAL if name in methods_for(kind)] or methods_for(kind)[:1]
    for name in methods:
        check_method(kind, name)
    return list(methods)


def _parts(rows: int, share: float | None, folds: int | None, seed: int) -> Iterator[np.ndarray]:
    """Yield the places of rows to hold out: of one random share, or of each fold."""
    if share is not None and folds is not None:
        raise InputError("give a share that is held out or folds, not both", "conflicting_options")
    order = np.random.default_rng(seed).permutation(rows)
    if folds is not None:
        if not 2 <= folds <= rows:
            raise InputError(f"folds must be from 2 to the number of rows, {rows}, got {folds}", "out_of_range")
        yield from (np.sort(order[k::folds]) for k in range(folds))
        return
    share = SHARE if share is None else share
    count = round(share * rows) if 0 < share < 1 else 0
    if not 0 < count < rows:
        raise InputError(
            f"a share of {share:g} of {rows} rows cannot be held out",
            "too_few_rows",
            hint="give a share between 0 and 1",
        )
    yield np.sort(order[:count])


def _part(data: Data, kind: type[Model], places: np.ndarray) -> Data:
    """Return the rows of the data at these places."""
    numbers = np.arange(1, data.rows + 1) if data.row_numbers is None else data.row_numbers
    arrays = kind.inputs.reordered(data.arrays, places)
    return replace(data, arrays=arrays, notes=(), row_numbers=numbers[places], reading={})


def _split(data: Data, kind: type[Model], held_out: np.ndarray) -> tuple[Data, Data]:
    """Return the rows to fit, and the rows held out."""
    seen = np.setdiff1d(np.arange(data.rows), held_out)
    return _part(data, kind, seen), _part(data, kind, held_out)


def _of_method(
    model: Model | type[Model],
    data: Data,
    parts: list[np.ndarray],
    method: str,
    fields: Mapping[str, object],
    seed: int,
) -> Document:
    """Return a method's row of the table, with the reason where there is no answer to show."""
    kind, losses, fit_kind = model if isinstance(model, type) else type(model), [], ""
    for held_out in parts:
        seen, new = _split(data, kind, held_out)
        instance = model.weak_with(seen, fields) if isinstance(model, type) else model
        try:
            fitted = uninterrupted(fit(instance, seen, method, seed=seed, groups=()))
            losses.append(_decided(fitted, new) if issubclass(kind, Classifies) else _predicted(fitted, new, seed))
        except (NumericalError, Untrustworthy) as error:
            no_errors = dict.fromkeys(("error", "error_se", "mcse_error", "log_score", "mcse_log_score"), math.nan)
            return {"kind": "withheld", **no_errors, "trials": 0, "status": f"withheld: {error}"}
        fit_kind = fitted.kind
    return {"kind": fit_kind, **_summed(kind, losses), "status": "ok"}


def _decided(fitted: Fit, new: Data) -> Losses:
    """Return the number of wrong decisions in each row, NaN where withheld; decisions minimize the expected loss."""
    frame = classify(fitted.tree, new)
    classes = frame.attrs["classes"]
    if frame.attrs["by_trials"]:
        counts = frame[[f"observed[{label}]" for label in classes]].to_numpy(dtype=np.float64)
    else:
        counts = (frame["observed"].to_numpy()[:, None] == np.array(classes, dtype=object)).astype(np.float64)
    right = frame["decision"].to_numpy()[:, None] == np.array(classes, dtype=object)
    error = float(np.nan_to_num(frame.attrs["mcse_loss_of_one"]) * counts.sum())
    score, its_error = (float(frame[name].sum(skipna=False)) for name in ("log_score", "mcse_log_score"))
    wrong = np.where(frame["decision"] == WITHHELD, np.nan, (counts * ~right).sum(axis=1))
    return Losses(wrong, counts.sum(axis=1), score, error, its_error)


def _predicted(fitted: Fit, new: Data, seed: int) -> Losses:
    """Return the squared errors of predictive means."""
    frame = predict(fitted.tree, new, seed=seed)
    errors = np.square((frame["mean"] - frame["observed"]).to_numpy(dtype=np.float64))
    moved = 2 * np.sqrt(errors) * np.nan_to_num(frame["mcse_mean"].to_numpy(dtype=np.float64))
    score, its_error = float(frame["log_score"].sum(skipna=False)), float(frame.attrs[ERROR_OF_SUM])
    return Losses(errors, np.ones(len(errors)), score, float(moved.sum()), its_error)


def _summed(kind: type[Model], parts: Sequence[Losses]) -> Document:
    """Return the error of all rows held out, its standard error, and the mean log score."""
    losses, trials = (np.concatenate([getattr(part, name) for part in parts]) for name in ("losses", "trials"))
    total = float(trials.sum())
    mean = float(losses.sum()) / total
    scored: dict[str, Any] = {"log_score": math.fsum(part.log_score for part in parts) / total, "trials": int(total)}
    scored["mcse_log_score"] = math.hypot(*(part.mcse_log_score for part in parts)) / total
    moved = math.hypot(*(part.mcse_losses for part in parts)) / total
    if issubclass(kind, Classifies):
        spread = (
            math.sqrt(mean * (1 - mean) / max(total - 1, 1)) or math.nan
        )  # trials that are all alike show no spread
        return {"error": mean, "error_se": spread, "mcse_error": moved, **scored}
    root, spread = math.sqrt(mean), float(np.std(losses, ddof=1)) if total > 1 else math.nan
    of_root = {"error_se": spread / math.sqrt(total), "mcse_error": moved}
    return {"error": root, **{name: each / (2 * root) if root else 0.0 for name, each in of_root.items()}, **scored}
