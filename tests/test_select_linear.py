"""Selection of degrees and subsets: SciPy's densities, scikit-learn's least squares and folds, and the pictures."""

import json
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.model_selection import KFold, PredefinedSplit

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out as score
from bayeszoo.foundation.process import writing
from bayeszoo.plots import select as select_plot
from tests.refusals import raises

COIN, RIDGE, LINEAR = (bz.find(name) for name in ("beta_bernoulli", "ridge", "linear_regression"))
TAU, SIGMA, S0 = 2.0, 0.5, 10.0
MODEL = RIDGE(tau=TAU, sigma=SIGMA, s0=S0)


def cubic(rows=60, seed=4):
    rng = np.random.default_rng(seed)
    x = np.linspace(-2, 2, rows)
    return {"x": x, "y": 1 - x + 0.8 * x**3 + SIGMA * rng.standard_normal(rows)}


DATA = bz.read(RIDGE, cubic())
X, Y = DATA["X"][:, 0], DATA["y"]


def powers(degree, x=X):
    return np.vander(x, degree + 1, increasing=True)


def covariance(phi):
    """The outcomes' covariance under the ridge prior."""
    prior = np.array([S0**2] + [TAU**2] * (phi.shape[1] - 1))
    return SIGMA**2 * np.eye(len(phi)) + (phi * prior) @ phi.T


def predicted(degree, held, rest):
    """Log densities of single held-out outcomes given the rest, by conditioning a multivariate normal."""
    cov = covariance(powers(degree))
    gain = np.linalg.solve(cov[np.ix_(rest, rest)], cov[np.ix_(rest, held)]).T
    mean = gain @ Y[rest]
    variance = np.diag(cov[np.ix_(held, held)] - gain @ cov[np.ix_(rest, held)])
    return stats.norm(mean, np.sqrt(variance)).logpdf(Y[held])


def by_name(candidates, data=DATA, **options):
    return bz.select(candidates, data, **options).set_index("model")


@pytest.fixture(scope="module")
def degrees():
    return by_name(bz.polynomials(MODEL, range(6)))


def test_evidence_and_k_fold_are_those_of_a_multivariate_normal(degrees):
    fold = np.argmax(score.dealt(np.ones(len(Y), dtype=int), 10, 0), axis=1)
    splits = list(PredefinedSplit(fold).split())
    assert len(splits) == 10
    for degree in range(6):
        evidence = stats.multivariate_normal(np.zeros(len(Y)), covariance(powers(degree))).logpdf(Y)
        assert degrees.loc[f"degree {degree}", "log_evidence"] == pytest.approx(evidence, abs=1e-7)
    terms = {}
    for degree in (1, 3):
        terms[degree] = np.zeros(len(Y))
        for rest, held in splits:
            terms[degree][held] = predicted(degree, held, rest)
        row = degrees.loc[f"degree {degree}"]
        assert row["kfold"] == pytest.approx(terms[degree].sum(), abs=1e-7)
        assert row["kfold_se"] == pytest.approx(np.std(terms[degree]) * math.sqrt(len(Y)), rel=1e-9)
        assert row["kfold_from"] == "exact"
    less = terms[1] - terms[3]
    assert degrees["kfold"].idxmax() == "degree 3"
    everyone = np.arange(len(Y))  # leave-one-out is as many folds as rows
    alone = [predicted(3, everyone[[i]], np.delete(everyone, i))[0] for i in everyone]
    assert degrees.loc["degree 3", "loo"] == pytest.approx(math.fsum(alone), abs=1e-7)
    row = by_name(bz.polynomials(MODEL, [3]), folds=len(Y), seed=5, loo=False).iloc[0]
    assert row["kfold"] == pytest.approx(degrees.loc["degree 3", "loo"], abs=1e-8)
    assert row["loo_from"] == "withheld: not asked for"
    assert row[["loo", "loo_se", "loo_mcse", "loo_difference"]].isna().all()
    assert degrees.loc["degree 3", "kfold_difference"] == 0
    assert degrees.loc["degree 1", "kfold_difference"] == pytest.approx(less.sum(), abs=1e-7)
    assert degrees.loc["degree 1", "kfold_difference_se"] == pytest.approx(np.std(less) * math.sqrt(len(Y)), rel=1e-8)


def test_single_trials_of_a_table_of_counts_are_dealt_out():
    held = score.dealt(np.array([8, 14]), 4, 3)
    table = by_name({"coin": COIN(2, 5)}, {"successes": [3, 11], "trials": [10, 12]}, folds=4, seed=3)
    total = 0.0
    for failures, successes in held.T:  # the observations are in the order failure, success
        p = (2 + 14 - successes) / (7 + 22 - successes - failures)
        total += successes * math.log(p) + failures * math.log1p(-p)
    assert table.loc["coin", "kfold"] == pytest.approx(total, rel=1e-12)
    for weights, folds in ([1] * 23, 5), ([0, 7, 30, 2], 10), ([8, 14], 4):
        sizes = [len(test) for _, test in KFold(folds).split(np.zeros(sum(weights)))]
        held = score.dealt(np.array(weights), folds, 1)
        assert (held.sum(axis=1).tolist(), sorted(held.sum(axis=0))) == (weights, sorted(sizes))


def test_what_is_withheld():
    for data, reason in (([1.0, 2.0], "2 observations, fewer than 10 folds"), ([1.0], "1 observation, fewer")):
        row = bz.select([bz.find("gaussian_mean")()], data).iloc[0]
        assert row["kfold_from"].startswith(f"withheld: {reason}")
        assert np.isnan(row["kfold"])
        assert row["loo_from"] == "exact"
    with raises(score.NoScore, "too_large", score.MAX_SINGLE):
        score.dealt(np.array([score.MAX_SINGLE + 1]), 10, 0)
    line = {"x": [1.0, 2.0, 3.0], "y": [2.0, 4.0, 6.0]}
    for model, data, reason in (
        (COIN(), [1, 0, 1], "it is not a linear model of a Gaussian outcome"),
        (RIDGE(), line, "the least-squares residuals are all zero"),
        (RIDGE(degree=3), line, "no unique maximum-likelihood estimate"),
    ):
        row = bz.select([model], data).iloc[0]
        assert row["mdl_from"].startswith(f"withheld: {reason}")
        assert np.isnan(row["mdl"])


def least_squares(phi, y):
    return float(np.sum(np.square(y - LeastSquares(fit_intercept=False).fit(phi, y).predict(phi))))


@pytest.mark.parametrize("keep", [0.1, 1.0])
def test_description_length_is_least_squares_and_a_price_for_each_term(keep):
    table = by_name(bz.polynomials(MODEL, range(5)), keep_probability=keep, loo=False)
    n = len(Y)
    for degree in range(5):
        expected = n / 2 * math.log(least_squares(powers(degree), Y) / n)
        expected += (degree + 1) * (math.log(n) / 2 - math.log(keep))
        assert table.loc[f"degree {degree}", "mdl"] == pytest.approx(expected, abs=1e-8)
        assert table.loc[f"degree {degree}", "mdl_from"] == "least squares"


def test_best_subsets_are_those_of_scikit_learn():
    names, data = ["bmi", "bp", "s5", "sex"], bz.example(LINEAR)
    table = by_name(bz.subsets(replace(LINEAR.weak(data), features=tuple(names)), data), data, loo=False)
    columns, n = dict(zip(data["feature"], data["X"].T, strict=True)), len(data["y"])
    expected = {}
    for chosen in (chosen for size in range(5) for chosen in combinations(names, size)):
        error = least_squares(np.column_stack([np.ones(n), *(columns[name] for name in chosen)]), data["y"])
        bic = n * math.log(2 * math.pi * error / n) + n + (len(chosen) + 2) * math.log(n)
        expected[", ".join(chosen) or "(intercept)"] = bic
    assert table["bic"].to_dict() == pytest.approx(expected, abs=1e-6)
    assert table["bic"].idxmin() == "bmi, bp, s5"
    assert table["probability"].sum() == pytest.approx(1)
    panels = {panel.get_title(): panel for panel in bz.plot_select(table.reset_index()).axes}
    assert [marks(panels["leave-one-out"], label) for label in ("candidates", "best", "withheld")] == [0, 0, 16]
    assert panels["leave-one-out"].get_xlabel() == "withheld"
    assert marks(panels["BIC"], "withheld") == 0


def test_candidates_differ_in_their_terms_only():
    made = bz.polynomials(replace(MODEL, center=0.5), [np.int64(2), 0])
    assert made == {"degree 2": replace(MODEL, center=0.5, degree=2), "degree 0": replace(MODEL, center=0.5, degree=0)}
    made = bz.subsets(replace(MODEL, degree=2, intercept=False), {"a": [1, 2], "b": [3, 1], "y": [0, 1]})
    assert {name: one.features for name, one in made.items()} == {"a": ("a",), "b": ("b",), "a, b": ("a", "b")}
    assert {one.degree for one in made.values()} == {2}


def test_subsets_are_few():
    wide = {f"x{j}": [1.0, float(j)] for j in range(12)} | {"y": [0.0, 1.0]}
    many = ("too_large", "12", "4096", "1024", "at_most")
    with raises(bz.InputError, *many):
        bz.subsets(MODEL, wide)
    assert [len(bz.subsets(MODEL, wide, at_most=most)) for most in (4, 0)] == [1 + 12 + 66 + 220 + 495, 1]
    assert len(bz.subsets(replace(MODEL, features=("x3", "x1")), wide)) == 4
    made = bz.subsets(MODEL, {"a, b": [1.0, 2.0], "a": [2.0, 1.0], "b": [3.0, 3.0], "y": [1.0, 0.0]})
    assert (len(made), {"'a, b'", "a, b"} <= made.keys()) == (8, True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bz.polynomials(COIN(), [1]), "only linear models have terms to choose, got BetaBernoulli"),
        (lambda: bz.polynomials(RIDGE, [1]), "only linear models have terms to choose, got the class Ridge"),
        (lambda: bz.polynomials(MODEL, []), "there are no degrees; give range(0, 10)"),
        (lambda: bz.polynomials(MODEL, [1, 2, 1]), "degree 1 is given twice"),
        (lambda: bz.polynomials(MODEL, [31]), "degree must be a whole number from 0 to 30, got 31"),
        (lambda: bz.polynomials(LINEAR(w0=[1.0]), [1]), "an entry for each term, and none for other terms"),
        (lambda: bz.subsets(replace(MODEL, degree=0), DATA), "degree 0 has no features to choose from"),
        (lambda: bz.subsets(MODEL, DATA, at_most=-1), "at_most must be a whole number >= 0, got -1"),
        (lambda: bz.subsets(replace(MODEL, features=("z",)), DATA), "there is no feature 'z'; the data have 'x'"),
        (lambda: bz.subsets(replace(MODEL, intercept=False), DATA, 0), "a model without intercept needs a feature"),
        (lambda: bz.select([MODEL], DATA, folds=1), "folds must be a whole number >= 2, got 1"),
        (lambda: bz.select([MODEL], DATA, keep_probability=0), "keep_probability must be > 0 and at most 1, got 0"),
        (lambda: bz.select([MODEL], DATA, seed=-1), "seed must be a whole number >= 0, got -1"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(bz.InputError) as refused:
        make()
    assert message in str(refused.value)


def test_the_ends_of_the_options_are_taken():
    table = bz.select([MODEL], DATA, folds=2, seed=0, keep_probability=1, loo=False)
    assert np.isfinite(table["kfold"]).all()


def marks(panel, label):
    """Return how many marks a panel has under a label."""
    stripes = [patch for patch in panel.patches if patch.get_label() == label]
    lines = [*panel.lines, *(group.lines[0] for group in panel.containers)]
    groups = {group.get_label(): len(group.lines[0].get_xdata()) for group in panel.containers}
    return groups.get(label, len(stripes) + sum(len(line.get_xdata()) for line in lines if line.get_label() == label))


def test_picture_shows_each_criterion(degrees):
    figure = bz.plot_select(degrees.reset_index())
    criteria = [c for c in select_plot.CRITERIA if c.column != "nml"]
    assert [panel.get_title() for panel in figure.axes] == [c.title for c in criteria]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == degrees.index.tolist()
    for panel, criterion in zip(figure.axes, criteria, strict=True):
        assert [marks(panel, label) for label in ("candidates", "best", "withheld")] == [6, 1, 0]
        (group,), values = panel.containers, degrees[criterion.column]
        behind = np.abs(values - (values.max() if criterion.more_is_better else values.min()))
        assert group.lines[0].get_xdata() == pytest.approx(behind.to_numpy())
    bars = figure.axes[-1].containers[0].lines[2][0].get_segments()
    assert [np.ptp(bar[:, 0]) for bar in bars] == pytest.approx(2 * degrees["loo_difference_se"].to_numpy())
    assert {panel.get_xscale() for panel in figure.axes} == {"symlog"}  # degree 0 is hundreds of nats behind


@pytest.mark.slow
def test_of_many_candidates_the_best_by_any_criterion_are_shown(tmp_path):
    table = bz.select({f"$c_{i}$": COIN(1 + i, 1 + (7 * i) % 40) for i in range(40)}, [1, 0, 1, 1] * 5)
    table.loc[39, "bic"] = table["bic"].min() - 5  # last by the evidence, first by another
    figure = bz.plot_select(table)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) == 32
    assert names[-1] == table["model"][39]
    assert names == [name for name in table["model"] if name in names]
    assert "8 of 40 candidates are not shown" in figure.get_suptitle()
    assert writing.write_figure(figure, tmp_path / "many.svg").stat().st_size > 1000
    assert [path.name for path in tmp_path.iterdir()] == ["many.svg"]
    for wrong, code in ((table.set_index("model"), "not_a_fit"), (table[:0], "no_data")):
        with raises(bz.InputError, code):
            bz.plot_select(wrong)


# Command line


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    """The command line in a folder with a table."""
    monkeypatch.chdir(tmp_path)
    data = cubic(40)
    z = np.random.default_rng(1).standard_normal(40)
    rows = zip(data["x"], z, data["y"], strict=True)
    Path("cubic.csv").write_text("x,z,y\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    return run


@pytest.mark.slow
def test_command_selects_a_degree_and_draws(run):
    options = ("select", "cubic.csv", "--features", "x", "-c", "linear_regression", "--degrees", "0-4,6")
    code, out, err = run(*options, "--plot", "degrees.png", "--no-loo")
    assert (code, err.count("the prior is scaled to the data")) == (0, 1)
    assert err.endswith("wrote degrees.png\n")
    ranked = " ".join(out.split())
    assert all(f"{score}: degree 3" in ranked for score in ("BIC", "MDL", "K-fold"))
    assert Path("degrees.png").read_bytes().startswith(b"\x89PNG")
    error = "error: degrees.png exists; choose another name or use --overwrite\n"
    assert run(*options, "--plot", "degrees.png") == (2, "", error)
    code, out, _ = run(*options, "--plot", "degrees.png", "--overwrite", "--json", "--folds", "4", "--seed", "2")
    found = json.loads(out)
    assert (code, found["plot"], found["folds"], found["seed"], len(found["table"])) == (0, "degrees.png", 4, 2, 6)


def test_command_keeps_the_fields_of_each_candidate(run):
    """A prior scaled to the data must not undo the terms."""
    options = ("--no-loo", "--json", "--subsets", "--at-most", "1", "--keep-probability", "0.25")
    models = ("-c", "ridge degree=3", "-c", "linear_regression intercept=false")
    table = {row["model"]: row for row in json.loads(run("select", "cubic.csv", *options, *models)[1])["table"]}
    expected = {"ridge degree=3: (intercept)": 1, "ridge degree=3: x": 4, "ridge degree=3: z": 4}
    expected |= {"linear_regression intercept=false: x": 2, "linear_regression intercept=false: z": 2}
    assert {name: row["parameters"] for name, row in table.items()} == expected
    data = bz.read(RIDGE, "cubic.csv")
    weak = replace(RIDGE.weak(data), degree=3, features=("x",))
    exact = bz.select([weak], data, keep_probability=0.25).iloc[0]
    assert table["ridge degree=3: x"]["log_evidence"] == pytest.approx(exact["log_evidence"], rel=1e-12)
    assert table["ridge degree=3: x"]["mdl"] == pytest.approx(exact["mdl"], rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--degrees", "0-9", "--subsets"), "give one of --degrees, --subsets"),
        (("--at-most", "2"), "--at-most goes with --subsets"),
        (("--degrees", "two"), "--degrees 'two' is not a list of degrees; write 0-9 or 1,2,5"),
        (("--degrees", "3-1"), "3-1 holds no number; write 1-3"),
        (("--degrees", "0-99"), "degree must be a whole number from 0 to 30, got 31"),
        (("--keep-probability", "2"), "keep_probability must be > 0 and at most 1, got 2.0"),
        (("--plot", "a.txt"), "figures are saved as PNG, SVG or PDF: 'a.txt' must end in .png, .svg, .pdf"),
    ],
)
def test_command_refuses_in_one_line(run, options, message):
    code, out, err = run("select", "cubic.csv", "-c", "ridge tau=1 sigma=1 s0=1 center=0 scale=1 m0=0", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert run("select", "-c", "a.nc", "--degrees", "1-2")[2] == "error: --degrees goes with -c MODEL\n"
