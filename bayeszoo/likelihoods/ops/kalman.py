"""Log likelihood of a level that moves in time as a PyTensor operation, which computes its gradient as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import hmm as hmm_loops
from bayeszoo.likelihoods.loops import kalman
from bayeszoo.likelihoods.loops.hmm import opens
from bayeszoo.likelihoods.loops.kalman import derivatives
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(q: Any, r: Any, y: Any, first: Any, starts: Any) -> Any:
    """Return the value and its derivatives in both standard deviations, as arrays."""
    own, noise = q.item(), r.item()
    value, of_q2, of_r2 = derivatives(y, opens(starts, len(y)), first.item(), own * own, noise * noise)
    return np.asarray(value), np.asarray(2.0 * own * of_q2), np.asarray(2.0 * noise * of_r2)


class LevelLikelihood(LogDensity):
    """Standard deviations q and r, deviations y (T,), variance of the first level, and starts, to a log likelihood."""

    parameters = (0, 0)
    data = ((1, "float64"), (0, "float64"), (1, "int64"))
    sources = (kalman, hmm_loops)
    loops = staticmethod(_by_loops)


def level_log_likelihood(q: Any, r: Any, y: Any, first: Any, starts: Any) -> Any:
    """Return the log density of rows about a level that moves in time, levels integrated out, as a scalar.

    Parameters
    ----------
    q, r : scalar variables
        Standard deviations of the steps of the level, and of rows about it.
    y : variable of shape (T,)
        Rows less the prior mean of the first level of a sequence; NaN is missing.
    first : scalar variable
        Prior variance of the first level of a sequence.
    starts : variable of shape (number of sequences,)
        Index of the first row of each sequence: 0, and then increasing.
    """
    return LevelLikelihood()(*map(pt.as_tensor_variable, (q, r, y, first, starts)))[0]
