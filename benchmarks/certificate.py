"""Write the page of the certificate from the lines of its cells alone."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.cells import CASES, ROWS, THINNED, source_digest

BINS = 20
LEVEL = 1e-4  # of a model's smallest p-value, Bonferroni over its quantities
FEWEST = 100  # simulations below which nothing is concluded
MAX_Z = 4.9  # of the largest of some thousand numbers
NEAR, NOISE = (0.1, 1 / 0.9), (0.04, 1.04)
"""Gaps up to which an approximation is to be ok; and what errors of both sides may add to them."""


def lowest_p(ranks: Sequence[Mapping[str, list[int]]]) -> tuple[float, int]:
    """Return the smallest chi-square p-value of any quantity's ranks, times their number, and this number.

    Of a quantity that has more entries in some simulations than in others, as a function at places, the first.
    """
    entries = {name: [np.ravel(each[name]) for each in ranks] for name in ranks[0]}
    columns = [np.stack([own[: min(map(len, each))] for own in each]) for each in entries.values()]
    table = np.concatenate(columns, axis=1)
    counts = [np.histogram(column, BINS, (0, THINNED + 1))[0] for column in table.T]
    return min(1.0, min(stats.chisquare(each).pvalue for each in counts) * len(counts)), len(counts)


def page(lines: Mapping[str, Mapping[str, Any]], digest: Callable[[str], str] = source_digest) -> str:
    """Write the certificate: what was run, and what came of it."""
    groups: dict[str, dict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for cell, line in lines.items():
        kind, _, rest = cell.partition("/")
        groups[kind][rest if kind == "bugs" else rest.rpartition("/")[0]].append(line)
    present = sum(line["source"] == digest(cell) for cell, line in lines.items())
    again = [line["same"] for line in lines.values() if "same" in line]
    said = (
        f" Of {len(again)} older cells drawn at random and run again, {sum(again)} came to the same verdict."
        if again
        else ""
    )
    parts = [
        "# Certificate",
        "Written by `make certify` from `models/scorecards/certificate.jsonl`, and not to be edited. It takes hours "
        f"and goes on where it was interrupted: {len(lines)} cells so far, {present} of them with today's "
        f"models and engines.{said}",
        "## Simulation-based calibration",
        f"Ranks among {THINNED} draws of parameters simulated with {ROWS} rows, chi-square in {BINS} bins, p times the "
        f"number of quantities; below {LEVEL:g} fails, and of fewer than {FEWEST} simulations nothing is concluded.",
        _table("model and sampler, simulations, withheld, raised, quantities, p, verdict", _calibrated(groups["sbc"])),
        "## Seeded bugs",
        _table("tests, bugs, caught, missed", _caught(groups["bugs"])),
        "## Fits again with other seeds",
        f"False alarms: a fit of its own data that the gate fails, or a number off by {MAX_Z} errors.",
        _table("model, fits, ok, caution, failed, largest z", _again(groups["again"])),
        "## Targets out of reach",
        "A miss is a wrong number that is shown with an error; an sd without one has a note that it may not exist.",
        _table("target, fits, ok, caution, failed, misses (seeds)", _bad(groups["bad"])),
        "## Verdicts on approximations against the truth",
        "Every printed quantity against the exact posterior, or 20,000 draws of NUTS: the largest error of a mean in "
        f"sd and the largest factor between sds, of {CASES} data sets for each model. An ok is wrong beyond "
        f"{NEAR[0]} sd or 10%, and the noise of both sides; a caution or a failure is a false alarm where all are well "
        "within.",
        _table(
            "model and approximation, fits, ok, wrong ok, caution, failed, false alarms, no truth, worst ok, worst "
            "shown",
            _verdicts(groups["verdict"]),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heads: str, rows: Iterable[Sequence[Any]]) -> str:
    names = heads.split(", ")
    body = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in body)


def _calibrated(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    for name, lines in sorted(lines_of.items()):
        ranks = [line["ranks"] for line in lines if "ranks" in line]
        raised = sum("raised" in line for line in lines)
        p, quantities = lowest_p(ranks) if ranks else (1.0, 0)
        verdict = "too few" if len(ranks) < FEWEST else ("passed" if p >= LEVEL else "failed")
        yield name, len(lines), len(lines) - len(ranks) - raised, raised, quantities, f"{p:.2g}", verdict


def _caught(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    for name, (line,) in sorted(lines_of.items()):
        bugs = line.get("bugs", {})
        missed = ", ".join(f"`{bug}`" for bug, was_caught in bugs.items() if not was_caught)
        yield name, len(bugs), sum(bugs.values()), line.get("raised", missed)


def _statuses(lines: Sequence[Mapping[str, Any]]) -> list[int]:
    counts = Counter(line.get("status", "failed") for line in lines)
    return [len(lines), counts["ok"], counts["caution"], len(lines) - counts["ok"] - counts["caution"]]


def _again(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    for name, lines in sorted(lines_of.items()):
        largest = max((line["z"] for line in lines if line.get("z") is not None), default=None)
        yield name, *_statuses(lines), "" if largest is None else f"{largest:.2f}{'!' * (largest > MAX_Z)}"


def _bad(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    for name, lines in sorted(lines_of.items()):
        missed = [line["cell"].rpartition("/")[2] for line in lines if line.get("missed") or "raised" in line]
        yield name, *_statuses(lines), f"{len(missed)} ({', '.join(missed)})" if missed else 0


def _verdicts(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    total = Counter[str]()
    for name, lines in sorted(lines_of.items()):
        known = [line for line in lines if "mean_gap" in line]
        ok = [line for line in known if line["status"] == "ok"]
        count = Counter(
            fits=len(lines),
            ok=sum(line.get("status") == "ok" for line in lines),
            wrong=sum(_beyond(line, *NOISE) for line in ok),
            caution=sum(line.get("status") == "caution" for line in lines),
            failed=sum(line.get("status") == "failed" for line in lines),
            alarms=sum(not _beyond(line, -NOISE[0], 1 / NOISE[1]) for line in known if line["status"] != "ok"),
            unknown=len(lines) - len(known),
        )
        total.update(count)
        yield name, *count.values(), _gap(ok), _gap([line["shown"] for line in known if line.get("shown")])
    yield "all", *(total[key] for key in ("fits", "ok", "wrong", "caution", "failed", "alarms", "unknown")), "", ""


def _beyond(line: Mapping[str, Any], more: float, factor: float) -> bool:
    """Say whether a gap is beyond what is ok, moved by what noise may add."""
    return bool(line["mean_gap"] > NEAR[0] + more or line["sd_factor"] > NEAR[1] * factor)


def _gap(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return ""
    return f"{max(line['mean_gap'] for line in lines):.2g} sd, x {max(line['sd_factor'] for line in lines):.3g}"
