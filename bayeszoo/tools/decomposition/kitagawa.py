"""Two groups with different rates: what of it is due to who they are made of, and what to the rates of these."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import lazy_loader
import numpy as np

from bayeszoo.data.by import FORM, read_by
from bayeszoo.data.inputs import Binary, Inputs
from bayeszoo.data.inputs.labels import texts_of
from bayeszoo.data.read import Data, Example
from bayeszoo.data.table.cells import MISSING
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Column, Table, quoted, shown
from bayeszoo.errors import InputError
from bayeszoo.foundation.streams import stream
from bayeszoo.model import find as zoo
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.tools.bootstrap import FEWEST_DRAWS
from bayeszoo.tools.decomposition.due_to import DueTo, due_to

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

TOTAL = "sum(shares * rates)"
CHAINS = 4
MODELS = ("dirichlet_multinomial", "beta_bernoulli")
"""Those of the shares and of the rates."""
ABOUT = "rates are Beta(1, 1) and shares Dirichlet(1, ..., 1) before the data; observed rates are exact"


class Outcomes:
    """Inputs of a table: zeros and ones, or successes out of trials."""

    inputs: ClassVar[Inputs] = Binary("y")
    examples: ClassVar[tuple[Example, ...]] = ()
    labels: ClassVar[Mapping[str, tuple[str, ...]]] = {}


@dataclass(frozen=True, eq=False)
class Cells:
    """Successes and trials of each part of a group, shape (parts,)."""

    successes: np.ndarray
    trials: np.ndarray

    def observed(self, labels: list[str]) -> dict[str, dict[str, float]]:
        """Return the shares of the parts and their rates, by the labels of the parts."""
        known = {"shares": self.trials / self.trials.sum(), "rates": self.successes / self.trials}
        return {name: dict(zip(labels, values.tolist(), strict=True)) for name, values in known.items()}

    def drawn(self, labels: list[str], draws: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the shares and the rates from the posteriors of `dirichlet_multinomial` and `beta_bernoulli`."""
        shares, rate = (cast("ClosedForm[Any]", zoo.find(name)()) for name in MODELS)
        size = (CHAINS, -(-draws // CHAINS))
        tally = shares.statistics({"counts": self.trials[None], "category": np.array(labels)})
        cells = zip(self.successes[:, None], self.trials[:, None], strict=True)
        counts = [rate.statistics({"successes": won, "trials": tried}) for won, tried in cells]
        rates = [rate.posterior(each).rvs(size, rng)["theta"] for each in counts]
        values = {"shares": shares.posterior(tally).rvs(size, rng)["p"], "rates": np.stack(rates, axis=-1)}
        dims, coords = ("chain", "draw", "part"), {"part": labels}
        return {name: xr.DataArray(array, dims=dims, coords=coords) for name, array in values.items()}


@dataclass(frozen=True, eq=False)
class Kitagawa(DueTo):
    """The difference of the rates of two groups, and its parts.

    Attributes
    ----------
    observed : pandas.Series
        The exact parts of the observed shares and rates, by the rows of the summary.
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
        """The summary of the draws, after a column ``observed``."""
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
    """Take the difference of the rates of two groups apart (Kitagawa 1955).

    A group is made of parts, as applicants are of departments: its rate is the sum of the shares of its parts times
    their rates. The rates of two groups differ because their shares do, and because their rates do within the parts:
    this says how much is due to either, as `due_to` does of any total. What makes shares or rates differ it does not
    say.

    Parameters
    ----------
    data : anything that `read` takes
        A table of successes and trials, or of zeros and ones, with a column of groups and one of parts.
    by : str
        The column that names the groups.
    within : str
        The column that names the parts.
    before, after : str, optional
        The groups: the change is from the first to the second. They must be named where there are more than two; by
        default in the order in which they occur.
    draws : int
        Draws of the shares and rates, at least 100.
    seed : int, optional
        Source of the draws; one is drawn without it.
    **options
        Of `read`, such as ``successes``, ``trials``, ``column`` and ``positive``.

    Returns
    -------
    Kitagawa
        ``observed`` is exact; the ``summary`` adds the posterior, under Beta(1, 1) priors of the rates and
        Dirichlet(1, ..., 1) priors of the shares, by draws, with their Monte Carlo errors.

    Raises
    ------
    InputError
        When a column is missing, there are more than two groups, or a group has no trial in a part; and as `read` does.

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
    how = {name: options.pop(name) for name in FORM if name in options}
    whole, groups, labels = _read(read_table(data, **how), by, within, before, after, options)
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    rng = stream(seed, "kitagawa", by, within, list(groups), whole.digest)
    names = tuple(f"{by} {group}" for group in groups)
    first, second = (cells.observed(labels) for cells in groups.values())
    observed = due_to(first, second, TOTAL).called(*names).summary["mean"]
    first, second = (cells.drawn(labels, draws, rng) for cells in groups.values())
    answer = due_to(first, second, TOTAL).called(*names)
    about = {each.name: getattr(answer, each.name) for each in fields(answer)}
    return Kitagawa(**about, observed=observed, data=whole, seed=seed)


def _read(
    table: Table, by: str, within: str, before: str | None, after: str | None, options: Mapping[str, object]
) -> tuple[Data, dict[str, Cells], list[str]]:
    """Read the rows of two groups, and add them up by the parts, whose labels are returned too."""
    if within == by:
        raise InputError(f"column {shown(by)} cannot name both the groups and their parts", "duplicate_name", column=by)
    if options.get("count") is not None:
        raise InputError(
            "a column of counts does not go with parts",
            "options_go_together",
            hint="give columns of successes and trials",
        )
    parts = _labels(table[within])
    others = {name: column for name, column in table.columns.items() if name != within}
    whole, rows = read_by(Outcomes, replace(table, columns=others), by, **options)
    names = [before, after] if before is not None and after is not None else list(rows)
    if len(names) > 2:
        hint = "say which two with --before and --after"
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
    """Return the part that each row belongs to."""
    labels = [text.strip() for text in texts_of(column)]
    if lacking := [row for row, label in enumerate(labels) if label.lower() in MISSING]:
        raise column.lacks(np.array(lacking), "give every row a part")
    return labels


def _cells(group: str, data: Data, parts: list[str], labels: list[str], within: str) -> Cells:
    """Add up the rows of a group by its parts."""
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
