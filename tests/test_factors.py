"""Factors of rows, reconstructions and rotations, against brute force, SciPy and scikit-learn."""

import itertools

import numpy as np
import pytest
import scipy
from sklearn.decomposition import PCA

import bayeszoo as bz
from bayeszoo.answers import factors as projection
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.families.factors import base as factors
from bayeszoo.families.factors.base import FactorRows, latent_posterior, principal_axes, procrustes, reconstruction

RNG = np.random.default_rng(0)
PARAMS = {"mean": RNG.normal(size=5), "loadings": RNG.normal(size=(5, 2)), "variance": np.float64(0.4)}
DRAWS = {name: np.asarray(v) * RNG.uniform(0.8, 1.2, (3, 2, *np.shape(v))) for name, v in PARAMS.items()}
ROWS = RNG.normal(size=(12, 5))
HOLES = np.where(RNG.random((12, 5)) < 0.4, np.nan, ROWS)
HOLES[3] = np.nan
Ppca = bz.find("ppca")


def joint(params):
    """Mean and covariance of (z, y, y without noise), by the definition of the model."""
    W, (D, q) = params["loadings"], np.shape(params["loadings"])
    A = np.block([[np.eye(q), np.zeros((q, D))], [W, np.eye(D)], [W, np.zeros((D, D))]])
    source = np.diag([*np.ones(q), *np.full(D, params["variance"])])
    return np.concatenate([np.zeros(q), params["mean"], params["mean"]]), A @ source @ A.T


def conditional(params, y):
    """Condition the joint Gaussian on what was observed of y (Bishop 2006, 2.81 and 2.82)."""
    mean, C = joint(params)
    seen = 2 + np.flatnonzero(~np.isnan(y))
    gain = C[:, seen] @ np.linalg.inv(C[np.ix_(seen, seen)])
    return mean + gain @ (y[seen - 2] - mean[seen]), C - gain @ C[seen]


@pytest.mark.parametrize("rows", [ROWS, HOLES], ids=["complete", "holes"])
def test_factors_and_reconstructions_are_conditionals_of_the_joint_gaussian(rows):
    found, (mean, sd) = latent_posterior(PARAMS, rows), reconstruction(PARAMS, rows)
    for n, y in enumerate(rows):
        centre, C = conditional(PARAMS, y)
        np.testing.assert_allclose(found.mean[n], centre[:2], atol=1e-12)
        np.testing.assert_allclose(found.covariance[n], C[:2, :2], atol=1e-12)
        at = np.where(np.isnan(y), np.arange(2, 7), np.arange(7, 12))  # the number, or it without noise
        np.testing.assert_allclose(mean[n], centre[at], atol=1e-12)
        np.testing.assert_allclose(sd[n], np.sqrt(np.diag(C)[at]), atol=1e-12)


def test_a_row_of_nothing_is_the_prior():
    found = latent_posterior(PARAMS, HOLES)
    assert not found.mean[3].any()
    assert factors.row_log_likelihood(PARAMS, HOLES)[3] == 0.0
    np.testing.assert_allclose(found.covariance[3], np.eye(2), atol=1e-13)


@pytest.mark.parametrize(("rows", "cells"), [(ROWS, 2**22), (HOLES, 2**22), (HOLES, 1)])
def test_rows_have_scipys_density_draw_by_draw_however_few_are_taken_at_a_time(rows, cells, monkeypatch):
    monkeypatch.setattr(factors, "_CELLS", cells)
    found = FactorRows(**DRAWS, rows=12).logpdf(rows)
    assert found.shape == (3, 2, 12)
    for i, j in np.ndindex(3, 2):
        W = DRAWS["loadings"][i, j]
        C = W @ W.T + DRAWS["variance"][i, j] * np.eye(5)
        for n, y in enumerate(rows):
            s = ~np.isnan(y)
            law = scipy.stats.multivariate_normal(DRAWS["mean"][i, j][s], C[np.ix_(s, s)]) if s.any() else None
            assert found[i, j, n] == pytest.approx(law.logpdf(y[s]) if law else 0.0, rel=1e-11)


@pytest.mark.parametrize("wrong", [False, True])
def test_moments_quantiles_and_draws_of_a_row_agree(wrong):
    law = FactorRows(**PARAMS, rows=3)
    sd = np.sqrt(np.diag(PARAMS["loadings"] @ PARAMS["loadings"].T) + 0.4)
    np.testing.assert_allclose(law.std(), np.tile(sd, (3, 1)))
    np.testing.assert_allclose(law.ppf(0.975), scipy.stats.norm(law.mean(), law.std()).ppf(0.975))
    many = FactorRows(**PARAMS, rows=20_000)
    drawn = many.rvs((20_000, 5), np.random.default_rng(1))
    drawn = drawn * np.array([1.05, 1, 1, 1, 1]) if wrong else drawn
    C = PARAMS["loadings"] @ PARAMS["loadings"].T + 0.4 * np.eye(5)
    deviation = drawn - PARAMS["mean"]
    whitened = deviation @ np.linalg.inv(np.linalg.cholesky(C)).T
    p = [scipy.stats.kstest(column, "norm").pvalue for column in whitened.T]
    p.append(scipy.stats.kstest(np.sum(whitened**2, axis=1), "chi2", (5,)).pvalue)
    assert (min(p) > 1e-4) is not wrong


def test_procrustes_is_scipys_and_can_be_undone():
    reference = RNG.normal(size=(5, 2))
    found = procrustes(DRAWS["loadings"], reference)
    for i, j in np.ndindex(3, 2):
        expected, _ = scipy.linalg.orthogonal_procrustes(DRAWS["loadings"][i, j], reference)
        np.testing.assert_allclose(found[i, j], expected, atol=1e-12)
    aligned = DRAWS["loadings"] @ found
    np.testing.assert_allclose(aligned @ found.mT, DRAWS["loadings"], atol=1e-13)
    np.testing.assert_allclose(aligned @ aligned.mT, DRAWS["loadings"] @ DRAWS["loadings"].mT, atol=1e-12)


def test_principal_axes_are_eigenvectors_of_the_mean_product():
    axes = principal_axes(DRAWS["loadings"])
    mean = (DRAWS["loadings"] @ DRAWS["loadings"].mT).mean((0, 1))
    values, vectors = np.linalg.eigh(mean)
    np.testing.assert_allclose(np.sum(axes**2, axis=0), values[::-1][:2])
    np.testing.assert_allclose(np.abs(axes / np.linalg.norm(axes, axis=0)), np.abs(vectors[:, ::-1][:, :2]))
    assert np.all(axes[np.argmax(np.abs(axes), axis=0), range(2)] > 0)


# Of fits


@pytest.fixture(scope="module")
def iris():
    return bz.fit(Ppca.weak(bz.example(Ppca, "iris")), method="mle", seed=1)


@pytest.fixture(scope="module")
def air():
    data = bz.example(Ppca, "airquality")
    return bz.fit(Ppca.weak(data), data, "laplace", seed=1, draws=500)


def test_scores_lie_along_scikit_learns_components(iris):
    Y = bz.example(Ppca, "iris")["Y"]
    peer, found = PCA(2).fit_transform(Y), bz.project(iris)
    assert list(found.index.names) == ["row", "factor"]
    assert len(found) == 300
    scores = found["mean"].to_numpy().reshape(150, 2)
    params = {name: v.to_numpy()[0, 0] for name, v in iris["posterior"].data_vars.items()}
    values = np.var(peer, axis=0)
    shrunk = np.sqrt(values - params["variance"]) / values  # Tipping and Bishop 1999, section 3.3
    np.testing.assert_allclose(np.abs(scores), np.abs(peer * shrunk), atol=1e-8)
    sd = np.sqrt(params["variance"] / values)
    np.testing.assert_allclose(found["sd"].to_numpy().reshape(150, 2), np.tile(sd, (150, 1)))
    np.testing.assert_allclose(found["q975"] - found["mean"], 1.959963984540054 * found["sd"])


def test_scores_of_new_rows_are_those_of_the_fit(iris):
    Y = bz.example(Ppca, "iris")
    table = dict(zip(reversed(Y["column"].tolist()), Y["Y"][:5].T[::-1], strict=True))
    np.testing.assert_allclose(bz.project(iris, table)["mean"], bz.project(iris)["mean"][:10])


def test_scores_do_not_depend_on_the_rotation_of_draws(air):
    turned = air.copy()
    posterior = air["posterior"].to_dataset()
    W = posterior["loadings"].to_numpy()
    turns = scipy.stats.ortho_group(2, seed=0).rvs(W.shape[0] * W.shape[1]).reshape(*W.shape[:2], 2, 2)
    turned["posterior"] = posterior.assign(loadings=(posterior["loadings"].dims, W @ turns))
    one, other = (bz.project(tree)[["mean", "sd"]].to_numpy() for tree in (air, turned))
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_missing_numbers_are_predicted_with_their_noise_and_said_to_be(air):
    data = bz.example(Ppca, "airquality")
    found = bz.reconstruct(air)
    missing = np.isnan(data["Y"]).ravel()
    assert (found["what"] == "predicted").to_numpy().tolist() == missing.tolist()
    assert np.array_equal(found["observed"].isna().to_numpy(), missing)
    draws = {name: air["posterior"][name].to_numpy() for name in ("mean", "loadings", "variance")}
    row = data["Y"][4]
    missing = 2 + np.flatnonzero(np.isnan(row))
    some = itertools.product(range(2), range(0, 500, 5))
    each = [conditional({k: v[i, j] for k, v in draws.items()}, row) for i, j in some]
    expected = np.mean([mean[missing] for mean, _ in each], axis=0)
    spread = np.sqrt(np.mean([np.diag(C)[missing] for _, C in each], axis=0))
    cells = found.loc[5].loc[["Ozone", "Solar.R"]]
    np.testing.assert_allclose(cells["mean"], expected, atol=0.2 * spread.max())
    np.testing.assert_allclose(cells["sd"], spread, rtol=0.2)
    assert cells["mcse_mean"].notna().all()


def test_predicting_scores_what_was_observed(air):
    found = bz.predict(air, "models/data/airquality.csv", columns="Ozone,Solar.R,Wind,Temp", missing="mask")
    assert len(found) == 153 * 4
    assert found["log_score"].notna().all()
    assert found["observed"].isna().sum() == 44
    of_rows = found.xs("Wind", level="column")
    whole = ~np.isnan(bz.example(Ppca, "airquality")["Y"]).any(axis=1)
    assert of_rows["log_score"][whole].mean() < of_rows["log_score"][~whole].mean()  # of fewer numbers


def test_fits_without_factors_and_fits_that_failed_are_refused(iris):
    other = bz.fit(bz.find("beta_bernoulli")(), method="exact", seed=1)
    with pytest.raises(InputError, match="beta_bernoulli has no factors"):
        bz.project(other)
    failed = iris.copy()
    failed.attrs["status"] = "failed"
    with pytest.raises(Untrustworthy, match="withheld"):
        bz.reconstruct(failed)
    with pytest.raises(InputError, match="there is no column 'petal width'"):
        bz.project(iris, {"sepal length": [1.0], "sepal width": [1.0], "petal length": [1.0]}, columns=None)


def test_rows_are_taken_a_few_at_a_time(air, monkeypatch):
    whole = bz.project(air)
    monkeypatch.setattr(projection, "_CELLS", 20 * 2000 * 4)
    np.testing.assert_allclose(bz.project(air)[["mean", "sd", "mcse_mean"]], whole[["mean", "sd", "mcse_mean"]])
