"""Classes: integrated probabilities, decisions of least expected loss, and scores, against SciPy and scikit-learn."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    brier_score_loss,
    confusion_matrix,
    log_loss,
    roc_auc_score,
    roc_curve,
)

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out
from bayeszoo.answers.classes import classify as module
from bayeszoo.distributions.discrete import Categorical
from bayeszoo.model import Classifies
from bayeszoo.results.stored import Fit
from tests.refusals import raises

LOGISTIC = bz.find("logistic_regression")
ROWS, NEW = 200, 100


def table(rows=ROWS, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 2))
    y = rng.binomial(1, scipy.special.expit(-0.5 + X @ [1.5, -1.0]))
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(y, "yes", "no")})


def later():
    """Further rows."""
    return table(NEW, seed=2)


def trial_table():
    return {"dose": [-0.86, -0.3, -0.05, 0.73], "successes": [0, 1, 3, 5], "trials": [5, 5, 5, 5]}


@pytest.fixture(scope="module")
def tree():
    return bz.fit(LOGISTIC(), bz.read(LOGISTIC, table(), positive="yes"), "laplace", seed=1)


@pytest.fixture(scope="module")
def point():
    return bz.fit(LOGISTIC(), bz.read(LOGISTIC, table(), positive="yes"), "map", seed=1)


@pytest.fixture(scope="module")
def new(tree):
    return bz.classify(tree, later())


def outcomes(frame):
    return (frame["observed"] == "yes").astype(int).to_numpy()


# Probabilities and decisions


def test_probabilities_are_the_average_over_the_draws(tree, new):
    w = tree.posterior["w"].to_numpy().reshape(-1, 3)
    X = np.column_stack([np.ones(NEW), later()[["a", "b"]]])
    np.testing.assert_allclose(new["p[yes]"], scipy.special.expit(X @ w.T).mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(new["p[yes]"] + new["p[no]"], 1, rtol=1e-12)


ONE_WEIGHT = np.array([[-1.0], [0.4], [1.3], [2.0]]), np.array([0, 1, 0, 1])


def density_of_one(w, left_out=()):
    """Prior times likelihood of one weight, by hand."""
    x, y = (np.delete(values, left_out) for values in (ONE_WEIGHT[0][:, 0], ONE_WEIGHT[1]))
    return np.exp(-w * w / 8) * np.prod(scipy.special.expit(np.where(y, 1, -1) * x * w))


def mean_of_one(function, left_out=()):
    """Posterior mean of a function of one weight."""

    def integral(of):
        return scipy.integrate.quad(of, -20, 20, epsabs=1e-14)[0]

    return integral(lambda w: function(w) * density_of_one(w, left_out)) / integral(
        lambda w: density_of_one(w, left_out)
    )


@pytest.fixture(scope="module")
def one_weight():
    return bz.fit(LOGISTIC(intercept=False, tau=2.0), ONE_WEIGHT, "exact", seed=1)


def test_probabilities_of_an_exact_fit_are_those_of_quadrature(one_weight):
    frame = bz.classify(one_weight, {"x1": [-3.0, 0.5, 2.5]})
    exact = [mean_of_one(lambda w, x=x: scipy.special.expit(w * x)) for x in (-3.0, 0.5, 2.5)]
    np.testing.assert_allclose(frame["p[1]"], exact, rtol=1e-6)
    assert (frame[["mcse[0]", "mcse[1]"]] < 1e-6).all(axis=None)
    assert frame["settled"].all()


def test_a_row_that_the_grid_is_too_coarse_for_says_its_error(one_weight):
    row = bz.classify(one_weight, {"x1": [40.0]}).iloc[0]
    exact = scipy.integrate.quad(lambda w: density_of_one(w) * scipy.special.expit(40 * w), -20, 20, points=[0.0])[0]
    off = abs(row["p[1]"] - exact / scipy.integrate.quad(density_of_one, -20, 20)[0])
    assert 1e-6 < off <= row["mcse[1]"] < 0.02


def test_draws_of_the_exact_posterior_agree_within_their_errors(one_weight):
    drawn = one_weight.copy()
    drawn.attrs = {**one_weight.attrs, "method": "nuts", "kind": "sampled"}
    frame = bz.classify(drawn, {"x1": [-3.0, 0.5, 2.5]})
    for x, p, error in zip([-3.0, 0.5, 2.5], frame["p[1]"], frame["mcse[1]"], strict=True):
        assert abs(p - mean_of_one(lambda w, x=x: scipy.special.expit(w * x))) < 5 * error
        assert 1e-4 < error < 0.02
    plugged_in = scipy.special.expit(2.5 * mean_of_one(lambda w: w))  # which the test would see
    assert abs(plugged_in - mean_of_one(lambda w: scipy.special.expit(2.5 * w))) > 5 * error


def test_exact_leave_one_out_is_that_of_quadrature_without_each_row(one_weight):
    x, y = ONE_WEIGHT
    terms = [
        np.log(mean_of_one(lambda w, i=i: scipy.special.expit((2 * y[i] - 1) * x[i, 0] * w), left_out=(i,)))
        for i in range(4)
    ]
    score = leave_out.of_fit(Fit(one_weight))
    np.testing.assert_allclose(score.terms, terms, rtol=1e-6)
    assert score.mcse < 1e-6


def test_a_point_estimate_is_plugged_in_without_an_error(point):
    frame, w = bz.classify(point, {"a": [0.2], "b": [-1.0]}), point.posterior["w"].to_numpy()[0, 0]
    np.testing.assert_allclose(frame["p[yes]"], scipy.special.expit(w @ [1, 0.2, -1.0]), rtol=1e-12)
    assert frame["mcse[yes]"].isna().all()
    assert frame["settled"].all()


@pytest.mark.parametrize("loss", [[[0, 1], [5, 0]], [[-1, 2], [3, 0.5]]])
@pytest.mark.parametrize("reject", [None, 0.4])
def test_the_decision_has_the_least_expected_loss(tree, new, loss, reject):
    frame = bz.classify(tree, later(), loss=loss, reject=reject)
    costs = new[["p[no]", "p[yes]"]].to_numpy() @ np.array(loss)
    costs = costs if reject is None else np.column_stack([costs, np.full(NEW, reject)])
    names = np.array(["no", "yes", "reject"], dtype=object)
    assert frame["decision"].tolist() == names[np.argmin(costs, axis=1)].tolist()
    np.testing.assert_allclose(frame["expected_loss"], costs.min(axis=1), atol=1e-12)
    assert len(set(frame["decision"])) >= 2


def test_rows_near_the_threshold_are_not_settled(tree, new):
    frame = bz.classify(tree, later(), loss=[[0, 1], [1, 0]])
    far = np.abs(2 * frame["p[yes]"] - 1) > 4 * frame["mcse[yes]"]  # the losses differ by 2 p - 1
    assert frame["settled"].tolist() == far.tolist()
    w = tree.posterior["w"].mean(("chain", "draw")).to_numpy()
    edge = bz.classify(tree, {"a": [-w[0] / w[1]], "b": [0.0]})
    assert not edge["settled"].item()


def test_no_decision_is_settled_between_equal_losses(tree):
    assert not bz.classify(tree, {"a": [1.0], "b": [0.0]}, loss=[[1, 1], [1, 1]])["settled"].any()


def test_classes_far_out_keep_their_digits(point):
    w = point.posterior["w"].to_numpy()[0, 0]
    frame = bz.classify(point, {"a": [60.0], "b": [0.0], "y": ["no"]})
    np.testing.assert_allclose(frame["log_score"], -np.logaddexp(0, w[0] + 60 * w[1]), rtol=1e-12)
    assert frame["p[no]"].item() > 0


def test_probabilities_of_a_probit_are_of_the_normal_distribution():
    tree = bz.fit(bz.find("probit_regression")(), bz.read(LOGISTIC, table(), positive="yes"), "map", seed=1)
    frame, w = bz.classify(tree, {"a": [0.2, -12.0], "b": [-1.0, 5.0]}), tree.posterior["w"].to_numpy()[0, 0]
    eta = w[0] + w[1] * np.array([0.2, -12.0]) + w[2] * np.array([-1.0, 5.0])
    np.testing.assert_allclose(frame[["p[no]", "p[yes]"]], scipy.stats.norm.cdf(np.outer(eta, [-1, 1])), rtol=1e-10)


# Scores


def test_scores_are_those_of_scikit_learn(new):
    y, p, attrs = outcomes(new), new["p[yes]"], new.attrs
    np.testing.assert_allclose(attrs["log_score_of_one"], -log_loss(y, p))
    np.testing.assert_allclose(attrs["brier_score_of_one"], brier_score_loss(y, p))
    np.testing.assert_allclose(attrs["auc"]["yes"], roc_auc_score(y, p))
    np.testing.assert_allclose(attrs["loss_of_one"], np.mean(new["decision"] != new["observed"]))
    np.testing.assert_allclose(attrs["se_brier_score_of_one"], scipy.stats.sem((y - p) ** 2))
    np.testing.assert_allclose(attrs["se_log_score_of_one"], scipy.stats.sem(new["log_score"]))
    np.testing.assert_allclose(new["log_score"], np.log(np.where(y, p, 1 - p)))


def test_tables_are_those_of_scikit_learn(new):
    y, p = outcomes(new), new["p[yes]"]
    expected = confusion_matrix(new["observed"], new["decision"], labels=["no", "yes"])
    assert bz.confusion(new).to_numpy().tolist() == expected.tolist()
    assert bz.confusion(new).index.tolist() == bz.confusion(new).columns.tolist() == ["no", "yes"]
    bins, (share, mean) = bz.calibration(new), calibration_curve(y, p, n_bins=10)
    np.testing.assert_allclose(bins[["share", "mean_probability"]], np.column_stack([share, mean]))
    assert bins["trials"].sum() == NEW
    curve = bz.roc(new)
    rates = roc_curve(y, p, drop_intermediate=False)
    names = ["false_positive_rate", "true_positive_rate", "threshold"]
    np.testing.assert_allclose(curve[names], np.column_stack(rates))


def test_intervals_of_the_calibration_are_jeffreys(new):
    bins = bz.calibration(new, 4)
    hits, misses = bins["share"] * bins["trials"], (1 - bins["share"]) * bins["trials"]
    for name, q in {"q025": 0.025, "q975": 0.975}.items():
        np.testing.assert_allclose(bins[name], scipy.stats.beta.ppf(q, hits + 0.5, misses + 0.5))


def test_trials_count_as_so_many_rows():
    """Rows of trials and the same outcomes row by row have one posterior, and so one answer."""
    grouped = trial_table()
    dose, wins = np.repeat(grouped["dose"], 5), np.concatenate([[1] * k + [0] * (5 - k) for k in grouped["successes"]])
    tree = bz.fit(LOGISTIC(), (dose[:, None], wins), "map", seed=1)
    rows = bz.classify(tree)
    probabilities = rows[["p[0]", "p[1]"]].to_numpy()[::5]
    frame = rows.iloc[::5].drop(columns=["observed", "log_score", "mcse_log_score", "brier_score"])
    counts = np.column_stack([np.subtract(5, grouped["successes"]), grouped["successes"]])
    scored = module.scored(frame, counts, (np.log(probabilities), np.zeros((4, 2))), by_trials=True)
    for name in ("loss_of_one", "log_score_of_one", "brier_score_of_one"):
        np.testing.assert_allclose(scored.attrs[name], rows.attrs[name])
        np.testing.assert_allclose(scored.attrs[f"se_{name}"], rows.attrs[f"se_{name}"])
    np.testing.assert_allclose(scored.attrs["auc"]["1"], rows.attrs["auc"]["1"])
    pd.testing.assert_frame_equal(bz.confusion(scored), bz.confusion(rows))
    pd.testing.assert_frame_equal(bz.calibration(scored), bz.calibration(rows))


def test_one_class_alone_has_no_area(point):
    frame = bz.classify(point, {"a": [1.0, 0.0], "b": [0.0, 1.0], "y": ["yes", "yes"]})
    assert np.isnan(frame.attrs["auc"]["yes"])
    assert bz.roc(frame)["false_positive_rate"].isna().all()


# Three classes: a likelihood that is categorical


class ThreeWay(Classifies):
    """A law by the table, as a softmax regression has."""

    inputs = LOGISTIC.inputs

    def declare(self, data):
        raise NotImplementedError

    def classes(self, data):
        return ["low", "middle", "high"]

    def likelihood(self, params, data):
        logits = np.stack([0 * params["w"], params["w"], 2 * params["w"]], axis=-1)[..., None, :]
        return Categorical(scipy.special.softmax(logits + data["X"], axis=-1))


def test_several_classes_take_their_probabilities_from_the_likelihood():
    rng = np.random.default_rng(1)
    X, w = rng.standard_normal((5, 3)), rng.standard_normal((2, 40))
    model = ThreeWay.__new__(ThreeWay)
    log_p = model.log_class_probabilities({"w": w}, {"X": X})
    assert log_p.shape == (2, 40, 5, 3)
    expected = scipy.special.log_softmax(np.multiply.outer(w, [0, 1, 2])[:, :, None] + X, axis=-1)
    np.testing.assert_allclose(log_p, expected, atol=1e-12)
    loss = np.array([[0, 1, 9], [2, 0, 1], [9, 3, 0.0]])
    counts = np.eye(3, dtype=int)[[0, 1, 2, 2, 1]]
    known = module.decided(log_p, loss, counts, module.Average("sampled"))
    p = np.exp(expected).mean((0, 1))
    assert known.action.tolist() == np.argmin(p @ loss, axis=1).tolist()
    np.testing.assert_allclose(known.expected_loss, (p @ loss).min(axis=1))
    columns = {
        "decision": np.array(["low", "middle", "high"])[known.action],
        "settled": known.settled,
        **dict(zip(["p[low]", "p[middle]", "p[high]"], p.T, strict=True)),
        **dict(zip(["mcse[low]", "mcse[middle]", "mcse[high]"], known.mcse.T, strict=True)),
    }
    frame = pd.DataFrame(columns)
    frame.attrs = {"classes": ["low", "middle", "high"], "loss": loss.tolist()}
    scored = module.scored(frame, counts, (known.log_p, known.log_p_mcse), False)
    y = [0, 1, 2, 2, 1]
    np.testing.assert_allclose(scored.attrs["log_score_of_one"], -log_loss(y, p))
    np.testing.assert_allclose(scored.attrs["brier_score_of_one"], brier_score_loss(y, p))
    areas = [roc_auc_score(counts[:, k], p[:, k]) for k in range(3)]
    np.testing.assert_allclose(list(scored.attrs["auc"].values()), areas)
    assert bz.calibration(scored, 2).groupby("class")["trials"].sum().tolist() == [5, 5, 5]


# Bad input


@pytest.mark.parametrize(
    ("loss", "line"),
    [
        ([[0, 1]], "the loss is 1 x 2, for 2 classes (no, yes); give 2 rows of 2 numbers, a row for each true class"),
        (3, "the loss is a number, for 2 classes"),
        ([[0, 1], [2]], "the loss is no matrix of numbers"),
        ([[0, "x"], [1, 0]], "the loss is no matrix of numbers"),
        ([[0, np.inf], [1, 0]], "the loss has an entry that is not finite"),
    ],
)
def test_a_loss_that_does_not_suit_the_classes_is_refused(point, loss, line):
    with pytest.raises(bz.InputError) as error:
        bz.classify(point, loss=loss)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("new", "code", "name"),
    [
        ({"a": [1.0]}, "missing_column", "'b'"),
        ({"a": [1.0], "b": [0.0], "y": ["maybe"]}, "positive_needed", "maybe"),
        ({"a": [1.0], "b": ["x"]}, "not_a_number", "'x'"),
    ],
)
def test_rows_that_do_not_suit_the_fit_are_refused(point, new, code, name):
    with raises(bz.InputError, code, name):
        bz.classify(point, new)


def test_what_cannot_be_classified_is_refused(point):
    M = bz.find("gaussian_mean")
    with raises(bz.InputError, "no_classes", "gaussian_mean"):
        bz.classify(bz.fit(M(), {"y": [1.0, 2.0]}, "exact", seed=1))
    hidden = bz.fit(
        bz.find("dawid_skene")(), {"item": list("ppqq"), "rater": list("abab"), "label": list("xxyy")}, "map"
    )
    with raises(bz.InputError, "no_classes", "bayeszoo assign"):
        bz.classify(hidden)
    with raises(bz.InputError, "out_of_range"):
        bz.classify(point, reject=np.nan)
    unknown = bz.classify(point, {"a": [1.0], "b": [0.0]})
    for ask in (bz.confusion, bz.calibration, bz.roc, bz.plot_calibration, bz.plot_roc):
        with raises(bz.InputError, "not_classified"):
            ask(unknown)
    with raises(bz.InputError, "out_of_range", "1", "0"):
        bz.calibration(bz.classify(point), 0)


# The command


@pytest.fixture
def saved(tree, tmp_path):
    return bz.save(tree, tmp_path / "fit.nc")


def test_the_command_prints_decisions_scores_and_tables(run, tree, saved, tmp_path):
    path, picture = tmp_path / "new.csv", tmp_path / "classes.png"
    table(12, seed=3).to_csv(path, index=False)
    code, out, _ = run("classify", saved, path, "--loss", "[[0,1],[5,0]]", "--reject", 0.3, "--plot", picture)
    assert code == 0
    assert picture.stat().st_size > 5000
    frame = bz.classify(tree, path, loss=[[0, 1], [5, 0]], reject=0.3)
    assert max(len(line) for line in out.splitlines() if line.startswith(" ")) <= 80  # tables; a terminal wraps prose
    whole = json.loads(run("classify", saved, path, "--loss", "[[0,1],[5,0]]", "--reject", 0.3, "--json")[1])
    assert [row["decision"] for row in whole["rows"]] == frame["decision"].tolist()
    assert whole["confusion"] == bz.confusion(frame).to_dict("index")
    assert whole["log_score_of_one"] == frame.attrs["log_score_of_one"]
    assert "rows of the fit" not in out
    assert "rows of the fit" in run("classify", saved)[1]


def test_the_command_marks_what_is_not_settled(run, tree, saved, tmp_path):
    w, path = tree.posterior["w"].mean(("chain", "draw")).to_numpy(), tmp_path / "new.csv"
    path.write_text(f"a,b\n5,0\n{-w[0] / w[1]},0\n")
    out = run("classify", saved, path)[1]
    assert "Not settled within the Monte Carlo error (?): row 2." in out
    assert [line.split()[2] for line in out.splitlines() if line[1:2] in "12"][1] == "?"


def test_the_command_appends_decisions_to_the_table(run, saved, tmp_path):
    path, output = tmp_path / "new.csv", tmp_path / "out.csv"
    path.write_text("b,a,name\n0,3,x\n0,-3,y\n")
    assert run("classify", saved, path, "--append", "-o", output)[0] == 0
    frame = pd.read_csv(output)
    assert frame["name"].tolist() == ["x", "y"]
    assert frame["predicted_decision"].tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--loss", "[[0,1]"], "--loss [[0,1] is not JSON"),
        (["--loss", "[[0,1]]"], "the loss is 1 x 2, for 2 classes (no, yes)"),
        (["--append"], "--append goes with DATA and -o"),
    ],
)
def test_the_command_refuses_in_a_line(run, saved, words, line):
    code, out, err = run("classify", saved, *words)
    assert (code, out) == (2, "")
    *cautions, error = err.splitlines()
    assert error.startswith(f"error: {line}")
    assert all(each.startswith("caution: ") for each in cautions)  # of Laplace's approximation


def test_the_report_of_a_classifier_shows_its_decisions_on_the_rows_of_the_fit(point, tmp_path):
    page = bz.report([point], tmp_path / "report.html").read_text(encoding="utf-8")
    section = page[page.index('id="classes"') :]
    frame = bz.classify(point)
    assert "Scores on the rows of the fit are too optimistic" in section
    assert f"{frame.attrs['brier_score_of_one']:.4g}" in section
    assert "calibration and ROC curve" in section


def test_pictures_have_the_numbers_of_the_tables(new):
    figure, bins = bz.plot_calibration(new), bz.calibration(new)
    drawn = figure.axes[0].get_lines()[1]
    np.testing.assert_allclose(drawn.get_xdata(), bins["mean_probability"])
    np.testing.assert_allclose(drawn.get_ydata(), bins["share"])
    figure, curve = bz.plot_roc(new), bz.roc(new)
    drawn = figure.axes[0].get_lines()[1]
    np.testing.assert_allclose(drawn.get_ydata(), curve["true_positive_rate"])
    assert f"{new.attrs['auc']['yes']:.3f}" in drawn.get_label()


def many_classes(path, classes):
    """Write a table of two rows a class, with a feature that is yes or no."""
    rng = np.random.default_rng(0)
    labels = [f"c{code}" for code in np.repeat(np.arange(classes), 2)]
    pd.DataFrame({"kind": labels, "x": rng.choice(["no", "yes"], 2 * classes)}).to_csv(path, index=False)


def test_many_classes_are_decided_without_a_table_of_each_pair(tmp_path, monkeypatch, run):
    """Confusion and calibration of K classes have K rows and more: above `MOST_CLASSES` the scores alone are shown."""
    monkeypatch.chdir(tmp_path)
    many_classes("many.csv", 60)
    assert run("fit", "naive_bayes", "many.csv", "--class", "kind", "--method", "exact", "-o", "fit.nc")[0] == 0
    code, out, _ = run("classify", "fit.nc", "many.csv")
    assert code == 0
    assert "Brier score" in out
    assert "p[c0]" not in out
    code, out, _ = run("classify", "fit.nc", "many.csv", "--json")
    whole = json.loads(out)
    assert whole["loss"] is None
    assert len(whole["auc"]) == 60


def test_more_probabilities_than_fit_in_a_table_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 100)
    tree = bz.fit(LOGISTIC(), bz.read(LOGISTIC, table(), positive="yes"), "map", seed=1)
    with raises(bz.InputError, "too_large"):
        bz.classify(tree)
