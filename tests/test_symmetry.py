"""Modes that no chain has visited, by the symmetry of the density: exchanged components and signs of factors."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.tools.draws.points import chains_of
from bayeszoo.tools.draws.symmetry import check_symmetry, symmetries
from tests.refusals import raises

SHAPE = (4, 500)
Y = np.random.default_rng(3).normal(size=(6, 3))
F = np.float64


def tree_of(**arrays):
    variables = {
        name: (("chain", "draw", *(f"{name}_{i}" for i in range(v.ndim - 2))), v) for name, v in arrays.items()
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})


@pytest.fixture(scope="module")
def mixture():
    with pm.Model() as model:  # compiled once, in a mode that is fast to compile
        w = pm.Dirichlet("w", np.ones(3))
        mu = pm.Normal("mu", F(0), F(10), shape=3)
        pm.NormalMixture("y", w=w, mu=mu, sigma=F(1), observed=Y[:, 0])
    return model


def draws_of_components(rng, visited):
    """Draws of three components a distance apart, in one order, or in orders at random."""
    w = rng.dirichlet([20, 30, 40], SHAPE)
    mu = np.array([-4, 0, 4]) + rng.normal(0, 0.3, (*SHAPE, 3))
    order = rng.permuted(np.tile(np.arange(3), (*SHAPE, 1)), axis=-1) if visited else np.tile(np.arange(3), (*SHAPE, 1))
    return {"w": np.take_along_axis(w, order, -1), "mu": np.take_along_axis(mu, order, -1)}


def test_components_that_no_chain_exchanges_are_seen_and_named(mixture):
    density, rng = Density(mixture, "FAST_COMPILE"), np.random.default_rng(0)
    check, change = check_symmetry(density, chains_of(tree_of(**draws_of_components(rng, visited=False))))
    assert (check.verdict, check.value) == ("failed", pytest.approx(np.sqrt(2000)))
    assert "w" in change
    assert "mu" in change
    known = list(symmetries(density, chains_of(tree_of(**draws_of_components(rng, visited=False)))))
    assert len(known) == 2  # neighbours, of both variables together; of one alone the density changes


def test_draws_of_all_orders_pass_at_many_seeds(mixture):
    density = Density(mixture, "FAST_COMPILE")
    draws = [draws_of_components(np.random.default_rng(seed), visited=True) for seed in range(40)]
    assert all(check_symmetry(density, chains_of(tree_of(**each)))[0].passed for each in draws)  # .04 of one alarm


def test_signs_of_factors_are_a_symmetry_and_effects_of_groups_are_none():
    with pm.Model() as factors:
        loadings, scores = pm.Normal("L", F(0), F(1), shape=(3, 2)), pm.Normal("z", F(0), F(1), shape=(6, 2))
        pm.Normal("y", scores @ loadings.T, F(0.5), observed=Y)
    rng = np.random.default_rng(1)
    tree = tree_of(L=rng.normal(1, 0.1, (*SHAPE, 3, 2)), z=rng.normal(size=(*SHAPE, 6, 2)))
    known = {each.change: each.z for each in symmetries(Density(factors, "FAST_COMPILE"), chains_of(tree))}
    assert len(known) == 3  # both factors exchanged, all signs, the signs of one factor
    assert sum(z > 40 for z in known.values()) == 2
    with pm.Model() as groups:
        effects = pm.Normal("effects", F(0), F(1), shape=6)
        pm.Normal("y", effects, F(1), observed=Y[:, 0])
    tree = tree_of(effects=rng.normal(size=(*SHAPE, 6)))
    assert not list(symmetries(Density(groups, "FAST_COMPILE"), chains_of(tree)))


@pytest.mark.slow  # the density is compiled for the gradient, which the bridge calls some thousand times
def test_the_gate_warns_of_one_mode_and_the_bridge_gives_no_evidence_of_it():
    with pm.Model() as model:
        w, z = pm.Normal("w", F(0), F(1)), pm.Normal("z", F(0), F(1))
        pm.Normal("y", w * z, F(0.1), observed=F(3))
        tree = pm.sample(
            500, chains=4, initvals={"w": 1.7, "z": 1.7}, random_seed=1, progressbar=False, jitter_max_retries=0
        )
    del tree["sample_stats"]
    both = np.abs(tree["posterior"].to_dataset()[["w", "z"]])
    answer = bz.judge(xr.DataTree.from_dict({"posterior": both}), model)
    assert "symmetry_z" in {check.name for check in answer.checks if check.verdict == "caution"}
    with raises(bz.InputError, "unvisited_mode"):
        bz.bridge(xr.DataTree.from_dict({"posterior": both}), model)
