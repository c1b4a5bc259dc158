"""May this result be trusted? Every check must pass; one that could not be made has not passed.

The thresholds are written here once (Vehtari et al. 2021 for R-hat and effective sample size; Betancourt 2016 for
E-BFMI). ArviZ computes the diagnostics; this file only decides. NaN never passes: all chains stuck at one value give
R-hat NaN and an effective sample size of 4000, which a comparison written the other way round lets through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

MIN_CHAINS = 4
MIN_DRAWS = 400
MAX_R_HAT = 1.01
MIN_ESS_PER_CHAIN = 100
MIN_BFMI = 0.3
MAX_K_HAT = 0.7
"""Above it importance weights have no usable variance (Vehtari et al. 2024)."""
STRUCTURAL = ("chains", "draws", "finite draws", "moving chains", "distinct chains")
"""Checks that a longer run cannot repair."""

_MAXDEPTH = ("maxdepth_reached", "reached_max_treedepth")  # nutpie, PyMC
_LOG_DENSITY = ("logp", "lp")  # nutpie, PyMC


@dataclass(frozen=True)
class Check:
    """One check of a result.

    Attributes
    ----------
    name : str
        What is checked.
    passed : bool
        False also when the diagnostic is missing or NaN.
    value : float or None
        The figure found; None when it could not be computed.
    limit : str
        What the figure must be.
    """

    name: str
    passed: bool
    value: float | None
    limit: str

    def __str__(self) -> str:
        found = "not checked" if self.value is None else f"{self.value:.4g}"
        return f"{self.name} {found} (must be {self.limit})"


def at_most(name: str, value: float | None, limit: float) -> Check:
    """Pass when ``value`` is a number and <= ``limit``."""
    found = _number(value)
    return Check(name, found is not None and found <= limit, found, f"<= {limit:g}")


def at_least(name: str, value: float | None, limit: float) -> Check:
    """Pass when ``value`` is a number and >= ``limit``."""
    found = _number(value)
    return Check(name, found is not None and found >= limit, found, f">= {limit:g}")


def _number(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else float(value)


def passed(checks: Iterable[Check]) -> bool:
    """Say whether there are checks and all of them passed."""
    checks = list(checks)
    return bool(checks) and all(check.passed for check in checks)


def as_dict(checks: Iterable[Check]) -> dict[str, Any]:
    """Return the gate as plain values: ``{"passed": ..., "checks": {name: {...}}}``."""
    checks = list(checks)
    return {
        "passed": passed(checks),
        "checks": {c.name: {k: v for k, v in asdict(c).items() if k != "name"} for c in checks},
    }


def gate(tree: xr.DataTree) -> list[Check]:
    """Check the chains of any ArviZ tree of NUTS draws, from bayeszoo, PyMC or nutpie.

    Parameters
    ----------
    tree : xarray.DataTree
        With groups ``posterior`` (dims chain, draw, ...) and ``sample_stats``.

    Returns
    -------
    list of Check
        Chains, draws, finiteness, moving and distinct chains, R-hat, bulk and tail effective sample size,
        divergences, E-BFMI, tree depth, log density.
    """
    stats = tree["sample_stats"].to_dataset() if "sample_stats" in tree.children else xr.Dataset()
    return [*check_draws(tree["posterior"].to_dataset()), *check_hmc(stats)]


def check_draws(posterior: xr.Dataset) -> list[Check]:
    """Check the draws themselves: enough, finite, moving, mixed."""
    draws = {str(name): _chains_first(variable) for name, variable in posterior.data_vars.items()}
    chains, length = posterior.sizes.get("chain", 0), posterior.sizes.get("draw", 0)
    broken = sum(int((~np.isfinite(values)).sum()) for values in draws.values())
    checks = [
        at_least("chains", chains, MIN_CHAINS),
        at_least("draws", length, MIN_DRAWS),
        at_most("finite draws", broken if draws else None, 0),
        at_most("moving chains", sum(_stuck(values) for values in draws.values()), 0),
        at_most("distinct chains", _identical_pairs(draws, chains), 0),
    ]
    usable = not broken and chains >= 2 and length >= 4
    return [*checks, *_mixing(draws, chains, usable)]


def _chains_first(variable: xr.DataArray) -> np.ndarray:
    """Return shape (chain, draw, quantities)."""
    values = variable.transpose("chain", "draw", ...).to_numpy().astype(np.float64)
    return values.reshape(*values.shape[:2], -1)


def _stuck(values: np.ndarray) -> int:
    """Count chains of any quantity that never move."""
    return int((values == values[:, :1]).all(axis=1).sum())


def _identical_pairs(draws: Mapping[str, np.ndarray], chains: int) -> int:
    joined = (
        np.concatenate([values.reshape(chains, -1) for values in draws.values()], axis=1) if draws else np.empty((0, 0))
    )
    return chains - len(np.unique(joined, axis=0)) if joined.size else 0


def _mixing(draws: Mapping[str, np.ndarray], chains: int, usable: bool) -> list[Check]:
    r_hat, bulk, tail = _diagnostics(draws) if usable else (None, None, None)
    return [
        at_most("r_hat", r_hat, MAX_R_HAT),
        at_least("ess_bulk", bulk, MIN_ESS_PER_CHAIN * chains),
        at_least("ess_tail", tail, MIN_ESS_PER_CHAIN * chains),
    ]


def _diagnostics(draws: Mapping[str, np.ndarray]) -> tuple[float, float, float]:
    """Return the worst R-hat (rank-normalized: the larger of bulk and folded), bulk and tail effective sample size."""
    from arviz_stats.base import array_stats

    values = np.concatenate(list(draws.values()), axis=2)
    axes = {"chain_axis": 0, "draw_axis": 1}
    # max and min of NumPy propagate NaN: one quantity without a diagnostic fails the gate
    return (
        float(np.max(array_stats.rhat(values, method="rank", **axes))),
        float(np.min(array_stats.ess(values, method="bulk", **axes))),
        float(np.min(array_stats.ess(values, method="tail", prob=(0.05, 0.95), **axes))),
    )


def check_hmc(stats: xr.Dataset) -> list[Check]:
    """Check what Hamiltonian Monte Carlo says of itself, under nutpie's or PyMC's names."""
    log_density = _first(stats, _LOG_DENSITY)
    maxdepth, diverging = _first(stats, _MAXDEPTH), _first(stats, ("diverging",))
    return [
        at_most("divergences", None if diverging is None else float(diverging.sum()), 0),
        at_least("e_bfmi", _lowest_bfmi(stats), MIN_BFMI),
        at_most("transitions at maximum tree depth", None if maxdepth is None else float(maxdepth.sum()), 0),
        at_most("finite log density", None if log_density is None else float((~np.isfinite(log_density)).sum()), 0),
    ]


def _first(stats: xr.Dataset, names: Iterable[str]) -> np.ndarray | None:
    return next((stats[name].to_numpy() for name in names if name in stats), None)


def _lowest_bfmi(stats: xr.Dataset) -> float | None:
    """Return the lowest energy Bayesian fraction of missing information of any chain (Betancourt 2016)."""
    energy = _first(stats, ("energy",))
    if energy is None or energy.shape[1] < 2:
        return None
    spread = energy.var(axis=1)
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        return None
    return float(np.min(np.square(np.diff(energy, axis=1)).mean(axis=1) / spread))
