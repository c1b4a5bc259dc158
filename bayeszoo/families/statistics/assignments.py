"""The evidence of rows given the component or state of each row, parameters integrated out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions.conjugate.law import Block, Law
from bayeszoo.families.statistics.patterns import distinct
from bayeszoo.foundation.named import Arrays


def log_evidence_of(law: Law[Any], rows: Arrays, assignments: np.ndarray) -> np.ndarray:
    """Return the log density (M,) of rows given assignments (M, n) to the K entries of a law's single axis.

    The statistics of each distinct set of rows are computed once.
    """
    (M, n), (K,) = assignments.shape, law.axes
    sets = assignments[:, None, :] == np.arange(K)[:, None]
    distinct_sets, index = distinct(sets.reshape(M * K, n))
    index = index.reshape(M, K)
    stats = law.statistics(rows, distinct_sets.T[:, :, None].astype(np.float64))  # (distinct sets, K or 1)
    if isinstance(law, Block) and law.shared:
        return np.asarray(law.log_evidence(stats[:, 0][index]).sum(axis=-1))
    return np.asarray(law.log_evidence(stats)[index, np.arange(K)].sum(axis=-1))
