"""Progress: long phases, the work done and left, and the expected time before a long run.

Time is a number that the tests move.
"""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.cli import terminal
from bayeszoo.foundation.process import progress
from bayeszoo.foundation.process.progress import Clock, Reporter, lasting
from bayeszoo.inference import starts
from bayeszoo.inference.engine import cost


class Time:
    """A clock, and timers that go by it."""

    def __init__(self):
        self.now, self.timers = 0.0, []

    def __call__(self):
        return self.now

    def passes(self, seconds):
        self.now += seconds
        for timer in [timer for timer in self.timers if timer.at <= self.now]:
            self.timers.remove(timer)
            timer.call()

    def timer(self, seconds, function, arguments=()):
        timer = SimpleNamespace(at=self.now + seconds, call=lambda: function(*arguments))
        timer.start = lambda: self.timers.append(timer)
        timer.cancel = lambda: self.timers.remove(timer) if timer in self.timers else None
        return timer


class Heard(Reporter):
    """Keeps what it is told."""

    def __init__(self):
        self.said, self.phases = [], []

    def say(self, line):
        self.said.append(line)

    def phase(self, what):
        self.phases.append(what)

    def progress(self, what, done, total):
        if self.phases[-1] != what:
            self.phases.append(what)


@pytest.fixture
def clock(monkeypatch):
    clock = Time()
    monkeypatch.setattr(terminal.time, "monotonic", clock)
    monkeypatch.setattr(terminal, "Timer", clock.timer)
    return clock


def test_off_a_terminal_a_phase_has_a_line_once_it_lasts_and_a_count_says_what_is_left(clock, capsys):
    reporter = terminal.TerminalReporter()
    reporter.phase("declaring the model")
    clock.passes(1)
    reporter.phase("compiling")  # the one before was short
    clock.passes(3)
    reporter.progress("sampling", 0, 8000)
    clock.passes(6)
    reporter.progress("sampling", 2000, 8000)
    clock.passes(1)
    reporter.progress("sampling", 3000, 8000)  # less than five seconds later
    reporter.phase("checking draws")
    clock.passes(1)
    reporter.close()
    clock.passes(9)
    assert capsys.readouterr() == ("", "compiling\nsampling: 2000 of 8000, about 18 s left\n")


def test_what_is_left_does_not_count_the_compiling_of_the_first_climb(clock, capsys):
    reporter = terminal.TerminalReporter()
    for done, seconds in enumerate((60, 2, 2, 2, 2)):  # the first climb compiles
        reporter.progress("climbs", done, 200)
        clock.passes(seconds)
    reporter.progress("climbs", 5, 200)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["climbs: 1 of 200", "climbs: 4 of 200, about 6.5 min left"]  # 196 climbs of 2 s


def test_on_a_terminal_a_phase_that_lasts_and_a_count_share_a_bar_that_goes(clock, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    reporter = terminal.TerminalReporter()
    reporter.phase("compiling")
    clock.passes(0.1)
    assert screen.getvalue() == ""
    clock.passes(1)
    assert "compiling" in screen.getvalue()
    reporter.progress("sampling", 1000, 8000)
    (task,) = reporter._bar.tasks
    assert (task.description, task.completed, task.total) == ("sampling: 1000 of 8000", 1000, 8000)
    reporter.close()
    assert reporter._bar is None
    assert screen.getvalue().endswith("\x1b[2K")  # which clears the line
    assert sys.stderr is screen


def test_a_phase_goes_on_when_one_within_it_is_over(monkeypatch):
    time, heard = Time(), Heard()
    monkeypatch.setattr(progress.time, "perf_counter", time)
    clock = Clock(heard)
    with clock.phase("run"), clock.phase("compile"):
        time.passes(2)
    assert heard.phases == ["fitting", "compiling", "fitting"]
    assert clock.seconds == {"build": 0, "compile": 2, "run": 2, "measure": 0}


@pytest.mark.parametrize(
    ("seconds", "written"), [(0.123, "0.12 s"), (119, "120 s"), (120, "2 min"), (9000, "2.5 h"), (4e5, "4.6 days")]
)
def test_how_long_has_two_digits(seconds, written):
    assert lasting(seconds) == written


def timed(monkeypatch, gradient):
    """Return what is announced of four chains of 2,000 draws at so many seconds a gradient, and how many were timed."""
    time, heard, points = Time(), Heard(), []
    monkeypatch.setattr(cost.time, "perf_counter", time)

    def joint(x):
        points.append(x)
        time.passes(gradient)

    density = SimpleNamespace(joint=joint, start=np.zeros(3))
    cost.announce(SimpleNamespace(density=density, reporter=heard), 4, 2000, in_turn=2)
    return heard.said, len(points)


def test_a_long_run_is_announced_by_the_time_of_a_few_gradients(monkeypatch):
    (line,), count = timed(monkeypatch, 0.01)
    assert count == 10
    assert line == (
        "NUTS may take 4.7 min to 11 h, an estimate: 4 chains of 2,000 draws with warmup, 7 to 1,023 gradients each, "
        "of 10 ms"
    )
    assert timed(monkeypatch, 2.0)[1] == 1
    assert timed(monkeypatch, 5e-5) == ([], 10)  # seventeen seconds in the middle


@pytest.mark.parametrize(
    ("seconds", "scale", "costs", "answers"),
    [(0.01, np.eye(3), 1, 1), (5e-5, np.eye(3), 0, 1), (1e-5, np.eye(3), 0, 0), (0.01, None, 1, 0)],
)
def test_of_a_long_run_the_largest_known_mode_is_said_before_it(monkeypatch, seconds, scale, costs, answers):
    time, heard = Time(), Heard()
    monkeypatch.setattr(cost.time, "perf_counter", time)
    monkeypatch.setattr(starts, "starts", lambda problem: [starts.Start(np.zeros(3), scale), starts.Start(np.ones(3))])

    def constrain(x):
        means = x[:2] + np.array([2.03641, 4.28966])
        return {"weights": np.array([0.35589, 0.64411]), "means": means, "of_rows": np.zeros(500), "other": x}

    density = SimpleNamespace(joint=lambda x: time.passes(seconds), start=np.zeros(3), constrain=constrain)
    declared = SimpleNamespace(free_RVs=[SimpleNamespace(name=name) for name in ("weights", "means", "of_rows")])
    model = bz.find("gaussian_mixture")()
    starts.announce(SimpleNamespace(model=model, density=density, declared=declared, reporter=heard), 4, 2000, 2)
    said = "a first answer, the largest mode known and not a posterior: weights [0.356, 0.644]; means [2.04, 4.29]"
    assert heard.said[costs:] == [said] * answers
    assert len(heard.said) == costs + answers


@pytest.mark.parametrize(("lengths", "seconds"), [([1, 2], "2 min"), ([1, 2, 4], "80 s"), ([3, 1], "")])
def test_another_attempt_is_announced_by_what_the_ones_before_took(lengths, seconds):
    heard, clock = Heard(), SimpleNamespace(seconds={"run": 60.0})
    cost.announce_again(SimpleNamespace(reporter=heard, clock=clock), lengths)
    said = f"attempt {len(lengths)} may take {seconds} or more, by what it took so far"
    assert heard.said == ([said] if seconds else [])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["nutpie", "pymc"])
def test_phases_are_told_and_timing_gradients_changes_no_draw(sampler, monkeypatch):
    M = bz.find("student_t")
    prior, options = M.weak(bz.example(M)), {"sampler": sampler, "draws": 50, "tune": 50, "extend": False}
    fits, heard = [], Heard()
    for long in (-1.0, np.inf):
        monkeypatch.setattr(cost, "LONG", long)
        fits.append(bz.fit(prior, bz.example(M), seed=1, reporter=heard, **options)["posterior"].to_dataset())
    assert fits[0].identical(fits[1])
    assert len([line for line in heard.said if line.startswith("NUTS may take")]) == 1
    told = ["declaring the model", "compiling", "looking for modes, climbs", "sampling", "checking draws"]
    assert {*told} <= {*heard.phases}
    assert heard.phases[-1].startswith("log likelihood and replicates")
