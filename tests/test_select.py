"""Selection against SciPy: evidences, penalties, leave-one-out by refitting, and what must be withheld."""

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, special, stats

import bayeszoo as bz
from bayeszoo.answers.averages import importance
from bayeszoo.answers.checks import leave_out as score
from bayeszoo.cli.verbs.comparison.select import _cell
from bayeszoo.comparison import candidates
from bayeszoo.comparison.select import _bayes_factors
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.outer.integration import exact_evidence
from bayeszoo.results.caveats import WORDS
from bayeszoo.results.stored import Fit
from tests.quick import zoo_with
from tests.refusals import raises

COIN = bz.find("beta_bernoulli")
FLIPS = [1, 0, 1, 1, 0, 1, 1, 1]
Y = [1.3, -0.4, 0.8, 2.1, 0.2, 1.7, 0.9, -1.1, 0.5, 1.4, 1.0, 0.1]
UNDEFINED = "log evidence is undefined under a flat prior (mu, sigma)"


bad_models = zoo_with("bad_models")


@pytest.fixture(scope="module")
def gaussian():
    return bz.find("gaussian_mean")


@pytest.fixture(scope="module")
def flat_fits():
    """Fits under flat priors."""
    return {method: bz.fit(bz.find("flat_mean")(), Y, method, seed=1) for method in ("nuts", "laplace", "advi", "map")}


@pytest.fixture(scope="module")
def coin_fits():
    """Fits of a model without closed forms."""
    model = bz.find("logit_coin")(s=1.5)
    return {"smc": bz.fit(model, FLIPS, "smc", seed=1, draws=500), "laplace": bz.fit(model, FLIPS, "laplace", seed=1)}


def by_name(candidates, data=None):
    return bz.select(candidates, data).set_index("model")


def beta_evidence(a, b, successes, failures):
    return special.betaln(a + successes, b + failures) - special.betaln(a, b)


def test_evidence_and_probability_are_scipy_s():
    priors = {"flat": (1, 1), "fair": (50, 50), "odd": (1, 9)}
    table = bz.select({name: COIN(*prior) for name, prior in priors.items()}, FLIPS)
    expected = np.array([beta_evidence(*priors[name], 6, 2) for name in table["model"]])
    assert table["model"].tolist() == ["fair", "flat", "odd"]
    assert table["log_evidence"].to_numpy() == pytest.approx(expected, rel=1e-12)
    assert table["log_bayes_factor"].to_numpy() == pytest.approx(expected - expected.max(), abs=1e-12)
    assert table["probability"].to_numpy() == pytest.approx(np.exp(expected) / np.exp(expected).sum(), rel=1e-12)
    assert table[["evidence_se", "log_bayes_factor_se"]].to_numpy().tolist() == [[0, 0]] * 3
    assert set(table["evidence_from"]) == {"exact"}
    counts = bz.select([COIN(2, 5), COIN()], {"successes": [3, 5], "trials": [10, 12]})  # and of ordered trials
    assert counts.equals(bz.select([COIN(2, 5), COIN()], np.repeat([1, 0], [8, 14])))
    assert counts["log_evidence"][0] == pytest.approx(beta_evidence(2, 5, 8, 14), rel=1e-12)


def test_a_probability_has_the_error_that_evidences_give_it():
    """By the spread of the softmax of evidences that are drawn with their errors."""
    values, ses = np.array([-20.0, -20.8, -23.0]), np.array([0.05, 0.08, 0.0])
    rows = [{"log_evidence": v, "evidence_se": se, "status": "ok"} for v, se in zip(values, ses, strict=True)]
    _bayes_factors(rows)
    drawn = special.softmax(values + ses * np.random.default_rng(1).standard_normal((20_000, 3)), axis=1)
    assert [row["probability_se"] for row in rows] == pytest.approx(drawn.std(axis=0), rel=0.05)
    assert [row["probability"] for row in rows] == pytest.approx(special.softmax(values), rel=1e-12)
    assert [_cell(row, "probability", None) for row in rows] == ["0.67", "0.30", "0.033"]
    assert _cell({"probability": 1.0, "probability_se": 1e-12}, "probability", None) == "1"
    exact = [{**row, "evidence_se": 0.0} for row in rows]
    _bayes_factors(exact)
    assert [row["probability_se"] for row in exact] == [0, 0, 0]
    assert _cell(exact[1], "probability", None) == f"{special.softmax(values)[1]:.4g}"


def test_evidence_by_smc_has_its_error(coin_fits):
    density = lambda psi: np.prod(stats.bernoulli.pmf(FLIPS, special.expit(psi))) * stats.norm.pdf(psi, 0, 1.5)  # noqa: E731
    exact = math.log(integrate.quad(density, -15, 15)[0])
    table = by_name({"smc": coin_fits["smc"], "beta": COIN()}, FLIPS)
    smc, se = table.loc["smc"], table.loc["smc", "evidence_se"]
    assert abs(smc["log_evidence"] - exact) < 4.4 * max(se, 0.01)
    assert se == Fit(coin_fits["smc"]).fact("log_evidence_mcse") > 0
    assert (smc["evidence_from"], table["log_bayes_factor_se"].tolist()) == ("smc", [0, se])
    assert bz.select([coin_fits["smc"]] * 2)["log_bayes_factor_se"].tolist() == [0, pytest.approx(se * math.sqrt(2))]
    assert table["probability"].sum() == pytest.approx(1)
    counts = {"successes": [3, 5], "trials": [10, 12]}  # whose density is no evidence of the observations
    tree = bz.fit(bz.find("logit_coin")(), counts, "smc", seed=1, draws=500)
    table = by_name({"smc": tree, "beta": COIN()}, counts)
    reason = "withheld: the density is of the table of counts, not of the ordered observations"
    assert table.loc["smc", "evidence_from"] == reason
    assert np.isnan(table.loc["smc", "log_evidence"])
    assert table.loc["smc", "loo"] == pytest.approx(table.loc["beta", "loo"], abs=1)  # of single trials


def test_what_is_no_evidence_is_withheld(coin_fits):
    candidates = {"bare": bz.find("logit_coin")(), "laplace": coin_fits["laplace"], "exact": COIN()}
    table = by_name(candidates | {"smc": coin_fits["smc"]}, FLIPS)
    assert set(table.index[:2]) == {"exact", "smc"}
    withheld = table.loc[["bare", "laplace"]]
    assert withheld["evidence_from"].str.startswith("withheld: ").all()
    columns = ["log_evidence", "evidence_se", "log_bayes_factor", "probability", "probability_among"]
    assert withheld[columns].isna().all(axis=None)
    assert table["probability"].sum() == pytest.approx(1)
    assert table["probability_among"].tolist()[:2] == [2, 2]
    assert withheld["loo_from"].str.startswith("withheld: ").all()
    assert table.loc["bare", "likelihood_from"] == "withheld: no closed form"
    assert set(table["status"]) <= {"ok", "caution"}  # Laplace's means are a tenth of an sd off


def test_flat_priors_have_no_evidence(flat_fits):
    class Remembering(Reporter):
        def say(self, line):
            lines.append(line)

    lines, model = [], bz.find("flat_mean")()
    bz.fit(model, Y, "laplace", seed=1, reporter=Remembering())
    assert lines == [UNDEFINED]
    with raises(bz.InputError, "undefined_evidence", UNDEFINED):
        bz.fit(model, Y, "smc", seed=1)
    for method in ("laplace", "advi"):
        facts = Fit(flat_fits[method]).facts
        assert flat_fits[method].attrs["status"] in ("ok", "caution")
        assert facts["evidence_withheld"] == UNDEFINED
        assert {facts.get(name) for name in ("log_evidence", "elbo", "elbo_se")} == {None}
    compared = bz.compare(flat_fits.values())
    assert compared[["log_evidence", "elbo", "evidence_se", "elbo_se"]].isna().all(axis=None)
    table = bz.select([model, *flat_fits.values()], Y)
    assert set(table["evidence_from"]) == {f"withheld: {UNDEFINED}"}
    assert table["log_evidence"].isna().all()
    table = bz.select([flat_fits["laplace"], flat_fits["nuts"], flat_fits["map"]])  # in the order of prediction
    assert table["model"].iloc[0] == "nuts flat_mean()"
    assert set(table["model"]) == {"nuts flat_mean()", "laplace flat_mean()", "map flat_mean()"}


def test_aic_and_bic_count_the_trials(gaussian):
    row = bz.select([COIN()], {"successes": [437], "trials": [980]}).iloc[0]
    at = stats.bernoulli(437 / 980)
    best = 437 * at.logpmf(1) + 543 * at.logpmf(0)
    assert row["log_likelihood"] == pytest.approx(best, rel=1e-12)
    assert (row["parameters"], row["observations"]) == (1, 980)
    assert row["aic"] == pytest.approx(2 - 2 * best, rel=1e-12)
    assert row["bic"] == pytest.approx(math.log(980) - 2 * best, rel=1e-12)
    best, real = stats.norm(np.mean(Y), 0.7).logpdf(Y).sum(), bz.select([gaussian(0, 2, 0.7)], Y).iloc[0]
    assert real["bic"] == pytest.approx(math.log(12) - 2 * best, rel=1e-12)


def test_a_maximum_that_does_not_exist_or_too_many_observations_are_withheld(gaussian, monkeypatch):
    class Unbounded(gaussian):
        def mle(self, stats):
            raise bz.NumericalError("unbounded")

    row = bz.select([Unbounded()], Y).iloc[0]
    assert row["likelihood_from"] == "withheld: unbounded"
    assert row[["log_likelihood", "parameters", "aic", "bic"]].isna().all()
    assert row["evidence_from"] == row["loo_from"] == "exact"
    monkeypatch.setattr(score, "MAX_DISTINCT", 11)
    assert bz.select([gaussian()], Y).iloc[0]["loo_from"] == "withheld: more than 11 distinct observations"


def refitted(m0, s0, sigma):
    """Leave-one-out densities as ratios of evidences, each a multivariate normal density."""

    def log_evidence(y):
        return stats.multivariate_normal(np.full(len(y), m0), sigma**2 * np.eye(len(y)) + s0**2).logpdf(y)

    return np.array([log_evidence(Y) - log_evidence(np.delete(Y, i)) for i in range(len(Y))])


def test_leave_one_out_is_refitting(gaussian):
    priors = {"near": (0, 2, 0.7), "far": (3, 0.5, 1.2)}
    table = by_name({name: gaussian(*fields) for name, fields in priors.items()}, Y)
    near, far = (refitted(*fields) for fields in priors.values())
    for name, terms in (("near", near), ("far", far)):
        assert table.loc[name, "loo"] == pytest.approx(terms.sum(), rel=1e-9)
        assert table.loc[name, "loo_se"] == pytest.approx(np.std(terms) * math.sqrt(12), rel=1e-9)
        assert table.loc[name, "loo_mcse"] == 0
    best, worse = ("near", "far") if near.sum() > far.sum() else ("far", "near")
    less = (near - far) * (1 if worse == "near" else -1)
    assert table.loc[best, ["loo_difference", "loo_difference_se"]].tolist() == [0, 0]
    assert table.loc[worse, "loo_difference"] == pytest.approx(less.sum(), rel=1e-9)
    assert table.loc[worse, "loo_difference_se"] == pytest.approx(np.std(less) * math.sqrt(12), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "rows"), [("regression_tree", 8), pytest.param("gaussian_process", 4, marks=pytest.mark.slow)]
)
def test_leave_one_out_by_quadrature_is_refitting(name, rows):
    model, rng = bz.find(name), np.random.default_rng(4)
    x = np.arange(float(rows))
    data = bz.read(model, {"x": x, "y": np.where(x > rows / 2, 3.0, 0.0) + rng.normal(size=rows)})
    model = model.weak(data)
    (row,) = bz.select([model], data).to_dict("records")
    others = [model.inputs.reordered(data, np.delete(np.arange(rows), i)) for i in range(rows)]
    terms = [exact_evidence(model, data) - exact_evidence(model, rest) for rest in others]
    assert row["loo"] == pytest.approx(sum(terms), abs=1e-4)
    assert row["loo_from"] == "quadrature"
    assert row["loo_mcse"] < 1e-4


def test_differences_are_paired_by_trials_of_counts():
    table = by_name({"a": COIN(1, 1), "b": COIN(3, 20)}, {"successes": [6], "trials": [8]})
    ratio = lambda a, b: np.log([(b + 1) / (a + b + 7), (a + 5) / (a + b + 7)])  # noqa: E731
    less = np.repeat(ratio(3, 20) - ratio(1, 1), [2, 6])
    assert table.loc["b", "loo_difference"] == pytest.approx(less.sum(), rel=1e-12)
    assert table.loc["b", "loo_difference_se"] == pytest.approx(np.std(less) * math.sqrt(8), rel=1e-12)


@pytest.mark.slow  # samples, and compiles the density for bridge sampling
def test_draws_of_latent_precisions_have_the_evidence_of_quadrature():
    kind = bz.find("student_t")
    model, rows = kind(m0=0.5, kappa0=0.1, a0=1.5, b0=1.0), np.array(Y)

    def density(log_lam, mu):
        lam = math.exp(log_lam)
        prior = stats.norm(0.5, (0.1 * lam) ** -0.5).pdf(mu) * stats.gamma(1.5).pdf(lam) * lam
        return prior * stats.t(4, mu, lam**-0.5).pdf(rows).prod()

    expected = math.log(integrate.dblquad(density, -2, 3, -6, 4, epsabs=0, epsrel=1e-6)[0])
    row = bz.select({"nuts": bz.fit(model, Y, "nuts", seed=1)}).iloc[0]
    assert row["evidence_from"] == "bridge sampling"
    assert abs(row["log_evidence"] - expected) < 4 * row["evidence_se"] < 0.1


@pytest.mark.slow
def test_psis_agrees_with_refitting(gaussian):
    model = gaussian(0, 2, 0.7)
    table = by_name({"nuts": bz.fit(model, Y, "nuts", seed=1), "exact": model}, Y)
    nuts, exact = table.loc["nuts"], refitted(0, 2, 0.7)
    withheld = "withheld: nuts gives no evidence: give the model itself"
    assert (nuts["loo_from"], nuts["evidence_from"]) == ("PSIS", withheld)
    assert 0 < nuts["loo_mcse"] < 0.05
    assert abs(nuts["loo"] - exact.sum()) < 4.4 * nuts["loo_mcse"]
    assert nuts["k_hat"] < 0.7
    assert nuts["kfold_from"] == "withheld: nuts would have to run for each fold: give the model itself"
    assert table.loc["exact", "loo"] == pytest.approx(exact.sum(), rel=1e-9)
    assert np.isnan(table.loc["exact", "k_hat"])
    model, one_far = gaussian(0, 100, 1), [0.1, -0.2, 40.0]  # an observation that has all the weight
    table = by_name({"nuts": bz.fit(model, one_far, "nuts", seed=1), "exact": model}, one_far)
    nuts = table.loc["nuts"]
    assert nuts["loo_from"].startswith("withheld: k-hat ")
    assert "(must be <= 0.7)" in nuts["loo_from"]
    assert nuts["k_hat"] > 0.7
    assert nuts[["loo", "loo_se", "loo_mcse", "loo_difference"]].isna().all()
    assert table.loc["exact", "loo_from"] == "exact"


@pytest.mark.parametrize("impossible", [-math.inf, math.nan])
def test_an_observation_that_some_draw_excludes_has_no_importance_weights(impossible):
    log_p = np.full((100, 2), -1.0)
    log_p[3, 1] = impossible
    assert importance(log_p)[1].tolist() == [-math.inf, math.inf]


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_of_a_fit_that_is_not_ok_everything_is_withheld(status):
    tree = bz.fit(COIN(), FLIPS, "exact", seed=1)
    tree.attrs["status"] = status
    table = by_name({"bad": tree, "good": COIN()}, FLIPS)
    kept = {name: value for name, value in table.loc["bad"].items() if value == value}
    reasons = {f"{name}_from" for name in ("evidence", "elbo", "likelihood", "mdl", "nml", "kfold", "loo")}
    assert kept.keys() == reasons | {"observations", "status"}
    assert {kept[name] for name in reasons} == {f"withheld: {WORDS[status]}"}
    assert kept["status"] == status
    assert np.isnan(table.loc["good", "probability"])


def test_an_exact_fit_is_its_model():
    model = COIN(2, 3)
    table = bz.select([model, bz.fit(model, FLIPS, "exact", seed=1)], FLIPS)
    assert table["model"].tolist() == ["beta_bernoulli(a=2, b=3)", "exact beta_bernoulli(a=2, b=3)"]
    assert table.drop(columns="model").iloc[0].equals(table.drop(columns="model").iloc[1].rename(0))
    table, flat = bz.select([COIN(), COIN(), COIN(2, 1), COIN()], FLIPS), "beta_bernoulli(a=1, b=1)"
    assert set(table["model"]) == {flat, f"{flat} (2)", f"{flat} (3)", "beta_bernoulli(a=2, b=1)"}


class Pairs(type(COIN.inputs)):
    def observations(self, arrays):
        return dict(arrays), np.ones(len(arrays["y"]), dtype=int)


class PairCoin(COIN):
    inputs = Pairs("y")


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], ("no_data", "select")),
        ([COIN], ("not_a_fit", "candidate")),
        (["beta_bernoulli"], ("not_a_fit", "candidate")),
        ({"a": COIN(), "b": PairCoin()}, ("not_comparable", "b")),
        ({"coin": COIN(), "bell": bz.find("gaussian_mean")()}, ("not_comparable", "coin", "bell")),
    ],
)
def test_what_is_no_candidate_is_refused(candidates, message):
    with raises(bz.InputError, *message):
        bz.select(candidates, FLIPS)
    other = bz.fit(COIN(), [1, 0], "exact", seed=1, groups=())
    with raises(bz.InputError, "not_comparable", "candidates"):
        bz.select([COIN(), other], FLIPS)


def test_regressions_of_the_same_outcomes_compare_whatever_their_features():
    line, x, z = bz.find("ridge"), [1.0, 2.0, 4.0, 7.0], [0.0, 1.0, 1.0, 0.0]
    tables = {"one": {"y": [1.1, 2.0, 3.5, 6.2], "x": x}, "two": {"y": [1.1, 2.0, 3.5, 6.2], "x": x, "z": z}}
    data = {name: bz.read(line, table) for name, table in tables.items()}
    fits = {name: bz.fit(line.weak(rows), rows, "exact", seed=1, groups=()) for name, rows in data.items()}
    frame = bz.select(fits).set_index("model")
    for name, rows in data.items():
        assert frame.loc[name, "log_evidence"] == pytest.approx(bz.select({name: fits[name]})["log_evidence"][0])
        assert len(rows["feature"]) == 1 + (name == "two")
    swapped = {**tables["two"], "y": [2.0, 1.1, 3.5, 6.2]}
    with raises(bz.InputError, "not_comparable"):
        bz.select([fits["one"], bz.fit(line(), swapped, "exact", seed=1, groups=())])


# Command line


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    """The command line in a folder with tables."""
    monkeypatch.chdir(tmp_path)
    Path("coins.csv").write_text("y\n" + "".join(f"{y}\n" for y in FLIPS))
    Path("reals.csv").write_text("speed\n" + "".join(f"{y}\n" for y in Y))
    return run


def test_command_compares_priors(run):
    options = ("select", "coins.csv", "-c", "beta_bernoulli", "--candidate", "beta_bernoulli --set a=10 b=10")
    code, out, err = run(*options)
    assert (code, err) == (0, "")
    assert out.index("beta_bernoulli(a=10,") < out.index("beta_bernoulli(a=1,")
    found = json.loads(run(*options, "--json")[1])
    expected = [beta_evidence(10, 10, 6, 2), beta_evidence(1, 1, 6, 2)]
    assert [row["log_evidence"] for row in found["table"]] == pytest.approx(expected, rel=1e-12)
    options = ("reals.csv", "--column", "speed", "-c", "gaussian_mean", "-c", "gaussian_mean m0=0 s0=1 sigma=1")
    code, _, err = run("select", *options)  # which of the priors are scaled to the data is said
    assert (code, err[:27]) == (0, "gaussian_mean(m0=0.708333, ")
    assert err.count("the prior is scaled to the data, and so is the log evidence\n") == err.count("\n") == 1
    assert run("select", *options, "--prior", "textbook")[::2] == (0, "")


@pytest.mark.quick
def test_command_takes_saved_fits(run, coin_fits):
    bad = coin_fits["smc"].copy()
    bad.attrs["status"] = "failed"
    for name, tree in ({**coin_fits, "bad": bad}).items():
        bz.save(tree, f"{name}.nc")
    code, out, _ = run("select", "coins.csv", "-c", "smc.nc", "-c", "beta_bernoulli", "--json")
    assert (code, {row["evidence_from"] for row in json.loads(out)["table"]}) == (0, {"smc", "exact"})
    code, _, err = run("select", "-c", "smc.nc")
    assert (code, "scaled" in err) == (0, False)
    speeds = bz.fit(bz.find("normal_gamma"), "reals.csv", "exact", seed=1)
    bz.save(speeds, "speeds.nc")
    assert "speeds.nc: the prior is scaled to the data, and so is the log evidence" in run("select", "speeds.nc")[2]
    code, _, err = run("select", "coins.csv", "-c", "smc.nc")
    assert (code, "fits, which bring their own data" in err) == (2, True)
    code, out, _ = run("select", "-c", "bad.nc")
    assert (code, "withheld: the fit failed its gate" in out) == (3, True)
    code, out, _ = run("select", "coins.csv", *("-c", "beta_bernoulli", "-c", "beta_bernoulli a=2", "-c", "laplace.nc"))
    assert code == 0
    assert "Probabilities are among the 2 with an evidence, without laplace" in " ".join(out.split())


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        ("beta_bernouli", "there is no model called 'beta_bernouli'; did you mean 'beta_bernoulli'?"),
        ("beta_bernoulli c=1", "--candidate 'beta_bernoulli c=1': c=1: beta_bernoulli has no such field; it has a, b"),
        ("beta_bernoulli a=one", "--candidate 'beta_bernoulli a=one': a=one: the value is not JSON; write a=0.5"),
        ("beta_bernoulli a=0", "prior a must be > 0, got 0"),
        ("beta_bernoulli 'a=1", "is not a model with fields; write 'MODEL a=1 b=5'"),
        ("", "--candidate '' is not a model with fields"),
        ("none.nc", "none.nc"),
    ],
)
def test_command_refuses_in_one_line(run, candidate, message):
    code, out, err = run("select", "coins.csv", "-c", "beta_bernoulli", "-c", candidate)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    "words",
    [("select", "-c", "beta_bernoulli", "-c", "beta_bernoulli a=2"), ("empirical", "gaussian_mean", "--over", "m0")],
)
def test_conjugate_models_are_selected_and_chosen_without_pymc(run, words):
    code = (
        f"import sys\nfrom bayeszoo.cli.app import main\ntry:\n    main({list(words)})\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert not {'pytensor', 'pymc.model', 'arviz', 'arviz_stats', 'numba'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["beta_bernoulli", "ridge"])
@pytest.mark.parametrize("changed", [None, "X", "y", "weights"])
def test_scores_of_other_observations_are_not_compared(changed, name):
    """Features are no observations of a regression."""
    arrays = {"X": np.array([1.0, np.nan]), "y": np.array([2.0, 3.0]), "weights": np.ones(2)}
    others = {name: values + (name == changed) for name, values in arrays.items()}
    rows = [({"X": a["X"], "y": a["y"]}, a["weights"]) for a in (arrays, others)]
    pair = [SimpleNamespace(observations=each, model=bz.find(name)()) for each in rows]
    assert candidates._same_observations(*pair) is (changed is None or (changed, name) == ("X", "ridge"))


def test_the_command_takes_fits_in_place_of_a_table(run, tmp_path):
    for name, model in (("fair", COIN(a=1000, b=1000)), ("flat", COIN(a=1, b=1))):
        bz.save(bz.fit(model, FLIPS, "exact", seed=1), tmp_path / f"{name}.nc")
    fits = [str(tmp_path / f"{name}.nc") for name in ("fair", "flat")]
    both = [json.loads(run("select", *words, "--json")[1])["table"] for words in (fits, ["-c", fits[0], "-c", fits[1]])]
    assert both[0] == both[1]
    assert len(both[0]) == 2
    for words in ((), ("table.csv",), ("table.csv", "other.csv", "-c", "beta_bernoulli")):
        code, _, err = run("select", *words)
        assert (code, err.count("\n")) == (2, 1)


def test_a_candidate_has_the_name_that_its_user_gives_it(run, written):
    file = written("x,y\n1,2\n2,3\n3,5\n4,4\n5,7\n", "rows.csv")
    line, curve = "line=linear_regression degree=1", "'a curve'=linear_regression degree=2"
    code, out, err = run("select", file, "--target", "y", "-c", line, "-c", curve, "--json")
    assert code == 0, err
    assert sorted(row["model"] for row in json.loads(out)["table"]) == ["a curve", "line"]
