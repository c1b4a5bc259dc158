"""Code lengths by normalized maximum likelihood against sums over all data, and the risk inflation criterion."""

import itertools
import math

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.distributions import complexity

SHARES, COIN, LINE = bz.find("dirichlet_multinomial"), bz.find("beta_bernoulli"), bz.find("linear_regression")


def compositions(n, K):
    """Every vector of K counts that add up to n."""
    return [c for c in itertools.product(range(n + 1), repeat=K) if sum(c) == n]


def summed(n, K):
    """The sum over all counts of how many sequences have them times the highest likelihood of one."""
    return sum(
        scipy.stats.multinomial.pmf(c, n, np.array(c) / n) for c in compositions(n, K)
    )  # a multinomial at its own shares


@pytest.mark.parametrize(("n", "K"), [(1, 2), (2, 2), (7, 2), (40, 2), (5, 3), (12, 3), (6, 4), (5, 6)])
def test_complexity_is_the_sum_over_all_data(n, K):
    assert complexity.multinomial(n, K) == pytest.approx(math.log(summed(n, K)), rel=1e-12)


@pytest.mark.parametrize("n", [10, 1000, 10**5])
def test_complexity_of_two_categories_by_an_incomplete_gamma_function(n):
    """Ramanujan's sum is e^n n^-n times the integral of t^n e^-t from n on."""
    log_scale = scipy.special.gammaln(n + 1) + n - n * math.log(n)
    expected = math.log(scipy.special.gammaincc(n + 1, n)) + log_scale
    assert complexity.multinomial(n, 2) == pytest.approx(expected, abs=1e-15 * n * math.log(n) + 1e-12)


def test_complexity_of_many_observations_is_rissanens():
    """(K - 1) / 2 log(n / (2 pi)) plus the log of the integral of the root of Fisher's information."""
    for K in (2, 3, 5):
        limit = (K - 1) / 2 * math.log(10**12 / (2 * math.pi)) + K / 2 * math.log(math.pi) - math.lgamma(K / 2)
        assert complexity.multinomial(10**12, K) == pytest.approx(limit, abs=1e-4)
    assert math.isnan(complexity.multinomial(10**14, 2))


def test_edges():
    assert complexity.multinomial(0, 5) == complexity.multinomial(9, 1) == 0.0
    assert complexity.multinomial(1, 7) == pytest.approx(math.log(7))


def test_code_lengths_of_all_sequences_are_those_of_a_distribution():
    total = 0.0
    for sequence in itertools.product("abc", repeat=4):
        counts = np.array([sequence.count(label) for label in "abc"])
        stats = SHARES().statistics({"counts": counts[None], "category": np.array(["a", "b", "c"])})
        total += math.exp(-SHARES().block(stats).normalized_length(stats))
    assert total == pytest.approx(1, rel=1e-12)


def test_the_table_has_it_for_one_chance_and_one_table_and_says_why_not_else():
    flips = [1, 0, 0, 1, 1, 1]
    table = bz.select({"flat": COIN(a=1, b=1), "Jeffreys": COIN(a=0.5, b=0.5)}, flips)
    best = 4 * math.log(4 / 6) + 2 * math.log(2 / 6)
    assert table["nml"].tolist() == pytest.approx([math.log(summed(6, 2)) - best] * 2)  # whatever the prior
    only = bz.select({"one": COIN()}, [1, 1, 1])
    assert only["nml"][0] == pytest.approx(math.log(summed(3, 2)))  # at the edge the best fit is certain
    others = bz.select({"mean": bz.find("normal_gamma")()}, [1.0, 2.0, 4.0])
    assert math.isnan(others["nml"][0])
    assert others["nml_from"][0].startswith("withheld")


def test_risk_inflation_charges_each_term_by_the_number_of_terms():
    rng = np.random.default_rng(1)
    data = {"y": rng.normal(size=30), "x": rng.normal(size=30)}
    models = {f"degree {d}": LINE(degree=d) for d in (1, 2, 4)}
    table = bz.select(models, data).set_index("model")
    for d in (1, 2, 4):
        row = table.loc[f"degree {d}"]
        assert row["ric"] == pytest.approx(2 * (d + 1) * math.log(5) - 2 * row["log_likelihood"], rel=1e-12)
    assert bz.select({"coin": COIN()}, [1, 0])["ric"].isna().all()
