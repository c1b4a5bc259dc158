"""The public `read_files`: files that are read once and kept where they were read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayeszoo.data.inputs import Inputs, Series, starts
from bayeszoo.data.inputs.base import KEPT
from bayeszoo.data.inputs.labels import label_array
from bayeszoo.data.inputs.sequences.series import SEQUENCE
from bayeszoo.data.inputs.words.cells import DOCUMENT
from bayeszoo.data.read import Data, reading_of
from bayeszoo.data.table.table import escaped, shown
from bayeszoo.errors import InputError
from bayeszoo.foundation.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.many_files.files import paths_of, said_of_files
from bayeszoo.model.many_files.held import About, held_rows
from bayeszoo.model.many_files.rows import FileRows, Held, additive

SAMPLE = 10_000
"""Rows that climbs start from, and by which maxima are told apart."""

_OF_ALL_ROWS = ("scale", "min_documents", "max_share", "lags")
"""Options that look at all rows together."""


def read_files(
    model: Model | type[Model],
    source: str | os.PathLike[str],
    /,
    *,
    client: object = None,
    reporter: Reporter | None = None,
    **options: object,
) -> FileRows:
    """Read many files as one table for EM and variational Bayes, and keep each where it was read.

    Steps that need rows go to the files; what they give is added up in the order of the files' names. So the fit does
    not depend on how the rows are divided into files, but for rounding. Climbs start from a sample of all rows.

    Parameters
    ----------
    model : Model or class
        Must be `Additive`, as mixtures, hidden Markov models and lda are.
    source : path
        A file, or a pattern of files, such as ``"folder/*.parquet"``. Their columns and labels must be the same, and
        each sequence or document whole in one of them.
    client : dask.distributed.Client, optional
        A Dask cluster, whose workers read the files from where this machine sees them too, and keep the rows. The file
        of a worker that ends is read again by another.
    reporter : Reporter, optional
        Takes how many files are read; silent by default.
    **options
        Of `read`.

    Returns
    -------
    FileRows
        To be given to `fit` in place of data, with the methods "em", "vb", "map" and "mle".

    Raises
    ------
    InputError
        When E-steps of the model do not add up, no file is named so, or a file cannot be used, naming it.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> rows = bz.read_files(bz.find("gaussian_mixture"), "sales/*.parquet", client=client)  # doctest: +SKIP
    >>> tree = bz.fit(bz.find("gaussian_mixture"), rows, "em")  # doctest: +SKIP
    """
    instance = model() if isinstance(model, type) else model
    if not isinstance(instance, Model):
        raise InputError(f"a model is needed, got {type(instance).__name__}", "not_a_model", hint="write bz.find(name)")
    additive(instance)
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"files are named by a path or a pattern, got {type(source).__name__}", "wrong_type", hint="use bz.read"
        )
    if asked := [name for name in _OF_ALL_ROWS if str(options.get(name)) not in ("None", "False")]:
        raise InputError(f"--{asked[0]} needs all rows together", "needs_rows", hint="leave it out")
    paths = paths_of(source) or [os.path.abspath(source)]
    held, abouts = held_rows(instance, paths, options, client, reporter or Reporter())
    return _together(instance, source, held, abouts, options)


def _together(
    model: Model, source: str | os.PathLike[str], held: Held, abouts: Sequence[About], options: Mapping[str, object]
) -> FileRows:
    """Check that the files are parts of one table, and describe it."""
    inputs, first = model.inputs, abouts[0]
    for other in abouts[1:]:
        _refuse_other_columns(inputs, first.like, other.like)
    _refuse_cut(inputs, abouts)
    like = replace(first.like, arrays={**first.like, **_names_of_rows(inputs, abouts)})
    drawn, ends = _drawn(abouts), np.cumsum([part.rows for part in abouts])
    sample, rows, count = _sample(model, like, held, abouts, drawn), int(ends[-1]), len(abouts)
    where = f"{rows} rows in {count} file{'s' * (count > 1)}, each kept where it was read"
    if sample.rows < rows:
        where += f"; climbs start from a sample of {sample.rows}"
    name = escaped(os.path.basename(source))
    digest = hashlib.sha256("\0".join(["rows in files", *(part.digest for part in abouts)]).encode()).hexdigest()
    return FileRows(
        model,
        None,
        Data({**like}, name, like.columns, (), like.checked_for, _kept(like)),
        rows,
        digest,
        name,
        like.columns,
        (*said_of_files([part.notes for part in abouts], "in each file: " * (count > 1)), where),
        reading=reading_of(inputs, source, options, files=count, **_kept(like)),
        sample=sample,
        held=held,
        drawn=drawn,
        ends=ends,
    )


def _kept(like: Data) -> dict[str, Any]:
    return {name: like.reading[name] for name in KEPT if name in like.reading}


def _refuse_other_columns(inputs: Inputs, first: Data, other: Data) -> None:
    if first == other and first.columns == other.columns and _kept(first) == _kept(other):
        return
    option = next((name for name in ("symbols", "vocabulary") if name in inputs.options), None)
    hint = f"name the labels of all files with --{option}" if option else None
    raise InputError(
        f"{other.source} has other labels, columns or types than {first.source}", "labels_differ", hint=hint
    )


def _refuse_cut(inputs: Inputs, abouts: Sequence[About]) -> None:
    """Refuse sequences and documents with rows in more than one file."""
    unit = SEQUENCE if isinstance(inputs, Series) else DOCUMENT
    if unit == SEQUENCE and len(abouts) > 1 and SEQUENCE not in abouts[0].like.columns:
        hint = "name the column of sequences with --sequence"
        raise InputError(
            "the rows of all files are one sequence, which cannot be cut into files", "not_cuttable", hint=hint
        )
    places = dict[str, str]()
    for part in abouts:
        for name in () if part.numbered else part.names:
            if name in places:
                hint = f"put all rows of a {unit} into one file"
                raise InputError(
                    f"{part.like.source}: {unit} {shown(name)} is in {places[name]} too", "duplicate_name", hint=hint
                )
        places.update(dict.fromkeys(part.names, part.like.source))


def _names_of_rows(inputs: Inputs, abouts: Sequence[About]) -> dict[str, np.ndarray]:
    """Return the names of the rows of all files, if they have any; numbers go on from file to file."""
    names, before = list[str](), 0
    for part in abouts:
        names += [str(before + int(number)) for number in part.names] if part.numbered else part.names
        before += part.numbered
    return {} if inputs.row_names is None else {inputs.row_names: label_array(names)}


# The sample


def _drawn(abouts: Sequence[About]) -> np.ndarray:
    """Draw rows of all files, or whole sequences, whatever the division into files; take all where they are few."""
    lengths = np.concatenate([_lengths(part) for part in abouts])
    drawn = np.random.default_rng(0).choice(len(lengths), min(len(lengths), SAMPLE), replace=False)
    few = np.cumsum(lengths[drawn]) <= SAMPLE
    few[0] = True
    return np.sort(drawn[few])


def _lengths(part: About) -> np.ndarray:
    return np.ones(part.rows, dtype=np.int64) if part.lengths is None else part.lengths


def _sample(model: Model, like: Data, held: Held, abouts: Sequence[About], drawn: np.ndarray) -> Data:
    """Return the rows that were drawn."""
    inputs, ends = model.inputs, np.cumsum([len(_lengths(part)) for part in abouts])
    chosen = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
    own = [units - first for units, first in zip(chosen, [0, *ends[:-1]], strict=True)]
    if (names := inputs.row_names) is not None:
        like = replace(like, arrays={**like, names: like[names][drawn]})
    return _joined(inputs, like, held.each(_taken, model, own))


def _taken(model: Model, chosen: np.ndarray, data: Data) -> dict[str, np.ndarray]:
    """Return some rows, or sequences, of a file."""
    is_series = isinstance(model.inputs, Series)
    rows = np.flatnonzero(np.isin(data[SEQUENCE], chosen)) if is_series else chosen
    return model.inputs.reordered(data, rows)


def _joined(inputs: Inputs, like: Data, parts: Sequence[Mapping[str, np.ndarray]]) -> Data:
    """Put rows of files under each other; what labels their axes is that of ``like``."""
    arrays = {
        name: values if name in inputs.coords else np.concatenate([part[name] for part in parts])
        for name, values in like.items()
    }
    if isinstance(inputs, Series):
        begins = np.zeros(len(arrays[SEQUENCE]), dtype=np.int64)
        for first, part in zip(_firsts(parts, SEQUENCE), parts, strict=True):
            begins[first + starts(part[SEQUENCE])] = 1
        arrays[SEQUENCE] = np.cumsum(begins) - 1
    for name, axis in inputs.coded.items():
        if axis == inputs.row_names:  # codes of rows count those of the file
            pairs = zip(parts, _firsts(parts, axis), strict=True)
            arrays[name] = np.concatenate([part[name] + first for part, first in pairs])
    return Data(arrays, like.source, like.columns, (), like.checked_for, _kept(like))


def _firsts(parts: Sequence[Mapping[str, np.ndarray]], name: str) -> np.ndarray:
    """Return how many entries of an array there are before each file."""
    return np.cumsum([0, *(len(part[name]) for part in parts[:-1])])
