"""Dirichlet distributions along the last axis: evidence, draws, density and divergence, for weak and strong priors."""

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
"""Most observations of a row for which its terms keep ten digits even if one category has nearly all."""
_CELLS = 2**22
"""Rows times categories times distributions in one block."""


def log_dirichlet_ratio(alpha: npt.ArrayLike, counts: npt.ArrayLike) -> np.ndarray:
    """Log of B(alpha + counts) / B(alpha), (..., K): the evidence of a Dirichlet prior and ordered categorical data.

    The ratio is a product of Beta ratios ("the first category or a later one; if later, the second or a later; ..."),
    each at most 1, so that their logarithms do not cancel.
    """
    alpha, counts = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(counts, dtype=np.float64))
    later = (np.cumsum(values[..., :0:-1], axis=-1)[..., ::-1] for values in (alpha, counts))
    return np.sum(log_beta_ratio(alpha[..., :-1], next(later), counts[..., :-1], next(later)), axis=-1)


def log_ratio_where_seen(alpha: np.ndarray, counts: np.ndarray) -> float:
    """Return the sum of `log_dirichlet_ratio` over all rows of counts, with terms only for categories that occur.

    Much faster if few occur, as words in topics. It is a difference of two sums, with rounding errors of their size.
    """
    occurring = np.nonzero(counts)
    terms = log_rising(alpha[occurring[-1]], counts[occurring])
    return float(np.sum(terms) - np.sum(log_rising(alpha.sum(), counts.sum(axis=-1))))


def log_ratio_of_rows(alpha: np.ndarray, counts: Any) -> np.ndarray:
    """Return `log_dirichlet_ratio`, shape (n, m), of rows of counts (n, K) under each alpha (m, K).

    Counts may be a sparse array. If few categories occur, terms are those of `log_ratio_where_seen`: each observation
    has a term log(alpha / total), and each count above 1 adds a term, computed once for each distinct count.
    """
    rows, categories = counts.shape
    cells = _sparse(counts)
    size = np.asarray(cells.sum(axis=1), dtype=np.float64).ravel()
    if cells.nnz > rows * categories / 4 or size.max(initial=0.0) > _MOST:
        parts = (counts[chunk] for chunk in blocks(rows, alpha.size, _CELLS))
        dense = (part.toarray() if scipy.sparse.issparse(part) else part for part in parts)
        ratios = [log_dirichlet_ratio(alpha, part[:, None]) for part in dense]
        return np.concatenate([np.empty((0, len(alpha))), *ratios])
    total = alpha.sum(axis=1)
    lengths, length_of_row = np.unique(size, return_inverse=True)
    of_lengths = log_rising(total, lengths[:, None]) - lengths[:, None] * np.log(total)
    return np.asarray(cells @ np.log(alpha.T / total) + _of_repeats(cells, alpha) - of_lengths[length_of_row])


def _of_repeats(cells: Any, alpha: np.ndarray) -> np.ndarray:
    """Return the sum of log_rising(alpha, n) - n log(alpha) over the counts n of each row; 0 for n = 1."""
    repeated = np.flatnonzero(cells.data > 1)
    category, n, place = _distinct_cells(cells.indices[repeated], cells.data[repeated], cells.shape[1])
    alpha_of_cell = alpha.T[category]
    terms = log_rising(alpha_of_cell + 1, n[:, None] - 1) - (n[:, None] - 1) * np.log(alpha_of_cell)
    ends = np.searchsorted(repeated, cells.indptr)
    occurs = scipy.sparse.csr_array((np.ones(len(place)), place, ends), shape=(cells.shape[0], len(n)))
    return np.asarray(occurs @ terms)


def _sparse(counts: Any) -> Any:
    """Return counts as a sparse array by rows; for arrays, in half of SciPy's time."""
    if scipy.sparse.issparse(counts):
        return counts.tocsr()
    nonzero = np.flatnonzero(counts != 0)
    row, category = np.divmod(nonzero, counts.shape[1])
    ends = np.searchsorted(row, np.arange(len(counts) + 1))
    return scipy.sparse.csr_array((counts.ravel()[nonzero], category, ends), shape=counts.shape)


def _distinct_cells(category: np.ndarray, counts: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs of category and positive count, and the index of each cell's pair."""
    base = int(counts.max(initial=0)) + 1
    kind: Any = np.int32 if size * base < 2**31 else np.int64
    codes = category.astype(kind) * kind(base) + counts.astype(kind)
    if size * base > 4 * len(codes) + 2**20:  # sorting takes less memory than a mark for each possible pair
        pairs, index = np.unique(codes, return_inverse=True)
    else:
        is_seen = np.zeros(size * base, dtype=bool)
        is_seen[codes] = True
        pairs, index = np.flatnonzero(is_seen), (np.cumsum(is_seen, dtype=kind) - kind(1))[codes]
    return pairs // base, pairs % base, index


def log_multinomial(counts: npt.ArrayLike) -> np.ndarray:
    """Log multinomial coefficient of the last axis of ``counts``: the number of orders with the same counts."""
    counts = np.asarray(counts, dtype=np.float64)
    # one category after the other, so that no term exceeds the sum
    return np.sum(log_binomial(np.cumsum(counts, axis=-1), counts), axis=-1)


def draw_dirichlet(alpha: np.ndarray, size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw Dirichlet vectors along the last axis, an array of shape ``(*size, *alpha.shape)``.

    A Gamma(a) variable is a Gamma(a + 1) variable times U ** (1 / a); logarithms of this never underflow. The
    largest power is divided out before dividing by ``a``, as a power of 1e-310 would be infinite.
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

    By Stirling's series around p = alpha / sum(alpha): terms of the textbook's formula are as large as alpha and
    would cancel. On the edge: -inf if an entry with alpha > 1 is 0, inf if one with alpha < 1 is 0; NaN if there
    is no limit, because entries of both kinds are 0.
    """
    p, alpha = np.asarray(p, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    total = alpha.sum(axis=-1, keepdims=True)
    inner = ~(p <= 0)
    safe = np.where(inner, p, 1.0)
    terms = log_peak(alpha) + np.log(alpha / safe) - deviance(alpha, total * safe)
    if not inner.all():
        with np.errstate(invalid="ignore"):
            edge = scipy.special.xlogy(alpha - 1, np.minimum(p, 0.0)) + np.log(alpha) + alpha
            terms = np.where(inner, terms, log_peak(alpha) + edge - alpha * np.log(alpha / total))
    with np.errstate(invalid="ignore"):
        density = np.sum(terms, axis=-1) - (log_peak(total) + np.log(total))[..., 0]
    return np.where(np.any(p < 0, axis=-1), -np.inf, density)[()]


def log_constant(alpha: np.ndarray) -> np.ndarray:
    """Return the log normalizing constant of each row, the factor of p^(alpha - 1), shape (...)."""
    return np.asarray(scipy.special.gammaln(alpha.sum(axis=-1)) - scipy.special.gammaln(alpha).sum(axis=-1))


def covariance(alpha: np.ndarray) -> np.ndarray:
    """Return the covariance matrix of all entries; rows are independent: (diag(m) - m m') / (sum alpha + 1)."""
    rows = alpha.reshape(-1, alpha.shape[-1])
    means = rows / rows.sum(axis=1, keepdims=True)
    blocks_ = (
        (np.diag(mean) - np.outer(mean, mean)) / (1 + alpha_of_row.sum())
        for mean, alpha_of_row in zip(means, rows, strict=True)
    )
    return np.asarray(scipy.linalg.block_diag(*blocks_))


def expected_log(alpha: np.ndarray) -> np.ndarray:
    """Return E[log p] under p ~ Dirichlet(alpha) along the last axis (Bishop, PRML, B.21)."""
    return np.asarray(scipy.special.digamma(alpha) - scipy.special.digamma(alpha.sum(axis=-1, keepdims=True)))


def divergence(alpha: npt.ArrayLike, prior: object) -> float:
    """Return KL(Dirichlet(alpha) || Dirichlet(prior)), summed over rows.

    Shares of Gamma variables are independent of their sum, so it is the divergence of the variables minus that of the
    sum. With sums of mean 1, these are of the size of the result, unlike the textbook's terms, which grow with alpha.
    """
    alpha, prior = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(prior, dtype=np.float64))
    total, prior_total = (values.sum(axis=-1, keepdims=True) for values in (alpha, prior))
    shapes = (np.concatenate(pair, axis=-1) for pair in ((alpha, total), (prior, prior_total)))
    divergences = gamma_divergence(next(shapes), total, next(shapes), prior_total)
    return float(np.sum(divergences[..., :-1]) - np.sum(divergences[..., -1]))
