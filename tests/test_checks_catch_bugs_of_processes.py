"""Bugs that a careful reviewer would fear of a Gaussian process: the contract catches each.

m is the model, p its parameters and d the data; ``right(m)`` has the steps without the bug.
"""

from functools import cache, partial

import numpy as np
import pymc as pm
import pytest

from bayeszoo.contract.case import Case
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.contract.conditional import marginalized_density
from bayeszoo.data.read import Data
from bayeszoo.distributions import frozen
from bayeszoo.families.processes import spectrum
from bayeszoo.families.processes.spectrum import Rows
from bayeszoo.model.find import find
from tests.quick import named, right, seed

Process = find("gaussian_process")
BUGS = []
process = partial(seed, BUGS, Process)
FUNCTIONS = {identity.function: identity for identity in IDENTITIES}


def jittered(m, d):
    """The default of PyMC's module: a jitter that nobody asked for."""
    rows = m.rows(d)
    with pm.Model() as model:
        amplitude, length, sigma = m.declared_outer().values()
        cov = amplitude**2 * pm.gp.cov.ExpQuad(1, ls=length)
        law = pm.gp.Marginal(mean_func=pm.gp.mean.Constant(rows.mean), cov_func=cov)
        law.marginal_likelihood("y", X=rows.places, y=rows.y, sigma=sigma)
    return model


def without_noise(m, p, seen, new, rng=None):
    return m.function(p, seen, new)


def about_nothing(m, p, seen, new, rng=None):
    """The prior in the place of what the rows say."""
    law = right(m).law(p, seen, new)
    sd = np.hypot(p["amplitude"], p["sigma"])[..., None]
    return frozen.norm(m.m0 + 0 * law.mean(), sd + 0 * law.mean())


def with_itself(m, p, seen, places):
    """Each row given all rows, its own too."""
    return right(m).law(p, seen, m.inputs.reordered(seen, places))


def of_squared_length(m, outer, d):
    return right(m).log_marginal({**outer, "length": np.sqrt(outer["length"])}, d)


process("conditional_candidate", "Jitter", declare=jittered)
process("conditional_candidate marginalized_density", "SquaredLength", log_marginal=of_squared_length)
process("conditional_candidate", "Constant", log_marginal=lambda m, o, d: right(m).log_marginal(o, d) + 1e-6)
process("marginalized_density", "WithoutNoise", law=without_noise)
process("marginalized_density", "Prior", law=about_nothing)
process("marginalized_density", "WithItself", held_out=with_itself)
process("weak_units", "OfOneUnit", weak=classmethod(lambda cls, d: right_weak(cls, d).replaced(t_sigma=1.0)))
process("weak_units", "MeanOfZero", weak=classmethod(lambda cls, d: right_weak(cls, d).replaced(m0=0.0)))


def right_weak(cls, data):
    return cls(**{name: getattr(Process.weak(data), name) for name in ("m0", "t_amplitude", "t_sigma", "b_length")})


@cache
def data():
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0, 5, 9))
    return Data({"X": x[:, None], "y": np.sin(x) + 0.3 * rng.normal(size=9), "feature": np.array(["x"])})


@pytest.mark.parametrize(("bug", "identity", "form"), BUGS, ids=named)
def test_a_bug_is_caught(bug, identity, form):
    right_one, wrong = (Case(kind(m0=0.7, t_amplitude=1.3, t_sigma=0.8), data()) for kind in (Process, bug))
    assert run_identity(FUNCTIONS[identity], right_one).passed
    assert not run_identity(FUNCTIONS[identity], wrong).passed


def test_eigenvalues_that_are_merged_with_too_many_are_caught(monkeypatch):
    case = Case(Process(), data())
    assert marginalized_density(case).passed
    monkeypatch.setattr(spectrum, "EPSILON", 1e-6)
    case.model._kept.clear()
    assert not marginalized_density(Case(Process(), data())).passed


def test_a_row_left_out_in_the_place_of_another_is_caught(monkeypatch):
    held_out = Rows.held_out
    monkeypatch.setattr(Rows, "held_out", lambda self, outer, rows: held_out(self, outer, rows - 1))
    assert not marginalized_density(Case(Process(), data())).passed
