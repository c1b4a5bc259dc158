"""Do draws follow a distribution that is known in closed form? By the ranks of each number, and by their dependence."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy


def joint_ks(family: Any, drawn: list[dict[str, Any]], rng: np.random.Generator) -> float:
    """Compare draws with the closed form's own in the density of their copula, which is all that ranks do not show."""
    own = family.rvs(len(drawn), rng)
    found = {name: np.array([point[name] for point in drawn]) for name in own}
    return float(scipy.stats.ks_2samp(*(_log_copula(family, draws) for draws in (found, own))).pvalue)


def _log_copula(family: Any, draws: dict[str, np.ndarray]) -> np.ndarray:
    """Joint log density less those of the marginals; rounded, for it is 0 where the parameters are independent."""
    each = (marginal.logpdf(draws[name]).reshape(len(draws[name]), -1).sum(axis=1) for name, marginal in family.items())
    points = ({name: values[i] for name, values in draws.items()} for i in range(len(draws[next(iter(draws))])))
    return np.nan_to_num(np.round([family.logpdf(point) for point in points] - sum(each), 6))


def lowest_ks(ranks: np.ndarray) -> float:
    """Return the lowest Kolmogorov-Smirnov p-value of the columns of ranks against the uniform distribution."""
    return float(min(scipy.stats.kstest(column, "uniform").pvalue for column in ranks.T))
