"""Label switching: draws keep the labels that the sampler gave them, and are put in one order afterwards, reversibly.

Where the prior does not tell components apart, the posterior is the same under each permutation of their labels, and
means of component parameters say nothing. The relabelling is by the responsibilities, so that it needs no parameter
by which to order (Stephens, 2000, JRSS B 62, 795-809, algorithm 2: the Kullback-Leibler divergence to a classification
is minimized over the permutation of each draw).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from bayeszoo.data.inputs import Series
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Latent, exchangeable_axis, rows_have_parameters

MAX_ROWS = 1000  # rows that are looked at; of more, as many are chosen
CELLS = 2**18  # rows times draws that a model is asked for at a time
_SEEN = 5000  # responsibilities of one draw that are looked at: of many components, fewer rows
_SMOOTH = 1e-6
"""Share of the uniform distribution in each responsibility, so that no row is infinitely far from another draw's."""
_STARTS = 10
_START_DRAWS = 400


@dataclass(frozen=True, eq=False)
class Alignment:
    """How the labels of each draw are permuted into one order, by decreasing mean weight.

    ``stability``, shape (K,), is 1 where a component has the same responsibilities in every draw, 0 where they are no
    more like the mean than those of a component at random, and NaN where no draw gives it a row. Responsibilities p and
    their mean q are compared by Jaccard's index, the sum over rows of min(p, q) over that of max(p, q), as Hennig
    (2007, Computational Statistics & Data Analysis 52, 258-271) does; as in Cohen's kappa the likeness of components at
    random is taken off, (likeness - chance) / (1 - chance), so that overlap of components alone does not lower it.
    """

    permutations: np.ndarray  # shape (chain, draw, K): entry k is the draw's own component that becomes component k
    responsibilities: np.ndarray  # shape (rows, K): mean over the aligned draws, of the rows that were looked at
    stability: np.ndarray


def align(model: Latent, params: Params, data: Arrays) -> Alignment:
    """Find the permutation of each draw's labels that makes the draws (chain, draw, ...) most alike.

    The best permutations given the mean responsibilities (an assignment problem for each draw) and the mean given the
    permutations are found in turn until neither gains; of several draws as starts the best is kept. Of more than 1000
    rows, 1000 are looked at, always the same. Where the prior tells the labels apart, the permutations change nothing.
    """
    p = _responsibilities(model, params, data)
    T, K, _ = p.shape
    permutations = np.tile(np.arange(K), (T, 1))
    if K > 1 and exchangeable_axis(model) is not None:
        permutations = _climb(p, _start(p))[0]
        permutations = permutations[:, np.argsort(-_mean(p, permutations).sum(axis=1), kind="stable")]
    q = _mean(p, permutations)
    shape = np.shape(next(iter(params.values())))[:2]
    return Alignment(permutations.reshape(*shape, K), q.T, _stability(p, permutations, q))


def permute(model: Model, params: Params, permutations: np.ndarray) -> dict[str, np.ndarray]:
    """Relabel each draw by permutations (*leading, K): the same numbers, bit for bit, in another order.

    The axis that the model names as exchangeable, and the one with ``_2``, are permuted wherever ``dims`` has them.
    """
    if (axis := exchangeable_axis(model)) is None:
        return dict(params)
    return {name: _permuted(model, name, values, axis, np.asarray(permutations)) for name, values in params.items()}


def inverse(permutations: np.ndarray) -> np.ndarray:
    """Return the permutations that undo these, of the same shape."""
    return np.argsort(permutations, axis=-1)


def responsibilities_of_some(model: Latent, params: Params, data: Arrays) -> np.ndarray:
    """Return the mean responsibilities of the rows that are looked at, the same of all fits to the data: (rows, K)."""
    return np.asarray(_responsibilities(model, params, data).mean(axis=0).T)


def match(model: Latent, params: Params, responsibilities: np.ndarray, data: Arrays) -> np.ndarray:
    """Find the permutation, shape (K,), that brings the labels of aligned draws to those of another fit to the data.

    ``responsibilities``, shape (rows, K), are `responsibilities_of_some` of the other fit, which must have as many
    components.
    """
    p = responsibilities_of_some(model, params, data).T[None]
    if p[0].T.shape != responsibilities.shape:
        raise InputError("only fits with as many components and of the same rows can be matched", "not_comparable")
    if exchangeable_axis(model) is None:
        return np.arange(p.shape[1])
    return _nearest(p, responsibilities.T)[0][0]


def _permuted(model: Model, name: str, values: object, axis: str, permutations: np.ndarray) -> np.ndarray:
    leading, turned = permutations.ndim - 1, np.asarray(values)
    for i, own in enumerate(model.dims.get(name, ())):
        if own in (axis, f"{axis}_2"):
            at = leading + i
            if turned.shape[at] != permutations.shape[-1]:
                raise InputError(
                    f"{name} has {turned.shape[at]} components, the permutations {permutations.shape[-1]}",
                    "wrong_shape",
                )
            places = (1,) * i + (-1,) + (1,) * (turned.ndim - at - 1)
            turned = np.take_along_axis(turned, permutations.reshape(*permutations.shape[:-1], *places), axis=at)
    return turned


def in_chunks(
    model: Latent, params: Params, data: Arrays, function: Callable[[Params, Arrays], object] | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of draws with their component probabilities (draws, rows, K); params are (draw, ...).

    Another ``function`` of parameters and data may take the place of ``model.component_probabilities``.
    """
    total = len(next(iter(params.values())))
    size = max(CELLS // max(model.inputs.size(data), 1), 1)
    for first in range(0, total, size):
        some = slice(first, min(first + size, total))
        values = np.asarray(
            (function or model.component_probabilities)({name: draws[some] for name, draws in params.items()}, data)
        )
        impossible = np.isnan(values).all(axis=-1, keepdims=True) if values.ndim == 3 else False
        if not (np.isfinite(values) | impossible).all():
            raise NumericalError(
                f"{model.name}.component_probabilities gives numbers that are not finite", "not_finite"
            )
        yield some, values


def flat(params: Params) -> dict[str, np.ndarray]:
    """Put the draws of all chains one after the other."""
    return {name: np.reshape(values, (-1, *np.shape(values)[2:])) for name, values in params.items()}


# Stephens' algorithm, on responsibilities of shape (draws, K, rows)


def _responsibilities(model: Latent, params: Params, data: Arrays) -> np.ndarray:
    """Return the responsibilities of the rows that are looked at, shape (draws, K, rows)."""
    draws, inputs = flat(params), model.inputs
    rows, total = max(min(MAX_ROWS, _SEEN // model.K), 1), inputs.size(data)
    chosen = np.arange(total)
    if total > rows:  # at random, as evenly spaced rows may all be of one component
        chosen = np.sort(np.random.default_rng(0).choice(total, rows, replace=False, shuffle=False))
    if not isinstance(inputs, Series) and not rows_have_parameters(model):  # else all are needed
        data, chosen = inputs.reordered(data, chosen), np.arange(len(chosen))
    probabilities = np.empty((len(next(iter(draws.values()))), model.K, len(chosen)))
    for some, values in in_chunks(model, draws, data):
        probabilities[some] = np.swapaxes(values[:, chosen], 1, 2)
    return probabilities


def _start(p: np.ndarray) -> np.ndarray:
    """Return the mean responsibilities, shape (K, rows), that are best among those found from several draws."""
    few = p[:: max(len(p) // _START_DRAWS, 1)]
    starts = np.unique(np.linspace(0, len(few) - 1, _STARTS).astype(int))
    permutations, _ = min((_climb(few, few[i]) for i in starts), key=lambda climb: climb[1])
    return _mean(few, permutations)


def _climb(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, float]:
    """Improve permutations and their mean in turn, from a mean; return the permutations and the cost."""
    permutations, cost = _nearest(p, q)
    while True:
        better, lower = _nearest(p, _mean(p, permutations))
        if not lower < cost:
            return permutations, cost
        permutations, cost = better, lower


def _nearest(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the permutation of each draw, shape (draws, K), that is nearest to ``q``, and their cost.

    The cost is a cross entropy: Stephens' divergence but for the entropy of the draws, which no permutation changes.
    """
    costs = _costs(p, q)
    permutations = np.array([scipy.optimize.linear_sum_assignment(cost)[1] for cost in costs])
    return permutations, float(np.take_along_axis(costs, permutations[..., None], axis=2).sum())


def _costs(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return what it costs to call component j of a draw k, shape (draws, k, j)."""
    T, K, rows = p.shape
    log_q = np.log((1 - _SMOOTH) * q + _SMOOTH / len(q))
    own = (p.reshape(T * K, rows) @ log_q.T).reshape(T, K, K).swapaxes(1, 2)
    return -(1 - _SMOOTH) * own - _SMOOTH / K * log_q.sum(axis=1)[:, None]


def _mean(p: np.ndarray, permutations: np.ndarray) -> np.ndarray:
    """Return the mean of the aligned responsibilities, shape (K, rows), without a copy of all of them."""
    T, K, rows = p.shape
    chosen = permutations.T[:, :, None] == np.arange(K)
    return chosen.reshape(K, T * K).astype(np.float64) @ p.reshape(T * K, rows) / T


def _stability(p: np.ndarray, permutations: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the likeness of each component to its mean above that of components at random, shape (K,)."""
    K = p.shape[1]
    if K == 1:
        return np.ones(1)
    likeness = np.zeros((K, K))  # of the mean's component k and a draw's component l, once aligned
    with np.errstate(divide="ignore", invalid="ignore"):
        for draw, permutation in zip(p, permutations, strict=True):
            aligned = draw[permutation]
            shared = np.minimum(q[:, None], aligned).sum(axis=2)
            likeness += shared / (q.sum(axis=1)[:, None] + aligned.sum(axis=1) - shared)
    own, chance = np.diagonal(likeness) / len(p), likeness.mean(axis=1) / len(p)
    return np.where(1 - chance > 1e-9, (own - chance) / np.maximum(1 - chance, 1e-9), 0.0 * own)
