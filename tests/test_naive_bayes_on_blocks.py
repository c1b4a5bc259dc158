"""What the conjugate blocks are for: a naive Bayes classifier of four kinds of feature, some cells missing."""

import numpy as np
import pytest
import scipy
from sklearn import naive_bayes as sklearn_naive_bayes

import bayeszoo as bz
from tests.naive_bayes import NaiveBayes

RNG = np.random.default_rng(8)
N, K = 60, 3
LABELS = RNG.integers(0, K, N)
MIXED = NaiveBayes(K, ("flag", "other"), (("level", 4),), ("visits",), ("size", "weight"), alpha=0.8, eta=0.7)


def table(rng=RNG, missing=0.2):
    data = {
        "class": LABELS.copy(),
        "flag": rng.binomial(1, [0.2, 0.5, 0.8], (N, K))[np.arange(N), LABELS],
        "other": rng.integers(0, 2, N),
        "level": (rng.integers(0, 4, N) + LABELS) % 4,
        "visits": rng.poisson(1.0 + 2 * LABELS),
        "size": rng.normal(LABELS, 1.0),
        "weight": rng.normal(50, 5, N),
    }
    for name, values in data.items():
        gone = rng.random(N) < missing
        if name != "class":
            data[name] = np.where(gone, np.nan if values.dtype.kind == "f" else -1, values)
    return data


def rows(data, index):
    return {name: values[index] for name, values in data.items()}


def test_evidence_is_the_chain_of_predictives_with_cells_missing():
    """Each row's class and features given the rows before: shares times the predictive of its own class."""
    data, total = table(), 0.0
    for n in range(N):
        before = MIXED.statistics(rows(data, slice(n)))
        total += MIXED.log_joint_classes(before, rows(data, [n]))[0, data["class"][n]]
    assert total == pytest.approx(MIXED.log_evidence(MIXED.statistics(data)), rel=1e-11)


def test_evidence_is_that_of_the_models_of_the_zoo_class_by_class():
    data = table(missing=0.0)
    counted = bz.find("dirichlet_multinomial")(alpha=0.8)
    shares = {"y": data["class"], "category": np.array(list("abc"))}
    total = counted.log_evidence(counted.statistics(shares))
    for k in range(K):
        own = rows(data, data["class"] == k)
        for name in ("flag", "other"):
            model = bz.find("beta_bernoulli")(a=0.7, b=0.7)
            total += model.log_evidence(model.statistics({"y": own[name]}))
        levels = bz.find("dirichlet_multinomial")(alpha=0.7)
        total += levels.log_evidence(levels.statistics({"y": own["level"], "category": np.array(list("wxyz"))}))
        rates = bz.find("gamma_poisson")(a=1.0, b=1.0)
        total += rates.log_evidence(rates.statistics({"y": own["visits"]}))
        for name in ("size", "weight"):
            normal = bz.find("normal_gamma")(mu0=0.0, kappa0=0.01, alpha0=1.0, beta0=1.0)
            total += normal.log_evidence(normal.statistics({"y": own[name]}))
    assert MIXED.log_evidence(MIXED.statistics(data)) == pytest.approx(total, rel=1e-12)


def test_yes_no_features_are_scikit_learns():
    """Beta(1, 1) and Dirichlet(1) priors: its smoothing by 1 is the exact predictive, its shares are not smoothed."""
    flags = RNG.integers(0, 2, (N, 5))
    names = tuple(f"f{j}" for j in range(5))
    data = {"class": LABELS, **{name: flags[:, j] for j, name in enumerate(names)}}
    model = NaiveBayes(K, names)
    prior = (np.bincount(LABELS) + 1) / (N + K)
    theirs = sklearn_naive_bayes.BernoulliNB(alpha=1.0, class_prior=prior).fit(flags, LABELS)
    ours = model.class_probabilities(model.statistics(data), data)
    np.testing.assert_allclose(ours, theirs.predict_proba(flags), rtol=1e-11)


def test_levels_are_scikit_learns():
    codes = RNG.integers(0, 4, (N, 3))
    names = ("u", "v", "w")
    data = {"class": LABELS, **dict(zip(names, codes.T, strict=True))}
    model = NaiveBayes(K, levels=tuple((name, 4) for name in names), eta=0.5)
    prior = (np.bincount(LABELS) + 1) / (N + K)
    theirs = sklearn_naive_bayes.CategoricalNB(alpha=0.5, class_prior=prior, min_categories=4).fit(codes, LABELS)
    ours = model.class_probabilities(model.statistics(data), data)
    np.testing.assert_allclose(ours, theirs.predict_proba(codes), rtol=1e-11)


def test_reals_at_the_maximum_of_the_likelihood_are_scikit_learns():
    X = RNG.normal(LABELS[:, None], [1.0, 2.0], (N, 2))
    data = {"class": LABELS, "x": X[:, 0], "z": X[:, 1]}
    model = NaiveBayes(K, reals=("x", "z"))
    theirs = sklearn_naive_bayes.GaussianNB(var_smoothing=0.0).fit(X, LABELS)
    at = model.log_classes_at(model.mle(model.statistics(data)), data)
    np.testing.assert_allclose(scipy.special.softmax(at, axis=1), theirs.predict_proba(X), rtol=1e-9, atol=1e-15)


def test_exact_class_probabilities_are_those_of_many_draws():
    data = table()
    stats = MIXED.statistics(data)
    exact = MIXED.class_probabilities(stats, data)
    draws = MIXED.posterior(stats).rvs((20_000,), RNG)
    joint = np.exp(MIXED.log_classes_at(draws, data)).mean(axis=0)
    assert np.max(np.abs(joint / joint.sum(axis=1, keepdims=True) - exact)) < 0.03


def test_rows_without_a_class_count_for_nothing():
    data = table()
    some = {**data, "class": np.where(np.arange(N) < 20, -1, data["class"])}
    without = MIXED.statistics(rows(data, slice(20, None)))
    assert MIXED.log_evidence(MIXED.statistics(some)) == pytest.approx(MIXED.log_evidence(without), rel=1e-12)
