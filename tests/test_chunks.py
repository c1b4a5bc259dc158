"""A file in chunks is the file at once: the same statistics, refusals and rows, in memory that the chunk bounds."""

import json
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out
from bayeszoo.data.inputs import Counts
from bayeszoo.data.table import vectorized
from bayeszoo.model.parts.accumulated import arrays_of
from bayeszoo.model.parts.chunks import Digest
from bayeszoo.results.stored import Fit
from tests.reading import Opaque
from tests.refusals import raises

RNG = np.random.default_rng(0)
ROWS = 1000
X = RNG.normal(size=(ROWS, 3)) * [1, 10, 0.1] + [0, 500, 3]
OUTCOME = 2 + X @ [1.0, -0.2, 4.0] + RNG.normal(size=ROWS)
FRAMES = {
    "ridge": pd.DataFrame(np.column_stack([OUTCOME, X]), columns=["y", "a", "b", "c"]),
    "linear_regression": pd.DataFrame(np.column_stack([OUTCOME, X]), columns=["y", "a", "b", "c"]),
    "gamma_poisson": pd.DataFrame({"y": RNG.poisson(3, ROWS), "exposure": RNG.uniform(0.5, 2, ROWS)}),
    "gaussian_mean": pd.DataFrame({"y": RNG.normal(1e6, 2, ROWS)}),
    "gaussian_precision": pd.DataFrame({"y": RNG.normal(0, 2, ROWS)}),
    "normal_gamma": pd.DataFrame({"y": RNG.normal(1e6, 2, ROWS)}),
    "normal_inverse_wishart": pd.DataFrame(X[:, :2], columns=["u", "v"]),
    "beta_bernoulli": pd.DataFrame({"successes": RNG.integers(0, 3, ROWS), "trials": RNG.integers(2, 4, ROWS)}),
    "dirichlet_multinomial": pd.DataFrame({"vote": RNG.choice(["x", "y", "z"], ROWS)}),
    "markov_chain": pd.DataFrame({"from": RNG.choice(["x", "y"], ROWS), "to": RNG.choice(["x", "y"], ROWS)}),
}
OPTIONS = {"dirichlet_multinomial": {"categories": list("xyz")}, "markov_chain": {"symbols": ["x", "y"], "order": 1}}
FAMILIES = list(FRAMES)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Every family's table as a file."""
    folder = tmp_path_factory.mktemp("tables")
    for name, frame in FRAMES.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def read_at_once(files):
    """Every family's model with weak fields, and its data."""

    def read(name):
        data = bz.read(bz.find(name), files / f"{name}.csv", **OPTIONS.get(name, {}))
        return bz.find(name).weak(data), data

    return read


def total(files, model, rows, **options):
    return bz.accumulate(model, files / f"{model.name}.csv", rows, **OPTIONS.get(model.name, {}), **options)


# The same answers


@pytest.mark.parametrize("rows", [1, 7, 999, 1000, 5000])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_chunks_add_up_to_the_file(files, read_at_once, name, rows):
    model, data = read_at_once(name)
    stats, found = model.statistics(data), total(files, model, rows)
    assert found.rows == data.rows
    whole = model.log_evidence(stats)
    assert model.log_evidence(found.stats) == pytest.approx(whole, rel=1e-10, abs=1e-10)
    one, two = model.posterior(stats), model.posterior(found.stats)
    for parameter in one:
        np.testing.assert_allclose(two[parameter].mean(), one[parameter].mean(), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(two[parameter].std(), one[parameter].std(), rtol=1e-10)


def test_the_evidence_is_that_of_another_code(files):
    frame = FRAMES["ridge"]
    model = bz.find("ridge")(tau=2.0, sigma=1.5, s0=3.0, scale=[1.0, 10.0, 0.1], center=[0.0, 500.0, 3.0])
    design = np.column_stack([np.ones(ROWS), (X - np.array(model.center)) / np.array(model.scale)])
    cov = 1.5**2 * np.eye(ROWS) + design @ np.diag(np.square([3.0, 2, 2, 2])) @ design.T
    expected = scipy.stats.multivariate_normal(np.zeros(ROWS), cov).logpdf(frame["y"])
    tree = bz.fit(model, bz.accumulate(model, files / "ridge.csv", 64), "exact", seed=1)
    assert tree["exact"].attrs["log_evidence"] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_digest_is_that_of_the_rows_not_of_the_chunks(files, read_at_once, name):
    model, data = read_at_once(name)
    digests = {total(files, model, rows).digest for rows in (1, 7, 1000, 10**6)}
    at_once = Digest(model.inputs)
    at_once.update(data)
    assert digests == {at_once.hexdigest()}
    halves = Digest(model.inputs)
    for part in reversed(model.inputs.split(data, 400)):
        halves.update(part)
    assert halves.hexdigest() not in digests


def test_the_digest_does_not_depend_on_the_file(tmp_path, files):
    model = bz.find("ridge")()
    path = tmp_path / "ridge.parquet"
    pq.write_table(pa.Table.from_pandas(FRAMES["ridge"]), path, 130)
    assert {bz.accumulate(model, path, rows).digest for rows in (7, 256, 10**5)} == {total(files, model, 64).digest}


# Notes


def test_what_is_said_of_every_chunk_is_said_once_and_of_a_single_one_not(written):
    path = written("u,v\n7,1\n7,1\n8,1\n9,1\n")
    found = bz.accumulate(bz.find("normal_inverse_wishart")(), path, 2)
    kept = "4 rows in 2 chunks: their statistics were kept, the rows were not"
    assert found.notes == ("column 'v' is constant", "in some chunks: column 'u' is constant", kept)


@pytest.mark.parametrize(("several", "more"), [(5, ()), (6, ("and 1 more note of some chunks",)), (7, None)])
def test_a_handful_of_notes_of_some_chunks_are_said(written, several, more):
    names = [f"c{i}" for i in range(several)]
    rows = [range(several), range(several), range(several), range(1, several + 1)]
    path = written("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    found = bz.accumulate(bz.find("normal_inverse_wishart")(nu0=9.0, Psi0=np.eye(several)), path, 2)
    some = tuple(f"in some chunks: column '{name}' is constant" for name in names[:5])
    assert found.notes[:-1] == some + (("and 2 more notes of some chunks",) if more is None else more)


def test_rows_that_were_dropped_are_added_up_over_the_chunks(written):
    path = written("u,v\n7,1\nNA,2\n8,1\n9,NA\n5,NA\n6,3\n2,2\n3,1\n4,NA\n1,2\n3,NA\n,1\n")
    found = bz.accumulate(bz.find("normal_inverse_wishart")(), path, 3, missing="drop")
    assert "6 rows with missing values dropped (rows 2, 4, 5, 9, 11, ...)" in found.notes
    assert found.rows == 6


# Memory


def peak(action):
    """Most bytes that a call holds at a time."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_is_that_of_a_chunk_whatever_the_file(tmp_path, monkeypatch):
    lines = "\n".join(",".join(f"{v:.9f}" for v in row) for row in np.random.default_rng(1).normal(size=(5000, 4)))
    model, paths = bz.find("ridge")(), [tmp_path / "small.csv", tmp_path / "large.csv"]
    for path, times in zip(paths, (1, 10), strict=True):
        path.write_text("y,a,b,c\n" + (lines + "\n") * times)
    small, large = (peak(lambda path=path: bz.accumulate(model, path, 1000)) for path in paths)
    assert large < 1.1 * small < paths[1].stat().st_size
    default, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    monkeypatch.setattr(vectorized, "SMALLEST", 0)
    pa.set_memory_pool(pool)
    bz.accumulate(model, paths[1], 1000)
    pa.set_memory_pool(default)
    assert 0 < pool.max_memory() < paths[1].stat().st_size / 2  # of what the figure above does not see
    monkeypatch.setattr(vectorized, "SMALLEST", 10**9)
    at_once = [peak(lambda path=path: bz.accumulate(model, path, 50_000)) for path in paths]
    assert at_once[1] > 5 * at_once[0]  # the figure sees what is held


# Fits


@pytest.fixture
def same_stream(monkeypatch):
    """Rows and their statistics have digests, and so streams, of their own; here their draws are compared."""
    monkeypatch.setattr(sys.modules["bayeszoo.fit"], "stream", lambda seed, *_: np.random.default_rng(seed))


FITTED = ["ridge", "linear_regression", "gamma_poisson", "gaussian_mean", "normal_gamma", "beta_bernoulli"]


def fits(files, read_at_once, name, method, **options):
    model, data = read_at_once(name)
    return [bz.fit(model, one, method, seed=1, **options) for one in (data, total(files, model, 90))]


@pytest.mark.parametrize("method", ["exact", "map", "mle"])
@pytest.mark.parametrize("name", FITTED)
@pytest.mark.usefixtures("same_stream")
def test_closed_forms_from_statistics_are_those_from_rows(files, read_at_once, name, method):
    one, two = fits(files, read_at_once, name, method)
    assert one.attrs["status"] == two.attrs["status"] == "ok"
    for parameter, draws in one["posterior"].data_vars.items():
        np.testing.assert_allclose(two["posterior"][parameter], draws, rtol=1e-8, atol=1e-9)
    facts, others = Fit(one).facts, Fit(two).facts
    assert facts.keys() == others.keys()
    for fact in facts.keys() & {"log_likelihood", "log_joint", "log_evidence"}:
        assert others[fact] == pytest.approx(facts[fact], rel=1e-8)


@pytest.mark.usefixtures("same_stream")
@pytest.mark.parametrize("method", ["laplace", "advi"])
def test_approximations_from_statistics_are_those_from_rows(files, read_at_once, method):
    one, two = fits(files, read_at_once, "gamma_poisson", method)
    np.testing.assert_allclose(two["posterior"]["rate"], one["posterior"]["rate"], rtol=1e-6)


def test_one_pass_serves_every_prior_with_the_same_statistics(files):
    Ridge = bz.find("ridge")
    found = total(files, Ridge(), 300)
    evidence = bz.fit(Ridge(tau=10.0), found, "exact", seed=1)["exact"].attrs["log_evidence"]
    data = bz.read(Ridge, files / "ridge.csv")
    assert evidence == pytest.approx(Ridge(tau=10.0).log_evidence(Ridge(tau=10.0).statistics(data)), rel=1e-10)
    other = bz.fit(bz.find("linear_regression")(), found, "exact", seed=1)
    assert other.attrs["data_digest"] == found.digest


OTHERS = [{"center": 1.0}, {"scale": [1, 2, 3]}, {"features": ["a"]}, {"degree": 2}]


@pytest.mark.parametrize("fields", OTHERS, ids=lambda fields: next(iter(fields)))
def test_statistics_of_another_design_are_refused(files, fields):
    Ridge = bz.find("ridge")
    with raises(bz.InputError, "wrong_statistics", "ridge"):
        bz.fit(Ridge(**fields), total(files, Ridge(), 300), "exact")
    with raises(bz.InputError, "wrong_statistics", "ridge", "normal_gamma"):
        bz.fit(bz.find("normal_gamma")(), total(files, Ridge(), 300), "exact")


def test_a_model_without_statistics(files):
    with raises(bz.InputError, "no_statistics"):
        bz.accumulate(Opaque(), files / "gaussian_mean.csv")
    model = bz.find("gaussian_mean")()
    with raises(bz.InputError, "no_statistics"):
        bz.fit(Opaque(), total(files, model, 100), "nuts")


# Trees


@pytest.mark.parametrize("name", FAMILIES)
def test_a_fit_from_statistics_goes_to_disk_and_predicts(files, read_at_once, tmp_path, name):
    model, data = read_at_once(name)
    tree = bz.load(bz.save(bz.fit(model, total(files, model, 90), "exact", seed=1), tmp_path / "fit.nc"))
    assert not {"observed_data", "constant_data"} & set(tree.children)
    known = {"data_rows": 1000, "data_from": "statistics", "data_source": f"{name}.csv"}
    assert {**tree.attrs, **known, "declared_from": "sufficient statistics"} == tree.attrs
    again, before = Fit(tree).observed, total(files, model, 90)
    notes = (*before.notes, *model.remarks(before.stats, before.like))
    assert (again.rows, again.digest, again.notes) == (before.rows, before.digest, notes)
    assert Fit(bz.fit(model, again, "exact", seed=1)).notes == list(notes)  # each once
    for field, values in arrays_of(before.stats).items():
        assert np.array_equal(arrays_of(again.stats)[field], values)
    rows = model.inputs.table(model.inputs.split(data, 12)[0])
    at_once = bz.predict(bz.fit(model, data, "exact", seed=1), rows)
    pd.testing.assert_frame_equal(bz.predict(tree, rows), at_once, rtol=1e-8)
    assert np.isfinite(at_once["log_score"]).all()
    assert again.stats.log_coefficient == before.stats.log_coefficient


def test_a_design_of_an_intercept_alone_is_stored(files, tmp_path):
    model = bz.find("ridge")(degree=0)
    tree = bz.load(bz.save(bz.fit(model, total(files, model, 90), "exact", seed=1), tmp_path / "fit.nc"))
    assert bz.predict(tree, FRAMES["ridge"][:2])["mean"].iloc[0] == pytest.approx(OUTCOME.mean(), rel=1e-3)


def test_statistics_that_were_changed_are_refused(files):
    model = bz.find("ridge")()
    tree = bz.fit(model, total(files, model, 90), "exact", seed=1)
    tree["statistics"]["n"] = tree["statistics"]["n"] + 1
    with raises(bz.InputError, "statistics_differ"):
        bz.predict(tree, FRAMES["ridge"][:2])


def test_what_needs_the_rows_says_that_there_are_none(files):
    model = bz.find("ridge")()
    found = total(files, model, 90)
    tree = bz.fit(model, found, "exact", seed=1)
    for use in (lambda tree: Fit(tree).data, lambda tree: bz.select([tree])):
        with raises(bz.InputError, "needs_rows"):
            use(tree)
    with raises(bz.InputError, "needs_rows"):
        bz.update(bz.find("linear_regression")(), found)
    draws = Fit(tree).draws()
    for refused, more in ((leave_out.closed_form, ()), (leave_out.psis, (draws,)), (leave_out.k_fold, (10, 1, None))):
        with raises(leave_out.NoScore, "needs_rows", "1000"):
            refused(model, found, *more)


def test_fits_from_statistics_are_compared_without_leave_one_out_scores(files):
    model = bz.find("ridge")()
    table = bz.compare(model, total(files, model, 90), ["exact", "map"], seed=1)
    assert table["loo_score"].isna().all()
    assert table["log_evidence"].notna().any()
    trees = [bz.fit(model, given, "exact", seed=1) for given in (total(files, model, 90), total(files, model, 7))]
    assert len(bz.compare(trees)) == 8
    rows = bz.fit(model, bz.read(model, files / "ridge.csv"), "exact", seed=1)
    assert (rows.attrs["data_rows"], rows.attrs["data_from"]) == (1000, "rows")
    with raises(bz.InputError, "not_comparable"):
        bz.compare([rows, trees[0]])


# The command line


def test_the_command_line_fits_in_chunks(run, files, tmp_path):
    path, fit = files / "ridge.csv", tmp_path / "fit.nc"
    code, out, err = run("fit", "ridge", path, "--method", "exact", "--chunk-rows", 400, "--json", "-o", fit)
    assert code == 0
    assert "ridge.csv: 800 rows read, 800 kept" in err
    assert "priors are scaled to rows 1 to 400, and so is the log evidence" in err
    document = json.loads(out)
    assert "priors are scaled to rows 1 to 400" in document["notes"]
    model = bz.find("ridge").weak(next(bz.read_chunks(bz.find("ridge"), path, 400)))
    data = bz.read(model, path)
    assert document["log_evidence"] == pytest.approx(model.log_evidence(model.statistics(data)), rel=1e-10)


def test_the_command_line_with_a_prior_of_its_own(run, files):
    arguments = ["fit", "gaussian_mean", files / "gaussian_mean.csv", "--method", "map"]
    code, _, err = run(*arguments, "--prior", "textbook", "--chunk-rows", 300)
    assert (code, "scaled" in err) == (0, False)
    assert "note: 1000 rows in 4 chunks: their statistics were kept, the rows were not" in err
    assert "priors are scaled to the data, and so is the log evidence" in run(*arguments, "--chunk-rows", 3000)[2]


def test_chunks_go_with_a_file_whose_first_rows_that_say_anything_scale_the_prior(run, written):
    for arguments in ([], ["--example", "diabetes"]):
        code, _, err = run("fit", "ridge", "--method", "exact", "--chunk-rows", 10, *arguments)
        assert (code, "--chunk-rows goes with DATA" in err) == (2, True)
    path = written("y\n" + "NA\n" * 5 + "3\n4\n5\n6\n", "late.csv")
    code, _, err = run("fit", "normal_gamma", path, "--method", "exact", "--missing", "drop", "--chunk-rows", 2)
    assert (code, "priors are scaled to rows 5 to 6" in err) == (0, True)


def test_counts_are_repeated_in_chunks(written):
    path = written("deaths,n\n0,109\n1,65\n2,22\n3,3\n4,1\n", "kicks.csv")
    assert isinstance(bz.find("gamma_poisson").inputs, Counts)
    found = [bz.accumulate(bz.find("gamma_poisson")(), path, rows, column="deaths", count="n") for rows in (1, 2, 5)]
    assert {(one.rows, one.stats.events, one.digest) for one in found} == {(200, 122.0, found[0].digest)}
