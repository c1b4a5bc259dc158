"""Passes over the non-zero cells of a corpus of documents with mixed topics, or one topic each. Numba.

Tables of words have the words first, (V, K), for fast access. Cost O(cells x K); besides parameters
and gradients, memory is that of one document.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.likelihoods.compiling import loop

LEAST = 1e-280
"""Sums of products below this may have lost terms, and are computed in logarithms."""
HALF_LOG_2PI = 0.9189385332046727


@loop
def _product(first: np.ndarray, second: np.ndarray, products: np.ndarray) -> float:
    """Write the products of the entries to ``products`` and return their sum."""
    total = 0.0
    for k in range(len(first)):
        products[k] = first[k] * second[k]
        total += products[k]
    return total


@loop
def _add(to: np.ndarray, times: float, values: np.ndarray) -> None:
    """Add a multiple of one array to another."""
    for k in range(len(to)):
        to[k] += times * values[k]


@loop
def _belongs(doc: int, term: int, D: int, V: int) -> bool:
    return 0 <= doc < D and 0 <= term < V


@loop
def cell_sums(proportions: np.ndarray, words: np.ndarray, counts: np.ndarray, doc: np.ndarray, term: np.ndarray) -> Any:
    """Return sum c log p, p = theta_d . phi_w, and its derivatives in ``proportions`` (D, K) and ``words`` (V, K).

    A word of probability 0 makes the value -inf and has no derivative; a cell outside the tables makes it NaN.
    """
    (D, K), V = proportions.shape, len(words)
    of_documents, of_words, products, value = np.zeros((D, K)), np.zeros((V, K)), np.empty(K), 0.0
    for cell in range(len(counts)):
        d, w, count = doc[cell], term[cell], counts[cell]
        if not _belongs(d, w, D, V):
            return np.nan, of_documents, of_words
        if count == 0.0:  # 0 times log 0 is 0
            continue
        p = _product(proportions[d], words[w], products)
        value += count * math.log(p)
        if p != 0.0:
            _add(of_documents[d], count / p, words[w])
            _add(of_words[w], count / p, proportions[d])
    return value, of_documents, of_words


@loop
def log_documents(
    proportions: np.ndarray, topics: np.ndarray, counts: np.ndarray, doc: np.ndarray, term: np.ndarray
) -> Any:
    """Return the log density of the ordered words of each document, (S, D), for S draws of the parameters."""
    S, D, K = proportions.shape
    V, log_terms, products = topics.shape[2], np.zeros((S, D)), np.empty(K)
    for s in range(S):
        words = topics[s].T.copy()
        for cell in range(len(counts)):
            if not _belongs(doc[cell], term[cell], D, V):
                log_terms[:] = np.nan
                return log_terms
            p = _product(proportions[s, doc[cell]], words[term[cell]], products)
            log_terms[s, doc[cell]] += counts[cell] * math.log(p)
    return log_terms


@loop
def gamma_functions(x: float) -> Any:
    """Return log Gamma(x) and its derivative, for x > 0.

    Stirling's series at 10 or more; below, the recurrence takes it there, its ten factors in pairs.
    """
    product, derivative, y = 1.0, 0.0, x
    if x < 10.0:
        y, q = x + 10.0, x * (x + 9.0)
        for add in (0.0, 8.0, 14.0, 18.0, 20.0):
            derivative = derivative * (q + add) + product
            product *= q + add
        derivative *= 2.0 * x + 9.0
    r = 1.0 / (y * y)
    log_y = math.log(y)
    series = 1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * (691 / 360360)))))
    slope = 1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760)))))
    log_gamma = (y - 0.5) * log_y - y + HALF_LOG_2PI + series / y - math.log(product)
    return log_gamma, log_y - 0.5 / y - slope * r - derivative / product


@loop
def dirichlet_table(concentration: np.ndarray, prior: np.ndarray) -> Any:
    """Return exp(E[log phi]) of K Dirichlet distributions, (V, K), and their divergence from the prior (V,)."""
    V, K = concentration.shape
    table, totals, kl = np.empty((V, K)), np.zeros(K), np.zeros(K)
    for v in range(V):
        _add(totals, 1.0, concentration[v])
    prior_term, digamma = gamma_functions(prior.sum())[0], np.empty(K)
    for k in range(K):
        total = gamma_functions(totals[k])
        kl[k], digamma[k] = total[0] - prior_term, total[1]
    for v in range(V):
        prior_term = gamma_functions(prior[v])[0]
        for k in range(K):
            log_gamma_and_digamma = gamma_functions(concentration[v, k])
            expected = log_gamma_and_digamma[1] - digamma[k]
            table[v, k] = math.exp(expected)
            kl[k] += prior_term - log_gamma_and_digamma[0] + (concentration[v, k] - prior[v]) * expected
    return table, kl.sum()


@loop
def _expected_log(concentration: np.ndarray, to: np.ndarray) -> None:
    """Write E[log p] under a Dirichlet distribution to an array."""
    digamma = gamma_functions(concentration.sum())[1]
    for k in range(len(to)):
        to[k] = gamma_functions(concentration[k])[1] - digamma


@loop
def _dot(first: np.ndarray, second: np.ndarray) -> float:
    total = 0.0
    for k in range(len(first)):
        total += first[k] * second[k]
    return total


@loop
def _cell_in_logarithms(logs: np.ndarray, concentration: np.ndarray, totals: np.ndarray, products: np.ndarray) -> Any:
    """Write exp(log theta + log phi) over its largest entry to ``products``; return sum and largest logarithm."""
    largest, total = -np.inf, 0.0
    for k in range(len(products)):
        products[k] = logs[k] + gamma_functions(concentration[k])[1] - gamma_functions(totals[k])[1]
        largest = max(largest, products[k])
    for k in range(len(products)):
        products[k] = math.exp(products[k] - largest)
        total += products[k]
    return total, largest


@loop
def variational_pass(alpha, documents, concentration, table, counts, doc, term, passes, tolerance):  # type: ignore[no-untyped-def]
    """Return the sum of log normalizers of q(z) at q, then expected counts (D, K) and (V, K) after further passes.

    ``alpha`` (K,) is the prior of the proportions, ``documents`` (D, K) their concentrations, ``concentration`` and
    ``table`` (V, K) those of the topics and exp(E[log phi]); cells are by document. After the
    first, at most ``passes`` updates of q(z) and q(theta) of each document, topics fixed; a document whose expected
    counts of topics change by less than ``tolerance``, as a share of its length, is finished.
    """
    (D, K), V = documents.shape, len(table)
    by_document, by_word, totals = np.zeros((D, K)), np.zeros((V, K)), np.zeros(K)
    logs, weights, shares, products, before = np.empty(K), np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    value, first = 0.0, 0
    for v in range(V):
        _add(totals, 1.0, concentration[v])
    while first < len(counts):
        d, last, length = doc[first], first, 0.0
        while last < len(counts) and doc[last] == d:
            if not _belongs(d, term[last], D, V):
                return np.nan, by_document, by_word
            length += counts[last]
            last += 1
        of_document = by_document[d]
        for i in range(passes + 1):
            before[:] = of_document
            _expected_log(documents[d] if i == 0 else alpha + of_document, logs)
            for k in range(K):
                weights[k], of_document[k], shares[k] = math.exp(logs[k]), 0.0, 0.0
            for cell in range(first, last):
                w = term[cell]
                total, factor = _dot(weights, table[w]), 0.0
                if total >= LEAST:
                    _add(shares, counts[cell] / total, table[w])
                else:
                    total, factor = _cell_in_logarithms(logs, concentration[w], totals, products)
                    _add(of_document, counts[cell] / total, products)
                if i == 0:
                    value += counts[cell] * (math.log(total) + factor)
            for k in range(K):
                of_document[k] += weights[k] * shares[k]
            if i > 0 and np.abs(of_document - before).sum() <= tolerance * length:
                break
        for cell in range(first, last):
            w = term[cell]
            total = _product(weights, table[w], products)
            if total < LEAST:
                total, _ = _cell_in_logarithms(logs, concentration[w], totals, products)
            _add(by_word[w], counts[cell] / total, products)
        first = last
    return value, by_document, by_word


# Documents of one topic each


@loop
def _responsibilities(joint: np.ndarray) -> float:
    """Replace log w_k p(document | k) by responsibilities, 0 for an impossible document; return the log sum."""
    largest, total = joint.max(), 0.0
    if largest == -np.inf:
        largest = 0.0
    for k in range(len(joint)):
        joint[k] = math.exp(joint[k] - largest)
        total += joint[k]
    for k in range(len(joint)):
        joint[k] = joint[k] / total if total != 0.0 else 0.0
    return largest + math.log(total)


@loop
def document_statistics(
    weights: np.ndarray, topics: np.ndarray, counts: np.ndarray, columns: np.ndarray, starts: np.ndarray
) -> Any:
    """Return log likelihood, expected documents (K,) and expected words (V, K).

    The log likelihood is NaN if a cell has an invalid word, or starts do not match the cells.
    """
    K, V = topics.shape
    if weights.shape != (K,) or counts.shape != columns.shape:
        raise ValueError("weights and topics differ in K, or counts and columns in length")
    log_weights, log_topics = np.log(weights), np.log(topics).T.copy()  # words first, for fast access
    documents, words, joint, value = np.zeros(K), np.zeros((V, K)), np.empty(K), 0.0
    for n in range(len(starts) - 1):
        if not 0 <= starts[n] <= starts[n + 1] <= len(columns):
            return np.nan, documents, words
        joint[:] = log_weights
        for cell in range(starts[n], starts[n + 1]):
            word, count = columns[cell], counts[cell]
            if not 0 <= word < V:
                return np.nan, documents, words
            if count != 0.0:  # 0 times log 0 is 0
                for k in range(K):  # a view of the row would cost more than the sum
                    joint[k] += count * log_topics[word, k]
        value += _responsibilities(joint)
        for k in range(K):
            documents[k] += joint[k]
        for cell in range(starts[n], starts[n + 1]):
            word, count = columns[cell], counts[cell]
            for k in range(K):
                words[word, k] += count * joint[k]
    return value, documents, words
