"""Student t by its latent precisions: SciPy, PyMC and quadrature agree with EM and variational Bayes."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy
from bayeszoo.models.student_t import StudentT

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.contract.case import Case
from bayeszoo.contract.check import applicable, run_identity
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.mixtures import student as scale_mixture
from bayeszoo.families.mixtures.student import Weighted
from tests.refusals import raises

NEWCOMB = bz.example(StudentT)
WEAK = StudentT.weak(NEWCOMB)
FEW = {"y": np.array([-1.0, 0.2, 0.5, 1.9, 9.0])}
SMALL = StudentT(m0=0.4, kappa0=0.8, a0=1.3, b0=0.7, nu=3.0)
POINTS = [{"mu": 20.0, "lam": 0.1}, {"mu": 27.0, "lam": 0.04}, {"mu": -5.0, "lam": 2.0}]


def log_joint(model, y, mu, lam):
    """SciPy's, with every constant; mu and lam broadcast."""
    mu, lam = np.asarray(mu)[..., None], np.asarray(lam)[..., None]
    prior = scipy.stats.gamma(model.a0, scale=1 / model.b0).logpdf(lam)
    prior = prior + scipy.stats.norm(model.m0, (model.kappa0 * lam) ** -0.5).logpdf(mu)
    return prior[..., 0] + scipy.stats.t(model.nu, mu, lam**-0.5).logpdf(y).sum(axis=-1)


def normal_gamma(m, kappa, a, b):
    """Of mu and lam."""
    return Normal(("mu", "lam"), "y", *map(np.asarray, (m, kappa, a, b)), precision=True)


def fields_of(q):
    return [float(value) for value in (q.m, q.kappa, q.a, q.b)]


def climb(model, data, flat=False, seed=0):
    """EM: the fixed point, and the objective at each step."""
    params, trace = model.start(data, np.random.default_rng(seed)), []
    for _ in range(1000):
        found = model.e_step(params, data)
        trace.append(found.value + (0.0 if flat else model.log_prior(params, data)))
        before, params = params, model.m_step(found.stats, flat)
        if all(abs(params[name] - before[name]) <= 1e-14 * abs(params[name]) for name in params):
            break
    return params, np.array(trace)


def ascend(model, data, seed=0):
    """Coordinate ascent: q, and the ELBO at each step."""
    q, trace = model.vb_start(data, np.random.default_rng(seed)), []
    for _ in range(200):
        found = model.vb_e_step(q, data)
        trace.append(found.value - model.divergence(q))
        q = model.vb_m_step(found.stats)
    return q, np.array(trace)


@pytest.mark.parametrize("nu", [0.7, 1.0, 4.0, 60.0])
@pytest.mark.parametrize("y", [-7.0, 0.0, 0.4, 30.0])
def test_the_scale_mixture_integrates_to_student_t(y, nu):
    shape, constant = nu / 2, (nu / 2) ** (nu / 2) / math.gamma(nu / 2) / math.sqrt(2 * math.pi) / 1.4

    def mixed(theta):
        return constant * theta ** (shape - 0.5) * math.exp(-shape * theta - theta * ((y - 0.2) / 1.4) ** 2 / 2)

    peak = (nu + 1) / (nu + (y - 0.2) ** 2 / 1.96)

    def integral(function):
        ends = (0, peak / 10, peak, 4 * peak, 40 * peak, np.inf)
        return math.fsum(scipy.integrate.quad(function, *pair, epsrel=1e-11)[0] for pair in pairwise(ends))

    whole, first = integral(mixed), integral(lambda theta: theta * mixed(theta))
    params, data, model = {"mu": 0.2, "lam": 1.4**-2}, {"y": np.array([y])}, StudentT(nu=nu)
    assert np.isclose(model.likelihood(params, data).pdf(data["y"])[0], whole, rtol=1e-9)
    assert np.isclose(model.e_step(params, data).value, math.log(whole), rtol=0, atol=1e-9)
    assert np.isclose(model.component_probabilities(params, data)[0], first / whole, rtol=1e-9)


def pymc_gap(model, data, points=POINTS):
    """Largest difference of the E-step's value and prior from PyMC's log joint."""
    density = Density(model.declare(data), mode="FAST_COMPILE")
    ours = [model.e_step(one, data).value + model.log_prior(one, data) for one in points]
    theirs = [density.constrained_joint(density.unconstrain(one))[0] for one in points]
    return np.max(np.abs(np.subtract(ours, theirs)))


@pytest.mark.parametrize("nu", [0.7, 4.0, 60.0])
def test_the_e_step_and_the_prior_are_pymcs_density_and_scipys(nu):
    model = replace(WEAK, nu=nu, a0=1.7)
    assert pymc_gap(model, NEWCOMB) < 1e-10 * 300
    joint = log_joint(model, NEWCOMB["y"], [point["mu"] for point in POINTS], [point["lam"] for point in POINTS])
    ours = [model.e_step(point, NEWCOMB).value + model.log_prior(point, NEWCOMB) for point in POINTS]
    assert np.allclose(ours, joint, rtol=1e-12)


def test_pymc_is_not_given_degrees_of_freedom_at_which_its_density_loses_digits():
    assert pymc_gap(replace(WEAK, nu=1e6), NEWCOMB) < 1e-6
    with raises(InputError, "out_of_range", "nu", "1e6", "1e+09", "normal_gamma"):
        replace(WEAK, nu=1e9).declare(NEWCOMB)


def stationary_gap(model, data):
    """Distance of EM's fixed point from where PyMC's gradient is zero, by the contract; infinite where EM falls."""
    (identity,) = (one for one in applicable(StudentT) if one.function == "em_map_is_stationary")
    try:
        return run_identity(identity, Case(model, data)).value
    except NumericalError:
        return math.inf


def test_starts_lead_to_each_of_several_modes():
    data, model = {"y": np.array([-10.2, -10.0, -9.9, -9.7, 9.9, 10.0, 10.3])}, StudentT(nu=0.4, b0=0.1)
    ends = [climb(model, data, seed=seed) for seed in range(20)]
    left, right = (next(end for end in ends if sign * end[0]["mu"] > 5) for sign in (-1, 1))
    assert left[1][-1] > right[1][-1] + 0.1
    for end, _ in (left, right):
        steps = [{**end, "mu": end["mu"] + 0.02}, {**end, "mu": end["mu"] - 0.02}, {**end, "lam": 1.1 * end["lam"]}]
        heights = [log_joint(model, data["y"], point["mu"], point["lam"]) for point in (end, *steps)]
        assert heights[0] > max(heights[1:])


@pytest.mark.parametrize("y", [[3.0], [3.0, 3.0], [0.0] * 7 + [1.0, 5.0, 9.0], [1e9] * 5 + [1e9 + 1]])
def test_a_density_without_bound_has_no_mle_but_a_map(y):
    data, model = {"y": np.array(y)}, StudentT(nu=1.0)
    with raises(NumericalError, "no_maximum"):
        climb(model, data, flat=True)
    assert math.isfinite(climb(model, data)[1][-1])


def test_no_rows_give_the_prior():
    data = {"y": np.zeros(0)}
    q, trace = ascend(SMALL, data)
    assert fields_of(q) == fields_of(SMALL._prior)
    assert abs(trace[-1]) < 1e-12
    assert climb(SMALL, data)[0] == {"mu": 0.4, "lam": pytest.approx(0.8 / 0.7)}
    with raises(NumericalError, "no_maximum", "mode"):
        climb(replace(SMALL, a0=0.5), data)


def offset_gap(model, data):
    """What is changed by an offset of 1e9: lam and the ELBO relatively, mu in units of its scale."""
    far, moved = {"y": data["y"] + 1e9}, replace(model, m0=model.m0 + 1e9)
    (near, _), (other, _) = climb(model, data), climb(moved, far)
    at_zero, _ = climb(replace(moved, m0=0.0, kappa0=1e-25), far)  # which starts from far away
    vague, _ = climb(replace(model, kappa0=1e-25), data)
    bounds = [ascend(model, data)[1][-1], ascend(moved, far)[1][-1]]
    gaps = [abs(other["lam"] / near["lam"] - 1), abs(other["mu"] - 1e9 - near["mu"]), abs(bounds[1] / bounds[0] - 1)]
    return max(*gaps, abs(at_zero["mu"] - 1e9 - vague["mu"]), abs(at_zero["lam"] / vague["lam"] - 1))


def evidence(model, y):
    """Quadrature over u = (mu - m0) sqrt(lam), N(0, 1 / kappa0) a priori, and log lam."""
    u, log_lam = np.linspace(-14, 14, 561) / model.kappa0**0.5, np.linspace(-22, 6, 561)
    root = np.exp(log_lam / 2)
    log_volume = log_lam / 2  # du dlog_lam: dmu = du / root, dlam = lam dlog_lam
    joint = log_joint(model, y, model.m0 + u[:, None] / root, np.exp(log_lam)) + log_volume
    inner = scipy.integrate.trapezoid(np.exp(joint), u, axis=0)
    return math.log(scipy.integrate.trapezoid(inner, log_lam))


def bound(model, data, q, rng, draws=200_000):
    """The ELBO of q(mu, lam) and the best q(theta) given it, by draws and SciPy's densities, and its error."""
    sample = model.vb_posterior(q).rvs(draws, rng)
    squares = sample["lam"] * np.square(data["y"][:, None] - sample["mu"])
    shape, rates = (model.nu + 1) / 2, (model.nu + squares.mean(axis=1)) / 2
    total = -scipy.stats.norm(q.m, (q.kappa * sample["lam"]) ** -0.5).logpdf(sample["mu"])
    total -= scipy.stats.gamma(q.a, scale=1 / q.b).logpdf(sample["lam"])
    total += scipy.stats.norm(model.m0, (model.kappa0 * sample["lam"]) ** -0.5).logpdf(sample["mu"])
    total += scipy.stats.gamma(model.a0, scale=1 / model.b0).logpdf(sample["lam"])
    for y, rate in zip(data["y"], rates, strict=True):
        theta = rng.gamma(shape, 1 / rate, draws)
        total += scipy.stats.gamma(model.nu / 2, scale=2 / model.nu).logpdf(theta)
        total += scipy.stats.norm(sample["mu"], (theta * sample["lam"]) ** -0.5).logpdf(y)
        total -= scipy.stats.gamma(shape, scale=1 / rate).logpdf(theta)
    return total.mean(), total.std() / draws**0.5


def bound_z(model, data):
    """How far our ELBO is from that of draws, at q half way up and at the end, in its errors."""
    rng, q = np.random.default_rng(1), ascend(model, data)[0]
    found = []
    for one in (q, normal_gamma(q.m + 0.3, 0.7 * q.kappa, 0.8 * q.a, 1.3 * q.b)):
        ours = model.vb_e_step(one, data).value - model.divergence(one)
        by_draws, error = bound(model, data, one, rng)
        found.append(abs(ours - by_draws) / error)
    return max(found)


@pytest.mark.parametrize("nu", [1.0, 3.0, 30.0, 3000.0])
def test_the_elbo_bounds_the_evidence(nu):
    model = replace(SMALL, nu=nu)
    q, trace = ascend(model, FEW)
    assert np.diff(trace).min() > -1e-12
    gap = evidence(model, FEW["y"]) - trace[-1]
    assert np.isclose(gap, {1.0: 0.650, 3.0: 0.610, 30.0: 0.125, 3000.0: 0.0012}[nu], rtol=0.01)
    for other in (replace(q, m=q.m + 0.1), replace(q, kappa=1.1 * q.kappa), replace(q, b=1.1 * q.b)):
        assert model.vb_e_step(other, FEW).value - model.divergence(other) < trace[-1] - 1e-5


def test_q_is_a_distribution_of_the_parameters():
    q = normal_gamma(0.3, 2.5, 3.7, 1.9)
    draws = SMALL.vb_posterior(q).rvs(5, np.random.default_rng(0))
    singly = [SMALL.vb_posterior(q).logpdf({name: draws[name][k] for name in draws}) for k in range(5)]
    assert np.allclose(SMALL.vb_log_density(q, draws), singly, rtol=1e-13)
    many = SMALL.vb_posterior(q).rvs(200_000, np.random.default_rng(1))
    ratio = SMALL.vb_log_density(q, many) - SMALL.log_prior(many, FEW)
    assert abs(ratio.mean() - SMALL.divergence(q)) < 4.4 * ratio.std() / 200_000**0.5
    assert abs(q.expected_log_precision - np.log(many["lam"]).mean()) < 4.4 * np.log(many["lam"]).std() / 200_000**0.5
    assert abs(SMALL.divergence(SMALL._prior)) < 1e-13


def gaussian_gap(nu, data=NEWCOMB):
    """Distance from the normal-gamma model: of the evidence in nats, of the posterior and the mode relatively."""
    model, gaussian = replace(WEAK, nu=nu), bz.find("normal_gamma")(WEAK.m0, WEAK.kappa0, WEAK.a0, WEAK.b0)
    stats = gaussian.statistics(data)
    later, mode, (q, trace) = gaussian.updated(stats), gaussian.map(stats), ascend(model, data)
    found, mle = climb(model, data)[0], climb(model, data, flat=True)[0]
    pairs = list(zip(fields_of(q), fields_of(later.block()), strict=True))
    pairs += [(found[name], mode[name]) for name in mode]
    pairs += [(mle[name], gaussian.mle(stats)[name]) for name in mode]
    return max(abs(trace[-1] - gaussian.log_evidence(stats)), *(abs(one / other - 1) for one, other in pairs))


def test_with_many_degrees_of_freedom_it_is_the_normal_gamma_model():
    gaps = [gaussian_gap(nu) for nu in (1e7, 1e8)]
    assert np.isclose(gaps[0] / gaps[1], 10, rtol=0.01)  # as 1 / nu
    assert gaussian_gap(1e13) < 1e-9


@pytest.mark.slow
def test_nuts_on_newcomb_is_quadrature():
    mu, log_lam = np.linspace(22, 33, 441), np.linspace(-6, -0.5, 441)
    joint = log_joint(WEAK, NEWCOMB["y"], mu[:, None], np.exp(log_lam)) + log_lam
    weight = np.exp(joint - joint.max())
    weight /= weight.sum()
    exact = {"mu": (weight.sum(axis=1), mu), "lam": (weight.sum(axis=0), np.exp(log_lam))}
    tree = bz.fit(WEAK, NEWCOMB, "nuts", seed=1)
    assert tree.attrs["status"] == "ok"
    for name, (shares, values) in exact.items():
        found, mean = bz.summarize(tree)[name], shares @ values
        sd = math.sqrt(shares @ np.square(values - mean))
        assert abs(found["mean"] - mean) < 4.4 * found["mcse_mean"]
        assert abs(found["sd"] - sd) < 4.4 * found["mcse_sd"]
        gaussian = bz.find("normal_gamma").weak(NEWCOMB)
        other = gaussian.posterior(gaussian.statistics(NEWCOMB))[name]
        assert abs(float(other.mean()) - mean) > 4.4 * found["mcse_mean"]  # the comparison sees another model


def test_the_weak_prior_is_robust():
    y = np.append(NEWCOMB["y"], 1e6)
    assert (WEAK.m0, StudentT.weak({"y": y}).m0) == (27.0, 27.0)
    assert StudentT.weak({"y": y}).b0 < 2 * WEAK.b0
    assert StudentT.weak({"y": np.array([1.0, 1.0, 1.0, 4.0])}).b0 == pytest.approx(0.5 * 2.25)


# Bugs that the comparisons above must see


class Unweighted(Weighted):
    @staticmethod
    def of(y, centre, weights):
        right = Weighted.of(y, centre, weights)
        return replace(right, moments=replace(right.moments, scatter=np.sum(np.square(y - right.moments.mean))))


class Uncentred(Weighted):
    @staticmethod
    def of(y, centre, weights):
        total, mean = np.sum(weights), np.sum(weights * y) / np.sum(weights)
        scatter = abs(np.sum(weights * y * y) - total * mean**2)
        return Weighted(float(len(y)), np.sum(y * y), Moments(total, mean, scatter))


def bug(where, name, value, gap, *args):
    return where, name, value, gap, args


def mode(share):
    """Return a mode whose precision is wrong."""
    return lambda self: {"mu": self.m, "lam": share(self)}


def wrong_scale(nu, d, log_lam, right=scale_mixture.log_normalizers):
    return right(nu, d, 2 * log_lam)


def without_gammas(self, prior, whole=Normal.divergence):
    return whole(self, prior) + math.lgamma(self.a) - math.lgamma(prior.a)


def without_kappa(self, data):
    return self.a / self.b * np.square(data["y"] - self.m)


def half_the_weights(self, block):
    return block.updated(self.moments)


LIMITS = {stationary_gap: 1e-5, offset_gap: 1e-6, pymc_gap: 1e-10, bound_z: 4.4, gaussian_gap: 1e-9}
REAL, TINY = (WEAK, NEWCOMB), (SMALL, FEW)
PRIOR = property(lambda self: normal_gamma(self.m0, self.kappa0, self.a0, 1 / self.b0))
LOG_LAM = property(lambda self: math.log(self.a / self.b))
BUGS = {
    "nu for nu + 1": bug(scale_mixture, "weights", lambda nu, d: nu / (nu + d), stationary_gap, *REAL),
    "weights not in the scatter": bug(scale_mixture, "Weighted", Unweighted, stationary_gap, *REAL),
    "sums of squares": bug(scale_mixture, "Weighted", Uncentred, offset_gap, *REAL),
    "rate as scale": bug(Normal, "mode", mode(lambda q: (q.a - 0.5) * q.b), stationary_gap, *TINY),
    "rate of the prior read as scale": bug(StudentT, "_prior", PRIOR, pymc_gap, *TINY),
    "half the weights, not half the rows": bug(Weighted, "posterior", half_the_weights, stationary_gap, *REAL),
    "no 1/2 of the mode": bug(Normal, "mode", mode(lambda q: q.a / q.b), stationary_gap, *REAL),
    "sqrt forgotten": bug(scale_mixture, "log_normalizers", wrong_scale, pymc_gap, *TINY),
    "dropped 1 / kappa": bug(Normal, "expected_squares", without_kappa, bound_z, *TINY),
    "log of the expectation": bug(Normal, "expected_log_precision", LOG_LAM, bound_z, *TINY),
    "dropped constant of the divergence": bug(Normal, "divergence", without_gammas, gaussian_gap, 1e13),
}


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_seen(monkeypatch, bug):
    where, name, value, gap, args = BUGS[bug]
    monkeypatch.setattr(where, name, value)
    assert gap(*args) > (10 if gap is bound_z else 10 * LIMITS[gap])


@pytest.mark.parametrize(("gap", "args"), [(offset_gap, REAL), (bound_z, TINY), (stationary_gap, TINY)])
def test_what_bugs_are_seen_by_passes_without_them(gap, args):
    assert gap(*args) < LIMITS[gap]
