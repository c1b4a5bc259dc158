"""Hyperparameters that maximize the evidence: ``bayeszoo empirical``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.cli.groups import by_group
from bayeszoo.comparison.evidence.by_draws import WITHHELD, EmpiricalBayesByDraws
from bayeszoo.comparison.evidence.by_laplace import EmpiricalBayesByLaplace
from bayeszoo.comparison.evidence.by_lengths import EmpiricalBayesOfLengths
from bayeszoo.comparison.evidence.empirical_bayes import (
    ONLY_A_BOUND,
    EmpiricalBayesByVB,
    empirical_bayes,
    no_closed_form,
)
from bayeszoo.comparison.evidence.full_bayes import FullBayes, full_bayes
from bayeszoo.comparison.evidence.grid import require_few
from bayeszoo.comparison.evidence.record import ENVELOPE, EmpiricalBayes
from bayeszoo.data.inputs.labels import names_listed
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.foundation.gate import as_dict
from bayeszoo.foundation.named import Document
from bayeszoo.model import find as zoo
from bayeszoo.model.base import fields_of
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.fields import text
from bayeszoo.report.text.numbers import nats, number
from bayeszoo.report.text.tables import MAX_ROWS

IN_THE_LIMIT = "the evidence levels off, and the other fields are at its maximum in this limit"
_STATISTICS = ("mean", "sd", "q025", "median", "q975")
_MOMENTS = ("plug_in_mean", "plug_in_sd", "mean", "sd")


@Parameter(name="*")
@dataclass(frozen=True)
class SearchOptions:
    """Which fields are chosen, and from where the search starts.

    Parameters
    ----------
    over
        Comma-separated fields to choose; the climbs start at their values of --set and --prior.
    full
        Also integrate these fields out (one or two positive fields) and compare that posterior with the plug-in one.
    starts
        Number of climbs from different starts; Monte Carlo EM always uses two.
    seed
        Seed of these starts, or of the draws.
    """

    over: str | None = None
    full: opt.Flag = False
    starts: int = 8
    seed: opt.Seed = 0


SEARCH = SearchOptions()


@by_group
def empirical_command(
    name: opt.ModelName,
    data: opt.DataFile = None,
    /,
    *,
    search: SearchOptions = SEARCH,
    by: opt.By = None,
    as_json: opt.Json = False,
    digits: opt.Digits = None,
    prior: opt.PriorOptions = opt.PRIOR,
    table: opt.TableOptions = opt.TABLE,
) -> int:
    """Choose hyperparameters that maximize the evidence (empirical Bayes).

    Where the evidence has no closed form for these data, draws of NUTS choose the fields of the prior.
    """
    rows = table.read(model := zoo.find(name), data)
    chosen, full = [name for name in names_listed(search.over) if name], search.full
    start = prior.model(model, rows)
    if full and chosen:
        require_few(start, chosen)
        if why := no_closed_form(start, rows):
            raise InputError(
                f"--full needs the evidence in closed form, and there is none for these data ({why})",
                "no_closed_form",
                hint="leave out --full",
            )
    with closing(terminal.TerminalReporter()) as reporter:
        maximum = empirical_bayes(start, rows, chosen, starts=search.starts, seed=search.seed, reporter=reporter)
    integrated = full_bayes(start, rows, chosen, plug_in=maximum) if full and maximum.status == "ok" else None
    described = {
        **document(maximum, rows, integrated),
        "seed": search.seed,
        "prior": prior.prior,
        "data": {"source": rows.source, "digest": rows.digest},
    }
    if full and not integrated:
        described["warnings"].append("full Bayes is withheld: there is no maximum, around which the bounds are set")
    if as_json:
        terminal.print_json(described)
    else:
        _show(maximum, described, digits)
    for warning in described["warnings"]:
        terminal.note(f"warning: {warning}")
    if described["next"]:
        terminal.note(f"next: {described['next']}")
    ok = maximum.is_shown and (not full or (integrated is not None and integrated.status == "ok"))
    return 0 if ok else Untrustworthy.exit_code


# The document


def document(maximum: EmpiricalBayes, rows: Data, integrated: FullBayes | None = None) -> Document:
    """Return the results as plain values; numbers whose checks failed are withheld (null).

    ``integrated`` is the posterior with the fields integrated out.
    """
    model, ok, known = maximum.model, maximum.is_shown, type(maximum) is EmpiricalBayes
    bound = None
    if isinstance(maximum, EmpiricalBayesByVB):
        elbos = {"elbo_before": maximum.elbo_before, "elbo": maximum.elbo if ok else None}
        bound = {**elbos, "log_evidence": ONLY_A_BOUND}
    return {
        "model": model.name,
        "status": maximum.status,
        "over": list(maximum.over),
        "fields_before": fields_of(maximum.before),
        "fields": {name: maximum.limits.get(name, value) for name, value in fields_of(model).items()} if ok else None,
        "log_evidence_before": maximum.log_evidence_before if known else None,
        "log_evidence": maximum.log_evidence if ok and known else None,
        "draws": _of_draws(maximum) if isinstance(maximum, EmpiricalBayesByDraws) else None,
        "bound": bound,
        "laplace": _of_laplace(maximum) if isinstance(maximum, EmpiricalBayesByLaplace) else None,
        "figures": None if not ok else model.figures(model.statistics(rows)) if isinstance(model, ClosedForm) else {},
        "lengths": _of_lengths(maximum) if isinstance(maximum, EmpiricalBayesOfLengths) else None,
        "boundary": maximum.boundary,
        "limits": maximum.limits,
        "starts": maximum.starts,
        "reached": maximum.reached,
        "gate": as_dict(maximum.checks),
        "full_bayes": None if integrated is None else _of_full_bayes(integrated, rows),
        "warnings": _warnings(maximum, integrated),
        "next": maximum.next_step or None,
    }


def _unless(is_withheld: bool, **values: Any) -> dict[str, Any]:
    return dict.fromkeys(values) if is_withheld else values


def _of_draws(maximum: EmpiricalBayesByDraws) -> Document:
    """Return the errors of fields chosen from draws, and the reason why there is no evidence."""
    shown = _unless(
        not maximum.is_shown,
        field_error={name: maximum.error_of(name) for name in maximum.over if name in maximum.error},
        log_field_error=maximum.error,
    )
    return {**shown, "fits": maximum.fits, "log_evidence": WITHHELD}


def _of_laplace(maximum: EmpiricalBayesByLaplace) -> Document:
    """Return the evidence by Laplace's method, and by importance sampling."""
    names = ("log_evidence_before", "log_evidence", "importance_evidence", "importance_evidence_se", "k_hat")
    return _unless(not maximum.is_shown, **{name: getattr(maximum, name) for name in names})


def _of_lengths(maximum: EmpiricalBayesOfLengths) -> Document:
    """Return the highest log densities of the rows, with one length and with one for each feature."""
    names = ("log_evidence_before", "log_evidence", "amplitude", "sigma")
    return _unless(not maximum.is_shown, **{name: getattr(maximum, name) for name in names})


def _of_full_bayes(integrated: FullBayes, rows: Data) -> Document:
    model, plain = integrated.model, ("status", "prior", "bounds", "log_evidence_error", "edges")
    shown = _unless(
        integrated.status != "ok",
        log_evidence=integrated.log_evidence,
        fields=integrated.fields,
        parameters={
            name: {"dims": list(model.dims.get(name, ())), **moments} for name, moments in integrated.parameters.items()
        },
    )
    return {
        **{name: getattr(integrated, name) for name in plain},
        **shown,
        "variance_near_bounds": integrated.variance_near_bounds,
        "points": list(integrated.points),
        "coords": {name: np.asarray(labels) for name, labels in model.coords(rows).items()},
        "gate": as_dict(integrated.checks),
    }


def _warnings(maximum: EmpiricalBayes, integrated: FullBayes | None) -> list[str]:
    """Return why numbers are withheld, and what to know about those that are shown."""
    if not maximum.is_shown:
        return ["the fields are withheld: there is no maximum to report", *maximum.reasons]
    lines = [f"{name} -> {end:g}: {IN_THE_LIMIT}" for name, end in maximum.limits.items()]
    lines += maximum.reasons if maximum.status == "caution" else []
    if integrated is not None:
        lines += integrated.notes if integrated.status == "ok" else ["full Bayes is withheld", *integrated.reasons]
    return lines


# The terminal


def _show(maximum: EmpiricalBayes, described: Document, digits: int | None) -> None:
    """Print the fields before and after, the evidence, and how far it can be trusted."""
    console, source = terminal.out(), described["data"]
    console.print(f"{maximum.model.name}: fields that maximize the evidence")
    console.print(f"data {terminal.escaped(source['source'])} ({source['digest'][:8]}), seed {described['seed']}")
    columns = ["field", "before", "after"]
    terminal.show_table(columns, _rows(described, digits), words=columns)
    ok = maximum.is_shown
    about = [*maximum.about_evidence(ok, digits or 2), *([ENVELOPE] if ok else []), *_more(described, digits or 5)]
    terminal.show_each([*about, terminal.judged(described)])
    if described["full_bayes"]:
        _show_integrated(described["full_bayes"], digits)


def _rows(described: Document, digits: int | None) -> list[list[str]]:
    write = text if digits is None else partial(_text, digits)
    rows = []
    for name, value in described["fields_before"].items():
        chosen = "withheld" if described["fields"] is None else write(described["fields"][name])
        rows.append([name, write(value), chosen if name in described["over"] else "as given"])
    return rows


def _text(digits: int, value: object) -> str:
    """Write a field with N digits; lists are written in full."""
    return number(value, digits) if isinstance(value, float) else text(value)


def _more(described: Document, digits: int) -> Iterator[str]:
    """Yield lines on the effective number of parameters and on the climbs."""
    for name, value in (described["figures"] or {}).items():
        yield f"{name.replace('_', ' ')} {number(value, digits)}"
    if described["starts"]:
        yield f"{described['reached']} of {described['starts']} climbs reached the highest maximum"


def _show_integrated(described: Document, digits: int | None) -> None:
    """Print the posterior of the fields, and of the parameters with the fields integrated out."""
    console = terminal.out()
    console.print("", f"Full Bayes: prior {described['prior']}", sep="\n")
    if described["status"] == "ok":
        fields = [[name, *(moments[key] for key in _STATISTICS)] for name, moments in described["fields"].items()]
        terminal.show_table(["field", "mean", "sd", "2.5%", "median", "97.5%"], fields, digits=digits)
        columns = ["parameter", "plug-in mean", "plug-in sd", "mean", "sd"]
        rows = list(_parameters(described))
        terminal.show_table(columns, rows[:MAX_ROWS], digits=digits)
        if len(rows) > MAX_ROWS:
            console.print(f"... {len(rows) - MAX_ROWS} more: see --json")
        console.print(f"log evidence {nats(described['log_evidence'], digits)}, fields integrated out")
        console.print(f"with half the points it changes by {number(described['log_evidence_error'], 2)}")
    edges = [f"{name} {low:.1g} and {high:.1g}" for name, (low, high) in described["edges"].items()]
    console.print(f"posterior probability near the bounds: {', '.join(edges)}")
    console.print(terminal.judged(described))


def _parameters(described: Document) -> Iterator[list[Any]]:
    """Yield a row for each scalar, by its labels where it has any."""
    for name, moments_of in described["parameters"].items():
        labels = [described["coords"][dim] for dim in moments_of["dims"] if dim in described["coords"]]
        moments = [np.asarray(moments_of[key]) for key in _MOMENTS]
        for index in np.ndindex(moments[0].shape):
            where = [str(axis[i]) for axis, i in zip(labels, index, strict=False)] or list(map(str, index))
            yield [f"{name}[{', '.join(where)}]" if index else name, *(float(values[index]) for values in moments)]
