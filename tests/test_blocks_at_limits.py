"""Conjugate blocks where numbers are extreme or arrays unusual, and ranks of prior draws among posterior draws."""

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from bayeszoo.distributions.conjugate import categorical
from bayeszoo.distributions.conjugate.bernoulli import Bernoulli
from bayeszoo.distributions.conjugate.categorical import Categorical, Categoricals
from bayeszoo.distributions.conjugate.dirichlet import divergence, log_dirichlet_ratio
from bayeszoo.distributions.conjugate.negative_binomial import NegativeBinomial
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.conjugate.regressions import Regressions
from bayeszoo.distributions.conjugate.tables import Tables
from bayeszoo.distributions.special import log_beta
from bayeszoo.distributions.statistics.events import Events
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.distributions.structures import Matrices, Scalar, Structure
from bayeszoo.errors import InputError
from tests.blocks import AXES, MADE, N, bug, case, ones, same, some, stationary_gap, total
from tests.refusals import raises

# Ranks: parameters of the prior, rows given them, draws of the posterior given these

SIMULATIONS, DRAWS = 500, 19


def rows_given(block, params, rows, rng):
    """Draw rows by NumPy alone, of one law without axes."""
    values = [params[name] for name in block.names]
    if isinstance(block, Categoricals):
        return {"x": rng.multinomial(3, values[0], (N, len(values[0])))}
    if isinstance(block, Categorical):
        drawn = rng.multinomial(5 if rows["x"].ndim == 2 else 1, values[0], N)
        return {"x": drawn if rows["x"].ndim == 2 else drawn.argmax(axis=1)}
    if isinstance(block, Tables):
        return {"x": np.column_stack([rng.choice(own, N, p=values[0][list(own)]) for own in block.tables])}
    if isinstance(block, NegativeBinomial):
        return {**rows, "x": rng.negative_binomial(block.size * rows["exposure"], values[0])}
    if isinstance(block, Bernoulli):
        return {**rows, "x": rng.binomial(rows.get("trials", np.ones(N, int)), values[0])}
    if isinstance(block, Poisson):
        return {**rows, "x": rng.poisson(values[0] * rows["exposure"])}
    if isinstance(block, Normal):
        mean = block.m if block.mean_known else values[0]
        second = block.variance if block.variance is not None else values[-1]
        return {"x": mean + rng.normal(size=N) * second ** (-0.5 if block.precision else 0.5)}
    if isinstance(block, Regressions):
        return {**rows, "x": rows["terms"] @ values[0] + np.sqrt(values[1]) * rng.normal(size=N)}
    return {"x": rng.multivariate_normal(values[0], block.structure.matrix(values[1]), N)}


def least_p_of_ranks(block, rows, rng):
    """Return the least p-value that ranks of entries of the parameters, and of the log likelihood, are uniform."""
    ranks = []
    for _ in range(SIMULATIONS):
        truth = block.rvs((), rng)
        own = rows_given(block, truth, rows, rng)
        draws = block.updated(block.statistics(own, np.ones(N))).rvs((DRAWS,), rng)
        heights = [block.log_density(params, own).sum(axis=-1) for params in (truth, draws)]
        pairs = [(np.ravel(truth[name]), draws[name].reshape(DRAWS, -1)) for name in block.names]
        ranks.append(np.concatenate([(late < early).sum(axis=0) for early, late in [*pairs, _column(heights)]]))
    counts = [np.bincount(each, minlength=DRAWS + 1) for each in np.array(ranks).T]
    return min(stats.chisquare(each).pvalue for each in counts)


def _column(heights):
    return np.ravel(heights[0]), heights[1][:, None]


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind != "tied"])
def test_ranks_of_prior_draws_among_posterior_draws_are_uniform(kind):
    block, rows, rng = case(kind, ())
    assert least_p_of_ranks(block, rows, rng) > 1e-6


def least_p_of_levels(block, rows, rng):
    later = block.updated(block.statistics(rows, ones(rows, block.axes)))
    draws, marginals = later.rvs((3000,), rng), later.marginals()
    levels = [np.asarray(marginals[name].cdf(draws[name])).reshape(3000, -1) for name in later.names]
    return min(stats.kstest(each, "uniform").pvalue for each in np.concatenate(levels, axis=1).T)


def gain_at_mode(block, rows, rng):
    later = block.updated(block.statistics(rows, ones(rows, block.axes)))
    return stationary_gap(block, later.mode(), later.logpdf)


def kappa_plus_1(block, sums):
    return replace(super(type(block), block).updated(sums), kappa=block.kappa + 1)


SEEDED = {
    "rows ignored": ("codes", {"updated": lambda b, s: b}),
    "half of the scatter": ("mean and variance", {"_growth": lambda b, s: s.scatter / 2}),
    "exposure forgotten": ("events", {"updated": lambda b, s: replace(b, a=b.a + s.events, b=b.b + N)}),
    "failures forgotten": ("trials", {"updated": lambda b, s: replace(b, a=b.a + s.successes)}),
    "rows of a mean counted as one": ("full", {"updated": kappa_plus_1}),
}


@pytest.mark.parametrize(("kind", "steps"), SEEDED.values(), ids=SEEDED)
def test_seeded_bugs_are_seen_by_ranks(kind, steps):
    block, rows, rng = case(kind, ())
    assert least_p_of_ranks(bug(block, **steps), rows, rng) < 1e-6


def test_seeded_bugs_are_seen_by_levels_of_marginals_and_by_steps_from_the_mode():
    block, rows, rng = case("mean and precision", ())
    unit = {"marginals": lambda b: {"mean": stats.t(2 * b.a, b.m), "precision": stats.gamma(b.a, scale=1 / b.b)}}
    assert least_p_of_levels(block, rows, rng) > 1e-5
    assert least_p_of_levels(bug(block, **unit), rows, rng) < 1e-6
    no_jacobian = {"mode": lambda b: {"mean": b.m, "precision": (b.a - 1) / b.b}}  # nor what the mean adds
    assert gain_at_mode(block, rows, rng) < 1e-9
    assert gain_at_mode(bug(block, **no_jacobian), rows, rng) > 1e-7


# Numbers far apart, very large, and taken away


def exact_sums(y):
    with mp.workdps(50):
        numbers = [mp.mpf(float(value)) for value in y]
        mean = mp.fsum(numbers) / len(numbers)
        return mean, float(mp.fsum((value - mean) ** 2 for value in numbers))


@pytest.mark.parametrize("offset", [1e9, 1e12])
def test_moments_of_one_set_keep_their_digits_beside_a_far_one(offset):
    rng = np.random.default_rng(2)
    y = np.concatenate([rng.normal(size=40), offset + rng.normal(size=40)])
    weights = np.repeat(np.eye(2), 40, axis=0)
    pairs = np.stack([y, y[::-1]], axis=1)
    moments = Moments.weighted(y, weights)
    columns = Moments.weighted(pairs, weights, Structure(2))
    for k, own in enumerate(np.split(y, 2)):
        mean, scatter = exact_sums(own)
        assert moments.scatter[k] == pytest.approx(scatter, rel=1e-12)
        assert abs(float((mp.mpf(moments.mean[k]) - mean) + mp.mpf(moments.rest[k]))) < 1e-14
        assert columns.scatter[k, 0] == pytest.approx(scatter, rel=1e-12)


def kl_of_dirichlets(alpha, prior):
    with mp.workdps(60):
        a, b = ([mp.mpf(float(value)) for value in each] for each in (alpha, prior))
        constants = mp.loggamma(sum(a)) - mp.loggamma(sum(b)) + mp.fsum(mp.loggamma(x) for x in b)
        slopes = mp.fsum((x - y) * (mp.psi(0, x) - mp.psi(0, sum(a))) for x, y in zip(a, b, strict=True))
        return float(constants - mp.fsum(mp.loggamma(x) for x in a) + slopes)


DIRICHLETS = [
    ([1e12, 2e12], [1e12 + 1e6, 2e12]),
    ([1e9, 2e9, 3e9], [1e9 + 1e4, 2e9, 3e9]),
    ([1e6, 2e6, 0.5], [0.5, 0.5, 0.5]),
    ([1e-8, 3.0], [1e-8, 1e-8]),
    ([1e-200, 3.0], [1e-200, 1e-200]),
]


@pytest.mark.parametrize(("alpha", "prior"), DIRICHLETS)
def test_divergence_of_dirichlets_small_and_large(alpha, prior):
    exact = kl_of_dirichlets(alpha, prior)
    assert divergence(np.array(alpha), np.array(prior)) == pytest.approx(exact, rel=1e-9)


def error_of_divergence(total):
    """Error of a divergence of order 1 of categories whose concentrations add up to so much."""
    share, move = np.array([0.2, 0.3, 0.5]), np.array([-0.2, 0.08, 0.12])
    block, prior = (Categorical(("p",), "x", total * share + by * math.sqrt(total) * move) for by in (0, 1))
    return abs(block.divergence(prior) - kl_of_dirichlets(block.alpha, prior.alpha))


@pytest.mark.parametrize("size", [10.0, 3e3, 9.9e4, 1.1e5, 1e9, 1e12])
def test_divergences_of_categories_keep_their_digits_however_large_concentrations_are(size, monkeypatch):
    assert error_of_divergence(size) < 1e-9
    monkeypatch.setattr(categorical, "WEAK", np.inf)
    assert (error_of_divergence(size) < 1e-9) == (size < 1e6)


@pytest.mark.parametrize(("nu", "before"), [(5.0, 3.5), (1e9, 5.0), (1e12, 5.0), (4.0, 1e6)])
def test_divergence_of_inverse_wishart_distributions_small_and_large(nu, before):
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(2, 3, 3))
    psi, of_prior = (root @ root.T + np.eye(3) for root in roots)
    psi, of_prior = psi * nu, of_prior * before
    with mp.workdps(60):
        half, g = mp.mpf(nu) / 2, mp.mpf(before) / 2
        one, other = mp.matrix(psi.tolist()), mp.matrix(of_prior.tolist())
        exact = g * (mp.log(mp.det(one)) - mp.log(mp.det(other)))
        exact += half * (sum((other * one**-1)[i, i] for i in range(3)) - 3)
        for j in range(3):
            h, b = half - mp.mpf(j) / 2, g - mp.mpf(j) / 2
            exact += (h - b) * mp.psi(0, h) - mp.loggamma(h) + mp.loggamma(b)
        exact = float(exact)
    ours = Matrices(3).divergence(np.asarray(nu), np.linalg.cholesky(psi)[None], np.asarray(before), of_prior)
    assert float(ours) == pytest.approx(exact, rel=1e-11)


BETAS = [(1 / 3, 1e12, 2e12), (1 / 3 + 1e-7, 1e12, 2e12), (1e-20, 1.0, 1e20), (0.999999, 1e12, 1e6), (0.3, 2.0, 3.0)]


@pytest.mark.parametrize(("p", "a", "b"), BETAS)
def test_beta_densities_of_large_counts(p, a, b):
    with mp.workdps(60):
        x, c, d = mp.mpf(p), mp.mpf(a), mp.mpf(b)
        powers = (c - 1) * mp.log(x) + (d - 1) * mp.log(1 - x)
        exact = float(powers + mp.loggamma(c + d) - mp.loggamma(c) - mp.loggamma(d))
    block = Bernoulli(("chance",), "x", np.asarray(a), np.asarray(b))
    assert block.logpdf({"chance": p}) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.5, 1.5, 0.4, np.nan])
@pytest.mark.parametrize(("a", "b"), [(0.5, 2.0), (1.0, 1.0), (1.0, 3.0), (2.0, 0.5), (2.0, 3.0)])
def test_beta_densities_at_their_ends_are_scipys(p, a, b):
    np.testing.assert_allclose(log_beta(p, a, b), stats.beta(a, b).logpdf(p), rtol=1e-12, atol=1e-14)


def test_events_of_fractional_weights_are_taken_away_to_nothing():
    rng = np.random.default_rng(4)
    block = Poisson(("rate",), "x", np.asarray(1.5), np.asarray(0.5))
    for _ in range(300):
        weights, y = rng.uniform(size=3), rng.poisson(2.0, 3) * 1.0
        left = Events.weighted(y, np.ones(3), weights)
        for j in range(3):
            left = left - Events.weighted(y[[j]], np.ones(1), weights[[j]])
        assert left.events >= 0
        assert left.exposure >= 0
        assert abs(block.log_evidence(left)) < 1e-12


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12])
def test_events_of_fractional_weights_that_are_taken_away_leave_no_mass_above_1(size):
    rng = np.random.default_rng(5)
    block = Poisson(("rate",), "x", np.asarray(1.5), np.asarray(0.5))
    for _ in range(200):
        weights = rng.uniform(size=5) * 10.0 ** rng.integers(-9, 6, 5)
        y, exposure = rng.poisson(size, 5) * 1.0, np.ones(5)
        left = Events.weighted(y, exposure, weights)
        for j in range(4):
            left = left - Events.weighted(y[[j]], exposure[[j]], weights[[j]])
            assert min(left.events, left.exposure, left.deviance) >= 0
            assert left.peaks <= 0
            assert block.log_evidence(left) <= 1e-9


@pytest.mark.parametrize("axes", [(), (2,)])
def test_events_in_no_exposure_are_refused(axes):
    block = Poisson(("rate",), "x", np.full(axes, 1.5), np.full(axes, 0.5), "exposure")
    rows = {"x": np.array([2, 3, 0]), "exposure": np.array([1.0, 0.0, 0.0])}
    with raises(InputError, "events_without_exposure", "2"):
        block.statistics(rows, np.ones((3, *axes)))
    of_others = block.statistics(rows, np.ones((3, *axes)) * np.array([1.0, 0.0, 1.0]).reshape(3, *[1] * len(axes)))
    np.testing.assert_allclose(block.log_evidence(of_others), block.log_predictive(rows)[0], rtol=1e-12)
    assert np.all(block.log_predictive(rows)[1] == -np.inf)


def test_means_are_known_in_all_laws_or_in_none():
    block, rows, _ = case("mean and variance", (2,))
    with raises(InputError, "out_of_range", "kappa"):
        replace(block, kappa=np.array([1.0, np.inf]))
    known = replace(block, names=("variance",), kappa=np.full(2, np.inf))
    assert np.isfinite(known.log_evidence(known.statistics(rows, ones(rows, (2,))))).all()


def test_rows_of_weight_0_have_no_say_in_events():
    y, exposure, weights = np.array([3.0, 5.0, 2.0]), np.array([1.0, 0.0, 2.0]), np.array([1.0, 0.0, 1.0])
    sums, expected = Events.weighted(y, exposure, weights), Events.of(y[[0, 2]], exposure[[0, 2]])
    for name in ("events", "exposure", "peaks", "deviance"):
        assert getattr(sums, name) == pytest.approx(getattr(expected, name), rel=1e-14)


@pytest.mark.parametrize("alpha", [1e-8, 1e-200])
def test_evidence_of_counts_trials_and_numbers_under_tiny_priors(alpha):
    tiny = np.asarray(alpha)
    y, x, z = np.array([0, 3, 1]), np.array([0, 1, 1]), np.array([0.3, -1.0, 2.0])
    poisson, coin = Poisson(("rate",), "x", tiny, tiny), Bernoulli(("chance",), "x", tiny, tiny)
    normal = Normal(("mean", "variance"), "x", np.asarray(0.0), tiny, tiny, tiny)
    with mp.workdps(450):
        t, n = mp.mpf(alpha), mp.mpf(3)
        of_counts = mp.loggamma(t + 4) - mp.loggamma(t) + t * mp.log(t) - (t + 4) * mp.log(t + 3) - mp.log(6)
        of_coin = mp.log(mp.beta(t + 2, t + 1) / mp.beta(t, t))
        numbers = [mp.mpf(float(value)) for value in z]
        mean = sum(numbers) / 3
        b = t + sum((value - mean) ** 2 for value in numbers) / 2 + t * 3 / (2 * (t + 3)) * mean**2
        of_numbers = mp.loggamma(t + n / 2) - mp.loggamma(t) + t * mp.log(t) - (t + n / 2) * mp.log(b)
        of_numbers += mp.log(t / (t + 3)) / 2 - n / 2 * mp.log(2 * mp.pi)
    exact = zip((poisson, coin, normal), (y, x, z), (of_counts, of_coin, of_numbers), strict=True)
    for block, column, value in exact:
        evidence = block.log_evidence(block.statistics({"x": column}, np.ones(3)))
        assert float(evidence) == pytest.approx(float(value), rel=1e-12)


# Shapes: weights of length 1, indices, no rows, contexts


@pytest.mark.parametrize("axes", [(3,), (2, 3)])
@pytest.mark.parametrize("kind", MADE)
def test_weights_of_length_1_stand_for_all_laws(kind, axes):
    block, rows, rng = case(kind, axes)
    weights = rng.uniform(0.5, 2.0, (N, *(1,) * len(axes)))
    short, whole = (block.statistics(rows, each) for each in (weights, np.broadcast_to(weights, (N, *axes))))
    np.testing.assert_allclose(block.log_evidence(short), block.log_evidence(whole), rtol=1e-12)
    same(block.updated(short), block.updated(whole))


@pytest.mark.parametrize("kind", MADE)
def test_an_index_takes_part_of_the_axes(kind):
    block, rows, rng = case(kind, (2, 3))
    params = block.rvs((), rng)
    for i in range(2):
        assert block[i].axes == (3,)
        own = {name: values[i] for name, values in params.items()}
        np.testing.assert_allclose(block[i].log_each(own), block.log_each(params)[i], rtol=1e-12)
    assert block[0, 1].axes == ()
    later = case(kind, (2, 3))[0].updated(block.statistics(rows, ones(rows, (2, 3))))[1, 2]
    assert later.axes == ()
    assert later[None].axes == (1,)


def test_one_law_of_tied_ones_has_the_covariance_for_itself():
    block, rows, _ = case("tied", (3,))
    own, weights = block[1], np.zeros((N, 3))
    weights[:, 1] = 1.0
    assert not own.tied
    alone = own.log_evidence(own.statistics(rows, np.ones(N)))
    together = block.log_evidence(block.statistics(rows, weights)).sum()
    assert alone == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("kind", MADE)
def test_no_rows_change_nothing_on_any_axes(kind, axes):
    if kind == "tied" and not axes:
        axes = (1,)
    block, rows, rng = case(kind, axes)
    none = some(rows, slice(0))
    sums = block.statistics(none, np.ones((0, *axes)))
    same(block.updated(sums), block)
    assert np.all(block.log_evidence(sums) == 0)
    assert block.log_predictive(none).shape == (0, *axes)
    assert block.log_density(block.rvs((2,), rng), none).shape == (2, 0, *axes)


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("kind", [kind for kind in MADE if kind != "tied"])
def test_predictive_of_a_row_is_the_evidence_of_the_row(kind, axes):
    block, rows, _ = case(kind, axes)
    each = block.log_predictive(rows)
    for i in range(N):
        row = some(rows, [i])
        np.testing.assert_allclose(each[i], block.log_evidence(block.statistics(row, np.ones((1, *axes)))), rtol=1e-10)


def test_missing_codes_are_of_no_context():
    block = Categorical(("p",), "x", np.ones((3, 4)))
    rng = np.random.default_rng(6)
    context, codes = rng.integers(0, 3, 50), rng.integers(-1, 4, 50)
    counts = block.statistics_by(context, {"x": codes}).counts
    np.testing.assert_array_equal(counts, block.statistics({"x": codes}, np.eye(3)[context]).counts)


def test_columns_called_as_exposure_and_trials_are_read_by_those_that_ask():
    """A feature of that name is a feature."""
    rng = np.random.default_rng(7)
    rows = {"exposure": rng.poisson(3.0, N), "trials": rng.integers(0, 2, N), "x": rng.integers(0, 2, N)}
    others = {"exposure": np.full(N, 9), "trials": np.full(N, 9), "x": rows["x"]}
    for block in (MADE["yes or no"](rng, ())[0], Poisson(("rate",), "x", np.asarray(2.0), np.asarray(1.0))):
        np.testing.assert_array_equal(block.log_predictive(rows), block.log_predictive(others))


@pytest.mark.parametrize("structure", [Matrices(2), Structure(2), Scalar(2)])
def test_moments_on_leading_axes_pool_and_part(structure):
    rng = np.random.default_rng(8)
    Y, weights = 1e6 + rng.normal(size=(N, 2)), rng.uniform(0.2, 2.0, (N, 2, 3))
    parts = [Moments.weighted(Y[at], weights[at], structure) for at in (slice(5), slice(5, None))]
    whole = Moments.weighted(Y, weights, structure)
    for sums, expected in ((parts[0] + parts[1], whole), (whole - parts[1], parts[0])):
        np.testing.assert_allclose(sums.n, expected.n, rtol=1e-12)
        np.testing.assert_allclose(sums.scatter, expected.scatter, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose((sums.mean - expected.mean) + (sums.rest - expected.rest), 0, atol=1e-11)
    half, expected = whole.discounted(0.5), Moments.weighted(Y, weights / 2, structure)
    np.testing.assert_allclose(half.scatter, expected.scatter, rtol=1e-12)
    for i, k in np.ndindex(2, 3):
        own = Moments.weighted(Y, weights[:, i, k], structure)
        np.testing.assert_allclose(whole[i, k].scatter, own.scatter, rtol=1e-12)
    nothing = whole - whole
    assert np.all(nothing.n == 0)
    assert np.all(nothing.scatter == 0)


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
