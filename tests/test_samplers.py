"""Samplers of other libraries by name: their draws of a correlated Gaussian pass; the page about a benchmark."""

import json
from pathlib import Path

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.tools.references.benchmark import target_of
from bayeszoo.tools.references.samplers import SAMPLERS
from tests.refusals import raises
from tests.test_benchmark import gaussian, metropolis

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import samplers


@pytest.mark.slow  # compiles and samples with libraries that are not needed else
@pytest.mark.parametrize("name", ["blackjax", "emcee", "numpyro", "nutpie", "pymc"])
def test_each_library_draws_a_correlated_gaussian(name):
    result = bz.benchmark(name, [gaussian()], budget=60_000)
    assert (result.verdict, result.sampler) == ("right", name), result.table.to_string()
    assert 1_000 < result.table["calls"].iloc[0] < 61_000


def test_names_of_samplers_that_cannot_be_are_refused(monkeypatch):
    with raises(bz.InputError, "unknown_name", "emcee"):
        bz.benchmark("stan", [gaussian()])
    monkeypatch.setitem(__import__("sys").modules, "blackjax", None)
    with raises(bz.InputError, "not_installed", "pip install blackjax"):
        bz.benchmark("blackjax", [gaussian()])


def independent(log_density, dim, init, seed, budget):
    draws = np.random.default_rng(seed).multivariate_normal(np.zeros(dim), [[1.0, 0.7], [0.7, 1.0]], (4, budget // 4))
    return draws, np.log(2 * np.pi) + np.log(1 - 0.7**2) / 2 + 0.01


def test_quantities_and_the_error_of_the_evidence_are_those_of_the_draws():
    target = bz.Target(*[getattr(gaussian(), name) for name in ("name", "log_density", "draws")], 1.50124)
    result = bz.benchmark(independent, [target], budget=8_000, seed=3)
    draws, log_evidence = independent(None, 2, None, 3, 8_000)
    first = result.quantities.loc[("gaussian", "x[1]")]
    own, known = draws[..., 0].ravel(), target.draws[:, 0]
    assert first["bias"] == pytest.approx((own.mean() - known.mean()) / known.std())
    assert first["sd_ratio"] == pytest.approx(own.std() / known.std())
    assert first["above_q975"] == pytest.approx(np.mean(own > np.quantile(known, 0.975)))
    assert abs(first["bias_z"]) == pytest.approx(abs(first["bias"]) / np.hypot(1 / 8_000**0.5, 0.01), rel=0.1)
    assert result.table["evidence_error"].iloc[0] == pytest.approx(log_evidence - 1.50124)


def test_quantities_are_named_parameters_where_the_target_has_them():
    def parameters(points):
        return {"scale": np.exp(points[..., 0]), "shift": points + 5}

    plain = gaussian()
    target = bz.Target(plain.name, plain.log_density, plain.draws, parameters=parameters)
    table = bz.benchmark(independent, [target], budget=8_000, seed=3).quantities.loc["gaussian"]
    assert table.index.tolist() == ["scale", "shift[1]", "shift[2]"]
    own, known = np.exp(independent(None, 2, None, 3, 8_000)[0][..., 0]), np.exp(plain.draws[:, 0])
    assert table.loc["scale", "bias"] == pytest.approx((own.mean() - known.mean()) / known.std())


def test_targets_by_name_have_the_parameters_of_the_model():  # compiles: its density maps coordinates to parameters
    target = target_of("placenta_previa-beta_bernoulli")
    theta = target.parameters(target.draws)["theta"]
    np.testing.assert_allclose(theta, 1 / (1 + np.exp(-target.draws[:, 0])), rtol=1e-12)


def test_the_page_names_targets_whose_draws_are_wrong(tmp_path):
    result = bz.benchmark(metropolis(temper=0.7), [gaussian()])
    text = bz.report(result, tmp_path / "page.html").read_text()
    assert "Its draws are not of the targets named below. gaussian." in text
    assert '"verdict": "wrong"' in text


@pytest.mark.slow  # samples with NumPyro
@pytest.mark.filterwarnings("ignore")  # of the libraries: this test is of the file they write
def test_a_file_of_numpyro_is_judged(tmp_path):
    import arviz
    import jax
    from numpyro import distributions, infer, sample

    def line(x, y):
        slope, scale = sample("slope", distributions.Normal(0, 10)), sample("scale", distributions.HalfNormal(5))
        sample("y", distributions.Normal(slope * x, scale), obs=y)

    x = np.linspace(-1, 1, 30)
    y = 2 * x + np.random.default_rng(1).normal(size=30)
    chains = infer.MCMC(infer.NUTS(line), num_warmup=500, num_samples=500, num_chains=4, progress_bar=False)
    chains.run(jax.random.key(1), x, y)
    arviz.from_numpyro(chains).to_netcdf(tmp_path / "line.nc")
    answer = bz.judge(tmp_path / "line.nc")
    assert (answer.verdict, answer.advice) == ("ok", ())
    assert answer.quantities.loc["slope", "mean"] == pytest.approx(x @ y / (x @ x), abs=0.1)


def test_the_table_of_the_guide_is_that_of_the_results():
    results = json.loads(samplers.RESULTS.read_text())
    assert sorted(results) == sorted(SAMPLERS)
    _, _, rest = samplers.PAGE.read_text().partition(samplers.MARKS[0])
    head, _, *rows = [
        line.strip("| ").split(" | ") for line in rest.partition(samplers.MARKS[1])[0].strip().splitlines()
    ]
    assert [row[0].strip("`") for row in rows] == [*samplers.TARGETS]
    for target, _, *cells in rows:
        assert cells == [samplers._cell(results[name][target.strip("`")]) for name in head[2:]]
