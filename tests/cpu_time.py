"""CPU seconds of the tests, as the clock counts what else the machine does: their sum, and the files that take most."""

import os
from collections import Counter

import pytest

SHOWN = 10


def cpu_seconds():
    """Return the CPU seconds of this process and of those that it has started and waited for."""
    return sum(os.times()[:4])


class CpuTime:
    """Measures each phase of each test where it runs, and adds up what the workers report."""

    def __init__(self):
        self.last = cpu_seconds()
        self.own = self.of_workers = 0.0
        self.by_file = Counter()

    def pytest_collection_finish(self):
        self.last = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        now = cpu_seconds()
        report.cpu_seconds, self.last = now - self.last, now
        return report

    def pytest_runtest_logreport(self, report):
        self.by_file[report.nodeid.split("::")[0]] += report.cpu_seconds

    def pytest_sessionfinish(self, session):
        # Workers are processes that this one waits for: they report their own seconds.
        self.own = sum(os.times()[:2]) if session.config.getoption("numprocesses", None) else cpu_seconds()
        getattr(session.config, "workeroutput", {})["cpu_seconds"] = self.own

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist
    def pytest_testnodedown(self, node):
        self.of_workers += getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0)  # a worker that crashed has none

    def pytest_terminal_summary(self, terminalreporter):
        total = self.own + self.of_workers
        rest = total - self.by_file.total()
        files = ", ".join(f"{path.split('/')[-1]} {seconds:.0f}" for path, seconds in self.by_file.most_common(SHOWN))
        terminalreporter.write_line(
            f"CPU time {total / 60:.1f} minutes; collection and start {rest:.0f} s; files of tests by s: {files}"
        )
