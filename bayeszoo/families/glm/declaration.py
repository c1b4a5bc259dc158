"""Pieces of the PyMC declarations of regressions with a link: laws of outcomes that are accurate at any predictor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy

from bayeszoo.families.linear.declaration import Whitened, as_data
from bayeszoo.foundation.numerics.constants import LOG_2_PI


def BinomialByLogOdds(
    name: str, trials: pt.TensorVariable, log_odds: pt.TensorVariable, observed: pt.TensorVariable
) -> pt.TensorVariable:
    """Declare successes in trials, one entry per row; ``pm.Binomial`` gives density 0 when probabilities round to 1."""

    def log_mass(value: pt.TensorVariable, trials: pt.TensorVariable, log_odds: pt.TensorVariable) -> pt.TensorVariable:
        orders = pt.gammaln(trials + 1.0) - pt.gammaln(value + 1.0) - pt.gammaln(trials - value + 1.0)
        return orders + value * log_odds - trials * pt.softplus(log_odds)

    def draw(trials: Any, log_odds: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        return rng.binomial(trials.astype(np.int64), scipy.special.expit(log_odds), size)

    return pm.CustomDist(
        name, trials, log_odds, logp=log_mass, random=draw, observed=observed, dims="row", dtype="int64"
    )


def PoissonByLogMean(
    name: str, exposure: pt.TensorVariable, log_rate: pt.TensorVariable, observed: pt.TensorVariable
) -> pt.TensorVariable:
    """Declare counts with exposures, one entry per row; ``pm.Poisson`` gives density 0 once a mean rounds to 0."""

    def log_mass(
        value: pt.TensorVariable, exposure: pt.TensorVariable, log_rate: pt.TensorVariable
    ) -> pt.TensorVariable:
        log_mean = log_rate + pt.log(exposure)
        return value * log_mean - pt.exp(log_mean) - pt.gammaln(value + np.float64(1.0))

    def draw(exposure: Any, log_rate: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        return rng.poisson(exposure * np.exp(log_rate), size)

    return pm.CustomDist(
        name, exposure, log_rate, logp=log_mass, random=draw, observed=observed, dims="row", dtype="int64"
    )


def NegativeBinomialByLogMean(
    name: str, log_mean: pt.TensorVariable, phi: pt.TensorVariable, observed: pt.TensorVariable
) -> pt.TensorVariable:
    """Declare counts of variance mean + mean^2 / phi, one entry per row, for means of any size."""

    def log_mass(value: pt.TensorVariable, log_mean: pt.TensorVariable, phi: pt.TensorVariable) -> pt.TensorVariable:
        share = log_mean - pt.log(phi)
        orders = pt.gammaln(value + phi) - pt.gammaln(phi) - pt.gammaln(value + np.float64(1.0))
        return orders - phi * pt.softplus(share) - value * pt.softplus(-share)

    def draw(log_mean: Any, phi: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        return rng.poisson(rng.gamma(phi, np.exp(log_mean) / phi, size))

    return pm.CustomDist(name, log_mean, phi, logp=log_mass, random=draw, observed=observed, dims="row", dtype="int64")


def log_odds_of_probit(eta: pt.TensorVariable) -> pt.TensorVariable:
    """Return the log odds of a success of probability Phi(eta); its gradient is finite at any eta."""
    return _log_normal_cdf(eta) - _log_normal_cdf(-eta)


def _log_normal_cdf(eta: object) -> pt.TensorVariable:
    """Return log Phi(eta); both branches of the switch are finite at any eta, as PyTensor differentiates both."""
    below, above = pt.minimum(eta, np.float64(0.0)), pt.maximum(eta, np.float64(0.0))
    root = np.float64(math.sqrt(2))
    low = pt.log(pt.erfcx(-below / root) / np.float64(2.0)) - pt.sqr(below) / np.float64(2.0)
    return pt.switch(pt.lt(eta, 0), low, pt.log1p(-pt.erfc(above / root) / np.float64(2.0)))


class WhitenedRows(Whitened):
    """Coordinates of a matrix, flattened by rows, in which the Gaussian of a solution is standard normal."""

    def forward(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Map the matrix to its coordinates, of the same shape."""
        return pt.reshape(super().forward(pt.flatten(value), *inputs), value.shape)

    def backward(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Map coordinates to the matrix."""
        return pt.reshape(super().backward(pt.flatten(value), *inputs), value.shape)

    def log_jac_det(self, value: pt.TensorVariable, *inputs: pt.TensorVariable) -> pt.TensorVariable:
        """Return the log determinant of the map, for all rows together."""
        return super().log_jac_det(pt.flatten(value), *inputs)


def GaussianRows(name: str, mean: np.ndarray, sd: np.ndarray, whitened: WhitenedRows, dims: tuple[str, ...]) -> Any:
    """Declare independent Gaussian entries of a matrix in whitened coordinates; chains begin at their centre."""

    def log_density(value: Any, mean: Any, sd: Any, *coordinates: Any) -> Any:
        constant = np.float64(LOG_2_PI / 2)
        return -pt.sum(constant + pt.log(sd) + pt.sqr((value - mean) / sd) / np.float64(2.0))

    def draw(mean: Any, sd: Any, *coordinates: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        return rng.normal(mean, sd, (*(size or ()), *np.shape(mean)))

    keys = (f"{name}_whitened_{key}" for key in ("centre", "matrix", "inverse", "log_det"))
    values = {f"{name}_mean": mean, f"{name}_sd": sd, **dict(zip(keys, whitened.numbers, strict=True))}
    return pm.CustomDist(
        name,
        *as_data(**values),
        logp=log_density,
        random=draw,
        signature="(r,t),(r,t),(d),(d,d),(d,d),()->(r,t)",
        transform=whitened.from_inputs(),
        support_point=lambda rv, size, mean, sd, centre, *matrices: pt.reshape(centre, mean.shape),
        dims=dims,
    )


def CategoricalByLogits(name: str, logits: pt.TensorVariable, observed: pt.TensorVariable) -> pt.TensorVariable:
    """Declare classes of rows by logits (n, K); ``pm.Categorical`` gives density 0 when probabilities round to 0."""

    def log_mass(value: pt.TensorVariable, logits: pt.TensorVariable) -> pt.TensorVariable:
        return pt.take_along_axis(pt.special.log_softmax(logits, axis=-1), value[..., None], axis=-1)[..., 0]

    def draw(logits: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
        return np.asarray(np.argmax(logits + rng.gumbel(size=np.shape(logits)), axis=-1))

    return pm.CustomDist(
        name, logits, logp=log_mass, random=draw, signature="(k)->()", observed=observed, dims="row", dtype="int64"
    )


def with_reference(w: pt.TensorVariable) -> pt.TensorVariable:
    """Prepend the weights of the first class, 0, to the weights (K - 1, T) of the others; return (K, T)."""
    return pt.concatenate([pt.zeros_like(w[:1]), w])
