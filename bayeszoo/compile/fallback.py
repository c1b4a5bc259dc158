"""Functions of one flat point, by bayeszoo's loops, or by PyTensor's compiler if these fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor

from bayeszoo.compile.function import Function, without_c
from bayeszoo.likelihoods.ops.operation import UNREGISTERED


def function_of(flat: object, outputs: Sequence[object], start: np.ndarray, mode: str) -> Function:
    """Compile outputs as a function of a flat vector, and call it at ``start``, as numba compiles at the first call.

    The loops use internals of PyTensor and numba that may differ between versions. If they fail for any reason,
    PyTensor's own compiler gives the same numbers.
    """
    try:
        from bayeszoo.compile.compiled import compiled

        function = compiled(flat, outputs, mode)
        function(start)
    except Exception as error:  # internals of another version may fail in any way: the fit says how
        if is_out_of_range(error):
            raise
        return _by_pytensor(flat, outputs, start, f"{type(error).__name__}: {error}")
    return function


def _by_pytensor(flat: object, outputs: Sequence[object], start: np.ndarray, instead: str) -> Function:
    """Compile by PyTensor's numba mode, or if that fails too, by its Python linker, which compiles nothing."""
    options: Any = {"on_unused_input": "ignore", "trust_input": True}
    if not UNREGISTERED:  # else numba would call operations as Python code
        try:
            function = Function(pytensor.function([flat], outputs, mode="NUMBA", **options), (), instead, "NUMBA")
            function(start)
        except Exception as error:  # as above; the Python linker serves
            if is_out_of_range(error):
                raise
        else:
            return function
    with without_c():
        by_python = pytensor.function([flat], outputs, mode="FAST_COMPILE", **options)
    function = Function(by_python, (), instead, "FAST_COMPILE")
    function(start)
    return function


def is_out_of_range(error: Exception) -> bool:
    """Say whether PyMC raised an error because a parameter left its range; its class has no public name."""
    return type(error).__name__ == "ParameterValueError"
