"""Block sizes, in numbers of 8 bytes, that bound memory use."""

from __future__ import annotations

from collections.abc import Iterator

AT_ONCE = 2_000_000
"""Numbers in a block of an array: 16 MB."""
IN_CACHE = 2**19
"""Numbers in a block of matrices to decompose: 4 MB, about the cache of a core."""


def blocks(count: int, width: int, most: int = AT_ONCE) -> Iterator[slice]:
    """Yield slices of ``count`` rows of ``width`` numbers, each slice with at most ``most`` numbers."""
    step = max(1, most // max(1, width))
    return (slice(first, first + step) for first in range(0, count, step))
