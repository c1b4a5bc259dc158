"""Tools of the compiled loops: vectorized exponentials, Cholesky factors, and short vectors in registers."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from bayeszoo.likelihoods.compiling import loop

try:
    from numba.cpython.unsafe.tuple import tuple_setitem
except ImportError:  # an array is slower, and gives the same numbers
    tuple_setitem = None  # type: ignore[assignment]

UNROLLED = 7 if tuple_setitem else 0
"""Largest length of short vectors that are tuples. Loops over them are compiled for the length, and unrolled."""

_TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))


def zeros(length: int) -> Any:
    """Return a short vector of zeros: a tuple, whose length is known to the compiler, or an array."""
    return (0.0,) * length if length <= UNROLLED else np.zeros(length)


def copied(x: Any) -> Any:
    """Return a copy of a short vector."""
    return x if isinstance(x, tuple) else x.copy()


def with_entry(x: Any, at: int, value: float) -> Any:
    """Return a short vector with one entry replaced; an array is changed in place."""
    if isinstance(x, tuple):
        return (*x[:at], value, *x[at + 1 :])
    x[at] = value
    return x


@numba.extending.overload(copied)
def _typed_copied(x):  # type: ignore[no-untyped-def]
    is_tuple = isinstance(x, numba.types.UniTuple)
    return (lambda x: x) if is_tuple else (lambda x: x.copy())


@numba.extending.overload(with_entry)
def _typed_with_entry(x, at, value):  # type: ignore[no-untyped-def]
    def changed(x, at, value):  # type: ignore[no-untyped-def]
        x[at] = value
        return x

    def replaced(x, at, value):  # type: ignore[no-untyped-def]
        return tuple_setitem(x, at, value)  # type: ignore[call-arg]

    return replaced if isinstance(x, numba.types.UniTuple) else changed


@loop
def exponentials(x: np.ndarray, work: np.ndarray) -> None:
    """Replace x <= 0 by exp(x), of relative error < 3e-16; 0 below -708. NaN stays.

    The C library computes one number at a time, which would take half of a pass. Here exp(x) = 2^n exp(r), n whole
    and |r| <= log(2) / 2. Adding 1.5 x 2^52 rounds to a whole number, and leaves it in the last bits.
    """
    rounding = 6755399441055744.0
    for n in range(len(x)):
        clipped = -708.0 if x[n] < -708.0 else x[n]
        work[n] = clipped * 1.4426950408889634 + rounding
    for n in range(len(x)):
        clipped = -708.0 if x[n] < -708.0 else x[n]
        whole = work[n] - rounding
        r = clipped - whole * 6.93147180369123816490e-01 - whole * 1.90821492927058770002e-10  # log(2), in two parts
        series = 0.0
        for coefficient in _TAYLOR:
            series = series * r + coefficient
        x[n] = 0.0 if x[n] < -708.0 else series
    bits = work.view(np.int64)
    for n in range(len(x)):
        bits[n] = (bits[n] + 1023) << 52  # the bits of 2^n
    for n in range(len(x)):
        x[n] *= work[n]


@loop
def inverse_factor(sigma: np.ndarray, factor: np.ndarray, inverse: np.ndarray) -> float:
    """Fill in the Cholesky factor and its inverse; return log det L, or NaN if sigma is not positive definite."""
    size, log_det = len(sigma), 0.0
    for j in range(size):
        for i in range(j, size):
            total = sigma[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j and not total > 0:
                return np.nan
            factor[i, j] = math.sqrt(total) if i == j else total / factor[j, j]
        log_det += math.log(factor[j, j])
    for j in range(size):
        inverse[j, j] = 1 / factor[j, j]
        for i in range(j + 1, size):
            total = 0.0
            for k in range(j, i):
                total -= factor[i, k] * inverse[k, j]
            inverse[i, j] = total / factor[i, i]
    return log_det
