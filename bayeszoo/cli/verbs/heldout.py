"""The command ``bayeszoo heldout``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.cli.verbs.select import parse_candidate
from bayeszoo.comparison.held_out import SHARE, held_out
from bayeszoo.errors import InputError
from bayeszoo.report.tables import number

_OF_FITS = ("method", "kind", "status")
_COLUMNS = ("model", "log_score", "mcse", "difference", "difference_se", "perplexity", *_OF_FITS, "seconds")
_HEADS = {"log_score": "log score a word", "mcse": "MC error", "difference_se": "se"}
_ABOUT = """
Mean log predictive probability, in nats, of {} words held out, each given the words of its
document that were not; perplexity is exp(-score). It judges the draws as they are, converged or not."""


def heldout_command(
    data: str | None = None,
    /,
    *,
    candidates: opt.Candidates,
    share: float = SHARE,
    methods: str | None = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Compare models of words by words held out of each document of one corpus.

    Parameters
    ----------
    data
        A corpus: a document, word and count a row, or raw text (--text); without it the first model's own.
    candidates
        "MODEL [FIELD=JSON ...]", such as "lda K=5", "multinomial_mixture K=5" and dirichlet_multinomial; repeated.
    share
        Share of the words of each document that is held out.
    methods
        One for each model, with commas between; by default the first of exact, gibbs, vb and nuts that it has.
    seed
        Seed of the split and of the fits.
    """
    models = []
    for text in candidates:
        kind, chosen = parse_candidate(text)
        if isinstance(kind, Path):
            hint = "give a model: it is fitted to the words that are not held out"
            raise InputError(f"--candidate {text!r} is a fit", hint=hint)
        models.append(kind(**chosen))
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    if data is None and table != opt.TABLE:
        raise InputError("the options of a table go with DATA")
    given = {} if data is None else table.of_reading()
    with closing(terminal.TerminalReporter()) as reporter:
        frame = held_out(models, data, share=share, methods=names, seed=seed, reporter=reporter, **given)
    for line in frame.attrs["notes"]:
        terminal.note(f"note: {line}")
    rows = frame.to_dict("records")
    if as_json:
        return terminal.print_json({"share": share, "seed": seed, "rows": rows})
    cells = [[number(row[name], {"log_score": 7, "perplexity": 6}.get(name, 3)) for name in _COLUMNS] for row in rows]
    heads = [_HEADS.get(name, name) for name in _COLUMNS]
    terminal.show(terminal.table(heads, cells, words=_OF_FITS))
    terminal.out().print(_ABOUT.strip().format(rows[0]["words"]))
