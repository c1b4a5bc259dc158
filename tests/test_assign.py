"""Components of rows: averages by hand, labels of least loss, what is refused, and the command."""

import csv
import io
import json
import math
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.answers.averages import Average
from bayeszoo.answers.latent.assign import _of_new_rows, assign, assignments
from bayeszoo.answers.latent.assigned import Assignments, Latents
from bayeszoo.cli.saved import as_csv
from bayeszoo.data.inputs import Real
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.foundation.gate import at_most
from bayeszoo.inference.labels import align
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.results.assemble import assemble
from tests.quick import zoo_with
from tests.refusals import raises

module = sys.modules["bayeszoo.answers.latent.assign"]  # the package may export a function of that name
latent_models = zoo_with("latent_models")
Y = np.array([0, 1, 4, 5, 12, 30])


def poisson(K=2):
    return bz.find("toy_poisson_mixture")(K, 1.0, 1.0, 0.1)


def draws_of(rng, shape=(4, 100)):
    weights = rng.dirichlet([30.0, 20.0], shape)
    return {"weights": weights, "rates": np.array([2.0, 10.0]) * np.exp(0.2 * rng.normal(size=(*shape, 2)))}


def by_hand(params, y):
    """P(z = k) for each draw and row by Bayes' rule, in plain loops."""
    chains, draws, K = params["weights"].shape
    made = np.zeros((chains, draws, len(y), K))
    for c, d, n in np.ndindex(chains, draws, len(y)):
        w, rate = params["weights"][c, d], params["rates"][c, d]
        joint = [w[k] * math.exp(-rate[k]) * rate[k] ** int(y[n]) / math.factorial(y[n]) for k in range(K)]
        made[c, d, n] = np.array(joint) / math.fsum(joint)
    return made


def tree_of(params, y=Y, kind="exact", checks=None, K=None):
    model = poisson(K or params["weights"].shape[-1])
    problem = Problem(model, bz.read(model, y), np.random.default_rng(0))
    outcome = Outcome(params, "by hand", checks or [at_most("nothing", 0, 0)])
    return assemble(problem, outcome, {"method": "by hand", "kind": kind, "seed": 0}, {})


# Numbers


def test_further_rows_weigh_the_draws():
    """Each draw counts as much as the density that it gives the row: here of a latent number, by SciPy's Student t."""
    rng, y, nu = np.random.default_rng(3), np.array([0.4, 3.0]), 4.0
    params = {"mu": rng.normal(0, 1, (4, 500)), "lam": rng.gamma(8, 1 / 8, (4, 500))}
    mu, lam = (values[..., None] for values in params.values())
    density = stats.t.pdf(y, nu, mu, lam**-0.5)
    latent = (nu + 1) / (nu + lam * np.square(y - mu))
    expected = np.sum(density * latent, axis=(0, 1)) / np.sum(density, axis=(0, 1))
    model = bz.find("student_t")(nu=nu)
    found = _of_new_rows(model, params, bz.read(model, y))
    np.testing.assert_allclose(found.mean, expected, atol=1e-3)
    assert np.all(np.abs(latent.mean(axis=(0, 1)) - expected) > 4 * found.mcse)


def test_a_further_row_that_few_draws_carry_is_withheld():
    """Not so one whose component all draws agree on, however they are weighed."""
    rng = np.random.default_rng(4)
    p = np.stack([rng.uniform(0, 1, (4, 500, 2)), rng.uniform(0.995, 1, (4, 500, 2))], axis=2)[..., 0]
    held = np.stack([p, 1 - p], axis=-1)
    weights = Average("sampled").without(-8 * rng.standard_t(2, (4, 500, 2)))
    assert not weights.is_known.any()
    known, _ = Assignments.of_weighed(held, weights)
    assert known.is_known.tolist() == [False, True]
    assert known.mcse[1, 0] >= np.ptp(p[..., 1])


def test_the_error_of_a_loss_of_three_components_is_of_the_sum_of_the_others():
    """Independent draws: a weighed mean m has the error sd(n w (x - m)) / sqrt(n)."""
    rng = np.random.default_rng(6)
    held = rng.dirichlet([6, 3, 2], (4, 500, 2))
    log_p = 0.3 * rng.standard_normal((4, 500, 2))
    w = np.exp(log_p)[..., None] / np.exp(log_p).sum(axis=(0, 1))[:, None]
    mean = (w * held).sum(axis=(0, 1))
    expected = (2000 * w * (held - mean)).std(axis=(0, 1)) / math.sqrt(2000)
    assigned, _ = Assignments.of_weighed(held, Average("sampled").without(-log_p))
    assert assigned.probability == pytest.approx(mean, rel=1e-3)  # tails of the weights are smoothed
    assert assigned.mcse == pytest.approx(expected, rel=0.2)
    assert assigned.mcse_expected_loss == pytest.approx(expected[:, 0], rel=0.2)


@pytest.mark.parametrize("chunk", [2**18, 1, 50])
def test_probabilities_are_averages_over_draws(chunk, monkeypatch):
    monkeypatch.setattr(align, "CELLS", chunk)
    params = draws_of(np.random.default_rng(1))
    found = assignments(poisson(), params, {"y": Y})
    each = by_hand(params, Y)
    assert found.probability == pytest.approx(each.mean(axis=(0, 1)), abs=1e-13)
    spread = each.reshape(400, -1).std(axis=0, ddof=1).reshape(6, 2) / 20  # independent draws
    assert found.mcse[:5] == pytest.approx(spread[:5], rel=0.35)
    assert found.mcse[5] == pytest.approx(1 / 400)  # of a probability of 1e-11 that few draws carry
    assert found.mcse[:, 0] == pytest.approx(found.mcse[:, 1], rel=1e-6)
    assert found.expected_loss == pytest.approx(each.mean(axis=(0, 1)).min(axis=1), abs=1e-13)
    assert found.expected_errors == pytest.approx(found.expected_loss.sum())
    plugged = {name: values.mean(axis=(0, 1), keepdims=True) for name, values in params.items()}
    at_mean = assignments(poisson(), plugged, {"y": Y})  # which is not the average
    assert np.max(np.abs(at_mean.probability - found.probability) / found.mcse) > 4
    assert np.isnan(at_mean.mcse).all()
    single = {"weights": np.ones((4, 50, 1)), "rates": np.full((4, 50, 1), 3.0)}
    assert assignments(poisson(1), single, {"y": Y}).probability.tolist() == [[1.0]] * 6


def test_chains_that_depend_have_larger_errors():
    rng = np.random.default_rng(2)
    walk = np.zeros((4, 400))
    for i in range(1, 400):
        walk[:, i] = 0.95 * walk[:, i - 1] + 0.05 * rng.normal(size=4)
    params = {"weights": np.full((4, 400, 2), 0.5), "rates": np.stack([2 * np.exp(walk), 10 + 0 * walk], axis=-1)}
    dependent = assignments(poisson(), params, {"y": np.array([5])})
    shuffled = {**params, "rates": params["rates"].reshape(1600, 2)[rng.permutation(1600)].reshape(4, 400, 2)}
    assert (dependent.mcse > 3 * assignments(poisson(), shuffled, {"y": np.array([5])}).mcse).all()


@pytest.mark.parametrize("held", [4 * 20 * 12, 4 * 5 * 12, 1])
def test_of_many_rows_batches_of_draws_are_held(held, monkeypatch):
    params = draws_of(np.random.default_rng(3))
    all_held = assignments(poisson(), params, {"y": Y})
    monkeypatch.setattr(module, "_MOST", held)
    monkeypatch.setattr(align, "CELLS", 70)  # chunks that end within batches
    found = assignments(poisson(), params, {"y": Y})
    assert found.probability == pytest.approx(all_held.probability, abs=1e-13)
    if held == 1:
        assert np.isnan(found.mcse).all()  # one batch a chain
    else:
        assert found.mcse == pytest.approx(all_held.mcse, rel=0.6)


def test_a_tiny_expected_loss_keeps_its_digits():
    sure = Assignments.of_draws(np.full((4, 10, 2, 2), [[1.0, 1e-30], [0.5, 0.5]]))
    assert sure.expected_loss.tolist() == [1e-30, 0.5]  # 1 - 1.0 would be 0
    assert sure.label.tolist() == [0, 0]


class Standing:
    """A latent number of each row: its mean given the parameters is a + y."""

    inputs = Real("y")
    name = "standing"

    def component_probabilities(self, params, data):
        return params["a"][..., None] + data["y"]


def test_a_latent_number_has_a_mean_and_its_error(monkeypatch):
    a = 1e8 + np.random.default_rng(7).normal(size=(4, 500))
    found = assignments(Standing(), {"a": a}, {"y": np.array([0.0, 5.0])})
    assert isinstance(found, Latents)
    assert found.mean == pytest.approx(a.mean() + np.array([0, 5]), rel=1e-13)
    assert found.sd_of_means == pytest.approx(np.full(2, a.std(ddof=1)), rel=1e-6)
    assert found.mcse == pytest.approx(np.full(2, a.std() / math.sqrt(2000)), rel=0.2)
    monkeypatch.setattr(align, "CELLS", 14)
    in_parts = assignments(Standing(), {"a": a}, {"y": np.array([0.0, 5.0])})
    assert in_parts.sd_of_means == pytest.approx(found.sd_of_means, rel=1e-9)
    point = assignments(Standing(), {"a": a[:1, :1]}, {"y": np.array([0.0, 5.0])})
    assert np.isnan([point.sd_of_means, point.mcse]).all()


def test_numbers_that_are_not_finite_are_an_error():
    with raises(NumericalError, "not_finite"):
        assignments(Standing(), {"a": np.array([[1.0, np.nan]])}, {"y": np.array([0.0])})


# A fit


def test_the_frame_has_a_row_for_each_row_of_the_fit_or_each_new_one(written):
    params = draws_of(np.random.default_rng(8))
    tree = tree_of(params)
    frame, each = assign(tree), by_hand(params, Y).mean(axis=(0, 1))
    errors = ["mcse_expected_loss", "mcse[1]", "mcse[2]"]
    assert list(frame.columns) == ["component", "expected_loss", errors[0], "p[1]", "p[2]", *errors[1:]]
    assert frame.index.tolist() == [1, 2, 3, 4, 5, 6]
    assert frame["component"].tolist() == (1 + each.argmax(axis=1)).tolist() == [1, 1, 1, 1, 2, 2]
    assert frame[["p[1]", "p[2]"]].to_numpy() == pytest.approx(each, abs=1e-13)
    assert frame["expected_loss"].to_numpy() == pytest.approx(each.min(axis=1), abs=1e-13)
    assert frame.attrs["expected_errors"] == pytest.approx(each.min(axis=1).sum(), abs=1e-13)
    expected = assignments(poisson(), params, {"y": Y}).mcse
    assert frame[["mcse[1]", "mcse[2]"]].to_numpy() == pytest.approx(expected, rel=1e-12)
    assert frame["mcse_expected_loss"].to_numpy() == pytest.approx(expected[:, 0], rel=1e-9)  # of two, either's
    expected, path = by_hand(params, np.array([7, 3])).mean(axis=(0, 1)), written("n,m\n7,1\n3,1\n")
    for new in (assign(tree, np.array([7, 3])), assign(tree, path, column="n")):
        assert new[["p[1]", "p[2]"]].to_numpy() == pytest.approx(expected, abs=1e-13)


def test_what_cannot_be_assigned_is_refused():
    params = draws_of(np.random.default_rng(10))
    with raises(Untrustworthy, "withheld", "failed"):
        assign(tree_of(params, checks=[at_most("something", 1, 0)]))
    apart = {**params, "rates": np.random.default_rng(0).gamma(1.0, 10.0, (4, 100, 2))}
    with raises(Untrustworthy, "withheld"):
        assign(tree_of(apart))
    with raises(InputError, "no_latent_variable", "gamma_poisson"):
        assign(bz.fit(bz.find("gamma_poisson")(), Y, "exact", seed=1))
    tree = tree_of(params, {"y": Y, "exposure": np.ones(6)})
    with raises(InputError, "missing_outcome"):
        assign(tree, {"exposure": [1.0, 2.0]})
    with raises(InputError, "option_needs_data"):
        assign(tree, column="n")


# The command

TOPICS = bz.find("multinomial_mixture")
DOCUMENTS = {"a": [9, 8, 0, 1, 7, 0], "b": [1, 0, 6, 9, 1, 8], "c": [0, 1, 1, 2, 0, 3]}


@pytest.fixture(scope="module")
def fit():
    return bz.fit(TOPICS(K=2), DOCUMENTS, "enumerate", seed=1)


@pytest.fixture
def saved(fit, tmp_path):
    return bz.save(fit, tmp_path / "fit.nc")


def test_the_command_prints_the_rows_of_the_fit_or_one_json_document_and_writes_numbers_in_full(
    run, saved, fit, tmp_path
):
    code, out, err = run("assign", saved)
    expected, path = bz.assign(fit), tmp_path / "rows.csv"
    assert (code, err, "multinomial_mixture, enumerate (draws of the exact posterior)" in out) == (0, "", True)
    errors, its_error = (expected.attrs[name] for name in ("expected_errors", "mcse_expected_errors"))
    assert f"wrong label: {errors:.1e} +- {its_error:.2g} of 6" in out
    assert f"wrong label: {errors:.9g} +- {its_error:.2g} of 6" in run("assign", saved, "--digits", 9)[1]
    lines = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    assert [int(line[1]) for line in lines] == expected["component"].tolist()
    code, out, err = run("assign", saved, "--json", "-o", path)
    found, rows = json.loads(out), expected.reset_index()
    assert (code, err, found["model"], found["saved"]) == (0, f"wrote {path}\n", "multinomial_mixture", str(path))
    assert found["expected_errors"] == pytest.approx(expected.attrs["expected_errors"])
    pd.testing.assert_frame_equal(pd.DataFrame(found["rows"]), rows, check_dtype=False)
    read = pd.read_csv(path)
    pd.testing.assert_frame_equal(read, rows, check_dtype=False, check_exact=True)
    assert run("assign", saved, "-o", path)[:2] == (2, "")
    assert run("assign", saved, "-o", path, "--overwrite")[0] == 0


def test_the_command_assigns_new_rows(run, saved, fit, written):
    rows = json.loads(run("assign", saved, written("c,b,a\n0,0,9\n1,8,0\n"), "--json")[1])["rows"]
    expected = bz.assign(fit, {"a": [9, 0], "b": [0, 8], "c": [0, 1]})
    assert [row["component"] for row in rows] == expected["component"].tolist()
    assert rows[0]["component"] != rows[1]["component"]


@pytest.mark.parametrize(
    ("model", "data", "said"),
    [(TOPICS(K=2), DOCUMENTS, "wrong label"), (bz.find("student_t")(), [0.1, 0.4, -1.0, 0.2, 8.0], "mean")],
)
def test_a_point_estimate_says_that_it_is_one_and_a_latent_number_has_no_label(run, tmp_path, model, data, said):
    code, out, _ = run("assign", bz.save(bz.fit(model, data, "map", seed=1), tmp_path / "map.nc"))
    assert (code, "Parameter uncertainty is ignored" in out, said in out) == (0, True, True)
    assert ("wrong label" in out) == (said == "wrong label")


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-A1", "@SUM(A1)", "\tx", "\rx"])
def test_no_text_is_run_by_a_spreadsheet(text):
    frame = pd.DataFrame({text: [text, "rain"], "p": [-0.25, np.nan]}, index=pd.RangeIndex(1, 3, name="row"))
    header, *rows = csv.reader(io.StringIO(as_csv(frame), newline=""))
    assert header == ["row", f"'{text}", "p"]
    assert rows == [["1", f"'{text}", "-0.25"], ["2", "rain", ""]]


def test_the_command_refuses_in_one_line(run, saved, fit, tmp_path):
    coin = bz.save(bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact"), tmp_path / "coin.nc")
    failed = fit.copy()
    failed.attrs["status"] = "failed"
    for arguments, code, message in (
        ((coin,), 2, "beta_bernoulli has no latent variable of each row; fit one of dawid_skene, dp_mixture"),
        ((saved, "--columns", "a,b"), 2, "--columns goes with DATA"),
        ((saved, "-o", tmp_path / "no" / "rows.csv"), 2, "there is no folder"),
        ((saved, tmp_path / "none.csv"), 2, "none.csv"),
        ((bz.save(failed, tmp_path / "bad.nc"), "-o", tmp_path / "rows.csv"), 3, "the fit failed its gate: "),
    ):
        found, out, err = run("assign", *arguments)
        assert (found, out, err.count("\n"), err.startswith("error: ")) == (code, "", 1, True)
        assert message in err
    assert not (tmp_path / "rows.csv").exists()


@pytest.mark.parametrize("draws", [1, 2, 3, 12, 1000])
def test_draws_are_put_into_as_many_equal_batches_as_memory_allows(draws):
    for cells in (1, module._MOST // 4000, module._MOST // 40, module._MOST):
        equal = [number for number in range(1, draws + 1) if draws % number == 0]
        expected = max((number for number in equal if 4 * number * cells <= module._MOST), default=1)
        assert module._batches(4, draws, cells) == expected
