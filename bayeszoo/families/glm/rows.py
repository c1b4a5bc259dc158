"""The log likelihood of the rows of a regression with a link, in units of the prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.families.glm.existence import combination, recession
from bayeszoo.families.glm.links import Link
from bayeszoo.families.linear.least_squares import Solution, solve
from bayeszoo.families.statistics.factored import triangular
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.numerics.newton import Derivatives
from bayeszoo.model.capabilities.steps import ConcaveLikelihood

DEPENDENT = 1e-12
"""Smallest eigenvalue of the cross products of independent columns, scaled to length 1."""


@dataclass(frozen=True, eq=False)
class LinkedRows(ConcaveLikelihood):
    """Rows whose linear predictor is ``offset + design @ u``, with weights ``w = origin + sd u`` and u ~ N(0, I).

    ``design`` (n, T) holds the terms times the prior standard deviations of their weights, ``outcome`` and ``sizes``
    (n,) are those of `Link`, ``terms`` the names of the columns, the intercept first if there is one, and ``name`` is
    the parameter of the weights.
    """

    link: Link
    design: np.ndarray
    outcome: np.ndarray
    sizes: np.ndarray
    offset: float
    origin: np.ndarray
    sd: np.ndarray
    terms: list[str]
    intercept: bool
    name: str = "w"

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of weights, T."""
        return self.design.shape[1]

    @cached_property
    def log_volume(self) -> float:  # type: ignore[override]
        """Log of the product of the prior standard deviations."""
        return float(np.sum(np.log(self.sd)))

    def eta(self, u: np.ndarray) -> np.ndarray:
        """Return the linear predictor of each row."""
        return np.asarray(self.offset + self.design @ u)

    def derivatives(self, u: np.ndarray) -> Derivatives:
        """Return the log likelihood at u, its gradient and its curvature, in time linear in the rows."""
        with np.errstate(over="ignore", invalid="ignore"):  # the density may underflow to 0
            value, slope, curvature = self.link.terms(self.eta(u), self.outcome, self.sizes)
            root = self.design * np.sqrt(curvature)[:, None]
            return Derivatives(float(value.sum()), self.design.T @ slope, root.T @ root)

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return the log likelihood at points (P, T), in blocks of points."""
        parts = [points[block] for block in blocks(len(points), len(self.outcome))]
        with np.errstate(over="ignore"):
            heights = [
                self.link.log_density(self.offset + part @ self.design.T, self.outcome, self.sizes).sum(axis=-1)
                for part in parts
            ]
        return np.concatenate([*heights, np.zeros(0)])

    def start(self) -> np.ndarray:
        """Return the ridge estimate from predictors estimated row by row, or u = 0 if that is higher."""
        aim = self.link.start(self.outcome, self.sizes) - self.offset
        weight = self.link.terms(aim + self.offset, self.outcome, self.sizes).curvature
        root = self.design * np.sqrt(weight)[:, None]
        products = root.T @ root + np.eye(self.size)
        u = scipy.linalg.solve(products, self.design.T @ (weight * aim), assume_a="pos")
        ridge, origin = self.joint_values(np.array([u, 0 * u]))
        return u if ridge > origin else 0 * u

    def params(self, u: np.ndarray) -> dict[str, np.ndarray]:
        """Return the weights in the user's units at u (..., T)."""
        return {self.name: self.origin + self.sd * u}

    def place(self, params: Mapping[str, object]) -> np.ndarray:
        """Return u at weights (..., T)."""
        return np.asarray((np.asarray(params[self.name]) - self.origin) / self.sd)

    def gaussian_about(self, mode: np.ndarray) -> Solution:
        """Return the Gaussian with a mode and its curvature, of weights in the user's units."""
        return self.gaussian_of(mode, self.link.terms(self.eta(mode), self.outcome, self.sizes).curvature)

    def gaussian_of(self, mean: np.ndarray, precision: np.ndarray) -> Solution:
        """Return the Gaussian with a mean and the precision of each row's predictor, in the user's units."""
        root = triangular(self.design * np.sqrt(precision)[:, None])
        gaussian = solve(root, np.zeros(len(root)), np.zeros(self.size), np.eye(self.size))
        return replace(gaussian, mean=mean).in_units(1 / self.sd, self.origin)

    def refuse_unbounded(self) -> None:
        """Raise `NumericalError` if a combination of terms separates the outcomes, or the columns are dependent."""
        if not len(self.outcome):
            raise NumericalError("no maximum-likelihood estimate: there are no rows", "no_data")
        if why := dependence(self.design):
            raise NumericalError(why, "no_maximum")
        up, down = self.link.recedes(self.outcome, self.sizes)
        direction = recession(self.design, up, down)
        if direction is None:
            return
        along = direction.direction * self.sd
        slopes = slice(int(self.intercept), None)
        moved = along[slopes]
        if not np.max(np.abs(moved), initial=0.0) > 1e-9 * np.max(np.abs(along)):
            why = self.link.alike
        else:
            fully = (" completely" if direction.is_complete else " but for ties") if up.any() else ""
            why = f"{combination(moved, self.terms[slopes])} {self.link.apart}{fully}, and its weight runs to infinity"
        raise NumericalError(
            f"no maximum-likelihood estimate: {why}; map and nuts have a prior that keeps it finite", "no_maximum"
        )


def dependence(design: np.ndarray) -> str:
    """Say that the columns of a design (n, T) are dependent, so that the maximum is not unique; empty if not."""
    size = np.sqrt(np.sum(np.square(design), axis=0))
    scaled = design / np.where(size > 0, size, 1.0)
    rank = int(np.sum(np.linalg.eigvalsh(scaled.T @ scaled) > DEPENDENT))
    if rank == design.shape[1]:
        return ""
    counted = f"the data identify {rank} of {design.shape[1]} combinations of weights"
    return f"no unique maximum-likelihood estimate: {counted}; bz.identified names them"
