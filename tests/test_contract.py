"""Every check over every model that is found, on simulated and on its own real data, with no list to edit."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bayeszoo.contract.case import case_of, cases_of
from bayeszoo.contract.check import IDENTITIES as ALL
from bayeszoo.contract.check import applicable, run_identity, source_checks
from bayeszoo.contract.sampler import point_mass_checks, sampler_checks
from bayeszoo.data.read import example
from bayeszoo.model import find as zoo
from bayeszoo.model.capabilities import LogConcave, PointMasses, has_few_outer, has_vectors, is_exact

MODELS = zoo.names()
EXACT = [name for name in MODELS if is_exact(zoo.find(name)) and not has_vectors(zoo.find(name))]
EXACT_IN_SMALL = [name for name in MODELS if has_few_outer(zoo.find(name))]
QUICK = {
    "row_order": tuple(name for name in MODELS if name != "gaussian_process"),
    "simulator": ("beta_bernoulli", "normal_gamma"),
    "simulated_rows": ("student_t", "robust_regression"),
    "simulation_based": ("multinomial_mixture",),
    "compiled_density": (),
    "compiled_gradient": (),
    "statistics_density": (),
    "statistics_gradient": (),
    "laplace_evidence": ("beta_bernoulli", "gaussian_mean"),
    "NUTS": ("beta_bernoulli", "normal_gamma"),
}
"""Identities of many fits or long compilations, and the models on which `make test` checks them.

The operations are held against other libraries by the quick tests of `likelihoods`; those of statistics against the
declaration by `test_ppca`, and a bug in either is seen by `test_checks_catch_bugs_of_mixtures`.
"""


def slow_if_costly(name, function):
    return [pytest.mark.slow] * (name not in QUICK.get(function, MODELS))


IDENTITIES = [
    pytest.param(name, identity, marks=slow_if_costly(name, identity.function))
    for name in MODELS
    for identity in applicable(
        zoo.find(name), False if issubclass(zoo.find(name), LogConcave) else None
    )  # simulated weights are many
]
COSTLY = [param.values for param in IDENTITIES if param.values[1].function in QUICK and not param.values[1].data_free]


@pytest.fixture(scope="module")
def cases_for():
    """Return the cases of a model's simulated data, one for each form a table may take, each compiled once."""

    @cache
    def simulated(name):
        cases = cases_of(zoo.find(name))
        return cases[: len(cases) - len(zoo.find(name).examples)]

    return simulated


def named(value):
    return getattr(value, "function", value)


def require(identity, cases):
    is_known = lambda case: case.is_closed or not has_vectors(type(case.model))  # noqa: E731
    for case in [case for case in cases if not identity.closed or is_known(case)]:
        found = run_identity(identity, case)
        assert found.passed, f"{found!s} on {list(case.data)}"


@pytest.mark.parametrize(("name", "identity"), IDENTITIES, ids=named)
def test_identity(name, identity, cases_for):
    cases = cases_for(name)
    require(identity, cases[:1] if identity.data_free or identity.function in QUICK else cases)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "identity"), COSTLY, ids=named)
def test_costly_identity_on_other_forms_of_the_table(name, identity, cases_for):
    require(identity, cases_for(name)[1:])


@pytest.mark.parametrize("name", MODELS)
def test_source(name, cases_for):
    checks = source_checks(zoo.find(name)(), cases_for(name)[0])
    assert [str(check) for check in checks if not check.passed] == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=slow_if_costly(name, "NUTS")) for name in [*EXACT, *EXACT_IN_SMALL]]
)
def test_sampler_against_exact(name):
    model = zoo.find(name)
    checks = (point_mass_checks if issubclass(model, PointMasses) else sampler_checks)(model, None, seed=1)
    assert checks
    assert [str(check) for check in checks if not check.passed] == []


@pytest.mark.parametrize("name", MODELS)
def test_model_is_documented_and_has_sources(name):
    model = zoo.find(name)
    assert "~" in (__import__(model.__module__, fromlist=["_"]).__doc__ or ""), "the module docstring is the model"
    for item in model.examples:
        assert item.about
        assert item.source
        assert example(model, item.name).rows > 0


@pytest.mark.parametrize("name", MODELS)
def test_declared_model_has_a_finite_gradient_at_its_start(name, cases_for):
    for case in cases_for(name):
        value, slope = case.declared.joint(case.declared.start)
        assert np.isfinite(value)
        assert np.isfinite(slope).all()


def examples():
    """Yield every example; those whose densities are sums over rows, or beside a first one, are slow."""
    # of many rows, or long to compile
    costly = ("markov_chain", "normal_inverse_wishart", "linear_regression", "gaussian_process")
    # 5 to 10 s each; their identities hold on simulated data above
    costly += ("naive_bayes_text", "naive_bayes", "beta_binomial", "local_level", "spike_slab_regression")
    costly += ("structural_series", "gaussian_discriminant")  # the second compiles for two CPU minutes
    for name in MODELS:
        for i, item in enumerate(zoo.find(name).examples):
            is_slow = i > 0 or name not in EXACT or name in costly
            yield pytest.param(name, item.name, marks=[pytest.mark.slow] * is_slow)


@pytest.mark.parametrize(("name", "dataset"), [*examples()])
def test_identities_on_real_data(name, dataset):
    model = zoo.find(name)
    case = case_of(model, example(model, dataset))
    for identity in applicable(model, case.is_closed):
        # differences of a sum over 20,000 rows are slow, and it is the sum that was differentiated above
        if not identity.data_free and identity.function not in ("gradient", "laplace_evidence"):
            require(identity, [case])


def test_the_contract_names_every_identity():
    page = Path(__file__).parents[1].joinpath("CONTRACT.md").read_text(encoding="utf-8")
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert [one.function for one in ALL if not any(f"`{one.function}`" in line for line in table)] == []
