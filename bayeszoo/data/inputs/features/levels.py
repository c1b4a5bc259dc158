"""Text features: their levels, the columns of 0 and 1 for these, and products of features."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any, Self

import numpy as np

from bayeszoo.data.inputs.base import listing
from bayeszoo.data.inputs.labels import Alphabet, Coded, in_order, joined, repeated, spelled_alike, text_of, texts_of
from bayeszoo.data.table.cells import ALONE, MISSING, has_signs
from bayeszoo.data.table.table import Column, is_text, quoted, shown, to_reals
from bayeszoo.errors import InputError

Numbers = dict[str, np.ndarray]


@dataclass(frozen=True)
class Coding:
    """How features become columns of numbers.

    Parameters
    ----------
    features : sequence of str
        The columns of the table, in order.
    levels : mapping of str to list of str
        The levels of features with levels. The first is the reference; each other level has a column of 0 and 1, named
        ``colour[red]``.
    interactions : sequence of str
        Products ``a:b`` of features, column by column.
    """

    features: Sequence[str]
    levels: Mapping[str, list[str]] = field(default_factory=dict)
    interactions: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether any column differs from those of the table."""
        return bool(self.levels or self.interactions)

    @property
    def plain(self) -> dict[str, Any]:
        """The fields, ready for JSON; empty if the columns are those of the table."""
        parts = {"features": list(self.features), "levels": dict(self.levels), "interactions": [*self.interactions]}
        return parts if self else {}

    def expanded(self, values: Numbers) -> Numbers:
        """Return the columns of numbers, from numbers of features and codes of levels."""
        by_feature = {name: self._columns(name, values[name]) for name in self.features}
        products = [
            reduce(_times, (by_feature[name] for name in parts_of(term, by_feature))) for term in self.interactions
        ]
        columns = [item for part in (*by_feature.values(), *products) for item in part.items()]
        if twice := repeated([name for name, _ in columns]):
            raise InputError(
                f"two features would be called {shown(twice)}", "duplicate_name", hint="rename a column of the table"
            )
        return dict(columns)

    def _columns(self, name: str, values: np.ndarray) -> Numbers:
        if name not in self.levels:
            return {name: values}
        others = enumerate(self.levels[name][1:], 1)
        return {f"{name}[{level}]": (values == code).astype(np.float64) for code, level in others}

    @property
    def levels_of_terms(self) -> Mapping[str, list[str]]:
        """The levels of each term with levels, the reference first."""
        return self.levels

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of features, and of terms with levels, each with its levels."""
        return {**{name: [] for name in self.features}, **self.levels_of_terms}

    @property
    def made_of(self) -> Mapping[str, list[str]]:
        """The features that a column is computed from, if its name does not show them."""
        return {}

    def coded(self, features: Sequence[Feature]) -> tuple[Self, list[str], np.ndarray]:
        """Return the coding with the levels of the features read, and the names and the matrix of the columns."""
        levels = {feature.column.name: feature.levels for feature in features if feature.levels is not None}
        coding, columns = replace(self, levels=levels).columns(features)
        if not columns:
            raise InputError(
                "there is no feature, or each has one level", "no_data", hint="give one that differs between rows"
            )
        names, X = list(columns), np.column_stack([*columns.values()])
        _refuse_other_products(names, X)
        return coding, names, X

    def columns(self, features: Sequence[Feature]) -> tuple[Self, Numbers]:
        """Return the coding, and the columns of numbers."""
        return self, self.expanded({feature.column.name: feature.values for feature in features})

    def notes(self, features: Sequence[Feature]) -> list[str]:
        """Return notes on the levels and the reference."""
        return [note for feature in features for note in feature.notes]


def _times(first: Numbers, second: Numbers) -> Numbers:
    return {f"{a}:{b}": x * y for a, x in first.items() for b, y in second.items()}


# Products


def products(names: Iterable[str]) -> dict[int, list[int]]:
    """Map the index of each interaction column ``a:b`` to the indices of its factor columns."""
    place = {str(name): i for i, name in enumerate(names)}
    factors = {i: _factors(name, place) for name, i in place.items() if ":" in name}
    return {i: [place[name] for name in names] for i, names in factors.items() if names}


def _factors(name: str, known: Mapping[str, object]) -> list[str]:
    """Split ``a:b:c`` into known names, which may have colons; empty if it is no product."""
    for colon in (i for i, character in enumerate(name) if character == ":"):
        left, right = name[:colon], name[colon + 1 :]
        if left in known and (others := _factors(right, known) or [right] * (right in known)):
            return [left, *others]
    return []


def by_feature(names: Iterable[str], known: Mapping[str, Sequence[str]] | None = None) -> dict[str, list[int]]:
    """Return the places of the columns of each feature, such as ``colour[red]`` for ``colour``.

    Columns such as ``age:colour[red]`` belong to the interaction ``age:colour``; a column without levels is a feature.
    A feature with a bracket in its name is recognized if it and its levels are ``known``.
    """
    known = known or {}
    place = {str(name): i for i, name in enumerate(names)}
    places = dict[str, list[int]]()
    for name, i in place.items():
        factors = (_heads(part) for part in _factors(name, place) or [name])
        features = (next((head for head in heads if _is_of(heads[0], head, known)), heads[-1]) for heads in factors)
        places.setdefault(":".join(features), []).append(i)
    return places


def _is_of(column: str, feature: str, known: Mapping[str, Sequence[str]]) -> bool:
    """Say whether a column is a known feature, or one of its levels: ``colour[red]``, or ``[T.red]`` in formulas."""
    level = column[len(feature) + 1 : -1]
    return feature in known and (
        column == feature or not {level, level.removeprefix("T.")}.isdisjoint(known[feature][1:])
    )


def by_any_name(names: Iterable[str]) -> dict[str, list[int]]:
    """Return the places of columns by each name: of one column, or of all levels of a feature or a product."""
    place = {str(name): i for i, name in enumerate(names)}
    places = dict[str, list[int]]()
    for name, i in place.items():
        for factors in product(*map(_heads, _factors(name, place) or [name])):
            places.setdefault(":".join(factors), []).append(i)
    return places | {name: [i] for name, i in place.items()}


def _heads(column: str) -> list[str]:
    """Return the features that a column may belong to: itself, and each name before a ``[level]``, longest first."""
    places = range(len(column) - 1, 0, -1) if column.endswith("]") else ()
    return [column, *(column[:place] for place in places if column[place] == "[")]


def parts_of(term: str, features: Mapping[str, object]) -> list[str]:
    """Return the factors of an interaction ``a:b``."""
    parts = _factors(term, features)
    if not parts:
        hint = "name an interaction as a:b, of features that are used"
        unknown = next((part for part in term.split(":") if part not in features), None)
        problem = "is not a product of features" if unknown is None else f"has no feature {shown(unknown)}"
        raise InputError(f"interaction {shown(term)} {problem}", "bad_formula", hint=hint)
    if twice := repeated(parts):
        raise InputError(
            f"interaction {shown(term)} has {shown(twice)} twice",
            "duplicate_name",
            hint="use --set degree=2 for powers",
        )
    return parts


def _refuse_other_products(labels: Sequence[str], X: np.ndarray) -> None:
    """Refuse a column that is called as a product of other features and is not: models take it for that."""
    for j, parts in products(labels).items():
        if not np.allclose(X[:, j], np.prod(X[:, parts], axis=1), rtol=1e-9, atol=0.0):
            factors = " and ".join(shown(labels[i]) for i in parts)
            problem = f"column {shown(labels[j])} is not the product of {factors}, as its name says"
            raise InputError(problem, "text_is_no_measurement", column=labels[j], hint="rename it")


# Levels


def asked_levels(value: object) -> dict[str, list[str]]:
    """Read the requested levels: a mapping, or text ``"colour=red,green,blue"``, or a list of texts."""
    if isinstance(value, Mapping):
        return {str(name): _checked(str(name), levels) for name, levels in value.items()}
    asked = dict[str, list[str]]()
    for item in [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else [None]:
        name, equals, levels = item.partition("=") if isinstance(item, str) else ("", "", "")
        if not (name and equals) or name in asked:
            problem = f"levels of {shown(name)} are given twice" if name in asked else f"levels: {shown(item)}"
            raise InputError(problem, "text_is_no_measurement", hint="write colour=red,green,blue, the reference first")
        asked[name] = _checked(name, next(csv.reader([levels], skipinitialspace=True), []))
    return asked


def _checked(name: str, levels: object) -> list[str]:
    if not isinstance(levels, list | tuple | np.ndarray):
        raise InputError(f"the levels of {shown(name)} must be a list, got {shown(levels)}", "wrong_type")
    names = [text_of(level).strip() for level in levels]
    if not names or not all(names):
        raise InputError(
            f"the levels of {shown(name)} hold an empty one" if names else f"{shown(name)} has no levels", "empty_name"
        )
    if twice := repeated(names):
        raise InputError(f"levels of {shown(name)}: {shown(twice)} appears twice", "duplicate_name")
    return names


@dataclass(frozen=True)
class Feature:
    """A column read as a feature: numbers, or the codes of its levels, NaN where a value is missing.

    ``fixed`` levels, such as requested ones, stay even if no row has them.
    """

    column: Column
    values: np.ndarray
    levels: list[str] | None = None
    fixed: bool = False

    @classmethod
    def read(cls, column: Column, coding: Coding, is_named: bool) -> Self:
        """Read a column of a table to fit; ``is_named`` if the user named it as a feature."""
        levels = coding.levels.get(column.name)
        if levels is None and not is_text(column):
            return cls(column, to_reals(column))
        feature = cls.of_levels(column, levels)
        if levels is None:
            refuse_identifier(feature, coding.features, is_named)
        return feature

    @classmethod
    def of_levels(cls, column: Column, levels: list[str] | None) -> Self:
        """Read a column as codes of the given levels, else of the occurring ones."""
        if levels is None and column.before is not None:
            hint = f"name them with --levels {listing([column.name])}=..."
            raise InputError(
                f"the levels of {column} must be known before the first chunk", "labels_must_be_given", hint=hint
            )
        feature = cls._coded(column, Alphabet.of("level", "levels", levels, None))
        column = column if levels else replace(column, if_marked=_if_marked(column, feature.levels or ()))
        return replace(feature, column=column, fixed=levels is not None)

    @classmethod
    def read_new(cls, column: Column, levels: Mapping[str, list[str]]) -> Self:
        """Read a column of new rows with the levels of the fit."""
        if column.name not in levels:
            return cls(column, to_reals(column))
        return cls._coded(column, Alphabet("level", "levels", list(levels[column.name]), fitted=True))

    @classmethod
    def _coded(cls, column: Column, alphabet: Alphabet) -> Self:
        """Code a column; a mark of a missing value is missing, unless it is one of the given levels."""
        texts, levels = texts_of(column), set(alphabet.labels or ())
        trimmed = {cell: cell.strip() for cell in set(texts)}  # few of a million cells are distinct
        labels = {
            cell: "" if text.lower() in MISSING and text not in levels else text for cell, text in trimmed.items()
        }
        coded = alphabet.coded(replace(column, cells=[labels[text] for text in texts]))
        return cls(column, coded.codes, coded.labels, fixed=True)

    def of_rows(self, values: np.ndarray) -> Self:
        """Return the feature with the values of kept rows, without levels that no longer occur."""
        if self.levels is None or self.fixed:
            return replace(self, values=values)
        kept = Coded(self.levels, values).trimmed()
        return replace(self, values=kept.codes, levels=kept.labels)

    @property
    def notes(self) -> list[str]:
        """Notes on the levels and the reference."""
        if self.levels is None:
            return []
        if len(self.levels) == 1:
            return [f"{self.column} has one level, {joined(self.levels)}: nothing is compared with it"]
        notes = [f"{self.column}: levels {joined(self.levels)}; {joined(self.levels[:1])} is the reference"]
        present, is_part = set(self.values.tolist()), self.column.before is not None
        never = [level for code, level in enumerate(self.levels) if code not in present and not is_part]
        notes += [f"{self.column}: {joined(never)} never occur{'s' * (len(never) == 1)}"] if never else []
        return notes + spelled_alike(self.column, self.levels, "levels")


def _if_marked(column: Column, levels: Sequence[str]) -> str:
    """Return how to make marks of missing values, as NA, levels; empty if the column has none."""
    if not (marks := sorted({text.strip() for text in texts_of(column) if text.strip().lower() in MISSING - {""}})):
        return ""
    word, verb = ("level", "is a") if len(marks) == 1 else ("levels", "are")
    named = f"--levels {listing([column.name])}={listing(in_order([*levels, *marks], column.decimal))}"
    return f"if {quoted(marks)} {verb} {word}, name all: {named}"


def refuse_identifier(feature: Feature, features: Sequence[str], is_named: bool, rows: int | None = None) -> None:
    """Refuse a column of names of rows, with nearly as many levels as rows.

    A table of counts has more rows than lines.
    """
    levels, rows = len(feature.levels or ()), len(feature.column) if rows is None else rows
    if rows > 1 and (levels == rows or (2 * levels > rows and not is_named)):
        others = [name for name in features if name != feature.column.name]
        hint = f"leave it out: --features {listing(others)}" if others else "name other features"
        hint = ALONE if all(map(has_signs, feature.levels or ())) else hint
        raise feature.column.error(
            f"has {levels} levels in {rows} rows, as names of the rows have", "names_of_rows", hint=hint
        )
