"""One fit a group of rows, and what the groups differ by."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.comparison.compare import unique
from bayeszoo.comparison.contrast_columns import by_draws, columns_of, of_points, pairs_of, quantiles_named
from bayeszoo.comparison.hierarchy_contrasts import contrasts_within, estimates_within, is_of_groups
from bayeszoo.comparison.levels import contrasts_of_levels, estimates_of_levels, is_of_levels
from bayeszoo.data.by import named_in_errors, read_by
from bayeszoo.data.read import Data
from bayeszoo.data.table.table import shown
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import Caution, InputError, Interrupted
from bayeszoo.fit import as_seed, fit
from bayeszoo.foundation import signals
from bayeszoo.foundation.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import exchangeable_axis
from bayeszoo.results.caveats import failures_of, warn
from bayeszoo.results.stored import FITS, Fit, dumps, fits_of
from bayeszoo.results.summary import elements, listed, summarize

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd, xr = lazy_loader.load("pandas"), lazy_loader.load("xarray")

MOST_ENTRIES = 100
"""Entries of a quantity up to which exact fits are compared in closed form; beyond, by their draws."""
_SCORES = np.linspace(-8, 8, 401)
"""Standard normal scores over which the trapezoidal rule integrates to rounding."""
_FAR = 1e-6
MOST_NAMED = 5
"""Groups without a fit that a warning names; the tree names all."""


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
    """Fit a model to each group of rows by itself, under one prior.

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
        Source of all randomness. The fits of different groups are independent of each other whatever it is: a group
        whose rows are those of one before it has the next seed.
    reporter : Reporter, optional
        Takes progress; silent by default.
    reading : mapping of str to object, optional
        Options of `read`, such as ``{"positive": "yes"}``.
    **options
        Of the method, as for `fit`.

    Returns
    -------
    xarray.DataTree
        ``posterior`` with the draws of all groups, along a dimension that is called as the column, for ArviZ; where
        chains differ in length they are cut to the shortest. The fit of group A, which every other function takes, is
        ``tree["fits"]["A"]``, with ``_`` for each ``/`` of a name. `predict`, `contrasts`, `report` and `save` take
        the tree as it is.

    Raises
    ------
    InputError
        When the column does not name two groups or more; and as `read` and `fit` do.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> table = {"variant": ["A", "A", "B", "B", "B"], "bought": ["no", "yes", "yes", "yes", "no"]}
    >>> M = bz.find("beta_bernoulli")
    >>> tree = bz.fit_by(M(a=1, b=1), table, by="variant", method="exact", seed=1, reading={"positive": "yes"})
    >>> bz.contrasts(tree)[["group", "against", "p_greater"]].round(4).values.tolist()
    [['B', 'A', 0.6286]]
    """
    _, parts = read_by(model, data, by, **(reading or {}))
    return fit_parts(model, parts, by, method, seed=seed, reporter=reporter, **options)


def fit_parts(
    model: Model, parts: Mapping[str, Data], by: str, method: str, *, seed: int | None = None, **options: Any
) -> xr.DataTree:
    """Fit a model to data that have been read group by group, as `fit_by` does."""
    seed, trees = as_seed(seed), dict[str, xr.DataTree]()
    for label, own in own_seeds(parts, seed).items():
        try:
            with named_in_errors(label), warnings.catch_warnings():
                warnings.simplefilter("ignore", Caution)  # which would not name its group
                tree = fit(model, parts[label], method, seed=own, **options)
        except (Interrupted, KeyboardInterrupt):
            if not trees:
                raise
            signals.answer()
            break
        tree.attrs |= {"by": by, "group": label}
        trees[label] = tree
        warn(tree)
        if tree.attrs["status"] == "interrupted":
            break
    whole = in_one_tree(trees, by, seed)
    if left := [label for label in parts if label not in trees]:
        whole.attrs["without_fit"] = dumps(left)
        whole.attrs["status"] = "interrupted"
        warnings.warn(f"stopped: {_listed(left)} without a fit", Caution, stacklevel=2)
    return whole


def _listed(labels: Sequence[str]) -> str:
    """Name a few of the groups that are left."""
    some = ", ".join(map(shown, labels[:MOST_NAMED])) + ", ..." * (len(labels) > MOST_NAMED)
    return f"{len(labels)} group{'s' * (len(labels) > 1)} ({some}) {'are' if len(labels) > 1 else 'is'}"


def own_seeds(parts: Mapping[str, Data], seed: int) -> dict[str, int]:
    """Return the seed of each part: equal rows with one seed would have equal draws."""
    met, seeds = Counter[str](), dict[str, int]()
    for label, part in parts.items():
        seeds[label] = seed + met[part.digest]
        met[part.digest] += 1
    return seeds


def in_one_tree(trees: Mapping[str, xr.DataTree], by: str, seed: int) -> xr.DataTree:
    """Put fits into one tree: the draws that all have, alike in shape and labels, side by side, and every fit."""
    draws = [tree["posterior"].to_dataset() for tree in trees.values()]
    if by in {name for each in draws for name in (*each.variables, *each.dims)}:
        raise InputError(f"{by!r} is a name in the model", "duplicate_name", hint="rename the column")
    names = [name for name in draws[0] if len({_axes_of(each, name) for each in draws}) == 1]
    labels = xr.DataArray(np.array(list(trees)), dims=by, name=by)
    joined = xr.concat([each[names] for each in draws], labels, join="inner").transpose("chain", "draw", by, ...)
    tree = xr.DataTree.from_dict({"posterior": joined})
    of_all = ("bayeszoo_format", "model", "method", "kind")
    first = trees[next(iter(trees))].attrs
    tree.attrs = {**{name: first[name] for name in of_all}, "seed": seed, "by": by, "groups": dumps(list(trees))}
    nodes = unique(re.sub(r"^\.+$|/", "_", label) for label in trees)
    tree[FITS] = xr.DataTree(children=dict(zip(nodes, trees.values(), strict=True)))
    return tree


def _axes_of(draws: xr.Dataset, name: Hashable) -> Hashable:
    """Return a variable's axes without chain and draw, with sizes and labels; None for a scalar."""
    if name not in draws:
        return None
    own = [dim for dim in draws[name].dims if dim not in ("chain", "draw")]
    labels = {dim: tuple(draws[dim].to_numpy().tolist()) for dim in own if dim in draws.coords}
    return tuple((dim, draws.sizes[dim], labels.get(dim)) for dim in own)


def estimates(tree: xr.DataTree) -> pd.DataFrame:
    """Return a row for each quantity that is shown and each group: what `summarize` has of it."""
    if is_of_groups(tree):
        return estimates_within(tree)
    if is_of_levels(tree):
        return estimates_of_levels(tree)
    rows = dict[str, list[dict[str, Any]]]()
    for label, tree_ in fits_of(tree).items():
        for name, summary in summarize(tree_, listed(tree_)).items():
            known = {key: values for key, values in summary.items() if key != "withheld" and values is not None}
            for index, quantity in elements(tree_["posterior"].to_dataset()[name]) if "mean" in known else ():
                row = {key: float(np.asarray(values)[index]) for key, values in known.items()}
                rows.setdefault(quantity, []).append({"quantity": quantity, "group": label, **row})
    return pd.DataFrame([row for own in rows.values() for row in own])


def contrasts(tree: xr.DataTree, against: str | None = None, *, rope: float | None = None) -> pd.DataFrame:
    """Compare the groups, quantity by quantity, or the levels of each feature of a regression that has any.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit_by` returned, or `fit` for a model with parameters of each group, such as ``normal_means``, or for a
        regression with features of text. Of levels the linear predictor is compared, such as the mean outcome or
        the log odds, and ``ratio`` is then the ratio of the odds; where there are interactions, at the centre of the
        other features.
    against : str, optional
        The group or level that the others are compared with. By default all pairs are compared; of more than five
        groups, each with the first, and of one fit with the most precise group, or of levels the reference,
        as ``attrs["notes"]`` says.
    rope : float, optional
        The least difference that matters, >= 0, in the unit of the quantity (half of a region of practical
        equivalence).

    Returns
    -------
    pandas.DataFrame
        A row for each pair and scalar. ``p_greater`` is the probability that it is greater in ``group`` than in
        ``against``; ``difference`` the mean of how much, with ``difference_q025`` and ``difference_q975``; ``ratio``
        the median of how many times, where it is positive in both, with ``ratio_q025`` and ``ratio_q975``; the Monte
        Carlo error of each in a column that ends in ``_mcse``, NaN where there is none.
        ``loss_group`` is the expected loss of choosing ``group`` where more is better: the mean of how much less it
        has, 0 where it has more; ``loss_against`` that of choosing ``against``. With ``rope``, ``p_above`` is the
        probability that the difference is greater than it, and ``p_below`` that it is less than minus it.
        ``p_greater_mcse``, ``difference_mcse`` and so on are Monte Carlo errors: NaN between exact fits, which are
        compared in closed form. Groups of one fit depend on each other, and are compared by its joint draws; only the
        mean of the difference is exact where the fit is. Of point estimates only difference and ratio are known. What
        a fit withholds has no rows, and ``attrs["withheld"]`` says why. Within an approximation some of whose
        parameters are off, each contrast is compared with that by draws of the posterior, in its own units, as are
        its ratio, probabilities and losses: ``attrs["judged"]`` says how far off those are that have rows.

    Raises
    ------
    InputError
        When there is no such group, or no group at all.
    Untrustworthy
        When one fit of all groups failed its gate, or none of its contrasts agrees with the posterior's.
    """
    columns = columns_of(rope)
    if is_of_groups(tree):
        return contrasts_within(tree, against, rope)
    if is_of_levels(tree):
        return contrasts_of_levels(tree, against, rope)
    fits = fits_of(tree)
    pairs = pairs_of(list(fits), against, next(iter(fits)))
    reasons = [f"{label}: {failures_of(fit)[0]}" for label, fit in fits.items() if not Fit(fit).is_shown]
    hidden = [
        f"{name}: components of different groups are not the same ones"
        for name in _of_components(next(iter(fits.values())))
    ]
    others = dict.fromkeys(name for pair in pairs for name in _of_other_labels(*(fits[label] for label in pair)))
    hidden += [f"{name}: it is of other labels in some groups than in others" for name in others]
    rows = [row for pair in pairs for row in _contrasted(fits, *pair, rope)]
    frame = pd.DataFrame([{key: row[key] for key in ("quantity", "group", "against", *columns)} for row in rows])
    frame.attrs["withheld"] = reasons + hidden
    return frame


def _of_other_labels(first: xr.DataTree, second: xr.DataTree) -> list[str]:
    """Name the quantities that both fits have, but of different labels, whose entries are not to be compared."""
    own, other = (tree["posterior"].data_vars for tree in (first, second))
    both = [(name, own[name], other[name]) for name in own if name in other]
    return [
        str(name)
        for name, mine, theirs in both
        if any(not np.array_equal(mine[dim], theirs[dim]) for dim in mine.dims[2:])
    ]


def _of_components(tree: xr.DataTree) -> list[str]:
    """Name the quantities of components, whose labels mean nothing."""
    axis = exchangeable_axis(Fit(tree).model)
    return [str(name) for name, values in tree["posterior"].data_vars.items() if axis in values.dims]


def _contrasted(
    fits: Mapping[str, xr.DataTree], group: str, against: str, rope: float | None
) -> Iterator[dict[str, Any]]:
    """Yield the contrast of each scalar between two groups."""
    first, second = Fit(fits[against]), Fit(fits[group])
    if not (first.is_shown and second.is_shown):
        return
    hidden = [*_of_components(first.tree), *_of_other_labels(first.tree, second.tree)]
    means = [_means(fit) for fit in (first, second)]
    draws = [fit.draws() for fit in (first, second)]
    for name in (name for name in draws[0] if name in draws[1] and name not in hidden):
        if first.kind == "point estimate":
            known = of_points(draws[0][name][0, 0], draws[1][name][0, 0])
        else:
            known = _in_closed_form(first, second, name, rope) or by_draws(draws[0][name], draws[1][name], rope)
        with np.errstate(invalid="ignore"):  # of two infinite means
            known["difference"] = means[1][name] - means[0][name]
        for key in ("difference_mcse", "loss_group", "loss_group_mcse", "loss_against", "loss_against_mcse"):
            known[key] = np.where(np.isfinite(known["difference"]), known[key], np.nan)
        for index, label in elements(first.tree["posterior"].to_dataset()[name]):
            row = {key: float(values[index]) for key, values in known.items()}
            yield {"quantity": label, "group": group, "against": against, **row}


def _means(fit: Fit) -> dict[str, np.ndarray]:
    """Return the mean of each quantity, NaN where it does not exist."""
    return {name: np.asarray(each["mean"], dtype=np.float64) for name, each in summarize(fit.tree).items()}


def _in_closed_form(first: Fit, second: Fit, name: str, rope: float | None) -> dict[str, np.ndarray] | None:
    """Compare exact marginals, integrating over the first by the trapezoidal rule; None without few of them.

    Nor with atoms, where distribution functions jump: the rule does not follow them.
    """
    if not (first.method == second.method == "exact" and first.posterior and second.posterior):
        return None
    low, high = first.posterior[name], second.posterior[name]
    shape = np.shape(low.mean())
    if math.prod(shape) > MOST_ENTRIES or any(np.any(getattr(each, "atom", 0.0)) for each in (low, high)):
        return None
    weights = scipy.stats.norm.pdf(_SCORES) * (_SCORES[1] - _SCORES[0])
    points = np.array([low.ppf(level) for level in scipy.stats.norm.cdf(_SCORES)])
    bounds = [np.array([each.ppf(_FAR), each.ppf(1 - _FAR)]) for each in (low, high)]

    def quantiles(shifted: Callable[[np.ndarray], np.ndarray], least: np.ndarray, most: np.ndarray) -> list[np.ndarray]:
        cumulative = lambda at: np.tensordot(weights, high.cdf(shifted(at)), 1)  # noqa: E731
        return [_solved(cumulative, level, least, most) for level in QUANTILES.values()]

    differences = quantiles(lambda at: points + at, bounds[1][0] - bounds[0][1], bounds[1][1] - bounds[0][0])
    known = {"p_greater": 1 - np.tensordot(weights, high.cdf(points), 1), "p_greater_mcse": np.full(shape, np.nan)}
    known |= _losses(low, high, shape)
    if rope is not None:
        known |= {"p_above": 1 - np.tensordot(weights, high.cdf(points + rope), 1)}
        known |= {"p_below": np.tensordot(weights, high.cdf(points - rope), 1)}
        known |= {"p_above_mcse": np.full(shape, np.nan), "p_below_mcse": np.full(shape, np.nan)}
    ratios = [np.full(shape, np.nan)] * len(QUANTILES)
    if not (np.any(low.cdf(0.0)) or np.any(high.cdf(0.0))):
        ratios = quantiles(lambda at: points * at, bounds[1][0] / bounds[0][1], bounds[1][1] / bounds[0][0])
    return (
        known
        | quantiles_named("difference", Quantiles.without_error(dict(zip(QUANTILES, differences, strict=True))))
        | quantiles_named("ratio", Quantiles.without_error(dict(zip(QUANTILES, ratios, strict=True))))
        | {"difference_mcse": np.full(shape, np.nan)}
    )


def _losses(low: Any, high: Any, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return the expected loss of choosing each group: E max(Y - X, 0) is the integral of F_X (1 - F_Y).

    Gauss and Legendre's rule between quantiles of both, of which the distribution functions are smooth.
    """
    levels = scipy.stats.norm.cdf(_SCORES[::4])
    knots = np.sort(np.concatenate([[each.ppf(level) for level in levels] for each in (low, high)]), axis=0)
    nodes, weights = np.polynomial.legendre.leggauss(6)
    widths = np.diff(knots, axis=0)[:, None]
    places = nodes.reshape(-1, *(1 for _ in shape))
    at = (knots[:-1, None] + knots[1:, None]) / 2 + widths / 2 * places
    below, above = (each.cdf(at.reshape(-1, *shape)).reshape(at.shape) for each in (low, high))
    mass = widths / 2 * weights.reshape(places.shape)
    names = {"loss_group": (1 - below) * above, "loss_against": below * (1 - above)}
    losses = {name: (mass * integrand).sum(axis=(0, 1)) for name, integrand in names.items()}
    return losses | {f"{name}_mcse": np.full(shape, np.nan) for name in names}


def _solved(
    function: Callable[[np.ndarray], np.ndarray], level: float, least: np.ndarray, most: np.ndarray
) -> np.ndarray:
    """Find where an increasing function of each entry has a value, by bisection."""
    for _ in range(60):
        middle = (least + most) / 2
        below = function(middle) < level
        least, most = np.where(below, middle, least), np.where(below, most, middle)
    return (least + most) / 2
