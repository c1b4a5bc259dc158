"""An outcome that is one of several classes, and the features that explain it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Layout, Parsed
from bayeszoo.data.inputs.counts import Outcomes
from bayeszoo.data.inputs.features.levels import Coding
from bayeszoo.data.inputs.labels import (
    Alphabet,
    Coded,
    checked_codes,
    checked_labels,
    in_order,
    label_array,
    texts_of,
)
from bayeszoo.data.inputs.labels import code as coded_of
from bayeszoo.data.inputs.regression import Columns, WithFeatures
from bayeszoo.data.table.table import Column, Table
from bayeszoo.foundation.named import Options

CLASS, CLASSES = "class", "classes"
_COUNTS = ("count", "counts", "freq", "frequency")
"""Names of columns that may count repeated rows; they are features only if named."""


@dataclass(frozen=True)
class ClassRegression(WithFeatures):
    """One column of labels, the class of each row, and columns of features, as in `WithFeatures`.

    The option ``classes`` lists the classes in order, the reference first; by default the occurring ones, in order. The
    canonical arrays are the codes `name`, the coordinate ``class`` of their labels, and those of `WithFeatures`.
    """

    options = WithFeatures.options | {CLASSES}
    lists = WithFeatures.lists | {CLASSES}
    kind, if_constant = np.int64, "no class is told from another but by the prior"
    holds = (
        "one column of labels ({0.name}, or say which with --target), the class of each row, and columns of features, "
        "all others or some of them (--features), of real numbers or of text, which has levels (--levels)"
    )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Codes of the classes, and named features."""
        unknown = {self.features, self.axis, CLASS}
        forms = (unknown | {self.name}, unknown)
        return Layout((self.axis, CLASS), {self.features: (self.axis,)}, {self.name: CLASS}, forms)

    def _target_and_coding(self, table: Table, options: Options) -> tuple[str, Coding]:
        target, coding = super()._target_and_coding(table, options)
        if not {"features", "formula"} & options.keys():
            refuse_unclear_counts(table, coding.features, "repeat each row as often as it occurs")
        return target, coding

    def _outcome(self, column: Column, options: Options, like: Arrays | None) -> Outcomes:
        return Outcomes(alphabet_of(options, like).coded(trimmed(column)).codes)

    def _arrays(self, columns: Columns, missing: str, like: Arrays | None, options: Options) -> Parsed:
        parsed = super()._arrays(columns, missing, like, options)
        alphabet = alphabet_of(options, like)
        if not columns.outcome:
            labels = {} if alphabet.labels is None else {CLASS: label_array(alphabet.labels)}
            return replace(parsed, arrays={**parsed.arrays, **labels})
        coded, notes = classes_of(columns.outcome[0], parsed.arrays[self.name], alphabet)
        arrays = {self.name: coded.codes.astype(np.int64), CLASS: label_array(coded.labels)}
        return replace(
            parsed,
            arrays={**arrays, **{k: v for k, v in parsed.arrays.items() if k != self.name}, **{CLASS: arrays[CLASS]}},
            notes=(*notes, *parsed.notes),
        )

    def _canonical(
        self, arrays: Mapping[str, object], missing: str, options: Mapping[str, object] | None = None
    ) -> Parsed:
        labels = checked_labels(CLASS, arrays[CLASS], least=2)
        parts = {name: values for name, values in arrays.items() if name != CLASS}
        if self.name in parts:
            _, codes = checked_codes(self.name, parts[self.name], labels)
            texts = ["" if np.isnan(code) else labels[int(code)] for code in codes]
            parts[self.name] = np.array(texts, dtype=str)
        return super()._canonical(parts, missing, {CLASSES: labels.tolist()})

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns under their names, the outcome as labels."""
        if not self.has_outcome(arrays):
            return super().table(arrays)
        return super().table({**arrays, self.name: arrays[CLASS][arrays[self.name]]})

    def reading(self, arrays: Arrays) -> Options:
        """Return options that name the outcome, if a feature has its name, and the classes, unless in order."""
        named = super().reading(arrays)
        if not self.has_outcome(arrays):
            return named
        return named | named_classes(arrays, self.name)


def named_classes(arrays: Arrays, name: str) -> dict[str, list[str]]:
    """Return the option that names the classes, unless they are the occurring ones, in order."""
    labels = arrays[CLASS].tolist()
    return {} if labels == in_order(arrays[CLASS][np.unique(arrays[name])].tolist()) else {CLASSES: labels}


def alphabet_of(options: Options, like: Arrays | None) -> Alphabet:
    """Return the classes of the fit or of the option ``classes``; else the alphabet is open."""
    return Alphabet.of("class", CLASSES, options.get(CLASSES), (like or {}).get(CLASS))


def trimmed(column: Column) -> Column:
    """Return the column with spaces around labels removed; empty labels are missing."""
    texts = texts_of(column)
    labels = {text: text.strip() for text in set(texts)}  # few of a million cells are distinct
    return replace(column, cells=[labels[text] for text in texts])


def classes_of(column: Column, codes: np.ndarray, alphabet: Alphabet) -> tuple[Coded, tuple[str, ...]]:
    """Return the codes of the kept rows among their classes, or those of the alphabet, and notes."""
    labels = alphabet.labels or coded_of(trimmed(column)).labels
    coded, notes = alphabet.finished(str(column), Coded(labels, codes.astype(np.float64)))
    counts = np.bincount(coded.codes.astype(np.int64), minlength=len(coded.labels))
    if alphabet.labels is None:
        refuse_measurements(column, len(coded.labels), len(coded.codes))
    single = [] if alphabet.fitted else [coded.labels[k] for k in np.flatnonzero(counts == 1)]
    return coded, (*notes, *[f"{column}: one row is of class {label}" for label in single[:5]])


def refuse_unclear_counts(table: Table, features: Iterable[str], remedy: str) -> None:
    """Refuse a column whose name suggests counts of rows, unless an option says what it is."""
    counts = next((name for name in features if name.lower() in _COUNTS), None)
    if counts is not None:
        hint = f"{remedy}, or if it is a feature name all features with --features"
        raise table[counts].error("may say how often each row occurs, which would be lost", "unclear_counts", hint=hint)


def refuse_measurements(column: Column, classes: int, rows: int) -> None:
    """Refuse a column of measurements or names of rows, with nearly as many classes as rows."""
    if classes > 2 and 2 * classes > rows:
        hint = "a number goes to linear_regression; if these are classes, name them with --classes"
        raise column.error(
            f"has {classes} classes in {rows} rows, as numbers or names of rows have", "names_of_rows", hint=hint
        )
