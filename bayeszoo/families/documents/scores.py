"""Scores of topics: the probability of documents that were held out, and the coherence of their most probable words.

A score is of documents that the topics were not fitted to: of all their words, left to right, or of one half of them
given the other. Neither is an ELBO, a bound of unknown tightness; perplexity is exp(-score a word) of these two.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import lazy_loader
import numpy as np
import scipy

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import k_hat_limit, pareto_k
from bayeszoo.foundation.named import Arrays

loops = lazy_loader.load("bayeszoo.likelihoods.loops.left_to_right", suppress_warning=True)

PARTICLES, RUNS = 20, 10
TIMES, ROUNDS = 4, 2
"""By how much there are more particles, and how often, for documents whose probability would be withheld."""
CHAINS, TUNE, SWEEPS = 4, 50, 250
MOST_ERROR = 0.5
"""Relative error of a probability above which it is withheld: hardly four draws carry its mean."""
LEAST_TAIL = 25
"""Draws from which on there is a tail to look at."""


class DocumentScores(NamedTuple):
    """How probable documents are that topics were not fitted to.

    Of each document, (documents,): the log probability of the words that are scored, in nats, 0 where there are none
    and NaN where it is withheld, as too few of the draws carry the average; its Monte Carlo standard error; how many
    words are scored. ``mcse_total`` is of the sum over all documents, which share the draws of the topics.
    ``withheld`` says why the log probability of a document is, "" where it is not.

    From left to right also ``bound`` (documents,), the mean over draws of the log of the estimate. In expectation it is
    at most the log of the mean, so that it can be said also where that is withheld, as it mostly is of long documents
    and several draws: their probabilities differ by many powers of e.
    """

    log_p: np.ndarray
    mcse: np.ndarray
    words: np.ndarray
    mcse_total: float
    withheld: np.ndarray
    bound: np.ndarray | None = None


def left_to_right(
    data: Arrays,
    topics: np.ndarray,
    alpha: np.ndarray,
    rng: np.random.Generator,
    *,
    particles: int = PARTICLES,
    runs: int = RUNS,
) -> DocumentScores:
    """Estimate log p(document | topics, alpha) word by word, proportions and topics of the words summed out.

    Topics are of shape (K, V), or (chains, draws, K, V), over which the probability of a document is averaged. Of one
    table there are ``runs`` independent estimates, whose spread is the Monte Carlo error, and four and then sixteen
    times as many particles for documents that would else be withheld; of several draws there is one run each. A
    document is withheld where a few runs outweigh the others: the relative error of its probability is above 0.5, or
    the Pareto shape of the draws above the limit of the gate.

    Wallach, Murray, Salakhutdinov and Mimno (2009), Evaluation methods for topic models, ICML, algorithm 3. As it
    stands the mean over particles of each factor is biased; here particles are resampled by their factors, which makes
    the product unbiased for the probability of the document (a particle filter with moves). Buntine (2009, Estimating
    likelihoods for topic models, ACML) averages the products of single particles instead: ``particles=1``, which has a
    larger variance. Words come in random order. Before each of them the topics of at most `loops.MOVES` of those before
    are drawn anew, in turn: cost is linear in the length of a document.
    """
    bounds, term = _words(data)
    tables = topics.reshape(-1, *topics.shape[-2:]).mT
    if len(tables) > 1:
        by_draw = (np.ascontiguousarray(table) for table in tables)
        each = [loops.left_to_right(bounds, term, table, alpha, 1, particles, rng) for table in by_draw]
        return _log_means(np.reshape(each, (*topics.shape[:-2], -1)), np.diff(bounds), independent=False)
    table = np.ascontiguousarray(tables[0])

    def estimates(d: int, size: int) -> np.ndarray:
        drawn: np.ndarray = loops.left_to_right(bounds[d : d + 2], term, table, alpha, runs, size, rng)
        return drawn[:, 0]

    return _of_one_draw(np.diff(bounds), estimates, particles)


def _of_one_draw(words: np.ndarray, estimates: Callable[[int, int], np.ndarray], particles: int) -> DocumentScores:
    """Estimate each document's probability by runs of N particles, or more where a few runs outweigh the others.

    ``estimates(d, particles)`` returns logs of shape (runs,).
    """
    scores = np.array([estimates(d, particles) for d in range(len(words))])
    for _ in range(ROUNDS):
        particles *= TIMES
        for d in np.flatnonzero(np.isnan(_log_means(scores.T[None], words, independent=True).log_p)):
            scores[d] = estimates(int(d), particles)
    return _log_means(scores.T[None], words, independent=True)


def document_completion(
    data: Arrays,
    topics: np.ndarray,
    alpha: np.ndarray,
    rng: np.random.Generator,
    *,
    tune: int = TUNE,
    sweeps: int = SWEEPS,
) -> DocumentScores:
    """Score one half of each document's words, chosen at random, given the other half.

    Each word is scored by itself: the log of its mean probability given the words of the half that is seen. ``tune``
    sweeps of Gibbs sampling come before ``sweeps`` that count, of each of four chains; of several draws of the topics
    each has one chain, and all of them together have four times as many sweeps.

    Document completion of Rosen-Zvi, Griffiths, Steyvers and Smyth (2004) and of Wallach et al. (2009), section 5. The
    proportions are not a point estimate: the topics of the words that are seen are drawn by Gibbs sampling with the
    proportions integrated out, and p(word | topics of the others) = sum_k phi_kw (n_k + alpha_k) / (n + sum alpha) is
    averaged, which is exact in the limit of many sweeps.
    """
    seen, held = split_words(data, 0.5, rng)
    bounds, term = _words(seen)
    limits = np.searchsorted(held["doc"], np.arange(len(bounds)))
    tables = topics.reshape(-1, *topics.shape[-2:]).mT
    chains = CHAINS if len(tables) == 1 else 1
    length = sweeps if chains > 1 else max(1, -(-CHAINS * sweeps // len(tables)))
    by_chain = [table for table in tables for _ in range(chains)]

    def probabilities(d: int) -> np.ndarray:
        """Return the probability of each word of a document that is held out, of shape (chain, draw, cells)."""
        first, second, each = term[bounds[d] : bounds[d + 1]], held["term"][limits[d] : limits[d + 1]], []
        for table in by_chain:
            counts = loops.topic_counts(np.ascontiguousarray(table[first]), alpha, tune, length, rng)
            each.append((counts + alpha) @ table[second].T / (len(first) + alpha.sum()))
        return np.array(each) if chains > 1 else np.mean(each, axis=1).reshape(*topics.shape[:-2], -1)

    words = np.bincount(held["doc"], held["counts"], minlength=len(bounds) - 1).astype(np.int64)
    return _log_of_each(probabilities, held["counts"], limits, words)


def fold_in(
    topics: np.ndarray, alpha: np.ndarray, data: Arrays, rng: np.random.Generator, sweeps: int = TUNE
) -> np.ndarray:
    """Draw the proportions of documents, (..., documents, K), that topics (..., K, V) were not fitted to.

    Leading axes are draws of the topics, each of which gives one, after ``sweeps`` of Gibbs sampling over the topics of
    the words; of a document without words it is a draw from the prior.
    """
    bounds, term = _words(data)
    counts = [
        [
            loops.topic_counts(np.ascontiguousarray(table[words]), alpha, sweeps - 1, 1, rng)[0]
            for words in np.split(term, bounds[1:-1])
        ]
        for table in topics.reshape(-1, *topics.shape[-2:]).mT
    ]
    prior = Categorical(("proportions",), "topic", alpha[None, None])
    drawn = prior.updated(Counts(np.array(counts))).rvs((), rng)["proportions"]
    return drawn.reshape(*topics.shape[:-2], *drawn.shape[1:])


def _words(data: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return where the words of each document begin, shape (documents + 1,), and their codes, shape (words,)."""
    lengths = np.bincount(data["doc"], data["counts"], minlength=len(data["document"])).astype(np.int64)
    return np.append(0, np.cumsum(lengths)), np.repeat(data["term"], data["counts"])


# Averages


def _log_means(log_p: np.ndarray, words: np.ndarray, independent: bool) -> DocumentScores:
    """Average probabilities of documents given as logs, of shape (chain, draw, documents)."""
    largest = log_p.max(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):  # of documents that no topic can give
        mean = largest + np.log(np.mean(np.exp(log_p - largest), axis=(0, 1)))
        ratio = np.where(np.isneginf(largest), 1.0, np.exp(log_p - mean))
    mean = np.where(np.isneginf(largest), -np.inf, mean)
    mcse = _mcse(ratio, independent)
    why = np.array([_not_carried(log_p[..., d], float(mcse[d])) for d in range(len(mean))], dtype=object)
    kept = why == ""
    total = float(_mcse(ratio.sum(axis=-1, keepdims=True), independent)[0]) if kept.all() else math.nan
    mean, mcse = (np.where(kept, values, np.nan) for values in (mean, mcse))
    return DocumentScores(mean, mcse, words, total, why, log_p.mean(axis=(0, 1)))


def _not_carried(log_p: np.ndarray, mcse: float) -> str:
    """Say why too few of the draws carry the mean of a probability for its error to be known; "" where enough do."""
    if np.isneginf(log_p).all():
        return ""
    if not mcse <= MOST_ERROR:
        return f"few draws carry its mean: relative error {mcse:.2g} (must be <= {MOST_ERROR:g})"
    if log_p.size < LEAST_TAIL:
        return ""
    k_hat = pareto_k(np.maximum(log_p.ravel(), np.max(log_p) - 700))  # exp(-700) carries nothing
    limit = k_hat_limit(log_p.size)
    return "" if k_hat <= limit else f"few draws carry its mean: Pareto k-hat {k_hat:.2g} (must be <= {limit:.2g})"


def _log_of_each(
    probabilities: Callable[[int], np.ndarray], counts: np.ndarray, limits: np.ndarray, words: np.ndarray
) -> DocumentScores:
    """Add up logs of mean probabilities of the cells of each document, which lie between `limits`."""
    log_p, mcse, shares = np.zeros(len(words)), np.zeros(len(words)), np.zeros((1, 1))
    for d in range(len(words)):
        times = counts[limits[d] : limits[d + 1]]
        if len(times):
            p = probabilities(d)
            mean = p.mean(axis=(0, 1))
            with np.errstate(divide="ignore"):
                log_p[d] = times @ np.log(mean)
            share = p @ np.divide(times, mean, out=np.zeros(len(mean)), where=mean > 0)
            mcse[d] = _mcse(share[..., None])[0]
            shares = shares + share
    shown = np.full(len(words), "", dtype=object)
    return DocumentScores(log_p, mcse, words, float(_mcse(shares[..., None])[0]), shown)


def _mcse(values: np.ndarray, independent: bool = False) -> np.ndarray:
    """Return the Monte Carlo error of means over chain and draw, shape (documents,); NaN of a single draw."""
    size = values.shape[0] * values.shape[1]
    if size == 1:
        return np.full(values.shape[2:], np.nan)
    if independent or values.shape[1] < 4:
        return np.asarray(values.std(axis=(0, 1), ddof=1) / math.sqrt(size))
    mcse = diagnostics.mcse(values)
    return np.where(np.ptp(values, axis=(0, 1)) == 0, 0.0, mcse)


# Words held out, and words together


def split_words(data: Arrays, share: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Hold out a share of the words of each document, chosen at random; every document keeps one word.

    Returns the words that are kept and those that are held out, both of all documents and words.
    """
    if not 0 < share < 1:
        raise InputError(f"share must be between 0 and 1, got {share!r}", "out_of_range")
    out = np.zeros_like(data["counts"])
    bounds = np.searchsorted(data["doc"], np.arange(len(data["document"]) + 1))
    for first, last in itertools.pairwise(bounds):
        counts = data["counts"][first:last]
        if (total := int(counts.sum())) > 1:
            some = min(max(round(share * total), 1), total - 1)
            out[first:last] = rng.multivariate_hypergeometric(counts, some, method="marginals")
    kept, held = (
        {**data, "counts": counts[counts > 0], **{name: data[name][counts > 0] for name in ("doc", "term")}}
        for counts in (data["counts"] - out, out)
    )
    return kept, held


def coherence(topics: np.ndarray, data: Arrays, top: int) -> np.ndarray:
    """Say how far the most probable words of each topic (K, V) occur in the same documents of a corpus, (K,).

    The mean over pairs of normalized pointwise mutual information, log(p(v, w) / p(v) p(w)) / -log p(v, w), where p is
    a share of the documents: between -1 (never together, also where it is a limit) and 1 (only together). NaN where two
    of the words are in all documents, as there is nothing to tell, or one is in none.

    Bouma (2009); for topics Lau, Newman and Baldwin (2014), whose counts are of windows of words, here documents.
    """
    shape = len(data["document"]), len(data["word"])
    occurs = scipy.sparse.csc_array((np.ones(len(data["doc"])), (data["doc"], data["term"])), shape=shape)
    best = np.argsort(-topics, axis=1, kind="stable")[:, :top]
    return np.array([_npmi((occurs[:, words].T @ occurs[:, words]).toarray() / shape[0]) for words in best])


def _npmi(shares: np.ndarray) -> float:
    """Return the mean over pairs, from the shares of documents that hold both words."""
    first, second = np.tril_indices(len(shares), -1)
    p, both = np.diag(shares), shares[first, second]
    if np.any(both == 1) or np.any(p == 0):
        return math.nan
    log_both = np.log(np.where(both > 0, both, 0.5))
    npmi = (log_both - np.log(p[first]) - np.log(p[second])) / -log_both
    return float(np.mean(np.where(both > 0, npmi, -1.0)))
