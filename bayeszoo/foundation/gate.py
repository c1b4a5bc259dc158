"""The gate: verdict "ok", "caution" or "failed" for a result, the worst of its checks.

A check has a limit to pass, and may have a second, wider limit: up to it a miss is a caveat shown with the numbers. All
limits are written here once; ArviZ computes the diagnostics, and this file only decides. NaN neither passes nor is a
caveat: chains stuck at one value give R-hat NaN and an effective sample size of 4000, which a comparison written the
other way round would let through. A missing diagnostic does not pass either, unless the check says why it is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayeszoo.foundation import check_names, diagnostics

if TYPE_CHECKING:
    import xarray as xr

type Verdict = Literal["ok", "caution", "failed"]

MIN_CHAINS = 4
MIN_DRAWS = 400
RARE_CHANGES = 7
"""Expected changes of a chain that never changes by bad luck alone: it has a probability of e**-7, about 0.001."""
MAX_R_HAT, SHOWN_R_HAT = 1.01, 1.05
"""Vehtari et al. 2021 ask for 1.01. Gelman and Rubin's 1.1 let through chains that had not converged, as they show;
1.05, from which rstan and PyMC 3 warned, is where a warning becomes a failure: the between-chain variance is then about
a tenth of the total."""
APART = 1.3
"""R-hat above which chains are assumed to be in different modes, which a longer run does not repair."""
MIN_ESS_PER_CHAIN, SHOWN_ESS = 100, 100
"""Vehtari et al. 2021 ask for 100 a chain, so that R-hat and errors can be relied on. A hundred in all are a caveat:
the error of a mean is a tenth of the sd (Gelman et al. 2013, Bayesian Data Analysis, section 10.5)."""
MIN_BFMI, SHOWN_BFMI = 0.3, 0.2
"""Betancourt 2016; rstan warns below 0.2. Tails are visited slowly, which effective sample sizes measure as well."""
MAX_DIVERGENCES = 0
"""One is too many, and no number is a caveat: it marks where the integrator cannot follow the posterior, which leaves a
bias that no other check sees (Betancourt 2017, section 6.2). Stan calls a few often harmless; which, it cannot tell."""
DEEP = "tree_depth"
SLOW = "which costs time, and shows in the effective sample size"
"""Caveat of transitions at the largest tree depth: Stan's guide to its warnings calls them a matter of efficiency."""
MAX_DIGITS = 17
"""Significant digits that tell two numbers apart."""
MAX_K_HAT = 0.7
"""Pareto shape above which importance weights have no usable variance (Vehtari et al. 2024)."""
MAX_MEAN_GAP, SHOWN_MEAN_GAP = 0.1, 0.5
"""Error of an approximation's mean, in sd of the posterior: ok up to the first, shown up to the second."""
MAX_SD_GAP, SHOWN_SD_RATIO = 0.1, 2.0
"""Ratio of an approximation's sd to the posterior's: ok within the first of 1, shown to the second or its inverse."""
MAX_QUANTILE_GAP = 0.5
"""Error of an approximation's quantile, in sd of the posterior: the limits of mean and sd imply 0.3 at 2 sd."""
AGREEMENT, MAX_Z = "closed_form_z", 6.0
"""By chance a share of draws is off by 6 errors once in 5e8 cases; with 400 effective draws and a share of .1, 1e7."""
STRUCTURAL = ("chains", "draws", "non_finite_draws", "stuck_chains", "repeated_chains")
"""Checks that a longer run cannot repair."""
MIXING = ("non_finite_draws", "r_hat", "ess_bulk", "ess_tail")
"""Checks made for each quantity."""

_SHARES = (0.1, 0.5, 0.9)
_EQUAL = 0.01
"""Nats within which importance weights count as equal."""
_MAXDEPTH = ("maxdepth_reached", "reached_max_treedepth")  # nutpie, PyMC
_LOG_DENSITY = ("logp", "lp")  # nutpie, PyMC


def k_hat_limit(draws: int) -> float:
    """Return the Pareto shape above which importance sampling with N draws fails (Vehtari et al. 2024)."""
    return min(1 - 1 / math.log10(max(draws, 11)), MAX_K_HAT)


def pareto_k(log_weights: np.ndarray) -> float:
    """Return the Pareto shape of importance weights; -inf when they are equal, NaN when one is not finite.

    Notes
    -----
    Weights within a hundredth of each other count as equal: q is then the posterior at every draw, and the shape of the
    remaining tail, which may be large, has no meaning.

    ``psislw`` expects log *likelihoods* and negates its argument, so it receives the negative log weights;
    ``pareto_khat(log_weights=True)`` of arviz-stats 1.3.3 drops the flag and must not be used.
    """
    if not np.isfinite(log_weights).all():
        return math.nan
    if np.ptp(log_weights) < _EQUAL:
        return -math.inf
    if np.ptp(np.sort(log_weights)[-len(log_weights) // 5 :]) < 1e-9:  # the largest are all equal: no tail
        return -math.inf
    return float(diagnostics.smoothed_weights(-log_weights)[1])


def check_agreement(draws: Mapping[str, np.ndarray], marginals: Mapping[str, Any]) -> list[Check]:
    """Check that the shares of draws (chain, draw, ...) below exact quantiles agree with their probabilities.

    If they do not, the sampled density or the closed form is wrong; no other check of draws detects this. Shares have
    normal errors whatever the tails. Entries whose quantiles coincide, as at 0, are left out. For a distribution with
    an atom, the expected share is the distribution function at the quantile.
    """
    errors = [np.zeros(1)]
    for name in draws.keys() & marginals.keys():
        quantiles = [np.asarray(marginals[name].ppf(prob)) for prob in _SHARES]
        is_increasing = (np.diff(quantiles, axis=0) > 1e-290).all(axis=0) & np.isfinite(quantiles).all(axis=0)
        size = np.minimum(diagnostics.ess(draws[name]), diagnostics.ess(draws[name], "tail"))
        for prob, quantile in zip(_SHARES, quantiles, strict=True):
            level = np.clip(marginals[name].cdf(quantile), prob, 1.0) if hasattr(marginals[name], "atom") else prob
            share = (draws[name] <= quantile).mean((0, 1))
            spread = np.broadcast_to(level * (1 - level), np.shape(size))[is_increasing]
            errors.append(np.abs(share - level)[is_increasing] / np.sqrt(spread / size[is_increasing]))
    largest = float(np.max(np.concatenate([np.ravel(of_name) for of_name in errors])))
    return [at_most(AGREEMENT, largest, MAX_Z)]


def unmeasured_checks(facts: Mapping[str, Any], why: str) -> list[Check]:
    """Return a caveat that an approximation could not be measured, and a check of its k-hat, unless withheld."""
    unmeasured = Check("distance_to_posterior", False, None, "measured", f"not measured: {why}")
    return [unmeasured, *([] if "k_hat_withheld" in facts else [at_most("k_hat", facts.get("k_hat"), MAX_K_HAT)])]


@dataclass(frozen=True)
class Check:
    """A check of a result; it has not passed if its diagnostic is missing or NaN."""

    name: str
    """Its code, stable between versions: see `check_names`."""
    passed: bool
    value: float | None
    limit: str
    """The required value, such as ``<= 1.01``."""
    caveat: str = ""
    """Why numbers are shown although it has not passed: a near miss, or the reason why it could not be made."""

    @property
    def verdict(self) -> Verdict:
        """``"ok"``; ``"caution"``, if the numbers are shown with a warning; or ``"failed"``."""
        return "ok" if self.passed else "caution" if self.caveat else "failed"

    def or_caveat(self, why: str) -> Check:
        """Return the check; if it has not passed, as a caveat with this reason."""
        return self if self.passed else replace(self, caveat=why)

    def figure(self, digits: int) -> str:
        """Return the value to ``digits`` significant digits, or as many as tell it from a limit that it misses."""
        if self.value is None:
            return "not checked"
        while not self.passed and digits < MAX_DIGITS and f"{self.value:.{digits}g}" == self.limit.split()[-1]:
            digits += 1
        return f"{self.value:.{digits}g}"

    def __str__(self) -> str:
        why = f"; {self.caveat}" if self.caveat else ""
        return f"{check_names.plain(self.name)} {self.figure(4)} (must be {self.limit}{why})"


def at_most(name: str, value: float | None, limit: float, shown: float = -math.inf) -> Check:
    """Return a check that passes if ``value`` <= ``limit``, and is a caveat if ``value`` <= ``shown``."""
    figure = _number(value)
    caveat = figure is not None and limit < figure <= shown
    return Check(name, figure is not None and figure <= limit, figure, f"<= {limit:g}", f"shown to {shown:g}" * caveat)


def at_least(name: str, value: float | None, limit: float, shown: float = math.inf) -> Check:
    """Return a check that passes if ``value`` >= ``limit``, and is a caveat if ``value`` >= ``shown``."""
    figure = _number(value)
    caveat = figure is not None and limit > figure >= shown
    return Check(name, figure is not None and figure >= limit, figure, f">= {limit:g}", f"shown to {shown:g}" * caveat)


def _number(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else float(value)


def verdict(checks: Iterable[Check]) -> Verdict:
    """Return the worst verdict of the checks; "failed" without checks."""
    verdicts = {check.verdict for check in checks} or {"failed"}
    return "failed" if "failed" in verdicts else "caution" if "caution" in verdicts else "ok"


def passed(checks: Iterable[Check]) -> bool:
    """Say whether there are checks and all of them passed."""
    return verdict(checks) == "ok"


def longer_may_help(checks: Iterable[Check]) -> bool:
    """Say whether a longer run may repair the failed checks."""
    return all(check.passed for check in checks if check.name in STRUCTURAL)


def care_may_help(values: Mapping[str, Any], transitions: int) -> bool:
    """Say, from the values of checks, whether smaller steps and longer chains may repair a run of NUTS.

    Not if chains are in different places and at least 1% of the transitions diverged or were cut short:
    this suggests an unbounded density, such as an improper posterior, which chains climb forever.
    """
    broken = sum(float(values.get(name) or 0) for name in ("divergences", DEEP))
    return float(values.get("r_hat") or 0) <= APART or broken < 0.01 * transitions


def failures(checks: Iterable[Check]) -> str:
    """Return one line with the checks that did not pass."""
    return "; ".join(str(check) for check in checks if not check.passed)


def as_dict(checks: Iterable[Check]) -> dict[str, Any]:
    """Return the gate as plain values: ``{"passed": ..., "verdict": ..., "checks": {name: {...}}}``."""
    checks = list(checks)
    described_checks = [{"verdict": check.verdict, **asdict(check)} for check in checks]
    return {
        "passed": passed(checks),
        "verdict": verdict(checks),
        "checks": {described.pop("name"): described for described in described_checks},
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
    return [*check_draws(arrays_in(tree, "posterior")), *check_hmc(arrays_in(tree, "sample_stats"))]


def arrays_in(tree: xr.DataTree, group: str) -> dict[str, np.ndarray]:
    """Return the arrays (chain, draw, ...) of a group by name; nothing if there is no group.

    Every variable of a posterior must be draws; statistics of whole chains, which a sampler may add, are left out.
    """
    variables = tree[group].data_vars if group in tree.children else {}
    kept = {k: v for k, v in variables.items() if group != "sample_stats" or {"chain", "draw"} <= {*v.dims}}
    return {str(name): values.transpose("chain", "draw", ...).to_numpy() for name, values in kept.items()}


def check_draws(posterior: Mapping[str, np.ndarray]) -> list[Check]:
    """Check the draws themselves, (chain, draw, ...) by name: enough, finite, moving, mixed."""
    draws = quantities(posterior)
    chains, length = draws.shape[:2]
    finite = check_finite(posterior)
    usable = finite.value == 0 and chains >= 2 and length >= 4
    r_hat, bulk, tail = _diagnostics(draws) if usable else (None, None, None)
    return [
        at_least("chains", chains, MIN_CHAINS),
        at_least("draws", length, MIN_DRAWS),
        finite,
        at_most("stuck_chains", _stuck(draws), 0),
        at_most("repeated_chains", _repeated(draws), 0),
        at_most("r_hat", r_hat, MAX_R_HAT, SHOWN_R_HAT),
        at_least("ess_bulk", bulk, MIN_ESS_PER_CHAIN * chains, SHOWN_ESS),
        at_least("ess_tail", tail, MIN_ESS_PER_CHAIN * chains, SHOWN_ESS),
    ]


def check_finite(posterior: Mapping[str, np.ndarray]) -> Check:
    """Check that all draws are finite numbers."""
    draws = quantities(posterior)
    return at_most("non_finite_draws", int((~np.isfinite(draws)).sum()) if draws.size else None, 0)


def quantities(posterior: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return every scalar that the posterior reports, shape (chain, draw, quantities)."""
    shape = next((array.shape[:2] for array in posterior.values()), (0, 0))
    flat = [array.reshape(*shape, math.prod(array.shape[2:])).astype(np.float64) for array in posterior.values()]
    return np.concatenate([np.empty((*shape, 0)), *flat], axis=2)


def _stuck(draws: np.ndarray) -> int | None:
    """Count chains of any quantity that never move, though others do so often that they should have."""
    if not draws.size:
        return None
    still = (draws == draws[:, :1]).all(axis=1)
    return int((still & ~_is_rare(draws, still)).sum())


def _is_rare(draws: np.ndarray, still: np.ndarray) -> np.ndarray:
    """Say which counts and indicators (quantities,) change so rarely that a chain may well never have changed them."""
    moving = np.broadcast_to(~still[:, None], draws.shape)
    usual = np.median(draws, axis=(0, 1))
    changes = np.where(moving, draws != usual, False).sum(axis=(0, 1)) / np.maximum(moving.sum(axis=(0, 1)), 1)
    is_whole = (draws == np.floor(draws)).all(axis=(0, 1))
    is_usual = (~still | (draws[:, 0] == usual)).all(axis=0)
    return is_whole & is_usual & (changes > 0) & (changes * draws.shape[1] <= RARE_CHANGES)


def _repeated(draws: np.ndarray) -> int | None:
    """Count chains that copy another, up to a shift of a few draws and a thousandth of their sd."""
    if not draws.size:
        return None
    first_quantities, length = draws[:, :, :10], draws.shape[1]
    lags = range(min(10, length // 4) + 1)
    return len(
        {max(pair) for lag in lags for pair in _alike(first_quantities[:, lag:], first_quantities[:, : length - lag])}
    )


def _alike(first: np.ndarray, second: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of different chains, as numbers in both arrays, that are almost equal."""
    alike = ~np.eye(len(first), dtype=bool)
    with np.errstate(invalid="ignore"):  # infinite draws have sd NaN and equal no others
        for q in range(first.shape[2]):  # most pairs differ in the first quantity and are dropped
            i, j = np.nonzero(alike)
            x, y = first[i, :, q], second[j, :, q]
            alike[i, j] = np.std(x - y, axis=1) <= 1e-3 * np.std(x, axis=1)
    return [(int(i), int(j)) for i, j in np.argwhere(alike)]


def _diagnostics(draws: np.ndarray) -> tuple[float, float, float]:
    """Return the worst R-hat (rank-normalized: the larger of bulk and folded), bulk and tail effective sample size."""
    # NumPy's max and min propagate NaN: one quantity without a diagnostic fails the gate
    bulk, tail = (float(np.min(diagnostics.ess(draws, method))) for method in ("bulk", "tail"))
    return float(np.max(diagnostics.r_hat(draws))), bulk, tail


def check_hmc(stats: Mapping[str, np.ndarray]) -> list[Check]:
    """Check the statistics of Hamiltonian Monte Carlo, under nutpie's or PyMC's names."""
    densities, maxdepth, diverging = (
        recorded_log_density(stats),
        _first(stats, _MAXDEPTH),
        _first(stats, ("diverging",)),
    )
    broken = None if densities is None else float((~np.isfinite(densities)).sum())
    cut = None if maxdepth is None else float(maxdepth.sum())
    return [
        at_most("divergences", None if diverging is None else float(diverging.sum()), MAX_DIVERGENCES),
        at_least("e_bfmi", _lowest_bfmi(stats), MIN_BFMI, SHOWN_BFMI),
        at_most(DEEP, cut, 0).or_caveat("" if cut is None else SLOW),
        at_most("non_finite_log_densities", broken, 0),
    ]


def recorded_log_density(stats: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the log density of each draw (chain, draw), under nutpie's or PyMC's name."""
    return _first(stats, _LOG_DENSITY)


def _first(stats: Mapping[str, np.ndarray], names: Iterable[str]) -> np.ndarray | None:
    return next((stats[name] for name in names if name in stats), None)


def _lowest_bfmi(stats: Mapping[str, np.ndarray]) -> float | None:
    """Return the lowest energy Bayesian fraction of missing information of any chain (Betancourt 2016)."""
    energy = _first(stats, ("energy",))
    if energy is None or energy.shape[1] < 2:
        return None
    spread = energy.var(axis=1)
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        return None
    return float(np.min(np.square(np.diff(energy, axis=1)).mean(axis=1) / spread))
