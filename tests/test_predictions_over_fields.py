"""Predictions of a model with fields as parameters: the fields integrated out, against SciPy's quadrature."""

import numpy as np
import pytest
from scipy import integrate, stats

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out
from bayeszoo.model.outer.integration import integrate as integrate_over
from bayeszoo.report.provenance import _prior
from bayeszoo.results.stored import Fit
from tests.refusals import raises

Y = np.array([1.2, -0.4, 2.2, 0.9, 1.7])


def density(sigma):
    """Return the joint density of the rows about 0, mu ~ N(0, 2^2) integrated out, as a multivariate normal."""
    return stats.multivariate_normal(np.zeros(5), sigma**2 * np.eye(5) + 4).pdf(Y)


def given(sigma):
    """Return mean and sd of a next row: the rule for a joint Gaussian."""
    gain = np.linalg.solve(sigma**2 * np.eye(5) + 4, np.full(5, 4.0))
    return gain @ Y, np.sqrt(4 - gain @ np.full(5, 4.0) + sigma**2)


def averaged(function):
    """Average over sigma ~ Gamma(3, 2) given the rows."""
    prior = stats.gamma(3, scale=0.5).pdf
    over = lambda f: integrate.quad(lambda s: f(s) * prior(s) * density(s), 0, 30, epsabs=0, epsrel=1e-11)[0]  # noqa: E731
    return over(function) / over(lambda _: 1.0)


@pytest.fixture(scope="module")
def model():
    return bz.over(bz.find("gaussian_mean")(m0=0.0, s0=2.0), {"sigma": "Gamma(3, 2)"})


def test_full_bayes_predicts_by_its_quadrature(model):
    data = bz.read(model, {"y": Y})
    tree = bz.fit(model, data, "exact", seed=1, draws=100)
    (row,) = bz.predict(tree, bz.read(model, {"y": [3.0]})).itertuples()
    mean = averaged(lambda s: given(s)[0])
    square = averaged(lambda s: np.square(given(s)).sum())
    assert row.mean == pytest.approx(mean, rel=1e-8)
    assert row.sd == pytest.approx(np.sqrt(square - mean**2), rel=1e-7)
    assert row.log_score == pytest.approx(np.log(averaged(lambda s: stats.norm(*given(s)).pdf(3.0))), abs=1e-8)
    below = averaged(lambda s: stats.norm(*given(s)).cdf(row.q975))
    assert below == pytest.approx(0.975, abs=1e-7)


def test_empirical_bayes_predicts_given_its_fields(model):
    """And not given the parameters at their means: what is not known of mu is in the sd of a row."""
    data = bz.read(model, {"y": Y})
    tree = bz.fit(model, data, "map", seed=1)
    (row,) = bz.predict(tree, bz.read(model, {"y": [3.0]})).itertuples()
    assert (row.mean, row.sd) == pytest.approx(given(float(tree["posterior"]["sigma"].squeeze())), rel=1e-8)


@pytest.mark.parametrize(
    ("name", "field", "table"),
    [
        ("beta_bernoulli", "a", {"successes": [251_527, 3], "trials": [493_472, 7]}),
        ("dirichlet_multinomial", "alpha", {"a": [91_000, 3], "b": [52_000, 1], "c": [0, 1]}),
        ("gamma_poisson", "a", {"y": [4_000_000, 3_999_000]}),
        ("markov_chain", "alpha", {"state": ["a", "b", "a", "a", "b", "a"]}),
    ],
)
def test_counts_over_a_field_that_is_all_but_known_are_those_of_the_model(name, field, table):
    """Also of many trials, whose masses cannot be added up count by count."""
    data = bz.read(bz.find(name), table)
    base = bz.find(name).weak(data)
    known = float(getattr(base, field))
    model = bz.over(base, {field: f"LogUniform({known * (1 - 1e-7)!r}, {known * (1 + 1e-7)!r})"})
    over, at = (bz.predict(bz.fit(each, data, "exact", seed=1, draws=50, groups=[]), data) for each in (model, base))
    for column in ("mean", "sd", "q025", "q975", "log_score"):
        np.testing.assert_allclose(over[column], at[column], rtol=1e-6, err_msg=column)


@pytest.mark.parametrize(
    ("name", "priors", "table"),
    [
        ("gaussian_mean", {"sigma": "Gamma(3, 2)"}, {"y": [1.2, -0.4, 2.2, 0.9]}),
        ("beta_bernoulli", {"a": "Gamma(2, 1)", "b": "Gamma(2, 1)"}, {"y": [1, 0, 1, 1]}),
        ("gamma_poisson", {"a": "Gamma(2, 1)"}, {"y": [3, 0, 9, 2]}),
    ],
)
def test_a_row_that_is_left_out_has_the_ratio_of_two_evidences(name, priors, table):
    """Equal observations count each, and the fields are integrated out anew without each row."""
    data = bz.read(bz.find(name), table)
    model = bz.over(bz.find(name).weak(data), priors)
    evidence = lambda rows: integrate_over(model, rows).log_evidence  # noqa: E731
    tree = bz.fit(model, data, "exact", seed=1, draws=50, groups=[])
    whole = evidence(data)
    rests = [evidence(model.inputs.reordered(data, np.delete(np.arange(4), i))) for i in range(4)]
    terms = whole - np.array(rests)
    score = leave_out.of_fit(Fit(tree))
    assert score.total == 4
    assert score.mean == pytest.approx(terms.mean(), abs=1e-6)
    assert score.se == pytest.approx(terms.std() / 2, abs=1e-6)


def test_residuals_leave_each_row_out_of_the_fields_too(model):
    tree = bz.fit(model, bz.read(model, {"y": Y}), "exact", seed=1, draws=50, groups=[])
    frame = bz.residuals(tree, seed=1)
    assert set(frame["basis"]) == {"leave-one-out, quadrature"}
    rest = bz.read(model, {"y": Y[1:]})
    (row,) = bz.predict(bz.fit(model, rest, "exact", seed=1, draws=50, groups=[]), {"y": Y[:1]}).itertuples()
    assert (frame["mean_without"].iloc[0], frame["sd_without"].iloc[0]) == pytest.approx((row.mean, row.sd), rel=1e-6)


def test_rows_of_several_columns_are_predicted():
    data = bz.read(bz.find("normal_inverse_wishart"), {"a": [1.0, 2.0, 0.3, 1.1], "b": [0.2, 1.4, -0.5, 0.9]})
    base = bz.find("normal_inverse_wishart").weak(data)
    model = bz.over(base, {"nu0": "LogUniform(4, 40)"})
    tree = bz.fit(model, data, "exact", seed=1, draws=100)
    known = bz.predict(bz.fit(base, data, "exact", seed=1, draws=100), data)
    predicted = bz.predict(tree, data)
    assert predicted["mean"].to_numpy() == pytest.approx(known["mean"].to_numpy(), rel=1e-8)  # whatever nu0 is
    assert np.all(predicted["sd"] > 0)


def test_a_model_without_a_closed_form_of_the_data_says_why():
    """Whatever field is a parameter, and where the prior has no mean."""
    lasso = bz.find("bayesian_lasso")
    data = bz.read(lasso, {"y": [1.0, 2.0, 0.5, 1.4], "a": [0.0, 1.0, 0.2, 0.4], "b": [0.1, 0.9, 0.3, 0.4]}, target="y")
    for name, prior in (("m0", "Normal(0, 1)"), ("b", "HalfCauchy(1)"), ("sigma", "HalfNormal(1)")):
        with raises(bz.NumericalError, "no_closed_form"):
            bz.fit(bz.over(lasso.weak(data), {name: prior}), data, "exact", seed=1)


def test_a_page_says_what_was_asked(model):
    rows = _prior(model, bz.read(model, {"y": Y})).rows
    assert [row[0] for row in rows] == ["priors", "base"]


def test_an_estimate_of_fields_is_selected_by_nothing_that_needs_a_density(model):
    """It was refused, as the model has no density that is sampled."""
    tree = bz.fit(model, bz.read(model, {"y": Y}), "map", seed=1)
    assert "no density" in bz.select([tree])["evidence_from"].iloc[0]
