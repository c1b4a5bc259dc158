"""Operations on numbers as expressions in the text of a numba function, or calls of PyTensor's numba functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytensor.scalar as ps
from pytensor.graph import Apply, Constant, Op
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

from bayeszoo.compile.loops.source import Source, constant, type_name

_EXPRESSIONS: dict[type, Callable[..., str]] = {
    ps.Add: lambda *x: " + ".join(x),
    ps.Mul: lambda *x: " * ".join(x),
    ps.Sub: "{} - {}".format,
    ps.TrueDiv: "{} / {}".format,
    ps.Reciprocal: "1.0 / {}".format,
    ps.Neg: "-{}".format,
    ps.Sqr: "{0} * {0}".format,
    ps.Exp: "exp({})".format,
    ps.Log: "log({})".format,
    ps.Log1p: "log1p({})".format,
    ps.Sqrt: "sqrt({})".format,
    ps.Abs: "abs({})".format,
    ps.IsNan: "isnan({})".format,
    ps.IsInf: "isinf({})".format,
    ps.EQ: "{} == {}".format,
    ps.NEQ: "{} != {}".format,
    ps.LT: "{} < {}".format,
    ps.LE: "{} <= {}".format,
    ps.GT: "{} > {}".format,
    ps.GE: "{} >= {}".format,
    ps.Switch: "{1} if {0} else {2}".format,
    ps.Second: "{1}".format,
    ps.Identity: "{}".format,
    ps.Maximum: "{0} if ({0} > {1}) | ({0} != {0}) else {1}".format,
    ps.Minimum: "{0} if ({0} < {1}) | ({0} != {0}) else {1}".format,
}
_LOGICAL: dict[type, Callable[..., str]] = {
    ps.Add: lambda *x: " | ".join(x),
    ps.Mul: lambda *x: " & ".join(x),
    ps.AND: lambda *x: " & ".join(x),
    ps.OR: lambda *x: " | ".join(x),
    ps.Invert: "not {}".format,
}
"""Operations on booleans: their sum is "or", whereas Python's True + True is 2."""
_EXACT = "float64", "bool"
"""Types that Python's arithmetic keeps; others need a cast."""


def scalars(op: object, node: object, inputs: Sequence[str], source: Source) -> list[str]:
    """Write operations on numbers, and return the names of their results; ``node`` has their types."""
    if not isinstance(op, ps.Composite):
        return _scalar(op, node, inputs, source)
    names = dict(zip(op.fgraph.inputs, inputs, strict=True))
    for inner in op.fgraph.toposort():
        arguments = [_literal(v, source) if isinstance(v, Constant) else names[v] for v in inner.inputs]
        names |= zip(inner.outputs, scalars(inner.op, inner, arguments, source), strict=True)
    return [_literal(v, source) if isinstance(v, Constant) else names[v] for v in op.fgraph.outputs]


def _literal(variable: Any, source: Source) -> str:
    return constant(variable.data, source).at()


def _scalar(op: Op, node: Apply, inputs: Sequence[str], source: Source) -> list[str]:
    is_logical = all(v.type.dtype == "bool" for v in node.inputs)
    expression = (_LOGICAL.get(type(op)) if is_logical else None) or _EXPRESSIONS.get(type(op))
    if expression is None:
        function, key = numba_funcify_and_cache_key(op, node=_typed(op, node))
        call = f"{source.name(function, key)}({', '.join(inputs)})"
        if len(node.outputs) == 1:
            return [source.assign(call)]
        names = [source.new() for _ in node.outputs]
        source.line(f"{', '.join([*names, ''])} = {call}")
        return names
    return [source.assign(_cast(expression(*inputs), node))]


def _cast(expression: str, node: Apply) -> str:
    """Cast an expression to PyTensor's type, if its inputs may give another type."""
    dtype, *all_types = [v.type.dtype for v in (*node.outputs, *node.inputs)]
    if dtype == "bool" or ("float64" in all_types and all(t in _EXACT for t in (dtype, *all_types))):
        return expression
    return f"{type_name(dtype)}({expression})"


def _typed(op: Op, node: Apply) -> Any:
    """Return the node on numbers for a node on arrays."""
    if isinstance(node.op, ps.ScalarOp):
        return node
    return op.make_node(*(ps.get_scalar_type(v.type.dtype)() for v in node.inputs))
