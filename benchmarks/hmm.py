"""Speed of hidden Markov chains as ratios, both sides in one run, interleaved, medians. Never a test: machines differ.

Peers: hmmlearn's forward pass in C++, alone and given the densities, which is less than a gradient needs; a
`pytensor.scan`; hmmlearn's EM iteration. Every timing is of several calls in a row, so that both sides reuse the
memory that they freed.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from hmmlearn import _hmmc
from hmmlearn import hmm as peers
from threadpoolctl import threadpool_limits

import bayeszoo as bz
from bayeszoo.likelihoods.ops import hmm

REPEATS = 21
ROWS = (10**3, 10**4, 10**5)
STATES = (2, 3, 5)


def seconds(action: Callable[[], object], calls: int) -> float:
    """Time one call of several in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        action()
    return (time.perf_counter() - start) / calls


def versus(title: str, ours: Callable[[], object], peer: Callable[[], object], rows: int, target: str) -> None:
    """Print nanoseconds a row of both sides, and the ratio of their medians."""
    calls = [max(1, int(2e-3 / seconds(action, 2))) for action in (ours, peer)]
    pairs = [(seconds(ours, calls[0]), seconds(peer, calls[1])) for _ in range(REPEATS)]
    mine, theirs = (median(side) * 1e9 / rows for side in zip(*pairs, strict=True))
    print(f"{title:64s} {mine:8.1f} ns {theirs:8.1f} ns  ratio {mine / theirs:6.3f}  target {target}", flush=True)


def gradient(value_of: Callable[..., Any], parameters: list[np.ndarray]) -> Callable[[], object]:
    """Compile value and gradient as `bayeszoo.density` does; return a call of them."""
    inputs = [pt.tensor(dtype="float64", shape=value.shape) for value in parameters]
    value = value_of(*inputs)
    function = pytensor.function(inputs, [value, *pt.grad(value, inputs)], mode="NUMBA", trust_input=True)
    function(*parameters)
    data = [variable.get_value(borrow=True) for variable in function.get_shared()]
    return partial(function.vm.jit_fn, *parameters, *data)


def by_scan(initial: Any, transition: Any, log_b: Any) -> Any:
    """Return the log likelihood by a loop of PyTensor over the rows, in logarithms."""

    def step(row: Any, alpha: Any, log_transition: Any) -> Any:
        return pt.logsumexp(alpha[:, None] + log_transition, axis=0) + row

    first = pt.log(initial) + log_b[0]
    alphas = pytensor.scan(step, log_b[1:], [first], [pt.log(transition)], return_updates=False)
    return pt.logsumexp(alphas[-1])


class Example:
    """A chain of states that stay, with symbols (dice) or normal rows."""

    def __init__(self, states: int, rows: int) -> None:
        rng = np.random.default_rng(0)
        self.initial = np.full(states, 1 / states)
        self.transition = 0.9 * np.eye(states) + 0.1 / states
        self.emission = rng.dirichlet(np.ones(6), states)
        self.symbols = rng.integers(0, 6, rows)
        self.means, self.sigmas = np.linspace(-2, 2, states), np.ones(states)
        self.y = rng.normal(size=rows) + self.means[rng.integers(0, states, rows)]
        self.starts = np.zeros(1, dtype=np.int64)
        self.tables = [self.initial, self.transition]
        self.densities = np.ascontiguousarray(self.emission[:, self.symbols].T)
        self.log_b = np.log(self.densities)

    def gradients(self) -> dict[str, Callable[[], object]]:
        """Return calls of value and gradient for each kind of rows; data are shared variables, as in a model."""
        starts, symbols, y = (pytensor.shared(value) for value in (self.starts, self.symbols, self.y))

        def dice(*inputs: Any) -> Any:
            return hmm.hmm_categorical_log_likelihood(*inputs, symbols, starts)

        def normal(*inputs: Any) -> Any:
            return hmm.hmm_gaussian_log_likelihood(*inputs, y, starts)

        def dense(*inputs: Any) -> Any:
            return hmm.hmm_log_likelihood(*inputs, starts)

        return {
            "dice": gradient(dice, [*self.tables, self.emission]),
            "normal": gradient(normal, [*self.tables, self.means, self.sigmas]),
            "log densities": gradient(dense, [*self.tables, self.log_b]),
        }


def against_forward_passes() -> None:
    """Compare a gradient with hmmlearn's forward passes."""
    for states in STATES:
        for rows in ROWS:
            example = Example(states, rows)
            scaled = partial(_hmmc.forward_scaling, *example.tables, example.densities)
            for kind, call in example.gradients().items():
                target = {"dice": "<= 0.9", "normal": "<= 1.5"}.get(kind, "<= 2")
                versus(f"gradient, {kind}, K={states} T={rows} / hmmlearn forward, scaled", call, scaled, rows, target)
            logs = partial(_hmmc.forward_log, *example.tables, example.log_b)
            versus("the same / hmmlearn forward, in logarithms (its default)", call, logs, rows, "<= 1")


def against_scan() -> None:
    """Compare gradients with those of a `pytensor.scan`."""
    for states in STATES:
        example = Example(states, 10**3)
        symbols, y = pytensor.shared(example.symbols), pytensor.shared(example.y)

        def dice(initial: Any, transition: Any, emission: Any, symbols: Any = symbols) -> Any:
            return by_scan(initial, transition, pt.log(emission).T[symbols])

        def normal(initial: Any, transition: Any, means: Any, sigmas: Any, y: Any = y) -> Any:
            log_b = -0.5 * ((y[:, None] - means) / sigmas) ** 2 - pt.log(sigmas)
            return by_scan(initial, transition, log_b)

        ours = example.gradients()
        scan = gradient(dice, [*example.tables, example.emission])
        versus(f"gradient, dice, K={states} T=1000 / pytensor.scan", ours["dice"], scan, 10**3, "<= 0.033")
        scan = gradient(normal, [*example.tables, example.means, example.sigmas])
        versus(f"gradient, normal, K={states} T=1000 / pytensor.scan", ours["normal"], scan, 10**3, "<= 0.066")


def peer_iteration(model: Any, data: np.ndarray) -> Callable[[], object]:
    """Return one EM iteration of hmmlearn from the same parameters."""

    def iteration() -> None:
        statistics, _ = model._do_estep(data, None)
        model._do_mstep(statistics)

    return iteration


def our_iteration(model: Any, data: Any) -> Callable[[], object]:
    """Return an EM iteration of the model, as a climb makes it."""
    at = model.start(data, np.random.default_rng(0))
    return lambda: model.m_step(model.e_step(at, data).stats, flat=True)


def against_em() -> None:
    """Compare a model's EM iteration with hmmlearn's, in logarithms as by its defaults, and by its faster passes."""
    for states, rows in product(STATES, (500, *ROWS[1:])):
        example = Example(states, rows)
        for name, column, peer, numbers in (
            ("hmm_categorical", example.symbols.astype(str), peers.CategoricalHMM, example.symbols[:, None]),
            ("hmm_gaussian", example.y, peers.GaussianHMM, example.y[:, None]),
        ):
            model = bz.find(name)(K=states)
            ours = our_iteration(model, bz.read(model, column))
            for implementation, target in (("log", "<= 0.5"), ("scaling", "-")):
                other = peer(states, implementation=implementation)
                other._init(numbers, None)
                other.startprob_, other.transmat_ = example.tables
                title = f"EM iteration, {name}, K={states} T={rows} / hmmlearn's, {implementation}"
                versus(title, ours, peer_iteration(other, numbers), rows, target)


def in_logarithms() -> None:
    """Show what it costs where zeros and sharp densities forbid to work with probabilities."""
    for states in STATES:
        example = Example(states, 10**4)
        example.transition = np.triu(np.ones((states, states)))
        example.transition /= example.transition.sum(axis=1, keepdims=True)
        example.log_b = -0.5 * ((np.linspace(0, states, 10**4)[:, None] - np.arange(states)) / 0.02) ** 2
        starts = pytensor.shared(example.starts)
        example.tables = [example.initial, example.transition]
        call = gradient(lambda *inputs, s=starts: hmm.hmm_log_likelihood(*inputs, s), [*example.tables, example.log_b])
        peer = partial(_hmmc.forward_log, *example.tables, example.log_b)
        versus(f"gradient, only forward and sharp, K={states} / forward in logarithms", call, peer, 10**4, "-")


if __name__ == "__main__":
    with threadpool_limits(1):
        against_forward_passes()
        against_scan()
        against_em()
        in_logarithms()
