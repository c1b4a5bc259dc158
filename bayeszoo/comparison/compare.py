"""One table of several fits of the same data."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.checks.leave_out import NoScore, of_fit
from bayeszoo.data.inputs.labels import names_listed
from bayeszoo.errors import InputError, Interrupted, NumericalError
from bayeszoo.fit import as_data, check_method, fit_sharing, methods_for
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.capabilities import Classifies, Collapsed
from bayeszoo.results.caveats import warn
from bayeszoo.results.matched import matched
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import (
    components_withheld,
    elements,
    errors,
    listed,
    probability_positive,
    summaries_of,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_MOMENTS = ("mean", "sd", "q025", "q975")
_MCSE = tuple(f"mcse_{name}" for name in _MOMENTS)
_ESTIMATE = (*_MOMENTS, "p_positive", "p_positive_mcse", *_MCSE)
_GAPS = ("error_mcse", "error_sd", "sd_ratio", "measured_against")
_EVIDENCE = ("log_evidence", "evidence_se", "evidence_gap", "elbo", "elbo_se", "elbo_gap")
_LOO = ("loo_score", "loo_se", "loo_mcse")
_ABOUT = ("seconds", "kind", "status")
COLUMNS = ("fit", "model", "method", "parameter", *_ESTIMATE, *_GAPS, *_EVIDENCE, *_LOO, *_ABOUT)


STOPPED = "the run was stopped before"
"""Why a method after Ctrl-C has no fit."""


@dataclass(frozen=True)
class Withheld:
    """A method that gave no answer, and why."""

    method: str
    reason: str


def compare(
    fits: Model | Iterable[xr.DataTree | Withheld],
    data: object = None,
    methods: Sequence[str] | None = None,
    *,
    seed: int | None = None,
) -> pd.DataFrame:
    """Compare several fits of the same data in one table.

    Parameters
    ----------
    fits : iterable of DataTree, or Model
        Results of `fit`; or a model, which is then fitted to ``data`` by each of ``methods``.
    data : Data or anything that `read` takes, optional
        With a model only.
    methods : sequence of str, optional
        With a model only; by default every method of the model, without ``em``.
    seed : int, optional
        With a model only.

    Returns
    -------
    pandas.DataFrame
        One row for each fit and scalar parameter. ``fit`` names the fit: its method, with the model where models
        differ, the fields where model names do not tell fits apart, and a number where names still repeat.
        ``mcse_mean`` and so on are the Monte Carlo errors of ``mean``, ``sd``, ``q025`` and ``q975``. ``p_positive`` is
        the posterior probability that the parameter is > 0, ``p_positive_mcse`` its Monte Carlo error (NaN where all
        draws have one sign: the probability is then near 0 or 1). ``error_mcse`` is the error of the mean against the
        closed form in Monte Carlo standard errors, ``error_sd`` in posterior standard deviations, and ``sd_ratio`` the
        sd divided by that of the posterior. Without a closed form, approximations are measured against their reference
        draws, and point estimates against an exact or sampled fit of the same model whose status is ok;
        ``measured_against`` names it. A fit that failed its gate shows mean and sd only where they are measured.
        ``evidence_gap`` and ``elbo_gap`` are the exact log evidence minus the estimate and minus the bound;
        ``evidence_se`` and ``elbo_se`` their Monte Carlo errors (0 where there is none). ``loo_score`` is the mean
        leave-one-out log predictive density of one observation in nats: at the point estimate for ``map`` and ``mle``,
        else integrated over the posterior; ``loo_se`` is its standard error over observations and ``loo_mcse`` its
        Monte Carlo error. Values that do not apply or are withheld are NaN.

    Raises
    ------
    InputError
        When the fits are not of the same data.
    """
    if isinstance(fits, Model):
        methods = [methods] if isinstance(methods, str) else methods
        default = [name for name in methods_for(type(fits)) if name != "em"]
        fits = fit_each(fits, data, default if methods is None else methods, seed)
    if isinstance(fits, type):
        require_instance(fits)
    if isinstance(fits, Mapping):  # a single tree is a mapping of its groups too
        kind = type(fits).__name__
        raise InputError(f"compare needs a list of fits, got {kind}", "wrong_type", hint="write bz.compare([a, b])")
    return in_one_table([fitted if isinstance(fitted, Withheld) else Fit(fitted) for fitted in fits])


def in_one_table(fits: Sequence[Fit | Withheld]) -> pd.DataFrame:
    """Return the table of `compare`."""
    import pandas as pd

    answered = [fit for fit in fits if not isinstance(fit, Withheld)]
    require_same_data([(fit.data_digest, fit.data_source) for fit in answered], "fits")
    matched_fits = iter(matched(answered))
    named = {
        name: fit if isinstance(fit, Withheld) else next(matched_fits)
        for name, fit in zip(names_of(fits), fits, strict=True)
    }
    require_same_density({name: fit.model for name, fit in named.items() if not isinstance(fit, Withheld)})
    rows = [{"fit": name, **row} for name, fit in named.items() for row in _rows(fit, _trusted(fit, named))]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _trusted(fit: Fit | Withheld, named: Mapping[str, Fit | Withheld]) -> tuple[str, Fit] | None:
    """Return name and view of the fit that an approximation or a point estimate is measured against.

    Its status is ok, its model is the same, and it is exact or, failing that, sampled.
    """
    if isinstance(fit, Withheld) or fit.kind not in ("approximate", "point estimate"):
        return None
    others = [
        (name, other)
        for name, other in named.items()
        if not isinstance(other, Withheld)
        and other.status == "ok"
        and other.kind in ("exact", "sampled")
        and str(other.model) == str(fit.model)
    ]
    return min(others, key=lambda pair: pair[1].kind, default=None)  # "exact" comes before "sampled"


def usual_methods(model: type[Model]) -> list[str]:
    """Return the methods to compare by default, with one sampler: Gibbs sampling if it is collapsed, else NUTS."""
    sampler = "gibbs" if issubclass(model, Collapsed) else "nuts"
    chosen = ("exact", "map", "vb", "laplace", "advi", sampler)
    return [method for method in methods_for(model) if method in chosen]


def named_methods(model: type[Model], names: str | None) -> list[str]:
    """Return the checked methods of a comma-separated list, all for ``"all"``, the usual ones for None."""
    if names is None:
        return usual_methods(model)
    if names == "all":
        return methods_for(model)
    chosen = names_listed(names)
    for method in chosen:
        check_method(model, method)
    return chosen


def fit_each(
    model: Model, data: object, methods: Sequence[str], seed: int | None = None, reporter: Reporter | None = None
) -> list[xr.DataTree | Withheld]:
    """Fit by each method in turn; a method without a finite answer, or with too many rows, is withheld with its reason.

    Each fit is the one that `fit` gives. Results that several methods need, such as the modes where they begin, are
    computed once.
    """
    for method in methods:
        check_method(type(model), method)
    data = as_data(model, data)
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed  # shared, so that one command repeats all fits
    reporter = reporter or Reporter()
    fits: list[xr.DataTree | Withheld] = []
    shared: dict[Hashable, Any] = {}
    for method in methods:
        if _is_stopped(fits):
            fits.append(Withheld(method, STOPPED))
            continue
        reporter.say(f"{model.name}: {method}")
        try:
            fits.append(tree := fit_sharing(shared, model, data, method, seed, reporter, None, {}))
            warn(Fit(tree))
        except (Interrupted, KeyboardInterrupt):
            if not fits:
                raise
            signals.answer()
            fits.append(Withheld(method, STOPPED))
        except (InputError, NumericalError) as error:
            if isinstance(error, InputError) and method != "enumerate":  # whose rows may be too many
                raise
            fits.append(Withheld(method, str(error)))
    return fits


def _is_stopped(fits: Sequence[xr.DataTree | Withheld]) -> bool:
    """Say whether the last fit was stopped; later methods are then not run."""
    last = fits[-1] if fits else None
    return last is not None and (
        last.reason == STOPPED if isinstance(last, Withheld) else last.attrs["status"] == "interrupted"
    )


def require_same_data(sources: Iterable[tuple[str, str]], subjects: str) -> None:
    """Raise `InputError` unless all digests agree; ``sources`` are pairs of digest and source."""
    digests = dict(sources)
    if len(digests) > 1:
        named = ", ".join(f"{source} ({digest[:8]})" for digest, source in digests.items())
        raise InputError(
            f"the {subjects} are of different data: {named}",
            "not_comparable",
            hint=f"compare {subjects} of the same data",
        )


def require_same_density(models: Mapping[str, Model]) -> None:
    """Raise `InputError` where some densities are of features and class, and others of the class given the features."""
    joint = [name for name, model in models.items() if isinstance(model, Classifies) and model.has_law_of_features()]
    if joint and (conditional := [name for name in models if name not in joint]):
        why = f"{joint[0]} scores features and class together, {conditional[0]} the class given the features"
        raise InputError(
            f"{why}: the scores are not comparable",
            "not_comparable",
            hint="bayeszoo.classify gives the classes of either",
        )
    scored = {name: model.density_of for name, model in models.items() if isinstance(model, Classifies)}
    if len({*scored.values()}) > 1:
        first = next(iter(scored))
        other = next(name for name in scored if scored[name] != scored[first])
        why = f"{first} scores {scored[first] or 'the features'}, {other} {scored[other] or 'the features'}"
        hint = "bayeszoo classify --leave-one-out scores the classes of either"
        raise InputError(f"{why}: the scores are not comparable", "not_comparable", hint=hint)


def names_of(fits: Sequence[Fit | Withheld]) -> list[str]:
    """Name each fit by its method, with model and prior where these differ, and a number where names still repeat."""
    labels = {str(fit.model): fit.tree.attrs["model"] for fit in fits if not isinstance(fit, Withheld)}
    models_suffice, names = len(set(labels.values())) == len(labels), []
    for fit in fits:
        if isinstance(fit, Withheld) or len(labels) == 1:
            names.append(fit.method)
        else:
            names.append(f"{fit.method} {fit.tree.attrs['model'] if models_suffice else fit.model}")
    return unique(names)


def unique(names: Iterable[str]) -> list[str]:
    """Return the names with a number added to repeated ones: ``a``, ``a (2)``, ``a (3)``."""
    numbered: dict[str, None] = {}
    for name in names:
        with_number = (f"{name} ({i})" for i in count(2))
        numbered[name if name not in numbered else next(new for new in with_number if new not in numbered)] = None
    return list(numbered)


def _rows(fit: Fit | Withheld, trusted: tuple[str, Fit] | None) -> list[dict[str, Any]]:
    if isinstance(fit, Withheld):
        return [{"method": fit.method, "status": f"withheld: {fit.reason}"}]
    shared = {
        "model": str(fit.model),
        "method": fit.method,
        "kind": fit.kind,
        "status": fit.status,
        "seconds": sum(fit.seconds.values()),
        **(_evidence(fit) | _loo(fit) if fit.is_shown else {}),
    }
    return [
        {**shared, **row}
        for name, summary in summaries_of(fit, listed(fit)).items()
        for row in _elements(fit, name, summary, trusted)
    ]


def _elements(
    fit: Fit, name: str, summary: Mapping[str, np.ndarray | None], trusted: tuple[str, Fit] | None
) -> list[dict[str, Any]]:
    """Return one row for each scalar of a parameter."""
    columns = {key: summary[key] for key in (*_MOMENTS, *_MCSE)}
    measured = errors(fit, name, summary)
    gaps = _gaps(fit, name, trusted[1]) if trusted is not None and not measured else {}
    columns |= measured | gaps
    signs = probability_positive(fit, name)
    columns |= dict(zip(("p_positive", "p_positive_mcse"), signs, strict=True)) if signs else {}
    rows = []
    for index, label in elements(fit.tree["posterior"].to_dataset()[name]):
        row: dict[str, Any] = {key: float(value[index]) for key, value in columns.items() if value is not None}
        if trusted is not None and gaps and np.isfinite(row["error_sd"]):
            row["measured_against"] = trusted[0]
        elif measured and "measured_against" in fit.facts:
            row["measured_against"] = fit.facts["measured_against"]
        rows.append({"parameter": label, **row})
    return rows


def _gaps(fit: Fit, name: str, trusted: Fit) -> dict[str, np.ndarray]:
    """Return the gaps of a parameter's mean and sd to a trusted fit, and for a failed fit the measured mean and sd.

    Empty where the trusted fit does not show the parameter.
    """
    posterior = summaries_of(trusted, [name]).get(name, {"mean": None, "sd": None})
    if posterior["mean"] is None or posterior["sd"] is None or components_withheld(fit):
        return {}
    draws = fit.draws()[name]
    moments = {"mean": draws.mean(axis=(0, 1))}
    sd = np.where((posterior["sd"] > 0) & np.isfinite(posterior["sd"]), posterior["sd"], np.nan)
    gaps = {"error_sd": (moments["mean"] - posterior["mean"]) / sd}
    if fit.kind == "approximate":
        moments["sd"] = draws.std(axis=(0, 1))
        gaps["sd_ratio"] = moments["sd"] / sd
    if fit.is_shown:
        return gaps
    return gaps | {key: np.where(np.isfinite(gaps["error_sd"]), value, np.nan) for key, value in moments.items()}


def _evidence(fit: Fit) -> dict[str, float]:
    """Return log evidence and ELBO, each with its Monte Carlo error and its distance from the exact log evidence."""
    columns: dict[str, float] = {}
    for name, short, error in (("log_evidence", "evidence", "log_evidence_mcse"), ("elbo", "elbo", "elbo_se")):
        value, se = fit.fact(name), fit.fact(error)
        if value is None:
            continue
        columns |= {name: value, f"{short}_se": 0.0 if se is None else se}
        if fit.kind != "exact" and "exact" in fit:
            columns[f"{short}_gap"] = fit.tree["exact"].attrs["log_evidence"] - value
    return columns


def _loo(fit: Fit) -> dict[str, float]:
    try:
        scored = of_fit(fit)
    except NoScore:
        return {}
    return {"loo_score": scored.mean, "loo_se": scored.se, "loo_mcse": scored.mcse}
