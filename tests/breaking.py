"""Fits in forked processes, each with one import of another library broken.

Usage: python breaking.py CASES, a list of module, name, how it is broken and model, in JSON.
"""

import builtins
import json
import os
import sys
import traceback
import warnings
from importlib import import_module

FITS = {"beta_bernoulli": 1, "poisson_regression": 20, "student_t": 20}
"""Models that are fitted, and the rows of their data."""


class Broken:
    """Stands for what another version has under the same name, and which cannot be called as before."""

    def __init__(self, *_, **__):
        raise TypeError("it takes other arguments")


class Other:
    """A module, of which one name is broken."""

    def __init__(self, module, name):
        self._module, self._name = module, name

    def __getattr__(self, name):
        return Broken if name == self._name else getattr(self._module, name)


def breaking(module, name, how):
    """Let imports of a name by bayeszoo fail, or give what is broken."""
    as_before = builtins.__import__

    def importing(path, globals=None, locals=None, fromlist=(), level=0):
        imported = as_before(path, globals, locals, fromlist, level)
        by = str((globals or {}).get("__name__"))
        if path == module and name in (fromlist or ("",)) and by.startswith("bayeszoo."):
            if how == "gone":
                raise ImportError(f"cannot import name {name!r} from {module!r}")
            return Other(imported, name)
        return imported

    builtins.__import__ = importing


def fitted(model):
    """Fit a model; return what the fit says, its sampler, the density at a point, and means with their errors."""
    import numpy as np

    import bayeszoo as bz
    from bayeszoo.foundation.process.progress import Reporter
    from bayeszoo.inference.problem import Problem

    said = []
    reporter = Reporter()
    reporter.say = said.append
    kind = bz.find(model)
    prior = kind() if model == "beta_bernoulli" else kind.weak(bz.example(kind))
    data = bz.read(prior, prior.simulate(np.random.default_rng(1), FITS[model])[1])
    options = {"draws": 200, "tune": 200, "chains": 2, "extend": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bz.Caution)
        tree = bz.fit(prior, data, "nuts", seed=1, reporter=reporter, **options)
    density = Problem(prior, data, np.random.default_rng(0)).density
    x = density.start + 0.1
    value, gradient = density.joint(x)
    parameters = np.concatenate([np.ravel(values) for values in density.constrain(x).values()])
    draws = {name: values.to_numpy() for name, values in tree["posterior"].data_vars.items()}
    return {
        "said": said,
        "sampler": tree.attrs["sampler"].split()[0],
        "numbers": [value, *gradient, *parameters],
        "means": {name: v.mean((0, 1)).ravel().tolist() for name, v in draws.items()},
        "sds": {name: v.std((0, 1)).ravel().tolist() for name, v in draws.items()},
        "groups": sorted(tree.children),
        "log_prior": tree["log_prior"]["log_prior"].to_numpy().ravel().tolist(),
    }


def case(module, name, how, model):
    """Return what came of a fit."""
    if module:
        breaking(module, name, how)
    try:
        return fitted(model)
    except BaseException:
        return {"error": traceback.format_exc()}


def main():
    """Fit each case in a process of its own, which begins with the libraries loaded and bayeszoo not."""
    for module in ("pymc", "nutpie", "arviz", "scipy.stats", "scipy.optimize", "pandas", "pyarrow"):
        import_module(module)
    for words in json.loads(sys.argv[1]):
        read, write = os.pipe()
        if not os.fork():
            os.write(write, json.dumps(case(*words)).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as lines:
            sys.stdout.write(lines.read() + "\n")
        os.wait()


if __name__ == "__main__":
    main()
