"""Distributions at fixed parameters against SciPy's own frozen ones."""

import copy
import pickle

import numpy as np
import pytest
import scipy.stats

from bayeszoo.distributions import frozen

AT = [("t", (4.0,), {"loc": np.array([0.0, 3.0])}), ("beta", ([2.0, 0.5], 3.0), {}), ("poisson", (3.5,), {})]


@pytest.mark.parametrize(("name", "args", "kwds"), AT)
def test_methods_are_those_of_scipys_frozen(name, args, kwds):
    ours, theirs = getattr(frozen, name)(*args, **kwds), getattr(scipy.stats, name)(*args, **kwds)
    density = "logpmf" if name == "poisson" else "logpdf"
    for method, values in ((density, (2,)), ("cdf", (0.7,)), ("ppf", (0.3,)), ("interval", (0.9,))):
        assert np.array_equal(getattr(ours, method)(*values), getattr(theirs, method)(*values))
    for method in ("mean", "std", "var", "median", "support", "entropy"):
        assert np.array_equal(getattr(ours, method)(), getattr(theirs, method)())
    assert np.array_equal(ours.stats(moments="sk"), theirs.stats(moments="sk"))
    draws = [one.rvs(size=(3, 2), random_state=np.random.default_rng(1)) for one in (ours, theirs)]
    assert np.array_equal(*draws)
    assert hasattr(ours, "logpmf") == hasattr(theirs, "logpmf")  # by which discrete ones are known
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert np.array_equal(again.mean(), theirs.mean())


def test_drawing_leaves_scipys_own_generator_alone():
    before = scipy.stats.norm.random_state
    frozen.norm(0.0, 1.0).rvs(size=2, random_state=np.random.default_rng(0))
    assert scipy.stats.norm.random_state is before


def test_what_scipy_does_not_have_is_not_there():
    assert not hasattr(frozen, "nonesuch")
    assert not hasattr(frozen.norm(0.0, 1.0), "nonesuch")
