"""Which weights of a linear model the data identify, and of the others which sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

DEPENDENT = 1e-10
"""A column of which the columns before it leave less than this share is a sum of them."""
MOST_SUMS = 5
"""Sums that a note lists, and weights in each."""


@dataclass(frozen=True)
class Identified:
    """Sums of weights ``coefficients[r] @ w``, (R, T), through which alone the likelihood depends on w.

    ``independent`` (R,) are columns none of which is a sum of those before it.
    """

    independent: np.ndarray
    coefficients: np.ndarray

    def texts(self, terms: list[str]) -> list[str]:
        """Write the sums: ``w[x1] + 2 w[x3]``."""
        return [_text(row, terms, first) for row, first in zip(self.coefficients, self.independent, strict=True)]

    def note(self, terms: list[str]) -> str:
        """Say in one line what is identified; nothing when every weight is."""
        if len(self.independent) == self.coefficients.shape[1]:
            return ""
        count = f"the data identify {len(self.independent)} of {len(terms)} combinations of weights"
        sums = [text for text, row in zip(self.texts(terms), self.coefficients, strict=True) if np.sum(row != 0) > 1]
        free = [f"w[{terms[j]}]" for j in np.flatnonzero(~self.coefficients.any(axis=0))]
        readable = len(sums) <= MOST_SUMS and np.max(np.sum(self.coefficients != 0, axis=1), initial=0) <= MOST_SUMS
        if not readable:
            return f"{count}: the prior alone says the rest"
        only = [f"only the sum{'s' * (len(sums) > 1)} {', '.join(sums)}"] if sums else []
        nothing = [f"nothing about {', '.join(free[:MOST_SUMS])}"] if free else []
        return f"{count}: of some weights {' and '.join([*only, *nothing])}; the prior alone says the rest"


def identify(design: np.ndarray, units: np.ndarray) -> Identified:
    """Find the sums of weights that are identified, from rows (R, T) with the standardized design's sums of products.

    Columns, of units (T,), are taken in turn: one that is a sum of those before it, sum_i c_i x_i, adds c_i times its
    weight to that of each x_i.
    """
    independent: list[int] = []
    basis = np.zeros((len(design), 0))
    coefficients = np.zeros((design.shape[1], design.shape[1]))
    for j, column in enumerate(design.T):
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        if np.linalg.norm(rest) > DEPENDENT * np.linalg.norm(column):
            coefficients[len(independent), j] = 1.0
            independent.append(j)
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
        elif independent:
            relation = scipy.linalg.lstsq(design[:, independent], column)[0] * (units[j] / units[independent])
            share = np.abs(relation) * np.linalg.norm(design[:, independent] * units[independent], axis=0)
            coefficients[: len(independent), j] = np.where(share > 1e-8 * np.max(share), relation, 0.0)
    return Identified(np.array(independent, dtype=int), coefficients[: len(independent)])


def _text(row: np.ndarray, terms: list[str], first: int) -> str:
    """Write one sum, its own column first."""
    others = [j for j in np.flatnonzero(row) if j != first]
    parts = [f"w[{terms[first]}]"]
    for j in others:
        size = "" if np.isclose(abs(row[j]), 1.0, rtol=1e-9) else f"{abs(row[j]):.6g} "
        parts.append(f"{'+' if row[j] > 0 else '-'} {size}w[{terms[j]}]")
    return " ".join(parts)
