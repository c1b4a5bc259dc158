"""Label switching: draws keep the sampler's labels, and are relabelled afterwards, reversibly.

When the prior is exchangeable in the components, the posterior is the same under each permutation of their labels, and
means of component parameters have no meaning. Draws are relabelled by their responsibilities, so that no parameter is
needed to order them (Stephens, 2000, JRSS B 62, 795-809, algorithm 2: the Kullback-Leibler divergence to a
classification is minimized over the permutation of each draw).
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
from bayeszoo.model.draws import flat

MAX_ROWS = 1000  # most rows whose responsibilities are used; of more rows, a random subset
CELLS = 2**18  # most rows times draws in a block
_SEEN = 5000  # most responsibilities used of one draw: with many components, fewer rows
_SMOOTH = 1e-6
"""Share of the uniform distribution in each responsibility, so that no row is infinitely far from another draw's."""
_STARTS = 10
_START_DRAWS = 400


@dataclass(frozen=True, eq=False)
class Alignment:
    """How the labels of each draw are permuted into one order, by decreasing mean weight.

    ``stability``, shape (K,), is 1 for a component with the same responsibilities in every draw, 0 for one whose
    responsibilities are no closer to their mean than those of a random component, and NaN for one without a row in any
    draw. Responsibilities p and their mean q are compared by Jaccard's index, the sum over rows of min(p, q) divided by
    that of max(p, q), as in Hennig (2007, Computational Statistics & Data Analysis 52, 258-271). As in Cohen's kappa,
    the index is corrected for chance, (observed - chance) / (1 - chance), so that overlap alone does not lower it.
    """

    permutations: np.ndarray  # shape (chain, draw, K): entry k is the sampler's component that becomes component k
    responsibilities: np.ndarray  # shape (rows, K): mean over the aligned draws, of the rows that were used
    stability: np.ndarray


def align(model: Latent, params: Params, data: Arrays) -> Alignment:
    """Find the permutation of each draw's labels that makes the draws (chain, draw, ...) most alike.

    The best permutations given the mean responsibilities (an assignment problem for each draw) and the mean given the
    permutations are computed in turn until neither improves, from several draws as starts; the best result is kept. Of
    more than 1000 rows, always the same 1000 are used. If the labels are not exchangeable, the permutations are the
    identity.
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

    The model's exchangeable axis, and the same axis with ``_2``, are permuted in every parameter that has them.
    """
    if (axis := exchangeable_axis(model)) is None:
        return dict(params)
    return {name: _permuted(model, name, values, axis, np.asarray(permutations)) for name, values in params.items()}


def inverse(permutations: np.ndarray) -> np.ndarray:
    """Return the inverse permutations, of the same shape."""
    return np.argsort(permutations, axis=-1)


def responsibilities_of_some(model: Latent, params: Params, data: Arrays) -> np.ndarray:
    """Return the mean responsibilities (rows, K) of the rows used, the same rows for all fits to the data."""
    return np.asarray(_responsibilities(model, params, data).mean(axis=0).T)


def match(model: Latent, params: Params, responsibilities: np.ndarray, data: Arrays) -> np.ndarray:
    """Find the permutation, shape (K,), that matches the labels of aligned draws to those of another fit to the data.

    ``responsibilities``, shape (rows, K), are `responsibilities_of_some` of the other fit, which must have the same
    number of components.
    """
    p = responsibilities_of_some(model, params, data).T[None]
    if p[0].T.shape != responsibilities.shape:
        line = "only fits with the same number of components and the same rows can be matched"
        raise InputError(line, "not_comparable")
    if exchangeable_axis(model) is None:
        return np.arange(p.shape[1])
    return _nearest(p, responsibilities.T)[0][0]


def _permuted(model: Model, name: str, values: object, axis: str, permutations: np.ndarray) -> np.ndarray:
    leading, turned = permutations.ndim - 1, np.asarray(values)
    for i, label_axis in enumerate(model.dims.get(name, ())):
        if label_axis in (axis, f"{axis}_2"):
            position = leading + i
            if turned.shape[position] != permutations.shape[-1]:
                raise InputError(
                    f"{name} has {turned.shape[position]} components, the permutations {permutations.shape[-1]}",
                    "wrong_shape",
                )
            ones = (1,) * i + (-1,) + (1,) * (turned.ndim - position - 1)
            turned = np.take_along_axis(turned, permutations.reshape(*permutations.shape[:-1], *ones), axis=position)
    return turned


def in_chunks(
    model: Latent, params: Params, data: Arrays, function: Callable[[Params, Arrays], object] | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of draws with their component probabilities (draws, rows, K); params are (draw, ...).

    ``function`` of parameters and data replaces ``model.component_probabilities``.
    """
    total = len(next(iter(params.values())))
    size = max(CELLS // max(model.inputs.size(data), 1), 1)
    for start in range(0, total, size):
        block = slice(start, min(start + size, total))
        values = np.asarray(
            (function or model.component_probabilities)({name: draws[block] for name, draws in params.items()}, data)
        )
        impossible = np.isnan(values).all(axis=-1, keepdims=True) if values.ndim == 3 else False
        if not (np.isfinite(values) | impossible).all():
            raise NumericalError(
                f"{model.name}.component_probabilities gives numbers that are not finite", "not_finite"
            )
        yield block, values


# Stephens' algorithm, on responsibilities of shape (draws, K, rows)


def _responsibilities(model: Latent, params: Params, data: Arrays) -> np.ndarray:
    """Return the responsibilities of the rows used, shape (draws, K, rows)."""
    draws, inputs = flat(params), model.inputs
    rows, total = max(min(MAX_ROWS, _SEEN // model.K), 1), inputs.size(data)
    chosen = np.arange(total)
    if total > rows:  # at random, as evenly spaced rows may all be of one component
        chosen = np.sort(np.random.default_rng(0).choice(total, rows, replace=False, shuffle=False))
    if not isinstance(inputs, Series) and not rows_have_parameters(model):  # else the model needs all rows
        data, chosen = inputs.reordered(data, chosen), np.arange(len(chosen))
    probabilities = np.empty((len(next(iter(draws.values()))), model.K, len(chosen)))
    for block, values in in_chunks(model, draws, data):
        probabilities[block] = np.swapaxes(values[:, chosen], 1, 2)
    return probabilities


def _start(p: np.ndarray) -> np.ndarray:
    """Return the best mean responsibilities, shape (K, rows), of climbs from several draws."""
    subset = p[:: max(len(p) // _START_DRAWS, 1)]
    starts = np.unique(np.linspace(0, len(subset) - 1, _STARTS).astype(int))
    permutations, _ = min((_climb(subset, subset[i]) for i in starts), key=lambda climb: climb[1])
    return _mean(subset, permutations)


def _climb(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, float]:
    """Improve permutations and mean responsibilities in turn, from the mean q; return permutations and cost."""
    permutations, cost = _nearest(p, q)
    while True:
        better, lower = _nearest(p, _mean(p, permutations))
        if not lower < cost:
            return permutations, cost
        permutations, cost = better, lower


def _nearest(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the permutation of each draw, shape (draws, K), that is nearest to ``q``, and their cost.

    The cost is a cross entropy: Stephens' divergence plus the entropy of the draws, which no permutation changes.
    """
    costs = _costs(p, q)
    permutations = np.array([scipy.optimize.linear_sum_assignment(cost)[1] for cost in costs])
    return permutations, float(np.take_along_axis(costs, permutations[..., None], axis=2).sum())


def _costs(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the cost of relabelling component j of a draw as k, shape (draws, k, j)."""
    T, K, rows = p.shape
    log_q = np.log((1 - _SMOOTH) * q + _SMOOTH / len(q))
    log_products = (p.reshape(T * K, rows) @ log_q.T).reshape(T, K, K).swapaxes(1, 2)
    return -(1 - _SMOOTH) * log_products - _SMOOTH / K * log_q.sum(axis=1)[:, None]


def _mean(p: np.ndarray, permutations: np.ndarray) -> np.ndarray:
    """Return the mean of the aligned responsibilities, shape (K, rows), without copying all of them."""
    T, K, rows = p.shape
    chosen = permutations.T[:, :, None] == np.arange(K)
    return chosen.reshape(K, T * K).astype(np.float64) @ p.reshape(T * K, rows) / T


def _stability(p: np.ndarray, permutations: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the likeness of each component to its mean, corrected for chance, shape (K,)."""
    K = p.shape[1]
    if K == 1:
        return np.ones(1)
    likeness = np.zeros((K, K))  # Jaccard's index of mean component k and aligned component l, summed over draws
    with np.errstate(divide="ignore", invalid="ignore"):
        for draw, permutation in zip(p, permutations, strict=True):
            aligned = draw[permutation]
            shared = np.minimum(q[:, None], aligned).sum(axis=2)
            likeness += shared / (q.sum(axis=1)[:, None] + aligned.sum(axis=1) - shared)
    observed, chance = np.diagonal(likeness) / len(p), likeness.mean(axis=1) / len(p)
    return np.where(1 - chance > 1e-9, (observed - chance) / np.maximum(1 - chance, 1e-9), 0.0 * observed)
