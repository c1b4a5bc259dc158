"""Labels of the values along an axis, their codes 0, 1, ..., and checks that they match those of a fit."""

from __future__ import annotations

import numbers
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.data.table.cells import MISSING, number
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import DATES, Column, escaped, quoted, shown, to_counts
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays

_MOST_SHOWN = 20


class Coded(NamedTuple):
    """A column of labels as codes: the distinct labels in order, and a code for each row, NaN where missing."""

    labels: list[str]
    codes: np.ndarray

    def trimmed(self) -> Self:
        """Return the column without labels that no row has."""
        present = np.unique(self.codes[~np.isnan(self.codes)]).astype(np.int64)
        return self if len(present) == len(self.labels) else self.among([self.labels[i] for i in present])

    def spelled_as(self, labels: Sequence[str]) -> Self:
        """Return the column with whole numbers spelled as in other labels: 2.0, which a table with gaps has for 2."""
        wholes = [_whole(label) for label in labels]
        often, known = Counter(wholes), {*labels}
        spelled = {whole: label for whole, label in zip(wholes, labels, strict=True) if whole and often[whole] == 1}
        names = [label if label in known else spelled.get(_whole(label), label) for label in self.labels]
        return type(self)(names, self.codes)

    def among(self, labels: list[str]) -> Self:
        """Return the column in the codes of other labels, NaN for labels that are not among them."""
        place = {label: float(i) for i, label in enumerate(labels)}
        places, present = np.array([place.get(label, np.nan) for label in self.labels]), ~np.isnan(self.codes)
        codes = np.full(len(self.codes), np.nan)
        codes[present] = places[self.codes[present].astype(np.int64)]
        return type(self)(labels, codes)


def _whole(label: str) -> str:
    """Return a label that is a whole number without its decimal point and zeros; empty for other labels."""
    match = re.fullmatch(r"(-?[0-9]+)(?:[.]0+)?", label)
    return match[1] if match else ""


def text_of(value: Any) -> str:
    """Return a value as a label; a whole number has no decimal point."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole and abs(float(value)) < 1e16 else str(value)


def code(column: Column) -> Coded:
    """Give each distinct label of a column a code, in the order of `in_order`; an empty cell is missing."""
    texts = texts_of(column)
    labels = in_order({*texts} - {""}, column.decimal)
    place = {"": np.nan, **{label: float(i) for i, label in enumerate(labels)}}
    return Coded(labels, np.fromiter(map(place.__getitem__, texts), np.float64, len(texts)))


def in_order(labels: Iterable[str], decimal: str = ".") -> list[str]:
    """Sort labels, as numbers if every word is a number."""
    labels = sorted(labels)
    words = (number(word, decimal) for label in labels for word in label.split(" "))
    if any(word is None or np.isnan(word) for word in words):
        return labels
    return sorted(labels, key=lambda label: [number(word, decimal) for word in label.split(" ")])


def texts_of(column: Column) -> list[str]:
    """Return every value as text, "" where missing."""
    if isinstance(column.values, list):
        return column.values
    if column.values.dtype.kind in "biuf":
        distinct, places = np.unique(column.values, return_inverse=True)
        texts = ["" if cell != cell else text_of(cell) for cell in distinct.tolist()]
        return [texts[place] for place in places.tolist()]
    cells = column.values.tolist()
    kinds = {type(cell) for cell in cells if cell is not None}
    if column.values.dtype.kind in "mM" or any(issubclass(kind, DATES) for kind in kinds):
        raise column.error("holds dates", "dates")
    allowed = (str, numbers.Real, np.bool_, Decimal)
    other = [row for row, cell in enumerate(cells) if not (cell is None or isinstance(cell, allowed))]
    if other:
        hint = None if isinstance(cells[other[0]], Sized) else "make them text: .astype(str)"  # as periods or intervals
        raise column.error("is neither text nor a number", "wrong_type", other, hint)
    return ["" if cell is None else text_of(cell) for cell in cells]


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The labels of an axis, from a fit or an option; None for those that occur."""

    noun: str
    plural: str
    labels: list[str] | None
    fitted: bool

    @classmethod
    def of(cls, noun: str, plural: str, names: list[str] | None, like: np.ndarray | None) -> Self:
        """Use the labels of the fit if there are any; labels in ``names`` must match them."""
        fitted = None if like is None else like.tolist()
        if fitted is not None and names not in (None, fitted):
            raise InputError(
                f"{plural} must be those of the fit, in their order", "labels_differ", hint=f"leave out --{plural}"
            )
        return cls(noun, plural, names if fitted is None else fitted, fitted is not None)

    def coded(self, column: Column) -> Coded:
        """Return a column as codes; refuse labels that are not in the alphabet."""
        coded = code(column)
        if self.labels is None:
            return coded
        recoded = coded.spelled_as(self.labels).among(self.labels)
        unknown = np.flatnonzero(np.isnan(recoded.codes) & ~np.isnan(coded.codes))
        if len(unknown):
            raise column.error(f"is not {self._among}", "unknown_label", unknown, hint=self._hint, noun=self.noun)
        return recoded

    def places(self, columns: Sequence[str]) -> tuple[list[str], list[int]]:
        """Return the labels, and the index among them of each column name."""
        labels = list(columns) if self.labels is None else self.labels
        place = {label: i for i, label in enumerate(labels)}
        unknown = next((name for name in columns if name not in place), None)
        if unknown is not None:
            raise InputError(
                f"{self.noun} {shown(unknown)} is not {self._among}", "unknown_label", column=unknown, hint=self._hint
            )
        present = set(columns)
        missing = next((label for label in labels if label not in present), None)
        if self.fitted and missing is not None:
            raise InputError(
                f"the table has no column {shown(missing)}, a {self.noun} of the fit", "missing_column", column=missing
            )
        return labels, [place[name] for name in columns]

    @property
    def _among(self) -> str:
        return f"among the {len(self.labels or ())} {'of the fit' if self.fitted else 'given'}"

    @property
    def _hint(self) -> str:
        return "leave it out, or fit again with it" if self.fitted else f"add it to --{self.plural}"

    def finished(self, where: str, coded: Coded) -> tuple[Coded, tuple[str, ...]]:
        """Return the column without labels that no longer occur, unless an option lists them; and notes on labels."""
        if self.labels is None:
            coded = coded.trimmed()
        notes = self.notes(where, coded.labels, coded.trimmed().labels)
        return coded, notes + (_about_missing(where, coded.labels) if self.labels is None else ())

    def notes(self, where: str, labels: Sequence[str], present: Sequence[str]) -> tuple[str, ...]:
        """Refuse fewer than two labels; return notes on the labels, and on requested ones that do not occur."""
        if len(labels) < 2:
            holds = f"only the {self.noun} {shown(labels[0])}" if labels else f"no {self.noun}"
            raise InputError(
                f"{where} has {holds}, at least two are needed", "no_data", hint=f"give all with --{self.plural}"
            )
        if self.fitted:
            return ()
        occurring = set(present)
        never = [] if self.labels is None else [label for label in self.labels if label not in occurring]
        coding = f"{where}: {self.plural} {joined(labels)}"
        nouns, occurs = (self.noun, "occurs") if len(never) == 1 else (self.plural, "occur")
        return (coding, f"{where}: {nouns} {joined(never)} never {occurs}") if never else (coding,)


def _about_missing(where: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Return a note on labels that mean a missing value in other columns."""
    names = [label for label in labels if label.strip().lower() in MISSING]
    hint = "leave the cell empty where a value is missing"
    return (
        f"{where}: {quoted(names)} {'is a label' if len(names) == 1 else 'are labels'} like the others; {hint}",
    ) * bool(names)


def label_array(labels: Sequence[str]) -> np.ndarray:
    """Return the array of a coordinate."""
    array = np.array(labels, dtype=str)
    if array.tolist() != list(labels):
        raise InputError("a label ends in a NUL character", "nul_character", hint="rename it")  # which NumPy drops
    return array


def checked_labels(name: str, values: object, least: int) -> np.ndarray:
    """Return a checked coordinate from the user: distinct text, at least `least` labels."""
    column = to_column(name, values)
    if not isinstance(column.values, list):
        raise InputError(f"{name} must hold text labels", "wrong_type", column=name)
    labels = column.values
    if len(labels) < least:
        raise InputError(f"{name} holds {len(labels)} labels, at least {least} expected", "wrong_shape", column=name)
    twice = repeated(labels)
    if twice is not None:
        raise InputError(f"{name}: label {shown(twice)} appears twice", "duplicate_name", column=name)
    return label_array(labels)


def repeated(labels: Sequence[str]) -> str | None:
    """Return the first label that appears twice, if any."""
    counts = Counter(labels)
    return next((label for label in labels if counts[label] > 1), None)


def checked_codes(name: str, values: object, labels: np.ndarray) -> tuple[Column, np.ndarray]:
    """Return checked codes from the user, NaN where missing: whole numbers below the number of labels."""
    column = to_column(name, values)
    if not len(column):
        raise InputError("no data rows", "no_data")
    codes = to_counts(column)
    column.refuse(codes >= len(labels), f"is outside the codes 0 to {len(labels) - 1}", "unknown_label")
    return column, codes


def names_listed(text: str | None) -> list[str]:
    """Return the names in a comma-separated option; none if it is not set."""
    return [] if text is None else [name.strip() for name in text.split(",")]


def joined(labels: Sequence[str]) -> str:
    """Return labels in a line for a note, at most 20 of them."""
    more = f", ... ({len(labels)} in all)" if len(labels) > _MOST_SHOWN else ""
    names = [escaped(label if len(label) <= 40 else label[:37] + "...") for label in labels[:_MOST_SHOWN]]
    return ", ".join(names) + more


def spelled_alike(column: Column, labels: Iterable[str], nouns: str = "groups") -> list[str]:
    """Return notes on groups, or other ``nouns``, whose names differ only in case or spaces."""
    spelled = defaultdict[str, list[str]](list)
    for label in labels:
        spelled["".join(label.casefold().split())].append(label)
    return [
        f"{column}: {quoted(names)} are taken for different {nouns}" for names in spelled.values() if len(names) > 1
    ]


# Labels of data, and of a fit or a model that was updated

OUTCOMES = "outcomes"
"""The name under which data, and models that they updated, keep the labels of a binary outcome."""
_ZERO_ONE = ("0", "1")


def outcomes_of(data: Arrays) -> tuple[str, str]:
    """Return the labels of a binary outcome that are 0, empty if unknown, and 1."""
    negative, positive = getattr(data, "reading", {}).get(OUTCOMES, _ZERO_ONE)
    return negative, positive


def labels_of(
    axes: Iterable[str], is_binary: bool, data: Arrays, before: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the labels along the axes, and those of a binary outcome in these data or in earlier data."""
    labels = {name: tuple(map(str, data[name])) for name in axes}
    if not is_binary:
        return labels
    candidates = before.get(OUTCOMES, _ZERO_ONE), outcomes_of(data)
    return labels | {OUTCOMES: max(candidates, key=lambda pair: (pair != _ZERO_ONE, all(pair)))}


def refuse_other_outcomes(known: tuple[str, ...], data: Arrays) -> None:
    """Refuse labels that changed their meaning, or are new; 0 and 1 go with any other labels."""
    present = outcomes_of(data)
    match = present[1] == known[1] and (present[0] == known[0] or "" in (present[0], known[0]))
    if match or (_ZERO_ONE in (present, known) and present[0] != known[1] and present[1] != known[0]):
        return
    before = " and ".join(f"{shown(label)} is {code}" for code, label in enumerate(known) if label)
    now = " and ".join(f"{shown(label)} is {code}" for code, label in enumerate(present) if label)
    raise InputError(
        f"in these rows {now}, but before {before}", "same_words_needed", hint=f"use --positive {shlex.quote(known[1])}"
    )


def refuse_other_labels(labels: Mapping[str, tuple[str, ...]], data: Arrays) -> None:
    """Refuse data whose labels differ from those of an updated model."""
    for axis, wanted in labels.items():
        if axis == OUTCOMES:
            refuse_other_outcomes(wanted, data)
        elif tuple(data[axis]) != wanted:
            present, expected = (", ".join(map(shown, labels[:5])) for labels in (data[axis].tolist(), wanted))
            hint = "name all of them, in that order, with the option of reading for them"
            raise InputError(
                f"the data have {axis} {present}, but the prior is for {expected}", "labels_differ", hint=hint
            )
