"""Every notebook is run as a script: its assertions are its claims."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted(Path(__file__).parents[1].joinpath("notebooks").glob("*.py"))
BENCHMARKS = sorted(Path(__file__).parents[1].joinpath("benchmarks").glob("*.py"))
SHORTEST = "conjugate"
NAMES = [path.stem for path in NOTEBOOKS]


def run(text, folder):
    script = folder / "notebook.py"
    script.write_text(text, encoding="utf-8")
    env = {**os.environ, "MPLBACKEND": "Agg"}
    return subprocess.run(
        [sys.executable, script.name], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=3600
    )


@pytest.mark.parametrize("path", [pytest.param(one, marks=pytest.mark.slow, id=one.stem) for one in NOTEBOOKS])
def test_it_runs_and_what_it_claims_holds(path, tmp_path):
    done = run(path.read_text(encoding="utf-8"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr


@pytest.mark.slow
def test_a_claim_that_does_not_hold_stops_it(tmp_path):
    text = Path(NOTEBOOKS[NAMES.index(SHORTEST)]).read_text(encoding="utf-8")
    wrong = text.replace("1.146e-42", "1.246e-42")
    assert wrong != text
    done = run(wrong, tmp_path)
    assert done.returncode == 1
    assert "AssertionError" in done.stderr


def test_there_is_one_of_each_family():
    families = {"conjugate", "groups", "regression", "classification", "mixtures", "hmm_dice", "lda", "ppca"}
    assert families | {"map_or_full_bayes", "when_advi_lies", "own_model"} <= {*NAMES}


@pytest.mark.parametrize("path", [*NOTEBOOKS, *BENCHMARKS], ids=lambda path: path.stem)
def test_what_it_imports_of_the_library_exists(path):
    imports = re.findall(r"^from (bayeszoo[\w.]*) import (\w.*)$", path.read_text(encoding="utf-8"), re.M)
    for module, names in imports:
        exec(f"from {module} import {names}", {})


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_it_is_introduced_and_asserts_what_it_claims(path):
    text = path.read_text(encoding="utf-8")
    first, *cells = re.split(r"^# %%.*\n", text, flags=re.M)[1:]
    assert re.match(r"# # \S.*\n#\n# \S", first)
    asserted = sum(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text)))
    assert asserted >= 4
    assert len(cells) > 10
    assert all("draws=DRAWS" in call for call in re.findall(r'bz\.fit\([^\n]*"nuts"[^\n]*', text))
    kinds = ["text" if "markdown" in kind else "code" for kind in re.findall(r"^# %%(.*)$", text, flags=re.M)]
    assert kinds[0] == "text"
    assert max(len(run) for run in re.findall(r"(?:code ?)+", " ".join(kinds))) <= 5 * len("code ")
    hidden = re.findall(r'^# %% tags=\["hide-cell"\]\n(.*?)(?=^# %%|\Z)', text, re.M | re.S)
    assert hidden
    assert all("assert" in cell and "plot" not in cell for cell in hidden)  # what is hidden draws nothing
