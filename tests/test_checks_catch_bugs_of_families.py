"""The bugs that a careful reviewer would fear in the conjugate families, and the identity that must catch each.

That the models themselves pass, on these very cases, is `test_contract`. In the steps of the bugs m is the model, d the
data, s their statistics and p the parameters; ``right(m)`` has the steps without the bug.
"""

import math
from dataclasses import fields, replace
from functools import cache, partial

import numpy as np
import pymc as pm
import pytest
import scipy
from pymc.logprob.transforms import LogTransform
from scipy.special import gammaln

from bayeszoo.contract.case import Case, case_of, cases_of
from bayeszoo.contract.check import IDENTITIES, applicable, run_identity
from bayeszoo.distributions.conjugate.dirichlet import log_dirichlet_ratio
from bayeszoo.distributions.discrete import Categorical, Multinomial, NegativeBinomial
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.wishart import MultivariateT
from bayeszoo.likelihoods.inverse_wishart import Cholesky, InverseWishart
from bayeszoo.model.base import fields_of
from bayeszoo.model.fields import plain, positive, real
from bayeszoo.model.find import find
from tests.quick import base_of, is_quick, named, off_by, one_bug_an_identity, right, seed

GaussianMean, GaussianPrecision = find("gaussian_mean"), find("gaussian_precision")
GammaPoisson, NormalGamma = find("gamma_poisson"), find("normal_gamma")
DirichletMultinomial, MarkovChain = find("dirichlet_multinomial"), find("markov_chain")
NormalInverseWishart = find("normal_inverse_wishart")

BUGS = []


def other(m, **changes):
    """Return the model that the bug is seeded in, with other fields."""
    return base_of(type(m))(**{**fields_of(m), **changes})


def with_block(**steps):
    """Return a step that gives the conjugate block with other steps, each a function of the block and its arguments."""

    def block(m, s=None):
        own = right(m).block(s)
        return type("Bug", (type(own),), steps)(**{f.name: getattr(own, f.name) for f in fields(own)})

    return {"block": block}


def posterior_of(marginals):
    """Return a step that gives independent marginals: of each the distribution that a function makes."""
    return lambda m, s: Posterior({name: make(m, s) for name, make in marginals.items()})


# Gamma-Poisson; form 1 has an exposure

poisson = partial(seed, BUGS, GammaPoisson)
ONE_UNIT = {"statistics": lambda m, d: right(m).statistics({"y": d["y"]})}
gamma = scipy.stats.gamma
poisson("no_data prior_sampler", "RateReadAsScale", declare=lambda m, d: other(m, b=1 / m.b).declare(d))
later_rate = posterior_of({"rate": lambda m, s: gamma(m.updated(s).a, scale=m.updated(s).b)})
poisson("candidate_identity", "PosteriorRateReadAsScale", posterior=later_rate)
both = "independent_density compressed_density"
poisson(both, "ExposureIgnored", 1, declare=lambda m, d: right(m).declare({"y": d["y"]}))
poisson("compressed_density chain_rule", "ExposureNotCounted", 1, **ONE_UNIT)
poisson("independent_density", "OfOneUnit", 1, likelihood=lambda m, p, d: right(m).likelihood(p, {"y": d["y"]}))
poisson("chain_rule", "PredictsOneUnit", 1, predictive=lambda m, s, d: right(m).predictive(s, {"y": d["y"]}))


def with_peaks(add):
    """Return a step that adds to the statistic of the factorials."""
    return lambda m, d: replace(s := right(m).statistics(d), peaks=s.peaks + np.sum(add(d)))


poisson("chain_rule compressed_density", "FactorialDropped", statistics=with_peaks(lambda d: gammaln(d["y"] + 1.0)))
powers = with_peaks(lambda d: -d["y"] * np.log(d["exposure"]) if "exposure" in d else 0.0)
poisson("chain_rule", "PowerOfExposureDropped", 1, statistics=powers)
rate_of_the_prior = off_by(lambda m, s: s.events * math.log1p(s.exposure / m.b))
poisson("normalization chain_rule", "EvidenceWithTheRateOfThePrior", log_evidence=rate_of_the_prior)


def without_the_new_row(m, s, d):
    """The negative binomial with N for N + 1: b + N - 1 in its probability."""
    later = m.updated(s)
    return NegativeBinomial(later.a, later.b, np.full(len(d["y"]), later.b / (later.b + 1)))


poisson("chain_rule", "PredictsWithoutTheNewRow", predictive=without_the_new_row)
mean_rate = {"map": lambda m, s: {"rate": m.posterior(s)["rate"].mean()}}
poisson("chain_rule", "PredictsWithTheMeanRate", predictive=lambda m, s, d: m.likelihood(mean_rate["map"](m, s), d))
poisson("batches", "UpdatedByRows", updated=lambda m, s: replace(m, a=m.a + s.events, b=m.b + s.exposure + 1))
poisson("map_is_the_maximum", "MapIsTheMeanRate", **mean_rate)
poisson("mle_is_the_maximum", "MlePerRow", 1, mle=lambda m, s: {"rate": s.events / 20})
poisson("simulator", "SimulatesScale", simulate=lambda m, rng, size=20: other(m, b=1 / m.b).simulate(rng, size))


twice = {"statistics": lambda m, d: replace(s := right(m).statistics(d), events=s.events + float(d["y"][:1].sum()))}
poisson("row_order", "FirstCountTwice", **twice)

# Gaussian mean

mean = partial(seed, BUGS, GaussianMean)
normal = scipy.stats.norm
mean(both, "SdReadAsVariance", declare=lambda m, d: other(m, sigma=m.sigma**0.5).declare(d))
mean("no_data prior_sampler", "SdReadAsPrecision", declare=lambda m, d: other(m, s0=m.s0**-0.5).declare(d))


def sd_of_the_notes(m, s):
    """W4400 prints s s0^2 / (s^2 + n s0^2) for the standard deviation."""
    mu = right(m).posterior(s)["mu"].mean()
    return Posterior({"mu": normal(mu, m.sigma * m.s0**2 / (m.sigma**2 + s.n * m.s0**2))})


def mean_of_the_notes(m, s):
    """CS725 11.1 prints mu_0 for mu_0 / sigma_0^2."""
    sd = right(m).posterior(s)["mu"].std()
    return Posterior({"mu": normal(sd**2 * (s.n * s.mean / m.sigma**2 + m.m0), sd)})


mean("candidate_identity", "PosteriorSdAsInTheNotes", posterior=sd_of_the_notes)
mean("no_data", "PosteriorMeanAsInTheNotes", posterior=mean_of_the_notes)
itself = {"predictive": lambda m, s, d: normal(m.posterior(s)["mu"].mean() + np.zeros(len(d["y"])), m.sigma)}
mean("chain_rule", "PredictsTheMeanItself", **itself)
mean("compressed_density", "NoScatter", compressed=lambda m, s: right(m).compressed(replace(s, scatter=0.0)))
mean("chain_rule", "NoScatterInEvidence", log_evidence=lambda m, s: right(m).log_evidence(replace(s, scatter=0.0)))
weak = GaussianMean.weak
squared = classmethod(lambda cls, d: cls(weak(d).m0, weak(d).s0, weak(d).sigma ** 2))
mean("weak_units", "WeakVarianceForSd", weak=squared)
spread = classmethod(lambda cls, d: cls(**fields_of(weak(d))) if np.ptp(d["y"]) else None)
mean("weak_defaults", "WeakOfDegenerateData", weak=spread)
mean("units", "ScaleWithoutUnits", fields=[("s0", float, positive(10.0, "prior sd"))])
mean("units weak_units", "PlaceThatDoesNotMove", fields=[("m0", float, real(0.0, "prior mean", units=1))])

# Gaussian precision

precision = partial(seed, BUGS, GaussianPrecision)
precision("no_data", "RateOfPrecisionReadAsScale", declare=lambda m, d: other(m, b=1 / m.b).declare(d))


def with_sd(power):
    """Return a declaration whose sigma is a power of the precision."""

    def declare(m, d):
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=m.a, beta=m.b)
            pm.Normal("y", mu=m.mu, sigma=lam**power, observed=d["y"])
        return model

    return declare


precision(
    "compressed_density",
    "PrecisionReadAsVariance",
    likelihood=lambda m, p, d: right(m).likelihood({"lam": 1 / np.asarray(p["lam"])}, d),
    declare=with_sd(0.5),
)
precision(both, "PrecisionReadAsSd", declare=with_sd(1))
whole = posterior_of({"lam": lambda m, s: gamma(m.a + s.n, scale=1 / m.updated(s).b)})
precision("candidate_identity", "WholeForHalf", posterior=whole)
about_mean = {"statistics": lambda m, d: replace(right(m).statistics(d), mean=m.mu)}
precision("chain_rule compressed_density", "SquaresAboutTheirMean", **about_mean)


def other_t(change):
    """Return a predictive step whose Student's t has other degrees of freedom, location and scale."""
    return lambda m, s, d: scipy.stats.t(*change(m, s, *right(m).predictive(s, d).args))


half_df = other_t(lambda m, s, df, loc, scale: (m.updated(s).a, loc, scale))
precision("chain_rule", "HalfTheDegreesOfFreedom", predictive=half_df)
variance = other_t(lambda m, s, df, loc, scale: (df, loc, scale**2))
precision("chain_rule", "VarianceForTheScaleOfT", predictive=variance)
precision("chain_rule", "PiDropped", log_evidence=off_by(lambda m, s: s.n / 2 * math.log(math.pi)))
precision("mle_is_the_maximum", "OneLessThanN", mle=lambda m, s: {"lam": (s.n - 1) / s.about(m.mu)})
precision("map_is_the_maximum", "MapIsTheMle", map=lambda m, s: m.mle(s))
sd_for_variance = classmethod(lambda cls, d: cls(0.5, 0.5 * np.std(d["y"]) or 1.0, np.mean(d["y"])))
precision("weak_units", "WeakSdForVariance", weak=sd_for_variance)
precision("units", "RateInUnitsOfSd", fields=[("b", float, positive(1.0, "prior rate", units=1))])
of_the_mean = {"derived": lambda m, p: {k: np.full_like(v, np.mean(v)) for k, v in right(m).derived(p).items()}}
precision("derived_quantities", "SdOfTheMeanPrecision", **of_the_mean)

# Normal-gamma

normal_gamma = partial(seed, BUGS, NormalGamma)


def independent_mean(m, d):
    with pm.Model() as model:
        lam = pm.Gamma("lam", alpha=m.alpha0, beta=m.beta0)
        mu = pm.Normal("mu", mu=m.mu0, tau=m.kappa0)
        pm.Normal("y", mu=mu, tau=lam, observed=d["y"])
    return model


def simulates_mean_independently(m, rng, size=20):
    lam, other_lam = rng.gamma(m.alpha0, 1 / m.beta0, 2)
    mu = rng.normal(m.mu0, (m.kappa0 * other_lam) ** -0.5)
    return {"mu": mu, "lam": lam}, {"y": rng.normal(mu, lam**-0.5, size)}


def certain_mean(m, s, df, loc, scale):
    later = m.updated(s)
    return 2 * later.alpha0, np.full(len(loc), later.mu0), math.sqrt(later.beta0 / later.alpha0)


normal_gamma("no_data independent_density", "MeanIndependentOfPrecision", declare=independent_mean)
normal_gamma("no_data prior_sampler", "KappaDivides", declare=lambda m, d: other(m, kappa0=1 / m.kappa0).declare(d))
beta_as_scale = {"declare": lambda m, d: other(m, beta0=1 / m.beta0).declare(d)}
normal_gamma("no_data compressed_density", "BetaReadAsScale", **beta_as_scale)
product = {"posterior": lambda m, s: Posterior(dict(right(m).posterior(s)))}
normal_gamma("candidate_identity no_data", "PosteriorIsAProduct", **product)
normal_gamma("simulator", "SimulatesMeanIndependently", simulate=simulates_mean_independently)
normal_gamma("chain_rule batches", "ConflictForgotten", **with_block(_growth=lambda b, s: s.scatter))
conflict = with_block(_growth=lambda b, s: s.scatter + b.kappa / (b.kappa + s.n) * (s.mean - b.m) ** 2)
normal_gamma("chain_rule batches", "ConflictWithoutN", **conflict)
no_kappa = off_by(lambda m, s: math.log1p(s.n / m.kappa0) / 2)
normal_gamma("chain_rule", "KappaDroppedFromEvidence", log_evidence=no_kappa)
halved = other_t(lambda m, s, df, loc, scale: (df / 2, loc, scale))
normal_gamma("chain_rule", "PredictsWithAlphaDegreesOfFreedom", predictive=halved)
normal_gamma("chain_rule", "PredictsFromACertainMean", predictive=other_t(certain_mean))
less = {"updated": lambda m, s: replace(later := right(m).updated(s), alpha0=later.alpha0 - 0.5 * (s.n > 1))}
normal_gamma("batches", "NLessOneDegreesOfFreedom", **less)
marginal = {"map": lambda m, s: {"mu": (later := m.updated(s)).mu0, "lam": (later.alpha0 - 1) / later.beta0}}
normal_gamma("map_is_the_maximum", "MapOfTheMarginal", **marginal)
unbiased = {"mle": lambda m, s: {"mu": s.mean, "lam": (s.n - 1) / s.scatter}}
normal_gamma("mle_is_the_maximum", "UnbiasedIsNotMle", **unbiased)
normal_gamma("free_parameters", "ForgetsOneParameter", free_parameters=lambda m, s: 1)

# Dirichlet-multinomial; form 1 is counts

shares = partial(seed, BUGS, DirichletMultinomial)


def mean_of(alpha):
    return alpha / alpha.sum()


def without_axis(m, d):
    with pm.Model() as model:
        p = pm.Dirichlet("p", a=m.entries("alpha", len(d["category"])))
        pm.Categorical("y", p=p, observed=d["y"])
    return model


shares("no_data prior_sampler", "AlphaPermuted", declare=lambda m, d: other(m, alpha=m.alpha[::-1]).declare(d))
# entries of alpha matched to the categories in order of their counts
by_place = {"log_evidence": lambda m, s: right(m).log_evidence(replace(s, counts=np.sort(s.counts)))}
shares("label_order chain_rule", "AlphaByPlaceOfTheLargest", **by_place)
of_counts = off_by(lambda m, s: float(gammaln(s.counts.sum() + 1) - gammaln(s.counts + 1).sum()))
shares("candidate_identity chain_rule", "EvidenceOfCountsForOrdered", log_evidence=of_counts)
forgotten = {"statistics": lambda m, d: replace(right(m).statistics(d), log_coefficient=0.0)}
shares("compressed_density", "CoefficientForgotten", 1, **forgotten)
mean = {"predictive": lambda m, s, d: Multinomial(d["counts"].sum(axis=1), mean_of(m.block(s).updated(s).alpha)[None])}
shares("chain_rule", "PlugsInTheMeanShares", 1, **mean)
above = {
    "predictive": lambda m, s, d: Categorical(np.tile(mean_of(m.block(s).updated(s).alpha - 0.9), (len(d["y"]), 1)))
}
shares("chain_rule", "PredictsTheMode", **above)
shared = {"block": lambda m, s: replace(right(m).block(s), alpha=right(m).block(s).alpha / len(s.counts))}
shares("no_data", "AlphaSharedOut", **shared)
shares("map_is_the_maximum", "MapIsTheMeanOfShares", map=lambda m, s: {"p": mean_of(m.block(s).updated(s).alpha)})
shares("free_parameters", "SharesAreFree", free_parameters=lambda m, s: len(s.counts))
shares("names_of_axes", "AxisWithoutName", declare=without_axis)
total = {"predictive": lambda m, s, d: right(m).predictive(s, {**d, "counts": d["counts"].sum(axis=0)[None]})}
shares("predictive_shape", "PredictsTheTotal", 1, **total)

# Markov chain

markov = partial(seed, BUGS, MarkovChain)


def backwards(d):
    return {**d, "next": d["previous"], "previous": d["next"]}


def by_the_first_context(m, s):
    alpha = np.array(m.alpha)
    by_row = np.diag(alpha)[:, None] + alpha[0]  # depends on which context is the first
    return float(np.sum(log_dirichlet_ratio(by_row, s.counts)))


def first_symbol_counted(m, d):
    """The first symbol is given, but counted as if it had followed itself."""
    s = right(m).statistics(d)
    if not len(d["next"]):
        return s
    counts = s.counts.copy()
    counts[d["previous"][0], d["previous"][0]] += 1
    return replace(s, counts=counts)


def by_column(table):
    return table / table.sum(axis=0)


transposed = {"statistics": lambda m, d: replace(s := right(m).statistics(d), counts=s.counts.T)}
markov("candidate_identity chain_rule", "CountsTransposed", **transposed)
markov(both, "TransitionMatrixTransposed", declare=lambda m, d: right(m).declare(backwards(d)))
columns = {"likelihood": lambda m, p, d: right(m).likelihood({"P": np.swapaxes(p["P"], -1, -2)}, d)}
markov("independent_density", "LikelihoodOfColumns", **columns)
reverse = {"simulate": lambda m, rng, size=20: (lambda p, d: (p, backwards(d)))(*right(m).simulate(rng, size))}
markov("simulator", "SimulatesBackwards", **reverse)
markov(
    "no_data label_order",
    "AlphaTransposed",
    entries=lambda m, name, size: right(m).entries(name, size).T,
    declare=lambda m, d: MarkovChain(m.alpha).declare(d),
    log_evidence=by_the_first_context,
)
over_contexts = {"predictive": lambda m, s, d: Categorical(by_column(m.block(s).updated(s).alpha)[d["previous"]])}
markov("chain_rule", "NormalizedOverContexts", **over_contexts)
first_row = lambda m, s: log_dirichlet_ratio(m.entries("alpha", s.counts.shape)[0], s.counts.sum(axis=0))  # noqa: E731
markov("chain_rule", "OneRowForAllContexts", log_evidence=lambda m, s: float(first_row(m, s)))
markov("chain_rule batches", "FirstSymbolCounted", statistics=first_symbol_counted)
markov("mle_is_the_maximum", "SharesOfColumns", mle=lambda m, s: {"P": by_column(by_column(s.counts).T).T})
markov("names_of_axes", "AxesSwapped", dims={"P": ("symbol", "context")})
labels = {"coords": lambda m, d: {k: sorted(v, reverse=True) for k, v in right(m).coords(d).items()}}
markov("names_of_axes", "LabelsSorted", **labels)
first_only = {"derived": lambda m, p: {k: v[..., 0] for k, v in right(m).derived(p).items()}}
markov("derived_quantities", "DerivedWithoutItsAxis", **first_only)
markov("free_parameters", "AllEntriesFree", free_parameters=lambda m, s: s.counts.size)

# Normal-inverse-Wishart

wishart = partial(seed, BUGS, NormalInverseWishart)


def independent_covariance(m, d):
    with pm.Model(coords=m.coords(d)) as model:
        psi = np.array(m.Psi0)
        sigma = InverseWishart("Sigma", m.nu0, psi, dims=m.dims["Sigma"])
        mu = pm.MvNormal("mu", mu=m.entries("mu0", m._size), cov=psi / m.nu0 / m.kappa0, dims="column")
        pm.MvNormal("Y", mu=mu, cov=sigma, observed=d["Y"])
    return model


class OnePowerLess(Cholesky):
    def log_jac_det(self, value, *inputs):
        return super().log_jac_det(value, *inputs) - value[self.diagonal].sum()


class ReversedPowers(Cholesky):
    def log_jac_det(self, value, *inputs):
        powers = np.arange(2.0, self.size + 2.0)
        return np.float64(self.size * np.log(2.0)) + (powers * value[self.diagonal]).sum()


def with_transform(transform):
    """Return a declaration with another transform in the place of that of Sigma."""

    def declare(m, d):
        declared = right(m).declare(d)
        declared.rvs_to_transforms[declared["Sigma"]] = transform(m._size)
        return declared

    return declare


def predicts(change):
    """Return a step whose Student's t has other degrees of freedom and another shape."""

    def predictive(m, s, d):
        t = right(m).predictive(s, d)
        df, shape = change(m, m.updated(s), t.df, t.shape)
        return MultivariateT(df, t.loc, shape, len(d["Y"]))

    return {"predictive": predictive}


def mode_of_the_marginal_covariance(m, s):
    later = m.updated(s)
    return {**right(m).map(s), "Sigma": np.array(later.Psi0) / (later.nu0 + m._size + 1)}


prior_of = "no_data independent_density"
wishart(prior_of, "PsiInverted", declare=lambda m, d: other(m, Psi0=plain(np.linalg.inv(m.Psi0))).declare(d))
wishart(prior_of, "KappaMultiplied", declare=lambda m, d: other(m, kappa0=1 / m.kappa0).declare(d))
wishart("no_data compressed_density", "NuOffByOne", declare=lambda m, d: other(m, nu0=m.nu0 + 1).declare(d))
wishart("chain_rule", "NuOffByOneInEvidence", log_evidence=lambda m, s: other(m, nu0=m.nu0 + 1).log_evidence(s))
pi = math.log(math.pi)
wishart("candidate_identity chain_rule", "PiDropped", log_evidence=off_by(lambda m, s: s.n * m._size / 2 * pi))
wishart("chain_rule", "PiWithoutD", log_evidence=off_by(lambda m, s: s.n * (m._size - 1) / 2 * pi))
kappa = off_by(lambda m, s: (m._size - 1) / 2 * math.log1p(s.n / m.kappa0))
wishart("chain_rule", "KappaWithoutD", log_evidence=kappa)
wishart(prior_of, "MeanIndependentOfCovariance", declare=independent_covariance)
wishart("jacobian", "JacobianOnePowerLess", declare=with_transform(OnePowerLess))
wishart("jacobian", "JacobianOfTheUpperTriangle", declare=with_transform(ReversedPowers))
wishart("chain_rule batches", "ConflictOfMeansForgotten", **with_block(_growth=lambda b, s: (s.scatter, s.n)))
more = predicts(lambda m, later, df, shape: (df + m._size - 1, shape * df / (df + m._size - 1)))
wishart("chain_rule", "TooManyDegreesOfFreedom", **more)
certain_centre = predicts(lambda m, later, df, shape: (df, shape / (later.kappa0 + 1) * later.kappa0))
wishart("chain_rule", "PredictsFromACertainCentre", **certain_centre)
wishart("map_is_the_maximum", "MapOfTheMarginalCovariance", map=mode_of_the_marginal_covariance)
unbiased = {"mle": lambda m, s: {"mu": s.mean, "Sigma": s.scatter / (s.n - 1)}}
wishart("mle_is_the_maximum", "UnbiasedCovariance", **unbiased)
wishart("free_parameters", "BothTriangles", free_parameters=lambda m, s: m._size + m._size**2)
axes = lambda m: np.eye(m._size)  # noqa: E731
axes_only = {
    "likelihood": lambda m, p, d: right(m).likelihood({**p, "Sigma": np.asarray(p["Sigma"]) * axes(m)}, d),
    "log_evidence": lambda m, s: right(m).log_evidence(replace(s, scatter=s.scatter * axes(m))),
}
wishart("independent_density", "SigmaOfOneAxisOnly", **axes_only)
first_column = off_by(lambda m, s: np.array(m.Psi0)[0, 0] * s.n)
wishart("label_order", "FactorOfTheFirstColumn", log_evidence=first_column)
swapped = {"likelihood": lambda m, p, d: right(m).likelihood({k: np.swapaxes(v, 0, 1) for k, v in p.items()}, d)}
wishart("likelihood_shape", "RowsBeforeDraws", **swapped)

# Bugs in what only a sampler, or a fit, uses


class NoJacobian(LogTransform):
    def log_jac_det(self, value, *inputs):
        return value - value


class CompressedWithoutJacobian(NormalGamma):
    """The density that is sampled."""

    def compressed(self, stats):
        model = super().compressed(stats)
        model.rvs_to_transforms[model["lam"]] = NoJacobian()
        return model


class DrawsIndependent(NormalGamma):
    """Draws of every exact fit, whose marginals are right, and whose density is."""

    def posterior(self, stats):
        joint = super().posterior(stats)
        return Posterior(dict(joint), None, joint.logpdf)


# The tests


@cache
def good(family, form):
    """Return the case of the model as it is, on simulated data: off its defaults, compiled once."""
    return cases_of(family)[form] if form else case_of(family)


def seeded(bug, form):
    """Return the case of the bug, with what it does not touch as it was compiled for the others."""
    family = base_of(bug)
    without = good(family, form)
    made = Case(bug(**fields_of(without.model)), without.data)
    if bug.declare is family.declare:
        made.__dict__["declared"] = without.declared
    if bug.compressed is family.compressed and bug.statistics is family.statistics:
        made.__dict__["compressed"] = without.compressed
    return made


@pytest.mark.parametrize(("bug", "function", "form"), one_bug_an_identity(BUGS), ids=named)
def test_bug_is_caught(bug, function, form):
    found = run_identity(next(one for one in IDENTITIES if one.function == function), seeded(bug, form))
    assert found.value is not None
    assert not found.passed


@pytest.mark.slow
@pytest.mark.parametrize("bug", [CompressedWithoutJacobian, DrawsIndependent], ids=named)
def test_bug_is_caught_without_a_sampler(bug):
    case = seeded(bug, 0)
    assert not all(run_identity(one, case).passed for one in applicable(bug))


def test_every_identity_has_a_seeded_bug_here_or_there():
    """Others are seeded for beta_bernoulli, regressions, mixtures, groups and models without a closed form."""
    with_files = {"EM", "Hidden", "Sequential", "Conditional", "LogConcave"}
    elsewhere = {one.function for one in IDENTITIES if with_files & {*one.needs} or one.lacks}
    quick = {case[1] for case in one_bug_an_identity(BUGS) if is_quick(case)}
    assert {one.function for one in IDENTITIES} - quick - elsewhere == {"feature_units"}
    assert len({bug for bug, _, _ in BUGS}) >= 80
