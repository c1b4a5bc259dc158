"""Which labels data have, and whether they go with those of a fit or a model that was updated."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from bayeszoo.data.inputs import Arrays, Inputs
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError

OUTCOMES = "outcomes"
"""Under this name data, and a model that they updated, keep the labels of a binary outcome that are 0 and 1."""
_ZERO_ONE = ("0", "1")


def outcomes_of(data: Arrays) -> tuple[str, str]:
    """Return which label of a binary outcome is 0, empty where that is not known, and which is 1."""
    zero, one = getattr(data, "reading", {}).get(OUTCOMES, _ZERO_ONE)
    return zero, one


def labels_of(inputs: Inputs, data: Arrays, before: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the labels along each axis, and those of a binary outcome in these data or in those before them."""
    labels = {name: tuple(map(str, data[name])) for name in inputs.coords}
    if "positive" not in inputs.options:
        return labels
    both = before.get(OUTCOMES, _ZERO_ONE), outcomes_of(data)
    return labels | {OUTCOMES: max(both, key=lambda pair: (pair != _ZERO_ONE, all(pair)))}


def refuse_other_outcomes(known: tuple[str, ...], data: Arrays) -> None:
    """Refuse labels that are 1 where they were 0, or that were not there; 0 and 1 go with any other labels."""
    here = outcomes_of(data)
    alike = here[1] == known[1] and (here[0] == known[0] or "" in (here[0], known[0]))
    if alike or (_ZERO_ONE in (here, known) and here[0] != known[1] and here[1] != known[0]):
        return
    said = " and ".join(f"{shown(label)} is {code}" for code, label in enumerate(known) if label)
    now = " and ".join(f"{shown(label)} is {code}" for code, label in enumerate(here) if label)
    raise InputError(f"in these rows {now}, but before {said}", hint=f"use --positive {shlex.quote(known[1])}")


def refuse_other_labels(labels: Mapping[str, tuple[str, ...]], data: Arrays) -> None:
    """Refuse data with other labels than those that the entries of an updated model's fields belong to."""
    for axis, known in labels.items():
        if axis == OUTCOMES:
            refuse_other_outcomes(known, data)
        elif tuple(data[axis]) != known:
            present, expected = (", ".join(map(shown, labels[:5])) for labels in (data[axis].tolist(), known))
            hint = "name all of them, in that order, with the option that reading has for it"
            raise InputError(f"the data have {axis} {present}, but the prior is for {expected}", hint=hint)
