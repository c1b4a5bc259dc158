"""Several fits of the same data side by side, in one table."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.leave_out import NoScore, of_fit
from bayeszoo.errors import InputError, Interrupted, NumericalError
from bayeszoo.fit import as_data, check_method, fit_sharing, methods_for
from bayeszoo.foundation import signals
from bayeszoo.foundation.progress import Reporter
from bayeszoo.model.base import Model
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
    summarize,
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
"""Why there is no fit by a method that came after Ctrl-C."""


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
    """Put several fits of the same data side by side.

    Parameters
    ----------
    fits : iterable of DataTree, or Model
        What `fit` returned; or a model, which is then fitted to ``data`` by each of ``methods``.
    data : Data or anything that `read` takes, optional
        With a model only.
    methods : sequence of str, optional
        With a model only; by default every method that it has, but for ``em`` where ``map`` is it.
    seed : int, optional
        With a model only.

    Returns
    -------
    pandas.DataFrame
        One row a fit and scalar parameter. ``fit`` names the fit: its method, with the model where these differ and its
        fields where the models alone are not enough, and a number where several are named alike. ``mcse_mean`` and so
        on are the Monte Carlo errors of ``mean``, ``sd``, ``q025`` and ``q975``. ``p_positive`` is the
        posterior probability that the parameter is > 0, ``p_positive_mcse`` its Monte Carlo error (NaN where all draws
        have one sign, which says only that it is near 0 or 1). ``error_mcse`` is the error of the mean against the
        closed form in Monte Carlo standard errors, ``error_sd`` in posterior standard deviations, and ``sd_ratio`` the
        sd over that of the posterior. Where there is no closed form, approximations are measured against their
        reference draws, and point estimates against the exact or sampled fit of the same model that is ok;
        ``measured_against`` names which. Of one that failed its gate, mean and sd are shown where they are so
        measured. ``evidence_gap`` and
        ``elbo_gap`` are the exact log evidence less the estimate and less the bound; ``evidence_se`` and ``elbo_se``
        their Monte Carlo errors (0 where there is none). ``loo_score`` is the mean leave-one-out log predictive density
        of one observation in nats: of the point estimate plugged in for ``map`` and ``mle``, else integrated over the
        posterior; ``loo_se`` is its standard error over observations and ``loo_mcse`` its Monte Carlo error. What does
        not apply or is withheld is NaN.

    Raises
    ------
    InputError
        When the fits are not of the same data.
    """
    import pandas as pd

    if isinstance(fits, Model):
        methods = [methods] if isinstance(methods, str) else methods
        default = [name for name in methods_for(type(fits)) if name != "em"]
        fits = fit_each(fits, data, default if methods is None else methods, seed)
    fits = list(fits)
    trees = [each for each in fits if not isinstance(each, Withheld)]
    require_same_data([(each.attrs["data_digest"], each.attrs["data_source"]) for each in trees], "fits")
    same = iter(matched(trees))
    fits = [each if isinstance(each, Withheld) else next(same) for each in fits]
    named = dict(zip(names_of(fits), fits, strict=True))
    require_same_density({name: Fit(each).model for name, each in named.items() if not isinstance(each, Withheld)})
    rows = [{"fit": label, **row} for label, each in named.items() for row in _rows(each, _trusted(each, named))]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _trusted(fitted: xr.DataTree | Withheld, named: Mapping[str, xr.DataTree | Withheld]) -> tuple[str, Any] | None:
    """Return name and tree of the fit that an approximation or a point estimate is measured against.

    It is ok, of the same model, and has draws; an exact one is taken first.
    """
    if isinstance(fitted, Withheld) or fitted.attrs["kind"] not in ("approximate", "point estimate"):
        return None
    others = [
        (name, tree)
        for name, tree in named.items()
        if not isinstance(tree, Withheld)
        and tree.attrs["status"] == "ok"
        and tree.attrs["kind"] in ("exact", "sampled")
        and model_label(tree) == model_label(fitted)
    ]
    return min(others, key=lambda pair: pair[1].attrs["kind"], default=None)  # "exact" comes before "sampled"


def usual_methods(model: type[Model]) -> list[str]:
    """Return the methods to compare where none are named: of samplers one, which is Gibbs where it is collapsed."""
    sampler = "gibbs" if issubclass(model, Collapsed) else "nuts"
    chosen = ("exact", "map", "vb", "laplace", "advi", sampler)
    return [method for method in methods_for(model) if method in chosen]


def named_methods(model: type[Model], names: str | None) -> list[str]:
    """Return the methods that a list with commas names, all for ``"all"``, the usual ones for None, once checked."""
    if names is None:
        return usual_methods(model)
    if names == "all":
        return methods_for(model)
    chosen = [method.strip() for method in names.split(",")]
    for method in chosen:
        check_method(model, method)
    return chosen


def fit_each(
    model: Model, data: object, methods: Sequence[str], seed: int | None = None, reporter: Reporter | None = None
) -> list[xr.DataTree | Withheld]:
    """Fit by each method in turn; one without a finite answer, or with too many rows, is withheld with its reason.

    Each fit is the one that `fit` gives; what several need, as the modes that they begin at, is computed once.
    """
    for method in methods:
        check_method(type(model), method)
    data = as_data(model, data)
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed  # one for all, so that one command gives all again
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
            warn(tree)
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
    """Say whether the last fit was stopped, and with it all later ones."""
    last = fits[-1] if fits else None
    return last is not None and (
        last.reason == STOPPED if isinstance(last, Withheld) else last.attrs["status"] == "interrupted"
    )


def require_same_data(sources: Iterable[tuple[str, str]], subjects: str) -> None:
    """Raise `InputError` unless all digests agree; ``sources`` are pairs of digest and source of the ``subjects``."""
    digests = dict(sources)
    if len(digests) > 1:
        named = ", ".join(f"{source} ({digest[:8]})" for digest, source in digests.items())
        raise InputError(
            f"the {subjects} are of different data: {named}",
            "not_comparable",
            hint=f"compare {subjects} of the same data",
        )


def require_same_density(models: Mapping[str, Model]) -> None:
    """Raise `InputError` where densities are of features and class together, and of the class given the features."""
    joint = [name for name, model in models.items() if isinstance(model, Classifies) and model.has_law_of_features()]
    if joint and (given := [name for name in models if name not in joint]):
        why = f"{joint[0]} scores features and class together, {given[0]} the class given the features"
        raise InputError(
            f"{why}: the scores are not comparable",
            "not_comparable",
            hint="bayeszoo.classify gives the classes of either",
        )
    of = {name: model.density_of for name, model in models.items() if isinstance(model, Classifies)}
    if len({*of.values()}) > 1:
        first, other = next(iter(of)), next(name for name in of if of[name] != next(iter(of.values())))
        why = f"{first} scores {of[first] or 'the features'}, {other} {of[other] or 'the features'}"
        hint = "bayeszoo classify --leave-one-out scores the classes of either"
        raise InputError(f"{why}: the scores are not comparable", "not_comparable", hint=hint)


def names_of(fits: Sequence[xr.DataTree | Withheld]) -> list[str]:
    """Name each fit by its method, by model and prior too where these differ, and numbered where that is not enough."""
    labels = {model_label(each): each.attrs["model"] for each in fits if not isinstance(each, Withheld)}
    models_suffice, plain = len(set(labels.values())) == len(labels), []
    for each in fits:
        if isinstance(each, Withheld) or len(labels) == 1:
            plain.append(each.method if isinstance(each, Withheld) else each.attrs["method"])
        else:
            plain.append(f"{each.attrs['method']} {each.attrs['model'] if models_suffice else model_label(each)}")
    return unique(plain)


def unique(names: Iterable[str]) -> list[str]:
    """Return the names, repeated ones with a number: ``a``, ``a (2)``, ``a (3)``."""
    numbered: dict[str, None] = {}
    for name in names:
        with_number = (f"{name} ({i})" for i in count(2))
        numbered[name if name not in numbered else next(each for each in with_number if each not in numbered)] = None
    return list(numbered)


def model_label(tree: xr.DataTree) -> str:
    """Name a fit's model with its fields."""
    return str(Fit(tree).model)


def _rows(fitted: xr.DataTree | Withheld, trusted: tuple[str, object] | None) -> list[dict[str, Any]]:
    if isinstance(fitted, Withheld):
        return [{"method": fitted.method, "status": f"withheld: {fitted.reason}"}]
    whole = {
        "model": model_label(fitted),
        "method": fitted.attrs["method"],
        "kind": fitted.attrs["kind"],
        "status": Fit(fitted).status,
        "seconds": sum(Fit(fitted).seconds.values()),
        **(_evidence(fitted) | _loo(fitted) if Fit(fitted).is_shown else {}),
    }
    return [
        {**whole, **row}
        for name, summary in summarize(fitted, listed(fitted)).items()
        for row in _elements(fitted, name, summary, trusted)
    ]


def _elements(
    tree: xr.DataTree, name: str, summary: Mapping[str, np.ndarray | None], trusted: tuple[str, Any] | None
) -> list[dict[str, Any]]:
    """Return one row for each scalar of a parameter."""
    columns = {key: summary[key] for key in (*_MOMENTS, *_MCSE)}
    measured = errors(tree, name, summary)
    gaps = _gaps(tree, name, trusted[1]) if trusted is not None and not measured else {}
    columns |= measured | gaps
    signs = probability_positive(tree, name)
    columns |= dict(zip(("p_positive", "p_positive_mcse"), signs, strict=True)) if signs else {}
    rows = []
    for index, label in elements(tree["posterior"].to_dataset()[name]):
        row: dict[str, Any] = {key: float(value[index]) for key, value in columns.items() if value is not None}
        if trusted is not None and gaps and np.isfinite(row["error_sd"]):
            row["measured_against"] = trusted[0]
        elif measured and "measured_against" in Fit(tree).facts:
            row["measured_against"] = Fit(tree).facts["measured_against"]
        rows.append({"parameter": label, **row})
    return rows


def _gaps(tree: xr.DataTree, name: str, trusted: xr.DataTree) -> dict[str, np.ndarray]:
    """Measure a parameter's mean and sd against a trusted fit; for a failed fit return only measured ones.

    Returns nothing where the trusted fit does not show that parameter.
    """
    posterior = summarize(trusted, [name]).get(name, {"mean": None, "sd": None})
    if posterior["mean"] is None or posterior["sd"] is None or components_withheld(tree):
        return {}
    draws = Fit(tree).draws()[name]
    moments = {"mean": draws.mean(axis=(0, 1))}
    sd = np.where((posterior["sd"] > 0) & np.isfinite(posterior["sd"]), posterior["sd"], np.nan)
    gaps = {"error_sd": (moments["mean"] - posterior["mean"]) / sd}
    if tree.attrs["kind"] == "approximate":
        moments["sd"] = draws.std(axis=(0, 1))
        gaps["sd_ratio"] = moments["sd"] / sd
    if Fit(tree).is_shown:
        return gaps
    return gaps | {key: np.where(np.isfinite(gaps["error_sd"]), value, np.nan) for key, value in moments.items()}


def _evidence(tree: xr.DataTree) -> dict[str, float]:
    """Return log evidence and ELBO, each with its own Monte Carlo error and its own distance from the exact one."""
    columns: dict[str, float] = {}
    for name, short, error in (("log_evidence", "evidence", "log_evidence_mcse"), ("elbo", "elbo", "elbo_se")):
        value, se = Fit(tree).fact(name), Fit(tree).fact(error)
        if value is None:
            continue
        columns |= {name: value, f"{short}_se": 0.0 if se is None else se}
        if tree.attrs["kind"] != "exact" and "exact" in tree.children:
            columns[f"{short}_gap"] = tree["exact"].attrs["log_evidence"] - value
    return columns


def _loo(tree: xr.DataTree) -> dict[str, float]:
    try:
        scored = of_fit(tree)
    except NoScore:
        return {}
    return {"loo_score": scored.mean, "loo_se": scored.se, "loo_mcse": scored.mcse}
