"""A corpus from triplets, raw text, dense tables and sparse matrices: the same cells, and nothing that is no count."""

import csv
import gzip
import io
import re
from collections import Counter
from importlib import resources

import numpy as np
import pytest
import scipy
from sklearn.feature_extraction.text import CountVectorizer

from bayeszoo.data.inputs import Corpus, Documents
from bayeszoo.data.read import Data, Example, example, read
from bayeszoo.errors import InputError
from tests.reading import by_name, model_of, plain, refusal, refuses
from tests.refusals import raises

ADDED = "1 row repeats its document and word: the counts are added"
DROP = "; use --missing drop"
EARLIER = " is the name of an earlier document too"
ENGLISH = "use 'english', or none at all"
SMALLER = "min_documents and max_share do not apply to a given vocabulary; leave them out"

FEDERALIST = Example("federalist.csv.gz", "The Federalist papers.", "1787", {"text": "text", "document": "number"})


class Topics:
    inputs = Corpus()
    examples, labels = (FEDERALIST,), {}


Unigrams = model_of(Documents())
Topics.__module__ = "bayeszoo.models.topics"  # whose folder `data` is the models'

TEXTS = ["The cat saw a cat.", "", "Dogs: the DOG'S dogs!", "saw, dogs; cat"]
ARRAYS = {"counts": np.array([3, 1, 2]), "doc": np.array([0, 0, 2]), "term": np.array([0, 2, 1])}
ARRAYS |= {"document": np.array(["x", "y", "z"]), "word": np.array(["a", "b", "c"])}
DENSE = np.array([[3, 0, 1], [0, 0, 0], [0, 2, 0]])


TRIPLETS = {
    "mapping": {"document": ["x", "z", "x", "y"], "word": ["c", "b", "a", "a"], "count": ["1", "2.0", "3", "0"]},
    "repeated": {"document": list("xxzxzy"), "word": list("cababa"), "count": [1, 2, 1, 1, 1, 0]},
}


@by_name("table", TRIPLETS)
def test_triplets_are_cells(table):
    data = read(Topics, table)
    order = list(dict.fromkeys(table["document"]))  # documents are in the order in which they come
    expected = Topics.inputs.reordered(ARRAYS, np.array(["xyz".index(name) for name in order]))
    assert plain(data) == plain(expected)
    assert {values.dtype.kind for values in data.values()} == {"i", "U"}
    assert data.rows == 3
    assert "1 empty document: y" in data.notes
    assert ("2 rows repeat their documents and words: the counts are added" in data.notes) == (len(table["word"]) == 6)


def test_triplets_under_other_names_and_without_counts(written):
    path = written("who,said,n\ny,b,2\nx,a,1\ny,a,1\n", "words.csv")
    data = read(Topics, path, document="who", word="said", count="n")
    labels = {"document": ["y", "x"], "word": ["a", "b"]}
    assert plain(data) == {"counts": [1, 2, 1], "doc": [0, 0, 1], "term": [0, 1, 0], **labels}
    assert (data.columns, data.notes) == ({"document": "who", "word": "said", "count": "n"}, ())
    each = read(Topics, {"document": [7, 7, 7, 1], "word": ["b", "a", "b", "b"]})
    assert plain(each) == plain(data) | {"term": [0, 1, 1], "document": ["7", "1"]}


def test_raw_text_is_split_as_by_scikit_learn():
    texts = [*TEXTS[:1], " ", *TEXTS[2:], "naïve Ünder_score 1st 22 2 x-ray émigré's"]
    data = read(Topics, texts)
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(texts)
    assert data["word"].tolist() == vectorizer.get_feature_names_out().tolist()
    assert np.array_equal(dense(data), counts.toarray())
    assert data["document"].tolist() == ["1", "2", "3", "4", "5"]
    assert data.notes[-1] == "1 empty document: 2"
    assert data.notes[0] == f"column 'y': 5 documents of {counts.sum()} words, {counts.shape[1]} of them distinct"


def dense(data):
    counts = np.zeros((len(data["document"]), len(data["word"])), dtype=np.int64)
    np.add.at(counts, (data["doc"], data["term"]), data["counts"])
    return counts


@pytest.mark.parametrize(("least", "most"), [(1, 1.0), (2, 1.0), (1, 0.5), (3, 0.7), (2, 0.51)])
def test_words_of_few_and_of_many_documents_are_left_out_as_by_scikit_learn(least, most):
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice([f"w{i:02d}" for i in range(30)], 12, p=np.arange(1, 31) / 465)) for _ in range(10)]
    vectorizer = CountVectorizer(min_df=least, max_df=most)
    counts = vectorizer.fit_transform(texts)
    data = read(Topics, texts, min_documents=least, max_share=most)
    assert data["word"].tolist() == vectorizer.get_feature_names_out().tolist()
    assert np.array_equal(dense(data), counts.toarray())


def test_what_is_left_out_is_said():
    texts = ["the ship of state", "the state of the ship", "the crew", "a crew"]
    data = read(Topics, texts, stop_words="english", min_documents=2, max_share=0.5)
    assert data["word"].tolist() == ["crew", "ship", "state"]
    assert data.notes == (
        "column 'y': 4 documents of 12 words, 5 of them distinct",
        "stop words: 2 of 5 distinct words left out, 6 of 12 words (50.0%); 3 are left",
    )
    rare = read(Topics, ["aa bb cc", "aa bb", "aa"], min_documents=2, max_share=1).notes[1]
    assert rare == "words in fewer than 2 documents: 1 of 3 distinct words left out, 1 of 6 words (16.7%); 2 are left"
    common = read(Topics, ["aa bb cc", "aa bb", "aa cc"], max_share=0.7).notes[1]
    assert common.startswith("words in more than 70% of the documents: 1 of 3 distinct words left out, 3 of 7 words")


def test_documents_of_raw_text_have_names():
    table = {"id": [3, 1], "body": ["aa bb", "bb"], "author": ["h", "m"]}
    data = read(Topics, table, text="body", document="id")
    assert (data["document"].tolist(), data.columns) == (["3", "1"], {"text": "body", "document": "id"})
    assert read(Topics, {"document": ["h", "m"], "text": ["aa bb", "bb"]})["document"].tolist() == ["h", "m"]
    assert read(Topics, table, text="body")["document"].tolist() == ["1", "2"]


def test_dense_tables_are_cells():
    table = dict(zip("abc", DENSE.T, strict=True))
    data = read(Topics, table)
    assert plain(data) == plain({**ARRAYS, "document": np.array(["1", "2", "3"])})
    assert data.notes == ("every column is a word: a, b, c", "1 empty document: 2")
    named = read(Topics, {"title": ["x", "y", "z"], **table}, document="title")
    assert plain(named) == plain(ARRAYS)
    assert read(Topics, {"title": ["x", "y", "z"], **table}, columns="c,a")["word"].tolist() == ["c", "a"]
    assert read(Topics, DENSE)["word"].tolist() == ["1", "2", "3"]


SPARSE = {
    "csr array": scipy.sparse.csr_array(DENSE),
    "coo": scipy.sparse.coo_array(([1, 2, 1, 2, 0], ([0, 0, 0, 2, 1], [0, 0, 2, 1, 1])), shape=(3, 3)),
    "dense": DENSE,
}
LABELS = {"document": ["x", "y", "z"], "word": ["a", "b", "c"]}


@by_name("matrix", SPARSE)
def test_matrices_with_their_labels(matrix):
    assert plain(read(Topics, {"counts": matrix, **LABELS})) == plain(ARRAYS)
    words = read(Topics, {"counts": matrix, "word": np.array(list("abc"), dtype=object)})
    assert plain(words) == plain({**ARRAYS, "document": np.array(["1", "2", "3"])})
    expected = {"counts": DENSE.tolist(), "word": list("abc")}
    assert plain(read(Unigrams, {"counts": matrix, "word": list("abc")})) == expected
    assert plain(read(Unigrams, {"counts": matrix, **LABELS})) == expected
    if scipy.sparse.issparse(matrix):
        assert read(Topics, matrix)["word"].tolist() == ["1", "2", "3"]
        assert read(Unigrams, matrix, min_documents=1)["counts"].tolist() == DENSE.tolist()


def triplets(*counts, documents="xyz", words="abc"):
    size = len(counts)
    return {"document": list(documents[:size]), "word": list(words[:size]), "count": list(counts)}


REFUSED = {
    "large": (triplets(2**53 - 1, 1), {}, "the counts have a sum of 2**53 or more"),
    "one word": (triplets(1, 2, words="aa"), {}, "only the word 'a', at least two are needed; give or keep more"),
    "one role": (triplets(1, 2), {"word": "document"}, "one column cannot be both document and word and count"),
    "together": (triplets(1, 2), {"text": "word", "word": "word"}, "text and word do not go together; leave one out"),
    "no name": ({"text": ["aa", "bb"], "document": ["x", ""]}, {}, "column 'document': 1 missing value (row 2)" + DROP),
    "names": ({"text": ["aa", "bb"], "document": ["x", "x"]}, {}, "column 'document', row 2: 'x'" + EARLIER),
    "stop words": (TEXTS[2:], {"stop_words": "none"}, "there are no stop words called 'none'; " + ENGLISH),
    "least": (TEXTS[2:], {"min_documents": "0"}, "min_documents must be a whole number >= 1, got '0'"),
    "most": (TEXTS[2:], {"max_share": 1.5}, "max_share must be a share > 0 and <= 1, got '1.5'"),
    "nothing left": (TEXTS[2:], {"min_documents": 3}, "the counts add up to 0: there are no words in the documents"),
    "vocabulary": (TEXTS[2:], {"vocabulary": "zz,yy"}, "none of the 7 words is in the vocabulary"),
    "smaller": (TEXTS[2:], {"vocabulary": "saw,dogs", "max_share": 0.5}, SMALLER),
    "other columns": (
        {"n": [1, 2], "m": [1, 2], "title": ["x y", "z"]},
        {},
        "column 'title', row 1: 'x y' is not a number (and 1 more: row 2); "
        "choose columns of numbers: --columns n,m; of raw text, --text title",
    ),
    "sparse fraction": (
        {"counts": scipy.sparse.csr_array([[0, 1], [0.5, 0]]), "word": ["a", "b"]},
        {},
        "counts, document '2', word 'a': 0.5 is not a count; counts are whole numbers from 0 to 2**53 - 1",
    ),
    "sparse labels": ({"counts": SPARSE["coo"], "word": ["a", "b"]}, {}, "word holds 2 labels, but the matrix has 3"),
    "sparse and no rows": (scipy.sparse.csr_array((0, 3)), {}, "no data rows"),
    "sparse zeros": (scipy.sparse.csr_array((2, 3)), {}, "the counts add up to 0: there are no words in the documents"),
}
test_tables_that_are_refused = refuses(Topics, REFUSED)
test_tables_that_are_refused_of_documents_too = refuses(Unigrams, REFUSED)


def test_rows_that_lack_a_value_are_dropped_when_asked_for():
    table = {"document": ["x", "x", "y", "", "z"], "word": ["a", "", "b", "a", "b"], "count": [1, 2, None, 4, 5]}
    data = read(Topics, table, missing="drop")
    assert (data["document"].tolist(), data["counts"].tolist()) == (["x", "z"], [1, 5])
    assert data.notes == ("3 rows with missing values dropped (rows 2, 3, 4)",)
    table = {"text": ["aa bb", None, "bb"]}
    data = read(Topics, table, missing="drop")
    assert data["document"].tolist() == ["1", "3"]  # rows of the user's table
    assert data.notes[0] == "1 row with missing values dropped (row 2)"


BROKEN = {
    "document": ({"doc": [0, 0, 3]}, "column 'doc', row 3: 3 is outside the codes 0 to 2"),
    "word": ({"term": [0, 3, 1]}, "column 'term', row 2: 3 is outside the codes 0 to 2"),
    "lengths": ({"counts": [3, 1]}, "counts has 2 rows, doc has 3"),
}


@by_name(("change", "message"), BROKEN)
def test_canonical_arrays_that_are_refused(change, message):
    assert str(refusal(Topics, {**ARRAYS, **change})) == message
    with pytest.raises(InputError):
        read(Topics, Data({name: np.asarray(values) for name, values in {**ARRAYS, **change}.items()}))


def test_canonical_arrays_in_any_order_and_what_is_empty():
    data = read(Topics, {**ARRAYS, "word": ["a", "b", "c", "d", "e"]})
    assert data.notes == ("words d, e never occur", "1 empty document: y")
    again = read(Topics, Topics.inputs.table(data), **Topics.inputs.reading(data))
    assert (again.digest, again.notes) == (data.digest, data.notes)
    mixed = {"counts": [2, 1, 0, 3], "doc": [2, 0, 1, 0], "term": [1, 2, 1, 0]}
    assert plain(read(Topics, {**ARRAYS, **mixed})) == plain(ARRAYS)
    twice = read(Topics, {**ARRAYS, **mixed, "counts": [2, 1, 1, 3], "doc": [2, 0, 2, 0]})
    assert (twice["counts"].tolist(), twice.notes[0]) == ([3, 1, 3], ADDED)


def test_documents_are_rows():
    inputs = Topics.inputs
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.4, (20, 15))
    data = read(Topics, counts)
    for order in (rng.permutation(20), rng.integers(0, 20, 30), np.array([], dtype=np.int64)):
        assert np.array_equal(dense(inputs.reordered(data, order)), counts[order])
    words = rng.permutation(15)
    other = inputs.relabelled(data, "word", words)
    assert np.array_equal(dense(other), counts[:, words])
    assert plain(inputs.canonical(other).arrays) == plain(other)  # which are sorted again
    assert inputs.size(inputs.split(data, 0)[0]) == 0
    further = inputs.unseen(data, 3)
    assert (inputs.size(further), len(further["counts"]), further["word"] is data["word"]) == (3, 0, True)


def test_new_documents_have_the_vocabulary_of_the_fit():
    fit = read(Topics, ["aa bb cc", "aa"])
    new = read(Topics, ["bb zz the bb", "yy", "cc"], new=True, like=fit)
    assert (new["word"].tolist(), new["document"].tolist()) == (["aa", "bb", "cc"], ["1", "2", "3"])
    assert dense(new).tolist() == [[0, 2, 0], [0, 0, 0], [0, 0, 1]]
    left_out = "3 of 6 words are not in the vocabulary of the fit and are left out (50.0%)"
    assert new.notes[1:] == (left_out, "1 empty document: 2")
    without = read(Topics, ["bb the zz"], new=True, like=fit, stop_words="english", min_documents=5)
    assert without.notes[2] == "1 of 2 words is not in the vocabulary of the fit and is left out (50.0%)"
    assert read(Topics, new, new=True, like=fit) is new
    with raises(InputError, "unknown_label", "2", "vocabulary"):
        read(Topics, ["xx yy"], new=True, like=fit)
    assert read(Topics, ["!"], new=True, like=fit).rows == 1  # an empty document is a document


def test_every_form_of_new_documents_meets_the_vocabulary_of_the_fit():
    fit, counts = read(Topics, {"counts": DENSE, **LABELS}), [[0, 4, 0]]
    forms = [
        {"document": ["n", "n"], "word": ["b", "z"], "count": [4, 1]},
        {"counts": scipy.sparse.csr_array([[4, 1]]), "word": ["b", "z"]},
        {"b": [4], "z": [1]},
        read(Topics, {"b": [4], "z": [1]}),
        plain(read(Topics, {"b": [4], "z": [1]})),
        read(Unigrams, {"b": [4], "z": [1]}),
    ]
    for form in forms:
        data = read(Topics, form, new=True, like=fit)
        assert dense(data).tolist() == counts
        assert "1 of 5 words is not in the vocabulary of the fit and is left out (20.0%)" in data.notes
    dense_fit = read(Unigrams, fit)
    assert read(Unigrams, forms[0], new=True, like=dense_fit)["counts"].tolist() == counts
    assert read(Unigrams, {"a": [0], "b": [4], "c": [0]}, new=True, like=dense_fit)["counts"].tolist() == counts


def test_a_corpus_too_large_for_its_zeros(monkeypatch):
    table = {"document": list("xy"), "word": list("ab")}
    assert read(Unigrams, table)["counts"].tolist() == [[1, 0], [0, 1]]
    monkeypatch.setattr("bayeszoo.data.inputs.words.corpus.MOST_CELLS", 3)
    with raises(InputError, "too_large", "2 documents x 2 words", 4, 3):
        read(Unigrams, table)
    assert read(Topics, table).rows == 2


def test_memory_goes_with_the_cells():
    size = 300_000
    diagonal = scipy.sparse.eye_array(size, format="csr", dtype=np.int64)
    data = read(Topics, diagonal)  # 7e11 bytes with its zeros
    assert (data.rows, len(data["counts"])) == (size, size)


# The Federalist papers


def test_the_federalist_papers():
    packed = resources.files("bayeszoo.models.data") / "federalist.csv.gz"
    papers = list(csv.DictReader(io.StringIO(gzip.decompress(packed.read_bytes()).decode(), newline="")))
    authors = {"hamilton": 51, "madison": 14, "jay": 5, "hamilton and madison": 3, "hamilton or madison": 12}
    assert Counter(paper["author"] for paper in papers) == authors
    data = example(Topics)
    assert (data.source, data.rows, data["counts"].sum(), len(data["word"])) == ("federalist.csv", 85, 185_879, 8_655)
    faction = len(re.findall(r"\bfaction\b", papers[9]["text"].lower()))
    assert dense(data)[9, data["word"].tolist().index("faction")] == faction == 16
