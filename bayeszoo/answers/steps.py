"""The steps of a regression tree's function: where it is cut, how often, and the most probable tree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.function import few_draws, function_moments, is_summed, points_of
from bayeszoo.answers.judged import (
    Limits,
    answering,
    is_judged,
    limits_of,
    moments_part,
    reference_of,
    refuse,
    scores_of,
)
from bayeszoo.answers.law import new_rows
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.model.capabilities.cuts import CutTrees, OfCuts, Part
from bayeszoo.model.draws import flat, shape_of
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_ANSWER = "steps of its function"
NO_CUT, DIGITS = "no cut", 6
"""Feature name if there is no first cut, and digits of cuts in the drawing of a tree."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a fit's function, averaged over all trees.

    Attributes
    ----------
    data : Data
        The rows.
    trees : CutTrees
        Cuts, numbers of leaves, and the most probable tree, at each point of a quadrature or draw of the noise.
    weights : numpy.ndarray
        Weights of these points or draws, with sum 1.
    """

    data: Data
    trees: CutTrees
    weights: np.ndarray
    _fit: Fit
    _model: OfCuts
    _draws: tuple[int, int] | None
    """The number of chains, and of draws per chain; None for a quadrature."""

    def average(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the average of values (P, ...) over the points, and its Monte Carlo error; 0 for a quadrature."""
        mean = self.weights @ values
        if self._draws is None:
            return mean, np.zeros_like(mean)
        of_chains = values.reshape(*self._draws, *values.shape[1:])
        return mean, diagnostics.mcse(of_chains, independent=self._fit.has_independent_draws)

    def _probabilities(self, values: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(("probability", "mcse_probability"), self.average(values), strict=True))

    @cached_property
    def function(self) -> pd.DataFrame:
        """The function between neighbouring cuts of a single feature, averaged over all trees.

        The cell's ends ``from`` and ``to``, its ``rows``, ``mean``, ``sd``, ``q025``, ``median`` and ``q975`` of the
        function in it, and ``jump``, the probability that the function jumps at ``to``, with its Monte Carlo error
        ``mcse_jump``. Empty for several features.
        """
        import pandas as pd

        if len(self.data["feature"]) > 1:
            return pd.DataFrame()
        (cuts,) = self._model.cut_places(self.data)
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        rows = np.bincount(np.searchsorted(cuts, self.data["X"][:, 0]), minlength=len(cuts) + 1)
        frame = pd.DataFrame({"from": ends[:-1], "to": ends[1:], "rows": rows})
        inside = np.append(cuts, np.nextafter(cuts[-1], np.inf))  # rows at a cut are left of it
        jump, error = self.average(self.trees.anywhere)
        return frame.assign(**self._function_at(inside), jump=[*jump, np.nan], mcse_jump=[*error, np.nan])

    def _function_at(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return moments and quantiles of the function at values (n,) of the single feature."""
        places, _ = new_rows(self._model, self._fit.like, {"X": x[:, None], "feature": self.data["feature"]}, {})
        moments = function_moments(self._fit, self._model, places)
        for name in ("prior_share", "withheld"):
            moments.pop(name)
        return moments

    @property
    def at_steps(self) -> pd.DataFrame:
        """The function at each step of the most probable tree of one feature, from left to right.

        The step's ends ``from`` and ``to``, its ``rows``, the value ``at`` of its middle row, and the function there,
        averaged over all trees.
        """
        import pandas as pd

        ends = [-np.inf, *_cuts_of(self.trees.tree), np.inf]
        x, columns = np.sort(self.data["X"][:, 0]), []
        for first, last in pairwise(ends):
            inside = x[(x > first) & (x <= last)]
            middle = inside[(len(inside) - 1) // 2] if len(inside) else (first + last) / 2
            columns.append({"from": first, "to": last, "rows": len(inside), "at": middle})
        frame = pd.DataFrame(columns, index=pd.RangeIndex(1, len(columns) + 1, name="step"))
        return frame.assign(**self._function_at(frame["at"].to_numpy()))

    @property
    def jumps(self) -> pd.DataFrame:
        """The probability that the function is cut at each place, whatever the other cuts.

        ``feature``, ``cut``, ``probability`` and its Monte Carlo error ``mcse_probability``, 0 for an exact fit.
        Cuts are ascending, feature by feature. With a single feature it is the probability of a jump between the two
        neighbouring values of the rows, and the sum is the expected number of jumps.
        """
        import pandas as pd

        names = np.array(self.data["feature"], dtype=object)
        columns = {"cut": self.trees.cut, **self._probabilities(self.trees.anywhere)}
        return pd.DataFrame({"feature": names[self.trees.feature], **columns})

    @property
    def first_cuts(self) -> pd.DataFrame:
        """The probability of each first cut, the most probable first, and of no cut at all, whose place is NaN."""
        import pandas as pd

        names = np.array(self.data["feature"], dtype=object)
        first = self.trees.first
        columns = {
            "feature": [*names[self.trees.feature], NO_CUT],
            "cut": [*self.trees.cut, np.nan],
            **self._probabilities(np.c_[first, np.maximum(0.0, 1 - first.sum(axis=1))]),
        }
        frame = pd.DataFrame(columns).sort_values("probability", ascending=False, kind="stable")
        return frame.reset_index(drop=True)

    @property
    def leaves(self) -> pd.DataFrame:
        """The probability of each number of leaves."""
        import pandas as pd

        index = pd.Index(np.arange(1, self.trees.leaves.shape[1]), name="leaves")
        return pd.DataFrame(self._probabilities(self.trees.leaves[:, 1:]), index=index)

    @property
    def tree_probability(self) -> tuple[float, float]:
        """The probability of the most probable tree, and its Monte Carlo error."""
        probability, error = self.average(self.trees.tree_probability)
        return float(probability), float(error)

    @property
    def most_probable(self) -> float:
        """An upper bound of the probability of any tree: the average of the highest at each point of the noise."""
        return float(self.average(self.trees.most_probable)[0])

    @property
    def drawing(self) -> str:
        """The most probable tree, a line per node: conditions, and at leaves the mean and sd of the function."""
        return "\n".join(_drawn(self.trees.tree, list(map(str, self.data["feature"])), f"all {self.data.rows} rows"))


def steps(tree: xr.DataTree) -> Steps:
    """Return where the function of a fit is cut: averaged over all trees, and by the most probable one.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for ``regression_tree``. Exact fits are averaged over the noise by quadrature, others over
        about 400 draws.

    Returns
    -------
    Steps

    Raises
    ------
    Untrustworthy
        When the fit failed its gate; or parameters of an approximation are off, and steps or probabilities disagree
        with draws of the posterior: they are judged together, as parts of one function.
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
    fit = answering(Fit(tree), _ANSWER)
    model = fit.model
    if not isinstance(model, OfCuts):
        hint = "bz.function_values gives the values of any function"
        raise InputError(f"{model.name} has no function with steps", "no_capability", hint=hint)
    own = _steps(fit, model)
    if is_judged(fit) and not _agree(own, _steps(reference_of(fit), model), limits_of(fit)):
        refuse(fit, _ANSWER)
    return own


def _steps(fit: Fit, model: OfCuts) -> Steps:
    points, weights, shape = _points(fit)
    return Steps(fit.data, model.cut_trees(points, weights, fit.like), weights, fit, model, shape)


def _agree(own: Steps, reference: Steps, limits: Limits) -> bool:
    """Return whether all probabilities, the most probable tree and the function agree with the posterior's."""
    own_nodes, true_nodes = (list(answer.trees.tree.nodes()) for answer in (own, reference))
    if [(part.feature, part.cut) for part in own_nodes] != [(part.feature, part.cut) for part in true_nodes]:
        return False
    moments = (np.array([(part.mean, part.sd) for part in nodes]).T for nodes in (own_nodes, true_nodes))
    if not limits.moments_agree(*((means, sds) for means, sds in moments)).all():
        return False
    averages = (answer.average(_probabilities(answer.trees)) for answer in (own, reference))
    if not limits.scores_agree(*(scores_of(p, np.nan_to_num(error)) for p, error in averages)).all():
        return False
    return own.function.empty or bool(moments_part(own.function, reference.function, limits)[0].agree.all())


def _probabilities(trees: CutTrees) -> np.ndarray:
    """Return all probabilities at the points, (P, ...)."""
    single = np.stack([trees.tree_probability, trees.most_probable], axis=1)
    return np.concatenate([trees.anywhere, trees.first, trees.leaves[:, 1:], single], axis=1)


def _points(fit: Fit) -> tuple[dict[str, np.ndarray], np.ndarray, tuple[int, int] | None]:
    """Return points of a quadrature and their weights, or some draws, their weights, and the shape (chains, draws)."""
    if is_summed(fit):
        points, weights = points_of(fit)
        return {**points}, weights, None
    draws = few_draws(fit)
    shape = shape_of(draws)
    return flat(draws), np.full(size := math.prod(shape), 1 / size), shape


def _cuts_of(part: Part) -> Iterator[float]:
    """Yield the cuts of a tree of a single feature in ascending order."""
    if part.sides:
        yield from _cuts_of(part.sides[0])
        yield part.cut
        yield from _cuts_of(part.sides[1])


def _with_sd(mean: float, sd: float) -> str:
    """Write a mean to the place of the second digit of its sd."""
    decimals = max(0, 1 - math.floor(math.log10(sd))) if sd > 0 else DIGITS
    return f"{mean:.{decimals}f} (sd {sd:.2g})"


def _drawn(part: Part, names: list[str], head: str, before: str = "") -> Iterator[str]:
    """Yield a line per node of a tree, children below their node."""
    noun = "row" if part.rows == 1 else "rows"
    value = "" if part.sides else f": {_with_sd(part.mean, part.sd)}, {part.rows} {noun}"
    yield f"{head}{value}"
    for k, (side, sign) in enumerate(zip(part.sides, ("<=", ">"), strict=False)):
        is_last = k == 1
        line = f"{before}{'└─ ' if is_last else '├─ '}{names[part.feature]} {sign} {part.cut:.{DIGITS}g}"
        yield from _drawn(side, names, line, before + ("   " if is_last else "│  "))
