"""Random graphs of PyTensor's operations, compiled as loops: the values are those of PyTensor's own interpreter.

A user's own model may join any operations. Hand-written cases missed the transpose of a square matrix, parts of
reshaped arrays and sums of booleans; square matrices, axes of one entry, negative steps and repeated codes found them.
"""

from collections.abc import Callable

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from bayeszoo.compile.compiled import compiled
from bayeszoo.compile.density import strict
from bayeszoo.compile.loops import indexing

pytestmark = pytest.mark.slow  # a graph takes numba four seconds
LENGTH, STEPS, MOST_AXES, MOST_ENTRIES = 12, 16, 4, 400
STARTS = [(12,), (3, 4), (3, 3), (2, 2), (2, 2, 2), (1, 2, 3), (3, 1), (2,), (1,), ()]
STEPS_OF_SLICES = [-2, -1, 1, 2]
FUNCTIONS = [
    lambda x: pt.exp(-pt.abs(x)),
    pt.sign,
    pt.neg,
    pt.sqr,
    pt.sigmoid,
    lambda x: pt.floor(x / 2),
    lambda x: pt.log1p(pt.abs(x)),
]
PAIRS = [
    pt.add,
    pt.mul,
    pt.maximum,
    pt.minimum,
    lambda x, y: pt.switch(x > y, x, y),
    lambda x, y: (x > y) * x,
    lambda x, y: x // (y * y + 1),
]


def slices(rng, array):
    """Return a number, or a slice, for each of the first axes."""

    def index(length):
        if rng.random() < 0.25:
            return int(rng.integers(-length, length))
        start, stop = (None if rng.random() < 0.5 else int(rng.integers(-length - 1, length + 2)) for _ in range(2))
        return slice(start, stop, int(rng.choice(STEPS_OF_SLICES)))

    return tuple(index(length) for length in array.type.shape[: rng.integers(1, array.ndim + 1)])


def codes(rng, array):
    """Return codes along one axis, among them equal ones and negative ones."""
    axis = int(rng.integers(array.ndim))
    length, shape = array.type.shape[axis], [(3,), (1,), (5,), (2, 2), (1, 2)][rng.integers(5)]
    return (*[slice(None)] * axis, rng.integers(-length, length, shape))


def reshaped(rng, array, others):
    """Return the entries in another shape, or with their axes in another order."""
    size, axes = int(np.prod(array.type.shape)), [int(axis) for axis in rng.permutation(array.ndim)]
    shapes = [(size,), (1, -1), (-1, 1), *((n, size // n) for n in (2, 3) if size % n == 0)]
    return array.transpose(*axes) if rng.random() < 0.5 else array.reshape(shapes[rng.integers(len(shapes))])


def part(rng, array, others):
    """Return a part, by slices or by codes."""
    return array[slices(rng, array) if rng.random() < 0.6 else codes(rng, array)]


def changed(rng, array, others):
    """Return the array with another added to a part of it."""
    place, other = part(rng, array, others), others[rng.integers(len(others))]
    if np.broadcast_shapes(place.type.shape, other.type.shape) != tuple(place.type.shape):
        raise ValueError("another shape")
    return pt.inc_subtensor(place, pt.alloc(other, *place.type.shape))


def joined(rng, array, others):
    """Return the array twice, along an axis."""
    return pt.join(int(rng.integers(-array.ndim, array.ndim)), array, array + 1)


def split(rng, array, others):
    """Return the first or the last part of the array."""
    axis = int(rng.integers(-array.ndim, array.ndim))
    first = int(rng.integers(array.type.shape[axis] + 1))
    return pt.split(array, [first, array.type.shape[axis] - first], axis=axis)[rng.integers(2)]


def reduced(rng, array, others):
    """Return a sum, a product or an extreme along some axes."""
    axes = tuple(int(axis) for axis in rng.permutation(array.ndim)[: rng.integers(1, array.ndim + 1)])
    return [pt.sum, pt.prod, pt.max, pt.min, pt.any, pt.all, pt.logsumexp][rng.integers(7)](array, axis=axes)


def product(rng, array, others):
    """Return the product of matrices or vectors."""
    return pt.dot(array, others[rng.integers(len(others))])


def pair(rng, array, others):
    """Return a function of two arrays, entry by entry."""
    return PAIRS[rng.integers(len(PAIRS))](array, others[rng.integers(len(others))])


def function(rng, array, others):
    """Return a function of each entry."""
    return FUNCTIONS[rng.integers(len(FUNCTIONS))](array)


def cast(rng, array, others):
    """Return the entries as another type."""
    return array > 0 if rng.random() < 0.4 else pt.cast(array * 2, "int64")


def repeated(rng, array, others):
    """Return the array several times along a new first axis."""
    return pt.alloc(array, int(rng.integers(1, 4)), *array.type.shape)


STEP: list[Callable] = [*(reshaped, part, part, changed, joined, split, reduced, product, pair, pair, function)]
STEP += [cast, repeated]


def graph(flat, seed):
    """Return random arrays of a vector, and the gradient of their sum."""
    rng = np.random.default_rng(seed)
    arrays = [flat[: int(np.prod(shape))].reshape(shape) for shape in STARTS]
    while len(arrays) < len(STARTS) + STEPS:
        array = arrays[int(len(arrays) * rng.beta(1.5, 1))]  # rather a late one, so that operations follow on another
        try:
            result = STEP[rng.integers(len(STEP))](rng, array, arrays)
        except (TypeError, ValueError, IndexError, NotImplementedError):
            continue  # shapes or types that do not go together
        sizes = result.type.shape
        if result.ndim <= MOST_AXES and None not in sizes and 0 < np.prod(sizes, dtype=int) <= MOST_ENTRIES:
            arrays.append(result)
    results = arrays[len(STARTS) :]
    total = sum(pt.sin(array).sum() for array in [flat, *results] if array.dtype == "float64")
    return [*results, pt.grad(total, flat)]


def differences(seed):
    """Return the outputs of a random graph whose values are not those of the interpreter, by their numbers.

    Entries are sixteenths, whose sums and products are exact: in whatever order, they are equal or not, or integers.
    """
    flat, x = pt.vector("flat", shape=(LENGTH,)), np.random.default_rng(seed).integers(-40, 41, LENGTH) / 16
    outputs = graph(flat, seed)
    expected = pytensor.function([flat], outputs, mode=Mode("py", None), on_unused_input="ignore")(x)
    with strict():
        values = compiled(flat, outputs, "NUMBA")(x)
    return [i for i, (value, right) in enumerate(zip(values, expected, strict=True)) if not is_equal(value, right)]


def is_equal(value, right):
    """Compare shapes and entries."""
    floats = np.asarray(value, dtype=np.float64), np.asarray(right, dtype=np.float64)
    return np.shape(value) == np.shape(right) and np.allclose(*floats, rtol=1e-9, atol=1e-11, equal_nan=True)


@pytest.mark.parametrize("seed", range(24))
def test_a_random_graph_has_the_interpreter_s_values(seed):
    assert differences(seed) == []


def test_an_index_without_its_parentheses_is_seen(monkeypatch):
    """Among a few graphs, as most have no part of a reshaped array."""
    monkeypatch.setattr(indexing, "_factor", lambda expression: expression)
    assert any(differences(seed) for seed in range(24))
