"""Hidden Markov models by every engine and at their edges: huge counts, maxima that are no points, evidence, scores."""

import json
import math
from dataclasses import replace
from importlib import resources
from pathlib import Path

import mpmath as mp
import numpy as np
import pandas as pd
import pytensor
import pytensor.tensor as pt
import pytest
from arviz_stats.base import array_stats
from scipy import special, stats

import bayeszoo as bz
from bayeszoo.comparison import criteria
from bayeszoo.contract.latent import sampler_checks
from bayeszoo.data.read import example
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.hmm import emissions
from bayeszoo.families.hmm import model as hmm_model
from bayeszoo.families.hmm.emissions import distinct
from bayeszoo.inference.labels.align import align
from bayeszoo.likelihoods.ops.hmm import hmm_poisson_log_likelihood
from tests.own_models.hmm_example import HMMExample
from tests.refusals import raises
from tests.test_hmm_models import (
    CASINO,
    CATEGORICAL,
    FEW,
    GAUSSIAN,
    NAMES,
    POISSON,
    log_joint,
    one_check,
    rows,
    symbols,
)

peers = pytest.importorskip("hmmlearn.hmm")  # which has no wheel for Python 3.14 yet

REFERENCE = Path(__file__).parent / "own_models" / "hmm_example.json"


@pytest.mark.slow
def test_nuts_on_the_dice_passes_its_gate():
    data = example(CATEGORICAL)
    tree = bz.fit(CATEGORICAL.weak(data), data, "nuts", seed=1)
    assert tree.attrs["status"] == "ok"
    # the sixes of one die and of the other, in order, do not depend on labels
    sixes = tree["invariants"]["sorted_emission"].to_numpy()[..., 5]
    assert sixes[..., 0].mean() < 0.16 < 0.4 < sixes[..., 1].mean()


def test_the_dice_are_the_published_simulation():
    rng, state, made = np.random.default_rng(1), 0, []
    tables = np.array(CASINO["transition"]), np.array(CASINO["emission"])
    for t in range(300):
        state = rng.choice(2, p=tables[0][state]) if t else 0
        made.append((rng.choice(6, p=tables[1][state]) + 1, ("fair", "loaded")[state]))
    file = pd.read_csv(resources.files("bayeszoo.models.data") / "dice.csv")
    assert made == list(file.itertuples(index=False, name=None))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nuts_agrees_with_the_sum_over_all_paths(name):
    for check in sampler_checks(bz.find(name), None, 0):
        assert check.passed, str(check)


@pytest.mark.slow
def test_posteriordbs_reference_is_met():
    stored = json.loads(REFERENCE.read_text())
    tree = bz.fit(HMMExample(), {"y": np.array(stored["data"]["y"])}, "nuts", seed=1)
    assert tree.attrs["status"] == "ok"
    theta, mu = (tree["posterior"][name].to_numpy() for name in ("theta", "mu"))
    draws = {f"theta{i + 1}[{j + 1}]": theta[..., i, j] for i in range(2) for j in range(2)}
    draws |= {f"mu[{k + 1}]": mu[..., k] for k in range(2)}
    assert {row["parameter"] for row in stored["reference"]} == set(draws)
    for row in stored["reference"]:
        values = draws[row["parameter"]]
        mcse = array_stats.mcse(values, method="mean", chain_axis=0, draw_axis=1)
        error = np.hypot(mcse, float(row["sd"]) / np.sqrt(int(row["n_draws"])))
        assert abs(values.mean() - float(row["mean"])) <= 4.4 * error, row
        assert values.std() == pytest.approx(float(row["sd"]), rel=0.15)


# What rows that are not independent do not have


@pytest.mark.slow
def test_what_needs_independent_rows_says_so_and_states_of_new_rows_are_known():
    data = example(POISSON)
    model = POISSON.weak(data)
    tree, mode = (bz.fit(model, data, method, seed=1) for method in ("nuts", "em"))
    with raises(InputError, "no_row_law", "hmm_poisson"):
        bz.predictive_check(tree)
    assert bz.residuals(mode)["basis"].str.startswith("one step ahead").all()
    with raises(InputError, "no_closed_form", "hmm_poisson"):
        bz.empirical_bayes(model, data)
    table = bz.select([tree])
    assert table["loo_from"][0].startswith(("PSIS", "withheld: k-hat"))  # which is near its limit: .72 by this seed
    assert np.isnan(table["kfold"][0])
    assert bz.compare([tree, mode]).set_index("fit").loc["em", "loo_score"].isna().all()
    assert bz.assign(tree, {"y": [3, 2, 45, 40]})["component"].tolist() == [1, 1, 2, 2]


def test_labels_of_a_long_series_are_aligned_by_rows_in_their_order():
    rng, model = np.random.default_rng(0), POISSON(K=2)
    data = rows(rng.poisson(np.repeat([1.0, 6.0], 1500)))
    params = {
        "initial": np.full((1, 3, 2), 0.5),
        "transition": np.tile([[0.99, 0.01], [0.01, 0.99]], (1, 3, 1, 1)),
        "rates": np.array([[[1.0, 6.0], [6.0, 1.0], [1.0, 6.0]]]),
    }
    found = align(model, params, data)
    first, second = found.permutations[0, :2]
    assert first.tolist() == second[::-1].tolist()
    chosen = np.sort(np.random.default_rng(0).choice(3000, 1000, replace=False, shuffle=False))
    every = model.component_probabilities({name: values[0, 0] for name, values in params.items()}, data)
    assert np.allclose(found.responsibilities, every[chosen][:, first], atol=1e-9)


# Seeded bugs: each must be seen


def fails(identity, model, data):
    try:
        return not one_check(identity, model, data).passed
    except NumericalError:  # as a climb that falls
        return True


def patched(owner, name, wrong):
    """Return a bug: a step that is ``wrong`` of the true one."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))


def masked_symbols_are_the_last(monkeypatch):
    monkeypatch.setattr(Categorical, "_of_rows", lambda self, log_p, rows: log_p.T[rows["y"]])
    monkeypatch.setattr(emissions, "distinct_values", lambda block, y: None)


def without_sticky(true):
    return lambda name, alpha, known=None: true(name, np.full_like(alpha, alpha.min()), known)


def with_pseudo_counts(true):
    return lambda self, stats: true(self, stats if self.axes else replace(stats, counts=stats.counts + 1))


def transposed(true):
    return lambda *given: (found := true(*given))._replace(transition=found.transition.T)


def without_first_states(true):
    return lambda *given: (0 * (found := true(*given))[0], found[1])


def with_deviations(true):
    return lambda self, params, rows: true(self, {**params, "variances": params["variances"] ** 2}, rows)


def with_scale(true):
    return lambda self, params: stats.gamma.logpdf(params["rates"], self.a, scale=self.b)


def with_a_label(true):
    return lambda self, params, data: {**true(self, params, data), "stay": np.asarray(params["transition"])[..., 0, 0]}


TWO = {name: (model, {**data, "sequence": np.array([0, 0, 0, 1, 1])}) for name, (model, data) in FEW.items()}
PRIOR = CATEGORICAL(alpha=1.5, beta=1.8, sticky=2.0, eta=1.4)
LONG = PRIOR, symbols(np.random.default_rng(5).integers(0, 3, 60))
PARTS = PRIOR, TWO["hmm_categorical"][1]
MASKED = PRIOR, {**FEW["hmm_categorical"][1], "y": np.array([0, 2, -1, 1, 0])}
more_counts = patched(Categorical, "updated", with_pseudo_counts)
glued = patched(hmm_model, "starts", lambda true: lambda sequence: np.array([0]))
no_exchange = patched(hmm_model.HiddenMarkovModel, "invariants", with_a_label)
no_divergence = patched(
    Categorical, "divergence", lambda true: lambda self, prior: 0.0 if self.column == "y" else true(self, prior)
)
BUGS = {
    "transposed": (patched(emissions, "smoothed", transposed), "em_map_is_stationary", LONG),
    "first states forgotten": (patched(hmm_model, "path_counts", without_first_states), "enumerated_candidate", PARTS),
    "glued": (glued, "em_objective", PARTS),
    "pseudo-counts too many": (more_counts, "em_map_is_stationary", LONG),
    "bound without the emissions": (no_divergence, "one_component", PARTS),
    "masked symbols are the last": (masked_symbols_are_the_last, "em_objective", MASKED),
    "variance for deviation": (patched(Normal, "log_density", with_deviations), "em_objective", TWO["hmm_gaussian"]),
    "rate read as scale": (patched(Poisson, "log_each", with_scale), "em_objective", TWO["hmm_poisson"]),
    "states not exchanged": (no_exchange, "labels_mean_nothing", LONG),
}


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "identity", "case"), BUGS.values(), ids=BUGS)
def test_seeded_bugs_are_seen(bug, identity, case, monkeypatch):
    assert not fails(identity, *case)
    bug(monkeypatch)
    assert fails(identity, *case)


def test_a_prior_without_sticky_is_seen_by_the_sum_over_paths(monkeypatch):
    model, data = FEW["hmm_categorical"]
    model = replace(model)  # which keeps the tables that it has been asked for, and has not been asked yet
    expected = log_joint("hmm_categorical", model, (0, 0, 1, 1, 1), data["y"], (0,))
    patched(hmm_model, "table", without_sticky)(monkeypatch)  # declaration, simulator and steps all have it, and agree
    assert abs(model.log_joint(np.array([[0, 0, 1, 1, 1]]), data)[0] - expected) > 0.1


HUGE = np.array([10**12, 10**12 + 5, 3, 10**12, 2, 1, 0])
RATES = np.array([2.5, 1e12 + 2.0])
INITIAL, TRANSITION = np.array([0.3, 0.7]), np.array([[0.6, 0.4], [0.2, 0.8]])


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


def log_mass(k, rate):
    return mp.mpf(int(k)) * mp.log(mp.mpf(float(rate))) - mp.mpf(float(rate)) - mp.loggamma(int(k) + 1)


def forward(y, rates):
    """The forward algorithm with 60 digits."""
    alpha = [mp.mpf(p) * mp.exp(log_mass(y[0], rate)) for p, rate in zip(INITIAL, rates, strict=True)]
    for k in y[1:]:
        step = [sum(alpha[i] * mp.mpf(TRANSITION[i, j]) for i in range(2)) for j in range(2)]
        alpha = [p * mp.exp(log_mass(k, rate)) for p, rate in zip(step, rates, strict=True)]
    return mp.log(sum(alpha))


# Counts of 1e12, of whose log mass the terms are near 3e13


@pytest.fixture(scope="module", params=["FAST_COMPILE", pytest.param("NUMBA", marks=pytest.mark.slow)])
def mode(request):
    """PyTensor's ways to evaluate: the loops of our operation called from Python, and compiled with the graph."""
    return request.param


def test_huge_counts_lose_no_digits_in_the_e_step_and_in_the_op_and_its_gradient(mode):
    model, params = POISSON(a=1, b=0.1), {"initial": INITIAL, "transition": TRANSITION, "rates": RATES}
    exact, rates = float(forward(HUGE, RATES)), pt.dvector()
    assert model.e_step(params, bz.read(model, {"y": HUGE})).value == pytest.approx(exact, rel=1e-12)
    value = hmm_poisson_log_likelihood(INITIAL, TRANSITION, rates, *distinct(HUGE), np.array([0]))
    function = pytensor.function([rates], [value, pytensor.grad(value, rates)], mode=mode)
    found, gradient = function(RATES)
    assert found == pytest.approx(exact, rel=1e-12)
    for j, step in enumerate((1e-6, 1e-2)):
        up, down = (RATES + sign * step * np.eye(2)[j] for sign in (1, -1))
        slope = (forward(HUGE, up) - forward(HUGE, down)) / (up[j] - down[j])
        assert gradient[j] == pytest.approx(float(slope), rel=1e-6, abs=1e-14)


def test_the_op_is_right_for_rates_far_from_the_counts(mode):
    rates, y = pt.dvector(), np.array([0, 1, 15, 16, 17, 40])
    value = hmm_poisson_log_likelihood(np.ones(1), np.ones((1, 1)), rates, *distinct(y), np.array([0]))
    function = pytensor.function([rates], value, mode=mode)
    for rate in (1e-300, 0.02, 3.0, 15.9, 16.1, 1e9):
        exact = float(sum(log_mass(k, rate) for k in y))
        assert float(function([rate])) == pytest.approx(exact, rel=1e-13), rate


def test_huge_counts_lose_no_digits_in_sums_over_paths_and_in_variational_bayes():
    a, b, y = 1.5, 0.1, HUGE[:3]
    counts, total = Poisson(("rates",), "y", np.array([a]), np.array([b])), int(y.sum())
    evidence = a * mp.log(b) - mp.loggamma(a) + mp.loggamma(a + total) - (a + total) * mp.log(b + 3)
    evidence -= sum(mp.loggamma(int(k) + 1) for k in y)
    sums = counts.statistics({"y": y}, np.ones((3, 1)))
    assert counts.log_evidence(sums) == pytest.approx(float(evidence), rel=1e-13)
    q = replace(counts, a=np.array([1e12 + 1.5]), b=np.array([1.1]))
    shape, rate = mp.mpf(float(q.a[0])), mp.mpf(float(q.b[0]))
    kl = (shape - a) * mp.digamma(shape) - mp.loggamma(shape) + mp.loggamma(a) + a * mp.log(rate / b)
    assert q.divergence(counts) == pytest.approx(float(kl + shape * (b - rate) / rate), rel=1e-13)
    expected = [int(k) * (mp.digamma(shape) - mp.log(rate)) - shape / rate - mp.loggamma(int(k) + 1) for k in y]
    np.testing.assert_allclose(q.expected_log_density({"y": y})[:, 0], np.array(expected, float), rtol=1e-12)
    x = float(shape / rate) * (1 + 2e-6)
    exact = shape * mp.log(rate) + (shape - 1) * mp.log(x) - rate * mp.mpf(x) - mp.loggamma(shape)
    assert q.log_pairs({"rates": np.array([x])})[0, 0] == pytest.approx(float(exact), abs=1e-8)


@pytest.mark.usefixtures("unmeasured")
def test_variational_bayes_climbs_with_huge_counts():
    tree = bz.fit(POISSON(a=1, b=1e-14), {"y": [10**15, 1]}, method="vb", seed=1)
    assert sorted(np.round(tree["posterior"]["rates"].mean(("chain", "draw")).to_numpy(), -12)) == [0, 1e15]


# Maxima that are no single point


FLAT, APART = POISSON(a=1, b=0.1), POISSON(a=1, b=0.1, transition=np.eye(2).tolist())
STEADY = GAUSSIAN(b0=0.02, a0=1.5, m0=1, kappa0=0.01)


@pytest.mark.parametrize(
    ("model", "y", "method", "why"),
    [
        (FLAT, [0] * 12, "map", ("no_maximum",)),
        (FLAT, [4] * 10, "mle", ("no_maximum",)),
        (APART, [1, 0, 5, 9], "mle", ("no_maximum",)),
        (FLAT, [0, 0, 0, 0, 90], "mle", ("not_converged",)),
        (FLAT, [0, 0, 0, 0, 90], "map", ("not_converged",)),
        (STEADY, [1.0] * 20, "map", ("no_maximum",)),  # a state without rows, whose transitions may be anything
        (GAUSSIAN(K=1), [1.0] * 20, "mle", ("not_converged", "0")),
    ],
)
def test_a_maximum_that_is_no_single_point_is_no_answer(model, y, method, why):
    with raises(NumericalError, *why) as caught:
        bz.fit(model, {"y": y}, method=method, seed=1)
    if "smaller K" in str(caught.value):  # the prior does not decide either
        assert "try map" not in str(caught.value)


def test_a_prior_that_is_not_flat_tells_where_a_state_goes():
    tree = bz.fit(POISSON(a=1, b=0.1, beta=1.1), {"y": [0, 0, 0, 0, 90]}, method="map", seed=1)
    rates = tree["posterior"]["rates"].to_numpy()[0, 0]
    last = tree["posterior"]["transition"].to_numpy()[0, 0, np.argmax(rates)]
    np.testing.assert_allclose(last, 0.5, atol=1e-6)


# Evidence by importance sampling


def estimates(models):
    """Errors of the estimates in their own standard errors."""
    found = [criteria.estimate(model, data, np.random.default_rng(3)) for model, data, _ in models]
    return np.abs([(one.log_evidence - exact) / one.mcse for one, (_, _, exact) in zip(found, models, strict=True)])


@pytest.fixture(scope="module")
def enumerated():
    rng, made = np.random.default_rng(5), []
    sequences = np.array([0] * 6 + [1] * 4)
    for model in (CATEGORICAL(K=2), GAUSSIAN(K=2), POISSON(K=2), CATEGORICAL(K=2, transition=TRANSITION)):
        arrays = model.simulate(rng, 10)[1] | {"sequence": sequences}
        data = bz.read(model, arrays)
        made.append((model, data, bz.enumerate_posterior(model, data).log_evidence))
    return made


@pytest.mark.slow
def test_evidence_by_importance_sampling_agrees_with_sums_over_paths(enumerated):
    assert all(criteria.can_estimate(model) for model, _, _ in enumerated)
    assert not criteria.can_estimate(CATEGORICAL(K=5))
    assert estimates(enumerated).max() < 4.4


BUGS_OF_EVIDENCE = {
    "vb_log_density": lambda true: lambda self, q, params: true(self, q, params) + math.log(2),  # of one order
    "log_likelihoods": lambda true: lambda self, p, data: true(self, p, {**data, "sequence": np.zeros(10, int)}),
}


@pytest.mark.parametrize("step", BUGS_OF_EVIDENCE)
def test_the_comparison_sees_a_bug(enumerated, step, monkeypatch):
    monkeypatch.setattr(CATEGORICAL, step, BUGS_OF_EVIDENCE[step](getattr(CATEGORICAL, step)))
    assert estimates(enumerated[:1]).max() > 4.4


# The next row, and other sequences


def test_the_next_row_after_an_enumeration_is_of_the_last_sequence():
    model, known = CATEGORICAL(K=2, eta=0.7), {"sequence": ["u"] * 4 + ["v"] * 3, "y": list("aabbaba")}
    found = bz.enumerate_posterior(model, known)
    log_p = found.log_predictive(["a", "b"])
    assert np.exp(log_p).sum() == pytest.approx(1, rel=1e-12)
    longer = {"sequence": [*known["sequence"], "v"], "y": [*known["y"], "a"]}
    anew = {"sequence": [*known["sequence"], "w"], "y": [*known["y"], "a"]}
    evidence, other = (bz.enumerate_posterior(model, one).log_evidence for one in (longer, anew))
    assert log_p[0] == pytest.approx(evidence - found.log_evidence, rel=1e-12)
    assert abs(evidence - other) > 1e-3


@pytest.fixture(scope="module")
def few():
    return bz.fit(CATEGORICAL(K=2, transition=TRANSITION), {"y": list("abbabba")}, method="enumerate", seed=1)


@pytest.mark.slow
def test_other_sequences_are_scored_by_their_density_averaged_over_the_draws(few):
    new = {"sequence": ["u", "u", "u", "v"], "y": ["b", "a", None, "b"]}
    about = bz.decode(few, new, missing="mask").attrs
    peer = peers.CategoricalHMM(2, n_features=2)
    peer.transmat_, scores = np.array(TRANSITION), []
    draws = few["posterior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    for initial, emission in zip(draws["initial"].to_numpy(), draws["emission"].to_numpy(), strict=True):
        peer.startprob_, peer.emissionprob_ = initial, emission
        scores.append(peer.score([[1], [0], [1]], [2, 1]))  # a last row that is unknown says nothing
    assert about["log_predictive"] == pytest.approx(special.logsumexp(scores) - np.log(len(scores)), rel=1e-10)
    assert 0 < about["mcse_log_predictive"] < 0.1
    assert "log_predictive" not in bz.decode(few).attrs


def test_the_command_says_that_numbers_of_an_exact_fit_are_from_draws(few, tmp_path, run):
    bz.save(few, tmp_path / "few.nc")
    (tmp_path / "new.csv").write_text("y\nb\na\n")
    code, out, _ = run("decode", tmp_path / "few.nc", tmp_path / "new.csv")
    assert code == 0
    assert "enumerate (draws of the exact posterior)" in out
    assert "at the draw of highest density" in out
    assert "averaged over the draws" in out
