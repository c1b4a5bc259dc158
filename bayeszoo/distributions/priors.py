"""Priors of single numbers as values: comparable, stored with fits, and read from text."""

from __future__ import annotations

import ast
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.scale import POSITIVE, REAL, UNIT, Scale
from bayeszoo.errors import InputError, NoSimulator


@dataclass(frozen=True, repr=False)
class Prior(ABC):
    """The distribution of one number. Its fields are finite, and positive except in `Normal` and `Uniform`."""

    pymc: ClassVar[tuple[str, ...]] = ()
    """PyMC's name of the distribution and its arguments in the order of the fields; empty if PyMC lacks it."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
                raise InputError(f"{type(self).__name__}: {field.name} must be a number, got {value!r}", "wrong_type")
            if not math.isfinite(value) or (self._is_positive(field.name) and value <= 0):
                kind = "> 0" if self._is_positive(field.name) else "finite"
                raise InputError(f"{type(self).__name__}: {field.name} must be {kind}, got {value:g}", "wrong_type")
            object.__setattr__(self, field.name, np.float64(value))

    def _is_positive(self, field: str) -> bool:
        return True

    @property
    @abstractmethod
    def scale(self) -> Scale:
        """The range of the number, and its coordinates."""

    @abstractmethod
    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density, -inf outside; ``complement`` is the distance to the upper bound, if known."""

    @abstractmethod
    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""

    def __repr__(self) -> str:
        """Write it as `prior_of` reads it: ``HalfNormal(10)``."""
        return format(self)

    def __format__(self, spec: str) -> str:
        """Write it with its numbers in a format, by default with all their digits."""
        values_and_defaults = [(getattr(self, each.name), each.default) for each in fields(self)]
        values = [float(value) for value, default in values_and_defaults if value != default]
        each = (format(value, spec) if spec else repr(value).removesuffix(".0") for value in values)
        return f"{type(self).__name__}({', '.join(each)})"


@dataclass(frozen=True, repr=False)
class Normal(Prior):
    """The normal distribution with this mean and standard deviation."""

    mean: float
    sd: float
    scale = REAL
    pymc = "Normal", "mu", "sigma"

    def _is_positive(self, field: str) -> bool:
        return field == "sd"

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density."""
        return frozen.norm(self.mean, self.sd).logpdf(x)

    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""
        return rng.normal(self.mean, self.sd)

    def posterior(self, precision: np.ndarray, weighted: np.ndarray) -> tuple[Any, Any]:
        """Return mean and sd given Gaussian estimates, from the sums of their precisions and of precision times y.

        The posterior is Gaussian: Bishop, PRML, 2.3.6.
        """
        total = precision + self.sd**-2
        return (weighted + self.mean * self.sd**-2) / total, total**-0.5


@dataclass(frozen=True, repr=False)
class HalfNormal(Prior):
    """The absolute value of a normal number with mean 0 and standard deviation ``sd``."""

    sd: float
    scale = POSITIVE
    pymc = "HalfNormal", "sigma"

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density: not by SciPy, whose calls would take most of the time of EM and samplers."""
        x = np.asarray(x)
        with np.errstate(over="ignore"):
            inside = math.log(2 / math.pi) / 2 - math.log(self.sd) - np.square(x / self.sd) / 2
        return np.where(x < 0, -np.inf, inside)[()]

    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""
        return abs(rng.normal(0.0, self.sd))


@dataclass(frozen=True, repr=False)
class HalfCauchy(Prior):
    """The half-Cauchy distribution with this median; it has no mean."""

    median: float
    scale = POSITIVE

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density, also where squares overflow."""
        x = np.asarray(x)
        inside = math.log(2 / math.pi / self.median) - 2 * np.log(np.hypot(1.0, x / self.median))
        return np.where(x < 0, -np.inf, inside)[()]

    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""
        return self.median * abs(rng.standard_cauchy())


@dataclass(frozen=True, repr=False)
class Gamma(Prior):
    """The gamma distribution with mean shape / rate; exponential for shape 1."""

    shape: float
    rate: float
    scale = POSITIVE
    pymc = "Gamma", "alpha", "beta"

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density."""
        return frozen.gamma(self.shape, scale=1 / self.rate).logpdf(x)

    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""
        return rng.gamma(self.shape, 1 / self.rate)


@dataclass(frozen=True, repr=False)
class InvGamma(Prior):
    """The inverse gamma distribution: 1 / number ~ Gamma(shape, rate=spread), with mode spread / (shape + 1)."""

    shape: float
    spread: float
    scale = POSITIVE
    pymc = "InverseGamma", "alpha", "beta"

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density."""
        return frozen.invgamma(self.shape, scale=self.spread).logpdf(x)

    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""
        return self.spread / rng.standard_gamma(self.shape)


@dataclass(frozen=True, repr=False)
class Pareto(Prior):
    """The Pareto distribution above ``low``: P(number > x) = (low / x)^shape."""

    shape: float
    low: float
    pymc = "Pareto", "alpha", "m"

    @property
    def scale(self) -> Scale:
        """The numbers above ``low``."""
        return Scale(float(self.low))

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density."""
        x = np.asarray(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = math.log(self.shape) + self.shape * math.log(self.low) - (self.shape + 1) * np.log(x)
        return np.where(x < self.low, -np.inf, inside)[()]

    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""
        return self.low * (1 + rng.pareto(self.shape))


@dataclass(frozen=True, repr=False)
class Beta(Prior):
    """The beta distribution between 0 and 1, as after a - 1 successes and b - 1 failures."""

    a: float
    b: float
    scale = UNIT
    pymc = "Beta", "alpha", "beta"

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density; near 1 it needs the distance from 1, ``complement``."""
        failures = 1 - np.asarray(x) if complement is None else complement
        powers = scipy.special.xlogy(self.a - 1, x) + scipy.special.xlogy(self.b - 1, failures)
        return powers - scipy.special.betaln(self.a, self.b)

    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""
        return rng.beta(self.a, self.b)


@dataclass(frozen=True, repr=False)
class Uniform(Prior):
    """The uniform distribution between ``low`` and ``high``."""

    low: float
    high: float
    pymc = "Uniform", "lower", "upper"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise InputError(f"{self}: low must be < high", "out_of_range")

    def _is_positive(self, field: str) -> bool:
        return False

    @property
    def scale(self) -> Scale:
        """The numbers between ``low`` and ``high``."""
        return Scale(float(self.low), float(self.high))

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density."""
        x = np.asarray(x)
        return np.where((x < self.low) | (x > self.high), -np.inf, -math.log(self.high - self.low))[()]

    def ppf(self, probability: object) -> Any:
        """Return the quantile of a probability."""
        return self.low + (self.high - self.low) * np.asarray(probability)

    def rvs(self, rng: np.random.Generator) -> float:
        """Draw the number."""
        return self.ppf(rng.uniform())


@dataclass(frozen=True, repr=False)
class LogUniform(Uniform):
    """Uniform in log(number - above) between ``low`` and ``high``."""

    above: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.above < self.low:
            raise InputError(f"{type(self).__name__}: low must be > {self.above:g}, got {self.low:g}", "out_of_range")

    @property
    def scale(self) -> Scale:
        """The numbers between ``low`` and ``high``, by their logarithms."""
        return Scale(float(self.low), float(self.high), logarithmic=True, above=float(self.above))

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return the log density."""
        x, (low, high) = np.asarray(x), self._logs
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = -np.log(x - self.above) - math.log(high - low)
        return np.where((x < self.low) | (x > self.high), -np.inf, inside)[()]

    def ppf(self, probability: object) -> Any:
        """Return the quantile of a probability."""
        low, high = self._logs
        return np.clip(self.above + np.exp(low + (high - low) * np.asarray(probability)), self.low, self.high)

    @property
    def _logs(self) -> tuple[float, float]:
        return math.log(self.low - self.above), math.log(self.high - self.above)


@dataclass(frozen=True, repr=False)
class Flat(Prior):
    """An improper prior, 1 everywhere above ``low``: the likelihood alone determines the number."""

    low: float = -math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", np.float64(self.low))

    @property
    def scale(self) -> Scale:
        """The numbers above ``low``."""
        return Scale(float(self.low))

    def logpdf(self, x: Any, complement: Any = None) -> Any:
        """Return 0 above ``low``."""
        return np.where(np.asarray(x) < self.low, -np.inf, 0.0)[()]

    def rvs(self, rng: np.random.Generator) -> float:
        """Refuse: an improper prior has no draws."""
        raise NoSimulator("a flat prior cannot be drawn from", "no_simulator")


PRIORS: Mapping[str, type[Prior]] = {
    kind.__name__: kind for kind in (Normal, HalfNormal, HalfCauchy, Gamma, InvGamma, Pareto, Beta, Uniform, LogUniform)
}


def prior_of(text: object) -> Prior:
    """Return a prior, or parse its text: ``HalfNormal(10)``, ``Gamma(shape=2, rate=0.1)``."""
    if isinstance(text, Prior):
        return text
    hint = f"write it like HalfNormal(10), with one of {', '.join(PRIORS)}"
    try:
        call = ast.parse(str(text).strip(), mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in PRIORS):
            raise InputError(f"{text} is not a prior", "unknown_name", hint=hint)
        values = [ast.literal_eval(argument) for argument in call.args]
        return PRIORS[call.func.id](
            *values, **{str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        )
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise InputError(f"{text} is not a prior", "unknown_name", hint=hint) from None


class Priors(Mapping[str, Prior]):
    """Priors by name, hashable; made from values or text."""

    def __init__(self, priors: Any = ()) -> None:
        try:
            by_name = dict(priors)
        except (TypeError, ValueError):
            raise InputError(f"priors must be a mapping of names to priors, got {priors!r}", "wrong_type") from None
        self._priors = {str(name): prior_of(prior) for name, prior in by_name.items()}

    def __getitem__(self, name: str) -> Prior:
        return self._priors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._priors)

    def __len__(self) -> int:
        return len(self._priors)

    def __hash__(self) -> int:
        return hash(tuple(self._priors.items()))

    def __repr__(self) -> str:
        """Write them in model notation: ``tau ~ HalfNormal(10)``."""
        return ", ".join(f"{name} ~ {prior}" for name, prior in self.items())

    def as_text(self) -> dict[str, str]:
        """Return them as text that `Priors` reads back."""
        return {name: str(prior) for name, prior in self.items()}
