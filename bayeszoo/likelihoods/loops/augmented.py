"""Draws of latent variables that make binary outcomes conditionally Gaussian. Numba.

Polya-Gamma variables are drawn by Devroye's method: Polson, Scott and Windle 2013, section 4. Tails of the normal
distribution by exponential proposals: Robert 1995.
"""

from __future__ import annotations

import math

from bayeszoo.likelihoods.compiling import loop

SPLIT = 0.64
"""The point, in units of 4 times the variable, that separates the two series of the Polya-Gamma density."""
FAR = 40.0
"""Half predictor above which the right tail has less than 1e-200 of the proposals, and is left out."""


@loop
def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@loop
def _right_share(z: float) -> float:
    """Return the share of proposals to the right of the split."""
    if z > FAR:
        return 0.0
    rate = (math.pi**2 / 4.0 + z * z) / 2.0
    right = math.pi / (2.0 * rate) * math.exp(-rate * SPLIT)
    root = 1.0 / math.sqrt(SPLIT)
    below = math.exp(-z) * _normal_cdf(root * (SPLIT * z - 1.0)) + math.exp(z) * _normal_cdf(-root * (SPLIT * z + 1.0))
    return right / (right + 2.0 * below)


@loop
def _left(z: float, rng) -> float:  # type: ignore[no-untyped-def]
    """Draw from the inverse Gaussian with mean 1 / z and shape 1, truncated at the split."""
    if z * SPLIT < 1.0:
        while True:
            first, second = rng.standard_exponential(), rng.standard_exponential()
            if first * first <= 2.0 * second / SPLIT:
                x = SPLIT / (1.0 + SPLIT * first) ** 2
                if rng.random() <= math.exp(-z * z * x / 2.0):
                    return x
    mean = 1.0 / z
    while True:
        half = mean * rng.standard_normal() ** 2 / 2.0
        x = mean / (1.0 + half + math.sqrt(half * (2.0 + half)))  # the smaller root, without cancellation
        if rng.random() > mean / (mean + x):
            x = mean * mean / x
        if x <= SPLIT:
            return x


@loop
def _is_accepted(x: float, rng) -> bool:  # type: ignore[no-untyped-def]
    """Say whether a proposal is accepted: partial sums of the alternating series bracket a uniform number."""
    height, total, n = rng.random(), 1.0, 0
    rate = -2.0 / x if x <= SPLIT else -(math.pi**2) * x / 2.0
    while True:
        n += 1
        term = (2 * n + 1) * math.exp(rate * n * (n + 1))
        if n % 2 == 1:
            total -= term
            if height <= total:
                return True
        else:
            total += term
            if height > total:
                return False


@loop
def _polya_gamma(z: float, right: float, rng) -> float:  # type: ignore[no-untyped-def]
    """Draw a variable PG(1, 2 z), z >= 0; ``right`` is the probability to the right of the split."""
    while True:
        if rng.random() < right:
            x = SPLIT + rng.standard_exponential() / ((math.pi**2 / 4.0 + z * z) / 2.0)
        else:
            x = _left(z, rng)
        if _is_accepted(x, rng):
            return x / 4.0


@loop
def polya_gamma(trials, eta, drawn, rng):  # type: ignore[no-untyped-def]
    """Draw PG(trials, eta) for each row into ``drawn``, as a sum over whole numbers of trials."""
    for i in range(len(trials)):
        z = abs(eta[i]) / 2.0
        right, total = _right_share(z), 0.0
        for _ in range(trials[i]):
            total += _polya_gamma(z, right, rng)
        drawn[i] = total


@loop
def _above(eta: float, rng) -> float:  # type: ignore[no-untyped-def]
    """Draw from N(eta, 1) truncated to positive numbers."""
    if eta > -0.4:  # at least a third of the draws are above 0
        while True:
            x = eta + rng.standard_normal()
            if x > 0.0:
                return x
    rate = (-eta + math.sqrt(eta * eta + 4.0)) / 2.0
    while True:
        x = rng.standard_exponential() / rate
        if rng.random() <= math.exp(-((x - eta - rate) ** 2) / 2.0):
            return x


@loop
def latent_normals(successes, trials, eta, drawn, rng):  # type: ignore[no-untyped-def]
    """Draw the sum of N(eta, 1) over the trials of each row, truncated above 0 for successes and below for failures.

    Return the sum of squares of all draws.
    """
    squares = 0.0
    for i in range(len(trials)):
        total = 0.0
        for trial in range(trials[i]):
            sign = 1.0 if trial < successes[i] else -1.0
            x = _above(sign * eta[i], rng)
            total += sign * x
            squares += x * x
        drawn[i] = total
    return squares
