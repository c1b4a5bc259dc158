"""Experts and networks against PyMC, in one run: ``python -m benchmarks.networks``.

The log density with its gradient, ours with what is integrated out and PyMC's of every parameter, both compiled by
numba; each figure is the least of several times, and the ratio ours over theirs.
"""

import numpy as np

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.model import Model
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


def main() -> None:
    """Compare experts and networks."""
    cases = ("mixture_of_experts", "compiled", {"K": 4}), ("neural_network", "marginalized", {"H": 10})
    for name, step, fields in cases:
        kind = bz.find(name)
        data = bz.read(kind, rows_about_a_bend(), target="y")
        gradients(name, kind.weak_given(data, fields), data, step)


if __name__ == "__main__":
    main()
