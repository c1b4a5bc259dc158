"""Answers from reweighted and resampled rows: ``bayeszoo bootstrap`` and ``bayesbag``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, DRAWS, AnswerOptions, DrawsOptions, about_answer, of_data
from bayeszoo.data.table.table import escaped
from bayeszoo.foundation.named import Document
from bayeszoo.model import find as zoo
from bayeszoo.report.text.numbers import estimate, number, spread
from bayeszoo.tools.resampling.bayesbag import bayesbag, require_conjugate
from bayeszoo.tools.resampling.bayesian import Bootstrap, bootstrap
from bayeszoo.tools.resampling.classical import ABOUT as OF_RESAMPLES
from bayeszoo.tools.resampling.classical import bootstrap_mle

if TYPE_CHECKING:
    import pandas as pd


_LABELS = {"mean": "mean", "sd": "sd", "q025": "2.5%", "median": "median", "q975": "97.5%"}


_ABOUT_BAG = (
    "own sd: of the posterior of the data, exact. ratio: bagged variance over its own, about 2 where the model holds.",
    "mismatch: 1 - 2 / ratio. Near 0 nothing speaks against the model; towards 1 its posterior is too narrow.",
)


def bootstrap_command(
    data: opt.TableFile,
    /,
    *,
    functional: str = "mean",
    weights: Literal["dirichlet", "multinomial"] = "dirichlet",
    model: Annotated[str | None, Parameter(help="Instead, the maximum-likelihood estimate of this model.")] = None,
    draws: int = 4000,
    seed: opt.DrawnSeed = None,
    shown: DrawsOptions = DRAWS,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Bootstrap a mean, a quantile, an sd or a correlation (Bayesian or classical), or a model's estimate (classical).

    Parameters
    ----------
    functional
        mean, median, quantile:P with P between 0 and 1, sd, or correlation of two columns.
    weights
        dirichlet: Dirichlet(1, ..., 1), the posterior; multinomial: rows drawn again, the sampling distribution.
    draws
        Draws of the weights.
    """
    shown.probe()
    if model is not None:
        return _bootstrap_model(model, data, draws, seed, shown, table)
    answer = bootstrap(data, functional, weights=weights, draws=draws, seed=seed, **table.of_reading())
    terminal.notes(answer.data.notes)
    whole = about_answer(answer, "kind", "seed", "notes", weights=weights, draws=len(answer.draws))
    shown.answer(answer.summary, whole, _show, _drawn(answer))


def _bootstrap_model(
    name: str, data: Any, draws: int, seed: int | None, shown: DrawsOptions, table: opt.TableOptions
) -> None:
    """Resample rows and print the spread of a model's estimate."""
    kind = zoo.find(name)
    answer = bootstrap_mle(kind, table.read(kind, data), draws=draws, seed=seed)
    whole = about_answer(answer, "seed", model=kind.name, kind="sampled", draws=draws, notes=[OF_RESAMPLES])
    shown.answer(answer.summary, whole, _show_of_model)


def _show_of_model(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the estimate of each parameter, and its spread over resamples."""
    title = f"mle of {whole['model']} by the classical bootstrap, {of_data(whole['data'])}, seed {whole['seed']}"
    saved.show_rows(frame, title, "parameters", spare=("median",), digits=digits)
    terminal.show_each(whole["notes"])


def bayesbag_command(
    name: opt.ModelName,
    data: opt.DataFile = None,
    /,
    *,
    size: opt.AtLeast1 | None = None,
    resamples: int = 1000,
    seed: opt.DrawnSeed = None,
    shown: AnswerOptions = ANSWER,
    prior: opt.PriorOptions = opt.PRIOR,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Average the posteriors of resampled data (BayesBag), and compare its spread with the posterior's.

    Parameters
    ----------
    size
        Observations in each resample; by default the number of observations in the data.
    resamples
        Number of resamples, where the answer is not exact.
    """
    shown.probe()
    model = zoo.find(name)
    require_conjugate(model)
    rows = table.read(model, data)
    bag = bayesbag(prior.model(model, rows), rows, size=size, resamples=resamples, seed=seed)
    whole = about_answer(bag, "kind", "size", "observations", "seed", "notes", model=str(bag.model))
    shown.answer(bag.summary, whole, _show_bag)


def _show_bag(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the bagged posterior next to the posterior, and what their ratio means."""
    about = f"{escaped(whole['model'])}: {whole['kind']}, resamples of {whole['size']} observations"
    title = [about, f"{of_data(whole['data'])}, seed {whole['seed']}"]
    columns = ["quantity", "mean", "sd", "own sd", "ratio", "error of ratio", "mismatch"]
    rows = [_quantity_cells(str(name), row, digits) for name, row in frame.head(saved.MAX_ROWS).iterrows()]
    terminal.show_table(columns, rows, title, spare=("mean",), whole="-o or --json")
    saved.note_more(len(frame), "quantities")
    terminal.show_each([*_ABOUT_BAG, *whole["notes"]])


def _quantity_cells(name: str, row: pd.Series, digits: int | None) -> list[str]:
    """Write a row, each number to the order of its Monte Carlo error."""
    keys = ("mean", "sd", "ratio", "mismatch")
    written = {key: estimate(row[key], row[f"mcse_{key}"], digits, spread(row, key)) for key in keys}
    error = "exact" if row["mcse_ratio"] == 0 else number(row["mcse_ratio"], 2)
    own = number(row["posterior_sd"], digits or 5)
    return [name, written["mean"], written["sd"], own, written["ratio"], error, written["mismatch"]]


def _drawn(answer: Bootstrap) -> pd.DataFrame:
    """Return the draws as a table."""
    import pandas as pd

    index = pd.RangeIndex(1, len(answer.draws) + 1, name="draw")
    return pd.DataFrame({answer.functional: answer.draws}, index=index)


def _show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print each estimate with its Monte Carlo error, and notes on how it was computed."""
    name, known = str(frame.index[0]), frame.iloc[0]
    rows = [["of the rows", estimate(known["of_rows"], None, digits, known["sd"]), "exact"]]
    for key, label in _LABELS.items():
        error = known[f"mcse_{key}"]
        text = estimate(known[key], error, digits, spread(known, key))
        rows.append([label, text, "exact" if error == 0 else number(error, 2)])
    how, law = ("Bayesian", "posterior") if whole["weights"] == "dirichlet" else ("classical", "resampled")
    title = f"{escaped(name)} by the {how} bootstrap, {of_data(whole['data'])}, seed {whole['seed']}"
    terminal.show_table([law, name, "Monte Carlo error"], rows, title)
    sampled = "" if whole["kind"] == "exact" else f": {whole['draws']} draws of the weights"
    terminal.show_each([f"{whole['kind']}{sampled}", *whole["notes"]])
