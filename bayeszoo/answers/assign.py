"""Which component does each row belong to? Probabilities averaged over a fit's draws, and the label of least loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayeszoo.answers.columns import with_reasons
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
from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Arrays, Options, Params
from bayeszoo.inference.labels.align import flat, in_chunks
from bayeszoo.inference.labels.symmetry import is_symmetric, numbered_as, pattern_of
from bayeszoo.inference.labels.symmetry import labelled as aligned
from bayeszoo.model.capabilities import Latent, exchangeable_axis
from bayeszoo.results.caveats import next_step
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import components_withheld

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_ANSWER = "assignments by it"
_HELD = 2**24
"""Probabilities that are held at once for their Monte Carlo errors."""


def rows_asked(fit: Fit, new_data: object, options: Options, quantity: str = "component") -> Data:
    """Return the rows of the fit, or new ones, which must have an outcome: of them ``quantity`` is to be inferred."""
    if new_data is None:
        if options:
            raise InputError(
                f"{next(iter(options))} is an option for reading a table, and no table is given", "option_needs_data"
            )
        return fit.data
    data = read(fit.model, new_data, new=True, like=fit.like, **options)
    if not fit.model.inputs.has_outcome(data):
        raise InputError(
            f"the new rows have no outcome, from which their {quantity} could be inferred", "missing_outcome"
        )
    return data


@dataclass(frozen=True, eq=False)
class Assignments:
    """The mean over draws of the probability of each row's component, and its Monte Carlo error, shape (rows, K).

    The errors of the expected loss, shape (rows,), and of its sum are those of the labels that were chosen.
    The probability is NaN where at some draw no component can give the row, the error of a point estimate.
    """

    probability: np.ndarray
    mcse: np.ndarray
    mcse_expected_loss: np.ndarray
    mcse_expected_errors: float

    @property
    def label(self) -> np.ndarray:
        """The most probable component, counted from 0, shape (rows,): no other label has a smaller expected 0-1 loss.

        Of equally probable ones the first; where the probabilities are NaN it means nothing.
        """
        return np.argmax(self.probability, axis=1)

    @classmethod
    def of_draws(cls, held: np.ndarray) -> Assignments:
        """Average the probabilities (chain, draw, rows, K) of draws, or of batches of these."""
        mean = held.mean(axis=(0, 1))
        label = np.argmax(mean, axis=1)
        losses = np.sum(held, axis=3, where=np.arange(mean.shape[1]) != label[:, None])
        possible = ~np.isnan(mean).any(axis=1)
        total = losses[..., possible].sum(axis=2, keepdims=True)
        return cls(mean, diagnostics.mcse(held), diagnostics.mcse(losses), float(diagnostics.mcse(total)[0]))

    @property
    def impossible(self) -> np.ndarray:
        """Which rows no component can give, shape (rows,)."""
        return np.isnan(self.probability).any(axis=1)

    @property
    def expected_loss(self) -> np.ndarray:
        """The probability that the label is wrong, shape (rows,): that of the other components."""
        others = np.arange(self.probability.shape[1]) != self.label[:, None]
        return np.sum(self.probability, axis=1, where=others)

    def only(self, shown: np.ndarray) -> Assignments:
        """Return the assignments of some rows; those of the others are NaN."""
        probability, mcse = (np.where(shown[:, None], values, np.nan) for values in (self.probability, self.mcse))
        of_loss = np.where(shown, self.mcse_expected_loss, np.nan)
        return replace(self, probability=probability, mcse=mcse, mcse_expected_loss=of_loss)

    @property
    def expected_errors(self) -> float:
        """The expected number of wrong labels, among rows that some component can give."""
        return float(self.expected_loss[~self.impossible].sum())


@dataclass(frozen=True, eq=False)
class Latents:
    """Posterior mean of each row's latent number and its Monte Carlo standard error, of shape (rows,).

    ``sd_of_means`` is the standard deviation over draws of its mean given the parameters; what is not known of it when
    the parameters are is not in it. It and the error are NaN of a point estimate.
    """

    mean: np.ndarray
    sd_of_means: np.ndarray
    mcse: np.ndarray

    def only(self, shown: np.ndarray) -> Latents:
        """Return the means of some rows; those of the others are NaN."""
        return Latents(*(np.where(shown, values, np.nan) for values in (self.mean, self.sd_of_means, self.mcse)))


def assign(tree: xr.DataTree, new_data: object = None, **options: Any) -> pd.DataFrame:
    """Say which component each row belongs to, from a fit.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, of a model with latent variables. Components are called as in its draws.
    new_data : Data or anything that `read` takes, optional
        Further rows, with their outcome; by default those of the fit.
    **options
        Of `read`.

    Returns
    -------
    pandas.DataFrame
        One row a data row, numbered as in the table read; ``item``, where items are rated. ``component``: the label of
        the most probable component, which has the smallest expected 0-1 loss; ``expected_loss``: the probability that
        it is wrong; then ``p[1]``, ...: the probability of each component, and ``mcse[1]``, ...: its Monte Carlo
        standard error (NaN of a point estimate).
        ``mcse_expected_loss`` is that of the loss. ``attrs["expected_errors"]`` is the expected number of rows with a
        wrong label, and ``mcse_expected_errors`` its error. All is NaN of a row that no
        component can give at some draw, such as a document with a word that an estimate gives probability 0;
        ``attrs["impossible"]`` lists these rows. Rows of an approximation some of whose parameters are off are NaN
        where draws of the posterior do not agree, and the column ``withheld`` says so. Of a latent variable that is a
        number instead ``mean``, ``sd_of_means`` (over draws, of its mean given the parameters) and ``mcse_mean``.

    Notes
    -----
    A point estimate is plugged in: its probabilities do not know how uncertain the parameters are.

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
    fit, model = answering(tree, _ANSWER), Fit(tree).model
    if why := components_withheld(fit):
        after = f"; {step}" if (step := next_step(fit)) else ""
        raise Untrustworthy(f"assignments to components are withheld: {why}{after}", "withheld")
    if not isinstance(model, Latent):
        raise InputError(
            f"{model.name} has no latent variable of each row", "no_latent_variable", hint="see `bayeszoo list`"
        )
    data = rows_asked(fit, new_data, options)
    own = assignments(model, fit.draws(), data)
    if not is_judged(fit):
        return _frame(model, data, own)
    agreement = _agreement(fit, own, assignments(model, numbered_reference(fit, model, _ANSWER), data))
    frame = _frame(model, data, own.only(agreement.shown), agreement.shown)
    what = "probabilities" if isinstance(own, Assignments) else "mean"
    frame = with_reasons(frame, np.where(agreement.shown, "", f"{what}: {FAR}").astype(object))
    frame.attrs["judged"] = agreement.line
    return frame


def numbered_reference(fit: Fit, model: Latent, answer: str) -> Params:
    """Return draws of the posterior with components numbered as the fit's; raise if they have no such numbers."""
    if (draws := numbered_draws(fit, model)) is None:
        refuse(fit, answer)
    assert draws is not None
    return draws


def numbered_draws(fit: Fit, model: Latent) -> Params | None:
    """Return draws of the posterior with components numbered as the fit's, if they agree what the components are."""
    draws = reference_of(fit).draws()
    if not is_symmetric(model):
        return draws
    ordered, pattern = aligned(model, draws, fit.observed, "sampled"), pattern_of(model, fit.draws(), fit.observed)
    if ordered is None or ordered.withheld or pattern is None:
        return None
    return numbered_as(model, ordered.draws, np.asarray(pattern), fit.observed)[0]


def _agreement(fit: Fit, own: Assignments | Latents, known: Assignments | Latents) -> Agreement:
    """Compare each row's probabilities, or mean, with those by draws of the posterior."""
    limits = limits_of(fit)
    if isinstance(own, Assignments) and isinstance(known, Assignments):
        agree = (probabilities_agree(own, known, limits) & (own.label == known.label)) | own.impossible
        known_rows = agree & ~own.impossible
        gap = np.abs(own.probability - known.probability)[known_rows].max(initial=0.0)
        line = line_within(agree, f": probabilities within {gap:.2g} of the posterior's", limits)
    else:
        assert isinstance(own, Latents)
        assert isinstance(known, Latents)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, ratio = (own.mean - known.mean) / known.sd_of_means, own.sd_of_means / known.sd_of_means
        agree = limits.moments_agree((own.mean, own.sd_of_means), (known.mean, known.sd_of_means))
        line = line_of(agree, mean, ratio, limits)
    if not agree.any():
        refuse(fit, _ANSWER)
    return Agreement(agree, line)


def _apart(own: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the largest error of a row's probabilities, in sd of the event."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(own - known) / np.sqrt(np.maximum(known * (1 - known), 0.0))
    return np.asarray(np.where(own == known, 0.0, error).max(axis=1))


def probabilities_agree(own: Assignments, known: Assignments, limits: Limits) -> np.ndarray:
    """Compare rows by their probabilities, whose tails are compared as normal scores."""
    near = _apart(own.probability, known.probability) <= limits.mean
    tails = limits.scores_agree(_scores(own.probability), _scores(known.probability)).all(axis=1)
    return np.asarray(near & tails)


def _scores(p: np.ndarray) -> np.ndarray:
    """Return probabilities (rows, K) as normal scores, those near 1 by what the others have."""
    others = np.stack([np.delete(p, k, axis=1).sum(axis=1) for k in range(p.shape[1])], axis=1)
    return np.asarray(np.where(p < 0.5, scipy.special.ndtri(p), -scipy.special.ndtri(np.minimum(others, 1.0))))


def assignments(
    model: Latent, params: Params, data: Arrays, function: Callable[[Params, Arrays], object] | None = None
) -> Assignments | Latents:
    """Average the latent variables' distribution given the parameters over draws of these, shape (chain, draw, ...).

    The labels of components must be in the same order in all draws. Another ``function`` of parameters and data may
    take the place of ``model.component_probabilities``. Where the probabilities of all draws do not fit into memory,
    ArviZ gets the means of batches of draws. Raises `NumericalError` where a draw gives a row what are no numbers.
    """
    chains, draws = np.shape(next(iter(params.values())))[:2]
    held, squares, origin, batches = np.empty(0), np.zeros(1), np.zeros(1), draws
    for some, values in in_chunks(model, flat(params), data, function):
        if not some.start:
            batches, origin = _batches(chains, draws, values[0].size), values[0]
            held = np.zeros((chains * batches, *values.shape[1:]))
        batch = np.arange(some.start, some.stop) * batches // draws
        starts = np.flatnonzero(np.diff(batch, prepend=-1))
        held[batch[starts]] += np.add.reduceat(values, starts, axis=0)
        squares = squares + np.sum(np.square(values - origin), axis=0)
    held *= batches / draws
    of_chains = held.reshape(chains, batches, *held.shape[1:])
    if held.ndim == 3:
        return Assignments.of_draws(of_chains)
    mean, mcse = held.mean(axis=0), diagnostics.mcse(of_chains)
    total = chains * draws
    variance = (squares / total - np.square(mean - origin)) * (total / (total - 1) if total > 1 else np.nan)
    return Latents(mean, np.sqrt(np.maximum(variance, 0.0)), mcse)


def _batches(chains: int, draws: int, cells: int) -> int:
    """Return into how many batches of equal size the draws of each chain are put: as many as memory allows."""
    divisors = (size for size in range(1, draws + 1) if draws % size == 0)
    return next((draws // size for size in divisors if chains * (draws // size) * cells <= _HELD), 1)


def _names_of_rows(model: Latent, data: Data) -> dict[str, np.ndarray]:
    """Return the names of items or documents, where rows have any: a file need not hold them in order."""
    axis = model.inputs.row_names
    return {} if axis is None or axis not in data else {axis: data[axis]}


def _frame(model: Latent, data: Data, assigned: Assignments | Latents, shown: Any = True) -> pd.DataFrame:
    if isinstance(assigned, Latents):
        return by_row({"mean": assigned.mean, "sd_of_means": assigned.sd_of_means, "mcse_mean": assigned.mcse}, data)
    axis, numbered = exchangeable_axis(model) or model.component_axis, np.arange(1, assigned.probability.shape[1] + 1)
    labels, hidden = np.asarray(model.coords(data).get(axis, numbered)), assigned.impossible
    component = labels[assigned.label]
    component = (
        component.astype(object) if hidden.any() and component.dtype.kind == "U" else component
    )  # NaN is no text
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


def by_row(columns: Params, data: Data, axis: str | None = None, labels: Any = None) -> pd.DataFrame:
    """Make a table of columns of shape (rows,), or of shape (rows, labels) along an axis; its index names both."""
    import pandas as pd

    rows = pd.Index(data.numbers, name="row")
    index = rows if axis is None else pd.MultiIndex.from_product([rows, labels], names=["row", axis])
    return pd.DataFrame({name: np.ravel(values) for name, values in columns.items()}, index=index)


def labelled(name: str, labels: Iterable[Any], values: np.ndarray) -> dict[str, np.ndarray]:
    """Call the first columns of ``values``, shape (rows, columns), by the labels: ``p[1]``, ``p[2]``, ..."""
    return {f"{name}[{label}]": column for label, column in zip(labels, values.T, strict=False)}
