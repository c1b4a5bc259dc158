"""What the tests of reading share: a model that has nothing but inputs, arrays in plain lists, and refusals."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from bayeszoo.data.inputs import Real
from bayeszoo.data.read import read
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model


@dataclass(frozen=True)
class Opaque(Model):
    """A model without closed forms."""

    inputs = Real("y")

    def simulate(self, rng, size=20):
        return {}, {}

    def declare(self, data):
        return None


def model_of(inputs):
    return SimpleNamespace(inputs=inputs, examples=(), labels={}, name="model")


def plain(arrays):
    return {name: values.tolist() for name, values in arrays.items()}


def typed(arrays):
    return {name: (values.dtype.kind, values.shape, values.tolist()) for name, values in arrays.items()}


def refusal(model, source, /, **options):
    with pytest.raises(InputError) as caught:
        read(model, source, **options)
    return caught.value


def refuses(model, cases, /, **more):
    """Return a test that each table, read with its options, is refused with its message."""

    @by_name(("table", "options", "message"), cases)
    def refused(table, options, message):
        assert str(refusal(model, table, **more, **options)) == message

    return refused


def by_name(names, cases):
    """Parametrize by a table of cases whose keys are their ids."""
    return pytest.mark.parametrize(names, cases.values(), ids=cases.keys())
