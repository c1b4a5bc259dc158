"""Tables of the components of a mixture, the states of a chain and topics: the answer of the fit.

All numbers come from the estimates of the fit: an sd is the root of the estimated variance, and a stay follows from the
probability of staying.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.answers.function import function_along, has_interval
from bayeszoo.answers.judged import has_withheld
from bayeszoo.answers.latent.clusters import Clusters, clusters
from bayeszoo.answers.latent.topics import TOPICS, topics
from bayeszoo.answers.series.decode import decodable
from bayeszoo.answers.series.tables import sequences
from bayeszoo.data.read import Data
from bayeszoo.errors import Untrustworthy
from bayeszoo.foundation.named import Document
from bayeszoo.model.capabilities import Classifies, rows_have_parameters
from bayeszoo.model.draws import shape_of
from bayeszoo.model.views import View
from bayeszoo.report.families.judged import about_judged, most_probable
from bayeszoo.report.text.numbers import estimate, number, statistic, written
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import components_withheld

if TYPE_CHECKING:
    import pandas as pd

MOST_ENTRIES = 40
"""Most levels of a table of probabilities that is printed whole; with more, the most probable."""
MOST_STRETCHES = 20
"""Most stretches of one state that are listed."""
MOST_CELLS = 20_000_000
"""Most draws times rows times states of a fit that is decoded for its profile, in a second or two."""
MOST_PAIRS = 2_000_000_000
"""Most draws times pairs of rows whose clusters are counted for a profile, in a few seconds."""
MOST_ROWS_OF_FUNCTION = 1000
"""Most rows of a fit whose function is evaluated for its profile, in a second or two."""
MOST_GROUPS = 12
"""Most groups of a partition that are listed, the largest first."""
LEAST_PROBABILITY = 0.005
"""Numbers of clusters less probable than this are listed together."""
SPIKE = 5.0
"""A state is a spike if its sd is this many times smaller than those of all other states."""
_SHOWN = 8
"""Number of most probable levels named if there are many."""
_WORDS = 10


class Profile(NamedTuple):
    """A table with its title; ``words`` names the columns of text. Without columns it is a line, the title."""

    title: str
    columns: list[str] = []  # noqa: RUF012
    rows: list[list[Any]] = []  # noqa: RUF012
    words: tuple[str, ...] = ()


class _Estimates:
    """The estimates of a fit by name, formatted by their Monte Carlo errors."""

    def __init__(self, fit: Fit, described: Document, digits: int | None) -> None:
        self.summaries = {**described["parameters"], **described["derived"]}
        self.dims = {name: tuple(summary["dims"]) for name, summary in self.summaries.items()}
        self.digits, self.is_point = digits, described["kind"] == "point estimate"
        self.variables = fit.tree["posterior"].data_vars

    def is_shown(self, name: str) -> bool:
        return name in self.summaries and self.summaries[name]["mean"] is not None

    def array(self, name: str, key: str = "mean") -> np.ndarray:
        """Return a statistic, NaN if it does not apply."""
        values = self.summaries[name][key]
        like = np.asarray(self.summaries[name]["mean"], dtype=np.float64)
        return np.full(like.shape, np.nan) if values is None else np.asarray(values, dtype=np.float64)

    def text(self, name: str, index: tuple[int, ...]) -> str:
        value, error, sd = (float(self.array(name, key)[index]) for key in ("mean", "mcse_mean", "sd"))
        return statistic("mean", value, error, self.digits, sd)

    def root(self, name: str, index: tuple[int, ...]) -> str:
        """Format the root of a mean variance; its error is that of the variance over twice the root."""
        root, error = float(np.sqrt(self.array(name)[index])), float(self.array(name, "mcse_mean")[index])
        return estimate(root, error / (2 * root) if root > 0 else None, self.digits)

    def labels(self, name: str, axis: int) -> list[str]:
        """Return the labels of an axis of a parameter."""
        return [str(label) for label in self.variables[name][self.dims[name][axis]].to_numpy().tolist()]


def profiles(fit: Fit, described: Document, digits: int | None = None) -> Iterator[Profile]:
    """Yield the profile of the components, states or topics of a fit, if their estimates are shown.

    Parameters
    ----------
    fit : Fit
        A fit.
    described : mapping
        Its `document`.
    digits : int, optional
        Significant digits; by default as many as the Monte Carlo errors support.

    Yields
    ------
    Profile
        A table; or a line, which has no columns.
    """
    model = fit.model
    views = model.views()
    if View.CLUSTERS in views:
        yield from _unless_withheld(_clusters(fit))
        return
    if View.FUNCTION in views:
        yield from _unless_withheld(_function(fit, digits))
        return
    if not fit.is_shown or components_withheld(fit):
        return
    if rows_have_parameters(model) and TOPICS in fit.tree["posterior"]:
        yield from _topics(fit)
        return
    estimates = _Estimates(fit, described, digits)
    if View.STATES in views:
        yield from _states(fit, estimates)
    elif View.COMPONENTS in views and estimates.dims.get("weights") == ("component",) and estimates.is_shown("weights"):
        yield from _components(estimates)
    elif View.COMPONENTS in views:
        yield from _confusions(estimates)


def _unless_withheld(answer: Iterator[Profile]) -> Iterator[Profile]:
    """Yield an answer, or the reason why it is withheld; the estimates follow in either case."""
    try:
        yield from answer
    except Untrustworthy as error:
        yield Profile(str(error))


def _function(fit: Fit, digits: int | None) -> Iterator[Profile]:
    """Yield the function at some values of each feature."""
    if not fit.is_shown:
        return
    if fit.data.rows > MOST_ROWS_OF_FUNCTION:
        yield Profile("`bayeszoo predict FIT PLACES --function` gives the function at the rows of a table")
        return
    frame, names = function_along(fit), [str(name) for name in fit.data["feature"]]
    outcome = str(getattr(fit.data, "columns", {}).get("y", "y"))
    quantity = f"mean {outcome}"
    if isinstance(fit.model, Classifies):
        quantity = f"probability of {fit.model.classes(fit.data)[1]}"
    ends = ("q025", "q975") if has_interval(fit) else ()
    rows = [
        [
            row["feature"],
            f"{row['at']:.12g}",
            *(written(row, key, digits) for key in ("mean", *ends)),
            number(row["mcse_mean"], 2) if row["mcse_mean"] > 0 else "-",
        ]
        for _, row in frame.iterrows()
    ]
    columns = ["feature", "at", quantity, *ends, "mcse"]
    condition = ", given the estimate" if fit.kind == "point estimate" else ""
    title = f"the function: {quantity}{' with its 95% interval' if ends else ''}{condition}"
    about = [Profile(line.removesuffix(".")) for line in about_judged(frame)]
    if len(names) == 1:
        yield Profile(title, [names[0], *columns[2:]], [row[1:] for row in rows])
        yield from about
        return
    yield Profile(f"{title}; other features are at their means", columns, rows, ("feature",))
    yield from about
    if (further := len(names) - frame["feature"].nunique()) > 0:
        yield Profile(
            f"{further} further features: `bayeszoo predict FIT PLACES --function` gives the function at any places"
        )


def _clusters(fit: Fit) -> Iterator[Profile]:
    """Yield the number of clusters, and one partition of the rows, if counting pairs is quick."""
    if not fit.is_shown or fit.kind == "point estimate":
        return
    draws = math.prod(shape_of(fit.draws()))
    if draws * fit.data.rows**2 > MOST_PAIRS:
        yield Profile("`bayeszoo clusters FIT` says how many clusters there are, and which rows are together")
        return
    yield from of_clusters(clusters(fit.tree))


def of_clusters(answer: Clusters, digits: int | None = None) -> Iterator[Profile]:
    """Yield the probability of each number of clusters, and the groups of one partition with the means of their rows.

    Parameters
    ----------
    answer : Clusters
        The answer of `clusters`.
    digits : int, optional
        Significant digits; by default as many as the Monte Carlo errors support.
    """
    numbers = answer.number
    shown = numbers[numbers["probability"].notna()]
    is_listed = shown["probability"] >= LEAST_PROBABILITY
    listed = shown[["probability", "mcse"]][is_listed].itertuples()
    counts = [[str(n), estimate(p, mcse, digits)] for n, p, mcse in listed]
    if not is_listed.all():
        counts.append(["another", number(float(shown["probability"][~is_listed].sum()), 1)])
    yield Profile("clusters that hold rows", ["clusters", "probability"], counts, ("clusters",))
    columns = [str(column) for column in answer.data["column"]] if _has_reals(answer.data) else []
    groups = answer.rows.groupby("group")["alike"].agg(["size", "mean"])
    largest = groups.sort_values("size", ascending=False, kind="stable")
    rows = [_group(answer, group, largest, columns, digits or 3) for group in largest.index[:MOST_GROUPS]]
    means = ", with the means of their rows" if columns else ""
    title = f"one partition, of least expected loss: {len(groups)} groups{means}"
    yield Profile(title, ["group", "rows", "alike", *columns], rows)
    if len(groups) > MOST_GROUPS:
        rows_left = int(largest["size"].iloc[MOST_GROUPS:].sum())
        further = f"{len(groups) - MOST_GROUPS} further groups hold {rows_left} rows"
        yield Profile(f"{further}: `bayeszoo clusters FIT -o FILE` lists all")
    for frame in (numbers, answer.rows):
        yield from (Profile(line.removesuffix(".")) for line in about_judged(frame))
    yield Profile("alike: probability that two rows of the group are in one cluster, averaged over its pairs")


def _has_reals(data: Data) -> bool:
    """Return whether rows have columns of real numbers, whose means can be taken."""
    return "Y" in data and "column" in data and data["Y"].dtype.kind == "f"


def _group(answer: Clusters, group: Any, groups: pd.DataFrame, columns: list[str], digits: int) -> list[Any]:
    """Return number, size, likeness and means of a group."""
    size, alike = groups.loc[group]
    means: Sequence[float] = np.mean(answer.data["Y"][answer.groups == group], axis=0).tolist() if columns else []
    return [
        int(group),
        int(size),
        "-" if np.isnan(alike) else number(alike, digits),
        *(number(m, digits) for m in means),
    ]


def _topics(fit: Fit) -> Iterator[Profile]:
    """Yield a line for each topic: its share and its most probable words."""
    with suppress(Untrustworthy):  # the verdict has the reason
        frame = topics(fit.tree, _WORDS)
        words = frame["word"].groupby(level="topic", sort=False)
        for (topic, top_words), share in zip(words, frame.attrs["shares"], strict=True):
            yield Profile(f"topic {topic}, {share:.2f} of the documents: {', '.join(top_words)}")


def _components(estimates: _Estimates) -> Iterator[Profile]:
    """Yield the share of each component with its typical values."""
    shares = [estimates.text("weights", (k,)) for k in range(len(estimates.array("weights")))]
    if estimates.dims.get("means") == ("component", "column"):
        yield _of_columns(estimates, shares)
        return
    levels = _probabilities(estimates, "component")
    yield from _tables(estimates, levels, "component", {"share": shares})


def _confusions(estimates: _Estimates) -> Iterator[Profile]:
    """Yield for each confusion table the probability that a rater is right, by true class."""
    for name, dims in estimates.dims.items():
        if len(dims) != 3 or estimates.labels(name, 0) != estimates.labels(name, 2) or not estimates.is_shown(name):
            continue
        classes = estimates.labels(name, 0)
        rows = [
            [rater, *(estimates.text(name, (k, j, k)) for k in range(len(classes)))]
            for j, rater in enumerate(estimates.labels(name, 1))
        ]
        yield Profile(f"{dims[1]}s: probability of the right {dims[2]}, by true class", [dims[1], *classes], rows)


def _of_columns(estimates: _Estimates, shares: list[str]) -> Profile:
    """Return one row per component and column: share, mean and sd."""
    labels, columns = estimates.labels("means", 0), estimates.labels("means", 1)
    rows = [
        [*(("", "") if d else (label, shares[k])), column, estimates.text("means", (k, d)), _sd(estimates, k, d)]
        for k, label in enumerate(labels)
        for d, column in enumerate(columns)
    ]
    title = "components" if estimates.is_point else "components; sd: the root of the mean variance"
    return Profile(title, ["component", "share", "column", "mean", "sd"], rows, ("column",))


def _sd(estimates: _Estimates, k: int, d: int) -> str | None:
    """Return the sd of a column in a component, whatever the structure of the covariances."""
    if not estimates.is_shown("covariances"):
        return None
    places = {"component": k, "column": d, "column_2": d}
    return estimates.root("covariances", tuple(places[dim] for dim in estimates.dims["covariances"]))


def _probabilities(estimates: _Estimates, axis: str) -> list[str]:
    """Return the names of parameters with a probability for each component or state and each level."""
    of_levels = [name for name, dims in estimates.dims.items() if len(dims) == 2 and dims[0] == axis]
    return [name for name in of_levels if estimates.dims[name][1] != f"{axis}_2" and estimates.is_shown(name)]


def _tables(estimates: _Estimates, names: list[str], axis: str, first: Mapping[str, list[str]]) -> Iterator[Profile]:
    """Yield a table per parameter: a column per component and a row per level; with many levels the top ones."""
    for name in names:
        labels, levels, values = estimates.labels(name, 0), estimates.labels(name, 1), estimates.array(name)
        if len(levels) <= MOST_ENTRIES:
            head = [[label, *cells] for label, cells in first.items()]
            body = [
                [level, *(estimates.text(name, (k, j)) for k in range(len(labels)))] for j, level in enumerate(levels)
            ]
            yield Profile(f"{axis}s", [f"{name} by {axis}", *labels], head + body)
            continue
        top = np.argsort(-values, axis=1, kind="stable")[:, :_SHOWN]
        rows = [
            [label, *(cells[k] for cells in first.values()), most_probable(levels, values[k], top[k])]
            for k, label in enumerate(labels)
        ]
        yield Profile(f"{axis}s", [axis, *first, "most probable"], rows, ("most probable",))


def _states(fit: Fit, estimates: _Estimates) -> Iterator[Profile]:
    """Yield one row per state, the probabilities of its symbols, and the stretches of the most probable states."""
    path = _path(fit)
    coords = fit.model.coords(fit.data)
    labels = [str(label) for label in coords["state"]]
    columns: dict[str, list[Any]] = {"state": labels}
    if path is not None:
        columns["rows"] = [int(count) for count in np.bincount(path, minlength=len(labels))]
    columns |= {"stay": _stays(estimates, len(labels))} if estimates.is_shown("transition") else {}
    for name, head in (("means", "mean"), ("rates", "rate")):
        if estimates.is_shown(name):
            columns[head] = [estimates.text(name, (k,)) for k in range(len(labels))]
    if estimates.is_shown("variances"):
        columns["sd"] = [estimates.root("variances", (k,)) for k in range(len(labels))]
    if len(columns) > 1:
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        stay = "expected rows until the state is left" + ", the median of the draws" * (not estimates.is_point)
        yield Profile(f"states; stay: {stay}", [*columns], rows)
        yield from _spikes(estimates, labels)
    yield from _tables(estimates, _probabilities(estimates, "state"), "state", {})
    if path is not None:
        yield stretches([labels[k] for k in path], fit.data)


def _spikes(estimates: _Estimates, labels: list[str]) -> Iterator[Profile]:
    """Yield a line for each state of a point estimate whose sd is a fifth of the others' or less."""
    if not (estimates.is_point and estimates.is_shown("variances") and len(labels) > 1):
        return
    sds = np.sqrt(estimates.array("variances"))
    for k in np.flatnonzero([SPIKE * sds[k] <= np.delete(sds, k).min() for k in range(len(labels))]):
        line = f"state {labels[k]} is a spike: its sd is {number(float(sds[k]), 2)}, at most a fifth of the others'. "
        line += "It may fit rows that are equal by chance, not a regime: --method mle refuses these maxima, and shows "
        yield Profile(f"{line}the highest of the others")


def _stays(estimates: _Estimates, K: int) -> list[str]:
    """Return 1 / (1 - p), p the probability of staying; its median over draws, as the mean of a ratio may not exist."""
    key = "mean" if estimates.is_point else "median"
    staying = estimates.array("transition", key)[np.arange(K), np.arange(K)]
    return [number(np.nan if np.isnan(p) else 1 / (1 - p), 3) if p != 1 else "for ever" for p in staying]


def _path(fit: Fit) -> np.ndarray | None:
    """Return the most probable state of each row, if decoding is quick."""
    chains, draws = shape_of(fit.draws())
    if chains * draws * fit.data.rows * len(fit.model.coords(fit.data)["state"]) > MOST_CELLS or has_withheld(fit):
        return None  # `bayeszoo decode` has the rows that are not withheld
    with suppress(Untrustworthy):
        return np.asarray(decodable(fit, None, {}).average().label)
    return None


def stretches(states: Sequence[str], data: Data) -> Profile:
    """Return the stretches of rows in one state, by the times of the table or row numbers; if many, their number.

    Parameters
    ----------
    states : sequence of str
        The state of each of N rows.
    data : Data
        The N rows: their sequences, and their times if the table has them.
    """
    times = data.reading.get("times", {"column": "row", "values": [str(row + 1) for row in range(len(states))]})
    changes = [a != b for a, b in itertools.pairwise(states)]
    begins = np.flatnonzero(np.r_[True, np.array(changes, dtype=bool) | (np.diff(data["sequence"]) != 0)])
    ends = np.r_[begins[1:], len(states)] - 1
    if len(begins) > MOST_STRETCHES:
        return Profile(f"{len(begins)} stretches of one state: `bayeszoo decode FIT` lists the state of each row")
    named_sequences = {name: values.astype(str) for name, values in sequences(data).items()}
    at = times["values"]
    rows = [
        [*(names[begin] for names in named_sequences.values()), states[begin], at[begin], at[end], end - begin + 1]
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]
    columns = [*named_sequences, "state", f"{times['column']} from", "to", "rows"]
    return Profile("most probable states", columns, rows, (*named_sequences, f"{times['column']} from", "to"))
