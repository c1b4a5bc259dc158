"""Bayesian PCA by samplers: the prior as declared, evidence and moments against quadrature, gates on real data."""

import json

import numpy as np
import pymc as pm
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.inference.engine.density import Density
from bayeszoo.results import matched
from tests.factor_oracles import by_quadrature

MODEL, PPCA = bz.find("bayesian_pca"), bz.find("ppca")
IRIS, AIR = bz.example(MODEL, "iris"), bz.example(MODEL, "airquality")
NAMES = np.array(list("abcdefgh"))


def planted(rank, columns=5, rows=100, seed=0):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(columns, columns)))[0][:, :rank] * np.linspace(3, 2, rank)
    Y = rng.normal(size=(rows, rank)) @ W.T + 0.5 * rng.normal(size=(rows, columns))
    return {"Y": Y, "column": NAMES[:columns]}


def gate(tree):
    return {name: check for name, check in json.loads(tree.attrs["gate"])["checks"].items() if not check["passed"]}


def prior_differs(model, declared, draws=3000):
    """Smallest p of Kolmogorov and Smirnov between PyMC's draws of the prior and simulated ones, in W W' too."""
    rng = np.random.default_rng(0)
    names = [variable.name for variable in declared.free_RVs]
    theirs = dict(zip(names, pm.draw(declared.free_RVs, draws, random_seed=1, mode="FAST_COMPILE"), strict=True))
    ours = [model.simulate(rng, 1)[0] for _ in range(draws)]
    ours = {name: np.array([one[name] for one in ours]) for name in names}
    for found in (theirs, ours):
        found["gram"] = found["loadings"] @ found["loadings"].mT
        found["scaled"] = found["loadings"] * np.sqrt(found["alpha"])[:, None]
    flat = [np.concatenate([found[name].reshape(draws, -1) for name in theirs], axis=1) for found in (theirs, ours)]
    return min(scipy.stats.ks_2samp(*pair).pvalue for pair in zip(*(one.T for one in flat), strict=True))


def test_prior_of_what_is_sampled_is_the_declared_one_and_a_wrong_one_is_seen():
    model = MODEL(q=2, m0=1.0, s0=2.0, a0=3.0, b0=2.0, c0=3.0, d0=2.0)
    data = {"Y": np.zeros((3, 4)), "column": NAMES[:4]}
    for declared in (model.declare(data), model.compressed(model.statistics(data))):
        assert prior_differs(model, declared) > 1e-5
    with pm.Model() as wrong:  # the precision taken for a variance
        pm.Normal("mean", 1.0, 2.0, shape=4)
        alpha = pm.Gamma("alpha", 3.0, 2.0, shape=2)
        pm.Normal("loadings", 0.0, pm.math.sqrt(alpha) * np.ones((4, 2)))
        pm.InverseGamma("variance", 3.0, 2.0)
    assert prior_differs(model, wrong) < 1e-5


def test_statistics_are_the_sampled_density_of_a_thousand_rows_and_of_a_million():
    few = planted(2)
    model = MODEL.weak(few)
    stats = model.statistics(few)
    x = None
    for factor in (1.0, 1e4):
        density = Density(model.compressed(stats.discounted(factor)))
        x = density.start + 0.1 if x is None else x
        point = {name: values for name, values in density.constrain(x).items()}
        expected = factor * float(model.log_likelihood(stats, point)) + float(model.log_prior(point, stats))
        assert density.constrained_joint(x)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_sequential_monte_carlo_and_nuts_agree_with_quadrature():
    rng = np.random.default_rng(0)
    Y = 1 + rng.normal(size=(12, 1)) @ [[1.0, 0.6]] + 0.5 * rng.normal(size=(12, 2))
    model = MODEL(q=1, m0=1.0, s0=2.0, a0=2.0, b0=1.0, c0=3.0, d0=1.0)
    data = {"Y": Y, "column": NAMES[:2]}
    evidence, variance = by_quadrature(model, Y)
    smc = bz.fit(model, data, "smc", seed=1)
    facts = json.loads(smc.attrs["facts"])
    assert abs(facts["log_evidence"] - evidence) < 4.4 * facts["log_evidence_mcse"] + 0.02
    nuts = bz.fit(model, data, "nuts", seed=1)
    assert not gate(nuts)
    found = bz.summarize(nuts)["variance"]
    assert abs(found["mean"] - variance) < 4.4 * found["mcse_mean"]
    assert abs(1.1 * found["mean"] - variance) > 4.4 * found["mcse_mean"]


@pytest.fixture(scope="module")
def iris():
    return bz.fit(MODEL.weak(IRIS), IRIS, "nuts", seed=1)


@pytest.mark.slow
def test_nuts_passes_its_gate_on_iris_and_finds_its_eigenvalues(iris):
    assert not gate(iris)
    assert iris.attrs["declared_from"] == "sufficient statistics"
    sample = np.linalg.eigvalsh(np.cov(IRIS["Y"].T))[::-1][:3]
    found = iris["derived"]["eigenvalues"].quantile([0.005, 0.995], ("chain", "draw")).to_numpy()
    assert np.all((found[0] < sample) & (sample < found[1]))


@pytest.mark.slow
def test_parameters_without_factors_are_shown_where_single_factors_are_withheld(iris):
    facts, shown = json.loads(iris.attrs["facts"]), bz.summarize(iris)
    assert "what factor" in facts["components_withheld"]
    assert shown["loadings"]["mean"] is None
    assert shown["alpha"]["mean"] is None
    assert shown["variance"]["mean"] == pytest.approx(0.025, abs=0.002)
    assert shown["mean"]["mean"] == pytest.approx(IRIS["Y"].mean(axis=0), abs=0.02)


@pytest.mark.slow
def test_nuts_passes_its_gate_on_airquality_whose_missing_numbers_are_integrated_out():
    tree = bz.fit(MODEL.weak(AIR), AIR, "nuts", seed=1)
    assert not gate(tree)
    assert np.isnan(AIR["Y"]).sum() == 44


@pytest.mark.slow
def test_advi_and_variational_bayes_are_withheld_where_their_weights_say_so(iris):
    for method in ("advi", "vb"):
        tree = bz.fit(MODEL.weak(IRIS), IRIS, method, seed=1)
        assert gate(tree).keys() == {"k_hat"}
        elbo = json.loads(tree.attrs["facts"])["elbo"]
        assert -480 < elbo < -430  # below the log evidence, about -437 by sequential Monte Carlo


@pytest.mark.slow
def test_fits_are_matched_in_order_and_signs(iris):
    other = bz.fit(MODEL.weak(IRIS), IRIS, "em", seed=3)
    draws = {str(name): values.to_numpy() for name, values in other["posterior"].data_vars.items()}
    moved = {"loadings": draws["loadings"][..., [2, 0, 1]] * [1.0, -1.0, -1.0], "alpha": draws["alpha"][..., [2, 0, 1]]}
    mixed = matched._with_draws(other, draws | moved, np.arange(3), other)
    found = matched.matched([other, mixed])[1]["posterior"]
    assert all(np.array_equal(found[name].to_numpy(), draws[name]) for name in draws)


@pytest.mark.slow
def test_bic_and_held_out_rows_find_the_planted_rank():
    for seed in range(3):
        for rank in (1, 2, 3):
            data = planted(rank, seed=seed)
            table = bz.select(bz.components(PPCA.weak(data), range(1, 5)), data, loo=False)
            assert table.loc[table["bic"].idxmin(), "components"] == rank
            best = table.set_index("components")["kfold"].sort_index()
            assert best.idxmax() == rank or best.max() - best[rank] < 1.5  # one more factor costs little
            assert best.loc[: rank - 1].max() < best[rank] - 10 if rank > 1 else True
            assert set(table["kfold_from"]) == {"plug-in of the MLE"}


def test_select_from_the_command_line_by_numbers_of_factors(run, tmp_path):
    rows = "\n".join(",".join(f"{v:.3f}" for v in row) for row in planted(2)["Y"])
    (tmp_path / "data.csv").write_text("a,b,c,d,e\n" + rows + "\n")
    code, out, _ = run("select", tmp_path / "data.csv", "-c", "ppca", "--components", "1-3")
    assert code == 0
    assert all(f"q={q}" in out for q in (1, 2, 3))
