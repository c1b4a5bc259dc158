"""Streams of random numbers, one for each seed and purpose."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

DIGITS = 12
"""Significant digits of fields that distinguish streams: rounding on another processor must not."""


def stream(seed: int | np.random.Generator, *identity: object) -> np.random.Generator:
    """Return the random generator of a seed for one purpose, independent of those for other purposes.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        A generator is returned as it is: it is already a stream.
    *identity : str, number, list, tuple or mapping
        The purpose of the numbers: the model's name and fields, the digest of the data, the method or the question.

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
    """Return the random generator of a seed for a question to a fit, independent of other questions and fits."""
    fitted = [attrs.get(name) for name in ("model", "data_digest", "method", "seed")]
    return stream(seed, fitted, json.loads(attrs.get("fields", "{}")), *purpose)


def _plain(part: object) -> Any:
    """Write numbers as text of `DIGITS` digits, also in lists and in mappings, with sorted keys."""
    if isinstance(part, Mapping):
        return {str(name): _plain(part[name]) for name in sorted(part)}
    if isinstance(part, list | tuple | np.ndarray):
        return [_plain(item) for item in part]
    return f"{part:.{DIGITS}g}" if isinstance(part, float) else part if isinstance(part, str) else str(part)
