r"""Linear Gaussian series: a hidden state that known matrices move, seen with noise; what a Kalman filter follows.

    q ~ HalfNormal(t_q),  r ~ HalfNormal(t_r)   or known
    z_1 ~ N(m0, S0)                             in each sequence
    z_t ~ N(A z_{t-1}, q^2 Q)                   t = 2..T
    y_t ~ N(C z_t, r^2)                         t = 1..T

The default matrices are those of a place and its velocity, which white noise accelerates. Given q and r all is
Gaussian, and the Kalman filter integrates the states out: it is exact by quadrature over q and r, and in closed form
where both are known. Kalman 1960; Bar-Shalom, Li and Kirubarajan 2001, section 6.2; Durbin and Koopman 2012, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.distributions.priors import HalfNormal, Prior
from bayeszoo.errors import InputError
from bayeszoo.families.state_space.linear import LinearGaussianModel
from bayeszoo.families.state_space.model import spread
from bayeszoo.model import Example, covariance, positive, real
from bayeszoo.model.fields import plain
from bayeszoo.model.types import Arrays, Simulated


@dataclass(frozen=True)
class LinearGaussian(LinearGaussianModel):
    """Numbers in time about a known sum over a hidden state, which moves by a known matrix.

    Parameters
    ----------
    m0 : float, or one for each entry of the state
        Mean of the first state of each sequence.
    S0 : float or list of lists of float
        Covariance matrix of the first state, or a multiple of the identity.
    t_q, t_r : float
        Scales of the half-normal priors of q and r, > 0.
    """

    m0: float = real(0.0, "prior mean m0 of the first state", axes=("state",), units=1)
    S0: float = covariance(1.0, "prior covariance S0 of the first state", axes=("state", "state_2"), units=2)
    t_q: float = positive(1.0, "prior scale of q", units=1)
    t_r: float = positive(1.0, "prior scale of r", units=1)

    examples = (
        Example(
            "track.csv",
            "distance of a vehicle along a road each second, metres, simulated",
            "after Bar-Shalom, Li and Kirubarajan 2001, section 6.2",
            {"column": "distance"},
        ),
    )

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Half-normal of the standard deviations that are unknown."""
        scales = {"q": self.t_q, "r": self.t_r}
        return {name: HalfNormal(scales[name]) for name in self.outer}

    @property
    def first_state(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean and covariance matrix of the first state of a sequence."""
        d, S0 = len(self.C), np.asarray(self.S0)
        if S0.ndim and len(S0) != d:
            raise InputError(f"S0 has {len(S0)} rows, and the state {d} entries", "wrong_shape")
        return self.entries("m0", d), S0 if S0.ndim else S0 * np.eye(d)

    def weak_fields(self, data: Arrays) -> dict[str, Any]:
        """Centre the first row on the data with ten times their spread, and scale all else to their steps."""
        y, step = data["y"][~np.isnan(data["y"])], spread(data)
        along = np.array(self.C) / max(np.dot(self.C, self.C), np.finfo(float).tiny)  # a state whose row is 1
        variance = 100 * (np.var(y) + step**2)
        S0 = step**2 * np.eye(len(along)) + variance * np.outer(along, along)
        first = {"m0": plain(np.mean(y) * along), "S0": plain(S0)}
        return {**first, "t_q": 2 * step / self.replaced(**first).structure(data).reach(), "t_r": 2 * step}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw standard deviations that are unknown, the states of one sequence, and rows about them."""
        outer = self.drawn_outer(rng)
        y = self.simulated(rng, {**outer, **self.known_sds}, size)
        return outer, {"y": y, "sequence": np.zeros(size, dtype=np.int64)}
