"""Models with a distribution of one row, and models whose outcome is one of several classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy

from bayeszoo.data.inputs import places_of
from bayeszoo.data.inputs.labels import outcomes_of
from bayeszoo.distributions.averaged import RowLaw
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.views import View


class Observable(Model, family=True):
    """The distribution of one row given the parameters is a SciPy distribution."""

    @abstractmethod
    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each row of ``data``; parameters may carry leading axes of draws."""

    def information(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return mutual informations (...) in nats by name; none by default.

        They are of the class and each feature, where these have a distribution, else of columns of a row. NaN where
        they are not known to 1e-7. Leading axes of the parameters are draws.
        """
        return {}

    def entropies(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the entropy (...) of a row in nats by what it is of; differential of numbers. None by default."""
        return {}

    def row_divergence(self, params: Params, other: Self, others: Params, data: Arrays) -> np.ndarray | None:
        """Return KL(row || row of another model of the class at other parameters) (...); None where not known."""
        return None

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of new rows given the parameters: they are independent of those seen."""
        law: RowLaw = self.likelihood(at_rows(self, params, seen, new, rng), new)
        return law

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the distribution of rows given the parameters: they are independent of all others."""
        return self.law(params, seen, self.inputs.reordered(seen, places))


class Classifies(Observable, family=True):
    """The outcome of a row, or of each of its trials, is one of K classes, whose codes are 0 to K - 1: `bz.classify`.

    A model whose `likelihood` is binomial or categorical names this base and has no step to add.
    """

    has_comparable_rows: ClassVar[bool] = True
    """Whether densities of features compare from row to row; those of documents of different lengths do not."""

    @property
    def density_of(self) -> str:
        """What the density of features is of, where one model has several kinds: others do not compare with it."""
        return ""

    def views(self) -> frozenset[View]:
        """Show whether probabilities of classes came true."""
        return super().views() | {View.CLASSES}

    def classes(self, data: Arrays) -> list[str]:
        """Return the names of the classes by their codes: the labels of coded outcomes, of a binary one its two."""
        if axis := self.inputs.coded.get(self.inputs.name):
            return list(map(str, data[axis]))
        zero, one = outcomes_of(data)
        return [zero or f"not {one}", one]

    def log_joint_classes(self, params: Params, data: Arrays) -> np.ndarray | None:
        """Return the log joint density of each class and the row's features, (..., rows, K); None of given features.

        The scores of a model that has it are of features too, and compare with none of a class given the features.
        """
        return None

    def log_terms_of_rows(self, stats: Any, data: Arrays) -> dict[str, np.ndarray] | None:
        """Return terms (rows, K) that add up to the log density of class and features; None where there are none."""
        return None

    def counts_of_levels(self, stats: Any) -> dict[str, np.ndarray]:
        """Return how often each level of a feature occurred in each class, (K, L), by feature; others are left out."""
        return {}

    @classmethod
    def has_law_of_features(cls) -> bool:
        """Say whether features have a distribution, and the density of a row is a joint one of class and features."""
        return cls.log_joint_classes is not Classifies.log_joint_classes

    def log_class_probabilities(self, params: Params, data: Arrays, seen: Arrays | None = None) -> np.ndarray:
        """Return the log probability of each class, shape (..., rows, K); leading axes of the parameters are draws.

        ``seen`` are the rows of the fit, by default those of ``data``.
        """
        if (joint := self.log_joint_classes(params, data)) is not None:
            return np.asarray(scipy.special.log_softmax(joint, axis=-1))
        single = {**data, "trials": np.ones_like(data["trials"])} if "trials" in data else data
        rows = self.inputs.size(data)
        law: Any = self.likelihood(params, single) if seen is None else self.law(params, seen, single)
        return np.stack([law.logpmf(np.full(rows, code)) for code in range(len(self.classes(data)))], axis=-1)


class CompletingRows(RowLaw, Protocol):
    """The law of rows of levels, which gives those that are missing, as places -1, from the others."""

    def level_probabilities(self, levels: np.ndarray) -> np.ndarray:
        """Return the probability of each level given the levels of the row, (rows, L)."""

    def completed(self, levels: np.ndarray) -> np.ndarray:
        """Return the most probable levels of whole rows given those that they have, as places."""


class Completes(Observable, family=True):
    """Rows of levels, as places in the array ``levels``, of which those that are missing follow from the others."""

    @abstractmethod
    def likelihood(self, params: Params, data: Arrays) -> CompletingRows:
        """Return the distribution of each row."""


class Latent(Model, family=True):
    """Each row has a latent variable, whose distribution given the parameters is known."""

    K: int
    component_axis: ClassVar[str] = ""
    """The axis, by its name in ``dims``, whose labels name the components; nothing where they are numbered."""

    def views(self) -> frozenset[View]:
        """Show which component each row is of."""
        return super().views() | {View.COMPONENTS}

    @abstractmethod
    def component_probabilities(self, params: Params, data: Arrays) -> Any:
        """Return the probability of each component, shape (..., rows, K); leading axes are draws.

        Of a latent variable that is a number: its mean, shape (..., rows).
        """


def at_rows(model: Model, params: Params, seen: Arrays, rows: Arrays, rng: np.random.Generator | None = None) -> Arrays:
    """Return parameters for some rows; parameters with one entry per row are selected by row name.

    Those of rows that the fit does not have are drawn by the model's `own_parameters`, which may refuse.
    """
    axis, along = model.inputs.row_names, row_axes(model)
    if axis is None or not along:
        return params
    labels, places = seen[axis], places_of(rows[axis], seen[axis])
    if len(unseen := np.flatnonzero(places < 0)):
        new = model.inputs.reordered(rows, unseen)
        own = model.own_parameters(params, new, rng)
        params = {**params, **{name: np.concatenate([params[name], own[name]], axis=i) for name, i in along.items()}}
        places = places_of(rows[axis], np.concatenate([labels, new[axis]]))
    return {name: np.take(v, places, axis=along[name]) if name in along else v for name, v in params.items()}


def row_axes(model: Model) -> dict[str, int]:
    """Return the place, counted from the last, of the axis of rows among those of each parameter that has it."""
    name = str(model.inputs.row_names)
    return {param: axes.index(name) - len(axes) for param, axes in model.dims.items() if name in axes}
