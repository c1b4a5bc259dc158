"""Spike and slab regression: all subsets against SciPy, linear regression, published figures and Gibbs sampling."""

import io
import math
from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy
from bayeszoo.models.linear_regression import LinearRegression
from bayeszoo.models.spike_slab_regression import SpikeSlabRegression

import bayeszoo as bz
from bayeszoo.contract.case import case_of
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.contract.sampler import largest_share_z, point_mass_checks
from bayeszoo.data.read import read
from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.mixed import LocationScaleMixture
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.selection import chain as chains
from bayeszoo.results.quantities import exact_densities
from bayeszoo.results.stored import Fit
from tests.refusals import raises

rng = np.random.default_rng(2)
FEATURES = rng.standard_normal((9, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, 1.0]
OUTCOME = 4.0 + FEATURES @ [1.5, 0.0, -3.0] + 0.7 * rng.standard_normal(9)
THREE = {"y": OUTCOME, "X": FEATURES}
COVARIANCE = ((3.0, 0.2, 0.0, -0.1), (0.2, 1.5, 0.6, 0.0), (0.0, 0.6, 2.0, 0.3), (-0.1, 0.0, 0.3, 0.8))
FIELDS = {"V0": COVARIANCE, "a0": 2.5, "b0": 1.3, "a": 2.0, "b": 3.0, "m0": 1.0}


def by_scipy(model, data):
    """Return log p(y, subset) of every subset, and posterior means of the weights given each, by multivariate t.

    A row of weights given that some are 0 has the covariance of the conditional distribution.
    """
    design = np.column_stack([np.ones(len(data["y"])), data["X"]])
    log_joint, means, subsets = [], [], list(product((False, True), repeat=3))
    for subset in subsets:
        is_in, out = np.array([True, *subset]), ~np.array([True, *subset])
        V = np.array(COVARIANCE)
        given = V[np.ix_(is_in, is_in)]
        if out.any():
            across = V[np.ix_(is_in, out)]
            given = given - across @ np.linalg.solve(V[np.ix_(out, out)], across.T)
        x = design[:, is_in]
        shape = np.eye(len(x)) + x @ given @ x.T
        law = scipy.stats.multivariate_t(np.ones(len(x)), model.b0 / model.a0 * shape, df=2 * model.a0)
        k = sum(subset)
        prior = (
            scipy.special.betaln(2 + k, 6 - k) - scipy.special.betaln(2, 3)
            if model.pi is None
            else k * math.log(model.pi) + (3 - k) * math.log(1 - model.pi)
        )
        log_joint.append(law.logpdf(data["y"]) + prior)
        mean = np.zeros(4)
        mean[is_in] = given @ x.T @ np.linalg.solve(shape, data["y"] - 1.0)
        means.append(mean + np.array([1.0, 0, 0, 0]))
    return np.array(log_joint), np.array(means), np.array(subsets)


@pytest.mark.parametrize("pi", [None, 0.3])
def test_subsets_by_scipy(pi):
    model = SpikeSlabRegression(**FIELDS, pi=pi)
    data = read(model, THREE)
    log_joint, means, subsets = by_scipy(model, data)
    stats, weights = model.statistics(data), scipy.special.softmax(log_joint)
    posterior, included = model.posterior(stats), model.derived_marginals(stats)["included"]
    assert model.log_evidence(stats) == pytest.approx(scipy.special.logsumexp(log_joint), abs=1e-11)
    np.testing.assert_allclose(included.p, weights @ subsets, atol=1e-12)
    np.testing.assert_allclose(posterior["w"].atom[1:], 1 - weights @ subsets, atol=1e-12)
    np.testing.assert_allclose(posterior["w"].mean(), weights @ means, rtol=1e-10)
    if pi is None:
        assert posterior["pi"].mean() == pytest.approx(weights @ (2 + subsets.sum(axis=1)) / 8, abs=1e-12)


def test_predictive_density_is_a_ratio_of_evidences():
    model = SpikeSlabRegression(**FIELDS)
    longer = {"y": np.append(OUTCOME, 2.2), "X": np.vstack([FEATURES, [0.4, 1.0, 2.0]])}
    log_joints = [by_scipy(model, read(model, table))[0] for table in (THREE, longer)]
    less, more = (scipy.special.logsumexp(each) for each in log_joints)
    new = read(model, {"y": [2.2], "X": [[0.4, 1.0, 2.0]]})
    law = model.predictive(model.statistics(read(model, THREE)), new)
    assert law.logpdf(np.array([2.2]))[0] == pytest.approx(more - less, abs=1e-11)


def test_all_in_is_linear_regression():
    data = bz.example(SpikeSlabRegression)
    model = SpikeSlabRegression.weak(data).replaced(pi=1, V0=2.0)
    same = {name: getattr(model, name) for name in ("V0", "a0", "b0", "m0", "center", "scale")}
    line = LinearRegression(**same)
    stats = model.statistics(data)
    assert model.log_evidence(stats) == pytest.approx(line.log_evidence(stats), abs=1e-9)
    ours, theirs = model.posterior(stats), line.posterior(stats)
    for name in ("w", "sigma2"):
        for q in (0.01, 0.5, 0.9):
            np.testing.assert_allclose(ours[name].ppf(q), theirs[name].ppf(q), rtol=1e-9)
        np.testing.assert_allclose(ours[name].std(), theirs[name].std(), rtol=1e-9)
    predictives = [each.predictive(stats, data) for each in (model, line)]
    np.testing.assert_allclose(*(law.logpdf(data["y"]) for law in predictives), rtol=1e-9)
    np.testing.assert_allclose(*(law.std() for law in predictives), rtol=1e-9)


RATINGS = """43 51 30 39 61 92 45 63 64 51 54 63 73 47 71 70 68 69 76 86 48 61 63 45 47 54 84 35 81 78 56 66 71 83 47
43 55 49 44 54 49 34 58 67 42 56 66 68 35 71 75 50 55 70 66 41 72 82 72 67 71 83 31 67 61 45 47 62 80 41
64 53 53 58 58 67 34 67 60 47 39 59 74 41 69 62 57 42 55 63 25 68 83 83 45 59 77 35 77 77 54 72 79 77 46
81 90 50 72 60 54 36 74 85 64 69 79 79 63 65 60 65 75 55 80 60 65 70 46 57 75 85 46 50 58 68 54 64 78 52
50 40 33 34 43 64 33 64 61 52 62 66 80 41 53 66 52 50 63 80 37 40 37 42 58 50 57 49 63 54 42 48 66 75 33
66 77 66 63 88 76 72 78 75 58 74 80 78 49 48 57 44 45 51 83 38 85 85 71 71 77 74 55 82 82 39 59 64 78 39"""
"""Chatterjee and Price 1977: rating, complaints, privileges, learning, raises, critical and advance, 30 times."""
ATTITUDE = np.loadtxt(io.StringIO(RATINGS)).reshape(30, 7)


def test_published_inclusion_probabilities():
    """Zeugner and Feldkircher 2015 (Journal of Statistical Software 68(4)): attitude, g = n, flat intercept.

    Contrasts of the rows to their mean have no intercept, and what a flat prior of it leaves of the likelihood.
    """
    contrasts = scipy.linalg.helmert(30) @ ATTITUDE
    data = read(SpikeSlabRegression, {"y": contrasts[:, 0], "X": contrasts[:, 1:]})
    flat = {"intercept": False, "a0": 1e-9, "b0": 1e-9, "pi": 0.5, "center": 0.0, "scale": 1.0}
    model = SpikeSlabRegression.zellner(data, 30, **flat)
    p = model.derived_marginals(model.statistics(data))["included"].p
    np.testing.assert_allclose(p, [0.9996351, 0.1737658, 0.4056392, 0.1665853, 0.1535886, 0.2129325], atol=6e-8)


def test_prior_of_subsets_sums_to_one():
    for pi in (None, 0.2, 1.0):
        model = SpikeSlabRegression(a=2.0, b=5.0, pi=pi)
        data = read(model, {"y": OUTCOME, "X": np.hstack([FEATURES, FEATURES**2])})
        log_prior = model.selection(model.statistics(data)).log_prior
        assert math.fsum(math.comb(6, k) * math.exp(log_prior[k]) for k in range(7)) == pytest.approx(1, abs=1e-14)


# Mixtures with an atom


def test_mixture_with_an_atom():
    weights, loc, scale = np.array([[0.5, 0.2], [0.3, 0.1]]), np.array([[1.0, -2.0], [4.0, 0.5]]), np.ones((2, 2))
    law = LocationScaleMixture(frozen.t(7.0), weights, loc, scale)
    np.testing.assert_allclose(law.atom, [0.2, 0.7])
    draws = np.random.default_rng(1)
    which = draws.random((200_000, 1)) > np.cumsum([0.5, 0.3])
    first = np.choose(which.sum(axis=1), [1.0, 4.0, 0.0]) + (which.sum(axis=1) < 2) * draws.standard_t(7, 200_000)
    assert law.mean()[0] == pytest.approx(first.mean(), abs=4.5 * first.std() / math.sqrt(200_000))
    assert law.std()[0] == pytest.approx(first.std(), rel=0.01)
    for q in (0.001, 0.05, 0.2, 0.3, 0.7, 0.95):
        at = law.ppf(q)
        assert (law.below(at) <= q + 1e-12).all()
        assert (law.cdf(at) >= q - 1e-12).all()
    density = scipy.integrate.quad(lambda x: law.pdf(np.array([x, x]))[1], -np.inf, np.inf, points=None)[0]
    assert density == pytest.approx(0.3, abs=1e-8)
    np.testing.assert_allclose(law.logpdf(np.zeros(2)), np.log([0.2, 0.7]))
    np.testing.assert_allclose(np.exp(law.logcdf(np.ones(2))) + np.exp(law.logsf(np.ones(2))), 1.0, rtol=1e-14)


def test_quantiles_of_weights_by_draws():
    model = SpikeSlabRegression(**FIELDS)
    posterior = model.posterior(model.statistics(read(model, THREE)))
    exact = posterior.rvs((4, 1000), np.random.default_rng(5))
    assert largest_share_z(exact, posterior) < 4.4
    wrong = {**exact, "w": np.where(np.random.default_rng(6).random(exact["w"].shape) < 0.1, 0.0, exact["w"])}
    assert largest_share_z(wrong, posterior) > 4.4


# Gibbs sampling


@cache
def of_many_subsets():
    """Return a model and data of which no subset is sure."""
    draw = np.random.default_rng(3)
    X = draw.standard_normal((30, 7)) @ (np.eye(7) + 0.3 * draw.standard_normal((7, 7)))
    y = X @ [1.0, 0, 0.4, 0, 0.5, 0, 0] + 1.5 * draw.standard_normal(30)
    data = read(SpikeSlabRegression, {"y": y, "X": X})
    return SpikeSlabRegression.weak(data), data


def chain_errors(model, data, sweeps=8000):
    """Return errors of inclusion frequencies of a chain, in standard errors by batches of a hundred sweeps."""
    chain, seen = model.gibbs(data, np.random.default_rng(7)), []
    chain.sweep(100)
    for _ in range(sweeps):
        chain.sweep(1)
        seen.append(chain.members)
    exact = model.derived_marginals(model.statistics(data))["included"].p
    batches = np.array(seen, dtype=float).reshape(-1, 100, len(exact)).mean(axis=1)
    return np.abs(batches.mean(axis=0) - exact) / (batches.std(axis=0, ddof=1) / math.sqrt(len(batches)))


def test_gibbs_inclusion_probabilities_are_exact():
    assert chain_errors(*of_many_subsets()).max() < 4.5


def test_a_wrong_chain_is_seen(monkeypatch):
    model, data = of_many_subsets()
    right = chains.SelectionChain.__init__

    def without_prior_precision(self, selection, *others):
        right(self, selection, *others)
        self._numbers = (self._numbers[0], self._numbers[1] * 2, *self._numbers[2:])

    monkeypatch.setattr(chains.SelectionChain, "__init__", without_prior_precision)
    assert chain_errors(model, data).max() > 4.5


def test_log_joint_of_a_chain():
    model = SpikeSlabRegression(**FIELDS)
    data = read(model, THREE)
    chain, (log_joint, _, subsets) = model.gibbs(data, np.random.default_rng(1)), by_scipy(model, data)
    for _ in range(10):
        chain.sweep(1)
        place = np.flatnonzero((subsets == chain.members).all(axis=1))
        assert chain.log_joint == pytest.approx(log_joint[place].item(), abs=1e-11)
        drawn = chain.draw()
        np.testing.assert_array_equal(drawn["w"][1:] != 0, chain.members)


@pytest.mark.slow
def test_fits_by_gibbs_agree_with_exact_ones():
    for check in point_mass_checks(SpikeSlabRegression, None, 0):
        assert check.passed, str(check)


class OddsOfSlab(SpikeSlabRegression):
    """Whose declaration takes pi for the probability of being out."""

    def declare(self, data):
        return SpikeSlabRegression(**FIELDS, pi=1 - self.pi).declare(data)


def test_a_wrong_declaration_is_seen():
    data = read(SpikeSlabRegression, THREE)
    identity = next(each for each in IDENTITIES if each.function == "candidate_identity")
    fields = {**FIELDS, "pi": 0.3}
    assert run_identity(identity, case_of(SpikeSlabRegression(**fields), data)).passed
    assert not run_identity(identity, case_of(OddsOfSlab(**fields), data)).passed


# Traps


def fitted(table, **fields):
    model = SpikeSlabRegression(**fields)
    data = read(model, table)
    return model, data, model.statistics(data)


def test_a_column_that_says_nothing_keeps_its_prior():
    X = np.column_stack([FEATURES, np.full(9, 7.0)])
    data = read(SpikeSlabRegression, {"y": OUTCOME, "X": X})
    model = SpikeSlabRegression.weak(data).replaced(pi=0.3)
    assert model.derived_marginals(model.statistics(data))["included"].p[3] == pytest.approx(0.3, abs=1e-12)


def test_aliased_columns_share_and_have_no_g_prior():
    model, data, stats = fitted({"y": OUTCOME, "X": FEATURES[:, [0, 2, 2]]}, pi=0.5)
    p = model.derived_marginals(stats)["included"].p
    assert p[1] == pytest.approx(p[2], abs=1e-10)
    assert model.posterior(stats)["w"].mean()[1:] @ [0, 1, -1] == pytest.approx(0, abs=1e-9)
    with raises(InputError, "no_g_prior", "3", "4"):
        SpikeSlabRegression.zellner(data)


def test_more_terms_than_rows_and_too_many_to_go_through():
    draw = np.random.default_rng(0)
    X = draw.standard_normal((12, 30))
    model, data, stats = fitted({"y": 3 * X[:, 0] + 0.3 * draw.standard_normal(12), "X": X}, a=1, b=30)
    line = ("too_many_subsets", "30", "1.1e+09", "1,024")
    with raises(NumericalError, *line):
        model.posterior(stats)
    chain = model.gibbs(data, draw)
    chain.sweep(200)
    inside = []
    for _ in range(200):
        chain.sweep(1)
        inside.append(chain.members)
    share = np.mean(inside, axis=0)
    assert share[0] > 0.9
    assert share[1:].max() < 0.5


@pytest.mark.parametrize("count", [4, 14])
def test_p_above_n_is_exact(count):
    draw = np.random.default_rng(1)
    X = draw.standard_normal((3, count))
    model, _data, stats = fitted({"y": X[:, 0], "X": X}, V0=1.5, a0=2, b0=1)
    log_joint = model.selection(stats).log_joint(np.arange(count + 1)[None])[0]
    design = np.column_stack([np.ones(3), X])
    law = scipy.stats.multivariate_t(np.zeros(3), 0.5 * (np.eye(3) + 1.5 * design @ design.T), df=4)
    assert log_joint == pytest.approx(law.logpdf(X[:, 0]) - math.log(count + 1), abs=1e-10)
    assert model.posterior(stats)["w"].atom.min() >= 0


def test_no_features():
    model, _, stats = fitted(THREE, features=())
    line = LinearRegression(features=(), V0=1.0)
    assert model.log_evidence(stats) == pytest.approx(line.log_evidence(stats), abs=1e-12)
    assert model.posterior(stats)["w"].atom == 0


def test_no_intercept():
    model, data, stats = fitted(THREE, intercept=False, pi=0.4, b0=2.0)
    empty = scipy.stats.multivariate_t(np.zeros(9), 2.0 * np.eye(9), df=2).logpdf(OUTCOME) + 3 * math.log(0.6)
    assert model.selection(stats).log_joint(np.zeros((1, 0), dtype=int))[0] == pytest.approx(empty, abs=1e-11)
    assert np.isfinite(model.gibbs(data, np.random.default_rng(0)).log_joint)


def test_nearly_dependent_terms_under_a_wide_prior_are_refused():
    X = np.column_stack([FEATURES[:, 0], FEATURES[:, 0] * (1 + 1e-14)])
    model, data, stats = fitted({"y": OUTCOME, "X": X}, V0=1e24)
    with raises(NumericalError, "rounding"):
        model.log_evidence(stats)
    with raises(NumericalError, "rounding"):
        model.gibbs(data, np.random.default_rng(0))


@pytest.mark.parametrize("pi", [0.0, 1.5, True, math.nan])
def test_pi_is_a_probability(pi):
    with raises(InputError, "out_of_range", "pi", "0", "1"):
        SpikeSlabRegression(pi=pi)


@pytest.mark.parametrize("method", ["nuts", "map", "mle", "advi", "laplace", "smc"])
def test_methods_that_follow_a_density_are_not_offered(method):
    with raises(InputError, "method_unavailable", method, "exact, gibbs"):
        bz.fit(SpikeSlabRegression, THREE, method)


def test_a_fit_says_what_is_most_probable():
    tree = bz.fit(SpikeSlabRegression, bz.example(SpikeSlabRegression), "exact", seed=1, groups=[])
    assert tree.attrs["status"] == "ok"
    assert "most probable of the 1,024 subsets of terms (0.192): sex, bmi, bp, s1, s2, s5" in tree.attrs["notes"]
    included = tree["exact"]["included"].sel(statistic="mean")
    assert included.sel(slope="bmi") > 0.999
    assert included.sel(slope="age") < 0.2


def test_what_may_be_exactly_0_has_no_density_to_draw_and_is_compared_by_draws():
    draw = np.random.default_rng(8)
    X = draw.standard_normal((24, 2))
    table = {"y": X[:, 0] + draw.standard_normal(24), "a": X[:, 0], "b": X[:, 1], "group": ["u", "v"] * 12}
    weak = SpikeSlabRegression(a0=2.0)
    trees = bz.fit_by(weak, table, by="group", method="exact", seed=1)
    both = [read(weak, {name: table[name][i::2] for name in "yab"}) for i in (0, 1)]
    (low, high) = (weak.posterior(weak.statistics(rows)) for rows in both)
    frame = bz.contrasts(trees).set_index("quantity")
    places = np.random.default_rng(9)
    drawn = [each.rvs(20_000, places)["w"][:, 1] for each in (low, high)]
    greater = np.mean(drawn[1] > drawn[0])
    row = frame.loc["w[a]"]
    assert abs(row["p_greater"] - greater) < 4.5 * math.hypot(row["p_greater_mcse"], 0.5 / math.sqrt(20_000))
    assert row["p_greater_mcse"] > 0
    tree = bz.fit(weak, both[0], "exact", seed=1, groups=[])
    curves = exact_densities(Fit(tree), ["w[(intercept)]", "w[a]", "included[a]", "sigma2"])
    assert curves["quantity"].to_numpy().tolist() == ["w[(intercept)]", "sigma2"]


def test_a_description_length_of_all_weights_is_not_its_own():
    data = read(SpikeSlabRegression, THREE)
    models = {"spike": SpikeSlabRegression(), "line": LinearRegression()}
    frame = bz.select(models, data, loo=False, folds=3).set_index("model")
    assert frame.loc["spike", "mdl_from"] == "withheld: it averages over subsets of the weights and chooses none"
    assert math.isnan(frame.loc["spike", "mdl"])
    assert np.isfinite(frame.loc["line", "mdl"])
