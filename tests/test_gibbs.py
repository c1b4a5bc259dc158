"""Collapsed Gibbs sampling of topics, against every assignment of the words of tiny corpora to topics."""

from __future__ import annotations

import inspect
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy

from bayeszoo.families.documents import gibbs as topic_gibbs
from bayeszoo.families.documents.gibbs import TopicChain
from bayeszoo.likelihoods.loops import gibbs as topic_loops
from tests.topic_oracles import ALPHA, ETA, LIMIT, SMALL, TINY, enumerated, log_joint, tables, together


def visited(chain, sweeps, thin=4, power=1.0):
    """Return the number, in base K, of the assignment after every few sweeps."""
    found = np.empty(sweeps, dtype=np.int64)
    for i in range(sweeps):
        chain.sweep(thin, power)
        found[i] = int("".join(map(str, chain.topic)), 2)
    return found


def p_value(chain, data=TINY, sweeps=3000, power=1.0):
    """Of chi-square, that a chain visits assignments as often as their probability to a power says."""
    probability = enumerated(data)[1] ** power
    times = np.bincount(visited(chain, sweeps, power=power), minlength=len(probability))
    return scipy.stats.chisquare(times, sweeps * probability / probability.sum()).pvalue


def chain_of(data, seed=1, alpha=ALPHA, eta=ETA):
    return TopicChain(data, alpha, eta, np.random.default_rng(seed))


def mutant(function, *changes):
    """Return a function of the loops, as Python, with some of its text changed."""
    text = inspect.getsource(function.py_func).partition("\n")[2]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    scope = dict(vars(topic_loops))
    exec(text, scope)
    return scope[function.__name__]


# what is computed of given topics


LONG = {**SMALL, "counts": np.random.default_rng(2).integers(200, 3000, 6)}


@pytest.mark.parametrize("data", [TINY, SMALL, LONG], ids=["tiny", "small", "long"])
def test_the_log_joint_density_is_a_product_of_gamma_functions(data):
    chain = chain_of(data)
    for _ in range(20):
        chain.sweep(1)
        assert chain.log_joint == pytest.approx(log_joint(chain.topic, data), rel=1e-13, abs=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        ("value -= _log_rising(alpha_total, length)", "pass"),
        ("value -= _log_rising(eta_total, total[k])", "pass"),
        ("value += _log_rising(alpha[k], in_document[d, k])", "pass"),
    ],
)
def test_a_log_joint_density_without_one_of_its_terms_is_seen(monkeypatch, change):
    monkeypatch.setattr(topic_gibbs, "log_joint", mutant(topic_loops.log_joint, change))
    chain = chain_of(SMALL)
    assert abs(chain.log_joint - log_joint(chain.topic, SMALL)) > 1e-3


def test_the_counts_are_those_of_the_topics_after_many_sweeps():
    chain = chain_of(SMALL)
    chain.sweep(500)
    by_document, by_topic = tables(chain.topic, SMALL, 2)
    np.testing.assert_array_equal(chain._in_document, by_document)
    np.testing.assert_array_equal(chain._of_word[:, :2].T, by_topic)
    np.testing.assert_array_equal(chain._of_word[:, 2:], 0)


@pytest.mark.parametrize("K", [1, 15, 16, 17, 40])
def test_every_topic_of_any_number_of_them_is_drawn(K):
    alpha = np.linspace(0.5, 2, K)
    chain = TopicChain({**TINY, "counts": np.array([1, 0, 0])}, alpha, ETA, np.random.default_rng(3))
    seen = np.empty(2000, dtype=np.int64)
    for i in range(len(seen)):
        chain.sweep(1)
        seen[i] = chain.topic[0]
    times = np.bincount(seen, minlength=K)
    assert len(times) == K
    if K > 1:  # of one word the topic is drawn from the prior
        assert scipy.stats.chisquare(times, len(seen) * alpha / alpha.sum()).pvalue > 1e-5


# where chains go


@pytest.mark.parametrize(
    "changes",
    [
        [("row[old] -= 1.0", "pass")],
        [("here[old] -= 1.0", "pass")],
        [("total[old] -= 1.0", "pass")],
        [("here[old] + alpha[old]", "here[old]"), ("here[k] + alpha[k]", "here[k] + 1.0")],
        [("row[k] + weight", "row[k] + 1.0")],
        [("eta_total = len(alpha), of_word.shape[1] // BLOCK, eta.sum()", "eta_total = 2, 1, 3.0")],
        [("left, block = rng.random() * whole, 0", "left, block = rng.random() ** 2 * whole, 0")],
    ],
)
def test_a_chain_with_wrong_counts_is_seen(monkeypatch, changes):
    monkeypatch.setattr(topic_gibbs, "sweep", mutant(topic_loops.sweep, *changes))
    assert p_value(chain_of(TINY), sweeps=2000) < 1e-5


@pytest.mark.parametrize("power", [1.0, 0.0, 0.3, 0.8])
def test_a_chain_visits_each_assignment_as_often_as_its_probability_to_a_power(power):
    assert p_value(chain_of(TINY), power=power) > 1e-5


def test_a_power_of_another_sum_is_seen(monkeypatch):
    bug = ("whole += sums[block]", "whole += 0.8 * sums[block]")
    scope = mutant(topic_loops._flattened, bug)
    monkeypatch.setattr(topic_gibbs, "sweep", mutant(topic_loops.sweep))
    monkeypatch.setitem(topic_gibbs.sweep.__globals__, "_flattened", scope)
    assert p_value(chain_of(TINY), sweeps=2000, power=0.3) < 1e-5


def test_the_loops_as_python_visit_each_assignment_as_often_too(monkeypatch):
    monkeypatch.setattr(topic_gibbs, "sweep", mutant(topic_loops.sweep))
    assert p_value(chain_of(TINY), sweeps=2000) > 1e-5


def test_the_first_topics_are_drawn_one_after_the_other():
    """The first word by the prior alone, and so on: a product of predictive probabilities, in a random order."""
    data = {**TINY, "counts": np.array([2, 0, 0]), "document": np.array(["d1"])}
    starts = [int("".join(map(str, chain_of(data, seed).topic)), 2) for seed in range(4000)]
    first = ALPHA / ALPHA.sum()
    probability = np.zeros((2, 2))
    for k, j in itertools.product(range(2), repeat=2):
        again = (ALPHA + (np.arange(2) == k)) * (ETA[0] + (np.arange(2) == k)) / (ETA.sum() + (np.arange(2) == k))
        probability[k, j] = first[k] * (again / again.sum())[j]
    times = np.bincount(starts, minlength=4)
    assert scipy.stats.chisquare(times, 4000 * probability.ravel()).pvalue > 1e-5


def test_the_same_generator_gives_the_same_chain_in_any_thread():
    def topics(seed):
        chain = chain_of(SMALL, seed)
        chain.sweep(300)
        return np.concatenate([chain.topic, chain.draw()["topics"].ravel()])

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(topics, [1, 2, 1, 2]))
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[0], topics(1))
    np.testing.assert_array_equal(found[1], found[3])
    assert not np.array_equal(found[0], found[1])


# draws of proportions and topics


def drawn(chain, size, thin=3):
    """Return so many draws, stacked."""
    made = []
    for _ in range(size):
        chain.sweep(thin)
        made.append(chain.draw())
    return {name: np.array([one[name] for one in made]) for name in made[0]}


def z_scores(draws, data=SMALL):
    """Of the likeness of documents, and of the quartiles of the same for the first two: by batches of draws."""
    every, probability = enumerated(data)
    expected = sum(p * together(tables(z, data, 2)[0]) for z, p in zip(every, probability, strict=True))
    theta = draws["proportions"]
    pairs = list(itertools.combinations(range(theta.shape[1]), 2))
    alike = np.stack([np.sum(theta[:, i] * theta[:, j], axis=1) for i, j in pairs], axis=1)
    exact = exact_likeness(every, probability, data)
    below = np.stack([alike[:, 0] <= q for q in np.quantile(exact, [0.25, 0.5, 0.75])], axis=1)
    found = np.concatenate([alike, below], axis=1).reshape(50, -1, len(pairs) + 3).mean(axis=1)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return (found.mean(axis=0) - [*expected, 0.25, 0.5, 0.75]) / error


def exact_likeness(every, probability, data, size=100_000):
    """Draws of the likeness of the first two documents from the enumerated posterior."""
    rng = np.random.default_rng(4)
    made = []
    for z, times in zip(every, rng.multinomial(size, probability), strict=True):
        by_document = tables(z, data, 2)[0] + ALPHA
        one, other = (rng.dirichlet(by_document[d], times) for d in range(2))
        made.append(np.sum(one * other, axis=1))
    return np.concatenate(made)


def test_draws_of_proportions_agree_with_enumeration():
    scores = z_scores(drawn(chain_of(SMALL), 4000))
    assert np.max(np.abs(scores)) < LIMIT


@pytest.mark.parametrize("wrong", ["alpha left out", "counts of the wrong topic"])
def test_draws_from_wrong_concentrations_are_seen(monkeypatch, wrong):
    own = TopicChain.draw

    def draw(self):
        alpha, counts = self._alpha, self._in_document
        self._alpha = alpha * 0.02 if wrong == "alpha left out" else alpha
        self._in_document = counts[:, ::-1] if wrong != "alpha left out" else counts
        made = own(self)
        self._alpha, self._in_document = alpha, counts
        return made

    monkeypatch.setattr(TopicChain, "draw", draw)
    assert np.max(np.abs(z_scores(drawn(chain_of(SMALL), 4000)))) > LIMIT


def test_draws_of_topics_have_the_enumerated_means():
    every, probability = enumerated(SMALL)
    expected = sum(
        p * (by_topic + ETA) / (by_topic + ETA).sum(axis=1, keepdims=True)
        for p, by_topic in ((p, tables(z, SMALL, 2)[1]) for z, p in zip(every, probability, strict=True))
    )
    topics = drawn(chain_of(SMALL), 4000)["topics"].reshape(50, -1, 2, 3).mean(axis=1)
    z = (topics.mean(axis=0) - expected) / (topics.std(axis=0, ddof=1) / np.sqrt(50))
    assert np.max(np.abs(z)) < LIMIT


def test_one_topic_is_the_conjugate_posterior():
    chain = TopicChain(SMALL, np.array([0.7]), ETA, np.random.default_rng(5))
    draws = drawn(chain, 4000, thin=1)
    np.testing.assert_array_equal(draws["proportions"], 1)
    after = ETA + np.bincount(SMALL["term"], SMALL["counts"])
    for v in range(3):
        marginal = scipy.stats.beta(after[v], after.sum() - after[v])
        assert scipy.stats.kstest(draws["topics"][:, 0, v], marginal.cdf).pvalue > 1e-5
