"""The command `empirical`: choose hyperparameters by the evidence, and print what that gave."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from bayeszoo import terminal, zoo
from bayeszoo.data import Data
from bayeszoo.empirical import ENVELOPE, EmpiricalBayes, empirical_bayes
from bayeszoo.errors import Untrustworthy
from bayeszoo.fields import text
from bayeszoo.gate import as_dict
from bayeszoo.model import fields_of
from bayeszoo.options import PriorOptions, TableOptions
from bayeszoo.tree import dumps


def empirical_command(
    name: str,
    data: str | None = None,
    /,
    *,
    over: str | None = None,
    starts: int = 8,
    seed: Annotated[int, Parameter(validator=Number(gte=0, lt=2**63))] = 0,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    prior: PriorOptions | None = None,
    table: TableOptions | None = None,
) -> int:
    """Choose hyperparameters so that the evidence of the data is largest.

    Parameters
    ----------
    name
        The model; see `bayeszoo list`.
    data
        CSV, TSV or Parquet file; the model's own data without it.
    over
        Comma-separated fields to choose; they begin at --set and --prior.
    starts
        Climbs, from different places.
    seed
        Of these places.
    as_json
        One JSON document on stdout, and nothing else.
    """
    model = zoo.find(name)
    rows = (table or TableOptions()).read(model, data)
    chosen = [field.strip() for field in (over or "").split(",") if field.strip()]
    prior = prior or PriorOptions()
    found = empirical_bayes(prior.model(model, rows), rows, chosen, starts=starts, seed=seed)
    described = {**document(found), "seed": seed, "prior": prior.prior, "data": _source(rows)}
    if as_json:
        sys.stdout.write(dumps(described) + "\n")
    else:
        show(found, described)
    for warning in described["warnings"]:
        terminal.note(f"warning: {warning}")
    return 0 if found.status == "ok" else Untrustworthy.exit_code


def _source(rows: Data) -> dict[str, str]:
    return {"source": rows.source, "digest": rows.digest}


def document(found: EmpiricalBayes) -> dict[str, Any]:
    """Return the result as plain values; fields and evidence are withheld (null) when the checks did not pass."""
    ok = found.status == "ok"
    return {
        "model": found.model.name,
        "status": found.status,
        "over": list(found.over),
        "fields_before": fields_of(found.before),
        "fields": fields_of(found.model) if ok else None,
        "log_evidence_before": found.log_evidence_before,
        "log_evidence": found.log_evidence if ok else None,
        "boundary": found.boundary,
        "starts": found.starts,
        "reached": found.reached,
        "gate": as_dict(found.checks),
        "warnings": [] if ok else ["the fields are withheld: there is no maximum to report", *found.reasons],
    }


def show(found: EmpiricalBayes, described: dict[str, Any]) -> None:
    """Print the fields before and after, the evidence, and how far it can be trusted."""
    console, source = terminal.out(), described["data"]
    console.print(f"{found.model.name}: fields that make the evidence largest")
    console.print(f"data {terminal.escaped(source['source'])} ({source['digest'][:8]}), seed {described['seed']}")
    terminal.show(terminal.table(["field", "before", "after"], _rows(described)))
    before, after = (terminal.number(described[key], 10) for key in ("log_evidence_before", "log_evidence"))
    console.print(f"log evidence {before} before, {after if found.status == 'ok' else 'withheld'} after")
    if found.status == "ok":
        console.print(ENVELOPE)
    console.print(f"{found.reached} of {found.starts} climbs reached the best")
    count, failed = len(found.checks), sum(not check.passed for check in found.checks)
    verdict = f"{failed} of {count} checks failed" if failed else f"{count} of {count} checks passed"
    console.print(f"status {found.status}: {verdict}")


def _rows(described: dict[str, Any]) -> list[list[str]]:
    before, after, over = described["fields_before"], described["fields"], described["over"]
    return [
        [name, text(value), ("withheld" if after is None else text(after[name])) if name in over else "as given"]
        for name, value in before.items()
    ]
