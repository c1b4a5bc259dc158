"""A softmax gate, which gives the probability of each expert in a row from its features, and its steps of EM.

Given the responsibilities of the experts, the best gate is a softmax regression on responsibilities instead of labels,
fitted by Newton's method. Jordan and Jacobs 1994.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from bayeszoo.distributions.conjugate.regressions import Regressions
from bayeszoo.distributions.discrete import LogitCategorical
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.experts.model import Experts, collapsed
from bayeszoo.families.glm.existence import combination
from bayeszoo.families.glm.softmax import KEPT_FINITE, SoftmaxRows
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.newton import Derivatives
from bayeszoo.model.capabilities.steps import Coordinates
from bayeszoo.model.fields import positive

SEPARATED = 1e-8
"""Smallest curvature of the likelihood, with orthonormal terms; below it weights of the gate run to infinity."""
RIDGE = 1e-12
"""Share of the largest curvature added to the diagonal: rounding leaves no curvature if the gate separates rows."""


@dataclass(frozen=True, eq=False)
class GateRows(SoftmaxRows):
    """Rows with responsibilities ``r`` (n, K) of K classes, which sum to 1, instead of one class each."""

    r: np.ndarray

    def derivatives(self, u: np.ndarray) -> Derivatives:
        """Return the expected log likelihood at u, its gradient, and a curvature with which steps always climb."""
        derivatives = super().derivatives(u)
        ridge = RIDGE * (1 + np.max(np.diag(derivatives.curvature), initial=0.0))
        return derivatives._replace(curvature=derivatives.curvature + ridge * np.eye(self.size))

    def heights(self, law: LogitCategorical) -> np.ndarray:
        """Return the expected log probability of the class of each row, (..., rows)."""
        return np.sum(self.r * law.log_p, axis=-1)

    def slopes(self, p: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the slope in each logit, (rows, K), accurate also when responsibility and probability are near 1."""
        return self.r * others - (1 - self.r) * p


class Assigned(NamedTuple):
    """Rows, responsibilities of the experts (rows, K), weighted moments of the rows, and the experts' prior."""

    data: Arrays
    r: np.ndarray
    moments: Moments
    law: Regressions


@dataclass(frozen=True)
class GatedExperts(Experts, family=True):
    """Experts whose weights in a row are the softmax of K linear predictors of its features.

    The parameter ``gate`` (T, K) holds the predictors' weights, which sum to 0 over the experts, as only differences
    matter.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the gate's weights of a standardized term, in log odds, > 0.
    s0 : float
        Prior standard deviation of the gate's intercepts, in log odds, > 0.
    """

    tau: float = positive(5.0, "prior sd of the gate's weights tau", axes=("slope",), kw_only=True)
    s0: float = positive(5.0, "prior sd of the gate's intercepts s0", kw_only=True)

    def gate_sd(self, data: Arrays) -> np.ndarray:
        """Return the prior standard deviation of the gate's weights for each term, in the user's units, (T,)."""
        units = self.units(self.nothing(data))
        return np.asarray(self.term_scales(len(units), self.s0, "tau") / units)

    def log_row_weights(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log of the probability of each expert in each row, (..., rows, K)."""
        return LogitCategorical(self.design(data) @ np.asarray(params["gate"])).log_p

    def row_weights(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each expert in each row by its features, (..., rows, K)."""
        return np.exp(self.log_row_weights(params, data))

    def shares(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean probability of each expert over the rows, (..., K)."""
        return self.row_weights(params, data).mean(axis=-2)

    def log_terms(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log of weight times density, of shape (..., rows, K); leading axes of the parameters are draws."""
        return self.log_row_weights(params, data) + self.component_law(data).log_density(params, data)

    def expected_statistics(self, r: np.ndarray, data: Arrays) -> Assigned:
        """Return the expected statistics under responsibilities ``r``, of shape (rows, K)."""
        law = self.component_law(data)
        return Assigned(data, r, law.statistics(data, r), law)

    def m_step(self, stats: Assigned, flat: bool = False) -> dict[str, np.ndarray]:
        """Return the modes of the gate and of each expert given expected statistics, or with ``flat`` the maxima."""
        law, moments = stats.law, stats.moments
        experts = law.mle(moments) if flat else law.updated(moments).mode()
        return {"gate": self._best_gate(stats, flat), **experts}

    def _best_gate(self, stats: Assigned, flat: bool) -> np.ndarray:
        sd = self.gate_sd(stats.data)
        rows = self._gate_rows(self.design(stats.data), sd, stats.r, flat)
        gate = np.concatenate([np.zeros((int(flat), len(sd))), rows.params(rows.highest(flat).x)["w"]])
        return np.asarray((gate - gate.mean(axis=0)).T)

    def _gate_rows(self, terms: np.ndarray, sd: np.ndarray, r: np.ndarray, flat: bool) -> GateRows:
        """Return the gate's likelihood in units of sd; with ``flat`` the weights of the first component are 0."""
        names, nothing = [str(k + 1) for k in range(self.K)], np.zeros_like(sd)
        return GateRows(terms * sd, nothing, names, int(flat), 0.0, nothing, sd, [], self.intercept, r)

    def log_prior(self, params: Params, data: Arrays) -> np.ndarray:
        """Log prior density, of the gate's weights in their K - 1 coordinates; leading axes are draws."""
        sd = self.gate_sd(data)[:, None]
        squares = np.sum(np.square(np.asarray(params["gate"]) / sd), axis=(-1, -2))
        constant = (self.K - 1) * np.sum(np.log(2 * math.pi * np.square(sd)))
        return np.asarray(self.component_law(data).logpdf(params) - (squares + constant) / 2)

    def free_parameters(self, stats: Arrays) -> int:
        """Return the number of free parameters of the likelihood; the gate's weights sum to 0."""
        law = self.component_law(stats)
        return law.free_parameters + (self.K - 1) * law.terms

    def degenerate(self, params: Params, stats: Assigned) -> str:
        """Return the reason why a fitted point is a degenerate maximum; empty if it is not."""
        return collapsed(params, stats.law, stats.moments)

    def undetermined(self, params: Params, data: Arrays, stats: Assigned, flat: bool) -> str:
        """Say which rows the gate separates, so that its weights run to infinity as in a logistic regression."""
        if not flat or self.K == 1:
            return ""
        terms, triangle = np.linalg.qr(self.design(data))
        gate = triangle @ np.asarray(params["gate"])
        rows = self._gate_rows(terms, np.ones(len(triangle)), stats.r, True)
        values, vectors = np.linalg.eigh(rows.derivatives(np.ravel((gate[:, 1:] - gate[:, :1]).T)).curvature)
        if values[0] > SEPARATED:
            return ""
        away = np.concatenate([np.zeros((1, len(triangle))), vectors[:, 0].reshape(self.K - 1, -1)])
        away = (away - away.mean(axis=0)) @ np.linalg.inv(triangle).T
        k, constants = int(np.argmax(np.linalg.norm(away, axis=1))), int(self.intercept)
        by = combination(away[k, constants:], self.coords(data)["slope"].tolist())
        apart = f"{by} separates the rows of component {k + 1} from those of the others"
        return f"{apart}, and the gate's weights run to infinity; {KEPT_FINITE}"

    def remarks(self, stats: object, data: Arrays) -> tuple[str, ...]:
        """Explain the gate's weights, the identified sums of weights, and the point of the intercept."""
        gate = "the gate's weights sum to 0 over the components: the log odds of two are the difference of theirs"
        return (*super().remarks(stats, data), *[gate] * (self.K > 1))

    def coordinates(self, data: Arrays) -> Coordinates:
        """Return the parameters in units of their priors, and logs of variances."""
        law, sd = self.component_law(data), self.gate_sd(data)[:, None]
        ends = np.cumsum([sd.size * self.K, law.m.size])

        def to_vector(params: Params) -> np.ndarray:
            u = law.root @ (np.asarray(params["w"]) - law.m)[..., None]
            return np.concatenate([np.ravel(params["gate"] / sd), np.ravel(u), np.log(params["sigma2"])])

        def from_vector(vector: np.ndarray) -> dict[str, np.ndarray]:
            gate, u, log_variance = np.split(vector, ends)
            w = law.m + scipy.linalg.solve(law.root, u.reshape(*law.m.shape, 1))[..., 0]
            return {"gate": sd * gate.reshape(-1, self.K), "w": w, "sigma2": np.exp(log_variance)}

        return Coordinates(to_vector, from_vector)
