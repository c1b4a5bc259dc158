"""Which sums of weights the data identify, against the null space of the design."""

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.families.linear.identified import identify
from bayeszoo.families.linear.model import identified

RIDGE = bz.find("ridge")


def table(**columns):
    rng = np.random.default_rng(0)
    n = len(next(iter(columns.values())))
    return {"y": rng.normal(size=n), **columns}


A, B, C = np.random.default_rng(1).normal(size=(3, 12))
CONSTANT = np.full(12, 3.0)


@pytest.mark.parametrize(
    ("model", "third", "sums"),
    [
        (RIDGE(), C, ["w[(intercept)]", "w[a]", "w[b]", "w[c]"]),
        (RIDGE(), A, ["w[(intercept)]", "w[a] + w[c]", "w[b]"]),
        (RIDGE(), -2.5 * A, ["w[(intercept)]", "w[a] - 2.5 w[c]", "w[b]"]),
        (RIDGE(), A + B, ["w[(intercept)]", "w[a] + w[c]", "w[b] + w[c]"]),
        (RIDGE(), CONSTANT, ["w[(intercept)] + 3 w[c]", "w[a]", "w[b]"]),
        (RIDGE(intercept=False), CONSTANT, ["w[a]", "w[b]", "w[c]"]),
    ],
)
def test_the_sums_that_are_identified(model, third, sums):
    assert list(identified(model, table(a=A, b=B, c=third)).index) == sums


def test_units_do_not_matter():
    model = RIDGE(scale=(1e12, 1.0, 1e-12), center=(2.0, 0.0, 2e-12))
    names = list(identified(model, table(a=1e12 * A, b=B, c=1e-12 * A)).index)
    assert names[1] == "w[a] + 1e-24 w[c]"


@pytest.mark.parametrize(("rows", "columns"), [(4, 9), (9, 9), (30, 6)])
def test_the_likelihood_depends_on_the_sums_alone(rows, columns):
    rng = np.random.default_rng(2)
    design = rng.normal(size=(rows, columns)) @ np.diag(10.0 ** rng.integers(-3, 4, columns))
    design[:, -1] = design[:, 0] - 3 * design[:, 1]
    found = identify(design, np.ones(columns))
    size = np.linalg.norm(design, axis=0)
    assert len(found.independent) == np.linalg.matrix_rank(design / size)
    # the design is its independent columns times the coefficients: it sees w through the sums alone
    assert np.max(np.abs(design[:, found.independent] @ found.coefficients - design) / size) < 1e-7


def test_a_wrong_coefficient_would_be_seen():
    rng = np.random.default_rng(2)
    design = rng.normal(size=(30, 3))
    design[:, 2] = design[:, 0] - 3 * design[:, 1]
    found = identify(design, np.ones(3)).coefficients.copy()
    found[1, 2] *= 1.001
    assert np.linalg.norm(found @ scipy.linalg.null_space(design)) > 1e-4


def test_the_note():
    data = bz.read(RIDGE, table(a=A, b=B, c=A))
    model = RIDGE()
    found = identify(model.equations(model.statistics(data))[0], np.ones(4))
    assert found.note(["(intercept)", "a", "b", "c"]) == (
        "the data identify 3 of 4 combinations of weights: of some weights only the sum w[a] + w[c]; "
        "the prior alone says the rest"
    )
    assert identify(np.eye(2), np.ones(2)).note(["a", "b"]) == ""
    assert identify(np.eye(2)[:, [0, 1, 0, 1, 0]] * [1, 1, 0, 0, 0], np.ones(5)).note(list("abcde")) == (
        "the data identify 2 of 5 combinations of weights: of some weights nothing about w[c], w[d], w[e]; "
        "the prior alone says the rest"
    )


def test_other_models_are_refused():
    with pytest.raises(bz.InputError, match="identified needs a linear model"):
        identified(bz.find("normal_gamma")())
