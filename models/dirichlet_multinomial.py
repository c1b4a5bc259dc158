r"""Dirichlet-multinomial: the shares of several categories, from their counts.

    p   ~ Dirichlet(alpha)
    y_n ~ Categorical(p)        n = 1..N

A table of counts, counts_r ~ Multinomial(total_r, p), is the same model observed through its sufficient statistics. Of
words it is the unigram model of a text. Gelman et al., BDA3, section 3.4; Bishop, PRML, section 2.2; Murphy 2012,
section 3.4; W4400, the multinomial distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Categories
from bayeszoo.data.read import Example
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.dirichlet import log_multinomial
from bayeszoo.distributions.discrete import Categorical as CategoricalRows
from bayeszoo.distributions.discrete import DirichletMultinomial as Predictive
from bayeszoo.distributions.discrete import Multinomial
from bayeszoo.distributions.special import sum_or_nan
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.model import Axes, BlockModel, plain, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")


@dataclass(frozen=True)
class DirichletMultinomial(BlockModel[Counts]):
    """Independent categorical observations with a Dirichlet prior on the shares of the K categories.

    Parameters
    ----------
    alpha : float or list of float
        Concentration of the Dirichlet prior, > 0, one for all categories or one each: like alpha - 1 of each seen
        before.
    """

    alpha: float = positive(1.0, "prior alpha", axes=("category",))

    inputs = Categories("y")
    dims: ClassVar[Axes] = {"p": ("category",)}
    probabilities = ("p",)
    examples = (
        Example(
            file="poll1988.csv",
            about="CBS poll before the 1988 election in the US: 1447 preferences",
            source="BDA3 section 3.4",
            options={"column": "candidate", "count": "count"},
        ),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw the shares from the prior (of three categories if alpha is one number) and observations given them."""
        categories = np.size(self.alpha) if np.ndim(self.alpha) else 3
        p = self._block(categories).rvs((), rng)["p"]
        labels = np.array([f"c{k + 1}" for k in range(categories)])
        return {"p": p}, {"y": rng.choice(categories, size=size, p=p), "category": labels}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Categorical observation ``y``, or one Multinomial of ``counts``, a row."""
        with pm.Model(coords=self.coords(data)) as model:
            p = pm.Dirichlet("p", a=self.entries("alpha", len(data["category"])), dims="category")
            if "y" in data:
                pm.Categorical("y", p=p, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
            else:
                counts = pm.Data("counts_data", data["counts"], dims=("row", "category"))
                total = pm.Data("total", data["counts"].sum(axis=1), dims="row")
                pm.Multinomial("counts", n=total, p=p, observed=counts, dims=("row", "category"))
        return model

    def statistics(self, data: Arrays) -> Counts:
        """Count each category; ``alpha`` must have as many entries."""
        categories = len(data["category"])
        self.entries("alpha", categories)
        if "y" in data:
            return Counts(np.bincount(data["y"], minlength=categories).astype(np.float64))
        counts = np.asarray(data["counts"], dtype=np.float64)
        return Counts(counts.sum(axis=0), log_coefficient=float(np.sum(log_multinomial(counts))))

    def compressed(self, stats: Counts) -> DeclaredModel:
        """Declare the density of the ordered observations from the counts that are not zero."""
        seen = np.flatnonzero(stats.counts)  # 0 * log(0) would be NaN
        with pm.Model() as model:
            p = pm.Dirichlet("p", a=self.entries("alpha", len(stats.counts)))
            counts = pm.Data("counts", stats.counts[seen])
            pm.Potential("y", pm.math.sum(counts * pm.math.log(p[pm.Data("seen", seen)])))
        return model

    def block(self, stats: Counts) -> Categorical:
        """Return the prior; the posterior is Dirichlet(alpha + counts)."""
        return self._block(len(stats.counts))

    def _block(self, categories: int) -> Categorical:
        return Categorical(("p",), "y", self.entries("alpha", categories))

    def from_block(self, block: Categorical) -> DirichletMultinomial:
        """Return the model with another Dirichlet prior."""
        return self.replaced(alpha=plain(block.alpha))

    def log_evidence_counts(self, stats: Counts) -> float:
        """Return the log evidence of the counts, in whatever order; NaN where the terms cancel."""
        pooled = Predictive(self.entries("alpha", len(stats.counts)), stats.counts.sum()[None]).logpmf(stats.counts)
        return sum_or_nan(float(pooled[0]), -float(log_multinomial(stats.counts)), stats.log_coefficient)

    def predictive(self, stats: Counts, data: Arrays) -> CategoricalRows | Predictive:
        """Return each row's predictive: the mean shares, or the Dirichlet-multinomial of a row of counts."""
        alpha = self.block(stats).updated(stats).alpha
        if "y" in data:
            return CategoricalRows(np.tile(alpha / alpha.sum(), (len(data["y"]), 1)))
        return Predictive(alpha, data["counts"].sum(axis=1))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's distribution; p of shape (..., K) gives (..., rows)."""
        p = np.asarray(params["p"])[..., None, :]
        if "y" in data:
            return CategoricalRows(np.broadcast_to(p, (*p.shape[:-2], len(data["y"]), p.shape[-1])))
        return Multinomial(data["counts"].sum(axis=1), p)
