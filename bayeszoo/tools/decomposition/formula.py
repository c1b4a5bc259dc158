"""A total as sums of products of factors, written as ``volume * (rate * price - cost)`` or ``sum(share * rate)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.table.table import LARGEST_REAL, shown
from bayeszoo.errors import InputError

OPERATIONS: dict[type, Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
LONGEST = 1000
"""Most characters of a formula: some hundred nested terms, which Python's parser accepts on any machine."""
TAKEN = "names, numbers, +, -, *, parentheses and sum(...)"


@dataclass(frozen=True)
class Formula:
    """A formula of a total of named factors.

    Attributes
    ----------
    text : str
        The formula as written.
    root : ast.expr
        Its syntax tree, of sums and products only.
    names : tuple of str
        The factors, in the order of first occurrence.
    """

    text: str
    root: ast.expr
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Formula:
        """Read a formula, or raise `InputError`."""
        if len(text) > LONGEST:
            raise InputError(f"the formula has {len(text)} characters, more than {LONGEST}", "too_large")
        try:
            root = ast.parse(text.strip(), mode="eval").body
            names = dict.fromkeys(_names(root))
        except InputError:
            raise
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(
                f"the formula {shown(text)} cannot be read", "bad_formula", hint=f"it may hold {TAKEN}"
            ) from None
        if not names:
            raise InputError(f"the formula {shown(text)} names no factor", "bad_formula", hint=f"it may hold {TAKEN}")
        return cls(text, root, tuple(names))

    @property
    def summed(self) -> frozenset[str]:
        """The factors inside ``sum(...)``, which have a number for each label."""
        calls = [node for node in ast.walk(self.root) if isinstance(node, ast.Call)]
        return frozenset(name for call in calls for name in _names(call.args[0]))

    def total(self, factors: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the total (...) of factors (..., entries); entries is 1 for a factor that is one number."""
        total = _value(self.root, factors)
        if np.shape(total)[-1:] not in ((), (1,)):
            raise InputError(
                f"the total {shown(self.text)} is {total.shape[-1]} numbers", "bad_formula", hint="add up with sum(...)"
            )
        return np.asarray(total)[..., 0]


def _names(node: ast.expr) -> list[str]:
    """Return the names in a part of a formula; refuse anything but sums of products."""
    match node:
        case ast.Name():
            return [node.id]
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool) and abs(value) < LARGEST_REAL:
            return []
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            return [*_names(node.left), *_names(node.right)]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _names(node.operand)
        case ast.Call(func=ast.Name(id="sum"), args=[inner], keywords=[]):
            return _names(inner)
    hint = "make the quotient a factor" if isinstance(getattr(node, "op", None), ast.Div) else None
    raise InputError(
        f"{shown(ast.unparse(node))} is no sum of products", "bad_formula", hint=hint or f"a formula may hold {TAKEN}"
    )


def _value(node: ast.expr, factors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the value of a part of a checked formula."""
    match node:
        case ast.Name():
            return factors[node.id]
        case ast.Constant():
            return np.float64(node.value).reshape(1)  # type: ignore[arg-type]
        case ast.BinOp():
            return OPERATIONS[type(node.op)](_value(node.left, factors), _value(node.right, factors))
        case ast.UnaryOp():
            return OPERATIONS[type(node.op)](_value(node.operand, factors))
        case ast.Call():
            return np.sum(_value(node.args[0], factors), axis=-1, keepdims=True)
    raise TypeError(ast.dump(node))
