"""Hidden Markov models in PyMC: tables that are parameters or known, and the textbook's forward algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Law


def table(law: Law[Any], dims: Mapping[str, Any] | None = None) -> pt.TensorVariable:
    """Declare a table with its Dirichlet prior, or return a known table."""
    if not isinstance(law, Categorical):
        (probabilities,) = law.at({}).values()
        return pt.as_tensor_variable(probabilities)
    (name,) = law.names
    a = pm.Data(f"{name}_concentration", law.alpha, shape=law.alpha.shape)
    return pm.Dirichlet(name, a=a, dims=(dims or {}).get(name))


def log_of(probabilities: object) -> pt.TensorVariable:
    """Return logarithms; -inf for a known probability of 0."""
    if isinstance(probabilities, pt.TensorConstant):
        with np.errstate(divide="ignore"):
            return pt.as_tensor_variable(np.log(probabilities.data))
    return pt.log(probabilities)


def forward(
    initial: pt.TensorVariable, transition: pt.TensorVariable, log_b: pt.TensorVariable, starts: np.ndarray, rows: int
) -> pt.TensorVariable:
    """Return the log density of T rows by the forward algorithm, in logarithms, as a product of matrices.

    ``log_b`` (T, K) is the log density of each row in each state, 0 if its observation is missing; ``starts`` are the
    first rows of the sequences.

    L = pi B_1 A B_2 A B_3 ... A B_T 1, where B_t is the diagonal matrix of the densities of row t (Zucchini and
    MacDonald 2009, section 2.3). In the first row of a sequence every row of A is pi, for any state before. Factors are
    multiplied in pairs, then pairs of products, which takes log2(T) steps instead of the T steps of the recursion.
    """
    opens = np.isin(np.arange(rows), starts)[:, None, None]
    factors = pt.switch(opens, log_of(initial), log_of(transition)) + log_b[:, None, :]
    while rows > 1:
        even = rows // 2 * 2
        pairs = factors[0:even:2, :, :, None] + factors[1:even:2, None, :, :]
        factors, rows = pt.concatenate([log_sum(pairs, 2), factors[even:rows]]), even // 2 + rows % 2
    return log_sum(factors[0, 0], 0)


def log_sum(terms: object, axis: int) -> pt.TensorVariable:
    """Return the log of the sum of exponentials; if all terms are -inf it is -inf, and its gradient 0."""
    largest = pt.max(terms, axis=axis, keepdims=True)
    shift = pt.switch(pt.isinf(largest), np.float64(0), largest)
    total = pt.sum(pt.exp(terms - shift), axis=axis)
    possible = total > np.float64(0)
    log_total = pt.log(pt.switch(possible, total, np.float64(1))) + shift.squeeze(axis)
    return pt.switch(possible, log_total, np.float64(-np.inf))
