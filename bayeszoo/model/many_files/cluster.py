"""Files read by the workers of a Dask cluster; Dask is imported only when a cluster is used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from typing import Any

from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options
from bayeszoo.foundation.process import signals
from bayeszoo.model.base import Model
from bayeszoo.model.find import Reference
from bayeszoo.model.many_files.files import Parts, part_of
from bayeszoo.model.parts.accumulated import Accumulated

LOCAL = "local"
"""Instead of an address: a cluster on this machine's processors, which ends with the command."""
LOOPBACK = "127.0.0.1"
"""The address of that cluster: whoever reaches a scheduler can run code on it."""
PATIENCE = 10
"""Seconds to wait for the scheduler's answer and for a worker."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Return a context with a client of the cluster at an address, or of a local cluster.

    It is not Dask's default client: xarray would use that for a lock on each file it writes, even after it failed.
    """
    distributed, client_options = _distributed(), {"set_as_default": False}
    if address == LOCAL:
        options: dict[str, Any] = {"n_workers": os.cpu_count(), "threads_per_worker": 1, "host": LOOPBACK}
        # no dashboard; only the scheduler's health page remains, at a free port
        options |= {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": f"{LOOPBACK}:0"}}
        with ExitStack() as ends:
            with signals.beginning():
                cluster = ends.enter_context(distributed.LocalCluster(**options))
                client = ends.enter_context(distributed.Client(cluster, **client_options))
            try:
                yield client
            except KeyboardInterrupt:  # the cluster takes a while to end
                signals.answer()
                raise
        return
    try:
        client = distributed.Client(address, timeout=PATIENCE, **client_options)
    except (OSError, TypeError, ValueError):  # no answer, or not an address
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


def parts_on(client: Any) -> Callable[[Model, Sequence[str], int, Options], Parts]:
    """Return a function that yields the statistics of files as the workers of a cluster finish them."""
    waiting(client)

    def parts(model: Model, paths: Sequence[str], rows: int, options: Options) -> Parts:
        reference = Reference.of(model)
        submitted = [client.submit(_part, reference, path, rows, options, pure=False) for path in paths]
        futures = {future: number for number, future in enumerate(submitted)}
        del submitted  # workers keep results while a future exists
        try:
            for future in as_completed(list(futures)):
                number = futures[future]
                yield number, result(future, paths[number])
                del futures[future]
        finally:
            client.cancel(list(futures))

    return parts


def as_completed(futures: Sequence[Any]) -> Iterator[Any]:
    """Iterate over futures as they end, with success or failure."""
    return iter(_distributed().as_completed(futures, loop=futures[0].client.loop) if futures else ())


def without_size_warning() -> Any:
    """Return a context in which tasks may have large arrays as arguments.

    Dask advises to scatter them; but scattered data are lost with their worker, and cannot be computed again.
    """
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"})


def waiting(client: object) -> Any:
    """Return a synchronous client with a worker, or raise `InputError`."""
    distributed = _distributed()
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise InputError(
            f"client must be a synchronous dask.distributed.Client, got {type(client).__name__}", "cluster_failed"
        )
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise InputError(
            "the Dask cluster has no worker", "cluster_failed", hint="start one: dask worker ADDRESS"
        ) from None
    return client


def _part(reference: Reference, path: str, rows: int, options: Options) -> Accumulated:
    """Return the statistics of a file; runs in a worker."""
    return part_of(reference.model(), path, rows, options)


def result(future: object, path: str) -> Any:
    """Return a worker's result for a file, or raise an `InputError` that names the file."""
    name = escaped(os.path.basename(path))
    try:
        return outcome(future)
    except killed_worker():
        raise InputError(
            f"{name}: every worker that read it ended, perhaps for lack of memory", "cluster_failed"
        ) from None


def outcome(future: Any) -> Any:
    """Return a worker's result, or raise its error; `killed_worker` if every worker that tried has ended."""
    try:
        return future.result()
    except CancelledError:
        raise InputError("the Dask cluster ended before all files were done", "cluster_failed") from None


def killed_worker() -> type[Exception]:
    """Return Dask's error for a task whose workers all ended."""
    kind: type[Exception] = _distributed().KilledWorker
    return kind
