"""Evidence on grids, and fields integrated out: against SciPy's quadrature, closed forms and densities."""

import json
import math
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import scipy
from bayeszoo.models.dirichlet_multinomial import DirichletMultinomial
from bayeszoo.models.gaussian_mean import GaussianMean
from bayeszoo.models.normal_gamma import NormalGamma
from bayeszoo.models.normal_inverse_wishart import NormalInverseWishart
from bayeszoo.models.ridge import Ridge

import bayeszoo as bz
from bayeszoo.distributions.averages import grid_moments
from bayeszoo.distributions.priors import LogUniform
from bayeszoo.foundation.gate import failures
from bayeszoo.foundation.numerics import grid as rules
from bayeszoo.model.outer.coordinates import OuterCoordinates
from bayeszoo.model.outer.integration import integrate
from bayeszoo.results.stored import Fit
from tests.refusals import raises

full = sys.modules["bayeszoo.comparison.evidence.full_bayes"]

Y = np.random.default_rng(0).normal(3, 2, 8)
SMALL = (
    np.array([[0.2, 1.0], [1.1, -0.4], [-0.7, 0.3], [2.0, 0.8], [-1.5, 1.2], [0.4, -2.0], [0.9, 0.1], [-0.3, -0.6]]),
    np.array([1.9, 2.4, 0.2, 4.6, -0.9, 0.3, 2.2, 0.1]),
)
A, B, KAPPA, M0 = 3.0, 5.0, 0.7, 2.5
SCALE = B + Y.var() * len(Y) / 2 + KAPPA * len(Y) * (Y.mean() - M0) ** 2 / (2 * (KAPPA + len(Y)))
QUANTILES = {"q025": 0.025, "median": 0.5, "q975": 0.975}


def normal(y, m0, s0, sigma):
    """The density of rows with a common mean, by SciPy."""
    return scipy.stats.multivariate_normal(np.full(len(y), m0), sigma**2 * np.eye(len(y)) + s0**2).pdf(y)


def ridge_density(tau, sigma, s0=3.0):
    """The density of the rows from their dense covariance."""
    X, y = SMALL
    cov = tau**2 * X @ X.T + s0**2 + sigma**2 * np.eye(len(y))
    return math.exp(-(y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2 * np.pi * cov)[1]) / 2)


def ok(found):
    assert failures(found.checks) == ""
    assert (found.status, found.reasons) == ("ok", [])
    return found


def test_a_grid_holds_scipy_s_evidence_at_equal_ratios_and_distances():
    grid = bz.evidence_grid(GaussianMean(s0=3), Y, {"sigma": (0.5, 8), "m0": (-1, 3)}, points=5)
    assert grid.sigma.values == pytest.approx([0.5, 1, 2, 4, 8], rel=1e-13)
    assert grid.m0.values == pytest.approx([-1, 0, 1, 2, 3], rel=1e-13)
    assert grid.log_evidence.dims == ("sigma", "m0")
    expected = [[math.log(normal(Y, m0, 3, sigma)) for m0 in grid.m0.values] for sigma in grid.sigma.values]
    assert grid.log_evidence.values == pytest.approx(np.array(expected), rel=1e-12)
    model = NormalInverseWishart.weak(bz.example(NormalInverseWishart))
    lowest = len(model.Psi0) - 1  # a field with a lower bound stays above it
    assert np.isfinite(bz.evidence_grid(model, over={"nu0": (lowest + 0.01, 50.0)}, points=9).log_evidence).all()
    with raises(bz.InputError, "out_of_range", "nu0", lowest):
        bz.evidence_grid(model, over={"nu0": (lowest, 50.0)})


@dataclass(frozen=True)
class Scaled(GaussianMean):
    """A mean whose prior is worth KAPPA observations: with a gamma prior of the precision, the normal-gamma model."""

    def _own(self):
        return GaussianMean(self.m0, self.sigma / math.sqrt(KAPPA), self.sigma)

    def log_evidence(self, stats):
        return self._own().log_evidence(stats)

    def posterior(self, stats):
        return self._own().posterior(stats)


def log_precision_prior(sigma):
    """1 / sigma^2 ~ Gamma(A, rate B), as a density of sigma."""
    return scipy.stats.invgamma(A, scale=B).logpdf(sigma**2) + math.log(2 * sigma)


def integrated():
    return bz.full_bayes(Scaled(m0=M0), Y, "sigma", log_prior=log_precision_prior)


def evidence_is_student_t(found):
    spread = B / A * (np.eye(len(Y)) + 1 / KAPPA)
    expected = scipy.stats.multivariate_t(np.full(len(Y), M0), spread, 2 * A).logpdf(Y)
    return abs(found.log_evidence - expected) < 1e-10


def test_a_known_sigma_with_a_prior_is_the_normal_gamma_model():
    found = ok(integrated())
    assert evidence_is_student_t(found)
    n, kappa = len(Y), KAPPA + len(Y)
    mu = scipy.stats.t(2 * A + n, (KAPPA * M0 + Y.sum()) / kappa, math.sqrt(SCALE / (A + n / 2) / kappa))
    assert [found.parameters["mu"][key] for key in ("mean", "sd")] == pytest.approx([mu.mean(), mu.std()], rel=1e-10)
    assert found.prior_mass == pytest.approx(1, abs=1e-9)
    variance, sigma = scipy.stats.invgamma(A + len(Y) / 2, scale=SCALE), found.fields["sigma"]
    mean = variance.expect(math.sqrt, epsabs=0, epsrel=1e-12)
    assert sigma["mean"] == pytest.approx(mean, rel=1e-9)
    assert sigma["sd"] == pytest.approx(math.sqrt(variance.mean() - mean**2), rel=1e-8)
    expected = [math.sqrt(variance.ppf(q)) for q in QUANTILES.values()]
    assert [sigma[name] for name in QUANTILES] == pytest.approx(expected, rel=1e-5)


def test_a_forgotten_variance_between_or_jacobian_is_seen(monkeypatch):
    add = grid_moments._Sums.add

    def within_only(self, masses, height, faces, means, sds):
        add(self, masses, height, faces, 0 * means + np.tensordot(masses[0], means, 1), sds)

    with monkeypatch.context() as patch:
        patch.setattr(grid_moments._Sums, "add", within_only)
        assert not weight_is_scipy_s(bz.full_bayes(GaussianMean(m0=0, s0=2), Y, "sigma"))
    monkeypatch.setattr(OuterCoordinates, "log_slope", lambda self, points: np.zeros(points.shape[:-1]))
    assert not evidence_is_student_t(integrated())


def weight_is_scipy_s(found):
    """Mean and sd of mu by SciPy's integrals over log sigma of the moments given it."""
    (low, high), s0, n = found.bounds["sigma"], 2.0, len(Y)

    def moment(function):
        def height(u):
            variance = 1 / (n / math.exp(2 * u) + 1 / s0**2)
            return normal(Y, 0, s0, math.exp(u)) * function(variance * Y.sum() / math.exp(2 * u), variance)

        inner = dict(epsabs=0, epsrel=1e-11, limit=200, points=[math.log(Y.std())])
        return scipy.integrate.quad(height, math.log(low), math.log(high), **inner)[0]

    whole = moment(lambda mean, variance: 1)
    mean = moment(lambda mean, variance: mean) / whole
    sd = math.sqrt(moment(lambda mean, variance: variance + mean**2) / whole - mean**2)
    return np.allclose([found.parameters["mu"]["mean"], found.parameters["mu"]["sd"]], [mean, sd], rtol=1e-7)


def test_the_laws_of_total_expectation_and_variance():
    found = ok(bz.full_bayes(GaussianMean(m0=0, s0=2), Y, "sigma"))
    assert weight_is_scipy_s(found)
    best = bz.empirical_bayes(GaussianMean(m0=0, s0=2), Y, "sigma")
    mu = best.model.posterior(best.model.statistics({"y": Y}))["mu"]
    assert found.parameters["mu"]["plug_in_mean"] == pytest.approx(mu.mean(), rel=1e-12)
    assert found.parameters["mu"]["plug_in_sd"] == pytest.approx(mu.std(), rel=1e-12)
    assert found.parameters["mu"]["sd"] > 1.05 * found.parameters["mu"]["plug_in_sd"]
    assert found.bounds["sigma"] == pytest.approx((best.model.sigma / 100, best.model.sigma * 100))


@pytest.fixture(scope="module")
def ridge():
    return bz.full_bayes(Ridge(s0=3), SMALL, ["tau", "sigma"])


@pytest.mark.slow
def test_two_fields_of_ridge_are_scipy_s_double_integral(ridge):
    ends = [math.log(end) for name in ("tau", "sigma") for end in ridge.bounds[name]]

    def integral_of(function):
        def height(v, u):
            return ridge_density(math.exp(u), math.exp(v)) * function(math.exp(u), math.exp(v))

        box = *ends[:2], -3.5, ends[3]  # below, the density is less than 1e-9 of its peak
        return scipy.integrate.dblquad(height, *box, epsabs=0, epsrel=1e-7)[0]

    whole = integral_of(lambda tau, sigma: 1)
    evidence = whole / ((ends[1] - ends[0]) * (ends[3] - ends[2]))
    assert ok(ridge).log_evidence == pytest.approx(math.log(evidence), abs=1e-5)
    sigma = integral_of(lambda tau, sigma: sigma) / whole
    assert ridge.fields["sigma"]["mean"] == pytest.approx(sigma, rel=1e-4)


def test_moments_that_the_bounds_decide_are_withheld(ridge):
    """Of two weights: the posterior of tau falls as 1 / tau^3, and has no variance without bounds."""
    tau = ridge.fields["tau"]
    assert math.isnan(tau["mean"])
    assert math.isnan(tau["sd"])
    assert tau["q025"] < tau["median"] < tau["q975"]
    assert np.isfinite(ridge.parameters["w"]["sd"]).all()
    assert "mean and sd of tau are withheld: 0.3" in repr(ridge)


def test_a_real_field_has_a_uniform_prior_between_its_bounds():
    found = ok(bz.full_bayes(GaussianMean(s0=1, sigma=2), Y, "m0", bounds={"m0": (-20.0, 30.0)}))
    area = scipy.integrate.quad(lambda m0: normal(Y, m0, 1, 2), -20, 30, epsabs=0, epsrel=1e-11, points=[Y.mean()])[0]
    assert found.log_evidence == pytest.approx(math.log(area / 50), abs=1e-9)
    assert found.fields["m0"]["mean"] == pytest.approx(Y.mean(), rel=1e-9)
    assert found.fields["m0"]["sd"] == pytest.approx(math.sqrt(4 / len(Y) + 1), rel=1e-9)


def test_a_sharp_posterior_between_wide_bounds():
    y = np.random.default_rng(1).normal(1e6, 3, 100_000)
    found = ok(bz.full_bayes(GaussianMean(m0=1e6, s0=1e3), y, "sigma"))
    shape = (len(y) - 1) / 2  # sigma^2 ~ InvGamma(shape, half the squares): the prior of mu is all but flat
    mean = math.sqrt(y.var() * len(y) / 2) * math.exp(scipy.special.gammaln(shape - 0.5) - scipy.special.gammaln(shape))
    assert found.fields["sigma"]["mean"] == pytest.approx(mean, rel=1e-8)
    assert found.fields["sigma"]["sd"] == pytest.approx(y.std() / math.sqrt(2 * len(y)), rel=1e-3)


def test_a_plateau_is_not_integrated_without_a_word():
    model = GaussianMean(m0=Y.mean(), sigma=2)
    with raises(bz.Untrustworthy, "no_maximum", "s0"):
        bz.full_bayes(model, Y, "s0")
    found = bz.full_bayes(model, Y, bounds={"s0": (1e-3, 1e3)})
    assert found.status == "at the bounds"
    assert "near the lower bound of s0" in repr(found)
    assert found.edges["s0"][0] > 0.1 > found.edges["s0"][1]
    assert found.parameters["mu"]["plug_in_mean"] is None


def test_a_tail_that_the_bounds_cut_is_not_passed_over():
    """The posterior of sigma given two rows falls as 1 / sigma^2: its variance is what the bound makes it."""
    found = bz.full_bayes(GaussianMean(m0=0, s0=1e-3), [1.0, -1.2], "sigma", bounds={"sigma": (1e-3, 1e6)})
    assert max(found.edges["sigma"]) < 1e-3
    assert found.variance_near_bounds["sigma"] > 0.1
    assert math.isnan(found.fields["sigma"]["sd"])
    assert found.notes[0].startswith("mean and sd of sigma are withheld")
    found = bz.full_bayes(NormalGamma(alpha0=0.2, mu0=0), [1.0], bounds={"beta0": (0.01, 100)})
    assert np.isfinite(found.parameters["mu"]["mean"])
    assert np.isnan(found.parameters["mu"]["sd"])  # a moment that is infinite at every point is withheld


def test_the_share_of_a_variance_that_comes_from_near_the_bounds():
    """Of N(-1, 2^2) near a bound and 1 inside, in equal parts about 0: 5 of 6, by hand; of two points 1 of 2."""
    mass, near, means = np.array([0.5, 0.5]), np.array([True, False]), np.array([[-1.0, -1.0], [1.0, 1.0]])
    share = full._share_near(mass, near, means, np.array([[2.0, 0.0], [0.0, 0.0]]))
    assert share == pytest.approx([5 / 6, 1 / 2], rel=1e-14)


def test_halving_tells_that_a_grid_is_too_coarse(monkeypatch):
    monkeypatch.setattr(rules, "INTERVALS", {1: (6, 12), 2: (6, 12)})
    found = bz.full_bayes(GaussianMean(m0=0, s0=2), Y, "sigma")
    assert found.status == "not converged"
    assert found.log_evidence_error > 1e-4
    assert "when the grid is halved" in repr(found)


class Made(GaussianMean):
    def log_evidence(self, stats):
        return math.nan if 5 < self.sigma < 6 else super().log_evidence(stats)


@pytest.mark.slow
def test_places_without_an_evidence_are_seen():
    found = bz.full_bayes(Made(s0=2), Y, bounds={"sigma": (0.01, 100)})
    assert found.status != "ok"
    assert "drop_at_bounds" in [check.name for check in found.checks if not check.passed]


def test_an_integral_is_of_the_places_that_have_an_evidence(monkeypatch):
    class Cut(GaussianMean):
        def log_evidence(self, stats):
            return math.nan if self.sigma > 30 else super().log_evidence(stats)

    monkeypatch.setattr(rules, "INTERVALS", {1: (64, 128), 2: (6, 12)})
    found = bz.full_bayes(Cut(m0=0, s0=2), Y, bounds={"sigma": (0.01, 300)})
    area = scipy.integrate.quad(lambda u: normal(Y, 0, 2, math.exp(u)), math.log(0.01), math.log(30), points=[1.0])[0]
    assert found.log_evidence == pytest.approx(math.log(area / math.log(300 / 0.01)), abs=1e-3)


def test_a_grid_has_no_number_where_there_is_no_evidence():
    grid = bz.evidence_grid(Made(s0=2), Y, {"sigma": (4.5, 6.5)}, points=5).log_evidence.values
    assert np.isnan(grid).tolist() == [False, False, True, True, False]
    assert np.isfinite(grid).sum() == 3


@pytest.mark.slow
def test_a_hard_edge_of_the_prior_is_integrated_or_shows():
    uniform = {"log_prior": lambda sigma: -math.log(2) if 1 < sigma < 3 else -math.inf}
    found = bz.full_bayes(GaussianMean(s0=3), Y, bounds={"sigma": (0.5, 6.0)}, **uniform)
    area = scipy.integrate.quad(lambda sigma: normal(Y, 0, 3, sigma) / 2, 1, 3)[0]
    assert abs(found.log_evidence - math.log(area)) < max(1e-4, 10 * found.log_evidence_error)
    assert (found.status == "ok") == (found.log_evidence_error < 1e-4)


def test_a_prior_that_is_none_is_seen():
    found = bz.full_bayes(Scaled(m0=M0), Y, "sigma", log_prior=lambda sigma: 1 + log_precision_prior(sigma))
    assert "prior probability within the bounds 2.718" in failures(found.checks)
    with raises(bz.InputError, "wrong_type", "log_prior", "sigma", "1"):
        bz.full_bayes(GaussianMean(), Y, "sigma", log_prior=lambda sigma: math.nan)


# What is refused


@pytest.mark.parametrize(
    ("model", "over", "message"),
    [
        (GaussianMean(), {}, "over which fields? gaussian_mean has m0, s0, sigma"),
        (GaussianMean(), dict.fromkeys(("m0", "s0", "sigma"), (1, 2)), "one or two fields, got m0, s0, sigma"),
        (GaussianMean(), {"q": (1, 2)}, "over q: gaussian_mean has no such numeric field"),
        (GaussianMean(), {"sigma": (2, 1)}, "the bounds of sigma: LogUniform(2, 1): low must be < high"),
        (GaussianMean(), {"sigma": (0, 1)}, "the bounds of sigma: LogUniform: low must be > 0, got 0"),
        (GaussianMean(), {"m0": (0, math.inf)}, "the bounds of m0: Uniform: high must be finite"),
        (GaussianMean(), {"m0": 3}, "the bounds of m0 must be two numbers, got 3"),
        (DirichletMultinomial(alpha=(1, 1)), {"alpha": (1, 2)}, "over alpha: it has several entries"),
        (Ridge(), {"scale": (1, 2)}, "over scale: the statistics of ridge depend on it; it cannot be optimized"),
        (Ridge(), ["tau", "sigma"], "the fields of a grid need bounds"),
    ],
)
def test_what_a_grid_is_not_over(model, over, message):
    data = SMALL if isinstance(model, Ridge) else None
    for call in (bz.evidence_grid, lambda model, data, over: bz.full_bayes(model, data, bounds=over)):
        with pytest.raises(bz.InputError) as error:
            call(model, data, over)
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *[(lambda model, points=points: bz.evidence_grid(model, Y, {"sigma": (1, 2)}, points=points),
           ("too_large", "2")) for points in (1, 2.5, True, 10_000_000)],
        (lambda model: bz.full_bayes(model, Y, "m0"), ("out_of_range", "m0")),
        (lambda model: bz.full_bayes(model, Y, "sigma", bounds={"s0": (1, 2)}), ("out_of_range", "s0")),
        (lambda model: bz.full_bayes(model, Y, "s0", plug_in=bz.empirical_bayes(model, Y, "sigma")),
         ("not_comparable", "plug_in", "sigma", "s0")),
    ],
)  # fmt: skip
def test_what_cannot_be_integrated(call, message):
    with raises(bz.InputError, *message):
        call(GaussianMean(s0=1, sigma=2))


# The command


MICHELSON = ["empirical", "gaussian_mean", "--over", "sigma", "--set", "m0=850", "--set", "s0=100", "--full"]


def test_the_command_sets_full_bayes_beside_the_plug_in(run):
    code, out, err = run(*MICHELSON)
    rows = [line.split() for line in out.splitlines()]
    found = bz.full_bayes(GaussianMean(m0=850, s0=100), over="sigma")
    sigma, mu = found.fields["sigma"], found.parameters["mu"]
    assert (code, "warning" in err, "depend on the data" in out) == (0, False, True)
    assert ["sigma", *(f"{sigma[key]:.5g}" for key in ("mean", "sd", *QUANTILES))] in rows
    assert ["mu", *(f"{float(mu[key]):.5g}" for key in ("plug_in_mean", "plug_in_sd", "mean", "sd"))] in rows
    assert f"log evidence {found.log_evidence:.2f}, fields integrated out" in out
    exactly = run(*MICHELSON, "--digits", 8)[1]
    assert ["sigma", *(f"{sigma[key]:.8g}" for key in ("mean", "sd", *QUANTILES))] in map(
        str.split, exactly.splitlines()
    )
    assert f"log evidence {found.log_evidence:.8f}, fields integrated out" in exactly
    assert "w[bmi]" in run("empirical", "ridge", "--over", "tau", "--full")[1]  # weights by the names of features
    code, _, err = run("empirical", "ridge", "--over", "tau,sigma,s0", "--full")  # refused before it climbs
    assert (code, "a grid is over one or two fields, got tau, sigma, s0" in err) == (2, True)
    document = json.loads(run(*MICHELSON, "--json")[1])["full_bayes"]
    assert (document["status"], document["gate"]["passed"]) == ("ok", True)
    assert document["log_evidence"] == pytest.approx(found.log_evidence, abs=1e-9)


def test_the_command_withholds_what_the_bounds_decide(run, monkeypatch):
    monkeypatch.setattr(full, "FACTOR", 1.05)
    code, out, err = run(*MICHELSON)
    assert code == 3
    assert "warning: full Bayes is withheld" in err
    assert "the answer depends on the bounds" in err
    assert "plug-in" not in out
    _, out, _ = run(*MICHELSON, "--json")
    found = json.loads(out)
    assert (found["status"], found["full_bayes"]["log_evidence"], found["full_bayes"]["fields"]) == ("ok", None, None)


# The same as fits


def test_full_bayes_is_the_exact_fit_of_over():
    model, data = Ridge(s0=3), bz.read(Ridge, SMALL)
    found = bz.full_bayes(model, data, bounds={"tau": (0.05, 500.0), "sigma": (0.02, 200.0)})
    own = bz.over(model, {"tau": LogUniform(0.05, 500), "sigma": "LogUniform(0.02, 200)"})
    fitted = integrate(own, data)
    assert fitted.log_evidence == pytest.approx(found.log_evidence, abs=1e-10)
    assert fitted.posterior["w"].mean() == pytest.approx(found.parameters["w"]["mean"], rel=1e-9)
    assert fitted.posterior["sigma"].ppf(0.5) == pytest.approx(found.fields["sigma"]["median"], rel=1e-6)


def test_fields_at_once_are_fields_one_by_one(monkeypatch):
    model, data = Ridge(s0=3), bz.read(Ridge, SMALL)
    own = bz.over(model, {"tau": LogUniform(0.05, 500), "sigma": LogUniform(0.02, 200)})
    outer = {"tau": np.array([0.1, 1.0, 30.0]), "sigma": np.array([0.5, 5.0, 0.1])}
    at_once, law = own.log_marginal(outer, data), own.posterior_given(outer, data)
    drawn = law.rvs((), np.random.default_rng(1))
    heights = law.logpdf(drawn)
    monkeypatch.setattr(Ridge, "along_points", ())
    slowly = own.posterior_given(outer, data)
    assert at_once == pytest.approx(own.log_marginal(outer, data), abs=1e-12)
    assert law["w"].mean() == pytest.approx(slowly["w"].mean(), rel=1e-12)
    assert law["w"].std() == pytest.approx(slowly["w"].std(), rel=1e-12)
    assert heights == pytest.approx(slowly.logpdf(drawn), rel=1e-10)


def with_fields_at_once():
    return [kind for kind in map(bz.find, bz.names()) if getattr(kind, "along_points", ())]


@pytest.mark.parametrize("kind", with_fields_at_once(), ids=lambda kind: kind.name)
def test_every_field_that_may_have_many_values_at_once_has_those_of_one_by_one(kind):
    model, data = kind.weak(bz.example(kind)), bz.example(kind)
    stats = model.statistics(data)
    for name in kind.along_points:
        values = float(getattr(model, name)) * np.array([0.5, 1.0, 3.0])
        one_by_one = [model.replaced(**{name: value}) for value in values]
        at_once, law = model.at_points({name: values}), model.at_points({name: values}).posterior(stats)
        each = [one.posterior(stats) for one in one_by_one]
        expected = [one.log_evidence(stats) for one in one_by_one]
        np.testing.assert_allclose(at_once.log_evidence(stats), expected, rtol=1e-13)
        drawn = {key: np.asarray(values) for key, values in law.rvs((), np.random.default_rng(0)).items()}
        heights = [one.logpdf({key: drawn[key][i] for key in drawn}) for i, one in enumerate(each)]
        np.testing.assert_allclose(law.logpdf(drawn), heights, rtol=1e-10)
        for key in law:
            np.testing.assert_allclose(
                np.broadcast_to(law[key].mean(), np.shape([one[key].mean() for one in each])),
                [one[key].mean() for one in each],
                rtol=1e-12,
                atol=1e-12,
            )
            np.testing.assert_allclose(
                np.broadcast_to(law[key].std(), np.shape([one[key].std() for one in each])),
                [one[key].std() for one in each],
                rtol=1e-12,
            )


def test_a_field_of_several_entries_is_several_numbers():
    """Two rates of a category each: by SciPy's integral over log alpha of the ratio of beta functions."""
    counts = bz.read(DirichletMultinomial, ["a"] * 3 + ["b"] * 7)
    own = bz.over(DirichletMultinomial(alpha=(1.0, 1.0)), {"alpha": LogUniform(0.1, 10)})
    fitted = integrate(own, counts)

    def height(v, u):
        a, b = math.exp(u), math.exp(v)
        return math.exp(scipy.special.betaln(a + 3, b + 7) - scipy.special.betaln(a, b))

    ends = math.log(0.1), math.log(10)
    whole = scipy.integrate.dblquad(height, *ends, *ends, epsabs=0, epsrel=1e-9)[0]
    assert fitted.log_evidence == pytest.approx(math.log(whole / (ends[1] - ends[0]) ** 2), abs=1e-7)
    alpha = scipy.integrate.dblquad(lambda v, u: math.exp(u) * height(v, u), *ends, *ends, epsrel=1e-9)[0] / whole
    assert fitted.posterior["alpha"].mean()[0] == pytest.approx(alpha, rel=1e-6)
    assert bz.fit(own, counts, "exact", seed=1).posterior["alpha"].dims == ("chain", "draw", "category")
    wide = DirichletMultinomial(alpha=(1.0,) * 4)
    with raises(bz.NumericalError, "too_large", "4", "3"):
        integrate(bz.over(wide, {"alpha": LogUniform(0.1, 10)}), bz.read(DirichletMultinomial, ["a", "b", "c", "d"]))


def test_priors_of_fields_are_values():
    found = bz.full_bayes(GaussianMean(m0=0, s0=2), Y, priors={"sigma": "HalfNormal(4)"})

    def height(sigma):
        return normal(Y, 0, 2, sigma) * scipy.stats.halfnorm(scale=4).pdf(sigma)

    whole = scipy.integrate.quad(height, 0, np.inf, epsabs=0, epsrel=1e-11, limit=200)[0]
    assert ok(found).log_evidence == pytest.approx(math.log(whole), abs=1e-8)
    assert found.prior == "sigma ~ HalfNormal(4)"
    with raises(bz.InputError, "out_of_range"):
        bz.full_bayes(GaussianMean(), Y, bounds={"sigma": (1, 2)}, priors={"sigma": "HalfNormal(4)"})


def test_a_model_over_its_fields_is_fitted_saved_and_read_again(tmp_path):
    own = bz.over(GaussianMean(m0=850, s0=50), {"sigma": LogUniform(1, 1000)})
    tree = bz.fit(own, None, "exact", seed=1)
    assert tree.attrs["status"] == "ok"
    found = bz.full_bayes(GaussianMean(m0=850, s0=50), None, bounds={"sigma": (1.0, 1000.0)})
    assert bz.summarize(tree)["mu"]["mean"] == pytest.approx(float(found.parameters["mu"]["mean"]), rel=1e-9)
    assert Fit(tree).fact("log_evidence") == pytest.approx(found.log_evidence, abs=1e-9)
    bz.save(tree, tmp_path / "fit.nc")
    again = bz.load(tmp_path / "fit.nc")
    assert Fit(again).model == own
    assert str(Fit(again).model) == "over(gaussian_mean(m0=850, s0=50, sigma=1), sigma ~ LogUniform(1, 1000))"
    with pytest.raises(bz.InputError):
        bz.fit(own, None, "nuts", seed=1)
