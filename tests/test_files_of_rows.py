"""Rows in many files, on this machine or on a Dask cluster: EM and variational Bayes of all, however divided."""

import json
import os
import signal
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.methods import em, vb
from bayeszoo.model.many_files import read_files as reading
from bayeszoo.model.many_files.rows import expected
from bayeszoo.results.stored import Fit
from tests.refusals import raises

# sockets that Dask leaves to the collector of garbage
pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed.*socket:pytest.PytestUnraisableExceptionWarning")

RNG = np.random.default_rng(8)
ROWS = 600
HALF = np.arange(ROWS) % 2 == 0
STATE = np.arange(ROWS) // 10 % 2
SEQUENCE = np.repeat([f"s{i}" for i in range(20)], 30)
TOPICS = np.array([np.r_[np.ones(7), np.zeros(3)], np.r_[np.zeros(3), np.ones(7)]]) / 7
COUNTS = RNG.multinomial(30, [0.6, 0.3, 0.1], ROWS) * HALF[:, None] + RNG.multinomial(30, [0.1, 0.3, 0.6], ROWS) * (
    ~HALF[:, None]
)
FRAMES = {
    "gaussian_mixture": pd.DataFrame(RNG.normal(size=(ROWS, 2)) * [1, 2] + 1e4 + 8 * HALF[:, None], columns=["a", "b"]),
    "multinomial_mixture": pd.DataFrame(COUNTS, columns=["x", "y", "z"]),
    "student_t": pd.DataFrame({"y": 1e4 + RNG.standard_t(4, ROWS)}),
    "hmm_gaussian": pd.DataFrame({"y": RNG.normal(6 * STATE), "sequence": SEQUENCE}),
    "hmm_poisson": pd.DataFrame({"y": RNG.poisson(2 + 20 * STATE), "sequence": SEQUENCE}),
    "hmm_categorical": pd.DataFrame(
        {"y": np.where(RNG.random(ROWS) < 0.1, "c", np.array(["a", "b"])[STATE]), "sequence": SEQUENCE}
    ),
    "lda": pd.DataFrame(
        {
            "document": np.repeat([f"d{i}" for i in range(60)], 10),
            "word": np.tile([f"w{i}" for i in range(10)], 60),
            "count": np.ravel(
                [RNG.multinomial(20, p * TOPICS[0] + (1 - p) * TOPICS[1]) for p in RNG.beta(0.5, 0.5, 60)]
            ),
        }
    ),
}
MODELS = {"lda": bz.find("lda")(alpha=1.5, eta=1.5)}  # whose density has a maximum
CUTS = {"one": [], "two": [300], "five": [30, 60, 390, 570]}
"""Where the rows are cut: at the ends of sequences."""


@pytest.fixture
def cut(tmp_path):
    """Write a model's table as files cut at some rows: ``cut("gaussian_mixture", [300])`` -> a pattern of names."""

    def write(name, cuts, frame=None):
        folder = tmp_path / f"{name}-{len(cuts)}"
        folder.mkdir()
        for i, (first, last) in enumerate(pairwise([0, *cuts, ROWS])):
            (FRAMES[name] if frame is None else frame).iloc[first:last].to_csv(folder / f"part{i:02}.csv", index=False)
        return str(folder / "*.csv")

    return write


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes of this machine."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        distributed.Client(local) as client,
    ):
        yield client


def weak(name):
    """The model with the weakly informative prior of all rows, and these."""
    data = bz.read(bz.find(name), FRAMES[name])
    return MODELS.get(name, bz.find(name).weak(data)), data


def assert_same_fit(tree, alone, rtol=1e-10):
    """The maximum is that of the rows at once: its height, and where it is as far as a climb tells."""
    is_mle = "mle" in (alone.attrs["method"], json.loads(alone.attrs["options"]).get("estimate"))
    heights = ("log_likelihood", "elbo", "log_joint")[: 2 if is_mle else 3]  # of what is not climbed any may be reached
    here, there = (
        {name: Fit(each).facts[name] for name in heights if name in Fit(each).facts} for each in (tree, alone)
    )
    assert here == pytest.approx(there, rel=rtol)
    if Fit(tree).kind == "point estimate":
        for name, values in alone["posterior"].items():
            np.testing.assert_allclose(tree["posterior"][name], values, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("name", FRAMES)
def test_steps_at_files_are_those_of_the_rows_at_once(cut, name, cuts):
    model, data = weak(name)
    rows = bz.read_files(model, cut(name, cuts))
    params, q = model.start(data, np.random.default_rng(1)), model.vb_start(data, np.random.default_rng(1))
    for _ in range(20):
        there, here = expected(em._e_step, model, params, rows), model.e_step(params, data)
        assert there.value == pytest.approx(here.value, rel=1e-12)
        params = model.m_step(here.stats)
        for parameter, values in model.m_step(there.stats).items():
            np.testing.assert_allclose(values, params[parameter], rtol=1e-10)
    for _ in range(5):
        there, here = expected(vb._e_step, model, q, rows), model.vb_e_step(q, data)
        assert there.value == pytest.approx(here.value, rel=1e-12)
        q, other = model.vb_m_step(here.stats), model.vb_m_step(there.stats)
        for parameter, marginal in model.vb_posterior(q).items():
            np.testing.assert_allclose(model.vb_posterior(other)[parameter].mean(), marginal.mean(), rtol=1e-10)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in ("student_t", "hmm_categorical") else pytest.mark.slow) for name in FRAMES],
)
def test_fits_do_not_depend_on_the_division_into_files(cut, name):
    model, data = weak(name)
    divided = [bz.read_files(model, cut(name, cuts)) for cuts in CUTS.values()]
    for method, options in (("em", {}), ("em", {"estimate": "mle"}), ("vb", {})):
        alone, *each = (bz.fit(model, rows, method, seed=1, restarts=4, **options) for rows in (data, *divided))
        for tree in each:
            assert tree.attrs["status"] == alone.attrs["status"]
            assert_same_fit(tree, alone)


@pytest.mark.parametrize(("name", "size"), [("gaussian_mixture", 100), ("hmm_gaussian", 90), ("lda", 20)])
def test_climbs_start_from_a_sample_that_does_not_depend_on_the_files(cut, monkeypatch, name, size):
    monkeypatch.setattr(reading, "SAMPLE", 20 if name == "lda" else 100)
    model, data = weak(name)
    divided = [bz.read_files(model, cut(name, cuts)) for cuts in CUTS.values()]
    assert {rows.sample.digest for rows in divided} == {divided[0].sample.digest}
    assert len({rows.stream for rows in divided}) == 1
    assert len({rows.digest for rows in divided}) == 3
    sample = divided[0].sample
    assert model.inputs.size(sample) == size
    outcome = model.inputs.outcome(data)
    assert np.isin(model.inputs.outcome(sample), outcome).all()
    assert divided[0].notes[-1].endswith(f"climbs start from a sample of {size}")
    for method in ("map",) if name == "lda" else ("mle", "map"):  # the likelihood of lda has many maxima
        assert_same_fit(bz.fit(model, divided[2], method, seed=1), bz.fit(model, data, method, seed=1))


def test_sequences_of_a_sample_are_whole(cut, monkeypatch):
    monkeypatch.setattr(reading, "SAMPLE", 100)
    sample = bz.read_files(bz.find("hmm_gaussian"), cut("hmm_gaussian", CUTS["five"])).sample
    assert np.bincount(sample["sequence"]).tolist() == [30, 30, 30]
    own = FRAMES["hmm_gaussian"].groupby("sequence", sort=False)["y"].apply(list).tolist()
    assert all(sample["y"][sample["sequence"] == i].tolist() in own for i in range(3))


@pytest.mark.usefixtures("unmeasured")
def test_a_file_that_counts_twice_is_another_result(cut):
    """The comparison of all tests here sees it, in EM and in variational Bayes."""
    model, data = weak("gaussian_mixture")
    rows = bz.read_files(model, cut("gaussian_mixture", CUTS["five"]))
    rows.stored._parts.append(rows.stored._parts[-1])
    rows = replace(rows, ends=[*rows.ends, ROWS])
    for method in ("map", "vb"):
        with pytest.raises(AssertionError):
            assert_same_fit(bz.fit(model, rows, method, seed=1), bz.fit(model, data, method, seed=1))


def test_a_collapsed_component_is_told_by_the_rows_of_all_files(cut):
    """Two rows that are almost one make a higher maximum, and it is not the answer."""
    spread = np.random.default_rng(0).normal(size=ROWS - 1)
    frame = pd.DataFrame({"y": np.append(spread, spread[0] + 1e-9)})
    data = bz.read(bz.find("gaussian_mixture"), frame)
    model = bz.find("gaussian_mixture").weak(data)
    rows = bz.read_files(model, cut("gaussian_mixture", [300], frame))
    spike = {"weights": np.array([1 - 2 / ROWS, 2 / ROWS]), "means": np.array([[0.0], [spread[0]]])}
    spike["covariances"] = np.array([[[1.0]], [[1e-16]]])
    there = expected(em._e_step, model, spike, rows)
    assert there.value > model.e_step(model.start(data, RNG), data).value
    assert "collapsed" in model.degenerate(spike, there.stats)


def test_the_prior_of_a_class_is_scaled_to_the_sample(cut):
    model, _ = weak("gaussian_mixture")
    rows = bz.read_files(type(model), cut("gaussian_mixture", CUTS["two"]))
    tree = bz.fit(type(model), rows, "map", seed=1)
    assert Fit(tree).model == model
    assert "priors are scaled to the data" in Fit(tree).notes


def test_a_saved_fit_has_all_but_the_rows(cut, tmp_path):
    model, _ = weak("multinomial_mixture")
    rows = bz.read_files(model, cut("multinomial_mixture", CUTS["two"]))
    bz.save(bz.fit(model, rows, "vb", seed=1), tmp_path / "fit.nc")
    fit = Fit(bz.load(tmp_path / "fit.nc"))
    assert (fit.tree.attrs["data_rows"], fit.tree.attrs["status"]) == (ROWS, "caution")
    assert fit.failed == ["distance_to_posterior"]  # which needs the rows
    assert fit.like["word"].tolist() == ["x", "y", "z"]
    assert fit.notes[-1] == "600 rows in 2 files, each kept where it was read"
    with raises(bz.InputError, "needs_rows", "600"):
        bz.assign(fit.tree)
    assert len(bz.assign(fit.tree, FRAMES["multinomial_mixture"].iloc[:3])) == 3


def test_states_of_other_sequences_are_decoded(cut):
    model, _ = weak("hmm_gaussian")
    tree = bz.fit(model, bz.read_files(model, cut("hmm_gaussian", CUTS["two"])), "em", seed=1)
    new = FRAMES["hmm_gaussian"].iloc[:30]
    high = int(np.argmax(tree["posterior"]["means"].to_numpy().ravel())) + 1
    assert ((bz.decode(tree, new)["viterbi"] == high).to_numpy() == (STATE[:30] == 1)).all()


def test_progress_of_reading_is_shown(cut):
    class Keeping(Reporter):
        seen = ()

        def progress(self, what, done, total):
            self.seen = (*self.seen, (what, done, total))

    reporter = Keeping()
    bz.read_files(bz.find("student_t"), cut("student_t", CUTS["five"]), reporter=reporter)
    assert reporter.seen == tuple(("files", done, 5) for done in range(1, 6))


def test_what_is_said_of_files_is_not_taken_for_what_is_said_of_all_rows(cut):
    rows = bz.read_files(bz.find("hmm_gaussian"), cut("hmm_gaussian", CUTS["two"]))
    assert rows.notes[0] == "in each file: column 'sequence' names 10 sequences, of 30 rows each"
    rows = bz.read_files(bz.find("hmm_gaussian"), cut("hmm_gaussian", [60, 120]))
    assert rows.notes[:2] == (
        "in 2 of 3 files: column 'sequence' names 2 sequences, of 30 rows each",
        "in 1 of 3 files: column 'sequence' names 16 sequences, of 30 rows each",
    )


# What is refused, in one line


def refused(name, pattern, **options):
    with pytest.raises(bz.InputError) as refusal:
        bz.read_files(bz.find(name), pattern, **options)
    return str(refusal.value)


def test_a_file_that_does_not_fit_is_named(cut):
    pattern = cut("gaussian_mixture", CUTS["two"])
    with open(pattern.replace("*", "part01"), "a") as file:
        file.write("oops,1\n")
    assert refused("gaussian_mixture", pattern).startswith("part01.csv: column 'a', row 301: 'oops' is not a number")
    FRAMES["gaussian_mixture"].iloc[:0].to_csv(pattern.replace("*", "part01"), index=False)
    assert refused("gaussian_mixture", pattern).startswith("no data rows in part01.csv")
    FRAMES["gaussian_mixture"].rename(columns={"b": "c"}).to_csv(pattern.replace("*", "part01"), index=False)
    said = "part01.csv has other labels, columns or types than part00.csv"
    assert refused("gaussian_mixture", pattern).startswith(said)


def test_labels_that_differ_between_files_must_be_named(cut):
    frame = FRAMES["hmm_categorical"].copy()
    frame.loc[300:, "y"] = np.where(frame.loc[300:, "y"] == "a", "d", frame.loc[300:, "y"])
    pattern = cut("hmm_categorical", [300], frame)
    assert refused("hmm_categorical", pattern).endswith("; name the labels of all files with --symbols")
    rows = bz.read_files(bz.find("hmm_categorical"), pattern, symbols=["a", "b", "c", "d"])
    data = bz.read(bz.find("hmm_categorical"), frame, symbols=["a", "b", "c", "d"])
    assert rows.sample == data


def test_a_sequence_or_document_in_two_files_is_refused(cut):
    said = refused("hmm_gaussian", cut("hmm_gaussian", [310]))
    assert said == "part01.csv: sequence 's10' is in part00.csv too; put all rows of a sequence into one file"
    without = cut("hmm_gaussian", [200, 400], FRAMES["hmm_gaussian"][["y"]])
    assert refused("hmm_gaussian", without).startswith("without a column of sequences the rows are one sequence")
    words = pd.DataFrame({"document": np.arange(ROWS) // 4, "word": np.tile(["x", "y", "z"], 200), "count": 1})
    said = refused("multinomial_mixture", cut("multinomial_mixture", [302], words))
    assert said == "part01.csv: document '75' is in part00.csv too; put all rows of a document into one file"


def test_what_needs_all_rows_is_refused(cut):
    pattern = cut("gaussian_mixture", CUTS["two"])
    assert refused("gaussian_mixture", pattern, scale=True) == "--scale needs all rows together; leave it out"
    said = "normal_means has no E-step that adds up over files: each group has its own parameters"
    assert said in refused("normal_means", pattern)
    assert refused("ridge", pattern) == "ridge needs no rows, only their statistics; use bz.accumulate"
    assert "logistic_regression has no E-step that adds up" in refused("logistic_regression", pattern)
    model, _ = weak("gaussian_mixture")
    rows = bz.read_files(model, pattern)
    with raises(bz.InputError, "needs_rows", "nuts", "em", "vb", "map", "mle", "files"):
        bz.fit(model, rows, "nuts")
    with raises(bz.InputError, "wrong_statistics", "gaussian_mixture", "student_t"):
        bz.fit(bz.find("student_t")(), rows, "em")
    with raises(bz.InputError, "needs_rows", "files"):
        bz.select([model], rows)


def test_the_command_says_what_rows_in_files_are_not_for(run, cut):
    pattern = cut("gaussian_mixture", CUTS["two"])
    for words, said in (
        (("gaussian_mixture", pattern, "--dask", "local"), "nuts needs all rows at once"),
        (("gaussian_mixture", pattern, "--dask", "local", "--method", "em", "--chunk-rows", "9"), "keeps no rows"),
        (("normal_means", pattern, "--dask", "local", "--method", "mle"), "each group has its own parameters"),
    ):
        code, _, err = run("fit", *words)
        assert code == 2
        assert said in err


# A cluster of two processes


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMES)
def test_the_cluster_gives_what_this_machine_gives(client, cut, name):
    model, _ = weak(name)
    pattern = cut(name, CUTS["five"])
    here, there = (bz.read_files(model, pattern, client=c) for c in (None, client))
    assert (here.digest, here.stream, here.notes) == (there.digest, there.stream, there.notes)
    for method in ("map", "vb"):
        alone, tree = (bz.fit(model, rows, method, seed=1) for rows in (here, there))
        for parameter, values in alone["posterior"].items():
            np.testing.assert_array_equal(tree["posterior"][parameter], values)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian_mixture", "lda"])
def test_a_worker_that_is_killed_in_a_fit_loses_nothing(client, cut, name):
    model, data = weak(name)

    class Killing(Reporter):
        """Kills a worker, with the rows that it holds, when some climbs have begun."""

        killed = 0

        def progress(self, what, done, total):
            if what.startswith("looking for modes, starts") and done == 2 and not self.killed:
                self.killed = next(iter(client.run(os.getpid).values()))
                os.kill(self.killed, signal.SIGKILL)

    rows, reporter = bz.read_files(model, cut(name, CUTS["five"]), client=client), Killing()
    tree = bz.fit(model, rows, "em", seed=1, restarts=4, reporter=reporter)
    client.wait_for_workers(2, timeout=60)
    assert reporter.killed not in client.run(os.getpid).values()
    assert_same_fit(tree, bz.fit(model, data, "em", seed=1, restarts=4))


@pytest.mark.slow
def test_the_cluster_names_the_file_and_the_row(client, cut):
    pattern = cut("gaussian_mixture", CUTS["two"])
    with open(pattern.replace("*", "part01"), "a") as file:
        file.write("oops,1\n")
    assert refused("gaussian_mixture", pattern, client=client) == refused("gaussian_mixture", pattern)


@pytest.mark.slow
def test_the_command_fits_rows_on_a_cluster(client, cut, run):
    pattern = cut("gaussian_mixture", CUTS["five"])
    for method in ("em", "vb"):
        words = ("--method", method, "--seed", "1", "--json")
        code, out, err = run("fit", "gaussian_mixture", pattern, *words, "--dask", client.scheduler.address)
        assert (code, "600 rows in 5 files, each kept where it was read" in err) == (0, True), err
        alone = bz.fit(bz.find("gaussian_mixture"), FRAMES["gaussian_mixture"], method, seed=1)
        fact = {"em": "log_likelihood", "vb": "elbo"}[method]
        assert json.loads(out)["facts"][fact] == pytest.approx(Fit(alone).facts[fact], rel=1e-10)


def test_what_is_no_model_is_refused():
    with raises(bz.InputError, "not_a_model"):
        bz.read_files(3, "parts/*.parquet")
