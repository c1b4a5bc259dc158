"""Fields chosen by the evidence: against SciPy's densities and optimizers, and at the boundary."""

import json
import math
import shlex
from dataclasses import dataclass

import numpy as np
import pytest
import scipy
from bayeszoo.models.beta_bernoulli import BetaBernoulli
from bayeszoo.models.gaussian_mean import GaussianMean
from bayeszoo.models.markov_chain import MarkovChain
from scipy import optimize, special

import bayeszoo as bz
from bayeszoo.distributions.special import log_beta_ratio
from bayeszoo.foundation.gate import failures
from bayeszoo.inference.methods.modes import fields as modes
from bayeszoo.inference.methods.modes import surface
from bayeszoo.model.fields import covariance, in_units, positive
from tests.reading import Opaque
from tests.refusals import raises

COIN = [1, 0, 1, 1, 0, 1, 1, 1]
Y = np.random.default_rng(0).normal(3, 2, 30)
RNG = np.random.default_rng(1)
TRIALS = RNG.integers(10, 50, 71)
GROUPS = {"successes": RNG.binomial(TRIALS, RNG.beta(2, 14, 71)), "trials": TRIALS}  # as of rats with tumors, BDA3


@dataclass(frozen=True)
class Rats(BetaBernoulli):
    """Each row is an experiment with a rate of its own: a and b govern 71 of them."""

    def statistics(self, data):
        return data

    def log_evidence(self, stats):
        return float(np.sum(log_beta_ratio(self.a, self.b, stats["successes"], stats["trials"] - stats["successes"])))


@dataclass(frozen=True)
class VectorRats(Rats):
    """The same with both shapes in one field, where one number may stand for both."""

    alpha: float = positive(1.0, "alpha", axes=("outcome",))

    def log_evidence(self, stats):
        a, b = np.broadcast_to(self.alpha, 2)
        return Rats(a, b).log_evidence(stats)


def coin_with(evidence):
    """A model with any function of its fields for a log evidence."""

    class Made(BetaBernoulli):
        def log_evidence(self, stats):
            return evidence(self)

    return Made


def dense(y, m0, s0, sigma):
    """The evidence of gaussian_mean as SciPy's multivariate normal density."""
    cov = sigma**2 * np.eye(len(y)) + s0**2
    return scipy.stats.multivariate_normal(np.full(len(y), m0), cov).logpdf(y)


def ok(found):
    assert found.status == "ok", found
    assert failures(found.checks) == ""
    assert found.boundary == {}
    return found.model


def test_sigma_is_where_scipy_finds_it_and_a_grid_agrees():
    found = bz.empirical_bayes(GaussianMean(m0=2, s0=3), Y, over="sigma")
    best = sigma_by_scipy(2, 3)
    assert ok(found).sigma == pytest.approx(best, rel=1e-6)
    assert found.log_evidence == pytest.approx(dense(Y, 2, 3, best), rel=1e-12)
    assert found.log_evidence_before == pytest.approx(dense(Y, 2, 3, 1), rel=1e-12)
    assert max(dense(Y, 2, 3, sigma) for sigma in np.geomspace(0.5, 10, 100)) <= found.log_evidence
    assert (found.model.m0, found.model.s0) == (2, 3)
    assert (found.reached, found.starts) == (8, 8)
    found = bz.empirical_bayes(GaussianMean(sigma=2), Y, over=["s0"])
    assert ok(found).s0 == pytest.approx(math.sqrt(Y.mean() ** 2 - 2**2 / len(Y)), rel=1e-7)


def sigma_by_scipy(m0, s0):
    best = scipy.optimize.minimize_scalar(lambda u: -dense(Y, m0, s0, math.exp(u)), bracket=(0, 1), tol=1e-12)
    return math.exp(best.x)


@pytest.mark.parametrize(("factor", "shift"), [(1, 1e9), (1e-9, 0), (1e9, 1e9)])
def test_the_answer_moves_with_the_units(factor, shift):
    y = factor * Y + shift
    found = bz.empirical_bayes(in_units(GaussianMean(s0=3), factor, shift), y, over=["m0", "sigma"])
    assert ok(found).m0 == pytest.approx(y.mean(), abs=1e-4 * factor)
    assert found.model.sigma == pytest.approx(factor * sigma_by_scipy(Y.mean(), 3), rel=1e-6)
    if not shift:  # a default prior of m0 far off the scale of the data is no obstacle
        found = bz.empirical_bayes(GaussianMean(s0=3 * factor), y, over=["m0", "sigma"])
        assert ok(found).sigma == pytest.approx(factor * sigma_by_scipy(Y.mean(), 3), rel=1e-6)


def rats_by_scipy():
    """The maximum of the sum of SciPy's beta-binomials over log a and log b; ordered data have a constant less."""
    s, n = map(np.array, GROUPS.values())
    constant = np.sum(scipy.special.gammaln(n + 1) - scipy.special.gammaln(s + 1) - scipy.special.gammaln(n - s + 1))
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2000}
    best = scipy.optimize.minimize(
        lambda u: -scipy.stats.betabinom.logpmf(s, n, *np.exp(u)).sum(), [0, 0], method="Nelder-Mead", options=options
    )
    return np.exp(best.x), -best.fun - constant


def test_a_prior_of_many_groups_is_learned():
    (a, b), height = rats_by_scipy()
    found = bz.empirical_bayes(Rats(), GROUPS, over=["a", "b"])
    assert ok(found).a == pytest.approx(a, rel=1e-6)
    assert found.model.b == pytest.approx(b, rel=1e-6)
    assert found.log_evidence == pytest.approx(height, abs=1e-8)
    assert type(found.model) is Rats
    found = bz.empirical_bayes(VectorRats(alpha=(1, 1)), GROUPS, over="alpha")  # each entry of a vector
    assert ok(found).alpha == pytest.approx((a, b), rel=1e-6)
    assert found.log_evidence == pytest.approx(height, abs=1e-8)
    s, n = map(np.array, GROUPS.values())  # one number for a vector stays one number
    best = scipy.optimize.minimize_scalar(lambda u: -scipy.stats.betabinom.logpmf(s, n, math.exp(u), math.exp(u)).sum())
    found = bz.empirical_bayes(VectorRats(), GROUPS, over="alpha")
    assert isinstance(ok(found).alpha, np.float64)
    assert found.model.alpha == pytest.approx(math.exp(best.x), rel=1e-5)


def test_the_default_data_are_the_model_s_own_and_the_seed_settles_everything():
    data = bz.example(BetaBernoulli)
    first, again = (bz.empirical_bayes(BetaBernoulli(), given, over="a", seed=3) for given in (None, data))
    assert first == again


def test_one_coin_says_nothing_of_where_coins_lie():
    found = bz.empirical_bayes(BetaBernoulli(), COIN, over=["a", "b"])
    line = "no maximum in {0}: the evidence does not fall as {0} -> infinity"
    assert (found.status, found.boundary) == ("at the boundary", {name: line.format(name) for name in "ab"})
    assert found.model.a / found.model.b == pytest.approx(3, rel=1e-3)
    supremum = scipy.stats.bernoulli.logpmf(COIN, 0.75).sum()
    assert supremum - 1e-4 < found.log_evidence < supremum
    assert repr(found).splitlines()[0].endswith("(where the search ended)")
    assert repr(found).splitlines()[-3:-1] == ["status at the boundary", line.format("a")]
    found = bz.empirical_bayes(GaussianMean(m0=Y.mean(), sigma=2), Y, over="s0")  # a prior centred on the mean
    assert found.boundary == {"s0": "no maximum in s0: the evidence does not fall as s0 -> 0"}
    assert found.log_evidence == pytest.approx(scipy.stats.norm(Y.mean(), 2).logpdf(Y).sum(), rel=1e-9)


def test_a_ridge_along_which_fields_trade_off_is_no_maximum():
    for power in (1, -1, 0.5):
        ridge = coin_with(lambda m, power=power: -((math.log(m.a) + power * math.log(m.b) - 2) ** 2))
        assert set(bz.empirical_bayes(ridge(), COIN, over=["a", "b"]).boundary) == {"a", "b"}
    found = bz.empirical_bayes(GaussianMean(), [1.0], over=["s0", "sigma"])  # one row knows s0**2 + sigma**2 only
    assert set(found.boundary) == {"s0", "sigma"}
    found = bz.empirical_bayes(GaussianMean(), Y, over=["m0", "s0", "sigma"])
    assert set(found.boundary) == {"s0"}  # only the field without a maximum is named
    assert found.model.sigma == pytest.approx(Y.std(), rel=1e-4)


def test_entries_of_a_vector_are_named():
    class Pinned(VectorRats):
        def log_evidence(self, stats):
            a, b = np.broadcast_to(self.alpha, 2)
            return -(math.log(a / 5) ** 2) - 1 / (1 + b)

    found = bz.empirical_bayes(Pinned(alpha=(1, 1)), GROUPS, over="alpha")
    assert found.boundary == {"alpha[1]": "no maximum in alpha[1]: the evidence does not fall as alpha[1] -> infinity"}
    assert found.model.alpha[0] == pytest.approx(5, rel=1e-4)


EDGE = "the edge of the search: begin nearer to its maximum"


@pytest.mark.parametrize(
    ("evidence", "line"),
    [
        (lambda m: -1 / (1 + m.a**0.2), "no maximum in a: the evidence does not fall as a -> infinity"),
        (lambda m: -m.a, "no maximum in a: the evidence does not fall as a -> 0"),
        (lambda m: -1.0, "the evidence does not depend on a"),
        (lambda m: -(math.log(m.a / 1e7) ** 2), f"the evidence still rises at a = 1e+06, {EDGE}"),
    ],
)
def test_each_way_to_have_no_maximum(evidence, line):
    found = bz.empirical_bayes(coin_with(evidence)(), COIN, over="a")
    assert (found.status, found.boundary) == ("at the boundary", {"a": line})


def cliff(u):
    """1e3 nats up at u = 6, where the ground below leads away from it: followed, and not trusted."""
    return 1e3 * scipy.special.expit(20 * (u - 6)) - u**2


def peaks(u):
    """A needle of width 0.01 at 0, a broad hill at log 100."""
    return 10 * math.exp(-((u / 0.01) ** 2) / 2) - (u - math.log(100)) ** 2 / 200


def cut_off(u):
    if u > math.log(4):
        raise OverflowError
    return -((u - math.log(3)) ** 2)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (cliff, "starts that reached the maximum 0"),
        (peaks, "starts that reached the maximum 1"),
        (lambda u: -abs(u - 1) - 0.3 * u, "distance to a stationary point"),
        (lambda u: math.inf if u > 0.7 else -math.exp(2 * u), "log evidences that are not finite"),
        (lambda u: np.logaddexp(-5 * u**2, 3 - 5 * (u - math.log(100)) ** 2), 100),  # the higher of two hills
        (cut_off, 3),  # places without evidence are walked around
    ],
)
def test_needles_kinks_cliffs_and_infinity_are_no_maxima_and_hills_are(evidence, expected):
    found = bz.empirical_bayes(coin_with(lambda m: evidence(math.log(m.a)))(), COIN, over="a")
    if isinstance(expected, str):
        assert (found.status, expected in repr(found)) == ("not converged", True)
    else:
        assert ok(found).a == pytest.approx(expected, rel=1e-4)
        assert found.reached >= 2


def test_a_mode_near_the_start_is_not_taken_for_the_maximum(monkeypatch):
    """A needle a thousand times as far out as the other hill: no climb begins on it."""

    def hills(m):
        u = math.log(m.a)
        return np.logaddexp(-5 * u**2, 9 - 50 * (u - math.log(1e3)) ** 2)

    model = coin_with(hills)
    kinds = {"mle": lambda: bz.empirical_bayes(model(), COIN, over="a", starts=2, seed=1).model.a}
    law = {"a": "HalfCauchy(1000)"}
    kinds["map"] = lambda: modes.highest(bz.over(model(), law), bz.read(model, COIN), False, 2, rng()).outer["a"]
    for found in kinds.values():
        assert float(found()) == pytest.approx(1e3, rel=0.05)
    monkeypatch.setattr(surface, "MORE_CLIMBS", 0)  # a bug: it does not climb on from there
    for found in kinds.values():
        assert float(found()) == pytest.approx(1, rel=0.2)


def rng():
    return np.random.default_rng(1)


def test_a_vector_is_chosen_and_the_evidence_is_highest_at_the_mean_of_the_rows():
    """The mean of N rows is normal about m0 with covariance S0 + Sigma / N, and so highest where m0 is that mean."""
    Vector = bz.find("gaussian_mean_vector")
    Y = np.array([[1.0, 2.0], [2.0, 5.0], [0.5, 3.5]])
    best = bz.empirical_bayes(Vector(m0=[0.0, 0.0], S0=4.0, Sigma=[[1.0, 0.5], [0.5, 2.0]]), Y, over="m0")
    np.testing.assert_allclose(best.model.m0, Y.mean(axis=0), rtol=1e-5)
    law = scipy.stats.multivariate_normal(np.tile(Y.mean(axis=0), 3), _joint(4.0, [[1.0, 0.5], [0.5, 2.0]], 3))
    assert best.log_evidence == pytest.approx(law.logpdf(Y.ravel()))


def _joint(s0, sigma, rows):
    """Return the covariance of rows that have a mean in common."""
    return np.kron(np.ones((rows, rows)), s0 * np.eye(2)) + np.kron(np.eye(rows), sigma)


# What is refused


def test_an_evidence_that_is_not_finite_and_one_climb_are_refused():
    with raises(bz.NumericalError, "not_finite", "evidence", "1", "b"):
        bz.empirical_bayes(coin_with(lambda m: math.nan)(), COIN, over="a")
    for starts in (1, 2.5, True, "8"):
        with raises(bz.InputError, "wrong_type", "2"):
            bz.empirical_bayes(GaussianMean(), Y, over="sigma", starts=starts)


@dataclass(frozen=True)
class Matrix(BetaBernoulli):
    v: tuple = covariance(((1.0,),), "prior covariance", axes=("column", "column"))
    intercept: bool = False


def log_evidence_of_classes(data, model, kappa0, psi):
    """The log evidence of classes of Gaussian rows under a scale matrix ``psi`` times the identity, by SciPy."""
    y, Y, D = data["y"], data["reals"], data["reals"].shape[1]
    counts = np.bincount(y)
    total = special.gammaln(len(counts)) - special.gammaln(len(counts) + len(y)) + special.gammaln(1 + counts).sum()
    for k, n in enumerate(counts):
        apart = Y[y == k] - Y[y == k].mean(axis=0)
        shift = Y[y == k].mean(axis=0) - np.array(model.m0)
        scale = psi * np.eye(D) + apart.T @ apart + kappa0 * n / (kappa0 + n) * np.outer(shift, shift)
        nu, nu_n = float(model.nu0), float(model.nu0) + n
        total += special.multigammaln(nu_n / 2, D) - special.multigammaln(nu / 2, D) - n * D / 2 * np.log(np.pi)
        total += (nu * D * np.log(psi) - nu_n * np.linalg.slogdet(scale)[1] + D * np.log(kappa0 / (kappa0 + n))) / 2
    return total


@pytest.fixture(scope="module")
def classes():
    kind = bz.find("gaussian_discriminant")
    data = bz.example(kind, "ripley")  # of two features: integrals over covariances take long
    return kind.weak(data).replaced(Psi0=1.0), data


def test_a_multiple_of_the_identity_is_chosen_as_by_scipy(classes):
    model, data = classes
    chosen = bz.empirical_bayes(model, data, over="Psi0")
    peer = optimize.minimize_scalar(
        lambda x: -log_evidence_of_classes(data, model, float(model.kappa0), np.exp(x)), bounds=(-6, 4)
    )
    assert float(chosen.model.Psi0) == pytest.approx(np.exp(peer.x), rel=1e-4)
    assert chosen.log_evidence == pytest.approx(-peer.fun, rel=1e-9)
    with raises(bz.InputError, "unknown_field", "Psi0=1"):
        bz.empirical_bayes(type(model).weak(data), data, over="Psi0")


AS_ARGUMENT = {"kappa0": "kappa0", "Psi0": "psi"}


@pytest.mark.parametrize("name", AS_ARGUMENT)
def test_fields_of_several_covariances_are_integrated_as_by_a_plain_sum(classes, name):
    model, data = classes
    both = bz.full_bayes(model, data, over=name)
    own = {"kappa0": float(model.kappa0), "psi": 1.0}
    x = np.linspace(*np.log(both.bounds[name]), 1001)
    logs = [log_evidence_of_classes(data, model, **own | {AS_ARGUMENT[name]: v}) for v in np.exp(x)]
    heights = np.exp(logs - np.max(logs))
    assert both.log_evidence == pytest.approx(np.max(logs) + np.log(np.trapezoid(heights, x) / np.ptp(x)), abs=1e-6)


@pytest.mark.parametrize(
    ("model", "over", "message"),
    [
        (GaussianMean(), None, "over which fields? gaussian_mean has m0, s0"),
        (GaussianMean(), [], "name a few"),
        (GaussianMean(), ["m0", "q"], "over q: gaussian_mean has no such numeric field; gaussian_mean has m0"),
        (GaussianMean(), ["m0", "m0"], "over m0, m0: a field is named twice"),
        (Matrix(), "v", "over v: it is a matrix, and only numbers or vectors can be chosen; matrix has a, b"),
        (Matrix(), "intercept", "over intercept: matrix has no such numeric field"),
        (Opaque(), "a", 'maximize; compare values of a: bayeszoo select -c "opaque a=1" -c "opaque a=10"'),
        (bz.find("normal_means")(), "t0", "its parameters mu, tau are integrated over by fit, each with its --prior"),
    ],
)
def test_what_cannot_be_chosen(model, over, message):
    with pytest.raises(bz.InputError) as error:
        bz.empirical_bayes(model, [1.0, 0.0], over=over)
    assert message in str(error.value)


def test_it_says_what_the_number_is_worth():
    good = repr(bz.empirical_bayes(GaussianMean(m0=2, s0=3), Y, over="sigma")).splitlines()
    assert (good[0], good[-1]) == ("gaussian_mean: sigma 1 -> 1.64577", "status ok")
    assert "an upper envelope and not the evidence of a model" in good[2]


# The command


@pytest.fixture
def table(written):
    return written("\n".join(["y", *map(repr, Y.tolist())]), "measured.csv")


TEXTBOOK = ["--prior", "textbook"]


def test_the_command_prints_the_fields_before_and_after(run, table):
    options = ("empirical", "gaussian_mean", table, *TEXTBOOK)
    code, out, err = run(*options, "--over", "sigma", "--set", "m0=2", "--set", "s0=3")
    assert (code, err, "upper envelope" in out) == (0, "", True)
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert {"m0 2 as given", "sigma 1 1.64577", "status ok: 4 of 4 checks passed"} <= set(rows)
    code, out, err = run(*options, "--over", "m0, sigma", "--json", "--seed", 2)
    found, expected = json.loads(out), bz.empirical_bayes(GaussianMean(), Y, over=["m0", "sigma"], seed=2)
    assert (code, err, found["status"], found["over"], found["prior"]) == (0, "", "ok", ["m0", "sigma"], "textbook")
    assert (found["fields"]["sigma"], found["log_evidence"]) == (expected.model.sigma, expected.log_evidence)
    assert (found["boundary"], found["gate"]["passed"], found["data"]["source"]) == ({}, True, "measured.csv")
    code, out, err = run(*options, "--over", "q")
    assert (code, out, err.count("\n"), "no such numeric field" in err) == (2, "", 1, True)


def test_the_command_withholds_what_has_no_maximum(run, written):
    coins = written("\n".join(["y", *map(str, COIN)]))
    code, out, err = run("empirical", "beta_bernoulli", coins, "--over", "a,b")
    assert (code, out.count("withheld")) == (3, 3)
    step = shlex.split(err.partition("next: ")[2].partition("bayeszoo ")[2])
    assert step[:3] == ["fit", "beta_bernoulli", "--method"]
    assert run(*step[:2], coins, *step[2:], "--seed", "1")[0] == 0
    assert "warning: no maximum in b: the evidence does not fall as b -> infinity" in err
    code, out, _ = run("empirical", "beta_bernoulli", coins, "--over", "a,b", "--json")
    found = json.loads(out)
    assert (code, found["fields"], found["log_evidence"], found["status"]) == (3, None, None, "at the boundary")


def test_empirical_bayes_is_the_mle_of_a_model_over_its_fields():
    model = GaussianMean(m0=2, s0=3)
    own = bz.over(model, {"sigma": "HalfNormal(5)"})
    tree, found = bz.fit(own, {"y": Y}, "mle", seed=1), bz.empirical_bayes(model, Y, over="sigma")
    assert tree.attrs["status"] == "ok"
    assert tree.posterior["sigma"].item() == pytest.approx(float(found.model.sigma), rel=1e-6)
    mu = found.model.posterior(found.model.statistics({"y": Y}))["mu"]
    assert tree.posterior["mu"].item() == pytest.approx(mu.mean(), rel=1e-6)  # inner parameters are at their means
    tree = bz.fit(own, {"y": Y}, "map", seed=1)
    law = scipy.stats.halfnorm(scale=5)
    best = scipy.optimize.minimize_scalar(
        lambda u: -dense(Y, 2, 3, math.exp(u)) - law.logpdf(math.exp(u)), bracket=(0, 1), tol=1e-12
    )
    assert tree.posterior["sigma"].item() == pytest.approx(math.exp(best.x), rel=1e-6)
    coin = bz.fit(bz.over(BetaBernoulli(), {"a": "HalfCauchy(1)", "b": "HalfCauchy(1)"}), COIN, "mle", seed=1)
    assert coin.attrs["status"] == "failed"


def test_every_entry_of_a_long_vector_is_chosen():
    """Four numbers, more than are integrated over: the rows of a chain's table, drawn from one Dirichlet prior."""
    rng, K = np.random.default_rng(3), 4
    table = rng.dirichlet([4.0, 1.0, 2.0, 0.5], K)
    state, states = 0, []
    for _ in range(1000):
        state = rng.choice(K, p=table[state])
        states.append("abcd"[state])
    found = bz.empirical_bayes(MarkovChain(alpha=(1.0,) * K), states, over="alpha")
    assert found.status == "ok"
    assert found.log_evidence > found.log_evidence_before + 1
    assert np.shape(found.model.alpha) == (K,)
