"""The modes of a Bayesian lasso under tighter and wider priors: the lasso's path."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.data.read import read
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.lasso import mode as lasso
from bayeszoo.families.lasso.model import LaplaceWeights
from bayeszoo.foundation.named import Statistics
from bayeszoo.model.base import Model, require_instance

if TYPE_CHECKING:
    import pandas as pd

RATIO = 1e3
"""Ratio of the largest prior scale of a path to the smallest."""


def lasso_path(model: Model, data: object = None, b: object = None, points: int = 50) -> pd.DataFrame:
    """Return the mode of a Bayesian lasso for each of several prior scales.

    Parameters
    ----------
    model : BayesianLasso
        An instance with known noise; its ``b`` is ignored.
    data : Data or anything that `read` takes, optional
        The model's first example by default.
    b : array_like of float, optional
        Prior scales, > 0; by default ``points`` of them, geometrically from the smallest at which a weight leaves 0.
    points : int
        Number of prior scales, if ``b`` is not given.

    Returns
    -------
    pandas.DataFrame
        One row per prior scale, indexed by rising ``b``. ``alpha`` is the penalty in scikit-learn's terms,
        sigma^2 / (n b) on standardized columns; ``violation`` is that of the conditions of a mode, at most
        `lasso.LIMIT`; then one column per term has its weight in the user's units, some exactly 0.

    Raises
    ------
    InputError
        When the model is no lasso with known noise, or the scales are not positive numbers.
    NumericalError
        When a mode is not found, or all weights are 0 at any prior scale.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> Lasso = bz.find("bayesian_lasso")
    >>> data = bz.example(Lasso)
    >>> path = bz.lasso_path(Lasso.weak(data), data, b=[0.15, 0.3, 3.0])
    >>> [int((row != 0).sum()) for row in path.drop(columns=["alpha", "violation"]).to_numpy()]
    [2, 3, 8]
    """
    import pandas as pd

    require_instance(model)
    if not isinstance(model, LaplaceWeights) or model.learn_sigma or model.scale_mixture:
        raise InputError(
            "a path needs a bayesian_lasso with known noise", "no_path", hint="set sigma, and scale_mixture=False"
        )
    data = read(model, data)
    stats = model.statistics(data)
    scales = _grid(model, stats, points) if b is None else np.sort(np.atleast_1d(np.asarray(b, dtype=np.float64)))
    if scales.ndim != 1 or not len(scales) or not (np.isfinite(scales).all() and scales[0] > 0):
        raise InputError("prior scales b must be positive numbers", "out_of_range")
    design, outcome = model.equations(stats)
    rows = []
    for scale in scales:
        prior_scales = cast(Any, replace)(model, b=scale).prior_scales(design.shape[1])
        mode = lasso.mode(design, outcome, prior_scales, model.sigma**2)
        if mode.violation > lasso.LIMIT:
            raise NumericalError(f"no mode found: the conditions are missed by {mode.violation:.2g}", "not_converged")
        alpha = float(model.sigma) ** 2 / (stats.n * scale)
        rows.append([alpha, mode.violation, *(model.origin(len(mode.theta)) + mode.theta / model.units(stats))])
    columns = ["alpha", "violation", *model.coords(data)["term"].tolist()]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(scales, name="b"))


def _grid(model: LaplaceWeights, stats: Statistics, points: int) -> np.ndarray:
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise InputError(f"points must be a whole number >= 2, got {points!r}", "wrong_type")
    design, outcome = model.equations(stats)
    intercept, slopes = np.split(design, [int(model.intercept)], axis=1)
    residual = outcome - intercept @ np.linalg.lstsq(intercept, outcome)[0]
    pull = float(np.max(np.abs(slopes.T @ residual), initial=0.0))
    if pull <= 1e-13 * np.linalg.norm(slopes) * np.linalg.norm(outcome):
        raise NumericalError(
            "all weights are 0 at any prior scale: the outcome does not vary with the features", "constant_outcome"
        )
    smallest = model.sigma**2 / pull  # the smallest scale with a nonzero weight
    return np.geomspace(smallest, RATIO * smallest, points)
