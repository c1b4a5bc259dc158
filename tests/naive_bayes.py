r"""Naive Bayes on conjugate blocks: classes of rows whose features are independent given the class.

    shares    ~ Dirichlet(alpha 1_K)
    theta_jk  ~ the conjugate prior of feature j's kind         each class k
    c_n       ~ Categorical(shares)                             n = 1..N, -1 where it is missing
    x_nj      ~ the law of feature j given theta_jk, k = c_n     a missing cell is left out

Kinds: yes or no, levels, counts and reals. A scratch model: it shows what the blocks leave to be written.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from bayeszoo.distributions.conjugate.categorical import Bernoulli, Categorical
from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.conjugate.product import Features, Product, Several


@dataclass(frozen=True)
class NaiveBayes:
    """Classes with a Dirichlet prior, and features by name: ``yes_no``, ``levels`` (with how many), counts, reals."""

    classes: int
    yes_no: tuple[str, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()
    counts: tuple[str, ...] = ()
    reals: tuple[str, ...] = ()
    alpha: float = 1.0
    eta: float = 1.0
    a: float = 1.0
    b: float = 1.0
    m: float = 0.0
    kappa: float = 0.01

    def prior(self) -> Product:
        """Return the prior of the shares, and of each feature's parameters in each class."""
        K, each = self.classes, np.ones(self.classes)
        laws: list[Law] = [Bernoulli((f"p[{j}]",), j, self.eta * each, self.eta * each) for j in self.yes_no]
        laws += [Categorical((f"p[{j}]",), j, np.full((K, V), self.eta)) for j, V in self.levels]
        laws += [Poisson((f"rate[{j}]",), j, self.a * each, self.b * each) for j in self.counts]
        normal = self.m * each, self.kappa * each, self.a * each, self.b * each
        laws += [Normal((f"mean[{j}]", f"variance[{j}]"), j, *normal) for j in self.reals]
        return Product((Categorical(("shares",), "class", np.full(K, self.alpha)), Features(tuple(laws))))

    def statistics(self, data) -> Several:
        """Return the statistics of classes and of features by class; rows without a class count for nothing."""
        shares, features = self.prior().laws
        hot = np.eye(self.classes + 1)[data["class"] + 1][:, 1:]
        return Several((shares.statistics(data, np.ones(len(hot))), features.statistics(data, hot)))

    def log_evidence(self, stats) -> float:
        """Log density of classes and features, parameters integrated out."""
        return float(
            sum(np.sum(law.log_evidence(own)) for law, own in zip(self.prior().laws, stats.parts, strict=True))
        )

    def posterior(self, stats):
        """Return shares and parameters, independent."""
        shares, features = self.prior().updated(stats).laws
        return Product((shares, *features.laws)).posterior()

    def log_joint_classes(self, stats, data) -> np.ndarray:
        """Log density of each class and the features of each new row, (rows, K): exact, as a ratio of evidences."""
        shares, features = self.prior().updated(stats).laws
        return np.log(shares.typical()["shares"]) + features.log_predictive(data)

    def class_probabilities(self, stats, data) -> np.ndarray:
        """Return the exact predictive probabilities of the classes of new rows, (rows, K)."""
        return scipy.special.softmax(self.log_joint_classes(stats, data), axis=1)

    def mle(self, stats) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood."""
        shares, features = self.prior().laws
        return {**shares.mle(stats.parts[0]), **features.mle(stats.parts[1])}

    def log_classes_at(self, params, data) -> np.ndarray:
        """Log density of each class and the features of each row at parameters, (..., rows, K)."""
        return np.log(params["shares"])[..., None, :] + self.prior().laws[1].log_density(params, data)
