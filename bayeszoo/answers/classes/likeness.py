"""Are new rows like the training rows? By the density of their features, whatever their class."""

from __future__ import annotations

from typing import cast

import numpy as np

from bayeszoo.answers.classes.probabilities import class_probabilities
from bayeszoo.data.inputs import LabelledDocuments
from bayeszoo.data.read import Data
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Classifies
from bayeszoo.model.parts.accumulated import Accumulated
from bayeszoo.results.stored import Fit


def share_as_low(fit: Fit, data: Data, log_features: np.ndarray) -> np.ndarray:
    """Return for each new row the share of training rows whose features have as low a density.

    NaN if cells of the row are missing, as its density is of fewer features; if the training rows were not kept; and
    for documents, whose lengths differ.
    """
    model = cast(Classifies, fit.model)
    if isinstance(fit.observed, Accumulated) or isinstance(model.inputs, LabelledDocuments):
        return np.full(len(log_features), np.nan)
    parts = list(class_probabilities(fit, fit.data, None, False))
    of_training = np.concatenate([part.log_features for part in parts])
    training = np.sort(of_training[~_has_holes(model, fit.data)[np.concatenate([part.rows for part in parts])]])
    share = np.searchsorted(training, log_features, side="right") / max(len(training), 1)
    return np.where(_has_holes(model, data), np.nan, share)


def _has_holes(model: Model, data: Arrays) -> np.ndarray:
    """Mark the rows with a missing cell."""
    coded = model.inputs.coded  # a missing code is -1
    holes = np.zeros(model.inputs.size(data), dtype=bool)
    for name, values in data.items():
        if name not in model.inputs.coords and name != model.inputs.name:
            missing = values < 0 if name in coded else np.isnan(values)
            holes |= missing.reshape(len(holes), -1).any(axis=1)
    return holes
