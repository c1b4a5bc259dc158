"""Leave a row out by refitting without it, where importance weights fail."""

from __future__ import annotations

import json

import numpy as np

from bayeszoo.answers.averages import all_others, log_means
from bayeszoo.data.read import Data
from bayeszoo.errors import NumericalError
from bayeszoo.fit import fit as run
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.density import log_density
from bayeszoo.results.stored import Fit

MOST_REFITS = 50
"""Largest number of refits without a row: each takes as long as the fit itself."""


def log_predictive(fit: Fit, rows: Arrays, weights: np.ndarray, i: int) -> tuple[float, float]:
    """Return the log density of an observation by a fit to all others, and its Monte Carlo error.

    Observations occur ``weights`` (M,) times. Raises `NumericalError` if the fit fails its gate.
    """
    model, attrs = fit.model, fit.tree.attrs
    others, row = all_others(model, rows, weights, i), model.inputs.reordered(rows, np.array([i]))
    data = Data(others, checked_for=(model.inputs, False))
    tree = run(model, data, fit.method, seed=attrs["seed"], groups=(), **json.loads(attrs["options"]))
    if tree.attrs["status"] != "ok":
        raise NumericalError(f"the fit without row {i + 1} is not ok ({tree.attrs['status']})", "not_ok")
    refitted = Fit(tree)
    log_p = log_density(model.law(refitted.draws(), others, row), model.inputs.outcome(row))
    value, error = (float(values[0]) for values in log_means(log_p, independent=refitted.has_independent_draws))
    if np.isnan(value):
        raise NumericalError(f"few draws of the fit without row {i + 1} carry its density", "no_score")
    return value, error
