"""A script that makes a model on its data with PyMC alone, and compares its density with that of the original."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bayeszoo.data.read import example, read
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model, require_instance
from bayeszoo.results.files import load
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pymc as pm
    import xarray as xr


def code(fit: xr.DataTree | str | Path | Model | pm.Model, data: object = None) -> str:
    """Return a script that makes the same model on the same data with PyMC alone, and samples it.

    Parameters
    ----------
    fit : DataTree, str, Path, Model or pymc.Model
        A fit or its file, whose model and data are written; a model of the zoo or of your own; or any PyMC model.
    data : path, table or Data, optional
        The data of a model, as for `bz.read`; by default its first example.

    Returns
    -------
    str
        Python code that needs PyMC and ArviZ. It first compares the log joint density of its model at the initial
        point, with the Jacobian of the transforms, with that of the original, to a relative 1e-9.

    Raises
    ------
    InputError
        When the fit has kept no rows, or the model has an operation that cannot be written as code
        (``not_a_script``), such as a loop by ``scan``.

    Notes
    -----
    The code is not run here, as names and numbers in it may come from somebody else's file.
    """
    from bayeszoo.compile.script.script import script

    model, about = _declared(fit, data)
    return script(model, about, log_joint(model)(model.initial_point()))


def _declared(fit: xr.DataTree | str | Path | Model | pm.Model, data: object) -> tuple[pm.Model, str]:
    """Return the PyMC model of a fit or model, and a line that describes it."""
    import pymc

    if isinstance(fit, Model):
        rows = example(fit) if data is None else read(fit, data)
        return fit.declare(rows), _about(fit, rows.source)
    if isinstance(fit, type):
        require_instance(fit)
    if data is not None:
        raise InputError("data go with a model of the zoo", "conflicting_options", hint="leave data out")
    if isinstance(fit, pymc.Model):
        return fit, "A model in PyMC"
    view = Fit(load(fit) if isinstance(fit, str | Path) else fit)
    return view.model.declare(view.data), _about(view.model, view.tree.attrs["data_source"])


def _about(model: Model, source: str) -> str:
    return escaped(f"{model}, data {source}")


def log_joint(model: pm.Model) -> Callable[[dict[str, np.ndarray]], float]:
    """Return the log joint density of unconstrained coordinates, compiled in the fastest way."""
    from bayeszoo.compile.function import without_c

    with without_c():
        function = model.compile_fn(model.logp(jacobian=True), mode="FAST_COMPILE")
    return lambda point: float(function(point))
