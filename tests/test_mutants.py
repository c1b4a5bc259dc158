"""The mutation tool: which changes it makes of a line, that each is one change, and how results are counted."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import mutants
    from benchmarks.mutations import mutants_of

TEXT = '''"""Texts with 1 + 1 stay."""
LIMIT, SHOWN = 0.5, 3


def error(draws: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Return it, times 2."""
    if not scale > 0:
        raise ValueError(f"scale must be > 0, got {scale + 1}")
    spread = np.sqrt(draws.mean(axis=0)) / scale
    return max(spread[0], min(spread))


def name(draws: list[str]) -> str:
    return "draw " + draws[-1]
'''
CHANGES = {
    ("constant", "0.5", "0.55"),
    ("sign", "not scale > 0", "scale > 0"),
    ("comparison", "scale > 0", "scale >= 0"),
    ("constant", "0", "1"),
    ("operator", "np.sqrt(draws.mean(axis=0)) / scale", "np.sqrt(draws.mean(axis=0)) * scale"),
    ("dropped", "np.sqrt(draws.mean(axis=0))", "draws.mean(axis=0)"),
    ("function", "draws.mean(axis=0)", "draws.sum(axis=0)"),
    ("axis", "draws.mean(axis=0)", "draws.mean(axis=1)"),
    ("function", "max(spread[0], min(spread))", "min(spread[0], min(spread))"),
    ("return", "max(spread[0], min(spread))", "max(spread[0], min(spread)) * 1.01"),
    ("index", "spread[0]", "spread[-1]"),
    ("function", "min(spread)", "max(spread)"),
    ("index", "draws[-1]", "draws[0]"),
}


def test_every_expression_that_computes_has_its_changes_and_no_text_has_any():
    made = list(mutants_of("error.py", TEXT.replace("LIMIT, SHOWN = 0.5, 3", "LIMIT = 0.5\nSHOWN = 3")))
    assert {(mutant.kind, mutant.before, mutant.after) for mutant in made} == CHANGES
    assert len({mutant.key for mutant in made}) == len(made)


def test_a_mutant_is_the_file_with_one_expression_changed():
    lines = TEXT.splitlines()
    for mutant in mutants_of("error.py", TEXT):
        changed = mutant.applied(TEXT)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(TEXT))
        differ = [
            i for i, (old, new) in enumerate(zip(lines, changed.splitlines(), strict=True), start=1) if old != new
        ]
        assert differ == [mutant.place[0]]


def test_the_sample_is_the_same_whenever_it_is_drawn_and_has_one_mutant_a_line():
    few, more = mutants.sample(["foundation/gate.py"], 5), mutants.sample(["foundation/gate.py"], 10)
    assert more[:5] == few
    assert len({(mutant.file, mutant.place[0]) for mutant in more}) == 10
    for mutant in more:
        compile(mutant.applied((mutants.ROOT / mutant.file).read_text(encoding="utf-8")), mutant.file, "exec")


@pytest.fixture
def lines(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "LINES", tmp_path / "mutants.jsonl")
    for key, result, stage in (("a", "survived", "quick"), ("b", "killed", "slow"), ("c", "survived", "slow")):
        entry = {"key": key, "file": "bayeszoo/answers/x.py", "result": result, "stage": stage}
        mutants.noted(entry)
    mutants.noted({"key": "a", "file": "bayeszoo/answers/x.py", "result": "killed", "stage": "quick"})
    return tmp_path / "mutants.jsonl"


def test_a_later_result_replaces_the_former_and_what_is_equivalent_is_not_missed(lines):
    assert mutants.table().splitlines()[-1] == "| all | 3 | 0 | 1 | 1 | 1 | 67% |"
    mutants.noted({"key": "c", "equivalent": "it only costs time"})
    assert mutants.table().splitlines()[-1] == "| all | 3 | 1 | 1 | 1 | 0 | 100% |"
    assert [json.loads(line)["key"] for line in lines.read_text().splitlines()] == ["a", "b", "c", "a", "c"]


FORKED = """
import sys
from pathlib import Path
from benchmarks import mutants

copy, file = Path(sys.argv[1]), "bayeszoo/answers/x.py"
(copy / "tests").mkdir()
(copy / file).parent.mkdir(parents=True)
(copy / "bayeszoo/answers/__init__.py").write_text("")
(copy / "bayeszoo/__init__.py").write_text("")
(copy / file).write_text("def double(x: float) -> float:\\n    return 2 * x\\n\\n\\nhalf = lambda x: x / 2\\n")
(copy / "tests/test_x.py").write_text(
    "from bayeszoo.answers.x import double\\n\\n\\ndef test_zero():\\n    assert double(0) == 0\\n\\n\\n"
    "def test_one():\\n    assert double(1) == 2\\n"
)
mutants.ROOT = mutants.CACHE = copy
covered = copy / "lines.json"
assert mutants.forked(copy, ["tests/test_x.py"], lambda: mutants.Lines(copy, covered, ""), copy / "log", 60) == 0
print(covered.read_text())
"""


def test_tests_are_run_in_a_copy_and_the_lines_that_they_reach_are_noted(tmp_path):
    """In a process of its own: what runs the tests forks, and loads the copy's package of the same name."""
    root = Path(mutants.ROOT)
    done = subprocess.run([sys.executable, "-c", FORKED, str(tmp_path)], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    held = json.loads(done.stdout)
    assert held["tests"] == ["tests/test_x.py::test_zero", "tests/test_x.py::test_one"]
    assert (held["failed"], held["lines"]["bayeszoo/answers/x.py:2"]) == ([], [0, 1])
