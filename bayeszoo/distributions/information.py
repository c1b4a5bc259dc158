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

_MOST_COUNTS = 360
"""Counts at which a Poisson distribution is summed: all of them up to rates of some 300, else every sd / 8 or so."""
_SDS, _FEW = 9.0, 40.0
"""A count lies within 9 sd and 40 of its mean but for a mass of 1e-17."""
_EDGES = np.array([0.0, 0.7, 1.4, 2.2, 3.1, 4.2, 5.6, 8.5])
"""Distances from each mean, in sd, between which an integral over a mixture of normal distributions is taken."""
_NODES, _CHECKED, _TOLERANCE = 10, 64, 1e-7
"""Nodes of each such part; points that are integrated with twice as many; nats by which these may differ."""
_MOST_CLASSES = 100
"""Classes of which every density is computed wherever one of them has mass: a second for a hundred draws."""
_LEAST, _LEAST_LOG, _FAR = 1e-300, -1e300, 600.0


# At known probabilities


def entropy(p: np.ndarray) -> np.ndarray:
    """Return the entropy -sum p log p of probabilities (..., V), (...)."""
    return np.asarray(scipy.special.entr(p).sum(axis=-1))


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return KL(p || q) = sum p log(p / q) of probabilities (..., V), infinite where only q has a 0."""
    return np.maximum(scipy.special.rel_entr(p, q).sum(axis=-1), 0.0)


def information(joint: np.ndarray) -> np.ndarray:
    """Return the mutual information of rows and columns of joint probabilities (..., K, L), (...)."""
    independent = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True)
    return np.maximum(scipy.special.rel_entr(joint, independent).sum(axis=(-2, -1)), 0.0)


def information_of_levels(shares: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the mutual information of a class of shares (..., K) and a level of probabilities (..., K, L) in each."""
    return information(shares[..., None] * p)


def information_of_words(shares: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the mutual information (V, ...) of a class and whether a draw from its p (..., K, V) is each category."""

    def some(shares: np.ndarray, p: np.ndarray) -> np.ndarray:
        mixed = np.einsum("nk,nkv->nv", shares, p)[:, None]
        gain = scipy.special.kl_div(p, mixed) + scipy.special.kl_div(1 - p, 1 - mixed)
        return np.einsum("nk,nkv->nv", shares, gain)

    flat = shares.reshape(-1, shares.shape[-1]), p.reshape(-1, *p.shape[-2:])
    parts = [some(*(each[at] for each in flat)) for at in blocks(len(flat[0]), p.shape[-2] * p.shape[-1])]
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
    less (A + 1) psi'(A + 1), all over A + 1: Wolpert and Wolf's formula without its cancelling terms.
    """
    total = alpha.sum(axis=-1, keepdims=True)
    mean, logs = alpha / total, scipy.special.digamma(alpha + 1)
    spread = np.sum(mean * np.square(logs - np.sum(mean * logs, axis=-1, keepdims=True)), axis=-1)
    own = np.sum(mean * trigamma_excess(alpha + 1), axis=-1) - trigamma_excess(total + 1)[..., 0]
    return np.sqrt(np.maximum(spread + own, 0.0) / (total[..., 0] + 1))


def mean_divergence(alpha: np.ndarray, other: np.ndarray) -> float:
    """Return the mean of KL(p || q) under independent p ~ Dirichlet(alpha) and q ~ Dirichlet(other), (V,)."""
    total, total_other = alpha.sum(), other.sum()
    ratio = np.log((alpha + 1) / (total + 1)) - np.log(other / total_other)
    rest = digamma_less_log(alpha + 1) - digamma_less_log(other)
    rest = rest - digamma_less_log(total + 1) + digamma_less_log(total_other)
    return max(float(alpha @ (ratio + rest) / total), 0.0)


def mean_information(alpha: np.ndarray) -> float:
    """Return the mean of the mutual information under joint probabilities ~ Dirichlet(alpha), (K, L); Hutter 2002.

    It is sum a_ij / A (psi(a_ij + 1) - psi(a_i + 1) - psi(a_j + 1)) + psi(A + 1), as marginal tables are Dirichlet too.
    """
    total, rows, columns = alpha.sum(), alpha.sum(axis=1, keepdims=True), alpha.sum(axis=0, keepdims=True)
    ratio = np.log((alpha + 1) / (rows + 1) * ((total + 1) / (columns + 1)))
    rest = digamma_less_log(alpha + 1) - digamma_less_log(rows + 1) - digamma_less_log(columns + 1)
    return max(float(np.sum(alpha / total * (ratio + rest)) + digamma_less_log(total + 1)), 0.0)


# Counts


def entropy_of_rates(rates: np.ndarray) -> np.ndarray:
    """Return the entropy of Poisson distributions (...)."""

    def some(each: np.ndarray) -> np.ndarray:
        _, log_mass, width = _counts(each)
        return -np.sum(width * np.exp(log_mass) * log_mass, axis=-1)

    return _block_by_block(some, _MOST_COUNTS, rates)


def information_of_rates(shares: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the mutual information of a class of shares (..., K) and a count, Poisson of rates (..., K) in each."""
    K = _few(rates.shape[-1])
    return _block_by_block(_information_of_rates, _MOST_COUNTS * K * K, shares, rates)


def _information_of_rates(shares: np.ndarray, rates: np.ndarray) -> np.ndarray:
    rates = np.maximum(rates, _LEAST)
    counts, log_mass, width = _counts(rates)  # (n, K, counts)
    own, others = rates[:, :, None], rates[:, None, :]
    gap = others - own
    near = np.abs(gap) < own / 2
    slopes = np.where(near, np.log1p(np.where(near, gap / own, 0.0)), np.log(others) - np.log(own))
    log_ratio = counts[..., None] * slopes[:, :, None, :] - gap[:, :, None, :]  # of the mass in each class to the own
    ratio = np.exp(np.minimum(log_ratio, _FAR))  # beyond it the own mass is nothing
    mixed = np.log(np.maximum(np.einsum("nkmd,nd->nkm", ratio, shares), _LEAST))
    return -np.sum(shares * np.sum(width * np.exp(log_mass) * mixed, axis=-1), axis=-1)


def _counts(rates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts (..., M) with all the mass of each Poisson distribution, its log, and how many each stands for.

    Where there are too many it is some of them, at equal distances of a small part of the sd: the error of the sum is
    exponentially small, as that of the trapezoidal rule.
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
    """Return the differential entropy of normal distributions of D columns by the log determinant of the covariance."""
    return np.asarray((columns * math.log(2 * math.pi * math.e) + log_det) / 2)


def divergence_of_normals(
    mean: np.ndarray, covariance: np.ndarray, other_mean: np.ndarray, other_covariance: np.ndarray
) -> np.ndarray:
    """Return KL of normal distributions of D columns, means (..., D) and covariances (..., D, D)."""
    gap = (mean - other_mean)[..., None]
    squares = np.sum(gap * np.linalg.solve(other_covariance, gap), axis=(-2, -1))
    ratio = np.linalg.solve(other_covariance, covariance)
    trace, log_det = np.trace(ratio, axis1=-2, axis2=-1), np.linalg.slogdet(ratio)[1]
    return np.maximum(trace - mean.shape[-1] - log_det + squares, 0.0) / 2


def information_of_columns(covariance: np.ndarray) -> np.ndarray:
    """Return -log det R / 2 of the correlation matrix of normal columns (..., D, D): of two their mutual information.

    Of more it is their total correlation: by how much the sum of their entropies is above that of a row.
    """
    sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    return np.maximum(-np.linalg.slogdet(covariance / (sd[..., :, None] * sd[..., None, :]))[1], 0.0) / 2


def information_of_normals(shares: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the mutual information of a class of shares (..., K) and a number, normal in each, (...).

    By Gauss-Legendre quadrature between places where some density is a few sd from its mean. NaN throughout where twice
    as many nodes give another number at some of the points.
    """
    K = _few(means.shape[-1])
    width = _NODES * K * K * 2 * len(_EDGES)
    values = _block_by_block(_with_nodes(_NODES), width, shares, means, variances)
    some = np.unique(np.linspace(0, values.size - 1, min(values.size, _CHECKED)).round().astype(int))
    flat = [np.broadcast_to(each, (*values.shape, K)).reshape(-1, K)[some] for each in (shares, means, variances)]
    finer = _block_by_block(_with_nodes(2 * _NODES), 2 * width, *flat)
    is_accurate = np.all(np.abs(finer - values.ravel()[some]) <= _TOLERANCE)
    return values if is_accurate else np.full(values.shape, np.nan)


def _with_nodes(nodes: int) -> Callable[..., np.ndarray]:
    """Return the integral over a mixture of normal distributions by N nodes in each part."""
    at, weights = np.polynomial.legendre.leggauss(nodes)
    edges = np.concatenate([-_EDGES[:0:-1], _EDGES])

    def some(shares: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
        sd = np.sqrt(variances)
        ends = np.sort((means[..., None] + sd[..., None] * edges).reshape(len(means), -1), axis=1)
        half = np.diff(ends)[..., None] / 2
        x = (ends[:, :-1, None] + half + half * at)[..., None]  # (n, parts, nodes, 1)
        with np.errstate(over="ignore"):
            log_density = np.square((x - means[:, None, None, :]) / sd[:, None, None, :])
        log_density = np.maximum(-log_density / 2 - np.log(sd)[:, None, None, :], _LEAST_LOG)
        joint = np.exp(log_density) * shares[:, None, None, :]
        told = np.einsum("npxk,npxk->npx", joint, log_density) + scipy.special.entr(joint.sum(axis=-1))
        return np.sum(told * weights * half, axis=(1, 2)) / math.sqrt(2 * math.pi)

    return some


def _few(classes: int) -> int:
    """Refuse classes whose mixture would take too long to integrate over."""
    if classes > _MOST_CLASSES:
        problem = f"{classes} classes are too many for the mutual information with a count or a number"
        raise InputError(problem, "too_large", hint=f"at most {_MOST_CLASSES}; leave these features out")
    return classes


def _block_by_block(function: Callable[..., np.ndarray], width: int, *arrays: np.ndarray) -> np.ndarray:
    """Return a function of arrays (..., K), some of the leading axes at a time; of one array (...) entry by entry."""
    arrays = tuple(np.broadcast_arrays(*arrays))
    shape = arrays[0].shape if len(arrays) == 1 else arrays[0].shape[:-1]
    flat = [each.reshape(math.prod(shape), *each.shape[len(shape) :]) for each in arrays]
    parts = [function(*(each[some] for each in flat)) for some in blocks(len(flat[0]), width)]
    return np.maximum(np.concatenate(parts), 0.0).reshape(shape)
