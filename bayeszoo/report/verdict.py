"""The verdict of the gate in words, the checks with their figures, and the estimates of all fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.checks import leave_out
from bayeszoo.foundation import check_names
from bayeszoo.foundation.named import Document
from bayeszoo.report.blocks import Block, Choice, Folded, Section, Words, table
from bayeszoo.report.text import tables
from bayeszoo.report.text.numbers import number
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

_SAMPLED = {
    "r_hat": "the chains agree (R-hat at most {})",
    "ess_bulk": "the draws are worth at least {} independent ones for a mean",
    "ess_tail": "{} for a tail",
    "divergences": "{} divergent transitions",
}
_FOUND = {
    "small_step_gain": "no small step from it gains",
    "stationary_distance": "a Newton step would move it by {} sd",
    "kkt_violation": "it violates the conditions of optimality (KKT) by {}",
    "restarts": "{} restarts reached it, the highest maximum found",
}
_LEAD = "Estimates are withheld if a check fails, shown with a warning if a check narrowly fails or cannot be run."
HEADS = {"q025": "2.5%", "q975": "97.5%", "mcse_mean": "MCSE", "ess_bulk": "ESS bulk", "ess_tail": "ESS tail"}
HEADS |= {"r_hat": "R-hat", "error_sd": "error/sd", "sd_ratio": "sd ratio"}
Named = Mapping[str, tuple[Fit, Document]]
"""Fits by name, each with its document."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a fit, whose ``state`` is ``ok``, ``approximate``, ``caution`` or ``withheld``.

    The state of a model is ``ok``, ``caution``, ``misfit`` or ``unknown``.
    """

    name: str
    state: str
    headline: str
    words: str


def verdict(name: str, document: Document) -> Verdict:
    """Return whether the fit called ``name`` may be trusted, and why, by its `summary.document`."""
    if document["status"] not in ("ok", "caution"):
        return Verdict(name, "withheld", f"not to be trusted ({document['status']})", _why_not(document))
    headline, words = _WORDS[document["kind"]](document)
    state = "ok" if document["kind"] in ("exact", "sampled") else "approximate"
    if withheld := document["facts"].get("components_withheld"):
        state, headline = "approximate", f"{headline}, but not on single components"
        words += f" Single components are withheld: {withheld}."
    total = len(document["gate"]["checks"])
    if document["status"] == "caution":
        return Verdict(name, "caution", "to be read with caution", f"{_why_not(document)} {words}")
    return Verdict(name, state, headline, f"{words} {total} of {total} checks passed.")


def _why_not(document: Document) -> str:
    first, *further = document["warnings"]
    step = f" Next: {document['next']}." if document["next"] else ""
    return f"{_sentence(first)}: {'; '.join(further)}.{step}" if further else f"{_sentence(first)}.{step}"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _exact(document: Document) -> tuple[str, str]:
    how = "in closed form" if document["method"] == "exact" else "by summing over all assignments"
    return "exact", f"Computed {how}: nothing had to converge."


def _point(document: Document) -> tuple[str, str]:
    places = {"mle": "maximum of the likelihood", "mean": "posterior mean"}
    place = places.get(document["facts"].get("estimate", document["method"]), "mode")
    checks = document["gate"]["checks"]
    facts = [words.format(number(checks[name]["value"], 2)) for name, words in _FOUND.items() if name in checks]
    return "one point, no uncertainty", f"The {' and '.join([f'{place} was found', *facts])}.{_measured(document)}"


def _approximate(document: Document) -> tuple[str, str]:
    return "an approximation", f"An approximation.{_measured(document)}"


def _sampled(document: Document) -> tuple[str, str]:
    worst = {name: _worst(document, name) for name in _SAMPLED}
    facts = [words.format(number(worst[name], 4)) for name, words in _SAMPLED.items() if worst[name] is not None]
    return "sampled well", _sentence(f"{', '.join(facts)}{'.' * bool(facts)}{_measured(document)}".strip())


_WORDS = {"exact": _exact, "point estimate": _point, "approximate": _approximate, "sampled": _sampled}


def _worst(document: Document, name: str) -> float | None:
    """Return the worst figure of a check over parameters and derived quantities."""
    checks = document["gate"]["checks"]
    values = [checks[key]["value"] for key in (name, f"derived: {name}") if key in checks]
    figures = [value for value in values if value is not None]
    worst: Any = min if name.startswith("ess") else max
    return worst(figures) if figures else None


def _measured(document: Document) -> str:
    """Return a sentence on how far means and sds are from the true ones, if these are known."""
    if document["kind"] == "sampled":
        errors = _all(document, "error_mcse")
        words = " Means differ from the closed form by at most {:.1f} Monte Carlo standard errors."
        return words.format(np.max(np.abs(errors))) if errors.size else ""
    errors, ratios = _all(document, "error_sd"), _all(document, "sd_ratio")
    if not errors.size:
        return ""
    sds = f", sds are {ratios.min():.2f} to {ratios.max():.2f} times the true ones" if ratios.size else ""
    yardstick = document["facts"].get("measured_against", "the closed form")
    return f" Means differ from {yardstick} by at most {np.max(np.abs(errors)):.2f} sd{sds}."


def _all(document: Document, key: str) -> np.ndarray:
    """Return the finite figures of all entries of all parameters."""
    summaries = [document["parameters"], document["derived"]]
    values = [np.ravel(row[key]) for summary in summaries for row in summary.values() if row[key] is not None]
    flat = np.concatenate([np.empty(0), *values]).astype(np.float64)
    return flat[np.isfinite(flat)]


def section(named: Named, main: str, pictures: Sequence[object]) -> Section:
    """List the checks of every fit, passed ones folded, and draw the run; ``main`` is shown first."""
    options = {name: _checks(document) for name, (_, document) in named.items()}
    return Section("gate", "Did the computation work?", [Words(_LEAD), Choice("fit", options, main), *pictures])


def _checks(document: Document) -> list[Block]:
    rows: dict[bool, list[list[Any]]] = {False: [], True: []}
    for name, check in document["gate"]["checks"].items():
        figure = "not checked" if check["value"] is None else check["value"]
        verdict_text = {"ok": "passed", "caution": "caution", "failed": "FAILED"}[check["verdict"]]
        limit = f"must be {check['limit']}{'; ' * bool(check['caveat'])}{check['caveat']}"
        rows[verdict_text == "passed"].append([check_names.plain(name), verdict_text, figure, limit])
    columns, total = ["check", "verdict", "figure", "limit"], len(document["gate"]["checks"])
    not_passed, passed = (table(columns, rows[which], words=columns[1::2]) for which in (False, True))
    return [not_passed] * bool(rows[False]) + [Folded(f"{len(rows[True])} of {total} checks passed", [passed])]


# The numbers


def estimates(named: Named, main: str) -> Choice:
    """List the estimates and the figures of each fit; ``main`` is shown first."""
    options: dict[str, list[Any]] = {}
    for name, (fit, document) in named.items():
        columns, rows = tables.estimate_rows(fit, document)
        shown = [i for i in range(len(columns)) if i == 0 or any(row[i] not in (None, "withheld") for row in rows)]
        listed = table([HEADS.get(columns[i], columns[i]) for i in shown], [[row[i] for i in shown] for row in rows])
        are_withheld = len(shown) < max(len(columns), 2)  # names may be the only column
        withheld = [Words("The estimates are withheld.", "bad")] if are_withheld else []
        figures = [Words(f"{line}.", "note") for line in tables.figures(document)]
        options[name] = [*withheld, *([listed] if len(shown) > 1 else []), *figures]
    return Choice("fit", options, main)


def comparison(frame: pd.DataFrame) -> list[Block]:
    """Compare all fits in a table, figures of whole fits first, without figures that all fits withhold."""
    compared = []
    for title, columns, rows, words in tables.comparison_tables(frame):
        names = columns.index("fit") + 1
        compared.append(table(columns, [row for row in rows if names == 1 or {*row[names:]} != {"-"}], title, words))
    shown = [block for block in compared[1:] + compared[:1] if block.rows and len(block.columns) > 1]
    notes = [*map(Words, tables.measured_gaps(frame)), Words(" ".join(tables.ABOUT_COMPARISON), "note")]
    return [*shown, *notes]


def winner(frame: pd.DataFrame, fits: Mapping[str, Fit]) -> list[Words]:
    """Return sentences on which model is best by leave-one-out and by evidence, and by how much; ``fits`` are by name.

    A criterion that a model lacks ranks none.
    """
    ok = frame[frame["status"] == "ok"].drop_duplicates("fit")
    sentences = []
    for column, praise in (
        ("loo_score", "Left-out rows are predicted best"),
        ("log_evidence", "The log evidence is highest"),
    ):
        ranked = ok[ok[column].notna()].sort_values(column, ascending=False, kind="stable").drop_duplicates("model")
        if lacking := [name for name in ok["model"].unique() if name not in {*ranked["model"]}] * bool(len(ranked)):
            scores = {"loo_score": "leave-one-out score"}.get(column, "log evidence")
            sentences.append(
                Words(f"The {scores} ranks no model: {', '.join(lacking)} lack{'s' * (len(lacking) == 1)} it.")
            )
        if len(ranked) < 2 or lacking:
            continue
        first, second = ranked.iloc[0], ranked.iloc[1]
        gap, error = first[column] - second[column], np.hypot(first["evidence_se"], second["evidence_se"])
        if column == "loo_score":
            less = leave_out.difference(*(leave_out.of_fit(fits[row["fit"]]) for row in (first, second)))
            gap, error = less.total * less.mean, less.total * less.se
        clear = "" if gap > 2 * error else ", no clear difference"
        by = f"by {number(gap, 3)} nats{f' (standard error {number(error, 2)})' * bool(error)}{clear}"
        sentences.append(Words(f"{praise} by {first['fit']}, ahead of {second['fit']} {by}."))
    return sentences
