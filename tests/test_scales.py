"""Exact answers in very small and very large units are those in ordinary units: nothing overflows or vanishes."""

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.distributions import frozen
from bayeszoo.distributions.weighted import WeightedQuantile
from bayeszoo.foundation import diagnostics
from bayeszoo.tools.resampling.functionals import weighted_correlation, weighted_sd

rng = np.random.default_rng(0)
Y, X = rng.normal(3, 2, 12), rng.normal(size=(12, 2))
PAIRS = rng.normal(size=(12, 2)) @ np.array([[1, 0.3], [0, 1]]) + [1, 2]
MODELS = ("gaussian_mean", "gaussian_precision", "normal_gamma", "normal_inverse_wishart", "linear_regression")
MODELS += ("ridge", "spike_slab_regression", "normal_means", "gamma_poisson", "gamma_poisson_groups")
COUNTS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])


def rows(kind, unit):
    if kind.name == "normal_inverse_wishart":
        return bz.read(kind, {"a": PAIRS[:, 0] * unit, "b": PAIRS[:, 1] * unit})
    if kind.name in ("gamma_poisson", "gamma_poisson_groups"):
        return bz.read(kind, {"y": COUNTS, "exposure": np.full(12, unit)})
    if kind.name == "normal_means":
        return bz.read(kind, {"y": Y * unit, "se": np.full(12, 0.5 * unit)})
    if "regression" in kind.name or kind.name == "ridge":
        return bz.read(kind, {"x1": X[:, 0], "x2": X[:, 1], "y": Y * unit}, target="y")
    return bz.read(kind, {"y": Y * unit})


def statistics(name, unit):
    kind = bz.find(name)
    data = rows(kind, unit)
    tree = bz.fit(kind.weak(data), data, "exact", seed=1, groups=())
    assert tree.attrs["status"] == "ok"
    return {key: values.to_numpy().reshape(5, -1) for key, values in tree["exact"].data_vars.items()}


# of the groups' rates a unit of 1e-150 would take a prior above the largest number of a field
UNITS = [(name, unit) for name in MODELS for unit in (1e-150, 1e-90, 1e49)]
UNITS.remove(("gamma_poisson_groups", 1e-150))


@pytest.mark.parametrize(("name", "unit"), UNITS)
def test_mean_sd_and_quantiles_have_one_unit(name, unit):
    """All five of an entry are multiplied by the same number."""
    usual, moved = statistics(name, 1.0), statistics(name, unit)
    for key, before in usual.items():
        ratios = moved[key] / np.where(before == 0, np.nan, before)
        assert np.array_equal(np.isfinite(moved[key]), np.isfinite(before))
        assert (np.nanmax(np.abs(ratios / ratios[4] - 1))) < 1e-6


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_standard_deviations_of_scaled_distributions(scale):
    for ours, unit in (
        (frozen.gamma(3.5, scale=scale), stats.gamma(3.5)),
        (frozen.invgamma(np.array([3.5, 2.5]), scale=scale), stats.invgamma([3.5, 2.5])),
        (frozen.norm(np.zeros(3), scale), stats.norm(np.zeros(3))),
        (frozen.t(5.0, 1.0, scale), stats.t(5.0)),
    ):
        assert ours.std() / scale == pytest.approx(unit.std(), rel=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e140])
def test_the_bootstrap_in_small_and_large_units(unit):
    values, weights = np.array([1.0, 2.0, 4.0, 3.0]), rng.dirichlet(np.ones(4), 5)
    both = np.column_stack([values, [2.0, 1.0, 7.0, 5.0]])
    assert weighted_sd(values * unit, weights) / unit == pytest.approx(weighted_sd(values, weights), rel=1e-12)
    assert weighted_correlation(both * unit, weights) == pytest.approx(weighted_correlation(both, weights), rel=1e-12)
    usual, moved = (WeightedQuantile(values * each, 0.5).std() for each in (1.0, unit))
    assert moved / unit == pytest.approx(usual, rel=1e-12)
    usual, moved = (bz.bootstrap({"y": values * each}, "sd", seed=1).summary.iloc[0] for each in (1.0, unit))
    known = ["mean", "sd", "q025", "median", "q975"]  # of other draws, as the data have another digest
    assert moved[known].to_numpy(float) / unit == pytest.approx(usual[known].to_numpy(float), rel=0.1)
    assert moved["mcse_sd"] / unit == pytest.approx(usual["mcse_sd"], rel=0.5)


def test_monte_carlo_errors_have_the_unit_of_the_draws():
    draws = rng.normal(size=(4, 100, 2)) * [1e-200, 1.0]
    for method, prob in (("mean", None), ("sd", None), ("quantile", 0.9)):
        errors = diagnostics.mcse(draws, method, prob)
        expected = [
            diagnostics.mcse(draws[..., 0] * 1e200, method, prob),
            diagnostics.mcse(draws[..., 1], method, prob),
        ]
        assert errors / [1e-200, 1.0] == pytest.approx(np.array(expected, dtype=float), rel=1e-9)
