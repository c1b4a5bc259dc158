"""What a model can do beyond being declared and simulated: abstract classes that it names as its bases.

Required steps are abstract. Optional ones have a neutral default here, so that engines call them without looking. The
engines (`bayeszoo.inference`) are written once; a model supplies the steps. CONTRACT.md gives the reason for each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard

import numpy as np

from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.closed import ClosedForm, Conjugate, PointEstimates, Predictive, Sufficient
from bayeszoo.model.conditional import MOST_OUTER, Conditional, LogConcave
from bayeszoo.model.function import OfFunction
from bayeszoo.model.many_files.additive import Additive
from bayeszoo.model.observable import Classifies, Latent, Observable, row_axes
from bayeszoo.model.sequential import Sequential
from bayeszoo.model.steps import Chart, Coordinates, Expectation, GibbsChain

if TYPE_CHECKING:
    from bayeszoo.distributions.posterior import Posterior
    from bayeszoo.foundation.gate import Check


class EM(Model):
    """EM finds the mode of the posterior, and under a flat prior that of the likelihood.

    ``data`` are the rows, or the statistics of a model that is `Sufficient`.
    """

    @abstractmethod
    def start(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from, at random."""

    @abstractmethod
    def e_step(self, params: Params, data: Any) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""

    @abstractmethod
    def m_step(self, stats: Any, flat: bool = False) -> dict[str, Any]:
        """Return the parameters that maximize the expected log joint density, or with ``flat`` the log likelihood.

        In the constrained space, no Jacobian. Raises `NumericalError` where there is no maximum.
        """

    @abstractmethod
    def log_prior(self, params: Params, data: Any) -> Any:
        """Return the log density of the prior; leading axes of the parameters are draws."""

    @abstractmethod
    def free_parameters(self, stats: Any) -> int:
        """Return how many numbers the likelihood is maximized over; ``stats`` are the data where there are none."""

    def unbounded(self, data: Any) -> str:
        """Say why the posterior density has no maximum; nothing where it has one."""
        return ""

    def degenerate(self, params: Params, stats: Any) -> str:
        """Say by expected statistics why a maximum of the likelihood is degenerate; nothing where it is an answer."""
        return ""

    def undetermined(self, params: Params, data: Any, stats: Any, flat: bool) -> str:
        """Say, also by expected statistics, why a maximum is one of many as high; nothing where it is not."""
        return ""

    def log_rows(self, params: Params, data: Any) -> np.ndarray | None:
        """Return the log density of each row given those before, of shape (..., rows), where that is known."""
        return None

    def coordinates(self, data: Any) -> Coordinates | None:
        """Return coordinates in which the climb is accelerated; None where it is not."""
        return None

    def chart(self, params: Params, stats: Any, flat: bool) -> Chart | None:
        """Return coordinates about parameters, by slopes in which (``flat`` of the likelihood) the climb goes on."""
        return None

    def closed_mle(self, stats: Any) -> dict[str, Any] | None:
        """Return the maximum of the likelihood of these data in closed form; None where it has none."""
        return None

    def mle_certificate(self, stats: Any, params: Params) -> list[Check]:
        """Check that `closed_mle` is the maximum."""
        return []


class Variational(Model):
    """Coordinate ascent finds the best factorized approximation q(z) q(theta), with its complete ELBO."""

    chosen_by_vb: ClassVar[tuple[str, ...]] = ()
    """The fields that `vb_choose` can choose."""

    @abstractmethod
    def vb_start(self, data: Any, rng: np.random.Generator) -> Any:
        """Return q(theta) to climb from, at random."""

    @abstractmethod
    def vb_e_step(self, q: Any, data: Any) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""

    @abstractmethod
    def vb_m_step(self, stats: Any) -> Any:
        """Return the best q(theta)."""

    @abstractmethod
    def divergence(self, q: Any) -> float:
        """Return KL(q(theta) || prior) in nats: the ELBO is the E-step's value less this."""

    @abstractmethod
    def vb_posterior(self, q: Any) -> Posterior:
        """Return q(theta) as a distribution of the parameters."""

    @abstractmethod
    def vb_log_density(self, q: Any, params: Params) -> Any:
        """Return the log density of q(theta), averaged over the orders of labels that mean nothing.

        Leading axes of the parameters are draws.
        """

    def vb_log_densities(self, qs: Sequence[Any], params: Params) -> np.ndarray:
        """Return `vb_log_density` of each of several q(theta), of shape (Q, draws), at draws with one leading axis."""
        return np.array([self.vb_log_density(q, params) for q in qs])

    def vb_row_terms(self, q: Any, data: Any) -> np.ndarray | None:
        """Return the log normalizer of each row, of shape (rows,), where that is known: it tells optima apart."""
        return None

    def vb_coordinates(self, data: Any) -> Coordinates | None:
        """Return coordinates of q(theta) in which the climb is accelerated; None where it is not."""
        return None

    def occupied(self, q: Any) -> int | None:
        """Return how many components the data use; None where there are none to count."""
        return None

    def live(self, params: Params) -> np.ndarray | None:
        """Return how many components are in use at each draw (...); None where a draw does not tell."""
        return None

    def vb_choose(self, q: Any, over: Sequence[str]) -> tuple[Self, Any]:
        """Return the model whose fields named in ``over`` make the ELBO largest at q, and q under its prior."""
        return self, q


class Stochastic(Variational):
    """Each row has parameters of its own, and q of all others is learned from some rows at a time (online_vb)."""

    @abstractmethod
    def vb_local(self, q: Any, data: Arrays) -> Any:
        """Return q with the best factors of these rows' own parameters, the others held."""

    @abstractmethod
    def vb_scaled(self, stats: Any, factor: float) -> Any:
        """Return expected statistics of ``factor`` times as many rows; those of single rows stay."""

    @abstractmethod
    def vb_mixed(self, q: Any, other: Any, share: float) -> Any:
        """Return q with ``share`` of the other's natural parameters and the rest its own, for what rows share."""


class Enumerable(Latent):
    """Parameters can be integrated out given an assignment of the rows; of few rows all assignments are summed over."""

    latent_unit: ClassVar[str] = "row"
    """What has a latent variable: a row, or a word."""

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
        """Return log p(y, partition), summed over the labels of its clusters, (M,); by default None.

        Partitions (M, rows) number clusters by their first rows. Where it is given, partitions are summed over and not
        assignments: these are far fewer where components are many.
        """
        return None

    @classmethod
    def sums_partitions(cls) -> bool:
        """Say whether partitions of the rows are summed over, and not assignments to components."""
        return cls.log_partitions is not Enumerable.log_partitions

    def with_labels(self, partition: np.ndarray, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the component of each row given which rows are together; by default clusters have their own numbers."""
        return partition

    def latents(self, data: Arrays) -> int:
        """Return how many latent variables the data have."""
        return int(self.inputs.size(data))

    def shortened(self, data: Arrays, most: int) -> Arrays:
        """Return a part of the data with at most N latent variables."""
        return self.inputs.split(data, most)[0]

    def one_component(self) -> Self:
        """Return the model with one component, and nothing hidden."""
        return self.replaced(K=1)


class Gibbs(Model):
    """Latent variables can be drawn given all else, and parameters given these: Gibbs sampling."""

    gibbs_options: ClassVar[Mapping[str, int]] = {}
    """Defaults of the method's options that are not the usual ones, as ``thin`` where few sweeps do for a draw."""

    @abstractmethod
    def gibbs(self, data: Arrays, rng: np.random.Generator) -> GibbsChain:
        """Return a chain, started at random; everything that it draws is from ``rng``."""


class Collapsed(Gibbs):
    """Parameters can be integrated out, and each latent variable drawn given all others: collapsed Gibbs sampling."""

    is_annealed: ClassVar[bool] = True
    """Whether its chains heed powers while they warm up; those of mixtures end in poor modes by that."""


class PointMasses(Model):
    """Some parameters take a value, as 0, with positive probability: they have no density, no gradients and no mode.

    Densities of the posterior are of such a parameter's other values, and at the value itself its probability.
    `declare` has discrete variables in its place, and the parameter as a deterministic; methods that follow a density
    are not offered.
    """

    atoms: ClassVar[tuple[str, ...]]
    """Names of such parameters, and of discrete derived quantities."""

    @abstractmethod
    def augmented(self, params: Params, data: Arrays, rng: np.random.Generator) -> tuple[dict[str, Any], float]:
        """Return values of the free variables of `declare` at a point, and the log density of the others.

        The latter is drawn by ``rng``.
        """


class Symmetric(Model):
    """The labels of the components mean nothing: the posterior is the same under each of their permutations."""

    signed: ClassVar[tuple[str, ...]] = ()
    """For factors, whose signs mean nothing either: the parameters that change sign, the loadings first."""
    unread: ClassVar[str] = ""
    """Why parameters of single components are not shown, even where draws could be put in one order."""
    prior_orders_labels: ClassVar[bool] = False
    """Whether the prior tells labels apart that are `unread` all the same, as the sticks of a Dirichlet process."""

    @abstractmethod
    def exchangeable_axis(self) -> str | None:
        """Return the axis whose labels may be permuted, by its name in ``dims``, with which ``name_2`` is permuted too.

        None where the prior tells the labels apart, unless they are `unread`.
        """

    @abstractmethod
    def invariants(self, params: Params, data: Any) -> dict[str, Any]:
        """Return quantities that do not depend on the labels; leading axes are draws. The gate looks at these."""


def has_step(step: str) -> Callable[[type[Model]], bool]:
    """Say whether a class has an optional step of every model, instead of its default."""
    return lambda model: any(step in vars(base) for base in model.__mro__ if base is not Model)


def _named(*kinds: type[Model]) -> dict[str, Callable[[type[Model]], bool]]:
    return {kind.__name__: partial(lambda kind, model: issubclass(model, kind), kind) for kind in kinds}


CAPABILITIES: Mapping[str, Callable[[type[Model]], bool]] = {
    **_named(Sufficient, ClosedForm, Predictive, Conjugate, PointEstimates, Observable, Classifies),
    "Derived": has_step("derived"),
    "Compiled": has_step("compiled"),
    **_named(LogConcave, EM, Variational, Stochastic, Latent, Enumerable, Sequential, Gibbs, Collapsed),
    **_named(Conditional, OfFunction, Symmetric, PointMasses, Additive),
}
"""Whether a class has each optional capability, in the order in which ``bayeszoo list`` prints them."""


def is_integrated(model: type[Model]) -> bool:
    """Say whether the exact posterior and evidence of a class are by quadrature."""
    if issubclass(model, LogConcave):
        return model.integrated
    return issubclass(model, Conditional) and len(model.quadrature or model.outer) <= MOST_OUTER


def has_vectors(model: type[Model]) -> bool:
    """Say whether outer parameters of a class are vectors, which have exact answers where their entries are few."""
    return issubclass(model, Conditional) and bool(model().outer_shapes())


def has_few_outer(model: type[Model]) -> bool:
    """Say whether there is a small model of the kind, with few outer numbers."""
    return issubclass(model, Conditional) and model.few_outer is not Conditional.few_outer


def predicts_by_points(model: type[Model]) -> bool:
    """Say whether the quadrature of an exact fit predicts rows: given its points they have a distribution."""
    return is_integrated(model) and (not issubclass(model, Conditional) or model.has_law_given_outer())


def is_log_concave(model: Model) -> TypeGuard[LogConcave]:
    """Say whether the log joint density is concave in all parameters, given none of them."""
    return isinstance(model, LogConcave) and not model.given


def is_exact(model: type[Model]) -> bool:
    """Say whether a class has an exact posterior and evidence: in closed form, or by quadrature.

    A class whose exact answers are of some data only raises `NumericalError` for the others.
    """
    return issubclass(model, ClosedForm) or is_integrated(model)


simulates = has_step("simulate")
"""Whether a class draws data from its prior."""


def capabilities(model: type[Model]) -> tuple[str, ...]:
    """Name the optional capabilities that a model class has."""
    return tuple(name for name, has in CAPABILITIES.items() if has(model))


def exchangeable_axis(model: Model) -> str | None:
    """Return the axis whose labels mean nothing; None where all labels mean something."""
    return model.exchangeable_axis() if isinstance(model, Symmetric) else None


def rows_have_parameters(model: Model) -> bool:
    """Say whether some parameters are of single rows, as the proportions of a document: rows are then not left out."""
    return bool(row_axes(model))
