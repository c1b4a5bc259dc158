"""Latent Dirichlet allocation: limits, enumeration, EM and variational Bayes, of all rows and by minibatches."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy
from scipy.special import digamma, gammaln
from sklearn import decomposition

import bayeszoo as bz
from bayeszoo.comparison.evidence import empirical_bayes
from bayeszoo.contract.case import Case
from bayeszoo.contract.check import IDENTITIES, run_identity
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.documents import topic_model
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference import reference
from bayeszoo.inference.engine import ascent
from bayeszoo.inference.engine.ascent import BUDGET, Ascent, Effort, search
from bayeszoo.inference.methods import em, online_vb, vb
from bayeszoo.inference.methods.enumeration import Enumeration
from bayeszoo.inference.problem import Problem
from bayeszoo.inference.starts import starts
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.topic_oracles import corpus, log_joint

LDA, UNIGRAM = bz.find("lda"), bz.find("dirichlet_multinomial")


TINY = corpus([[2, 1, 0], [0, 2, 1], [1, 0, 2]])


def planted(documents=200, length=60, K=3, V=20, alpha=0.3, eta=0.2, seed=0):
    """Return a corpus from known topics, drawn by NumPy alone."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.dirichlet(np.broadcast_to(alpha, K), documents), rng.dirichlet(np.full(V, eta), K)
    return corpus(rng.multinomial(length, theta @ phi))


class Large(LDA):
    """Says that it costs so much that it is not climbed to rounding."""

    name = "lda"

    def cost(self, data):
        return BUDGET / 500


def dense(data):
    """Return the table of documents and words."""
    table = np.zeros((len(data["document"]), len(data["word"])))
    table[data["doc"], data["term"]] = data["counts"]
    return table


# one topic is the unigram model


def test_one_topic_is_the_unigram_model():
    eta = np.array([0.5, 1.0, 2.5, 0.3])
    table = np.random.default_rng(0).poisson(2.0, (6, 4))
    model, data, unigram = LDA(K=1, alpha=0.7, eta=eta), bz.read(LDA, corpus(table)), UNIGRAM(alpha=eta)
    labels = np.array([f"w{i + 1}" for i in range(4)])
    stats = unigram.statistics(bz.read(unigram, {"y": np.repeat(np.arange(4), table.sum(axis=0)), "category": labels}))
    climb = vb.climbs(model, data, np.random.default_rng(0), restarts=2).best
    assert climb.objective == pytest.approx(unigram.log_evidence(stats), rel=1e-9)
    assert Enumeration.of(model, data).log_evidence == pytest.approx(climb.objective, rel=1e-9)
    found, expected = model.vb_posterior(climb.state)["topics"], unigram.posterior(stats)["p"]
    assert found.std()[0] == pytest.approx(expected.std(), rel=1e-9)


# enumeration over words


@pytest.mark.parametrize("alpha", [0.4, (0.4, 1.7)])
def test_enumeration_is_brute_force_over_the_topic_of_each_word(alpha):
    eta = (0.3, 0.9, 1.4)
    found = bz.enumerate_posterior(LDA(alpha=alpha, eta=eta), TINY)
    every = np.array(list(itertools.product(range(2), repeat=9)))
    logs = [log_joint(z, TINY, np.broadcast_to(alpha, 2), np.array(eta)) for z in every]
    assert found.log_evidence == pytest.approx(scipy.special.logsumexp(logs), rel=1e-12)
    same = np.tensordot(scipy.special.softmax(logs), every[:, :, None] == every[:, None], 1)
    assert found.coclustering == pytest.approx(same, abs=1e-12)
    assert len(found.log_joint) == 2**9
    assert LDA(alpha=alpha).exchangeable_axis() == (None if np.ndim(alpha) else "topic")


def test_prediction_of_another_document_is_the_ratio_of_evidences():
    model = LDA(alpha=0.4, eta=0.7)
    both, first = corpus([[2, 1, 0], [0, 1, 2], [1, 1, 1]]), corpus([[2, 1, 0], [0, 1, 2]])
    found = bz.enumerate_posterior(model, first).log_predictive({**corpus([[1, 1, 1]]), "document": np.array(["new"])})
    expected = Enumeration.of(model, both).log_evidence - Enumeration.of(model, first).log_evidence
    assert found == pytest.approx([expected], rel=1e-12)


# EM, against another library


@pytest.fixture(scope="module")
def small():
    return planted(30, 25, 2, 8)


def test_the_mle_is_no_worse_than_scikit_learns_nonnegative_factorization(small):
    """PLSA and NMF by Kullback-Leibler divergence have one objective (Gaussier and Goutte 2005)."""
    table = dense(small)
    best = em.climbs(LDA(), small, np.random.default_rng(0), flat=True, restarts=5).best
    options = {"solver": "mu", "beta_loss": "kullback-leibler", "init": "random", "max_iter": 20_000, "tol": 1e-10}
    nmf = decomposition.NMF(2, random_state=0, **options)
    product = nmf.fit_transform(table) @ nmf.components_
    theirs = np.sum(scipy.special.xlogy(table, product / product.sum(axis=1, keepdims=True)))
    assert best.objective == pytest.approx(theirs, rel=1e-5)
    assert best.objective >= theirs - 1e-6


@pytest.mark.parametrize("alpha", [1.5, pytest.param((1.2, 2.0), marks=pytest.mark.slow)])
def test_the_identities_hold_where_the_posterior_has_a_mode(small, alpha):
    model = LDA(alpha=alpha, eta=1.3)
    case = Case(model, bz.read(model, topic_model.shortened(small, 40)))
    for identity in IDENTITIES:
        if identity.function in ("em_objective", "em_map_is_stationary", "labels_mean_nothing", "bound"):
            found = run_identity(identity, case)
            assert found.passed, str(found)


def test_an_empty_document_has_the_mode_of_its_prior():
    data = corpus([[3, 1, 0], [0, 0, 0], [0, 1, 4]])
    for model, flat, expected in ((LDA(alpha=(2.0, 3.0), eta=2.0), False, [1 / 3, 2 / 3]), (LDA(), True, [0.5, 0.5])):
        mode = em.climbs(model, data, np.random.default_rng(0), flat=flat).best.state
        assert mode["proportions"][1] == pytest.approx(expected, rel=1e-12)


# variational Bayes


def test_importance_weights_of_a_wider_q_average_to_the_evidence():
    """Averaged over both orders of the labels; of q itself they have too heavy a tail."""
    model = LDA(K=2, alpha=0.6, eta=0.8)
    q = vb.climbs(model, TINY, np.random.default_rng(0)).best.state
    wide = replace(q, documents=0.6 + (q.documents - 0.6) / 4, words=0.8 + (q.words - 0.8) / 4)
    draws = model.vb_posterior(wide).rvs(100_000, np.random.default_rng(1))
    log_joint = topic_model.log_documents(draws, TINY).sum(axis=1) + model.log_prior(draws, TINY)
    weights = log_joint - model.vb_log_density(wide, draws)
    exact = Enumeration.of(model, TINY).log_evidence
    assert scipy.special.logsumexp(weights) - math.log(len(weights)) == pytest.approx(exact, abs=0.03)


def test_the_elbo_is_scikit_learns_bound():
    """At one q of the topics; its `_approx_bound` is of the same terms, from code of their own."""
    data, model = planted(), LDA(K=3, alpha=0.3, eta=0.2)
    table = dense(data)
    theirs = decomposition.LatentDirichletAllocation(
        3, doc_topic_prior=0.3, topic_word_prior=0.2, max_iter=30, mean_change_tol=1e-9, max_doc_update_iter=1000
    ).fit(table)
    proportions = theirs._unnormalized_transform(table)
    bound = theirs._approx_bound(table, proportions, sub_sampling=False)
    q = topic_model.TopicFactors(proportions, theirs.components_.T.copy(), np.full(3, 0.3), np.full(20, 0.2))
    ours = model.vb_e_step(q, data).value - model.divergence(q)
    assert ours == pytest.approx(bound, rel=1e-8)


TWO_DOCUMENTS = {"proportions": np.full((2, 2), 0.5), "topics": np.full((2, 3), 1 / 3)}
REFUSED = {
    "words": ("too_large", ("21", "2**21"), lambda: bz.enumerate_posterior(LDA(), corpus([[10, 11]]))),
    "alpha": ("no_maximum", ("alpha < 1",), lambda: bz.fit(LDA(alpha=0.5, eta=1.5), TINY, "map", seed=1)),
    "eta": ("no_maximum", ("eta < 1",), lambda: bz.fit(LDA(alpha=1.5, eta=0.5), TINY, "map", seed=1)),
    "documents": ("wrong_shape", ("proportions", 2, 3), lambda: LDA().component_probabilities(TWO_DOCUMENTS, TINY)),
    "topics": ("wrong_shape", ("alpha", 3, 2), lambda: bz.fit(LDA(alpha=(1.0, 2.0, 3.0)), TINY, "vb", seed=1)),
    "field": ("unknown_field", ("K", "alpha, eta"), lambda: bz.empirical_bayes(LDA(), TINY, "K")),
}


@pytest.mark.parametrize(("code", "names", "call"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_in_a_line(code, names, call):
    with raises(NumericalError if code == "no_maximum" else InputError, code, *names):
        call()


# data of real size


def test_of_costly_steps_a_few_climbs_are_made_and_the_gate_says_so():
    data = planted(60, 30)
    tree = bz.fit(Large(K=5, alpha=0.1, eta=0.1), data, "vb", seed=1, restarts=4)
    facts, checks = Fit(tree).facts, Fit(tree).checks
    assert tree.attrs["status"] != "ok"  # by how much the next optimum is lower depends on the starts
    assert facts["restarts"] == 4
    assert checks["gain_left"]["value"] <= 1e-5
    assert checks["restarts"]["value"] == 1
    assert checks["distance_to_posterior"]["verdict"] == "caution"
    assert "too many parameters" in facts["k_hat_withheld"]
    assert len(facts["maxima"]) >= 2


@pytest.mark.parametrize(("restarts", "made"), [(20, 2), (1, 1), (25, 25)])
def test_no_climb_is_begun_beyond_the_budget_unless_more_than_usual_were_asked_for(restarts, made):
    effort = Effort(gain_left=1e-5, steps=1000, budget=1000)

    def evaluate(x):
        return -1000 * math.exp(-x / 30), Expectation(x, 0.0)

    rng, reporter = np.random.default_rng(0), Reporter()
    options = {"restarts": restarts, "effort": effort}
    found = search(Ascent(lambda rng: rng.random(), (evaluate, lambda x: x + 1)), rng, reporter, **options)
    assert len(found.climbs) == made
    assert 300 < len(found.best.trace) < 600
    assert found.best.gain_left <= 1e-5


@pytest.mark.slow
def test_draws_of_many_numbers_are_fewer(monkeypatch):
    monkeypatch.setattr(vb, "MOST_NUMBERS", 4 * 10 * (60 * 2 + 2 * 20))
    monkeypatch.setattr(reference, "MOST_COORDINATES", 100)  # NUTS would take half an hour to measure it
    tree = bz.fit(Large(), planted(60, 30), "vb", seed=1, restarts=2, groups=())
    assert tree["posterior"].sizes["draw"] == 10
    assert Fit(tree).facts["draws_withheld"] == "10 draws a chain instead of 1000: they are of 160 numbers"


# empirical Bayes


@pytest.mark.parametrize("alpha", [[0.5, 2.0, 7.0], [0.8, 1.1, 0.9, 3.0], 1.5])
def test_the_concentration_of_known_rows_is_the_best(alpha):
    rng, K = np.random.default_rng(0), max(np.size(alpha), 2)
    rows = rng.gamma(np.broadcast_to(alpha, K), size=(200, K)) * 100 + 1e-3
    logs = np.sum(digamma(rows) - digamma(rows.sum(axis=1, keepdims=True)), axis=0)

    def loss(log_alpha):
        a = np.broadcast_to(np.exp(log_alpha), K)
        return -(200 * (gammaln(a.sum()) - gammaln(a).sum()) + (a - 1) @ logs)

    direct = np.exp(scipy.optimize.minimize(loss, np.zeros(np.size(alpha)), method="BFGS").x)
    found = topic_model.best_concentration(rows, 1.0 if np.ndim(alpha) == 0 else [1.0] * K)
    assert np.ravel(found) == pytest.approx(direct, rel=1e-3)


def test_alpha_and_eta_are_where_no_field_nearby_has_a_larger_bound():
    data = planted(60, 50, 2, 10)
    found = bz.empirical_bayes(LDA(alpha=1.0, eta=1.0), data, ["alpha", "eta"], starts=2)
    assert found.status == "ok"
    assert found.elbo > found.elbo_before + 10
    assert np.min(np.diff(found.trace)) > -1e-9 * abs(found.elbo)
    assert "the log evidence itself is withheld" in repr(found)
    for name, factor in itertools.product(("alpha", "eta"), (0.9, 1.1)):
        moved = replace(found.model, **{name: factor * getattr(found.model, name)})
        assert vb.climbs(moved, data, np.random.default_rng(0), restarts=4).best.objective < found.elbo


@pytest.mark.slow
def test_documents_all_alike_have_no_best_alpha(monkeypatch):
    monkeypatch.setattr(ascent, "BUDGET", 1e8)
    with raises(NumericalError, "not_converged"):
        bz.empirical_bayes(LDA(alpha=1.0, eta=1.0), corpus(np.tile([30, 20, 10], (8, 1))), "alpha", starts=2)


def test_fields_at_an_edge_of_the_search_are_no_maximum():
    edges = empirical_bayes._edges(LDA(alpha=1e6, eta=1e-6), ("alpha", "eta"))
    assert edges["alpha"].endswith("as alpha -> infinity")
    assert edges["eta"].endswith("as eta -> 0")


# NUTS and ADVI


@pytest.mark.slow
def test_the_marginal_is_what_advi_approximates():
    model = LDA(alpha=1.5, eta=1.5)
    tree = bz.fit(model, TINY, "advi", seed=1)
    assert Fit(tree).facts["elbo"] < Enumeration.of(model, TINY).log_evidence + 0.01


@pytest.mark.slow
def test_starts_are_at_the_optima_of_the_elbo_where_there_is_no_mode():
    found = starts(Problem(LDA(alpha=0.3, eta=0.3), bz.read(LDA, TINY), np.random.default_rng(0)))
    assert all(np.isfinite(one.x).all() for one in found)


@pytest.mark.slow
def test_climbs_on_real_documents_end_above_scikit_learns():
    """The lowest of ours above the highest of theirs; from topics at random it was 4,000 nats below what it is."""
    data, model = dict(bz.example(LDA)), LDA(K=5, alpha=0.1, eta=0.1)
    table, theirs = dense(data), []
    words = np.full(table.shape[1], 0.1)
    options = {"doc_topic_prior": 0.1, "topic_word_prior": 0.1, "max_iter": 60}
    for seed in range(3):
        fitted = decomposition.LatentDirichletAllocation(5, **options, random_state=seed).fit(table)
        proportions, topics = fitted._unnormalized_transform(table), fitted.components_.T.copy()
        q = topic_model.TopicFactors(proportions, topics, words[:5], words)
        q = topic_model.with_documents(q, data)
        theirs.append(model.vb_e_step(q, data).value - model.divergence(q))
    climbs = vb.climbs(model, data, np.random.default_rng(0), restarts=3).climbs
    assert len(climbs) == 3
    assert climbs[-1].objective > max(theirs) + 500


# Minibatches


THREE = LDA(K=3, alpha=0.3, eta=0.2)


@pytest.fixture(scope="module")
def docs():
    rng = np.random.default_rng(0)
    table = rng.multinomial(100, rng.dirichlet(np.full(3, 0.3), 300) @ rng.dirichlet(np.full(40, 0.2), 3))
    return bz.read(LDA, corpus(table))


@pytest.fixture(scope="module")
def batch(docs):
    return max(one.objective for one in vb.climbs(THREE, docs, np.random.default_rng(1), restarts=2).climbs)


def test_batches_of_all_rows_with_step_one_are_batch_variational_bayes_and_end_at_an_optimum(docs):
    q = online_vb.climbed(THREE, docs, np.random.default_rng(3), 300, 5, lambda t: 1.0)
    expected = THREE.vb_start(docs, np.random.default_rng(3))
    for _ in range(5):
        expected = THREE.vb_m_step(THREE.vb_e_step(topic_model.with_documents(expected, docs), docs).stats)
    assert q.words == pytest.approx(expected.words, rel=1e-12)
    assert q.documents == pytest.approx(topic_model.with_documents(expected, docs).documents, rel=1e-12)
    q = online_vb.climbed(THREE, docs, np.random.default_rng(3), 300, 150, lambda t: 1.0)
    swept = THREE.vb_m_step(THREE.vb_e_step(q, docs).stats)
    assert abs(online_vb.elbo(THREE, swept, docs) - online_vb.elbo(THREE, q, docs)) < 0.5


def test_steps_are_a_mean_of_natural_parameters_and_targets_count_all_rows(docs):
    """A step of 0 changes no topic; of 1, the topics hold as many words as all documents, whatever the minibatch."""
    q = THREE.vb_start(docs, np.random.default_rng(0))
    part = LDA.inputs.reordered(docs, np.arange(50))
    target = online_vb._target(THREE, q, part, 6.0)
    assert (target.words - 0.2).sum() == pytest.approx(6 * 50 * 100)
    assert THREE.vb_mixed(q, target, 0.0).words == pytest.approx(q.words)
    assert THREE.vb_mixed(q, target, 0.25).words == pytest.approx(0.75 * q.words + 0.25 * target.words)


@pytest.mark.slow
def test_own_factors_are_the_best_for_the_topics_held(docs):
    found = vb.climbs(THREE, docs, np.random.default_rng(0), restarts=1).best.state
    q = THREE.vb_local(found, docs)
    best = online_vb.elbo(THREE, q, docs)
    rng = np.random.default_rng(1)
    for _ in range(5):
        moved = q.of_documents(q.documents * np.exp(0.3 * rng.standard_normal(q.documents.shape)))
        assert online_vb.elbo(THREE, moved, docs) < best


def test_a_fit_has_the_complete_elbo_and_says_how_far_it_is_from_an_optimum(docs, batch):
    tree = bz.fit(THREE, docs, "online_vb", seed=1, passes=5, draws=50)
    facts, checks = Fit(tree).facts, Fit(tree).checks
    assert batch - 200 < facts["elbo"] < batch
    assert len(facts["maxima"]) == facts["restarts"] == 3
    gain = checks["sweep_gain"]["value"]
    assert 0 < gain < (batch - facts["elbo"]) / abs(facts["elbo"])  # a sweep does not go beyond the optimum
    assert not checks["restarts"]["passed"]
    assert "too many parameters" in facts["k_hat_withheld"]
    assert tree.attrs["status"] == "failed"
    assert tree["posterior"]["topics"].shape == (4, 50, 3, 40)


def test_what_minibatches_cannot_do_is_refused(docs):
    with raises(InputError, "out_of_range"):
        bz.fit(THREE, docs, "online_vb", seed=1, forgetting=0.5)
    with raises(InputError, "method_unavailable"):
        bz.fit(bz.find("multinomial_mixture")(), method="online_vb", seed=1)


def test_one_topic_has_its_posterior_in_closed_form_and_vb_finds_it():
    """All words are of the topic: its Dirichlet is that of a conjugate model, and the ELBO is the evidence."""
    counts = np.array([[3, 2, 0], [1, 0, 4], [0, 2, 0]])
    tree = bz.fit(
        bz.find("lda")(K=1), bz.read(bz.find("lda")(K=1), {"counts": counts, "word": ["x", "y", "z"]}), "vb", seed=1
    )
    assert tree.attrs["status"] == "ok"
    total = counts.sum(axis=0)
    evidence = gammaln(0.3) - gammaln(0.3 + total.sum()) + np.sum(gammaln(0.1 + total) - gammaln(0.1))
    assert bz.facts(tree)["elbo"] == pytest.approx(evidence, abs=1e-9)
    assert (tree["posterior"]["proportions"] == 1).all()


def test_there_is_no_mle_of_two_topics_of_one_document():
    """Any two topics whose average is the document's shares of words have the same likelihood."""
    data = bz.read(LDA, {"counts": [[3, 1, 2, 0, 3]], "word": list("abcde"), "document": ["x"]})
    with raises(NumericalError, "no_maximum"):
        bz.fit(LDA(K=2, alpha=1.5, eta=1.5), data, "mle", seed=1, groups=())
    assert bz.fit(LDA(K=2, alpha=1.5, eta=1.5), data, "map", seed=1, groups=()).attrs["status"] == "ok"


def test_topics_that_may_be_nearer_or_farther_apart_have_no_mle():
    """Two topics on the line of three documents' shares of words: what lies beyond them on both sides fits as well."""
    documents = {"counts": [[8, 2, 1], [1, 7, 3], [2, 3, 9]], "word": list("abc"), "document": list("xyz")}
    for seed in (1, 2):
        with raises(NumericalError, "no_maximum"):
            bz.fit(LDA(K=2, alpha=1.5, eta=1.5), bz.read(LDA, documents), "mle", seed=seed)


def test_counts_of_billions_of_words_need_no_memory_for_each():
    counts = np.array([[10**9, 5], [3, 10**9]])
    data = bz.read(LDA, {"counts": counts, "word": list("ab"), "document": list("xy")})
    begun = topic_model.counts_to_start(data, np.full(2, 0.1), np.full(2, 0.1), np.random.default_rng(1))
    shown = begun.documents.sum(axis=1) / counts.sum(axis=1)
    np.testing.assert_allclose(shown, 1, rtol=0.01)
    np.testing.assert_allclose(begun.words.sum(), begun.documents.sum())
    with raises(InputError, "too_large"):
        LDA(K=2).gibbs(data, np.random.default_rng(1))
