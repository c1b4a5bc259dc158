"""Memory addresses of a compiled log density and of the parameters, for calls from nutpie without Python.

numba compiles the callbacks for nutpie once for each list of types of the data, and PyTensor's folder of compiled code
keeps them. They read the function to call and its data from a table of addresses, so that they serve all models and no
function is compiled twice.
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
"""Return codes for nutpie: above 0 the step diverges, below 0 the chain ends."""
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
    """Addresses of a log density with its gradient, and of the parameters: jitted functions of a point (size,).

    The parameters are ``expanded`` numbers, concatenated. If a jitted function raises, ``again`` is called, the log
    density in Python. If that raises too, the chain ends, and ``error`` is the exception; else the step
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
        except Exception as error:  # any: nutpie's threads cannot raise it, so the sampler stops and `nuts` does
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
    """Return the address of a function, then address and shape of each data array."""
    arrays = (number for array in function.data for number in (array.ctypes.data, *array.shape))
    return [entry.library.get_pointer_to_function(entry.fndesc.llvm_func_name), *arrays]


@functools.cache
def _of_log_density(signature: object) -> Any:
    return _callback(_LOG_DENSITY, _OF_LOG_DENSITY, signature, 1)


@functools.cache
def _of_parameters(signature: Any, row: int) -> Any:
    copies = (
        _COPY.format(each=f"values[{i}].flat" if isinstance(kind, types.Array) else f"(values[{i}],)")
        for i, kind in enumerate(signature.return_type)
    )
    return _callback(_EXPAND, _OF_EXPAND, signature, row, copies="".join(copies))


def _callback(kind: Any, source: str, signature: Any, row: int, **code: str) -> Any:
    """Compile a callback of the function at row ``row`` of the table, or load it from disk.

    PyTensor's locator finds it by its key, in the folder of PyTensor's own compiled code.
    """
    source = source.format(**code)
    key = cache.key(inspect.getsource(sys.modules[__name__]), source, repr(signature), str(row))
    names = globals() | {"call": _caller(signature, row)}
    function = compile_numba_function_src(source, "callback", cache_key=key, global_env=names)
    return numba.cfunc(kind, cache=pytensor.config.numba__cache)(function)


def _array(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """Return an array in C order with its numbers at an address."""
    array, itemsize = make_array(kind)(context, builder), _WORD(get_itemsize(context, kind))
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer())
    populate_array(array, data, shape, strides[: len(shape)], itemsize, meminfo=None)
    return array._getvalue()


def _caller(signature: Any, first_row: int) -> Any:
    """Return a jitted call of the function whose address is at row ``first_row`` of a table.

    If it raises, the caller returns at once the result of the table's first function at the point.
    """

    @intrinsic
    def call(context: Any, x: Any, size: Any, table: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            x, size, table = values
            rows = (builder.load(builder.gep(table, [_WORD(i)])) for i in count(first_row))
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
