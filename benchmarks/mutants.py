"""Seeded bugs made mechanically, and the share of them that the tests miss.

    python -m benchmarks.mutants cover [WORDS ...]      which quick test runs which line, a file of tests at a time
    python -m benchmarks.mutants run [WORDS ...] [--number 120] [--seconds 90] [--slow] [--survivors]
    python -m benchmarks.mutants judge KEY WHY          a survivor that no test can tell from the original
    python -m benchmarks.mutants table

A mutant is a change of one expression in a line that computes: they are sampled by a hash of their names, at most one a
line; the words choose files by their path. Each is made in a copy of the repository under ``.cache/mutants``, and run
against the tests that pass through its line, the fastest first, until one fails. Every result is a line of
``models/scorecards/mutants.jsonl``, and a mutant that has one is not run again. One that only costs time, or changes
nothing that is printed, is judged equivalent by a person who says why.
"""

import argparse
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutations import Mutant, mutants_of

ROOT = Path(__file__).parents[1]
LINES = ROOT / "models" / "scorecards" / "mutants.jsonl"
CACHE = ROOT / ".cache" / "mutants"
STOREYS = "compile", "answers", "tools", "comparison", "results"
FOLDERS = ("inference/methods", "inference/engine", "inference/labels", *STOREYS)
FILES = (
    *("foundation/gate.py", "model/outer/integration.py", "model/capabilities/sequential.py"),
    *("distributions/averages/integrated.py", "distributions/gaussian.py"),
)
PRELOADED = ("pymc", "arviz", "nutpie", "matplotlib.pyplot", "pandas", "scipy.stats", "scipy.optimize", "rich.table")


def sample(words: list[str], number: int) -> list[Mutant]:
    """Return mutants in the order of a hash of their names, at most one that starts on a line."""
    package = ROOT / "bayeszoo"
    files = [*FILES, *(str(p.relative_to(package)) for folder in FOLDERS for p in (package / folder).rglob("*.py"))]
    files = sorted(f"bayeszoo/{file}" for file in files if "/loops/" not in file and "__init__" not in file)
    chosen: dict[tuple[str, int], tuple[bool, str, Mutant]] = {}
    asked = (file for file in files if not words or any(word in file for word in words))
    for mutant in (m for file in asked for m in mutants_of(file, (ROOT / file).read_text(encoding="utf-8"))):
        is_last = mutant.kind in ("constant", "keyword")  # which there are most of: where a line has no other
        entry = is_last, hashlib.blake2b(mutant.key.encode()).hexdigest(), mutant
        line = mutant.file, mutant.place[0]
        chosen[line] = min(entry, chosen.get(line, entry))
    return [mutant for _, _, mutant in sorted(chosen.values(), key=lambda entry: entry[1])][:number]


def copied(name: str) -> Path:
    """Bring a copy up to date: files that did not change are left alone, and with them what was compiled."""
    copy = CACHE / name
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for file in filter(None, listed.stdout.split("\n")):
        source, target = ROOT / file, copy / file
        if source.is_file() and (not target.exists() or target.read_bytes() != source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    if not (copy / "bayeszoo" / "models").exists():
        (copy / "bayeszoo" / "models").symlink_to("../models")
    for library in PRELOADED:
        importlib.import_module(library)
    return copy


class Lines:
    """A plugin of pytest: which lines of the folders under test each test runs, and how long that takes."""

    def __init__(self, copy: Path, held: Path, of: str) -> None:
        self.copy, self.held, self.of, self.tests, self.seconds = f"{copy}/", held, of, list[str](), list[float]()
        self.failed: set[str] = set()
        self.lines: dict[str, set[int]] = defaultdict(set)
        self.within = tuple(f"{copy}/bayeszoo/{part}" for part in (*FOLDERS, *FILES))
        tool, events = sys.monitoring.COVERAGE_ID, sys.monitoring.events
        sys.monitoring.use_tool_id(tool, "mutants")
        sys.monitoring.register_callback(tool, events.LINE, self._line)
        # a lambda on a line of its own starts there, and has no event of a line
        sys.monitoring.register_callback(tool, events.PY_START, lambda code, _: self._line(code, code.co_firstlineno))
        sys.monitoring.set_events(tool, events.LINE | events.PY_START)

    def _line(self, code: Any, line: int) -> Any:
        if self.tests and code.co_filename.startswith(self.within):
            self.lines[f"{code.co_filename.removeprefix(self.copy)}:{line}"].add(len(self.tests) - 1)
        return sys.monitoring.DISABLE

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Note the lines from here on for this test."""
        self.tests.append(item.nodeid)
        sys.monitoring.restart_events()
        begun = time.perf_counter()
        result = yield
        self.seconds.append(time.perf_counter() - begun)
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note what fails without a mutant."""
        self.failed |= {report.nodeid} if report.failed else set()

    def pytest_unconfigure(self) -> None:
        """Write all as JSON."""
        lines = {line: sorted(tests) for line, tests in self.lines.items()}
        held = {
            "of": self.of,
            "tests": self.tests,
            "seconds": self.seconds,
            "failed": sorted(self.failed),
            "lines": lines,
        }
        self.held.write_text(json.dumps(held))


class Chosen:
    """A plugin of pytest: only some tests, in their order; it notes the first that fails."""

    def __init__(self, tests: list[str], note: Path) -> None:
        self.order, self.note = {test: i for i, test in enumerate(tests)}, note

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out the others."""
        if order := self.order:
            items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note what fails."""
        if report.failed:
            self.note.write_text(report.nodeid)


def forked(copy: Path, arguments: list[str], plugin: Callable[[], Any], log: Path, seconds: float) -> int | None:
    """Run pytest in a copy, in a child that has the libraries loaded; None when the time is over."""
    child = os.fork()
    if not child:
        os.setsid()
        os.chdir(copy)
        sys.path[:] = [str(copy), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
        os.environ |= {"PYTHONPATH": str(copy), "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        os._exit(int(pytest.main([*arguments, "-q", "-p", "no:cacheprovider", "--tb=line"], plugins=[plugin()])))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def cover(words: list[str]) -> None:
    """Note which lines the quick tests of each file run; a file that did not change since is left alone."""
    copy = copied("copy")
    (CACHE / "cover").mkdir(exist_ok=True)
    for file in (p for p in sorted(ROOT.glob("tests/test_*.py")) if not words or any(word in p.name for word in words)):
        held = CACHE / "cover" / f"{file.stem}.json"
        of = hashlib.blake2b((copy / "tests" / file.name).read_bytes()).hexdigest()
        if not held.exists() or json.loads(held.read_text()).get("of") != of:
            begun, arguments = time.perf_counter(), [f"tests/{file.name}", "-m", "not slow and not browser"]
            plugin = lambda held=held, of=of: Lines(copy, held, of)  # noqa: E731
            code = forked(copy, arguments, plugin, held.with_suffix(".log"), 1800)
            print(f"{file.name}: exit {code}, {time.perf_counter() - begun:.0f} s", flush=True)


def covering() -> tuple[dict[str, set[str]], dict[str, float]]:
    """Return the tests of each line, and the seconds of each test that passes without a mutant."""
    tests_of: dict[str, set[str]] = defaultdict(set)
    seconds: dict[str, float] = {}
    for held in (json.loads(path.read_text()) for path in sorted((CACHE / "cover").glob("*.json"))):
        failed = set(held["failed"])
        seconds |= {test: s for test, s in zip(held["tests"], held["seconds"], strict=True) if test not in failed}
        for line, numbers in held["lines"].items():
            tests_of[line] |= {held["tests"][i] for i in numbers} - failed
    return tests_of, seconds


def lines_of(mutant: Mutant) -> set[str]:
    """Name the lines by which a mutant is reached; of a constant of a module or a class, also those that name it."""
    own = {f"{mutant.file}:{line}" for line in range(mutant.place[0], mutant.place[2] + 1)}
    if "." in mutant.function or (mutant.function and not mutant.function.lstrip("_")[0].isupper()):
        return own
    text = (ROOT / mutant.file).read_text(encoding="utf-8").split("\n")
    name = text[mutant.place[0] - 1].split("=")[0].split(":")[0].strip()
    return own | {f"{mutant.file}:{i}" for i, line in enumerate(text, start=1) if name in line}


def results() -> dict[str, dict[str, Any]]:
    """Return what is known of each mutant by now, later lines over former ones."""
    known: dict[str, dict[str, Any]] = defaultdict(dict)
    for line in LINES.read_text(encoding="utf-8").splitlines() if LINES.exists() else []:
        known[json.loads(line)["key"]] |= json.loads(line)
    return known


def noted(entry: dict[str, Any]) -> None:
    """Append a line."""
    with LINES.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(entry) + "\n")


def run(words: list[str], number: int, seconds: float, slow: bool, survivors: bool) -> None:
    """Run each sampled mutant that has no result, or those that survived, and write a line of each."""
    copy, (tests_of, durations), known = copied("mutated"), covering(), results()
    for mutant in sample(words, number):
        before = known[mutant.key]
        if "equivalent" in before or ("result" in before and not (survivors and before["result"] != "killed")):
            continue
        tests = sorted(set().union(*(tests_of[line] for line in lines_of(mutant))), key=durations.__getitem__)
        entry = {"key": mutant.key, "file": mutant.file, "line": mutant.place[0], "tests": len(tests)}
        noted(entry := {**entry, **run_mutant(copy, mutant, tests, durations, seconds, slow)})
        print(entry["result"], entry["stage"], mutant.key, entry["by"], flush=True)


def run_mutant(
    copy: Path, mutant: Mutant, tests: list[str], durations: dict[str, float], most: float, slow: bool
) -> dict[str, Any]:
    """Run a mutant against its fastest tests, which take some seconds together at most, then the slow ones."""
    chosen, total = list[str](), 0.0
    for test in tests:
        total += durations[test]
        chosen += [test] if total <= most or not chosen else []
    of_files = lambda some: sorted({test.split("::")[0] for test in some})  # noqa: E731
    stages = {"quick": (of_files(chosen), chosen, 60 + 8 * min(total, most))}
    stages |= {"slow": ([*of_files(tests), "-m", "slow"], [], 900)} if slow else {}
    note, target = CACHE / "failed.txt", copy / mutant.file
    stage, about = "quick", {"left_out": len(tests) - len(chosen)}
    try:
        target.write_text(mutant.applied(target.read_text(encoding="utf-8")), encoding="utf-8")
        for stage, (arguments, only, limit) in stages.items() if tests else ():
            note.unlink(missing_ok=True)
            plugin = lambda only=only: Chosen(only, note)  # noqa: E731
            code = forked(copy, [*arguments, "-x"], plugin, CACHE / "run.log", limit)
            if code not in (0, 5):
                by = note.read_text() if note.exists() else "time" if code is None else "collection"
                return {"result": "killed", "stage": stage, "by": by, **about}
    finally:
        shutil.copy2(ROOT / mutant.file, target)
    return {"result": "survived" if tests else "not reached", "stage": stage, "by": "", **about}


def table() -> str:
    """Return the table by folder: what the quick tests catch, what the slow ones do, and what none sees."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in results().values():
        kind = "equivalent" if "equivalent" in entry else entry["stage"] if entry["result"] == "killed" else "missed"
        for row in (str(Path(entry["file"]).parent.relative_to("bayeszoo")), "~all"):
            counts[row][kind] += 1
    rows = ["| folder | mutants | equivalent | quick | slow | missed | caught |", "|---|---|---|---|---|---|---|"]
    for folder, n in sorted(counts.items()):
        caught = n["quick"] + n["slow"]
        cells = [folder.strip("~"), n.total(), *(n[kind] for kind in ("equivalent", "quick", "slow", "missed"))]
        rows.append(f"| {' | '.join(map(str, cells))} | {caught / max(caught + n['missed'], 1):.0%} |")
    return "\n".join(rows)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("cover", "run", "judge", "table"))
    parser.add_argument("words", nargs="*")
    parser.add_argument("--number", type=int, default=120, help="of mutants")
    parser.add_argument("--seconds", type=float, default=90, help="of quick tests for each mutant")
    parser.add_argument("--slow", action="store_true", help="run the slow tests as well")
    parser.add_argument("--survivors", action="store_true", help="run again what survived")
    asked = parser.parse_intermixed_args()
    os.environ.setdefault("PYTENSOR_FLAGS", f"base_compiledir={CACHE}/pytensor")
    CACHE.mkdir(parents=True, exist_ok=True)
    match asked.verb:
        case "cover":
            cover(asked.words)
        case "run":
            run(asked.words, asked.number, asked.seconds, asked.slow, asked.survivors)
        case "judge":
            noted(dict(zip(("key", "equivalent"), asked.words, strict=True)))
        case _:
            print(table())


if __name__ == "__main__":
    main()
