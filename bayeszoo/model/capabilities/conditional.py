"""Models that are integrated exactly over a few parameters: conditionally closed-form, or log-concave."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Groups, places_of
from bayeszoo.data.inputs.groups.regressions import WithGroups
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.posterior import Posterior, sum_over
from bayeszoo.distributions.priors import Prior, Priors
from bayeszoo.distributions.scale import Scale
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities.steps import ConcaveLikelihood
from bayeszoo.model.views import View

if TYPE_CHECKING:
    import pymc as pm

in_pymc = lazy_loader.load("bayeszoo.model.declared_priors", suppress_warning=True)

MOST_OUTER = 3
"""Most outer parameters over which a `Conditional` model is integrated."""


class PointsOfGroups(NamedTuple):
    """Points of the parameters that each group has of its own, as an intercept, and their probabilities."""

    params: Params
    """All parameters at each of P points."""
    weights: np.ndarray
    """The probability of each point by group, (P, groups), and so on the grid of every other point."""
    halved: np.ndarray


@dataclass(frozen=True)
class Conditional(Model, family=True):
    """Given a few outer parameters all others, the inner ones, have a closed form and are integrated out.

    Methods work on the outer parameters alone; inner ones are drawn afterwards. Up to three outer parameters
    are integrated over by quadrature, which gives exact answers.

    Parameters
    ----------
    priors : mapping of str to Prior
        Priors of outer parameters that replace the textbook's: ``{"tau": HalfNormal(10)}``.
    """

    priors: Priors = field(default=Priors(), kw_only=True)

    outer: ClassVar[Mapping[str, Scale]]
    """The outer parameters, each one number, and the range of each."""

    quadrature: ClassVar[tuple[str, ...]] = ()
    """Outer parameters to integrate over by quadrature, where the other outer ones have a closed form given these:
    steps are then also called without the others, which count as inner ones. By default all."""

    most_integrated: ClassVar[float] = math.inf
    """Most rows for which outer parameters are integrated over, if the cost of a point grows with the rows."""

    @property
    def first_intervals(self) -> int:
        """Initial number of intervals for each outer parameter, doubled until fine enough; 0: the usual number."""
        return 0

    finer: ClassVar[int] = 1
    """Factor of the largest number of intervals for each outer parameter, for densities with ridges across the axes."""

    complements: ClassVar[Mapping[str, str]] = {}
    """For outer parameters with two bounds: the name under which steps and `derived` may also receive the
    distance to the upper bound, which is accurate where the parameter itself rounds to the bound."""

    def views(self) -> frozenset[View]:
        """Show the estimates of groups where each group has one parameter."""
        of_groups = [name for name, axes in self.dims.items() if axes == (GROUP,)]
        has_estimates = isinstance(self.inputs, Groups | WithGroups) and len(of_groups) == 1
        return super().views() | ({View.GROUPS} if has_estimates else set())

    @property
    @abstractmethod
    def textbook_priors(self) -> Mapping[str, Prior]:
        """The textbook's prior of each outer parameter, from the model's fields."""

    @property
    def outer_priors(self) -> dict[str, Prior]:
        """The prior of each outer parameter, in their order."""
        chosen = {**self.textbook_priors, **self.priors}
        return {name: chosen[name] for name in self.outer}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "priors", priors := Priors(self.priors))
        for name, prior in priors.items():
            if name not in self.outer:
                raise InputError(f"no outer parameter {name}: {self.name} has {', '.join(self.outer)}", "unknown_name")
            if not self.outer[name].holds(prior.scale):
                ends = f"between {self.outer[name].low:g} and {self.outer[name].high:g}"
                raise InputError(
                    f"{name} ~ {prior}: {name} must lie {ends}, and this prior allows other values", "out_of_range"
                )

    def outer_shapes(self, data: Arrays | None = None) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes of outer vectors, with lengths from the data; the prior holds for each entry.

        Vectors are sampled, and integrated over only if they have few entries.
        """
        return {}

    def few_outer(self) -> Self:
        """Return a version of the model with the fewest outer numbers, on which exact answers are checked."""
        return self

    @property
    def integrated_over(self) -> tuple[str, ...]:
        """The outer parameters that are integrated over by quadrature.

        Only those of ``quadrature`` while the other priors are of the textbook's kind, which have a closed form given
        these; else all.
        """
        textbook, replaced = self.textbook_priors, self.priors.keys() - {*self.quadrature}
        if self.quadrature and all(type(self.priors[name]) is type(textbook[name]) for name in replaced):
            return self.quadrature
        return tuple(self.outer)

    def drawn_outer(self, rng: np.random.Generator, data: Arrays | None = None) -> dict[str, Any]:
        """Draw the outer parameters from their prior; the data give the lengths of vectors."""
        drawn: dict[str, Any] = {}
        shapes = self.outer_shapes(data)
        for name, prior in self.outer_priors.items():
            shape = shapes.get(name, ())
            entries = [prior.rvs(rng) for _ in range(math.prod(shape))]
            drawn[name] = np.reshape(entries, shape) if shape else entries[0]
        return drawn

    def declared_outer(self, data: Arrays | None = None) -> dict[str, Any]:
        """Declare the outer parameters in the open PyMC model; the data give the lengths of vectors."""
        shapes = {
            name: {"shape": vector_shape, "dims": self.dims[name]}
            for name, vector_shape in self.outer_shapes(data).items()
        }
        return {
            name: in_pymc.declared(prior, name, **shapes.get(name, {})) for name, prior in self.outer_priors.items()
        }

    @abstractmethod
    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Return a rough location and width of each outer parameter's posterior; widths of positive ones in logs."""

    def log_outer_prior(self, outer: Params, data: Arrays | None = None) -> Any:
        """Return the log prior density of the outer parameters in ``outer``; leading axes are points.

        Some models need the data for the entries of vectors.
        """
        priors = {name: prior for name, prior in self.outer_priors.items() if name in outer}
        complements = {name: outer.get(self.complements.get(name, "")) for name in priors}
        log_densities = {name: prior.logpdf(outer[name], complements[name]) for name, prior in priors.items()}
        shapes = self.outer_shapes()
        return sum(sum_over(values, len(shapes.get(name, ()))) for name, values in log_densities.items())

    @abstractmethod
    def log_marginal(self, outer: Params, data: Arrays) -> Any:
        """Return the log density of the ordered data given the outer parameters alone; leading axes are points."""

    def marginal_slopes(self, outer: Params, data: Arrays) -> dict[str, float] | None:
        """Return the derivatives of `log_marginal` by the outer parameters at one point; None: use differences."""
        return None

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return the distribution of the inner parameters given the outer ones; by default there are none.

        Points of shape (...) give marginals of shape (..., *own shape). What has no density is no parameter, such as a
        tree or a function.
        """
        return Posterior({}, lambda size, rng: {}, lambda params: 0.0)

    @abstractmethod
    def marginalized(self, data: Arrays) -> pm.Model:
        """Declare the density of the ordered data with the inner parameters integrated out."""

    def predictive_given(self, outer: Params, data: Arrays, places: np.ndarray, rows: Arrays) -> RowLaw | None:
        """Return the law of new rows given the outer parameters and the groups' data, inner ones integrated out.

        ``places`` are the numbers of the rows' groups in ``data``; some groups may have no observations. Points of
        shape (P,) give (P, rows). None without a closed form: the inner parameters are then drawn.
        """
        return None

    def points_of_groups(self, params: Params, seen: Arrays, new: Arrays) -> PointsOfGroups | None:
        """Return points of the own parameters of the groups of new rows, at one value of the outer parameters.

        None where `law` integrates it out, or rows have nothing of their own.
        """
        return None

    @classmethod
    def has_law_given_outer(cls) -> bool:
        """Say whether new rows have a closed form given the outer parameters alone."""
        return cls.predictive_given is not Conditional.predictive_given or cls.law is not Conditional.law

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of new rows given the outer parameters; new groups have the population's law."""
        if isinstance(self.inputs, Groups):
            axis, groups = str(self.inputs.row_names), seen
            if len(unseen := new[axis][places_of(new[axis], seen[axis]) < 0]):
                empty = self.inputs.uninformed(unseen)
                groups = {name: np.concatenate([seen[name], values]) for name, values in empty.items()}
            law = self.predictive_given(self._outer_of(params), groups, places_of(new[axis], groups[axis]), new)
            if law is not None:
                return law
        return super().law(params, seen, new, rng)

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the distribution of each row given the outer parameters, as of a group without other rows.

        If some outer parameters are integrated out, rows depend on each other, and the model overrides this step.
        """
        if isinstance(self.inputs, Groups):
            rows = self.inputs.reordered(seen, places)
            groups = self.inputs.uninformed(rows[str(self.inputs.row_names)])
            law = self.predictive_given(self._outer_of(params), groups, np.arange(len(places)), rows)
            if law is not None:
                return law
        return super().held_out(params, seen, places)

    def own_parameters(self, params: Params, new: Arrays, rng: np.random.Generator | None) -> dict[str, np.ndarray]:
        """Draw the parameters of groups without observations."""
        if rng is None or not isinstance(self.inputs, Groups):
            return super().own_parameters(params, new, rng)
        groups = self.inputs.uninformed(new[str(self.inputs.row_names)])
        return self.posterior_given(self._outer_of(params), groups).rvs((), rng)

    def _outer_of(self, params: Params) -> dict[str, np.ndarray]:
        """Return the outer parameters among ``params``, and their complements where present."""
        names = {*self.outer, *self.complements.values()}
        return {name: values for name, values in params.items() if name in names}

    def shrinkage(self, outer: Params, data: Arrays) -> Any:
        """Return the weight of the population mean in each group's posterior mean given the outer parameters.

        The group's own estimate has the remaining weight. Points of shape (...) give (..., groups); None where
        the mean is not a weighted average.
        """
        return None


class LogConcave(Model, family=True):
    """The log joint density is concave, under a Gaussian prior: its mode is unique, and Newton's method finds it.

    One or two weights ``w`` are integrated over by quadrature, which gives exact answers. If the density is concave
    only given a positive parameter, that parameter is ``profiled``: MAP and MLE are the maximum of its profile, by
    Newton's method at each of its values.
    """

    integrated: ClassVar[bool] = True
    """Whether the parameters are weights ``w``, integrated over by quadrature if they are few."""
    profile_grid: ClassVar[np.ndarray] = np.logspace(-4, 8, 49)
    """Values of the profiled parameter between which the maximum is searched, ascending: beyond them the density is
    constant. If the first is 0, the parameter may be 0."""

    @property
    def profiled(self) -> Mapping[str, Prior]:
        """The positive parameter given which the log joint is concave in the others, and its prior; none by default."""
        return {}

    @abstractmethod
    def concave(self, data: Arrays, **profiled: float) -> ConcaveLikelihood:
        """Return the log likelihood in coordinates that are independent and N(0, 1) a priori."""

    def profile_runs_away(self, is_above: bool) -> str:
        """Say in one line why the profile has no maximum inside the grid: it rises to its upper or lower end."""
        return f"no mode: the density rises as {', '.join(self.profiled)} runs to {'infinity' if is_above else '0'}"
