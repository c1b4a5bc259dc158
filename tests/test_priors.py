"""Priors of numbers as values: against SciPy's densities and PyMC's, as text, and in place of a hierarchy's own."""

import json
import math

import numpy as np
import pymc as pm
import pytest
import scipy
from bayeszoo.models.beta_binomial import BetaBinomial
from bayeszoo.models.gamma_poisson_groups import GammaPoissonGroups
from bayeszoo.models.normal_means import NormalMeans
from scipy import stats

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.contract import conditional
from bayeszoo.contract.case import Case
from bayeszoo.distributions import priors
from bayeszoo.distributions.priors import PRIORS, HalfNormal, Normal, Priors, prior_of
from bayeszoo.model.declared_priors import declared
from bayeszoo.model.outer.integration import integrate
from bayeszoo.results.stored import Fit

EACH = {
    "Normal(1, 2)": stats.norm(1, 2),
    "HalfNormal(3)": stats.halfnorm(scale=3),
    "HalfCauchy(3)": stats.halfcauchy(scale=3),
    "Gamma(2, 0.5)": stats.gamma(2, scale=2),
    "InvGamma(3, 4)": stats.invgamma(3, scale=4),
    "Pareto(1.5, 2)": stats.pareto(1.5, scale=2),
    "Beta(2, 3)": stats.beta(2, 3),
    "Uniform(-1, 3)": stats.uniform(-1, 4),
    "LogUniform(0.1, 30)": stats.loguniform(0.1, 30),
}


def test_every_prior_is_tried():
    assert {text.partition("(")[0] for text in EACH} == PRIORS.keys()


@pytest.mark.parametrize("text", EACH)
def test_a_prior_is_scipy_s_and_pymc_s_and_draws_from_itself(text):
    prior, law = prior_of(text), EACH[text]
    x = law.ppf(np.linspace(0.01, 0.99, 9))
    np.testing.assert_allclose(prior.logpdf(x), law.logpdf(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(prior.scale.value(prior.scale.place(x)), x, rtol=1e-12)
    with pm.Model() as model:
        declared(prior, "x")
    density = Density(model, mode="FAST_COMPILE")
    by_pymc = [density.constrained_joint(density.unconstrain({"x": value}))[0] for value in x]
    np.testing.assert_allclose(by_pymc, law.logpdf(x), rtol=1e-9, atol=1e-9)
    drawn = [prior.rvs(rng) for rng in [np.random.default_rng(0)] for _ in range(2000)]
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-3
    assert stats.kstest(np.multiply(drawn, 1.5), law.cdf).pvalue < 1e-3  # a seeded bug


@pytest.mark.parametrize("text", EACH)
def test_a_prior_is_read_as_it_is_written(text):
    prior = prior_of(text)
    assert str(prior) == text
    assert prior_of(str(prior)) == prior
    assert hash(Priors({"x": text})) == hash(Priors({"x": prior}))


def test_priors_are_read_with_the_names_of_their_numbers():
    assert prior_of("Gamma(rate=0.1, shape=2)") == priors.Gamma(2, 0.1)
    assert prior_of("Normal(-1e-3, 1)") == Normal(-0.001, 1)


@pytest.mark.parametrize(
    "text",
    ["HalfNormal", "HalfNormal()", "HalfNormal(x)", "Flat(1)", "HalfNormal(1, 2)", "__import__('os')", "Gamma(1,",
     "HalfNormal(0)", "HalfNormal(-1)", "HalfNormal(1e999)", "HalfNormal(True)", "HalfNormal('1')", "Uniform(2, 1)",
     "LogUniform(0, 1)", "HalfNormal(scale=1)", "", "(" * 1000],
)  # fmt: skip
def test_what_is_no_prior_is_refused(text):
    with pytest.raises(bz.InputError):
        prior_of(text)


@pytest.mark.parametrize(
    "chosen", [{"tau": "Normal(0, 1)"}, {"sigma": "HalfNormal(1)"}, {"tau": 3}, "tau", {"tau": "Uniform(-1, 1)"}]
)
def test_a_hierarchy_refuses_priors_that_are_not_of_its_numbers(chosen):
    with pytest.raises(bz.InputError):
        NormalMeans(priors=chosen)


# In place of the model's own


def evidence_by_scipy(model, data, law):
    """The evidence of normal means with another prior of tau: the estimates are Gaussian given it."""
    y, se = data["y"], data["se"]

    def height(tau):
        covariance = np.diag(tau**2 + se**2) + model.s0**2
        return stats.multivariate_normal(np.full(len(y), model.m0), covariance).pdf(y) * law.pdf(tau)

    return math.log(scipy.integrate.quad(height, 0, np.inf, epsabs=0, epsrel=1e-10, limit=200)[0])


def test_another_prior_takes_the_place_of_the_textbook_s():
    data, model = bz.example(NormalMeans), NormalMeans(m0=0, s0=5, t0=5)
    chosen = model.replaced(priors={"tau": HalfNormal(10)})
    assert integrate(chosen, data).log_evidence == pytest.approx(
        evidence_by_scipy(model, data, stats.halfnorm(scale=10)), abs=1e-8
    )
    assert integrate(model, data).log_evidence == pytest.approx(
        evidence_by_scipy(model, data, stats.halfcauchy(scale=5)), abs=1e-8
    )
    assert integrate(model.replaced(priors={"tau": "HalfCauchy(5)"}), data).log_evidence == pytest.approx(
        integrate(model, data).log_evidence, abs=1e-12
    )


def test_a_number_whose_prior_has_no_closed_form_is_integrated_over_too():
    data, model = bz.example(NormalMeans), NormalMeans(m0=0, s0=5, t0=5)
    moved = model.replaced(priors={"mu": Normal(1, 3)})
    assert moved.integrated_over == ("tau",)
    assert integrate(moved, data).log_evidence == pytest.approx(
        integrate(NormalMeans(m0=1, s0=3, t0=5), data).log_evidence, abs=1e-10
    )
    wide = model.replaced(priors={"mu": "Uniform(-200, 200)"})
    assert wide.integrated_over == ("mu", "tau")
    flat = NormalMeans(m0=0, s0=1e4, t0=5)  # within the ends a normal density that is all but flat
    expected = integrate(flat, data).log_evidence - stats.norm(0, 1e4).logpdf(0) - math.log(400)
    assert integrate(wide, data).log_evidence == pytest.approx(expected, abs=1e-4)


MODELS = [
    NormalMeans(m0=0, s0=5, t0=5, priors={"tau": "HalfNormal(10)", "mu": "Uniform(-30, 30)"}),
    NormalMeans(m0=0, s0=5, t0=5, priors={"tau": "LogUniform(0.1, 100)"}),
    NormalMeans(m0=0, s0=5, t0=5, priors={"tau": "InvGamma(1, 3)"}),
    BetaBinomial(priors={"size": "Gamma(2, 0.1)", "mean": "Uniform(0, 0.5)"}),
    GammaPoissonGroups(priors={"shape": "HalfCauchy(2)", "rate": "Pareto(1, 0.1)"}),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_declaration_follows_the_prior(model):
    data = bz.example(type(model))
    case = Case(model, data, np.random.default_rng(0))
    for identity in (conditional.conditional_candidate, conditional.marginalized_density, conditional.quadrature):
        check = identity(case)
        assert check.passed, check


def test_a_prior_that_is_not_declared_is_seen():
    class Forgetful(NormalMeans):
        def declared_outer(self):
            return NormalMeans(self.m0, self.s0, self.t0).declared_outer()

    model = Forgetful(m0=0, s0=5, t0=5, priors={"tau": "HalfNormal(10)"})
    case = Case(model, bz.example(NormalMeans), np.random.default_rng(0))
    assert not conditional.marginalized_density(case).passed


def test_modes_and_saved_fits_have_the_prior(tmp_path):
    model = NormalMeans(m0=0, s0=5, t0=5, priors={"tau": "InvGamma(2, 6)"})
    fitted = bz.fit(model, None, "map", seed=1)
    assert fitted.attrs["status"] == "ok"
    mode = fitted.posterior["tau"].item()
    heights = [integrand(model, tau) for tau in (mode * 0.99, mode, mode * 1.01)]
    assert heights[1] == max(heights)
    bz.save(fitted, tmp_path / "fit.nc")
    again = bz.load(tmp_path / "fit.nc")
    assert Fit(again).model == model
    assert json.loads(again.attrs["fields"])["priors"] == {"tau": "InvGamma(2, 6)"}
    assert "priors" not in json.loads(bz.fit(NormalMeans(), None, "map", seed=1).attrs["fields"])


def integrand(model, tau):
    """The highest log joint density over mu, the effects integrated out."""
    data = bz.example(NormalMeans)
    best = scipy.optimize.minimize_scalar(
        lambda mu: -(model.log_marginal({"mu": mu, "tau": tau}, data) + model.log_outer_prior({"mu": mu, "tau": tau}))
    )
    return -best.fun


# The command


def test_the_command_takes_a_prior(run):
    fields = [part for field in ("m0=0", "s0=5", "t0=5") for part in ("--set", field)]
    code, out, err = run("fit", "normal_means", *fields, "--prior", "tau=HalfNormal(10)", "--method", "exact", "--json")
    assert code == 0, err
    document = json.loads(out)
    expected = integrate(NormalMeans(m0=0, s0=5, t0=5, priors={"tau": HalfNormal(10)}), bz.example(NormalMeans))
    assert document["log_evidence"] == pytest.approx(expected.log_evidence, abs=1e-9)
    assert document["prior"] == "weak"
    for bad in ("tau=HalfNormal", "sigma=HalfNormal(1)", "tau=Normal(0,1)", "loose"):
        code, out, err = run("fit", "normal_means", "--prior", bad)
        assert (code, out, err.count("Traceback")) == (2, "", 0)
    assert run("fit", "ridge", "--prior", "tau=HalfNormal(1)")[0] == 2
