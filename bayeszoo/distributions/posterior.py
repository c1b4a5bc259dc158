"""Joint distributions of named parameters (posteriors or priors), and a marginal that SciPy lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.gaussian import GaussianVector
from bayeszoo.distributions.special import log_rising
from bayeszoo.errors import NumericalError

QUANTILES = {"q025": 0.025, "median": 0.5, "q975": 0.975}
INTERVAL = {"q025": 0.025, "q975": 0.975}
"""Names and levels of the quantiles by which every posterior is summarized."""


Node = dict[str, tuple[np.ndarray, np.ndarray]]
"""Means and standard deviations by parameter."""


class Marginal(Protocol):
    """The marginal distribution of each entry of a parameter, as summaries need it."""

    def mean(self) -> Any:
        """Return the means, of the parameter's shape; NaN where undefined."""

    def std(self) -> Any:
        """Return the standard deviations, infinite or NaN where undefined."""

    def cdf(self, x: Any, /) -> Any:
        """Return P(parameter <= x)."""

    def ppf(self, q: Any, /) -> Any:
        """Return the quantile of a level."""


class Posterior(Mapping[str, Any]):
    """A posterior (or prior): marginals by name, joint draws and joint density.

    Parameters
    ----------
    marginals : mapping of str to frozen SciPy distribution
        Elementwise, of the parameter's shape: ``mean()``, ``std()``, ``ppf(q)``, ``cdf(x)``, and where the parameters
        are independent also ``rvs(size, random_state)`` and ``logpdf(x)``.
    draw : callable, optional
        ``draw(size, rng) -> {name: array of shape (*size, *parameter shape)}``, jointly; by default the marginals are
        drawn independently.
    log_density : callable, optional
        ``log_density(params) -> array``, jointly, with every constant, one number for each draw along the leading axes
        of the parameters; by default the marginals' densities multiply.
    within : mapping of str to callable, optional
        If parameters are uncorrelated with each other: functions that return the covariance matrix of a parameter's
        correlated entries. Default: unknown if ``draw`` is given, else all entries are uncorrelated.
    covariance : callable, optional
        If parameters are correlated with each other: a function that returns the covariance matrix of all entries.
    nodes : callable, optional
        The result of `nodes`, if the entries are correlated.
    """

    def __init__(
        self,
        marginals: Mapping[str, Marginal],
        draw: Callable[[tuple[int, ...], np.random.Generator], dict[str, np.ndarray]] | None = None,
        log_density: Callable[[Mapping[str, Any]], Any] | None = None,
        within: Mapping[str, Callable[[], np.ndarray]] | None = None,
        covariance: Callable[[], np.ndarray] | None = None,
        nodes: Callable[[], list[Node]] | None = None,
    ) -> None:
        self._marginals, self._covariance, self._nodes = dict(marginals), covariance, nodes
        self._within = {} if draw is None and within is None else within
        self._draw, self._log_density = draw or self._independent_draws, log_density or self._product

    @classmethod
    def product(cls, *parts: Posterior) -> Posterior:
        """Return the joint distribution of independent parts."""

        def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
            return {name: values for part in parts for name, values in part.rvs(size, rng).items()}

        marginals = {name: marginal for part in parts for name, marginal in part.items()}
        known = [part._within for part in parts if part._within is not None]
        within = (
            {name: matrix for part_within in known for name, matrix in part_within.items()}
            if len(known) == len(parts)
            else None
        )
        return cls(marginals, draw, lambda params: sum(part.logpdf(params) for part in parts), within)

    @classmethod
    def of_rows(cls, name: str, marginal: Any) -> Posterior:
        """Return the law of a parameter with independent entries, one for each row; leading axes are points."""
        return cls({name: marginal}, None, lambda params: np.sum(marginal.logpdf(params[name]), axis=-1), within={})

    @classmethod
    def gaussian(cls, name: str, vector: GaussianVector) -> Posterior:
        """Return the distribution of a parameter whose entries are jointly Gaussian; leading axes are points."""

        def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
            return {name: vector.rvs(size, rng)}

        marginal = frozen.norm(vector.mean, vector.sd)
        return cls({name: marginal}, draw, lambda params: vector.logpdf(params[name]), {name: vector.covariance})

    @classmethod
    def chained(
        cls, name: str, first: frozen.Frozen, second: Callable[[Any], Posterior], marginals: Mapping[str, Marginal]
    ) -> Posterior:
        """Return the joint distribution of a number ``name`` and of parameters that depend on it.

        Leading axes of ``first``, the number's distribution, are points; ``second`` is the law of the other parameters
        given the number, uncorrelated with means linear in it, and ``marginals`` are their marginals.
        """

        def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
            value = first.rvs(size=(*size, *np.shape(first.mean())), random_state=rng)
            return {name: value, **second(value).rvs((), rng)}

        def log_density(params: Mapping[str, Any]) -> np.ndarray:
            return first.logpdf(params[name]) + second(params[name]).logpdf(params)

        def nodes() -> list[Node]:
            ends = [(end, second(end)) for end in (first.mean() + sign * first.std() for sign in (-1, 1))]
            if any(law.correlated() for _, law in ends):
                raise NumericalError("the joint covariance has no closed form", "no_closed_form")
            return [{name: (end, np.zeros_like(end)), **law.nodes()[0]} for end, law in ends]

        return cls({name: first, **marginals}, draw, log_density, nodes=nodes)

    def __getitem__(self, name: str) -> Any:
        return self._marginals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._marginals)

    def __len__(self) -> int:
        return len(self._marginals)

    def rvs(self, size: int | tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw jointly, independent draws: arrays of shape ``(*size, *parameter shape)``."""
        return self._draw((size,) if isinstance(size, int) else size, rng)

    def logpdf(self, params: Mapping[str, Any]) -> Any:
        """Log density with every constant: one number, or an array if leading axes of all parameters are draws."""
        return self._log_density(params)

    def covariance(self) -> np.ndarray:
        """Return the covariance matrix of all entries, parameter by parameter; NaN in the row of an infinite variance.

        Raises `NumericalError` if it has no closed form.
        """
        if self._covariance is None and self._within is None:
            raise NumericalError("the joint covariance has no closed form", "no_closed_form")
        variances = np.concatenate([np.ravel(marginal.std()) ** 2 for marginal in self.values()])
        matrix = self._blocks(self._within or {}) if self._covariance is None else self._covariance()
        is_infinite = ~np.isfinite(variances)
        matrix[is_infinite] = matrix[:, is_infinite] = np.nan
        np.fill_diagonal(matrix, variances)
        return matrix

    def _blocks(self, covariances: Mapping[str, Callable[[], np.ndarray]]) -> np.ndarray:
        blocks = (
            covariances[name]() if name in covariances else np.diag(np.ravel(marginal.std()) ** 2)
            for name, marginal in self.items()
        )
        return np.asarray(scipy.linalg.block_diag(*blocks))

    def nodes(self) -> list[Node]:
        """Return equally likely nodes; given a node, entries are uncorrelated except those in `correlated`.

        Means and standard deviations of each parameter given a node determine means and covariances. Leading axes are
        points. There is one node if the entries are uncorrelated.
        """
        if self._nodes is not None:
            return self._nodes()
        if self._within is None:
            raise NumericalError("the joint covariance has no closed form", "no_closed_form")
        return [{name: (np.asarray(marginal.mean()), np.asarray(marginal.std())) for name, marginal in self.items()}]

    def correlated(self) -> Mapping[str, Callable[[], np.ndarray]]:
        """Return functions that return the covariance matrices (..., T, T) of parameters with correlated entries."""
        return self._within or {}

    def _independent_draws(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        shapes = {name: np.shape(marginal.mean()) for name, marginal in self.items()}
        return {name: self[name].rvs(size=(*size, *shape), random_state=rng) for name, shape in shapes.items()}

    def _product(self, params: Mapping[str, object]) -> Any:
        return sum(sum_over(marginal.logpdf(params[name]), np.ndim(marginal.mean())) for name, marginal in self.items())


def sum_over(values: Any, axes: int) -> Any:
    """Sum over the last ``axes`` axes, the entries; leading axes are draws."""
    return np.sum(values, axis=tuple(range(-axes, 0)))


class InverseRootGamma:
    """The law of a standard deviation lam**(-1/2) with precision lam ~ Gamma(shape, rate).

    Its tail is heavy: the mean is infinite for shape <= 1/2 and the standard deviation for shape <= 1; draws do not
    show this. SciPy's ``gengamma(shape, -2)`` gives negative or undefined moments there.
    """

    def __init__(self, shape: float, rate: float) -> None:
        self.shape, self.rate = float(shape), float(rate)
        law = frozen.gengamma(self.shape, -2, scale=math.sqrt(self.rate))
        self.cdf, self.ppf, self.pdf, self.logpdf = law.cdf, law.ppf, law.pdf, law.logpdf

    def mean(self) -> float:
        """Return sqrt(rate) Gamma(shape - 1/2) / Gamma(shape)."""
        if self.shape <= 0.5:
            return math.inf
        return math.sqrt(self.rate) * math.exp(-float(log_rising(self.shape - 0.5, 0.5)))

    def std(self) -> float:
        """Return the square root of the variance."""
        return math.sqrt(self.var())

    def var(self) -> float:
        """Return rate / (shape - 1) minus the squared mean."""
        if self.shape <= 1:
            return math.inf
        log_share = math.log(self.shape - 1) - 2 * float(
            log_rising(self.shape - 0.5, 0.5)
        )  # squared mean over mean square
        return self.rate / (self.shape - 1) * -math.expm1(log_share)
