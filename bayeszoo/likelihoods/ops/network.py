"""The log density of a network's outcomes, output weights and noise integrated out, as a PyTensor operation."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import network as network_loops
from bayeszoo.likelihoods.loops.network import network_value_and_gradient
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(
    w: np.ndarray, terms: np.ndarray, outcome: np.ndarray, precision: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return value and gradient as arrays; ``noise`` (2,) holds shape and scale of the prior of the variance."""
    value, gradient = network_value_and_gradient(w, terms, outcome, precision, noise[0], noise[1])
    return np.asarray(value), gradient


class NetworkRows(LogDensity):
    """Weights (F + 1, H) of hidden units to the log density of the rows and its gradient in the weights."""

    parameters = (2,)
    data = ((2, "float64"), (1, "float64"), (1, "float64"), (1, "float64"))
    sources = (network_loops,)
    loops = staticmethod(_by_loops)


def network_log_density(
    w: pt.TensorVariable,
    terms: pt.TensorVariable,
    outcome: pt.TensorVariable,
    precision: pt.TensorVariable,
    noise: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the log density of outcomes (n,), minus their prior mean, given tanh units of ``terms @ w``."""
    return NetworkRows()(w, terms, outcome, precision, noise)[0]
