"""The expressions that a formula may contain. Formulas may come from any file; formulaic evaluates them as Python.

The expression that is checked is the text that is evaluated, with names in place of quoted columns. Everything that is
not listed here is refused: attributes other than ``np.log`` and its like, subscripts, comparisons, text that is no
level.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import math
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unicodedata import normalize

import numpy as np

from bayeszoo.data.table.table import LARGEST_REAL, shown
from bayeszoo.errors import InputError

LONGEST, DEEPEST = 20_000, 50
"""Most characters of a formula, and most nested parentheses."""
LONGEST_FACTOR = 1000
"""Most characters of a Python factor, which Python's parser accepts on any machine."""
MOST_COLUMNS = 100
"""Most columns of a spline or a polynomial."""
_LARGEST_BASE, _LARGEST_POWER = 1000, 100
"""Largest base and exponent of a power of two numbers; the exponent of a column may be any number."""

_TRANSFORMS = {
    "center": (),
    "scale": ("center", "scale", "ddof"),
    "standardize": ("center", "rescale", "ddof"),
    "poly": ("degree", "raw"),
    "bs": ("df", "knots", "degree", "include_intercept", "lower_bound", "upper_bound", "extrapolation"),
    **dict.fromkeys(("cc", "cr", "cs"), ("df", "knots", "lower_bound", "upper_bound", "constraints", "extrapolation")),
    **dict.fromkeys(("I", "exp", "exp2", "log", "log10", "log2"), ()),
}
"""Functions of a column, with their options, in formulaic's order."""
_PARTS = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|`([^`]*)`|([^\W\d]\w*)""", re.DOTALL)
"""Text, a quoted column, or a name."""
_MAKE_COLUMNS = {"poly", "bs", "cc", "cr", "cs"}
_SIZES = {"df", "degree"}
_WORDS = {"extrapolation": {"raise", "clip", "na", "zero", "extend"}, "constraints": {"center"}}
_CONTRASTS = frozenset({"Diff", "Helmert", "Poly", "Sum", "Treatment"})
_CONTR = frozenset({"treatment", "sum", "poly", "helmert", "diff", "SAS"})
_NAMES = frozenset({*_TRANSFORMS, *_CONTRASTS, "C", "np", "contr"})
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


class Expression:
    """A factor of a formula, checked.

    Parameters
    ----------
    text : str
        The factor, with quoted columns in backticks.

    Attributes
    ----------
    text : str
        The checked text, which may be evaluated: names in place of quoted columns, and numbers as float64, which
        neither overflow nor take long.
    written : str
        The factor in standard form, with backticks where needed.
    quoted : dict of str to str
        The column for each name in ``text``.
    columns : list of str
        The columns of the table that the factor uses.
    most_columns : int
        The most columns that its splines and polynomials make.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_FACTOR:
            raise InputError(
                f"{shown(text)} of the formula has {len(text)} characters, at most {LONGEST_FACTOR}", "too_large"
            )
        plain, self.quoted = _without_quotes(text)
        if "`" in plain:  # in a text, or unpaired: formulaic would read it again
            raise _refused(text)
        try:
            tree = ast.parse(plain, mode="eval").body
        except SyntaxError as error:
            raise InputError(f"{shown(text)} cannot be used in a formula: {error.msg}", "bad_formula") from None
        if _depth(tree) > DEEPEST:
            raise InputError(f"{shown(text)} of the formula is nested more than {DEEPEST} deep", "too_large")
        names = [(part, part.id) for part in ast.walk(tree) if isinstance(part, ast.Name) and part.id in self.quoted]
        for part, alias in names:  # messages show the text as written
            part.id = f"`{self.quoted[alias]}`"
        self.written = ast.unparse(tree)
        self.columns = [name.strip("`") for name in _factor(tree)]
        for part, alias in names:
            part.id = alias
        self.text = ast.unparse(tree)
        self.most_columns = _most_columns(tree)


def _without_quotes(text: str) -> tuple[str, dict[str, str]]:
    """Replace column names that are no Python names; return the expression, and the column of each new name.

    Names that Python would change are replaced too: it reads the micro sign as a Greek letter.
    """
    normalized, aliases = normalize("NFKC", text), dict[str, str]()

    def plain(part: re.Match[str]) -> str:
        literal, quoted, bare = part.groups()
        name = bare if quoted is None else quoted
        if literal or (name == normalize("NFKC", name) and (quoted is None or _is_plain(name))):
            return str(literal or f" {name} ")
        if name not in aliases:
            alias = "_quoted_" + re.sub(r"\W", "_", normalize("NFKC", name))
            while alias in normalized or alias in aliases.values():
                alias += "_"
            aliases[name] = alias
        return f" {aliases[name]} "

    return _PARTS.sub(plain, text).strip(), {alias: name for name, alias in aliases.items()}


def _is_plain(name: str) -> bool:
    """Say whether a column needs no backticks."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in _NAMES and not name.startswith("__")


def functions() -> dict[str, Any]:
    """Return the names that an expression may use: functions of numbers, and contrasts."""
    from formulaic.transforms import TRANSFORMS

    of_numbers = {name: function for name, function in vars(np).items() if _is_of_numbers(function)}
    contrasts = {name: getattr(TRANSFORMS["contr"], name) for name in _CONTR}
    spaces = {"np": SimpleNamespace(**of_numbers), "contr": SimpleNamespace(**contrasts)}
    return {name: TRANSFORMS[name] for name in _NAMES} | spaces


def closed() -> dict[str, Any]:
    """Return the names that replace those of formulaic and Python's builtins, as a second safeguard.

    Names that are not needed are None, which cannot be called.
    """
    from formulaic.transforms import TRANSFORMS

    return {**dict.fromkeys([*dir(builtins), *TRANSFORMS]), **functions()}


def _is_of_numbers(function: object) -> bool:
    """Say whether a NumPy function works row by row; ``matmul`` does not."""
    return isinstance(function, np.ufunc) and function.signature is None


def _depth(tree: ast.AST) -> int:
    """Return the depth of the syntax tree of an expression; a sum of many terms is deep."""
    depth, parts = 0, [tree]
    while parts:
        depth, parts = depth + 1, [child for part in parts for child in ast.iter_child_nodes(part)]
    return depth


def _most_columns(tree: ast.AST) -> int:
    """Return the most columns that the splines and polynomials of an expression make."""
    calls = [part for part in ast.walk(tree) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)]
    return math.prod(_columns_of(call) for call in calls if call.func.id in _MAKE_COLUMNS)  # type: ignore


def _columns_of(call: ast.Call) -> int:
    """Return an upper bound of the columns that a call makes, from its sizes and numbers of knots."""
    options = [*call.args[1:], *(option.value for option in call.keywords)]
    numbers = [part.value for part in options if isinstance(part, ast.Constant) and type(part.value) is int]
    lists = [len(part.elts) for part in options if isinstance(part, ast.List | ast.Tuple)]
    return 4 + sum(numbers) + sum(lists)  # a cubic spline has four more than knots


def _refused(part: ast.AST | str, hint: str = "make the column in the table") -> InputError:
    text = part if isinstance(part, str) else ast.unparse(part)
    return InputError(f"{shown(text)} cannot be used in a formula", "bad_formula", hint=hint)


def _factor(node: ast.expr) -> Iterator[str]:
    """Yield the columns of a factor, of levels or numbers."""
    match node:
        case ast.Call(func=ast.Name(id="C"), args=[column, *contrasts], keywords=options) if len(contrasts) < 2:
            yield from _numbers(column)
            for contrast in contrasts + [option.value for option in options if option.arg == "contrasts"]:
                _check_contrast(contrast)
            for option in options:
                if option.arg == "levels":
                    _check_list(option.value)
                elif option.arg == "spans_intercept":
                    _check_literal(option.value)
                elif option.arg != "contrasts":
                    raise _refused(node)
        case _:
            yield from _numbers(node)


def _numbers(node: ast.expr) -> Iterator[str]:
    """Yield the columns of an expression with one number for each row."""
    match node:
        case ast.Name(id=name) if name not in _NAMES and not name.startswith("__"):
            yield name
        case ast.Name(id=name) if name in _NAMES:
            problem = f"{shown(name)} is a function of formulas, and no column"
            raise InputError(problem, "bad_formula", hint=f"write a column in backticks: `{name}`")
        case ast.Constant():
            _check_number(node)
            node.value = float(node.value)  # type: ignore[arg-type]
        case ast.BinOp(left=left, right=right, op=operator) if isinstance(operator, _OPERATORS):
            if isinstance(operator, ast.Pow):
                _check_power(node)
            yield from _numbers(left)
            yield from _numbers(right)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            yield from _numbers(operand)
        case ast.Call(func=ast.Name(id=name), args=[column, *others]) if name in _TRANSFORMS:
            yield from _numbers(column)
            _check_options(node, _TRANSFORMS[name], others)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=[_, *_] as arguments, keywords=[]):
            function: Any = getattr(np, name, None)
            if not _is_of_numbers(function):
                raise _refused(node.func)
            if len(arguments) != function.nin:  # NumPy would write to further arguments
                raise _refused(node, f"np.{name} takes {function.nin} arguments")
            for part in arguments:
                yield from _numbers(part)
        case ast.BinOp(op=ast.BitXor()):
            raise _refused(node, "write ** for a power")
        case ast.Attribute():
            raise _refused(node, f"write a column in backticks: `{ast.unparse(node)}`")
        case ast.Call(func=ast.Name(id=name)) if _is_of_numbers(getattr(np, name, None)):
            raise _refused(node, f"write np.{name}")
        case _:
            raise _refused(node)


def _check_options(call: ast.Call, names: tuple[str, ...], others: list[ast.expr]) -> None:
    """Refuse options of a transform other than numbers, lists of numbers, and the words that formulaic knows."""
    if len(others) > len(names):
        raise _refused(call)
    options = [*zip(names, others, strict=False), *((option.arg, option.value) for option in call.keywords)]
    for name, value in options:
        if name not in names:
            raise _refused(call)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            if value.value not in _WORDS.get(name, ()):
                raise _refused(call)
        elif isinstance(value, ast.List | ast.Tuple):
            for item in value.elts:
                _check_number(_unsigned(item))
        else:
            _check_literal(value)
            size = ast.literal_eval(value)
            if name in _SIZES and size is not None and not 0 <= size <= MOST_COLUMNS:
                raise _refused(call, f"{name} goes up to {MOST_COLUMNS}")


def _check_contrast(node: ast.expr) -> None:
    """Refuse everything except a contrast that is named, or called with a level or numbers."""
    match node:
        case ast.Name(id=name) if name in _CONTRASTS:
            return
        case ast.Attribute(value=ast.Name(id="contr"), attr=name) if name in _CONTR:
            return
        case ast.Call(func=ast.Name() | ast.Attribute() as function, args=arguments, keywords=options):
            _check_contrast(function)
            for value in arguments + [option.value for option in options]:
                (_check_list if isinstance(value, ast.List | ast.Tuple) else _check_level)(value)
            if all(option.arg for option in options):
                return
    raise _refused(node)


def _check_list(node: ast.expr) -> None:
    if not isinstance(node, ast.List | ast.Tuple):
        raise _refused(node)
    for item in node.elts:
        _check_level(item)


def _check_level(node: ast.expr) -> None:
    """Refuse everything except a number, and text that can only be the name of a level."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        _check_literal(node)
    elif not node.value.isprintable() or {*node.value} & {'"', "\\", "`"}:
        raise _refused(node)


def _check_literal(node: ast.expr) -> None:
    if not (isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))):
        _check_number(_unsigned(node))


def _check_number(node: ast.expr) -> None:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST_REAL:
        raise _refused(node, "only numbers of ordinary size")


def _check_power(node: ast.BinOp) -> None:
    """Refuse powers of numbers that would take long, as Python's whole numbers have any size."""
    if any(isinstance(part, ast.Name) and part.id not in _NAMES for part in ast.walk(node)):
        return
    base, power = _unsigned(node.left), _unsigned(node.right)
    for part, most in ((base, _LARGEST_BASE), (power, _LARGEST_POWER)):
        _check_number(part)
        if abs(ast.literal_eval(part)) > most:
            raise _refused(node, "write the number")


def _unsigned(node: ast.expr) -> ast.expr:
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd) else node
