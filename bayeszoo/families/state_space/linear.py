"""Steps of linear Gaussian series with known matrices, and standard deviations that are known or not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.scale import POSITIVE, Scale
from bayeszoo.errors import InputError
from bayeszoo.families.state_space.components import Components
from bayeszoo.families.state_space.matrices import Matrices, covariance_table, places, table
from bayeszoo.families.state_space.model import spread
from bayeszoo.families.state_space.parts import SeriesOfParts
from bayeszoo.foundation.named import Arrays, Params, Statistics
from bayeszoo.model.fields import known, plain
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.state_space.declaration", suppress_warning=True)

GUESSES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
"""Standard deviations of the grid of guesses, in units of the spread of the steps of rows."""
UNSTABLE = 1 + 1e-4
"""Size of an eigenvalue of A from which the state is said to grow."""


@dataclass(frozen=True)
class LinearGaussianModel(SeriesOfParts, family=True):
    """A state that is moved by a known matrix, and rows that are known sums over its entries.

    Parameters
    ----------
    A : list of lists of float
        Transition matrix of the state, d rows of d numbers.
    C : list of float
        Coefficients of the state in the mean of a row, d numbers.
    Q : list of lists of float
        Covariance matrix of a step of the state in units of q^2, d rows of d numbers; it may be singular.
    q, r : float, optional
        Standard deviations of the steps in units of ``Q``, and of rows about their mean, >= 0. Known ones are no
        parameters; if both are known, `decode` and `forecast` take the model without a fit.
    """

    A: Any = ((1.0, 1.0), (0.0, 1.0))
    C: Any = (1.0, 0.0)
    Q: Any = ((1 / 3, 1 / 2), (1 / 2, 1.0))
    q: float | None = known(units=1)
    r: float | None = known(units=1)

    outer: ClassVar[Mapping[str, Scale]] = {"q": POSITIVE, "r": POSITIVE}
    nonnegative = ("q", "r")
    most_integrated: ClassVar[float] = 1000

    def __post_init__(self) -> None:
        A = table(self.A, "A", (-1, -1))
        if A.shape[0] != A.shape[1]:
            raise InputError(f"A is {A.shape[0]} x {A.shape[1]}, not square", "wrong_shape")
        tables = {"A": A, "C": table(self.C, "C", A.shape[:1]), "Q": covariance_table(self.Q, "Q", len(A))}
        for name, numbers in tables.items():
            object.__setattr__(self, name, plain(numbers))
        for name in ("q", "r"):
            if (value := getattr(self, name)) is not None and table(value, name, ()) < 0:
                raise InputError(f"{name} must be >= 0, got {value:g}", "out_of_range")
        unknown = [name for name in ("q", "r") if getattr(self, name) is None]
        object.__setattr__(self, "outer", {name: POSITIVE for name in unknown})
        super().__post_init__()

    @property
    def has_origin(self) -> bool:
        """Whether the fields follow the zero of the rows: it is that of the state."""
        return False

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes of fields."""
        return {**super().sizes(data), "state": len(self.C), "state_2": len(self.C)}

    @property
    def known_sds(self) -> dict[str, np.ndarray]:
        """The standard deviations that are known."""
        return {name: np.asarray(getattr(self, name)) for name in ("q", "r") if getattr(self, name) is not None}

    def known_parameters(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return both standard deviations; raise `InputError` unless they are known."""
        if self.outer:
            hint = f"fit it first, or give {' and '.join(self.outer)}"
            raise InputError(f"{', '.join(self.outer)}: unknown in {self.name}", "unknown_field", hint=hint)
        return self.known_sds

    def require_spread(self, data: Arrays) -> None:
        """Refuse a model without parameters, steps without noise whose sd is unknown, and rows without noise."""
        if not self.outer:
            hint = "`bayeszoo decode` and `forecast` take the model itself"
            raise InputError("q and r are known: there is no parameter to be fitted", "nothing_to_fit", hint=hint)
        matrices = self.structure(data)
        if "q" in self.outer and not matrices.noises:
            raise InputError("Q is 0, so that no row depends on q", "nothing_to_fit", hint="give q=1, or another Q")
        of_first = matrices.responses(int(places(data["sequence"]).max()) + 1)
        if not any(value > 0 for value in self.known_sds.values()) and np.isfinite(of_first).all():
            scaled = of_first / np.where(of_first.any(axis=0), np.max(np.abs(of_first), axis=0), 1.0)
            self.require_residuals(without_features(data), lambda place: scaled[place])

    def guesses(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return shares of the spread of the steps of rows, for q per unit that a step moves rows."""
        units = {"q": self.structure(data).reach(), "r": 1.0}
        return {name: np.array(GUESSES) * spread(data) / units[name] for name in self.outer}

    # Steps

    def structure(self, data: Arrays) -> Matrices:
        """Return the matrices, and the prior of the first state."""
        mean, covariance = self.first_state
        return Matrices(np.array(self.A), np.array(self.C), np.array(self.Q), mean, covariance)

    @property
    @abstractmethod
    def first_state(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean and covariance matrix of the first state of a sequence."""

    def levels(self, params: Params, data: Arrays) -> Components:
        """Return the rows and their states at standard deviations."""
        return Components.of({**self.known_sds, **params}, without_features(data), 0.0, self.structure(data))

    def rows_about(self, params: Params, means: RowLaw) -> RowLaw:
        """Return the normal distribution of rows given that of their means, with r^2 added to the variances."""
        return super().rows_about({**self.known_sds, **params}, means)

    def parts_ahead(self, params: Params, data: Arrays, steps: int, new: Arrays | None = None) -> RowLaw:
        """Return the distribution of each part after each sequence."""
        law: RowLaw = self.levels(params, data).ahead(steps, np.empty((steps, 0)))
        return law

    def levels_ahead(self, params: Params, data: Arrays, steps: int) -> RowLaw:
        """Return the distribution of the levels after each sequence."""
        return self.part(self.parts_ahead(params, data, steps), "level", data)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the rows as a Gaussian vector, whose covariance matrix is a sum over responses to steps."""
        seen, matrices = ~np.isnan(data["y"]), self.structure(data)
        place = places(data["sequence"])
        mean = (matrices.responses(int(place.max()) + 1) @ matrices.mean)[place]
        terms = matrices.terms(data, seen)
        terms[""] = terms[""] + sum(np.square(sd) * terms[name] for name, sd in self.known_sds.items())
        with pm.Model() as model:
            outer = self.declared_outer()
            pm.MvNormal("y", pm.Data("means", mean[seen]), ours.covariance(outer, terms), observed=data["y"][seen])
        return model

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the rows, by the Kalman filter."""
        self.require_spread(data)
        with pm.Model() as model:
            sds = {**self.declared_outer(), **self.known_sds}
            pm.Potential("y", ours.structural(sds, without_features(data), 0.0, self.structure(data)))
        return model

    def simulated(self, rng: np.random.Generator, sds: Params, size: int) -> np.ndarray:
        """Draw the rows of one sequence, step by step."""
        A, C, Q = (np.array(each) for each in (self.A, self.C, self.Q))
        z = rng.multivariate_normal(*self.first_state, method="eigh")
        rows = np.empty(size)
        for t in range(size):
            rows[t] = rng.normal(C @ z, sds["r"])
            z = A @ z + sds["q"] * rng.multivariate_normal(np.zeros(len(C)), Q, method="eigh")
        return rows

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """Say that the state grows without bound, and that rows do not determine all of it."""
        matrices, d = self.structure(data), len(self.C)
        growth, lines = matrices.growth, []
        if growth > UNSTABLE:
            lines += [
                f"A has an eigenvalue of size {growth:.4g}: the state grows without bound, as do intervals of forecasts"
            ]
        if matrices.seen < d:
            of_rows = f"rows determine {matrices.seen} of {d} directions of the state (the rank of C, C A, ..)"
            lines += [f"{of_rows}, and say nothing of the others"]
        return (*super().remarks(stats, data), *lines)


def without_features(data: Arrays) -> dict[str, np.ndarray]:
    """Return a series with no columns of features."""
    return {**data, "X": np.empty((len(data["y"]), 0))}
