"""Draws of parameters by name: arrays (chain, draw, ...), or (draws, ...) with the chains one after the other."""

from __future__ import annotations

import numpy as np

from bayeszoo.foundation.named import Params


def shape_of(params: Params) -> tuple[int, int]:
    """Return the number of chains, and of draws per chain."""
    chains, draws = np.shape(next(iter(params.values())))[:2]
    return chains, draws


def flat(params: Params) -> dict[str, np.ndarray]:
    """Concatenate the draws of all chains."""
    return {name: np.reshape(values, (-1, *np.shape(values)[2:])) for name, values in params.items()}


def every(params: Params, step: int) -> dict[str, np.ndarray]:
    """Return every ``step``-th draw of each chain."""
    return {name: values[:, ::step] for name, values in params.items()}


def size_of(points: Params) -> int:
    """Return the number of draws of concatenated chains, or of points."""
    return len(next(iter(points.values())))
