r"""Latent Dirichlet allocation: topic model: each document mixes topics, each topic is a distribution of words.

    proportions_d ~ Dirichlet(alpha)                    d = 1..D documents
    topics_k      ~ Dirichlet(eta)                      k = 1..K
    z_dn          ~ Categorical(proportions_d)          n = 1..N_d words, summed out
    w_dn          ~ Categorical(topics_{z_dn})

Blei, Ng and Jordan 2003; Griffiths and Steyvers 2004; Murphy 2012, section 27.3. Under a flat prior its maximum
likelihood is probabilistic latent semantic analysis (Hofmann 1999).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Corpus
from bayeszoo.errors import InputError
from bayeszoo.families.documents import scores as topic_scores
from bayeszoo.families.documents import topic_model
from bayeszoo.families.documents.topic_model import Dirichlets, TopicCounts, TopicFactors
from bayeszoo.model import (
    EM,
    Additive,
    Axes,
    Collapsed,
    Enumerable,
    Example,
    Expectation,
    GibbsChain,
    Posterior,
    Stochastic,
    Symmetric,
    View,
    positive,
    whole,
)
from bayeszoo.model.types import Arrays, DeclaredModel, Params, Simulated

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.likelihoods.ops.topics", suppress_warning=True)


@dataclass(frozen=True)
class LDA(EM, Stochastic, Additive, Enumerable, Collapsed, Symmetric):
    """Documents that mix K topics, with Dirichlet priors on the proportions of each and on the words of each topic.

    Parameters
    ----------
    K : int
        How many topics.
    alpha : float or list of float
        Concentration of the prior of each document's proportions, > 0, one for all topics or one each.
    eta : float or list of float
        Concentration of the prior of each topic, > 0, one for all words or one each.
    """

    K: int = whole(2, "the number of topics K")
    alpha: float = positive(0.1, "prior alpha", axes=("topic",))
    eta: float = positive(0.1, "prior eta", axes=("word",))

    inputs = Corpus()
    dims: ClassVar[Axes] = {"proportions": ("document", "topic"), "topics": ("topic", "word")}
    chosen_by_vb = ("alpha", "eta")
    latent_unit = "word"
    gibbs_options: ClassVar[dict[str, int]] = {"thin": 4}
    probabilities = ("proportions", "topics")
    examples = (
        Example(
            "federalist.csv.gz",
            "the 85 Federalist papers, without common words and those in fewer than 3 papers or in more than half",
            "Hamilton, Madison and Jay 1787-1788; Mosteller and Wallace 1964",
            {"text": "text", "document": "number", "stop_words": "english", "min_documents": "3", "max_share": "0.5"},
        ),
    )

    def views(self) -> frozenset[View]:
        """Show the words of the topics."""
        return super().views() | {View.TOPICS}

    def coords(self, data: Arrays) -> dict[str, Any]:
        """Return the documents, the words, and the numbers of the topics."""
        return {**super().coords(data), "topic": np.arange(1, self.K + 1)}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the numbers of documents, words and topics."""
        return {**super().sizes(data), "topic": self.K}

    def _priors(self, words: int) -> tuple[np.ndarray, np.ndarray]:
        if np.shape(self.alpha) not in ((), (self.K,)):
            raise InputError(f"prior alpha has {np.size(self.alpha)} entries, there are {self.K} topics", "wrong_shape")
        return self.entries("alpha", self.K), self.entries("eta", words)

    def _prior(self, words: int) -> Dirichlets:
        alpha, eta = self._priors(words)
        return Dirichlets.of(alpha[None], eta[None])

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw proportions and topics from the prior (of four words if eta is one number), and documents given them.

        A few documents are of two or three words, so that all assignments of these can be gone through.
        """
        V = np.size(self.eta) if np.ndim(self.eta) else 4
        labels = {"document": [f"d{d + 1}" for d in range(size)], "word": [f"w{v + 1}" for v in range(V)]}
        alpha, eta = self._priors(V)
        params = {"proportions": rng.dirichlet(alpha, size), "topics": rng.dirichlet(eta, self.K)}
        lengths = 2 + np.arange(size) % 2 if size <= 5 else rng.integers(8, 20, size)
        counts = rng.multinomial(lengths, params["proportions"] @ params["topics"])
        doc, term = np.nonzero(counts)
        coords = {name: np.array(values) for name, values in labels.items()}
        return params, {"counts": counts[doc, term], "doc": doc, "term": term, **coords}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare a multinomial distribution a document, of a table of all documents and words."""
        (alpha, eta), D = self._priors(len(data["word"])), len(data["document"])
        table = np.zeros((D, len(data["word"])), dtype=np.int64)
        table[data["doc"], data["term"]] = data["counts"]
        with pm.Model(coords=self.coords(data)) as model:
            proportions = pm.Dirichlet("proportions", np.tile(alpha, (D, 1)), dims=self.dims["proportions"])
            topics = pm.Dirichlet("topics", np.tile(eta, (self.K, 1)), dims=self.dims["topics"])
            words = (proportions[:, :, None] * topics[None, :, :]).sum(axis=1)
            counts = pm.Data("counts_data", table, dims=("document", "word"))
            pm.Multinomial("counts", n=table.sum(axis=1), p=words, observed=counts, dims=("document", "word"))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the ordered words on a compiled likelihood of the words that occur."""
        alpha, eta = self._priors(len(data["word"]))
        with pm.Model() as model:
            prior = pm.Data("alpha", np.tile(alpha, (len(data["document"]), 1)))
            proportions = pm.Dirichlet("proportions", prior)
            topics = pm.Dirichlet("topics", pm.Data("eta", np.tile(eta, (self.K, 1))))
            cells = zip(("counts_data", "doc", "term"), topic_model.cells_of(data), strict=True)
            parts = [pm.Data(name, values) for name, values in cells]
            pm.Potential("counts", ours.lda_log_likelihood(proportions, topics, parts))
        return model

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log of how many ordered documents the counts stand for."""
        return topic_model.log_coefficient(data)

    def log_prior(self, params: Params, data: Arrays) -> np.ndarray:
        """Log density of proportions and topics; leading axes are draws."""
        return np.asarray(self._prior(len(data["word"])).logpdf(params))

    def undetermined(self, params: Params, data: Any, stats: TopicCounts, flat: bool) -> str:
        """Return why other topics are as likely: too few documents or words tell the topics apart."""
        ranks = [np.linalg.matrix_rank(params[name]) for name in ("proportions", "topics")]
        return f"the documents tell {min(ranks)} of {self.K} topics apart" if flat and min(ranks) < self.K else ""

    def free_parameters(self, stats: Any) -> int:
        """Return D (K - 1) proportions and K (V - 1) probabilities of words."""
        return len(stats["document"]) * (self.K - 1) + self.K * (len(stats["word"]) - 1)

    def cost(self, data: Arrays) -> float:
        """Return how many probabilities of a topic a step looks at: from it follows how far engines climb."""
        return float(len(data["counts"]) * (self.K + 10))

    def unbounded(self, data: Arrays) -> str:
        """Say why the posterior density has no maximum; nothing where it has one."""
        of_topics = "alpha < 1: it grows without bound as the share of a topic in a document goes to 0"
        of_words = "eta < 1: it grows without bound as the probability of a word goes to 0"
        return of_topics * bool(np.min(self.alpha) < 1 and self.K > 1) or of_words * bool(np.min(self.eta) < 1)

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return parameters to climb from: of a short Gibbs chain of sparse topics, whatever the prior."""
        K, V = self.K, len(data["word"])
        counts = topic_model.counts_to_start(data, np.full(K, 0.1), np.full(V, 0.1), rng)
        return topic_model.modes(counts, Dirichlets.of(np.full((1, K), 1.5), np.full((1, V), 1.5)))

    def e_step(self, params: Params, data: Arrays) -> Expectation:
        """Return expected counts and the log likelihood at the parameters."""
        return topic_model.expectation(params, data)

    def m_step(self, stats: TopicCounts, flat: bool = False) -> dict[str, np.ndarray]:
        """Return shares of the expected counts and, unless ``flat``, pseudo-counts alpha - 1 and eta - 1."""
        return topic_model.modes(stats, self._prior(len(stats.words)), flat)

    def pooled(self, stats: TopicCounts, other: TopicCounts) -> TopicCounts:
        """Return the expected counts of both parts of the documents, which keep their own."""
        return TopicCounts(np.concatenate([stats.documents, other.documents]), stats.words + other.words)

    def of_rows(self, at: Any, change: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Return parameters or q(theta), their arrays of documents, (..., documents, K), changed by a function."""
        if isinstance(at, TopicFactors):
            return at.of_documents(change(at.documents))
        return {**at, "proportions": change(at["proportions"])}

    def log_rows(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of the ordered words of each document; leading axes are draws."""
        return topic_model.log_documents(params, data)

    def vb_start(self, data: Arrays, rng: np.random.Generator) -> TopicFactors:
        """Return q(theta) to climb from: the posterior given a state of a short Gibbs chain."""
        return self.vb_m_step(topic_model.counts_to_start(data, *self._priors(len(data["word"])), rng))

    def vb_e_step(self, q: TopicFactors, data: Arrays) -> Expectation:
        """Return expected counts after some steps of the documents' q, and the sum of log normalizers of q(z) at q."""
        return topic_model.variational_expectation(q, data)

    def vb_m_step(self, stats: TopicCounts) -> TopicFactors:
        """Return q(theta): Dirichlet concentrations of proportions and topics."""
        return TopicFactors.posterior(stats, self._prior(len(stats.words)))

    def divergence(self, q: TopicFactors) -> float:
        """Return KL(q(theta) || prior)."""
        return q.divergence

    def vb_posterior(self, q: TopicFactors) -> Posterior:
        """Return q(theta): independent Dirichlet distributions."""
        return q.dirichlets.posterior()

    def vb_log_density(self, q: TopicFactors, params: Params) -> np.ndarray:
        """Log density of q(theta), of few topics averaged over the orders of the labels; leading axes are draws."""
        return topic_model.log_density(q, params, self.exchangeable_axis() is not None)

    def vb_local(self, q: TopicFactors, data: Arrays) -> TopicFactors:
        """Return q with the best proportions of these documents, its topics held."""
        return topic_model.with_documents(q, data)

    def vb_scaled(self, stats: TopicCounts, factor: float) -> TopicCounts:
        """Return the expected counts of N times as many documents."""
        return TopicCounts(stats.documents, factor * stats.words)

    def vb_mixed(self, q: TopicFactors, other: TopicFactors, share: float) -> TopicFactors:
        """Return a mean of the natural parameters of the topics, with so much of the other."""
        return replace(q, words=(1 - share) * q.words + share * other.words)

    def vb_choose(self, q: TopicFactors, over: Sequence[str]) -> tuple[LDA, TopicFactors]:
        """Return the model whose fields named in ``over`` make the ELBO largest at q, and q under its prior."""
        tables = {"alpha": q.documents, "eta": q.words.T}
        fields = {name: topic_model.best_concentration(tables[name], getattr(self, name)) for name in over}
        model = replace(self, **fields)
        return model, replace(q, **{name: model.entries(name, tables[name].shape[1]) for name in tables})

    def component_probabilities(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the proportions of the topics in each document of the fit, of shape (..., D, K)."""
        topic_model.require_documents(params, data)
        return np.asarray(params["proportions"])

    def exchangeable_axis(self) -> str | None:
        """Return the axis whose labels mean nothing, unless alpha tells the topics apart."""
        return "topic" if self.K > 1 and np.ptp(self.alpha) == 0 else None

    def invariants(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return quantities that do not depend on the labels; leading axes are draws."""
        return topic_model.label_free(params, data)

    def one_component(self) -> LDA:
        """Return the model of one topic, with nothing hidden: the unigram model."""
        return replace(self, K=1, alpha=np.float64(np.ravel(self.alpha)[0]))

    def latents(self, data: Arrays) -> int:
        """Return how many words have a topic to be summed over."""
        return int(np.sum(data["counts"]))

    def excerpt(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return some documents and their most frequent words, on which a table of all words can be declared."""
        return topic_model.excerpt(data)

    def shortened(self, data: Arrays, words: int) -> dict[str, np.ndarray]:
        """Return a corpus of so few words, with this vocabulary, that all assignments can be gone through."""
        return topic_model.shortened(data, words)

    def log_joint(self, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(w, z), parameters integrated out, of shape (M,) for assignments of shape (M, words)."""
        return topic_model.log_joint(assignments, data, *self._priors(len(data["word"])))

    def log_complete(self, params: Params, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(w, z | theta), of shape (M,) for assignments of shape (M, words)."""
        return topic_model.log_complete(params, assignments, data)

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> GibbsChain:
        """Return a chain over the topics of the words, parameters integrated out, started at random."""
        return topic_model.TopicChain(data, *self._priors(len(data["word"])), rng)

    def own_parameters(self, params: Params, new: Arrays, rng: np.random.Generator | None) -> dict[str, np.ndarray]:
        """Draw the proportions of documents that the fit has not seen, (..., documents, K), given their words."""
        if rng is None:
            return super().own_parameters(params, new, rng)
        return {"proportions": topic_scores.fold_in(params["topics"], self.entries("alpha", self.K), new, rng)}

    def posterior_given(self, assignment: np.ndarray, data: Arrays) -> Posterior:
        """Return the posterior of the parameters given the topic of each word: independent Dirichlet distributions."""
        return self.vb_posterior(self.vb_m_step(topic_model.counts_of(assignment, data, self.K)))
