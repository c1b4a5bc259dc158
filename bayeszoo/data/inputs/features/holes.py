"""Features with empty cells that are to be drawn: which rows stay, and which features are refused by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayeszoo.data.inputs.features.levels import Feature
from bayeszoo.data.table.kept import rows_kept
from bayeszoo.data.table.table import Column, complete
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

HOLES = "holes"
"""How features are read whose empty cells stay empty, NaN in the arrays."""
TAKEN = frozenset({"target", "features", "levels", "positive", "classes"})
"""Options that go with empty cells."""
DROP = "leave these rows out with --missing drop, or leave the column out"
FEW = 10
"""Most distinct values of a column of whole numbers that is taken for counts or grades."""


def refuse_options(chosen: Options) -> None:
    """Refuse options that make further columns of the features, or of earlier rows: these follow from drawn cells."""
    if other := sorted(chosen.keys() - TAKEN):
        problem = f"--{other[0]} does not go with --missing impute, which takes features as they are"
        raise InputError(problem, "conflicting_options", hint=f"leave it out, or use --missing drop with --{other[0]}")


def with_holes(
    columns: Sequence[Column], arrays: Sequence[np.ndarray], features: Sequence[Feature]
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Return the arrays of the rows that have an outcome, features with their empty cells, and a note on other rows.

    The features are the last of the columns.
    """
    known = len(columns) - len(features)
    first, notes = complete(list(columns[:known]), arrays[:known], "drop")
    numbers = rows_kept(notes)
    kept = np.arange(len(arrays[0])) if numbers is None else numbers - 1
    for feature in features:
        _refuse(feature, kept)
    return [*first, *(values[kept] for values in arrays[known:])], notes


def _refuse(feature: Feature, kept: np.ndarray) -> None:
    """Refuse a feature with empty cells that holds no real numbers."""
    column, seen = feature.column, feature.values[kept][~np.isnan(feature.values[kept])]
    if len(seen) == len(kept):
        return
    if not len(seen):
        raise column.error("has no values", "no_data", hint="leave it out, or name other columns")
    if feature.levels is not None:
        kind = "levels"
    elif (distinct := len(np.unique(seen))) <= 2:
        kind = f"{distinct} value{'s' * (distinct > 1)}, as yes and no"
    elif distinct <= FEW and (seen == np.round(seen)).all():
        kind = f"{distinct} whole numbers, as counts or grades"
    else:
        return
    problem = f"has empty cells and holds {kind}: only cells of real numbers can be drawn"
    raise column.error(problem, "not_imputed", hint=DROP)
