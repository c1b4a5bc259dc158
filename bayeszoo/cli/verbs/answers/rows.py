"""Components, states, predictions and topics of rows: ``bayeszoo assign``, ``decode``, ``predict`` and ``topics``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayeszoo.answers.function import FAR, function_values
from bayeszoo.answers.latent.assign import assign
from bayeszoo.answers.latent.topics import document_scores, proportions, topics
from bayeszoo.answers.predict import ERROR_OF_SUM, predict
from bayeszoo.answers.series.decode import decode
from bayeszoo.answers.series.forecast import forecast
from bayeszoo.answers.series.lags import about_stationary
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.data.inputs.labels import joined
from bayeszoo.data.table.table import escaped, listed
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Document
from bayeszoo.model import find as zoo
from bayeszoo.plots.families.latent import plot_states, plot_topics
from bayeszoo.plots.families.levels import plot_levels
from bayeszoo.report.families.classes import ABOUT_PLUGGED_IN
from bayeszoo.report.families.profile import Profile, stretches
from bayeszoo.report.text.numbers import estimate, nats, number, with_error
from bayeszoo.report.text.tables import topic_rows
from bayeszoo.results.stored import Fit, is_by_group

if TYPE_CHECKING:
    import pandas as pd


@by_group
def assign_command(
    fit_file: opt.FitFile,
    data: opt.NewFile = None,
    /,
    *,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Assign each row to a component of a saved mixture fit.

    Parameters
    ----------
    data
        Table of new rows with their outcome; without it the rows of the fit.
    """
    shown.answer_rows(assign, fit_file, data, table, _show_components)


def _show_components(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the rows, and the expected errors of their labels."""
    console = terminal.out()
    saved.show_rows(frame, saved.title(whole, saved.kind_of(frame, whole["kind"])), spare=("p[",), digits=digits)
    impossible = whole.get("impossible", [])
    if "expected_errors" in whole and "withheld" not in frame:  # it is of all rows
        errors = _expected_errors(whole, digits)
        console.print(f"Expected number of rows with a wrong label: {errors} of {len(frame) - len(impossible)}.")
    if impossible:
        rows = listed(np.array(impossible) - 1)
        console.print(f"Withheld: {rows}, which no component can give at the parameters of the fit.")
    _say_plugged_in(whole)


KNOWN = "known tables"
"""The method of answers that need no fit."""
_FINEST = 0.001
"""The last digit of a share of a document that is printed."""
_TOO_FAR = "withheld: some rows are too far from the draws"


def _expected_errors(whole: Document, digits: int | None) -> str:
    """Write the expected number of wrong labels with its Monte Carlo error."""
    value = whole["expected_errors"]
    return with_error(value, whole["mcse_expected_errors"], number(value, digits or 4), digits)


def _nats(whole: Document, name: str, digits: int | None) -> str:
    """Write a log density with its Monte Carlo error."""
    return with_error(whole[name], whole[f"mcse_{name}"], nats(whole[name], digits), digits)


@by_group
def decode_command(
    fit_file: str,
    data: opt.NewFile = None,
    /,
    *,
    steps: int | None = None,
    plot: Path | None = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
    fields: opt.FieldOptions = opt.FIELDS,
) -> None:
    """Infer the hidden state of each row, or its level, from a saved fit of a model of series.

    Parameters
    ----------
    fit_file
        A fit saved with -o; or a model all of whose tables are set by --set.
    data
        Table of other sequences; by default those of the fit, or the example of the model. With --steps, for a fit
        with features: a table of the features of the rows to come.
    steps
        Instead of decoding, forecast this many rows after the last of each sequence.
    plot
        Picture of the states, or of the level and the rows to come: PNG, SVG or PDF.
    """
    shown.probe(plot)
    source: Any
    if fields.sets is None:
        source = saved.load(fit_file)
        new, whole = saved.new_rows(Fit(source), data, table), saved.about(source)
    else:
        kind = zoo.find(fit_file)
        source, new = kind(**fields.fields(kind)), table.read(kind, data)
        whole = {"model": kind.name, "method": KNOWN, "kind": "exact"}
    frame = decode(source, new) if steps is None else forecast(source, steps, new)
    if "stationary" in frame.attrs:
        if plot is not None:
            raise InputError("a forecast of a regression has no picture", "no_picture", hint="leave out --plot")
        return shown.answer(frame, whole, _show_ahead)
    if "level" in frame:
        draw = shown.drawn(lambda: plot_levels(source, new, steps=steps), plot)
        shown.answer(frame, whole, _show_levels, plot=draw)
        return None
    draw = shown.drawn(lambda: plot_states(source, new), plot)
    rows = Fit(source).data if new is None else new
    changes = stretches([*map(str, frame["state"].fillna("withheld"))], rows) if steps is None else None
    return shown.answer(frame, whole, partial(_show_states, changes), plot=draw)


def _show_ahead(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the forecast of a regression with lags, and the probability that the series is stationary."""
    console, kind = terminal.out(), saved.kind_of(frame, whole["kind"])
    saved.show_rows(frame, saved.title(whole, kind), spare=("mcse", "median", "path"), digits=digits)
    console.print(about_stationary(frame.attrs))
    _say_plugged_in(whole)


def _show_levels(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the levels, or the forecast."""
    console, kind = terminal.out(), saved.kind_of(frame, whole["kind"])
    saved.show_rows(frame, saved.title(whole, kind), spare=("mcse", "median", "sd_", "slope"), digits=digits)
    if "log_score" in whole and np.isnan(whole["log_score"]) and "withheld" not in frame:
        console.print(f"Log density of the rows one step ahead {_TOO_FAR}.")
    elif _is_known(whole, "log_score"):
        which = "known parameters" if whole["method"] == KNOWN else "parameters of the fit to all rows"
        console.print(f"Log density of the rows one step ahead {_nats(whole, 'log_score', digits)}, at the {which}.")
    _say_plugged_in(whole)


def _show_states(changes: Profile | None, frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print when the state changes, the rows, and facts about all of them."""
    console, kind = terminal.out(), saved.kind_of(frame, whole["kind"])
    title = saved.title(whole, kind)
    if changes is not None and len(changes.rows) > 1:
        console.print(title)
        terminal.show_profile(*changes)
        title = "each row"
    saved.show_rows(frame, title, spare=("filtered", "smoothed"), digits=digits)
    if _is_known(whole, "expected_errors"):  # withheld where a row is
        errors = _expected_errors(whole, digits)
        console.print(f"Expected number of rows with a wrong state: {errors} of {len(frame)}.")
    names = {"viterbi_log_joint": "log joint density of the Viterbi path and the rows"}
    names |= {"log_likelihood": "log likelihood of the rows"}
    said = [f"{words} {nats(whole[name], digits)}" for name, words in names.items() if _is_known(whole, name)]
    if said:
        where = "" if kind in ("point estimate", "exact") else ", at the draw of highest density"
        line = ", ".join(said)
        console.print(f"{line[0].upper()}{line[1:]}{where}.")
    if _is_known(whole, "log_predictive"):
        score = _nats(whole, "log_predictive", digits)
        console.print(f"Log predictive density of the rows {score}, averaged over the draws.")
    if "states_withheld" in whole:
        console.print(f"Probabilities of states are withheld: {whole['states_withheld']}.")
    _say_plugged_in(whole)


def _is_known(whole: dict[str, Any], name: str) -> bool:
    return name in whole and not np.isnan(whole[name])


def predict_command(
    fit_file: opt.FitFile,
    data: opt.NewFile = None,
    /,
    *,
    rows: int | None = None,
    seed: opt.Seed = 0,
    append: opt.Flag = False,
    function: opt.Flag = False,
    derivative: str | None = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Predict new rows from a saved fit, and score the prediction where their outcome is known.

    For a topic model, infer the topics of new documents.

    Parameters
    ----------
    data
        Table of new rows.
    rows
        Number of further observations to predict when no table is given; one by default.
    seed
        Seed of the parameters of groups that the fit does not have, and of the topics of documents.
    append
        Write the table to -o, with the columns of the prediction appended.
    function
        Predict the function without the noise of rows.
    derivative
        Predict the derivative of the function along this feature, per unit of the feature.
    """
    if rows is not None and (data is not None or table != opt.TABLE):
        raise InputError("give a table or --rows, not both", "conflicting_options")
    shown.require_append(append, data)
    shown.probe()
    tree, further = saved.load(fit_file), 1 if rows is None else rows
    of_groups = is_by_group(tree)
    if function or derivative:
        if data is None or append or of_groups:
            raise InputError("--function and --derivative go with DATA, of one fit", "option_needs_data")
        frame = function_values(tree, saved.new_rows(Fit(tree), data, table), seed=seed, derivative=derivative)
        return shown.answer(frame, saved.about(tree), _show_function)
    new: Any = saved.new_parts(tree, data, table) if of_groups else saved.new_rows(Fit(tree), data, table)
    frame, whole = predict(tree, further if new is None else new, seed=seed), saved.about(tree)
    in_full = frame
    if append and data is not None and shown.output is not None:  # the table has the column of groups
        parts = new.values() if of_groups else [new]
        in_full = saved.appended(frame.iloc[:, 1:] if of_groups else frame, data, table, parts, shown.output)
    if "stationary" in frame.attrs:
        return shown.answer(frame, whole, _show_ahead, in_full)
    if "log_score" not in frame:
        return shown.answer(frame, whole, _show_proportions, in_full)
    own = [frame.index.get_level_values("row"), *([frame.iloc[:, 0]] if of_groups else [])]
    whole["sum_of_log_scores"] = float(frame["log_score"].groupby(own).first().sum(skipna=False))
    shown.answer(frame, whole, _show_prediction, in_full)


def _show_function(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the function at each new row."""
    saved.show_rows(frame, spare=("median", "sd"), digits=digits)
    _say_far(frame.index[frame["prior_share"] > FAR].tolist())
    _say_plugged_in(whole)


def _say_plugged_in(whole: dict[str, Any]) -> None:
    """Print that numbers of a point estimate do not know how uncertain it is."""
    if whole["kind"] == "point estimate":
        terminal.out().print(ABOUT_PLUGGED_IN)


def _say_far(rows: list[int]) -> None:
    """Print which rows are so far from the data that the prior decides."""
    if rows:
        named = f"row{'s' * (len(rows) > 1)} {joined(list(map(str, rows)))}"
        terminal.out().print(f"Far from the data, where the prediction is the prior: {named}.")


def _show_prediction(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the predictive of each new row."""
    kind = saved.kind_of(frame, whole["kind"])
    words = [*map(str, frame.index.names), *frame.columns[: "by" in whole]]
    saved.show_rows(frame, spare=("median", "sd"), words=words, digits=digits)
    if not np.isnan(whole["sum_of_log_scores"]):
        total = _nats({ERROR_OF_SUM: 0.0, **whole}, "sum_of_log_scores", digits)
        terminal.out().print(f"sum of the rows' log predictive densities {total} ({escaped(kind)})")
    elif (frame["observed"].notna() & frame["log_score"].isna()).any():
        terminal.out().print("Scores of outcomes that are too far from the draws are withheld.")
    _say_far(frame.attrs.get("far_rows", []))
    _say_plugged_in(whole)


@by_group
def topics_command(
    fit_file: opt.FitFile,
    data: opt.NewFile = None,
    /,
    *,
    top: int = 10,
    documents: opt.Flag = False,
    score: Literal["completion", "left-to-right"] | None = None,
    untrusted: opt.Flag = False,
    plot: Path | None = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """List the words of each topic, or the topics of each document, from a saved fit of a topic model.

    Parameters
    ----------
    data
        Table of other documents, whose topics are listed.
    top
        Number of words listed for each topic.
    documents
        List the topics of the documents of the fit.
    score
        Score DATA instead: half of each document's words given the other half, or all words from left to right.
    untrusted
        List topics even if the fit failed its gate: they are one of possibly several solutions.
    plot
        Picture of the words of each topic: PNG, SVG or PDF.
    """
    tree = shown.load(fit_file, plot)
    new = saved.new_rows(Fit(tree), data, table)
    frame = _topics_answer(tree, new, {"top": top, "documents": documents, "score": score, "untrusted": untrusted})
    draw = shown.drawn(lambda: plot_topics(tree, top, untrusted=untrusted), plot)
    show = _show_topics if "word" in frame else _show_scores if "words" in frame else _show_proportions
    shown.answer(frame, saved.about(tree, "status"), show, plot=draw)


def _topics_answer(tree: Any, new: Any, options: dict[str, Any]) -> pd.DataFrame:
    """Return the requested answer: words of topics, topics of documents, or scores of documents."""
    if options["score"] is not None:
        if new is None:
            raise InputError("--score needs other documents", "option_needs_data", hint="give DATA")
        return document_scores(tree, new, how=options["score"])
    if new is None and not options["documents"]:
        return topics(tree, options["top"], untrusted=options["untrusted"])
    return proportions(tree, new, untrusted=options["untrusted"])


def _show_scores(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the score of each document, and perplexity."""
    shown = frame if (frame["withheld"] != "").any() else frame.drop(columns="withheld")
    saved.show_rows(shown, saved.title(whole), "documents", words=["withheld"], digits=digits)
    mean, perplexity = (
        with_error(frame.attrs[name], frame.attrs[error], number(frame.attrs[name], digits or usual), digits)
        for name, error, usual in (("log_score", "mcse", 6), ("perplexity", "mcse_perplexity", 5))
    )
    terminal.out().print(f"Log score of a word {mean} nats, perplexity {perplexity}.")
    if "perplexity_bound" in frame.attrs:
        bound = number(frame.attrs["perplexity_bound"], digits or 5)
        terminal.out().print(f"Perplexity at most {bound}, by the mean over draws of log probabilities.")


def _caveat(frame: pd.DataFrame) -> None:
    if "withheld" in (caveat := frame.attrs.get("caveat", "")):
        terminal.out().print(f"NOT TO BE TRUSTED: {caveat}. These are one solution of perhaps many.")
    elif caveat:
        terminal.out().print(f"With caution: {caveat}.")


def _show_topics(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print each topic in a line, and each of its words with its interval."""
    terminal.show_table(*topic_rows(frame), title=saved.title(whole), words=["words"], digits=digits)
    saved.show_rows(frame, words=["word"], digits=digits)
    _caveat(frame)


def _show_proportions(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the mean share of each topic in each document, with its standard deviation."""
    wide = frame.unstack(sort=False)
    labels, errors, sds = list(wide["mean"].columns), wide["mcse_mean"].to_numpy(), wide["sd"].to_numpy()
    rows = [
        [str(name), *map(partial(_with_sd, digits), means, errors[i], sds[i])]
        for i, (name, means) in enumerate(zip(wide.index[: saved.MAX_ROWS], wide["mean"].to_numpy(), strict=False))
    ]
    columns = ["document", *(f"topic {label}" for label in labels)]
    terminal.show_table(columns, rows, title=f"{saved.title(whole)}: mean share +- posterior sd")
    saved.note_more(len(wide), "documents")
    _caveat(frame)


def _with_sd(digits: int | None, mean: float, error: float, sd: float) -> str:
    """Write a share to three decimals, or to fewer where its Monte Carlo error is larger, with its posterior sd."""
    mean_text = estimate(mean, error if error > _FINEST else _FINEST, digits)
    sd_text = f"{sd:.3f}" if digits is None else number(sd, digits)
    return mean_text if sd != sd else f"{mean_text} +- {sd_text}"  # NaN is not itself
