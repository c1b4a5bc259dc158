"""A compiled function of a flat vector and its gradient at an address in memory, where nutpie calls it without Python.

numba compiles the callback that nutpie asks for once for each list of types of the data, and PyTensor's folder of
compiled code keeps it. Which function it calls, and of which data, it reads from a table of addresses: so it holds for
all models, and no function is compiled twice.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any

import numba
import numpy as np
import pytensor
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from pytensor.link.numba.cache import compile_numba_function_src

from bayeszoo.inference.engine.compiled import Function

_POINTER = types.CPointer(types.float64)
_TABLE = types.CPointer(types.intp)
_LOG_DENSITY = types.int64(types.uint64, _POINTER, _POINTER, _POINTER, _TABLE)
_EXPAND = types.int64(types.uint64, types.uint64, _POINTER, _POINTER, _TABLE)
_Raised = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_double))
RECOVERABLE, FATAL = 1, -1
"""What nutpie is told: above 0 the step diverges, below 0 the chain ends."""
_SOURCE = """
def log_density(size, x, gradient_out, value_out, table):
    value, gradient = call(x, table, (numba.carray(x, (size,)), {arrays}))
    value_out[0] = {value}
    is_finite = np.isfinite(value_out[0])
    for i in range(size):
        gradient_out[i] = gradient[i]
        is_finite &= np.isfinite(gradient_out[i])
    return 0 if is_finite else RECOVERABLE
"""
_SAME = """
def same(size, expanded, x, out, table):
    for i in range(size):
        out[i] = x[i]
    return 0
"""


class Native:
    """A jitted log density with its gradient, of a point of shape (size,), at an address.

    Where the jitted function raises, ``again`` is called, which is the same in Python. If that raises too, the chain
    ends, and ``error`` is what was raised; else the step diverges.
    """

    def __init__(self, function: Function, again: Callable[[np.ndarray], Any], size: int) -> None:
        self._function, self._again, self.size = function, again, size
        self.error: Exception | None = None
        jitted: Any = function.function
        kinds = [numba.typeof(array) for array in (np.zeros(size), *function.data)]
        _, _, folded, _ = jitted.get_call_template(kinds, {})
        of_kinds = jitted.overloads[folded]
        entry = of_kinds.library.get_pointer_to_function(of_kinds.fndesc.llvm_func_name)
        self._raised = _Raised(self._on_error)
        raised = ctypes.cast(self._raised, ctypes.c_void_p).value
        arrays = [number for array in function.data for number in (array.ctypes.data, *array.shape)]
        self.table = np.array([entry, raised, *arrays], dtype=np.intp)
        self.log_density = _log_density(of_kinds.signature)
        self.same = _cfunc(_EXPAND, _SAME, "same", {})

    def _on_error(self, x: Any) -> int:
        try:
            self._again(np.array(x[: self.size]))
        except Exception as error:  # nutpie's threads cannot raise it
            self.error = error
            return FATAL
        return RECOVERABLE


@cache
def _log_density(signature: Any) -> Any:
    """Return the callback for functions of one signature."""
    arrays, at = [], 2
    for kind in signature.args[0].types[1:]:
        shape = "".join(f"table[{at + 1 + i}], " for i in range(kind.ndim))
        arrays.append(f"numba.carray(_pointer(table[{at}], {kind.dtype}), ({shape}))")
        at += 1 + kind.ndim
    value = "value[()]" if isinstance(signature.return_type[0], types.Array) else "value"
    source = _SOURCE.format(arrays=", ".join(arrays), value=value)
    names = {str(kind.dtype): kind.dtype for kind in signature.args[0].types}
    return _cfunc(_LOG_DENSITY, source, "log_density", {"call": _caller(signature), **names}, repr(signature))


def _cfunc(kind: Any, source: str, name: str, names: dict[str, Any], signature: str = "") -> Any:
    """Compile a callback, or take it from the disk: PyTensor's locator finds it by its key."""
    key = sha256("\n".join((inspect.getsource(sys.modules[__name__]), source, signature)).encode()).hexdigest()
    function = compile_numba_function_src(source, name, globals() | names, cache_key=key)
    return numba.cfunc(kind, cache=pytensor.config.numba__cache)(function)


@intrinsic
def _pointer(context: Any, address: Any, of: Any) -> Any:
    """Make an address a pointer to numbers of a type."""
    kind = types.CPointer(of.dtype)
    return kind(address, of), lambda context, builder, _, arguments: builder.inttoptr(
        arguments[0], context.get_value_type(kind)
    )


def _caller(signature: Any) -> Any:
    """Return a jitted call of the function whose address a table begins with.

    Where that raises, the caller returns at once what the table's second function makes of the point.
    """

    @intrinsic
    def call(context: Any, x: Any, table: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            x, table, packed = values
            entry, raised = (builder.load(builder.gep(table, [ir.IntType(64)(i)])) for i in range(2))
            convention = context.call_conv
            kind = convention.get_function_type(signature.return_type, signature.args).as_pointer()
            each = [builder.extract_value(packed, i) for i in range(len(signature.args[0].types))]
            packed = context.make_tuple(builder, signature.args[0], each)
            status, result = convention.call_function(
                builder, builder.inttoptr(entry, kind), signature.return_type, signature.args, [packed]
            )
            with builder.if_then(status.is_error, likely=False):
                on_error = ir.FunctionType(ir.IntType(64), [x.type]).as_pointer()
                convention.return_value(builder, builder.call(builder.inttoptr(raised, on_error), [x]))
            return result

        return signature.return_type(x, table, arguments), generate

    return call
