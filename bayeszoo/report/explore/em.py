"""The page that steps through EM for a Gaussian mixture of one column, by tables computed in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Document, Params
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import EM, Latent, Observable
from bayeszoo.model.views import View
from bayeszoo.report.explore.packing import base64_of, packed

STARTS, STEPS = 6, 61
"""Number of starts, and of places on the slider of steps, with the start."""
BINS, BARS = 200, 30
"""Points of a density, and bars of the histogram of the rows."""
MARGIN = 0.15
"""Margin of the picture on either side, relative to the range of the rows."""


def is_stepped(model: Model) -> bool:
    """Return whether the page of a model steps through EM: it is a mixture of normal components."""
    is_mixture = isinstance(model, EM) and isinstance(model, Latent) and View.COMPONENTS in model.views()
    return is_mixture and {"weights", "means", "covariances"} <= {*model.dims}


def tables(model: Model, rows: Data) -> Document:
    """Return the content of the page, by start and step; arrays are base64."""
    assert isinstance(model, EM)
    Y, K = rows["Y"], int(fields_of(model)["K"])
    if Y.shape[1] != 1:
        hint = "name one of them: --columns NAME"
        raise InputError(f"the page steps through mixtures of one column, got {Y.shape[1]}", "wrong_columns", hint=hint)
    low, high = _ends(Y[:, 0])
    x = low + (np.arange(BINS) + 0.5) * (high - low) / BINS
    histogram = np.histogram(Y[:, 0], BARS, (low, high), density=True)[0]
    curves, numbers = list[np.ndarray](), list[list[float]]()
    for start in range(STARTS):
        for params, log_joint in climb(model, rows, np.random.default_rng(start)):
            curves.append(_densities(model, params, x))
            numbers.append([log_joint, *_in_rows(params)])
    top = max(float(histogram.max()), *(float(densities[-1].max()) for densities in curves))
    content = {"model": model.name, "source": rows.source, "rows": rows.rows, "K": K, "bins": BINS}
    content |= {"fields": fields_of(model), "column": str(rows["column"][0]), "ends": [low, high]}
    content |= {"starts": STARTS, "steps": STEPS, "histogram": (histogram / top).tolist()}
    heights = np.minimum(np.array(curves) / top, 1.0)
    return content | {"parts": packed(heights), "numbers": base64_of(np.array(numbers, dtype="<f8"))}


def climb(model: EM, rows: Data, rng: np.random.Generator) -> Iterator[tuple[Params, float]]:
    """Yield parameters and log joint density at the start and after each step of EM."""
    params = first(model, rows, rng)
    for _ in range(STEPS):
        expectation = model.e_step(params, rows)
        yield params, float(expectation.value + model.log_prior(params, rows))
        params = model.m_step(expectation.stats)


def first(model: EM, rows: Data, rng: np.random.Generator) -> Params:
    """Return equal weights, rows drawn at random as means, and the standard deviation of all rows.

    `fit` starts nearer to a maximum, with fewer steps to show.
    """
    y, params = rows["Y"], model.start(rows, rng)
    weights = np.full_like(params["weights"], 1 / len(params["weights"]))
    means = rng.choice(y, len(weights), replace=False)
    return {"weights": weights, "means": means, "covariances": np.full_like(params["covariances"], np.var(y))}


def _ends(y: np.ndarray) -> tuple[float, float]:
    """Return the ends of the picture."""
    margin = MARGIN * float(np.ptp(y)) or 1.0
    return float(y.min()) - margin, float(y.max()) + margin


def _densities(model: Model, params: Params, x: np.ndarray) -> np.ndarray:
    """Return the density of each component times its weight, and that of the mixture, (K + 1, places)."""
    assert isinstance(model, Latent)
    assert isinstance(model, Observable)
    places = {"Y": x[:, None], "column": np.array(["x"])}
    law: Any = model.likelihood(params, places)
    mixture = np.exp(law.logpdf(places["Y"]))
    shares = model.component_probabilities(params, places)
    return np.vstack([shares.T * mixture, mixture])


def _in_rows(params: Params) -> list[float]:
    """Return weight, mean and standard deviation of each component."""
    weights, means = params["weights"], params["means"][:, 0]
    sds = np.broadcast_to(np.sqrt(np.ravel(params["covariances"])), weights.shape)  # tied ones are equal
    numbers: list[float] = np.ravel(np.stack([weights, means, sds], axis=1)).tolist()
    return numbers
