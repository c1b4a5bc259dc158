"""The largest numbers of parameters and rows for which a quadrature is run."""

from __future__ import annotations

import math

from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import LogConcave
from bayeszoo.model.capabilities.conditional import MOST_OUTER, Conditional

MOST_WEIGHTS, MOST_ROWS = 2, 10_000
"""Most parameters, and most rows, for which a log-concave model is integrated by quadrature."""


def beyond_quadrature(model: Model, data: Arrays) -> str:
    """Say why a model has no quadrature: too many parameters or rows. Empty where it has one."""
    if isinstance(model, Conditional):
        return _beyond_outer(model, data)
    return _beyond_weights(model, data) if isinstance(model, LogConcave) else ""


def _beyond_outer(model: Conditional, data: Arrays) -> str:
    shapes = model.outer_shapes(data)
    numbers = sum(math.prod(shapes.get(name, ())) for name in model.integrated_over)
    if numbers > MOST_OUTER:
        excess = f"at most {MOST_OUTER} parameters, and there are {numbers}"
        return f"{model}: quadrature integrates over {excess}; use --method map"
    if (rows := model.inputs.size(data)) > model.most_integrated:
        excess = f"at most {model.most_integrated:,} rows, and there are {rows:,}"
        return f"{model.name}: quadrature takes {excess}; use nuts, map or mle"
    return ""


def _beyond_weights(model: LogConcave, data: Arrays) -> str:
    weights, rows = len(model.coords(data)["term"]), model.inputs.size(data)
    limit = f"{model.name}: quadrature takes at most"
    if weights > MOST_WEIGHTS or not weights:
        return f"{limit} {MOST_WEIGHTS} weights, and there are {weights}; use nuts, or smc for the evidence"
    if rows > MOST_ROWS:
        return f"{limit} {MOST_ROWS:,} rows, and there are {rows:,}; laplace is close to exact there"
    return ""
