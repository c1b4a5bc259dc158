"""Features of a linear predictor, some of which have levels: the columns of each, and rows at which it varies alone."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from bayeszoo.data.inputs.formula import coding_of, levels_of
from bayeszoo.data.inputs.levels import by_feature, products
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
    """Return the features that the model uses, alone or in an interaction.

    Of a formula those are left out that cannot vary alone, as ``x`` beside ``log(x)``.
    """
    names, levels = data["feature"].tolist(), levels_of(data)
    of_products, coding = products(names), coding_of(data)
    used = {j for i in model.used(data).tolist() for j in of_products.get(i, [i])}
    columns = {name: Feature([i], []) for i, name in enumerate(names) if i not in of_products}
    for name, places in by_feature(names, coding.names if coding else {}).items():
        if len(levels.get(name, ())) == len(places) + 1:
            columns = {key: each for key, each in columns.items() if each.places[0] not in places}
            columns[name] = Feature(places, levels[name])
    in_order = dict(sorted(columns.items(), key=lambda item: item[1].places))
    alone = {name: each for name, each in in_order.items() if used & {*each.places}}
    made_of = [getattr(coding, "made_of", {}).get(name, []) for name in names]
    shared = Counter(part for each in alone.values() for part in {part for i in each.places for part in made_of[i]})
    return {name: each for name, each in alone.items() if all(shared[part] < 2 for part in made_of[each.places[0]])}
