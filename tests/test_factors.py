"""Factors of rows, reconstructions, rotations and their pictures, against brute force, SciPy and scikit-learn."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy
import xarray as xr
from sklearn.decomposition import PCA

import bayeszoo as bz
from bayeszoo.answers.latent import factors as projection
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.families.factors import base as factors
from bayeszoo.families.factors.base import FactorRows, latent_posterior, principal_axes, procrustes, reconstruction
from bayeszoo.inference.methods import vb
from bayeszoo.plots.families import factors as factor_plots
from bayeszoo.report import provenance
from bayeszoo.results.stored import Fit
from tests.refusals import raises

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
    of_new_rows = bz.project(iris, table)
    np.testing.assert_allclose(of_new_rows["mean"], bz.project(iris)["mean"][:10])
    assert "remarks" not in of_new_rows.attrs  # of a point estimate there are no others


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
    assert found["observed"].isna().sum() == 44
    of_rows = found.xs("Wind", level="column")
    off = of_rows.index[of_rows["log_score"].isna()]
    assert len(off) < 3  # an outlier's score by the approximation is off by more than half a nat
    assert of_rows.loc[off, "withheld"].str.startswith("log_score").all()
    whole = ~np.isnan(bz.example(Ppca, "airquality")["Y"]).any(axis=1)
    assert of_rows["log_score"][whole].mean() < of_rows["log_score"][~whole].mean()  # of fewer numbers


def test_fits_without_factors_and_fits_that_failed_are_refused(iris):
    other = bz.fit(bz.find("beta_bernoulli")(), method="exact", seed=1)
    with raises(InputError, "no_factors", "beta_bernoulli"):
        bz.project(other)
    failed = iris.copy()
    failed.attrs["status"] = "failed"
    with raises(Untrustworthy, "withheld", "withheld"):
        bz.reconstruct(failed)
    with raises(InputError, "missing_column", "'petal width'"):
        bz.project(iris, {"sepal length": [1.0], "sepal width": [1.0], "petal length": [1.0]}, columns=None)


def test_rows_are_taken_a_few_at_a_time(air, monkeypatch):
    whole = bz.project(air)
    monkeypatch.setattr(projection, "_CELLS", 20 * 2000 * 4)
    np.testing.assert_allclose(bz.project(air)[["mean", "sd", "mcse_mean"]], whole[["mean", "sd", "mcse_mean"]])


# Pictures


ARD = bz.find("bayesian_pca")
ROWS_OF_IRIS = bz.example(ARD, "iris")
WEAK = ARD.weak(ROWS_OF_IRIS)


@pytest.fixture(scope="module")
def point():
    return bz.fit(WEAK, ROWS_OF_IRIS, "em", seed=0)


@pytest.fixture(scope="module")
def many(point):
    """A tree with draws, which are those of q and not of a sampler."""
    q = vb.climbs(WEAK, WEAK.statistics(ROWS_OF_IRIS), np.random.default_rng(0), 2).best.state
    draws = WEAK.vb_posterior(q).rvs((2, 100), np.random.default_rng(1))
    made, old = point.copy(), point["posterior"].to_dataset()
    arrays = {name: (old[name].dims, values) for name, values in draws.items()}
    coords = {name: old[name] for name in ("column", "factor")}
    made["posterior"] = xr.DataTree(xr.Dataset(arrays, coords))
    return made


def draws_of(tree):
    return {str(k): v.to_numpy().reshape(-1, *v.shape[2:]) for k, v in tree["posterior"].data_vars.items()}


def test_scree_has_medians_and_intervals_of_numpys_eigenvalues(many):
    params = draws_of(many)
    covariance = params["loadings"] @ params["loadings"].mT + params["variance"][:, None, None] * np.eye(4)
    expected = np.linalg.eigvalsh(covariance)[:, ::-1]
    assert factor_plots.eigenvalues(params) == pytest.approx(expected, rel=1e-10)
    panel = bz.plot_scree(many).axes[0]
    fitted = panel.containers[0]
    assert fitted.lines[0].get_ydata() == pytest.approx(np.median(expected, axis=0), rel=1e-12)
    bars = np.array([segment[:, 1] for segment in fitted.lines[2][0].get_segments()])
    assert bars == pytest.approx(np.quantile(expected, [0.025, 0.975], axis=0).T, rel=1e-12)
    sample = next(line for line in panel.lines if line.get_label() == "of the sample")
    exact = np.linalg.eigvalsh(np.cov(ROWS_OF_IRIS["Y"].T, bias=True))
    assert sample.get_ydata() == pytest.approx(exact[::-1], rel=1e-10)


def test_pictures_do_not_depend_on_labels_signs_and_rotations(many):
    from scipy.stats import ortho_group

    params, rng = draws_of(many), np.random.default_rng(0)
    turns = ortho_group.rvs(3, 200, random_state=rng)
    turned = params | {"loadings": params["loadings"] @ turns}
    assert factor_plots.eigenvalues(turned) == pytest.approx(factor_plots.eigenvalues(params), rel=1e-9)
    one, other = (factor_plots.biplot(each, ROWS_OF_IRIS["Y"]) for each in (params, turned))
    for name in one._fields:
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


def test_biplot_reconstructs_rows_and_its_axes_are_those_of_scikit_learn(many):
    from sklearn.decomposition import PCA

    found, pca = factor_plots.biplot(draws_of(many), ROWS_OF_IRIS["Y"]), PCA(2).fit(ROWS_OF_IRIS["Y"])
    loadings = found.loadings.mean(axis=0)
    cosines = np.abs(pca.components_ @ loadings[:, :2] / np.linalg.norm(loadings[:, :2], axis=0))
    assert cosines == pytest.approx(np.eye(2), abs=0.03)
    fitted = ROWS_OF_IRIS["Y"].mean(axis=0) + found.scores @ loadings.T
    assert np.sqrt(np.mean(np.square(fitted - ROWS_OF_IRIS["Y"]))) < 0.2
    scores = pca.transform(ROWS_OF_IRIS["Y"])
    assert abs(np.corrcoef(found.scores[:, 0], scores[:, 0])[0, 1]) > 0.999
    assert np.all((found.score_sd > 0) & (found.score_sd < 1.05))


def test_biplot_of_rows_with_missing_numbers_is_less_sure_of_them(many):
    Y = ROWS_OF_IRIS["Y"].copy()
    Y[7, 2:] = np.nan
    one, other = (factor_plots.biplot(draws_of(many), each) for each in (ROWS_OF_IRIS["Y"], Y))
    assert np.all(other.score_sd[7, :2] > 1.2 * one.score_sd[7, :2])


def test_relevances_are_sorted_in_each_draw(many):
    expected = np.median(np.sort(draws_of(many)["alpha"], axis=1), axis=0)
    assert bz.plot_ard(many).axes[0].containers[0].lines[0].get_ydata() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("plot", [bz.plot_scree, bz.plot_ard, bz.plot_biplot])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures_can_be_written_and_name_their_fit(plot, suffix, point, many, tmp_path):
    for i, tree in enumerate((point, many)):
        figure = plot(tree)
        assert figure.get_suptitle().startswith("bayesian_pca, em")
        figure.savefig(tmp_path / f"{i}.{suffix}")
        assert (tmp_path / f"{i}.{suffix}").stat().st_size > 5000


def test_points_have_the_colours_of_their_groups(many):
    groups = ["a"] * 50 + ["b"] * 100
    panel = bz.plot_biplot(many, axes=(1, 3), groups=groups).axes[0]
    named = {line.get_label(): len(line.get_xdata()) for line in panel.lines}
    assert (named["a"], named["b"]) == (50, 100)
    assert panel.get_ylabel() == "factor along axis 3"


def test_what_cannot_be_drawn_is_refused(point):
    with raises(InputError, "out_of_range", "1", "3"):
        bz.plot_biplot(point, axes=(1, 4))
    with raises(InputError, "wrong_shape", "2", "150"):
        bz.plot_biplot(point, groups=["a", "b"])
    other = bz.fit(bz.find("beta_bernoulli")(), method="exact", seed=0)
    with raises(InputError, "no_capability", "ppca"):
        bz.plot_scree(other)


def test_a_fit_that_did_not_pass_its_gate_is_not_drawn():
    tree = bz.fit(WEAK, ROWS_OF_IRIS, "vb", seed=0, restarts=2)
    assert tree.attrs["status"] != "ok"
    assert json.loads(tree.attrs["facts"])["parameters_withheld"]  # rotations are freer than q has them
    bz.plot_ard(tree)  # its own numbers agree with the posterior's
    for plot in (bz.plot_scree, bz.plot_biplot):
        with raises(Untrustworthy, "withheld", "withheld"):
            plot(tree)


# Columns of different units


@pytest.fixture(scope="module")
def unlike():
    """Two columns of a factor and noise, the second a thousand times as large; a number is missing."""
    rng = np.random.default_rng(0)
    score = rng.standard_normal(40)
    Y = np.column_stack([score, 1000 * score, 5 * rng.standard_normal(40)]) + rng.standard_normal((40, 3))
    return pd.DataFrame(Y, columns=["a", "b", "c"])


def test_scaled_columns_have_the_eigenvalues_of_the_correlations(unlike):
    M = bz.find("ppca")
    data = bz.read(M, unlike, scale=True)
    tree = bz.fit(M.weak(data), data, "mle", seed=1)
    expected = np.linalg.eigvalsh(np.corrcoef(unlike.to_numpy().T))[:0:-1]
    assert tree["derived"]["eigenvalues"].to_numpy().ravel() == pytest.approx(expected)
    assert re.match("columns were divided by their standard deviations, and all is in these: a by 1", data.notes[-1])
    told = bz.read(M, unlike).notes[-1]
    assert re.match("column 'b' has .* times the sd of column 'a', and dominates the factors; --scale divides", told)
    assert not any("--scale" in note for note in bz.example(M).notes)


def test_rows_are_scaled_as_the_fit_is_and_given_back_in_their_own_units(unlike):
    M = bz.find("ppca")
    data = bz.read(M, unlike, scale=True)
    tree = bz.fit(M.weak(data), data, "mle", seed=1)
    assert np.array_equal(bz.project(tree, unlike[:3]), bz.project(tree)[:6], equal_nan=True)
    point = {name: values[0, 0] for name, values in bz.view(tree).draws().items()}
    expected = reconstruction(point, data["Y"])[0] * unlike.std(ddof=0).to_numpy()
    assert bz.reconstruct(tree)["mean"].to_numpy() == pytest.approx(expected.ravel())
    for other in (bz.read(M, unlike[:3]), bz.read(M, unlike[:3], scale=True)):
        with raises(bz.InputError, "not_a_number"):
            bz.project(tree, other)
    with raises(bz.InputError, "not_a_number"):
        bz.read(M, unlike.assign(a=1.0), scale=True)


def test_the_command_line_gives_scores_and_reconstructions(unlike, run, tmp_path):
    unlike.to_csv(tmp_path / "rows.csv", index=False)
    saved, scores = tmp_path / "fit.nc", tmp_path / "scores.csv"
    assert run("fit", "ppca", tmp_path / "rows.csv", "--scale", "--method", "mle", "--seed", "1", "-o", saved)[0] == 0
    tree = bz.load(saved)
    assert run("project", saved, "-o", scores)[0] == 0
    assert pd.read_csv(scores)["mean"].to_numpy() == pytest.approx(bz.project(tree)["mean"].to_numpy())
    unlike[:2].assign(b=[np.nan, 1.0]).to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = run("reconstruct", saved, tmp_path / "new.csv", "--missing", "mask", "--json")
    rows = json.loads(out)["rows"]
    assert (code, [row["what"] for row in rows[:3]]) == (0, ["without noise", "predicted", "without noise"])
    assert "without noise" in run("reconstruct", saved)[1]
    assert "has no factors" in run("project", _coin(tmp_path))[2]


def test_columns_that_the_fit_has_not_are_left_out_and_named(unlike, run, tmp_path):
    saved, M = tmp_path / "fit.nc", bz.find("ppca")
    bz.save(bz.fit(M(), unlike, "mle", seed=1), saved)
    unlike.assign(name="x", z=1.0).loc[:3, ["z", "name", *unlike.columns[::-1]]].to_csv(
        tmp_path / "new.csv", index=False
    )
    code, out, err = run("project", saved, tmp_path / "new.csv", "--json")
    assert (code, err) == (0, "note: not used, as the fit has no such column: 'z', 'name'\n")
    expected = bz.project(bz.load(saved), unlike[:4])
    assert [row["mean"] for row in json.loads(out)["rows"]] == pytest.approx(expected["mean"].tolist())
    numbered = bz.fit(M(), unlike.to_numpy(), "mle", seed=1)
    with raises(bz.InputError, "unknown_label", "'4'", "3"):  # which of them is not known
        bz.project(numbered, np.ones((2, 4)))


@pytest.mark.slow
def test_an_example_is_scaled(run, tmp_path):
    M, saved = bz.find("ppca"), tmp_path / "fit.nc"
    words = ("--example", "airquality", "--scale", "--method", "map", "--seed", "1")
    code, _, err = run("fit", "ppca", *words, "-o", saved)
    data = bz.example(M, "airquality", scale=True)
    assert (code, np.nanstd(data["Y"], axis=0)) == (0, pytest.approx(1))
    assert "note: columns were divided by their standard deviations" in err
    tree = bz.load(saved)
    assert tree.attrs["data_digest"] == data.digest
    assert "data = bz.example(M, 'airquality', scale=True)" in provenance.python([Fit(tree)])
    assert "there is no option 'scale'" in run("fit", "normal_gamma", "--example", "newcomb", "--scale")[2]


@pytest.mark.slow
def test_a_file_is_scaled_in_chunks_by_the_deviations_of_all_its_rows(unlike, run, tmp_path):
    file, saved, M = tmp_path / "rows.csv", [tmp_path / f"{rows}.nc" for rows in (7, 1000)], bz.find("ppca")
    unlike.assign(a=unlike["a"].mask(unlike.index < 9)).to_csv(file, index=False)  # a whole chunk has none
    whole = bz.fit(M(), bz.read(M, file, missing="mask", scale=True), "mle", seed=1)
    words = ("fit", "ppca", file, "--scale", "--missing", "mask", "--prior", "textbook", "--method", "mle", "--seed", 1)
    for path in saved:
        code, _, err = run(*words, "--chunk-rows", path.stem, "-o", path)
        assert (code, err.count("columns were divided by their standard deviations")) == (0, 1)
        tree, new = bz.load(path), file.with_name("new.csv")
        for name, values in tree["posterior"].data_vars.items():
            assert values.to_numpy() == pytest.approx(whole["posterior"][name].to_numpy(), rel=1e-6)
        unlike[:3].to_csv(new, index=False)
        assert bz.project(tree, new)["mean"].tolist() == pytest.approx(
            bz.project(whole, new)["mean"].tolist(), rel=1e-6
        )
    unlike.assign(a=0.1).to_csv(file, index=False)
    assert "column 'a' is constant and cannot be scaled" in run(*words, "--chunk-rows", 7)[2]


def _coin(folder):
    return bz.save(bz.fit(bz.find("beta_bernoulli")(), [1, 0], "exact", seed=1), folder / "coin.nc")


@pytest.mark.slow
def test_numbers_of_factors_are_compared_where_numbers_are_missing(unlike):
    M = bz.find("ppca")
    data = bz.read(M, unlike.assign(a=unlike["a"].mask(unlike.index == 3)), missing="mask", scale=True)
    frame = bz.select(bz.components(M.weak_with(data, {"q": 1}), [1, 2]), data, loo=False)
    assert frame["log_likelihood"].notna().all()


def test_predictions_whose_tails_are_too_heavy_are_withheld(unlike):
    """By draws of a variance whose tails are those of an inverse gamma of shape .8, as of few rows."""
    data = bz.read(Ppca, unlike, missing="mask")
    tree = bz.fit(Ppca.weak(data), data, "mle", seed=1)
    tree.attrs |= {"kind": "sampled", "method": "nuts"}
    old = tree["posterior"].to_dataset()
    draws = {name: np.broadcast_to(v.to_numpy()[:1, :1], (4, 500, *v.shape[2:])) for name, v in old.items()}
    draws["variance"] = 1 / np.random.default_rng(4).gamma(0.8, size=(4, 500))
    arrays = {name: (("chain", "draw", *old[name].dims[2:]), values) for name, values in draws.items()}
    tree["posterior"] = xr.DataTree(xr.Dataset(arrays, {name: old[name] for name in ("column",)}))
    frame = bz.reconstruct(tree, unlike.iloc[:2].assign(c=[np.nan, 1.0]), missing="mask")
    assert np.isnan(frame.loc[(1, "c"), ["sd", "mcse_sd"]].astype(float)).all()
    assert frame.loc[(1, "c"), "withheld"].startswith("sd, mcse_sd")
    assert np.isfinite(frame.loc[(1, "c"), ["q025", "q975"]].astype(float)).all()
    assert frame.attrs["withheld"][0].startswith("sd, mcse_sd of row 1")
