"""Limits at which one model is another, as the page of limits lists them; k-means, and the lasso's path in steps."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy
import sklearn.cluster
import sklearn.linear_model

import bayeszoo as bz
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from tests.refusals import raises

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "guide" / "limits.md"
RNG = np.random.default_rng(11)
ROWS = np.concatenate([RNG.normal(0, 1, (20, 2)), RNG.normal([6, 2], 1, (15, 2)), RNG.normal([0, 9], 1, (10, 2))])
COLUMNS = np.array(["a", "b"])


def test_each_row_of_the_page_has_its_test():
    named = re.findall(r"`(test_\w+)\.py::(test_\w+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) >= 10
    for file, test in named:
        assert f"def {test}(" in (TESTS / f"{file}.py").read_text(encoding="utf-8"), (file, test)


def test_states_that_forget_are_components_of_a_mixture():
    """A hidden Markov model whose rows of the transition table are equal, and a mixture with these weights."""
    y, weights = ROWS[:, 0], np.array([0.2, 0.5, 0.3])
    means, variances = np.array([-1.0, 0.5, 6.0]), np.array([1.0, 0.3, 2.0])
    states, mixture = bz.find("hmm_gaussian")(K=3), bz.find("gaussian_mixture")(K=3, covariance="spherical")
    tables = {"initial": weights, "transition": np.tile(weights, (3, 1)), "means": means, "variances": variances}
    sequence = {"y": y, "sequence": np.zeros(len(y), dtype=np.int64)}
    rows = {"Y": y[:, None], "column": np.array(["y"])}
    parts = {"weights": weights, "means": means[:, None], "covariances": variances}
    assert states.e_step(tables, sequence).value == pytest.approx(mixture.e_step(parts, rows).value, abs=1e-10)
    own = states.component_probabilities(tables, sequence)
    assert own == pytest.approx(mixture.component_probabilities(parts, rows), abs=1e-12)


@pytest.mark.parametrize("sd", [1e-2, 1e-3])
def test_a_mixture_without_width_is_k_means(sd):
    machine = sklearn.cluster.KMeans(3, n_init=5, tol=0.0, random_state=0).fit(ROWS)
    mixture = bz.find("gaussian_mixture")(K=3, covariance="spherical")
    at = {"weights": np.full(3, 1 / 3), "means": machine.cluster_centers_, "covariances": np.full(3, sd**2)}
    probabilities = mixture.component_probabilities(at, {"Y": ROWS, "column": COLUMNS})
    assert probabilities == pytest.approx(np.eye(3)[machine.labels_], abs=1e-12)
    centres = probabilities.T @ ROWS / probabilities.sum(axis=0)[:, None]
    assert centres == pytest.approx(machine.cluster_centers_, abs=1e-12)


def test_a_covariance_that_is_known_leaves_the_mean():
    """CS725, 10.2, with the right signs; in one column it is gaussian_mean."""
    sigma, kappa, m0, large = np.array([[2.0, 0.6], [0.6, 1.0]]), 0.5, np.array([1.0, -1.0]), 1e8
    wishart = bz.find("normal_inverse_wishart")
    model = wishart(mu0=tuple(m0), kappa0=kappa, nu0=large, Psi0=tuple(map(tuple, large * sigma)))
    posterior = model.posterior(model.statistics({"Y": ROWS, "column": COLUMNS}))["mu"]
    prior = np.linalg.inv(sigma / kappa)
    precision = prior + len(ROWS) * np.linalg.inv(sigma)
    mean = np.linalg.solve(precision, prior @ m0 + np.linalg.inv(sigma) @ ROWS.sum(axis=0))
    assert posterior.mean() == pytest.approx(mean, abs=1e-9)
    assert posterior.std() == pytest.approx(np.sqrt(np.diag(np.linalg.inv(precision))), rel=1e-5)
    one = bz.find("gaussian_mean")(m0=1.0, s0=np.sqrt(2.0 / kappa), sigma=np.sqrt(2.0))
    of_one = one.posterior(one.statistics({"y": ROWS[:, 0]}))["mu"]
    assert (of_one.mean(), of_one.std()) == pytest.approx((mean[0], np.sqrt(2.0 / (kappa + len(ROWS)))), rel=1e-12)


def test_one_class_is_one_multivariate_normal():
    psi = tuple(map(tuple, np.eye(2) + 0.3))
    data = {"reals": ROWS, "y": np.zeros(len(ROWS), dtype=np.int64), "class": np.array(["all"]), "real": COLUMNS}
    one = bz.find("normal_inverse_wishart")(1.0, 0.3, 5.0, psi)
    expected = one.log_evidence(one.statistics({"Y": ROWS, "column": COLUMNS}))
    for covariance in ("full", "tied"):
        classes = bz.find("gaussian_discriminant")(m0=1.0, kappa0=0.3, nu0=5.0, Psi0=psi, covariance=covariance)
        assert classes.log_evidence(classes.statistics(data)) == pytest.approx(expected, abs=1e-9)


def test_a_brownian_process_is_a_level_that_moves():
    """At the times 1, 2, ... a level that starts with the variance s0^2 and moves by q: s0^2 = q^2 here."""
    y, q, r = ROWS[:12, 0], 0.7, 0.4
    times = np.arange(1.0, 13.0)[:, None]
    process = bz.find("gaussian_process")(kernel="brownian", m0=0.5)
    level = bz.find("local_level")(m0=0.5, s0=q)
    data = Data({"X": times, "y": y, "feature": np.array(["t"])})
    own = process.log_marginal({"amplitude": q, "length": 1.0, "sigma": r}, data)
    other = level.log_marginal({"q": q, "r": r}, {"y": y, "sequence": np.zeros(12, dtype=np.int64)})
    assert float(own) == pytest.approx(float(other), abs=1e-10)


def test_a_tree_that_is_a_chain_is_a_hidden_markov_model_with_known_tables():
    """Each symbol shows its state: the completion of a missing feature is the smoothed state."""
    initial, transition = np.array([0.3, 0.7]), np.array([[0.9, 0.1], [0.25, 0.75]])
    p = initial[:, None, None] * transition[:, :, None] * transition[None, :, :]
    given = p[1, :, 0] / p[1, :, 0].sum()  # the middle of 1, ?, 0
    chain = bz.find("hmm_categorical")(
        K=2, initial=tuple(initial), transition=tuple(map(tuple, transition)), emission=((1.0, 0.0), (0.0, 1.0))
    )
    data = {"y": np.array([1, -1, 0]), "sequence": np.zeros(3, dtype=np.int64), "symbol": np.array(["0", "1"])}
    params = {"initial": initial, "transition": transition, "emission": np.eye(2)}
    assert chain.component_probabilities(params, data)[1] == pytest.approx(given, abs=1e-12)
    features = {"feature": np.array(["f1", "f2", "f3"]), "level": np.array([f"f{i}={s}" for i in "123" for s in "pq"])}
    theta = np.concatenate([initial, transition.ravel(), transition.ravel()])
    rows = bz.find("tree_network")().likelihood({"theta": theta}, {"levels": np.zeros((1, 3), dtype=int), **features})
    assert rows.level_probabilities(np.array([[1, -1, 4]]))[0, 2:4] == pytest.approx(given, abs=1e-12)


def test_k_means_is_that_of_scikit_learn_and_counts_rows_apart():
    answer = bz.kmeans(ROWS, 3, seed=4)
    machine = sklearn.cluster.KMeans(3, n_init=20, random_state=9).fit(ROWS)
    assert answer.objective == pytest.approx(machine.inertia_, rel=1e-10)
    assert sklearn.metrics.adjusted_rand_score(answer.labels, machine.labels_) == 1
    assert answer.summary["rows"].is_monotonic_decreasing
    import pandas as pd

    other = pd.DataFrame({"component": (answer.labels + 1) % 3 + 1})
    assert answer.apart(other) == 0
    other.loc[:1, "component"] = 4 - other.loc[:1, "component"]
    assert answer.apart(other) <= 2
    with raises(InputError, "out_of_range", "9"):
        bz.kmeans([1.0, 2.0], 9)


def test_sequential_k_means_keeps_running_means():
    answer = bz.kmeans(ROWS, 3, sequential=True)
    for k in range(3):
        own = ROWS[answer.labels == k]
        assert answer.centres[k] == pytest.approx(own.mean(axis=0), abs=1e-12)
    centres, counts = [ROWS[0], ROWS[1], ROWS[2]], [0, 0, 0]
    for row in ROWS:
        k = int(np.argmin([np.sum((row - each) ** 2) for each in centres]))
        centres[k] = (counts[k] * centres[k] + row) / (counts[k] + 1)
        counts[k] += 1
    assert sorted(counts, reverse=True) == answer.summary["rows"].tolist()


def test_small_stagewise_steps_walk_the_path_of_the_lasso():
    """Where no coefficient changes its sign: each step adds a thousandth to the weight of highest correlation."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    X = (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), axis=0)
    y = X @ [5.0, 3.0, 2.0, 1.0]
    _, _, path = sklearn.linear_model.lars_path(X, y, method="lasso")
    assert np.all(path[:, -1:] * path >= -1e-12 * np.abs(path[:, -1:]).max())
    lengths, weights, step = np.abs(path).sum(axis=0), np.zeros(4), 1e-3
    for _ in range(int(lengths[-1] / step)):
        correlations = X.T @ (y - X @ weights)
        j = int(np.argmax(np.abs(correlations)))
        weights[j] += step * np.sign(correlations[j])
        expected = [np.interp(np.abs(weights).sum(), lengths, each) for each in path]
        assert np.abs(weights - expected).max() < 6 * step


def test_the_maximum_of_the_likelihood_is_nearest_in_divergence():
    """KL(shares of the rows || p) is least at the MLE: another p loses n times as many nats of likelihood."""
    model = bz.find("dirichlet_multinomial")()
    counts = np.array([5, 2, 3])
    data = {"y": np.repeat([0, 1, 2], counts), "category": np.array(["a", "b", "c"])}
    stats = model.statistics(data)
    best, shares = model.mle(stats)["p"], counts / counts.sum()

    def divergence(p):
        return scipy.stats.entropy(shares, p)

    assert divergence(best) == pytest.approx(0, abs=1e-12)
    for p in np.random.default_rng(0).dirichlet(np.ones(3), 20):
        lost = np.sum(counts * (np.log(best) - np.log(p)))
        assert counts.sum() * (divergence(p) - divergence(best)) == pytest.approx(lost, rel=1e-10)


def test_the_normal_nearest_in_divergence_is_the_mle_of_a_normal():
    model = bz.find("normal_gamma")()
    y = ROWS[:, 0]
    best = model.mle(model.statistics({"y": y}))

    def cross_entropy(at):
        return -np.mean(scipy.stats.norm(at[0], np.exp(at[1])).logpdf(y))

    found = scipy.optimize.minimize(cross_entropy, [0.0, 1.0], tol=1e-12).x
    assert [float(best["mu"]), float(best["lam"]) ** -0.5] == pytest.approx([found[0], np.exp(found[1])], rel=1e-4)
