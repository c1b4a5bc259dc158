"""Bugs that a careful reviewer would fear of labels about a function, of places or of nodes: the contract sees each.

m is the model, p its parameters and d the data; ``right(m)`` has the steps without the bug. The declaration is made of
``concave``, so that what is wrong there is seen by ``likelihood`` alone. A kernel that is wrong wherever it is used is
no contradiction: kernels are held to scikit-learn and networkx.
"""

from dataclasses import replace
from functools import cache, partial

import networkx as nx
import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract.case import Case
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.distributions.discrete import LogitBinomial
from tests.quick import named, right, seed

Process, Graph = bz.find("gaussian_process_classification"), bz.find("graph_process")
FUNCTIONS = {identity.function: identity for identity in IDENTITIES}
BUGS = []
process, graph = partial(seed, BUGS, Process), partial(seed, BUGS, Graph)


def without_mean(m, d):
    return replace(right(m).concave(d), offset=0.0)


def amplitude_twice(m, d):
    rows = right(m).concave(d)
    return replace(rows, design=m.amplitude * rows.design)


def labels_exchanged(m, d):
    """The log odds of no."""
    rows = right(m).concave(d)
    return replace(rows, outcome=rows.sizes - rows.outcome)


def mean_forgotten(m, p, d):
    return LogitBinomial(m.sizes_of(d), m.amplitude * np.asarray(p["z"]) @ m.root(d).factor.T)


def rows_mixed_up(m, p, d):
    """The function at rows in the order of the pivots."""
    eta = m.m0 + m.amplitude * np.asarray(p["z"]) @ m.root(d).factor[m.root(d).taken].T
    return LogitBinomial(m.sizes_of(d), eta)


def simulated_anew(m, rng, size):
    """Another function than that of the outcomes."""
    params, data = right(m).simulate(rng, size)
    return {"z": params["z"][::-1]}, data


def simulated_wide(m, rng, size):
    params, data = right(m).simulate(rng, size)
    return {"z": 1.3 * params["z"]}, data


for model in (process, graph):
    model("declared_likelihood", "WithoutMean", concave=without_mean)
    model("declared_likelihood", "MeanForgotten", likelihood=mean_forgotten)
    model("simulated_prior", "Wide", simulate=simulated_wide)
process("declared_likelihood", "RowsMixedUp", likelihood=rows_mixed_up)
process("declared_likelihood", "AmplitudeTwice", concave=amplitude_twice)
process("concave_density", "LabelsExchanged", concave=labels_exchanged)
process("simulated_rows", "Anew", simulate=simulated_anew)


@cache
def data(kind):
    if kind is Graph:
        ring = [(f"n{i}", f"n{(i + 1) % 7}") for i in range(7)] + [("n0", "n3")]
        return bz.read(Graph, (nx.Graph(ring), {"n5": 1, "n1": 0, "n3": 1, "n6": 0}))
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 5, 9)
    return bz.read(Process, {"x": x, "y": (np.sin(x) + 0.5 * rng.normal(size=9) > 0).astype(int)})


def case_of(kind):
    base = Graph if issubclass(kind, Graph) else Process
    return Case(kind(m0=0.7, amplitude=1.8), data(base))


@cache
def passes(base, identity):
    return run_identity(FUNCTIONS[identity], case_of(base)).passed


@pytest.mark.parametrize(("bug", "identity", "form"), BUGS, ids=named)
def test_a_bug_is_caught(bug, identity, form):
    assert passes(bug.__bases__[0], identity)
    assert not run_identity(FUNCTIONS[identity], case_of(bug)).passed
