"""Types that the steps of a model take and return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.foundation.named import Arrays, Params, Simulated

if TYPE_CHECKING:
    import pymc as pm

type DeclaredModel = pm.Model
"""A joint density as PyMC has it."""

__all__ = ["Arrays", "DeclaredModel", "Params", "RowLaw", "Simulated"]
