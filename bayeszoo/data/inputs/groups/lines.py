"""Rows of groups, each with an outcome and one feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Layout, Measured, Parsed
from bayeszoo.data.inputs.groups.rows import GROUP, Request, grouped, places_of, require_named
from bayeszoo.data.inputs.labels import checked_codes, checked_labels, joined, label_array
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import Column, Table, complete, quoted, shown, to_reals
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

OUTCOME, FEATURE, CODE = "outcome", "feature", "group_code"
_OPTIONS = {OUTCOME: "target", FEATURE: "features"}
"""The options that name the columns of the roles."""


@dataclass(frozen=True)
class GroupRows(Measured):
    """Rows of groups: an outcome, and one feature that explains it.

    The table has columns of the outcome, the feature and the group of each row: `name`, `feature` and ``group``, or
    those named by the options ``target``, ``features`` (one feature) and ``group``; the only remaining column need not
    be named. Rows to be predicted may lack the outcome; their groups must be in the fit.

    The canonical arrays are `name` and `feature`, both of shape (rows,), the codes ``group_code`` and the coordinate
    ``group``.
    """

    name: str = "y"
    feature: str = "x"
    options = frozenset({*_OPTIONS.values(), GROUP})
    lists = frozenset({"features"})
    needs = ("their feature and group", "a column of each")
    holds = (
        "a column of the outcome ({0.name}, or --target), one of a feature ({0.feature}, or --features), both of real "
        "numbers, and one that names the group of each row (group, or --group)"
    )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Codes of the groups, which have names."""
        return Layout((GROUP,), coded={CODE: GROUP}, forms=({self.name, self.feature, CODE, GROUP}, self._unknown))

    @property
    def _unknown(self) -> set[str]:
        """The arrays of rows to be predicted."""
        return {self.feature, CODE, GROUP}

    # Tables

    def _checked_options(self, table: Table, missing: str, options: Options) -> Options:
        """Return the options, with the requested columns of outcome and feature."""
        asked = super()._checked_options(table, missing, options)
        features = asked.pop(_OPTIONS[FEATURE], [])
        if len(features) > 1:
            raise InputError(
                f"rows of groups have one feature, not {quoted(features)}", "wrong_columns", hint="name one of them"
            )
        by_role = {OUTCOME: asked.pop(_OPTIONS[OUTCOME], None), FEATURE: next(iter(features), None)}
        return {**asked, **{role: name for role, name in by_role.items() if name is not None}}

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        parsed = self._read(Request(table, missing, options))
        feature = parsed.arrays[self.feature]
        if len(feature) > 1 and not np.ptp(feature):
            column = table[parsed.columns[FEATURE]]
            hint = "name a column of different numbers with --features; groups without a feature go to normal_means"
            raise column.error("is constant: no slope is known from it", "constant_column", hint=hint)
        return parsed

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        """Parse rows of the groups of the fit, and perhaps the outcome."""
        columns = getattr(like, "columns", {})
        usual = {OUTCOME: columns.get(self.name), FEATURE: columns.get(FEATURE)}
        present = {role: name for role, name in usual.items() if name in table.columns}
        parsed = self._read(Request(table, missing, {**present, **options}, new=True, like=like))
        if like is None:
            return parsed
        places = places_of(parsed.arrays[GROUP], like[GROUP])
        if (places < 0).any():
            new = joined(parsed.arrays[GROUP][places < 0].tolist())
            raise InputError(
                f"the fit has no rows of group {new}", "no_data", hint="leave it out, or fit again with it"
            )
        return replace(parsed, arrays={**parsed.arrays, CODE: places[parsed.arrays[CODE]], GROUP: like[GROUP]})

    def _read(self, request: Request) -> Parsed:
        naming = require_named(request, f"name the column of the group of each row with --{GROUP}")
        contents = dict(naming.taken)
        columns: dict[str, Column] = {}
        feature_is_said = FEATURE in request.options or self.feature in request.table.columns
        if not request.new or OUTCOME in request.options or self.name in request.table.columns:
            later = {request.options.get(FEATURE, self.feature): "the feature"} if feature_is_said else {}
            columns[self.name] = _chosen(request, OUTCOME, self.name, contents | later)
            contents[columns[self.name].name] = "the outcome"
        columns[FEATURE] = _chosen(request, FEATURE, self.feature, contents)
        rows = grouped(request, naming, list(columns.values()), list(map(to_reals, columns.values())))
        names = (self.name, self.feature) if self.name in columns else (self.feature,)
        arrays = {**dict(zip(names, rows.values, strict=True)), CODE: rows.codes, GROUP: label_array(rows.groups)}
        roles = {role: column.name for role, column in {**columns, **_named(naming.column)}.items()}
        return Parsed(arrays, roles, (*[rows.counted] * (not request.new), *rows.notes))

    # Canonical arrays

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        groups = checked_labels(GROUP, arrays[GROUP], least=1)
        coded, codes = checked_codes(CODE, arrays[CODE], groups)
        columns = [to_column(name, arrays[name]) for name in (self.name, self.feature) if name in arrays]
        for column in columns:
            if len(column) != len(coded):
                raise InputError(f"{CODE} has {len(coded)} rows, {column.name} has {len(column)}", "wrong_shape")
        (*values, codes), notes = complete([*columns, coded], [*map(to_reals, columns), codes], missing)
        by_name = {column.name: array for column, array in zip(columns, values, strict=True)}
        return Parsed({**by_name, CODE: codes.astype(np.int64), GROUP: groups}, {}, notes)

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns, with the name of each row's group."""
        numbers = {name: arrays[name] for name in (self.name, self.feature) if name in arrays}
        return {**numbers, GROUP: arrays[GROUP][arrays[CODE]]}

    def size(self, arrays: Arrays) -> int:
        """Return the number of rows."""
        return len(arrays[self.feature])


def _named(column: Column | None) -> dict[str, Column]:
    return {} if column is None else {GROUP: column}


def _chosen(request: Request, role: str, name: str, contents: Mapping[str, str]) -> Column:
    """Return the column of a role: the requested one, else the column `name`, else the only remaining one."""
    table, asked = request.table, request.options.get(role)
    if asked is not None and asked in contents:
        raise InputError(
            f"column {shown(asked)} cannot hold both the {role} and {contents[asked]}", "duplicate_name", column=asked
        )
    if asked is not None or (name in table.columns and name not in contents):
        return table[asked or name]
    remaining = [label for label in table.columns if label not in contents]
    if len(remaining) == 1:
        return table[remaining[0]]
    hint = f"name the column of the {role} with --{_OPTIONS[role]}"
    raise InputError(str(table), "bad_group_column", hint=hint)
