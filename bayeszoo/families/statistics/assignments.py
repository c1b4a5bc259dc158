"""The evidence of rows given which component or state each is of, parameters integrated out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions.conjugate.law import Block, Law
from bayeszoo.families.statistics.patterns import distinct
from bayeszoo.foundation.named import Arrays


def log_evidence_of(law: Law[Any], rows: Arrays, assignments: np.ndarray) -> np.ndarray:
    """Log density of rows given assignments (M, n) to the K entries of a law's one axis, (M,).

    The statistics of each set of rows that occurs are computed once.
    """
    (M, n), (K,) = assignments.shape, law.axes
    sets = assignments[:, None, :] == np.arange(K)[:, None]
    different, which = distinct(sets.reshape(M * K, n))
    which = which.reshape(M, K)
    stats = law.statistics(rows, different.T[:, :, None].astype(np.float64))  # one axis of sets, and K or 1 entries
    if isinstance(law, Block) and law.shared:
        return np.asarray(law.log_evidence(stats[:, 0][which]).sum(axis=-1))
    return np.asarray(law.log_evidence(stats)[which, np.arange(K)].sum(axis=-1))
