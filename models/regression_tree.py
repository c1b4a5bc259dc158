r"""Regression tree: a step function of features, by cuts whose number and places are not known.

    sigma2 ~ InvGamma(a0, scale b0)
    tree   ~ Cuts(alpha, beta, depth)
    f_leaf ~ N(m0, s_leaf^2)                      the value of the function in each leaf of the tree
    y_n    ~ N(f_leaf(x_n), sigma2)               n = 1..N

A part of the places at depth d is cut in two with probability alpha (1 + d)^-beta, and never at the last depth: the
feature is uniform among those that may be cut inside it, and then the place. Given sigma2 the sum over all trees,
values integrated out, is exact: of one feature by dynamic programming over intervals, of several by going through all
trees of two cuts on the way to a leaf. `bayeszoo steps` shows cuts and trees. Chipman, George and McCulloch 1998,
whose cuts leave rows on both sides: here a side may be empty, so that the prior of the function does not depend on the
rows. Denison, Mallick and Smith 1998; W4400, trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayeszoo.distributions.priors import InvGamma, Prior
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError
from bayeszoo.families.partitions.boxes import MOST_DEPTH
from bayeszoo.families.partitions.cuts import cuts_between
from bayeszoo.families.partitions.model import PartitionModel
from bayeszoo.families.partitions.sums import TreePrior
from bayeszoo.model import Example, positive, real
from bayeszoo.model.types import Arrays, Simulated


@dataclass(frozen=True)
class RegressionTree(PartitionModel):
    """Gaussian outcomes about a function that is constant on the leaves of a tree of cuts.

    Parameters
    ----------
    m0, s_leaf : float
        Mean and standard deviation of the normal prior of the function's value in a leaf.
    a0, b0 : float
        Shape and scale of the inverse-gamma prior of the noise variance, > 0.
    beta : float
        How fast cuts become improbable with depth, > 0.
    alpha : float
        Probability that the first box, of all rows, is cut, between 0 and 1.
    """

    m0: float = real(0.0, "prior mean of the leaves", units=1, location=True)
    s_leaf: float = positive(1.0, "prior sd of the leaves", units=1)
    a0: float = positive(1.0, "prior shape a0")
    b0: float = positive(1.0, "prior scale b0", units=2)
    beta: float = positive(2.0, "prior power of depth beta")
    alpha: float = field(default=0.95, kw_only=True)

    examples = (
        Example(
            "motorcycle.csv",
            "acceleration of the head of a dummy, in g, by milliseconds after the impact of a motorcycle",
            "Silverman 1985",
            {"target": "acceleration"},
        ),
        Example(
            "ethanol.csv",
            "nitrogen oxides in the exhaust of 88 runs, by compression ratio and equivalence ratio of the mixture",
            "Brinkman 1981",
            {"target": "NOx"},
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.alpha, bool) or not 0 < float(self.alpha) < 1:
            raise InputError(f"alpha must be above 0 and below 1, got {self.alpha!r}", "out_of_range")

    @classmethod
    def weak(cls, data: Arrays) -> RegressionTree:
        """Scale to the outcome's spread; cut half way between neighbouring values, of several features twice."""
        y = Moments.of(data["y"])
        sd = float(y.sd)
        depth = 5 if len(data["feature"]) == 1 else MOST_DEPTH
        cuts = cuts_between(data["X"])
        return cls(m0=float(y.mean), s_leaf=sd, a0=0.5, b0=0.5 * sd**2, depth=depth, cuts=cuts)

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Inverse gamma of the noise variance."""
        return {"sigma2": InvGamma(self.a0, self.b0)}

    @property
    def tree_prior(self) -> TreePrior:
        """The prior of trees and of the values of their leaves."""
        return TreePrior(float(self.alpha), float(self.beta), float(self.m0), float(self.s_leaf))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw the noise, places, a tree and its values from the prior, and rows about the function."""
        outer, data = self.drawn_outer(rng), self.simulated_places(rng, size)
        return outer, {"y": rng.normal(self.simulated_function(rng, data), np.sqrt(outer["sigma2"])), **data}
