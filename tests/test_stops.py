"""A stop at any step of one fit, without a process: draws are kept whatever else is stopped, and none is made up."""

import signal
from unittest.mock import Mock

import numpy as np
import pyarrow
import pytest

import bayeszoo as bz
from bayeszoo.errors import Interrupted
from bayeszoo.foundation.gate import Check
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.methods import gibbs, nuts
from bayeszoo.inference.problem import Problem
from bayeszoo.results import arviz_groups
from bayeszoo.results import assemble as assembling
from tests.refusals import raises

BIRTHS = bz.example(bz.find("beta_bernoulli"), "placenta_previa")


def test_stopped_while_draws_are_converted():
    finished = Mock(**{"wait.side_effect": KeyboardInterrupt, "abort.side_effect": ValueError("no results to take")})
    with raises(Interrupted, "not_collected"):
        nuts._wait(finished)


def batches(warmup, length):
    """Return what nutpie has of a chain after so many draws of warmup and so many others."""
    rows = np.arange(warmup + length)
    flat = pyarrow.array([[float(row), row + 0.5] for row in rows], pyarrow.list_(pyarrow.float64()))
    missing = pyarrow.array([None] * len(rows), pyarrow.uint64())
    stats = {"tuning": rows < warmup, "energy": 1.0 * rows, "divergence_draw": missing, "divergence_start": flat}
    return pyarrow.record_batch({nuts.FLAT: flat}), pyarrow.record_batch(stats)


def trace_of(*lengths):
    return Mock(**{"get_arrow_trace.return_value": tuple(zip(*(batches(3, n) for n in lengths), strict=True))})


def test_chains_lose_their_warmup_and_are_cut_to_the_shortest():
    draws, stats = nuts._arrays(trace_of(5, 2), {"theta": (), "of_group": (1,), "nothing": (0, 2)})
    assert draws["theta"].tolist() == [[3, 4], [3, 4]]
    assert draws["of_group"].tolist() == [[[3.5], [4.5]]] * 2
    assert draws["nothing"].shape == (2, 2, 0, 2)
    assert stats["energy"].tolist() == [[3, 4], [3, 4]]
    assert stats["divergence_draw"].tolist() == [[0, 0], [0, 0]]
    assert set(stats) == {"energy", "divergence_draw"}


def test_nothing_is_kept_while_a_chain_has_no_draw():
    with raises(Interrupted, "no_draws"):
        nuts._arrays(trace_of(5, 0), {"theta": (), "of_group": (1,)})


def interrupting(at):
    """Return a reporter that stands in for Ctrl-C when so many draws are done."""

    class Interrupting(Reporter):
        def progress(self, what, done, total):
            if done == at:
                raise KeyboardInterrupt

    return Interrupting()


@pytest.mark.parametrize(("at", "chains", "draws"), [(300, 1, 200), (500, 1, 300), (900, 2, 300)])
def test_pymc_stops_for_good_and_says_so(at, chains, draws):
    """Ctrl-C ends only the chain that runs, and PyMC would sample all the others to the end."""
    options = {"sampler": "pymc", "draws": 300, "tune": 100, "reporter": interrupting(at)}
    tree = bz.fit(bz.find("beta_bernoulli")(), BIRTHS, seed=1, **options)
    assert tree.attrs["status"] == "interrupted"
    assert dict(tree["posterior"].sizes) == {"chain": chains, "draw": draws}


@pytest.mark.parametrize(("before", "reporter"), [([signal.SIGINT], Reporter()), ([], interrupting(200))])
def test_pymc_stopped_by_a_signal_lost_before_or_during_warmup(monkeypatch, before, reporter):
    monkeypatch.setattr(signals, "received", before)
    with raises(Interrupted, "no_draws"):
        bz.fit(bz.find("beta_bernoulli")(), seed=1, sampler="pymc", draws=300, tune=300, reporter=reporter)


# After the draws: they are kept whatever of the rest is stopped


def stopping(*_, **__):
    raise KeyboardInterrupt


def test_stopped_while_it_is_checked_a_fit_keeps_its_draws(monkeypatch, tmp_path):
    model, rows = bz.find("normal_gamma")(), [1.2, 0.3, 2.2, 1.9]
    whole = bz.fit(model, rows, "exact", seed=1, groups=[])
    monkeypatch.setattr(assembling, "labelled", stopping)
    tree = bz.load(bz.save(bz.fit(model, rows, "exact", seed=1), tmp_path / "fit.nc"))
    assert (tree.attrs["status"], bz.view(tree).checks) == ("interrupted", {})
    np.testing.assert_array_equal(tree["posterior"]["mu"], whole["posterior"]["mu"])
    assert bz.summarize(tree)["mu"]["mean"] is None
    with pytest.raises(bz.Untrustworthy):
        bz.predict(tree)


def test_a_second_ctrl_c_takes_nothing_from_a_fit_that_is_assembled(monkeypatch, capfd):
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def pressed_in(name):
        right = getattr(assembling, name)

        def then(*words, **options):
            signal.raise_signal(signal.SIGINT)
            return right(*words, **options)

        monkeypatch.setattr(assembling, name, then)

    for name in ("labelled", "_as_drawn", "_provenance"):
        pressed_in(name)
    tree = bz.fit(bz.find("normal_gamma")(), [1.2, 0.3, 2.2, 1.9], "exact", seed=1)
    assert (tree.attrs["status"], tree["posterior"]["mu"].size) == ("interrupted", 4000)
    assert capfd.readouterr().err == signals.STOPPING.decode()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_stopped_while_groups_are_added_a_fit_is_whole_without_them(monkeypatch):
    model, rows = bz.find("normal_gamma")(), [1.2, 0.3, 2.2, 1.9]
    monkeypatch.setitem(arviz_groups._MAKERS, "posterior_predictive", stopping)
    for asked in (None, ["posterior_predictive"]):
        tree = bz.fit(model, rows, "exact", seed=1, groups=asked)
        assert tree.attrs["status"] == "ok"
        assert "posterior_predictive" not in tree.children
        assert any("stopped" in note for note in bz.view(tree).notes)


def a_run(length):
    """A run of 2 chains of so many draws."""
    draws = np.full((2, length), 0.5)
    return nuts.Run({"theta": draws}, {"energy": draws})


@pytest.mark.parametrize(
    ("second", "kept"),
    [(stopping, 30), (Mock(side_effect=Interrupted("no draw")), 30), (Mock(return_value=a_run(5)), 30)],
)
def test_an_attempt_that_is_stopped_does_not_take_the_one_before_with_it(monkeypatch, second, kept):
    """Of a run that did not pass all draws are there, when it is repeated and stopped before it has as many."""
    first = a_run(30)
    attempts = iter([lambda *_: first, second])
    failed = [Check("r_hat", passed=False, value=1.2, limit="<= 1.01")]
    checked = iter([lambda *_: failed, stopping])
    monkeypatch.setattr(nuts, "_sampled", lambda *words: next(attempts)(*words))
    monkeypatch.setattr(nuts, "_checks", lambda *words: next(checked)(*words))
    monkeypatch.setattr(nuts, "_ends", lambda *_: ())
    monkeypatch.setattr(nuts, "announce_again", lambda *_: None)
    problem = Mock(**{"density.names": ["theta"], "density.dims": {}, "density.coords": {}})
    outcome = nuts.run(problem, draws=30)
    assert (outcome.interrupted, outcome.checks, outcome.facts["attempts"]) == (True, [], 1)
    assert outcome.draws["theta"].shape == (2, kept)


@pytest.mark.parametrize("second", [0, 5, 30, "checked", "said"])
def test_a_second_attempt_of_gibbs_that_is_stopped_does_not_take_the_first_with_it(monkeypatch, second):
    """Nor does one that is not long enough to be shown in its place; where both are whole the later one is kept."""
    lengths, judged, failed = iter([30, second]), [], [Check("ess", passed=False, value=9.0, limit=">= 400")]

    def sampled(chains, kept, *_):
        length = next(lengths)
        if length == 0:
            raise Interrupted("no draw")
        length = length if isinstance(length, int) else 30
        for name in kept:
            kept[name][:, :length] = 1.0 if judged else 0.0
        return length

    def checks(*_):
        judged.append(1)
        if len(judged) == 2:
            raise KeyboardInterrupt
        return failed

    monkeypatch.setattr(gibbs, "_sample", sampled)
    monkeypatch.setattr(gibbs, "_judged", checks)
    probit = bz.find("probit_regression")
    data = bz.read(probit, {"x": [1.0, 2.0, 9.0, 9.5], "y": [0, 1, 0, 1]})
    problem = Problem(probit.weak(data), data, np.random.default_rng(1))
    if second == "said":
        monkeypatch.setattr(problem.reporter, "say", stopping)
    outcome = gibbs.run(problem, draws=30)
    is_later = second in (30, "checked")
    assert (outcome.interrupted, outcome.checks, outcome.facts["attempts"]) == (True, [], 2 if is_later else 1)
    assert outcome.sample_stats["lp"].tolist() == [[float(is_later)] * 30] * 4


def test_a_signal_waits_while_processes_begin(monkeypatch):
    """Of a Dask cluster that has half begun nobody could end the other half."""
    monkeypatch.setattr(signals, "received", [])
    signals.listen()
    begun = []

    def begin():
        with signals.beginning():
            signal.raise_signal(signal.SIGINT)
            begun.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert begun
