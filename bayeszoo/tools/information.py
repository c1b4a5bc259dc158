"""Entropy, divergence and mutual information of tables of counts: their posteriors under a Dirichlet prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.table.table import shown
from bayeszoo.distributions import information
from bayeszoo.distributions.conjugate.dirichlet import draw_dirichlet
from bayeszoo.errors import InputError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.streams import stream
from bayeszoo.foundation.tails import LIMITS, moments
from bayeszoo.results.summary import HEADLINE, MCSE, summary_of_draws
from bayeszoo.tools.resampling.bayesian import FEWEST_DRAWS

pd = lazy_loader.load("pandas")

COLUMNS = (*HEADLINE[:-1], *MCSE)
"""Columns of every answer: mean, sd and quantiles, then their Monte Carlo errors, 0 where exact."""
CLASS_ENTROPY = "class_entropy"
"""Key in ``attrs`` of the entropy of the class, an upper bound of the information in a feature."""
_UNDERFLOW = "mean, sd, quantiles: a probability underflows in a draw; raise alpha"
NO_PLUG_IN = {"plug_in": np.nan, "bias": np.nan}
UNITS = {"nats": 1.0, "bits": float(np.log(2))}
"""Units of information, in nats."""


@dataclass(frozen=True)
class Prior:
    """Dirichlet concentration of each cell of a table, number of posterior draws, and their seed."""

    alpha: object = 1.0
    draws: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.draws, int) or self.draws < FEWEST_DRAWS:
            raise InputError(f"draws must be >= {FEWEST_DRAWS}, got {shown(self.draws)}", "out_of_range")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed must be a whole number >= 0, got {shown(self.seed)}", "out_of_range")

    def posterior(self, counts: np.ndarray) -> np.ndarray:
        """Return alpha + counts, with the shape of the table."""
        try:
            alpha = np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), counts.shape)
        except (TypeError, ValueError):
            size = " x ".join(map(str, counts.shape))
            raise InputError(f"alpha must be a number, or {size} of them as the table", "wrong_shape") from None
        if not (np.isfinite(alpha) & (alpha > 0)).all():
            raise InputError(f"alpha must be > 0 and finite, got {shown(alpha.min())}", "out_of_range")
        return alpha + counts

    def drawn(self, name: str, of: Callable[..., np.ndarray], *tables: np.ndarray, is_bounded: bool = True) -> Document:
        """Return the summary of a function of independent tables, each drawn from its Dirichlet posterior."""
        rng = stream(self.seed, name, [table.tolist() for table in tables], self.draws)
        parts = []
        for block in blocks(self.draws, sum(table.size for table in tables)):
            size = min(block.stop, self.draws) - block.start
            p = (draw_dirichlet(table.ravel(), size, rng).reshape(size, *table.shape) for table in tables)
            parts.append(of(*p))
        columns, _ = summarized(np.concatenate(parts)[None], "approximate", is_bounded)
        return columns


def summarized(values: np.ndarray, kind: str, is_bounded: bool) -> tuple[dict[str, Any], np.ndarray]:
    """Return moments and quantiles of draws (chain, draw, ...), their errors, and the reasons for withheld moments.

    A quantity that ``is_bounded`` has all moments; a divergence may have no mean. Columns that do not exist, as for a
    point estimate, are NaN.
    """
    missing = dict.fromkeys(COLUMNS, np.full(values.shape[2:], np.nan))
    if np.isinf(values).any():  # the log of a probability that has underflowed
        return missing, np.full(values.shape[2:], _UNDERFLOW, dtype=object)
    summary = summary_of_draws(values, kind)
    columns = missing | {key: summary[key] for key in COLUMNS if summary[key] is not None}
    if is_bounded or kind == "point estimate":
        return columns, np.full(values.shape[2:], "", dtype=object)
    of_draws = moments(values, independent=kind != "sampled")
    is_constant = np.ptp(values, axis=(0, 1)) == 0  # such as the entropy of a fixed covariance
    spread = {name: np.where(is_constant & (name != "mean"), 0.0, getattr(of_draws, name)) for name in LIMITS}
    return columns | spread, of_draws.withheld


def table_of_counts(table: object, axes: int, name: str = "the table") -> np.ndarray:
    """Return a table of counts as an array with one axis or two; refuse other tables."""
    table = list(table.values()) if isinstance(table, Mapping) else table
    try:
        counts = np.asarray(table)
    except ValueError:
        raise InputError(f"{name} is ragged: its rows have different lengths", "ragged") from None
    if counts.dtype.kind == "O" and all(type(cell) in (int, float) for cell in counts.ravel().tolist()):
        counts = counts.astype(np.float64)  # as of a frame of pandas with nullable integers
    if counts.dtype.kind not in "iuf":
        hint = "count the rows first, for example by pandas.crosstab(a, b)" if axes == 2 else "count the labels first"
        raise InputError(f"{name} must hold counts, got {counts.dtype}", "wrong_type", hint=hint)
    counts = counts.astype(np.float64)
    if counts.ndim != axes or min(counts.shape, default=0) < 2:
        wanted = "at least two counts" if axes == 1 else "at least two rows and two columns of counts"
        raise InputError(f"{name} must have {wanted}, got shape {counts.shape}", "wrong_shape")
    broken = ~((counts >= 0) & np.isfinite(counts) & (counts == np.floor(counts)))
    if broken.any():
        place = ", ".join(str(i + 1) for i in np.argwhere(broken)[0])
        hint = "probabilities have no posterior: give the counts behind them"
        raise InputError(f"{name} has {counts[broken][0]:g} at ({place}), which is no count", "not_a_count", hint=hint)
    return counts


def entropy_of_counts(table: object, prior: Prior) -> Document:
    """Return the posterior of the entropy, with exact mean and sd; the plug-in estimate, and its bias (Miller 1955)."""
    counts = table_of_counts(table, 1)
    alpha = prior.posterior(counts)
    exact = {"mean": float(information.mean_entropy(alpha)), "sd": float(information.sd_entropy(alpha)), "mcse_sd": 0.0}
    total = counts.sum()
    plug_in = float(information.entropy(counts / total)) if total else np.nan
    bias = (1 - np.count_nonzero(counts)) / (2 * total) if total else np.nan
    row = prior.drawn("entropy", information.entropy, alpha) | exact | {"mcse_mean": 0.0}
    return row | {"plug_in": plug_in, "bias": bias}


def divergence_of_counts(table: object, other: object, prior: Prior) -> Document:
    """Return the posterior of KL(p || q) of two tables, with an exact mean; and the plug-in estimate."""
    counts, against = table_of_counts(table, 1, "the first table"), table_of_counts(other, 1, "the second table")
    against = _in_order(against, _labels(other), _labels(table))
    if counts.shape != against.shape:
        problem = f"the first table has {len(counts)} counts, the second {len(against)}"
        raise InputError(
            problem, "wrong_shape", hint="give both the same categories, with 0 for those that do not occur"
        )
    alpha, beta = prior.posterior(counts), prior.posterior(against)
    row = prior.drawn("divergence", information.divergence, alpha, beta, is_bounded=False)
    row |= {"mean": information.mean_divergence(alpha, beta), "mcse_mean": 0.0}
    totals = counts.sum(), against.sum()
    plug_in = float(information.divergence(counts / totals[0], against / totals[1])) if min(totals) else np.nan
    return row | {"plug_in": plug_in, "bias": np.nan}


def _labels(table: object) -> list[object] | None:
    """Return the labels of a mapping or a series; None for other tables."""
    index = table if isinstance(table, Mapping) else getattr(table, "index", None)
    return None if index is None or callable(index) else list(index)


def _in_order(counts: np.ndarray, labels: list[object] | None, wanted: list[object] | None) -> np.ndarray:
    """Return counts in the order of the labels ``wanted``, where both tables have labels."""
    if labels is None or wanted is None or labels == wanted or len(labels) != len(wanted):
        return counts
    if {*labels} != {*wanted} or len({*labels}) < len(labels):
        different = next((label for label in labels if label not in wanted), labels[0])
        raise InputError(
            f"the tables have different labels: {shown(different)}", "labels_differ", hint="give both the same labels"
        )
    return counts[[labels.index(label) for label in wanted]]


def information_of_counts(table: object, prior: Prior) -> Document:
    """Return the posterior of the mutual information of rows and columns, with exact mean; and the plug-in estimate."""
    counts = table_of_counts(table, 2)
    _refuse_margins(table, counts)
    alpha = prior.posterior(counts)
    row = prior.drawn("mutual information", information.information, alpha)
    row |= {"mean": information.mean_information(alpha), "mcse_mean": 0.0}
    return row | plugged_in(counts)


def _refuse_margins(table: object, counts: np.ndarray) -> None:
    """Refuse a table with its sums in the last row and column, as from `pandas.crosstab` with ``margins``."""
    index, columns = (getattr(table, name, None) for name in ("index", "columns"))
    if (
        index is None or columns is None or counts.size == 4 or not counts.any()
    ):  # four counts may have this form by chance
        return
    if index[-1] != columns[-1]:
        return
    if (counts[-1] == counts[:-1].sum(axis=0)).all() and (counts[:, -1] == counts[:, :-1].sum(axis=1)).all():
        problem = f"row and column {shown(index[-1])} are the sums of the others"
        raise InputError(problem, "wrong_shape", hint="leave out the margins")


def plugged_in(counts: np.ndarray) -> dict[str, float]:
    """Return the plug-in mutual information of a table (K, L), and its bias (Miller 1955)."""
    total = counts.sum()
    if not total:
        return NO_PLUG_IN
    cells, rows, columns = (np.count_nonzero(table) for table in (counts, counts.sum(axis=1), counts.sum(axis=0)))
    return {
        "plug_in": float(information.information(counts / total)),
        "bias": (cells - rows - columns + 1) / (2 * total),
    }


def in_units(frame: Any, bits: bool) -> Any:
    """Return an answer in nats or bits, with the unit in ``attrs``."""
    unit = "bits" if bits else "nats"
    parts = [name for name in frame if name in (*COLUMNS, "plug_in", "bias")]
    frame[parts] = frame[parts].astype(float) / UNITS[unit]
    if CLASS_ENTROPY in frame.attrs:
        frame.attrs[CLASS_ENTROPY] /= UNITS[unit]
    frame.attrs["unit"] = unit
    return frame
