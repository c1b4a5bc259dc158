"""Formulas read by formulaic: the columns of their terms, and the state that new rows need for the same columns."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import prod
from types import ModuleType
from typing import Any, Self

import lazy_loader
import numpy as np

from bayeszoo.data.inputs.features.levels import Coding, Feature
from bayeszoo.data.inputs.labels import joined, text_of
from bayeszoo.data.table.table import listed, shown
from bayeszoo.errors import InputError

formulaic = lazy_loader.load("formulaic")
MOST_COLUMNS = 10_000
"""Most columns of a formula."""


@dataclass(frozen=True)
class FormulaCoding(Coding):
    """How the right side of a formula converts features to columns of numbers.

    Parameters
    ----------
    formula : str
        The right side of the formula.
    state : mapping of str to object
        Statistics that transforms such as ``center(x)`` took from the rows of the fit, ready for JSON.
    categories : mapping of str to list
        The values of each factor with levels.
    terms : mapping of str to list of str
        The levels of factors that are compared with a reference, the reference first.
    variables : mapping of str to list of str
        The columns of the table that each column of numbers is computed from.
    """

    formula: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    categories: Mapping[str, list[Any]] = field(default_factory=dict)
    terms: Mapping[str, list[str]] = field(default_factory=dict)
    variables: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str, levels: Mapping[str, list[str]]) -> tuple[str | None, Self]:
        """Read ``outcome ~ terms``: return the outcome, if it is named, and the part of the coding without rows."""
        with _refused(text):
            spec = _parsed(text)
        outcome, terms = getattr(spec, "lhs", None), getattr(spec, "rhs", spec)
        named = [factor for term in outcome or () for factor in term.factors]
        if outcome is not None and not (len(named) == 1 and named[0].eval_method.value == "lookup"):
            raise InputError(
                f"the outcome of the formula {shown(text)} is no column",
                "missing_column",
                hint="write it as a column first",
            )
        if not isinstance(terms, formulaic.SimpleFormula):
            raise InputError(
                f"the formula {shown(text)} has several parts", "bad_formula", hint="write outcome ~ terms"
            )
        if "1" not in map(str, terms):
            hint = "leave out the 0 or -1, and say --set intercept=false"
            raise InputError(f"the formula {shown(text)} has no intercept", "bad_formula", hint=hint)
        written = text.rpartition("~")[2].strip()
        with _refused(text):
            coding = cls(_variables_of(terms), levels, formula=written)
        return named[0].expr if named else None, coding

    def __bool__(self) -> bool:
        """Return True, as the columns differ from those of the table."""
        return True

    @property
    def plain(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        details = {name: getattr(self, name) for name in ("formula", "state", "categories", "terms", "variables")}
        return {"features": [*self.features], "levels": dict(self.levels), "interactions": [], **details}

    @property
    def levels_of_terms(self) -> Mapping[str, list[str]]:
        """The levels of each term with levels."""
        return self.terms

    @property
    def made_of(self) -> Mapping[str, list[str]]:
        """The columns of the table that each column of numbers is computed from."""
        return self.variables

    def columns(self, features: Sequence[Feature]) -> tuple[Self, dict[str, np.ndarray]]:
        """Return the coding, by these rows or by those of the fit, and the columns of the terms."""
        if self.categories or self.state or self.variables:
            spec, columns = self._materialized(features)
            if _encoded(spec.transform_state) != self.state:  # the columns would use the mean of these rows
                problem = f"the formula {shown(self.formula)} needs statistics of new rows that the fit does not have"
                raise InputError(problem, "bad_formula", hint="fit again with this version")
            return self, columns
        spec, columns = self._materialized(features)
        coding = replace(self, **_learnt(spec, columns))
        if any(not np.array_equal(values, columns[name]) for name, values in coding._materialized(features)[1].items()):
            raise InputError(
                f"the formula {shown(self.formula)} cannot be kept with a fit",
                "bad_formula",
                hint="make the column first",
            )
        return coding, columns

    def _materialized(self, features: Sequence[Feature]) -> tuple[Any, dict[str, np.ndarray]]:
        """Return the specification and the columns from formulaic; statistics of the fit are in the state."""
        import pandas as pd

        frame = pd.DataFrame({feature.column.name: _series(feature) for feature in features})
        with _refused(self.formula):
            terms = _parsed(self.formula)
            self._refuse_new_categories(terms, features)
            self._refuse_many_columns(terms, features)
            with np.errstate(all="ignore"), _refused_levels(self.formula):  # non-finite numbers are refused below
                matrix = _parser().materialized(terms, _decoded(self.state), self.categories, frame)
        columns = {_name(name): matrix[name].to_numpy(np.float64) for name in matrix if name != "Intercept"}
        for name, values in columns.items():
            if not np.isfinite(values).all():
                rows = listed(np.flatnonzero(~np.isfinite(values)))
                raise InputError(
                    f"{shown(name)} of the formula is not finite in {rows} of those with all values", "out_of_range"
                )
        return matrix.model_spec, columns

    def _refuse_new_categories(self, terms: Any, features: Sequence[Feature]) -> None:
        """Refuse new numbers in levels ``C(x)``; new words are refused by reading."""
        by_name = {feature.column.name: feature for feature in features}
        for term in terms:
            for factor in term.factors:
                call = re.match(r"C\((?:(\w+)|`([^`]*)`)[,)]", factor.expr)
                feature = by_name.get(call[1] or call[2]) if call else None
                if feature is not None and feature.levels is None and factor.expr in self.categories:
                    new = sorted({*feature.values.tolist()} - {*self.categories[factor.expr]})
                    if new:
                        problem = f"{feature.column}: {new[0]:g} is no level of {factor.expr} in the fit"
                        raise InputError(
                            problem,
                            "bad_formula",
                            column=feature.column.name,
                            hint="leave it out, or fit again with it",
                        )

    def _refuse_many_columns(self, terms: Any, features: Sequence[Feature]) -> None:
        """Refuse products of factors with too many levels before formulaic makes their columns."""
        by_name = {feature.column.name: feature for feature in features}
        count = -1  # the intercept does not count
        for term in terms:
            of_factors = ([*_parser().columns_of(factor)] for factor in term.factors if _has_levels(factor, by_name))
            levels = prod(len(np.unique(by_name[name].values)) for names in of_factors for name in names[:1])
            count += levels * prod(map(_parser().most_columns_of, term.factors))
        if count > MOST_COLUMNS:
            hint = f"at most {MOST_COLUMNS}: use the numbers as they are, or fewer levels"
            raise InputError(f"the formula {shown(self.formula)} makes {count} columns", "too_large", hint=hint)

    def notes(self, features: Sequence[Feature]) -> list[str]:
        """Return notes on the levels, and on the reference level of each term."""
        with_levels = [(feature.column, feature.levels) for feature in features if feature.levels is not None]
        notes = [f"{column}: levels {joined(levels)}" for column, levels in with_levels]
        return notes + [f"{term}: {levels[0]} is the reference" for term, levels in self.terms.items()]


def _has_levels(factor: Any, features: Mapping[str, Feature]) -> bool:
    """Say whether a factor has levels: a column of words, or the argument of ``C(...)``."""
    if factor.eval_method.value == "python":
        return factor.expr.startswith("C(") and any(name in features for name in _parser().columns_of(factor)[:1])
    return factor.expr in features and features[factor.expr].levels is not None


def _name(column: object) -> str:
    """Return the name of a column: a level that is a whole number has no decimal point."""
    return re.sub(r"(\[(?:[A-Z]\.)?-?\d+)\.0\]", r"\1]", str(column))


def _series(feature: Feature) -> Any:
    """Return a feature for formulaic: its numbers, or its levels in their order."""
    if feature.levels is None:
        return feature.values
    import pandas as pd

    categories: Any = feature.levels
    return pd.Categorical.from_codes(feature.values.astype(np.int64), categories=categories)


def _learnt(spec: Any, columns: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the statistics of the rows that the fit keeps."""
    states = {str(name): state for name, (_, state) in spec.encoder_state.items()}
    categories = {name: _encoded(list(state["categories"])) for name, state in states.items() if "categories" in state}
    terms = dict[str, list[str]]()
    for name, values in categories.items():
        levels = [text_of(value) for value in values]
        compared = [level for level in levels if f"{name}[T.{level}]" in columns]
        if len(compared) == len(levels) - 1:
            terms[name] = [*({*levels} - {*compared}), *compared]
    made_of = {
        _name(spec.column_names[i]): _variables_of([term]) for term, places in spec.term_indices.items() for i in places
    }
    kept = {name: made_of[name] for name in columns}
    return {"state": _encoded(spec.transform_state), "categories": categories, "terms": terms, "variables": kept}


def _encoded(value: object) -> Any:
    """Return the state of a transform ready for JSON, also with numbers as keys."""
    if isinstance(value, Mapping):
        return {"items": [[_encoded(key), _encoded(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple | np.ndarray):
        return [_encoded(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(f"a formula with a {type(value).__name__} in it cannot be kept with a fit", "bad_formula")


def _decoded(value: object) -> Any:
    if isinstance(value, Mapping):
        return {_decoded(key): _decoded(item) for key, item in value.get("items", [])}
    return [_decoded(item) for item in value] if isinstance(value, list) else value


@contextmanager
def _refused(text: str) -> Iterator[None]:
    """Turn an error of formulaic into one line; without formulaic, say how to install it."""
    try:
        yield
    except ModuleNotFoundError:
        raise InputError("formulas need formulaic", "missing_package", hint="pip install 'bayeszoo[formula]'") from None
    except (InputError, MemoryError):
        raise
    except Exception as error:  # an error in the formula, a transform, or its argument
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"formula {shown(text)}: {first or type(error).__name__}", "bad_formula") from None


@contextmanager
def _refused_levels(text: str) -> Iterator[None]:
    """Refuse values that are no level of the fit; formulaic would take them as the reference."""
    mismatch = formulaic.errors.DataMismatchWarning
    with warnings.catch_warnings():
        warnings.simplefilter("error", mismatch)
        try:
            yield
        except mismatch:
            problem = f"some rows have a value that is no level of the fit, by the formula {shown(text)}"
            raise InputError(problem, "bad_formula", hint="leave them out, or fit again with them") from None


def _variables_of(terms: Any) -> list[str]:
    """Return the columns of the table that terms use, in order."""
    return list(
        dict.fromkeys(name for term in terms for factor in term.factors for name in _parser().columns_of(factor))
    )


def _parser() -> ModuleType:
    """Return the module that uses formulaic, imported when it is needed."""
    formulaic.Formula  # noqa: B018 - raises if the library is missing
    return import_module("bayeszoo.data.inputs.features.terms")


def _parsed(text: str) -> Any:
    """Return the terms of a formula without evaluating it."""
    return _parser().parsed(text)


def coding_of(like: object) -> Coding | None:
    """Return how the features of data were coded, such as those of a fit; None where they are as in the table."""
    parts = getattr(like, "reading", {}).get("coding")
    return None if parts is None else (FormulaCoding if "formula" in parts else Coding)(**parts)


def levels_of(data: object) -> dict[str, list[str]]:
    """Return the levels of each feature, or term of a formula, with levels, the reference first."""
    coding = coding_of(data)
    return {} if coding is None else dict(coding.levels_of_terms)


def refuse_other_coding(like: object, data: object) -> None:
    """Refuse new rows whose formula was evaluated with their own statistics, such as the mean in ``center(x)``."""
    of_fit, of_rows = coding_of(like), coding_of(data)
    if isinstance(of_fit, FormulaCoding) and isinstance(of_rows, FormulaCoding) and of_rows.plain != of_fit.plain:
        problem = "the formula of these rows and that of the fit were not read with the same rows"
        raise InputError(problem, "formula_needs_fit", hint="give the table, which is then read like that of the fit")
