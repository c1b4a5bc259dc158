"""Stan programs of models, in the folder ``stan`` next to the model's file, and the data that they declare."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np

from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.types import Arrays

FOLDER = "stan"
_BLOCK = re.compile(r"data \{(.*?)\n\}", re.DOTALL)
_DECLARED = re.compile(
    r"(?:array\[(?P<array>[\w, ]+)\] )?(?P<type>int|real|vector|matrix)(?:\[(?P<sizes>[\w, +]+)\])? (?P<name>\w+);"
    r"(?:  // length of (?P<of>\w+))?"
)


def stan_program(kind: type[Model]) -> str | None:
    """Return a model's Stan program; None where it has none.

    All constants are kept: the target without the Jacobian of Stan's transforms is the log joint density of the model.
    """
    path = Path(inspect.getfile(kind)).parent / FOLDER / f"{kind.name}.stan"
    return path.read_text(encoding="utf-8") if path.is_file() else None


def stan_data(program: str, model: Model, data: Arrays) -> dict[str, Any]:
    """Return what the data block of a program declares: arrays of the data, fields of the model, and lengths.

    A size is a field, or says in a comment of which array it is the length. A field that is one number stands for each
    entry of a vector. What is neither data nor a field is what the PyMC model has as ``pm.Data`` under that name.

    Parameters
    ----------
    program : str
        A Stan program with one declaration on each line of its data block.
    model : Model
    data : mapping of str to numpy.ndarray

    Returns
    -------
    dict
        Integers, floats and nested lists of them: as JSON they are a data file of Stan.
    """
    declared = {variable.name: variable.get_value() for variable in model.declare(data).data_vars}
    sources = {**declared, **fields_of(model), **data}
    block = _BLOCK.search(program)
    assert block is not None
    known = dict[str, Any]()
    for match in _DECLARED.finditer(block[1]):
        name = match["name"]
        values = len(data[match["of"]]) if match["of"] else sources[name]
        known[name] = _entries(match, known, values, name in data)
    return {name: np.asarray(value).tolist() for name, value in known.items()}


def _entries(match: re.Match[str], known: dict[str, Any], values: Any, of_data: bool) -> np.ndarray:
    """Return the value of a declaration, with an entry for each place of its shape where a field is one number."""
    array = np.asarray(values, dtype=np.int64 if match["type"] == "int" else np.float64)
    sizes = [size.strip() for part in (match["array"], match["sizes"]) if part for size in part.split(",")]
    if of_data or any(size not in known for size in sizes):
        return array
    return np.broadcast_to(array, [int(known[size]) for size in sizes])
