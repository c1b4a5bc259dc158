"""Scores of documents given topics, against sums over all topics of their words; and scores by a fit."""

import inspect
import itertools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.cli.answers import AnswerOptions
from bayeszoo.cli.verbs.answers.rows import topics_command
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.families.documents import scores as topic_scores
from bayeszoo.families.documents.scores import coherence, document_completion, fold_in, left_to_right, split_words
from bayeszoo.likelihoods.loops import left_to_right as left_to_right_loops
from bayeszoo.report.text.numbers import estimate
from tests.refusals import raises
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
    changes = [(r"from .* import loop\n", "loop = lambda function: function\n"), *changes]
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


@pytest.mark.parametrize("moves", ["MOVES = 0", "MOVES = 2"])
def test_left_to_right_is_unbiased_however_few_words_are_drawn_anew(monkeypatch, moves):
    assert score_by(monkeypatch, ("MOVES = 256", moves)) < LIMIT


PICK = r"topic\[r, n\] = _pick\(joint, _joint\(counts\[r\], alpha, topics\[term\[n\]\], joint\), rng\)"
BUGS = {
    "topics not given their words": ((PICK, "topic[r, n] = _pick(counts[r] + alpha, n + total, rng)"),),
    "weights of the last particle": ((PICK, "topic[r, n] = _pick(joint, joint.sum(), rng)"),),
    "own topic counted": ((r"for i in words:\n", "for i in words:\n        counts[topic[i]] += 1.0\n"),),
    "length forgotten": (
        (r"math.log\(weight_sum / particles / \(n \+ total\)\)", "math.log(weight_sum / particles / (n + 1))"),
    ),
    "copies of another particle": (
        (r"topic\[free, :n\] = topic\[r, :n\]", "topic[free, :n] = topic[0, :n]"),
        (r"counts\[free\] = counts\[r\]", "counts[free] = counts[0]"),
    ),
    "not resampled, as algorithm 3 stands": (
        (r"        _resample\(weight, weight_sum, topic, counts, n, rng\)\n", ""),
    ),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS.keys())
def test_a_bug_is_found(monkeypatch, bug):
    """Where the topics are drawn anew, or else, as in so short a document that hides what particles are copied."""
    assert score_by(monkeypatch, *bug) > LIMIT or score_by(monkeypatch, *bug, NO_MOVES, runs=5000) > LIMIT


def test_the_error_is_that_of_repeated_estimates():
    rng = np.random.default_rng(4)
    every = [left_to_right(corpus(COUNTS), TOPICS, ALPHA, rng, runs=20, particles=4) for _ in range(300)]
    spread = np.std([one.log_p for one in every], axis=0)[[0, 1, 3]]
    said = np.sqrt(np.mean([one.mcse**2 for one in every], axis=0))[[0, 1, 3]]
    assert np.all(np.abs(spread / said - 1) < 0.2)


def test_one_topic_is_the_multinomial_distribution():
    rng = np.random.default_rng(5)
    topic, counts = rng.dirichlet(np.full(40, 0.3), 1), rng.poisson(2.0, (6, 40))
    found = left_to_right(corpus(counts), topic, np.array([0.7]), rng)
    np.testing.assert_allclose(found.log_p, counts @ np.log(topic[0]), rtol=1e-12)
    assert found.mcse.max() < 1e-12
    half = document_completion(corpus(counts), topic, np.array([0.7]), np.random.default_rng(6), sweeps=4)
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


def test_completion_averages_the_draws_of_the_topics():
    other = np.random.default_rng(7).dirichlet(np.full(5, 0.8), 3)
    draws = np.tile([TOPICS, other], (2, 100, 1, 1))
    found = document_completion(corpus(COUNTS), draws, ALPHA, np.random.default_rng(9), sweeps=5000)
    for d, (first, second) in enumerate(halves(9)):
        if len(second):
            each = [[exact_completion(first, [word], topics) for word in second] for topics in (TOPICS, other)]
            expected = np.sum(np.logaddexp(*each) - math.log(2))
            assert abs(found.log_p[d] - expected) < LIMIT * found.mcse[d] < 0.2


NOT_DRAWN_ANEW = (r"        _redraw\(topic, words, words, .*\n", "")
"""The first topics are each given the words before, not those after."""


@pytest.mark.slow
def test_topics_that_are_not_drawn_anew_are_found_out(monkeypatch):
    monkeypatch.setattr(topic_scores, "loops", plain_loops(NOT_DRAWN_ANEW))
    data, draws = corpus([[4, 2, 1, 1, 2]]), TOPICS[None, None].repeat(3000, 1)
    found = document_completion(data, draws, ALPHA, np.random.default_rng(9), sweeps=4, tune=0)
    expected = exact_completion(*map(of_document, split_words(data, 0.5, np.random.default_rng(9))))
    assert abs(found.log_p[0] - expected) > LIMIT * found.mcse[0]
    assert folded_in().max() > LIMIT


def folded_in():
    """Return z scores of the first and second moments of proportions beside the sum over all topics."""
    draws = np.broadcast_to(TOPICS, (20_000, 3, 5))
    made = fold_in(draws, ALPHA, corpus(COUNTS), np.random.default_rng(3), 3)
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


@pytest.mark.slow
def test_documents_are_folded_in_as_by_the_sum_over_all_topics():
    assert folded_in().max() < LIMIT


def test_documents_whose_runs_differ_get_more_particles(monkeypatch):
    asked = []

    def estimates(d, particles):
        asked.append((d, particles))
        return np.log(1 + np.arange(10) / 10) if d == 0 or particles > 20 else np.arange(10.0)

    found = topic_scores._of_one_draw(np.array([3, 4]), estimates, 5)
    assert asked == [(0, 5), (1, 5), (1, 20), (1, 80)]
    assert np.isfinite(found.log_p).all()
    assert found.bound == pytest.approx([np.log(1 + np.arange(10) / 10).mean()] * 2)
    assert np.isnan(topic_scores._of_one_draw(np.array([3, 4]), lambda d, _: np.arange(10.0), 5).mcse_total)


def test_words_that_no_topic_has():
    topics, alpha = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]), np.ones(2)
    data = corpus([[3, 2, 0], [1, 1, 1], [4, 0, 0], [0, 0, 4]])
    found = left_to_right(data, topics, alpha, np.random.default_rng(1), runs=200)
    assert np.isneginf(found.log_p).tolist() == [False, True, False, True]
    assert found.log_p[0] == pytest.approx(exact(np.array([0, 0, 0, 1, 1]), topics, alpha), abs=0.2)
    half = document_completion(data, topics, alpha, np.random.default_rng(1), sweeps=20)
    assert half.log_p[3] == -math.inf
    assert np.isfinite(half.log_p[[0, 2]]).all()


def test_a_mean_that_few_draws_carry_is_withheld():
    rng = np.random.default_rng(2)
    draws = rng.dirichlet(np.full(50, 0.1), (2, 50, 3))  # which have nothing in common
    data = corpus(np.append(rng.multinomial(200, draws[0, 0, 0])[None], np.eye(1, 50, dtype=int), axis=0))
    found = left_to_right(data, draws, ALPHA, rng, particles=2)
    assert np.isnan(found.log_p).tolist() == [True, False]
    assert math.isnan(found.mcse_total)
    of_one_word = np.log(draws @ np.eye(50)[0] @ ALPHA / ALPHA.sum())  # nothing random in it but the draws
    assert found.log_p[1] == pytest.approx(np.logaddexp.reduce(of_one_word, axis=None) - math.log(100), rel=1e-12)
    assert found.bound[1] == pytest.approx(of_one_word.mean(), rel=1e-12)
    assert found.bound[0] < left_to_right(data, draws[0, 0], ALPHA, rng).bound[0]
    few = left_to_right(data, draws[:1, :10], ALPHA, rng, particles=2)
    assert np.isnan(few.log_p[0])


# Coherence


def by_loops(topics, counts, top):
    found, D = [], len(counts)
    for topic in topics:
        holds = [set(np.flatnonzero(counts[:, v])) for v in np.argsort(-topic)[:top]]
        pairs = [(len(one & other), len(one), len(other)) for one, other in itertools.combinations(holds, 2)]
        scores = [math.log(both * D / a / b) / -math.log(both / D) if both else -1 for both, a, b in pairs]
        found.append(np.mean(scores))
    return found


@pytest.mark.parametrize("top", [2, 5])
def test_coherence_counts_documents_that_hold_both_words(top):
    rng = np.random.default_rng(3)
    topics, counts = rng.dirichlet(np.full(12, 0.4), 6), rng.poisson(0.4, (25, 12))
    found = coherence(topics, corpus(counts), top)
    np.testing.assert_allclose(found, by_loops(topics, counts, top), rtol=1e-12)
    assert not np.allclose(found, coherence(topics[:, ::-1], corpus(counts), top))


def test_words_always_together_and_never():
    counts = np.array([[1, 2, 0, 0], [3, 1, 0, 1], [0, 0, 5, 1], [0, 0, 1, 1]])
    topics = np.array([[0.6, 0.4, 0, 0], [0.6, 0, 0.4, 0]])
    np.testing.assert_allclose(coherence(topics, corpus(counts), 2), [1.0, -1.0])
    for everywhere_or_never in ([1, 1], [1, 0]):
        assert np.isnan(coherence(np.array([[0.6, 0.4]]), corpus(np.tile(everywhere_or_never, (3, 1))), 2)).all()


# Of fits


PLANTED = np.array([[0.5, 0.3, 0.2, 0, 0, 0], [0, 0, 0, 0.5, 0.3, 0.2]])
WORDS = ["ant", "bee", "cat", "day", "eve", "fog"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    return rng.multinomial(60, rng.dirichlet([0.5, 0.5], 40) @ PLANTED)


@pytest.fixture(scope="module")
def tree(table):
    return bz.fit(bz.find("lda")(K=2, alpha=0.5, eta=0.5), {"counts": table, "word": WORDS}, "gibbs", seed=1)


@pytest.fixture(scope="module")
def file(tree, tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "lda.nc"
    bz.save(tree, path)
    return path


def test_planted_topics_are_found_within_their_intervals(tree):
    frame = bz.topics(tree, top=3)
    sets = [tuple(sorted(frame.loc[topic, "word"])) for topic in (1, 2)]
    assert sorted(sets) == [("ant", "bee", "cat"), ("day", "eve", "fog")]
    truth = dict(zip(WORDS, PLANTED.sum(axis=0), strict=True))
    for row in frame.itertuples():
        assert abs(row.mean - truth[row.word]) < 4.4 * row.sd
        assert row.q025 < row.median < row.q975
        assert 0 < row.mcse_mean < row.sd / 5
    assert sum(frame.attrs["shares"]) == pytest.approx(1)
    assert min(frame.attrs["stability"]) > 0.7


def test_numbers_are_those_of_the_draws(tree):
    topics, shares = bz.topics(tree, top=6), bz.proportions(tree)
    for frame, name in ((topics.set_index("word", append=True).droplevel("rank"), "topics"), (shares, "proportions")):
        for labels, row in frame.iterrows():
            one = tree["posterior"][name].sel(dict(zip(frame.index.names, labels, strict=True))).to_numpy()
            assert row["mean"] == pytest.approx(one.mean(), rel=1e-12)
            assert row["q975"] == pytest.approx(np.quantile(one, 0.975), rel=1e-12)
    assert np.all(np.diff(topics.loc[1, "mean"]) <= 0)


def test_the_share_of_a_topic_in_all_documents_has_its_monte_carlo_error(tree, file, run):
    """By the spread of batches of 50 draws; documents share draws, but their errors are mostly their own."""
    frame, draws = bz.topics(tree, top=3), tree["posterior"]["proportions"].to_numpy().mean(axis=2)
    batches = draws.reshape(-1, 50, 2).mean(axis=1)
    by_batches = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    np.testing.assert_allclose(frame.attrs["mcse_shares"], by_batches, rtol=0.35)
    share, error = frame.attrs["shares"][0], frame.attrs["mcse_shares"][0]
    assert f" {estimate(share, error)} " in run("topics", file, "--top", 3)[1]


def test_new_documents_that_are_all_of_one_topic_or_empty_and_words_that_the_fit_does_not_know(tree):
    new = {"counts": [[50, 30, 20, 0, 0, 0, 7], [0] * 7], "word": [*WORDS, "unheard"]}
    frame = bz.proportions(tree, new, seed=1)
    ant_topic = 1 if bz.topics(tree, 1).loc[(1, 1), "word"] in WORDS[:3] else 2
    # Dirichlet(0.5 + 100, 0.5), as topics share no word; and the prior
    assert frame.loc[("1", ant_topic), "mean"] == pytest.approx(100.5 / 101, abs=0.01)
    assert frame.loc[("2", ant_topic), "mean"] == pytest.approx(0.5, abs=0.1)
    assert frame.loc[("2", ant_topic), "sd"] == pytest.approx(np.sqrt(0.25 / 2), abs=0.05)
    assert any("7 of 107 words" in note for note in frame.attrs["notes"])


def test_a_fit_that_did_not_pass_shows_its_topics_only_when_told_to(table):
    model = bz.find("lda")(K=2, alpha=0.5, eta=0.5)
    bad = bz.fit(model, {"counts": table, "word": WORDS}, "gibbs", seed=1, draws=20, tune=1, extend=False)
    with raises(Untrustworthy, "withheld", "withheld"):
        bz.topics(bad)
    with pytest.raises(Untrustworthy):
        bz.proportions(bad)
    assert "gate did not pass" in bz.topics(bad, 2, untrusted=True).attrs["caveat"]
    figure = bz.plot_topics(bad, 3, untrusted=True)
    assert [panel.get_title().partition(":")[0] for panel in figure.axes[:2]] == ["topic 1", "topic 2"]
    assert "NOT TO BE TRUSTED" in figure.get_suptitle()


@pytest.mark.usefixtures("unmeasured")
def test_refuses_in_one_line(tree, table):
    mixture = bz.fit(bz.find("multinomial_mixture")(K=2), method="vb", seed=1)
    coin = bz.fit(bz.find("beta_bernoulli")(), [0, 1, 1], "exact")
    one = {"counts": table[:1], "word": WORDS}
    assert len(bz.topics(mixture, 3)) == 6  # but it has no proportions
    assert bz.topics(tree, 10).equals(bz.topics(tree, 6))  # all words of a small vocabulary
    assert bz.predict(tree, one).index.names == ["document", "topic"]
    assert bz.predict(tree, one, seed=4).equals(bz.proportions(tree, one, seed=4))
    assert not bz.predict(tree, one, seed=4).equals(bz.predict(tree, one, seed=5))
    for call, message in (
        (lambda: bz.proportions(mixture), ("no_capability", "proportions")),
        (lambda: bz.topics(tree, 0), ("out_of_range", "0", "words", "topic")),
        (lambda: bz.predict(tree, 3), ("needs_documents", "topics")),
        (lambda: bz.document_scores(tree, one, how="elbo"), ("wrong_type", "'completion'", "'left-to-right'")),
        (lambda: bz.document_scores(tree, {**one, "counts": np.eye(1, 6)}), ("no_data", "words")),
        (lambda: bz.document_scores(coin, [0]), ("no_topic_inference", "topics")),
    ):
        with raises(InputError, *message):
            call()


def test_command_prints_saves_draws_and_scores(file, tmp_path, capsys):
    topics_command(file, top=2, shown=AnswerOptions(output=tmp_path / "t.csv"), plot=tmp_path / "t.png")
    out = capsys.readouterr().out
    assert "stability" in out
    assert "ant, bee" in out
    assert (tmp_path / "t.csv").read_text().startswith("topic,rank,word,mean,sd,q025,median,q975,mcse_mean")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    topics_command(file, documents=True)
    assert re.search(r"0\.\d{3} \+- 0\.\d{3} ", capsys.readouterr().out)
    topics_command(file, documents=True, shown=AnswerOptions(digits=7))
    assert re.search(r"0\.\d{6,} \+- 0\.\d{6,} ", capsys.readouterr().out)
    topics_command(file, top=2, shown=AnswerOptions(as_json=True))
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 4
    new = tmp_path / "new.csv"
    new.write_text("document,word,count\nx,ant,6\nx,bee,4\ny,day,5\ny,fog,5\n")
    topics_command(file, str(new), score="completion")
    assert "Log score of a word" in capsys.readouterr().out
    with raises(InputError, "option_needs_data"):
        topics_command(file, score="completion")


def test_documents_are_scored_as_by_their_topics(tree):
    new = {"counts": [[30, 18, 12, 0, 0, 0], [10, 6, 4, 10, 6, 4]], "word": WORDS}
    whole, half = (bz.document_scores(tree, new, how=how, seed=1) for how in ("left-to-right", "completion"))
    assert whole["words"].tolist() == [60, 40]
    assert half["words"].tolist() == [30, 20]
    # all words of one topic, whose probabilities are near those of the words themselves: entropy 1.03 nats a word
    assert half["log_score"].iloc[0] / 30 == pytest.approx(-1.03, abs=0.25)
    assert half.attrs["log_score"] == pytest.approx(half["log_score"].sum() / 50)
    assert half.attrs["perplexity"] == pytest.approx(np.exp(-half["log_score"].sum() / 50))
    assert half.attrs["mcse_perplexity"] == pytest.approx(half.attrs["perplexity"] * half.attrs["mcse"])
    assert whole.attrs["perplexity_bound"] == pytest.approx(np.exp(-whole["bound"].sum() / 100))
    assert np.all(whole["bound"] <= whole["log_score"] + 3 * whole["mcse"])
    assert whole.attrs["perplexity_bound"] >= whole.attrs["perplexity"] - 3 * whole.attrs["mcse_perplexity"]


def test_documents_that_are_withheld_are_named_with_the_reason(tree, monkeypatch):
    new = {"counts": [[30, 18, 12, 0, 0, 0], [10, 6, 4, 10, 6, 4]], "word": WORDS}
    assert bz.document_scores(tree, new, seed=1)["withheld"].tolist() == ["", ""]
    monkeypatch.setattr(topic_scores, "MOST_ERROR", 1e-9)
    frame = bz.document_scores(tree, new, how="left-to-right", seed=1)
    assert frame["log_score"].isna().all()
    assert all("relative error" in why for why in frame["withheld"])
