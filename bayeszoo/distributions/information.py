"""Entropy, Kullback-Leibler divergence and mutual information, in nats: at known probabilities, and their posterior.

Posterior moments under Dirichlet distributions are exact: Wolpert and Wolf 1995, Physical Review E 52; Hutter 2002,
NIPS 14. Cover and Thomas 2006, chapters 2 and 8; W4400, information theory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy

from bayeszoo.distributions.special import digamma_less_log, log_poisson, trigamma_excess
from bayeszoo.errors import InputError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.numerics.constants import LEAST_LOG

_MOST_COUNTS = 360
"""Most counts in the sum over a Poisson law: all counts up to rates of about 300, else steps of about sd / 8."""
_SDS, _FEW = 9.0, 40.0
"""A count lies within 9 sd + 40 of its mean, except with probability 1e-17."""
_EDGES = np.array([0.0, 0.7, 1.4, 2.2, 3.1, 4.2, 5.6, 8.5])
"""Edges of the panels of an integral over a normal mixture: distances from each mean in sd."""
_NODES, _CHECKED, _TOLERANCE = 10, 64, 1e-7
"""Nodes of each panel; points checked with twice as many nodes; largest difference in nats."""
_MOST_CLASSES = 100
"""Most classes, as all densities are computed where any class has mass: a second for a hundred draws."""
_LEAST, _FAR = 1e-300, 600.0


# At known probabilities


def entropy(p: np.ndarray) -> np.ndarray:
    """Return the entropy -sum p log p, shape (...), of probabilities (..., V)."""
    return np.asarray(scipy.special.entr(p).sum(axis=-1))


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return KL(p || q) = sum p log(p / q) of probabilities (..., V), infinite if q has a 0 where p has none."""
    return np.maximum(scipy.special.rel_entr(p, q).sum(axis=-1), 0.0)


def information(joint: np.ndarray) -> np.ndarray:
    """Return the mutual information, shape (...), of rows and columns of joint probabilities (..., K, L)."""
    independent = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True)
    return np.maximum(scipy.special.rel_entr(joint, independent).sum(axis=(-2, -1)), 0.0)


def information_of_levels(shares: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the mutual information of class and level, from class shares (..., K) and p(level | class) (..., K, L)."""
    return information(shares[..., None] * p)


def information_of_words(shares: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the mutual information (V, ...) of class and each word's indicator, from p(word | class) (..., K, V)."""

    def of_chunk(shares: np.ndarray, p: np.ndarray) -> np.ndarray:
        mixed = np.einsum("nk,nkv->nv", shares, p)[:, None]
        gain = scipy.special.kl_div(p, mixed) + scipy.special.kl_div(1 - p, 1 - mixed)
        return np.einsum("nk,nkv->nv", shares, gain)

    flat = shares.reshape(-1, shares.shape[-1]), p.reshape(-1, *p.shape[-2:])
    parts = [of_chunk(*(array[chunk] for array in flat)) for chunk in blocks(len(flat[0]), p.shape[-2] * p.shape[-1])]
    return np.moveaxis(np.maximum(np.concatenate(parts), 0.0).reshape(*p.shape[:-2], p.shape[-1]), -1, 0)


# Posterior moments under Dirichlet distributions


def mean_entropy(alpha: np.ndarray) -> np.ndarray:
    """Return the mean of the entropy under Dirichlet(alpha), (..., V): psi(A + 1) - sum a_i / A psi(a_i + 1)."""
    total = alpha.sum(axis=-1, keepdims=True)
    logs = np.log((alpha + 1) / (total + 1)) + digamma_less_log(alpha + 1) - digamma_less_log(total + 1)
    return np.maximum(-np.sum(alpha / total * logs, axis=-1), 0.0)


def sd_entropy(alpha: np.ndarray) -> np.ndarray:
    """Return the sd of the entropy under Dirichlet(alpha), (..., V).

    The variance is, weighted by the means m = a / A, that of psi(a_i + 1), plus the mean of (a_i + 1) psi'(a_i + 1)
    minus (A + 1) psi'(A + 1), all over A + 1: Wolpert and Wolf's formula without its cancelling terms.
    """
    total = alpha.sum(axis=-1, keepdims=True)
    mean, logs = alpha / total, scipy.special.digamma(alpha + 1)
    spread = np.sum(mean * np.square(logs - np.sum(mean * logs, axis=-1, keepdims=True)), axis=-1)
    mean_variance = np.sum(mean * trigamma_excess(alpha + 1), axis=-1) - trigamma_excess(total + 1)[..., 0]
    return np.sqrt(np.maximum(spread + mean_variance, 0.0) / (total[..., 0] + 1))


def mean_divergence(alpha: np.ndarray, other: np.ndarray) -> float:
    """Return the mean of KL(p || q) under independent p ~ Dirichlet(alpha) and q ~ Dirichlet(other), (V,)."""
    total, total_other = alpha.sum(), other.sum()
    ratio = np.log((alpha + 1) / (total + 1)) - np.log(other / total_other)
    corrections = digamma_less_log(alpha + 1) - digamma_less_log(other)
    corrections = corrections - digamma_less_log(total + 1) + digamma_less_log(total_other)
    return max(float(alpha @ (ratio + corrections) / total), 0.0)


def mean_information(alpha: np.ndarray) -> float:
    """Return the mean of the mutual information under joint probabilities ~ Dirichlet(alpha), (K, L); Hutter 2002.

    It is sum a_ij / A (psi(a_ij + 1) - psi(a_i + 1) - psi(a_j + 1)) + psi(A + 1), as marginal tables are Dirichlet too.
    """
    total, rows, columns = alpha.sum(), alpha.sum(axis=1, keepdims=True), alpha.sum(axis=0, keepdims=True)
    ratio = np.log((alpha + 1) / (rows + 1) * ((total + 1) / (columns + 1)))
    corrections = digamma_less_log(alpha + 1) - digamma_less_log(rows + 1) - digamma_less_log(columns + 1)
    return max(float(np.sum(alpha / total * (ratio + corrections)) + digamma_less_log(total + 1)), 0.0)


# Counts


def entropy_of_rates(rates: np.ndarray) -> np.ndarray:
    """Return the entropy of Poisson distributions (...)."""

    def of_chunk(each: np.ndarray) -> np.ndarray:
        _, log_mass, width = _counts(each)
        return -np.sum(width * np.exp(log_mass) * log_mass, axis=-1)

    return _block_by_block(of_chunk, _MOST_COUNTS, rates)


def information_of_rates(shares: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the mutual information of class, with shares (..., K), and a Poisson count with rates (..., K)."""
    K = _require_few_classes(rates.shape[-1])
    return _block_by_block(_information_of_rates, _MOST_COUNTS * K * K, shares, rates)


def _information_of_rates(shares: np.ndarray, rates: np.ndarray) -> np.ndarray:
    rates = np.maximum(rates, _LEAST)
    counts, log_mass, width = _counts(rates)  # (n, K, counts)
    rate, other_rate = rates[:, :, None], rates[:, None, :]
    gap = other_rate - rate
    is_near = np.abs(gap) < rate / 2
    slopes = np.where(is_near, np.log1p(np.where(is_near, gap / rate, 0.0)), np.log(other_rate) - np.log(rate))
    log_ratio = (
        counts[..., None] * slopes[:, :, None, :] - gap[:, :, None, :]
    )  # mass in the other class over mass in this class
    ratio = np.exp(np.minimum(log_ratio, _FAR))  # beyond it this class's mass is negligible
    mixed = np.log(np.maximum(np.einsum("nkmd,nd->nkm", ratio, shares), _LEAST))
    return -np.sum(shares * np.sum(width * np.exp(log_mass) * mixed, axis=-1), axis=-1)


def _counts(rates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts (..., M) that cover each Poisson law, their log masses, and their spacing.

    If there are too many counts, they are equally spaced by a small part of the sd: the error of the sum is
    exponentially small, as with the trapezoidal rule.
    """
    rates = np.maximum(rates, _LEAST)
    reach = _SDS * np.sqrt(rates)
    first = np.floor(np.maximum(rates - reach, 0.0))
    extent = rates + reach + _FEW - first
    number = min(_MOST_COUNTS, math.ceil(extent.max(initial=1.0)) + 1)
    width = np.ceil(extent / (number - 1))[..., None]
    counts = first[..., None] + width * np.arange(number)
    return counts, log_poisson(counts, np.log(rates)[..., None]), width


# Numbers


def entropy_of_normals(log_det: np.ndarray, columns: int) -> np.ndarray:
    """Return the differential entropy of normal laws of D columns from the log determinant of the covariance."""
    return np.asarray((columns * math.log(2 * math.pi * math.e) + log_det) / 2)


def divergence_of_normals(
    mean: np.ndarray, covariance: np.ndarray, other_mean: np.ndarray, other_covariance: np.ndarray
) -> np.ndarray:
    """Return KL between normal laws of D columns, with means (..., D) and covariances (..., D, D)."""
    gap = (mean - other_mean)[..., None]
    squares = np.sum(gap * np.linalg.solve(other_covariance, gap), axis=(-2, -1))
    ratio = np.linalg.solve(other_covariance, covariance)
    trace, log_det = np.trace(ratio, axis1=-2, axis2=-1), np.linalg.slogdet(ratio)[1]
    return np.maximum(trace - mean.shape[-1] - log_det + squares, 0.0) / 2


def information_of_columns(covariance: np.ndarray) -> np.ndarray:
    """Return -log det R / 2 for the correlation matrix R of normal columns: for two columns their mutual information.

    For more columns it is the total correlation: the sum of their entropies minus the entropy of a row.
    """
    sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    return np.maximum(-np.linalg.slogdet(covariance / (sd[..., :, None] * sd[..., None, :]))[1], 0.0) / 2


def information_of_normals(shares: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the mutual information, shape (...), of class, with shares (..., K), and a number that is normal by class.

    Gauss-Legendre quadrature on panels around the means of all classes. NaN everywhere if twice as many nodes give
    another value at any of the points checked.
    """
    K = _require_few_classes(means.shape[-1])
    width = _NODES * K * K * 2 * len(_EDGES)
    values = _block_by_block(_with_nodes(_NODES), width, shares, means, variances)
    checked = np.unique(np.linspace(0, values.size - 1, min(values.size, _CHECKED)).round().astype(int))
    flat = [np.broadcast_to(array, (*values.shape, K)).reshape(-1, K)[checked] for array in (shares, means, variances)]
    finer = _block_by_block(_with_nodes(2 * _NODES), 2 * width, *flat)
    is_accurate = np.all(np.abs(finer - values.ravel()[checked]) <= _TOLERANCE)
    return values if is_accurate else np.full(values.shape, np.nan)


def _with_nodes(nodes: int) -> Callable[..., np.ndarray]:
    """Return a function that integrates over a normal mixture with N nodes in each panel."""
    nodes_, weights = np.polynomial.legendre.leggauss(nodes)
    edges = np.concatenate([-_EDGES[:0:-1], _EDGES])

    def of_chunk(shares: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
        sd = np.sqrt(variances)
        ends = np.sort((means[..., None] + sd[..., None] * edges).reshape(len(means), -1), axis=1)
        half = np.diff(ends)[..., None] / 2
        x = (ends[:, :-1, None] + half + half * nodes_)[..., None]  # (n, parts, nodes, 1)
        with np.errstate(over="ignore"):
            log_density = np.square((x - means[:, None, None, :]) / sd[:, None, None, :])
        log_density = np.maximum(-log_density / 2 - np.log(sd)[:, None, None, :], LEAST_LOG)
        joint = np.exp(log_density) * shares[:, None, None, :]
        gain = np.einsum("npxk,npxk->npx", joint, log_density) + scipy.special.entr(joint.sum(axis=-1))
        return np.sum(gain * weights * half, axis=(1, 2)) / math.sqrt(2 * math.pi)

    return of_chunk


def _require_few_classes(classes: int) -> int:
    """Return the number of classes; refuse more than can be integrated in reasonable time."""
    if classes > _MOST_CLASSES:
        problem = f"mutual information with a count or a number takes at most {_MOST_CLASSES} classes, not {classes}"
        raise InputError(problem, "too_large", hint="leave out numeric and count features")
    return classes


def _block_by_block(function: Callable[..., np.ndarray], width: int, *arrays: np.ndarray) -> np.ndarray:
    """Apply a function to arrays (..., K) in blocks of their leading axes; to one array (...) entry by entry."""
    arrays = tuple(np.broadcast_arrays(*arrays))
    shape = arrays[0].shape if len(arrays) == 1 else arrays[0].shape[:-1]
    flat = [array.reshape(math.prod(shape), *array.shape[len(shape) :]) for array in arrays]
    parts = [function(*(array[chunk] for array in flat)) for chunk in blocks(len(flat[0]), width)]
    return np.maximum(np.concatenate(parts), 0.0).reshape(shape)
