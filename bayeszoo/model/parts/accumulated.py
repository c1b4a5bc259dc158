"""Statistics of rows that were read in parts and not kept: made by `accumulate`, fitted by `fit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from bayeszoo.data.inputs.labels import refuse_other_labels
from bayeszoo.data.read import Data
from bayeszoo.distributions.conjugate.product import Several
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Statistics
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import Sufficient


@dataclass(frozen=True, eq=False)
class Accumulated:
    """A model's sufficient statistics of a whole file, and the facts about its rows that a fit needs."""

    model: Model  # the model of the statistics; `require` tells whether another model's are the same
    stats: Any  # of all rows; None if the model has none and was fitted to rows in files
    like: Data  # arrays without rows: their names, types and labels
    rows: int  # the number of rows kept
    digest: str  # SHA-256 of the rows, independent of the parts; it differs from `Data.digest` of the same rows
    source: str = ""  # the base name of the file
    columns: Mapping[str, str] = field(default_factory=dict)  # the user's column for each role
    notes: tuple[str, ...] = ()  # changes made to the rows, and remarks about them
    probe: Data | None = None  # a few rows, to compare another model's statistics with these
    reading: Mapping[str, Any] = field(default_factory=dict)  # as `Data.reading`, with ``rows`` read at a time

    why_no_rows: ClassVar[str] = "only their statistics were kept"
    """Why there are no complete rows at once, for messages."""
    hint: ClassVar[str | None] = None
    """Hint for an answer that needs them."""

    def __repr__(self) -> str:
        """Name the statistics, the number of rows, the file and the model."""
        statistics = "nothing" if self.stats is None else type(self.stats).__name__
        return f"Accumulated({statistics} of {self.rows} rows; from {self.source}; for {self.model})"

    def require(self, model: Model) -> None:
        """Raise `InputError` unless these are the statistics that ``model`` has of the rows.

        They are if the models are equal, or if both have exactly the same statistics of the first rows.
        """
        refuse_other_labels(model.labels, self.like)
        sufficient(model)
        if type(model) is type(self.model) and fields_of(model) == fields_of(self.model):
            return
        if model.inputs != self.model.inputs or self.probe is None or not self._same_statistics(model, self.probe):
            raise InputError(
                f"the statistics were accumulated for {self.model}, not for {model}",
                "wrong_statistics",
                hint="accumulate again for this model",
            )

    def _same_statistics(self, model: Model, probe: Data) -> bool:
        of_model, of_self = (arrays_of(sufficient(owner).statistics(probe)) for owner in (model, self.model))
        return of_model.keys() == of_self.keys() and all(
            np.array_equal(of_model[name], of_self[name]) for name in of_model
        )


def sufficient(model: Model) -> Sufficient[Any]:
    """Return a model that has sufficient statistics, or raise `InputError`."""
    if not isinstance(model, Sufficient):
        raise InputError(
            f"{model.name} has no sufficient statistics", "no_statistics", hint="use bz.read: it needs the rows"
        )
    return model


def rows_of(data: Data | Accumulated) -> Data:
    """Return the rows, or raise `InputError` if they were not kept."""
    if isinstance(data, Accumulated):
        raise InputError(f"this needs the {data.rows} rows, and {data.why_no_rows}", "needs_rows", hint=data.hint)
    return data


def like_of(data: Data | Accumulated) -> Data:
    """Return the data; or, if only statistics were kept, arrays without rows but with their types and labels."""
    return data.like if isinstance(data, Accumulated) else data


def stats_of(model: Model, data: Data | Accumulated) -> Any:
    """Return a model's statistics of the data; rows with empty cells have none."""
    if isinstance(data, Accumulated) and not (data.stats is None and isinstance(model, Sufficient)):
        return data.stats
    return sufficient(model).statistics(rows_of(data))


def arrays_of(stats: Stats | None) -> dict[str, np.ndarray]:
    """Return the fields of statistics as arrays; fields of nested parts are called ``0.counts``, ``1.0.counts``.

    Raises `InputError` for a field that is not numeric: it cannot be stored.
    """
    if stats is None:
        return {}
    if isinstance(stats, Several):
        of_parts = ((i, arrays_of(part)) for i, part in enumerate(stats.parts))
        return {f"{i}.{name}": values for i, arrays in of_parts for name, values in arrays.items()}
    arrays = {f.name: np.asarray(getattr(stats, f.name)) for f in fields(stats)}
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            raise InputError(
                f"{type(stats).__name__}.{name} is {values.dtype}: only numeric statistics can be stored",
                "wrong_statistics",
            )
    return arrays


def _filled(empty: Stats, arrays: Mapping[str, Any]) -> Stats:
    """Return statistics of the type of ``empty`` with the arrays of `arrays_of` as fields."""
    if not isinstance(empty, Several):
        return type(empty)(**arrays)
    arrays_of_parts = list[dict[str, Any]]({} for _ in empty.parts)
    for name, values in arrays.items():
        number, field_name = name.split(".", 1)
        arrays_of_parts[int(number)][field_name] = values
    return replace(empty, parts=tuple(map(_filled, empty.parts, arrays_of_parts)))


def rebuilt(model: Model, like: Data, arrays: Mapping[str, np.ndarray]) -> Any:
    """Rebuild statistics from the arrays that `arrays_of` returned; ``like`` has no rows."""
    if not isinstance(model, Sufficient):
        return None
    axes = {name: values.ndim for name, values in arrays.items() if values.dtype.kind in "biuf"}
    try:
        empty = sufficient(model).statistics(like)
        is_whole = axes == {name: values.ndim for name, values in arrays_of(empty).items()}
    except Exception:  # arrays from a file may have any name and type; those that raise anything are refused
        is_whole = False
    if not is_whole:
        problem = f"the stored statistics have other names or shapes than those of {model.name}"
        raise InputError(problem, "no_capability", hint="fit again, or ask who made the file")
    # scalar floats become NumPy's, which PyTensor reads as 64 bits; integers Python's, which have no limit
    scalars = {name: int(a) if a.dtype.kind in "biu" else np.float64(a) for name, a in arrays.items() if not a.ndim}
    return _filled(empty, {**arrays, **scalars})


def digest_of(stats: Statistics) -> str:
    """Return the SHA-256 of statistics."""
    return Data(arrays_of(stats)).digest


def described(like: Data, labels: tuple[str, ...]) -> dict[str, Any]:
    """Describe arrays without rows for JSON: the type and shape of each, or its labels."""
    return {
        name: {"labels": values.tolist()} if name in labels else {"type": values.dtype.str, "shape": values.shape[1:]}
        for name, values in like.items()
    }


def none_of_the_rows(arrays: Mapping[str, Mapping[str, Any]], **more: Any) -> Data:
    """Rebuild the arrays without rows from the output of `described`."""
    empty = {
        name: np.array(description["labels"], dtype=str)
        if "labels" in description
        else np.zeros((0, *description["shape"]), description["type"])
        for name, description in arrays.items()
    }
    return Data(empty, **more)
