"""Documents that mix topics: steps of EM, variational Bayes, Gibbs sampling and enumeration.

Parameters are ``proportions`` (D, K) and ``topics`` (K, V); leading axes are draws. Densities are of the ordered words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

import lazy_loader
import numpy as np
import scipy

from bayeszoo.distributions.conjugate import dirichlet
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.product import Product, Several
from bayeszoo.distributions.special import log_rising
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import InputError
from bayeszoo.families.mixtures.base import spread_out, symmetrized
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.fields import plain

loops = lazy_loader.load("bayeszoo.likelihoods.loops.topics", suppress_warning=True)
gibbs_loops = lazy_loader.load("bayeszoo.likelihoods.loops.gibbs", suppress_warning=True)

PASSES = 8
"""Most steps of a document's q per step of the topics' q."""
SETTLED = 1e-3
"""A document has settled when its expected counts of topics change by less than this share of its length."""
MOST_PASSES, CONVERGED = 100, 1e-4
"""The same limits when the topics are held fixed."""
SMALLEST, LARGEST = 1e-6, 1e6
"""Limits of the search for a concentration; at a limit the bound has no maximum that could be located."""
MOST_WORDS, MOST_TO_START = 10**8, 10**6
"""Most word tokens whose topics are sampled, 2 GB per chain; and most in the chain that finds a start."""
MOST_ORDERS = 8
"""Most topics with which a density is averaged over the orders of their labels."""
SWEEPS = 40
"""Sweeps of the chain whose counts start a climb: climbs then end higher than from random starts, at equal cost.

The ELBO of 10 topics of the Federalist papers rises by 4,000 nats, that of 20 topics (eta 0.01) by 19,000.
"""


@dataclass(frozen=True, eq=False)
class TopicCounts:
    """Expected counts of topics in each document (D, K), and of each word (V, K)."""

    documents: np.ndarray
    words: np.ndarray

    @property
    def several(self) -> Several:
        """The counts as statistics of proportions and topics."""
        return Several((Counts(self.documents), Counts(self.words.T)))


class Dirichlets(Product):
    """Dirichlet distributions of proportions (D, K) and of topics (K, V); a prior has one row for all."""

    @classmethod
    def of(cls, proportions: np.ndarray, topics: np.ndarray) -> Self:
        """Return the distributions with these concentrations."""
        return cls((Categorical(("proportions",), "topic", proportions), Categorical(("topics",), "word", topics)))

    @property
    def proportions(self) -> Categorical:
        """The distribution of the topic proportions of each document."""
        return cast(Categorical, self.laws[0])

    @property
    def topics(self) -> Categorical:
        """The distribution of the word probabilities of each topic."""
        return cast(Categorical, self.laws[1])


@dataclass(frozen=True, eq=False)
class TopicFactors:
    """q(theta): Dirichlet distributions of the proportions of each document and of each topic.

    Concentrations are ``documents`` (D, K) and ``words`` (V, K), with the words as the first axis for the compiled
    loops; those of the priors are ``alpha`` (K,) and ``eta`` (V,).
    """

    documents: np.ndarray
    words: np.ndarray
    alpha: np.ndarray = field(repr=False)
    eta: np.ndarray = field(repr=False)

    @cached_property
    def table(self) -> tuple[np.ndarray, float]:
        """exp(E[log phi]), of shape (V, K), and the divergence of the topics from their prior."""
        return loops.dirichlet_table(self.words, self.eta)

    @property
    def divergence(self) -> float:
        """KL(q(theta) || prior), of proportions and topics."""
        prior = Dirichlets.of(self.alpha[None], self.eta[None])
        return self.dirichlets.proportions.divergence(prior.proportions) + float(self.table[1])

    @property
    def dirichlets(self) -> Dirichlets:
        """The distributions of proportions and topics."""
        return Dirichlets.of(self.documents, np.ascontiguousarray(self.words.T))

    @classmethod
    def posterior(cls, stats: TopicCounts, prior: Dirichlets) -> Self:
        """Return the posterior given expected counts."""
        posterior = prior.updated(stats.several)
        words = np.ascontiguousarray(posterior.topics.alpha.T)
        return cls(posterior.proportions.alpha, words, prior.proportions.alpha[0], prior.topics.alpha[0])

    def of_documents(self, documents: np.ndarray) -> TopicFactors:
        """Return q with other documents; the table of the topics is kept and not recomputed."""
        model = replace(self, documents=documents)
        model.__dict__["table"] = self.table
        return model


def cells_of(data: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts, codes of documents and codes of words in the types that compiled code needs."""
    return np.asarray(data["counts"], dtype=np.float64), np.asarray(data["doc"]), np.asarray(data["term"])


def lengths_of(data: Arrays) -> np.ndarray:
    """Return the number of words of each document, of shape (D,)."""
    return np.bincount(data["doc"], data["counts"], minlength=len(data["document"]))


def expectation(params: Params, data: Arrays) -> Expectation:
    """Return expected counts and the log likelihood at the parameters."""
    proportions, words = np.asarray(params["proportions"]), np.asarray(params["topics"]).T.copy()
    value, of_documents, of_words = loops.cell_sums(proportions, words, *cells_of(data))
    return Expectation(TopicCounts(proportions * of_documents, words * of_words), float(value))


def variational_expectation(
    q: TopicFactors, data: Arrays, passes: int = PASSES, settled: float = SETTLED
) -> Expectation:
    """Return expected counts, and the sum of the log normalizers of q(z) at q.

    The counts follow more steps of the documents' q with the topics held fixed (the E-step of Blei, Ng and Jordan
    2003). Each step raises the ELBO.
    """
    expectation = loops.variational_pass(q.alpha, q.documents, q.words, q.table[0], *cells_of(data), passes, settled)
    return Expectation(TopicCounts(*expectation[1:]), float(expectation[0]))


def with_documents(q: TopicFactors, data: Arrays) -> TopicFactors:
    """Return q with optimal proportions of these documents, topics held fixed; documents start with equal topics."""
    K = len(q.alpha)
    start = q.of_documents(q.alpha + lengths_of(data)[:, None] / K)
    expectation = variational_expectation(start, data, MOST_PASSES, CONVERGED)
    return q.of_documents(q.alpha + expectation.stats.documents)


def log_documents(params: Params, data: Arrays) -> np.ndarray:
    """Return the log density of the ordered words of each document, of shape (..., D)."""
    arrays = [np.asarray(params[name], dtype=np.float64) for name in ("proportions", "topics")]
    flat = [np.ascontiguousarray(values.reshape(-1, *values.shape[-2:])) for values in arrays]
    require_documents(params, data)
    return np.asarray(loops.log_documents(*flat, *cells_of(data))).reshape(arrays[0].shape[:-1])


def require_documents(params: Params, data: Arrays) -> None:
    """Refuse data whose number of documents differs from that of the proportions."""
    fitted, documents = np.shape(params["proportions"])[-2], len(data["document"])
    if fitted != documents:
        raise InputError(f"the proportions are of {fitted} documents, the data have {documents}", "wrong_shape")


def log_density(q: TopicFactors, params: Params, exchangeable: bool) -> np.ndarray:
    """Return log q(theta), averaged over the orders of the labels if topics are ``exchangeable`` and few."""
    if not exchangeable or len(q.alpha) > MOST_ORDERS:
        return np.asarray(q.dirichlets.logpdf(params))
    return symmetrized(q.dirichlets.proportions, params, q.dirichlets.topics.log_pairs(params))


def label_free(params: Params, data: Arrays) -> dict[str, np.ndarray]:
    """Return quantities that do not depend on the labels: likelihoods, likeness of documents, and sizes of topics."""
    theta, log_p, lengths = np.asarray(params["proportions"]), log_documents(params, data), lengths_of(data)
    D = len(lengths)
    rows = spread_out(D, 20)
    shares = np.einsum("...dk,d->...k", theta, lengths / lengths.sum())
    return {
        "sorted_shares": np.sort(shares, axis=-1),
        "log_likelihood": log_p.sum(axis=-1),
        "log_density": log_p[..., spread_out(D, 10)],
        "together": np.sum(theta[..., rows, :] * theta[..., (rows + max(1, D // 2)) % D, :], axis=-1),
    }


def log_coefficient(data: Arrays) -> float:
    """Return the log of the number of orders of the words in the documents."""
    return float(np.sum(log_rising(1.0, lengths_of(data))) - np.sum(log_rising(1.0, data["counts"])))


class TopicChain:
    """Collapsed Gibbs sampling of the topics of the words, with concentrations ``alpha`` (K,) and ``eta`` (V,).

    Proportions and topics are integrated out, and drawn exactly given the topics of the words (Griffiths and Steyvers
    2004, PNAS 101, 5228-5235). ``topic`` (words,) holds the topics of the words, in the order of the cells. The same
    generator gives the same chain. At the start each word is drawn given the words before it, which is nearer to the
    posterior than random topics; the order of the documents is random, so that chains start far apart.
    """

    def __init__(self, data: Arrays, alpha: np.ndarray, eta: np.ndarray, rng: np.random.Generator) -> None:
        D, V, K = len(data["document"]), len(data["word"]), len(alpha)
        self._alpha, self._eta, self._rng = np.array(alpha, dtype=np.float64), np.array(eta, dtype=np.float64), rng
        self._prior = Dirichlets.of(self._alpha[None], self._eta[None])
        self._order = rng.permutation(D)
        lengths = np.bincount(data["doc"], data["counts"], minlength=D).astype(np.int64)
        if lengths.sum() > MOST_WORDS:
            raise InputError(
                f"gibbs samples the topic of each word, and there are {lengths.sum()}, more than {MOST_WORDS}",
                "too_large",
                hint="use --method vb, whose cost is that of the distinct words of each document",
            )
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        self._doc, self._term = (codes.astype(np.int32) for codes in tokens(data))
        self._places = np.argsort(self._term, kind="stable").astype(np.int32)
        self._word_starts = np.searchsorted(self._term[self._places], np.arange(V + 1))
        self._in_document, self._total = np.zeros((D, K)), np.zeros(K)
        self._of_word = np.zeros((V, -(-K // gibbs_loops.BLOCK) * gibbs_loops.BLOCK))
        self.topic = np.full(len(self._term), -1, dtype=np.int32)
        self.sweep(1)

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw the topic of every word, in N sweeps, from probabilities raised to a power of at most 1.

        Each word is drawn alone and then, at a power of 1, jointly with all its other occurrences. Without the joint
        step, chains of the Federalist papers need ten times as many sweeps per effective draw.
        """
        words, counts = (self._order, self._starts, self._term), (self._in_document, self._of_word, self._total)
        alike = self._places, self._word_starts, self._doc
        for _ in range(times):
            gibbs_loops.sweep(self.topic, *words, self._alpha, self._eta, *counts, power, self._rng)
            if power == 1.0:
                gibbs_loops.sweep_words(self.topic, *alike, self._alpha, self._eta, *counts, self._rng)

    def draw(self) -> dict[str, np.ndarray]:
        """Draw ``proportions`` (D, K) and ``topics`` (K, V) given the topics of the words."""
        return self._prior.updated(self.counts.several).rvs((), self._rng)

    @property
    def counts(self) -> TopicCounts:
        """The counts of topics in each document and of each word."""
        return TopicCounts(self._in_document.copy(), self._of_word[:, : len(self._alpha)].copy())

    @property
    def log_joint(self) -> float:
        """Log p(w, z) of the ordered words and their topics; proportions and topics are integrated out."""
        pairs = (self._alpha, self._in_document), (self._eta, self._of_word[:, : len(self._alpha)].T)
        return sum(dirichlet.log_ratio_where_seen(*pair) for pair in pairs)


def counts_to_start(data: Arrays, alpha: np.ndarray, eta: np.ndarray, rng: np.random.Generator) -> TopicCounts:
    """Return the counts of a short chain, from which to climb; in a large corpus the chain has fewer words."""
    factor = max(1, int(data["counts"].sum()) // MOST_TO_START)
    factor = factor if factor >= 10 else 1
    chain = TopicChain({**data, "counts": -(-data["counts"] // factor)}, alpha, eta, rng)
    chain.sweep(SWEEPS)
    return TopicCounts(factor * chain.counts.documents, factor * chain.counts.words)


# Enumeration of the topics of all words of a tiny corpus


def tokens(data: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return the document and the word of each of the N word tokens, both (N,)."""
    return np.repeat(data["doc"], data["counts"]), np.repeat(data["term"], data["counts"])


def shortened(data: Arrays, words: int) -> dict[str, np.ndarray]:
    """Return the first documents, cut to at most ``words`` tokens, five per document and two per word in a document."""
    twice = {**data, "counts": np.minimum(data["counts"], 2)}
    documents, _ = tokens(twice)
    place = np.arange(len(documents)) - np.searchsorted(documents, documents)  # in its document
    cells = np.repeat(np.arange(len(data["counts"])), twice["counts"])[place < 5][:words]
    kept, counts = np.unique(cells, return_counts=True)
    doc = data["doc"][kept]
    arrays = {"counts": counts, "doc": doc, "term": data["term"][kept]}
    return {**arrays, "document": data["document"][: doc.max(initial=0) + 1], "word": data["word"]}


def excerpt(data: Arrays, documents: int = 10, words: int = 8) -> dict[str, np.ndarray]:
    """Return evenly spread documents, with only the words that are most frequent in the corpus."""
    rows = spread_out(len(data["document"]), documents)
    often = np.bincount(data["term"], data["counts"], minlength=len(data["word"]))
    columns = np.sort(np.argsort(-often, kind="stable")[:words])
    cells = np.isin(data["doc"], rows) & np.isin(data["term"], columns)
    codes = {"doc": np.searchsorted(rows, data["doc"][cells]), "term": np.searchsorted(columns, data["term"][cells])}
    return {"counts": data["counts"][cells], **codes, "document": data["document"][rows], "word": data["word"][columns]}


def _tables(assignments: np.ndarray, labels: np.ndarray, K: int) -> np.ndarray:
    """Count topics by label: shape (M, labels, K) of assignments (M, N) and labels (N,)."""
    M, size = len(assignments), int(labels.max(initial=-1)) + 1
    cells = (np.arange(M)[:, None] * size + labels) * K + assignments
    return np.bincount(cells.ravel(), minlength=M * size * K).reshape(M, size, K)


def log_joint(assignments: np.ndarray, data: Arrays, alpha: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Return log p(w, z), parameters integrated out, of shape (M,) (Griffiths and Steyvers 2004, equations 2 and 3)."""
    (documents, words), K = tokens(data), len(alpha)
    used, words = np.unique(words, return_inverse=True)
    unused = np.delete(eta, used).sum(keepdims=True)  # all words that do not occur count as one
    prior = Dirichlets.of(alpha[None], np.append(eta[used], unused[unused > 0])[None])
    of_words = np.zeros((len(assignments), K, prior.topics.alpha.shape[-1]))
    of_words[..., : len(used)] = np.swapaxes(_tables(assignments, words, K), 1, 2)
    counts = _tables(assignments, documents, K), of_words
    pairs = zip(prior.blocks, counts, strict=True)
    return np.asarray(sum(block.log_evidence(Counts(table)).sum(axis=-1) for block, table in pairs))


def log_complete(params: Params, assignments: np.ndarray, data: Arrays) -> np.ndarray:
    """Return log p(w, z | theta) of assignments (M, N) at one theta; shape (M,)."""
    documents, words = tokens(data)
    p = params["proportions"][documents, assignments] * params["topics"][assignments, words]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p).sum(axis=-1))


def counts_of(assignment: np.ndarray, data: Arrays, K: int) -> TopicCounts:
    """Return the counts of one assignment of the words to topics, of shape (N,)."""
    pairs = zip(tokens(data), (data["document"], data["word"]), strict=True)
    flat = [(codes * K + assignment, len(labels) * K) for codes, labels in pairs]
    tables = [np.bincount(cells, minlength=size).reshape(-1, K).astype(np.float64) for cells, size in flat]
    return TopicCounts(*tables)


def modes(stats: TopicCounts, prior: Dirichlets, flat: bool = False) -> dict[str, np.ndarray]:
    """Return the mode given expected counts, or with ``flat`` their shares; equal in a document without words.

    Raises `NumericalError` if the density is unbounded, or a topic has no words.
    """
    alpha = 1.0 if flat else prior.proportions.alpha
    is_empty = np.all(stats.documents + (alpha - 1) == 0, axis=-1, keepdims=True)  # all proportions are equally likely
    several = replace(stats, documents=stats.documents + is_empty).several
    return prior.mle(several) if flat else prior.updated(several).mode()


# The concentration of the prior of Dirichlet rows that maximizes the ELBO


def best_concentration(rows: np.ndarray, before: Any) -> Any:
    """Return the concentration, 1e-6 to 1e6, of the prior that maximizes the expected log density of all rows.

    q of each row is Dirichlet, with concentrations ``rows`` (rows, K). The prior has one number for all entries if
    ``before``, its previous value, is one number, else one per entry. The sum over rows of E[log Dirichlet(p; alpha)]
    is concave, and its slope is 0 where digamma(alpha_k) = digamma(sum of alpha) + mean of E[log p_k]: Minka 2000
    (revised 2012), "Estimating a Dirichlet distribution", section 1.
    """
    means = dirichlet.expected_log(rows).mean(axis=0)
    if (K := len(means)) == 1:
        return before  # the density does not depend on it
    if np.ndim(before) == 0:
        digamma = scipy.special.digamma
        return np.float64(_root(lambda a: K * (digamma(K * a) - digamma(a)) + means.sum(), SMALLEST, LARGEST))

    def entries(total: float) -> np.ndarray:
        return np.clip(_inverse_digamma(scipy.special.digamma(total) + means), SMALLEST, LARGEST)

    return plain(entries(_root(lambda total: np.log(entries(total).sum() / total), K * SMALLEST, K * LARGEST)))


def _root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a falling slope between ``low`` and ``high``, or the nearer end if there is none."""
    if slope(high) >= 0 or slope(low) <= 0:
        return high if slope(high) >= 0 else low
    options = {"xtol": 1e-14, "rtol": 1e-14}
    return float(np.exp(scipy.optimize.brentq(lambda x: slope(np.exp(x)), np.log(low), np.log(high), **options)))


def _inverse_digamma(y: np.ndarray) -> np.ndarray:
    """Return x > 0 with digamma(x) = y by Newton's steps, each of which doubles the digits (Minka, appendix C)."""
    x = np.where(y >= -2.22, np.exp(y) + 0.5, -1 / (np.minimum(y, -2.22) - scipy.special.digamma(1.0)))
    for _ in range(5):
        x = x - (scipy.special.digamma(x) - y) / scipy.special.polygamma(1, x)
    return np.asarray(x)
