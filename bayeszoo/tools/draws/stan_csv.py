"""Draws of Stan from its CSV files, one for each chain, as an ArviZ tree."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

STATS = {
    "lp__": "lp",
    "accept_stat__": "acceptance_rate",
    "stepsize__": "step_size",
    "treedepth__": "tree_depth",
    "n_leapfrog__": "n_steps",
    "divergent__": "diverging",
    "energy__": "energy",
}
"""ArviZ's names for the statistics of Stan's sampler."""


def read_stan(paths: Sequence[Path]) -> xr.DataTree:
    """Return the draws in CSV files of CmdStan, one chain for each file, without warm-up.

    Parameters
    ----------
    paths : sequence of Path
        The files of one run.

    Raises
    ------
    InputError
        When a file is no output of Stan's sampler, or the files differ in their columns or lengths.
    """
    import xarray as xr

    chains = [_chain(path) for path in paths]
    names, length = chains[0][0], len(chains[0][1])
    if any(other != names or len(rows) != length for other, rows, _ in chains):
        raise InputError(
            "the files differ in their columns or lengths", "wrong_shape", hint="give the files of one run"
        )
    draws = np.stack([rows for _, rows, _ in chains])
    columns = dict(zip(names, np.moveaxis(draws, 2, 0), strict=True))
    stats = {STATS[name]: (("chain", "draw"), values) for name, values in columns.items() if name in STATS}
    if "diverging" in stats:
        stats["diverging"] = (("chain", "draw"), columns["divergent__"] > 0)
        deepest = chains[0][2].get("max_depth")
        if deepest:
            stats["reached_max_treedepth"] = (("chain", "draw"), columns["treedepth__"] >= int(deepest))
    variables = _arrays({name: values for name, values in columns.items() if not name.endswith("__")})
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables), "sample_stats": xr.Dataset(stats)})


def _chain(path: Path) -> tuple[list[str], np.ndarray, dict[str, str]]:
    """Return the columns, the rows after warm-up, and the options of a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", "no_such_file") from None
    options = dict(re.findall(r"^#\s*(\w+) = (\S+)", "\n".join(line for line in lines if line[:1] == "#"), re.M))
    table = [line.split(",") for line in lines if line and line[0] != "#"]
    if not table or "lp__" not in table[0]:
        raise InputError(f"{path} is no output of Stan's sampler", "not_a_fit", hint="the column lp__ is missing")
    try:
        rows = np.array(table[1:], dtype=np.float64)
    except ValueError:
        raise InputError(f"{path} has rows that are not numbers, or of different lengths", "wrong_shape") from None
    if options.get("save_warmup") in ("1", "true"):
        rows = rows[-(-int(options.get("num_warmup", 0)) // int(options.get("thin", 1))) :]
    return table[0], rows, options


def _arrays(columns: dict[str, np.ndarray]) -> dict[str, tuple[list[str], np.ndarray]]:
    """Join columns such as ``beta.1.2`` into arrays; Stan counts from 1."""
    entries = defaultdict[str, dict[tuple[int, ...], np.ndarray]](dict)
    for column, values in columns.items():
        name, *places = column.split(".")
        entries[name][tuple(int(place) - 1 for place in places)] = values
    return {name: _array(name, parts) for name, parts in entries.items()}


def _array(name: str, parts: dict[tuple[int, ...], np.ndarray]) -> tuple[list[str], np.ndarray]:
    """Return the axes of a variable, and its entries (chain, draw) as one array."""
    shape = tuple(int(np.max(places)) + 1 for places in zip(*parts, strict=True))
    array = np.full((*shape, *next(iter(parts.values())).shape), np.nan)
    for place, draws in parts.items():
        array[place] = draws
    array = np.moveaxis(array, (-2, -1), (0, 1))
    return ["chain", "draw", *(f"{name}_dim_{i}" for i in range(len(shape)))], array
