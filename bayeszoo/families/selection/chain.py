"""Variable selection in linear regression: a Markov chain over subsets of terms."""

from __future__ import annotations

import lazy_loader
import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.families.selection.subsets import Selection, share_given

loops = lazy_loader.load("bayeszoo.likelihoods.loops.selection", suppress_warning=True)

MAX_ROUNDING = 1e-3
"""Largest rounding error of a chain's log density, in nats: far less than its draws can show."""


class SelectionChain:
    """Gibbs sampling of the inclusion of terms, weights and noise integrated out (George and McCulloch 1997).

    A sweep draws the inclusion of each term given all others, and proposes to exchange each included term with an
    excluded one: among nearly equivalent terms, single changes would hardly ever replace one by another.
    """

    def __init__(
        self,
        selection: Selection,
        units: np.ndarray,
        origin: np.ndarray,
        share: tuple[float, float] | None,
        rng: np.random.Generator,
    ) -> None:
        self._selection, self._units, self._origin, self._share, self._rng = selection, units, origin, share, rng
        columns, outcome = selection.triangle[:, :-1], selection.triangle[:, -1]
        prior_rows, total = selection.inverse_root, float(outcome @ outcome)
        left = 2 * selection.b0 + selection.triangle[-1, -1] ** 2
        rounding = (
            len(prior_rows) * np.finfo(np.float64).eps * (selection.condition**2 + selection.shape * total / left)
        )
        if not rounding <= MAX_ROUNDING:
            raise NumericalError(
                "rounding decides: terms nearly depend on each other under so wide a prior; narrow V0", "rounding"
            )
        self._numbers = columns.T @ columns, prior_rows.T @ prior_rows, columns.T @ outcome, total
        self._scalars = selection.fixed, selection.shape, selection.b0
        self._members = np.ones(len(prior_rows), dtype=bool)
        if np.isfinite(selection.log_prior).all():  # else all terms are included
            probability = min(0.5, 10 / max(selection.choices, 1))
            self._members[selection.fixed :] = rng.random(selection.choices) < probability

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw the inclusion of each term given all others, in N sweeps, from probabilities raised to a power."""
        for _ in range(times):
            loops.sweep(self._members, *self._numbers, *self._scalars, self._selection.log_prior, power, self._rng)

    @property
    def members(self) -> np.ndarray:
        """The inclusion of each term, shape (F,)."""
        return self._members[self._selection.fixed :].copy()

    def draw(self) -> dict[str, np.ndarray]:
        """Draw weights and noise variance given the included terms, and the share of terms ``pi`` if unknown."""
        (w,), (sigma2,) = self._selection.draw(self.members, 1, self._rng, self._units, self._origin)
        if self._share is None:
            return {"w": w, "sigma2": sigma2}
        share = share_given(*self._share, w, self._selection.fixed)
        return {"w": w, "sigma2": sigma2, "pi": share.rvs((), self._rng)}

    @property
    def log_joint(self) -> float:
        """Log p(y, subset) of the ordered rows, with every constant."""
        return float(self._selection.log_joint(self._selection.columns(self.members)[None])[0])
