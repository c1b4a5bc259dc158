"""Marginal log likelihood of probabilistic PCA as one PyTensor operation with its gradient.

Latent factors and missing numbers are integrated out: rows are N(mean, W W' + sigma2 I), restricted to
their observed entries. Statistics by pattern of observed columns replace the rows, so
a gradient costs the same for a thousand rows and for a million. Tipping and Bishop 1999, section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import factors as ppca_loops
from bayeszoo.likelihoods.loops import vectors
from bayeszoo.likelihoods.loops.factors import ppca_value_and_gradient
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(
    mean: np.ndarray,
    loadings: np.ndarray,
    variance: np.ndarray,
    observed: np.ndarray,
    n: np.ndarray,
    means: np.ndarray,
    scatters: np.ndarray,
) -> Any:
    """Return value and gradients by Woodbury's identity, as arrays."""
    results = ppca_value_and_gradient(mean, loadings, variance[0], observed, n, means, scatters)
    return np.asarray(results[0]), results[1], results[2], np.full(1, results[3])


class PpcaLikelihood(LogDensity):
    """Mean (D,), loadings (D, q), variance (1,) and statistics by pattern to log likelihood, and three gradients."""

    parameters = (1, 2, 1)
    data = ((2, "float64"), (1, "float64"), (2, "float64"), (3, "float64"))
    sources = (ppca_loops, vectors)
    loops = staticmethod(_by_loops)


def ppca_log_likelihood(
    mean: pt.TensorVariable,
    loadings: pt.TensorVariable,
    variance: pt.TensorVariable,
    observed: pt.TensorVariable,
    n: pt.TensorVariable,
    means: pt.TensorVariable,
    scatters: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the log density of rows N(mean, W W' + sigma2 I), missing numbers integrated out, as a PyTensor scalar.

    Arguments are mean (D,), loadings W (D, q), whose rotations W Q have the same density, and the noise variance
    sigma2 > 0; the result is NaN if it is <= 0. The rest are the fields of `Patterns`, P patterns of observed columns,
    as ``pm.Data``: observed (P, D), n (P,), means (P, D) and scatters (P, D, D), in which unobserved entries are
    ignored. There are no second derivatives.
    """
    of_one = pt.shape_padleft(variance, 1)
    return PpcaLikelihood()(mean, loadings, of_one, pt.cast(observed, "float64"), n, means, scatters)[0]
