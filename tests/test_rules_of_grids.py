"""Rules of quadrature and grids of them: against known integrals of polynomials and of normal distributions."""

import math

import numpy as np
import pytest
import scipy

from bayeszoo.foundation.numerics import grid as rules
from bayeszoo.foundation.numerics.quadrature import Rule


class TwoPeaks(rules.Integrand):
    """Two correlated normal distributions of three numbers, by SciPy."""

    names, low, high = ("a", "b", "c"), np.full(3, -12.0), np.array([12.0, 15.0, 12.0])
    laws = (
        scipy.stats.multivariate_normal(np.zeros(3), [[1.0, 0.5, -0.4], [0.5, 1.0, 0.2], [-0.4, 0.2, 1.0]]),
        scipy.stats.multivariate_normal([1.0, 4.0, 1.0], 0.64 * np.eye(3)),
    )

    def log_density(self, points):
        return np.logaddexp(np.log(0.7) + self.laws[0].logpdf(points), np.log(0.3) + self.laws[1].logpdf(points))

    def values(self, i, places):
        return np.asarray(places)


def test_of_three_coordinates_only_points_with_density_are_evaluated():
    """The integral is 1, and the distributions are known."""
    integrand = TwoPeaks()
    grid = rules.refined(integrand, lambda grid: grid.error < 1e-6)
    assert grid.log_integral == pytest.approx(0.0, abs=1e-10)
    assert grid.error < 1e-6
    for i, mean in enumerate(integrand.laws[1].mean):
        below = 0.7 * scipy.stats.norm.cdf(1.0) + 0.3 * scipy.stats.norm(mean, 0.8).cdf(1.0)
        assert grid.distribution(i).cdf(1.0) == pytest.approx(below, abs=1e-6)
    full = integrand.heights([rule.points for rule in grid.rules])
    is_other = full != grid.log_density
    assert np.mean(is_other) > 0.1
    assert np.max(full[is_other]) < np.max(full) - rules.SKIPPED


def test_tails_that_a_coarser_grid_has_too_low_are_evaluated():
    """Neighbours of points of high density are evaluated until all are low, whatever the coarser grid says."""
    integrand = TwoPeaks()
    rule = [Rule.between(low, high, 0.0, 1.0, 16) for low, high in zip(integrand.low, integrand.high, strict=True)]
    coarse = rules.Grid(rule, np.where(integrand.heights([each.points for each in rule]) > -20, -5.0, -200.0))
    finer = [Rule.between(low, high, 0.0, 1.0, 32) for low, high in zip(integrand.low, integrand.high, strict=True)]
    heights, full = rules._heights(integrand, finer, coarse), integrand.heights([each.points for each in finer])
    assert heights[full > np.max(full) - 40] == pytest.approx(full[full > np.max(full) - 40], abs=1e-12)


@pytest.mark.parametrize("centre", [0.0, 0.3, -5.0])
def test_gregory_s_rule_is_exact_to_fourth_order_and_its_half_too(centre):
    errors = []
    for intervals in (32, 64, 128):
        rule = Rule.between(-1.0, 2.0, centre, 0.5, intervals)
        sums = (each.weights @ np.exp(each.points) for each in (rule, rule.halved()))
        errors.append([abs(total - (math.e**2 - 1 / math.e)) for total in sums])
    assert errors[1][0] < errors[0][0] / 10
    assert errors[2][1] == pytest.approx(errors[1][0], rel=1e-6)
    assert errors[2][0] < min(errors[1][0] / 10, 2e-5)
