"""Hidden Markov models against hmmlearn, SciPy, sums over all paths written anew, other models, and seeded bugs."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from pytensor.graph.traversal import ancestors
from scipy import integrate, special, stats

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.contract.case import case_of
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.data.read import example
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.hmm import passes
from bayeszoo.inference.labels.align import permute
from bayeszoo.inference.methods import em, vb
from bayeszoo.inference.methods.enumeration import Enumeration
from bayeszoo.likelihoods.loops import hmm as hmm_loops
from bayeszoo.likelihoods.ops.hmm import ChainLikelihood
from tests.refusals import raises

peers = pytest.importorskip("hmmlearn.hmm")  # which has no wheel for Python 3.14 yet

pytestmark = pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")  # hmmlearn

NAMES = ("hmm_categorical", "hmm_gaussian", "hmm_poisson")
CATEGORICAL, GAUSSIAN, POISSON = map(bz.find, NAMES)
FAIR_LOADED = [[1 / 6] * 6, [0.1] * 5 + [0.5]]
CASINO = {"transition": [[0.95, 0.05], [0.1, 0.9]], "emission": FAIR_LOADED, "initial": [1.0, 0.0]}


def rows(y, sequence=None):
    y = np.asarray(y)
    return {"y": y, "sequence": np.zeros(len(y), dtype=np.int64) if sequence is None else np.array(sequence)}


def symbols(y, sequence=None):
    return {**rows(y, sequence), "symbol": np.array(["s0", "s1", "s2"])}


def masked(model, data):
    return bz.read(model, data, missing="mask")


def one_check(identity, model, data):
    chosen = next(one for one in IDENTITIES if one.function == identity)
    return run_identity(chosen, case_of(model, masked(model, data)))


CHAIN = {"alpha": 1.3, "beta": 0.7, "sticky": 0.4}
FEW = {
    "hmm_categorical": (CATEGORICAL(**CHAIN, eta=[0.5, 1.1, 2.0]), symbols([0, 2, 2, 1, 0])),
    "hmm_gaussian": (GAUSSIAN(**CHAIN, m0=0.3, kappa0=0.6, a0=1.7, b0=0.8), rows([0.2, -1.1, 3.0, 2.6, 0.1])),
    "hmm_poisson": (POISSON(**CHAIN, a=1.4, b=0.3), rows([3, 0, 11, 9, 2])),
}


# hmmlearn


def peer(model, params, data, **options):
    """Return hmmlearn's model at the same point, without priors."""
    if type(model) is CATEGORICAL:
        made = peers.CategoricalHMM(model.K, init_params="", **options)
        made.emissionprob_ = params["emission"]
    elif type(model) is GAUSSIAN:
        made = peers.GaussianHMM(model.K, "diag", init_params="", covars_prior=0, min_covar=0, **options)
        made.means_, made.covars_ = params["means"][:, None], params["variances"][:, None]
    else:
        made = peers.PoissonHMM(model.K, init_params="", **options)
        made.lambdas_ = params["rates"][:, None]
    made.startprob_, made.transmat_ = params["initial"], params["transition"]
    return made, data["y"][:, None], np.bincount(data["sequence"])


@pytest.mark.parametrize("name", NAMES)
def test_em_and_smoothed_states_are_hmmlearns_at_every_step(name):
    data = example(bz.find(name))
    model, data = bz.find(name).weak(data), {**data, "sequence": np.repeat([0, 1, 2], [40, 1, data.rows - 41])}
    params = model.start(data, np.random.default_rng(0))
    other, X, lengths = peer(model, params, data, n_iter=20, tol=-np.inf)
    assert np.allclose(model.component_probabilities(params, data), other.predict_proba(X, lengths), atol=1e-10)
    assert model.log_rows(params, data).sum() == pytest.approx(other.score(X, lengths), rel=1e-12)
    other.fit(X, lengths)
    heights = []
    for _ in range(20):
        expectation = model.e_step(params, data)
        heights.append(expectation.value)
        params = model.m_step(expectation.stats, flat=True)
    assert np.allclose(heights, other.monitor_.history, rtol=1e-10)
    assert np.allclose(params["transition"], other.transmat_, atol=1e-8)
    assert np.allclose(params["initial"], other.startprob_, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_many_draws_are_hmmlearns_of_each_in_one_compiled_pass(name, monkeypatch):
    data = example(bz.find(name))
    model, data = bz.find(name).weak(data), {**data, "sequence": np.repeat([0, 1], [40, data.rows - 40])}
    rng, passed, compiled = np.random.default_rng(0), [], hmm_loops.log_rows
    monkeypatch.setattr(hmm_loops, "log_rows", lambda *args: passed.append(args) or compiled(*args))
    each = [model.start(data, rng) for _ in range(6)]
    draws = {name: np.reshape([params[name] for params in each], (2, 3, *each[0][name].shape)) for name in each[0]}
    terms = model.log_rows(draws, data)
    assert terms.shape == (2, 3, len(data["y"]))
    assert len(passed) == 1
    for params, own in zip(each, terms.reshape(6, -1), strict=True):
        other, X, lengths = peer(model, params, data)
        assert own[:40].sum() == pytest.approx(other.score(X[:40]), rel=1e-12)
        assert own.sum() == pytest.approx(other.score(X, lengths), rel=1e-12)


def test_the_likelihood_of_the_earthquakes_is_the_books():
    # Zucchini and MacDonald 2009, chapter 4, two states by EM: minus log likelihood 341.8787
    data = example(POISSON)
    found = em.climbs(POISSON.weak(data), data, np.random.default_rng(0), flat=True, restarts=5).best
    assert found.objective == pytest.approx(-341.8787, abs=1e-4)
    assert np.allclose(np.sort(found.state["rates"]), [15.421, 26.018], atol=1e-3)


# Sums over paths


def urn(prior, outcomes):
    """Log probability of outcomes one after the other, each by the counts of those before it."""
    counts, total = np.array(prior, dtype=float), 0.0
    for one in outcomes:
        total += math.log(counts[one] / counts.sum())
        counts[one] += 1
    return total


def independent(name, model, y):
    """Log density of the observations of one state, its parameters integrated out."""
    y, times = np.asarray(y), np.arange(len(y))
    if name == "hmm_categorical":
        return urn(model.entries("eta", 3), y)
    if name == "hmm_poisson":
        seen = np.append(0, np.cumsum(y))[:-1]
        return stats.nbinom.logpmf(y, model.a + seen, (model.b + times) / (model.b + times + 1)).sum()
    covariance = model.b0 / model.a0 * (np.eye(len(y)) + 1 / model.kappa0)
    return stats.multivariate_t.logpdf(y, np.full(len(y), model.m0), covariance, df=2 * model.a0) if len(y) else 0.0


def log_joint(name, model, z, y, starts):
    total = urn([model.alpha] * model.K, [z[t] for t in starts])
    for k in range(model.K):
        prior = model.beta + model.sticky * np.eye(model.K)[k]
        total += urn(prior, [z[t] for t in range(1, len(z)) if t not in starts and z[t - 1] == k])
        total += independent(name, model, [now for now, state in zip(y, z, strict=True) if state == k])
    return total


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("starts", [(0,), (0, 2)])
def test_the_evidence_is_that_of_all_paths(name, starts):
    model, data = FEW[name]
    data = {**data, "sequence": np.isin(np.arange(5), starts).cumsum() - 1}
    terms = [log_joint(name, model, z, data["y"], starts) for z in itertools.product(range(2), repeat=5)]
    found = Enumeration.of(model, data)
    assert np.allclose(found.log_joint, terms, rtol=1e-12)
    assert found.log_evidence == pytest.approx(special.logsumexp(terms), rel=1e-12)
    elbo = vb.climbs(model, data, np.random.default_rng(0), restarts=5).best.objective
    assert elbo <= found.log_evidence


# Masks


@pytest.mark.parametrize("name", NAMES)
def test_a_masked_row_is_summed_over(name):
    model, data = FEW[name]
    params = model.simulate(np.random.default_rng(1), 1)[0]

    def at(value):
        return {**data, "y": np.where(np.arange(5) == 2, value, data["y"])}

    def total(of):
        if name == "hmm_gaussian":
            low, high = (np.min(params["means"]) - 40, np.max(params["means"]) + 40)
            peaks = params["means"].tolist()
            return math.log(integrate.quad(lambda v: math.exp(of(at(v))), low, high, points=peaks, limit=400)[0])
        return special.logsumexp([of(at(v)) for v in range(3 if name == "hmm_categorical" else 150)])

    masked = at(np.nan if name == "hmm_gaussian" else -1)
    likelihood = model.e_step(params, masked).value
    assert likelihood == pytest.approx(total(lambda one: model.e_step(params, one).value), rel=1e-8)
    path = np.array([[0, 0, 1, 1, 0]])
    assert np.allclose(model.component_probabilities(params, masked).sum(axis=-1), 1)
    if name != "hmm_gaussian":
        expected = total(lambda one: model.log_joint(path, one)[0])
        assert model.log_joint(path, masked)[0] == pytest.approx(expected, rel=1e-8)
    every = np.array(list(itertools.product(range(2), repeat=5)))
    assert special.logsumexp(model.log_complete(params, every, masked)) == pytest.approx(likelihood, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_three_routes_agree_on_masked_and_several_sequences(name):
    model, data = FEW[name]
    y = np.concatenate([data["y"], data["y"][:2]])
    y[[1, 5]] = np.nan if name == "hmm_gaussian" else -1
    data = {**data, "y": y, "sequence": np.array([0, 0, 0, 1, 1, 1, 2])}
    declared, ours = (Density(made, "FAST_COMPILE") for made in (model.declare(data), model.compiled(data)))
    for seed in range(4):
        params = model.simulate(np.random.default_rng(seed), 1)[0]
        x = declared.unconstrain(params)
        value = float(model.e_step(params, data).value + model.log_prior(params, data))
        assert declared.constrained_joint(x)[0] == pytest.approx(value, rel=1e-10)
        assert ours.constrained_joint(x)[0] == pytest.approx(value, rel=1e-10)
        assert np.allclose(declared.joint(x)[1], ours.joint(x)[1], rtol=1e-8, atol=1e-8)


# Known tables


def test_known_tables_are_no_parameters_and_give_states_a_meaning():
    data = example(CATEGORICAL)
    model = CATEGORICAL(transition=CASINO["transition"])
    found = em.climbs(model, data, np.random.default_rng(0), flat=False, restarts=3).best.state
    assert set(found) == {"initial", "emission"}
    assert model.exchangeable_axis() is None
    assert model.free_parameters(data) == 1 + 2 * 5
    assert [v.name for v in model.declare(data).free_RVs] == ["initial", "emission"]
    q = vb.climbs(model, data, np.random.default_rng(0), restarts=3).best.state
    assert set(model.vb_posterior(q)) == {"initial", "emission"}
    assert model.one_component().transition is None
    for identity in ("em_objective", "bound", "one_component", "enumerated_candidate"):
        assert one_check(identity, model, FEW["hmm_categorical"][1]).passed


@pytest.mark.slow
def test_zeros_of_known_tables_are_kept():
    left_to_right = {"initial": [1.0, 0.0, 0.0], "transition": [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]}
    model, data = CATEGORICAL(K=3, **left_to_right), FEW["hmm_categorical"][1]
    params = {"emission": np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])}
    declared = Density(model.declare(data), "FAST_COMPILE")
    value, gradient = declared.likelihood(declared.unconstrain(params))
    assert value == pytest.approx(model.e_step(params, data).value, rel=1e-10)
    assert np.all(np.isfinite(gradient))
    assert np.all(model.component_probabilities(params, data)[0] == [1, 0, 0])
    assert np.isfinite(Enumeration.of(model, data).log_evidence)
    never = CATEGORICAL(K=2, initial=[1.0, 0.0], transition=np.eye(2), emission=[[1, 0, 0], [0, 0.5, 0.5]])
    with raises(NumericalError, "impossible_data"):
        never.component_probabilities({}, data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"transition": [[0.9, 0.1], [0.2, 0.7]]}, "row 2 of transition sums to 0.9, not 1"),
        ({"initial": [0.5, 0.6]}, "initial sums to 1.1, not 1"),
        ({"initial": [1.5, -0.5]}, "initial has an entry that is not a probability: -0.5"),
        ({"transition": np.eye(3)}, "transition is 3 x 3, but there are K=2 states"),
        ({"initial": [[0.5, 0.5]]}, "initial must have 1 axis, got shape"),
        ({"emission": [[0.5, 0.5], [1.0]]}, "emission must be lists of numbers of equal length"),
        ({"emission": [[np.nan, 1.0], [0.5, 0.5]]}, "emission has an entry that is not a probability: nan"),
        ({"sticky": -1.0}, "sticky must be >= 0, got -1"),
    ],
)
def test_bad_fields_are_refused(fields, message):
    with pytest.raises(InputError) as raised:
        CATEGORICAL(**fields)
    assert message in str(raised.value)


def test_what_does_not_suit_the_data_is_refused():
    data = symbols([0, 1, 2, 1])
    with raises(InputError, "wrong_shape", "emission", "6", "3"):
        CATEGORICAL(emission=FAIR_LOADED).e_step({}, data)
    with raises(InputError, "too_few_rows", "K", "3", "2"):
        bz.fit(CATEGORICAL(K=3), masked(CATEGORICAL(), symbols([0, -1, 2])), "em")
    with raises(InputError, "nothing_to_fit"):
        bz.fit(CATEGORICAL(**CASINO), example(CATEGORICAL), "nuts")


# Labels and q(theta)


@pytest.mark.parametrize(("name", "K"), [*((name, 3) for name in NAMES), ("hmm_categorical", 7)])
def test_the_density_of_q_is_averaged_over_all_orders_of_few_states(name, K):
    model, data = FEW[name]
    model, data = replace(model, K=K), {**data, "y": np.tile(data["y"], 4), "sequence": np.zeros(20, dtype=int)}
    q = model.vb_start(data, np.random.default_rng(2))
    draws = model.vb_posterior(q).rvs(4, np.random.default_rng(3))
    orders = list(itertools.permutations(range(K))) if K == 3 else [range(K)]
    terms = []
    for order in orders:
        moved = permute(model, draws, np.broadcast_to(order, (4, K)))
        terms.append([model.vb_posterior(q).logpdf({k: v[i] for k, v in moved.items()}) for i in range(4)])
    expected = special.logsumexp(terms, axis=0) - math.log(len(orders))
    assert np.allclose(model.vb_log_density(q, draws), expected, rtol=1e-10)


def divergence_error(name):
    """Return the error of the divergence against the mean of log q - log prior over draws, in standard errors."""
    model, data = FEW[name]
    q = model.vb_start({**data, "y": np.sort(data["y"])}, np.random.default_rng(0))
    draws, posterior = model.vb_posterior(q).rvs(1500, np.random.default_rng(1)), model.vb_posterior(q)
    log_q = np.array([posterior.logpdf({key: v[i] for key, v in draws.items()}) for i in range(1500)])
    gaps = log_q - model.log_prior(draws, data)
    return abs(gaps.mean() - model.divergence(q)) / (gaps.std() / math.sqrt(1500))


@pytest.mark.parametrize("name", NAMES)
def test_the_divergence_is_that_of_draws(name):
    assert divergence_error(name) <= 4.4


@pytest.mark.parametrize("forgotten", ["initial", "transition"])
def test_a_divergence_without_a_table_is_seen(forgotten, monkeypatch):
    true = Categorical.divergence
    monkeypatch.setattr(Categorical, "divergence", lambda q, prior: (q.names[0] != forgotten) * true(q, prior))
    assert divergence_error("hmm_poisson") > 4.4


def test_concentrations_below_one_have_no_mode():
    for model in (CATEGORICAL(alpha=0.5), CATEGORICAL(beta=0.5), CATEGORICAL(eta=0.5), POISSON(a=0.5)):
        with raises(NumericalError, "no_maximum"):
            bz.fit(model, FEW[model.name][1], "em")
    assert not POISSON(a=0.5, K=1).unbounded(FEW["hmm_poisson"][1])


def test_a_state_of_one_number_is_no_maximum_of_the_likelihood():
    data = rows([0.0, 0.1, 5.0, 0.05, 0.2, -0.1, 0.15, 0.02])
    model = GAUSSIAN.weak(data)
    at = {"initial": [1, 0], "transition": np.eye(2), "means": np.array([0.0, 5]), "variances": np.array([1, 1e-9])}
    assert "state 2 has collapsed" in model.degenerate(at, model.e_step(at, data).stats)


# What is compiled


@pytest.mark.parametrize("name", NAMES)
def test_the_compiled_density_knows_how_many_states_there_are(name):
    model, data = FEW[name]
    declared = model.compiled(masked(model, data))
    nodes = [v.owner for v in ancestors([declared.logp()]) if v.owner and isinstance(v.owner.op, ChainLikelihood)]
    assert {node.op.states for node in nodes} == {model.K}  # or loops over states are not written out


def test_rows_that_may_not_be_written_to_need_no_loops_of_their_own():
    codes = np.array([0, 1, 1, 0])
    codes.setflags(write=False)
    chain = passes.CheckedChain.checked([0.5, 0.5], np.full((2, 2), 0.5), np.log([[0.2, 0.8], [0.6, 0.4]]), codes)
    assert chain.codes.flags.writeable
    assert chain.starts.flags.writeable
    assert np.isclose(chain.derivatives()[0], 2 * np.log(0.4 * 0.6), rtol=1e-14)
