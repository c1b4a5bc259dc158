"""The terms of a linear predictor, their centres and units, shared by all regressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bayeszoo.data.inputs.features.formula import coding_of, levels_of
from bayeszoo.data.inputs.features.levels import by_any_name, by_feature, products
from bayeszoo.data.read import read
from bayeszoo.data.table.table import shown
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError
from bayeszoo.families.linear.least_squares import Solution, clearly_independent, identify
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.foundation.named import Arrays, Coords, Fields, Params
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities.linear_predictor import Feature, LinearPredictor
from bayeszoo.model.fields import plain, positive, real, relabelled

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT = "(intercept)"
Shape = tuple[int, ...]
MAX_DEGREE = 30
LARGEST = 1e150
"""Largest term, and largest unit of a term: its square must not overflow."""


@dataclass(frozen=True)
class LinearTerms(LinearPredictor, family=True):
    """A weighted sum of terms, the linear predictor: an intercept, and powers of each feature about its centre.

    Priors are on standardized terms, ``((x - center) / scale) ** k``; the parameter ``w`` is in the user's units, the
    weights of ``(x - center) ** k``. A feature called ``a:b``, of features ``a`` and ``b``, is the product of their
    deviations from their centres, ``(a - center) (b - center)``; the centre of ``a:b`` itself is not used.

    Parameters
    ----------
    intercept : bool
        Whether there is an intercept: the linear predictor at ``center``.
    features : tuple of str, optional
        The columns to use, by default all; ``colour`` means all of ``colour[red]``, ``colour[blue]``, ...
    degree : int
        The highest power of each feature, >= 0; 1 is a plane, 0 has an intercept only.
    center, scale : float, or one for each feature of the data
        The zero point of each feature, and its unit in the prior, > 0.
    m0 : float
        Prior mean of the intercept.
    """

    intercept: bool = field(default=True, kw_only=True)
    features: tuple[str, ...] | None = field(default=None, kw_only=True)
    degree: int = field(default=1, kw_only=True)
    center: float = real(0.0, "center", axes=("feature",), kw_only=True)
    scale: float = positive(1.0, "scale", axes=("feature",), kw_only=True)
    m0: float = real(0.0, "prior mean of the intercept", kw_only=True)

    dims: ClassVar[Axes] = {"w": ("term",)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.intercept, bool):
            raise InputError(f"intercept must be true or false, got {self.intercept!r}", "wrong_type")
        if isinstance(self.degree, bool) or not isinstance(self.degree, int) or not 0 <= self.degree <= MAX_DEGREE:
            raise InputError(f"degree must be a whole number from 0 to {MAX_DEGREE}, got {self.degree!r}", "wrong_type")
        if self.features is not None:
            if not isinstance(self.features, list | tuple) or not all(isinstance(f, str) for f in self.features):
                raise InputError(f"features must be a list of names, got {self.features!r}", "wrong_type")
            if len(set(self.features)) < len(self.features):
                twice = max(self.features, key=list(self.features).count)
                raise InputError(f"features names {shown(twice)} twice", "duplicate_name")
            object.__setattr__(self, "features", tuple(self.features))
        if not self.intercept and (self.degree == 0 or self.features == ()):
            raise InputError("a model without intercept and without features has no parameters", "no_features")

    @classmethod
    def standardized(cls, data: Arrays) -> Fields:
        """Return the fields that centre features at their means and scale them by their standard deviations.

        The column of a level has the unit 1/2, the standard deviation of an even split: the prior of a level's effect
        then does not depend on how rare the level is.
        """
        if not len(data["feature"]):
            return {}
        center = np.array([Moments.of(column).mean for column in data["X"].T])
        scale = np.array([_unit(str(name), column) for name, column in zip(data["feature"], data["X"].T, strict=True)])
        for j, factors in products(data["feature"]).items():
            center[j], scale[j] = 0.0, np.prod(scale[factors])
        return {"center": plain(center), "scale": plain(scale)}

    @classmethod
    def weak_with(cls, data: Arrays, fields: Mapping[str, object]) -> Any:
        """Return a model with these fields, and weakly informative values of the others.

        Without an intercept, features and outcome are centred at 0: the fields are those of data that hold each row
        with both signs, whose means are 0.
        """
        rows = data if fields.get("intercept", True) is not False else cls.mirrored(data)
        return super().weak_with(rows, fields)

    @classmethod
    def mirrored(cls, data: Arrays) -> Arrays:
        """Return the rows of the data, followed by the rows with the sign of the features changed."""
        twice = cls.inputs.reordered(data, np.tile(np.arange(cls.inputs.size(data)), 2))
        return {**twice, "X": np.vstack([data["X"], -data["X"]])}

    def coords(self, data: Arrays) -> Coords:
        """Return the names of all terms, and of the slopes, which exclude the intercept."""
        used = data["feature"][self.used(data)]
        powers = [f"{name}^{k}" if k > 1 else str(name) for k in range(1, self.degree + 1) for name in used]
        terms = [INTERCEPT] * self.intercept + powers
        if len(set(terms)) < len(terms):
            twice = next(term for term in terms if terms.count(term) > 1)
            raise InputError(f"a feature has the name of a term, {shown(twice)}", "duplicate_name", hint="rename it")
        return {"term": np.array(terms, dtype=str), "slope": np.array(terms[int(self.intercept) :], dtype=str)}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes of fields."""
        terms = len(self.coords(data)["term"])
        return {"feature": len(data["feature"]), "term": terms, "slope": terms - self.intercept}

    def relabelled(self, axis: str, permutation: np.ndarray) -> Any:
        """Return the model for data whose features are in another order."""
        order = permutation if self.features is None else np.arange(len(self.features))
        slopes = np.concatenate([np.zeros(0), *(k * len(order) + order for k in range(self.degree))]).astype(int)
        terms = np.concatenate([[0], slopes + 1]).astype(int) if self.intercept else slopes
        model = relabelled(self, axis, permutation)
        return relabelled(relabelled(model, "slope", slopes), "term", terms)

    def used(self, data: Arrays) -> np.ndarray:
        """Return the columns of X that the model uses."""
        if self.features is None:
            return np.arange(len(data["feature"]))
        place = by_any_name(data["feature"])
        lacking = next((name for name in self.features if name not in place), None)
        if lacking is not None:
            present = ", ".join(map(shown, data["feature"].tolist()[:20]))
            raise InputError(f"there is no feature {shown(lacking)}", "missing_column", hint=f"the data have {present}")
        return np.array([i for name in self.features for i in place[name]], dtype=int)

    def separate_features(self, data: Arrays) -> dict[str, Feature]:
        """Return the features that the model uses, alone or in an interaction, and that can vary alone.

        A formula may have features that cannot vary alone, such as ``x`` next to ``log(x)``; they are left out.
        """
        return _separate_features(self.used(data), data)

    def _powers(self, data: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return the used features minus their centres, shape (n, F), and their units, shape (F,)."""
        size, used = len(data["feature"]), self.used(data)
        centred = data["X"] - self.entries("center", size)
        for j, factors in products(data["feature"]).items():
            centred[:, j] = np.prod(centred[:, factors], axis=1)
        is_all = np.array_equal(used, np.arange(size))  # avoids a copy
        return centred if is_all else centred[:, used], self.entries("scale", size)[used]

    def slopes(self, data: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return the standardized terms without the intercept, shape (n, K), and their units, shape (K,)."""
        (features, scale), powers = self._powers(data), range(1, self.degree + 1)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            columns = [np.zeros((len(features), 0)), *((features / scale) ** k for k in powers)]
            terms, units = np.hstack(columns), np.concatenate([np.zeros(0), *(scale**k for k in powers)])
        if not (np.max(np.abs(terms), initial=0.0) < LARGEST and np.max(np.abs(units), initial=0.0) < LARGEST):
            raise InputError(
                f"a power up to {self.degree} of a feature is too large", "too_large", hint="set center and scale"
            )
        return terms, units

    def design(self, data: Arrays) -> np.ndarray:
        """Return the terms in the user's units, shape (n, T)."""
        columns, units = self.slopes(data)
        return self._with_intercept(columns * units)

    def _with_intercept(self, columns: np.ndarray) -> np.ndarray:
        return np.hstack([np.ones((len(columns), int(self.intercept))), columns])

    def predictor(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the linear predictor of each row; weights of shape (..., T) give (..., rows)."""
        return np.asarray(params["w"]) @ self.design(data).T

    def moments(self, data: Arrays) -> FactoredMoments:
        """Return count, means and factored scatter of the standardized terms and of an outcome, here 0."""
        columns, units = self.slopes(data)
        return FactoredMoments.of(columns, np.zeros(len(columns)), units)

    def units(self, stats: FactoredMoments) -> np.ndarray:
        """Return the unit of every term, shape (T,)."""
        return np.concatenate([np.ones(int(self.intercept)), stats.units])

    def equations(self, stats: FactoredMoments) -> tuple[np.ndarray, np.ndarray]:
        """Return the fewest rows of standardized terms, and outcomes minus ``m0``, with the data's squared errors."""
        return stats.equations(self.intercept, self.m0 if self.intercept else 0.0)

    def origin(self, terms: int) -> np.ndarray:
        """Return the prior means of the weights: ``m0`` for the intercept, else 0; shape (T,)."""
        return np.array([self.m0] * self.intercept + [0.0] * (terms - self.intercept))

    def term_scales(self, terms: int, of_intercept: float, of_slopes: str) -> np.ndarray:
        """Return the scales of the priors of standardized terms, (..., T).

        ``of_intercept`` is a number, and ``of_slopes`` names a field: a number for all other terms, or one for each.
        """
        count, slopes = terms - self.intercept, getattr(self, of_slopes)
        if isinstance(slopes, tuple) and len(slopes) != count:
            self.entries(of_slopes, count)  # raises an error
        scales = [*[of_intercept] * self.intercept, *(slopes if isinstance(slopes, tuple) else [slopes] * count)]
        return np.stack(np.broadcast_arrays(*scales), axis=-1) if scales else np.empty(0)

    def in_units(self, stats: FactoredMoments, solution: Solution) -> Solution:
        """Convert a solution for standardized weights about the origin to weights in the user's units."""
        units = self.units(stats)
        return solution.in_units(units, self.origin(len(units)))

    def remarks(self, stats: FactoredMoments | None, data: Arrays) -> tuple[str, ...]:
        """Explain which sums of weights the data identify, if not all weights, and at which features weights apply."""
        notes = [self._identified(stats, data), self._intercept_at(data)]
        if products(data["feature"][self.used(data)]):
            notes.append("with interactions, each main effect holds at the center of the others, by default their mean")
        return tuple(filter(None, notes))

    def _intercept_at(self, data: Arrays) -> str:
        """Explain the intercept in one line, unless features are centred at 0."""
        if not (self.degree and np.any(self.entries("center", len(data["feature"]))[self.used(data)])):
            return ""
        if self.intercept:
            quantity = f"the intercept is the {self.predicted_quantity} at center (by default average features)"
            return f"features are centred: {quantity}; set center=0 for features at 0"
        return f"without an intercept, the {self.predicted_quantity} is 0 at center; set center=0 for a line through 0"

    def _identified(self, stats: FactoredMoments | None, data: Arrays) -> str:
        """Say in one line which sums of weights are identified; empty if every weight is."""
        if stats is None:  # the model is sampled on its rows
            if clearly_independent(self._with_intercept(self.slopes(data)[0])):
                return ""
            stats = self.moments(data)
        return identify(self.equations(stats)[0], self.units(stats)).note(self.coords(data)["term"].tolist())

    def prior_in_units(
        self, stats: FactoredMoments, mean: np.ndarray, root: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Convert mean and root of the covariance of standardized weights to the user's units."""
        units = self.units(stats)
        return self.origin(len(units)) + mean / units, root / units[:, None]

    def nothing(self, design: Arrays) -> FactoredMoments:
        """Return the statistics of a design without rows; the arrays need no outcome."""
        columns, units = self.slopes(design)
        return FactoredMoments.of(columns[:0], np.zeros(0), units)

    def simulate_design(
        self, rng: np.random.Generator, size: int, slopes: Shape = (), terms: Shape = (), orthogonal: bool = False
    ) -> dict[str, np.ndarray]:
        """Draw ``size`` rows of features, which have no model: standard normal, in the model's units.

        ``slopes`` and ``terms`` are the shapes of the prior of each term, without and with the intercept; if the prior
        does not tell the number of features, it is three. ``orthogonal`` columns are also orthogonal to a constant.
        """
        named = self.labels.get("feature", self.features or ())
        sizes = [slopes[0] if slopes else 0, terms[0] - self.intercept if terms else 0]
        counts = [max(sizes) // max(self.degree, 1), len(named), *np.shape(self.center), *np.shape(self.scale)]
        count = max(counts) or 3
        labels = [*named, *(f"x{j + 1}" for j in range(len(named), count))]
        draws = rng.standard_normal((size, count))
        if orthogonal:
            draws = np.sqrt(size) * np.linalg.qr(draws - draws.mean(axis=0))[0]
        X = self.entries("center", count) + self.entries("scale", count) * draws
        for j, factors in products(labels).items():
            X[:, j] = np.prod(X[:, factors], axis=1)
        return {"X": X, "feature": np.array(labels, dtype=str)}


def _unit(name: str, column: np.ndarray) -> float:
    """Return the standard deviation of a column; for the 0/1 column of a level that of an even split."""
    is_level = name.endswith("]") and bool(np.isin(np.abs(column), (0, 1)).all())
    return 0.5 if is_level else float(Moments.of(column).sd)


def identified(model: LinearTerms, data: object = None) -> pd.DataFrame:
    """Return the sums of weights that the data identify.

    Parameters
    ----------
    model : LinearTerms
        An instance: its terms are the columns.
    data : Data or anything that `read` takes, optional
        The model's first example by default.

    Returns
    -------
    pandas.DataFrame
        One row per sum, named as ``w[x1] + 2 w[x3]``, and one column per term with its coefficients: for draws of ``w``
        of shape (..., T), ``draws @ frame.T`` are draws of the sums.

    Raises
    ------
    InputError
        When the model is not linear, or the data do not suit it.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> rows = {"y": [1.0, 2.0, 4.0], "a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 6.0]}
    >>> list(bz.identified(bz.find("ridge")(), rows).index)
    ['w[(intercept)]', 'w[a] + 2 w[b]']
    """
    import pandas as pd

    if not isinstance(model, LinearTerms):
        raise InputError("identified needs a linear model, such as bz.find('ridge')()", "not_linear")
    data = read(model, data)
    terms = model.coords(data)["term"].tolist()
    stats = model.moments(data)
    sums = identify(model.equations(stats)[0], model.units(stats))
    return pd.DataFrame(sums.coefficients, index=sums.texts(terms), columns=terms)


def _separate_features(columns_used: np.ndarray, data: Arrays) -> dict[str, Feature]:
    """Return the features that can vary alone and have a used column, alone or in an interaction."""
    names, levels = data["feature"].tolist(), levels_of(data)
    of_products, coding = products(names), coding_of(data)
    used = {j for i in columns_used.tolist() for j in of_products.get(i, [i])}
    columns = {name: Feature([i], []) for i, name in enumerate(names) if i not in of_products}
    for name, places in by_feature(names, coding.names if coding else {}).items():
        if len(levels.get(name, ())) == len(places) + 1:
            columns = {key: feature for key, feature in columns.items() if feature.places[0] not in places}
            columns[name] = Feature(places, levels[name])
    in_order = dict(sorted(columns.items(), key=lambda item: item[1].places))
    features = {name: feature for name, feature in in_order.items() if used & {*feature.places}}
    parts = [getattr(coding, "made_of", {}).get(name, []) for name in names]
    shared = Counter(
        part for feature in features.values() for part in {part for i in feature.places for part in parts[i]}
    )
    return {name: feature for name, feature in features.items() if all(shared[p] < 2 for p in parts[feature.places[0]])}
