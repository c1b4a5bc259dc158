"""Sequences of symbols as transitions: one row per pair of a context and the symbol that follows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Parsed, distinct_pairs, every_code
from bayeszoo.data.inputs.labels import (
    Alphabet,
    Coded,
    checked_codes,
    checked_labels,
    code,
    in_order,
    joined,
    label_array,
)
from bayeszoo.data.inputs.sequences.series import columns_in_order, names_of, table_of
from bayeszoo.data.table.table import Column, Table, complete, repeats, shown, to_counts
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

_PAIRS = ("from", "to"), ("source", "target")

MOST_PROBABILITIES = 10**8
"""Entries of a matrix of transitions: 0.8 GB."""

Coding = tuple[dict[str, np.ndarray], tuple[str, ...]]
"""Canonical arrays, and notes."""


@dataclass(frozen=True)
class Transitions(Inputs):
    """Transitions in sequences of symbols, one per row.

    The table holds one column of symbols in order, perhaps with a column ``sequence`` that names the sequence each row
    belongs to; or one transition a row, in columns ``from`` and ``to`` (or ``source`` and ``target``), perhaps with a
    column ``count``. A Python list of lists holds one sequence in each.

    The canonical arrays are the codes ``next`` and ``previous`` and the coordinates ``symbol`` and ``context``: their
    labels. In a chain of the first order both hold the same labels. With ``order`` above 1 a context is the last
    symbols joined by spaces. A table of transitions has contexts of its own when ``order`` is above 1, or when no
    label is in both columns and all those in the first are of several words; otherwise both columns share one alphabet.
    """

    options = frozenset({"column", "sequence", "source", "target", "count", "symbols", "order"})
    lists = frozenset({"symbols"})

    holds = (
        "one column of symbols in order, perhaps with a column that names sequences (--sequence), "
        "or columns from and to of transitions, perhaps with a column count"
    )
    layout = Layout(
        coords=("context", "symbol"),
        coded={"next": "symbol", "previous": "context"},
        forms=({"next", "previous", "context", "symbol"},),
    )

    is_in_order = True

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a list of sequences."""
        return table_of(source, decimal)

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        _refuse_mixture(options)
        alphabet = Alphabet.of("symbol", "symbols", options.get("symbols"), None if like is None else like["symbol"])
        order = _order(options.get("order"), like)
        ends = _ends(table, options)
        if ends:
            columns = {role: table[name] for role, name in ends.items()}
            arrays, notes = from_transitions(columns, missing, alphabet, order, like)
        else:
            columns = columns_in_order(table, options, "symbol")
            arrays, notes = from_symbols(
                columns["symbol"], columns.get("sequence"), missing, alphabet, order or 1, like
            )
        _refuse_large(arrays)
        return Parsed(arrays, {role: column.name for role, column in columns.items()}, notes)

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        labels = {name: checked_labels(name, arrays[name], least=2 if name == "symbol" else 1) for name in self.coords}
        _refuse_large(labels)
        checked = {name: checked_codes(name, arrays[name], labels[axis]) for name, axis in self.coded.items()}
        columns = Table("", {name: column for name, (column, _) in checked.items()}).columns
        codes, dropped = complete(list(columns.values()), [converted for _, converted in checked.values()], missing)
        converted = dict(zip(checked, (values.astype(np.int64) for values in codes), strict=True))
        return Parsed({**converted, **labels}, {}, dropped)

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return one transition a row."""
        return {"from": arrays["context"][arrays["previous"]], "to": arrays["symbol"][arrays["next"]]}

    def reading(self, arrays: Arrays) -> Options:
        """Return options that list the symbols, unless they are the occurring ones; other contexts are lost."""
        contexts, symbols = arrays["context"].tolist(), arrays["symbol"].tolist()
        table = self.table(arrays)
        sources, targets = table["from"].tolist(), table["to"].tolist()
        has_contexts = set(contexts) != set(symbols)
        occur = in_order(set(targets) if has_contexts else {*sources, *targets})
        options: dict[str, Any] = {} if symbols == occur else {"symbols": symbols}
        if has_contexts and not are_contexts(sources, targets):
            options["order"] = max(2, len(contexts[0].split(" ")))
        return options

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Yield every sequence of four steps from the first symbol, or fewer with many symbols.

        If contexts are not symbols, each of the first few contexts is followed by every symbol.
        """
        symbols = np.array(["a", "b", "c"]) if arrays is None else arrays["symbol"]
        contexts = symbols if arrays is None else arrays["context"]
        path = np.array_equal(contexts, symbols)
        for steps in every_code(len(symbols)):
            previous = np.append(0, steps[:-1]) if path else np.arange(len(steps)) % len(contexts)
            yield {"next": steps, "previous": previous, "context": contexts, "symbol": symbols}

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Refuse further rows, as a symbol depends on the one before it."""
        raise InputError(
            "the next symbol depends on the one before it", "row_order_matters", hint="give a table of symbols"
        )

    def outcome(self, arrays: Arrays) -> np.ndarray:
        """Return the code of the next symbol of each transition, shape (rows,)."""
        return arrays["next"]

    def has_outcome(self, arrays: Arrays) -> bool:
        """Say that rows hold their outcome."""
        return True

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the distinct transitions, and their counts."""
        previous, following, times = distinct_pairs(arrays["previous"], arrays["next"])
        return {**arrays, "next": following, "previous": previous}, times


def _refuse_large(labels: Mapping[str, np.ndarray]) -> None:
    """Refuse symbols and contexts whose transition matrix would be too large."""
    contexts, symbols = len(labels["context"]), len(labels["symbol"])
    if contexts * symbols > MOST_PROBABILITIES:
        size = f"{8 * contexts * symbols / 1e9:.1f} GB, and several are needed"
        problem = f"{contexts:,} contexts and {symbols:,} symbols have a matrix of transitions of {size}"
        raise InputError(problem, "bad_transitions", hint="join rare symbols into one")


def _order(text: str | None, like: Arrays | None) -> int | None:
    """Return the number of symbols of a context, from the option or the fit, else None."""
    if text is not None:
        if not text.isascii() or not text.isdigit() or int(text[:9]) < 1:
            raise InputError(f"order must be a whole number >= 1, got {shown(text)}", "wrong_type")
        return int(text[:9])
    if like is None:
        return None
    contexts = like["context"].tolist()
    return 1 if set(contexts) <= set(like["symbol"].tolist()) else max(2, len(contexts[0].split(" ")))


def _refuse_mixture(options: Options) -> None:
    ends, symbols = sorted(options.keys() & {"source", "target"}), sorted(options.keys() & {"column", "sequence"})
    if len(ends) == 1:
        raise InputError("source and target go together", "options_go_together")
    if symbols and (ends or "count" in options):
        raise InputError(
            "a column of symbols and a table of transitions do not mix",
            "conflicting_options",
            hint=f"leave out {symbols[0]}",
        )


def _ends(table: Table, options: Options) -> dict[str, str]:
    """Return the columns of transitions by role; empty if the table has symbols in order."""
    if options.keys() & {"column", "sequence"}:
        return {}
    pairs = [pair for pair in _PAIRS if set(pair) <= table.columns.keys()]
    if "source" in options:
        pairs = [(options["source"], options["target"])]
    if len(pairs) > 1:
        raise InputError(
            "the table has columns from, to, source and target",
            "conflicting_options",
            hint="name them with --source and --target",
        )
    if not pairs:
        if "count" in options:
            raise InputError(
                "count goes with source and target", "options_go_together", hint="say which columns these are"
            )
        if half := [pair for pair in _PAIRS if list(table.columns) == [pair[0]]]:  # probably not symbols in order
            problem = f"there is a column {shown(half[0][0])} but no column {shown(half[0][1])}"
            raise InputError(problem, "bad_transitions", hint="use --column for symbols")
        return {}
    count = options.get("count", "count" if "count" in table.columns and "count" not in pairs[0] else None)
    names = {"previous": pairs[0][0], "next": pairs[0][1]} | ({} if count is None else {"count": count})
    if len(set(names.values())) < len(names):
        raise InputError("source, target and count must be different columns", "duplicate_name")
    return names


# Tables of transitions


def are_contexts(sources: list[str], targets: list[str]) -> bool:
    """Return whether the sources of transitions are contexts of several symbols, and not symbols."""
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
        joint, notes = alphabet.finished(where, Coded(first.labels, np.concatenate(values[:2])))
        first, second = (Coded(joint.labels, codes) for codes in np.split(joint.codes, 2))
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
    """Return both ends of transitions as codes, and whether they share one alphabet."""
    source, target = columns["previous"], columns["next"]
    if like is not None:
        return _contexts_of(like).coded(source), alphabet.coded(target), False
    first, second = code(source), code(target)
    if order > 1 if order is not None else are_contexts(first.labels, second.labels):
        return first, alphabet.coded(target), False
    if alphabet.labels is None:
        labels = in_order({*first.labels, *second.labels})
        return first.among(labels), second.among(labels), True
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
    windows, rows = _windows(coded.codes, names, order)
    notes = (*notes, *_about(sequence, names, rows))
    if not len(rows):
        raise column.error("holds no transition", "no_data", hint=f"a sequence of more than {order} symbols is needed")
    following = Coded(coded.labels, windows[:, -1])
    if order == 1:
        if like is not None and like["context"].tolist() != coded.labels:
            raise InputError(
                "the chain was fitted to contexts of several symbols", "row_order_matters", hint="leave the order out"
            )
        return _arrays(Coded(coded.labels, windows[:, 0]), following), notes
    contexts = _joined_contexts(column, windows, rows, coded.labels, like)
    return _arrays(contexts, following), (*notes, f"{len(contexts.labels)} contexts of {order} symbols")


def _windows(codes: np.ndarray, names: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the runs of ``order + 1`` symbols of one sequence, none missing, and the row where each ends."""
    if len(codes) <= order:
        return np.empty((0, order + 1), dtype=np.int64), np.empty(0, dtype=np.int64)
    place = np.argsort(names, kind="stable")
    codes, names = codes[place], names[place]
    holes = np.isnan(np.lib.stride_tricks.sliding_window_view(codes, order + 1)).any(axis=1)
    ends = np.flatnonzero((names[order:] == names[:-order]) & ~holes) + order
    ends = ends[np.argsort(place[ends])]  # as in the table
    return codes[ends[:, None] + np.arange(-order, 1)].astype(np.int64), place[ends]


def _about(sequence: Column | None, names: np.ndarray, rows: np.ndarray) -> tuple[str, ...]:
    """Return a note on the number of sequences, and of those too short for a transition."""
    if sequence is None:
        return ()
    count = len(np.unique(names))
    short = count - len(np.unique(names[rows]))
    note = f"{sequence} names {count} sequence{'s' if count > 1 else ''}"
    return (f"{note}, {short} of them too short for a transition" if short else note,)


def _joined_contexts(
    column: Column, windows: np.ndarray, rows: np.ndarray, labels: list[str], like: Arrays | None
) -> Coded:
    """Code contexts of several symbols; their labels are the symbols, joined by a space."""
    spaced = next((label for label in labels if " " in label), None)
    if spaced is not None:
        hint = "write it without, or use --order 1"
        raise InputError(
            f"symbol {shown(spaced)} has a space, which joins the symbols of a context", "space_in_symbol", hint=hint
        )
    texts = [""] * len(column)  # at the rows where contexts end, which messages name
    for row, window in zip(rows.tolist(), windows[:, :-1].tolist(), strict=True):
        texts[row] = " ".join(labels[symbol] for symbol in window)
    contexts = Column(column.name, texts)
    coded = code(contexts) if like is None else _contexts_of(like).coded(contexts)
    return coded._replace(codes=coded.codes[rows])
