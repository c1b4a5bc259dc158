"""Models with latent variables: what each must have for EM, variational Bayes, enumeration and relabelling.

The engines (`em`, `vb`, `enumeration`, `gibbs`, `align`) are written once; a model supplies the steps. Discrete latent
variables are summed out in ``declare``; ``assign`` brings them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.distributions.posterior import Posterior

Values = Mapping[str, Any]


def rows_have_parameters(model: Any) -> bool:
    """Say whether some parameters are of single rows, as the proportions of a document: rows are then not left out."""
    names = model.inputs.row_names
    return names is not None and any(names in axes for axes in model.dims.values())


@dataclass(frozen=True, eq=False)
class Expectation:
    """What an E-step gives.

    Attributes
    ----------
    stats : Any
        Expected sufficient statistics of the data with their latent variables: the argument of the M-step.
    value : float
        Of EM the log likelihood at the parameters, latent variables summed out, of the ordered rows; of variational
        Bayes the sum over rows of the log normalizers of q(z_n), which is E[log p(y, z | theta) - log q(z)]. Every
        constant is kept.
    """

    stats: Any
    value: float


@runtime_checkable
class Compiled(Protocol):
    """The density of the rows has a compiled form, with an analytic gradient."""

    def compiled(self, data: Values) -> pm.Model:
        """Declare the same density, with the variables of ``declare``, on a compiled likelihood."""


@runtime_checkable
class Latent(Protocol):
    """EM finds the mode of the posterior, and under a flat prior that of the likelihood."""

    def start(self, data: Values, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from, at random."""

    def e_step(self, params: Values, data: Values) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters."""

    def m_step(self, stats: Any, flat: bool = False) -> dict[str, Any]:
        """Return the parameters that maximize the expected log joint density, or with ``flat`` the log likelihood.

        In the constrained space, no Jacobian. Raises `NumericalError` where there is no maximum.
        """

    def log_prior(self, params: Values, data: Values) -> Any:
        """Log density of the prior; leading axes of the parameters are draws."""

    def free_parameters(self, stats: Any) -> int:
        """Return how many numbers the likelihood is maximized over; ``stats`` are the data where there are none."""


@runtime_checkable
class Variational(Protocol):
    """Coordinate ascent finds the best factorized approximation q(z) q(theta), with its complete ELBO."""

    def vb_start(self, data: Values, rng: np.random.Generator) -> Any:
        """Return q(theta) to climb from, at random."""

    def vb_e_step(self, q: Any, data: Values) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""

    def vb_m_step(self, stats: Any) -> Any:
        """Return the best q(theta)."""

    def divergence(self, q: Any) -> float:
        """Return KL(q(theta) || prior) in nats: the ELBO is the E-step's value less this."""

    def vb_posterior(self, q: Any) -> Posterior:
        """Return q(theta) as a distribution of the parameters."""


@runtime_checkable
class Stochastic(Variational, Protocol):
    """Each row has parameters of its own, and q of all others is learned from some rows at a time (online_vb)."""

    def vb_local(self, q: Any, data: Values) -> Any:
        """Return q with the best factors of these rows' own parameters, the others held."""

    def vb_scaled(self, stats: Any, factor: float) -> Any:
        """Return expected statistics of ``factor`` times as many rows; those of single rows stay."""

    def vb_mixed(self, q: Any, other: Any, share: float) -> Any:
        """Return q with ``share`` of the other's natural parameters and the rest its own, for what rows share."""


@runtime_checkable
class Hidden(Protocol):
    """Each row has a latent variable, whose distribution given the parameters is known."""

    def assign(self, params: Values, data: Values) -> Any:
        """Return the probability of each component, shape (..., rows, K); leading axes are draws.

        Of a latent variable that is a number: its mean, shape (..., rows).
        """


@runtime_checkable
class Enumerable(Protocol):
    """Parameters can be integrated out given an assignment of the rows; of few rows all assignments are summed over."""

    def log_joint(self, assignments: np.ndarray, data: Values) -> np.ndarray:
        """Return log p(y, z), parameters integrated out, for assignments of shape (M, rows); shape (M,)."""

    def posterior_given(self, assignment: np.ndarray, data: Values) -> Posterior:
        """Return the posterior of the parameters given one assignment, shape (rows,)."""


class Chain(Protocol):
    """A Markov chain over latent variables, parameters integrated out."""

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw every latent variable given all others, so many times over, from probabilities to a power of at most 1.

        Powers below 1 flatten the posterior, for warmup.
        """

    def draw(self) -> dict[str, np.ndarray]:
        """Draw the parameters given the latent variables."""

    @property
    def log_joint(self) -> float:
        """Log p(y, z) of the ordered rows and their latent variables, with every constant."""


@runtime_checkable
class Collapsed(Protocol):
    """Parameters can be integrated out, and each latent variable drawn given all others: collapsed Gibbs sampling."""

    def gibbs(self, data: Values, rng: np.random.Generator) -> Chain:
        """Return a chain, started at random; everything that it draws is from ``rng``."""


@runtime_checkable
class FoldIn(Protocol):
    """Each document has proportions of its own: those of documents that the fit has not seen are drawn given topics."""

    def fold_in(self, params: Values, data: Values, rng: np.random.Generator) -> np.ndarray:
        """Draw the proportions of other documents once for each draw of the parameters, shape (..., documents, K)."""


@runtime_checkable
class Symmetric(Protocol):
    """The labels of the components mean nothing: the posterior is the same under each of their permutations."""

    def exchangeable(self) -> str | None:
        """Return the axis whose labels may be permuted, by its name in ``dims``, with which ``name_2`` is permuted too.

        None where the prior tells the labels apart.
        """

    def invariants(self, params: Values, data: Values) -> dict[str, Any]:
        """Return quantities that do not depend on the labels; leading axes are draws. The gate looks at these."""
