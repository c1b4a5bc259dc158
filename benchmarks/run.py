"""Speed as ratios, both sides in one run, interleaved, medians; `make bench`. Never a test: machines differ and drift.

Peers in this run: plain imports, stock nutpie, PyMC, scikit-learn. BLAS threads are printed, because chains and BLAS
compete.
"""

import logging
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
from scipy import optimize
from threadpoolctl import threadpool_info

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.foundation.numerics.optimize import maximize

logging.getLogger("pymc").setLevel(logging.WARNING)
REPEATS = 5
PYTHON = sys.executable
BAYESZOO = str(Path(PYTHON).with_name("bayeszoo"))

LINEAR = ("ridge", "linear_regression")
FAMILIES = (
    "gamma_poisson",
    "dirichlet_multinomial",
    "gaussian_mean",
    "gaussian_precision",
    "normal_gamma",
    "normal_inverse_wishart",
    "markov_chain",
    *LINEAR,
)
FEATURES = 10
CHUNK = 100_000
"""Rows of simulated data that are held at a time where only their statistics are needed."""

STOCK_NUTPIE = """
    import numpy as np, pymc as pm, arviz as az
    y = np.random.default_rng(0).binomial(1, 0.3, 1000)
    with pm.Model() as model:
        theta = pm.Beta("theta", np.float64(1), np.float64(1))
        pm.Bernoulli("y", theta, observed=pm.Data("data", y))
        tree = pm.sample(1000, tune=1000, chains=4, nuts_sampler="nutpie", random_seed=1, progressbar=False, quiet=True)
    az.summary(tree)
"""


def seconds(action: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def process(*command: str) -> Callable[[], object]:
    """Return a call of a whole process."""
    return lambda: subprocess.run(command, check=True, capture_output=True)


def versus(
    title: str, ours: Callable[[], object], peer: Callable[[], object], target: str, repeats: int = REPEATS
) -> float:
    """Print the ratio of medians of interleaved timings, after one call of each to warm up; return our median."""
    if repeats > 1:
        ours(), peer()
    pairs = [(seconds(ours), seconds(peer)) for _ in range(repeats)]
    mine, theirs = (median(side) for side in zip(*pairs, strict=True))
    print(f"{title:78s} {mine:9.4f} s {theirs:9.4f} s  ratio {mine / theirs:7.3f}  target {target}", flush=True)
    return mine


def gradients(density: Density, calls: int) -> Callable[[], object]:
    """Return a call that evaluates log density and gradient many times."""
    joint, x = density.joint, density.start
    return lambda: [joint(x) for _ in range(calls)]


def compressed(rows: int, model: Any) -> Density:
    """Return the compiled density on sufficient statistics of ``rows`` rows."""
    return Density(model.compressed(model.statistics({"y": np.arange(rows) % 2})))


def whole_processes() -> None:
    """Compare commands as a user waits for them."""
    versus(
        "exact answer on the command line / import scipy.stats, xarray",
        process(BAYESZOO, "fit", "beta_bernoulli", "--method", "exact", "--seed", "1"),
        process(PYTHON, "-c", "import scipy.stats, xarray"),
        "<= 1.5",
    )
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "coin.csv")
        flips = np.random.default_rng(0).binomial(1, 0.3, 1000)
        table.write_text("y\n" + "\n".join(map(str, flips)) + "\n", encoding="utf-8")
        versus(
            "warm end-to-end NUTS, 1000 rows, 4 x (1000 + 1000) / stock nutpie",
            process(BAYESZOO, "fit", "beta_bernoulli", str(table), "--method", "nuts", "--seed", "1"),
            process(PYTHON, "-c", textwrap.dedent(STOCK_NUTPIE)),
            "< 1",
        )


def large_data(model: Any) -> None:
    """Compare what grows with the number of rows with what must not."""
    data = bz.read(model, {"y": np.random.default_rng(0).binomial(1, 0.3, 10_000_000)})
    versus(
        "exact fit of 1e7 rows in memory / summing them", partial(bz.fit, model, data, "exact"), data["y"].sum, "< 1 s"
    )
    small, large = compressed(10**3, model), compressed(10**6, model)
    versus("2,000 gradients, compressed: N = 1e6 / N = 1e3", gradients(large, 2000), gradients(small, 2000), "<= 1.2")
    declared = Density(model.declare({"y": np.arange(10**6) % 2}))
    versus("20 gradients at N = 1e6: compressed / declared", gradients(large, 20), gradients(declared, 20), "<= 0.05")


def fake(name: str, rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    """Make up canonical arrays for a model; where they come from does not matter to its speed."""
    symbols = np.array(list("abc"))
    if name == "beta_bernoulli":
        return {"y": rng.binomial(1, 0.3, rows)}
    if name == "gamma_poisson":
        return {"y": rng.poisson(3.0, rows)}
    if name == "dirichlet_multinomial":
        return {"y": rng.integers(3, size=rows), "category": symbols}
    if name == "markov_chain":
        codes = rng.integers(3, size=(2, rows))
        return {"next": codes[0], "previous": codes[1], "context": symbols, "symbol": symbols}
    if name in LINEAR:
        X = rng.normal(size=(rows, FEATURES))
        labels = np.array([f"x{i}" for i in range(FEATURES)])
        return {"y": X.sum(axis=1) + rng.normal(size=rows), "X": X, "feature": labels}
    if name == "normal_inverse_wishart":
        return {"Y": rng.normal(size=(rows, 2)), "column": symbols[:2]}
    return {"y": rng.normal(size=rows)}


def statistics(model: Any, rows: int) -> Any:
    """Return the statistics of ``rows`` rows, added up over chunks."""
    rng = np.random.default_rng(0)
    total = model.statistics(fake(model.name, rng, min(rows, CHUNK)))
    if model.name in LINEAR:  # the same rows again and again: to draw others would take most of a minute
        return total.discounted(max(rows / CHUNK, 1.0))
    for _ in range(rows // CHUNK - 1):
        total = total + model.statistics(fake(model.name, rng, CHUNK))
    return total


def conjugate_gradients() -> None:
    """Show that the cost of a gradient does not depend on how many rows there are."""
    for name in FAMILIES:
        model: Any = bz.find(name)()
        small, middle, large = (Density(model.compressed(statistics(model, rows))) for rows in (10**3, 10**5, 10**7))
        for density, rows in ((middle, "1e5"), (large, "1e7")):
            title = f"2,000 gradients, {name}: N = {rows} / N = 1e3"
            versus(title, gradients(density, 2000), gradients(small, 2000), "<= 1.2")


def exact_fits() -> None:
    """Compare exact fits of 1e7 rows with what NumPy needs for their mean and variance."""
    for name in ("gaussian_mean", "gaussian_precision", "normal_gamma", "normal_inverse_wishart"):
        model = bz.find(name)()
        arrays = fake(name, np.random.default_rng(0), 10**7)
        outcome = next(iter(arrays.values()))
        data = bz.read(model, arrays)
        title = f"exact fit of {' x '.join(map(str, outcome.shape))} in memory, {name} / NumPy's mean and variance"
        versus(title, partial(bz.fit, model, data, "exact"), partial(moments, outcome), "< 1 s")


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance, or covariance, as NumPy has them."""
    return values.mean(axis=0), np.cov(values, rowvar=False)


def streams() -> None:
    """Compare learning from batch after batch, which are checked as they come, with learning at once."""
    for name in ("beta_bernoulli", "gamma_poisson", "normal_gamma", "normal_inverse_wishart"):
        model, rng = bz.find(name)(), np.random.default_rng(0)
        batches = [fake(name, rng, CHUNK) for _ in range(20)]
        labels = set(model.inputs.coords)
        whole = {k: v if k in labels else np.concatenate([one[k] for one in batches]) for k, v in batches[0].items()}
        rows = len(batches) * CHUNK
        title = f"stream of {len(batches)} batches of 1e5 rows, {name} / update with all at once"
        ours = versus(title, partial(consume, model, batches), partial(bz.update, model, whole), "<= 1.5")
        print(f"    {rows / ours / 1e6:.1f} million rows a second")


def consume(model: Any, batches: list[dict[str, np.ndarray]]) -> None:
    """Go through a stream."""
    for _ in bz.stream(model, batches):
        pass


def chunked_file() -> None:
    """Compare an exact fit of a file in chunks with normal equations from pandas' chunks, which check nothing."""
    rows, blocks, rng = CHUNK, 10, np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, FEATURES)), columns=[f"x{i}" for i in range(FEATURES)])
    frame.insert(0, "y", frame.sum(axis=1) + rng.normal(size=rows))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.csv")
        head, _, lines = frame.to_csv(index=False, float_format="%.8g").partition("\n")
        with path.open("w", encoding="utf-8") as file:
            file.write(head + "\n")
            file.writelines([lines] * blocks)
        model: Any = bz.find("ridge")()
        title = f"exact fit of a CSV of {blocks * rows:.0e} x {FEATURES} in chunks / pandas' chunks, normal equations"
        versus(title, partial(fit_in_chunks, model, path), partial(normal_equations, path), "-", repeats=1)


def fit_in_chunks(model: Any, path: Path) -> None:
    """Fit without holding more than a chunk."""
    bz.fit(model, bz.accumulate(model, path, CHUNK), "exact", seed=1)


def normal_equations(path: Path) -> np.ndarray:
    """Return least-squares weights from sums of products over chunks."""
    products, sums = np.zeros((FEATURES + 1, FEATURES + 1)), np.zeros(FEATURES + 1)
    for frame in pd.read_csv(path, chunksize=CHUNK):
        X = np.column_stack([np.ones(len(frame)), frame.iloc[:, 1:].to_numpy()])
        products, sums = products + X.T @ X, sums + X.T @ frame["y"].to_numpy()
    return np.linalg.solve(products, sums)


def optimizers(model: Any) -> None:
    """Compare MAP and ADVI with what they replace."""
    density = compressed(1000, model)
    climb, start = density.constrained_joint, density.start

    def descend(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = climb(x)
        return -value, -slope

    raw = partial(optimize.minimize, descend, start, jac=True, method="L-BFGS-B")
    versus("MAP with certificate, compiled / SciPy's L-BFGS alone", partial(maximize, climb, start), raw, "<= 3")
    counts = bz.read(model, {"successes": [300], "trials": [1000]})
    stock = partial(pm.fit, 10_000, model=density.model, progressbar=False, random_seed=1)
    versus(
        "ADVI to convergence / PyMC's 10,000 steps, not converged", partial(bz.fit, model, counts, "advi"), stock, "< 1"
    )


def main() -> None:
    """Run all comparisons."""
    threads = {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()}
    print(f"median of {REPEATS}, interleaved; threads {threads}; first column bayeszoo, second the peer")
    coin: Any = bz.find("beta_bernoulli")
    model = coin(2, 3)
    whole_processes()
    large_data(model)
    conjugate_gradients()
    exact_fits()
    streams()
    chunked_file()
    optimizers(model)


if __name__ == "__main__":
    main()
