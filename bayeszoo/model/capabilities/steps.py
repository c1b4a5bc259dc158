"""Types that a model's steps return to the engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.foundation.numerics.newton import Derivatives, Peak, climb


@dataclass(frozen=True, eq=False)
class Expectation:
    """The result of an E-step.

    Attributes
    ----------
    stats : Any
        Expected sufficient statistics of the data with their latent variables: the argument of the M-step.
    value : float
        For EM: the log likelihood of the ordered rows at the parameters, latent variables summed out. For variational
        Bayes: the sum over rows of the log normalizers of q(z_n), E[log p(y, z | theta) - log q(z)]. Every constant
        is kept.
    """

    stats: Any
    value: float


class Coordinates(NamedTuple):
    """Free coordinates of the parameters, or of q(theta), in which EM and variational Bayes are accelerated."""

    to_vector: Callable[[Any], np.ndarray]
    from_vector: Callable[[np.ndarray], Any]


class Chart(NamedTuple):
    """Free coordinates with a point as origin, where the complete-data log likelihood has curvature 1."""

    size: int
    params: Callable[[np.ndarray], Any]
    """The parameters at coordinates."""
    slope: Callable[[np.ndarray, Any, Any], np.ndarray]
    """Gradient of the objective by coordinates, given the parameters and their expected statistics."""


class GibbsChain(Protocol):
    """A Markov chain over latent variables, or over these and the parameters in turn."""

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Make N Gibbs sweeps, each drawing every variable given the others, from the density to a power <= 1.

        Powers below 1 flatten the posterior, for warmup; a chain whose posterior has one mode may ignore them.
        """

    def draw(self) -> dict[str, np.ndarray]:
        """Draw the parameters given the latent variables, or return those of the chain."""

    @property
    def log_joint(self) -> float:
        """Log density of the ordered rows and the chain's state, with every constant: p(y, z), or p(y, w).

        Where chains search for modes, its mean about a mode must approximate the log of the mode's mass.
        """


class ConcaveLikelihood(ABC):
    """A concave log likelihood of the ordered data, every constant kept, in coordinates u of shape (D,).

    The coordinates are independent and N(0, 1) a priori, and the parameters are an affine map of them.
    """

    size: int
    """D, the number of coordinates."""
    log_volume: float
    """Log determinant of the derivative of the parameters with respect to the coordinates."""
    has_corners: ClassVar[bool] = False
    """Whether the log likelihood has corners without a gradient; its maximum may be at one."""

    @abstractmethod
    def derivatives(self, u: np.ndarray) -> Derivatives:
        """Return the log likelihood at u, its gradient and its curvature."""

    @abstractmethod
    def values(self, points: np.ndarray) -> np.ndarray:
        """Return the log likelihood at points (P, D), shape (P,)."""

    @abstractmethod
    def start(self) -> np.ndarray:
        """Return the point from which to maximize."""

    @abstractmethod
    def params(self, u: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parameters at u (..., D)."""

    @abstractmethod
    def place(self, params: Mapping[str, object]) -> np.ndarray:
        """Return u at parameters; leading axes are draws."""

    @abstractmethod
    def refuse_unbounded(self) -> None:
        """Raise `NumericalError`, naming the direction, where the likelihood has no unique maximum."""

    def highest(self, flat: bool = False) -> Peak:
        """Return the maximum of the log joint density, or with ``flat`` of the likelihood, with its certificate."""
        return climb(self.derivatives if flat else self.joint, self.start())

    def joint(self, u: np.ndarray) -> Derivatives:
        """Return the log joint density of data and u at u, its gradient and its curvature."""
        likelihood, identity = self.derivatives(u), np.eye(self.size)
        value = likelihood.value - (float(u @ u) + self.size * LOG_2_PI) / 2
        return Derivatives(value, likelihood.gradient - u, likelihood.curvature + identity)

    def joint_values(self, points: np.ndarray) -> np.ndarray:
        """Return the log joint density of data and u at points (P, D), shape (P,)."""
        squares = np.sum(np.square(points), axis=1)
        return self.values(points) - (squares + self.size * LOG_2_PI) / 2

    def laplace_evidence(self) -> float:
        """Return the log evidence by Laplace's method, from the value and the curvature at the mode."""
        mode = self.highest().there
        return mode.value + (self.size * LOG_2_PI - float(np.linalg.slogdet(mode.curvature)[1])) / 2

    def log_prior(self, params: Params) -> Any:
        """Return the log density of the prior of the parameters themselves; leading axes are draws."""
        u = self.place(params)
        return -(np.sum(np.square(u), axis=-1) + self.size * LOG_2_PI) / 2 - self.log_volume
