"""Answers of an approximation whose parameters are withheld are judged by themselves, and none passes for another's."""

import numpy as np
import pandas as pd
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.answers import judged
from bayeszoo.errors import Caution, InputError, Untrustworthy
from bayeszoo.inference import reference
from bayeszoo.inference.methods import vb
from bayeszoo.results.stored import Fit
from tests.refusals import raises

PCA = bz.find("bayesian_pca")
NAMES = ("mean", "sd", "q025", "median", "q975")


def table():
    normal = np.random.default_rng(4).normal
    Y = 3 + normal(size=(30, 2)) @ normal(size=(2, 4)) + 0.4 * normal(size=(30, 4))
    return {"Y": Y, "column": np.array(list("abcd"))}


@pytest.fixture(scope="module")
def fit():
    """A fit measured against its own draws, the means of which were spread out: nothing is compiled."""

    def known(problem):
        q = vb.searched(problem, 2).best.state
        return reference.Reference("draws of the test", spread(problem.model.vb_posterior(q).rvs((4, 2500), rng())))

    data = bz.read(PCA, table())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "reference", known)
        with pytest.warns(Caution):
            return bz.fit(PCA.weak(data), data, "vb", seed=1, restarts=2, groups=())


def spread(draws):
    """Spread the means by a factor of 2.5: those of q are too narrow, as against NUTS."""
    centre = draws["mean"].mean(axis=(0, 1))
    return {**draws, "mean": centre + 2.5 * (draws["mean"] - centre)}


def changed(fit, **change):
    """Return the fit with reference draws of which some were changed."""
    tree = fit.copy(deep=True)
    draws = tree["reference_draws"].to_dataset()
    for name, function in change.items():
        draws[name] = draws[name].dims, function(draws[name].to_numpy())
    tree["reference_draws"] = draws
    return tree


def turn(loadings):
    turns = scipy.stats.ortho_group.rvs(3, loadings.shape[0] * loadings.shape[1], random_state=rng())
    return loadings @ turns.reshape(*loadings.shape[:2], 3, 3)


def rng():
    return np.random.default_rng(7)


def test_predictions_are_shown_where_the_means_alone_are_overconfident(fit):
    tree = fit
    assert all(label in Fit(tree).facts["parameters_withheld"] for label in ("mean[a]", "mean[d]"))
    frame = bz.predict(tree, 2)
    assert np.isfinite(frame[list(NAMES)]).all(axis=None)
    assert "judged by itself" in frame.attrs["judged"]
    assert "withheld" not in frame


def test_what_no_rotation_moves_is_shown_whatever_the_rotation_of_the_reference(fit):
    own, turned = (bz.reconstruct(tree) for tree in (fit, changed(fit, loadings=turn)))
    assert own["mean"].notna().mean() > 0.4
    assert (own["mean"].notna() == turned["mean"].notna()).mean() > 0.95  # of what lies at a limit noise decides
    assert np.isfinite(bz.predict(changed(fit, loadings=turn), 1)["mean"]).all()


def test_predictions_do_not_pass_because_the_loadings_were_withheld(fit):
    """The covariance is wrong by 44%: the predictions are wrong, and no neighbour that is withheld mends them."""
    tree = changed(fit, loadings=lambda W: 1.2 * W)
    with raises(Untrustworthy, "withheld"):
        bz.predict(tree, 1)


def test_other_answers_stay_withheld(fit):
    tree = fit.copy(deep=True)
    with raises(Untrustworthy, "withheld"):
        bz.residuals(tree)
    with raises(Untrustworthy, "withheld"):
        bz.predictive_check(tree)


def test_without_draws_of_the_posterior_all_is_withheld(fit):
    tree = fit.copy(deep=True)
    del tree["reference_draws"]
    with raises(Untrustworthy, "withheld"):
        bz.predict(tree, 1)


@pytest.mark.parametrize("change", ["nan", "shape", "name", "negative"])
def test_draws_of_the_posterior_that_were_changed_in_a_file_are_refused(fit, tmp_path, change):
    tree = fit.copy(deep=True)
    draws = tree["reference_draws"].to_dataset()
    if change == "nan":
        draws["variance"] = draws["variance"] * np.nan
    if change == "shape":
        draws["mean"] = draws["mean"].isel(column=slice(2)).rename(column="other")
    if change == "name":
        draws = draws.rename(variance="sigma2")
    if change == "negative":
        draws["variance"] = -draws["variance"]
    tree["reference_draws"] = draws
    bz.save(tree, tmp_path / "fit.nc")
    with pytest.raises(InputError) as refusal:
        bz.predict(bz.load(tmp_path / "fit.nc"), 1)
    assert refusal.value.code in ("group_differs", "damaged_fit")


def made(mean, sd):
    law = scipy.stats.norm(mean, sd)
    values = dict(zip(NAMES, (law.mean(), law.std(), *law.ppf([0.025, 0.5, 0.975])), strict=True))
    return pd.DataFrame({name: np.atleast_1d(value) for name, value in values.items()}).rename_axis("row")


@pytest.mark.parametrize(
    ("mean", "sd", "shown"),
    [(0.05, 1.0, True), (0.15, 1.0, False), (0.0, 0.95, True), (0.0, 0.8, False), (0.0, 1.2, False)],
)
def test_each_row_is_compared_in_its_own_units(mean, sd, shown):
    for unit in (1e-6, 1.0, 1e6):
        assert judged._agreement(made(unit * mean, unit * sd), made(0.0, unit)).shown.tolist() == [shown]


def test_what_is_not_known_does_not_agree():
    unknown = made(0.0, 1.0) * np.nan
    assert not judged._agreement(unknown, made(0.0, 1.0)).shown.any()
    assert not judged._agreement(made(0.0, 1.0), unknown).shown.any()


def test_rare_events_whose_sd_is_not_known_do_not_agree_because_their_quantiles_are_all_zero():
    own, reference = made(0.0, 1.0), made(0.0, 1.0)
    own.loc[0], reference.loc[0] = [0.014, 0.12, 0, 0, 0], [0.002, np.nan, 0, 0, 0]
    assert not judged._agreement(own, reference).shown.any()
    reference.loc[0, "sd"] = 0.045  # a mean a quarter of an sd off
    assert not judged._agreement(own, reference).shown.any()
    own.loc[0] = [0.0021, 0.0458, 0, 0, 0]
    assert judged._agreement(own, reference).shown.all()


@pytest.mark.slow
def test_iris_answers_by_variational_bayes_as_by_nuts():
    """Samples, and compiles a density: what is shown is what NUTS with another seed says."""
    data = bz.read(PCA, bz.example(PCA))
    model = PCA.weak(data)
    with pytest.warns(Caution):
        approximate = bz.fit(model, data, "vb", seed=1)
    sampled = bz.fit(model, data, "nuts", seed=2)
    for ask in (lambda tree: bz.predict(tree, 1), bz.reconstruct, bz.project):
        own, true = ask(approximate), ask(sampled)
        shown = own["mean"].notna()
        assert shown.mean() > 0.6
        gap = ((own["mean"] - true["mean"]) / true["sd"])[shown]
        assert np.abs(gap).max() < 0.15
        assert (own["sd"] / true["sd"])[shown].between(0.85, 1.15).all()
