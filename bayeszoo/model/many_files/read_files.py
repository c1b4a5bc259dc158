"""The public `read_files`: read files once and keep each where it was read."""

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
from bayeszoo.foundation.named import Options
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.many_files.files import merged_notes, paths_of
from bayeszoo.model.many_files.rows import FileRows, StoredRows, additive
from bayeszoo.model.many_files.stored import Facts, stored_rows

SAMPLE = 10_000
"""Most rows of the sample from which climbs start, and by which maxima are told apart."""

_OF_ALL_ROWS = ("scale", "min_documents", "max_share", "lags")
"""Options that need all rows together."""


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

    Steps run where the rows are; results are added up in the order of the files' names. So the fit does
    not depend on how the rows are divided into files, except for rounding. Climbs start from a sample of all rows.

    Parameters
    ----------
    model : Model or class
        Must be `Additive`, as mixtures, hidden Markov models and lda are.
    source : path
        A file, or a pattern of files, such as ``"folder/*.parquet"``. Their columns and labels must be the same, and
        each sequence or document must lie in one file.
    client : dask.distributed.Client, optional
        A Dask cluster whose workers read the files, from paths that this machine sees too, and keep the rows. If a
        worker ends, another reads its files again.
    reporter : Reporter, optional
        Receives the number of files read; silent by default.
    **options
        Options of `read`.

    Returns
    -------
    FileRows
        The data argument of `fit`, for the methods "em", "vb", "map" and "mle".

    Raises
    ------
    InputError
        When E-steps of the model do not add up, no file has this name, or a file cannot be used; it is named.

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
            f"source must be a path or a pattern, got {type(source).__name__}", "wrong_type", hint="use bz.read"
        )
    if not_by_file := [name for name in _OF_ALL_ROWS if str(options.get(name)) not in ("None", "False")]:
        raise InputError(f"--{not_by_file[0]} needs all rows together", "needs_rows", hint="leave it out")
    paths = paths_of(source) or [os.path.abspath(source)]
    stored, files = stored_rows(instance, paths, options, client, reporter or Reporter())
    return _together(instance, source, stored, files, options)


def _together(
    model: Model, source: str | os.PathLike[str], stored: StoredRows, files: Sequence[Facts], options: Options
) -> FileRows:
    """Check that the files are parts of one table, and describe it."""
    inputs, first = model.inputs, files[0]
    for file in files[1:]:
        _refuse_other_columns(inputs, first.like, file.like)
    _refuse_cut(inputs, files)
    like = replace(first.like, arrays={**first.like, **_names_of_rows(inputs, files)})
    drawn, ends = _drawn(files), np.cumsum([file.rows for file in files])
    sample, rows, count = _sample(model, like, stored, files, drawn), int(ends[-1]), len(files)
    summary = f"{rows} rows in {count} file{'s' * (count > 1)}, each kept where it was read"
    if sample.rows < rows:
        summary += f"; climbs start from a sample of {sample.rows}"
    name = escaped(os.path.basename(source))
    digest = hashlib.sha256("\0".join(["rows in files", *(file.digest for file in files)]).encode()).hexdigest()
    return FileRows(
        model,
        None,
        Data({**like}, name, like.columns, (), like.checked_for, _kept(like)),
        rows,
        digest,
        name,
        like.columns,
        (*merged_notes([file.notes for file in files], "in each file: " * (count > 1)), summary),
        reading=reading_of(inputs, source, options, files=count, **_kept(like)),
        sample=sample,
        stored=stored,
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


def _refuse_cut(inputs: Inputs, files: Sequence[Facts]) -> None:
    """Raise `InputError` for a sequence or document with rows in several files."""
    unit = SEQUENCE if isinstance(inputs, Series) else DOCUMENT
    if unit == SEQUENCE and len(files) > 1 and SEQUENCE not in files[0].like.columns:
        hint = "name the column of sequences with --sequence"
        raise InputError(
            "without a column of sequences the rows are one sequence, which cannot be split between files",
            "not_cuttable",
            hint=hint,
        )
    file_of = dict[str, str]()
    for file in files:
        for name in () if file.numbered else file.names:
            if name in file_of:
                hint = f"put all rows of a {unit} into one file"
                raise InputError(
                    f"{file.like.source}: {unit} {shown(name)} is in {file_of[name]} too", "duplicate_name", hint=hint
                )
        file_of.update(dict.fromkeys(file.names, file.like.source))


def _names_of_rows(inputs: Inputs, files: Sequence[Facts]) -> dict[str, np.ndarray]:
    """Return the names of the rows of all files, if rows have names; numbering continues from file to file."""
    names, before = list[str](), 0
    for file in files:
        names += [str(before + int(number)) for number in file.names] if file.numbered else file.names
        before += file.numbered
    return {} if inputs.row_names is None else {inputs.row_names: label_array(names)}


# The sample


def _drawn(files: Sequence[Facts]) -> np.ndarray:
    """Draw rows, or whole sequences, independently of the division into files; take all if they are few."""
    lengths = np.concatenate([_lengths(file) for file in files])
    drawn = np.random.default_rng(0).choice(len(lengths), min(len(lengths), SAMPLE), replace=False)
    is_within = np.cumsum(lengths[drawn]) <= SAMPLE
    is_within[0] = True
    return np.sort(drawn[is_within])


def _lengths(file: Facts) -> np.ndarray:
    return np.ones(file.rows, dtype=np.int64) if file.lengths is None else file.lengths


def _sample(model: Model, like: Data, stored: StoredRows, files: Sequence[Facts], drawn: np.ndarray) -> Data:
    """Return the sampled rows."""
    inputs, ends = model.inputs, np.cumsum([len(_lengths(file)) for file in files])
    chosen = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
    places = [units - first for units, first in zip(chosen, [0, *ends[:-1]], strict=True)]
    if (names := inputs.row_names) is not None:
        like = replace(like, arrays={**like, names: like[names][drawn]})
    return _joined(inputs, like, stored.each(_chosen_rows, model, places))


def _chosen_rows(model: Model, chosen: np.ndarray, data: Data) -> dict[str, np.ndarray]:
    """Return the chosen rows, or sequences, of a file."""
    is_series = isinstance(model.inputs, Series)
    rows = np.flatnonzero(np.isin(data[SEQUENCE], chosen)) if is_series else chosen
    return model.inputs.reordered(data, rows)


def _joined(inputs: Inputs, like: Data, parts: Sequence[Mapping[str, np.ndarray]]) -> Data:
    """Concatenate rows of files; labels of axes are those of ``like``."""
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
        if axis == inputs.row_names:  # row codes are numbered within the file
            pairs = zip(parts, _firsts(parts, axis), strict=True)
            arrays[name] = np.concatenate([part[name] + first for part, first in pairs])
    return Data(arrays, like.source, like.columns, (), like.checked_for, _kept(like))


def _firsts(parts: Sequence[Mapping[str, np.ndarray]], name: str) -> np.ndarray:
    """Return the number of entries of an array before each file."""
    return np.cumsum([0, *(len(part[name]) for part in parts[:-1])])
