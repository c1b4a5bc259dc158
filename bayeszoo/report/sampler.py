"""The page about a benchmark of a sampler: a verdict, its targets, and every quantity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayeszoo.report.blocks import Section, TableBlock, Words, table
from bayeszoo.report.families.screens import Answer
from bayeszoo.report.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

    from bayeszoo.tools.references.benchmark import Benchmark

_HEADS = {
    "mean_z": "means",
    "square_z": "squares",
    "tail_z": "tails",
    "log_density_z": "log density",
    "score_z": "gradient",
    "virial_z": "virial",
    "sd_ratio": "sd ratio",
    "ess": "ESS",
    "ess_per_call": "ESS per call",
    "evidence_error": "evidence error",
    "bias": "bias / sd",
    "bias_z": "bias / error",
    "below_q025": "below 2.5%",
    "above_q975": "above 97.5%",
}
_WORDS = {
    "right": ("ok", "No check shows draws from other distributions than the targets."),
    "wrong": ("withheld", "Its draws are not of the targets named below."),
    "not mixed": (
        "caution",
        "The effective sample size is too small to judge the targets named below.",
    ),
}
_COMPARED = (
    "Means, squares, both tails and the log density of the draws are compared with 10,000 independent draws, in "
    "standard errors of the difference. By the gradient g of the log density, the mean of g over the draws is 0 "
    "(column gradient), and that of x g is -1 (virial). The table has the largest over coordinates: a right sampler "
    "exceeds the limit on any target in one of a thousand benchmarks."
)


def parts(result: Benchmark) -> dict[str, Any]:
    """Return the parts of the page about a benchmark."""
    calls = int(result.table["calls"].sum())
    frames = {"targets": result.table, "quantities": result.quantities}
    return {
        "title": f"Is {result.sampler} right?",
        "about": ["A sampler on targets whose answer is known"],
        "data": f"{len(result.table)} targets, {calls:,} calls of their log densities",
        "notes": [],
        "verdicts": [_verdict(result)],
        "winner": [],
        "answer": Answer(),
        "estimates": Section("estimates", "Targets", [_table(result.table), Words(_COMPARED, "note")]),
        "sections": [Section("quantities", "Quantities", [_table(result.quantities)])],
        "numbers": {"verdict": result.verdict, **{name: _records(frame) for name, frame in frames.items()}},
    }


def _verdict(result: Benchmark) -> Verdict:
    state, words = _WORDS[result.verdict]
    named = result.table.index[result.table["verdict"] == result.verdict]
    targets = f" {', '.join(map(str, named))}." if result.verdict != "right" else ""
    return Verdict(result.sampler, state, result.verdict, words + targets)


def _table(frame: pd.DataFrame) -> TableBlock:
    """Return a table with one row per target or quantity."""
    names = [" ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in frame.index]
    heads = [" of ".join(map(str, frame.index.names[::-1])), *(_HEADS.get(str(name), str(name)) for name in frame)]
    rows = [[name, *row] for name, row in zip(names, frame.round(4).to_numpy().tolist(), strict=True)]
    return table(heads, rows, words=["verdict"])


def _records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    records: list[dict[Any, Any]] = frame.reset_index().to_dict("records")
    return records
