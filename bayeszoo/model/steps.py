"""What steps of a model return to the engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np


@dataclass(frozen=True, eq=False)
class Expectation:
    """What an E-step gives.

    Attributes
    ----------
    stats : Any
        Expected sufficient statistics of the data with their latent variables: the argument of the M-step.
    value : float
        Of EM the log likelihood at the parameters, latent variables summed out, of the ordered rows; of variational
        Bayes the sum over rows of the log normalizers of q(z_n), which is E[log p(y, z | theta) - log q(z)]. Every
        constant is kept.
    """

    stats: Any
    value: float


class Coordinates(NamedTuple):
    """Free coordinates of the parameters, or of q(theta), in which climbs are accelerated."""

    to_vector: Callable[[Any], np.ndarray]
    from_vector: Callable[[np.ndarray], Any]


class CollapsedChain(Protocol):
    """A Markov chain over latent variables, parameters integrated out."""

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw every latent variable given all others, so many times over, from probabilities to a power of at most 1.

        Powers below 1 flatten the posterior, for warmup.
        """

    def draw(self) -> dict[str, np.ndarray]:
        """Draw the parameters given the latent variables."""

    @property
    def log_joint(self) -> float:
        """Log p(y, z) of the ordered rows and their latent variables, with every constant."""
