"""Declarations in PyMC of the priors of scalar parameters."""

from __future__ import annotations

from dataclasses import fields
from functools import singledispatch
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import Interval

from bayeszoo.distributions import priors

ZERO = np.float64(0)


@singledispatch
def declared(prior: priors.Prior, name: str, **shape: Any) -> pt.TensorVariable:
    """Declare ``name`` with a prior in the open PyMC model; ``shape`` and ``dims`` declare independent entries."""
    if not prior.pymc:
        raise TypeError(f"{type(prior).__name__} has no declaration")
    kind, *arguments = prior.pymc
    values = (getattr(prior, parameter.name) for parameter in fields(prior))
    return getattr(pm, kind)(name, **dict(zip(arguments, values, strict=True)), **shape)


@declared.register
def _(prior: priors.HalfCauchy, name: str, **shape: Any) -> Any:
    # not pm.HalfCauchy, in whose density PyMC takes log 2 in single precision; at 0 itself no sampler can start
    cauchy = pm.Cauchy.dist(alpha=ZERO, beta=prior.median)
    return pm.Truncated(name, cauchy, lower=np.finfo(np.float64).tiny, **shape)


@declared.register
def _(prior: priors.LogUniform, name: str, **shape: Any) -> Any:
    ends = (np.log(end - prior.above) for end in (prior.low, prior.high))
    interval = Interval(float(prior.low), float(prior.high))
    options: Any = {"transform": interval, "class_name": "LogUniform", **shape}
    return pm.CustomDist(name, prior.above, *ends, dist=_log_uniform, **options)


def _log_uniform(above: object, low: object, high: object, size: object) -> pt.TensorVariable:
    return above + pt.exp(pm.Uniform.dist(low, high, size=size))
