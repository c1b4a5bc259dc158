"""Ratings: the labels that raters gave to items, any number of times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Parsed
from bayeszoo.data.inputs.labels import Alphabet, Coded, checked_labels, code, in_order, label_array, spelled_alike
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import Table, complete, refuse_sum, shown, to_counts
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

COUNTS, ITEM, RATER, CLASS, LABEL = "counts", "item", "rater", "class", "label"

MOST_COUNTS = 20_000_000
"""Most counts, including zeros, of a table of items, raters and classes."""


@dataclass(frozen=True)
class Ratings(Inputs):
    """Labels that raters gave to items, one rating in a row; rows may repeat, and raters need not rate every item.

    The table has columns ``item``, ``rater`` and ``label``, or others named by these options. ``classes`` and
    ``raters`` list all labels and all raters, in order; by default the occurring ones.

    The canonical arrays are ``counts``, shape (items, raters, classes), the number of times that each rater gave each
    label; and the coordinates ``item``, in order of occurrence, ``rater`` and ``class``. A row is an item. The table of
    a fit has an item with two ratings: single ratings do not show how often raters err.
    """

    name: str = COUNTS
    row_names = ITEM
    options = frozenset({ITEM, RATER, LABEL, "classes", "raters"})
    lists = frozenset({"classes", "raters"})
    layout = Layout((ITEM, RATER, CLASS), {COUNTS: (RATER, CLASS)}, {}, ({COUNTS, ITEM, RATER, CLASS},))
    holds = "columns item, rater and label (--item, --rater, --label), a rating a row"

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        columns = {role: table[options.get(role, role)] for role in (ITEM, RATER, LABEL)}
        if len({column.name for column in columns.values()}) < len(columns):
            raise InputError("one column cannot be two of item, rater and label", "conflicting_options")
        raters, classes = (_alphabet(noun, options, like) for noun in (RATER, CLASS))
        coded = [code(columns[ITEM]), raters.coded(columns[RATER]), classes.coded(columns[LABEL])]
        codes, dropped = complete(list(columns.values()), [column.codes for column in coded], missing)
        items, ratings_by, labels = (Coded(column.labels, kept) for column, kept in zip(coded, codes, strict=True))
        items = items.trimmed()
        by_occurrence = np.argsort(np.unique(items.codes, return_index=True)[1])
        items = items.among([items.labels[i] for i in by_occurrence])
        ratings_by = ratings_by if raters.labels else ratings_by.trimmed()
        labels, notes = classes.finished(str(columns[LABEL]), labels)
        notes += tuple(spelled_alike(columns[RATER], ratings_by.labels, "raters"))
        counts = _counted(items, ratings_by, labels)
        if like is None and columns[ITEM].before is None and counts.sum(axis=(1, 2)).max() < 2:
            hint = "give items that several raters rate"
            raise InputError("no item has two ratings: nothing says how often raters err", "not_identified", hint=hint)
        coords = {ITEM: items.labels, RATER: ratings_by.labels, CLASS: labels.labels}
        arrays = {COUNTS: counts, **{axis: label_array(names) for axis, names in coords.items()}}
        return Parsed(arrays, {role: column.name for role, column in columns.items()}, (*notes, *dropped))

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        least = {ITEM: 1, RATER: 1, CLASS: 2}
        coords = {axis: checked_labels(axis, arrays[axis], least[axis]) for axis in self.coords}
        counts, shape = np.asarray(arrays[COUNTS]), tuple(map(len, coords.values()))
        if counts.shape != shape:
            raise InputError(f"counts have shape {counts.shape}, but the labels are {shape}", "wrong_shape")
        column = to_column(COUNTS, counts.reshape(-1))
        (values,), _ = complete([column], [to_counts(column)], "refuse")
        refuse_sum(column, values)
        counts = values.astype(np.int64).reshape(shape)
        if len(unrated := np.flatnonzero(~counts.any(axis=(1, 2)))):
            raise InputError(f"item {shown(coords[ITEM][unrated[0]])} has no rating", "no_data", hint="leave it out")
        return Parsed({COUNTS: counts, **coords}, {})

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return one rating in a row, in the order of items, whatever the order of raters and classes."""
        counts = np.asarray(arrays[COUNTS])
        codes = np.repeat(np.argwhere(counts > 0), counts[counts > 0], axis=0).T
        raters, labels = arrays[RATER][codes[1]], arrays[CLASS][codes[2]]
        order = np.lexsort((labels, raters, codes[0]))
        return {ITEM: arrays[ITEM][codes[0]][order], RATER: raters[order], LABEL: labels[order]}

    def reading(self, arrays: Arrays) -> Options:
        """Return options that list raters and classes, unless they are the occurring ones, in order."""
        options: dict[str, Any] = {}
        for option, axis, others in (("raters", RATER, (0, 2)), ("classes", CLASS, (0, 1))):
            occur = in_order(arrays[axis][arrays[COUNTS].any(axis=others)].tolist())
            options |= {} if arrays[axis].tolist() == occur else {option: arrays[axis].tolist()}
        return options

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Return the items at the indices `permutation`, in its order."""
        return {**arrays, **{name: arrays[name][permutation] for name in (COUNTS, ITEM)}}

    def relabelled(self, arrays: Arrays, axis: str, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Put the labels of `axis` in the order of `permutation`; for items this reorders the rows."""
        if axis == ITEM:
            return self.reordered(arrays, permutation)
        return super().relabelled(arrays, axis, permutation)

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further items without ratings."""
        return {**super().unseen(arrays, rows), ITEM: np.array([str(i + 1) for i in range(rows)])}


def _alphabet(axis: str, options: Options, like: Arrays | None) -> Alphabet:
    plural = {RATER: "raters", CLASS: "classes"}[axis]
    return Alphabet.of(axis, plural, options.get(plural), None if like is None else like[axis])


def _counted(*coded: Coded) -> np.ndarray:
    """Return the counts of combinations of codes."""
    shape = tuple(len(column.labels) for column in coded)
    if (size := int(np.prod(shape, dtype=object))) > MOST_COUNTS:
        problem = f"{' x '.join(map(str, shape))} items, raters and classes are {size} counts, more than {MOST_COUNTS}"
        raise InputError(problem, "too_large", hint="give fewer items or raters")
    places = np.ravel_multi_index([column.codes.astype(np.int64) for column in coded], shape)
    return np.bincount(places, minlength=size).reshape(shape)
