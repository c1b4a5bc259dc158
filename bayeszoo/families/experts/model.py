"""Steps shared by mixtures whose components are linear regressions."""

from __future__ import annotations

from abc import abstractmethod
from functools import reduce
from operator import add
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.mixture_rows import RealRows
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import Expected
from bayeszoo.distributions.conjugate.regressions import Regressions, upper_root
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import NumericalError
from bayeszoo.families.linear.least_squares import solve
from bayeszoo.families.linear.model import NormalInverseGamma
from bayeszoo.families.mixtures.base import HiddenComponents, MixtureModel
from bayeszoo.foundation.named import Arrays, Coords, Params, Statistics
from bayeszoo.model.capabilities import Observable

ours = lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)

COLLAPSED = 1e-5
"""Ratio of a noise variance to that of one regression of all rows, below which a maximum is degenerate."""


class Experts(NormalInverseGamma, HiddenComponents, Observable, family=True):
    """A mixture of K linear regressions with normal-inverse-gamma priors.

    Parameters are ``w`` (K, T) in the user's units, ``sigma2`` (K,), and those of `row_weights`.
    """

    has_identity_link = False
    nonnegative = ("sigma2",)

    @abstractmethod
    def row_weights(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the prior probability of each regression in each row, without its outcome, (..., rows, K)."""

    @classmethod
    def weak(cls, data: Arrays) -> Any:
        """Standardize; prior sd of weights ten noise sd, noise variances about the outcome's divided by K squared."""
        return super().weak(data).labelled(data)

    def weak_fields(self, data: Arrays) -> dict[str, Any]:
        """Return the fields of the prior, scaled to the data."""
        return {"V0": 100.0, "a0": 1.5, "b0": 0.5 * self.outcome_sd(data) ** 2 / self.K**2, **self.standardized(data)}

    def coords(self, data: Arrays) -> Coords:
        """Return the names of the terms, and the numbers of the regressions."""
        return {**super().coords(data), "component": np.arange(1, self.K + 1)}

    def whitened(self, data: Arrays) -> Any:
        """Return coordinates in which the weights of a single regression of all rows would be standard normal."""
        stats = self.statistics(data)
        solution = solve(*self.equations(stats), *self.prior_of_standardized(stats))
        return ours.Whitened(self.in_units(stats, solution), self.noise_sd(stats))

    def component_law(self, data: Arrays) -> Regressions:
        """Return the K regressions, with their prior."""
        mean, root = self.prior_of_weights(self.nothing(data))
        m, roots = np.tile(mean, (self.K, 1)), np.tile(upper_root(np.linalg.inv(root)), (self.K, 1, 1))
        a, b = np.full(self.K, float(self.a0)), np.full(self.K, float(self.b0))
        return Regressions(("w", "sigma2"), "y", m, roots, a, b, self.design)

    def seeds(self, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Return responsibilities (rows, K) to start from: each row of the nearest of K planes through random rows."""
        design, y = self.design(data), np.asarray(data["y"], dtype=np.float64)
        size = min(design.shape[1] + 1, len(y))
        chosen = [rng.choice(len(y), size, replace=False) for _ in range(self.K)]
        planes = [np.linalg.lstsq(design[rows], y[rows])[0] for rows in chosen]
        away = np.abs(y[:, None] - design @ np.transpose(planes))
        return np.eye(self.K)[np.argmin(away + 1e-9 * rng.random(away.shape) * np.ptp(y), axis=1)]

    def lines(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean of each row in each regression, (..., rows, K)."""
        return np.swapaxes(np.asarray(params["w"]) @ self.design(data).T, -1, -2)

    def predictor(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean outcome of each row, (..., rows)."""
        return np.sum(self.row_weights(params, data) * self.lines(params, data), axis=-1)

    def likelihood(self, params: Params, data: Arrays) -> RealRows:
        """Return each row's distribution; parameters with leading axes (...) give (..., rows)."""
        lines, sds = self.lines(params, data), np.sqrt(np.asarray(params["sigma2"]))[..., None, :]
        return RealRows(self.row_weights(params, data), frozen.norm(lines, sds))

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """Explain which sums of weights the data identify, and the point of the intercept."""
        return super().remarks(None, data)


class RegressionMixture(Experts, MixtureModel, family=True):
    """A mixture of K linear regressions with ``weights`` (K,) that do not depend on features."""

    probabilities = ("weights",)

    def row_weights(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the weights of the regressions, the same in each row, (..., rows, K)."""
        weights = np.asarray(params["weights"])[..., None, :]
        return np.broadcast_to(weights, (*weights.shape[:-2], self.inputs.size(data), self.K))

    def degenerate(self, params: Params, stats: Expected[MixturePrior]) -> str:
        """Return the reason why a fitted point is a degenerate maximum; empty if it is not."""
        return collapsed(params, stats.prior.law, stats.stats.parts[1])


def collapsed(params: Params, law: Regressions, moments: Moments) -> str:
    """Name the regression of a fitted point that has collapsed; empty if none has.

    It holds fewer than T + 1 rows, or its noise variance is below 1e-5 of that of a single regression.
    """
    needed = law.terms + 1
    if np.any(moments.n < needed):
        k = int(np.argmin(moments.n))
        line = f"it holds {moments.n[k]:.6g} rows, and T + 1 = {needed} are needed"
        return f"component {k + 1} has collapsed: {line}"
    try:
        of_all = law[0].mle(reduce(add, (moments[k] for k in range(len(moments.n)))))["sigma2"]
    except NumericalError:
        return ""
    share = np.asarray(params["sigma2"]) / of_all
    k = int(np.argmin(share))
    line = f"its noise has {share[k]:.1g} of the variance about a single regression"
    return f"component {k + 1} has collapsed: {line}" if share[k] < COLLAPSED else ""
