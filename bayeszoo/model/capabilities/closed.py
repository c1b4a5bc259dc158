"""Bases of models with closed forms, and of models that are one conjugate block."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.posterior import Marginal, Posterior
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities.observable import Observable

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.foundation.gate import Check


class Sufficient[S: Stats](Model, family=True):
    """The likelihood depends on the data only through additive statistics, so its cost does not grow with N."""

    @abstractmethod
    def statistics(self, data: Arrays) -> S:
        """Return the statistics of the data."""

    @abstractmethod
    def compressed(self, stats: S) -> pm.Model:
        """Declare the density of the ordered data from the statistics, with the variables of ``declare``."""

    def log_likelihood(self, stats: S, params: Params) -> Any:
        """Return the log density of the ordered data; leading axes are draws. None if it needs the rows."""
        return None


class ClosedForm[S: Stats](Sufficient[S], family=True):
    """Posterior and evidence are known in closed form, without PyMC.

    A model whose closed form holds for some data only raises `NumericalError` for the others.
    """

    along_points: ClassVar[tuple[str, ...]] = ()
    """Fields that `at_points` may set to many values at once in `posterior` and `log_evidence`.

    It holds for the class that defines it only: a subclass may have other steps.
    """

    def at_points(self, fields: Params) -> Self:
        """Return the model with fields of shape (P,): its evidence has that shape, its posterior (P, *own shape).

        A field that is a vector, of shape (P, entries), becomes a tuple of entries, each of shape (P,).
        """
        model = copy(self)
        for name, values in fields.items():
            points = np.asarray(values, dtype=np.float64)
            is_vector = isinstance(getattr(self, name), tuple)
            object.__setattr__(model, name, tuple(np.moveaxis(points, -1, 0)) if is_vector else points)
        return model

    @abstractmethod
    def posterior(self, stats: S) -> Posterior:
        """Return the posterior; without data, the prior."""

    @abstractmethod
    def log_evidence(self, stats: S) -> float:
        """Return the log marginal likelihood of the ordered data, with every constant."""

    def log_prior(self, params: Params, data: Arrays) -> Any:
        """Return the log density of the prior; leading axes are draws. None where only `posterior` gives it."""
        return None

    def log_evidence_counts(self, stats: S) -> float:
        """Return the log marginal likelihood of a table of counts, without the order of its rows."""
        return self.log_evidence(stats) + stats.log_coefficient

    def derived_marginals(self, stats: S) -> dict[str, Marginal]:
        """Return the posterior distributions of quantities of ``derived`` that have a closed form."""
        return {}

    def figures(self, stats: S) -> dict[str, float]:
        """Return numbers to show with the evidence of an exact fit; NaN is shown as withheld."""
        return {}


class Predictive[S: Stats](ClosedForm[S], family=True):
    """The posterior predictive distribution is known in closed form as well."""

    @abstractmethod
    def predictive(self, stats: S, data: Arrays) -> Any:
        """Return the posterior predictive distribution of each row of ``data``: a frozen SciPy distribution."""


class Conjugate[S: Stats](Predictive[S], family=True):
    """The posterior is in the prior's family: it can be the prior for the next data."""

    @abstractmethod
    def updated(self, stats: S) -> Self:
        """Return the model whose prior is this model's posterior."""


class PointEstimates[S: Stats](ClosedForm[S], family=True):
    """The MAP and the maximum-likelihood estimate are known in closed form."""

    @abstractmethod
    def free_parameters(self, stats: S) -> int:
        """Return how many numbers the likelihood is maximized over."""

    @abstractmethod
    def map(self, stats: S) -> dict[str, np.ndarray]:
        """Return the mode of the posterior in the constrained space (no Jacobian), or raise `NumericalError`."""

    @abstractmethod
    def mle(self, stats: S) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood, or raise `NumericalError`."""

    def certificate(self, stats: S, params: Params) -> list[Check]:
        """Check that a point is the mode, for densities with corners, where small steps do not show it."""
        return []


class ConjugatePrior[S: Stats](Protocol):
    """A conjugate prior of all parameters: one block, or several."""

    @property
    def free_parameters(self) -> int:
        """How many numbers the likelihood is maximized over."""

    @property
    def moments_below(self) -> float:
        """The order below which moments of a new row exist, parameters integrated out."""

    def updated(self, stats: S) -> Self:
        """Return the posterior given statistics."""

    def log_evidence(self, stats: S) -> np.ndarray:
        """Return terms that add up to the log marginal likelihood of the ordered rows."""

    def posterior(self) -> Posterior:
        """Return the distribution of all parameters."""

    def mode(self) -> dict[str, np.ndarray]:
        """Return the mode of the density."""

    def mle(self, stats: S) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood."""


class BlockModel[S: Stats](Conjugate[S], PointEstimates[S], Observable, family=True):
    """A model whose prior is a conjugate block: a subclass converts its fields to a block and back."""

    _is_at_points: ClassVar[bool] = False

    def at_points(self, fields: Params) -> Self:
        """Return the model with all fields of shape (P,), fixed ones repeated: its block has an axis of points."""
        shape = np.broadcast_shapes(*map(np.shape, fields.values()))
        repeated = {name: np.broadcast_to(getattr(self, name), shape) for name in self.along_points}
        model = super().at_points({**repeated, **fields})
        object.__setattr__(model, "_is_at_points", True)
        return model

    @abstractmethod
    def block(self, stats: S) -> ConjugatePrior[S]:
        """Return the prior; its sizes are those of the statistics."""

    @abstractmethod
    def from_block(self, block: Any) -> Self:
        """Return the model with this block as its prior."""

    def posterior(self, stats: S) -> Posterior:
        """Return the posterior, in the prior's family."""
        block = self.block(stats).updated(stats)
        return block.at_points() if self._is_at_points and isinstance(block, Block) else block.posterior()

    def log_evidence(self, stats: S) -> float:
        """Return the log marginal likelihood of the ordered data, with every constant."""
        terms: Any = self.block(stats).log_evidence(stats)
        return terms if self._is_at_points else float(np.sum(terms))

    def updated(self, stats: S) -> Self:
        """Return the model whose prior is this model's posterior."""
        return self.from_block(self.block(stats).updated(stats))

    def entropies(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the entropy of a row if all rows have one law."""
        block: object = self.block(self.statistics(data))
        entropy = block.entropy(params) if isinstance(block, Block) and block.axes == () else None
        return {} if entropy is None else {"entropy": entropy}

    def entropy_moments(self, stats: S) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean and sd of the entropy of a row under the posterior; None where they have no closed form."""
        block: object = self.block(stats).updated(stats)
        return block.entropy_moments() if isinstance(block, Block) and block.axes == () else None

    def row_divergence(self, params: Params, other: Self, others: Params, data: Arrays) -> np.ndarray | None:
        """Return the KL divergence of a row if all rows have one law."""
        stats = self.statistics(data)
        block: Any = self.block(stats)
        is_one_law = isinstance(block, Block) and block.axes == ()
        return block.row_divergence(params, other.block(stats), others) if is_one_law else None

    def moments_below(self, data: Arrays) -> float:
        """Return the order below which moments of a new row exist, from the posterior."""
        stats = self.statistics(data)
        return self.block(stats).updated(stats).moments_below

    def free_parameters(self, stats: S) -> int:
        """Return how many numbers the likelihood is maximized over."""
        return self.block(stats).free_parameters

    def map(self, stats: S) -> dict[str, np.ndarray]:
        """Return the mode of the posterior in the constrained space, which may lie on an edge."""
        return _plain(self.block(stats).updated(stats).mode())

    def mle(self, stats: S) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood."""
        return _plain(self.block(stats).mle(stats))


def _plain(params: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return 0-dimensional arrays as numbers."""
    return {name: np.asarray(value)[()] for name, value in params.items()}
