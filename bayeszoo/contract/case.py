"""A model and a data set on which its identities are checked, with the quantities that several of them share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from pytensor.graph import ancestors

from bayeszoo.compile.density import Density
from bayeszoo.data.read import Data, example, read
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.inference.methods import em, vb
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import (
    EM,
    ClosedForm,
    Conditional,
    PointMasses,
    Sufficient,
    Variational,
    exchangeable_axis,
    is_exact,
    is_integrated,
    is_log_concave,
    rows_have_parameters,
)
from bayeszoo.model.capabilities.sequential import LevelsInTime
from bayeszoo.model.density import prior
from bayeszoo.model.fields import moved
from bayeszoo.model.outer.integration import exact_evidence, integrate

MOST_COST = 5_000  # cost of a step above which the identities are checked on an excerpt of the data
POINTS = 25  # number of points from the prior, and from the posterior, at which densities are compared


class WithDiscrete(Density):
    """The density of a model with discrete variables too, which has no gradient."""

    def _refuse(self, discrete: list[str]) -> None:
        pass


@dataclass(frozen=True)
class Case:
    """A model and a data set on which its identities are checked."""

    model: Any
    data: Data
    seed: int = 0

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator: every check draws the same points, whichever checks ran before."""
        return np.random.default_rng(self.seed)

    @cached_property
    def stats(self) -> Any:
        """Sufficient statistics."""
        return self.model.statistics(self.data)

    @cached_property
    def posterior(self) -> Any:
        """The exact posterior, in closed form or by quadrature."""
        if is_integrated(type(self.model)):
            return integrate(self.model, self.data).posterior
        return self.model.posterior(self.stats)

    @cached_property
    def prior(self) -> Any:
        """The posterior of no data."""
        return prior(self.model, self.data)

    @cached_property
    def declared(self) -> Density:
        """The textbook declaration, by PyTensor's own code: it is not sampled, and needs no compilation by numba."""
        return self._density(self.model.declare(self.data), "FAST_COMPILE")

    @cached_property
    def climbed(self) -> Density:
        """The density that EM climbs: the declaration, with any inner parameters integrated out."""
        if not isinstance(self.model, Conditional):
            return self.declared
        return self._density(self.model.marginalized(self.data), "FAST_COMPILE")

    def _density(self, declared: object, mode: str) -> Density:
        return (WithDiscrete if isinstance(self.model, PointMasses) else Density)(declared, mode=mode)

    @cached_property
    def compressed(self) -> Density:
        """The declaration on sufficient statistics; compiled as for sampling if it has operations of this package."""
        model = self.model.compressed(self.stats)
        operations = (v.owner.op for v in ancestors([model.logp()]) if v.owner)
        is_own = (type(op).__module__.startswith("bayeszoo.") for op in operations)
        return self._density(model, "NUMBA" if any(is_own) else "FAST_COMPILE")

    @cached_property
    def compiled(self) -> Density:
        """The declaration with the compiled likelihood, as it is sampled."""
        return Density(self.model.compiled(self.data))

    @cached_property
    def latent_points(self) -> list[dict[str, Any]]:
        """Parameter values of a model with latent variables, from the prior and from or near the posterior."""
        rng = np.random.default_rng(self.seed)
        if is_log_concave(self.model):
            return self._about_the_one_mode(rng)
        rows = self.size if rows_have_parameters(self.model) or isinstance(self.model, LevelsInTime) else 1
        prior = [self.model.simulate(rng, rows)[0] for _ in range(POINTS)] if self._suits_its_simulator else []
        if not isinstance(self.model, EM) or isinstance(self.model, Conditional):
            return [*prior, *self._about_the_start(rng)]
        if not isinstance(self.model, Variational):
            return [*prior, *self._near_the_mode_of_em(rng)]
        q = vb.climbs(self.model, self.data, rng, restarts=2).best.state
        draws = self.model.vb_posterior(q).rvs(POINTS, rng)
        return [*prior, *({name: values[i] for name, values in draws.items()} for i in range(POINTS))]

    def _about_the_one_mode(self, rng: np.random.Generator) -> list[dict[str, Any]]:
        """Return points of the prior, and of the Gaussian at the mode of a log-concave density, with its curvature."""
        rows = self.model.concave(self.data)
        mode = rows.highest()
        root = np.linalg.cholesky(np.linalg.inv(mode.there.curvature))
        noise = rng.standard_normal((2, POINTS, rows.size))
        return [rows.params(u) for u in (*noise[0], *(mode.x + noise[1] @ root.T))]

    def _about_the_start(self, rng: np.random.Generator) -> list[dict[str, Any]]:
        """Return points around PyMC's start, with standard normal noise added to each unconstrained number."""
        density = self.declared
        values = density.constrain(density.start + rng.standard_normal((POINTS, density.size)))
        names = [variable.name for variable in density.model.free_RVs]
        return [{name: values[name][i] for name in names} for i in range(POINTS)]

    def _near_the_mode_of_em(self, rng: np.random.Generator) -> list[dict[str, Any]]:
        """Return points around EM's mode of the posterior, with about 10% noise in each number."""
        mode = em.climbs(self.model, self.sample, rng, False, restarts=2).best.state
        return [
            {name: np.asarray(x * np.exp(0.1 * rng.standard_normal(np.shape(x)))) for name, x in mode.items()}
            for _ in range(POINTS)
        ]

    @property
    def sample(self) -> Any:
        """The input of the steps of EM: sufficient statistics if the model has them, else the data."""
        return self.stats if isinstance(self.model, Sufficient) else self.data

    @property
    def _suits_its_simulator(self) -> bool:
        """Whether parameters can be drawn from the prior, with the shapes that the data need."""
        try:
            simulated, inputs = self.model.simulate(np.random.default_rng(0), 1)[1], self.model.inputs
        except (NumericalError, NotImplementedError):
            return False
        labels = [name for name in inputs.coords if name != inputs.row_names]
        return all(len(simulated[axis]) == len(self.data[axis]) for axis in labels)

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """Parameter values, half from the prior, half from the posterior or, where it is not known, near the mode."""
        if not isinstance(self.model, ClosedForm):
            return self.latent_points
        draws = [self.prior.rvs(POINTS, self.rng)]
        draws.append(self.posterior.rvs(POINTS, self.rng) if self.is_closed else self._near_mode())
        return [{name: values[i] for name, values in half.items()} for half in draws for i in range(POINTS)]

    @property
    def draws(self) -> dict[str, np.ndarray]:
        """Six points with the leading axes of draws, (2, 3)."""
        if self.is_closed:
            return cast(dict[str, np.ndarray], self.posterior.rvs((2, 3), self.rng))
        points = self.latent_points[-6:]
        shapes = {name: (2, 3, *np.shape(value)) for name, value in points[0].items()}
        return {name: np.reshape([point[name] for point in points], shape) for name, shape in shapes.items()}

    @cached_property
    def is_closed(self) -> bool:
        """Whether the posterior of these data is known exactly."""
        try:
            return is_exact(type(self.model)) and self.posterior is not None
        except NumericalError:
            return False

    def _near_mode(self) -> dict[str, np.ndarray]:
        """Return points 1/100 of the way from the mode to draws from the prior; without a mode, these draws."""
        draws = self.prior.rvs(POINTS, np.random.default_rng(self.seed + 1))
        try:
            mode = self.model.map(self.stats)
        except NumericalError:
            return cast(dict[str, np.ndarray], draws)
        return {name: mode[name] + 0.01 * (values - mode[name]) for name, values in draws.items()}

    @cached_property
    def _augmented(self) -> list[tuple[dict[str, Any], float]]:
        """The points with all variables of the declaration, and the log density of those drawn in addition."""
        if not isinstance(self.model, PointMasses):
            return [(point, 0.0) for point in self.points]
        rng = self.rng
        return [self.model.augmented(point, self.data, rng) for point in self.points]

    @cached_property
    def flat_points(self) -> list[np.ndarray]:
        """The same points, unconstrained."""
        return [self.declared.unconstrain(point) for point, _ in self._augmented]

    @property
    def left_open(self) -> np.ndarray:
        """Log density at each point of the declaration's variables that are no parameters."""
        return np.array([density for _, density in self._augmented])

    @cached_property
    def log_joint(self) -> np.ndarray:
        """PyMC's log joint density (no Jacobian) of the ordered data at each point."""
        values = np.array([self.declared.heights(x).constrained for x in self.flat_points])
        return values - self.log_coefficient - self.left_open

    @cached_property
    def log_climbed(self) -> np.ndarray:
        """PyMC's log joint density at each point, with any inner parameters integrated out."""
        if not isinstance(self.model, Conditional):
            return self.log_joint
        points = [{name: point[name] for name in self.model.outer} for point in self.points]
        values = [self.climbed.heights(self.climbed.unconstrain(point)).constrained for point in points]
        return np.array(values) - self.log_coefficient

    @property
    def log_coefficient(self) -> float:
        """The log of the number of ordered data sets that have the same counts as the data."""
        stats = self.stats if isinstance(self.model, Sufficient) else None
        return float(self.model.log_coefficient(self.data) if stats is None else stats.log_coefficient)

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.model.inputs.size(self.data))

    @cached_property
    def log_evidence(self) -> float:
        """The model's own log evidence."""
        return exact_evidence(self.model, self.data)


def case_of(model: Model | type[Model], data: object = None, seed: int = 0) -> Case:
    """Pair a model with data to check its identities on; of a class, an instance with fields off their defaults."""
    if data is None:
        instance = off_default(model) if isinstance(model, type) else model
        return Case(instance, read(instance, instance.simulate(np.random.default_rng(seed), 20)[1]), seed)
    data, kind = read(model, data), model() if isinstance(model, type) else model
    if kind.cost(data) > MOST_COST:  # the checks of gradients differentiate along each unconstrained number
        data = replace(read(model, kind.excerpt(data)), source=data.source)
    return Case(off_default(model, data) if isinstance(model, type) else model.labelled(data), data, seed)


def cases_of(model: Model | type[Model], data: object = None, seed: int = 0) -> list[Case]:
    """Return every case to check the identities on; the first has simulated data, if the prior can be drawn from."""
    if data is not None:
        return [case_of(model, data, seed)]
    try:
        simulated = case_of(model, None, seed)
    except (NumericalError, NotImplementedError) as error:  # as of flat priors
        if not model.examples:
            problem = f"{model.name} simulates no data to be checked on: {error}"
            raise InputError(
                problem, "bad_case", hint="give yours: bayeszoo check MODEL DATA, bz.check(model, data)"
            ) from error
        return [case_of(model, data, seed) for data in examples_of(model)]
    forms = simulated.model.inputs.other_forms(simulated.data)
    cases = [simulated, *(case_of(simulated.model, form, seed) for form in forms)]
    if isinstance(model, type) and (by_label := off_default(model, by_label=True)) != simulated.model:
        cases.append(case_of(by_label, None, seed))
    if isinstance(simulated.model, Conditional) and (few_outer := simulated.model.few_outer()) != simulated.model:
        cases.append(case_of(few_outer, None, seed))
    return [*cases, *(case_of(model, data, seed) for data in examples_of(model) if suits(model, data))]


def with_few_outer(case: Case) -> Case:
    """Return the case or, where only a version with fewer outer numbers has an exact answer, that of the version."""
    is_known = case.is_closed or not isinstance(case.model, Conditional)
    return case if is_known else Case(case.model.few_outer(), case.data, case.seed)


def examples_of(model: Model | type[Model]) -> list[Data]:
    """Return the examples of a model's class; their labels may differ from those of an updated model."""
    kind = model if isinstance(model, type) else type(model)
    return [example(kind, item.name) for item in model.examples]


def suits(model: Model | type[Model], data: Data) -> bool:
    """Say whether the data have the labels of an instance's hyperparameters; always true of a class."""
    if isinstance(model, type):
        return True
    try:
        rows = read(model, data)
        return not isinstance(model, Sufficient) or model.statistics(rows) is not None
    except InputError:
        return False


def off_default(model: type[Model], data: Data | None = None, by_label: bool = False) -> Model:
    """Make a model whose fields all differ from their defaults (the weak ones, given ``data``) and from each other.

    Exchangeable labels stay exchangeable, unless ``by_label`` gives each a different entry.
    """
    base = model() if data is None else model.weak(data)
    arrays = base.simulate(np.random.default_rng(0), 1)[1] if data is None else data
    alike = None if by_label else exchangeable_axis(base)
    off = moved(base, {axis: size for axis, size in base.sizes(arrays).items() if axis != alike})
    return off if data is None else off.labelled(data)  # it can then simulate data of these shapes


def closed_case(model: Model | type[Model], seed: int) -> Case:
    """Return the case of the first example with a known exact answer, else the case of simulated data."""
    cases = (with_few_outer(case_of(model, data)) for data in examples_of(model) if suits(model, data))
    return next((case for case in cases if case.is_closed), case_of(model, None, seed))


def real_data(model: Model | type[Model]) -> Data | None:
    """Return the first example of a model, unless it does not suit the model's fields."""
    return next((data for data in examples_of(model)[:1] if suits(model, data)), None)
