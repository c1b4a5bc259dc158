"""Factors of draws, reordered and with signs changed, consistently and reversibly.

The posterior of q exchangeable factors is the same under each of their 2^q q! signed permutations. For each draw, the
signed permutation is chosen that brings its loadings nearest to the mean loadings in least squares; signed permutations
and mean are computed in turn: Procrustes' problem with signed permutations instead of rotations (Poworoznek et al.
2021; Papastamoulis and Ntzoufras 2022). The draws are not rotated: rotations change their prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.inference.labels.align import permute
from bayeszoo.model.capabilities import Symmetric

_STARTS = 10
_START_DRAWS = 400


@dataclass(frozen=True, eq=False)
class FactorAlignment:
    """The order of the factors of each draw, longest first, and the signs by which they are multiplied."""

    permutations: np.ndarray  # shape (chain, draw, q): entry k is the sampler's factor that becomes factor k
    signs: np.ndarray  # shape (chain, draw, q): 1 or -1, multiplies the factor that becomes factor k
    stability: np.ndarray
    """Squared length of each factor's mean loadings divided by their mean squared length, from 0 to 1: (q,)."""


def align(loadings: np.ndarray, signed: bool = True) -> FactorAlignment:
    """Find the order and the signs of the factors of loadings (chain, draw, D, q) that make the draws most alike.

    The largest mean loading of each factor is positive. Only ``signed`` factors may change sign. The search ends in a
    local optimum, the best of several.
    """
    shape, q = loadings.shape[:2], loadings.shape[-1]
    W = loadings.reshape(-1, *loadings.shape[2:])
    subset = W[:: max(len(W) // _START_DRAWS, 1)]
    starts = np.unique(np.linspace(0, len(subset) - 1, _STARTS).astype(int))
    best = max((_climb(subset, subset[i], signed) for i in starts), key=lambda climb: climb[1])[0]
    mean, _ = _climb(W, best, signed)
    mean = mean[:, np.argsort(-np.square(mean).sum(axis=0), kind="stable")]
    permutations, signs = nearest(W, mean * _upright(mean) if signed else mean, signed)
    aligned = np.take_along_axis(W, permutations[:, None], axis=2) * signs[:, None]
    shared = np.square(aligned.mean(axis=0)).sum(axis=0)
    lengths = np.maximum(np.square(aligned).sum(axis=1).mean(axis=0), TINY)
    return FactorAlignment(permutations.reshape(*shape, q), signs.reshape(*shape, q), shared / lengths)


def in_one_order(loadings: np.ndarray) -> FactorAlignment:
    """Order an approximation's factors (chain, draw, D, q) by mean squared length, the same in all draws, upright."""
    lengths = np.square(loadings).sum(axis=2).mean(axis=(0, 1))
    order = np.argsort(-lengths, kind="stable")
    signs = _upright(loadings.mean(axis=(0, 1))[:, order])
    shape = (*loadings.shape[:2], len(order))
    return FactorAlignment(np.broadcast_to(order, shape), np.broadcast_to(signs, shape), np.ones(len(order)))


def nearest(loadings: np.ndarray, reference: np.ndarray, signed: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return permutations and signs (draws, q) that bring loadings (draws, D, q) nearest to one matrix (D, q)."""
    inner = reference.T @ loadings
    gains = np.abs(inner) if signed else inner
    permutations = np.array([scipy.optimize.linear_sum_assignment(-products)[1] for products in gains])
    chosen = np.take_along_axis(inner, permutations[..., None], axis=2)[..., 0]
    return permutations, np.where(signed & (chosen < 0), -1.0, 1.0)


def turned(model: Symmetric, params: Params, permutations: np.ndarray, signs: np.ndarray) -> dict[str, np.ndarray]:
    """Reorder the factors of each draw by permutations, then multiply them by signs, both (*leading, q)."""
    moved = permute(model, params, permutations)
    return moved | {name: _turned(moved[name], signs) for name in model.signed}


def _turned(values: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Multiply arrays (*leading, ..., q) by signs (*leading, q)."""
    ones = (1,) * (np.ndim(values) - signs.ndim)
    return np.asarray(values * signs.reshape(*signs.shape[:-1], *ones, signs.shape[-1]))


def _climb(W: np.ndarray, mean: np.ndarray, signed: bool) -> tuple[np.ndarray, float]:
    """Improve the mean and the draws' orders and signs in turn; return the mean and its squared length."""
    length = -1.0
    while True:
        permutations, signs = nearest(W, mean, signed)
        better = np.mean(np.take_along_axis(W, permutations[:, None], axis=2) * signs[:, None], axis=0)
        higher = float(np.square(better).sum())  # the larger it is, the smaller the squared distances to the mean
        if not higher > length * (1 + 1e-12):
            return mean, length
        mean, length = better, higher


def _upright(mean: np.ndarray) -> np.ndarray:
    """Return the signs that make the largest entry of each column positive."""
    largest = mean[np.argmax(np.abs(mean), axis=0), np.arange(mean.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)
