"""Models whose rows may lie in many files: E-step results of the files add up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from bayeszoo.model.base import Model


class Additive(Model, family=True):
    """Expected statistics of parts of the rows add up: E-steps run where the rows are, and the M-step uses the sum.

    A sequence lies in one part. Row parameters, such as a document's proportions, are kept
    with the shared parameters, in the order of the rows.
    """

    @abstractmethod
    def pooled(self, stats: Any, other: Any) -> Any:
        """Return the expected statistics of two parts together, from E-steps at the same parameters or q(theta).

        Statistics of single rows are concatenated.
        """

    def of_rows(self, at: object, change: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Return parameters or q(theta) ``at``, with ``change`` applied to row parameters (..., rows, numbers).

        By default there are no row parameters.
        """
        return at
