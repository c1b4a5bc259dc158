"""NUTS against its peers, process start to printed summary, and many small fits; ``python benchmarks/nuts.py``.

Seconds of processor time, both sides in one run, interleaved, medians: other programs affect them less than wall-clock
time. NumPyro is not among our dependencies: ``PEERS`` names a Python that has it, else it is left out.
"""

import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import nutpie

import bayeszoo as bz
from bayeszoo.inference.methods.nuts import _for_nutpie
from bayeszoo.inference.problem import Problem
from bayeszoo.inference.starts import Start

REPEATS = 3
BAYESZOO = str(Path(sys.executable).with_name("bayeszoo"))
PEERS = os.environ.get("PEERS", sys.executable)
SMALL_FITS = 100

NUMPYRO = """
    import sys, numpyro, numpy as np
    numpyro.set_host_device_count(4)
    numpyro.enable_x64()
    import jax, jax.numpy as jnp
    from numpyro import distributions as d, infer, sample
    jax.config.update("jax_compilation_cache_dir", sys.argv[2] + "/jax")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    rows = np.loadtxt(f"{sys.argv[2]}/{sys.argv[1]}.csv", delimiter=",", skiprows=1, ndmin=2)
    X, y = np.column_stack([np.ones(len(rows)), rows[:, 1:]]), rows[:, 0]

    def beta_bernoulli():
        sample("y", d.Bernoulli(sample("theta", d.Beta(1.0, 1.0))), obs=y)

    def normal_gamma():
        lam = sample("lam", d.Gamma(0.5, 0.5))
        sample("y", d.Normal(sample("mu", d.Normal(0, 10 / jnp.sqrt(lam))), 1 / jnp.sqrt(lam)), obs=y)

    def linear_regression():
        sigma = jnp.sqrt(sample("sigma2", d.InverseGamma(0.5, 0.5)))
        w = sample("w", d.Normal(0, 10 * sigma).expand([X.shape[1]]).to_event(1))
        sample("y", d.Normal(X @ w, sigma), obs=y)

    kernel = infer.NUTS(globals()[sys.argv[1]])
    chains = infer.MCMC(kernel, num_warmup=1000, num_samples=1000, num_chains=4, progress_bar=False)
    chains.run(jax.random.PRNGKey(1))
    chains.print_summary()
"""


def tables(folder: Path) -> dict[str, np.ndarray]:
    """Write a table of 1,000 rows for each model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    columns = {
        "beta_bernoulli": rng.binomial(1, 0.3, (1000, 1)),
        "normal_gamma": rng.normal(2, 3, (1000, 1)),
        "linear_regression": np.column_stack([X.sum(axis=1) + rng.normal(size=1000), X]),
    }
    for name, values in columns.items():
        header = ",".join(["y", *(f"x{i}" for i in range(1, values.shape[1]))])
        np.savetxt(folder / f"{name}.csv", values, delimiter=",", header=header, comments="", fmt="%.8g")
    return columns


def of_processes(action: Callable[[], object]) -> float:
    """Return the processor time of the processes that are started and end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_this(action: Callable[[], object]) -> float:
    """Return the processor time of a call, all threads together."""
    start = time.process_time()
    action()
    return time.process_time() - start


def versus(
    title: str, timed: Callable[[Any], float], ours: Callable[[], object], peer: Callable[[], object], target: str
) -> None:
    """Print medians and their ratio, after one call of each to warm up."""
    pairs = [(timed(ours), timed(peer)) for _ in range(REPEATS + 1)][1:]
    mine, theirs = (median(side) for side in zip(*pairs, strict=True))
    print(f"{title:70s} {mine:8.3f} s {theirs:8.3f} s  ratio {mine / theirs:6.2f}  target {target}", flush=True)


def run(*command: str) -> Callable[[], object]:
    """Return a call of a whole process, which keeps its bytecode as an installed command does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return partial(subprocess.run, command, check=True, capture_output=True, env=environment)


def end_to_end(folder: Path) -> None:
    """Compare whole commands, warm, with NumPyro, whose compiled code is cached too."""
    for name in tables(folder):
        table = [str(folder / f"{name}.csv"), *(["--target", "y"] if name == "linear_regression" else [])]
        ours = run(BAYESZOO, "fit", name, *table, "--method", "nuts", "--seed", "1")
        theirs = run(PEERS, "-c", textwrap.dedent(NUMPYRO), name, str(folder))
        versus(f"warm end-to-end NUTS, 1,000 rows, {name} / NumPyro, cached", of_processes, ours, theirs, "<= 1")


def sampling(folder: Path) -> None:
    """Compare the chains alone with those of the density that nutpie compiles itself: the draws are worth the same."""
    for name in tables(folder):
        model: Any = bz.find(name)()
        reading = {"target": "y"} if name == "linear_regression" else {}
        problem = Problem(model, bz.read(model, folder / f"{name}.csv", **reading), np.random.default_rng(0))
        density, own = problem.density, nutpie.compile_pymc_model(problem.declared)
        ours = _for_nutpie(density.native, partial(Start(density.start).near, joint=density.joint))
        options = {"chains": 4, "draws": 1000, "tune": 1000, "seed": 1, "progress_bar": False, "return_raw_trace": True}
        calls = (partial(nutpie.sample, compiled, **options) for compiled in (ours, own))
        versus(f"4 x (1000 + 1000) draws, {name} / of nutpie's own density", of_this, *calls, "<= 1")


def exact() -> None:
    """Compare an exact answer on the command line with what it has to import."""
    ours = run(BAYESZOO, "fit", "normal_gamma", "--method", "exact", "--seed", "1")
    least = run(sys.executable, "-c", "import scipy.stats, xarray")
    versus("exact answer, normal_gamma / importing scipy.stats and xarray", of_processes, ours, least, "<= 1.5")


def many() -> None:
    """Say what one of many small fits takes."""
    rng, model = np.random.default_rng(0), bz.find("normal_gamma")()
    sets = [rng.normal(size=30) for _ in range(SMALL_FITS + 1)]
    warnings.simplefilter("ignore", bz.Caution)
    bz.fit_many(model, sets[:1], seed=1, workers=1)
    taken = of_this(lambda: bz.fit_many(model, sets[1:], seed=1, workers=1)) / SMALL_FITS
    print(f"one of {SMALL_FITS} small NUTS fits: {taken:.3f} s  target <= 0.12 s, 1,000 in a minute on two cores")


def main() -> None:
    """Run all comparisons."""
    with tempfile.TemporaryDirectory() as name:
        sampling(Path(tables(Path(name)) and name))
        many()
        exact()
        if subprocess.run([PEERS, "-c", "import numpyro"], check=False, capture_output=True).returncode:
            print("NumPyro is left out: name a Python that has it, PEERS=...")
        else:
            end_to_end(Path(name))


if __name__ == "__main__":
    main()
