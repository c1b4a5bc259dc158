"""The log joint density and log likelihood that a point estimate prints are PyMC's at its point, whatever the method.

The declaration is evaluated by PyTensor's interpreter: nothing but what EM and Newton's method need is compiled.
"""

import json

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.contract.case import case_of
from bayeszoo.fit import methods_for
from bayeszoo.model.capabilities import Conditional

QUICK = ("normal_gamma", "negative_binomial_regression", "logistic_regression", "beta_binomial")
NAMES = [name for name in bz.names() if "map" in methods_for(bz.find(name))]
WITHOUT_MLE = {"bayesian_pca", "logistic_regression", "negative_binomial_regression", "probit_regression"}
WITHOUT_MLE |= {"softmax_regression", "support_vector_regression", "dp_mixture", "logistic_intercepts"}
WITHOUT_MLE |= {"gaussian_process_classification", "graph_process"}
"""Models whose likelihood has no maximum for the data of their case: these fits are refused, as other tests hold."""
AT_THE_EDGE = {"hmm_categorical", "latent_class", "lda", "markov_chain", "normal_means", "tree_network"}
"""Models whose mle has probabilities or an sd of 0, which have no place in unconstrained coordinates."""
NO_MAP = {"lda", "normal_means", "dp_mixture"}
"""Models whose map is refused, or has an sd of 0 too."""


def declared_heights(case, tree):
    """Return log joint density and log likelihood of the ordered data at the point."""
    conditional = isinstance(case.model, Conditional)
    density = Density(case.model.marginalized(case.data), mode="FAST_COMPILE") if conditional else case.declared
    free = [variable.name for variable in density.model.free_RVs]
    x = density.unconstrain({name: tree["posterior"][name].to_numpy()[0, 0] for name in free})
    return [target(x)[0] - case.log_coefficient for target in (density.constrained_joint, density.likelihood)]


def estimates():
    """Return models with a method that has a height, and without those that have none for the data of their case."""
    none = {(name, "mle") for name in WITHOUT_MLE | AT_THE_EDGE} | {(name, "map") for name in NO_MAP}
    both = [(name, method) for name in NAMES for method in ("map", "mle") if (name, method) not in none]
    return [pytest.param(*case, marks=() if case[0] in QUICK else pytest.mark.slow) for case in both]


@pytest.mark.parametrize(("name", "method"), estimates())
def test_heights_of_a_point_estimate_are_those_of_the_declaration(name, method):
    case = case_of(bz.find(name))
    tree = bz.fit(case.model, case.data, method, seed=1)
    facts = json.loads(tree.attrs["facts"])
    joint, likelihood = declared_heights(case, tree)
    assert np.isfinite(joint)
    assert facts["log_joint"] is None or facts["log_joint"] == pytest.approx(joint, rel=1e-8)
    assert facts["log_likelihood"] is None or facts["log_likelihood"] == pytest.approx(likelihood, rel=1e-8)
