"""Models whose rows may lie in many files: what E-steps of the files give adds up."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from bayeszoo.model.base import Model


class Additive(Model, family=True):
    """Expected statistics of parts of the rows add up: E-steps go where the rows are, and the M-step is of their sum.

    Rows share their parameters, or of sequences all rows of one are in one part.
    """

    @abstractmethod
    def pooled(self, stats: Any, other: Any) -> Any:
        """Return the expected statistics of both parts, of E-steps at the same parameters or q(theta)."""
