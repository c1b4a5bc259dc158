"""What a model is, what it can do, and how models are found: all that a model's author imports is exported here."""

from bayeszoo.data.read import Example
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.model.base import Axes, Model, Stats, Values
from bayeszoo.model.capabilities import (
    EM,
    Chain,
    ClosedForm,
    Collapsed,
    Conjugate,
    Coordinates,
    Enumerable,
    Expectation,
    FoldIn,
    Latent,
    Observable,
    PointEstimates,
    Predictive,
    Stochastic,
    Sufficient,
    Symmetric,
    Variational,
)
from bayeszoo.model.fields import covariance, plain, positive, real, whole

__all__ = [
    "EM",
    "Axes",
    "Chain",
    "ClosedForm",
    "Collapsed",
    "Conjugate",
    "Coordinates",
    "Enumerable",
    "Example",
    "Expectation",
    "FoldIn",
    "Latent",
    "Model",
    "Observable",
    "PointEstimates",
    "Posterior",
    "Predictive",
    "Stats",
    "Stochastic",
    "Sufficient",
    "Symmetric",
    "Values",
    "Variational",
    "covariance",
    "plain",
    "positive",
    "real",
    "whole",
]
