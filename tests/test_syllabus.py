"""The page from the sections of the documents to the models and verbs is made from its table, and its links lead on."""

import importlib.util
import re
from pathlib import Path

import bayeszoo as bz
from bayeszoo.cli.app import app

ROOT = Path(__file__).parents[1]


def syllabus():
    spec = importlib.util.spec_from_file_location("syllabus", ROOT / "docs" / "syllabus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def test_the_page_is_that_of_the_table():
    made = syllabus()
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run python docs/syllabus.py"


def test_every_link_leads_to_what_there_is():
    rows = syllabus().rows()
    assert {row["document"] for row in rows} == set(syllabus().NAMES)
    verbs, models = {name for name in app if not name.startswith("-")}, {*bz.names()}
    for row in rows:
        name, kind = row["shown by"], row["kind"]
        file, _, place = name.partition("#")
        if kind == "model":
            assert name in models, row
        elif kind == "verb":
            assert name in verbs, row
        elif kind == "notebook":
            assert (ROOT / "notebooks" / f"{name}.py").exists(), row
        elif kind == "function":
            assert name in bz.__all__, row
        else:
            text = (ROOT / "docs" / "guide" / file).read_text(encoding="utf-8")
            headings = {slug(each) for each in re.findall(r"^#+ (.*)$", text, re.M)}
            assert not place or place in headings, row


def test_sections_of_a_document_stand_together_and_once():
    rows = [(row["document"], row["section"]) for row in syllabus().rows()]
    assert len({*rows}) == len(rows)
    assert [name for name, _ in rows] == sorted((name for name, _ in rows), key=[*syllabus().NAMES].index)
