"""Rows and lines of plain text about a fit and a comparison, the same for the terminal and the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.foundation import check_names
from bayeszoo.foundation.gate import MIXING
from bayeszoo.foundation.named import Document
from bayeszoo.report.text.folded import below_diagonal, folded
from bayeszoo.report.text.numbers import estimate, nats, number, statistic, without_error
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import DIAGNOSTICS, HEADLINE, elements

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

NONE_AT_ALL = 1e-12
"""Probabilities below this, at a mode on the edge, are shown as 0: their digits differ by processor."""
MAX_ROWS = 400
"""Most printed rows of a table of estimates."""
_PARTS = {"posterior": "parameters", "derived": "derived"}
"""Groups of a fit whose quantities are listed, and the keys of the document that hold them."""
_WITHHELD = {"k_hat_withheld": "k-hat", "draws_withheld": "a part of the draws"}
_ESTIMATES = {"mean": "estimate", "sd": "sd", "q025": "2.5%", "q975": "97.5%", "p_positive": "P(> 0)"}
_ESTIMATES |= {"mcse_mean": "MCSE", "error_mcse": "error/MCSE", "error_sd": "error/sd", "sd_ratio": "sd ratio"}
_EVIDENCE = {"log_evidence": "log evidence", "evidence_se": "error", "evidence_gap": "gap to exact"}
_EVIDENCE |= {"elbo": "ELBO", "elbo_se": "error", "elbo_gap": "gap to exact"}
_PREDICTION = {"loo_score": "LOO score", "loo_se": "se", "loo_mcse": "MC error"}
_PREDICTION |= {"seconds": "seconds", "kind": "kind", "status": "status"}
_WORDS = ("fit", "kind", "status")
_COMPARISON = {"Estimates": _ESTIMATES, "Evidence": _EVIDENCE, "Prediction and cost": _PREDICTION}
"""The tables of a comparison: columns of the frame, and their headings."""
ABOUT_COMPARISON = (
    "LOO score: mean leave-one-out log predictive density of one observation, in nats;",
    "of a point estimate it is plugged in, else the parameters are integrated out.",
    "A dash: it does not apply, or is withheld; so is a LOO score from draws with a k-hat above its limit.",
)


def estimate_rows(
    fit: Fit, document: Document, digits: int | None = None, most: int = MAX_ROWS
) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of the table of estimates, and one row per scalar; withheld cells say so.

    Numbers are text with the digits that their Monte Carlo errors support, or with ``digits`` digits. Each entry of a
    symmetric matrix has one row. Beyond ``most`` rows each parameter has one row for all further entries, with their
    range.
    """
    keys = [*HEADLINE, *DIAGNOSTICS, "error_sd", "sd_ratio"]
    heads = ["estimate" if document["kind"] == "point estimate" else "mean", *keys[1:]]
    used = [i for i, key in enumerate(keys) if _used(document, key)]
    summaries = _summaries(document)
    all_variables = [fit.tree[group].to_dataset()[name] for group, part in _PARTS.items() for name in document[part]]
    hidden = [v for v in all_variables if summaries[str(v.name)]["mean"] is None and _is_shown(document)]
    variables = [v for v in all_variables if not any(v is single for single in hidden)]  # hidden: single components
    used_keys = [keys[i] for i in used]
    cells = [list(_cells(variable, document, used_keys, digits)) for variable in variables]
    means = [summaries[str(variable.name)]["mean"] for variable in variables]
    rows = folded([str(variable.name) for variable in variables], cells, means, most)
    large = (f"{name}: {' x '.join(map(str, shape))} numbers, see -o" for name, shape in document["not_listed"].items())
    unread = (f"{v.name}: {v[0, 0].size} numbers, withheld" for v in hidden)
    rows += [[line, *(None for _ in used)] for line in (*large, *unread)]
    return ["parameter", *(heads[i] for i in used)], rows


def _summaries(document: Document) -> dict[str, Any]:
    return {name: summary for part in _PARTS.values() for name, summary in document[part].items()}


def _cells(variable: xr.DataArray, document: Document, keys: Sequence[str], digits: int | None) -> Iterator[list[Any]]:
    """Yield one row per scalar of a variable: its name, and the statistics ``keys`` as text."""
    withheld, of_variable = set(document["facts"].get("withheld", ())), _summaries(document)[str(variable.name)]
    summary = of_variable if digits is not None else _without_rounding(of_variable, document["kind"])
    arrays = {key: value if value is None else np.asarray(value) for key, value in summary.items()}
    is_repeated = below_diagonal([str(dim) for dim in variable.dims], summary["mean"])
    for index, label in elements(variable):
        if is_repeated(index):
            continue
        cells = [_cell(arrays, key, index, _is_shown(document), digits) for key in keys]
        if label in withheld:
            cells = ["withheld" if key in ("mean", "sd") else c for key, c in zip(keys, cells, strict=True)]
        yield [label, *cells]


def _without_rounding(summary: Mapping[str, object], kind: str) -> Mapping[str, object]:
    """Return the summary with probabilities of a mode at the edge set to 0, which a climb only approaches."""
    if kind != "point estimate" or summary["mean"] is None:
        return summary
    values = np.asarray(summary["mean"])
    if not values.ndim or np.any(values < 0) or not np.allclose(values.sum(axis=-1), 1, atol=1e-9):
        return summary
    return {**summary, "mean": np.where(values < NONE_AT_ALL, 0.0, values)}


def _used(document: Document, key: str) -> bool:
    withheld = not _is_shown(document) and key in ("mean", "sd")
    return withheld or any(summary[key] is not None for part in _PARTS.values() for summary in document[part].values())


def _is_shown(document: Document) -> bool:
    return document["status"] in ("ok", "caution")


def _cell(
    summary: Mapping[str, Any], key: str, index: tuple[int, ...], is_shown: bool, digits: int | None
) -> str | None:
    if summary[key] is None:
        return "withheld" if not is_shown and key in ("mean", "sd") else None
    errors = summary.get(f"mcse_{key}")
    error = None if errors is None else float(errors[index])
    value = float(summary[key][index])
    sd = None if summary.get("sd") is None else float(summary["sd"][index])
    has_heavy_tails = error is not None and math.isnan(error) and (key == "sd" or (sd is not None and math.isnan(sd)))
    if key in ("mean", "sd") and has_heavy_tails:
        ends = [
            np.asarray(summary[name])[index] for name in ("q025", "q975") if key == "mean" and summary[name] is not None
        ]
        return without_error(value, digits, float(ends[1] - ends[0]) if ends else 0.0)
    return statistic(key, value, error, digits, sd)


def none_shown(columns: Sequence[str], rows: Sequence[Sequence[Any]], checks: Mapping[str, Any]) -> str:
    """Return a line that all estimates are withheld, and why: the worst diagnostics, or other failed checks.

    Diagnostics of chains that mix well would mislead.
    """
    failed = {name: check["value"] for name, check in checks.items() if check["verdict"] == "failed"}
    if failed and not failed.keys() & set(MIXING):
        names = (f"{check_names.plain(name)} {number(value, 4)}" for name, value in failed.items())
        reason = f": failed {'; '.join(names)}"
    else:
        reason = _worst_mixing(columns, rows)
    return f"{'the estimate is' if len(rows) == 1 else f'all {len(rows)} estimates are'} withheld{reason}"


def _worst_mixing(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return the parameters with the worst diagnostics."""
    worst = []
    for name, choose in (("r_hat", max), ("ess_bulk", min)):
        place = columns.index(name) if name in columns else None
        figures = [(float(row[place]), row[0]) for row in rows if place is not None and row[place] not in (None, "-")]
        worst += ["{} {:.4g} of {}".format(name, *choose(figures))] if figures else []
    return f": worst {', '.join(worst)}; --json has all" if worst else ""


def figures(document: Document, digits: int | None = None) -> list[str]:
    """Return lines on evidence, ELBO and likelihood, each with its method and its gap to the exact number.

    Numbers have two decimals, or ``digits`` significant digits.
    """
    exact, facts = document["exact"] or {}, document["facts"]
    lines = []
    if document["log_evidence"] is not None:
        lines.append(f"log evidence {nats(document['log_evidence'], digits)} {_how(document, facts, exact)}")
    if document["log_evidence"] is not None and "log_evidence_counts" in exact and document["kind"] == "exact":
        counts = exact["log_evidence_counts"]
        how = "withheld: its terms cancel" if math.isnan(counts) else f"{nats(counts, digits)} (exact)"
        lines.append(f"log evidence of the counts {how}")
    lines += _further_figures(facts) if document["kind"] == "exact" else []
    if document["elbo"] is not None:
        gap = f", {number(exact['elbo_gap'], 3)} below the exact log evidence" if "elbo_gap" in exact else ""
        error = f" +- {number(facts['elbo_se'], 2)}" * (facts["elbo_se"] != 0)
        shape = "none, as all weights are equal"  # equal weights have no tail
        shape = shape if facts["k_hat"] == -math.inf else number(facts["k_hat"], 3)
        k_hat = f"; k-hat {shape}" * ("k_hat_withheld" not in facts)
        lines.append(f"ELBO {nats(document['elbo'], digits)}{error}{gap}{k_hat}")
    if "mean_gap" in facts and _is_shown(document):
        ratios = " to ".join(number(facts[key], 2) for key in ("sd_ratio_least", "sd_ratio_most"))
        gap = f"means within {number(facts['mean_gap'], 2)} sd of the posterior's, sds {ratios} times the posterior's"
        lines.append(f"measured against {facts.get('measured_against', 'its own draws')}: {gap}")
    lines += [f"{name} is withheld: {facts[key]}" for key, name in _WITHHELD.items() if key in facts]
    if document["log_likelihood"] is not None:
        joint = nats(document["log_joint"], digits)
        lines.append(f"log likelihood {nats(document['log_likelihood'], digits)}, log joint {joint} at the point")
    lines += _of_restarts(facts, _is_shown(document), digits) + _of_labels(facts)
    if "derived_withheld" in facts:
        lines.append(f"derived quantities are withheld: {facts['derived_withheld']}")
    if "mode_space" in facts:
        lines.append(f"mode taken in the {facts['mode_space']} space")
    return lines


def _of_restarts(facts: Document, is_shown: bool, digits: int | None) -> list[str]:
    """Return lines on restarts and on refused maxima, with their heights if the fit is shown."""
    if "restarts" not in facts:
        return _of_live(facts) if is_shown and "live_mcse" in facts else []
    heights = ", ".join(nats(height, digits) for height in facts["maxima"])
    best = f"the maxima {heights}" if is_shown else f"{len(facts['maxima'])} maxima"
    abandoned = facts.get("abandoned", facts.get("given_up", 0))  # given_up: its name in files of earlier versions
    reached, starts = facts["reached_the_best"], facts["restarts"]
    lines = [f"{reached} of {starts} restarts reached the best of {best}"]
    if abandoned:
        lines = [f"{starts} starts, {starts - abandoned} climbed to the end, {reached} reached the best of {best}"]
    if "highest_degenerate" in facts:
        highest = f"the highest {nats(facts['highest_degenerate'], digits)}, {facts['degenerate_because']}"
        lines.append(f"{facts['degenerate']} degenerate maxima refused, {highest}")
    return lines + _of_live(facts)


def _of_live(facts: Document) -> list[str]:
    """Return lines on the number of components in use, with its probability if that is measured."""
    if "live" in facts:
        how = f"\u00b1 {number(facts['live_mcse'], 1)}" if "live_mcse" in facts else f"by {facts['measured_against']}"
        probability = f"with probability {number(facts['live_probability'], 3)} {how}"
        return [f"factors with more variance than the noise: {facts['live']}, {probability}"]
    if "live_withheld" in facts:
        return [f"the number of factors in use is withheld: {facts['live_withheld']}"]
    noun = "factors switched on" if "labelled" in facts else "components with at least one row"
    return [f"{noun}: {facts['occupied_components']}"] if "occupied_components" in facts else []


def _of_labels(facts: Document) -> list[str]:
    """Return lines on how far draws agree about the labels of components."""
    subject, by = ("factors", "by length") if "labelled" in facts else ("components", "by weight")
    lines = []
    if "label_stability" in facts:
        stability = ", ".join(number(value, 3) for value in facts["label_stability"])
        by = f"as by {facts['numbered_as']}" if "numbered_as" in facts else by
        lines.append(f"{subject} sorted {by}; label agreement between draws: {stability}")
    if facts.get("components_withheld"):
        lines.append(f"single {subject} are withheld: {facts['components_withheld']}")
    return lines


def _further_figures(facts: Mapping[str, object]) -> list[str]:
    """Return a line for each further number of an exact fit that its model defines."""
    shown = ("log_evidence", "derived_withheld", "label_stability", "components_withheld", "labelled", "numbered_as")
    further = {name: value for name, value in facts.items() if name not in shown}
    return [f"{name.replace('_', ' ')} {'withheld' if v is None else number(v)}" for name, v in further.items()]


def _how(document: Document, facts: Mapping[str, object], exact: Mapping[str, object]) -> str:
    if document["kind"] == "exact":
        return "(exact, of the ordered data)"
    label = f"({document['method']} approximation)"
    if facts.get("importance_evidence") is not None:
        by_weights = f"{nats(facts['importance_evidence'])} +- {number(facts['importance_evidence_se'], 2)}"
        label = f"({document['method']} approximation; by importance sampling {by_weights})"
    if "log_evidence_mcse" in facts:
        label = f"+- {number(facts['log_evidence_mcse'], 2)} by {document['method']}"
    return f"{label}; gap to exact: {number(exact['log_evidence_gap'], 3)}" if "log_evidence_gap" in exact else label


def topic_rows(frame: pd.DataFrame) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of a table of topics, and one row per topic: facts about it, and its words."""
    shown = [name for name in ("shares", "stability", "coherence") if frame.attrs[name]]
    labels = dict.fromkeys(frame.index.get_level_values("topic"))
    errors = {"shares": frame.attrs.get("mcse_shares")}
    rows = [
        [str(label), *(_of_topic(frame.attrs[name][i], errors.get(name), i) for name in shown), words]
        for i, (label, words) in enumerate((label, ", ".join(frame.loc[label, "word"])) for label in labels)
    ]
    return ["topic", *(name.removesuffix("s") for name in shown), "words"], rows


def _of_topic(value: float, errors: Sequence[float] | None, i: int) -> str:
    """Return a number about a topic, to the digits of its Monte Carlo error if that is known."""
    return number(value, 3) if errors is None else estimate(value, errors[i])


def comparison_tables(
    frame: pd.DataFrame, digits: int | None = None
) -> Iterator[tuple[str, list[str], list[list[Any]], list[str]]]:
    """Yield title, columns, rows and the names of text columns of each table of a comparison."""
    both_signs = ((frame["p_positive"] > 0) & (frame["p_positive"] < 1)).any()
    of_draws = frame["p_positive_mcse"].isna() & frame["p_positive"].notna()  # draws of one sign give no probability
    words = frame["p_positive"].map({0.0: "no draw", 1.0: "all draws"})
    frame = frame.assign(p_positive=frame["p_positive"].astype(object).where(~of_draws, words))
    labelled = frame["fit"] + frame["status"].map({"caution": " (caution)", "failed": " (failed)"}).fillna("")
    spreads = frame["sd"].fillna(frame.groupby("parameter")["sd"].transform("max"))
    frame = frame.assign(fit=labelled, spread=spreads)
    places = {name: i for i, name in enumerate(dict.fromkeys(frame["parameter"]))}
    frame = frame.sort_values("parameter", key=lambda names: names.map(places), kind="stable")
    for title, all_heads in _COMPARISON.items():
        heads = {key: head for key, head in all_heads.items() if key != "p_positive" or both_signs}
        keys = ["parameter", "fit"] if title == "Estimates" else ["fit"]
        rows = frame.drop_duplicates(keys).to_dict("records")
        cells = [[_compared(row, key, digits) for key in (*keys, *heads)] for row in rows]
        yield title, [*keys, *heads.values()], cells, [*_WORDS]


def _compared(row: Mapping[object, object], key: str, digits: int | None) -> str:
    """Format a cell of a comparison by its Monte Carlo error, which is in the same row."""
    if isinstance(row[key], str):
        return str(row[key])
    error = row["loo_mcse"] if key == "loo_score" else row.get(f"mcse_{key}", row.get(f"{key}_mcse"))
    return statistic(key, row[key], error, digits, row["spread"])


def measured_gaps(frame: pd.DataFrame) -> list[str]:
    """Return a line with the largest gap of each parameter, for each fit that failed its gate but is shown."""
    failed = frame[(frame["status"] == "failed") & frame["measured_against"].notna()]
    if failed.empty:  # without any answer there are no names of parameters
        return []
    gaps = {
        "name": failed["parameter"].str.split("[").str[0],
        "mean": failed["error_sd"].abs(),
        "sd": np.exp(np.abs(np.log(failed["sd_ratio"]))),
    }
    lines = []
    for (fit, against), rows in failed.assign(**gaps).groupby(["fit", "measured_against"], sort=False):
        worst = rows.groupby("name", sort=False)[["mean", "sd"]].max()
        gaps_by_name = [f"{name} {_off(mean, sd)}" for name, mean, sd in worst.itertuples()]
        lines.append(f"{fit} FAILED its gate, and is off from {against} by at most: {'; '.join(gaps_by_name)}.")
    return lines


def _off(mean: float, sd: float) -> str:
    """Return how far a mean is off, and its sd if there is one."""
    return f"mean {number(mean, 2)} sd" + ("" if math.isnan(sd) else f", sd a factor of {number(sd, 2)}")
