"""Prediction of each row from those before: against evidences, SciPy's distributions and known regrets."""

import math

import numpy as np
import pytest
import scipy
from scipy.special import betaln, xlogy

import bayeszoo as bz
from bayeszoo.comparison import prequential as module
from bayeszoo.model.capabilities import Predictive
from bayeszoo.model.find import builtin_names
from tests.refusals import raises

COIN = bz.find("beta_bernoulli")
TOSSES = [1, 0, 1, 1, 0, 1, 1, 1, 0, 1]
PREDICTIVE = [name for name in builtin_names() if issubclass(bz.find(name), Predictive)]


def few(kind):
    """Return at most 20 rows of the model's example."""
    data = bz.example(kind)
    return data if data.rows <= 20 else bz.read(kind, kind.inputs.split(data, 20)[0])


@pytest.mark.parametrize("name", [name for name in PREDICTIVE if name != "spike_slab_regression"])
def test_the_sum_is_minus_the_log_evidence(name):
    data = few(bz.find(name))
    model = bz.find(name).weak(data)
    stats = model.statistics(data)
    frame = bz.prequential(model, data)
    expected = model.log_evidence(stats) + stats.log_coefficient
    assert frame.attrs["log_evidence"] == pytest.approx(model.log_evidence(stats), rel=1e-10, abs=1e-10)
    assert frame["cumulative_log_loss"].iloc[-1] == pytest.approx(-expected, rel=1e-10, abs=1e-10)
    regret = frame["regret"].to_numpy()
    assert (regret[np.isfinite(regret)] >= -1e-9).all()


def losses_of_a_coin(forget=1.0):
    frame = bz.prequential(COIN(a=0.5, b=0.5), TOSSES, forget=forget)
    ones, zeros, expected = 0.5, 0.5, []
    for toss in TOSSES:
        expected.append(-math.log((ones if toss else zeros) / (ones + zeros)))
        ones, zeros = 0.5 + forget * (ones - 0.5) + toss, 0.5 + forget * (zeros - 0.5) + 1 - toss
    np.testing.assert_allclose(frame["log_loss"], expected, rtol=1e-12)
    return frame


def test_losses_and_regret_of_a_coin():
    """Krichevsky and Trofimov 1981: with a prior of a half each the regret is at most log(n) / 2 + log 2."""
    frame = losses_of_a_coin()
    n, k = np.arange(1, 11), np.cumsum(TOSSES)
    np.testing.assert_allclose(
        frame["cumulative_log_loss"], betaln(0.5, 0.5) - betaln(k + 0.5, n - k + 0.5), rtol=1e-12
    )
    least = -(xlogy(k, k / n) + xlogy(n - k, 1 - k / n))
    np.testing.assert_allclose(frame["least_log_loss"], least, rtol=1e-12, atol=1e-12)
    assert (frame["regret"] <= np.log(n) / 2 + math.log(2) + 1e-12).all()


def test_forgetting_weighs_each_row_by_its_age():
    frame = losses_of_a_coin(0.8)
    assert "log_evidence" not in frame.attrs


def test_rows_that_are_predicted_with_themselves_are_seen(monkeypatch):
    """A seeded bug: the row is among those that predict it."""
    right = COIN.predictive

    def with_itself(self, stats, data):
        return right(self, stats + self.statistics(data), data)

    monkeypatch.setattr(COIN, "predictive", with_itself)
    with pytest.raises(AssertionError):
        losses_of_a_coin()


def test_forgetting_pays_where_the_rate_changes():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.poisson(2.0, 150), rng.poisson(9.0, 150)])
    model = bz.find("gamma_poisson")()
    kept, forgotten = (bz.prequential(model, y, forget=forget) for forget in (1.0, 0.9))
    assert forgotten["cumulative_log_loss"].iloc[-1] < kept["cumulative_log_loss"].iloc[-1] - 50


def test_measurements_against_scipys_student():
    """Normal-inverse-gamma with known fields: each row is Student t given those before."""
    y = np.array([1.2, -0.4, 2.2, 0.7])
    m, kappa, a, b = 0.0, 1.0, 2.0, 1.5
    frame = bz.prequential(bz.find("normal_gamma")(m, kappa, a, b), y)
    for i, value in enumerate(y):
        law = scipy.stats.t(2 * a, m, math.sqrt(b * (kappa + 1) / (a * kappa)))
        assert frame["log_loss"].iloc[i] == pytest.approx(-law.logpdf(value), rel=1e-10)
        m, kappa, a, b = (
            (kappa * m + value) / (kappa + 1),
            kappa + 1,
            a + 0.5,
            b + kappa * (value - m) ** 2 / (2 * (kappa + 1)),
        )


def test_many_rows_have_a_regret_at_some_places(monkeypatch):
    monkeypatch.setattr(module, "MOST_PLACES", 4)
    frame = bz.prequential(COIN(), TOSSES)
    assert np.isfinite(frame["regret"]).tolist() == [i in (0, 3, 6, 9) for i in range(10)]
    assert bz.plot_prequential(frame).axes[1].lines[0].get_xdata().tolist() == [1, 4, 7, 10]


def test_bad_input(monkeypatch):
    with raises(bz.InputError, "not_a_model"):
        bz.prequential("beta_bernoulli", TOSSES)
    with raises(bz.InputError, "no_closed_form"):
        bz.prequential(bz.find("gaussian_mixture")(), [1.0, 2.0, 3.0])
    with raises(bz.InputError, "no_capability"):
        bz.prequential(bz.find("spike_slab_regression")(), forget=0.9)
    for forget in (0.0, 1.5, math.nan, True):
        with raises(bz.InputError, "out_of_range"):
            bz.prequential(COIN(), TOSSES, forget=forget)
    with raises(bz.InputError, "missing_column"):
        bz.plot_prequential(bz.prequential(COIN(), TOSSES)[["log_loss"]])
    monkeypatch.setattr(module, "MOST_ROWS", 5)
    with raises(bz.InputError, "too_many_rows"):
        bz.prequential(COIN(), TOSSES)
