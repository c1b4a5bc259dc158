"""Groups of options that several commands share."""

from __future__ import annotations

import json
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from bayeszoo.cli import terminal
from bayeszoo.data.by import FORM as FORM
from bayeszoo.data.read import Data, example, read
from bayeszoo.errors import InputError
from bayeszoo.families.linear.weight_priors import weight_priors
from bayeszoo.fit import METHODS
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model, chosen_by_data
from bayeszoo.model.capabilities import Conditional, Sufficient
from bayeszoo.model.incomplete import Incomplete, read_incomplete
from bayeszoo.model.many_files import cluster
from bayeszoo.model.many_files.accumulate import accumulate
from bayeszoo.model.many_files.files import paths_of
from bayeszoo.model.many_files.read_files import read_files
from bayeszoo.model.many_files.rows import additive
from bayeszoo.model.outer.over import over
from bayeszoo.model.outer.over_fields import OverFields
from bayeszoo.model.parts.accumulated import Accumulated
from bayeszoo.model.parts.chunks import ROWS, first_chunk


def _help(text: str) -> Parameter:
    return Parameter(help=text)


AtLeast1 = Annotated[int, Parameter(validator=Number(gte=1))]
Flag = Annotated[bool, Parameter(negative=())]
Every = Annotated[bool, Parameter(name="--all", negative=())]
if TYPE_CHECKING:
    type _Model = str
    type _Method = str
    type _File = str
else:  # tab completion offers these; other values are accepted too
    _Model, _Method, _File = Literal[*zoo.builtin_names()] | str, Literal[*METHODS] | str, str | Path

ModelName = Annotated[_Model, Parameter(help="The model; see `bayeszoo list`.", show_choices=False)]
Method = Annotated[_Method, Parameter(show_choices=False, metavar="METHOD")]
DataFile = Annotated[_File | None, _help("CSV, TSV or Parquet file; by default the model's example data.")]
TableFile = Annotated[_File, _help("CSV, TSV or Parquet file.")]
NewFile = Annotated[_File | None, Parameter()]
FitFile = Annotated[Path, _help("A fit saved with -o; FILE.nc:GROUP is one group of a file of fits by group.")]
Json = Annotated[bool, Parameter(name="--json", negative=(), help="One JSON document on stdout, and nothing else.")]
Output = Annotated[Path | None, Parameter(name=("--output", "-o"))]
RowsFile = Annotated[
    Output,
    _help("Write all rows in full precision here (.parquet, else CSV, where formulas get an apostrophe in front)."),
]
Digits = Annotated[
    AtLeast1 | None,
    _help(
        "Significant digits of estimates, decimals of evidences; by default as many as the Monte Carlo errors support."
    ),
]
By = Annotated[str | None, _help("Column of groups: each group of rows is treated separately, under one prior.")]
Overwrite = Annotated[bool, Parameter(negative=(), help="Replace existing files.")]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lt=2**63))]
DrawnSeed = Annotated[Seed | None, _help("Seed of all random numbers; by default one is drawn and printed.")]
Candidates = Annotated[
    list[_Model],
    Parameter(name=("--candidate", "-c"), negative=(), consume_multiple=False, show_choices=False, metavar="CANDIDATE"),
]


@Parameter(name="*")
@dataclass(frozen=True)
class TableOptions:
    """How to read the user's table."""

    example: Annotated[str | None, _help("Without DATA: name of one of the model's example data sets.")] = None
    column: Annotated[str | None, _help("Column to use.")] = None
    positive: Annotated[str | None, _help("Label that counts as success.")] = None
    count: Annotated[str | None, _help("Column of counts: how often each label occurs.")] = None
    successes: Annotated[str | None, _help("Column of successes; goes with --trials.")] = None
    trials: Annotated[str | None, _help("Column of trials; goes with --successes.")] = None
    columns: Annotated[str | None, _help("Comma-separated columns to use.")] = None
    scale: Annotated[
        bool | None, Parameter(negative=(), help="Divide each column by its standard deviation (ppca, bayesian_pca).")
    ] = None
    categories: Annotated[str | None, _help("Comma-separated categories, in order.")] = None
    classes: Annotated[
        str | None, _help("Comma-separated classes of the outcome, in order; the first is the reference.")
    ] = None
    se: Annotated[str | None, _help("Column of the standard error of each value.")] = None
    exposure: Annotated[str | None, _help("Column of exposures: time or amount that each row was observed.")] = None
    group: Annotated[str | None, _help("Column that names the groups of a hierarchical model, all in one fit.")] = None
    sequence: Annotated[str | None, _help("Column that names the sequence of each row.")] = None
    time: Annotated[str | None, _help("Column of times, which must rise by equal steps in each sequence.")] = None
    source: Annotated[str | None, _help("Column of the symbol that a transition starts from; goes with --target.")] = (
        None
    )
    target: Annotated[
        str | None,
        Parameter(
            name=("--target", "--class"),
            help="Column of the outcome of a regression, of the class, or of the symbol a transition ends in.",
        ),
    ] = None
    features: Annotated[str | None, _help("Comma-separated feature columns; by default all other columns.")] = None
    lags: Annotated[str | None, _help("Number K of lags: outcomes of the K rows before are features.")] = None
    levels: Annotated[
        list[str] | None,
        Parameter(
            negative=(),
            consume_multiple=False,
            help="Levels of a feature, the reference first: colour=red,blue. For models of mixed features also "
            "the name alone of a column whose numbers are levels.",
        ),
    ] = None
    counts: Annotated[str | None, _help("Comma-separated feature columns that hold counts.")] = None
    reals: Annotated[str | None, _help("Comma-separated feature columns that hold real numbers.")] = None
    interactions: Annotated[str | None, _help("Comma-separated products of features: age:sex,age:colour.")] = None
    formula: Annotated[str | None, _help("Outcome and terms of a regression, as formulaic reads them: 'y ~ a*b'.")] = (
        None
    )
    symbols: Annotated[str | None, _help("Comma-separated symbols, in order.")] = None
    order: Annotated[int | None, _help("Number of preceding symbols on which the next one depends.")] = None
    text: Annotated[str | None, _help("Column of raw text, one document a row.")] = None
    document: Annotated[str | None, _help("Column of the names of documents.")] = None
    word: Annotated[str | None, _help("Column of words; goes with --document and, optionally, --count.")] = None
    length: Annotated[str | None, _help("Column of lengths of documents; by default the number of words.")] = None
    item: Annotated[str | None, _help("Column of the items that are rated.")] = None
    rater: Annotated[str | None, _help("Column of raters.")] = None
    label: Annotated[str | None, _help("Column of the label that the rater gives, or of a node of a graph.")] = None
    node: Annotated[str | None, _help("Column of the nodes of a graph.")] = None
    neighbour: Annotated[str | None, _help("Column of the node at the other end of an edge.")] = None
    weight: Annotated[str | None, _help("Column of weights of edges.")] = None
    raters: Annotated[str | None, _help("Comma-separated raters, in order.")] = None
    stop_words: Annotated[str | None, _help("Words to leave out of the text; the only list is english.")] = None
    min_documents: Annotated[int | None, _help("Leave out words in fewer documents.")] = None
    max_share: Annotated[float | None, _help("Leave out words in a larger share of the documents.")] = None
    vocabulary: Annotated[str | None, _help("Comma-separated words, in order; other words are left out.")] = None
    delimiter: Annotated[str | None, _help("Character between cells.")] = None
    decimal: Annotated[str, _help("Decimal mark.")] = "."
    encoding: Annotated[str, _help("Encoding of a text file.")] = "utf-8"
    header: Annotated[bool, _help("Whether the first line names the columns.")] = True
    missing: Annotated[
        Literal["refuse", "drop", "mask", "impute"],
        _help("Missing values: refused, rows dropped, masked (unknown), or, by fit, drawn in features (impute)."),
    ] = "refuse"

    def read(self, model: type[Model], path: str | None, **more: Any) -> Data:
        """Read the user's table, or an example of the model, and print the notes about it."""
        if path is not None:
            return _noted(read(model, path, **self.of_reading(), **more))
        default = TableOptions(example=self.example, scale=self.scale)
        if self != default:
            changed = next(k for k, v in asdict(self).items() if v != getattr(default, k))
            raise InputError(f"--{changed} goes with DATA", "option_needs_data")
        return _noted(example(model, self.example, scale=self.scale))

    def read_incomplete(self, model: type[Model], path: str | None) -> Incomplete:
        """Read the user's table, whose features may have empty cells, and print the notes about it."""
        if path is None:
            raise InputError("--missing goes with DATA", "option_needs_data")
        options = {name: value for name, value in self.of_reading().items() if name != "missing"}
        incomplete = read_incomplete(model, path, **options)
        _noted(incomplete)
        return incomplete

    def of_reading(self) -> dict[str, Any]:
        """Return the options for reading the user's table."""
        if self.example is not None:
            raise InputError("give DATA or --example, not both", "conflicting_options")
        return {k: v for k, v in asdict(self).items() if v is not None}

    def read_in_chunks(
        self,
        model: type[Model],
        prior: PriorOptions,
        path: str | None,
        rows: int | None,
        reporter: Reporter,
        address: str | None,
        cluster_lasts: ExitStack,
    ) -> tuple[Model, Accumulated]:
        """Add up the statistics of the user's table for a model whose prior is scaled to its first rows.

        Rows of a model whose E-steps add up over files stay on the cluster, until ``cluster_lasts`` is closed.
        """
        if path is None or self.example is not None:
            option = "--chunk-rows" if address is None else "--dask"
            raise InputError(f"{option} goes with DATA, and without --example", "option_needs_data")
        if address is not None and not issubclass(model, Sufficient):
            additive(model())
            if rows is not None:
                raise InputError(
                    f"--chunk-rows keeps no rows, and {model.name} needs them", "needs_rows", hint="leave it out"
                )
            client = cluster_lasts.enter_context(cluster.connected(address))
            return self._read_files(model, prior, path, client, reporter)
        paths, rows = paths_of(path) or [path], rows or ROWS
        if self.scale:
            reporter.phase("reading all rows for the standard deviations")
        first, which = first_chunk(model, paths[0], rows, **self.of_reading())
        which += f" of {first.source}" * (len(paths) > 1)
        prior_model = prior.model(model, first, which)
        with cluster.connected(address) if address is not None else nullcontext() as client:
            how = {"client": client, "reporter": reporter, **self.of_reading()}
            total = _noted(accumulate(prior_model, path, rows, **how))
        return prior_model, prior.noted(prior_model, total, which)

    def _read_files(
        self, model: type[Model], prior: PriorOptions, path: str, client: object, reporter: Reporter
    ) -> tuple[Model, Accumulated]:
        """Let a cluster read the user's tables, and keep their rows."""
        rows = read_files(model, path, client=client, reporter=reporter, **self.of_reading())
        _noted(rows)
        prior_model = prior.model(model, rows.sample, rows.which)
        return prior_model, prior.noted(prior_model, rows, rows.which)


def _noted[T: (Data, Accumulated)](data: T) -> T:
    """Print the notes about the data."""
    terminal.notes(data.notes)
    return data


@Parameter(name="*")
@dataclass(frozen=True)
class FieldOptions:
    """The fields of the model."""

    sets: Annotated[
        list[str] | None,
        Parameter("--set", negative=(), consume_multiple=False, help="FIELD=JSON: a field of the model; repeated."),
    ] = None

    def fields(self, model: type[Model]) -> dict[str, Any]:
        """Parse the fields that were set."""
        defaults, chosen = {f.name: f.default for f in fields(cast(Any, model))}, {}
        for item in self.sets or []:
            name, equals, value = item.partition("=")
            if not equals or name not in defaults:
                raise InputError(
                    f"--set {item}: {model.name} has no such field",
                    "unknown_field",
                    hint=f"it has {', '.join(defaults)}",
                )
            if name in chosen:
                raise InputError(f"--set {item}: {name} is set twice", "conflicting_options")
            try:
                chosen[name] = _from_json(value)
            except (ValueError, RecursionError):  # not JSON; or too many digits, or too deep, for Python
                if not isinstance(defaults[name], str):
                    raise InputError(
                        f"--set {item}: the value is not JSON", "wrong_type", hint="write a=0.5 or alpha=[1,1]"
                    ) from None
                chosen[name] = value  # text needs no quotes
        return chosen


def _from_json(text: str) -> Any:
    """Read JSON; the numbers of a list need no brackets: ``850,1100``."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(f"[{text}]")


_WEIGHT = "w["
"""First characters of the prior of a weight, which are followed by the name of its term."""


@Parameter(name="*")
@dataclass(frozen=True)
class PriorOptions(FieldOptions):
    """The prior."""

    priors: Annotated[
        list[str] | None,
        Parameter(
            "--prior",
            negative=(),
            consume_multiple=False,
            help="Prior of the fields that are not set: weak (scaled to the data) or textbook. Prior of an outer "
            "parameter, or by fit of a field that becomes a parameter: 'tau=HalfNormal(10)'; or of a weight of a "
            "regression: 'w[age]=Normal(0,2)'; repeated.",
        ),
    ] = None

    @property
    def prior(self) -> str:
        """Where fields that are not set come from: ``weak``, scaled to the data, or ``textbook``."""
        chosen = [item for item in self.priors or [] if "=" not in item]
        for item in chosen:
            if item not in ("weak", "textbook"):
                raise InputError(
                    f'Invalid value "{item}" for --prior.',
                    "unknown_prior",
                    hint="weak, textbook, or tau=HalfNormal(10)",
                )
        return chosen[-1] if chosen else "weak"

    @property
    def laws(self) -> dict[str, str]:
        """The priors of parameters, or of fields that become parameters, by name."""
        items = [item for item in self.priors or [] if "=" in item and not item.startswith(_WEIGHT)]
        return {name.strip(): law for name, law in (item.split("=", 1) for item in items)}

    def fields(self, model: type[Model]) -> dict[str, Any]:
        """Parse the fields that were set, and the priors."""
        if self.laws and not issubclass(model, Conditional):
            (name, law), *_ = self.laws.items()
            hint = "use --set; `bayeszoo fit` takes priors of fields"
            raise InputError(
                f"--prior {name}={law}: {model.name} has no outer parameters", "no_outer_parameters", hint=hint
            )
        return {**super().fields(model), **({"priors": self.laws} if self.laws else {})}

    def over(self, model: type[Model], data: Data) -> Model:
        """Make the model for the data, in which fields with a prior of their own are parameters."""
        if not self.laws or issubclass(model, Conditional):
            return self.model(model, data)
        others = [item for item in self.priors or [] if "=" not in item or item.startswith(_WEIGHT)]
        return over(replace(self, priors=others).model(model, data), self.laws)

    def model(self, model: type[Model], data: Data, source: str = "the data") -> Model:
        """Make the model for the data, or for a file whose first rows they are; notes name these rows as ``source``."""
        chosen = self.fields(model)
        if not _is_noted(data):
            note_unchecked(model)
        declared = model(**chosen) if self.prior == "textbook" else weak(model, chosen, data, source)
        parts = [item.partition("]=") for item in self.priors or [] if item.startswith(_WEIGHT)]
        weights = {f"{name}]": law for name, _, law in parts}
        return weight_priors(declared, data, weights) if weights else declared

    def noted[T: (Data, Accumulated)](self, model: Model, data: T, source: str = "the data") -> T:
        """Add the note that priors are scaled to the data, where they are."""
        own = model.base if isinstance(model, OverFields) else model
        is_scaled = self.prior == "weak" and chosen_by_data(own, FieldOptions.fields(self, type(own)))
        return replace(data, notes=(*data.notes, f"priors are scaled to {source}")) if is_scaled else data


@dataclass(frozen=True, eq=False)
class RowsOfGroup(Data):
    """The rows of one group of a table; the ``whole`` table scales the prior, and only the first group prints notes."""

    whole: Data = field(kw_only=True)
    is_first: bool = field(kw_only=True)


def _is_noted(data: Data) -> bool:
    """Return whether the notes about the whole table were printed with its first group."""
    return isinstance(data, RowsOfGroup) and not data.is_first


def note_unchecked(kind: type[Model]) -> None:
    """Print the note that fits do not check all closed forms of a model in a user's own file."""
    if zoo.own_file(kind) and issubclass(kind, Sufficient):
        terminal.note(f"note: no fit checks all closed forms of {kind.name}; `bayeszoo check` does")


def weak(kind: type[Model], chosen: dict[str, Any], data: Data, source: str = "the data", named: bool = False) -> Model:
    """Make a model with some fields set, and note that others are scaled to the data; if `named`, name the model."""
    model = kind.weak_with(data.whole if isinstance(data, RowsOfGroup) else data, chosen)
    if chosen_by_data(model, chosen) and not _is_noted(data):
        subject = f"{model}: the prior is" if named else "priors are"
        terminal.note(f"{subject} scaled to {source}, and so is the log evidence")
    return model


@Parameter(name="*")
@dataclass(frozen=True)
class MethodOptions:
    """Options of the method."""

    draws: Annotated[int | None, _help("Draws of each chain.")] = None
    chains: Annotated[int | None, _help("Chains.")] = None
    tune: Annotated[int | None, _help("Warmup draws of each chain (nuts), or sweeps before the first (gibbs).")] = None
    target_accept: Annotated[float | None, _help("Target acceptance statistic (nuts).")] = None
    sampler: Annotated[Literal["nutpie", "pymc"] | None, _help("Which sampler (nuts).")] = None
    extend: Annotated[bool | None, _help("Whether to run longer when the gate fails (nuts, gibbs, smc).")] = None
    tables: Annotated[int | None, _help("Completed tables of --missing impute: 400 (exact), or 100.")] = None
    threshold: Annotated[float | None, _help("Effective share of particles that a tempering step keeps (smc).")] = None
    thin: Annotated[int | None, _help("Sweeps between the draws of a chain (gibbs).")] = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that were set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


TABLE, FIELDS, PRIOR, METHOD = TableOptions(), FieldOptions(), PriorOptions(), MethodOptions()
"""Options with their defaults."""
