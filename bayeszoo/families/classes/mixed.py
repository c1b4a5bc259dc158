"""Features of mixed kinds that are independent given the class: levels, counts and real numbers, and their priors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from bayeszoo.data.inputs import tables_of
from bayeszoo.distributions import information as of_class
from bayeszoo.distributions.conjugate.columns import Columns
from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.conjugate.product import Features, LabelledStats
from bayeszoo.distributions.conjugate.tables import Tables
from bayeszoo.foundation.named import Arrays, Coords, Fields, Params
from bayeszoo.model.base import Axes, Model
from bayeszoo.model.fields import plain, positive, real

FIELDS: dict[type, dict[str, str]] = {
    Tables: {"eta": "alpha"},
    Poisson: {"a": "a", "b": "b"},
    Normal: {"mu0": "m", "kappa0": "kappa", "a0": "a", "b0": "b"},
}
"""For each kind of block, the fields of a model and the arrays of the block that they set."""


@dataclass(frozen=True)
class MixedFeatures(Model, family=True):
    """The conjugate priors of features in each of K classes; a kind that the data lack has no parameters.

    A model with these fields documents them.
    """

    eta: float = positive(1.0, "prior eta", axes=("class", "level"))
    a: float = positive(1.0, "prior shape a", axes=("class", "count"))
    b: float = positive(1.0, "prior rate b", axes=("class", "count"))
    mu0: float = real(0.0, "prior mean mu0", axes=("class", "real"))
    kappa0: float = positive(0.01, "prior kappa0", axes=("class", "real"))
    a0: float = positive(1.0, "prior shape a0", axes=("class", "real"))
    b0: float = positive(1.0, "prior scale b0", axes=("class", "real"))

    dims: ClassVar[Axes] = {
        **{"shares": ("class",), "theta": ("class", "level"), "rates": ("class", "count")},
        **{"means": ("class", "real"), "variances": ("class", "real")},
    }

    def weak_fields(self, data: Arrays) -> Fields:
        """Return fields from the columns: rates worth one event, means 0.01 rows, variances three; levels stay flat."""
        values = dict[str, Any]()
        if len(data["count"]):
            values |= {"a": 1.0, "b": plain(1 / np.maximum(_means(data["counts"]), 0.5 / len(data["counts"])))}
        if len(data["real"]):
            centre = _means(data["reals"])
            spread = _means(np.square(data["reals"] - centre))
            scale = plain(np.where(spread > 0, spread, 1.0) / 2)
            values |= {"mu0": plain(centre), "kappa0": 0.01, "a0": 1.5, "b0": scale}
        return values

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the lengths of the axes of the kinds of features present."""
        return {name: size for name, size in super().sizes(data).items() if size}

    def coords(self, data: Arrays) -> Coords:
        """Return the labels along the axes of the kinds of features present."""
        return {name: labels for name, labels in super().coords(data).items() if len(labels)}

    def laws(self, labels: Arrays) -> dict[str, Law[Any]]:
        """Return the law of each kind of features present, in each of K classes, from the labels of the axes."""
        laws = dict[str, Law[Any]]()
        levels, counts, reals = (partial(self._entries, labels, axis) for axis in ("level", "count", "real"))
        if len(labels["level"]):
            laws["levels"] = Tables(("theta",), "levels", levels("eta"), tables_of(labels))
        if len(labels["count"]):
            laws["counts"] = Columns(Poisson(("rates",), "counts", counts("a"), counts("b")))
        if len(labels["real"]):
            m, kappa, a, b = map(reals, ("mu0", "kappa0", "a0", "b0"))
            laws["reals"] = Columns(Normal(("means", "variances"), "reals", m, kappa, a, b))
        return laws

    def _entries(self, labels: Arrays, axis: str, name: str) -> np.ndarray:
        """Return a field with an entry for each class and label of another axis."""
        return self.entries(name, (len(labels["class"]), len(labels[axis])))

    def features_law(self, labels: Arrays) -> Features:
        """Return the joint law of the features."""
        return Features(tuple(self.laws(labels).values()))

    def fields_of_features(self, law: Features) -> Fields:
        """Return the fields of the priors of the features."""
        pairs = ((block, name, array) for block in law.blocks for name, array in FIELDS[type(block)].items())
        return {name: plain(getattr(block, array)) for block, name, array in pairs}

    def feature_names(self, labels: Arrays) -> list[str]:
        """Return the names of the features, kind by kind."""
        return [str(name) for axis in ("feature", "count", "real") for name in labels[axis]]

    def information(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the mutual information (...) of the class and each feature."""
        shares = params["shares"]
        tables = (params["theta"][..., list(places)] for places in tables_of(data))
        levels = (of_class.information_of_levels(shares, table) for table in tables)
        counts = (of_class.information_of_rates(shares, rates) for rates in _columns(params, "rates"))
        pairs = zip(_columns(params, "means"), _columns(params, "variances"), strict=True)
        reals = (of_class.information_of_normals(shares, *pair) for pair in pairs)
        return dict(zip(self.feature_names(data), chain(levels, counts, reals), strict=True))

    def counts_of_levels(self, stats: LabelledStats) -> dict[str, np.ndarray]:
        """Return how often each level of a feature occurred in each class, (K, L), by feature."""
        names, tables = stats.labels["feature"].tolist(), tables_of(stats.labels)
        counts = stats.parts[1].parts[0].counts if names else np.empty(0)
        return {name: counts[:, list(places)] for name, places in zip(names, tables, strict=True)}

    @staticmethod
    def draw_features(
        params: Params, classes: np.ndarray, labels: Arrays, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Draw the features of rows of known classes (n,)."""
        N = len(classes)
        levels = np.empty((N, len(labels["feature"])), dtype=np.int64)
        for j, places in enumerate(map(list, tables_of(labels))):
            ends = params["theta"][classes][:, places].cumsum(axis=1)[:, :-1]
            levels[:, j] = np.array(places)[(rng.random((N, 1)) > ends).sum(axis=1)]
        rates, means, variances = (
            params[name][classes] if name in params else np.empty((N, 0)) for name in ("rates", "means", "variances")
        )
        return {"levels": levels, "counts": rng.poisson(rates) * 1.0, "reals": rng.normal(means, np.sqrt(variances))}


def _columns(params: Params, name: str) -> Iterator[np.ndarray]:
    """Yield the parameters (..., K) of each column of a kind, if the kind is present."""
    return iter(np.moveaxis(params[name], -1, 0)) if name in params else iter(())


def _means(values: np.ndarray) -> np.ndarray:
    """Return the mean of each column over its observed cells, (D,); 0 for a column without any."""
    seen = ~np.isnan(values)
    return np.asarray(np.nansum(values, axis=0) / np.maximum(seen.sum(axis=0), 1))
