"""Every method against the closed form."""

import math

import mpmath
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import optimize, stats

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out as score
from bayeszoo.comparison.compare import compare
from bayeszoo.compile.density import Density
from bayeszoo.data.inputs import Real
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.fit import methods_for
from bayeszoo.foundation.gate import at_least, at_most, pareto_k
from bayeszoo.foundation.numerics.optimize import MAX_DISTANCE, describe, distance_checks, maximize, polished
from bayeszoo.inference.engine.approximation import Gaussian, assess
from bayeszoo.inference.methods import smc
from bayeszoo.inference.methods.advi import _fixed_draws
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.results.stored import Fit
from tests.bad_models.grouped import Grouped
from tests.refusals import raises

M = bz.find("beta_bernoulli")
ALL = methods_for(M)
PLACENTA = {"successes": [437], "trials": [980]}


def rows(successes, total):
    return {"y": np.repeat([1, 0], [successes, total - successes])}


@pytest.fixture(scope="module")
def placenta():
    """Return one fit by every method."""
    options = {"smc": {"draws": 500}}  # SMC costs seconds of CPU on a single coin
    return {method: bz.fit(M(2, 5), PLACENTA, method, seed=1, groups=(), **options.get(method, {})) for method in ALL}


@pytest.mark.parametrize("method", ALL)
def test_provenance(placenta, method):
    tree = placenta[method]
    about = {"status": "ok", "method": method, "seed": 1, "data_digest": bz.read(M, PLACENTA).digest}
    assert about.items() <= tree.attrs.items()
    assert Fit(tree).fields == {"a": 2.0, "b": 5.0}
    assert set(Fit(tree).seconds) == {"build", "compile", "run", "measure"}
    assert {"bayeszoo", "pymc", "nutpie", "numpy", "python"} <= set(Fit(tree).versions)
    assert Fit(tree).gate["passed"] is True
    assert tree["observed_data"]["successes"].to_numpy().tolist() == [437]
    assert tree["constant_data"]["trials"].to_numpy().tolist() == [980]


def test_exact(placenta):
    closed = stats.beta(2 + 437, 5 + 543)
    exact = placenta["exact"]["exact"]["theta"]
    for name, value in {"mean": closed.mean(), "sd": closed.std(), "q025": closed.ppf(0.025)}.items():
        assert float(exact.sel(statistic=name)) == value
    assert stats.kstest(placenta["exact"]["posterior"]["theta"].to_numpy().ravel(), closed.cdf).pvalue > 1e-5


@pytest.mark.parametrize("total", [1_000, 100_000])
@pytest.mark.parametrize("method", ["advi", "fullrank_advi"])
def test_advi_converges_at_its_defaults(method, total):
    tree = bz.fit(M(), rows(3 * total // 10, total), method, seed=2)
    found = bz.summarize(tree)["theta"]
    closed = tree["exact"]["theta"]
    mean, sd = (float(closed.sel(statistic=s)) for s in ("mean", "sd"))
    assert tree.attrs["status"] == "ok"
    assert abs(found["mean"] - mean) < 0.2 * sd
    assert abs(found["sd"] / sd - 1) < 0.1
    assert Fit(tree).fact("k_hat") < 0.7
    gap = tree["exact"].attrs["log_evidence"] - Fit(tree).fact("elbo")
    assert -3 * Fit(tree).fact("elbo_se") < gap < 0.05


def test_elbo_is_a_bound_and_evidence_by_laplace_and_smc_is_close(placenta):
    exact = placenta["exact"]["exact"].attrs["log_evidence"]
    for method in ("advi", "fullrank_advi", "laplace"):
        assert Fit(placenta[method]).fact("elbo") <= exact + 3 * Fit(placenta[method]).fact("elbo_se")
    assert Fit(placenta["laplace"]).fact("log_evidence") == pytest.approx(exact, abs=0.01)
    smc = Fit(placenta["smc"])
    assert abs(smc.fact("log_evidence") - exact) < 4.4 * max(smc.fact("log_evidence_mcse"), 0.01)


def test_point_estimates_are_the_closed_forms(placenta):
    at_map, at_mle = (placenta[method]["posterior"]["theta"].item() for method in ("map", "mle"))
    assert (at_map, at_mle) == ((2 + 437 - 1) / (2 + 5 + 980 - 2), 437 / 980)
    likelihood = 437 * math.log(437 / 980) + 543 * math.log(543 / 980)
    assert Fit(placenta["mle"]).fact("log_likelihood") == pytest.approx(likelihood, rel=1e-12)
    joint = stats.beta(2, 5).logpdf(at_map) + 437 * math.log(at_map) + 543 * math.log1p(-at_map)
    assert Fit(placenta["map"]).fact("log_joint") == pytest.approx(joint, rel=1e-12)
    assert Fit(placenta["map"]).facts["mode_space"] == "constrained (no Jacobian)"
    assert Fit(placenta["laplace"]).facts["mode_space"] == "unconstrained (with Jacobian)"


def test_flat_posterior_has_no_mode():
    with raises(bz.NumericalError, "no_maximum", "theta"):
        M().map(M().statistics({"y": np.array([], dtype=int)}))


def test_a_wrong_closed_form_estimate_does_not_pass():
    wrong = type("Wrong", (M,), {"map": M.mle})
    assert bz.fit(wrong(20, 1), rows(3, 10), "map").attrs["status"] == "failed"


def test_optimizer_agrees_with_scipy():
    """The route of models without closed forms: on PyMC's density, against SciPy on a density written by hand."""
    density = Density(M(2, 5).declare(rows(30, 100)))
    mode = maximize(density.constrained_joint, density.start)
    negative = lambda t: -(stats.beta(2, 5).logpdf(t) + 30 * math.log(t) + 70 * math.log1p(-t))  # noqa: E731
    options = {"bounds": (1e-9, 1 - 1e-9), "method": "bounded", "options": {"xatol": 1e-12}}
    by_hand = optimize.minimize_scalar(negative, **options)
    assert float(density.constrain(mode.x)["theta"]) == pytest.approx(by_hand.x, abs=1e-6)
    assert mode.value == pytest.approx(-by_hand.fun, rel=1e-12)
    assert mode.distance < 1e-5


def test_distance_is_the_newton_decrement_and_a_saddle_is_not_a_maximum():
    quadratic = lambda curvature: lambda x: (float(-x @ curvature @ x / 2), -curvature @ x)  # noqa: E731
    precision, x = np.linalg.inv(np.array([[1.0, 0.999], [0.999, 1.0]])), np.array([0.01, -0.01])
    assert describe(quadratic(precision), x).distance == pytest.approx(math.sqrt(x @ precision @ x), rel=1e-6)
    saddle = np.array([[1.0, 2.0], [2.0, 1.0]])  # of curvatures 3 and -1
    assert describe(quadratic(saddle), np.zeros(2)).distance == math.inf


def test_newton_steps_reach_a_maximum_though_the_value_is_rounded_and_seems_to_fall():
    rounded = lambda x: (float(-x @ x / 2) + 1e-6 * math.cos(1e9 * x[0]), -x)  # noqa: E731
    start = describe(rounded, np.array([2e5 * math.pi * 1e-9]))  # where the rounding adds the most
    assert start.distance > MAX_DISTANCE
    assert polished(rounded, start).distance < 1e-3 * MAX_DISTANCE


def test_newton_steps_do_not_leave_a_kink_for_a_point_that_looks_stationary_by_differences():
    """Differences over 0.001 see a slope of 0 at 0.0003 from a kink, which is 1e-4 nats higher."""
    height = lambda x: -abs(x[0]) - 0.3 * x[0]  # noqa: E731
    kinked = lambda x: (height(x), np.array([height(x + 1e-3) - height(x - 1e-3)]) / 2e-3)  # noqa: E731
    assert polished(kinked, describe(kinked, np.zeros(1), steps=1e-4), steps=1e-4).distance > MAX_DISTANCE


def test_newton_steps_do_not_make_a_point_of_a_rising_density_stationary():
    rising = lambda x: (float(-np.exp(-x[0])), np.exp(-x))  # noqa: E731
    ended = polished(rising, describe(rising, np.array([10.0])))
    assert [check.verdict for check in distance_checks(ended)] == ["failed"]


@pytest.mark.parametrize("constant", [0.0, -1e8])
def test_advi_does_not_depend_on_a_constant(constant):
    class Shifted(M):
        def compressed(self, stats):
            model = super().compressed(stats)
            with model:
                pm.Potential("shift", pt.as_tensor(np.float64(constant)))
            return model

    tree = bz.fit(Shifted(2, 5), PLACENTA, "advi", seed=1)
    assert tree.attrs["status"] == "ok"
    assert bz.summarize(tree)["theta"]["mean"] == pytest.approx(stats.beta(439, 548).mean(), abs=1e-3)


def test_data_of_another_model_are_checked_again():
    real = bz.read(type("Measured", (M,), {"inputs": Real("y"), "examples": ()}), [0.7, 1.9, -3.0])
    for data in (real, bz.Data({"y": np.array([0.6, 0.9, 1.9])})):
        with raises(bz.InputError, "not_binary", "0", "1"):
            bz.fit(M(), data, "exact")
    assert bz.read(M, bz.Data({"y": np.array([0.0, 1.0])}))["y"].tolist() == [0, 1]


def test_fits_under_different_priors_are_told_apart():
    table = compare([bz.fit(M(), PLACENTA, "exact"), bz.fit(M(20, 5), PLACENTA, "exact")])
    assert table["fit"].tolist() == ["exact beta_bernoulli(a=1, b=1)", "exact beta_bernoulli(a=20, b=5)"]


def test_infinite_moments_are_not_a_failure():
    heavy = type("Heavy", (M,), {"posterior": lambda *_: Posterior({"theta": stats.t(2)})})
    tree = bz.fit(heavy(), PLACENTA, "exact")
    assert tree.attrs["status"] == "ok"
    assert bz.summarize(tree)["theta"]["sd"] == math.inf


def test_leave_one_out_of_a_row_that_says_nothing():
    def likelihood(self, params, data):
        return stats.binom(1, np.full((*np.shape(params["theta"]), len(data["y"])), 0.25))

    data, constant = bz.read(M, PLACENTA), type("Constant", (M,), {"likelihood": likelihood})
    found = score.psis(constant(), data, Fit(bz.fit(M(), data, "exact")).draws())
    assert found.mean == pytest.approx((437 * math.log(0.25) + 543 * math.log(0.75)) / 980)


def test_k_hat_is_computed_the_right_way():
    """VERIFICATION 1.6: a normal whose weights have Pareto shape 1 - 1/s^2 exactly, s being the true sd over q's."""
    rng = np.random.default_rng(0)
    for s in (1.25, 1.5, 2.0):
        x = rng.standard_normal(100_000)
        log_weights = stats.norm(0, s).logpdf(x) - stats.norm.logpdf(x)
        assert pareto_k(log_weights) == pytest.approx(1 - 1 / s**2, abs=0.15)
    assert pareto_k(np.full(100, 3.0)) == -math.inf
    assert math.isnan(pareto_k(np.array([0.0, np.nan, 1.0])))


def test_elbo_has_every_constant():
    """A Gaussian approximation to a Gaussian joint density: the ELBO is the log normalizer less a known divergence."""
    joint = lambda x: (float(stats.norm.logpdf(x, 1, 2).sum() + 5.0), -(x - 1) / 4)  # noqa: E731
    exact = assess(Gaussian(np.array([1.0]), np.array([[2.0]])), joint, np.random.default_rng(0))
    assert exact["elbo"] == pytest.approx(5.0, abs=1e-12)
    assert exact["k_hat"] == -math.inf
    narrow = assess(Gaussian(np.array([1.0]), np.array([[1.0]])), joint, np.random.default_rng(0))
    divergence = math.log(2) + 1 / 8 - 1 / 2
    assert narrow["elbo"] == pytest.approx(5.0 - divergence, abs=4.4 * narrow["elbo_se"])


def test_discrete_variables_are_refused():
    with pm.Model() as model:
        pm.Bernoulli("z", np.float64(0.5))
    with raises(bz.InputError, "discrete_variables", "z"):
        Density(model)


def test_a_seed_may_be_a_generator():
    first = bz.fit(M(), PLACENTA, "exact", seed=np.random.default_rng(7))
    again = bz.fit(M(), PLACENTA, "exact", seed=first.attrs["seed"])
    assert first["posterior"].identical(again["posterior"])
    with raises(bz.InputError, "wrong_type", "seed", "0"):
        bz.fit(M(), PLACENTA, "exact", seed=-1)


def test_compare(placenta):
    table = compare(placenta.values()).set_index("method")
    assert set(table["parameter"]) == {"theta"}
    assert np.isnan(table.loc["exact", "error_mcse"])
    assert abs(table.loc["nuts", "error_mcse"]) < 4.4
    assert table.loc["smc", "evidence_gap"] == pytest.approx(0, abs=0.1)
    # plug-in against integrated, by hand: leave one success, or one failure, out
    integrated = (437 * math.log((2 + 436) / 986) + 543 * math.log((5 + 542) / 986)) / 980
    plugged_in = (437 * math.log((2 + 435) / 984) + 543 * math.log((5 + 541) / 984)) / 980
    assert table.loc["exact", "loo_score"] == pytest.approx(integrated, rel=1e-12)
    assert table.loc["map", "loo_score"] == pytest.approx(plugged_in, rel=1e-12)
    assert 0 < table.loc["nuts", "loo_mcse"] < 1e-4
    assert abs(table.loc["nuts", "loo_score"] - integrated) < 4.4 * table.loc["nuts", "loo_mcse"]


def test_monte_carlo_error_of_the_loo_score_is_calibrated():
    """Twenty independent fits: errors against the closed form, in their own standard errors, are standard normal."""
    data = bz.read(M, {"successes": [5], "trials": [20]})
    exact = score.closed_form(M(), data)
    draws = [Fit(bz.fit(M(), data, "exact", seed=seed)).draws() for seed in range(20)]
    found = [score.psis(M(), data, one) for one in draws]
    z = np.array([(one.mean - exact.mean) / one.mcse for one in found])
    assert np.abs(z).max() < 4.4
    assert stats.chi2(20).cdf(np.sum(z**2)) == pytest.approx(0.5, abs=0.4999)


def test_log_evidence_of_counts_and_of_rows():
    counts, ordered = bz.fit(M(), {"successes": [3], "trials": [10]}, "exact"), bz.fit(M(), rows(3, 10), "exact")
    assert Fit(counts).fact("log_evidence") == Fit(ordered).fact("log_evidence")
    # under a flat prior every number of successes out of 10 is equally likely
    assert counts["exact"].attrs["log_evidence_counts"] == pytest.approx(-math.log(11), rel=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(1, 10**15), (5 * 10**11, 10**12), (333333333, 10**12)])
def test_huge_counts_are_exact(successes, trials):
    tree = bz.fit(M(), {"successes": [successes], "trials": [trials]}, "exact")
    with mpmath.workdps(60):
        evidence = mpmath.log(mpmath.beta(1 + successes, 1 + trials - successes))
        counts = evidence + mpmath.log(mpmath.binomial(trials, successes))
        shares = [(count, mpmath.mpf(count) / (trials + 1)) for count in (successes, trials - successes)]
        loo = sum(count * mpmath.log(share) for count, share in shares) / trials
    assert Fit(tree).fact("log_evidence") == pytest.approx(float(evidence), rel=1e-12)
    assert compare([tree])["loo_score"][0] == pytest.approx(float(loo), rel=1e-9)
    assert tree["exact"].attrs["log_evidence_counts"] == pytest.approx(float(counts), rel=1e-9)


def test_prediction_far_from_the_draws_is_withheld(placenta):
    new = {"successes": [3, 600_000], "trials": [10, 1_000_000]}
    exact, sampled = bz.predict(placenta["exact"], new), bz.predict(placenta["nuts"], new)
    error = (sampled["log_score"] - exact["log_score"])[1]
    assert abs(error) < 4.4 * sampled["mcse_log_score"][1]
    assert np.isnan(sampled["log_score"][2])
    assert exact["log_score"][2] < -50


def test_a_quantile_below_the_smallest_double_is_0():
    tree = bz.fit(M(1e-3, 1e-3), rows(0, 10), "exact")
    assert tree.attrs["status"] == "ok"
    assert bz.summarize(tree)["theta"]["q025"] == 0


@pytest.mark.slow
def test_smc_sees_its_own_bias():
    """Runs at one threshold scatter by 0.02 and are all off by 0.2: the error beside the number must cover that."""
    for seed in range(2):
        tree = bz.fit(M(), {"successes": [1], "trials": [10**6]}, "smc", seed=seed)
        error = abs(Fit(tree).fact("log_evidence") - tree["exact"].attrs["log_evidence"])
        assert tree.attrs["status"] != "ok" or error < 4.4 * Fit(tree).fact("log_evidence_mcse")


@pytest.mark.parametrize(
    ("method", "code"), [("advi", "not_finite"), ("fullrank_advi", "not_finite"), ("smc", "impossible_data")]
)
def test_data_that_the_model_cannot_give_are_said_in_a_line(monkeypatch, method, code):
    def impossible(model, data, declare=Grouped.declare):
        with declare(model, data) as declared:
            pm.Potential("impossible", pm.math.log(declared["mu"][0] * 0))
        return declared

    monkeypatch.setattr(Grouped, "declare", impossible)
    with raises(bz.NumericalError, code) as caught:
        bz.fit(Grouped(), [0, 1, 2], method, seed=1)
    assert "\n" not in str(caught.value)


def test_fixed_draws_have_mean_zero_and_unit_covariance_and_are_normal():
    draws = _fixed_draws(8, 3, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(np.cov(draws.T, ddof=0), np.eye(3), atol=1e-12)
    assert stats.kstest(draws.ravel(), "norm").pvalue > 0.01


def test_smc_that_pymc_stops_names_another_method(monkeypatch):
    """PyMC stops where particles of a heavy-tailed prior are so far apart that their covariance has no inverse."""

    def stops(*args, **options):
        raise ValueError("the input matrix must be symmetric positive definite.")

    monkeypatch.setattr(pm, "sample_smc", stops)
    with raises(bz.NumericalError, "sampler_stopped", "definite; use nuts"):
        bz.fit(bz.find("beta_bernoulli")(), [0, 1], "smc", seed=1, groups=())


def test_smc_is_repeated_with_twice_the_particles_or_finer_tempering(monkeypatch):
    made = []

    def attempt(problem, draws, chains, threshold, coarse):
        made.append((draws, threshold, coarse))
        few = [at_least("ess_bulk", 10.0 if len(made) < 3 else 1000.0, 400.0), at_most(smc.TEMPERING, 0.2, 0.1)]
        return Outcome({}, "SMC", few), "finer"

    monkeypatch.setattr(smc, "_attempt", attempt)
    problem = Problem(M(), bz.read(M, PLACENTA), np.random.default_rng(0))
    smc.run(problem, draws=100, threshold=0.8)
    assert made == [(100, 0.8, None), (200, 0.8, None), (400, 0.8, None)]
    made += [None]  # of the next attempts only the tempering has not passed
    smc.run(problem, draws=100, threshold=0.8)
    assert made[4:] == [(100, 0.8, None), (100, pytest.approx(0.95), "finer"), (100, pytest.approx(0.9875), "finer")]


@pytest.mark.parametrize(
    ("name", "fields", "data", "method"),
    [
        ("beta_bernoulli", {"a": 0.5, "b": 0.5}, [1, 1, 1], "exact"),
        ("gamma_poisson", {"a": 0.5}, [0, 0], "exact"),
        ("gaussian_mixture", {"alpha": 0.5}, [0.0, 0.1, 5.0, 5.2], "vb"),
    ],
)
def test_a_density_without_a_mode_names_a_method_that_needs_none(name, fields, data, method):
    model = bz.find(name)(**fields)
    with raises(bz.NumericalError, "no_maximum", f"try {method}"):
        bz.fit(model, data, "map", seed=1)
    assert bz.fit(model, data, method, seed=1, groups=()).attrs["status"] in ("ok", "caution", "failed")
