"""Groups of hierarchies by approximations: estimates, weights, ranks and chances are judged each by themselves."""

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.answers import judged
from bayeszoo.answers.group_estimates import _ranks_agree
from bayeszoo.errors import Untrustworthy
from tests.refusals import raises
from tests.test_judged import as_approximation

TABLE = {"group": list("abcde"), "y": [6.0, 2.0, -3.0, 4.0, 1.0], "se": [3.0, 1.5, 4.0, 2.0, 2.5]}
ESTIMATES = ["mean", "sd", "q025", "median", "q975", "mcse_mean"]
RANKS = ["rank", "rank_q025", "rank_q975", "p_highest", "p_lowest"]


@pytest.fixture(scope="module")
def hierarchy():
    """An exact fit as if it were an approximation, measured against its own draws: nothing is compiled."""
    M = bz.find("normal_means")
    return as_approximation(bz.fit(M(m0=1, s0=10, t0=5), bz.read(M, TABLE), "exact", seed=1), "theta[c]")


def changed(tree, **change):
    tree = tree.copy(deep=True)
    draws = tree["posterior"].to_dataset()
    tree["posterior"] = draws.assign(
        {name: (draws[name].dims, f(draws[name].to_numpy())) for name, f in change.items()}
    )
    return tree


def moved(theta, group, by):
    return theta + by * theta.std((0, 1)) * (np.arange(theta.shape[-1]) == group)


def shown(frame, columns):
    return [label for label, row in frame[columns].iterrows() if row.notna().all()]


def test_groups_that_agree_are_shown_with_the_numbers_of_the_exact_fit(hierarchy):
    M = bz.find("normal_means")
    exact = bz.group_estimates(bz.fit(M(m0=1, s0=10, t0=5), bz.read(M, TABLE), "exact", seed=1))
    frame = bz.group_estimates(hierarchy)
    assert "withheld" not in frame
    assert "judged by itself" in frame.attrs["judged"]
    np.testing.assert_allclose(frame["mean"], exact["mean"], atol=0.1)
    np.testing.assert_array_equal(frame["raw"], TABLE["y"])


def test_a_group_that_is_off_is_withheld_and_so_are_the_ranks_that_it_moves(hierarchy):
    right = bz.group_estimates(hierarchy)
    frame = bz.group_estimates(changed(hierarchy, theta=lambda t: moved(t, 2, 3.0)))
    assert shown(frame, ESTIMATES) == list("abde")
    assert "c" not in shown(frame, ["rank"])
    assert shown(frame, ["shrinkage"]) == list("abcde")
    np.testing.assert_array_equal(frame.loc[list("abde"), ESTIMATES], right.loc[list("abde"), ESTIMATES])
    chances = frame["p_highest"].notna()
    np.testing.assert_allclose(frame.loc[chances, "p_highest"], right.loc[chances, "p_highest"], rtol=0.5, atol=0.02)
    assert not chances["c"]
    assert frame.loc["c", "withheld"].startswith("mean, sd, quantiles, rank, ")
    assert frame.loc["c", "withheld"].endswith(judged.FAR)
    assert "1 of 5 groups are too far from it; try --method" in frame.attrs["judged"]


def test_ranks_do_not_pass_because_each_estimate_is_right(hierarchy):
    """Groups that are taken for independent: only the joint draws tell which is highest."""
    rng = np.random.default_rng(1)
    tight = changed(hierarchy, theta=lambda t: t.mean(-1, keepdims=True) + 0.25 * (t - t.mean(-1, keepdims=True)))
    tight["reference_draws"] = tight["posterior"].__class__(tight["posterior"].to_dataset().isel(draw=slice(500)))
    shuffled = changed(tight, theta=lambda t: rng.permuted(t.reshape(-1, 5), axis=0).reshape(t.shape))
    assert shown(bz.group_estimates(tight), RANKS) == list("abcde")
    frame = bz.group_estimates(shuffled)
    assert shown(frame, ESTIMATES) == list("abcde")
    assert len(shown(frame, RANKS)) < 2


def test_a_weight_does_not_pass_because_the_estimates_are_right(hierarchy):
    frame = bz.group_estimates(changed(hierarchy, tau=lambda tau: 2 * tau))
    assert shown(frame, [*ESTIMATES, *RANKS]) == list("abcde")
    assert frame[["shrinkage", "mcse_shrinkage"]].isna().all(axis=None)
    assert (frame["withheld"] == f"shrinkage: {judged.FAR}").all()


def test_groups_that_are_all_off_are_refused(hierarchy):
    with raises(Untrustworthy, "withheld"):
        bz.group_estimates(
            changed(hierarchy, theta=lambda t: 1e-3 * t + [40, 90, 70, 60, 80], tau=lambda tau: 50 * tau)
        )


def test_the_end_of_an_interval_of_ranks_is_compared_by_what_lies_beyond_it():
    """A rank is whole: its quantile jumps where a share of the draws passes 0.025, and a jump alone is no error."""
    limits, ranks = judged.WITHIN, np.ones((1, 10_000, 1))
    frame = pd.DataFrame
    for share, first, agrees in (
        (0.026, 1, True),
        (0.024, 1, True),
        (0.024, 2, True),
        (0.2, 2, False),
        (0.001, 1, False),
    ):
        ranks[0, :, 0] = np.where(np.arange(10_000) < share * 10_000, 1, 2)
        own = frame({"rank": [ranks.mean()], "rank_q025": [first], "rank_q975": [2]})
        assert _ranks_agree(own, ranks, limits).tolist() == [agrees], share


def test_what_is_withheld_of_groups_is_printed_and_drawn_without(hierarchy, run, tmp_path):
    tree = changed(hierarchy, theta=lambda t: moved(t, 2, 3.0))
    bz.save(tree, tmp_path / "fit.nc")
    out = run("groups", tmp_path / "fit.nc")[1]
    assert "nan" not in out
    assert "Withheld: mean, sd, quantiles, rank" in out
    figure = bz.plot_pooling(tree)
    marks = next(line for line in figure.axes[0].lines if line.get_label() == "partially pooled")
    assert np.isnan(marks.get_ydata()).sum() == 1


def test_a_picture_of_groups_has_those_that_are_not_withheld(hierarchy):
    left, right = bz.plot_groups(changed(hierarchy, theta=lambda t: moved(t, 2, 3.0))).axes
    assert np.isfinite(left.lines[0].get_xdata()).tolist() == [True, True, False, True, True]
    names = [label.get_text() for label in right.get_yticklabels()]
    assert len(names) == 6
    assert not [name for name in names if "c -" in name or "- c" in name]
