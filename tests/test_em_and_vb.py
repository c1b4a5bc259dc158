"""EM and variational Bayes: climbs against other people's optimizers, complete bounds, and what is refused."""

import itertools

import numpy as np
import pytest
import scipy
import sklearn.mixture

import bayeszoo as bz
from bayeszoo.distributions.conjugate.product import Several
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.mixtures import base as mixture
from bayeszoo.foundation.gate import MAX_K_HAT
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine import ascent
from bayeszoo.inference.engine.approximation import MAX_DRAWS
from bayeszoo.inference.engine.ascent import Effort
from bayeszoo.inference.methods import em, vb
from bayeszoo.inference.methods.enumeration import Enumeration
from bayeszoo.inference.problem import Problem
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.report.text import tables
from bayeszoo.results.stored import Fit
from tests.refusals import raises

GAUSSIAN, UNIGRAMS = bz.find("gaussian_mixture"), bz.find("multinomial_mixture")
FAITHFUL = bz.example(GAUSSIAN)
TINY = bz.read(GAUSSIAN, {"Y": [[-2.1], [-1.8], [-2.4], [1.9], [2.2], [2.6], [0.3]], "column": ["y"]})
PAIRS = bz.read(GAUSSIAN, {"Y": [[0.0], [0.0], [1.0], [1.0]], "column": ["y"]})
DOCUMENTS = bz.read(UNIGRAMS, {"counts": [[3, 1, 0], [4, 0, 1], [0, 2, 5], [1, 1, 6]], "word": list("abc")})


def climbs(model, data, flat=False, restarts=20):
    return em.climbs(model, data, np.random.default_rng(0), flat, restarts)


def vb_climbs(model, data):
    return vb.climbs(model, data, np.random.default_rng(0))


def sklearn_mle(Y, start, covariance):
    """scikit-learn's EM from the same start, unregularized, until a step gains less than 1e-13 a row: 100 roundings."""
    precisions = (np.linalg.inv if covariance in ("full", "tied") else np.reciprocal)(start["covariances"])
    begin = {"weights_init": start["weights"], "means_init": start["means"], "precisions_init": precisions}
    options = {"covariance_type": covariance, "reg_covar": 0.0, "tol": 1e-13, "max_iter": 5000}
    return sklearn.mixture.GaussianMixture(len(start["weights"]), **options, **begin).fit(Y)


@pytest.mark.parametrize(
    ("covariance", "theirs"), [("full", "full"), ("tied", "tied"), ("diagonal", "diag"), ("spherical", "spherical")]
)
@pytest.mark.parametrize(("name", "K"), [("faithful", 2), ("iris", 3)])
def test_mle_is_that_of_scikit_learn_from_the_same_start(name, K, covariance, theirs):
    data = bz.example(GAUSSIAN, name)
    model = GAUSSIAN.weak_with(data, {"K": K, "covariance": covariance})
    start = model.start(data, np.random.default_rng(3))

    def evaluate(params):
        expectation = model.e_step(params, data)
        return expectation.value, expectation

    found = ascent.climb(start, evaluate, lambda stats: model.m_step(stats, True))
    expected = sklearn_mle(data["Y"], start, theirs)
    assert found.objective == pytest.approx(expected.score(data["Y"]) * len(data["Y"]), rel=1e-9)
    assert np.sort(found.state["weights"]) == pytest.approx(np.sort(expected.weights_), abs=1e-5)


def test_best_of_restarts_on_old_faithful_is_the_known_maximum():
    found = climbs(GAUSSIAN.weak_with(FAITHFUL, {"K": 2}), FAITHFUL, flat=True)
    assert found.best.objective == pytest.approx(-1130.264, abs=1e-3)
    assert found.reached + found.facts["abandoned"] == 20
    assert found.reached > 10


def test_the_mle_is_not_the_maximum_that_four_climbs_reached_first():
    """That maximum is 3.2 nats lower; the search used to end there."""
    rows = np.array([-0.80, -1.32, -0.25, 0.42, 1.14, 0.11, 4.61, 4.45, 5.52, 6.14, 5.19] * 2)[:, None]
    data = bz.read(GAUSSIAN, {"Y": rows, "column": ["y"]})
    theirs = sklearn.mixture.GaussianMixture(3, reg_covar=0.0, tol=1e-9, n_init=10, random_state=0).fit(rows)
    for seed in range(3):
        found = em.climbs(GAUSSIAN(K=3), data, np.random.default_rng(seed), True)
        assert found.best.objective >= theirs.score(rows) * len(rows) - 1e-4


def test_two_rows_that_are_almost_one_make_a_higher_maximum_that_is_not_the_answer():
    rows = np.concatenate([np.random.default_rng(0).normal(size=30), [0.5, 0.5 + 1e-9]])
    data = bz.read(GAUSSIAN, {"Y": rows[:, None], "column": ["y"]})
    model = GAUSSIAN.weak_with(data, {"K": 2})
    spike = {"weights": np.array([0.9, 0.1]), "means": np.array([[0.0], [0.5]])}
    spike["covariances"] = np.array([[[1.0]], [[1e-16]]])
    assert model.e_step(spike, data).value > climbs(model, data, flat=True).best.objective
    assert "collapsed" in model.degenerate(spike, model.e_step(spike, data).stats)


def test_all_climbs_degenerate_is_an_error_that_says_so_and_the_map_exists():
    with raises(NumericalError, "not_converged", "try map"):
        bz.fit(GAUSSIAN.weak_with(PAIRS, {"K": 2}), PAIRS, "mle", seed=1)
    tree = bz.fit(GAUSSIAN(K=2, m0=0.5, kappa0=0.1), PAIRS, "map", seed=1)
    assert tree.attrs["status"] == "ok"
    assert np.sort(tree["posterior"]["means"].to_numpy().ravel()) == pytest.approx([0.0, 1.0], abs=0.1)


def test_posterior_without_a_maximum_is_refused():
    for field in ("alpha", "eta"):
        with raises(NumericalError, "no_maximum", field, "1"):
            bz.fit(UNIGRAMS(**{field: 0.5}), bz.example(UNIGRAMS), "map", seed=1)


def test_a_fit_has_its_trace_its_restarts_and_components_numbered_by_weight():
    tree = bz.fit(GAUSSIAN.weak(FAITHFUL), FAITHFUL, "em", seed=1, estimate="mle", restarts=7)
    assert tree["optimization"]["objective"].to_numpy()[-1] == pytest.approx(Fit(tree).facts["log_likelihood"])
    facts = Fit(tree).facts
    assert facts["restarts"] == facts["reached_the_best"] + facts["abandoned"] == 7
    assert "7 of 7 restarts reached the best of the maxima" in tables._of_restarts(facts, True, 2)[0]
    partly = {**facts, "reached_the_best": 4, "abandoned": 3}
    assert "7 starts, 4 climbed to the end, 4 reached the best of the maxima" in tables._of_restarts(partly, True, 2)[0]
    weights, raw = (tree[group]["weights"].to_numpy()[0, 0] for group in ("posterior", "unaligned"))
    assert weights[0] > weights[1]
    assert np.array_equal(raw[tree["labels"]["permutation"].to_numpy()[0, 0]], weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"estimate": "mode"}, ("unknown_method", "estimate", "'mode'")), ({"restarts": 0}, ("wrong_type", "restarts"))],
)
def test_options_are_checked(options, message):
    with raises(InputError, *message):
        bz.fit(GAUSSIAN.weak(FAITHFUL), FAITHFUL, "em", seed=1, **options)


# A wrong step must be seen


class DividesByLess(GAUSSIAN):
    """The M-step divides scatters by one row too few."""

    name = "gaussian_mixture"

    def m_step(self, stats, flat=False):
        found = super().m_step(stats, flat)
        return {**found, "covariances": found["covariances"] * 1.05}


class ForgetsToNormalize(GAUSSIAN):
    """The responsibilities are not normalized."""

    name = "gaussian_mixture"

    def e_step(self, params, data):
        terms = self.log_terms(params, data)
        each = np.exp(terms - terms.max())
        return Expectation(self.expected_statistics(each, data), float(np.logaddexp.reduce(terms, axis=1).sum()))


@pytest.mark.parametrize("bug", [DividesByLess, ForgetsToNormalize])
def test_a_wrong_step_makes_the_objective_fall(bug):
    model = bug(**{f: getattr(GAUSSIAN.weak(FAITHFUL), f) for f in ("K", "m0", "kappa0", "nu0", "Psi0")})
    with raises(ascent.AscentError, "not_converged", "objective"):
        climbs(model, FAITHFUL, flat=True)


# The engine by itself


def scalar(value, rate):
    """A climb to 1 whose distance shrinks by `rate` a step; the state is the distance."""
    return lambda x: (value - x, Expectation(x, 0.0)), lambda x: rate * x


@pytest.mark.parametrize("rate", [0.1, 0.9, 0.99])
def test_slow_climbs_do_not_stop_early(rate):
    found = ascent.climb(1.0, *scalar(5.0, rate))
    assert found.is_sound
    assert found.objective == pytest.approx(5.0, abs=1e-11)


def test_a_climb_cut_short_is_not_sound_and_one_without_end_an_error(monkeypatch):
    monkeypatch.setattr(ascent, "MAX_STEPS", 50)
    assert not ascent.climb(1.0, *scalar(5.0, 0.99)).is_sound
    with raises(NumericalError, "not_finite"):
        ascent.climb(1.0, *scalar(np.inf, 0.99))


def jumping(x):
    """A step that gains more and more, and then leads to the maximum at 0."""
    return x**5 if x > 0.5 else 0.0


def test_a_climb_whose_gains_grew_has_converged_once_nothing_is_gained():
    evaluate = scalar(5.0, 1.0)[0]
    end = ascent.climb(0.999, evaluate, jumping)
    assert (end.objective, end.is_sound) == (5.0, True)
    assert not ascent.climb(0.999, evaluate, jumping, Effort(steps=4)).is_sound


def test_a_jump_from_a_slope_that_goes_on_has_not_converged():
    """After a jump a thousand steps gain 2e-12 of the height each, and as many may be to come."""
    trace = np.cumsum([1.0, 1e-6, 2e-6, 4e-6, 1e-3] + [2e-12] * 1000)
    assert ascent._gain_left(trace) > ascent.GAIN_LEFT
    assert ascent._gain_left(np.append(trace[:5], [trace[4]] * 4)) < 1e-14


def level(begin, restarts, suspect=lambda state, stats: ""):
    """Search where the height is the start, and no step moves."""
    evaluate, rng = lambda x: (x, Expectation(x, 0.0)), np.random.default_rng(0)
    return ascent.search(ascent.Ascent(begin, (evaluate, lambda x: x), suspect=suspect), rng, Reporter(), restarts)


def test_more_restarts_are_made_until_two_reach_the_best():
    heights = iter([1.0, 1.0, 3.0, 1.0, *[2.0] * 6, 3.0, 4.0])
    found = level(lambda rng: next(heights), 3)
    assert (found.best.objective, found.reached, found.facts["restarts"]) == (3.0, 2, 11)


def test_more_restarts_are_made_while_a_further_one_is_likely_to_end_at_an_unseen_maximum():
    """Two of the first three reach the best, and one another maximum: the tenth start makes that share 0.1."""
    heights = iter([5.0, 5.0, 4.0, *[5.0] * 50])
    found = level(lambda rng: next(heights), 3)
    assert (found.unseen, found.starts) == (pytest.approx(0.1), 10)
    assert all(check.passed for check in found.checks)


def test_a_search_that_keeps_ending_at_new_maxima_is_a_caution():
    """All starts but two of 40 end at maxima of their own, and so will a further one (Good 1953)."""
    heights = iter([10.0, 10.0, *np.arange(60) / 10])
    found = level(lambda rng: next(heights), 20)
    unseen = {check.name: check for check in found.checks}["unseen_maxima"]
    assert (found.starts, unseen.value, unseen.verdict) == (40, pytest.approx(38 / 40), "caution")
    assert unseen.caveat


def test_degenerate_climbs_tell_of_no_maximum():
    """They do not dilute the share of maxima reached once: here one of five sound climbs, and not of 20 starts."""
    heights = iter([*[9.0] * 15, 2.0, 2.0, 2.0, 2.0, 1.0, *[9.0] * 60])
    found = level(lambda rng: next(heights), 20, lambda height, stats: "collapsed" if height == 9 else "")
    assert (found.starts, found.unseen) == (40, pytest.approx(0.2))


def test_degenerate_maxima_are_reported_and_though_higher_not_the_answer():
    heights = iter([1.0, 9.0, 2.0, 2.0, 1.0])
    found = level(lambda rng: next(heights), 5, lambda height, stats: "collapsed" if height == 9 else "")
    assert [climb.objective for climb in found.sound] == [2.0, 2.0, 1.0, 1.0]
    degenerate = {"degenerate": 1, "highest_degenerate": 9.0, "degenerate_because": "collapsed"}
    assert degenerate.items() <= found.facts.items()


def test_a_best_that_one_climb_reached_does_not_pass():
    assert [check.verdict for check in level(lambda rng: rng.random(), 3).checks] == ["ok", "failed", "caution"]


def test_climbs_end_at_a_known_maximum_and_far_below_the_best_they_are_abandoned():
    """Of 20 climbs to 0 or to -100, the first goes to the end, the others near it, and the low ones nowhere."""
    steps = []

    def evaluate(state):
        steps.append(state)
        return (-100.0 if state < 0 else 0.0) - state**2, Expectation(state, 0.0)

    starts = itertools.cycle([-3.0, 3.0])
    steps_of = evaluate, lambda state: 0.9 * state
    climbed = ascent.Ascent(lambda rng: next(starts), steps_of, fingerprint=lambda state: np.array([state]))
    found = ascent.search(climbed, np.random.default_rng(0), Reporter())
    assert (found.best.objective, found.reached, len(found.climbs)) == (pytest.approx(0.0, abs=1e-9), 10, 20)
    assert [climb.is_sound for climb in found.climbs] == [True] * 10 + [False] * 10
    assert len(steps) < 0.4 * 20 * len(found.best.trace)


def test_restarts_that_collapse_are_counted():
    def begin(rng):
        if rng.random() < 0.5:
            raise NumericalError("empty")
        return 1.0

    found = level(begin, 20)
    assert 0 < found.collapsed < 20
    assert found.facts["degenerate"] == found.collapsed


@pytest.mark.parametrize(("K", "code"), [(0, "out_of_range"), (1.5, "wrong_type"), (True, "wrong_type")])
def test_number_of_components_is_checked(K, code):
    with raises(InputError, code, "K", K):
        GAUSSIAN(K=K)


# Variational Bayes


@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "spherical"])
@pytest.mark.parametrize("K", [1, 2, 3])
def test_bound_is_below_the_exact_evidence(covariance, K):
    model = GAUSSIAN(K=K, covariance=covariance, kappa0=0.1)
    elbo, evidence = vb_climbs(model, TINY).best.objective, Enumeration.of(model, TINY).log_evidence
    assert elbo <= evidence + 1e-9
    assert elbo == pytest.approx(evidence, abs=1e-9 if K == 1 else 4)


def test_bound_by_its_definition_with_scipys_densities():
    """E[log p(y, z, theta) - log q(z) - log q(theta)] over draws of q, every density SciPy's."""
    model = UNIGRAMS(K=2, alpha=1.3, eta=0.7)
    q, rng = vb_climbs(model, DOCUMENTS).best.state, np.random.default_rng(0)
    terms = q.q.expected_log_terms(DOCUMENTS)
    of_z = scipy.special.softmax(terms, axis=1)
    entropy = -np.sum(scipy.special.xlogy(of_z, of_z))
    found, (of_weights, of_topics) = [], (law.alpha for law in q.q.laws)
    for _ in range(4000):
        weights, topics = rng.dirichlet(of_weights), np.array([rng.dirichlet(a) for a in of_topics])
        joint = scipy.stats.dirichlet.logpdf(weights, [1.3] * 2) - scipy.stats.dirichlet.logpdf(weights, of_weights)
        for topic, a in zip(topics, of_topics, strict=True):
            joint += scipy.stats.dirichlet.logpdf(topic, [0.7] * 3) - scipy.stats.dirichlet.logpdf(topic, a)
        found.append(joint + np.sum(of_z * (np.log(weights) + DOCUMENTS["counts"] @ np.log(topics).T)))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) + entropy - vb_climbs(model, DOCUMENTS).best.objective) < 4.4 * error
    assert error < 0.1


def test_means_are_those_of_scikit_learn():
    model = GAUSSIAN(K=2, alpha=0.8, m0=[3.5, 70.0], kappa0=0.5, nu0=4.0, Psi0=[[1.0, 0.0], [0.0, 100.0]])
    prior = {"mean_prior": [3.5, 70.0], "mean_precision_prior": 0.5, "covariance_prior": np.diag([1.0, 100.0])}
    prior |= {"weight_concentration_prior_type": "dirichlet_distribution", "weight_concentration_prior": 0.8}
    options = {"reg_covar": 0.0, "tol": 1e-12, "max_iter": 2000, "random_state": 0, "degrees_of_freedom_prior": 4.0}
    theirs = sklearn.mixture.BayesianGaussianMixture(n_components=2, **prior, **options).fit(FAITHFUL["Y"])
    q = vb_climbs(model, FAITHFUL).best.state
    weights = q.q.weights.alpha
    order, other = np.argsort(weights), np.argsort(theirs.weight_concentration_)
    assert weights[order] == pytest.approx(theirs.weight_concentration_[other], rel=1e-5)
    assert q.q.law.m[order] == pytest.approx(theirs.means_[other], rel=1e-5)


def test_k_hat_sees_what_q_does_not_cover():
    """Well separated clusters are covered; where rows lie between two, q is too narrow."""
    apart = bz.read(GAUSSIAN, {"Y": np.r_[np.linspace(-12, -4, 30), np.linspace(4, 12, 30)][:, None], "column": ["y"]})
    close = bz.read(GAUSSIAN, {"Y": np.linspace(-2, 2, 9)[:, None], "column": ["y"]})
    model = GAUSSIAN(K=2)
    good, bad = (
        vb.described(Problem(model, data, np.random.default_rng(0)), vb_climbs(model, data).best.state, (1, 1000))[1]
        for data in (apart, close)
    )
    assert good["k_hat"] <= 0.7
    assert bad["k_hat"] > 0.7
    assert bad["k_hat_draws"] == MAX_DRAWS


def test_without_the_orders_of_the_labels_the_evidence_would_be_off_by_log_k_factorial():
    model = GAUSSIAN.weak(FAITHFUL)
    q = vb_climbs(model, FAITHFUL).best.state
    draws = model.vb_posterior(q).rvs(50, np.random.default_rng(0))
    plain = [model.vb_posterior(q).logpdf({name: values[i] for name, values in draws.items()}) for i in range(50)]
    assert model.vb_log_density(q, draws) == pytest.approx(np.array(plain) - np.log(2), abs=1e-9)


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_log_permanent_is_the_sum_over_permutations(K):
    terms = np.random.default_rng(K).normal(size=(5, K, K)) * 20
    each = [sum(terms[:, j, order[j]] for j in range(K)) for order in itertools.permutations(range(K))]
    assert mixture.log_permanent(terms) == pytest.approx(scipy.special.logsumexp(each, axis=0), abs=1e-12)


@pytest.mark.slow
def test_superfluous_components_are_seen():
    data = bz.read(GAUSSIAN, {"Y": np.random.default_rng(0).normal(size=(200, 1)), "column": ["y"]})
    tree = bz.fit(GAUSSIAN.weak_with(data, {"K": 4, "alpha": 0.01}), data, "vb", seed=1)
    assert Fit(tree).facts["occupied_components"] == 1


class CountsTwice(UNIGRAMS):
    """q(theta) counts every word twice."""

    name = "multinomial_mixture"

    def vb_m_step(self, stats):
        documents, words = stats.stats.parts
        return super().vb_m_step(stats._replace(stats=Several((documents, words.discounted(2)))))


def test_a_wrong_step_is_seen():
    try:
        found = vb_climbs(CountsTwice(K=2), DOCUMENTS).best.objective
    except ascent.AscentError:  # it fell
        found = -np.inf
    assert found < vb_climbs(UNIGRAMS(K=2), DOCUMENTS).best.objective - 0.1


@pytest.mark.usefixtures("unmeasured")
def test_a_second_optimum_of_the_elbo_that_matters_does_not_pass():
    rows = np.concatenate([centre + np.linspace(-0.3, 0.3, 4) for centre in (-5, 0, 5)])[:, None]
    data = bz.read(GAUSSIAN, {"Y": rows, "column": ["y"]})
    tree = bz.fit(GAUSSIAN.weak_with(data, {"alpha": 5.0, "nu0": 12.0}), data, "vb", seed=1)
    checks = Fit(tree).checks
    assert Fit(tree).facts["k_hat"] <= MAX_K_HAT  # which sees one mode only
    assert not checks["next_optimum_weight"]["passed"]
    assert tree.attrs["status"] == "failed"


@pytest.mark.slow
def test_mirror_images_are_two_optima():
    """Two far groups of equal size: E mu is 0, and q lies about one of them."""
    model = bz.find("student_t")
    rows = np.concatenate([centre + np.linspace(-2, 2, 9) for centre in (-10, 10)])
    tree = bz.fit(model(m0=0.0, kappa0=0.01, a0=0.5, b0=0.5, nu=1.0), bz.read(model, rows), "vb", seed=1)
    checks = Fit(tree).checks
    assert checks["next_optimum_weight"]["value"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", ["map", "mle"])
def test_mirror_images_of_one_height_are_no_answer_without_a_word(method):
    """The row in the middle belongs to the component on either side."""
    rows = bz.read(GAUSSIAN, {"Y": [[-3.0], [-3.1], [-2.9], [0.0], [2.9], [3.1], [3.0]], "column": ["y"]})
    fit = Fit(bz.fit(GAUSSIAN.weak_with(rows, {"K": 2}), rows, method, seed=1, groups=()))
    assert fit.checks["equal_maxima"]["value"] == 1
    assert fit.status == "caution"
    assert "equal_maxima" not in Fit(bz.fit(GAUSSIAN.weak(FAITHFUL), FAITHFUL, method, seed=1, groups=())).checks
