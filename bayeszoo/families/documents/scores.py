"""Held-out scores of documents given topics.

A score is of documents that the topics were not fitted to: of all their words, left to right, or of one half of them
given the other. Neither is an ELBO, a bound of unknown tightness; perplexity is exp(-score a word) of these two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.distributions.dirichlet import Dirichlet
from bayeszoo.errors import InputError
from bayeszoo.families.documents.word_splits import split_words
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import k_hat_limit, pareto_k

loops = lazy_loader.load("bayeszoo.likelihoods.loops.left_to_right", suppress_warning=True)

PARTICLES, RUNS = 20, 10
TIMES, ROUNDS = 4, 2
"""By how much there are more particles, and how often, for documents whose probability would be withheld."""
CHAINS, TUNE, SWEEPS = 4, 50, 250
MOST_ERROR = 0.5
"""Relative error of a probability above which it is withheld: hardly four draws carry its mean."""
LEAST_TAIL = 25
"""Draws from which on there is a tail to look at."""

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class DocumentScores:
    """How probable documents are that topics were not fitted to.

    Attributes
    ----------
    log_p : ndarray of shape (documents,)
        Log probability of the words that are scored, in nats; 0 where there are none, NaN where it is withheld: too few
        of the draws carry the average.
    mcse : ndarray of shape (documents,)
        Its Monte Carlo standard error.
    words : ndarray of shape (documents,)
        How many words are scored.
    mcse_total : float
        Of the sum over all documents, which share the draws of the topics.
    bound : ndarray of shape (documents,) or None
        From left to right: the mean over draws of the log of the estimate. In expectation it is at most the log of the
        mean, so that it can be said also where that is withheld, as it mostly is of long documents and several draws:
        their probabilities differ by many powers of e.
    mcse_bound : float
        Of the sum of it over all documents.
    """

    log_p: np.ndarray
    mcse: np.ndarray
    words: np.ndarray
    mcse_total: float
    bound: np.ndarray | None = None
    mcse_bound: float = math.nan

    @property
    def mean(self) -> float:
        """Log probability of a word, in nats; NaN where that of any document is withheld."""
        return float(np.sum(self.log_p)) / float(self.words.sum())

    @property
    def mcse_mean(self) -> float:
        """Monte Carlo standard error of `mean`."""
        return self.mcse_total / float(self.words.sum())

    @property
    def perplexity(self) -> float:
        """exp(-mean): among how many words that are equally probable one has to choose, to do as well."""
        with np.errstate(over="ignore"):
            return float(np.exp(-self.mean))

    @property
    def perplexity_bound(self) -> float:
        """Exp of minus the mean of `bound`: perplexity is at most this, up to Monte Carlo error; NaN without it."""
        return math.nan if self.bound is None else float(np.exp(-np.sum(self.bound) / self.words.sum()))

    @property
    def mcse_perplexity(self) -> float:
        """Monte Carlo standard error of `perplexity`."""
        return self.perplexity * self.mcse_mean


def left_to_right(
    data: Arrays,
    topics: Any,
    alpha: Any,
    rng: np.random.Generator,
    *,
    particles: int = PARTICLES,
    runs: int = RUNS,
) -> DocumentScores:
    """Estimate log p(document | topics, alpha) word by word, proportions and topics of the words summed out.

    Parameters
    ----------
    data : mapping of str to ndarray
        Canonical arrays of `Corpus`, whose words are those of the topics.
    topics : array_like of shape (K, V) or (chains, draws, K, V)
        Probability of each word in each topic; over several draws the probability of a document is averaged.
    alpha : array_like of shape (K,), or a number
        Concentration of the Dirichlet distribution of a document's proportions, > 0.
    rng : numpy.random.Generator
    particles : int
        Of each run; of one table of topics there are four and then sixteen times as many for the documents that would
        else be withheld.
    runs : int
        Independent estimates, whose spread is the Monte Carlo error; of several draws of the topics there is one each.

    Returns
    -------
    DocumentScores
        Of the ordered words. A document is withheld where a few runs outweigh the others: the relative error of its
        probability is above 0.5, or the Pareto shape of the draws above the limit of the gate.

    Raises
    ------
    InputError
        When the topics are no probabilities, or not of the words of the data.

    Notes
    -----
    Wallach, Murray, Salakhutdinov and Mimno (2009), Evaluation methods for topic models, ICML, algorithm 3. As it
    stands the mean over particles of each factor is biased; here particles are resampled by their factors, which makes
    the product unbiased for the probability of the document (a particle filter with moves). Buntine (2009, Estimating
    likelihoods for topic models, ACML) averages the products of single particles instead: ``particles=1``, which has a
    larger variance. Words come in random order. Before each of them the topics of at most
    `left_to_right_loops.MOVES` of those before are drawn anew, in turn: cost is linear in the length of a document.
    """
    draws, alpha = checked_topics(data, topics, alpha)
    _refuse_less_than(1, particles=particles)
    bounds, term = _words(data, data["counts"])
    used, term = np.unique(term, return_inverse=True)
    if draws.shape[:2] == (1, 1):
        _refuse_less_than(2, runs=runs)
        by_word = _by_word(draws[0, 0], used)
        return _of_one_draw(
            np.diff(bounds),
            lambda d, size: loops.left_to_right(bounds[d : d + 2], term, by_word, alpha, runs, size, rng)[:, 0],
            particles,
        )
    each = [
        loops.left_to_right(bounds, term, _by_word(one, used), alpha, 1, particles, rng)
        for one in draws.reshape(-1, *draws.shape[2:])
    ]
    return _log_means(np.reshape(each, (*draws.shape[:2], len(bounds) - 1)), np.diff(bounds), independent=False)


def _of_one_draw(words: np.ndarray, estimates: Callable[[int, int], np.ndarray], particles: int) -> DocumentScores:
    """Estimate each document's probability by runs of so many particles, or more where a few runs outweigh the others.

    ``estimates(d, particles)`` returns logs of shape (runs,).
    """
    found = np.array([estimates(d, particles) for d in range(len(words))])
    for _ in range(ROUNDS):
        particles *= TIMES
        for d in np.flatnonzero(np.isnan(_log_means(found.T[None], words, independent=True).log_p)):
            found[d] = estimates(int(d), particles)
    return _log_means(found.T[None], words, independent=True)


def document_completion(
    data: Arrays, topics: Any, alpha: Any, rng: np.random.Generator, *, tune: int = TUNE, sweeps: int = SWEEPS
) -> DocumentScores:
    """Score one half of each document's words, chosen at random, given the other half.

    Parameters
    ----------
    data, topics, alpha, rng
        As of `left_to_right`.
    tune : int
        Sweeps of Gibbs sampling before the first that counts.
    sweeps : int
        Sweeps that count, of each of four chains; of several draws of the topics each has one chain, and all of them
        together have four times as many sweeps.

    Returns
    -------
    DocumentScores
        Each word is scored by itself: the log of its mean probability given the words of the half that is seen.

    Raises
    ------
    InputError
        As `left_to_right`.

    Notes
    -----
    Document completion of Rosen-Zvi, Griffiths, Steyvers and Smyth (2004) and of Wallach et al. (2009), section 5. The
    proportions are not a point estimate: the topics of the words that are seen are drawn by Gibbs sampling with the
    proportions integrated out, and p(word | topics of the others) = sum_k phi_kw (n_k + alpha_k) / (n + sum alpha) is
    averaged, which is exact in the limit of many sweeps.
    """
    draws, alpha = checked_topics(data, topics, alpha)
    _refuse_less_than(0, tune=tune)
    _refuse_less_than(4, sweeps=sweeps)
    seen, held = split_words(data, 0.5, rng)
    bounds, term = _words(seen, seen["counts"])
    limits = np.searchsorted(held["doc"], np.arange(len(bounds)))
    chains = 1 if draws.shape[:2] != (1, 1) else CHAINS
    length = sweeps if chains > 1 else max(1, -(-CHAINS * sweeps // (draws.shape[0] * draws.shape[1])))

    def probabilities(d: int) -> np.ndarray:
        """Return the probability of each word of a document that is held out, of shape (chain, draw, cells)."""
        first, cells = term[bounds[d] : bounds[d + 1]], held["term"][limits[d] : limits[d + 1]]
        used, codes = np.unique(np.concatenate([first, cells]), return_inverse=True)
        parts = codes[: len(first)], codes[len(first) :]
        each = [
            loops.completion(*parts, _by_word(one, used), alpha, tune, length, rng)
            for one in draws.reshape(-1, *draws.shape[2:])
            for _ in range(chains)
        ]
        return np.array(each) if chains > 1 else np.mean(each, axis=1).reshape(*draws.shape[:2], -1)

    words = np.bincount(held["doc"], held["counts"], minlength=len(bounds) - 1).astype(np.int64)
    return _log_of_each(probabilities, held["counts"], limits, words)


def fold_in(topics: Any, alpha: Any, data: Arrays, rng: np.random.Generator, sweeps: int = TUNE) -> np.ndarray:
    """Draw the proportions of documents that the topics were not fitted to, once for each draw of the topics.

    Parameters
    ----------
    topics : array_like of shape (..., K, V)
        Leading axes are draws.
    alpha, data, rng
        As of `left_to_right`.
    sweeps : int
        Of Gibbs sampling over the topics of the words before the draw.

    Returns
    -------
    ndarray of shape (..., documents, K)
        Of a document without words, draws from the prior.
    """
    shape = np.shape(topics)[:-2]
    draws, alpha = checked_topics(data, np.reshape(topics, (1, -1, *np.shape(topics)[-2:])), alpha)
    bounds, term = _words(data, data["counts"])
    used, term = np.unique(term, return_inverse=True)
    counts = [loops.folded(bounds, term, _by_word(one, used), alpha, sweeps, rng) for one in draws[0]]
    made = Dirichlet(alpha + np.array(counts)).rvs((), rng)
    return np.asarray(made).reshape(*shape, *made.shape[1:])


# Words and topics


def _words(data: Arrays, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the words of each document begin, shape (documents + 1,), and their codes, shape (words,)."""
    lengths = np.bincount(data["doc"], counts, minlength=len(data["document"])).astype(np.int64)
    return np.append(0, np.cumsum(lengths)), np.repeat(data["term"], counts)


def _by_word(topics: np.ndarray, used: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(topics[:, used].T)


def checked_topics(data: Arrays, topics: Any, alpha: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return topics of shape (chains, draws, K, V) and alpha of shape (K,)."""
    draws = np.asarray(topics, dtype=np.float64)
    draws = draws[None, None] if draws.ndim == 2 else draws
    if draws.ndim != 4 or 0 in draws.shape or draws.shape[-1] != len(data["word"]):
        expected = f"(K, {len(data['word'])}) or (chains, draws, K, {len(data['word'])})"
        raise InputError(
            f"topics have shape {np.shape(topics)}, {expected} expected: one column for each word of the data"
        )
    if not (np.all(draws >= 0) and np.all(np.abs(draws.sum(axis=-1) - 1) < 1e-6)):
        raise InputError("each topic must be probabilities of the words, which add up to 1")
    K = draws.shape[2]
    concentration = np.asarray(alpha, dtype=np.float64)
    if concentration.shape not in ((), (K,)) or not np.all((concentration > 0) & np.isfinite(concentration)):
        raise InputError(f"alpha must be > 0, one number or one for each of {K} topics")
    return draws, np.array(np.broadcast_to(concentration, K))


def _refuse_less_than(least: int, **given: int) -> None:
    for name, value in given.items():
        if value < least:
            raise InputError(f"{name} must be at least {least}, got {value!r}")


# Averages


def _log_means(log_p: np.ndarray, words: np.ndarray, independent: bool) -> DocumentScores:
    """Average probabilities of documents given as logs, of shape (chain, draw, documents)."""
    largest = log_p.max(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):  # of documents that no topic can give
        mean = largest + np.log(np.mean(np.exp(log_p - largest), axis=(0, 1)))
        ratio = np.where(np.isneginf(largest), 1.0, np.exp(log_p - mean))
    mean = np.where(np.isneginf(largest), -np.inf, mean)
    mcse = _mcse(ratio, independent)
    kept = np.array([_carried(log_p[..., d], mcse[d]) for d in range(len(mean))], dtype=bool)
    total = float(_mcse(ratio.sum(axis=-1, keepdims=True), independent)[0]) if kept.all() else math.nan
    mean, mcse = (np.where(kept, values, np.nan) for values in (mean, mcse))
    bound = log_p.mean(axis=(0, 1))
    finite = np.where(np.isneginf(bound), 0.0, log_p).sum(axis=-1, keepdims=True)
    return DocumentScores(mean, mcse, words, total, bound, float(_mcse(finite, independent)[0]))


def _carried(log_p: np.ndarray, mcse: float) -> bool:
    """Say whether enough of the draws carry the mean of a probability for its error to be known."""
    if np.isneginf(log_p).all():
        return True
    if not mcse <= MOST_ERROR:
        return False
    finite = np.maximum(log_p.ravel(), np.max(log_p) - 700)  # exp(-700) carries nothing
    return log_p.size < LEAST_TAIL or bool(pareto_k(finite) <= k_hat_limit(log_p.size))


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
    return DocumentScores(log_p, mcse, words, float(_mcse(shares[..., None])[0]))


def _mcse(values: np.ndarray, independent: bool = False) -> np.ndarray:
    """Return the Monte Carlo error of means over chain and draw, shape (documents,); NaN of a single draw."""
    size = values.shape[0] * values.shape[1]
    if size == 1:
        return np.full(values.shape[2:], np.nan)
    if independent or values.shape[1] < 4:
        return np.asarray(values.std(axis=(0, 1), ddof=1) / math.sqrt(size))
    found = diagnostics.mcse(values)
    return np.where(np.ptp(values, axis=(0, 1)) == 0, 0.0, found)
