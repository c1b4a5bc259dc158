"""Coordinates about a point of a Gaussian mixture, in which the likelihood has about the same curvature everywhere.

They are the parameters in units of their standard errors if the components of the rows were known: a step along the
slope is then close to an EM step, and quasi-Newton steps need to learn only the effect of unknown components.
Jamshidian and Jennrich 1993.
"""

from __future__ import annotations

import numpy as np

from bayeszoo.distributions.statistics.base import along
from bayeszoo.families.mixtures.gaussian_components import GaussianComponents
from bayeszoo.foundation.named import Params


class MixtureChart:
    """Coordinates of weights, means and factors of covariances, with the point at 0.

    ``counts`` (K,) and ``target``, a `GaussianComponents.target`, define the objective of the M-step at the point.
    """

    def __init__(
        self, components: GaussianComponents, params: Params, counts: np.ndarray, target: GaussianComponents
    ) -> None:
        self._components, self._weights, self._means = components, params["weights"], params["means"]
        self._factor, b = components.factors(params["covariances"]), components.structure.block
        self._triangle, self._diagonal = np.tril_indices(b), np.arange(b)
        power = np.broadcast_to(np.reshape(target.nu, (-1, 1, 1, 1)), self._factor.shape)
        of_factors = 1 / np.sqrt(power * (1 + np.eye(b)))
        of_means = np.broadcast_to(1 / np.sqrt(target.kappa)[:, None], self._means.shape)
        of_weights = 1 / np.sqrt(np.maximum(counts, 1.0))
        self._units = np.concatenate([of_weights, of_means.ravel(), of_factors[..., *self._triangle].ravel()])
        self.size = len(self._units)

    def _parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return steps of log weights (K,), of means (K, D) in units of the factors, and matrices of the factors."""
        log_weights, shifts, packed = np.split(x * self._units, np.cumsum([len(self._weights), self._means.size]))
        turn = np.zeros_like(self._factor)
        turn[..., *self._triangle] = packed.reshape(*turn.shape[:2], -1)
        turn[..., self._diagonal, self._diagonal] = np.exp(turn[..., self._diagonal, self._diagonal])
        return log_weights, shifts.reshape(self._means.shape), turn

    def params(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parameters at coordinates."""
        log_weights, shifts, turn = self._parts(x)
        weights = self._weights * np.exp(log_weights - log_weights.max())
        components, factor = self._components, self._factor @ turn
        covariances = components.structure.covariance(factor)
        return {
            "weights": weights / weights.sum(),
            "means": self._means + components.structure.coloured(self._factor, shifts),
            "covariances": covariances[0] if components.tied else covariances,
        }

    def slope(self, x: np.ndarray, params: Params, counts: np.ndarray, target: GaussianComponents) -> np.ndarray:
        """Return the gradient of the objective at coordinates, equal to that of the M-step's objective (Fisher)."""
        structure, turn = self._components.structure, self._parts(x)[2]
        back, white = np.linalg.inv(turn), np.linalg.inv(self._factor @ turn)
        shift = target.m - params["means"]
        spread = along(target.kappa, structure.outer(shift)) * structure.outer(shift)
        scatter = target.psi + (spread.sum(axis=0) if self._components.tied else spread)
        balance = np.reshape(target.nu, (-1, 1, 1, 1)) * np.eye(len(self._diagonal))
        pull = structure.coloured(back.mT @ white, target.kappa[:, None] * shift)
        of_factors = back.mT @ (structure.whitened(white, scatter) - balance)
        of_factors[..., self._diagonal, self._diagonal] *= turn[..., self._diagonal, self._diagonal]
        of_weights = counts - counts.sum() * params["weights"]
        return np.concatenate([of_weights, pull.ravel(), of_factors[..., *self._triangle].ravel()]) * self._units
