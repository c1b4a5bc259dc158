"""Checks of the attributes of a fit from a file of unknown origin, so that later code can trust them.

A digest shows accidents, not forgery, so that a file may contain anything. All of it is data: nothing in a file is run
or opened; names are looked up only in the zoo, and only formulas are evaluated, after their own check.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bayeszoo.data.table.table import shown
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

type Schema = Any
"""A type; a tuple of words, of which the value is one; a pattern of the whole text; a list of the schema of its items;
a mapping of a schema of keys to one of values; a mapping of names to schemas, where "?" marks optional names;
or a function that says whether a value is valid."""

LARGEST = 2**23
"""Most characters of an attribute: ten times the labels of a hundred thousand columns or groups."""
_LONGEST_LINE, _LONGEST_COMMAND = 10_000, 100_000
_MOST_DIGITS = 2**63
_DEEPEST = 12
_LABEL, _DIGEST = re.compile(f"(?s:.{{0,{_LONGEST_LINE}}})"), re.compile("[0-9a-f]{64}")
KINDS = ("exact", "sampled", "approximate", "point estimate")
VERDICTS = ("ok", "caution", "failed")
STATUSES = (*VERDICTS, "interrupted", "not converged")


def _fits(schema: Schema, value: Any) -> bool:
    """Say whether a value is valid under a `Schema`."""
    match schema:
        case type():
            return isinstance(value, schema)
        case tuple():
            return isinstance(value, str) and value in schema
        case re.Pattern():
            return isinstance(value, str) and schema.fullmatch(value) is not None
        case list():
            return isinstance(value, list) and all(_fits(schema[0], entry) for entry in value)
        case dict():
            return isinstance(value, dict) and _fits_mapping(schema, value)
    return bool(schema(value))


def _fits_mapping(schema: dict[Any, Schema], value: dict[Any, Any]) -> bool:
    if isinstance(next(iter(schema)), str):
        names = {key.removesuffix("?"): key for key in schema}
        return all(_fits(schema[key], value[name]) if name in value else key != name for name, key in names.items())
    ((of_keys, of_values),) = schema.items()
    return all(_fits(of_keys, key) and _fits(of_values, entry) for key, entry in value.items())


def _json(schema: Schema) -> Schema:
    """Return the schema of text that is the JSON of a value."""
    return lambda text: _fits(schema, _loaded(text))


def _is_line(value: object) -> bool:
    """Say whether a value is one line of printable text, without control characters for a terminal."""
    return isinstance(value, str) and len(value) <= _LONGEST_LINE and value.isprintable()


def _is_file_name(value: object) -> bool:
    """Say whether a value is a file name on one line, where lone surrogates stand for bytes that are not UTF-8."""
    return isinstance(value, str) and _is_line(re.sub("[\udc80-\udcff]", "", value))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier() and len(value) <= 200


def _is_whole(value: Any) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and bool(0 <= value < _MOST_DIGITS)


def _is_float(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Say whether a value is a finite number."""
    return _is_float(value) and bool(abs(value) <= sys.float_info.max)


def _is_figure(value: object) -> bool:
    """Say whether a value is a number as `dumps` writes it, with a word or null for non-finite ones."""
    return value is None or value in ("inf", "-inf") or _is_number(value)


def _is_plain(value: object, depth: int = _DEEPEST) -> bool:
    """Say whether a JSON value is not too deep and has no whole numbers with too many digits."""
    if isinstance(value, list | dict):
        items = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        return depth > 0 and all(_is_plain(item, depth - 1) for item in items)
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _is_command(value: object) -> bool:
    """Say whether a text is the words of a command, which pages show for typing it again."""
    try:
        words = shlex.split(value) if isinstance(value, str) and len(value) <= _LONGEST_COMMAND else []
        return bool(words) and words[0].replace("-", "").isalpha()
    except ValueError:
        return False


def _is_check(value: Any) -> bool:
    schema = {"passed": bool, "value": _is_figure, "limit": _LABEL, "verdict?": VERDICTS, "caveat?": _LABEL}
    if not _fits(schema, value):
        return False
    worst = "ok" if value["passed"] else "caution" if value.get("caveat") else "failed"
    return value.get("verdict", worst) == worst


def _is_gate(value: Any) -> bool:
    """Say whether a gate is complete, and its verdict that of its checks."""
    if not _fits({"checks": {_LABEL: _is_check}, "verdict?": VERDICTS}, value):
        return False
    verdicts = {"ok" if check["passed"] else check.get("verdict", "failed") for check in value["checks"].values()}
    worst = max(verdicts or {"failed"}, key=VERDICTS.index)
    return value.get("verdict", worst) == worst and value.get("passed", worst == "ok") is (worst == "ok")


def _each(names: str, schema: Schema) -> dict[str, Schema]:
    return dict.fromkeys(names.split(), schema)


_FACTS = {
    **_each("log_evidence? log_evidence_mcse? elbo? elbo_se? importance_evidence? importance_evidence_se?", _is_figure),
    **_each("k_hat? mean_gap? sd_ratio_least? sd_ratio_most? quantile_gap? live_probability? live_mcse?", _is_figure),
    **_each("log_likelihood? log_joint? highest_degenerate?", _is_figure),
    **_each("restarts? abandoned? given_up? reached_the_best? degenerate? thin? live?", _is_whole),
    **_each("components_withheld? derived_withheld? k_hat_withheld? draws_withheld? live_withheld?", _LABEL),
    **_each("measured_against? mode_space? estimate? labelled? numbered_as? degenerate_because?", _LABEL),
    **_each("withheld? parameters_withheld?", [str]),
    **_each("maxima? label_stability?", [_is_figure]),
}
_TOGETHER = {
    "restarts": ("maxima", "reached_the_best"),
    "elbo": ("elbo_se", "k_hat"),
    "live": ("live_probability",),
    "mean_gap": ("sd_ratio_least", "sd_ratio_most"),
    "highest_degenerate": ("degenerate", "degenerate_because"),
}
"""Facts that come with other facts."""


def _are_facts(value: object) -> bool:
    return _fits({_LABEL: _is_plain}, value) and _fits(_FACTS, value)


def _is_object(value: object) -> bool:
    return isinstance(value, dict) and _is_plain(value)


_CODING = {
    "features": [str],
    "interactions": [_is_plain],
    "formula?": str,
    "state?": _is_object,
    "categories?": {str: [_is_plain]},
    **_each("levels terms? variables?", {str: [str]}),
}
"""The coding of features; its formula is checked when it is read."""


def _is_coding(value: Any) -> bool:
    return _fits(_CODING, value) and value.keys() <= {name.removesuffix("?") for name in _CODING}


_READING = {
    "from?": ("example", "file", "memory"),
    "options?": {_is_name: _is_plain},
    "inputs?": str,
    "rows?": _is_whole,
    "outcomes?": lambda value: _fits([str], value) and len(value) == 2,
    "scales?": {str: lambda value: _is_number(value) and value > 0},
    "coding?": _is_coding,
    "times?": {"column": str, "values": [str]},
    "sequences?": [str],
    **_each("files? lags?", _is_plain),
}


def _is_reading(value: object) -> bool:
    is_plain = {_is_line: lambda item: _is_plain(item, 2 * _DEEPEST)}
    return value is None or (_fits(is_plain, value) and _fits(_READING, value))


_ARRAYS = (
    {"labels": [str]},
    {"type": re.compile(r"[<>|=]?[biufU]\d{1,5}"), "shape": [lambda size: _is_whole(size) and size < LARGEST]},
)
"""Arrays without rows: labels, or type and shape."""


def _is_array_of_rows(value: object) -> bool:
    return any(_fits(schema, value) for schema in _ARRAYS)


_FIT = {
    **_each("model method sampler data_source created_at declared_from prior?", _is_line),
    **_each("data_rows seed", _is_whole),
    **_each("data_digest statistics_digest?", _DIGEST),
    **_each("by? group?", _LABEL),
    "kind": KINDS,
    "status": STATUSES,
    "data_from?": ("rows", "statistics", "incomplete rows"),
    "command?": _is_command,
    **_each("fields options", _json({_is_name: _is_plain})),
    "versions": _json({_is_line: _is_line}),
    "seconds": _json({_is_line: lambda value: _is_number(value) and value >= 0}),
    "gate": _json(_is_gate),
    "facts": _json(_are_facts),
    **_each("notes data_names?", _json([str])),
    "columns": _json({str: str}),
    "reading?": _json(_is_reading),
    "data_arrays?": _json({str: _is_array_of_rows}),
    "model_file?": _json({"file": _is_file_name, "kind": _is_name, "digest": _DIGEST}),
}
_GROUPS = {
    **_each("model method", _is_line),
    "kind": KINDS,
    "seed": _is_whole,
    "by": _LABEL,
    "groups": _json([str]),
    "command?": _is_command,
}


def parse(name: str, text: str) -> Any:
    """Return the value of an attribute that is stored as JSON."""
    if (value := _loaded(text)) is _NO_JSON:
        raise _wrong(name, text)
    return value


_NO_JSON = object()


def _loaded(text: object) -> Any:
    """Return the value of a JSON text, or `_NO_JSON`."""
    if not isinstance(text, str) or len(text) > LARGEST:
        return _NO_JSON
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _NO_JSON


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _wrong(name: str, value: object) -> InputError:
    problem = f"the fit's attribute {shown(name)} is damaged: {shown(value)}"
    return InputError(problem, "damaged_fit", hint="fit again, or ask who made the file")


def check_fit(tree: xr.DataTree) -> None:
    """Refuse a tree without the attributes of a fit, or with draws that are not numeric."""
    attrs = tree.attrs
    _check(attrs, _FIT)
    if attrs.get("data_from") == "statistics":
        _check(attrs, {"statistics_digest": _DIGEST, "data_arrays": str})
    if "exact" in tree.children:
        _check(tree["exact"].attrs, {"log_evidence": _is_float, "log_evidence_counts?": _is_float})
    for group in {"exact", "reference"} & tree.children.keys():
        _check_statistics(tree, group)
    for group in {"posterior_predictive", "prior_predictive"} & tree.children.keys():
        _check_replicates(tree, group)
    if attrs["status"] in ("ok", "caution"):
        _check_draws(tree)


def check_agreement(tree: xr.DataTree) -> None:
    """Refuse a fit from a file whose status is better than its gate, or that lacks facts which come with others."""
    facts, status = parse("facts", tree.attrs["facts"]), tree.attrs["status"]
    verdict = parse("gate", tree.attrs["gate"]).get("verdict", VERDICTS[0])
    if status in VERDICTS[: VERDICTS.index(verdict)]:
        raise _wrong("status", status)
    if not all({*others} <= facts.keys() for name, others in _TOGETHER.items() if name in facts):
        raise _wrong("facts", tree.attrs["facts"])


def _check_draws(tree: xr.DataTree) -> None:
    """Refuse a fit that is shown without draws, or with NaN draws, which no gate lets through."""
    variables = tree["posterior"].data_vars if "posterior" in tree.children else {}
    draws = {name: values for name, values in variables.items() if {"chain", "draw"} <= {*values.dims}}
    if not any(values.size for values in draws.values()):
        raise InputError("the fit has no draws", "no_draws", hint="fit again, or ask who made the file")
    for name, values in draws.items():
        if values.dtype.kind not in "iuf" or (values.dtype.kind == "f" and np.isnan(values.to_numpy()).any()):
            problem = f"the draws of {shown(str(name))} in the fit are not all numbers"
            raise InputError(problem, "damaged_fit", hint="fit again, or ask who made the file")


def _check_statistics(tree: xr.DataTree, group: str) -> None:
    """Refuse means, sds and quantiles whose names or shapes are not those of the draws."""
    statistics = tree[group].to_dataset()
    labels = statistics.coords.get("statistic")
    names = [] if labels is None or labels.dims != ("statistic",) else labels.to_numpy().tolist()
    if statistics.data_vars and names != ["mean", "sd", *QUANTILES]:
        raise _not_of(group)
    for draws in (tree[name].data_vars for name in ("posterior", "derived") if name in tree.children):
        for name, values in statistics.data_vars.items():
            is_along = values.dims[:1] == ("statistic",) and values.dtype.kind == "f"
            if name in draws and not (is_along and values.shape[1:] == draws[name].shape[2:]):
                raise _not_of(group)


def _check_replicates(tree: xr.DataTree, group: str) -> None:
    """Refuse replicates whose axes are not those of the outcomes, or that have no chains."""
    outcomes = tree["observed_data"].data_vars if "observed_data" in tree.children else {}
    replicates = tree[group].data_vars
    matches = ({*v.dims} == {"chain", "draw", *outcomes[k].dims} for k, v in replicates.items() if k in outcomes)
    labels = (tree[group].variables[dim].dims == (dim,) for dim in ("chain", "draw") if dim in tree[group].variables)
    if not (all(labels) and all(matches)):
        raise _not_of(group)


def _not_of(group: str) -> InputError:
    return InputError(
        f"the group {group!r} is not that of the fit", "group_differs", hint="fit again, or ask who made the file"
    )


def check_groups(tree: xr.DataTree, labels: Mapping[str, object]) -> None:
    """Refuse fits by group whose attributes do not match the ``labels`` of the fits."""
    _check(tree.attrs, _GROUPS)
    listed = parse("groups", tree.attrs["groups"])
    if sorted(listed) != sorted(labels) or len({*listed}) != len(listed):
        raise _wrong("groups", tree.attrs["groups"])


def _check(attrs: Mapping[object, object], schema: Mapping[str, Schema]) -> None:
    """Refuse attributes that are missing or invalid."""
    for key, of_value in schema.items():
        name = key.removesuffix("?")
        if name not in attrs and key == name:
            raise InputError(
                f"the fit has no attribute {name!r}", "unknown_name", hint="fit again, or ask who made the file"
            )
        if name in attrs and not _fits(of_value, _plain(attrs[name])):
            raise _wrong(name, attrs[name])


def _plain(value: object) -> Any:
    """Return a Python number for a NumPy number, which files have."""
    return value.item() if isinstance(value, np.generic) else value
