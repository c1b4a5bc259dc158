"""Base classes, fields and input types of models: everything that a model's author imports."""

from bayeszoo.data.read import Example
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.model.base import Axes, Model
from bayeszoo.model.capabilities import (
    EM,
    Classifies,
    ClosedForm,
    Collapsed,
    Conditional,
    Conjugate,
    Enumerable,
    Gibbs,
    Latent,
    LogConcave,
    Observable,
    PointEstimates,
    PointMasses,
    Predictive,
    Sequential,
    Stochastic,
    Sufficient,
    Symmetric,
    Variational,
)
from bayeszoo.model.capabilities.closed import BlockModel
from bayeszoo.model.capabilities.latent import Additive
from bayeszoo.model.capabilities.steps import ConcaveLikelihood, Coordinates, Expectation, GibbsChain
from bayeszoo.model.fields import covariance, known, plain, positive, real, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated
from bayeszoo.model.views import View

__all__ = ["Axes", "Coordinates", "Example", "Expectation", "GibbsChain", "Model", "Posterior", "Stats"]
__all__ += ["Arrays", "DeclaredModel", "Params", "RowLaw", "Simulated"]
__all__ += ["EM", "Classifies", "ClosedForm", "Collapsed", "Conditional", "Conjugate", "Enumerable", "Gibbs"]
__all__ += ["ConcaveLikelihood", "Latent", "LogConcave", "Observable", "PointEstimates", "PointMasses", "Predictive"]
__all__ += ["Additive", "BlockModel", "Sequential", "Stochastic", "Sufficient", "Symmetric", "Variational", "View"]
__all__ += ["covariance", "known", "plain", "positive", "real", "whole"]
