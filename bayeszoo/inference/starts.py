"""Where samplers and optimizers begin, in unconstrained coordinates.

The modes of a model with latent variables are far from any fixed initial point: where all components are alike, the
gradient between them is zero. EM with restarts finds the modes first. Chains begin at every mode with enough of the
posterior mass, so that several modes show as chains that disagree. Other models climb from draws of the prior.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_least
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.foundation.numerics.optimize import Gradient, maximize
from bayeszoo.inference.engine import cost
from bayeszoo.inference.engine.approximation import gaussian
from bayeszoo.inference.labels.symmetry import is_symmetric
from bayeszoo.inference.methods import em, vb
from bayeszoo.inference.problem import Problem
from bayeszoo.model.capabilities import EM, ClosedForm, Conditional, Variational, is_log_concave, simulates
from bayeszoo.model.fields import plain, text

MOST = 5  # maxima of EM at which chains may begin
SHARE = math.log(1000)
"""A mode with less than a thousandth of the mass of the largest, by its Laplace approximation, holds no chain."""
SAME = 1e-4  # nats between two distinct modes: a hundredth of a standard deviation apart
EDGE = 1e-6  # smallest probability at a start
SIMPLEXES = ("simplex", "simplexes")  # names of transforms of probabilities
VISITS = 2000  # draws that show whether a fit covers the known modes
LEAST_SHARE = 0.005  # share of the mass below which `VISITS` draws may miss a mode
MOST_COORDINATES = 1000  # most coordinates whose curvature is computed; with more, modes are compared by their heights
MOST_SAID = 12
"""Most entries of a parameter that a line of progress shows."""
SMOOTH = 1e-2  # largest slope at a mode, in nats per standard deviation
CLIMBS, MOST_CLIMBED = 8, 100
"""Climbs from draws of the prior, for a model without EM, and the most coordinates with which they are made."""


@dataclass(frozen=True, eq=False)
class Start:
    """A starting point, in unconstrained coordinates."""

    x: np.ndarray  # shape (D,)
    scale: np.ndarray | None = None  # lower triangular, (D, D): how far a chain may begin from x; None, within a unit
    log_mass: float = 0.0  # log of the posterior's mass about it, up to a constant
    spread: float = 1.0  # without a scale: how far a chain may begin from x in each coordinate

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Log density of the Laplace approximation at points (draws, D), up to a constant common to all starts."""
        scale = cast(np.ndarray, self.scale)
        z = scipy.linalg.solve_triangular(scale, (points - self.x).T, lower=True)
        return -np.sum(z * z, axis=0) / 2 - np.sum(np.log(np.diag(scale)))

    @property
    def height(self) -> float:
        """The value of `log_density` at x."""
        return -float(np.sum(np.log(np.diag(cast(np.ndarray, self.scale)))))

    def near(self, seed: int, joint: Gradient) -> np.ndarray:
        """Return a random point near x with a finite density; after a hundred trials, the last point tried."""
        rng = np.random.default_rng(seed)
        for _ in range(100):
            if self.scale is None:
                x = self.x + self.spread * rng.uniform(-1, 1, len(self.x))
            else:
                x = self.x + self.scale @ rng.standard_normal(len(self.x))
            if np.isfinite(joint(x)[0]):
                break
        return x


def visit_checks(problem: Problem, points: np.ndarray) -> list[Check]:
    """Check that points (draws, D) visit every known mode; with one mode, or exchangeable labels, there is no check."""
    modes = [] if is_symmetric(problem.model) else starts(problem)
    if len(modes) < 2 or any(start.scale is None for start in modes):
        return []
    return [at_least("mode_shares", visits(modes, points), 0.25)]


def visits(starts: list[Start], points: np.ndarray) -> float:
    """Return the smallest ratio, over the known modes, of a mode's share of points (draws, D) to its share of mass.

    Chains that begin at a mode may leave it while they warm up, and agree with each other ever after.
    """
    masses = np.exp([start.log_mass - starts[0].log_mass for start in starts])
    shares = masses / masses.sum()
    heights = np.array([start.log_density(points) for start in starts])
    nearest = np.argmax(heights + np.log(shares)[:, None], axis=0)
    return min(float(np.mean(nearest == i)) / share for i, share in enumerate(shares) if share >= LEAST_SHARE)


def starts(problem: Problem) -> list[Start]:
    """Return the starting points, the one with the largest mass first; the methods of a command share them."""

    def timed() -> list[Start]:
        with problem.clock.phase("compile"):
            return _searched(problem)

    return problem.once("starts", timed)


def announce(problem: Problem, chains: int, draws: int, in_turn: int) -> None:
    """Report how long a run may take if that is long, and as a first answer the largest mode that EM found.

    The limit is lower for a first answer: a run of a mixture may be repeated at four times the length.
    """
    seconds = cost.announce(problem, chains, draws, in_turn)
    if seconds > cost.LONG / 2 and (line := _first_answer(problem)):
        problem.reporter.say(f"a first answer, the largest mode known and not a posterior: {line}")


def _first_answer(problem: Problem) -> str:
    """Write the small parameters at the mode with the most mass; empty when no mode is known."""
    start = starts(problem)[0]
    if start.scale is None or not isinstance(problem.model, EM):
        return ""
    names = [variable.name for variable in problem.declared.free_RVs]
    values = {name: np.asarray(value) for name, value in problem.density.constrain(start.x).items() if name in names}
    small = {name: value for name, value in values.items() if value.ndim < 3 and value.size <= MOST_SAID}
    rounded = np.vectorize(lambda value: float(f"{value:.3g}"))
    return "; ".join(f"{name} {text(plain(rounded(value)))}" for name, value in small.items())


def _searched(problem: Problem) -> list[Start]:
    density = problem.density
    if is_log_concave(problem.model):  # with one mode, where its coordinates are centred
        return [Start(density.start)]
    if not isinstance(problem.model, EM) or isinstance(problem.model, Conditional):
        return _from_the_prior(problem)
    joint = density.joint  # compiled before the search, so that its errors come first
    points = [density.unconstrain(_off_the_edge(density, state)) for state in _modes(problem)]
    starts = [described(joint, x) for x in points]
    if any(start.scale is None for start in starts):  # only the height is known
        starts = [replace(start, log_mass=joint(start.x)[0]) for start in starts]
    starts = _distinct(sorted(starts, key=lambda start: -start.log_mass))
    return [start for start in starts if start.log_mass >= starts[0].log_mass - SHARE]


def _from_the_prior(problem: Problem) -> list[Start]:
    """Return the modes reached from draws of the prior if there are several, else the initial point alone."""
    density, modes = problem.density, []
    climbed = density.size <= MOST_CLIMBED and not isinstance(problem.model, ClosedForm)
    for i, params in enumerate(_prior_draws(problem) if climbed else ()):
        problem.reporter.progress("looking for modes, climbs", i, CLIMBS)
        with contextlib.suppress(NumericalError):
            modes.append(described(density.joint, density.unconstrain(params)))
    modes = _distinct(sorted((mode for mode in modes if _is_smooth(density.joint, mode)), key=lambda m: -m.log_mass))
    modes = [mode for mode in modes if mode.log_mass >= modes[0].log_mass + math.log(LEAST_SHARE)]
    return modes if len(modes) > 1 else [Start(density.start)]


def _is_smooth(joint: Gradient, mode: Start) -> bool:
    """Say whether the slope per sd is 0 at a mode: on a corner, as of Laplace priors, climbs end anywhere."""
    return mode.scale is not None and bool(np.max(np.abs(mode.scale.T @ joint(mode.x)[1])) < SMOOTH)


def _prior_draws(problem: Problem) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield draws of the parameters from the model's simulator, or from the declaration if its shapes differ."""
    import pymc as pm

    rng, density = problem.stream("prior"), problem.density
    shapes = {name: np.shape(value) for name, value in density.constrain(density.start).items()}
    free = problem.declared.free_RVs
    with contextlib.suppress(NotImplementedError, NumericalError):  # of an improper prior
        drawn = [problem.model.simulate(rng)[0] for _ in range(CLIMBS)] if simulates(type(problem.model)) else [{}]
        if any(v.name not in drawn[0] or np.shape(drawn[0][v.name]) != shapes[v.name] for v in free):
            seed = int(rng.integers(2**31 - 1))
            arrays = pm.draw(free, draws=CLIMBS, random_seed=seed, mode="FAST_COMPILE")  # nothing is compiled
            drawn = [dict(zip(map(str, free), values, strict=True)) for values in zip(*arrays, strict=True)]
        yield from drawn


def _distinct(starts: list[Start]) -> list[Start]:
    """Leave out points that another climb has reached as well, as from an edge without a mode inside."""
    kept: list[Start] = []
    for start in starts:
        if all(other.scale is None or other.log_density(start.x[None])[0] < other.height - SAME for other in kept):
            kept.append(start)
    return kept


def _modes(problem: Problem) -> list[Any]:
    """Return parameters at the distinct maxima of EM; if the density is unbounded, means at the optima of the ELBO."""
    model = problem.model_as(EM)
    if isinstance(model, Variational) and model.unbounded(problem.sample):
        search = vb.searched(problem)
        posteriors = (model.vb_posterior(climb.state) for climb in search.distinct[:MOST])
        return [{name: np.asarray(marginal.mean()) for name, marginal in q.items()} for q in posteriors]
    return [climb.state for climb in em.searched(problem).distinct[:MOST]]


def _off_the_edge(density: Any, state: Any) -> dict[str, np.ndarray]:
    """Replace probabilities and rates of 0, where a constrained mode may be, by small ones that have a logarithm."""
    transforms = {v.name: getattr(density.model.rvs_to_transforms[v], "name", "") for v in density.model.free_RVs}
    return {
        name: np.maximum(values, EDGE) if transforms.get(name) in SIMPLEXES else np.where(values == 0, EDGE, values)
        for name, values in state.items()
    }


def described(joint: Gradient, x: np.ndarray) -> Start:
    """Climb from x to a mode of the unconstrained density; return it with its Laplace approximation."""
    if len(x) > MOST_COORDINATES:
        return Start(x, None, joint(x)[0])
    try:
        q = gaussian(maximize(joint, x))
    except NumericalError:
        return Start(x, None, joint(x)[0])
    return Start(q.mean, q.scale, joint(q.mean)[0] + q.log_volume + len(x) / 2 * LOG_2_PI)
