"""Scores of topics: the probability of held-out documents, and the coherence of the topics' most probable words.

The held-out score is the log probability of all words of a document, from left to right, or of one half given the
other. Neither is an ELBO, a bound of unknown tightness. Perplexity is exp(-score / words).
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
"""Factor by which particles are increased, and how often, for documents whose probability would be withheld."""
CHAINS, TUNE, SWEEPS = 4, 50, 250
MOST_ERROR = 0.5
"""Relative error above which a probability is withheld: fewer than about four draws determine its mean."""
LEAST_TAIL = 25
"""Least number of draws with a tail whose Pareto shape is estimated."""


class DocumentScores(NamedTuple):
    """Log probabilities of held-out documents.

    Each array is of shape (documents,). ``log_p`` is the log probability of the scored words in nats: 0 for a document
    without words, NaN if it is withheld because too few draws dominate the average. ``mcse`` is its Monte Carlo
    standard error, ``words`` the number of scored words, and ``withheld`` the reason for withholding, or "".
    ``mcse_total`` is the error of the sum over all documents, which share the draws of the topics.

    ``bound``, of scores from left to right, is the mean over draws of the log of the estimate. Its expectation is at
    most the log of the mean, so that it is reported even if that is withheld, as for most long documents with several
    draws: their probabilities differ by many powers of e.
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

    Topics are of shape (K, V), or (chains, draws, K, V), over which the probability of a document is averaged. One
    table (K, V) has ``runs`` independent estimates, whose spread is the Monte Carlo error; documents that would be
    withheld get four and then sixteen times as many particles. Several draws have one run each. A document is withheld
    if a few runs dominate: the relative error of its probability is above 0.5, or the Pareto shape of the draws above
    the limit of the gate.

    Wallach, Murray, Salakhutdinov and Mimno (2009), Evaluation methods for topic models, ICML, algorithm 3. In its
    published form the mean over particles of each factor is biased; here particles are resampled by their factors, so
    that the product is unbiased for the probability of the document (a particle filter with moves). Buntine (2009,
    Estimating likelihoods for topic models, ACML) averages the products of single particles instead: ``particles=1``,
    which has a larger variance. Words come in random order. Before each word, the topics of at most `loops.MOVES`
    earlier words are redrawn in turn: the cost is linear in the length of a document.
    """
    bounds, term = _words(data)
    tables = topics.reshape(-1, *topics.shape[-2:]).mT
    if len(tables) > 1:
        by_draw = (np.ascontiguousarray(table) for table in tables)
        log_p = [loops.left_to_right(bounds, term, table, alpha, 1, particles, rng) for table in by_draw]
        return _log_means(np.reshape(log_p, (*topics.shape[:-2], -1)), np.diff(bounds), independent=False)
    table = np.ascontiguousarray(tables[0])

    def estimates(d: int, size: int) -> np.ndarray:
        drawn: np.ndarray = loops.left_to_right(bounds[d : d + 2], term, table, alpha, runs, size, rng)
        return drawn[:, 0]

    return _of_one_draw(np.diff(bounds), estimates, particles)


def _of_one_draw(words: np.ndarray, estimates: Callable[[int, int], np.ndarray], particles: int) -> DocumentScores:
    """Estimate each document's probability by runs of N particles, or more if a few runs dominate.

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

    The score of a word is the log of its mean probability given the half that is seen. One table of topics has four
    chains of Gibbs sampling, each with ``tune`` sweeps of warmup and ``sweeps`` that count. Several draws of the topics
    have one chain each, and ``4 * sweeps`` sweeps in total.

    Document completion of Rosen-Zvi, Griffiths, Steyvers and Smyth (2004) and of Wallach et al. (2009), section 5. The
    proportions are no point estimate: the topics of the seen words are drawn by Gibbs sampling with the proportions
    integrated out, and p(word | topics of the seen words) = sum_k phi_kw (n_k + alpha_k) / (n + sum alpha) is averaged,
    which is exact in the limit of many sweeps.
    """
    seen, held_out = split_words(data, 0.5, rng)
    bounds, term = _words(seen)
    limits = np.searchsorted(held_out["doc"], np.arange(len(bounds)))
    tables = topics.reshape(-1, *topics.shape[-2:]).mT
    chains = CHAINS if len(tables) == 1 else 1
    length = sweeps if chains > 1 else max(1, -(-CHAINS * sweeps // len(tables)))
    by_chain = [table for table in tables for _ in range(chains)]

    def probabilities(d: int) -> np.ndarray:
        """Return the probability of each held-out word of a document, of shape (chain, draw, cells)."""
        shown, scored, p = term[bounds[d] : bounds[d + 1]], held_out["term"][limits[d] : limits[d + 1]], []
        for table in by_chain:
            counts = loops.topic_counts(np.ascontiguousarray(table[shown]), alpha, tune, length, rng)
            p.append((counts + alpha) @ table[scored].T / (len(shown) + alpha.sum()))
        return np.array(p) if chains > 1 else np.mean(p, axis=1).reshape(*topics.shape[:-2], -1)

    words = np.bincount(held_out["doc"], held_out["counts"], minlength=len(bounds) - 1).astype(np.int64)
    return _log_of_each(probabilities, held_out["counts"], limits, words)


def fold_in(
    topics: np.ndarray, alpha: np.ndarray, data: Arrays, rng: np.random.Generator, sweeps: int = TUNE
) -> np.ndarray:
    """Draw the proportions (..., documents, K) of new documents given topics (..., K, V).

    Leading axes are draws of the topics. Each gives one draw of the proportions, after ``sweeps`` of Gibbs sampling
    over the topics of the words; a document without words gets a draw from the prior.
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
    """Return the index of each document's first word, (documents + 1,), and the codes of the words, (words,)."""
    lengths = np.bincount(data["doc"], data["counts"], minlength=len(data["document"])).astype(np.int64)
    return np.append(0, np.cumsum(lengths)), np.repeat(data["term"], data["counts"])


# Averages


def _log_means(log_p: np.ndarray, words: np.ndarray, independent: bool) -> DocumentScores:
    """Average the probabilities of documents over chains and draws, from their logs (chain, draw, documents)."""
    largest = log_p.max(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):  # some documents are impossible under all topics
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
    """Return the reason why too few draws dominate the mean probability for its error to be known; "" if none."""
    if np.isneginf(log_p).all():
        return ""
    if not mcse <= MOST_ERROR:
        return f"few draws carry its mean: relative error {mcse:.2g} (must be <= {MOST_ERROR:g})"
    if log_p.size < LEAST_TAIL:
        return ""
    k_hat = pareto_k(np.maximum(log_p.ravel(), np.max(log_p) - 700))  # exp(-700) adds nothing to the mean
    limit = k_hat_limit(log_p.size)
    return "" if k_hat <= limit else f"few draws carry its mean: Pareto k-hat {k_hat:.2g} (must be <= {limit:.2g})"


def _log_of_each(
    probabilities: Callable[[int], np.ndarray], counts: np.ndarray, limits: np.ndarray, words: np.ndarray
) -> DocumentScores:
    """Sum the logs of mean probabilities over each document's cells, those between its ``limits``."""
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
    """Return the Monte Carlo error of means over chain and draw, shape (documents,); NaN for a single draw."""
    size = values.shape[0] * values.shape[1]
    if size == 1:
        return np.full(values.shape[2:], np.nan)
    if independent or values.shape[1] < 4:
        return np.asarray(values.std(axis=(0, 1), ddof=1) / math.sqrt(size))
    mcse = diagnostics.mcse(values)
    return np.where(np.ptp(values, axis=(0, 1)) == 0, 0.0, mcse)


# Held-out words, and co-occurrence of words


def split_words(data: Arrays, share: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Hold out a share of the words of each document, chosen at random; every document keeps at least one word.

    Returns the kept and the held-out words, both with the labels of all documents and words.
    """
    if not 0 < share < 1:
        raise InputError(f"share must be between 0 and 1, got {share!r}", "out_of_range")
    out = np.zeros_like(data["counts"])
    bounds = np.searchsorted(data["doc"], np.arange(len(data["document"]) + 1))
    for start, end in itertools.pairwise(bounds):
        counts = data["counts"][start:end]
        if (total := int(counts.sum())) > 1:
            size = min(max(round(share * total), 1), total - 1)
            out[start:end] = rng.multivariate_hypergeometric(counts, size, method="marginals")
    kept, held_out = (
        {**data, "counts": counts[counts > 0], **{name: data[name][counts > 0] for name in ("doc", "term")}}
        for counts in (data["counts"] - out, out)
    )
    return kept, held_out


def coherence(topics: np.ndarray, data: Arrays, top: int) -> np.ndarray:
    """Return the coherence (K,) of topics (K, V): whether their top words occur in the same documents of a corpus.

    It is the mean over pairs of normalized pointwise mutual information, log(p(v, w) / p(v) p(w)) / -log p(v, w), where
    p is a share of the documents: between -1 (never together, as a limit) and 1 (only together). It is NaN if two of
    the words are in all documents, or one is in none: the quotient is then undefined.

    Bouma (2009); for topics Lau, Newman and Baldwin (2014), who count windows of words instead of documents.
    """
    shape = len(data["document"]), len(data["word"])
    occurs = scipy.sparse.csc_array((np.ones(len(data["doc"])), (data["doc"], data["term"])), shape=shape)
    best = np.argsort(-topics, axis=1, kind="stable")[:, :top]
    return np.array([_npmi((occurs[:, words].T @ occurs[:, words]).toarray() / shape[0]) for words in best])


def _npmi(shares: np.ndarray) -> float:
    """Return the mean over pairs of words, from the shares (words, words) of documents that contain both."""
    v, w = np.tril_indices(len(shares), -1)
    p, p_vw = np.diag(shares), shares[v, w]
    if np.any(p_vw == 1) or np.any(p == 0):
        return math.nan
    log_p_vw = np.log(np.where(p_vw > 0, p_vw, 0.5))
    npmi = (log_p_vw - np.log(p[v]) - np.log(p[w])) / -log_p_vw
    return float(np.mean(np.where(p_vw > 0, npmi, -1.0)))
