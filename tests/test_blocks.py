"""Identities of conjugate blocks, of one law and of many side by side: the same for every block."""

import itertools
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import stats

from bayeszoo.distributions.conjugate.bernoulli import Chance
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.conjugate.regressions import Regressions
from bayeszoo.distributions.structures import Matrices
from bayeszoo.errors import NumericalError
from bayeszoo.families.classes.words import WordsInTurn
from bayeszoo.families.mixtures.gaussian_components import GaussianComponents
from bayeszoo.families.mixtures.sticks import Sticks
from tests.blocks import (
    AXES,
    MADE,
    N,
    both,
    bug,
    candidate_gap,
    case,
    codes,
    divergence_error,
    each_case,
    events,
    expectation_error,
    failures,
    ones,
    regressions,
    same,
    some,
    stationary_gap,
    total,
    variance_known,
    vectors,
    yes_no,
)


@each_case
def test_candidate_identity(kind, axes):
    block, rows, rng = case(kind, axes)
    assert candidate_gap(block, rows, rng) < 1e-9


@each_case
def test_chain_rule(kind, axes):
    """Evidence is the product of the predictive densities of each row given those before."""
    block, rows, rng = case(kind, axes)
    last = axes[-1] if axes else 1
    which, whole, later = rng.integers(0, last, N), 0.0, block
    hot = np.eye(last)[which].reshape((N, *[1] * (len(axes) - 1), last)[: 1 + len(axes)])
    weights = np.broadcast_to(hot, (N, *axes))
    for i in range(N):
        row = some(rows, [i])
        own = later.log_predictive(row)[0]
        whole = whole + (own[..., which[i]].sum() if axes else own)
        later = later.updated(later.statistics(row, weights[[i]]))
    np.testing.assert_allclose(whole, block.log_evidence(block.statistics(rows, weights)).sum(), rtol=1e-9, atol=1e-9)


@each_case
def test_updated_twice_is_once_and_statistics_are_taken_away(kind, axes):
    block, rows, rng = case(kind, axes)
    weights = rng.uniform(0.2, 2.0, (N, *axes))
    first, second = ((some(rows, part), weights[part]) for part in (slice(5), slice(5, None)))
    parts = [block.statistics(*part) for part in (first, second)]
    whole = block.statistics(rows, weights)
    same(block.updated(parts[0]).updated(parts[1]), block.updated(whole))
    same(block.updated(parts[0] + parts[1]), block.updated(whole))
    same(block.updated(whole - parts[1]), block.updated(parts[0]), rtol=1e-8)
    same(block.updated(whole.discounted(0.5)), block.updated(block.statistics(rows, weights / 2)))


@each_case
def test_a_replicate_is_the_block_without_axes(kind, axes):
    block, rows, rng = case(kind, axes)
    if not axes or kind == "tied":
        block, rows, rng = case("full", (2, 3))
        axes = (2, 3)
    weights = rng.uniform(0.2, 2.0, (N, *axes))
    params = block.rvs((4,), rng)
    sums, densities = block.statistics(rows, weights), block.log_density(params, rows)
    for index in np.ndindex(axes):
        one = block[index]
        own = one.statistics(rows, weights[(slice(None), *index)])
        np.testing.assert_allclose(one.log_evidence(own), block.log_evidence(sums)[index], rtol=1e-10)
        same(one.updated(own), block.updated(sums)[index])
        at = {name: values[(slice(None), *index)] for name, values in params.items()}
        np.testing.assert_allclose(one.log_density(at, rows), densities[(..., *index)], rtol=1e-10)
        np.testing.assert_allclose(one.logpdf(at), block.log_each(params)[(..., *index)], rtol=1e-10)
        np.testing.assert_allclose(
            one.expected_log_density(rows), block.expected_log_density(rows)[(..., *index)], rtol=1e-10
        )


@each_case
def test_divergence_is_that_of_draws_and_zero_of_itself(kind, axes):
    block, rows, rng = case(kind, axes)
    assert divergence_error(block, rows, rng) < 4.5
    assert abs(block.divergence(block)) < 1e-10


@each_case
def test_expected_log_density_is_that_of_draws(kind, axes):
    block, rows, rng = case(kind, axes)
    block = block.updated(block.statistics(rows, ones(rows, axes)))  # whose draws have moments
    assert expectation_error(block, rows, rng) < 5.5


@each_case
def test_pairs_sum_to_the_permuted_density(kind, axes):
    block, _, rng = case(kind, axes)
    if not axes:
        return
    params = block.rvs((4,), rng)
    pairs = block.log_pairs(params)
    assert pairs.shape == (4, *axes, axes[-1])
    for order in itertools.permutations(range(axes[-1])):
        permuted = replace(
            block,
            **{
                f.name: np.take(values, order, axis=len(axes) - 1)
                for f in fields(block)
                if isinstance(values := getattr(block, f.name), np.ndarray) and f.name not in block.shared
            },
        )
        summed = total(pairs[..., list(order), range(axes[-1])].sum(axis=-1), axes[:-1])
        np.testing.assert_allclose(summed, permuted.logpdf(params), rtol=1e-9, atol=1e-9)


MISSING = {
    **{"codes": -1, "tables": -1, "yes or no": -1, "trials": -1, "events": -1, "failures": -1},
    **{"mean and variance": np.nan, "mean and precision": np.nan, "mean known": np.nan, "variance known": np.nan},
}


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("kind", MISSING)
def test_missing_rows_change_nothing(kind, axes):
    block, rows, rng = case(kind, axes)
    gone = np.array([0, 3, 11])
    left = np.setdiff1d(np.arange(N), gone)
    rows = {name: values.copy() for name, values in rows.items()}
    rows["x"][gone] = MISSING[kind]
    params = block.rvs((3,), rng)
    for density in (
        block.log_density(params, rows),
        block.expected_log_density(rows)[None],
        block.log_predictive(rows)[None],
    ):
        assert np.all(density[:, gone] == 0)
    sums = block.statistics(rows, ones(rows, axes)), block.statistics(some(rows, left), ones(some(rows, left), axes))
    np.testing.assert_allclose(*(block.log_evidence(each) for each in sums), rtol=1e-12)


@each_case
def test_mode_and_mle_are_maxima(kind, axes):
    block, rows, _ = case(kind, axes)
    sums = block.statistics(rows, ones(rows, axes))
    later = block.updated(sums)
    mode, mle = later.mode(), block.mle(sums)
    assert stationary_gap(block, mode, later.logpdf) < 1e-9

    def likelihood(params):
        return float(np.sum(block.log_density(params, rows)))

    assert stationary_gap(block, mle, likelihood) < 1e-9


@each_case
def test_marginals_and_covariance_are_those_of_draws(kind, axes):
    block, rows, rng = case(kind, axes)
    later = block.updated(block.statistics(rows, ones(rows, axes)))
    draws = later.rvs((20_000,), rng)
    posterior = later.posterior()
    flat = []
    for name, marginal in posterior.items():
        levels = marginal.cdf(draws[name][:2000])
        for index in np.ndindex(levels.shape[1:]):
            assert stats.kstest(levels[(slice(None), *index)], "uniform").pvalue > 1e-5, (name, index)
        flat.append(draws[name].reshape(20_000, -1))
    matrix, together = posterior.covariance(), np.concatenate(flat, axis=1)
    drawn = np.cov(together.T).reshape(matrix.shape)
    scale = np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    assert np.max(np.abs(drawn - matrix) / scale) < 0.12


def test_densities_are_scipys():
    rng = np.random.default_rng(1)
    block, _ = codes(rng, ())
    p = block.rvs((), rng)["p"]
    assert block.logpdf({"p": p}) == pytest.approx(stats.dirichlet(block.alpha).logpdf(p), rel=1e-12)
    block, _ = yes_no(rng, ())
    assert block.logpdf({"chance": 0.3}) == pytest.approx(stats.beta(block.a, block.b).logpdf(0.3), rel=1e-12)
    block, rows = events(rng, ())
    assert block.logpdf({"rate": 1.3}) == pytest.approx(stats.gamma(block.a, scale=1 / block.b).logpdf(1.3), rel=1e-12)
    mass = stats.poisson(1.3 * rows["exposure"]).logpmf(rows["x"])
    np.testing.assert_allclose(block.log_density({"rate": 1.3}, rows), mass, rtol=1e-11)
    block, rows = failures(rng, ())
    mass = stats.nbinom(1.5 * rows["exposure"], 0.3).logpmf(rows["x"])
    np.testing.assert_allclose(block.log_density({"chance": 0.3}, rows), mass, rtol=1e-11)
    block, rows = both(rng, ())
    of_variance = stats.invgamma(block.a, scale=block.b).logpdf(1.7)
    of_mean = stats.norm(block.m, math.sqrt(1.7 / block.kappa)).logpdf(0.4)
    assert block.logpdf({"mean": 0.4, "variance": 1.7}) == pytest.approx(of_mean + of_variance, rel=1e-12)
    block, rows = vectors(Matrices(2))(rng, ())
    params = block.rvs((), rng)
    expected = stats.invwishart(float(block.nu), block.psi).logpdf(params["covariance"])
    expected += stats.multivariate_normal(block.m, params["covariance"] / block.kappa).logpdf(params["mean"])
    assert block.logpdf(params) == pytest.approx(expected, rel=1e-11)
    block_of_lines, design = regressions(rng, ())
    lines = block_of_lines.rvs((), rng)
    of_weights = np.linalg.inv(block_of_lines.root.T @ block_of_lines.root) * lines["sigma2"]
    density = stats.multivariate_normal(block_of_lines.m, of_weights).logpdf(lines["w"])
    density += stats.invgamma(block_of_lines.a, scale=block_of_lines.b).logpdf(lines["sigma2"])
    assert block_of_lines.logpdf(lines) == pytest.approx(density, rel=1e-11)
    outcomes = stats.norm(design["terms"] @ lines["w"], np.sqrt(lines["sigma2"])).logpdf(design["x"])
    np.testing.assert_allclose(block_of_lines.log_density(lines, design), outcomes, rtol=1e-11)
    rows_density = stats.multivariate_normal(params["mean"], params["covariance"]).logpdf(rows["x"])
    np.testing.assert_allclose(block.log_density(params, rows), rows_density, rtol=1e-11)


SEEDED = {
    "conflict forgotten": (both, {"_growth": lambda b, s: s.scatter}, candidate_gap, 1e-3),
    "half a count": (codes, {"updated": lambda b, s: replace(b, alpha=b.alpha + s.counts / 2)}, candidate_gap, 1e-3),
    "rate by rows": (events, {"updated": lambda b, s: replace(b, a=b.a + s.events, b=b.b + N)}, candidate_gap, 1e-3),
    "rate drawn as a scale": (
        events,
        {"rvs": lambda b, size, rng: {"rate": rng.standard_gamma(b.a, size) * b.b}},
        divergence_error,
        10,
    ),
    "divergence without the mean": (
        variance_known,
        {"divergence": lambda b, prior: 0.0},
        divergence_error,
        10,
    ),
    "least squares in place of the posterior": (
        regressions,
        {"updated": lambda b, s: replace(Regressions.updated(b, s), m=b.mle(s)["w"])},
        candidate_gap,
        1e-3,
    ),
    "misfit without the prior": (
        regressions,
        {"updated": lambda b, s: replace(Regressions.updated(b, s), b=b.b + s.n * b.mle(s)["sigma2"] / 2)},
        candidate_gap,
        1e-3,
    ),
    "lines known for certain": (regressions, {"_spread": lambda b, rows: 0.0}, expectation_error, 10),
    "plug-in expectation": (
        both,
        {"expected_log_density": lambda b, rows: b.log_density(b.typical(), rows)},
        expectation_error,
        10,
    ),
}


@pytest.mark.parametrize(("make", "steps", "measure", "least"), SEEDED.values(), ids=SEEDED)
def test_seeded_bugs_are_seen(make, steps, measure, least):
    rng = np.random.default_rng(5)
    block, rows = make(rng, ())
    assert measure(bug(block, **steps), rows, rng) > least


def test_every_block_has_a_case():
    def kinds(kind):
        return {kind} | {further for own in kind.__subclasses__() for further in kinds(own)}

    own = {kind for kind in kinds(Block) if kind.__module__.startswith("bayeszoo.")}
    own -= {Block, Chance, GaussianComponents, Sticks, WordsInTurn}  # in test_dp_mixture, test_naive_bayes_text
    assert own == {type(make(np.random.default_rng(0), (2,))[0]) for make in MADE.values()}


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind != "tied"])
def test_no_rows_are_the_prior_and_have_no_maximum(kind):
    block, rows, _ = case(kind, (3,))
    none = some(rows, slice(0))
    sums = block.statistics(none, np.ones((0, 3)))
    same(block.updated(sums), block)
    assert np.all(block.log_evidence(sums) == 0)
    with pytest.raises(NumericalError):
        block.mle(sums)
