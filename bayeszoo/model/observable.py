"""Models of which the distribution of one row is at hand, and those of which the outcome is one of several classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from bayeszoo.data.inputs.labels import outcomes_of
from bayeszoo.model.base import Model, Values


class Observable(Model, family=True):
    """The distribution of one row given the parameters is at hand as a SciPy distribution."""

    @abstractmethod
    def likelihood(self, params: Values, data: Values) -> Any:
        """Return the distribution of each row of ``data``; parameters may carry leading axes of draws."""


class Classifies(Observable, family=True):
    """The outcome of a row, or of each of its trials, is one of K classes, whose codes are 0 to K - 1: `bz.classify`.

    A model whose `likelihood` is binomial or categorical names this base and has no step to add.
    """

    def classes(self, data: Values) -> list[str]:
        """Return the names of the classes by their codes: the labels of coded outcomes, of a binary one its two."""
        if axis := self.inputs.coded.get(self.inputs.name):
            return list(map(str, data[axis]))
        zero, one = outcomes_of(data)
        return [zero or f"not {one}", one]

    def log_class_probabilities(self, params: Values, data: Values) -> np.ndarray:
        """Return the log probability of each class, shape (..., rows, K); leading axes of the parameters are draws."""
        single = {**data, "trials": np.ones_like(data["trials"])} if "trials" in data else data
        law, rows = self.likelihood(params, single), self.inputs.size(data)
        return np.stack([law.logpmf(np.full(rows, code)) for code in range(len(self.classes(data)))], axis=-1)
