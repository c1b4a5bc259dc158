"""Bugs that a careful reviewer would fear of a level that moves in time: the contract catches each.

m is the model, p the parameters and d the data; ``right(m)`` has the steps without the bug. The rows are two
sequences, one row of which is missing.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract import conditional, declared, identities
from bayeszoo.contract.case import Case
from bayeszoo.distributions import frozen
from bayeszoo.families.state_space import declaration
from tests.quick import named, right, seed

Level = bz.find("local_level")
IDENTITIES = vars(identities) | vars(declared) | vars(conditional)
BUGS = []
level = partial(seed, BUGS, Level)
Y = np.array([0.3, 1.9, np.nan, 2.4, 0.1, 3.0, 2.2])
SEQUENCE = np.array([0, 0, 0, 0, 1, 1, 1])


def glued(m, p, d):
    """Sequences taken for one."""
    return right(m).levels(p, {**d, "sequence": 0 * d["sequence"]})


def gaps_closed(m, p, d):
    """Missing rows left out, so that their neighbours are adjacent."""
    seen = ~np.isnan(d["y"])
    return right(m).levels(p, {name: values[seen] for name, values in d.items()}).log_marginal()


def of_filter(m, p, d):
    """Levels given the rows so far in the place of all rows."""
    posterior, chain = right(m).posterior_given(p, d), m.levels(p, d)
    own = chain.filtered()
    wrong = replace(chain.smoothed(), mean=own.mean(), sd=own.std())
    return type(posterior).gaussian("level", wrong)


def steps_uncounted(m, p, d, steps):
    """Every row to come as sure as the next one."""
    ahead = right(m).levels_ahead(p, d, 1)
    last = np.repeat(np.arange(np.shape(ahead.mean())[-1]), steps)
    return frozen.norm(ahead.mean()[..., last], ahead.std()[..., last])


def simulated_from_zero(m, rng, size):
    params, data = right(m).simulate(rng, size)
    moved = params["level"] - params["level"][0]
    return {**params, "level": moved}, data


def squares_for_sds(m, p, d):
    return right(m).levels({name: np.square(values) for name, values in p.items()}, d)


def marginal_in_variances(m, d):
    """The gradient of the likelihood is then of other numbers than the model's."""
    import pymc as pm

    with pm.Model() as model:
        q, r = m.declared_outer().values()
        pm.Potential("y", declaration.marginal(q**2, r**2, d["y"], m.m0, m.s0, np.array([0, 4])))
    return model


level("marginalized_density", "Glued", levels=glued)
level("conditional_candidate", "GapsClosed", log_marginal=gaps_closed)
level("conditional_candidate", "OfFilter", posterior_given=of_filter)
level("conditional_candidate", "SquaresForSds", levels=squares_for_sds)
level("marginalized_density", "InVariances", marginalized=marginal_in_variances)
level("marginalized_density", "RowsWithoutNoise", rows_about=lambda m, p, means: means)
level(
    "marginalized_density",
    "OwnRowIncluded",
    held_out=lambda m, p, d, at: m.rows_about(p, m.smoothed(p, d).entries(at)),
)
level("simulated_prior", "FromZero", 1, simulate=simulated_from_zero)
level("weak_units", "ScaleOfOne", weak=classmethod(lambda kind, d: kind(m0=float(np.nanmean(d["y"])), s0=1.0)))
level("units", "StepsInOtherUnits", levels=lambda m, p, d: right(m).levels({**p, "q": np.minimum(p["q"], 2.0)}, d))


def case(kind, form=0):
    """Two sequences, or with a form one, as it is simulated."""
    data = bz.read(kind, {"y": Y, "sequence": 0 * SEQUENCE if form else SEQUENCE}, missing="mask")
    return Case(kind(m0=0.4, s0=1.7, t_q=1.3, t_r=0.8), data)


@pytest.mark.parametrize(("bug", "identity", "form"), BUGS, ids=named)
def test_a_seeded_bug_is_caught(bug, identity, form):
    assert not IDENTITIES[identity](case(bug, form)).passed


@pytest.mark.parametrize(("identity", "form"), sorted({(identity, form) for _, identity, form in BUGS}))
def test_what_is_right_passes(identity, form):
    assert IDENTITIES[identity](case(Level, form)).passed


def test_steps_that_are_not_counted_are_seen():
    """The contract takes one step; forecasts of several are held to a dense Gaussian elsewhere."""
    data = {"y": Y, "sequence": SEQUENCE}
    bug = type("StepsUncounted", (Level,), {"levels_ahead": steps_uncounted, "__module__": __name__})
    at = {"q": np.array([0.5]), "r": np.array([1.0])}
    sds = [kind().rows_ahead(at, data, 3).std()[0] for kind in (Level, bug)]
    assert sds[0][0] == pytest.approx(sds[1][0])
    assert np.all(sds[0][1:3] > sds[1][1:3])
