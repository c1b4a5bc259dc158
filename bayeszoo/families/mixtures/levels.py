"""Rows of levels of several features with one latent class each: densities, moments, and identification."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from bayeszoo.data.inputs import tables_of
from bayeszoo.distributions.conjugate.tables import Tables
from bayeszoo.families.mixtures.base import MixtureModel
from bayeszoo.families.mixtures.gibbs import CollapsedChain
from bayeszoo.families.statistics.indicators import Indicators, draw_levels
from bayeszoo.foundation.named import Arrays, Coords, Params, RandomState, Statistics
from bayeszoo.model.capabilities import Collapsed, Observable


class LevelMixtureModel(MixtureModel, Collapsed, Observable, family=True):
    """Rows of levels in one component each, with features independent given it; a subclass declares the model.

    Parameters are ``weights`` (K,) and ``theta`` (K, levels), the probabilities of the levels of each feature.
    """

    eta: Any
    gibbs_options: ClassVar[Mapping[str, int]] = {"tune": 500, "thin": 10}  # rows say little of their components
    is_annealed = False

    def component_law(self, data: Arrays) -> Tables:
        """Return the law of the levels of a row in each component, with a Dirichlet prior of each feature."""
        eta = self.entries("eta", (self.K, len(data["level"])))
        return Tables(("theta",), self.inputs.name, eta, tables_of(data))

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> CollapsedChain:
        """Return a chain over the components of the rows, with a start of variational Bayes."""
        return CollapsedChain(self.prior(data), data, self.vb_start(data, rng).q, rng)

    def coords(self, data: Arrays) -> Coords:
        """Return the levels, and the numbers of the components."""
        return {"level": data["level"], "component": np.arange(1, self.K + 1)}

    def unbounded(self, data: Arrays) -> str:
        """Return the reason why the posterior density has no maximum; empty if it has one."""
        of_levels = "eta < 1: it grows without bound as the probability of a level goes to 0"
        return of_levels if (why := super().unbounded(data)) and np.min(self.eta) < 1 <= self.alpha else why

    def undetermined(self, params: Params, data: Any, stats: Statistics, flat: bool) -> str:
        """Say that the likelihood has more parameters than the table of all features has free cells."""
        cells = math.prod(len(places) for places in tables_of(data)) - 1
        free = self.free_parameters(data)
        if not flat or free <= cells:
            return ""
        return f"the likelihood has {free} free parameters, and the table of the features has {cells} free cells"

    def likelihood(self, params: Params, data: Arrays) -> LevelRows:
        """Return the law of the levels of each row; parameters may carry leading axes of draws."""
        return LevelRows(params["weights"], params["theta"], tables_of(data), self.inputs.size(data))


class LevelRows(Indicators):
    """Levels of rows, each in one unknown component; moments are those of the levels' indicators.

    Weights (..., K) and probabilities (..., K, L) may have leading axes of draws; rows are places (rows, features).
    """

    def __init__(self, weights: npt.ArrayLike, theta: npt.ArrayLike, tables: Any, rows: int) -> None:
        self._weights, self._theta = np.asarray(weights, dtype=np.float64), np.asarray(theta, dtype=np.float64)
        self._tables, self._rows = tables, rows

    @property
    def levels(self) -> Sequence[Sequence[int]]:
        """The places of the levels of each feature."""
        return cast("Sequence[Sequence[int]]", self._tables)

    def mean(self) -> np.ndarray:
        """Return the probability of each level, (..., rows, L)."""
        p = np.sum(self._weights[..., None] * self._theta, axis=-2)
        return np.repeat(p[..., None, :], self._rows, axis=-2)

    def logpmf(self, levels: npt.ArrayLike) -> np.ndarray:
        """Log probability of the levels of each row, (..., rows); a missing level, -1, is left out."""
        law = Tables(("theta",), "levels", np.ones(self._theta.shape[-2:]), self._tables)
        with np.errstate(divide="ignore"):  # of a weight of 0
            log_weights = np.log(self._weights)[..., None, :]
        terms = log_weights + law.log_density({"theta": self._theta}, {"levels": np.asarray(levels)})
        return np.asarray(np.logaddexp.reduce(terms, axis=-1))

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw indicators of shape ``size``, which ends in (rows, L): 1 at the level of each feature."""
        rng = np.random.default_rng(random_state)
        component = draw_levels(
            np.broadcast_to(self._weights[..., None, :], (*size[:-1], self._weights.shape[-1])), rng
        )
        theta = np.broadcast_to(self._theta[..., None, :, :], (*size[:-1], *self._theta.shape[-2:]))
        p, drawn = np.take_along_axis(theta, component[..., None, None], axis=-2)[..., 0, :], np.zeros(size)
        for places in map(list, self._tables):
            level = draw_levels(p[..., places], rng)
            drawn[..., places] = level[..., None] == np.arange(len(places))
        return drawn
