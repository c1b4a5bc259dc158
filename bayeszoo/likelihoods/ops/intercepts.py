"""The log density of rows with Gaussian random intercepts integrated out, as a PyTensor operation."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import intercepts as intercepts_loops
from bayeszoo.likelihoods.loops.intercepts import intercepts_derivatives
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(
    w: np.ndarray,
    sd: np.ndarray,
    design: np.ndarray,
    offset: np.ndarray,
    outcome: np.ndarray,
    size: np.ndarray,
    starts: np.ndarray,
    link: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return value and gradients as arrays."""
    value, slopes, of_sd, _ = intercepts_derivatives(
        w, sd.item(), design, offset, outcome, size, starts, link[0], False
    )
    return np.asarray(value), slopes, np.asarray(of_sd)


class InterceptRows(LogDensity):
    """Weights (T,) and the standard deviation of the intercepts to the log density of rows sorted by group."""

    parameters = (1, 0)
    data = ((2, "float64"), (1, "float64"), (1, "float64"), (1, "float64"), (1, "int64"), (1, "int64"))
    sources = (intercepts_loops,)
    loops = staticmethod(_by_loops)


def intercepts_log_density(w: pt.TensorVariable, sd: pt.TensorVariable, *rows: pt.TensorVariable) -> pt.TensorVariable:
    """Return the log density, without its constants, of rows in the form of `bayeszoo.likelihoods.loops.intercepts`."""
    return InterceptRows()(w, sd, *rows)[0]
