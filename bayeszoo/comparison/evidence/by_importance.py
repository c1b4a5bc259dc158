"""The evidence of a model with fields as parameters, fitted by Gibbs sampling: importance sampling about its draws."""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.comparison.candidates import Candidate
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import pareto_k
from bayeszoo.inference.engine.approximation import GOOD_K_HAT
from bayeszoo.model.draws import flat, size_of
from bayeszoo.model.outer.over_draws import OverDrawn

FIRST, MORE = 1000, 3000
"""Numbers of weights: at first, and added where the first are too unequal."""
DRAWS = 1000
"""About how many draws of the fit the proposal is made of."""


def by_importance(model: OverDrawn, candidate: Candidate, seed: int = 0) -> tuple[float, float, str]:
    """Return the log evidence, its Monte Carlo error and the method; raise `NumericalError` if there is none."""
    assert candidate.fit is not None  # a sampled candidate has a fit
    draws = flat(candidate.fit.draws())
    step = max(1, size_of(draws) // DRAWS)
    some = {name: values[::step] for name, values in draws.items()}
    weigh = model.weigher(some, candidate.data, np.random.default_rng(seed))
    if weigh is None:
        raise NumericalError(f"{model} has no density, and its evidence cannot be estimated", "no_evidence")
    weights = weigh(FIRST)
    if (k_hat := pareto_k(weights)) > GOOD_K_HAT:
        weights = np.concatenate([weights, weigh(MORE)])
        k_hat = pareto_k(weights)
    if not k_hat <= GOOD_K_HAT:
        why = f"k-hat {k_hat:.2g} of importance sampling (must be <= {GOOD_K_HAT}); narrower priors of the fields help"
        raise NumericalError(why, "no_evidence")
    return *log_mean_of_weights(weights), "importance sampling"


def log_mean_of_weights(log_weights: np.ndarray) -> tuple[float, float]:
    """Return the log of the mean of independent importance weights (n,), and its Monte Carlo error."""
    log_mean = float(np.logaddexp.reduce(log_weights)) - math.log(len(log_weights))
    return log_mean, float(np.exp(log_weights - log_mean).std()) / math.sqrt(len(log_weights))
