"""Checks of the attributes of a fit from a file of unknown origin, so that later code can trust them.

A digest shows accidents, not forgery, so that a file may contain anything. All of it is data: nothing in a file is run
or opened; names are looked up only in the zoo, and only formulas are evaluated, after their own check.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bayeszoo.data.table.table import shown
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

type Check = Callable[[Any], bool]

LARGEST = 2**23
"""Most characters of an attribute: ten times the labels of a hundred thousand columns or groups."""
_LONGEST_LINE, _LONGEST_COMMAND = 10_000, 100_000
_MOST_DIGITS = 2**63
_DEEPEST = 12
KINDS = ("exact", "sampled", "approximate", "point estimate")
VERDICTS = ("ok", "caution", "failed")
STATUSES = (*VERDICTS, "interrupted", "not converged")
_NO_NUMBERS = (None, "inf", "-inf")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_line(value: object) -> bool:
    """Say whether a value is one line of printable text, without control characters for a terminal."""
    return isinstance(value, str) and len(value) <= _LONGEST_LINE and value.isprintable()


def _is_file_name(value: object) -> bool:
    """Say whether a value is a file name on one line, where lone surrogates stand for bytes that are not UTF-8."""
    return isinstance(value, str) and _is_line(re.sub("[\udc80-\udcff]", "", value))


def _is_label(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_LINE


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier() and len(value) <= 200


def _is_whole(value: int) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and bool(0 <= value < _MOST_DIGITS)


def _is_number(value: Any) -> bool:
    """Say whether a value is a finite number."""
    return _is_float(value) and bool(abs(value) <= sys.float_info.max)


def _is_figure(value: object) -> bool:
    """Say whether a value is a number as `dumps` writes it, with a word or null for non-finite ones."""
    return _is_number(value) or (not isinstance(value, list | dict) and value in _NO_NUMBERS)


def _is_float(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_plain(value: object, depth: int = _DEEPEST) -> bool:
    """Say whether a JSON value is not too deep and has no whole numbers with too many digits."""
    if isinstance(value, list | dict):
        items = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        return depth > 0 and all(_is_plain(item, depth - 1) for item in items)
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _is_one_of(values: Iterable[str], value: object) -> bool:
    return isinstance(value, str) and value in values


def _list_of(check: Check, value: object) -> bool:
    return isinstance(value, list) and all(map(check, value))


def _mapping_of(check_key: Check, check: Check, value: object) -> bool:
    return isinstance(value, dict) and all(map(check_key, value)) and all(map(check, value.values()))


def _has(required: Mapping[str, Check], optional: Mapping[str, Check], value: object) -> bool:
    """Say whether a mapping has all required keys, and valid values."""
    return (
        isinstance(value, dict)
        and required.keys() <= value.keys()
        and all(check(value[name]) for name, check in {**required, **optional}.items() if name in value)
    )


_texts, _lines, _figures = partial(_list_of, _is_text), partial(_list_of, _is_line), partial(_list_of, _is_figure)
_arguments = partial(_mapping_of, _is_name, _is_plain)


def _is_check(value: Any) -> bool:
    required: dict[str, Check] = {
        "passed": lambda passed: isinstance(passed, bool),
        "value": _is_figure,
        "limit": _is_label,
    }
    verdict = partial(_is_one_of, VERDICTS)
    if not _has(required, {"verdict": verdict, "caveat": _is_label}, value):
        return False
    worst = "ok" if value["passed"] else "caution" if value.get("caveat") else "failed"
    return value.get("verdict", worst) == worst


def _is_gate(value: Any) -> bool:
    """Say whether a gate is complete, and its verdict that of its checks."""
    checks = partial(_mapping_of, _is_label, _is_check)
    if not _has({"checks": checks}, {"verdict": partial(_is_one_of, VERDICTS)}, value):
        return False
    verdicts = {"ok" if check["passed"] else check.get("verdict", "failed") for check in value["checks"].values()}
    worst = max(verdicts or {"failed"}, key=VERDICTS.index)
    return value.get("verdict", worst) == worst and value.get("passed", worst == "ok") is (worst == "ok")


_FACTS: dict[str, Check] = {
    **dict.fromkeys(
        [
            "log_evidence",
            "log_evidence_mcse",
            "elbo",
            "elbo_se",
            "importance_evidence",
            "importance_evidence_se",
            "k_hat",
            "mean_gap",
            "sd_ratio_least",
            "sd_ratio_most",
            "quantile_gap",
            "live_probability",
            "live_mcse",
        ],
        _is_figure,
    ),
    **dict.fromkeys(["log_likelihood", "log_joint", "highest_degenerate"], _is_figure),
    **dict.fromkeys(["restarts", "abandoned", "given_up", "reached_the_best", "degenerate", "thin", "live"], _is_whole),
    **dict.fromkeys(
        ["components_withheld", "derived_withheld", "k_hat_withheld", "draws_withheld", "live_withheld"], _is_label
    ),
    "measured_against": _is_label,
    **dict.fromkeys(["withheld", "parameters_withheld"], _texts),
    **dict.fromkeys(["mode_space", "estimate", "labelled", "numbered_as", "degenerate_because"], _is_label),
    **dict.fromkeys(["maxima", "label_stability"], _figures),
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
    return _mapping_of(_is_label, _is_plain, value) and _has({}, _FACTS, value)


def _is_coding(value: Any) -> bool:
    """Say whether a mapping describes the coding of features; the formula is checked when it is read."""
    levels = partial(_mapping_of, _is_text, _texts)
    required: dict[str, Check] = {
        "features": _texts,
        "levels": levels,
        "interactions": lambda interactions: _list_of(_is_plain, interactions),
    }
    of_formula: dict[str, Check] = {
        "formula": _is_text,
        "state": lambda state: isinstance(state, dict) and _is_plain(state),
    }
    of_formula |= {"categories": partial(_mapping_of, _is_text, partial(_list_of, _is_plain))}
    of_formula |= {"terms": levels, "variables": levels}
    return _has(required, of_formula, value) and value.keys() <= required.keys() | of_formula.keys()


def _is_times(value: object) -> bool:
    return _has({"column": _is_text, "values": _texts}, {}, value)


_READING: dict[str, Check] = {
    "from": partial(_is_one_of, ("example", "file", "memory")),
    "options": _arguments,
    "inputs": _is_text,
    "rows": _is_whole,
    "files": _is_plain,
    "outcomes": lambda value: _texts(value) and len(value) == 2,
    "scales": partial(_mapping_of, _is_text, lambda value: _is_number(value) and value > 0),
    "coding": _is_coding,
    "lags": _is_plain,
    "times": _is_times,
    "sequences": _texts,
}


def _is_reading(value: object) -> bool:
    return value is None or (
        _mapping_of(_is_line, lambda item: _is_plain(item, 2 * _DEEPEST), value) and _has({}, _READING, value)
    )


def _is_command(value: str) -> bool:
    """Say whether a text is the words of a command, which pages show for typing it again."""
    try:
        words = shlex.split(value) if _is_text(value) and len(value) <= _LONGEST_COMMAND else []
        return bool(words) and words[0].replace("-", "").isalpha()
    except ValueError:
        return False


def _is_array_of_rows(value: object) -> bool:
    """Say whether a mapping describes an array without rows: its labels, or its type and shape."""
    if _has({"labels": _texts}, {}, value):
        return True
    sizes = partial(_list_of, lambda size: _is_whole(size) and size < LARGEST)
    return _has(
        {"type": lambda code: re.fullmatch(r"[<>|=]?[biufU]\d{1,5}", str(code)) is not None, "shape": sizes}, {}, value
    )


_PLAIN: dict[str, Check] = {
    "model": _is_line,
    "method": _is_line,
    "kind": partial(_is_one_of, KINDS),
    "sampler": _is_line,
    "status": partial(_is_one_of, STATUSES),
    "data_digest": _is_digest,
    "data_source": _is_line,
    "data_rows": _is_whole,
    "seed": _is_whole,
    "created_at": _is_line,
    "declared_from": _is_line,
}
_PLAIN_IF_ANY: dict[str, Check] = {
    "data_from": partial(_is_one_of, ("rows", "statistics", "incomplete rows")),
    "statistics_digest": _is_digest,
    "command": _is_command,
    "prior": _is_line,
    "by": _is_label,
    "group": _is_label,
}
_JSON: dict[str, Check] = {
    "fields": _arguments,
    "options": _arguments,
    "versions": partial(_mapping_of, _is_line, _is_line),
    "seconds": partial(_mapping_of, _is_line, lambda value: _is_number(value) and value >= 0),
    "gate": _is_gate,
    "facts": _are_facts,
    "notes": _texts,
    "columns": partial(_mapping_of, _is_text, _is_text),
}
_JSON_IF_ANY: dict[str, Check] = {
    "reading": _is_reading,
    "data_names": _texts,
    "data_arrays": partial(_mapping_of, _is_text, _is_array_of_rows),
    "model_file": partial(_has, {"file": _is_file_name, "kind": _is_name, "digest": _is_digest}, {}),
}
_OF_GROUPS: dict[str, Check] = {
    "model": _is_line,
    "method": _is_line,
    "kind": partial(_is_one_of, KINDS),
    "seed": _is_whole,
    "by": _is_label,
}


def parse(name: str, text: str) -> Any:
    """Return the value of an attribute that is stored as JSON."""
    if not isinstance(text, str) or len(text) > LARGEST:
        raise _wrong(name, text)
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise _wrong(name, text) from None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _wrong(name: str, value: object) -> InputError:
    problem = f"the fit's attribute {shown(name)} is damaged: {shown(value)}"
    return InputError(problem, "damaged_fit", hint="fit again, or ask who made the file")


def check_fit(tree: xr.DataTree) -> None:
    """Refuse a tree without the attributes of a fit, or with draws that are not numeric."""
    attrs, reads = tree.attrs, {**_JSON, **_JSON_IF_ANY}
    _check(attrs, {**_PLAIN, **dict.fromkeys(_JSON, _is_text)}, _PLAIN_IF_ANY)
    for name in [name for name in reads if name in attrs]:
        if not reads[name](parse(name, attrs[name])):
            raise _wrong(name, attrs[name])
    if attrs.get("data_from") == "statistics":
        _check(attrs, {"statistics_digest": _is_digest, "data_arrays": _is_text}, {})
    if "exact" in tree.children:
        _check(tree["exact"].attrs, {"log_evidence": _is_float}, {"log_evidence_counts": _is_float})
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
    _check(tree.attrs, {**_OF_GROUPS, "groups": _is_text}, {"command": _is_command})
    listed = parse("groups", tree.attrs["groups"])
    if not (_texts(listed) and sorted(listed) == sorted(labels) and len({*listed}) == len(listed)):
        raise _wrong("groups", tree.attrs["groups"])


def _check(attrs: Mapping[object, object], required: Mapping[str, Check], optional: Mapping[str, Check]) -> None:
    for name, check in {**required, **optional}.items():
        if name not in attrs and name in required:
            raise InputError(
                f"the fit has no attribute {name!r}", "unknown_name", hint="fit again, or ask who made the file"
            )
        if name in attrs and not check(_plain(attrs[name])):
            raise _wrong(name, attrs[name])


def _plain(value: object) -> Any:
    """Return a Python number for a NumPy number, which files have."""
    return value.item() if isinstance(value, np.generic) else value
