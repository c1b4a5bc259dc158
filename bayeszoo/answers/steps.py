"""The steps of a function that trees of cuts make: where it is cut, how often, and the most probable tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.function import few_points_of, function_moments
from bayeszoo.answers.law import new_rows
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.model.cuts import CutTrees, OfCuts, Part
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

NO_CUT, DIGITS = "no cut", 4
"""What stands for no first cut, and digits of numbers in the drawing of a tree."""


@dataclass(frozen=True, eq=False)
class Steps:
    """What a fit says of a function's steps, over all trees.

    Attributes
    ----------
    data : Data
        The rows.
    trees : CutTrees
        Cuts, numbers of leaves, and the most probable tree, as arrays.
    """

    data: Data
    trees: CutTrees
    _fit: Fit
    _model: OfCuts

    @cached_property
    def function(self) -> pd.DataFrame:
        """The function between neighbouring cuts of one feature, over all trees.

        ``from`` and ``to`` of each cell, its ``rows``, ``mean``, ``sd``, ``q025``, ``median`` and ``q975`` of the
        function there, and ``jump``, the probability that it jumps at ``to``. With several features it is empty.
        """
        import pandas as pd

        if len(self.data["feature"]) > 1:
            return pd.DataFrame()
        (cuts,) = self._model.cut_places(self.data)
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        rows = np.bincount(np.searchsorted(cuts, self.data["X"][:, 0]), minlength=len(cuts) + 1)
        frame = pd.DataFrame({"from": ends[:-1], "to": ends[1:], "rows": rows})
        inside = np.append(cuts, np.nextafter(cuts[-1], np.inf))  # rows at a cut are left of it
        return frame.assign(**self._function_at(inside), jump=[*self.trees.anywhere, np.nan])

    def _function_at(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return moments and quantiles of the function at places (n,) of the one feature."""
        places, _ = new_rows(self._model, self._fit.like, {"X": x[:, None], "feature": self.data["feature"]}, {})
        moments = function_moments(self._fit, self._model, places)
        for name in ("prior_share", "withheld"):
            moments.pop(name)
        return moments

    @property
    def at_steps(self) -> pd.DataFrame:
        """The function at each step of the most probable tree of one feature, from left to right.

        ``from``, ``to`` and ``rows`` of the step, ``at``, its middle row, and the function there over all trees.
        """
        import pandas as pd

        ends = [-np.inf, *_cuts_of(self.trees.tree), np.inf]
        x, columns = np.sort(self.data["X"][:, 0]), []
        for first, last in pairwise(ends):
            own = x[(x > first) & (x <= last)]
            at = own[(len(own) - 1) // 2] if len(own) else (first + last) / 2
            columns.append({"from": first, "to": last, "rows": len(own), "at": at})
        frame = pd.DataFrame(columns, index=pd.RangeIndex(1, len(columns) + 1, name="step"))
        return frame.assign(**self._function_at(frame["at"].to_numpy()))

    @property
    def jumps(self) -> pd.DataFrame:
        """The probability that the function is cut at each place, whatever else is cut: ``feature``, ``cut``.

        Places are ascending, feature by feature. With one feature it is the probability of a jump between the two
        values of the rows that the cut lies between, and the sum is the expected number of jumps.
        """
        import pandas as pd

        names = np.array(self.data["feature"], dtype=object)
        columns = {"cut": self.trees.cut, "probability": self.trees.anywhere}
        return pd.DataFrame({"feature": names[self.trees.feature], **columns})

    @property
    def first_cuts(self) -> pd.DataFrame:
        """The probability of each first cut, the most probable first, and of no cut at all, whose place is NaN."""
        import pandas as pd

        names = np.array(self.data["feature"], dtype=object)
        none = max(0.0, 1 - float(self.trees.first.sum()))
        columns = {
            "feature": [*names[self.trees.feature], NO_CUT],
            "cut": [*self.trees.cut, np.nan],
            "probability": [*self.trees.first, none],
        }
        frame = pd.DataFrame(columns).sort_values("probability", ascending=False, kind="stable")
        return frame.reset_index(drop=True)

    @property
    def leaves(self) -> pd.DataFrame:
        """The probability of each number of leaves."""
        import pandas as pd

        index = pd.Index(np.arange(1, len(self.trees.leaves)), name="leaves")
        return pd.DataFrame({"probability": self.trees.leaves[1:]}, index=index)

    @property
    def drawing(self) -> str:
        """The most probable tree, a line a part: conditions, and at leaves the mean and sd of the function there."""
        return "\n".join(_drawn(self.trees.tree, list(map(str, self.data["feature"])), f"all {self.data.rows} rows"))


def steps(tree: xr.DataTree) -> Steps:
    """Say where the function of a fit is cut: over all trees, and by the most probable one.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned of ``regression_tree``. Exact fits are averaged over the noise by quadrature, others over
        some 400 draws.

    Returns
    -------
    Steps

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no steps.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("regression_tree")
    >>> data = bz.read(M, {"x": [1.0, 2, 3, 4, 5, 6], "y": [0.1, 0.0, -0.1, 5.0, 5.1, 4.9]})
    >>> answer = bz.steps(bz.fit(M.weak(data), data, "exact", seed=1))
    >>> answer.first_cuts.round(2).iloc[0].tolist()
    ['x', 3.5, 0.75]
    >>> answer.jumps["probability"].round(2).tolist()
    [0.11, 0.13, 0.85, 0.13, 0.11]
    """
    fit = require_shown(tree, "steps of its function")
    model, data = fit.model, fit.like
    if not isinstance(model, OfCuts):
        hint = "bz.function_values gives the values of any function"
        raise InputError(f"{model.name} has no function with steps", "no_capability", hint=hint)
    points, weights = few_points_of(fit)
    return Steps(fit.data, model.cut_trees(points, weights, data), fit, model)


def _cuts_of(part: Part) -> Iterator[float]:
    """Go through the cuts of a tree of one feature, ascending."""
    if part.sides:
        yield from _cuts_of(part.sides[0])
        yield part.cut
        yield from _cuts_of(part.sides[1])


def _drawn(part: Part, names: list[str], head: str, before: str = "") -> Iterator[str]:
    """Yield a line a part of a tree, the sides of a part below it."""
    noun = "row" if part.rows == 1 else "rows"
    value = "" if part.sides else f": {part.mean:.{DIGITS}g} (sd {part.sd:.2g}), {part.rows} {noun}"
    yield f"{head}{value}"
    for k, (side, sign) in enumerate(zip(part.sides, ("<=", ">"), strict=False)):
        is_last = k == 1
        line = f"{before}{'└─ ' if is_last else '├─ '}{names[part.feature]} {sign} {part.cut:.{DIGITS + 2}g}"
        yield from _drawn(side, names, line, before + ("   " if is_last else "│  "))
