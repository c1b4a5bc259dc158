"""A folder of text files, or a pattern, is a corpus."""

import pytest

import bayeszoo as bz
from tests.refusals import raises

LDA, BAYES = bz.find("lda"), bz.find("naive_bayes_text")


@pytest.fixture
def folder(tmp_path):
    for name, text in (("a/1.txt", "sun rain"), ("a/2.txt", "rain wind"), ("b/1.txt", "goal team goal")):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "corpus" / "notes.md").write_text("not a text", encoding="utf-8")
    return tmp_path / "corpus"


def test_each_file_is_a_document(folder):
    data = bz.read(LDA, folder)
    assert data["document"].tolist() == ["a/1", "a/2", "b/1"]
    other = bz.read(LDA, {"document": ["a/1", "a/2", "b/1"], "text": ["sun rain", "rain wind", "goal team goal"]})
    assert data == other
    some = bz.read(LDA, str(folder / "a" / "*.txt"))
    assert (some["document"].tolist(), some["word"].tolist()) == (["1", "2"], ["rain", "sun", "wind"])


def test_the_folders_may_be_the_classes(folder):
    data = bz.read(BAYES, folder, target="folder")
    assert data["class"].tolist() == ["a", "b"]


def test_what_is_no_folder_of_texts_is_refused(folder, tmp_path):
    (folder / "a" / "3.txt").write_bytes("Käse".encode("latin-1"))
    with raises(bz.InputError, "unreadable_file", "3.txt"):
        bz.read(LDA, folder)
    assert "käse" in bz.read(LDA, folder, encoding="latin-1")["word"].tolist()
    with raises(bz.InputError, "unknown_encoding"):
        bz.read(LDA, folder, encoding="klingon")
    empty = tmp_path / "empty"
    empty.mkdir()
    for source in (empty, tmp_path / "none" / "*.txt"):
        with raises(bz.InputError, "no_such_file"):
            bz.read(LDA, source)
    with raises(bz.InputError, "no_such_file"):  # no model of texts reads a folder
        bz.read(bz.find("beta_bernoulli"), folder)
