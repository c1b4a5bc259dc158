"""Experts and networks against PyMC, in one run: ``python -m benchmarks.networks``.

The log density with its gradient, ours with parameters integrated out and PyMC's of all parameters, both compiled by
numba; each figure is the least of several times, and the ratio ours over theirs. And effective draws a second of the
network's function, the least over rows, by our NUTS and by PyMC's of every parameter: weights have many modes.
"""

import time
import warnings

import numpy as np
import pymc as pm

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.foundation import diagnostics
from bayeszoo.model import Model
from bayeszoo.results.stored import Fit
from benchmarks.classes import line

ROWS = 2000


def rows_about_a_bend() -> dict[str, np.ndarray]:
    """Draw rows about a function with a bend, of three features."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, 3))
    return {"y": np.abs(X[:, 0]) + np.sin(X[:, 1]) + 0.3 * rng.normal(size=ROWS), **dict(zip("abc", X.T, strict=True))}


def gradients(title: str, model: Model, data: bz.Data, step: str) -> None:
    """Compare one evaluation of the density that is sampled with one of the textbook's by PyMC alone."""
    density, declared = Density(getattr(model, step)(data)), model.declare(data)
    theirs = declared.logp_dlogp_function(ravel_inputs=True, mode="NUMBA")
    theirs.set_extra_values({})
    x = 0.1 * np.random.default_rng(0).normal(size=density.size)
    point = np.zeros(sum(np.size(v) for v in declared.initial_point().values()))
    line(f"{title}, {ROWS} rows, with gradient", lambda: density.joint(x), lambda: theirs(point + 0.1))


def effective_draws(model: Model, data: bz.Data) -> None:
    """Print effective draws a second of the function at twenty rows, from start to draws, with the largest R-hat."""
    some = model.inputs.reordered(data, np.linspace(0, data.rows - 1, 20).astype(int))
    start = time.perf_counter()
    tree = bz.fit(model, data, "nuts", seed=1, groups=(), extend=False)
    of_ours = model.function(Fit(tree).draws(), data, some).mean()
    seconds = {"ours": time.perf_counter() - start}
    start = time.perf_counter()
    with model.declare(data), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = pm.sample(random_seed=1, progressbar=False, nuts_sampler="nutpie")["posterior"]
    units = np.tanh(model.places(some) @ drawn["weights"].to_numpy() + drawn["bias"].to_numpy()[..., None, :])
    of_theirs = drawn["intercept"].to_numpy()[..., None] + (units @ drawn["output"].to_numpy()[..., None])[..., 0]
    seconds["PyMC"] = time.perf_counter() - start
    for name, function in (("ours", of_ours), ("PyMC", of_theirs)):
        ess, r_hat = np.min(diagnostics.ess(function)), np.max(diagnostics.r_hat(function))
        print(
            f"function of {model.name}, {data.rows} rows, {name}: {ess / seconds[name]:8.1f} effective draws a second"
        )
        print(f"  {ess:.0f} in {seconds[name]:.1f} s, R-hat at most {r_hat:.3f}")


def main() -> None:
    """Compare experts and networks."""
    cases = ("mixture_of_experts", "compiled", {"K": 4}), ("neural_network", "marginalized", {"H": 10})
    for name, step, fields in cases:
        kind = bz.find(name)
        data = bz.read(kind, rows_about_a_bend(), target="y")
        gradients(name, kind.weak_with(data, fields), data, step)
    kind = bz.find("neural_network")
    effective_draws(kind.weak(data := bz.example(kind)), data)


if __name__ == "__main__":
    main()
