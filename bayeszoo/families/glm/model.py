"""Steps shared by regressions with a link: prior, mode, compiled likelihood, and coordinates for NUTS."""

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
from bayeszoo.foundation.named import Arrays, Fields, Params
from bayeszoo.model.capabilities import LogConcave
from bayeszoo.model.fields import positive
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.linear.declaration", suppress_warning=True)
ops = lazy_loader.load("bayeszoo.likelihoods.ops.glm", suppress_warning=True)


@dataclass(frozen=True)
class LinkedTerms(LinearTerms, family=True):
    """A linear predictor with Gaussian weights, and an outcome that depends on the features through it alone.

    A model has its ``inputs``, `declare` and `likelihood`, and `sizes_of` if rows have trials or exposures. This class
    gives the likelihood of the weights for a link, and good coordinates for NUTS.

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
        """Return the number of trials of each row, or its exposure; 1 if the data have neither."""
        return np.ones(self.inputs.size(data))

    @abstractmethod
    def weak_intercept(self, data: Arrays) -> Fields:
        """Return the fields of the prior of the intercept, scaled to the data."""

    @classmethod
    def weak(cls, data: Arrays) -> Any:
        """Standardize; one sd of a feature moves the linear predictor by about 2.5 (Gelman 2008)."""
        base = cls(**cls.standardized(data), tau=2.5)
        return replace(base, **base.weak_intercept(data)).labelled(data)

    def ratios(self, params: Params) -> np.ndarray:
        """Return the factors exp(w), shape (..., K), by which one more unit of each feature multiplies odds or rates.

        Raises `NumericalError` if one overflows.
        """
        with np.errstate(over="ignore"):
            ratios = np.exp(np.asarray(params["w"])[..., int(self.intercept) :])
        if np.isinf(ratios).any():
            why = "the ratio for one more unit of a feature, exp of its weight, is larger than numbers go"
            raise NumericalError(f"{why}: measure the feature in smaller units, or read the weights", "too_large")
        return ratios

    def crossing(self, params: Params) -> np.ndarray | None:
        """Return the feature at which the linear predictor is 0, shape (...,).

        None unless there is one linear term, and where its weight is exactly 0, as that of an estimate may be.
        """
        w, center = np.asarray(params["w"]), np.ravel(self.center)
        if not (self.intercept and self.degree == 1 and w.shape[-1] == 2 and len(center) == 1):
            return None
        if np.any(w[..., 1] == 0):
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
        """Return a Gaussian that approximates the posterior of the weights, in the user's units."""

    def declared_weights(self, data: Arrays) -> Any:
        """Declare the weights in a ``pm.Model``, in coordinates in which their posterior is about standard normal."""
        mean, sd = self.prior(data)
        return pm.Normal("w", mean, sd, dims="term", transform=ours.Whitened(self.laplace_solution(data)))


@dataclass(frozen=True)
class GeneralizedLinear(LinkedTerms, LogConcave, family=True):
    """An outcome whose log density is concave in a linear predictor with Gaussian weights, and depends on nothing else.

    A model has a ``link``: the log density of a row given its linear predictor, with two derivatives. This class gives
    the mode, the maximum of the likelihood, exact answers for one or two weights, and the compiled likelihood (by the
    link's ``code``). ``declare`` begins with ``w = self.declared_weights(data)`` inside of a ``pm.Model``.
    """

    link: ClassVar[Link]

    def mean(self, params: Params, data: Arrays) -> np.ndarray:
        """Return each row's mean for one trial, or an exposure of 1; weights (..., T) give (..., rows)."""
        return self.link.mean(self.predictor(params, data))

    def concave(self, data: Arrays, **profiled: float) -> LinkedRows:
        """Return the log likelihood of the rows in units of the prior."""
        return self.linked(self.link, data)

    def laplace_solution(self, data: Arrays) -> Solution:
        """Return the Gaussian with the mode and its curvature, of weights in the user's units."""
        rows = self.concave(data)
        return rows.gaussian_about(rows.highest().x)

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density with the compiled likelihood of all links, whose gradient takes linear time."""
        mean, sd = self.prior(data)
        with pm.Model(coords=self.coords(data)) as model:
            whitened = ours.Whitened(self.laplace_solution(data))
            w = ours.GaussianVector("w", mean, np.diag(sd), np.float64(1.0), whitened)
            rows = {"terms": self.design(data), "y_data": self.inputs.outcome(data), "sizes": self.sizes_of(data)}
            pm.Potential("y", ops.glm_log_likelihood(w, *ours.as_data(**rows), self.link.code))
        return model
