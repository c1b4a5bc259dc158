"""`Fit`, the view through which the library reads a fit's tree: parsed once, checked once, computed once."""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, cast

import lazy_loader
import numpy as np

from bayeszoo.data.inputs.base import KEPT
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation import check_names
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm, is_integrated
from bayeszoo.model.find import OwnFile, builtin_names, find_again
from bayeszoo.model.incomplete import INCOMPLETE, Incomplete
from bayeszoo.model.outer.integration import Integrated, integrate
from bayeszoo.model.outer.over import OVER
from bayeszoo.model.parts.accumulated import (
    Accumulated,
    digest_of,
    like_of,
    none_of_the_rows,
    rebuilt,
    rows_of,
    stats_of,
)
from bayeszoo.results.attributes import check_fit, check_groups, parse
from bayeszoo.results.own_groups import data_differ, groups_of_data, numbers_of_rows, put_back, require_data_of
from bayeszoo.results.support import check_reference_draws, check_support

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")


class _Attribute[T]:
    """An attribute of a fit, stored as JSON or as a plain value."""

    def __init__(self, is_json: bool = True) -> None:
        self._is_json = is_json

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, fit: Fit, owner: type | None = None) -> T:
        return cast(T, fit.parsed(self._name) if self._is_json else fit.tree.attrs[self._name])


_MEMORIES: dict[int, dict[str, tuple[Hashable, Any]]] = {}
"""Cache of each living tree by its `id`: for each name, the origin of a value and the value."""
INDEPENDENT = ("exact", "approximate")
"""The kinds of fits whose draws are independent, and not from chains."""
FITS = "fits"
"""The node of fits by group that holds the fit of each group."""


def is_by_group(tree: xr.DataTree) -> bool:
    """Say whether a tree is a result of `fit_by`, with a fit for each group."""
    return "by" in getattr(tree, "attrs", {}) and FITS in tree.children


def fits_of(tree: xr.DataTree) -> dict[str, Fit]:
    """Return the fit of each group by its name, in the order of the groups."""
    if not is_by_group(tree):
        hint = "fit again with --by COLUMN, or in Python by bz.fit_by"
        raise InputError(
            "this fit has no groups to compare, and no levels with one weight each", "no_groups", hint=hint
        )
    fits = {str(fit.attrs.get("group")): fit for fit in tree[FITS].children.values()}
    memory = _memory_of(tree)
    if "groups" not in memory:
        check_groups(tree, fits)
        memory["groups"] = None, parse("groups", tree.attrs["groups"])
    return {label: Fit(fits[label]) for label in memory["groups"][1]}


class Fit:
    """A view of a fit. All views of one tree share computed values; a view keeps its tree alive.

    A value is computed again when the attributes or arrays that it depends on are replaced. Data are checked against
    their digest when they are first read. Groups and variables that bayeszoo did not write are ignored.
    """

    def __init__(self, tree: xr.DataTree) -> None:
        if is_by_group(tree):
            hint = f"take the fit of one: tree['{FITS}'][{next(iter(tree[FITS].children))!r}]"
            raise InputError(
                f"a fit is needed, and these are fits by {tree.attrs['by']!r}", "one_group_only", hint=hint
            )
        if "bayeszoo_format" not in getattr(tree, "attrs", {}):
            raise InputError(f"a fit is needed, got {type(tree).__name__}", "not_a_fit", hint="give a result of bz.fit")
        self.tree = tree
        self._memory = _memory_of(tree)
        if "checked" not in self._memory:
            check_fit(tree)
            self._memory["groups_of_data"] = None, groups_of_data(tree)
            check_reference_draws(tree)
            if "model_file" not in tree.attrs and tree.attrs["model"].removeprefix(OVER) in builtin_names():
                _ = self.model  # checks the draws
            self._memory["checked"] = None, True

    @classmethod
    def assembled(cls, tree: xr.DataTree, **values: object) -> Fit:
        """Keep the ``model``, ``observed``, ``stats`` and ``posterior`` that a tree was just made of; check nothing."""
        _memory_of(tree).update(checked=(None, True), groups_of_data=(None, groups_of_data(tree)))
        fit = cls(tree)
        of_model, of_arrays = fit._origin_of_model(), fit._origin_of_arrays()
        fit._memory.update({name: (of_model if name == "model" else of_arrays, v) for name, v in values.items()})
        return fit

    def _kept(self, name: str, origin: Hashable, compute: Callable[[], object]) -> Any:
        """Return the cached value from the same origin, or compute it."""
        if name not in self._memory or self._memory[name][0] != origin:
            self._memory[name] = (origin, compute())
        return self._memory[name][1]

    def once(self, name: str, of: xr.Variable, compute: Callable[[], object]) -> Any:
        """Return the cached value of a name that depends on one variable of the tree, or compute it."""
        return self._kept(name, _Identity(of), compute)

    def parsed(self, name: str) -> Any:
        """Return the value of an attribute that is stored as JSON; mappings are read-only, as all views share them."""
        text = self.tree.attrs[name]
        value = self._kept(name, text, lambda: parse(name, text))
        return MappingProxyType(value) if isinstance(value, dict) else value

    # Attributes

    kind = _Attribute[str](is_json=False)  # "exact", "sampled", "approximate" or "point estimate"
    method = _Attribute[str](is_json=False)
    data_digest = _Attribute[str](is_json=False)
    data_source = _Attribute[str](is_json=False)
    fields = _Attribute[Mapping[str, Any]]()  # of the model, as plain values
    options = _Attribute[Mapping[str, Any]]()  # of the method
    versions = _Attribute[Mapping[str, str]]()  # of Python and of the packages that the fit was made with
    seconds = _Attribute[Mapping[str, float]]()  # by phase
    gate = _Attribute[Mapping[str, Any]]()  # ``{"passed": ..., "verdict": ..., "checks": ...}``
    facts = _Attribute[Mapping[str, Any]]()  # about the fit as a whole: ``log_evidence``, ``elbo``, ``k_hat``, ...
    notes = _Attribute[list[str]]()  # changes to the data, and remarks on them
    columns = _Attribute[Mapping[str, str]]()  # the user's column for each role

    @property
    def status(self) -> str:
        """The verdict of the gate, "ok", "caution" or "failed"; or "interrupted"."""
        status = str(self.tree.attrs["status"])
        return "failed" if status == "not converged" else status  # older files have two verdicts

    @property
    def is_shown(self) -> bool:
        """Whether the numbers are shown: status ok, or caution with its warnings."""
        return self.status in ("ok", "caution")

    @property
    def has_independent_draws(self) -> bool:
        """Whether the draws are independent, and not from chains."""
        return self.kind in INDEPENDENT

    @property
    def checks(self) -> Mapping[str, dict[str, Any]]:
        """The checks of the gate by code, each with ``verdict``, ``passed``, ``value``, ``limit`` and ``caveat``."""
        pairs = [(check_names.code(name), check) for name, check in self.gate["checks"].items()]
        return {
            code: {"verdict": "ok" if check["passed"] else "failed", "caveat": "", **check} for code, check in pairs
        }

    @property
    def failed(self) -> list[str]:
        """The names of the checks that did not pass."""
        return [name for name, check in self.checks.items() if not check["passed"]]

    @property
    def reading(self) -> Mapping[str, Any] | None:
        """How the data were read, as `Data.reading`; None for fits saved by versions that did not keep it."""
        return cast(Mapping[str, Any], self.parsed("reading")) if "reading" in self.tree.attrs else None

    def fact(self, name: str) -> float | None:
        """Return a fact as a number, or None if the method does not give it."""
        value = self.facts.get(name)
        return float(value) if isinstance(value, int | float | str) else None

    # Model and data

    def _origin_of_model(self) -> tuple[Hashable, ...]:
        return self.tree.attrs["model"], self.tree.attrs["fields"], self.tree.attrs.get("model_file")

    @property
    def model(self) -> Model:
        """The model, with its hyperparameters."""
        return cast(Model, self._kept("model", self._origin_of_model(), self._model_again))

    def _model_again(self) -> Model:
        kind = self._kind()
        try:
            model = kind(**self.fields)
        except TypeError:  # a field is missing or unknown
            raise InputError(
                f"the fields of the fit are not those of {kind.name}", "fields_differ", hint="fit again"
            ) from None
        check_support(self.tree, model)
        return model

    def _kind(self) -> type[Model]:
        """Return the class of the model, which may be in a file that the user has named."""
        return find_again(str(self.tree.attrs["model"]), self.own_file)

    @property
    def own_file(self) -> OwnFile | None:
        """The file of the model, if it is the user's."""
        return OwnFile(**self.parsed("model_file")) if "model_file" in self.tree.attrs else None

    @property
    def observed(self) -> Data | Accumulated:
        """The data, or their statistics; `InputError` if they do not match the stored digest."""
        others = {"statistics": self._accumulated, INCOMPLETE: self._incomplete}
        compute = others.get(str(self.tree.attrs.get("data_from")), self._rows)
        return cast(Data | Accumulated, self._kept("observed", self._origin_of_arrays(), compute))

    @property
    def data(self) -> Data:
        """The data rows; `InputError` if they do not match the stored digest, or were not kept."""
        return rows_of(self.observed)

    @property
    def like(self) -> Data:
        """The data; where only statistics were kept, data without rows with the same names, types and labels."""
        return like_of(self.observed)

    @property
    def stats(self) -> Any:
        """The model's sufficient statistics of the data."""
        return self._kept("stats", self._origin_of_arrays(), lambda: stats_of(self.model, self.observed))

    @property
    def posterior(self) -> Mapping[str, Any] | None:
        """The closed-form posterior by parameter and derived quantity; None if the model has none."""
        kept = self._kept("posterior", self._origin_of_arrays(), self._closed_form)
        return cast(Mapping[str, Any] | None, kept)

    def _closed_form(self) -> dict[str, Any] | None:
        if self.tree.attrs.get("data_from") == INCOMPLETE:
            return None
        if isinstance(self.model, ClosedForm):
            with suppress(NumericalError):
                return {**self.model.posterior(self.stats), **self.model.derived_marginals(self.stats)}
        if is_integrated(type(self.model)):
            with suppress(NumericalError):
                return dict(self.integrated.posterior)
        return None

    @property
    def integrated(self) -> Integrated:
        """The quadrature of a model whose exact posterior is by quadrature; `NumericalError` if it does not exist."""
        origin = self._origin_of_arrays()
        return cast(Integrated, self._kept("integrated", origin, lambda: integrate(self.model, self.data)))

    def _origin_of_arrays(self) -> Hashable:
        """Return the attributes and arrays that the data are read from."""
        groups = [self.tree[name] for name in ("observed_data", "constant_data", "statistics") if name in self]
        arrays = tuple(_Identity(variable) for group in groups for variable in group.variables.values())
        names = ("data_digest", "statistics_digest", "data_arrays", "columns", "reading")
        return (*self._origin_of_model(), *(self.tree.attrs.get(name) for name in names), arrays)

    def _rows(self) -> Data:
        data = self._stored_rows()
        require_data_of(self.model, data)
        return data

    def _incomplete(self) -> Incomplete:
        data = self._stored_rows()
        filled = {name: np.nan_to_num(values) if values.dtype.kind == "f" else values for name, values in data.items()}
        require_data_of(self.model, Data(filled))
        return Incomplete.of(self.model, data)

    def _stored_rows(self) -> Data:
        if {*(self.parsed("data_names") if "data_names" in self.tree.attrs else ())} - {*self._stored_arrays()}:
            put_back(self.tree, self._memory["groups_of_data"][1])
        data = Data(
            self._stored_arrays(),
            source=self.tree.attrs["data_source"],
            columns=self.columns,
            notes=tuple(self.notes),
            checked_for=(self.model.inputs, False),  # `fit` checked them, and the digest proves that they are the same
            reading=self.reading or {},
            row_numbers=numbers_of_rows(groups_of_data(self.tree)),
        )
        if data.digest != self.tree.attrs["data_digest"]:
            raise data_differ([name for name in self.parsed("data_names") or () if name not in data])
        return data

    @property
    def holds_its_data(self) -> bool:
        """Whether the stored rows match the stored digest; statistics are checked when they are used."""
        of_rows = self.tree.attrs.get("data_from") != "statistics"
        return not of_rows or Data(self._stored_arrays()).digest == self.tree.attrs["data_digest"]

    def _stored_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the data, without variables that other tools have added to their groups."""
        groups = groups_of_data(self.tree).values()
        arrays = {str(name): values.to_numpy() for group in groups for name, values in group.data_vars.items()}
        arrays |= {str(name): v.to_numpy().astype(str) for group in groups for name, v in group.coords.items()}
        names = self.parsed("data_names") if "data_names" in self.tree.attrs else list(arrays)
        return {name: arrays[name] for name in names if name in arrays}

    def _accumulated(self) -> Accumulated:
        attrs, group = self.tree.attrs, self.tree["statistics"].data_vars if "statistics" in self else {}
        details: dict[str, Any] = {"source": attrs["data_source"], "columns": self.columns, "notes": tuple(self.notes)}
        kept = {name: value for name, value in (self.reading or {}).items() if name in KEPT}
        like = none_of_the_rows(self.parsed("data_arrays"), **details, reading=kept)
        stats = rebuilt(self.model, like, {str(name): values.to_numpy() for name, values in group.items()})
        if digest_of(stats) != attrs["statistics_digest"]:
            line = "the statistics stored with the fit are not those that it was made from"
            raise InputError(line, "statistics_differ", hint="fit again")
        rows, reading = int(attrs["data_rows"]), self.reading or {}
        return Accumulated(self.model, stats, like, rows, attrs["data_digest"], reading=reading, **details)

    # Draws

    def __contains__(self, group: str) -> bool:
        """Say whether the tree has a group."""
        return group in self.tree.children

    def draws(self, group: str = "posterior") -> dict[str, np.ndarray]:
        """Return the draws of each variable of a group, shape (chain, draw, ...); empty if there is no group."""
        if group not in self:
            return {}
        variables = {str(name): values for name, values in self.tree[group].data_vars.items()}
        drawn = {name: values for name, values in variables.items() if {"chain", "draw"} <= {*values.dims}}
        arrays = {name: values.transpose("chain", "draw", ...).to_numpy() for name, values in drawn.items()}
        if group == "posterior" and "observed_data" in self:  # its labels give the lengths of the axes
            self._require_axes(arrays)
        return _Draws(arrays)

    def _require_axes(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse draws without the axes of the model's parameters, as in a changed file."""
        sizes = {axis: len(labels) for axis, labels in self.model.coords(self.like).items()}
        for name, axes in self.model.dims.items():
            expected = tuple(sizes.get(axis, -1) for axis in axes)
            if name in arrays and -1 not in expected and arrays[name].shape[2:] != expected:
                actual, needed = (" x ".join(map(str, shape)) or "one" for shape in (arrays[name].shape[2:], expected))
                line = f"a draw of {name} has {actual} entries, and the data and the model ask for {needed}"
                raise InputError(line, "not_writable", hint="fit again, or ask who made the file")

    def pooled(self, group: str = "posterior") -> dict[str, np.ndarray]:
        """Return the draws of all chains, one chain after the other, shape (draws, ...)."""
        return _Draws({name: values.reshape(-1, *values.shape[2:]) for name, values in self.draws(group).items()})


class _Draws(dict[str, np.ndarray]):
    """Draws by name; another tool may have removed some."""

    def __missing__(self, name: str) -> NoReturn:
        raise InputError(f"the fit has no draws of {name}", "no_draws", hint="fit again, or take all of its variables")


class _Identity:
    """An array of a tree, equal only to itself as long as its values are not replaced."""

    def __init__(self, variable: xr.Variable) -> None:
        self.variable, self.values = variable, variable if isinstance(variable, xr.IndexVariable) else variable.data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.variable is other.variable and self.values is other.values

    def __hash__(self) -> int:
        return id(self.variable)


def _memory_of(tree: xr.DataTree) -> dict[str, tuple[Hashable, Any]]:
    """Return the cache of a tree, which lives as long as the tree; a tree cannot be a dictionary key."""
    if id(tree) not in _MEMORIES:
        _MEMORIES[id(tree)] = {}
        weakref.finalize(tree, _MEMORIES.pop, id(tree), None)
    return _MEMORIES[id(tree)]


def dumps(value: object) -> str:
    """Return JSON, with null or a word for non-finite numbers, which JSON lacks."""
    return json.dumps(_finite(value))


def _finite(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
