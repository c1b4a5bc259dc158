"""Scores of documents given topics, beside the sum over all topics of their words; coherence, beside a plain loop."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy

from bayeszoo.errors import InputError
from bayeszoo.families.documents import scores as topic_scores
from bayeszoo.families.documents.scores import (
    DocumentScores,
    coherence,
    document_completion,
    fold_in,
    left_to_right,
    split_words,
)
from bayeszoo.likelihoods.loops import left_to_right as left_to_right_loops
from tests.topic_oracles import corpus

LIMIT = 4.4
ALPHA = np.array([0.3, 0.5, 1.0])
TOPICS = np.random.default_rng(0).dirichlet(np.full(5, 0.5), 3)
COUNTS = np.array([[2, 1, 1, 0, 2], [0, 1, 2, 0, 1], [0, 0, 0, 0, 0], [1, 0, 1, 1, 1], [0, 0, 0, 1, 0]])


def words_of(counts):
    return np.repeat(np.arange(len(counts)), counts)


def joint(words, topics=TOPICS, alpha=ALPHA):
    """Return p(w, z) of all topics z of the words, proportions integrated out, and these topics."""
    every = np.array(list(itertools.product(range(len(alpha)), repeat=len(words))), dtype=int)
    every = every.reshape(len(alpha) ** len(words), -1)
    counts = np.array([np.bincount(z, minlength=len(alpha)) for z in every])
    of_topics = np.prod(scipy.special.poch(alpha, counts), axis=1) / scipy.special.poch(alpha.sum(), len(words))
    return of_topics * np.prod(topics[every, words], axis=1), counts


def exact(words, topics=TOPICS, alpha=ALPHA):
    return math.log(joint(words, topics, alpha)[0].sum())


def exact_completion(first, second, topics=TOPICS):
    """Return the sum of log p(w | first) over the words w of `second`, each by itself."""
    return sum(exact(np.append(first, word), topics) - exact(first, topics) for word in second)


def z_scores(found, expected):
    used = found.mcse > 0
    return (found.log_p - expected)[used] / found.mcse[used]


EXACT = np.array([exact(words_of(row)) for row in COUNTS])


@pytest.mark.parametrize("particles", [1, 2, 5])
def test_left_to_right_is_the_sum_over_all_topics(particles):
    found = left_to_right(corpus(COUNTS), TOPICS, ALPHA, np.random.default_rng(1), particles=particles, runs=6000)
    assert np.abs(z_scores(found, EXACT)[:3]).max() < LIMIT
    assert found.log_p[4] == pytest.approx(EXACT[4], abs=1e-12)  # of one word nothing is random
    assert found.words.tolist() == COUNTS.sum(axis=1).tolist()
    assert (found.log_p[2], found.mcse[2]) == (0.0, 0.0)
    assert np.all(found.mcse[:2] < 0.03)
    assert abs(found.log_p.sum() - EXACT.sum()) < LIMIT * found.mcse_total
    assert found.mcse_total == pytest.approx(np.hypot.reduce(found.mcse), rel=0.2)


def plain_loops(*changes):
    """Return the loops as Python, not compiled, some of the code replaced."""
    source = inspect.getsource(left_to_right_loops)
    changes = [(r"_loops = numba.njit\(.*\)", "_loops = lambda function: function"), *changes]
    for old, new in changes:
        source, times = re.subn(old, new, source)
        assert times == 1
    made = {}
    exec(compile(source, "changed", "exec"), made)
    return SimpleNamespace(**made)


def score_by(monkeypatch, *changes, runs=1500):
    monkeypatch.setattr(topic_scores, "loops", plain_loops(*changes))
    rng = np.random.default_rng(2)
    found = left_to_right(corpus(COUNTS[:1]), TOPICS, ALPHA, rng, runs=runs, particles=2)
    return abs(z_scores(found, EXACT[:1]).item())


NO_MOVES = ("MOVES = 256", "MOVES = 0")


@pytest.mark.parametrize("moves", ["MOVES = 0", "MOVES = 1", "MOVES = 2", "MOVES = 256"])
def test_left_to_right_is_unbiased_however_few_words_are_drawn_anew(monkeypatch, moves):
    assert score_by(monkeypatch, ("MOVES = 256", moves)) < LIMIT


PICK = r"topic\[r, n\] = _pick\(joint, _joint\(counts\[r\], alpha, topics\[term\[n\]\], joint\), rng\)"
BUGS = {
    "topics not given their words": ((PICK, "topic[r, n] = _pick(counts[r] + alpha, n + total, rng)"),),
    "weights of the last particle": ((PICK, "topic[r, n] = _pick(joint, joint.sum(), rng)"),),
    "own topic counted": ((r"for i in some:\n", "for i in some:\n        counts[topic[i]] += 1.0\n"),),
    "length forgotten": ((r"math.log\(whole / particles / \(n \+ total\)\)", "math.log(whole / particles / (n + 1))"),),
    "copies of another particle": (
        (r"topic\[free, :n\] = topic\[r, :n\]", "topic[free, :n] = topic[0, :n]"),
        (r"counts\[free\] = counts\[r\]", "counts[free] = counts[0]"),
    ),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS.keys())
def test_a_bug_is_found(monkeypatch, bug):
    """Where the topics are drawn anew, or else, as in so short a document that hides what particles are copied."""
    assert score_by(monkeypatch, *bug) > LIMIT or score_by(monkeypatch, *bug, NO_MOVES, runs=5000) > LIMIT


def test_particles_that_are_not_resampled_are_biased(monkeypatch):
    """As algorithm 3 stands: the factors are averaged one by one."""
    change = (r"        _resample\(weight, whole, topic, counts, n, rng\)\n", "")
    assert score_by(monkeypatch, change, NO_MOVES, runs=4000) > LIMIT


def test_the_error_is_that_of_repeated_estimates():
    rng = np.random.default_rng(4)
    every = [left_to_right(corpus(COUNTS), TOPICS, ALPHA, rng, runs=20, particles=4) for _ in range(300)]
    spread = np.std([one.log_p for one in every], axis=0)[[0, 1, 3]]
    said = np.sqrt(np.mean([one.mcse**2 for one in every], axis=0))[[0, 1, 3]]
    assert np.all(np.abs(spread / said - 1) < 0.2)


def test_one_topic_is_the_multinomial_distribution():
    rng = np.random.default_rng(5)
    topic, counts = rng.dirichlet(np.full(40, 0.3), 1), rng.poisson(2.0, (6, 40))
    found = left_to_right(corpus(counts), topic, 0.7, rng)
    np.testing.assert_allclose(found.log_p, counts @ np.log(topic[0]), rtol=1e-12)
    assert found.mcse.max() < 1e-12
    half = document_completion(corpus(counts), topic, 0.7, np.random.default_rng(6), sweeps=4)
    _, held = split_words(corpus(counts), 0.5, np.random.default_rng(6))
    expected = np.bincount(held["doc"], held["counts"] * np.log(topic[0][held["term"]]))
    np.testing.assert_allclose(half.log_p, expected, rtol=1e-12)


def test_draws_of_the_topics_are_averaged():
    other = np.random.default_rng(7).dirichlet(np.full(5, 0.8), 3)
    expected = [np.logaddexp(exact(words_of(row)), exact(words_of(row), other)) - math.log(2) for row in COUNTS]
    draws = np.tile([TOPICS, other], (2, 1500, 1, 1))
    found = left_to_right(corpus(COUNTS), draws, ALPHA, np.random.default_rng(8), particles=5)
    assert np.abs(z_scores(found, np.array(expected))).max() < LIMIT
    assert found.mcse[0] < 0.03


def of_document(part, d=0):
    """Return the codes of all words of one document."""
    return np.repeat(part["term"], part["counts"])[np.repeat(part["doc"], part["counts"]) == d]


def halves(seed):
    parts = split_words(corpus(COUNTS), 0.5, np.random.default_rng(seed))
    return [[of_document(part, d) for part in parts] for d in range(len(COUNTS))]


def test_completion_is_the_sum_over_all_topics():
    found = document_completion(corpus(COUNTS), TOPICS, ALPHA, np.random.default_rng(9), sweeps=4000)
    expected = np.array([exact_completion(*both) for both in halves(9)])
    assert np.abs(z_scores(found, expected)).max() < LIMIT
    assert found.words.tolist() == [len(second) for _, second in halves(9)] == [3, 2, 0, 2, 0]
    assert found.mcse.max() < 0.02
    assert abs(found.log_p.sum() - expected.sum()) < LIMIT * found.mcse_total
    wrong = document_completion(corpus(COUNTS), TOPICS, 2 * ALPHA, np.random.default_rng(9), sweeps=4000)
    assert np.abs(z_scores(wrong, expected)).max() > LIMIT


def test_completion_averages_the_draws_of_the_topics():
    other = np.random.default_rng(7).dirichlet(np.full(5, 0.8), 3)
    draws = np.tile([TOPICS, other], (2, 100, 1, 1))
    found = document_completion(corpus(COUNTS), draws, ALPHA, np.random.default_rng(9), sweeps=5000)
    for d, (first, second) in enumerate(halves(9)):
        if len(second):
            each = [[exact_completion(first, [word], topics) for word in second] for topics in (TOPICS, other)]
            expected = np.sum(np.logaddexp(*each) - math.log(2))
            assert abs(found.log_p[d] - expected) < LIMIT * found.mcse[d] < 0.2


def test_topics_that_are_not_drawn_anew_are_found_out(monkeypatch):
    """The first topics are each given the words before, not those after."""
    changed = plain_loops((r"        _redraw\(topic, term, every, .*\n", ""))
    monkeypatch.setattr(topic_scores, "loops", changed)
    data, draws = corpus([[4, 2, 1, 1, 2]]), TOPICS[None, None].repeat(3000, 1)
    found = document_completion(data, draws, ALPHA, np.random.default_rng(9), sweeps=4, tune=0)
    expected = exact_completion(*map(of_document, split_words(data, 0.5, np.random.default_rng(9))))
    assert abs(found.log_p[0] - expected) > LIMIT * found.mcse[0]


def folded_in(sweeps):
    """Return z scores of the first and second moments of proportions beside the sum over all topics."""
    draws = np.broadcast_to(TOPICS, (20_000, 3, 5))
    made = fold_in(draws, ALPHA, corpus(COUNTS), np.random.default_rng(3), sweeps)
    assert made.shape == (20_000, 5, 3)
    found = []
    for d, row in enumerate(COUNTS):
        p, counts = joint(words_of(row))
        given = ALPHA + counts  # proportions are Dirichlet(given) with probability p / p.sum()
        total = given[0].sum()
        for power, exact in ((1, given / total), (2, given * (given + 1) / total / (total + 1))):
            values = made[:, d] ** power
            found.append((values.mean(axis=0) - (p / p.sum()) @ exact) / values.std(axis=0) * np.sqrt(len(values)))
    return np.abs(found)


def test_documents_are_folded_in_as_by_the_sum_over_all_topics():
    assert folded_in(3).max() < LIMIT
    assert folded_in(0).max() > LIMIT  # the first topics are not given the words after them


def test_perplexity_is_that_of_a_word():
    found = DocumentScores(np.array([-4.0, 0.0, -8.0]), np.zeros(3), np.array([2, 0, 4]), 0.6)
    assert (found.mean, found.mcse_mean) == (-2.0, pytest.approx(0.1))
    assert found.perplexity == pytest.approx(math.exp(2))
    assert found.mcse_perplexity == pytest.approx(0.1 * math.exp(2))
    uniform = left_to_right(corpus(COUNTS), np.full((3, 5), 0.2), ALPHA, np.random.default_rng(1))
    assert uniform.perplexity == pytest.approx(5, rel=1e-12)


def test_documents_whose_runs_differ_get_more_particles(monkeypatch):
    asked = []

    def estimates(d, particles):
        asked.append((d, particles))
        return np.log(1 + np.arange(10) / 10) if d == 0 or particles > 20 else np.arange(10.0)

    found = topic_scores._of_one_draw(np.array([3, 4]), estimates, 5)
    assert asked == [(0, 5), (1, 5), (1, 20), (1, 80)]
    assert np.isfinite(found.log_p).all()
    assert found.bound == pytest.approx([np.log(1 + np.arange(10) / 10).mean()] * 2)
    assert np.isnan(topic_scores._of_one_draw(np.array([3, 4]), lambda d, _: np.arange(10.0), 5).perplexity)


def test_words_that_no_topic_has():
    topics = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    data = corpus([[3, 2, 0], [1, 1, 1], [4, 0, 0], [0, 0, 4]])
    found = left_to_right(data, topics, 1.0, np.random.default_rng(1), runs=200)
    assert np.isneginf(found.log_p).tolist() == [False, True, False, True]
    assert (found.mean, found.perplexity) == (-math.inf, math.inf)
    assert found.log_p[0] == pytest.approx(exact(np.array([0, 0, 0, 1, 1]), topics, np.ones(2)), abs=0.2)
    half = document_completion(data, topics, 1.0, np.random.default_rng(1), sweeps=20)
    assert (half.log_p[3], half.perplexity) == (-math.inf, math.inf)
    assert np.isfinite(half.log_p[[0, 2]]).all()


def test_a_mean_that_few_draws_carry_is_withheld():
    rng = np.random.default_rng(2)
    draws = rng.dirichlet(np.full(50, 0.1), (2, 50, 3))  # which have nothing in common
    data = corpus(np.append(rng.multinomial(200, draws[0, 0, 0])[None], np.eye(1, 50, dtype=int), axis=0))
    found = left_to_right(data, draws, ALPHA, rng, particles=2)
    assert np.isnan(found.log_p).tolist() == [True, False]
    assert all(map(math.isnan, (found.mean, found.perplexity, found.mcse_total)))
    of_one_word = np.log(draws @ np.eye(50)[0] @ ALPHA / ALPHA.sum())  # nothing random in it but the draws
    assert found.log_p[1] == pytest.approx(np.logaddexp.reduce(of_one_word, axis=None) - math.log(100), rel=1e-12)
    assert found.bound[1] == pytest.approx(of_one_word.mean(), rel=1e-12)
    assert found.perplexity_bound == pytest.approx(np.exp(-found.bound.sum() / 201), rel=1e-12)
    assert found.bound[0] < left_to_right(data, draws[0, 0], ALPHA, rng).bound[0]
    few = left_to_right(data, draws[:1, :10], ALPHA, rng, particles=2)
    assert np.isnan(few.log_p[0])


DATA, FEW = corpus(COUNTS), corpus(COUNTS[:2])
SHAPE = "(K, 5) or (chains, draws, K, 5) expected: one column for each word of the data"
REFUSED = [
    (left_to_right, {"topics": TOPICS[:, :4]}, f"topics have shape (3, 4), {SHAPE}"),
    (document_completion, {"topics": TOPICS[None]}, f"topics have shape (1, 3, 5), {SHAPE}"),
    (left_to_right, {"topics": TOPICS * 1.001}, "each topic must be probabilities of the words, which add up to 1"),
    (left_to_right, {"topics": TOPICS - [1, -1, 0, 0, 0]}, "each topic must be probabilities of the words, which add "),
    (document_completion, {"topics": TOPICS * np.nan}, "each topic must be probabilities of the words, which add up"),
    (left_to_right, {"alpha": [1.0, 2.0]}, "alpha must be > 0, one number or one for each of 3 topics"),
    (document_completion, {"alpha": 0.0}, "alpha must be > 0, one number or one for each of 3 topics"),
    (left_to_right, {"runs": 1}, "runs must be at least 2, got 1"),
    (left_to_right, {"particles": 0}, "particles must be at least 1, got 0"),
    (document_completion, {"sweeps": 1}, "sweeps must be at least 4, got 1"),
    (coherence, {"top": 5}, "no document of the reference corpus holds 'w4'"),
    (coherence, {"top": 1}, "top must be 2 to 5, the number of words, got 1"),
    (coherence, {"top": 2, "measure": "cv"}, "measure must be 'npmi' or 'umass', got 'cv'"),
    (
        coherence,
        {"topics": np.array([[TOPICS] * 2])},
        "coherence is of one table of topics; give the mean",
    ),
]


@pytest.mark.parametrize(("function", "change", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_what_is_refused(function, change, message):
    given = {"data": FEW} if function is coherence else {"data": DATA, "alpha": ALPHA, "rng": np.random.default_rng(0)}
    with pytest.raises(InputError, match="^" + re.escape(message)):
        function(**{"topics": TOPICS, **given, **change})


# Coherence


def by_loops(topics, counts, top, measure):
    found, D = [], len(counts)
    for topic in topics:
        words, terms = np.argsort(-topic)[:top], []
        for common, rare in itertools.combinations((set(np.flatnonzero(counts[:, v])) for v in words), 2):
            both = len(rare & common)
            npmi = math.log(both * D / len(rare) / len(common)) / -math.log(both / D) if both else -1.0
            terms.append(math.log((both + 1) / len(common)) if measure == "umass" else npmi)
        found.append(sum(terms) if measure == "umass" else np.mean(terms))
    return found


@pytest.mark.parametrize("measure", ["umass", "npmi"])
@pytest.mark.parametrize("top", [2, 5])
def test_coherence_counts_documents_that_hold_both_words(measure, top):
    rng = np.random.default_rng(3)
    topics, counts = rng.dirichlet(np.full(12, 0.4), 6), rng.poisson(0.4, (25, 12))
    data = corpus(counts)
    found = coherence(topics, data, top, measure)
    np.testing.assert_allclose(found, by_loops(topics, counts, top, measure), rtol=1e-12)
    apart = coherence(topics[:, ::-1], data, top, measure)
    assert not np.allclose(found, apart)


def test_words_always_together_and_never():
    counts = np.array([[1, 2, 0, 0], [3, 1, 0, 1], [0, 0, 5, 1], [0, 0, 1, 1]])
    topics = np.array([[0.6, 0.4, 0, 0], [0.6, 0, 0.4, 0]])
    np.testing.assert_allclose(coherence(topics, corpus(counts), 2), [1.0, -1.0])
    everywhere = np.array([[0.6, 0.4]])
    assert np.isnan(coherence(everywhere, corpus(np.ones((3, 2), dtype=int)), 2)).all()
