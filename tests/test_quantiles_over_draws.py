"""Quantiles of rows averaged over draws: of mixtures that SciPy knows, with errors that hold."""

import numpy as np
import pytest
import scipy

from bayeszoo.answers.quantiles import Quantiles, over_draws
from bayeszoo.comparison.contrast_columns import COLUMNS, by_draws
from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.families.mixtures.levels import LevelRows

NU, SHAPE, RATE, ROWS = 7.0, 4.0, 0.02, 2
LEVELS = np.array(list(QUANTILES.values()))


def gaussians(params):
    """Return rows around the mean of each draw, in two places."""
    return frozen.norm(params["mean"][:, None] + np.arange(ROWS), params["sd"][:, None])


def student_draws(rng, chains=4, draws=200):
    """Draw mean and sd whose mixture of Gaussians is a Student t of scale sqrt(1.5)."""
    sd = np.sqrt(NU / rng.chisquare(NU, (chains, draws)))
    return {"mean": rng.normal(0, np.sqrt(0.5) * sd), "sd": sd}


def scores_of(values, errors):
    """Return how many errors the quantiles of a Student t are off, (levels, rows)."""
    exact = scipy.stats.t.ppf(LEVELS, NU, scale=np.sqrt(1.5))[:, None] + np.arange(ROWS)
    return (np.array(list(values.values())) - exact) / np.array(list(errors.values()))


@pytest.fixture(scope="module", params=[True, False], ids=["independent", "chains"])
def known(request):
    rng = np.random.default_rng(1)
    return [over_draws(gaussians, student_draws(rng), ROWS, counts=False, independent=request.param) for _ in range(40)]


def test_errors_are_those_of_the_quantiles_of_a_mixture(known):
    scores = np.array([scores_of(*each)[:, 0] for each in known])  # the rows of a draw are shifted, else the same
    assert np.abs(scores).max() < 5
    assert ((scores.std(axis=0) > 0.6) & (scores.std(axis=0) < 1.5)).all()
    errors = np.array(list(known[0].errors.values()))
    of_draws = np.sqrt(LEVELS * (1 - LEVELS) / 800) / scipy.stats.t.pdf(scipy.stats.t.ppf(LEVELS, NU), NU)
    assert (errors < of_draws[:, None]).all()  # less than those of one row drawn for each draw


def test_errors_that_are_too_small_are_seen(known):
    wrong = [{name: error / 2.5 for name, error in each.errors.items()} for each in known]
    scores = np.array([scores_of(each.values, errors)[:, 0] for each, errors in zip(known, wrong, strict=True)])
    assert (scores.std(axis=0) > 1.5).all()


def test_chains_that_stand_still_have_larger_errors():
    draws = student_draws(np.random.default_rng(3), draws=200)
    still = {name: np.repeat(values, 10, axis=1) for name, values in draws.items()}
    once, again = (over_draws(gaussians, each, ROWS, counts=False, independent=False) for each in (draws, still))
    for name in QUANTILES:
        assert again.values[name] == pytest.approx(once.values[name])
        assert again.errors[name] == pytest.approx(once.errors[name], rel=0.3)


def test_counts_have_the_quantiles_of_a_negative_binomial():
    rates = np.random.default_rng(4).gamma(SHAPE, 1 / RATE, (4, 500))
    law = lambda params: frozen.poisson(params["rate"][:, None] * np.array([0.01, 1.0]))  # noqa: E731
    known = over_draws(law, {"rate": rates}, 2, counts=True, independent=True)
    exact = scipy.stats.nbinom(SHAPE, RATE / (RATE + np.array([0.01, 1.0])))
    for name, level in QUANTILES.items():
        away = np.abs(known.values[name] - exact.ppf(level))
        assert (away <= np.ceil(4.5 * known.errors[name])).all()
        assert known.errors[name][1] < 0.1 * exact.std()[1]


def test_rows_without_a_mean_have_quantiles():
    """Cantelli's inequality bounds no quantile of a Cauchy distribution."""
    centres = np.random.default_rng(5).normal(-3, 1e-3, (2, 400))
    law = lambda params: frozen.t(1.0, params["centre"][:, None], 2.0)  # noqa: E731
    known = over_draws(law, {"centre": centres}, 1, counts=False, independent=True)
    for name, level in QUANTILES.items():
        assert known.values[name] == pytest.approx(scipy.stats.cauchy.ppf(level, -3, 2), abs=1e-2)


def test_indicators_of_levels_have_quantiles():
    weights, theta = np.array([0.25, 0.75]), np.array([[0.5, 0.5], [0.1, 0.9]])
    law = lambda params: LevelRows(params["weights"], params["theta"], [[0, 1]], 1)  # noqa: E731
    draws = {"weights": np.tile(weights, (2, 300, 1)), "theta": np.tile(theta, (2, 300, 1, 1))}
    known = over_draws(law, draws, 2, counts=True, independent=True).values
    assert {name: values[0].tolist() for name, values in known.items()} == {
        "q025": [0.0, 0.0],  # of probabilities .2 and .8
        "median": [0.0, 1.0],
        "q975": [1.0, 1.0],
    }


def test_quantiles_of_draws_have_the_errors_that_other_draws_show():
    rng = np.random.default_rng(4)
    own = Quantiles.of_draws(rng.normal(size=(4, 250, 300)), independent=True)
    z = [(own.values[name] - scipy.stats.norm.ppf(level)) / own.errors[name] for name, level in QUANTILES.items()]
    assert np.all(np.abs(np.std(z, axis=1) - 1) < 0.2)  # of 300 columns
    odd = Quantiles.of_draws(np.stack([np.ones((4, 250)), np.full((4, 250), np.inf)], axis=-1))
    assert np.isnan(odd.errors["q025"][1])
    assert odd.values["q025"][0] == 1.0


def test_each_number_of_a_contrast_has_an_error():
    rng = np.random.default_rng(5)
    first, second = rng.gamma(9.0, size=(4, 500, 20)), rng.gamma(12.0, size=(4, 500, 20))
    known = by_draws(first, second)
    numbers = [name for name in COLUMNS if not name.endswith("_mcse")]
    assert all(np.all(known[f"{name}_mcse"] > 0) for name in numbers)
    exact = scipy.stats.betaprime(12, 9).ppf([0.025, 0.5, 0.975])  # the ratio of two gamma variables
    for name, value in zip(("ratio_q025", "ratio", "ratio_q975"), exact, strict=True):
        z = (known[name] - value) / known[f"{name}_mcse"]
        assert 0.5 < np.std(z) < 1.7, name  # of 20 columns
        assert np.all(np.abs(z) < 5)
