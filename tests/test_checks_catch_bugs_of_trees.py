"""Bugs that a careful reviewer would fear of models of trees: the contract catches each.

m is the model, d the data and s their statistics; ``right(m)`` has the steps without the bug.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract import identities
from bayeszoo.contract.case import Case
from bayeszoo.families.trees.rows import TreeRows
from bayeszoo.model.find import find
from tests.quick import named, right, seed

Tree = find("tree_network")
BUGS = []
tree = partial(seed, BUGS, Tree)


def of_the_prior(m, s, d):
    prior = right(m).block(s)
    return TreeRows(prior.block.typical()["theta"], prior.layout, m.inputs.size(d))


def upside_down(m, s, d):
    """Tables read as those of the parent given the child."""
    later = right(m).block(s).updated(s)
    turned = type(later)(later.pairs.T * np.arange(1, len(later.pairs) + 1), later.layout)
    return TreeRows(turned.block.typical()["theta"], turned.layout, m.inputs.size(d))


def one_count_too_many(m, s):
    (counts,) = s.parts
    return right(m).updated(replace(s, parts=(replace(counts, counts=counts.counts + 1),)))


def twice(d):
    places = np.arange(len(d["levels"]))
    return np.concatenate([places[:1], places])


tree("chain_rule", "OfThePrior", predictive=of_the_prior)
tree("chain_rule", "UpsideDown", predictive=upside_down)
tree("normalization", "RootTwice", log_evidence=lambda m, s: 1.01 * right(m).log_evidence(s))
tree("batches", "OneCountTooMany", updated=one_count_too_many)
tree("label_order", "FirstLevelPreferred", log_evidence=lambda m, s: right(m).log_evidence(s) + s.parts[0].counts[0, 0])
tree("row_order", "FirstRowTwice", statistics=lambda m, d: right(m).statistics(m.inputs.reordered(d, twice(d))))


def case(kind):
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2, 18)
    b = (a + rng.integers(0, 2, 18)) % 3
    table = {
        "a": np.array(list("no"))[a],
        "b": np.array(list("pqr"))[b],
        "c": np.array(list("uv"))[rng.integers(0, 2, 18)],
    }
    data = bz.read(kind, table)
    return Case(kind(alpha=2.5, tree=[["a", "b"], ["b", "c"]]).labelled(data), data)


@pytest.mark.parametrize(("bug", "identity", "form"), BUGS, ids=named)
def test_a_seeded_bug_is_caught(bug, identity, form):
    assert not getattr(identities, identity)(case(bug)).passed


@pytest.mark.parametrize("identity", sorted({identity for _, identity, _ in BUGS}))
def test_what_is_right_passes(identity):
    assert getattr(identities, identity)(case(Tree)).passed
