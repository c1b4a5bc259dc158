"""The log evidence of any PyMC model from draws of its posterior, by bridge sampling.

Meng and Wong 1996, Statistica Sinica 6, 831-860; Meng and Schilling 2002, J. Comput. Graph. Stat. 11, 552-586 (warp);
Fruehwirth-Schnatter 2004, Econometrics J. 7, 143-167 (standard error); Gronau et al. 2020, J. Stat. Softw. 92(10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import Check, at_least, at_most, failures, verdict
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.inference.problem import Problem
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Symmetric, exchangeable_axis
from bayeszoo.results.files import read_tree
from bayeszoo.results.stored import Fit
from bayeszoo.tools.draws.judge import judge
from bayeszoo.tools.draws.one_order import OneOrder, one_order
from bayeszoo.tools.draws.points import chains_of, unconstrained
from bayeszoo.tools.draws.symmetry import check_symmetry

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayeszoo.compile.density import Density

MAX_ERROR, SHOWN_ERROR = 0.1, 0.5
"""Largest standard error of a log evidence that is ok, and that is shown with a warning, in nats."""
MAX_Z, SHOWN_Z = 3.5, 5.0
"""Most standard errors by which the halves of the draws, or two bridge functions, may differ."""
LEAST_EFFECTIVE, SHOWN_EFFECTIVE = 200, 50
"""Fewest effective draws of the terms of the estimate, and of the proposals, in each half."""
DRAWS_PER_COORDINATE = 10
"""Fewest draws of a half per coordinate, from which the covariance is estimated."""
STEPS, TOLERANCE = 1000, 1e-10


type Height = Callable[[np.ndarray], float]
"""The log density at a point, shape (D,)."""


@dataclass(frozen=True)
class Bridge:
    """A log evidence by bridge sampling, and whether it may be trusted."""

    log_evidence: float
    """The log evidence in nats, for a model of the zoo that of the ordered data; NaN where it is withheld."""
    error: float
    """Its Monte Carlo standard error; NaN where it is withheld."""
    status: str
    """``"ok"``, ``"caution"`` or ``"failed"``, the worst of the checks."""
    checks: tuple[Check, ...]
    """Checks of the draws, as by `judge`, and of the estimate: its standard error (``bridge_error``), the differences
    between the halves and to another bridge function in standard errors (``bridge_halves``, ``bridge_functions``), and
    the effective terms (``bridge_overlap``)."""
    halves: tuple[float, float]
    """The log evidence from each half of the draws, with proposals shaped by the other half."""

    def plus(self, log_orders: float) -> Bridge:
        """Return the evidence of all orders of the components from that of one order; all have equal shares."""
        first, second = self.halves
        halves = (first + log_orders, second + log_orders)
        return replace(self, log_evidence=self.log_evidence + log_orders, halves=halves)

    def __repr__(self) -> str:
        """Show the log evidence with its error, or why it is withheld."""
        if self.status == "failed":
            return f"log evidence by bridge sampling withheld: {failures(self.checks)}"
        caveat = f"; {failures(self.checks)}" if self.status == "caution" else ""
        return f"log evidence by bridge sampling {self.log_evidence:.2f} +- {self.error:.2g} nats{caveat}"


def bridge(tree: xr.DataTree | str | Path, model: pm.Model | None = None, seed: int = 0) -> Bridge:
    """Estimate the log evidence of a PyMC model from draws of its posterior by bridge sampling.

    One half of the draws shapes a Gaussian proposal in unconstrained coordinates; the posterior is reflected about its
    centre (warp-III, which removes skewness). The other half is compared with an equal number of draws of the Gaussian.
    Then the halves swap roles.

    Parameters
    ----------
    tree : DataTree, str or Path
        A fit, or any ArviZ tree with the free variables of the model in its group ``posterior``, or the file of a tree.
    model : pymc.Model, optional
        The model that was sampled, with proper priors; not needed for a fit.
    seed : int
        Seed of the proposals.

    Returns
    -------
    Bridge
        The estimate is withheld (NaN) where checks of the draws or of the estimate failed.

    Raises
    ------
    InputError
        When the draws are not from the model's posterior, a prior is improper (``undefined_evidence``), the density of
        a PyMC model has a symmetry that the draws do not have (``unvisited_mode``: modes that no chain visited would be
        missing), signs of factors can be changed (``exchangeable_labels``), or a half has fewer than ten draws for each
        coordinate.

    Notes
    -----
    With K exchangeable components the evidence is K! times that of one order: the components of each draw are sorted by
    the entry that separates them best, and the density of other orders is left out.
    """
    draws = read_tree(Path(tree)) if isinstance(tree, str | Path) else tree
    density, posterior = _density(draws, model), chains_of(draws)
    order = _order_of(Fit(draws).model, posterior) if model is None else None
    points = unconstrained(density, posterior if order is None else order.posterior)
    if points.shape[1] // 2 * points.shape[0] < DRAWS_PER_COORDINATE * density.size:
        problem = f"{points[..., 0].size} draws are too few for {density.size} coordinates"
        raise InputError(problem, "too_few_draws", hint="fit with more --draws")
    if order is None:
        _require_all_modes(density, posterior)
    of_draws = judge(draws).checks if draws.attrs.get("kind", "sampled") == "sampled" else ()
    answer = _judged(_height(density, order), points, of_draws, np.random.default_rng(seed))
    return answer if order is None else answer.plus(order.log_orders)


def _density(tree: xr.DataTree, model: pm.Model | None) -> Density:
    """Return the density that was sampled; for a fit, that of the ordered data."""
    from bayeszoo.compile.density import Density, no_evidence

    if model is None:
        fit = Fit(tree)
        if fit.tree.attrs["kind"] not in ("sampled", "exact"):
            raise InputError(f"{fit.method} has no draws of the posterior", "not_sampled", hint="fit by nuts")
        density = Problem(fit.model, fit.observed, np.random.default_rng(0)).density
    else:
        density = Density(model)
    if why := no_evidence(density.model):
        raise InputError(why, "undefined_evidence", hint="give every parameter a proper prior")
    return density


def _order_of(model: Model, posterior: xr.Dataset) -> OneOrder | None:
    """Return the draws with their components in one order; None where labels are not exchangeable."""
    axis = exchangeable_axis(model)
    if axis is None:
        return None
    if isinstance(model, Symmetric) and model.signed:
        line = f"signs along {axis} can be changed too, and chains do not visit all of them"
        raise InputError(line, "exchangeable_labels", hint="fit by smc, which has an evidence")
    return one_order(model, posterior, axis)


def _height(density: Density, order: OneOrder | None) -> Height:
    """Return the log density as a function of a point, -inf where the components are in another order."""
    if order is None:
        return lambda x: density.joint(x)[0]
    return lambda x: density.joint(x)[0] if order.holds(density, x[None])[0] else -math.inf


def _require_all_modes(density: Density, posterior: xr.Dataset) -> None:
    """Refuse draws of a single one of several equal modes: each mode has a share of the evidence."""
    check, change = check_symmetry(density, posterior)
    if not check.passed:
        line = f"the draws are of only one of several equal modes, each with a share of the evidence: {change}"
        raise InputError(line, "unvisited_mode", hint="let the model order the components or fix the sign")


def _judged(height: Height, points: np.ndarray, of_draws: tuple[Check, ...], rng: np.random.Generator) -> Bridge:
    middle = points.shape[1] // 2
    first, second = points[:, :middle], points[:, middle : 2 * middle]
    halves = [_half(height, *pair, rng) for pair in ((first, second), (second, first))]
    values, errors, effective, shifts = np.transpose(halves)
    value, error = float(values.mean()), float(np.hypot(*errors) / 2)
    checks = (
        *of_draws,
        at_most("bridge_error", error, MAX_ERROR, SHOWN_ERROR),
        at_most("bridge_halves", abs(values[0] - values[1]) / float(np.hypot(*errors)), MAX_Z, SHOWN_Z),
        at_most("bridge_functions", float(np.abs(shifts).max()), MAX_Z, SHOWN_Z),
        at_least("bridge_overlap", float(effective.min()), LEAST_EFFECTIVE, SHOWN_EFFECTIVE),
    )
    status = verdict(checks)
    shown = (value, error) if status != "failed" else (math.nan, math.nan)
    return Bridge(*shown, status, checks, (float(values[0]), float(values[1])))


def _half(height: Height, shaping: np.ndarray, weighed: np.ndarray, rng: np.random.Generator) -> Half:
    """Return the log evidence by one half of the draws, with proposals that are shaped by the other."""
    flat = shaping.reshape(-1, shaping.shape[-1])
    centre, factor = flat.mean(axis=0), np.linalg.cholesky(np.atleast_2d(np.cov(flat, rowvar=False)))
    scaled = scipy.linalg.solve_triangular(factor, (weighed - centre).reshape(len(flat), -1).T, lower=True).T
    proposed = rng.standard_normal(scaled.shape)
    of_draws = _log_ratio(height, centre, factor, scaled).reshape(weighed.shape[:2])
    return _meng_wong(of_draws, _log_ratio(height, centre, factor, proposed))


def _log_ratio(height: Height, centre: np.ndarray, factor: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the log of the reflected posterior over the standard normal at z (n, D), up to the evidence."""
    heights = np.array([[height(centre + sign * factor @ row) for sign in (1, -1)] for row in z])
    log_normal = -np.sum(np.square(z), axis=1) / 2 - z.shape[1] * LOG_2_PI / 2
    log_det = float(np.sum(np.log(np.diag(factor))))
    return np.asarray(np.logaddexp.reduce(heights, axis=1) - math.log(2) + log_det - log_normal)


class Half(NamedTuple):
    """The estimate from one half of the draws."""

    value: float
    error: float
    terms: float
    """The smaller number of effective terms of the two means."""
    shift: float
    """The difference to the geometric bridge in standard errors, large if the draws are of another density."""


def _meng_wong(of_draws: np.ndarray, of_proposals: np.ndarray) -> Half:
    """Return the log of the ratio of two normalizing constants by the optimal bridge.

    ``of_draws`` (chain, draw) and ``of_proposals`` (n,) are log ratios of the unnormalized density to the proposal's.
    """
    size = float(diagnostics.ess(of_draws[..., None], "mean")[0])
    shares = np.log([size, of_proposals.size]) - math.log(size + of_proposals.size)
    value = float(np.median(of_draws))
    for _ in range(STEPS):
        above = of_proposals - np.logaddexp(shares[0] + of_proposals, shares[1] + value)
        below = -np.logaddexp(shares[0] + of_draws, shares[1] + value)
        before, value = value, _log_mean(above) - _log_mean(below)
        if abs(value - before) < TOLERANCE:
            break
    upper, lower = _relative(above), _relative(below)
    squares = _squared_errors(upper, lower)
    geometric = _relative(of_proposals / 2), _relative(-of_draws / 2)
    other = _log_mean(of_proposals / 2) - _log_mean(-of_draws / 2)
    noise = math.sqrt(sum(_squared_errors(upper - geometric[0], lower - geometric[1])))
    terms = min(1 / squares[0] if squares[0] else math.inf, float(diagnostics.ess(lower[..., None], "mean")[0]))
    return Half(value, math.sqrt(sum(squares)), terms, (value - other) / noise if noise else 0.0)


def _log_mean(logs: np.ndarray) -> float:
    return float(np.logaddexp.reduce(logs, axis=None)) - math.log(logs.size)


def _relative(logs: np.ndarray) -> np.ndarray:
    """Return terms divided by their mean, from their logs."""
    return np.asarray(np.exp(logs - _log_mean(logs)))


def _squared_errors(of_proposals: np.ndarray, of_draws: np.ndarray) -> tuple[float, float]:
    """Return the squared errors of the means of independent terms (n,), and of those of chains (chain, draw)."""
    return float(of_proposals.var() / of_proposals.size), float(diagnostics.mcse(of_draws[..., None])[0]) ** 2
