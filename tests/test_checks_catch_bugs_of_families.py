"""The bugs that a careful reviewer would fear in the conjugate families, and the identity that must catch each.

That the models themselves pass, on these very cases, is `test_contract`.
"""

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pymc as pm
import pytest
import scipy
from pymc.logprob.transforms import LogTransform

from bayeszoo.contract.case import Case
from bayeszoo.contract.cases import case_of, cases_of
from bayeszoo.contract.check import IDENTITIES, applicable, run_identity
from bayeszoo.distributions.dirichlet import Dirichlet, log_dirichlet_ratio
from bayeszoo.distributions.discrete import Categorical, Multinomial, NegativeBinomial
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.wishart import MultivariateT
from bayeszoo.likelihoods.inverse_wishart import InverseWishart
from bayeszoo.likelihoods.transforms import Cholesky
from bayeszoo.model.base import fields_of
from bayeszoo.model.fields import plain, positive, real
from bayeszoo.model.find import find
from tests.quick import is_quick, one_bug_an_identity

GaussianMean, GaussianPrecision = find("gaussian_mean"), find("gaussian_precision")
GammaPoisson, NormalGamma = find("gamma_poisson"), find("normal_gamma")
DirichletMultinomial, MarkovChain = find("dirichlet_multinomial"), find("markov_chain")
NormalInverseWishart = find("normal_inverse_wishart")

BUGS = []


def caught_by(*identities, form=0):
    """Seed a bug: each of the identities must fail on it; ``form`` is that of the table."""

    def seed(bug):
        BUGS.extend((bug, identity, form) for identity in identities)
        return bug

    return seed


def with_other(model, **changes):
    """Return the model that the bug is seeded in, with other fields."""
    return base_of(type(model))(**{**fields_of(model), **changes})


def base_of(bug):
    return next(c for c in bug.__mro__[1:] if c.__module__.startswith("bayeszoo.models."))


# Gamma-Poisson; form 1 has an exposure


@caught_by("no_data", "prior_sampler")
class RateOfCountsReadAsScale(GammaPoisson):
    def declare(self, data):
        return with_other(self, b=1 / self.b).declare(data)


@caught_by("candidate_identity")
class PosteriorRateReadAsScale(GammaPoisson):
    def posterior(self, stats):
        later = self.updated(stats)
        return Posterior({"rate": scipy.stats.gamma(later.a, scale=later.b)})


@caught_by("independent_density", "compressed_density", form=1)
class ExposureIgnored(GammaPoisson):
    def declare(self, data):
        return super().declare({"y": data["y"]})


@caught_by("compressed_density", "chain_rule", form=1)
class ExposureNotCounted(GammaPoisson):
    def statistics(self, data):
        return super().statistics({"y": data["y"]})


@caught_by("independent_density", form=1)
class LikelihoodOfOneUnit(GammaPoisson):
    def likelihood(self, params, data):
        return super().likelihood(params, {"y": data["y"]})


@caught_by("chain_rule", form=1)
class PredictsOneUnit(GammaPoisson):
    def predictive(self, stats, data):
        return super().predictive(stats, {"y": data["y"]})


@caught_by("chain_rule", "compressed_density")
class FactorialDropped(GammaPoisson):
    def statistics(self, data):
        stats = super().statistics(data)
        return replace(stats, peaks=stats.peaks + np.sum(scipy.special.gammaln(data["y"] + 1.0)))


@caught_by("chain_rule", form=1)
class PowerOfExposureDropped(GammaPoisson):
    def statistics(self, data):
        stats = super().statistics(data)
        if "exposure" not in data:
            return stats
        return replace(stats, peaks=stats.peaks - np.sum(data["y"] * np.log(data["exposure"])))


@caught_by("normalization", "chain_rule")
class EvidenceWithTheRateOfThePrior(GammaPoisson):
    def log_evidence(self, stats):
        return super().log_evidence(stats) + stats.events * math.log1p(stats.exposure / self.b)


@caught_by("chain_rule")
class PredictsWithoutTheNewRow(GammaPoisson):
    """The negative binomial with N for N + 1: b + N - 1 in its probability."""

    def predictive(self, stats, data):
        later = self.updated(stats)
        return NegativeBinomial(later.a, later.b, np.full(len(data["y"]), later.b / (later.b + 1)))


@caught_by("chain_rule")
class PredictsWithTheMeanRate(GammaPoisson):
    def predictive(self, stats, data):
        return self.likelihood({"rate": self.posterior(stats)["rate"].mean()}, data)


@caught_by("batches")
class UpdatedByRows(GammaPoisson):
    def updated(self, stats):
        return replace(self, a=self.a + stats.events, b=self.b + stats.exposure + 1)


@caught_by("map_is_the_maximum")
class MapIsTheMeanRate(GammaPoisson):
    def map(self, stats):
        return {"rate": self.posterior(stats)["rate"].mean()}


@caught_by("mle_is_the_maximum", form=1)
class MlePerRow(GammaPoisson):
    def mle(self, stats):
        return {"rate": stats.events / 20}


@caught_by("simulator")
class SimulatesScale(GammaPoisson):
    def simulate(self, rng, size=20):
        return with_other(self, b=1 / self.b).simulate(rng, size)


@caught_by("row_order")
class FirstCountTwice(GammaPoisson):
    def statistics(self, data):
        stats = super().statistics(data)
        return replace(stats, events=stats.events + float(data["y"][0])) if len(data["y"]) else stats


# Gaussian mean


@caught_by("independent_density", "compressed_density")
class SdReadAsVariance(GaussianMean):
    def declare(self, data):
        return with_other(self, sigma=self.sigma**0.5).declare(data)


@caught_by("no_data", "prior_sampler")
class PriorSdReadAsPrecision(GaussianMean):
    def declare(self, data):
        return with_other(self, s0=self.s0**-0.5).declare(data)


@caught_by("candidate_identity", "batches")
class PosteriorSdAsInTheNotes(GaussianMean):
    """W4400 prints s s0^2 / (s^2 + n s0^2) for the standard deviation."""

    def posterior(self, stats):
        mu = super().posterior(stats)["mu"]
        variance = self.sigma**2 + stats.n * self.s0**2
        return Posterior({"mu": scipy.stats.norm(mu.mean(), self.sigma * self.s0**2 / variance)})


@caught_by("no_data")
class PosteriorMeanAsInTheNotes(GaussianMean):
    """CS725 11.1 prints mu_0 for mu_0 / sigma_0^2."""

    def posterior(self, stats):
        sd = super().posterior(stats)["mu"].std()
        return Posterior({"mu": scipy.stats.norm(sd**2 * (stats.n * stats.mean / self.sigma**2 + self.m0), sd)})


@caught_by("chain_rule")
class PredictsTheMeanItself(GaussianMean):
    def predictive(self, stats, data):
        return scipy.stats.norm(self.posterior(stats)["mu"].mean() + np.zeros(len(data["y"])), self.sigma)


@caught_by("compressed_density")
class ScatterDroppedInCompressed(GaussianMean):
    def compressed(self, stats):
        return super().compressed(replace(stats, scatter=0.0))


@caught_by("chain_rule")
class ScatterDroppedInEvidence(GaussianMean):
    def log_evidence(self, stats):
        return super().log_evidence(replace(stats, scatter=0.0))


@caught_by("weak_units")
class WeakVarianceForSd(GaussianMean):
    @classmethod
    def weak(cls, data):
        other = super().weak(data)
        return cls(other.m0, other.s0, other.sigma**2)


@caught_by("weak_defaults")
class WeakOfDegenerateData(GaussianMean):
    @classmethod
    def weak(cls, data):
        return super().weak(data) if np.ptp(data["y"]) else None


@caught_by("units")
@dataclass(frozen=True)
class ScaleWithoutUnits(GaussianMean):
    s0: float = positive(10.0, "prior sd")


@caught_by("units", "weak_units")
@dataclass(frozen=True)
class PlaceThatDoesNotMove(GaussianMean):
    m0: float = real(0.0, "prior mean", units=1)


# Gaussian precision


@caught_by("no_data")
class RateOfPrecisionReadAsScale(GaussianPrecision):
    def declare(self, data):
        return with_other(self, b=1 / self.b).declare(data)


@caught_by("compressed_density")
class PrecisionReadAsVariance(GaussianPrecision):
    def likelihood(self, params, data):
        return super().likelihood({"lam": 1 / np.asarray(params["lam"])}, data)

    def declare(self, data):
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.a, beta=self.b)
            pm.Normal("y", mu=self.mu, sigma=lam**0.5, observed=data["y"])
        return model


@caught_by("compressed_density", "independent_density")
class PrecisionReadAsSd(GaussianPrecision):
    def declare(self, data):
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.a, beta=self.b)
            pm.Normal("y", mu=self.mu, sigma=lam, observed=data["y"])
        return model


@caught_by("candidate_identity", "batches")
class WholeForHalf(GaussianPrecision):
    def posterior(self, stats):
        later = self.updated(stats)
        return Posterior({"lam": scipy.stats.gamma(self.a + stats.n, scale=1 / later.b)})


@caught_by("chain_rule", "compressed_density")
class SquaresAboutTheirMean(GaussianPrecision):
    def statistics(self, data):
        return replace(super().statistics(data), mean=self.mu)


@caught_by("chain_rule")
class HalfTheDegreesOfFreedom(GaussianPrecision):
    def predictive(self, stats, data):
        t = super().predictive(stats, data)
        return scipy.stats.t(self.updated(stats).a, t.args[1], t.args[2])


@caught_by("chain_rule")
class VarianceForTheScaleOfT(GaussianPrecision):
    def predictive(self, stats, data):
        t = super().predictive(stats, data)
        return scipy.stats.t(t.args[0], t.args[1], t.args[2] ** 2)


@caught_by("chain_rule")
class PiDropped(GaussianPrecision):
    def log_evidence(self, stats):
        return super().log_evidence(stats) + stats.n / 2 * math.log(math.pi)


@caught_by("mle_is_the_maximum")
class OneLessThanN(GaussianPrecision):
    def mle(self, stats):
        return {"lam": (stats.n - 1) / stats.about(self.mu)}


@caught_by("map_is_the_maximum")
class MapIsTheMle(GaussianPrecision):
    def map(self, stats):
        return self.mle(stats)


@caught_by("weak_units")
class WeakSdForVariance(GaussianPrecision):
    @classmethod
    def weak(cls, data):
        return cls(0.5, 0.5 * np.std(data["y"]) or 1.0, np.mean(data["y"]))


@caught_by("units")
@dataclass(frozen=True)
class RateInUnitsOfSd(GaussianPrecision):
    b: float = positive(1.0, "prior rate", units=1)


@caught_by("derived_quantities")
class SdOfTheMeanPrecision(GaussianPrecision):
    def derived(self, params):
        right = super().derived(params)
        return {name: np.full_like(values, np.mean(values)) for name, values in right.items()}


# Normal-gamma


@caught_by("no_data", "independent_density")
class MeanIndependentOfPrecision(NormalGamma):
    def declare(self, data):
        with pm.Model() as model:
            lam = pm.Gamma("lam", alpha=self.alpha0, beta=self.beta0)
            mu = pm.Normal("mu", mu=self.mu0, tau=self.kappa0)
            pm.Normal("y", mu=mu, tau=lam, observed=data["y"])
        return model


@caught_by("no_data", "prior_sampler")
class KappaDivides(NormalGamma):
    def declare(self, data):
        return with_other(self, kappa0=1 / self.kappa0).declare(data)


@caught_by("no_data", "compressed_density")
class BetaReadAsScale(NormalGamma):
    def declare(self, data):
        return with_other(self, beta0=1 / self.beta0).declare(data)


@caught_by("candidate_identity", "no_data")
class PosteriorIsAProduct(NormalGamma):
    def posterior(self, stats):
        return Posterior(dict(super().posterior(stats)))


@caught_by("simulator")
class SimulatesMeanIndependently(NormalGamma):
    def simulate(self, rng, size=20):
        lam = rng.gamma(self.alpha0, 1 / self.beta0)
        mu = rng.normal(self.mu0, (self.kappa0 * rng.gamma(self.alpha0, 1 / self.beta0)) ** -0.5)
        return {"mu": mu, "lam": lam}, {"y": rng.normal(mu, lam**-0.5, size)}


@caught_by("chain_rule", "batches")
class ConflictForgotten(NormalGamma):
    def _growth(self, stats):
        return stats.scatter / 2


@caught_by("chain_rule", "batches")
class ConflictWithoutN(NormalGamma):
    def _growth(self, stats):
        conflict = self.kappa0 / (self.kappa0 + stats.n) * (stats.mean - self.mu0) ** 2
        return float(stats.scatter + conflict) / 2


@caught_by("chain_rule")
class KappaDroppedFromEvidence(NormalGamma):
    def log_evidence(self, stats):
        return super().log_evidence(stats) + math.log1p(stats.n / self.kappa0) / 2


@caught_by("chain_rule")
class PredictsWithAlphaDegreesOfFreedom(NormalGamma):
    def predictive(self, stats, data):
        t = super().predictive(stats, data)
        return scipy.stats.t(t.args[0] / 2, t.args[1], t.args[2])


@caught_by("chain_rule")
class PredictsFromACertainMean(NormalGamma):
    def predictive(self, stats, data):
        later = self.updated(stats)
        mean = np.full(len(data["y"]), later.mu0)
        return scipy.stats.t(2 * later.alpha0, mean, math.sqrt(later.beta0 / later.alpha0))


@caught_by("batches")
class NLessOneDegreesOfFreedom(NormalGamma):
    def updated(self, stats):
        later = super().updated(stats)
        return replace(later, alpha0=later.alpha0 - 0.5) if stats.n > 1 else later


@caught_by("map_is_the_maximum")
class MapOfTheMarginal(NormalGamma):
    def map(self, stats):
        later = self.updated(stats)
        return {"mu": later.mu0, "lam": (later.alpha0 - 1) / later.beta0}


@caught_by("mle_is_the_maximum")
class UnbiasedIsNotMle(NormalGamma):
    def mle(self, stats):
        return {"mu": stats.mean, "lam": (stats.n - 1) / stats.scatter}


@caught_by("free_parameters")
class ForgetsOneParameter(NormalGamma):
    def free_parameters(self, stats):
        return 1


# Dirichlet-multinomial; form 1 is counts


@caught_by("no_data", "prior_sampler")
class AlphaPermuted(DirichletMultinomial):
    def declare(self, data):
        return with_other(self, alpha=self.alpha[::-1]).declare(data)


@caught_by("label_order", "chain_rule")
class AlphaByPlaceOfTheLargest(DirichletMultinomial):
    """Entries of alpha matched to the categories in order of their counts."""

    def log_evidence(self, stats):
        return super().log_evidence(replace(stats, counts=np.sort(stats.counts)))


@caught_by("candidate_identity", "chain_rule")
class EvidenceOfCountsForOrdered(DirichletMultinomial):
    def log_evidence(self, stats):
        n = stats.counts.sum()
        return super().log_evidence(stats) + float(
            scipy.special.gammaln(n + 1) - scipy.special.gammaln(stats.counts + 1).sum()
        )


@caught_by("compressed_density", form=1)
class CoefficientForgotten(DirichletMultinomial):
    def statistics(self, data):
        return replace(super().statistics(data), log_coefficient=0.0)


@caught_by("chain_rule", form=1)
class PlugsInTheMeanShares(DirichletMultinomial):
    def predictive(self, stats, data):
        alpha = self._dirichlet(stats).alpha
        return Multinomial(data["counts"].sum(axis=1), np.tile(alpha / alpha.sum(), (len(data["counts"]), 1)))


@caught_by("chain_rule")
class PredictsTheMode(DirichletMultinomial):
    def predictive(self, stats, data):
        above = self._dirichlet(stats).alpha - 0.9
        return Categorical(np.tile(above / above.sum(), (len(data["y"]), 1)))


@caught_by("no_data")
class AlphaSharedOut(DirichletMultinomial):
    def _dirichlet(self, stats):
        return Dirichlet(self.entries("alpha", len(stats.counts)) / len(stats.counts) + stats.counts)


@caught_by("map_is_the_maximum")
class MapIsTheMeanOfShares(DirichletMultinomial):
    def map(self, stats):
        alpha = self._dirichlet(stats).alpha
        return {"p": alpha / alpha.sum()}


@caught_by("free_parameters")
class SharesAreFree(DirichletMultinomial):
    def free_parameters(self, stats):
        return len(stats.counts)


@caught_by("names_of_axes")
class AxisWithoutName(DirichletMultinomial):
    def declare(self, data):
        with pm.Model() as model:
            p = pm.Dirichlet("p", a=self.entries("alpha", len(data["category"])))
            pm.Categorical("y", p=p, observed=data["y"])
        return model


@caught_by("predictive_shape", form=1)
class PredictsTheTotal(DirichletMultinomial):
    def predictive(self, stats, data):
        return super().predictive(stats, {**data, "counts": data["counts"].sum(axis=0, keepdims=True)})


# Markov chain


@caught_by("candidate_identity", "chain_rule")
class CountsTransposed(MarkovChain):
    def statistics(self, data):
        stats = super().statistics(data)
        return replace(stats, counts=stats.counts.T)


@caught_by("independent_density", "compressed_density")
class TransitionMatrixTransposed(MarkovChain):
    def declare(self, data):
        return super().declare({**data, "next": data["previous"], "previous": data["next"]})


@caught_by("independent_density")
class LikelihoodOfColumns(MarkovChain):
    def likelihood(self, params, data):
        return super().likelihood({"P": np.swapaxes(params["P"], -1, -2)}, data)


@caught_by("simulator")
class SimulatesBackwards(MarkovChain):
    def simulate(self, rng, size=20):
        params, data = super().simulate(rng, size)
        return params, {**data, "next": data["previous"], "previous": data["next"]}


@caught_by("no_data", "label_order")
class AlphaTransposed(MarkovChain):
    def entries(self, name, size):
        return super().entries(name, size).T

    def declare(self, data):
        return MarkovChain(self.alpha).declare(data)

    def log_evidence(self, stats):
        alpha = np.array(self.alpha)
        by_row = np.diag(alpha)[:, None] + alpha[0]  # depends on which context is the first
        return float(np.sum(log_dirichlet_ratio(by_row, stats.counts)))


@caught_by("chain_rule")
class NormalizedOverContexts(MarkovChain):
    def predictive(self, stats, data):
        alpha = self._dirichlet(stats).alpha
        return Categorical((alpha / alpha.sum(axis=0))[data["previous"]])


@caught_by("chain_rule")
class OneRowForAllContexts(MarkovChain):
    def log_evidence(self, stats):
        return float(log_dirichlet_ratio(self.entries("alpha", stats.counts.shape)[0], stats.counts.sum(axis=0)))


@caught_by("chain_rule", "batches")
class FirstSymbolCounted(MarkovChain):
    """The first symbol is given, but counted as if it had followed itself."""

    def statistics(self, data):
        stats = super().statistics(data)
        if not len(data["next"]):
            return stats
        counts = stats.counts.copy()
        counts[data["previous"][0], data["previous"][0]] += 1
        return replace(stats, counts=counts)


@caught_by("mle_is_the_maximum")
class SharesOfColumns(MarkovChain):
    def mle(self, stats):
        shares = stats.counts / stats.counts.sum(axis=0)
        return {"P": shares / shares.sum(axis=1, keepdims=True)}


@caught_by("names_of_axes")
class AxesSwapped(MarkovChain):
    dims = {"P": ("symbol", "context")}  # noqa: RUF012


@caught_by("names_of_axes")
class LabelsSorted(MarkovChain):
    def coords(self, data):
        return {name: sorted(labels, reverse=True) for name, labels in super().coords(data).items()}


@caught_by("derived_quantities")
class DerivedWithoutItsAxis(MarkovChain):
    def derived(self, params):
        return {name: values[..., 0] for name, values in super().derived(params).items()}


@caught_by("free_parameters")
class AllEntriesFree(MarkovChain):
    def free_parameters(self, stats):
        return stats.counts.size


# Normal-inverse-Wishart


@caught_by("no_data", "independent_density")
class PsiInverted(NormalInverseWishart):
    def declare(self, data):
        return with_other(self, Psi0=plain(np.linalg.inv(self.Psi0))).declare(data)


@caught_by("no_data", "independent_density")
class KappaMultiplied(NormalInverseWishart):
    def declare(self, data):
        return with_other(self, kappa0=1 / self.kappa0).declare(data)


@caught_by("no_data", "compressed_density")
class NuOffByOne(NormalInverseWishart):
    def declare(self, data):
        return with_other(self, nu0=self.nu0 + 1).declare(data)


@caught_by("chain_rule")
class NuOffByOneInEvidence(NormalInverseWishart):
    def log_evidence(self, stats):
        return NormalInverseWishart(self.mu0, self.kappa0, self.nu0 + 1, self.Psi0).log_evidence(stats)


@caught_by("candidate_identity", "chain_rule")
class PowerOfPiDropped(NormalInverseWishart):
    def log_evidence(self, stats):
        return super().log_evidence(stats) + stats.n * self._size / 2 * math.log(math.pi)


@caught_by("chain_rule")
class PowerOfPiWithoutD(NormalInverseWishart):
    def log_evidence(self, stats):
        return super().log_evidence(stats) + stats.n * (self._size - 1) / 2 * math.log(math.pi)


@caught_by("chain_rule")
class KappaWithoutD(NormalInverseWishart):
    def log_evidence(self, stats):
        return super().log_evidence(stats) + (self._size - 1) / 2 * math.log1p(stats.n / self.kappa0)


@caught_by("no_data", "independent_density")
class MeanIndependentOfCovariance(NormalInverseWishart):
    def declare(self, data):
        with pm.Model(coords=self.coords(data)) as model:
            psi = np.array(self.Psi0)
            sigma = InverseWishart("Sigma", self.nu0, psi, dims=self.dims["Sigma"])
            mu = pm.MvNormal("mu", mu=self.entries("mu0", self._size), cov=psi / self.nu0 / self.kappa0, dims="column")
            pm.MvNormal("Y", mu=mu, cov=sigma, observed=data["Y"])
        return model


class OnePowerLess(Cholesky):
    def log_jac_det(self, value, *inputs):
        return super().log_jac_det(value, *inputs) - value[self.diagonal].sum()


class ReversedPowers(Cholesky):
    def log_jac_det(self, value, *inputs):
        powers = np.arange(2.0, self.size + 2.0)
        return np.float64(self.size * np.log(2.0)) + (powers * value[self.diagonal]).sum()


def with_transform(declared, transform):
    """Put another transform in the place of that of Sigma."""
    declared.rvs_to_transforms[declared["Sigma"]] = transform
    return declared


@caught_by("jacobian")
class JacobianOnePowerLess(NormalInverseWishart):
    def declare(self, data):
        return with_transform(super().declare(data), OnePowerLess(self._size))


@caught_by("jacobian")
class JacobianOfTheUpperTriangle(NormalInverseWishart):
    def declare(self, data):
        return with_transform(super().declare(data), ReversedPowers(self._size))


@caught_by("chain_rule", "batches")
class ConflictOfMeansForgotten(NormalInverseWishart):
    def _growth(self, stats):
        return np.asarray(stats.scatter)


@caught_by("chain_rule")
class TooManyDegreesOfFreedom(NormalInverseWishart):
    def predictive(self, stats, data):
        t = super().predictive(stats, data)
        return MultivariateT(t.df + self._size - 1, t.loc, t.shape * t.df / (t.df + self._size - 1), len(data["Y"]))


@caught_by("chain_rule")
class PredictsFromACertainCentre(NormalInverseWishart):
    def predictive(self, stats, data):
        t, later = super().predictive(stats, data), self.updated(stats)
        return MultivariateT(t.df, t.loc, t.shape / (later.kappa0 + 1) * later.kappa0, len(data["Y"]))


@caught_by("map_is_the_maximum")
class MapOfTheMarginalCovariance(NormalInverseWishart):
    def map(self, stats):
        later = self.updated(stats)
        return {**super().map(stats), "Sigma": np.array(later.Psi0) / (later.nu0 + self._size + 1)}


@caught_by("mle_is_the_maximum")
class UnbiasedCovariance(NormalInverseWishart):
    def mle(self, stats):
        return {"mu": stats.mean, "Sigma": stats.scatter / (stats.n - 1)}


@caught_by("free_parameters")
class BothTriangles(NormalInverseWishart):
    def free_parameters(self, stats):
        return self._size + self._size**2


@caught_by("independent_density")
class SigmaOfOneAxisOnly(NormalInverseWishart):
    def likelihood(self, params, data):
        sigma = np.asarray(params["Sigma"])
        return super().likelihood({**params, "Sigma": sigma * np.eye(self._size)}, data)

    def log_evidence(self, stats):
        return super().log_evidence(replace(stats, scatter=stats.scatter * np.eye(self._size)))


@caught_by("label_order")
class FactorOfTheFirstColumn(NormalInverseWishart):
    """|Psi| as the product of its diagonal, |Psi + S| rightly."""

    def log_evidence(self, stats):
        psi = np.array(self.Psi0)
        return super().log_evidence(stats) + psi[0, 0] * stats.n


@caught_by("likelihood_shape")
class RowsBeforeDraws(NormalInverseWishart):
    def likelihood(self, params, data):
        return super().likelihood({name: np.swapaxes(v, 0, 1) for name, v in params.items()}, data)


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
        right = super().posterior(stats)
        return Posterior(dict(right), None, right.logpdf)


# The tests


@cache
def good(family, form):
    """Return the case of the model as it is, on simulated data: off its defaults, compiled once."""
    return cases_of(family)[form] if form else case_of(family)


def seeded(bug, form):
    """Return the case of the bug, with what it does not touch as it was compiled for the others."""
    family = base_of(bug)
    right = good(family, form)
    made = Case(bug(**fields_of(right.model)), right.data)
    for method in ("declare", "compressed"):
        if getattr(bug, method) is getattr(family, method):
            name = {"declare": "declared"}.get(method, method)
            if method == "declare" or bug.statistics is family.statistics:
                made.__dict__[name] = getattr(right, name)
    return made


def identity(function):
    return next(one for one in IDENTITIES if one.function == function)


def named(value):
    return value if isinstance(value, str) else getattr(value, "__name__", None)


@pytest.mark.parametrize(("bug", "function", "form"), one_bug_an_identity(BUGS), ids=named)
def test_bug_is_caught(bug, function, form):
    found = run_identity(identity(function), seeded(bug, form))
    assert found.value is not None
    assert not found.passed


@pytest.mark.slow
@pytest.mark.parametrize("bug", [CompressedWithoutJacobian, DrawsIndependent], ids=named)
def test_bug_is_caught_without_a_sampler(bug):
    case = seeded(bug, 0)
    assert not all(run_identity(one, case).passed for one in applicable(bug))


def test_every_identity_has_a_seeded_bug_here_or_there():
    """Those that no family seeds are seeded for beta_bernoulli, the regressions, mixtures, or by another gradient."""
    elsewhere = {one.function for one in IDENTITIES if "EM" in one.needs}
    seeded = {case[1] for case in one_bug_an_identity(BUGS) if is_quick(case)}
    assert {one.function for one in IDENTITIES} - seeded - elsewhere == {"gradient", "feature_units"}
    assert len({bug for bug, _, _ in BUGS}) >= 80
