r"""Dawid and Skene: the true class of each item from raters who err, each in a way of their own.

    weights      ~ Dirichlet(alpha)                  of the K classes
    confusion_kj ~ Dirichlet(eta + stay e_k)         labels of rater j for items of class k
    c_i          ~ Categorical(weights)              i = 1..N items, summed out
    y_ijm        ~ Categorical(confusion_{c_i j})    m = 1..M_ij ratings, also none

``stay`` > 0 says that raters tend to give the true class, which alone names the classes. With equal raters and two
classes: Condorcet's jury. Not `Observable`: how many rate a further item has no distribution. Dawid and Skene 1979.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Ratings
from bayeszoo.distributions.conjugate.categorical import Categoricals
from bayeszoo.errors import InputError
from bayeszoo.families.mixtures.base import MixtureModel
from bayeszoo.model import Arrays, Axes, DeclaredModel, Example, Params, Simulated, positive, whole

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.likelihoods.ops.topics", suppress_warning=True)


@dataclass(frozen=True)
class DawidSkene(MixtureModel):
    """Ratings of items of K unknown classes, with Dirichlet priors on the weights and on each rater's confusion matrix.

    Parameters
    ----------
    K : int
        How many of the labels are classes, the first K; by default of `weak` all. A label after them, as "unsure", is
        an answer that is never true.
    alpha : float or list of float
        Concentration of the prior of the weights, > 0, one for all classes or one each.
    eta : float
        Concentration of the prior of each label that a rater may give, > 0.
    stay : float
        What is added for the label that is the true class, > 0.
    """

    K: int = whole(2, "the number of classes K")
    alpha: float = positive(1.0, "prior alpha", axes=("class",))
    eta: float = positive(1.0, "prior eta")
    stay: float = positive(4.0, "prior stay")

    inputs = Ratings()
    dims: ClassVar[Axes] = {"weights": ("class",), "confusion": ("class", "rater", "label")}
    probabilities = ("weights", "confusion")
    component_axis = "class"
    examples = (
        Example(
            "anaesthesia.csv",
            "how fit 45 patients are for anaesthesia, by 5 anaesthetists, the first of whom rated three times",
            "Dawid and Skene 1979",
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> DawidSkene:
        """Take every label for a class."""
        return cls(K=len(data["class"]))

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes; not every label need be a class."""
        return {**super().sizes(data), "class": self.K, "label": len(data["class"])}

    def coords(self, data: Arrays) -> dict[str, Any]:
        """Return the classes, the raters and the labels."""
        return {"class": data["class"][: self.K], "rater": data["rater"], "label": data["class"]}

    def component_law(self, data: Arrays) -> Categoricals:
        """Return the law of the ratings of an item in each class."""
        if (labels := len(data["class"])) < self.K:
            raise InputError(f"K={self.K} classes, but only {labels} labels", "wrong_shape", hint="use a smaller K")
        alpha = self.eta + self.stay * np.eye(self.K, labels)
        return Categoricals(("confusion",), "counts", np.repeat(alpha[:, None], len(data["rater"]), axis=1))

    def exchangeable_axis(self) -> str | None:
        """Return no axis: the prior tells the classes apart."""
        return None

    def one_component(self) -> DawidSkene:
        """Return the model in which the first class is that of all items."""
        return self.replaced(K=1, alpha=np.mean(self.alpha))

    def remarks(self, stats: Any, data: Arrays) -> tuple[str, ...]:
        """Say which labels are no class."""
        others = data["class"][self.K :].tolist()
        return (f"K={self.K}: the labels {', '.join(others)} are answers, and no item is of them",) if others else ()

    def seeds(self, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Return responsibilities to start from: drawn about the votes of the raters, or else at random."""
        votes = data["counts"].sum(axis=1)[:, : self.K] * rng.integers(0, 2)
        return np.apply_along_axis(rng.dirichlet, 1, 0.5 + votes)

    def m_step(self, stats: Any, flat: bool = False) -> dict[str, np.ndarray]:
        """Return the mode; the likelihood, which knows no classes' names, gives each that of most of its labels."""
        params = super().m_step(stats, flat)
        if not flat:
            return params
        votes = stats.stats.parts[1].counts.sum(axis=-2)[:, : self.K]
        order = np.argsort(scipy.optimize.linear_sum_assignment(votes, maximize=True)[1])
        return {name: values[order] for name, values in params.items()}

    def undetermined(self, params: Params, data: Any, stats: Any, flat: bool) -> str:
        """Say so where the likelihood has more parameters than the tables of the ratings have free cells."""
        labels, free = len(data["class"]), self.free_parameters(data)
        designs = np.unique(data["counts"].sum(axis=-1), axis=0).tolist()
        cells = sum(math.prod(math.comb(m + labels - 1, m) for m in each) - 1 for each in designs)
        said = f"the likelihood has {free} free parameters, and the tables of the ratings have {cells} free cells"
        return said if flat and free > cells else ""

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior, and up to two ratings of each of ``size`` items by each of three raters."""
        names = {"rater": ("a", "b", "c"), "class": tuple(str(k + 1) for k in range(max(2, self.K)))}
        labels = {axis: np.array(self.labels.get(axis, own), dtype=str) for axis, own in names.items()}
        params, often = self.new_prior(labels).rvs((), rng), rng.integers(0, 3, (size, len(labels["rater"])))
        often[:, 0] = np.maximum(often[:, 0], 1)
        counts = rng.multinomial(often, params["confusion"][rng.choice(self.K, size, p=params["weights"])])
        return params, {"counts": counts, "item": np.arange(1, size + 1).astype(str), **labels}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the ratings of each item, its class summed out."""
        with pm.Model(coords=self.coords(data)) as model:
            weights = pm.Dirichlet("weights", a=self.entries("alpha", self.K), dims="class")
            confusion = pm.Dirichlet("confusion", a=self.component_law(data).alpha, dims=self.dims["confusion"])
            counts = pm.Data("counts_data", data["counts"])[:, None]
            of_labels = pm.math.where(pm.math.gt(counts, np.int64(0)), counts * pm.math.log(confusion), np.float64(0))
            terms = pm.math.log(weights) + pm.math.sum(of_labels, axis=(2, 3))
            pm.Potential("counts", pm.math.sum(pm.math.logsumexp(terms, axis=1)))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on the compiled likelihood of documents: an item is its labels as words."""
        cells = scipy.sparse.csr_array(data["counts"].reshape(len(data["counts"]), -1).astype(np.float64))
        with pm.Model(coords=self.coords(data)) as model:
            weights = pm.Dirichlet("weights", pm.Data("alpha", self.entries("alpha", self.K)), dims="class")
            confusion = pm.Dirichlet("confusion", pm.Data("eta", self.component_law(data).alpha))
            parts = [pm.Data(name, getattr(cells, name)) for name in ("data", "indices", "indptr")]
            words = confusion.reshape((self.K, cells.shape[1]))
            pm.Potential("counts", ours.multinomial_mixture_log_likelihood(weights, words, parts))
        return model
