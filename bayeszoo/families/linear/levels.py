"""Features of a linear predictor, some of which have levels: the columns of each, and rows at which it varies alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayeszoo.data.inputs.levels import by_feature, levels_of, products
from bayeszoo.families.linear.design import LinearTerms
from bayeszoo.model.base import Values


class Feature(NamedTuple):
    """A feature: the places of its columns in ``X``, and its levels, the reference first; none of one of numbers."""

    places: list[int]
    levels: list[str]

    def rows(self, others: np.ndarray) -> np.ndarray:
        """Return a row at each level, shape (levels, F), where the other features are as in ``others``, shape (F,)."""
        rows = np.tile(others, (len(self.levels), 1))
        rows[:, self.places] = np.eye(len(self.levels))[:, 1:]
        return rows


def features_of(model: LinearTerms, data: Values) -> dict[str, Feature]:
    """Return the features that the model uses, alone or in an interaction."""
    names, levels = data["feature"].tolist(), levels_of(data)
    of_products = products(names)
    used = {j for i in model.used(data).tolist() for j in of_products.get(i, [i])}
    columns = {name: Feature([i], []) for i, name in enumerate(names) if i not in of_products}
    for name, places in by_feature(names).items():
        if len(levels.get(name, ())) == len(places) + 1:
            columns = {key: each for key, each in columns.items() if each.places[0] not in places}
            columns[name] = Feature(places, levels[name])
    in_order = sorted(columns.items(), key=lambda item: item[1].places)
    return {name: each for name, each in in_order if used & {*each.places}}
