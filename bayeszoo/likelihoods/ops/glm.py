"""Log likelihoods of regressions with a link as PyTensor operations with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import glm as glm_loops
from bayeszoo.likelihoods.loops.glm import glm_value_and_gradient, softmax_value_and_gradient
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(
    w: np.ndarray, design: np.ndarray, outcome: np.ndarray, size: np.ndarray, link: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return value and gradient as arrays."""
    value, gradient = glm_value_and_gradient(w, design, outcome, size, link[0])
    return np.asarray(value), gradient


class GlmLikelihood(LogDensity):
    """Weights (T,), rows (n, T), outcomes and sizes (n,) and the code of a link to log likelihood and gradient."""

    parameters = (1,)
    data = ((2, "float64"), (1, "float64"), (1, "float64"), (1, "int64"))
    sources = (glm_loops,)
    loops = staticmethod(_by_loops)


def glm_log_likelihood(
    w: pt.TensorVariable, design: pt.TensorVariable, outcome: pt.TensorVariable, size: pt.TensorVariable, link: int
) -> pt.TensorVariable:
    """Return the log density of ordered outcomes whose linear predictor is ``design @ w``, as a PyTensor scalar.

    Binomial coefficients are left out, constants of counts are kept; ``link`` is the code in
    `bayeszoo.likelihoods.loops.glm`. There are no second derivatives.
    """
    return GlmLikelihood()(w, design, outcome, size, np.array([link], dtype=np.int64))[0]


def _softmax_by_loops(w: np.ndarray, design: np.ndarray, codes: np.ndarray) -> Any:
    """Return value and gradient as arrays."""
    value, gradient = softmax_value_and_gradient(w, design, codes)
    return np.asarray(value), gradient


class SoftmaxLikelihood(LogDensity):
    """Weights (K, T), rows (n, T) and the classes of the rows (n,) to log likelihood and gradient."""

    parameters = (2,)
    data = ((2, "float64"), (1, "int64"))
    sources = (glm_loops,)
    loops = staticmethod(_softmax_by_loops)


def softmax_log_likelihood(
    w: pt.TensorVariable, design: pt.TensorVariable, codes: pt.TensorVariable
) -> pt.TensorVariable:
    """Return the log probability of classes, proportional to exp of the rows of ``design @ w.T``, as a PyTensor scalar.

    There are no second derivatives.
    """
    return SoftmaxLikelihood()(w, design, codes)[0]
