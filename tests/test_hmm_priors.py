"""Hidden Markov models whose prior has entries for each state, or with known means or known variances."""

import itertools
import json
import math
from dataclasses import replace

import hmmlearn.hmm
import numpy as np
import pytest
from scipy import special, stats

import bayeszoo as bz
from bayeszoo.contract.case import case_of, cases_of
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.errors import InputError
from bayeszoo.inference.methods import em
from bayeszoo.inference.methods.enumeration import Enumeration
from tests.refusals import raises

pytestmark = pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")  # hmmlearn

NUMBERS, COUNTS = bz.find("hmm_gaussian"), bz.find("hmm_poisson")
BY_STATE = {"m0": [0.0, 3.0], "kappa0": [0.5, 1.3], "a0": [1.7, 2.4], "b0": [0.8, 2.0]}
FORMS = {
    "prior by state": NUMBERS(K=2, **BY_STATE),
    "means known": NUMBERS(K=2, **BY_STATE, means=[0.5, 2.0]),
    "variances known": NUMBERS(K=2, **BY_STATE, variances=[0.7, 2.5]),
    "rates by state": COUNTS(K=2, a=[1.4, 5.0], b=[0.7, 0.5]),
}
ROWS = {NUMBERS: [0.2, -1.1, 3.0, 2.6, 0.1], COUNTS: [3, 0, 11, 9, 2]}


def log_marginal(model, k, y):
    """Log density of the observations of state k, its parameters integrated out, by SciPy."""
    y = np.array(y)
    if not len(y):
        return 0.0
    if isinstance(model, COUNTS):
        a, b, times = model.a[k], model.b[k], np.arange(len(y))
        seen = np.append(0, np.cumsum(y))[:-1]
        return stats.nbinom.logpmf(y, a + seen, (b + times) / (b + times + 1)).sum()
    m, kappa, a, b = (getattr(model, name)[k] for name in ("m0", "kappa0", "a0", "b0"))
    shared = np.eye(len(y)) + 1 / kappa
    if model.variances:
        return stats.multivariate_normal.logpdf(y, np.full(len(y), m), model.variances[k] * shared)
    if model.means:
        return stats.multivariate_t.logpdf(y, np.full(len(y), model.means[k]), b / a * np.eye(len(y)), df=2 * a)
    return stats.multivariate_t.logpdf(y, np.full(len(y), m), b / a * shared, df=2 * a)


def evidence_by_paths(model, y):
    """Log evidence by a sum over all paths; the tables have uniform priors."""
    terms = []
    for z in itertools.product(range(2), repeat=len(y)):
        moves = [[sum(z[t - 1] == i and z[t] == j for t in range(1, len(z))) for j in range(2)] for i in range(2)]
        tables = math.log(0.5) + sum(special.betaln(1 + n[0], 1 + n[1]) for n in moves)
        each = [log_marginal(model, k, [v for v, state in zip(y, z, strict=True) if state == k]) for k in range(2)]
        terms.append(tables + sum(each))
    return special.logsumexp(terms)


def evidences(form):
    model = FORMS[form]
    y = ROWS[type(model)]
    return Enumeration.of(model, bz.read(model, {"y": y})).log_evidence, evidence_by_paths(model, y)


@pytest.mark.parametrize("form", FORMS)
def test_the_evidence_is_that_of_all_paths(form):
    ours, expected = evidences(form)
    assert ours == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_prior_of_the_first_state_for_all_is_seen(form, monkeypatch):
    kind = Poisson if form == "rates by state" else Normal
    true = kind.log_evidence

    def wrong(self, stats):
        names = ("a", "b") if kind is Poisson else ("m", "kappa", "a", "b")
        return true(replace(self, **{name: np.full(2, getattr(self, name)[0]) for name in names}), stats)

    monkeypatch.setattr(kind, "log_evidence", wrong)
    ours, expected = evidences(form)
    assert abs(ours - expected) > 1e-3


def peer_of(at, **options):
    peer = hmmlearn.hmm.GaussianHMM(2, "diag", init_params="", **options)
    peer.means_, peer.covars_ = at["means"][:, None], at["variances"][:, None]
    peer.startprob_, peer.transmat_ = at["initial"], at["transition"]
    return peer


def test_em_with_known_variances_is_hmmlearns_at_every_step():
    data, known = bz.example(NUMBERS), [15e3, 2e4]
    model = NUMBERS(K=2, variances=known)
    params = model.start(data, np.random.default_rng(1))
    peer = peer_of({**params, "variances": np.array(known)}, params="stm", n_iter=15, tol=-np.inf)
    peer.fit(data["y"][:, None])
    heights = []
    for _ in range(15):
        expectation = model.e_step(params, data)
        heights.append(expectation.value)
        params = model.m_step(expectation.stats, flat=True)
    assert np.allclose(heights, peer.monitor_.history, rtol=1e-10)
    assert np.allclose(params["means"], peer.means_[:, 0], rtol=1e-8)


def test_variances_about_known_means_are_weighted_squares():  # which hmmlearn, without its means' sums, gets wrong
    data, known = bz.example(NUMBERS), np.array([850.0, 1100.0])
    model = NUMBERS(K=2, means=known)
    params = model.start(data, np.random.default_rng(1))
    share = peer_of({**params, "means": known}).predict_proba(data["y"][:, None])
    expected = np.average((data["y"][:, None] - known) ** 2, axis=0, weights=share)
    found = model.m_step(model.e_step(params, data).stats, flat=True)
    assert set(found) == {"initial", "transition", "variances"}
    assert np.allclose(found["variances"], expected, rtol=1e-10)


def test_fields_of_known_numbers_count_no_parameters_and_states_have_a_meaning():
    data = bz.example(NUMBERS)
    for form, free in {"prior by state": 7, "means known": 5, "variances known": 5, "rates by state": 5}.items():
        assert (FORMS[form].exchangeable_axis(), FORMS[form].free_parameters(data)) == (None, free)
    assert NUMBERS(K=2, m0=[3, 3]).exchangeable_axis() == "state"
    assert NUMBERS(K=2, variances=[2.0, 2.0]).exchangeable_axis() == "state"  # known, but alike
    assert NUMBERS(K=2, variances=[2.0, 2.0], initial=[0.5, 0.5]).exchangeable_axis() is None
    assert [v.name for v in FORMS["means known"].declare(data).free_RVs] == ["initial", "transition", "variances"]
    assert [v.name for v in FORMS["variances known"].compiled(data).free_RVs] == ["initial", "transition", "means"]
    assert NUMBERS.weak_with(data, {"m0": [850, 1100]}).kappa0 == 4
    assert FORMS["prior by state"].one_component().m0 == 0


def test_the_means_of_given_centres_are_in_their_order():
    data = bz.example(NUMBERS)
    for m0 in ([850, 1100], [1100, 850]):
        model = NUMBERS.weak_with(data, {"m0": m0})
        best = em.climbs(model, data, np.random.default_rng(0), flat=False, restarts=8).best.state
        assert np.argsort(best["means"]).tolist() == np.argsort(m0).tolist()


def test_a_class_is_checked_with_one_prior_and_with_one_of_each_state():
    for model in (NUMBERS, COUNTS):
        named = {case.model.exchangeable_axis() for case in cases_of(model)}
        assert named == {"state", None}
    assert case_of(NUMBERS).model.exchangeable_axis() == "state"


@pytest.mark.parametrize(
    ("make", "code", "names"),
    [
        (lambda: NUMBERS(m0=[1, 2, 3]), "wrong_shape", ("m0", 3, "K=2")),
        (lambda: COUNTS(a=[1]), "wrong_shape", ("shape a", 1, "K=2")),
        (lambda: NUMBERS(kappa0=[1, 0]), "out_of_range", ("kappa0[1]", "> 0")),
        (lambda: NUMBERS(variances=[1, -2]), "out_of_range", ("variances", "> 0", [1, -2])),
        (lambda: NUMBERS(means=[1, 2, 3]), "wrong_shape", ("means", 3, "K=2")),
    ],
)
def test_bad_fields_are_refused_in_one_line(make, code, names):
    with raises(InputError, code, *names) as error:
        make()
    assert "\n" not in str(error.value)


def test_the_command_takes_numbers_by_state_without_brackets(run):
    code, out, err = run(
        "fit", "hmm_gaussian", "--set", "m0=850,1100", "--set", "variances=15e3,15e3", "--method", "em", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["fields"]["m0"] == [850, 1100]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_the_contract(form):
    model = FORMS[form]
    y = [0.2, -1.1, 3.0, 2.6, 0.1, None, 3.3] if isinstance(model, NUMBERS) else [3, 0, 11, 9, 2, 0]
    data = bz.read(model, {"y": y}, missing="mask")
    assert [str(each) for each in bz.check(model, data) if not each.passed] == []


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"variances": [15e3, 15e3]}, {"means": [850, 1100]}, {"m0": [850, 1100]}])
def test_nuts_finds_the_same_order_of_states_and_they_are_decoded(given):
    data = bz.example(NUMBERS)
    tree = bz.fit(NUMBERS.weak_with(data, given), data, "nuts", seed=1)
    assert tree.attrs["status"] == "ok"
    found = bz.decode(tree)
    if "variances" in given:  # which are alike, so that labels mean nothing but what alignment gives them
        assert len(set(found["viterbi"])) == 2
    else:
        assert found["viterbi"][1] == 2
        assert found["viterbi"][100] == 1
    assert bz.forecast(tree, 1)["sd"][1] > 50
