"""Every identity over every model on its own real data, with no list to edit."""

import pytest

from bayeszoo.contract.case import case_of
from bayeszoo.contract.check import applicable, run_identity
from bayeszoo.data.read import example
from bayeszoo.model import find as zoo
from bayeszoo.model.capabilities import CAPABILITIES

COSTLY = ("markov_chain", "normal_inverse_wishart", "linear_regression")
"""Closed, but with 20,000 rows, or with densities that take long to compile."""


def examples():
    """Yield every example; those whose densities are sums over rows, or beside a first one, are slow."""
    for name in zoo.names():
        model = zoo.find(name)
        for i, item in enumerate(model.examples):
            is_slow = i > 0 or not CAPABILITIES["ClosedForm"](model) or name in COSTLY
            yield pytest.param(name, item.name, marks=[pytest.mark.slow] * is_slow)


@pytest.mark.parametrize(("name", "dataset"), list(examples()))
def test_identities_on_real_data(name, dataset):
    model = zoo.find(name)
    case = case_of(model, example(model, dataset))
    for identity in applicable(model, case.is_closed):
        # differences of a sum over 20,000 rows are slow, and it is the sum that was differentiated above
        if not identity.data_free and identity.function != "gradient":
            found = run_identity(identity, case)
            assert found.passed, f"{identity.function}: {found}"
