"""Speed of probabilistic PCA as ratios, both sides in one run, interleaved, medians. Never a test: machines differ.

The gradient goes through the compiled density of the whole model, as samplers call it; the peer without statistics is
`pm.MvNormal` over the rows, the textbook's declaration.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.families.factors import ppca, steps
from bayeszoo.families.statistics.patterns import Patterns

REPEATS = 21
COLUMNS, FACTORS = 10, 3
Ppca = bz.find("ppca")


def seconds(action: Callable[[], object], calls: int) -> float:
    """Time one call of several in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        action()
    return (time.perf_counter() - start) / calls


def versus(title: str, first: Callable[[], object], second: Callable[[], object], target: str) -> None:
    """Print microseconds of both sides, and the ratio of their medians."""
    calls = [max(1, int(2e-3 / seconds(action, 2))) for action in (first, second)]
    pairs = [(seconds(first, calls[0]), seconds(second, calls[1])) for _ in range(REPEATS)]
    one, other = (median(side) * 1e6 for side in zip(*pairs, strict=True))
    print(f"{title:72s} {one:10.1f} us {other:10.1f} us  ratio {one / other:8.3f}  target {target}", flush=True)


def rows(count: int, missing: bool = False) -> dict[str, np.ndarray]:
    """Return rows of COLUMNS numbers along FACTORS factors; where some are missing, in 50 patterns."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(COLUMNS, FACTORS))
    Y = rng.normal(size=(count, FACTORS)) @ W.T + 0.5 * rng.normal(size=(count, COLUMNS))
    if missing:
        patterns = rng.random((50, COLUMNS)) < 0.2
        Y[patterns[rng.integers(0, 50, count)]] = np.nan
    return {"Y": Y, "column": np.array([f"x{j}" for j in range(COLUMNS)])}


def gradient(data: dict[str, np.ndarray], declared: bool = False) -> Callable[[], object]:
    """Compile the log joint density and its gradient; return a call of it."""
    model = Ppca(q=FACTORS)
    density = Density(model.declare(data) if declared else model.compressed(model.statistics(data)))
    return partial(density.joint, density.start)


def flat_in_rows() -> None:
    """Compare gradients of a thousand and of a million rows."""
    few, many = (gradient(rows(count)) for count in (10**3, 10**6))
    versus("gradient, N = 1e6 / N = 1e3", many, few, "<= 1.2")
    few, many = (gradient(rows(count, missing=True)) for count in (10**4, 10**6))
    versus("the same with missing numbers, 50 patterns, N = 1e6 / N = 1e4", many, few, "<= 1.2")


def against_rows() -> None:
    """Compare a gradient from the scatter with one from the rows."""
    data = rows(10**5)
    versus("gradient from rows (pm.MvNormal) / from moments, N = 1e5", gradient(data, True), gradient(data), ">= 100")


def against_scikit_learn() -> None:
    """Compare the maximum-likelihood estimate from rows, statistics included, with PCA's."""
    for count in (10**3, 10**5):
        data, model = rows(count), Ppca(q=FACTORS)
        ours, peer = lambda d=data, m=model: m.closed_mle(m.statistics(d)), partial(PCA(FACTORS).fit, data["Y"])
        versus(f"maximum likelihood, N = {count} / PCA of scikit-learn", ours, peer, "-")


def em_iterations() -> None:
    """Show that an iteration of EM costs the same for any number of rows."""
    sides = []
    for count in (10**6, 10**3):
        stats = Patterns.of(rows(count)["Y"])
        params = Ppca(q=FACTORS).start(stats, np.random.default_rng(0))
        sides.append(lambda s=stats, p=params: ppca.m_step_flat(steps.e_step(steps.Coefficients.known(p), s).stats))
    versus("iteration of EM, N = 1e6 / N = 1e3", *sides, "<= 1.2")


if __name__ == "__main__":
    with threadpool_limits(1):
        flat_in_rows()
        em_iterations()
        against_scikit_learn()
        against_rows()
