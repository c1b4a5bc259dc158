"""Speed of hierarchies of groups as ratios, both sides in one run, interleaved, medians. Never a test: machines differ.

Rat tumours, 71 groups. The peer is nutpie on the textbook's declaration of all 73 parameters; ours is nutpie on the two
outer parameters, with draws of the others given these. Seconds are of the processor, so that other programs count
little; compile times are reported separately on both sides.
"""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, NamedTuple

import arviz as az
import numpy as np
import nutpie
from threadpoolctl import threadpool_limits

import bayeszoo as bz

REPEATS = 5
CHAINS, TUNE, DRAWS = 4, 1000, 1000
Rats = bz.find("beta_binomial")
Sampled = dict[str, np.ndarray]


class Run(NamedTuple):
    """The least number of effective draws of any parameter, and of the outer ones, and the seconds that it took."""

    least: float
    outer: float
    seconds: float


def timed(action: Callable[[], Sampled]) -> Run:
    """Draw once; count what the draws are worth."""
    start = time.process_time()
    draws = action()
    seconds = time.process_time() - start
    sizes = {name: float(np.min(az.ess({name: values})[name])) for name, values in draws.items()}
    return Run(min(sizes.values()), min(sizes[name] for name in Rats.outer), seconds)


def sampler(compiled: Any) -> Callable[[int], Mapping[str, Any]]:
    """Return a call that samples a density that nutpie has compiled, and returns the posterior's variables."""
    settings = {"chains": CHAINS, "tune": TUNE, "draws": DRAWS, "cores": 1, "progress_bar": False}
    return lambda seed: nutpie.sample(compiled, seed=seed, **settings)["posterior"].data_vars


def arrays(variables: Mapping[str, Any]) -> Sampled:
    """Return draws (chains, draws, ...) by name."""
    return {str(name): values.to_numpy() for name, values in variables.items()}


def against_all_parameters() -> None:
    """Compare effective draws a second of NUTS on the outer parameters with those of NUTS on all."""
    model, data, rng = Rats(), bz.example(Rats), np.random.default_rng(0)
    start = time.process_time()
    marginal = sampler(nutpie.compile_pymc_model(model.marginalized(data)))
    between = time.process_time()
    declared = sampler(nutpie.compile_pymc_model(model.declare(data)))
    print(f"compiled: outer {between - start:.1f} s, all {time.process_time() - between:.1f} s")

    def ours(seed: int) -> Sampled:
        outer = arrays(marginal(seed))
        return {**outer, **model.posterior_given(outer, data).rvs((), rng)}

    pairs = [(timed(lambda: ours(seed)), timed(lambda: arrays(declared(seed)))) for seed in range(REPEATS)]  # noqa: B023
    for title, which in (("least of all parameters", 0), ("least of the outer ones", 1)):
        rates = [[run[which] / run.seconds for run in side] for side in zip(*pairs, strict=True)]
        mine, theirs = map(median, rates)
        print(
            f"effective draws a second, {title:24s} {mine:8.0f} {theirs:8.0f}  ratio {mine / theirs:6.1f}  target >= 5"
        )


def exact_answer() -> None:
    """Print the seconds of the exact answer, from the data to the posterior, evidence and draws."""
    data, seconds = bz.example(Rats), []
    for seed in range(REPEATS):
        start = time.process_time()
        bz.fit(Rats(), data, "exact", seed=seed)
        seconds.append(time.process_time() - start)
    print(f"exact answer of {len(data['trials'])} groups: {median(seconds):.2f} s, the first {seconds[0]:.2f} s")


if __name__ == "__main__":
    with threadpool_limits(1):
        against_all_parameters()
        exact_answer()
