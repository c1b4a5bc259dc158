"""A layer of hidden units; given it the output is a linear regression, which is integrated out with its noise.

The hidden weights have 2^H H! equal modes, one for each order and sign of the units: convergence is judged by the
function, and weights of units are not shown. Neal 1996; MacKay 1992.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Regression
from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.conjugate.regressions import Regressions
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.priors import Normal, Prior
from bayeszoo.distributions.scale import REAL
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError
from bayeszoo.families.processes.places import AtPlaces
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Arrays, Coords, Params
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import Symmetric
from bayeszoo.model.capabilities.conditional import Conditional
from bayeszoo.model.capabilities.function import OfFunction
from bayeszoo.model.fields import positive, real, whole
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ops = lazy_loader.load("bayeszoo.likelihoods.ops.network", suppress_warning=True)

MOST_UNITS, MOST_CELLS = 50, 1e6
"""Most units of a layer, and most rows times units, for which a gradient takes milliseconds."""
LOOKED_AT = 20
"""Most rows at which the function is diagnosed."""


@dataclass(frozen=True)
class NetworkModel(AtPlaces, Conditional, Symmetric, OfFunction, family=True):
    """Rows about a weighted sum of H units tanh(weights' x + bias); the outer parameters are weights and biases.

    Parameters
    ----------
    H : int
        Number of hidden units, at most 50.
    tau, s0 : float
        Prior standard deviations of the hidden weights of standardized features, and of the biases, > 0. The larger
        tau, the steeper the steps.
    V0 : float
        Prior variance of the intercept, and of the sum of the units, divided by sigma2, > 0.
    a0, b0 : float
        Shape and scale of the inverse-gamma prior of the noise variance, > 0.
    m0 : float
        Prior mean of the intercept.
    """

    H: int = whole(3, "the number of hidden units H", kw_only=True)
    tau: float = positive(2.0, "prior sd of the hidden weights tau", kw_only=True)
    s0: float = positive(2.0, "prior sd of the biases s0", kw_only=True)
    V0: float = positive(100.0, "prior variance V0 over sigma2", kw_only=True)
    a0: float = positive(1.0, "prior shape a0", kw_only=True)
    b0: float = positive(1.0, "prior scale b0", units=2, kw_only=True)
    m0: float = real(0.0, "prior mean of the intercept", units=1, location=True, kw_only=True)

    inputs = Regression("y")
    outer = {"weights": REAL, "bias": REAL}  # noqa: RUF012
    dims: ClassVar[Axes] = {"weights": ("feature", "unit"), "bias": ("unit",), "output": ("unit",)}
    signed = ("weights", "bias", "output")
    finer = 2  # a steep step lies between two rows along a ridge, whose weight and bias are in proportion
    unread = "order and sign of hidden units mean nothing: read the function, by predict and --report"
    nonnegative = ("sigma2",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.H > MOST_UNITS:
            hint = "take gaussian_process, which is the limit of many units"
            raise InputError(
                f"H={self.H} hidden units, and at most {MOST_UNITS} are sampled", "out_of_range", hint=hint
            )

    def coords(self, data: Arrays) -> Coords:
        """Return the labels of the features, and the numbers of the units."""
        return {**super().coords(data), "unit": np.arange(1, self.H + 1)}

    def outer_shapes(self, data: Arrays | None = None) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes: a weight for each feature and unit, and a bias for each unit."""
        return {"weights": (1 if data is None else len(data["feature"]), self.H), "bias": (self.H,)}

    def few_outer(self) -> Self:
        """Return a network of one unit with a smooth step, whose weight and bias can be integrated by quadrature."""
        return self.replaced(H=1, tau=self.tau / 4, s0=self.s0 / 4, V0=self.V0 / 100)

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Normal weights of standardized features, and biases."""
        return {"weights": Normal(0.0, self.tau), "bias": Normal(0.0, self.s0)}

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess the prior means and sds: both signs of a unit are equally likely."""
        return {"weights": (0.0, float(self.tau)), "bias": (0.0, float(self.s0))}

    # Given the hidden weights

    def units(self, outer: Params, data: Arrays) -> np.ndarray:
        """Return a constant and the units of each row, (..., rows, H + 1)."""
        inner = self.places(data) @ np.asarray(outer["weights"]) + np.asarray(outer["bias"])[..., None, :]
        return np.concatenate([np.ones((*inner.shape[:-1], 1)), np.tanh(inner)], axis=-1)

    @property
    def precision(self) -> np.ndarray:
        """The prior precision of the intercept and of each output weight, times the noise variance, (H + 1,)."""
        return np.r_[1.0, np.full(self.H, float(self.H))] / self.V0

    @property
    def prior_of_output(self) -> Regressions:
        """The prior of the intercept, the output weights and the noise variance."""
        mean, root = np.r_[self.m0, np.zeros(self.H)], np.diag(np.sqrt(self.precision))
        a0, b0 = np.asarray(self.a0), np.asarray(self.b0)
        return Regressions(("output", "sigma2"), "y", mean, root, a0, b0, lambda rows: self.units({}, rows))

    def _moments(self, outer: Params, data: Arrays) -> Moments:
        units, n = self.units(outer, data), len(data["y"])
        y = np.broadcast_to(np.asarray(data["y"], dtype=np.float64), units.shape[:-1])
        joined = np.concatenate([units, y[..., None]], axis=-1)
        mean = joined.mean(axis=-2) if n else joined.sum(axis=-2)
        deviations = joined - mean[..., None, :]
        rounding = deviations.mean(axis=-2) if n else 0 * mean
        deviations = deviations - rounding[..., None, :]
        return Moments(float(n), mean, np.swapaxes(deviations, -1, -2) @ deviations, rounding)

    def output_given(self, outer: Params, data: Arrays) -> Regressions:
        """Return the posterior of intercept, output weights and noise; leading axes are points."""
        block = self.prior_of_output.updated(self._moments(outer, data))
        return replace(block, a=np.broadcast_to(block.a, block.b.shape))

    def log_marginal(self, outer: Params, data: Arrays) -> Any:
        """Return the log density of the rows, a multivariate Student t; leading axes are points."""
        shape, block = np.shape(outer["bias"])[:-1], self.prior_of_output
        flat = {name: np.reshape(v, (-1, *np.shape(v)[len(shape) :])) for name, v in outer.items()}
        values = [
            block.log_evidence(self._moments({name: v[points] for name, v in flat.items()}, data))
            for points in blocks(len(flat["bias"]), len(data["y"]) * (self.H + 2))
        ]
        return np.reshape(np.concatenate([*values, np.zeros(0)]), shape)[()]

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return the distribution of intercept, output weights and noise variance; leading axes are points."""
        block = self.output_given(outer, data)
        df, scale = (
            2 * block.a,
            np.sqrt(np.sum(np.square(np.linalg.inv(block.root)), axis=-1) * (block.b / block.a)[..., None]),
        )
        marginals = {
            "intercept": frozen.t(df, block.m[..., 0], scale[..., 0]),
            "output": frozen.t(df[..., None], block.m[..., 1:], scale[..., 1:]),
            "sigma2": block.marginals()["sigma2"],
        }

        def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
            drawn = block.rvs(size, rng)
            w = drawn["output"]
            return {"intercept": w[..., 0], "output": w[..., 1:], "sigma2": drawn["sigma2"]}

        def log_density(params: Params) -> Any:
            w = np.concatenate([np.asarray(params["intercept"])[..., None], params["output"]], axis=-1)
            return block.log_each({"output": w, "sigma2": params["sigma2"]})

        return Posterior(marginals, draw, log_density)

    # The function, and rows about it

    def _student(self, outer: Params, seen: Arrays, new: Arrays, noise: float) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return degrees of freedom, means and scales of the function at new rows; with ``noise`` 1, of the rows."""
        block, units = self.output_given(outer, seen), self.units(outer, new)
        spread = np.sum(np.square(units @ np.linalg.inv(block.root)), axis=-1)
        scale = np.sqrt((block.b / block.a)[..., None] * (noise + spread))
        return 2 * block.a[..., None], (units @ block.m[..., None])[..., 0], scale

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the Student t distribution of each new row given the hidden weights and the rows seen."""
        law: RowLaw = frozen.t(*self._student(params, seen, new, 1.0))
        return law

    def function(self, params: Params, seen: Arrays, new: Arrays) -> RowLaw:
        """Return the Student t distribution of the function at each new row given the hidden weights."""
        law: RowLaw = frozen.t(*self._student(params, seen, new, 0.0))
        return law

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the Student t distribution of each row given the hidden weights and all other rows.

        The row is removed from the posterior of all rows by its leverage h: its mean is y - e / (1 - h), with e its
        residual.
        """
        block, units = self.output_given(params, seen), self.units(params, seen)[..., places, :]
        left = 1 - np.sum(np.square(units @ np.linalg.inv(block.root)), axis=-1)
        y = np.asarray(seen["y"], dtype=np.float64)[places]
        error = y - (units @ block.m[..., None])[..., 0]
        a, b = block.a[..., None] - 0.5, block.b[..., None] - np.square(error) / (2 * left)
        law: RowLaw = frozen.t(2 * a, y - error / left, np.sqrt(b / a / left))
        return law

    def drawn_function(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw functions at all new rows, with output weights drawn given the hidden weights."""
        output = self.output_given(params, seen).rvs((), rng)["output"]
        return np.asarray((self.units(params, new) @ output[..., None])[..., 0])

    def drawn_rows(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw new rows: functions with noise."""
        drawn = self.output_given(params, seen).rvs((), rng)
        function = (self.units(params, new) @ drawn["output"][..., None])[..., 0]
        return np.asarray(rng.normal(function, np.sqrt(drawn["sigma2"])[..., None]))

    def share_of_prior(self, draws: Params, seen: Arrays, new: Arrays) -> np.ndarray:
        """Return the posterior variance of the function at new rows, (rows,), as a share of its prior variance."""
        block, units = self.output_given(draws, seen), self.units(draws, new)
        spread = np.sum(np.square(units @ np.linalg.inv(block.root)), axis=-1)
        noise, means = (block.b / block.a)[..., None], (units @ block.m[..., None])[..., 0]
        prior_spread = np.sum(np.square(units) / self.precision, axis=-1)
        return np.asarray(((noise * spread).mean(axis=0) + means.var(axis=0)) / (noise * prior_spread).mean(axis=0))

    # Orders and signs of units are arbitrary

    def exchangeable_axis(self) -> str:
        """Return the axis of the units, whose order and signs are arbitrary."""
        return "unit"

    def invariants(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the function at up to twenty rows, the log density, and the parameters without a unit axis."""
        n = len(data["y"])
        rows = self.inputs.reordered(data, np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(int)))
        outer = self._outer_of(params)
        without_units = {name: np.asarray(params[name]) for name in ("intercept", "sigma2") if name in params}
        means = self._student(outer, data, rows, 0.0)[1]
        return {**without_units, "function": means, "log_density": self.log_marginal(outer, data)}

    # Declarations

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the rows with its gradient, output weights and noise integrated out."""
        if (cells := len(data["y"]) * self.H) > MOST_CELLS:
            hint = "fit a sample of the rows, or take fewer units"
            raise InputError(
                f"{cells:,} rows times units, and at most {MOST_CELLS:,.0f} are sampled", "too_large", hint=hint
            )
        terms = np.column_stack([np.ones(len(data["y"])), self.places(data)])
        numbers = {"terms": terms, "y_data": data["y"] - self.m0, "precision": self.precision}
        with pm.Model(coords=self.coords(data)) as model:
            hidden = self.declared_outer(data)
            w = pm.math.concatenate([hidden["bias"][None], hidden["weights"]], axis=0)
            arrays = [pm.Data(name, values) for name, values in numbers.items()]
            pm.Potential("y", ops.network_log_density(w, *arrays, pm.Data("noise", np.array([self.a0, self.b0]))))
        return model
