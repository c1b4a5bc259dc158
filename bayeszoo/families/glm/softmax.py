"""The log likelihood of classes of rows given their logits, and whether it has a maximum.

There is no maximum if a direction of the weights lowers no row's log odds of its class against any other class, and
raises at least one: a combination of features then separates classes. Albert and Anderson 1984.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayeszoo.distributions.discrete import LogitCategorical
from bayeszoo.distributions.special import sum_of_others
from bayeszoo.errors import NumericalError
from bayeszoo.families.glm.existence import LEAST, combination, recession
from bayeszoo.families.glm.rows import dependence
from bayeszoo.families.linear.least_squares import Solution, solve
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.numerics.newton import Derivatives, climb
from bayeszoo.model.capabilities.steps import ConcaveLikelihood

NO_ESTIMATE = "no maximum-likelihood estimate"
KEPT_FINITE = "map and nuts have a prior that keeps it finite"


@dataclass(frozen=True, eq=False)
class SoftmaxRows(ConcaveLikelihood):
    """Rows with logits ``offset + design @ u_k`` of class k and weights ``w_k = origin + sd u_k``, u ~ N(0, I).

    ``design`` (n, T) holds the terms times the prior standard deviations of their weights, ``codes`` (n,) the classes
    of the rows. ``first`` is the number of classes without weights: 1 if the first class is the reference, of logit 0.
    """

    design: np.ndarray
    codes: np.ndarray
    classes: list[str]
    first: int
    offset: float
    origin: np.ndarray
    sd: np.ndarray
    terms: list[str]
    intercept: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The number of classes with weights, and the number of terms."""
        return len(self.classes) - self.first, self.design.shape[1]

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of weights, D."""
        return self.shape[0] * self.shape[1]

    @property
    def log_volume(self) -> float:  # type: ignore[override]
        """Log of the product of the prior standard deviations."""
        return self.shape[0] * float(np.sum(np.log(self.sd)))

    def logits(self, u: np.ndarray) -> np.ndarray:
        """Return the logits (..., n, K) at u (..., D)."""
        free = self.offset + np.einsum("nt,...kt->...nk", self.design, self._by_class(u))
        return np.concatenate([np.zeros((*free.shape[:-1], self.first)), free], axis=-1)

    def _by_class(self, u: np.ndarray) -> np.ndarray:
        return np.reshape(u, (*np.shape(u)[:-1], *self.shape))

    def derivatives(self, u: np.ndarray) -> Derivatives:
        """Return the log likelihood at u, its gradient and its curvature, in time linear in the rows."""
        law = LogitCategorical(self.logits(u))
        others, free = sum_of_others(law.p, -1), slice(self.first, None)
        curvature = self._curvature(law.p[:, free], others[:, free])
        slopes = self.slopes(law.p, others)[:, free]
        return Derivatives(float(self.heights(law).sum()), (slopes.T @ self.design).ravel(), curvature)

    def heights(self, law: LogitCategorical) -> np.ndarray:
        """Return the log probability of the class of each row, (..., rows)."""
        return law.logpmf(self.codes)

    def slopes(self, p: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the slope in each logit, (rows, K), from the probability of each class and the sum of all others."""
        return np.where(self.codes[:, None] == np.arange(len(self.classes)), others, -p)

    def _curvature(self, p: np.ndarray, others: np.ndarray) -> np.ndarray:
        count, terms = self.shape
        blocks = np.empty((count, terms, count, terms))
        for k in range(count):
            weighted = self.design * p[:, [k]]
            for j in range(k + 1):
                blocks[k, :, j] = self.design.T @ (weighted * (others[:, [k]] if j == k else -p[:, [j]]))
                blocks[j, :, k] = blocks[k, :, j].T
        return blocks.reshape(self.size, self.size)

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return the log likelihood at points (P, D), in blocks of points."""
        parts = [points[block] for block in blocks(len(points), len(self.codes) * len(self.classes))]
        heights = [self.heights(LogitCategorical(self.logits(part))).sum(axis=-1) for part in parts]
        return np.concatenate([*heights, np.zeros(0)])

    def start(self) -> np.ndarray:
        """Return the prior mean, at which all classes are about equally probable."""
        return np.zeros(self.size)

    def params(self, u: np.ndarray) -> dict[str, np.ndarray]:
        """Return the weights in the user's units at u (..., D)."""
        return {"w": self.origin + self.sd * self._by_class(u)}

    def place(self, params: Mapping[str, object]) -> np.ndarray:
        """Return u at weights (..., rows of w, T)."""
        u = (np.asarray(params["w"]) - self.origin) / self.sd
        return np.reshape(u, (*u.shape[:-2], self.size))

    def gaussian(self) -> Solution:
        """Return the Gaussian with the mode and its curvature, of all weights, flattened by rows, in user's units."""
        mode = climb(self.joint, self.start()).x
        values, vectors = np.linalg.eigh(self.derivatives(mode).curvature)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        standard = solve(root, np.zeros(len(root)), np.zeros(self.size), np.eye(self.size))
        sd, origin = np.tile(self.sd, self.shape[0]), np.tile(self.origin, self.shape[0])
        return replace(standard, mean=mode).in_units(1 / sd, origin)

    def refuse_unbounded(self) -> None:
        """Raise `NumericalError` if classes are separated or without rows, or the maximum is not unique."""
        if not self.first:
            why = "with symmetric coding, weights added to those of every class change nothing"
            raise NumericalError(f"no unique maximum-likelihood estimate: {why}; use coding=reference", "no_maximum")
        if not len(self.codes):
            raise NumericalError(f"{NO_ESTIMATE}: there are no rows", "no_data")
        if why := dependence(self.design):
            raise NumericalError(why, "no_maximum")
        empty = np.flatnonzero(np.bincount(self.codes, minlength=len(self.classes)) == 0)
        if len(empty):
            why = f"no row is of class {self.classes[empty[0]]}, and its weights run to infinity"
            raise NumericalError(f"{NO_ESTIMATE}: {why}; {KEPT_FINITE}", "no_maximum")
        self._refuse_separated()

    def _refuse_separated(self) -> None:
        """Raise `NumericalError` if a linear program finds a combination of terms that separates classes."""
        rows = np.unique(np.column_stack([self.codes, self.design]), axis=0)
        codes, design = rows[:, 0].astype(np.int64), rows[:, 1:]
        classes = np.arange(len(self.classes))
        pairs = np.argwhere(codes[:, None] != classes)
        indicators = np.eye(len(classes))[:, self.first :]
        signs = indicators[codes[pairs[:, 0]]] - indicators[pairs[:, 1]]
        rising = (signs[:, :, None] * design[pairs[:, 0], None, :]).reshape(len(pairs), self.size)
        up = np.ones(len(rising), dtype=bool)
        direction = recession(rising, up, ~up)
        if direction is None:
            return
        moved = np.concatenate([np.zeros((self.first, self.shape[1])), direction.direction.reshape(self.shape)])
        raise NumericalError(f"{NO_ESTIMATE}: {self._apart(moved, codes, design)}; {KEPT_FINITE}", "no_maximum")

    def _apart(self, moved: np.ndarray, codes: np.ndarray, design: np.ndarray) -> str:
        """Name the two classes that a direction (K, T) separates most, the terms, and whether completely."""
        raised = {}
        for a, b in np.argwhere(np.triu(np.ones((len(moved), len(moved))), 1)):
            of_both = np.isin(codes, (a, b))
            margin = np.where(codes[of_both] == a, 1, -1) * (design[of_both] @ (moved[a] - moved[b]))
            raised[a, b] = float(np.mean(margin > LEAST))
        a, b = max(raised, key=raised.__getitem__)
        of_both, slopes = np.isin(codes, (a, b)), slice(int(self.intercept), None)
        alone = recession(design[of_both], codes[of_both] == b, codes[of_both] == a)
        assert alone is not None  # the difference of the two classes' weights is such a direction
        text = combination((alone.direction * self.sd)[slopes], self.terms[slopes])
        fully = "completely" if alone.is_complete else "but for ties"
        return f"{text} separates {self.classes[a]} from {self.classes[b]} {fully}, and its weight runs to infinity"
