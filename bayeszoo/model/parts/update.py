"""Streaming: the posterior of one batch is the prior of the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any

import numpy as np

from bayeszoo.data.inputs.features.formula import FormulaCoding, coding_of
from bayeszoo.data.inputs.features.levels import asked_levels
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import Options, Statistics
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.capabilities import Conjugate
from bayeszoo.model.fields import hyperparameters


def update(model: Model, batch: object, **options: object) -> Model:
    """Return the model whose prior is this model's posterior given a batch.

    Parameters
    ----------
    model : Model
        Must be `Conjugate`.
    batch : Data or anything that `read` takes
        New rows.
    **options
        Options of `read`.

    Raises
    ------
    InputError
        When the model is not conjugate, the batch does not fit its inputs, or has other labels than an earlier batch.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> coin = bz.find("beta_bernoulli")()
    >>> print(bz.update(bz.update(coin, [1, 1]), [0]))
    beta_bernoulli(a=3, b=2)
    """
    conjugate = _require_conjugate(model)
    data = _batch(model, batch, options)
    return conjugate.updated(conjugate.statistics(data)).labelled(data, conjugate.labels)


def stream(model: Model, batches: Iterable[object], forget: float = 1.0, **options: object) -> Iterator[Model]:
    """Yield, after each batch, the model whose prior is the posterior of all rows so far.

    Parameters
    ----------
    model : Model
        Must be `Conjugate`. The weight of its prior never decays.
    batches : iterable of Data or anything that `read` takes
        Each is read when the next model is requested.
    forget : float
        Factor of the weight of earlier rows at each new batch: after ``age`` batches a row counts ``forget ** age``
        times. In (0, 1]; at 1 nothing is forgotten, and the order of the rows does not matter.
    **options
        Options of `read`.

    Raises
    ------
    InputError
        When the model is not conjugate, ``forget`` is not in (0, 1], or a batch does not fit the model or has other
        labels than the first.
    NumericalError
        When the model's statistics cannot be weighted.

    Notes
    -----
    The likelihood of a batch of age ``age`` has the power ``forget ** age``, as in the power-prior filter of
    Smith (1979): with equal batches the rows count as ``1 / (1 - forget)`` batches in the long run.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> coin = bz.find("beta_bernoulli")()
    >>> [str(model) for model in bz.stream(coin, [[1, 1], [0]], forget=0.5)]
    ['beta_bernoulli(a=3, b=1)', 'beta_bernoulli(a=2, b=2)']
    """
    conjugate = _require_conjugate(model)
    if not (isinstance(forget, int | float) and 0 < forget <= 1):
        raise InputError(f"forget must be a number in (0, 1], got {forget!r}", "wrong_type", hint="1 forgets nothing")
    if isinstance(batches, str | PathLike | Mapping):
        raise InputError("batches must be a sequence of batches", "not_batches", hint="put a single one into a list")
    return _stream(conjugate, batches, float(forget), options)


def _stream(model: Conjugate[Any], batches: Iterable[object], forget: float, options: Options) -> Iterator[Model]:
    accumulated = None
    for batch in batches:
        data = _batch(model, batch, options)
        stats = model.statistics(data)
        if accumulated is None:
            require_weights(model, stats)
        model = model.labelled(data, model.labels)  # the other batches must have the same labels
        accumulated = stats if accumulated is None else accumulated.discounted(forget) + stats
        yield model.updated(accumulated).labelled(data, model.labels)


def _batch(model: Model, batch: Any, options: Options) -> Data:
    """Read a batch; refuse options whose meaning may change between batches."""
    data = read(model, batch, **options)
    coding = coding_of(data)
    if isinstance(coding, FormulaCoding):
        raise InputError(
            "a formula needs all rows together, and a batch has only some",
            "needs_rows",
            hint="name the features instead",
        )
    given_levels = asked_levels(data.reading.get("options", {}).get("levels", {}))
    if coding is not None and (unknown := next((name for name in coding.levels if name not in given_levels), None)):
        hint = f"give levels={{{unknown!r}: [...]}}"
        raise InputError(
            f"the levels of column {shown(unknown)} must be known before the first batch",
            "labels_must_be_given",
            hint=hint,
        )
    return data


def require_weights(model: Conjugate[Any], stats: Statistics) -> None:
    """Require that counting rows twice equals repeating them: a mean among the statistics, say, must not double."""
    posteriors = (model.updated(s) for s in (stats + stats, stats.discounted(2.0)))
    pairs = zip(
        *([np.asarray(getattr(posterior, name)) for name in hyperparameters(model)] for posterior in posteriors),
        strict=True,
    )
    if any(np.max(np.abs(pooled - doubled)) > 1e-9 * np.max(np.abs(pooled)) for pooled, doubled in pairs):
        differs = "discounted(2) differs from the statistics of the same rows taken twice"
        raise NumericalError(f"{type(stats).__name__}.{differs}", "bad_model_step")


def _require_conjugate(model: Model) -> Conjugate[Any]:
    require_instance(model)
    if not isinstance(model, Conjugate):
        raise InputError(
            f"{model.name} has no closed-form posterior to update", "no_closed_form", hint="see `bayeszoo list`"
        )
    return model
