"""Steps of all class-conditional models: the joint law of class and features, and classes by Bayes' theorem."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import LabelledStats
from bayeszoo.distributions.discrete import ClassWithFeatures
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.named import Arrays, Fields, Params
from bayeszoo.model.capabilities import Classifies
from bayeszoo.model.capabilities.closed import BlockModel
from bayeszoo.model.fields import plain


class ClassConditional(BlockModel[LabelledStats], Classifies, family=True):
    """Classes with shares ~ Dirichlet(alpha), and features with a conjugate law in each class.

    A subclass gives the law. Parameters are ``shares`` (K,) and those of the law. The exact class probabilities of a
    row are ratios of evidences: parameters are integrated out.
    """

    alpha: Any

    @abstractmethod
    def features_law(self, labels: Arrays) -> Law[Any]:
        """Return the law of a row's features in each of K classes, with its prior, from the labels of the axes."""

    @abstractmethod
    def fields_of_features(self, law: Any) -> Fields:
        """Return the fields of a law of the features."""

    def prior(self, labels: Arrays) -> MixturePrior:
        """Return the prior of all parameters."""
        alpha = self.entries("alpha", len(labels["class"]))
        return MixturePrior((Categorical(("shares",), self.inputs.name, alpha), self.features_law(labels)))

    def block(self, stats: LabelledStats) -> MixturePrior:
        """Return the prior for data with these statistics."""
        return self.prior(stats.labels)

    def from_block(self, block: MixturePrior) -> Self:
        """Return the model whose prior is a block."""
        return self.replaced(alpha=plain(block.weights.alpha), **self.fields_of_features(block.law))

    def rows_of(self, data: Arrays) -> Arrays:
        """Return the rows in the form that the laws of class and features need; by default unchanged."""
        return data

    def statistics(self, data: Arrays) -> LabelledStats:
        """Return the counts of the classes, and the statistics of the features in each class."""
        shares, features = self.prior(data).laws
        codes = np.asarray(data[self.inputs.name])
        counts = shares.statistics(data, np.ones(len(codes)))
        labels = {name: data[name] for name in self.inputs.coords}
        return LabelledStats((counts, features.statistics_by(codes, self.rows_of(data))), labels=labels)

    def feature_names(self, labels: Arrays) -> list[str]:
        """Return the names of the features that are independent given the class, in the order of their laws."""
        return ["features"]

    def log_terms_of_rows(self, stats: LabelledStats, data: Arrays) -> dict[str, np.ndarray]:
        """Return named terms (rows, K) whose sum is the log density of class and features.

        Parameters are integrated out. The first term is that of the shares; the others are one per feature, or one for
        features that depend on each other.
        """
        posterior = self.block(stats).updated(stats)
        shares = np.log(posterior.weights.typical()["shares"]) + np.zeros((self.inputs.size(data), 1))
        terms = (law.log_predictive(rows) for law, rows in posterior.law.apart(self.rows_of(data)))
        return {"(shares)": shares, **dict(zip(self.feature_names(stats.labels), terms, strict=True))}

    def mle(self, stats: LabelledStats) -> dict[str, np.ndarray]:
        """Return the parameters of maximum likelihood; raise `NumericalError` if a class has no rows."""
        labels, counts = stats.labels["class"], stats.parts[0].counts
        if (counts == 0).any():
            raise NumericalError(
                f"no maximum-likelihood estimate: there are no rows of class {labels[np.argmin(counts)]}", "no_data"
            )
        return super().mle(stats)

    def moments_below(self, data: Arrays) -> float:
        """Return infinity: the outcome is one of K classes."""
        return math.inf

    def log_joint_classes(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log joint density of each class and the row's features, (..., rows, K)."""
        return self.prior(data).log_terms(params, self.rows_of(data))

    def likelihood(self, params: Params, data: Arrays) -> ClassWithFeatures:
        """Return the law of each row's class and features; parameters may carry leading axes of draws."""
        return ClassWithFeatures(self.log_joint_classes(params, data))

    def predictive(self, stats: LabelledStats, data: Arrays) -> ClassWithFeatures:
        """Return the law of each row's class and features, parameters integrated out."""
        return ClassWithFeatures(self.block(stats).updated(stats).log_predictive_terms(self.rows_of(data)))
