"""The engine of collapsed Gibbs sampling: warmup, attempts, memory, Ctrl-C, and fits that agree with enumeration."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.errors import InputError, Interrupted
from bayeszoo.families.documents.gibbs import TopicChain
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.labels.symmetry import some_entries
from bayeszoo.inference.methods import gibbs
from bayeszoo.results.stored import Fit
from tests.topic_oracles import LIMIT, SMALL, enumerated, log_joint, tables, together

LDA = bz.find("lda")


class Quiet(Reporter):
    """Keeps what is said; after so many reports of progress it stops the run as Ctrl-C does."""

    def __init__(self, stop_after=None):
        self.lines, self.reports, self._stop_after = [], 0, stop_after

    def say(self, line):
        self.lines.append(line)

    def progress(self, what, done, total):
        assert 0 <= done <= total
        self.reports += 1
        if self.reports == self._stop_after:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def tree():
    return bz.fit(LDA(K=2, alpha=0.8, eta=0.7), SMALL, "gibbs", seed=1)


def test_a_fit_of_a_tiny_corpus_passes_the_gate(tree):
    assert tree.attrs["status"] == "ok"
    assert tree.attrs["kind"] == "sampled"
    assert tree["posterior"]["topics"].dims == ("chain", "draw", "topic", "word")
    assert tree["posterior"]["proportions"].shape == (4, 500, 3, 2)
    assert {"attempts": 1, "tune": 1000, "thin": 10}.items() <= Fit(tree).facts.items()


def test_a_fit_agrees_with_enumeration(tree):
    alpha, eta = np.full(2, 0.8), np.full(3, 0.7)
    every, probability = enumerated(SMALL, alpha, eta)
    weights = list(zip(every, probability, strict=True))
    expected = sum(p * together(tables(z, SMALL, 2)[0], alpha) for z, p in weights)
    theta = tree["posterior"]["proportions"].to_numpy().reshape(-1, 3, 2)
    alike = np.stack([np.sum(theta[:, i] * theta[:, j], axis=1) for i, j in itertools.combinations(range(3), 2)], 1)
    found = np.concatenate([alike, tree["sample_stats"]["lp"].to_numpy().reshape(-1, 1)], 1).reshape(50, 40, 4).mean(1)
    mean_log_joint = sum(p * log_joint(z, SMALL, alpha, eta) for z, p in weights)
    z = (found.mean(0) - [*expected, mean_log_joint]) / (found.std(0, ddof=1) / np.sqrt(50))
    assert np.max(np.abs(z)) < LIMIT


def test_the_same_seed_gives_the_same_fit(tree):
    again = bz.fit(LDA(K=2, alpha=0.8, eta=0.7), SMALL, "gibbs", seed=1)
    np.testing.assert_array_equal(again["posterior"]["topics"], tree["posterior"]["topics"])
    np.testing.assert_array_equal(again["sample_stats"]["lp"], tree["sample_stats"]["lp"])
    other = bz.fit(LDA(K=2, alpha=0.8, eta=0.7), SMALL, "gibbs", seed=2)
    assert not np.array_equal(other["sample_stats"]["lp"], tree["sample_stats"]["lp"])


def test_chains_differ(tree):
    lp = tree["sample_stats"]["lp"].to_numpy()
    assert len(np.unique(lp[:, :20], axis=0)) == 4


@pytest.mark.parametrize("fields", [{"K": 1}, {"K": 2, "alpha": [0.5, 2.0]}])
def test_labels_that_mean_something_are_checked_too(fields):
    tree = bz.fit(LDA(**fields, eta=0.7), SMALL, "gibbs", seed=1)
    assert tree.attrs["status"] == "ok"
    assert "unaligned" not in tree.children


def stuck(monkeypatch):
    """Let sweeps do nothing, so that chains stay where they started."""
    monkeypatch.setattr(
        TopicChain, "sweep", lambda self, times, power=1.0: None if self._total.any() else SWEEP(self, 1)
    )


SWEEP = TopicChain.sweep


def test_chains_that_do_not_agree_go_on_and_then_say_so(monkeypatch):
    stuck(monkeypatch)
    said = Quiet()
    tree = bz.fit(LDA(K=2, alpha=0.8, eta=0.1), SMALL, "gibbs", seed=1, draws=400, reporter=said)
    assert tree.attrs["status"] == "not converged"
    assert Fit(tree).facts["attempts"] == 1  # what stands still is not mended by more of it
    assert said.lines == []


def test_chains_in_different_modes_fail_the_gate_after_three_attempts():
    data = {**SMALL, "counts": np.array([60, 60, 60, 60, 60, 60])}
    said = Quiet()
    tree = bz.fit(LDA(K=2, alpha=0.05, eta=0.05), data, "gibbs", seed=3, draws=400, tune=10, thin=1, reporter=said)
    facts = Fit(tree).facts
    assert (tree.attrs["status"], facts["attempts"], facts["thin"]) == ("not converged", 3, 4)
    assert facts["tune"] == 10 + 400 + 20 + 800 + 40  # all before the draws that were kept: annealed three times
    assert [line[:9] for line in said.lines] == ["attempt 1", "attempt 2"]


def test_warmup_is_annealed_and_every_draw_is_made_at_the_end_of_it(monkeypatch):
    powers = []

    def sweep(self, times, power=1.0):
        powers.append(power)
        SWEEP(self, times, power)

    monkeypatch.setattr(TopicChain, "sweep", sweep)
    bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, chains=1, draws=10, tune=40, thin=2, extend=False)
    assert powers[0] == 1.0  # where a chain starts
    np.testing.assert_allclose(powers[1:31], 0.3 + 0.7 * np.arange(30) / 30)
    assert powers[31:] == [1.0] * (10 + 20)


def test_chains_that_mix_slowly_go_on_from_where_they_are():
    said = Quiet()
    options = {"draws": 400, "tune": 100, "thin": 1, "reporter": said}
    tree = bz.fit(LDA(K=2, alpha=0.8, eta=0.4), {**SMALL, "counts": SMALL["counts"] * 4}, "gibbs", seed=1, **options)
    facts = Fit(tree).facts
    assert (tree.attrs["status"], facts["attempts"] > 1) == ("ok", True)
    assert facts["thin"] == 2 ** (facts["attempts"] - 1)
    assert facts["tune"] == 100 + 400 * (facts["thin"] - 1)  # where they were: no new warmup
    assert all("r_hat 1.0" in line or "ess" in line for line in said.lines)


def test_of_many_entries_some_are_diagnosed():
    values = np.arange(1000.0) + np.random.default_rng(1).random((4, 3, 1000))
    some = some_entries(values.reshape(4, 3, 10, 100))
    assert some.shape == (4, 3, 200)
    largest = some.mean(axis=(0, 1))
    assert np.sum(largest >= 900) >= 100
    assert largest.min() < 10
    np.testing.assert_array_equal(some_entries(values[..., :200]), values[..., :200])


def test_without_extend_there_is_one_attempt():
    data = {**SMALL, "counts": np.array([60, 60, 60, 60, 60, 60])}
    options = {"draws": 400, "tune": 10, "thin": 1, "extend": False}
    tree = bz.fit(LDA(K=2, alpha=0.05, eta=0.05), data, "gibbs", seed=3, **options)
    assert (tree.attrs["status"], Fit(tree).facts["attempts"]) == ("not converged", 1)


def test_draws_that_would_not_fit_in_memory_are_refused():
    with pytest.raises(InputError, match=r"4 chains of 9000000 draws of proportions and topics would take 3\.\d GB"):
        bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, draws=9_000_000)


def test_ctrl_c_keeps_the_draws_that_every_chain_has():
    said = Quiet(stop_after=3)
    tree = bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, draws=300_000, tune=0, thin=1, reporter=said)
    assert tree.attrs["status"] == "interrupted"
    length = tree["posterior"].sizes["draw"]
    assert 0 < length < 300_000
    assert np.isfinite(tree["sample_stats"]["lp"]).all()
    assert np.allclose(tree["posterior"]["topics"].sum("word"), 1)


def test_ctrl_c_before_every_chain_has_a_draw_keeps_nothing():
    with pytest.raises(Interrupted, match="nothing was kept"):
        bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, tune=10**8, reporter=Quiet(stop_after=2))


class HalfStarted(ThreadPoolExecutor):
    """Ctrl-C comes when the first chain has begun and the second has not."""

    def submit(self, sample, chain):
        if chain == 1:
            raise KeyboardInterrupt
        return super().submit(sample, chain)


def test_ctrl_c_while_chains_are_begun_stops_those_that_have(monkeypatch):
    monkeypatch.setattr(gibbs, "ThreadPoolExecutor", HalfStarted)
    with pytest.raises(Interrupted, match="nothing was kept"):
        bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, tune=10**6)


def test_what_a_chain_raises_is_raised(monkeypatch):
    def broken(self):
        raise ZeroDivisionError("in a thread")

    monkeypatch.setattr(TopicChain, "log_joint", property(broken))
    with pytest.raises(ZeroDivisionError, match="in a thread"):
        bz.fit(LDA(K=2), SMALL, "gibbs", seed=1, tune=0)


def test_other_models_are_not_sampled_by_it():
    with pytest.raises(InputError, match="it lacks Collapsed"):
        bz.fit(bz.find("gaussian_mixture")(), method="gibbs")


def test_documents_without_words_have_their_prior():
    data = {**SMALL, "document": np.array(["d1", "d2", "d3", "empty"])}
    tree = bz.fit(LDA(K=2, alpha=0.8), data, "gibbs", seed=1)
    shares = tree["unaligned"]["proportions"].sel(document="empty").to_numpy()[..., 0].ravel()
    assert scipy.stats.kstest(shares[::2], scipy.stats.beta(0.8, 0.8).cdf).pvalue > 1e-5
