"""Clusters and densities by approximations whose parameters are withheld, against sums over all partitions."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.answers import judged
from bayeszoo.answers.latent.clusters import Clusters, _judged, _judged_densities
from bayeszoo.errors import Untrustworthy
from bayeszoo.inference.methods.enumeration import enumerate_posterior
from bayeszoo.plots.clusters import plot_clusters
from bayeszoo.report.families import profile
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.test_judged import as_approximation

GAUSSIAN = bz.find("gaussian_mixture")
MODEL = GAUSSIAN(Psi0=0.3)
ROWS = {"x": [0.1, 0.2, 0.0, 0.15, 2.0, 4.0, 4.2, 4.1]}


@pytest.fixture(scope="module")
def mixture():
    """Draws of sums over all partitions as if of an approximation, measured against themselves: nothing is compiled."""
    return as_approximation(bz.fit(MODEL, ROWS, "enumerate", seed=1), "means[1, x]")


def changed(tree, change):
    tree = tree.copy(deep=True)
    draws = tree["posterior"].to_dataset()
    values = {name: draws[name].to_numpy().copy() for name in draws}
    new = change(values)
    tree["posterior"] = draws.assign({name: (draws[name].dims, new[name]) for name in draws})
    return tree


def far_right(values, by):
    """Widen the component on the right, of which each draw has one, whatever its number."""
    right = values["means"][..., 0] > 2.5
    values["covariances"] = np.where(right[..., None, None], by * values["covariances"], values["covariances"])
    return values


def test_clusters_that_agree_are_those_of_all_partitions(mixture):
    answer, exact = bz.clusters(mixture), enumerate_posterior(MODEL, ROWS)
    assert "judged by itself" in answer.rows.attrs["judged"]
    np.testing.assert_allclose(answer.together, exact.coclustering, atol=0.04)
    number = answer.number["probability"]
    np.testing.assert_allclose(number, exact.number_of_components[number.index], atol=0.01)
    assert answer.groups.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]


def test_an_event_on_which_all_draws_agree_has_an_error_of_one_draw():
    """Thousands of draws that agree leave a probability of a few ten-thousandths: the error was 0."""
    data = bz.read(GAUSSIAN, {"x": [0.1, 0.2, 9.0]})
    answer = Clusters(data, np.broadcast_to([0, 0, 1], (4, 1000, 3)))
    assert answer.number.to_numpy().tolist() == [[1.0, 1 / 4000]]
    assert answer.rows["alone"].tolist() == [0.0, 0.0, 1.0]
    assert answer.rows["mcse_alone"].tolist() == [1 / 4000] * 3


def test_the_density_by_a_point_estimate_has_no_interval():
    """Its interval had no width. SciPy's normal densities at the estimate."""
    tree = bz.fit(MODEL, ROWS, "map", seed=1)
    weights, means, variances = (np.ravel(tree["posterior"][name]) for name in ("weights", "means", "covariances"))
    frame = bz.row_density(tree, {"x": [0.0, 2.0]})
    expected = stats.norm(means, np.sqrt(variances)).pdf(np.array([[0.0], [2.0]])) @ weights
    np.testing.assert_allclose(frame["density"], expected, rtol=1e-9)
    assert frame.drop(columns="density").isna().all(axis=None)


def test_no_label_enters(mixture):
    def relabelled(values):
        swap = np.random.default_rng(1).random((4, 1000)) < 0.5
        where = {name: swap.reshape(*swap.shape, *[1] * (v.ndim - 2)) for name, v in values.items()}
        return {name: np.where(where[name], v[:, :, ::-1], v) for name, v in values.items()}

    own, other = bz.clusters(mixture), bz.clusters(changed(mixture, relabelled))
    assert "withheld" not in other.rows
    np.testing.assert_allclose(own.together, other.together, atol=0.05)


def nearer(values):
    """Move that component towards the others."""
    values["means"] = np.where(values["means"] > 2.5, values["means"] - 2.0, values["means"])
    return values


def test_rows_that_a_wrong_component_takes_are_withheld_and_the_others_are_not(mixture):
    answer = bz.clusters(changed(mixture, nearer))
    exact = enumerate_posterior(MODEL, ROWS)
    together = answer.together
    shown = ~np.isnan(together)
    assert 0 < shown.sum() < shown.size
    np.testing.assert_allclose(together[shown], exact.coclustering[shown], atol=0.06)
    assert shown[5:, 5:].all()  # which are together all the same
    rows = answer.rows
    assert rows.loc[[1, 2, 3, 4], "group"].isna().all()
    assert (answer.groups[:4] == 0).all()
    assert rows["withheld"].str.endswith(judged.FAR)[:4].all()
    assert "rows are too far from it; try --method" in rows.attrs["judged"]


def of_draws(draws):
    return Clusters(bz.read(GAUSSIAN, {"x": np.arange(len(draws[0]), dtype=float)}), np.array([draws]))


def test_pairs_that_are_off_both_ways_do_not_pass_by_their_average(mixture):
    """The first row is with the second instead of the third: with its group it is as often as before."""
    draws, other = [[0, 0, 1, 0], [0, 1, 0, 0]] * 500, [[0, 0, 1, 0]] * 500 + [[0, 1, 0, 0]] * 500
    skewed = [[0, 0, 1, 0]] * 900 + [[0, 1, 0, 0]] * 100
    right = _judged(Fit(mixture), of_draws(draws), of_draws(other))
    assert np.isfinite(right.together).all()
    wrong = _judged(Fit(mixture), of_draws(skewed), of_draws(other))
    assert np.isnan(wrong.together[0, 1:3]).all()
    assert np.isfinite(wrong.together[0, 3])
    assert np.isfinite(wrong.number["probability"]).all()
    assert wrong.rows["alone"].isna().tolist() == [False, True, True, False]


def test_a_group_is_withheld_where_the_posterior_prefers_another(mixture):
    """The last row is with the first two in 52 of 100 draws, and in 48 by the posterior: near, and another group."""
    own = [[0, 0, 0]] * 520 + [[0, 0, 1]] * 480
    known = [[0, 0, 0]] * 480 + [[0, 0, 1]] * 520
    answer = _judged(Fit(mixture), of_draws(own), of_draws(known))
    assert np.isfinite(answer.together).all()
    assert answer.groups.tolist() == [1, 1, 0]


def test_clusters_that_are_all_off_are_refused(mixture):
    with raises(Untrustworthy, "withheld"):
        _judged(Fit(mixture), of_draws([[0, 1, 2]] * 500), of_draws([[0, 0, 0]] * 500))


def test_densities_are_withheld_where_the_wrong_component_is(mixture):
    places = {"x": [0.1, 0.2, 4.1, 6.0]}
    exact = np.exp(enumerate_posterior(MODEL, ROWS).log_predictive(places))
    right = bz.row_density(mixture, places)
    np.testing.assert_allclose(right["density"], exact, rtol=0.08)
    frame = bz.row_density(changed(mixture, lambda values: far_right(values, 1.5)), places)
    assert frame["density"].isna().tolist() == [False, False, True, True]
    assert frame.loc[[3, 4], ["mcse", "q025", "median", "q975", "mcse_q025"]].isna().all(axis=None)
    np.testing.assert_allclose(frame["density"][:2], exact[:2], rtol=0.08)
    assert "2 of 4 rows are too far from it" in frame.attrs["judged"]
    with raises(Untrustworthy, "withheld"):
        bz.row_density(changed(mixture, lambda values: far_right(values, 4.0)), {"x": [4.1, 6.0]})


def test_a_density_that_varies_by_more_than_its_mean_does_not_pass_in_units_of_that(mixture):
    numbers = {"density": 1e-6, "mcse": 0.0, "sd_density": 1e-3, "q025": 0.0, "median": 0.0, "q975": 1e-5}
    values = pd.DataFrame(numbers, index=pd.Index([1, 2], name="row"))
    double = values.assign(density=[1e-6, 2e-6])
    frame = _judged_densities(Fit(mixture), double, values)
    assert frame["density"].isna().tolist() == [False, True]


def test_a_fit_whose_clusters_are_all_withheld_says_so_and_goes_on(mixture, monkeypatch):
    """Where the answer was refused nothing of the fit was printed."""

    def refused(_):
        raise Untrustworthy("its clusters are withheld", "withheld")

    monkeypatch.setattr(profile, "clusters", refused)
    assert [each.title for each in profile._unless_withheld(profile._clusters(Fit(mixture)))] == [
        "its clusters are withheld"
    ]


def test_what_is_withheld_of_clusters_is_printed(mixture, run, tmp_path):
    tree = changed(mixture, nearer)
    bz.save(tree, tmp_path / "fit.nc")
    out = run("clusters", tmp_path / "fit.nc")[1]
    assert "nan" not in out
    assert out.count("judged by itself") == 1
    assert "Withheld: " in out
    picture = plot_clusters(tree).axes[-2].images[0].get_array()
    assert np.isnan(np.ma.filled(picture, np.nan)).any()
