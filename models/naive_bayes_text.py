r"""Naive Bayes of documents: how often each word occurs depends on the class alone.

    shares ~ Dirichlet(alpha)                    of K classes
    c_d    ~ Categorical(shares)                 d = 1..N documents, of known length_d

Multinomial, each word of a document is drawn from the distribution of words of its class:

    theta_k ~ Dirichlet(eta)                     k = 1..K, of the words
    w_dn    ~ Categorical(theta_{c_d})           n = 1..N_d words, whose number is known

Poisson, words occur independently; negative binomial, their rates are drawn anew for each unit of length:

    rates_kv ~ Gamma(a, rate b);                 n_dv ~ Poisson(length_d rates_{c_d v})
    p_kv     ~ Beta(size b, a);                  n_dv ~ NegativeBinomial(size length_d, p_{c_d v})

Multinomial densities are of the ordered words. Given the other documents, the words of one are Dirichlet-multinomial in
each class, or negative binomial, or beta-negative binomial: a word that occurs is expected again. Mosteller and Wallace
1964; McCallum and Nigam 1998; CS725, lecture 25; W4400, spam; Murphy 2012, section 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import LabelledDocuments
from bayeszoo.distributions.conjugate.product import LabelledStats
from bayeszoo.families.classes.model import ClassConditional
from bayeszoo.families.classes.words import WordCounts
from bayeszoo.model import Example, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.statistics.declaration", suppress_warning=True)


@dataclass(frozen=True)
class NaiveBayesText(WordCounts, ClassConditional):
    """Documents of K classes, with conjugate priors on the shares of the classes and on the words of each.

    Parameters
    ----------
    eta : float, list of float, or list of lists
        Concentration of the prior of the words, > 0: for all, for each word, or for each class and word. Of multinomial
        counts.
    a, b : float, list of float, or list of lists
        Shape and rate of the prior of the rate of a word, > 0: as ``a`` occurrences in a document of length ``b``. Of
        other counts.
    size : float
        By how much negative binomial counts vary, > 0: a count of mean m in a document of length 1 has the variance
        m + m^2 / size.
    counts : str
        ``"multinomial"``, ``"poisson"`` or ``"negative_binomial"``.
    alpha : float or list of float
        Concentration of the prior of the shares, > 0, one for all classes or one each.
    """

    alpha: float = positive(1.0, "prior alpha", axes=("class",))

    inputs = LabelledDocuments("y")
    nonnegative, probabilities = ("rates",), ("shares", "theta", "p")
    examples = (
        Example(
            "federalist_known.csv",
            "how often 74 function words occur in each of the 65 Federalist papers known to be by one of two authors",
            "Mosteller and Wallace 1964",
            {"target": "author"},
        ),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior and ``size`` documents; without known labels of 3 classes and 3 words."""
        known = {"word": ("u", "v", "w"), "class": "abc"}
        labels = {name: np.array(self.labels.get(name, tuple(own)), dtype=str) for name, own in known.items()}
        params = self.prior(labels).rvs((), rng)
        y, length = rng.choice(len(labels["class"]), size, p=params["shares"]), rng.integers(3, 9, size)
        counts = self.draw_counts(params, y, length, rng)
        doc, term = np.nonzero(counts)
        cells = {"counts": counts[doc, term], "doc": doc, "term": term}
        return params, {"y": y, "length": length * 1.0, **cells, **labels}

    def _parameters(self, labels: Arrays) -> tuple[Any, Any]:
        """Declare the shares, and the parameters of the words in each class."""
        shares = pm.Dirichlet("shares", self.entries("alpha", len(labels["class"])), dims="class")
        block: Any = self.features_law(labels).blocks[0]
        dims = ("class", "word")
        if self.counts == "multinomial":
            return shares, pm.Dirichlet("theta", block.alpha, dims=dims)
        if self.counts == "poisson":
            return shares, pm.Gamma("rates", alpha=block.a, beta=block.b, dims=dims)
        return shares, pm.Beta("p", alpha=block.a, beta=block.b, dims=dims)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the class of each document, and the words that occur in it given its class."""
        y, doc, word = (data[name] for name in ("y", "doc", "term"))
        with pm.Model(coords=self.coords(data)) as model:
            shares, words = self._parameters(data)
            pm.Categorical("y", shares, observed=pm.Data("y_data", y, dims="row"), dims="row")
            if self.counts == "multinomial":
                pm.Potential("words", pm.math.sum(data["counts"] * pm.math.log(words[y[doc], word])))
                return model
            table, rows = self.rows_of(data)["counts"].toarray(), np.flatnonzero(data["length"])
            length, own = data["length"][rows, None], words[y[rows]]
            if self.counts == "poisson":
                pm.Poisson("words", length * own, observed=table[rows])
            else:
                pm.NegativeBinomial("words", n=self.size * length, p=own, observed=table[rows])
        return model

    def compressed(self, stats: LabelledStats) -> DeclaredModel:
        """Declare the density of classes and words from how often each occurs."""
        with pm.Model(coords=self.coords(stats.labels)) as model:
            pairs = zip(stats.parts, self._parameters(stats.labels), strict=True)
            pm.Potential("y", sum(declared.log_likelihood(part, p) for part, p in pairs))
        return model
