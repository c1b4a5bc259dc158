"""Files read by the workers of a Dask cluster; Dask is imported where it is asked for only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from typing import Any

from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError
from bayeszoo.foundation import signals
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.base import Model
from bayeszoo.model.find import Reference
from bayeszoo.model.many_files.files import Parts, part_of

LOCAL = "local"
"""In place of an address: a cluster of this machine's processors, which ends with the command."""
LOOPBACK = "127.0.0.1"
"""Where that cluster listens: who reaches a scheduler runs code by it."""
PATIENCE = 10
"""Seconds until a scheduler must have answered, and a worker be there."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Return a context with a client of the cluster at an address, or of one of this machine.

    It is no default, which xarray would ask for a lock for each file that it writes, also after it has failed.
    """
    distributed, own = _distributed(), {"set_as_default": False}
    if address == LOCAL:
        options: dict[str, Any] = {"n_workers": os.cpu_count(), "threads_per_worker": 1, "host": LOOPBACK}
        # of the scheduler's pages only whether it is well is left, at a port that no other cluster has
        options |= {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": f"{LOOPBACK}:0"}}
        with ExitStack() as ends:
            with signals.beginning():
                cluster = ends.enter_context(distributed.LocalCluster(**options))
                client = ends.enter_context(distributed.Client(cluster, **own))
            try:
                yield client
            except KeyboardInterrupt:  # the cluster takes a while to end
                signals.answer()
                raise
        return
    try:
        client = distributed.Client(address, timeout=PATIENCE, **own)
    except (OSError, TypeError, ValueError):  # nobody is there, or it is no address
        hint = "give tcp://HOST:PORT as the scheduler prints it, or local"
        raise InputError(f"no Dask scheduler answers at {escaped(address)}", "cluster_failed", hint=hint) from None
    with client:
        yield client


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError("a cluster needs Dask", "missing_package", hint="pip install 'bayeszoo[dask]'") from None
    return distributed


def parts_on(client: Any) -> Callable[[Model, Sequence[str], int, Mapping[str, Any]], Parts]:
    """Return what yields the statistics of files as the workers of a cluster have read them."""
    waiting(client)

    def parts(model: Model, paths: Sequence[str], rows: int, options: Mapping[str, object]) -> Parts:
        reference = Reference.of(model)
        asked = [client.submit(_part, reference, path, rows, options, pure=False) for path in paths]
        futures = {future: number for number, future in enumerate(asked)}
        del asked  # what nobody holds is forgotten by the worker
        try:
            for future in as_completed(list(futures)):
                number = futures[future]
                yield number, result(future, paths[number])
                del futures[future]
        finally:
            client.cancel(list(futures))

    return parts


def as_completed(futures: Sequence[Any]) -> Iterator[Any]:
    """Go through futures as they end, whether well or not."""
    return iter(_distributed().as_completed(futures, loop=futures[0].client.loop) if futures else ())


def without_size_warning() -> Any:
    """Return a context in which tasks may bring large arrays.

    Dask advises to scatter them; but what was scattered to a worker is lost with it, and cannot be computed again.
    """
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"})


def waiting(client: object) -> Any:
    """Return a client that waits for results and has a worker, or raise the `InputError` that says what it lacks."""
    distributed = _distributed()
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise InputError(
            f"client must be a dask.distributed.Client that waits, got {type(client).__name__}", "cluster_failed"
        )
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise InputError(
            "the Dask cluster has no worker", "cluster_failed", hint="start one: dask worker ADDRESS"
        ) from None
    return client


def _part(reference: Reference, path: str, rows: int, options: Mapping[str, object]) -> Accumulated:
    """Return the statistics of a file, in a worker."""
    return part_of(reference.model(), path, rows, options)


def result(future: object, path: str) -> Any:
    """Return what a worker has made of a file, or raise the `InputError` that says why there is nothing."""
    name = escaped(os.path.basename(path))
    try:
        return outcome(future)
    except killed_worker():
        raise InputError(
            f"{name}: every worker that read it ended, as it may for lack of memory", "cluster_failed"
        ) from None


def outcome(future: Any) -> Any:
    """Return what a worker has made, or raise what it raised; `killed_worker` where each that tried has ended."""
    try:
        return future.result()
    except CancelledError:
        raise InputError("the Dask cluster ended before all was done", "cluster_failed") from None


def killed_worker() -> type[Exception]:
    """Return Dask's error of a task whose workers all ended."""
    kind: type[Exception] = _distributed().KilledWorker
    return kind
