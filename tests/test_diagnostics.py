"""Errors of draws that are known to be independent, against ArviZ and against many replications."""

import numpy as np
import pytest

from bayeszoo.foundation.diagnostics import mcse, smoothed_weights

DRAWS = np.random.default_rng(5).gamma(2, size=(4, 250, 2000))
FLAT = DRAWS.reshape(1000, -1)
ESTIMATES = {
    ("mean", None): FLAT.mean(axis=0),
    ("sd", None): FLAT.std(axis=0, ddof=1),
    **{("quantile", prob): np.quantile(FLAT, prob, axis=0) for prob in (0.025, 0.5, 0.975)},
}


@pytest.mark.parametrize("which", ESTIMATES)
def test_the_error_of_independent_draws_is_the_spread_of_estimates_and_arvizs_but_for_its_noise(which):
    errors = mcse(DRAWS, *which, independent=True)
    # ArviZ's order statistics, which are whole numbers, are a tenth too far apart at the ends
    assert -0.05 < np.log(errors.mean() / ESTIMATES[which].std()) < (0.25 if which[1] in (0.025, 0.975) else 0.05)
    theirs = mcse(DRAWS[..., :100], *which)
    assert abs(np.log(errors[:100].mean() / theirs.mean())) < 0.08
    assert abs(np.log(mcse(DRAWS[:, ::2], *which, independent=True).mean() / theirs.mean())) > 0.2  # half of the draws


def test_draws_that_are_all_alike_have_the_errors_that_arviz_gives_them():
    alike = np.ones((4, 100, 2))
    for which in ESTIMATES:
        np.testing.assert_array_equal(mcse(alike, *which, independent=True), mcse(alike, *which))


def test_weights_whose_largest_are_equal_are_not_smoothed():
    rng = np.random.default_rng(0)
    tied = np.where(np.arange(1000) < 500, 0.0, rng.normal(-3, 1, 1000))
    weights, k_hat = smoothed_weights(-tied)
    assert (float(k_hat), weights) == (-np.inf, pytest.approx(tied - np.log(np.sum(np.exp(tied))), rel=1e-12))
    varied = rng.normal(size=1000)
    both = [smoothed_weights(-each) for each in (tied, varied)]
    together = smoothed_weights(-np.stack([tied, varied]))
    for i, (alone, shape) in enumerate(both):
        assert together[0][i] == pytest.approx(alone, rel=1e-12)
        assert together[1][i] == shape
