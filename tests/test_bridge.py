"""The evidence by bridge sampling: held to exact evidences, and withheld where draws are of another density."""

import numpy as np
import pymc as pm
import pytest
import scipy
import xarray as xr

import bayeszoo as bz
from bayeszoo.fit import methods_for
from tests.refusals import raises

Y = np.random.default_rng(3).normal(2.0, 1.0, 20)
PRIOR_SD = 3.0
SHAPE = (4, 1000)
WITHOUT = {("bayesian_lasso", "diabetes"), ("poisson_regression", "ships"), ("probit_regression", "vasoconstriction")}
WITHOUT |= {("support_vector_regression", "stackloss"), ("neural_network", "ethanol")}
"""Models and their data without an exact evidence, though the model has one of other data."""
KINDS = [bz.find(name) for name in bz.names() if name != "spike_slab_regression"]
EVERY = [(kind.name, each.name) for kind in KINDS if "exact" in methods_for(kind) for each in kind.examples]
EXACT = [case for case in EVERY if case not in WITHOUT]


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        mu = pm.Normal("mu", np.float64(0), np.float64(PRIOR_SD))
        pm.Normal("y", mu, np.float64(1), observed=Y)
    return model


def tree_of(scale=1.0, shift=0.0):
    """Independent draws of the posterior, or of one that is wider or elsewhere."""
    sd = (1 / PRIOR_SD**2 + len(Y)) ** -0.5
    draws = sd**2 * Y.sum() + sd * (shift + scale * np.random.default_rng(1).standard_normal(SHAPE))
    return xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": (("chain", "draw"), draws)})})


def test_the_evidence_is_that_of_scipy(model):
    answer = bz.bridge(tree_of(), model)
    exact = scipy.stats.multivariate_normal(cov=np.eye(len(Y)) + PRIOR_SD**2).logpdf(Y)
    assert answer.status == "ok"
    assert abs(answer.log_evidence - exact) < 4 * answer.error < 0.02


@pytest.mark.parametrize(("scale", "shift"), [(0.7, 0.0), (1.4, 0.0), (1.0, 0.9)])
def test_draws_of_another_density_are_seen(model, scale, shift):
    answer = bz.bridge(tree_of(scale, shift), model)
    assert answer.status == "failed"
    assert np.isnan([answer.log_evidence, answer.error]).all()
    assert {check.name for check in answer.checks if check.verdict == "failed"} == {"bridge_functions"}


def test_right_draws_of_a_skewed_posterior_pass_at_many_seeds():
    with pm.Model() as model:
        pm.Gamma("rate", np.float64(3), np.float64(2))
    rng, z = np.random.default_rng(0), []
    for seed in range(40):
        draws = {"rate": (("chain", "draw"), rng.gamma(3, 1 / 2, SHAPE))}
        answer = bz.bridge(xr.DataTree.from_dict({"posterior": xr.Dataset(draws)}), model, seed)
        assert answer.status != "failed"  # below a thousandth for each
        z.append(answer.log_evidence / answer.error)  # the density is normalized
    assert abs(np.mean(z)) < 4 / 40**0.5
    assert 0.6 < np.std(z) < 1.4


def test_chains_that_fail_the_gate_give_no_evidence(model):
    tree = tree_of()
    tree["posterior"]["mu"][0] += 3.0
    answer = bz.bridge(tree, model)
    assert answer.status == "failed"
    assert "r_hat" in {check.name for check in answer.checks if not check.passed}


def test_what_has_no_evidence_is_refused(model):
    with pm.Model() as flat:
        pm.Flat("mu")
    with raises(bz.InputError, "undefined_evidence", "mu"):
        bz.bridge(tree_of(), flat)
    with pm.Model() as other:
        pm.Normal("tau")
    with raises(bz.InputError, "unknown_name", "tau"):
        bz.bridge(tree_of(), other)
    with raises(bz.InputError, "too_few_draws"):
        bz.bridge(tree_of().isel(draw=slice(0, 4)), model)


@pytest.mark.slow  # a density is compiled for each data set
@pytest.mark.parametrize(("name", "example"), EXACT)
def test_exact_evidences_of_the_zoo_are_within_three_and_a_half_errors(name, example):
    kind = bz.find(name)
    rows = bz.example(kind, example)
    tree = bz.fit(kind.weak(rows), rows, "exact", seed=1)
    answer = bz.bridge(tree, seed=1)
    assert answer.status == "ok"
    assert abs(answer.log_evidence - bz.facts(tree)["log_evidence"]) < 3.5 * answer.error  # 1 in 60 over all of them


MIXTURE = bz.find("gaussian_mixture")
ROWS = np.array([0.1, 0.9, 1.3, 2.1, 2.6, 5.0])


@pytest.mark.parametrize("components", [2, pytest.param(3, marks=pytest.mark.slow)])  # compiles a density
def test_exchangeable_components_have_the_evidence_of_all_their_orders(components):
    tree = bz.fit(MIXTURE(K=components), ROWS, "enumerate", seed=1)
    answer = bz.bridge(tree, seed=1)
    gap = answer.log_evidence - bz.facts(tree)["log_evidence"]
    assert answer.status != "failed"
    assert abs(gap) < 4 * answer.error < 0.3  # log 2 and log 6 are more


@pytest.mark.slow  # samples mixtures and hidden Markov models
@pytest.mark.parametrize("name", ["gaussian_mixture", "hmm_poisson", "mixture_of_regressions"])
def test_evidences_of_chains_are_those_of_importance_sampling(name):
    kind = bz.find(name)
    data = bz.example(kind)
    model = kind.weak(data)
    answer = bz.bridge(bz.fit(model, data, "nuts", seed=1))
    theirs = bz.select([model], data, loo=False).iloc[0]
    assert answer.status == "ok"
    assert abs(answer.log_evidence - theirs["log_evidence"]) < 4 * np.hypot(answer.error, theirs["evidence_se"])


@pytest.mark.slow  # samples
def test_factors_whose_signs_can_change_have_no_evidence_by_a_bridge():
    kind = bz.find("bayesian_pca")
    data = bz.read(kind, np.random.default_rng(0).normal(size=(12, 3)))
    tree = bz.fit(kind.weak(data), data, "nuts", seed=1)
    with raises(bz.InputError, "exchangeable_labels"):
        bz.bridge(tree)
