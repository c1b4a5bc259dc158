"""Which cases of a test `make test` runs (`make test-all` runs the slow ones too), and how bugs are seeded."""

from dataclasses import make_dataclass
from pathlib import Path

import pytest

from bayeszoo import models
from bayeszoo.model.find import by_name


def quick_first(cases, count=1):
    """Mark all cases after the first few as slow."""
    return quick_where(cases, lambda case: case in list(cases)[:count])


def quick_where(cases, is_quick):
    """Mark the cases as slow that are not quick."""
    return [case if is_quick(case) else pytest.param(case, marks=pytest.mark.slow) for case in cases]


COSTLY = {
    *("independent_density", "candidate_identity", "compressed_density", "gradient", "jacobian", "no_data"),
    *("simulator", "prior_sampler", "simulated_rows", "map_is_the_maximum", "mle_is_the_maximum"),
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


def seed(bugs, base, identities, name, form=0, fields=(), **steps):
    """Seed a bug: a class like ``base`` but for some steps or fields, on which each of the identities must fail.

    ``form`` is that of the table on which it is seen.
    """
    if fields:
        bug = make_dataclass(name, fields, bases=(base,), frozen=True)
    else:
        bug = type(name, (base,), {**steps, "__module__": __name__})
    bugs += [(bug, identity, form) for identity in identities.split()]


def right(model):
    """Return what has the steps of a model as they are without the bug."""
    return super(type(model), model)


def off_by(add):
    """Return a log evidence with something added."""
    return lambda m, s: right(m).log_evidence(s) + add(m, s)


def base_of(bug):
    """Return the model of the zoo that a bug is seeded in."""
    return next(c for c in bug.__mro__[1:] if c.__module__.startswith("bayeszoo.models."))


def named(value):
    """Return the name of a class or a function in the id of a test."""
    return value if isinstance(value, str) else getattr(value, "__name__", None)


def zoo_with(folder, autouse=True):
    """Return a fixture that puts the models of a folder of tests into the zoo."""

    @pytest.fixture(scope="module", autouse=autouse)
    def more_models():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(models, "__path__", [str(Path(__file__).parent / folder), *models.__path__])
            by_name.cache_clear()
            yield
        by_name.cache_clear()

    return more_models
