"""The log joint density and log likelihood that a point estimate prints are PyMC's at its point, whatever finds it.

The declaration is evaluated by PyTensor's interpreter: nothing but what EM and Newton's method need is compiled.
"""

import json

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract.case import case_of
from bayeszoo.fit import methods_for
from bayeszoo.inference.engine.density import Density
from bayeszoo.model.capabilities import Conditional
from tests.quick import quick_where

QUICK = ("normal_gamma", "negative_binomial_regression", "logistic_regression", "beta_binomial")
NAMES = [name for name in bz.names() if "map" in methods_for(bz.find(name))]


def declared_heights(case, tree):
    """Return log joint density and log likelihood of the ordered data at the point."""
    conditional = isinstance(case.model, Conditional)
    density = Density(case.model.marginalized(case.data), mode="FAST_COMPILE") if conditional else case.declared
    free = [variable.name for variable in density.model.free_RVs]
    x = density.unconstrain({name: tree["posterior"][name].to_numpy()[0, 0] for name in free})
    return [target(x)[0] - case.log_coefficient for target in (density.constrained_joint, density.likelihood)]


@pytest.mark.parametrize("method", ["map", "mle"])
@pytest.mark.parametrize("name", quick_where(NAMES, QUICK.__contains__))
def test_heights_of_a_point_estimate_are_those_of_the_declaration(name, method):
    case = case_of(bz.find(name))
    try:
        tree = bz.fit(case.model, case.data, method, seed=1)
    except bz.NumericalError as error:
        pytest.skip(str(error))
    facts = json.loads(tree.attrs["facts"])
    joint, likelihood = declared_heights(case, tree)
    if not np.isfinite(joint):
        pytest.skip("a probability of 0 has no place in unconstrained coordinates")
    assert facts["log_joint"] is None or facts["log_joint"] == pytest.approx(joint, rel=1e-8)
    assert facts["log_likelihood"] is None or facts["log_likelihood"] == pytest.approx(likelihood, rel=1e-8)
