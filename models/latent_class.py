r"""Latent class analysis: rows of yes/no answers and other levels from K classes that nobody has seen.

    weights  ~ Dirichlet(alpha 1_K)
    theta_kj ~ Dirichlet(eta)                       of each feature j in each class k
    z_n      ~ Categorical(weights)                 n = 1..N, summed out
    x_nj     ~ Categorical(theta_{z_n j})           independent given the class

It is naive Bayes whose class is not seen. A cell that is missing is left out, exactly. Goodman 1974; Murphy 2012,
section 11.2; CS725, lecture 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Mixed, tables_of
from bayeszoo.families.mixtures.levels import LevelMixtureModel
from bayeszoo.model import Axes, Example, positive, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
priors = lazy_loader.load("bayeszoo.likelihoods.dirichlet_tables", suppress_warning=True)
ours = lazy_loader.load("bayeszoo.likelihoods.ops.topics", suppress_warning=True)
FIVE_ANSWERS = {"feature": "abcde", "level": tuple(f"{name}={level}" for name in "abcde" for level in ("no", "yes"))}


@dataclass(frozen=True)
class LatentClass(LevelMixtureModel):
    """Rows of levels from K latent classes, with Dirichlet priors on weights and on the levels of each feature.

    Parameters
    ----------
    K : int
        How many classes.
    alpha : float
        Concentration of the prior of the weights, > 0, the same for all classes.
    eta : float or list of float
        Concentration of the prior of the levels of each feature, > 0, one for all levels or one each.
    """

    K: int = whole(2, "the number of classes K")
    alpha: float = positive(1.0, "prior alpha")
    eta: float = positive(1.0, "prior eta", axes=("level",))

    inputs = Mixed("levels", kinds=("levels",))
    dims: ClassVar[Axes] = {"weights": ("component",), "theta": ("component", "level")}
    probabilities = ("weights", "theta")
    examples = (
        Example(
            "cancer_knowledge.csv",
            "what 1,729 people read and hear, and whether they know about cancer",
            "Dyke and Patterson 1952",
            {"count": "count"},
        ),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior and ``size`` rows; without known labels of five yes/no features."""
        labels = {name: np.array(self.labels.get(name, tuple(own)), dtype=str) for name, own in FIVE_ANSWERS.items()}
        prior = self.new_prior(labels)
        params = prior.rvs((), rng)
        indicators = self.likelihood(params, {**self.inputs.blank(labels, size)}).rvs((size, len(labels["level"])), rng)
        places = [np.array(table)[indicators[:, list(table)].argmax(axis=1)] for table in tables_of(labels)]
        return params, {"levels": np.column_stack(places), **labels}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the density of each row, its class summed out."""
        law = self.component_law(data)
        with pm.Model(coords=self.coords(data)) as model:
            weights = pm.Dirichlet("weights", a=np.full(self.K, self.alpha), dims="component")
            theta = priors.DirichletTables("theta", law.alpha, law.tables, self.dims["theta"])
            levels = pm.Data("levels_data", data["levels"])
            seen = pm.math.ge(levels, np.int64(0))[..., None]
            of_levels = pm.math.where(seen, pm.math.log(theta.T[levels]), np.float64(0))
            terms = pm.math.log(weights) + pm.math.sum(of_levels, axis=1)
            pm.Potential("levels", pm.math.sum(pm.math.logsumexp(terms, axis=1)))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on the compiled likelihood of documents: a row is one of its levels as words."""
        law, seen = self.component_law(data), data["levels"] >= 0
        starts = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
        cells = scipy.sparse.csr_array(
            (np.ones(seen.sum()), data["levels"][seen], starts), (len(seen), len(data["level"]))
        )
        with pm.Model(coords=self.coords(data)) as model:
            weights = pm.Dirichlet("weights", pm.Data("alpha", np.full(self.K, self.alpha)), dims="component")
            theta = priors.DirichletTables("theta", law.alpha, law.tables, self.dims["theta"])
            parts = [pm.Data(name, getattr(cells, name)) for name in ("data", "indices", "indptr")]
            pm.Potential("levels", ours.multinomial_mixture_log_likelihood(weights, theta, parts))
        return model
