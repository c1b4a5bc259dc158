"""Which cases of a test `make test` runs. The others are slow: `make test-all` runs them too."""

import pytest


def quick_first(cases, count=1):
    """Mark all cases after the first few as slow."""
    return quick_where(cases, lambda case: case in list(cases)[:count])


def quick_where(cases, is_quick):
    """Mark the cases as slow that are not quick."""
    return [case if is_quick(case) else pytest.param(case, marks=pytest.mark.slow) for case in cases]


COSTLY = {
    *("independent_density", "candidate_identity", "compressed_density", "gradient", "jacobian", "no_data"),
    *("simulator", "prior_sampler", "map_is_the_maximum", "mle_is_the_maximum"),
}
"""Identities that compile a density, or draw thousands of times."""


def one_bug_an_identity(bugs):
    """Mark seeded bugs as slow whose costly identity an earlier one is caught by. A bug is (class, identity, ...)."""
    seen, cases = set(), []
    for case in bugs:
        is_slow = case[1] in seen & COSTLY
        cases.append(pytest.param(*case, marks=pytest.mark.slow) if is_slow else case)
        seen.add(case[1])
    return cases


def is_quick(case):
    """Say whether `make test` runs a case of `parametrize`."""
    return not getattr(case, "marks", ())
