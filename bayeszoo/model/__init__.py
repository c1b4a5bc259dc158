"""What a model is, what it can do, and how models are found: all that a model's author imports is exported here."""

from bayeszoo.data.read import Example
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.model.base import Axes, Model, Stats, Values
from bayeszoo.model.capabilities import (
    EM,
    Atoms,
    Classifies,
    ClosedForm,
    Collapsed,
    Conditional,
    Conjugate,
    Enumerable,
    FoldIn,
    Latent,
    LogConcave,
    Observable,
    PointEstimates,
    Predictive,
    Profiled,
    Stochastic,
    Sufficient,
    Symmetric,
    Variational,
)
from bayeszoo.model.fields import covariance, known, plain, positive, real, whole
from bayeszoo.model.steps import CollapsedChain, ConcaveLikelihood, Coordinates, Expectation

__all__ = ["Axes", "CollapsedChain", "Coordinates", "Example", "Expectation", "Model", "Posterior", "Stats", "Values"]
__all__ += ["EM", "Classifies", "ClosedForm", "Collapsed", "Conditional", "Conjugate", "Enumerable", "FoldIn", "Latent"]
__all__ += ["Atoms", "ConcaveLikelihood", "LogConcave", "Observable", "PointEstimates", "Predictive", "Profiled"]
__all__ += ["Stochastic", "Sufficient", "Symmetric", "Variational"]
__all__ += ["covariance", "known", "plain", "positive", "real", "whole"]
