"""The entropy rate of hidden Markov chains: known limits, sums over all words, and a long sequence."""

import itertools

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.families.hmm import entropy_rate
from bayeszoo.families.hmm.entropy_rate import Normals, Poissons, rate_bounds, simulated_rate
from bayeszoo.families.markov.stationary import stationary


@pytest.fixture(autouse=True)
def _short_words(monkeypatch):
    """Leave out the longest words, which take most of the time."""
    monkeypatch.setattr(entropy_rate, "MOST_NUMBERS", 2**21)


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
    monkeypatch.setattr(entropy_rate, "LONGEST", 3)
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
    for _ in range(20_000):
        state = rng.choice(2, p=T[state])
        y.append(rng.choice(3, p=E[state]))
    data = {"y": np.array(y), "sequence": np.zeros(len(y), dtype=np.int64), "symbol": np.array(["a", "b", "c"])}
    params = {"initial": stationary(T), "transition": T, "emission": E}
    rate = -float(DICE(K=2).log_likelihoods(params, data)) / len(y)
    assert lower - 0.015 < rate < upper + 0.015


def test_a_fit_of_symbols_tells_the_rate_of_its_states_and_two_bounds():
    data = {
        "y": np.array([0, 1, 1, 0, 2]),
        "sequence": np.zeros(5, dtype=np.int64),
        "symbol": np.array(["a", "b", "c"]),
    }
    draws = {"initial": np.full((2, 2), 0.5), "transition": np.stack([T, T[::-1]]), "emission": np.stack([E, E])}
    told = DICE(K=2).entropies(draws, data)
    assert list(told) == ["entropy rate of the states", "entropy rate, at least", "entropy rate, at most"]
    assert all(values.shape == (2,) for values in told.values())
    assert DICE(K=2).simulated_entropies(draws, data, np.random.default_rng(0)) == {}


def _simulated(emissions, transition=T, error=0.006):
    """Return the entropy rate at one point, and its error, of few rows: the error asked for is larger than usual."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entropy_rate, "SMALL_ERROR", error)
        patch.setattr(entropy_rate, "CHAINS", 1000)
        known = simulated_rate(stationary(transition)[None], transition[None], emissions, np.random.default_rng(2))
    return known.values[0], known.error[0]


def test_counts_have_the_rate_of_their_words():
    rates = np.array([1.0, 6.0])
    counts = scipy.stats.poisson.pmf(np.arange(24), rates[:, None])  # what is beyond has a mass of 2e-8
    value, error = _simulated(Poissons(rates[None]))
    lower, upper = rate_bounds(stationary(T), T, counts)
    assert 0 < upper - lower < error < 0.006
    assert lower - 4 * error < value < upper + 4 * error


def test_numbers_have_the_rate_of_words_of_short_intervals():
    means, sds, width = np.array([[0.0], [2.0]]), np.array([[1.0], [0.5]]), 0.1
    places = np.arange(-6, 6, width)
    value, error = _simulated(Normals(means.T, np.square(sds.T)))
    bounds = rate_bounds(stationary(T), T, scipy.stats.norm.pdf(places, means, sds) * width)
    lower, upper = np.add(bounds, np.log(width))
    assert lower - 4 * error < value < upper + 4 * error < lower + 0.06


@pytest.mark.parametrize(("gap", "of_states"), [(0.0, 0.0), (100.0, 1.0)])
def test_states_that_rows_hide_or_show_whole(gap, of_states):
    """Rows that are alike in all states tell nothing of them, and rows far apart tell all."""
    often, variances = stationary(T), np.array([1.0, 1.0])
    value, error = _simulated(Normals(np.array([[0.0, gap]]), variances[None]))
    of_chain = sum(often[k] * scipy.stats.entropy(T[k]) for k in range(2))
    assert value == pytest.approx(scipy.stats.norm.entropy() + of_states * of_chain, abs=max(4 * error, 1e-9))


def test_known_parameters_of_numbers_have_no_axis_of_draws():
    model = bz.find("hmm_gaussian")(K=2, transition=tuple(map(tuple, T)), means=(0.0, 50.0))
    draws = {"initial": np.full((8, 2), 0.5), "variances": np.tile([1.0, 4.0], (8, 1))}
    rows = {"y": np.zeros(4), "sequence": np.zeros(4, dtype=np.int64)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entropy_rate, "MOST_STEPS", 250)
        known = model.simulated_entropies(draws, rows, np.random.default_rng(0))["entropy rate"]
    often = stationary(T)
    expected = sum(often[k] * (scipy.stats.entropy(T[k]) + scipy.stats.norm.entropy(scale=k + 1)) for k in range(2))
    assert known.values.shape == (8,)
    assert np.all(np.abs(known.values - expected) < 5 * known.error + 1e-3)


@pytest.fixture(scope="module")
def estimate():
    """Return a point estimate of a short series of counts."""
    model = bz.find("hmm_poisson")
    rows = bz.read(model, [1, 0, 2, 9, 7, 8, 1, 0, 0, 8, 9, 6])
    return bz.fit(model(K=2), rows, "em", seed=1)


def test_a_point_estimate_has_the_error_of_the_simulation(estimate, monkeypatch):
    monkeypatch.setattr(entropy_rate, "SMALL_ERROR", 0.01)
    frame = bz.entropy(estimate)
    assert frame.index.tolist() == ["entropy rate of the states", "entropy rate"]
    assert 0 < frame.loc["entropy rate", "mcse_mean"] <= 0.01
    assert np.isnan(frame.loc["entropy rate", "sd"])


def test_the_spread_is_withheld_where_it_is_that_of_the_simulation(estimate, monkeypatch):
    """Draws that are all alike have a spread of 0, and the simulation's is all that is seen."""
    tree = estimate.copy()
    alike = tree["posterior"].to_dataset().isel(chain=[0] * 4, draw=[0] * 50)
    alike = alike.assign_coords(chain=range(4), draw=range(50))
    tree["posterior"] = type(tree)(alike)
    tree.attrs |= {"kind": "approximate", "method": "vb"}
    monkeypatch.setattr(entropy_rate, "MOST_STEPS", 250)
    frame = bz.entropy(tree)
    known = frame.loc["entropy rate"]
    assert np.isfinite(known[["mean", "mcse_mean"]].astype(float)).all()
    assert known[["sd", "q025", "median", "q975", "mcse_sd"]].isna().all()
    assert frame.attrs["withheld"][-1].startswith("sd, quantiles of quantity entropy rate: ")
