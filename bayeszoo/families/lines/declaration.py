"""The PyMC density of rows in groups, with the groups' lines integrated out."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.families.lines.statistics import Lines

ZERO = np.float64(0)


def marginal(
    lines: Lines,
    m_a: pt.TensorVariable,
    m_b: pt.TensorVariable,
    a: pt.TensorVariable,
    b: pt.TensorVariable,
    rho: pt.TensorVariable,
    sigma: pt.TensorVariable,
) -> pt.TensorVariable:
    """Return the log density of the rows given the means, sds and correlation of the lines, and sigma.

    It is the sum of the log densities of each group's mean, of its slope given the mean, and of its residuals. The
    statistics are declared as data.
    """
    n, u, y, scatter, slope, residual_squares = (
        pm.Data(f"group_{name}", value) for name, value in lines._asdict().items()
    )
    slant, free = rho * a + u * b, a**2 * (1 - rho) * (1 + rho)
    of_mean = sigma**2 + n * (slant**2 + free)
    coupling = pm.math.sqrt(n * scatter) * b * slant / of_mean
    of_slope = sigma**2 + scatter * b**2 * (sigma**2 + n * free) / of_mean
    e_mean, e_slope = pm.math.sqrt(n) * (y - m_a - m_b * u), pm.math.sqrt(scatter) * (slope - m_b)
    terms = pm.logp(pm.Normal.dist(ZERO, pm.math.sqrt(of_mean)), e_mean)
    terms += pm.logp(pm.Normal.dist(coupling * e_mean, pm.math.sqrt(of_slope)), e_slope)
    terms += (n - 2) * pm.logp(pm.Normal.dist(ZERO, sigma), ZERO) - residual_squares / (2 * sigma**2)
    return pm.math.sum(terms)
