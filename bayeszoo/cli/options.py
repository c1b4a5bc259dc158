"""Groups of options that several commands share."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from bayeszoo.cli import terminal
from bayeszoo.data.read import Data, example, read
from bayeszoo.errors import InputError
from bayeszoo.foundation.progress import Reporter
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.base import Model, chosen_by_data
from bayeszoo.model.chunks import accumulate, first_chunk

Flag = Annotated[bool, Parameter(negative=())]
Json = Annotated[bool, Parameter(name="--json", negative=())]
Output = Annotated[Path | None, Parameter(name=("--output", "-o"))]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lt=2**63))]
Candidates = Annotated[list[str], Parameter(name=("--candidate", "-c"), negative=(), consume_multiple=False)]


@Parameter(name="*")
@dataclass(frozen=True)
class TableOptions:
    """How to read the user's table.

    Parameters
    ----------
    example
        Without DATA: which of the model's own data sets.
    column
        Column to use.
    positive
        Label that counts as success.
    count
        Column of how often each label occurs.
    successes
        Column of successes; goes with --trials.
    trials
        Column of trials; goes with --successes.
    columns
        Columns to use, with commas between.
    categories
        The categories in order, with commas between.
    exposure
        Column of how long or how much each row was observed.
    sequence
        Column that says to which sequence a row belongs.
    source
        Column of where a transition starts; goes with --target.
    target
        Column of the outcome of a regression; or, with --source, of where a transition ends.
    features
        Feature columns, with commas between; all others by default.
    symbols
        The symbols in order, with commas between.
    order
        Number of preceding symbols on which the next one depends.
    text
        Column of raw text, each row a document.
    document
        Column of the names of documents.
    word
        Column of words; goes with --document, and perhaps with --count.
    stop_words
        Words to leave out of raw text or triplets; the only list is english.
    min_documents
        Leave out words in fewer documents.
    max_share
        Leave out words in a larger share of the documents.
    vocabulary
        The words in order, with commas between; others are left out.
    delimiter
        Character between cells.
    decimal
        Decimal mark.
    encoding
        Encoding of a text file.
    header
        Whether the first line names the columns.
    missing
        What to do with missing values: refuse them, drop their rows, or mask them, that is take them for unknown.
    """

    example: str | None = None
    column: str | None = None
    positive: str | None = None
    count: str | None = None
    successes: str | None = None
    trials: str | None = None
    columns: str | None = None
    categories: str | None = None
    exposure: str | None = None
    sequence: str | None = None
    source: str | None = None
    target: str | None = None
    features: str | None = None
    symbols: str | None = None
    order: int | None = None
    text: str | None = None
    document: str | None = None
    word: str | None = None
    stop_words: str | None = None
    min_documents: int | None = None
    max_share: float | None = None
    vocabulary: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool = True
    missing: Literal["refuse", "drop", "mask"] = "refuse"

    def read(self, model: type[Model], path: str | None, **more: Any) -> Data:
        """Read the user's table, or one of the model's own, and say what was done to it."""
        return _noted(self._read(model, path, **more))

    def of_reading(self, path: str | None) -> dict[str, Any]:
        """Return the options that were given, for a function that reads the table itself."""
        if path is None and self != TableOptions():
            raise InputError("the options of a table go with DATA")
        return self._given if path is not None else {}

    def first_chunk(self, model: type[Model], path: str | None, rows: int) -> tuple[Data, str]:
        """Read the first rows of the user's table that say anything, and name them."""
        return first_chunk(model, self._file(path), rows, **self._given)

    def accumulate(self, model: Model, path: str | None, rows: int, reporter: Reporter) -> Accumulated:
        """Add up the statistics of the user's table, and say what was done to it."""
        return _noted(accumulate(model, self._file(path), rows, reporter=reporter, **self._given))

    def _file(self, path: str | None) -> str:
        if path is None or self.example is not None:
            raise InputError("--chunk-rows goes with DATA, and without --example")
        return path

    @property
    def _given(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if k != "example" and v is not None}

    def _read(self, model: type[Model], path: str | None, **more: Any) -> Data:
        if path is not None and self.example is not None:
            raise InputError("give DATA or --example, not both")
        default = TableOptions(example=self.example)
        if path is not None:
            return read(model, path, **self._given, **more)
        if self != default:
            changed = next(k for k, v in asdict(self).items() if v != getattr(default, k))
            raise InputError(f"--{changed} goes with DATA")
        return example(model, self.example)


def _noted[T: (Data, Accumulated)](data: T) -> T:
    """Print what was done to the data."""
    for line in data.notes:
        terminal.note(f"note: {line}")
    return data


@Parameter(name="*")
@dataclass(frozen=True)
class FieldOptions:
    """The fields of the model.

    Parameters
    ----------
    sets
        FIELD=JSON: a field of the model; may be repeated.
    """

    sets: Annotated[list[str], Parameter(name="--set", negative=(), consume_multiple=False)] | None = None

    def fields(self, model: type[Model]) -> dict[str, Any]:
        """Parse the fields that were set."""
        names, chosen = [f.name for f in fields(cast(Any, model))], {}
        for item in self.sets or []:
            name, equals, value = item.partition("=")
            if not equals or name not in names:
                raise InputError(f"--set {item}: {model.name} has no such field", hint=f"it has {', '.join(names)}")
            if name in chosen:
                raise InputError(f"--set {item}: {name} is set twice")
            try:
                chosen[name] = json.loads(value)
            except (ValueError, RecursionError):  # not JSON; or too many digits, or too deep, for Python
                if not isinstance(getattr(model, name, None), str):
                    raise InputError(f"--set {item}: the value is not JSON", hint="write a=2 or alpha=[1,1]") from None
                chosen[name] = value  # text needs no quotes
        return chosen


@Parameter(name="*")
@dataclass(frozen=True)
class PriorOptions(FieldOptions):
    """The prior.

    Parameters
    ----------
    sets
        FIELD=JSON: a field of the model; may be repeated.
    prior
        The fields not set: weakly informative, scaled to the data; or the textbook's.
    """

    prior: Literal["weak", "textbook"] = "weak"

    def model(self, model: type[Model], data: Data, which: str = "the data") -> Model:
        """Make the model for the data, or for a file that begins with them; ``which`` names them."""
        chosen = self.fields(model)
        if self.prior == "textbook":
            return model(**chosen)
        prior = model.weak_given(data, chosen)
        if self.is_scaled(prior):
            terminal.note(f"priors are scaled to {which}, and so is the log evidence")
        return prior

    def is_scaled(self, model: Model) -> bool:
        """Say whether some of the fields were chosen by the data."""
        return self.prior == "weak" and chosen_by_data(model, self.fields(type(model)))


@Parameter(name="*")
@dataclass(frozen=True)
class MethodOptions:
    """Options of the method.

    Parameters
    ----------
    draws
        Draws of each chain.
    chains
        Chains.
    tune
        Warmup draws of each chain (nuts); sweeps before its first draw (gibbs).
    target_accept
        Target acceptance statistic (nuts).
    sampler
        Which sampler (nuts).
    extend
        Whether to run longer when the gate fails (nuts, gibbs, smc).
    density
        Which compiled density nutpie calls (nuts).
    threshold
        Effective share of particles that a tempering step keeps (smc).
    thin
        Sweeps between the draws of a chain (gibbs).
    """

    draws: int | None = None
    chains: int | None = None
    tune: int | None = None
    target_accept: float | None = None
    sampler: Literal["nutpie", "pymc"] | None = None
    extend: bool | None = None
    density: Literal["auto", "shared", "nutpie"] | None = None
    threshold: float | None = None
    thin: int | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that were set."""
        return {name: value for name, value in asdict(self).items() if value is not None}
