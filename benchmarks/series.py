"""Series: the Kalman likelihood with its gradient against statsmodels' filter, and how often intervals hold.

``python -m benchmarks.series`` prints ratios of medians, both sides in one run, interleaved, and the shares of 90%
intervals of 200 simulated series that hold the rows to come, and the levels. Never a test: machines differ.
"""

import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import pytensor
import pytensor.tensor as pt
from statsmodels.tsa.statespace.structural import UnobservedComponents
from threadpoolctl import threadpool_limits

import bayeszoo as bz
from bayeszoo.distributions.averages.averaged import Averaged
from bayeszoo.families.state_space.components import Components
from bayeszoo.families.state_space.structure import Structure
from bayeszoo.likelihoods.ops.kalman import level_log_likelihood
from bayeszoo.model.outer.integration import integrate

ROWS, REPEATS = (10**3, 10**5), 11
SERIES, LENGTH, STEPS = 200, 40, 3


def seconds(action: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def speed(rows: int) -> None:
    """Print the milliseconds of both sides: ours with two derivatives, the peer's log likelihood alone."""
    rng = np.random.default_rng(1)
    y = np.cumsum(0.3 * rng.standard_normal(rows)) + rng.standard_normal(rows)
    q, r = pt.dscalars("q", "r")
    value = level_log_likelihood(q, r, y, 100.0, np.array([0]))
    ours = pytensor.function([q, r], [value, *pytensor.grad(value, [q, r])], mode="NUMBA", trust_input=True)
    peer = UnobservedComponents(y, "llevel")
    peer.ssm.initialize_known(np.zeros(1), np.array([[100.0]]))
    peer.ssm.loglikelihood_burn = 0
    at = np.array(0.3), np.array(1.0)
    np.testing.assert_allclose(ours(*at)[0], peer.loglike([1.0, 0.09]), rtol=1e-10)
    pairs = [(seconds(lambda: ours(*at)), seconds(lambda: peer.loglike([1.0, 0.09]))) for _ in range(REPEATS)]
    mine, theirs = (1e3 * median(side) for side in zip(*pairs, strict=True))
    sides = f"{mine:8.3f} ms with gradient, {theirs:8.3f} ms statsmodels' filter"
    print(f"{rows:7d} rows: {sides}, ratio {mine / theirs:.3f}", flush=True)


def structural(rows: int) -> None:
    """Print the same of a level with slope and twelve seasons; the peer's steady state is off, which is approximate."""
    rng, season = np.random.default_rng(1), np.random.default_rng(2).normal(size=12)
    y = np.cumsum(0.3 * rng.standard_normal(rows)) + np.resize(season, rows) + rng.standard_normal(rows)
    structure = Structure(("level", "slope", "season"), 12, (10.0, 1.0, 2.0))
    at, variances = {"q": 0.3, "q_slope": 0.01, "q_season": 0.05, "r": 1.0}, [1.0, 0.09, 1e-4, 2.5e-3]
    own = Components.of(at, {"y": y, "X": np.empty((rows, 0)), "sequence": np.zeros(rows, dtype=int)}, 0.0, structure)
    peer = UnobservedComponents(y, "lltrend", seasonal=12)
    U, D = structure.factors
    peer.ssm.initialize_known(np.zeros(13), U @ np.diag(D) @ U.T)
    peer.ssm.loglikelihood_burn, peer.ssm.tolerance = 0, 0
    np.testing.assert_allclose(own.log_marginal(), peer.loglike(variances), rtol=1e-10)
    own.slopes()
    pairs = [(seconds(own.slopes), seconds(lambda: peer.loglike(variances))) for _ in range(REPEATS)]
    mine, theirs = (1e3 * median(side) for side in zip(*pairs, strict=True))
    sides = f"{mine:8.3f} ms with gradient, {theirs:8.3f} ms statsmodels' filter"
    print(f"{rows:7d} rows, seasons: {sides}, ratio {mine / theirs:.3f}", flush=True)


def coverage() -> None:
    """Print the share of 90% intervals that hold, of rows to come and of the levels, with weak priors."""
    Level, rng = bz.find("local_level"), np.random.default_rng(0)
    rows, levels = [], []
    for _ in range(SERIES):
        q = np.exp(rng.normal(-0.7, 0.7))
        level = 10 + np.cumsum(q * rng.standard_normal(LENGTH + STEPS))
        y = level + rng.standard_normal(LENGTH + STEPS)
        data = {"y": y[:LENGTH], "sequence": np.zeros(LENGTH, dtype=int)}
        model = Level.weak(data)
        known = integrate(model, data)
        ahead = Averaged(model.rows_ahead(known.points, data, STEPS), known.mass)
        smoothed = Averaged(model.smoothed(known.points, data), known.mass)
        rows.append(np.abs(ahead.cdf(y[LENGTH:]) - 0.5) < 0.45)
        levels.append(np.abs(smoothed.cdf(level[:LENGTH]) - 0.5) < 0.45)
    ahead = " ".join(f"{share:.1%}" for share in np.mean(rows, axis=0))
    print(f"90% intervals of {SERIES} series: rows to come {ahead}, levels {np.mean(levels):.1%}")


if __name__ == "__main__":
    with threadpool_limits(1):
        for rows in ROWS:
            speed(rows)
        structural(ROWS[0])
        if "coverage" in sys.argv:
            coverage()
