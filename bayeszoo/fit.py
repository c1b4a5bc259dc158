"""``fit(model, data, method) -> DataTree``: the one door to every method."""

from __future__ import annotations

import importlib
import inspect
import secrets
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError, Interrupted
from bayeszoo.foundation.named import Options
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.progress import ProgressLine, Reporter
from bayeszoo.foundation.streams import stream
from bayeszoo.inference.engine.inner import require_room, with_inner
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Model, chosen_by_data, fields_of, number_of_parameters
from bayeszoo.model.capabilities import (
    CAPABILITIES,
    Collapsed,
    Gibbs,
    Observable,
    PointMasses,
    Variational,
    is_exact,
    rows_have_parameters,
)
from bayeszoo.model.incomplete import Incomplete
from bayeszoo.model.many_files.rows import METHODS as METHODS_OF_FILES
from bayeszoo.model.many_files.rows import FileRows
from bayeszoo.model.outer.limits import beyond_quadrature
from bayeszoo.model.parts.accumulated import Accumulated, rows_of
from bayeszoo.results.arviz_groups import extend_unless_stopped
from bayeszoo.results.assemble import assemble
from bayeszoo.results.caveats import warn
from bayeszoo.results.completed import fit_completed, number_of_tables
from bayeszoo.results.stored import Fit, dumps

if TYPE_CHECKING:
    import xarray as xr


class Method(NamedTuple):
    """Where a method lives, what a model must have for it, and what it gives."""

    where: str
    needs: str  # a capability, "Exact" or "Density"
    kind: str
    about: str


MOST_BY_NUTS = 1000
"""Parameters up to which NUTS is the usual method of a model whose rows have some of their own."""

METHODS: dict[str, Method] = {
    "exact": Method("exact:run", "Exact", "exact", "posterior and evidence in closed form, or by quadrature"),
    "enumerate": Method("enumeration:run", "Enumerable", "exact", "sum over all assignments of few rows"),
    "mle": Method("mode:run_mle", "Density", "point estimate", "maximum of the likelihood"),
    "map": Method("mode:run_map", "Density", "point estimate", "mode of the posterior, constrained space"),
    "mean": Method("exact:run_mean", "Mean", "point estimate", "exact posterior mean, plugged in"),
    "em": Method("em:run", "EM", "point estimate", "expectation-maximization, for either mode"),
    "vb": Method("vb:run", "Variational", "approximate", "variational Bayes by coordinate ascent, with its ELBO"),
    "online_vb": Method("online_vb:run", "Stochastic", "approximate", "variational Bayes by minibatches of rows"),
    "laplace": Method("mode:laplace", "Density", "approximate", "Gaussian at the mode, unconstrained space"),
    "advi": Method("advi:mean_field", "Density", "approximate", "best independent Gaussians, unconstrained space"),
    "fullrank_advi": Method("advi:full_rank", "Density", "approximate", "best Gaussian, unconstrained space"),
    "nuts": Method("nuts:run", "Density", "sampled", "No-U-Turn sampler"),
    "gibbs": Method("gibbs:run", "Gibbs", "sampled", "Gibbs sampler, parameters integrated out where they can be"),
    "smc": Method("smc:run", "Density", "sampled", "sequential Monte Carlo, with log evidence"),
}


def _has_mean(model: type[Model]) -> bool:
    """Say whether the posterior mean is known, and new rows have a distribution at it."""
    return is_exact(model) and issubclass(model, Observable) and not issubclass(model, PointMasses)


_NEEDS = {
    **CAPABILITIES,
    "Exact": is_exact,
    "Mean": _has_mean,
    "Density": lambda model: not issubclass(model, PointMasses),
}
_LACKS = {
    "Exact": "exact answer",
    "Mean": "exact mean to plug in",
    "Density": "density, as its parameters have atoms",
}


def fit(
    model: Model | type[Model],
    data: Any = None,
    method: str = "nuts",
    *,
    seed: int | np.random.Generator | None = None,
    reporter: Reporter | None = None,
    progress: bool = False,
    groups: Sequence[str] | None = None,
    **options: Any,
) -> xr.DataTree:
    """Fit a model to data by one method.

    Parameters
    ----------
    model : Model or its class
        An instance, whose fields are the prior; of a class the weakly informative prior for these data is taken.
    data : Data, Accumulated, FileRows, Incomplete or anything that `read` takes, optional
        By default the model's own first real data set. What `accumulate` made of a file in chunks has no rows: the fit
        then has no leave-one-out scores. Nor has one to what `read_files` made of many files, by "em", "vb", "map" or
        "mle"; nor one to rows with empty cells, of `read_incomplete`, by "exact" or a sampler.
    method : str
        How to fit, one of `METHODS`: "exact", "enumerate", "mle", "map", "mean", "em", "vb", "online_vb",
        "laplace", "advi", "fullrank_advi", "nuts", "gibbs", "smc".
    seed : int or numpy.random.Generator, optional
        Source of all randomness. Without one a seed is drawn; either way the tree records it. The stream of random
        numbers is derived from the seed, the model with its fields, the data and the method: the same four give the
        same draws again, and fits that differ in one of them are independent.
    reporter : Reporter, optional
        Takes progress; silent by default.
    progress : bool
        Whether progress is written to stderr, as a terminal and a notebook show it; a reporter comes first.
    groups : sequence of str, optional
        The groups that `extend` adds: by default all that the fit can have, while they hold a few million numbers.
    **options
        Of the method: ``draws`` and ``chains`` of all that draw; ``tune`` and ``extend`` of NUTS and Gibbs,
        ``target_accept`` and ``sampler`` of NUTS, ``thin`` of Gibbs; ``threshold`` of SMC; ``restarts`` of EM and VB,
        ``estimate`` of EM. Of rows with empty cells also ``tables``, the number of tables that are completed, by
        default 400 for "exact" and 100 for samplers.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (chain, draw, ...), ``sample_stats`` (of a draw of an approximation ``log_weight``, the log
        of joint density over approximation), ``observed_data``, ``constant_data``, ``optimization`` and, where the
        model has closed forms, ``exact``; provenance and the gate in the attributes.
        ``tree.attrs["status"]`` is ``"ok"``, ``"caution"``, ``"failed"`` or ``"interrupted"``.

    Warns
    -----
    Caution
        When the numbers are shown with a warning.

    Raises
    ------
    InputError
        When the data, an option or the method does not suit the model; nothing was compiled.
    NumericalError
        When there is no finite answer.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> tree = bz.fit(bz.find("beta_bernoulli")(a=1, b=1), method="exact", seed=1)
    >>> float(tree["exact"]["theta"].sel(statistic="mean").round(4))
    0.5097
    """
    reporter = reporter or (ProgressLine() if progress else Reporter())
    tree = fit_sharing({}, model, data, method, seed, reporter, groups, options)
    warn(Fit(tree))
    return tree


@signals.saving()
def fit_sharing(
    shared: dict[Hashable, Any],
    model: Model | type[Model],
    data: Any,
    method: str,
    seed: int | np.random.Generator | None,
    reporter: Reporter,
    groups: Sequence[str] | None,
    options: Options,
) -> xr.DataTree:
    """Fit as `fit` does, without a warning; what other methods need too is taken from ``shared``, or added to it."""
    kind = model if isinstance(model, type) else type(model)
    if not issubclass(kind, Model):
        raise InputError(
            f"fit needs a model, got {kind.__name__}", "not_a_model", hint="write bz.find(name), or bz.find(name)(...)"
        )
    if isinstance(data, Incomplete):
        if groups:  # which are of rows
            rows_of(data)
        return _fit_completed(model, data, method, seed, reporter, options)
    run, effective = _function(kind, method), options_of(kind, method, options)
    seed = as_seed(seed)
    model, checked = _with_prior(model, data)
    check_method(kind, method, isinstance(checked, FileRows))
    which = checked.stream if isinstance(checked, FileRows) else checked.digest
    streams = partial(stream, seed, model.name, fields_of(model), which)
    problem = Problem(model, checked, streams(method), reporter, streams, shared)
    with closing(problem.reporter):
        require_room(problem, effective)
        outcome = run(problem, **effective)
        how = {"method": method, "kind": METHODS[method].kind, "seed": seed}
        tree = _assembled(problem, outcome, how, effective)
        if tree.attrs["status"] != "interrupted":
            problem.reporter.phase("log likelihood and replicates (groups of ArviZ)")
            extend_unless_stopped(tree, groups)
        return tree


def _fit_completed(
    model: Model | type[Model],
    data: Incomplete,
    method: str,
    seed: int | np.random.Generator | None,
    reporter: Reporter,
    options: Options,
) -> xr.DataTree:
    """Fit tables whose empty cells are drawn, and pool the fits."""
    seed, of_tables = as_seed(seed), {name: value for name, value in options.items() if name != "tables"}
    check_method(model if isinstance(model, type) else type(model), method)
    tables = number_of_tables(options.get("tables"), METHODS[method].kind)
    model, checked = _with_prior(model, data)
    assert isinstance(checked, Incomplete)

    def fit_table(table: Data) -> xr.DataTree:
        return uninterrupted(fit_sharing({}, model, table, method, seed, Reporter(), (), of_tables)).tree

    rng = stream(seed, model.name, fields_of(model), checked.digest, "imputation")
    with closing(reporter):
        tree = fit_completed(model, checked, fit_table, tables, rng, reporter)
    tree.attrs["options"] = dumps({**options_of(type(model), method, of_tables), "tables": tables})
    return tree


def _assembled(problem: Problem, outcome: Outcome, how: Mapping[str, Any], options: Options) -> xr.DataTree:
    """Check and assemble a fit; after Ctrl-C, before or meanwhile, what there is of it at once."""

    def whole() -> xr.DataTree:
        with_all = with_inner(problem, outcome, how["kind"])
        problem.reporter.phase("checking the fit")
        return assemble(problem, with_all, how, options)

    tree = None if outcome.interrupted else signals.unless_stopped(whole)
    if tree is not None:
        return tree
    problem.reporter.phase("keeping what was drawn")
    return assemble(problem, replace(outcome, interrupted=True), how, options)


def uninterrupted(tree: xr.DataTree) -> Fit:
    """Return the view of a fit; raise `Interrupted` where it was stopped, as what would build on it is stopped too."""
    if tree.attrs["status"] == "interrupted":
        raise Interrupted(f"stopped during the fit of {tree.attrs['model']}; nothing was kept")
    return Fit(tree)


def as_data(model: Model, data: object) -> Data | Accumulated:
    """Return the data read and checked, or the statistics, once they are found to be those of this model."""
    if isinstance(data, Accumulated):
        data.require(model)
        return data
    return read(model, data)


def _with_prior(model: Model | type[Model], data: object) -> tuple[Model, Data | Accumulated]:
    """Return the model and its data; of a class the model with the weakly informative prior, which a note says."""
    if isinstance(model, Model):
        return model, as_data(model, data)
    if isinstance(data, FileRows | Incomplete):
        weak = model.weak_with(data.sample, {})
        data.require(weak)
        notes = (f"priors are scaled to {data.which}",) if chosen_by_data(weak, ()) else ()
        return weak, replace(data, notes=(*data.notes, *notes))
    if isinstance(data, Accumulated):
        raise InputError(
            "weakly informative priors need rows, not accumulated statistics",
            "needs_rows",
            hint="pass the model that they were accumulated for",
        )
    rows = read(model, data)
    weak = model.weak_with(rows, {})
    notes = ("priors are scaled to the data",) if chosen_by_data(weak, ()) else ()
    return weak, replace(rows, notes=(*rows.notes, *notes))


def methods_for(model: type[Model]) -> list[str]:
    """Name the methods that a model class can be fitted with."""
    return [name for name, m in METHODS.items() if _NEEDS[m.needs](model)]


def default_method(model: type[Model]) -> str:
    """Return the usual method of a model: NUTS, unless it declares another; else the first that applies to it."""
    methods = methods_for(model)
    return model.usual_method if model.usual_method in methods else methods[0]


def usual_method(model: Model, data: Data | Accumulated) -> tuple[str, str]:
    """Return the method where none is named, and where it is not NUTS in a line why not, and which takes longer.

    NUTS takes hours where each row has parameters of its own, as the proportions of a document, and there are many;
    where exact answers are usual, it takes data that they do not.
    """
    usual = default_method(type(model))
    if isinstance(data, Incomplete) and "exact" in methods_for(type(model)):
        usual = "nuts" if beyond_quadrature(model, data.sample) else "exact"
        return usual, f"many completed tables are fitted: by {usual}"
    may_sample = usual == "exact" and "nuts" in methods_for(type(model))
    if may_sample and isinstance(data, Data) and (why := beyond_quadrature(model, data)):
        return "nuts", f"{why}: sampled by nuts"
    if not (isinstance(model, Variational) and rows_have_parameters(model) and isinstance(data, Data)):
        return usual, ""
    if (count := number_of_parameters(model, data)) <= MOST_BY_NUTS:
        return "nuts", ""
    better = (
        "--method gibbs samples the posterior, in minutes" if isinstance(model, Collapsed) else "--method nuts samples"
    )
    return "vb", f"NUTS would take hours of {count:,} parameters: fitted by variational Bayes (vb); {better}"


def check_method(model: type[Model], method: object, in_files: bool = False) -> None:
    """Raise `InputError` unless ``model`` can be fitted with ``method``, with ``in_files`` to rows in files."""
    if not isinstance(method, str):
        hint = "features and outcome are given as a pair: bz.fit(model, (X, y))"
        raise InputError(f"method must be a name, got {type(method).__name__}", "wrong_type", hint=hint)
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}", "unknown_method", hint=f"use one of {', '.join(METHODS)}")
    if method not in methods_for(model):
        needs = METHODS[method].needs
        lacking = _LACKS.get(needs, f"base {needs}")
        raise InputError(
            f"{model.name} cannot be fitted with {method!r}: it has no {lacking}",
            "method_unavailable",
            hint=f"methods: {', '.join(methods_for(model))}",
        )
    if in_files and method not in METHODS_OF_FILES:
        raise InputError(
            f"{method} needs all rows at once", "needs_rows", hint="em, vb, map and mle take rows in files"
        )


def _function(model: type[Model], method: str) -> Callable[..., Outcome]:
    check_method(model, method)
    module, function = METHODS[method].where.split(":")
    run: Callable[..., Outcome] = getattr(importlib.import_module(f"bayeszoo.inference.methods.{module}"), function)
    return run


def options_of(model: type[Model], method: str, options: Mapping[str, object]) -> dict[str, Any]:
    """Check the options given to a method, and return them with the defaults of the others."""
    accepted = defaults_of(model, method)
    if misplaced := sorted(options.keys() & model.inputs.options):
        raise InputError(
            f"{misplaced[0]} is an option of reading", "option_needs_data", hint="give it to bz.read(model, data, ...)"
        )
    for name, value in options.items():
        if name not in accepted:
            hint = f"it takes {', '.join(accepted)}" if accepted else "it takes none"
            raise InputError(f"method {method!r} has no option {name!r}", "unknown_option", hint=hint)
        _check_option(name, value, accepted[name])
    return {**accepted, **options}


def _defaults(run: Callable[..., Outcome]) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(run).parameters.items() if p.kind is p.KEYWORD_ONLY}


def defaults_of(model: type[Model], method: str) -> dict[str, Any]:
    """Return the options of a method, with their defaults."""
    of_model = model.gibbs_options if method == "gibbs" and issubclass(model, Gibbs) else {}
    return {**_defaults(_function(model, method)), **of_model}


def _check_option(name: str, value: object, default: object) -> None:
    if type(default) is bool and not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, got {value!r}", "wrong_type")
    if type(default) is int:
        least = 0 if name == "tune" else 1
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name} must be a whole number >= {least}, got {value!r}", "wrong_type")
    if type(default) is float and not (isinstance(value, int | float) and 0 < value < 1):
        raise InputError(f"{name} must be between 0 and 1, got {value!r}", "out_of_range")


def as_seed(seed: int | np.random.Generator | None) -> int:
    """Return a seed: the one given, one that a generator gives, or without either one that is drawn."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**31 - 1))
    if seed is None:
        return secrets.randbelow(2**31 - 1)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InputError(f"seed must be a whole number from 0 to 2**63 - 1, got {seed!r}", "wrong_type")
    return int(seed)
