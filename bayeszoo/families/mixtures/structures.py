"""Structures of covariance: full matrices, one variance for each column, and one variance for all columns.

Each is an inverse-Wishart distribution over blocks. A full matrix is one block of size D. Variances by column are D
blocks of size 1, where InvWishart(nu, psi) is InvGamma(nu / 2, psi / 2). A spherical variance is one block of size 1
that D independent columns share, so that each row counts D times.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.covariance import CovarianceMarginals
from bayeszoo.distributions.special import deviance, log_peak, log_rising
from bayeszoo.distributions.wishart import log_multigamma_ratio, solve_lower
from bayeszoo.errors import NumericalError


class Structure(ABC):
    """How the covariance of D columns is written, and its inverse-Wishart distribution.

    Leading axes of all arrays broadcast. A factor is a triangular matrix, or are standard deviations.

    Attributes
    ----------
    columns : int
        D.
    block, blocks : int
        Size of a block, and how many there are.
    repeat : int
        How many columns share a block's entry: the covariance matrix has determinant ``det(blocks) ** repeat``.
    shape : tuple of int
        Of a covariance.
    """

    block: int
    blocks: int
    repeat: int
    shape: tuple[int, ...]

    def __init__(self, columns: int) -> None:
        self.columns = columns

    @abstractmethod
    def reduced(self, matrix: np.ndarray) -> np.ndarray:
        """Return what stands for matrices (..., D, D): themselves, their diagonals, or the means of these."""

    @abstractmethod
    def matrix(self, covariance: np.ndarray) -> np.ndarray:
        """Return the covariance matrices (..., D, D)."""

    @abstractmethod
    def variances(self, covariance: np.ndarray) -> np.ndarray:
        """Return the variance of each column (..., D)."""

    @abstractmethod
    def outer(self, shift: np.ndarray) -> np.ndarray:
        """Return the scatter of one vector (..., D)."""

    @abstractmethod
    def scatter(self, weights: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return the sum of the scatters of vectors (n, D), with weights (n,)."""

    @abstractmethod
    def factor(self, covariance: np.ndarray) -> np.ndarray:
        """Return the factor of a covariance; `NumericalError` where it is not positive definite."""

    @abstractmethod
    def log_det(self, factor: np.ndarray) -> np.ndarray:
        """Return the log determinant of the blocks together."""

    @abstractmethod
    def scaled(self, factor: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return the squared lengths (..., n) of vectors (..., n, D) in units of the covariance."""

    @abstractmethod
    def coloured(self, factor: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return standard normal vectors (..., D) with the covariance put on them."""

    @abstractmethod
    def ratio(self, factor: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return psi over the covariance: squares of the diagonal of its factor, and the sum of the other squares."""

    @abstractmethod
    def smallest(self, factor: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Return the smallest eigenvalue of a covariance in units of the one whose factor is given."""

    @abstractmethod
    def log_growth(self, factor: np.ndarray, growth: np.ndarray) -> np.ndarray:
        """Return log det(psi + growth) - log det(psi), given the factor of psi; little growth is not lost."""

    @abstractmethod
    def draw(self, nu: np.ndarray, psi: np.ndarray, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw covariances (*size, *shape of nu, *shape)."""

    @abstractmethod
    def marginals(self, nu: np.ndarray, psi: np.ndarray) -> Any:
        """Return the distribution of each entry by itself."""

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

    def log_ratio(self, nu: float, psi: np.ndarray, n: np.ndarray, growth: np.ndarray) -> np.ndarray:
        """Log ratio of the normalizing constants after n rows that add ``growth``, and before, without powers of 2."""
        factor, more = self.factor(psi), self.repeat * n
        gammas = self.blocks * log_multigamma_ratio((nu + more) / 2, nu / 2, self.block)
        return np.asarray(gammas - (more * self.log_det(factor) + (nu + more) * self.log_growth(factor, growth)) / 2)


class Matrices(Structure):
    """Covariance matrices (D, D)."""

    def __init__(self, columns: int) -> None:
        super().__init__(columns)
        self.block, self.blocks, self.repeat, self.shape = columns, 1, 1, (columns, columns)

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
        return 2 * np.sum(np.log(self.variances(factor)), axis=-1)

    def scaled(self, factor: np.ndarray, shifts: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.sum(solve_lower(factor, shifts.mT) ** 2, axis=-2)

    def coloured(self, factor: np.ndarray, z: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.einsum("...ij,...j->...i", factor, z)

    def ratio(self, factor: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, Any]:  # noqa: D102
        B = solve_lower(factor, self.factor(psi))
        return self.variances(B) ** 2, np.sum(np.tril(B, -1) ** 2, axis=(-2, -1))

    def _relative(self, factor: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Return the eigenvalues of a covariance in units of that with the factor, ascending."""
        both = solve_lower(factor, solve_lower(factor, covariance).mT)
        return np.linalg.eigvalsh((both + both.mT) / 2)

    def smallest(self, factor: np.ndarray, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return self._relative(factor, covariance)[..., 0]

    def log_growth(self, factor: np.ndarray, growth: np.ndarray) -> np.ndarray:  # noqa: D102
        eigenvalues = np.maximum(self._relative(factor, growth), 0.0)  # rounding takes some below
        return np.sum(np.log1p(eigenvalues), axis=-1)

    def draw(  # noqa: D102
        self, nu: np.ndarray, psi: np.ndarray, size: tuple[int, ...], rng: np.random.Generator
    ) -> np.ndarray:
        # Bartlett's decomposition, as `wishart.NormalInverseWishart` has it
        d, shape = self.columns, size + np.shape(nu)
        bartlett = np.tril(rng.standard_normal((*shape, d, d)), -1)
        gammas = rng.standard_gamma((np.asarray(nu)[..., None] - np.arange(d)) / 2, (*shape, d))
        bartlett[..., range(d), range(d)] = np.sqrt(2 * gammas)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            root = solve_lower(bartlett, np.broadcast_to(self.factor(psi).mT, bartlett.shape))
            drawn = root.mT @ root
        return (drawn + drawn.mT) / 2

    def marginals(self, nu: np.ndarray, psi: np.ndarray) -> Any:  # noqa: D102
        if np.ndim(nu) == 0:
            return CovarianceMarginals(float(nu), psi)
        return Stacked([CovarianceMarginals(float(one), scale) for one, scale in zip(nu, psi, strict=True)])


class Variances(Structure):
    """Variances of independent columns (D,)."""

    def __init__(self, columns: int) -> None:
        super().__init__(columns)
        self.block, self.blocks, self.repeat, self.shape = 1, columns, 1, (columns,)

    def reduced(self, matrix: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.diagonal(matrix, axis1=-2, axis2=-1)

    def matrix(self, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return self.variances(covariance)[..., None] * np.eye(self.columns)

    def variances(self, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return covariance

    def outer(self, shift: np.ndarray) -> np.ndarray:  # noqa: D102
        return shift**2

    def scatter(self, weights: np.ndarray, shifts: np.ndarray) -> np.ndarray:  # noqa: D102
        return weights @ shifts**2

    def factor(self, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        if not np.all(covariance > 0):
            raise NumericalError("a variance is not positive")
        return np.sqrt(covariance)

    def log_det(self, factor: np.ndarray) -> np.ndarray:  # noqa: D102
        return 2 * np.sum(np.log(factor), axis=-1)

    def scaled(self, factor: np.ndarray, shifts: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.sum((shifts / factor[..., None, :]) ** 2, axis=-1)

    def coloured(self, factor: np.ndarray, z: np.ndarray) -> np.ndarray:  # noqa: D102
        return factor * z

    def ratio(self, factor: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, Any]:  # noqa: D102
        return psi / factor**2, 0.0

    def smallest(self, factor: np.ndarray, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.min(covariance / factor**2, axis=-1)

    def log_growth(self, factor: np.ndarray, growth: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.sum(np.log1p(growth / factor**2), axis=-1)

    def draw(  # noqa: D102
        self, nu: np.ndarray, psi: np.ndarray, size: tuple[int, ...], rng: np.random.Generator
    ) -> np.ndarray:
        shapes = np.reshape(nu, np.shape(nu) + (1,) * (np.ndim(psi) - np.ndim(nu))) / 2
        with np.errstate(over="ignore", divide="ignore"):
            return psi / 2 / rng.standard_gamma(np.broadcast_to(shapes, np.shape(psi)), size + np.shape(psi))

    def marginals(self, nu: np.ndarray, psi: np.ndarray) -> Any:  # noqa: D102
        shapes = np.reshape(nu, np.shape(nu) + (1,) * (np.ndim(psi) - np.ndim(nu))) / 2
        return frozen.invgamma(np.broadcast_to(shapes, np.shape(psi)), scale=psi / 2)


class Scalar(Variances):
    """One variance for all columns, of shape ()."""

    def __init__(self, columns: int) -> None:
        super().__init__(columns)
        self.blocks, self.repeat, self.shape = 1, columns, ()

    def reduced(self, matrix: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.asarray(np.mean(super().reduced(matrix), axis=-1))

    def variances(self, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.repeat(np.asarray(covariance)[..., None], self.columns, axis=-1)

    def outer(self, shift: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.sum(shift**2, axis=-1)

    def scatter(self, weights: np.ndarray, shifts: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.asarray(weights @ self.outer(shifts))

    def log_det(self, factor: np.ndarray) -> np.ndarray:  # noqa: D102
        return super().log_det(factor[..., None])

    def scaled(self, factor: np.ndarray, shifts: np.ndarray) -> np.ndarray:  # noqa: D102
        return super().scaled(factor[..., None], shifts)

    def coloured(self, factor: np.ndarray, z: np.ndarray) -> np.ndarray:  # noqa: D102
        return factor[..., None] * z

    def ratio(self, factor: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, Any]:  # noqa: D102
        return super().ratio(factor[..., None], np.asarray(psi)[..., None])

    def smallest(self, factor: np.ndarray, covariance: np.ndarray) -> np.ndarray:  # noqa: D102
        return super().smallest(factor[..., None], covariance[..., None])

    def log_growth(self, factor: np.ndarray, growth: np.ndarray) -> np.ndarray:  # noqa: D102
        return super().log_growth(factor[..., None], growth[..., None])


class Stacked:
    """Distributions of arrays of one shape, stacked along a new first axis."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def mean(self) -> np.ndarray:
        """Return the mean of each entry."""
        return np.stack([part.mean() for part in self.parts])

    def std(self) -> np.ndarray:
        """Return the standard deviation of each entry."""
        return np.stack([part.std() for part in self.parts])

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each entry."""
        return np.stack([part.ppf(q) for part in self.parts])

    def cdf(self, x: Any) -> np.ndarray:
        """Cumulative probability of each entry; ``x`` has the shape of the stack, after leading axes."""
        axis = -1 - np.ndim(self.parts[0].Psi)
        each = zip(self.parts, np.moveaxis(np.asarray(x), axis, 0), strict=True)
        return np.stack([part.cdf(value) for part, value in each], axis=axis)
