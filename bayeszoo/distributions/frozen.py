"""Distributions of SciPy's at fixed parameters: ``frozen.beta(2, 3)`` is as `scipy.stats.beta(2, 3)`.

SciPy's own freezing builds a distribution anew, its argument parsers and its docstrings, for half a millisecond or
more, which an integral over posteriors pays at each of its points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import scipy

from bayeszoo.distributions.bases import Stackable
from bayeszoo.distributions.large_counts import beta_cdf, beta_ppf
from bayeszoo.distributions.special import log_beta


class Frozen(Stackable):
    """A distribution of SciPy's at fixed shapes, ``loc`` and ``scale``, with its methods."""

    def __init__(self, dist: Any, *args: Any, **kwds: Any) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):  # what copying and pickling ask for before there is a distribution
            raise AttributeError(name)
        method = getattr(self.dist, name)
        return lambda *values, **options: method(*values, *self.args, **self.kwds, **options)

    def mean(self) -> Any:
        """Return the mean."""
        return self.dist.mean(*self.args, **self.kwds)

    def cdf(self, x: Any) -> Any:
        """Return the probability of at most x."""
        return self.dist.cdf(x, *self.args, **self.kwds)

    def ppf(self, q: float) -> Any:
        """Return the quantile of a level."""
        return self.dist.ppf(q, *self.args, **self.kwds)

    def std(self) -> Any:
        """Return the standard deviation: that of scale 1, so that no square of a scale overflows or vanishes."""
        loc, scale = self.kwds.get("loc", 0.0), self.kwds.get("scale", 1.0)
        shapes = {name: value for name, value in self.kwds.items() if name not in ("loc", "scale")}
        own, *moved = np.split(np.arange(len(self.args)), [self.dist.numargs, self.dist.numargs + 1])
        loc, scale = (self.args[at[0]] if len(at) else known for at, known in zip(moved, (loc, scale), strict=True))
        unit = self.dist.std(*(self.args[i] for i in own), **shapes)
        return np.broadcast_arrays(np.multiply(unit, scale), loc)[0][()]

    def entries(self, places: np.ndarray) -> Self:
        """Return the distributions of some entries along the last axis."""
        shape = np.shape(self.mean())
        some = lambda values: np.broadcast_to(values, shape)[..., places]  # noqa: E731
        return type(self)(self.dist, *map(some, self.args), **{name: some(v) for name, v in self.kwds.items()})

    def is_of_kind(self, other: Any) -> bool:
        """Return whether the other is of the same distribution of SciPy's."""
        return isinstance(other, Frozen) and other.dist is self.dist

    def beside(self, each: Sequence[Frozen], axes: tuple[int, ...]) -> Self:
        """Return distributions of this kind and shape, this one among them, as one of shape (*axes, *own shape)."""

        def together(values: list[Any]) -> np.ndarray:
            return np.stack([np.broadcast_to(value, shape) for value in values]).reshape(*axes, *shape)

        shape = np.shape(self.mean())
        args = [together(list(values)) for values in zip(*(law.args for law in each), strict=True)]
        return type(self)(self.dist, *args, **{key: together([law.kwds[key] for law in each]) for key in self.kwds})

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Draw by a distribution of its own: SciPy keeps the generator in it meanwhile, and threads would mix them."""
        return self.dist(*self.args, **self.kwds).rvs(size=size, random_state=random_state)


class Normal(Frozen):
    """Normal distributions, whose distribution function is SciPy's without the checks that take longer than it."""

    def cdf(self, x: Any) -> Any:
        """Return the probability of at most x."""
        known = dict(zip(("loc", "scale"), self.args, strict=False)) | self.kwds
        loc, scale = known.get("loc", 0.0), known.get("scale", 1.0)
        if not np.all(np.asarray(scale) > 0):  # which SciPy says are none
            return super().cdf(x)
        return scipy.special.ndtr((x - np.asarray(loc)) / scale)[()]


def norm(*args: Any, **kwds: Any) -> Normal:
    """Return normal distributions of means ``loc`` and standard deviations ``scale``."""
    return Normal(scipy.stats.norm, *args, **kwds)


class Beta(Frozen):
    """Beta distributions with moments that do not overflow or underflow at large counts."""

    def mean(self) -> Any:
        """Return a / (a + b)."""
        a, b = (np.asarray(each, dtype=np.float64) for each in self.args)
        return a / (a + b)

    def std(self) -> Any:
        """Return the square root of a b / ((a + b)^2 (a + b + 1))."""
        a, b = (np.asarray(each, dtype=np.float64) for each in self.args)
        return np.sqrt(a / (a + b)) * np.sqrt(b / (a + b)) / np.sqrt(a + b + 1)

    def var(self) -> np.ndarray:
        """Return the variance."""
        return np.square(self.std())

    def logpdf(self, x: Any) -> Any:
        """Return the log density."""
        return log_beta(x, *self.args)[()]

    def cdf(self, x: Any) -> Any:
        """Return the probability of at most x."""
        return beta_cdf(x, *self.args)[()]

    def ppf(self, q: float) -> Any:
        """Return the quantile of a level."""
        return beta_ppf(q, *self.args)[()]


def beta(a: Any, b: Any) -> Beta:
    """Return Beta distributions of counts ``a`` and ``b``."""
    return Beta(scipy.stats.beta, a, b)


def __getattr__(name: str) -> Callable[..., Frozen]:
    if name.startswith("_"):
        raise AttributeError(name)
    return partial(Frozen, getattr(scipy.stats, name))
