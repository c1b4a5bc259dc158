"""The site: every model has its page and its failure card, and no page fetches anything."""

import ast
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bayeszoo.model import find as zoo

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FAILURES = sorted((DOCS / "failures").glob("*.py"))
SHORTEST = "beta_bernoulli"
# What a browser fetches without being asked, in markup and in style sheets; links that a reader may follow are none.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc\s*=\s*[\"']?(?:https?:)?//"
    r"|<link\b(?![^>]*rel=[\"']?canonical)[^>]*\bhref\s*=\s*[\"']?(?:https?:)?//"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//|url\(\s*[\"']?(?:https?:)?//",
    re.I,
)


@pytest.fixture
def gallery(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import gallery

    yield gallery
    sys.modules.pop("gallery")


def test_every_model_has_a_failure_card():
    assert [path.stem for path in FAILURES] == zoo.builtin_names()


@pytest.mark.parametrize("path", FAILURES, ids=[path.stem for path in FAILURES])
def test_a_card_says_what_breaks_how_it_looks_and_what_to_do(path, gallery):
    title, said, code = gallery.paragraphs(path)
    assert 10 < len(title) < 80
    assert tuple(said) == gallery.CARD
    assert all(len(words) > 40 for words in said.values())
    tree = ast.parse(code)
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    assert f'bz.find("{path.stem}")' in code


@pytest.mark.parametrize(
    "path", [pytest.param(one, marks=[pytest.mark.slow] * (one.stem != SHORTEST), id=one.stem) for one in FAILURES]
)
def test_the_twin_of_a_card_fails_as_it_says(path, tmp_path):
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2


@pytest.mark.parametrize("name", zoo.builtin_names())
def test_the_page_of_a_model_shows_it_all(name, gallery):
    page = gallery.model_page(
        name, DOCS / "failures" / f"{name}.py", "printed by the twin\n", [f"{name}_thumbnail.svg"]
    )
    for heading in ("Fields", "Data", "Methods", "How it fails: ", "Scorecard", "Source"):
        assert f"\n## {heading}" in page
    assert "printed by the twin" in page
    assert f"{name}_thumbnail.svg" in page
    assert all(re.search(rf"\| `{field.name}` \| [^ |]", page) for field in dataclasses.fields(zoo.find(name)))
    assert all(example.name in page for example in zoo.find(name).examples)
    formulas = re.search(r"```text\n(.*?)```", page, re.S)[1]
    assert all(" ~ " in line for line in formulas.splitlines())  # what else is said of a model is prose


def test_the_gallery_has_a_card_for_each_model(gallery, tmp_path):
    page = gallery.models_page(tmp_path)
    assert re.findall(r":::\{grid-item-card\} (\w+)", page) == zoo.builtin_names()
    assert re.findall(r"^(\w+)$", page[page.index("toctree") :], re.M) == zoo.builtin_names()


@pytest.mark.parametrize(
    ("markup", "is_fetched"),
    [
        ('<script src="https://cdn.example/x.js"></script>', True),
        ('<script async src="//cdn.example/x.js"></script>', True),
        ("<link rel='stylesheet' href='https://fonts.example/css'>", True),
        ("@font-face { src: url(https://fonts.example/x.woff2) }", True),
        ('<img alt="x" src="http://x.example/x.png">', True),
        ('<a href="https://www.pymc.io">PyMC</a>', False),
        ('<script src="_static/x.js"></script>', False),
    ],
)
def test_what_a_browser_would_fetch_is_recognized(markup, is_fetched):
    assert bool(FETCHED.search(markup)) == is_fetched


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    command = [sys.executable, DOCS / "build.py", "--quick", folder]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(site):
    for name in zoo.builtin_names():
        assert (site / "models" / f"{name}.html").stat().st_size > 10_000
    assert "sd-card" in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_no_page_fetches_anything_from_a_network(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 30
    found = {path.name: FETCHED.search(path.read_text(encoding="utf-8")) for path in pages}
    assert {name: match.group() for name, match in found.items() if match} == {}


def test_every_public_name_is_in_the_reference(gallery):
    import bayeszoo as bz

    listed = re.findall(r"^\.\. auto\w+:: bayeszoo\.([\w.]+)$", gallery.api_page(), re.M)
    assert len(listed) == len(set(listed))
    assert {name for name in bz.__all__ if callable(getattr(bz, name))} <= set(listed)
    assert "plots.trace" in listed
