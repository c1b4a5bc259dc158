"""Pictures of factor models: what they show is what the draws say, whatever the labels and rotations."""

import json

import numpy as np
import pytest
import xarray as xr

import bayeszoo as bz
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.inference.methods import vb
from bayeszoo.plots import factors as factor_plots

MODEL = bz.find("bayesian_pca")
IRIS = bz.example(MODEL, "iris")
WEAK = MODEL.weak(IRIS)


@pytest.fixture(scope="module")
def point():
    return bz.fit(WEAK, IRIS, "em", seed=0)


@pytest.fixture(scope="module")
def many(point):
    """A tree with draws, which are those of q and not of a sampler."""
    q = vb.climbs(WEAK, WEAK.statistics(IRIS), np.random.default_rng(0), 2).best.state
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
    assert sample.get_ydata() == pytest.approx(np.linalg.eigvalsh(np.cov(IRIS["Y"].T, bias=True))[::-1], rel=1e-10)


def test_pictures_do_not_depend_on_labels_signs_and_rotations(many):
    from scipy.stats import ortho_group

    params, rng = draws_of(many), np.random.default_rng(0)
    turns = ortho_group.rvs(3, 200, random_state=rng)
    turned = params | {"loadings": params["loadings"] @ turns}
    assert factor_plots.eigenvalues(turned) == pytest.approx(factor_plots.eigenvalues(params), rel=1e-9)
    one, other = (factor_plots.biplot(each, IRIS["Y"]) for each in (params, turned))
    for name in one._fields:
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


def test_biplot_reconstructs_rows_and_its_axes_are_those_of_scikit_learn(many):
    from sklearn.decomposition import PCA

    found, pca = factor_plots.biplot(draws_of(many), IRIS["Y"]), PCA(2).fit(IRIS["Y"])
    loadings = found.loadings.mean(axis=0)
    cosines = np.abs(pca.components_ @ loadings[:, :2] / np.linalg.norm(loadings[:, :2], axis=0))
    assert cosines == pytest.approx(np.eye(2), abs=0.03)
    fitted = IRIS["Y"].mean(axis=0) + found.scores @ loadings.T
    assert np.sqrt(np.mean(np.square(fitted - IRIS["Y"]))) < 0.2
    scores = pca.transform(IRIS["Y"])
    assert abs(np.corrcoef(found.scores[:, 0], scores[:, 0])[0, 1]) > 0.999
    assert np.all((found.score_sd > 0) & (found.score_sd < 1.05))


def test_biplot_of_rows_with_missing_numbers_is_less_sure_of_them(many):
    Y = IRIS["Y"].copy()
    Y[7, 2:] = np.nan
    one, other = (factor_plots.biplot(draws_of(many), each) for each in (IRIS["Y"], Y))
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
    with pytest.raises(InputError, match="two different ones of 1 to 3"):
        bz.plot_biplot(point, axes=(1, 4))
    with pytest.raises(InputError, match="groups has 2 entries, there are 150 rows"):
        bz.plot_biplot(point, groups=["a", "b"])
    other = bz.fit(bz.find("beta_bernoulli")(), method="exact", seed=0)
    with pytest.raises(InputError, match="give a fit of ppca"):
        bz.plot_scree(other)


def test_a_fit_that_did_not_pass_its_gate_is_not_drawn():
    tree = bz.fit(WEAK, IRIS, "vb", seed=0, restarts=2)
    assert tree.attrs["status"] == "failed"
    assert json.loads(tree.attrs["facts"])["k_hat"] > 0.7  # rotations are freer than q has them
    for plot in (bz.plot_scree, bz.plot_ard, bz.plot_biplot):
        with pytest.raises(Untrustworthy, match="withheld"):
            plot(tree)
