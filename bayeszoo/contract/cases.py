"""On which data, and with which fields, a model is checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.data.read import Data, example, read
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Sufficient
from bayeszoo.model.fields import moved

if TYPE_CHECKING:
    from bayeszoo.contract.case import Case

MOST_COST = 5_000
"""Cost of a step above which the identities are checked on an excerpt of the data."""


def case_of(model: Model | type[Model], data: Any = None, seed: int = 0) -> Case:
    """Pair a model with the data that its identities are checked on; a class is moved off its defaults."""
    from bayeszoo.contract.case import Case  # which imports PyMC

    if data is None:
        made = off_default(model) if isinstance(model, type) else model
        return Case(made, read(made, made.simulate(np.random.default_rng(seed), 20)[1]), seed)
    data = _part(model, read(model, data))
    return Case(off_default(model, data) if isinstance(model, type) else model, data, seed)


def _part(model: Any, data: Data) -> Data:
    """Return so much of the data that every number of the model's declaration can be differentiated; mostly all."""
    kind = model() if isinstance(model, type) else model
    return replace(read(model, kind.excerpt(data)), source=data.source) if kind.cost(data) > MOST_COST else data


def cases_of(model: Model | type[Model], data: Any = None, seed: int = 0) -> list[Case]:
    """Return every case that the identities are checked on."""
    first = case_of(model, data, seed)
    if data is not None:
        return [first]
    others = [case_of(first.model, other, seed) for other in first.model.inputs.other_forms(first.data)]
    real = [example(model, item.name) for item in model.examples]
    return [first, *others, *(case_of(model, one, seed) for one in real if suits(model, one))]


def suits(model: Model | type[Model], data: Data) -> bool:
    """Say whether the data have as many labels as an instance has hyperparameters; a class is made to suit them."""
    if isinstance(model, type):
        return True
    try:
        return not isinstance(model, Sufficient) or model.statistics(data) is not None
    except InputError:
        return False


def off_default(model: type[Model], data: Data | None = None) -> Model:
    """Make a model whose fields all differ from their defaults (of ``data``, the weak ones) and from each other."""
    base = model() if data is None else model.weak(data)
    arrays = base.simulate(np.random.default_rng(0), 1)[1] if data is None else data
    return cast(Model, moved(base, base.sizes(arrays)))


def real_data(model: Any) -> Data | None:
    """Return the first example of a model, unless it does not suit the model's fields."""
    return example(model) if model.examples and suits(model, example(model)) else None
