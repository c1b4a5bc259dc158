"""Posterior entropy, divergence and mutual information, by tables of counts and by fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import lazy_loader
import numpy as np

from bayeszoo.answers.columns import p_highest, with_reasons
from bayeszoo.answers.judged import answering, has_withheld, is_judged, judged, kept, reference_of
from bayeszoo.distributions.information import entropy as entropy_of
from bayeszoo.errors import InputError
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Classifies, Observable
from bayeszoo.model.capabilities.closed import BlockModel, Sufficient
from bayeszoo.model.capabilities.sequential import StatesInTime
from bayeszoo.model.draws import every, flat, shape_of
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
"""Number of classes above which draws are thinned, draws kept at that number, and the fewest draws kept."""
_MOST_SIMULATED, _NOISE = 1000, 0.05
"""Most draws at which an entropy is simulated, and the largest share of its variance that simulation may add."""
_NOISY = "sd, quantiles: the simulation's error is not small next to the spread of the posterior"
_UNKNOWN = "mutual information: quadrature does not give it to 1e-7 nats"


def mutual_information(of: object, *, bits: bool = False, **options: Any) -> pd.DataFrame:
    """Return the mutual information of two variables by a table, or of the class and each feature by a fit.

    Parameters
    ----------
    of : table of counts or xarray.DataTree
        Counts, with a row for each value of one variable and a column for each value of the other, as from
        `pandas.crosstab`; or a fit of a model of class and features, such as ``naive_bayes``, or of
        `normal_inverse_wishart`.
    bits : bool
        Whether the unit is bits and not nats.
    **options
        For tables: ``alpha``, the Dirichlet concentration of each cell, by default 1; ``draws`` for quantiles, by
        default 4000; ``seed``.

    Returns
    -------
    pandas.DataFrame
        One row for a table, else one per feature, the most informative first: ``mean``, ``sd``, ``q025``, ``median``
        and ``q975`` of the posterior, and their Monte Carlo errors, 0 where exact, as for the mean of a table.
        ``plug_in`` is the mutual information of the observed shares, which is too large by about ``bias`` (Miller
        1955), NaN if features have no levels. For a fit also ``p_highest``, the probability that the feature is the
        most informative. ``attrs`` has the ``unit``, and for a classifier ``class_entropy``, the upper bound of all.

    Raises
    ------
    InputError
        When the table does not hold counts, or the model of the fit has no distribution of features.
    Untrustworthy
        When the fit failed its gate.

    Notes
    -----
    A mutual information is never negative: the interval of an uninformative feature lies above 0, up to a few times
    (K - 1) (L - 1) / (2 N) for K classes, L levels and N rows. Features are taken one by one: two informative ones may
    be redundant. For numbers and counts it is that of the fitted normal and Poisson distributions, by quadrature and
    sums at each draw.

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
    return in_units(judged(Fit(of), answer, partial(_no_options, options), _of_fit), bits)


def entropy(of: object, *, bits: bool = False, **options: Any) -> pd.DataFrame:
    """Return the entropy of a variable by its counts, or of a row by a fit.

    Parameters
    ----------
    of : counts or xarray.DataTree
        The count of each value, a sequence, a mapping or a series; or a fit of a model with one distribution for all
        rows, such as `dirichlet_multinomial` or `normal_gamma`; of `markov_chain`, for its entropy rate; or of a hidden
        Markov model, for the entropy rate of its states, and that of its rows: two bounds for symbols, and for counts
        and numbers by simulation at up to 1,000 draws, whose error is part of the Monte Carlo errors.
    bits : bool
        Whether the unit is bits and not nats.
    **options
        For counts: ``alpha``, the Dirichlet concentration of each value, by default 1; ``draws`` for quantiles, by
        default 4000; ``seed``.

    Returns
    -------
    pandas.DataFrame
        One row: ``mean``, ``sd``, ``q025``, ``median`` and ``q975`` of the posterior, and their Monte Carlo errors, 0
        where exact, as for mean and sd by counts and by exact fits of categories, yes and no, and normal numbers.
        ``plug_in`` is the entropy of the observed shares, which is too small by about -``bias`` (Miller 1955).
        ``attrs`` has the ``unit``. Differential entropies, for numbers, may be negative, and depend on their unit.

    Raises
    ------
    InputError
        When the values are no counts, or the entropy of a row has no formula in the model.
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
    return in_units(judged(Fit(of), "entropies", partial(_no_options, options), _entropies), bits)


def _entropies(fit: Fit, _: None) -> pd.DataFrame:
    draws, model = fit.draws(), fit.model
    entropies = model.entropies(draws, fit.like) if isinstance(model, Observable | StatesInTime) else {}
    if isinstance(model, StatesInTime):
        return _with_simulated(_summarized(entropies, fit.kind, "quantity"), fit)
    if not entropies:
        hint = "fit a model of one distribution, such as dirichlet_multinomial or normal_gamma"
        raise InputError(f"the entropy of a row of {model.name} is not known", "no_closed_form", hint=hint)
    frame = _summarized(entropies, fit.kind, "quantity")
    moments = model.entropy_moments(fit.stats) if isinstance(model, BlockModel) and fit.kind == "exact" else None
    if moments is not None and list(entropies) == ["entropy"]:
        frame.loc["entropy", ["mean", "sd", "mcse_mean", "mcse_sd"]] = [*map(float, moments), 0.0, 0.0]
    return frame


def _with_simulated(frame: pd.DataFrame, fit: Fit) -> pd.DataFrame:
    """Add entropies simulated at some draws; withhold their spread if the simulation error is a large part of it."""
    draws, model = fit.draws(), cast(StatesInTime, fit.model)
    thinned = every(draws, max(1, -(-math.prod(shape_of(draws)) // _MOST_SIMULATED)))
    rng = stream_of_fit(fit.tree.attrs, 0, "entropy")
    for name, simulated in model.simulated_entropies(flat(thinned), fit.like, rng).items():
        row = _summarized({name: simulated.values.reshape(shape_of(thinned))}, fit.kind, "quantity")
        if fit.kind == "point estimate":
            row["mcse_mean"] = simulated.error
        elif np.mean(np.square(simulated.error)) > _NOISE * simulated.values.var():
            row[[key for key in COLUMNS if key not in ("mean", "mcse_mean")]] = np.nan
            row = with_reasons(row, np.array([_NOISY]))
        withheld = [*frame.attrs.get("withheld", []), *row.attrs.get("withheld", [])]
        frame = pd.concat([frame, row])
        frame.attrs |= {"withheld": withheld} if withheld else {}
    return frame


def kl(p: object, q: object, *, bits: bool = False, **options: Any) -> pd.DataFrame:
    """Return the Kullback-Leibler divergence KL(p || q) by two tables of counts, or of a row by two fits.

    Parameters
    ----------
    p, q : counts or xarray.DataTree
        Two tables of the same values, in the same order if they have no labels; or two fits of one model to different
        rows, whose posteriors are independent.
    bits : bool
        Whether the unit is bits and not nats.
    **options
        For counts, as in `entropy`: ``alpha``, ``draws``, ``seed``.

    Returns
    -------
    pandas.DataFrame
        One row, as in `entropy`; by counts the mean is exact. ``plug_in`` is infinite if a value of the first table
        does not occur in the second; its ``bias`` is unknown.

    Raises
    ------
    InputError
        When the tables have different values, the fits are of different models or of the same rows, or the divergence
        of rows has no formula in the model.
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
    fits = [answering(Fit(tree), "divergences") for tree in (p, q)]
    _require_alike(*fits)
    frame, judged_fits = _divergence(*fits), sorted(filter(is_judged, fits), key=has_withheld)
    if judged_fits:  # the last, whose parameters are withheld if any fit's are, sets the limits
        reference = _divergence(*(reference_of(fit) if is_judged(fit) else fit for fit in fits))
        frame = kept(judged_fits[-1], "divergences", frame, reference)
    return in_units(frame, bits)


def _divergence(fit: Fit, other: Fit) -> pd.DataFrame:
    """Return the divergence of a row by one fit from that by another, at each pair of their draws."""
    both = fit.draws(), other.draws()
    chains, size = (min(sizes) for sizes in zip(*map(shape_of, both), strict=True))
    first, second = ({name: values[:chains, :size] for name, values in draws.items()} for draws in both)
    model, other_model = fit.model, other.model
    divergence = None
    if isinstance(model, Observable) and isinstance(other_model, Observable):
        divergence = model.row_divergence(first, other_model, second, fit.like)
    if divergence is None:
        hint = "fit a model of one distribution, such as dirichlet_multinomial or normal_gamma"
        raise InputError(f"the divergence of rows of {model.name} is not known", "no_closed_form", hint=hint)
    return _summarized({"divergence": divergence}, fit.kind, "quantity")


def _require_alike(fit: Fit, other: Fit) -> None:
    """Refuse two fits of different models, labels or kinds, or to the same rows, whose posteriors are dependent."""
    if type(fit.model) is not type(other.model) or fit.kind != other.kind:
        described = " and ".join(f"{either.model.name} by {either.method}" for either in (fit, other))
        raise InputError(f"these are {described}", "models_differ", hint="fit one model to both tables by one method")
    labels, other_labels = (
        {axis: list(map(str, names)) for axis, names in either.model.coords(either.like).items() if axis != "row"}
        for either in (fit, other)
    )
    if labels != other_labels:
        hint = "read both tables with the same labels"
        raise InputError("the two fits have different labels", "labels_differ", hint=hint)
    if fit.tree.attrs["data_digest"] == other.tree.attrs["data_digest"]:
        raise InputError("both fits are of the same rows", "same_data", hint="give fits of two samples")


def has_information(model: Model) -> bool:
    """Return whether a model has mutual informations, of the class and features or of columns."""
    return isinstance(model, Observable) and type(model).information is not Observable.information


def _is_tree(of: object) -> TypeGuard[xr.DataTree]:
    return hasattr(of, "children") and hasattr(of, "attrs")


def _of_table(name: str, row: Mapping[str, object], bits: bool) -> pd.DataFrame:
    columns = [*COLUMNS, "plug_in", "bias"]
    frame = pd.DataFrame([{key: row[key] for key in columns}], index=pd.Index([name]))
    return in_units(frame, bits)


def _of_fit(fit: Fit, _: None) -> pd.DataFrame:
    draws, model = fit.draws(), fit.model
    if isinstance(model, Classifies):
        draws = _thinned(draws, len(model.classes(fit.like)))
    information = model.information(draws, fit.like) if isinstance(model, Observable) else {}
    if not information:
        problem = f"{model.name} has no distribution of class and features, nor of several columns"
        hint = "fit naive_bayes, naive_bayes_text or gaussian_discriminant"
        if isinstance(model, Classifies) and model.has_law_of_features():
            problem = f"the entropy of the features has no closed form by {model}"
            hint = "a model of counts that are multinomial or Poisson has it"
        raise InputError(problem, "no_closed_form", hint=hint)
    if not isinstance(model, Classifies):
        return _highest_first(_summarized(information, fit.kind, "columns"))
    frame = _summarized(information, fit.kind, "feature", is_bounded=True)
    counts = model.counts_of_levels(fit.stats) if isinstance(model, Sufficient) else {}
    plug_in = [plugged_in(counts[name]) if name in counts else NO_PLUG_IN for name in information]
    highest = _p_highest(np.stack(list(information.values()), axis=-1), fit.kind)
    frame[["plug_in", "bias"]] = [list(row.values()) for row in plug_in]
    frame[list(highest)] = np.stack(list(highest.values()), axis=-1)
    frame.attrs[CLASS_ENTROPY] = float(entropy_of(draws["shares"]).mean())
    return _highest_first(frame)


def _highest_first(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values("mean", ascending=False, kind="stable", na_position="last")


def _no_options(options: Mapping[str, object], _: Fit | None = None) -> None:
    if options:
        raise InputError(f"{next(iter(options))} is an option for tables, not for fits", "conflicting_options")


def _thinned(draws: Mapping[str, np.ndarray], classes: int) -> dict[str, np.ndarray]:
    """Return evenly spaced draws of each chain, fewer for many classes: the time grows as their square."""
    chains, length = shape_of(draws)
    most = max(_FEWEST_DRAWS, round(_AT_MANY * (_MANY / classes) ** 2))
    step = max(1, chains * length // most) if classes > _MANY else 1
    return every(draws, min(step, max(length // 4, 1)))


def _summarized(quantities: Mapping[str, np.ndarray], kind: str, name: str, is_bounded: bool = False) -> pd.DataFrame:
    """Return a row for each quantity (chain, draw): moments and quantiles, and their Monte Carlo errors."""
    values = np.stack(list(quantities.values()), axis=-1)
    columns, withheld = summarized(values, kind, is_bounded)
    frame = pd.DataFrame(columns, index=pd.Index(list(quantities), name=name))
    return with_reasons(frame, np.where(np.isnan(values).any(axis=(0, 1)), _UNKNOWN, withheld))


def _p_highest(values: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """Return the probability that each feature of values (chain, draw, feature) is the highest, and its error."""
    names = ("p_highest", "mcse_p_highest")
    if kind == "point estimate" or np.isnan(values).any():
        return dict.fromkeys(names, np.full(values.shape[2], np.nan))
    return dict(zip(names, p_highest(values, kind), strict=True))
