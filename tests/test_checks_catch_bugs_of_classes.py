"""Bugs that a careful reviewer would fear of models of class and features: the contract catches each.

m is the model, d the data and s their statistics; ``right(m)`` has the steps without the bug.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract import identities
from bayeszoo.contract.case import Case
from bayeszoo.distributions.discrete import ClassWithFeatures
from bayeszoo.model.find import find
from tests.quick import named, right, seed

NaiveBayes, Discriminant = find("naive_bayes"), find("gaussian_discriminant")
BUGS = []
naive, discriminant = partial(seed, BUGS, NaiveBayes), partial(seed, BUGS, Discriminant)


def plugged_in(m, s, d):
    """Classes at the posterior mean, which knows nothing of how uncertain variances are."""
    later = right(m).block(s).updated(s)
    return ClassWithFeatures(later.log_terms({**later.weights.typical(), **later.law.typical()}, d))


def without_shares(m, s, d):
    return ClassWithFeatures(right(m).block(s).updated(s).law.log_predictive(d))


def of_the_prior(m, s, d):
    return ClassWithFeatures(right(m).block(s).log_predictive_terms(d))


def holes_counted(m, d):
    """A missing cell is taken for the first level."""
    return right(m).statistics({**d, "levels": np.maximum(d["levels"], 0)})


def last_row_forgotten(m, d):
    return right(m).statistics(m.inputs.split(d, max(len(d["y"]) - 1, 0))[0])


def one_count_too_many(m, s):
    counts, *others = s.parts
    more = replace(counts, counts=counts.counts + 1)
    return right(m).updated(replace(s, parts=(more, *others)))


naive("chain_rule", "PluggedIn", predictive=plugged_in)
naive("chain_rule", "WithoutShares", predictive=without_shares)
naive("chain_rule", "OfThePrior", predictive=of_the_prior)
naive("chain_rule", "HolesCounted", statistics=holes_counted)
naive("chain_rule", "LastRowForgotten", statistics=last_row_forgotten)
naive("batches", "OneCountTooMany", updated=one_count_too_many)
naive("label_order", "FirstClassPreferred", log_evidence=lambda m, s: right(m).log_evidence(s) + s.parts[0].counts[0])
naive("row_order", "FirstRowTwice", statistics=lambda m, d: right(m).statistics(m.inputs.reordered(d, twice(d))))
discriminant("chain_rule", "PluggedInCovariance", predictive=plugged_in)
discriminant("batches", "OneRowTooMany", updated=one_count_too_many)


def twice(d):
    places = np.arange(len(d["y"]))
    return np.concatenate([places[:1], places])


def case(kind):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 18)
    table = {"y": np.array(list("abc"))[y], "x": rng.normal(y, 1.0), "z": rng.normal(size=18)}
    if issubclass(kind, NaiveBayes):
        grades = np.array(list("pqr"), dtype=object)[(y + rng.integers(0, 2, 18)) % 3]
        grades[[2, 9]] = None
        table |= {"grade": grades, "visits": rng.poisson(1.0 + y)}
        data = bz.read(kind, table, counts=["visits"], missing="mask")
        return Case(kind(alpha=0.8, eta=0.7).labelled(data), data)
    data = bz.read(kind, table)
    return Case(kind(alpha=0.8).labelled(data), data)


@pytest.mark.parametrize(("bug", "identity", "form"), BUGS, ids=named)
def test_a_seeded_bug_is_caught(bug, identity, form):
    assert not getattr(identities, identity)(case(bug)).passed


@pytest.mark.parametrize("identity", sorted({identity for _, identity, _ in BUGS}))
@pytest.mark.parametrize("kind", [NaiveBayes, Discriminant], ids=named)
def test_what_is_right_passes(kind, identity):
    assert getattr(identities, identity)(case(kind)).passed
