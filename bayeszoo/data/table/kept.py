"""Notes on rows that were left out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class Kept(str):
    """A note on rows that were left out, and the numbers of the rows kept, from 1."""

    kept: np.ndarray | None = None


def rows_kept(notes: Iterable[str]) -> np.ndarray | None:
    """Return the numbers of the rows kept, from 1, if a note says that others were left out."""
    return next((note.kept for note in notes if isinstance(note, Kept)), None)
