"""What a misfit suggests: a sentence, and the model to try."""

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.report.next_model import conclusion


def said(name, table, method="map", **reading):
    kind = bz.find(name)
    data = bz.read(kind, table, **reading)
    tree = bz.fit(kind.weak(data), data, method, seed=1, groups=[])
    checks = bz.predictive_check(tree, replicates=400, seed=1)
    return " ".join(conclusion(checks, kind.inputs, name))


RNG = np.random.default_rng(2)
X = np.linspace(-1, 1, 120)


@pytest.mark.parametrize(
    ("name", "table", "proposed"),
    [
        ("ridge", {"x": X, "y": X + RNG.normal(0, 0.3, 120)}, ""),
        ("ridge", {"x": X, "y": X + 0.1 * RNG.standard_cauchy(120)}, "robust_regression"),
        ("poisson_regression", {"x": X, "y": RNG.negative_binomial(0.7, 0.1, 120)}, "negative_binomial_regression"),
    ],
)
def test_a_misfit_names_the_next_model(name, table, proposed):
    line = said(name, table, target="y")
    assert ("fits: " in line) == (not proposed)
    assert proposed in line
    assert name not in line.partition("Next")[2]


def test_columns_have_their_own_models():
    walk = {"y": np.cumsum(RNG.normal(size=150))}
    assert "local_level" in said("normal_gamma", walk, "exact")
    assert "local_level" not in said("normal_gamma", {"y": RNG.normal(size=150)}, "exact")


def test_residuals_that_are_too_small_are_no_heavy_tails():
    """The prior of the noise is too wide for so few rows on a line: no replicate has residuals as small."""
    few = {"x": X[::4], "y": 3 * X[::4] + np.random.default_rng(3).normal(0, 0.1, 30)}
    line = said("linear_regression", few, "exact", target="y")
    assert "largest absolute standardized residual" in line
    assert "robust_regression" not in line
