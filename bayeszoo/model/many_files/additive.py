"""Models whose rows may lie in many files: what E-steps of the files give adds up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from bayeszoo.model.base import Model


class Additive(Model, family=True):
    """Expected statistics of parts of the rows add up: E-steps go where the rows are, and the M-step is of their sum.

    Of sequences all rows of one are in one part. What each row has of its own, as a document has proportions, is held
    with what all rows share, in the order of the rows.
    """

    @abstractmethod
    def pooled(self, stats: Any, other: Any) -> Any:
        """Return the expected statistics of both parts, of E-steps at the same parameters or q(theta).

        Those of single rows are put behind each other.
        """

    def of_rows(self, at: object, change: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Return parameters or q(theta), with ``change`` made to what each row has of its own, (..., rows, numbers).

        By default rows have nothing of their own.
        """
        return at
