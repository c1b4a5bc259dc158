"""Component probabilities of each row, averaged over a fit's draws, and the label of least expected loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayeszoo.answers.averages import Average
from bayeszoo.answers.columns import FAR_FROM_DRAWS, not_updated, with_reasons
from bayeszoo.answers.judged import (
    FAR,
    Agreement,
    Limits,
    answering,
    is_judged,
    limits_of,
    line_of,
    line_within,
    reference_of,
    refuse,
)
from bayeszoo.answers.latent.assigned import Assignments, Latents
from bayeszoo.answers.rows import by_row, labelled, rows_asked
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.inference.labels.align import in_chunks
from bayeszoo.inference.labels.symmetry import is_symmetric, numbered_as, pattern_of
from bayeszoo.inference.labels.symmetry import labelled as aligned
from bayeszoo.model.capabilities import Latent, exchangeable_axis
from bayeszoo.model.capabilities.observable import row_axes
from bayeszoo.model.capabilities.sequential import Sequential
from bayeszoo.model.density import log_rows
from bayeszoo.model.draws import flat, shape_of
from bayeszoo.model.suggest import models_with
from bayeszoo.results.caveats import next_step
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import components_withheld

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_ANSWER = "assignments by it"
_MOST = 2**24
"""Most probabilities held at once for their Monte Carlo errors."""


def assign(tree: xr.DataTree, new_data: object = None, **options: Any) -> pd.DataFrame:
    """Say which component each row belongs to, from a fit.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a model with latent variables. Components have the labels of its draws.
    new_data : Data or anything that `read` takes, optional
        Further rows, with their outcome; by default those of the fit.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        One row per data row, numbered as in the table read; ``item``, if items are rated. ``component``: the label of
        the most probable component, which has the smallest expected 0-1 loss; ``expected_loss``: the probability that
        it is wrong, and ``mcse_expected_loss``; then ``p[1]``, ...: the probability of each component, and ``mcse[1]``,
        ...: its Monte Carlo standard error (NaN for a point estimate).
        ``attrs["expected_errors"]`` is the expected number of rows with a wrong label, and ``mcse_expected_errors`` its
        error. A row that is impossible under all components at some draw, such as a document with a word of estimated
        probability 0, is NaN; ``attrs["impossible"]`` lists these rows. Further rows that few draws carry are NaN, and,
        if parameters of an approximation are off, rows where draws of the posterior do not agree; the column
        ``withheld`` says so. For a numeric latent
        variable the columns are ``mean``, ``sd_of_means`` (over draws, of its mean given the parameters) and
        ``mcse_mean``.

    Notes
    -----
    A point estimate is plugged in: its probabilities ignore the uncertainty of the parameters. Draws are weighed by the
    density that they give a further row, which tells about the parameters too; not so for the rows of a series, as
    ``attrs["remarks"]`` says.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate, or its draws do not agree what the components are.
    InputError
        When the model has no latent variable of each row, or the new rows do not suit it.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> tree = bz.fit(bz.find("gaussian_mixture")(), method="nuts", seed=1)  # doctest: +SKIP
    >>> bz.assign(tree)[["component", "expected_loss"]]  # doctest: +SKIP
    """
    fit = answering(Fit(tree), _ANSWER)
    model = fit.model
    if why := components_withheld(fit):
        after = f"; {step}" if (step := next_step(fit)) else ""
        raise Untrustworthy(f"assignments to components are withheld: {why}{after}", "withheld")
    if not isinstance(model, Latent):
        problem = f"{model.name} has no latent variable of each row"
        raise InputError(problem, "no_latent_variable", hint=models_with(Latent))
    data = rows_asked(fit, new_data, options, "component")
    is_weighed = new_data is not None and fit.kind != "point estimate" and _have_densities(model, fit.draws(), data)
    average = _of_new_rows if is_weighed else assignments
    own = average(model, fit.draws(), data)
    agreement = None
    if is_judged(fit):
        agreement = _agreement(fit, own, average(model, numbered_reference(fit, model, _ANSWER), data))
    agrees = own.is_known if agreement is None else agreement.shown
    shown = own.is_known & agrees
    frame = _frame(model, data, own.only(shown), shown)
    columns = "probabilities" if isinstance(own, Assignments) else "mean"
    reasons = np.select([~own.is_known, ~agrees], [f"{columns}: {FAR_FROM_DRAWS}", f"{columns}: {FAR}"], "")
    frame = with_reasons(frame, reasons.astype(object))
    if agreement is not None:
        frame.attrs["judged"] = agreement.line
    return frame if new_data is None or is_weighed else not_updated(frame, fit.kind)


def _have_densities(model: Latent, params: Params, data: Data) -> bool:
    """Say whether each row has a density given the parameters, which no other row changes."""
    is_of_rows = not isinstance(model, Sequential) and not row_axes(model)
    return is_of_rows and log_rows(model, _first(params), data) is not None


def _of_new_rows(model: Latent, params: Params, data: Data) -> Assignments | Latents:
    """Average the latent variables' distribution given rows that the draws (chain, draw, ...) have not seen.

    A further row tells about the parameters too, above all if the fit has few rows: as in `classify`, each draw is
    weighed by the density that it gives the row.
    """
    leading, draws, average = shape_of(params), flat(params), Average("sampled", draws=params)
    total, cells = model.inputs.size(data), np.size(model.component_probabilities(_first(params), data))
    parts, moved = list[Any](), np.zeros(leading)
    for block in (np.arange(total)[part] for part in blocks(total, math.prod(leading) * max(cells, 1), _MOST * total)):
        rows = model.inputs.reordered(data, block)
        values = np.concatenate([values for _, values in in_chunks(model, draws, rows)])
        log_p = np.asarray(log_rows(model, draws, rows)).reshape(*leading, len(block))
        kind = Assignments if values.ndim == 3 else Latents
        part, moved_here = kind.of_weighed(values.reshape(*leading, *values.shape[1:]), average.without(-log_p))
        parts, moved = [*parts, part], moved + moved_here
    return kind.together(parts, float(diagnostics.mcse(moved[..., None])[0]))


def _first(params: Params) -> dict[str, np.ndarray]:
    return {name: values[:1, 0] for name, values in params.items()}


def numbered_reference(fit: Fit, model: Latent, answer: str) -> Params:
    """Return draws of the posterior with the component numbers of the fit, or raise `Untrustworthy`."""
    if (draws := numbered_draws(fit, model)) is None:
        refuse(fit, answer)
    assert draws is not None
    return draws


def numbered_draws(fit: Fit, model: Latent) -> Params | None:
    """Return draws of the posterior with the component numbers of the fit; None if they disagree about components."""
    draws = reference_of(fit).draws()
    if not is_symmetric(model):
        return draws
    ordered, pattern = aligned(model, draws, fit.observed, "sampled"), pattern_of(model, fit.draws(), fit.observed)
    if ordered is None or ordered.withheld or pattern is None:
        return None
    return numbered_as(model, ordered.draws, np.asarray(pattern), fit.observed)[0]


def _agreement(fit: Fit, own: Assignments | Latents, reference: Assignments | Latents) -> Agreement:
    """Compare each row's probabilities, or mean, with those by draws of the posterior."""
    limits = limits_of(fit)
    if isinstance(own, Assignments) and isinstance(reference, Assignments):
        agree = (probabilities_agree(own, reference, limits) & (own.label == reference.label)) | own.impossible
        possible = agree & ~own.impossible
        gap = np.abs(own.probability - reference.probability)[possible].max(initial=0.0)
        line = line_within(agree, f": probabilities within {gap:.2g} of the posterior's", limits)
    else:
        assert isinstance(own, Latents)
        assert isinstance(reference, Latents)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, ratio = (own.mean - reference.mean) / reference.sd_of_means, own.sd_of_means / reference.sd_of_means
        agree = limits.moments_agree((own.mean, own.sd_of_means), (reference.mean, reference.sd_of_means))
        line = line_of(agree, mean, ratio, limits)
    if not agree.any():
        refuse(fit, _ANSWER)
    return Agreement(agree, line)


def _apart(own: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the largest error of each row's probabilities, in sds of a Bernoulli variable."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(own - reference) / np.sqrt(np.maximum(reference * (1 - reference), 0.0))
    return np.asarray(np.where(own == reference, 0.0, error).max(axis=1))


def probabilities_agree(own: Assignments, reference: Assignments, limits: Limits) -> np.ndarray:
    """Return the rows whose probabilities agree, those near 0 and 1 as normal scores."""
    near = _apart(own.probability, reference.probability) <= limits.mean
    tails = limits.scores_agree(_scores(own.probability), _scores(reference.probability)).all(axis=1)
    return np.asarray(near & tails)


def _scores(p: np.ndarray) -> np.ndarray:
    """Return probabilities (rows, K) as normal scores; those near 1 from the sum of the others."""
    others = np.stack([np.delete(p, k, axis=1).sum(axis=1) for k in range(p.shape[1])], axis=1)
    return np.asarray(np.where(p < 0.5, scipy.special.ndtri(p), -scipy.special.ndtri(np.minimum(others, 1.0))))


def assignments(
    model: Latent, params: Params, data: Arrays, function: Callable[[Params, Arrays], object] | None = None
) -> Assignments | Latents:
    """Average the latent variables' distribution over draws (chain, draw, ...) of the parameters.

    The labels of components must be in the same order in all draws. A ``function`` of parameters and data may replace
    ``model.component_probabilities``. If the probabilities of all draws do not fit into memory, errors come from the
    means of batches of draws. Raises `NumericalError` if the probabilities of a row are not finite.
    """
    chains, draws = shape_of(params)
    sums, squares, origin, batches = np.empty(0), np.zeros(1), np.zeros(1), draws
    for block, values in in_chunks(model, flat(params), data, function):
        if not block.start:
            batches, origin = _batches(chains, draws, values[0].size), values[0]
            sums = np.zeros((chains * batches, *values.shape[1:]))
        batch = np.arange(block.start, block.stop) * batches // draws
        starts = np.flatnonzero(np.diff(batch, prepend=-1))
        sums[batch[starts]] += np.add.reduceat(values, starts, axis=0)
        squares = squares + np.sum(np.square(values - origin), axis=0)
    sums *= batches / draws
    of_chains = sums.reshape(chains, batches, *sums.shape[1:])
    if sums.ndim == 3:
        return Assignments.of_draws(of_chains, draws // batches)
    mean, mcse = sums.mean(axis=0), diagnostics.mcse(of_chains)
    total = chains * draws
    variance = (squares / total - np.square(mean - origin)) * (total / (total - 1) if total > 1 else np.nan)
    return Latents(mean, np.sqrt(np.maximum(variance, 0.0)), mcse, np.ones(len(mean), dtype=bool))


def _batches(chains: int, draws: int, cells: int) -> int:
    """Return the number of equal batches of each chain's draws: as many as memory allows."""
    divisors = (size for size in range(1, draws + 1) if draws % size == 0)
    return next((draws // size for size in divisors if chains * (draws // size) * cells <= _MOST), 1)


def _names_of_rows(model: Latent, data: Data) -> dict[str, np.ndarray]:
    """Return the names of items or documents, if rows have any: a file need not hold them in order."""
    axis = model.inputs.row_names
    return {} if axis is None or axis not in data else {axis: data[axis]}


def _frame(model: Latent, data: Data, assigned: Assignments | Latents, shown: Any) -> pd.DataFrame:
    if isinstance(assigned, Latents):
        return by_row({"mean": assigned.mean, "sd_of_means": assigned.sd_of_means, "mcse_mean": assigned.mcse}, data)
    axis, numbered = exchangeable_axis(model) or model.component_axis, np.arange(1, assigned.probability.shape[1] + 1)
    labels, hidden = np.asarray(model.coords(data).get(axis, numbered)), assigned.impossible
    component = labels[assigned.label]
    if hidden.any() and component.dtype.kind == "U":  # NaN is no text
        component = component.astype(object)
    columns = _names_of_rows(model, data)
    columns |= {"component": np.where(hidden, np.nan, component) if hidden.any() else component}
    columns |= {"expected_loss": np.where(hidden, np.nan, assigned.expected_loss)}
    columns |= {"mcse_expected_loss": np.where(hidden, np.nan, assigned.mcse_expected_loss)}
    columns |= labelled("p", labels, assigned.probability) | labelled("mcse", labels, assigned.mcse)
    frame = by_row(columns, data)
    of_all = (assigned.expected_errors, assigned.mcse_expected_errors) if np.all(shown) else (np.nan, np.nan)
    frame.attrs |= dict(zip(("expected_errors", "mcse_expected_errors"), of_all, strict=True))
    if (impossible := hidden & shown).any():
        frame.attrs["impossible"] = data.numbers[impossible].tolist()
    return frame
