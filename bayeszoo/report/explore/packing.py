"""Arrays as text in a page of HTML."""

from __future__ import annotations

import base64

import numpy as np


def base64_of(values: np.ndarray) -> str:
    """Return the bytes of an array, in its own type and C order, as base64."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def packed(shares: np.ndarray) -> str:
    """Return numbers between 0 and 1 as bytes, to 1/255, in base64."""
    return base64_of(np.round(255 * shares).astype(np.uint8))
