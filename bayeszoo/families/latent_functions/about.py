"""Binary outcomes given the value of a function at rows: probabilities, and draws of rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.discrete import LogitBinomial
from bayeszoo.distributions.logistic_normal import log_odds_of_mean
from bayeszoo.distributions.special import log_binomial
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.model.capabilities.function import OfFunction
from bayeszoo.model.capabilities.observable import Classifies
from bayeszoo.model.fields import positive, real

MOST_ROWS = 2000
"""Most rows whose covariance is factored: 32 MB, and seconds."""
SEVERAL_TRIALS = "rows of several trials share one value of the function, which a point estimate does not draw"


class AboutFunction(Classifies, OfFunction, family=True):
    """Binary outcomes, or successes in trials, whose log odds are a function."""

    function_is_estimated = True

    @abstractmethod
    def function_at(self, params: Params, seen: Arrays, new: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (..., rows) and standard deviation of the function at new rows, given the function at the rows.

        The standard deviation is (rows,) if it does not depend on the parameters.
        """

    @abstractmethod
    def prior_variance(self, params: Params, new: Arrays) -> np.ndarray:
        """Return the prior variance of the function at new rows, (rows,), averaged over draws of the parameters."""

    def sizes_of(self, data: Arrays) -> np.ndarray:
        """Return the number of trials of each row, (rows,)."""
        return np.asarray(data.get("trials", np.ones(self.inputs.size(data))), dtype=np.float64)

    def function(self, params: Params, seen: Arrays, new: Arrays) -> RowLaw:
        """Return the normal distribution of the log odds at each new row given the function at the rows seen."""
        mean, sd = self.function_at(params, seen, new)
        law: RowLaw = frozen.norm(mean, np.broadcast_to(np.maximum(sd, TINY), mean.shape))
        return law

    def mean_outcome(self, function: np.ndarray) -> np.ndarray:
        """Return the probabilities of success at values of the function."""
        return np.asarray(scipy.special.expit(function))

    def share_of_prior(self, draws: Params, seen: Arrays, new: Arrays) -> np.ndarray:
        """Return the posterior variance of the function at new rows, (rows,), as a share of its prior variance."""
        mean, sd = self.function_at(draws, seen, new)
        left = mean.var(axis=0) + np.broadcast_to(np.square(sd), mean.shape).mean(axis=0)
        return np.asarray(left / np.maximum(self.prior_variance(draws, new), TINY))

    def drawn_rows(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw functions, and new rows given them."""
        eta = self.drawn_function(params, seen, new, rng)
        return LogitBinomial(self.sizes_of(new), eta).rvs(eta.shape, rng)

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of new rows, the function integrated out; with several trials per row it is drawn."""
        mean, sd = self.function_at(params, seen, new)
        sizes = self.sizes_of(new)
        if np.all((sizes <= 1) | (sd <= 0)):
            return LogitBinomial(sizes, log_odds_of_mean(mean, sd))
        if rng is None:
            raise InputError(SEVERAL_TRIALS, "no_row_law", hint="fit by nuts, laplace or gibbs, or give a row a trial")
        return LogitBinomial(sizes, mean + sd * rng.standard_normal(mean.shape))


@dataclass(frozen=True)
class WithCovariance(AboutFunction, family=True):
    """Binary outcomes whose log odds are a function with a Gaussian process prior.

    Parameters
    ----------
    amplitude : float
        Prior standard deviation of the function, in log odds, > 0.
    m0 : float
        Prior mean of the function, in log odds.
    """

    amplitude: float = positive(2.5, "amplitude", kw_only=True)
    m0: float = real(0.0, "mean of the function", kw_only=True)

    @abstractmethod
    def covariance(self, first: Arrays, second: Arrays) -> np.ndarray:
        """Return the prior correlations (n, m) of the function at rows of two data sets, in units of amplitude^2."""

    @abstractmethod
    def variances(self, data: Arrays) -> np.ndarray:
        """Return the prior variances (n,) of the function at rows, in units of amplitude^2."""

    def names_of_rows(self, data: Arrays) -> np.ndarray:
        """Return the labels of the rows, by default their numbers."""
        return np.arange(1, self.inputs.size(data) + 1).astype(str)

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes of fields."""
        return {"feature": len(data["feature"])} if "feature" in data else {}

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log of the number of orders of successes and failures, over all rows."""
        return float(np.sum(log_binomial(self.sizes_of(data), self.inputs.outcome(data))))

    def prior_variance(self, params: Params, new: Arrays) -> np.ndarray:
        """Return the variance of the function at new rows."""
        return self.amplitude**2 * self.variances(new)
