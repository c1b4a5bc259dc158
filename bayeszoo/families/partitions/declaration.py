"""The PyMC density of rows summed over all trees of cuts: in PyTensor operations, and by compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.families.partitions.sums import TreeSums
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.loops import partitions as loops
from bayeszoo.likelihoods.ops.partitions import partition_log_likelihood


def summed(sums: TreeSums, sigma2: pt.TensorVariable) -> pt.TensorVariable:
    """Return the log density of the rows, summed over boxes from the deepest upwards."""
    moments, splits, prior = sums.moments, sums.boxes.splits, sums.prior
    n, scatter = pm.Data("rows", moments.n), pm.Data("scatter", moments.scatter)
    squares = pm.Data("squares", moments.n * np.square(moments.less(prior.mean)))
    total = sigma2 + n * np.float64(prior.sd**2)
    constant = n * np.float64(LOG_2_PI) + (n - np.float64(1)) * pt.log(sigma2) + pt.log(total)
    leaf = -np.float64(0.5) * (constant + scatter / sigma2 + squares / total)
    if not sums.boxes.depth or not len(splits.parents):
        return leaf[0]
    left, right, share = (pm.Data(name, values) for name, values in _padded(sums).items())
    log_cuts = zip(("stop", "split"), prior.log_cut(sums.boxes.depth), strict=True)
    stop, split = (pm.Data(name, values) for name, values in log_cuts)
    below = leaf
    for d in range(sums.boxes.depth - 1, -1, -1):
        parents = slice(int(splits.begin[d]), int(splits.end[d]))
        boxes = splits.parents[parents]
        cut = pt.logsumexp(below[left[parents]] + below[right[parents]] + share[parents], axis=1)
        below = pt.set_subtensor(leaf[boxes], pt.logaddexp(stop[d] + leaf[boxes], split[d] + cut))
    return below[0]


def _padded(sums: TreeSums) -> dict[str, np.ndarray]:
    """Return the cuts of each box as rows of equal length, (B, most), padded by cuts of probability 0."""
    splits = sums.boxes.splits
    counts = np.diff(splits.first)
    steps = np.arange(splits.first[-1]) - np.repeat(splits.first[:-1], counts)
    entries = np.repeat(np.arange(len(counts)), counts), steps
    shape = (len(counts), int(counts.max()))
    left, right, share = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -np.inf)
    left[entries], right[entries], share[entries] = splits.left, splits.right, splits.log_share
    return {"left": left, "right": right, "share": share}


def compiled(sums: TreeSums, sigma2: pt.TensorVariable) -> pt.TensorVariable:
    """Return the same log density by one operation with its gradient."""
    moments, prior = sums.moments, sums.prior
    deviation, spread = moments.less(prior.mean), np.float64(prior.sd**2)
    rows = loops.RowsOfBoxes(moments.n, moments.scatter, deviation, spread)
    arrays: dict[str, Any] = {**rows._asdict(), **sums.trees._asdict()}
    return partition_log_likelihood(sigma2, *(pm.Data(name, values) for name, values in arrays.items()))
