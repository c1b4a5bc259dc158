"""How each prior of a number is declared in PyMC."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import Interval

from bayeszoo.distributions import priors

ZERO = np.float64(0)


@singledispatch
def declared(prior: priors.Prior, name: str) -> Any:
    """Declare a number ``name`` with a prior, in the model that is open."""
    raise TypeError(f"{type(prior).__name__} has no declaration")


@declared.register
def _(prior: priors.Normal, name: str) -> Any:
    return pm.Normal(name, mu=prior.mean, sigma=prior.sd)


@declared.register
def _(prior: priors.HalfNormal, name: str) -> Any:
    return pm.HalfNormal(name, sigma=prior.sd)


@declared.register
def _(prior: priors.HalfCauchy, name: str) -> Any:
    # not pm.HalfCauchy, in whose density PyMC takes log 2 in single precision; at 0 itself no sampler can start
    return pm.Truncated(name, pm.Cauchy.dist(alpha=ZERO, beta=prior.median), lower=np.finfo(np.float64).tiny)


@declared.register
def _(prior: priors.Gamma, name: str) -> Any:
    return pm.Gamma(name, alpha=prior.shape, beta=prior.rate)


@declared.register
def _(prior: priors.InvGamma, name: str) -> Any:
    return pm.InverseGamma(name, alpha=prior.shape, beta=prior.spread)


@declared.register
def _(prior: priors.Pareto, name: str) -> Any:
    return pm.Pareto(name, alpha=prior.shape, m=prior.low)


@declared.register
def _(prior: priors.Beta, name: str) -> Any:
    return pm.Beta(name, alpha=prior.a, beta=prior.b)


@declared.register
def _(prior: priors.Uniform, name: str) -> Any:
    return pm.Uniform(name, lower=prior.low, upper=prior.high)


@declared.register
def _(prior: priors.LogUniform, name: str) -> Any:
    ends = (np.log(end - prior.above) for end in (prior.low, prior.high))
    interval = Interval(float(prior.low), float(prior.high))
    return pm.CustomDist(name, prior.above, *ends, dist=_log_uniform, transform=interval, class_name="LogUniform")


def _log_uniform(above: Any, low: Any, high: Any, size: Any) -> Any:
    return above + pt.exp(pm.Uniform.dist(low, high, size=size))
