"""Rows of features of mixed kinds: levels (yes/no, text), counts and real numbers; cells may be missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Parsed, every_code, further_rows_need, listing
from bayeszoo.data.inputs.classed import refuse_unclear_counts
from bayeszoo.data.inputs.features.levels import Feature, refuse_identifier
from bayeszoo.data.inputs.labels import repeated
from bayeszoo.data.inputs.matrix import in_order_of, refuse_text
from bayeszoo.data.inputs.mixed.arrays import (
    AXES,
    COUNTS,
    FEATURE,
    KINDS,
    LEVEL,
    LEVELS,
    REALS,
    checked_cells,
    coordinates,
    levels_by_feature,
    stack,
    tables_of,
)
from bayeszoo.data.inputs.mixed.columns import (
    UNLABELLED,
    Cell,
    about_levels,
    are_whole,
    arrays_of_cells,
    kept_rows,
    named_levels,
    of_kind,
    read_feature,
    refuse_feature,
    unplaced,
)
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import DROP, Column, Table, complete, is_text, quoted, repeats, shown, to_counts
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

COUNT, FEATURES = "count", "features"
_MOST_ROWS = 70
"""Most combinations of levels whose pairs of rows are enumerated."""


@dataclass(frozen=True)
class Mixed(Inputs):
    """Columns of features, each of levels, of counts or of real numbers.

    Text and true/false are levels. Numbers are real numbers, unless the options ``levels`` and ``counts`` name them.
    ``levels`` may also list levels, ``stage=1,2,3``. The option ``features`` names the columns to use, ``count`` a
    column of counts of rows.

    The canonical arrays are ``levels``, ``counts`` and ``reals``, shape (rows, features of the kind). ``levels`` holds
    indices along the coordinate ``level``, which has a label ``feature=level`` for each level of each feature, and -1
    for missing cells; the others are float64, with NaN for missing cells. The coordinates ``feature`` (for levels),
    ``count`` and ``real`` name the features. A model may take some ``kinds`` only, and no missing cells unless it is
    `maskable`; with ``fits_masked=False`` new rows alone may have some. `name` is the array used as the outcome.
    """

    name: str = LEVELS
    kinds: tuple[str, ...] = KINDS
    maskable: bool = True
    fits_masked: bool = True
    lists = frozenset({FEATURES, *KINDS})
    own_options: ClassVar[frozenset[str]] = frozenset({FEATURES, COUNT})
    holds = "columns of features, all others or some of them (--features): {0._kinds_of_features}"

    @property
    def options(self) -> frozenset[str]:  # type: ignore[override]
        """The names of the options."""
        return self.own_options | {*self.kinds}

    @property
    def treatments(self) -> tuple[str, ...]:  # type: ignore[override]
        """The treatments of missing values."""
        return ("refuse", "drop", "mask") if self.maskable else ("refuse", "drop")

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Features of each kind have names, and levels have labels."""
        coords = coordinates(self.kinds)
        dims = {kind: (AXES[kind],) for kind in self.kinds}
        return Layout(coords, dims, {LEVELS: LEVEL} if LEVELS in self.kinds else {}, ({*self.kinds, *coords},))

    @property
    def _kinds_of_features(self) -> str:
        phrases = {LEVELS: "levels (text, or --levels)", COUNTS: "counts (--counts)", REALS: "real numbers"}
        phrases |= {COUNTS: "counts"} if self._of_numbers == COUNTS else {}
        return ", ".join(phrases[kind] for kind in self.kinds)

    @property
    def _of_numbers(self) -> str:
        """The default kind of a column of numbers."""
        return next(kind for kind in (REALS, COUNTS, LEVELS) if kind in self.kinds)

    # Tables

    def _checked_options(self, table: Table, missing: str, options: Options) -> Options:
        if LEVELS not in self.kinds or options.get(LEVELS) is None:
            return super()._checked_options(table, missing, options)
        return {
            **super()._checked_options(table, missing, {**options, LEVELS: None}),
            LEVELS: named_levels(options[LEVELS]),
        }

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        return self._from_columns(table, self._kinds(table, options), missing, like, options)

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        kinds = self._kinds(table, options) if like is None else self._as_in(like, table, options)
        return self._from_columns(table, kinds, missing, like, options)

    def _kinds(self, table: Table, options: Options, target: str | None = None) -> dict[str, str]:
        """Return the kind of each feature, by its name."""
        not_features = {name for name in (target, options.get(COUNT)) if name is not None}
        named = self._named_kinds(options)
        features: list[str] = options.get(FEATURES, [name for name in table.columns if name not in not_features])
        if not features:
            problem = f"there is no feature: {quoted(table.columns)} is all"
            raise InputError(problem, "no_data", hint="give feature columns")
        if shared := next((name for name in (*features, *named) if name in not_features), None):
            role = "the outcome" if shared == target else "how often rows occur"
            problem, hint = f"column {shown(shared)} is both a feature and {role}", "leave it out of the features"
            raise InputError(problem, "duplicate_name", column=shared, hint=hint)
        if unlisted := next(iter(named.keys() - {*features}), None):
            column = table[unlisted]  # raises if there is no such column
            problem = f"{column} is named by --{named[unlisted]}, and is no feature"
            raise InputError(problem, "unknown_label", column=unlisted, hint="add it to --features")
        if FEATURES not in options:
            unclear = [name for name in features if name not in named]
            refuse_unclear_counts(table, unclear, "name it with --count")
        return {name: named.get(name) or self._kind_of(table[name]) for name in features}

    def _named_kinds(self, options: Options) -> dict[str, str]:
        pairs = [(name, kind) for kind in self.kinds for name in options.get(kind, ())]
        if repeat := repeated([name for name, _ in pairs]):
            kinds = " and ".join(f"--{kind}" for name, kind in pairs if name == repeat)
            raise InputError(f"column {shown(repeat)} is named by {kinds}", "conflicting_options", column=repeat)
        return dict(pairs)

    def _kind_of(self, column: Column) -> str:
        return LEVELS if LEVELS in self.kinds and is_text(column) else self._of_numbers

    def _as_in(self, like: Arrays, table: Table, options: Options) -> dict[str, str]:
        """Return the features of the fit and their kinds; refuse options that differ."""
        fitted = {name: kind for kind in self.kinds for name in like[AXES[kind]].tolist()}
        fitted_levels = {name: list(codes) for name, codes in levels_by_feature(like).items()}
        differ = {name for name, kind in self._named_kinds(options).items() if fitted.get(name) != kind}
        chosen_levels = options.get(LEVELS, {})
        differ |= {name for name, levels in chosen_levels.items() if levels not in (None, fitted_levels.get(name))}
        if differ:
            problem = f"{quoted(sorted(differ))}: kinds and levels of features must be those of the fit"
            raise InputError(problem, "labels_differ", hint="leave out --levels, --counts and --reals")
        names = options.get(FEATURES, [name for name in fitted if name in table.columns])
        return {name: fitted[name] for name in in_order_of([*fitted], names, FEATURES)}

    def _from_columns(
        self, table: Table, kinds: Mapping[str, str], missing: str, like: Arrays | None, options: Options
    ) -> Parsed:
        return self._features(table, kinds, missing, like, options, {})[0]

    def _features(
        self,
        table: Table,
        kinds: Mapping[str, str],
        missing: str,
        like: Arrays | None,
        options: Options,
        codes: Mapping[str, np.ndarray],
    ) -> tuple[Parsed, list[np.ndarray]]:
        """Convert features, treat missing values and repeat rows; return them, and codes and counts of these rows."""
        cells = self._cells(table, kinds, like, options)
        coded = [table[name] for name in codes]
        if coded and missing != "drop":  # a class cannot be masked
            complete(coded, codes.values(), "refuse", DROP if like is None else UNLABELLED)
        counted = [table[options[COUNT]]] if COUNT in options else []
        numbers = [*codes.values(), *map(to_counts, counted)]
        may_mask = self.maskable and (self.fits_masked or like is not None)
        kept, values, notes = kept_rows([*coded, *counted], numbers, cells, missing, like is not None, may_mask)
        if counted:
            rows = np.repeat(np.arange(len(kept[-1])), repeats(counted[0], kept[-1]))
            kept, values = [array[rows] for array in kept], [array[rows] for array in values]
            notes = (f"{counted[0]}: {len(table[counted[0].name])} lines for {len(rows)} rows", *map(unplaced, notes))
        cells = [cell._replace(feature=cell.feature.of_rows(v)) for cell, v in zip(cells, values, strict=True)]
        if like is None:
            notes = (*self._about(cells, options, len(values[0])), *notes)
        roles = {kind: ", ".join(cell.column.name for cell in cells if cell.kind == kind) for kind in self.kinds}
        roles |= {COUNT: options[COUNT]} if counted else {}
        arrays = arrays_of_cells(self.kinds, cells, like, len(values[0]))
        return Parsed(arrays, {role: names for role, names in roles.items() if names}, notes), kept

    def _cells(
        self,
        table: Table,
        kinds: Mapping[str, str],
        like: Arrays | None,
        options: Options,
    ) -> list[Cell]:
        fitted = None if like is None else {name: list(codes) for name, codes in levels_by_feature(like).items()}
        chosen_levels: Mapping[str, list[str] | None] = options.get(LEVELS, {})
        try:
            return [Cell(kind, read_feature(table[name], kind, chosen_levels, fitted)) for name, kind in kinds.items()]
        except InputError as error:
            if error.hint or error.code != "not_a_number":
                raise
            if LEVELS not in self.kinds:
                refuse_text(Table("", {name: table[name] for name in kinds}), FEATURES)
                raise
            name = error.column or ""
            is_named = name in self._named_kinds(options)
            hint = f"leave it out of --{kinds[name]}" if is_named else f"of labels use --levels {listing([name])}"
            raise InputError(error.message, error.code, column=error.column, rows=error.rows, hint=hint) from None

    def _about(self, cells: Sequence[Cell], options: Options, rows: int) -> tuple[str, ...]:
        """Refuse constant and repeated features of a whole table; return notes on how columns were read."""
        is_whole, is_named, notes = cells[0].column.before is None, FEATURES in options, list[str]()
        features, first_by_key = [cell.column.name for cell in cells], dict[object, Column]()
        for cell in cells if is_whole and rows > 1 else ():
            column, levels = cell.column, options.get(LEVELS, {})
            if cell.kind == LEVELS and not cell.feature.fixed:
                lines = rows if COUNT in options else len(column)
                refuse_identifier(cell.feature, features, is_named or column.name in levels, lines)
            if cell.is_constant:
                notes += refuse_feature(column, "is constant, and tells nothing", "constant", features, is_named)
            if (first := first_by_key.setdefault(cell.key, column)) is not column:
                problem = f"holds the values of {first}"
                notes += refuse_feature(column, problem, "duplicate_columns", features, is_named)
        of_levels = [note for cell in cells if cell.kind == LEVELS for note in about_levels(cell.feature)]
        named = {name for kind in self.kinds for name in options.get(kind, ())}
        return (*of_levels, *notes, *(self._about_numbers(cells, named) if is_whole else ()))

    def _about_numbers(self, cells: Sequence[Cell], named: Collection[str]) -> list[str]:
        """Return a note on real numbers that may be counts or codes of levels, unless an option names them."""
        other_kinds = [kind for kind in (COUNTS, LEVELS) if kind in self.kinds]
        cells = [cell for cell in cells if cell.kind == REALS and cell.column.name not in named]
        whole_columns = [cell.column.name for cell in cells if are_whole(cell.feature.values)]
        if not whole_columns or not other_kinds:
            return []
        options = ", ".join(f"--{kind} {listing(whole_columns)}" for kind in other_kinds)
        return [f"whole numbers are read as real numbers: {quoted(whole_columns)}; otherwise name them with {options}"]

    # Canonical arrays

    def _canonical(self, arrays: Mapping[str, Any], missing: str) -> Parsed:
        outcome, codes, labels = self._checked_outcome(arrays)
        cells, coords = checked_cells(arrays, self.kinds)
        columns = [Cell(kind, Feature(column, values)) for kind, column, values in cells]
        rows = {len(column) for column in (*outcome, *(cell.column for cell in columns))}
        rows |= {len(arrays[kind]) for kind in self.kinds}
        if len(rows) != 1 or rows == {0}:
            problem = "no data rows" if rows <= {0} else "the arrays have different numbers of rows"
            raise InputError(problem, "no_data" if rows <= {0} else "wrong_shape")
        kept, values, notes = kept_rows(outcome, codes, columns, missing, False, self.maskable)
        size = len([*kept, *values, np.empty(rows.pop())][0])
        classes = {self.name: kept[0].astype(np.int64)} if outcome else {}
        stacked = {kind: stack(kind, of_kind(columns, values, kind), size) for kind in self.kinds}
        return Parsed({**classes, **stacked, **coords, **labels}, {}, notes)

    def _checked_outcome(
        self, arrays: Mapping[str, object]
    ) -> tuple[list[Column], list[np.ndarray], dict[str, np.ndarray]]:
        """Check the outcome and its labels, in kinds with an outcome."""
        return [], [], {}

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns under their names, levels as text."""
        columns = dict[str, np.ndarray]()
        by_code = {code: level for codes in levels_by_feature(arrays).values() for level, code in codes.items()}
        labels = np.array([*(by_code[code] for code in range(len(by_code))), ""], dtype=str)  # the last is for code -1
        for kind in self.kinds:
            values = labels[arrays[kind]] if kind == LEVELS else arrays[kind]
            columns |= dict(zip(arrays[AXES[kind]].tolist(), values.T, strict=True))
        return columns

    def reading(self, arrays: Arrays) -> Options:
        """Return options that the table does not imply; all features and levels if it would be read differently."""
        named = self._named(arrays)
        return named if self._reads_back(arrays, named) else {**named, **self._kinds_in(arrays)}

    def _named(self, arrays: Arrays) -> dict[str, Any]:
        counts = arrays[AXES[COUNTS]].tolist() if COUNTS in self.kinds and self._of_numbers != COUNTS else []
        named = {COUNTS: counts} if counts else {}
        return named | ({"missing": "mask"} if self._holes(arrays).any() else {})

    def _kinds_in(self, arrays: Arrays) -> dict[str, Any]:
        names = {kind: arrays[AXES[kind]].tolist() for kind in self.kinds}
        levels = {name: list(codes) for name, codes in levels_by_feature(arrays).items()}
        features = {FEATURES: [name for kind in self.kinds for name in names[kind]]}
        reals = {REALS: names[REALS]} if names.get(REALS) else {}
        return features | ({LEVELS: levels} if levels else {}) | reals

    def _reads_back(self, arrays: Arrays, options: Options) -> bool:
        try:
            back = self.parse(read_table(self.table(arrays)), **options).arrays
        except InputError:
            return False
        return all(np.array_equal(back[name], arrays[name], equal_nan=name in (COUNTS, REALS)) for name in arrays)

    def _holes(self, arrays: Arrays) -> np.ndarray:
        """Return a mask of missing cells, shape (rows, features)."""
        holes = [arrays[kind] < 0 if kind == LEVELS else np.isnan(arrays[kind]) for kind in self.kinds]
        return np.concatenate(holes, axis=1)

    def indicators(self, arrays: Arrays, codes: np.ndarray, axis: str) -> np.ndarray:
        """Return level indices (rows, features) as indicators along the axis, NaN for missing features."""
        if codes.ndim == 1:
            return super().indicators(arrays, codes, axis)
        indicators = np.empty((len(codes), len(arrays[axis])))
        for of_feature, places in zip(codes.T, tables_of(arrays), strict=True):
            indicators[:, places] = np.where(of_feature[:, None] < 0, np.nan, of_feature[:, None] == places)
        return indicators

    def size(self, arrays: Arrays) -> int:
        """Return the number of rows."""
        return len(arrays[self.kinds[0]])

    def blank(self, coords: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return rows of missing values, with all coordinates; those not in ``coords`` have no labels."""
        axes = {axis: coords.get(axis, np.array([], dtype=str)) for axis in self.coords}
        empty = {kind: [np.full(rows, np.nan)] * len(axes[AXES[kind]]) for kind in self.kinds}
        return {kind: stack(kind, values, rows) for kind, values in empty.items()} | axes

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return rows of missing values; refuse for a model that takes none."""
        if self.maskable:
            return self.blank(arrays, rows)
        raise further_rows_need("their features", "the columns of the fit")

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]] | None:
        """Yield all small data sets of levels, for features with few combinations; other cells are missing."""
        if not self.maskable:
            return None
        simplest = {FEATURE: np.array(["x"]), LEVEL: np.array(["x=a", "x=b"])} if LEVELS in self.kinds else {}
        rows = self._every_row(arrays or {**simplest, **self._simplest})
        return (self.reordered(rows, codes) for codes in every_code(self.size(rows)))

    _simplest: ClassVar[dict[str, np.ndarray]] = {}

    def _every_row(self, arrays: Arrays, times: int = 1) -> dict[str, np.ndarray]:
        """Return one row per combination of levels, for as many features as keep ``times`` rows below a limit."""
        chosen = list[tuple[int, ...]]()
        for table in tables_of(arrays):
            if times * len(table) <= _MOST_ROWS:
                times, chosen = times * len(table), [*chosen, table]
        combinations = [*product(*chosen)]
        rows = self.blank(arrays, len(combinations))
        if chosen:
            places = [j for j, table in enumerate(tables_of(arrays)) if table in chosen]
            rows[LEVELS][:, places] = combinations
        return rows
