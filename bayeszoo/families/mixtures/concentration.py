"""The concentration of a Dirichlet process with a prior of its own: by quadrature, and in variational Bayes.

The rows depend on alpha through the sizes of their clusters alone. Escobar and West 1995, JASA 90, 577-588; Blei and
Jordan 2006, Bayesian Analysis 1, 121-143.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.grid_moments import moments_over
from bayeszoo.distributions.averages.integrated import OuterMarginal
from bayeszoo.distributions.conjugate import dirichlet
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import Expected, Factors
from bayeszoo.distributions.posterior import Marginal, Posterior
from bayeszoo.distributions.priors import Gamma, Prior
from bayeszoo.distributions.special import digamma_less_log, gamma_divergence
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import NumericalError
from bayeszoo.families.mixtures.sticks import (
    Labels,
    Products,
    Sticks,
    drawn,
    equal_breaks,
    later,
    log_clusters,
    log_density_at,
)
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.foundation.numerics.grid import Grid, enclosing
from bayeszoo.foundation.numerics.quadrature import Distribution, Rule, peak

DEPTH = 50.0
"""Nats below the maximum at which a density of alpha is cut off."""
INTERVALS, MOST_INTERVALS = 64, 1024
"""Initial and largest number of intervals of the quadrature."""
MAX_ERROR = 1e-9
"""Largest change of a log integral over alpha when the grid is halved; the error of the whole grid is far smaller."""

LEAST = -600.0
"""Log of the least mean of alpha under q."""
Sizes = tuple[int, ...]
"""Sizes of clusters; of none, nothing is known but the prior."""


@dataclass(frozen=True)
class Concentration:
    """alpha ~ prior, and clusters of N rows on K sticks given alpha, integrated over alpha."""

    prior: Prior
    sticks: int
    rows: int

    @cached_property
    def _rule(self) -> Rule:
        """The points of all integrals, where one cluster, or as many as there may be, leave alpha a density."""
        most = min(self.rows, self.sticks)
        extremes: list[Sizes] = [(), (self.rows,), (self.rows - most + 1, *(1,) * (most - 1))][: 1 + 2 * (most > 0)]
        centre, limits = np.array([self.prior.scale.place(self.prior.scale.inside(1.0))]), self.prior.scale.limits()
        boxes, tops = [], []
        for sizes in extremes:

            def height(points: np.ndarray, sizes: Sizes = sizes) -> np.ndarray:
                return self._heights(points[:, 0], sizes)

            boxes.append(enclosing(height, centre, np.ones(1), np.array([64.0]), DEPTH, limits))
            tops.append(peak(height, boxes[-1].low, boxes[-1].high, boxes[-1].highest))
        low, high = min(box.low[0] for box in boxes), max(box.high[0] for box in boxes)
        centres, scales = (np.array([top[i][0] for top in tops]) for i in (0, 1))
        intervals = INTERVALS
        while True:
            rule = Rule.between(low, high, centres, scales, intervals)
            errors = [Grid([rule], self._heights(rule.points, sizes)).error for sizes in extremes]
            if max(errors) <= MAX_ERROR or intervals >= MOST_INTERVALS:
                return rule
            intervals *= 2

    def _heights(self, places: np.ndarray, sizes: Sizes) -> np.ndarray:
        """Return the log density of a coordinate of alpha, times the probability of clusters of these sizes, (P,)."""
        scale, heights = self.prior.scale, np.full(len(places), -math.inf)
        alpha = np.asarray(scale.value(places))
        log_prior = np.asarray(self.prior.logpdf(alpha)) + scale.log_slope(places)
        inside = np.isfinite(log_prior) & (alpha > 0) & np.isfinite(alpha)
        heights[inside] = log_prior[inside] + (log_clusters(alpha[inside], self.sticks, sizes) if sizes else 0.0)
        return heights

    def _grid(self, heights: np.ndarray) -> Grid:
        """Return the density on the grid; raise `NumericalError` if it is too coarse."""
        grid = Grid([self._rule], heights)
        if not grid.error <= MAX_ERROR:
            problem = f"the integral over alpha ~ {self.prior} depends on its points: use --method gibbs"
            raise NumericalError(problem, "not_converged")
        return grid

    @cached_property
    def _grids(self) -> dict[Sizes, Grid]:
        return {}

    def of_clusters(self, sizes: Sizes) -> Grid:
        """Return the density of alpha's coordinate given clusters of these sizes, which integrates to theirs."""
        if sizes not in self._grids:
            self._grids[sizes] = self._grid(self._heights(self._rule.points, sizes))
        return self._grids[sizes]

    def on_sticks(self, counts: np.ndarray) -> Grid:
        """Return the density of alpha's coordinate given the rows on each stick, (K,), which integrates to theirs."""
        of_none = self.of_clusters(())
        ratios = dirichlet.log_dirichlet_ratio(equal_breaks(self.alphas, self.sticks), _ended_and_passed(counts))
        return self._grid(of_none.log_density + ratios.sum(axis=-1))

    @cached_property
    def alphas(self) -> np.ndarray:
        """The values of alpha at the points, (P,)."""
        return np.maximum(self.prior.scale.value(self._rule.points), TINY)

    def mixed(self, probabilities: Mapping[Sizes, float]) -> OuterMarginal:
        """Return the posterior of alpha, from the probabilities of the sizes of clusters."""
        parts = [self.of_clusters(sizes).log_density - self.of_clusters(sizes).log_integral for sizes in probabilities]
        shares = np.array([*probabilities.values()])[:, None]
        return self.marginal(Grid([self._rule], scipy.special.logsumexp(parts, axis=0, b=shares)))

    def marginal(self, grid: Grid) -> OuterMarginal:
        """Return the distribution of alpha, whose mean or sd is NaN where it does not exist."""
        parts = {"alpha": (self.alphas, np.zeros(len(self.alphas)))}
        moments = moments_over(grid, [(slice(None), parts)], {})["alpha"]
        coordinate = grid.distribution(0)
        return OuterMarginal(moments, [Distribution(self.prior.scale.value(coordinate.points), coordinate.below)])

    def drawn(self, grid: Grid, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw alpha, an array of a size."""
        places = grid.draw(math.prod(size), rng)[:, 0]
        return np.reshape(self.prior.scale.value(places), size)

    @cached_property
    def _sticks(self) -> list[Sticks]:
        return [Sticks.of(float(alpha), self.sticks) for alpha in self.alphas]

    def labels(self, sizes: Sizes, rng: np.random.Generator) -> Labels:
        """Return the law of the sticks of clusters, at a value of alpha drawn from the points given their sizes."""
        return self._sticks[rng.choice(len(self.alphas), p=self.of_clusters(sizes).mass)].labels(sizes)

    def posterior(self, counts: np.ndarray) -> Posterior:
        """Return the joint posterior of alpha and the weights given the rows on each stick, (K,)."""
        grid, ended = self.on_sticks(counts), _ended_and_passed(counts)

        def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
            alpha = self.drawn(grid, size, rng)
            return {"alpha": alpha, "weights": drawn(equal_breaks(alpha, self.sticks) + ended, (), rng)}

        def log_density(params: Params) -> np.ndarray:
            alpha, weights = (np.asarray(params[name], dtype=np.float64) for name in ("alpha", "weights"))
            of_rows = np.sum(scipy.special.xlogy(counts, weights), axis=-1)
            log_prior = self.prior.logpdf(alpha) + log_density_at(alpha, weights)
            return np.asarray(log_prior + of_rows - grid.log_integral)

        return Posterior(
            {"alpha": _Of(lambda: self.marginal(grid)), "weights": _Of(partial(self._weights, grid, counts))},
            draw,
            log_density,
        )

    def _weights(self, grid: Grid, counts: np.ndarray) -> Products:
        """Return means and standard deviations of the weights, which have no quantiles in closed form."""
        laws = [sticks.updated(Counts(counts)).marginals()["weights"] for sticks in self._sticks]
        parts = {"weights": (np.array([law.mean() for law in laws]), np.array([law.std() for law in laws]))}
        moments = moments_over(grid, [(slice(None), parts)], {})["weights"]
        return Products(moments.own_mean, moments.own_sd)


class _Of:
    """A marginal that is computed when it is first asked for, as most assignments need draws alone."""

    def __init__(self, law: Callable[[], Marginal]) -> None:
        self._make = law

    @cached_property
    def _law(self) -> Marginal:
        return self._make()

    def mean(self) -> Any:
        return self._law.mean()

    def std(self) -> Any:
        return self._law.std()

    def cdf(self, x: Any, /) -> Any:
        return self._law.cdf(x)

    def ppf(self, q: Any, /) -> Any:
        return self._law.ppf(q)


class Concentrated(NamedTuple):
    """Variational Bayes: q(alpha) = Gamma(shape, rate), and q of the others under the prior at the mean of alpha."""

    shape: float
    rate: float
    others: Factors[MixturePrior]

    @classmethod
    def best(cls, prior: Gamma, stats: Expected[MixturePrior]) -> Self:
        """Return the best q given expected statistics: of alpha and the sticks, each depends on the other's means.

        Blei and Jordan 2006, section 4: rate = prior rate - sum E[log(1 - v_k)]. The mean of alpha solves an equation
        whose left side, mean times rate, increases with it, so that there is one solution.
        """
        counts = stats.stats.parts[0].counts
        ended, passed = counts[:-1], later(counts)
        shape = float(prior.shape) + len(ended)

        def rate(mean: float) -> float:
            falls = scipy.special.digamma(1 + ended + passed + mean) - scipy.special.digamma(passed + mean)
            return float(prior.rate + falls.sum())

        def excess(log_mean: float) -> float:
            return math.exp(log_mean) * rate(math.exp(log_mean)) / shape - 1

        most = math.log(2 * shape / prior.rate)
        mean = math.exp(scipy.optimize.brentq(excess, LEAST, most, xtol=1e-15, rtol=1e-15))
        weights = Sticks.of(mean, len(counts))
        of_mean = MixturePrior((weights, stats.prior.law))
        return cls(shape, shape / mean, Factors(of_mean.updated(stats.stats), of_mean))

    def divergence(self, prior: Gamma) -> float:
        """Return KL(q || prior) in nats: that of the sticks is a mean over alpha, whose logarithm has another mean."""
        breaks = len(self.others.q.weights.alpha) - 1
        of_logs = -breaks * float(digamma_less_log(self.shape))
        of_alpha = float(gamma_divergence(self.shape, self.rate, prior.shape, prior.rate))
        return self.others.divergence + of_logs + of_alpha

    @property
    def posterior(self) -> Posterior:
        """The distribution q of all parameters."""
        alpha = Posterior({"alpha": frozen.gamma(self.shape, scale=1 / self.rate)})
        return Posterior.product(alpha, self.others.q.posterior())


def _ended_and_passed(counts: np.ndarray) -> np.ndarray:
    """Return the rows that end at each break and those that pass it, (K - 1, 2)."""
    return np.stack([counts[:-1], later(counts)], axis=-1)


@lru_cache(maxsize=8)
def concentration_of(prior: Prior, sticks: int, rows: int) -> Concentration:
    """Return `Concentration` from a cache: its tables serve all data of as many rows."""
    return Concentration(prior, sticks, rows)
