"""NUTS with either sampler: right answers, known seeds, options that are checked, labels that survive."""

import importlib
import json
from unittest.mock import Mock

import numpy as np
import pymc as pm
import pytensor
import pytest
import scipy
from threadpoolctl import threadpool_info, threadpool_limits

import bayeszoo as bz
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.inference.methods import nuts
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.summary import document
from tests.quick import quick_first, quick_where, zoo_with
from tests.refusals import raises

SAMPLERS = ("nutpie", "pymc")
EXACT = scipy.stats.beta(438, 544)  # of 437 girls among 980 births, under a flat prior


@pytest.fixture(scope="module")
def births():
    return bz.find("beta_bernoulli")(), bz.example(bz.find("beta_bernoulli"), "placenta_previa")


@pytest.fixture(scope="module", params=quick_first(SAMPLERS))
def sampled(request, births):
    return request.param, bz.fit(*births, seed=1, sampler=request.param)


bad_models = zoo_with("bad_models", autouse=False)


@pytest.fixture(scope="module")
def grouped(bad_models):
    """A model from outside the zoo, which the zoo is made to find."""
    return bz.find("grouped")


# The answer

FUNCTIONALS = {"mean": EXACT.mean(), "sd": EXACT.std(), "median": EXACT.median()}
FUNCTIONALS |= {"q025": EXACT.ppf(0.025), "q975": EXACT.ppf(0.975)}


def test_draws_agree_with_the_exact_answer(sampled):
    name, tree = sampled
    found = bz.summarize(tree)["theta"]
    assert tree.attrs["status"] == "ok"
    assert tree.attrs["sampler"].startswith(f"{name} ")
    options = {"draws": 1000, "tune": 1000, "chains": 4, "target_accept": 0.8, "sampler": name, "extend": True}
    assert Fit(tree).options == options
    assert tree.attrs["declared_from"] == "sufficient statistics"
    assert len(set(tree["posterior"]["theta"].isel(draw=0).to_numpy())) == 4  # each chain has its own start
    for name, exact in FUNCTIONALS.items():
        assert abs(found[name] - exact) < 4.4 * found[f"mcse_{name}"]
        assert found[f"mcse_{name}"] < 0.2 * EXACT.std()  # not passed by vagueness


def test_the_same_seed_gives_the_same_summary(sampled, births):
    (name, tree), before = sampled, pytensor.config.mode
    again, other = (bz.fit(*births, seed=seed, sampler=name) for seed in (1, 2))
    assert pytensor.config.mode == before  # compiling in nutpie's threads once left the process in PyTensor's slow mode
    mean = bz.summarize(tree)["theta"]["mean"]
    assert bz.summarize(again)["theta"]["mean"] == pytest.approx(mean, rel=1e-6)
    assert bz.summarize(other)["theta"]["mean"] != pytest.approx(mean, rel=1e-6)


# Options


TUNE, ACCEPT = "tune must be a whole number >= 0, got {!r}", "target_accept must be between 0 and 1, got {!r}"
STEPS = "method 'nuts' has no option 'steps'; it takes draws, tune, chains, target_accept, sampler, extend"
WRONG = [
    ("sampler", "stan", "there is no sampler 'stan'; use nutpie or pymc"),
    ("draws", 0, "draws must be a whole number >= 1, got 0"),
    ("chains", -1, "chains must be a whole number >= 1, got -1"),
    ("steps", 5, STEPS),
    *[("tune", value, TUNE.format(value)) for value in (-1, 0.5, "10", True, None)],
    *[("target_accept", value, ACCEPT.format(value)) for value in (1.0, 0, float("nan"), "0.9", True)],
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_a_wrong_option_is_refused_before_sampling(births, monkeypatch, name, value, message):
    for sampler in SAMPLERS:
        monkeypatch.setitem(nuts.SAMPLERS, sampler, lambda *_: pytest.fail("sampled before the options were checked"))
    with pytest.raises(InputError) as caught:
        bz.fit(*births, seed=1, **{name: value})
    assert str(caught.value) == message


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_options_reach_the_sampler(births, sampler):
    options = {"draws": 450, "tune": 300, "chains": 5, "target_accept": 0.9}
    tree = bz.fit(*births, seed=1, sampler=sampler, extend=False, **options)
    assert dict(tree["posterior"].sizes) == {"chain": 5, "draw": 450}
    assert Fit(tree).facts == {"attempts": 1, "tune": 300, "target_accept": 0.9}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_blas_has_one_thread_while_chains_run(births, monkeypatch, sampler):
    sample, seen = importlib.import_module(sampler).sample, []

    def spy(*arguments, **options):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return sample(*arguments, **options)

    monkeypatch.setattr(f"{sampler}.sample", spy)
    with threadpool_limits(2, user_api="blas"):
        bz.fit(*births, seed=1, sampler=sampler, draws=10, tune=10, extend=False)
        after = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    assert (set(seen), after) == ({1}, {2})


# Models of other shapes


@pytest.fixture(scope="module", params=SAMPLERS)
def labelled(request, grouped):
    """Thirty rows in three groups whose names could not be those of variables."""
    y = np.random.default_rng(5).normal(np.tile([-2.0, 0.0, 3.0], 10))
    return y, bz.fit(grouped(), y, seed=1, sampler=request.param)


def test_a_model_without_statistics_is_sampled_on_its_rows(labelled, grouped):
    y, tree = labelled
    assert tree.attrs["declared_from"] == "rows"
    assert tree.attrs["status"] == "ok"
    precision = 10 + grouped().width ** -2
    exact = y.reshape(10, 3).sum(axis=0) / precision
    found = bz.summarize(tree)
    assert np.all(np.abs(found["mu"]["mean"] - exact) < 4.4 * found["mu"]["mcse_mean"])
    assert found["mu"]["sd"] == pytest.approx(np.full(3, precision**-0.5), rel=0.1)


def test_labels_survive(labelled, grouped, tmp_path):
    _, tree = labelled
    groups = ["km/h", "naïve group", "x1[0]"]
    loaded = bz.load(bz.save(tree, tmp_path / "fit.nc"))
    for one in (tree, loaded):
        assert one["posterior"]["mu"].dims == ("chain", "draw", "group")
        assert one["posterior"]["group"].to_numpy().tolist() == groups
    found = json.loads(dumps(document(Fit(loaded))))["parameters"]
    assert (found["mu"]["dims"], found["mu"]["coords"]) == (["group"], {"group": groups})
    assert len(found["mu"]["mean"]) == 3
    assert (found["largest"]["dims"], found["largest"]["coords"]) == ([], {})
    means = tree["posterior"]["mu"].mean(("chain", "draw"))
    assert means.sortby(means)["group"].to_numpy().tolist() == groups  # and stay with their values
    np.testing.assert_array_equal(tree["posterior"]["largest"], tree["posterior"]["mu"].max("group"))


@pytest.mark.parametrize("sampler", quick_where(SAMPLERS, lambda sampler: sampler == "nutpie"))
@pytest.mark.parametrize(
    ("where", "width"), [(1e5, 1e6), pytest.param(0.0, 1e6, marks=pytest.mark.slow), (-1e-7, 1e-8)]
)
def test_a_posterior_far_from_the_start(grouped, sampler, where, width):
    """From 1e5 standard deviations away; and where one group has no data, the whole width of the prior."""
    y = where + np.array([1.0, -1.0])  # one row for each of the first two groups
    tree = bz.fit(grouped(width=width), y, seed=1, sampler=sampler)
    variance = 1 / (np.array([1, 1, 0]) + width**-2)
    exact = variance * np.array([*y, 0])
    found = bz.summarize(tree)["mu"]
    assert tree.attrs["status"] == "ok"
    assert np.all(np.abs(found["mean"] - exact) < 4.4 * found["mcse_mean"])
    assert found["sd"] == pytest.approx(np.sqrt(variance), rel=0.1)


@pytest.mark.parametrize("sampler", quick_where(SAMPLERS, lambda name: name == "pymc"))
def test_a_density_that_is_finite_nowhere_is_a_numerical_failure(grouped, monkeypatch, sampler):
    def impossible(model, data, declare=grouped.declare):
        with declare(model, data) as declared:
            pm.Potential("impossible", pm.math.log(declared["mu"][0] * 0))
        return declared

    monkeypatch.setattr(grouped, "declare", impossible)
    code = "not_finite" if sampler == "nutpie" else "sampler_stopped"
    with raises(NumericalError, code, sampler) as caught:
        bz.fit(grouped(), [0, 1, 2], seed=1, sampler=sampler)
    assert "\n" not in str(caught.value)
    if sampler == "nutpie":  # whose threads, once begun, end the process by a signal
        assert str(caught.value).endswith("not finite at the start: can the model give these data?")


def test_a_panic_of_the_sampler_is_an_error_of_ours():
    panic = type("PanicException", (BaseException,), {})("called `Result::unwrap()`\nstack")
    with raises(NumericalError, "sampler_stopped", "sampler"):
        nuts._wait(Mock(**{"wait.side_effect": panic}))
