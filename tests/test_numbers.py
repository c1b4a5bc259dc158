"""Numbers as text: read again, they are as near to the number as its sd needs, wherever the outcome's zero is."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.comparison.contrast_columns import by_draws
from bayeszoo.report.families.pooling import fully_pooled, pooling_rows
from bayeszoo.report.groups import contrast_rows
from bayeszoo.report.text import numbers
from bayeszoo.report.text.folded import folded

OFFSETS = [0.0, 1e4, -1e6, 1e9]
"""Zeros of an outcome of sd 1."""
NEAR = 0.06
"""How far the text of a number may be off, in sd: half of the second digit of .8, and a little."""


def read(text):
    return [float(found) for found in re.findall(r"-?\d+\.?\d*(?:e[+-]\d+)?", text)]


def test_a_zero_has_no_sign():
    assert [numbers.number(-0.0), numbers.estimate(-0.0), numbers.estimate(-0.0, sd=1.0)] == ["0", "0", "0"]


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_location_is_told_to_two_digits_of_its_sd(offset):
    row = {"mean": offset + 0.7654, "sd": 0.8, "q025": offset - 0.81, "q975": offset + 2.34, "observed": offset + 0.3}
    for name in ("mean", "q025", "q975", "observed"):
        assert read(numbers.estimate(row[name], sd=numbers.spread(row, name))) == pytest.approx([row[name]], abs=NEAR)
    ends = numbers.interval((row["q025"], 0.0), (row["q975"], 0.0))
    assert read(ends) == pytest.approx([row["q025"], row["q975"]], abs=NEAR)
    assert numbers.spread(row, "sd") is None
    assert numbers.spread({"slope_q025": 1.0, "sd_slope": 0.2}, "slope_q025") == 0.2


@pytest.mark.parametrize(
    ("value", "shown"),
    [(999999.7331, "999999.73"), (12345.678, "12346"), (1234567890.1234, "1234567890.12"), (3.2e11, "3.2e+11")],
)
def test_a_point_estimate_keeps_the_digits_before_the_point(value, shown):
    assert numbers.statistic("mean", value) == shown
    assert numbers.statistic("sd", 999999.7331) == "1e+06"


@pytest.mark.parametrize("offset", OFFSETS)
def test_the_range_of_folded_rows_has_two_ends(offset):
    means = offset + np.linspace(0.5, 3.5, 40)
    ((_, text),) = folded(["level"], [[[f"level[{i}]", "x"] for i in range(40)]], [means], 0)
    assert read(text) == pytest.approx([means.min(), means.max()], abs=0.2)


@pytest.mark.parametrize("offset", OFFSETS)
def test_groups_are_told_apart_wherever_zero_is(offset):
    M = bz.find("normal_means")
    table = {"group": list("abc"), "estimate": offset + np.array([1.2, 2.1, 3.3]), "se": [0.5, 0.6, 0.7]}
    tree = bz.fit(M(m0=offset, s0=5, t0=2), bz.read(M, table), "exact", seed=1)
    frame = bz.group_estimates(tree)
    heads, rows = pooling_rows(frame)
    for row, (_, known) in zip(rows, frame.iterrows(), strict=True):
        cells = dict(zip(heads, row, strict=True))
        assert read(cells["raw"]) == pytest.approx([known["raw"]], abs=NEAR)
        assert read(cells["partially pooled"]) == pytest.approx([known["mean"]], abs=NEAR)
        assert read(cells["95%"]) == pytest.approx([known["q025"], known["q975"]], abs=NEAR)
    weights = np.array(table["se"]) ** -2.0
    assert read(fully_pooled(frame)) == pytest.approx([np.average(table["estimate"], weights=weights)], abs=NEAR)


def test_a_difference_that_is_large_is_told_to_two_digits_of_its_sd():
    row = dict.fromkeys(("p_greater_mcse", "difference_mcse", "ratio", "ratio_mcse"), np.nan)
    row |= {f"{name}_{end}_mcse": np.nan for name in ("difference", "ratio") for end in ("q025", "q975")}
    row |= dict.fromkeys(("ratio_q025", "ratio_q975"), np.nan)
    row |= {"quantity": "mu", "group": "a", "against": "b", "p_greater": 1.0, "difference": 1e6 + 0.3}
    row |= {"difference_q025": 1e6 - 1.2, "difference_q975": 1e6 + 1.9}
    heads, (cells,) = contrast_rows(pd.DataFrame([row]))
    shown = dict(zip(heads, cells, strict=True))
    assert read(shown["difference"]) == pytest.approx([row["difference"]], abs=NEAR)
    assert read(shown["95%"]) == pytest.approx([row["difference_q025"], row["difference_q975"]], abs=NEAR)


@pytest.mark.parametrize("seed", range(8))
def test_a_mean_of_heavy_tails_has_no_digits_that_are_noise(seed):
    """The mean of Student t with two degrees of freedom is 0: a mean of 4000 draws of it was printed as 0.04356."""
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((4, 1000, 1)), stats.t(2).rvs((4, 1000, 1), random_state=rng)
    known = by_draws(first, second)
    assert np.isnan(known["difference_mcse"]).all()
    row = {name: values[0] for name, values in known.items()}
    row |= {"quantity": "mu", "group": "b", "against": "a", "difference": np.mean(second - first)}
    heads, (cells,) = contrast_rows(pd.DataFrame([row]))
    (shown,) = read(dict(zip(heads, cells, strict=True))["difference"])
    assert abs(shown) <= 0.3
    assert shown == pytest.approx(round(shown, 1), abs=1e-12)


def test_a_mean_without_an_error_is_told_to_a_twentieth_of_its_interval():
    assert numbers.without_error(77123.0, width=539000.0) == "80000"  # an odds ratio whose mean is 103,000
    assert numbers.without_error(3811.2) == "3800"
    assert numbers.without_error(float("nan"), width=1.0) == "-"


def test_commands_tell_rows_far_from_zero_apart(run, written):
    y = 1e6 + np.array([1.3, -0.4, 2.2, 0.7, -1.9, 0.1])
    path = written("y\n" + "".join(f"{value!r}\n" for value in y.tolist()))
    lines = run("bootstrap", path, "--seed", 1)[1].splitlines()
    cells = {line.strip().split("  ")[0]: line for line in lines}
    assert read(cells["of the rows"])[:1] == pytest.approx([y.mean()], abs=NEAR)
    assert read(cells["mean"])[:1] == pytest.approx([y.mean()], abs=NEAR)
    fit = path.with_suffix(".nc")
    assert run("fit", "normal_gamma", path, "--method", "exact", "--seed", 1, "-o", fit)[0] == 0
    rows = [line.split() for line in run("predict", fit, path)[1].splitlines() if line.split()[:1] == ["3"]]
    assert any(abs(value - y[2]) < NEAR for value in map(float, rows[0]))


def test_an_exact_estimate_that_is_0_but_for_rounding_is_0():
    assert (
        numbers.statistic("mean", 3.4e-16, None, None, 2.5)
        == numbers.statistic("median", -8.3e-12, None, None, 2.5)
        == "0"
    )
    assert numbers.statistic("mean", 3.4e-9, None, None, 2.5) == "3.4e-09"
    assert numbers.statistic("mean", -8.3e-12, None, None, 1e-11) == "-8.3e-12"
    assert numbers.estimate(0.0, 1e-7) == "0"
    assert numbers.estimate(0.0, 1e-4) == "0.0000"


def test_a_ratio_near_1_is_told_from_1():
    """exp(1.56e-6), of one more unit of a feature whose sd is 164,000 units."""
    assert numbers.statistic("mean", 1.0000015639) == "1.0000016"
    assert numbers.statistic("mean", 1.0) == "1"
    assert numbers.statistic("mean", 1.08123456) == "1.0812"
