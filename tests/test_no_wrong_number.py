"""Wrong numbers with status ok that a hostile user has found stay fixed."""

import io
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import bayeszoo as bz
from bayeszoo.comparison.compare import Withheld, fit_each, usual_methods
from bayeszoo.compile.density import Density
from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import check_draws
from bayeszoo.foundation.numerics import optimize
from bayeszoo.foundation.numerics.optimize import maximize
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document
from tests.refusals import raises

BetaBernoulli, GaussianMean = map(bz.find, ("beta_bernoulli", "gaussian_mean"))
GaussianPrecision, NormalGamma = map(bz.find, ("gaussian_precision", "normal_gamma"))

YES_NO = {"won": ["yes", "no", "yes", "yes"]}


@pytest.fixture(scope="module")
def coin():
    return bz.fit(BetaBernoulli(), bz.read(BetaBernoulli, YES_NO, positive="yes"), method="exact", seed=1)


# What a fit was read with is what new rows are read with


def test_labels_of_new_rows_mean_what_they_mean_in_the_fit(coin, tmp_path):
    bz.save(coin, tmp_path / "coin.nc")
    for tree in (coin, bz.load(tmp_path / "coin.nc")):
        for rows, observed in ((["no"], [0]), (["no", "yes"], [0, 1]), ([0, 1], [0, 1])):
            frame = bz.predict(tree, {"won": rows, "y": [1] * len(rows)})
            assert frame["observed"].tolist() == observed
            assert frame["log_score"].to_numpy() == pytest.approx(np.log([[2 / 6, 4 / 6][one] for one in observed]))
    assert bz.predict(coin, {"won": ["no"]}, positive="yes")["observed"].tolist() == [0]


@pytest.mark.parametrize(
    ("rows", "positive"), [(["no"], "no"), (["no", "yes"], "no"), (["maybe", "yes"], "yes"), (["ja", "nein"], "ja")]
)
def test_labels_of_new_rows_that_mean_something_else_are_refused(coin, rows, positive):
    with raises(InputError, "same_words_needed", "0", "'yes'", "1", "positive"):
        bz.predict(coin, {"won": rows}, positive=positive)
    with raises(InputError, "same_words_needed", "0", "'yes'", "1", "positive"):
        bz.predict(coin, bz.read(BetaBernoulli, {"won": rows}, positive=positive))


def test_new_trials_may_lack_successes(coin):
    rows = bz.read(BetaBernoulli, {"trials": [10, None, 100]}, new=True, missing="drop")
    assert bz.predict(coin, rows)["mean"].to_dict() == pytest.approx({1: 20 / 3, 3: 200 / 3})


def test_batches_of_opposite_labels_are_not_pooled():
    batches = [([1, 0, 1], {}), (["no", "yes"], {"positive": "yes"}), (["yes"], {"positive": "yes"})]
    model = BetaBernoulli()
    for batch, options in batches:
        model = bz.update(model, batch, **options)
    assert str(model) == str(BetaBernoulli(a=5, b=3))
    for batch, label in ((["no", "yes"], "no"), (["no"], "no"), (["yes", "maybe"], "yes"), ([0, 1], "0")):
        with raises(InputError, "same_words_needed"):
            bz.update(model, batch, positive=label)
    assert str(bz.update(model, [0, 1])) == str(BetaBernoulli(a=6, b=4))


# Rows are called by their numbers in the file


def test_rows_keep_the_numbers_that_they_have_in_the_file(tmp_path):
    values = np.array([0.1, np.nan, -0.2, 9.0, np.nan, 0.4])
    pd.DataFrame({"y": values}).to_csv(tmp_path / "y.csv", index=False)
    data = bz.read(GaussianMean, tmp_path / "y.csv", missing="drop")
    tree = bz.fit(GaussianMean(), data, method="exact", seed=1)
    bz.save(tree, tmp_path / "y.nc")
    for one in (tree, bz.load(tmp_path / "y.nc")):
        frame = bz.residuals(one)
        assert frame.index.tolist() == [1, 3, 4, 6]
        assert frame["normal_score"].abs().idxmax() == 4
        assert bz.predict(one, tmp_path / "y.csv", missing="drop").index.tolist() == [1, 3, 4, 6]
    assert tree["log_likelihood"]["row"].to_numpy().tolist() == [1, 3, 4, 6]


# What is shown, and what is not


def test_the_worst_row_of_a_binary_outcome_is_the_least_probable():
    from bayeszoo.cli.verbs.answers.residuals import worst_rows

    y = np.zeros(30, dtype=int)
    y[[4, 11, 17, 20, 28]] = 1
    tree = bz.fit(BetaBernoulli(), y, method="exact", seed=1)
    for seed in range(5):
        worst = worst_rows(bz.residuals(tree, seed=seed), 6)
        assert worst.index[:5].tolist() == [5, 12, 18, 21, 29]
        assert worst["log_tail"].iloc[0] == pytest.approx(math.log(5 / 31))  # without the row: Beta(5, 26)
        assert worst["deviance"].iloc[0] == pytest.approx(math.sqrt(-2 * math.log(6 / 32)))  # of all rows: Beta(6, 26)


def test_no_fact_of_a_fit_that_failed_gives_the_elbo_away(coin):
    failed = coin.copy()
    failed.attrs |= {"status": "failed", "facts": '{"elbo": -1.5, "maxima": [-1.5, -2.0], "restarts": 2}'}
    assert document(Fit(failed))["facts"] == {"maxima": [None, None], "restarts": 2}


# Closed forms at the ends of what a double can hold


ENDS = {
    "small alpha": (bz.find("dirichlet_multinomial")(alpha=1e-3), ["a", "a", "b"], {"categories": "a,b,c"}),
    "large counts": (bz.find("dirichlet_multinomial")(), {"a": [10**12], "b": [5], "c": [0]}, {}),
    "chain": (bz.find("markov_chain")(alpha=1e-3), list("aababab"), {"symbols": "a,b,c"}),
}


@pytest.mark.parametrize(("model", "rows", "options"), ENDS.values(), ids=ENDS)
def test_a_quantile_beyond_the_doubles_withholds_nothing(model, rows, options):
    tree = bz.fit(model, bz.read(model, rows, **options), method="exact", seed=1)
    assert tree.attrs["status"] == "ok"
    name = next(iter(tree["exact"].data_vars))
    quantile = tree["exact"][name].sel(statistic="q025").to_numpy()
    assert np.all((quantile == 0) | (quantile > 1e-307))


def test_an_interval_finer_than_the_doubles_is_withheld():
    tree = bz.fit(GaussianMean(m0=1e15), 1e15 + np.array([1.0, 2.0, -1.0]), method="exact", seed=1)
    assert tree.attrs["status"] == "failed"


# Moments that do not exist


def sampled(draws):
    """A fit by a sampler that passed its gate, with these draws."""
    tree = bz.fit(GaussianMean(), [0.0, 1.0], method="exact", seed=1, groups=[])
    del tree["exact"]
    tree["posterior"] = xr.DataTree(xr.Dataset({"mu": (("chain", "draw"), draws)}))
    tree.attrs |= {"kind": "sampled", "method": "nuts"}
    return tree


TAILS = {
    "cauchy": (stats.cauchy(), set()),
    "t, 1.1": (stats.t(1.1), set()),
    "t, 1.7": (stats.t(1.7), {"mean"}),
    "t, 2.2": (stats.t(2.2), {"mean"}),
    "inverse gamma, 6 df": (stats.invgamma(3), {"mean", "mcse_mean", "sd"}),  # no fourth moment
    "inverse gamma, 16 df": (stats.invgamma(8), {"mean", "mcse_mean", "sd", "mcse_sd"}),
    "gamma": (stats.gamma(0.3), {"mean", "mcse_mean", "sd", "mcse_sd"}),
    "normal": (stats.norm(1e9), {"mean", "mcse_mean", "sd", "mcse_sd"}),
    "counts": (stats.poisson(0.01), {"mean", "mcse_mean", "sd", "mcse_sd"}),
}


@pytest.mark.parametrize(("law", "given"), TAILS.values(), ids=TAILS)
def test_moments_are_withheld_where_the_tails_say_that_there_are_none(law, given):
    even = law.ppf((np.arange(4000) + 0.5) / 4000)
    tree = sampled(np.random.default_rng(3).permutation(even).reshape(4, 1000))
    found = bz.summarize(tree)["mu"]
    assert {name for name in ("mean", "mcse_mean", "sd", "mcse_sd") if np.isfinite(found[name])} == given
    assert np.isfinite([found[name] for name in ("q025", "median", "q975", "mcse_median")]).all()
    assert bool(document(Fit(tree))["notes"]) == ("mcse_sd" not in given)


# One line and a code where there was a crash


def write(folder, text):
    (folder / "rows.csv").write_text(text)
    return folder / "rows.csv"


@pytest.mark.parametrize(
    ("text", "words", "ends"),
    [
        ("y\n1\n2\n", ("gaussian_mean", "--method", "nuts", "--tune", "0"), (2, "one draw of warmup")),
        ("x,y\n1,2\n", ("linear_regression", "--method", "map"), (0, "")),
        ("x,y\n1e-310,2e-3\n2e-3,1e-3\n", ("robust_regression", "--method", "mle"), (2, "is too small")),
    ],
    ids=["no warmup", "one row", "subnormal"],
)
def test_awkward_requests_end_in_a_line(run, tmp_path, text, words, ends):
    code, _, err = run("fit", words[0], str(write(tmp_path, text)), *words[1:])
    assert code == ends[0]
    assert ends[1] in err
    assert "bug" not in err


def test_a_climb_turns_back_where_a_parameter_leaves_its_range():
    def gradient(x):
        inside = x[0] < 1
        return (-0.5 * float(x[0] ** 2), -x) if inside else (-math.inf, np.full(1, np.nan))

    assert maximize(gradient, np.array([-40.0])).x == pytest.approx(0, abs=1e-6)


def test_of_two_fits_with_one_name_the_second_is_refused(coin, tmp_path, monkeypatch):
    from bayeszoo.results import files

    path, probe = tmp_path / "coin.nc", files.probe
    bz.save(coin, path)
    before = path.read_bytes()
    monkeypatch.setattr(files, "probe", lambda path, overwrite=False: probe(path, True))  # both began at once
    with raises(InputError, "not_writable"):
        bz.save(coin, path)
    assert path.read_bytes() == before
    bz.save(coin, path, overwrite=True)


def test_a_writer_that_is_missing_is_found_before_the_run(tmp_path, monkeypatch):
    from bayeszoo.results import files

    monkeypatch.setattr(files, "ENGINE", "h5netcdf_of_another_age")
    with raises(InputError, "missing_package"):
        files.probe(tmp_path / "coin.nc")


def test_a_reader_that_leaves_early_is_no_bug(monkeypatch):
    from bayeszoo.cli import terminal

    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    with pytest.raises(BrokenPipeError):
        terminal.out().print("one line")


def test_units_may_be_declared_without_weak_defaults():
    from bayeszoo.contract.identities import weak_units

    class Textbook(GaussianMean):
        weak = classmethod(lambda cls, data: cls())

    data = {"y": 3 + np.random.default_rng(4).normal(size=7)}
    assert all(weak_units(SimpleNamespace(model=kind(), data=data)).passed for kind in (Textbook, GaussianMean))


def test_a_saved_fit_does_not_say_where_its_files_were(run, tmp_path):
    words = ["fit", "gaussian_mean", str(write(tmp_path, "y\n1\n2\n")), "--method", "exact", f"-o={tmp_path}/y.nc"]
    assert run(*words)[0] == 0
    attrs = bz.load(tmp_path / "y.nc").attrs
    assert attrs["command"] == "fit gaussian_mean rows.csv --method exact -o=y.nc"
    assert "priors are scaled to the data" in attrs["notes"]


# Chains and tables that only look sound


@pytest.mark.parametrize("noise", [0, 1e-12])
@pytest.mark.parametrize("shift", [0, 1, 7])
def test_copied_chains_do_not_pass(shift, noise):
    rng = np.random.default_rng(1)
    draws = rng.normal(5, 1, (4, 1000))
    draws[2] = np.roll(draws[0], shift) + noise * rng.normal(size=1000)
    draws[2, :shift] = rng.normal(5, 1, shift)
    checks = {check.name: check for check in check_draws({"mu": draws})}
    assert (checks["repeated_chains"].value, checks["repeated_chains"].passed) == (1, False)
    draws[2] = rng.normal(5, 1, 1000)
    assert all(check.passed for check in check_draws({"mu": draws}))


def test_a_constant_column_of_a_matrix_is_said():
    rows = {"a": [1.0, 2.0, 4.0], "b": [3.0, 3.0, 3.0], "c": [0.0, 1.0, 5.0]}
    assert "column 'b' is constant" in bz.read(bz.find("ppca"), rows).notes


def test_what_would_not_fit_into_memory_is_refused():
    Wishart = bz.find("normal_inverse_wishart")
    rows = bz.read(Wishart, np.random.default_rng(0).normal(size=(3, 40)))
    with raises(InputError, "not_writable", "400,000", "1,640", "5.2"):
        bz.fit(Wishart.weak(rows), rows, method="exact", seed=1, draws=100_000)
    with raises(InputError, "not_writable", "20,000", "3.2"):
        Wishart.weak({"Y": np.zeros((3, 20_000))})


# Matrices of many numbers are refused before anything is compiled

MODEL = bz.find("robust_regression")


@pytest.fixture
def few(monkeypatch):
    """A limit that five coordinates exceed, and no way to compile."""

    def compiled(*_, **__):
        raise AssertionError("compiled")

    monkeypatch.setattr(optimize, "MOST_COORDINATES", 4)
    for name in ("joint", "constrained_joint"):
        monkeypatch.setattr(Density, name, property(compiled))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return bz.read(MODEL, (rng.normal(size=(20, 3)), rng.normal(size=20)))


@pytest.mark.parametrize("method", ["laplace", "advi", "fullrank_advi", "map"])
def test_too_many_coordinates_are_refused_in_one_line(few, data, method):
    with raises(bz.NumericalError, "too_large", "5", "4", "gibbs"):
        bz.fit(MODEL.weak(data), data, method, seed=1)
    (found,) = fit_each(MODEL.weak(data), data, [method], seed=1)  # a comparison goes on without it
    assert isinstance(found, Withheld)


def test_of_samplers_the_usual_one_is_that_made_for_the_model():
    assert usual_methods(bz.find("lda"))[-1] == "gibbs"
    assert "nuts" not in usual_methods(bz.find("lda"))
    assert usual_methods(bz.find("beta_bernoulli")) == ["exact", "map", "laplace", "advi", "nuts"]


def test_a_seed_that_was_drawn_is_said_and_gives_the_same_again(run, written):
    path = written("y\n1\n0\n1\n1\n", "y.csv")
    code, first, err = run("compare", "beta_bernoulli", path, "--methods", "map,laplace", "--json")
    assert (code, "seed" in err) == (0, False)  # it is in the document
    code, first, err = run("compare", "beta_bernoulli", path, "--methods", "map,laplace")
    seed = re.search(r"seed (\d+), drawn at random", err).group(1)
    code, again, err = run("compare", "beta_bernoulli", path, "--methods", "map,laplace", "--seed", seed)
    assert (code, "seed" in err) == (0, False)
    estimates = [[line for line in out.splitlines() if line.startswith(" theta")] for out in (first, again)]
    assert len(estimates[0]) == 2
    assert estimates[0] == estimates[1]


@pytest.mark.parametrize(("mode", "is_said"), [(0o755, False), (0o777, True), (0o1777, True), (0o775, False)])
def test_a_compile_folder_that_others_may_write_to_is_said(tmp_path, monkeypatch, mode, is_said):
    import os

    from bayeszoo.compile.cache import open_to_others

    tmp_path.chmod(mode)
    os.chown(tmp_path, -1, os.getegid())
    assert ("other users may write to the folder of compiled code" in open_to_others(tmp_path)) is is_said
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    owner_is_root = tmp_path.stat().st_uid == 0
    assert bool(open_to_others(tmp_path)) is (is_said or not owner_is_root)


@pytest.mark.parametrize(("mode", "is_said"), [(0o777, True), (0o1777, False), (0o755, False)])
def test_a_compile_folder_below_one_that_others_may_write_to_is_said(tmp_path, mode, is_said):
    from bayeszoo.compile.cache import open_to_others

    folder = tmp_path / "shared" / "mine" / "cache"
    folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "shared").chmod(mode)
    assert bool(open_to_others(folder)) is bool(open_to_others(tmp_path / "link")) is is_said
    (tmp_path / "shared").chmod(0o755)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "link").symlink_to(folder)
    (tmp_path / "theirs").chmod(mode)  # where others may put another link
    assert bool(open_to_others(tmp_path / "theirs" / "link")) is is_said
