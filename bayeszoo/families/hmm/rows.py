"""The distribution of a row whose state is unknown: the mixture of the emissions of all states."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions import discrete, frozen
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.averages.mixture_rows import CountRows, RealRows
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.foundation.named import Params


def rows_of(block: Law[Any], params: Params, states: np.ndarray) -> RowLaw:
    """Return the law of rows given probabilities of their states, (..., rows, K), at the block's parameters."""
    if isinstance(block, Categorical):
        return discrete.Categorical(states @ block.row_mean(params))
    if isinstance(block, Poisson):
        return CountRows(states, discrete.Poisson(np.asarray(block.row_mean(params))[..., None, :]))
    assert isinstance(block, Normal)
    means, variances = (np.asarray(values)[..., None, :] for values in block.means_and_variances(params))
    return RealRows(states, frozen.norm(means, np.sqrt(variances)))
