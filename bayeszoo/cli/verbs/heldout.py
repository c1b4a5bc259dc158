"""The command ``bayeszoo heldout``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bayeszoo.cli import terminal
from bayeszoo.cli.options import Candidates, Json, Seed, TableOptions
from bayeszoo.cli.verbs.select import parse_candidate
from bayeszoo.comparison.held_out import SHARE, held_out
from bayeszoo.errors import InputError
from bayeszoo.report.tables import number

if TYPE_CHECKING:
    import pandas as pd

_HEADS = {
    "model": "model",
    "log_score": "log score a word",
    "mcse": "MC error",
    "difference": "difference",
    "difference_se": "se",
    "perplexity": "perplexity",
    "method": "method",
    "kind": "kind",
    "status": "status",
    "seconds": "seconds",
}


def heldout_command(
    data: str | None = None,
    /,
    *,
    candidates: Candidates,
    share: float = SHARE,
    methods: str | None = None,
    seed: Seed = 0,
    as_json: Json = False,
    table: TableOptions | None = None,
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
    as_json
        One JSON document on stdout, and nothing else.
    """
    parsed = [(text, *parse_candidate(text)) for text in candidates]
    for text, kind, _ in parsed:
        if isinstance(kind, Path):
            raise InputError(
                f"--candidate {text!r} is a fit", hint="give a model: it is fitted to the words that are not held out"
            )
    models = [kind(**chosen) for _, kind, chosen in parsed if not isinstance(kind, Path)]
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    options, reporter = table or TableOptions(), terminal.TerminalReporter()
    try:
        frame = held_out(
            models, data, share=share, methods=names, seed=seed, reporter=reporter, **options.of_reading(data)
        )
    finally:
        reporter.close()
    for line in frame.attrs["notes"]:
        terminal.note(f"note: {line}")
    if as_json:
        terminal.print_json({"share": share, "seed": seed, "rows": frame.to_dict("records")})
    else:
        _show(frame)


def _show(frame: pd.DataFrame) -> None:
    """Print the models, the best first."""
    precise = {"log_score": 7, "perplexity": 6}
    cells = [[number(row[name], precise.get(name, 3)) for name in _HEADS] for row in frame.to_dict("records")]
    terminal.show(terminal.table(list(_HEADS.values()), cells, words=["method", "kind", "status"]))
    words = int(frame["words"].iloc[0])
    console = terminal.out()
    console.print(f"Mean log predictive probability, in nats, of {words} words held out, each given the words of its")
    console.print(
        "document that were not; perplexity is exp(-score). It judges the draws as they are, converged or not."
    )
