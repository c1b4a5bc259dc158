"""Covariance structures (full, diagonal, spherical) and their inverse-Wishart distributions.

Each is an inverse-Wishart distribution over blocks. A full matrix is one block of size D. Variances by column are D
blocks of size 1, where InvWishart(nu, psi) is InvGamma(nu / 2, psi / 2). A spherical variance is one block of size 1
that D independent columns share, so that each row counts D times.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.covariance import CovarianceMarginals
from bayeszoo.distributions.special import deviance, gamma_divergence, log_peak, log_rising
from bayeszoo.distributions.statistics.base import along
from bayeszoo.errors import NumericalError

_AT_A_TIME = 1024
"""Rows whose squared distances are computed together, to fit into the processor's cache."""
_MANY = 2**14
"""Multiplications in a triangular system from which BLAS solves each system, instead of all vectorized."""


class Structure:
    """The structure of a covariance of D columns: by default the variances (D,) of independent columns.

    It has ``blocks`` of size ``block``, each shared by ``repeat`` columns: the covariance matrix has determinant
    ``det(blocks) ** repeat``. Covariances have ``shape``; their Cholesky factors, called factors below,
    always have the axes (blocks, block, block). Leading axes of all arrays broadcast.
    """

    def __init__(self, columns: int, block: int = 1, repeat: int = 1, shape: tuple[int, ...] | None = None) -> None:
        self.columns, self.block, self.repeat, self.blocks = columns, block, repeat, columns // (block * repeat)
        self.shape = (columns,) if shape is None else shape
        self._triangle, self._below = np.tril_indices(block), np.tri(block, k=-1)

    def _blocks(self, values: npt.ArrayLike) -> np.ndarray:
        """Reshape values of the structure's shape to (..., blocks, block, block)."""
        values = np.asarray(values)
        leading = values.shape[: values.ndim - len(self.shape)]
        return values.reshape(*leading, self.blocks, self.block, self.block)

    def _shaped(self, blocks: np.ndarray) -> np.ndarray:
        return blocks.reshape((*blocks.shape[:-3], *self.shape))

    def _parts(self, vectors: np.ndarray) -> np.ndarray:
        """Reshape vectors (..., D) to (..., repeat, blocks, block)."""
        return vectors.reshape(*vectors.shape[:-1], self.repeat, self.blocks, self.block)

    def reduced(self, matrix: np.ndarray) -> np.ndarray:
        """Reduce matrices (..., D, D) to the structure: themselves, their diagonals, or means of the diagonals."""
        if len(self.shape) == 2:
            return matrix
        blocks = matrix.reshape(*matrix.shape[:-2], *(2 * (self.repeat, self.blocks, self.block)))
        return self._shaped(np.einsum("...rbirbj->...bij", blocks) / self.repeat)

    def matrix(self, covariance: np.ndarray) -> np.ndarray:
        """Return the covariance matrices (..., D, D)."""
        if len(self.shape) == 2:
            return covariance
        identity = np.eye(self.repeat * self.blocks).reshape(2 * (self.repeat, self.blocks))
        blocks = np.einsum("rbsc,...bij->...rbiscj", identity, self._blocks(covariance))
        return blocks.reshape(*blocks.shape[:-6], self.columns, self.columns)

    def variances(self, covariance: np.ndarray) -> np.ndarray:
        """Return the variance of each column (..., D)."""
        diagonals = np.diagonal(self._blocks(covariance), axis1=-2, axis2=-1)[..., None, :, :]
        return np.repeat(diagonals, self.repeat, axis=-3).reshape(*diagonals.shape[:-3], self.columns)

    def outer(self, shift: np.ndarray) -> np.ndarray:
        """Return the scatter of one vector (..., D)."""
        parts = self._parts(shift)
        return self._shaped(np.einsum("...rbi,...rbj->...bij", parts, parts))

    def scatter(self, weights: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return the sum of the scatters of vectors (n, D), with weights (n,)."""
        parts = self._parts(np.sqrt(weights)[:, None] * shifts).transpose(2, 0, 1, 3)
        parts = parts.reshape(self.blocks, -1, self.block)
        return self._shaped(parts.mT @ parts)

    def factor(self, covariance: np.ndarray) -> np.ndarray:
        """Return the factor of a covariance; raise `NumericalError` if it is not positive definite."""
        try:
            return np.linalg.cholesky(self._blocks(covariance))
        except np.linalg.LinAlgError:
            raise NumericalError("a covariance is not positive definite", "not_positive_definite") from None

    def to_vector(self, covariances: np.ndarray) -> np.ndarray:
        """Return free coordinates of covariances: their factors, with log diagonals."""
        factor, rows = self.factor(covariances), range(self.block)
        factor[..., rows, rows] = np.log(factor[..., rows, rows])
        return factor[..., *self._triangle].ravel()

    def from_vector(self, vector: np.ndarray) -> np.ndarray:
        """Return the covariances (n, *shape) with these coordinates."""
        rows = range(self.block)
        packed = vector.reshape(-1, self.blocks, self.block * (self.block + 1) // 2)
        factor = np.zeros((*packed.shape[:2], self.block, self.block))
        factor[..., *self._triangle] = packed
        factor[..., rows, rows] = np.exp(factor[..., rows, rows])
        return self.covariance(factor)

    def covariance(self, factor: np.ndarray) -> np.ndarray:
        """Return the covariances with these factors."""
        return self._shaped(factor @ factor.mT)

    def whitened(self, inverse: np.ndarray, scatter: np.ndarray) -> np.ndarray:
        """Return blocks (..., blocks, block, block) of scatters in units of factors with these inverses."""
        return inverse @ self._blocks(scatter) @ inverse.mT

    def log_det(self, factor: np.ndarray) -> np.ndarray:
        """Return the log determinant of all blocks together."""
        return 2 * np.log(factor.diagonal(axis1=-2, axis2=-1)).sum(axis=(-2, -1))

    def scaled(self, factor: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return squared Mahalanobis lengths (..., n) of vectors (..., n, D)."""
        right = np.moveaxis(self._parts(shifts), -4, -1)
        return (solve_lower(factor[..., None, :, :, :], right) ** 2).sum(axis=(-4, -3, -2))

    def natural(self, covariances: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Return statistics (..., F) in which Gaussian and inverse-Wishart log densities are linear.

        Concatenated, for vectors v (..., D): block precisions P, P v, v' P v, the log determinant of the blocks, and 1.
        """
        factor, parts = self.factor(covariances), self._parts(vectors)
        root = solve_lower(factor, np.broadcast_to(np.eye(self.block), factor.shape))
        white = (root[..., None, :, :, :] @ parts[..., None])[..., 0]
        pull = (root.mT[..., None, :, :, :] @ white[..., None])[..., 0]
        squares, log_det = np.sum(white**2, axis=(-3, -2, -1)), self.log_det(factor)
        precision = (root.mT @ root).reshape(*root.shape[:-3], -1)
        leading = squares.shape
        flat = (precision, pull.reshape(*leading, -1), squares[..., None], log_det[..., None], np.ones((*leading, 1)))
        return np.concatenate([np.broadcast_to(values, (*leading, values.shape[-1])) for values in flat], axis=-1)

    def natural_of_wishart(self, nu: np.ndarray, psi: np.ndarray) -> np.ndarray:
        """Return the coefficients (..., F) of `natural` statistics in log inverse-Wishart densities."""
        nu, blocks, b = np.asarray(nu, dtype=np.float64), self._blocks(psi), self.block
        constant = nu / 2 * (self.log_det(self.factor(psi)) - self.blocks * b * math.log(2))
        constant = constant - self.blocks * scipy.special.multigammaln(nu / 2, b)
        ends = np.stack([np.zeros_like(nu), -(nu + b + 1) / 2, constant], axis=-1)
        of_vectors = np.zeros((*nu.shape, self.columns))
        return np.concatenate([-blocks.reshape(*nu.shape, -1) / 2, of_vectors, ends], axis=-1)

    def natural_of_means(self, kappa: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Return the coefficients (..., F) in log densities of means N(m, covariance / kappa), for m (..., D)."""
        weighted = kappa[..., None] * m
        matrix = self._blocks(self.outer(np.sqrt(kappa)[..., None] * m)).reshape(*kappa.shape, -1)
        constant = self.columns / 2 * np.log(kappa / (2 * math.pi))
        ends = np.stack([-kappa / 2, np.full(kappa.shape, -self.repeat / 2), constant], axis=-1)
        return np.concatenate([-matrix / 2, self._parts(weighted).reshape(*kappa.shape, -1), ends], axis=-1)

    def coloured(self, factor: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Transform standard normal vectors (..., D) to this covariance."""
        return (factor[..., None, :, :, :] @ self._parts(z)[..., None]).reshape(z.shape)

    def ratio(self, factor: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return inv(factor) times psi's factor: its squared diagonals, and the sum of its other squares."""
        B = solve_lower(factor, self.factor(psi))
        squares = B.diagonal(axis1=-2, axis2=-1) ** 2
        squares = squares.reshape(*squares.shape[:-2], self.blocks * self.block)
        return squares, ((B * self._below) ** 2).sum(axis=(-3, -2, -1))

    def relative(self, factor: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Return the eigenvalues of a covariance in units of the covariance with this factor."""
        whitened = solve_lower(factor, solve_lower(factor, self._blocks(covariance)).mT)
        values = np.linalg.eigvalsh((whitened + whitened.mT) / 2)
        return values.reshape(*values.shape[:-2], self.blocks * self.block)

    def is_singular(self, covariance: np.ndarray) -> np.ndarray:
        """Say which covariances are singular up to rounding, in any units, shape (...)."""
        blocks = self._blocks(covariance)
        spread = np.sqrt(np.diagonal(blocks, axis1=-2, axis2=-1))
        has_no_spread = ~np.all(spread > 0, axis=-1)
        divisor = np.where(has_no_spread[..., None], 1.0, spread)
        smallest = np.linalg.eigvalsh(blocks / (divisor[..., :, None] * divisor[..., None, :]))[..., 0]
        return np.any(has_no_spread | (smallest < 1e-12), axis=-1)

    def trace_ratio(self, numerator: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Return the trace of inv(covariance) @ numerator; NaN if singular."""
        try:
            inverse = np.linalg.inv(self._blocks(covariance))
        except np.linalg.LinAlgError:
            return np.asarray(np.nan)
        return np.asarray((inverse * self._blocks(numerator)).sum(axis=(-3, -2, -1)))

    def draw_root(
        self, nu: npt.ArrayLike, psi: np.ndarray, size: tuple[int, ...], rng: np.random.Generator
    ) -> np.ndarray:
        """Draw blocks C' (*size, *shape of nu, blocks, block, block), where C C' is inverse-Wishart.

        Bartlett's decomposition: A A' is Wishart for a lower triangular A, and C' = inv(A) L' with psi = L L'.
        """
        d, shape = self.block, (*size, *np.shape(nu), self.blocks)
        bartlett = np.tril(rng.standard_normal((*shape, d, d)), -1) if d > 1 else np.zeros((*shape, 1, 1))
        gammas = rng.standard_gamma((np.asarray(nu)[..., None, None] - np.arange(d)) / 2, (*shape, d))
        bartlett[..., range(d), range(d)] = np.sqrt(2 * gammas)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return solve_lower(bartlett, np.broadcast_to(self.factor(psi).mT, bartlett.shape))

    def draw(self, nu: np.ndarray, psi: np.ndarray, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw covariances (*size, *shape of nu, *shape)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.from_root(self.draw_root(nu, psi, size, rng))

    def from_root(self, root: np.ndarray) -> np.ndarray:
        """Return the covariances of roots from `draw_root`."""
        drawn = root.mT @ root
        return self._shaped((drawn + drawn.mT) / 2)

    def marginals(self, nu: np.ndarray, psi: np.ndarray) -> Any:
        """Return the marginal distribution of each entry."""
        if len(self.shape) == 2:
            return CovarianceMarginals(nu, psi)
        return frozen.invgamma(along(nu, psi) / 2, scale=psi / 2)

    def log_inverse_wishart(self, factor: np.ndarray, nu: npt.ArrayLike, psi: np.ndarray) -> np.ndarray:
        """Log density at the covariance with this factor, with every constant.

        Terms of size nu log nu of the textbook's formula cancel within `deviance` and `log_peak`.
        """
        half, d = np.asarray(nu, dtype=np.float64) / 2, self.block
        squares, off_diagonal = self.ratio(factor, psi)
        gammas = d * (log_peak(half) + np.log(half)) + sum(log_rising(half - j / 2, j / 2) for j in range(d))
        constant = gammas - d * (d - 1) / 4 * math.log(math.pi)
        shape = np.sum(deviance(half[..., None], squares / 2), axis=-1) + off_diagonal / 2
        return np.asarray(self.blocks * constant - shape - (d + 1) / 2 * self.log_det(factor))

    def expected_log_det_gap(self, nu: np.ndarray) -> np.ndarray:
        """Return E[log det(blocks)] minus the log determinant of psi / nu, the inverse mean precision."""
        return np.asarray(self.blocks * (self.block * np.log(nu / 2) - self.digamma(nu)))

    def digamma(self, nu: np.ndarray) -> np.ndarray:
        """Return the derivative of log Gamma_d at nu / 2."""
        return np.sum([scipy.special.digamma((nu - j) / 2) for j in range(self.block)], axis=0)

    def divergence(self, nu: np.ndarray, factor: np.ndarray, prior_nu: Any, prior_psi: np.ndarray) -> np.ndarray:
        """Return KL(InvWishart(nu, psi) || InvWishart(prior_nu, prior_psi)) of all blocks together, from psi's factor.

        The sum of divergences of Gamma distributions, one for each column of the precision's factor, and of
        nonnegative remainders: no term is larger than the sum.
        """
        squares, off_diagonal = self.ratio(factor, prior_psi)
        half_index = np.tile(np.arange(self.block), self.blocks) / 2
        half, prior_half = (np.asarray(degrees)[..., None] / 2 - half_index for degrees in (nu, prior_nu))
        terms = gamma_divergence(half, 1.0, prior_half, squares) + half_index * deviance(1.0, squares)
        return np.asarray(terms.sum(axis=-1) + nu / 2 * off_diagonal)

    def log_ratio(self, nu: Any, psi: np.ndarray, n: Any, growth: np.ndarray) -> np.ndarray:
        """Return the log ratio of normalizing constants after and before n rows that add ``growth`` to psi.

        Powers of 2, which cancel those of Gaussian rows, are left out. Small growth keeps its digits for a large psi:
        log det(psi + growth) - log det(psi) is a sum over the eigenvalues of growth in units of psi.
        """
        factor, rows = self.factor(psi), self.repeat * n
        gammas = self.blocks * log_multigamma_ratio((nu + rows) / 2, nu / 2, self.block)
        relative = np.maximum(self.relative(factor, growth), 0.0)  # rounding may make some negative
        log_growth = np.sum(np.log1p(relative), axis=-1)
        return np.asarray(gammas - (rows * self.log_det(factor) + (nu + rows) * log_growth) / 2)

    def log_ratio_of_rows(
        self, nu: np.ndarray, psi: np.ndarray, rows: np.ndarray, centres: np.ndarray, share: Any
    ) -> np.ndarray:
        """Return `log_ratio` for single rows (n, D) with growth ``share`` times the scatter about centres, (..., n).

        The growth has one eigenvalue in each block: share times the squared distance in units of psi.
        """
        factor, nu = self.factor(psi), np.asarray(nu, dtype=np.float64)[..., None]
        distances = self._distances(factor, rows, centres)
        gammas = self.blocks * log_multigamma_ratio((nu + self.repeat) / 2, nu / 2, self.block)
        log_growth = np.log1p(share[..., None, None] * distances).sum(axis=-2)
        return gammas - (self.repeat * self.log_det(factor)[..., None] + (nu + self.repeat) * log_growth) / 2

    def _distances(self, factor: np.ndarray, rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Return squared distances (..., blocks, n) of rows (n, D) from centres (..., D), in units of the covariance.

        Several centres with one factor share an origin: rows and centres are whitened once, and the square of a
        difference is expanded if centres are near enough to lose no digits.
        """
        is_shared = centres.ndim > 1 and factor.shape[-4] < centres.shape[-2]
        origin = centres.mean(axis=-2, keepdims=True) if is_shared else centres
        places: Any = self._whitened(factor, (centres - origin)[..., None]) if is_shared else 0.0
        lengths = np.einsum("...rbin,...rbin->...bn", places, places) if is_shared else np.inf
        squares = np.empty((*centres.shape[:-1], self.blocks, len(rows)))
        for i in range(0, len(rows), _AT_A_TIME):
            chunk = slice(i, i + _AT_A_TIME)
            shifts = self._whitened(factor, np.subtract(rows[chunk].T, origin[..., None], order="C"))
            if np.max(lengths) > 1:
                shifts = shifts - places
                squares[..., chunk] = np.einsum("...rbin,...rbin->...bn", shifts, shifts)
                continue
            products = (places.mT @ shifts)[..., 0, :].sum(axis=-3)
            squares[..., chunk] = np.einsum("...rbin,...rbin->...bn", shifts, shifts) - 2 * products + lengths
        return squares

    def _whitened(self, factor: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return inv(factor) times columns (..., D, n), with the axes (..., repeat, blocks, block, n)."""
        right = columns.reshape(*columns.shape[:-2], self.repeat, self.blocks, self.block, -1)
        return solve_lower(factor[..., None, :, :, :], right)


def Scalar(columns: int) -> Structure:
    """One variance for all columns, of shape ()."""
    return Structure(columns, repeat=columns, shape=())


def Matrices(columns: int) -> Structure:
    """Covariance matrices (D, D)."""
    return Structure(columns, block=columns, shape=(columns, columns))


def log_multigamma_ratio(half_nu_after: object, half_nu_before: object, d: int) -> np.ndarray:
    """Log of Gamma_d(after) / Gamma_d(before), multivariate Gamma functions, for after >= before > (d - 1) / 2."""
    after, before = np.asarray(half_nu_after, dtype=np.float64), np.asarray(half_nu_before, dtype=np.float64)
    return np.sum([log_rising(before - j / 2, after - before) for j in range(d)], axis=0)


def solve_lower(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve factor @ x = right for lower triangular factors (..., D, D) and right sides (..., D, n)."""
    D, n = right.shape[-2:]
    leading = np.broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    x = np.empty((*leading, D, n))
    if n * D * D >= _MANY and D > 1:
        factor, right = (np.broadcast_to(values, leading + values.shape[-2:]) for values in (factor, right))
        for place in np.ndindex(leading):
            x[place] = scipy.linalg.blas.dtrsm(1.0, factor[place], right[place].T, side=1, lower=1, trans_a=1).T
        return x
    for i in range(D):
        solved = factor[..., i : i + 1, :i] @ x[..., :i, :]
        x[..., i, :] = (right[..., i, :] - solved[..., 0, :]) / factor[..., i, i, None]
    return x
