"""The changes that make mutants: one expression of a line that computes, changed by its syntax.

Operators, comparisons and signs are exchanged, constants moved, functions replaced by their twins or dropped; axes,
keywords, ends of arrays and factors of return values are changed. Texts, messages, annotations and default arguments
are not changed, nor constants that affect time only.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

PERFORMANCE = {"BLOCK", "CHUNK", "WORKERS", "PACE", "CELLS", "HELD", "CACHE", "MEMORY", "SHOWN", "ROWS", "MOST"}
"""Words of a name whose constant changes what a computation costs, or how much is shown, and no number."""
WORDING = {"say", "warn", "join", "phase", "progress", "InputError", "NumericalError", "Untrustworthy", "field", "load"}
WORDING |= {"errstate"}
"""Calls whose arguments are texts, progress and warnings."""
NO_NUMBER = {"dims", "coords", "hint", "strict", "dtype", "name", "names", "reporter", "progress", "stacklevel", "unit"}
NO_NUMBER |= {"copy", "out", "optimize", "sep", "limit", "check_finite", "frozen"}
"""Keywords that are not dropped: they name things, or cost time."""
SKIPPED = {"annotation", "returns", "decorator_list", "type_params", "bases", "defaults", "kw_defaults"}
OTHER = {ast.Add: ast.Sub, ast.Mult: ast.Div, ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.And: ast.Or}
OTHER |= {new: old for old, new in OTHER.items()}
TWINS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("median", "mean"), ("mean", "sum")]
TWINS += [("any", "all"), ("floor", "ceil"), ("logcdf", "logsf"), ("cdf", "sf"), ("std", "var")]
TWIN = {old: new for new, old in TWINS} | dict(TWINS)
DROPPED = {"sqrt", "log", "exp", "log1p", "expm1", "abs", "square", "cumsum", "sort", "sorted", "reversed"}


class Mutant(NamedTuple):
    """A change of one place of a file."""

    file: str
    function: str
    kind: str
    before: str
    after: str
    place: tuple[int, int, int, int]  # first line, column, last line, column in bytes
    number: int  # among the same changes of the function

    @property
    def key(self) -> str:
        """Its name, whatever lines stand above it."""
        return f"{self.file}:{self.function}:{self.kind}:{self.before} -> {self.after}:{self.number}"

    def applied(self, text: str) -> str:
        """Return the file's text with the change."""
        lines = text.encode().splitlines(keepends=True)
        first, start, last, end = self.place
        head, tail = b"".join(lines[: first - 1]) + lines[first - 1][:start], lines[last - 1][end:]
        return (head + f"({self.after})".encode() + tail + b"".join(lines[last:])).decode()


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _with(node: ast.expr, **fields: Any) -> ast.expr:
    """Return a node with other fields; what stands below is shared."""
    return type(node)(**{name: getattr(node, name) for name in node._fields} | fields)


def _is_text(node: ast.expr) -> bool:
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, ast.List | ast.Tuple | ast.JoinedStr)


def changes(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Yield the kind, the expression and what it becomes of each change that starts at a node."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in OTHER and not (_is_text(left) or _is_text(right)):
            yield "operator", node, _with(node, op=OTHER[type(op)]())
        case ast.Compare(ops=[op]) if type(op) in OTHER:
            yield "comparison", node, _with(node, ops=[OTHER[type(op)]()])
        case ast.BoolOp(op):
            yield "logic", node, _with(node, op=OTHER[type(op)]())
        case ast.UnaryOp(ast.Not() | ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign", node, operand
        case ast.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
            yield "constant", node, ast.Constant(value + 1 if isinstance(value, int) else value * 1.1 or 0.1)
        case ast.Subscript(_, ast.Constant(0) | ast.UnaryOp(ast.USub(), ast.Constant(1)) as index, ast.Load()):
            yield "index", node, _with(node, slice=ast.Constant(-1 if isinstance(index, ast.Constant) else 0))
        case ast.Return(value) if value and not (_is_text(value) or _name(value) in ("nan", "inf", "self")):
            if not isinstance(value, ast.Constant | ast.Dict):
                yield "return", value, ast.BinOp(value, ast.Mult(), ast.Constant(1.01))
        case ast.Call():
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    name, keywords = _name(node.func), node.keywords
    if name in TWIN:
        twin = {("attr" if isinstance(node.func, ast.Attribute) else "id"): TWIN[name]}
        yield "function", node, _with(node, func=_with(node.func, **twin))
    if name in DROPPED and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
        yield "dropped", node, node.args[0]
    for i, keyword in enumerate(keywords):
        rest = keywords[:i] + keywords[i + 1 :]
        if keyword.arg == "axis" and isinstance(keyword.value, ast.Constant | ast.UnaryOp):
            axis = 1 if ast.unparse(keyword.value) == "0" else 0
            yield "axis", node, _with(node, keywords=[*rest, ast.keyword("axis", ast.Constant(axis))])
        elif keyword.arg and keyword.arg not in NO_NUMBER:
            yield "keyword", node, _with(node, keywords=rest)


def _computing(tree: ast.AST, function: str = "", number: bool = False) -> Iterator[tuple[str, ast.AST, bool]]:
    """Yield each node of what computes, with its function, and whether that returns a number or an array."""
    for field, value in ast.iter_fields(tree):
        for child in value if isinstance(value, list) else [value]:
            if field in SKIPPED or not isinstance(child, ast.AST) or _is_wording(child):
                continue
            inside, numeric = function, number
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside, returns = f"{function}.{child.name}".lstrip("."), getattr(child, "returns", None)
                numeric = returns is not None and ast.unparse(returns) in ("float", "np.ndarray")
            if field == "slice" and isinstance(child, ast.Constant | ast.UnaryOp):  # the change is that of the array
                continue
            yield inside, child, numeric
            if not (isinstance(child, ast.keyword) and child.arg == "axis"):  # it has a change of its own
                yield from _computing(child, inside, numeric)


def _is_wording(node: ast.AST) -> bool:
    """Whether a node is a text, a message, a type, or what costs time and changes no number."""
    if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Assign):
        return any(set(_name(target).split("_")) & PERFORMANCE for target in node.targets)
    wording = isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert)
    return wording or (isinstance(node, ast.Call) and _name(node.func) in WORDING)


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """Yield every change of the expressions of a file that compute."""
    seen: Counter[str] = Counter()
    for function, node, returns_number in _computing(ast.parse(text)):
        for kind, old, new in changes(node):
            if kind == "return" and not returns_number:
                continue
            before, after = (" ".join(ast.unparse(side).split()) for side in (old, new))
            place = old.lineno, old.col_offset, old.end_lineno or 0, old.end_col_offset or 0
            yield Mutant(file, function, kind, before, after, place, seen[f"{function}:{kind}:{before}"])
            seen[f"{function}:{kind}:{before}"] += 1
