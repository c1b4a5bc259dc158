"""Every fit as an ArviZ `DataTree`, the common format of the library, with its provenance in the attributes."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.data.read import Data
from bayeszoo.distributions.averages.grid_moments import Moments
from bayeszoo.distributions.posterior import QUANTILES, Marginal
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import (
    MIXING,
    Check,
    arrays_in,
    as_dict,
    check_agreement,
    check_draws,
    check_finite,
    verdict,
)
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.inference.labels.symmetry import Labelled, labelled
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.capabilities import ClosedForm, PointMasses, Symmetric, exchangeable_axis, is_exact, is_integrated
from bayeszoo.model.find import own_file
from bayeszoo.model.many_files.rows import FileRows
from bayeszoo.model.parts.accumulated import Accumulated, arrays_of, described, digest_of
from bayeszoo.results.files import FORMAT
from bayeszoo.results.gaps import STATISTICS
from bayeszoo.results.measured import live_of_draws, measure
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.summary import MOST_LISTED, elements
from bayeszoo.results.support import REFERENCE_DRAWS

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

_PACKAGES = ("bayeszoo", "arviz", "arviz-stats", "numba", "numpy", "nutpie", "pymc", "pytensor", "scipy", "xarray")


def assemble(problem: Problem, outcome: Outcome, how: Mapping[str, Any], options: Mapping[str, Any]) -> xr.DataTree:
    """Put the outcome of a method into the groups and attributes of a tree."""
    if outcome.interrupted:
        return _as_drawn(problem, outcome, how, options)
    model, kind = problem.model, how["kind"]
    dims, coords = _axes(problem, outcome)
    outcome, of_labels = _labelled(problem, outcome, kind, dims, coords)
    marginals, exact = _closed_form(problem, dims, coords)
    outcome, derived = _derived(model, outcome, dims, coords)
    tree = _tree({**_groups(problem, outcome, dims, coords), **of_labels, **exact, **derived})
    if kind == "approximate":
        outcome = _measured(problem, outcome, tree, dims, coords)
    checks = [*outcome.checks, *_further_checks(problem, outcome, tree, kind, marginals)]
    outcome = replace(outcome, checks=checks)
    if kind == "sampled" and verdict(checks) != "failed":
        outcome = replace(outcome, facts={**outcome.facts, **live_of_draws(model, outcome.draws)})
    tree.attrs.update(_provenance(problem, outcome, how, options))
    Fit.assembled(tree, model=model, observed=problem.observed, stats=problem.stats, posterior=marginals)
    return tree


def _axes(problem: Problem, outcome: Outcome) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    """Return the axes of each quantity by name, and the labels of each axis."""
    return {**outcome.dims, **problem.model.dims}, {**outcome.coords, **problem.model.coords(problem.like)}


def _labelled(
    problem: Problem, outcome: Outcome, kind: str, dims: Mapping[str, tuple[str, ...]], coords: Mapping[str, Any]
) -> tuple[Outcome, dict[str, xr.Dataset]]:
    """Return the outcome with its components in one order, and the groups that tell how they were ordered."""
    model = problem.model
    labels = labelled(model, outcome.draws, problem.observed, kind)
    if labels is None or not isinstance(model, Symmetric):
        return outcome, {}
    axes = {**dims, **dict.fromkeys(("permutation", "sign"), (str(model.exchangeable_axis()),))}
    of_labels = _of_labels(model, outcome.draws, problem.observed, labels)
    groups = {name: as_dataset(values, ("chain", "draw"), axes, coords) for name, values in of_labels.items()}
    return _relabelled(outcome, labels), groups


def _closed_form(
    problem: Problem, dims: Mapping[str, tuple[str, ...]], coords: Mapping[str, object]
) -> tuple[dict[str, Marginal] | None, dict[str, xr.Dataset]]:
    """Return the exact posterior, by formula or quadrature, and the group of its moments; nothing if it has none."""
    model = problem.model
    marginals: dict[str, Marginal] | None = None
    with suppress(NumericalError):  # for some data the posterior or the evidence does not exist
        if isinstance(model, ClosedForm):
            marginals = {**problem.posterior, **model.derived_marginals(problem.stats)}
            exact = _exact(marginals, dims, coords)
            return marginals, {"exact": exact.assign_attrs(_evidence(model, problem.stats))}
        if is_integrated(type(model)):
            marginals = dict(problem.posterior)
            exact = _exact(marginals, dims, coords, problem.integrated.derived)
            return marginals, {"exact": exact.assign_attrs({"log_evidence": problem.integrated.log_evidence})}
    return marginals, {}


def _derived(
    model: Model, outcome: Outcome, dims: Mapping[str, tuple[str, ...]], coords: Mapping[str, object]
) -> tuple[Outcome, dict[str, xr.Dataset]]:
    """Return the group of the derived quantities; where they do not exist at a draw, a fact says why."""
    try:
        return outcome, {"derived": as_dataset(model.derived(outcome.draws), ("chain", "draw"), dims, coords)}
    except NumericalError as error:
        return replace(outcome, facts={**outcome.facts, "derived_withheld": str(error)}), {}


def _further_checks(
    problem: Problem, outcome: Outcome, tree: xr.DataTree, kind: str, marginals: Mapping[str, Marginal] | None
) -> list[Check]:
    """Check what the method does not: hazards that a model knows, derived quantities, agreement with the exact answer.

    Hazards are features of the posterior that chains may miss.
    """
    model = problem.model
    hazards = model.hazards(problem.stats) if kind in ("sampled", "approximate") else []
    label_free = _of_no_label(model, marginals)
    agreement = check_agreement(outcome.draws, label_free) if label_free and kind == "sampled" else []
    return [*hazards, *_checks_of_derived(tree, kind, _atoms_of(model)), *agreement]


def _of_no_label(model: Model, marginals: Mapping[str, Marginal] | None) -> dict[str, Marginal]:
    """Return the exact distributions of parameters that do not depend on the order or signs of components."""
    axis = exchangeable_axis(model)
    return {name: law for name, law in (marginals or {}).items() if axis not in model.dims.get(name, ())}


def _measured(
    problem: Problem, outcome: Outcome, tree: xr.DataTree, dims: Mapping[str, Any], coords: Mapping[str, Any]
) -> Outcome:
    """Measure an approximation against the posterior; add the numbers of the posterior to the tree, and the checks."""
    exact = {str(name): v.to_numpy() for name, v in tree["exact"].data_vars.items()} if "exact" in tree.children else {}
    groups = {name: tree[name].to_dataset() for name in ("posterior", "derived", "invariants") if name in tree.children}
    printed = {name: _listed(group, exact) for name, group in groups.items()}
    variables = {name: v for group in printed.values() for name, v in group.items()}
    draws = {
        name: {k: v.transpose("chain", "draw", ...).to_numpy() for k, v in printed.get(name, {}).items()}
        for name in ("posterior", "derived", "invariants")
    }
    measured = measure(problem, draws, exact, lambda name: elements(variables[name]), outcome.facts)
    if measured.statistics:
        statistics = as_dataset(measured.statistics, ("statistic",), dims, coords)
        tree["reference"] = xr.DataTree(statistics.assign_coords(statistic=list(STATISTICS)))
    if measured.draws:
        tree[REFERENCE_DRAWS] = xr.DataTree(as_dataset(measured.draws, ("chain", "draw"), dims, coords))
    return replace(outcome, checks=[*outcome.checks, *measured.checks], facts={**outcome.facts, **measured.facts})


def _listed(group: xr.Dataset, exact: Mapping[str, object]) -> dict[str, xr.DataArray]:
    """Return the quantities whose entries are listed one by one."""
    return {str(k): v for k, v in group.data_vars.items() if k in exact or v[0, 0].size <= MOST_LISTED}


def _as_drawn(
    problem: Problem, outcome: Outcome, how: Mapping[str, object], options: Mapping[str, object]
) -> xr.DataTree:
    """Return the draws of an interrupted run at once, without checks, derived quantities or relabelling."""
    tree = _tree(_groups(problem, outcome, *_axes(problem, outcome)))
    tree.attrs.update(_provenance(problem, replace(outcome, checks=[]), how, options))
    Fit.assembled(tree, model=problem.model, observed=problem.observed, stats=problem.stats)
    return tree


def _groups(
    problem: Problem, outcome: Outcome, dims: Mapping[str, tuple[str, ...]], coords: Mapping[str, object]
) -> dict[str, xr.Dataset]:
    """Return the groups of a method's outcome, and those of the data."""
    return {
        "posterior": as_dataset(outcome.draws, ("chain", "draw"), dims, coords),
        "sample_stats": as_dataset(outcome.sample_stats, ("chain", "draw")),
        "optimization": as_dataset(outcome.optimization, ("iteration",)),
        **data_groups(problem.model, problem.observed),
    }


def _tree(groups: Mapping[str, xr.Dataset]) -> xr.DataTree:
    """Return a tree of the groups that are not empty."""
    return xr.DataTree.from_dict({name: group for name, group in groups.items() if group.variables})


def _of_labels(model: Symmetric, draws: Mapping[str, np.ndarray], data: Any, labels: Labelled) -> dict[str, Any]:
    """Return the groups of a model with exchangeable labels: original draws, permutations and invariants."""
    return {
        "unaligned": draws,
        "labels": {"permutation": labels.permutations, **({} if labels.signs is None else {"sign": labels.signs})},
        # the values of a sample must not be mistaken for those of all rows in the files
        "invariants": {} if isinstance(data, FileRows) else model.invariants(labels.draws, data),
    }


def _relabelled(outcome: Outcome, labels: Labelled) -> Outcome:
    facts = {**outcome.facts, **({} if labels.signs is None else {"labelled": "factors"})}
    if labels.stability is not None:
        facts["label_stability"] = labels.stability.tolist()
    if labels.stability is not None or labels.withheld:
        facts["components_withheld"] = labels.withheld
    return replace(outcome, draws=labels.draws, facts=facts, checks=[*outcome.checks, *labels.checks])


def _atoms_of(model: Model) -> tuple[str, ...]:
    return model.atoms if isinstance(model, PointMasses) else ()


def _checks_of_derived(tree: xr.DataTree, kind: str, discrete: Sequence[str]) -> list[Check]:
    """Check that draws of derived quantities have mixed, and are finite.

    ``discrete`` quantities are judged with the parameter that they follow from.
    """
    if "derived" not in tree.children:
        return []
    derived = {name: values for name, values in arrays_in(tree, "derived").items() if name not in discrete}
    is_sampled = kind == "sampled"
    checks = (
        [check for check in check_draws(derived) if check.name in MIXING] if is_sampled else [check_finite(derived)]
    )
    return [replace(check, name=f"derived: {check.name}") for check in checks]


def as_dataset(
    values: Mapping[str, np.ndarray],
    leading: tuple[str, ...],
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Return arrays as a dataset; axes after the leading ones are named by ``dims``, and have labels in ``coords``."""
    dims = dims or {}
    arrays = {}
    for name, value in values.items():
        axes = dims.get(name) or tuple(f"{name}_dim_{i}" for i in range(np.ndim(value) - len(leading)))
        arrays[name] = xr.DataArray(value, dims=(*leading, *axes))
    used = {dim for array in arrays.values() for dim in array.dims}
    dataset = xr.Dataset(arrays, coords={name: list(labels) for name, labels in (coords or {}).items() if name in used})
    # labels of ten million rows would only take memory
    counted = [dim for dim in leading if dim in dataset.sizes and dim not in ("row", "entry")]
    return dataset.assign_coords({dim: np.arange(dataset.sizes[dim]) for dim in counted})


def data_groups(model: Model, data: Data | Accumulated) -> dict[str, xr.Dataset]:
    """Split the data into observed variables and constants; labels are coordinates of the constants.

    Rows that were not kept are replaced by their statistics.
    """
    if isinstance(data, Accumulated):
        return {"statistics": as_dataset(arrays_of(data.stats), ())}
    inputs = model.inputs
    outcome, labels = inputs.outcome(data), {name: data[name] for name in inputs.coords}
    observed = {name: values for name, values in data.items() if values is outcome}
    constants = {name: values for name, values in data.items() if values is not outcome and name not in labels}
    entries = {name: values for name, values in constants.items() if name in inputs.entries}
    of_rows = {name: values for name, values in constants.items() if name not in entries}
    constant = as_dataset(of_rows, ("row",), inputs.dims, labels).assign_coords(labels)
    constant = constant.merge(as_dataset(entries, ("entry",), inputs.dims))
    outcomes = as_dataset(observed, ("row",), inputs.dims, labels)
    if data.row_numbers is not None:
        outcomes = outcomes.assign_coords(row=data.row_numbers)
    return {"observed_data": outcomes, "constant_data": constant}


def _exact(
    marginals: Mapping[str, Marginal],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, object],
    moments: Mapping[str, Moments] | None = None,
) -> xr.Dataset:
    """Return exact mean, sd and quantiles along ``statistic``; quantities with only ``moments`` have NaN quantiles."""
    arrays = {}
    for name, (_, _, mean, sd, _) in (moments or {}).items():
        arrays[name] = np.stack([mean, sd, *(np.full(np.shape(mean), np.nan) for _ in QUANTILES)])
    for name, marginal in marginals.items():
        values = [marginal.mean(), marginal.std(), *(_quantile(marginal, q) for q in QUANTILES.values())]
        arrays[name] = np.array(values, dtype=np.float64)
    return as_dataset(arrays, ("statistic",), dims, coords).assign_coords(statistic=["mean", "sd", *QUANTILES])


def _evidence(model: ClosedForm[Any], stats: Any) -> dict[str, float]:
    """Return the log evidence of the ordered data, and for a table of counts also that of the counts."""
    evidence = {"log_evidence": float(model.log_evidence(stats))}
    if stats.log_coefficient:  # 0 for single observations, which have one order
        evidence["log_evidence_counts"] = float(model.log_evidence_counts(stats))
    return evidence


def _quantile(marginal: Marginal, q: float) -> np.ndarray:
    """Return a quantile, with 0 for the smallest normal double, where SciPy stops."""
    quantile = np.asarray(marginal.ppf(q))
    return np.where(np.abs(quantile) <= TINY, 0.0, quantile)


def _provenance(
    problem: Problem, outcome: Outcome, how: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, str | int | float]:
    data = problem.observed
    plain: dict[str, str | int | float] = {
        "bayeszoo_format": FORMAT,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": problem.model.name,
        **how,
        "sampler": outcome.sampler,
        "status": "interrupted" if outcome.interrupted else verdict(outcome.checks),
        "data_digest": data.digest,
        "data_source": data.source,
        "data_rows": data.rows,
        "data_from": "rows" if problem.has_rows else "statistics",
        "declared_from": problem.declared_from,
    }
    remarks = problem.model.remarks(problem.stats, problem.like)
    of_draws = problem.model.remarks_of_draws(outcome.draws)
    nested = {
        "fields": fields_of(problem.model),
        "options": dict(options),
        "versions": _versions(),
        "seconds": {name: round(value, 4) for name, value in problem.clock.seconds.items()},
        "gate": as_dict(outcome.checks),
        "facts": dict(outcome.facts),
        "notes": list(dict.fromkeys([*data.notes, *remarks, *of_draws, *_notes_on_edges(outcome, problem.model)])),
        "columns": dict(data.columns),
        "reading": dict(data.reading),
    }
    if (file := own_file(type(problem.model))) is not None:
        nested["model_file"] = file._asdict()
    if isinstance(data, Accumulated):
        plain["statistics_digest"] = digest_of(data.stats)
        nested["data_arrays"] = described(data.like, problem.model.inputs.coords)
    else:
        nested["data_names"] = list(data)
    return {**plain, **{name: dumps(value) for name, value in nested.items()}}


@cache
def _versions() -> Mapping[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _notes_on_edges(outcome: Outcome, model: Model) -> list[str]:
    """Return a note on a mode at the edge of the parameter space."""
    if not (names := outcome.facts.get("at_edge", [])):
        return []
    ends = [f"{name} = {round(float(outcome.draws[name].item()), 9):g}" for name in names]
    says = "exact or nuts says" if is_exact(type(model)) else "nuts says"
    return [f"{', '.join(ends)} is a mode on the edge, and not certain: {says} how far from the edge it may be"]
