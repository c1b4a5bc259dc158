"""Models that few numbers make simple: given them all others have a closed form, or are log-concave; or all are few."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bayeszoo.data.inputs import Groups
from bayeszoo.model.base import Model, Values
from bayeszoo.model.steps import ConcaveLikelihood

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.distributions.posterior import Posterior

MOST_OUTER = 3
"""Outer parameters up to which a `Conditional` model is integrated over them."""


class Conditional(Model, family=True):
    """Given a few outer parameters all others, the inner ones, have a closed form: they are integrated out.

    Every method works on the outer parameters alone, and the inner ones are then drawn. Up to three outer parameters
    are integrated over by quadrature, which gives exact answers.
    """

    outer: ClassVar[Mapping[str, tuple[float, float]]]
    """The outer parameters, each one number, and between which numbers each lies."""

    quadrature: ClassVar[tuple[str, ...]] = ()
    """The outer parameters that are integrated over by quadrature, where the others too have a closed form given these:
    the steps are then also called without the others, as inner ones. By default all."""

    complements: ClassVar[Mapping[str, str]] = {}
    """For outer parameters between two ends: the name under which the steps and `derived` may also be given the
    distance to the upper end, which is known where the parameter itself rounds to it."""

    @abstractmethod
    def outer_guess(self, data: Values) -> dict[str, tuple[float, float]]:
        """Return about where the posterior of each outer parameter is, and how wide: of positive ones in their logs."""

    @abstractmethod
    def log_outer_prior(self, outer: Values) -> Any:
        """Return the log prior density of the outer parameters; leading axes are points."""

    @abstractmethod
    def log_marginal(self, outer: Values, data: Values) -> Any:
        """Return the log density of the ordered data given the outer parameters alone; leading axes are points."""

    @abstractmethod
    def posterior_given(self, outer: Values, data: Values) -> Posterior:
        """Return the distribution of the inner parameters given the outer ones.

        Points of shape (...) give marginals of shape (..., *own shape).
        """

    @abstractmethod
    def marginalized(self, data: Values) -> pm.Model:
        """Declare the density of the ordered data with the inner parameters integrated out."""

    def predictive_given(self, outer: Values, data: Values, places: np.ndarray, rows: Values) -> Any:
        """Return the distribution of new rows given the outer parameters and groups; None where rows then depend.

        ``places`` are those of the rows' groups in ``data``, where nothing may have been observed of some. Points of
        shape (P,) give (P, rows).
        """
        return None

    def row_marginal(self, outer: Values, data: Values) -> Any:
        """Return the distribution of each row given the outer parameters alone; None where rows then depend.

        Leading axes are points. It is what a row that is left out is held to: a new one of a group without others.
        """
        if not isinstance(self.inputs, Groups):
            return None
        groups = data[self.inputs.row_names]
        return self.predictive_given(outer, self.inputs.uninformed(groups), np.arange(len(groups)), data)

    def shrinkage(self, outer: Values, data: Values) -> Any:
        """Return the weight of the population's mean in the mean of each group's parameter given the outer ones.

        The rest is that of the estimate by the group's own row. Points of shape (...) give (..., groups); None where
        the mean is no such average.
        """
        return None


class LogConcave(Model, family=True):
    """The log joint density is concave, under a Gaussian prior: its mode is the only one, and Newton's method finds it.

    Where there are one or two weights ``w`` they are integrated over by quadrature, which gives exact answers.
    """

    integrated: ClassVar[bool] = True
    """Whether its parameters are weights ``w``, and so few of some data that they are integrated over."""

    @abstractmethod
    def concave(self, data: Values) -> ConcaveLikelihood:
        """Return the log likelihood in coordinates that are independent and N(0, 1) a priori."""


class Profiled(Model, family=True):
    """Given one positive number the log joint density is concave in the other parameters, under a Gaussian prior.

    MAP and MLE are the highest point of the profile: Newton's method at each value of the number.
    """

    profiled: ClassVar[str]
    """The name of the positive parameter, one number."""
    profile_grid: ClassVar[np.ndarray]
    """Its values between which the maximum is looked for, ascending; beyond them nothing changes any more."""

    @abstractmethod
    def concave_given(self, value: float, data: Values) -> ConcaveLikelihood:
        """Return the log likelihood of the others, in coordinates that are independent and N(0, 1) a priori."""

    @abstractmethod
    def log_profiled_prior(self, value: float) -> float:
        """Return the log prior density of the number."""

    @abstractmethod
    def profile_runs_away(self, is_above: bool) -> str:
        """Say in one line what it means that the profile rises to the upper end of the grid, or to the lower one."""


def over(model: type[Conditional]) -> tuple[str, ...]:
    """Name the outer parameters that are integrated over by quadrature."""
    return model.quadrature or tuple(model.outer)
