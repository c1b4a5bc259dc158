"""Sampling mixtures: chains begin at every mode, are judged without labels, and aligned afterwards; odd requests."""

import json
import math

import numpy as np
import pytest
import xarray as xr

import bayeszoo as bz
from bayeszoo.comparison import criteria
from bayeszoo.comparison.compare import fit_each
from bayeszoo.contract.sampler import largest_quartile_z
from bayeszoo.inference.labels.align import inverse, permute
from bayeszoo.inference.labels.symmetry import label_free, labelled
from bayeszoo.inference.methods import em, vb
from bayeszoo.inference.methods.enumeration import Enumeration
from bayeszoo.inference.methods.runs import Settings, _initial_points, shared_out
from bayeszoo.inference.problem import Problem
from bayeszoo.inference.starts import Start, starts
from bayeszoo.report.text import tables
from bayeszoo.report.text.tables import figures
from bayeszoo.results.matched import matched
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document

GAUSSIAN = bz.find("gaussian_mixture")
FAITHFUL = bz.example(GAUSSIAN)


def rows(*values):
    return bz.read(GAUSSIAN, {"Y": np.array(values, dtype=np.float64)[:, None], "column": ["y"]})


def draws_of(tree, group="posterior"):
    return {name: values.to_numpy() for name, values in tree[group].data_vars.items()}


OVERLAPPING = rows(-1.6, -1.2, -0.4, 0.3, 1.1, 1.9)
TWO_WAYS = rows(-5, -5.2, 0, 0.1, 5, 5.1)
"""Three clumps for two components: the middle one goes to either side."""
PRIOR = GAUSSIAN(K=2, kappa0=0.05)


@pytest.fixture(scope="module")
def fits():
    """Old Faithful by four methods."""
    model = GAUSSIAN.weak(FAITHFUL)
    return {method: bz.fit(model, FAITHFUL, method, seed=1, groups=()) for method in ("map", "vb", "advi", "nuts")}


@pytest.mark.usefixtures("unmeasured")
def test_methods_beside_each_other_search_and_declare_once_and_give_what_each_gives_alone(monkeypatch):
    climbed, declared = [], []
    climbs, declare = em.climbs, GAUSSIAN.compiled
    monkeypatch.setattr(em, "climbs", lambda *args, **options: climbed.append(args) or climbs(*args, **options))
    monkeypatch.setattr(GAUSSIAN, "compiled", lambda model, data: declared.append(data) or declare(model, data))
    beside = fit_each(PRIOR, TWO_WAYS, ["map", "laplace", "advi"], seed=1)
    assert (len(climbed), len(declared)) == (1, 1)
    for tree in beside:
        alone = bz.fit(PRIOR, TWO_WAYS, tree.attrs["method"], seed=1)
        for name, draws in draws_of(alone).items():
            np.testing.assert_array_equal(draws_of(tree)[name], draws)
    assert (len(climbed), len(declared)) == (4, 3)  # MAP declares nothing


@pytest.mark.slow
def test_nuts_agrees_with_enumeration_where_its_gate_passes():
    tree = bz.fit(PRIOR, OVERLAPPING, "nuts", seed=1)
    exact = PRIOR.invariants(Enumeration.of(PRIOR, OVERLAPPING).draw((4, 5000), np.random.default_rng(0)), OVERLAPPING)
    assert tree.attrs["status"] == "ok"
    assert largest_quartile_z(draws_of(tree, "invariants"), exact) < 4.4
    other = {name: values + 0.2 * values.std() for name, values in exact.items()}
    assert largest_quartile_z({name: values[:, :1000] for name, values in other.items()}, exact) > 4.4


@pytest.mark.slow
def test_two_modes_that_chains_do_not_travel_between_do_not_pass():
    some = [Start(np.zeros(1)) for _ in range(6)]
    shares = {1: [4], 3: [2, 1, 1], 6: [1, 1, 1, 1]}
    assert all([count for _, count in shared_out(some[:n], 4)] == counts for n, counts in shares.items())
    modes = starts(Problem(PRIOR, TWO_WAYS, np.random.default_rng(0)))
    tree = bz.fit(PRIOR, TWO_WAYS, "nuts", seed=1, extend=False)
    exact = Enumeration.of(PRIOR, TWO_WAYS).coclustering
    assert exact[0, 2] == pytest.approx(0.47, abs=0.05)  # both modes matter
    assert len(modes) >= 2
    assert tree.attrs["status"] == "failed"


def test_methods_agree_on_old_faithful(fits):
    statuses = {method: tree.attrs["status"] for method, tree in fits.items()}
    assert {statuses[method] for method in ("map", "nuts")} == {"ok"}
    assert set(statuses.values()) <= {"ok", "caution"}
    means = {method: tree["posterior"].to_dataset().mean(("chain", "draw")) for method, tree in fits.items()}
    sd = fits["nuts"]["posterior"].to_dataset().std(("chain", "draw"))
    for method in ("vb", "advi"):
        for name in ("weights", "means"):
            assert np.max(np.abs(means[method][name] - means["nuts"][name]) / sd[name]) < 0.2
    assert np.max(np.abs(means["map"]["means"] - means["nuts"]["means"]) / sd["means"]) < 0.3
    evidence = {m: json.loads(tree.attrs["facts"]) for m, tree in fits.items()}
    model = GAUSSIAN.weak(FAITHFUL)
    log_evidence = criteria.estimate(model, FAITHFUL, np.random.default_rng(0)).log_evidence
    assert max(facts["elbo"] for facts in evidence.values() if "elbo" in facts) < log_evidence


def test_raw_and_aligned_draws_are_both_kept_and_the_permutation_undoes_itself(fits):
    tree, model = fits["nuts"], GAUSSIAN.weak(FAITHFUL)
    permutation = tree["labels"]["permutation"].to_numpy()
    aligned, raw = draws_of(tree), draws_of(tree, "unaligned")
    back = permute(model, aligned, inverse(permutation))
    assert all(np.array_equal(back[name], raw[name]) for name in raw)
    assert permutation.shape == (4, 1000, 2)


def test_label_switching_in_raw_draws_does_not_matter(fits):
    """Draws whose labels switch at random fail as they are, pass without labels, and are put right by alignment."""
    model, rng = GAUSSIAN.weak(FAITHFUL), np.random.default_rng(0)
    aligned = draws_of(fits["nuts"])
    flips = np.where(rng.random((4, 1000, 1)) < [[[0.1]], [[0.9]], [[0.5]], [[0.3]]], [0, 1], [1, 0])
    switched = permute(model, aligned, flips)
    posterior = xr.Dataset({"weights": (("chain", "draw", "component"), switched["weights"])})
    r_hat = {check.name: check for check in bz.gate(xr.DataTree.from_dict({"posterior": posterior}))}["r_hat"]
    assert not r_hat.passed
    free, before = (label_free(model, draws, FAITHFUL) for draws in (switched, aligned))
    assert all(np.allclose(free[name], before[name], rtol=1e-9) for name in free)
    assert np.array_equal(labelled(model, switched, FAITHFUL, "sampled").draws["means"], aligned["means"])


def test_a_saturated_probability_is_no_stuck_chain():
    data = rows(*np.linspace(-100, -99, 10), *np.linspace(99, 100, 10))
    draws = PRIOR.vb_posterior(vb.climbs(PRIOR, data, np.random.default_rng(0)).best.state)
    free = label_free(PRIOR, draws.rvs((4, 50), np.random.default_rng(0)), data)
    assert free["together"].shape[2] == 0
    assert free["log_likelihood"].shape == (4, 50, 1)


def turned(tree):
    """Return a copy of a fit whose two components have changed numbers in every draw."""
    other, posterior = tree.copy(), tree["posterior"].to_dataset()
    values = draws_of(tree)
    moved = permute(GAUSSIAN.weak(FAITHFUL), values, np.tile([1, 0], (*values["weights"].shape[:2], 1)))
    other["posterior"] = xr.DataTree(posterior.assign({k: (posterior[k].dims, v) for k, v in moved.items()}))
    return other


def test_a_fit_that_is_numbered_as_another_says_so(fits):
    facts = {**json.loads(fits["nuts"].attrs["facts"]), "label_stability": [0.9, 0.8]}
    swapped = turned(fits["nuts"])
    swapped.attrs["facts"] = json.dumps(facts)
    first = matched([Fit(turned(fits["map"])), Fit(fits["nuts"])])[0]  # the draws are the best, wherever they stand
    assert np.array_equal(first.tree["posterior"]["means"], fits["map"]["posterior"]["means"])
    again = matched([Fit(fits["nuts"]), Fit(swapped)])[1]
    assert np.array_equal(again.tree["posterior"]["means"], fits["nuts"]["posterior"]["means"])
    facts = again.facts
    assert (facts["label_stability"], facts["numbered_as"]) == ([0.8, 0.9], "nuts")
    assert "components sorted as by nuts; label agreement between draws: 0.8, 0.9" in figures(document(again))


def test_components_that_are_not_one_thing_are_withheld(fits):
    """Three components for one clump: what a row's density is, is known; which component is which, is not."""
    data = bz.read(GAUSSIAN, {"Y": np.random.default_rng(1).normal(size=(40, 1)), "column": ["y"]})
    model = GAUSSIAN(K=3, kappa0=1.0)
    wide = model.vb_posterior(model.vb_m_step(model.expected_statistics(np.full((40, 3), 1 / 3), data)))
    labels = labelled(model, wide.rvs((4, 500), np.random.default_rng(0)), data, "sampled")
    assert "do not agree which rows are of component" in labels.withheld
    tree = fits["nuts"].copy()
    tree.attrs["facts"] = json.dumps({**json.loads(tree.attrs["facts"]), "components_withheld": "because"})
    assert bz.summarize(tree)["means"]["mean"] is None
    assert bz.summarize(tree)["means"]["r_hat"] is not None


@pytest.mark.slow
def test_sampling_with_pymc_begins_at_the_modes_too():
    problem = Problem(GAUSSIAN.weak(FAITHFUL), FAITHFUL, np.random.default_rng(0))
    points = _initial_points(problem, Settings(100, 100, 4, 0.8))["initvals"]
    assert len(points) == 4
    assert all(np.sort(point["weights"]) == pytest.approx([0.36, 0.64], abs=0.15) for point in points)
    tree = bz.fit(PRIOR, OVERLAPPING, "nuts", seed=1, sampler="pymc", draws=50, tune=50, extend=False)
    assert dict(tree["posterior"].sizes)["chain"] == 4


@pytest.mark.slow
def test_one_component_is_sampled_although_its_weight_cannot_move():
    tree = bz.fit(GAUSSIAN(K=1), OVERLAPPING, "nuts", seed=1, extend=False)
    exact = Enumeration.of(GAUSSIAN(K=1), OVERLAPPING).draw((4, 5000), np.random.default_rng(0))["means"]
    assert tree.attrs["status"] == "ok"
    assert largest_quartile_z({"means": tree["posterior"]["means"].to_numpy()}, {"means": exact}) < 4.4


DOCUMENTS = "a,b,c\n3,0,0\n4,0,0\n0,5,0\n0,6,0\n"
NEW = "a,b,c\n1,0,0\n1,2,0\n0,0,1\n"


@pytest.fixture
def fitted(tmp_path, run):
    """Topics of one word each; no topic has the third word, and no document two of them."""
    (tmp_path / "documents.csv").write_text(DOCUMENTS)
    (tmp_path / "new.csv").write_text(NEW)
    options = ("--columns", "a,b,c", "--method", "mle", "--seed", "1", "-o", tmp_path / "fit.nc")
    code, _, err = run("fit", "multinomial_mixture", tmp_path / "documents.csv", *options)
    assert code == 0, err
    return tmp_path


def test_a_row_that_no_component_can_give_has_no_probabilities(fitted):
    tree = bz.load(fitted / "fit.nc")
    found = bz.assign(tree, {"a": [1, 1, 0], "b": [0, 2, 0], "c": [0, 0, 1]})
    assert found.attrs["impossible"] == [2, 3]
    assert found.attrs["expected_errors"] == 0
    assert np.isfinite(found.loc[1, ["component", "expected_loss", "p[1]", "p[2]"]].astype(float)).all()
    assert found.loc[[2, 3]].isna().all(axis=None)
    predicted = bz.predict(tree, {"a": [1, 1], "b": [0, 2], "c": [0, 0]})
    assert np.isneginf(predicted["log_score"].xs(2)).all()
    assert predicted["component"].xs(2).isna().all()


def test_the_command_withholds_it_and_says_why(fitted, run):
    code, out, _ = run("assign", fitted / "fit.nc", fitted / "new.csv")
    assert code == 0
    assert "Expected number of rows with a wrong label: 0 of 1." in out
    assert "Withheld: rows 2, 3, which no component can give" in out
    rows = json.loads(run("assign", fitted / "fit.nc", fitted / "new.csv", "--json")[1])["rows"]
    assert rows[1]["p[1]"] is None
    assert rows[1]["component"] is None


def test_text_needs_no_quotes(run):
    code, out, _ = run("fit", "gaussian_mixture", "--method", "map", "--seed", "1", "--set", "covariance=diagonal")
    assert code == 0
    assert "covariance=diagonal" in out
    assert run("fit", "gaussian_mixture", "--method", "map", "--set", 'covariance="diagonal"', "--seed", "1")[0] == 0
    code, _, err = run("fit", "gaussian_mixture", "--method", "map", "--set", "covariance=diag")
    assert code == 2
    assert "there is no covariance 'diag'" in err


@pytest.mark.parametrize(("k_hat", "said"), [(-math.inf, "none, as all weights are equal"), (0.41234, "0.412")])
def test_equal_weights_have_no_k_hat(k_hat, said):
    document = {"log_evidence": None, "elbo": -3.0, "log_likelihood": None, "exact": None, "kind": "approximate"}
    lines = tables.figures({**document, "status": "ok", "facts": {"elbo_se": 0.0, "k_hat": k_hat}})
    assert lines[0].endswith(f"k-hat {said}")


@pytest.mark.slow
def test_the_command_says_that_predictions_by_enumeration_are_from_draws(tmp_path, run):
    (tmp_path / "few.csv").write_text("x\n0\n0.5\n4\n5\n")
    options = ("--method", "enumerate", "--seed", "1", "-o", tmp_path / "fit.nc")
    assert run("fit", "gaussian_mixture", tmp_path / "few.csv", *options)[0] == 0
    code, out, _ = run("predict", tmp_path / "fit.nc", tmp_path / "few.csv")
    assert code == 0
    assert "(draws of the exact posterior)" in out
