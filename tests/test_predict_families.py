"""Predictions of outcomes that are several numbers, or one of several categories: closed form, and from draws."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.data.read import example
from bayeszoo.results.stored import Fit
from tests.quick import quick_first

DirichletMultinomial, MarkovChain = bz.find("dirichlet_multinomial"), bz.find("markov_chain")
NormalInverseWishart = bz.find("normal_inverse_wishart")
FLOWERS = "petal width", "sepal length", "sepal width", "petal length"
NEW = {
    "dirichlet_multinomial": {"bush": [3, 0, 60], "dukakis": [2, 1, 30], "other": [0, 0, 10]},
    "markov_chain": {"y": ["vowel", "vowel", "consonant", "consonant", "vowel"]},
    # columns in another order than those of the fit
    "normal_inverse_wishart": dict(zip(FLOWERS, ([0.2, 0.4], [5.0, 4.4], [3.4, 2.9], [1.5, 1.4]), strict=True)),
}


@pytest.fixture(scope="module")
def fits():
    """Return ``fits[model][method]``, of the examples, exact and by their mode."""
    flowers = NormalInverseWishart.weak(example(NormalInverseWishart))
    return {
        model.name: {method: bz.fit(model, method=method, seed=1) for method in ("exact", "map")}
        for model in (DirichletMultinomial((2.0, 1.0, 0.5)), MarkovChain(2.0), flowers)
    }


# Closed forms


def test_counts_are_scipys_dirichlet_multinomial(fits):
    found = bz.predict(fits["dirichlet_multinomial"]["exact"], NEW["dirichlet_multinomial"])
    alpha = np.array([729.0, 584.0, 137.5])
    counts = np.array(list(NEW["dirichlet_multinomial"].values())).T
    assert found.index.names == ["row", "category"]
    assert list(found.loc[1].index) == ["bush", "dukakis", "other"]
    for i, row in enumerate(counts):
        law = stats.dirichlet_multinomial(alpha, row.sum())
        here = found.loc[i + 1]
        assert here["observed"].tolist() == row.tolist()
        assert here["mean"].to_numpy() == pytest.approx(law.mean(), rel=1e-12)
        assert here["sd"].to_numpy() == pytest.approx(np.sqrt(law.var()), rel=1e-12)
        assert here["log_score"].to_numpy() == pytest.approx(law.logpmf(row), rel=1e-9)
        assert here["q975"].tolist() == stats.betabinom(row.sum(), alpha, alpha.sum() - alpha).ppf(0.975).tolist()
    assert found["mcse_mean"].isna().all()
    found, shares = bz.predict(fits["dirichlet_multinomial"]["exact"], 2), alpha / alpha.sum()  # further answers
    assert found["mean"].to_numpy() == pytest.approx([*shares, *shares], rel=1e-13)
    assert found["sd"].to_numpy() == pytest.approx(np.sqrt(2 * [*(shares * (1 - shares))]), rel=1e-12)
    assert found[["log_score", "observed"]].isna().all(axis=None)


def test_steps_are_the_mean_rows(fits):
    found = bz.predict(fits["markov_chain"]["exact"], NEW["markov_chain"])
    symbols, y = ["consonant", "vowel"], NEW["markov_chain"]["y"]
    after = {"vowel": np.array([7534 + 2, 1104 + 2]), "consonant": np.array([3827 + 2, 7535 + 2])}
    assert len(found) == 8
    for i, (symbol, following) in enumerate(itertools.pairwise(y), start=1):
        share, here = after[symbol] / after[symbol].sum(), found.loc[i].loc[symbols]
        assert here["mean"].tolist() == pytest.approx(share, rel=1e-13)
        assert here["observed"].tolist() == [float(name == following) for name in symbols]
        assert here["log_score"].to_numpy() == pytest.approx(math.log(share[symbols.index(following)]), rel=1e-12)


def test_flowers_are_scipys_multivariate_t(fits):
    data = example(NormalInverseWishart)
    weak, n, mean = NormalInverseWishart.weak(data), 50, data["Y"].mean(axis=0)
    psi = np.array(weak.Psi0) + np.cov(data["Y"].T, bias=True) * n  # the prior is centred on the mean
    df, kappa = weak.nu0 + n - 3, weak.kappa0 + n
    shape = psi * (kappa + 1) / (kappa * df)
    found = bz.predict(fits["normal_inverse_wishart"]["exact"], NEW["normal_inverse_wishart"])
    law = stats.multivariate_t(mean, shape, df=df)
    rows = np.array([NEW["normal_inverse_wishart"][name] for name in data["column"]]).T  # by name, not by place
    for i, row in enumerate(rows):
        here = found.loc[i + 1]
        assert here.index.tolist() == data["column"].tolist()
        assert here["observed"].tolist() == row.tolist()
        assert here["mean"].to_numpy() == pytest.approx(mean, rel=1e-10)
        assert here["sd"].to_numpy() == pytest.approx(np.sqrt(np.diag(shape) * df / (df - 2)), rel=1e-10)
        assert here["q025"].to_numpy() == pytest.approx(stats.t(df, mean, np.sqrt(np.diag(shape))).ppf(0.025), rel=1e-9)
        assert here["log_score"].to_numpy() == pytest.approx(law.logpdf(row), rel=1e-9)


# From draws


@pytest.mark.parametrize("name", quick_first(NEW))
def test_draws_predict_what_the_closed_form_does(fits, name):
    by_nuts = bz.fit(Fit(fits[name]["exact"]).model, method="nuts", seed=1)
    exact, sampled = (bz.predict(tree, NEW[name], seed=1) for tree in (fits[name]["exact"], by_nuts))
    assert sampled.index.equals(exact.index)
    assert (sampled["mcse_mean"] > 0).all()
    error = (sampled["mean"] - exact["mean"]) / sampled["mcse_mean"]
    assert error.abs().max() < 4.4
    assert (sampled["mcse_mean"] < 0.1 * exact["sd"]).all()
    assert (sampled["sd"] / exact["sd"]).sub(1).abs().max() < 0.05
    scores = ((sampled["log_score"] - exact["log_score"]) / sampled["mcse_log_score"]).dropna()
    assert len(scores) >= 2
    assert scores.abs().max() < 4.4
    if name == "normal_inverse_wishart":  # quantiles are of draws: 4000 of them
        for q in ("q025", "median", "q975"):
            assert ((sampled[q] - exact[q]) / exact["sd"]).abs().max() < 0.15


def test_a_point_estimate_is_plugged_in(fits):
    found = bz.predict(fits["dirichlet_multinomial"]["map"], NEW["dirichlet_multinomial"])
    above = np.array([728.0, 583.0, 136.5])
    law = stats.multinomial(5, above / above.sum())
    assert found.loc[1]["mean"].to_numpy() == pytest.approx(law.mean(), rel=1e-12)
    assert found.loc[1]["log_score"].to_numpy() == pytest.approx(float(law.logpmf([3, 2, 0])), rel=1e-10)
    tree = fits["normal_inverse_wishart"]["map"]
    found = bz.predict(tree, NEW["normal_inverse_wishart"])
    mu, sigma = (tree["posterior"][k].to_numpy()[0, 0] for k in ("mu", "Sigma"))
    row = [NEW["normal_inverse_wishart"][name][0] for name in tree["posterior"]["mu"].coords["column"].to_numpy()]
    expected = stats.multivariate_normal(mu, sigma).logpdf(row)
    assert found.loc[1]["log_score"].to_numpy() == pytest.approx(expected, rel=1e-10)
    assert found.loc[1]["sd"].to_numpy() == pytest.approx(np.sqrt(np.diag(sigma)), rel=1e-12)
