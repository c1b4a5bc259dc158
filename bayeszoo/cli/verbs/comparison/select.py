"""Models compared on the same data: ``bayeszoo select``."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.comparison.candidates import SelectOptions, components, label, number_of_components, same_outcomes
from bayeszoo.comparison.compare import unique
from bayeszoo.comparison.select import select
from bayeszoo.data.inputs import Series
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.families.linear.terms import orders, polynomials, subsets
from bayeszoo.fit import fit, uninterrupted
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model
from bayeszoo.plots.select import plot_select
from bayeszoo.report.text.numbers import estimate, nats, number
from bayeszoo.report.text.ranking import plain, ranking, short_names
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

Prior = Literal["weak", "textbook"]
MAX_ROWS = 50
"""Candidates that are printed; --json has all of them."""

_TABLES = {
    "Evidence": {
        "log_evidence": "log evidence", "evidence_se": "error", "log_bayes_factor": "log Bayes factor",
        "log_bayes_factor_se": "error", "probability": "probability", "evidence_from": "from",
    },
    "Variational bound": {"elbo": "ELBO", "elbo_from": "from"},
    "Likelihood": {
        "log_likelihood": "maximum", "parameters": "parameters", "observations": "observations",
        "aic": "AIC", "bic": "BIC", "ric": "RIC", "likelihood_from": "from",
    },
    "Description length": {"mdl": "MDL", "mdl_from": "from"},
    "Normalized maximum likelihood": {"nml": "NML", "nml_from": "from"},
    "Prediction: K-fold": {
        "kfold": "K-fold score", "kfold_se": "se", "kfold_difference": "difference", "kfold_difference_se": "se",
        "kfold_from": "from",
    },
    "Prediction: leave-one-out": {
        "loo": "LOO score", "loo_se": "se", "loo_mcse": "MC error", "loo_difference": "difference",
        "loo_difference_se": "se", "k_hat": "k-hat", "loo_from": "from",
    },
}  # fmt: skip
"""The tables that are printed: columns of the frame and their heads."""
_OF_SOME = ("elbo", "mdl", "nml")
"""Criteria that some models lack; a table without any number is not printed."""
_NATS = {"log_evidence", "log_bayes_factor", "elbo", "log_likelihood", "aic", "bic", "ric", "mdl", "nml"}
_NATS |= {f"{score}{of}" for score in ("kfold", "loo") for of in ("", "_difference")}
_ABOUT = """\
In nats, of the ordered observations. Probability: posterior model probability, equal prior probabilities."""
_OF_BOUNDS = "\nELBO: a lower bound of the log evidence, for one order of the labels; up to log K! may be missing."
_OF_SCORES = """
AIC, BIC, RIC, MDL, NML: lower is better. K-fold and LOO score: sum of log predictive densities of held-out
observations; higher is better."""


@Parameter(name="*")
@dataclass(frozen=True)
class CriteriaOptions:
    """Options of the criteria.

    Parameters
    ----------
    folds
        Number of folds of K-fold cross-validation.
    seed
        Seed of the folds, and of the fits of models with latent variables.
    keep_probability
        Prior probability that a term is in a linear model, for its description length.
    loo
        Predict each observation from all others, the slowest criterion.
    exact_loo
        Refit without each row whose importance weights fail.
    """

    folds: int = 10
    seed: int = 0
    keep_probability: float = 0.5
    loo: bool = True
    exact_loo: opt.Flag = False


@Parameter(name="*")
@dataclass(frozen=True)
class TermOptions:
    """Terms of each linear model, or numbers of components of each mixture, that are compared.

    Parameters
    ----------
    degrees
        Polynomials of these degrees of each -c MODEL: 0-9, or 1,2,5.
    subsets
        Every subset of the features for each -c MODEL.
    at_most
        Largest number of features in a subset.
    components
        Numbers of components of each -c MODEL: 1-6, or 1,2,5. Fields that are not set are scaled for one component.
    """

    degrees: str | None = None
    subsets: opt.Flag = False
    at_most: int | None = None
    components: str | None = None
    lags: Annotated[tuple[int, ...], Parameter(show=False, parse=False)] = ()

    @classmethod
    def with_lags(cls, terms: TermOptions, table: opt.TableOptions) -> tuple[TermOptions, opt.TableOptions]:
        """Read several numbers of lags as candidates, all on the rows that have the largest number."""
        if table.lags is None or table.lags.isdigit():
            return terms, table
        numbers = tuple(_numbers("lags", table.lags))
        return replace(terms, lags=numbers), replace(table, lags=str(max(numbers)))

    def check(self, models: int) -> None:
        """Refuse options that contradict each other, or that no model takes."""
        is_given = {
            "degrees": self.degrees is not None,
            "subsets": self.subsets,
            "components": self.components is not None,
            "lags": bool(self.lags),
        }
        options = [f"--{name}" for name, is_set in is_given.items() if is_set]
        if len(options) > 1:
            raise InputError(
                f"give one of {', '.join(options)}", "conflicting_options", hint="write -c 'MODEL degree=2' --subsets"
            )
        if self.at_most is not None and not self.subsets:
            raise InputError("--at-most goes with --subsets", "conflicting_options")
        if options and not models:
            raise InputError(f"{options[0]} goes with -c MODEL", "option_needs_data")

    def candidates(self, model: Model, data: Data) -> Mapping[str, Model]:
        """Return the candidates of one model by name; a model that stays as it is has the name ''."""
        if self.components is not None:
            return components(model, _numbers("components", self.components))
        if self.lags:
            return orders(model, data, self.lags)
        if self.subsets:
            return subsets(model, data, self.at_most)
        return {"": model} if self.degrees is None else polynomials(model, _numbers("degrees", self.degrees))


NO_TERMS, USUAL = TermOptions(), CriteriaOptions()


def _numbers(option: str, text: str) -> list[int]:
    """Parse whole numbers and ranges of them."""
    parts = [part.strip().partition("-") for part in text.split(",")]
    bounds = [(first, last if dash else first) for first, dash, last in parts]
    if not all(bound.isascii() and bound.isdigit() and len(bound) < 4 for pair in bounds for bound in pair):
        raise InputError(f"--{option} {text!r} is not a list of {option}", "wrong_type", hint="write 0-9 or 1,2,5")
    if empty := next((f"{first}-{last}" for first, last in bounds if int(last) < int(first)), ""):
        hint = f"write {'-'.join(reversed(empty.split('-')))}"
        raise InputError(f"--{option} {text!r}: {empty} holds no number", "wrong_type", hint=hint)
    return [number for first, last in bounds for number in range(int(first), int(last) + 1)]


@by_group
def select_command(
    data: opt.NewFile = None,
    /,
    *fits: str,
    candidates: opt.Candidates = (),  # type: ignore[assignment]  # of Cyclopts a list, and never changed
    prior: Prior = "weak",
    terms: TermOptions = NO_TERMS,
    criteria: CriteriaOptions = USUAL,
    nuts: opt.Flag = False,
    plot: Path | None = None,
    by: opt.By = None,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> int:
    """Compare models of the same data: evidence, AIC and BIC, description length, prediction.

    Nothing is fitted without --nuts: models with closed forms or latent variables need no fit, and others are given
    as fits. Weak priors are scaled for all features at degree 1 and one component, the same for all candidates of a
    model. linear_regression estimates the noise.

    Parameters
    ----------
    data
        CSV, TSV or Parquet file, by default the example of the first model; or the first of several fits (FILE.nc).
    fits
        Further fits, as further candidates.
    candidates
        "[NAME=]MODEL [FIELD=JSON ...]", or a fit saved with -o (FILE.nc); repeat for each candidate.
    prior
        Prior of the fields that are not set: weak (scaled to the data) or textbook.
    nuts
        Fit each -c MODEL by NUTS, for an evidence (by bridge sampling) and leave-one-out without closed forms.
    plot
        Draw the criteria side by side (.png, .svg or .pdf).
    """
    options = asdict(criteria)
    SelectOptions(**options)  # refuses before anything is read
    shown.probe(plot)
    data, candidates = _sorted_out(data, fits, candidates)
    called, texts = zip(*map(_called, candidates), strict=True)
    parsed = [parse_candidate(text) for text in texts]
    kinds = [kind for kind, _ in parsed if not isinstance(kind, Path)]
    terms, table = TermOptions.with_lags(terms, table)
    terms.check(len(kinds))
    rows = _rows(kinds, data, table)
    groups = [_candidates(kind, chosen, terms, rows, prior) for kind, chosen in parsed]
    named = _named(called, texts, groups)
    with closing(terminal.TerminalReporter()) as reporter:
        if nuts:
            named = _fitted(named, rows, options["seed"], reporter)
        frame = select(named, rows, **options, reporter=reporter)

    def document(written: saved.Written) -> Document:
        return {"prior": prior, **options, **written, "table": frame.to_dict("records")}

    draw = shown.drawn(lambda: plot_select(frame), plot)
    shown.deliver(partial(_show, frame, shown.digits), document, frame, plot=draw)
    return 0 if set(frame["status"]) <= {"ok", "caution"} else Untrustworthy.exit_code


def _sorted_out(data: str | None, fits: Sequence[str], candidates: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the table and the candidates; the argument DATA may be a fit, which is a candidate."""
    if isinstance(data, str) and data.endswith(".nc"):  # not the rows of a group
        fits, data = (data, *fits), None
    if other := next((name for name in fits if not name.endswith(".nc")), None):
        raise InputError(f"{other!r} is no fit (FILE.nc)", "bad_candidate", hint="write -c MODEL, and one table")
    if not (fits or candidates):
        raise InputError("there is nothing to select from", "no_data", hint="write -c MODEL, or name fits (FILE.nc)")
    return data, [*fits, *candidates]


def _rows(kinds: Sequence[type[Model]], data: str | None, table: opt.TableOptions) -> Data | None:
    """Read the data, which all models must take; fits bring their own data."""
    if not kinds:
        if data is not None or table != opt.TABLE:
            raise InputError(
                "the candidates are fits, which bring their own data",
                "option_needs_data",
                hint="leave DATA and its options out",
            )
        return None
    first = max(kinds, key=lambda kind: isinstance(kind.inputs, Series) * len(kind.inputs.options))  # reads most
    rows = table.read(first, data)
    for kind in dict.fromkeys(kinds):
        opt.note_unchecked(kind)
    if other := next((kind for kind in kinds if not _takes(kind, rows, first)), None):
        names = f"{first.name} takes {first.inputs.describe()}; {other.name} takes {other.inputs.describe()}"
        raise InputError(f"the candidates are for different data: {names}", "not_comparable")
    return rows


def _takes(kind: type[Model], rows: Data, first: type[Model]) -> bool:
    """Return whether a model takes the data that were read for another, with the same outcomes."""
    try:
        return same_outcomes(kind, read(kind, rows), first, rows)
    except InputError:
        return False


def _candidates(
    kind: type[Model] | Path, chosen: dict[str, Any], terms: TermOptions, rows: Data | None, prior: Prior
) -> Mapping[str, object]:
    """Return the candidates of one -c by name; a single one has the name ''."""
    if isinstance(kind, Path):
        tree = saved.load(kind, single=True)
        if any(note.startswith("priors are scaled to") for note in Fit(tree).notes):
            terminal.note(f"note: {kind.name}: the prior is scaled to the data, and so is the log evidence")
        return {"": tree}
    if terms.components is not None and (name := number_of_components(kind)):
        if name in chosen:
            raise InputError(f"give {name} or --components, not both", "conflicting_options")
        chosen = {**chosen, name: 1}  # the weak prior is that of one component for all numbers
    data = read(kind, cast(Data, rows))
    return terms.candidates(kind(**chosen) if prior == "textbook" else opt.weak(kind, chosen, data, named=True), data)


def _called(text: str) -> tuple[str, str]:
    """Split ``line=linear_regression degree=1`` into the user's name, which may be empty, and the candidate."""
    match = re.match(r"""\s*(?:"([^"]+)"|'([^']+)'|([^\s"'=]+))=(?=[^\s=])""", text)
    return ("", text) if match is None else (next(filter(None, match.groups())), text[match.end() :])


def _named(called: Sequence[str], texts: Sequence[str], groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return all candidates by name: the user's name, else the text of -c with what differs within it.

    Fits of one model, as with other features, are named by their files.
    """
    count = Counter(plain(label(model)) for models in groups for name, model in models.items() if not name)
    candidates = []
    for users_name, text, models in zip(called, texts, groups, strict=True):
        prefix = f"{users_name or text}: " if users_name or len(texts) > 1 else ""
        for name, model in models.items():
            file = f"{text}: " if text.endswith(".nc") and count[plain(label(model))] > 1 else ""
            candidates.append((prefix + name if name else users_name or file + label(model), model))
    return dict(zip(unique(name for name, _ in candidates), (model for _, model in candidates), strict=True))


def _fitted(named: Mapping[str, object], rows: Data | None, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Fit the models by NUTS; where a fit is not ok, keep the model with the criteria that need no fit."""
    fitted = dict(named)
    for name, candidate in named.items():
        if isinstance(candidate, Model):
            reporter.say(f"{name}: nuts")
            view = uninterrupted(fit(candidate, rows, "nuts", seed=seed, reporter=reporter))
            if view.status == "ok":
                fitted[name] = view.tree
            else:
                reporter.say(f"{name}: the fit by nuts is left out, as its status is {view.status}")
    return fitted


def parse_candidate(text: str) -> tuple[type[Model] | Path, dict[str, Any]]:
    """Read a candidate: a model with the fields that are set, or the file of a fit."""
    try:
        name, *sets = (word for word in shlex.split(text) if word != "--set")  # as after `fit`
    except ValueError:  # an open quotation, or an empty text
        raise InputError(
            f"--candidate {text!r} is not a model with fields", "wrong_type", hint="write 'MODEL a=1 b=5'"
        ) from None
    if (name.endswith(".nc") or ".nc:" in name) and not sets:
        return Path(name), {}
    kind = zoo.find(name)
    try:
        return kind, opt.FieldOptions(sets).fields(kind)
    except InputError as error:
        raise InputError(f"--candidate {text!r}: {str(error).removeprefix('--set ')}", "bad_candidate") from None


def _show(frame: pd.DataFrame, digits: int | None) -> None:
    """Print evidence, likelihood, description length and prediction, each as a table."""
    console, in_full = terminal.out(), frame["model"].tolist()
    frame = frame.assign(model=short_names(in_full))
    shown = frame.head(MAX_ROWS)
    for title, names in _TABLES.items():
        first, source = next(iter(names)), list(names)[-1]
        if frame[first].isna().all():
            if first not in _OF_SOME:
                console.print(f"{title}: {'; '.join(dict.fromkeys(map(escaped, frame[source].dropna())))}")
            continue
        cells = [[_cell(row, name, digits) for name in ("model", *names)] for row in shown.to_dict("records")]
        terminal.show_table(["model", *names.values()], cells, title=title, words=["from"])
    for short, name in zip(frame["model"], in_full, strict=True):
        if short != name:
            console.print(escaped(f"{short}: {name}"))
    if len(shown) < len(frame):
        console.print(f"The first {len(shown)} of {len(frame)} candidates, by log evidence; all of them: --json or -o.")
    if len(frame) > 1:
        terminal.show_each(ranking(frame))
    terminal.show_lines(_ABOUT + _among(frame) + (_OF_BOUNDS if frame["elbo"].notna().any() else "") + _OF_SCORES)


def _cell(row: Mapping[Any, Any], name: str, digits: int | None) -> str:
    """Format a number of a candidate: its criteria to two decimals, their errors to two digits.

    A probability has the digits that its Monte Carlo error supports, four where that is more or it has none.
    """
    if name == "probability" and row["probability_se"] > 5e-5 * row[name]:
        return estimate(row[name], row["probability_se"], digits)
    if name in _NATS:
        return nats(row[name], digits)
    return number(row[name], 2 if name.endswith(("_se", "_mcse")) else 4)


def _among(frame: pd.DataFrame) -> str:
    """Say which candidates the probabilities leave out."""
    without = [escaped(name) for name in frame["model"][frame["log_evidence"].isna()]]
    if not without or frame["probability"].isna().all():
        return ""
    return f"\nProbabilities are among the {len(frame) - len(without)} with an evidence, without {', '.join(without)}."
