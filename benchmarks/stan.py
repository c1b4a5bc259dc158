"""NUTS against prebuilt Stan, process start to printed summary; ``STAN=... python -m benchmarks.stan``.

``STAN=... python -m benchmarks.stan densities`` asks Stan for the log densities of the programs of the models in
models/stan, at two draws of each reference, and writes tests/stan_densities.json, to which a test holds the models.

``STAN`` names a Python that has PyStan 3, whose compiled programs run up to Python 3.12 and are kept from run to run.
Each side fits four chains of 1,000 draws after as many of warmup. Stan's side prints means, standard deviations and
quantiles alone, where ours checks its draws, too. Seconds of the clock, interleaved, medians: PyStan's chains run in
processes that its own does not wait for.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import bayeszoo as bz
from bayeszoo.results.stored import dumps
from bayeszoo.tools.references.posteriors import names
from bayeszoo.tools.references.stan_program import stan_data, stan_program
from benchmarks.nuts import BAYESZOO, REPEATS, run, tables

STAN = os.environ.get("STAN", "")
PROGRAMS = {
    "beta_bernoulli": """
        data { int N; array[N] int y; }
        parameters { real<lower=0, upper=1> theta; }
        model { y ~ bernoulli(theta); }""",
    "normal_gamma": """
        data { int N; vector[N] y; }
        parameters { real mu; real<lower=0> lam; }
        model { lam ~ gamma(0.5, 0.5); mu ~ normal(0, 10 / sqrt(lam)); y ~ normal(mu, 1 / sqrt(lam)); }""",
    "linear_regression": """
        data { int N; int D; matrix[N, D] X; vector[N] y; }
        parameters { vector[D] w; real<lower=0> sigma2; }
        model { sigma2 ~ inv_gamma(0.5, 0.5); w ~ normal(0, 10 * sqrt(sigma2)); y ~ normal(X * w, sqrt(sigma2)); }""",
}
"""The models with the priors that the commands below have."""

SCRIPT = """
    import json, sys, numpy as np, stan
    program, data = (open(path).read() for path in sys.argv[1:])
    fit = stan.build(program, data=json.loads(data), random_seed=1).sample(num_chains=4, num_samples=1000)
    for name in fit.param_names:
        draws = fit[name]
        print(name, draws.mean(-1), draws.std(-1), np.quantile(draws, [0.025, 0.5, 0.975], axis=-1))
"""


DENSITIES = """
    import json, sys, stan
    wanted = json.load(sys.stdin)
    for name, (program, data, points) in wanted.items():
        model = stan.build(program, data=data, random_seed=1)
        heights = [model.log_prob(model.unconstrain_pars(x), adjust_transform=False) for x in points]
        print(json.dumps([name, heights]), flush=True)
"""
KEPT = Path(__file__).parents[1] / "tests" / "stan_densities.json"
PLACES = ((0, 0), (5, 500))
"""Chains and draws of the references at which the densities are compared."""


def of_own_data(name: str) -> tuple[str, dict[str, object]]:
    """Return the model's Stan program, and its own data with the weak prior as that takes them."""
    kind = bz.find(name)
    data, program = bz.example(kind), stan_program(kind)
    assert program is not None
    return program, stan_data(program, kind.weak(data), data)


def densities() -> None:
    """Ask Stan for the log density of each reference that has a Stan program, at two of its draws."""
    wanted, digests = {}, {}
    for reference in bz.references([name for name in names() if stan_program(bz.find(name.partition("-")[2]))]):
        program = stan_program(type(reference.model))
        assert program is not None
        variables = [v.name for v in reference.model.declare(reference.data).free_RVs]
        points = [{name: reference.draws[name][place].tolist() for name in variables} for place in PLACES]
        wanted[reference.name] = [program, stan_data(program, reference.model, reference.data), points]
        digests[reference.name] = hashlib.sha256(program.encode()).hexdigest()
    asked = subprocess.run(
        [STAN, "-c", textwrap.dedent(DENSITIES)], input=dumps(wanted), text=True, stdout=subprocess.PIPE
    )
    heights = dict(json.loads(line) for line in asked.stdout.splitlines() if line.startswith("["))
    kept = {
        name: {"program": digests[name], "points": wanted[name][2], "log_densities": heights[name]} for name in heights
    }
    KEPT.write_text(json.dumps(kept) + "\n")
    print(f"{len(kept)} of {len(wanted)} densities are Stan's")


def of_table(name: str, values: np.ndarray) -> dict[str, object]:
    """Return a table as Stan's program takes it."""
    X = np.column_stack([np.ones(len(values)), values[:, 1:]])
    y = values[:, 0].astype(int if name == "beta_bernoulli" else float)
    return {"N": len(y), "D": X.shape[1], "X": X.tolist(), "y": y.tolist()}


def of_clock(action: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def files(folder: Path) -> dict[str, list[str]]:
    """Write the programs and their data, and return by model what our command is from_tables."""
    arguments = {}
    own = {name: of_own_data(name) for name in ("gaussian_mixture", "hmm_gaussian")}
    from_tables = {name: (PROGRAMS[name], of_table(name, values)) for name, values in tables(folder).items()}
    for name, (program, data) in {**from_tables, **own}.items():
        (folder / f"{name}.stan").write_text(program)
        (folder / f"{name}.json").write_text(dumps(data))
        arguments[name] = [str(folder / f"{name}.csv")] if name in from_tables else []
    arguments["linear_regression"] += ["--target", "y"]
    return arguments


def main() -> None:
    """Compare whole commands, warm."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, arguments in files(folder).items():
            ours = run(BAYESZOO, "fit", model, *arguments, "--method", "nuts", "--seed", "1")
            paths = [str(folder / f"{model}.{ending}") for ending in ("stan", "json")]
            theirs = run(STAN, "-c", textwrap.dedent(SCRIPT), *paths)
            pairs = [(of_clock(ours), of_clock(theirs)) for _ in range(REPEATS + 1)][1:]
            mine, peer = (median(side) for side in zip(*pairs, strict=True))
            target = "<= 1.5" if arguments else "<= 0.5"
            print(f"{model:20s} {mine:7.2f} s {peer:7.2f} s  ratio {mine / peer:5.2f}  target {target}", flush=True)


if __name__ == "__main__":
    if not STAN:
        print("Stan is left out: name a Python that has PyStan, STAN=...")
    elif sys.argv[1:] == ["densities"]:
        densities()
    else:
        main()
