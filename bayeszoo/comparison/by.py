"""One fit for each group of rows, and contrasts between the groups."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.comparison.closed_contrasts import Mirrored, in_closed_form
from bayeszoo.comparison.compare import unique
from bayeszoo.comparison.contrast_columns import LOWEST, OTHERS, by_draws, columns_of, highest, of_points, pairs_of
from bayeszoo.comparison.hierarchy_contrasts import contrasts_within, estimates_within, is_of_groups
from bayeszoo.comparison.levels import contrasts_of_levels, estimates_of_levels, is_of_levels
from bayeszoo.data.by import named_in_errors, read_by
from bayeszoo.data.read import Data
from bayeszoo.data.table.table import shown
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.errors import Caution, InputError, Interrupted, NumericalError
from bayeszoo.fit import as_seed, fit
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import exchangeable_axis
from bayeszoo.model.incomplete import Incomplete, read_incomplete_by
from bayeszoo.results.attributes import parse
from bayeszoo.results.caveats import failures_of, warn
from bayeszoo.results.stored import FITS, Fit, dumps, fits_of
from bayeszoo.results.summary import elements, listed, summaries_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd, xr = lazy_loader.load("pandas"), lazy_loader.load("xarray")

MOST_ENTRIES = 100
"""Most entries of a quantity for which exact fits are compared in closed form; larger ones are compared by draws."""
MOST_GROUPS = 10
"""Most exact fits that are compared in closed form, each with the best of the others; more are compared by draws."""
MOST_NAMED = 5
"""Most groups without a fit that a warning names; the tree names all."""
_UNFITTED = "stopped before it was fitted"


def fit_by(
    model: Model,
    data: object = None,
    *,
    by: str,
    method: str = "nuts",
    seed: int | None = None,
    reporter: Reporter | None = None,
    reading: Mapping[str, object] | None = None,
    **options: object,
) -> xr.DataTree:
    """Fit a model to each group of rows separately, under one prior.

    Parameters
    ----------
    model : Model
        An instance: its fields are the prior of every group.
    data : anything that `read` takes, optional
        The table; the model's first example by default.
    by : str
        The column of the table that names the groups.
    method : str
        How to fit, as for `fit`.
    seed : int, optional
        Source of all randomness. The fits of different groups are always independent: a group with the same rows as
        an earlier one gets the next seed.
    reporter : Reporter, optional
        Takes progress; silent by default.
    reading : mapping of str to object, optional
        Options of `read`, such as ``{"positive": "yes"}``; with ``{"missing": "impute"}`` empty cells of features are
        drawn in each group by itself, as by `read_incomplete`.
    **options
        Of the method, as for `fit`.

    Returns
    -------
    xarray.DataTree
        ``posterior`` has the draws of all groups, for ArviZ, along a dimension named after the column; chains of
        different lengths are cut to the shortest. The fit of group A, which every other function takes, is
        ``tree["fits"]["A"]``; ``/`` in a name becomes ``_``. `predict`, `contrasts`, `report` and `save` take the
        whole tree. A group without an answer does not stop the others: ``tree.attrs["failures"]`` has, in JSON, the
        reason for each group without a fit.

    Warns
    -----
    Caution
        For each group without a fit, and for fits that failed their gate.

    Raises
    ------
    InputError
        When the column names fewer than two groups, and where `read` raises it.
    InputError, NumericalError
        When no group has a fit: the error of the first group.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> table = {"variant": ["A", "A", "B", "B", "B"], "bought": ["no", "yes", "yes", "yes", "no"]}
    >>> M = bz.find("beta_bernoulli")
    >>> tree = bz.fit_by(M(a=1, b=1), table, by="variant", method="exact", seed=1, reading={"positive": "yes"})
    >>> bz.contrasts(tree)[["group", "against", "p_greater"]].round(4).values.tolist()
    [['B', 'A', 0.6286]]
    """
    if misplaced := sorted(options.keys() & model.inputs.options):
        hint = f'give it as reading={{"{misplaced[0]}": ...}}'
        raise InputError(f"{misplaced[0]} is an option of reading", "option_needs_data", hint=hint)
    _, parts = parts_of(model, data, by, **(reading or {}))
    tree = fit_parts(model, parts, by, method, seed=seed, reporter=reporter, **options)
    for label, why in [*failures_by_group(tree).items()][:MOST_NAMED]:
        warnings.warn(f"group {shown(label)} is without a fit: {why}", Caution, stacklevel=2)
    return tree


def parts_of(
    model: Model | type[Model], data: object, by: str, **reading: Any
) -> tuple[Data | Incomplete, Mapping[str, Data | Incomplete]]:
    """Read a table and its rows by group, with ``missing="impute"`` those whose empty cells a fit draws."""
    if reading.get("missing") == "impute":
        return read_incomplete_by(model, data, by, **{k: value for k, value in reading.items() if k != "missing"})
    return read_by(model, data, by, **reading)


def fit_parts(
    model: Model,
    parts: Mapping[str, Data | Incomplete],
    by: str,
    method: str,
    *,
    seed: int | None = None,
    **options: Any,
) -> xr.DataTree:
    """Fit a model to each group of data already read, as `fit_by` does."""
    seed, trees, errors = as_seed(seed), dict[str, xr.DataTree](), dict[str, InputError | NumericalError]()
    is_drawn = any(isinstance(part, Incomplete) for part in parts.values())
    drawn = {"tables": options.pop("tables")} if "tables" in options and is_drawn else {}
    for label, group_seed in own_seeds(parts, seed).items():
        try:
            with named_in_errors(label), warnings.catch_warnings():
                warnings.simplefilter("ignore", Caution)  # it would not name its group
                of_cells = drawn if isinstance(parts[label], Incomplete) else {}
                tree = fit(model, parts[label], method, seed=group_seed, **options, **of_cells)
        except (Interrupted, KeyboardInterrupt):
            if not trees:
                raise
            signals.answer()
            break
        except (InputError, NumericalError) as error:
            errors[label] = error
            continue
        tree.attrs |= {"by": by, "group": label}
        trees[label] = tree
        warn(Fit(tree))
        if tree.attrs["status"] == "interrupted":
            break
    if not trees:
        raise next(iter(errors.values()))
    joint_tree = in_one_tree(trees, by, seed)
    if unfitted := [label for label in parts if label not in trees and label not in errors]:
        joint_tree.attrs["status"] = "interrupted"
        warnings.warn(f"stopped: {_listed(unfitted)} without a fit", Caution, stacklevel=2)
    why = {label: str(error).removeprefix(f"group {shown(label)}: ") for label, error in errors.items()}
    if failures := why | dict.fromkeys(unfitted, _UNFITTED):
        joint_tree.attrs["failures"] = dumps(failures)
    return joint_tree


def failures_by_group(tree: xr.DataTree) -> dict[str, str]:
    """Return the reason for each group without a fit."""
    failures = parse("failures", tree.attrs.get("failures", "{}"))
    return {str(label): str(why) for label, why in failures.items()} if isinstance(failures, dict) else {}


def _listed(labels: Sequence[str]) -> str:
    """Return the number of groups and the names of the first few, for a warning."""
    names = ", ".join(map(shown, labels[:MOST_NAMED])) + ", ..." * (len(labels) > MOST_NAMED)
    return f"{len(labels)} group{'s' * (len(labels) > 1)} ({names}) {'are' if len(labels) > 1 else 'is'}"


def own_seeds(parts: Mapping[str, Data | Incomplete], seed: int) -> dict[str, int]:
    """Return a seed for each part; equal parts get different seeds, as equal seeds would give them equal draws."""
    times_seen, seeds = Counter[str](), dict[str, int]()
    for label, part in parts.items():
        seeds[label] = seed + times_seen[part.digest]
        times_seen[part.digest] += 1
    return seeds


def in_one_tree(trees: Mapping[str, xr.DataTree], by: str, seed: int) -> xr.DataTree:
    """Put fits into one tree: every fit, and side by side the draws that have the same shape and labels in all."""
    posteriors = [tree["posterior"].to_dataset() for tree in trees.values()]
    if by in {name for posterior in posteriors for name in (*posterior.variables, *posterior.dims)}:
        raise InputError(f"{by!r} is a name in the model", "duplicate_name", hint="rename the column")
    names = [name for name in posteriors[0] if len({_axes_of(posterior, name) for posterior in posteriors}) == 1]
    labels = xr.DataArray(np.array(list(trees)), dims=by, name=by)
    shared = [posterior[names] for posterior in posteriors]
    joined = xr.concat(shared, labels, join="inner").transpose("chain", "draw", by, ...)
    tree = xr.DataTree.from_dict({"posterior": joined})
    common = ("bayeszoo_format", "model", "method", "kind")
    first = trees[next(iter(trees))].attrs
    tree.attrs = {**{name: first[name] for name in common}, "seed": seed, "by": by, "groups": dumps(list(trees))}
    if len({of_group.attrs["kind"] for of_group in trees.values()}) > 1:  # some are pooled over completed tables
        tree.attrs["kind"] = "sampled"
    nodes = unique(re.sub(r"^\.+$|/", "_", label) for label in trees)
    tree[FITS] = xr.DataTree(children=dict(zip(nodes, trees.values(), strict=True)))
    return tree


def _axes_of(draws: xr.Dataset, name: Hashable) -> Hashable:
    """Return the axes of a variable, with sizes and labels, without chain and draw; None where there is no variable."""
    if name not in draws:
        return None
    dims = [dim for dim in draws[name].dims if dim not in ("chain", "draw")]
    labels = {dim: tuple(draws[dim].to_numpy().tolist()) for dim in dims if dim in draws.coords}
    return tuple((dim, draws.sizes[dim], labels.get(dim)) for dim in dims)


def estimates(tree: xr.DataTree) -> pd.DataFrame:
    """Return the summary of each quantity that is shown in each group, one row for each pair."""
    if is_of_groups(tree):
        return estimates_within(Fit(tree))
    if is_of_levels(tree):
        return estimates_of_levels(Fit(tree))
    rows = dict[str, list[dict[str, Any]]]()
    for label, view in fits_of(tree).items():
        for name, summary in summaries_of(view, listed(view)).items():
            shown_columns = {key: values for key, values in summary.items() if key != "withheld" and values is not None}
            for index, quantity in (
                elements(view.tree["posterior"].to_dataset()[name]) if "mean" in shown_columns else ()
            ):
                row = {key: float(np.asarray(values)[index]) for key, values in shown_columns.items()}
                rows.setdefault(quantity, []).append({"quantity": quantity, "group": label, **row})
    return pd.DataFrame([row for rows_of_quantity in rows.values() for row in rows_of_quantity])


def contrasts(tree: xr.DataTree, against: str | None = None, *, rope: float | None = None) -> pd.DataFrame:
    """Compare groups, quantity by quantity, or the levels of each feature of a regression.

    Parameters
    ----------
    tree : xarray.DataTree
        The result of `fit_by`; or of `fit` for a model with parameters of each group, such as ``normal_means``, or for
        a regression with text features. Levels are compared by the linear predictor, such as the mean outcome or the
        log odds, and ``ratio`` is then the ratio of the odds; with interactions, at the centre of the other features.
    against : str, optional
        The group or level that the others are compared with. By default all pairs are compared. More than five groups
        are each compared with the first group, the most precise group (of one fit) or the reference level;
        ``attrs["notes"]`` says which.
    rope : float, optional
        The smallest difference that matters, >= 0, in the unit of the quantity (half the width of a region of
        practical equivalence).

    Returns
    -------
    pandas.DataFrame
        One row for each pair and scalar quantity. ``p_greater`` is the probability that the quantity is greater in
        ``group`` than in ``against``; ``difference`` is the mean of the difference, with ``difference_q025`` and
        ``difference_q975``; ``ratio`` is the median of the ratio, with ``ratio_q025`` and ``ratio_q975``, where the
        quantity is positive, by draws in those of all groups. ``loss_group`` is the expected loss of choosing ``group``
        if higher is better, the mean of max(against - group, 0); ``loss_against`` is that of choosing ``against``.
        With ``rope``, ``p_above`` and ``p_below`` are the probabilities that the difference is greater than it, and
        less than minus it.
        Columns that end in ``_mcse`` are Monte Carlo errors: NaN between exact fits, which are compared in closed
        form. Groups of one fit depend on each other and are compared by its joint draws; where the fit is exact, only
        the mean of the difference is exact too, with an error of 0. Where the tails of draws are too heavy for an
        error it is NaN. Point estimates have only difference and ratio. Quantities that a fit
        withholds have no rows, and ``attrs["withheld"]`` says why. Where parameters of an approximation are off, each
        contrast, with its ratio, probabilities and losses, is compared with that by draws of the posterior, in units
        of the contrast; ``attrs["judged"]`` says how far off the contrasts with rows are.

    Raises
    ------
    InputError
        When there is no such group, or no group at all.
    Untrustworthy
        When one fit of all groups failed its gate, or none of its contrasts agrees with that by the posterior.
    """
    columns = columns_of(rope)
    if is_of_groups(tree):
        return contrasts_within(Fit(tree), against, rope)
    if is_of_levels(tree):
        return contrasts_of_levels(Fit(tree), against, rope)
    fits = fits_of(tree)
    first = next(iter(fits))
    pairs = pairs_of(list(fits), against, first)
    reasons = [f"{label}: {failures_of(fit)[0]}" for label, fit in fits.items() if not fit.is_shown]
    unfitted = failures_by_group(tree)
    reasons += [f"{label}: without a fit: {why}" for label, why in unfitted.items()]
    if reasons and against in OTHERS:
        reasons.append(f"{against}: unknown while groups are withheld")
    hidden = [
        f"{name}: the components of different groups do not correspond" for name in _of_each_component(fits[first])
    ]
    relabelled = dict.fromkeys(
        name for pair in pairs if pair[1] not in OTHERS for name in _with_other_labels(*(fits[label] for label in pair))
    )
    hidden += [f"{name}: its labels differ between groups" for name in relabelled]
    known = [pair for pair in pairs if not (unfitted and pair[1] in OTHERS)]
    rows = [row for pair in known for row in _contrasted(fits, *pair, rope)]
    frame = pd.DataFrame([{key: row[key] for key in ("quantity", "group", "against", *columns)} for row in rows])
    frame.attrs["withheld"] = reasons + hidden
    return frame


def _with_other_labels(first: Fit, second: Fit) -> list[str]:
    """Name the quantities of both fits whose labels differ, so that their entries cannot be compared."""
    variables, others = (fit.tree["posterior"].data_vars for fit in (first, second))
    pairs = [(name, variables[name], others[name]) for name in variables if name in others]
    return [
        str(name)
        for name, variable, other in pairs
        if any(not np.array_equal(variable[dim], other[dim]) for dim in variable.dims[2:])
    ]


def _of_each_component(fit: Fit) -> list[str]:
    """Name the quantities with an entry for each component, whose labels are arbitrary."""
    axis = exchangeable_axis(fit.model)
    return [str(name) for name, values in fit.tree["posterior"].data_vars.items() if axis in values.dims]


def _contrasted(fits: Mapping[str, Fit], group: str, against: str, rope: float | None) -> Iterator[dict[str, Any]]:
    """Yield the contrast of each scalar between a group and another, or the best of all others."""
    others = [fit for label, fit in fits.items() if label == against or (against in OTHERS and label != group)]
    compared = [fits[group], *others]
    if not all(fit.is_shown for fit in compared):
        return
    hidden = {
        *_of_each_component(compared[0]),
        *(name for fit in others for name in _with_other_labels(compared[0], fit)),
    }
    draws = [fit.draws() for fit in compared]
    sign = -1.0 if against == LOWEST else 1.0
    for name in (name for name in draws[0] if all(name in of_fit for of_fit in draws[1:]) and name not in hidden):
        are_positive = _are_positive(fits.values(), name, draws[0][name].shape[2:])
        columns = _of_means(compared, name, _columns(compared, name, rope, are_positive, sign), sign)
        for index, label in elements(compared[0].tree["posterior"].to_dataset()[name]):
            row = {key: float(values[index]) for key, values in columns.items()}
            yield {"quantity": label, "group": group, "against": against, **row}


def _columns(
    fits: Sequence[Fit], name: str, rope: float | None, are_positive: np.ndarray, sign: float
) -> dict[str, np.ndarray]:
    """Compare the first fit with the highest of the others, times a sign, in closed form where possible."""
    own, *others = [sign * fit.draws()[name] for fit in fits]
    if fits[0].kind == "point estimate":
        return of_points(others[0][0, 0], own[0, 0])
    if (laws := _exact_laws(fits, name)) is not None:
        laws = [Mirrored(law) for law in laws] if sign < 0 else laws
        columns = in_closed_form(laws[0], laws[1:], rope)
        return columns | {"difference_mean": columns["loss_against"] - columns["loss_group"]}
    return by_draws(highest(others), own, rope, are_positive)


def _of_means(fits: Sequence[Fit], name: str, columns: dict[str, np.ndarray], sign: float) -> dict[str, np.ndarray]:
    """Take the difference from the means of two groups; a difference and losses need finite means of all groups."""
    means = [np.asarray(summaries_of(fit)[name]["mean"], dtype=np.float64) for fit in fits]
    with np.errstate(invalid="ignore"):  # of two infinite means
        columns["difference"] = sign * (means[0] - means[1]) if len(means) == 2 else columns["difference_mean"]
    has_means = np.isfinite(columns["difference"]) & np.all(np.isfinite(means), axis=0)
    of_means = ("difference", "difference_mcse", "loss_group", "loss_group_mcse", "loss_against", "loss_against_mcse")
    return columns | {key: np.where(has_means, columns[key], np.nan) for key in of_means}


def _exact_laws(fits: Sequence[Fit], name: str) -> list[Marginal] | None:
    """Return exact marginals that can be compared in closed form.

    None where there are too many groups or entries, or point masses: the rule cannot follow a distribution function
    that jumps.
    """
    laws = [fit.posterior[name] for fit in fits if fit.method == "exact" and fit.posterior]
    if len(laws) < len(fits) or len(laws) > MOST_GROUPS or math.prod(np.shape(laws[0].mean())) > MOST_ENTRIES:
        return None
    return None if any(np.any(getattr(law, "atom", 0.0)) for law in laws) else laws


def _are_positive(fits: Iterable[Fit], name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Say which entries of a quantity of a shape are positive in all draws of all fits that show it."""
    draws = [fit.draws()[name] for fit in fits if fit.is_shown and name in fit.draws()]
    return np.all([(values > 0).all((0, 1)) for values in draws if values.shape[2:] == shape], axis=0)
