"""The gate for draws of any sampler: good ones pass, each way to be bad is named, and what to do next is said."""

import json

import numpy as np
import pytest
import scipy.signal
import xarray as xr

import bayeszoo as bz
from tests.refusals import raises

SHAPE = (4, 1000)


def autoregressive(rng, size, phi=0.3):
    """Draws of stationary chains whose lag-one correlation is phi, with variance 1."""
    noise = rng.standard_normal((SHAPE[0], SHAPE[1] + 200, size))
    return scipy.signal.lfilter([np.sqrt(1 - phi**2)], [1, -phi], noise, axis=1)[:, 200:]


def tree_of(draws, **stats):
    """An ArviZ tree of a vector ``beta``, and what a sampler says of itself."""
    groups = {"posterior": xr.Dataset({"beta": (("chain", "draw", "entry"), draws)})}
    if stats:
        groups["sample_stats"] = xr.Dataset({name: (("chain", "draw"), values) for name, values in stats.items()})
    return xr.DataTree.from_dict(groups)


def good(seed=0, size=5):
    return autoregressive(np.random.default_rng(seed), size)


def missed(judgement):
    return {check.name for check in judgement.checks if not check.passed}


def test_good_chains_pass_and_their_numbers_are_those_of_numpy():
    draws = good()
    answer = bz.judge(tree_of(draws))
    assert (answer.verdict, answer.advice, answer.constant) == ("ok", (), ())
    assert (answer.quantities["verdict"] == "ok").all()
    assert list(answer.quantities.index) == [f"beta[{i}]" for i in range(5)]
    flat = draws.reshape(-1, 5)
    np.testing.assert_allclose(answer.quantities["mean"], flat.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(answer.quantities["sd"], flat.std(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(answer.quantities["q975"], np.quantile(flat, 0.975, axis=0), rtol=1e-12)
    assert set(answer.not_checked) == {"divergences", "e_bfmi", "tree_depth", "non_finite_log_densities"}


@pytest.mark.quick
def test_at_most_one_good_fit_of_a_hundred_is_an_alarm():
    verdicts = [bz.judge(tree_of(good(seed, 2))).verdict for seed in range(100)]
    assert sum(verdict != "ok" for verdict in verdicts) <= 3  # 4 or more have a probability of .02 at one in a hundred


def shifted(by):
    draws = good()
    draws[0, :, 1] += by
    return draws


def changed(change):
    draws = good()
    change(draws)
    return draws


BAD = {
    "apart": (shifted(5.0), "r_hat"),
    "drift": (good() + np.linspace(0, 2, 1000)[:, None], "r_hat"),
    "slow": (autoregressive(np.random.default_rng(1), 2, 0.99), "ess_bulk"),
    "one chain": (good()[:1], "chains"),
    "short": (good()[:, :50], "draws"),
    "not finite": (changed(lambda draws: draws[2].__setitem__((5, 0), np.inf)), "non_finite_draws"),
    "stuck": (changed(lambda draws: draws[3].__setitem__(slice(None), draws[3, :1])), "stuck_chains"),
    "copied": (changed(lambda draws: draws.__setitem__(1, draws[0])), "repeated_chains"),
}


@pytest.mark.parametrize("name", BAD)
def test_each_way_to_be_bad_is_named_with_what_to_do_and_no_number_of_it_is_shown(name):
    draws, code = BAD[name]
    answer = bz.judge(tree_of(draws))
    assert answer.verdict == "failed"
    assert code in missed(answer)
    assert answer.advice
    failed = answer.quantities["verdict"] == "failed"
    assert failed.any()
    assert answer.quantities.loc[failed, ["mean", "sd", "q025", "median", "q975", "mcse_mean"]].isna().all(axis=None)


@pytest.mark.parametrize("draws", [good()[:2], good()[:3], good()[:, :300]], ids=["two", "three", "short"])
def test_two_chains_or_few_draws_are_shown_with_a_warning(draws):
    answer = bz.judge(tree_of(draws))
    assert (answer.verdict, set(answer.quantities["verdict"])) == ("caution", {"caution"})
    assert answer.quantities["mean"].notna().all()
    assert answer.advice


def test_beside_a_quantity_that_has_not_converged_no_other_is_ok():
    draws = np.concatenate([good(), autoregressive(np.random.default_rng(3), 1, 0.98)], axis=2)
    answer = bz.judge(tree_of(draws))
    assert answer.verdict == "failed"
    assert "ok" not in set(answer.quantities["verdict"])
    assert "beta[5]" in answer.quantities.loc["beta[0]", "why"]


def test_chains_in_different_places_withhold_all():
    answer = bz.judge(tree_of(shifted(5.0)))
    assert answer.quantities["mean"].isna().all()


@pytest.mark.parametrize("name", ["diverging", "maxdepth_reached", "reached_max_treedepth"])
def test_what_the_sampler_says_of_itself_counts_under_each_library_s_name(name):
    stats = np.zeros(SHAPE, dtype=bool)
    assert bz.judge(tree_of(good(), **{name: stats})).verdict == "ok"
    stats[1, 3] = True
    answer = bz.judge(tree_of(good(), **{name: stats}))
    assert answer.verdict == ("failed" if name == "diverging" else "caution")
    assert answer.advice


def test_moments_that_heavy_tails_leave_unknown_are_withheld_and_quantiles_are_shown():
    draws = np.random.default_rng(5).standard_cauchy((*SHAPE, 1))
    row = bz.judge(tree_of(draws)).quantities.iloc[0]
    assert np.isnan(row["mean"])
    assert np.isfinite([row["median"], row["q975"]]).all()
    assert row["why"]


def test_constants_are_named_and_not_judged():
    draws = np.concatenate([good(), np.ones((*SHAPE, 1))], axis=2)
    answer = bz.judge(tree_of(draws))
    assert (answer.verdict, answer.constant) == ("ok", ("beta[5]",))
    with raises(bz.InputError, "constant_draws"):
        bz.judge(tree_of(np.ones((*SHAPE, 2))))


def test_how_much_longer_is_of_the_smallest_effective_sample():
    answer = bz.judge(tree_of(autoregressive(np.random.default_rng(1), 1, 0.97)))
    (size,) = answer.quantities["ess_bulk"]
    assert size < 400
    assert f"{int(np.ceil(400 / min(size, answer.quantities['ess_tail'].iloc[0])))} times" in answer.advice[-1]


def test_what_is_no_draws_of_chains_is_refused():
    with raises(bz.InputError, "not_a_fit"):
        bz.judge(xr.DataTree.from_dict({"prior": xr.Dataset({"x": (("chain", "draw"), np.zeros(SHAPE))})}))
    with raises(bz.InputError, "not_a_fit"):
        bz.judge(xr.DataTree.from_dict({"posterior": xr.Dataset({"x": ("draw", np.zeros(9))})}))
    with raises(bz.InputError, "not_sampled"):
        bz.judge(bz.fit(bz.find("gaussian_mean")(), [1.0, 2.0], "exact", seed=1))
    with raises(bz.InputError, "no_such_file"):
        bz.judge("no_such_file.nc")


def test_the_command_reads_a_file_of_any_sampler_and_its_code_is_the_verdict(run, tmp_path):
    for name, draws, expected in (("good", good(), 0), ("bad", shifted(5.0), 3)):
        tree_of(draws).to_netcdf(tmp_path / f"{name}.nc", engine="h5netcdf")
        code, out, _ = run("judge", str(tmp_path / f"{name}.nc"), "--json")
        assert code == expected
        document = json.loads(out)
        assert document["verdict"] == ("failed" if expected else "ok")
        assert len(document["rows"]) == 5
    code, out, _ = run("judge", str(tmp_path / "bad.nc"))
    assert "next:" in out
    (tmp_path / "text.nc").write_text("no HDF5")
    assert run("judge", str(tmp_path / "text.nc"))[0] == 2
