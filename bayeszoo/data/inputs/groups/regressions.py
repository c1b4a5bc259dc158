"""Regressions of rows in groups: features as in a regression, and a column that names the group of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from types import MappingProxyType

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Layout, Parsed
from bayeszoo.data.inputs.counted import BinaryRegression, CountRegression
from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.inputs.groups.rows import GROUP, Naming, Request, about_groups, places_of
from bayeszoo.data.inputs.labels import checked_codes, checked_labels, label_array, texts_of
from bayeszoo.data.inputs.regression import Columns, WithFeatures, free_name
from bayeszoo.data.table.cells import MISSING
from bayeszoo.data.table.table import Column, Table, shown
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

NAMES = ", and one that names the group of each row (group, or --group)"


class WithGroups(WithFeatures):
    """A regression whose rows are in groups, named by the column of the option ``group``; it needs no feature.

    The canonical arrays are those of the regression, the codes ``group_code`` and the coordinate ``group``. For rows to
    be predicted the coordinate has the groups of the fit, then new groups; without a column of names each row is a new
    group.
    """

    least_features = 0

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Codes of the groups, which have names."""
        base = super().layout
        forms = [form | {CODE, GROUP} for form in base.forms]
        return Layout(
            (*base.coords, GROUP), base.dims, {CODE: GROUP}, (*forms, *(form - {self.name} for form in forms))
        )

    # Tables

    def _with_companion(self, table: Table, options: Options) -> Options:
        """Add the column ``group`` unless an option names another; refuse a table without groups."""
        options = super()._with_companion(table, options)
        options = {GROUP: GROUP, **options} if GROUP in table.columns else options
        if GROUP not in options:
            hint = f"name the column of the group of each row with --{GROUP}"
            raise InputError(str(table), "bad_group_column", hint=hint)
        return options

    def _features_of(self, table: Table, target: str | None, options: Options) -> list[str]:
        features, group = super()._features_of(table, target, options), options.get(GROUP)
        if group is not None and group in (target, *features):
            role = "the outcome" if group == target else "a feature"
            problem = f"column {shown(group)} names the groups, and is {role} too"
            raise InputError(problem, "duplicate_name", column=group, hint="leave it out of --features")
        return features

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        usual = (getattr(like, "columns", {}).get(GROUP), GROUP)
        named = [name for name in usual if name in table.columns]
        options = {GROUP: named[0], **options} if named else options
        parsed = super()._parse_new(table, missing, options, like)
        if GROUP in options:
            return parsed
        fitted = [] if like is None else like[GROUP].tolist()
        new = list(islice((name for i in count(1) if (name := f"new {i}") not in fitted), table.rows))
        size = self.size(parsed.arrays)
        codes = {CODE: len(fitted) + np.arange(size), GROUP: label_array([*fitted, *new[:size]])}
        note = f"no column {shown(usual[0] or GROUP)} names the groups: each row is of a new group"
        return replace(parsed, arrays={**parsed.arrays, **codes}, notes=(*parsed.notes, note))

    def _arrays(self, columns: Columns, missing: str, like: Arrays | None, options: Options) -> Parsed:
        """Give the groups numbers as they first occur in the rows that are kept, of new rows as in the fit."""
        parsed = super()._arrays(columns, missing, like, options)
        if GROUP not in columns.by_role:
            return parsed
        column, places = columns.by_role[GROUP], parsed.arrays[GROUP].astype(np.int64)
        names = _first_places(column)[1]
        kept, first = np.unique(places, return_index=True)
        groups = [names[place] for place in kept[np.argsort(first)].tolist()]
        labels = groups if like is None else _with_new(groups, like)
        codes = places_of([names[place] for place in places.tolist()], label_array(labels))
        notes = about_groups(Request(Table("", {}), missing, {}, like=like or None), Naming(column, True), groups)
        counted = f"{len(codes)} rows, {len(groups)} group{'s' * (len(groups) != 1)} ({column})"
        notes = [counted, *notes] if like is None else notes
        arrays = {name: values for name, values in parsed.arrays.items() if name != GROUP}
        arrays |= {CODE: codes, GROUP: label_array(labels)}
        return replace(parsed, arrays=arrays, notes=(*notes, *parsed.notes))

    # Canonical arrays

    def _canonical(self, arrays: Mapping[str, object], missing: str, options: Options | None = None) -> Parsed:
        groups = checked_labels(GROUP, arrays[GROUP], least=1)
        codes = checked_codes(CODE, arrays[CODE], groups)[1]
        named = [groups[int(code)] if code == code else "" for code in codes]
        parsed = super()._canonical({**arrays, GROUP: named}, missing, options)
        checked = parsed.arrays
        codes = places_of(checked[GROUP][checked[CODE]].tolist(), groups)
        return replace(parsed, arrays={**checked, CODE: codes, GROUP: groups}, notes=parsed.notes[1:])

    def _columns(
        self, parts: Mapping[str, object], decimal: str = "."
    ) -> tuple[list[Column], list[Column], tuple[str, ...]]:
        """Return the columns of features, perhaps none, and of the outcome."""
        if np.size(np.asarray(parts.get(self.axis, [""]))):
            return super()._columns(parts, decimal)
        placeholder: dict[str, object] = {self.features: np.zeros((len(np.asarray(parts[self.features])), 1))}
        placeholder |= {name: parts[name] for name in (self.name,) if name in parts}
        _, outcome, notes = super()._columns(placeholder, decimal)
        return [], outcome, notes

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns, with the name of each row's group."""
        columns = super().table(arrays)
        return {**columns, free_name(GROUP, columns): arrays[GROUP][arrays[CODE]]}

    def reading(self, arrays: Arrays) -> Options:
        """Name the column of the groups where a feature is called so."""
        name = free_name(GROUP, super().table(arrays))
        return super().reading(arrays) | ({GROUP: name} if name != GROUP else {})


def _first_places(column: Column) -> tuple[np.ndarray, list[str]]:
    """Return the place of each cell among the distinct ones, NaN of a missing one, and these in order."""
    first: dict[str, int] = {}
    places = np.full(len(column), np.nan)
    for i, text in enumerate(texts_of(column)):
        if text.strip().lower() not in MISSING:
            places[i] = first.setdefault(text.strip(), len(first))
    return places, list(first)


def _of_groups(column: Column) -> np.ndarray:
    return _first_places(column)[0]


@dataclass(frozen=True)
class GroupedBinary(WithGroups, BinaryRegression):
    """Outcomes of yes and no, or successes of trials, with features, of rows in groups."""

    options = BinaryRegression.options | {GROUP}
    roles = MappingProxyType({**BinaryRegression.roles, GROUP: _of_groups})
    holds = BinaryRegression.holds + NAMES


@dataclass(frozen=True)
class GroupedCounts(WithGroups, CountRegression):
    """Counts, perhaps of an exposure each, with features, of rows in groups."""

    options = CountRegression.options | {GROUP}
    roles = MappingProxyType({**CountRegression.roles, GROUP: _of_groups})
    holds = CountRegression.holds + NAMES


def _with_new(groups: Sequence[str], like: Arrays) -> list[str]:
    """Return the groups of a fit, and those that it does not have."""
    fitted = like[GROUP].tolist() if GROUP in like else []
    return [*fitted, *(name for name in groups if name not in {*fitted})]
