"""Every check over every model that is found, with no list to edit."""

import numpy as np
import pytest

from bayeszoo import zoo
from bayeszoo.check import applicable, case_of, off_default, run_identity, sampler_checks, source_checks
from bayeszoo.data import example
from bayeszoo.model import CAPABILITIES

MODELS = zoo.names()
IDENTITIES = [(name, identity) for name in MODELS for identity in applicable(zoo.find(name))]
CONJUGATE = [name for name in MODELS if issubclass(zoo.find(name), CAPABILITIES["Conjugate"])]
EXAMPLES = [(name, item.name) for name in MODELS for item in zoo.find(name).examples]


@pytest.fixture(scope="module")
def case_for():
    """Return one case a model, so that each declaration is compiled once."""
    cases = {}
    return lambda name: cases.setdefault(name, case_of(off_default(zoo.find(name))))


@pytest.mark.parametrize(("name", "identity"), IDENTITIES, ids=lambda p: getattr(p, "function", p))
def test_identity(name, identity, case_for):
    found = run_identity(identity, case_for(name))
    assert found.passed, str(found)


@pytest.mark.parametrize("name", MODELS)
def test_source(name, case_for):
    for found in source_checks(zoo.find(name)(), case_for(name)):
        assert found.passed, str(found)


@pytest.mark.parametrize("name", CONJUGATE)
def test_sampler_against_exact(name):
    for found in sampler_checks(off_default(zoo.find(name)), None, seed=1):
        assert found.passed, str(found)


@pytest.mark.parametrize(("name", "dataset"), EXAMPLES)
def test_identities_on_real_data(name, dataset):
    model = zoo.find(name)
    case = case_of(off_default(model), example(model, dataset))
    for identity in applicable(model):
        found = run_identity(identity, case)
        assert found.passed, f"{identity.function}: {found}"


@pytest.mark.parametrize("name", MODELS)
def test_model_is_documented_and_has_sources(name):
    model = zoo.find(name)
    assert "~" in (__import__(model.__module__, fromlist=["_"]).__doc__ or ""), "the module docstring is the model"
    for item in model.examples:
        assert item.about
        assert item.source
        assert example(model, item.name).rows > 0


@pytest.mark.parametrize("name", MODELS)
def test_declared_model_has_a_finite_gradient_at_its_start(name, case_for):
    value, slope = case_for(name).declared.joint(case_for(name).declared.start)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()
