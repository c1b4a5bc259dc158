"""Five samplers on twenty targets whose answer is known; ``python -m benchmarks.samplers [SAMPLER ...]``.

Writes the table of docs/guide/sampler.md. The libraries are those of the extra ``samplers``; without names all five are
run, about an hour, most of it the calls of JAX back into Python. Each named one replaces its own column.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import bayeszoo as bz
from bayeszoo.tools.references.benchmark import target_of
from bayeszoo.tools.references.samplers import SAMPLERS

TARGETS = (
    "placenta_previa-beta_bernoulli",
    "horse_kicks-gamma_poisson",
    "michelson-gaussian_mean",
    "michelson-gaussian_precision",
    "newcomb-normal_gamma",
    "cavendish-normal_gamma",
    "poll1988-dirichlet_multinomial",
    "iris_setosa-normal_inverse_wishart",
    "eight_schools-normal_means",
    "rat_tumours-beta_binomial",
    "pumps-gamma_poisson_groups",
    "bioassay-logistic_regression",
    "challenger-logistic_regression",
    "bioassay-probit_regression",
    "horse_kicks-poisson_regression",
    "diabetes-ridge",
    "diabetes-linear_regression",
    "onegin-markov_chain",
    "galaxies_8-gaussian_mixture",
    "earthquakes_8-hmm_poisson",
)
"""Names of references; the last two have labels that can be exchanged."""
BUDGET = 100_000
RESULTS = Path(__file__).parent / "samplers.json"
PAGE = Path(__file__).parents[1] / "docs" / "guide" / "sampler.md"
MARKS = ("<!-- table of samplers -->\n", "<!-- end of the table -->\n")


def main(names: list[str]) -> None:
    """Run samplers, keep what they did, and write the table."""
    targets = [target_of(name) for name in TARGETS]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names:
        result = bz.benchmark(name, targets, budget=BUDGET, seed=1)
        print(name, result, sep="\n", flush=True)
        results[name] = {target: _kept(row) for target, row in result.table.iterrows()}
        RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    sizes = {target.name: target.draws.shape[1] for target in targets}
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    PAGE.write_text(f"{before}{MARKS[0]}\n{table(results, sizes)}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


def _kept(row: pd.Series) -> dict[str, object]:
    largest = max(row[name] for name in row.index if name.endswith("_z"))
    numbers = {"z": round(float(largest), 2), "limit": round(float(row["limit"]), 2)}
    return {"verdict": row["verdict"], **numbers, "ess": round(row["ess"]), "calls": int(row["calls"])}


def table(results: dict[str, dict[str, dict[str, object]]], sizes: dict[str, int]) -> str:
    """Return the table of the page: effective draws per thousand calls, or the verdict where it is not "right"."""
    head = f"| target | coordinates | {' | '.join(results)} |\n|---|--:|{'--:|' * len(results)}\n"
    rows = [
        f"| `{target}` | {size} | {' | '.join(_cell(results[name][target]) for name in results)} |"
        for target, size in sizes.items()
    ]
    return head + "\n".join(rows) + "\n"


def _cell(row: dict[str, object]) -> str:
    per_thousand = 1000 * np.divide(row["ess"], row["calls"])
    return f"{per_thousand:.3g}" if row["verdict"] == "right" else str(row["verdict"])


if __name__ == "__main__":
    main(sys.argv[1:] or sorted(SAMPLERS))
