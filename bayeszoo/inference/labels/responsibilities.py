"""Latent variables of each row given draws of the parameters, some draws at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import Latent

_CELLS = 2**18
"""Rows times draws that a model is asked for at a time."""


def in_chunks(model: Latent, params: Values, data: Values) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield which draws, and their latent variables (draws, rows, K), some at a time; params are (draw, ...)."""
    total = len(next(iter(params.values())))
    size = max(_CELLS // max(model.inputs.size(data), 1), 1)
    for first in range(0, total, size):
        some = slice(first, min(first + size, total))
        values = np.asarray(model.assign({name: draws[some] for name, draws in params.items()}, data))
        impossible = np.isnan(values).all(axis=-1, keepdims=True) if values.ndim == 3 else False
        if not (np.isfinite(values) | impossible).all():
            raise NumericalError(f"{model.name}.assign gives numbers that are not finite")
        yield some, values


def flat(params: Values) -> dict[str, np.ndarray]:
    """Put the draws of all chains one after the other."""
    return {name: np.reshape(values, (-1, *np.shape(values)[2:])) for name, values in params.items()}
