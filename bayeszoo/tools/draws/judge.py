"""The gate for draws of any sampler: whether chains of PyMC, NumPyro or Stan may be trusted, and what to do next."""

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
    arrays_in,
    at_least,
    at_most,
    check_draws,
    check_hmc,
    verdict,
)
from bayeszoo.results.files import read_tree
from bayeszoo.results.summary import elements, summary_of_draws
from bayeszoo.tools.draws.points import chains_of, check_density, unconstrained
from bayeszoo.tools.draws.stan_csv import read_stan
from bayeszoo.tools.draws.symmetry import check_symmetry

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr

MOST = 2000
"""Most entries of a variable that are diagnosed; each takes some milliseconds."""
MOST_NAMED = 5
"""Constant quantities that are named in a line; of more, how many."""
SHOWN_CHAINS, SHOWN_DRAWS = 2, 100
"""Fewest chains, and draws of each, whose numbers are shown with a warning if all other checks pass."""
SHOWN = ("mean", "sd", "q025", "median", "q975", *(f"mcse_{name}" for name in ("mean", "sd", "q025", "median", "q975")))
OF_EACH = ("ess_bulk", "ess_tail", "r_hat")
"""Codes of the checks of single quantities."""
ADVICE = {
    "chains": "run four chains or more, from different starts: a single chain cannot show what it has missed",
    "draws": "keep 400 draws of each chain or more: with fewer the diagnostics are unreliable",
    "non_finite_draws": "find out where draws are infinite or NaN: a transform or a scale may overflow",
    "stuck_chains": "give the chain that never moves another start and smaller steps",
    "repeated_chains": "give each chain its own seed: some chains are copies",
    "score_z": "the sampled density is not that of this model and these data: check the data, the scales of the prior "
    "and the Jacobian of each transform",
    "virial_z": "find out why the draws are wider or narrower than the density: the acceptance rule, or the step",
    "symmetry_z": "do not report single components or signs before `bz.relabel`; densities, predictions and sorted "
    "values, which do not depend on labels, are right",
    "divergences": "raise target_accept to .95 or .99; if some remain, write hierarchies with non-centred effects",
    "e_bfmi": "write heavy-tailed parameters as products or mixtures of light-tailed ones",
    "tree_depth": "raise max_treedepth, or bring the parameters to one scale",
    "non_finite_log_densities": "find out where the log density is infinite or NaN: chains cannot continue there",
}
"""Advice if a check fails, by its code."""
SEPARATED = (
    "chains are in different places: exchangeable labels, several modes, or an improper posterior; look at the means "
    "of each chain"
)


@dataclass(frozen=True)
class Judgement:
    """The verdict of the gate on draws."""

    verdict: str
    """``"ok"``, ``"caution"`` or ``"failed"``, the worst of all checks."""
    checks: tuple[Check, ...]
    """Checks of the chains, of all quantities together, and of the statistics that the sampler stored."""
    quantities: pd.DataFrame
    """A row for each scalar: mean, sd, quantiles, their Monte Carlo errors, ``ess_bulk``, ``ess_tail``, ``r_hat``, its
    ``verdict``, and ``why`` where it is not ok or a number is withheld. Numbers of a failed quantity are NaN; all
    numbers are, if the chains failed or are in different places."""
    advice: tuple[str, ...]
    """Next steps, the most urgent first; empty where all is ok."""
    constant: tuple[str, ...]
    """Scalars that are the same in all draws, such as the diagonal of a correlation matrix; they are not judged."""
    not_checked: tuple[str, ...]
    """Codes of the checks without stored statistics, such as divergences of a random walk."""

    def __repr__(self) -> str:
        """Show the verdict, the checks that did not pass or were not made, and what to do next."""
        missed = [str(check) for check in self.checks if not check.passed]
        passed, unstored = len(self.checks) - len(missed), ", ".join(self.not_checked)
        lines = [f"verdict {self.verdict}: {passed} of {len(self.checks)} checks passed", *missed]
        lines += [f"not checked (the sampler did not store it): {unstored}"] * bool(unstored)
        named = ", ".join(self.constant[:MOST_NAMED]) + f" and {len(self.constant) - MOST_NAMED} more" * (
            len(self.constant) > MOST_NAMED
        )
        lines += [f"constant in all draws, not judged: {named}"] * bool(self.constant)
        return "\n".join([*lines, *(f"next: {line}" for line in self.advice)])


def judge(draws: xr.DataTree | str | Path | Sequence[str | Path], model: pm.Model | None = None) -> Judgement:
    """Say for which quantities draws of chains may be trusted, why not for others, and what to do next.

    Parameters
    ----------
    draws : xarray.DataTree, str, Path, or list of paths
        An ArviZ tree with a group ``posterior`` (chain, draw, ...) and, if the sampler has them, ``sample_stats``; the
        NetCDF file of a tree; or Stan's CSV files, one for each chain. Any sampler will do: `pm.sample`,
        `az.from_numpyro` and `az.from_cmdstanpy` return such trees.
    model : pymc.Model, optional
        The model that was to be sampled. The gradient of its density then tests whether the draws are from it: over
        the draws the gradient must have mean 0 (``score_z``), and coordinate times gradient mean -1 (``virial_z``),
        within Monte Carlo errors. Where exchanging entries or changing signs leaves the density the same, the draws
        must be as symmetric (``symmetry_z``); otherwise no chain has visited the other modes, and a warning names
        them.

    Returns
    -------
    Judgement

    Raises
    ------
    InputError
        When there are no draws, or the draws are independent draws of an approximation, without chains.

    Notes
    -----
    Limits are those of every fit of the zoo: R-hat 1.01, 100 effective draws a chain in bulk and tails, no divergence,
    E-BFMI .3 (Vehtari et al. 2021, Bayesian Analysis 16, 667-718; Betancourt 2017). Means and sds that heavy tails
    leave unknown are withheld by the Pareto shape of the draws. No check of draws alone detects a mode that no chain
    visited; with a model, the modes that its symmetries imply are detected.
    """
    tree = _read(draws)
    if tree.attrs.get("kind", "sampled") != "sampled":
        kind = f"{tree.attrs['kind']}, by {tree.attrs['method']}"
        raise InputError(
            f"these are no draws of chains ({kind})", "not_sampled", hint="`bayeszoo report` judges such a fit"
        )
    posterior, constant = _moving(chains_of(tree))
    of_hmc = check_hmc(arrays_in(tree, "sample_stats")) if "sample_stats" in tree.children else []
    stored = [check for check in of_hmc if check.value is not None]
    checks = (*_of_draws(posterior), *stored, *_of_density(tree, model))
    not_checked = {check.name for check in check_hmc({})} - {check.name for check in stored}
    table = _withheld(_table(posterior), checks)
    return Judgement(verdict(checks), checks, table, _advice(checks, posterior), constant, tuple(sorted(not_checked)))


def _read(draws: xr.DataTree | str | Path | Sequence[str | Path]) -> xr.DataTree:
    """Return the tree of a file, or of Stan's files."""
    if hasattr(draws, "children"):
        return cast("xr.DataTree", draws)
    paths = [Path(draws)] if isinstance(draws, str | Path) else [Path(path) for path in cast("Sequence[Path]", draws)]
    if paths and all(path.suffix.lower() == ".csv" for path in paths):
        return read_stan(paths)
    if len(paths) != 1:
        raise InputError(
            "several files must be Stan's CSV files, one for each chain", "wrong_suffix", hint="give one .nc file"
        )
    return read_tree(paths[0])


def _of_density(tree: xr.DataTree, model: pm.Model | None) -> list[Check]:
    """Check the draws against the density of a model; draws that are not finite fail elsewhere."""
    if model is None:
        return []
    from bayeszoo.compile.density import Density

    density, posterior = Density(model), chains_of(tree)
    points = unconstrained(density, posterior)
    if not np.isfinite(points).all():
        return []
    symmetry, change = check_symmetry(density, posterior)
    of_one_mode = f"the draws are of only one of several equal modes: {change}"
    return [*check_density(density, points), symmetry.or_caveat(of_one_mode)]


def _of_draws(posterior: xr.Dataset) -> list[Check]:
    """Check the draws as the gate does; two chains (PyMC's default on two cores) and few draws are only caveats."""
    shown = {
        "chains": at_least("chains", posterior.sizes["chain"], MIN_CHAINS, SHOWN_CHAINS),
        "draws": at_least("draws", posterior.sizes["draw"], MIN_DRAWS, SHOWN_DRAWS),
    }
    draws = {str(name): values.to_numpy() for name, values in posterior.data_vars.items()}
    return [shown.get(check.name, check) for check in check_draws(draws)]


def _moving(posterior: xr.Dataset) -> tuple[xr.Dataset, tuple[str, ...]]:
    """Return the scalars that vary between draws, one variable for each name, and the labels of constant scalars."""
    import xarray as xr

    kept, constant = {}, list[str]()
    for name, variable in posterior.data_vars.items():
        flat = variable.to_numpy().reshape(*variable.shape[:2], -1).astype(np.float64)
        is_constant = (flat == flat[:1, :1]).all(axis=(0, 1))
        labels = np.array([label for _, label in elements(_indexed(variable))], dtype=object)
        constant += labels[is_constant].tolist()
        if not is_constant.all():
            kept[str(name)] = (
                ("chain", "draw", f"{name}_entry"),
                flat[..., ~is_constant],
                {"labels": labels[~is_constant].tolist()},
            )
    if not kept:
        raise InputError("every quantity is the same in all draws", "constant_draws", hint="the sampler never moved")
    return xr.Dataset(kept), tuple(constant)


def _indexed(variable: xr.DataArray) -> xr.DataArray:
    """Return a variable with labels on all axes, numbers from 0 where it has none."""
    unlabelled = [dim for dim in variable.dims if dim not in variable.coords]
    return variable.assign_coords({dim: np.arange(variable.sizes[dim]) for dim in unlabelled})


def _table(posterior: xr.Dataset) -> pd.DataFrame:
    """Summarize and judge each scalar."""
    import pandas as pd

    rows = [row for variable in posterior.data_vars.values() for row in _rows(variable)]
    return pd.DataFrame(rows).set_index("quantity")


def _withheld(table: pd.DataFrame, checks: tuple[Check, ...]) -> pd.DataFrame:
    """Withhold the numbers of quantities that failed, or all where the chains failed; after a failure no other is ok.

    If a quantity mixes slowly, another that mixes well may still be off, as both have one joint distribution.
    """
    of_all = [check for check in checks if check.name not in OF_EACH or (check.name == "r_hat" and _is_apart(check))]
    failed = table.index[table["verdict"] == "failed"]
    worst = "failed" if verdict(of_all) == "failed" else "caution" if len(failed) else verdict(of_all)
    if worst != "ok":
        named = f"not converged: {', '.join(map(str, failed[:3]))}{' ...' * (len(failed) > 3)}"
        why = next((str(check) for check in of_all if check.verdict == worst), named)
        better = table["verdict"] != "failed" if worst == "failed" else table["verdict"] == "ok"
        table.loc[better, "why"] = [f"{reason}; {why}".removeprefix("; ") for reason in table.loc[better, "why"]]
        table.loc[better, "verdict"] = worst
        table.loc[table["verdict"] == "failed", [*SHOWN]] = np.nan
    return table


def _is_apart(r_hat: Check) -> bool:
    return r_hat.value is not None and r_hat.value > APART


def _rows(variable: xr.DataArray) -> Iterator[dict[str, Any]]:
    values = variable.to_numpy()[..., :MOST]
    with np.errstate(invalid="ignore"):  # infinite draws fail later
        summary = summary_of_draws(values, "sampled")
    of_draws = tails.moments(values) if np.isfinite(values).all() else None
    for i, label in enumerate(variable.attrs["labels"][:MOST]):
        figures = {name: float(entry[i]) if (entry := summary[name]) is not None else np.nan for name in summary}
        checks = _checks(figures, values.shape[0])
        why = [str(check) for check in checks if not check.passed]
        if of_draws is not None:
            figures |= {name: float(getattr(of_draws, name)[i]) for name in ("mean", "sd", "mcse_mean")}
            why += [str(of_draws.withheld[i])] * bool(of_draws.withheld[i])
        shown = {name: figures[name] for name in (*SHOWN, *OF_EACH)}
        yield {"quantity": label, "verdict": verdict(checks), **shown, "why": "; ".join(why)}


def _checks(figures: dict[str, float], chains: int) -> list[Check]:
    return [
        at_most("r_hat", figures["r_hat"], MAX_R_HAT, SHOWN_R_HAT),
        at_least("ess_bulk", figures["ess_bulk"], MIN_ESS_PER_CHAIN * chains, SHOWN_ESS),
        at_least("ess_tail", figures["ess_tail"], MIN_ESS_PER_CHAIN * chains, SHOWN_ESS),
    ]


def _advice(checks: tuple[Check, ...], posterior: xr.Dataset) -> tuple[str, ...]:
    """Return what to do about each check that did not pass, first the checks that explain others."""
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
