"""Dirichlet distributions, one of each row: evidence, draws, density and divergence, for priors weak and strong."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions.special import (
    deviance,
    gamma_divergence,
    log_beta_ratio,
    log_binomial,
    log_peak,
    log_rising,
)
from bayeszoo.foundation.blocks import blocks

_MOST = 1e5
"""Observations of a row up to which its terms, where one category is nearly all of them, keep ten digits."""
_CELLS = 2**22
"""Rows times categories times distributions that are computed at a time."""
LEAST_LOG = -1e300
"""Stands for the logarithm of 0 where it may be multiplied or added up."""


def log_dirichlet_ratio(alpha: npt.ArrayLike, counts: npt.ArrayLike) -> np.ndarray:
    """Log of B(alpha + counts) / B(alpha), (..., K): the evidence of a Dirichlet prior and ordered categorical data.

    "The first category or a later one; if later, the second or a later one; ...": the ratio is a product of Beta
    ratios, each at most 1, so that their logarithms do not cancel.
    """
    alpha, counts = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(counts, dtype=np.float64))
    later = (np.cumsum(values[..., :0:-1], axis=-1)[..., ::-1] for values in (alpha, counts))
    return np.sum(log_beta_ratio(alpha[..., :-1], next(later), counts[..., :-1], next(later)), axis=-1)


def log_ratio_where_seen(alpha: np.ndarray, counts: np.ndarray) -> float:
    """Return the sum of `log_dirichlet_ratio` over all rows of counts, by a term for each category that occurs.

    Much faster where few do, as words in topics. It is the difference of two sums, and rounded to their size.
    """
    seen = np.nonzero(counts)
    terms = log_rising(alpha[seen[-1]], counts[seen])
    return float(np.sum(terms) - np.sum(log_rising(alpha.sum(), counts.sum(axis=-1))))


def log_ratio_of_rows(alpha: np.ndarray, counts: Any) -> np.ndarray:
    """Return `log_dirichlet_ratio` of rows of counts (n, K) under each of several alpha (m, K), in shape (n, m).

    Counts are an array, or a sparse one. By the categories that occur, as `log_ratio_where_seen`, where most do not:
    each observation has a term, log(alpha / total), and each count above 1 of a category adds one, computed once.
    """
    rows, categories = counts.shape
    cells = _sparse(counts)
    size = np.asarray(cells.sum(axis=1), dtype=np.float64).ravel()
    if cells.nnz > rows * categories / 4 or size.max(initial=0.0) > _MOST:
        parts = (counts[at] for at in blocks(rows, alpha.size, _CELLS))
        whole = (part.toarray() if scipy.sparse.issparse(part) else part for part in parts)
        each = [log_dirichlet_ratio(alpha, part[:, None]) for part in whole]
        return np.concatenate([np.empty((0, len(alpha))), *each])
    total = alpha.sum(axis=1)
    lengths, row = np.unique(size, return_inverse=True)
    of_all = log_rising(total, lengths[:, None]) - lengths[:, None] * np.log(total)
    return np.asarray(cells @ np.log(alpha.T / total) + _of_repeats(cells, alpha) - of_all[row])


def _of_repeats(cells: Any, alpha: np.ndarray) -> np.ndarray:
    """Return for each row the sum of log_rising(alpha, n) - n log(alpha) over its counts n, which is 0 where n is 1."""
    repeated = np.flatnonzero(cells.data > 1)
    category, n, place = _distinct_cells(cells.indices[repeated], cells.data[repeated], cells.shape[1])
    each = alpha.T[category]
    terms = log_rising(each + 1, n[:, None] - 1) - (n[:, None] - 1) * np.log(each)
    ends = np.searchsorted(repeated, cells.indptr)
    occurs = scipy.sparse.csr_array((np.ones(len(place)), place, ends), shape=(cells.shape[0], len(n)))
    return np.asarray(occurs @ terms)


def _sparse(counts: Any) -> Any:
    """Return counts as a sparse array by rows; of an array, in half of SciPy's time."""
    if scipy.sparse.issparse(counts):
        return counts.tocsr()
    seen = np.flatnonzero(counts != 0)
    row, category = np.divmod(seen, counts.shape[1])
    ends = np.searchsorted(row, np.arange(len(counts) + 1))
    return scipy.sparse.csr_array((counts.ravel()[seen], category, ends), shape=counts.shape)


def _distinct_cells(category: np.ndarray, counts: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs of a category and its count, > 0, and the place of each cell among them."""
    most = int(counts.max(initial=0)) + 1
    kind: Any = np.int32 if size * most < 2**31 else np.int64
    codes = category.astype(kind) * kind(most) + counts.astype(kind)
    if size * most > 4 * len(codes) + 2**20:  # sorting takes less memory than a mark for each possible pair
        pairs, place = np.unique(codes, return_inverse=True)
    else:
        is_seen = np.zeros(size * most, dtype=bool)
        is_seen[codes] = True
        pairs, place = np.flatnonzero(is_seen), (np.cumsum(is_seen, dtype=kind) - kind(1))[codes]
    return pairs // most, pairs % most, place


def log_multinomial(counts: npt.ArrayLike) -> np.ndarray:
    """Log multinomial coefficient of the last axis of ``counts``: the number of orders that give the same counts."""
    counts = np.asarray(counts, dtype=np.float64)
    # the categories one after the other, so that no term is larger than the sum
    return np.sum(log_binomial(np.cumsum(counts, axis=-1), counts), axis=-1)


def draw_dirichlet(alpha: np.ndarray, size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw Dirichlet vectors along the last axis, an array of shape ``(*size, *alpha.shape)``.

    A Gamma(a) variable is a Gamma(a + 1) variable times U ** (1 / a); in logarithms that never underflows. The
    largest power is divided out before dividing by ``a``, for a power of 1e-310 is infinite.
    """
    shape = ((size,) if isinstance(size, int) else tuple(size)) + alpha.shape
    log_gamma = np.log(rng.standard_gamma(alpha + 1, size=shape))
    smallest = alpha.min(axis=-1, keepdims=True)
    powers = rng.standard_exponential(size=shape) * (smallest / alpha)
    with np.errstate(over="ignore"):
        log_gamma -= (powers - powers.min(axis=-1, keepdims=True)) / smallest
    return scipy.special.softmax(log_gamma, axis=-1)


def log_density(p: npt.ArrayLike, alpha: npt.ArrayLike) -> np.ndarray:
    """Log Dirichlet density of each row of ``p`` (..., K), every constant kept: shape (...).

    By Stirling's series around p = alpha / sum(alpha): the terms of the textbook's formula are as large as alpha, and
    would cancel. On the edge: -inf where an entry is 0 whose alpha is above 1, inf where it is below; NaN where there
    is no limit, as one entry is 0 with alpha < 1 and another with alpha > 1.
    """
    p, alpha = np.asarray(p, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    total = alpha.sum(axis=-1, keepdims=True)
    inner = ~(p <= 0)
    safe = np.where(inner, p, 1.0)
    each = log_peak(alpha) + np.log(alpha / safe) - deviance(alpha, total * safe)
    if not inner.all():
        with np.errstate(invalid="ignore"):
            edge = scipy.special.xlogy(alpha - 1, np.minimum(p, 0.0)) + np.log(alpha) + alpha
            each = np.where(inner, each, log_peak(alpha) + edge - alpha * np.log(alpha / total))
    with np.errstate(invalid="ignore"):
        density = np.sum(each, axis=-1) - (log_peak(total) + np.log(total))[..., 0]
    return np.where(np.any(p < 0, axis=-1), -np.inf, density)[()]


def log_constant(alpha: np.ndarray) -> np.ndarray:
    """Return the log of the factor of the powers p^(alpha - 1) of each row, (...)."""
    return np.asarray(scipy.special.gammaln(alpha.sum(axis=-1)) - scipy.special.gammaln(alpha).sum(axis=-1))


def covariance(alpha: np.ndarray) -> np.ndarray:
    """Return the covariance matrix of all entries; rows are independent: (diag(m) - m m') / (sum alpha + 1)."""
    rows = alpha.reshape(-1, alpha.shape[-1])
    means = rows / rows.sum(axis=1, keepdims=True)
    each = ((np.diag(m) - np.outer(m, m)) / (1 + own.sum()) for m, own in zip(means, rows, strict=True))
    return np.asarray(scipy.linalg.block_diag(*each))


def expected_log(alpha: np.ndarray) -> np.ndarray:
    """Return E[log p] under p ~ Dirichlet(alpha) along the last axis (Bishop, PRML, B.21)."""
    return np.asarray(scipy.special.digamma(alpha) - scipy.special.digamma(alpha.sum(axis=-1, keepdims=True)))


def divergence(alpha: npt.ArrayLike, prior: object) -> float:
    """Return KL(Dirichlet(alpha) || Dirichlet(prior)), summed over rows.

    Shares of Gamma variables are independent of their sum: it is the divergence of the variables less that of the sum.
    Of sums whose means are both 1 these are of its own size, and not of terms as large as alpha.
    """
    alpha, prior = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(prior, dtype=np.float64))
    total, before = (values.sum(axis=-1, keepdims=True) for values in (alpha, prior))
    shapes = (np.concatenate(pair, axis=-1) for pair in ((alpha, total), (prior, before)))
    each = gamma_divergence(next(shapes), total, next(shapes), before)
    return float(np.sum(each[..., :-1]) - np.sum(each[..., -1]))
