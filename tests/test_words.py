"""Turns of phrase that hide the noun, kept out of docstrings, comments, messages and pages; and codes of refusals."""

import ast
import functools
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = {
    "so many": r"\bso many\b",  # name the number
    "at hand": r"\bat hand\b",  # known, available
    "as far as": r"\bas far as\b",  # if
    "beside": r"(?<!`)\bbeside\b(?!`)",  # next to, and, out of bounds
    "of what": r"\bof what\b",  # the noun
    "Of, first": r"\AOf\b(?=.*\s)",  # the noun first
}
ALLOWED = {
    ("bayeszoo/foundation/check_names.py", "beside"),  # names that earlier versions stored
    ("bayeszoo/data/inputs/words/corpus.py", "beside"),  # a stop word
}
REFUSALS = {"InputError", "NumericalError", "Untrustworthy"}
SOURCES = [*ROOT.glob("bayeszoo/**/*.py"), *ROOT.glob("models/*.py")]
PAGES = [ROOT / "README.md", *(path for path in ROOT.glob("docs/guide/*.md") if path.stem != "certificate")]


@functools.cache
def texts(path):
    """Return the prose of a file: the strings and comments of Python, or a whole page."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [source]
    strings = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return [text for text in (*strings, *comments) if isinstance(text, str)]


@pytest.mark.quick  # any change of words may break it
@pytest.mark.parametrize("name", BANNED)
def test_prose_has_none_of_these_turns(name):
    found = {}
    for path in [*SOURCES, *PAGES]:
        where = path.relative_to(ROOT).as_posix()
        hits = [text for text in texts(path) if re.search(BANNED[name], text)]
        if hits and (where, name) not in ALLOWED:
            found[where] = hits
    assert found == {}


def test_exceptions_are_still_needed():
    for where, name in ALLOWED:
        assert any(re.search(BANNED[name], text) for text in texts(ROOT / where)), (where, name)


@pytest.mark.parametrize("path", [ROOT / "bayeszoo", ROOT / "models"], ids=lambda path: path.stem)
def test_every_refusal_has_a_code(path):
    """A message alone would leave the code of its class, which tells nothing."""
    bare = []
    for source in path.glob("**/*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            is_refusal = isinstance(node, ast.Call) and ast.unparse(node.func) in REFUSALS
            if is_refusal and len(node.args) < 2 and source.name != "errors.py":
                bare.append(f"{source.relative_to(ROOT)}:{node.lineno}")
    assert bare == []
