"""What mixtures of topics share besides their declaration and steps: densities, q(theta), and topics integrated out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions import simplex
from bayeszoo.distributions.dirichlet import Dirichlet, log_dirichlet_ratio, log_multinomial
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.families.documents.mixture_of_words import DocumentMixture, log_terms, words_by_topic
from bayeszoo.families.mixtures.base import MixtureModel, log_count_probability, symmetrized
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import Observable


class DocumentMixtureModel(MixtureModel, Observable, family=True):
    """Documents that are each of one topic; a subclass declares it and gives the steps of EM and VB.

    Parameters are ``weights`` (K,) and ``topics`` (K, words); q(theta) is a mapping of both to the concentrations of
    Dirichlet distributions, and of ``eta`` to that of the prior. Densities are of the ordered words.
    """

    eta: Any

    def _eta(self, data: Values) -> np.ndarray:
        return self.entries("eta", len(data["word"]))

    def coords(self, data: Values) -> dict[str, Any]:
        """Return the words, and the numbers of the topics."""
        return {"word": data["word"], "component": np.arange(1, self.K + 1)}

    def log_terms(self, params: Values, data: Values) -> np.ndarray:
        """Return the log of weight times density of the ordered words, of shape (..., documents, K)."""
        return log_terms(data["counts"], params["weights"], params["topics"])

    def moments(self, each: np.ndarray, data: Values) -> dict[str, np.ndarray]:
        """Return expected documents and words of each topic, and the prior of the latter."""
        return {"documents": each.sum(axis=0), "words": each.T @ data["counts"], "eta": self._eta(data)}

    def log_prior(self, params: Values, data: Values) -> np.ndarray:
        """Log density of weights and topics; leading axes are draws."""
        of_topics = simplex.log_density(params["topics"], self._eta(data)).sum(axis=-1)
        return simplex.log_density(params["weights"], np.full(self.K, self.alpha)) + of_topics

    def free_parameters(self, stats: Any) -> int:
        """Return K - 1 weights and K (V - 1) probabilities of words."""
        return self.K - 1 + self.K * (len(stats["word"]) - 1)

    def unbounded(self, data: Values) -> str:
        """Say why the posterior density has no maximum; nothing where it has one."""
        of_words = "eta < 1: it grows without bound as the probability of a word goes to 0"
        return super().unbounded(data) or of_words * bool(np.min(self.eta) < 1)

    def log_coefficient(self, data: Values) -> float:
        """Return the log of how many ordered documents the counts stand for."""
        return float(np.sum(log_multinomial(data["counts"])))

    def expected_log_terms(self, q: Any, data: Values) -> np.ndarray:
        """Return the expected log of weight times density, of shape (documents, K)."""
        return simplex.expected_log(q["weights"]) + data["counts"] @ simplex.expected_log(q["topics"]).T

    def divergence(self, q: Any) -> float:
        """Return KL(q(theta) || prior)."""
        return simplex.divergence(q["weights"], self.alpha) + simplex.divergence(q["topics"], q["eta"])

    def vb_posterior(self, q: Any) -> Posterior:
        """Return q(theta): independent Dirichlet distributions."""
        return Posterior.product(*(Dirichlet(q[name]).posterior(name) for name in self.dims))

    def vb_log_density(self, q: Any, params: Values) -> np.ndarray:
        """Log density of q(theta), averaged over the orders of the labels; leading axes are draws."""
        pairwise = simplex.log_density(params["topics"][..., None, :, :], q["topics"][:, None])
        return symmetrized(q["weights"], params["weights"], pairwise)

    def log_joint(self, assignments: np.ndarray, data: Values) -> np.ndarray:
        """Return log p(w, z), parameters integrated out, of shape (M,) for assignments of shape (M, documents)."""
        words = words_by_topic(assignments, data["counts"], self.K)
        of_words = log_dirichlet_ratio(self._eta(data), words).sum(axis=-1)
        return log_count_probability(assignments, self.K, self.alpha) + of_words

    def likelihood(self, params: Values, data: Values) -> DocumentMixture:
        """Return the distribution of each document's counts; its log mass is that of the ordered words."""
        return DocumentMixture(data["counts"].sum(axis=1), params["weights"], params["topics"])
