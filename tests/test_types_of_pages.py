"""The Python of the README and the pages type-checks: what a user writes is what the annotations allow."""

import doctest
import re
import subprocess
import sys

import pytest

from tests.test_pages import PAGES, ROOT, blocks


def code(path):
    """Return the statements of a page, but for files of models."""
    parts = []
    for _, language, text in blocks(path):
        if language == "pycon":
            parts += [example.source for example in doctest.DocTestParser().get_examples(text)]
        elif language == "python" and not re.match(r"# (models/)?\w+\.py\n", text):
            parts.append(text)
    return "".join(parts)


@pytest.mark.slow
def test_the_python_of_the_pages_type_checks(tmp_path):
    pages = {path: text for path in PAGES if (text := code(path))}
    assert len(pages) > 5
    for path, text in pages.items():
        (tmp_path / f"page_{path.stem.lower()}.py").write_text(text, encoding="utf-8")
    lax = ["--disable-error-code=attr-defined", "--allow-untyped-defs"]  # what a model has depends on its name
    lax += ["--disable-error-code=import-untyped"]  # of statsmodels
    apart = ["--no-warn-unused-ignores", "--cache-dir=.cache/mypy_pages", "--config-file=pyproject.toml"]
    command = [sys.executable, "-m", "mypy", *lax, *apart, *tmp_path.glob("*.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
