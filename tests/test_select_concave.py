"""Maxima of the likelihood of regressions with a link, in the table of `select`: by another library, as published."""

import math

import numpy as np
import pytest
import scipy
from sklearn.linear_model import PoissonRegressor

import bayeszoo as bz
from bayeszoo.comparison.candidates import differing_priors, gather

POISSON, NEGATIVE = bz.find("poisson_regression"), bz.find("negative_binomial_regression")
ROWS = {"y": [1, 0, 2, 1, 3, 6, 4], "x": [0.0, 1, 2, 3, 4, 5, 6], "z": [1.0, 0, 2, 1, 0, 1, 2]}


def test_aic_and_bic_of_a_poisson_regression_are_those_of_scikit_learn():
    data = bz.read(POISSON, ROWS)
    features = np.column_stack([ROWS["x"], ROWS["z"]])
    theirs = PoissonRegressor(alpha=0, tol=1e-12, max_iter=1000).fit(features, ROWS["y"])
    best = scipy.stats.poisson(theirs.predict(features)).logpmf(ROWS["y"]).sum()
    (row,) = bz.select([POISSON.weak(data)], data).to_dict("records")
    assert (row["parameters"], row["likelihood_from"]) == (3, "Newton's method")
    assert row["log_likelihood"] == pytest.approx(best, abs=1e-8)
    assert row["aic"] == pytest.approx(6 - 2 * best, abs=1e-8)
    assert row["bic"] == pytest.approx(3 * math.log(7) - 2 * best, abs=1e-8)


def test_days_absent_from_school_have_the_published_likelihood():
    """Twice the log likelihood is -1093.151 with eight numbers (Venables and Ripley 2002, section 7.4, glm.nb)."""
    data = bz.example(NEGATIVE)
    row = bz.select([NEGATIVE.weak(data)], data).iloc[0]
    assert 2 * row["log_likelihood"] == pytest.approx(-1093.151, abs=6e-4)
    assert row["parameters"] == 8


def test_a_likelihood_without_a_maximum_is_withheld_with_its_reason():
    separated = {"y": [0, 0, 0, 2], "x": [0.0, 1, 2, 3]}
    data = bz.read(POISSON, separated)
    row = bz.select([POISSON.weak(data)], data).iloc[0]
    assert math.isnan(row["aic"])
    assert row["likelihood_from"].startswith("withheld")


def test_priors_that_differ_between_kinds_are_said_as_evidences_compare_them():
    data = bz.read(POISSON, ROWS)
    poisson, negative = POISSON.weak(data), NEGATIVE.weak(data)
    (line,) = differing_priors(gather([poisson, negative], data))
    assert "tau 2.5 and 1, s0 2.5 and 1.5" in line
    assert not differing_priors(gather([poisson, negative.replaced(tau=2.5, s0=2.5)], data))
    assert not differing_priors(gather([poisson, POISSON(tau=7)], data))  # as was asked for


@pytest.mark.slow  # samples, and compiles the density for bridge sampling
def test_the_evidence_of_draws_is_that_of_quadrature():
    kind = bz.find("logistic_regression")
    data = bz.example(kind)
    model = kind.weak(data)
    frame = bz.select({"exact": bz.fit(model, data, "exact", seed=1), "nuts": bz.fit(model, data, "nuts", seed=1)})
    table = frame.set_index("model")
    assert table.loc["nuts", "evidence_from"] == "bridge sampling"
    gap = table.loc["nuts", "log_evidence"] - table.loc["exact", "log_evidence"]
    assert abs(gap) < 4 * table.loc["nuts", "evidence_se"] < 0.1


@pytest.mark.slow  # samples, and again without the rows of high leverage
def test_rows_that_weights_cannot_leave_out_are_left_out_by_fits_of_the_others():
    data = bz.read(POISSON, {"y": [0, 1, 1, 2, 1, 0, 3, 40], "x": [0.0, 1, 2, 3, 4, 5, 6, 20]}, target="y")
    model = POISSON.weak(data)
    sampled = bz.fit(model, data, "nuts", seed=1)
    fits = {"exact": bz.fit(model, data, "exact", seed=1), "nuts": sampled}
    before, after = (bz.select(fits, exact_loo=refits).set_index("model") for refits in (False, True))
    assert np.isnan(before.loc["nuts", "loo"])
    assert "refitted" in after.loc["nuts", "loo_from"]
    gap = after.loc["nuts", "loo"] - after.loc["exact", "loo"]
    assert abs(gap) < 4 * after.loc["nuts", "loo_mcse"] < 1
