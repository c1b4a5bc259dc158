"""Series of numbers with features of each row, which are known for future rows too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Layout, Parsed, columns_of, further_rows_need
from bayeszoo.data.inputs.labels import checked_labels, joined, label_array
from bayeszoo.data.inputs.matrix import in_order_of
from bayeszoo.data.inputs.regression import free_name
from bayeszoo.data.inputs.sequences.series import Converted, RealSeries
from bayeszoo.data.inputs.sequences.times import SEQUENCE, checked_times
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import Column, Table, shown, to_reals
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options


@dataclass(frozen=True)
class RegressedSeries(RealSeries):
    """Real numbers in order, as in `RealSeries`, with the features that the option ``features`` names; none by default.

    The canonical arrays also have `features`, shape (rows, labels), and the coordinate `axis` of their names. Rows to
    be predicted have the features of the fit and may lack observations.
    """

    features: str = "X"
    axis: str = "feature"
    options = RealSeries.options | {"features"}
    lists = frozenset({"features"})
    holds = RealSeries.holds + ", and columns of features (--features), of real numbers"

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Features have names; there may be no features."""
        form = {self.name, SEQUENCE, self.features, self.axis}
        return Layout((self.axis,), dims={self.features: (self.axis,)}, forms=(form,))

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        names = options.get("features", [])
        if (column := options.get("column", self.name)) in names:
            hint = "leave it out of --features, or name the observations with --column"
            raise InputError(f"column {shown(column)} is both the outcome and a feature", "duplicate_name", hint=hint)
        columns = [table[name] for name in names]
        parsed = super()._parse(_without(table, names, options), missing, options, like)
        return self._with_features(parsed, columns, like is None)

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        """Parse rows with the features of the fit, in any order, and perhaps observations."""
        fitted = options.get("features", []) if like is None else like[self.axis].tolist()
        asked = options.get("features", [name for name in fitted if name in table.columns])
        options, usual = {**options, "features": in_order_of(fitted, asked, "features")}, free_name(self.name, fitted)
        if fitted and usual in table.columns:
            options = {"column": usual, **options}
        if not fitted or "column" in options:
            return self._parse(table, missing, options, like or {})
        unseen = {self.name: np.full(table.rows, np.nan), SEQUENCE: np.zeros(table.rows, dtype=np.int64)}
        notes = checked_times(table, options.get("time"), unseen[SEQUENCE], "")
        return self._with_features(Parsed(unseen, {}, notes), [table[name] for name in fitted], False)

    def _with_features(self, parsed: Parsed, columns: Sequence[Column], refuse_constant: bool) -> Parsed:
        """Add the features; refuse missing values in them."""
        names = label_array([column.name for column in columns])
        X = np.empty((len(parsed.arrays[SEQUENCE]), len(columns)))
        for j, column in enumerate(columns):
            X[:, j] = to_reals(column)
            if len(rows := np.flatnonzero(np.isnan(X[:, j]))):
                raise column.lacks(rows, "fill it in, or leave out the feature: no row of a series can be left out")
            if refuse_constant and len(X) > 1 and column.before is None and not np.ptp(X[:, j]):
                raise column.error("is constant, as the level is", "no_spread", hint="leave it out of --features")
        roles = {self.features: ", ".join(names.tolist())} if columns else {}
        arrays = {**parsed.arrays, self.features: X, self.axis: names}
        return replace(parsed, arrays=arrays, columns={**parsed.columns, **roles})

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        columns = {name: to_column(name, arrays[name]) for name in (self.name, SEQUENCE)}
        has_features = np.asarray(arrays[self.axis]).size > 0
        labels = checked_labels(self.axis, arrays[self.axis], least=1) if has_features else None
        features = columns_of(self.features, arrays[self.features], self.axis, labels) if has_features else []
        series = Table("", columns).columns
        parsed = self._arrays(series, missing, lambda column: Converted(to_reals(column), {}, ()))
        Table(
            "", {SEQUENCE: series[SEQUENCE], **{column.name: column for column in features}}
        )  # refuses unequal lengths
        return self._with_features(replace(parsed, columns={}), features, False)

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns of the series, with names that no feature has, and the features."""
        features = dict(zip(arrays[self.axis].tolist(), arrays[self.features].T, strict=True))
        series = super().table(arrays)
        return {free_name(name, features) if name == self.name else name: series[name] for name in series} | features

    def reading(self, arrays: Arrays) -> Options:
        """Return options that name the features, and the observations if a feature has their usual name."""
        names = arrays[self.axis].tolist()
        column = free_name(self.name, names)
        named = {"features": names} if names else {}
        return super().reading(arrays) | named | ({"column": column} if column != self.name else {})

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return a further sequence of rows whose observations are unknown; refuse where they have features."""
        if len(names := arrays[self.axis]):
            columns = f"the columns {joined(names.tolist())}: bayeszoo predict FIT NEW.csv"
            raise further_rows_need("their features", columns)
        return {**super().unseen(arrays, rows), self.features: np.empty((rows, 0))}


def _without(table: Table, names: Sequence[str], options: Options) -> Table:
    """Return the table without features, except those that are also times or names of sequences."""
    kept = {options.get("time"), options.get(SEQUENCE)}
    return replace(table, columns={n: c for n, c in table.columns.items() if n not in names or n in kept})
