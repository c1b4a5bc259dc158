"""The entropy rate of hidden Markov chains: limits that are known, all words, and a long sequence."""

import itertools

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.families.hmm.entropy_rate import rate_bounds
from bayeszoo.families.markov.stationary import stationary

DICE = bz.find("hmm_categorical")
T = np.array([[0.9, 0.1], [0.25, 0.75]])
E = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])


def test_states_that_are_seen_have_the_rate_of_their_chain():
    often = stationary(T)
    expected = sum(often[k] * scipy.stats.entropy(T[k]) for k in range(2))
    assert rate_bounds(often, T, np.eye(2)) == pytest.approx((expected, expected), abs=1e-9)


def test_states_that_do_not_matter_leave_the_entropy_of_a_symbol():
    both = np.tile(E[:1], (2, 1))
    assert rate_bounds(stationary(T), T, both) == pytest.approx([scipy.stats.entropy(E[0])] * 2, abs=1e-9)


def test_bounds_by_the_sum_over_all_words(monkeypatch):
    monkeypatch.setattr("bayeszoo.families.hmm.entropy_rate.LONGEST", 3)
    often = stationary(T)

    def probability(word, start):
        p = start * E[:, word[0]]
        for symbol in word[1:]:
            p = (p @ T) * E[:, symbol]
        return p.sum()

    def step(start):
        h = [
            scipy.stats.entropy([probability(w, start) for w in itertools.product(range(3), repeat=n)]) for n in (2, 3)
        ]
        return h[1] - h[0]

    lower = sum(often[k] * step(np.eye(2)[k]) for k in range(2))
    assert rate_bounds(often, T, E) == pytest.approx((lower, step(often)), abs=1e-12)


def test_a_long_sequence_lies_between_the_bounds():
    rng = np.random.default_rng(5)
    lower, upper = rate_bounds(stationary(T), T, E)
    assert 0 < upper - lower < 1e-3
    state, y = 0, []
    for _ in range(40_000):
        state = rng.choice(2, p=T[state])
        y.append(rng.choice(3, p=E[state]))
    data = {"y": np.array(y), "sequence": np.zeros(len(y), dtype=np.int64), "symbol": np.array(["a", "b", "c"])}
    params = {"initial": stationary(T), "transition": T, "emission": E}
    rate = -float(DICE(K=2).log_likelihoods(params, data)) / len(y)
    assert lower - 0.01 < rate < upper + 0.01


def test_a_fit_of_states_tells_their_rate_and_numbers_have_that_of_the_states_alone():
    data = {
        "y": np.array([0, 1, 1, 0, 2]),
        "sequence": np.zeros(5, dtype=np.int64),
        "symbol": np.array(["a", "b", "c"]),
    }
    draws = {"initial": np.full((2, 2), 0.5), "transition": np.stack([T, T[::-1]]), "emission": np.stack([E, E])}
    told = DICE(K=2).entropies(draws, data)
    assert list(told) == ["entropy rate of the states", "entropy rate, at least", "entropy rate, at most"]
    assert all(values.shape == (2,) for values in told.values())
    normal = bz.find("hmm_gaussian")(K=2, initial=(0.5, 0.5), transition=tuple(map(tuple, T)))
    params = {"means": np.zeros((3, 2)), "variances": np.ones((3, 2))}
    told = normal.entropies(params, {"y": np.zeros(4), "sequence": np.zeros(4, dtype=np.int64)})
    assert list(told) == ["entropy rate of the states"]
