"""The support vector machine as a pseudo-posterior: draws of its weights, and no evidence.

Polson and Scott 2011: exp(-2 max(1 - y f, 0)), with y = 1 or -1 and f = x' w, is a mixture over lam > 0 of Gaussians in
y f with mean 1 + lam and variance lam. Given all lam the weights are Gaussian, and given the weights 1 / lam is inverse
Gaussian with mean 1 / |1 - y f|. The function does not sum to 1 over y, so that it is no likelihood.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import BinaryRegression
from bayeszoo.data.read import Data, read
from bayeszoo.data.without_model import TableOf
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import MAX_R_HAT, MIN_DRAWS
from bayeszoo.foundation.streams import stream
from bayeszoo.foundation.tails import LIMITS, moments

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

PSEUDO = "pseudo-posterior: exp(-2 max(1 - y f, 0)) is no probability of an outcome, and its sum over y is not 1"
WITHHELD = "log evidence is withheld: the pseudo-likelihood does not sum to 1 over the outcomes"
CHAINS, WARMUP = 4, 500
MAX_GAP = 1e-6
"""Largest gap in nats between the mode and the maximum of the pseudo log density, by duality."""
ITERATIONS, EACH, NEAREST = 5000, 20, 1e-12
"""Most steps of EM; steps between solutions of the equations on the margin; smallest distance of a row to it."""
MARGIN = 1e-3
"""Smallest distance of the dual variables of rows on the margin from their ends, 0 and 2."""


TWO_CLASSES = TableOf(BinaryRegression("y"))
"""A column of two classes, and columns of features."""


@dataclass(frozen=True, eq=False)
class Svm:
    """The pseudo-posterior of a linear support vector machine.

    Attributes
    ----------
    terms : tuple of str
        The intercept and the features.
    mode : ndarray
        The weights of the support vector machine, in the units of the features, shape (T,).
    draws : ndarray
        Draws of the weights, shape (chains, draws, T).
    objective : float
        |w|^2 / (2 tau^2) + 2 sum max(1 - y f, 0) at the mode, w without the intercept, which the machine minimizes.
    gap : float
        Upper bound of the objective minus its minimum, by duality.
    errors, support : int
        Number of rows on the wrong side at the mode, and of rows on or inside the margin.
    tau : float
        Prior standard deviation of the weights; scikit-learn's C is 2 tau^2.
    seed : int
        Source of the draws.
    data : Data
        The rows.
    """

    terms: tuple[str, ...]
    mode: np.ndarray
    draws: np.ndarray
    objective: float
    gap: float
    errors: int
    support: int
    tau: float
    seed: int
    data: Data
    kind: ClassVar[str] = "pseudo-posterior"
    notes: ClassVar[tuple[str, ...]] = (PSEUDO, WITHHELD)

    @property
    def summary(self) -> pd.DataFrame:
        """A row for each weight: ``mode``, and pseudo-posterior mean, sd and quantiles with Monte Carlo errors."""
        return pd.DataFrame(
            [self._of_term(j) for j in range(len(self.terms))], index=pd.Index(self.terms, name="weight")
        )

    def _of_term(self, j: int) -> dict[str, float]:
        chains = self.draws[..., j]
        of_draws = moments(chains)
        columns = {"mode": float(self.mode[j])} | {name: float(getattr(of_draws, name)) for name in LIMITS}
        for name, level in QUANTILES.items():
            error = float(diagnostics.mcse(chains, "quantile", prob=level))
            columns |= {name: float(np.quantile(chains, level)), f"mcse_{name}": error}
        return columns | {"r_hat": float(diagnostics.r_hat(chains))}


def svm(
    data: Any,
    tau: float = 1.0,
    *,
    standardize: bool = True,
    draws: int = 1000,
    thin: int = 10,
    seed: int | None = None,
    **options: Any,
) -> Svm:
    """Draw from the pseudo-posterior of the linear support vector machine (Polson and Scott 2011), and find its mode.

    The weights of features are N(0, tau^2), the intercept has a flat prior. The mode, found by EM, is that of
    scikit-learn's ``SVC(C=2 * tau**2, kernel="linear")``.

    Parameters
    ----------
    data : anything that `read` takes
        A column of two classes and columns of features, as for ``logistic_regression``.
    tau : float
        Prior standard deviation of the weight of a feature, > 0.
    standardize : bool
        Whether ``tau`` applies to features divided by their standard deviations.
    draws : int
        Number of draws of each of four chains, at least 400.
    thin : int
        Sweeps of the sampler for each draw; rows near the margin make it slow.
    seed : int, optional
        Source of the draws; one is drawn without it.
    **options
        Options of `read`: ``target``, ``positive``, ``features`` and the format of the file.

    Returns
    -------
    Svm
        The result, without evidence and class probabilities: the hinge loss is no likelihood.

    Raises
    ------
    InputError
        When the rows are of one class, or have trials.
    NumericalError
        When EM does not reach the mode.
    Untrustworthy
        When the chains do not agree.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> rows = {"y": [0, 0, 1, 0, 1, 1], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    >>> answer = bz.svm(rows, tau=1.0, standardize=False, draws=400, seed=1, target="y")
    >>> answer.kind, round(answer.objective, 6)
    ('pseudo-posterior', 5.555556)
    """
    if not (math.isfinite(tau) and tau > 0):
        raise InputError(f"tau must be > 0 and finite, got {tau}", "out_of_range")
    if draws < MIN_DRAWS:
        raise InputError(f"draws must be >= {MIN_DRAWS}, got {draws}", "out_of_range")
    if thin < 1:
        raise InputError(f"thin must be >= 1, got {thin}", "out_of_range")
    rows = read(TWO_CLASSES, data, **options)
    features, side = _sides(rows)
    center, scale = _units(features) if standardize else (np.zeros(features.shape[1]), np.ones(features.shape[1]))
    signed = side[:, None] * np.column_stack([np.ones(len(side)), (features - center) / scale])
    precision = np.append(0.0, np.full(features.shape[1], tau**-2.0))
    mode, gap = _mode(signed, precision)
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    purpose = "svm", tau, standardize, draws, thin, rows.digest
    streams = [stream(seed, *purpose, i) for i in range(CHAINS)]
    chains = np.array([_chain(signed, precision, mode, (draws, thin), rng) for rng in streams])
    largest = max(float(diagnostics.r_hat(chains[..., j])) for j in range(len(mode)))
    if not largest <= MAX_R_HAT:
        why = f"the chains do not agree: R-hat {largest:.3f} > {MAX_R_HAT}"
        raise Untrustworthy(f"{why}; ask for a larger thin, or more draws", "not_converged")
    margins = signed @ mode
    return Svm(
        terms=("(intercept)", *map(str, rows["feature"])),
        mode=_in_units(mode, center, scale),
        draws=_in_units(chains, center, scale),
        objective=_objective(signed, precision, mode),
        gap=gap,
        errors=int(np.sum(margins <= 0)),
        support=int(np.sum(margins <= 1 + 1e-6)),
        tau=float(tau),
        seed=seed,
        data=rows,
    )


def _sides(rows: Data) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and the classes as 1 and -1."""
    if "trials" in rows:
        raise InputError(
            "a support vector machine takes one outcome a row, not trials", "wrong_columns", hint="give single outcomes"
        )
    side = 2.0 * rows["y"] - 1
    if len(np.unique(side)) < 2:
        raise InputError("all rows are of one class", "one_class", hint="give rows of two classes")
    return np.asarray(rows["X"], dtype=np.float64), side


def _units(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of the features."""
    moments = [Moments.of(column) for column in features.T]
    return np.array([m.mean for m in moments]), np.array([m.sd for m in moments])


def _in_units(weights: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Convert weights (..., T) of standardized features to weights of the original features."""
    slopes = weights[..., 1:] / scale
    return np.concatenate([weights[..., :1] - (slopes @ center)[..., None], slopes], axis=-1)


def _objective(signed: np.ndarray, precision: np.ndarray, weights: np.ndarray) -> float:
    """Return minus the pseudo log density up to a constant; ``signed`` are the terms of each row times its side."""
    return float(precision @ weights**2 / 2 + 2 * np.sum(np.maximum(1 - signed @ weights, 0.0)))


def _weights_law(signed: np.ndarray, precision: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Cholesky factor of the precision of the weights given 1 / lam of each row, and their mean."""
    factor = scipy.linalg.cholesky(signed.T @ (signed * inverse[:, None]) + np.diag(precision), lower=True)
    return factor, scipy.linalg.cho_solve((factor, True), signed.T @ (1 + inverse))


def _mode(signed: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the mode by EM, and a bound of its objective minus the minimum.

    EM is slow where rows are on the margin, as their 1 / lam grows without bound: their equations are solved directly.
    """
    weights, best = _weights_law(signed, precision, np.ones(len(signed)))[1], (math.inf, np.zeros(signed.shape[1]))
    for i in range(ITERATIONS):
        inverse = 1 / np.maximum(np.abs(1 - signed @ weights), NEAREST)
        weights = _weights_law(signed, precision, inverse)[1]
        if i % EACH == EACH - 1:
            pull = 1 + inverse * (1 - signed @ weights)  # the dual variables of the machine, between 0 and 2
            for candidate, dual in ((weights, pull), _on_margin(signed, precision, pull)):
                gap = _objective(signed, precision, candidate) - _dual(signed, precision, dual)
                best = min(best, (gap, candidate), key=lambda pair: pair[0])
            if best[0] <= MAX_GAP * 1e-3:
                break
    if not best[0] <= MAX_GAP:
        raise NumericalError(
            f"EM has not reached the mode: it may be {best[0]:.2g} nats below; take a smaller tau", "not_converged"
        )
    return best[1], max(best[0], 0.0)


def _on_margin(signed: np.ndarray, precision: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights of least objective, and duals, with rows of interior dual variables exactly on the margin."""
    inside = (pull > MARGIN) & (pull < 2 - MARGIN)
    terms, rows = len(precision), signed[inside]
    equations = np.block([[np.diag(precision), -rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    ends = np.where(inside, 0.0, np.where(pull > 1, 2.0, 0.0))
    solution = np.linalg.lstsq(equations, np.concatenate([ends @ signed, np.ones(len(rows))]), rcond=1e-13)[0]
    ends[inside] = solution[terms:]
    return solution[:terms], ends


def _dual(signed: np.ndarray, precision: np.ndarray, pull: np.ndarray) -> float:
    """Return a lower bound of the objective, from dual variables projected to their constraints."""
    share = np.clip(pull, 0.0, 2.0)
    is_above = signed[:, 0] > 0
    above, below = float(share @ is_above), float(share @ ~is_above)
    if not min(above, below) > 0:
        return 0.0
    share = share * min(above, below) / np.where(is_above, above, below)
    slopes = share @ signed[:, 1:]
    return float(share.sum() - np.sum(np.square(slopes) / precision[1:]) / 2)


def _chain(
    signed: np.ndarray, precision: np.ndarray, start: np.ndarray, length: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    """Draw the weights and the lam of all rows in turn; return draws of the weights, ``thin`` sweeps apart."""
    (draws, thin), weights = length, start + rng.standard_normal(len(start))
    kept = np.empty((draws, len(start)))
    for i in range(-WARMUP, draws * thin):
        factor, mean = _weights_law(signed, precision, inverse_gaussian(np.abs(1 - signed @ weights), rng))
        weights = mean + scipy.linalg.solve_triangular(factor, rng.standard_normal(len(mean)), lower=True, trans="T")
        if i >= 0 and i % thin == thin - 1:
            kept[i // thin] = weights
    return kept


def inverse_gaussian(inverse_mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw inverse Gaussian numbers of shape 1 and means ``1 / inverse_mean``, which may be arbitrarily large.

    Michael, Schucany and Haas 1976; the smaller root is computed without cancellation.
    """
    m, chi = np.maximum(inverse_mean, 1e-150), np.square(rng.standard_normal(len(inverse_mean)))
    smaller = 1 / (m + chi / 2 + np.sqrt(m * chi + chi * chi / 4))
    is_smaller = rng.random(len(m)) <= 1 / (1 + m * smaller)
    return np.where(is_smaller, smaller, 1 / (np.square(m) * smaller))
