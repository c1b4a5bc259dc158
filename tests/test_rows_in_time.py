"""Rows of hidden Markov models given others, and after the last: against sums over all paths of states."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out
from bayeszoo.model.density import log_density
from bayeszoo.results.stored import Fit
from tests.refusals import raises

INITIAL, TRANSITION = np.array([0.3, 0.7]), np.array([[0.9, 0.1], [0.35, 0.65]])
SEQUENCE = np.array([0, 0, 0, 0, 1, 1, 1])
TABLE = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
CASES = {
    "hmm_categorical": (
        {"emission": TABLE},
        {"y": np.array([0, 2, -1, 1, 2, 2, 0]), "symbol": np.array(["a", "b", "c"])},
        lambda k, y: np.log(TABLE[k, int(y)]),
    ),
    "hmm_poisson": (
        {"rates": np.array([1.0, 6.0])},
        {"y": np.array([0, 7, -1, 2, 9, 4, 1])},
        lambda k, y: stats.poisson([1.0, 6.0][k]).logpmf(y),
    ),
    "hmm_gaussian": (
        {"means": np.array([-1.0, 2.0]), "variances": np.array([0.5, 3.0])},
        {"y": np.array([-1.5, 3.0, np.nan, 0.2, 2.5, -0.4, 1.0])},
        lambda k, y: stats.norm([-1.0, 2.0][k], np.sqrt([0.5, 3.0][k])).logpdf(y),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    emitted, data, log_p = CASES[request.param]
    return (
        bz.find(request.param)(K=2),
        {"initial": INITIAL, "transition": TRANSITION, **emitted},
        {**data, "sequence": SEQUENCE},
        log_p,
    )


def is_missing(y):
    return np.isnan(y) if np.asarray(y).dtype.kind == "f" else y < 0


def evidence(y, sequence, log_p):
    """Return the log density of rows as the sum over all paths."""
    emitted = [[0.0 if is_missing(row) else log_p(k, row) for k in range(2)] for row in y]
    terms = []
    for path in itertools.product(range(2), repeat=len(y)):
        term = 0.0
        for t, k in enumerate(path):
            opens = t == 0 or sequence[t] != sequence[t - 1]
            term += np.log(INITIAL[k] if opens else TRANSITION[path[t - 1], k])
            term += emitted[t][k]
        terms.append(term)
    return special.logsumexp(terms)


def masked(y, t):
    return np.where(np.arange(len(y)) == t, np.nan if y.dtype.kind == "f" else -1, y)


def ratios(data, log_p):
    """Return the log density of each row that is not missing, given all others."""
    y, whole = data["y"], evidence(data["y"], SEQUENCE, log_p)
    return {t: whole - evidence(masked(y, t), SEQUENCE, log_p) for t in range(len(y)) if not is_missing(y[t])}


def test_a_row_given_all_others_is_a_ratio_of_sums_over_paths(case):
    model, params, data, log_p = case
    for t, expected in ratios(data, log_p).items():
        law = model.held_out(params, data, np.array([t]))
        assert log_density(law, data["y"][[t]])[0] == pytest.approx(expected, abs=1e-12)
        draws = {name: np.stack([values, values])[None] for name, values in params.items()}
        assert log_density(model.held_out(draws, data, np.array([t])), data["y"][[t]]).shape == (1, 2, 1)


def test_to_leave_the_own_row_in_would_be_seen(case):
    model, params, data, log_p = case
    t, expected = next(iter(ratios(data, log_p).items()))
    law = model.rows_in(params, data, model.component_probabilities(params, data)[[t]])
    assert abs(log_density(law, data["y"][[t]])[0] - expected) > 0.01


def test_rows_after_the_last_are_ratios_of_sums_over_paths(case):
    model, params, data, log_p = case
    alone = {**data, "y": data["y"][:4], "sequence": SEQUENCE[:4]}
    before, missing = evidence(alone["y"], alone["sequence"], log_p), masked(data["y"][:1], 0)
    law = model.law(params, alone, model.inputs.unseen(alone, 2))
    for value in (0, 1):
        y = np.concatenate([alone["y"], missing, np.array([value], alone["y"].dtype)])
        expected = evidence(y, np.zeros(6, int), log_p) - before
        assert log_density(law, np.full(2, value))[1] == pytest.approx(expected, abs=1e-12)


def test_moments_quantiles_and_draws_of_a_row_are_those_of_its_mixture(case):
    model, params, data, _ = case
    states = np.array([[0.25, 0.75], [1.0, 0.0]])
    law, rng = model.rows_in(params, data, states), np.random.default_rng(1)
    drawn = law.rvs(size=(20_000, *np.shape(law.mean())), random_state=rng)
    assert np.max(np.abs(drawn.mean(0) - law.mean()) / np.sqrt(law.var() / 20_000 + 1e-30)) < 5
    np.testing.assert_allclose(drawn.var(0), law.var(), rtol=0.1, atol=0.01)
    if model.name != "hmm_categorical":
        for q in (0.025, 0.5, 0.975):
            at = law.ppf(q)
            assert np.all(law.cdf(at) >= q - 1e-9)
            assert np.all(law.cdf(at - (1 if model.name == "hmm_poisson" else 1e-6)) <= q + 1e-9)


def test_predictions_of_a_fit_go_on_after_its_last_row():
    model = bz.find("hmm_gaussian")(K=2)
    y = np.array([0.1, 0.3, -0.2, 5.1, 4.8, 5.3, 0.2, 0.0, -0.1, 5.2])
    tree = bz.fit(model, {"y": y}, "map", seed=1)
    table, steps = bz.predict(tree, 3), bz.forecast(tree, 3)
    np.testing.assert_allclose(table["mean"], steps["mean"], rtol=1e-12)
    np.testing.assert_allclose(table["sd"], steps["sd"], rtol=1e-12)
    assert (table["q025"] < table["median"]).all()
    with raises(bz.InputError, "dependent_rows"):
        bz.predict(tree, {"y": [1.0, 2.0]})
    several = bz.fit(model, {"y": y, "sequence": np.repeat([0, 1], 5)}, "map", seed=1)
    with raises(bz.InputError, "new_rows_unknown"):
        bz.predict(several, 2)


def test_leaving_out_rows_of_a_chain_agrees_with_evidences_of_all_paths():
    """Both evidences are sums over assignments, parameters integrated out in closed form."""
    M = bz.find("hmm_categorical")
    y, labels = np.array([0, 0, 1, 1, 1, 0, 0, 1]), np.array(["a", "b"])
    data = bz.read(M, {"y": y, "symbol": labels, "sequence": np.zeros(8, dtype=int)})
    tree = bz.fit(M(K=2), data, "enumerate", seed=1)
    score, whole = leave_out.of_fit(Fit(tree)), float(bz.enumerate_posterior(M(K=2), data).log_evidence)
    for t in (0, 2, 7):
        rest = bz.read(M, {**data, "y": masked(data["y"], t)}, missing="mask")
        expected = whole - float(bz.enumerate_posterior(M(K=2), rest).log_evidence)
        assert score.terms[t] == pytest.approx(expected, abs=0.03)  # some errors of 4,000 draws
    assert score.mcse < 0.01
