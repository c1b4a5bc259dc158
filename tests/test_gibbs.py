"""Collapsed Gibbs sampling of topics: chains against every assignment of the words of tiny corpora, and fits."""

import inspect
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.distributions.conjugate import dirichlet
from bayeszoo.errors import InputError, Interrupted
from bayeszoo.families.documents.topic_model import TopicChain
from bayeszoo.foundation.gate import passed
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.labels.symmetry import some_entries
from bayeszoo.inference.methods import gibbs
from bayeszoo.inference.problem import Problem
from bayeszoo.likelihoods.loops import gibbs as topic_loops
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.topic_oracles import ALPHA, ETA, LIMIT, SMALL, TINY, corpus, enumerated, log_joint, tables, together


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


def still(*_):
    """Move nothing."""


# what is computed of given topics


MANY = corpus([[2, 1, 0], [1, 0, 0], [0, 1, 1]])
LONG = {**SMALL, "counts": np.random.default_rng(2).integers(200, 3000, 6)}


@pytest.mark.parametrize("data", [TINY, SMALL, LONG], ids=["tiny", "small", "long"])
def test_the_counts_are_those_of_the_topics_and_the_log_joint_density_a_product_of_gamma_functions(data):
    chain = chain_of(data)
    for _ in range(20):
        chain.sweep(1)
        assert chain.log_joint == pytest.approx(log_joint(chain.topic, data), rel=1e-13, abs=1e-12)
        np.testing.assert_array_equal(chain.counts.documents, tables(chain.topic, data, 2)[0])
        np.testing.assert_array_equal(chain.counts.words.T, tables(chain.topic, data, 2)[1])


@pytest.mark.parametrize("K", [1, 3, 4, 5, 40])
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
        [("of_document[old] -= 1.0", "pass")],
        [("total[old] -= 1.0", "pass")],
        [("of_document[old] + alpha[old]", "of_document[old]"), ("of_document[k] + alpha[k]", "of_document[k] + 1.0")],
        [("row[new] + weight", "row[new] + 1.0"), ("row[old] + weight", "row[old] + 1.0")],
        [("eta_total = len(alpha), of_word.shape[1] // BLOCK, eta.sum()", "eta_total = 2, 1, 3.0")],
        [("block = rng.random() * cumulative, 0", "block = rng.random() ** 2 * cumulative, 0")],
        [],
    ],
)
def test_a_chain_with_wrong_counts_is_seen(monkeypatch, changes):
    monkeypatch.setattr(topic_loops, "sweep", mutant(topic_loops.sweep, *changes))
    monkeypatch.setattr(topic_loops, "sweep_words", still)
    assert (p_value(chain_of(TINY), sweeps=2000) < 1e-5) == bool(changes)


@pytest.mark.parametrize(
    ("changes", "is_seen"),
    [
        ([("ratio *= normalizer", "pass")], True),
        ([("ratio /= _cumulative", "_cumulative")], True),
        ([("math.log(rng.random()) < ", "rng.random() < 0.7 or ")], True),
        ([("weight = of_word[v], eta[v]", "weight = of_word[v], 0.3")], True),
        ([("k = rng.random() * normalizer", "k = rng.random() ** 2 * normalizer")], True),
        ([("places[i], places[j] = places[j], places[i]", "pass")], False),  # any order will do
        ([("TOGETHER", "2")], False),  # so will any number of them
        ([("FAR", "1.01")], False),
        ([], False),
    ],
)
def test_chains_that_draw_the_topics_of_all_occurrences_of_a_word_together_are_exact(monkeypatch, changes, is_seen):
    chain = chain_of(MANY)
    monkeypatch.setattr(topic_loops, "sweep", still)
    monkeypatch.setattr(topic_loops, "sweep_words", mutant(topic_loops.sweep_words, *changes))
    assert (p_value(chain, MANY, 2000) < 1e-5) == is_seen


@pytest.mark.parametrize("power", [1.0, 0.0, 0.3, 0.8])
def test_a_chain_visits_each_assignment_as_often_as_its_probability_to_a_power(power):
    assert p_value(chain_of(TINY), power=power) > 1e-5


@pytest.mark.parametrize("change", [("+ weight, power", "+ weight, 1.0"), ("eta_total), power", "eta_total), 1.0")])
def test_a_power_of_one_factor_only_is_seen(monkeypatch, change):
    monkeypatch.setattr(topic_loops, "sweep", mutant(topic_loops.sweep, change))
    assert p_value(chain_of(TINY), sweeps=2000, power=0.3) < 1e-5


# draws of proportions and topics


def drawn(chain, size, thin=3):
    """Return so many draws, stacked."""
    made = [chain.sweep(thin) or chain.draw() for _ in range(size)]
    return {name: np.array([one[name] for one in made]) for name in made[0]}


def z_scores(draws, alpha=ALPHA, eta=ETA):
    """Of the likeness of documents and of the topics, beside the sum over all assignments: by batches of draws."""
    expected = 0.0
    for z, p in zip(*enumerated(SMALL, alpha, eta), strict=True):
        by_document, by_topic = tables(z, SMALL, 2)
        topics = (by_topic + eta) / (by_topic + eta).sum(axis=1, keepdims=True)
        expected += p * np.append(together(by_document, alpha), topics)
    theta = draws["proportions"]
    alike = [np.sum(theta[:, i] * theta[:, j], axis=1) for i, j in itertools.combinations(range(3), 2)]
    found = np.column_stack([*alike, draws["topics"].reshape(len(theta), -1)]).reshape(50, -1, 9).mean(axis=1)
    return np.abs(found.mean(axis=0) - expected) / found.std(axis=0, ddof=1) * np.sqrt(50)


def test_draws_agree_with_enumeration():
    assert np.max(z_scores(drawn(chain_of(SMALL), 4000))) < LIMIT


@pytest.mark.parametrize("change", [lambda a: a - 0.98 * ALPHA, lambda a: (a - ALPHA)[:, ::-1] + ALPHA])
def test_draws_from_wrong_concentrations_are_seen(monkeypatch, change):
    right = dirichlet.draw_dirichlet

    def draw(alpha, *more):
        return right(change(alpha) if alpha.shape == (3, 2) else alpha, *more)

    monkeypatch.setattr(dirichlet, "draw_dirichlet", draw)
    assert np.max(z_scores(drawn(chain_of(SMALL), 4000))[:3]) > LIMIT


# fits

LDA = bz.find("lda")


class Quiet(Reporter):
    """Keeps what is said; after so many reports of progress it stops the run as Ctrl-C does."""

    def __init__(self, stop_after=None):
        self.lines, self.reports, self._stop_after = [], 0, stop_after

    def say(self, line):
        self.lines.append(line)

    def progress(self, what, done, total):
        assert 0 <= done <= total
        self.reports += 1
        if self.reports == self._stop_after:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def tree():
    return bz.fit(LDA(K=2, alpha=0.8, eta=0.7), SMALL, "gibbs", seed=1)


def test_a_fit_of_a_tiny_corpus_passes_the_gate_and_agrees_with_enumeration(tree):
    assert tree.attrs["status"] == "ok"
    assert tree.attrs["kind"] == "sampled"
    assert tree["posterior"]["topics"].dims == ("chain", "draw", "topic", "word")
    assert tree["posterior"]["proportions"].shape == (4, 500, 3, 2)
    assert {"attempts": 1, "tune": 1250, "thin": 4}.items() <= Fit(tree).facts.items()
    draws = {name: values.to_numpy().reshape(2000, -1, values.shape[-1]) for name, values in tree["posterior"].items()}
    assert np.max(z_scores(draws, np.full(2, 0.8), np.full(3, 0.7))[:3]) < LIMIT  # labels mean nothing


@pytest.mark.slow
def test_the_same_seed_gives_the_same_fit_whose_chains_differ(tree):
    again, other = (bz.fit(LDA(K=2, alpha=0.8, eta=0.7), SMALL, "gibbs", seed=seed) for seed in (1, 2))
    np.testing.assert_array_equal(again["posterior"]["topics"], tree["posterior"]["topics"])
    assert not np.array_equal(other["sample_stats"]["lp"], tree["sample_stats"]["lp"])
    assert len(np.unique(tree["sample_stats"]["lp"].to_numpy()[:, :20], axis=0)) == 4


@pytest.mark.parametrize("fields", [{"K": 1}, {"K": 2, "alpha": [0.5, 2.0]}])
def test_labels_that_mean_something_are_checked_too(fields):
    tree = bz.fit(LDA(**fields, eta=0.7), SMALL, "gibbs", seed=1)
    assert (tree.attrs["status"], "unaligned" in tree.children) == ("ok", False)


SWEEP = TopicChain.sweep


def test_chains_that_stand_still_fail_the_gate_at_once(monkeypatch):
    monkeypatch.setattr(TopicChain, "sweep", lambda self, *_: None if self._total.any() else SWEEP(self, 1))
    said = Quiet()
    tree = bz.fit(LDA(K=2, alpha=0.8, eta=0.1), LONG, "gibbs", seed=1, draws=400, reporter=said)
    assert tree.attrs["status"] == "failed"
    assert Fit(tree).facts["attempts"] == 1  # what stands still is not mended by more of it
    assert said.lines == []


def two_modes(**options):
    """A fit whose chains end in different modes."""
    data = {**SMALL, "counts": np.array([60, 60, 60, 60, 60, 60])}
    return bz.fit(LDA(K=2, alpha=0.05, eta=0.05), data, "gibbs", seed=3, draws=400, tune=10, thin=1, **options)


def test_chains_in_different_modes_fail_the_gate_after_three_attempts_or_without_extend_one():
    said = Quiet()
    tree = two_modes(reporter=said)
    facts = Fit(tree).facts
    assert (tree.attrs["status"], facts["attempts"]) == ("failed", 3)
    assert [line[:9] for line in said.lines] == ["attempt 1", "attempt 2", "attempt 3"]
    tree = two_modes(extend=False)
    assert (tree.attrs["status"], Fit(tree).facts["attempts"]) == ("failed", 1)


@pytest.mark.parametrize(("height", "passes"), [(0.0, False), (-100.0, True)])
def test_chains_that_agree_after_others_did_not_must_visit_their_modes(monkeypatch, height, passes):
    """Two of four chains find a mode of equal mass, and once annealed again none: both modes are the posterior's."""
    rng, modes = np.random.default_rng(1), iter([[0, 0, 1, 1], [1, 1, 1, 1]])
    shares = np.array([[[90, 10], [90, 10], [90, 10]], [[90, 10], [50, 50], [10, 90]]])

    def sample(chains, kept, tune, thin, reporter):
        for chain, mode in enumerate(next(modes)):
            kept["proportions"][chain] = np.stack([rng.dirichlet(row, 400) for row in shares[mode]], axis=1)
            kept["topics"][chain] = rng.dirichlet([30, 20, 10], (400, 2))
            kept[gibbs.LP][chain] = rng.normal(size=400) + (height if mode == 0 else 0.0)
        return 400

    monkeypatch.setattr(gibbs, "_sample", sample)
    problem = Problem(LDA(K=2), bz.read(LDA, SMALL), rng)
    first, second = itertools.islice(gibbs._attempts(problem, [chain_of(SMALL)] * 4, [], 400, 10, 1), 2)
    assert not passed(first.checks)
    assert passed(second.checks) == passes
    assert {check.name: check.passed for check in second.checks}["unvisited_modes"] == passes


def test_chains_that_look_for_modes_find_what_four_that_agree_would_miss():
    """Three groups of words and two topics: any two groups may share a topic, and one pair has e**-3 of the others."""
    words = np.kron(np.eye(3), np.ones((2, 2)))
    words[:2] *= 9
    words[2:] *= 8
    model, data = LDA(K=2, alpha=0.3, eta=0.3), corpus(words.astype(int).tolist())
    tree = bz.fit(model, data, "gibbs", seed=10, extend=False)
    assert tree.attrs["status"] == "failed"  # four chains alone agree, with this seed
    assert not Fit(tree).checks["unvisited_modes"]["passed"]


def test_warmup_is_annealed_and_every_draw_is_made_at_the_end_of_it(monkeypatch):
    powers = []

    def sweep(self, times, power=1.0):
        powers.append(power)
        SWEEP(self, times, power)

    monkeypatch.setattr(TopicChain, "sweep", sweep)
    bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, chains=1, draws=10, tune=40, thin=2, extend=False)
    assert powers[0] == 1.0  # where a chain starts
    assert powers.count(1.0) == 3 * (1 + 10 + 10) + 20  # three chains warm up, and one of them goes on
    assert powers[-20:] == [1.0] * 20
    rising = np.repeat(0.3 + 0.7 * np.arange(30) / 30, 3)
    np.testing.assert_allclose(sorted(power for power in powers if power < 1), rising)


@pytest.mark.slow
def test_chains_that_mix_slowly_go_on_from_where_they_are(monkeypatch):
    monkeypatch.setattr(topic_loops, "sweep_words", still)  # without which they do
    said = Quiet()
    options = {"draws": 400, "tune": 100, "thin": 1, "reporter": said}
    tree = bz.fit(LDA(K=2, alpha=0.8, eta=0.4), {**SMALL, "counts": SMALL["counts"] * 4}, "gibbs", seed=1, **options)
    facts = Fit(tree).facts
    assert (tree.attrs["status"], facts["attempts"] > 1) == ("ok", True)
    assert facts["thin"] == 2 ** (facts["attempts"] - 1)
    assert facts["tune"] == 125 + 400 * (facts["thin"] - 1)  # where they were: no new warmup
    assert all("r_hat 1.0" in line or "ess" in line for line in said.lines)


def test_of_many_entries_some_are_diagnosed():
    values = np.arange(1000.0) + np.random.default_rng(1).random((4, 3, 1000))
    some = some_entries(values.reshape(4, 3, 10, 100))
    assert some.shape == (4, 3, 200)
    largest = some.mean(axis=(0, 1))
    assert np.sum(largest >= 900) >= 100
    assert largest.min() < 10
    np.testing.assert_array_equal(some_entries(values[..., :200]), values[..., :200])


def test_other_models_and_draws_that_would_not_fit_in_memory_are_refused():
    with raises(InputError, "method_unavailable"):
        bz.fit(bz.find("gaussian_mean")(), method="gibbs")
    with raises(InputError, "too_large", "4", "9000000", "proportions", "topics", "3"):
        bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, draws=9_000_000)


def test_ctrl_c_keeps_the_draws_that_every_chain_has():
    said = Quiet(stop_after=3)
    tree = bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, draws=300_000, tune=0, thin=1, reporter=said)
    assert tree.attrs["status"] == "interrupted"
    length = tree["posterior"].sizes["draw"]
    assert 0 < length < 300_000
    assert np.isfinite(tree["sample_stats"]["lp"]).all()
    assert np.allclose(tree["posterior"]["topics"].sum("word"), 1)


def test_ctrl_c_before_every_chain_has_a_draw_keeps_nothing():
    with raises(Interrupted, "no_draws"):
        bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, tune=10**8, reporter=Quiet(stop_after=2))


def test_ctrl_c_while_chains_are_begun_stops_those_that_have(monkeypatch):
    def submit(self, sample, chain):
        if chain == 1:
            raise KeyboardInterrupt
        return ThreadPoolExecutor.submit(self, sample, chain)

    monkeypatch.setattr(gibbs, "ThreadPoolExecutor", type("HalfStarted", (ThreadPoolExecutor,), {"submit": submit}))
    with raises(Interrupted, "no_draws"):
        bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, tune=10**6)


def test_what_a_chain_raises_is_raised(monkeypatch):
    def broken(self):
        raise ZeroDivisionError("in a thread")

    monkeypatch.setattr(TopicChain, "log_joint", property(broken))
    with pytest.raises(ZeroDivisionError):
        bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, tune=0)


@pytest.mark.slow
def test_documents_without_words_have_their_prior():
    data = {**SMALL, "document": np.array(["d1", "d2", "d3", "empty"])}
    tree = bz.fit(LDA(K=2, alpha=0.8), data, "gibbs", seed=1)
    shares = tree["unaligned"]["proportions"].sel(document="empty").to_numpy()[..., 0].ravel()
    assert scipy.stats.kstest(shares[::2], scipy.stats.beta(0.8, 0.8).cdf).pvalue > 1e-5
