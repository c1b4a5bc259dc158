"""The log likelihood of rows with eps-insensitive noise, in units of the prior, and its highest point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from bayeszoo.families.glm.rows import LinkedRows
from bayeszoo.families.support_vectors.mode import LIMIT, Tube, flat_mode, mode
from bayeszoo.families.support_vectors.noise import Insensitive
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.numerics.newton import Derivatives, Peak


@dataclass(frozen=True, eq=False)
class Corner(Peak):
    """A maximum at a corner, where no gradient is 0 but the conditions of Karush, Kuhn and Tucker hold.

    The gradient is the slope nearest to 0 among those at the corner, the curvature its expectation.
    """

    violation: float

    def certificate(self) -> list[Check]:
        """Check the conditions of a maximum, which are sufficient for a log-concave density."""
        return [at_most("kkt_violation_sd", self.violation, LIMIT)]


@dataclass(frozen=True, eq=False)
class InsensitiveRows(LinkedRows):
    """Rows whose outcomes have eps-insensitive noise about their linear predictor."""

    has_corners: ClassVar[bool] = True

    def tube(self, flat: bool = False) -> Tube:
        """Return the objective to minimize: minus the log joint density, or with ``flat`` minus the log likelihood."""
        noise = cast(Insensitive, self.link)
        information = noise.information(self.outcome)
        curvature = self.design.T @ (self.design * information[:, None]) + (not flat) * np.eye(self.size)
        return Tube(self.design, self.outcome - self.offset, noise.eps, noise.rate, curvature, has_prior=not flat)

    def highest(self, flat: bool = False) -> Corner:
        """Return the mode, or with ``flat`` the maximum of the likelihood."""
        tube = self.tube(flat)
        u = flat_mode(tube) if flat else mode(tube)
        value = (self.derivatives(u) if flat else self.joint(u)).value
        derivatives = Derivatives(value, tube.least_slope(u), tube.curvature)
        method = "linear program" if flat else "active set of corners"
        return Corner(u, derivatives, np.array([value]), method=method, violation=tube.violation(u))
