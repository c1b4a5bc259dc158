"""The benchmark of samplers: right ones pass, and each of ten bugs is found."""

from dataclasses import replace

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.tools.references.benchmark import Target, target_of
from tests.refusals import raises

COV = np.array([[1.0, 0.7], [0.7, 1.0]])
PRECISION = np.linalg.inv(COV)
CHAINS, LENGTH, STEPS, SIZE = 4, 1500, 4, 0.45


def gaussian(n=10_000):
    """Two correlated standard normals."""
    draws = np.random.default_rng(1).multivariate_normal([0, 0], COV, size=n)
    return Target("gaussian", lambda x: (-x @ PRECISION @ x / 2, -PRECISION @ x), draws)


def log_gamma(n=10_000):
    """The logarithm of a gamma variable of shape 3, its Jacobian included."""
    draws = np.log(np.random.default_rng(2).gamma(3, size=(n, 1)))
    return Target("log gamma", lambda x: (float(3 * x[0] - np.exp(x[0])), 3 - np.exp(x)), draws)


def two_modes(n=10_000):
    """Two labels of one component, 6 sd apart."""
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(n, 1)) + 3 * rng.choice([-1, 1], size=(n, 1))

    def log_density(x):
        return float(np.logaddexp(-((x[0] - 3) ** 2) / 2, -((x[0] + 3) ** 2) / 2)), 3 * np.tanh(3 * x) - x

    return Target("two modes", log_density, draws)


TARGETS = [gaussian(), log_gamma()]


def chains(step):
    """A sampler from a function that makes one step: (density, rng, state) -> (state, what is recorded)."""

    def sampler(density, dim, init, seed, budget):
        draws = np.empty((CHAINS, LENGTH, dim))
        for chain in range(CHAINS):
            rng, x = np.random.default_rng([seed, chain]), init.copy()
            for i in range(LENGTH):
                x, draws[chain, i] = step(density, rng, x)
        return draws

    return sampler


def hamiltonian(*, last_half=1.0, kinetic=True, accept=True, wrong_density=None, record_proposal=False, mass=1.0):
    def step(density, rng, x):
        f = wrong_density(density) if wrong_density else density
        p = start = rng.normal(size=len(x)) * mass
        size = SIZE * rng.uniform(0.7, 1.3)
        height, g = f(x)
        y, p = x, p + size / 2 * g
        for k in range(STEPS):
            y = y + size * p
            proposed, g = f(y)
            p = p + size * g * (1 if k < STEPS - 1 else last_half / 2)
        log_ratio = proposed - height + kinetic * (start @ start - p @ p) / 2
        moved = y if not accept or np.log(rng.uniform()) < log_ratio else x
        return moved, (y if record_proposal else moved)

    return chains(step)


def metropolis(*, asymmetric=False, temper=1.0, wide=1.6):
    def step(density, rng, x):
        y = x + wide * rng.normal(size=len(x)) / np.sqrt(len(x)) + 0.5 * asymmetric
        moved = y if np.log(rng.uniform()) < (density(y)[0] - density(x)[0]) * temper else x
        return moved, moved

    return chains(step)


def gibbs(*, sd=(1 - 0.7**2) ** 0.5, synchronous=False, slope=0.7):
    def step(density, rng, x):
        first = slope * x[1] + sd * rng.normal()
        second = slope * (x[0] if synchronous else first) + sd * rng.normal()
        moved = np.array([first, second])
        return moved, moved

    return chains(step)


def without_jacobian(density):
    """The density of the positive number where that of its logarithm is wanted: it lacks x."""

    def log_density(x):
        value, gradient = density(x)
        return value - x.sum(), gradient - 1

    return log_density


def tail_cut(density):
    def log_density(x):
        value, gradient = density(x)
        return value - 4 * max(0.0, x[0] - 0.8) ** 2, gradient - np.eye(len(x))[0] * 8 * max(0.0, x[0] - 0.8)

    return log_density


BUGS = {
    "without Jacobian": (hamiltonian(wrong_density=without_jacobian), TARGETS),
    "missing half step": (hamiltonian(last_half=0.0), TARGETS),
    "acceptance without kinetic energy": (hamiltonian(kinetic=False), TARGETS),
    "proposals recorded": (hamiltonian(record_proposal=True, last_half=1.0, mass=3.0), TARGETS),
    "momentum of another mass": (hamiltonian(mass=1.3), TARGETS),
    "a tail is cut": (hamiltonian(wrong_density=tail_cut), TARGETS),
    "acceptance without proposal ratio": (metropolis(asymmetric=True), TARGETS),
    "tempered acceptance": (metropolis(temper=0.7), TARGETS),
    "variance for sd in Gibbs": (gibbs(sd=1 - 0.7**2), TARGETS[:1]),
    "synchronous Gibbs": (gibbs(synchronous=True), TARGETS[:1]),
}
RIGHT = {
    "hamiltonian": (hamiltonian(), TARGETS),
    "metropolis": (metropolis(), TARGETS),
    "gibbs": (gibbs(), TARGETS[:1]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_samplers_pass(name):
    sampler, targets = RIGHT[name]
    answer = bz.benchmark(sampler, targets)
    assert answer.verdict == "right", answer.table.to_string()
    assert (answer.table["sd_ratio"] - 1).abs().max() < 0.2


@pytest.mark.parametrize("name", BUGS)
def test_each_bug_is_found(name):
    sampler, targets = BUGS[name]
    assert bz.benchmark(sampler, targets).verdict == "wrong"


def test_chains_that_stay_with_one_label_are_found():
    assert bz.benchmark(hamiltonian(), [two_modes()]).verdict in ("wrong", "not mixed")


def test_calls_are_counted_and_few_draws_are_no_verdict():
    def short(density, dim, init, seed, budget):
        return np.cumsum([init + 0 * density(init)[0] for _ in range(50)], axis=0)

    answer = bz.benchmark(short, TARGETS[:1])
    assert answer.verdict == "not mixed"
    assert answer.table["calls"].tolist() == [50]
    with raises(bz.InputError, "wrong_shape"):
        bz.benchmark(lambda *arguments: np.zeros((10, 7)), TARGETS[:1])


def test_a_reference_is_a_target():
    target = target_of("newcomb-normal_gamma")
    answer = bz.benchmark(lambda *arguments: target.draws[5000:], [replace(target, draws=target.draws[:5000])])
    assert answer.verdict == "right", answer.table.to_string()


@pytest.mark.slow  # a hundred seeds of each right sampler
@pytest.mark.parametrize("name", RIGHT)
def test_right_samplers_pass_a_hundred_seeds(name):
    sampler, targets = RIGHT[name]
    verdicts = [bz.benchmark(sampler, targets, seed=seed).verdict for seed in range(100)]
    assert verdicts.count("right") >= 98
