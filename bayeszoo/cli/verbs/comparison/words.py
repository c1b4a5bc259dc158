"""Models of words compared by words held out: ``bayeszoo heldout``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.cli.verbs.comparison.select import parse_candidate
from bayeszoo.comparison.held_out_words import CORPUS, SHARE, held_out
from bayeszoo.data.inputs.labels import names_listed
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Document
from bayeszoo.report.text.numbers import estimate, number

_OF_FITS = ("method", "kind", "status")
_HELD_OUT = ("model", "log_score", "mcse", "difference", "difference_se", "perplexity", *_OF_FITS, "seconds")
_HELD_OUT_HEADS = {"log_score": "log score a word", "mcse": "MC error", "difference_se": "se"}
_ABOUT_HELD_OUT = """
Mean log predictive probability, in nats, of {} held-out words, each given the other words of its
document; perplexity is exp(-score). The score is of the draws as they are, converged or not."""


@partial(by_group, reads=CORPUS)
def heldout_command(
    data: opt.NewFile = None,
    /,
    *,
    candidates: opt.Candidates,
    share: float = SHARE,
    methods: str | None = None,
    seed: opt.Seed = 0,
    by: opt.By = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Compare models of words by their scores on words held out of each document.

    Parameters
    ----------
    data
        A corpus: a document, word and count a row, or raw text (--text); by default the example of the first model.
    candidates
        "MODEL [FIELD=JSON ...]", such as "lda K=5", "multinomial_mixture K=5" and dirichlet_multinomial; repeated.
    share
        Share of the words of each document that is held out.
    methods
        Comma-separated, one for each model; by default the first of exact, gibbs, vb and nuts that the model has.
    seed
        Seed of the split and of the fits.
    """
    shown.probe()
    models = []
    for text in candidates:
        kind, chosen = parse_candidate(text)
        if isinstance(kind, Path):
            raise InputError(
                f"--candidate {text!r} is a fit",
                "conflicting_options",
                hint="name a model, which is fitted to the other words",
            )
        models.append(kind(**chosen))
    names = names_listed(methods) or None
    if data is None and table != opt.TABLE:
        raise InputError("the options of a table go with DATA", "option_needs_data")
    reading = {} if data is None else table.of_reading()
    with closing(terminal.TerminalReporter()) as reporter:
        frame = held_out(models, data, share=share, methods=names, seed=seed, reporter=reporter, **reading)
    terminal.notes(frame.attrs["notes"])
    rows = frame.to_dict("records")

    def document(written: saved.Written) -> Document:
        return {"share": share, "seed": seed, **written, "rows": rows}

    shown.deliver(partial(_show_held_out, rows, shown.digits), document, frame)


def _show_held_out(rows: Sequence[Mapping[Any, Any]], digits: int | None) -> None:
    """Print the score of each model of words."""
    cells = [[_cell(row, name, digits) for name in _HELD_OUT] for row in rows]
    heads = [_HELD_OUT_HEADS.get(name, name) for name in _HELD_OUT]
    terminal.show_table(heads, cells, words=_OF_FITS, spare=("kind", "MC error"), whole="-o or --json")
    terminal.show_lines(_ABOUT_HELD_OUT.strip().format(rows[0]["words"]))


def _cell(row: Mapping[Any, Any], name: str, digits: int | None) -> str:
    """Format a number of a model of words: a score to the digits that its Monte Carlo error supports."""
    relative = row["mcse"] * row["perplexity"] if name == "perplexity" else row["mcse"]
    is_score = name in ("log_score", "perplexity")
    return estimate(row[name], relative, digits) if is_score else number(row[name], 3)
