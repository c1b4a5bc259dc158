"""Bugs that a careful reviewer would fear of a structural series with features: the contract catches each.

m is the model, p the parameters and d the data; ``right(m)`` has the steps without the bug. The rows are two
sequences, one row of which is missing.
"""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract import conditional, declared, identities
from bayeszoo.contract.case import Case
from bayeszoo.distributions.gaussian import Dense
from bayeszoo.distributions.posterior import Posterior
from tests.quick import named, right, seed

Series = bz.find("structural_series")
IDENTITIES = vars(identities) | vars(declared) | vars(conditional)
BUGS = []
series = partial(seed, BUGS, Series)
Y = np.array([0.3, 1.9, np.nan, 2.4, 0.1, 3.0, 2.2, 1.4, 2.9, -0.2, 1.1])
SEQUENCE = np.repeat([0, 1], [6, 5])
PRICE, LAW = (
    np.array([2.0, 2.3, 1.7, 2.9, 2.2, 1.1, 2.4, 2.6, 1.9, 2.0, 3.1]),
    np.repeat([0.0, 1.0, 0.0, 1.0], [4, 2, 3, 2]),
)


def not_centred(m, p, d):
    """Features as they are."""
    return right(m).levels(p, {**d, "X": d["X"] + m.center})


def of_row_before(m, p, d):
    """Features a row late."""
    return right(m).levels(p, {**d, "X": np.roll(d["X"], 1, axis=0)})


def weights_anew(m, p, d):
    """Weights of each sequence by itself."""
    parts = [m.inputs.reordered(d, np.flatnonzero(d["sequence"] == k)) for k in np.unique(d["sequence"])]
    return sum(right(m).log_marginal(p, part) for part in parts)


def weights_by_the_prior(m, p, d):
    """Nothing learnt of the weights."""
    mean = np.zeros((*np.shape(p["q"]), 2))
    return Posterior.gaussian("w", Dense(mean, np.diag(m.weight_sds(d)) + 0 * mean[..., None]))


def unknown_features(m, p, d, steps, new=None):
    """Rows to come at the centre of the features."""
    return right(m).parts_ahead(p, d, steps, {**new, "X": np.zeros_like(new["X"]) + m.center})


def simulated_in_scales(m, rng, size):
    """Weights in units of the scale and not the user's."""
    params, data = right(m).simulate(rng, size)
    return {**params, "w": params["w"] * m.scale}, data


def of_other_period(m, p, d):
    """Seasons that come back a row late."""
    return Series.levels(replace(m, period=4), p, d)


series("marginalized_density", "Glued", levels=lambda m, p, d: right(m).levels(p, {**d, "sequence": 0 * d["sequence"]}))
series("conditional_candidate", "NotCentred", levels=not_centred)
series("conditional_candidate", "OfRowBefore", levels=of_row_before)
series("conditional_candidate", "WeightsAnew", log_marginal=weights_anew)
series("conditional_candidate", "WeightsByThePrior", posterior_given=weights_by_the_prior)
series("conditional_candidate", "OtherPeriod", levels=of_other_period)
series("marginalized_density", "FeaturesToComeIgnored", parts_ahead=unknown_features)
series("marginalized_density", "RowsWithoutNoise", rows_about=lambda m, p, means: means)
series(
    "marginalized_density",
    "OwnRowIncluded",
    held_out=lambda m, p, d, at: m.rows_about(p, m.part(m.smoothed_parts(p, d), "signal", d).entries(at)),
)
series("simulated_prior", "InScales", 1, simulate=simulated_in_scales)
series("weak_units", "WeightsOfOne", weak=classmethod(lambda kind, d: Series.weak(d).replaced(tau=1.0)))


@cache
def case(kind, form=0):
    """Two sequences, or with a form one."""
    table = {"y": Y, "sequence": 0 * SEQUENCE if form else SEQUENCE, "price": PRICE, "law": LAW}
    data = bz.read(kind, table, missing="mask", features="price,law")
    fields = {"m0": 0.4, "s0": 1.7, "s_slope": 0.4, "s_season": 1.2, "t_q": 1.3, "t_r": 0.8, "period": 3}
    return Case(kind(**fields, tau=[0.7, 1.6], center=[2.1, 0.3], scale=[0.6, 0.5]), data)


@pytest.mark.parametrize(("bug", "identity", "form"), BUGS, ids=named)
def test_a_seeded_bug_is_caught(bug, identity, form):
    assert not IDENTITIES[identity](case(bug, form)).passed


@pytest.mark.parametrize(("identity", "form"), sorted({(identity, form) for _, identity, form in BUGS}))
def test_what_is_right_passes(identity, form):
    assert IDENTITIES[identity](case(Series, form)).passed
