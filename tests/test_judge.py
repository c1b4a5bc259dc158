"""The gate for draws of any sampler: good draws pass, each defect is named, and the next step is suggested."""

import json

import numpy as np
import pymc as pm
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


@pytest.fixture(scope="module")
def gaussian():
    """A correlated Gaussian of five coordinates, one of which is positive: exp of it is log-normal."""
    with pm.Model() as model:
        pm.Normal("beta", np.float64(0), np.float64(1), shape=4)
        pm.LogNormal("scale", np.float64(0), np.float64(1))
    return model


def draws_of_gaussian(seed=0, scale=1.0, shift=0.0):
    draws = autoregressive(np.random.default_rng(seed), 5) * scale + shift
    values = {
        "beta": (("chain", "draw", "entry"), draws[..., :4]),
        "scale": (("chain", "draw"), np.exp(draws[..., 4])),
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(values)})


def test_with_the_model_right_draws_pass(gaussian):
    verdicts = [bz.judge(draws_of_gaussian(seed), gaussian).verdict for seed in range(20)]
    assert verdicts.count("ok") >= 18


@pytest.mark.parametrize(
    ("scale", "shift", "code"), [(0.9, 0.0, "virial_z"), (1.1, 0.0, "virial_z"), (1.0, 0.2, "score_z")]
)
def test_with_the_model_draws_of_another_density_fail_though_the_chains_agree(gaussian, scale, shift, code):
    tree = draws_of_gaussian(0, scale, shift)
    assert bz.judge(tree).verdict == "ok"
    answer = bz.judge(tree, gaussian)
    assert answer.verdict == "failed"
    assert code in missed(answer)
    assert answer.advice


def test_draws_of_other_variables_than_the_model_s_are_refused(gaussian):
    with raises(bz.InputError, "unknown_name", "scale"):
        bz.judge(tree_of(good(size=4)), gaussian)
    tree = draws_of_gaussian()
    tree["posterior"] = xr.DataTree(tree["posterior"].to_dataset().isel(entry=slice(0, 3)))
    with raises(bz.InputError, "wrong_shape", "beta"):
        bz.judge(tree, gaussian)


def written_as_stan(folder, draws, warmup=0):
    """CSV files as CmdStan writes them: a matrix of 2 by 2, and what the sampler says of itself."""
    names = [*("lp__", "accept_stat__", "treedepth__", "divergent__"), *(f"m.{i}.{j}" for j in (1, 2) for i in (1, 2))]
    paths = []
    for chain, rows in enumerate(draws):
        head = f"# max_depth = 10 (Default)\n# save_warmup = {int(warmup > 0)}\n#  num_warmup = {warmup}\n"
        early = [[9.0] * 4 + [1e3 * k] * 4 for k in range(warmup)]
        late = [[-1.0, 0.9, 3.0, 0.0, *row] for row in rows]
        lines = [",".join(map(repr, map(float, row))) for row in (*early, *late)]
        paths.append(folder / f"run-{chain + 1}.csv")
        paths[-1].write_text(f"{head}{','.join(names)}\n# Adaptation terminated\n" + "\n".join(lines) + "\n")
    return paths


@pytest.mark.parametrize("warmup", [0, 7])
def test_files_of_stan_are_read_without_warm_up_and_with_their_indices(run, tmp_path, warmup):
    draws = good(size=4)
    paths = written_as_stan(tmp_path, draws, warmup)
    answer = bz.judge(paths)
    assert answer.verdict == "ok"
    # Stan writes columns of a matrix one after the other
    expected = draws.reshape(-1, 4)[:, [0, 2, 1, 3]].mean(axis=0)
    np.testing.assert_allclose(answer.quantities["mean"], expected, rtol=1e-12)
    assert list(answer.quantities.index) == ["m[0, 0]", "m[0, 1]", "m[1, 0]", "m[1, 1]"]
    assert "divergences" not in answer.not_checked
    assert run("judge", *map(str, paths))[0] == 0


def test_files_that_are_not_of_one_run_of_stan_are_refused(tmp_path):
    paths = written_as_stan(tmp_path, good(size=4))
    (tmp_path / "table.csv").write_text("x,y\n1,2\n")
    with raises(bz.InputError, "not_a_fit", "table.csv"):
        bz.judge(tmp_path / "table.csv")
    paths[0].write_text(paths[0].read_text().rpartition("\n")[0].rpartition("\n")[0])
    with raises(bz.InputError, "wrong_shape"):
        bz.judge(paths)
    with raises(bz.InputError, "wrong_suffix"):
        bz.judge(["a.nc", "b.nc"])


def models():
    """PyMC models with easy posteriors, none of them of the zoo."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    with pm.Model() as linear:
        w = pm.Normal("w", 0, 1, shape=3)
        pm.Normal("y", x @ w, pm.HalfNormal("s", 1), observed=y)
    with pm.Model() as robust:
        pm.StudentT("y", nu=pm.Gamma("nu", 4, 0.5), mu=pm.Normal("m", 0, 3), sigma=pm.HalfNormal("s", 2), observed=y)
    with pm.Model() as shares:
        pm.Multinomial("y", 50, pm.Dirichlet("p", np.ones(4)), observed=[20, 15, 10, 5])
    with pm.Model() as counts:
        pm.Poisson("y", pm.Gamma("r", 2, 1, shape=5), observed=[3, 0, 5, 2, 9])
    with pm.Model() as times:
        pm.Weibull("y", pm.LogNormal("a", 0, 1), pm.LogNormal("b", 0, 1), observed=np.abs(y) + 0.1)
    with pm.Model() as trend:
        a, b = pm.Normal("a", 0, 5), pm.Normal("b", 0, 5)
        pm.Binomial("y", 10, pm.math.invlogit(a + b * x[:8, 0]), observed=[3, 8, 5, 5, 2, 7, 6, 4])
    return linear, robust, shares, counts, times, trend


@pytest.mark.slow  # three hundred runs of NUTS
def test_at_most_one_in_a_hundred_of_three_hundred_good_fits_of_pymc_models_is_not_trusted():
    import nutpie

    verdicts = []
    for model in models():
        compiled = nutpie.compile_pymc_model(model)
        fits = [nutpie.sample(compiled, tune=500, draws=1000, chains=4, seed=s, progress_bar=False) for s in range(50)]
        verdicts += [bz.judge(fit, model).verdict for fit in fits]
    assert verdicts.count("failed") <= 3
    assert len(verdicts) == 300
