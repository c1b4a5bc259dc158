"""Streams of random numbers: one for each seed and each thing that is drawn with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

DIGITS = 12
"""Significant digits of a field that tell streams apart: rounding on another processor does not."""


def stream(seed: int | np.random.Generator, *identity: object) -> np.random.Generator:
    """Return the random numbers of a seed for one purpose: independent of those of the same seed for any other.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        A generator is returned as it is: it is already a stream.
    *identity : str, number, list, tuple or mapping
        What the numbers are drawn for: the model's name and fields, the digest of the data, the method or the purpose.

    Returns
    -------
    numpy.random.Generator
        The same in every process: seeded with the seed and the SHA-256 of ``identity``.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    digest = hashlib.sha256(json.dumps([_plain(part) for part in identity]).encode()).digest()
    return np.random.default_rng(np.random.SeedSequence([seed, *np.frombuffer(digest, dtype="<u4").tolist()]))


def stream_of_fit(attrs: Mapping[Any, Any], seed: int | np.random.Generator, *purpose: Any) -> np.random.Generator:
    """Return the random numbers of a seed for a question to a fit, as another question or fit has others."""
    fitted = [attrs.get(name) for name in ("model", "data_digest", "method", "seed")]
    return stream(seed, fitted, json.loads(attrs.get("fields", "{}")), *purpose)


def _plain(part: object) -> Any:
    """Write numbers as text of `DIGITS` digits, in lists and mappings too, whose order of keys means nothing."""
    if isinstance(part, Mapping):
        return {str(name): _plain(part[name]) for name in sorted(part)}
    if isinstance(part, list | tuple | np.ndarray):
        return [_plain(item) for item in part]
    return f"{part:.{DIGITS}g}" if isinstance(part, float) else part if isinstance(part, str) else str(part)
