"""Capabilities of models with latent variables: EM, variational Bayes, sums, Gibbs sampling, symmetric labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bayeszoo.foundation.named import Arrays, Params, Statistics
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities.observable import Latent
from bayeszoo.model.capabilities.steps import Chart, Coordinates, Expectation, GibbsChain

if TYPE_CHECKING:
    from bayeszoo.distributions.posterior import Marginal, Posterior
    from bayeszoo.foundation.gate import Check


class PriorDensity(Model):
    """The density of the prior is known, other than by PyMC."""

    @abstractmethod
    def log_prior(self, params: Params, data: Any) -> Any:
        """Return the log density of the prior; leading axes of the parameters are draws."""


class EM(PriorDensity):
    """EM finds the mode of the posterior, and under a flat prior that of the likelihood.

    ``data`` are the rows, or the statistics of a model that is `Sufficient`.
    """

    @abstractmethod
    def start(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return random starting parameters."""

    @abstractmethod
    def e_step(self, params: Params, data: Any) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""

    @abstractmethod
    def m_step(self, stats: Statistics, flat: bool = False) -> dict[str, Any]:
        """Return the parameters that maximize the expected log joint density, or with ``flat`` the log likelihood.

        In the constrained space, no Jacobian. Raises `NumericalError` where there is no maximum.
        """

    @abstractmethod
    def free_parameters(self, stats: Statistics) -> int:
        """Return the number of free parameters; ``stats`` are the data if the model has no statistics."""

    def unbounded(self, data: Any) -> str:
        """Say why the posterior density has no maximum; empty if it has one."""
        return ""

    def degenerate(self, params: Params, stats: Statistics) -> str:
        """Say, from expected statistics, why a maximum of the likelihood is degenerate; empty if it is not."""
        return ""

    def undetermined(self, params: Params, data: Any, stats: Statistics, flat: bool) -> str:
        """Say, from data and expected statistics, why a maximum is not unique; empty if it is."""
        return ""

    def log_rows(self, params: Params, data: Any) -> np.ndarray | None:
        """Return the log density of each row given earlier rows, shape (..., rows); None if not known."""
        return None

    def coordinates(self, data: Any) -> Coordinates | None:
        """Return coordinates for acceleration of EM; None without acceleration."""
        return None

    def chart(self, params: Params, stats: Statistics, flat: bool) -> Chart | None:
        """Return coordinates about parameters for gradient steps after EM, of the likelihood if ``flat``."""
        return None

    def closed_mle(self, stats: Statistics) -> dict[str, Any] | None:
        """Return the maximum of the likelihood in closed form; None without one."""
        return None

    def certificate(self, stats: Statistics, params: Params) -> list[Check]:
        """Check that `closed_mle` is the maximum."""
        return []


class Variational(Model):
    """Coordinate ascent finds the best factorized approximation q(z) q(theta), with its complete ELBO."""

    chosen_by_vb: ClassVar[tuple[str, ...]] = ()
    """The fields that `vb_choose` can optimize."""

    @abstractmethod
    def vb_start(self, data: Any, rng: np.random.Generator) -> Any:
        """Return a random starting q(theta)."""

    @abstractmethod
    def vb_e_step(self, q: Any, data: Any) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""

    @abstractmethod
    def vb_m_step(self, stats: Statistics) -> Any:
        """Return the best q(theta)."""

    @abstractmethod
    def divergence(self, q: Any) -> float:
        """Return KL(q(theta) || prior) in nats: the ELBO is the E-step's value minus this."""

    @abstractmethod
    def vb_posterior(self, q: Any) -> Posterior:
        """Return q(theta) as a distribution of the parameters."""

    @abstractmethod
    def vb_log_density(self, q: Any, params: Params) -> Any:
        """Return the log density of q(theta), averaged over permutations of exchangeable labels.

        Leading axes of the parameters are draws.
        """

    def vb_log_densities(self, qs: Sequence[Any], params: Params) -> np.ndarray:
        """Return `vb_log_density` of Q densities q(theta) at draws with one leading axis, shape (Q, draws)."""
        return np.array([self.vb_log_density(q, params) for q in qs])

    def vb_row_terms(self, q: Any, data: Any) -> np.ndarray | None:
        """Return the log normalizer of each row, shape (rows,), to tell optima apart; None if not known."""
        return None

    def vb_coordinates(self, data: Any) -> Coordinates | None:
        """Return coordinates of q(theta) for acceleration; None without acceleration."""
        return None

    def occupied(self, q: Any) -> int | None:
        """Return the number of occupied components; None without components."""
        return None

    def live(self, params: Params) -> np.ndarray | None:
        """Return the number of occupied components at each draw (...); None if a draw does not tell."""
        return None

    def vb_choose(self, q: Any, over: Sequence[str]) -> tuple[Self, Any]:
        """Return the model with fields ``over`` that maximize the ELBO at q, and q under its prior."""
        return self, q


class Stochastic(Variational):
    """Rows have their own parameters, and q of the shared ones is learned from minibatches (online_vb)."""

    @abstractmethod
    def vb_local(self, q: Any, data: Arrays) -> Any:
        """Return q with the best factors of these rows' parameters, the other factors fixed."""

    @abstractmethod
    def vb_scaled(self, stats: Statistics, factor: float) -> Any:
        """Return expected statistics of ``factor`` times as many rows; statistics of single rows stay."""

    @abstractmethod
    def vb_mixed(self, q: Any, other: Any, share: float) -> Any:
        """Return q with shared natural parameters ``(1 - share)`` its own plus ``share`` those of ``other``."""


class Additive(Model, family=True):
    """Expected statistics of parts of the rows add up: E-steps run where the rows are, and the M-step uses the sum.

    A sequence lies in one part. Row parameters, such as a document's proportions, are kept
    with the shared parameters, in the order of the rows.
    """

    @abstractmethod
    def pooled(self, stats: Any, other: Any) -> Any:
        """Return the expected statistics of two parts together, from E-steps at the same parameters or q(theta).

        Statistics of single rows are concatenated.
        """

    def of_rows(self, at: object, change: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Return parameters or q(theta) ``at``, with ``change`` applied to row parameters (..., rows, numbers).

        By default there are no row parameters.
        """
        return at


class Enumerable(Latent):
    """Parameters can be integrated out given an assignment of rows; with few rows all assignments are enumerated."""

    latent_unit: ClassVar[str] = "row"
    """The unit with a latent variable: a row, or a word."""

    @abstractmethod
    def log_joint(self, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, z), parameters integrated out, for assignments of shape (M, rows); shape (M,)."""

    @abstractmethod
    def posterior_given(self, assignment: np.ndarray, data: Arrays) -> Posterior:
        """Return the posterior of the parameters given one assignment, shape (rows,)."""

    def log_complete(self, params: Params, assignments: np.ndarray, data: Arrays) -> np.ndarray | None:
        """Return log p(y, z | theta) at one point, of shape (M,); None where rows are independent given theta."""
        return None

    def log_partitions(self, partitions: np.ndarray, data: Arrays) -> np.ndarray | None:
        """Return log p(y, partition), summed over the labels of its clusters, shape (M,); None by default.

        Partitions (M, rows) number clusters by their first rows. With this step partitions are enumerated instead of
        assignments: they are far fewer if components are many.
        """
        return None

    @classmethod
    def sums_partitions(cls) -> bool:
        """Say whether partitions of the rows are enumerated, instead of assignments to components."""
        return cls.log_partitions is not Enumerable.log_partitions

    def with_labels(self, partition: np.ndarray, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the component of each row given a partition; by default clusters keep their numbers."""
        return partition

    def marginals_over(self, partitions: np.ndarray, probabilities: np.ndarray, data: Arrays) -> dict[str, Marginal]:
        """Return exact marginals of parameters, from the posterior of partitions (M, rows); none by default."""
        return {}

    def latents(self, data: Arrays) -> int:
        """Return the number of latent variables."""
        return int(self.inputs.size(data))

    def shortened(self, data: Arrays, most: int) -> Arrays:
        """Return a part of the data with at most ``most`` latent variables."""
        return self.inputs.split(data, most)[0]

    def one_component(self) -> Self:
        """Return the model with one component, in which nothing is latent."""
        return self.replaced(K=1)


class Gibbs(Model):
    """Gibbs sampling: latent variables are drawn given the rest, and parameters given latent variables."""

    gibbs_options: ClassVar[Mapping[str, int]] = {}
    """Defaults of the method's options that differ from the usual ones, such as ``thin``."""

    @abstractmethod
    def gibbs(self, data: Arrays, rng: np.random.Generator) -> GibbsChain:
        """Return a chain with a random start; all its draws use ``rng``."""


class Collapsed(Gibbs):
    """Parameters can be integrated out, and each latent variable drawn given all others: collapsed Gibbs sampling."""

    is_annealed: ClassVar[bool] = True
    """Whether warmup anneals the posterior by powers; mixtures then end in poor modes."""


class PointMasses(Model):
    """Some parameters equal a value, such as 0, with positive probability: no density, no gradient and no mode.

    The posterior density at that value is its probability, and elsewhere a density.
    `declare` has discrete variables in place of the parameter, which is deterministic; methods that follow a density
    are not offered.
    """

    atoms: ClassVar[tuple[str, ...]]
    """Names of these parameters, and of discrete derived quantities."""

    @abstractmethod
    def augmented(self, params: Params, data: Arrays, rng: np.random.Generator) -> tuple[dict[str, Any], float]:
        """Return values of the free variables of `declare` at a point, and the log density of those not in the point.

        The latter are drawn by ``rng``.
        """


class Symmetric(Model):
    """Component labels are exchangeable: the posterior is invariant under their permutations."""

    signed: ClassVar[tuple[str, ...]] = ()
    """For factors, whose signs are arbitrary too: the parameters that change sign, loadings first."""
    unread: ClassVar[str] = ""
    """Why parameters of single components are not shown, even if draws could be aligned."""
    prior_orders_labels: ClassVar[bool] = False
    """Whether the prior orders labels that are `unread` nevertheless, such as sticks of a Dirichlet process."""

    @abstractmethod
    def exchangeable_axis(self) -> str | None:
        """Return the axis, as in ``dims``, with exchangeable labels; the axis ``name_2`` is permuted with it.

        None if the prior tells the labels apart, unless they are `unread`.
        """

    @abstractmethod
    def invariants(self, params: Params, data: Any) -> dict[str, Any]:
        """Return quantities that do not depend on the labels; leading axes are draws. The gate judges these."""
