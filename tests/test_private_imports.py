"""The private names of PyTensor, PyMC, numba and nutpie that the library uses, and fits without each of them."""

import ast
import json
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.quick import quick_where

ROOT = Path(__file__).parents[1]
FILES = [*(ROOT / "bayeszoo").rglob("*.py"), *(ROOT / "models").glob("*.py")]
LIBRARIES = ("llvmlite", "numba", "nutpie", "pymc", "pytensor")
PUBLIC = {
    *("llvmlite", "llvmlite.ir", "numba", "numba.extending", "nutpie", "pymc", "pymc.distributions.transforms"),
    *("pytensor", "pytensor.compile", "pytensor.gradient", "pytensor.graph", "pytensor.scalar", "pytensor.tensor"),
}
"""Modules whose names their documentation gives to users."""
LOOPS = {
    "pytensor.compile.builders": {"OpFromGraph"},
    "pytensor.graph.traversal": {"toposort"},
    "pytensor.link.numba.cache": {"compile_numba_function_src"},
    "pytensor.link.numba.dispatch.basic": {
        *("cache_key_for_constant", "numba_funcify_and_cache_key", "numba_njit"),
        "register_funcify_default_op_cache_key",
    },
    "pytensor.raise_op": {"CheckAndRaise"},
    "pytensor.tensor.basic": {"Alloc", "Join", "MakeVector", "ScalarFromTensor", "Split", "TensorFromScalar"},
    "pytensor.tensor.elemwise": {"CAReduce", "DimShuffle", "Elemwise"},
    "pytensor.tensor.math": {"Dot"},
    "pytensor.tensor.shape": {"Reshape", "Shape_i", "SpecifyShape"},
    "pytensor.tensor.subtensor": {
        *("AdvancedIncSubtensor", "AdvancedSubtensor", "IncSubtensor", "Subtensor", "indices_from_subtensor"),
    },
}
"""Without which PyTensor's own compiler serves; nutpie needs the loops."""
NATIVE = {
    "numba.np.arrayobj": {"get_itemsize", "make_array", "populate_array"},
    "nutpie.compile_pymc": {"CompiledPyMCModel"},
}
"""Without which PyMC's own sampler serves."""
SCRIPTS = {
    "pymc.initial_point": {"make_initial_point_fn"},
    "pymc.logprob.utils": {"CheckParameterValue"},
    "pytensor.compile.builders": {"OpFromGraph"},
    "pytensor.compile.ops": {"ViewOp"},
    "pytensor.raise_op": {"Assert"},
    "pytensor.tensor.blockwise": {"Blockwise"},
    "pytensor.tensor.elemwise": {"CAReduce", "DimShuffle", "Elemwise"},
    "pytensor.tensor.math": {"Dot"},
    "pytensor.tensor.shape": {"Reshape", "Shape", "SpecifyShape"},
    "pytensor.tensor.special": {"LogSoftmax", "LogSumExp", "Softmax"},
}
"""Without which no script is written of a model; nothing else needs them."""
OTHERS = {
    "numba.cpython.unsafe.tuple": {"tuple_setitem"},  # short vectors of hidden Markov models are arrays without it
    "nutpie.compiled_pyfunc": {"from_pyfunc"},  # no fit: `bz.benchmark("nutpie")`
    "pymc.model.transform.conditioning": {"remove_value_transforms"},  # the group `log_prior` by PyMC's own function
    "pymc.pytensorf": {"find_rng_nodes", "reseed_rngs"},  # no fit: the picture of a model
}


def private_names():
    """Return the names that the library imports from modules which are not public, by module."""
    used = defaultdict(set)
    for node in (node for path in FILES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.ImportFrom):
            imported = [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            imported = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("load", "import_module") and node.args:
            imported = [(str(getattr(node.args[0], "value", "")), "")]
        else:
            continue
        for module, name in imported:
            if module.split(".")[0] in LIBRARIES and module not in PUBLIC:
                used[module].add(name)
    return dict(used)


@pytest.mark.quick
def test_each_private_name_of_another_library_is_known():
    known = defaultdict(set)
    for module, names in (item for kind in (LOOPS, NATIVE, SCRIPTS, OTHERS) for item in kind.items()):
        known[module] |= names
    assert private_names() == known


NAMES = [(module, name) for kind in (LOOPS, NATIVE) for module, names in kind.items() for name in sorted(names)]
REGISTER, NO_NJIT = "register_funcify_default_op_cache_key", "numba_njit"
CASES = [
    *((module, name, "gone", "beta_bernoulli") for module, name in NAMES if name != REGISTER),
    *((module, name, "other", "beta_bernoulli") for module, name in NAMES if name != REGISTER),
    *(("pytensor.link.numba.dispatch.basic", name, "gone", "poisson_regression") for name in (REGISTER, NO_NJIT)),
    ("pytensor.link.numba.dispatch.basic", NO_NJIT, "other", "poisson_regression"),
    ("nutpie", "", "gone", "beta_bernoulli"),
    ("pymc.model.transform.conditioning", "remove_value_transforms", "gone", "student_t"),
]
QUICK = {"toposort", "make_array"}
"""One of the loops and one of the native density; the others are of the same kind, each with fits of its own."""


def is_quick(case):
    return case[1] in QUICK and case[2] == "gone"


@cache
def fits(quick):
    """Return what came of the quick or the slow cases, and of fits of the same models with all imports."""
    cases = [case for case in CASES if is_quick(case) == quick]
    cases += [("", "", "", model) for model in sorted({case[3] for case in cases})]
    command = [sys.executable, str(ROOT / "tests" / "breaking.py"), json.dumps(cases)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(cases, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("case", quick_where(CASES, is_quick), ids=lambda case: ".".join(case[1:]))
def test_a_fit_without_a_private_import_has_the_same_answer_and_says_so_once(case):
    fit, expected = (fits(is_quick(case))[of] for of in (case, ("", "", "", case[3])))
    assert "error" not in fit, fit["error"]
    np.testing.assert_allclose(fit["numbers"], expected["numbers"], rtol=1e-9, atol=1e-12)
    assert fit["groups"] == expected["groups"]
    for name, means in expected["means"].items():  # of 400 draws each
        assert np.abs(np.subtract(fit["means"][name], means)).max() < 0.5 * max(expected["sds"][name]), name
    notes = [line for line in fit["said"] if ": using Py" in line]
    assert len(notes) == (fit["sampler"] == "pymc")
    assert fit["sampler"] == "pymc" or case[2] == "other" or case[0] in OTHERS
    if fit["sampler"] == "nutpie":  # the same draws
        np.testing.assert_allclose(fit["log_prior"], expected["log_prior"], rtol=1e-9)
    assert expected["sampler"] == "nutpie"
    assert not [line for line in expected["said"] if ": using Py" in line]
