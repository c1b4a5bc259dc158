import itertools

import numpy as np
import pytest
from scipy import special, stats

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.hmm import passes as hidden_markov
from bayeszoo.families.hmm import paths as state_paths

_hmmc, peers = pytest.importorskip("hmmlearn._hmmc"), pytest.importorskip("hmmlearn.hmm")


def chain(rng, states=3, rows=6, zeros=0.0, scale=3.0):
    """Tables and log densities at random, with a share of structural zeros."""

    def table(*shape):
        weights = rng.dirichlet(np.ones(shape[-1]), shape[:-1]) * (rng.random(shape) >= zeros)
        weights[..., 0] += 1e-3  # so that no row is all zeros
        return weights / weights.sum(axis=-1, keepdims=True)

    log_b = rng.normal(size=(rows, states)) * scale
    log_b[:, 1:][rng.random((rows, states - 1)) < zeros] = -np.inf
    return table(states), table(states, states), log_b


# hmmlearn


def peer(kind, rng, states=3):
    model = kind(states)
    model.startprob_, model.transmat_ = rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), states)
    return model


def categorical(rng):
    model = peer(peers.CategoricalHMM, rng)
    model.emissionprob_ = rng.dirichlet(np.ones(5), 3)
    model.n_features = 5
    data = rng.integers(0, 5, 400)
    return model, data, np.log(model.emissionprob_[:, data]).T


def gaussian(rng):
    model = peer(peers.GaussianHMM, rng)
    model.n_features = 1
    model.means_, model.covars_ = rng.normal(size=(3, 1)) * 2, rng.gamma(2, size=(3, 1))
    data = rng.normal(size=400) * 2
    return model, data, stats.norm.logpdf(data[:, None], model.means_[:, 0], np.sqrt(model.covars_[:, 0, 0]))


def poisson(rng):
    model = peer(peers.PoissonHMM, rng)
    model.lambdas_, model.n_features = rng.gamma(3, size=(3, 1)), 1
    data = rng.poisson(4, 400)
    return model, data, stats.poisson.logpmf(data[:, None], model.lambdas_[:, 0])


@pytest.mark.parametrize("make", [categorical, gaussian, poisson])
def test_agrees_with_hmmlearn(make):
    model, data, log_b = make(np.random.default_rng(7))
    lengths, starts = [1, 150, 249], [0, 1, 151]
    tables = model.startprob_, model.transmat_, log_b, starts
    assert hidden_markov.log_likelihood(*tables) == pytest.approx(model.score(data[:, None], lengths), rel=1e-12)
    np.testing.assert_allclose(
        hidden_markov.smooth(*tables).probabilities, model.predict_proba(data[:, None], lengths), rtol=1e-9, atol=1e-12
    )
    value, path = model.decode(data[:, None], lengths)
    assert np.array_equal(state_paths.viterbi(*tables)[0], path)
    assert state_paths.viterbi(*tables)[1] == pytest.approx(value, rel=1e-12)


# Limits


def test_rows_with_equal_transitions_are_a_mixture():
    rng = np.random.default_rng(13)
    weights, log_b = rng.dirichlet(np.ones(3)), rng.normal(size=(50, 3))
    joint = np.log(weights) + log_b
    assert hidden_markov.log_likelihood(weights, np.tile(weights, (3, 1)), log_b) == pytest.approx(
        special.logsumexp(joint, axis=1).sum(), rel=1e-12
    )
    np.testing.assert_allclose(
        hidden_markov.smooth(weights, np.tile(weights, (3, 1)), log_b).probabilities, special.softmax(joint, axis=1)
    )


def test_probabilities_of_all_sequences_sum_to_one():
    rng = np.random.default_rng(14)
    initial, transition, _ = chain(rng, states=2, zeros=0.3)
    emission = rng.dirichlet(np.ones(3), 2)
    values = [
        hidden_markov.log_likelihood(initial, transition, np.log(emission[:, list(y)]).T)
        for y in itertools.product(range(3), repeat=4)
    ]
    assert np.exp(values).sum() == pytest.approx(1, rel=1e-12)


def test_sequences_are_independent_and_order_does_not_matter():
    rng = np.random.default_rng(15)
    initial, transition, log_b = chain(rng, rows=700)
    cuts = [0, 256, 257, 300, 512, 700]  # some where blocks of rows end
    parts = [log_b[a:b] for a, b in itertools.pairwise(cuts)]
    whole = hidden_markov.smooth(initial, transition, log_b, cuts[:-1])
    each = [hidden_markov.smooth(initial, transition, part) for part in parts]
    assert whole.value == pytest.approx(sum(one.value for one in each), rel=1e-12)
    np.testing.assert_allclose(
        whole.probabilities, np.concatenate([one.probabilities for one in each]), rtol=1e-9, atol=1e-13
    )
    np.testing.assert_allclose(whole.transition, sum(one.transition for one in each), rtol=1e-10)


def test_states_relabelled_are_the_states():
    initial, transition, log_b = chain(np.random.default_rng(16), rows=40)
    order = [2, 0, 1]
    one, two = (
        hidden_markov.smooth(initial, transition, log_b),
        hidden_markov.smooth(initial[order], transition[np.ix_(order, order)], log_b[:, order]),
    )
    assert one.value == pytest.approx(two.value, rel=1e-13)
    np.testing.assert_allclose(one.probabilities[:, order], two.probabilities, rtol=1e-10, atol=1e-13)


def test_all_rows_missing_say_nothing():
    initial, transition, log_b = chain(np.random.default_rng(17))
    found = hidden_markov.forward(initial, transition, log_b, missing=np.ones(6, dtype=bool))
    assert found.value == pytest.approx(0, abs=1e-13)
    np.testing.assert_allclose(found.filtered[5], hidden_markov.predict_states(initial, transition, 5), rtol=1e-12)


def test_no_rows_and_a_mask_of_none():
    initial, transition, log_b = chain(np.random.default_rng(18))
    empty = hidden_markov.smooth(initial, transition, log_b[:0])
    assert (empty.value, empty.probabilities.shape, empty.transition.sum()) == (0.0, (0, 3), 0.0)
    assert state_paths.viterbi(initial, transition, log_b[:0])[0].shape == (0,)
    assert hidden_markov.log_likelihood(
        initial, transition, log_b, missing=np.zeros(6, dtype=bool)
    ) == hidden_markov.log_likelihood(initial, transition, log_b)


def test_rows_add_up_to_the_log_likelihood_where_tables_sum_to_less_than_one():
    initial, transition, log_b = chain(np.random.default_rng(27), rows=40)
    tables = 0.7 * initial, 0.9 * transition
    found = hidden_markov.forward(*tables, log_b, [0, 9])
    terms = np.log((found.predicted * np.exp(log_b)).sum(axis=1))
    assert terms.sum() == pytest.approx(found.value, rel=1e-12)
    assert hidden_markov.log_likelihood(*tables, log_b, [0, 9]) == pytest.approx(found.value, rel=1e-12)
    whole = hidden_markov.log_likelihood(initial, transition, log_b, [0, 9])
    assert found.value == pytest.approx(whole + 2 * np.log(0.7) + 38 * np.log(0.9), rel=1e-12)
    np.testing.assert_allclose(hidden_markov.smooth(*tables, log_b, [0, 9]).probabilities.sum(axis=1), 1, rtol=1e-12)


def test_one_row_is_a_mixture_of_one_row():
    initial, transition, log_b = chain(np.random.default_rng(19), rows=1)
    assert hidden_markov.log_likelihood(initial, transition, log_b) == pytest.approx(
        special.logsumexp(np.log(initial) + log_b[0])
    )


def test_one_state_is_a_sum():
    log_b = np.random.default_rng(20).normal(size=(40, 1)) * 100
    assert hidden_markov.log_likelihood([1.0], [[1.0]], log_b) == pytest.approx(log_b.sum(), rel=1e-13)


def test_many_states_take_the_loops_that_are_not_unrolled():
    rng = np.random.default_rng(21)
    initial, transition = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(9), 9)
    log_b, dense = rng.normal(size=(300, 9)), hidden_markov.smooth
    value = 0.0
    w = initial * np.exp(log_b[0])
    for t in range(1, 300):
        value, w = value + np.log(w.sum()), (w / w.sum()) @ transition * np.exp(log_b[t])
    assert dense(initial, transition, log_b).value == pytest.approx(value + np.log(w.sum()), rel=1e-12)
    assert dense(initial, transition, log_b).probabilities.sum(axis=1) == pytest.approx(np.ones(300), rel=1e-12)


def test_ties_go_to_the_lower_state():
    path, _ = state_paths.viterbi(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.zeros((5, 3)), [0, 2])
    assert path.tolist() == [0] * 5


def test_prediction_is_the_power_of_the_transitions():
    transition = np.array([[0.95, 0.05], [0.1, 0.9]])
    np.testing.assert_allclose(hidden_markov.predict_states([[1, 0], [0, 1]], transition, 2), transition @ transition)
    np.testing.assert_allclose(hidden_markov.predict_states([1, 0], transition, 10_000), [2 / 3, 1 / 3])
    assert hidden_markov.predict_states([0.3, 0.7], transition, 0).tolist() == [0.3, 0.7]


# Stability


def tree_log_likelihood(initial, transition, b):
    """The product of the rows' matrices, by pairs, in extended precision: another order and another arithmetic."""
    matrices = transition[None].astype(np.longdouble) * b[:, None, :]
    matrices[0] = (initial * b[0])[None] / len(initial)  # so that the sum of all entries is the likelihood
    value = np.longdouble(0)
    while len(matrices) > 1:
        if len(matrices) % 2:
            matrices = np.concatenate([matrices, np.eye(len(initial), dtype=np.longdouble)[None]])
        matrices = np.stack(
            [
                sum(matrices[::2, i, k] * matrices[1::2, k, j] for k in range(len(initial)))
                for i in range(len(initial))
                for j in range(len(initial))
            ],
            axis=1,
        ).reshape(-1, len(initial), len(initial))
        scale = matrices.max(axis=(1, 2))
        value, matrices = value + np.log(scale).sum(), matrices / scale[:, None, None]
    return float(value + np.log(matrices[0].sum()))


def test_a_million_rows_are_exact():
    rng = np.random.default_rng(22)
    initial, transition = np.array([0.5, 0.5]), np.array([[0.95, 0.05], [0.1, 0.9]])
    emission = np.array([np.full(6, 1 / 6), [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
    symbols = rng.integers(0, 6, 1_000_000)
    b = emission[:, symbols].T
    exact = tree_log_likelihood(initial, transition, b)
    found = hidden_markov.smooth(initial, transition, np.log(b))
    assert found.value == pytest.approx(exact, rel=1e-13)
    assert hidden_markov.table_sums(initial, transition, np.log(emission), symbols).value == pytest.approx(
        exact, rel=1e-13
    )
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-10)
    assert found.transition.sum() == pytest.approx(999_999, rel=1e-11)


def test_a_chain_that_only_moves_on():
    rng = np.random.default_rng(23)
    states, rows = 4, 400
    transition = np.diag(np.full(states, 0.98)) + np.diag(np.full(states - 1, 0.02), 1)
    transition[-1, -1] = 1
    log_b = (
        -0.5 * (rng.normal(size=rows)[:, None] + np.repeat(np.arange(4), 100)[:, None] * 30 - 30 * np.arange(4)) ** 2
    )
    initial = np.array([1.0, 0, 0, 0])
    value, lattice = _hmmc.forward_log(initial, transition, log_b)
    assert hidden_markov.log_likelihood(initial, transition, log_b) == pytest.approx(value, rel=1e-12)
    joint = lattice + _hmmc.backward_log(initial, transition, log_b)
    np.testing.assert_allclose(
        hidden_markov.smooth(initial, transition, log_b).probabilities, np.exp(joint - value), rtol=1e-7, atol=1e-12
    )


# Impossible data, bad input


@pytest.mark.parametrize("function", ["forward", "smooth", "viterbi", "sample_paths"])
def test_impossible_data_are_refused_with_the_row(function):
    log_b = np.zeros((5, 2))
    log_b[3, 0] = -np.inf
    more = {"rng": np.random.default_rng(0)} if function == "sample_paths" else {}
    module = hidden_markov if function in ("forward", "smooth") else state_paths
    with pytest.raises(NumericalError, match=r"impossible.* row 4"):
        getattr(module, function)([1.0, 0.0], np.eye(2), log_b, [0, 2], **more)


def test_impossible_data_have_log_likelihood_minus_infinity():
    log_b = np.zeros((5, 2))
    log_b[3, 0] = -np.inf
    assert hidden_markov.log_likelihood([1.0, 0.0], np.eye(2), log_b) == -np.inf
    assert hidden_markov.log_likelihood([0.5, 0.5], np.full((2, 2), 0.5), np.full((3, 2), -np.inf)) == -np.inf
    with pytest.raises(NumericalError, match="impossible"):
        hidden_markov.table_sums([1.0, 0.0], np.eye(2), np.where(np.eye(2) > 0, 0.0, -np.inf), [0, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial": [0.5, 0.6, 0.1]}, "initial must be probabilities"),
        ({"initial": [0.5, 0.5]}, "shapes do not fit"),
        ({"transition": -np.eye(3)}, "transition must be probabilities"),
        ({"transition": np.full((3, 3), np.nan)}, "transition must be probabilities"),
        ({"log_b": np.full((6, 3), np.nan)}, "log densities"),
        ({"log_b": np.full((6, 3), np.inf)}, "log densities"),
        ({"starts": [1, 3]}, "starts are the first rows"),
        ({"starts": [0, 3, 3]}, "starts are the first rows"),
        ({"starts": []}, "starts are the first rows"),
        ({"starts": [0, 6]}, "cannot start at row 7 of 6"),
        ({"missing": np.zeros(5, dtype=bool)}, "missing has shape"),
    ],
)
def test_bad_input_is_refused(change, message):
    initial, transition, log_b = chain(np.random.default_rng(24))
    with pytest.raises(InputError, match=message):
        hidden_markov.smooth(**{"initial": initial, "transition": transition, "log_b": log_b, **change})


def test_bad_tables_and_numbers_are_refused():
    with pytest.raises(InputError, match="codes must be from 0 to 1"):
        hidden_markov.table_sums([0.5, 0.5], np.eye(2), np.eye(2), [0, 2])
    with pytest.raises(InputError, match="log_table must be"):
        hidden_markov.table_sums([0.5, 0.5], np.eye(2), np.full((2, 2), np.nan), [0, 1])
    with pytest.raises(InputError, match="sigmas positive"):
        hidden_markov.normal_sums([0.5, 0.5], np.eye(2), [0, 1], [0, 1], [0, 1])
    with pytest.raises(InputError, match="0 or more rows ahead"):
        hidden_markov.predict_states([0.5, 0.5], np.eye(2), -1)
