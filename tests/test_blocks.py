"""Identities of conjugate blocks, of one law and of many side by side: the same for every block."""

import itertools
import math
from dataclasses import fields, replace

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from bayeszoo.distributions.conjugate.categorical import Bernoulli, Categorical
from bayeszoo.distributions.conjugate.law import Block, Known
from bayeszoo.distributions.conjugate.multivariate import MultivariateNormal
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.conjugate.product import Features, Several
from bayeszoo.distributions.dirichlet import log_dirichlet_ratio, log_ratio_where_seen
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.distributions.structures import Matrices, Scalar, Structure
from bayeszoo.errors import NumericalError

AXES = [(), (3,), (2, 3)]
N = 12


def numbers(rng, axes, low=0.7, high=3.0):
    return rng.uniform(low, high, axes)


def codes(rng, axes):
    return Categorical(("p",), "x", numbers(rng, (*axes, 4))), {"x": rng.integers(0, 4, N)}


def counts(rng, axes):
    return Categorical(("p",), "x", numbers(rng, (*axes, 3))), {"x": rng.integers(0, 5, (N, 3))}


def yes_no(rng, axes):
    return Bernoulli(("chance",), "x", numbers(rng, axes), numbers(rng, axes)), {"x": rng.integers(0, 2, N)}


def trials(rng, axes):
    total = rng.integers(1, 9, N)
    block = Bernoulli(("chance",), "x", numbers(rng, axes), numbers(rng, axes), "trials")
    return block, {"x": rng.binomial(total, 0.4), "trials": total}


def events(rng, axes):
    block = Poisson(("rate",), "x", numbers(rng, axes), numbers(rng, axes), "exposure")
    return block, {"x": rng.poisson(2.0, N), "exposure": rng.uniform(0.5, 2.0, N)}


def both(rng, axes):
    values = rng.normal(size=axes), *(numbers(rng, axes) for _ in range(3))
    return Normal(("mean", "variance"), "x", *values), {"x": rng.normal(1.0, 2.0, N)}


def mean_and_precision(rng, axes):
    block, rows = both(rng, axes)
    return replace(block, names=("mean", "precision"), precision=True), rows


def mean_known(rng, axes):
    block, rows = both(rng, axes)
    return replace(block, names=("variance",), kappa=np.full(axes, np.inf)), rows


def variance_known(rng, axes):
    block, rows = both(rng, axes)
    return replace(block, names=("mean",), variance=numbers(rng, axes)), rows


def vectors(structure, tied=False):
    def make(rng, axes):
        shape, of_all = structure.shape, axes[:-1] if tied else axes
        root = rng.normal(size=(*of_all, 2, 2))
        psi = structure.reduced(root @ root.mT + np.eye(2))
        m, kappa, nu = rng.normal(size=(*axes, 2)), numbers(rng, axes), numbers(rng, of_all, 3.0, 6.0)
        assert psi.shape == (*of_all, *shape)
        return MultivariateNormal(("mean", "covariance"), "x", m, kappa, nu, psi, structure), {
            "x": rng.normal(size=(N, 2))
        }

    return make


MADE = {
    **{"codes": codes, "counts": counts, "yes or no": yes_no, "trials": trials, "events": events},
    **{"mean and variance": both, "mean and precision": mean_and_precision},
    **{"mean known": mean_known, "variance known": variance_known},
    **{"full": vectors(Matrices(2)), "diagonal": vectors(Structure(2)), "spherical": vectors(Scalar(2))},
    "tied": vectors(Matrices(2), tied=True),
}
CASES = [(kind, axes) for kind in MADE for axes in AXES if kind != "tied" or axes]
each_case = pytest.mark.parametrize(("kind", "axes"), CASES, ids=lambda value: str(value))


def case(kind, axes):
    rng = np.random.default_rng([len(kind), *axes, 7])
    block, rows = MADE[kind](rng, axes)
    return block, rows, rng


def some(rows, index):
    return {name: values[index] for name, values in rows.items()}


def ones(rows, axes):
    return np.ones((len(rows["x"]), *axes))


def total(values, axes):
    return np.sum(values, axis=tuple(range(-len(axes), 0)))


def candidate_gap(block, rows, rng):
    """Log evidence less log prior and likelihood, plus the posterior's log density, at draws."""
    sums = block.statistics(rows, ones(rows, block.axes))
    later = block.updated(sums)
    params = later.rvs((5,), rng)
    likelihood = total(block.log_density(params, rows).sum(axis=-1 - len(block.axes)), block.axes)
    evidence = total(block.log_evidence(sums), block.axes)
    return np.max(np.abs(evidence - (block.logpdf(params) + likelihood - later.logpdf(params))))


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


def same(block, other, rtol=1e-9):
    for f in fields(block):
        values = getattr(block, f.name)
        if isinstance(values, np.ndarray | np.floating):
            np.testing.assert_allclose(values, getattr(other, f.name), rtol=rtol, atol=1e-12)


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


def divergence_error(block, rows, rng):
    """Monte Carlo errors between the divergence from the prior and the mean log ratio of draws."""
    later = block.updated(block.statistics(some(rows, slice(4)), ones(some(rows, slice(4)), block.axes)))
    params = later.rvs((4000,), rng)
    ratio = later.logpdf(params) - block.logpdf(params)
    return abs(later.divergence(block) - ratio.mean()) / (ratio.std() / math.sqrt(4000))


@each_case
def test_divergence_is_that_of_draws_and_zero_of_itself(kind, axes):
    block, rows, rng = case(kind, axes)
    assert divergence_error(block, rows, rng) < 4.5
    assert abs(block.divergence(block)) < 1e-10


def expectation_error(block, rows, rng):
    params = block.rvs((4000,), rng)
    densities = block.log_density(params, rows)
    gap = np.abs(densities.mean(axis=0) - block.expected_log_density(rows))
    return np.max(gap / (densities.std(axis=0) / math.sqrt(4000) + 1e-12))


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
    **{"codes": -1, "yes or no": -1, "trials": -1, "events": -1, "mean and variance": np.nan},
    **{"mean known": np.nan, "variance known": np.nan, "mean and precision": np.nan},
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


def stationary_gap(block, params, log_density):
    """Return how much higher the density is a small step away, in the parameters themselves."""
    height, gain = log_density(params), -np.inf
    rng = np.random.default_rng(3)
    for _ in range(60):
        for step in (1e-2, 1e-4):
            moved = {}
            for name, values in params.items():
                values = np.asarray(values)
                if name == "p":
                    other = values * np.exp(step * rng.normal(size=values.shape))
                    moved[name] = other / other.sum(axis=-1, keepdims=True)
                elif name == "covariance" and len(block.structure.shape) == 2:
                    turn = np.eye(2) + step * rng.normal(size=values.shape)
                    moved[name] = turn @ values @ turn.mT
                elif name == "mean":
                    moved[name] = values + step * rng.normal(size=values.shape)
                else:
                    moved[name] = values * np.exp(step * rng.normal(size=values.shape))
            gain = max(gain, float(log_density(moved) - height))
    return gain


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
    block, rows = both(rng, ())
    of_variance = stats.invgamma(block.a, scale=block.b).logpdf(1.7)
    of_mean = stats.norm(block.m, math.sqrt(1.7 / block.kappa)).logpdf(0.4)
    assert block.logpdf({"mean": 0.4, "variance": 1.7}) == pytest.approx(of_mean + of_variance, rel=1e-12)
    block, rows = vectors(Matrices(2))(rng, ())
    params = block.rvs((), rng)
    expected = stats.invwishart(float(block.nu), block.psi).logpdf(params["covariance"])
    expected += stats.multivariate_normal(block.m, params["covariance"] / block.kappa).logpdf(params["mean"])
    assert block.logpdf(params) == pytest.approx(expected, rel=1e-11)
    rows_density = stats.multivariate_normal(params["mean"], params["covariance"]).logpdf(rows["x"])
    np.testing.assert_allclose(block.log_density(params, rows), rows_density, rtol=1e-11)


# Extremes


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("kind", ["mean and variance", "mean and precision", "full", "diagonal", "spherical", "tied"])
@pytest.mark.parametrize(("offset", "scale"), [(1e9, 1.0), (0.0, 1e-9), (0.0, 1e9)])
def test_evidence_moves_with_units(kind, axes, offset, scale):
    """A number added to all rows changes nothing, and another unit the volume of each row alone."""
    if kind == "tied" and not axes:
        axes = (1,)
    block, rows, _ = case(kind, axes)
    rows = {"x": np.round(rows["x"] * 2**20) / 2**20}  # whose sum with the offset is exact
    columns = rows["x"].size // N
    if isinstance(block, Normal):
        moved = replace(block, m=block.m * scale + offset, b=block.b * scale**2)
    else:
        moved = replace(block, m=block.m * scale + offset, psi=block.psi * scale**2)
    same_centre = replace(block, m=(moved.m - offset) / scale)  # what the offset took from the prior's own centre
    evidences = [
        total(each.log_evidence(each.statistics(own, ones(own, axes))), axes)
        for each, own in ((same_centre, rows), (moved, {"x": rows["x"] * scale + offset}))
    ]
    jacobian = N * columns * math.prod(axes) * math.log(scale)
    assert evidences[0] - evidences[1] == pytest.approx(jacobian, rel=1e-9, abs=1e-6 if offset else 1e-9)


@pytest.mark.parametrize("alpha", [1e-8, 1e-200])
@pytest.mark.parametrize("own", [[3, 0, 0, 0, 0], [2, 5, 0, 0, 1], [0, 0, 0, 0, 0], [0, 10**6, 0, 4, 0]])
def test_evidence_of_tiny_concentrations(alpha, own):
    with mp.workdps(400):
        exact = mp.loggamma(5 * mp.mpf(alpha)) - mp.loggamma(5 * mp.mpf(alpha) + sum(own))
        exact += mp.fsum(mp.loggamma(mp.mpf(alpha) + c) - mp.loggamma(mp.mpf(alpha)) for c in own)
        exact = float(exact)
    assert log_dirichlet_ratio(np.full(5, alpha), own) == pytest.approx(exact, rel=1e-12, abs=1e-12)


# Known laws, and several side by side


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


# Seeded bugs: each must be seen


def bug(block, **steps):
    kind = type("Bug", (type(block),), steps)
    return kind(**{f.name: getattr(block, f.name) for f in fields(block)})


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


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind != "tied"])
def test_no_rows_are_the_prior_and_have_no_maximum(kind):
    block, rows, _ = case(kind, (3,))
    none = some(rows, slice(0))
    sums = block.statistics(none, np.ones((0, 3)))
    same(block.updated(sums), block)
    assert np.all(block.log_evidence(sums) == 0)
    with pytest.raises(NumericalError):
        block.mle(sums)


def test_every_block_has_a_case():
    def kinds(kind):
        return {kind} | {further for own in kind.__subclasses__() for further in kinds(own)}

    own = {kind for kind in kinds(Block) if kind.__module__.startswith("bayeszoo.distributions.")} - {Block}
    assert own == {type(make(np.random.default_rng(0), (2,))[0]) for make in MADE.values()}
