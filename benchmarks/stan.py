"""NUTS beside prebuilt Stan, process start to printed summary; ``STAN=... python -m benchmarks.stan``.

``STAN`` names a Python that has PyStan 3, whose compiled programs run up to Python 3.12 and are kept from run to run.
Each side fits four chains of 1,000 draws after as many of warmup. Stan's side prints means, standard deviations and
quantiles alone, where ours checks its draws, too. Seconds of the clock, interleaved, medians: PyStan's chains run in
processes that its own does not wait for.
"""

import os
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import bayeszoo as bz
from bayeszoo.results.stored import dumps
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
    "gaussian_mixture": """
        data { int N; int D; int K; array[N] vector[D] y; vector[D] m0; real kappa0; real nu0; matrix[D, D] Psi0; }
        parameters { simplex[K] weights; array[K] vector[D] means; array[K] cov_matrix[D] covariances; }
        model {
          array[K] matrix[D, D] L;
          for (k in 1:K) {
            covariances[k] ~ inv_wishart(nu0, Psi0);
            L[k] = cholesky_decompose(covariances[k]);
            means[k] ~ multi_normal_cholesky(m0, L[k] / sqrt(kappa0));
          }
          for (n in 1:N) {
            vector[K] terms = log(weights);
            for (k in 1:K) terms[k] += multi_normal_cholesky_lpdf(y[n] | means[k], L[k]);
            target += log_sum_exp(terms);
          }
        }""",
    "hmm_gaussian": """
        data { int N; int K; vector[N] y; real m0; real kappa0; real a0; real b0; }
        parameters {
          simplex[K] initial; array[K] simplex[K] transition; vector[K] means; vector<lower=0>[K] variances;
        }
        model {
          vector[K] alpha = log(initial);
          variances ~ inv_gamma(a0, b0);
          means ~ normal(m0, sqrt(variances / kappa0));
          for (n in 1:N) {
            if (n > 1) {
              vector[K] before = alpha;
              for (k in 1:K) alpha[k] = log_sum_exp(before + log(to_vector(transition[:, k])));
            }
            for (k in 1:K) alpha[k] += normal_lpdf(y[n] | means[k], sqrt(variances[k]));
          }
          target += log_sum_exp(alpha);
        }""",
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


def of_own_data(name: str) -> dict[str, object]:
    """Return the model's own data and weak prior, as Stan's program takes them."""
    kind = bz.find(name)
    data = bz.example(kind)
    model = kind.weak(data)
    y = data["Y" if name == "gaussian_mixture" else "y"]
    fields = ("m0", "kappa0", "nu0", "Psi0") if name == "gaussian_mixture" else ("m0", "kappa0", "a0", "b0")
    prior = {field: np.asarray(getattr(model, field)).tolist() for field in fields}
    return {"N": len(y), "D": y.shape[1] if y.ndim > 1 else 1, "K": model.K, "y": y.tolist(), **prior}


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
    from_tables = {name: of_table(name, values) for name, values in tables(folder).items()}
    for name, data in {**from_tables, **own}.items():
        (folder / f"{name}.stan").write_text(PROGRAMS[name])
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
    main() if STAN else print("Stan is left out: name a Python that has PyStan, STAN=...")
