"""MacKay's fixed point for the prior and the noise of ridge regression, from effective numbers of parameters.

At a stationary point of the evidence,

    tau**2    =  |m|**2 / gamma                      m: the weights other than the intercept
    sigma**2  =  |y - X m|**2 / (n - gamma_total)

with gamma the effective number of weights with prior sd tau, and gamma_total that of all weights: the intercept has a
different prior, and counts only in gamma_total. Both sides depend on tau and sigma; MacKay's iteration takes the right
sides as the next values, repeatedly. MacKay 1992, section 4; Bishop, PRML, equations 3.91 to 3.95, where all weights
have the prior sd tau.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError
from bayeszoo.families.linear.least_squares import MAX_ROUNDING, Solution
from bayeszoo.families.linear.model import LinearModel
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.model.base import Model
from bayeszoo.model.fields import hyperparameters, text

if TYPE_CHECKING:

    class _Ridge(LinearModel):
        """A model to which the iteration `applies`."""

        tau: float
        sigma: float

        def standardized_weights(self, stats: FactoredMoments) -> Solution: ...


FIELDS = ("tau", "sigma")
"""The fields that the iteration can change."""
CLOSE = 1e-10
"""Largest distance from the fixed point at convergence, in the logarithm of a field."""
MAX_ITERATIONS = 10_000
NO_SIGNAL = 1e-6
"""Effective parameters below which weights do not differ from 0: the evidence is this many nats from its limit."""
NO_NOISE = 1e-20
"""Share of the outcome's sum of squares below which errors are rounding."""


@dataclass(frozen=True, repr=False, eq=False)
class FixedPoint:
    """The end of MacKay's iteration.

    Attributes
    ----------
    model, over : Model, tuple of str
        The model with the final values of the iterated fields, a fixed point only if ``converged``; and these fields.
    iterations : int
        Number of steps taken.
    gamma, effective_parameters : float
        Effective number of the weights with prior sd tau, without the intercept; and of all, the trace of the hat
        matrix.
    converged, reason : bool, str
        Whether the fields are within `CLOSE` of a fixed point, judged by the rate of convergence; else why not.
    """

    model: Model
    over: tuple[str, ...]
    iterations: int
    gamma: float
    effective_parameters: float
    converged: bool
    reason: str

    def __repr__(self) -> str:
        """Describe the end of the iteration."""
        fields = ", ".join(f"{name} {text(getattr(self.model, name))}" for name in self.over)
        state = "converged" if self.converged else self.reason
        return f"{self.model.name}: {fields}; gamma {self.gamma:.6g}; {self.iterations} iterations, {state}"


def mackay(model: Model, data: object = None, over: str | Sequence[str] = FIELDS) -> FixedPoint:
    """Iterate tau and sigma of ridge regression, or one of them, to a stationary point of the evidence.

    It converges linearly, more slowly if the data are less informative, and does not search for the highest of several
    stationary points; `bayeszoo.empirical_bayes` does.

    Parameters
    ----------
    model : Ridge
        Its fields are the start of the iteration.
    data : Data or anything that `read` takes, optional
        The model's first example by default.
    over : str or sequence of str
        ``"tau"``, ``"sigma"`` or both; the other field stays.

    Returns
    -------
    FixedPoint
        With the reason if there is no fixed point: tau falls to 0 without a signal, sigma if the data are fitted
        exactly.

    Raises
    ------
    InputError
        When the model is not ridge regression, a field is neither tau nor sigma, or the data do not suit the model.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> fitted = bz.mackay(bz.find("ridge")(sigma=50, tau=10, s0=1000, scale=0.05))
    >>> fitted.converged
    True
    """
    names = (over,) if isinstance(over, str) else tuple(over)
    if not applies(model):
        raise InputError(
            f"MacKay's iteration is for ridge regression with one tau, not for {model}", "mackay_unavailable"
        )
    if not names or len(set(names)) < len(names) or not set(names) <= set(FIELDS):
        named = ", ".join(map(str, names)) or "nothing"
        raise InputError(f"MacKay's iteration is over tau, sigma or both, got {named}", "mackay_unavailable")
    with one_thread():
        return _iterated(model, read(model, data), names)


def applies(model: Model) -> TypeGuard[_Ridge]:
    """Say whether the iteration applies to a model: ridge regression, or a variant of it."""
    if not isinstance(model, LinearModel) or type(model).standardized_weights is LinearModel.standardized_weights:
        return False
    return set(FIELDS) <= hyperparameters(model).keys() and all(not np.ndim(getattr(model, f)) for f in FIELDS)


def _iterated(model: _Ridge, data: Data, over: tuple[str, ...]) -> FixedPoint:
    stats = model.statistics(data)
    weights, trace = model.standardized_weights(stats), [[float(getattr(model, name)) for name in over]]
    while not _is_close(trace) and len(trace) <= MAX_ITERATIONS and weights.rounding <= MAX_ROUNDING:
        squares = _next_squares(model, weights, stats.n)
        if not all(squares[name] > 0 for name in over):
            break
        model = model.replaced(**{name: math.sqrt(squares[name]) for name in over})
        weights = model.standardized_weights(stats)
        trace.append([float(getattr(model, name)) for name in over])
    gamma, total = weights.determined(int(model.intercept)), weights.effective_parameters
    reason = "" if len(trace) > MAX_ITERATIONS else _without_fixed_point(model, weights, stats, over)
    if not reason and not _is_close(trace):
        reason = f"not converged after {len(trace) - 1} iterations"
    return FixedPoint(model, over, len(trace) - 1, gamma, total, not reason, reason)


def _next_squares(model: _Ridge, weights: Solution, n: float) -> dict[str, float]:
    """Return the next squares of tau and sigma; NaN if the effective number of parameters leaves them undefined."""
    gamma, free = weights.determined(int(model.intercept)), n - weights.effective_parameters
    squares = float(np.sum(np.square(weights.mean[int(model.intercept) :])))
    return {
        "tau": squares / gamma if gamma > 0 else math.nan,
        "sigma": weights.squared_error * float(model.sigma) ** 2 / free if free > 0 else math.nan,
    }


def _without_fixed_point(model: _Ridge, weights: Solution, stats: FactoredMoments, over: tuple[str, ...]) -> str:
    """Return the reason why the end of the iteration is no fixed point; empty if it may be one."""
    if not weights.rounding <= MAX_ROUNDING:
        return f"at tau = {model.tau:g}, sigma = {model.sigma:g} rounding hides the evidence"
    if "tau" in over and len(weights.mean) == int(model.intercept):
        return "no fixed point: the evidence does not depend on tau"
    if "tau" in over and not weights.determined(int(model.intercept)) >= NO_SIGNAL:
        return "no fixed point: tau -> 0, the data do not tell the weights from 0"
    outcome = float(np.sum(np.square(stats.root[:, -1])))  # squares about the mean, or about 0 without an intercept
    outcome += 0.0 if model.intercept else stats.n * float(stats.mean[-1]) ** 2
    if "sigma" in over and weights.squared_error * float(model.sigma) ** 2 <= NO_NOISE * outcome:
        return "no fixed point: sigma -> 0, the outcome is fitted exactly"
    return ""


def _is_close(trace: list[list[float]]) -> bool:
    """Say whether the remaining steps sum to less than `CLOSE`, if they shrink at the present rate."""
    if len(trace) < 3:
        return False
    before, latest = np.max(np.abs(np.diff(np.log(trace[-3:]), axis=0)), axis=1)
    return bool(latest == 0 or (latest < before and latest**2 / (before - latest) < CLOSE))
