"""A check that cannot fail proves nothing: each one must catch the bug that a careful reviewer would fear."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
import scipy

from bayeszoo.contract import source
from bayeszoo.contract.cases import case_of, off_default
from bayeszoo.contract.check import applicable, check, run_identity
from bayeszoo.contract.sampler import largest_z
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.foundation.gate import passed
from bayeszoo.model.find import find
from tests.quick import is_quick, one_bug_an_identity, quick_first

BetaBernoulli = find("beta_bernoulli")
COUNTS = {"successes": np.array([3, 5, 0]), "trials": np.array([9, 6, 2])}


class SlightlyOtherPrior(BetaBernoulli):
    def declare(self, data):
        return BetaBernoulli(self.a * (1 + 1e-6), self.b).declare(data)


class PriorSwapped(BetaBernoulli):
    def declare(self, data):
        return BetaBernoulli(self.b, self.a).declare(data)


class PriorForgotten(BetaBernoulli):
    def compressed(self, stats):
        return BetaBernoulli(1.0, 1.0).compressed(stats)


class ConstantDropped(BetaBernoulli):
    def log_evidence(self, stats):
        return float(scipy.special.betaln(self.a + stats.successes, self.b + stats.failures))


class EvidenceOfCounts(BetaBernoulli):
    def log_evidence(self, stats):
        n = stats.successes + stats.failures
        orders = -scipy.special.betaln(stats.successes + 1, stats.failures + 1) - np.log1p(n)
        return super().log_evidence(stats) + float(orders)


class CoefficientForgotten(BetaBernoulli):
    def statistics(self, data):
        return replace(super().statistics(data), log_coefficient=0.0)


class LastRowDropped(BetaBernoulli):
    def statistics(self, data):
        return super().statistics({name: values[:-1] for name, values in data.items()})


class OrderMatters(BetaBernoulli):
    def statistics(self, data):
        stats = super().statistics(data)
        return replace(stats, successes=stats.successes + int(len(data["y"]) > 0 and data["y"][0]))


class PosteriorOneTooWide(BetaBernoulli):
    def posterior(self, stats):
        return Posterior({"theta": scipy.stats.beta(self.a + stats.successes, self.b + stats.failures + 1)})


class PredictiveOfThePrior(BetaBernoulli):
    def predictive(self, stats, data):
        return super().predictive(self.statistics({"y": np.array([], dtype=int)}), data)


class UpdatedTwice(BetaBernoulli):
    def updated(self, stats):
        return super().updated(stats + stats)


class LikelihoodOfFailures(BetaBernoulli):
    def likelihood(self, params, data):
        return super().likelihood({"theta": 1 - np.asarray(params["theta"])}, data)


class SimulatesFromAnotherPrior(BetaBernoulli):
    def simulate(self, rng, size=20):
        return BetaBernoulli(2 * self.a, self.b).simulate(rng, size)


class SimulatesFromASwappedPrior(BetaBernoulli):
    def simulate(self, rng, size=20):
        return BetaBernoulli(self.b, self.b).simulate(rng, size)


class SimulatesUnrelatedData(BetaBernoulli):
    def simulate(self, rng, size=20):
        return super().simulate(rng, size)[0], super().simulate(rng, size)[1]


class MapIsTheMean(BetaBernoulli):
    def map(self, stats):
        return {"theta": self.posterior(stats)["theta"].mean()}


class MleIsTheMap(BetaBernoulli):
    def mle(self, stats):
        return self.map(stats)


class OneForAllRows(BetaBernoulli):
    def predictive(self, stats, data):
        return scipy.stats.bernoulli(self.posterior(stats)["theta"].mean())

    def likelihood(self, params, data):
        return scipy.stats.bernoulli(np.mean(params["theta"]) + np.zeros(len(data["y"])))


class WeakIsAnother(BetaBernoulli):
    @classmethod
    def weak(cls, data):
        return BetaBernoulli()


class TwoFreeParameters(BetaBernoulli):
    def free_parameters(self, stats):
        return 2


class AxisThatIsNot(BetaBernoulli):
    def declare(self, data):
        model = super().declare(data)
        model.named_vars_to_dims["theta"] = ("row",)
        return model


class UpdatedToNothing(BetaBernoulli):
    def updated(self, stats):
        other = super().updated(stats)
        object.__setattr__(other, "a", np.float64(np.nan))
        return other


class DoesNotTakeAway(type(BetaBernoulli().statistics({"y": np.array([1])}))):
    def __sub__(self, other):
        return self


class ForgetsCoefficient(DoesNotTakeAway.__base__):
    def __add__(self, other):
        return replace(super().__add__(other), log_coefficient=0.0)


class StatsDoNotTakeAway(BetaBernoulli):
    def statistics(self, data):
        return DoesNotTakeAway(**vars(super().statistics(data)))


class StatsForgetCoefficient(BetaBernoulli):
    def statistics(self, data):
        return ForgetsCoefficient(**vars(super().statistics(data)))


BUGS = [
    (UpdatedToNothing, "batches"),
    (StatsDoNotTakeAway, "batches"),
    (OneForAllRows, "predictive_shape"),
    (OneForAllRows, "likelihood_shape"),
    (WeakIsAnother, "weak_defaults"),
    (SlightlyOtherPrior, "candidate_identity"),
    (SlightlyOtherPrior, "independent_density"),
    (SlightlyOtherPrior, "no_data"),
    (PriorSwapped, "prior_sampler"),
    (PriorForgotten, "compressed_density"),
    (ConstantDropped, "candidate_identity"),
    (ConstantDropped, "no_data"),
    (ConstantDropped, "normalization"),
    (EvidenceOfCounts, "normalization"),
    (EvidenceOfCounts, "chain_rule"),
    (LastRowDropped, "candidate_identity"),
    (LastRowDropped, "batches"),
    (OrderMatters, "row_order"),
    (PosteriorOneTooWide, "candidate_identity"),
    (PredictiveOfThePrior, "chain_rule"),
    (UpdatedTwice, "batches"),
    (LikelihoodOfFailures, "independent_density"),
    (SimulatesFromAnotherPrior, "simulator"),
    (SimulatesFromASwappedPrior, "simulator"),
    (SimulatesUnrelatedData, "simulator"),
    (MapIsTheMean, "map_is_the_maximum"),
    (MleIsTheMap, "mle_is_the_maximum"),
    (TwoFreeParameters, "free_parameters"),
    (AxisThatIsNot, "names_of_axes"),
]


def identity(name):
    return next(one for one in applicable(BetaBernoulli) if one.function == name)


@pytest.mark.parametrize(
    ("bug", "function"), one_bug_an_identity(BUGS), ids=lambda p: p if isinstance(p, str) else p.__name__
)
def test_bug_is_caught(bug, function):
    case = case_of(bug(2.0, 5.0), {"y": [1, 0, 0, 1, 1, 0, 1, 0, 0, 0]})
    assert not run_identity(identity(function), case).passed


def test_statistics_that_forget_the_coefficient_are_caught_on_counts():
    assert run_identity(identity("batches"), case_of(BetaBernoulli(2.0, 5.0), COUNTS)).passed
    assert not run_identity(identity("batches"), case_of(StatsForgetCoefficient(2.0, 5.0), COUNTS)).passed


@pytest.mark.parametrize("function", ["compressed_density", "chain_rule", "candidate_identity"])
def test_forgotten_coefficient_is_caught_on_counts(function):
    assert run_identity(identity(function), case_of(BetaBernoulli(2.0, 5.0), COUNTS)).passed
    assert not run_identity(identity(function), case_of(CoefficientForgotten(2.0, 5.0), COUNTS)).passed


class CountsSwapped(BetaBernoulli):
    def statistics(self, data):
        stats = super().statistics(data)
        return stats if "y" in data else replace(stats, successes=stats.failures, failures=stats.successes)


class CountsOfFailures(BetaBernoulli):
    def declare(self, data):
        if "y" not in data:
            data = {**data, "successes": data["trials"] - data["successes"]}
        return super().declare(data)


class PredictsOneTrial(BetaBernoulli):
    def predictive(self, stats, data):
        return super().predictive(stats, {"y": next(iter(data.values()))})


class CoefficientSubtracted(BetaBernoulli):
    def log_evidence_counts(self, stats):
        return self.log_evidence(stats) - stats.log_coefficient


@pytest.mark.parametrize(
    "bug",
    quick_first([CountsSwapped, PredictsOneTrial, CountsOfFailures, CoefficientForgotten, CoefficientSubtracted]),
)
def test_bugs_in_the_form_of_counts_are_caught_without_being_asked(bug, monkeypatch):
    monkeypatch.setattr(bug, "examples", ())  # some of them are counts: they would be asking
    assert not passed(check(bug(2.0, 5.0), sampler=False))


def test_wrong_jacobian_and_gradient_are_caught():
    case = case_of(BetaBernoulli(2.0, 5.0), {"y": [1, 0, 0]})
    joint = case.declared.joint
    case.declared.__dict__["joint"] = lambda x: (joint(x)[0] + 1e-6 * float(x.sum()), joint(x)[1])
    assert not run_identity(identity("jacobian"), case).passed
    for factor in (1 + 1e-3, np.nan):
        case.declared.__dict__["joint"] = lambda x, factor=factor: (joint(x)[0], joint(x)[1] * factor)
        assert not run_identity(identity("gradient"), case).passed


def test_a_model_that_raises_gets_a_scorecard():
    class Raises(BetaBernoulli):
        def declare(self, data):
            raise RuntimeError("not today")

    card = check(Raises(), sampler=False)
    failed = {one.name: one for one in card if not one.passed}
    assert "not today" in failed["source"].limit
    assert failed["candidate_identity"].value is None


def test_fields_are_moved_off_their_defaults_because_equal_ones_hide_a_swap():
    model = off_default(BetaBernoulli)
    assert len({float(model.a), float(model.b), 1.0}) == 3
    swapped = case_of(PriorSwapped(1.0, 1.0), {"y": [1, 0, 0]})
    assert run_identity(identity("candidate_identity"), swapped).passed
    swapped = case_of(off_default(PriorSwapped), {"y": [1, 0, 0]})
    assert not run_identity(identity("candidate_identity"), swapped).passed


def test_every_identity_has_a_seeded_bug():
    seeded = {case[1] for case in one_bug_an_identity(BUGS) if is_quick(case)} | {
        "compressed_density",
        "jacobian",
        "gradient",
    }
    assert {one.function for one in applicable(BetaBernoulli)} <= seeded


@pytest.mark.parametrize(("scale", "shift"), [(1.1, 0.0), (0.9, 0.0), (1.0, 0.2), (1.0, -0.2)])
def test_sampler_check_sees_a_wrong_sampler(scale, shift):
    posterior = BetaBernoulli().posterior(BetaBernoulli().statistics(COUNTS))
    theta = posterior["theta"]
    draws = posterior.rvs((4, 1000), np.random.default_rng(3))["theta"]
    assert largest_z({"theta": draws}, posterior) < 4.4
    wrong = theta.mean() + scale * (draws - theta.mean()) + shift * theta.std()
    assert largest_z({"theta": wrong}, posterior) > 4.4


def test_misspelt_keywords_are_found():
    text = "pm.Normal('x', mu, sd=s); pm.Gamma('g', alpha=a, rate=r); pm.Normal.dist(mu, sigm=s)"
    assert source.unknown_keywords("pm.Beta('t', alpha=a, beta=b, dims='k')") == []
    assert source.unknown_keywords(text) == [
        "line 1: pm.Normal(sd=)",
        "line 1: pm.Gamma(rate=)",
        "line 1: pm.Normal(sigm=)",
    ]


def test_number_literals_are_found():
    text = "pm.Normal('x', 0, sigma=s)\npm.Dirichlet('p', a=[1.0, 2.0])\npm.Beta('t', alpha=a, beta=-3.0, shape=2)"
    assert [one.partition(":")[0] for one in source.literal_numbers(text)] == ["line 1", "line 2", "line 3"]


@pytest.mark.parametrize(("sigma", "narrow"), [(3.0, True), (np.float64(3.0), False)])
def test_float32_arithmetic_is_found(sigma, narrow):
    with pm.Model() as model:
        pm.Normal("y", np.float64(0.0), sigma, observed=np.zeros(3))
    assert bool(source.narrow_variables(model)) is narrow
