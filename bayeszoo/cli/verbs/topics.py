"""The command ``bayeszoo topics``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bayeszoo.answers.topics import document_scores, proportions, topics
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.errors import InputError
from bayeszoo.plots.topics import plot_topics
from bayeszoo.report.tables import number, topic_rows
from bayeszoo.results import files

if TYPE_CHECKING:
    import pandas as pd


def topics_command(
    fit_file: opt.FitFile,
    data: str | None = None,
    /,
    *,
    top: int = 10,
    documents: opt.Flag = False,
    score: Literal["completion", "left-to-right"] | None = None,
    untrusted: opt.Flag = False,
    plot: Path | None = None,
    output: opt.RowsFile = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """List the words of each topic, or the topics of each document, from a saved fit of a topic model.

    Parameters
    ----------
    data
        Other documents: list their topics.
    top
        Number of words listed for each topic.
    documents
        List the topics of the documents of the fit.
    score
        Score DATA instead: one half of each document's words given the other, or all words from left to right.
    untrusted
        List them even where the fit did not pass its gate: one solution of perhaps many.
    plot
        Picture of the words of each topic: PNG, SVG or PDF.
    """
    saved.probe(output, plot, overwrite)
    tree = files.load(fit_file)
    new = saved.new_rows(tree, data, table)
    frame = _frame(tree, new, {"top": top, "documents": documents, "score": score, "untrusted": untrusted})
    written = saved.write(frame, output, lambda: plot_topics(tree, top, untrusted=untrusted), plot, overwrite)
    whole = saved.about(tree, "status")
    if as_json:
        rows = frame.reset_index().to_dict("records")
        terminal.print_json({**whole, **{str(k): v for k, v in frame.attrs.items()}, **written, "rows": rows})
    else:
        show = show_topics if "word" in frame else show_scores if "words" in frame else show_proportions
        show(frame, whole)


def _frame(tree: Any, new: Any, asked: dict[str, Any]) -> pd.DataFrame:
    """Return what was asked for: words of topics, topics of documents, or scores of documents."""
    if asked["score"] is not None:
        if new is None:
            raise InputError("--score needs other documents", hint="give DATA")
        return document_scores(tree, new, how=asked["score"])
    if new is None and not asked["documents"]:
        return topics(tree, asked["top"], untrusted=asked["untrusted"])
    return proportions(tree, new, untrusted=asked["untrusted"])


def show_scores(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print the score of each document, and perplexity."""
    saved.show_rows(frame, saved.title(whole), "documents")
    mean, error, perplexity, its_error = (
        number(frame.attrs[name], digits)
        for name, digits in (("log_score", 6), ("mcse", 2), ("perplexity", 5), ("mcse_perplexity", 2))
    )
    terminal.out().print(f"Log score of a word {mean} +- {error} nats, perplexity {perplexity} +- {its_error}.")
    if "perplexity_bound" in frame.attrs:
        bound = number(frame.attrs["perplexity_bound"], 5)
        terminal.out().print(f"Perplexity at most {bound}, by the mean over draws of log probabilities.")


def _caveat(frame: pd.DataFrame) -> None:
    if "caveat" in frame.attrs:
        terminal.out().print(f"NOT TO BE TRUSTED: {frame.attrs['caveat']}. These are one solution of perhaps many.")


def show_topics(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print each topic in a line, and each of its words with its interval."""
    terminal.show(terminal.table(*topic_rows(frame), title=saved.title(whole), words=["words"]))
    used = [str(name) for name in frame.columns if not frame[name].isna().all()]
    cells = [[str(row[0]), *row[1:]] for row in frame[used].reset_index().itertuples(index=False)]
    terminal.show(terminal.table(["topic", "rank", *used], cells[: saved.MAX_ROWS], words=["word"]))
    saved.note_more(len(cells))
    _caveat(frame)


def show_proportions(frame: pd.DataFrame, whole: dict[str, Any]) -> None:
    """Print the mean share of each topic in each document, with its standard deviation."""
    wide = frame.unstack(sort=False)
    labels, sds = list(wide["mean"].columns), wide["sd"].to_numpy()
    rows = [
        [str(name), *map(_with_sd, means, sds[i])]
        for i, (name, means) in enumerate(zip(wide.index[: saved.MAX_ROWS], wide["mean"].to_numpy(), strict=False))
    ]
    columns = ["document", *(f"topic {label}" for label in labels)]
    terminal.show(terminal.table(columns, rows, title=f"{saved.title(whole)}: mean share +- posterior sd"))
    saved.note_more(len(wide), "documents")
    _caveat(frame)


def _with_sd(mean: float, sd: float) -> str:
    return f"{mean:.3f}" if sd != sd else f"{mean:.3f} +- {sd:.3f}"  # NaN is not itself
