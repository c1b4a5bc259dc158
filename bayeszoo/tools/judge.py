"""The gate for anybody's draws: whether chains of PyMC, NumPyro, Stan or any sampler may be trusted, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.foundation import tails
from bayeszoo.foundation.gate import (
    APART,
    MAX_R_HAT,
    MIN_CHAINS,
    MIN_DRAWS,
    MIN_ESS_PER_CHAIN,
    SHOWN_ESS,
    SHOWN_R_HAT,
    Check,
    at_least,
    at_most,
    check_draws,
    check_hmc,
    verdict,
)
from bayeszoo.results.files import read_tree
from bayeszoo.results.summary import elements, summary_of_draws
from bayeszoo.tools.points import chains_of, check_density, unconstrained
from bayeszoo.tools.stan_csv import read_stan
from bayeszoo.tools.symmetry import check_symmetry

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr

MOST = 2000
"""Entries of a variable that are diagnosed one by one: each takes some milliseconds."""
SHOWN_CHAINS, SHOWN_DRAWS = 2, 100
"""Chains, and draws of each, from which numbers are shown with a warning if all else is right."""
SHOWN = ("mean", "sd", "q025", "median", "q975", *(f"mcse_{name}" for name in ("mean", "sd", "q025", "median", "q975")))
OF_EACH = ("ess_bulk", "ess_tail", "r_hat")
"""Codes of the checks that each quantity has by itself."""
ADVICE = {
    "chains": "run four chains or more, from different starts: a single one cannot show that it has missed something",
    "draws": "keep 400 draws of each chain or more: with fewer the diagnostics say little",
    "non_finite_draws": "find out where draws are infinite or NaN: a transform or a scale may overflow",
    "stuck_chains": "start the chain that never moves elsewhere, with smaller steps",
    "repeated_chains": "give each chain its own seed: some are copies of another",
    "score_z": "find out which density was sampled: it is not that of this model on these data; look at the data, the "
    "prior's scales and the Jacobian of each transform",
    "virial_z": "find out why the draws are wider or narrower than the density: the acceptance rule, or the step",
    "symmetry_z": "say nothing of single components or signs before `bz.relabel`: numbers that all of them share are "
    "right, as densities, predictions and sorted values",
    "divergences": "raise target_accept to .95 or .99; if some stay, write hierarchies with non-centred effects",
    "e_bfmi": "write heavy-tailed parameters as products or mixtures of light-tailed ones",
    "tree_depth": "raise max_treedepth, or bring the parameters to one scale",
    "non_finite_log_densities": "find out where the log density is infinite or NaN: it is where chains cannot go on",
}
"""What to do about each check, by its code."""
SEPARATED = (
    "chains are in different places: labels that can be exchanged, several modes, or an improper posterior; look at "
    "each chain's means"
)


@dataclass(frozen=True)
class Judgement:
    """What the gate says of draws."""

    verdict: str
    """``"ok"``, ``"caution"`` or ``"failed"``, the worst of all checks."""
    checks: tuple[Check, ...]
    """Checks of the chains as a whole, of all quantities together, and of the figures that the sampler stored."""
    quantities: pd.DataFrame
    """A row for each scalar: mean, sd, quantiles, their Monte Carlo errors, ``ess_bulk``, ``ess_tail``, ``r_hat``, its
    ``verdict``, and ``why`` where it is not ok or a number is withheld. Numbers of a quantity that failed are NaN; of
    all, where the chains as a whole have failed or are in different places."""
    advice: tuple[str, ...]
    """What to do next, the most urgent first; empty where all is ok."""
    constant: tuple[str, ...]
    """Scalars that are the same in all draws, as the diagonal of a correlation matrix. They are not judged."""
    not_checked: tuple[str, ...]
    """Codes of the checks for which the sampler has stored nothing, as divergences of a random walk."""

    def __repr__(self) -> str:
        """Say the verdict, what did not pass, what was not checked, and what to do next."""
        missed = [str(check) for check in self.checks if not check.passed]
        passed, unstored = len(self.checks) - len(missed), ", ".join(self.not_checked)
        lines = [f"verdict {self.verdict}: {passed} of {len(self.checks)} checks passed", *missed]
        lines += [f"not checked, as the sampler has not stored it: {unstored}"] * bool(unstored)
        lines += [f"the same in all draws: {len(self.constant)} quantities"] * bool(self.constant)
        return "\n".join([*lines, *(f"next: {line}" for line in self.advice)])


def judge(draws: xr.DataTree | str | Path | Sequence[str | Path], model: pm.Model | None = None) -> Judgement:
    """Say whether draws of chains may be trusted, of which quantities, why not, and what to do next.

    Parameters
    ----------
    draws : xarray.DataTree, str, Path, or list of paths
        An ArviZ tree with a group ``posterior`` (chain, draw, ...) and, if the sampler has them, ``sample_stats``; a
        NetCDF file of one; or Stan's CSV files, one a chain. Any sampler's: what `pm.sample`, `az.from_numpyro`,
        `az.from_cmdstanpy` return.
    model : pymc.Model, optional
        The model that was to be sampled. Then the gradient of its density tells whether the draws are of it: its mean
        over them must be 0 (``score_z``), and that of coordinate times gradient -1 (``virial_z``), in errors; and where
        its density stays the same when entries are exchanged or signs changed, the draws must be as symmetric
        (``symmetry_z``), else no chain has visited the other modes, and a warning says which.

    Returns
    -------
    Judgement

    Raises
    ------
    InputError
        When there are no draws, or they are independent draws of an approximation, of which no chain tells.

    Notes
    -----
    Limits are those of every fit of the zoo: R-hat 1.01, 100 effective draws a chain in bulk and tails, no divergence,
    E-BFMI .3 (Vehtari et al. 2021, Bayesian Analysis 16, 667-718; Betancourt 2017). Means and sds that heavy tails
    leave unknown are withheld by the Pareto shape of the draws. No check of draws alone sees a mode that no chain
    visited; with a model, those are seen that its symmetries make.
    """
    tree = _read(draws)
    if tree.attrs.get("kind", "sampled") != "sampled":
        kind = f"{tree.attrs['kind']}, by {tree.attrs['method']}"
        raise InputError(
            f"these are no draws of chains ({kind})", "not_sampled", hint="`bayeszoo report` says how it did"
        )
    posterior, constant = _moving(chains_of(tree))
    stats = tree["sample_stats"].to_dataset() if "sample_stats" in tree.children else None
    of_hmc = [] if stats is None else check_hmc(stats)
    known = [check for check in of_hmc if check.value is not None]
    checks = (*_of_draws(posterior), *known, *_of_density(tree, model))
    lacking = {check.name for check in check_hmc(_nothing())} - {check.name for check in known}
    table = _held(_table(posterior), checks)
    return Judgement(verdict(checks), checks, table, _advice(checks, posterior), constant, tuple(sorted(lacking)))


def _read(draws: xr.DataTree | str | Path | Sequence[str | Path]) -> xr.DataTree:
    """Return the tree of a file, or of Stan's files."""
    if hasattr(draws, "children"):
        return cast("xr.DataTree", draws)
    paths = [Path(draws)] if isinstance(draws, str | Path) else [Path(path) for path in cast("Sequence[Path]", draws)]
    if paths and all(path.suffix.lower() == ".csv" for path in paths):
        return read_stan(paths)
    if len(paths) != 1:
        raise InputError("several files are Stan's CSV files, a chain each", "wrong_suffix", hint="give one .nc file")
    return read_tree(paths[0])


def _of_density(tree: xr.DataTree, model: pm.Model | None) -> list[Check]:
    """Check the draws against the density of a model; none where they are not finite numbers, which fail anyway."""
    if model is None:
        return []
    from bayeszoo.compile.density import Density

    density, posterior = Density(model), chains_of(tree)
    points = unconstrained(density, posterior)
    if not np.isfinite(points).all():
        return []
    symmetry, change = check_symmetry(density, posterior)
    of_one_mode = f"the draws are of one of several modes that are as high: {change}"
    return [*check_density(density, points), symmetry.or_caveat(of_one_mode)]


def _of_draws(posterior: xr.Dataset) -> list[Check]:
    """Check the draws as the gate does; two chains, which PyMC runs on two cores, and few draws are caveats."""
    shown = {
        "chains": at_least("chains", posterior.sizes["chain"], MIN_CHAINS, SHOWN_CHAINS),
        "draws": at_least("draws", posterior.sizes["draw"], MIN_DRAWS, SHOWN_DRAWS),
    }
    return [shown.get(check.name, check) for check in check_draws(posterior)]


def _nothing() -> Any:
    import xarray as xr

    return xr.Dataset()


def _moving(posterior: xr.Dataset) -> tuple[xr.Dataset, tuple[str, ...]]:
    """Return the scalars that are not the same in all draws, a variable for each name, and the labels of the others."""
    import xarray as xr

    kept, constant = {}, list[str]()
    for name, variable in posterior.data_vars.items():
        flat = variable.to_numpy().reshape(*variable.shape[:2], -1).astype(np.float64)
        still = (flat == flat[:1, :1]).all(axis=(0, 1))
        labels = np.array([label for _, label in elements(_indexed(variable))], dtype=object)
        constant += labels[still].tolist()
        if not still.all():
            kept[str(name)] = (
                ("chain", "draw", f"{name}_entry"),
                flat[..., ~still],
                {"labels": labels[~still].tolist()},
            )
    if not kept:
        raise InputError("every quantity is the same in all draws", "constant_draws", hint="the sampler never moved")
    return xr.Dataset(kept), tuple(constant)


def _indexed(variable: xr.DataArray) -> xr.DataArray:
    """Return a variable whose axes have labels, numbers from 0 where it has none."""
    bare = [dim for dim in variable.dims if dim not in variable.coords]
    return variable.assign_coords({dim: np.arange(variable.sizes[dim]) for dim in bare})


def _table(posterior: xr.Dataset) -> pd.DataFrame:
    """Summarize every scalar, and judge it by itself."""
    import pandas as pd

    rows = [row for variable in posterior.data_vars.values() for row in _rows(variable)]
    return pd.DataFrame(rows).set_index("quantity")


def _held(table: pd.DataFrame, checks: tuple[Check, ...]) -> pd.DataFrame:
    """Withhold numbers of quantities that failed, and all where the chains have; where some failed no other is ok.

    Where one mixes slowly another that mixes well may still be off: both are of one joint distribution.
    """
    of_all = [check for check in checks if check.name not in OF_EACH or (check.name == "r_hat" and _is_apart(check))]
    failed = table.index[table["verdict"] == "failed"]
    worst = "failed" if verdict(of_all) == "failed" else "caution" if len(failed) else verdict(of_all)
    if worst != "ok":
        named = f"not converged: {', '.join(map(str, failed[:3]))}{' ...' * (len(failed) > 3)}"
        why = next((str(check) for check in of_all if check.verdict == worst), named)
        better = table["verdict"] != "failed" if worst == "failed" else table["verdict"] == "ok"
        table.loc[better, "why"] = [f"{own}; {why}".removeprefix("; ") for own in table.loc[better, "why"]]
        table.loc[better, "verdict"] = worst
        table.loc[table["verdict"] == "failed", [*SHOWN]] = np.nan
    return table


def _is_apart(r_hat: Check) -> bool:
    return r_hat.value is not None and r_hat.value > APART


def _rows(variable: xr.DataArray) -> Iterator[dict[str, Any]]:
    values = variable.to_numpy()[..., :MOST]
    with np.errstate(invalid="ignore"):  # of infinite draws, which fail
        summary = summary_of_draws(values, "sampled")
    known = tails.moments(values) if np.isfinite(values).all() else None
    for i, label in enumerate(variable.attrs["labels"][:MOST]):
        figures = {name: float(entry[i]) if (entry := summary[name]) is not None else np.nan for name in summary}
        checks = _checks(figures, values.shape[0])
        why = [str(check) for check in checks if not check.passed]
        if known is not None:
            figures |= {name: float(getattr(known, name)[i]) for name in ("mean", "sd", "mcse_mean")}
            why += [str(known.withheld[i])] * bool(known.withheld[i])
        shown = {name: figures[name] for name in (*SHOWN, *OF_EACH)}
        yield {"quantity": label, "verdict": verdict(checks), **shown, "why": "; ".join(why)}


def _checks(figures: dict[str, float], chains: int) -> list[Check]:
    return [
        at_most("r_hat", figures["r_hat"], MAX_R_HAT, SHOWN_R_HAT),
        at_least("ess_bulk", figures["ess_bulk"], MIN_ESS_PER_CHAIN * chains, SHOWN_ESS),
        at_least("ess_tail", figures["ess_tail"], MIN_ESS_PER_CHAIN * chains, SHOWN_ESS),
    ]


def _advice(checks: tuple[Check, ...], posterior: xr.Dataset) -> tuple[str, ...]:
    """Say what to do about each check that did not pass, those first that explain others."""
    missed = {check.name: check for check in checks if not check.passed}
    lines = [ADVICE[name] for name in ADVICE if name in missed]
    others = [line for line in lines if line != ADVICE["divergences"]]
    if "r_hat" in missed and _is_apart(missed["r_hat"]):
        return (*[ADVICE[name] for name in ("divergences",) if name in missed], SEPARATED, *others)
    slow = [missed[name] for name in ("r_hat", "ess_bulk", "ess_tail") if name in missed]
    if slow and not {"stuck_chains", "repeated_chains", "non_finite_draws"} & {*missed}:
        needed = MIN_ESS_PER_CHAIN * posterior.sizes["chain"]
        sizes = [check.value for check in slow if check.name != "r_hat" and check.value]
        times = max(2, int(np.ceil(needed / min(sizes)))) if sizes else 2
        length = times * posterior.sizes["draw"]
        lines.append(f"run {times} times as long ({length} draws of each chain), or change the parametrization")
    return tuple(lines)
