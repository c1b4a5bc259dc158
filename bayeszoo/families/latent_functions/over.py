"""Latent functions of binary outcomes with amplitude, length or spread as parameters: full Bayes, by draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy

from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.discrete import LogitBinomial
from bayeszoo.distributions.priors import Prior
from bayeszoo.errors import InputError
from bayeszoo.families.latent_functions.about import MOST_ROWS, AboutFunction, WithCovariance
from bayeszoo.families.latent_functions.chain import FunctionChain
from bayeszoo.families.latent_functions.weights import log_weights
from bayeszoo.families.processes.root import Root, root_of
from bayeszoo.foundation.named import Arrays, Coords, Params
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import LogConcave
from bayeszoo.model.capabilities.steps import ConcaveLikelihood
from bayeszoo.model.fields import plain
from bayeszoo.model.outer.coordinates import OuterCoordinates
from bayeszoo.model.outer.over_draws import OverDrawn, Weigher, made_over


@dataclass(frozen=True)
class OverFunction(OverDrawn, AboutFunction, family=True):
    """A model of a latent function of binary outcomes with some fields as parameters; made by `bz.over`.

    Its parameters are these fields, and ``f`` (rows,), the log odds of the rows.

    Parameters
    ----------
    base : WithCovariance
        The model; its other fields stay. Chains begin about its values of the fields.
    priors : mapping of str to Prior
        The priors of the fields.
    """

    of: ClassVar[type[WithCovariance]]
    gibbs_options: ClassVar[Mapping[str, int]] = {"tune": 200, "thin": 1}

    def dims_of_others(self) -> Axes:
        """Return the axis of the function at the rows."""
        return {"f": ("place",)}

    def coords(self, data: Arrays) -> Coords:
        """Return the labels of the rows, and of the features."""
        return {**{name: data[name] for name in self.base.sizes(data)}, "place": self.base.names_of_rows(data)}

    def log_coefficient(self, data: Arrays) -> float:
        """Return the log of the number of orders of successes and failures, over all rows."""
        return float(self.base.log_coefficient(data))

    # Sampling

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> Chain:
        """Return a chain over the fields and the function."""
        if (n := self.inputs.size(data)) > MOST_ROWS:
            problem = f"{n:,} rows need matrices of {8e-6 * n * n:,.0f} MB and {n:,}^3 operations for each value"
            raise InputError(problem, "too_many_rows", hint=f"give a sample of at most {MOST_ROWS:,} rows")
        prior = FieldsPrior.of(self, data)
        counts = np.stack([self.inputs.outcome(data), self.sizes_of(data)])
        start = prior.coordinates.places({name: np.asarray(getattr(self.base, name)) for name in self.priors})
        return Chain(prior, start, counts, rng)

    def weigher(self, draws: Params, data: Arrays, rng: np.random.Generator) -> Weigher:
        """Return what draws log weights of fields about those of a fit, and functions about their modes."""
        prior = FieldsPrior.of(self, data)
        values = zip(*(draws[name] for name in self.priors), strict=True)
        places = [prior.coordinates.places(dict(zip(self.priors, point, strict=True))) for point in values]
        return partial(log_weights, prior.log_density, prior.rows_at, np.array(places), rng)

    # The function and the rows about it

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's binomial distribution; parameters with leading axes (...) give (..., rows)."""
        return LogitBinomial(self.sizes_of(data), np.asarray(params["f"]))

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the distribution of rows of the fit, which are independent given the function."""
        return LogitBinomial(self.sizes_of(seen)[places], np.asarray(params["f"])[..., places])

    def prior_variance(self, params: Params, new: Arrays) -> np.ndarray:
        """Return the variance of the function at new rows over all draws of the fields."""
        models = [model for model, _ in self._by_draw(params)]
        within = np.mean([model.prior_variance({}, new) for model in models], axis=0)
        return np.asarray(within + np.var([model.m0 for model in models]))

    def function_at(self, params: Params, seen: Arrays, new: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and sd (..., rows) of the function at new rows, given the function at the rows."""
        f = np.asarray(params["f"])
        if new is seen:
            return f, np.zeros_like(f)
        laws = [Elsewhere.of(*pair, seen, new) for pair in self._by_draw(params)]
        shape = (*f.shape[:-1], self.inputs.size(new))
        return np.reshape([law.mean for law in laws], shape), np.reshape([law.sd for law in laws], shape)

    def drawn_function(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw functions at all new rows, one for each draw."""
        drawn = []
        for model, f in self._by_draw(params):
            law = Elsewhere.of(model, f, seen, new)
            root = model.amplitude * root_of(model.covariance(new, new) - law.design @ law.design.T)
            drawn.append(law.mean + root @ rng.standard_normal(len(root)))
        return np.reshape(drawn, (*np.shape(params["f"])[:-1], self.inputs.size(new)))

    def _by_draw(self, params: Params) -> Iterator[tuple[WithCovariance, np.ndarray]]:
        """Yield the model with the fields of each draw, and the function at the rows."""
        shapes = {name: np.shape(getattr(self.base, name)) for name in self.priors}
        fields = {name: np.reshape(params[name], (-1, *shape)) for name, shape in shapes.items()}
        f = np.reshape(params["f"], (-1, np.shape(params["f"])[-1]))
        for i in range(len(f)):
            yield self.base.replaced(**{name: plain(values[i]) for name, values in fields.items()}), f[i]


class Elsewhere(NamedTuple):
    """The function at new rows, given the function at the rows: mean and sd (m,), and rows (m, r) of the factor."""

    mean: np.ndarray
    sd: np.ndarray
    design: np.ndarray

    @classmethod
    def of(cls, model: WithCovariance, f: np.ndarray, seen: Arrays, new: Arrays) -> Self:
        """Condition on the function f at the rows seen."""
        root = Root.by_size(model.covariance(seen, seen))
        design, left = root.elsewhere(
            model.covariance(model.inputs.reordered(seen, root.taken), new), model.variances(new)
        )
        deviation = f[root.taken] - model.m0
        z = scipy.linalg.solve_triangular(root.factor[root.taken], deviation, lower=True, check_finite=False)
        return cls(model.m0 + design @ z, model.amplitude * np.sqrt(left), design)


@dataclass(frozen=True, eq=False)
class FieldsPrior:
    """The prior of the function at the rows, by coordinates of the fields; it caches the latest values of a chain."""

    model: OverFunction
    data: Arrays
    coordinates: OuterCoordinates
    _last: dict[str, tuple[bytes, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: OverFunction, data: Arrays) -> Self:
        """Return the prior with coordinates on the scales of the fields' priors."""
        shapes = {name: np.shape(getattr(model.base, name)) for name in model.priors}
        pairs = [(name, model.priors[name].scale) for name, shape in shapes.items() for _ in range(math.prod(shape))]
        names, scales = zip(*pairs, strict=True)
        return cls(model, data, OuterCoordinates(shapes, names, scales, np.zeros(len(names)), np.ones(len(names))))

    def _once(self, name: str, x: np.ndarray, compute: Callable[[], Any]) -> Any:
        """Return the cached quantity ``name`` if it was last computed at the same x, else compute it."""
        if name not in self._last or self._last[name][0] != x.tobytes():
            self._last[name] = x.tobytes(), compute()
        return self._last[name][1]

    def _fields(self, x: np.ndarray) -> dict[str, np.ndarray]:
        fields: dict[str, np.ndarray] = self._once("fields", x, lambda: self.coordinates.outer(x))
        return fields

    def base_at(self, x: np.ndarray) -> WithCovariance:
        """Return the model with the fields at these coordinates."""
        values = {name: plain(np.asarray(value)) for name, value in self._fields(x).items()}
        return self.model.base.replaced(**values)

    def rows_at(self, x: np.ndarray) -> ConcaveLikelihood:
        """Return the likelihood of the function given the fields at these coordinates."""
        base = self.base_at(x)
        assert isinstance(base, LogConcave)
        return base.concave(self.data)

    def at(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return mean and covariance of the function."""
        base = self.base_at(x)
        return float(base.m0), base.amplitude**2 * base.covariance(self.data, self.data)

    def log_density(self, x: np.ndarray) -> float:
        """Return the log prior density of the coordinates."""
        fields, terms = self._fields(x), []
        for name, prior in self.model.priors.items():
            terms.append(self._once(f"density of {name}", fields[name], partial(_log_density, prior, fields[name])))
        return float(math.fsum(terms) + self.coordinates.log_slope(x))


def _log_density(prior: Prior, values: np.ndarray) -> float:
    return float(np.sum(prior.logpdf(values)))


class Chain(FunctionChain):
    """The chain whose draws are the fields, and the function at the rows."""

    def __init__(self, prior: FieldsPrior, start: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(prior, start, counts, rng)
        self._coordinates = prior.coordinates

    def draw(self) -> dict[str, np.ndarray]:
        """Return the fields and the function."""
        return {**self._coordinates.outer(self.x), "f": self.function}


@cache
def kind_over(of: type[WithCovariance]) -> type[OverDrawn]:
    """Return the class of models of a class with some fields as parameters."""
    return made_over(of, OverFunction)
