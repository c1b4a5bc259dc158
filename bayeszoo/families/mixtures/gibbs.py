"""Gibbs sampling of a mixture: components of the rows given the parameters, and parameters given the components.

Given the components, the posterior of the parameters is a product of conjugate blocks, which is drawn from exactly
(Diebolt and Robert 1994, JRSS B 56, 363-375). For tables of levels, a row is removed by its counts: the chain is then
collapsed, each component drawn given those of all other rows with the parameters integrated out (Liu 1994).
"""

from __future__ import annotations

import threading

import lazy_loader
import numpy as np

from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import Several
from bayeszoo.distributions.conjugate.tables import Tables
from bayeszoo.foundation.named import Arrays
from bayeszoo.foundation.numerics.constants import TINY

loops = lazy_loader.load("bayeszoo.likelihoods.loops.tables", suppress_warning=True)

IN_TURN = threading.Lock()
"""Threads sweep in turn: short NumPy calls that compete for the interpreter take up to twice as long."""


class MixtureChain:
    """Gibbs sampling of the parameters of a mixture of ``rows``, from a draw of ``start`` on.

    It is not annealed: with flattened likelihoods, a mode with little mass may be the largest. With three components
    for the galaxies' velocities, annealed chains end in a mode with e**-10 of the mass of the largest.
    """

    def __init__(self, prior: MixturePrior, rows: Arrays, start: MixturePrior, rng: np.random.Generator) -> None:
        self._prior, self._rows, self._rng = prior, rows, rng
        self._params = self._drawn(start)
        self._turn()

    def _drawn(self, posterior: MixturePrior) -> dict[str, np.ndarray]:
        drawn = posterior.rvs((), self._rng)
        return {name: np.where(values == 0, TINY, values) for name, values in drawn.items()}

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw components and parameters, in N sweeps; the power is ignored."""
        for _ in range(times):
            with IN_TURN:
                self._turn()

    def _turn(self) -> None:
        """Draw components, by the largest log probability with Gumbel noise, and then parameters."""
        terms = self._prior.log_terms(self._params, self._rows)
        self._component = np.argmax(terms + self._rng.gumbel(size=terms.shape), axis=1)
        self._draw_parameters()

    def _draw_parameters(self) -> None:
        """Draw the parameters given the components, whose statistics are kept."""
        self._stats = self._counted()
        self._params = self._drawn(self._prior.updated(self._stats))

    def _counted(self) -> Several:
        """Return the statistics of the rows and their components."""
        r = np.eye(len(self._prior.weights.alpha))[self._component]
        return self._prior.moments(r, self._rows).stats

    def draw(self) -> dict[str, np.ndarray]:
        """Return the parameters."""
        return self._params

    @property
    def log_joint(self) -> float:
        """Log p(y, theta) minus log p(theta | y, z), which equals log p(y, z) minus log p(z | y, theta).

        Its mean about a mode is the log of the mode's mass minus the information of z about theta. The log density of
        the parameters alone depends on their units, and does not compare modes.
        """
        with IN_TURN:
            terms = self._prior.log_terms(self._params, self._rows)
            chosen = np.take_along_axis(terms, self._component[:, None], axis=1)[:, 0]
            return float(self._prior.log_evidence(self._stats) - np.sum(chosen - np.logaddexp.reduce(terms, axis=1)))


class CollapsedChain(MixtureChain):
    """Collapsed Gibbs sampling of a mixture of rows of levels; parameters are drawn when a draw is kept."""

    def __init__(self, prior: MixturePrior, rows: Arrays, start: MixturePrior, rng: np.random.Generator) -> None:
        super().__init__(prior, rows, start, rng)
        law: Tables = prior.law
        self._levels = np.ascontiguousarray(rows[law.column], dtype=np.int64)
        self._table = np.empty(law.alpha.shape[-1], dtype=np.int64)
        for j, places in enumerate(law.tables):
            self._table[list(places)] = j
        self._totals = self._by_table(law.alpha)
        of_rows, of_levels = (part.counts.astype(np.float64) for part in self._stats.parts)
        self._counts = of_rows, of_levels, self._by_table(of_levels)

    def _by_table(self, of_levels: np.ndarray) -> np.ndarray:
        """Sum values (K, L) over the levels of each feature, (K, features)."""
        return np.asarray(of_levels @ np.eye(self._levels.shape[1])[self._table])

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw the component of each row given those of all others, in N sweeps in random order, at power 1."""
        priors = self._prior.weights.alpha, self._prior.law.alpha, self._totals
        for _ in range(times):
            order = self._rng.permutation(len(self._levels))
            loops.sweep(self._component, order, self._levels, self._table, *priors, *self._counts, self._rng)

    def draw(self) -> dict[str, np.ndarray]:
        """Draw the parameters given the components."""
        with IN_TURN:
            self._draw_parameters()
        return self._params
