"""CPU seconds of the tests, as the clock counts what else the machine does, and the cases that `make test` leaves out.

`make measure` runs all that takes seconds and writes `tests/slow_cases.txt`: where the cases of a test together take
more than `BUDGET`, the dearest ones are slow, as if they were marked so where they stand. A test that is not on the
list, as a new one, is quick, and so is one that is marked `quick`: any change may break what it guards.
"""

import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest

SHOWN = 10
BUDGET = 0.9
"""CPU seconds of `make test` for a test with all its cases."""

CONTRACT = "tests/test_contract.py::test_identity"
SLOW_CASES = Path(__file__).with_name("slow_cases.txt")


def cpu_seconds():
    """Return the CPU seconds of this process and of those that it has started and waited for."""
    return sum(os.times()[:4])


def mark_slow_cases(items, mark):
    """Mark the tests on the list, each by itself or by the name before its cases."""
    listed = set(SLOW_CASES.read_text(encoding="utf-8").splitlines()) if SLOW_CASES.exists() else set()
    for item in items:
        if item.get_closest_marker("quick"):
            continue
        if not listed.isdisjoint((item.nodeid, item.nodeid.split("[")[0])):
            item.add_marker(mark)


def slow_cases(seconds):
    """Return which tests go over the budget, the cheapest cases of each test first; all cases as the test's name."""
    of_test = defaultdict(list)
    for nodeid, value in seconds.items():
        test, _, case = nodeid.partition("[")
        identity = case.rpartition("-")[2] if test == CONTRACT else ""  # each identity of the contract is a test
        of_test[test, identity].append((value, nodeid))
    slow = []
    for (test, identity), cases in of_test.items():
        kept, total = 0, 0.0
        for value, _ in sorted(cases):
            total += value
            kept += total <= BUDGET
        slow += [nodeid for _, nodeid in sorted(cases)[kept:]] if kept or identity else [test]
    return sorted(slow)


class CpuTime:
    """Measures each phase of each test where it runs, and adds up what the workers report."""

    def __init__(self):
        self.last = cpu_seconds()
        self.own = self.of_workers = 0.0
        self.by_test = Counter()

    def pytest_collection_finish(self):
        self.last = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        now = cpu_seconds()
        report.cpu_seconds, self.last = now - self.last, now
        return report

    def pytest_runtest_logreport(self, report):
        self.by_test[report.nodeid] += report.cpu_seconds

    def pytest_sessionfinish(self, session):
        # Workers are processes that this one waits for: they report their own seconds.
        self.own = sum(os.times()[:2]) if session.config.getoption("numprocesses", None) else cpu_seconds()
        getattr(session.config, "workeroutput", {})["cpu_seconds"] = self.own

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist
    def pytest_testnodedown(self, node):
        self.of_workers += getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0)  # a worker that crashed has none

    def pytest_terminal_summary(self, terminalreporter):
        total = self.own + self.of_workers
        rest, by_file = total - self.by_test.total(), Counter()
        for nodeid, seconds in self.by_test.items():
            by_file[nodeid.split("::")[0]] += seconds
        files = ", ".join(f"{path.split('/')[-1]} {seconds:.0f}" for path, seconds in by_file.most_common(SHOWN))
        terminalreporter.write_line(
            f"CPU time {total / 60:.1f} minutes; collection and start {rest:.0f} s; files of tests by s: {files}"
        )
        if terminalreporter.config.getoption("measure"):
            SLOW_CASES.write_text("\n".join(slow_cases(self.by_test)) + "\n", encoding="utf-8")
