"""Distributions of greatest entropy against published ones, SciPy's optimizer and known families."""

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from tests.refusals import raises


def test_jaynes_die():
    """A die with mean 4.5: .0544 .0788 .1142 .1654 .2398 .3475 (Jaynes 1957, up to the last digit of the first)."""
    answer = bz.maximum_entropy(np.arange(1, 7), 4.5)
    np.testing.assert_allclose(answer.probabilities, [0.0544, 0.0788, 0.1142, 0.1654, 0.2398, 0.3475], atol=6e-5)
    assert answer.probabilities @ np.arange(1, 7) == pytest.approx(4.5, rel=1e-12)
    assert answer.entropy == pytest.approx(scipy.stats.entropy(answer.probabilities), rel=1e-12)


def by_scipy(features, means):
    """Return the constrained maximum of the entropy by sequential quadratic programming."""
    states = len(features)
    constraints = [{"type": "eq", "fun": lambda p: p.sum() - 1}, {"type": "eq", "fun": lambda p: p @ features - means}]
    start, options = np.full(states, 1 / states), {"ftol": 1e-14, "maxiter": 500}
    bounds = [(1e-9, 1)] * states
    least = lambda p: -scipy.stats.entropy(p)  # noqa: E731
    return scipy.optimize.minimize(least, start, bounds=bounds, constraints=constraints, options=options).x


def test_several_features_are_scipys():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(8, 2))
    means = rng.dirichlet(np.ones(8)) @ features
    answer = bz.maximum_entropy(features, means)
    np.testing.assert_allclose(answer.probabilities, by_scipy(features, means), atol=1e-5)
    expected = np.exp(features @ answer.multipliers - answer.log_partition)
    np.testing.assert_allclose(answer.probabilities, expected, rtol=1e-10)


def test_with_a_base_measure_it_is_the_binomial():
    """Of the number of successes in n trials, base the binomial coefficients: the binomial with that mean."""
    k = np.arange(11)
    answer = bz.maximum_entropy(k, 3.0, base=scipy.special.binom(10, k))
    np.testing.assert_allclose(answer.probabilities, scipy.stats.binom(10, 0.3).pmf(k), rtol=1e-9)


def test_features_that_depend_on_each_other_change_nothing():
    x = np.arange(1.0, 7.0)
    one = bz.maximum_entropy(x, 4.5)
    both = bz.maximum_entropy(np.column_stack([x, 2 * x + 1, np.full(6, 3.0)]), [4.5, 10.0, 3.0])
    np.testing.assert_allclose(both.probabilities, one.probabilities, rtol=1e-10)
    far = bz.maximum_entropy(1e9 + 1e-3 * x, 1e9 + 4.5e-3)
    np.testing.assert_allclose(far.probabilities, one.probabilities, rtol=1e-3)
    even = bz.maximum_entropy(np.full((4, 1), 2.0), 2.0)
    np.testing.assert_allclose(even.probabilities, 0.25, rtol=1e-14)


def test_it_is_the_maximum_likelihood_estimate():
    """The expected features of the maximum-likelihood estimate of the family are those of the rows."""
    rng = np.random.default_rng(1)
    x = np.arange(6.0)
    rows = rng.choice(6, 200, p=scipy.special.softmax(-0.4 * x))
    answer = bz.maximum_entropy(x, rows.mean())
    log_likelihood = lambda m: np.sum(m * rows) - 200 * scipy.special.logsumexp(m * x)  # noqa: E731
    found = scipy.optimize.minimize_scalar(lambda m: -log_likelihood(m), bracket=(-2, 1)).x
    assert answer.multipliers[0] == pytest.approx(found, rel=1e-5)


def test_what_no_distribution_has_is_refused():
    die = np.arange(1, 7)
    for mean in (0.5, 6.0, 1.0, 7.0):
        with raises(bz.InputError, "out_of_range"):
            bz.maximum_entropy(die, mean)
    with raises(bz.InputError, "wrong_shape"):
        bz.maximum_entropy(die, [4.5, 1.0])
    with raises(bz.InputError, "no_data"):
        bz.maximum_entropy([], 4.5)
    for bad in ({"means": np.nan}, {"means": 4.5, "base": np.zeros(6)}):
        with raises(bz.InputError, "out_of_range"):
            bz.maximum_entropy(die, **bad)
