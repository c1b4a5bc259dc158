"""The law of a row given the fit, or all other rows of it: against fits without the row, and seeded bugs."""

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.answers import averages
from bayeszoo.answers.checks import leave_out
from bayeszoo.contract.case import Case
from bayeszoo.contract.conditional import marginalized_density
from bayeszoo.foundation import diagnostics
from bayeszoo.model import Conditional
from bayeszoo.results.stored import Fit

FIELDS = {"normal_means": {"s0": 10, "t0": 5}, "beta_binomial": {}, "gamma_poisson_groups": {"b1": 1.0}}


@pytest.fixture(scope="module", params=FIELDS)
def fit(request):
    M = bz.find(request.param)
    data = M.inputs.reordered(bz.example(M), np.arange(7))
    return bz.fit(M(**FIELDS[request.param]), bz.read(M, data), "exact", seed=1)


def test_the_error_of_a_mean_by_quadrature_is_what_half_the_grid_changes():
    mass, halved, values = np.array([0.2, 0.5, 0.3]), np.array([0.4, 0.0, 0.6]), np.array([[[1.0], [2.0], [4.0]]])
    average = averages.Average("exact", mass, halved)
    assert average.mean(values) == pytest.approx([2.4])
    assert average.error(values) == pytest.approx([2.8 - 2.4])
    assert averages.Average("exact", mass, mass).error(values) == pytest.approx([0.0])


def test_the_error_of_a_mean_of_draws_that_count_alike_is_that_of_their_mean():
    values = np.random.default_rng(3).normal(size=(4, 200, 3))
    alike = averages.LeftOut(
        "sampled", np.full(values.shape, -np.log(800)), None, np.zeros(3), np.full(3, True), np.ones(3)
    )
    assert alike.mean(values) == pytest.approx(values.mean(axis=(0, 1)))
    assert alike.error(values) == pytest.approx(diagnostics.mcse(values), rel=1e-9)


def without(fit, i):
    """Return the data without a row, and the row."""
    model, data = Fit(fit).model, Fit(fit).data
    rows = np.arange(model.inputs.size(data))
    return model.inputs.reordered(data, np.delete(rows, i)), model.inputs.reordered(data, rows[[i]])


def evidence(fit):
    return float(Fit(fit).facts["log_evidence"])


def refitted(fit, i):
    """Return the fit without a row."""
    model = Fit(fit).model
    return bz.fit(model, bz.read(model, without(fit, i)[0]), "exact", seed=1)


def test_a_row_left_out_of_a_quadrature_is_a_ratio_of_evidences(fit):
    """Each evidence is an integral on a grid of its own, of the ordered trials."""
    score, model = leave_out.of_fit(Fit(fit)), Fit(fit).model
    for i in (0, 3):
        ratio = evidence(fit) - evidence(refitted(fit, i)) + model.log_coefficient(without(fit, i)[1])
        assert score.terms[i] == pytest.approx(ratio, abs=1e-6)
    assert 0 <= score.mcse < 1e-5
    assert np.isnan(score.k_hat)


def test_a_row_without_which_the_grid_ends_too_soon_has_a_grid_of_its_own(fit, monkeypatch):
    score, table = leave_out.of_fit(Fit(fit)), bz.residuals(fit)
    monkeypatch.setattr(averages, "_MOST_BEYOND", -1.0)
    np.testing.assert_allclose(leave_out.of_fit(Fit(fit)).terms, score.terms, rtol=1e-7)
    np.testing.assert_allclose(bz.residuals(fit)["mean_without"], table["mean_without"], rtol=1e-6)


def test_residuals_are_of_predictions_with_the_row_and_without_it(fit):
    table, model = bz.residuals(fit), Fit(fit).model
    assert table.attrs["basis"] == {averages.QUADRATURE: 7}
    known = bz.predict(fit, Fit(fit).data)
    np.testing.assert_allclose(table["mean"], known["mean"], rtol=1e-9)
    for i in (0, 3):
        alone = bz.predict(refitted(fit, i), bz.read(model, without(fit, i)[1])).iloc[0]
        assert table["mean_without"].iloc[i] == pytest.approx(alone["mean"], rel=1e-6)
        if model.name == "gamma_poisson_groups":  # the variance of a new group's count is infinite
            assert np.isnan([table["sd_without"].iloc[i], alone["sd"]]).all()
        else:
            assert table["sd_without"].iloc[i] == pytest.approx(alone["sd"], rel=1e-5)


def test_draws_agree_with_the_quadrature(fit):
    draws = {name: values for name, values in Fit(fit).draws().items() if name in Fit(fit).model.outer}
    score, exact = leave_out.psis(Fit(fit).model, Fit(fit).data, draws), leave_out.of_fit(Fit(fit))
    assert abs(score.mean - exact.mean) < 5 * score.mcse
    assert score.mcse < 0.05


def test_rows_that_depend_on_each_other_given_some_outer_parameters_are_held_to_it():
    """Given tau alone rows depend by mu: to take them for independent is a seeded bug that the contract sees."""
    M = bz.find("normal_means")
    wrong = type("Independent", (M,), {"held_out": Conditional.held_out})
    case = Case(M(s0=10.0), bz.example(M))
    assert marginalized_density(case).passed
    assert not marginalized_density(Case(wrong(s0=10.0), bz.example(M))).passed
