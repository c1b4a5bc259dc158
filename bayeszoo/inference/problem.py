"""What a method is given (`Problem`) and what it hands back (`Outcome`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import Check
from bayeszoo.foundation.progress import Clock, Reporter
from bayeszoo.model.accumulated import Accumulated, like_of, rows_of, stats_of
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import CAPABILITIES, ClosedForm, Conditional, Sufficient, is_integrated
from bayeszoo.model.find import blaming_its_file
from bayeszoo.model.integration import Integrated, integrate
from bayeszoo.model.many_files.rows import FileRows

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.compile.density import Density
    from bayeszoo.distributions.posterior import Posterior


Streams = Callable[..., np.random.Generator]
"""Gives the random numbers of one purpose, of a model, its data and a seed: the same whenever it is asked."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, its data (or their statistics, when the rows were not kept) and a source of randomness.

    ``shared`` holds what does not depend on the method, as the compiled density and the modes that chains begin at:
    problems of the same model, data and seed may have one, and then each is computed once. Its random numbers are of
    ``streams``, so that a fit is the same alone and among others.
    """

    model: Model
    observed: Data | Accumulated
    rng: np.random.Generator  # all other randomness of the fit comes from here
    reporter: Reporter = field(default_factory=Reporter)
    streams: Streams | None = None
    shared: dict[Hashable, Any] = field(default_factory=dict)

    def once[T](self, name: Hashable, compute: Callable[[], T]) -> T:
        """Compute what all methods share, unless one has done so."""
        if name not in self.shared:
            self.shared[name] = compute()
        value: T = self.shared[name]
        return value

    def stream(self, *purpose: str | int) -> np.random.Generator:
        """Return the random numbers that all methods share."""
        return self.rng.spawn(1)[0] if self.streams is None else self.streams("shared", *purpose)

    @cached_property
    def clock(self) -> Clock:
        """The seconds that the fit takes, by phase."""
        return Clock(self.reporter)

    @property
    def data(self) -> Data:
        """The rows; an `InputError` says so when they were not kept."""
        return rows_of(self.observed)

    @property
    def has_rows(self) -> bool:
        """Whether the rows were kept."""
        return isinstance(self.observed, Data)

    @property
    def like(self) -> Data:
        """The data, or when their rows were not kept none of them: names, types and labels are the same."""
        return like_of(self.observed)

    @property
    def stats(self) -> Any:
        """Sufficient statistics of the data, or None when the model has none."""
        if not isinstance(model := self.model, Sufficient):
            return None
        return self.once("stats", lambda: stats_of(model, self.observed))

    @property
    def sample(self) -> Any:
        """What the steps of EM and variational Bayes are given: sufficient statistics if there are any, else rows."""
        if isinstance(self.model, Sufficient):
            return self.stats
        return self.observed if isinstance(self.observed, FileRows) else self.data

    @property
    def integrated(self) -> Integrated:
        """The posterior and evidence by quadrature; `NumericalError` where there are too many coordinates."""
        return self.once("integrated", self._integrate)

    def _integrate(self) -> Integrated:
        with self.clock.phase("run"):
            return integrate(self.model, self.data)

    @property
    def posterior(self) -> Posterior:
        """The exact posterior; `NumericalError` where it has none of these data."""
        if is_integrated(type(self.model)):
            return self.integrated.posterior
        return self.once("posterior", lambda: self.model_as(ClosedForm).posterior(self.stats))

    @property
    def declared(self) -> pm.Model:
        """The PyMC model that is sampled: on sufficient statistics where there are any, else on the rows."""
        return self.once("declared", self._declare)

    def _declare(self) -> pm.Model:
        with self.clock.phase("build"), blaming_its_file(type(self.model)):
            if isinstance(self.model, Sufficient):
                return self.model.compressed(self.stats)
            if isinstance(self.model, Conditional):
                return _of_ordered(self.model.marginalized(self.data), self.model.log_coefficient(self.data))
            if CAPABILITIES["Compiled"](type(self.model)):
                return self.model.compiled(self.data)
            return _of_ordered(self.model.declare(self.data), self.model.log_coefficient(self.data))

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
        """What the sampled density is computed from."""
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


def _of_ordered(declared: pm.Model, log_coefficient: float) -> pm.Model:
    """Return a declaration of counts as one of the ordered data, as which evidence and ELBO are those of exact fits."""
    import pymc as pm

    if log_coefficient:
        with declared:
            pm.Potential("orders", pm.math.constant(-np.float64(log_coefficient)))
    return declared


LOG_WEIGHT = "log_weight"
"""The log of joint density over density of the approximation that a draw is from, up to a constant, by draw."""


@dataclass(frozen=True)
class Outcome:
    """What a method found."""

    draws: Mapping[str, np.ndarray]  # shape (chain, draw, *parameter shape); a point estimate has one
    sampler: str  # the engine that did the work
    checks: list[Check]
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the fit as a whole: ``log_evidence``, ``k_hat``, ...
    sample_stats: Mapping[str, np.ndarray] = field(default_factory=dict)  # per draw, shape (chain, draw)
    optimization: Mapping[str, np.ndarray] = field(default_factory=dict)  # per iteration, shape (iteration,)
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False  # whether the run was stopped from outside
