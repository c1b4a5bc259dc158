"""Streaming: the posterior of one batch is the prior of the next."""

from __future__ import annotations

from typing import Any

from bayeszoo.data import read
from bayeszoo.errors import InputError
from bayeszoo.model import Conjugate, Model


def update(model: Model, batch: Any, **options: Any) -> Model:
    """Return the model whose prior is this model's posterior given a batch.

    Parameters
    ----------
    model : Model
        Must be `Conjugate`.
    batch : Data or anything that `read` takes
        More rows.
    **options
        Of `read`.

    Raises
    ------
    InputError
        When the model is not conjugate, or the batch does not suit it.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> coin = bz.find("beta_bernoulli")()
    >>> bz.update(bz.update(coin, [1, 1]), [0]) == bz.update(coin, [1, 1, 0])
    True
    """
    if not isinstance(model, Conjugate):
        raise InputError(f"{model.name} has no closed-form posterior to go on from", hint="see `bayeszoo list`")
    return model.updated(model.statistics(read(model, batch, **options)))
