"""Words held out of documents: the split, the score against brute force, and models side by side."""

import importlib
import json
import math

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.cli.answers import AnswerOptions
from bayeszoo.cli.verbs.comparison.words import heldout_command
from bayeszoo.comparison.held_out_words import as_data_of, word_score
from bayeszoo.errors import InputError
from bayeszoo.families.documents.scores import split_words
from bayeszoo.results.stored import Fit
from tests.refusals import raises

module = importlib.import_module("bayeszoo.comparison.held_out_words")  # a function has its name
WORDS = np.array(["bear", "bull", "cow", "dog", "eel"])


def corpus(counts, words=WORDS):
    counts = np.asarray(counts)
    doc, term = np.nonzero(counts)
    names = np.array([f"d{d + 1}" for d in range(len(counts))])
    return {"counts": counts[doc, term], "doc": doc, "term": term, "document": names, "word": words}


def dense(data):
    made = np.zeros((len(data["document"]), len(data["word"])), dtype=int)
    made[data["doc"], data["term"]] = data["counts"]
    return made


def planted(rng, documents=30, length=40):
    """Documents of two topics that share no word, one a half of them each."""
    topics = np.array([[0.5, 0.5, 0, 0, 0], [0, 0, 0.4, 0.3, 0.3]])
    shares = rng.dirichlet([0.3, 0.3], documents)
    return corpus(rng.multinomial(length, shares @ topics))


def test_split_keeps_every_word_once_and_the_share_of_each_document():
    whole = corpus([[4, 6, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 0]])
    seen, held = split_words(whole, 0.2, np.random.default_rng(1))
    assert np.array_equal(dense(seen) + dense(held), dense(whole))
    assert dense(held).sum(axis=1).tolist() == [2, 0, 0, 1]
    assert np.all(seen["counts"] > 0)
    assert np.all(held["counts"] > 0)


def test_words_are_held_out_without_regard_to_which_they_are():
    whole = corpus([[30, 10, 0, 0, 0]])
    held = [dense(split_words(whole, 0.25, np.random.default_rng(seed))[1])[0, 0] for seed in range(400)]
    # hypergeometric: 10 of 40 words, 30 of them bears
    assert abs(np.mean(held) - 7.5) < 4.4 * math.sqrt(10 * 0.75 * 0.25 * 30 / 39 / 400)


def test_unigram_model_is_scored_by_its_closed_form():
    whole = planted(np.random.default_rng(2))
    frame = bz.held_out([bz.find("dirichlet_multinomial")(alpha=0.5)], whole, seed=3)
    seen, held = split_words(whole, 0.2, np.random.default_rng(3))
    total = dense(seen).sum(axis=0)
    expected = dense(held).sum(axis=0) @ np.log((total + 0.5) / (total.sum() + 2.5)) / held["counts"].sum()
    assert frame.loc[0, "log_score"] == pytest.approx(expected, rel=1e-12)
    assert frame.loc[0, "perplexity"] == pytest.approx(math.exp(-expected), rel=1e-12)
    assert frame.loc[0, "mcse"] == 0
    assert frame.loc[0, "method"] == "exact"


def test_models_are_listed_with_the_best_first():
    models = [bz.find("dirichlet_multinomial")(alpha=alpha) for alpha in (500.0, 0.5, 20.0)]
    frame = bz.held_out(models, planted(np.random.default_rng(2)), seed=3)
    assert [str(models[i]) for i in (1, 2, 0)] == frame["model"].tolist()
    assert frame["log_score"].is_monotonic_decreasing
    assert frame["difference"].tolist() == pytest.approx((frame["log_score"] - frame["log_score"].max()).tolist())


@pytest.fixture(scope="module")
def fits():
    whole = planted(np.random.default_rng(4))
    seen, held = split_words(whole, 0.2, np.random.default_rng(0))
    models = {"lda": bz.find("lda")(K=2, alpha=0.3, eta=0.5), "mixture": bz.find("multinomial_mixture")(K=2)}
    methods = {"lda": ("gibbs", {"draws": 100, "tune": 100}), "mixture": ("vb", {"draws": 100})}
    trees = {k: bz.fit(m, as_data_of(m, seen), methods[k][0], seed=1, **methods[k][1]) for k, m in models.items()}
    return trees, seen, held


def by_hand(trees, name, seen, held):
    """Log of the mean probability of each word over draws; of the mixture by Bayes' theorem for each document."""
    posterior = trees[name]["posterior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    topics, counts = posterior["topics"].to_numpy(), dense(held)
    if name == "lda":
        theta = posterior["proportions"].to_numpy()
    else:
        likelihood = np.prod(topics[:, None] ** dense(seen)[:, None], axis=3)
        joint = posterior["weights"].to_numpy()[:, None] * likelihood
        theta = joint / joint.sum(axis=2, keepdims=True)
    p = (theta @ topics).mean(axis=0)
    return float(np.sum(counts[counts > 0] * np.log(p[counts > 0])))


@pytest.mark.parametrize("name", ["lda", "mixture"])
def test_score_is_that_of_loops_over_draws(fits, name, monkeypatch):
    trees, seen, held = fits
    found, expected, right = word_score(Fit(trees[name]), held), by_hand(trees, name, seen, held), module._factors
    assert math.fsum(found.by_document) == pytest.approx(expected, rel=1e-10)
    assert found.words.sum() == held["counts"].sum()
    assert 0 < found.mcse < 5
    monkeypatch.setattr(module, "_CELLS", 4000)  # pieces of the cells give the same
    pieces = word_score(Fit(trees[name]), held)
    assert np.allclose(found.by_document, pieces.by_document, rtol=1e-12)
    assert found.mcse == pytest.approx(pieces.mcse, rel=1e-9)
    monkeypatch.setattr(module, "_factors", lambda *given: (right(*given)[0][..., ::-1], right(*given)[1]))
    assert math.fsum(word_score(Fit(trees[name]), held).by_document) < expected - 10  # topics in another order


@pytest.mark.slow
def test_monte_carlo_error_is_that_of_fits_with_other_seeds():
    whole = planted(np.random.default_rng(5), documents=10)
    seen, held = split_words(whole, 0.3, np.random.default_rng(0))
    model = bz.find("lda")(K=2, alpha=0.3, eta=0.5)
    trees = [bz.fit(model, seen, "gibbs", seed=s, draws=50, tune=100, extend=False) for s in range(12)]
    scores = [word_score(Fit(tree), held) for tree in trees]
    spread = np.std([math.fsum(one.by_document) for one in scores], ddof=1)
    # of 12 fits the ratio is that of a chi variate, between 0.4 and 1.8 but for once in ten thousand
    assert 0.35 < spread / np.mean([one.mcse for one in scores]) < 2.2


@pytest.mark.slow
def test_topics_beat_one_topic_beats_none_on_documents_that_mix_them(capsys, written):
    whole = planted(np.random.default_rng(6))
    cells = zip(*(whole[k] for k in ("doc", "term", "counts")), strict=True)
    rows = [f"{whole['document'][d]},{whole['word'][t]},{n}" for d, t, n in cells]
    path = written("\n".join(["document,word,count", *rows]) + "\n")
    names = ["dirichlet_multinomial", "multinomial_mixture K=2", "lda K=2"]
    heldout_command(str(path), candidates=names, seed=1, shown=AnswerOptions(as_json=True))
    found = json.loads(capsys.readouterr().out)["rows"]
    assert [row["model"].partition("(")[0] for row in found] == ["lda", "multinomial_mixture", "dirichlet_multinomial"]
    assert found[0]["difference"] == 0
    for row in found[1:]:
        assert row["difference"] < -2 * row["difference_se"] < 0
    heldout_command(str(path), candidates=names[:1], seed=1)
    assert "each given the words of its" in capsys.readouterr().out


def test_models_that_are_not_of_words_and_fits_are_refused():
    for share in (0, 1, -0.1, math.nan):
        with raises(InputError, "out_of_range", "0", "1"):
            split_words(corpus([[2, 2, 0, 0, 0]]), share, np.random.default_rng(0))
    with raises(InputError, "no_words", "gaussian_mean"):
        bz.held_out([bz.find("gaussian_mean")()], planted(np.random.default_rng(7)))
    with raises(InputError, "conflicting_options"):
        heldout_command(candidates=["some.nc"])
    with raises(InputError, "not_comparable", "2", "1"):
        bz.held_out([bz.find("lda")()], planted(np.random.default_rng(7)), methods=["vb", "gibbs"])
    with raises(InputError, "no_data", "word"):
        bz.held_out([bz.find("dirichlet_multinomial")()], corpus([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]))
