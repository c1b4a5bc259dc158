"""Rows that are left out one by one: decisions and residuals against fits without the row, and what is withheld."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy
from scipy import stats

import bayeszoo as bz
from bayeszoo.answers import averages
from bayeszoo.answers.averages import Average, masses_without
from bayeszoo.answers.checks import leave_out
from bayeszoo.answers.classes import classify as module
from bayeszoo.answers.classes.scores import scored
from bayeszoo.foundation.gate import as_dict, at_most
from bayeszoo.report.families.classes import about_rows
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.support import REFERENCE_DRAWS
from tests.refusals import raises

LOGISTIC = bz.find("logistic_regression")
BIOASSAY = {"dose": [-0.86, -0.3, -0.05, 0.73], "successes": [0, 1, 3, 5], "trials": [5, 5, 5, 5]}


def challenger():
    data = bz.example(LOGISTIC, "challenger")
    return data["X"][:, 0], data["y"]


def fit(x, y, method="exact"):
    return bz.fit(LOGISTIC(tau=0.5, s0=3.0, center=70.0), {"x": x, "y": y}, method, seed=1)


@pytest.fixture(scope="module")
def exact():
    return fit(*challenger())


@pytest.fixture(scope="module")
def drawn(exact):
    """The same posterior by its draws."""
    tree = exact.copy()
    tree.attrs = {**exact.attrs, "method": "nuts", "kind": "sampled"}
    return tree


def without(i):
    """Return the probability of distress on a flight by a fit to all others."""
    x, y = challenger()
    return bz.classify(fit(np.delete(x, i), np.delete(y, i)), {"x": [x[i]]})["p[1]"].iloc[0]


HOT = int(np.argmax(np.where(challenger()[1] == 1, challenger()[0], 0)))
"""The warmest flight with distress, which the others foretell the least."""


# Against fits without the row


def test_quadrature_is_that_of_a_fit_without_each_row(exact):
    frame = bz.classify(exact, leave_one_out=True)
    assert frame.attrs["basis"] == "leave-one-out, quadrature"
    assert frame.attrs["rows_are"] == "left out"
    assert frame.attrs["rows_withheld"] == 0
    for i in (0, 10, HOT):
        assert frame["p[1]"].iloc[i] == pytest.approx(without(i), rel=1e-6)
    in_sample = bz.classify(exact)["p[1]"].iloc[HOT]
    assert in_sample - without(HOT) > 0.03  # which the comparison would see


def test_draws_of_an_approximation_are_weighed_to_the_posterior():
    """Rows N(mu, 1) whose posterior is N(1.2, 1/8): draws of a wider normal elsewhere, against the closed form."""
    rng, y = np.random.default_rng(3), np.array([1.4, 0.3, 2.2, 1.9, 0.7, 1.1, 0.4, 1.6])
    posterior, q = scipy.stats.norm(y.mean(), 8**-0.5), scipy.stats.norm(y.mean() + 0.1, 0.4)
    mu = q.rvs(size=(4, 1000), random_state=rng)
    log_p = scipy.stats.norm.logpdf(y, mu[..., None])
    others = (y.sum() - y) / 7
    right = scipy.stats.norm.logpdf(y, others, (1 + 1 / 7) ** 0.5)
    weighed = Average("approximate", draws={"mu": mu}, log_ratio=posterior.logpdf(mu) - q.logpdf(mu) + 700)
    left, seen = weighed.without(log_p), np.ones(8, dtype=bool)
    value, error = left.log_means(log_p, seen)
    assert left.is_known.all()
    assert np.abs((value - right) / error).max() < 5
    assert left.mean(mu[..., None] + 0 * log_p) == pytest.approx(others, abs=0.05)
    assert weighed.shares().mean() == pytest.approx(1)
    plain = Average("approximate", draws={"mu": mu})
    value, error = plain.without(log_p).log_means(log_p, seen)  # as before: the errors do not see the approximation
    assert np.abs((value - right) / error).max() > 10
    assert (weighed.basis, plain.basis) == (averages.WEIGHED_PSIS, averages.APPROXIMATE_PSIS)


def test_the_error_of_a_score_of_weighed_draws_is_that_of_repeated_draws():
    model, y = (
        bz.find("gaussian_mean")(m0=0.0, s0=10.0, sigma=1.0),
        np.array([1.4, 0.3, 2.2, 1.9, 0.7, 1.1, 0.4, 1.6]),
    )
    data = bz.read(model, y)
    right = leave_out.closed_form(model, data).mean
    posterior, q = model.posterior(model.statistics(data))["mu"], scipy.stats.norm(1.3, 0.45)
    z = []
    for seed in range(40):
        mu = q.rvs(size=(4, 250), random_state=seed)
        average = Average("approximate", draws={"mu": mu}, log_ratio=posterior.logpdf(mu) - q.logpdf(mu))
        score = leave_out.averaged(model, data, average, {"mu": mu})
        z.append((score.mean - right) / score.mcse)
    assert 0.7 < np.std(z) < 1.4


def test_weights_of_a_fit_give_the_evidence(exact):
    tree = fit(*challenger(), "laplace")
    weights = tree["sample_stats"]["log_weight"].to_numpy()
    estimate = scipy.special.logsumexp(weights) - np.log(weights.size)
    error = np.exp(weights - estimate).std() / np.sqrt(weights.size)
    assert abs(estimate - Fit(exact).fact("log_evidence")) < 5 * error < 0.5


def test_draws_agree_within_their_errors(exact, drawn):
    frame, known = (bz.classify(tree, leave_one_out=True) for tree in (drawn, exact))
    assert frame.attrs["basis"] == "leave-one-out, PSIS"
    assert (frame["k_hat"] < 0.7).all()
    z = (frame["p[1]"] - known["p[1]"]) / frame["mcse[1]"]
    assert z.abs().max() < 5
    assert frame["mcse[1]"].max() < 0.02
    assert ((bz.classify(exact)["p[1]"] - known["p[1]"]) / frame["mcse[1]"]).abs().max() > 5


def test_means_are_the_leave_one_out_scores_of_compare(exact, drawn):
    for tree in (exact, drawn):
        frame, score = bz.classify(tree, leave_one_out=True), leave_out.of_fit(Fit(tree))
        np.testing.assert_allclose(frame["log_score"], score.terms, rtol=1e-9)
        assert frame.attrs["log_score_of_one"] == pytest.approx(score.mean, rel=1e-9)
    assert frame["mcse_log_score"].max() < 0.1


def test_scores_are_those_of_the_probabilities_without_the_row(exact):
    frame, y = bz.classify(exact, leave_one_out=True), challenger()[1]
    p = frame["p[1]"].to_numpy()
    assert frame.attrs["brier_score_of_one"] == pytest.approx(np.mean((p - y) ** 2))
    np.testing.assert_allclose(frame["log_score"], np.log(np.where(y == 1, p, 1 - p)), rtol=1e-6)
    right = bz.confusion(frame).to_numpy()
    assert np.trace(right) == np.sum((p > 0.5) == y)


def test_trials_of_a_row_are_left_out_together():
    model = LOGISTIC(tau=3.0, s0=3.0)
    frame = bz.classify(bz.fit(model, BIOASSAY, "exact", seed=1), leave_one_out=True)
    for i in range(4):
        rest = {name: np.delete(values, i) for name, values in BIOASSAY.items()}
        one = bz.classify(bz.fit(model, rest, "exact", seed=1), {"dose": [BIOASSAY["dose"][i]]})
        assert frame["p[1]"].iloc[i] == pytest.approx(one["p[1]"].iloc[0], rel=1e-5)


def test_three_classes_without_a_row_are_a_dirichlets():
    alpha, counts = np.array([1.0, 2.0, 0.5]), np.array([4, 1, 7])
    p = np.random.default_rng(1).dirichlet(alpha + counts, (4, 5000))
    log_p = np.log(np.repeat(p[:, :, None], 3, axis=2))
    mean = Average("sampled").without(np.diagonal(log_p, axis1=2, axis2=3))
    known = module.decided(log_p, 1 - np.eye(3), np.eye(3, dtype=int), mean)
    rest = alpha + counts - np.eye(3)
    exact = rest / rest.sum(axis=1, keepdims=True)
    assert known.is_known.all()
    assert np.max(np.abs(known.p - exact) / known.mcse) < 5
    assert np.max(known.mcse) < 0.01
    kept = (alpha + counts) / np.sum(alpha + counts)
    assert np.max(np.abs(kept - exact) / known.mcse) > 10
    np.testing.assert_allclose(np.diag(known.log_p), np.log(np.diag(known.p)), rtol=1e-12)
    np.testing.assert_allclose(known.expected_loss, 1 - known.p.max(axis=1), rtol=1e-12)


def test_residuals_of_an_exact_fit_rest_on_its_quadrature(exact):
    frame, left = bz.residuals(exact, seed=1), bz.classify(exact, leave_one_out=True)
    assert frame.attrs["basis"] == {"leave-one-out, quadrature": 23}
    np.testing.assert_allclose(frame["mean_without"], left["p[1]"], rtol=1e-9)
    assert frame["k_hat"].isna().all()
    pooled = bz.fit(LOGISTIC(), BIOASSAY, "exact", seed=1)
    assert bz.residuals(pooled).attrs["basis"] == {"leave-one-out, quadrature": 4}


# What is withheld


def outlying():
    """Return rows of which the first is where all others say that it cannot be."""
    rng = np.random.default_rng(3)
    x = np.append(9.0, rng.standard_normal(40))
    return x, np.append(0, (x[1:] + 0.3 * rng.standard_normal(40) > 0).astype(int))


@pytest.fixture(scope="module")
def outlier():
    x, y = outlying()
    tree = bz.fit(LOGISTIC(tau=1.0), {"x": x, "y": y}, "laplace", seed=1)
    facts = {name: value for name, value in Fit(tree).facts.items() if "withheld" not in name}
    tree.attrs |= {"status": "ok", "facts": dumps(facts), "gate": dumps(as_dict([at_most("nothing", 0, 0)]))}
    return tree.drop_nodes(["reference", REFERENCE_DRAWS], errors="ignore")  # its answers are not judged


def test_a_row_without_which_the_draws_say_nothing_is_withheld(outlier):
    frame = bz.classify(outlier, leave_one_out=True)
    hidden = frame["decision"] == "withheld"
    assert hidden.iloc[0]
    assert frame.attrs["rows_withheld"] == hidden.sum() < 41
    assert (frame["k_hat"][hidden] > 0.5).all()
    assert (frame["k_hat"][~hidden] <= 0.7).all()
    numbers = ["p[0]", "p[1]", "mcse[1]", "expected_loss", "log_score", "brier_score"]
    assert frame.loc[hidden, numbers].isna().all(axis=None)
    assert frame.loc[~hidden, numbers].notna().all(axis=None)
    assert not frame["settled"][hidden].any()
    whole = [frame.attrs[name] for name in ("loss_of_one", "log_score_of_one", "brier_score_of_one")]
    assert np.isnan([*whole, frame.attrs["auc"]["1"]]).all()
    table = bz.confusion(frame)
    assert table["withheld"].sum() == hidden.sum()
    assert table.to_numpy().sum() == 41
    assert bz.calibration(frame)["trials"].sum() == (~hidden).sum()
    assert len(bz.roc(frame)) <= (~hidden).sum() + 1


def test_the_command_says_what_is_left_out_and_what_is_withheld(run, exact, outlier, tmp_path):
    path = bz.save(outlier, tmp_path / "far.nc")
    code, out, _ = run("classify", path, "--leave-one-out")
    assert code == 0
    lines = about_rows(bz.classify(outlier, leave_one_out=True).attrs, 41)
    assert len(lines) == 2
    assert all(line in " ".join(out.split()) for line in lines)
    assert averages.WEIGHED_PSIS in lines[0]
    whole = json.loads(run("classify", path, "--leave-one-out", "--json")[1])
    assert whole["rows"][0]["decision"] == "withheld"
    assert whole["rows"][0]["p[1]"] is None
    out = run("classify", bz.save(exact, tmp_path / "exact.nc"), "--leave-one-out")[1]
    assert "(leave-one-out, quadrature)" in out
    assert "withheld" not in out


def test_masses_that_the_grid_does_not_reach_are_not_known():
    points = np.linspace(-9, 9, 2001)
    mass = scipy.special.softmax(-(points**2) / 2)
    kept = mass > 1e-20
    near, far = (np.stack([-slope * points[kept]], axis=1) for slope in (1.0, 9.0))
    moved = masses_without(mass[kept], near)
    assert np.exp(moved[:, 0]) @ points[kept] == pytest.approx(1.0, abs=1e-9)
    assert np.isnan(masses_without(mass[kept], far)).all()


def test_rows_that_the_quadrature_does_not_reach_without_have_one_of_their_own(exact, monkeypatch):
    frame, score, rest = bz.classify(exact, leave_one_out=True), leave_out.of_fit(Fit(exact)), bz.residuals(exact)
    monkeypatch.setattr(averages, "_MOST_BEYOND", 0.0)
    again = bz.classify(exact, leave_one_out=True)
    np.testing.assert_allclose(again["p[1]"], frame["p[1]"], rtol=1e-6)
    np.testing.assert_allclose(leave_out.of_fit(Fit(exact)).terms, score.terms, rtol=1e-6)
    np.testing.assert_allclose(bz.residuals(exact)["mean_without"], rest["mean_without"], rtol=1e-6)


def test_an_outlier_moves_the_weights_beyond_the_grid_and_is_foretold_all_the_same():
    x, y, model = *outlying(), LOGISTIC(tau=10.0)
    tree = bz.fit(model, {"x": x, "y": y}, "exact", seed=1)
    rest = bz.fit(model, {"x": x[1:], "y": y[1:]}, "exact", seed=1)
    known = bz.classify(rest, {"x": x[:1], "y": y[:1]})
    frame = bz.classify(tree, leave_one_out=True)
    assert frame["p[0]"].iloc[0] == pytest.approx(known["p[0]"].iloc[0], rel=1e-4)
    assert frame["log_score"].iloc[0] == pytest.approx(known["log_score"].iloc[0], rel=1e-4)
    assert leave_out.of_fit(Fit(tree)).terms[0] == pytest.approx(known["log_score"].iloc[0], rel=1e-4)
    assert bz.residuals(tree)["mean_without"].iloc[0] == pytest.approx(known["p[1]"].iloc[0], rel=1e-4)


def test_what_cannot_be_left_out_is_refused(exact, monkeypatch):
    x, y = challenger()
    with raises(bz.InputError, "leave_one_out_unavailable"):
        bz.classify(fit(x, y, "map"), leave_one_out=True)
    with raises(bz.InputError, "conflicting_options"):
        bz.classify(exact, {"x": [60.0]}, leave_one_out=True)
    monkeypatch.setattr(module, "MAX_DISTINCT", 22)
    with raises(bz.InputError, "too_large", "23", "22"):
        bz.classify(exact, leave_one_out=True)


def test_a_report_leaves_rows_out_and_of_a_point_estimate_says_that_it_does_not(exact, tmp_path, no_pictures):
    pages = {}
    for tree in (exact, fit(*challenger(), "map")):
        page = bz.report([tree], tmp_path / f"{Fit(tree).method}.html").read_text(encoding="utf-8")
        pages[Fit(tree).method] = page[page.index('id="classes"') :]
    assert "Each row is classified given all other rows (leave-one-out, quadrature)." in pages["exact"]
    assert f"{bz.classify(exact, leave_one_out=True).attrs['brier_score_of_one']:.4g}" in pages["exact"]
    assert "Scores on the rows of the fit are too optimistic" in pages["map"]


def test_errors_of_small_probabilities_of_new_rows_reach_the_exact_ones():
    """Far from the rows few draws carry the probability of a class, and its error is at least that of one further draw.

    Means and variances of two classes have normal-inverse-gamma posteriors, so that features have Student laws.
    """
    rng, rows = np.random.default_rng(3), np.array([5.0, 10.0, 12.0])
    means, n, sum_of_squares = np.array([0.0, 4.0]), 6, 7.0
    laws = stats.t(n - 1, means, np.sqrt(sum_of_squares / (n - 1) * (1 + 1 / n)))
    exact = laws.pdf(rows[:, None])
    exact = exact / exact.sum(axis=1, keepdims=True)
    is_off, shown = 0, 0
    for _ in range(20):
        variances = sum_of_squares / rng.chisquare(n - 1, (4, 1000, 2))
        draws = stats.norm(rng.normal(means, np.sqrt(variances / n)), np.sqrt(variances))
        log_joint = np.moveaxis(draws.logpdf(rows[:, None, None, None]), 0, 2) + np.log(0.5)
        log_density = np.logaddexp.reduce(log_joint, axis=-1)
        mean = Average("sampled").without(-log_density)
        counts = np.tile([1, 0], (3, 1))
        known = module.decided(log_joint - log_density[..., None], 1 - np.eye(2), counts, mean)
        far = np.abs(known.p - exact) > 5 * known.mcse
        is_off, shown = is_off + far[mean.is_known].sum(), shown + mean.is_known.sum()
        np.testing.assert_array_equal(known.mcse_expected_loss, known.mcse[:, 0])
        far = np.abs(known.log_p[:, 0] - np.log(exact[:, 0])) > 5 * known.log_p_mcse[:, 0]  # NaN is withheld
        is_off += far[mean.is_known].sum()
    assert shown > 20
    assert is_off == 0


def test_log_scores_that_are_withheld_are_said():
    p = np.array([[0.9, 0.1], [0.99, 0.01], [np.nan, np.nan]])
    frame = pd.DataFrame({"p[a]": p[:, 0], "p[b]": p[:, 1], "mcse[a]": 0.01, "mcse[b]": 0.01, "decision": "a"})
    frame.attrs |= {"classes": ["a", "b"], "loss": None, "rows_are": "new"}
    log_p = np.array([[np.log(0.9), np.nan], [np.nan, np.nan], [np.nan, np.nan]])
    counts = np.array([[1, 0], [0, 1], [1, 0]])
    known = scored(frame.assign(settled=True), counts, (log_p, np.zeros((3, 2))), False)
    assert known.attrs["rows_unscored"] == 1  # the third row is withheld whole
    assert [line for line in about_rows(known.attrs, 3) if line.startswith("The log scores of 1 of the 3 rows")]
