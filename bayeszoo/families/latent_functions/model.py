"""Binary outcomes whose log odds are a function with a Gaussian process prior: a logistic regression on its factor.

The covariance of the function at the rows is L L', so that the function is m0 + L z with z ~ N(0, I): a logistic
regression whose design is L. Mode, certificate, variational Bayes and Gibbs sampling are those of such a regression.
Rasmussen and Williams 2006, chapter 3; Polya-Gamma variables: Polson, Scott and Windle 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.discrete import LogitBinomial
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.glm.augmented import Augmented, PolyaGamma
from bayeszoo.families.glm.links import Logit
from bayeszoo.families.glm.rows import LinkedRows
from bayeszoo.families.latent_functions.about import MOST_ROWS, WithCovariance
from bayeszoo.families.latent_functions.over import kind_over
from bayeszoo.families.linear.least_squares import Solution
from bayeszoo.families.processes.root import Root, root_of
from bayeszoo.foundation.named import Arrays, Coords, Params, Simulated
from bayeszoo.model.base import Axes, Model
from bayeszoo.model.outer.over_fields import OverByDraws
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)
ops = lazy_loader.load("bayeszoo.likelihoods.ops.glm", suppress_warning=True)


class FunctionRows(LinkedRows):
    """Rows about a function that can fit every outcome."""

    def refuse_unbounded(self) -> None:
        """Raise `NumericalError`: the likelihood rises as the function goes to plus and minus infinity."""
        raise NumericalError(
            "no maximum-likelihood estimate: the function can go through every outcome, and without its prior runs "
            "to infinity there; map and nuts have the prior that keeps it finite",
            "no_maximum",
        )


@dataclass(frozen=True)
class LatentFunction(Augmented, WithCovariance, OverByDraws, family=True):
    """Binary outcomes, or successes in trials, whose log odds are a function with a Gaussian process prior.

    A model has `covariance` and `variances` of the function at rows. The parameters ``z`` (places,) are independent and
    N(0, 1) a priori: they are the coordinates of the function on the pivoted Cholesky factor of its covariance, one for
    each row that does not follow from rows taken before.
    """

    link, augmentation = Logit(), PolyaGamma()
    integrated = False
    dims: ClassVar[Axes] = {"z": ("place",)}
    _kept: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_kept", {})

    def root(self, data: Arrays) -> Root:
        """Return the factor of the covariance at the rows, without the amplitude; refuse too many rows."""
        if self._kept.get("data") is not data:
            if (n := self.inputs.size(data)) > MOST_ROWS:
                problem = f"{n:,} rows need a matrix of {8e-6 * n * n:,.0f} MB and {n:,}^3 operations"
                hint = f"give a sample of at most {MOST_ROWS:,} rows, or fit logistic_regression with --degree"
                raise InputError(problem, "too_many_rows", hint=hint)
            self._kept.clear()
            self._kept.update(data=data, root=Root.of(self.covariance(data, data)))
        root: Root = self._kept["root"]
        return root

    @classmethod
    def kind_over(cls) -> type[Model]:
        """Return the class of models of the class with some fields as parameters."""
        return kind_over(cls)

    def coords(self, data: Arrays) -> Coords:
        """Return the labels of the rows from which all other rows follow."""
        return {"place": self.names_of_rows(data)[self.root(data).taken]}

    def concave(self, data: Arrays, **profiled: float) -> FunctionRows:
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
        """Return the Gaussian with the mode and its curvature."""
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
        """Return each row's binomial distribution; parameters with leading axes (...) give (..., rows)."""
        eta = self.m0 + self.amplitude * np.asarray(params["z"]) @ self.root(data).factor.T
        return LogitBinomial(self.sizes_of(data), eta)

    def function_at(self, params: Params, seen: Arrays, new: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (..., rows) and sd (rows,) of the function at new rows, given the function at the rows."""
        design, left = self._at_new_rows(seen, new)
        return self.m0 + self.amplitude * np.asarray(params["z"]) @ design.T, self.amplitude * np.sqrt(left)

    def _at_new_rows(self, seen: Arrays, new: Arrays) -> tuple[np.ndarray, np.ndarray]:
        root = self.root(seen)
        if new is seen:
            return root.factor, np.zeros(len(root.factor))
        cross = self.covariance(self.inputs.reordered(seen, root.taken), new)
        return root.elsewhere(cross, self.variances(new))

    def drawn_function(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw functions at all new rows."""
        design, _ = self._at_new_rows(seen, new)
        root = self.amplitude * root_of(self.covariance(new, new) - design @ design.T)
        mean = self.m0 + self.amplitude * np.asarray(params["z"]) @ design.T
        return np.asarray(mean + rng.standard_normal(mean.shape) @ root.T)

    def simulated(self, rng: np.random.Generator, places: Arrays) -> Simulated:
        """Draw the function from its prior, and an outcome at each place."""
        root = Root.of(self.covariance(places, places))
        z = rng.standard_normal(root.factor.shape[1])
        probability = self.link.mean(self.m0 + self.amplitude * root.factor @ z)
        return {"z": z}, {self.inputs.name: rng.binomial(1, probability), **places}
