"""Answers about groups with a parameter each: it follows the name of the group, whatever the order of rows."""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.answers import law
from bayeszoo.answers.checks import leave_out, residuals
from bayeszoo.answers.predict import ERROR_OF_SUM
from bayeszoo.data.inputs import GroupMeans
from bayeszoo.model import Observable
from bayeszoo.results.stored import Fit
from tests.refusals import raises

EFFECTS, ERRORS = np.array([20.0, -30.0, 40.0]), np.array([15.0, 20.0, 18.0])
ABC = {"group": ["a", "b", "c"], "y": EFFECTS, "se": ERRORS}
MEANS, VARIANCES = EFFECTS * 100 / (100 + ERRORS**2), 1 / (1 / 100 + ERRORS**-2)  # theta_j ~ N(0, 10^2)


@dataclass(frozen=True)
class Separate(Observable):
    """theta_j ~ N(0, 10^2),  y_j ~ N(theta_j, se_j^2)."""

    inputs = GroupMeans()
    dims = {"theta": ("group",)}  # noqa: RUF012

    def declare(self, data):
        with pm.Model(coords={"group": list(data["group"])}) as model:
            theta = pm.Normal("theta", np.float64(0), np.float64(10), dims="group")
            pm.Normal("y", theta, data["se"], observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def likelihood(self, params, data):
        return scipy.stats.norm(params["theta"], data["se"])


@pytest.fixture(scope="module")
def fit():
    return bz.fit(Separate(), ABC, "laplace", seed=1)


def test_new_rows_are_predicted_by_the_parameter_of_their_group(fit):
    new = bz.predict(fit, {"group": ["c", "a"], "se": [1.0, 2.0]})
    np.testing.assert_allclose(new["mean"], MEANS[[2, 0]], atol=0.7)  # 5 errors of 4000 draws, whose sd is at most 9
    np.testing.assert_allclose(new["sd"], np.sqrt(VARIANCES[[2, 0]] + [1, 4]), rtol=0.1)
    single = bz.predict(fit, {"group": ["b"], "se": [1.0]})
    np.testing.assert_allclose(single["mean"], MEANS[[1]], atol=0.7)


def test_a_group_that_the_fit_does_not_have_has_no_parameter(fit):
    with raises(bz.InputError, "no_capability", "d"):
        bz.predict(fit, {"group": ["a", "d"], "se": [1.0, 1.0]})


def test_rows_that_are_looked_at_a_few_at_a_time_keep_their_parameters(fit, monkeypatch):
    whole = bz.residuals(fit)
    score = leave_out.of_fit(Fit(fit))
    monkeypatch.setattr(residuals, "AT_ONCE", 1)
    monkeypatch.setattr(leave_out, "AT_ONCE", 1)
    new = {"group": ["c", "a"], "se": [3.0, 2.0], "y": [12.0, 10.0]}
    together = bz.predict(fit, new)
    monkeypatch.setattr(law, "MOST_AT_ONCE", 1)
    apart = bz.predict(fit, new)
    np.testing.assert_allclose(apart.to_numpy(dtype=float), together.to_numpy(dtype=float), rtol=1e-9)
    assert apart.attrs[ERROR_OF_SUM] == pytest.approx(together.attrs[ERROR_OF_SUM], rel=1e-9)
    for column in ("mean", "sd"):
        np.testing.assert_allclose(bz.residuals(fit)[column], whole[column], rtol=1e-12)
    np.testing.assert_allclose(leave_out.of_fit(Fit(fit)).terms, score.terms, rtol=1e-12)
