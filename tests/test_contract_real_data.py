"""Every identity over every model on its own real data, with no list to edit."""

import pytest

from bayeszoo import zoo
from bayeszoo.check import applicable, case_of, run_identity
from bayeszoo.data import example

EXAMPLES = [(name, item.name) for name in zoo.names() for item in zoo.find(name).examples]


@pytest.mark.parametrize(("name", "dataset"), EXAMPLES)
def test_identities_on_real_data(name, dataset):
    model = zoo.find(name)
    case = case_of(model, example(model, dataset))
    for identity in applicable(model, case.is_closed):
        # differences of a sum over 20,000 rows are slow, and it is the sum that was differentiated above
        if not identity.data_free and identity.function != "gradient":
            found = run_identity(identity, case)
            assert found.passed, f"{identity.function}: {found}"
