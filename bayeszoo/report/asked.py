"""What was asked: the model as its file states it, the prior and where it came from, the data, the graph."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.data.read import Data, own_example
from bayeszoo.model.accumulated import Accumulated, arrays_of
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.fields import hyperparameters, text
from bayeszoo.plots.graph import model_svg
from bayeszoo.plots.style import uri_of
from bayeszoo.report.blocks import Code, Picture, Section, Table, Words, table
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr

_COLUMNS = ("", "column", "values", "mean", "sd", "least", "greatest", "labels")
_LABELS_SHOWN = 8
_COLUMNS_SHOWN = 20


def section(tree: xr.DataTree) -> Section:
    """Say what was asked."""
    model, given = Fit(tree).model, Fit(tree).given
    table_of = f"The table: {type(model).inputs.describe()}."
    if own := own_example(model, given.source, given.digest):
        table_of += f" These data come with the model: {own.about} ({own.source})"
    blocks = [
        *_paragraphs(notation(type(model))),
        _prior(model, given),
        Words(table_of),
        _data(given, type(model).inputs.coded),
        *(Words(line, "note") for line in Fit(tree).notes),
    ]
    return Section("asked", "What was asked", blocks)


def graph(tree: xr.DataTree) -> Section:
    """Draw the graph of the model as it is declared in PyMC."""
    model, given = Fit(tree).model, Fit(tree).given
    image = model_svg(model, given if isinstance(given, Data) else None)
    caption = "Shaded: observed. A frame: one of each along its axis. Discrete latent variables are summed out."
    picture = Picture(uri_of(image), f"graph of {model.name}", caption)
    return Section("graph", "The graph of the model", [picture])


def _paragraphs(words: str) -> list[Words | Code]:
    """Split a docstring: what is indented is mathematics and stays as it is."""
    parts = [part for part in words.replace("``", "").split("\n\n") if part.strip()]
    return [
        Code(part) if all(line.startswith("    ") for line in part.split("\n")) else Words(" ".join(part.split()))
        for part in parts
    ]


def _prior(model: Model, given: Data | Accumulated) -> Table:
    """List the fields with where each came from, as far as its value tells."""
    known, values = hyperparameters(model), fields_of(model)
    weak = fields_of(type(model).weak(given)) if isinstance(given, Data) else {}
    rows = []
    for field in fields(cast(Any, model)):
        value, origin = values[field.name], "given"
        if np.array_equal(value, cast(Any, field.default)):
            origin = "the model's default"
        elif field.name in weak and np.array_equal(value, weak[field.name]):
            origin = "weakly informative, scaled to these data"
        rows.append([field.name, text(value), known[field.name].label if field.name in known else "", origin])
    columns = ["field", "value", "is", "comes from"]
    return table(columns, rows, "The prior and the switches", columns[1:])


def _data(given: Data | Accumulated, codes: Collection[str]) -> Table:
    arrays: Mapping[str, np.ndarray] = given if isinstance(given, Data) else arrays_of(given.stats)
    rows = [row for name, values in arrays.items() for row in _rows(name, values, given, codes)]
    what = "" if isinstance(given, Data) else ", of which statistics were kept"
    caption = f"The data: {given.rows} row{'s' * (given.rows != 1)}{what}, from {given.source or 'arrays'}"
    used = [i for i in range(len(_COLUMNS)) if i == 0 or any(row[i] not in ("", None) for row in rows)]
    kept = [[row[i] for i in used] for row in rows]
    return table([_COLUMNS[i] for i in used], kept, caption, ["column", "labels"], sortable=False)


def _rows(name: str, values: np.ndarray, given: Data | Accumulated, codes: Collection[str]) -> list[list[Any]]:
    """Describe an array in one row; a matrix of a few named columns in one row each."""
    column = given.columns.get(name, "")
    if name in codes:  # which mean nothing as numbers
        return [[name, column, _shape(values), *[None] * 5]]
    if values.ndim == 2 and values.shape[1] <= _COLUMNS_SHOWN and isinstance(given, Data):
        texts = [labels for labels in given.values() if labels.dtype.kind in "US" and labels.ndim == 1]
        if labels := next((each.tolist() for each in texts if len(each) == values.shape[1]), None):
            return [[f"{name}[{label}]", label, *_described(values[:, i])] for i, label in enumerate(map(str, labels))]
    return [[name, column, *_described(values)]]


def _shape(values: np.ndarray) -> str:
    return " x ".join(map(str, values.shape)) or "1"


def _described(values: np.ndarray) -> list[Any]:
    """Return how many there are, mean, sd, extremes, and for text the labels."""
    if values.dtype.kind not in "biuf":
        labels = list(dict.fromkeys(map(str, values.ravel().tolist())))
        more = f", ... ({len(labels)} labels)" if len(labels) > _LABELS_SHOWN else ""
        return [_shape(values), None, None, None, None, ", ".join(labels[:_LABELS_SHOWN]) + more]
    numbers = values.astype(np.float64).ravel()
    seen = numbers[np.isfinite(numbers)]
    if not seen.size:
        return [_shape(values), *[None] * 5]
    sd = float(seen.std(ddof=1)) if seen.size > 1 else None
    return [_shape(values), float(seen.mean()), sd, float(seen.min()), float(seen.max()), None]


def notation(model: type[Model]) -> str:
    """Return the docstring of the model's file: the model in ~ notation, and its sources."""
    return (sys.modules[model.__module__].__doc__ or "").strip()
