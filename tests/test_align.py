"""Label switching: draws whose true labels are known, and everything that can be permuted wrongly."""

import itertools
import sys

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.errors import InputError
from bayeszoo.inference.labels.align import align, inverse, match, permute
from tests.quick import zoo_with
from tests.refusals import raises

module = sys.modules["bayeszoo.inference.labels.align"]  # the package may export a function of that name
latent_models = zoo_with("latent_models")
RATES = np.array([2.0, 9.0, 25.0])
WEIGHTS = np.array([0.5, 0.3, 0.2])


def poisson(K=3):
    return bz.find("toy_poisson_mixture")(K, 1.0, 1.0, 0.1)


def switched(rng, K, shape=(4, 200)):
    return rng.permuted(np.tile(np.arange(K), (*shape, 1)), axis=-1)


def noisy(rng, shape=(4, 200), noise=0.05):
    """Draws around one set of parameters, their labels by decreasing weight."""
    return {
        "weights": rng.dirichlet(400 * WEIGHTS, shape),
        "rates": RATES * np.exp(noise * rng.normal(size=(*shape, 3))),
        "other": rng.normal(size=(*shape, 3)),  # which has no component axis
    }


def rows(rng, n=150):
    return {"y": rng.poisson(RATES[rng.choice(3, n, p=WEIGHTS)])}


def chain():
    """A hidden Markov chain, whose transition matrix has two axes of states."""
    return bz.find("hmm_gaussian")(K=3)


def hidden_chain(rng, shape=(2, 100)):
    base = np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.05, 0.45, 0.5]])
    params = {
        "initial": rng.dirichlet([20.0, 30.0, 10.0], shape),
        "transition": np.stack([rng.dirichlet(200 * row, shape) for row in base], axis=-2),
        "means": np.array([0.0, 0.5, 3.0]) + 0.05 * rng.normal(size=(*shape, 3)),  # two states that overlap
        "variances": np.ones((*shape, 3)),
        "scale": rng.gamma(3.0, size=shape),  # which has no axis of states
    }
    states = [0]
    for _ in range(199):
        states.append(rng.choice(3, p=base[states[-1]]))
    return params, bz.read(chain(), np.array([0.0, 0.5, 3.0])[states] + rng.normal(size=200))


def equal(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


# Permuting


def test_permutations_are_undone_bit_for_bit_and_move_every_axis_of_components():
    rng = np.random.default_rng(1)
    params, data = hidden_chain(rng)
    permutations = switched(rng, 3, (2, 100))
    moved = permute(chain(), params, permutations)
    for at in [(0, 0), (1, 57), (1, 99)]:
        order = permutations[at]
        assert (moved["means"][at] == params["means"][at][order]).all()
        assert (moved["transition"][at] == params["transition"][at][order][:, order]).all()
    assert equal(permute(chain(), moved, inverse(permutations)), params)
    assert (moved["scale"] == params["scale"]).all()
    assert not equal(moved, params)
    assert chain().log_likelihoods(moved, data) == pytest.approx(chain().log_likelihoods(params, data), rel=1e-12)
    assigned = np.take_along_axis(chain().component_probabilities(params, data), permutations[..., None, :], axis=-1)
    assert chain().component_probabilities(moved, data) == pytest.approx(assigned, abs=1e-12)


def test_one_point_has_one_permutation_and_matrices_keep_their_columns():
    model = bz.find("multinomial_mixture")(3)
    params = {"weights": np.array([0.2, 0.3, 0.5]), "topics": np.arange(6.0).reshape(3, 2)}
    moved = permute(model, params, np.array([2, 0, 1]))
    assert moved["weights"].tolist() == [0.5, 0.2, 0.3]
    assert moved["topics"].tolist() == [[4, 5], [0, 1], [2, 3]]


def test_an_axis_of_another_length_is_refused_and_labels_that_mean_something_stay():
    params, data = hidden_chain(np.random.default_rng(1))
    with raises(InputError, "wrong_shape", "initial", "3", "2"):
        permute(chain(), params, np.zeros((2, 100, 2), dtype=int))
    told_apart = type("HMMGaussian", (type(chain()),), {"exchangeable_axis": lambda self: None})(K=3)
    assert equal(permute(told_apart, params, np.zeros((2, 100, 3), dtype=int)), params)
    assert (align(told_apart, params, data).permutations == np.arange(3)).all()
    assert match(told_apart, params, np.zeros((200, 3)), data).tolist() == [0, 1, 2]


# Aligning


@pytest.mark.parametrize("seed", range(4))
def test_labels_switched_at_random_are_found_again(seed):
    rng = np.random.default_rng(seed)
    truth, data = noisy(rng), rows(rng)
    permutations = switched(rng, 3)
    found = align(poisson(), permute(poisson(), truth, permutations), data)
    assert (found.permutations == inverse(permutations)).all()  # the weights decrease
    assert equal(permute(poisson(), permute(poisson(), truth, permutations), found.permutations), truth)
    assert (found.stability > 0.9).all()
    mean = np.mean(poisson().component_probabilities(truth, data), axis=(0, 1))
    assert found.responsibilities == pytest.approx(mean, abs=1e-12)


def test_draws_unlike_the_others_do_not_decide():
    rng = np.random.default_rng(11)
    truth, data = noisy(rng), rows(rng)
    truth["rates"][0, 0], truth["weights"][0, 0] = 9.0, 1 / 3  # no guide to the others, if the search began there
    permutations = switched(rng, 3)
    moved = permute(poisson(), truth, permutations)
    found = align(poisson(), moved, data).permutations
    assert (found.reshape(-1, 3)[1:] == inverse(permutations).reshape(-1, 3)[1:]).all()


def test_each_permutation_is_the_best_of_all_for_the_mean():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(4), (60, 30)).swapaxes(1, 2)  # responsibilities that are noise
    q = p.mean(axis=0) + 0.1 * rng.dirichlet(np.ones(4), 30).T
    q /= q.sum(axis=0)
    found, cost = module._nearest(p, q)
    smooth = lambda r: (1 - module._SMOOTH) * r + module._SMOOTH / 4  # noqa: E731
    every = np.array(list(itertools.permutations(range(4))))
    divergence = scipy.special.rel_entr(smooth(p[:, every]), smooth(q)).sum(axis=(2, 3))
    assert (found == every[divergence.argmin(axis=1)]).all()
    entropy = scipy.special.entr(smooth(p)).sum()
    assert cost - entropy == pytest.approx(divergence.min(axis=1).sum(), rel=1e-10)
    q = module._mean(p, found)
    assert q == pytest.approx(np.mean([draw[order] for draw, order in zip(p, found, strict=True)], axis=0), abs=1e-13)


def test_of_many_rows_the_same_ones_are_looked_at(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 60)
    rng = np.random.default_rng(6)
    truth, data = noisy(rng), rows(rng, 600)
    permutations = switched(rng, 3)
    moved = permute(poisson(), truth, permutations)
    found = align(poisson(), moved, data)
    assert found.responsibilities.shape == (60, 3)
    assert (found.permutations == inverse(permutations)).all()
    assert (align(poisson(), moved, data).responsibilities == found.responsibilities).all()
    assert match(poisson(), truth, found.responsibilities, data).tolist() == [0, 1, 2]
    seen, right = [], type(poisson()).component_probabilities
    steps = {"component_probabilities": lambda *a: seen.append(a[2]["y"]) or right(*a)}
    watched = type("Watched", (type(poisson()),), steps)
    align(watched(3), noisy(np.random.default_rng(1), (1, 3)), {"y": np.arange(300)})
    assert len(seen[0]) == 60
    assert (np.diff(seen[0]) > 0).all()  # they keep their order
    assert len(np.unique(np.diff(seen[0]))) > 3  # evenly spaced rows may all be of one component
    monkeypatch.setattr(module, "_SEEN", 30)
    assert align(poisson(), moved, data).responsibilities.shape == (10, 3)


def test_one_component_and_one_draw():
    one = {"weights": np.ones((4, 50, 1)), "rates": np.random.default_rng(0).gamma(2.0, size=(4, 50, 1))}
    found = align(poisson(1), one, {"y": np.array([1, 2])})
    assert found.permutations.shape == (4, 50, 1)
    assert found.stability.tolist() == [1.0]
    point = {"weights": WEIGHTS[None, None, [2, 0, 1]], "rates": RATES[None, None, [2, 0, 1]]}
    found = align(poisson(), point, rows(np.random.default_rng(0)))
    assert found.permutations.tolist() == [[[1, 2, 0]]]  # by decreasing weight
    assert found.stability == pytest.approx(np.ones(3))


# How much labels mean


def test_stability_is_that_of_its_definition():
    rng = np.random.default_rng(8)
    draws, data = noisy(rng, (2, 30), noise=0.5), rows(rng, 40)
    found = align(poisson(), draws, data)
    p = poisson().component_probabilities(permute(poisson(), draws, found.permutations), data).reshape(60, 40, 3)
    q = p.mean(axis=0)
    for k in range(3):
        both, either = (f(p, q[:, [k]]).sum(axis=1) for f in (np.minimum, np.maximum))
        like = np.mean(both / either, axis=0)
        assert found.stability[k] == pytest.approx((like[k] - np.mean(like)) / (1 - np.mean(like)), rel=1e-10)


def test_stability_is_one_of_draws_that_are_alike_and_none_of_components_that_are_or_are_empty():
    rng = np.random.default_rng(7)
    data, alike = rows(rng), np.full((4, 100, 3), 1 / 3)
    same = {"weights": alike, "rates": np.tile([4.0, 5.0, 6.0], (4, 100, 1))}  # which overlap
    moved = permute(poisson(), same, switched(rng, 3, (4, 100)))
    assert align(poisson(), moved, data).stability == pytest.approx(np.ones(3))
    identical = {"weights": alike, "rates": np.full((4, 100, 3), 5.0)}
    assert align(poisson(), identical, data).stability.tolist() == [0.0] * 3
    anything = {"weights": rng.dirichlet(np.ones(3), (4, 100)), "rates": rng.gamma(1.0, 10.0, (4, 100, 3))}
    assert align(poisson(), anything, data).stability.min() < 0.4
    empty = {"weights": np.tile([1.0, 0.0], (4, 100, 1)), "rates": np.full((4, 100, 2), 5.0)}
    with np.errstate(divide="ignore"):  # the logarithm of a weight of 0
        assert np.isnan(align(poisson(2), empty, data).stability[1])


# Two fits


def test_the_labels_of_another_fit_are_found():
    rng = np.random.default_rng(9)
    data = rows(rng)
    first, second = noisy(rng), noisy(rng, (2, 50))
    reference = align(poisson(), first, data).responsibilities
    order = np.array([2, 0, 1])
    other = permute(poisson(), second, np.broadcast_to(order, (2, 50, 3)))
    found = match(poisson(), other, reference, data)
    assert found.tolist() == inverse(order).tolist()
    assert equal(permute(poisson(), other, np.broadcast_to(found, (2, 50, 3))), second)
    for other_fit in (reference[:, :2], reference[:9]):
        with raises(InputError, "not_comparable"):
            match(poisson(), second, other_fit, data)


@pytest.mark.usefixtures("unmeasured")
def test_fits_to_more_rows_than_are_looked_at_have_the_components_in_one_order():
    rng = np.random.default_rng(1)
    Y = np.concatenate([rng.normal(0, 1, 700), rng.normal(6, 1, 800)])
    Mixture = bz.find("gaussian_mixture")
    fits = [bz.fit(Mixture(K=2), Y, method, seed=1) for method in ("map", "vb")]
    table = bz.compare(fits)
    means = table[table["parameter"].str.startswith("means[")].groupby("parameter")["mean"]
    assert (means.max() - means.min()).max() < 0.1
