"""How many parameters and rows a quadrature takes."""

from __future__ import annotations

import math

from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import LogConcave
from bayeszoo.model.conditional import MOST_OUTER, Conditional

MOST_WEIGHTS, MOST_ROWS = 2, 10_000
"""Parameters of a log-concave model, and rows, up to which they are integrated over."""


def beyond_quadrature(model: Model, data: Arrays) -> str:
    """Say why there is no quadrature of a model, as of too many numbers or rows; nothing where there is."""
    if isinstance(model, Conditional):
        return _beyond_outer(model, data)
    return _beyond_weights(model, data) if isinstance(model, LogConcave) else ""


def _beyond_outer(model: Conditional, data: Arrays) -> str:
    shapes = model.outer_shapes(data)
    numbers = sum(math.prod(shapes.get(name, ())) for name in model.integrated_over)
    if numbers > MOST_OUTER:
        many = f"{numbers} numbers, and it is of at most {MOST_OUTER}"
        return f"{model}: the quadrature is over {many}; map takes any number"
    if (rows := model.inputs.size(data)) > model.most_integrated:
        many = f"{rows:,} rows, and it is of at most {model.most_integrated:,}"
        return f"{model.name}: the quadrature is of {many}; nuts, map and mle take more"
    return ""


def _beyond_weights(model: LogConcave, data: Arrays) -> str:
    weights, rows = len(model.coords(data)["term"]), model.inputs.size(data)
    by = f"{model.name}: exact answers are by quadrature, of at most"
    if weights > MOST_WEIGHTS or not weights:
        return f"{by} {MOST_WEIGHTS} weights, and there are {weights}; nuts samples, smc has evidence"
    if rows > MOST_ROWS:
        return f"{by} {MOST_ROWS:,} rows, and there are {rows:,}; laplace is close to exact there"
    return ""
