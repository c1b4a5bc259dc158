"""An outcome and the features that explain it, in columns."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Measured, Parsed, columns_of, further_rows_need, listing
from bayeszoo.data.inputs.counts import Outcomes
from bayeszoo.data.inputs.features.formula import FormulaCoding, coding_of
from bayeszoo.data.inputs.features.holes import HOLES, refuse_options, with_holes
from bayeszoo.data.inputs.features.levels import Coding, Feature, asked_levels, products
from bayeszoo.data.inputs.labels import checked_labels, joined, label_array
from bayeszoo.data.inputs.matrix import in_order_of, refuse_text
from bayeszoo.data.inputs.sequences import lags
from bayeszoo.data.table.read import different_indexes, has_two_dimensions, is_frame, to_column
from bayeszoo.data.table.table import Column, Table, complete, is_text, shown, to_reals
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options


class Columns(NamedTuple):
    """Columns as read: of the outcome, none or one; of numbers that belong to it, by their role; of features."""

    outcome: list[Column]
    by_role: Mapping[str, Column]
    features: list[Feature]
    coding: Coding


@dataclass(frozen=True)
class WithFeatures(Inputs):
    """One column of the outcome, and columns of features.

    The outcome is in the column `name`, or the one that the option ``target`` names; the features are all other
    columns, or those that the option ``features`` names. In Python also a pair ``(X, y)``, or a mapping of both, where
    X is a data frame or has two dimensions; features without names are called ``x1``, ``x2``, ...

    A feature of text has levels: each level except the first, the reference, becomes a column of 0 and 1, named
    ``colour[red]``. The option ``levels`` lists levels in order; ``interactions`` adds products ``a:b`` of features.
    With ``formula``, ``"y ~ a*b + C(c)"``, the features are the terms that formulaic makes. Rows to be predicted are
    coded like those of the fit.

    The canonical arrays are `name`, shape (rows,), `features`, shape (rows, labels), and the coordinate `axis` of the
    names of the features. Rows to be predicted may lack the outcome. Kinds with a `companion` may have an array of it.
    """

    name: str = "y"
    features: str = "X"
    axis: str = "feature"
    options = frozenset({"target", "features", "levels", "interactions", "formula"})
    lists = frozenset({"features", "levels", "interactions"})
    kind: ClassVar[type[np.generic]]
    """The type of the outcome."""
    if_constant: ClassVar[str]
    """The consequence of a constant outcome, for a note."""
    companion: ClassVar[str] = ""
    """An option and array of a number that belongs to the outcome of each row, its trials or its exposure."""
    roles: ClassVar[Mapping[str, Callable[[Column], np.ndarray]]] = MappingProxyType({})
    """The conversions of columns that options name and that are neither outcome nor feature, as the `companion`.

    Rows without a value are left out.
    """
    least_features: ClassVar[int] = 1

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Features have names."""
        form = {self.name, self.features, self.axis}
        forms = (form, form | {self.companion}) if self.companion else (form,)
        return Layout((self.axis,), dims={self.features: (self.axis,)}, forms=forms)

    # Tables

    def _checked_options(self, table: Table, missing: str, options: Options) -> Options:
        levels = {} if options.get("levels") is None else {"levels": asked_levels(options["levels"])}
        return {**super()._checked_options(table, missing, {**options, "levels": None}), **levels}

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        options = self._with_companion(table, options)
        target, coding = self._target_and_coding(table, options)
        try:
            return self._from_columns(table, target, coding, missing, None, options)
        except InputError:
            if not {"features", "formula"} & options.keys():  # only now, as it checks every cell again
                numbers = [name for name in coding.features if not is_text(table[name])]
                refuse_text(Table("", {name: table[name] for name in numbers}), "features")
            raise

    def _target_and_coding(self, table: Table, options: Options) -> tuple[str, Coding]:
        """Return the column of the outcome, and the coding of the features."""
        target, levels = options.get("target"), options.get("levels", {})
        if "formula" in options:
            if other := next((name for name in ("features", "interactions") if name in options), None):
                raise InputError(
                    f"a formula names the features itself, and {other} too",
                    "conflicting_options",
                    hint=f"leave out --{other}",
                )
            named, terms = FormulaCoding.read(options["formula"], levels)
            if target and named and target != named:
                raise InputError(
                    f"the formula has the outcome {shown(named)}, --target {shown(target)}", "conflicting_options"
                )
            return target or named or self.name, terms
        if target is None and self.name not in table.columns:
            problem = f"{table} and none called {shown(self.name)}"
            raise InputError(problem, "missing_column", hint="name the outcome with --target")
        target = target or self.name
        return target, Coding(self._features_of(table, target, options), levels, options.get("interactions", ()))

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        """Parse rows with the features of the fit, in any order, and perhaps the outcome.

        Other columns are not used. The outcome has its name in the fit, or that of the option; another column with the
        model's name for the outcome gets a note.
        """
        fitted = [] if like is None else like[self.axis].tolist()
        usual = getattr(like, "columns", {}).get(self.name, free_name(self.name, fitted))
        target = options.get("target", usual if usual in table.columns else None)
        if self.companion in (like or {}) and self.companion not in options:
            # its name in the table of the fit, or the model's name in rows that were read before
            names = (getattr(like, "columns", {}).get(self.companion), self.companion)
            present = [name for name in names if name in table.columns]
            options = {**options, self.companion: present[0]} if present else options
        named = self._features_of(table, target, options) if like is None else []
        coding = Coding(named) if like is None else self._as_in(like, table, options)
        parsed = self._from_columns(table, target, coding, missing, like or {}, options)
        is_unused = target is None and self.name in table.columns and self.name not in coding.features
        note = f"column {shown(self.name)} is not used; use it with --target {listing([self.name])}"
        return replace(parsed, notes=(*parsed.notes, *[note] * is_unused))

    def _as_in(self, like: Arrays, table: Table, options: Options) -> Coding:
        """Return the coding of a fit for a table, or for columns that are already coded."""
        fitted = like[self.axis].tolist()
        coding = coding_of(like) or Coding(fitted)
        if ({*fitted} - {*coding.features}) & table.columns.keys():
            coding = Coding(fitted)
        for name in {"levels", "interactions", "formula"} & options.keys():
            if options[name] != getattr(coding, name, None):
                raise InputError(
                    f"{name} must be those of the fit, in their order", "labels_differ", hint=f"leave out --{name}"
                )
        names = options.get("features", [name for name in coding.features if name in table.columns])
        return replace(coding, features=in_order_of([*coding.features], names, "features"))

    def _from_columns(
        self,
        table: Table,
        target: str | None,
        coding: Coding,
        missing: str,
        like: Arrays | None,
        options: Options,
    ) -> Parsed:
        if target in coding.features:
            hint = "leave it out of --features, or name the outcome with --target"
            raise InputError(
                f"column {shown(target)} is both the outcome and a feature", "duplicate_name", column=target, hint=hint
            )
        if other := next((name for name in coding.levels if name not in coding.features), None):
            raise InputError(
                f"levels are given for {shown(other)}, which is no feature", "unknown_label", hint="leave them out"
            )
        outcome = [] if target is None else [table[target]]
        by_role = {role: table[options[role]] for role in self.roles if role in options}
        columns, is_named = [table[name] for name in coding.features], bool({"features", "formula"} & options.keys())
        if like is None:
            features = [Feature.read(column, coding, is_named) for column in columns]
        else:
            features = [Feature.read_new(column, coding.levels) for column in columns]
        parsed = self._arrays(Columns(outcome, by_role, features, coding), missing, like, options)
        roles = {self.name: target} if target is not None else {}
        roles |= {role: column.name for role, column in by_role.items()}
        return replace(parsed, columns={**roles, self.features: ", ".join(coding.features)})

    def _arrays(self, columns: Columns, missing: str, like: Arrays | None, options: Options) -> Parsed:
        """Convert the columns, drop incomplete rows and add notes; ``like`` are the data of the fit."""
        outcome, by_role, features, coding = columns
        named = [*outcome, *by_role.values(), *(feature.column for feature in features)]
        options = {**options, **{role: column.name for role, column in by_role.items()}}
        read = [self._outcome(column, options, like) for column in outcome]
        sizes = {role: self.roles[role](column) for role, column in by_role.items()}
        if read and self.companion in sizes:
            self._refuse_together(outcome[0], read[0].values, sizes[self.companion])
        arrays = [*(outcomes.values for outcomes in read), *sizes.values(), *(feature.values for feature in features)]
        is_holed = missing == HOLES
        values, notes = with_holes(named, arrays, features) if is_holed else complete(named, arrays, missing)
        is_whole = like is None and named[0].before is None and self.companion not in by_role  # not a part
        if is_whole and len(values[0]) > 1 and not np.ptp(values[0]):
            notes = (*notes, f"{named[0]} is constant: {self.if_constant}")
        of_rows = {self.name: values[0].astype(self.kind)} if outcome else {}
        of_rows |= dict(zip(by_role, values[len(outcome) :], strict=False))
        of_features = values[len(outcome) + len(by_role) :]
        kept = [feature.of_rows(numbers) for feature, numbers in zip(features, of_features, strict=True)]
        without_features: tuple[Coding, list[str], np.ndarray] = coding, [], np.empty((len(values[0]), 0))
        coding, names, X = coding.coded(kept) if kept or self.least_features else without_features
        of_outcome = read[0] if read else Outcomes(np.empty(0))
        of_levels = coding.notes(kept) if like is None else []
        return Parsed(
            {**of_rows, self.features: X, self.axis: label_array(names)},
            {},
            (*of_outcome.notes, *of_levels, *notes),
            of_outcome.labels,
            coding=coding.plain,
        )

    def parse_with_holes(self, table: Table, **options: Any) -> Parsed:
        """Check a table whose features may lack values, NaN in their array; rows without an outcome are left out."""
        chosen = self._checked_options(table, "drop", options)
        refuse_options(chosen)
        return self._with_notes(self._parse(table, HOLES, chosen, None), table)

    @abstractmethod
    def _outcome(self, column: Column, options: Options, like: Arrays | None) -> Outcomes:
        """Convert the column of the outcome."""

    def _with_companion(self, table: Table, options: Options) -> Options:
        """Add the column of that name as the `companion`, unless an option says otherwise."""
        taken = {options.get("target"), *options.get("features", ()), *re.findall(r"\w+", options.get("formula", ""))}
        if not (name := self.companion) or name in taken or name in options or name not in table.columns:
            return options
        return {**options, name: name}

    def _features_of(self, table: Table, target: str | None, options: Options) -> list[str]:
        """Return the requested features, or all columns except the outcome and those that belong to it."""
        others = {target, *(options.get(role) for role in self.roles)}
        features: list[str] = options.get("features", [name for name in table.columns if name not in others])
        if len(features) < self.least_features:
            hint = "give a table with feature columns"
            raise InputError(
                f"there is no feature: column {shown(target)} is the only one", "no_data", column=target, hint=hint
            )
        return features

    def _refuse_together(self, outcome: Column, values: np.ndarray, sizes: np.ndarray) -> None:
        """Refuse outcomes that their trials or exposures do not allow."""

    # Python objects

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read features in two dimensions and the outcome: a pair ``(X, y)``, or a mapping of both."""
        if isinstance(source, Mapping):
            names = {self.name, self.features, self.axis, *self.roles}
            is_of_kind = source.keys() <= names and has_two_dimensions(source.get(self.features))
            return self._joined(source, decimal) if is_of_kind else None
        if isinstance(source, list | tuple) and len(source) == 2 and self._is_pair(source):
            return self._joined({self.features: source[0], self.name: source[1]}, decimal)
        if has_two_dimensions(source) and not is_frame(source):
            return self._joined({self.features: source}, decimal)
        return None

    def _is_pair(self, source: Sequence[object]) -> bool:
        """Say whether a pair is ``(X, y)`` and not two rows, by the dimensions of its first part."""
        if has_two_dimensions(source[0]) or getattr(source[0], "ndim", 0) > 2:
            return True
        if isinstance(source, tuple) and all(getattr(part, "ndim", 0) == 1 for part in source):
            # two rows are unlikely, and the message for these would mislead
            raise InputError(
                f"{self.features} has one dimension, two expected", "wrong_shape", hint="give one feature one column"
            )
        return False

    def _joined(self, parts: Mapping[str, object], decimal: str) -> Table:
        """Join the outcome and the columns of X, with their names or numbers."""
        features, outcome, notes = self._columns(parts, decimal)
        outcome = [*outcome, *self._beside_in(parts, decimal).values()]
        columns = {column.name: column for column in features}
        if outcome and self.name in columns:
            problem = f"{self.features} has a column {shown(self.name)}, which is also the name of the outcome"
            raise InputError(problem, "not_a_number", column=self.name, hint="rename it")
        return Table("", {**{column.name: column for column in outcome}, **columns}, notes)

    def _columns(
        self, parts: Mapping[str, object], decimal: str = "."
    ) -> tuple[list[Column], list[Column], tuple[str, ...]]:
        """Return the columns of X and of y, which must have equal lengths, and a note if their indexes differ."""
        X: Any = parts[self.features]
        y: Any = parts.get(self.name)
        labels = checked_labels(self.axis, parts[self.axis], least=1) if parts.get(self.axis) is not None else None
        features = columns_of(self.features, X, self.axis, labels, decimal)
        if self.name not in parts:
            return features, [], ()
        outcome = to_column(self.name, y, decimal)
        if len(outcome) != len(features[0]):
            raise InputError(
                f"{self.features} has {len(features[0])} rows, {self.name} has {len(outcome)}", "wrong_shape"
            )
        return features, [outcome], different_indexes({self.features: X, self.name: y})

    # Canonical arrays

    def _canonical(self, arrays: Mapping[str, object], missing: str, options: Options | None = None) -> Parsed:
        features, outcome, notes = self._columns(arrays)
        read = [Feature(column, to_reals(column)) for column in features]
        coding = Coding([column.name for column in features])
        columns = Columns(outcome, self._beside_in(arrays), read, coding)
        checked = self._arrays(columns, missing, None, options or {})
        return replace(checked, notes=(*notes, *checked.notes))

    def _beside_in(self, parts: Mapping[str, object], decimal: str = ".") -> dict[str, Column]:
        return {role: to_column(role, parts[role], decimal) for role in self.roles if role in parts}

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns by name; the outcome has the model's name, with a number if a feature has it."""
        features = dict(zip(arrays[self.axis].tolist(), arrays[self.features].T, strict=True))
        if self.companion in arrays:
            features = {free_name(self.companion, features): arrays[self.companion], **features}
        return {free_name(self.name, features): arrays[self.name], **features} if self.has_outcome(arrays) else features

    def reading(self, arrays: Arrays) -> Options:
        """Return the option that names the outcome, if a feature has its usual name."""
        features = arrays[self.axis].tolist()
        target, companion = free_name(self.name, features), free_name(self.companion, features)
        named = {} if target == self.name or not self.has_outcome(arrays) else {"target": target}
        return named | ({self.companion: companion} if self.companion in arrays and companion != self.companion else {})

    def size(self, arrays: Arrays) -> int:
        """Return the number of rows."""
        return len(arrays[self.features])

    def rescaled(self, arrays: Arrays, factors: np.ndarray, shifts: np.ndarray) -> dict[str, np.ndarray]:
        """Return the data with every feature x as ``factor * x + shift``."""
        return {**arrays, self.features: arrays[self.features] * factors + shifts}

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Refuse further rows, whose features are unknown."""
        axis, coding = arrays[self.axis], coding_of(arrays)
        names = np.delete(axis, list(products(axis))).tolist() if coding is None else coding.features
        raise further_rows_need("their features", f"the columns {joined(names)}")


@dataclass(frozen=True)
class Regression(WithFeatures, Measured):
    """One column of the outcome, a real number, and columns of features, as in `WithFeatures`.

    With ``lags``, K, rows are in order, and the K earlier outcomes are features named ``lag 1``, ``lag 2``, ...; other
    features must be named. The first K rows are given and are no observations. ``sequence`` names a column of
    independent sequences, and ``time`` one that rises by equal steps in each.
    """

    options = WithFeatures.options | lags.OPTIONS
    kind, if_constant = np.float64, "an intercept alone fits it without error"
    holds = (
        "one column of the outcome ({0.name}, or say which with --target), of real numbers, and columns of features, "
        "all others or some of them (--features), of real numbers or of text, which has levels (--levels)"
    )

    def parse(
        self, table: Table, missing: str = "refuse", new: bool = False, like: Arrays | None = None, **options: Any
    ) -> Parsed:
        """Check a table and convert it to arrays, after adding lags as in the fit."""
        fitted, order = lags.of_data(like) if new else None, lags.asked(options)
        if fitted is not None:
            if order not in (None, fitted.order):
                raise InputError(f"the fit has {fitted.order} lags", "labels_differ", hint="leave out --lags")
            order = None if {*fitted.names} <= table.columns.keys() else fitted.order
        target = options.get("target")
        target = getattr(like, "columns", {}).get(self.name, self.name) if target is None else str(target)
        if order is None:
            return super().parse(table, missing, new, like, **{**options, "lags": None})
        if new and target not in table.columns:
            hint = "give their outcomes too, to predict each a step ahead; or a number: bayeszoo predict FIT --rows 3"
            raise InputError("lags of further rows are not known", "new_rows_unknown", hint=hint)
        lagged = lags.LaggedTable.of(table, target, order, options)
        return lagged.without_first(self, super().parse(lagged.table, missing, new, like, **lagged.options))

    def _outcome(self, column: Column, options: Options, like: Arrays | None) -> Outcomes:
        return Outcomes(to_reals(column))

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Refuse further rows, whose features or earlier rows are unknown."""
        if lags.of_data(arrays) is not None:
            raise InputError("future rows differ: each depends on those before", "new_rows_unknown")
        return super().unseen(arrays, rows)


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return the name, or if it is taken the first of ``y_2``, ``y_3``, ... that is free."""
    taken = set(taken)
    return next(free for free in (name, *(f"{name}_{i + 2}" for i in range(len(taken)))) if free not in taken)
