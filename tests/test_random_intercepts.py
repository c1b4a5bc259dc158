"""Random intercepts: the likelihood by SciPy's quad, the MLE by figures of lme4, and bugs that the checks must see."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import expit, gammaln, log_expit

import bayeszoo as bz
from bayeszoo.contract.case import Case, off_default
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.data.inputs import GroupedBinary
from bayeszoo.data.table.read import read_table
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.families.glm.intercepts import MarginalRows
from bayeszoo.inference.methods.modes.concave import highest
from bayeszoo.report.families.pooling import highest_first, pooling_rows
from bayeszoo.results.stored import Fit
from tests.refusals import raises

Logistic = bz.find("logistic_intercepts")
RNG = np.random.default_rng(0)
# groups of 5 rows, of 1, of 2 that all succeed, and of 4
GROUPS = np.array(list("aabcadcadaddd"))
ROWS = {"successes": RNG.binomial(6, 0.4, 13), "trials": np.full(13, 6), "x": RNG.normal(size=13), "group": GROUPS}
ROWS["successes"][GROUPS == "c"] = 6
MODEL = Logistic(tau=1.5, s0=2.0, t0=1.2)
# lme4, tests/glmer-1.R: glmer(cbind(incidence, size - incidence) ~ period + (1 | herd), binomial, cbpp, nAGQ = 25)
LME4 = -1.39922533406847, -0.991407294757321, -1.12782184600404, -1.57946627431248
LME4_DEVIANCE = 100.010030538022  # less that of the saturated model
# De Backer et al. 1998, nails of 294 patients with an infection (R package HSAUR3, `toenail`; a table of facts):
# whether the nail is separated, treatment and months. lme4 1.1-31, nAGQ = 100:
# glmer(separated ~ terbinafine * months + (1 | patient), binomial, toenail)
# With nAGQ = 25 its log likelihood is -625.4158, as 25 points are too few for so large an sd.
TOENAIL = Path(__file__).parent / "toenail.csv"
LME4_TOENAIL = {"log_likelihood": -625.397515653, "sd": 4.006585}
LME4_TOENAIL["w"] = [-1.61828410, -0.16077437, -0.39100173, -0.13679035]
# glmer(seizures ~ after + on_drug + offset(log(weeks)) + (1 | subject), poisson, epilepsy, nAGQ = 25)
LME4_EPILEPSY = {"log_likelihood": -479.7501325139, "sd": 0.780090368, "w": [1.020348748, 0.109358541, -0.102803124]}


def read(rows=ROWS):
    return bz.read(Logistic, rows)


def density_of_intercept(data, group, w, sd):
    """The joint density of the rows of a group and its intercept, by SciPy."""
    own = data["group"][data["group_code"]] == group
    eta, y, n = w[0] + w[1] * data["X"][own, 0], data["y"][own], data["trials"][own]
    return lambda u: stats.norm.pdf(u, 0, sd) * np.prod(expit(eta + u) ** y * expit(-eta - u) ** (n - y))


def integral(function, sd, end=np.inf):
    return integrate.quad(function, -12 * sd, min(12 * sd, end), epsabs=0, epsrel=1e-11, limit=400)[0]


@pytest.mark.parametrize("sd", [0.2, 1.0, 4.0])
def test_likelihood_and_intercepts_are_scipy_s_integrals(sd):
    data, w = read(), np.array([0.3, -0.8])
    of_groups = [density_of_intercept(data, group, w, sd) for group in data["group"].tolist()]
    masses = [integral(of, sd) for of in of_groups]
    assert MODEL.log_marginal({"w": w, "sd": sd}, data) == pytest.approx(np.sum(np.log(masses)), abs=1e-10)
    given = MODEL.posterior_given({"w": w, "sd": sd}, data)["u"]
    means = [integral(lambda u, of=of: u * of(u), sd) / mass for of, mass in zip(of_groups, masses, strict=True)]
    np.testing.assert_allclose(given.mean(), means, atol=1e-9)
    tops = given.ppf(0.9)
    below = [integral(of, sd, top) / mass for of, mass, top in zip(of_groups, masses, tops, strict=True)]
    np.testing.assert_allclose(below, 0.9, atol=1e-7)
    heights = [np.log(of(0.4) / mass) for of, mass in zip(of_groups, masses, strict=True)]
    np.testing.assert_allclose(given.logpdf(np.full(len(heights), 0.4)), heights, atol=1e-10)


def of_equal_outcomes(sd, size, eta=0.3):
    """The log density of a group of successes, by SciPy between the places at which it bends."""
    ends = [-10 * sd, -60, -20, -5, 0, 5, 20, 60, 10 * sd]
    of = lambda u: np.exp(stats.norm.logpdf(u, 0, sd) + size * log_expit(eta + u))  # noqa: E731
    options = {"epsabs": 0, "epsrel": 1e-11, "limit": 500}
    return np.log(sum(integrate.quad(of, *pair, **options)[0] for pair in itertools.pairwise(ends)))


@pytest.mark.parametrize(("sd", "size"), [(100.0, 1), (200.0, 5), (1000.0, 5), (5000.0, 1), (5000.0, 20)])
def test_integrals_of_equal_outcomes_are_right_however_wide_the_prior_of_intercepts(sd, size):
    """With 1,024 points they were off by 4e-5 at an sd of 200, and by 5e-3 at 5,000."""
    data = bz.read(Logistic, {"y": [1] * size, "group": ["a"] * size})
    outer = {"w": np.array([0.3]), "sd": sd}
    assert MODEL.log_marginal(outer, data) == pytest.approx(of_equal_outcomes(sd, size), abs=3e-7)
    rows = MODEL.sorted_rows(data)
    _, slopes, of_sd, _ = rows.derivatives(outer["w"], sd, MODEL.sorted_design(data), rows.offset)
    step = 1e-3 * sd
    slope = (of_equal_outcomes(sd + step, size) - of_equal_outcomes(sd - step, size)) / (2 * step)
    assert of_sd * sd == pytest.approx(slope * sd, rel=1e-3, abs=1e-6)
    slope = (of_equal_outcomes(sd, size, 0.31) - of_equal_outcomes(sd, size, 0.29)) / 0.02
    assert slopes[0] == pytest.approx(slope, rel=1e-3, abs=1e-5)


def test_a_fit_says_where_its_integrals_are_rough():
    wide = {"sd": np.r_[np.full(90, 10.0), np.full(10, 6000.0)]}
    (line,) = MODEL.remarks_of_draws(wide)
    assert "10% of the draws" in line
    assert MODEL.remarks_of_draws({"sd": np.full(100, 4999.0)}) == ()


def test_without_spread_it_is_logistic_regression():
    data, plain = read(), bz.find("logistic_regression")(tau=1.5, s0=2.0)
    features = {name: values for name, values in ROWS.items() if name != "group"}
    own = bz.read(plain, features)
    w = np.array([[0.3, -0.8], [-2.0, 1.5]])
    expected = plain.concave(own).values(plain.concave(own).place({"w": w}))
    for sd in (0.0, 1e-7):
        np.testing.assert_allclose(MODEL.log_marginal({"w": w, "sd": np.full(2, sd)}, data), expected, rtol=1e-9)


def test_one_group_is_an_intercept_of_its_own():
    """Its integral is that of a logistic regression over the prior of the intercept."""
    data = read({**ROWS, "group": ["a"] * 13})
    w, sd = np.array([0.3, -0.8]), 1.3
    mass = integral(density_of_intercept(data, "a", w, sd), sd)
    assert MODEL.log_marginal({"w": w, "sd": sd}, data) == pytest.approx(np.log(mass), abs=1e-10)


def test_the_mle_is_that_of_lme4():
    data = bz.example(Logistic)
    model = Logistic.weak(data)
    mode = highest(model, data, flat=True)
    w = mode.params["w"]
    np.testing.assert_allclose(w[1:], LME4[1:], atol=1e-5)
    assert w[0] - w[1:] @ model.center == pytest.approx(LME4[0], abs=2e-5)
    assert all(check.passed for check in mode.checks)
    y, n = data["y"], data["trials"]
    saturated = np.sum(stats.binom.logpmf(y, n, y / n)) - model.log_coefficient(data)
    likelihood = mode.rows.values(mode.peak.x[None])[0]
    assert -2 * (likelihood - saturated) == pytest.approx(LME4_DEVIANCE, abs=1e-7)


def test_groups_that_differ_by_chance_have_no_spread_and_those_of_one_kind_no_end():
    rows = {"y": [0, 1] * 6, "group": [name for name in "abcdef" for _ in range(2)]}
    flat = highest(Logistic(), bz.read(Logistic, rows), flat=True)
    assert flat.params["sd"] == 0
    tree = bz.fit(Logistic(), rows, "mle", seed=1)
    assert Fit(tree).status == "ok"
    np.testing.assert_allclose(tree["posterior"]["u"], 0.0, atol=1e-12)
    apart = {"y": [0] * 6 + [1] * 6, "group": rows["group"]}
    with raises(bz.NumericalError, "no_maximum"):
        bz.fit(Logistic(), apart, "mle", seed=1)


def test_maxima_of_many_patients_are_those_of_lme4_with_a_hundred_points():
    options = {"target": "separated", "features": ["terbinafine", "months"], "group": "patient"}
    data = bz.read(Logistic, TOENAIL, interactions=["terbinafine:months"], **options)
    tree = bz.fit(Logistic.weak_with(data, {"center": 0.0}), data, "mle", seed=1)
    assert (data.rows, Fit(tree).status) == (1908, "ok")
    assert bz.facts(tree)["log_likelihood"] == pytest.approx(LME4_TOENAIL["log_likelihood"], abs=1e-6)
    for name in ("w", "sd"):
        np.testing.assert_allclose(np.ravel(tree["posterior"][name]), LME4_TOENAIL[name], atol=5e-5)


def test_maxima_of_counts_are_those_of_lme4():
    data = bz.example(Poisson, "epilepsy")
    tree = bz.fit(Poisson.weak_with(data, {"center": 0.0}), data, "mle", seed=1)
    saturated = stats.poisson.logpmf(data["y"], data["y"]).sum()
    log_likelihood = bz.facts(tree)["log_likelihood"] - saturated
    assert log_likelihood == pytest.approx(LME4_EPILEPSY["log_likelihood"], abs=1e-6)
    for name in ("w", "sd"):
        np.testing.assert_allclose(np.ravel(tree["posterior"][name]), LME4_EPILEPSY[name], atol=5e-6)


def test_groups_are_listed_with_the_estimate_of_their_intercept():
    data = read()
    tree = bz.fit(MODEL, data, "mle", seed=1)
    frame = bz.group_estimates(tree)
    assert (frame.attrs["quantity"], frame.index.tolist()) == ("u", data["group"].tolist())
    assert dict(zip(frame.index, frame["rows"], strict=True)) == {"a": 5, "b": 1, "c": 2, "d": 5}
    w, sd = (np.asarray(Fit(tree).draws()[name])[0, 0] for name in ("w", "sd"))
    of_groups = [density_of_intercept(data, group, w, float(sd)) for group in data["group"].tolist()]
    means = [integral(lambda u, of=of: u * of(u), sd) / integral(of, sd) for of in of_groups]
    np.testing.assert_allclose(frame["mean"], means, atol=1e-6)
    assert (frame["pooled"] == 0).all()
    assert frame[["raw", "shrinkage", "sd", "rank"]].isna().all(axis=None)  # what an intercept, or a point, has not
    columns, rows = pooling_rows(highest_first(frame))
    assert columns[:3] == ["group", "rows", "partially pooled"]
    assert rows[0][0] == "c"
    assert len(bz.plot_pooling(tree).axes) == 1


def test_new_rows_are_of_known_groups_or_of_new_ones():
    data = read()
    new = bz.read(Logistic, {"x": [0.0, 1.0], "trials": [1, 1], "group": ["d", "z"]}, new=True, like=data)
    assert new["group"].tolist() == ["a", "b", "c", "d", "z"]
    assert new["group_code"].tolist() == [3, 4]
    assert any("z" in note for note in new.notes)
    params = {"w": np.tile([0.3, -0.8], (4000, 1)), "sd": np.full(4000, 1.1), "u": np.tile([0.0, 0, 0, 2], (4000, 1))}
    p = MODEL.law(params, data, new, np.random.default_rng(1)).mean()
    assert p[0, 0] == pytest.approx(expit(2.3))
    own = integrate.quad(lambda u: stats.norm.pdf(u, 0, 1.1) * expit(-0.5 + u), -10, 10)[0]
    assert p[:, 1].mean() == pytest.approx(own, abs=5 * p[:, 1].std() / np.sqrt(4000))
    with raises(bz.InputError, "no_row_law"):
        MODEL.law(params, data, new)
    nameless = bz.read(Logistic, {"x": [0.0], "trials": [1]}, new=True, like=data)
    assert nameless["group_code"].tolist() == [4]


def test_tables_say_which_column_names_the_groups():
    kind, rows = GroupedBinary("y"), {"y": [0, 1, 1, 0], "school": list("abab"), "x": [1.0, 2, 3, 4]}
    data = bz.read(Logistic, rows, group="school")
    assert data["feature"].tolist() == ["x"]
    alone = bz.read(Logistic, {"y": rows["y"], "school": rows["school"]}, group="school")
    assert alone["X"].shape == (4, 0)
    for own in (data, alone):
        again = kind.parse(read_table(kind.table(own)), **kind.reading(own)).arrays
        assert all(np.array_equal(again[name], own[name]) for name in own)
        assert all(np.array_equal(bz.read(Logistic, dict(own))[name], own[name]) for name in own)
    with raises(bz.InputError, "bad_group_column"):
        bz.read(Logistic, rows)
    with raises(bz.InputError, "duplicate_name"):
        bz.read(Logistic, rows, group="school", features=["x", "school"])
    with raises(bz.InputError, "unknown_option", "logistic_intercepts"):
        bz.read(bz.find("logistic_regression"), rows, group="school")
    kept = bz.read(Logistic, {**rows, "school": ["a", "", "c", "c"]}, group="school", missing="drop")
    assert kept["group"].tolist() == ["a", "c"]
    assert kept["group_code"].tolist() == [0, 1, 1]


def test_remarks_say_where_the_spread_of_groups_is_not_known():
    single = bz.read(Logistic, {"y": [0, 1, 1], "group": list("abc")})
    assert any("one trial" in line for line in MODEL.remarks(None, single))
    fixed = bz.read(Logistic, {"y": [0, 1, 1, 0], "z": [1.0, 1, 2, 2], "group": list("aabb")})
    assert any("constant within groups" in line for line in MODEL.remarks(None, fixed))
    with raises(bz.InputError, "unknown_name"):
        Logistic(priors={"w": "Normal(0, 1)"})
    assert Logistic(priors={"sd": "HalfCauchy(1)"}).profiled["sd"].median == 1


def as_variance(self, outer, data):
    return Logistic.log_marginal(self, {**outer, "sd": np.sqrt(outer["sd"])}, data)


def permuted(self, outer, data):
    given = Logistic.posterior_given(self, outer, data)["u"]
    return Posterior.of_rows("u", SimpleNamespace(logpdf=lambda u: given.logpdf(np.roll(u, 1, axis=-1))))


def unscaled(self, outer, data):
    return Logistic.log_marginal(self, outer, data) + np.log(np.sqrt(1 + np.square(outer["sd"])))


Poisson = bz.find("poisson_intercepts")
COUNTS = {"y": RNG.poisson(4, 13), "exposure": RNG.uniform(0.5, 3, 13), "x": ROWS["x"], "group": GROUPS}


def test_counts_have_scipy_s_integrals_and_without_spread_are_a_poisson_regression():
    model, data, w = Poisson(t0=0.8), bz.read(Poisson, COUNTS), np.array([1.1, -0.3])

    def density(group, sd):
        own = COUNTS["group"] == group
        means = np.asarray(COUNTS["exposure"])[own] * np.exp(w[0] + w[1] * COUNTS["x"][own])
        return lambda u: stats.norm.pdf(u, 0, sd) * np.prod(stats.poisson.pmf(COUNTS["y"][own], means * np.exp(u)))

    for sd in (0.3, 1.5):
        expected = sum(np.log(integral(density(group, sd), sd)) for group in data["group"].tolist())
        assert model.log_marginal({"w": w, "sd": sd}, data) == pytest.approx(expected, abs=1e-9)
    plain = bz.find("poisson_regression")()
    rows = plain.concave(bz.read(plain, {name: COUNTS[name] for name in ("y", "exposure", "x")}))
    expected = rows.values(rows.place({"w": w[None]}))[0]
    assert model.log_marginal({"w": w, "sd": 0.0}, data) == pytest.approx(expected, abs=1e-9)


def log_integral_of_counts(eta, y, sd):
    """The log integral over an intercept, by SciPy's quad about the mode by its bounded search."""

    def log_height(u):
        return stats.norm.logpdf(u, 0, sd) + np.sum(y * (eta + u) - np.exp(eta + u)) - gammaln(y + 1).sum()

    low, high = min(-np.max(eta) - 9.0, -9 * sd), max(0.0, np.log(y.sum() + 1) - np.min(eta)) + 9 * sd
    mode = optimize.minimize_scalar(lambda u: -log_height(u), bounds=(low, high), options={"xatol": 1e-12}).x
    width = 1 / np.sqrt(sd**-2 + np.exp(eta + mode).sum())
    ends = mode - 12 * width, mode + 12 * width
    return log_height(mode) + np.log(integrate.quad(lambda u: np.exp(log_height(u) - log_height(mode)), *ends)[0])


@pytest.mark.parametrize("sd", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("height", [5.0, 40.0, 300.0, 650.0])
@pytest.mark.parametrize("counts", [(0, 0), (0, 7), (30_000, 102_156)])
def test_integrals_of_counts_are_right_far_above_them(sd, height, counts):
    # Newton steps go down by 1 there: 200 did not reach the mode, and the integral came out infinite
    data = bz.read(Poisson, {"y": counts, "x": [0.0, 1.0], "group": ["a", "a"]})
    w, eta = np.array([height, -1.5]), height + np.array([0.0, -1.5])
    expected = log_integral_of_counts(eta, np.array(counts), sd)
    assert Poisson(t0=0.8).log_marginal({"w": w, "sd": sd}, data) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_a_climb_passes_points_far_above_the_counts():
    rng = np.random.default_rng([86, *Poisson.name.encode()])
    model = off_default(Poisson)
    data = bz.read(model, model.simulate(rng, 20)[1])
    peak = model.concave(data, sd=4.0).highest()
    assert peak.slope < 1e-6
    assert np.isfinite(peak.there.value)


def test_equal_rows_of_a_group_are_pooled_without_a_change():
    rows = {"y": [2, 0, 3, 1, 4], "exposure": [1.0, 2, 0.5, 1, 3], "x": [1.0, 1, 1, 0, 0], "group": list("aaabb")}
    data, apart = bz.read(Poisson, rows), {**rows, "x": np.array(rows["x"]) + 1e-9 * np.arange(5)}
    model, outer = Poisson(), {"w": np.array([0.4, 0.2]), "sd": 0.7}
    assert len(model.sorted_rows(data).order) == 2
    expected = model.log_marginal(outer, bz.read(Poisson, apart))
    assert model.log_marginal(outer, data) == pytest.approx(expected, abs=1e-7)


def test_a_climb_on_scipy_s_integrals_is_no_higher_than_the_mle_of_counts():
    data = bz.read(Poisson, COUNTS)
    mode = highest(Poisson.weak(data), data, flat=True)
    assert all(check.passed for check in mode.checks)
    best = mode.rows.values(mode.peak.x[None])[0]
    near = [{"w": mode.params["w"] + step, "sd": max(mode.params["sd"] + step[0], 0)} for step in np.eye(2) * 0.05]
    assert all(Poisson().log_marginal(params, data) < best for params in near)


class Uncorrected(MarginalRows):
    """The curvature of the rows without what the intercepts take of it."""

    def derivatives(self, u):
        there = super().derivatives(u)
        return there._replace(curvature=there.curvature + np.eye(self.size))


def uncorrected(self, data, **profiled):
    return Uncorrected(**vars(Logistic.concave(self, data, **profiled)))


BUGS = {
    "the scale of the integral": ("marginalized_density", {"log_marginal": unscaled}),
    "sd taken for a variance": ("marginalized_density", {"log_marginal": as_variance}),
    "groups permuted": ("conditional_candidate", {"posterior_given": permuted}),
    "curvature": ("concave_derivatives", {"concave": uncorrected}),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_identity_sees_the_bug(bug):
    """Declares a model of few rows."""
    function, methods = BUGS[bug]
    broken = type("LogisticIntercepts", (Logistic,), {**methods, "name": Logistic.name})
    identity = next(own for own in IDENTITIES if own.function == function)
    assert not run_identity(identity, Case(broken(tau=1.5, s0=2.0, t0=1.2), read())).passed


@pytest.mark.slow
def test_chains_have_the_posterior_of_a_grid():
    """Samples; the grid is over intercept and sd, of the density that SciPy's integrals are held to."""
    table = {name: bz.example(Logistic)[name] for name in ("y", "trials")}
    rows = {**table, "group": bz.example(Logistic)["group"][bz.example(Logistic)["group_code"]]}
    model, data = Logistic(s0=2.0, t0=1.0), bz.read(Logistic, {"successes": rows.pop("y"), **rows})
    w, sd = np.meshgrid(np.linspace(-4.5, 0, 181), np.linspace(0.005, 3, 240), indexing="ij")
    outer = {"w": w.ravel()[:, None], "sd": sd.ravel()}
    heights = model.log_marginal(outer, data) + model.log_outer_prior(outer, data)
    mass = np.exp(heights - heights.max())
    mass /= mass.sum()
    posterior = bz.fit(model, data, "nuts", seed=1)["posterior"]
    for name, values in (("w", outer["w"][:, 0]), ("sd", outer["sd"])):
        mean = mass @ values
        spread = np.sqrt(mass @ np.square(values - mean))
        assert posterior[name].mean().item() == pytest.approx(mean, abs=0.1 * spread)
        assert posterior[name].std().item() == pytest.approx(spread, rel=0.1)
