"""Capabilities of models beyond declaration and simulation: abstract classes that a model names as bases.

Required steps are abstract. Optional ones have a neutral default here, so that engines call them without tests. The
engines (`bayeszoo.inference`) are written once; a model supplies the steps. CONTRACT.md gives the reason for each.
"""

from bayeszoo.model.capabilities.closed import ClosedForm, Conjugate, PointEstimates, Predictive, Sufficient
from bayeszoo.model.capabilities.conditional import Conditional, LogConcave
from bayeszoo.model.capabilities.function import OfFunction
from bayeszoo.model.capabilities.latent import (
    EM,
    Additive,
    Collapsed,
    Enumerable,
    Gibbs,
    PointMasses,
    PriorDensity,
    Stochastic,
    Symmetric,
    Variational,
)
from bayeszoo.model.capabilities.observable import Classifies, Latent, Observable
from bayeszoo.model.capabilities.sequential import Sequential
from bayeszoo.model.capabilities.which import (
    CAPABILITIES,
    capabilities,
    exchangeable_axis,
    has_few_outer,
    has_step,
    has_vectors,
    is_exact,
    is_integrated,
    is_log_concave,
    predicts_by_points,
    rows_have_parameters,
    simulates,
)

__all__ = ["CAPABILITIES", "EM", "Additive", "Classifies", "ClosedForm", "Collapsed", "Conditional", "Conjugate"]
__all__ += ["Enumerable", "Gibbs", "Latent", "LogConcave", "Observable", "OfFunction", "PointEstimates", "PointMasses"]
__all__ += ["Predictive", "PriorDensity", "Sequential", "Stochastic", "Sufficient", "Symmetric", "Variational"]
__all__ += [
    "capabilities",
    "exchangeable_axis",
    "has_few_outer",
    "has_step",
    "has_vectors",
    "is_exact",
    "is_integrated",
]
__all__ += ["is_log_concave", "predicts_by_points", "rows_have_parameters", "simulates"]
