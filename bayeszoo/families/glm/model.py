"""What regressions with a link share: the prior, the one mode, the compiled likelihood, and where NUTS begins."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.families.glm.links import Link
from bayeszoo.families.glm.rows import LinkedRows
from bayeszoo.families.linear.design import LinearTerms
from bayeszoo.families.linear.least_squares import Solution
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities import LogConcave
from bayeszoo.model.fields import positive
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)
ops = lazy_loader.load("bayeszoo.likelihoods.ops.glm", suppress_warning=True)


@dataclass(frozen=True)
class LinkedTerms(LinearTerms, family=True):
    """A linear predictor with Gaussian weights, and an outcome that depends on its features by it alone.

    A model has its ``inputs``, `declare` and `likelihood`; where rows have trials or an exposure it says so by
    `sizes_of`. The rows as a function of the weights, for a link, and good coordinates for NUTS are here.

    Parameters
    ----------
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0.
    s0 : float
        Prior standard deviation of the intercept, > 0.
    """

    tau: float = positive(10.0, "prior sd of the weights tau", axes=("slope",), kw_only=True)
    s0: float = positive(10.0, "prior sd of the intercept s0", kw_only=True)

    def sizes_of(self, data: Arrays) -> np.ndarray:
        """Return the trials of each row, or its exposure: 1 where the data do not say."""
        return np.ones(self.inputs.size(data))

    @abstractmethod
    def weak_intercept(self, data: Arrays) -> dict[str, Any]:
        """Return the fields of the prior of the intercept, scaled to the data."""

    @classmethod
    def weak(cls, data: Arrays) -> Any:
        """Standardize; a standard deviation of a feature moves the linear predictor by about 2.5 (Gelman 2008)."""
        base = cls(**cls.standardized(data), tau=2.5)
        return replace(base, **base.weak_intercept(data)).labelled(data)

    def ratios(self, params: Params) -> np.ndarray:
        """Return exp of the weights but for the intercept's, shape (..., K): what one more of a feature multiplies by.

        Raises `NumericalError` where one is larger than numbers go.
        """
        with np.errstate(over="ignore"):
            ratios = np.exp(np.asarray(params["w"])[..., int(self.intercept) :])
        if np.isinf(ratios).any():
            raise NumericalError("a ratio, exp of a weight, is larger than numbers go: read the weight", "too_large")
        return ratios

    def crossing(self, params: Params) -> np.ndarray | None:
        """Return where the linear predictor is 0, shape (...,): of one feature alone; None of more or of powers."""
        w, center = np.asarray(params["w"]), np.ravel(self.center)
        if not (self.intercept and self.degree == 1 and w.shape[-1] == 2 and len(center) == 1):
            return None
        return np.asarray(center[0] - w[..., 0] / w[..., 1])

    def prior(self, data: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return prior means and standard deviations of the weights in the user's units."""
        units = self.units(self.nothing({**data, "X": data["X"][:0]}))
        sd = self.term_scales(len(units), self.s0, "tau")
        return self.origin(len(units)), sd / units

    def simulate_weights(self, rng: np.random.Generator, size: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Draw weights from the prior, and ``size`` rows of standard normal features."""
        data = self.simulate_design(rng, size, np.shape(self.tau))
        return rng.normal(*self.prior(data)), data

    def linked(self, link: Link, data: Arrays) -> LinkedRows:
        """Return the log likelihood of the rows in units of the prior."""
        (terms, units), (origin, sd) = self.slopes(data), self.prior(data)
        scale = np.concatenate([np.ones(int(self.intercept)), units])
        return LinkedRows(
            link=link,
            design=self._with_intercept(terms) * (sd * scale),
            outcome=np.asarray(self.inputs.outcome(data), dtype=np.float64),
            sizes=np.asarray(self.sizes_of(data), dtype=np.float64),
            offset=float(self.m0) * self.intercept,
            origin=origin,
            sd=sd,
            terms=self.coords(data)["term"].tolist(),
            intercept=self.intercept,
        )

    @abstractmethod
    def laplace_solution(self, data: Arrays) -> Solution:
        """Return a Gaussian about as the posterior of the weights, in the user's units."""

    def declared_weights(self, data: Arrays) -> Any:
        """Declare the weights in a ``pm.Model``, in coordinates in which their posterior is about standard normal."""
        mean, sd = self.prior(data)
        return pm.Normal("w", mean, sd, dims="term", transform=ours.Whitened(self.laplace_solution(data)))


@dataclass(frozen=True)
class GeneralizedLinear(LinkedTerms, LogConcave, family=True):
    """An outcome whose log density is concave in a linear predictor with Gaussian weights, and depends on nothing else.

    A model has a ``link``, which is the log density of a row given its linear predictor with two derivatives. The mode,
    the maximum of the likelihood, the exact answers of one or two weights, and the compiled likelihood (the link's
    ``code`` there) are here. ``declare`` begins with ``w = self.declared_weights(data)`` inside of a ``pm.Model``.
    """

    link: ClassVar[Link]

    def mean(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean of one trial, or of an exposure of 1, of each row; weights (..., T) give (..., rows)."""
        return self.link.mean(self.predictor(params, data))

    def concave(self, data: Arrays, **given: float) -> LinkedRows:
        """Return the log likelihood of the rows in units of the prior."""
        return self.linked(self.link, data)

    def laplace_solution(self, data: Arrays) -> Solution:
        """Return the Gaussian at the mode with the curvature there, of weights in the user's units."""
        rows = self.concave(data)
        return rows.gaussian_about(rows.highest().x)

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on the compiled likelihood of all links, whose gradient is linear in the rows."""
        mean, sd = self.prior(data)
        with pm.Model(coords=self.coords(data)) as model:
            whitened = ours.Whitened(self.laplace_solution(data))
            w = ours.GaussianVector("w", mean, np.diag(sd), np.float64(1.0), whitened)
            rows = {"terms": self.design(data), "y_data": self.inputs.outcome(data), "sizes": self.sizes_of(data)}
            pm.Potential("y", ops.glm_log_likelihood(w, *ours.as_data(**rows), self.link.code))
        return model
