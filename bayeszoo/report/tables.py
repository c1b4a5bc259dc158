"""What a fit and a comparison say, as rows and lines of plain text: the terminal and the report show the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.results.summary import DIAGNOSTICS, HEADLINE, elements

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MAX_ROWS = 400
"""Rows of a table of estimates that are printed."""
_PARTS = {"posterior": "parameters", "derived": "derived"}
"""Groups of a fit whose quantities are listed, and their part of the document."""
_WITHHELD = {"k_hat_withheld": "k-hat", "draws_withheld": "a part of the draws"}
_ESTIMATES = {"mean": "estimate", "sd": "sd", "q025": "2.5%", "q975": "97.5%", "p_positive": "P(> 0)"}
_ESTIMATES |= {"mcse_mean": "MCSE", "error_mcse": "error/MCSE", "error_sd": "error/sd", "sd_ratio": "sd ratio"}
_EVIDENCE = {"log_evidence": "log evidence", "evidence_se": "error", "evidence_gap": "exact less it"}
_EVIDENCE |= {"elbo": "ELBO", "elbo_se": "error", "elbo_gap": "exact less it"}
_PREDICTION = {"loo_score": "LOO score", "loo_se": "se", "loo_mcse": "MC error"}
_PREDICTION |= {"seconds": "seconds", "kind": "kind", "status": "status"}
_WORDS = ("fit", "kind", "status")
_COMPARISON = {"Estimates": _ESTIMATES, "Evidence": _EVIDENCE, "Prediction and cost": _PREDICTION}
"""The tables of a comparison: columns of the frame, and what heads them; some hold words."""
ABOUT_COMPARISON = (
    "LOO score: mean leave-one-out log predictive density of one observation, in nats;",
    "of a point estimate it is plugged in, else the parameters are integrated out.",
    "A dash: it does not apply, or is withheld; so is a LOO score from draws with a k-hat above its limit.",
)


def number(value: Any, digits: int = 5) -> str:
    """Format a number; what is missing becomes a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.{digits}g}" if isinstance(value, float | np.floating) else str(value)


def seconds(spent: Mapping[str, float]) -> str:
    """Write seconds by phase, without the phases that took none."""
    return ", ".join(f"{name} {value:.2f} s" for name, value in spent.items() if value >= 0.005) or "0 s"


def estimate_rows(tree: xr.DataTree, document: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of the table of estimates, and one row a scalar; withheld cells say so."""
    keys = [*HEADLINE, *DIAGNOSTICS, "error_sd", "sd_ratio"]
    heads = ["estimate" if document["kind"] == "point estimate" else "mean", *keys[1:]]
    used = [i for i, key in enumerate(keys) if _used(document, key)]
    rows = []
    for group, part in _PARTS.items():
        for name, summary in document[part].items():
            for index, label in elements(tree[group].to_dataset()[name]):
                rows.append([label, *(_cell(summary, keys[i], index, _is_shown(document)) for i in used)])
    more = len(rows) - MAX_ROWS
    if more > 0:
        rows = [*rows[:MAX_ROWS], [f"... {more} more: see --json or -o", *(None for _ in used)]]
    large = (f"{name}: {' x '.join(map(str, shape))} numbers, see -o" for name, shape in document["not_listed"].items())
    rows += [[line, *(None for _ in used)] for line in large]
    return ["parameter", *(heads[i] for i in used)], rows


def _used(document: Mapping[str, Any], key: str) -> bool:
    withheld = not _is_shown(document) and key in ("mean", "sd")
    return withheld or any(summary[key] is not None for part in _PARTS.values() for summary in document[part].values())


def _is_shown(document: Mapping[str, Any]) -> bool:
    return document["status"] in ("ok", "caution")


def _cell(summary: Mapping[str, Any], key: str, index: tuple[int, ...], is_shown: bool) -> Any:
    if summary[key] is None:
        return "withheld" if not is_shown and key in ("mean", "sd") else None
    return float(np.asarray(summary[key])[index])


def figures(document: Mapping[str, Any]) -> list[str]:
    """Return lines on evidence, ELBO and likelihood: each number with how it was found and its gap to the exact one."""
    exact, facts = document["exact"] or {}, document["facts"]
    lines = []
    if document["log_evidence"] is not None:
        lines.append(f"log evidence {number(document['log_evidence'], 10)} {_how(document, facts, exact)}")
    if document["log_evidence"] is not None and "log_evidence_counts" in exact and document["kind"] == "exact":
        counts = exact["log_evidence_counts"]
        how = "withheld: its terms cancel" if math.isnan(counts) else f"{number(counts, 10)} (exact)"
        lines.append(f"log evidence of the counts {how}")
    lines += _own_figures(facts) if document["kind"] == "exact" else []
    if document["elbo"] is not None:
        gap = f", {number(exact['elbo_gap'], 3)} below the exact log evidence" if "elbo_gap" in exact else ""
        error, k_hat = f"+- {number(facts['elbo_se'], 2)}", facts["k_hat"]  # weights that are equal have no tail
        shape = "none, as all weights are equal" if k_hat == -math.inf else number(k_hat, 3)
        lines.append(f"ELBO {number(document['elbo'], 10)} {error}{gap}; k-hat {shape}")
    if "mean_gap" in facts and _is_shown(document):
        ratios = " to ".join(number(facts[key], 2) for key in ("sd_ratio_least", "sd_ratio_most"))
        gap = f"means within {number(facts['mean_gap'], 2)} sd of the posterior's, sds {ratios} times its own"
        lines.append(f"by importance weights: {gap}")
    lines += [f"{name} is withheld: {facts[key]}" for key, name in _WITHHELD.items() if key in facts]
    if document["log_likelihood"] is not None:
        joint = number(document["log_joint"], 10)
        lines.append(f"log likelihood {number(document['log_likelihood'], 10)}, log joint {joint} at the point")
    lines += _of_restarts(facts, _is_shown(document)) + _of_labels(facts)
    if "derived_withheld" in facts:
        lines.append(f"derived quantities are withheld: {facts['derived_withheld']}")
    if "mode_space" in facts:
        lines.append(f"mode taken in the {facts['mode_space']} space")
    return lines


def _of_restarts(facts: Mapping[str, Any], is_shown: bool) -> list[str]:
    """Say how a climb from many starts went, and which maxima were refused; how high they are where that is shown."""
    if "restarts" not in facts:
        return []
    heights = ", ".join(number(height, 9) for height in facts["maxima"])
    best = f"the maxima {heights}" if is_shown else f"{len(facts['maxima'])} maxima"
    lines = [f"{facts['reached_the_best']} of {facts['restarts']} restarts reached the best of {best}"]
    if "highest_degenerate" in facts:
        highest = f"the highest {number(facts['highest_degenerate'], 9)}, {facts['degenerate_because']}"
        lines.append(f"{facts['degenerate']} degenerate maxima refused, {highest}")
    if "occupied_components" in facts:
        noun = "factors that are switched on" if "labelled" in facts else "components that hold a row or more"
        lines.append(f"{noun}: {facts['occupied_components']}")
    return lines


def _of_labels(facts: Mapping[str, Any]) -> list[str]:
    """Say how sure the draws are which component is which."""
    what, by = ("factors", "by length") if "labelled" in facts else ("components", "by weight")
    lines = []
    if "label_stability" in facts:
        stability = ", ".join(number(value, 3) for value in facts["label_stability"])
        by = f"as by {facts['numbered_as']}" if "numbered_as" in facts else by
        lines.append(f"{what} are numbered {by}; agreement of the draws about each: {stability}")
    if facts.get("components_withheld"):
        lines.append(f"single {what} are withheld: {facts['components_withheld']}")
    return lines


def _own_figures(facts: Mapping[str, Any]) -> list[str]:
    """Return a line for each number that the model has of its own, all facts of an exact fit but those said above."""
    said = ("log_evidence", "derived_withheld", "label_stability", "components_withheld", "labelled", "numbered_as")
    own = {name: value for name, value in facts.items() if name not in said}
    return [f"{name.replace('_', ' ')} {'withheld' if v is None else number(v)}" for name, v in own.items()]


def _how(document: Mapping[str, Any], facts: Mapping[str, Any], exact: Mapping[str, Any]) -> str:
    if document["kind"] == "exact":
        return "(exact, of the ordered data)"
    label = f"({document['method']} approximation)"
    if "log_evidence_mcse" in facts:
        label = f"+- {number(facts['log_evidence_mcse'], 2)} by {document['method']}"
    return f"{label}; exact less this: {number(exact['log_evidence_gap'], 3)}" if "log_evidence_gap" in exact else label


def topic_rows(frame: pd.DataFrame) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of a table of topics, and one row a topic: what is known of it as a whole, and its words."""
    known = [name for name in ("shares", "stability", "coherence") if frame.attrs[name]]
    labels = dict.fromkeys(frame.index.get_level_values("topic"))
    rows = [
        [str(label), *(frame.attrs[name][i] for name in known), ", ".join(frame.loc[label, "word"])]
        for i, label in enumerate(labels)
    ]
    return ["topic", *(name.removesuffix("s") for name in known), "words"], rows


def comparison_tables(frame: pd.DataFrame) -> Iterator[tuple[str, list[str], list[list[Any]], list[str]]]:
    """Yield title, columns, rows and the columns of words of each table of a comparison."""
    both_signs = ((frame["p_positive"] > 0) & (frame["p_positive"] < 1)).any()
    of_draws = frame["p_positive_mcse"].isna() & frame["p_positive"].notna()  # all of one sign, which is no probability
    words = frame["p_positive"].map({0.0: "no draw", 1.0: "all draws"})
    frame = frame.assign(p_positive=frame["p_positive"].astype(object).where(~of_draws, words))
    labelled = frame["fit"] + frame["status"].map({"caution": " (caution)", "failed": " (failed)"}).fillna("")
    frame = frame.assign(fit=labelled)
    places = {name: i for i, name in enumerate(dict.fromkeys(frame["parameter"]))}
    frame = frame.sort_values("parameter", key=lambda names: names.map(places), kind="stable")
    for title, all_heads in _COMPARISON.items():
        heads = {key: head for key, head in all_heads.items() if key != "p_positive" or both_signs}
        keys = ["parameter", "fit"] if title == "Estimates" else ["fit"]
        digits = [9 if name in ("log_evidence", "elbo", "loo_score") else 5 for name in (*keys, *heads)]
        rows = frame[[*keys, *heads]].drop_duplicates(keys).itertuples(index=False)
        yield title, [*keys, *heads.values()], [list(map(number, row, digits)) for row in rows], [*_WORDS]


def measured_gaps(frame: pd.DataFrame) -> list[str]:
    """Say of each fit that failed its gate and is shown all the same how far each parameter is off at worst."""
    failed = frame[(frame["status"] == "failed") & frame["measured_against"].notna()]
    gaps = {
        "name": failed["parameter"].str.split("[").str[0],
        "mean": failed["error_sd"].abs(),
        "sd": np.exp(np.abs(np.log(failed["sd_ratio"]))),
    }
    lines = []
    for (fit, against), rows in failed.assign(**gaps).groupby(["fit", "measured_against"], sort=False):
        worst = rows.groupby("name", sort=False)[["mean", "sd"]].max()
        said = [f"{name} {_off(mean, sd)}" for name, mean, sd in worst.itertuples()]
        lines.append(f"{fit} FAILED its gate, and is off from {against} by at most: {'; '.join(said)}.")
    return lines


def _off(mean: float, sd: float) -> str:
    """Say how far a mean is off, and its sd where there is one."""
    return f"mean {number(mean, 2)} sd" + ("" if math.isnan(sd) else f", sd a factor of {number(sd, 2)}")
