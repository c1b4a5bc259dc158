"""Empty cells of features, drawn and pooled: against closed forms, Rubin's rules, statsmodels and scikit-learn.

Fits are exact, which takes hundredths of a second a completed table; one slow test samples, as chains are pooled too.
"""

import doctest
import json

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from statsmodels.imputation import mice
from statsmodels.regression.linear_model import OLS

import bayeszoo as bz
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation import diagnostics
from bayeszoo.inference.engine import imputation
from bayeszoo.inference.engine.imputation import impute
from bayeszoo.inference.methods import exact
from bayeszoo.model import incomplete
from bayeszoo.plots.families.effects import slopes
from bayeszoo.results.stored import Fit
from tests.refusals import raises

REGRESSION, RIDGE, LOGISTIC = (bz.find(name) for name in ("linear_regression", "ridge", "logistic_regression"))


def pairs(n, seen, seed=0):
    """Return outcomes and one feature, whose last cells are empty."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    x = 3 + 0.7 * y + 0.5 * rng.normal(size=n)
    return y, np.where(np.arange(n) < seen, x, np.nan)


def cells_known(y, x):
    """Return the exact law of each empty cell: of n complete pairs Student t with n - 1 degrees of freedom.

    Given complete outcomes, the cells follow from the regression of x on y in the complete pairs. Under the prior
    density det(Sigma)^(-3/2) its variance is inverse-gamma with shape (n - 1) / 2 (Anderson 1957; Geisser 1964).
    """
    seen = ~np.isnan(x)
    design = np.column_stack([np.ones(len(y)), y])
    slopes, squared_error, *_ = np.linalg.lstsq(design[seen], x[seen])
    leverage = np.einsum("ni,ij,nj->n", design, np.linalg.inv(design[seen].T @ design[seen]), design)[~seen]
    df = seen.sum() - 1
    return scipy.stats.t(df, design[~seen] @ slopes, np.sqrt(squared_error[0] / df * (1 + leverage)))


def distances(y, x, tables=1000):
    """Return how far drawn cells are from their law: mean and sd less 1 of scores in its units, and the KS distance."""
    law, cells = cells_known(y, x), impute(np.column_stack([y, x]), tables, np.random.default_rng(1)).cells
    scores = (cells - law.mean()) / law.std()
    apart = scipy.stats.kstest(scipy.stats.norm.ppf(law.cdf(cells)).ravel(), "norm").statistic
    return np.array([abs(scores.mean()), abs(scores.std() - 1), apart])


LIMITS = np.array([0.15, 0.1, 0.05])
"""Of a thousand tables: the mean of dependent cells has an error of some 0.03, their sd of 0.02 under heavy tails."""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_drawn_cells_have_their_closed_form(seed):
    assert (distances(*pairs(14, 8, seed)) < LIMITS).all()


def without_parameter_draws(monkeypatch):
    law = imputation.MultivariateNormal

    class AtTheMean(law):
        def rvs(self, size, rng):
            return {"mu": self.m, "Sigma": self.psi / (self.nu[:, None, None] + 1)}

    monkeypatch.setattr(imputation, "MultivariateNormal", AtTheMean)
    monkeypatch.setattr(imputation, "LONGEST", 1000)


def without_noise(monkeypatch):
    def at_the_mean(filled, empty, j, mu, precision, rng):
        own = precision[:, j, j, None]
        filled[:, empty, j] -= np.einsum("crd,cd->cr", filled[:, empty] - mu[:, None], precision[:, :, j]) / own

    monkeypatch.setattr(imputation, "_draw_column", at_the_mean)
    monkeypatch.setattr(imputation, "LONGEST", 1000)


@pytest.mark.parametrize("bug", [without_parameter_draws, without_noise])
def test_cells_drawn_too_narrowly_are_seen(monkeypatch, bug):
    bug(monkeypatch)
    assert distances(*pairs(14, 8))[1] > 2 * LIMITS[1]


def slopes_known(y, x, size, rng):
    """Return independent draws of the slope of y on x from the factored posterior of a joint Gaussian (Anderson 1957).

    Means and variance of y are learned from all rows, the regression of x on y from the complete pairs.
    """
    seen = ~np.isnan(x)
    n, design = len(y), np.column_stack([np.ones(seen.sum()), y[seen]])
    slopes, squared_error, *_ = np.linalg.lstsq(design, x[seen])
    variance = squared_error[0] / rng.chisquare(seen.sum() - 1, size)
    b = slopes[1] + rng.normal(size=size) * np.sqrt(variance * np.linalg.inv(design.T @ design)[1, 1])
    of_y = np.sum(np.square(y - y.mean())) / rng.chisquare(n - 2, size)
    return b * of_y / (variance + b**2 * of_y)


def of_slope(rows, **options):
    tree = bz.fit(REGRESSION, rows, "exact", seed=1, **options)
    return tree["posterior"]["w"].to_numpy()[..., 1]


@pytest.mark.slow  # fits two hundred tables
def test_pooled_slope_is_that_of_the_factored_posterior(monkeypatch):
    y, x = pairs(100, 60)
    known = slopes_known(y, x, 100_000, np.random.default_rng(0))
    slopes = of_slope(bz.read_incomplete(REGRESSION, {"y": y, "x": x}), tables=100)
    assert abs(slopes.mean() - known.mean()) < 0.15 * known.std()  # the prior of the regression is worth a row
    assert abs(slopes.std() / known.std() - 1) < 0.1
    without_outcome = incomplete.Incomplete.joint
    scrambled = np.random.default_rng(3).permutation(len(y))

    def joint(self):  # the seeded bug: cells that know nothing of the outcome
        rows = without_outcome(self)
        return np.column_stack([rows[scrambled, 0], rows[:, 1:]])

    monkeypatch.setattr(incomplete.Incomplete, "joint", joint)
    attenuated = of_slope(bz.read_incomplete(REGRESSION, {"y": y, "x": x}), tables=100)
    assert attenuated.mean() < known.mean() - 3 * known.std()


def holed(n=120, seed=5, shares=(0.3, 0.2)):
    """Return a table of two correlated features with empty cells, levels and an outcome."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.5 * a + rng.normal(size=n)
    table = {"y": 1 + 2 * a - b + rng.normal(size=n), "a": a, "b": b, "place": rng.choice(["north", "south"], n)}
    for name, share in zip("ab", shares, strict=True):
        table[name] = np.where(rng.random(n) < share, np.nan, table[name])
    return table


def completed(tree, table):
    """Return the completed tables of a fit, from the cells that it has kept."""
    cells = tree["completed"].to_dataset()
    for values in cells["value"].to_numpy():
        filled = {name: np.array(column) for name, column in table.items()}
        for row, column, value in zip(cells["row"].to_numpy(), cells["column"].to_numpy(), values, strict=True):
            filled[str(column)][row - 1] = value
        yield filled


@pytest.mark.slow  # fits a hundred tables, twice
def test_pooled_moments_are_by_rubins_rules():
    table = holed()
    rows = bz.read_incomplete(REGRESSION, table)
    model = REGRESSION.weak(rows.sample)
    tree = bz.fit(model, rows, "exact", seed=2, tables=100)
    exact_fits = [bz.fit(model, filled, "exact", seed=1, groups=()) for filled in completed(tree, table)]
    means, sds = (np.stack([fit["exact"]["w"].sel(statistic=name) for fit in exact_fits]) for name in ("mean", "sd"))
    within, between, M = np.mean(sds**2, axis=0), means.var(axis=0, ddof=1), len(means)
    total = within + (1 + 1 / M) * between
    summary = bz.summarize(tree)["w"]
    assert np.all(np.abs(summary["mean"] - means.mean(axis=0)) < 4 * np.sqrt(within / 4000))
    assert np.allclose(summary["sd"] ** 2, total, rtol=0.1)
    assert np.all(between / total > 0.05)  # the spread between tables is no small part of it
    assert np.all(summary["mcse_mean"] > 0.6 * np.sqrt(between / M))
    assert np.all(summary["mcse_mean"] < 1.7 * np.sqrt(between / M + within / 4000))


def test_means_of_drawn_cells_are_scikit_learns():
    rows = np.column_stack([holed(300)[name] for name in ("y", "a", "b")])
    peer = IterativeImputer(max_iter=50, tol=1e-6).fit_transform(rows)[np.isnan(rows)]
    drawn = impute(rows, 100, np.random.default_rng(0)).cells
    assert np.corrcoef(drawn.mean(axis=0), peer)[0, 1] > 0.99


@pytest.mark.slow  # chained equations of statsmodels take seconds
def test_pooled_slopes_are_those_of_statsmodels():
    columns = {name: column for name, column in holed(300).items() if name != "place"}
    tree = bz.fit(REGRESSION, bz.read_incomplete(REGRESSION, columns), "exact", seed=1, tables=100)
    np.random.seed(1)  # noqa: NPY002 (statsmodels has no other generator)
    peer = mice.MICE("y ~ a + b", mice.OLS, mice.MICEData(pd.DataFrame(columns), k_pmm=1)).fit(3, 20)
    slopes = tree["posterior"]["w"].to_numpy().reshape(-1, 3)[:, 1:]
    assert np.all(np.abs(slopes.mean(axis=0) - peer.params[1:]) < 0.6 * peer.bse[1:])  # which draws observed values
    assert np.allclose(slopes.std(axis=0), peer.bse[1:], rtol=0.3)


FEW = holed(shares=(0.1, 0.05))
"""Few empty cells, of which forty tables are enough."""


@pytest.fixture(scope="module")
def fitted():
    return bz.fit(REGRESSION, bz.read_incomplete(REGRESSION, FEW), "exact", seed=2, tables=40)


def test_what_was_drawn_is_said(fitted):
    notes = " ".join(json.loads(fitted.attrs["notes"]))
    counts = {name: int(np.isnan(FEW[name]).sum()) for name in ("a", "b")}
    assert f"a {counts['a']}, b {counts['b']}" in notes
    for word in ("jointly Gaussian", "missing at random", "40 completed tables", "rows without empty cells"):
        assert word in notes
    assert fitted.attrs["kind"] == "sampled"
    assert fitted["completed"]["value"].shape == (40, sum(counts.values()))


def test_numbers_of_rows_that_are_not_known_are_refused(fitted):
    for ask in (
        bz.residuals,
        bz.predictive_check,
        bz.bridge,
        bz.code,
        lambda tree: bz.extend(tree, ["log_likelihood"]),
    ):
        with raises(InputError, "needs_rows", 120):
            ask(fitted)
    figures = bz.facts(fitted)
    assert figures["log_evidence"] is None
    assert "completed table" in figures["withheld"]["log_evidence"]
    assert not {"exact", "log_likelihood", "posterior_predictive"} & fitted.children.keys()
    assert np.isnan(bz.compare([fitted])["loo_score"]).all()


def test_a_pooled_fit_is_saved_and_predicts(fitted, tmp_path):
    again = bz.load(bz.save(fitted, tmp_path / "fit.nc"))
    assert np.array_equal(again["posterior"]["w"], fitted["posterior"]["w"])
    new = {"a": [0.5, -1.0], "b": [0.0, 1.0], "place": ["north", "south"]}
    frames = [bz.predict(tree, new, seed=1) for tree in (fitted, again)]
    assert frames[0].equals(frames[1])
    draws = {name: values.to_numpy() for name, values in fitted["posterior"].data_vars.items()}
    centre = np.array(json.loads(fitted.attrs["fields"])["center"])
    design = np.column_stack([np.ones(2), np.array([[0.5, 0.0, 0.0], [-1.0, 1.0, 1.0]]) - centre])
    means = draws["w"] @ design.T
    assert np.allclose(frames[0]["mean"], means.mean((0, 1)))
    assert np.allclose(frames[0]["sd"] ** 2, means.var((0, 1)) + draws["sigma2"].mean(), rtol=1e-3)
    with raises(InputError, "missing_values"):
        bz.predict(again, {"a": [None, 1.0], "b": [1.0, 1.0], "place": ["north", "north"]})


def test_effects_of_a_pooled_fit_are_predictions_over_the_ranges_of_observed_cells(fitted):
    tree, holed = fitted, Fit(fitted).observed.holed
    frame = bz.feature_effects(tree)
    for name in ("a", "b"):  # with empty cells; g has levels
        j = holed["feature"].tolist().index(name)
        effect = frame[frame["feature"] == name]
        seen = holed["X"][:, j][~np.isnan(holed["X"][:, j])]
        assert (effect["value"].min(), effect["value"].max()) == (seen.min(), seen.max())
        rows = np.tile(np.nanmean(holed["X"], axis=0), (len(effect), 1))
        rows[:, j] = effect["value"]
        predicted = bz.predict(tree, {"X": rows, "feature": holed["feature"]})["mean"].to_numpy()
        np.testing.assert_allclose(effect["mean"], predicted, atol=4.5 * effect["mcse_mean"].max())
    assert len(bz.plot_effects(tree, ["a", "b"]).axes) == 2
    slope = slopes(Fit(tree)).loc["a", "mean"]  # for a standard deviation of the observed cells
    w = float(tree["posterior"]["w"].sel(term="a").mean())
    assert slope == pytest.approx(w * np.nanstd(FEW["a"]), rel=1e-9)


TOWNS = {"town": np.repeat(["a", "b", "c"], [60, 60, 30])}


def of_towns():
    """Return three groups with other slopes: cells are empty in the first two."""
    (ya, xa), (yb, xb), (yc, xc) = pairs(60, 45, 4), pairs(60, 40, 5), pairs(30, 30, 6)
    return {**TOWNS, "y": np.concatenate([ya, 3 - yb, yc]), "x": np.concatenate([xa, xb, xc])}


@pytest.mark.slow  # fits two hundred tables
def test_cells_of_groups_are_drawn_in_each_group_by_itself():
    table = of_towns()
    reading = {"target": "y", "missing": "impute"}
    tree = bz.fit_by(REGRESSION, table, by="town", method="exact", seed=1, reading=reading, tables=100, groups=())
    for group in "ab":
        y, x = (table[name][table["town"] == group] for name in ("y", "x"))
        known = slopes_known(y, x, 100_000, np.random.default_rng(0))
        slopes = tree["fits"][group]["posterior"]["w"].to_numpy()[..., 1]
        assert abs(slopes.mean() - known.mean()) < 0.2 * known.std()
        assert abs(slopes.std() / known.std() - 1) < 0.15
    whole = of_slope(bz.read_incomplete(REGRESSION, {"y": table["y"], "x": table["x"]}), tables=40)
    own = tree["fits"]["b"]["posterior"]["w"].to_numpy()[..., 1]
    assert abs(own.mean() - whole.mean()) > 3 * whole.std()  # as cells drawn from all rows would be
    assert [tree["fits"][group].attrs["kind"] for group in "abc"] == ["sampled", "sampled", "exact"]
    assert tree.attrs["kind"] == "sampled"
    frame = bz.contrasts(tree)
    assert (frame["p_greater_mcse"] > 0).all()


def test_groups_with_empty_cells_keep_their_rows_and_levels():
    table = {**of_towns(), "kind": np.tile(["old", "new", "old"], 50)}
    whole, parts = incomplete.read_incomplete_by(REGRESSION, table, "town", target="y")
    assert whole.rows == 150
    assert [type(part).__name__ for part in parts.values()] == ["Incomplete", "Incomplete", "Data"]
    for group, part in parts.items():
        rows = part if group == "c" else part.holed
        assert rows.numbers.tolist() == (1 + np.flatnonzero(TOWNS["town"] == group)).tolist()
        assert rows["feature"].tolist() == ["x", "kind[old]"]
        np.testing.assert_array_equal(rows["y"], table["y"][TOWNS["town"] == group])
    few = {**table, "x": np.where((np.arange(150) % 60 > 2) & (TOWNS["town"] == "a"), np.nan, table["x"])}
    reading = {"target": "y", "missing": "impute"}
    with pytest.warns(bz.Caution):
        tree = bz.fit_by(REGRESSION, few, by="town", method="exact", seed=1, reading=reading, tables=40)
    assert [*json.loads(tree.attrs["failures"])] == ["a"]


def test_the_command_draws_by_group_and_the_first_error_names_the_option(run, tmp_path):
    file = tmp_path / "towns.csv"
    pd.DataFrame(of_towns()).to_csv(file, index=False)
    command = ("fit", "linear_regression", file, "--target", "y", "--by", "town", "--method", "exact", "--seed", "1")
    code, _, err = run(*command)
    assert code == 2
    assert "or --missing impute" in err
    poisson = ("fit", "poisson_regression", file, "--target", "y", "--features", "x")
    assert "impute" not in run(*poisson)[2]  # for which there is no joint Gaussian
    code, out, err = run(*command, "--missing", "impute", "--tables", "40")
    assert code == 0
    assert "35 empty cells in 35 of 150 rows" in err
    assert "best of 3 groups" in out


@pytest.mark.slow  # draws the pictures of a page
def test_the_page_says_how_to_draw_again(fitted, tmp_path):
    page = bz.report([fitted], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "bz.read_incomplete(M" in page
    assert "tables=40" in page


def test_changed_rows_of_a_saved_fit_are_refused(fitted, tmp_path):
    tree = bz.load(bz.save(fitted, tmp_path / "fit.nc"))
    tree["constant_data"]["X"][0, 0] = 7.0
    with raises(InputError, "data_differ"):
        bz.predict(tree, {"a": [0.5], "b": [0.0], "place": ["north"]})


def test_a_fit_is_withheld_where_that_of_one_table_fails(monkeypatch):
    rows = bz.read_incomplete(REGRESSION, holed())
    judged, calls = exact.at_most, []

    def fails_once(name, value, limit):
        calls.append(name)
        return judged(name, 1.0 if len(calls) == 30 else value, limit)

    monkeypatch.setattr(exact, "at_most", fails_once)
    tree = bz.fit(REGRESSION, rows, "exact", seed=1, tables=40)
    assert tree.attrs["status"] == "failed"
    assert bz.summarize(tree)["w"]["mean"] is None
    with raises(Untrustworthy, "withheld", "--missing drop"):
        bz.predict(tree, {"a": [0.5], "b": [0.0], "place": ["north"]})


def shape_of(y, x):
    """Return the check whether drawn cells are of a Gaussian given the outcome."""
    (check,) = (
        c for c in impute(np.column_stack([y, x]), 40, np.random.default_rng(0)).checks if c.name == "not_gaussian"
    )
    return check


@pytest.mark.parametrize("seed", range(3))
def test_a_skewed_feature_that_is_empty_by_the_outcome_is_a_caution(seed):
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=400)
    y = x - 1 + rng.normal(size=400)
    x = np.where(rng.random(400) < 1 / (1 + np.exp(-1.2 * y)), np.nan, x)
    seen = ~np.isnan(x)
    check, error = shape_of(y, x), OLS(x[seen], np.column_stack([np.ones(seen.sum()), y[seen]])).fit().resid
    assert check.verdict == "caution"
    assert check.value >= abs(scipy.stats.skewtest(error).statistic) - 1e-9
    assert shape_of(*pairs(400, 220, seed)).verdict == "ok"


def test_a_feature_that_is_curved_in_the_outcome_is_a_caution():
    rng = np.random.default_rng(0)
    y = rng.normal(size=150)
    x = np.where(np.arange(150) < 120, y + 0.5 * y**2 + rng.normal(size=150), np.nan)
    seen, check = ~np.isnan(x), shape_of(y, x)
    peer = OLS(x[seen], np.column_stack([np.ones(120), y[seen], y[seen] ** 2])).fit()
    assert check.verdict == "caution"
    assert check.value == pytest.approx(abs(peer.tvalues[2]))


def test_too_few_tables_are_said_with_more_to_try():
    y, x = pairs(40, 12)
    tree = bz.fit(REGRESSION, bz.read_incomplete(REGRESSION, {"y": y, "x": x}), "exact", seed=1, tables=40)
    assert tree.attrs["status"] == "failed"
    with raises(Untrustworthy, "withheld", "--tables 160"):
        bz.predict(tree, {"x": [3.0]})


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("not_imputed", {"place": ["north", "", *["south"] * 118]}),
        ("not_imputed", {"flag": [0.0, None, *[1.0] * 118]}),
        ("not_imputed", {"grade": [1.0, None, *[2.0, 3.0] * 59]}),
        ("no_data", {"nothing": [None] * 120}),
        ("too_few_rows", {"rare": [1.5, 2.0, 0.25, *[None] * 117]}),
        (
            "collinear",
            {"twice": 2 * np.nan_to_num(holed()["a"], nan=0.5) - 1, "a": np.nan_to_num(holed()["a"], nan=0.5)},
        ),
    ],
)
def test_columns_that_are_not_drawn_are_refused(code, change):
    with raises(InputError, code):
        bz.fit(REGRESSION, bz.read_incomplete(REGRESSION, {**holed(), **change}), "exact", seed=1, tables=40)


def test_rows_without_an_outcome_are_left_out_with_their_number():
    table = holed()
    table["y"] = np.where(np.arange(120) == 6, np.nan, table["y"])
    rows = bz.read_incomplete(REGRESSION, table)
    assert rows.rows == 119
    assert any("row 7" in note for note in rows.notes)
    assert rows.holed.numbers[6] == 8


@pytest.mark.parametrize(
    ("code", "ask"),
    [
        ("no_capability", lambda: bz.read_incomplete(bz.find("robust_regression"), holed())),
        ("no_capability", lambda: bz.read_incomplete(bz.find("poisson_regression"), holed())),
        ("no_capability", lambda: bz.read_incomplete(bz.find("ppca"), holed())),
        ("conflicting_options", lambda: bz.read_incomplete(REGRESSION, holed(), interactions="a:b")),
        ("conflicting_options", lambda: bz.read_incomplete(REGRESSION, holed(), lags=1)),
        ("wrong_type", lambda: bz.read(REGRESSION, holed(), missing="impute")),
        ("needs_rows", lambda: bz.read(REGRESSION, bz.read_incomplete(REGRESSION, holed()))),
        ("not_linear", lambda: bz.fit(REGRESSION(degree=2), bz.read_incomplete(REGRESSION, holed()), "exact")),
        ("wrong_statistics", lambda: bz.fit(LOGISTIC, bz.read_incomplete(REGRESSION, holed()), "nuts")),
        ("method_unavailable", lambda: bz.fit(REGRESSION, bz.read_incomplete(REGRESSION, holed()), "map")),
        ("method_unavailable", lambda: bz.fit(REGRESSION, bz.read_incomplete(REGRESSION, holed()), "laplace")),
        ("out_of_range", lambda: bz.fit(REGRESSION, bz.read_incomplete(REGRESSION, holed()), "exact", tables=20)),
        ("unknown_option", lambda: bz.fit(REGRESSION, pairs(14, 14)[0], "exact", tables=100)),
        ("no_data", lambda: bz.read_incomplete(REGRESSION, {"y": [1.0, 2.0, 4.0], "x": [1.0, 3.0, 2.0]})),
    ],
)
def test_what_cannot_be_drawn_is_refused(code, ask):
    with raises(InputError, code):
        ask()


def test_the_command_line_draws_and_says_so(run, tmp_path):
    table = FEW
    lines = [",".join(table), *(",".join("" if cell == "nan" else cell for cell in row) for row in _cells(table))]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    command = ("fit", "linear_regression", path, "--missing", "impute")
    code, out, err = run(*command, "--tables", 40, "--seed", 1, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["method"] == "exact"
    assert document["facts"]["tables"] == 40
    assert document["log_evidence"] is None
    assert document["exact"] is None
    assert "jointly Gaussian" in err
    assert run(*command, "--chunk-rows", 50)[0] == 2


def _cells(table):
    return zip(*(map(str, column.tolist()) for column in table.values()), strict=True)


@pytest.mark.slow  # samples forty posteriors: chains of each table must be pooled like independent draws
def test_sampled_fits_are_pooled():
    rows = bz.read_incomplete(REGRESSION, FEW)
    by_nuts, by_exact = (
        bz.summarize(bz.fit(REGRESSION, rows, method, seed=3, tables=40))["w"] for method in ("nuts", "exact")
    )
    errors = np.hypot(by_nuts["mcse_mean"], by_exact["mcse_mean"])
    assert np.all(np.abs(by_nuts["mean"] - by_exact["mean"]) < 4 * errors)
    assert np.allclose(by_nuts["sd"], by_exact["sd"], rtol=0.15)


@pytest.mark.slow  # fits of 20 imputations with other seeds, whose spread the Monte Carlo error must name
def test_monte_carlo_errors_count_the_spread_between_tables():
    rows = bz.read_incomplete(REGRESSION, FEW)
    fits = (bz.fit(REGRESSION, rows, "exact", seed=seed, tables=40) for seed in range(20))
    draws = [tree["posterior"]["w"].to_numpy() for tree in fits]  # also where 40 tables are too few to be shown
    spread = np.std([values.mean((0, 1)) for values in draws], axis=0, ddof=1)
    assert np.allclose(np.mean([diagnostics.mcse(values) for values in draws], axis=0), spread, rtol=0.5)


@pytest.mark.slow  # a hundred tables of 50 rows
def test_intervals_cover_the_slopes_where_cells_are_empty_by_the_outcome():
    rng, truth, covered = np.random.default_rng(7), np.array([1.0, -0.5]), 0
    for seed in range(100):
        X = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 50)
        y = X @ truth + rng.normal(size=50)
        X[rng.random(50) < 1 / (1 + np.exp(-1.2 * (y - 0.5))), 0] = np.nan
        tree = bz.fit(REGRESSION, bz.read_incomplete(REGRESSION, {"y": y, "X": X}), "exact", seed=seed, tables=40)
        low, high = np.quantile(tree["posterior"]["w"].to_numpy()[..., 1:], [0.05, 0.95], axis=(0, 1))
        covered += np.sum((low < truth) & (truth < high))
    assert 168 <= covered <= 192  # of 200; 90% is 180, with a standard error of 4 to 6


def test_examples_of_the_docstrings():
    assert doctest.testmod(incomplete).failed == 0
