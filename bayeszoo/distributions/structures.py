"""Structures of covariance, full matrices among them, and their inverse-Wishart distributions.

Each is an inverse-Wishart distribution over blocks. A full matrix is one block of size D. Variances by column are D
blocks of size 1, where InvWishart(nu, psi) is InvGamma(nu / 2, psi / 2). A spherical variance is one block of size 1
that D independent columns share, so that each row counts D times.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.covariance import CovarianceMarginals
from bayeszoo.distributions.special import deviance, log_peak, log_rising
from bayeszoo.errors import NumericalError


class Structure:
    """How the covariance of D columns is written: here as the variances (D,) of independent columns.

    Leading axes of all arrays broadcast. A factor is a triangular matrix, or are standard deviations. There are
    ``blocks`` of size ``block``, each shared by ``repeat`` columns: the covariance matrix has determinant
    ``det(blocks) ** repeat``.
    """

    def __init__(self, columns: int) -> None:
        self.columns, self.block, self.blocks, self.repeat = columns, 1, columns, 1
        self.shape: tuple[int, ...] = (columns,)

    def _entries(self, covariance: np.ndarray) -> np.ndarray:
        """Return the variances with an axis of their own."""
        return covariance

    def reduced(self, matrix: np.ndarray) -> np.ndarray:
        """Return what stands for matrices (..., D, D): themselves, their diagonals, or the means of these."""
        return np.diagonal(matrix, axis1=-2, axis2=-1)

    def matrix(self, covariance: np.ndarray) -> np.ndarray:
        """Return the covariance matrices (..., D, D)."""
        return self.variances(covariance)[..., None] * np.eye(self.columns)

    def variances(self, covariance: np.ndarray) -> np.ndarray:
        """Return the variance of each column (..., D)."""
        return covariance

    def outer(self, shift: np.ndarray) -> np.ndarray:
        """Return the scatter of one vector (..., D)."""
        return shift**2

    def scatter(self, weights: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return the sum of the scatters of vectors (n, D), with weights (n,)."""
        return np.asarray(weights @ self.outer(shifts))

    def factor(self, covariance: np.ndarray) -> np.ndarray:
        """Return the factor of a covariance; `NumericalError` where it is not positive definite."""
        if not np.all(covariance > 0):
            raise NumericalError("a variance is not positive")
        return np.sqrt(self._entries(covariance))

    def log_det(self, factor: np.ndarray) -> np.ndarray:
        """Return the log determinant of the blocks together."""
        return 2 * np.sum(np.log(factor), axis=-1)

    def scaled(self, factor: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return the squared lengths (..., n) of vectors (..., n, D) in units of the covariance."""
        return np.sum((shifts / factor[..., None, :]) ** 2, axis=-1)

    def coloured(self, factor: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return standard normal vectors (..., D) with the covariance put on them."""
        return factor * z

    def ratio(self, factor: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return psi over the covariance: squares of the diagonal of its factor, and the sum of the other squares."""
        return self._entries(psi) / factor**2, 0.0

    def relative(self, factor: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Return the eigenvalues of a covariance in units of the one whose factor is given."""
        return self.ratio(factor, covariance)[0]

    def draw(self, nu: np.ndarray, psi: np.ndarray, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw covariances (*size, *shape of nu, *shape)."""
        with np.errstate(over="ignore", divide="ignore"):
            return psi / 2 / rng.standard_gamma(along(nu, psi) / 2, size + np.shape(psi))

    def marginals(self, nu: np.ndarray, psi: np.ndarray) -> Any:
        """Return the distribution of each entry by itself."""
        return frozen.invgamma(along(nu, psi) / 2, scale=psi / 2)

    def log_inverse_wishart(self, factor: np.ndarray, nu: Any, psi: np.ndarray) -> np.ndarray:
        """Log density at the covariance with this factor, with every constant.

        Terms of size nu log nu of the textbook's formula cancel inside `deviance` and `log_peak`.
        """
        half, d = np.asarray(nu, dtype=np.float64) / 2, self.block
        squares, rest = self.ratio(factor, psi)
        gammas = d * (log_peak(half) + np.log(half)) + sum(log_rising(half - j / 2, j / 2) for j in range(d))
        constant = gammas - d * (d - 1) / 4 * math.log(math.pi)
        shape = np.sum(deviance(half[..., None], squares / 2), axis=-1) + rest / 2
        return np.asarray(self.blocks * constant - shape - (d + 1) / 2 * self.log_det(factor))

    def expected_log_det_gap(self, nu: np.ndarray) -> np.ndarray:
        """Return E[log det(blocks)] less the log determinant of psi / nu, the inverse of the mean precision."""
        return np.asarray(self.blocks * (self.block * np.log(nu / 2) - self.digamma(nu)))

    def digamma(self, nu: np.ndarray) -> np.ndarray:
        """Return the derivative of log Gamma_d at nu / 2."""
        return np.sum([scipy.special.digamma((nu - j) / 2) for j in range(self.block)], axis=0)

    def divergence(self, nu: np.ndarray, psi: np.ndarray, prior_nu: Any, prior_psi: np.ndarray) -> np.ndarray:
        """Return KL(InvWishart(nu, psi) || InvWishart(prior_nu, prior_psi)) of all blocks together."""
        factor, d = self.factor(psi), self.block
        squares, rest = self.ratio(factor, prior_psi)
        log_dets = self.log_det(factor) - self.log_det(self.factor(prior_psi))
        more, less = np.maximum(nu, prior_nu) / 2, np.minimum(nu, prior_nu) / 2
        gammas = np.sign(nu - prior_nu) * log_multigamma_ratio(more, less, d)
        slopes = (nu - prior_nu) / 2 * self.digamma(nu)
        traces = nu / 2 * (np.sum(squares - 1, axis=-1) + rest)
        return np.asarray(prior_nu / 2 * log_dets + self.blocks * (slopes - gammas) + traces)

    def log_ratio(self, nu: float, psi: np.ndarray, n: Any, growth: np.ndarray) -> np.ndarray:
        """Log ratio of the normalizing constants after n rows that add ``growth``, and before.

        Powers of 2, which cancel those of Gaussian rows, are left out. Little growth is not lost beside a large psi:
        log det(psi + growth) - log det(psi) is a sum over the eigenvalues of growth in units of psi.
        """
        factor, more = self.factor(psi), self.repeat * n
        gammas = self.blocks * log_multigamma_ratio((nu + more) / 2, nu / 2, self.block)
        relative = np.maximum(self.relative(factor, growth), 0.0)  # rounding takes some below
        log_growth = np.sum(np.log1p(relative), axis=-1)
        return np.asarray(gammas - (more * self.log_det(factor) + (nu + more) * log_growth) / 2)


class Scalar(Structure):
    """One variance for all columns, of shape ()."""

    def __init__(self, columns: int) -> None:
        super().__init__(columns)
        self.blocks, self.repeat, self.shape = 1, columns, ()

    def _entries(self, covariance: np.ndarray) -> np.ndarray:
        return np.asarray(covariance)[..., None]

    def reduced(self, matrix: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.asarray(np.mean(super().reduced(matrix), axis=-1))

    def variances(self, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.repeat(self._entries(covariance), self.columns, axis=-1)

    def outer(self, shift: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.sum(shift**2, axis=-1)


class Matrices(Structure):
    """Covariance matrices (D, D)."""

    def __init__(self, columns: int) -> None:
        super().__init__(columns)
        self.block, self.blocks, self.shape = columns, 1, (columns, columns)

    def reduced(self, matrix: np.ndarray) -> np.ndarray:  # noqa: D102
        return matrix

    def matrix(self, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return covariance

    def variances(self, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.diagonal(covariance, axis1=-2, axis2=-1)

    def outer(self, shift: np.ndarray) -> np.ndarray:  # noqa: D102
        return shift[..., :, None] * shift[..., None, :]

    def scatter(self, weights: np.ndarray, shifts: np.ndarray) -> np.ndarray:  # noqa: D102
        half = np.sqrt(weights)[:, None] * shifts
        return half.T @ half

    def factor(self, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        try:
            return np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            raise NumericalError("a covariance is not positive definite") from None

    def log_det(self, factor: np.ndarray) -> np.ndarray:  # noqa: D102
        return super().log_det(self.variances(factor))

    def scaled(self, factor: np.ndarray, shifts: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.sum(solve_lower(factor, shifts.mT) ** 2, axis=-2)

    def coloured(self, factor: np.ndarray, z: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.einsum("...ij,...j->...i", factor, z)

    def ratio(self, factor: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, Any]:  # noqa: D102
        B = solve_lower(factor, self.factor(psi))
        return self.variances(B) ** 2, np.sum(np.tril(B, -1) ** 2, axis=(-2, -1))

    def relative(self, factor: np.ndarray, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        both = solve_lower(factor, solve_lower(factor, covariance).mT)
        return np.linalg.eigvalsh((both + both.mT) / 2)

    def draw_root(self, nu: Any, psi: np.ndarray, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw matrices C' (*size, *shape of nu, D, D) of which C C' is inverse-Wishart.

        By Bartlett's decomposition: A A' of a lower triangle A is Wishart, and C' = inv(A) L', where psi = L L'.
        """
        d, shape = self.columns, size + np.shape(nu)
        bartlett = np.tril(rng.standard_normal((*shape, d, d)), -1)
        gammas = rng.standard_gamma((np.asarray(nu)[..., None] - np.arange(d)) / 2, (*shape, d))
        bartlett[..., range(d), range(d)] = np.sqrt(2 * gammas)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return solve_lower(bartlett, np.broadcast_to(self.factor(psi).mT, bartlett.shape))

    def draw(  # noqa: D102
        self, nu: np.ndarray, psi: np.ndarray, size: tuple[int, ...], rng: np.random.Generator
    ) -> np.ndarray:
        root = self.draw_root(nu, psi, size, rng)
        with np.errstate(over="ignore", invalid="ignore"):
            drawn = root.mT @ root
        return (drawn + drawn.mT) / 2

    def marginals(self, nu: np.ndarray, psi: np.ndarray) -> Any:  # noqa: D102
        return CovarianceMarginals(nu, psi)


def along(values: Any, like: np.ndarray) -> np.ndarray:
    """Give an array trailing axes of length 1, so that it broadcasts with ``like``, with whose axes its own begin."""
    return np.reshape(values, np.shape(values) + (1,) * (np.ndim(like) - np.ndim(values)))


def log_multigamma_ratio(half_nu_after: Any, half_nu_before: Any, d: int) -> np.ndarray:
    """Log of Gamma_d(after) / Gamma_d(before), multivariate Gamma functions, for after >= before > (d - 1) / 2."""
    after, before = np.asarray(half_nu_after, dtype=np.float64), np.asarray(half_nu_before, dtype=np.float64)
    return np.sum([log_rising(before - j / 2, after - before) for j in range(d)], axis=0)


def solve_lower(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve factor @ x = right for lower triangular factors (..., D, D) and right sides (..., D, n)."""
    x = np.empty(np.broadcast_shapes(factor.shape[:-2], right.shape[:-2]) + right.shape[-2:])
    for i in range(right.shape[-2]):
        known = factor[..., i : i + 1, :i] @ x[..., :i, :]
        x[..., i, :] = (right[..., i, :] - known[..., 0, :]) / factor[..., i, i, None]
    return x
