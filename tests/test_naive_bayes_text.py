"""Naive Bayes of documents against scikit-learn, SciPy, models of the zoo, and Mosteller and Wallace."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn.naive_bayes import MultinomialNB

import bayeszoo as bz
from bayeszoo.answers.averages import CLOSED_FORM
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.results.stored import Fit
from tests.refusals import raises

TEXT = bz.find("naive_bayes_text")
FOLDER = Path(__file__).resolve().parents[1] / "models" / "data"
WORDS = ["u", "v", "w", "x"]
RNG = np.random.default_rng(2)
CODES = RNG.integers(0, 2, 30)
COUNTS = RNG.multinomial(RNG.integers(0, 40, 30), np.array([[0.1, 0.2, 0.3, 0.4], [0.3, 0.3, 0.2, 0.2]])[CODES])


def table(counts=COUNTS, codes=CODES):
    return pd.DataFrame({"author": np.array(["a", "b"])[codes], **dict(zip(WORDS, counts.T, strict=True))})


def fitted(frame, method="exact", **fields):
    return bz.fit(TEXT(**fields), bz.read(TEXT, frame, target="author"), method)


def log_odds(frame):
    """Nats for the second class."""
    first, second = (np.log(frame[f"p[{label}]"].to_numpy()) for label in frame.attrs["classes"])
    return second - first


def test_evidence_is_that_of_the_models_of_the_zoo_class_by_class():
    data = bz.read(TEXT, table(), target="author")
    model, words = TEXT(alpha=0.8, eta=0.7), bz.find("dirichlet_multinomial")
    classes = words(alpha=0.8)
    total = classes.log_evidence(classes.statistics({"y": CODES, "category": np.array(["a", "b"])}))
    for k in range(2):
        rows = {"counts": COUNTS[k == CODES], "category": np.array(WORDS)}
        total += words(alpha=0.7).log_evidence(words().statistics(rows))
    assert model.log_evidence(model.statistics(data)) == pytest.approx(total, rel=1e-12)


def test_documents_of_one_word_are_scikit_learns_and_long_ones_are_scipys():
    """A plugged-in mean does not know that words repeat: it is too sure."""
    eta = np.array([0.5, 1.0, 1.5, 2.0])
    prior = (np.bincount(CODES) + 1) / (len(CODES) + 2)
    theirs = MultinomialNB(alpha=eta, class_prior=prior).fit(COUNTS, CODES)
    tree = fitted(table(), eta=eta.tolist())
    new = np.vstack([np.eye(4, dtype=int), 20 * np.eye(4, dtype=int)])
    ours = log_odds(bz.classify(tree, table(new, np.zeros(8, dtype=int)).drop(columns="author")))
    plugged_in = np.diff(theirs.predict_log_proba(new))[:, 0]
    np.testing.assert_allclose(ours[:4], plugged_in[:4], rtol=1e-10)
    prior_odds = np.log(prior[1] / prior[0])
    assert (np.abs(ours[4:] - prior_odds) < np.abs(plugged_in[4:] - prior_odds)).all()
    later = [eta + COUNTS[k == CODES].sum(axis=0) for k in range(2)]
    of_words = [scipy.stats.dirichlet_multinomial.logpmf(new, alpha, new.sum(axis=1)) for alpha in later]
    np.testing.assert_allclose(ours, prior_odds + of_words[1] - of_words[0], rtol=1e-9)


def test_maximum_likelihood_is_the_shares_of_the_words():
    tree = fitted(table(), "mle")
    expected = np.array([COUNTS[k == CODES].sum(axis=0) / COUNTS[k == CODES].sum() for k in range(2)])
    np.testing.assert_allclose(Fit(tree).draws()["theta"][0, 0], expected, rtol=1e-12)


def test_mosteller_and_wallace():
    """All twelve disputed papers are Madison's, No. 55 by least; of those known, left out, none is wrong."""
    even = bz.fit(TEXT(alpha=1e9, eta=1.0), bz.example(TEXT), "exact")
    papers = pd.read_csv(FOLDER / "federalist_words.csv")
    disputed = papers[papers["author"] == "hamilton or madison"]
    nats = dict(zip(disputed["paper"], log_odds(bz.classify(even, disputed.drop(columns="author"))), strict=True))
    assert len(nats) == 12
    assert min(nats, key=nats.get) == 55
    assert [round(nats[paper], 1) for paper in (55, 49, 57)] == [0.7, 11.4, 39.4]
    assert max(nats.values()) == nats[57]
    left_out = bz.classify(even, leave_one_out=True)
    assert left_out.attrs["basis"] == CLOSED_FORM
    assert (len(left_out), left_out.attrs["loss_of_one"]) == (65, 0.0)


def test_the_example_is_the_papers_of_known_authors():
    papers = pd.read_csv(FOLDER / "federalist_words.csv")
    known = papers[papers["author"].isin(["hamilton", "madison"])].drop(columns="paper")
    pd.testing.assert_frame_equal(pd.read_csv(FOLDER / "federalist_known.csv"), known.reset_index(drop=True))


def test_documents_left_out_are_those_of_fits_without_them():
    frame = table()
    left_out = bz.classify(fitted(frame, eta=0.7), leave_one_out=True)
    for i in (0, 11):
        alone = bz.classify(fitted(frame.drop(index=i), eta=0.7), frame.iloc[[i]].drop(columns="author"))
        np.testing.assert_allclose(log_odds(left_out)[i], log_odds(alone)[0], rtol=1e-9)


def test_an_empty_document_has_the_shares_and_is_remarked():
    tree = fitted(table())
    new = {word: [0, 3] for word in WORDS}
    frame = bz.classify(tree, new)
    shares = (np.bincount(CODES) + 1) / (len(CODES) + 2)
    np.testing.assert_allclose(frame[["p[a]", "p[b]"]].iloc[0], shares, rtol=1e-12)
    data = bz.read(TEXT, new, new=True, like=bz.read(TEXT, table(), target="author"))
    assert any("(row 1)" in note for note in data.notes)


def test_long_documents_are_not_taken_for_unlike_ones():
    """Their densities, products over words, are below those of all short ones."""
    tree = fitted(table())
    frame = bz.classify(tree, {word: [2000] for word in WORDS}, density=True)
    assert frame["log_density"].iloc[0] < bz.classify(tree, density=True)["log_density"].min()
    assert frame.attrs["unlike"] == []


def test_words_without_counts_keep_odds_finite_but_not_by_maximum_likelihood():
    counts = COUNTS.copy()
    counts[CODES == 0, 0] = 0
    new = {"u": [1], "v": [0], "w": [0], "x": [0]}
    bayes, estimate = (bz.classify(fitted(table(counts), method), new) for method in ("exact", "mle"))
    assert 0 < bayes["p[a]"].iloc[0] < 0.5
    assert estimate["p[a]"].iloc[0] == 0
    assert estimate.attrs["rows_vetoed"] == 1


def test_evidences_of_many_documents_are_taken_some_at_a_time(monkeypatch):
    law = Categorical(("theta",), "counts", np.array([[0.5, 1.0, 1.5, 2.0], [1.0, 1.0, 1.0, 1.0]]))
    whole = law.log_predictive({"counts": COUNTS})
    monkeypatch.setattr("bayeszoo.distributions.conjugate.categorical._CELLS", 24)
    np.testing.assert_array_equal(law.log_predictive({"counts": COUNTS}), whole)
    assert law.log_predictive({"counts": COUNTS[:0]}).shape == (0, 2)


def test_an_update_is_the_fit_of_all_documents():
    first, second = (
        bz.read(TEXT, table(COUNTS[rows], CODES[rows]), target="author") for rows in (slice(15), slice(15, 30))
    )
    model, whole = TEXT(eta=0.7), bz.read(TEXT, table(), target="author")
    later = bz.update(model, first)
    both = model.log_evidence(model.statistics(first)) + later.log_evidence(later.statistics(second))
    assert both == pytest.approx(model.log_evidence(model.statistics(whole)), rel=1e-11)


def test_words_may_be_as_frequent_as_others():
    rows = {"author": [*"abababab"], "u": [*range(8)], "v": [1] * 8, "w": [1] * 8}
    data = bz.read(TEXT, rows, target="author", features=["u", "v", "w"])
    assert data["count"].tolist() == ["u", "v", "w"]
    assert len(bz.read(TEXT, {**rows, "u": [3] * 8}, target="author")["count"]) == 3


REFUSED = {
    "no words": ({"author": ["a", "b"], "u": [0, 0], "v": [0, 0]}, "no_data"),
    "one word": ({"author": ["a", "b"], "u": [1, 2]}, "no_data"),
    "text": ({"author": ["a", "b"], "u": ["x", "y"], "v": [1, 2]}, "not_a_number"),
    "part of a word": ({"author": ["a", "b"], "u": [1.5, 2], "v": [1, 2]}, "not_whole"),
    "a hole": ({"author": ["a", "b"], "u": [1, None], "v": [1, 2]}, "missing_values"),
    "one class": ({"author": ["a", "a"], "u": [1, 2], "v": [2, 1]}, "no_data"),
    "numbers of the documents": ({"author": [*"abababab"], "paper": [*range(8)], "v": [1] * 8}, "names_of_rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    rows, code = REFUSED[name]
    with raises(bz.InputError, code):
        bz.read(TEXT, rows, target="author")


def drawn_from_urn(alpha, counts):
    """Log probability of words that are drawn one after the other, each put back with one more of its kind."""
    drawn = np.concatenate([a + np.arange(n) for a, n in zip(alpha, counts, strict=True)])
    return np.sum(np.log(drawn / (alpha.sum() + np.arange(counts.sum()))))


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_few_words_of_many_are_drawn_from_an_urn_in_long_documents_too(scale):
    rng = np.random.default_rng(4)
    alpha = rng.gamma(1.0, scale, (3, 200))
    counts = np.zeros((30, 200))
    counts[np.arange(30)[:, None], rng.integers(0, 200, (30, 5))] = rng.integers(0, 20, (30, 5))
    counts[3] = 0
    for rows in (counts, np.vstack([counts, 2e5 * np.eye(200)[:2]])):
        expected = [[drawn_from_urn(own, row) for own in alpha] for row in rows]
        ours = Categorical(("theta",), "counts", alpha).log_predictive({"counts": rows})
        np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-11)
