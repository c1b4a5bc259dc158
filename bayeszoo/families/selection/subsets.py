"""Variable selection in linear regression with unknown noise: the sum over all subsets of terms.

Given the subset that is in, weights and noise have the normal-inverse-gamma prior of linear regression, given that the
other weights are 0. The prior is written as extra rows of the design, so that a subset is a choice of
columns: their triangular factor (Golub and Van Loan 2013, section 5.2) gives its evidence and its weights, and X'X is
not formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.conjugate.regressions import log_evidence_over_variance
from bayeszoo.distributions.mixed import Inclusion, LocationScaleMixture
from bayeszoo.distributions.posterior import InverseRootGamma, Marginal, Posterior
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.linear.least_squares import (
    MAX_ROUNDING,
    Solution,
    normal_inverse_gamma,
    solve,
)
from bayeszoo.foundation.blocks import IN_CACHE, blocks

MOST_TERMS = 20
"""Terms whose subsets, a million, are all gone through, in about a minute."""
NOTHING = 1e-13
"""Probability of all subsets together that are left out of the mixtures."""
MOST_PREDICTED = 2**26
"""Subsets times rows of one predictive distribution."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Data and prior of a regression on T terms: the first ``fixed`` are always in, and F others may be.

    ``rows`` (R, T) and ``outcome`` (R,) have the squared errors of ``n`` data rows; ``root`` (T, T) is the lower
    triangular root of the prior covariance of all weights over the noise variance ~ InvGamma(``a0``, scale ``b0``).
    ``log_prior`` (F + 1,) is the log probability of one subset of each size.
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
        """How many terms may be in or not."""
        return len(self.log_prior) - 1

    @property
    def shape(self) -> float:
        """Shape of the posterior of the noise variance."""
        return self.a0 + self.n / 2

    @cached_property
    def inverse_root(self) -> np.ndarray:
        """Rows of the design that the prior stands for: their sums of products are its precision (T, T)."""
        return np.asarray(scipy.linalg.solve_triangular(self.root, np.eye(len(self.root)), lower=True))

    @cached_property
    def triangle(self) -> np.ndarray:
        """Triangular factor (T + 1, T + 1) of the prior's and the data's rows, the outcome last."""
        prior = np.column_stack([self.inverse_root, np.zeros(len(self.root))])
        return np.linalg.qr(np.vstack([prior, np.column_stack([self.rows, self.outcome])]), mode="r")

    @cached_property
    def condition(self) -> float:
        """Condition number of the columns of the factor, each divided by its length."""
        columns = self.triangle[:, :-1]
        return float(np.linalg.cond(columns / np.linalg.norm(columns, axis=0))) if columns.size else 1.0

    def columns(self, members: np.ndarray) -> np.ndarray:
        """Return the columns of the design that a subset, (F,) of booleans, stands for."""
        return np.flatnonzero(np.concatenate([np.ones(self.fixed, dtype=bool), members]))

    def factors(self, columns: np.ndarray) -> np.ndarray:
        """Return triangular factors of some columns (B, k) and the outcome: (B, k + 1, k + 1)."""
        outcome = np.broadcast_to(self.triangle[:, -1:], (len(columns), len(self.triangle), 1))
        return np.linalg.qr(np.concatenate([self._taken(self.triangle, columns), outcome], axis=2), mode="r")

    @staticmethod
    def _taken(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.moveaxis(matrix.T[columns], 1, 2)

    def log_joint(self, columns: np.ndarray) -> np.ndarray:
        """Return log p(y, subset) of subsets of one size, by their columns (B, k); shape (B,)."""
        factors, size = self.factors(columns), columns.shape[1]
        own = np.einsum("bii->bi", factors)
        learned = _log_sizes(own[:, :size])
        before = _log_sizes(np.einsum("bii->bi", np.linalg.qr(self._taken(self.inverse_root, columns), mode="r")))
        misfit = np.square(own[:, size])
        evidence = log_evidence_over_variance(misfit, 2 * (learned - before), self.n, self.a0, self.b0)
        return np.asarray(evidence + self.log_prior[size - self.fixed])

    def conditional(self, members: np.ndarray, units: np.ndarray, origin: np.ndarray) -> Posterior:
        """Return weights and noise variance given a subset, the weights of its columns only, in the user's units."""
        columns = self.columns(members)
        solution = self._solution(columns).in_units(units[columns], origin[columns])
        return normal_inverse_gamma("w", "sigma2", solution, self.shape, self.b0 + solution.misfit / 2)

    def _solution(self, columns: np.ndarray) -> Solution:
        precision = self.inverse_root[:, columns]
        root = np.linalg.cholesky(np.linalg.inv(precision.T @ precision))
        return solve(self.rows[:, columns], self.outcome, np.zeros(len(columns)), root)

    def draw(
        self, members: np.ndarray, size: int, rng: np.random.Generator, units: np.ndarray, origin: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw all weights (size, T), 0 for terms that are out, and noise variances (size,) given a subset."""
        drawn = self.conditional(members, units, origin).rvs((size,), rng)
        w = np.zeros((size, len(self.root)))
        w[:, self.columns(members)] = drawn["w"]
        return w, drawn["sigma2"]

    def log_density(self, params: Mapping[str, Any], units: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Return log p(y, subset, weights, noise variance): of weights that are out, at 0, their probability."""
        w, sigma2 = np.asarray(params["w"], dtype=np.float64), np.asarray(params["sigma2"], dtype=np.float64)
        flat, variances = w.reshape(-1, w.shape[-1]), np.ravel(sigma2)
        subsets, place = np.unique(flat[:, self.fixed :] != 0, axis=0, return_inverse=True)
        density = np.empty(len(flat))
        for i, members in enumerate(subsets):
            some, columns = np.flatnonzero(np.ravel(place) == i), self.columns(members)
            own = self.conditional(members, units, origin).logpdf(
                {"w": flat[some][:, columns], "sigma2": variances[some]}
            )
            density[some] = own + self.log_joint(columns[None])
        return density.reshape(w.shape[:-1])


def _log_sizes(diagonal: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(np.log(np.abs(diagonal)), axis=-1))


@dataclass(frozen=True, eq=False)
class Subsets:
    """The posterior over all subsets: ``members`` (P, F) that have any probability, ``weights`` (P,), best first.

    Given each, standardized weights have means ``mean`` (P, T) and variances ``spread`` (P, T) over the noise variance;
    0 where they are out. That has the scales ``scale`` (P,). ``sizes`` (F + 1,) are the probabilities of the sizes.
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
        """Probability of each term of being in, shape (F,)."""
        return np.minimum(self.weights @ self.members, 1.0)

    @property
    def all_members(self) -> np.ndarray:
        """Which of all terms are in, shape (P, T)."""
        return np.hstack([np.ones((len(self.members), self.selection.fixed), dtype=bool), self.members])

    def derived(self) -> dict[str, Marginal]:
        """Return the distributions of the indicators of being in, and of the standard deviation of the noise."""
        sigma = InverseRootGamma(self.selection.shape, 1.0)
        mixed = LocationScaleMixture(sigma, self.weights, 0.0, np.sqrt(self.scale))
        return {"included": Inclusion(self.inclusion), "sigma": mixed}

    def best(self, names: np.ndarray) -> str:
        """Say which subset is the most probable, and how probable."""
        inside = ", ".join(names[self.members[0]]) or "none of them"
        return f"most probable of the {2 ** len(names):,} subsets of terms ({self.weights[0]:.3g}): {inside}"

    def predictive(self, rows: np.ndarray, m0: float) -> LocationScaleMixture:
        """Return the distribution of new outcomes of standardized rows of terms (rows, T)."""
        mean, spread = self._predicted(rows)
        scale = np.sqrt(self.scale[:, None] / self.selection.shape * (1 + spread))
        loc = m0 * self.selection.fixed + mean
        return LocationScaleMixture(frozen.t(2 * self.selection.shape), self.weights[:, None], loc, scale)

    def _predicted(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance over the noise variance of ``rows @ weights``, each (P, rows)."""
        if len(self.weights) * len(rows) > MOST_PREDICTED:
            problem = f"{len(rows)} rows by {len(self.weights):,} subsets of the terms take too much memory"
            raise InputError(
                problem, "too_many_subsets", hint=f"predict {MOST_PREDICTED // len(self.weights)} rows at a time"
            )
        spread = np.empty((len(self.weights), len(rows)))
        for some, columns in _grouped(self.selection, self.members):
            roots = np.linalg.inv(self.selection.factors(columns)[:, :-1, :-1])
            for place, own, root in zip(some, columns, roots, strict=True):
                spread[place] = np.sum(np.square(rows[:, own] @ root), axis=1)
        return self.mean @ rows.T, spread


def _grouped(selection: Selection, members: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield blocks of subsets of one size, small enough to need little memory: their places and columns (B, k)."""
    sizes, fixed = members.sum(axis=1), np.arange(selection.fixed)
    for size in range(members.shape[1] + 1):
        places = np.flatnonzero(sizes == size)
        for block in blocks(len(places), len(selection.triangle) ** 2, IN_CACHE):
            some = places[block]
            own = np.nonzero(members[some])[1].reshape(len(some), size) + selection.fixed
            yield some, np.hstack([np.broadcast_to(fixed, (len(some), len(fixed))), own])


def require_few(selection: Selection) -> None:
    """Raise `NumericalError` where there are too many subsets to go through, or rounding could change an evidence."""
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
    """Go through all subsets of the terms, or raise `NumericalError` where there are too many."""
    require_few(selection)
    count = selection.choices
    members = (np.arange(2**count)[:, None] >> np.arange(count)) % 2 == 1
    log_joint = np.empty(len(members))
    for some, columns in _grouped(selection, members):
        log_joint[some] = selection.log_joint(columns)
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
    for some, columns in _grouped(selection, members):
        factors = selection.factors(columns)
        inverse = np.linalg.inv(factors[:, :-1, :-1])
        mean[some[:, None], columns] = (inverse @ factors[:, :-1, -1:])[..., 0]
        spread[some[:, None], columns] = np.sum(np.square(inverse), axis=2)
        scale[some] = selection.b0 + np.square(factors[:, -1, -1]) / 2
    return mean, spread, scale


def log_prior_of_sizes(choices: int, a: float, b: float, pi: float | None) -> np.ndarray:
    """Return the log probability of one subset of each size, 0 to ``choices``: terms are in with probability ``pi``.

    Without it that is ~ Beta(a, b).
    """
    inside = np.arange(choices + 1)
    outside = inside[::-1]
    if pi is None:
        return np.asarray(scipy.special.betaln(a + inside, b + outside) - scipy.special.betaln(a, b))
    return np.asarray(scipy.special.xlogy(inside, pi) + scipy.special.xlog1py(outside, -pi))


def slab(
    params: Mapping[str, Any], precision: np.ndarray, origin: np.ndarray, fixed: int, rng: np.random.Generator
) -> tuple[dict[str, Any], float]:
    """Return parameters with ``included`` and ``slab`` for ``w``, and the log density of weights that are out.

    These are drawn, from N(0, sigma2 over their ``precision``, (T,)).
    """
    is_in, law = params["w"] != 0, frozen.norm(0.0, np.sqrt(params["sigma2"] / precision))
    is_in[:fixed] = True
    drawn = law.rvs(len(origin), rng)
    others = {name: value for name, value in params.items() if name != "w"}
    point = {**others, "included": is_in[fixed:], "slab": np.where(is_in, params["w"] - origin, drawn)}
    return point, float(np.sum(law.logpdf(drawn)[~is_in]))


def share_given(a: float, b: float, w: np.ndarray, fixed: int) -> Any:
    """Return the distribution of the share of terms that are in, ~ Beta(a, b) a priori, given weights (..., T)."""
    is_in = np.asarray(w)[..., fixed:] != 0
    return frozen.beta(a + is_in.sum(axis=-1), b + (~is_in).sum(axis=-1))


def averaged(
    selection: Selection, units: np.ndarray, origin: np.ndarray, share: tuple[float, float] | None
) -> Posterior:
    """Return weights ``w`` in the user's units and noise variance ``sigma2`` jointly, averaged over all subsets.

    With ``share``, the numbers of its Beta prior, also the share of terms that are in, ``pi``. The density is that of
    the weights that are in, times the probability that just these are.
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
            some = chosen == i
            w[some], sigma2[some] = selection.draw(subsets.members[i], int(some.sum()), rng, units, origin)
        drawn = {"w": w.reshape(*size, -1), "sigma2": sigma2.reshape(size)}
        if share is None:
            return drawn
        return {**drawn, "pi": share_given(*share, drawn["w"], selection.fixed).rvs(size, rng)}

    def log_density(params: Mapping[str, Any]) -> Any:
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
