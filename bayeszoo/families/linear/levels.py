"""Features of a linear predictor that can vary alone, with or without levels, and their columns."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bayeszoo.data.inputs.features.formula import coding_of, levels_of
from bayeszoo.data.inputs.features.levels import by_feature, products
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.capabilities.linear_predictor import Feature


def separate(columns_used: np.ndarray, data: Arrays) -> dict[str, Feature]:
    """Return the features that can vary alone and have a used column, alone or in an interaction."""
    names, levels = data["feature"].tolist(), levels_of(data)
    of_products, coding = products(names), coding_of(data)
    used = {j for i in columns_used.tolist() for j in of_products.get(i, [i])}
    columns = {name: Feature([i], []) for i, name in enumerate(names) if i not in of_products}
    for name, places in by_feature(names, coding.names if coding else {}).items():
        if len(levels.get(name, ())) == len(places) + 1:
            columns = {key: feature for key, feature in columns.items() if feature.places[0] not in places}
            columns[name] = Feature(places, levels[name])
    in_order = dict(sorted(columns.items(), key=lambda item: item[1].places))
    features = {name: feature for name, feature in in_order.items() if used & {*feature.places}}
    parts = [getattr(coding, "made_of", {}).get(name, []) for name in names]
    shared = Counter(
        part for feature in features.values() for part in {part for i in feature.places for part in parts[i]}
    )
    return {name: feature for name, feature in features.items() if all(shared[p] < 2 for p in parts[feature.places[0]])}
