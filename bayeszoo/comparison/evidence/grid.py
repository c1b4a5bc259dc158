"""The evidence on a grid of one or two fields of a model, and the checks of these fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.data.read import read
from bayeszoo.distributions.priors import LogUniform, Uniform
from bayeszoo.errors import InputError
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.outer.over import over as make_over
from bayeszoo.model.outer.over import require_closed_form
from bayeszoo.model.outer.over_fields import domain

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

Bounds = Mapping[str, tuple[float, float]]
"""The lowest and the highest value of each field."""

MAX_FIELDS = 2
MAX_POINTS = 1_000_000


def evidence_grid(model: Model, data: object = None, over: Bounds | None = None, *, points: int = 41) -> xr.Dataset:
    """Compute the exact log evidence on a grid of one or two fields.

    Parameters
    ----------
    model : Model
        A `ClosedForm` model; its other fields stay.
    data : Data or anything that `read` takes, optional
        The model's first example by default.
    over : mapping of str to pair of float
        The fields, each a single number, and the lowest and highest value of each.
    points : int
        Number of values of each field, bounds included: at equal ratios for a positive field, else at equal distances.

    Returns
    -------
    xarray.Dataset
        ``log_evidence`` along the fields, in nats, NaN where it does not exist.

    Raises
    ------
    InputError
        When the model has no closed form or no such fields, or the bounds are invalid.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> speeds = bz.find("gaussian_mean")(m0=850, s0=50)
    >>> grid = bz.evidence_grid(speeds, over={"sigma": (50, 150)}, points=101)
    >>> round(float(grid.log_evidence.idxmax()), 1)
    79.3
    """
    closed, data = require_few(model, tuple(over or ())), read(model, data)
    priors = between(closed, over or {})
    if isinstance(points, bool) or not isinstance(points, int) or points < 2 or points ** len(priors) > MAX_POINTS:
        raise InputError(
            f"points must be a whole number >= 2, and at most {MAX_POINTS} in all, got {points!r}", "too_large"
        )
    coords = {name: prior.ppf(np.linspace(0.0, 1.0, points)) for name, prior in priors.items()}
    table = np.meshgrid(*coords.values(), indexing="ij")
    with one_thread():
        log_evidence = make_over(closed, priors).log_marginal(dict(zip(coords, table, strict=True)), data)
    values = np.where(np.isfinite(log_evidence), log_evidence, math.nan)
    attrs = {"model": str(model), "data_digest": data.digest}
    return xr.Dataset({"log_evidence": (tuple(coords), values)}, coords, attrs)


def between(model: Model, bounds: Bounds) -> dict[str, Uniform]:
    """Return uniform priors of fields between bounds, for positive fields uniform in the logarithm."""
    if not isinstance(bounds, Mapping):
        raise InputError(
            "the fields of a grid need bounds", "unknown_field", hint='give over={"tau": (lowest, highest)}'
        )
    priors: dict[str, Uniform] = {}
    for name, pair in bounds.items():
        above = domain(model, name).low
        try:
            low, high = pair
            priors[name] = Uniform(low, high) if math.isinf(above) else LogUniform(low, high, above)
        except InputError as error:
            raise InputError(f"the bounds of {name}: {error}", "out_of_range") from None
        except (TypeError, ValueError):
            raise InputError(f"the bounds of {name} must be two numbers, got {pair!r}", "wrong_type") from None
    return priors


def require_few(model: Model, names: Sequence[str]) -> ClosedForm[Any]:
    """Refuse a model without a closed form, more than two fields, and fields with several entries."""
    closed = require_closed_form(model, names)
    if len(names) > MAX_FIELDS:
        raise InputError(f"a grid is over one or two fields, got {', '.join(names)}", "too_many_fields")
    for name in names:
        if np.ndim(getattr(model, name)):
            raise InputError(
                f"over {name}: it has several entries", "wrong_shape", hint="set it to one number for all entries"
            )
    return closed
