"""Variable selection in linear regression with unknown noise: the sum over all subsets of terms.

Given the included terms, weights and noise have the normal-inverse-gamma prior of linear regression, conditional on
excluded weights of 0. The prior is written as extra rows of the design, so that a subset is a choice of columns: their
triangular factor (Golub and Van Loan 2013, section 5.2) gives its evidence and its weights, and X'X is not formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.mixed import Inclusion, LocationScaleMixture
from bayeszoo.distributions.conjugate.regressions import log_evidence_over_variance
from bayeszoo.distributions.posterior import InverseRootGamma, Marginal, Posterior
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.linear.least_squares import (
    MAX_ROUNDING,
    Solution,
    normal_inverse_gamma,
    solve,
)
from bayeszoo.foundation.blocks import IN_CACHE, blocks
from bayeszoo.foundation.named import Params

MOST_TERMS = 20
"""Most terms whose subsets, a million, are enumerated, in about a minute."""
NOTHING = 1e-13
"""Total probability of the subsets left out of mixtures."""
MOST_PREDICTED = 2**26
"""Most subsets times rows of one predictive distribution."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Data and prior of a regression on T terms: the first ``fixed`` are always included, and F others may be.

    ``rows`` (R, T) and ``outcome`` (R,) have the squared errors of ``n`` data rows; ``root`` (T, T) is the lower
    triangular root of the prior covariance of all weights divided by the noise variance ~ InvGamma(``a0``, scale
    ``b0``). ``log_prior`` (F + 1,) is the log probability of a single subset of each size.
    """

    rows: np.ndarray
    outcome: np.ndarray
    root: np.ndarray
    fixed: int
    n: float
    a0: float
    b0: float
    log_prior: np.ndarray

    def _key(self) -> tuple[Any, ...]:
        arrays = (self.rows, self.outcome, self.root, self.log_prior)
        return (*(array.tobytes() for array in arrays), self.rows.shape, self.fixed, self.n, self.a0, self.b0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selection) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def choices(self) -> int:
        """The number of terms that may be excluded, F."""
        return len(self.log_prior) - 1

    @property
    def shape(self) -> float:
        """Shape of the posterior of the noise variance."""
        return self.a0 + self.n / 2

    @cached_property
    def inverse_root(self) -> np.ndarray:
        """Rows of the design that represent the prior: their cross products are its precision (T, T)."""
        return np.asarray(scipy.linalg.solve_triangular(self.root, np.eye(len(self.root)), lower=True))

    @cached_property
    def triangle(self) -> np.ndarray:
        """Triangular factor (T + 1, T + 1) of the prior's and the data's rows, the outcome last."""
        prior = np.column_stack([self.inverse_root, np.zeros(len(self.root))])
        return np.linalg.qr(np.vstack([prior, np.column_stack([self.rows, self.outcome])]), mode="r")

    @cached_property
    def condition(self) -> float:
        """Condition number of the columns of the factor, scaled to length 1."""
        columns = self.triangle[:, :-1]
        return float(np.linalg.cond(columns / np.linalg.norm(columns, axis=0))) if columns.size else 1.0

    def columns(self, members: np.ndarray) -> np.ndarray:
        """Return the columns of the design in a subset, (F,) of booleans."""
        return np.flatnonzero(np.concatenate([np.ones(self.fixed, dtype=bool), members]))

    def factors(self, columns: np.ndarray) -> np.ndarray:
        """Return triangular factors (B, k + 1, k + 1) of B choices of k columns (B, k) and the outcome."""
        outcome = np.broadcast_to(self.triangle[:, -1:], (len(columns), len(self.triangle), 1))
        return np.linalg.qr(np.concatenate([self._taken(self.triangle, columns), outcome], axis=2), mode="r")

    @staticmethod
    def _taken(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.moveaxis(matrix.T[columns], 1, 2)

    def log_joint(self, columns: np.ndarray) -> np.ndarray:
        """Return log p(y, subset) of subsets of one size, given by their columns (B, k); shape (B,)."""
        factors, size = self.factors(columns), columns.shape[1]
        diagonal = np.einsum("bii->bi", factors)
        posterior = _log_sizes(diagonal[:, :size])
        prior = _log_sizes(np.einsum("bii->bi", np.linalg.qr(self._taken(self.inverse_root, columns), mode="r")))
        misfit = np.square(diagonal[:, size])
        evidence = log_evidence_over_variance(misfit, 2 * (posterior - prior), self.n, self.a0, self.b0)
        return np.asarray(evidence + self.log_prior[size - self.fixed])

    def conditional(self, members: np.ndarray, units: np.ndarray, origin: np.ndarray) -> Posterior:
        """Return the posterior of noise variance and included weights given a subset, in the user's units."""
        columns = self.columns(members)
        solution = self._solution(columns).in_units(units[columns], origin[columns])
        return normal_inverse_gamma(solution, self.shape, self.b0 + solution.misfit / 2)

    def _solution(self, columns: np.ndarray) -> Solution:
        precision = self.inverse_root[:, columns]
        root = np.linalg.cholesky(np.linalg.inv(precision.T @ precision))
        return solve(self.rows[:, columns], self.outcome, np.zeros(len(columns)), root)

    def draw(
        self, members: np.ndarray, size: int, rng: np.random.Generator, units: np.ndarray, origin: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw all weights (size, T), 0 for excluded terms, and noise variances (size,) given a subset."""
        drawn = self.conditional(members, units, origin).rvs((size,), rng)
        w = np.zeros((size, len(self.root)))
        w[:, self.columns(members)] = drawn["w"]
        return w, drawn["sigma2"]

    def log_density(self, params: Params, units: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Return log p(y, subset, weights, noise variance), (...,); a weight of 0 counts as excluded."""
        w, sigma2 = np.asarray(params["w"], dtype=np.float64), np.asarray(params["sigma2"], dtype=np.float64)
        flat, variances = w.reshape(-1, w.shape[-1]), np.ravel(sigma2)
        subsets, place = np.unique(flat[:, self.fixed :] != 0, axis=0, return_inverse=True)
        density = np.empty(len(flat))
        for i, members in enumerate(subsets):
            points, columns = np.flatnonzero(np.ravel(place) == i), self.columns(members)
            conditional = self.conditional(members, units, origin).logpdf(
                {"w": flat[points][:, columns], "sigma2": variances[points]}
            )
            density[points] = conditional + self.log_joint(columns[None])
        return density.reshape(w.shape[:-1])


def _log_sizes(diagonal: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(np.log(np.abs(diagonal)), axis=-1))


@dataclass(frozen=True, eq=False)
class Subsets:
    """The posterior over all subsets: ``members`` (P, F) of nonzero probability ``weights`` (P,), best first.

    Given a subset, standardized weights have means ``mean`` (P, T) and variances ``spread`` (P, T) divided by the noise
    variance, 0 for excluded weights; the noise variance has the scale ``scale`` (P,). ``sizes`` (F + 1,) are the
    probabilities of the sizes.
    """

    selection: Selection
    log_evidence: float
    members: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    scale: np.ndarray
    sizes: np.ndarray

    @property
    def inclusion(self) -> np.ndarray:
        """The inclusion probability of each term, shape (F,)."""
        return np.minimum(self.weights @ self.members, 1.0)

    @property
    def all_members(self) -> np.ndarray:
        """The inclusion of all terms, shape (P, T)."""
        return np.hstack([np.ones((len(self.members), self.selection.fixed), dtype=bool), self.members])

    def derived(self) -> dict[str, Marginal]:
        """Return the distributions of the inclusion indicators, and of the standard deviation of the noise."""
        sigma = InverseRootGamma(self.selection.shape, 1.0)
        mixed = LocationScaleMixture(sigma, self.weights, 0.0, np.sqrt(self.scale))
        return {"included": Inclusion(self.inclusion), "sigma": mixed}

    def best(self, names: np.ndarray) -> str:
        """Name the most probable subset, with its probability."""
        inside = ", ".join(names[self.members[0]]) or "none of them"
        return f"most probable of the {2 ** len(names):,} subsets of terms ({self.weights[0]:.3g}): {inside}"

    def predictive(self, rows: np.ndarray, m0: float) -> LocationScaleMixture:
        """Return the distribution of new outcomes for standardized rows of terms (rows, T)."""
        mean, spread = self._predicted(rows)
        scale = np.sqrt(self.scale[:, None] / self.selection.shape * (1 + spread))
        loc = m0 * self.selection.fixed + mean
        return LocationScaleMixture(frozen.t(2 * self.selection.shape), self.weights[:, None], loc, scale)

    def _predicted(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean of ``rows @ weights``, and variance divided by the noise variance, each (P, rows)."""
        if len(self.weights) * len(rows) > MOST_PREDICTED:
            problem = f"{len(rows)} rows by {len(self.weights):,} subsets of the terms take too much memory"
            raise InputError(
                problem, "too_many_subsets", hint=f"predict {MOST_PREDICTED // len(self.weights)} rows at a time"
            )
        spread = np.empty((len(self.weights), len(rows)))
        for places, columns in _grouped(self.selection, self.members):
            roots = np.linalg.inv(self.selection.factors(columns)[:, :-1, :-1])
            for place, included, root in zip(places, columns, roots, strict=True):
                spread[place] = np.sum(np.square(rows[:, included] @ root), axis=1)
        return self.mean @ rows.T, spread


def _grouped(selection: Selection, members: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield blocks of subsets of one size: their places (B,) and columns (B, k); blocks save memory."""
    sizes, fixed = members.sum(axis=1), np.arange(selection.fixed)
    for size in range(members.shape[1] + 1):
        places = np.flatnonzero(sizes == size)
        for block in blocks(len(places), len(selection.triangle) ** 2, IN_CACHE):
            chosen = places[block]
            included = np.nonzero(members[chosen])[1].reshape(len(chosen), size) + selection.fixed
            yield chosen, np.hstack([np.broadcast_to(fixed, (len(chosen), len(fixed))), included])


def require_few(selection: Selection) -> None:
    """Raise `NumericalError` if there are too many subsets to enumerate, or rounding could change an evidence."""
    if (count := selection.choices) > MOST_TERMS:
        minutes = 2.0 ** (count - MOST_TERMS)
        long = f"{minutes:,.0f} minutes" if minutes < 1e6 else f"{minutes / 525_960:.2g} years"
        problem = f"{count} terms have 2**{count} subsets, {2.0**count:.2g}: to go through all takes about {long}"
        raise NumericalError(f"{problem}; --method gibbs samples them", "too_many_subsets")
    if not len(selection.root) * np.finfo(np.float64).eps * selection.condition <= MAX_ROUNDING:
        raise NumericalError(
            "rounding decides: terms nearly depend on each other under so wide a prior; narrow V0", "rounding"
        )


@lru_cache(maxsize=2)
def all_subsets(selection: Selection) -> Subsets:
    """Enumerate all subsets of the terms; raise `NumericalError` if there are too many."""
    require_few(selection)
    count = selection.choices
    members = (np.arange(2**count)[:, None] >> np.arange(count)) % 2 == 1
    log_joint = np.empty(len(members))
    for places, columns in _grouped(selection, members):
        log_joint[places] = selection.log_joint(columns)
    log_evidence = float(scipy.special.logsumexp(log_joint))
    weights = np.exp(log_joint - log_evidence)
    sizes = np.bincount(members.sum(axis=1), weights, count + 1)
    kept = np.flatnonzero(weights > NOTHING / len(weights))
    kept = kept[np.argsort(-weights[kept], kind="stable")]
    moments = _moments(selection, members[kept])
    return Subsets(selection, log_evidence, members[kept], weights[kept] / weights[kept].sum(), *moments, sizes)


def _moments(selection: Selection, members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and variances of the weights given each subset, and scales of the noise variance."""
    mean, spread = np.zeros((2, len(members), len(selection.root)))
    scale = np.empty(len(members))
    for places, columns in _grouped(selection, members):
        factors = selection.factors(columns)
        inverse = np.linalg.inv(factors[:, :-1, :-1])
        mean[places[:, None], columns] = (inverse @ factors[:, :-1, -1:])[..., 0]
        spread[places[:, None], columns] = np.sum(np.square(inverse), axis=2)
        scale[places] = selection.b0 + np.square(factors[:, -1, -1]) / 2
    return mean, spread, scale


def log_prior_of_sizes(choices: int, a: float, b: float, pi: float | None) -> np.ndarray:
    """Return the log probability (choices + 1,) of a single subset of each size.

    Terms are included with probability ``pi``, which is ~ Beta(a, b) if None.
    """
    inside = np.arange(choices + 1)
    outside = inside[::-1]
    if pi is None:
        return np.asarray(scipy.special.betaln(a + inside, b + outside) - scipy.special.betaln(a, b))
    return np.asarray(scipy.special.xlogy(inside, pi) + scipy.special.xlog1py(outside, -pi))


def slab(
    params: Params, precision: np.ndarray, origin: np.ndarray, fixed: int, rng: np.random.Generator
) -> tuple[dict[str, Any], float]:
    """Replace ``w`` by ``included`` and ``slab``; return the parameters, and the log density of excluded weights.

    Excluded weights are drawn from N(0, sigma2 / precision), with ``precision`` (T,).
    """
    is_in, law = params["w"] != 0, frozen.norm(0.0, np.sqrt(params["sigma2"] / precision))
    is_in[:fixed] = True
    drawn = law.rvs(len(origin), rng)
    without_w = {name: value for name, value in params.items() if name != "w"}
    point = {**without_w, "included": is_in[fixed:], "slab": np.where(is_in, params["w"] - origin, drawn)}
    return point, float(np.sum(law.logpdf(drawn)[~is_in]))


def share_given(a: float, b: float, w: np.ndarray, fixed: int) -> Any:
    """Return the distribution of the share of included terms, ~ Beta(a, b) a priori, given weights (..., T)."""
    is_in = np.asarray(w)[..., fixed:] != 0
    return frozen.beta(a + is_in.sum(axis=-1), b + (~is_in).sum(axis=-1))


def averaged(
    selection: Selection, units: np.ndarray, origin: np.ndarray, share: tuple[float, float] | None
) -> Posterior:
    """Return the joint posterior of weights ``w`` in the user's units and ``sigma2``, averaged over all subsets.

    With ``share``, the parameters of its Beta prior, it has also the share of included terms ``pi``. The density is
    that of the included weights, times the probability of their subset.
    """
    subsets, sizes = all_subsets(selection), np.arange(selection.choices + 1)
    marginals = _marginals(subsets, units, origin)
    if share is not None:
        of_sizes = frozen.beta(share[0] + sizes, share[1] + selection.choices - sizes)
        marginals["pi"] = LocationScaleMixture(of_sizes, subsets.sizes, 0.0, 1.0)

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        chosen = rng.choice(len(subsets.weights), math.prod(size), p=subsets.weights)
        w, sigma2 = np.empty((len(chosen), len(units))), np.empty(len(chosen))
        for i in np.unique(chosen):
            draws = chosen == i
            w[draws], sigma2[draws] = selection.draw(subsets.members[i], int(draws.sum()), rng, units, origin)
        drawn = {"w": w.reshape(*size, -1), "sigma2": sigma2.reshape(size)}
        if share is None:
            return drawn
        return {**drawn, "pi": share_given(*share, drawn["w"], selection.fixed).rvs(size, rng)}

    def log_density(params: Params) -> Any:
        density = selection.log_density(params, units, origin) - subsets.log_evidence
        if share is None:
            return density[()]
        return (density + share_given(*share, params["w"], selection.fixed).logpdf(params["pi"]))[()]

    return Posterior(marginals, draw, log_density)


def _marginals(subsets: Subsets, units: np.ndarray, origin: np.ndarray) -> dict[str, Marginal]:
    shape, members = subsets.selection.shape, subsets.all_members
    spread = np.where(members, subsets.spread, 1.0)
    scale = np.sqrt(subsets.scale[:, None] / shape * spread) / units
    weights = subsets.weights[:, None] * members
    return {
        "w": LocationScaleMixture(frozen.t(2 * shape), weights, origin + subsets.mean / units, scale),
        "sigma2": LocationScaleMixture(frozen.invgamma(shape), subsets.weights, 0.0, subsets.scale),
    }
