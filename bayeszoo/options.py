"""Groups of options that several commands share."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Literal, cast

from cyclopts import Parameter

from bayeszoo import terminal
from bayeszoo.data import Data, example, read
from bayeszoo.errors import InputError
from bayeszoo.fields import hyperparameters
from bayeszoo.model import Model


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
        How many symbols before the next one matter.
    delimiter
        Character between cells.
    decimal
        Decimal mark.
    encoding
        Encoding of a text file.
    header
        Whether the first line names the columns.
    missing
        What to do with rows that lack a value.
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
    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool = True
    missing: Literal["refuse", "drop"] = "refuse"

    def read(self, model: type[Model], path: str | None, **more: Any) -> Data:
        """Read the user's table, or one of the model's own, and say what was done to it."""
        data = self._read(model, path, **more)
        for line in data.notes:
            terminal.note(f"note: {line}")
        return data

    def _read(self, model: type[Model], path: str | None, **more: Any) -> Data:
        if path is not None and self.example is not None:
            raise InputError("give DATA or --example, not both")
        default = TableOptions(example=self.example)
        given = {k: v for k, v in asdict(self).items() if k != "example" and v is not None}
        if path is not None:
            return read(model, path, **given, **more)
        if self != default:
            changed = next(k for k, v in asdict(self).items() if v != getattr(default, k))
            raise InputError(f"--{changed} goes with DATA")
        return example(model, self.example)


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
        names, given = [f.name for f in fields(cast(Any, model))], {}
        for item in self.sets or []:
            name, equals, value = item.partition("=")
            if not equals or name not in names:
                raise InputError(f"--set {item}: {model.name} has no such field", hint=f"it has {', '.join(names)}")
            if name in given:
                raise InputError(f"--set {item}: {name} is set twice")
            try:
                given[name] = json.loads(value)
            except (ValueError, RecursionError):  # not JSON; or too many digits, or too deep, for Python
                raise InputError(f"--set {item}: the value is not JSON", hint="write a=2 or alpha=[1,1]") from None
        return given


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

    def model(self, model: type[Model], data: Data) -> Model:
        """Make the model for the data."""
        given = self.fields(model)
        if self.prior == "textbook":
            return model(**given)
        made = cast(Model, replace(cast(Any, model.weak(data)), **given))
        scaled = getattr(model.weak, "__func__", None) is not getattr(Model.weak, "__func__", None)
        if scaled and not hyperparameters(model).keys() <= given.keys():
            terminal.note("priors are scaled to the data, and so is the log evidence")
        return made


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
        Warmup draws of each chain (nuts).
    target_accept
        Target acceptance statistic (nuts).
    sampler
        Which sampler (nuts).
    extend
        Whether to run longer when the gate fails (nuts, smc).
    density
        Which compiled density nutpie calls (nuts).
    threshold
        Effective share of particles that a tempering step keeps (smc).
    """

    draws: int | None = None
    chains: int | None = None
    tune: int | None = None
    target_accept: float | None = None
    sampler: Literal["nutpie", "pymc"] | None = None
    extend: bool | None = None
    density: Literal["auto", "shared", "nutpie"] | None = None
    threshold: float | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that were set."""
        return {name: value for name, value in asdict(self).items() if value is not None}
