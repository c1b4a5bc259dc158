"""The concentration of a Dirichlet process as a parameter: against sums over all partitions and quadrature."""

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

import bayeszoo as bz
from bayeszoo.distributions.scale import Scale
from bayeszoo.families.mixtures.concentration import Concentration
from bayeszoo.families.mixtures.sticks import Sticks, log_density_at
from bayeszoo.inference.methods.enumeration import enumerate_posterior
from bayeszoo.results.figures import facts
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.test_dp_mixture import set_partitions

BASE = bz.find("dp_mixture")(K=8, alpha=1.0, m0=0.5, kappa0=0.2, nu0=3.0, Psi0=0.3)
OVER = bz.over(BASE, {"alpha": "Gamma(2, 2)"})
ROWS = bz.read(BASE, {"a": [-1.0, -0.8, 0.1, 1.9, 2.2, 2.4]})
ALPHA = np.exp(np.linspace(np.log(1e-3), np.log(60), 61))


def moments(log_likelihood):
    """Return mean and sd of alpha ~ Gamma(2, rate 2) by quadrature over its log."""
    mass = np.exp(log_likelihood - np.max(log_likelihood)) * stats.gamma(2, scale=0.5).pdf(ALPHA) * ALPHA
    mean = mass @ ALPHA / mass.sum()
    return mean, np.sqrt(mass @ (ALPHA - mean) ** 2 / mass.sum())


@pytest.fixture(scope="module")
def chain():
    return OVER.gibbs(ROWS, np.random.default_rng(1))


def drawn(chain):
    """Draw alpha again and again given clusters of 3, 1 and 2 rows on the sticks 1, 3 and 4."""
    chain._component, values = np.array([0, 0, 0, 2, 3, 3]), []
    for _ in range(4000):
        chain._draw_alpha()
        values.append(chain._alpha)
    return np.array(values)


def of_clusters():
    """Return the exact moments: the breaks are Beta(1, alpha), and a row passes each that it does not end at."""
    ends, passed = np.array([3, 0, 1, 2, 0, 0, 0]), np.array([3, 3, 2, 0, 0, 0, 0])
    terms = special.betaln(1 + ends, ALPHA[:, None] + passed) - special.betaln(1, ALPHA[:, None])
    return moments(terms.sum(axis=1))


def test_alpha_given_the_clusters_is_drawn_from_its_density(chain):
    values, (mean, sd) = drawn(chain), of_clusters()
    error = sd / np.sqrt(len(values) / 5)  # slices depend on each other a little
    assert abs(values.mean() - mean) < 4.5 * error
    assert abs(values.std() / sd - 1) < 0.12


def test_a_forgotten_jacobian_is_seen(chain, monkeypatch):
    monkeypatch.setattr(Scale, "log_slope", lambda self, place: 0.0)
    values, (mean, sd) = drawn(chain), of_clusters()
    assert abs(values.mean() - mean) > 10 * sd / np.sqrt(len(values) / 5)


def test_other_fields_and_densities_are_refused():
    with raises(bz.InputError, "unknown_field"):
        bz.over(BASE, {"kappa0": "Gamma(2, 2)"})
    with raises(bz.InputError, "out_of_range"):
        bz.over(BASE, {"alpha": "Normal(0, 1)"})
    with raises(bz.InputError, "no_density"):
        OVER.declare(ROWS)


@pytest.mark.slow  # long chains, against the sum over all partitions
def test_gibbs_is_as_the_sum_over_partitions_and_a_quadrature():
    exact = enumerate_posterior(OVER, ROWS)
    fit = bz.fit(OVER, ROWS, "gibbs", seed=1, draws=500)
    assert fit.attrs["status"] == "ok"
    row, alpha = bz.summarize(fit)["alpha"], exact.marginals["alpha"]
    assert abs(row["mean"] - alpha.mean()) < 4.5 * row["mcse_mean"]
    assert abs(row["sd"] - alpha.std()) < 4.5 * row["mcse_sd"]
    number = bz.clusters(fit).number
    assert (abs(number["probability"] - exact.number_of_components[number.index]) < 4.5 * number["mcse"]).all()


@pytest.mark.slow  # samples
def test_answers_and_files_are_those_of_the_process(tmp_path):
    fit = bz.fit(OVER, ROWS, "gibbs", seed=1, draws=400, thin=5)
    bz.save(fit, tmp_path / "over.nc")
    again = bz.load(tmp_path / "over.nc")
    assert str(Fit(again).model) == str(OVER)
    assert (bz.row_density(again)["density"] > 0).all()
    assert bz.clusters(again).drawn.shape[-1] == 6
    assert bz.predict(again, rows=1)["median"].notna().all()


# Few rows: exactly

EIGHT = np.array([-1.0, -0.8, 0.1, 1.9, 2.2, 2.4, 4.0, -1.3])
WHOLE = bz.over(BASE.replaced(K=60), {"alpha": "Gamma(2, 4)"})


def log_evidence_of_cluster(rows):
    """Log density of rows in one cluster: SciPy's Student t of each row given those before."""
    m, kappa, nu, psi, total = 0.5, 0.2, 3.0, 0.3, 0.0
    for y in rows:
        total += stats.t(nu, m, np.sqrt(psi * (kappa + 1) / (kappa * nu))).logpdf(y)
        psi += kappa / (kappa + 1) * (y - m) ** 2
        m, kappa, nu = (kappa * m + y) / (kappa + 1), kappa + 1, nu + 1
    return total


def of_whole_process(rows, shape, rate):
    """Return the log evidence, the posterior of the number of clusters, and mean and sd of alpha, by SciPy's `quad`.

    Given c clusters alpha enters by Gamma(alpha) / Gamma(alpha + N) alpha**c alone.
    """
    N, by_number = len(rows), {}
    for blocks in set_partitions([*range(N)]):
        height = sum(special.gammaln(len(own)) + log_evidence_of_cluster(rows[own]) for own in blocks)
        by_number.setdefault(len(blocks), []).append(height)
    heights = np.array([special.logsumexp(by_number[c]) for c in range(1, N + 1)])
    law = stats.gamma(shape, scale=1 / rate)

    def integral(c, power):
        def integrand(alpha):
            ratio = np.exp(special.gammaln(alpha) - special.gammaln(alpha + N))
            return alpha ** (c + power) * law.pdf(alpha) * ratio

        return integrate.quad(integrand, 0, np.inf, epsabs=0, epsrel=1e-12, limit=300)[0]

    moments = np.array([[integral(c, power) for c in range(1, N + 1)] for power in range(3)])
    evidence, first, second = moments @ np.exp(heights)
    number = moments[0] * np.exp(heights) / evidence
    return np.log(evidence), number, first / evidence, np.sqrt(second / evidence - (first / evidence) ** 2)


@pytest.fixture(scope="module")
def whole():
    return enumerate_posterior(WHOLE, {"a": EIGHT})


def test_partitions_and_alpha_are_summed_and_integrated_over(whole):
    log_evidence, number, mean, sd = of_whole_process(EIGHT, 2, 4)
    assert whole.log_evidence == pytest.approx(log_evidence, abs=1e-10)
    np.testing.assert_allclose(whole.number_of_components[1:9], number, atol=1e-12)
    alpha = whole.marginals["alpha"]
    assert float(alpha.mean()) == pytest.approx(mean, abs=1e-9)
    assert float(alpha.std()) == pytest.approx(sd, abs=1e-9)
    assert alpha.cdf(alpha.ppf(0.3)) == pytest.approx(0.3, abs=1e-6)


def test_the_prior_at_the_base_value_alone_is_seen(whole):
    """A seeded bug: alpha is not integrated over, but stays at the base's."""
    assert abs(enumerate_posterior(WHOLE.base, {"a": EIGHT}).log_evidence - whole.log_evidence) > 0.1


@pytest.mark.parametrize("prior", ["HalfCauchy(1)", "LogUniform(0.1, 10)", "Uniform(0.2, 3)", "Gamma(0.05, 0.01)"])
def test_any_prior_of_alpha_is_integrated_over(prior):
    """Against sums over partitions at each place of SciPy's `quad`, with few sticks."""
    of_alpha = bz.over(BASE.replaced(K=4), {"alpha": prior}).priors["alpha"]
    sizes = (3, 2, 1)

    def integrand(x):
        alpha = np.exp(x)
        law = Sticks.of(alpha, 4).labels(sizes)
        return np.exp(law.log_probability + of_alpha.logpdf(alpha) + x)

    ends = [max(-60.0, np.log(max(of_alpha.scale.low, 1e-300))), min(60.0, np.log(of_alpha.scale.high))]
    knots = np.clip([-5.0, -2.0, 0.0, 2.0, 5.0], *ends)
    expected = integrate.quad(integrand, *ends, points=np.unique(knots), epsabs=0, epsrel=1e-11, limit=500)[0]
    exact = Concentration(of_alpha, 4, 6).of_clusters(sizes).log_integral
    assert exact == pytest.approx(np.log(expected), abs=1e-8)


def test_a_mean_that_does_not_exist_is_withheld():
    heavy = bz.over(BASE, {"alpha": "HalfCauchy(1)"})
    assert np.isnan(enumerate_posterior(heavy, ROWS).marginals["alpha"].mean())


def test_alpha_and_weights_are_drawn_from_their_posterior_given_the_sticks():
    """log p(y, z, theta) less the posterior's density is log p(y, z), at any parameters."""
    z, rng = np.array([0, 0, 1, 2, 2, 2]), np.random.default_rng(0)
    posterior = OVER.posterior_given(z, ROWS)
    params = posterior.rvs(40, rng)
    rows = stats.norm(params["means"][:, z, 0], np.sqrt(params["covariances"][:, z, 0, 0])).logpdf(ROWS["Y"][:, 0])
    joint = OVER.log_prior(params, ROWS) + (rows + np.log(params["weights"][:, z])).sum(axis=1)
    np.testing.assert_allclose(joint - posterior.logpdf(params), OVER.log_joint(z[None], ROWS)[0], atol=1e-8)
    many = OVER.posterior_given(z, ROWS).rvs(20_000, rng)
    for name in ("alpha", "weights"):
        error = many[name].std(axis=0) / np.sqrt(20_000)
        assert np.all(np.abs(many[name].mean(axis=0) - posterior[name].mean()) < 5 * error)
        np.testing.assert_allclose(many[name].std(axis=0), posterior[name].std(), rtol=0.1)


def test_the_prior_of_alpha_and_weights_is_scipys():
    alpha, v = 0.7, np.array([0.3, 0.6, 0.2])
    weights = np.append(v, 1) * np.append(1, np.cumprod(1 - v))
    of_breaks = stats.beta(1, alpha).logpdf(v) - np.log(np.append(1, np.cumprod(1 - v)[:-1]))
    assert log_density_at(np.array(alpha), weights) == pytest.approx(of_breaks.sum(), abs=1e-12)


def test_draws_of_few_rows_are_those_of_the_exact_posterior():
    fit = bz.fit(OVER, ROWS, "enumerate", seed=1)
    exact = enumerate_posterior(OVER, ROWS)
    row = bz.summarize(fit)["alpha"]
    assert abs(row["mean"] - exact.marginals["alpha"].mean()) < 4.5 * row["mcse_mean"]
    assert facts(fit)["log_evidence"] == exact.log_evidence
    number = bz.clusters(fit).number
    error = np.sqrt(number["probability"] * (1 - number["probability"]) / 4000)
    assert (abs(number["probability"] - exact.number_of_components[number.index]) < 4.5 * error).all()


# Variational Bayes


def climbed(model, data, steps=60, seed=1):
    q = model.vb_start(data, np.random.default_rng(seed))
    for _ in range(steps):
        q = model.vb_m_step(model.vb_e_step(q, data).stats)
    return q


def elbo(model, q, data):
    return model.vb_e_step(q, data).value - model.divergence(q)


def test_the_bound_is_below_the_exact_log_evidence():
    exact = enumerate_posterior(OVER, ROWS).log_evidence
    for seed in range(3):
        bounds = [elbo(OVER, climbed(OVER, ROWS, steps, seed), ROWS) for steps in (0, 1, 3, 60)]
        assert np.all(np.diff(bounds) >= -1e-10)  # each step climbs
        assert bounds[-1] < exact
    assert exact - 4 < elbo(OVER, climbed(OVER, ROWS), ROWS)


def test_the_divergence_is_that_of_draws():
    """KL(q || prior) as the mean over draws of q of log q - log prior, in SciPy's densities of alpha and the breaks."""
    q, rng = climbed(OVER, ROWS), np.random.default_rng(4)
    draws = q.posterior.rvs(40_000, rng)
    of_clusters = q.others.q.law.divergence(q.others.prior.law)
    alpha, weights = draws["alpha"], draws["weights"]
    left = 1 - np.append(np.zeros((len(alpha), 1)), np.cumsum(weights[:, :-2], axis=1), axis=1)
    v = weights[:, :-1] / left
    pairs = q.others.q.weights.pairs
    ratios = stats.beta(*pairs.T).logpdf(v) - stats.beta(1, alpha[:, None]).logpdf(v)
    of_alpha = stats.gamma(q.shape, scale=1 / q.rate).logpdf(alpha) - stats.gamma(2, scale=0.5).logpdf(alpha)
    ratios = ratios.sum(axis=1) + of_alpha
    error = ratios.std() / np.sqrt(len(ratios))
    assert abs(OVER.divergence(q) - of_clusters - ratios.mean()) < 4.5 * error
    forgotten = len(pairs) * (np.log(q.shape) - special.digamma(q.shape))  # log E[alpha] for E[log alpha]
    assert abs(forgotten) > 20 * error


def test_the_step_of_alpha_and_the_sticks_is_the_best():
    """Against SciPy's optimizer of the bound, in the coordinates of q(alpha) and of all breaks."""
    expected = OVER.vb_e_step(climbed(OVER, ROWS, 2), ROWS).stats
    best, counts = OVER.vb_m_step(expected), expected.stats.parts[0].counts
    ended, passed = counts[:-1], np.cumsum(counts[::-1])[::-1][1:]

    def bound(x):
        (shape, rate), pairs = np.exp(x[:2]), np.exp(x[2:]).reshape(-1, 2)
        of_v, of_rest = (special.digamma(pairs) - special.digamma(pairs.sum(axis=1, keepdims=True))).T
        log_alpha = special.digamma(shape) - np.log(rate)
        joint = (log_alpha + (shape / rate - 1) * of_rest + ended * of_v + passed * of_rest).sum()
        joint += log_alpha - 2 * shape / rate  # of Gamma(2, 2), up to a constant
        return joint + stats.beta(*pairs.T).entropy().sum() + stats.gamma(shape, scale=1 / rate).entropy()

    at = np.log([best.shape, best.rate, *best.others.q.weights.pairs.ravel()])
    found = optimize.minimize(lambda x: -bound(x), at + 0.3, method="BFGS", options={"gtol": 1e-9})
    assert bound(at) >= -found.fun - 1e-8
    np.testing.assert_allclose(found.x, at, atol=2e-4)
    assert bound(at + 0.02 * np.eye(len(at))[1]) < bound(at) - 1e-5  # another rate is seen


def test_a_narrow_prior_is_a_fixed_alpha():
    narrow = bz.over(BASE, {"alpha": "Gamma(1e9, 1e9)"})
    q, fixed = climbed(narrow, ROWS), climbed(BASE, ROWS)
    at_fixed = BASE.vb_e_step(fixed, ROWS).value - BASE.divergence(fixed)
    assert elbo(narrow, q, ROWS) == pytest.approx(at_fixed, abs=1e-6)


def test_vb_needs_a_gamma_prior():
    with raises(bz.InputError, "method_unavailable"):
        bz.fit(bz.over(BASE, {"alpha": "HalfNormal(1)"}), ROWS, "vb", seed=1)


def test_one_stick_leaves_alpha_its_prior():
    one = bz.over(BASE.replaced(K=1), {"alpha": "Gamma(2, 2)"})
    q = one.vb_start(ROWS, np.random.default_rng(0))
    assert (q.shape, q.rate) == pytest.approx((2.0, 2.0))
    exact = enumerate_posterior(one, ROWS)
    assert float(exact.marginals["alpha"].mean()) == pytest.approx(1.0, abs=1e-9)
    assert elbo(one, q, ROWS) == pytest.approx(exact.log_evidence, abs=1e-9)
