"""Words of each document held out at random."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayeszoo.errors import InputError

CELLS = ("counts", "doc", "term")
"""Arrays of a corpus that have an entry for each document and word."""


def split_words(data: Mapping[str, np.ndarray], share: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Hold out a share of the words of each document, chosen at random; every document keeps one word.

    Parameters
    ----------
    data : mapping of str to ndarray
        Canonical arrays of `Corpus`.
    share : float
        Between 0 and 1.
    rng : numpy.random.Generator

    Returns
    -------
    dict, dict
        The words that are kept and those that are held out, both of all documents and words.
    """
    if not 0 < share < 1:
        raise InputError(f"share must be between 0 and 1, got {share!r}")
    out = np.zeros_like(data["counts"])
    bounds = np.searchsorted(data["doc"], np.arange(len(data["document"]) + 1))
    for first, last in itertools.pairwise(bounds):
        counts = data["counts"][first:last]
        if (total := int(counts.sum())) > 1:
            some = min(max(round(share * total), 1), total - 1)
            out[first:last] = rng.multivariate_hypergeometric(counts, some, method="marginals")
    return tuple(_with_counts(data, counts) for counts in (data["counts"] - out, out))  # type: ignore[return-value]


def _with_counts(data: Mapping[str, np.ndarray], counts: np.ndarray) -> dict[str, np.ndarray]:
    cells = {name: values[counts > 0] for name, values in {**data, "counts": counts}.items() if name in CELLS}
    return {**cells, **{name: data[name] for name in data if name not in CELLS}}
