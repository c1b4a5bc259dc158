"""Parzen windows: a density as the mean of Gaussian kernels about the rows, and a classifier from one for each class.

The bandwidth h maximizes the leave-one-out likelihood, prod_i f_-i(x_i | h). This product of conditionals is no
likelihood of the rows; as a function of h it gives a pseudo-posterior, and is labelled so. Parzen 1962; Duin 1976;
CS725, 24.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import ClassRegression, Matrix, Real
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.table import quoted
from bayeszoo.data.without_model import TableOf
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.foundation.numerics.constants import LOG_2_PI

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

MOST_ROWS = 3000
"""Most rows: all pairs are compared, in a tenth of a second for each bandwidth."""
SCANNED, POINTS = 60, 121
"""Number of bandwidths scanned for the maximum, and number on the grid of the pseudo-posterior."""
DEPTH = 25.0
"""Nats below the maximum at which the grid of the pseudo-posterior ends."""
ABOUT = "pseudo-posterior of the bandwidth: the product of leave-one-out densities is no likelihood of the rows"


def read_numbers(data: object, on_groups: str = "", **options: Any) -> Data:
    """Read columns of real numbers: all columns of a table, as for mixtures, or the one that ``column`` names.

    ``on_groups`` is the advice on an unused column that may name groups.
    """
    is_one = options.get("column") is not None or (options.get("columns") is None and np.ndim(data) == 1)  # type: ignore[arg-type]
    return read(TableOf(Real("y") if is_one else Matrix("Y"), on_groups=on_groups), data, **options)


CLASS_AND_FEATURES = TableOf(ClassRegression("y"))
"""A column of classes, and columns of features."""


@dataclass(frozen=True, eq=False)
class Density:
    """A density by Parzen windows.

    Attributes
    ----------
    rows : ndarray
        The centres of the kernels, shape (n, columns).
    bandwidth : float
        Standard deviation of each Gaussian kernel.
    score : float
        Leave-one-out log density summed over the rows, in nats.
    """

    rows: np.ndarray
    bandwidth: float
    score: float

    def at(self, points: np.ndarray, bandwidth: float | None = None) -> np.ndarray:
        """Return the log density of points (m, columns), shape (m,)."""
        squares = _squared_distances(np.atleast_2d(points), self.rows)
        h = self.bandwidth if bandwidth is None else bandwidth
        kernels = -squares / (2 * h * h) - self.rows.shape[1] * (math.log(h) + LOG_2_PI / 2)
        return np.asarray(scipy.special.logsumexp(kernels, axis=1) - math.log(len(self.rows)))

    @cached_property
    def pseudo(self) -> tuple[np.ndarray, np.ndarray]:
        """Bandwidths, and their weights in the pseudo-posterior under a flat prior of log h."""
        squares, columns = _squared_distances(self.rows, self.rows), self.rows.shape[1]
        low, high = (self._end(squares, columns, sign) for sign in (-1.0, 1.0))
        log_h = np.linspace(low, high, POINTS)
        scores = np.array([_score(point, squares, columns) for point in log_h])
        weights = np.exp(scores - scores.max())
        return np.exp(log_h), weights / weights.sum()

    def _end(self, squares: np.ndarray, columns: int, sign: float) -> float:
        """Return the log bandwidth at an end of the pseudo-posterior, where it is negligible."""
        step, log_h = 0.05, math.log(self.bandwidth)
        while _score(log_h + sign * step, squares, columns) > self.score - DEPTH:
            step *= 1.3
        return log_h + sign * step

    def averaged(self, points: np.ndarray) -> np.ndarray:
        """Return the log density of points averaged over the pseudo-posterior of the bandwidth, shape (m,)."""
        bandwidths, weights = self.pseudo
        kept = weights > 1e-9
        log_densities = np.array([self.at(points, h) for h in bandwidths[kept]])
        return np.asarray(scipy.special.logsumexp(log_densities.T, b=weights[kept] / weights[kept].sum(), axis=1))

    @property
    def row(self) -> dict[str, float]:
        """Rows, bandwidth and score, and mean, sd and quantiles of the pseudo-posterior of the bandwidth."""
        h, weights = self.pseudo
        mean = float(h @ weights)
        below = np.cumsum(weights) - weights / 2
        quantiles = {name: float(np.exp(np.interp(level, below, np.log(h)))) for name, level in QUANTILES.items()}
        fit = {"rows": len(self.rows), "bandwidth": self.bandwidth, "score": self.score}
        return {**fit, "pseudo_mean": mean, "pseudo_sd": math.sqrt(float((h - mean) ** 2 @ weights)), **quantiles}


@dataclass(frozen=True, eq=False)
class Densities:
    """A density for each class, or one of all rows under the name "all".

    Attributes
    ----------
    each : dict of str to Density
        The densities by class.
    data : Data
        The rows.
    center, scale : ndarray
        The number subtracted from each column, and the divisor after that.
    """

    each: dict[str, Density]
    data: Data
    center: np.ndarray
    scale: np.ndarray

    @property
    def kind(self) -> str:
        """How the numbers were computed."""
        return "leave-one-out maximum, pseudo-posterior"

    @property
    def summary(self) -> pd.DataFrame:
        """One row a class: rows, bandwidth, score, and the pseudo-posterior of the bandwidth."""
        index = pd.Index(list(self.each), name="class" if "class" in self.data else "rows of")
        return pd.DataFrame([density.row for density in self.each.values()], index=index)

    def log_density(self, points: Any) -> np.ndarray:
        """Return the log density of points, shape (m,), in the units of the table; only without classes."""
        (density,) = self.each.values()
        points = np.reshape(np.asarray(points, dtype=np.float64), (-1, len(self.scale)))
        return density.at((points - self.center) / self.scale) - float(np.log(self.scale).sum())

    @property
    def errors(self) -> int:
        """Number of rows that the other rows classify wrongly."""
        codes, joint = self.data["y"], self._joint(self.data["X"])
        for k, density in enumerate(self.each.values()):
            members = codes == k
            joint[members, k] += _left_out(density) - density.at(density.rows)
        return int(np.sum(joint.argmax(axis=1) != codes))

    def classify(self, new: Any, **options: Any) -> pd.DataFrame:
        """Return the probability of each class of new rows, ``p[CLASS]``, and the most probable one, ``decision``."""
        if "class" not in self.data:
            raise InputError("the rows have no classes", "missing_outcome", hint="name their column with target=")
        rows = read(CLASS_AND_FEATURES, new, new=True, like=self.data, **options)
        return probabilities(scipy.special.softmax(self._joint(rows["X"]), axis=1), rows, list(self.each))

    def _joint(self, X: np.ndarray) -> np.ndarray:
        """Return the log of the share of each class times its density, shape (rows, classes)."""
        X, n = (X - self.center) / self.scale, len(self.data["y"])
        return np.column_stack([math.log(len(density.rows) / n) + density.at(X) for density in self.each.values()])


def probabilities(p: np.ndarray, rows: Data, classes: list[str]) -> pd.DataFrame:
    """Return a table of class probabilities (rows, classes) and decisions."""
    frame = pd.DataFrame(p, columns=[f"p[{name}]" for name in classes], index=pd.Index(rows.numbers, name="row"))
    frame["decision"] = np.array(classes, dtype=object)[p.argmax(axis=1)]
    return frame


def density(data: Any, *, standardize: bool | None = None, **options: Any) -> Densities:
    """Estimate a density by Parzen windows, or one for each class.

    Parameters
    ----------
    data : anything that `read` takes
        Columns of real numbers: all columns of a table, or those that ``columns`` names; with ``target``, a column of
        classes and columns of features. At least two rows, and at most 3000.
    standardize : bool, optional
        Whether to divide columns by their standard deviations; by default if there are several.
    **options
        Options of `read`: ``column``, ``columns``, or ``target`` and ``features``, and the format of the file.

    Returns
    -------
    Densities
        ``summary`` has the bandwidths and ``log_density(points)`` the density; with classes, ``classify(new)`` returns
        the classes of new rows, and ``errors`` the number of rows that the others classify wrongly.

    Raises
    ------
    InputError
        When there are too few or too many rows, a column is constant, or every row is repeated, so that the
        leave-one-out bandwidth is 0.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> answer = bz.density([0.0, 1.0, 3.0, 4.0])
    >>> round(answer.each["all"].bandwidth, 3), round(answer.each["all"].score, 3)
    (1.966, -9.063)
    """
    if "target" in options or isinstance(data, tuple):
        rows = read(CLASS_AND_FEATURES, data, **options)
        values, codes, names = rows["X"], rows["y"], list(map(str, rows["class"]))
    else:
        rows = read_numbers(data, "--class {} estimates a density for each class", **options)
        values = rows["Y"] if "Y" in rows else rows["y"][:, None]
        codes, names = np.zeros(len(values), dtype=np.int64), ["all"]
    center, scale = units(values, values.shape[1] > 1 if standardize is None else standardize, rows)
    scaled = (values - center) / scale
    densities = {name: _fitted(scaled[codes == k], name) for k, name in enumerate(names)}
    return Densities(densities, rows, center, scale)


def units(values: np.ndarray, standardize: bool, rows: Data) -> tuple[np.ndarray, np.ndarray]:
    """Return means and sds of columns of rows, or 0 and 1; refuse constant columns and too many rows."""
    if len(values) > MOST_ROWS:
        raise InputError(
            f"{len(values)} rows are too many to compare all pairs", "too_large", hint=f"give at most {MOST_ROWS}"
        )
    names = next((rows[axis] for axis in ("feature", "column") if axis in rows), [rows.columns.get("y", "y")])
    if constant := [name for name, width in zip(names, np.ptp(values, axis=0), strict=True) if not width > 0]:
        problem = f"every column must have two different values, and {quoted(constant)} has one"
        raise InputError(problem, "wrong_columns", hint="leave it out")
    if not standardize:
        return np.zeros(values.shape[1]), np.ones(values.shape[1])
    return values.mean(axis=0), values.std(axis=0, ddof=1)


def _fitted(rows: np.ndarray, name: str) -> Density:
    """Return the density with the bandwidth of highest leave-one-out likelihood."""
    squares, columns = _squared_distances(rows, rows), rows.shape[1]
    positive = squares[squares > 0]
    if len(rows) < 2 or not len(positive):
        raise InputError(f"class {name} has fewer than two different rows", "too_few_rows", hint="give more rows")
    others = np.where(np.eye(len(rows), dtype=bool), np.inf, squares)
    if np.all(others.min(axis=1) == 0):
        problem = f"each of the {len(rows)} rows equals another: the leave-one-out bandwidth is 0"
        raise InputError(problem, "too_few_rows", hint="give numbers that are not rounded")
    ends = math.log(math.sqrt(positive.min()) / 20), math.log(2 * math.sqrt(positive.max()))
    scanned = np.linspace(*ends, SCANNED)
    best = int(np.argmax([_score(log_h, squares, columns) for log_h in scanned]))
    between = scanned[max(best - 1, 0)], scanned[min(best + 1, SCANNED - 1)]
    result = scipy.optimize.minimize_scalar(
        lambda log_h: -_score(log_h, squares, columns), bounds=between, method="bounded", options={"xatol": 1e-9}
    )
    return Density(rows, math.exp(float(result.x)), -float(result.fun))


def _squared_distances(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.spatial.distance.cdist(points, rows, "sqeuclidean"))


def _score(log_h: float, squares: np.ndarray, columns: int) -> float:
    """Return the leave-one-out log density summed over the rows."""
    return float(_left_out_at(log_h, squares, columns).sum())


def _left_out_at(log_h: float, squares: np.ndarray, columns: int) -> np.ndarray:
    """Return the leave-one-out log density of each row, shape (rows,), at a log bandwidth."""
    kernels = squares * (-math.exp(-2 * log_h) / 2)
    np.fill_diagonal(kernels, -np.inf)
    constant = columns * (log_h + LOG_2_PI / 2) + math.log(len(squares) - 1)
    largest = kernels.max(axis=1)
    return np.asarray(largest + np.log(np.exp(kernels - largest[:, None]).sum(axis=1)) - constant)


def _left_out(density: Density) -> np.ndarray:
    """Return the leave-one-out log density of each row of a density, shape (rows,)."""
    squares = _squared_distances(density.rows, density.rows)
    return _left_out_at(math.log(density.bandwidth), squares, density.rows.shape[1])
