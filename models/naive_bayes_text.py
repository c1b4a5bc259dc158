r"""Naive Bayes of documents: each word of a document is drawn from the distribution of words of its class.

    shares  ~ Dirichlet(alpha)                   of K classes
    theta_k ~ Dirichlet(eta)                     k = 1..K, of the words
    c_d     ~ Categorical(shares)                d = 1..N documents
    w_dn    ~ Categorical(theta_{c_d})           n = 1..N_d words, whose number is known

Densities are of the ordered words. Given the other documents, the words of one are Dirichlet-multinomial in each class:
a word that occurs is expected again. Mosteller and Wallace 1964; McCallum and Nigam 1998; CS725, lecture 25; W4400,
spam; Murphy 2012, section 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import LabelledDocuments
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.product import LabelledStats
from bayeszoo.distributions.information import information_of_words
from bayeszoo.families.classes.model import ClassConditional
from bayeszoo.model import Axes, Example, Values, plain, positive

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.statistics.declaration", suppress_warning=True)


@dataclass(frozen=True)
class NaiveBayesText(ClassConditional):
    """Documents of K classes, with Dirichlet priors on the shares of the classes and on the words of each.

    Parameters
    ----------
    eta : float, list of float, or list of lists
        Concentration of the prior of the words, > 0: for all, for each word, or for each class and word.
    alpha : float or list of float
        Concentration of the prior of the shares, > 0, one for all classes or one each.
    """

    eta: float = positive(1.0, "prior eta", axes=("class", "count"))
    alpha: float = positive(1.0, "prior alpha", axes=("class",))

    inputs = LabelledDocuments("y")
    dims: ClassVar[Axes] = {"shares": ("class",), "theta": ("class", "count")}
    probabilities = ("shares", "theta")
    has_comparable_rows = False
    examples = (
        Example(
            "federalist_known.csv",
            "how often 74 function words occur in each of the 65 Federalist papers known to be by one of two authors",
            "Mosteller and Wallace 1964",
            {"target": "author"},
        ),
    )

    def features_law(self, labels: Values) -> Categorical:
        """Return the law of the words of a document in each class, with its prior."""
        return Categorical(("theta",), "counts", self.entries("eta", (len(labels["class"]), len(labels["count"]))))

    def fields_of_features(self, law: Categorical) -> dict[str, Any]:
        """Return the field that stands for the prior of the words."""
        return {"eta": plain(law.alpha)}

    def information(self, params: Values, data: Values) -> dict[str, np.ndarray]:
        """Return the mutual information (...) of the class and whether a word that is drawn is the one named."""
        return dict(zip(map(str, data["count"]), information_of_words(params["shares"], params["theta"]), strict=True))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Draw parameters from the prior and ``size`` documents; without known labels of 3 classes and 3 words."""
        known = {"class": "abc", "count": ("u", "v", "w")}
        labels = {name: np.array(self.labels.get(name, tuple(own)), dtype=str) for name, own in known.items()}
        params = self.prior(labels).rvs((), rng)
        y, lengths = rng.choice(len(labels["class"]), size, p=params["shares"]), rng.integers(3, 9, size)
        return params, {"y": y, "counts": rng.multinomial(lengths, params["theta"][y]) * 1.0, **labels}

    def _parameters(self, labels: Values) -> tuple[Any, Any]:
        """Declare the shares, and the probabilities of the words in each class."""
        shares = pm.Dirichlet("shares", self.entries("alpha", len(labels["class"])), dims="class")
        return shares, pm.Dirichlet("theta", self.features_law(labels).alpha, dims=self.dims["theta"])

    def declare(self, data: Values) -> Any:
        """Declare the class of each document, and the words that occur in it given its class."""
        document, word = np.nonzero(data["counts"])
        with pm.Model(coords=self.coords(data)) as model:
            shares, theta = self._parameters(data)
            pm.Categorical("y", shares, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
            each = pm.math.log(theta[data["y"][document], word])
            pm.Potential("words", pm.math.sum(data["counts"][document, word] * each))
        return model

    def compressed(self, stats: LabelledStats) -> Any:
        """Declare the density of classes and words from how often each occurs."""
        with pm.Model(coords=self.coords(stats.labels)) as model:
            pairs = zip(stats.parts, self._parameters(stats.labels), strict=True)
            pm.Potential("y", sum(declared.log_likelihood(part, p) for part, p in pairs))
        return model
