"""Time to compile the first fit of a model, with an empty cache; ``python benchmarks/cold.py [MODEL ...]``.

Seconds of processor time for the log density with its gradient, the parameters, and the functions that nutpie calls, of
each model on its example, in a new process with an empty folder of compiled code.
"""

import os
import subprocess
import sys
import tempfile
from typing import Any

import bayeszoo as bz
from bayeszoo.model.capabilities import PointMasses

COMPILE = """
import sys, time, numpy as np
import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.inference.problem import Problem

model = bz.find(sys.argv[1])
data = bz.example(model)
density = Density(Problem(model.weak(data), data, np.random.default_rng(0)).declared)
start = time.process_time()
density.joint(density.start), density.constrain(density.start), density.native
print(time.process_time() - start)
"""


def seconds(model: type[Any]) -> float:
    """Compile a model in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={folder}"}
        command = [sys.executable, "-c", COMPILE, model.name]
        return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print a row a model."""
    models = [bz.find(name) for name in sys.argv[1:] or bz.names()]
    for model in models:
        if not issubclass(model, PointMasses):
            print(f"{model.name:32s}{seconds(model):7.1f} s", flush=True)


if __name__ == "__main__":
    main()
