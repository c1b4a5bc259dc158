r"""Mixture of unigrams: clusters of documents: each document has one topic, a distribution of words.

    weights  ~ Dirichlet(alpha 1_K)
    topics_k ~ Dirichlet(eta)                    k = 1..K
    z_d      ~ Categorical(weights)              d = 1..N documents, summed out
    w_dn     ~ Categorical(topics_{z_d})         n = 1..N_d words

Nigam et al. 2000; Bishop, PRML, section 9.3.3; Murphy 2012, section 11.2; Blei, Ng and Jordan 2003, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Documents
from bayeszoo.families.documents.model import DocumentMixtureModel
from bayeszoo.model import Axes, Example, positive, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.likelihoods.ops.topics", suppress_warning=True)


@dataclass(frozen=True)
class MultinomialMixture(DocumentMixtureModel):
    """Documents from K topics, with Dirichlet priors on the weights of the topics and on the words of each.

    Parameters
    ----------
    K : int
        How many topics.
    alpha : float
        Concentration of the prior of the weights, > 0, the same for all topics.
    eta : float or list of float
        Concentration of the prior of each topic, > 0, one for all words or one each.
    """

    K: int = whole(2, "the number of topics K")
    alpha: float = positive(1.0, "prior alpha")
    eta: float = positive(1.0, "prior eta", axes=("word",))

    inputs = Documents("counts")
    dims: ClassVar[Axes] = {"weights": ("component",), "topics": ("component", "word")}
    probabilities = ("weights", "topics")
    examples = (
        Example(
            "federalist_words.csv",
            "how often 14 function words occur in each of the 85 Federalist papers",
            "Mosteller and Wallace 1964",
            {"columns": "upon,on,by,to,there,whilst,while,enough,of,the,and,in,an,this"},
        ),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights and topics from the prior (of three words if eta is one number), and documents given them."""
        eta = self.entries("eta", np.size(self.eta) if np.ndim(self.eta) else 3)
        params = {"weights": rng.dirichlet(np.full(self.K, self.alpha)), "topics": rng.dirichlet(eta, self.K)}
        topic, lengths = rng.choice(self.K, size, p=params["weights"]), rng.integers(3, 9, size)
        words = np.array([f"w{v + 1}" for v in range(len(eta))])
        return params, {"counts": rng.multinomial(lengths, params["topics"][topic]), "word": words}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one mixture of multinomials a document."""
        lengths = data["counts"].sum(axis=1)
        with pm.Model(coords=self.coords(data)) as model:
            weights = pm.Dirichlet("weights", np.full(self.K, self.alpha), dims="component")
            topics = pm.Dirichlet(
                "topics", np.tile(self.entries("eta", len(data["word"])), (self.K, 1)), dims=("component", "word")
            )
            each = [pm.Multinomial.dist(n=lengths, p=topics[k]) for k in range(self.K)]
            counts = pm.Data("counts_data", data["counts"], dims=("row", "word"))
            pm.Mixture("counts", w=weights, comp_dists=each, observed=counts, dims=("row", "word"))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the ordered words on a compiled likelihood of the words that occur."""
        cells = scipy.sparse.csr_array(data["counts"])
        with pm.Model() as model:
            weights = pm.Dirichlet("weights", pm.Data("alpha", np.full(self.K, self.alpha)))
            topics = pm.Dirichlet(
                "topics", pm.Data("eta", np.tile(self.entries("eta", len(data["word"])), (self.K, 1)))
            )
            parts = [pm.Data(name, getattr(cells, name)) for name in ("data", "indices", "indptr")]
            pm.Potential("counts", ours.multinomial_mixture_log_likelihood(weights, topics, parts))
        return model
