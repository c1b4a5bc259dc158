"""A model fitted group by group, and the groups compared."""

import json

import numpy as np
import pytest
import xarray as xr
from scipy import integrate, stats

import bayeszoo as bz
from bayeszoo.cli.verbs import by as verbs
from bayeszoo.comparison import by as grouped
from bayeszoo.comparison.contrast_columns import by_draws, of_points
from bayeszoo.data.by import read_by
from bayeszoo.report.notebook import html
from bayeszoo.results.stored import fits_of
from tests.refusals import raises

COIN, RATE, MEAN = (bz.find(name) for name in ("beta_bernoulli", "gamma_poisson", "gaussian_mean"))
AB = {"variant": ["B", "A", "A", "B", "A", "B"], "bought": ["yes", "no", "no", "no", "no", "yes"]}
COUNTS = {"line": ["x", "y", "x", "y"], "count": [3, 9, 1, 7]}


@pytest.fixture(scope="module")
def coins():
    return bz.fit_by(COIN(1, 1), AB, by="variant", method="exact", seed=1, reading={"positive": "yes"})


def test_groups_have_the_codes_the_rows_and_the_prior_of_the_whole():
    whole, parts = read_by(COIN, AB, "variant", positive="yes")
    assert whole["y"].tolist() == [1, 0, 0, 0, 0, 1]
    assert {label: part["y"].tolist() for label, part in parts.items()} == {"B": [1, 0, 1], "A": [0, 0, 0]}
    assert {label: part.numbers.tolist() for label, part in parts.items()} == {"B": [1, 4, 6], "A": [2, 3, 5]}


def test_rows_dropped_and_labels_of_other_groups_are_those_of_the_whole(written):
    path = written("year,party\n1,left\n1,\n2,right\n2,centre\n")
    _, parts = read_by(bz.find("dirichlet_multinomial"), path, "year", column="party", missing="drop")
    assert {label: part["category"].tolist() for label, part in parts.items()} == {
        "1": ["centre", "left", "right"],
        "2": ["centre", "left", "right"],
    }
    assert parts["1"].numbers.tolist() == [1]


def test_each_group_is_the_fit_of_its_rows():
    rng = np.random.default_rng(0)
    table = {"town": np.repeat(["a", "b"], 10), "x": rng.normal(size=20), "y": rng.normal(size=20)}
    model = bz.find("linear_regression")()
    tree = bz.fit_by(model, table, by="town", method="exact", seed=1, reading={"target": "y"})
    for label in ("a", "b"):
        own = {name: table[name][table["town"] == label] for name in ("x", "y")}
        alone = bz.fit(model, bz.read(model, own, target="y"), "exact", seed=1)
        np.testing.assert_array_equal(tree["fits"][label]["exact"]["w"], alone["exact"]["w"])
        np.testing.assert_array_equal(tree["posterior"]["w"].sel(town=label), alone["posterior"]["w"])


def test_fits_of_groups_are_independent(coins):
    draws = coins["posterior"]["theta"].stack(sample=("chain", "draw"))
    assert draws.dims == ("variant", "sample")
    assert abs(np.corrcoef(draws)[0, 1]) < 5 / np.sqrt(draws.sizes["sample"])


def test_fits_of_equal_rows_are_independent(monkeypatch):
    monkeypatch.setattr(grouped, "MOST_ENTRIES", 0)
    table = {"g": ["a", "a", "b", "b", "c", "c"], "y": [0, 1, 0, 1, 0, 1]}
    frame = bz.contrasts(bz.fit_by(COIN(1, 1), table, by="g", method="exact", seed=1, groups=()))
    assert frame["p_greater"].between(0.45, 0.55).all()
    assert (frame["difference_q975"] > 0.4).all()


def test_groups_with_other_numbers_of_draws_share_those_that_all_have():
    """One of them may have been drawn again, and longer."""
    data = {"a": bz.read(COIN, {"y": [0, 1, 1]}), "b": bz.read(COIN, {"y": [0, 0, 1]})}
    trees = {g: bz.fit(COIN(1, 1), data[g], "exact", seed=1, groups=(), draws=n) for g, n in (("a", 30), ("b", 50))}
    theta = grouped.in_one_tree(trees, "g", 1)["posterior"]["theta"]
    assert dict(theta.sizes) == {"chain": 4, "draw": 30, "g": 2}
    for label, tree in trees.items():
        np.testing.assert_array_equal(theta.sel(g=label), tree["posterior"]["theta"][:, :30])


def test_point_estimates_have_no_probabilities_and_no_intervals():
    row = bz.contrasts(bz.fit_by(RATE(a=2, b=1), COUNTS, by="line", method="map", seed=1, groups=())).iloc[0]
    assert (row["difference"], row["ratio"]) == pytest.approx((17 / 3 - 5 / 3, 17 / 5))  # Gamma(18, 3) and Gamma(6, 3)
    assert row.drop(["quantity", "group", "against", "difference", "ratio"]).isna().all()


@pytest.mark.parametrize("method", ["map", "mle", "mean"])
def test_the_command_prints_point_estimates_of_groups(method, run, written):
    """It ended in a KeyError, as a point has no sd."""
    file = written("line,y\na,1\na,2\nb,5\nb,8\n", "counts.csv")
    options = ("--by", "line", "--method", method, "--set", "a=2", "--set", "b=1")
    code, out, err = run("fit", "gamma_poisson", file, *options)
    assert (code, "estimate" in out) == (0, True), err
    means = {"map": ((3 + 1) / 3, (13 + 1) / 3), "mle": (1.5, 6.5), "mean": (5 / 3, 15 / 3)}[method]
    shown = [float(line.split()[-1]) for line in out.splitlines() if line.split()[:1] == ["rate"]]
    assert shown[:2] == pytest.approx(means, rel=1e-3)  # then their contrast


def test_means_that_are_infinite_have_no_difference():
    table = {"g": ["a", "b"], "x": [1.0, 1.0], "y": [2.0, 2.0]}  # a row each: the mean of sigma2 is infinite
    model = bz.find("linear_regression")(a0=0.5)
    tree = bz.fit_by(model, table, by="g", method="exact", seed=1, reading={"target": "y"}, groups=())
    row = bz.contrasts(tree).set_index("quantity").loc["sigma2"]
    assert np.isnan(row["difference"])
    assert (row["p_greater"], row["ratio"]) == pytest.approx((0.5, 1.0), abs=1e-6)


def test_two_proportions_are_compared_as_by_quadrature(coins):
    row = bz.contrasts(coins, against="A").iloc[0]
    low, high = stats.beta(1, 4), stats.beta(3, 2)
    expected = integrate.quad(lambda x: high.pdf(x) * low.cdf(x), 0, 1)[0]
    assert row["p_greater"] == pytest.approx(expected, abs=1e-9)
    assert row["difference"] == pytest.approx(high.mean() - low.mean(), rel=1e-12)
    below = integrate.quad(lambda x: low.pdf(x) * high.cdf(x + row["difference_q025"]), 0, 1)[0]
    assert below == pytest.approx(0.025, abs=1e-8)
    reverse = bz.contrasts(coins, against="B").iloc[0]
    assert reverse["p_greater"] == pytest.approx(1 - expected, abs=1e-9)


def test_expected_losses_and_differences_that_matter_are_as_by_quadrature(coins):
    """The loss of a choice between two proportions has a closed form too (Evan Miller, formulas for A/B testing)."""
    row = bz.contrasts(coins, against="A", rope=0.1).iloc[0]
    low, high = stats.beta(1, 4), stats.beta(3, 2)
    lead, lag = (integrate.quad(lambda t, x=x, y=y: x.cdf(t) * y.sf(t), 0, 1)[0] for x, y in ((low, high), (high, low)))
    assert row["loss_against"] == pytest.approx(lead, rel=1e-9)
    assert row["loss_group"] == pytest.approx(lag, rel=1e-9)
    assert row["loss_against"] - row["loss_group"] == pytest.approx(row["difference"], rel=1e-9)
    for name, expected in (
        ("p_above", integrate.quad(lambda x: low.pdf(x) * high.sf(x + 0.1), 0, 1, points=[0.9])[0]),
        ("p_below", integrate.quad(lambda x: low.pdf(x) * high.cdf(x - 0.1), 0, 1, points=[0.1])[0]),
    ):
        assert row[name] == pytest.approx(expected, abs=1e-8)
    assert "p_above" not in bz.contrasts(coins)
    with raises(bz.InputError, "out_of_range"):
        bz.contrasts(coins, rope=-0.1)


def test_the_expected_loss_of_normal_means_is_the_unit_loss_integral():
    tree = bz.fit_by(
        MEAN(m0=0, s0=2, sigma=1), {"lab": ["a", "a", "b"], "y": [1.0, 2.0, 5.0]}, by="lab", method="exact", seed=1
    )
    row = bz.contrasts(tree).iloc[0]
    mean, sd = 5 / 1.25 - 3 / 2.25, np.sqrt(1 / 2.25 + 1 / 1.25)
    assert row["loss_group"] == pytest.approx(
        sd * stats.norm.pdf(mean / sd) - mean * stats.norm.sf(mean / sd), rel=1e-8
    )


def test_a_ratio_of_rates_is_that_of_f_and_a_difference_of_means_normal():
    tree = bz.fit_by(RATE(a=2, b=1), COUNTS, by="line", method="exact", seed=1)
    row = bz.contrasts(tree).iloc[0]
    ratio = stats.f(2 * 18, 2 * 6)  # of Gamma(18, 3) and Gamma(6, 3), each over its mean
    assert row["p_greater"] == pytest.approx(ratio.sf(6 / 18), abs=1e-9)
    quantiles = [row[name] for name in ("ratio_q025", "ratio", "ratio_q975")]
    np.testing.assert_allclose(quantiles, ratio.ppf([0.025, 0.5, 0.975]) * 18 / 6, rtol=1e-6)
    table = {"lab": ["a", "a", "b"], "y": [1.0, 2.0, 5.0]}
    tree = bz.fit_by(MEAN(m0=0, s0=2, sigma=1), table, by="lab", method="exact", seed=1)
    row = bz.contrasts(tree).iloc[0]
    exact = stats.norm(5 / 1.25 - 3 / 2.25, np.sqrt(1 / 2.25 + 1 / 1.25))
    np.testing.assert_allclose(
        row[["difference_q025", "difference_q975"]].astype(float), exact.ppf([0.025, 0.975]), 1e-6
    )
    assert row["p_greater"] == pytest.approx(exact.sf(0), abs=1e-9)
    assert np.isnan(row["ratio"])


def test_draws_tell_the_same_within_their_errors(coins, monkeypatch):
    exact = bz.contrasts(coins).iloc[0]
    monkeypatch.setattr(grouped, "MOST_ENTRIES", 0)
    row = bz.contrasts(coins).iloc[0]
    for name in ("p_greater", "difference", "loss_group", "loss_against"):
        assert abs(row[name] - exact[name]) < 4.5 * (row[f"{name}_mcse"] or np.inf)
    assert 0 < row["p_greater_mcse"] < 0.02
    assert abs(row["p_greater"] - (1 - exact["p_greater"])) > 10 * row["p_greater_mcse"]  # groups not swapped


@pytest.mark.usefixtures("unmeasured")
def test_what_is_withheld_and_components_have_no_contrast():
    rng = np.random.default_rng(1)
    table = {"site": np.repeat(["a", "b"], 40), "y": np.concatenate([rng.normal(at, 1, 20) for at in (0, 9, 0, 9)])}
    model = bz.find("gaussian_mixture")(K=2)
    tree = bz.fit_by(model, table, by="site", method="vb", seed=1, groups=())
    frame = bz.contrasts(tree)
    assert not frame.size
    assert any("components of different groups" in line for line in frame.attrs["withheld"])
    tree["fits"]["a"].attrs["status"] = "failed"
    assert any(line.startswith("a: ") for line in bz.contrasts(tree).attrs["withheld"])


def test_many_groups_are_compared_with_the_first():
    table = {"g": np.repeat(list("abcdef"), 2), "y": np.tile([0, 1], 6)}
    frame = bz.contrasts(bz.fit_by(COIN(1, 1), table, by="g", method="exact", seed=1))
    assert frame[["group", "against"]].to_numpy().tolist() == [[g, "a"] for g in "bcdef"]


@pytest.mark.parametrize(
    ("table", "by", "message"),
    [
        (AB, "sex", ("missing_column", "'sex'")),
        ({**AB, "variant": ["A", "A", "A", "A", "A", "A"]}, "variant", ("one_group",)),
        ({"variant": ["A", "A", "B"]}, "variant", ("missing_column", "'variant'")),
        ({**AB, "variant": ["A", "B", "", "NA", "A", "B"]}, "variant", ("missing_values", "2", "missing", "3", "4")),
        ({**AB, "bought": ["yes", "", "", "no", "", "yes"]}, "variant", ("no_data", "'bought'")),
        ({"theta": AB["variant"], "bought": AB["bought"]}, "theta", ("duplicate_name", "'theta'")),
    ],
)
def test_groups_that_cannot_be_told_apart_are_refused(table, by, message):
    with raises(bz.InputError, *message):
        bz.fit_by(COIN(1, 1), table, by=by, method="exact", reading={"positive": "yes", "missing": "drop"})


def test_names_that_differ_in_case_only_are_said(coins):
    whole, _ = read_by(COIN, {**AB, "variant": ["A", "a ", "B", "A", "B", "a"]}, "variant", positive="yes")
    assert "column 'variant': 'A', 'a' are taken for different groups" in whole.notes
    with raises(bz.InputError, "unknown_name", "'C'"):
        bz.contrasts(coins, against="C")
    with raises(bz.InputError, "no_groups", "compare"):
        bz.contrasts(coins["fits"]["A"])


def test_the_command_line_fits_groups_and_saves_one_file(run, written, tmp_path, monkeypatch):
    table, saved = written("variant,bought\nA,no\nA,no\nB/2,yes\nB/2,no\n", "ab.csv"), tmp_path / "fit.nc"
    options = ("--by", "variant", "--positive", "yes", "--method", "exact", "--seed", "1")
    arguments = ("fit", "beta_bernoulli", table, *options)
    code, out, err = run(*arguments, "-o", saved)
    assert code == 0
    assert "beta_bernoulli(a=1, b=1), exact, each variant separately, seed 1" in out
    assert "B/2 - A" in out
    assert err.count("wrote") == 1
    assert bz.load(saved)["fits"]["B_2"]["observed_data"]["y"].to_numpy().tolist() == [1, 0]
    assert run("contrasts", saved)[1].startswith(out.rstrip())  # and then the losses of the choices
    code, out, _ = run("contrasts", saved, "--against", "B/2", "--json")
    document = json.loads(out)
    assert document["contrasts"][0]["p_greater"] == pytest.approx(0.2, abs=1e-9)  # Beta(1, 3) over Beta(2, 2)
    assert document["groups"]["A"]["status"] == "ok"
    monkeypatch.setattr(verbs, "MOST_SAVED", 1)
    assert "error: 2 groups are too many for one file" in run(*arguments, "-o", tmp_path / "other.nc")[2]
    code, _, err = run(*arguments, "--chunk-rows", "1")
    assert (code, err) == (2, "error: --by reads the table at once; leave out --chunk-rows\n")


def test_a_file_holds_the_groups_whatever_they_are_called(tmp_path):
    names = ["b/c", "b_c", "..", "é x"]
    tree = bz.fit_by(COIN(1, 1), {"g": names * 2, "y": [0, 1] * 4}, by="g", method="exact", seed=1, groups=())
    tree["fits"] = xr.DataTree(children=dict([*tree["fits"].children.items()][::-1]))  # another tool has moved them
    loaded = bz.load(bz.save(tree, tmp_path / "fit.nc"))
    assert list(fits_of(loaded)) == names
    assert [fit.tree["observed_data"].sizes["row"] for fit in fits_of(loaded).values()] == [2] * 4
    assert loaded.identical(tree)
    with raises(bz.InputError, "one_group_only", "'g'"):
        bz.residuals(loaded)
    rows = fits_of(tree)[".."].tree["observed_data"]
    rows["y"] = 1 - rows["y"]
    with raises(bz.InputError, "data_differ"):
        bz.load(bz.save(tree, tmp_path / "changed.nc"))


def test_a_row_is_predicted_by_the_fit_of_its_group(coins):
    frame = bz.predict(coins, {"variant": ["A", "B", "A"], "bought": ["no", "yes", "yes"]})
    assert frame["variant"].tolist() == ["A", "B", "A"]
    assert frame.index.tolist() == [1, 2, 3]
    np.testing.assert_allclose(frame["mean"], [0.2, 0.6, 0.2])
    np.testing.assert_allclose(np.exp(frame["log_score"]), [0.8, 0.6, 0.2])
    assert bz.predict(coins)["mean"].tolist() == pytest.approx([0.6, 0.2])
    with raises(bz.InputError, "unknown_group", "2", "'C'", "'B'"):
        bz.predict(coins, {"variant": ["A", "C"]})
    rates = bz.fit_by(RATE(a=2, b=1), COUNTS, by="line", method="exact", seed=1, groups=())
    with raises(bz.InputError, "out_of_range", "'count'", "3"):  # of the table, not of the group
        bz.predict(rates, {"line": ["x", "y", "y"], "count": [1, 1, -1]})


def test_the_picture_has_the_numbers_of_the_contrasts(coins):
    row = bz.contrasts(coins, against="A").iloc[0]
    left, right = bz.plot_groups(coins, against="A").axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["B", "A"]
    assert [label.get_text() for label in right.get_yticklabels()] == [f"B - A   P {row['p_greater']:.3f}"]
    np.testing.assert_allclose(left.lines[0].get_xdata(), [0.6, 0.2])
    np.testing.assert_allclose(left.collections[0].get_segments()[1][:, 0], stats.beta(1, 4).ppf([0.025, 0.975]))
    bounds = row[["difference_q025", "difference_q975"]].astype(float)
    np.testing.assert_allclose(right.collections[0].get_segments()[0][:, 0], bounds)
    with raises(bz.InputError, "unknown_name", "'phi'", "theta"):
        bz.plot_groups(coins, ["phi"])


def test_a_notebook_and_a_page_show_fits_by_group(coins, tmp_path):
    shown = html(coins)
    page = bz.report(coins, tmp_path / "coins.html").read_text()
    for text in (shown, page):
        assert "A - B" in text
        assert "0.07143" in text  # 1/14: Beta(1, 4) is greater than Beta(3, 2)
    assert '<img alt="estimates by variant" src="data:image/svg' in shown
    assert "beta_bernoulli by variant" in page
    assert page.count("the model fits in what was checked") + page.count("never occur") >= 1
    assert 'alt="estimates by variant and differences"' in page
    assert '"p_greater"' in page


@pytest.mark.slow
def test_sampled_groups_have_errors(run, written, tmp_path):
    table, saved, page = written("g,y\na,1\na,0\nb,1\nb,1\n"), tmp_path / "fit.nc", tmp_path / "page.html"
    code, out, _ = run("fit", "beta_bernoulli", table, "--by", "g", "--column", "y", "--seed", "1", "-o", saved)
    assert code == 0
    assert "mcse_mean" in out
    contrast = next(line.split() for line in out.splitlines() if "b - a" in line)
    assert contrast[4] == "±"
    assert float(contrast[3]) == pytest.approx(0.8, abs=0.03)  # Beta(3, 1) over Beta(2, 2)
    assert run("report", saved, "-o", page)[0] == 0
    assert " ± " in page.read_text()


LABS = "lab,y\na,1.5\nb,3\na,2.5\nb,4\na,2\nc,9\n"


def test_a_command_takes_each_group_of_a_table_under_one_prior(run, written, tmp_path):
    data, table = written(LABS, "labs.csv"), tmp_path / "compared.csv"
    of_table = (data, "--by", "lab", "--column", "y")
    code, out, _ = run("compare", "normal_gamma", *of_table, "--methods", "exact,mle", "--seed", "1", "--json")
    compared = json.loads(out)["groups"]
    assert code == 4  # one row has no mle
    model = bz.find("normal_gamma")
    model = model.weak(bz.read(model, data, column="y"))
    fits = fits_of(bz.fit_by(model, data, by="lab", method="exact", reading={"column": "y"}, groups=()))
    assert [*compared] == [*fits] == ["a", "b", "c"]
    for label, fit in fits.items():
        own = compared[label]["fits"][0]
        assert own["fields"] == fit.fields
        assert own["log_evidence"] == fit.facts["log_evidence"]
    code, out, _ = run("select", *of_table, "-c", "normal_gamma", "-c", "normal_gamma kappa0=1", "-o", table)
    lines = table.read_text().splitlines()
    assert (code, [line.partition(",")[0] for line in lines]) == (0, ["lab", "a", "a", "b", "b", "c", "c"])
    assert [line for line in out.splitlines() if line.startswith("lab ")] == ["lab a", "lab b", "lab c"]
    code, _, err = run("compare", "normal_gamma", *of_table, "--methods", "exact", "--plot", tmp_path / "p.png")
    assert code == 2
    assert "--plot" in err.splitlines()[-1]
    assert "--by" in err.splitlines()[-1]
    assert "Unknown option" in run("check", "normal_gamma", "--by", "lab")[2]


@pytest.mark.slow
def test_a_command_takes_each_fit_of_a_file_by_groups(run, written, tmp_path):
    data, file, rows = written(LABS, "labs.csv"), tmp_path / "labs.nc", tmp_path / "rows.csv"
    run("fit", "normal_gamma", data, "--by", "lab", "--column", "y", "--method", "exact", "--seed", "1", "-o", file)
    assert run("residuals", file, "-o", rows)[0] == 0
    cells = [line.split(",")[:3] for line in rows.read_text().splitlines()]
    assert [cell[:2] for cell in cells[1:]] == [["1", "a"], ["3", "a"], ["5", "a"], ["2", "b"], ["4", "b"], ["6", "c"]]
    assert "(2 rows)" in run("residuals", f"{file}:b")[1]
    assert run("residuals", f"{file}:B")[2].endswith("labs.nc has no group 'B'; it has 'a', 'b', 'c'\n")
    code, _, err = run("decode", file)
    assert code == 2
    assert err.count("\n") == 1
    assert "normal_gamma" in err
    run("predict", file, data, "-o", rows, "--append", "--overwrite")
    assert [line.partition(",")[0] for line in rows.read_text().splitlines()] == ["lab", *"abab", *"ac"]


def test_a_column_of_groups_that_is_not_used_is_said():
    unused = "column 'variant' ('A', 'B') is not used: all rows are taken together"
    note = f"{unused}; `fit --by variant` fits each group separately"
    assert note in bz.read(COIN, AB, column="bought", positive="yes").notes
    assert note not in read_by(COIN, AB, "variant", positive="yes")[0].notes
    spaced = {"bought": AB["bought"], "the variant": AB["variant"]}
    notes = bz.read(COIN, spaced, column="bought", positive="yes").notes
    assert any("`fit --by 'the variant'` fits each group" in line for line in notes)  # as a shell needs it
    numbers = {**AB, "variant": ["1", "2", "2", "1", "2", "1"]}
    assert not any("--by" in line for line in bz.read(COIN, numbers, column="bought", positive="yes").notes)


def test_draws_have_a_ratio_where_all_of_both_are_positive():
    rng = np.random.default_rng(0)
    positive, real = rng.gamma(3, size=(4, 100)), rng.normal(size=(4, 100))
    first = np.stack([positive, real, positive, real], axis=-1)
    second = np.stack([positive[::-1], positive, real, real[::-1]], axis=-1)
    ratio = by_draws(first, second)["ratio"]
    assert ratio[0] == pytest.approx(np.median(positive[::-1] / positive))
    assert np.isnan(ratio).tolist() == [False, True, True, True]


def test_ratios_of_groups_do_not_depend_on_which_draws_are_negative():
    """Effects may be negative, whichever pairs happen to have positive draws; rates may not."""
    effects = {"y": [40.0, 41.0, 0.5], "se": [2.0, 2.0, 2.0], "group": ["a", "b", "c"]}
    model = bz.find("normal_means")
    data = bz.read(model, effects)
    tree = bz.fit(model(m0=20.0, s0=20.0, t0=20.0), data, "exact", seed=1)
    assert (tree["posterior"]["theta"].to_numpy()[..., :2] > 0).all()  # as those of the first two groups are
    assert bz.contrasts(tree)["ratio"].isna().all()
    coins = bz.fit(bz.find("beta_binomial"), None, "exact", seed=1)
    assert bz.contrasts(coins)["ratio"].notna().all()


def test_a_table_with_a_column_of_groups_is_told_of_the_option_that_fits_them(run, written):
    file = written("variant,bought\nA,1\nA,0\nB,1\nB,1\n", "pages.csv")
    code, _, err = run("fit", "beta_bernoulli", file)
    assert code == 2
    assert "--column bought --by variant" in err
    file = written("variant,year,bought\nA,1901,1\nA,1902,0\nB,1901,1\nB,1902,1\n", "years.csv")
    assert "--column COLUMN --by variant" in run("fit", "beta_bernoulli", file)[2]  # the outcome may be either


@pytest.mark.slow  # it saves a fit by groups with all that ArviZ can use
def test_the_command_prints_the_expected_loss_of_each_choice(run, written, tmp_path):
    file, fit = written("variant,bought\nA,1\nA,0\nB,1\nB,1\n", "pages.csv"), str(tmp_path / "pages.nc")
    options = ("--column", "bought", "--by", "variant", "--method", "exact", "--set", "a=1", "--set", "b=1")
    assert run("fit", "beta_bernoulli", file, *options, "-o", fit)[0] == 0
    code, out, _ = run("contrasts", fit, "--rope", "0.1")
    row = bz.contrasts(bz.load(fit), rope=0.1).iloc[0]
    assert code == 0
    for name in ("loss_group", "loss_against", "p_above", "p_below"):
        assert f"{row[name]:.4g}" in out
    _, lowest, _ = run("contrasts", fit, "--lowest")
    losses = [f"{row[name]:.4g}" for name in ("loss_group", "loss_against")]
    shown = [next(line.split() for line in text.splitlines() if losses[0] in line.split()) for text in (out, lowest)]
    assert shown[0][3:6] == ["B", *losses]
    assert shown[1][3:6] == ["A", *reversed(losses)]


def test_groups_of_a_series_have_times_and_sequences_of_their_own():
    """Times rise in each group. The second group had those of the first rows of the table: 13 and 14 for 17 and 18."""
    model = bz.find("local_level")(m0=0, s0=5, t_q=1, t_r=1)
    days, names = [*range(1, 7), *range(5, 17)], ["u"] * 6 + ["v"] * 6 + ["w"] * 6
    y = np.random.default_rng(0).normal(size=18).cumsum()
    table = {"day": days, "y": y, "who": ["a"] * 6 + ["b"] * 12, "part": names}
    fits = bz.fit_by(model, table, by="who", method="map", seed=1, reading={"column": "y", "time": "day"})["fits"]
    assert [bz.forecast(fits[name], 2)["day"].tolist() for name in "ab"] == [["7", "8"], ["17", "18"]]
    assert bz.decode(fits["b"])["day"].tolist() == [str(day) for day in range(5, 17)]
    parts = bz.fit_by(model, table, by="who", method="map", seed=1, reading={"column": "y", "sequence": "part"})["fits"]
    assert bz.forecast(parts["b"], 1)["sequence"].tolist() == ["v", "w"]


def test_an_option_of_reading_is_sent_to_reading():
    with raises(bz.InputError, "option_needs_data", 'give it as reading={"column": ...}'):
        bz.fit_by(bz.find("local_level")(), {"y": [1.0, 2.0], "g": ["a", "b"]}, by="g", column="y")


def test_a_point_estimate_of_0_has_no_ratio():
    first, second = np.array([0.0, 0.5, 0.2]), np.array([0.5, 0.0, 0.3])
    assert of_points(first, second)["ratio"] == pytest.approx([np.nan, np.nan, 1.5], nan_ok=True)


LABS_OF_THREE = {"lab": [*"aaabbbccc"], "y": [1.0, 0.0, 1.5, 3.0, 3.0, 3.0, 2.0, 5.0, 8.0]}  # b has one value


def test_a_group_without_a_maximum_does_not_hide_the_others():
    model, reading = bz.find("normal_gamma")(), {"column": "y"}
    with pytest.warns(bz.Caution, match="group 'b' is without a fit"):
        tree = bz.fit_by(model, LABS_OF_THREE, by="lab", method="mle", seed=1, reading=reading)
    assert tree["posterior"]["mu"].to_numpy().ravel() == pytest.approx([2.5 / 3, 5.0])
    assert [*json.loads(tree.attrs["failures"])] == ["b"]
    assert bz.contrasts(tree)["group"].unique().tolist() == ["c"]
    assert bz.contrasts(tree).attrs["withheld"][0].startswith("b: ")
    alike = {"lab": [*"aabb"], "y": [1.0, 1.0, 3.0, 3.0]}
    with raises(bz.NumericalError, "no_maximum", "'a'"):
        bz.fit_by(model, alike, by="lab", method="mle", seed=1, reading=reading)


def test_the_best_of_all_is_unknown_while_a_group_is_without_a_fit():
    tree = bz.fit_by(COIN(1, 1), {"g": [*"aabbcc"], "y": [0, 1] * 3}, by="g", method="exact", seed=1, groups=())
    assert len(bz.best_of_groups(tree)) == 3
    tree.attrs["failures"] = json.dumps({"d": "no rows"})
    assert not len(bz.best_of_groups(tree))
    assert len(bz.contrasts(tree)) == 3


def test_the_command_line_names_the_group_without_a_fit(run, written):
    rows = "".join(f"{lab},{y}\n" for lab, y in zip(*LABS_OF_THREE.values(), strict=True))
    command = ("fit", "normal_gamma", written("lab,y\n" + rows), "--column", "y", "--by", "lab", "--method", "mle")
    code, out, err = run(*command, "--seed", "1")
    assert code == 4
    assert [line.split()[1] for line in out.splitlines() if line.split()[:1] == ["mu"]][:2] == ["a", "c"]
    assert "withheld: b: without a fit: " in err
    assert [*json.loads(run(*command, "--json")[1])["errors"]] == ["b"]
