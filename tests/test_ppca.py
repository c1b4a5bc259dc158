"""Probabilistic PCA against scikit-learn, direct maximization, and the limits that textbooks give."""

import math
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
import scipy
from sklearn.decomposition import PCA

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.factors import declaration, loadings_shape, ppca, steps
from bayeszoo.foundation.numerics.optimize import maximize
from bayeszoo.inference.engine.approximation import gaussian
from bayeszoo.inference.engine.ascent import NOISE
from bayeszoo.inference.methods import em
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.test_likelihoods_counts import by_scipy

Ppca = bz.find("ppca")
IRIS = bz.example(Ppca, "iris")
AIR = bz.example(Ppca, "airquality")
WEAK = Ppca.weak(IRIS)


def covariance(params):
    W = np.asarray(params["loadings"])
    return W @ W.T + params["variance"] * np.eye(len(W))


def data_of(Y):
    return {"Y": np.asarray(Y), "column": np.array([f"x{j}" for j in range(np.shape(Y)[1])])}


def planted(rows, D=6, q=2, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(D, q)) * 2
    return W, rng.normal(size=(rows, q)) @ W.T + noise * rng.normal(size=(rows, D)) + rng.normal(size=D)


def climbed(model, data, flat=True):
    return em.climbs(model, model.statistics(data), np.random.default_rng(0), flat=flat, restarts=3).best


def widened(params):
    """Return the estimate whose covariance has the divisor n - 1."""
    return {**params, "loadings": params["loadings"] * math.sqrt(150 / 149), "variance": params["variance"] * 150 / 149}


# Maximum likelihood


@pytest.mark.parametrize("q", [1, 2, 3])
def test_closed_form_is_scikit_learns_noise_variance_and_score(q):
    Y, n = IRIS["Y"], 150
    peer, model = PCA(q).fit(Y), replace(WEAK, q=q)
    params = em.mle(model, model.statistics(IRIS))
    assert model.free_parameters(model.statistics(IRIS)) == 4 + 4 * q - q * (q - 1) // 2 + 1
    assert params["variance"] == pytest.approx(peer.noise_variance_ * (n - 1) / n, rel=1e-10)  # its divisor is n - 1
    np.testing.assert_allclose(covariance(params), peer.get_covariance() * (n - 1) / n, rtol=1e-10, atol=1e-12)
    assert model.likelihood(widened(params), IRIS).logpdf(Y).mean() == pytest.approx(peer.score(Y), rel=1e-10)
    assert model.log_likelihood(model.statistics(IRIS), params) >= n * peer.score(Y)


def test_em_of_rows_with_holes_is_their_direct_maximum():
    Y = (AIR["Y"] - np.nanmean(AIR["Y"], axis=0)) / np.nanstd(AIR["Y"], axis=0)
    model = Ppca(q=2)
    stats = model.statistics(data_of(Y))
    found = climbed(model, data_of(Y))

    def descend(x):
        here = ppca.from_vector(x, 2)
        value, of_mean, of_W, of_variance = steps.value_and_gradient(stats, here)
        at = loadings_shape.entries(4, 2)
        return -value, -np.concatenate([of_mean, of_W[at], [of_variance * here["variance"]]])

    start = ppca.to_vector(model.start(stats, np.random.default_rng(5)))
    options = {"gtol": 1e-10, "ftol": 1e-16, "maxiter": 2000}
    direct = scipy.optimize.minimize(descend, start, jac=True, method="L-BFGS-B", options=options)
    assert found.objective == pytest.approx(-direct.fun, rel=1e-10)
    np.testing.assert_allclose(covariance(found.state), covariance(ppca.from_vector(direct.x, 2)), atol=1e-5)
    checks = model.certificate(stats, found.state)
    assert all(check.passed for check in checks)


def test_fitting_reports_the_closed_form_with_its_certificate_which_a_wrong_divisor_fails():
    tree = bz.fit(WEAK, IRIS, "mle", seed=1)
    assert tree.attrs["status"] == "ok"
    assert tree.attrs["sampler"] == "closed form"
    assert Fit(tree).checks["stationary_distance"]["value"] < 1e-9
    assert Fit(tree).fact("log_likelihood") == pytest.approx(-404.96278015610, abs=1e-9)
    stats = WEAK.statistics(IRIS)
    assert not all(check.passed for check in WEAK.certificate(stats, widened(em.mle(WEAK, stats))))


@pytest.mark.slow
def test_of_a_file_in_chunks_the_maximum_is_the_same(tmp_path):
    for data, method, missing in ((IRIS, "mle", "refuse"), (AIR, "em", "mask")):
        path, model = tmp_path / "rows.csv", Ppca.weak(data)
        cells = [[("" if np.isnan(y) else repr(float(y))) for y in row] for row in data["Y"]]
        path.write_text("\n".join(",".join(row) for row in [list(data["column"]), *cells]))
        total = bz.accumulate(model, path, rows=17, missing=missing)
        options = {"estimate": "mle"} if method == "em" else {}
        trees = [bz.fit(model, given, method, seed=2, **options) for given in (total, data)]
        one, other = ({name: v.to_numpy()[0, 0] for name, v in tree["posterior"].data_vars.items()} for tree in trees)
        # climbs that begin apart end where gains are below NOISE of the height h: within sqrt(2 NOISE h) sd of it
        height, whole = abs(Fit(trees[1]).fact("log_likelihood")), covariance(other)
        sd = np.sqrt((np.outer(np.diag(whole), np.diag(whole)) + whole**2) / len(data["Y"]))
        away = 1e-9 if method == "mle" else np.sqrt(2 * NOISE * height)
        assert np.max(np.abs(covariance(one) - whole) / sd) < 2 * away
        assert Fit(trees[0]).fact("log_likelihood") == pytest.approx(Fit(trees[1]).fact("log_likelihood"), rel=1e-9)
        bz.save(trees[0], tmp_path / "fit.nc", overwrite=True)
        back = bz.load(tmp_path / "fit.nc")
        assert back["statistics"]["observed"].shape == (1 if data is IRIS else 4, 4)


# Limits


def test_without_noise_the_factors_span_the_subspace_of_pca_and_a_column_may_be_constant():
    Y = np.column_stack([planted(200, noise=1e-4)[1], np.full(200, 7.0)])
    model = Ppca(q=2)
    params = em.mle(model, model.statistics(data_of(Y)))
    assert params["variance"] < 1e-7
    assert params["mean"][-1] == 7.0
    assert abs(params["loadings"][-1]).max() < 1e-8
    assert scipy.linalg.subspace_angles(params["loadings"], PCA(2).fit(Y).components_.T).max() < 1e-7


@pytest.mark.parametrize("data", [IRIS, pytest.param(AIR, marks=pytest.mark.slow)], ids=["complete", "holes"])
def test_units_and_the_order_of_the_rows_do_not_matter(data):
    model, rng = Ppca.weak(data), np.random.default_rng(0)
    stats = model.statistics(data)
    found = em.mle(model, stats)
    scaled = {**data, "Y": 100 * data["Y"][rng.permutation(data.rows)]}
    other = em.mle(Ppca.weak(scaled), model.statistics(scaled))
    np.testing.assert_allclose(other["loadings"], 100 * found["loadings"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(covariance(other), 1e4 * covariance(found), rtol=1e-6, atol=1.0)
    cells = np.isfinite(data["Y"]).sum() * math.log(100)
    moved = model.log_likelihood(model.statistics(scaled), other)
    assert moved == pytest.approx(model.log_likelihood(stats, found) - cells, rel=1e-11)


def test_fewer_rows_than_columns_will_do():
    _, Y = planted(6, D=20, q=2)
    model = Ppca(q=2)
    stats = model.statistics(data_of(Y))
    params, singular = em.mle(model, stats), np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False)
    assert params["variance"] == pytest.approx(np.sum(singular[2:] ** 2) / 6 / 18)
    assert all(check.passed for check in model.certificate(stats, params))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_rows_that_factors_fit_exactly_have_no_maximum(rows):
    model, data = Ppca(q=2), data_of(planted(rows, q=2)[1])
    with raises(NumericalError, "no_maximum", "estimate", "2", rows):
        em.mle(model, model.statistics(data))
    with raises(NumericalError, "not_converged", "2"):
        climbed(model, data)
    assert np.isfinite(climbed(model, data, flat=False).objective)


def test_as_many_factors_as_columns_are_refused():
    for q, columns, message in ((5, 3, "5 factors of 3 columns: at most 2"), (1, 1, "1 factor of 1 column: none is")):
        with raises(InputError, "too_many_factors", message):
            bz.fit(Ppca(q=q), data_of(np.ones((4, columns))), "mle")
    with raises(InputError, "out_of_range", "1"):
        Ppca(q=0)


# The prior, and the two declarations


def normal_loadings(rng, size):
    return rng.normal(0.0, 0.7, (size, 4, 2))


def bartlett(size, seed, wrong=False):
    draw = declaration._draw(np.full((4, 2), 0.7), np.random.default_rng(seed), (size,))
    if wrong:  # a half-normal diagonal, as if L were W's lower part
        at = range(2)
        draw[:, at, at] = np.abs(np.random.default_rng(seed).normal(0, 0.7, (size, 2)))
    return draw


def invariants(W):
    C = W @ W.mT
    return {"entries": C[:, *np.tril_indices(4)], "largest": np.linalg.eigvalsh(C)[:, 2:]}


@pytest.mark.parametrize("wrong", [False, True])
def test_the_prior_of_identified_loadings_is_that_of_normal_ones_up_to_rotation(wrong):
    one = invariants(bartlett(20_000, 1, wrong))
    other = invariants(normal_loadings(np.random.default_rng(2), 20_000))
    p = [scipy.stats.ks_2samp(one[k][:, i], other[k][:, i]).pvalue for k in one for i in range(one[k].shape[1])]
    assert (min(p) > 1e-4) is not wrong


def test_identified_loadings_have_the_same_products_and_a_positive_diagonal():
    W = normal_loadings(np.random.default_rng(0), 50)
    L = loadings_shape.identified(W)
    np.testing.assert_allclose(L @ L.mT, W @ W.mT, atol=1e-12)
    assert np.all(np.diagonal(L, axis1=1, axis2=2) > 0)
    assert np.all(L[:, 0, 1] == 0)
    np.testing.assert_allclose(loadings_shape.identified(L), L, atol=1e-12)


def test_densities_of_loadings_are_scipys():
    L = loadings_shape.identified(normal_loadings(np.random.default_rng(0), 5))
    expected = scipy.stats.chi(2, scale=0.7).logpdf(L[:, 0, 0]) + scipy.stats.chi(1, scale=0.7).logpdf(L[:, 1, 1])
    expected += scipy.stats.norm(0, 0.7).logpdf(L[:, *np.tril_indices(4, -1, 2)]).sum(axis=1)
    np.testing.assert_allclose(loadings_shape.log_density(L, 0.7), expected, rtol=1e-12)
    with pm.Model() as model:
        declaration.IdentifiedLoadings("L", np.float64(0.7), 4, 2)
    density = Density(model, mode="FAST_COMPILE")
    flat = [density.unconstrain({"L": one}) for one in L]
    np.testing.assert_allclose([density.constrained_joint(x)[0] for x in flat], expected, rtol=1e-12)
    jacobian = [density.joint(x)[0] - density.constrained_joint(x)[0] for x in flat]
    np.testing.assert_allclose(jacobian, np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(density.constrain(np.array(flat))["L"], L, atol=1e-13)


def off_default(data):
    return replace(Ppca.weak(data), s0=Ppca.weak(data).s0 * 1.3, a0=2.1, b0=Ppca.weak(data).b0 * 1.7)


@pytest.mark.slow  # each density compiles for some ten seconds
@pytest.mark.parametrize("data", [IRIS, AIR], ids=["complete", "holes"])
def test_declared_and_compressed_are_one_density_and_scipys(data):
    model, rng = off_default(data), np.random.default_rng(0)
    stats = model.statistics(data)
    declared = Density(model.declare(data), mode="FAST_COMPILE")
    compressed = Density(model.compressed(stats))
    mode = em.mle(model, stats)
    for _ in range(5):
        W = mode["loadings"] * rng.uniform(0.8, 1.2, (4, 2))
        mean, variance = mode["mean"] * rng.uniform(0.99, 1.01, 4), mode["variance"] * rng.uniform(0.8, 1.2)
        params = {"mean": mean, "loadings": W, "variance": variance}
        prior = scipy.stats.norm(model.m0, model.s0).logpdf(mean).sum()
        prior += scipy.stats.invgamma(model.a0, scale=model.b0).logpdf(variance)
        prior += loadings_shape.log_density(W, model.w0)
        x = declared.unconstrain(params)
        likelihood = by_scipy(mean, W, variance, data["Y"])
        assert model.log_prior(params, stats) == pytest.approx(prior, rel=1e-12)
        assert declared.constrained_joint(x)[0] == pytest.approx(prior + likelihood, rel=1e-11)
        assert compressed.joint(x)[0] == pytest.approx(declared.joint(x)[0], rel=1e-11)
        np.testing.assert_allclose(compressed.joint(x)[1], declared.joint(x)[1], rtol=1e-8, atol=1e-8)
        rows = model.likelihood(params, data)
        assert rows.logpdf(data["Y"]).sum() == pytest.approx(likelihood, rel=1e-12)


# The mode of the posterior, and fits


def test_a_step_that_forgets_the_prior_is_seen_to_fall(monkeypatch):
    monkeypatch.setattr(Ppca, "m_step", lambda self, stats, flat=False: ppca.m_step_flat(stats))
    with raises(NumericalError, "not_converged"):
        climbed(replace(WEAK, w0=0.05), IRIS, flat=False)


@pytest.mark.slow
def test_an_approximation_of_iris_passes_its_gate():
    tree = bz.fit(WEAK, IRIS, "fullrank_advi", seed=1)
    assert tree.attrs["status"] == "ok"
    assert tree["derived"]["eigenvalues"].dims == ("chain", "draw", "factor")


def importance_sampled(model, data):
    """Return means under the posterior by weights of a wider Student-t at its mode."""
    density = Density(model.compressed(model.statistics(data)))
    q = gaussian(maximize(density.joint, density.unconstrain(em.mle(model, model.statistics(data)))))
    wide = scipy.stats.multivariate_t(q.mean, 1.3 * q.scale @ q.scale.T, df=8, seed=0)
    x = wide.rvs(40_000)
    log_weights = np.array([density.joint(one)[0] for one in x]) - wide.logpdf(x)
    weights = scipy.special.softmax(log_weights)
    assert 1 / np.sum(weights**2) > 4000
    return {name: np.tensordot(weights, values, 1) for name, values in density.constrain(x).items()}


@pytest.mark.slow
@pytest.mark.parametrize("data", [IRIS, AIR], ids=["complete", "holes"])
def test_nuts_passes_its_gate_and_agrees_with_importance_sampling(data):
    model = Ppca.weak(data)
    tree, expected = bz.fit(model, data, "nuts", seed=1), importance_sampled(model, data)
    assert tree.attrs["status"] == "ok"
    for name, mean in expected.items():
        draws = tree["posterior"][name].to_numpy()
        gap, sd = draws.mean((0, 1)) - mean, draws.std((0, 1))
        assert np.all(np.abs(gap) <= 0.12 * sd + 1e-12)
        assert not np.all(np.abs(gap + 0.25 * sd) <= 0.12 * sd + 1e-12)  # it would see a quarter of a sd


def test_chains_are_judged_by_the_entries_that_can_move():
    density = Density(WEAK.compressed(WEAK.statistics(IRIS)))
    draws = density.constrain(np.random.default_rng(0).normal(size=(2, 10, density.size)))
    kept = density.moving(draws)
    assert {name: v.shape[2:] for name, v in kept.items()} == {"mean": (4,), "variance": (), "loadings": (7,)}


def test_share_explained_and_eigenvalues_are_those_of_the_covariance():
    params = em.mle(WEAK, WEAK.statistics(IRIS))
    found, values = WEAK.derived(params), np.linalg.eigvalsh(covariance(params))[::-1]
    np.testing.assert_allclose(found["eigenvalues"], values[:2])
    explained = np.trace(params["loadings"] @ params["loadings"].T) / values.sum()
    assert found["explained"] == pytest.approx(explained)


def test_the_mode_of_columns_of_very_different_units_is_found_though_steps_along_the_climb_overflow():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 4)) * [1e8, 1.0, 1.0, 1.0]
    data = bz.read(Ppca, data_of(Y))
    model = Ppca.weak_with(data, {"q": 2})
    infinite = {**model.start(data, rng), "variance": np.float64(np.inf)}
    assert not np.isfinite(model.e_step(infinite, data).value)
    tree = bz.fit(model, data, "map", seed=1, groups=())
    params = {name: tree["posterior"][name].to_numpy()[0, 0] for name in ("mean", "loadings", "variance")}
    expected = scipy.stats.multivariate_normal(params["mean"], covariance(params)).logpdf(Y).sum()
    assert Fit(tree).fact("log_likelihood") == pytest.approx(expected, rel=1e-10)
    assert tree.attrs["status"] == "ok"
