"""Statistics of files of any size and number: the public `accumulate`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing

from bayeszoo.data.read import reading_of
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.many_files import cluster
from bayeszoo.model.many_files.files import Sum, parts_here, paths_of
from bayeszoo.model.parts.accumulated import Accumulated, sufficient
from bayeszoo.model.parts.chunks import ROWS, total_of


def accumulate(
    model: Model,
    source: str | os.PathLike[str],
    /,
    rows: int = ROWS,
    *,
    client: object = None,
    reporter: Reporter | None = None,
    **options: object,
) -> Accumulated:
    """Add up a model's statistics of a file of any size, or of many files, chunk by chunk.

    Parameters
    ----------
    model : Model
        Must be `Sufficient`.
    source : path
        As `read_chunks` takes it; or a pattern of files, such as ``"folder/*.parquet"``, read as one table in the
        order of their names. Their columns and labels must be the same.
    rows : int
        Rows to read at a time; the result does not depend on it, except for rounding.
    client : dask.distributed.Client, optional
        A Dask cluster whose workers read the files, from paths that this machine sees too.
        If a worker ends, another reads its file again. The result is as without a cluster, except for rounding.
    reporter : Reporter, optional
        Receives a line for each chunk, or the number of files read; silent by default.
    **options
        Options of `read_chunks`.

    Returns
    -------
    Accumulated
        The data argument of `fit`.

    Raises
    ------
    InputError
        When the model has no sufficient statistics, or no file has this name; and as `read_chunks`, naming the file.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> total = bz.accumulate(bz.find("ridge")(), "large.csv", target="price")  # doctest: +SKIP
    >>> tree = bz.fit(bz.find("ridge")(tau=2.0), total, "exact")  # doctest: +SKIP
    >>> total = bz.accumulate(bz.find("ridge")(), "sales/*.parquet", client=client, target="price")  # doctest: +SKIP
    """
    require_instance(model)
    reporter, paths = reporter or Reporter(), paths_of(source)
    if paths is None and client is None:
        return total_of(model, source, rows, options, reporter)
    return accumulate_files(model, source, paths or [os.path.abspath(source)], rows, options, client, reporter)


def accumulate_files(
    model: Model,
    source: str | os.PathLike[str],
    paths: Sequence[str],
    rows: int,
    options: Options,
    client: object,
    reporter: Reporter,
) -> Accumulated:
    """Add up the statistics of files, on this machine or by the workers of a cluster."""
    sufficient(model)
    if options.get("scale"):
        raise InputError(
            "--scale needs all rows together", "needs_rows", hint="divide the columns beforehand, or leave out --scale"
        )
    total = Sum(paths)
    yield_parts = parts_here if client is None else cluster.parts_on(client)
    with closing(yield_parts(model, paths, rows, options)) as parts:
        for done, (number, part) in enumerate(parts, start=1):
            total.take(number, part)
            reporter.progress("files", done, len(paths))
    return total.whole(model, source, reading_of(model.inputs, source, options, rows=int(rows)))
