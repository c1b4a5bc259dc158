"""The base of compiled operations: loops that numba compiles, with gradients among the outputs."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from typing import Any, ClassVar

import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph import Apply, Op

UNREGISTERED: list[Exception] = []
"""Errors when an operation could not be registered with PyTensor's numba linker; other linkers run it."""


def compiled_by(kind: type[Op]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register with PyTensor's numba linker a function that returns an operation's jitted function and version."""

    def registered(make: Callable[..., Any]) -> Callable[..., Any]:
        try:
            from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key

            register_funcify_default_op_cache_key(kind)(make)
        except Exception as error:  # a private name of another version may fail in any way; other linkers serve
            UNREGISTERED.append(error)
        return make

    return registered


def jitted(function: Callable[..., Any]) -> Any:
    """Return a function compiled by numba with PyTensor's options, or without them if they cannot be imported."""
    try:
        from pytensor.link.numba.dispatch.basic import numba_njit

        return numba_njit(function)
    except Exception:  # a private name of another version may fail in any way; numba's own compiler serves
        import numba

        return numba.njit(function)


class LogDensity(Op):
    """A log density and its gradient in its first inputs, computed together by ``loops``.

    Numba compiles the loops into its graphs; under other linkers they run as Python that calls compiled
    functions. ``sources`` is other code compiled into them, so that PyTensor's cache on disk notices changes.

    ``parameters`` are the numbers of axes of inputs with a gradient, of float64; ``data`` the numbers of axes and types
    of inputs without, which come last. ``value_ndim`` is 0, or 1 if each entry along the first axis of the parameters
    has its own density.
    """

    sources: ClassVar[tuple[Any, ...]] = ()
    loops: Callable[..., Any]
    __props__ = ()
    parameters: ClassVar[tuple[int, ...]]
    data: ClassVar[tuple[tuple[int, str], ...]]
    value_ndim: ClassVar[int] = 0

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the outputs under other linkers than numba's."""
        for storage, result in zip(output_storage, self.interpreted(*inputs), strict=True):
            storage[0] = result

    def interpreted(self, *inputs: Any) -> Any:
        """Return the outputs, for other linkers than numba's."""
        return type(self).loops(*inputs)

    def make_node(self, *inputs: object) -> Apply:
        """Convert inputs to arrays with the declared numbers of axes."""
        kinds = [*((ndim, "float64") for ndim in self.parameters), *self.data]
        pairs = zip(inputs, kinds, strict=True)
        arrays = [pt.cast(pt.as_tensor_variable(value, ndim=ndim), dtype) for value, (ndim, dtype) in pairs]
        gradients = [array.type() for array in arrays[: len(self.parameters)]]
        return Apply(self, arrays, [pt.TensorType("float64", gradients[0].type.shape[: self.value_ndim])(), *gradients])

    def infer_shape(self, node: Apply, input_shapes: Any) -> Any:
        """Return the shapes of the value and of the parameters."""
        return [input_shapes[0][: self.value_ndim], *input_shapes[: len(self.parameters)]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Say that the data have no gradient."""
        count = len(self.parameters)
        return [[i < count] * (1 + count) for i in range(len(node.inputs))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return the gradients computed with the value; second derivatives are refused."""
        disconnected = [disconnected_type() for _ in self.data]
        if not all(isinstance(cotangent.type, DisconnectedType) for cotangent in cotangents[1:]):
            parameters = list(enumerate(inputs))[: len(self.parameters)]
            refused = (grad_not_implemented(self, i, x, "It has no second derivatives.") for i, x in parameters)
            return [*refused, *disconnected]
        gradients = [pt.shape_padright(cotangents[0], g.type.ndim - self.value_ndim) * g for g in outputs[1:]]
        return [*gradients, *disconnected]


@compiled_by(LogDensity)
def _funcify(op: LogDensity, node: Apply, **kwargs: Any) -> Any:
    loops = type(op).loops
    return jitted(loops), source_version(loops, *op.sources)


def source_version(*sources: Any) -> int:
    """Return a number that changes with the code."""
    return zlib.crc32("".join(map(inspect.getsource, sources)).encode())
