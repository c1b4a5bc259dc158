"""Lines of groups with Gaussian intercepts and slopes: statistics and densities.

With u the feature of a group's rows, and r their outcomes minus the mean line, r ~ N(0, s^2 I + Z S Z'), Z = (1, u).
Only two coordinates of r depend on Z: e = (sqrt(n) times its mean, sqrt(scatter of u) times its slope), which is
N(0, s^2 I + R S R') with R'R = Z'Z. All other coordinates are N(0, s^2), and their squares add up to the squares about
the group's least-squares line. No subtraction cancels, and groups of any size are valid.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.data.inputs.labels import joined
from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import LOG_2_PI, TINY


class Lines(NamedTuple):
    """The least-squares line of each group, each of shape (groups,).

    ``n`` rows have the means ``u`` and ``y``, and ``scatter`` is the sum of squared deviations of their feature; their
    line has the ``slope``, 0 if undefined, and ``residual_squares`` is the sum of squared residuals from it.
    """

    n: Any
    u: Any
    y: Any
    scatter: Any
    slope: Any
    residual_squares: Any

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
    """Return the mean of each group, and the deviations from it; computed twice to correct rounding."""
    mean = np.zeros(len(n))
    for _ in range(2):
        mean = mean + total(values - mean[codes]) / np.maximum(n, 1.0)
    return mean, values - mean[codes]


class _Outer(NamedTuple):
    """The outer parameters, with an axis for the groups, and derived quantities of each group."""

    a: np.ndarray
    b: np.ndarray
    rho: np.ndarray
    sigma: np.ndarray
    line: tuple[np.ndarray, np.ndarray]
    """Mean intercept and mean slope."""
    off: tuple[np.ndarray, np.ndarray]
    """Mean and slope of each group minus those of the mean line."""
    alone: np.ndarray
    """The share of the variance of intercepts that slopes do not explain, 1 - rho^2."""
    determinant: np.ndarray
    """Determinant of the covariance of e, divided by s^4."""

    @classmethod
    def of(cls, outer: Params, lines: Lines) -> Self:
        """Compute the derived quantities; every term of the determinant is positive."""
        names = ("sd_intercept", "sd_slope", "rho", "sigma", "mean_intercept", "mean_slope")
        a, b, rho, sigma, *line = (np.asarray(outer[name], dtype=np.float64)[..., None] for name in names)
        alone, slant = (1 - rho) * (1 + rho), rho * a + lines.u * b
        n, scatter, free = lines.n / sigma**2, lines.scatter / sigma**2, a * a * alone
        determinant = 1 + n * (slant * slant + free) + scatter * b * b * (1 + n * free)
        off = lines.y - line[0] - line[1] * lines.u, lines.slope - line[1]
        return cls(a, b, rho, sigma, (line[0], line[1]), off, alone, determinant)


def said_of_lines(data: Arrays, center: float) -> tuple[str, ...]:
    """Explain the centre of intercepts, unless it is 0; name groups without rows, and say if rows are few."""
    rows, groups = len(data["x"]), len(data["group"])
    without = data["group"][np.bincount(data["group_code"], minlength=groups) == 0].tolist()
    where = f"intercepts are where {getattr(data, 'columns', {}).get('feature', 'x')} is {center:g}"
    none = f"groups without rows, estimated from the other groups: {joined(without)}"
    too_few = (
        f"{rows} rows are not more than {2 * groups} intercepts and slopes: sigma is hardly told from their spread"
    )
    return (*[where] * bool(center), *[none] * bool(without), *[too_few] * (rows <= 2 * groups))


def guess(u: np.ndarray, y: np.ndarray) -> dict[str, tuple[float, float]]:
    """Guess each outer parameter, and its width, that of positive ones in their logs."""
    sd = float(Moments.of(y).sd)
    line, per_u = Lines.of(u, y, np.zeros(len(u), dtype=np.int64), 1), sd / float(Moments.of(u).sd)
    slope = float(line.slope[0])
    means = {"mean_intercept": (float(line.y[0]) - slope * float(line.u[0]), sd), "mean_slope": (slope, per_u)}
    return means | {"sd_intercept": (sd, 1.0), "sd_slope": (per_u, 1.0), "rho": (0.0, 1.0), "sigma": (sd, 1.0)}


def drawn_lines(outer: Params, groups: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw ``intercept`` and ``slope`` of groups given the outer parameters."""
    a, b = outer["sd_intercept"], outer["sd_slope"]
    ab = outer["rho"] * a * b
    means, covariance = (outer["mean_intercept"], outer["mean_slope"]), [[a * a, ab], [ab, b * b]]
    lines = rng.multivariate_normal(means, covariance, groups)
    return {"intercept": lines[:, 0], "slope": lines[:, 1]}


def log_marginal(outer: Params, lines: Lines) -> Any:
    """Return the log density of the rows given the outer parameters alone; leading axes are points."""
    groups = _Outer.of(outer, lines)
    e_mean, e_slope = (
        np.sqrt(w) * off / groups.sigma for w, off in zip((lines.n, lines.scatter), groups.off, strict=True)
    )
    variance = 1 + lines.scatter * np.square(groups.b / groups.sigma)  # of e_slope, over s^2
    coupling = (
        np.sqrt(lines.n * lines.scatter) * groups.b * (groups.rho * groups.a + lines.u * groups.b) / groups.sigma**2
    )
    squares = np.square(e_mean - coupling / variance * e_slope) * variance / groups.determinant
    squares = squares + np.square(e_slope) / variance + lines.residual_squares / groups.sigma**2
    logs = lines.n * (LOG_2_PI + 2 * np.log(groups.sigma)) + np.log(groups.determinant)
    return -np.sum(logs + squares, axis=-1) / 2


class _LineGivenOuter(NamedTuple):
    """Means of intercept and slope of each group, their covariance, and the sd of slopes given intercepts."""

    intercept: np.ndarray
    slope: np.ndarray
    aa: np.ndarray
    ab: np.ndarray
    bb: np.ndarray
    slope_sd: np.ndarray

    @classmethod
    def of(cls, outer: Params, lines: Lines) -> Self:
        """Compute (S^-1 + Z'Z / s^2)^-1, in a form in which S may be singular."""
        groups = _Outer.of(outer, lines)
        (off_mean, off_slope), n, scatter = groups.off, lines.n / groups.sigma**2, lines.scatter / groups.sigma**2
        of_slope = 1 + groups.b**2 * groups.alone * (n * lines.u**2 + scatter)
        aa = groups.a**2 * of_slope / groups.determinant
        ab = groups.a * groups.b * (groups.rho - groups.a * groups.b * groups.alone * n * lines.u) / groups.determinant
        bb = groups.b**2 * (1 + groups.a**2 * groups.alone * n) / groups.determinant
        to_a, to_b = n * off_mean, n * lines.u * off_mean + scatter * off_slope
        means = groups.line[0] + aa * to_a + ab * to_b, groups.line[1] + ab * to_a + bb * to_b
        return cls(*means, aa, ab, bb, groups.b * np.sqrt(groups.alone / of_slope))

    def slope_at(self, intercept: object) -> frozen.Frozen:
        """Return the distribution of slopes given intercepts."""
        return _normal(self.slope + self.ab / self.aa * (intercept - self.intercept), self.slope_sd)


def lines_given(outer: Params, lines: Lines) -> Posterior:
    """Return the distribution of ``intercept`` and ``slope`` of each group given the outer parameters."""
    marginal = _LineGivenOuter.of(outer, lines)
    intercepts = _normal(marginal.intercept, np.sqrt(marginal.aa))

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        intercept = rng.normal(marginal.intercept, np.sqrt(marginal.aa), (*size, *marginal.intercept.shape))
        return {"intercept": intercept, "slope": rng.normal(marginal.slope_at(intercept).mean(), marginal.slope_sd)}

    def log_density(params: Params) -> np.ndarray:
        of_slope = marginal.slope_at(params["intercept"]).logpdf(params["slope"])
        return np.sum(intercepts.logpdf(params["intercept"]) + of_slope, axis=-1)

    return Posterior(
        {"intercept": intercepts, "slope": _normal(marginal.slope, np.sqrt(marginal.bb))}, draw, log_density
    )


def _normal(mean: np.ndarray, sd: np.ndarray) -> frozen.Frozen:
    """Return a normal distribution with sd of at least `TINY`: SciPy returns NaN at sd 0."""
    return frozen.norm(mean, np.maximum(sd, TINY))
