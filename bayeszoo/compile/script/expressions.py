"""PyTensor graphs as Python expressions that build the same graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, singledispatch
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import ViewOp
from pytensor.graph import Apply, Constant, Op
from pytensor.raise_op import Assert
from pytensor.scalar import Cast, Identity, ScalarType
from pytensor.tensor import basic, subtensor
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.shape import Shape as LengthsOf
from pytensor.tensor.special import LogSoftmax, LogSumExp, Softmax

from bayeszoo.compile.script.literals import Names, literal, quoted, tuple_of
from bayeszoo.errors import InputError
from bayeszoo.likelihoods.ops.covariances import GaussianTerms

type Term = Any
"""A variable of a PyTensor graph."""
LONG = 72
"""Length of expressions above which they get a name and their own line."""
INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "true_div": ("/", 2), "matmul": ("@", 2), "pow": ("**", 4)}
"""Operators and their precedence; unary minus has precedence 3."""
ATOM = 9
TRANSPARENT = Assert | CheckParameterValue | ViewOp | basic.ScalarFromTensor | basic.TensorFromScalar | SpecifyShape
"""Operations whose value is that of their first input."""
BY_AXIS = {LogSumExp: "logsumexp", LogSoftmax: "special.log_softmax", Softmax: "special.softmax"}
SHORT = DimShuffle | LengthsOf | basic.MakeVector
"""Operations that get no name, however often they are used."""


class Writer:
    """Writes graphs as lines of a block: long or repeated expressions get a name.

    ``known`` are variables with a name already, such as parameters of a model or arguments of a function.
    """

    def __init__(self, names: Names, known: Mapping[Term, str]) -> None:
        self.names, self.known, self.lines = names, dict(known), list[str]()
        self._expanded = dict[Term, Term]()

    def text(self, output: Term) -> str:
        """Return the expression of a variable; lines that it needs are added to ``lines``."""
        parts = self._parts(output)
        for variable, uses in self._uses(parts, self._meant(output)).items():
            if uses > 1 or len(self.written(variable)) > LONG:
                text = self.written(variable)
                self.known[variable] = self.names.new(variable.name or "part")
                self.lines.append(f"{self.known[variable]} = {text}")
        return self.written(output)

    def _meant(self, variable: Term) -> Term:
        """Return the variable that is written instead of another: for a check, the checked variable."""
        while variable not in self.known and variable.owner is not None:
            if variable not in self._expanded:
                self._expanded[variable] = _instead(variable)
            if self._expanded[variable] is variable:
                break
            variable = self._expanded[variable]
        return variable

    def _inputs(self, variable: Term) -> list[Term]:
        return [self._meant(v) for v in variable.owner.inputs if isinstance(v.type, pt.TensorType | ScalarType)]

    def _parts(self, output: Term) -> list[Term]:
        """Return the variables in an expression, each after its inputs."""
        order = dict[Term, None]()

        def visit(variable: Term) -> None:
            if variable not in order and variable not in self.known and variable.owner is not None:
                for part in self._inputs(variable):
                    visit(part)
                order[variable] = None

        visit(self._meant(output))
        return list(order)

    def _uses(self, parts: list[Term], output: Term) -> dict[Term, int]:
        """Return how often each variable that may get a name is written, in the order of ``parts``."""
        uses = Counter({output: 1})
        for variable in reversed(parts):
            for part in self._inputs(variable):
                uses[part] += uses[variable] if isinstance(variable.owner.op, SHORT) else 1
        nameable = (v for v in parts if v is not output and not isinstance(v.owner.op, SHORT) and not _is_length(v))
        return {variable: uses[variable] for variable in nameable}

    def argument(self, variable: Term) -> str:
        """Return the `text` of an argument, without leading axes added for broadcasting."""
        return self.text(_unpadded(variable, self.known))

    def written(self, variable: Term, binding: int = 0) -> str:
        """Return an expression, in parentheses if its precedence is below ``binding``."""
        variable = self._meant(variable)
        if variable in self.known:
            return self.known[variable]
        if variable.owner is None:
            return self._leaf(variable)
        text, precedence = expression(variable.owner.op, variable.owner, variable, self)
        return f"({text})" if precedence < binding else text

    def _leaf(self, variable: Term) -> str:
        if isinstance(variable, Constant):
            return literal(variable.data, self.names, variable.name)
        if hasattr(variable, "get_value"):
            return literal(variable.get_value(), self.names, variable.name)
        raise _unwritable(f"the variable {variable}")

    def input_of(self, variable: Term) -> Callable[..., str]:
        """Return the function that writes inputs of an elementwise operation: `padded` if the result keeps axes."""
        inputs = [_unpadded(v, self.known) for v in variable.owner.inputs]
        axes = [0 if isinstance(v, Constant) and np.size(v.data) == 1 else v.ndim for v in inputs]
        return self.padded if max(axes) == variable.ndim else self.written

    def padded(self, variable: Term, binding: int = 0) -> str:
        """Return an expression of an input of an elementwise operation, which itself adds leading axes."""
        variable = _unpadded(variable, self.known)
        if isinstance(variable, Constant) and np.size(variable.data) == 1:
            return literal(np.ravel(variable.data)[0], self.names)
        return self.written(variable, binding)

    def tuple_of(self, variable: Term) -> str:
        """Return a vector of lengths as a tuple."""
        if (
            variable not in self.known
            and variable.owner is not None
            and isinstance(variable.owner.op, basic.MakeVector)
        ):
            return tuple_of(self.written(v) for v in variable.owner.inputs)
        if isinstance(variable, Constant):
            return tuple_of(map(str, variable.data.tolist()))
        return self.written(variable)


def _instead(variable: Term) -> Term:
    """Return the variable that replaces the output of a check, or of an operation with an inner graph; else itself."""
    node = variable.owner
    if isinstance(node.op, TRANSPARENT) or (isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Identity)):
        return node.inputs[0]
    if isinstance(node.op, GaussianTerms):
        return _gaussian_terms(*node.inputs)
    if isinstance(node.op, OpFromGraph) and not _has_words(node):
        graph = node.op.fgraph
        return graph.bind(dict(zip(graph.inputs, node.inputs, strict=True)))[node.outputs.index(variable)]
    return variable


def _has_words(node: Apply) -> bool:
    """Say whether an operation with an inner graph is written by its name."""
    if isinstance(node.op, basic.AllocDiag):
        return (node.op.offset, node.op.axis1, node.op.axis2, node.outputs[0].type.ndim) == (0, 0, 1, 2)
    return type(node.op) in BY_AXIS


def _gaussian_terms(sigma: Term, scatter: Term, n: Term) -> Term:
    """Return the result of the loops by PyTensor's linear algebra."""
    log_det = pt.sum(pt.log(pt.diagonal(pt.linalg.cholesky(sigma), axis1=-2, axis2=-1)), axis=-1)
    return -n * log_det - pt.sum(pt.linalg.inv(sigma) * scatter, axis=(-2, -1)) / np.float64(2)


def _is_length(variable: Term) -> bool:
    """Say whether a variable is the length of an axis."""
    array = variable.owner.inputs[0] if isinstance(variable.owner.op, subtensor.Subtensor) else variable
    return array.owner is not None and isinstance(array.owner.op, LengthsOf)


def _unwritable(expression: str) -> InputError:
    return InputError(f"{expression} cannot be written as code", "not_a_script")


def _unpadded(variable: Term, known: Mapping[Term, str]) -> Any:
    while variable not in known and variable.owner is not None and _pads(variable.owner.op):
        variable = variable.owner.inputs[0]
    return variable


def _pads(op: Any) -> bool:
    if not isinstance(op, DimShuffle):
        return False
    front = len(op.new_order) - op.input_ndim
    return front >= 0 and op.new_order == (*["x"] * front, *range(op.input_ndim))


Expression = tuple[str, int]


@singledispatch
def expression(op: Op, node: Apply, variable: Term, writer: Writer) -> Expression:
    """Return the code of an operation, and its precedence."""
    raise _unwritable(f"the operation {op}")


def _call(name: str, *arguments: object, **options: object) -> Expression:
    all_arguments = [*map(str, arguments), *(f"{key}={value}" for key, value in options.items() if value is not None)]
    return f"pt.{name}({', '.join(all_arguments)})", ATOM


@cache
def _elementwise() -> list[tuple[Any, str]]:
    """Return PyTensor's elementwise functions and their names."""
    return [(op, name) for name, op in sorted(vars(pt).items()) if isinstance(op, Elemwise)]


@expression.register
def _(op: Elemwise, node: Apply, variable: Term, writer: Writer) -> Expression:
    if isinstance(op.scalar_op, Cast):
        return _call("cast", writer.written(node.inputs[0]), quoted(variable.dtype))
    scalar = type(op.scalar_op).__name__.lower()
    name = next((name for known, name in _elementwise() if known == op), scalar)
    if not hasattr(pt, name):
        raise _unwritable(f"the operation {op}")
    write = writer.input_of(variable)
    if name == "neg":
        return f"-{write(node.inputs[0], 3)}", 3
    return _infix(name, node, write) if name in INFIX else _call(name, *map(write, node.inputs))


def _infix(name: str, node: Apply, write: Callable[[Term, int], str]) -> Expression:
    sign, binding = INFIX[name]
    left, *right = node.inputs
    return f" {sign} ".join([write(left, binding + (sign == "**")), *(write(v, binding + 1) for v in right)]), binding


@expression.register
def _(op: DimShuffle, node: Apply, variable: Term, writer: Writer) -> Expression:
    text, order = writer.written(node.inputs[0], ATOM), op.new_order
    if not op.input_ndim and not node.inputs[0].dtype.startswith("float"):  # it may be a Python integer
        text = f"pt.as_tensor({text})"
    if order == tuple(reversed(range(op.input_ndim))):
        return f"{text}.T", ATOM
    if [i for i in order if i != "x"] == list(range(op.input_ndim)):
        index = ["None" if i == "x" else ":" for i in order]
        return f"{text}[{', '.join(index)}]", ATOM
    return f"{text}.dimshuffle({', '.join(map(repr, order))})", ATOM


@expression.register
def _(op: CAReduce, node: Apply, variable: Term, writer: Writer) -> Expression:
    axis = None if op.axis is None else op.axis[0] if len(op.axis) == 1 else op.axis
    return _call(type(op).__name__.lower(), writer.written(node.inputs[0]), axis=axis)


@expression.register(LogSumExp | LogSoftmax | Softmax)
def _(op: Op, node: Apply, variable: Term, writer: Writer) -> Expression:
    axis = op.axis[0] if isinstance(op.axis, tuple) and len(op.axis) == 1 else op.axis
    return _call(BY_AXIS[type(op)], writer.written(node.inputs[0]), axis=axis)


@expression.register
def _(op: Dot, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _call("dot", *map(writer.written, node.inputs))


@expression.register
def _(op: Blockwise, node: Apply, variable: Term, writer: Writer) -> Expression:
    """Write matrix operations by PyTensor's functions."""
    kind, first = type(op.core_op).__name__, writer.written(node.inputs[0])
    if kind == "Dot" or kind == "MatMul":
        return _infix("matmul", node, writer.written)
    if kind in ("Cholesky", "MatrixInverse", "Det", "MatrixPinv"):
        return _call(
            {
                "Cholesky": "linalg.cholesky",
                "MatrixInverse": "linalg.inv",
                "Det": "linalg.det",
                "MatrixPinv": "linalg.pinv",
            }[kind],
            first,
        )
    if kind in ("Solve", "SolveTriangular"):
        options = {"lower": op.core_op.lower, "b_ndim": op.core_op.b_ndim}
        name = "linalg.solve" if kind == "Solve" else "linalg.solve_triangular"
        return _call(name, first, writer.written(node.inputs[1]), **options)
    raise _unwritable(f"the operation {op}")


@expression.register
def _(op: subtensor.Subtensor, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _indexed(op, node, node.inputs[0], node.inputs[1:], writer), ATOM


@expression.register
def _(op: subtensor.AdvancedSubtensor, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _indexed(op, node, node.inputs[0], node.inputs[1:], writer), ATOM


@expression.register(subtensor.IncSubtensor | subtensor.AdvancedIncSubtensor)
def _(op: Op, node: Apply, variable: Term, writer: Writer) -> Expression:
    place = _indexed(op, node, node.inputs[0], node.inputs[2:], writer)
    return f"{place}.{'set' if op.set_instead_of_inc else 'inc'}({writer.written(node.inputs[1])})", ATOM


def _indexed(op: Op, node: Apply, array: Term, places: Sequence[Term], writer: Writer) -> str:
    entries = subtensor.indices_from_subtensor(places, op.idx_list)
    return f"{writer.written(array, ATOM)}[{', '.join(_index(entry, writer) for entry in entries)}]"


def _index(entry: Term | slice, writer: Writer) -> str:
    if not isinstance(entry, slice):
        return writer.written(entry)
    ends = ["" if end is None else writer.written(end) for end in (entry.start, entry.stop)]
    step = "" if entry.step is None else f":{writer.written(entry.step)}"
    return f"{ends[0]}:{ends[1]}{step}".replace("None", "")


@expression.register
def _(op: Reshape, node: Apply, variable: Term, writer: Writer) -> Expression:
    array, lengths = node.inputs
    return f"{writer.written(array, ATOM)}.reshape({writer.tuple_of(lengths)}, ndim={op.ndim})", ATOM


@expression.register
def _(op: LengthsOf, node: Apply, variable: Term, writer: Writer) -> Expression:
    return f"{writer.written(node.inputs[0], ATOM)}.shape", ATOM


@expression.register
def _(op: basic.MakeVector, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _call("stack", f"[{', '.join(map(writer.written, node.inputs))}]")


@expression.register
def _(op: basic.Join, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _call("concatenate", f"[{', '.join(map(writer.written, node.inputs))}]", axis=op.axis)


@expression.register
def _(op: basic.Alloc, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _call("alloc", *map(writer.written, node.inputs))


@expression.register
def _(op: basic.ARange, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _call("arange", *map(writer.written, node.inputs))


@expression.register
def _(op: basic.Eye, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _call("eye", *map(writer.written, node.inputs))


@expression.register
def _(op: basic.ExtractDiag, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _call("diagonal", writer.written(node.inputs[0]), op.offset, op.axis1, op.axis2)


@expression.register
def _(op: basic.AllocDiag, node: Apply, variable: Term, writer: Writer) -> Expression:
    return _call("diag", writer.written(node.inputs[0]))
