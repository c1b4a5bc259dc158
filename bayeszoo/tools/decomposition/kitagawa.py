"""The difference of the rates of two groups, decomposed into a part due to shares and a part due to rates."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

import lazy_loader
import numpy as np

from bayeszoo.data.by import FORM, read_by
from bayeszoo.data.inputs import Binary
from bayeszoo.data.inputs.labels import texts_of
from bayeszoo.data.read import Data
from bayeszoo.data.table.cells import MISSING
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Column, Table, quoted, shown
from bayeszoo.data.without_model import TableOf
from bayeszoo.errors import InputError
from bayeszoo.foundation.streams import stream
from bayeszoo.model import find as zoo
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.tools.decomposition.due_to import DueTo, due_to
from bayeszoo.tools.resampling.bayesian import FEWEST_DRAWS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

TOTAL = "sum(shares * rates)"
CHAINS = 4
MODELS = ("dirichlet_multinomial", "beta_bernoulli")
"""The models of the shares and of the rates."""
ABOUT = "priors: rates Beta(1, 1), shares Dirichlet(1, ..., 1); observed rates are exact"


OUTCOMES = TableOf(Binary("y"))
"""Zeros and ones, or successes out of trials."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Successes and trials of each part of a group, shape (parts,)."""

    successes: np.ndarray
    trials: np.ndarray

    def observed(self, labels: list[str]) -> dict[str, dict[str, float]]:
        """Return the observed shares and rates by the labels of the parts."""
        arrays = {"shares": self.trials / self.trials.sum(), "rates": self.successes / self.trials}
        return {name: dict(zip(labels, array.tolist(), strict=True)) for name, array in arrays.items()}

    def drawn(self, labels: list[str], draws: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the shares and the rates from the posteriors of `dirichlet_multinomial` and `beta_bernoulli`."""
        shares, rate = (cast("ClosedForm[Any]", zoo.find(name)()) for name in MODELS)
        size = (CHAINS, -(-draws // CHAINS))
        tally = shares.statistics({"counts": self.trials[None], "category": np.array(labels)})
        cells = zip(self.successes[:, None], self.trials[:, None], strict=True)
        counts = [rate.statistics({"successes": won, "trials": tried}) for won, tried in cells]
        rates = [rate.posterior(stats).rvs(size, rng)["theta"] for stats in counts]
        values = {"shares": shares.posterior(tally).rvs(size, rng)["p"], "rates": np.stack(rates, axis=-1)}
        dims, coords = ("chain", "draw", "part"), {"part": labels}
        return {name: xr.DataArray(array, dims=dims, coords=coords) for name, array in values.items()}


@dataclass(frozen=True, eq=False)
class Kitagawa(DueTo):
    """The difference of the rates of two groups, and the parts due to shares and to rates.

    Attributes
    ----------
    observed : pandas.Series
        The exact decomposition of the observed rates, by the rows of the summary.
    data : Data
        The rows.
    seed : int
        Source of the draws.
    """

    observed: pd.Series = field(kw_only=True)
    data: Data = field(kw_only=True)
    seed: int = field(kw_only=True)

    @property
    def summary(self) -> pd.DataFrame:
        """The summary of the draws, with a first column ``observed``."""
        frame = super().summary
        frame.insert(0, "observed", self.observed.reindex(frame.index))
        return frame


def kitagawa(
    data: Any,
    *,
    by: str,
    within: str,
    before: str | None = None,
    after: str | None = None,
    draws: int = 4000,
    seed: int | None = None,
    **options: Any,
) -> Kitagawa:
    """Decompose the difference of the rates of two groups (Kitagawa 1955).

    A group consists of parts, as applicants of departments: its rate is the sum over parts of share times rate. Two
    groups differ in their shares, and in their rates within the parts. This says how much of the difference of their
    rates is due to each, as `due_to` does for any total. It does not say why shares or rates differ.

    Parameters
    ----------
    data : anything that `read` takes
        A table of successes and trials, or of zeros and ones, with a column of groups and a column of parts.
    by : str
        The column that names the groups.
    within : str
        The column that names the parts.
    before, after : str, optional
        The groups: the change is from the first to the second. By default in order of occurrence; required if there are
        more than two groups.
    draws : int
        Number of draws of the shares and rates, at least 100.
    seed : int, optional
        Source of the draws; one is drawn without it.
    **options
        Options of `read`, such as ``successes``, ``trials``, ``column`` and ``positive``.

    Returns
    -------
    Kitagawa
        ``observed`` is exact; the ``summary`` adds the posterior by draws, with Monte Carlo errors, under Beta(1, 1)
        priors of the rates and Dirichlet(1, ..., 1) priors of the shares.

    Raises
    ------
    InputError
        When a column is missing, there are more than two groups and none is named, or a group has no trial in a part;
        and where `read` raises it.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> table = {"sex": list("mmww"), "ward": list("abab"), "y": [30, 10, 10, 15], "n": [60, 40, 20, 80]}
    >>> answer = bz.kitagawa(table, by="sex", within="ward", successes="y", trials="n", seed=1)
    >>> answer.observed.round(4).to_dict()
    {'sex m': 0.4, 'shares': -0.1125, 'rates': -0.0375, 'change': -0.15, 'sex w': 0.25}
    """
    if draws < FEWEST_DRAWS:
        raise InputError(f"draws must be >= {FEWEST_DRAWS}, got {shown(draws)}", "out_of_range")
    form = {name: options.pop(name) for name in FORM if name in options}
    rows, groups, labels = _read(read_table(data, **form), by, within, before, after, options)
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    rng = stream(seed, "kitagawa", by, within, list(groups), rows.digest)
    names = tuple(f"{by} {group}" for group in groups)
    first, second = (cells.observed(labels) for cells in groups.values())
    observed = due_to(first, second, TOTAL).called(*names).summary["mean"]
    first, second = (cells.drawn(labels, draws, rng) for cells in groups.values())
    answer = due_to(first, second, TOTAL).called(*names)
    values = {field_.name: getattr(answer, field_.name) for field_ in fields(answer)}
    return Kitagawa(**values, observed=observed, data=rows, seed=seed)


def _read(
    table: Table, by: str, within: str, before: str | None, after: str | None, options: Mapping[str, object]
) -> tuple[Data, dict[str, Cells], list[str]]:
    """Return the rows of both groups, the cells of each group, and the labels of the parts."""
    if within == by:
        raise InputError(f"column {shown(by)} cannot name both the groups and their parts", "duplicate_name", column=by)
    if options.get("count") is not None:
        raise InputError(
            "a column of counts does not go with parts",
            "options_go_together",
            hint="give columns of successes and trials",
        )
    parts = _labels(table[within])
    columns = {name: column for name, column in table.columns.items() if name != within}
    whole, rows = read_by(OUTCOMES, replace(table, columns=columns), by, **options)
    names = [before, after] if before is not None and after is not None else list(rows)
    if len(names) > 2:
        hint = "name two with --before and --after"
        raise InputError(
            f"column {shown(by)} names {len(names)} groups: {quoted(names)}", "wrong_columns", column=by, hint=hint
        )
    if before is not None or after is not None:
        names = [before or _other(names, after), after or _other(names, before)]
    for name in names:
        if name not in rows:
            raise InputError(
                f"there is no group {shown(name)}", "unknown_name", column=by, hint=f"the groups are {quoted(rows)}"
            )
    if names[0] == names[1]:
        raise InputError(f"group {shown(names[0])} is compared with itself", "not_comparable", column=by)
    chosen = {name: rows[name] for name in names}
    labels = list(dict.fromkeys(parts[row - 1] for data in chosen.values() for row in data.numbers))
    return whole, {name: _cells(name, data, parts, labels, within) for name, data in chosen.items()}, labels


def _other(names: Sequence[object], name: str | None) -> str:
    """Return the other of two groups."""
    return str(next(other for other in names if other != name))


def _labels(column: Column) -> list[str]:
    """Return the label of the part of each row."""
    labels = [text.strip() for text in texts_of(column)]
    if missing := [row for row, label in enumerate(labels) if label.lower() in MISSING]:
        raise column.lacks(np.array(missing), "give every row a part")
    return labels


def _cells(group: str, data: Data, parts: list[str], labels: list[str], within: str) -> Cells:
    """Add up the successes and trials of a group in each part."""
    successes = data["successes"] if "successes" in data else data["y"]
    trials = data["trials"] if "trials" in data else np.ones_like(successes)
    place = [labels.index(parts[row - 1]) for row in data.numbers]
    sums = [np.zeros(len(labels), dtype=np.int64) for _ in range(2)]
    for total, values in zip(sums, (successes, trials), strict=True):
        np.add.at(total, place, values)
    if empty := [label for label, tried in zip(labels, sums[1], strict=True) if not tried]:
        problem = f"group {shown(group)} has no trials where {within} is {shown(empty[0])}: its rate there is not known"
        raise InputError(problem, "empty_group", hint="leave these rows out, or merge them with others")
    return Cells(*sums)
