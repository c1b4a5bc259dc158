"""Naive Bayes of documents against scikit-learn, SciPy, models of the zoo, and Mosteller and Wallace."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import bayeszoo as bz
from bayeszoo.answers.averages import CLOSED_FORM
from bayeszoo.contract.check import check
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.families.classes.words import WordsInTurn
from bayeszoo.model.fields import moved
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
    assert any("1 empty document: 1" in note for note in data.notes)


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
    monkeypatch.setattr("bayeszoo.distributions.conjugate.dirichlet._CELLS", 24)
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
    data = bz.read(TEXT, rows, target="author", columns=["u", "v", "w"])
    assert data["word"].tolist() == ["u", "v", "w"]
    assert len(bz.read(TEXT, {**rows, "u": [3] * 8}, target="author")["word"]) == 3


KNOWN = pd.read_csv(FOLDER / "federalist_words.csv")
TEXTS = pd.read_csv(FOLDER / "federalist.csv.gz")


def papers(of):
    """The 74 words of papers, with their lengths in thousands of words."""
    thousands = TEXTS["text"].str.count(r"\b\w+\b").to_numpy() / 1000
    table = KNOWN.assign(length=thousands[KNOWN["paper"] - 1])
    return table[table["author"].isin(of)].drop(columns="paper")


def of_counts(counts, **fields):
    """An exact fit of the papers of known authors, who are as probable before, with their lengths."""
    words = [name for name in KNOWN if name not in ("paper", "author")]
    known = papers(["hamilton", "madison"])
    data = bz.read(TEXT, known, target="author", length="length", columns=words)
    return bz.fit(TEXT(alpha=1e9, counts=counts, **fields), data, "exact")


def test_mosteller_and_wallace_by_poisson_and_negative_binomial_counts():
    """Both give all twelve to Madison; negative binomial counts are far more probable, and their odds are half."""
    disputed = papers(["hamilton or madison"]).drop(columns="author")
    trees = {"poisson": of_counts("poisson"), "negative_binomial": of_counts("negative_binomial", size=5)}
    nats = {name: log_odds(bz.classify(tree, disputed)) for name, tree in trees.items()}
    assert all((odds > 0).all() for odds in nats.values())
    assert [round(odds.min(), 1) for odds in nats.values()] == [0.9, 1.1]
    assert [round(odds.max(), 1) for odds in nats.values()] == [38.4, 24.3]
    for tree in trees.values():
        assert bz.classify(tree, leave_one_out=True).attrs["loss_of_one"] == 0
    evidence = [Fit(tree).facts["log_evidence"] for tree in trees.values()]
    assert evidence[1] - evidence[0] == pytest.approx(1015.5, abs=0.1)


def test_how_often_may_occurs_in_262_blocks():
    """Mosteller and Wallace 1964, by blocks of 200 words: the evidence is highest near the likeliest size."""
    times = np.repeat(np.arange(7), [156, 63, 29, 8, 4, 1, 1])
    best = scipy.optimize.minimize_scalar(
        lambda size: -scipy.stats.nbinom.logpmf(times, size, size / (size + times.mean())).sum(),
        bounds=(0.1, 10),
        method="bounded",
    )
    # `upon` stands for all other words, of which each block has one, and the classes for two halves of the blocks
    rows = pd.DataFrame({"half": np.arange(262) % 2, "may": times, "upon": 1})
    evidence = {}
    data = bz.read(TEXT, rows.assign(length=1), target="half", columns=["may", "upon"], length="length")
    for size in (0.4, 0.8, best.x, 1.8, 3.6):
        model = TEXT(counts="negative_binomial", size=size)
        law, stats = model.block(model.statistics(data)).law, model.statistics(data).parts[1]
        evidence[size] = law.block.log_evidence(stats)[:, 0].sum()
    poisson = TEXT(counts="poisson")
    of_rates = poisson.block(poisson.statistics(data)).law.block
    assert best.x == pytest.approx(1.19, abs=0.01)
    assert max(evidence, key=evidence.get) == best.x
    assert evidence[best.x] - of_rates.log_evidence(poisson.statistics(data).parts[1])[:, 0].sum() > 5


LENGTHS = np.where(np.arange(30) % 3, 2.0, 1.0)


def counted(counts, codes=CODES, lengths=LENGTHS):
    return table(counts, codes).assign(pages=lengths)


@pytest.mark.parametrize("counts", ["poisson", "negative_binomial"])
def test_odds_and_evidence_of_counts_are_scipys(counts):
    a, b, size = np.array([0.5, 1.0, 1.5, 2.0]), 0.8, 3.0
    words = {"target": "author", "length": "pages", "columns": WORDS}
    model = TEXT(counts=counts, a=a.tolist(), b=b, size=size)
    tree = bz.fit(model, bz.read(TEXT, counted(COUNTS), **words), "exact")
    new, long = np.array([[0, 0, 0, 0], [3, 0, 9, 1], [50, 0, 0, 2]]), np.array([1.0, 3.0, 40.0])
    ours = log_odds(bz.classify(tree, counted(new, np.zeros(3, dtype=int), long).drop(columns="author")))

    def log_mass(k, y, length, rows):
        events, exposure = COUNTS[rows][CODES[rows] == k].sum(axis=0), LENGTHS[rows][CODES[rows] == k].sum()
        if counts == "poisson":
            return scipy.stats.nbinom.logpmf(y, a + events, (b + exposure) / (b + exposure + length)).sum()
        return scipy.stats.betanbinom.logpmf(y, size * length, size * (b + exposure), a + events).sum()

    all_rows, alpha = np.arange(30), 1 + np.bincount(CODES)
    expected = [
        np.log(alpha[1] / alpha[0]) + log_mass(1, y, length, all_rows) - log_mass(0, y, length, all_rows)
        for y, length in zip(new, long, strict=True)
    ]
    np.testing.assert_allclose(ours, expected, rtol=1e-9)
    total = sum(
        log_mass(CODES[i], COUNTS[i], LENGTHS[i], all_rows[:i]) + np.log((1 + np.sum(CODES[:i] == CODES[i])) / (2 + i))
        for i in range(30)
    )
    assert Fit(tree).facts["log_evidence"] == pytest.approx(total, rel=1e-11)
    left_out = bz.classify(tree, leave_one_out=True)
    others = np.delete(all_rows, 4)
    shares = np.log((1 + np.bincount(CODES[others])) / 31)
    alone = [shares[k] + log_mass(k, COUNTS[4], LENGTHS[4], others) for k in range(2)]
    assert log_odds(left_out)[4] == pytest.approx(alone[1] - alone[0], rel=1e-9)


def test_large_sizes_are_poisson_counts():
    poisson = log_odds(bz.classify(fitted(table(), counts="poisson")))
    nearly = log_odds(bz.classify(fitted(table(), counts="negative_binomial", size=1e7)))
    np.testing.assert_allclose(nearly, poisson, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("counts", ["poisson", "negative_binomial"])
def test_contract_of_other_counts(counts):
    base = TEXT(counts=counts)
    model = moved(base, base.sizes(base.simulate(np.random.default_rng(0), 1)[1]))
    failed = [str(each) for each in check(model, sampler=False) if not each.passed]
    assert not failed


@pytest.mark.parametrize("counts", ["multinomial", "poisson", "negative_binomial"])
def test_words_of_an_explanation_add_up(counts):
    tree = fitted(table(), counts=counts)
    said = bz.explain(tree, row=3)
    assert said["log_odds"].sum() == pytest.approx(said.attrs["log_odds"], rel=1e-12)
    assert dict(zip(said.index, said["value"], strict=True))["w"] == str(COUNTS[2, 2])


def test_multinomial_words_are_explained_by_the_mean_over_all_their_orders():
    """The chain rule in every order of the words, by hand."""
    alpha, counts = np.array([[0.7, 2.0, 1.1], [3.0, 0.4, 0.9]]), np.array([2, 1, 2])
    law = WordsInTurn(("theta",), "counts", alpha)
    parts = law.apart({"counts": scipy.sparse.csr_array(counts[None] * 1.0)})
    found = np.array([part.log_predictive(rows)[0] for part, rows in parts])
    terms, orders = np.zeros((3, 2)), {*itertools.permutations(np.repeat(np.arange(3), counts))}
    for order in orders:
        seen = alpha.copy()
        for v in order:
            terms[v] += np.log(seen[:, v] / seen.sum(axis=1)) / len(orders)
            seen[:, v] += 1
    np.testing.assert_allclose(found, terms, rtol=1e-12)


def test_forms_that_do_not_compare_are_refused():
    data = bz.read(TEXT, table(), target="author")
    with raises(bz.InputError, "not_comparable"):
        bz.select([TEXT(), TEXT(counts="poisson")], data)
    assert len(bz.select([TEXT(counts="negative_binomial", size=2.0), TEXT(counts="poisson")], data)) == 2


LETTERS = ["win money now", "money money prize now", "see you at lunch", "lunch at noon you say", "win a prize"]
KINDS = ["spam", "spam", "mail", "mail", "spam"]


def test_texts_with_a_class_are_scikit_learns(tmp_path):
    file = tmp_path / "letters.csv"
    pd.DataFrame({"kind": KINDS, "text": LETTERS}).to_csv(file, index=False)
    words = CountVectorizer().fit(LETTERS)
    theirs = MultinomialNB(class_prior=np.array([3.0, 4.0]) / 7).fit(words.transform(LETTERS), KINDS)
    expected = theirs.predict_proba(words.transform(["money", "lunch"]))
    for source, options in ((file, {"target": "kind"}), ((LETTERS, KINDS), {})):
        data = bz.read(TEXT, source, **options)
        assert data["word"].tolist() == words.get_feature_names_out().tolist()
        ours = bz.classify(bz.fit(TEXT(), data, "exact"), {"text": ["money", "lunch"]})
        np.testing.assert_allclose(ours[["p[mail]", "p[spam]"]], expected, rtol=1e-12)
        new = bz.read(TEXT, {"text": ["money for my lunch"]}, new=True, like=data)
        assert "2 of 4 words are not in the vocabulary of the fit and are left out (50.0%)" in new.notes
    table = words.transform(LETTERS)
    data = bz.read(TEXT, (table, KINDS))
    ours = bz.classify(bz.fit(TEXT(), data, "exact"), words.transform(["money", "lunch"]))
    np.testing.assert_allclose(ours[["p[mail]", "p[spam]"]], expected, rtol=1e-12)


def test_texts_triplets_and_a_table_of_counts_are_the_same_documents():
    words = CountVectorizer().fit(LETTERS)
    counts = words.transform(LETTERS).toarray()
    wide = pd.DataFrame(counts, columns=words.get_feature_names_out()).assign(y=KINDS)
    doc, term = np.nonzero(counts)
    long = pd.DataFrame(
        {
            "document": doc,
            "word": words.get_feature_names_out()[term],
            "count": counts[doc, term],
            "y": np.array(KINDS)[doc],
        }
    )
    every = [bz.read(TEXT, source) for source in ({"text": LETTERS, "y": KINDS}, wide, long)]
    assert len({data.digest for data in every}) == 1
    again = bz.read(TEXT, TEXT.inputs.table(every[0]), **TEXT.inputs.reading(every[0]))
    assert again.digest == every[0].digest


def test_rows_dropped_and_row_numbers_are_those_of_the_table():
    frame = pd.DataFrame(
        {"y": ["spam", None, "mail", "mail", "spam"], "text": [LETTERS[0], *LETTERS[1:3], None, LETTERS[4]]}
    )
    data = bz.read(TEXT, frame, missing="drop")
    assert data.numbers.tolist() == [1, 3, 5]
    assert bz.classify(bz.fit(TEXT(), data, "exact")).index.tolist() == [1, 3, 5]


REFUSED_TEXTS = {
    "a word of the fit lacks": ({"u": [1], "v": [2], "w": [3]}, {}, "missing_column"),
    "another class": ({"author": ["c"], **{word: [1] for word in WORDS}}, {}, "unknown_label"),
    "no word of the fit": ({"text": ["nothing here"]}, {"text": "text"}, "unknown_label"),
    "a negative length": ({**{word: [1] for word in WORDS}, "n": [-1]}, {"length": "n"}, "out_of_range"),
}


@pytest.mark.parametrize("name", REFUSED_TEXTS)
def test_new_documents_that_are_refused(name):
    rows, options, code = REFUSED_TEXTS[name]
    with raises(bz.InputError, code):
        bz.classify(fitted(table()), rows, **options)


def test_rows_of_one_document_that_are_of_two_classes_are_refused():
    rows = {"document": ["a", "a", "b"], "word": ["u", "v", "u"], "y": ["spam", "mail", "mail"]}
    with raises(bz.InputError, "conflicting_options"):
        bz.read(TEXT, rows)


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
