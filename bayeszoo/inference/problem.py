"""The input of an inference method (`Problem`) and its result (`Outcome`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import Check
from bayeszoo.foundation.process.progress import Clock, Reporter
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import CAPABILITIES, ClosedForm, Conditional, Sufficient, is_integrated
from bayeszoo.model.find import blaming_its_file
from bayeszoo.model.many_files.rows import FileRows
from bayeszoo.model.outer.integration import Integrated, integrate
from bayeszoo.model.parts.accumulated import Accumulated, like_of, rows_of, stats_of

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.compile.density import Density
    from bayeszoo.distributions.posterior import Posterior


Streams = Callable[..., np.random.Generator]
"""Returns the random generator of one purpose: always the same for the same model, data and seed."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, its data (or their statistics, when the rows were not kept) and a source of randomness.

    ``shared`` caches results that do not depend on the method, such as the compiled density and the modes where chains
    begin. Problems of the same model, data and seed may share one cache; its random numbers come from ``streams``, so
    that a fit is the same alone and in a comparison.
    """

    model: Model
    observed: Data | Accumulated
    rng: np.random.Generator  # of all random numbers but those of ``streams``
    reporter: Reporter = field(default_factory=Reporter)
    streams: Streams | None = None
    shared: dict[Hashable, Any] = field(default_factory=dict)

    def once[T](self, name: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached result ``name``, and compute it the first time."""
        if name not in self.shared:
            self.shared[name] = compute()
        value: T = self.shared[name]
        return value

    def stream(self, *purpose: str | int) -> np.random.Generator:
        """Return the random generator of a result that all methods share."""
        return self.rng.spawn(1)[0] if self.streams is None else self.streams("shared", *purpose)

    @cached_property
    def clock(self) -> Clock:
        """The seconds that the fit takes, by phase."""
        return Clock(self.reporter)

    @property
    def data(self) -> Data:
        """The rows; raises `InputError` when they were not kept."""
        return rows_of(self.observed)

    @property
    def has_rows(self) -> bool:
        """Whether the rows were kept."""
        return isinstance(self.observed, Data)

    @property
    def like(self) -> Data:
        """The data; when the rows were not kept, an empty data set with the same names, types and labels."""
        return like_of(self.observed)

    @property
    def stats(self) -> Any:
        """Sufficient statistics of the data, or None when the model has none."""
        if not isinstance(model := self.model, Sufficient):
            return None
        return self.once("stats", lambda: stats_of(model, self.observed))

    @property
    def sample(self) -> Any:
        """The input of the steps of EM and variational Bayes: sufficient statistics if there are any, else rows."""
        if isinstance(self.model, Sufficient):
            return self.stats
        return self.observed if isinstance(self.observed, FileRows) else self.data

    @property
    def integrated(self) -> Integrated:
        """The posterior and evidence by quadrature; raises `NumericalError` when there are too many coordinates."""
        return self.once("integrated", self._integrate)

    def _integrate(self) -> Integrated:
        with self.clock.phase("run"):
            return integrate(self.model, self.data)

    @property
    def posterior(self) -> Posterior:
        """The exact posterior; raises `NumericalError` when these data have none."""
        if is_integrated(type(self.model)):
            return self.integrated.posterior
        return self.once("posterior", lambda: self.model_as(ClosedForm).posterior(self.stats))

    @property
    def declared(self) -> pm.Model:
        """The PyMC model to sample: of sufficient statistics if there are any, else of the rows."""
        return self.once("declared", self._declare)

    def _declare(self) -> pm.Model:
        with self.clock.phase("build"), blaming_its_file(type(self.model)):
            if isinstance(self.model, Sufficient):
                return self.model.compressed(self.stats)
            if isinstance(self.model, Conditional):
                return _of_ordered_data(self.model.marginalized(self.data), self.model.log_coefficient(self.data))
            if CAPABILITIES["Compiled"](type(self.model)):
                return self.model.compiled(self.data)
            return _of_ordered_data(self.model.declare(self.data), self.model.log_coefficient(self.data))

    @property
    def density(self) -> Density:
        """The compiled log density of ``declared``."""
        return self.once("density", self._compile)

    def _compile(self) -> Density:
        declared = self.declared
        with self.clock.phase("compile"):
            from bayeszoo.compile import cache
            from bayeszoo.compile.density import Density

            if warning := cache.warning():
                self.reporter.say(warning)
            return Density(declared, say=self.reporter.say)

    @property
    def declared_from(self) -> str:
        """The form of the data from which the sampled density is computed."""
        if isinstance(self.model, Sufficient):
            return "sufficient statistics"
        if isinstance(self.model, Conditional):
            return "rows, inner parameters integrated out"
        return "rows, compiled" if CAPABILITIES["Compiled"](type(self.model)) else "rows"

    def model_as[C: Model](self, capability: type[C]) -> C:
        """Return the model, which must have the capability that the method needs."""
        if not isinstance(self.model, capability):
            raise InputError(
                f"{self.model.name} is not {capability.__name__}", "no_capability", hint="see `bayeszoo list`"
            )
        return self.model

    def seed(self) -> int:
        """Draw a seed for a library that wants an integer."""
        return int(self.rng.integers(2**31 - 1))


def _of_ordered_data(declared: pm.Model, log_coefficient: float) -> pm.Model:
    """Turn the density of counts into that of the ordered data, so that evidence and ELBO agree with exact fits."""
    import pymc as pm

    if log_coefficient:
        with declared:
            pm.Potential("orders", pm.math.constant(-np.float64(log_coefficient)))
    return declared


LOG_WEIGHT = "log_weight"
"""Log of the joint density divided by the approximation's density at each draw, up to a constant."""


@dataclass(frozen=True)
class Outcome:
    """The result of a method."""

    draws: Mapping[str, np.ndarray]  # shape (chain, draw, *parameter shape); a point estimate has one
    sampler: str  # the engine that did the work
    checks: list[Check]
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the fit as a whole: ``log_evidence``, ``k_hat``, ...
    sample_stats: Mapping[str, np.ndarray] = field(default_factory=dict)  # per draw, shape (chain, draw)
    optimization: Mapping[str, np.ndarray] = field(default_factory=dict)  # per iteration, shape (iteration,)
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False  # whether the run was stopped from outside

    @property
    def length(self) -> int:
        """The number of draws of each chain."""
        return int(next(iter(self.draws.values())).shape[1])
