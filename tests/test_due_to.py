"""Parts of a change against every order of the factors, the closed form of a product of three, and counts by hand."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import bayeszoo as bz
from bayeszoo.tools.decomposition import due_to as engine
from bayeszoo.tools.decomposition.formula import Formula
from bayeszoo.tools.decomposition.totals import due_to_of_table
from tests.refusals import raises

BERKELEY = Path(__file__).parents[1] / "models" / "data" / "berkeley.csv"
COMMAND = ["due-to", BERKELEY, "--by", "gender", "--within", "department"]
COMMAND += ["--successes", "admitted", "--trials", "applicants", "--seed", 1]
PROFIT = "V * (RPC * CTR - CPC)"
BEFORE = {"V": 1000.0, "RPC": 3.0, "CTR": 0.02, "CPC": 0.05}
AFTER = {"V": 1500.0, "RPC": 2.5, "CTR": 0.03, "CPC": 0.04}


def profit(factors):
    return factors["V"] * (factors["RPC"] * factors["CTR"] - factors["CPC"])


def over_all_orders(total, before, after):
    """The mean, over all orders, of what the total changes by when a factor does."""
    parts = dict.fromkeys(before, 0.0)
    for order in itertools.permutations(before):
        now = dict(before)
        for name in order:
            was, now[name] = total(now), after[name]
            parts[name] += (total(now) - was) / math.factorial(len(before))
    return parts


def parts_of(answer):
    return answer.summary["mean"][list(answer.factors)].to_dict()


def tosses(successes, trials, seed=1):
    return bz.fit(bz.find("beta_bernoulli")(), {"successes": [successes], "trials": [trials]}, "exact", seed=seed)


# Plain numbers: exact


def test_the_parts_are_means_over_all_orders():
    answer = bz.due_to(BEFORE, AFTER, PROFIT)
    expected = over_all_orders(profit, BEFORE, AFTER)
    assert answer.kind == "exact"
    assert parts_of(answer) == pytest.approx(expected, rel=1e-12)
    one_order = {"V": profit({**BEFORE, "V": 1500.0}) - profit(BEFORE)}
    assert abs(parts_of(answer)["V"] - one_order["V"]) > 1
    assert answer.summary.loc["change", "mean"] == pytest.approx(profit(AFTER) - profit(BEFORE), rel=1e-12)
    assert (answer.summary["mcse_mean"] == 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_product_of_three_has_its_closed_form(seed):
    """dV (RPC CTR at the midpoint + dRPC dCTR / 12), and so on: the midpoint rule leaves dV dRPC dCTR / 4 over."""
    rng = np.random.default_rng(seed)
    before, after = (dict(zip("xyz", rng.normal(size=3), strict=True)) for _ in range(2))
    answer = bz.due_to(before, after, "x * y * z")
    step = {name: after[name] - before[name] for name in "xyz"}
    middle = {name: (after[name] + before[name]) / 2 for name in "xyz"}
    for name in "xyz":
        a, b = (other for other in "xyz" if other != name)
        rest = step["x"] * step["y"] * step["z"]
        at_the_middle = step[name] * middle[a] * middle[b]
        assert parts_of(answer)[name] == pytest.approx(at_the_middle + rest / 12, rel=1e-11, abs=1e-14)
    midpoint = sum(step[n] * np.prod([middle[o] for o in "xyz" if o != n]) for n in "xyz")
    assert answer.summary.loc["change", "mean"] - midpoint == pytest.approx(rest / 4, rel=1e-9)
    assert parts_of(answer) == pytest.approx(over_all_orders(lambda f: f["x"] * f["y"] * f["z"], before, after))


def test_a_volume_of_a_profit_has_its_closed_form():
    answer = bz.due_to(BEFORE, AFTER, PROFIT)
    step = {name: AFTER[name] - BEFORE[name] for name in AFTER}
    middle = {name: (AFTER[name] + BEFORE[name]) / 2 for name in AFTER}
    of_revenue = middle["RPC"] * middle["CTR"] + step["RPC"] * step["CTR"] / 12
    assert parts_of(answer)["V"] == pytest.approx(step["V"] * (of_revenue - middle["CPC"]), rel=1e-12)
    assert parts_of(answer)["CPC"] == pytest.approx(-step["CPC"] * middle["V"], rel=1e-12)


@pytest.mark.parametrize("number", [1, 2, 4, 6])
def test_any_sum_of_products_adds_up(number):
    rng = np.random.default_rng(number)
    names = [f"f{i}" for i in range(number)]
    text = " + ".join(f"{i + 1} * " + " * ".join(names[i:]) for i in range(number)) + f" - 2 * ({names[0]} - -3)"
    before, after = (dict(zip(names, rng.normal(size=number), strict=True)) for _ in range(2))
    answer = bz.due_to(before, after, text)

    def total(factors):
        return eval(text, {}, dict(factors))

    assert sum(parts_of(answer).values()) == pytest.approx(total(after) - total(before), rel=1e-10)
    assert parts_of(answer) == pytest.approx(over_all_orders(total, before, after), rel=1e-9, abs=1e-12)


def test_sums_over_labels_do_not_know_their_order():
    """Three labels in three orders: an order and its inverse are then not the same."""
    before = {"share": {"a": 0.25, "b": 0.7, "c": 0.05}, "rate": {"b": 0.5, "c": 0.3, "a": 0.1}}
    after = {"share": {"c": 0.1, "a": 0.5, "b": 0.4}, "rate": {"a": 0.2, "b": 0.4, "c": 0.9}}
    answer = bz.due_to(before, after, "100 * sum(share * rate)")
    shares = 100 * (0.25 * (0.1 + 0.2) / 2 - 0.3 * (0.5 + 0.4) / 2 + 0.05 * (0.3 + 0.9) / 2)
    rates = 100 * (0.1 * 0.375 - 0.1 * 0.55 + 0.6 * 0.075)
    assert parts_of(answer) == pytest.approx({"share": shares, "rate": rates}, rel=1e-12)


def test_a_factor_that_stays_has_no_part():
    assert parts_of(bz.due_to(BEFORE, {**AFTER, "V": 1000.0}, PROFIT))["V"] == 0


# Fits: sampled


def test_the_parts_of_every_draw_add_up():
    counts = [bz.fit(bz.find("gamma_poisson")(), [total], "exact", seed=1) for total in (900, 1100)]
    before = {"V": counts[0], "CTR": tosses(10, 1000), "RPC": 3.0}
    after = {"V": counts[1], "CTR": tosses(20, 1200), "RPC": 2.5}
    answer = bz.due_to(before, after, "V * CTR * RPC")
    change = answer.after - answer.before
    assert (answer.kind, answer.parts.shape) == ("sampled", (4, 1000, 3))
    np.testing.assert_allclose(answer.parts.sum(axis=-1), change, rtol=0, atol=1e-13 * np.abs(answer.after).max())
    draws = [
        dict(V=t["V"]["posterior"]["rate"].to_numpy(), CTR=t["CTR"]["posterior"]["theta"].to_numpy(), RPC=t["RPC"])
        for t in (before, after)
    ]
    expected = over_all_orders(lambda f: f["V"] * f["CTR"] * f["RPC"], *draws)
    for name, part in zip(answer.factors, np.moveaxis(answer.parts, -1, 0), strict=True):
        np.testing.assert_allclose(part, expected[name], rtol=1e-10, atol=1e-12)


def test_a_summary_is_that_of_beta_posteriors():
    """Of one factor and a constant: the change is a difference of two beta variables."""
    answer = bz.due_to({"r": tosses(30, 100)}, {"r": tosses(45, 110)}, "1000 * r")
    old, new = stats.beta(31, 71), stats.beta(46, 66)
    row = answer.summary.loc["r"]
    expected = 1000 * (new.mean() - old.mean())
    sd = 1000 * np.hypot(new.std(), old.std())
    assert abs(row["mean"] - expected) < 4 * row["mcse_mean"]
    assert abs(row["sd"] - sd) < 4 * row["mcse_sd"]
    assert row["mcse_mean"] == pytest.approx(sd / np.sqrt(4000), rel=0.15)
    at = np.linspace(0, 1, 20_001)
    positive = np.trapezoid(new.pdf(at) * old.cdf(at), at)
    assert abs(row["p_positive"] - positive) < 4 * row["mcse_p_positive"]
    assert abs(row["p_positive"] - 0.5) > 10 * row["mcse_p_positive"]
    assert answer.summary.loc[["before", "after"], "p_positive"].isna().all()
    dependent = 1000 * (new.std() - old.std())  # as of draws of one seed that were taken twice
    assert abs(row["sd"] - abs(dependent)) > 20 * row["mcse_sd"]


def test_fits_by_group_and_of_categories_have_labels():
    table = {"ward": list("aabb"), "successes": [3, 4, 9, 8], "trials": [10, 10, 10, 10]}
    rates = [bz.fit_by(bz.find("beta_bernoulli")(), table, by="ward", method="exact", seed=seed) for seed in (1, 2)]
    shares = [bz.fit(bz.find("dirichlet_multinomial")(), {"b": [n], "a": [40]}, "exact", seed=1) for n in (20, 60)]
    answer = bz.due_to({"s": shares[0], "r": rates[0]}, {"s": shares[1], "r": rates[1]}, "sum(s * r)")
    expected = (61 / 102 - 21 / 62) * 18 / 22 + (41 / 102 - 41 / 62) * 8 / 22
    row = answer.summary.loc["s"]
    assert abs(row["mean"] - expected) < 5 * row["mcse_mean"]
    assert row["p_positive"] > 0.99
    assert abs(answer.summary.loc["r", "mean"]) < 5 * answer.summary.loc["r", "mcse_mean"]


def test_draws_are_cut_to_as_many_chains_and_draws():
    draws = xr.DataArray(np.random.default_rng(1).normal(size=(2, 50)), dims=("chain", "draw"))
    answer = bz.due_to({"r": tosses(3, 9), "x": draws}, {"r": tosses(4, 9), "x": draws}, "r * x")
    assert answer.parts.shape == (2, 50, 2)
    assert (answer.parts[..., 1] == 0).all()  # the same object has not changed


# Two groups, and the parts they are made of


def test_the_admissions_of_berkeley():
    """1198 of 2691 men and 557 of 1835 women: the departments account for the difference, and for more."""
    table = pd.read_csv(BERKELEY)
    assert table.groupby("gender", sort=False)[["admitted", "applicants"]].sum().to_numpy().tolist() == [
        [1198, 2691],
        [557, 1835],
    ]
    answer = bz.kitagawa(
        str(BERKELEY), by="gender", within="department", successes="admitted", trials="applicants", seed=1
    )
    men, women = (own.set_index("department") for _, own in table.groupby("gender", sort=False))
    rates = [own["admitted"] / own["applicants"] for own in (men, women)]
    shares = [own["applicants"] / own["applicants"].sum() for own in (men, women)]
    expected = {
        "shares": float(((shares[1] - shares[0]) * (rates[0] + rates[1]) / 2).sum()),
        "rates": float(((rates[1] - rates[0]) * (shares[0] + shares[1]) / 2).sum()),
    }
    observed = answer.observed
    assert observed[["shares", "rates"]].to_dict() == pytest.approx(expected, rel=1e-12)
    assert observed[["shares", "rates", "change"]].round(3).tolist() == [-0.178, 0.036, -0.142]
    assert observed[["gender men", "gender women"]].round(3).tolist() == [0.445, 0.304]
    difference = answer.parts.sum(axis=-1) - (answer.after - answer.before)
    assert np.abs(difference).max() < 1e-15
    assert answer.summary.loc["shares", "p_positive"] < 0.001


def test_the_posterior_of_two_groups_is_that_of_beta_and_dirichlet_variables():
    table = {"sex": list("mmww"), "ward": list("abab"), "y": [30, 10, 10, 15], "n": [60, 40, 20, 80]}
    answer = bz.kitagawa(table, by="sex", within="ward", successes="y", trials="n", draws=8000, seed=1)
    rng = np.random.default_rng(2)
    rates = [rng.beta([31, 11], [31, 31], (40_000, 2)), rng.beta([11, 16], [11, 66], (40_000, 2))]
    shares = [rng.dirichlet(alpha, 40_000) for alpha in ([61, 41], [21, 81])]
    expected = {
        "shares": ((shares[1] - shares[0]) * (rates[0] + rates[1]) / 2).sum(axis=1),
        "rates": ((rates[1] - rates[0]) * (shares[0] + shares[1]) / 2).sum(axis=1),
    }
    for i, name in enumerate(("shares", "rates")):
        assert stats.ks_2samp(answer.parts[..., i].ravel(), expected[name]).pvalue > 1e-3
        assert stats.ks_2samp(answer.parts[..., i].ravel(), expected[name] + 0.01).pvalue < 1e-6
    wrong = rng.beta([30, 10], [30, 30], (40_000, 2)) * shares[0]  # without the prior
    assert abs(answer.summary.loc["sex m", "mean"] - wrong.sum(axis=1).mean()) > 0.001


def test_single_outcomes_and_either_order_are_taken():
    table = {"g": list("aaaabbbb"), "p": list("xyxyyxyx"), "y": ["yes", "no"] * 4}
    answer = bz.kitagawa(table, by="g", within="p", positive="yes", before="b", after="a", seed=1)
    assert answer.observed.round(6).to_dict() == {
        "g b": 0.5,
        "shares": 0.0,
        "rates": 0.0,
        "change": 0.0,
        "g a": 0.5,
    }
    assert parts_of(answer).keys() == {"shares", "rates"}
    assert answer.data.rows == 8


# The command line and the picture


def test_the_command_prints_the_parts_of_berkeley(run, tmp_path):
    code, out, err = run(*COMMAND, "--plot", tmp_path / "parts.svg", "-o", tmp_path / "parts.csv")
    assert code == 0, err
    rows = {
        line.split()[0]: line.split() for line in out.splitlines() if line.startswith((" shares", " rates", " change"))
    }
    assert [round(float(rows[name][1]), 3) for name in ("shares", "rates", "change")] == [-0.178, 0.036, -0.142]
    assert "observed: exact; others: 4000 draws from their posterior" in out
    assert (tmp_path / "parts.svg").stat().st_size > 5000
    document = json.loads(run(*COMMAND, "--json")[1])
    frame = pd.read_csv(tmp_path / "parts.csv", index_col="part")
    assert [row["part"] for row in document["rows"]] == list(frame.index)
    assert [row["mean"] for row in document["rows"]] == pytest.approx(frame["mean"].tolist(), rel=1e-15)
    assert all(row["mcse_mean"] > 0 for row in document["rows"])


def test_the_waterfall_has_the_numbers_of_the_summary():
    answer = bz.due_to({"r": tosses(30, 100), "V": 1000.0}, {"r": tosses(45, 110), "V": 900.0}, "V * r")
    (panel,) = bz.plot_due_to(answer).axes
    bars, means = panel.patches, answer.summary["mean"].drop("change")
    assert [bar.get_height() for bar in bars] == pytest.approx(means.tolist(), rel=1e-12)
    ends = [bar.get_y() + bar.get_height() for bar in bars]
    assert ends[-2] == pytest.approx(ends[-1], rel=1e-12)  # the parts lead to the total after
    assert [bar.get_y() for bar in bars[1:-1]] == pytest.approx(ends[:-2], rel=1e-12)
    names = [label.get_text() for label in panel.get_xticklabels()]
    probability = answer.summary.loc["r", "p_positive"]
    assert 0.9 < probability < 0.999
    assert names == ["before", "V\nP < 0.001", f"r\nP {probability:.3f}", "after"]
    plain = bz.plot_due_to(bz.due_to(BEFORE, AFTER, PROFIT)).axes[0]
    assert [label.get_text() for label in plain.get_xticklabels()] == ["before", "V", "RPC", "CTR", "CPC", "after"]


# Bad input


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("V *", ("bad_formula", "formula", "'V *'")),
        ("V / RPC", ("bad_formula", "'V / RPC'")),
        ("V ** 2", ("bad_formula", "'V ** 2'")),
        ("__import__('os')", ("bad_formula",)),
        ("V if RPC else 1", ("bad_formula",)),
        ("True * V", ("bad_formula", "'True'")),
        ("2 * 3", ("bad_formula",)),
        ("1e999 * V", ("bad_formula",)),
        ("V" + " + V" * 250, ("too_large", "formula", "1001", "1000")),
        ("V * X", ("missing_factor", "before", "'X'")),
        ("V * change", ("duplicate_name", "'change'")),
        ("V * RPC", ("unknown_factor", "before", "'CTR'", "formula")),
        (" * ".join(f"f{i}" for i in range(13)), ("too_large", "13", "12")),
    ],
)
def test_a_formula_that_is_no_sum_of_products_is_refused(formula, message):
    with raises(bz.InputError, *message):
        bz.due_to(BEFORE, AFTER, formula)


@pytest.mark.parametrize(
    ("before", "after", "formula", "message"),
    [
        ({"r": [1, 2]}, {"r": 2}, "r", ("wrong_type", "r")),
        ({"r": True}, {"r": 2}, "r", ("wrong_type", "r")),
        ({"r": float("nan")}, {"r": 2}, "r", ("out_of_range", "r")),
        ({"r": {"a": "x"}}, {"r": {"a": 1}}, "sum(r)", ("out_of_range", "r")),
        ({"r": {"a": 1}}, {"r": {"b": 1}}, "sum(r)", ("labels_differ", "r", "'b'")),
        ({"r": {"a": 1, "b": 2}}, {"r": {"a": 1, "b": 2}}, "r", ("bad_formula", "2")),
    ],
    ids=str,
)
def test_factors_that_are_no_numbers_are_refused(before, after, formula, message):
    with raises(bz.InputError, *message):
        bz.due_to(before, after, formula)


@pytest.mark.parametrize("values", [pd.Series([1.0, 2.0], index=["a", "a"]), {1: 1.0, "1": 2.0}])
def test_a_label_that_occurs_twice_is_refused(values):
    """Only the last number of the label was kept: the sum of 1 and 2 was 2."""
    with raises(bz.InputError, "duplicate_name"):
        bz.due_to({"v": values}, {"v": values}, "sum(v)")
    frame = pd.DataFrame([[1.0, 2.0]], columns=["v", "v"])
    with raises(bz.InputError, "duplicate_name"):
        bz.due_to(frame, frame, "sum(v)")


def test_a_total_that_overflows_is_refused():
    with raises(bz.NumericalError, "too_large"):
        bz.due_to({"x": 1e200, "y": 1e200}, {"x": 1.0, "y": 1.0}, "x * y")


def test_fits_that_give_no_independent_draws_are_refused():
    with raises(bz.InputError, "same_draws", "before", "after"):
        bz.due_to({"r": tosses(3, 9)}, {"r": tosses(3, 9)}, "r")
    point = bz.fit(bz.find("beta_bernoulli")(), [0, 1, 1], "map", seed=1)
    with raises(bz.InputError, "no_draws", "r"):
        bz.due_to({"r": point}, {"r": 0.5}, "r")
    several = bz.fit(bz.find("normal_gamma")(), [0.0, 1.0, 1.5], "exact", seed=1)
    with raises(bz.InputError, "one_quantity_only", "'mu'"):
        bz.due_to({"r": several}, {"r": 0.5}, "r")
    assert bz.due_to({"r": several["posterior"]["mu"]}, {"r": 0.5}, "r").kind == "sampled"
    failed = tosses(3, 9)
    failed.attrs["status"] = "failed"
    with raises(bz.Untrustworthy, "withheld", "r", "withheld"):
        bz.due_to({"r": failed}, {"r": 0.5}, "r")


GROUPS = {"g": list("aabb"), "p": list("xyxy"), "successes": [1, 2, 3, 4], "trials": [5, 6, 7, 8]}


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({}, {"by": "x"}, ("missing_column", "'x'")),
        ({}, {"within": "x"}, ("missing_column", "'x'")),
        ({}, {"within": "g"}, ("duplicate_name", "'g'")),
        ({}, {"before": "c"}, ("unknown_name", "'c'", "'b'")),
        ({}, {"before": "a", "after": "a"}, ("not_comparable",)),
        ({}, {"draws": 99}, ("out_of_range", "100")),
        ({}, {"count": "trials"}, ("options_go_together",)),
        ({"g": list("aaaa")}, {}, ("one_group",)),
        ({"successes": None, "trials": None}, {}, ("missing_column", "'g'")),
        ({"g": list("aabc")}, {}, ("wrong_columns", "3", "'b'", "'c'", "before", "after")),
        ({"p": ["x", "y", "x", ""]}, {}, ("missing_values", "'p'", "1", "4")),
        ({"trials": [5, 6, 7, 0], "successes": [1, 2, 3, 0]}, {}, ("empty_group", "'b'", "p", "'y'")),
        ({"p": list("xyxz")}, {}, ("empty_group", "p", "'z'")),
        ({"successes": [9, 2, 3, 4]}, {}, ("successes_above_trials", "successes", "5")),
    ],
    ids=str,
)
def test_groups_without_known_rates_are_refused(changed, options, message):
    with raises(bz.InputError, *message):
        table = {name: values for name, values in {**GROUPS, **changed}.items() if values is not None}
        bz.kitagawa(table, **{"by": "g", "within": "p", "seed": 1, **options})


def test_the_command_refuses_in_one_line(run):
    code, out, err = run("due-to", BERKELEY, "--by", "department", "--within", "gender", "--successes", "admitted")
    assert (code, out) == (2, "")
    assert err == "error: successes and trials go together, and with no other option\n"
    code, out, err = run(*COMMAND, "--before", "children")
    assert (code, out) == (2, "")
    assert err == "error: there is no group 'children'; the groups are 'men', 'women'\n"


def test_an_order_that_is_left_out_is_noticed(monkeypatch):
    """The weights of sets without the binomial coefficient are those of no orders."""
    monkeypatch.setattr(engine.math, "comb", lambda n, k: 1)
    answer = bz.due_to(BEFORE, AFTER, PROFIT)
    assert parts_of(answer) != pytest.approx(over_all_orders(profit, BEFORE, AFTER), rel=1e-3)


def test_the_longest_formulas_are_read():
    assert Formula.of("V" + "+V" * 499).names == ("V",)
    assert Formula.of("-(" * 60 + "V" + ")" * 60).names == ("V",)


def test_a_formula_knows_its_factors_in_order():
    assert Formula.of("b * (a - 2) + sum(c * b)").names == ("b", "a", "c")


def test_moments_of_parts_whose_draws_have_heavy_tails_are_withheld():
    """Student t with two degrees of freedom has a mean and no variance; a Cauchy variable has neither."""
    rng, dims = np.random.default_rng(3), ("chain", "draw")
    heavy, wide, light = (
        xr.DataArray(each.reshape(4, 5000), dims=dims)
        for each in (rng.standard_t(2.0, 20_000), rng.standard_cauchy(20_000), rng.normal(size=20_000))
    )
    after = {"heavy": heavy, "wide": wide, "light": light}
    frame = bz.due_to({"heavy": 0.0, "wide": 0.0, "light": 0.0}, after, "heavy + wide + light").summary
    assert np.isfinite(frame.loc["heavy", ["mean", "q025", "q975"]].astype(float)).all()
    assert frame.loc["heavy", ["sd", "mcse_mean", "mcse_sd"]].isna().all()
    assert frame.loc[["wide", "change"], ["mean", "sd"]].isna().all(axis=None)
    assert np.isfinite(frame.loc["light", ["mean", "sd", "mcse_mean", "mcse_sd"]].astype(float)).all()
    assert [bool(why) for why in frame["withheld"]] == [False, True, True, False, True, True]


KPI = {
    "quarter": ["Q1", "Q1", "Q2", "Q2"],
    "region": ["N", "S", "S", "N"],
    "volume": [1000.0, 1000.0, 1200.0, 1200.0],
    "mix": [0.6, 0.4, 0.5, 0.5],
    "rate": [0.02, 0.05, 0.04, 0.03],
}
TOTAL = "volume * sum(mix * rate)"


def test_totals_of_a_table_are_taken_apart_as_of_mappings():
    before = {"volume": 1000.0, "mix": {"N": 0.6, "S": 0.4}, "rate": {"N": 0.02, "S": 0.05}}
    after = {"volume": 1200.0, "mix": {"S": 0.5, "N": 0.5}, "rate": {"S": 0.04, "N": 0.03}}
    expected = bz.due_to(before, after, TOTAL).summary["mean"].to_numpy()
    found = due_to_of_table(KPI, TOTAL, by="quarter", within="region").summary["mean"]
    np.testing.assert_allclose(found.to_numpy(), expected)
    assert found.index.tolist() == ["quarter Q1", "volume", "mix", "rate", "change", "quarter Q2"]
    back = due_to_of_table(KPI, TOTAL, by="quarter", within="region", before="Q2", after="Q1").summary["mean"]
    assert back["change"] == pytest.approx(-found["change"])
    series = [pd.DataFrame(each).drop(columns="volume") for each in (before, after)]
    plain = bz.due_to(series[0], series[1], "sum(mix * rate)").summary["mean"]
    assert plain["change"] == pytest.approx(found["quarter Q2"] / 1200 - found["quarter Q1"] / 1000)
    of_series = bz.due_to(pd.Series({"V": 2.0, "r": 3.0}), pd.Series({"V": 4.0, "r": 3.0}), "V * r")
    assert of_series.summary["mean"].tolist() == [6.0, 6.0, 0.0, 6.0, 12.0]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"by": "quarter"}, "repeated_rows"),
        ({"by": "region", "within": "quarter"}, "bad_formula"),  # the volume of a region differs between quarters
        ({"by": "quarter", "within": "region", "before": "Q9"}, "unknown_name"),
        ({"by": "volume", "within": "quarter"}, "repeated_rows"),
        ({"by": "quarter", "within": "country"}, "missing_column"),
    ],
)
def test_tables_that_are_no_two_periods_are_refused(options, code):
    with raises(bz.InputError, code):
        due_to_of_table(KPI, TOTAL, **options)


def test_the_command_takes_totals(run, written):
    lines = [",".join(KPI), *(",".join(map(str, row)) for row in zip(*KPI.values(), strict=True))]
    file = written("\n".join(lines) + "\n", "kpi.csv")
    code, out, _ = run("due-to", file, "--by", "quarter", "--within", "region", "--total", TOTAL, "--json")
    found = {row["part"]: row["mean"] for row in json.loads(out)["rows"]}
    expected = due_to_of_table(KPI, TOTAL, by="quarter", within="region").summary["mean"]
    assert (code, found) == (0, pytest.approx(expected.to_dict()))
    assert run("due-to", file, "--by", "quarter")[0] == 2
