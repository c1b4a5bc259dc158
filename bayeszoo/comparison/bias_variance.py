"""Bias and variance of predictions, by simulating many training sets from a known function.

For squared loss the expected error of a prediction is the squared bias of the mean prediction, the variance of the
prediction over training sets, and the noise: Hastie, Tibshirani and Friedman 2009, section 7.3; Bishop, PRML, section
3.2; CS725 lecture notes, sections 12 and 13.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.comparison.candidates import unique
from bayeszoo.data.inputs import Regression
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import k_hat_limit
from bayeszoo.foundation.threads import one_thread
from bayeszoo.model.base import Model, Observable, PointEstimates, Predictive, Sufficient, Values

if TYPE_CHECKING:
    import pandas as pd

MIN_REPEATS = 200
"""Fewer training sets do not show how heavy the tail of the error is."""
ESTIMATES = ("mle", "map", "posterior mean")
COLUMNS = (
    "model",
    "estimate",
    "bias2",
    "bias2_mcse",
    "variance",
    "variance_mcse",
    "noise",
    "expected_error",
    "expected_error_mcse",
    "test_error",
    "test_error_mcse",
    "k_hat",
    "from",
)


def bias_variance(
    truth: Callable[[np.ndarray], Any],
    models: Model | Mapping[Any, Model] | Iterable[Model],
    x: Any,
    *,
    sigma: float,
    rows: Any,
    seed: int,
    repeats: int = 500,
) -> pd.DataFrame:
    """Decompose the expected squared error of predictions into bias, variance and noise.

    Many training sets are simulated from a known function with Gaussian noise, the same for all models; each model is
    fitted to each of them in closed form, and predicts the function at the test points.

    Parameters
    ----------
    truth : callable
        The function: takes points like ``x`` and returns their mean outcomes, shape (points,).
    models : Model, mapping of names to Model, or iterable of Model
        Linear models, with their priors: of `polynomials`, say, or one for each ridge penalty.
    x : array-like of shape (points,) or (points, D)
        Test points, all equally likely: errors are means over them. The features are called ``x``, or ``x1``, ``x2``,
        ...
    sigma : float
        Standard deviation of the noise, > 0, of training and test outcomes.
    rows : int, or array-like of shape (n,) or (n, D)
        How many rows a training set has, drawn from ``x`` with replacement; or the points that every training set has.
    seed : int
        Source of all randomness.
    repeats : int
        How many training sets, >= 200.

    Returns
    -------
    pandas.DataFrame
        One row a model and estimate, in squared units of the outcome. What is withheld is NaN.

        ``model``, ``estimate``
            The model's name; and ``"mle"``, ``"map"`` or ``"posterior mean"``, from which the prediction is made.
        ``bias2``, ``variance``, ``noise``
            Mean over test points of the squared bias, the variance over training sets, and sigma squared. The first
            two are unbiased, so that ``bias2`` may come out below 0 where there is none.
        ``expected_error``
            Their sum.
        ``test_error``
            Mean squared error against outcomes simulated at the test points, new ones for every training set: it must
            agree with ``expected_error``.
        ``bias2_mcse``, ``variance_mcse``, ``expected_error_mcse``, ``test_error_mcse``
            Monte Carlo standard errors over training sets; the test points are taken as they are. Where there is no
            bias, ``bias2_mcse`` is up to sqrt(2) times too large.
        ``k_hat``
            Pareto shape of the upper tail of the training sets' errors; above `k_hat_limit` their mean may not exist,
            as for least squares on nearly singular designs, and all is withheld. With more repeats the limit is
            wider and the shape better known.
        ``from``
            ``"simulation"`` or ``"withheld: ..."``.

    Raises
    ------
    InputError
        When a model is not of an outcome and features, or an argument is out of its range.

    Notes
    -----
    ``bias2`` is the mean over pairs of different training sets of the product of their errors; the squared error of
    the mean prediction would be too large by ``variance / repeats``. Its Monte Carlo error is that of the jackknife.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> ridges = bz.polynomials(bz.find("ridge")(), [1, 3])
    >>> found = bz.bias_variance(np.sin, ridges, np.linspace(-3, 3, 31), sigma=0.3, rows=25, seed=1)
    >>> found.loc[found["estimate"] == "map", ["model", "bias2", "variance"]].round(2).values.tolist()
    [['degree 1', 0.19, 0.03], ['degree 3', 0.01, 0.02]]
    """
    import pandas as pd

    wanted, rng = _named(models), np.random.default_rng(_checked_seed(seed))
    sets = _training_sets(truth, _array(x, "x"), rows, _checked_sd(sigma), _checked_repeats(repeats), rng)
    for model in wanted.values():  # what does not fit is refused before anything takes time
        cast(Any, model).statistics(sets.training(0))
    with one_thread():
        found = [
            {"model": name, "estimate": estimate, **_row(model, estimate, sets)}
            for name, model in wanted.items()
            for estimate in ESTIMATES
        ]
    return pd.DataFrame(found, columns=list(COLUMNS))


# Training sets


@dataclass(frozen=True, eq=False)
class TrainingSets:
    """Simulated training sets, and the outcomes to be predicted after each of them.

    Attributes
    ----------
    X, y : ndarray of shape (repeats, n, D), (repeats, n)
    points : ndarray of shape (points, D)
        The test points.
    mean : ndarray of shape (points,)
        Their true means.
    fresh : ndarray of shape (repeats, points)
        Outcomes there.
    sigma : float
    """

    X: np.ndarray
    y: np.ndarray
    points: np.ndarray
    mean: np.ndarray
    fresh: np.ndarray
    sigma: float

    @property
    def labels(self) -> np.ndarray:
        """The names of the features."""
        size = self.points.shape[1]
        return np.array(["x"] if size == 1 else [f"x{j}" for j in range(1, size + 1)])

    def training(self, r: int) -> dict[str, np.ndarray]:
        """Return one training set."""
        return {"X": self.X[r], "y": self.y[r], "feature": self.labels}

    def test(self) -> dict[str, np.ndarray]:
        """Return the test points, without outcomes."""
        return {"X": self.points, "feature": self.labels}


def _training_sets(
    truth: Callable[[np.ndarray], Any], x: np.ndarray, rows: Any, sigma: float, repeats: int, rng: np.random.Generator
) -> TrainingSets:
    points, mean = _columns(x), _means(truth, x)
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
        if rows < 1:
            raise InputError(f"rows must be 1 or more, got {rows}")
        places = rng.integers(len(points), size=(repeats, int(rows)))
        X, means = points[places], mean[places]
    else:
        fixed = _array(rows, "rows")
        given = _columns(fixed)
        if given.shape[1] != points.shape[1]:
            raise InputError(f"rows have {given.shape[1]} features, x has {points.shape[1]}")
        X = np.broadcast_to(given, (repeats, *given.shape))
        means = np.broadcast_to(_means(truth, fixed), (repeats, len(fixed)))
    y = means + sigma * rng.standard_normal(means.shape)
    fresh = mean + sigma * rng.standard_normal((repeats, len(mean)))
    return TrainingSets(X, y, points, mean, fresh, sigma)


def _columns(x: np.ndarray) -> np.ndarray:
    return x[:, None] if x.ndim == 1 else x


def _array(x: Any, name: str) -> np.ndarray:
    """Return points as numbers, in the shape that they were given in."""
    try:
        values = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers, got {type(x).__name__}") from None
    if values.ndim not in (1, 2) or not values.size or not np.isfinite(values).all():
        raise InputError(f"{name} must have shape (points,) or (points, D) and finite entries, got {values.shape}")
    return values


def _means(truth: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    values = np.asarray(truth(x), dtype=np.float64)
    if values.shape != x.shape[:1] or not np.isfinite(values).all():
        raise InputError(f"truth must return a finite number for each of the {len(x)} points, got shape {values.shape}")
    return values


def _checked_sd(sigma: Any) -> float:
    if not isinstance(sigma, int | float | np.number) or not 0 < sigma < math.inf:
        raise InputError(f"sigma must be a finite number > 0, got {sigma!r}")
    return float(sigma)


def _checked_repeats(repeats: Any) -> int:
    if not isinstance(repeats, int | np.integer) or repeats < MIN_REPEATS:
        raise InputError(f"repeats must be a whole number >= {MIN_REPEATS}, got {repeats!r}")
    return int(repeats)


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0, got {seed!r}")
    return int(seed)


def _named(models: Any) -> dict[Any, Model]:
    """Return the models by name, all of them of an outcome and features."""
    given = [models] if isinstance(models, Model) else models
    items = list(given.items()) if isinstance(given, Mapping) else [(None, model) for model in given]
    if not items:
        raise InputError("there are no models")
    for _, model in items:
        if not (isinstance(model, Model) and isinstance(model.inputs, Regression) and isinstance(model, Sufficient)):
            what = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
            raise InputError(
                f"a model of an outcome and features is needed, got {what}", hint="give bz.find('ridge')()"
            )
    if isinstance(given, Mapping):
        return dict(items)
    return dict(zip(unique(str(model) for _, model in items), (model for _, model in items), strict=True))


# Decomposition


def _row(model: Model, estimate: str, sets: TrainingSets) -> dict[str, Any]:
    predict = _predictor(model, estimate)
    if predict is None:
        return {"from": "withheld: no closed form"}
    try:
        predictions = np.array([predict(sets.training(r), sets.test()) for r in range(len(sets.y))])
    except NumericalError as error:
        return {"from": f"withheld: {error}"}
    if not np.isfinite(predictions).all():
        return {"from": "withheld: a prediction is not finite"}
    return _decomposition(predictions, sets)


def _predictor(model: Any, estimate: str) -> Callable[[Values, Values], np.ndarray] | None:
    """Return what predicts the means of new rows after a training set, or None where the model cannot."""
    if estimate == "posterior mean":
        if not isinstance(model, Predictive):
            return None
        return lambda data, new: model.predictive(model.statistics(data), new).mean()
    if not (isinstance(model, PointEstimates) and isinstance(model, Observable)):
        return None
    fitted = getattr(model, estimate)
    return lambda data, new: model.likelihood(fitted(cast(Any, model).statistics(data)), new).mean()


def _decomposition(predictions: np.ndarray, sets: TrainingSets) -> dict[str, Any]:
    squares = np.mean(np.square(predictions - sets.mean), axis=1)  # (repeats,)
    k_hat = _tail(squares)
    limit = k_hat_limit(len(squares))
    if not k_hat <= limit:
        return {"k_hat": k_hat, "from": f"withheld: k-hat {k_hat:.3g} of the errors (must be <= {limit:.3g})"}
    bias2, variance = squared_bias(predictions - sets.mean), spread(predictions)
    expected = _mean(squares)
    measured = _mean(np.mean(np.square(sets.fresh - predictions), axis=1))
    return {
        "bias2": bias2[0],
        "bias2_mcse": bias2[1],
        "variance": variance[0],
        "variance_mcse": variance[1],
        "noise": sets.sigma**2,
        "expected_error": bias2[0] + variance[0] + sets.sigma**2,
        "expected_error_mcse": expected[1],
        "test_error": measured[0],
        "test_error_mcse": measured[1],
        "k_hat": k_hat,
        "from": "simulation",
    }


def squared_bias(errors: np.ndarray) -> tuple[float, float]:
    """Return the unbiased estimate of the squared mean error, averaged over points, and its jackknife standard error.

    Parameters
    ----------
    errors : ndarray of shape (repeats, points)
        Of independent training sets.
    """
    repeats, points = errors.shape
    own = np.sum(np.square(errors), axis=1)
    others = (errors @ errors.sum(axis=0) - own) / (points * (repeats - 1))  # mean product with the other sets' errors
    value = float(others.mean())
    return value, 2 * math.sqrt((repeats - 1) / repeats * float(np.sum(np.square(others - value)))) / (repeats - 2)


def spread(predictions: np.ndarray) -> tuple[float, float]:
    """Return the variance over training sets, averaged over points, and its standard error.

    Parameters
    ----------
    predictions : ndarray of shape (repeats, points)
    """
    repeats = len(predictions)
    squares = np.square(predictions - predictions.mean(axis=0)).mean(axis=1)
    value, error = _mean(squares * repeats / (repeats - 1))
    return value, error


def _mean(values: np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))


def _tail(squares: np.ndarray) -> float:
    """Return the Pareto shape of the upper tail."""
    from arviz_stats.base import array_stats

    if np.ptp(squares) <= 1e-9 * np.max(np.abs(squares)):  # every training set gives the same: there is no tail
        return -math.inf
    return float(array_stats.pareto_khat(squares[None, :], chain_axis=0, draw_axis=1, tail="right"))
