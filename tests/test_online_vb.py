"""Variational Bayes by minibatches: its limits, where it ends beside batch steps, and what it says of that."""

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.errors import InputError
from bayeszoo.families.documents import topic_model
from bayeszoo.inference.methods import online_vb, vb
from bayeszoo.results.stored import Fit
from tests.topic_oracles import corpus

LDA = bz.find("lda")
MODEL = LDA(K=3, alpha=0.3, eta=0.2)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    table = rng.multinomial(100, rng.dirichlet(np.full(3, 0.3), 300) @ rng.dirichlet(np.full(40, 0.2), 3))
    return bz.read(LDA, corpus(table))


@pytest.fixture(scope="module")
def batch(data):
    return max(one.objective for one in vb.climbs(MODEL, data, np.random.default_rng(1), restarts=4).climbs)


def test_one_batch_of_all_rows_with_step_one_is_batch_variational_bayes(data):
    q = online_vb.climbed(MODEL, data, np.random.default_rng(3), 300, 5, lambda t: 1.0)
    expected = MODEL.vb_start(data, np.random.default_rng(3))
    for _ in range(5):
        expected = MODEL.vb_m_step(MODEL.vb_e_step(topic_model.with_documents(expected, data), data).stats)
    assert q.words == pytest.approx(expected.words, rel=1e-12)
    assert q.documents == pytest.approx(topic_model.with_documents(expected, data).documents, rel=1e-12)


def test_going_on_so_it_ends_at_an_optimum_of_batch_variational_bayes(data):
    q = online_vb.climbed(MODEL, data, np.random.default_rng(3), 300, 150, lambda t: 1.0)
    assert abs(online_vb.elbo(MODEL, online_vb.swept(MODEL, q, data), data) - online_vb.elbo(MODEL, q, data)) < 0.5


def test_minibatches_end_near_the_batch_optimum(data, batch):
    ends = [
        online_vb.climbed(MODEL, data, np.random.default_rng(seed), 30, 10, lambda t: (t + 1) ** -0.7)
        for seed in range(3)
    ]
    heights = [online_vb.elbo(MODEL, q, data) for q in ends]
    assert batch - 200 < max(heights) < batch


def test_steps_are_a_mean_of_natural_parameters_and_targets_count_all_rows(data):
    """A step of 0 changes no topic; of 1, the topics hold as many words as all documents, whatever the minibatch."""
    q = MODEL.vb_start(data, np.random.default_rng(0))
    part = LDA.inputs.reordered(data, np.arange(50))
    target = online_vb._target(MODEL, q, part, 6.0)
    assert (target.words - 0.2).sum() == pytest.approx(6 * 50 * 100)
    assert MODEL.vb_mixed(q, target, 0.0).words == pytest.approx(q.words)
    assert MODEL.vb_mixed(q, target, 0.25).words == pytest.approx(0.75 * q.words + 0.25 * target.words)


@pytest.mark.slow
def test_own_factors_are_the_best_for_the_topics_held(data):
    found = vb.climbs(MODEL, data, np.random.default_rng(0), restarts=1).best.state
    q = MODEL.vb_local(found, data)
    best = online_vb.elbo(MODEL, q, data)
    rng = np.random.default_rng(1)
    for _ in range(5):
        moved = q.of_documents(q.documents * np.exp(0.3 * rng.standard_normal(q.documents.shape)))
        assert online_vb.elbo(MODEL, moved, data) < best


def test_a_fit_has_the_complete_elbo_and_says_how_far_it_is_from_an_optimum(data, batch):
    tree = bz.fit(MODEL, data, "online_vb", seed=1, passes=5, draws=50)
    facts, checks = Fit(tree).facts, Fit(tree).checks
    assert batch - 500 < facts["elbo"] < batch
    assert len(facts["maxima"]) == facts["restarts"] == 3
    assert checks["gain of a sweep over all rows, relative"]["value"] > 0
    assert not checks["restarts that reached the best"]["passed"]
    assert "too unequal" in facts["k_hat_withheld"]
    assert tree.attrs["status"] == "failed"
    assert tree["posterior"]["topics"].shape == (4, 50, 3, 40)


def test_steps_that_fall_too_slowly_are_refused(data):
    with pytest.raises(InputError, match="forgetting must be above"):
        bz.fit(MODEL, data, "online_vb", seed=1, forgetting=0.5)


def test_models_without_parameters_of_rows_are_refused():
    with pytest.raises(InputError, match="it lacks Stochastic"):
        bz.fit(bz.find("multinomial_mixture")(), method="online_vb", seed=1)
