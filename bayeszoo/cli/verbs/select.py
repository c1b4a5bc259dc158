"""The command ``bayeszoo select``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from cyclopts import Parameter

from bayeszoo.cli import terminal
from bayeszoo.cli.options import Candidates, FieldOptions, Flag, Json, TableOptions
from bayeszoo.comparison.candidates import Settings, label, unique
from bayeszoo.comparison.criteria import components, number_of_components
from bayeszoo.data.read import Data
from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.families.linear.terms import polynomials, subsets
from bayeszoo.foundation import writing
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model, chosen_by_data
from bayeszoo.plots import select as select_plot
from bayeszoo.report.tables import number
from bayeszoo.results import files

if TYPE_CHECKING:
    import pandas as pd

Prior = Literal["weak", "textbook"]
MAX_ROWS = 50
"""Candidates that are printed; --json has all of them."""

_TABLES = {
    "Evidence": {
        "log_evidence": "log evidence",
        "evidence_se": "error",
        "log_bayes_factor": "log Bayes factor",
        "log_bayes_factor_se": "error",
        "probability": "probability",
        "evidence_from": "from",
    },
    "Variational bound": {
        "elbo": "ELBO",
        "elbo_from": "from",
    },
    "Likelihood": {
        "log_likelihood": "maximum",
        "parameters": "parameters",
        "observations": "observations",
        "aic": "AIC",
        "bic": "BIC",
        "likelihood_from": "from",
    },
    "Description length": {
        "mdl": "MDL",
        "mdl_from": "from",
    },
    "Prediction: K-fold": {
        "kfold": "K-fold score",
        "kfold_se": "se",
        "kfold_difference": "difference",
        "kfold_difference_se": "se",
        "kfold_from": "from",
    },
    "Prediction: leave-one-out": {
        "loo": "LOO score",
        "loo_se": "se",
        "loo_mcse": "MC error",
        "loo_difference": "difference",
        "loo_difference_se": "se",
        "k_hat": "k-hat",
        "loo_from": "from",
    },
}
"""The tables that are printed: columns of the frame, and what heads them."""
_OPTIONAL = {"Variational bound": "elbo", "Description length": "mdl"}
"""Tables of some models only, and the column without which they are not printed."""
_PRECISE = {"log_evidence", "elbo", "log_likelihood", "aic", "bic", "mdl", "kfold", "loo"}
_BEST = {"log_evidence": max, "aic": min, "bic": min, "mdl": min, "kfold": max, "loo": max}
"""The criteria, and whether the highest or the lowest is best."""


@Parameter(name="*")
@dataclass(frozen=True)
class CriteriaOptions:
    """How the criteria are computed.

    Parameters
    ----------
    folds
        Number of folds of K-fold cross-validation.
    seed
        Seed of the split into folds, and of the fits of models with latent variables.
    keep_probability
        Prior probability that a term is in a linear model, for its description length.
    loo
        Predict each observation from all others, which takes longest.
    """

    folds: int = 10
    seed: int = 0
    keep_probability: float = 0.5
    loo: bool = True


@Parameter(name="*")
@dataclass(frozen=True)
class TermOptions:
    """Other terms for each linear model, or numbers of components for each mixture.

    Parameters
    ----------
    degrees
        Polynomials of these degrees of each -c MODEL: 0-9, or 1,2,5.
    subsets
        Every subset of the features for each -c MODEL.
    at_most
        Largest number of features in a subset.
    components
        Numbers of components of each -c MODEL: 1-6, or 1,2,5. Fields not given are those for one component.
    """

    degrees: str | None = None
    subsets: Flag = False
    at_most: int | None = None
    components: str | None = None

    def check(self, models: int) -> None:
        """Refuse options that contradict each other, or have no model to change."""
        if self.degrees is not None and self.subsets:
            raise InputError("give --degrees or --subsets, not both", hint="write -c 'MODEL degree=2' --subsets")
        if self.at_most is not None and not self.subsets:
            raise InputError("--at-most goes with --subsets")
        if not models and (self.degrees is not None or self.subsets):
            raise InputError("--degrees and --subsets go with -c MODEL")
        if self.components is not None and (self.degrees is not None or self.subsets):
            raise InputError("give --components or other terms, not both")
        if self.components is not None and not models:
            raise InputError("--components goes with -c MODEL")

    def candidates(self, model: Model, data: Data) -> Mapping[str, Model]:
        """Make the candidates of one model: without a name where it stays as it is."""
        if self.components is not None:
            return components(model, _numbers("components", self.components))
        if self.subsets:
            return subsets(model, data, self.at_most)
        return {"": model} if self.degrees is None else polynomials(model, _numbers("degrees", self.degrees))


def _numbers(option: str, text: str) -> list[int]:
    """Parse whole numbers and ranges of them."""
    parts = [part.strip().partition("-") for part in text.split(",")]
    bounds = [(first, last if dash else first) for first, dash, last in parts]
    if not all(bound.isascii() and bound.isdigit() and len(bound) < 4 for pair in bounds for bound in pair):
        raise InputError(f"--{option} {text!r} is not a list of {option}", hint="write 0-9 or 1,2,5")
    if empty := next((f"{first}-{last}" for first, last in bounds if int(last) < int(first)), ""):
        hint = f"write {'-'.join(reversed(empty.split('-')))}"
        raise InputError(f"--{option} {text!r}: {empty} holds no number", hint=hint)
    return [number for first, last in bounds for number in range(int(first), int(last) + 1)]


def select_command(
    data: str | None = None,
    /,
    *,
    candidates: Candidates,
    prior: Prior = "weak",
    terms: TermOptions | None = None,
    criteria: CriteriaOptions | None = None,
    nuts: Flag = False,
    plot: Path | None = None,
    overwrite: Flag = False,
    as_json: Json = False,
    table: TableOptions | None = None,
) -> int:
    """Compare models of the same data: evidence, AIC and BIC, description length, prediction.

    Nothing is fitted without --nuts: models have closed forms or latent variables, and others are given as fits. A
    prior scaled to the data goes by all features at degree 1, and by one component, whatever the candidate's terms or
    components; linear_regression need not be told the noise.

    Parameters
    ----------
    data
        CSV, TSV or Parquet file; without it the first model's own data.
    candidates
        "MODEL [FIELD=JSON ...]", or a fit saved with -o (FILE.nc); repeated for each.
    prior
        The fields not given: weakly informative, scaled to the data; or the textbook's.
    nuts
        Fit each -c MODEL by NUTS, for leave-one-out without a closed form.
    plot
        Draw the criteria side by side (.png, .svg or .pdf).
    overwrite
        Replace an existing file.
    as_json
        One JSON document on stdout, and nothing else.
    """
    terms, options = terms or TermOptions(), asdict(criteria or CriteriaOptions())
    Settings(**options)  # refuses before anything is read
    if plot is not None:
        writing.probe_figure(plot, overwrite)
    parsed = [parse_candidate(text) for text in candidates]
    kinds = [kind for kind, _ in parsed if not isinstance(kind, Path)]
    terms.check(len(kinds))
    rows = _rows(kinds, data, table or TableOptions())
    groups = [_candidates(kind, chosen, terms, rows, prior) for kind, chosen in parsed]
    named = _named(candidates, groups)
    frame = _selected(_fitted(named, rows, options["seed"]) if nuts else named, rows, options)
    saved = None if plot is None else str(writing.write_figure(select_plot.plot_select(frame), plot, overwrite))
    if as_json:
        document = {"prior": prior, **options, "plot": saved, "table": frame.to_dict("records")}
        terminal.print_json(document)
    else:
        _show(frame)
    if saved is not None:
        terminal.note(f"wrote {saved}")
    return 0 if set(frame["status"]) == {"ok"} else Untrustworthy.exit_code


def _rows(kinds: Sequence[type[Model]], data: str | None, table: TableOptions) -> Data | None:
    """Read the data of the models; fits bring their own."""
    if not kinds and (data is not None or table != TableOptions()):
        raise InputError("the candidates are fits, which bring their own data", hint="leave DATA and its options out")
    rows = table.read(kinds[0], data) if kinds else None
    _require_one_kind_of_data(kinds)
    return rows


def _candidates(
    kind: type[Model] | Path, chosen: dict[str, Any], terms: TermOptions, rows: Data | None, prior: Prior
) -> Mapping[str, Any]:
    """Return the candidates of one -c by name; the name is empty where there is one only."""
    if isinstance(kind, Path):
        return {"": files.load(kind)}
    if terms.components is not None and (name := number_of_components(kind)):
        if name in chosen:
            raise InputError(f"give {name} or --components, not both")
        chosen = {**chosen, name: 1}  # so that a weak prior is that of one, the same for all
    return terms.candidates(_model(kind, chosen, rows, prior), cast(Data, rows))


def _named(texts: Sequence[str], groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return all candidates by name; where there are several of one -c, after what differs and, if needed, its text."""
    pairs = []
    for text, own in zip(texts, groups, strict=True):
        prefix = f"{text}: " if len(texts) > 1 else ""
        pairs += [(prefix + name if name else label(each), each) for name, each in own.items()]
    return dict(zip(unique(name for name, _ in pairs), (each for _, each in pairs), strict=True))


def _fitted(named: Mapping[str, Any], rows: Data | None, seed: int) -> dict[str, Any]:
    """Fit the models by NUTS; one whose fit is not ok stays a model, with what there is of it without a fit."""
    from bayeszoo.fit import fit

    reporter, fitted = terminal.TerminalReporter(), dict(named)
    for name, candidate in named.items():
        if isinstance(candidate, Model):
            reporter.say(f"{name}: nuts")
            tree = fit(candidate, rows, "nuts", seed=seed, reporter=reporter)
            if tree.attrs["status"] == "ok":
                fitted[name] = tree
            else:
                reporter.say(f"{name}: the fit by nuts is {tree.attrs['status']}, and left out")
    reporter.close()
    return fitted


def _selected(named: Mapping[str, Any], rows: Data | None, options: Mapping[str, Any]) -> pd.DataFrame:
    from bayeszoo.comparison.select import select

    reporter = terminal.TerminalReporter()
    try:
        return select(named, rows, **options, reporter=reporter)
    finally:
        reporter.close()


def _require_one_kind_of_data(kinds: Sequence[type[Model]]) -> None:
    for kind in kinds[1:]:
        if kind.inputs != kinds[0].inputs:
            names = f"{kinds[0].name} takes {kinds[0].inputs.describe()}; {kind.name} takes {kind.inputs.describe()}"
            raise InputError(f"the candidates are for different data: {names}")


def parse_candidate(text: str) -> tuple[type[Model] | Path, dict[str, Any]]:
    """Read a candidate: a model with the fields that were given, or the file of a fit."""
    try:
        name, *sets = shlex.split(text)
    except ValueError:  # a quotation that does not end; nothing at all
        raise InputError(f"--candidate {text!r} is not a model with fields", hint="write 'MODEL a=1 b=5'") from None
    if name.endswith(".nc") and not sets:
        return Path(name), {}
    kind = zoo.find(name)
    try:
        return kind, FieldOptions(sets).fields(kind)
    except InputError as error:
        raise InputError(f"--candidate {text!r}: {str(error).removeprefix('--set ')}") from None


def _model(kind: type[Model], chosen: dict[str, Any], rows: Data | None, prior: Prior) -> Model:
    """Make the model for the data, and say whether they shaped its prior."""
    if prior == "textbook":
        return kind(**chosen)
    model = kind.weak_given(cast(Data, rows), chosen)
    if chosen_by_data(model, chosen):
        terminal.note(f"{model}: the prior is scaled to the data, and so is the log evidence")
    return model


def _show(frame: pd.DataFrame) -> None:
    """Print evidence, likelihood, description length and prediction, each as a table."""
    shown = frame.head(MAX_ROWS)
    for title, heads in _TABLES.items():
        if title in _OPTIONAL and frame[_OPTIONAL[title]].isna().all():
            continue
        cells = [_cells(row, heads) for row in shown.to_dict("records")]
        terminal.show(terminal.table(["model", *heads.values()], cells, title=title, words=["from"]))
    console = terminal.out()
    if len(shown) < len(frame):
        console.print(f"The first {len(shown)} of {len(frame)} candidates, by log evidence; all of them: --json.")
    if len(frame) > 1:
        console.print(f"Best by {'; '.join(_best(frame))}.")
    console.print("In nats, of the ordered observations. Probability: of the model, all being equally likely before.")
    if frame["elbo"].notna().any():
        console.print(
            "ELBO: a lower bound of the log evidence, of one order of the labels: up to log K! may be missing."
        )
    console.print("AIC, BIC, MDL: less is better. K-fold and LOO score: sum of log predictive densities of held-out")
    console.print("observations; more is better.")


def _best(frame: pd.DataFrame) -> list[str]:
    """Say which candidate each criterion prefers."""
    names = {head.removesuffix(" score"): key for heads in _TABLES.values() for key, head in heads.items()}
    lines = []
    for name, key in names.items():
        if key in _BEST and not frame[key].isna().all():
            values = frame[key].to_numpy(dtype=float)
            place = np.nanargmax(values) if _BEST[key] is max else np.nanargmin(values)
            without = f" ({np.isnan(values).sum()} withheld)" if np.isnan(values).any() else ""
            lines.append(f"{name}: {escaped(frame['model'].tolist()[int(place)])}{without}")
    return lines


def _cells(row: dict[Any, Any], heads: Iterable[str]) -> list[Any]:
    return [row["model"], *(number(row[name], 9 if name in _PRECISE else 5) for name in heads)]
