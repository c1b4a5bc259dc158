"""What was asked: the model as its file states it, the prior and where it came from, the data, the graph."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.data.read import Data, own_example
from bayeszoo.model.accumulated import Accumulated, arrays_of
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.fields import hyperparameters, text
from bayeszoo.report.blocks import Code, Section, Table, Words, table
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr

_LABELS_SHOWN = 8
_COLUMNS_SHOWN = 20


def section(tree: xr.DataTree) -> Section:
    """Say what was asked."""
    model, given = Fit(tree).model, Fit(tree).given
    blocks = [
        *_paragraphs(notation(type(model))),
        _prior(model, given),
        Words(f"The table: {type(model).inputs.describe()}. {_example(model, given)}".strip()),
        _data(given, type(model).inputs.coded),
        *(Words(line, "note") for line in Fit(tree).notes),
    ]
    return Section("asked", "What was asked", blocks)


def graph(tree: xr.DataTree) -> Section:
    """Draw the graph of the model as it is declared in PyMC."""
    from bayeszoo.plots.graph import model_svg
    from bayeszoo.plots.style import uri_of
    from bayeszoo.report.blocks import Picture

    model, given = Fit(tree).model, Fit(tree).given
    image = model_svg(model, given if isinstance(given, Data) else None)
    caption = "Shaded: observed. A frame: one of each along its axis. Discrete latent variables are summed out."
    alt = f"graph of {model.name}"
    return Section("graph", "The graph of the model", [Picture(uri_of(image), alt, caption)])


def _paragraphs(words: str) -> list[Words | Code]:
    """Split a docstring: what is indented is mathematics and stays as it is."""
    parts = [part for part in words.replace("``", "").split("\n\n") if part.strip()]
    return [
        Code(part) if all(line.startswith("    ") for line in part.split("\n")) else Words(" ".join(part.split()))
        for part in parts
    ]


def _prior(model: Model, given: Data | Accumulated) -> Table:
    """List the fields with where each came from."""
    known = hyperparameters(model)
    weak = fields_of(type(model).weak(given)) if isinstance(given, Data) else {}
    rows = []
    for f in fields(cast(Any, model)):
        value = fields_of(model)[f.name]
        origin = _origin(value, f.default, weak.get(f.name))
        rows.append([f.name, text(value), known[f.name].label if f.name in known else "", origin])
    return table(
        ["field", "value", "is", "comes from"], rows, "The prior and the switches", ["value", "is", "comes from"]
    )


def _origin(value: Any, default: Any, weak: Any) -> str:
    """Say where a field's value comes from, as far as the value tells."""
    if np.array_equal(value, default):
        return "the model's default"
    if weak is not None and np.array_equal(value, weak):
        return "weakly informative, scaled to these data"
    return "given"


def _example(model: Model, given: Data | Accumulated) -> str:
    found = own_example(model, given.source, given.digest)
    return f"These data come with the model: {found.about} ({found.source})" if found else ""


def _data(given: Data | Accumulated, codes: Collection[str]) -> Table:
    columns = ["", "column", "values", "mean", "sd", "least", "greatest", "labels"]
    arrays: Mapping[str, np.ndarray] = given if isinstance(given, Data) else arrays_of(given.stats)
    rows = [row for name, values in arrays.items() for row in _rows(name, values, given, codes)]
    what = "" if isinstance(given, Data) else ", of which statistics were kept"
    caption = f"The data: {given.rows} row{'s' * (given.rows != 1)}{what}, from {given.source or 'arrays'}"
    used = [i for i in range(len(columns)) if i == 0 or any(row[i] not in ("", None) for row in rows)]
    kept = [[row[i] for i in used] for row in rows]
    return table([columns[i] for i in used], kept, caption, ["column", "labels"], sortable=False)


def _rows(name: str, values: np.ndarray, given: Data | Accumulated, codes: Collection[str]) -> list[list[Any]]:
    """Describe an array in one row; a matrix of a few named columns in one row each."""
    labels = _named_columns(values, given)
    if name in codes:  # which mean nothing as numbers
        return [[name, given.columns.get(name, ""), " x ".join(map(str, values.shape)), *[None] * 5]]
    if labels is None:
        return [[name, given.columns.get(name, ""), *_described(values)]]
    return [[f"{name}[{label}]", label, *_described(values[:, i])] for i, label in enumerate(labels)]


def _named_columns(values: np.ndarray, given: Data | Accumulated) -> list[str] | None:
    if values.ndim != 2 or values.shape[1] > _COLUMNS_SHOWN or not isinstance(given, Data):
        return None
    texts = (labels for labels in given.values() if labels.dtype.kind in "US" and labels.ndim == 1)
    return next((labels.astype(str).tolist() for labels in texts if len(labels) == values.shape[1]), None)


def _described(values: np.ndarray) -> list[Any]:
    """Return how many there are, mean, sd, extremes, and for text the labels."""
    shape = " x ".join(map(str, values.shape)) or "1"
    if values.dtype.kind not in "biuf":
        return [shape, None, None, None, None, _some(values.ravel().tolist())]
    numbers = values.astype(np.float64).ravel()
    seen = numbers[np.isfinite(numbers)]
    if not seen.size:
        return [shape, None, None, None, None, None]
    sd = float(seen.std(ddof=1)) if seen.size > 1 else None
    return [shape, float(seen.mean()), sd, float(seen.min()), float(seen.max()), None]


def _some(labels: Sequence[Any]) -> str:
    named = list(map(str, _unlike(labels)))
    return ", ".join(named[:_LABELS_SHOWN]) + (f", ... ({len(named)} labels)" if len(named) > _LABELS_SHOWN else "")


def _unlike(labels: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(labels))


def notation(model: type[Model]) -> str:
    """Return the docstring of the model's file: the model in ~ notation, and its sources."""
    return (sys.modules[model.__module__].__doc__ or "").strip()
