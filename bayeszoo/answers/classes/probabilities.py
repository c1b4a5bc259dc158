"""Class probabilities of rows by a fit: averaged over draws or a quadrature, or in closed form.

If features have a distribution, the probability of a class given a row's features is a ratio of integrals, of
p(class, features) and of p(features). Averages over draws are therefore weighed by the density that each draw gives the
features of the row: the posterior accounts for the features of the training rows only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import scipy

from bayeszoo.answers.averages import CLOSED_FORM, Average, LeftOut, averaging
from bayeszoo.answers.law import points_of_groups
from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.read import Data
from bayeszoo.distributions.discrete import ClassWithFeatures
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.model.capabilities import Classifies, Predictive
from bayeszoo.model.draws import shape_of
from bayeszoo.model.parts.others import all_but_one, equal_rows
from bayeszoo.results.stored import Fit

BY_FEATURES = "draws weighed by what they give each row's features"
"""Basis of class probabilities by draws, if features have a distribution."""
_CELLS = 2**22
"""Most draws times rows times classes computed at once."""


class Part(NamedTuple):
    """A block of rows, the log probabilities of their classes (chain, draw, rows, K), and how these are averaged.

    ``log_features`` (rows,) is the log density of the features of each row, whatever its class; NaN if features have no
    distribution. ``is_possible`` (rows,) says whether the features have a density above 0 in some class.
    """

    rows: np.ndarray
    log_p: np.ndarray
    mean: Average | LeftOut
    log_features: np.ndarray
    is_possible: np.ndarray


def is_closed(fit: Fit) -> bool:
    """Return whether class probabilities are ratios of evidences in closed form."""
    model = fit.model
    is_generative = isinstance(model, Classifies) and model.has_law_of_features()
    return is_generative and fit.kind == "exact" and isinstance(model, Predictive)


def basis_of(fit: Fit, leave_one_out: bool) -> str:
    """Return the basis of the probabilities; empty if they are averages over the posterior given all rows."""
    if is_closed(fit):
        return CLOSED_FORM if leave_one_out else ""
    if leave_one_out:
        return averaging(fit)[0].basis
    is_weighed = cast(Classifies, fit.model).has_law_of_features() and fit.kind != "point estimate"
    return BY_FEATURES if is_weighed else ""


def class_probabilities(fit: Fit, data: Data, counts: np.ndarray | None, leave_one_out: bool) -> Iterator[Part]:
    """Yield blocks of rows; ``counts`` (rows, K) are the numbers of trials of each row and class."""
    if is_closed(fit):
        yield from _left_out_in_closed_form(fit) if leave_one_out else _in_closed_form(fit, data)
        return
    average, draws = averaging(fit)
    model = cast(Classifies, fit.model)
    width = math.prod(shape_of(draws)) * len(model.classes(data))
    for block in _blocks(model, data, width):
        rows = model.inputs.reordered(data, block)
        joint = model.log_joint_classes(draws, rows)
        part = _given_features(fit, draws, rows, block, average) if joint is None else _by_bayes(joint, block, average)
        if leave_one_out and counts is not None:
            part = part._replace(mean=average.without(_of_rows(part.log_p, counts[block])))
        yield part


def _blocks(model: Classifies, data: Data, width: int) -> list[np.ndarray]:
    """Return blocks of rows of ``width`` numbers each."""
    rows = np.arange(model.inputs.size(data))
    return [rows[part] for part in blocks(len(rows), width, _CELLS)]


def _given_features(fit: Fit, draws: Params, rows: Arrays, block: np.ndarray, average: Average) -> Part:
    """Return the probabilities by a model of classes given features."""
    model = cast(Classifies, fit.model)
    if (group_points := points_of_groups(fit, rows)) is None:
        is_point = average.kind == "point estimate"
        rng = None if is_point else stream_of_fit(fit.tree.attrs, 0, "parameters of new rows", int(block[0]))
        log_p = model.log_class_probabilities(draws, rows, fit.like, rng)
    else:
        log_p_by_point = model.log_class_probabilities(group_points.params, rows, fit.like)
        weights = group_points.weights[:, rows[CODE], None]
        log_p = scipy.special.logsumexp(log_p_by_point, b=weights, axis=0)[None, None]
    if np.isnan(log_p).any() or (log_p > 1e-9).any():
        problem = f"{model.name}.likelihood gives probabilities that are no numbers from 0 to 1"
        raise NumericalError(problem, "bad_model_step")
    return Part(block, log_p, average, np.full(len(block), np.nan), np.ones(len(block), dtype=bool))


def _by_bayes(log_joint: np.ndarray, block: np.ndarray, average: Average) -> Part:
    """Return the probabilities by log p(class, features) (chain, draw, rows, K), draws weighed by p(features)."""
    law = ClassWithFeatures(log_joint)
    log_features = law.log_features
    is_possible = np.isfinite(log_features).any(axis=(0, 1))
    mean = average if average.kind == "point estimate" else average.without(-log_features)
    of_rows, _ = average.log_means(log_features, np.ones(len(block), dtype=bool))
    return Part(block, np.where(is_possible[:, None], law.log_p, 0.0), mean, of_rows, is_possible)


def _exactly(law: ClassWithFeatures, block: np.ndarray) -> Part:
    """Return the probabilities of a closed-form predictive distribution, without error."""
    certain = Average("exact", np.ones(1), np.ones(1))
    return Part(block, law.log_p[None, None], certain, law.log_features, np.ones(len(block), dtype=bool))


def _in_closed_form(fit: Fit, data: Data) -> Iterator[Part]:
    model = cast(Predictive[Any], fit.model)
    for block in _blocks(cast(Classifies, model), data, len(fit.like["class"])):
        yield _exactly(model.predictive(fit.stats, model.inputs.reordered(data, block)), block)


def _left_out_in_closed_form(fit: Fit) -> Iterator[Part]:
    """Yield the rows of the fit, equal ones together, given the statistics of all others."""
    model, data = cast(Predictive[Any], fit.model), fit.data
    nothing, _ = model.inputs.split(data, 0)
    groups = equal_rows(model, data)
    equal_to = {int(group[0]): group for group in groups}
    with one_thread():
        for i, other_stats in all_but_one(model, data, groups, model.statistics(nothing)):
            law = model.predictive(other_stats, model.inputs.reordered(data, np.array([i])))
            repeated = ClassWithFeatures(np.repeat(law.log_joint, len(equal_to[i]), axis=0))
            yield _exactly(repeated, equal_to[i])


def _of_rows(log_p: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the log probability of each row as a whole, (chain, draw, rows): a row may have several trials."""
    with np.errstate(invalid="ignore"):  # 0 * -inf for a class that did not occur
        return np.asarray(np.sum(np.where(counts > 0, counts * log_p, 0.0), axis=-1))
