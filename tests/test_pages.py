"""The README and the pages: every block of `console`, `pycon` and `python` is run; blocks of `sh` are only shown.

A page is run from top to bottom in an empty folder, as a reader would. A block after the line `<!-- slow -->` is run by
`make test-all` only. Python whose first line is `# NAME.py` becomes a file of that folder; where it is
`# models/NAME.py`, one of the zoo while its page runs.
"""

import ast
import dataclasses
import doctest
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bayeszoo import models
from bayeszoo.cli.app import app, main
from bayeszoo.model import find as zoo

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
MISPRINTS = ROOT / "docs" / "misprints.md"
PAGES = [README, *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/guide/*.md"))]
BLOCK = re.compile(r"^(<!-- slow -->\n)?( *)```(console|pycon|python)\n(.*?)^\2```", re.M | re.S)
SAMPLED = re.compile(r"nuts|gibbs|advi|laplace|smc|svm|information")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def blocks(path):
    """Return (slow, language, text) of each block that is run."""
    found = BLOCK.findall(path.read_text(encoding="utf-8"))
    return [(bool(slow), language, text) for slow, _, language, text in found]


def cases():
    """Return each page with its quick blocks, and those pages that have slow ones as a whole."""
    for path in PAGES:
        if any(not slow for slow, *_ in blocks(path)):
            yield pytest.param(path, False, id=path.stem)
        if any(slow for slow, *_ in blocks(path)):
            yield pytest.param(path, True, id=f"{path.stem}-whole", marks=pytest.mark.slow)


@pytest.fixture
def page_models(tmp_path, monkeypatch):
    """Return a folder whose files belong to the zoo until the test ends."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(folder)])
    yield folder
    zoo.by_name.cache_clear()
    for path in folder.glob("*.py"):
        sys.modules.pop(f"bayeszoo.models.{path.stem}", None)


@pytest.mark.parametrize(("path", "whole"), [*cases()])
def test_a_page_prints_what_it_shows(path, whole, page_models, tmp_path, monkeypatch, capsys, unhurried):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for slow, language, text in blocks(path):
        if slow and not whole:
            continue
        if language == "console":
            run_console(text, capsys)
        elif language == "pycon":
            run_session(text, names)
        elif file := re.match(r"# models/(\w+\.py)\n", text):
            (page_models / file[1]).write_text(text, encoding="utf-8")
            zoo.by_name.cache_clear()
        elif file := re.match(r"# (\w+\.py)\n", text):
            Path(file[1]).write_text(text, encoding="utf-8")
        else:
            exec(text, names)


def run_session(text, names):
    """Run a session of the interpreter; the names that it makes stay for the next block of the page."""
    session = doctest.DocTestParser().get_doctest(text, names, "page", None, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    failed, tried = runner.run(session, out=said.append, clear_globs=False)
    names.update(session.globs)
    assert tried
    assert not failed, "".join(said)


def run_console(block, capsys):
    """Run each command of a block; compare words always, and numbers where they are no Monte Carlo estimates."""
    for part in block.split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith("printf"):
            _, text, _, name = shlex.split(command)
            Path(name).write_text(text.encode().decode("unicode_escape"))
            continue
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(re.sub(r" (2?>|\|) .*", "", command))[1:])
        out, err = capsys.readouterr()
        assert stop.value.code == (2 if shown.startswith("error:") else 0), err
        if head := re.search(r"\| head -(\d+)", command):
            out, err = "\n".join(out.splitlines()[: int(head[1])]), ""
        if " > " not in command:
            printed = out if SAMPLED.search(command) or "2>" in command else out + err
            assert_same(printed, shown, numbers=not SAMPLED.search(command))


def assert_same(printed, shown, *, numbers):
    """Compare two outputs: seconds, rules and blanks are left out, and numbers agree to four digits."""
    printed, shown = (re.sub(r"(?<=seed \d), .* s$|─+", "", text, flags=re.M) for text in (printed, shown))
    words = [NUMBER.sub("#", text).split() for text in (printed, shown)]
    assert words[0] == words[1]
    if numbers:
        values = [[float(number) for number in NUMBER.findall(text)] for text in (printed, shown)]
        assert values[0] == pytest.approx(values[1], rel=1e-3, abs=1e-9)


@pytest.mark.quick
def test_the_commands_that_pages_name_are_commands():
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    named = re.findall(r"`bayeszoo ([^`]* -[^`]*)`|^bayeszoo (.*)$", text, re.M)
    commands = [re.sub(r"\s*( #|\\\n).*", "", "".join(pair)) for pair in named]
    complete = [command for command in commands if not re.search(r"\b[A-Z]{3,}\b|\.\.\.", command)]
    assert len(complete) > 15
    for command in complete:
        command = re.sub(r" --model-file \S+", "", command)  # of every verb, as --debug
        app.parse_args(shlex.split(command), exit_on_error=False, print_error=False)


def test_an_output_that_differs_is_noticed():
    assert_same("theta  0.70001\nseed 1, run 0.5 s\n", "theta 0.7\nseed 1, run 0.7 s\n", numbers=True)
    with pytest.raises(AssertionError):
        assert_same("theta  0.71\n", "theta 0.7\n", numbers=True)
    with pytest.raises(AssertionError):
        assert_same("theta  0.7\n", "rate 0.7\n", numbers=False)


def test_the_readme_is_short_and_its_links_lead_to_files():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 180
    links = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_page_of_the_guide_is_listed():
    guide = ROOT / "docs" / "guide"
    page = (guide / "index.md").read_text(encoding="utf-8")
    listed = " ".join(re.findall(r"```\{toctree\}\n:hidden:\n:caption: [^\n]*\n\n(.*?)```", page, re.S)).split()
    assert listed == re.findall(r"^- \[.*?\]\((\w+)\.md\): ", page, re.M)
    assert sorted(listed) == sorted({path.stem for path in guide.glob("*.md")} - {"index"})


def test_the_table_of_models_is_right(gallery):
    assert sorted(itertools.chain(*gallery.families().values())) == zoo.builtin_names()


def test_each_misprint_has_its_demonstration():
    text = MISPRINTS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (W4400|CS725|ML blog|Murphy notes), ([^|]*) \|", text, re.M)
    assert len(rows) == 68
    headings = " ".join(re.findall(r"^## (.*)$", text, re.M))
    sections = {number for notes, where in rows if notes == "CS725" for number in re.findall(r"[\d.]+", where)}
    assert {number for number in sections if number not in headings} == set()


# The site: every model has its page and its failure card, and no page fetches anything

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
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2


@pytest.mark.parametrize("name", zoo.builtin_names())
def test_the_page_of_a_model_shows_it_all(name, gallery):
    card, picture = DOCS / "failures" / f"{name}.py", f"{name}_thumbnail.svg"
    page = gallery.model_page(name, card, "printed by the twin\n", [picture])
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
    assert sorted(re.findall(r":::\{grid-item-card\} (\w+)", page)) == zoo.builtin_names()
    assert re.findall(r"^(\w+)$", page[page.index("toctree") :], re.M) == zoo.builtin_names()
    assert [path.stem for path in FAILURES] == zoo.builtin_names()


def test_what_a_browser_would_fetch_is_recognized():
    fetched = (
        '<script src="https://cdn.example/x.js"></script>',
        '<script async src="//cdn.example/x.js"></script>',
        "<link rel='stylesheet' href='https://fonts.example/css'>",
        "@font-face { src: url(https://fonts.example/x.woff2) }",
        '<img alt="x" src="http://x.example/x.png">',
    )
    assert all(map(FETCHED.search, fetched))
    assert not FETCHED.search('<a href="https://www.pymc.io">PyMC</a> <script src="_static/x.js"></script>')


@pytest.fixture
def site(tmp_path):
    command = [sys.executable, DOCS / "build.py", "--quick", tmp_path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "site"


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_no_page_fetches_anything_from_a_network(site):
    for name in zoo.builtin_names():
        assert (site / "models" / f"{name}.html").stat().st_size > 10_000
    assert "sd-card" in (site / "index.html").read_text(encoding="utf-8")
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
