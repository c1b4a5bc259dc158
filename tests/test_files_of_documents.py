"""Documents in many files: those that `lda` reads from one file, numbered as in one, and what is refused."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz

LDA = bz.find("lda")
RNG = np.random.default_rng(4)
WORDS = [f"w{v}" for v in range(6)]
THREE = RNG.multinomial(9, np.full(3, 1 / 3), 30)
TABLE = np.array([[*counts, 0, 0, 0] if d % 2 else [0, 0, 0, *counts] for d, counts in enumerate(THREE)])
TEXTS = [" ".join(np.repeat(WORDS, counts)) for counts in TABLE]
TRIPLETS = pd.DataFrame([(f"d{d}", WORDS[v], TABLE[d, v]) for d, v in np.ndindex(TABLE.shape)], columns=["a", "b", "n"])
FORMS = {
    "triplets": (TRIPLETS, 6, {"document": "a", "word": "b", "count": "n"}),
    "text": (pd.DataFrame({"said": TEXTS}), 1, {"text": "said"}),
    "named text": (pd.DataFrame({"who": [f"d{d}" for d in range(30)], "text": TEXTS}), 1, {"document": "who"}),
    "counts": (pd.DataFrame(TABLE, columns=WORDS), 1, {"columns": WORDS}),
}


@pytest.fixture
def cut(tmp_path):
    """Write a table as files that end after some documents, and return the pattern of their names."""

    def write(frame, rows_each, ends=(7, 8, 22), kind="csv"):
        for i, (first, last) in enumerate(pairwise([0, *ends, 30])):
            part = frame.iloc[rows_each * first : rows_each * last]
            path = tmp_path / f"part{i}.{kind}"
            part.to_parquet(path) if kind == "parquet" else part.to_csv(path, index=False)
        return str(tmp_path / f"*.{kind}")

    return write


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("form", FORMS)
def test_documents_of_files_are_those_of_one_table(cut, form, kind):
    frame, rows_each, options = FORMS[form]
    rows = bz.read_files(LDA, cut(frame, rows_each, kind=kind), vocabulary=WORDS, **options)
    data = bz.read(LDA, frame, vocabulary=WORDS, **options)
    assert rows.sample == data
    assert rows.stream == data.digest
    assert rows.like["document"].tolist() == data["document"].tolist()


@pytest.mark.usefixtures("unmeasured")
def test_proportions_are_in_the_order_of_the_documents(cut, tmp_path):
    """A document's are those that its own words give, with the topics of all files."""
    frame, rows_each, options = FORMS["named text"]
    model = LDA(K=2, alpha=0.4, eta=0.3)
    tree = bz.fit(model, bz.read_files(model, cut(frame, rows_each), vocabulary=WORDS, **options), "vb", seed=1)
    assert tree["posterior"]["document"].to_numpy().tolist() == [f"d{d}" for d in range(30)]
    shares = tree["posterior"]["proportions"].mean(("chain", "draw")).to_numpy()
    is_odd = shares[np.arange(30), shares[1].argmax()] > 0.5
    assert is_odd.tolist() == [d % 2 == 1 for d in range(30)]
    alone = bz.fit(model, bz.read(model, frame, vocabulary=WORDS, **options), "vb", seed=1)
    for parameter, values in alone["posterior"].items():
        np.testing.assert_allclose(tree["posterior"][parameter], values, atol=1e-6)
    bz.save(tree, tmp_path / "fit.nc")
    words, others = (bz.topics(each, top=3) for each in (bz.load(tmp_path / "fit.nc"), alone))
    assert words["word"].tolist() == others["word"].tolist()


def test_rows_that_are_dropped_keep_their_numbers(cut):
    frame = pd.DataFrame({"text": [None if d in (3, 20) else text for d, text in enumerate(TEXTS)]})
    rows = bz.read_files(LDA, cut(frame, 1), vocabulary=WORDS, missing="drop")
    data = bz.read(LDA, frame, vocabulary=WORDS, missing="drop")
    assert rows.sample == data
    assert "4" not in rows.like["document"]
    assert "2 rows with missing values dropped" in rows.notes


def refused(pattern, **options):
    with pytest.raises(bz.InputError) as refusal:
        bz.read_files(LDA, pattern, **options)
    return str(refusal.value)


def test_what_cannot_be_put_together_is_refused_by_the_name_of_the_file(cut):
    frame, rows_each, options = FORMS["triplets"]
    again = frame.replace({"a": {"d25": "d2"}})
    said = refused(cut(again, rows_each), vocabulary=WORDS, **options)
    assert said == "part3.csv: document 'd2' is in part0.csv too; put all rows of a document into one file"
    other = frame.assign(b=np.where(np.arange(180) < 42, frame["b"], frame["b"].replace("w5", "w9")))
    said = refused(cut(other, rows_each), **options)
    assert said.startswith("part1.csv has other labels, columns or types than part0.csv; name the labels of all files")
    assert said.endswith("with --vocabulary")
    assert (
        refused(cut(frame, rows_each), min_documents=2, **options)
        == "--min_documents needs all rows together; leave it out"
    )
    empty = frame.assign(n=np.where(np.arange(180) < 42, frame["n"], 0))
    assert refused(cut(empty, rows_each), **options).startswith("part1.csv: the counts add up to 0")
