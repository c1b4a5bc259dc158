"""Fits of completed tables, whose draws are pooled: the posterior of a model whose rows have empty cells (Rubin 1987).

The tree of pooled draws has four chains. Each goes through the completed tables of one chain of the imputation, with a
few draws from the fit of each. Draws of one table are alike, as those of a slow sampler are: effective sample sizes and
Monte Carlo errors then count the spread between tables, and R-hat compares tables of independent chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import MIN_DRAWS, Check, arrays_in, as_dict, check_draws, verdict
from bayeszoo.foundation.process.progress import Clock, Reporter
from bayeszoo.inference.engine.imputation import CHAINS, Imputation, impute
from bayeszoo.model.base import Model
from bayeszoo.model.incomplete import INCOMPLETE, Incomplete
from bayeszoo.results.assemble import as_dataset, data_groups
from bayeszoo.results.attributes import VERDICTS
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.summary import elements

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

TABLES = {"exact": 400, "sampled": 100}
"""Completed tables by default, by the kind of method: a fit by sampling takes a second and more."""
MOST_DRAWS = 40
"""Most draws from the fit of a table: with more, errors that are mostly between tables would be underestimated."""
FEWEST, MOST = CHAINS * MIN_DRAWS // MOST_DRAWS, 4000
"""Fewest completed tables, whose draws are enough for the gate, and most."""
TOTAL = 4000
"""Draws of all tables together, unless they are more."""

NO_EVIDENCE = "each completed table has its own, of cells that were drawn: it is no evidence of the rows"


@dataclass(frozen=True, eq=False)
class OfTable:
    """What is kept of the fit of a completed table: its attributes and checks, a few draws, and moments of all."""

    attrs: Mapping[Any, Any]
    notes: Sequence[str]
    checks: Sequence[Check]
    draws: Mapping[str, np.ndarray]
    means: Mapping[str, np.ndarray]
    variances: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, tree: xr.DataTree, size: int) -> OfTable:
        """Keep ``size`` draws at even distances."""
        fit = Fit(tree)
        every, names = fit.pooled(), ("passed", "value", "limit", "caveat")
        checks = [Check(name, *(check[key] for key in names)) for name, check in fit.checks.items()]
        places = np.linspace(0, len(next(iter(every.values()))) - 1, size).astype(int)
        means, variances = ({k: function(v, axis=0) for k, v in every.items()} for function in (np.mean, np.var))
        draws = {name: values[places] for name, values in every.items()}
        return cls(dict(tree.attrs), fit.notes, checks, draws, means, variances)


def number_of_tables(asked: object, kind: str) -> int:
    """Return the number of completed tables, the same for each chain; refuse one that is out of range."""
    if kind not in TABLES:
        problem = "draws of the posterior are pooled over completed tables, and this method gives none"
        raise InputError(problem, "method_unavailable", hint="use exact, nuts or gibbs")
    tables = TABLES[kind] if asked is None else asked
    if isinstance(tables, bool) or not isinstance(tables, int) or not FEWEST <= tables <= MOST:
        problem = f"tables must be a whole number from {FEWEST} to {MOST}, got {tables!r}"
        raise InputError(problem, "out_of_range")
    return -(-tables // CHAINS) * CHAINS


def fit_completed(
    model: Model,
    data: Incomplete,
    fit_table: Callable[[Data], xr.DataTree],
    tables: int,
    rng: np.random.Generator,
    reporter: Reporter,
) -> xr.DataTree:
    """Draw the empty cells of ``tables`` tables, fit each, and pool the draws in one tree."""
    clock, size, fits = Clock(reporter), min(MOST_DRAWS, -(-TOTAL // tables)), list[OfTable]()
    with clock.phase("run"):
        imputation = impute(data.joint(), tables, rng)
        for number, cells in enumerate(imputation.cells, 1):
            fits.append(OfTable.of(fit_table(data.completed(cells)), size))
            reporter.progress("completed tables", number, tables)
    tree = _tree(model, data, imputation, fits)
    tree.attrs.update(_attributes(data, imputation, fits, tree) | {"seconds": dumps(clock.seconds)})
    Fit.assembled(tree, model=model, observed=data)
    return tree


def _tree(model: Model, data: Incomplete, imputation: Imputation, fits: Sequence[OfTable]) -> xr.DataTree:
    """Return the draws of all fits in chains, what follows from them, the data, and the drawn cells."""
    dims, coords, leading = model.dims, model.coords(data.like), ("chain", "draw")
    stacked = {name: np.stack([fit.draws[name] for fit in fits]) for name in fits[0].draws}
    draws = {name: values.reshape(CHAINS, -1, *values.shape[2:]) for name, values in stacked.items()}
    row, column = data.places.T
    cells = xr.Dataset(
        {"value": (("table", "cell"), imputation.cells)},
        coords={"row": ("cell", data.holed.numbers[row]), "column": ("cell", data.holed[data.inputs.axis][column])},
    )
    groups = {
        "posterior": as_dataset(draws, leading, dims, coords),
        "derived": as_dataset(model.derived(draws), leading, dims, coords),
        **data_groups(model, data.holed),
        "completed": cells,
    }
    return xr.DataTree.from_dict({name: group for name, group in groups.items() if group.variables})


def _attributes(data: Incomplete, imputation: Imputation, fits: Sequence[OfTable], tree: xr.DataTree) -> dict[str, Any]:
    """Return the attributes of a fit: those of the first table, but for what is of all tables or of the user's data."""
    first = fits[0].attrs
    pooled = (
        replace(check, caveat=f"{check.caveat}: give more --tables") if check.verdict == "caution" else check
        for check in check_draws(arrays_in(tree, "posterior"))
    )
    checks = [*imputation.checks, *_worst(fits), *pooled]
    notes = [*data.notes, *fits[0].notes, _about(fits, tree)]
    plain = {
        "kind": "sampled",
        "sampler": f"{first['sampler']}, {len(fits)} completed tables",
        "status": verdict(checks),
        "data_digest": data.digest,
        "data_source": data.source,
        "data_rows": data.rows,
        "data_from": INCOMPLETE,
        "declared_from": "completed tables",
    }
    nested = {
        "gate": as_dict(checks),
        "facts": {"tables": len(fits), "drawn_cells": len(data.places), "evidence_withheld": NO_EVIDENCE},
        "notes": list(dict.fromkeys(notes)),
        "columns": dict(data.columns),
        "reading": dict(data.reading),
        "data_names": list(data.holed),
    }
    return {**first, **plain, **{name: dumps(value) for name, value in nested.items()}}


def _worst(fits: Sequence[OfTable]) -> list[Check]:
    """Return each check of the fits of completed tables as it is in the table where it is worst."""

    def badness(check: Check) -> tuple[int, float]:
        sign = -1.0 if check.limit.startswith(">") else 1.0
        return VERDICTS.index(check.verdict), -np.inf if check.value is None else sign * check.value

    by_name: dict[str, list[Check]] = {}
    for check in (check for fit in fits for check in fit.checks):
        by_name.setdefault(check.name, []).append(check)
    return [replace(max(checks, key=badness), name=f"completed: {name}") for name, checks in by_name.items()]


def _about(fits: Sequence[OfTable], tree: xr.DataTree) -> str:
    """Return a note on what is pooled, and on the largest share of a variance that is between tables (Rubin 1987)."""
    shares = dict[str, float]()
    for name, variable in tree["posterior"].data_vars.items():
        means, within = (np.stack([getattr(fit, key)[name] for fit in fits]) for key in ("means", "variances"))
        between = (1 + 1 / len(fits)) * means.var(axis=0, ddof=1)
        share = between / (between + within.mean(axis=0))
        shares |= {label: float(share[index]) for index, label in elements(variable)}
    label = max(shares, key=lambda name: shares[name])
    return (
        f"draws of the fits of {len(fits)} completed tables are pooled; between tables is "
        f"{shares[label]:.0%} of the variance of {label}, the largest share of any parameter"
    )
