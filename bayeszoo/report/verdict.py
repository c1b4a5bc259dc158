"""The verdict of the gate in words, and every check with its figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.report.blocks import Choice, Section, Words, table
from bayeszoo.report.tables import number

if TYPE_CHECKING:
    import xarray as xr

_SAMPLED = {
    "r_hat": "the chains agree (R-hat at most {})",
    "ess_bulk": "the draws are worth at least {} independent ones for a mean",
    "ess_tail": "{} for a tail",
    "divergences": "{} divergent transitions",
}


_FOUND = {
    "gain of a small step": "no small step from it gains",
    "distance to a stationary point in sd": "a Newton step would move it by {} sd",
    "violation of the KKT conditions": "it violates the conditions of optimality (KKT) by {}",
    "restarts that reached the best": "{} climbs ended there, at the highest of the maxima that were found",
}


@dataclass(frozen=True)
class Verdict:
    """What a reader must know of one fit: ``state`` is ``ok``, ``approximate`` or ``withheld``."""

    name: str
    state: str
    headline: str
    words: str
    seconds: float


def verdict(name: str, document: Mapping[str, Any]) -> Verdict:
    """Say in words whether a fit may be trusted, and why.

    Parameters
    ----------
    name : str
        What the fit is called.
    document : mapping
        What `summary.document` returned for it.
    """
    seconds = float(sum(document["seconds"].values()))
    if document["status"] != "ok":
        return Verdict(name, "withheld", f"not to be trusted ({document['status']})", _why_not(document), seconds)
    make = {"exact": _exact, "point estimate": _point, "approximate": _approximate, "sampled": _sampled}
    headline, words = make[document["kind"]](document)
    state = "ok" if document["kind"] in ("exact", "sampled") else "approximate"
    if held := document["facts"].get("components_withheld"):
        state, headline = "approximate", f"{headline}, but not on single components"
        words += f" Single components are withheld: {held}."
    return Verdict(name, state, headline, f"{words} {_count(document)}", seconds)


def refusal(method: str, reason: str) -> Verdict:
    """Say that a method gave no answer."""
    return Verdict(method, "withheld", "no answer", reason, 0.0)


def _count(document: Mapping[str, Any]) -> str:
    total = len(document["gate"]["checks"])
    return f"{total} of {total} checks passed."


def _why_not(document: Mapping[str, Any]) -> str:
    first, *others = document["warnings"]
    return f"{_sentence(first)}: {'; '.join(others)}." if others else f"{_sentence(first)}."


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _exact(document: Mapping[str, Any]) -> tuple[str, str]:
    how = "in closed form" if document["method"] == "exact" else "by summing over all assignments"
    return "exact", f"Computed {how}: nothing had to converge."


def _point(document: Mapping[str, Any]) -> tuple[str, str]:
    what = "maximum of the likelihood" if document["facts"].get("estimate", document["method"]) == "mle" else "mode"
    checks = document["gate"]["checks"]
    said = [words.format(number(checks[name]["value"], 2)) for name, words in _FOUND.items() if name in checks]
    return "one point, no uncertainty", f"The {' and '.join([f'{what} was found', *said])}.{_measured(document)}"


def _approximate(document: Mapping[str, Any]) -> tuple[str, str]:
    k_hat = document["k_hat"]
    return "an approximation", f"An approximation{_weights(k_hat)}.{_measured(document)}"


def _weights(k_hat: float | None) -> str:
    if k_hat is None:
        return ""
    if k_hat == -math.inf:
        return " whose importance weights are all alike"
    return f" whose importance weights are usable (k-hat {number(k_hat, 2)})"


def _sampled(document: Mapping[str, Any]) -> tuple[str, str]:
    worst = {name: _worst(document, name) for name in _SAMPLED}
    said = [words.format(number(worst[name], 4)) for name, words in _SAMPLED.items() if worst[name] is not None]
    return "may be trusted", _sentence(
        f"{', '.join(said)}.{_measured(document)}" if said else _measured(document).strip()
    )


def _worst(document: Mapping[str, Any], name: str) -> float | None:
    """Return the worst figure of a check, of parameters and of what is derived from them."""
    checks = document["gate"]["checks"]
    found = [checks[key]["value"] for key in (name, f"derived: {name}") if key in checks]
    known = [value for value in found if value is not None]
    worst: Any = min if name.startswith("ess") else max
    return worst(known) if known else None


def _measured(document: Mapping[str, Any]) -> str:
    """Say how far the means and the spreads are from the closed form, where there is one."""
    if document["kind"] == "sampled":
        errors = _all(document, "error_mcse")
        largest = f"{np.max(np.abs(errors)):.1f}" if errors else ""
        return f" Against the closed form its means err by at most {largest} Monte Carlo standard errors." * bool(
            errors
        )
    errors, ratios = _all(document, "error_sd"), _all(document, "sd_ratio")
    words = f" Against the closed form it errs by at most {np.max(np.abs(errors)):.2f} sd" if errors else ""
    spread = f", its sd being {min(ratios):.2f} to {max(ratios):.2f} of the true" if errors and ratios else ""
    return f"{words}{spread}." if words else ""


def _all(document: Mapping[str, Any], key: str) -> list[float]:
    """Return a figure of every entry of every parameter that has it."""
    found = [one[key] for one in (document["parameters"] | document["derived"]).values() if one[key] is not None]
    flat = (
        np.concatenate([np.ravel(np.asarray(values, dtype=np.float64)) for values in found]) if found else np.empty(0)
    )
    return [float(value) for value in flat if np.isfinite(value)]


def section(named: Mapping[str, tuple[xr.DataTree, Mapping[str, Any]]], said: Sequence[Verdict], main: str) -> Section:
    """List every check of every fit; ``main`` is shown first."""
    spoken = {one.name: one for one in said}
    options = {
        name: [Words(spoken[name].words, "bad" if spoken[name].state == "withheld" else ""), _checks(document)]
        for name, (_, document) in named.items()
    }
    lead = "Every check must pass before an estimate is shown; one that could not be made has not passed."
    return Section("gate", "May it be trusted?", [Words(lead), Choice("fit", options, main)])


def _checks(document: Mapping[str, Any]) -> Any:
    rows = [
        [name, "passed" if one["passed"] else "FAILED", _figure(one["value"]), f"must be {one['limit']}"]
        for name, one in document["gate"]["checks"].items()
    ]
    return table(["check", "verdict", "figure", "limit"], rows, words=["verdict", "limit"])


def _figure(value: float | None) -> Any:
    return "not checked" if value is None else value
