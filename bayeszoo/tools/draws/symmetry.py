"""Detection of modes that no chain has visited: the density has a symmetry that the draws do not have.

If exchanging two entries, or changing signs, leaves the log density the same, the posterior has this symmetry:
components of a mixture, factors and their loadings, hidden units. Draws of only one of the equal modes pass R-hat.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.tools.draws.points import limits_of_z, unconstrained

if TYPE_CHECKING:
    import xarray as xr

    from bayeszoo.compile.density import Density

COMPARED, SAME = 3, 1e-9
"""Number of draws whose log density is compared, and its largest relative change."""
MOST_AXES = 5
"""Most axes of one length whose every subset is tried; with more, single axes, pairs, and all together."""
MOST_ENTRIES = 20
"""Most pairs of neighbours along an axis that are exchanged."""


type _Axis = tuple[str, int | None]
"""A variable and one of its axes, counting chain and draw; None is the whole variable."""


class Symmetry(NamedTuple):
    """A change of parameters that leaves the density the same, and whether the draws have this symmetry."""

    change: str
    """For example ``exchange of the entries 0 and 1 of mu and w``."""
    z: float
    """The largest mean sign of the change over entries, in standard errors; by symmetry each has mean 0."""
    entries: int
    """Number of entries compared."""


class _Change(NamedTuple):
    text: str
    apply: Callable[[xr.Dataset], xr.Dataset]


def check_symmetry(density: Density, posterior: xr.Dataset) -> tuple[Check, str]:
    """Check that draws have the symmetries of their density; return the check, and the change that they lack.

    Parameters
    ----------
    density : Density
        Density of the model that was sampled.
    posterior : xarray.Dataset
        Finite draws of its free variables along ``chain`` and ``draw``.
    """
    of_density = list(symmetries(density, posterior))
    worst = max(of_density, key=lambda symmetry: symmetry.z, default=Symmetry("", 0.0, 1))
    limit, _ = limits_of_z(sum(symmetry.entries for symmetry in of_density) or 1)
    check = at_most("symmetry_z", worst.z, limit)
    return check, "" if check.passed else worst.change


def symmetries(density: Density, posterior: xr.Dataset) -> Iterator[Symmetry]:
    """Yield the exchanges of two entries, and the changes of sign, that leave the log density the same."""
    names = [variable.name for variable in density.model.free_RVs]
    draws = posterior[names]
    compared = draws.isel(draw=np.linspace(0, draws.sizes["draw"] - 1, COMPARED).astype(int), chain=[0])
    before = _heights(density, compared)
    signed = [v.name for v in density.model.free_RVs if density.model.rvs_to_transforms[v] is None]
    for change in (*_exchanges(compared), *_sign_changes(compared, signed)):
        after = _heights(density, change.apply(compared))
        if np.all(np.abs(after - before) <= SAME * np.maximum(1.0, np.abs(before))):
            yield _measured(change, draws)


def _heights(density: Density, draws: xr.Dataset) -> np.ndarray:
    points = unconstrained(density, draws).reshape(-1, density.size)
    return np.array([density.joint(x)[0] for x in points])


def _measured(change: _Change, draws: xr.Dataset) -> Symmetry:
    """Return how far the mean signs of a change are from 0, in standard errors; constant signs count as independent."""
    differences = draws - change.apply(draws)
    signs = np.concatenate([v.to_numpy().reshape(*v.shape[:2], -1) for v in differences.data_vars.values()], axis=-1)
    signs = np.sign(signs[..., (signs != 0).any(axis=(0, 1))])
    size = diagnostics.ess(signs, "mean")
    size = np.where(np.isfinite(size), size, signs[..., 0].size)
    return Symmetry(change.text, float(np.max(np.abs(signs.mean(axis=(0, 1))) * np.sqrt(size), initial=0.0)), size.size)


def _exchanges(draws: xr.Dataset) -> Iterator[_Change]:
    """Yield exchanges of neighbours along axes of one length, of one variable or of several at once."""
    for length, axes in _axes_by_length(draws, draws.data_vars).items():
        for chosen in _subsets(axes):
            for first in range(min(length - 1, MOST_ENTRIES)):
                order = np.arange(length)
                order[[first, first + 1]] = first + 1, first
                text = f"exchange of the entries {first} and {first + 1} of {_listed(chosen)}"
                yield _Change(text, partial(_ordered, chosen=chosen, order=order))


def _sign_changes(draws: xr.Dataset, names: list[str]) -> Iterator[_Change]:
    """Yield changes of sign of whole variables, and of the first entry along axes of one length."""
    for variables in _subsets([(name, None) for name in names]):
        yield _Change(f"change of the sign of {_listed(variables)}", partial(_turned, chosen=variables))
    for axes in _axes_by_length(draws, names).values():
        for chosen in _subsets(axes):
            yield _Change(f"change of the sign of the entry 0 of {_listed(chosen)}", partial(_turned, chosen=chosen))


def _axes_by_length(draws: xr.Dataset, names: Iterable[Hashable]) -> dict[int, list[_Axis]]:
    axes: dict[int, list[_Axis]] = defaultdict(list)
    for name in names:
        for axis, length in enumerate(draws[name].shape[2:], start=2):
            axes[length].append((str(name), axis))
    return axes


def _subsets(axes: Sequence[_Axis]) -> Iterator[tuple[_Axis, ...]]:
    """Yield every subset of a few axes; of many, single axes, pairs, and all together."""
    sizes = range(1, len(axes) + 1) if len(axes) <= MOST_AXES else (1, 2, len(axes))
    return chain.from_iterable(combinations(axes, size) for size in sizes)


def _listed(axes: Iterable[_Axis]) -> str:
    return " and ".join(dict.fromkeys(name for name, _ in axes))


def _ordered(draws: xr.Dataset, chosen: Iterable[_Axis], order: np.ndarray) -> xr.Dataset:
    arrays = {name: draws[name].to_numpy() for name, _ in chosen}
    for name, axis in chosen:
        arrays[name] = np.take(arrays[name], order, axis=axis)
    return _with(draws, arrays)


def _turned(draws: xr.Dataset, chosen: Iterable[_Axis]) -> xr.Dataset:
    arrays = {name: np.array(draws[name]) for name, _ in chosen}
    for name, axis in chosen:
        entry = arrays[name] if axis is None else np.moveaxis(arrays[name], axis, 0)[0]
        np.negative(entry, out=entry)
    return _with(draws, arrays)


def _with(draws: xr.Dataset, arrays: Mapping[str, np.ndarray]) -> xr.Dataset:
    return draws.assign({name: draws[name].copy(data=values) for name, values in arrays.items()})
