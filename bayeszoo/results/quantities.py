"""The listed scalars of a fit: their labels, draws, closed-form densities and modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.distributions.averages.integrated import InnerMarginal, alone
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.model.capabilities import PointEstimates, Sufficient
from bayeszoo.model.incomplete import Incomplete
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import components_withheld, elements, is_of_components, listed

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

GROUPS = ("posterior", "derived")
POINTS = 241  # points at which a density is computed
_TAILS = (0.001, 0.999)


def labels(fit: Fit, groups: Sequence[str] = GROUPS) -> list[str]:
    """Return the names of the listed scalars, as in the table of estimates: ``mu``, ``beta[age]``."""
    return [label for _, _, _, label in _scalars(fit, groups)]


def free_of_labels(fit: Fit) -> tuple[str, ...]:
    """Return the groups to show: invariants where components, or all estimates, are withheld."""
    is_withheld = not fit.is_shown or components_withheld(fit)
    return ("invariants",) if "invariants" in fit and is_withheld else GROUPS


def draws_of(fit: Fit, quantities: Sequence[str] | None = None, groups: Sequence[str] = GROUPS) -> xr.Dataset:
    """Return the draws of scalars, by default of all, as ``value`` with dims ``chain``, ``draw`` and ``quantity``."""
    scalars = {label: (group, name, index) for group, name, index, label in _scalars(fit, groups)}
    chosen = list(scalars) if quantities is None else list(quantities)
    if unknown := [label for label in chosen if label not in scalars]:
        raise InputError(
            f"the fit has no quantity {unknown[0]!r}", "unknown_name", hint=f"it has {', '.join(list(scalars)[:20])}"
        )
    columns = [_draws(fit, *scalars[label]) for label in chosen]
    if not columns:
        raise InputError("the fit has no quantity to show", "no_quantity")
    return _dataset(np.stack(columns, axis=-1), ("chain", "draw"), chosen)


def _dataset(values: np.ndarray, leading: tuple[str, ...], quantities: Sequence[str], **more: object) -> xr.Dataset:
    """Return a dataset of one variable, with the labels along its last axis."""
    counted = {name: np.arange(size) for name, size in zip(leading, values.shape, strict=False)}
    array = xr.DataArray(values, dims=(*leading, "quantity"), coords={**counted, "quantity": list(quantities), **more})
    return array.to_dataset(name="value")


def _scalars(fit: Fit, groups: Sequence[str]) -> list[tuple[str, str, tuple[int, ...], str]]:
    """Return group, name, index and label of each scalar that is not withheld."""
    withheld = set(fit.facts.get("withheld", ()))
    return [
        (group, name, index, label)
        for group in groups
        if group in fit
        for name in listed(fit, group)
        if not is_of_components(fit, group, name)
        for index, label in elements(fit.tree[group].to_dataset()[name])
        if label not in withheld
    ]


def measurable(fit: Fit, quantities: Sequence[str]) -> list[str]:
    """Return the scalars with a finite sd in the closed form, if known, and a positive sd in the draws."""
    closed = fit.tree["exact"].to_dataset() if "exact" in fit else {}
    infinite = {
        label
        for _, name, index, label in _scalars(fit, GROUPS)
        if name in closed and not np.isfinite(closed[name].sel(statistic="sd").to_numpy()[index])
    }
    return [label for label in varying(fit, finite(fit, quantities)) if label not in infinite]


def varying(fit: Fit, quantities: Sequence[str]) -> list[str]:
    """Return the scalars that are not the same in every draw."""
    are_varying: Any = np.ptp(draws_of(fit, quantities)["value"].to_numpy(), axis=(0, 1)) != 0 if quantities else []
    return [label for label, is_kept in zip(quantities, are_varying, strict=True) if is_kept]


def finite(fit: Fit, quantities: Sequence[str]) -> list[str]:
    """Return the scalars with only finite draws."""
    are_finite: Any = np.isfinite(draws_of(fit, quantities)["value"].to_numpy()).all(axis=(0, 1)) if quantities else []
    return [label for label, is_kept in zip(quantities, are_finite, strict=True) if is_kept]


def _draws(fit: Fit, group: str, name: str, index: tuple[int, ...]) -> np.ndarray:
    """Return the draws of one entry, shape (chain, draw)."""
    values = fit.tree[group].to_dataset()[name].transpose(..., "chain", "draw").to_numpy()
    return np.asarray(values[index])


def exact_densities(fit: Fit, quantities: Sequence[str]) -> xr.Dataset | None:
    """Return the closed-form marginal densities of scalars; None if no scalar has one.

    ``value`` has dims ``plot_axis`` (x, y), ``point`` and ``quantity``, the form that ArviZ draws, between the
    quantiles 0.001 and 0.999. A scalar with a point mass has no density.
    """
    marginals, curves = fit.posterior or {}, {}
    for _, name, index, label in _scalars(fit, GROUPS):
        if label in quantities and name in marginals and not _has_atom(marginals[name], index):
            curves[label] = _density(marginals[name], index)
    if not curves:
        return None
    values = np.stack(list(curves.values()), axis=-1)
    return _dataset(values, ("plot_axis", "point"), list(curves), plot_axis=["x", "y"])


def _has_atom(marginal: object, index: tuple[int, ...]) -> bool:
    return hasattr(marginal, "atom") and bool(np.asarray(marginal.atom)[index])


def _density(marginal: Any, index: tuple[int, ...]) -> np.ndarray:
    """Return x and density of one entry, shape (2, POINTS)."""
    marginal, index = alone(marginal, index)
    low, high = (np.asarray(marginal.ppf(q), dtype=np.float64)[index] for q in _TAILS)
    edges = np.linspace(low, high, POINTS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    if isinstance(marginal, InnerMarginal):  # its cdf takes several times as long
        return np.stack([middles, _along(marginal, "pdf", middles)[index]])
    return np.stack([middles, np.diff(_along(marginal, "cdf", edges)[index]) / np.diff(edges)])


def _along(marginal: Any, function: str, places: np.ndarray) -> np.ndarray:
    """Return a function of a marginal at the same places for all entries, along the last axis."""
    shape = np.shape(marginal.mean())
    everywhere = np.broadcast_to(places.reshape(-1, *[1] * len(shape)), (len(places), *shape))
    return np.moveaxis(np.asarray(getattr(marginal, function)(everywhere)), 0, -1)


def modes(fit: Fit, quantities: Sequence[str]) -> xr.Dataset | None:
    """Return the posterior mode of each scalar in the constrained space, by ``map`` or closed form."""
    if fit.method == "map":
        values = dict(zip(labels(fit), draws_of(fit)["value"].to_numpy()[0, 0].tolist(), strict=True))
    else:
        values = _closed_mode(fit)
    with_mode = [label for label in quantities if label in values]
    return _dataset(np.array([values[label] for label in with_mode]), (), with_mode) if with_mode else None


def _closed_mode(fit: Fit) -> dict[str, float]:
    model, has_rows = fit.model, not isinstance(fit.observed, Incomplete)
    if not (isinstance(model, PointEstimates) and isinstance(model, Sufficient) and has_rows):
        return {}
    try:
        point = model.map(fit.stats)
        point |= model.derived(point)
    except NumericalError:
        return {}
    return {label: float(np.asarray(point[name])[index]) for _, name, index, label in _scalars(fit, GROUPS)}
