"""Models with a distribution of one row, and models whose outcome is one of several classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy

from bayeszoo.data.inputs import places_of
from bayeszoo.data.inputs.labels import outcomes_of
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.foundation.named import Arrays, Params, Statistics
from bayeszoo.model.base import Model
from bayeszoo.model.views import View


class Observable(Model, family=True):
    """The distribution of one row given the parameters is a SciPy distribution."""

    @abstractmethod
    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each row of ``data``; parameters may have leading axes of draws."""

    def information(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return mutual informations in nats by name, of shape (...); none by default.

        They are between class and each feature if features have a distribution, else between columns. NaN where
        they are not known to 1e-7. Leading axes of the parameters are draws.
        """
        return {}

    def entropies(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return entropies of a row in nats by name, shape (...); differential for continuous rows. None by default."""
        return {}

    def row_divergence(self, params: Params, other: Self, others: Params, data: Arrays) -> np.ndarray | None:
        """Return KL(row || row of ``other`` at ``others``), shape (...), same class; None where not known."""
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

    A model whose `likelihood` is binomial or categorical names this base and adds no step.
    """

    @property
    def density_of(self) -> str:
        """The kind of feature density, if the model has several kinds; only equal kinds are comparable."""
        return ""

    def views(self) -> frozenset[View]:
        """Show the class probabilities against the observed classes."""
        return super().views() | {View.CLASSES}

    def classes(self, data: Arrays) -> list[str]:
        """Return the names of the classes by their codes: labels of coded outcomes, or the two of a binary outcome."""
        if axis := self.inputs.coded.get(self.inputs.name):
            return list(map(str, data[axis]))
        negative, positive = outcomes_of(data)
        return [negative or f"not {positive}", positive]

    def log_joint_classes(self, params: Params, data: Arrays) -> np.ndarray | None:
        """Return the log joint density of class and features, (..., rows, K); None for discriminative models.

        Scores of a model with this step include the features; they are not comparable with scores of the class alone.
        """
        return None

    def log_terms_of_rows(self, stats: Statistics, data: Arrays) -> dict[str, np.ndarray] | None:
        """Return terms (rows, K) that add up to the log joint density of class and features, if there are any."""
        return None

    def counts_of_levels(self, stats: Statistics) -> dict[str, np.ndarray]:
        """Return counts (K, L) of each level in each class, by feature; features without levels are left out."""
        return {}

    @classmethod
    def has_law_of_features(cls) -> bool:
        """Say whether the model is generative: the density of a row is the joint one of class and features."""
        return cls.log_joint_classes is not Classifies.log_joint_classes

    def log_class_probabilities(
        self, params: Params, data: Arrays, seen: Arrays | None = None, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        """Return the log probability of each class, shape (..., rows, K); leading axes of the parameters are draws.

        ``seen`` are the rows of the fit, by default those of ``data``; ``rng`` draws the intercepts of new groups.
        """
        if (joint := self.log_joint_classes(params, data)) is not None:
            return np.asarray(scipy.special.log_softmax(joint, axis=-1))
        single = {**data, "trials": np.ones_like(data["trials"])} if "trials" in data else data
        rows = self.inputs.size(data)
        law: Any = self.likelihood(params, single) if seen is None else self.law(params, seen, single, rng)
        return np.stack([law.logpmf(np.full(rows, code)) for code in range(len(self.classes(data)))], axis=-1)


class CompletingRows(RowLaw, Protocol):
    """The law of rows of levels, with the probabilities of missing levels (code -1) given the others."""

    def level_probabilities(self, levels: np.ndarray) -> np.ndarray:
        """Return the probability of each level given the observed levels of the row, shape (rows, L)."""

    def completed(self, levels: np.ndarray) -> np.ndarray:
        """Return the codes of the most probable complete rows given their observed levels."""


class Completes(Observable, family=True):
    """Rows of levels, coded by the array ``levels``; missing levels are predicted from the others."""

    @abstractmethod
    def likelihood(self, params: Params, data: Arrays) -> CompletingRows:
        """Return the distribution of each row."""


class Latent(Model, family=True):
    """Each row has a latent variable with a known distribution given the parameters and the row."""

    K: int
    component_axis: ClassVar[str] = ""
    """The axis, by its name in ``dims``, whose labels name the components; empty where they are numbered."""

    def views(self) -> frozenset[View]:
        """Show the component of each row."""
        return super().views() | {View.COMPONENTS}

    @abstractmethod
    def component_probabilities(self, params: Params, data: Arrays) -> Any:
        """Return the probability of each component, shape (..., rows, K); leading axes are draws.

        Of a latent variable that is a number: its mean, shape (..., rows).
        """


def at_rows(model: Model, params: Params, seen: Arrays, rows: Arrays, rng: np.random.Generator | None = None) -> Arrays:
    """Return parameters for some rows; parameters with one entry per row are selected by row name.

    Parameters of rows that are not in the fit are drawn by `own_parameters`, which may refuse.
    """
    axis, axis_of = model.inputs.row_names, row_axes(model)
    if axis is None or not axis_of:
        return params
    labels, places = seen[axis], places_of(rows[axis], seen[axis])
    if len(unseen := np.flatnonzero(places < 0)):
        new = model.inputs.reordered(rows, unseen)
        of_new = model.own_parameters(params, new, rng)
        params = {
            **params,
            **{name: np.concatenate([params[name], of_new[name]], axis=i) for name, i in axis_of.items()},
        }
        places = places_of(rows[axis], np.concatenate([labels, new[axis]]))
    return {
        name: np.take(values, places, axis=axis_of[name]) if name in axis_of else values
        for name, values in params.items()
    }


def row_axes(model: Model) -> dict[str, int]:
    """Return the (negative) position of the axis of rows in each parameter that has one."""
    name = str(model.inputs.row_names)
    return {param: axes.index(name) - len(axes) for param, axes in model.dims.items() if name in axes}
