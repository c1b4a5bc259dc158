"""The classical bootstrap of a model's maximum-likelihood estimate: its sampling distribution over resampled rows."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Series, Transitions
from bayeszoo.data.read import Data, example, read
from bayeszoo.data.table.table import shown
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Arrays
from bayeszoo.foundation.streams import stream
from bayeszoo.foundation.tails import LIMITS, moments
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import PointEstimates
from bayeszoo.model.parts.others import statistics_of

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

MOST_OBSERVATIONS = 20_000
"""Most observations that are resampled one by one."""
FEWEST_DRAWS = 100
ABOUT = "sampling distribution of the maximum-likelihood estimate over resampled rows, and no posterior"


@dataclass(frozen=True, eq=False)
class ModelBootstrap:
    """Maximum-likelihood estimates of resampled rows.

    Attributes
    ----------
    model : Model
        The model; its prior is not used.
    mle : dict of str to ndarray
        The estimate from all rows.
    draws : dict of str to ndarray
        The estimates of the resamples, shape (draws, *shape of the parameter).
    seed : int
        Source of the resamples.
    data : Data
        The rows.
    """

    model: Model
    mle: dict[str, np.ndarray]
    draws: dict[str, np.ndarray]
    seed: int
    data: Data

    @property
    def summary(self) -> pd.DataFrame:
        """A row for each parameter: the ``mle``, and mean, sd and quantiles over resamples with Monte Carlo errors."""
        rows = {label: self._of(name, index) for name, index, label in self._entries()}
        return pd.DataFrame(list(rows.values()), index=pd.Index(list(rows), name="parameter"))

    def _entries(self) -> Iterator[tuple[str, tuple[int, ...], str]]:
        coords = self.model.coords(self.data)
        for name, value in self.mle.items():
            axes = [list(map(str, coords[axis])) for axis in self.model.dims.get(name, ())]
            for index in np.ndindex(np.shape(value)):
                labels = [axis[i] for axis, i in zip(axes, index, strict=True)] if axes else [str(i) for i in index]
                yield name, index, f"{name}[{', '.join(labels)}]" if labels else name

    def _of(self, name: str, index: tuple[int, ...]) -> dict[str, float]:
        chain = np.moveaxis(self.draws[name], 0, -1)[index][None]
        spread = moments(chain, independent=True)
        columns = {"mle": float(self.mle[name][index])} | {key: float(getattr(spread, key)) for key in LIMITS}
        for key, level in QUANTILES.items():
            error = diagnostics.mcse(chain, "quantile", prob=level)
            columns |= {key: float(np.quantile(chain, level)), f"mcse_{key}": float(error)}
        return columns


def bootstrap_mle(
    model: Model | type[Model], data: object = None, *, draws: int = 1000, seed: int | None = None, **options: Any
) -> ModelBootstrap:
    """Draw rows with replacement, and take the maximum-likelihood estimate of each resample (Efron 1979).

    Parameters
    ----------
    model : Model or its class
        A model with a closed-form ``mle`` and independent rows.
    data : Data or anything that `read` takes, optional
        By default the model's first data set. Where rows stand for several observations, the observations are drawn;
        at most 20,000.
    draws : int
        Number of resamples, at least 100.
    seed : int, optional
        Source of the resamples; one is drawn without it.
    **options
        Options of `read`.

    Returns
    -------
    ModelBootstrap
        Its ``summary`` has the ``mle`` of each parameter and its spread over resamples, which is no posterior.

    Raises
    ------
    InputError
        When the model has no closed-form estimate, or its rows depend on each other.
    NumericalError
        When a resample has no estimate, for example because all its rows are equal.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> answer = bz.bootstrap_mle(bz.find("beta_bernoulli"), [0, 1, 1, 0, 1], draws=2000, seed=1)
    >>> float(answer.mle["theta"]), round(float(answer.summary["sd"].iloc[0]), 2)  # sqrt(.6 * .4 / 5) = .22
    (0.6, 0.22)
    """
    kind = model if isinstance(model, type) else type(model)
    if not issubclass(kind, PointEstimates) or isinstance(kind.inputs, Series | Transitions):
        hint = "take a model with a closed-form mle whose rows are independent, such as linear_regression"
        raise InputError(f"rows of {kind.name} cannot be resampled", "not_conjugate", hint=hint)
    if draws < FEWEST_DRAWS:
        raise InputError(f"draws must be >= {FEWEST_DRAWS}, got {shown(draws)}", "out_of_range")
    rows = read(kind, data, **options) if data is not None else example(kind)
    instance: Any = model.weak_with(rows, {}) if isinstance(model, type) else model
    single, weights = kind.inputs.observations(rows.arrays)
    count = int(weights.sum())
    if count > MOST_OBSERVATIONS:
        problem = f"{count:,} observations are too many to resample"
        raise InputError(problem, "too_large", hint=f"give at most {MOST_OBSERVATIONS:,}")
    seed = secrets.randbelow(2**31 - 1) if seed is None else seed
    rng = stream(seed, "bootstrap", instance.name, rows.digest)
    resampled = [_estimate(instance, single, rng.multinomial(count, weights / count)) for _ in range(draws)]
    mle = {name: np.asarray(value, dtype=np.float64) for name, value in instance.mle(instance.statistics(rows)).items()}
    estimates = {name: np.array([estimate[name] for estimate in resampled]) for name in mle}
    return ModelBootstrap(instance, mle, estimates, seed, rows)


def _estimate(model: PointEstimates[Any], rows: Arrays, counts: np.ndarray) -> dict[str, np.ndarray]:
    places = np.repeat(np.arange(len(counts)), counts)
    try:
        return dict(model.mle(statistics_of(model, rows, places)))
    except NumericalError as error:
        raise NumericalError(f"a resample has no estimate: {error}", "not_finite") from None
