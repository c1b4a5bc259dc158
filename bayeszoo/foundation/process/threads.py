"""One thread for linear algebra on small matrices: more threads would mostly wait for each other."""

from __future__ import annotations

from threadpoolctl import threadpool_limits


def one_thread() -> threadpool_limits:
    """Return a context in which NumPy's and SciPy's linear algebra use one thread."""
    import scipy.linalg  # noqa: F401  loads its own BLAS; the limit holds only for libraries that are loaded

    return threadpool_limits(1)
