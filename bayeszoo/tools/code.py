"""The script that makes a model on its data with PyMC alone, checked against the model that it was written from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.data.read import example, read
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.model.base import Model
from bayeszoo.results.files import load
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    from collections.abc import Callable

    import pymc as pm
    import xarray as xr

POINTS = 5
"""Points at which the two log joint densities are compared."""
CLOSE = 1e-9
"""How far they may differ, relative to the density where it is above 1."""


def code(fit: xr.DataTree | str | Path | Model | pm.Model, data: object = None) -> str:
    """Write a script that makes the same model on the same data with PyMC alone, and samples it when it is run.

    Parameters
    ----------
    fit : DataTree, str, Path, Model or pymc.Model
        A fit or the file of one, whose model and data are meant; a model of the zoo or of your own; or any PyMC model.
    data : path, table or Data, optional
        The data of a model, as `bz.read` takes them; those of its first example by default.

    Returns
    -------
    str
        Python code that needs PyMC and ArviZ. The log joint density of its model, with the Jacobian of the transforms,
        is that of the original to a relative 1e-9 at five points: this was checked before the code is returned.

    Raises
    ------
    InputError
        When the fit has kept no rows, or the model has an operation that cannot be written as code
        (``not_a_script``), as a loop by ``scan``.
    NumericalError
        When the densities differ (``code_differs``), which is a bug.
    """
    from bayeszoo.compile.script.script import script

    model, about = _declared(fit, data)
    text = script(model, about)
    gap = largest_gap(model, text)
    if not gap <= CLOSE:
        raise NumericalError(f"the log joint density of the script is off by {gap:.3g}", "code_differs")
    return text


def _declared(fit: xr.DataTree | str | Path | Model | pm.Model, data: object) -> tuple[pm.Model, str]:
    """Return the PyMC model that is meant, and a line about it."""
    if isinstance(fit, Model):
        rows = example(fit) if data is None else read(fit, data)
        return fit.declare(rows), _about(fit, rows.source)
    if data is not None:
        raise InputError("data go with a model of the zoo", "conflicting_options", hint="leave data out")
    if hasattr(fit, "basic_RVs"):
        return fit, "A model in PyMC"
    view = Fit(load(fit) if isinstance(fit, str | Path) else fit)
    return view.model.declare(view.data), _about(view.model, view.tree.attrs["data_source"])


def _about(model: Model, source: str) -> str:
    return escaped(f"{model}, data {source}")


def largest_gap(model: pm.Model, text: str) -> float:
    """Run a script and return the largest difference of its log joint density f from the model's, over max(1, |f|).

    The points lie about the initial point; discrete variables stay there.
    """
    space = {"__name__": "script"}
    exec(compile(text, "script", "exec"), space)
    ours, theirs = _log_joint(model), _log_joint(space["model"])
    start, rng, gaps = model.initial_point(), np.random.default_rng(0), list[float]()
    for scale in np.linspace(0.0, 0.4, POINTS):
        point = {k: v + scale * rng.standard_normal(v.shape) if v.dtype.kind == "f" else v for k, v in start.items()}
        expected = ours(point)
        gaps.append(abs(theirs(point) - expected) / max(1.0, abs(expected)))
    return max(gaps) if np.isfinite(gaps).all() else np.inf


def _log_joint(model: pm.Model) -> Callable[[dict[str, np.ndarray]], float]:
    """Return the log joint density of the unconstrained coordinates, in what is quickest to compile."""
    from bayeszoo.compile.function import without_c

    with without_c():
        function = model.compile_fn(model.logp(jacobian=True), mode="FAST_COMPILE")
    return lambda point: float(function(point))
