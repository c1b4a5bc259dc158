"""Statistics of rows that were read in parts and not kept: what `chunks.accumulate` makes and `fit` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from bayeszoo.data.inputs.labels import refuse_other_labels
from bayeszoo.data.read import Data
from bayeszoo.distributions.conjugate.product import Several
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import Sufficient


@dataclass(frozen=True, eq=False)
class Accumulated:
    """A model's statistics of a whole file, and what else a fit has to know of its rows: `accumulate` makes it."""

    model: Model  # whose statistics they are; another's may be the same, which `require` tells
    stats: Any  # of all rows; None of a model that has none, and was fitted to rows in files
    like: Data  # none of the rows: the names, types and labels of their arrays
    rows: int  # the number of rows kept
    digest: str  # SHA-256 of the rows, whatever parts they were read in; it is not that of the same rows as `Data`
    source: str = ""  # the base name of the file
    columns: Mapping[str, str] = field(default_factory=dict)  # the user's column for each role
    notes: tuple[str, ...] = ()  # everything that was done to the rows or is remarkable about them
    probe: Data | None = None  # a few of the rows, by which it is told whether another model's statistics are the same
    reading: Mapping[str, Any] = field(default_factory=dict)  # as `Data.reading`, with ``rows`` read at a time

    def __repr__(self) -> str:
        """Say what the statistics are of."""
        statistics = "nothing" if self.stats is None else type(self.stats).__name__
        return f"Accumulated({statistics} of {self.rows} rows; from {self.source}; for {self.model})"

    def require(self, model: Model) -> None:
        """Raise `InputError` unless these are the statistics that ``model`` has of the rows.

        They are when the models are equal; or when both have the same statistics of the first rows, to the last digit.
        """
        refuse_other_labels(model.labels, self.like)
        sufficient(model)
        if type(model) is type(self.model) and fields_of(model) == fields_of(self.model):
            return
        if model.inputs != self.model.inputs or self.probe is None or not self._same_statistics(model, self.probe):
            raise InputError(
                f"the statistics are those of {self.model}, not of {model}",
                "wrong_statistics",
                hint="accumulate them again",
            )

    def _same_statistics(self, model: Model, probe: Data) -> bool:
        mine, other = (arrays_of(sufficient(each).statistics(probe)) for each in (model, self.model))
        return mine.keys() == other.keys() and all(np.array_equal(mine[name], other[name]) for name in mine)


def sufficient(model: Model) -> Sufficient[Any]:
    """Return a model that has sufficient statistics, or raise `InputError`."""
    if not isinstance(model, Sufficient):
        raise InputError(
            f"{model.name} has no sufficient statistics", "no_statistics", hint="use bz.read: it needs the rows"
        )
    return model


def rows_of(data: Data | Accumulated) -> Data:
    """Return the rows, or raise the `InputError` that says that they were not kept."""
    if isinstance(data, Accumulated):
        if data.stats is None:
            hint = "give the rows, or fit to what bz.read reads at once"
            raise InputError(
                f"this needs the {data.rows} rows at once, and they were not kept together", "needs_rows", hint=hint
            )
        raise InputError(f"this needs the {data.rows} rows, and only their statistics were kept", "needs_rows")
    return data


def like_of(data: Data | Accumulated) -> Data:
    """Return the data, or where only statistics were kept none of the rows, with the same names, types and labels."""
    return data.like if isinstance(data, Accumulated) else data


def stats_of(model: Model, data: Data | Accumulated) -> Any:
    """Return a model's statistics of the data."""
    return data.stats if isinstance(data, Accumulated) else sufficient(model).statistics(data)


def arrays_of(stats: Stats | None) -> dict[str, np.ndarray]:
    """Return the fields of statistics as arrays, those of the parts of several as ``0.counts``, ``1.0.counts``.

    Raises `InputError` when one is not numbers, which cannot be stored.
    """
    if stats is None:
        return {}
    if isinstance(stats, Several):
        each = ((i, arrays_of(part)) for i, part in enumerate(stats.parts))
        return {f"{i}.{name}": values for i, arrays in each for name, values in arrays.items()}
    arrays = {f.name: np.asarray(getattr(stats, f.name)) for f in fields(stats)}
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            raise InputError(
                f"{type(stats).__name__}.{name} is {values.dtype}: only statistics of numbers are kept",
                "wrong_statistics",
            )
    return arrays


def _filled(empty: Stats, arrays: Mapping[str, Any]) -> Stats:
    """Return statistics of the type of ``empty`` with the fields that `arrays_of` returned."""
    if not isinstance(empty, Several):
        return type(empty)(**arrays)
    of_parts = list[dict[str, Any]]({} for _ in empty.parts)
    for name, values in arrays.items():
        place, rest = name.split(".", 1)
        of_parts[int(place)][rest] = values
    return replace(empty, parts=tuple(map(_filled, empty.parts, of_parts)))


def rebuilt(model: Model, like: Data, arrays: Mapping[str, np.ndarray]) -> Any:
    """Make the statistics again from the arrays that `arrays_of` returned; ``like`` is none of the rows."""
    if not isinstance(model, Sufficient):
        return None
    axes = {name: values.ndim for name, values in arrays.items() if values.dtype.kind in "biuf"}
    try:
        empty = sufficient(model).statistics(like)
        is_whole = axes == {name: values.ndim for name, values in arrays_of(empty).items()}
    except Exception:  # of arrays of any name and type
        is_whole = False
    if not is_whole:
        problem = f"the statistics stored with the fit are none that {model.name} has"
        raise InputError(problem, "no_capability", hint="fit again, or ask who made the file")
    # a single float as NumPy's, which PyTensor reads as 64 bits; a whole number as Python's, which has no end
    single = {name: int(a) if a.dtype.kind in "biu" else np.float64(a) for name, a in arrays.items() if not a.ndim}
    return _filled(empty, {**arrays, **single})


def digest_of(stats: Any) -> str:
    """Return the SHA-256 of statistics."""
    return Data(arrays_of(stats)).digest


def described(like: Data, labels: tuple[str, ...]) -> dict[str, Any]:
    """Return the names, types and shapes of the arrays of none of the rows, and their labels, ready for JSON."""
    return {
        name: {"labels": values.tolist()} if name in labels else {"type": values.dtype.str, "shape": values.shape[1:]}
        for name, values in like.items()
    }


def none_of_the_rows(arrays: Mapping[str, Mapping[str, Any]], **more: Any) -> Data:
    """Make the arrays again that `described` described."""
    empty = {
        name: np.array(of["labels"], dtype=str) if "labels" in of else np.zeros((0, *of["shape"]), of["type"])
        for name, of in arrays.items()
    }
    return Data(empty, **more)
