"""A compiled log density and the parameters at addresses in memory, where nutpie calls them without Python.

numba compiles the callbacks that nutpie asks for once for each list of types of the data, and PyTensor's folder of
compiled code keeps them. Which function they call, and of which data, they read from a table of addresses: so they hold
for all models, and no function is compiled twice.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import sys
from collections.abc import Callable
from itertools import count, islice
from typing import Any

import numba
import numpy as np
import pytensor
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import get_itemsize, make_array, populate_array
from pytensor.link.numba.cache import compile_numba_function_src

from bayeszoo.compile import cache
from bayeszoo.compile.function import Function

_WORD = ir.IntType(64)
_POINTER = types.CPointer(types.float64)
_TABLE = types.CPointer(types.intp)
_LOG_DENSITY = types.int64(types.uint64, _POINTER, _POINTER, _POINTER, _TABLE)
_EXPAND = types.int64(types.uint64, types.uint64, _POINTER, _POINTER, _TABLE)
_Raised = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_double))
RECOVERABLE, FATAL = 1, -1
"""What nutpie is told: above 0 the step diverges, below 0 the chain ends."""
_OF_LOG_DENSITY = """
def callback(size, x, gradient_out, value_out, table):
    value, gradient = call(x, size, table)
    value_out[0] = value
    is_finite = np.isfinite(value_out[0])
    for i in range(size):
        gradient_out[i] = gradient[i]
        is_finite &= np.isfinite(gradient_out[i])
    return 0 if is_finite else RECOVERABLE
"""
_OF_EXPAND = """
def callback(size, expanded, x, out, table):
    values, at = call(x, size, table), 0
    {copies}
    return 0
"""
_COPY = """
    for value in {each}:
        out[at] = 1.0 * value
        at += 1
"""


class Native:
    """A log density with its gradient, and the parameters, jitted functions of a point of shape (size,), at addresses.

    The parameters are ``expanded`` numbers, side by side. Where a jitted function raises, ``again`` is called, which is
    the log density in Python. If that raises too, the chain ends, and ``error`` is what was raised; else the step
    diverges.
    """

    def __init__(
        self,
        log_density: Function,
        parameters: Function,
        again: Callable[[np.ndarray], object],
        size: int,
        expanded: int,
    ) -> None:
        self._functions, self._again, self.size, self.expanded = (log_density, parameters), again, size, expanded
        self.error: Exception | None = None
        self._raised = _Raised(self._on_error)
        first, second = (_entry(function, size) for function in self._functions)
        rows = [ctypes.cast(self._raised, ctypes.c_void_p).value, *_addresses(first, log_density)]
        self.log_density = _of_log_density(first.signature)
        self.expand = _of_parameters(second.signature, len(rows))
        self.table = np.array([*rows, *_addresses(second, parameters)], dtype=np.intp)

    def _on_error(self, x: Any) -> int:
        try:
            self._again(np.array(x[: self.size]))
        except Exception as error:  # nutpie's threads cannot raise it
            self.error = error
            return FATAL
        return RECOVERABLE


def _entry(function: Function, size: int) -> Any:
    """Return numba's compiled entry for the types of a point and the data."""
    jitted: Any = function.function
    kinds = [numba.typeof(array) for array in (np.zeros(size), *function.data)]
    _, _, folded, _ = jitted.get_call_template(kinds, {})
    return jitted.overloads[folded]


def _addresses(entry: Any, function: Function) -> list[int]:
    """Return the address of a function, then address and shape of each of its data."""
    arrays = (number for array in function.data for number in (array.ctypes.data, *array.shape))
    return [entry.library.get_pointer_to_function(entry.fndesc.llvm_func_name), *arrays]


@functools.cache
def _of_log_density(signature: object) -> Any:
    return _callback(_LOG_DENSITY, _OF_LOG_DENSITY, signature, 1)


@functools.cache
def _of_parameters(signature: Any, at: int) -> Any:
    copies = (
        _COPY.format(each=f"values[{i}].flat" if isinstance(kind, types.Array) else f"(values[{i}],)")
        for i, kind in enumerate(signature.return_type)
    )
    return _callback(_EXPAND, _OF_EXPAND, signature, at, copies="".join(copies))


def _callback(kind: Any, source: str, signature: Any, at: int, **code: str) -> Any:
    """Compile a callback of a function that is in the table at ``at``, or take it from the disk.

    PyTensor's locator finds it by its key, so that it lies where PyTensor's own compiled code does.
    """
    source = source.format(**code)
    key = cache.key(inspect.getsource(sys.modules[__name__]), source, repr(signature), str(at))
    names = globals() | {"call": _caller(signature, at)}
    function = compile_numba_function_src(source, "callback", cache_key=key, global_env=names)
    return numba.cfunc(kind, cache=pytensor.config.numba__cache)(function)


def _array(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """Return an array in C order whose numbers are at an address."""
    array, itemsize = make_array(kind)(context, builder), _WORD(get_itemsize(context, kind))
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer())
    populate_array(array, data, shape, strides[: len(shape)], itemsize, meminfo=None)
    return array._getvalue()


def _caller(signature: Any, at: int) -> Any:
    """Return a jitted call of the function whose address a table has at ``at``.

    Where that raises, the caller returns at once what the table's first function makes of the point.
    """

    @intrinsic
    def call(context: Any, x: Any, size: Any, table: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            x, size, table = values
            rows = (builder.load(builder.gep(table, [_WORD(i)])) for i in count(at))
            (point, *kinds), entry = signature.args, next(rows)
            raised = builder.load(builder.gep(table, [_WORD(0)]))
            convention = context.call_conv
            function = convention.get_function_type(signature.return_type, signature.args).as_pointer()
            data = [_array(context, builder, kind, next(rows), list(islice(rows, kind.ndim))) for kind in kinds]
            first = _array(context, builder, point, builder.ptrtoint(x, _WORD), [size])
            status, result = convention.call_function(
                builder, builder.inttoptr(entry, function), signature.return_type, signature.args, [first, *data]
            )
            with builder.if_then(status.is_error, likely=False):
                on_error = ir.FunctionType(_WORD, [x.type]).as_pointer()
                convention.return_value(builder, builder.call(builder.inttoptr(raised, on_error), [x]))
            return result

        return signature.return_type(x, size, table), generate

    return call
