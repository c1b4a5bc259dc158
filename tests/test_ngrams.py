"""Transitions of texts, counted by hand."""

from importlib import resources

import pandas as pd
import pytest

from bayeszoo.errors import InputError
from bayeszoo.families.markov.ngrams import ngrams, vowel_or_consonant


def counts(*args, **options):
    """Return the rows as a mapping of (source, target) to count."""
    table = ngrams(*args, **options)
    assert list(table) == ["source", "target", "count"]
    pairs = list(zip(table["source"], table["target"], strict=True))
    assert sorted(set(pairs)) == pairs
    return dict(zip(pairs, table["count"], strict=True))


def test_letters():
    assert counts("Banana", order=2) == {("b a", "n"): 1, ("a n", "a"): 2, ("n a", "n"): 1}
    expected = {("t", "h"): 2, ("h", "e"): 2, ("e", "c"): 1, ("c", "a"): 1, ("a", "t"): 1, ("t", "t"): 1}
    assert counts("The cat,\n 7 THE!") == expected


def test_words():
    text = "'The cat,' said the cat; don\u2019t -- don't 3 the"
    expected = {("the", "cat"): 2, ("cat", "said"): 1, ("said", "the"): 1, ("cat", "don't"): 1, ("don't", "don't"): 1}
    assert counts(text, unit="word") == {**expected, ("don't", "the"): 1}
    expected = {("of the", "of"): 1, ("the of", "the"): 1, ("of the", "a"): 1}
    assert counts("Of the, of the a", order=2, unit="word") == expected


def test_characters_are_kept():
    """White space is one space, also at the ends; case and digits stay."""
    expected = {("A", " "): 1, (" ", "a"): 1, ("a", "1"): 1, ("1", "1"): 1, ("1", " "): 1}
    assert counts("A \n\t a11\n", unit="character") == expected
    assert counts("a  b", order=2, unit="character") == {("a ", "b"): 1}


def test_letters_of_other_alphabets():
    assert counts("Дядя, жди!") == {("д", "я"): 2, ("я", "д"): 1, ("я", "ж"): 1, ("ж", "д"): 1, ("д", "и"): 1}
    assert counts("Maß") == counts("MASS") == {("m", "a"): 1, ("a", "s"): 1, ("s", "s"): 1}
    assert counts("Όσος") == counts("ΌΣΟΣ")  # the sigma at the end is the same letter


def test_accents_are_composed_first():
    assert counts("e\u0301te") == counts("\u00e9te") == {("\u00e9", "t"): 1, ("t", "e"): 1}
    assert counts("e\u0301te", unit="character") == {("\u00e9", "t"): 1, ("t", "e"): 1}
    # no composed form: skipped among letters, part of its word
    assert counts("я\u0301д") == {("я", "д"): 1}
    assert counts("я\u0301д я", unit="word") == {("я\u0301д", "я"): 1}


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("unit", "symbols"), [("letter", 23 + 17), ("character", 31 + 22), ("word", 8 + 6)])
def test_counts_sum_to_the_symbols_less_the_order_of_each_document(order, unit, symbols):
    documents = ["O for a muse of fire, ascend so", "so be it my old friend"]
    assert sum(counts(documents, order, unit=unit).values()) == symbols - 2 * order


def test_no_transition_crosses_documents():
    assert counts(["ab", "ba"]) == {("a", "b"): 1, ("b", "a"): 1}
    assert counts("ab" + "ba") == {("a", "b"): 1, ("b", "b"): 1, ("b", "a"): 1}
    assert counts(("abc", "abd"), order=2) == {("a b", "c"): 1, ("a b", "d"): 1}


def test_vowels_and_consonants_as_markov_did():
    expected = {("consonant", "vowel"): 3, ("vowel", "consonant"): 2, ("vowel", "vowel"): 1}
    assert counts("Bananae", classes=vowel_or_consonant) == expected
    letters = {"b": "c", "n": "c", "a": "v", "e": "v"}
    expected = {("c v", "c"): 2, ("v c", "v"): 2, ("c v", "v"): 1}
    assert counts("Bananae", order=2, classes=letters) == expected


def test_vowel_or_consonant():
    found = {letter: vowel_or_consonant(letter) for letter in "abcdefghijklmnopqrstuvwxyz"}
    assert [letter for letter, kind in found.items() if kind == "vowel"] == list("aeiou")
    assert set(found.values()) == {"vowel", "consonant"}
    assert [vowel_or_consonant(letter) for letter in ("É", "e\u0301", "ç", "Y")] == ["vowel"] * 2 + ["consonant"] * 2
    for other in ("я", "", "1", "ab", "æ", " "):
        with pytest.raises(InputError, match=r"is not a letter from a to z; give your own classes$"):
            vowel_or_consonant(other)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, r"^the text has no letters; order 1 needs at least 2$"),
        ("12 -- 3", {}, r"^the text has no letters; "),
        ("a", {}, r"^the text has 1 letter; order 1 needs at least 2$"),
        ("one two", {"order": 2, "unit": "word"}, r"^the text has 2 words; order 2 needs at least 3$"),
        (["abc", "ab"], {"order": 2}, r"^document 2 has 2 letters; "),
        ([], {}, r"^there are no documents$"),
        ("abc", {"order": 0}, r"^order must be a whole number from 1 to 5, got 0$"),
        ("abcdefg", {"order": 6}, r"got 6$"),
        ("abc", {"order": 1.0}, r"got 1\.0$"),
        ("abc", {"order": "1"}, r"got '1'$"),
        ("abc", {"unit": "line"}, r"^unit must be one of letter, character, word, got 'line'$"),
        ({"title": "text"}, {}, r"^text must be a str or a list of str; one str for each document$"),
        (["abc", 3], {}, r"^text must be"),
        (b"abc", {}, r"^text must be"),
        ("abc", {"classes": {"a": "v"}}, r"^the class of 'b' is None; every symbol needs one, text without spaces$"),
        ("abc", {"classes": lambda letter: letter == "a"}, r"^the class of 'a' is True"),
        ("abc", {"classes": lambda letter: "a vowel"}, r"^the class of 'a' is 'a vowel'"),
        ("abc", {"classes": lambda letter: ""}, r"^the class of 'a' is ''"),
        ("дом", {"classes": vowel_or_consonant}, r"^'д' is not a letter from a to z"),
    ],
)
def test_what_cannot_be_counted_is_refused(text, options, message):
    with pytest.raises(InputError, match=message):
        ngrams(text, **options)


def test_the_shipped_counts_are_those_of_the_shipped_text():
    folder = resources.files("bayeszoo.models.data")
    found = ngrams((folder / "federalist_10.txt").read_text(), order=2, classes=vowel_or_consonant)
    assert pd.read_csv(folder / "federalist_10.csv").to_dict("list") == found
