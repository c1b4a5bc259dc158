"""Numerical summaries of the parameters of a fit, withheld if the gate failed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.tails import LIMITS
from bayeszoo.results.caveats import failures_of, next_step
from bayeszoo.results.gaps import STATISTICS, gaps
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr

HEADLINE = ("mean", "sd", *QUANTILES, "mcse_mean")
MCSE = ("mcse_mean", "mcse_sd", *(f"mcse_{name}" for name in QUANTILES))
MEASURED = ("error_sd", "sd_ratio", "error_mcse")
DIAGNOSTICS = ("ess_bulk", "ess_tail", "r_hat")
Summary = dict[str, Any]  # an array of the parameter's shape for each statistic; None if it does not apply
_EMPTY: Summary = dict.fromkeys(("mean", "sd", *QUANTILES, *MCSE, *DIAGNOSTICS))
MOST_LISTED = 2000
"""Most entries of a parameter that are listed; errors and diagnostics take a millisecond for each."""
FIGURES = ("log_evidence", "elbo", "log_likelihood", "log_joint")
"""Numbers about a whole fit, withheld together with its estimates."""


def summarize(tree: xr.DataTree, names: Collection[str] | None = None) -> dict[str, Summary]:
    """Summarize each parameter of a fit.

    Parameters
    ----------
    tree : xarray.DataTree
        Result of `fit`.
    names : collection of str, optional
        The parameters; by default all. Errors and diagnostics of ten thousand entries take about ten seconds.

    Returns
    -------
    dict
        By parameter: ``mean``, ``sd``, ``q025``, ``median``, ``q975``, the Monte Carlo standard error of each
        (``mcse_mean``, ``mcse_sd``, ``mcse_q025``, ...), ``ess_bulk``, ``ess_tail`` and ``r_hat``, each an array of
        the parameter's shape, or None if it does not apply. The exact method gives closed forms; a point estimate has
        only a ``mean``, the estimate. The headline numbers of a failed fit are withheld (None), and its diagnostics
        remain; an interrupted fit has neither. ``withheld`` gives the reason for each statistic that is None, or NaN in
        places.
    """
    return summaries_of(Fit(tree), names)


def summaries_of(fit: Fit, names: Collection[str] | None = None) -> dict[str, Summary]:
    """Summarize parameters as `summarize` does."""
    summaries = _summarized(fit, "posterior", names)
    return {name: {**summary, "withheld": _reasons(fit, name, summary)} for name, summary in summaries.items()}


_DOES_NOT_APPLY = {
    "exact": "an exact answer has no Monte Carlo error",
    "sampled": "too few draws for it",
    "approximate": "draws of an approximation are independent",
    "point estimate": "a point estimate has no spread",
}


def _reasons(fit: Fit, name: str, summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the reason for each statistic of a parameter that is None, or NaN in places."""
    of_components = is_of_components(fit, "posterior", name)
    hidden = components_withheld(fit) if of_components else "; ".join(failures_of(fit))
    missing = [key for key, values in summary.items() if values is None]
    why = dict.fromkeys(missing, hidden if summary["mean"] is None else _DOES_NOT_APPLY[fit.kind])
    undefined = [key for key, values in summary.items() if values is not None and np.isnan(values).any()]
    far = [label for label in fit.facts.get("withheld", ()) if label.partition("[")[0] == name]
    if far:
        return why | dict.fromkeys(undefined, f"too far from the posterior's: {', '.join(far)}")
    tails = next((line for line in _of_tails(fit, [name]) if undefined), "it does not exist, or is not known")
    return why | dict.fromkeys(undefined, tails)


def listed(fit: Fit, group: str = "posterior") -> list[str]:
    """Return the quantities whose entries are listed: closed forms, and others with few entries."""
    closed = fit.kind == "exact"
    return [name for name, values in fit.draws(group).items() if closed or values[0, 0].size <= MOST_LISTED]


def not_listed(fit: Fit) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the quantities whose entries are not listed."""
    groups = ("posterior", "derived")
    kept = {name for group in groups for name in listed(fit, group)}
    return {name: v.shape[2:] for group in groups for name, v in fit.draws(group).items() if name not in kept}


def _summarized(fit: Fit, group: str, names: Collection[str] | None) -> dict[str, Summary]:
    kind, summaries = fit.kind, {}
    exact = fit.tree["exact"].to_dataset() if "exact" in fit else {}
    for name, values in fit.draws(group).items():
        if names is not None and name not in names:
            continue
        if fit.status == "interrupted":  # its user waits for the end
            summaries[name] = _EMPTY
            continue
        closed = _closed_form(exact[name]) if name in exact else None
        if closed and kind == "exact" and not _is_of_moments(closed):  # no summary of draws, which would import ArviZ
            summary = closed
        else:
            compute, variable = partial(summary_of_draws, values, kind), fit.tree[group].variables[name]
            measured = fit.once(f"{kind} summary of {group}/{name}", variable, compute)
            true = posterior_of(fit, name) if kind == "approximate" else closed
            has_exact_moments = closed is not None and kind == "exact"
            tails = None if has_exact_moments else _tails(fit, group, name)
            summary = moments_that_exist(measured, true, tails)
            summary = _near_enough(summary, values, true) if kind == "approximate" else summary
            summary = {**summary, **_exact_moments(closed)} if closed and has_exact_moments else summary
        shown = fit.is_shown and not is_of_components(fit, group, name)
        summaries[name] = summary if shown else {**_EMPTY, **{key: summary[key] for key in DIAGNOSTICS}}
    return summaries


def posterior_of(fit: Fit, name: str) -> Summary | None:
    """Return the posterior numbers of a quantity, by reference draws where the closed form is incomplete."""
    groups = (fit.tree[group].to_dataset() for group in ("reference", "exact") if group in fit)
    return next((_closed_form(group[name]) for group in groups if name in group), None)


def _near_enough(summary: Summary, draws: np.ndarray, posterior: Summary | None) -> Summary:
    """Withhold the numbers of an approximation whose gap to the posterior is too large."""
    if posterior is None:
        return summary
    shown = gaps(draws, _stacked(posterior)).are_shown
    withheld = ("mean", "sd", *QUANTILES, *MCSE)
    return {key: np.where(shown, v, np.nan) if v is not None and key in withheld else v for key, v in summary.items()}


def _stacked(posterior: Summary) -> np.ndarray:
    return np.stack([posterior[name] for name in STATISTICS])


def _is_of_moments(closed: Summary) -> bool:
    """Say whether only mean and sd are exact, as for derived quantities by quadrature."""
    return np.size(closed["median"]) > 0 and bool(np.isnan(closed["median"]).all())


def _exact_moments(closed: Summary) -> Summary:
    """Return exact moments, with errors of 0."""
    moments = {key: closed[key] for key in ("mean", "sd")}
    return moments | {f"mcse_{key}": np.where(np.isnan(values), np.nan, 0.0) for key, values in moments.items()}


def components_withheld(fit: Fit) -> str:
    """Return why parameters of single components are withheld; empty if they are shown."""
    return str(fit.facts.get("components_withheld") or "")


def is_of_components(fit: Fit, group: str, name: str) -> bool:
    """Say whether a quantity is withheld together with the single components.

    The diagnostics of the gate do not depend on labels, nor do derived quantities.
    """
    is_label_free = "invariants" in fit and name in fit.tree["invariants"].data_vars
    return group == "posterior" and bool(components_withheld(fit)) and not is_label_free


def moments_that_exist(
    summary: Summary,
    closed: Mapping[str, np.ndarray | None] | None,
    tails: np.ndarray | None,
) -> Summary:
    """Withhold moments of draws, and their errors, that are infinite by the closed form or the tails."""
    if summary["sd"] is None:
        return summary
    exist = {name: np.asarray(-np.inf if tails is None else tails) < limit for name, limit in LIMITS.items()}
    if closed is not None:
        is_finite = np.isfinite(np.asarray(closed["sd"], dtype=np.float64))
        exist = {name: exists & is_finite for name, exists in exist.items()}
    return {key: v if v is None or key not in exist else np.where(exist[key], v, np.nan) for key, v in summary.items()}


def _tails(fit: Fit, group: str, name: str) -> np.ndarray | None:
    """Return the Pareto shapes of the tails of draws; None if the numbers are not shown."""
    if fit.kind == "point estimate" or not fit.is_shown:
        return None
    if name in fit.model.without_moments:
        return np.full(np.shape(fit.draws(group)[name])[2:], np.inf)
    compute = partial(diagnostics.tail_shape, fit.draws(group)[name])
    return np.asarray(fit.once(f"tails of {group}/{name}", fit.tree[group].variables[name], compute))


def _of_tails(fit: Fit, only: Collection[str] | None = None) -> list[str]:
    """Return lines on the quantities whose tails are so heavy that moments, or their errors, are withheld."""
    exact = fit.tree["exact"].data_vars if "exact" in fit and fit.kind == "exact" else ()
    names = [(group, name) for group in ("posterior", "derived") for name in listed(fit, group) if name not in exact]
    names = names if only is None else [pair for pair in names if pair[1] in only]
    names = [pair for pair in names if not is_of_components(fit, *pair)]
    shapes = {name: _tails(fit, group, name) for group, name in names}
    worst = {name: float(np.max(k, initial=-np.inf)) for name, k in shapes.items() if k is not None}
    without_mean = [f"{name}: it has no mean: read its quantiles" for name, k in worst.items() if k == np.inf]
    return without_mean + [f"{name}: {why}" for name, k in worst.items() if k < np.inf and (why := heavy_tails(k))]


def heavy_tails(k: float) -> str:
    """Return the moments that are withheld for draws with a tail of this Pareto shape; empty if none is."""
    withheld = [name for name, limit in LIMITS.items() if k >= limit]
    return f"the tails of its draws have Pareto k-hat {k:.2f}: {', '.join(withheld)} withheld" if withheld else ""


def elements(variable: xr.DataArray) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the index and the name of each scalar of a parameter, with its labels: ``p[bush]``."""
    dims = variable.dims[2:]
    labels = [variable[dim].to_numpy().tolist() for dim in dims]
    for index in np.ndindex(variable.shape[2:]):
        inner = ", ".join(str(axis[i]) for axis, i in zip(labels, index, strict=True))
        yield index, f"{variable.name}[{inner}]" if index else str(variable.name)


def _closed_form(exact: xr.DataArray) -> Summary:
    closed = {name: exact.sel(statistic=name).to_numpy() for name in ("mean", "sd", *QUANTILES)}
    return {**_EMPTY, **closed}


def summary_of_draws(values: np.ndarray, kind: str) -> Summary:
    """Summarize draws of shape (chain, draw, ...)."""
    if kind == "point estimate":
        return {**_EMPTY, "mean": values[0, 0]}
    flat = values.reshape(-1, *values.shape[2:])
    moments = {"mean": flat.mean(axis=0), "sd": flat.std(axis=0, ddof=1)}
    quantiles = dict(zip(QUANTILES, np.quantile(flat, list(QUANTILES.values()), axis=0), strict=True))
    summary = {**_EMPTY, **moments, **quantiles}
    if values.shape[1] < 4 or not np.isfinite(values).all():  # ArviZ has no diagnostics for these
        return summary
    return {**summary, **_diagnosed(values, kind)}


def _diagnosed(values: np.ndarray, kind: str) -> Summary:
    """Return Monte Carlo errors; for draws of chains also effective sample sizes and R-hat."""
    mcse = partial(diagnostics.mcse, independent=kind != "sampled")
    errors_of = {f"mcse_{name}": mcse(values, name) for name in ("mean", "sd")}
    errors_of |= {f"mcse_{name}": mcse(values, "quantile", prob) for name, prob in QUANTILES.items()}
    if kind != "sampled":
        return {**errors_of}
    sizes = {f"ess_{method}": diagnostics.ess(values, method) for method in ("bulk", "tail")}
    return {**errors_of, **sizes, "r_hat": diagnostics.r_hat(values) if len(values) > 1 else None}


def probability_positive(fit: Fit, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return P(entry > 0) for each entry of a parameter, and its Monte Carlo error, 0 in closed form; None if withheld.

    The error is NaN where all draws have the same sign.
    """
    if not fit.is_shown or fit.kind == "point estimate":
        return None
    if fit.method == "exact" and fit.posterior is not None:
        below = np.asarray(fit.posterior[name].cdf(0.0))
        return 1 - below, 0 * below
    positive = fit.draws()[name] > 0
    mcse = diagnostics.mcse(positive.astype(np.float64))
    return positive.mean((0, 1)), np.where(positive.all((0, 1)) | ~positive.any((0, 1)), np.nan, mcse)


def errors(fit: Fit, name: str, summary: Mapping[str, np.ndarray | None]) -> dict[str, np.ndarray]:
    """Return the errors of a parameter's summary, by the closed form or, for an approximation, by reference draws.

    ``error_sd`` is the error of the mean in posterior sd, ``error_mcse`` in Monte Carlo errors; and ``sd_ratio``.
    """
    mean, sd, mcse = summary["mean"], summary["sd"], summary["mcse_mean"]
    posterior, kind = posterior_of(fit, name), fit.kind
    if mean is None or kind == "exact" or posterior is None:
        return {}
    if kind == "approximate":  # also for withheld quantities, as the gap is the reason
        measured_gaps = gaps((fit.draws() | fit.draws("derived"))[name], _stacked(posterior))
        return {"error_sd": measured_gaps.mean, "sd_ratio": measured_gaps.sd}
    exact_mean, exact_sd = np.asarray(posterior["mean"]), np.asarray(posterior["sd"])
    exact_sd = np.where(np.isfinite(exact_sd), exact_sd, np.nan)  # an infinite sd is no unit
    measured = {"error_sd": (mean - exact_mean) / exact_sd}
    if sd is not None:
        measured["sd_ratio"] = sd / exact_sd
    if mcse is not None and kind == "sampled":
        measured["error_mcse"] = (mean - exact_mean) / np.where(mcse > 0, mcse, np.nan)  # 0 if all draws are equal
    return measured


def document(fit: Fit) -> Document:
    """Return the content of ``bayeszoo fit --json`` as plain values."""
    attrs = fit.tree.attrs
    figures = {name: fit.fact(name) if name in _facts(fit) else None for name in (*FIGURES, "k_hat")}
    return {
        **{name: attrs[name] for name in ("model", "method", "kind", "sampler")},
        "status": fit.status,
        "seed": int(attrs["seed"]),
        "fields": fit.fields,
        "data": {"source": attrs["data_source"], "digest": attrs["data_digest"]},
        "seconds": fit.seconds,
        "gate": {**fit.gate, "checks": fit.checks},
        **figures,
        "facts": _facts(fit),
        "exact": _exact_evidence(fit),
        "parameters": _all_described(fit, "posterior"),
        "derived": _all_described(fit, "derived"),
        "not_listed": {name: list(shape) for name, shape in not_listed(fit).items()},
        "warnings": failures_of(fit),
        "next": next_step(fit) or None,
        "notes": [*fit.notes, *_of_tails(fit)],
    }


def _facts(fit: Fit) -> Document:
    """Return the facts of a fit that may be shown."""
    facts = dict(fit.facts)
    if fit.is_shown:
        return facts
    hidden_maxima = {"maxima": [None] * len(facts["maxima"])} if "maxima" in facts else {}
    return {name: value for name, value in facts.items() if name not in FIGURES} | hidden_maxima


def _all_described(fit: Fit, group: str) -> dict[str, Any]:
    summaries = _summarized(fit, group, listed(fit, group))
    return {name: _described(fit, group, name, summary) for name, summary in summaries.items()}


def _described(fit: Fit, group: str, name: str, summary: Mapping[str, np.ndarray | None]) -> dict[str, Any]:
    variable = fit.tree[group].to_dataset()[name]
    dims = [str(dim) for dim in variable.dims[2:]]
    coords = {dim: variable[dim].to_numpy().tolist() for dim in dims if dim in variable.coords}
    measured = dict.fromkeys(MEASURED) | errors(fit, name, summary)
    plain = {k: None if v is None else v.tolist() for k, v in {**summary, **measured}.items()}
    return {"dims": dims, "coords": coords, **plain}


def _exact_evidence(fit: Fit) -> dict[str, float] | None:
    """Return the closed-form log evidence, for any method, and the gaps of an ELBO and an estimate to it."""
    if "exact" not in fit:
        return None
    evidence = {str(name): float(value) for name, value in fit.tree["exact"].attrs.items()}
    bounds = {name: fit.fact(name) for name in ("log_evidence", "elbo") if name in _facts(fit)}
    gaps = {f"{name}_gap": evidence["log_evidence"] - value for name, value in bounds.items() if value is not None}
    return {**evidence, **gaps}


_RANKS = {"sampled": 0, "exact": 1, "approximate": 2, "point estimate": 3}


def best(fits: Sequence[Fit]) -> Fit:
    """Return the best fit: shown before withheld, then by kind, sampled draws first, then ok before caution."""
    return min(fits, key=lambda fit: (not _shows_any(fit), _RANKS[fit.kind], fit.tree.attrs["status"] != "ok"))


def _shows_any(fit: Fit) -> bool:
    """Say whether the estimate of any quantity is shown."""
    groups = [group for group in ("posterior", "derived") if group in fit]
    names = [(group, str(name)) for group in groups for name in fit.tree[group].data_vars]
    return fit.is_shown and not all(is_of_components(fit, *quantity) for quantity in names)


def best_of_components(fits: Sequence[Fit]) -> Fit:
    """Return the best fit that shows single components, if any does; else the best fit."""
    shown = [fit for fit in fits if fit.is_shown and not components_withheld(fit)]
    return best(shown or fits)
