"""Entropy, divergence and mutual information, of tables and of fits, with their posterior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import lazy_loader
import numpy as np

from bayeszoo.answers.columns import error_of_mean, with_reasons
from bayeszoo.answers.judged import answering, has_withheld, is_judged, judged, kept, reference_of
from bayeszoo.distributions.information import entropy as entropy_of
from bayeszoo.errors import InputError
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Classifies, Observable
from bayeszoo.model.closed import BlockModel, Sufficient
from bayeszoo.model.sequential import StatesInTime
from bayeszoo.results.stored import Fit
from bayeszoo.tools.information import (
    CLASS_ENTROPY,
    COLUMNS,
    NO_PLUG_IN,
    Prior,
    divergence_of_counts,
    entropy_of_counts,
    in_units,
    information_of_counts,
    plugged_in,
    summarized,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd = lazy_loader.load("pandas")

_MANY, _AT_MANY, _FEWEST_DRAWS = 20, 4000, 100
"""Classes above which some draws are taken, how many there are then, and the fewest of more classes."""
_MOST_SIMULATED, _NOISE = 1000, 0.05
"""Draws at which an entropy is simulated, and the share of its variance up to which the error does not matter."""
_NOISY = "sd, quantiles: the simulation's error is not small next to the spread of the posterior"
_UNKNOWN = "mutual information: quadrature does not give it to 1e-7 nats"


def mutual_information(of: object, *, bits: bool = False, **options: Any) -> pd.DataFrame:
    """Return the mutual information of two variables: of a table, or of the class and each feature by a fit.

    Parameters
    ----------
    of : table of counts or xarray.DataTree
        Counts, a row each value of one variable and a column each value of the other, as `pandas.crosstab` gives; or
        a fit of a model of class and features, such as ``naive_bayes``, or of `normal_inverse_wishart`.
    bits : bool
        Whether the unit is bits and not nats.
    **options
        Of tables: ``alpha``, the Dirichlet concentration of each cell, by default 1; ``draws``, by default 4000, from
        which quantiles are taken; ``seed``.

    Returns
    -------
    pandas.DataFrame
        A row for a table, else one a feature, those that tell most first: ``mean``, ``sd``, ``q025``, ``median`` and
        ``q975`` of the posterior, and their Monte Carlo errors, 0 where exact: the mean of a table is. ``plug_in`` is
        the mutual information of the shares in the rows, which is too large by about ``bias`` (Miller 1955), NaN where
        features have no levels. Of a fit also ``p_highest``, the probability that the feature tells most. ``attrs`` has
        the ``unit``, and of a classifier ``class_entropy``, the most that any feature can tell.

    Raises
    ------
    InputError
        When the table does not hold counts, or the model of the fit has no distribution of features.
    Untrustworthy
        When the fit failed its gate.

    Notes
    -----
    A mutual information is never negative, and the interval of a feature that tells nothing is not around 0 but above
    it, up to a few times (K - 1) (L - 1) / (2 N) of K classes, L levels and N rows. Features are taken one by one: two
    that tell much may tell the same. Of numbers and counts it is that of the fitted normal and Poisson distributions,
    by quadrature and sums at each draw.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> print(bz.mutual_information([[20, 5], [4, 21]])[["mean", "plug_in", "bias"]].round(3))
                         mean  plug_in  bias
    mutual information  0.197    0.222  0.01
    >>> Spam = bz.find("naive_bayes")
    >>> frame = bz.mutual_information(bz.fit(Spam, bz.example(Spam), "exact", seed=1))
    >>> frame.index.tolist()
    ['bang', 'dollar', 'money', 'n000', 'make']
    """
    if not _is_tree(of):
        row = information_of_counts(of, Prior(**options))
        return _of_table("mutual information", row, bits)
    answer = "mutual informations"
    return in_units(judged(cast("xr.DataTree", of), answer, partial(_no_options, options), _of_fit), bits)


def entropy(of: object, *, bits: bool = False, **options: Any) -> pd.DataFrame:
    """Return the entropy of a variable: of a table of counts, or of a row by a fit.

    Parameters
    ----------
    of : counts or xarray.DataTree
        How often each value occurred, a sequence, a mapping or a series; or a fit of a model with one distribution of
        all rows, such as `dirichlet_multinomial` or `normal_gamma`; of `markov_chain`, whose entropy rate it is; or of
        a hidden Markov model: the entropy rate of its states; and that of its rows, of symbols as two bounds, of counts
        and numbers by simulation at up to 1,000 draws, whose error is part of the Monte Carlo errors.
    bits : bool
        Whether the unit is bits and not nats.
    **options
        Of counts: ``alpha``, the Dirichlet concentration of each value, by default 1; ``draws``, by default 4000, from
        which quantiles are taken; ``seed``.

    Returns
    -------
    pandas.DataFrame
        One row: ``mean``, ``sd``, ``q025``, ``median`` and ``q975`` of the posterior, and their Monte Carlo errors, 0
        where exact: mean and sd are, of counts and of exact fits of categories, yes and no, and normal numbers.
        ``plug_in`` is the entropy of the shares in the counts, which is too small by about -``bias`` (Miller 1955).
        ``attrs`` has the ``unit``. Differential entropies, of numbers, may be negative, and depend on their unit.

    Raises
    ------
    InputError
        When these are no counts, or the entropy of a row of the model is not known.
    Untrustworthy
        When the fit failed its gate.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> bz.entropy({"heads": 7, "tails": 3})[["mean", "sd", "plug_in", "bias"]].round(4).values.tolist()
    [[0.5969, 0.0977, 0.6109, -0.05]]
    """
    if not _is_tree(of):
        return _of_table("entropy", entropy_of_counts(of, Prior(**options)), bits)
    return in_units(judged(cast("xr.DataTree", of), "entropies", partial(_no_options, options), _entropies), bits)


def _entropies(fit: Fit, _: None) -> pd.DataFrame:
    draws, model = fit.draws(), fit.model
    told = model.entropies(draws, fit.like) if isinstance(model, Observable | StatesInTime) else {}
    if isinstance(model, StatesInTime):
        return _with_simulated(_summarized(told, fit.kind, "quantity"), fit)
    if not told:
        hint = "fit a model of one distribution, such as dirichlet_multinomial or normal_gamma"
        raise InputError(f"the entropy of a row of {model.name} is not known", "no_closed_form", hint=hint)
    frame = _summarized(told, fit.kind, "quantity")
    moments = model.entropy_moments(fit.stats) if isinstance(model, BlockModel) and fit.kind == "exact" else None
    if moments is not None and list(told) == ["entropy"]:
        frame.loc["entropy", ["mean", "sd", "mcse_mean", "mcse_sd"]] = [*map(float, moments), 0.0, 0.0]
    return frame


def _with_simulated(frame: pd.DataFrame, fit: Fit) -> pd.DataFrame:
    """Add entropies that are simulated at some draws; withhold their spread where the simulation's is part of it."""
    draws, model = fit.draws(), cast(StatesInTime, fit.model)
    step = max(1, -(-math.prod(_sizes(draws)) // _MOST_SIMULATED))
    some = {name: values[:, ::step] for name, values in draws.items()}
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in some.items()}
    for name, known in model.simulated_entropies(flat, fit.like, stream_of_fit(fit.tree.attrs, 0, "entropy")).items():
        row = _summarized({name: known.values.reshape(_sizes(some))}, fit.kind, "quantity")
        if fit.kind == "point estimate":
            row["mcse_mean"] = known.error
        elif np.mean(np.square(known.error)) > _NOISE * known.values.var():
            row[[key for key in COLUMNS if key not in ("mean", "mcse_mean")]] = np.nan
            row = with_reasons(row, np.array([_NOISY]))
        withheld = [*frame.attrs.get("withheld", []), *row.attrs.get("withheld", [])]
        frame = pd.concat([frame, row])
        frame.attrs |= {"withheld": withheld} if withheld else {}
    return frame


def kl(p: object, q: object, *, bits: bool = False, **options: Any) -> pd.DataFrame:
    """Return the Kullback-Leibler divergence KL(p || q): of two tables of counts, or of a row by two fits.

    Parameters
    ----------
    p, q : counts or xarray.DataTree
        Two tables of the same values, in one order where they have no labels; or two fits of one model to different
        rows. Their posteriors are independent.
    bits : bool
        Whether the unit is bits and not nats.
    **options
        Of counts, as of `entropy`: ``alpha``, ``draws``, ``seed``.

    Returns
    -------
    pandas.DataFrame
        One row, as of `entropy`; of counts the mean is exact. ``plug_in`` is infinite where a value occurred that the
        second table lacks; no ``bias`` of it is known.

    Raises
    ------
    InputError
        When the tables have other values, the fits are of other models or of the same rows, or the divergence of rows
        of the model is not known.
    Untrustworthy
        When a fit failed its gate, or the divergence by an approximation is not that by draws of the posterior.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> round(bz.kl([70, 30], [50, 50])["mean"].item(), 4)
    0.0888
    """
    if not (_is_tree(p) or _is_tree(q)):
        return _of_table("divergence", divergence_of_counts(p, q, Prior(**options)), bits)
    if not (_is_tree(p) and _is_tree(q)):
        raise InputError("a divergence needs two tables or two fits", "not_a_fit")
    _no_options(options)
    both = [answering(cast("xr.DataTree", tree), "divergences") for tree in (p, q)]
    _require_alike(*both)
    frame, off = _divergence(*both), sorted(filter(is_judged, both), key=has_withheld)
    if off:  # the one whose parameters are withheld, if any, sets the limits
        known = _divergence(*(reference_of(fit) if is_judged(fit) else fit for fit in both))
        frame = kept(off[-1], "divergences", frame, known)
    return in_units(frame, bits)


def _divergence(fit: Fit, other: Fit) -> pd.DataFrame:
    """Return the divergence of a row by one fit from that by another, at each pair of their draws."""
    draws, others = fit.draws(), other.draws()
    chains, size = (min(sizes) for sizes in zip(_sizes(draws), _sizes(others), strict=True))
    first, second = ({name: each[:chains, :size] for name, each in some.items()} for some in (draws, others))
    model, their = fit.model, other.model
    told = None
    if isinstance(model, Observable) and isinstance(their, Observable):
        told = model.row_divergence(first, their, second, fit.like)
    if told is None:
        hint = "fit a model of one distribution, such as dirichlet_multinomial or normal_gamma"
        raise InputError(f"the divergence of rows of {model.name} is not known", "no_closed_form", hint=hint)
    return _summarized({"divergence": told}, fit.kind, "quantity")


def _require_alike(fit: Fit, other: Fit) -> None:
    """Refuse two fits with different kinds of rows, or with dependent posteriors."""
    if type(fit.model) is not type(other.model) or fit.kind != other.kind:
        described = " and ".join(f"{each.model.name} by {each.method}" for each in (fit, other))
        raise InputError(f"these are {described}", "models_differ", hint="fit one model to both tables by one method")
    own, their = (
        {axis: list(map(str, labels)) for axis, labels in each.model.coords(each.like).items() if axis != "row"}
        for each in (fit, other)
    )
    if own != their:
        raise InputError(
            "the two fits have different labels", "labels_differ", hint="read both tables with the same labels"
        )
    if fit.tree.attrs["data_digest"] == other.tree.attrs["data_digest"]:
        raise InputError("both fits are of the same rows", "same_data", hint="give fits of two samples")


def _sizes(draws: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    return next(iter(draws.values())).shape[:2]


def has_information(model: Model) -> bool:
    """Say whether a model knows mutual informations, of the class and features or of columns."""
    return isinstance(model, Observable) and type(model).information is not Observable.information


def _is_tree(of: object) -> bool:
    return hasattr(of, "children") and hasattr(of, "attrs")


def _of_table(name: str, row: Mapping[str, object], bits: bool) -> pd.DataFrame:
    columns = [*COLUMNS, "plug_in", "bias"]
    frame = pd.DataFrame([{key: row[key] for key in columns}], index=pd.Index([name]))
    return in_units(frame, bits)


def _of_fit(fit: Fit, _: None) -> pd.DataFrame:
    draws, model = fit.draws(), fit.model
    if isinstance(model, Classifies):
        draws = _some(draws, len(model.classes(fit.like)))
    told = model.information(draws, fit.like) if isinstance(model, Observable) else {}
    if not told:
        problem = f"{model.name} has no distribution of class and features, nor of several columns"
        hint = "fit naive_bayes, naive_bayes_text or gaussian_discriminant"
        if isinstance(model, Classifies) and model.has_law_of_features():
            problem = f"the entropy of the features has no closed form by {model}"
            hint = "a model of counts that are multinomial or Poisson has it"
        raise InputError(problem, "no_closed_form", hint=hint)
    if not isinstance(model, Classifies):
        return _highest_first(_summarized(told, fit.kind, "columns"))
    frame = _summarized(told, fit.kind, "feature", is_bounded=True)
    counts = model.counts_of_levels(fit.stats) if isinstance(model, Sufficient) else {}
    plug_in = [plugged_in(counts[name]) if name in counts else NO_PLUG_IN for name in told]
    highest = _p_highest(np.stack(list(told.values()), axis=-1), fit.kind)
    frame[["plug_in", "bias"]] = [list(each.values()) for each in plug_in]
    frame[list(highest)] = np.stack(list(highest.values()), axis=-1)
    frame.attrs[CLASS_ENTROPY] = float(entropy_of(draws["shares"]).mean())
    return _highest_first(frame)


def _highest_first(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values("mean", ascending=False, kind="stable", na_position="last")


def _no_options(options: Mapping[str, object], _: Fit | None = None) -> None:
    if options:
        raise InputError(f"{next(iter(options))} is an option for tables, not for fits", "conflicting_options")


def _some(draws: Mapping[str, np.ndarray], classes: int) -> dict[str, np.ndarray]:
    """Return draws at equal distances along each chain, fewer of many classes: the time grows as their square."""
    total, length = math.prod(_sizes(draws)), _sizes(draws)[1]
    most = max(_FEWEST_DRAWS, round(_AT_MANY * (_MANY / classes) ** 2))
    step = max(1, total // most) if classes > _MANY else 1
    return {name: values[:, :: min(step, max(length // 4, 1))] for name, values in draws.items()}


def _summarized(told: Mapping[str, np.ndarray], kind: str, name: str, is_bounded: bool = False) -> pd.DataFrame:
    """Return a row for each quantity (chain, draw): moments and quantiles, and their Monte Carlo errors."""
    values = np.stack(list(told.values()), axis=-1)
    columns, withheld = summarized(values, kind, is_bounded)
    frame = pd.DataFrame(columns, index=pd.Index(list(told), name=name))
    return with_reasons(frame, np.where(np.isnan(values).any(axis=(0, 1)), _UNKNOWN, withheld))


def _p_highest(values: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """Return the probability that each feature of values (chain, draw, feature) is the highest, and its error."""
    if kind == "point estimate" or np.isnan(values).any():
        return dict.fromkeys(("p_highest", "mcse_p_highest"), np.full(values.shape[2], np.nan))
    is_it = values == values.max(axis=-1, keepdims=True)
    share = is_it / is_it.sum(axis=-1, keepdims=True)
    return {"p_highest": share.mean((0, 1)), "mcse_p_highest": error_of_mean(share, kind, values)}
