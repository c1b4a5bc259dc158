"""Mistakes in a model's source that no density shows: misspelt keywords, and numbers that are not float64.

PyMC ignores unknown keywords of a distribution: ``pm.Normal("x", 0, sd=100)`` has standard deviation 1.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pymc as pm

_COMMON = {"dims", "observed", "initval", "total_size", "transform", "default_transform", "shape", "size", "rng"}
_COMMON |= {"name", "model"}


def unknown_keywords(source: str) -> list[str]:
    """List the keywords in calls of ``pm.<Distribution>`` that PyMC would silently ignore."""
    import pymc as pm

    mistakes = []
    for name, call in _distribution_calls(source, pm):
        accepted = _accepted(getattr(pm, name))
        mistakes += [
            f"line {call.lineno}: pm.{name}({k.arg}=)" for k in call.keywords if k.arg and k.arg not in accepted
        ]
    return mistakes


def literal_numbers(source: str) -> list[str]:
    """List the number literals passed to ``pm.<Distribution>``: PyTensor reads 3.0 as float32 and 3 as int8."""
    import pymc as pm

    mistakes = []
    for name, call in _distribution_calls(source, pm):
        arguments = [*call.args, *(k.value for k in call.keywords if k.arg not in _COMMON)]
        mistakes += [f"line {call.lineno}: pm.{name}(... {ast.unparse(a)} ...)" for a in arguments if _is_number(a)]
    return mistakes


def narrow_variables(model: pm.Model) -> list[str]:
    """List variables that a log density *computes* in less than float64; constants and choices between them may be."""
    from pytensor.graph import ancestors
    from pytensor.scalar import Switch
    from pytensor.tensor.elemwise import Elemwise

    applied = (v for v in ancestors([model.logp(jacobian=True)]) if v.owner and isinstance(v.owner.op, Elemwise))
    computed = (v for v in applied if not isinstance(v.owner.op.scalar_op, Switch))
    return sorted(str(v) for v in computed if v.dtype in ("float16", "float32"))


def _distribution_calls(source: str, pm: object) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls ``pm.X(...)`` and ``pm.X.dist(...)`` where X is a distribution."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        target = node.func
        if target.attr == "dist" and isinstance(target.value, ast.Attribute):
            target = target.value
        owner = target.value
        is_of_pymc = isinstance(owner, ast.Name) and owner.id == "pm"
        if is_of_pymc and hasattr(getattr(pm, target.attr, None), "dist"):
            yield target.attr, node


def _accepted(distribution: Any) -> set[str]:
    names = set(_COMMON)
    for klass in distribution.__mro__:
        for method in ("dist", "get_dist_params", "clone"):
            if method in klass.__dict__:
                parameters = inspect.signature(getattr(klass, method)).parameters.values()
                names |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return names


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.List | ast.Tuple):
        return any(_is_number(item) for item in node.elts)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
