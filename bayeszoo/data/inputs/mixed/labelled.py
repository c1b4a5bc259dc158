"""Rows with a class and features of mixed kinds, where class and features have a joint distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Layout, Parsed, columns_of, listing
from bayeszoo.data.inputs.classed import CLASS, CLASSES, alphabet_of, classes_of, named_classes, trimmed
from bayeszoo.data.inputs.labels import checked_codes, checked_labels, label_array
from bayeszoo.data.inputs.mixed.arrays import AXES, LEVELS, levels_by_feature
from bayeszoo.data.inputs.mixed.rows import Mixed
from bayeszoo.data.inputs.regression import free_name
from bayeszoo.data.table.read import different_indexes, has_two_dimensions, is_frame, to_column
from bayeszoo.data.table.table import Column, Table, shown
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options


@dataclass(frozen=True)
class Labelled(Mixed):
    """One column of labels, the class of each row, and columns of features of mixed kinds, as in `Mixed`.

    The class is in the column `name`, or the one that the option ``target`` names. The option ``classes`` lists the
    classes in order, also those without rows; by default the occurring ones, in order. Rows to be predicted may lack
    the class. The canonical arrays are the codes `name`, the coordinate ``class`` of their labels, and those of
    `Mixed`.
    """

    name: str = "y"
    lists = Mixed.lists | {CLASSES}
    own_options: ClassVar[frozenset[str]] = Mixed.own_options | {"target", CLASSES}
    holds = f"one column of labels ({{0.name}}, or say which with --target), the class of each row, and {Mixed.holds}"
    _simplest: ClassVar[dict[str, np.ndarray]] = {CLASS: np.array(["a", "b", "c"])}

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Codes of the classes, and features."""
        features = super().layout
        unknown = {*features.forms[0], CLASS}
        coded = {self.name: CLASS, **features.coded}
        return Layout((*features.coords, CLASS), features.dims, coded, (unknown | {self.name}, unknown))

    # Tables

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a pair ``(X, y)``, features in two dimensions and the class of each row, or an array X alone."""
        is_pair = isinstance(source, list | tuple) and len(source) == 2 and has_two_dimensions(source[0])
        if not is_pair and (not has_two_dimensions(source) or is_frame(source)):
            return None
        X, *y = source if is_pair else (source,)
        features = columns_of("X", X, "feature", None, decimal)
        columns = [*(to_column(self.name, values, decimal) for values in y), *features]
        if len({*map(len, columns)}) > 1:
            problem = f"X has {len(features[0])} rows, {self.name} has {len(columns[0])}"
            raise InputError(problem, "wrong_shape")
        if y and (same := next((column for column in features if column.name == self.name), None)):
            problem = f"X has {same}, which is also the name of the class"
            raise InputError(problem, "duplicate_name", column=self.name, hint="rename it")
        notes = different_indexes({"X": X, self.name: y[0]}) if y else ()
        return Table("", {column.name: column for column in columns}, notes)

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        target = options.get("target", self.name)
        if target not in table.columns and "target" not in options:
            problem = f"{table} and none called {shown(target)}"
            raise InputError(problem, "missing_column", hint="name the column of the class with --target")
        table[target]  # or there is no such column
        return self._from_columns(table, self._kinds(table, options, target), missing, like, options, target)

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        """Parse rows with the features of the fit, and perhaps the class, named as in the fit or by an option."""
        fitted = [name for kind in self.kinds for name in (like or {}).get(AXES[kind], np.array([])).tolist()]
        usual = getattr(like, "columns", {}).get(self.name, free_name(self.name, fitted))
        target = options.get("target", usual if usual in table.columns else None)
        kinds = self._kinds(table, options, target) if like is None else self._as_in(like, table, options)
        parsed = self._from_columns(table, kinds, missing, like, options, target)
        labels = alphabet_of(options, like).labels
        coords = {} if labels is None else {CLASS: label_array(labels)}
        is_unused = target is None and self.name in table.columns and self.name not in kinds
        note = f"column {shown(self.name)} is not used; use it with --target {listing([self.name])}"
        return replace(parsed, arrays={**parsed.arrays, **coords}, notes=(*parsed.notes, *[note] * is_unused))

    def _from_columns(
        self,
        table: Table,
        kinds: Mapping[str, str],
        missing: str,
        like: Arrays | None,
        options: Options,
        target: str | None = None,
    ) -> Parsed:
        if target is None:
            return super()._from_columns(table, kinds, missing, like, options)
        codes = alphabet_of(options, like).coded(trimmed(table[target])).codes
        parsed, kept = self._features(table, kinds, missing, like, options, {target: codes})
        return self._with_class(parsed, table[target], kept[0], options, like)

    def _with_class(
        self, parsed: Parsed, column: Column, codes: np.ndarray, options: Options, like: Arrays | None
    ) -> Parsed:
        coded, notes = classes_of(column, codes, alphabet_of(options, like))
        arrays = {self.name: coded.codes.astype(np.int64), **parsed.arrays, CLASS: label_array(coded.labels)}
        if like is None and column.before is None:
            self._refuse_copies(column, arrays)
        return Parsed(arrays, {self.name: column.name, **parsed.columns}, (*notes, *parsed.notes))

    def _refuse_copies(self, column: Column, arrays: Arrays) -> None:
        """Refuse a feature that repeats the class: the level of each row is the name of its class."""
        for j, (name, codes) in enumerate(levels_by_feature(arrays).items()):
            places = np.array([codes.get(label, -2) for label in arrays[CLASS].tolist()])
            if self.size(arrays) > 1 and np.array_equal(places[arrays[self.name]], arrays[LEVELS][:, j]):
                problem = f"column {shown(name)} holds the class of each row, as {column} does"
                raise InputError(problem, "duplicate_columns", column=name, hint="leave one of them out")

    # Canonical arrays

    def _checked_outcome(
        self, arrays: Mapping[str, object]
    ) -> tuple[list[Column], list[np.ndarray], dict[str, np.ndarray]]:
        labels = {CLASS: checked_labels(CLASS, arrays[CLASS], least=2)}
        if self.name not in arrays:
            return [], [], labels
        column, codes = checked_codes(self.name, arrays[self.name], labels[CLASS])
        return [column], [codes], labels

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns under their names, classes and levels as text."""
        features = super().table(arrays)
        if not self.has_outcome(arrays):
            return features
        return {free_name(self.name, features): arrays[CLASS][arrays[self.name]], **features}

    def _named(self, arrays: Arrays) -> dict[str, Any]:
        if not self.has_outcome(arrays):
            return super()._named(arrays)
        target = free_name(self.name, [name for kind in self.kinds for name in arrays[AXES[kind]].tolist()])
        named: dict[str, Any] = {"target": target} if target != self.name else {}
        return named | named_classes(arrays, self.name) | super()._named(arrays)

    def _every_row(self, arrays: Arrays, times: int = 1) -> dict[str, np.ndarray]:
        classes = len(arrays[CLASS])
        rows = super()._every_row(arrays, times * classes)
        size = self.size(rows)
        repeated = self.reordered(rows, np.tile(np.arange(size), classes))
        return {self.name: np.repeat(np.arange(classes), size), **repeated}
