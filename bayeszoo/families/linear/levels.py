"""Features of a linear predictor that can vary alone, some of which have levels: the columns of each."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bayeszoo.data.inputs.formula import coding_of, levels_of
from bayeszoo.data.inputs.levels import by_feature, products
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.linear_predictor import Feature


def separate(columns_used: np.ndarray, data: Arrays) -> dict[str, Feature]:
    """Return the features that have some of the columns, alone or in an interaction, and that can vary alone."""
    names, levels = data["feature"].tolist(), levels_of(data)
    of_products, coding = products(names), coding_of(data)
    used = {j for i in columns_used.tolist() for j in of_products.get(i, [i])}
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
