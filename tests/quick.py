"""Which cases of a test `make test` runs. The others are slow: `make test-all` runs them too."""

import pytest


def quick_first(cases, count=1):
    """Mark all cases after the first few as slow."""
    return quick_where(cases, lambda case: case in list(cases)[:count])


def quick_where(cases, is_quick):
    """Mark the cases as slow that are not quick."""
    return [case if is_quick(case) else pytest.param(case, marks=pytest.mark.slow) for case in cases]
