"""How many numbers, of 8 bytes each, are computed at a time, so that little memory is needed."""

from __future__ import annotations

from collections.abc import Iterator

AT_ONCE = 2_000_000
"""Numbers of an array that is made block by block: 16 MB."""
IN_CACHE = 2**19
"""Numbers of matrices that are decomposed block by block: 4 MB, about the cache of a core."""


def blocks(count: int, width: int, most: int = AT_ONCE) -> Iterator[slice]:
    """Yield slices of ``count`` rows of ``width`` numbers each, as many rows at a time as ``most`` numbers allow."""
    step = max(1, most // max(1, width))
    return (slice(first, first + step) for first in range(0, count, step))
