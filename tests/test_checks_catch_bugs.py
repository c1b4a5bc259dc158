"""A check that cannot fail proves nothing: each one must catch the bug that a careful reviewer would fear.

In the steps of the bugs m is the model, d the data, s their statistics and p the parameters; ``right(m)`` has the steps
without the bug.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pymc as pm
import pytest
import scipy

from bayeszoo.contract import source
from bayeszoo.contract.case import case_of, off_default
from bayeszoo.contract.check import applicable, check, run_identity
from bayeszoo.contract.sampler import largest_z
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.foundation.gate import passed
from bayeszoo.model.find import find
from tests.quick import is_quick, named, one_bug_an_identity, quick_first, right, seed

BetaBernoulli = find("beta_bernoulli")
COUNTS = {"successes": np.array([3, 5, 0]), "trials": np.array([9, 6, 2])}


BUGS = []
coin = partial(seed, BUGS, BetaBernoulli)


def evidence_of_counts(m, s):
    n = s.successes + s.failures
    orders = -scipy.special.betaln(s.successes + 1, s.failures + 1) - np.log1p(n)
    return right(m).log_evidence(s) + float(orders)


def without_the_last_row(m, d):
    return right(m).statistics({name: values[:-1] for name, values in d.items()})


def first_row_twice(m, d):
    s = right(m).statistics(d)
    return replace(s, successes=s.successes + int(len(d["y"]) > 0 and d["y"][0]))


def one_too_wide(m, s):
    return Posterior({"theta": scipy.stats.beta(m.a + s.successes, m.b + s.failures + 1)})


def of_the_prior(m, s, d):
    return right(m).predictive(m.statistics({"y": np.array([], dtype=int)}), d)


def with_an_axis(m, d):
    model = right(m).declare(d)
    model.named_vars_to_dims["theta"] = ("row",)
    return model


def updated_to_nothing(m, s):
    later = right(m).updated(s)
    object.__setattr__(later, "a", np.float64(np.nan))
    return later


class DoesNotTakeAway(type(BetaBernoulli().statistics({"y": np.array([1])}))):
    def __sub__(self, other):
        return self


class ForgetsCoefficient(DoesNotTakeAway.__base__):
    def __add__(self, other):
        return replace(super().__add__(other), log_coefficient=0.0)


coin("batches", "UpdatedToNothing", updated=updated_to_nothing)
coin("batches", "StatsDoNotTakeAway", statistics=lambda m, d: DoesNotTakeAway(**vars(right(m).statistics(d))))
coin(
    "predictive_shape likelihood_shape",
    "OneForAllRows",
    predictive=lambda m, s, d: scipy.stats.bernoulli(m.posterior(s)["theta"].mean()),
    likelihood=lambda m, p, d: scipy.stats.bernoulli(np.mean(p["theta"]) + np.zeros(len(d["y"]))),
)
coin("weak_defaults", "WeakIsAnother", weak=classmethod(lambda cls, d: BetaBernoulli()))
other_prior = {"declare": lambda m, d: BetaBernoulli(m.a * (1 + 1e-6), m.b).declare(d)}
coin("candidate_identity independent_density no_data", "SlightlyOtherPrior", **other_prior)
coin("prior_sampler", "PriorSwapped", declare=lambda m, d: BetaBernoulli(m.b, m.a).declare(d))
coin("compressed_density", "PriorForgotten", compressed=lambda m, s: BetaBernoulli(1.0, 1.0).compressed(s))
no_constant = {"log_evidence": lambda m, s: float(scipy.special.betaln(m.a + s.successes, m.b + s.failures))}
coin("candidate_identity no_data normalization", "ConstantDropped", **no_constant)
coin("normalization chain_rule", "EvidenceOfCounts", log_evidence=evidence_of_counts)
coin("candidate_identity batches", "LastRowDropped", statistics=without_the_last_row)
coin("row_order", "OrderMatters", statistics=first_row_twice)
coin("candidate_identity", "PosteriorOneTooWide", posterior=one_too_wide)
coin("chain_rule", "PredictiveOfThePrior", predictive=of_the_prior)
coin("batches", "UpdatedTwice", updated=lambda m, s: right(m).updated(s + s))
failures = {"likelihood": lambda m, p, d: right(m).likelihood({"theta": 1 - np.asarray(p["theta"])}, d)}
coin("independent_density", "LikelihoodOfFailures", **failures)
coin("simulator", "FromAnotherPrior", simulate=lambda m, rng, size=20: BetaBernoulli(2 * m.a, m.b).simulate(rng, size))
coin("simulator", "FromASwappedPrior", simulate=lambda m, rng, size=20: BetaBernoulli(m.b, m.b).simulate(rng, size))
unrelated = {"simulate": lambda m, rng, size=20: tuple(right(m).simulate(rng, size)[i] for i in (0, 1))}
coin("simulator", "SimulatesUnrelatedData", **unrelated)
coin("map_is_the_maximum", "MapIsTheMean", map=lambda m, s: {"theta": m.posterior(s)["theta"].mean()})
coin("mle_is_the_maximum", "MleIsTheMap", mle=lambda m, s: m.map(s))
coin("free_parameters", "TwoFreeParameters", free_parameters=lambda m, s: 2)
coin("names_of_axes", "AxisThatIsNot", declare=with_an_axis)
forgotten = {"statistics": lambda m, d: replace(right(m).statistics(d), log_coefficient=0.0)}
coin("compressed_density chain_rule candidate_identity", "CoefficientForgotten", 1, **forgotten)
forgetful = {"statistics": lambda m, d: ForgetsCoefficient(**vars(right(m).statistics(d)))}
coin("batches", "StatsForgetCoefficient", 1, **forgetful)


def identity(name):
    return next(one for one in applicable(BetaBernoulli) if one.function == name)


@pytest.mark.parametrize(("bug", "function", "form"), one_bug_an_identity(BUGS), ids=named)
def test_bug_is_caught(bug, function, form):
    data = ({"y": [1, 0, 0, 1, 1, 0, 1, 0, 0, 0]}, COUNTS)[form]
    assert not run_identity(identity(function), case_of(bug(2.0, 5.0), data)).passed


def swapped_counts(m, d):
    s = right(m).statistics(d)
    return s if "y" in d else replace(s, successes=s.failures, failures=s.successes)


BUGS_OF_COUNTS = [
    {"statistics": swapped_counts},
    {"predictive": lambda m, s, d: right(m).predictive(s, {"y": next(iter(d.values()))})},
    {"declare": lambda m, d: right(m).declare(d if "y" in d else {**d, "successes": d["trials"] - d["successes"]})},
    forgotten,
    {"log_evidence_counts": lambda m, s: m.log_evidence(s) - s.log_coefficient},
]


@pytest.mark.parametrize("steps", quick_first(BUGS_OF_COUNTS))
def test_bugs_in_the_form_of_counts_are_caught_without_being_asked(steps):
    bugs = []
    seed(bugs, BetaBernoulli, "any", "Bug", examples=(), **steps)  # some examples are counts: they would be asking
    assert not passed(check(bugs[0][0](2.0, 5.0), sampler=False))


@pytest.mark.parametrize("name", ["linear_regression", "gaussian_process"])
def test_a_gradient_that_is_a_thousandth_off_is_caught(name, monkeypatch):
    """Also where heights are steep, or hang on an inverse and are rounded by more than they have digits."""
    case = case_of(find(name), seed=1)
    assert run_identity(identity("gradient"), case).passed
    right_joint = case.declared.joint

    def joint(x):
        height, slope = right_joint(x)
        return height, 1.001 * slope

    monkeypatch.setattr(case.declared, "joint", joint)
    assert not run_identity(identity("gradient"), case).passed


def test_wrong_jacobian_and_gradient_are_caught():
    case = case_of(BetaBernoulli(2.0, 5.0), {"y": [1, 0, 0]})
    joint, heights = case.declared.joint, case.declared.heights
    case.declared.__dict__["heights"] = lambda x: heights(x)._replace(joint=heights(x).joint + 1e-6 * float(x.sum()))
    assert not run_identity(identity("jacobian"), case).passed
    case.declared.__dict__["heights"] = heights
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
    PriorSwapped = next(bug for bug, _, _ in BUGS if bug.__name__ == "PriorSwapped")
    swapped = case_of(PriorSwapped(1.0, 1.0), {"y": [1, 0, 0]})
    assert run_identity(identity("candidate_identity"), swapped).passed
    swapped = case_of(off_default(PriorSwapped), {"y": [1, 0, 0]})
    assert not run_identity(identity("candidate_identity"), swapped).passed


def test_every_identity_has_a_seeded_bug():
    seeded = {case[1] for case in one_bug_an_identity(BUGS) if is_quick(case)}
    assert {one.function for one in applicable(BetaBernoulli)} <= seeded | {"jacobian", "gradient", "laplace_evidence"}


@pytest.mark.parametrize(("scale", "shift"), [(1.1, 0.0), (0.9, 0.0), (1.0, 0.2), (1.0, -0.2)])
def test_sampler_check_sees_a_wrong_sampler(scale, shift):
    posterior = BetaBernoulli().posterior(BetaBernoulli().statistics(COUNTS))
    theta = posterior["theta"]
    draws = posterior.rvs((4, 1000), np.random.default_rng(3))["theta"]
    assert largest_z({"theta": draws}, posterior) < 4.4
    wrong = theta.mean() + scale * (draws - theta.mean()) + shift * theta.std()
    assert largest_z({"theta": wrong}, posterior) > 4.4


def test_misspelt_keywords_and_number_literals_are_found():
    text = "pm.Normal('x', mu, sd=s); pm.Gamma('g', alpha=a, rate=r); pm.Normal.dist(mu, sigm=s)"
    wrong = [f"line 1: pm.{call}=)" for call in ("Normal(sd", "Gamma(rate", "Normal(sigm")]
    assert source.unknown_keywords("pm.Beta('t', alpha=a, beta=b, dims='k')") == []
    assert source.unknown_keywords(text) == wrong
    text = "pm.Normal('x', 0, sigma=s)\npm.Dirichlet('p', a=[1.0, 2.0])\npm.Beta('t', alpha=a, beta=-3.0, shape=2)"
    assert [one.partition(":")[0] for one in source.literal_numbers(text)] == ["line 1", "line 2", "line 3"]


@pytest.mark.parametrize(("sigma", "narrow"), [(3.0, True), (np.float64(3.0), False)])
def test_float32_arithmetic_is_found(sigma, narrow):
    with pm.Model() as model:
        pm.Normal("y", np.float64(0.0), sigma, observed=np.zeros(3))
    assert bool(source.narrow_variables(model)) is narrow
