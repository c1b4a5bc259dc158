"""Regressions whose rows are Gaussian in the linear predictor given latent variables: EM, variational Bayes and Gibbs.

Given its latent variables, the log density of a row is a parabola in the linear predictor eta,
``linear eta - precision eta^2 / 2`` plus a constant, so that the weights are Gaussian (Tanner and Wong 1987). For a
logit link the latent variables are Polya-Gamma (Polson, Scott and Windle 2013), and mean field gives the bound of
Jaakkola and Jordan 2000 (Durante and Rigon 2019); for a probit link they are normal (Albert and Chib 1993; Consonni and
Marin 2007).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import lazy_loader
import numpy as np
import scipy

from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.glm.model import GeneralizedLinear
from bayeszoo.families.glm.probit import hazard
from bayeszoo.families.glm.rows import LinkedRows
from bayeszoo.families.linear.least_squares import gaussian
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.model.capabilities import EM, Gibbs, LogConcave, Variational
from bayeszoo.model.capabilities.steps import Coordinates, Expectation

loops = lazy_loader.load("bayeszoo.likelihoods.loops.augmented", suppress_warning=True)

MOST_TRIALS = 1_000_000
"""Most trials over all rows, each of which has a latent variable."""
FLAT = 1e-4
"""Largest predictor at which tanh is computed from its series."""


Counts = tuple[np.ndarray, np.ndarray]
"""Outcomes and trials of the rows, as whole numbers."""


class Parabola(NamedTuple):
    """Coefficients of ``linear eta - precision eta^2 / 2`` of each row, shape (n,)."""

    linear: np.ndarray
    precision: np.ndarray


class Augmentation(ABC):
    """Latent variables of rows that make the log density of each row a parabola in its linear predictor."""

    @abstractmethod
    def expected(
        self, eta: np.ndarray, variance: np.ndarray | float, outcome: np.ndarray, size: np.ndarray
    ) -> tuple[Parabola, np.ndarray]:
        """Return the expected parabola under the best q of the latent variables, and each row's log normalizer.

        The predictors have means ``eta`` and variances ``variance`` under q(weights). With variance 0 the normalizer is
        the log density of the row at ``eta``.
        """

    @abstractmethod
    def drawn(self, rows: LinkedRows, eta: np.ndarray, counts: Counts, rng: np.random.Generator) -> GaussianWeights:
        """Draw the latent variables given the predictors; return the Gaussian of the weights given them."""


class PolyaGamma(Augmentation):
    """A Polya-Gamma variable PG(trials, eta) for each row, given which a logit link is Gaussian."""

    def expected(
        self, eta: np.ndarray, variance: np.ndarray | float, outcome: np.ndarray, size: np.ndarray
    ) -> tuple[Parabola, np.ndarray]:
        """Return means trials tanh(c / 2) / (2 c), c^2 = E[eta^2], and the bound of Jaakkola and Jordan."""
        c, linear = np.sqrt(np.square(eta) + variance), outcome - size / 2
        far = np.maximum(c, FLAT)
        precision = size * np.where(c < FLAT, 0.25 - np.square(c) / 48, np.tanh(far / 2) / (2 * far))
        return Parabola(linear, precision), linear * eta - size * (c / 2 + np.log1p(np.exp(-c)))

    def drawn(self, rows: LinkedRows, eta: np.ndarray, counts: Counts, rng: np.random.Generator) -> GaussianWeights:
        """Draw the variable of each row, a sum over its trials."""
        (outcome, size), precision = counts, np.empty(len(eta))
        loops.polya_gamma(size, eta, precision, rng)
        return GaussianWeights.conditional(rows, Parabola(outcome - size / 2, precision))


class NormalNoise(Augmentation):
    """A latent variable for each trial: eta plus standard normal noise, above 0 for a success, below for a failure."""

    def expected(
        self, eta: np.ndarray, variance: np.ndarray | float, outcome: np.ndarray, size: np.ndarray
    ) -> tuple[Parabola, np.ndarray]:
        """Return sums of the means of truncated normals, and their log probabilities minus half the variance."""
        failures = size - outcome
        linear = size * eta + outcome * hazard(eta) - failures * hazard(-eta)
        value = outcome * scipy.special.log_ndtr(eta) + failures * scipy.special.log_ndtr(-eta) - size * variance / 2
        return Parabola(linear, size), value

    def drawn(self, rows: LinkedRows, eta: np.ndarray, counts: Counts, rng: np.random.Generator) -> GaussianWeights:
        """Draw the sum of the variables of each row's trials, then rescale them all with the weights integrated out.

        Without the second step chains mix slowly if the features nearly determine the outcomes (Liu and Wu 1999). Along
        a ray of latent variables z, R = sqrt(z' M z) with M the precision of z has the density of chi with as many
        degrees of freedom as trials, times exp(slope R), where the slope comes from the offset. A draw from chi is
        accepted or rejected by the second factor (Liu and Sabatti 2000).
        """
        (outcome, size), sums = counts, np.empty(len(eta))
        squares = loops.latent_normals(outcome, size, eta, sums, rng)
        conditional = GaussianWeights.conditional(rows, Parabola(sums, size.astype(np.float64)))
        shift = size * rows.offset
        if not squares:  # there is no trial
            return conditional
        pull, back = rows.design.T @ sums, rows.design.T @ shift
        solved = scipy.linalg.cho_solve((conditional.root, True), pull)
        radius = math.sqrt(max(squares - float(pull @ solved), TINY))
        slope = (rows.offset * float(sums.sum()) - float(back @ solved)) / radius
        proposal = math.sqrt(rng.chisquare(size.sum()))
        if math.log(1.0 - rng.random()) >= slope * (proposal - radius):
            return conditional
        return replace(conditional, mean=conditional.mean + (proposal / radius - 1) * solved)


@dataclass(frozen=True, eq=False)
class GaussianWeights:
    """A Gaussian of the weights in units of the prior: ``mean`` (T,), and the lower ``root`` of the precision (T, T).

    ``weight`` (n,) is the precision that each row adds to the prior's.
    """

    rows: LinkedRows
    weight: np.ndarray
    mean: np.ndarray
    root: np.ndarray

    @classmethod
    def conditional(cls, rows: LinkedRows, parabola: Parabola, flat: bool = False) -> GaussianWeights:
        """Return the Gaussian given the parabola of each row; ``flat`` without the prior."""
        linear, weight = parabola
        root = _root(rows, weight, flat)
        mean = scipy.linalg.cho_solve((root, True), rows.design.T @ (linear - weight * rows.offset))
        return cls(rows, weight, np.asarray(mean), root)

    @cached_property
    def variance(self) -> np.ndarray:
        """The variance of the linear predictor of each row, shape (n,)."""
        spread = scipy.linalg.solve_triangular(self.root, self.rows.design.T, lower=True)
        return np.asarray(np.sum(np.square(spread), axis=0))

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw weights in units of the prior, shape (T,)."""
        noise = rng.standard_normal(self.rows.size)
        return np.asarray(self.mean + scipy.linalg.solve_triangular(self.root.T, noise))

    @property
    def divergence(self) -> float:
        """KL divergence from the prior N(0, I), in nats."""
        inverse = scipy.linalg.solve_triangular(self.root, np.eye(self.rows.size), lower=True)
        squares = float(np.sum(np.square(inverse)) + self.mean @ self.mean)
        return (squares - self.rows.size) / 2 + float(np.sum(np.log(np.diag(self.root))))

    @property
    def vector(self) -> np.ndarray:
        """The mean, and the logs of the precisions that rows add, shape (T + n,)."""
        return np.concatenate([self.mean, np.log(self.weight)])

    @classmethod
    def at(cls, rows: LinkedRows, vector: np.ndarray) -> GaussianWeights:
        """Return the Gaussian of a vector (T + n,)."""
        mean, weight = vector[: rows.size], np.exp(vector[rows.size :])
        return cls(rows, weight, mean, _root(rows, weight))


def _root(rows: LinkedRows, weight: np.ndarray, flat: bool = False) -> np.ndarray:
    precision = rows.design.T @ (rows.design * weight[:, None]) + (0 if flat else np.eye(rows.size))
    try:
        return np.asarray(np.linalg.cholesky(precision))
    except np.linalg.LinAlgError:
        raise NumericalError("the data do not determine all weights", "not_identified") from None


class WeightsChain:
    """Gibbs sampling: latent variables of the rows given the weights, then the weights given these.

    The posterior has one mode, so that chains are not annealed: the power of a sweep is ignored.
    """

    def __init__(self, start: GaussianWeights, augmentation: Augmentation, rng: np.random.Generator) -> None:
        rows = start.rows
        if (trials := float(rows.sizes.sum())) > MOST_TRIALS:
            refused = (
                f"Gibbs sampling draws a latent variable for each of {trials:,.0f} trials, more than {MOST_TRIALS:,}"
            )
            raise InputError(
                refused, "no_capability", hint="use nuts, whose cost does not grow with the trials of a row"
            )
        self._rows, self._augmentation, self._rng = rows, augmentation, rng
        self._counts = rows.outcome.astype(np.int64), rows.sizes.astype(np.int64)
        self._u = start.draw(rng)

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw latent variables and weights, in N sweeps."""
        for _ in range(times):
            eta = self._rows.eta(self._u)
            self._u = self._augmentation.drawn(self._rows, eta, self._counts, self._rng).draw(self._rng)

    def draw(self) -> dict[str, np.ndarray]:
        """Return the weights."""
        return self._rows.params(self._u)

    @property
    def log_joint(self) -> float:
        """Log p(y, w) of the ordered rows, latent variables integrated out, with every constant."""
        likelihood = self._rows.values(self._u[None])[0]
        return float(likelihood + self._rows.log_prior(self._rows.params(self._u)))


@dataclass(frozen=True)
class Augmented(LogConcave, EM, Variational, Gibbs, family=True):
    """Rows with a link that are Gaussian in their predictors given latent variables, the ``augmentation``.

    EM climbs to the mode, which Newton's method reaches faster. Variational Bayes assumes that latent variables and
    weights are independent, and understates the uncertainty of the weights.
    """

    augmentation: ClassVar[Augmentation]

    @abstractmethod
    def concave(self, data: Arrays, **profiled: float) -> LinkedRows:
        """Return the log likelihood of the rows in units of the prior."""

    def _expected(self, rows: LinkedRows, u: np.ndarray, variance: np.ndarray | float) -> tuple[Parabola, np.ndarray]:
        return self.augmentation.expected(rows.eta(u), variance, rows.outcome, rows.sizes)

    def _dispersed(self, data: Arrays) -> GaussianWeights:
        """Return a wide Gaussian near the posterior, given the expected latent variables at weights of 0."""
        rows = self.concave(data)
        return GaussianWeights.conditional(rows, self._expected(rows, np.zeros(rows.size), 0.0)[0])

    # EM

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw weights from a wide Gaussian."""
        start = self._dispersed(data)
        return start.rows.params(start.draw(rng))

    def e_step(self, params: Params, data: Arrays) -> Expectation:
        """Return the expected parabola of each row and the log likelihood."""
        rows = self.concave(data)
        parabola, value = self._expected(rows, rows.place(params), 0.0)
        return Expectation((rows, parabola), math.fsum(value))

    def m_step(self, stats: tuple[LinkedRows, Parabola], flat: bool = False) -> dict[str, np.ndarray]:
        """Return the mode of the weights given the parabolas: a regression with weighted rows."""
        return stats[0].params(GaussianWeights.conditional(*stats, flat).mean)

    def log_prior(self, params: Params, data: Arrays) -> Any:
        """Return the log density of the Gaussian prior; leading axes of the weights are draws."""
        return self.concave(data).log_prior(params)

    def free_parameters(self, stats: Arrays) -> int:
        """Return the number of weights."""
        return self.concave(stats).size

    def coordinates(self, data: Arrays) -> Coordinates:
        """Return weights in units of the prior."""
        rows = self.concave(data)
        return Coordinates(rows.place, rows.params)

    # Variational Bayes

    def vb_start(self, data: Arrays, rng: np.random.Generator) -> GaussianWeights:
        """Return q(weights) given the expected latent variables at randomly drawn weights."""
        start = self._dispersed(data)
        return GaussianWeights.conditional(start.rows, self._expected(start.rows, start.draw(rng), 0.0)[0])

    def vb_e_step(self, q: GaussianWeights, data: Arrays) -> Expectation:
        """Return the expected parabola of each row, and the sum of the log normalizers."""
        parabola, value = self._expected(q.rows, q.mean, q.variance)
        return Expectation((q.rows, parabola), math.fsum(value))

    def vb_m_step(self, stats: tuple[LinkedRows, Parabola]) -> GaussianWeights:
        """Return the Gaussian of the weights given the parabolas."""
        return GaussianWeights.conditional(*stats)

    def vb_row_terms(self, q: GaussianWeights, data: Arrays) -> np.ndarray:
        """Return the log normalizer of each row's latent variables."""
        return self._expected(q.rows, q.mean, q.variance)[1]

    def divergence(self, q: GaussianWeights) -> float:
        """Return KL(q(weights) || prior) in nats."""
        return q.divergence

    def vb_posterior(self, q: GaussianWeights) -> Posterior:
        """Return the Gaussian of the weights in the user's units."""
        return gaussian(q.rows.name, q.rows.gaussian_of(q.mean, q.weight))

    def vb_log_density(self, q: GaussianWeights, params: Params) -> np.ndarray:
        """Return the log density of q(weights); leading axes of the weights are draws."""
        return self.vb_posterior(q).logpdf(params)

    def vb_coordinates(self, data: Arrays) -> Coordinates:
        """Return coordinates: the mean of the weights, and the logs of the precisions that rows add."""
        rows = self.concave(data)
        return Coordinates(lambda q: q.vector, partial(GaussianWeights.at, rows))

    # Gibbs sampling

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> WeightsChain:
        """Return a chain over the weights, started at a draw from a wide Gaussian."""
        return WeightsChain(self._dispersed(data), self.augmentation, rng)


@dataclass(frozen=True)
class AugmentedLinear(GeneralizedLinear, Augmented, family=True):
    """A regression with a link whose rows are Gaussian given latent variables."""
