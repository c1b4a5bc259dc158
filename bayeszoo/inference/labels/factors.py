"""Factors of draws put in one order and given one sign each, reversibly.

A posterior of factors whose labels mean nothing is the same under each of the 2^q q! permutations with signs of its q
factors. Of each draw the one is taken that brings its loadings nearest to their mean in least squares, which is found
in turn with the mean: Procrustes' problem with permutations and signs in place of rotations (Poworoznek et al. 2021;
Papastamoulis and Ntzoufras 2022). The draws are not rotated: their prior is not the same under rotations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from bayeszoo.foundation.named import Params
from bayeszoo.inference.labels.align import permute
from bayeszoo.model.capabilities import Symmetric

_STARTS = 10
_START_DRAWS = 400


@dataclass(frozen=True, eq=False)
class FactorAlignment:
    """How the factors of each draw are put in one order, longest first, and which of them change their signs."""

    permutations: np.ndarray  # shape (chain, draw, q): entry k is the draw's own factor that becomes factor k
    signs: np.ndarray  # shape (chain, draw, q): what it is multiplied by then, 1 or -1
    stability: np.ndarray
    """Squared length of the mean loadings of each factor over their mean squared length, from 0 to 1."""


def align(loadings: np.ndarray, signed: bool = True) -> FactorAlignment:
    """Find the order and the signs of the factors of loadings (chain, draw, D, q) that make the draws most alike.

    The mean's largest entry is positive. Unless they are ``signed`` factors keep
    their signs. The search ends in a local optimum, the best of those from several draws.
    """
    shape, q = loadings.shape[:2], loadings.shape[-1]
    W = loadings.reshape(-1, *loadings.shape[2:])
    few = W[:: max(len(W) // _START_DRAWS, 1)]
    starts = np.unique(np.linspace(0, len(few) - 1, _STARTS).astype(int))
    best = max((_climb(few, few[i], signed) for i in starts), key=lambda climb: climb[1])[0]
    mean, _ = _climb(W, best, signed)
    mean = mean[:, np.argsort(-np.square(mean).sum(axis=0), kind="stable")]
    permutations, signs = nearest(W, mean * _upright(mean) if signed else mean, signed)
    aligned = np.take_along_axis(W, permutations[:, None], axis=2) * signs[:, None]
    shared = np.square(aligned.mean(axis=0)).sum(axis=0)
    lengths = np.maximum(np.square(aligned).sum(axis=1).mean(axis=0), np.finfo(np.float64).tiny)
    return FactorAlignment(permutations.reshape(*shape, q), signs.reshape(*shape, q), shared / lengths)


def in_one_order(loadings: np.ndarray) -> FactorAlignment:
    """Order an approximation's factors (chain, draw, D, q), alike in all draws, by mean squared length, upright."""
    lengths = np.square(loadings).sum(axis=2).mean(axis=(0, 1))
    order = np.argsort(-lengths, kind="stable")
    signs = _upright(loadings.mean(axis=(0, 1))[:, order])
    shape = (*loadings.shape[:2], len(order))
    return FactorAlignment(np.broadcast_to(order, shape), np.broadcast_to(signs, shape), np.ones(len(order)))


def nearest(loadings: np.ndarray, reference: np.ndarray, signed: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return permutations and signs, each (draws, q), that bring loadings (draws, D, q) nearest to one matrix."""
    inner = reference.T @ loadings
    gains = np.abs(inner) if signed else inner
    permutations = np.array([scipy.optimize.linear_sum_assignment(-products)[1] for products in gains])
    chosen = np.take_along_axis(inner, permutations[..., None], axis=2)[..., 0]
    return permutations, np.where(signed & (chosen < 0), -1.0, 1.0)


def turned(model: Symmetric, params: Params, permutations: np.ndarray, signs: np.ndarray) -> dict[str, np.ndarray]:
    """Put the factors of each draw in another order, then give them other signs, both (*leading, q)."""
    moved = permute(model, params, permutations)
    return moved | {name: _turned(moved[name], signs) for name in model.signed}


def _turned(values: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Give signs (*leading, q) to arrays (*leading, ..., q)."""
    between = (1,) * (np.ndim(values) - signs.ndim)
    return np.asarray(values * signs.reshape(*signs.shape[:-1], *between, signs.shape[-1]))


def _climb(W: np.ndarray, mean: np.ndarray, signed: bool) -> tuple[np.ndarray, float]:
    """Improve the mean and the draws' orders and signs in turn; return the mean and its squared length."""
    length = -1.0
    while True:
        permutations, signs = nearest(W, mean, signed)
        better = np.mean(np.take_along_axis(W, permutations[:, None], axis=2) * signs[:, None], axis=0)
        higher = float(np.square(better).sum())  # the larger this, the smaller the squares about the mean
        if not higher > length * (1 + 1e-12):
            return mean, length
        mean, length = better, higher


def _upright(mean: np.ndarray) -> np.ndarray:
    """Return the signs that make the largest entry of each column positive."""
    largest = mean[np.argmax(np.abs(mean), axis=0), np.arange(mean.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)
