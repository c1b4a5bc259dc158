"""A Gaussian process with noise in PyMC: by the module ``pm.gp``, and as a single operation with its gradient."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.families.processes.kernels import Shape
from bayeszoo.families.processes.spectrum import Rows
from bayeszoo.likelihoods.ops.gaussian import zero_mean_log_density

NO_JITTER = np.float64(0)


class _Of(pm.gp.cov.Covariance):
    """A covariance of places (n, F) that PyMC lacks, or to which it adds jitter."""

    def __init__(self, features: int, full: Any) -> None:
        super().__init__(features)
        self._full = full

    def full(self, X: Any, Xs: Any = None) -> Any:
        return self._full(X, X if Xs is None else Xs)


def _exponential(features: int, length: Any) -> Any:
    def full(x: Any, z: Any) -> Any:
        squares = pt.sum(pt.square(x[:, None, :] - z[None, :, :]), axis=-1)
        return pt.exp(-pt.sqrt(squares) / length)

    return _Of(features, full)


def _covariance(name: str, features: int, length: pt.TensorVariable, shape: Shape) -> Any:
    """Return PyMC's covariance with amplitude 1."""
    cov, zero = pm.gp.cov, np.float64(0)
    covariances = {
        "rbf": lambda: cov.ExpQuad(features, ls=length),
        "matern12": lambda: _exponential(features, length),
        "matern32": lambda: cov.Matern32(features, ls=length),
        "matern52": lambda: cov.Matern52(features, ls=length),
        "rational_quadratic": lambda: cov.RatQuad(features, alpha=np.float64(shape.alpha), ls=length),
        "periodic": lambda: cov.Periodic(features, period=np.float64(shape.period), ls=length / 2),
        "linear": lambda: length**-2 * cov.Linear(features, c=zero),
        "brownian": lambda: _Of(features, lambda x, z: pt.minimum(x[:, 0][:, None], z[:, 0][None, :]) / length),
    }
    return covariances[name]()


def declared(rows: Rows, amplitude: pt.TensorVariable, length: pt.TensorVariable, sigma: pt.TensorVariable) -> None:
    """Declare the outcomes as rows of a process in the current PyMC model, without jitter."""
    features = rows.places.shape[1]
    terms = [
        reduce(mul, (_covariance(name, features, length, rows.kernel.shape) for name in term))
        for term in rows.kernel.terms
    ]
    process = pm.gp.Marginal(mean_func=pm.gp.mean.Constant(rows.mean), cov_func=amplitude**2 * reduce(add, terms))
    places, outcome = pm.Data("places", rows.places), pm.Data("y_data", rows.y, dims="row")
    process.marginal_likelihood("y", X=places, y=outcome, sigma=sigma, jitter=NO_JITTER, dims="row")


def marginal(
    rows: Rows, amplitude: pt.TensorVariable, length: pt.TensorVariable, sigma: pt.TensorVariable
) -> pt.TensorVariable:
    """Return the log density of the outcomes; the tables of distances are declared as data."""
    tables = [
        [pm.Data(f"distances_{i}_{j}", table) for j, table in enumerate(term)] for i, term in enumerate(rows.tables)
    ]
    kernel = rows.kernel.correlations(tables, length, pt)
    noise = pm.Data("identity", np.eye(len(rows.y)))
    return zero_mean_log_density(amplitude**2 * kernel + sigma**2 * noise, pm.Data("residual", rows.y - rows.mean))
