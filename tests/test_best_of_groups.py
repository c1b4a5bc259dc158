"""The best of three and more groups: probabilities and expected losses, against quadrature of SciPy's distributions."""

import csv
import itertools
import json

import numpy as np
import pytest
import xarray as xr
from scipy import integrate, stats

import bayeszoo as bz
from bayeszoo.comparison import by as grouped
from bayeszoo.comparison.contrast_columns import BEST, LOWEST, by_draws, highest
from bayeszoo.errors import InputError
from bayeszoo.report.groups import about_best, best_rows
from bayeszoo.results.stored import Fit
from tests.refusals import raises

COIN, SEVERAL = bz.find("beta_bernoulli"), bz.find("beta_binomial")
PAGES = {"page": list("ABC"), "buyers": [31, 47, 44], "visitors": [412, 398, 405]}
HOW = {"successes": "buyers", "trials": "visitors"}
LAWS = {g: stats.beta(1 + y, 1 + n - y) for g, y, n in zip(*PAGES.values(), strict=True)}
ROPE = 0.01


def fitted(table=PAGES, **how):
    return bz.fit_by(COIN(1, 1), table, by="page", method="exact", seed=1, reading=HOW, groups=(), **how)


def others(group):
    return [law for name, law in LAWS.items() if name != group]


def all_below(x, laws):
    return np.prod([law.cdf(x) for law in laws], axis=0)


def probability(group, ahead=0.0):
    """Return the probability that a group is ahead of all others by more than a number."""
    law, rest = LAWS[group], others(group)
    return integrate.quad(
        lambda x: law.pdf(x) * all_below(x - ahead, rest), 0, 1, points=[0.05, 0.1, 0.15], epsabs=1e-12
    )[0]


def loss(group):
    """Return E max(best of the others - group, 0)."""
    law, rest = LAWS[group], others(group)
    return integrate.quad(
        lambda x: law.cdf(x) * (1 - all_below(x, rest)), 0, 1, points=[0.05, 0.1, 0.15], epsabs=1e-13
    )[0]


def mean_of_best(laws):
    return integrate.quad(lambda x: 1 - all_below(x, laws), 0, 1, points=[0.05, 0.1, 0.15], epsabs=1e-12)[0]


@pytest.fixture(scope="module")
def tree():
    return fitted()


def test_the_best_of_three_proportions_is_as_by_quadrature(tree):
    frame = bz.best_of_groups(tree, rope=ROPE)
    assert frame["group"].tolist() == ["B", "C", "A"]  # the most probably best first
    assert set(frame["against"]) == {BEST}
    assert frame["p_greater"].sum() == pytest.approx(1, abs=1e-10)
    for row in frame.to_dict("records"):
        group = row["group"]
        assert row["p_greater"] == pytest.approx(probability(group), abs=1e-9)
        assert row["p_above"] == pytest.approx(probability(group, ROPE), abs=1e-9)
        assert row["loss_group"] == pytest.approx(loss(group), rel=1e-8)
        assert np.isnan([row["p_greater_mcse"], row["loss_group_mcse"], row["difference_mcse"]]).all()
        assert row["difference"] == pytest.approx(LAWS[group].mean() - mean_of_best(others(group)), abs=1e-8)
        for level in (0.025, 0.975):
            behind = 1 - probability(group, row[f"difference_q{level:.3f}".replace("0.", "")])
            assert behind == pytest.approx(level, abs=1e-7)
    # what the product of the pairs' probabilities would say, as if these were independent
    pairs = bz.contrasts(tree).set_index(["group", "against"])["p_greater"]
    assert abs(pairs["B", "A"] * (1 - pairs["C", "B"]) - probability("B")) > 1e-3


def test_draws_say_the_same_within_their_errors(tree, monkeypatch):
    monkeypatch.setattr(grouped, "MOST_GROUPS", 2)
    frame = bz.best_of_groups(tree, rope=ROPE).set_index("group")

    def misses(group, of_group):
        row, oracle = frame.loc[group], {"p_greater": probability(of_group), "loss_group": loss(of_group)}
        oracle["p_above"] = probability(of_group, ROPE)
        return [abs(row[name] - value) / row[f"{name}_mcse"] for name, value in oracle.items()]

    assert all(max(misses(group, group)) < 4 for group in LAWS)
    assert min(misses("B", "C")) > 10  # groups swapped would be seen


def test_two_groups_are_the_special_case():
    table = {name: values[:2] for name, values in PAGES.items()}
    tree = fitted(table)
    (pair,), best = bz.contrasts(tree).to_dict("records"), bz.best_of_groups(tree).set_index("group")
    for name in ("p_greater", "difference", "loss_group", "ratio", "difference_q025"):
        assert best.loc["B", name] == pair[name]
    assert best.loc["A", "p_greater"] == pytest.approx(1 - pair["p_greater"])
    assert best.loc["A", "loss_group"] == pytest.approx(pair["loss_against"])


def test_the_only_group_is_compared_with_no_other(tree):
    alone = tree.copy()
    alone["fits"] = xr.DataTree(children={"A": tree["fits"]["A"].copy()})
    alone.attrs["groups"] = json.dumps(["A"])
    assert len(bz.best_of_groups(alone)) == len(bz.contrasts(alone)) == 0
    means = bz.find("normal_means")
    group = bz.fit(means(), {"y": [1.0], "se": [0.5], "group": ["x"]}, "map", seed=1, groups=())
    for compare in (bz.best_of_groups, bz.contrasts):
        with raises(InputError, "one_group"):
            compare(group)


def test_groups_with_equal_rows_are_the_best_equally_probably():
    table = {"page": list("ABCD"), "buyers": [7] * 4, "visitors": [100] * 4}
    frame = bz.best_of_groups(fitted(table))
    np.testing.assert_allclose(frame["p_greater"], 0.25, atol=1e-10)
    np.testing.assert_allclose(frame["loss_group"], frame["loss_group"][0], rtol=1e-9)


UNEQUAL = {"page": ["small", "mid", "big"], "buyers": [5, 400, 5_000_000], "visitors": [10, 800, 10_000_001]}


@pytest.mark.parametrize("rope", [0.0, 0.001])
def test_groups_of_very_different_sizes_are_as_by_quadrature(rope):
    """Between two quantiles of the small group lies all of the big one, whose distribution function is a step there."""
    frame = bz.best_of_groups(fitted(UNEQUAL), rope=rope).set_index("group")
    laws = {g: stats.beta(1 + y, 1 + n - y) for g, y, n in zip(*UNEQUAL.values(), strict=True)}
    ends = np.unique(
        [law.ppf(q) + x for law in laws.values() for q in stats.norm.cdf(np.arange(-8, 9)) for x in (0, rope)]
    )
    for group, law in laws.items():
        rest = [other for name, other in laws.items() if name != group]
        pieces = [
            integrate.quad(lambda x, law=law, rest=rest: law.pdf(x) * all_below(x - rope, rest), *piece)[0]
            for piece in itertools.pairwise(ends)
        ]
        assert frame.loc[group, "p_above"] == pytest.approx(sum(pieces), abs=1e-10)
        ahead = [
            integrate.quad(lambda x, law=law, rest=rest: law.sf(x) * all_below(x, rest), *piece)[0]
            for piece in itertools.pairwise(ends)
        ]
        assert frame.loc[group, "loss_against"] == pytest.approx(sum(ahead), rel=1e-8)


def test_small_probabilities_are_not_differences_from_1():
    table = {"page": ["low", "most", "some"], "buyers": [0, 45, 2], "visitors": [12, 63, 9]}
    frame = bz.best_of_groups(fitted(table)).set_index("group")
    laws = [stats.beta(1 + y, 1 + n - y) for y, n in zip(*list(table.values())[1:], strict=True)]
    true = integrate.quad(lambda x: laws[0].pdf(x) * all_below(x, laws[1:]), 0, 1, epsabs=1e-16, epsrel=1e-10)[0]
    assert 1e-7 < true < 1e-4
    assert frame.loc["low", "p_greater"] == pytest.approx(true, rel=1e-6)


def test_a_probability_near_0_is_neither_negative_nor_a_digit_of_rounding():
    """The quadrature of a regression's posterior gave -5e-9."""
    Poisson = bz.find("poisson_regression")
    rng = np.random.default_rng(5)
    table = {"g": ["a"] * 20 + ["b"] * 20, "x": rng.normal(size=40), "y": [*rng.poisson(3, 20), *[0] * 20]}
    prior = Poisson(m0=0.5, s0=2.5, tau=2.5)
    tree = bz.fit_by(prior, table, by="g", method="exact", seed=1, reading={"target": "y"}, groups=())
    frame = bz.best_of_groups(tree).set_index(["quantity", "group"])
    assert frame.loc[("w[(intercept)]", "b"), "p_greater"] < 1e-9
    assert (frame["p_greater"] >= 0).all()
    far = fitted({"page": ["low", "high"], "buyers": [0, 900], "visitors": [900, 900]})
    shown = best_rows(bz.best_of_groups(far), rope=None)[1]
    assert [row[2] for row in shown] == ["1", "< 1e-09"]


def test_of_groups_that_tie_none_is_the_best():
    """Coefficients that are 0 in some draws: enumerated, 0 or 1 with probability 1/2 each."""
    values = np.array([*itertools.product([0.0, 1.0], repeat=3)])[None].repeat(4, axis=0)
    own = by_draws(highest([values[..., 1], values[..., 2]]), values[..., 0])
    assert own["p_greater"] == 1 / 8
    assert own["loss_group"] == 3 / 8  # 0 while another is 1


def test_a_loss_that_no_draw_has_is_not_certain():
    rng = np.random.default_rng(0)
    low, high = rng.normal(0, 1, (4, 500)), rng.normal(9, 1, (4, 500))
    row = by_draws(low, high)
    assert row["loss_group"] == 0
    true = integrate.quad(lambda d: d * stats.norm(-9, np.sqrt(2)).pdf(d), 0, 30)[0]
    assert true < row["loss_group_mcse"] < 0.01
    both = by_draws(np.zeros((4, 500)), np.zeros((4, 500)))  # point masses that tie in all draws
    assert both["loss_group"] == 0


GROUPS = {"group": list("abc"), "successes": [12, 30, 17], "trials": [80, 150, 60]}


@pytest.fixture(scope="module")
def hierarchy():
    data = bz.read(SEVERAL, GROUPS)
    return bz.fit(SEVERAL(), data, "exact", seed=1, groups=(), draws=5000)


def test_groups_of_a_hierarchy_are_compared_jointly(hierarchy):
    """Given the population's parameters groups are independent: quadrature at draws of these, then their mean."""
    frame, draws = bz.best_of_groups(hierarchy), Fit(hierarchy).pooled()
    some = np.linspace(0, len(draws["mean"]) - 1, 2000).astype(int)
    mean, size = (draws[name][some, None] for name in ("mean", "size"))
    y, n = np.array(GROUPS["successes"]), np.array(GROUPS["trials"])
    x = np.linspace(0.01, 0.6, 600)
    laws = stats.beta((mean * size + y)[..., None], ((1 - mean) * size + n - y)[..., None])
    below, density = laws.cdf(x), laws.pdf(x)
    for row in frame.to_dict("records"):
        i = "abc".index(row["group"])
        given = np.trapezoid(density[:, i] * np.delete(below, i, axis=1).prod(axis=1), x, axis=-1)
        error = np.hypot(row["p_greater_mcse"], given.std() / np.sqrt(len(some)))
        assert abs(row["p_greater"] - given.mean()) < 4.5 * error
    estimates = bz.group_estimates(hierarchy)["p_highest"]
    np.testing.assert_allclose(frame.set_index("group")["p_greater"].loc[list("abc")], estimates, rtol=1e-12)


def test_levels_of_a_regression_are_compared_by_joint_draws():
    rng = np.random.default_rng(3)
    rows = {"arm": np.repeat(["a", "b", "c"], 12), "y": rng.normal(np.repeat([0, 0.3, 0.5], 12))}
    model = bz.find("linear_regression")
    data = bz.read(model, rows, target="y")
    tree = bz.fit(model.weak(data), data, "exact", seed=1, groups=())
    frame = bz.best_of_groups(tree).set_index("group")
    w = Fit(tree).pooled()["w"]
    means = w[:, :1] + np.column_stack([np.zeros(len(w)), w[:, 1:]])
    for i, level in enumerate("abc"):
        assert frame.loc[level, "p_greater"] == pytest.approx((means.argmax(axis=1) == i).mean(), abs=1e-12)
        shortfall = means.max(axis=1) - means[:, i]
        assert frame.loc[level, "loss_group"] == pytest.approx(shortfall.mean())


def test_a_group_that_is_withheld_leaves_the_best_unknown(tree):
    broken = tree.copy(deep=True)
    broken["fits"]["A"].attrs["status"] = "failed"
    frame = bz.best_of_groups(broken)
    assert not len(frame)
    assert any(BEST in line for line in frame.attrs["withheld"])


def test_point_estimates_and_pairs_have_no_table_of_the_best(run, written):
    file = written("page,buyers,visitors\nA,31,412\nB,47,398\nC,44,405\n", "pages.csv")
    options = ("--by", "page", "--successes", "buyers", "--trials", "visitors")
    assert "best of" not in run("fit", "beta_bernoulli", file, *options, "--method", "mle")[1]


@pytest.mark.slow  # it saves a fit by groups and writes its page
def test_the_command_the_file_and_the_page_have_the_best_group(run, written, tmp_path):
    file = written("page,buyers,visitors\nA,31,412\nB,47,398\nC,44,405\n", "pages.csv")
    fit, table, page = (tmp_path / name for name in ("fit.nc", "best.csv", "page.html"))
    options = ("--by", "page", "--successes", "buyers", "--trials", "visitors", "--set", "a=1", "--set", "b=1")
    code, out, _ = run("fit", "beta_bernoulli", file, *options, "--method", "exact", "--seed", "1", "-o", fit)
    assert code == 0
    title = "best of 3 groups, if higher is better: each against the highest of the others"
    lines = out[out.index(title) :].splitlines()
    assert max(map(len, lines[:8])) <= 80
    cells = [line.split() for line in lines[4:7]]
    assert [cell[0] for cell in cells] == ["B", "C", "A"]
    np.testing.assert_allclose([float(cell[1]) for cell in cells], [probability(g) for g in "BCA"], atol=1e-4)
    np.testing.assert_allclose([float(cell[-1]) for cell in cells], [loss(g) for g in "BCA"], rtol=1e-3)
    best = json.loads(run("contrasts", fit, "--rope", ROPE, "--json")[1])["best"]
    assert best[0]["p_above"] == pytest.approx(probability("B", ROPE), abs=1e-9)
    assert run("contrasts", fit, "-o", table)[0] == 0
    rows = [row for row in csv.DictReader(table.read_text().splitlines()) if row["against"] == BEST]
    assert [float(row["p_greater"]) for row in rows] == pytest.approx([probability(g) for g in "BCA"], abs=1e-9)
    assert run("report", fit, "-o", page)[0] == 0
    assert "Best of 3 groups" in page.read_text()


def test_the_lowest_of_three_is_the_best_where_less_is_better(tree, hierarchy):
    """Proportions of complaints, by quadrature of SciPy's distributions; and by joint draws, enumerated."""
    frame = bz.best_of_groups(tree, rope=ROPE, lowest=True)
    assert frame["group"].tolist()[0] == "A"
    assert set(frame["against"]) == {LOWEST}
    assert frame["ratio"].isna().all()

    x = np.linspace(0, 0.4, 400_001)
    for row in frame.to_dict("records"):
        law, rest = LAWS[row["group"]], others(row["group"])
        above, ahead = (np.prod([other.sf(x + gap) for other in rest], axis=0) for gap in (0, ROPE))
        assert row["p_greater"] == pytest.approx(np.trapezoid(law.pdf(x) * above, x), abs=1e-8)
        assert row["p_above"] == pytest.approx(np.trapezoid(law.pdf(x) * ahead, x), abs=1e-8)
        assert row["loss_group"] == pytest.approx(np.trapezoid(law.sf(x) * (1 - above), x), rel=1e-7)
        assert row["difference"] == pytest.approx(np.trapezoid(above, x) - law.mean(), abs=1e-8)
    draws = Fit(hierarchy).pooled()["theta"]
    least = bz.best_of_groups(hierarchy, lowest=True).set_index("group")
    for i, group in enumerate("abc"):
        low = np.delete(draws, i, axis=1).min(axis=1)
        assert least.loc[group, "p_greater"] == pytest.approx(np.mean(draws[:, i] < low))
        assert least.loc[group, "loss_group"] == pytest.approx(np.mean(np.maximum(draws[:, i] - low, 0)))


def test_lower_levels_and_lower_groups_of_two_are_the_higher_ones_with_the_sign_changed(tree):
    rng = np.random.default_rng(3)
    line = bz.find("linear_regression")
    table = {"y": rng.normal(size=60), "x": rng.normal(size=60), "page": list("abc") * 20}
    fit = bz.fit(line(), bz.read(line, table, target="y"), "exact", seed=1, groups=())
    minus = bz.fit(line(), bz.read(line, {**table, "y": -table["y"]}, target="y"), "exact", seed=1, groups=())
    low, high = (bz.best_of_groups(t, lowest=s).set_index("group") for t, s in ((fit, True), (minus, False)))
    for name in ("p_greater", "difference"):
        np.testing.assert_allclose(low[name], high[name].loc[low.index], atol=0.05)
    two = bz.fit_by(COIN(1, 1), {n: v[:2] for n, v in PAGES.items()}, by="page", method="exact", seed=1, reading=HOW)
    low, high = (bz.best_of_groups(two, lowest=s).set_index("group") for s in (True, False))
    for name in ("p_greater", "difference", "loss_group"):
        assert low.loc["A", name] == pytest.approx(high.loc["B", name], abs=1e-10)
    assert "lower is better" in about_best(bz.best_of_groups(tree, lowest=True))
