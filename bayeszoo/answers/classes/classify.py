"""Class probabilities of rows, integrated over the posterior, and the decision of least expected loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.averages import (
    CLOSED_FORM,
    QUADRATURE,
    Average,
    LeftOut,
    errors_of_probabilities,
    errors_of_sums,
    given_the_others,
)
from bayeszoo.answers.checks.leave_out import MAX_DISTINCT
from bayeszoo.answers.classes.likeness import share_as_low
from bayeszoo.answers.classes.probabilities import Part, basis_of, class_probabilities, is_closed
from bayeszoo.answers.classes.scores import loss_or_wrong, scored
from bayeszoo.answers.judged import (
    Agreement,
    answering,
    has_withheld,
    is_judged,
    limits_of,
    line_of,
    reference_of,
    refuse,
)
from bayeszoo.answers.rows import by_row, labelled, rows_asked
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Classifies, Latent
from bayeszoo.model.parts.others import equal_rows
from bayeszoo.model.suggest import models_with
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

REJECT = "reject"
"""The decision to choose no class."""
WITHHELD = "withheld"
"""In place of a decision whose probabilities are not known."""
RARE = 0.001
"""A new row is unlike the training rows if less than this share of them has as low a density."""
MOST_CELLS = 10_000_000
"""Largest number of rows times classes: a table of decisions holds ten numbers per row and class."""
_ANSWER = "decisions by it"
_ROUNDING = 1e-12
_ERRORS = 2.0
"""A decision is settled if every other one is worse by more than this many Monte Carlo errors."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """Class probabilities (rows, K) and decisions (rows,) of rows, in order.

    ``log_p`` and ``log_p_mcse`` are the log of each probability and its error, NaN if no trial has that class, or too
    few draws carry the mean. ``k_hat`` and ``is_known`` are as in `LeftOut`; ``log_features`` and ``is_possible`` as in
    `Part`; ``is_vetoed`` marks rows with a class of probability 0.
    """

    p: np.ndarray
    mcse: np.ndarray
    action: np.ndarray
    expected_loss: np.ndarray
    mcse_expected_loss: np.ndarray
    settled: np.ndarray
    log_p: np.ndarray
    log_p_mcse: np.ndarray
    k_hat: np.ndarray
    is_known: np.ndarray
    log_features: np.ndarray
    is_possible: np.ndarray
    is_vetoed: np.ndarray


def classify(
    tree: xr.DataTree,
    new_data: object = None,
    *,
    loss: Any = None,
    reject: float | None = None,
    leave_one_out: bool = False,
    density: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Decide on the class of each row, by the class probabilities of a fit and the losses of wrong decisions.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a model with classes, such as ``logistic_regression``.
    new_data : Data or anything that `read` takes, optional
        Further rows, with or without their outcome; by default the rows of the fit, whose decisions are too good.
    loss : array_like, shape (K, K), optional
        ``loss[i][j]`` is the loss of deciding for class j when class i is true, classes in the order of
        ``attrs["classes"]``. By default 0 if right and 1 if wrong.
    reject : float, optional
        The loss of no decision. Rows whose least expected loss is larger are rejected.
    leave_one_out : bool
        Decide on each row of the fit given all others: by Pareto-smoothed importance sampling of the draws, in closed
        form, or for an exact fit of one or two weights by its quadrature. A row of several trials is left out as a
        whole.
    density : bool
        Also return the log density of the features of each row, whatever its class, which is low if the row is unlike
        the training rows. For models whose features have a distribution, such as ``naive_bayes``.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        One row per data row, numbered as in the table read. ``decision``: the class of least expected loss, the first
        of equal ones, or ``reject``; its ``expected_loss``, and ``mcse_expected_loss``; ``settled``: whether every
        other decision is worse by more than two Monte Carlo errors of the difference; ``p[...]``, the probability of
        each class, and ``mcse[...]``, its Monte Carlo standard error (NaN for a point estimate).
        If outcomes are known also ``observed``, the class of the row, or ``observed[...]``, the number of its trials of
        each class; ``log_score``, the log probability of the outcomes (the sum over trials; NaN if too few draws carry
        the mean) and ``mcse_log_score``; ``brier_score``, the squared distance of the probabilities from the outcome
        (the sum over trials; for two classes that of one of them), and an upper bound ``mcse_brier_score`` of its
        error.
        ``attrs`` has the ``classes``, the ``loss`` (None by default) and, if outcomes are known, the means per trial
        ``loss_of_one``, ``log_score_of_one`` and ``brier_score_of_one`` with their standard errors over trials,
        ``se_...``, and ``auc``, the area under the ROC curve, for several classes of each against the others. Upper
        bounds of their Monte Carlo errors are ``mcse_...``: the sum over rows, as if all moved one way.
        For rows left out, and by draws of models whose features have a distribution, also ``k_hat``, the Pareto shape
        of the weights of draws. Above `k_hat_limit` the draws do not estimate the row: its decision is ``withheld``,
        its numbers are NaN, and so are the means over all trials and the areas; tables and pictures leave it out. The
        same holds for rows whose features are impossible in every class by a point estimate. ``attrs`` has the
        ``basis``, and counts ``rows_withheld``, of them ``rows_impossible``; ``rows_unscored``, which have no log
        score but all other numbers; and ``rows_vetoed``, which have a class of estimated probability 0. For
        new rows, by a model whose features have a distribution, ``attrs["unlike"]`` lists
        those whose density is below that of 99.9% of the training rows; rows with missing cells are not judged.
        An approximation that is off in some quantity is compared with draws of the posterior by which it was measured:
        rows whose probabilities, decision or expected loss disagree are withheld, ``rows_far`` of them, and
        ``attrs["judged"]`` says how far off the others are.

    Notes
    -----
    The probability is that of one trial, also if a row has several. It is the average over the draws, weighed by the
    density that they give the row's features if these have a distribution; in closed form a ratio of evidences; for an
    exact fit of one or two weights the integral by quadrature, with the change when its grid is halved in place of
    Monte Carlo errors. A point estimate is plugged in: its probabilities ignore the uncertainty of the parameters.
    Scores are those of scikit-learn's ``log_loss``, with the other sign, ``brier_score_loss`` and ``roc_auc_score`` of
    the same probabilities.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no classes, the loss does not suit them, or the new data do not suit the model; when
        ``leave_one_out`` is asked of a point estimate, or for more than `MAX_DISTINCT` rows; when rows times classes
        exceed `MOST_CELLS`.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> tree = bz.fit(bz.find("logistic_regression")(), method="nuts", seed=1)  # doctest: +SKIP
    >>> bz.classify(tree, {"temperature": [31.0]}, loss=[[0, 1], [5, 0]])  # doctest: +SKIP
    """
    fit = answering(Fit(tree), _ANSWER)
    model = classifier(fit.model)
    classes = model.classes(fit.like)
    losses, actions = losses_of(loss, reject, classes), [*classes, *([] if reject is None else [REJECT])]
    data = rows_asked(fit, new_data, options)
    if data.rows * len(classes) > MOST_CELLS:
        problem = f"{data.rows} rows of {len(classes)} classes have more than {MOST_CELLS} probabilities"
        raise InputError(problem, "too_large", hint=f"give {MOST_CELLS // len(classes)} rows at a time")
    if leave_one_out:
        _refuse_left_out(fit, new_data, classes)
    counts = _counts(model, data, len(classes)) if model.inputs.has_outcome(data) else None
    decisions, basis = _decisions(fit, data, losses, counts, leave_one_out), basis_of(fit, leave_one_out)
    agreement = None
    if is_judged(fit):
        reference = _decisions(reference_of(fit), data, losses, counts, leave_one_out)
        agreement = _judged(fit, decisions, reference, losses)
        decisions = _withheld(decisions, decisions.k_hat, decisions.is_known & agreement.shown)
    frame = _framed(decisions, actions, classes, data, basis)
    if agreement is not None:
        frame.attrs |= {"judged": agreement.line, "rows_far": int(np.sum(~agreement.shown))}
        frame.attrs["rows_withheld"] = int(np.sum(~decisions.is_known))
    if density:
        frame["log_density"] = _densities(model, decisions)
    rows = "new" if new_data is not None else "left out" if leave_one_out else "fitted"
    stated = None if loss is None and reject is None else losses.tolist()
    frame.attrs |= {"classes": classes, "loss": stated, "rows_are": rows}
    if new_data is not None and model.has_law_of_features() and not has_withheld(fit):
        frame.attrs["unlike"] = frame.index[share_as_low(fit, data, decisions.log_features) < RARE].tolist()
    return frame if counts is None else scored(frame, counts, (decisions.log_p, decisions.log_p_mcse), "trials" in data)


def _judged(fit: Fit, own: Decisions, reference: Decisions, losses: np.ndarray) -> Agreement:
    """Compare each probability with that by draws of the posterior, as a mean and an sd, and the expected losses.

    A row is shown if all of its numbers agree, and the decision is the same or not settled.
    """
    limits = limits_of(fit)
    with np.errstate(invalid="ignore", divide="ignore"):
        sds = [np.sqrt(np.maximum(decisions.p * (1 - decisions.p), 0.0)) for decisions in (own, reference)]
        mean, ratio = (own.p - reference.p) / sds[1], sds[0] / sds[1]
    is_within_error = np.abs(own.p - reference.p) <= own.mcse
    agrees = (limits.moments_agree((own.p, sds[0]), (reference.p, sds[1])) | is_within_error).all(axis=1)
    agrees &= (own.action == reference.action) | ~own.settled
    losses_of_action = losses[:, own.action].T  # the loss if each class is true, (rows, K)
    true_loss = np.sum(reference.p * losses_of_action, axis=1)
    spread = np.sqrt(np.sum(reference.p * np.square(losses_of_action - true_loss[:, None]), axis=1))
    most = np.fmax(limits.mean * spread + _ROUNDING * np.abs(losses).max(), own.mcse_expected_loss)
    agrees &= ~(np.abs(own.expected_loss - true_loss) > most)
    is_scored = np.isfinite(reference.log_p) & np.isfinite(own.log_p)
    agrees &= (limits.logs_agree(own.log_p, reference.log_p) | ~is_scored).all(axis=1)
    shown = np.where(own.is_known, agrees & reference.is_known, True)  # other rows are withheld already
    if not (shown & own.is_known).any():
        refuse(fit, _ANSWER)
    far, least = (np.where(is_within_error, same, gap) for same, gap in ((0.0, np.abs(mean)), (1.0, ratio)))
    return Agreement(shown, line_of(shown, far.max(axis=1), least.min(axis=1), limits))


def _densities(model: Classifies, decisions: Decisions) -> np.ndarray:
    """Return the log densities of the features; refuse a model without them."""
    if not model.has_law_of_features():
        hint = "leave density out, or fit a model of class and features, such as naive_bayes"
        raise InputError(f"features have no distribution in {model.name}", "no_capability", hint=hint)
    return decisions.log_features


def _decisions(fit: Fit, data: Data, losses: np.ndarray, counts: np.ndarray | None, leave_one_out: bool) -> Decisions:
    """Return the decisions on all rows, in their order."""
    parts, places = list[Decisions](), list[np.ndarray]()
    for part in class_probabilities(fit, data, counts, leave_one_out):
        trials = None if counts is None else counts[part.rows]
        of_part = decided(part.log_p, losses, trials, part.mean)
        parts.append(_with_features(of_part, part))
        places.append(part.rows)
    in_order = _together(parts, np.argsort(np.concatenate(places)))
    if leave_one_out and basis_of(fit, True) == QUADRATURE and counts is not None:
        _integrate_again(in_order, fit, losses, counts)
    return in_order


def _with_features(decisions: Decisions, part: Part) -> Decisions:
    """Add the log density of the features; withhold rows that are impossible under every class."""
    log_p, is_point = part.log_p, part.mean.kind == "point estimate"
    vetoed = np.isneginf(log_p).any(axis=(0, 1, 3)) & is_point & np.isfinite(part.log_features)
    decisions = replace(decisions, log_features=part.log_features, is_possible=part.is_possible, is_vetoed=vetoed)
    return decisions if part.is_possible.all() else _withheld(decisions, decisions.k_hat, part.is_possible)


def _integrate_again(decisions: Decisions, fit: Fit, losses: np.ndarray, counts: np.ndarray) -> None:
    """Decide again, by a quadrature given the others, on rows whose removal moves the posterior beyond the grid."""
    model = fit.model
    assert isinstance(model, Classifies)
    for i in np.flatnonzero(~decisions.is_known).tolist():
        (average, points), _ = given_the_others(model, fit.data, np.ones(len(counts), dtype=np.int64), i)
        log_p = model.log_class_probabilities(points, model.inputs.reordered(fit.data, np.array([i])), fit.data)
        decision = decided(log_p, losses, counts[[i]], average)
        for name in Decisions.__dataclass_fields__:
            getattr(decisions, name)[i] = getattr(decision, name)[0]


def _framed(
    decisions: Decisions, actions: Sequence[str], classes: Sequence[str], data: Data, basis: str
) -> pd.DataFrame:
    """Return the table of decisions, with their basis and the number of withheld rows if rows are left out."""
    decision = np.where(decisions.is_known, np.array(actions, dtype=object)[decisions.action], WITHHELD)
    columns = {"decision": decision, "expected_loss": decisions.expected_loss}
    columns |= {"mcse_expected_loss": decisions.mcse_expected_loss, "settled": decisions.settled}
    columns |= labelled("p", classes, decisions.p) | labelled("mcse", classes, decisions.mcse)
    is_by_draws = basis not in ("", QUADRATURE, CLOSED_FORM)
    frame = by_row(columns | ({"k_hat": decisions.k_hat} if is_by_draws else {}), data)
    impossible, vetoed = int(np.sum(~decisions.is_possible)), int(np.sum(decisions.is_vetoed))
    if basis or impossible:
        frame.attrs |= {"basis": basis, "rows_withheld": int(np.sum(~decisions.is_known))}
    frame.attrs |= {"rows_impossible": impossible} if impossible else {}
    frame.attrs |= {"rows_vetoed": vetoed} if vetoed else {}
    return frame


def _refuse_left_out(fit: Fit, new_data: object, classes: Sequence[str]) -> None:
    if new_data is not None:
        problem = "leave-one-out classifies the rows of the fit, and new rows are given too"
        raise InputError(problem, "conflicting_options", hint="leave out the table")
    if fit.kind == "point estimate":
        problem = f"leave-one-out needs draws or a closed form, and this is a point estimate by {fit.method}"
        hint = "fit by exact where the model has it, else by nuts or laplace"
        raise InputError(problem, "leave_one_out_unavailable", hint=hint)
    rows = len(equal_rows(fit.model, fit.data)) if is_closed(fit) else fit.data.rows
    if rows > MAX_DISTINCT:
        problem = f"leave-one-out takes at most {MAX_DISTINCT} rows, and the fit has {rows}"
        raise InputError(problem, "too_large", hint="fit a part of the rows, and classify the others as a table")
    if WITHHELD in classes:
        raise InputError(f"a class is called {WITHHELD}", "duplicate_name", hint="rename it to leave rows out")


def classifier(model: Model) -> Classifies:
    """Return a model that has classes, or raise `InputError`."""
    if not isinstance(model, Classifies):
        if isinstance(model, Latent):
            problem = f"{model.name} has no observed class to decide between"
            raise InputError(problem, "no_classes", hint="`bayeszoo assign` gives the hidden one of each row")
        raise InputError(f"{model.name} has no classes to decide between", "no_classes", hint=models_with(Classifies))
    return model


def losses_of(loss: object, reject: float | None, classes: Sequence[str]) -> np.ndarray:
    """Return the loss of each decision, shape (K, K), with a last column for no decision if ``reject`` is given."""
    names = ", ".join(classes)
    try:
        matrix = loss_or_wrong(loss, len(classes))
    except (TypeError, ValueError):
        raise InputError("the loss is no matrix of numbers", "wrong_type", hint=_how(len(classes), names)) from None
    if matrix.shape != (len(classes), len(classes)):
        shape = " x ".join(map(str, matrix.shape)) or "a number"
        problem = f"the loss is {shape}, for {len(classes)} classes ({names})"
        raise InputError(problem, "wrong_shape", hint=_how(len(classes), names))
    if not np.isfinite(matrix).all():
        raise InputError("the loss has an entry that is not finite", "out_of_range", hint="give a large finite cost")
    if reject is None:
        return matrix
    if not math.isfinite(reject):
        raise InputError(f"the cost of rejecting must be finite, got {reject}", "out_of_range")
    if REJECT in classes:
        raise InputError(f"a class is called {REJECT}", "duplicate_name", hint="rename it to use that option")
    return np.column_stack([matrix, np.full(len(classes), float(reject))])


def _how(classes: int, names: str) -> str:
    return f"give {classes} rows of {classes} numbers, a row for each true class in this order: {names}"


def _counts(model: Classifies, data: Arrays, classes: int) -> np.ndarray:
    """Return the number of trials of each row and class, shape (rows, K)."""
    outcome = np.asarray(model.inputs.outcome(data))
    if "trials" in data:
        return np.column_stack([data["trials"] - outcome, outcome]).astype(np.int64)
    return (outcome[:, None] == np.arange(classes)).astype(np.int64)


def decided(log_p: np.ndarray, losses: np.ndarray, counts: np.ndarray | None, average: Average | LeftOut) -> Decisions:
    """Average probabilities, and take the decision of least expected loss, and whether it is settled."""
    p = np.exp(log_p)
    mcse, risk = errors_of_probabilities(average, p), average.mean(p @ losses)
    action = np.argmin(risk, axis=-1)
    least = risk[np.arange(len(risk)), action]
    is_other = np.arange(losses.shape[1]) != action[:, None]
    losses_of_action = losses[:, action].T[..., None]  # (rows, K, 1), for each true class
    error = errors_of_sums(average, p, mcse, losses - losses_of_action)
    error = np.nan_to_num(error, nan=-1.0 if average.kind == "point estimate" else np.inf)
    is_worse = risk - least[:, None] > _ERRORS * error
    unknown = np.full(p.shape[2:], np.nan)
    rows = len(p[0, 0])
    yes, no = np.ones(rows, dtype=bool), np.zeros(rows, dtype=bool)
    decisions = Decisions(
        average.mean(p),
        mcse,
        action,
        least,
        errors_of_sums(average, p, mcse, losses_of_action)[:, 0],
        np.all(is_worse | ~is_other, axis=-1),
        *((unknown, unknown) if counts is None else average.log_means(log_p, counts > 0)),
        unknown[:, 0],
        yes,
        unknown[:, 0],
        yes,
        no,
    )
    return decisions if isinstance(average, Average) else _withheld(decisions, average.k_hat, average.is_known)


def _withheld(decisions: Decisions, k_hat: np.ndarray, is_known: np.ndarray) -> Decisions:
    """Return the decisions with NaN in place of unknown numbers."""
    names = ("p", "mcse", "expected_loss", "mcse_expected_loss", "log_p", "log_p_mcse")
    values = {name: getattr(decisions, name).copy() for name in names}
    for column in values.values():
        column[~is_known] = np.nan
    return replace(decisions, **values, settled=decisions.settled & is_known, k_hat=k_hat, is_known=is_known)


def _together(parts: Sequence[Decisions], order: np.ndarray) -> Decisions:
    names = Decisions.__dataclass_fields__
    return Decisions(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in names))
