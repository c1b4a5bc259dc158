"""The log density that nutpie calls without Python is Python's, at each point, of all data, in any process."""

import ctypes
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import nutpie
import pymc as pm
import pytensor.tensor as pt
import pytest
from numba.core import event
from pymc.logprob.utils import CheckParameterValue
from pytensor.raise_op import CheckAndRaise

import bayeszoo as bz
from bayeszoo.compile import native
from bayeszoo.compile.density import Density
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.process.progress import Clock, Reporter
from bayeszoo.inference.methods import nuts
from bayeszoo.inference.problem import Problem
from bayeszoo.inference.starts import Start
from bayeszoo.model.capabilities import PointMasses
from tests.quick import quick_where
from tests.refusals import raises

QUICK = ("beta_bernoulli", "normal_gamma")
NAMES = [name for name in bz.names() if not issubclass(bz.find(name), PointMasses)]
NUMBERS = ctypes.POINTER(ctypes.c_double)


def density_of(name, seed=1):
    """Return the log density of a model at data of its own."""
    model = bz.find(name)()
    data = bz.read(model, model.simulate(np.random.default_rng(seed), 20)[1])
    return Density(Problem(model, data, np.random.default_rng(0)).declared)


def called(code, x):
    """Call it as nutpie does; return its code, value and gradient."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, NUMBERS, NUMBERS, NUMBERS, ctypes.c_void_p)
    value, gradient = np.full(1, np.nan), np.full(len(x), np.nan)
    pointers = (array.ctypes.data_as(NUMBERS) for array in (x, gradient, value))
    return kind(code.log_density.address)(len(x), *pointers, code.table.ctypes.data), value[0], gradient


def expanded(code, x):
    """Let it give the parameters as nutpie does, and return them side by side."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, NUMBERS, NUMBERS, ctypes.c_void_p)
    out = np.full(code.expanded, np.nan)
    pointers = (array.ctypes.data_as(NUMBERS) for array in (x, out))
    assert kind(code.expand.address)(len(x), len(out), *pointers, code.table.ctypes.data) == 0
    return out


def points(density, count, spread=0.3):
    return density.start + np.random.default_rng(2).normal(0, spread, (count, density.size))


@pytest.mark.parametrize("name", quick_where(NAMES, QUICK.__contains__))
def test_value_and_gradient_are_those_of_python(name):
    density = density_of(name)
    for x in points(density, 5):
        value, gradient = density.joint(x)
        code, ours, slopes = called(density.native, x)
        assert code == 0
        assert ours == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-12)
        parameters = np.concatenate([np.ravel(values) for values in density.constrain(x).values()])
        np.testing.assert_allclose(expanded(density.native, x), parameters, rtol=1e-12)


def test_parameters_of_any_shape_and_kind_are_given_side_by_side():
    with pm.Model() as model:
        x = pm.Normal("x", shape=(2, 3))
        pm.Deterministic("turned", x.T)
        pm.Deterministic("is_positive", x > 0)
        pm.Deterministic("largest", x.max())
        pm.Deterministic("shares", pt.special.softmax(x, axis=1)[:, :2])
    density, values = Density(model), np.arange(6.0) - 2.5
    shares = np.exp(values.reshape(2, 3)) / np.exp(values.reshape(2, 3)).sum(axis=1, keepdims=True)
    parts = values, values.reshape(2, 3).T.ravel(), values > 0, [2.5], shares[:, :2].ravel()
    np.testing.assert_allclose(expanded(density.native, values), np.concatenate(parts), rtol=1e-12)


def test_other_data_of_the_same_shape_compile_nothing_and_have_their_own_density():
    first = density_of("linear_regression").native
    with event.install_recorder("numba:run_pass") as passes:
        density = density_of("linear_regression", seed=2)
        x = density.start + 0.1
        second = called(density.native, x)
    assert not passes.buffer
    assert second[1] == pytest.approx(density.joint(x)[0], rel=1e-12)
    assert second[1] != pytest.approx(called(first, x)[1], rel=1e-6)


def test_threads_share_nothing_that_one_of_them_writes():
    density = density_of("linear_regression")
    many = points(density, 400)
    expected = [density.joint(x) for x in many]
    with ThreadPoolExecutor(8) as pool:
        for (_, value, gradient), (own, slopes) in zip(
            pool.map(called, [density.native] * len(many), many), expected, strict=True
        ):
            assert value == pytest.approx(own, rel=1e-12)
            np.testing.assert_allclose(gradient, slopes, rtol=1e-12)


# Errors


class Broken(CheckAndRaise):
    """Raises what no sampler may take for the end of a parameter's range."""

    def __init__(self):
        super().__init__(ValueError, "this is a fault")


def normal_below_one(check):
    """Declare x ~ N(0, 1), which raises where x is not below 1."""
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("below", check(pt.zeros(()) * x, pt.lt(x, 1.0)))
    return Density(model)


def sampled(density):
    compiled = nuts._for_nutpie(density.native, lambda seed: Start(density.start).near(seed, density.joint))
    options = {"chains": 2, "draws": 500, "tune": 200, "seed": 1, "progress_bar": False, "blocking": False}
    trace, _ = nuts._wait(nutpie.sample(compiled, **options, return_raw_trace=True))
    return nuts._arrays(trace, density.shapes)


def test_a_parameter_out_of_its_range_is_a_divergence_and_no_draw():
    density = normal_below_one(CheckParameterValue("x < 1"))
    assert called(density.native, np.array([0.5]))[0] == 0
    assert called(density.native, np.array([1.5]))[0] == native.RECOVERABLE
    assert called(density.native, np.array([np.nan]))[0] == native.RECOVERABLE
    draws, stats = sampled(density)
    assert stats["diverging"].sum() > 10
    assert draws["x"].max() < 1  # 160 of 1,000 draws of N(0, 1) are not
    assert density.native.error is None


def test_any_other_error_ends_the_run_with_its_reason():
    density = normal_below_one(Broken())
    assert called(density.native, np.array([1.5]))[0] == native.FATAL
    density.native.error = None
    problem = SimpleNamespace(density=density, clock=Clock(Reporter()), reporter=Reporter(), seed=lambda: 1)
    with raises(NumericalError, "sampler_stopped"):
        nuts._from(Start(density.start, spread=0.5), problem, nuts.Settings(500, 200, 1, 0.8), 0)


# Processes

FITS = """
import json, sys
from numba.core import event

with event.install_recorder("numba:run_pass") as passes:
    import bayeszoo as bz

    for name in sys.argv[1:]:
        model = bz.find(name)
        tree = bz.fit(model(), bz.example(model), "nuts", seed=1, draws=50, tune=100, extend=False)
print(json.dumps([len(passes.buffer), tree["posterior"]["theta"].to_numpy().ravel().tolist()]))
"""


@pytest.mark.slow
def test_another_process_compiles_nothing_and_has_the_same_draws(tmp_path):
    def fits(*names):
        environment = os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}
        command = [sys.executable, "-c", FITS, *names]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
        return json.loads(said.stdout)

    (passes, cold), (of_warm, warm) = fits("beta_bernoulli"), fits("beta_bernoulli")
    assert passes > 0
    assert of_warm == 0
    assert cold == warm == fits("gamma_poisson", "beta_bernoulli")[1]
