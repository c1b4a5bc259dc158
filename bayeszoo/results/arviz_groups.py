"""The groups of a fit's tree that ArviZ's functions need: log likelihood, prior, and replicated data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import lazy_loader
import numpy as np

from bayeszoo.distributions.bases import OfIndicators
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import EM, ClosedForm, Observable
from bayeszoo.model.density import log_density, prior
from bayeszoo.model.parts.accumulated import Accumulated
from bayeszoo.results.stored import Fit, dumps

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

GROUPS = ("log_likelihood", "posterior_predictive", "prior", "prior_predictive", "log_prior")
"""The groups in the order of computation: ``prior_predictive`` is drawn from ``prior``."""
MOST_UNASKED = 4_000_000
"""Most numbers in all groups that `fit` adds by default: 32 MB."""
BLOCK = 2**22
"""Rows times draws computed at once for a group, so that little memory is needed besides the group."""
PRIOR_DRAWS = 1000  # draws of ``prior`` and ``prior_predictive``, in one chain


class NoGroup(InputError):
    """The reason why a fit cannot have a group."""


def extend(tree: xr.DataTree, groups: Sequence[str] = GROUPS) -> xr.DataTree:
    """Add groups that ArviZ's functions need to a fit's tree, in place.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit, from `fit` or `load`.
    groups : sequence of str
        Names from: ``log_likelihood``, the log density of each row at each draw, in nats, with latent variables and
        parameters of single rows integrated out (of all observations of a row that stands for several);
        ``posterior_predictive`` and ``prior_predictive``, one data set for each draw; ``prior``, draws from the prior,
        in one chain; ``log_prior``, the log prior density of each draw, in nats, in the constrained space. Existing
        groups are left unchanged. Groups of rows take 8 bytes for each row and draw, 3.2 GB for 100,000 rows and 4,000
        draws; computing them takes little more memory.

    Returns
    -------
    xarray.DataTree
        The same tree. The draws depend only on the seed and the data of the fit.

    Raises
    ------
    InputError
        When the group does not exist; or the fit cannot have it, because its rows are not independent or were not kept,
        it is a point estimate, or its prior is improper.

    Examples
    --------
    >>> import arviz as az
    >>> import bayeszoo as bz
    >>> M = bz.find("gaussian_mean")
    >>> tree = bz.fit(M.weak(bz.example(M)), method="exact", seed=1, groups=[])
    >>> round(float(az.loo(bz.extend(tree, ["log_likelihood"])).elpd), 1) < 0
    True
    """
    if isinstance(groups, str) or not set(groups) <= set(GROUPS):
        unknown = groups if isinstance(groups, str) else next(name for name in groups if name not in GROUPS)
        raise InputError(
            f"there is no group {unknown!r} to add", "unknown_name", hint=f"give a list of {', '.join(GROUPS)}"
        )
    fit = Fit(tree)
    for name in GROUPS:
        if name in groups and name not in fit:
            tree[name] = xr.DataTree(_MAKERS[name](fit))
    return tree


def extend_unless_stopped(tree: xr.DataTree, groups: Sequence[str] | None) -> None:
    """Add groups in place, by default those that a fit can have while they are small; after Ctrl-C add no more."""
    add = partial(extend_while_small, tree) if groups is None else partial(extend, tree, groups)
    if signals.unless_stopped(add) is None:
        left_out = "groups are left out, as the run was stopped; bz.extend(tree) adds them"
        tree.attrs["notes"] = dumps([*Fit(tree).notes, left_out])


def extend_while_small(tree: xr.DataTree) -> xr.DataTree:
    """Add the groups that a fit can have, in place; a note names those beyond `MOST_UNASKED` and those that fail."""
    fit = Fit(tree)
    left_out, notes, room = [], [], MOST_UNASKED
    for name, numbers in _by_default(fit).items():
        if numbers > room:
            left_out.append(name)
            continue
        room -= numbers
        try:
            with suppress(NoGroup, NumericalError):
                extend(tree, [name])
        except Exception as error:  # an error in a user's `likelihood` must not lose the draws
            notes.append(f"{name} is left out: {fit.model.name} raised {type(error).__name__}: {error}")
    if left_out:
        too_large = f"left out, as they would hold more than {MOST_UNASKED} numbers: {', '.join(left_out)}"
        notes.append(f"{too_large}; bz.extend(tree, [...]) adds them")
    if notes:
        tree.attrs["notes"] = dumps([*fit.notes, *notes])
    return tree


def _by_default(fit: Fit) -> dict[str, int]:
    """Return the default groups, which take little time, and the number of entries in each.

    Other groups load PyMC, or go through the draws one by one; after a sampler this takes comparatively little time.
    """
    if isinstance(fit.observed, Accumulated) or not isinstance(fit.model, Observable) or fit.kind == "point estimate":
        return {}
    closed, draws, outcome = isinstance(fit.model, ClosedForm), fit.draws(), _outcome(fit)
    quick = {"prior": closed, "prior_predictive": closed, "log_prior": isinstance(fit.model, EM)}
    count = math.prod(next(iter(draws.values())).shape[:2])
    numbers = {
        "log_likelihood": count * len(outcome),
        "posterior_predictive": count * outcome.size,
        "prior": PRIOR_DRAWS * sum(math.prod(values.shape[2:]) for values in draws.values()),
        "prior_predictive": PRIOR_DRAWS * outcome.size,
        "log_prior": count,
    }
    return {name: numbers[name] for name in GROUPS if fit.kind == "sampled" or quick.get(name, True)}


def _outcome(fit: Fit) -> np.ndarray:
    return np.asarray(fit.model.inputs.outcome(fit.data))


def _observable(fit: Fit) -> Observable:
    """Return the model; refuse one without the distribution of each row given the parameters."""
    if not isinstance(fit.model, Observable):
        raise NoGroup(f"the rows of {fit.model.name} are not independent given the parameters", "dependent_rows")
    return fit.model


def _draws(fit: Fit) -> dict[str, np.ndarray]:
    if fit.kind == "point estimate":
        raise NoGroup("a point estimate has no posterior draws", "no_draws")
    draws = fit.draws()
    if not all(np.isfinite(values).all() for values in draws.values()):
        raise NoGroup("some draws are not finite", "not_finite")
    return draws


def _in_blocks(draws: Params, numbers: int, compute: Callable[[Params], np.ndarray]) -> np.ndarray:
    """Compute an array (chain, draw, ...) in blocks of draws; each draw has this many ``numbers``."""
    chains, count = np.shape(next(iter(draws.values())))[:2]
    length, values = max(1, BLOCK // max(1, numbers)), None
    for chain, first in itertools.product(range(chains), range(0, count, length)):
        block = slice(first, min(first + length, count))
        of_block = compute({name: array[chain, block] for name, array in draws.items()})
        values = np.empty((chains, count, *of_block.shape[1:]), of_block.dtype) if values is None else values
        values[chain, block] = of_block
    return cast(np.ndarray, values)


def _of_rows(fit: Fit, values: np.ndarray) -> xr.Dataset:
    """Return an array (chain, draw, row, ...) with the name and axes of the outcome in ``observed_data``."""
    observed = fit.tree["observed_data"].to_dataset()
    name, variable = next(iter(observed.data_vars.items()))
    dims = ("chain", "draw", *variable.dims)[: values.ndim]
    coords = {dim: np.arange(size) for dim, size in zip(dims, values.shape, strict=True) if dim in ("chain", "draw")}
    labels = {dim: observed[dim].to_numpy() for dim in dims if dim in observed.coords}
    return xr.Dataset({name: (dims, values)}, coords={**coords, **labels})


def _log_likelihood(fit: Fit) -> xr.Dataset:
    model, outcome = _observable(fit), _outcome(fit)

    def of_draws(params: Params) -> np.ndarray:
        return log_density(model.held_out(params, fit.data, np.arange(model.inputs.size(fit.data))), outcome)

    values = _in_blocks(_draws(fit), outcome.size, of_draws)
    return _of_rows(fit, values)


def _predictive(fit: Fit, group: str) -> xr.Dataset:
    """Replicate the data once for each draw of ``posterior`` or ``prior``."""
    model, outcome, rng = _observable(fit), _outcome(fit), stream_of_fit(fit.tree.attrs, 0, "group", group)
    if group == "prior_predictive":
        extend(fit.tree, ["prior"])
    draws = fit.draws("prior") if group == "prior_predictive" else _draws(fit)

    def of_draws(params: Params) -> np.ndarray:
        return replicates(model, params, fit.data, outcome, rng)

    return _of_rows(fit, _in_blocks(draws, outcome.size, of_draws))


def replicates(
    model: Observable, params: Params, data: Arrays, outcome: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw the outcome of each row once for each draw of the parameters, shape (draws, *outcome.shape)."""
    likelihood = model.likelihood(params, data)
    if isinstance(likelihood, OfIndicators):
        return likelihood.codes(likelihood.rvs(likelihood.mean().shape, rng))
    count = len(next(iter(params.values())))
    try:
        return np.asarray(likelihood.rvs(size=(count, *outcome.shape), random_state=rng))
    except ValueError as error:  # SciPy draws nothing if one distribution is undefined
        raise NoGroup(f"no data can be drawn at some draws of the parameters: {error}", "no_replicates") from error


def _prior(fit: Fit) -> xr.Dataset:
    drawn = prior_draws(fit.model, fit.data, PRIOR_DRAWS, stream_of_fit(fit.tree.attrs, 0, "group", "prior"))
    posterior = fit.tree["posterior"].to_dataset()
    if missing := [str(name) for name in posterior.data_vars if name not in drawn]:
        raise NoGroup(f"the prior of {missing[0]} is not drawn by itself", "no_prior_draws")
    variables = {name: (variable.dims, drawn[str(name)][None]) for name, variable in posterior.data_vars.items()}
    labels = {name: values for name, values in posterior.coords.items() if name not in ("chain", "draw")}
    return xr.Dataset(variables, coords={**labels, "chain": [0], "draw": np.arange(PRIOR_DRAWS)})


def prior_draws(model: Model, data: Arrays, draws: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw (draws, ...) from the prior, in closed form or by its declaration; refuse an improper prior."""
    try:
        with np.errstate(all="ignore"):  # an improper prior is refused below
            if isinstance(model, ClosedForm):
                drawn = prior(model, data).rvs(draws, rng)
            else:
                drawn = _declared(model, data, draws, rng)
    except (NotImplementedError, NumericalError) as error:
        raise NoGroup(f"there are no draws from an improper prior: {error}", "no_draws") from error
    if not all(np.isfinite(values).all() for values in drawn.values()):
        raise NoGroup("there are no draws from an improper prior", "no_draws")
    return drawn


def _declaration(model: Model, data: Arrays) -> Any:
    """Return the model in PyMC; raise `NoGroup` if there is none."""
    try:
        return model.declare(data)
    except InputError as error:
        if error.code != "no_density":
            raise
        raise NoGroup(error.message, error.code) from error


def _declared(model: Model, data: Arrays, draws: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    import pymc as pm

    declared = _declaration(model, data)
    variables = [*declared.free_RVs, *declared.deterministics]
    seed = int(rng.integers(2**31 - 1))
    values = pm.draw(variables, draws=draws, random_seed=seed, mode="FAST_COMPILE")  # nothing is compiled
    return {str(variable.name): np.asarray(value) for variable, value in zip(variables, values, strict=True)}


def _log_prior(fit: Fit) -> xr.Dataset:
    draws, model = _draws(fit), fit.model
    if isinstance(model, EM):
        values = np.asarray(model.log_prior(draws, fit.data))
    elif isinstance(model, ClosedForm):
        values = np.asarray(prior(model, fit.data).logpdf(draws))
    else:
        values = _declared_log_prior(fit)
    coords = {name: np.arange(size) for name, size in zip(("chain", "draw"), values.shape, strict=True)}
    return xr.Dataset({"log_prior": (("chain", "draw"), values)}, coords=coords)


def _declared_log_prior(fit: Fit) -> np.ndarray:
    """Return the declared log prior density of each draw, computed for a block of draws at once."""
    import pytensor
    import pytensor.tensor as pt
    from pytensor.graph import vectorize_graph

    try:
        from pymc.model.transform.conditioning import remove_value_transforms
    except ImportError:
        return _log_prior_by_pymc(fit)
    declared = remove_value_transforms(_declaration(fit.model, fit.data))
    values = {str(variable.name): declared.rvs_to_values[variable] for variable in declared.free_RVs}
    total = sum(term.sum() for term in declared.logp(vars=declared.free_RVs, sum=False))
    of_block = {v: pt.tensor(name, dtype=v.dtype, shape=(None, *v.type.shape)) for name, v in values.items()}
    with pytensor.config.change_flags(mode="FAST_COMPILE"):  # nothing is compiled
        compute = pytensor.function(list(of_block.values()), vectorize_graph(total, of_block))
    draws = {name: fit.draws()[name].astype(value.dtype) for name, value in values.items()}
    size = sum(array[0, 0].size for array in draws.values())
    return _in_blocks(draws, size, lambda params: np.asarray(compute(*params.values())))


def _log_prior_by_pymc(fit: Fit) -> np.ndarray:
    """Return the declared log prior density of each draw by PyMC, one draw at a time."""
    import pymc as pm

    options: Any = {"model": fit.model.declare(fit.data), "extend_inferencedata": False, "progressbar": False}
    terms = pm.stats.compute_log_prior(fit.tree, **options, compile_kwargs={"mode": "FAST_COMPILE"})
    return np.asarray(sum(term.sum([d for d in term.dims if d not in ("chain", "draw")]) for term in terms.values()))


_MAKERS: dict[str, Callable[[Fit], Any]] = {
    "log_likelihood": _log_likelihood,
    "posterior_predictive": partial(_predictive, group="posterior_predictive"),
    "prior": _prior,
    "prior_predictive": partial(_predictive, group="prior_predictive"),
    "log_prior": _log_prior,
}
