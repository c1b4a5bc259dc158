"""Outcomes of yes and no, whose log odds are a function with a Gaussian process as prior: a regression on its factor.

The covariance of the function at the rows is L L', so that the function is m0 + L z with z ~ N(0, I): a logistic
regression whose design is L. Mode, certificate, variational Bayes and Gibbs sampling are those of such a regression.
Rasmussen and Williams 2006, chapter 3; Polya-Gamma variables: Polson, Scott and Windle 2013.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.averaged import RowLaw
from bayeszoo.distributions.discrete import LogitBinomial
from bayeszoo.distributions.logistic_normal import log_odds_of_mean
from bayeszoo.distributions.special import log_binomial
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.glm.augmented import Augmented, PolyaGamma
from bayeszoo.families.glm.links import Logit
from bayeszoo.families.glm.rows import LinkedRows
from bayeszoo.families.linear.least_squares import Solution
from bayeszoo.families.processes.root import Root
from bayeszoo.foundation.named import Arrays, Params, Simulated
from bayeszoo.model.base import Axes
from bayeszoo.model.fields import positive, real
from bayeszoo.model.function import OfFunction
from bayeszoo.model.observable import Classifies
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)
ops = lazy_loader.load("bayeszoo.likelihoods.ops.glm", suppress_warning=True)

TINY = float(np.finfo(np.float64).tiny)
MOST_ROWS = 2000
"""Rows whose covariance is factored: 32 MB, and seconds."""
SEVERAL_TRIALS = "rows of several trials share one value of the function, which a point estimate does not draw"


class FunctionRows(LinkedRows):
    """Rows about a function, which can go through every outcome."""

    def refuse_unbounded(self) -> None:
        """Raise `NumericalError`: the likelihood rises as the function goes to plus and minus infinity."""
        raise NumericalError(
            "no maximum-likelihood estimate: the function can go through every outcome, and without its prior runs "
            "to infinity there; map and nuts have the prior that keeps it finite",
            "no_maximum",
        )


@dataclass(frozen=True)
class LatentFunction(Augmented, Classifies, OfFunction, family=True):
    """Yes/no outcomes, or successes of trials, whose log odds are a function with a Gaussian process as prior.

    A model has `covariance` and `variances` of the function at rows. The parameters ``z`` (places,) are independent and
    N(0, 1) a priori: of each of the rows that all others follow from, the function given that at those taken before.

    Parameters
    ----------
    amplitude : float
        Prior standard deviation of the function, in log odds, > 0.
    m0 : float
        Prior mean of the function, in log odds.
    """

    amplitude: float = positive(2.5, "amplitude", kw_only=True)
    m0: float = real(0.0, "mean of the function", kw_only=True)

    link, augmentation = Logit(), PolyaGamma()
    integrated = False
    dims: ClassVar[Axes] = {"z": ("place",)}
    _kept: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_kept", {})

    @abstractmethod
    def covariance(self, first: Arrays, second: Arrays) -> np.ndarray:
        """Return the prior correlations (n, m) of the function at rows of two data sets, in units of amplitude^2."""

    @abstractmethod
    def variances(self, data: Arrays) -> np.ndarray:
        """Return the prior variances (n,) of the function at rows, in units of amplitude^2."""

    def root(self, data: Arrays) -> Root:
        """Return the factor of the covariance at the rows, without the amplitude; refuse more rows than can be."""
        if self._kept.get("data") is not data:
            if (n := self.inputs.size(data)) > MOST_ROWS:
                problem = f"{n:,} rows need a matrix of {8e-6 * n * n:,.0f} MB and {n:,}^3 operations"
                hint = f"give a sample of at most {MOST_ROWS:,} rows, or fit logistic_regression with --degree"
                raise InputError(problem, "too_many_rows", hint=hint)
            self._kept.clear()
            self._kept.update(data=data, root=Root.of(self.covariance(data, data)))
        root: Root = self._kept["root"]
        return root

    def coords(self, data: Arrays) -> dict[str, Any]:
        """Return the numbers of the rows that the others follow from."""
        return {"place": (self.root(data).taken + 1).astype(str)}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes that fields may have entries along."""
        return {"feature": len(data["feature"])} if "feature" in data else {}

    def sizes_of(self, data: Arrays) -> np.ndarray:
        """Return the trials of each row."""
        return np.asarray(data.get("trials", np.ones(self.inputs.size(data))), dtype=np.float64)

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log of how many orders the trials of all rows may have been made in."""
        return float(np.sum(log_binomial(self.sizes_of(data), self.inputs.outcome(data))))

    def concave(self, data: Arrays, **given: float) -> FunctionRows:
        """Return the log likelihood of the rows in units of the prior."""
        design = self.amplitude * self.root(data).factor
        count = design.shape[1]
        return FunctionRows(
            link=self.link,
            design=design,
            outcome=np.asarray(self.inputs.outcome(data), dtype=np.float64),
            sizes=self.sizes_of(data),
            offset=float(self.m0),
            origin=np.zeros(count),
            sd=np.ones(count),
            terms=self.coords(data)["place"].tolist(),
            intercept=False,
            name="z",
        )

    def laplace_solution(self, data: Arrays) -> Solution:
        """Return the Gaussian at the mode with the curvature there."""
        rows = self.concave(data)
        return rows.gaussian_about(rows.highest().x)

    def _declared_design(self, rows: LinkedRows, data: Arrays) -> tuple[Any, Any]:
        """Declare the parameters in good coordinates; return (1, z), and the design whose product is the log odds."""
        z = pm.Normal("z", rows.origin, rows.sd, dims="place", transform=ours.Whitened(self.laplace_solution(data)))
        design = np.hstack([np.full((len(rows.design), 1), rows.offset), rows.design])
        return pm.math.concatenate([np.ones(1), z]), pm.Data("factor", design)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the successes of each row."""
        rows = self.concave(data)
        with pm.Model(coords=self.coords(data)) as model:
            z, design = self._declared_design(rows, data)
            trials = pm.Data("trials", rows.sizes, dims="row")
            outcome = pm.Data("y_data", self.inputs.outcome(data), dims="row")
            ours.BinomialByLogOdds(self.inputs.name, trials, pm.math.dot(design, z), outcome)
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on the compiled likelihood of all links."""
        rows = self.concave(data)
        with pm.Model(coords=self.coords(data)) as model:
            z, design = self._declared_design(rows, data)
            outcome, sizes = ours.as_data(y_data=rows.outcome, sizes=rows.sizes)
            pm.Potential("y", ops.glm_log_likelihood(z, design, outcome, sizes, self.link.code))
        return model

    # The function and the rows about it

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's binomial distribution; parameters of shape (..., own shape) give (..., rows)."""
        eta = self.m0 + self.amplitude * np.asarray(params["z"]) @ self.root(data).factor.T
        return LogitBinomial(self.sizes_of(data), eta)

    def function_at(self, params: Params, seen: Arrays, new: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (..., rows) and standard deviation (rows,) of the function at new rows given that at the rows."""
        design, left = self._elsewhere(seen, new)
        return self.m0 + self.amplitude * np.asarray(params["z"]) @ design.T, self.amplitude * np.sqrt(left)

    def _elsewhere(self, seen: Arrays, new: Arrays) -> tuple[np.ndarray, np.ndarray]:
        root = self.root(seen)
        if new is seen:
            return root.factor, np.zeros(len(root.factor))
        cross = self.covariance(self.inputs.reordered(seen, root.taken), new)
        return root.elsewhere(cross, self.variances(new))

    def function(self, params: Params, seen: Arrays, new: Arrays) -> RowLaw:
        """Return the normal distribution of the log odds at each new row given the function at the rows seen."""
        mean, sd = self.function_at(params, seen, new)
        law: RowLaw = frozen.norm(mean, np.broadcast_to(np.maximum(sd, TINY), mean.shape))
        return law

    def mean_outcome(self, function: np.ndarray) -> np.ndarray:
        """Return the probabilities of values of the function."""
        return np.asarray(scipy.special.expit(function))

    def share_of_prior(self, draws: Params, seen: Arrays, new: Arrays) -> np.ndarray:
        """Return the share of the function's variance at new rows that is left; by an estimate that given the rows'."""
        mean, sd = self.function_at(draws, seen, new)
        own = self.amplitude**2 * self.variances(new)
        return np.asarray((mean.var(axis=0) + np.square(sd)) / np.maximum(own, TINY))

    def drawn_function(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw functions at all new rows."""
        design, _ = self._elsewhere(seen, new)
        left = self.covariance(new, new) - design @ design.T
        values, vectors = np.linalg.eigh(left)
        root = self.amplitude * vectors * np.sqrt(np.maximum(values, 0.0))
        mean = self.m0 + self.amplitude * np.asarray(params["z"]) @ design.T
        return np.asarray(mean + rng.standard_normal(mean.shape) @ root.T)

    def drawn_rows(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw new rows about functions drawn."""
        eta = self.drawn_function(params, seen, new, rng)
        return LogitBinomial(self.sizes_of(new), eta).rvs(eta.shape, rng)

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of new rows, the function there integrated out; of several trials it is drawn."""
        mean, sd = self.function_at(params, seen, new)
        sizes = self.sizes_of(new)
        if np.all(sizes[sd > 0] <= 1):
            return LogitBinomial(sizes, log_odds_of_mean(mean, sd))
        if rng is None:
            raise InputError(SEVERAL_TRIALS, "no_row_law", hint="fit by nuts, laplace or gibbs, or give a row a trial")
        return LogitBinomial(sizes, mean + sd * rng.standard_normal(mean.shape))

    def simulated(self, rng: np.random.Generator, places: Arrays) -> Simulated:
        """Draw the function from its prior at places, and an outcome at each."""
        root = Root.of(self.covariance(places, places))
        z = rng.standard_normal(root.factor.shape[1])
        probability = self.link.mean(self.m0 + self.amplitude * root.factor @ z)
        return {"z": z}, {self.inputs.name: rng.binomial(1, probability), **places}
