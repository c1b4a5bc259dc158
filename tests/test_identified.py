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


def features(n=12, seed=1):
    return np.random.default_rng(seed).normal(size=(3, n))


def test_independent_columns_are_each_identified():
    a, b, c = features()
    frame = identified(RIDGE(), table(a=a, b=b, c=c))
    assert list(frame.index) == ["w[(intercept)]", "w[a]", "w[b]", "w[c]"]
    assert np.array_equal(frame.to_numpy(), np.eye(4))


def test_of_identical_columns_the_sum_is_identified():
    a, b, _ = features()
    assert list(identified(RIDGE(), table(a=a, b=b, c=a)).index) == ["w[(intercept)]", "w[a] + w[c]", "w[b]"]


def test_multiples_and_other_signs():
    a, b, _ = features()
    assert list(identified(RIDGE(), table(a=a, b=b, c=-2.5 * a)).index)[1] == "w[a] - 2.5 w[c]"


def test_a_sum_of_two_columns():
    a, b, _ = features()
    names = list(identified(RIDGE(), table(a=a, b=b, c=a + b)).index)
    assert names == ["w[(intercept)]", "w[a] + w[c]", "w[b] + w[c]"]


def test_a_constant_column_is_not_told_from_the_intercept():
    a, b, _ = features()
    names = list(identified(RIDGE(), table(a=a, b=b, c=np.full(12, 3.0))).index)
    assert names == ["w[(intercept)] + 3 w[c]", "w[a]", "w[b]"]
    alone = list(identified(RIDGE(intercept=False), table(a=a, b=b, c=np.full(12, 3.0))).index)
    assert alone == ["w[a]", "w[b]", "w[c]"]


def test_units_do_not_matter():
    a, b, _ = features()
    model = RIDGE(scale=(1e12, 1.0, 1e-12), center=(2.0, 0.0, 2e-12))
    names = list(identified(model, table(a=1e12 * a, b=b, c=1e-12 * a)).index)
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
    a, b, _ = features()
    data = bz.read(RIDGE, table(a=a, b=b, c=a))
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
