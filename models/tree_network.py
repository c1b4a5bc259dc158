r"""Tree network: features of levels, each of which depends on one other, so that their dependences are a tree.

    theta_root ~ Dirichlet(alpha_root)
    theta_va   ~ Dirichlet(alpha_va)                  of each feature v and level a of its parent in the tree
    x_n,root   ~ Categorical(theta_root)              n = 1..N
    x_nv       ~ Categorical(theta_va), a = x_n,parent(v)

With one equivalent sample size the root does not matter (BDeu). `bayeszoo trees` sums over all trees. Chow and Liu
1968; Heckerman, Geiger and Chickering 1995; Meila and Jaakkola 2006; CS725, lectures 14 and 25.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Mixed, tables_of
from bayeszoo.distributions.conjugate.product import LabelledStats
from bayeszoo.families.trees.model import TreeModel
from bayeszoo.families.trees.structure import most_probable_tree
from bayeszoo.model import Axes, Example, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.statistics.declaration", suppress_warning=True)
priors = lazy_loader.load("bayeszoo.likelihoods.dirichlet_tables", suppress_warning=True)
FOUR_FEATURES = {"feature": "abcd", "level": ("a=no", "a=yes", "b=x", "b=y", "b=z", "c=no", "c=yes", "d=no", "d=yes")}


@dataclass(frozen=True)
class TreeNetwork(TreeModel):
    """Levels of features whose dependences are a given tree, with a Dirichlet prior of each table.

    Parameters
    ----------
    alpha : float, or L lists of L
        Equivalent sample size of the prior, > 0, shared evenly by the levels of each two features; or, as the
        posterior has it, the concentration of each pair of levels, of single levels on the diagonal.
    tree : list of pairs of str, optional
        The features at the ends of each edge; by default a chain in the order of their names. The root is the feature
        whose name is the first.
    """

    alpha: float = positive(1.0, "prior alpha", axes=("level", "level"))
    tree: tuple[tuple[str, str], ...] | None = None

    inputs = Mixed("levels", kinds=("levels",), fits_masked=False)
    dims: ClassVar[Axes] = {"theta": ("cell",)}
    probabilities = ("theta",)
    examples = (
        Example(
            "cancer_knowledge.csv",
            "what 1,729 people read and hear, and whether they know about cancer",
            "Dyke and Patterson 1952",
            {"count": "count"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> TreeNetwork:
        """Take the most probable tree of the data."""
        return cls(tree=most_probable_tree(data))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior and ``size`` rows; without known labels of four features."""
        labels = {name: np.array(self.labels.get(name, tuple(own)), dtype=str) for name, own in FOUR_FEATURES.items()}
        params = self.prior(labels).block.rvs((), rng)
        indicators = self.likelihood(params, self.inputs.blank(labels, size)).rvs((size, len(labels["level"])), rng)
        places = [np.array(own)[indicators[:, list(own)].argmax(axis=1)] for own in tables_of(labels)]
        return params, {"levels": np.column_stack(places), **labels}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare each feature given the one above it."""
        prior, levels = self.prior(data), data["levels"]
        layout, codes = prior.layout, prior.layout.codes(data["levels"])
        with pm.Model(coords=self.coords(data)) as model:
            theta = priors.DirichletTables("theta", prior.block.alpha, layout.tables, ("cell",))
            firsts = layout.cells(levels) - codes
            for v, own in enumerate(layout.levels):
                p = theta[firsts[:, v, None] + np.arange(len(own))]
                pm.Categorical(f"levels_{v + 1}", p, observed=codes[:, v])
        return model

    def compressed(self, stats: LabelledStats) -> DeclaredModel:
        """Declare the density of the rows from the counts of the cells."""
        prior = self.block(stats)
        with pm.Model(coords=self.coords(stats.labels)) as model:
            theta = priors.DirichletTables("theta", prior.block.alpha, prior.layout.tables, ("cell",))
            pm.Potential("levels", declared.log_likelihood(prior.counts(stats), theta))
        return model
