"""Blocks as parts of models: many categories, known laws, and features side by side."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from bayeszoo.distributions.conjugate.dirichlet import log_dirichlet_ratio, log_ratio_where_seen
from bayeszoo.distributions.conjugate.law import Known
from bayeszoo.distributions.conjugate.product import Features, Several
from bayeszoo.distributions.statistics.counts import Counts
from tests.blocks import (
    AXES,
    MADE,
    N,
    case,
)


@pytest.mark.parametrize("axes", AXES)
def test_entries_sum_to_the_density_of_permuted_entries(axes):
    block, _, rng = case("codes", axes)
    block = block.updated(Counts(rng.integers(0, 50, block.alpha.shape)))
    params = block.rvs((5,), rng)
    entries = block.log_entries(params)
    for order in itertools.permutations(range(4)):
        permuted = replace(block, alpha=block.alpha[..., order])
        assert np.allclose(entries[:, order, range(4)].sum(axis=-1), permuted.logpdf(params), rtol=1e-11)
    assert np.all(np.isfinite(block.log_entries({"p": np.eye(4)[0] * np.ones(block.alpha.shape)})))


def test_evidence_of_what_occurs_is_that_of_all_categories():
    rng = np.random.default_rng(0)
    alpha, counts = rng.uniform(0.01, 2.0, 200), rng.poisson(0.2, (5, 200)) * rng.poisson(3.0, (5, 200))
    assert log_ratio_where_seen(alpha, counts) == pytest.approx(log_dirichlet_ratio(alpha, counts).sum(), rel=1e-12)
    assert log_ratio_where_seen(alpha, 0 * counts) == 0


@pytest.mark.parametrize("kind", ["mean and variance", "mean and precision", "mean known", "variance known"])
def test_expected_squares_and_log_precision_are_the_expected_log_density(kind):
    block, rows, _ = case(kind, (3,))
    densities = (block.expected_log_precision - math.log(2 * math.pi) - block.expected_squares(rows)) / 2
    assert np.allclose(densities, block.expected_log_density(rows), rtol=1e-12)


def test_a_known_law_is_its_likelihood():
    block, rows, rng = case("mean and variance", (3,))
    params = block.rvs((), rng)
    law = Known(block, params)
    weights = np.eye(3)[rng.integers(0, 3, N)]
    own = law.log_evidence(law.statistics(rows, weights))
    np.testing.assert_allclose(own, (weights * block.log_density(params, rows)).sum(axis=0), rtol=1e-12)
    assert law.updated(law.statistics(rows, weights)) is law
    sets = rng.integers(0, 2, (N, 5, 1)).astype(float)
    expected = np.einsum("ns,nk->sk", sets[..., 0], block.log_density(params, rows))
    np.testing.assert_allclose(law.statistics(rows, sets).value, expected, rtol=1e-12)


def test_features_add_up():
    rng = np.random.default_rng(4)
    made = {name: MADE[name](rng, (3,)) for name in ("codes", "yes or no", "events", "mean and variance", "full")}
    laws = [
        replace(block, column=name, names=tuple(f"{n} of {name}" for n in block.names))
        for name, (block, _) in made.items()
    ]
    rows = {name: own["x"] for name, (_, own) in made.items()} | {"exposure": made["events"][1]["exposure"]}
    features, weights = Features(tuple(laws)), rng.uniform(size=(N, 3))
    sums = features.statistics(rows, weights)
    assert isinstance(sums, Several)
    later = features.updated(sums)
    params = later.rvs((2,), rng)
    assert features.log_density(params, rows).shape == (2, N, 3)
    expected = sum(law.log_evidence(law.statistics(rows, weights)) for law in laws)
    np.testing.assert_allclose(features.log_evidence(sums), expected, rtol=1e-12)
    whole = features.logpdf(params) + np.sum(weights * features.log_density(params, rows), axis=(-1, -2))
    np.testing.assert_allclose(whole - later.logpdf(params), features.log_evidence(sums).sum(), rtol=1e-9)
    assert later.divergence(features) > 0
    assert set(later.posterior()) == set(features.names)
