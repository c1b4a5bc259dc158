"""Compiled likelihoods of mixtures, and their E-steps, against SciPy and differences."""

import importlib
import inspect
import pkgutil

import mpmath as mp
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy
from pytensor.gradient import NullTypeGradError
from scipy import stats
from scipy.special import logsumexp

from bayeszoo.errors import NumericalError
from bayeszoo.likelihoods import loops
from bayeszoo.likelihoods.loops import gaussian_mixture as gaussian_loops
from bayeszoo.likelihoods.loops import topics as topic_loops
from bayeszoo.likelihoods.loops import vectors
from bayeszoo.likelihoods.loops.gaussian_mixture import gaussian_e_step
from bayeszoo.likelihoods.ops import gaussian_mixture as mixture
from bayeszoo.likelihoods.ops import topics as topic_ops
from bayeszoo.likelihoods.ops.gaussian_mixture import gaussian_mixture_log_likelihood
from bayeszoo.likelihoods.ops.topics import multinomial_mixture_log_likelihood
from tests.refusals import raises

MODES = ("NUMBA", "FAST_COMPILE")


def components(K, D, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(K, D, D))
    return rng.dirichlet(np.full(K, 3.0)), rng.normal(scale=2.0, size=(K, D)), A @ A.mT + 0.5 * np.eye(D)


def rows(N, D, seed=1):
    return np.random.default_rng(seed).normal(scale=2.5, size=(N, D))


def log_joint(weights, means, covariances, Y):
    """Log w_k N(y_n | k), shape (N, K), by SciPy."""
    each = [stats.multivariate_normal(m, c).logpdf(Y).reshape(len(Y)) for m, c in zip(means, covariances, strict=True)]
    with np.errstate(divide="ignore"):
        return np.log(weights) + np.stack(each, axis=1)


def scipys(weights, means, covariances, Y):
    return logsumexp(log_joint(weights, means, covariances, Y), axis=1).sum()


def differences(f, x, direction, h=5e-4):
    """Derivative along a direction, of fourth order in h."""
    near, far = (f(x + s * direction) - f(x - s * direction) for s in (h, 2 * h))
    return (8 * near - far) / (12 * h)


def error_of_gradients(f, found, arguments):
    """Largest error, relative to the largest entry, of gradients in the arguments; matrices are moved symmetrically."""
    worst = 0.0
    for i, gradient in enumerate(found):
        for at in np.ndindex(gradient.shape):
            direction = np.zeros(gradient.shape)
            direction[at] = 1.0
            if gradient.ndim == 3:
                direction = np.maximum(direction, direction.mT)

            def along(x, i=i):
                return f(*(x if j == i else a for j, a in enumerate(arguments)))

            expected = differences(along, arguments[i], direction)
            worst = max(worst, abs(np.sum(gradient * direction) - expected) / np.abs(gradient).max())
    return worst


@pytest.fixture(scope="module")
def compiled():
    """Value and gradients of both likelihoods; one compilation serves every K and D."""
    weights, matrix, cube, Y = pt.dvector(), pt.dmatrix(), pt.dtensor3(), pt.dmatrix()
    counts, columns, starts = pt.dvector(), pt.lvector(), pt.lvector()
    gaussian = gaussian_mixture_log_likelihood(weights, matrix, cube, Y)
    texts = multinomial_mixture_log_likelihood(weights, matrix, (counts, columns, starts))
    of_gaussian = [gaussian, *pt.grad(gaussian, [weights, matrix, cube])]
    of_texts = [texts, *pt.grad(texts, [weights, matrix])]
    made = {mode: pytensor.function([weights, matrix, counts, columns, starts], of_texts, mode=mode) for mode in MODES}
    return {"gaussian": pytensor.function([weights, matrix, cube, Y], of_gaussian, mode="NUMBA"), **made}


@pytest.mark.parametrize(("K", "D"), [(3, 2), (3, 1), (2, 3), (1, 2), (40, 2), (4, 6)])
def test_the_value_is_scipys_and_gradients_are_differences_of_it(compiled, K, D):
    theta = components(K, D, seed=2)
    for N in (1, 16, 255, 256, 257, 600):
        Y = rows(N, D)
        assert compiled["gaussian"](*theta, Y)[0] == pytest.approx(scipys(*theta, Y), rel=1e-13)
    if K * D < 10:
        Y = rows(60, D)
        assert error_of_gradients(lambda *t: scipys(*t, Y), compiled["gaussian"](*theta, Y)[1:], theta) < 1e-7


def test_extreme_points(compiled):
    call, (weights, means, covariances), Y = compiled["gaussian"], components(3, 2), rows(300, 2)
    without = np.array([0.0, 0.4, 0.6])
    value, *gradients = call(without, means, covariances, Y)
    assert value == pytest.approx(scipys(without[1:], means[1:], covariances[1:], Y), rel=1e-13)
    assert all(np.isfinite(g).all() for g in gradients)
    assert all(np.all(g[0] == 0) for g in gradients)
    far = np.vstack([Y, [1e6, -1e6]])
    exact = scipys(weights, means, covariances, far)
    assert call(weights, means, covariances, far)[0] == pytest.approx(exact, rel=1e-12)
    impossible = call(np.zeros(3), means, covariances, Y)
    assert impossible[0] == -np.inf
    assert not np.isnan(impossible[1]).any()
    one_is_wrong = np.where(np.arange(3)[:, None, None] == 1, -1.0, covariances)
    for bad in (-covariances, 0 * covariances, np.nan * covariances, one_is_wrong):
        value, *gradients = call(weights, means, bad, Y)
        assert np.isnan(value)
        assert all(np.isnan(g).any() for g in gradients)
        with raises(NumericalError, "not_positive_definite"):
            gaussian_e_step(weights, means, bad, Y)
    assert np.isnan(call(np.array([-0.1, 0.5, 0.6]), means, covariances, Y)[0])
    assert np.isnan(call(weights, means, covariances, np.where(Y[7] == Y, np.nan, Y))[0])
    none = call(weights, means, covariances, Y[:0])
    assert none[0] == 0
    assert all(np.all(g == 0) for g in none[1:])
    shift, Y, means = 2.0**20, np.round(Y * 2**10) / 2**10, np.round(means * 2**10) / 2**10
    near, far = (call(weights, means + s, covariances, Y + s) for s in (0.0, shift))  # nothing is lost
    assert all(np.array_equal(one, other) for one, other in zip(near, far, strict=True))


def test_second_derivatives_are_refused():
    weights, means, covariances = (pt.as_tensor(value).copy() for value in components(3, 2))
    value = gaussian_mixture_log_likelihood(weights, means, covariances, rows(5, 2))
    with pytest.raises(NullTypeGradError):
        pt.grad(pt.grad(value, means).sum(), means)


def test_exponentials_to_the_last_place():
    rng = np.random.default_rng(0)
    x = -np.concatenate([np.zeros(1), rng.exponential(1e-8, 85), rng.uniform(0, 1, 85), rng.uniform(0, 708, 85)])
    found = x.copy()
    vectors.exponentials(found, np.empty(len(x)))
    exact = np.array([float(mp.exp(mp.mpf(one))) for one in x])
    assert np.all(np.abs(found - exact) <= 3e-16 * exact)
    edges = np.array([-708.1, -1e300, -np.inf, np.nan])
    vectors.exponentials(edges, np.empty(4))
    assert np.array_equal(edges, [0.0, 0.0, 0.0, np.nan], equal_nan=True)


@pytest.mark.parametrize("module", [one.name for one in pkgutil.iter_modules(loops.__path__)])
def test_compiled_loops_take_over_no_arithmetic_from_their_callers(module):
    found = importlib.import_module(f"bayeszoo.likelihoods.loops.{module}")
    compiled = [one for one in vars(found).values() if hasattr(one, "targetoptions")]
    assert compiled
    flags = [one.targetoptions["fastmath"] for one in compiled]
    assert all(own is False or set(own) <= {"reassoc", "contract"} for own in flags)  # NaN and infinity stay


def expected_sums(theta, Y):
    joint = log_joint(*theta, Y)
    r, shifts = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), Y[:, None] - theta[1]
    scatters = np.einsum("nk,nki,nkj->kij", r, shifts, shifts)
    return scipys(*theta, Y), r.sum(axis=0), np.einsum("nk,nki->ki", r, shifts), scatters


def test_shapes_that_do_not_agree_are_refused(compiled):
    (weights, means, covariances), Y = components(3, 2), rows(50, 3)
    for theta, data in (
        ((weights, means, covariances), Y),
        ((weights[:2], means, covariances), Y[:, :2]),
        ((weights, means, covariances[:2]), Y[:, :2]),
    ):
        for function in (compiled["gaussian"], gaussian_e_step):
            with pytest.raises(ValueError, match="differ in K or D"):
                function(*theta, data)
    weights, topics, table = texts()
    counts, columns, starts = cells_of(table)
    for wrong in ((weights[:2], topics, counts), (weights, topics, counts[1:])):
        with pytest.raises(ValueError, match="differ in K, or counts and columns"):
            topic_loops.document_statistics(*wrong, columns, starts)
    for cells in ((columns + 1, starts), (columns - 1, starts), (columns, starts + 1)):
        assert np.isnan(topic_loops.document_statistics(weights, topics, counts, *cells)[0])


def texts(K=3, V=7, N=12, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.poisson(0.7, (N, V))
    table[4] = 0
    return rng.dirichlet(np.full(K, 3.0)), rng.dirichlet(np.ones(V), K), table


def cells_of(table):
    sparse = scipy.sparse.csr_array(table)
    return sparse.data.astype(float), sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)


def dense(weights, topics, table):
    """Log w_k p(words | k), shape (N, K), with 0 log 0 = 0."""
    with np.errstate(divide="ignore"):
        return np.log(weights) + np.sum(scipy.special.xlogy(table[:, None], topics), axis=-1)


def dense_value(weights, topics, table):
    return logsumexp(dense(weights, topics, table), axis=1).sum()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("K", "V", "N"), [(3, 7, 12), (1, 4, 3), (6, 40, 100)])
def test_documents_are_those_of_dense_arrays(compiled, mode, K, V, N):
    weights, topics, table = texts(K, V, max(N, 5))
    value, *gradients = compiled[mode](weights, topics, *cells_of(table))
    assert value == pytest.approx(dense_value(weights, topics, table), rel=1e-13)
    if K * V < 50:
        topics = topics + 0.1  # differences must not cross 0
        _, *gradients = compiled[mode](weights, topics, *cells_of(table))
        assert error_of_gradients(lambda w, t: dense_value(w, t, table), gradients, (weights, topics)) < 1e-7


@pytest.mark.parametrize("mode", MODES)
def test_words_that_a_topic_cannot_give(compiled, mode):
    call, (weights, topics, table) = compiled[mode], texts()
    table[:, 0] = np.arange(12) % 2
    topics[0, 0] = 0.0
    value, *gradients = call(weights, topics, *cells_of(table))
    assert value == pytest.approx(dense_value(weights, topics, table), rel=1e-13)
    assert all(np.isfinite(g).all() for g in gradients)
    counts, columns, starts = cells_of(table)
    zeros = (np.append(counts, 0.0), np.append(columns, 0), np.append(starts[:-1], starts[-1] + 1))
    assert call(weights, topics, *zeros)[0] == pytest.approx(value, rel=1e-13)  # a stored count of 0
    topics[:, 0] = 0.0
    value, *gradients = call(weights, topics, *cells_of(table))
    assert value == -np.inf
    assert not any(np.isnan(g).any() for g in gradients)
    assert call(weights, topics, np.zeros(0), np.zeros(0, int), np.zeros(1, int))[0] == 0
    without = np.array([0.0, 0.4, 0.6])
    _, topics, table = texts()
    value, *gradients = call(without, topics, *cells_of(table))
    assert value == pytest.approx(dense_value(without[1:], topics[1:], table), rel=1e-13)
    assert all(np.all(g[0] == 0) for g in gradients)


# Seeded bugs: the same loops, run by Python, with one line changed.


def rewritten(module, operation, name, changes, route="_by_loops"):
    """Return value-and-gradients and E-step of modules whose source is changed; each change must be in one of them."""
    source = inspect.getsource(module)
    source = source.replace("numba.njit(", "(lambda **options: lambda function: function)(")
    source = source.replace("from bayeszoo.likelihoods.compiling import loop", "loop = lambda function: function")
    over = inspect.getsource(getattr(operation, route))
    for old, new in changes:
        assert (old in source) != (old in over)
        source, over = source.replace(old, new), over.replace(old, new)
    inner = {"__name__": module.__name__}
    exec(compile(source, module.__file__, "exec"), inner)
    outer = {**vars(operation), name: inner[name]}
    exec(over, outer)
    return outer[route], inner


def gaussian_errors(*changes):
    """Largest errors of value, gradients and statistics with the changes."""
    theta, Y = components(3, 2, seed=2), rows(40, 2)
    by_loops, inner = rewritten(gaussian_loops, mixture, "whitened_statistics", changes)
    value, *gradients = by_loops(*theta, Y)
    sums = zip(inner["gaussian_e_step"](*theta, Y), expected_sums(theta, Y), strict=True)
    return (
        abs(value - scipys(*theta, Y)),
        error_of_gradients(lambda *t: scipys(*t, Y), gradients, theta),
        max(np.max(np.abs(one - other)) for one, other in sums),
    )


def document_errors(*changes):
    weights, topics, table = texts()
    counts, columns, starts = cells_of(table)
    counts, columns, starts = np.append(counts, 0.0), np.append(columns, 0), np.append(starts[:-1], starts[-1] + 1)
    by_loops, _ = rewritten(topic_loops, topic_ops, "document_statistics", changes, "_one_topic_by_loops")
    value, *gradients = by_loops(weights, topics + 0.1, counts, columns, starts)
    arguments = (weights, topics + 0.1)
    return (
        abs(value - dense_value(*arguments, table)),
        error_of_gradients(lambda *t: dense_value(*t, table), gradients, arguments),
    )


GAUSSIAN_BUGS = [
    ("back @ (scatters", "inverses[k] @ (scatters"),  # a factor transposed
    ("0.5 * (back", "(back"),  # no 1/2
    (" - counts[k] * np.eye(D)", ""),  # no - N_k P
    ("counts[k] / weights[k]", "len(Y) / weights[k]"),  # no responsibilities
    ("back @ shifts[k]", "inverses[k] @ shifts[k]"),
    ("total += r[n] * z[i, n] * z[j, n]", "total += z[i, n] * z[j, n]"),
    ("factors @ scatters @ factors.mT", "factors.mT @ scatters @ factors"),
    ("factors @ shifts[..., None]", "factors.mT @ shifts[..., None]"),
    ("0.5 * D * _NATS", "0.5 * _NATS"),
    ("math.log(weights[k]) - ", "-"),
    ("value += largest[n]", "pass"),
    ("constants[k] -= inverse_factor", "constants[k] -= 2 * inverse_factor"),
]
DOCUMENT_BUGS = [
    ("documents[k] += joint[k]", "documents[k] += 1.0"),
    ("words[word, k] += count * joint[k]", "words[word, k] += count"),
    ("words.T / np.where(topics", "words.T + 0 * np.where(topics"),
    ("return largest + math.log(total)", "return largest"),
    ("joint[k] += count * log_topics[word, k]", "joint[k] += log_topics[word, k]"),
]
BUGS = [(gaussian_errors, *bug) for bug in GAUSSIAN_BUGS] + [(document_errors, *bug) for bug in DOCUMENT_BUGS]


@pytest.mark.parametrize("errors", [gaussian_errors, document_errors])
def test_the_rewritten_loops_are_right_without_changes(errors):
    assert max(errors()) < 1e-7


@pytest.mark.parametrize(("errors", "before", "after"), BUGS, ids=[before for _, before, _ in BUGS])
def test_a_bug_in_the_loops_is_seen(errors, before, after):
    assert max(errors((before, after))) > 1e-3
