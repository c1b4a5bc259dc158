"""The mean of rows of known covariance, against SciPy's multivariate normal and against `gaussian_mean`."""

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.tools.information import summarized
from tests.refusals import raises

Vector, Scalar = bz.find("gaussian_mean_vector"), bz.find("gaussian_mean")


def some(seed=0, rows=7, columns=3):
    rng = np.random.default_rng(seed)
    prior, noise = (a @ a.T + 0.1 * np.eye(columns) for a in rng.normal(size=(2, columns, columns)))
    return Vector(m0=rng.normal(size=columns), S0=prior, Sigma=noise), rng.normal(1, 2, size=(rows, columns))


def moved(model, Y, offset):
    """Return the statistics of rows, and the model, moved by a number: the evidence stays."""
    return Moments.of(Y + offset), model.replaced(m0=tuple(np.asarray(model.m0) + offset))


def test_the_evidence_is_scipys_density_of_all_rows_together():
    model, Y = some()
    whole = np.kron(np.ones((7, 7)), model.S0) + np.kron(np.eye(7), model.Sigma)
    expected = scipy.stats.multivariate_normal(np.tile(model.m0, 7), whole).logpdf(Y.ravel())
    assert model.log_evidence(Moments.of(Y)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_the_posterior_is_that_of_the_textbook(rows):
    model, Y = some(rows=rows)
    prior, noise = np.linalg.inv(model.S0), np.linalg.inv(model.Sigma)
    covariance = np.linalg.inv(prior + rows * noise)
    mean = covariance @ (prior @ model.m0 + noise @ Y.sum(axis=0))
    posterior = model.posterior(Moments.of(Y))
    np.testing.assert_allclose(posterior["mu"].mean(), mean, rtol=1e-10)
    np.testing.assert_allclose(posterior.covariance(), covariance, rtol=1e-9, atol=1e-12)
    point = np.array([0.3, -1.0, 2.0])
    expected = scipy.stats.multivariate_normal(mean, covariance).logpdf(point)
    assert posterior.logpdf({"mu": point}) == pytest.approx(expected, abs=1e-9)


def test_the_predictive_is_the_ratio_of_evidences():
    model, Y = some()
    data = bz.read(Vector, Y[-1:])
    law = model.predictive(Moments.of(Y[:-1]), data)
    ratio = model.log_evidence(Moments.of(Y)) - model.log_evidence(Moments.of(Y[:-1]))
    assert law.logpdf(Y[-1:])[0] == pytest.approx(ratio, rel=1e-11)


def test_one_column_is_gaussian_mean():
    y = np.array([1.2, -0.4, 2.9, 0.3])
    alone, vector = Scalar(m0=0.5, s0=2.0, sigma=1.5), Vector(m0=0.5, S0=4.0, Sigma=2.25)
    stats = Moments.of(y[:, None])
    assert vector.log_evidence(stats) == pytest.approx(alone.log_evidence(Moments.of(y)), rel=1e-13)
    own, expected = vector.posterior(stats)["mu"], alone.posterior(Moments.of(y))["mu"]
    assert (own.mean()[0], own.std()[0]) == pytest.approx((float(expected.mean()), float(expected.std())), rel=1e-13)


def test_columns_without_correlation_are_gaussian_means_side_by_side():
    _, Y = some()
    vector = Vector(m0=0.0, S0=9.0, Sigma=np.diag([1.0, 4.0, 0.25]))
    alone = [Scalar(0.0, 3.0, sd).log_evidence(Moments.of(Y[:, j])) for j, sd in enumerate((1.0, 2.0, 0.5))]
    assert vector.log_evidence(Moments.of(Y)) == pytest.approx(sum(alone), rel=1e-13)


def test_far_from_zero_and_with_wide_priors_no_digit_is_lost():
    model, Y = some()
    far_stats, far = moved(model, np.round(Y, 3), 2.0**30)
    assert far.log_evidence(far_stats) == pytest.approx(model.log_evidence(Moments.of(np.round(Y, 3))), abs=1e-5)
    wide = model.replaced(S0=tuple(map(tuple, 1e12 * np.asarray(model.S0))))
    covariance = np.asarray(model.Sigma) / 7
    np.testing.assert_allclose(wide.posterior(Moments.of(Y)).covariance(), covariance, rtol=1e-9)


def test_the_entropy_of_a_row_is_scipys():
    model, Y = some()
    told = model.entropies({"mu": Y[:1]}, {})["entropy"]
    assert told == pytest.approx(scipy.stats.multivariate_normal(Y[0], model.Sigma).entropy())


def test_what_is_the_same_in_all_draws_has_no_spread():
    """As the entropy of a row, where the mean of equal numbers is rounded: an sd of 1e-16 was printed."""
    values = np.broadcast_to(np.arange(1, 51) / 7, (4, 2000, 50))
    assert (values != values.mean(axis=(0, 1))).any()
    columns, _ = summarized(values, "exact", is_bounded=False)
    assert (columns["sd"] == 0).all()
    assert (columns["mcse_mean"] == 0).all()


def test_the_divergence_of_a_row_is_the_mean_log_ratio():
    model, Y = some()
    other = model.replaced(Sigma=4.0)
    mu, nu = {"mu": Y[:1]}, {"mu": Y[1:2]}
    rows = scipy.stats.multivariate_normal(Y[0], model.Sigma).rvs(20_000, random_state=1)
    ratio = scipy.stats.multivariate_normal(Y[0], model.Sigma).logpdf(rows)
    ratio = ratio - scipy.stats.multivariate_normal(Y[1], 4 * np.eye(3)).logpdf(rows)
    assert abs(ratio.mean() - model.row_divergence(mu, other, nu, {})[0]) < 4 * ratio.std() / np.sqrt(len(rows))


def test_without_rows_there_is_no_mle_and_other_columns_are_refused():
    model, Y = some(rows=0)
    with raises(NumericalError, "no_data"):
        model.mle(Moments.of(Y))
    with raises(InputError, "wrong_shape"):
        model.log_evidence(Moments.of(np.zeros((2, 2))))
    with raises(InputError, "not_positive_definite"):
        Vector(Sigma=[[1.0, 2.0], [2.0, 1.0]])
