import inspect
import itertools
import types

import numpy as np
import pytest
from scipy import special, stats

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.hmm import hidden_chain
from bayeszoo.families.hmm import passes as hidden_markov
from bayeszoo.families.hmm import paths as state_paths
from bayeszoo.likelihoods.loops import hmm as hmm_loops

STARTS = [0, 1, 4]  # sequences of lengths 1, 3 and 2
MISSING = np.array([False, False, True, False, False, True])


TOOLBOX = types.SimpleNamespace(
    **vars(hidden_markov), viterbi=state_paths.viterbi, sample_paths=state_paths.sample_paths
)


def chain(rng, states=3, rows=6, zeros=0.0, scale=3.0):
    """Tables and log densities at random, with a share of structural zeros."""

    def table(*shape):
        weights = rng.dirichlet(np.ones(shape[-1]), shape[:-1]) * (rng.random(shape) >= zeros)
        weights[..., 0] += 1e-3  # so that no row is all zeros
        return weights / weights.sum(axis=-1, keepdims=True)

    log_b = rng.normal(size=(rows, states)) * scale
    log_b[:, 1:][rng.random((rows, states - 1)) < zeros] = -np.inf
    return table(states), table(states, states), log_b


def enumerated(initial, transition, log_b, starts, missing):
    """All paths, and the log joint density of each with the rows."""
    rows, states = log_b.shape
    paths = np.array(list(itertools.product(range(states), repeat=rows)))
    log_b = np.where(missing[:, None], 0.0, log_b)
    with np.errstate(divide="ignore"):
        log_initial, log_transition = np.log(initial), np.log(transition)
    joint = log_b[np.arange(rows), paths].sum(axis=1)
    for t in range(rows):
        joint += log_initial[paths[:, t]] if t in starts else log_transition[paths[:, t - 1], paths[:, t]]
    return paths, joint


def agrees_with_enumeration(toolbox, seeds=range(4), zeros=(0.0, 0.4), scale=3.0):
    compared = 0
    for seed, share in itertools.product(seeds, zeros):
        tables = chain(np.random.default_rng(seed), zeros=share, scale=scale)
        paths, joint = enumerated(*tables, STARTS, MISSING)
        value = special.logsumexp(joint)
        weights = np.exp(joint - value)
        found = toolbox.smooth(*tables, STARTS, MISSING)
        assert found.value == pytest.approx(value, rel=1e-12)
        assert toolbox.log_likelihood(*tables, STARTS, MISSING) == pytest.approx(value, rel=1e-12)
        occupied = np.stack([weights @ (paths == state) for state in range(3)], axis=1)
        np.testing.assert_allclose(found.probabilities, occupied, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(found.initial, occupied[STARTS].sum(axis=0), rtol=1e-9, atol=1e-13)
        within = [t for t in range(6) if t not in STARTS]
        steps = [
            [(weights @ ((paths[:, np.subtract(within, 1)] == i) & (paths[:, within] == j))).sum() for j in range(3)]
            for i in range(3)
        ]
        np.testing.assert_allclose(found.transition, steps, rtol=1e-9, atol=1e-13)
        path, best = toolbox.viterbi(*tables, STARTS, MISSING)
        assert best == pytest.approx(joint.max(), rel=1e-12)
        assert np.array_equal(path, paths[np.argmax(joint)])
        tables[2][MISSING] = np.nan  # what a missing row holds is not looked at
        assert np.array_equal(toolbox.smooth(*tables, STARTS, MISSING).probabilities, found.probabilities)
        compared += 1
    return compared


def test_smoother_and_viterbi_agree_with_enumeration():
    assert agrees_with_enumeration(TOOLBOX) == 8


def test_filter_is_the_smoother_of_the_rows_so_far():
    tables = chain(np.random.default_rng(5), zeros=0.3)
    found = hidden_markov.forward(*tables, STARTS, MISSING)
    for t in range(6):
        starts = [start for start in STARTS if start <= t]
        upto = *tables[:2], tables[2][: t + 1]
        paths, joint = enumerated(*upto, starts, MISSING[: t + 1])
        weights = special.softmax(joint)
        now = [weights[paths[:, t] == state].sum() for state in range(3)]
        np.testing.assert_allclose(found.filtered[t], now, rtol=1e-10, atol=1e-13)
        paths, joint = enumerated(*upto, starts, np.append(MISSING[:t], True))
        weights = special.softmax(joint)
        before = [weights[paths[:, t] == state].sum() for state in range(3)]
        np.testing.assert_allclose(found.predicted[t], before, rtol=1e-10, atol=1e-13)
    assert found.value == pytest.approx(special.logsumexp(joint), rel=1e-12)  # the last row is missing


def test_sums_over_a_table_agree_with_the_smoother():
    rng = np.random.default_rng(6)
    initial, transition, _ = chain(rng, zeros=0.3)
    log_table = np.log(rng.dirichlet(np.full(4, 0.3), 3))
    codes, starts = rng.integers(-1, 4, 200), [0, 7, 8, 120]
    log_b = np.where(codes[:, None] < 0, 0.0, log_table[:, codes].T)
    found = hidden_markov.table_sums(initial, transition, log_table, codes, starts)
    expected = hidden_markov.smooth(initial, transition, log_b, starts)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(found.initial, expected.initial, rtol=1e-10)
    np.testing.assert_allclose(found.transition, expected.transition, rtol=1e-10, atol=1e-12)
    by_code = np.stack([expected.probabilities[codes == v].sum(axis=0) for v in range(4)], axis=1)
    np.testing.assert_allclose(found.observations, by_code, rtol=1e-10, atol=1e-12)


def test_sums_of_normal_rows_agree_with_the_smoother():
    rng = np.random.default_rng(26)
    initial, transition, _ = chain(rng, zeros=0.3)
    means, sigmas, y, starts = rng.normal(size=3), rng.gamma(2, size=3), rng.normal(size=300) * 2, [0, 255, 256]
    y[rng.random(300) < 0.2] = np.nan
    log_b = stats.norm.logpdf(y[:, None], means, sigmas)
    expected = hidden_markov.smooth(initial, transition, log_b, starts, np.isnan(y))
    found = hidden_markov.normal_sums(initial, transition, means, sigmas, y, starts)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(found.initial, expected.initial, rtol=1e-10)
    np.testing.assert_allclose(found.transition, expected.transition, rtol=1e-10, atol=1e-12)
    seen, weights = y[~np.isnan(y)][:, None] - means, expected.probabilities[~np.isnan(y)]
    np.testing.assert_allclose(found.counts, weights.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.shifts, (weights * seen).sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.squares, (weights * seen**2).sum(axis=0), rtol=1e-10)


# Draws of paths


def path_p_value(toolbox, draws=20_000):
    """Chi-square of draws against the enumerated probabilities of all paths."""
    tables = chain(np.random.default_rng(8), zeros=0.2, scale=1.0)
    paths, joint = enumerated(*tables, STARTS, MISSING)
    expected = draws * special.softmax(joint)
    drawn = toolbox.sample_paths(*tables, STARTS, MISSING, rng=np.random.default_rng(9), size=draws)
    counts = np.bincount(drawn @ 3 ** np.arange(5, -1, -1), minlength=len(paths))
    common = expected >= 5
    if np.any(counts[expected == 0]):
        return 0.0
    groups = [np.append(x[common], x[~common].sum()) for x in (counts, expected)]
    return stats.chisquare(*groups).pvalue


def test_paths_are_drawn_with_their_probabilities():
    assert path_p_value(TOOLBOX) >= 1e-5


def test_drawn_states_have_the_smoothed_probabilities():
    tables = chain(np.random.default_rng(10), rows=60, scale=1.0)
    drawn = state_paths.sample_paths(*tables, rng=np.random.default_rng(11), size=4000)
    found = hidden_markov.smooth(*tables).probabilities
    shares = np.stack([(drawn == state).mean(axis=0) for state in range(3)], axis=1)
    errors = np.sqrt(found * (1 - found) / 4000) + 1e-9
    assert np.abs((shares - found) / errors)[found > 1e-2].max() < 5.5


def test_the_same_generator_gives_the_same_paths():
    tables = chain(np.random.default_rng(12))
    one, two = (state_paths.sample_paths(*tables, rng=np.random.default_rng(3), size=5) for _ in range(2))
    assert np.array_equal(one, two)
    assert one.shape == (5, 6)


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
        np.testing.assert_allclose(toolbox.smooth(*tables).probabilities, np.tile([0.0, 1.0], (rows, 1)), atol=1e-300)
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
    np.testing.assert_allclose(found.probabilities, 0.5, rtol=1e-9)


# Seeded bugs: the source with one thing changed, run by Python itself


def without_numba(module, *changes):
    source = inspect.getsource(module)
    for before, after in [*changes, ("@_loops\n", ""), ("math.log(s)", "np.log(s)")]:
        source = source.replace(before, after)
    mutant = types.ModuleType(module.__name__)
    exec(compile(source, module.__file__, "exec"), mutant.__dict__)
    return mutant


def toolbox_with(*changes):
    modules = {}
    for module in (hmm_loops, hidden_chain, hidden_markov, state_paths):
        source = inspect.getsource(module)
        mutant = modules[module] = without_numba(module, *(change for change in changes if change[0] in source))
        for part, name in ((hmm_loops, "hmm_loops"), (hidden_chain, "Chain"), (hidden_chain, "Tables")):
            if name in vars(mutant) and part is not module:
                setattr(mutant, name, modules[part] if part is hmm_loops else vars(modules[part])[name])
    assert all(any(before in inspect.getsource(module) for module in modules) for before, _ in changes)
    paths = modules[state_paths]
    return types.SimpleNamespace(**vars(modules[hidden_markov]), viterbi=paths.viterbi, sample_paths=paths.sample_paths)


def small_probabilities(toolbox):
    """Sums that get below the threshold of scaling: each row is of the state that the one before hardly leads to."""
    transition = np.full((3, 3), 1e-20) + np.eye(3)
    codes, log_table = np.array([0, 1, 2, 0, 2, 1, 0, 0]), -60.0 * (1 - np.eye(3)) - 1
    paths, joint = enumerated(np.full(3, 1 / 3), transition, log_table[:, codes].T, [0], np.zeros(8, dtype=bool))
    found = toolbox.table_sums(np.full(3, 1 / 3), transition, log_table, codes)
    weights = special.softmax(joint)
    assert found.value == pytest.approx(special.logsumexp(joint), rel=1e-12)
    steps = [[(weights @ ((paths[:, :-1] == i) & (paths[:, 1:] == j))).sum() for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(found.transition, steps, rtol=1e-9)


def enumeration_of_few(toolbox):
    agrees_with_enumeration(toolbox, seeds=range(2), zeros=(0.0,))


def enumeration_in_logs(toolbox):
    agrees_with_enumeration(toolbox, seeds=range(2), zeros=(0.4,), scale=1000.0)


CHECKS = [
    enumeration_of_few,
    enumeration_in_logs,
    small_probabilities,
    finds_what_was_lost,
    finds_what_was_lost_both_ways,
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_source_run_by_python_passes(check):
    with np.errstate(divide="ignore", invalid="ignore"):
        check(toolbox_with())


@pytest.mark.parametrize("check", CHECKS)
def test_the_compiled_source_passes(check):
    check(TOOLBOX)


BUGS = {
    "forward transition transposed": (
        enumeration_of_few,
        "p += w[i] * transition[i, j]",
        "p += w[i] * transition[j, i]",
    ),
    "backward transition transposed": (
        enumeration_of_few,
        "beta += transition[i, j] * u[j]",
        "beta += transition[j, i] * u[j]",
    ),
    "one step too few": (
        enumeration_of_few,
        "for t in range(len(rows) - 1, -1, -1):\n        row, norm",
        "for t in range(len(rows) - 1, 0, -1):\n        row, norm",
    ),
    "sequences glued": (enumeration_of_few, "row, opening = rows[t], opens[t]", "row, opening = rows[t], t == 0"),
    "sequences glued backwards": (
        enumeration_of_few,
        "u, now = now, u\n        ends = opens[t]",
        "u, now = now, u\n        ends = False",
    ),
    "backward without emission": (
        enumeration_of_few,
        "now = with_entry(now, i, b[i, row] * beta)",
        "now = with_entry(now, i, beta)",
    ),
    "shift of log densities dropped": (enumeration_of_few, "value += gain + largest[:size].sum()", "value += gain"),
    "scale factor dropped": (
        small_probabilities,
        "            value += math.log(s)\n            for j",
        "            for j",
    ),
    "counts not scaled": (small_probabilities, "w = with_entry(w, i, w[i] / norm)", "w = w"),
    "lost states not noticed": (finds_what_was_lost_both_ways, "    return kept", "    return True"),
    "logs: transition transposed": (
        enumeration_in_logs,
        "terms[i] = w[i] + log_transition[i, j]",
        "terms[i] = w[i] + log_transition[j, i]",
    ),
    "logs: beta dropped": (
        enumeration_in_logs,
        "u[j] = log_b[j, rows[t]] + beta[j] - log_s",
        "u[j] = log_b[j, rows[t]] - log_s",
    ),
    "logs: sequences glued": (
        enumeration_in_logs,
        "pred[t, j] = log_initial[j] if opens[t] else",
        "pred[t, j] = log_initial[j] if t == 0 else",
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_seeded_bugs_of_the_loops_are_caught(name):
    check, before, after = BUGS[name]
    mutant = toolbox_with((before, after))
    with np.errstate(all="ignore"), pytest.raises((AssertionError, NumericalError)):
        check(mutant)


TOOLBOX_BUGS = {
    "mask ignored": (enumeration_of_few, "rows[np.asarray(missing, dtype=bool)] = 0.0", "pass"),
    "best predecessor of the wrong row": (enumeration_of_few, "else before[t + 1, state]", "else before[t, state]"),
    "best path glued": (enumeration_of_few, "if t == size - 1 or opens[t + 1] else", "if t == size - 1 else"),
}


@pytest.mark.parametrize("name", TOOLBOX_BUGS)
def test_seeded_bugs_of_the_toolbox_are_caught(name):
    check, before, after = TOOLBOX_BUGS[name]
    mutant = toolbox_with((before, after))
    with pytest.raises((AssertionError, InputError)):
        check(mutant)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("log_transition[i, path[t + 1]]", "log_transition[path[t + 1], i]"),
        ("(0.0 if ends[t] else log_transition[i, path[t + 1]])", "0.0"),
        ("log_filtered = chain.log_predicted()[0] + chain.log_b", "log_filtered = chain.log_predicted()[0]"),
        ("ends, paths = np.append(chain.opens[1:], True)", "ends, paths = np.append(0 * chain.opens[1:], True)"),
    ],
)
def test_seeded_bugs_of_drawing_are_caught(before, after):
    mutant = toolbox_with((before, after))
    assert path_p_value(mutant, draws=3000) < 1e-5
