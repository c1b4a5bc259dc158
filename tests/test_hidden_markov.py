"""Filter, smoother, paths and E-steps of hidden Markov chains against enumeration, and seeded bugs."""

import inspect
import itertools
import math
import types
from functools import partial

import numpy as np
import pytest
from scipy import special, stats

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.hmm import passes, paths
from bayeszoo.likelihoods.loops import hmm as hmm_loops
from tests.refusals import raises

STARTS = [0, 1, 4]  # sequences of lengths 1, 3 and 2
MISSING = [2, 5]
TOOLBOX = types.SimpleNamespace(**vars(passes), viterbi=paths.viterbi, sample_paths=paths.sample_paths)


def chain(rng, states=3, rows=6, zeros=0.0, scale=3.0, missing=()):
    """Tables and log densities at random, with a share of structural zeros."""

    def table(*shape):
        weights = rng.dirichlet(np.ones(shape[-1]), shape[:-1]) * (rng.random(shape) >= zeros)
        weights[..., 0] += 1e-3  # so that no row is all zeros
        return weights / weights.sum(axis=-1, keepdims=True)

    log_b = rng.normal(size=(rows, states)) * scale
    log_b[:, 1:][rng.random((rows, states - 1)) < zeros] = -np.inf
    log_b[list(missing)] = 0.0
    return table(states), table(states, states), log_b


def enumerated(initial, transition, log_b, starts):
    """All paths, and the log joint density of each with the rows."""
    rows, states = log_b.shape
    every = np.array(list(itertools.product(range(states), repeat=rows)))
    with np.errstate(divide="ignore"):
        log_initial, log_transition = np.log(initial), np.log(transition)
    joint = log_b[np.arange(rows), every].sum(axis=1)
    for t in range(rows):
        joint += log_initial[every[:, t]] if t in starts else log_transition[every[:, t - 1], every[:, t]]
    return every, joint


def expected_steps(weights, every, within):
    """Expected transitions into some rows."""
    pairs = [(every[:, np.subtract(within, 1)] == i) & (every[:, within] == j) for i in range(3) for j in range(3)]
    return np.reshape([(weights @ pair).sum() for pair in pairs], (3, 3))


def agrees_with_enumeration(toolbox, zeros, scale=3.0):
    for seed, share in itertools.product(range(2), zeros):
        tables = chain(np.random.default_rng(seed), zeros=share, scale=scale, missing=MISSING)
        every, joint = enumerated(*tables, STARTS)
        value = special.logsumexp(joint)
        weights = np.exp(joint - value)
        found = toolbox.smooth(*tables, STARTS)
        assert found.value == pytest.approx(value, rel=1e-12)
        assert toolbox.log_likelihood(*tables, STARTS) == pytest.approx(value, rel=1e-12)
        occupied = np.stack([weights @ (every == state) for state in range(3)], axis=1)
        np.testing.assert_allclose(found.emitted, occupied, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(found.initial, occupied[STARTS].sum(axis=0), rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(found.transition, expected_steps(weights, every, [2, 3, 5]), rtol=1e-9, atol=1e-13)
        path, best = toolbox.viterbi(*tables, STARTS)
        assert best == pytest.approx(joint.max(), rel=1e-12)
        assert np.array_equal(path, every[np.argmax(joint)])


# Draws of paths


def path_p_value(toolbox, draws=20_000):
    """Chi-square of draws against the enumerated probabilities of all paths."""
    tables = chain(np.random.default_rng(8), zeros=0.2, scale=1.0, missing=MISSING)
    every, joint = enumerated(*tables, STARTS)
    expected = draws * special.softmax(joint)
    drawn = toolbox.sample_paths(*tables, STARTS, rng=np.random.default_rng(9), size=draws)
    counts = np.bincount(drawn @ 3 ** np.arange(5, -1, -1), minlength=len(every))
    common = expected >= 5
    if np.any(counts[expected == 0]):
        return 0.0
    groups = [np.append(x[common], x[~common].sum()) for x in (counts, expected)]
    return stats.chisquare(*groups).pvalue


def test_paths_are_drawn_with_their_probabilities():
    assert path_p_value(TOOLBOX) >= 1e-5


# States lost to underflow


def lost_and_found(rows=6):
    """States that never change, of which the second is 800 nats behind before the first is ruled out."""
    log_b = np.zeros((rows, 2))
    log_b[: rows // 2, 1], log_b[rows // 2 :, 0] = -1600 / rows, -3200 / rows
    return np.array([0.5, 0.5]), np.eye(2), log_b


def finds_what_was_lost(toolbox):
    for rows in (2, 6, 600):
        tables = lost_and_found(rows)
        assert toolbox.log_likelihood(*tables) == pytest.approx(np.log(0.5) - 800, rel=1e-12)
        np.testing.assert_allclose(toolbox.smooth(*tables).emitted, np.tile([0.0, 1.0], (rows, 1)), atol=1e-300)
        assert toolbox.viterbi(*tables)[0].tolist() == [1] * rows
        assert toolbox.sample_paths(*tables, rng=np.random.default_rng(0))[0].tolist() == [1] * rows
        np.testing.assert_allclose(toolbox.forward(*tables).filtered[-1], [0, 1])


def finds_what_was_lost_both_ways(toolbox):
    """The second state is 1200 nats behind, then 1200 ahead, then level: neither pass alone would see it."""
    log_b = np.zeros((900, 2))
    log_b[:300, 1] = log_b[600:, 1] = -1200 / 300
    log_b[300:600, 0] = -2400 / 300
    found = toolbox.smooth([0.5, 0.5], np.eye(2), log_b)
    assert found.value == pytest.approx(-2400, rel=1e-12)
    np.testing.assert_allclose(found.emitted, 0.5, rtol=1e-9)


# Seeded bugs: the source with one thing changed, run by Python itself


def without_numba(module, *changes):
    source = inspect.getsource(module)
    for before, after in [*changes, ("@loop\n", ""), ("math.log(s)", "np.log(s)")]:
        source = source.replace(before, after)
    mutant = types.ModuleType(module.__name__)
    exec(compile(source, module.__file__, "exec"), mutant.__dict__)
    return mutant


def toolbox_with(*changes):
    """Return the three modules with changes of their sources, which Python runs itself."""
    modules = (hmm_loops, passes, paths)
    assert all(any(before in inspect.getsource(module) for module in modules) for before, _ in changes)
    loops, toolbox, of_paths = (without_numba(module, *changes) for module in modules)
    toolbox.hmm_loops, of_paths.CheckedChain = loops, toolbox.CheckedChain
    return types.SimpleNamespace(**vars(toolbox), viterbi=of_paths.viterbi, sample_paths=of_paths.sample_paths)


def small_probabilities(toolbox):
    """Sums that get below the threshold of scaling: each row is of the state that the one before hardly leads to."""
    transition = np.full((3, 3), 1e-20) + np.eye(3)
    codes, log_table = np.array([0, 1, 2, 0, 2, 1, 0, 0]), -60.0 * (1 - np.eye(3)) - 1
    every, joint = enumerated(np.full(3, 1 / 3), transition, log_table[:, codes].T, [0])
    found = toolbox.table_sums(np.full(3, 1 / 3), transition, log_table, codes)
    assert found.value == pytest.approx(special.logsumexp(joint), rel=1e-12)
    steps = expected_steps(special.softmax(joint), every, np.arange(1, 8))
    np.testing.assert_allclose(found.transition, steps, rtol=1e-9)


enumeration_of_few = partial(agrees_with_enumeration, zeros=(0.0, 0.4))
enumeration_in_logs = partial(agrees_with_enumeration, zeros=(0.4,), scale=1000.0)
LOST = [finds_what_was_lost, finds_what_was_lost_both_ways]
CHECKS = [enumeration_of_few, enumeration_in_logs, small_probabilities, *LOST]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("toolbox", [TOOLBOX, toolbox_with()], ids=["compiled", "by Python"])
def test_the_source_passes(check, toolbox):
    with np.errstate(divide="ignore", invalid="ignore"):
        check(toolbox)


BUGS = {
    enumeration_of_few: [
        ("p += w[i] * transition[i, j]", "p += w[i] * transition[j, i]"),  # forward transition transposed
        ("beta += transition[i, j] * u[j]", "beta += transition[j, i] * u[j]"),  # backward transition transposed
        ("len(rows) - 1, -1, -1):\n        row, norm", "len(rows) - 1, 0, -1):\n        row, norm"),  # one step too few
        ("row, opening = rows[t], opens[t]", "row, opening = rows[t], t == 0"),  # sequences glued
        (
            "u, current = current, u\n        is_last = opens[t]",
            "u, current = current, u\n        is_last = False",
        ),  # glued backwards
        (
            "current = with_entry(current, i, b[i, row] * beta)",
            "current = with_entry(current, i, beta)",
        ),  # backward without emission
        ("partial += largest[codes[t]]", "pass"),  # shift of log densities dropped
        ("else before[t + 1, state]", "else before[t, state]"),  # best predecessor of the wrong row
        ("if t == size - 1 or opens[t + 1] else", "if t == size - 1 else"),  # best path glued
    ],
    small_probabilities: [
        ("            value += math.log(s)\n            for j", "            for j"),  # scale factor dropped
        ("w = with_entry(w, i, w[i] / norm)", "w = w"),  # counts not scaled
    ],
    finds_what_was_lost_both_ways: [("    return none_is_faint", "    return True")],  # lost states not noticed
    enumeration_in_logs: [
        ("terms[i] = w[i] + log_transition[i, j]", "terms[i] = w[i] + log_transition[j, i]"),  # logs: transposed
        ("u[j] = log_b[j, rows[t]] + beta[j] - log_s", "u[j] = log_b[j, rows[t]] - log_s"),  # logs: beta dropped
        ("= log_initial[j] if opens[t] else", "= log_initial[j] if t == 0 else"),  # logs: sequences glued
    ],
}


@pytest.mark.parametrize(("check", "before", "after"), [(check, *bug) for check, bugs in BUGS.items() for bug in bugs])
def test_seeded_bugs_are_caught(check, before, after):
    mutant = toolbox_with((before, after))
    with np.errstate(all="ignore"), pytest.raises((AssertionError, NumericalError)):
        check(mutant)


BUGS_OF_DRAWING = [
    ("log_transition[i, path[t + 1]]", "log_transition[path[t + 1], i]"),
    ("(0.0 if ends[t] else log_transition[i, path[t + 1]])", "0.0"),
    ("log_filtered = chain.log_predicted()[0] + chain.log_b", "log_filtered = chain.log_predicted()[0]"),
    ("ends, paths = np.append(chain.opens[1:], True)", "ends, paths = np.append(0 * chain.opens[1:], True)"),
]


@pytest.mark.parametrize("bug", BUGS_OF_DRAWING)
def test_seeded_bugs_of_drawing_are_caught(bug):
    assert path_p_value(toolbox_with(bug), draws=3000) < 1e-5


# Limits


def test_rows_add_up_to_the_log_likelihood_where_tables_sum_to_less_than_one():
    initial, transition, log_b = chain(np.random.default_rng(27), rows=40)
    tables = 0.7 * initial, 0.9 * transition
    found = passes.forward(*tables, log_b, [0, 9])
    terms = np.log((found.predicted * np.exp(log_b)).sum(axis=1))
    assert terms.sum() == pytest.approx(found.value, rel=1e-12)
    assert passes.log_likelihood(*tables, log_b, [0, 9]) == pytest.approx(found.value, rel=1e-12)
    whole = passes.log_likelihood(initial, transition, log_b, [0, 9])
    assert found.value == pytest.approx(whole + 2 * np.log(0.7) + 38 * np.log(0.9), rel=1e-12)
    np.testing.assert_allclose(passes.smooth(*tables, log_b, [0, 9]).emitted.sum(axis=1), 1, rtol=1e-12)


# Stability


def test_a_million_rows_are_exact():
    """Where the next state does not depend on this one, rows are independent."""
    rng = np.random.default_rng(22)
    initial, transition = np.array([0.7, 0.3]), np.array([[0.7, 0.3]] * 2)
    emission = np.array([np.full(6, 1 / 6), [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
    symbols = rng.integers(0, 6, 1_000_000)
    b = emission[:, symbols].T
    exact = math.fsum(np.log(b @ initial))
    found = passes.smooth(initial, transition, np.log(b))
    assert found.value == pytest.approx(exact, rel=1e-13)
    assert passes.table_sums(initial, transition, np.log(emission), symbols).value == pytest.approx(exact, rel=1e-13)
    np.testing.assert_allclose(found.emitted.sum(axis=1), 1, rtol=1e-10)
    assert found.transition.sum() == pytest.approx(999_999, rel=1e-11)


# Impossible data, bad input


@pytest.mark.parametrize(
    "function", [passes.forward, passes.smooth, passes.log_rows, paths.viterbi, paths.sample_paths]
)
def test_impossible_data_are_refused_with_the_row(function):
    log_b = np.zeros((5, 2))
    log_b[3, 0] = -np.inf
    more = {"rng": np.random.default_rng(0)} if function is paths.sample_paths else {}
    with raises(NumericalError, "impossible_data", "4"):
        function([1.0, 0.0], np.eye(2), log_b, [0, 2], **more)
    assert passes.log_likelihood([1.0, 0.0], np.eye(2), log_b) == -np.inf
    with raises(NumericalError, "impossible_data", "2"):
        passes.table_sums([1.0, 0.0], np.eye(2), np.where(np.eye(2) > 0, 0.0, -np.inf), [0, 1])


def test_rows_at_the_limits():
    initial, transition, log_b = chain(np.random.default_rng(18))
    empty = passes.smooth(initial, transition, log_b[:0])
    assert (empty.value, empty.emitted.shape, empty.transition.sum()) == (0.0, (0, 3), 0.0)
    assert paths.viterbi(initial, transition, log_b[:0])[0].shape == (0,)
    one = special.logsumexp(np.log(initial) + log_b[0])
    assert passes.log_likelihood(initial, transition, log_b[:1]) == pytest.approx(one)
    one_state = log_b[:, :1] * 100
    assert passes.log_likelihood([1.0], [[1.0]], one_state) == pytest.approx(one_state.sum(), rel=1e-13)
    ties = paths.viterbi(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.zeros((5, 3)), [0, 2])
    assert ties[0].tolist() == [0] * 5


BAD = [
    ({"initial": [0.5, 0.6, 0.1]}, "not_a_probability"),
    ({"initial": [0.5, 0.5]}, "wrong_shape"),
    ({"transition": np.full((3, 3), np.nan)}, "not_a_probability"),
    ({"log_b": np.full((6, 3), np.nan)}, "out_of_range"),
    ({"log_b": np.full((6, 2), 0.0)}, "wrong_shape"),
]


@pytest.mark.parametrize(("change", "code"), BAD)
def test_bad_input_is_refused(change, code):
    initial, transition, log_b = chain(np.random.default_rng(24))
    with raises(InputError, code):
        passes.smooth(**{"initial": initial, "transition": transition, "log_b": log_b, **change})


@pytest.mark.parametrize("starts", [[1, 3], [0, 3, 3], [], [0, 6]])
def test_starts_that_are_none_are_refused(starts):
    """The loops raise it, which have no codes."""
    initial, transition, log_b = chain(np.random.default_rng(24))
    with pytest.raises(ValueError, match="starts"):
        passes.smooth(initial, transition, log_b, starts)
