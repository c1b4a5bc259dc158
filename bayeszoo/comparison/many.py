"""One model fitted to many data sets, over the processes of this machine or the workers of a Dask cluster."""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import fields
from functools import partial
from itertools import islice
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import lazy_loader

from bayeszoo.comparison.by import in_one_tree, own_seeds
from bayeszoo.data.read import Data, read
from bayeszoo.data.table.table import shown
from bayeszoo.errors import Caution, InputError, Interrupted, NumericalError
from bayeszoo.fit import as_seed, fit, options_of
from bayeszoo.foundation.named import Document, Options
from bayeszoo.foundation.process import signals
from bayeszoo.foundation.process.progress import ProgressLine, Reporter
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.find import Reference
from bayeszoo.model.many_files import cluster
from bayeszoo.results.stored import dumps

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

_IN_TURN = Lock()
"""Fits of one process run one after the other: a worker may have many threads, and PyTensor is not thread-safe."""
DATASET = "dataset"
"""The dimension of the data sets."""
ENDED = "the process that fitted it ended, perhaps out of memory"
STOPPED = "stopped before any data set was fitted; nothing was kept"
UNFITTED = "stopped before it was fitted"
MOST_SAID = 5
"""Most data sets without a fit that a warning names; the tree names all."""


def fit_many(
    model: Model,
    datasets: object,
    method: str = "nuts",
    *,
    seed: int | None = None,
    workers: int | None = None,
    client: object = None,
    reporter: Reporter | None = None,
    progress: bool = False,
    reading: Mapping[str, object] | None = None,
    **options: object,
) -> xr.DataTree:
    """Fit a model to many data sets separately, over the processes of this machine or a Dask cluster.

    A process compiles the model once for all data sets of one shape. A data set without an answer does not stop the
    others.

    Parameters
    ----------
    model : Model
        An instance: its fields are the prior of every data set.
    datasets : mapping of str to anything that `read` takes, or a list
        The data sets by their names; those of a list are called "0", "1", ...
    method : str
        How to fit, as for `fit`.
    seed : int, optional
        Source of all randomness. The fit of a data set is the one that `fit` gives with this seed, whatever the other
        data sets and however many workers; a data set that equals an earlier one gets the next seed.
    workers : int, optional
        Number of processes; by default the number of processors. With 1 everything runs in this process. The processes
        are joblib's, and end when they have been idle for a minute.
    client : dask.distributed.Client, optional
        A Dask cluster, whose workers fit in place of processes of this machine. If a worker ends, another one fits its
        data set.
    reporter : Reporter, optional
        Takes progress; silent by default.
    progress : bool
        Whether to write progress to stderr; ignored with a reporter.
    reading : mapping of str to object, optional
        Options of `read`, such as ``{"column": "price"}``.
    **options
        Of the method, and ``groups``, as for `fit`; by default no groups are added.

    Returns
    -------
    xarray.DataTree
        As from `fit_by`, along the dimension ``dataset``: ``posterior`` has the draws of all fits, for parameters with
        the same shape and labels in all; its coordinate ``status`` says which fits passed their gate. The fit of data
        set A is ``tree["fits"]["A"]``. ``tree.attrs["failures"]`` has, in JSON, the reason for each data set without a
        fit.

    Warns
    -----
    Caution
        When data sets have no fit, for example because the run was stopped, or when a fit failed its gate.

    Raises
    ------
    InputError
        When the method or an option does not suit the model, or there is no data set.
    NumericalError
        When no data set has a fit.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("gaussian_mean")
    >>> tree = bz.fit_many(M(), {"north": [1.2, 0.9], "south": [3.1, 2.8]}, "exact", seed=1, workers=1)
    >>> tree["posterior"]["mu"].mean(("chain", "draw")).round().values.tolist()
    [1.0, 3.0]
    """
    require_instance(model)
    options_of(type(model), method, {name: value for name, value in options.items() if name != "groups"})
    named = _named(datasets)
    fitted = _where(model, workers, client, len(named))
    parts, failures = _read(model, named, reading or {})
    seed = as_seed(seed)
    seeds = own_seeds(parts, seed)
    tasks = {label: _Task(_sent(part), seeds[label]) for label, part in parts.items()}
    run = partial(_attempt, Reference.of(model), method, {"groups": (), **options})
    fits = dict[str, xr.DataTree]()
    with closing(reporter or (ProgressLine() if progress else Reporter())) as reporter:
        try:
            for label, result in fitted(run, tasks):
                if isinstance(result, str):
                    failures[label] = result
                else:
                    fits[label] = result
                reporter.progress("data sets", len(fits) + len(failures), len(named))
        except (Interrupted, KeyboardInterrupt):
            if not fits:
                raise
            signals.answer()
            failures |= {label: UNFITTED for label in named if label not in fits and label not in failures}
    return _tree({label: fits[label] for label in named if label in fits}, failures, seed)


def _named(datasets: object) -> Document:
    """Return the data sets by their names."""
    if isinstance(datasets, list | tuple):
        datasets = dict(enumerate(datasets))
    if not isinstance(datasets, Mapping) or isinstance(datasets, Data):
        raise InputError(
            f"many data sets are a list or a mapping, got {type(datasets).__name__}",
            "wrong_type",
            hint="bz.fit fits one",
        )
    named = {str(name): source for name, source in datasets.items()}
    if len(named) < len(datasets):
        raise InputError("two data sets have the same name", "duplicate_name")
    if not named:
        raise InputError("there is no data set", "no_data")
    return named


def _workers(model: Model, workers: int | None, most: int) -> int:
    """Return the number of processes to use; refuse a model that other processes cannot find."""
    if workers is None:
        workers = os.cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError(f"workers must be a whole number >= 1, got {workers!r}", "wrong_type")
    workers = min(workers, most)
    if workers > 1:
        _refuse_hidden(model)
    return workers


def _refuse_hidden(model: Model) -> None:
    if not Reference.of(model).is_of(model):
        hint = "write it to a file, or use workers=1"
        raise InputError(f"other processes cannot import {type(model).__name__}", "not_importable", hint=hint)


def _where(model: Model, workers: int | None, client: object, most: int) -> _Fitted:
    """Return the function that fits data sets in this process, over several processes or on a cluster."""
    if client is None:
        workers = _workers(model, workers, most)
        return partial(_in_this_process, model=model) if workers == 1 else partial(_over_processes, workers=workers)
    if workers is not None:
        raise InputError("a cluster has its own workers", "conflicting_options", hint="leave out workers, or client")
    _refuse_hidden(model)
    cluster.waiting(client)
    return partial(_on_cluster, client=client)


def _read(model: Model, named: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[dict[str, Data], dict[str, str]]:
    """Read each data set; return the readable ones, and why the others failed."""
    parts, failures = dict[str, Data](), dict[str, str]()
    for label, source in named.items():
        try:
            parts[label] = read(model, source, **({} if isinstance(source, Data) else options))
        except InputError as error:
            failures[label] = str(error)
    return parts, failures


# What a process does


class _Task(NamedTuple):
    """The data of a fit, and its seed."""

    data: dict[str, Any]
    seed: int


type _Result = xr.DataTree | str
type _Run = Callable[..., _Result]
type _Fitted = Callable[[_Run, Mapping[str, _Task]], Iterator[tuple[str, _Result]]]


def _sent(data: Data) -> Document:
    """Return the fields from which another process makes the data again; it knows the inputs that checked them."""
    return {field.name: getattr(data, field.name) for field in fields(data) if field.name != "checked_for"}


def _watch_parent() -> None:
    """Let this process end when its parent was killed; joblib's would wait for tasks forever."""
    Thread(target=_end_after, args=(os.getppid(),), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _attempt(reference: Reference, method: str, options: Options, task: _Task, model: Model | None = None) -> _Result:
    """Return the fit of a data set, or the reason for its failure."""
    model = model or reference.model()
    data = Data(**task.data, checked_for=(model.inputs, False))
    try:
        with _IN_TURN, warnings.catch_warnings():
            warnings.simplefilter("ignore", Caution)  # the tree has the same words
            return fit(model, data, method, seed=task.seed, **options)
    except Interrupted:
        raise
    except (InputError, NumericalError) as error:
        return str(error)
    except Exception as error:  # an error in a user's model or a library must not lose the other data sets
        return f"{type(error).__name__}: {error}"


def _in_this_process(run: _Run, tasks: Mapping[str, _Task], model: Model) -> Iterator[tuple[str, _Result]]:
    """Yield each data set with its result, in this process."""
    for label, task in tasks.items():
        with one_thread():
            result = run(task, model=model)
        if not isinstance(result, str) and result.attrs["status"] == "interrupted":
            raise Interrupted(STOPPED)
        yield label, result


def _over_processes(run: _Run, tasks: Mapping[str, _Task], workers: int) -> Iterator[tuple[str, _Result]]:
    """Yield each data set with its result, in the order of completion.

    The first is fitted alone, so that the others find the model compiled; and after a process has ended, which stops
    all, those that may have been under way are, so that one that ends its process again is known.
    """
    remaining, alone = dict(tasks), 1
    while remaining:
        batch = dict(islice(remaining.items(), 1 if alone > 0 else None))
        try:
            for label, result in _in_processes(run, batch, workers):
                del remaining[label]
                yield label, result
        except BrokenProcessPool:
            if len(batch) > 1:
                alone = 2 * workers
                continue
            [ended] = batch
            del remaining[ended]
            yield ended, ENDED
        alone -= 1


def _in_processes(run: _Run, tasks: Mapping[str, _Task], workers: int) -> Iterator[tuple[str, _Result]]:
    """Yield data sets with their results; linear algebra has one thread in each process, as others use the rest."""
    from joblib import Parallel, delayed, parallel_config

    jobs = (delayed(_labelled)(label, run, task) for label, task in tasks.items())
    with parallel_config("loky", inner_max_num_threads=1, idle_worker_timeout=60, initializer=_watch_parent):
        yield from Parallel(workers, return_as="generator_unordered", batch_size=1, max_nbytes=None)(jobs)


def _labelled(label: str, run: _Run, task: _Task) -> tuple[str, _Result]:
    return label, run(task)


def _on_cluster(run: _Run, tasks: Mapping[str, _Task], client: object) -> Iterator[tuple[str, _Result]]:
    """Yield each data set with its result, in the order of completion; the first alone, as over processes.

    Fits on a worker that ended are tried again, one at a time.
    """
    ended, queue = list[str](), list(tasks)
    for labels in (queue[:1], queue[1:]):
        for label, result in _submitted(run, {label: tasks[label] for label in labels}, client):
            if result is None:
                ended.append(label)
            else:
                yield label, result
    for label in ended:
        ((_, result),) = _submitted(run, {label: tasks[label]}, client)
        yield label, ENDED if result is None else result


def _submitted(run: _Run, tasks: Mapping[str, _Task], client: Any) -> Iterator[tuple[str, _Result | None]]:
    """Yield each data set with its result, None if every worker that tried it has ended."""
    with cluster.without_size_warning():
        futures = {client.submit(run, task, pure=False): label for label, task in tasks.items()}
    try:
        for future in cluster.as_completed(list(futures)):
            try:
                yield futures[future], cluster.outcome(future)
            except cluster.killed_worker():
                yield futures[future], None
            del futures[future]
    finally:
        client.cancel(list(futures))


# The result


def _tree(fits: dict[str, xr.DataTree], failures: dict[str, str], seed: int) -> xr.DataTree:
    """Put the fits into one tree, and warn of data sets without a fit and of fits that did not pass."""
    if not fits:
        label, why = next(iter(failures.items()))
        raise NumericalError(f"no data set has a fit; {shown(label)}: {why}", "all_failed")
    for label, fit_tree in fits.items():
        fit_tree.attrs |= {"by": DATASET, "group": label}
    tree = in_one_tree(fits, DATASET, seed)
    statuses = [str(fit_tree.attrs["status"]) for fit_tree in fits.values()]
    tree["posterior"] = tree["posterior"].to_dataset().assign_coords(status=(DATASET, statuses))
    tree.attrs["failures"] = dumps(failures)
    counts = Counter(statuses)
    problems = [f"{count} of {len(statuses)} fits have status {name}" for name, count in counts.items() if name != "ok"]
    if failures:
        named = "; ".join(f"{shown(label)}: {why}" for label, why in islice(failures.items(), MOST_SAID))
        problems.append(f"{len(failures)} data set{'s' * (len(failures) > 1)} without a fit: {named}")
    if problems:
        warnings.warn(f"{tree.attrs['model']}, {tree.attrs['method']}: {'; '.join(problems)}", Caution, stacklevel=3)
    return tree
