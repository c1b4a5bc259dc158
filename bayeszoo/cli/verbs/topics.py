"""The command ``bayeszoo topics``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from bayeszoo.answers.document_scores import document_scores
from bayeszoo.answers.topics import proportions, topics
from bayeszoo.cli import terminal
from bayeszoo.cli.options import TableOptions
from bayeszoo.cli.verbs.assign import MAX_ROWS, as_csv
from bayeszoo.errors import InputError
from bayeszoo.foundation import writing
from bayeszoo.plots.topics import plot_topics
from bayeszoo.report.tables import number
from bayeszoo.results import files
from bayeszoo.results.stored import Fit, dumps

if TYPE_CHECKING:
    import pandas as pd

_OF_TOPICS = (("share", "shares"), ("stability", "stability"), ("coherence", "coherence"))
Flag = Annotated[bool, Parameter(negative=())]


def topics_command(
    fit_file: Path,
    data: str | None = None,
    /,
    *,
    top: int = 10,
    documents: Flag = False,
    score: Literal["completion", "left-to-right"] | None = None,
    untrusted: Flag = False,
    plot: Path | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    overwrite: Flag = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    table: TableOptions | None = None,
) -> None:
    """List the words of each topic, or the topics of each document, from a saved fit of a topic model.

    Parameters
    ----------
    fit_file
        A fit saved with -o.
    data
        Other documents: list their topics.
    top
        How many words of each topic.
    documents
        List the topics of the documents of the fit.
    score
        Score DATA instead: one half of each document's words given the other, or all words from left to right.
    untrusted
        List them even where the fit did not pass its gate: one solution of perhaps many.
    plot
        Picture of the words of each topic: PNG, SVG or PDF.
    output
        CSV file of all rows.
    overwrite
        Replace existing files.
    as_json
        One JSON document on stdout, and nothing else.
    """
    if output is not None:
        writing.require_writable(output, overwrite)
    if plot is not None:
        writing.probe_figure(plot, overwrite)
    tree, options = files.load(fit_file), table or TableOptions()
    if data is None and options != TableOptions():
        raise InputError("the options of a table go with DATA")
    frame = _frame(tree, data, options, {"top": top, "documents": documents, "score": score, "untrusted": untrusted})
    if output is not None:
        writing.write_text(as_csv(frame), output)
        terminal.note(f"wrote {output}")
    if plot is not None:
        terminal.note(f"wrote {writing.write_figure(plot_topics(tree, top, untrusted=untrusted), plot, overwrite)}")
    whole: dict[str, Any] = {name: tree.attrs[name] for name in ("model", "method", "kind", "status")}
    if as_json:
        saved = {name: None if path is None else str(path) for name, path in (("saved", output), ("plot", plot))}
        rows = frame.reset_index().to_dict("records")
        sys.stdout.write(dumps({**whole, **{str(k): v for k, v in frame.attrs.items()}, **saved, "rows": rows}) + "\n")
    else:
        shown = show_topics if "word" in frame else show_scores if "words" in frame else show_proportions
        shown(frame, whole)


def _frame(tree: Any, data: str | None, table: TableOptions, asked: dict[str, Any]) -> pd.DataFrame:
    """Return what was asked for: words of topics, topics of documents, or scores of documents."""
    new = None
    if data is not None:
        new = table.read(type(Fit(tree).model), data, new=True, like=Fit(tree).like)
    if asked["score"] is not None:
        if new is None:
            raise InputError("--score needs other documents", hint="give DATA")
        return document_scores(tree, new, how=asked["score"])
    if new is None and not asked["documents"]:
        return topics(tree, asked["top"], untrusted=asked["untrusted"])
    return proportions(tree, new, untrusted=asked["untrusted"])


def show_scores(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print the score of each document, and perplexity."""
    cells = [[str(row[0]), *row[1:]] for row in frame.head(MAX_ROWS).itertuples()]
    terminal.show(terminal.table(["document", *map(str, frame.columns)], cells, title=_title(whole)))
    if len(frame) > MAX_ROWS:
        terminal.out().print(f"The first {MAX_ROWS} of {len(frame)} documents; all of them: --json or -o.")
    mean, error, perplexity, its_error = (
        number(frame.attrs[name], digits)
        for name, digits in (("log_score", 6), ("mcse", 2), ("perplexity", 5), ("mcse_perplexity", 2))
    )
    terminal.out().print(f"Log score of a word {mean} +- {error} nats, perplexity {perplexity} +- {its_error}.")
    if "perplexity_bound" in frame.attrs:
        bound = number(frame.attrs["perplexity_bound"], 5)
        terminal.out().print(f"Perplexity at most {bound}, by the mean over draws of log probabilities.")


def _title(whole: dict[str, Any]) -> str:
    return f"{whole['model']}, {whole['method']} ({whole['kind']})"


def _caveat(frame: pd.DataFrame) -> None:
    if "caveat" in frame.attrs:
        terminal.out().print(f"NOT TO BE TRUSTED: {frame.attrs['caveat']}. These are one solution of perhaps many.")


def show_topics(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print each topic in a line, and each of its words with its interval."""
    labels = list(dict.fromkeys(frame.index.get_level_values("topic")))
    every: list[tuple[str, list[Any]]] = [(name, frame.attrs[key]) for name, key in _OF_TOPICS if frame.attrs[key]]
    lines = [
        [str(label), *(values[i] for _, values in every), ", ".join(frame.loc[label, "word"])]
        for i, label in enumerate(labels)
    ]
    columns = ["topic", *(name for name, _ in every), "words"]
    terminal.show(terminal.table(columns, lines, title=_title(whole), words=["words"]))
    used = [str(name) for name in frame.columns if not frame[name].isna().all()]
    cells = [[str(row[0]), *row[1:]] for row in frame[used].reset_index().itertuples(index=False)]
    terminal.show(terminal.table(["topic", "rank", *used], cells[:MAX_ROWS], words=["word"]))
    if len(cells) > MAX_ROWS:
        terminal.out().print(f"The first {MAX_ROWS} of {len(cells)} rows; all of them: --json or -o.")
    _caveat(frame)


def show_proportions(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print the mean share of each topic in each document, with its standard deviation."""
    wide = frame.unstack(sort=False)
    labels, sds = list(wide["mean"].columns), wide["sd"].to_numpy()
    rows = [
        [str(name), *map(_with_sd, means, sds[i])]
        for i, (name, means) in enumerate(zip(wide.index[:MAX_ROWS], wide["mean"].to_numpy(), strict=False))
    ]
    columns = ["document", *(f"topic {label}" for label in labels)]
    terminal.show(terminal.table(columns, rows, title=f"{_title(whole)}: mean share +- posterior sd"))
    if len(wide) > MAX_ROWS:
        terminal.out().print(f"The first {MAX_ROWS} of {len(wide)} documents; all of them: --json or -o.")
    _caveat(frame)


def _with_sd(mean: float, sd: float) -> str:
    return f"{mean:.3f}" if sd != sd else f"{mean:.3f} +- {sd:.3f}"  # NaN is not itself
