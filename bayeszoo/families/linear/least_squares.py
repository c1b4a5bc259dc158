"""Gaussian regression with a Gaussian prior, by singular values; and the weights, or sums of weights, identified.

With theta = mean + root z and z ~ N(0, I) a priori, the design times the root has the singular value decomposition
U diag(s) V'. Along the k-th right vector the precision of the data is s_k**2 times that of the prior: shrinkage,
evidence and the effective number of parameters are sums over k. The normal equations X'X are never formed, so that
nearly collinear columns keep their digits. Bishop, PRML, sections 3.3 and 3.5; MacKay 1992; Golub and Van Loan 2013,
section 5.5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.conjugate.regressions import DEPENDENT
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError, NumericalError

MAX_ROUNDING = 1e-6
"""Largest rounding error of a log evidence, in nats, before it is withheld."""
MOST_SUMS = 5
"""Most sums in a note, and most weights in each."""


@dataclass(frozen=True)
class Solution:
    """The posterior of theta given unit noise, and the terms of the evidence.

    ``mean`` (T,) is also the mode. ``factor @ factor.T`` is the posterior covariance, ``inverse`` the inverse of
    ``factor``, ``precision_root.T @ precision_root`` the posterior precision (T + R rows), and
    ``prior_root @ prior_root.T`` the prior covariance. ``gains`` (min(R, T),) are s**2 / (1 + s**2), the share of each
    direction that the data determine. ``squared_error`` is that of the mean, and ``misfit`` adds the squared distance
    from the prior mean, which the mean minimizes. ``log_det`` is the log ratio of the determinants of prior and
    posterior covariance; ``rounding`` is its possible rounding error, and the relative one of variances. Leading axes
    of all arrays are priors and noises.
    """

    mean: np.ndarray
    factor: np.ndarray
    inverse: np.ndarray
    precision_root: np.ndarray
    prior_root: np.ndarray
    gains: np.ndarray
    misfit: Any
    squared_error: Any
    log_det: Any
    rounding: Any

    @property
    def trust(self) -> Any:
        """1, or NaN if rounding could exceed `MAX_ROUNDING`, as a share of a variance or in nats of evidence."""
        return np.where(self.rounding <= MAX_ROUNDING, 1.0, math.nan)[()]

    @property
    def sd(self) -> np.ndarray:
        """Posterior standard deviation of each entry."""
        return np.sqrt(np.sum(np.square(self.factor), axis=-1)) * np.asarray(self.trust)[..., None]

    def covariance(self) -> np.ndarray:
        """Return the posterior covariance matrix of the entries."""
        return self.factor @ self.factor.T * self.trust

    @property
    def log_det_factor(self) -> float:
        """Log determinant of ``factor``."""
        return np.linalg.slogdet(self.prior_root)[1] - self.log_det / 2

    @property
    def safe_log_det(self) -> Any:
        """``log_det``, or NaN if rounding could change an evidence by more than `MAX_ROUNDING`."""
        return self.log_det * self.trust

    def distance(self, theta: np.ndarray) -> np.ndarray:
        """Return the squared distance of theta (..., T) from the mean in standard deviations.

        It is the sum over prior and data, which is more accurate far from the mean than the inverse covariance.
        """
        steps = (theta - self.mean)[..., None, :] @ np.swapaxes(self.precision_root, -1, -2)
        return np.sum(np.square(steps[..., 0, :]), axis=-1)

    def spread(self, rows: np.ndarray) -> np.ndarray:
        """Return the posterior variance of ``rows @ theta``, shape (..., n)."""
        return np.sum(np.square(rows @ self.factor), axis=-1) * np.asarray(self.trust)[..., None]

    @property
    def effective_parameters(self) -> float:
        """The effective number of parameters: the trace of the hat matrix."""
        return float(math.fsum(self.gains) * self.trust)

    def in_units(self, units: np.ndarray, origin: np.ndarray) -> Solution:
        """Return the solution for ``origin + theta / units``."""
        return replace(
            self,
            mean=origin + self.mean / units,
            factor=self.factor / units[:, None],
            inverse=self.inverse * units,
            precision_root=self.precision_root * units,
            prior_root=self.prior_root / units[:, None],
        )

    def log_normal(self, theta: Any, variance: Any) -> Any:
        """Return the log density of N(mean, variance factor factor') at theta (..., T), and variances (...)."""
        squares = self.distance(np.asarray(theta))
        powers = self.mean.shape[-1] * np.log(2 * math.pi * variance)
        return -(powers + squares / variance) / 2 - self.log_det_factor

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw from N(0, factor factor'), shape (*size, *leading axes, T)."""
        noise = rng.standard_normal((*size, *self.mean.shape)) * np.asarray(self.trust)[..., None]
        return np.asarray((noise[..., None, :] @ np.swapaxes(self.factor, -1, -2))[..., 0, :])


def solve(design: np.ndarray, outcome: np.ndarray, mean: np.ndarray, root: np.ndarray, noise: object = 1.0) -> Solution:
    """Combine the prior theta ~ N(mean, root root'), root lower triangular, with rows (R, T) of Gaussian noise.

    ``noise`` is the standard deviation of the rows. Leading axes of ``mean``, ``root`` and ``noise`` are priors and
    noises. The solution is that of rows in units of the noise.
    """
    noise = np.asarray(noise, dtype=np.float64)
    u, s, full = np.linalg.svd(design @ root, full_matrices=True)
    kept, s = s.shape[-1], s / noise[..., None]
    u, v = u[..., :kept], full[..., :kept, :]
    target = (outcome - _times(design, mean)) / noise[..., None]
    projected = _times(_transposed(u), target)
    outside = target - _times(u, projected)
    outside = outside - _times(u, _times(_transposed(u), outside))  # orthogonal after two steps (Parlett 1998, 6.9)
    error = np.sum(np.square(outside), axis=-1)
    stretched = np.hypot(1.0, s)
    shrunken = projected / stretched**2
    size = mean.shape[-1]
    lengths = np.concatenate([stretched, np.ones((*s.shape[:-1], size - kept))], axis=-1)[..., None, :]
    prior_inverse = np.linalg.solve(root, np.eye(size))
    rows = np.broadcast_to(design / noise[..., None, None], (*s.shape[:-1], *design.shape))
    return Solution(
        mean=mean + _times(root, _times(_transposed(v), s * shrunken)),
        # in the symmetric root the signs of singular vectors, which are arbitrary, cancel
        factor=root @ ((_transposed(full) / lengths) @ full),
        inverse=((_transposed(full) * lengths) @ full) @ prior_inverse,
        precision_root=np.concatenate([np.broadcast_to(prior_inverse, (*s.shape[:-1], size, size)), rows], axis=-2),
        prior_root=root,
        gains=np.square(s / stretched),
        misfit=error + np.sum(np.square(projected / stretched), axis=-1),
        squared_error=error + np.sum(np.square(shrunken), axis=-1),
        log_det=np.sum(np.log1p(np.square(s)), axis=-1),
        rounding=_rounding(s, root),
    )


def _transposed(matrix: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrix, -1, -2)


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Multiply matrices and vectors with the same leading axes."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def fitted(design: np.ndarray, outcome: np.ndarray) -> tuple[np.ndarray, float, int]:
    """Return the least-squares solution of smallest norm in standardized columns, its squared error, and the rank."""
    size = np.sqrt(np.sum(np.square(design), axis=0))
    size = np.where(size > 0, size, 1.0)
    u, s, v = scipy.linalg.svd(design / size, full_matrices=False)
    kept = s > 8 * np.finfo(np.float64).eps * max(design.shape, default=1) * np.max(s, initial=0.0)
    u, s, v = u[:, kept], s[kept], v[kept]
    projected = u.T @ outcome
    residual = outcome - u @ projected
    residual = residual - u @ (u.T @ residual)
    return (v.T @ (projected / s)) / size, float(np.sum(np.square(residual))), len(s)


def gaussian(name: str, solution: Solution) -> Posterior:
    """Return a Gaussian vector called ``name``, shape (T,), with the mean and covariance of the solution."""
    return Posterior(
        {name: frozen.norm(solution.mean, solution.sd)},
        lambda size, rng: {name: solution.mean + solution.noise(size, rng)},
        lambda params: solution.log_normal(params[name], 1.0),
        {name: solution.covariance},
    )


def normal_inverse_gamma(solution: Solution, shape: Any, scale: Any) -> Posterior:
    """Return the joint law of w and sigma2: sigma2 ~ InvGamma(shape, scale), w | sigma2 ~ N.

    The weights have the solution's mean, and given sigma2, the solution's covariance times sigma2. Leading
    axes are those of shape and scale.
    """
    axes = np.broadcast_shapes(np.shape(shape), np.shape(scale))
    apart = axes if solution.mean.ndim == 1 else ()
    inverse_gamma = frozen.invgamma(shape, scale=scale)
    student = frozen.t(2 * np.asarray(shape)[..., None], solution.mean, np.sqrt(scale / shape)[..., None] * solution.sd)

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        variances = np.asarray(scale / rng.standard_gamma(shape, (*size, *axes)))
        noise = np.sqrt(variances)[..., None] * solution.noise((*size, *apart), rng)
        return {"w": solution.mean + noise, "sigma2": variances}

    def log_density(params: Mapping[str, object]) -> Any:
        value = np.asarray(params["sigma2"], dtype=np.float64)
        safe = np.where(value > 0, value, 1.0)
        joint = inverse_gamma.logpdf(safe) + solution.log_normal(params["w"], safe)
        return np.where(value > 0, joint, -np.inf)[()]

    def covariance() -> np.ndarray:
        return solution.covariance() * (scale / (shape - 1) if shape > 1 else math.inf)

    return Posterior({"w": student, "sigma2": inverse_gamma}, draw, log_density, {"w": covariance})


def above_zero(squared_error: float) -> float:
    """Return a squared error, or raise `NumericalError` if it is 0."""
    if not squared_error > 0:
        raise NumericalError(
            "no maximum-likelihood estimate: the outcome is fitted exactly, so that sigma2 -> 0", "exact_fit"
        )
    return squared_error


def covariance_root(value: object, size: int) -> np.ndarray:
    """Return the lower triangular root of V0, a covariance matrix, or of a multiple of the identity of that size."""
    matrix = np.asarray(value, dtype=np.float64)
    if matrix.ndim and len(matrix) != size:
        raise InputError(f"V0 is {len(matrix)} x {len(matrix)}, the model has {size} terms", "wrong_shape")
    return np.asarray(np.linalg.cholesky(matrix) if matrix.ndim else math.sqrt(matrix) * np.eye(size))


def _rounding(s: np.ndarray, root: np.ndarray) -> Any:
    """Return the possible rounding error of the log determinant, which is also the relative one of a variance.

    The errors of all singular values are of the size of the largest one's error. Errors of a prior covariance with the
    given root matter if its entries are not independent.
    """
    eps = np.finfo(np.float64).eps
    largest = np.max(s, axis=-1, initial=0.0, keepdims=True)
    of_values = np.sum(2 * s * (8 * eps * largest) / (1 + np.square(s)), axis=-1)
    if np.count_nonzero(root) * root.shape[-1] == root.size:
        return of_values
    correlated = root / np.sqrt(np.sum(np.square(root), axis=-1))[..., None]
    return of_values + eps * np.linalg.cond(correlated) ** 2


@dataclass(frozen=True)
class Identified:
    """Sums of weights ``coefficients[r] @ w``, (R, T): the likelihood depends on w through them alone.

    ``independent`` (R,) are the columns that are no linear combination of the columns before them.
    """

    independent: np.ndarray
    coefficients: np.ndarray

    def texts(self, terms: list[str]) -> list[str]:
        """Write the sums: ``w[x1] + 2 w[x3]``."""
        return [_text(row, terms, first) for row, first in zip(self.coefficients, self.independent, strict=True)]

    def note(self, terms: list[str]) -> str:
        """Say in one line which sums are identified; empty if every weight is."""
        if len(self.independent) == self.coefficients.shape[1]:
            return ""
        count = f"the data identify {len(self.independent)} of {len(terms)} combinations of weights"
        sums = [text for text, row in zip(self.texts(terms), self.coefficients, strict=True) if np.sum(row != 0) > 1]
        free = [f"w[{terms[j]}]" for j in np.flatnonzero(~self.coefficients.any(axis=0))]
        readable = len(sums) <= MOST_SUMS and np.max(np.sum(self.coefficients != 0, axis=1), initial=0) <= MOST_SUMS
        if not readable:
            return f"{count}: the prior alone says the rest"
        only = [f"of some weights only the sum{'s' * (len(sums) > 1)} {', '.join(sums)}"] if sums else []
        nothing = [f"nothing about {', '.join(free[:MOST_SUMS])}"] if free else []
        return f"{count}: {' and '.join([*only, *nothing])}; the prior alone says the rest"


def clearly_independent(design: np.ndarray) -> bool:
    """Say whether no column is nearly a sum of the others: a fast test by cross products; False if in doubt."""
    products = design.T @ design
    size = np.sqrt(np.diag(products))
    return bool(np.all(size > 0)) and bool(
        np.linalg.eigvalsh(products / np.outer(size, size))[:1].min(initial=1.0) > 1e-6
    )


def identify(design: np.ndarray, units: np.ndarray) -> Identified:
    """Find the identified sums of weights, from rows (R, T) with the cross products of the standardized design.

    Columns, with units (T,), are taken in turn: a column that is a sum of columns before it, sum_i c_i x_i, adds c_i
    times its weight to the weight of each x_i.
    """
    independent: list[int] = []
    basis = np.zeros((len(design), 0))
    coefficients = np.zeros((design.shape[1], design.shape[1]))
    for j, column in enumerate(design.T):
        residual = column - basis @ (basis.T @ column)
        residual = residual - basis @ (basis.T @ residual)
        if np.linalg.norm(residual) > DEPENDENT * np.linalg.norm(column):
            coefficients[len(independent), j] = 1.0
            independent.append(j)
            basis = np.column_stack([basis, residual / np.linalg.norm(residual)])
        elif independent:
            relation = scipy.linalg.lstsq(design[:, independent], column)[0] * (units[j] / units[independent])
            share = np.abs(relation) * np.linalg.norm(design[:, independent] * units[independent], axis=0)
            coefficients[: len(independent), j] = np.where(share > 1e-8 * np.max(share), relation, 0.0)
    return Identified(np.array(independent, dtype=int), coefficients[: len(independent)])


def _text(row: np.ndarray, terms: list[str], first: int) -> str:
    """Write one sum, with column ``first`` first."""
    parts = [f"w[{terms[first]}]"]
    for j in [j for j in np.flatnonzero(row) if j != first]:
        size = "" if np.isclose(abs(row[j]), 1.0, rtol=1e-9) else f"{abs(row[j]):.6g} "
        parts.append(f"{'+' if row[j] > 0 else '-'} {size}w[{terms[j]}]")
    return " ".join(parts)
