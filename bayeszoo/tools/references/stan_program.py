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
    """Return a model's Stan program, or None.

    The program keeps all constants: its target without the Jacobian of Stan's transforms is the model's log joint.
    """
    path = Path(inspect.getfile(kind)).parent / FOLDER / f"{kind.name}.stan"
    return path.read_text(encoding="utf-8") if path.is_file() else None


def stan_data(program: str, model: Model, data: Arrays) -> dict[str, Any]:
    """Return the values that the data block of a program declares: arrays of the data, model fields and lengths.

    A size is a field, or names in a comment the array whose length it is. A field that is one number is repeated for
    each entry of a vector. Other names are those of ``pm.Data`` in the PyMC model.

    Parameters
    ----------
    program : str
        A Stan program with one declaration on each line of its data block.
    model : Model
    data : mapping of str to numpy.ndarray

    Returns
    -------
    dict
        Integers, floats and nested lists, which as JSON are a data file of Stan.
    """
    pymc_data = {variable.name: variable.get_value() for variable in model.declare(data).data_vars}
    sources = {**pymc_data, **fields_of(model), **data}
    block = _BLOCK.search(program)
    assert block is not None
    declared = dict[str, Any]()
    for match in _DECLARED.finditer(block[1]):
        name = match["name"]
        values = len(data[match["of"]]) if match["of"] else sources[name]
        declared[name] = _entries(match, declared, values, name in data)
    return {name: np.asarray(value).tolist() for name, value in declared.items()}


def _entries(match: re.Match[str], declared: dict[str, Any], values: Any, of_data: bool) -> np.ndarray:
    """Return the value of a declaration; a field that is one number is repeated over the declared shape."""
    array = np.asarray(values, dtype=np.int64 if match["type"] == "int" else np.float64)
    sizes = [size.strip() for part in (match["array"], match["sizes"]) if part for size in part.split(",")]
    if of_data or any(size not in declared for size in sizes):
        return array
    return np.broadcast_to(array, [int(declared[size]) for size in sizes])
