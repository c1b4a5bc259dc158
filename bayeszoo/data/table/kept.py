"""Notes on rows that were left out."""

from __future__ import annotations

import numpy as np


class Kept(str):
    """A note on rows that were left out, and the numbers of the rows kept, from 1."""

    kept: np.ndarray | None = None
