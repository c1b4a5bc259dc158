"""SciPy's distributions at fixed parameters: ``frozen.beta(2, 3)`` is a faster `scipy.stats.beta(2, 3)`.

SciPy's own freezing rebuilds a distribution with its argument parsers and docstrings, which takes half a millisecond or
more; an integral over posteriors would pay this at each of its points.
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
from bayeszoo.foundation.named import RandomState
from bayeszoo.foundation.numerics.constants import LOG_2_PI


class Frozen(Stackable):
    """A SciPy distribution at fixed shapes, ``loc`` and ``scale``, with its methods."""

    def __init__(self, dist: Any, *args: Any, **kwds: Any) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):  # copying and pickling look these up before __init__ has run
            raise AttributeError(name)
        method = getattr(self.dist, name)
        return lambda *values, **options: method(*values, *self.args, **self.kwds, **options)

    def mean(self) -> Any:
        """Return the mean."""
        return self.dist.mean(*self.args, **self.kwds)

    def cdf(self, x: Any) -> Any:
        """Return P(X <= x)."""
        return self.dist.cdf(x, *self.args, **self.kwds)

    def ppf(self, q: float) -> Any:
        """Return the quantile of a level."""
        return self.dist.ppf(q, *self.args, **self.kwds)

    def std(self) -> Any:
        """Return the standard deviation, computed at scale 1 so that no squared scale overflows or underflows."""
        loc, scale = self.kwds.get("loc", 0.0), self.kwds.get("scale", 1.0)
        shapes = {name: value for name, value in self.kwds.items() if name not in ("loc", "scale")}
        of_shapes, *positions = np.split(np.arange(len(self.args)), [self.dist.numargs, self.dist.numargs + 1])
        loc, scale = (
            self.args[index[0]] if len(index) else default
            for index, default in zip(positions, (loc, scale), strict=True)
        )
        unit = self.dist.std(*(self.args[i] for i in of_shapes), **shapes)
        return np.broadcast_arrays(np.multiply(unit, scale), loc)[0][()]

    def entries(self, places: np.ndarray) -> Self:
        """Return the distributions of the entries at ``places`` along the last axis."""
        shape = np.shape(self.mean())
        chosen = lambda values: np.broadcast_to(values, shape)[..., places]  # noqa: E731
        return type(self)(
            self.dist, *map(chosen, self.args), **{name: chosen(value) for name, value in self.kwds.items()}
        )

    def is_of_kind(self, other: Any) -> bool:
        """Say whether another is the same SciPy distribution."""
        return isinstance(other, Frozen) and other.dist is self.dist

    def beside(self, laws: Sequence[Frozen], axes: tuple[int, ...]) -> Self:
        """Stack distributions of this kind and shape, this one included, to shape (*axes, *own shape)."""

        def together(values: list[Any]) -> np.ndarray:
            return np.stack([np.broadcast_to(value, shape) for value in values]).reshape(*axes, *shape)

        shape = np.shape(self.mean())
        args = [together(list(values)) for values in zip(*(law.args for law in laws), strict=True)]
        return type(self)(self.dist, *args, **{key: together([law.kwds[key] for law in laws]) for key in self.kwds})

    def rvs(self, size: Any = None, random_state: RandomState = None) -> Any:
        """Draw from a new SciPy distribution: SciPy stores the generator in it, which threads would mix up."""
        return self.dist(*self.args, **self.kwds).rvs(size=size, random_state=random_state)


class Normal(Frozen):
    """Normal distributions without SciPy's slow checks; of standard deviation 0 all mass is at one number."""

    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        arguments = dict(zip(("loc", "scale"), self.args, strict=False)) | self.kwds
        loc, scale = (np.asarray(arguments.get(name, x), dtype=np.float64) for name, x in (("loc", 0), ("scale", 1)))
        return loc, scale

    def mean(self) -> Any:
        """Return the mean."""
        loc, scale = self._moments()
        return np.where(scale >= 0, loc, np.nan)[()]

    def var(self) -> Any:
        """Return the variance."""
        return np.square(self.std())

    def cdf(self, x: Any) -> Any:
        """Return P(X <= x)."""
        loc, scale = self._moments()
        away = x - loc
        if np.all(scale > 0):
            return scipy.special.ndtr(away / scale)[()]
        with np.errstate(divide="ignore", invalid="ignore"):
            return scipy.special.ndtr(np.where((scale == 0) & (away == 0), np.inf, away / scale))[()]

    def ppf(self, q: Any) -> Any:
        """Return the quantile of a level."""
        loc, scale = self._moments()
        return (loc + scale * scipy.special.ndtri(q))[()]

    def logpdf(self, x: Any) -> Any:
        """Return the log density."""
        loc, scale = self._moments()
        if not np.all(scale > 0):
            return self.dist.logpdf(x, loc, scale)
        return (-np.square((x - loc) / scale) / 2 - LOG_2_PI / 2 - np.log(scale))[()]

    def logcdf(self, x: Any) -> Any:
        """Return log P(X <= x)."""
        loc, scale = self._moments()
        return scipy.special.log_ndtr((x - loc) / scale)[()] if np.all(scale > 0) else self.dist.logcdf(x, loc, scale)

    def logsf(self, x: Any) -> Any:
        """Return log P(X > x)."""
        loc, scale = self._moments()
        return scipy.special.log_ndtr((loc - x) / scale)[()] if np.all(scale > 0) else self.dist.logsf(x, loc, scale)


def norm(*args: Any, **kwds: Any) -> Normal:
    """Return normal distributions of means ``loc`` and standard deviations ``scale``."""
    return Normal(scipy.stats.norm, *args, **kwds)


class Beta(Frozen):
    """Beta distributions with moments that do not overflow or underflow at large counts."""

    def mean(self) -> Any:
        """Return a / (a + b)."""
        a, b = (np.asarray(values, dtype=np.float64) for values in self.args)
        return a / (a + b)

    def std(self) -> Any:
        """Return the square root of a b / ((a + b)^2 (a + b + 1))."""
        a, b = (np.asarray(values, dtype=np.float64) for values in self.args)
        return np.sqrt(a / (a + b)) * np.sqrt(b / (a + b)) / np.sqrt(a + b + 1)

    def var(self) -> np.ndarray:
        """Return the variance."""
        return np.square(self.std())

    def pdf(self, x: Any) -> Any:
        """Return the density; SciPy's raises an OverflowError next to 0."""
        with np.errstate(over="ignore"):
            return np.exp(self.logpdf(x))

    def logpdf(self, x: Any) -> Any:
        """Return the log density."""
        return log_beta(x, *self.args)[()]

    def cdf(self, x: Any) -> Any:
        """Return P(X <= x)."""
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
