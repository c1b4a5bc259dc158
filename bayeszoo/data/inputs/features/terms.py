"""The terms of a formula, parsed by formulaic in bounded time; and their columns, from checked expressions only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from math import prod
from typing import Any

from formulaic import Formula, ModelSpec
from formulaic.materializers import PandasMaterializer
from formulaic.parser import DefaultFormulaParser, DefaultOperatorResolver
from formulaic.parser.algos.tokenize import tokenize
from formulaic.parser.types import Factor, Operator, Token
from formulaic.utils.layered_mapping import LayeredMapping
from formulaic.utils.stateful_transforms import stateful_eval
from interface_meta import override

from bayeszoo.data.inputs.features.expressions import DEEPEST, LONGEST, Expression, closed, functions
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError

MOST_TOKENS = 4000
"""Most names, numbers and signs in a formula."""
LARGEST_POWER = 10
"""Largest exponent of a power of terms, such as ``(a + b)**2``."""
MOST_PRODUCTS = 20_000
"""Most products of terms in a formula, including repeated ones."""


class _Operators(DefaultOperatorResolver):
    """The operators of formulaic, with a limit on the number of terms."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text, self._products_left = text, MOST_PRODUCTS

    @property
    def operators(self) -> list[Operator]:
        """The operators of formulaic, which count their terms."""
        return [self._counted(operator) for operator in super().operators]

    def _counted(self, operator: Operator) -> Operator:
        if operator.symbol not in ("*", "/", ":", "in", "**", "^"):
            return operator
        plain, is_power = copy(operator), operator.symbol in ("**", "^")

        def counted(*terms: Any) -> Any:
            self._count(len(terms[0]) ** _power_of(terms[1]) if is_power else prod(map(len, terms)))
            return plain.to_terms(*terms)

        operator._to_terms = counted  # each parser has its own table of operators
        return operator

    def _count(self, products: int) -> None:
        self._products_left -= products
        if self._products_left < 0:
            hint = "write only the terms that are needed"
            raise InputError(f"the formula {shown(self._text)} has too many terms", "too_large", hint=hint)


def _power_of(terms: Any) -> int:
    """Return the exponent of a power of terms, a small whole number."""
    factors = next(iter(terms)).factors
    text = factors[0].expr if len(terms) == len(factors) == 1 else ""
    if not (text.isdecimal() and len(text) < 4 and 1 <= int(text) <= LARGEST_POWER):
        raise InputError(
            f"a power of terms is a whole number from 1 to {LARGEST_POWER}",
            "wrong_type",
            hint="write I(x**3) for a power of x",
        )
    return int(text)


class _Parser(DefaultFormulaParser):
    """The parser of formulaic without Python parts, in which it mistakes some quoted columns."""

    written: Sequence[str] = ()

    @override
    def get_tokens_from_formula(self, formula: str, *, context: object) -> list[Token]:
        tokens = list(super().get_tokens_from_formula(formula, context=context))
        for token, written in zip(_python_of(tokens), self.written, strict=True):
            token.token = written
        return tokens


def _python_of(tokens: Iterable[Token]) -> list[Token]:
    return [token for token in tokens if token.kind is Token.Kind.PYTHON]


def _masked(text: str, parts: Sequence[Token]) -> str:
    """Return a formula with a dummy call in place of each Python part."""
    for token in reversed(parts):
        start, end = token.source_start or 0, (token.source_end or 0) + 1
        remainder = text[end:].lstrip()[1:] if text[start] == "{" else text[end:]
        text = f"{text[:start]}_python(0){remainder}"
    return text


def parsed(text: str) -> Any:
    """Return the terms of a formula, after checking each Python part.

    formulaic evaluates calls on the left of the ``~`` while it parses.
    """
    if len(text) > LONGEST:
        raise InputError(f"the formula has {len(text)} characters, more than {LONGEST}", "too_large")
    if _depth(text) > DEEPEST:
        raise InputError(f"the formula {shown(text)} has more than {DEEPEST} nested parentheses", "too_large")
    tokens = list(tokenize(text))
    if len(tokens) > MOST_TOKENS:
        raise InputError(
            f"the formula {shown(text)} has {len(tokens)} names and signs, more than {MOST_TOKENS}", "too_large"
        )
    parser = _Parser(operator_resolver=_Operators(text))
    parser.written = [Expression(token.token).written for token in _python_of(tokens)]
    return Formula.from_spec(_masked(text, _python_of(tokens)), parser=parser)


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        depth = max(0, depth + (character in "([{") - (character in ")]}"))
        deepest = max(deepest, depth)
    return deepest


def columns_of(factor: Any) -> list[str]:
    """Return the columns of the table that a factor uses."""
    if factor.eval_method.value == "python":
        return Expression(factor.expr).columns
    return [factor.expr] * (factor.eval_method.value == "lookup")


def most_columns_of(factor: Any) -> int:
    """Return the most columns that a factor without levels makes."""
    return Expression(factor.expr).most_columns if factor.eval_method.value == "python" else 1


class _Materializer(PandasMaterializer):
    """Evaluates checked expressions, with no other functions in reach."""

    @override
    def _evaluate(self, expr: str, metadata: object, spec: ModelSpec) -> Any:
        checked, variables = Expression(expr), set[Any]()
        quoted = {alias: self.layered_context[name] for alias, name in checked.quoted.items()}
        # a column with the name of a function must not replace it
        names = LayeredMapping({**functions(), **quoted}, self.layered_context)
        state = spec.transform_state
        return stateful_eval(checked.text, names, {expr: metadata}, state, spec, variables=variables), variables


def materialized(terms: Any, state: dict[Any, Any], categories: Mapping[str, Any], frame: Any) -> Any:
    """Return the matrix of the columns of terms for a table, with statistics of the rows of the fit."""
    encoders = {name: (Factor.Kind.CATEGORICAL, {"categories": list(values)}) for name, values in categories.items()}
    options = {"transform_state": state, "encoder_state": encoders, "na_action": "raise", "output": "pandas"}
    spec = ModelSpec(formula=terms, **options)
    return _Materializer(frame, context=closed()).get_model_matrix(spec)
