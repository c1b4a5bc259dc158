"""One self-contained HTML file about one or several fits; text of the user is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.comparison.compare import Withheld, in_one_table, names_of, require_same_data
from bayeszoo.errors import InputError
from bayeszoo.foundation.process.writing import write_text
from bayeszoo.report import checks, densities, groups, provenance, sampler, verdict
from bayeszoo.report.blocks import Folded, Section, Skipped, skipping
from bayeszoo.report.families import screens
from bayeszoo.report.safe import assets, probe, script_safe, template
from bayeszoo.results.matched import matched
from bayeszoo.results.stored import Fit, is_by_group
from bayeszoo.results.summary import best, document
from bayeszoo.tools.references.benchmark import Benchmark

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayeszoo.foundation.process.progress import Reporter


def report(
    fits: xr.DataTree | Iterable[xr.DataTree | Withheld] | Benchmark,
    path: str | Path,
    *,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> Path:
    """Write one self-contained HTML page about one or several fits of the same data, or a benchmark of a sampler.

    Parameters
    ----------
    fits : DataTree, iterable of DataTree, or Benchmark
        What `fit`, `fit_by` or `benchmark` returned; a method without an answer may be a `Withheld`.
    path : str or Path
        A name that ends in ``.html``; written whole or not at all.
    overwrite : bool
        Whether an existing file may be replaced.
    reporter : Reporter, optional
        Takes progress; silent by default.

    Returns
    -------
    Path
        Where it was written.

    Raises
    ------
    InputError
        When there is no fit, fits are of different data, or the file cannot be written; raised before any work.

    Notes
    -----
    The same fits give the same bytes. The page needs no network, and its security policy allows its own script alone,
    by hash. Numbers that a fit withholds stay withheld, with the reason.
    """
    path = probe(Path(path), overwrite)
    if isinstance(fits, Benchmark):
        write_text(_filled(sampler.parts(fits)), path, overwrite)
        return path
    answers: Any = [fits] if hasattr(fits, "children") else list(fits)
    if any(map(is_by_group, answers)):
        if len(answers) > 1:
            hint = "name them alone, or single groups"
            raise InputError("fits by group have a page of their own", "one_group_only", hint=hint)
        write_text(_filled(groups.parts(answers[0])), path, overwrite)
        return path
    answered, refused = _sorted(answers)
    write_text(page(answered, refused, reporter), path, overwrite)
    return path


def _sorted(answers: list[Any]) -> tuple[list[Fit], list[Withheld]]:
    fits = [Fit(answer) for answer in answers if not isinstance(answer, Withheld)]
    if not fits:
        raise InputError("there is no fit to report", "no_data", hint="give what bz.fit returned")
    require_same_data([(fit.data_digest, fit.data_source) for fit in fits], "fits")
    return fits, [answer for answer in answers if isinstance(answer, Withheld)]


def page(fits: Sequence[Fit], refused: Sequence[Withheld] = (), reporter: Reporter | None = None) -> str:
    """Return the page about fits of the same data, and about methods without an answer, as text."""
    fits = matched(list(fits))
    named = {name: (fit, document(fit)) for name, fit in zip(names_of(fits), fits, strict=True)}
    verdicts = [verdict.verdict(name, described) for name, (_, described) in named.items()]
    verdicts += [verdict.Verdict(answer.method, "withheld", "no answer", answer.reason) for answer in refused]
    first, left_out = best(fits), list[Skipped]()
    main = next(name for name, (tree, _) in named.items() if tree is first)
    frame = in_one_table([*fits, *refused]) if len(fits) + len(refused) > 1 else None
    checked = _by_model(fits)
    parts = {
        "title": ", ".join(dict.fromkeys(fit.model.name for fit in fits)),
        "about": provenance.about(type(fit.model) for fit in fits),
        "data": provenance.data_line(first),
        "notes": first.notes,
        "verdicts": verdicts + [fit.verdict(name) for name, fit in checked.items()],
        "winner": [] if frame is None else verdict.winner(frame, dict(zip(named, fits, strict=True))),
        "answer": screens.answer(fits, left_out),
        "estimates": _estimates(named, main, frame),
        "sections": list(_sections(named, main, checked, left_out, reporter)),
        "numbers": {name: described for name, (_, described) in named.items()},
    }
    return _filled(parts)


def _filled(parts: Mapping[str, object]) -> str:
    """Return the page with its parts filled in."""
    filled = {**parts, "numbers": script_safe(parts["numbers"])}
    return template("report.html.j2").render(**filled, **assets("report.css", "report.js"))


def _estimates(named: verdict.Named, main: str, frame: pd.DataFrame | None) -> Section:
    """List the estimates of a fit; of several fits side by side, and folded one by one."""
    by_fit = verdict.estimates(named, main)
    if frame is None:
        return Section("estimates", "Estimates", [by_fit])
    return Section("estimates", "Side by side", [*verdict.comparison(frame), Folded("Each fit by itself", [by_fit])])


def _by_model(fits: Sequence[Fit]) -> dict[str, checks.Checked]:
    """Return the checks of the best fit of each model and prior, by name."""
    models: dict[str, list[Fit]] = {}
    for fit in fits:
        models.setdefault(str(fit.model), []).append(fit)
    names = [group[0].tree.attrs["model"] for group in models.values()]
    names = names if len(set(names)) == len(names) else list(models)
    return {name: checks.Checked(best(group)) for name, group in zip(names, models.values(), strict=True)}


def _sections(
    named: verdict.Named,
    main: str,
    checked: Mapping[str, checks.Checked],
    left_out: list[Skipped],
    reporter: Reporter | None,
) -> Iterator[Section]:
    fits = [fit for fit, _ in named.values()]
    main_fit = next(check for check in checked.values() if check.fit is named[main][0])
    makers: dict[str, Callable[[], Section]] = {
        "the fit to the data": lambda: checks.section(main_fit, named, left_out),
        "the gate": lambda: verdict.section(named, main, densities.section(fits)),
        **dict(screens.sections(fits)),
        "what was asked": lambda: provenance.section({name: check.fit for name, check in checked.items()}),
        "how to make it again": lambda: provenance.again({name: fit for name, (fit, _) in named.items()}),
    }
    for i, (part, make) in enumerate(makers.items()):
        if reporter is not None:
            reporter.progress(f"report: {part}", i, len(makers))
        with skipping(part, left_out):
            if (section := make()).blocks:
                yield section
    if left_out:
        yield Section("not-here", "What is not here", [Folded("Parts left out, with reasons", left_out)])
