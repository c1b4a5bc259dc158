"""Lines through the rows of groups, whose intercepts and slopes are Gaussian: statistics and densities.

With u the feature of the rows of a group, and r their outcomes less those on the mean line, the rows are N(0, s^2 I +
Z S Z'), Z = (1, u). Only two coordinates of r know Z: e = (sqrt(n) times its mean, sqrt(scatter of u) times its slope),
which is N(0, s^2 I + R S R') with R'R = Z'Z. All others are N(0, s^2), and their squares add up to those about the
group's own line. No subtraction cancels, and no group is too small.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.data.inputs.labels import joined
from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.foundation.named import Arrays, Params

TINY = float(np.finfo(np.float64).tiny)


class Lines(NamedTuple):
    """The least-squares line of each group, each of shape (groups,).

    ``n`` rows have the means ``u`` and ``y``, and ``scatter`` is the sum of squared deviations of their feature; their
    line has the ``slope``, 0 where it is not known, and the sum of squares ``rest`` about it.
    """

    n: Any
    u: Any
    y: Any
    scatter: Any
    slope: Any
    rest: Any

    @classmethod
    def of(cls, u: np.ndarray, y: np.ndarray, codes: np.ndarray, groups: int) -> Self:
        """Return the statistics of rows, given the group code of each."""

        def total(values: np.ndarray) -> np.ndarray:
            return np.bincount(codes, values, groups)

        n = np.bincount(codes, minlength=groups).astype(np.float64)
        (u_mean, du), (y_mean, dy) = (_centred(values, codes, total, n) for values in (u, y))
        scatter = total(du * du)
        slope = np.divide(total(du * dy), scatter, out=np.zeros(groups), where=scatter > 0)
        return cls(n, u_mean, y_mean, scatter, slope, total(np.square(dy - slope[codes] * du)))


def _centred(values: np.ndarray, codes: np.ndarray, total: Any, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each group, and deviations from it; taken twice, as the first mean is rounded."""
    mean = np.zeros(len(n))
    for _ in range(2):
        mean = mean + total(values - mean[codes]) / np.maximum(n, 1.0)
    return mean, values - mean[codes]


class _Outer(NamedTuple):
    """The outer parameters, with an axis for the groups, and what follows from them for each."""

    a: np.ndarray
    b: np.ndarray
    rho: np.ndarray
    sigma: np.ndarray
    line: tuple[np.ndarray, np.ndarray]
    """Mean intercept and mean slope."""
    off: tuple[np.ndarray, np.ndarray]
    """How far mean and slope of each group are from those of the mean line."""
    alone: np.ndarray
    """The share of the variance of intercepts that slopes do not tell."""
    determinant: np.ndarray
    """Determinant of the covariance of e, over s^4."""

    @classmethod
    def of(cls, outer: Params, lines: Lines) -> Self:
        """Compute them; every term of the determinant is positive."""
        names = ("sd_intercept", "sd_slope", "rho", "sigma", "mean_intercept", "mean_slope")
        a, b, rho, sigma, *line = (np.asarray(outer[name], dtype=np.float64)[..., None] for name in names)
        alone, slant = (1 - rho) * (1 + rho), rho * a + lines.u * b
        n, scatter, free = lines.n / sigma**2, lines.scatter / sigma**2, a * a * alone
        determinant = 1 + n * (slant * slant + free) + scatter * b * b * (1 + n * free)
        off = lines.y - line[0] - line[1] * lines.u, lines.slope - line[1]
        return cls(a, b, rho, sigma, (line[0], line[1]), off, alone, determinant)


def said_of_lines(data: Arrays, center: float) -> tuple[str, ...]:
    """Say where intercepts are counted from, unless from 0, which groups have no rows, and that rows are few."""
    rows, groups = len(data["x"]), len(data["group"])
    without = data["group"][np.bincount(data["group_code"], minlength=groups) == 0].tolist()
    where = f"intercepts are where {getattr(data, 'columns', {}).get('feature', 'x')} is {center:g}"
    none = f"groups without rows, estimated from the other groups: {joined(without)}"
    few = f"{rows} rows are not more than {2 * groups} intercepts and slopes: sigma is hardly told from their spread"
    return (*[where] * bool(center), *[none] * bool(without), *[few] * (rows <= 2 * groups))


def guess(u: np.ndarray, y: np.ndarray) -> dict[str, tuple[float, float]]:
    """Guess each outer parameter, and its width: of positive ones in their logs."""
    sd = float(Moments.of(y).sd)
    line, per_u = Lines.of(u, y, np.zeros(len(u), dtype=np.int64), 1), sd / float(Moments.of(u).sd)
    slope = float(line.slope[0])
    means = {"mean_intercept": (float(line.y[0]) - slope * float(line.u[0]), sd), "mean_slope": (slope, per_u)}
    return means | {"sd_intercept": (sd, 1.0), "sd_slope": (per_u, 1.0), "rho": (0.0, 1.0), "sigma": (sd, 1.0)}


def drawn_lines(outer: Params, groups: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw ``intercept`` and ``slope`` of groups given the outer parameters."""
    a, b = outer["sd_intercept"], outer["sd_slope"]
    between = outer["rho"] * a * b
    means, covariance = (outer["mean_intercept"], outer["mean_slope"]), [[a * a, between], [between, b * b]]
    lines = rng.multivariate_normal(means, covariance, groups)
    return {"intercept": lines[:, 0], "slope": lines[:, 1]}


def log_marginal(outer: Params, lines: Lines) -> Any:
    """Return the log density of the rows given the outer parameters alone; leading axes are points."""
    of = _Outer.of(outer, lines)
    e_mean, e_slope = (np.sqrt(w) * off / of.sigma for w, off in zip((lines.n, lines.scatter), of.off, strict=True))
    variance = 1 + lines.scatter * np.square(of.b / of.sigma)  # of e_slope, over s^2
    both = np.sqrt(lines.n * lines.scatter) * of.b * (of.rho * of.a + lines.u * of.b) / of.sigma**2
    squares = np.square(e_mean - both / variance * e_slope) * variance / of.determinant
    squares = squares + np.square(e_slope) / variance + lines.rest / of.sigma**2
    logs = lines.n * (math.log(2 * math.pi) + 2 * np.log(of.sigma)) + np.log(of.determinant)
    return -np.sum(logs + squares, axis=-1) / 2


class _Given(NamedTuple):
    """Means of intercept and slope of each group, their covariance, and the sd of slopes given intercepts."""

    intercept: np.ndarray
    slope: np.ndarray
    aa: np.ndarray
    ab: np.ndarray
    bb: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, outer: Params, lines: Lines) -> Self:
        """Compute (S^-1 + Z'Z / s^2)^-1, written so that S may be singular."""
        of = _Outer.of(outer, lines)
        (off_mean, off_slope), n, scatter = of.off, lines.n / of.sigma**2, lines.scatter / of.sigma**2
        of_slope = 1 + of.b**2 * of.alone * (n * lines.u**2 + scatter)
        aa = of.a**2 * of_slope / of.determinant
        ab = of.a * of.b * (of.rho - of.a * of.b * of.alone * n * lines.u) / of.determinant
        bb = of.b**2 * (1 + of.a**2 * of.alone * n) / of.determinant
        to_a, to_b = n * off_mean, n * lines.u * off_mean + scatter * off_slope
        means = of.line[0] + aa * to_a + ab * to_b, of.line[1] + ab * to_a + bb * to_b
        return cls(*means, aa, ab, bb, of.b * np.sqrt(of.alone / of_slope))

    def slope_at(self, intercept: object) -> frozen.Frozen:
        """Return the slopes given intercepts."""
        return _normal(self.slope + self.ab / self.aa * (intercept - self.intercept), self.rest)


def lines_given(outer: Params, lines: Lines) -> Posterior:
    """Return the distribution of ``intercept`` and ``slope`` of each group given the outer parameters."""
    marginal = _Given.of(outer, lines)
    intercepts = _normal(marginal.intercept, np.sqrt(marginal.aa))

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        intercept = rng.normal(marginal.intercept, np.sqrt(marginal.aa), (*size, *marginal.intercept.shape))
        return {"intercept": intercept, "slope": rng.normal(marginal.slope_at(intercept).mean(), marginal.rest)}

    def log_density(params: Params) -> np.ndarray:
        of_slope = marginal.slope_at(params["intercept"]).logpdf(params["slope"])
        return np.sum(intercepts.logpdf(params["intercept"]) + of_slope, axis=-1)

    return Posterior(
        {"intercept": intercepts, "slope": _normal(marginal.slope, np.sqrt(marginal.bb))}, draw, log_density
    )


def _normal(mean: np.ndarray, sd: np.ndarray) -> frozen.Frozen:
    """Return a normal distribution; of no spread, SciPy does not know the mean."""
    return frozen.norm(mean, np.maximum(sd, TINY))
