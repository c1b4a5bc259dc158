"""Sequences and tables of transitions as codes: which symbol follows which context, once a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from bayeszoo.data.inputs.base import Arrays
from bayeszoo.data.inputs.labels import Alphabet, Coded, code, in_order, joined, label_array, merged
from bayeszoo.data.table.numbers import choose, complete, repeats, to_counts
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import Column, Table, listed, shown
from bayeszoo.errors import InputError

Coding = tuple[dict[str, np.ndarray], tuple[str, ...]]
"""Canonical arrays, and what is to be said about them."""


def table_of(source: Any, decimal: str, name: str = "symbol") -> Table | None:
    """Make a table with columns ``sequence`` and `name` from a list of sequences; None from anything else."""
    if not isinstance(source, list | tuple) or set(map(type, source)) <= {str, int, float}:
        return None  # the rest takes its time
    columns = [_cells(item) for item in source]
    items = [cells for cells in columns if cells is not None]
    if not items:
        return None
    if len(items) < len(columns):
        other = columns.index(None)
        raise InputError(f"item {other + 1} is a {type(source[other]).__name__}, the others are sequences")
    empty = sum(not item for item in items)
    notes = (f"{empty} empty sequence{'s' if empty > 1 else ''}",) if empty else ()
    names = np.repeat(np.arange(1, len(items) + 1), [len(item) for item in items])
    symbols = to_column(name, [symbol for item in items for symbol in item], decimal)
    return Table("", {"sequence": Column("sequence", names), name: symbols}, notes)


def _cells(item: Any) -> list[Any] | None:
    """Return the values of one sequence, which may be a series of a data frame; None of a single value."""
    if isinstance(item, list | tuple):
        return list(item)
    if isinstance(item, np.ndarray):
        return cast(list[Any], item.tolist()) if item.ndim else None
    return cast(list[Any], item.to_list()) if hasattr(item, "to_list") else None


def columns_in_order(table: Table, options: Mapping[str, Any], name: str) -> dict[str, Column]:
    """Find the column `name` of values in order, and that of sequences: one called ``sequence`` is never ignored."""
    named = "sequence" in table.columns and len(table.columns) > 1 and options.get("column") != "sequence"
    names = options.get("sequence", "sequence" if named else None)
    column = choose(table, options.get("column"), name, {} if names is None else {names: "their sequences"})
    return {name: column} | ({} if names is None else {"sequence": table[names]})


# Tables of transitions


def are_contexts(sources: list[str], targets: list[str]) -> bool:
    """Say whether the first labels of transitions are contexts of several symbols, not symbols themselves."""
    return not set(sources) & set(targets) and all(" " in label for label in sources)


def from_transitions(
    columns: dict[str, Column], missing: str, alphabet: Alphabet, order: int | None, like: Arrays | None
) -> Coding:
    """Code columns ``previous``, ``next`` and perhaps ``count`` of transitions."""
    first, second, shared = _both_ends(columns, alphabet, order, like)
    counts = [to_counts(columns["count"])] if "count" in columns else []
    values, dropped = complete(list(columns.values()), [first.codes, second.codes, *counts], missing)
    first, second = first._replace(codes=values[0]), second._replace(codes=values[1])
    if shared:
        where = f"columns {shown(columns['previous'].name)} and {shown(columns['next'].name)}"
        both, notes = alphabet.finished(where, Coded(first.labels, np.concatenate(values[:2])))
        first, second = (Coded(both.labels, codes) for codes in np.split(both.codes, 2))
    else:
        second, notes = alphabet.finished(str(columns["next"]), second)
        if like is None:
            first = first.trimmed()
            notes = (*notes, f"{columns['previous']}: contexts {joined(first.labels)}")
    arrays = _arrays(first, second)
    if counts:
        times = repeats(columns["count"], values[2])
        arrays = {**arrays, **{name: np.repeat(arrays[name], times) for name in ("next", "previous")}}
    return arrays, (*notes, *dropped)


def _both_ends(
    columns: dict[str, Column], alphabet: Alphabet, order: int | None, like: Arrays | None
) -> tuple[Coded, Coded, bool]:
    """Code both ends of transitions, and say whether they share one alphabet."""
    source, target = columns["previous"], columns["next"]
    if like is not None:
        return _contexts_of(like).coded(source), alphabet.coded(target), False
    first, second = code(source), code(target)
    if order > 1 if order is not None else are_contexts(first.labels, second.labels):
        return first, alphabet.coded(target), False
    if alphabet.labels is None:
        return *merged(first, second), True
    return alphabet.coded(source), alphabet.coded(target), True


def _contexts_of(like: Arrays) -> Alphabet:
    noun = "symbol" if set(like["context"].tolist()) <= set(like["symbol"].tolist()) else "context"
    return Alphabet.of(noun, f"{noun}s", None, like["context"])


def _arrays(contexts: Coded, symbols: Coded) -> dict[str, np.ndarray]:
    return {
        "next": symbols.codes.astype(np.int64),
        "previous": contexts.codes.astype(np.int64),
        "context": label_array(contexts.labels),
        "symbol": label_array(symbols.labels),
    }


# Symbols in order


def from_symbols(
    column: Column, sequence: Column | None, missing: str, alphabet: Alphabet, order: int, like: Arrays | None
) -> Coding:
    """Code one column of symbols, whose sequences another may name."""
    coded = alphabet.coded(column)
    _, dropped = complete([column], [coded.codes], missing)
    coded, notes = alphabet.finished(str(column), coded)
    if dropped:
        notes = (*notes, *dropped, "no transition leads across a dropped row")
    names = np.zeros(len(column)) if sequence is None else names_of(sequence)
    windows = _windows(coded.codes, names, order)
    notes = (*notes, *_about(sequence, names, windows.rows))
    if not len(windows.rows):
        raise column.error("holds no transition", hint=f"a sequence of more than {order} symbols is needed")
    following = Coded(coded.labels, windows.symbols[:, -1])
    if order == 1:
        if like is not None and like["context"].tolist() != coded.labels:
            raise InputError("the chain was fitted to contexts of several symbols", hint="leave the order out")
        contexts = Coded(coded.labels, windows.symbols[:, 0])
        return _arrays(contexts, following), notes
    contexts = _joined_contexts(column, windows, coded.labels, like)
    return _arrays(contexts, following), (*notes, f"{len(contexts.labels)} contexts of {order} symbols")


def names_of(sequence: Column) -> np.ndarray:
    """Code the names of sequences, which no row may lack."""
    codes = code(sequence).codes
    holes = np.flatnonzero(np.isnan(codes))
    if len(holes):  # to leave the row out would join its neighbours
        where, hint = (holes + 1).tolist(), "name its sequence, or take it out of the table"
        raise InputError(f"{sequence}: missing in {listed(holes)}", column=sequence.name, rows=where, hint=hint)
    return codes


class _Windows(NamedTuple):
    """The symbols of each transition, those of its context first; and the row of its last symbol."""

    symbols: np.ndarray
    rows: np.ndarray


def _windows(codes: np.ndarray, names: np.ndarray, order: int) -> _Windows:
    """Find the runs of ``order + 1`` symbols of one sequence; a missing symbol breaks it."""
    if len(codes) <= order:
        return _Windows(np.empty((0, order + 1), dtype=np.int64), np.empty(0, dtype=np.int64))
    place = np.argsort(names, kind="stable")
    codes, names = codes[place], names[place]
    whole = names[order:] == names[:-order]
    for back in range(order + 1):
        whole &= ~np.isnan(codes[order - back : len(codes) - back])
    ends = np.flatnonzero(whole) + order
    ends = ends[np.argsort(place[ends])]  # as in the table
    return _Windows(codes[ends[:, None] + np.arange(-order, 1)].astype(np.int64), place[ends])


def _about(sequence: Column | None, names: np.ndarray, rows: np.ndarray) -> tuple[str, ...]:
    """Say how many sequences there are, and how many are too short to tell anything."""
    if sequence is None:
        return ()
    every = len(np.unique(names))
    short = every - len(np.unique(names[rows]))
    note = f"{sequence} names {every} sequence{'s' if every > 1 else ''}"
    return (f"{note}, {short} of them too short for a transition" if short else note,)


def _joined_contexts(column: Column, windows: _Windows, labels: list[str], like: Arrays | None) -> Coded:
    """Code contexts of several symbols, whose labels are those of the symbols joined by a space."""
    spaced = next((label for label in labels if " " in label), None)
    if spaced is not None:
        hint = "write it without, or use --order 1"
        raise InputError(f"symbol {shown(spaced)} has a space, which joins the symbols of a context", hint=hint)
    key = windows.symbols[:, 0]
    for i in range(1, windows.symbols.shape[1] - 1):  # two at a time, so that the numbers stay small
        key = np.unique(key * len(labels) + windows.symbols[:, i], return_inverse=True)[1]
    _, first, key = np.unique(key, return_index=True, return_inverse=True)
    texts = [" ".join(labels[symbol] for symbol in windows.symbols[row, :-1]) for row in first]
    known = in_order(texts) if like is None else like["context"].tolist()
    place = {label: i for i, label in enumerate(known)}
    unknown = [i for i, text in enumerate(texts) if text not in place]
    if unknown:
        other = min(unknown, key=first.__getitem__)
        row = int(windows.rows[first[other]]) + 1
        message = f"{column}, row {row}: context {shown(texts[other])} is not among the {len(known)} of the fit"
        raise InputError(message, column=column.name, rows=[row], hint="leave it out, or fit again with it")
    return Coded(known, np.array([place[text] for text in texts], dtype=np.float64)[key])
