import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.gradient import NullTypeGradError
from scipy import special, stats

from bayeszoo.likelihoods.ops import hmm

_hmmc = pytest.importorskip("hmmlearn._hmmc")

EMISSION = np.array([np.full(6, 1 / 6), [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])  # the dice of Durbin et al. (1998), 3.1
TRANSITION = np.array([[0.95, 0.05], [0.1, 0.9]])
HALF = np.array([0.5, 0.5])


def peer_value(initial, transition, log_b, starts):
    """hmmlearn's passes in logarithms, a sequence at a time; tables need not sum to one."""
    ends = [*starts[1:], len(log_b)]
    return sum(_hmmc.forward_log(initial, transition, log_b[a:b])[0] for a, b in zip(starts, ends, strict=True))


def rows_of(kind, tables, data):
    """Log densities (T, K) by SciPy."""
    if kind == "dense":
        return tables[0]
    if kind == "gaussian":
        rows = stats.norm.logpdf(data[0][:, None], tables[0], tables[1])
        return np.where(np.isnan(data[0])[:, None], 0.0, rows)
    codes = data[-1]
    if kind == "categorical":
        with np.errstate(divide="ignore"):
            rows = np.log(tables[0]).T
    elif kind == "table":
        rows = tables[0].T
    else:
        rows = stats.poisson.logpmf(data[0][:, None], tables[0])
    return np.where(codes[:, None] < 0, 0.0, rows[codes])


FUNCTIONS = {
    "dense": hmm.hmm_log_likelihood,
    "table": hmm.hmm_table_log_likelihood,
    "categorical": hmm.hmm_categorical_log_likelihood,
    "gaussian": hmm.hmm_gaussian_log_likelihood,
    "poisson": hmm.hmm_poisson_log_likelihood,
}
COMPILED = {}
QUICK = "categorical"
"""Numba takes ten seconds for each graph: `make test` compiles one, and calls the loops of all others from Python."""
SLOW_NUMBA = [pytest.param("NUMBA", marks=pytest.mark.slow), "FAST_COMPILE"]


def ways(*kinds):
    """Each kind compiled by numba, which all but one makes slow, and interpreted."""
    by_numba = [pytest.param(kind, "NUMBA", marks=[pytest.mark.slow] * (kind != QUICK)) for kind in kinds]
    return [*by_numba, *((kind, "FAST_COMPILE") for kind in kinds)]


def evaluated(kind, initial, transition, tables, data, starts, mode="NUMBA"):
    """Value and gradients; compiled once for a kind and a number of states."""
    parameters = [np.asarray(value, dtype=float) for value in (initial, transition, *tables)]
    observed = [np.asarray(value) for value in (*data, np.asarray(starts, dtype=np.int64))]
    key = kind, len(initial), mode
    if key not in COMPILED:
        shapes = [(len(initial),), (len(initial), len(initial)), *((None,) * np.ndim(table) for table in tables)]
        inputs = [pt.tensor(dtype="float64", shape=shape) for shape in shapes]
        given = [pt.tensor(dtype=value.dtype, shape=(None,) * value.ndim) for value in observed]
        value = FUNCTIONS[kind](*inputs, *given)
        COMPILED[key] = pytensor.function([*inputs, *given], [value, *pt.grad(value, inputs)], mode=mode)
    return COMPILED[key](*parameters, *observed)


def case(kind, rng, rows, sharp=1.0, closed=0.0):
    """Tables and data of two states: ``sharp`` 1 to 1e-3 narrows the emissions, ``closed`` 0 to 1 the transitions."""
    initial, transition = rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(2), 2)
    transition = closed * np.eye(2) + (1 - closed) * transition
    codes = rng.integers(-1, 4, rows)
    if kind == "dense":
        return initial, transition, [rng.normal(size=(rows, 2)) / sharp], []
    if kind == "gaussian":
        y = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows) * 3)
        return initial, transition, [rng.normal(size=2), sharp * rng.gamma(3, size=2)], [y]
    if kind == "poisson":
        return initial, transition, [rng.gamma(2, size=2) / sharp], [np.array([0, 3, 5, 40]), codes]
    if kind == "table":
        return initial, transition, [rng.normal(size=(2, 4)) / sharp], [codes]
    emission = rng.dirichlet(np.ones(4), 2) ** (1 / np.sqrt(sharp))
    return initial, transition, [emission / emission.sum(axis=1, keepdims=True)], [codes]


def by_differences(kind, parameters, data, starts, at, index, step=1e-5):
    """Derivative with respect to the logarithm of an entry, or the entry where it may be negative; by hmmlearn."""
    values = []
    for sign in (1, -1):
        moved = [np.array(value) for value in parameters]
        positive = at < 2 or kind in ("categorical", "poisson") or (kind == "gaussian" and at == 3)
        moved[at][index] = moved[at][index] * np.exp(sign * step) if positive else moved[at][index] + sign * step
        log_b = rows_of(kind, moved[2:], data)
        values.append(peer_value(moved[0], moved[1], np.ascontiguousarray(log_b), starts))
    return (values[0] - values[1]) / (2 * step), parameters[at][index] if positive else 1.0


@pytest.mark.parametrize(("kind", "mode"), ways(*FUNCTIONS))
@pytest.mark.parametrize(("rows", "starts"), [(50, [0, 7]), (500, [0]), (5000, [0, 1, 4990])])
@pytest.mark.parametrize(("sharp", "closed"), [(1.0, 0.0), (0.02, 0.0), (1.0, 1 - 1e-9), (0.02, 1 - 1e-9)])
def test_gradients_are_those_of_hmmlearn_by_differences(kind, mode, rows, starts, sharp, closed):
    rng = np.random.default_rng(rows)
    initial, transition, tables, data = case(kind, rng, rows, sharp, closed)
    parameters = [initial, transition, *tables]
    value, *gradients = evaluated(kind, initial, transition, tables, data, starts, mode)
    log_b = np.ascontiguousarray(rows_of(kind, tables, data))
    assert value == pytest.approx(peer_value(initial, transition, log_b, starts), rel=1e-11)
    for at, gradient in enumerate(gradients):
        assert np.all(np.isfinite(gradient))
        indices = list(np.ndindex(gradient.shape))
        for index in [indices[i] for i in rng.choice(len(indices), min(4, len(indices)), replace=False)]:
            expected, unit = by_differences(kind, parameters, data, starts, at, index)
            slack = 1e-9 * abs(float(value)) + 1e-7 * np.abs(gradient).max() * unit
            assert gradient[index] * unit == pytest.approx(expected, rel=1e-5, abs=max(slack, 1e-6))


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_derivatives_at_zeros_are_those_from_above(mode):
    initial, transition = np.array([1.0, 0.0]), np.array([[0.7, 0.3], [0.0, 1.0]])
    emission = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6]])
    symbols, starts = np.array([0, 1, -1, 1, 2, 1, 1, 1, 1, 0, 1]), [0, 5, 8]

    def value(*tables):
        return evaluated("categorical", *tables[:2], tables[2:], [symbols], starts, mode)[0]

    tables = [initial, transition, emission]
    _, *gradients = evaluated("categorical", initial, transition, [emission], [symbols], starts, mode)
    for at, index in [(0, 1), (1, (1, 0)), (2, (0, 2)), (2, (1, 0))]:
        moved = [table.copy() for table in tables]
        moved[at][index] = 1e-7
        slope = (value(*moved) - value(*tables)) / 1e-7
        assert gradients[at][index] == pytest.approx(slope, rel=1e-4)
        assert gradients[at][index] > 0


@pytest.mark.parametrize("mode", SLOW_NUMBA)
def test_a_derivative_that_overflows_is_finite(mode):
    log_b = np.zeros((4, 2))
    log_b[2:, 0] = -1000  # a way to the second state would gain e^2000
    value, *gradients = evaluated("dense", [1.0, 0.0], np.eye(2), [log_b], [], [0], mode)
    assert value == -2000
    assert gradients[1][0, 1] >= 1e300
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients)


@pytest.mark.parametrize(("kind", "mode"), ways("dense", "table", "categorical"))
def test_impossible_data_give_minus_infinity_and_no_nan(kind, mode):
    log_table = np.where(np.eye(2) > 0, 0.0, -np.inf)
    tables = {"dense": log_table[[0, 0, 0, 1]], "table": log_table, "categorical": np.eye(2)}
    data = [] if kind == "dense" else [np.array([0, 0, 0, 1])]
    value, *gradients = evaluated(kind, [0.5, 0.5], np.eye(2), [tables[kind]], data, [0], mode)
    assert value == -np.inf
    assert all(np.all(gradient == 0) for gradient in gradients)


def test_nan_parameters_give_nan_and_no_rows_zero():
    with np.errstate(invalid="ignore"):
        value = evaluated("gaussian", HALF, TRANSITION, [[0.0, np.nan], [1, 1]], [np.zeros(4)], [0], "FAST_COMPILE")[0]
    assert np.isnan(value)
    none = np.zeros(0, dtype=np.int64)
    assert not any(map(np.any, evaluated("categorical", HALF, TRANSITION, [EMISSION], [none], none)))


@pytest.mark.slow
def test_many_states_and_shapes_not_known():
    rng = np.random.default_rng(3)
    initial, transition, log_b = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(9), 9), rng.normal(size=(40, 9))
    inputs = [pt.vector(dtype="float64"), pt.matrix(dtype="float64"), pt.matrix(dtype="float64")]
    value = hmm.hmm_log_likelihood(*inputs, np.array([0]))
    found = pytensor.function(inputs, [value, *pt.grad(value, inputs)], mode="NUMBA")(initial, transition, log_b)
    (peer, before), after = (pass_(initial, transition, log_b) for pass_ in (_hmmc.forward_log, _hmmc.backward_log))
    states = special.softmax(before + after, axis=1)
    steps = np.exp(_hmmc.compute_log_xi_sum(before, transition, after, log_b))
    for mine, theirs in zip(found, (peer, states[0] / initial, steps / transition, states), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize(
    ("codes", "starts", "message"),
    [([0] * 4, starts, "starts must be the first rows") for starts in ([1], [0, 0], [0, 4], [])]
    + [([0, code], [0], "codes must be columns") for code in (-2, 6)],
)
def test_starts_and_codes_that_are_none_are_refused(codes, starts, message):
    with pytest.raises(ValueError, match=message):
        evaluated("categorical", HALF, TRANSITION, [EMISSION], [np.array(codes)], np.array(starts, dtype=np.int64))


def test_second_derivatives_are_refused():
    initial = pt.vector(shape=(2,), dtype="float64")
    value = hmm.hmm_log_likelihood(initial, TRANSITION, np.zeros((3, 2)), np.array([0]))
    with pytest.raises(NullTypeGradError):
        pt.grad(pt.grad(value, initial).sum(), initial)
