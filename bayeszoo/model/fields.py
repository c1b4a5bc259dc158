"""Hyperparameters: a model's fields are declared, checked, and rescaled with the data.

A field is a number, or a number for each label of an axis (then kept as a tuple, so that models stay comparable and
hashable). Everything is cast to float64 once, here: PyTensor would read Python's ``3.0`` as float32 and ``3`` as int8
(pytensor#1073).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import takewhile
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError

LARGEST = 1e100  # largest hyperparameter, so that products and squares of several stay finite


class DataclassInstance(Protocol):
    """A dataclass, as all models are."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True)
class Hyperparameter:
    """Declaration of a field."""

    label: str  # its name in messages
    positive: bool = False  # whether its entries must be > 0
    axes: tuple[str, ...] = ()  # the data's axes along which it has entries; one number may stand for all
    matrix: bool = False  # whether it is a symmetric positive definite matrix along the last two of ``axes``
    multiple: bool = False  # whether a number may stand for that multiple of the identity matrix
    units: int = 0  # the power of the outcome's unit in it: 1 for a standard deviation, 2 for a variance
    whole: bool = False  # whether it is a count >= 1, as of components: no part of the prior, and never moved
    location: bool = False  # whether it shifts with the outcome's zero

    def cast(self, value: object) -> Any:
        """Return the value as float64, or as a tuple of them, or raise an `InputError` that names the field."""
        if self.whole:
            return _count(value, self.label)
        if self.matrix:
            return self._matrix(value)
        return self._entries(value, self.label, len(self.axes))

    def _matrix(self, value: Any) -> Any:
        """Check a matrix, a list of matrices along a first axis, or a multiple of the identity."""
        if self.multiple and not isinstance(value, list | tuple | np.ndarray):
            return _number(value, self.label, True)
        if len(self.axes) == 3 and all(_is_list(matrix) and len(matrix) and _is_list(matrix[0]) for matrix in value):
            return tuple(_covariance(matrix, f"{self.label}[{k}]") for k, matrix in enumerate(value))
        return _covariance(value, self.label)

    def _entries(self, value: Any, label: str, depth: int) -> Any:
        """Check a number, or a list nested one level less deep."""
        several = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
        if not depth or not several:
            return _number(value, label, self.positive)
        if not len(value):
            raise InputError(f"{label} is an empty list", "empty_list", hint="give one number, or one for each entry")
        entries = tuple(self._entries(item, f"{label}[{i}]", depth - 1) for i, item in enumerate(value))
        if len({np.shape(item) if isinstance(item, tuple) else () for item in entries}) > 1:
            raise InputError(f"{label} is ragged: its rows have different lengths", "ragged")
        return entries

    def moved(self, value: Any, i: int, sizes: Mapping[str, int]) -> Any:
        """Return another valid value for the i-th field of a model: all entries of all moved fields differ.

        Along an axis without a size, and axes before it, all entries stay equal.
        """
        sized_axes = takewhile(sizes.get, reversed(self.axes))
        shape = tuple(sizes[axis] for axis in sized_axes)[::-1]
        if self.matrix:
            values = np.asarray(value) if np.ndim(value) else value * np.eye(shape[-1])
            signed = np.sqrt(np.diag(values)) * (-1.0) ** np.arange(len(values))
            stretch = 1.5 + 0.4 * i + 0.3 * np.arange(len(values))
            moved = (values + 0.3 * np.outer(signed, signed)) * np.outer(stretch, stretch)
            return plain([moved * (1 + 0.2 * k) for k in range(shape[0])] if len(self.axes) == 3 else moved)
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
        steps = np.arange(values.size).reshape(shape)
        if self.positive:
            return plain(values * (1.5 + 0.4 * i) * (1 + 0.9 * steps / max(values.size, 1)))
        return plain(values + 0.3 * (i + 1) + 0.2 * steps)

    def in_units(self, value: object, factor: float, shift: float) -> Any:
        """Return the value for outcomes ``factor * y + shift``, factor > 0."""
        return plain(np.asarray(value) * factor**self.units + (shift if self.location else 0.0))

    def relabelled(self, value: object, axis: str, permutation: np.ndarray) -> Any:
        """Return the value with the labels of ``axis`` in another order."""
        values = np.asarray(value)
        names = self.axes[len(self.axes) - values.ndim :]  # a vector along the last axis stands for all rows
        for i, name in enumerate(names):
            values = np.take(values, permutation, axis=i) if name == axis else values
        return plain(values)


def positive(default: object, label: str, *, axes: tuple[str, ...] = (), units: int = 0, kw_only: bool = False) -> Any:
    """Declare a hyperparameter that must be finite and > 0: a number, or with ``axes`` also one for each label."""
    return _declared(default, Hyperparameter(label, positive=True, axes=axes, units=units), kw_only)


def real(
    default: object,
    label: str,
    *,
    axes: tuple[str, ...] = (),
    units: int = 0,
    location: bool = False,
    kw_only: bool = False,
) -> Any:
    """Declare a hyperparameter that must be a finite real number, or with ``axes`` one for each label."""
    return _declared(default, Hyperparameter(label, axes=axes, units=units, location=location), kw_only)


def covariance(default: object, label: str, *, axes: tuple[str, ...], units: int = 2) -> Any:
    """Declare a symmetric positive definite matrix, or a multiple of the identity if the default is a number.

    With three axes it may be a list of matrices, one for each label of the first axis.
    """
    multiple = not isinstance(default, tuple)
    return _declared(default, Hyperparameter(label, axes=axes, matrix=True, multiple=multiple, units=units))


def whole(default: int, label: str, *, kw_only: bool = False) -> Any:
    """Declare a field that must be a whole number >= 1."""
    return _declared(default, Hyperparameter(label, whole=True), kw_only)


def known(*, units: int = 0, location: bool = False) -> Any:
    """Declare known constants, one number for each label, or None: no prior, but in the outcome's unit."""
    return field(default=None, metadata={"known": Hyperparameter("", units=units, location=location)})


def _declared(default: object, hyperparameter: Hyperparameter, kw_only: bool = False) -> Any:
    return field(default=default, metadata={"hyperparameter": hyperparameter}, kw_only=kw_only)


def hyperparameters(model: DataclassInstance | type[DataclassInstance]) -> dict[str, Hyperparameter]:
    """Return the declaration of each field of a model, or of its class."""
    return {f.name: f.metadata["hyperparameter"] for f in fields(model) if "hyperparameter" in f.metadata}


def plain(value: object) -> Any:
    """Return an array as a number or nested tuples of numbers."""
    values = np.asarray(value, dtype=np.float64)
    return values[()] if values.ndim == 0 else tuple(plain(item) for item in values)


def text(value: Any, most_items: int = 6) -> str:
    """Write a field's value in a line: ``2.5``, ``[1, 2, 3]``, ``[1, 1, ... 27 in all]``."""
    if isinstance(value, list | tuple):
        inner = [text(item, most_items) for item in value[:most_items]] + (
            [f"... {len(value)} in all"] if value[most_items:] else []
        )
        return f"[{', '.join(inner)}]"
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def _mapped[M: DataclassInstance](model: M, change: Callable[[int, Hyperparameter, object], object]) -> M:
    """Return the model with changed prior fields; ``change`` takes a field's number, declaration and value."""
    numbered = enumerate(hyperparameters(model).items())
    return replace(model, **{name: change(i, h, getattr(model, name)) for i, (name, h) in numbered if not h.whole})


def in_units[M: DataclassInstance](model: M, factor: float, shift: float) -> M:
    """Return the model for outcomes ``factor * y + shift``: its prior and known constants in the new units."""
    moved = _mapped(model, lambda _, prior, value: prior.in_units(value, factor, shift))
    constants = [f for f in fields(model) if "known" in f.metadata and getattr(model, f.name)]
    numbers = {f.name: f.metadata["known"].in_units(getattr(model, f.name), factor, shift) for f in constants}
    return replace(moved, **numbers)


def relabelled[M: DataclassInstance](model: M, axis: str, permutation: np.ndarray) -> M:
    """Return the model for data whose labels along ``axis`` are in another order."""
    return _mapped(model, lambda _, declaration, value: declaration.relabelled(value, axis, permutation))


def moved[M: DataclassInstance](model: M, sizes: Mapping[str, int]) -> M:
    """Return the model with all prior fields moved off their values; ``sizes`` are those of the data's axes."""
    return _mapped(model, lambda i, declaration, value: declaration.moved(value, i, sizes))


def _count(value: object, label: str) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InputError(f"{label} must be a whole number, got {shown(value)}", "wrong_type")
    if value < 1:
        raise InputError(f"{label} must be at least 1, got {value}", "out_of_range")
    return int(value)


def _number(value: object, label: str, must_be_positive: bool) -> np.float64:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{label} must be a number, got {shown(value)}", "wrong_type")
    if not -LARGEST <= value <= LARGEST:
        size = f"{value:g}" if isinstance(value, float | np.floating) else "a larger number"
        raise InputError(f"{label} must be finite and at most {LARGEST:g} in size, got {size}", "out_of_range")
    if must_be_positive and value <= 0:
        raise InputError(f"{label} must be > 0, got {value:g}", "out_of_range")
    return np.float64(value)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple | np.ndarray) and np.ndim(cast(Any, value)) > 0


def _covariance(value: object, label: str) -> tuple[tuple[np.float64, ...], ...]:
    if not isinstance(value, list | tuple | np.ndarray) or not all(
        isinstance(row, list | tuple | np.ndarray) for row in value
    ):
        raise InputError(f"{label} must be a matrix, a list of rows, got {shown(value)}", "wrong_type")
    rows = [[_number(x, f"{label}[{i},{j}]", False) for j, x in enumerate(row)] for i, row in enumerate(value)]
    if not rows or any(len(row) != len(rows) for row in rows):
        raise InputError(
            f"{label} must be square: it has {len(rows)} rows of {', '.join(str(len(r)) for r in rows)}", "wrong_shape"
        )
    matrix = np.array(rows)
    scale = np.sqrt(np.abs(np.outer(np.diag(matrix), np.diag(matrix))))
    if (wrong := np.argwhere(np.abs(matrix - matrix.T) > 1e-12 * scale)).size:
        i, j = wrong[0]
        raise InputError(
            f"{label} is not symmetric: [{i},{j}]={matrix[i, j]:g}, [{j},{i}]={matrix[j, i]:g}", "not_symmetric"
        )
    matrix = (matrix + matrix.T) / 2
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        raise InputError(
            f"{label} is not positive definite (smallest eigenvalue {smallest:g})", "not_positive_definite"
        ) from None
    return cast(tuple[tuple[np.float64, ...], ...], plain(matrix))
