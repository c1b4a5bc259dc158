"""Lines of groups: densities by dense covariances, the MLE by figures of lme4 and statsmodels, NUTS by PyMC's own."""

import json
import math

import numpy as np
import pytest
import scipy
from bayeszoo.models.varying_lines import VaryingLines

import bayeszoo as bz
from bayeszoo.data.inputs import GroupRows
from bayeszoo.data.read import Data, read
from bayeszoo.families.lines import statistics
from bayeszoo.families.lines.statistics import Lines, lines_given, log_marginal
from bayeszoo.foundation import diagnostics
from tests.reading import model_of, plain, refusal, refuses
from tests.refusals import raises

NAMES = ("mean_intercept", "mean_slope", "sd_intercept", "sd_slope", "rho", "sigma")
POINTS = np.array([[1.0, -0.5, 2.0, 0.7, 0.4, 0.9], [0.0, 3.0, 0.1, 5.0, -0.95, 2.0], [-4.0, 0.2, 8.0, 0.01, 0.0, 0.3]])
OUTER = dict(zip(NAMES, POINTS.T, strict=True))
# groups of 5 rows, of 1, of none, of 2, and of 3 with one value of the feature
CODES = np.array([0, 4, 0, 3, 0, 4, 1, 0, 3, 4, 0])
U = np.array([-1.0, 2.0, 0.5, 7.0, 3.0, 2.0, 4.0, 1.0, -2.0, 2.0, 0.0])
Y = np.array([0.3, 5.0, 1.0, -2.0, 4.0, 5.5, 1.0, 2.2, 0.7, 4.1, 0.9])
LINES = Lines.of(U, Y, CODES, 5)

# lme4 1.1 and statsmodels 0.15.0 agree on these to the digits that lme4 prints; by maximum likelihood, and REML
SLEEP_ML = dict(
    zip(NAMES, (251.40510485, 10.46728596, 23.78056578, 5.7168345, 0.08132015665, 25.59181573), strict=True)
)
SLEEP_ML_HEIGHT = -875.9696722315988
SLEEP_REML = dict(zip(NAMES[2:], (24.74045142, 5.9221331, 0.06555132489, 25.59181562832992), strict=True))
SLEEP_REML_HEIGHT = -871.8141359792453


def covariance(a, b, rho):
    return np.array([[a * a, rho * a * b], [rho * a * b, b * b]])


def dense(point, u):
    """Return mean and covariance of the rows of a group, and the covariance of its line with them."""
    m_a, m_b, a, b, rho, sigma = point
    Z, S = np.column_stack([np.ones(len(u)), u]), covariance(a, b, rho)
    return Z @ [m_a, m_b], Z @ S @ Z.T + sigma**2 * np.eye(len(u)), S @ Z.T


def dense_log_marginal(point):
    parts = [(Y[j == CODES], dense(point, U[j == CODES])) for j in range(5) if (j == CODES).any()]
    return sum(scipy.stats.multivariate_normal(mean, cov).logpdf(y) for y, (mean, cov, _) in parts)


def conditioned(point, j):
    """Return mean and covariance of the line of a group given its rows, by solving with the covariance of the rows."""
    own = j == CODES
    mean, cov, cross = dense(point, U[own])
    gain = np.linalg.solve(cov, cross.T).T
    return point[:2] + gain @ (Y[own] - mean), covariance(*point[2:5]) - gain @ cross.T


def test_rows_of_any_group_have_the_density_of_their_dense_covariance():
    expected = [dense_log_marginal(point) for point in POINTS]
    np.testing.assert_allclose(log_marginal(OUTER, LINES), expected, rtol=1e-12)
    alone = log_marginal(dict(zip(NAMES, POINTS[1], strict=True)), LINES)
    np.testing.assert_allclose(alone, expected[1], rtol=1e-12)
    table = {name: values.reshape(1, 3) for name, values in OUTER.items()}
    assert np.shape(log_marginal(table, LINES)) == (1, 3)


def test_lines_have_the_moments_and_the_density_of_conditioned_gaussians():
    given, rng = lines_given(OUTER, LINES), np.random.default_rng(0)
    at = {name: rng.normal(size=(3, 5)) for name in ("intercept", "slope")}
    for i, point in enumerate(POINTS):
        moments = [conditioned(point, j) for j in range(5)]
        for k, name in enumerate(("intercept", "slope")):
            np.testing.assert_allclose(given[name].mean()[i], [mean[k] for mean, _ in moments], rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(given[name].std()[i], [cov[k, k] ** 0.5 for _, cov in moments], rtol=1e-7)
        values = zip(at["intercept"][i], at["slope"][i], moments, strict=True)
        expected = sum(scipy.stats.multivariate_normal(*moment).logpdf([a, b]) for a, b, moment in values)
        np.testing.assert_allclose(given.logpdf(at)[i], expected, rtol=1e-6)


def chi_squared(lines):
    """Return the KS p-value of the squared Mahalanobis distances of drawn lines, which are chi squared."""
    point = POINTS[0]
    outer = {name: np.full(4000, value) for name, value in zip(NAMES, point, strict=True)}
    drawn = lines_given(outer, lines).rvs((), np.random.default_rng(1))
    lowest = 1.0
    for j in range(5):
        mean, cov = conditioned(point, j)
        off = np.column_stack([drawn["intercept"][:, j], drawn["slope"][:, j]]) - mean
        squares = np.sum(off * np.linalg.solve(cov, off.T).T, axis=1)
        lowest = min(lowest, scipy.stats.kstest(squares, scipy.stats.chi2(2).cdf).pvalue)
    return lowest


def test_lines_are_drawn_from_that_gaussian():
    assert chi_squared(LINES) > 1e-4


def test_draws_of_uncorrelated_lines_are_seen(monkeypatch):
    monkeypatch.setattr(
        statistics._LineGivenOuter, "slope_at", lambda self, at: scipy.stats.norm(self.slope, self.bb**0.5)
    )
    assert chi_squared(LINES) < 1e-10


def test_a_spread_of_nothing_has_a_mean():
    still = dict(zip(NAMES, (1.0, 2.0, 0.0, 0.0, 0.3, 1.0), strict=True))
    given = lines_given(still, LINES)
    np.testing.assert_allclose([given["intercept"].mean(), given["slope"].mean()], [[1.0] * 5, [2.0] * 5], rtol=1e-15)
    flat = scipy.stats.norm(1 + 2 * U, 1).logpdf(Y).sum()
    np.testing.assert_allclose(log_marginal(still, LINES), flat, rtol=1e-13)


def test_statistics_of_groups_do_not_cancel_far_from_zero():
    far = Lines.of(U + 2.0**30, Y + 2.0**33, CODES, 5)  # which only loses bits of Y
    rounded = Lines.of(U, (Y + 2.0**33) - 2.0**33, CODES, 5)
    for name in ("n", "scatter", "slope", "residual_squares"):
        np.testing.assert_allclose(getattr(far, name), getattr(rounded, name), rtol=1e-6, atol=1e-9)


# The sleep study


@pytest.fixture(scope="module")
def sleep():
    return bz.example(VaryingLines)


@pytest.fixture(scope="module")
def mle(sleep):
    return bz.fit(VaryingLines, sleep, "mle", seed=1)


def test_the_mle_is_that_of_lme4_and_statsmodels(mle):
    assert mle.attrs["status"] == "ok"
    for name, expected in SLEEP_ML.items():
        np.testing.assert_allclose(mle["posterior"][name].item(), expected, rtol=1e-4)
    np.testing.assert_allclose(json.loads(mle.attrs["facts"])["log_likelihood"], SLEEP_ML_HEIGHT, rtol=1e-10)


def test_the_likelihood_without_the_mean_line_is_reml(sleep):
    """The log likelihood is quadratic in the mean line: integrated over it, flat, it is REML's."""
    model = VaryingLines()

    def height(x):
        return float(model.log_marginal({"mean_intercept": x[0], "mean_slope": x[1], **SLEEP_REML}, sleep))

    middle, steps = np.array([250.0, 10.0]), np.diag([10.0, 2.0])
    e = [np.zeros(2), *steps]
    hessian = np.array(
        [[height(middle + p + q) - height(middle + p - q) - height(middle - p + q) + height(middle - p - q)
          for p in steps] for q in steps]
    ) / 4  # fmt: skip
    slope = np.array([height(middle + p) - height(middle - p) for p in e[1:]]) / 2
    peak = height(middle) - slope @ np.linalg.solve(hessian, slope) / 2
    hessian = hessian / np.outer([10.0, 2.0], [10.0, 2.0])
    reml = peak + math.log(2 * math.pi) - np.linalg.slogdet(-hessian)[1] / 2
    np.testing.assert_allclose(reml, SLEEP_REML_HEIGHT, atol=1e-5)


def test_weak_fields_count_from_zero_where_the_feature_reaches_it(sleep):
    weak = VaryingLines.weak(sleep)
    assert (weak.center, weak.m_slope) == (0.0, 0.0)
    np.testing.assert_allclose([weak.m_intercept, weak.t_sigma], [np.mean(sleep["y"]), 2 * np.std(sleep["y"], ddof=1)])
    later = {**sleep, "x": sleep["x"] + 2000.0}
    assert VaryingLines.weak(later).center == 2004.5
    assert VaryingLines.weak(later).remarks(None, later) == ("intercepts are where x is 2004.5",)
    assert weak.remarks(None, sleep) == ()


def test_few_rows_and_groups_without_any_are_remarked_on():
    each = {"x": np.arange(4.0), "group": np.array(["a", "b"]), "group_code": np.array([0, 1, 0, 1])}
    few = "4 rows are not more than 4 intercepts and slopes: sigma is hardly told from their spread"
    assert VaryingLines().remarks(None, each) == (few,)
    more = {**each, "x": np.arange(5.0), "group_code": np.zeros(5, dtype=int)}
    assert VaryingLines().remarks(None, more) == ("groups without rows, estimated from the other groups: b",)
    assert VaryingLines().remarks(None, {**more, "group_code": np.array([0, 1, 1, 0, 1])}) == ()


def test_spreads_that_nothing_tells_apart_are_named():
    """With two rows a group, at 0 and 1, their covariance has three numbers, and the model four."""
    rng, group = np.random.default_rng(3), np.repeat(np.arange(20), 2)
    x = np.tile([0.0, 1.0], 20)
    y = rng.normal(size=20)[group] + x * rng.normal(size=20)[group] + rng.normal(0, 0.5, 40)
    with pytest.warns(bz.Caution, match="sd_intercept, sd_slope, rho, sigma"):
        bz.fit(VaryingLines, {"y": y, "x": x, "group": group.astype(str)}, "mle", seed=1)


def test_a_likelihood_without_bound_is_no_estimate():
    exact = {"y": [1.0, 3.0, 5.0, 2.0], "x": [0.0, 1.0, 2.0, 0.5], "group": ["a", "a", "a", "a"]}  # on a line
    tree = bz.fit(VaryingLines, exact, "mle", seed=1)
    assert tree.attrs["status"] == "failed"


def test_what_does_not_vary_has_no_correlation():
    x, group = np.tile(np.arange(10.0), 8), np.repeat(list("abcdefgh"), 10)
    with pytest.warns(bz.Caution, match="rho"):
        tree = bz.fit(VaryingLines, {"y": 5 + 2 * x + 0.1 * (x - 4) ** 2, "x": x, "group": group}, "mle", seed=1)
    assert tree.attrs["status"] == "caution"
    assert max(tree["posterior"][name].item() for name in ("sd_intercept", "sd_slope")) < 1e-4
    assert "not_identified: rho" in tree.attrs["gate"]


def test_a_correlation_at_its_end_is_said():
    """The lines cross in one point, so that the likelihood by dense covariances rises as rho goes to -1."""
    rng, group, x = np.random.default_rng(3), np.repeat(np.arange(8), 6), np.tile(np.arange(6.0), 8)
    y = rng.normal(size=8)[group] * (x - 2) + rng.normal(0, 0.1, 48)
    tree = bz.fit(VaryingLines, {"y": y, "x": x, "group": group.astype(str)}, "mle", seed=1)
    point = [tree["posterior"][name].item() for name in OUTER]
    assert point[4] == pytest.approx(-1, abs=1e-9)

    def height(rho):
        laws = [dense([*point[:4], rho, point[5]], x[group == j])[:2] for j in range(8)]
        return sum(scipy.stats.multivariate_normal(*law).logpdf(y[group == j]) for j, law in enumerate(laws))

    assert height(-0.9) < height(-0.99) < height(-0.9999)
    assert json.loads(tree.attrs["facts"])["at_edge"] == ["rho"]
    assert any(note.startswith("rho = -1 is a mode on the edge") for note in json.loads(tree.attrs["notes"]))


def test_new_rows_are_predicted_by_the_line_of_their_group(mle):
    new = bz.predict(mle, {"days": [20, 0], "subject": [330, 308]})
    lines = {name: mle["posterior"][name].sel(group=["330", "308"]).values[0, 0] for name in ("intercept", "slope")}
    np.testing.assert_allclose(new["mean"], lines["intercept"] + [20, 0] * lines["slope"])
    np.testing.assert_allclose(new["sd"], mle["posterior"]["sigma"].item())
    assert new["observed"].isna().all()
    with raises(bz.InputError, "no_data", "999"):
        bz.predict(mle, {"days": [1], "subject": [999]})


def test_the_command_line_reads_outcome_feature_and_group(tmp_path, run):
    path = tmp_path / "growth.csv"
    rows = [f"{name},{i},{7 * j + 2 * i + (i * j) % 3}" for j, name in enumerate("abc") for i in range(5)]
    path.write_text("rat,week,grams\n" + "\n".join(rows) + "\n")
    words = ("--target", "grams", "--features", "week", "--group", "rat")
    code, out, err = run("fit", "varying_lines", path, *words, "--method", "mle", "--seed", "1")
    assert code == 0, err
    assert "intercept[c]" in out
    code, _, err = run("fit", "varying_lines", path, "--target", "grams", "--method", "mle")
    assert code == 2
    problem = "growth.csv has columns 'rat', 'week', 'grams'; name the column of the group of each row with --group"
    assert err.splitlines()[-1] == f"error: {problem}"


# Tables

Rows = model_of(GroupRows())
TABLE = {"y": [1.5, 2.0, -1.0], "x": [0, 1, 5], "group": ["b", "a", "b"]}


def test_rows_are_read_with_the_codes_of_their_groups():
    data = read(Rows, TABLE)
    expected = {"y": [1.5, 2.0, -1.0], "x": [0.0, 1.0, 5.0], "group_code": [0, 1, 0], "group": ["b", "a"]}
    assert plain(data) == expected
    assert data.notes == ("3 rows, 2 groups",)
    assert (data.rows, dict(data.columns)) == (3, {"y": "y", "feature": "x", "group": "group"})
    other = {"who": ["b", "a", "b"], "dose": [0, 1, 5], "effect": [1.5, 2.0, -1.0]}
    assert plain(read(Rows, other, target="effect", group="who")) == expected  # the feature is what is left
    assert plain(read(Rows, other, features="dose", group="who")) == expected
    dropped = read(Rows, {**TABLE, "x": [0, None, 5]}, missing="drop")
    assert plain(dropped)["group"] == ["b"]
    assert dropped.numbers.tolist() == [1, 3]
    assert dropped.notes[-1].startswith("there is one group only")


def test_new_rows_have_the_codes_of_the_fit_and_perhaps_no_outcome():
    like = read(Rows, TABLE)
    new = read(Rows, {"x": [3.0], "group": ["a"]}, new=True, like=like)
    assert plain(new) == {"x": [3.0], "group_code": [1], "group": ["b", "a"]}
    assert not GroupRows().has_outcome(new)
    assert plain(read(Rows, {**TABLE, "y": [0, 0, 0]}, new=True, like=like))["group_code"] == [0, 1, 0]
    named = read(Rows, {"a": [1, 2], "b": [3, 4], "c": ["u", "v"]}, target="a", features=["b"], group="c")
    assert plain(read(Rows, {"a": [9], "b": [3], "c": ["v"]}, new=True, like=named))["y"] == [9.0]
    assert plain(read(Rows, Data(new), new=True, like=like)) == plain(new)


REFUSED = {
    "no group": (
        {"y": [1, 2], "x": [1, 2]},
        {},
        "the table has columns 'y', 'x'; name the column of the group of each row with --group",
    ),
    "a group that is not there": (
        TABLE,
        {"group": "who"},
        "the table has no column 'who'; its columns are 'y', 'x', 'group'",
    ),
    "no outcome": (
        {"a": [1, 2], "b": [1, 2], "group": ["a", "b"]},
        {},
        "the table has columns 'a', 'b', 'group'; name the column of the outcome with --target",
    ),
    "no feature": (
        {"y": [1, 2], "a": [1, 2], "b": [1, 2], "group": ["a", "b"]},
        {},
        "the table has columns 'y', 'a', 'b', 'group'; name the column of the feature with --features",
    ),
    "a constant feature": (
        {**TABLE, "x": [2, 2, 2]},
        {},
        "column 'x' is constant: no slope is known from it; "
        "name a column of different numbers with --features; groups without a feature go to normal_means",
    ),
    "words for a feature": ({**TABLE, "x": ["low", "3", "4"]}, {}, "column 'x', row 1: 'low' is not a number"),
    "words for an outcome": ({**TABLE, "y": ["1", "two", "3"]}, {}, "column 'y', row 2: 'two' is not a number"),
    "a feature that is the outcome": (
        TABLE,
        {"target": "x", "features": "x"},
        "column 'x' cannot hold both the outcome and the feature",
    ),
    "an outcome that is the group": (
        TABLE,
        {"target": "group"},
        "column 'group' cannot hold both the outcome and the names of the groups",
    ),
    "two features": (
        {**TABLE, "z": [1, 2, 3]},
        {"features": "x,z"},
        "rows of groups have one feature, not 'x', 'z'; name one of them",
    ),
    "a missing value": (
        {**TABLE, "x": [0, None, 5]},
        {},
        "column 'x': 1 missing value (row 2); use --missing drop",
    ),
    "a missing group": (
        {**TABLE, "group": ["b", "", "b"]},
        {},
        "column 'group': 1 missing value (row 2); use --missing drop",
    ),
    "no rows": ({"y": [], "x": [], "group": []}, {}, "no data rows"),
}
test_a_table_that_does_not_hold_lines_is_refused = refuses(Rows, REFUSED)


def test_canonical_arrays_are_checked():
    good = {"y": [1.0, 2.0], "x": [0.0, 1.0], "group_code": [1, 0], "group": ["a", "b"]}
    assert plain(read(Rows, good)) == good
    assert "outside the codes 0 to 1" in str(refusal(Rows, {**good, "group_code": [2, 0]}))
    assert str(refusal(Rows, {**good, "x": [0.0]})) == "group_code has 2 rows, x has 1"
    assert str(refusal(Rows, {**good, "group": ["a", "a"]})) == "group: label 'a' appears twice"


# Sampling


def agreement(draws, other):
    """Return the largest difference of means of two fits, over its Monte Carlo error."""
    gaps = []
    for name, values in draws.items():
        error = np.hypot(diagnostics.mcse(values), diagnostics.mcse(other[name]))
        gaps.append(np.max(np.abs(values.mean((0, 1)) - other[name].mean((0, 1))) / error))
    return max(gaps)


@pytest.mark.slow
def test_nuts_without_the_lines_agrees_with_pymc_on_all_of_them(sleep):
    import pymc as pm

    model = VaryingLines.weak(sleep)
    tree = bz.fit(model, sleep, "nuts", seed=1, draws=2000)
    assert tree.attrs["status"] == "ok"
    ours = {str(name): values.values for name, values in tree["posterior"].data_vars.items()}
    assert set(ours) == {*NAMES, "intercept", "slope"}
    with model.declare(sleep):
        full = pm.sample(2000, tune=2000, chains=4, cores=1, target_accept=0.95, random_seed=2, progressbar=False)
    theirs = {name: full["posterior"][name].values for name in ours}
    assert agreement(ours, theirs) < 4.5  # 42 means
    wrong = {name: values + 0.2 * values.std((0, 1)) for name, values in ours.items()}
    assert agreement(wrong, theirs) > 4.5
