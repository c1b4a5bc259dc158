"""Answers of an approximation whose parameters are withheld are judged one by one, and none counts for another."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.answers import judged
from bayeszoo.comparison.best import best_of_many
from bayeszoo.errors import Caution, InputError, Untrustworthy
from bayeszoo.inference import reference
from bayeszoo.inference.methods import vb
from bayeszoo.results import files, measured
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
    return with_narrow_means()


def with_narrow_means():
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


def test_checks_are_judged_by_their_replicates(fit):
    """Means of columns are overconfident, which replicates hardly see; a covariance that is too wide they do."""
    frame = bz.predictive_check(fit, ["mean", "standard deviation"])
    spread = [name for name in frame.index if name.startswith("standard deviation")]
    assert frame.loc[spread, "p_value"].notna().all()
    assert "judged by itself" in frame.attrs["judged"]
    wide = bz.predictive_check(changed(fit, mean=lambda m: m + 0.2), ["mean", "skewness"])
    of_means = [name for name in wide.index if name.startswith("mean")]
    assert wide.loc[of_means, ["mean", "p_value"]].isna().all(axis=None)
    assert (wide.loc[of_means, "withheld"] == judged.FAR).all()
    assert wide.loc[of_means, "observed"].notna().all()  # what the data have is no estimate
    assert wide["p_value"].notna().any()


def test_checks_do_not_pass_because_others_were_taken_out(fit):
    with raises(Untrustworthy, "withheld"):
        bz.predictive_check(changed(fit, loadings=lambda W: 1.5 * W), ["standard deviation"])


def test_pictures_of_replicates_stay_withheld(fit):
    with raises(Untrustworthy, "withheld"):
        bz.plot_predictive_check(fit)
    with raises(InputError, "not_one_number"):
        bz.residuals(fit)


def approximation(name, rows, withheld="w[z]", **fields):
    """Return an exact fit as if it were an approximation, measured against its own draws: nothing is compiled."""
    model = bz.find(name)
    return as_approximation(bz.fit(model(**fields), bz.read(model, rows, target="y"), "exact", seed=1), withheld)


def as_approximation(tree, withheld):
    draws = tree["posterior"].to_dataset()
    tree["reference_draws"] = tree["posterior"].__class__(draws.isel(draw=slice(500)))
    facts = json.loads(tree.attrs["facts"]) | {"withheld": [withheld], "parameters_withheld": [withheld]}
    tree.attrs |= {"kind": "approximate", "method": "laplace", "status": "caution", "facts": json.dumps(facts)}
    if "exact" in tree:
        del tree["exact"]
    return tree


def scaled(tree, **factors):
    """A copy of a fit whose draws of some parameters are multiplied."""
    tree = tree.copy(deep=True)
    draws = tree["posterior"].to_dataset()
    tree["posterior"] = draws.assign({name: factor * draws[name] for name, factor in factors.items()})
    return tree


def moved(tree, by, terms=("z",)):
    """Move weights in the approximation, by the sd of the first: rows without them do not see it."""
    tree = tree.copy(deep=True)
    draws = tree["posterior"].to_dataset()
    axis = draws["w"].dims[-1]
    sd = float(draws["w"].sel({axis: terms[0]}).std())
    tree["posterior"] = draws.assign(w=draws["w"] + by * sd * draws[axis].isin(terms))
    return tree


@pytest.fixture(scope="module")
def line():
    x = np.linspace(-2, 2, 30)
    y = 1 + 2 * x + 0.5 * np.random.default_rng(0).normal(size=30)
    rows = pd.DataFrame({"x": x, "z": np.repeat([0.0, 1.0, 0.0], [5, 4, 21]), "y": y})
    return approximation("linear_regression", rows, center=0.0)


def test_residuals_are_withheld_in_the_rows_that_the_wrong_weight_moves(line):
    right = bz.residuals(line)
    assert np.isfinite(right[["mean", "sd", "pit"]]).all(axis=None)
    assert right.attrs["outside"] == 0
    frame = bz.residuals(moved(line, 2.0))
    off = frame.index.isin([6, 7, 8, 9])
    assert frame.loc[~off, ["mean", "sd", "residual"]].notna().all(axis=None)
    assert (
        frame.loc[off, ["mean", "sd", "residual", "deviance", "standardized", "pit", "log_tail"]].isna().all(axis=None)
    )
    assert frame.loc[off, "basis"].str.startswith("withheld").all()
    assert frame.loc[off, "withheld"].str.endswith(judged.FAR).all()
    assert np.isnan([frame.attrs["outside"], frame.attrs["ks_p"]]).all()  # of all rows, one of which is not known
    assert not frame["outside"].any()
    assert frame["theoretical"].isna().all()


def test_how_residuals_were_judged_is_printed_once(line, run, tmp_path):
    bz.save(moved(line, 2.0), tmp_path / "fit.nc")
    lines = run("residuals", tmp_path / "fit.nc", "--replicates", 50)[1].splitlines()
    said = [each for each in lines if "rows are too far from" in each]
    assert len(said) == 1


def test_residuals_are_withheld_where_all_rows_are_off(line):
    tree = line.copy(deep=True)
    draws = tree["posterior"].to_dataset()
    tree["posterior"] = draws.assign(sigma2=4 * draws["sigma2"])
    with raises(Untrustworthy, "withheld"):
        bz.residuals(tree)


@pytest.fixture(scope="module")
def curve():
    rows = pd.DataFrame({"z": np.repeat([0.0, 1.0], [12, 4]), "y": np.tile([0, 0, 1, 0], 4)})
    return approximation("logistic_regression", rows, center=0.0)


def test_decisions_are_withheld_where_the_probability_is_off(curve):
    right, wrong = bz.classify(curve), bz.classify(moved(curve, 1.5))
    assert right.attrs["rows_far"] == right.attrs["rows_withheld"] == 0
    assert "judged by itself" in right.attrs["judged"]
    assert wrong.index[wrong["decision"] == "withheld"].tolist() == [13, 14, 15, 16]
    assert wrong.loc[13, ["p[0]", "p[1]", "expected_loss", "log_score"]].isna().all()
    assert np.isnan(wrong.attrs["loss_of_one"])  # a mean of all rows
    others = wrong.index < 13
    pd.testing.assert_frame_equal(wrong[others], right[others])


def test_a_decision_that_costs_more_than_it_says_is_withheld(curve):
    """A thousandfold loss makes a small error of a rare class count."""
    loss = [[0, 1], [1000, 0]]
    wrong = bz.classify(moved(curve, 1.5), loss=loss)
    assert (wrong.loc[13:, "decision"] == "withheld").all()
    assert wrong.loc[:12, "expected_loss"].notna().all()


def test_a_warning_alone_withholds_what_is_beyond_half_an_sd(curve):
    tree = moved(curve, 0.5)
    assert (bz.classify(tree).loc[13:, "decision"] == "withheld").all()
    tree.attrs["facts"] = json.dumps({})
    assert (bz.classify(tree)["decision"] != "withheld").all()
    assert (bz.classify(moved(tree, 3.0)).loc[13:, "decision"] == "withheld").all()


def test_the_number_of_factors_is_judged_by_itself(fit):
    """Here parameters are withheld, and the number is not; a number that the posterior gives others is withheld."""
    facts = Fit(fit).facts
    assert facts["live"] in (2, 3)
    assert 0.5 < facts["live_probability"] <= 1
    model, own = Fit(fit).model, Fit(fit).draws()
    counts = model.live(own)
    spectrum = np.linalg.eigvalsh(own["loadings"] @ own["loadings"].mT)
    assert np.array_equal(counts, (spectrum > own["variance"][..., None]).sum(axis=-1))
    weak = reference.Reference("draws of the test", {**own, "loadings": 0.1 * own["loadings"]})
    assert list(measured._live(model, own, weak)) == ["live_withheld"]


def test_the_number_of_factors_of_draws_has_an_error_and_is_withheld_where_chains_do_not_agree(fit):
    model, draws = Fit(fit).model, dict(Fit(fit).draws())
    counts = model.live(draws)
    facts = measured.live_of_draws(model, draws)
    assert facts["live"] == Fit(fit).facts["live"]
    assert facts["live_probability"] == (counts == facts["live"]).mean()
    assert 0 < facts["live_mcse"] < 0.05
    turned = measured.live_of_draws(model, {**draws, "loadings": turn(draws["loadings"])})
    assert turned["live_probability"] == facts["live_probability"]
    apart = draws["loadings"].copy()
    apart[:2] *= 1e-3
    assert "live" not in measured.live_of_draws(model, {**draws, "loadings": apart})
    still = measured.live_of_draws(model, {**draws, "loadings": 1e-6 * draws["loadings"]})
    assert still["live"] == 0
    assert still["live_probability"] == 1
    assert still["live_mcse"] > 1 / counts.size / 2


@pytest.fixture(scope="module")
def arms():
    rows = pd.DataFrame({"arm": np.repeat(["a", "b", "c"], 12), "y": np.tile([0.2, 1.1, 0.9, 0.3, 1.5, 0.4], 6)})
    return approximation("linear_regression", rows, "w[arm[c]]", center=0.0)


def compared(tree):
    frame = bz.contrasts(tree)
    return list(zip(frame["group"], frame["against"], strict=True)), frame


def test_contrasts_are_withheld_of_the_level_that_is_off(arms):
    pairs, right = compared(arms)
    assert pairs == [("b", "a"), ("c", "a"), ("c", "b")]
    assert right.attrs["withheld"] == []
    assert np.isfinite(right[["p_greater", "difference", "difference_q025", "loss_group"]]).all(axis=None)
    pairs, frame = compared(moved(arms, 1.0, ["arm[c]"]))
    assert pairs == [("b", "a")]
    assert len(frame.attrs["withheld"]) == 2
    assert "2 of 3" in frame.attrs["judged"]
    pd.testing.assert_frame_equal(frame, right[:1])


def test_levels_that_are_off_alike_differ_by_as_much_as_they_should(arms):
    assert compared(moved(arms, 1.0, ["arm[b]", "arm[c]"]))[0] == [("c", "b")]
    with raises(Untrustworthy, "withheld"):
        bz.contrasts(moved(moved(arms, 1.0, ["arm[c]"]), -1.0, ["arm[b]"]))


def test_the_best_level_is_withheld_where_it_is_off(arms):
    right = bz.best_of_groups(arms)
    assert right["p_greater"].notna().all()
    off = moved(arms, 1.0, ["arm[c]"])  # the best of the others is off too
    with raises(Untrustworthy, "withheld"):
        bz.best_of_groups(off)
    (line,) = best_of_many(off).attrs["withheld"]
    assert line.startswith("best of the others: ")


def estimates_drawn(tree):
    """Return the labels of the levels with a mark, and of the contrasts."""
    left, right = bz.plot_groups(tree).axes
    marks = left.lines[0].get_xdata()
    names = [label.get_text() for label in left.get_yticklabels()]
    contrasts = [label.get_text().partition("   ")[0] for label in right.get_yticklabels()]
    return [name for name, at in zip(names, marks, strict=True) if np.isfinite(at)], contrasts


def test_a_picture_of_levels_has_those_that_are_not_withheld(arms):
    pairs = ["b - a", "c - a", "c - b"]
    assert estimates_drawn(arms) == (["a", "b", "c"], pairs)
    off = moved(arms, 1.0, ["arm[c]"])
    assert estimates_drawn(off) == (["a", "b"], pairs[:1])
    assert "no mark where withheld" in bz.plot_groups(off).get_suptitle()
    assert estimates_drawn(moved(arms, 1.0, ["arm[b]", "arm[c]"])) == (["a"], pairs[2:])


def test_a_level_has_no_mark_because_its_contrasts_are_right(arms):
    """All levels are off alike, as the intercept is: their differences are right, and none of them is."""
    assert estimates_drawn(moved(arms, 3.0, ["(intercept)"])) == ([], ["b - a", "c - a", "c - b"])


def test_contrasts_do_not_pass_because_each_weight_is_right(arms):
    """Weights that are taken for independent: b and c have a in common, by which their difference is too wide."""
    tree = arms.copy(deep=True)
    draws = tree["posterior"].to_dataset()
    w = draws["w"].to_numpy().copy()
    w[..., 1] = rng().permutation(w[..., 1].ravel()).reshape(w.shape[:2])
    tree["posterior"] = draws.assign(w=(draws["w"].dims, w))
    assert compared(tree)[0] == [("b", "a"), ("c", "a")]


def test_ratios_of_groups_that_are_off_alike_are_withheld_and_their_difference_is_not():
    model = bz.find("gamma_poisson_groups")
    table = {"group": list("abc"), "y": [20, 30, 25], "exposure": [5.0, 6.0, 4.0]}
    tree = bz.fit(model(b1=1), bz.read(model, table), "exact", seed=1)
    tree = as_approximation(tree, "lam[a]")
    right = bz.contrasts(tree)
    assert right["ratio"].notna().all()
    draws = tree["posterior"].to_dataset()
    tree["posterior"] = draws.assign(lam=draws["lam"] + 10 * draws["lam"].std())
    frame = bz.contrasts(tree)
    np.testing.assert_allclose(frame["difference"], right["difference"])
    assert frame[["ratio", "ratio_q025", "ratio_q975", "ratio_mcse"]].isna().all(axis=None)
    assert len(frame.attrs["withheld"]) == 3


@pytest.mark.parametrize("name", ["p_greater", "loss_group"])
def test_a_tail_is_not_shown_because_the_difference_agrees(arms, name):
    """The hundredth of the draws that has the other sign was cut off: neither moments nor quantiles see that."""
    tree = arms.copy(deep=True)
    draws = tree["posterior"].to_dataset()
    w = draws["w"].to_numpy().copy()
    w[..., -1] += 2.3 * w[..., -1].std() - w[..., -1].mean()
    tree["reference_draws"] = tree["posterior"].__class__(draws.assign(w=(draws["w"].dims, w)))
    cut = np.concatenate([w[..., :-1], np.maximum(w[..., -1:], 1e-9)], axis=-1)
    tree["posterior"] = draws.assign(w=(draws["w"].dims, cut))
    frame = bz.contrasts(tree).set_index(["group", "against"])
    assert np.isnan(frame.loc[("c", "a"), name])
    assert np.isfinite(frame.loc[("c", "a"), "difference"])
    assert np.isfinite(frame.loc[("b", "a"), name])


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
    (tmp_path / "fit.nc").write_bytes(tree.to_netcdf(engine=files.ENGINE))  # as `bz.save` refuses it
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
